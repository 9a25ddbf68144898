"""Facts as people tell them: inside talk that grows with the room there is for it."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from themis.memory.small_talk import wrap
from themis.memory.world import World

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


# Names of people in stories, of whom a conversation may have hundreds.
_NAMES = (
    "Ad Alb Bel Bor Cal Cor Dar Del Elb Fal Far Gor Halv Ild Jor Kal Kor Land Lor Mald Mar Nev Nor Orv Pel Quin Rald Ror Sal Sel "
    "Tald Tor Ulm Vald Vor Wil Yor Zan",
    "a e i o",
    "bert dan dra dric la lin mir na nor ric ron sa tha thew vik wen",
)


def name_characters(world: World, rng: Random, count: int) -> list[str]:
    """Made-up first names of people in stories, which nobody else in the conversation has.

    Args:
        world: Who is taken.
        rng: Decides which.
        count: How many.

    >>> len(set(name_characters(World(), Random("a"), 500)))
    500
    """

    def make(rng: Random) -> str:
        return "".join(rng.choice(syllables.split()) for syllables in _NAMES)

    return [world.make(rng, "character", make) for _ in range(count)]
