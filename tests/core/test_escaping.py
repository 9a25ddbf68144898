"""Text is shown, and never obeyed."""

from hypothesis import given
from hypothesis import strategies as st

from themis.core.markup import escape_control


@given(st.text())
def test_escaped_text_has_no_character_that_acts(text):
    shown = escape_control(text)

    assert shown.encode("utf-8").decode("utf-8") == shown
    assert not any(ord(c) < 0x20 and c not in "\t\n" for c in shown)
    assert not any(c in shown for c in "\x1b\x7f\u202e\u2066\u200b\ufeff")
    assert escape_control(shown) == shown


def test_each_surface_says_what_it_keeps_and_what_stands_for_the_rest():
    text = "a\tb\r\nc\x1b[31m \u202etxt"

    assert escape_control(text) == "a\tb\nc␛[31m ⟨U+202E⟩txt"
    assert escape_control(text, keep="\n", replacement="?") == "a?b\nc?[31m ?txt"
