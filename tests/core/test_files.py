"""Files are there whole or not at all, and their names stay in their folder."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from themis.core.files import atomic_write, safe_filename
from themis.exceptions import ConfigurationError


@given(st.text())
def test_a_file_name_made_of_any_text_is_one_plain_word(text):
    word = safe_filename(text)
    assert word.isascii()
    assert 0 < len(word) <= 80
    assert "/" not in word
    assert "\\" not in word
    assert not word.startswith(".")
    assert ".." not in word


@given(st.text(), st.text())
def test_two_texts_have_two_file_names(one, other):
    assert (safe_filename(one) == safe_filename(other)) == (one == other)


def test_a_file_that_could_not_be_finished_leaves_the_one_before(tmp_path):
    path = tmp_path / "made" / "report.txt"
    with atomic_write(path) as file:
        file.write(b"first")

    with pytest.raises(TypeError), atomic_write(path) as file:
        file.writelines([b"second, in par", None])

    assert path.read_bytes() == b"first"
    assert list(path.parent.iterdir()) == [path]
    with pytest.raises(ConfigurationError, match="is a directory"), atomic_write(tmp_path):
        pass
