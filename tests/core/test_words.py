"""Words of a command line and the values they stand for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from themis.core.codec import read_word, write_word
from themis.exceptions import ConfigurationError

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


@pytest.mark.parametrize(
    ("word", "value"),
    [
        ("3", 3),
        ("0.5", 0.5),
        ("true", True),
        ("False", False),
        ("None", None),
        ('["a", 1]', ["a", 1]),
        ('"3"', "3"),
        ("2024-06-01", "2024-06-01"),
        ("12:30", "12:30"),
        ("no", "no"),
        ("root ::= [0-9]+: x", "root ::= [0-9]+: x"),
        ("http://127.0.0.1:9/v1", "http://127.0.0.1:9/v1"),
        ("", ""),
    ],
)
def test_a_word_is_the_value_it_looks_like(word, value):
    assert read_word(word) == value
    assert type(read_word(word)) is type(value)


@pytest.mark.parametrize("word", ["[temperature, top_p]", "{a: 1}", '["a"', "[END]"])
def test_a_list_that_is_not_quite_json_is_refused_and_not_taken_for_text(word):
    with pytest.raises(ConfigurationError, match=r"begins like JSON, with .* and is none"):
        read_word(word)


@given(VALUES)
def test_what_is_written_is_read_again(value):
    assert read_word(write_word(value)) == value


@given(st.text(alphabet="abc -:./", min_size=1))
def test_plain_text_is_written_as_it_is(text):
    assert write_word(text) == text
