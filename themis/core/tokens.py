"""Counts tokens with a named tokenizer, exactly and without the network.

The vocabularies `cl100k_base` and `o200k_base` are inside the rs-bpe wheel. The name used is recorded in manifests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache

from themis.core.registry import Registry

DEFAULT_TOKENIZER = "cl100k_base"

Count = Callable[[str], int]


def count_tokens(text: str, name: str = DEFAULT_TOKENIZER) -> int:
    return tokenizer(name)(text)


def count_prompt_tokens(prompt: str, row: Mapping[str, object]) -> int:
    """Tokens of all that a model is told: the row's conversation, or else the prompt, after the row's system prompt.

    Of a row with `continuations`, those of every context and text.
    """
    scored = row.get("continuations")
    if isinstance(scored, list | tuple):
        return sum(
            count_tokens(text) for one in scored for text in _texts([prompt, one] if isinstance(one, str) else one)
        )
    conversation = row.get("messages")
    told = _texts([row.get("system_prompt"), prompt if conversation is None else conversation])
    return sum(count_tokens(text) for text in told)


def _texts(told: object) -> Iterator[str]:
    """Of messages, their contents, and the parts of a content that is a list."""
    if isinstance(told, str):
        yield told
    elif isinstance(told, Mapping):
        yield from _texts([told.get("content"), told.get("text")])
    elif isinstance(told, list | tuple):
        for part in told:
            yield from _texts(part)


@lru_cache(maxsize=8)
def tokenizer(name: str = DEFAULT_TOKENIZER) -> Count:
    """The counting function of a tokenizer."""
    return TOKENIZERS.get(name)()


def cl100k_base() -> Count:
    from rs_bpe.bpe import openai

    return _safe(openai.cl100k_base().count)


def o200k_base() -> Count:
    from rs_bpe.bpe import openai

    return _safe(openai.o200k_base().count)


def words() -> Count:
    """Words between white space: a rough count that needs no vocabulary."""
    return lambda text: len(text.split())


def _safe(count: Count) -> Count:
    def counted(text: str) -> int:
        try:
            return count(text)
        except UnicodeEncodeError:
            # A lone surrogate has no UTF-8 form; it is counted as the replacement character.
            return count(text.encode("utf-8", "replace").decode("utf-8"))

    return counted


TOKENIZERS: Registry[Callable[[], Count]] = Registry(
    "tokenizer",
    {
        "cl100k_base": "themis.core.tokens:cl100k_base",
        "o200k_base": "themis.core.tokens:o200k_base",
        "words": "themis.core.tokens:words",
    },
)
