"""Facts as people tell them: inside talk that grows with the room there is for it."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from themis.memory.small_talk import wrap

# From so many tokens of span on a fact is told among so many sentences of small talk, before it and after it.
_ROOM_FOR_TALK = ((4_000, 1), (30_000, 2), (200_000, 3))


def tell(rng: Random, sentence: str, span_tokens: int) -> str:
    """A sentence as part of a message: alone where the span is short, in the middle of small talk where it is not.

    Args:
        rng: Decides what is said around it.
        sentence: What matters.
        span_tokens: The memory span of the test.

    >>> tell(Random("c"), "My shoe size is 43.", 2_000)
    'My shoe size is 43.'
    """
    talk = max((sentences for least, sentences in _ROOM_FOR_TALK if span_tokens >= least), default=0)
    return wrap(rng, sentence, before=talk, after=talk)


def join_names(names: Sequence[str]) -> str:
    """Names as a sentence lists them.

    Args:
        names: At least one.

    >>> join_names(["Ivo", "Agnes", "Olaf"])
    'Ivo, Agnes and Olaf'
    """
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
