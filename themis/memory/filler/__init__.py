"""Filler: what is said to put distance between the messages of tests, each message with the reply that is expected to it.

Message number n is made from the seed and n alone, so replaying a conversation needs no state.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from themis.core.registry import Registry
from themis.core.tokens import DEFAULT_TOKENIZER
from themis.memory.actions import Filler, FillerMessage
from themis.memory.filler.trivia import Trivia, read_pairs

__all__ = ["FILLERS", "Filler", "FillerMessage", "create_filler"]

FILLERS: Registry[Callable[..., Filler]] = Registry(
    "filler", {"facts": "themis.memory.filler.facts:facts", "mixed": "themis.memory.filler.mixed:Mixed"}
)


def create_filler(source: str, *, seed: int = 0, tokenizer_name: str = DEFAULT_TOKENIZER) -> Filler:
    """Filler by its registered name, or from a file.

    Args:
        source: A name: `mixed` is talk, documents, e-mails, code, tables and quizzes in several languages, `facts` trivia
            alone; or TriviaQA's JSON, or JSONL with `question` and `answer`.
        seed: Decides the order.
        tokenizer_name: What tokens are counted with.

    Raises:
        DatasetError: The file cannot be read.
        ConfigurationError: There is no such filler; names the nearest.

    >>> type(create_filler("facts", seed=1)).__name__
    'Trivia'
    """
    if source in FILLERS:
        return FILLERS.get(source)(seed=seed, tokenizer_name=tokenizer_name)
    path = Path(source)
    if path.suffix.lower() in (".json", ".jsonl") or path.exists():
        return Trivia(read_pairs(path), seed=seed, tokenizer_name=tokenizer_name)
    FILLERS.get(source)  # names the nearest
    raise AssertionError("unreachable")
