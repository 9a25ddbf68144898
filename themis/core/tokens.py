"""Counts tokens with a named tokenizer, exactly and without the network.

The vocabularies `cl100k_base` and `o200k_base` are inside the rs-bpe wheel. The name used is recorded in manifests.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from themis.core.registry import Registry

__all__ = ["DEFAULT_TOKENIZER", "TOKENIZERS", "cl100k_base", "count_tokens", "o200k_base", "tokenizer", "words"]

DEFAULT_TOKENIZER = "cl100k_base"

Count = Callable[[str], int]


def count_tokens(text: str, name: str = DEFAULT_TOKENIZER) -> int:
    return tokenizer(name)(text)


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
