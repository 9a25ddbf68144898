"""Token counts are those of the tokenizers' authors, without the network."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from themis.core.tokens import DEFAULT_TOKENIZER, count_prompt_tokens, count_tokens
from themis.exceptions import ConfigurationError

# Text -> tokens in cl100k_base and o200k_base, as the tokenizers' publisher gives them in its guide to counting tokens.
PUBLISHED = {
    "tiktoken is great!": (6, 6),
    "antidisestablishmentarianism": (6, 6),
    "2 + 2 = 4": (7, 7),
    "お誕生日おめでとう": (9, 8),
    "hello world": (2, 2),
    "": (0, 0),
}


@pytest.mark.parametrize("text", PUBLISHED)
def test_the_published_counts_are_met(text):
    assert (count_tokens(text, "cl100k_base"), count_tokens(text, "o200k_base")) == PUBLISHED[text]


def test_the_default_is_named():
    assert DEFAULT_TOKENIZER == "cl100k_base"
    assert count_tokens("お誕生日おめでとう") == 9


def test_special_tokens_in_a_text_are_ordinary_text():
    assert count_tokens("<|endoftext|>") > 1


def test_a_lone_surrogate_is_counted_as_a_replacement():
    assert count_tokens("a\ud800b") == count_tokens("a?b")


def test_a_conversation_is_told_whole_and_instead_of_the_prompt():
    spoken = [
        {"role": "user", "content": "hello world"},
        {"role": "assistant", "content": None},
        {"role": "user", "content": [{"type": "text", "text": "hello world"}, {"type": "image_url", "image_url": {}}]},
    ]

    assert count_prompt_tokens("hello world", {}) == 2
    assert count_prompt_tokens("hello world", {"system_prompt": "hello world"}) == 4
    assert count_prompt_tokens("not sent", {"messages": spoken, "system_prompt": "hello world"}) == 6
    assert count_prompt_tokens("not sent", {"messages": {"no": "conversation"}}) == 0


def test_words_need_no_vocabulary():
    assert count_tokens("  three short\nwords ", "words") == 3


@given(st.text(), st.sampled_from(["cl100k_base", "o200k_base"]))
def test_a_token_is_at_least_one_byte(text, name):
    assert bool(text) <= count_tokens(text, name) <= len(text.encode())


def test_an_unknown_tokenizer_is_refused_with_the_nearest():
    with pytest.raises(ConfigurationError, match=r"unknown tokenizer 'cl100k' \(did you mean 'cl100k_base'"):
        count_tokens("x", "cl100k")
