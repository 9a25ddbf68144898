"""The world that all tests of one conversation share: whoever is drawn from it once is not drawn again.

So no test tells anything about another one's people, places or things, and an agent that remembers everything is never led
astray by what it remembers.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from random import Random
from typing import TypeVar

from themis.exceptions import ConfigurationError
from themis.memory.tests.word_lists import FIRST_NAMES, SURNAMES, TOWNS

T = TypeVar("T", bound=Hashable)
# So often something is made anew that is taken already.
_TRIES = 1_000


class World:
    """What is taken already, by pool.

    Draws go by the caller's random number generator, so that a test is the same beside other tests unless one of them has
    taken what it would have drawn.

    >>> world = World()
    >>> first = world.sample(Random("a"), "surname", ["Holt", "Byrne", "Sato"], 2)
    >>> last = world.draw(Random("b"), "surname", ["Holt", "Byrne", "Sato"])
    >>> sorted([*first, last])
    ['Byrne', 'Holt', 'Sato']
    """

    def __init__(self) -> None:
        self._taken: dict[str, set[Hashable]] = {}

    def draw(self, rng: Random, pool: str, things: Sequence[T]) -> T:
        """One of the things that nobody has drawn yet.

        Args:
            rng: Decides which.
            pool: What these things are to the conversation: draws from one pool never meet.
            things: All that there are.

        Raises:
            ConfigurationError: All of them are taken.
        """
        return self.sample(rng, pool, things, 1)[0]

    def sample(self, rng: Random, pool: str, things: Sequence[T], count: int) -> list[T]:
        """So many of the things that nobody has drawn yet, all different.

        Args:
            rng: Decides which.
            pool: What these things are to the conversation.
            things: All that there are.
            count: How many.

        Raises:
            ConfigurationError: There are not so many left.
        """
        taken = self._taken.setdefault(pool, set())
        # Shuffled before the taken ones are left out: so that one that is taken changes no other draw.
        left = [thing for thing in rng.sample(list(things), len(things)) if thing not in taken]
        if len(left) < count:
            raise ConfigurationError(
                f"the tests of this conversation need more of {pool!r} than the {len(things)} that there are; give fewer "
                "dataset_examples"
            )
        taken.update(left[:count])
        return left[:count]

    def look_alikes(self, rng: Random, pool: str, names: Sequence[str], count: int) -> list[str]:
        """So many names that nobody has drawn yet and that begin alike.

        Args:
            rng: Decides which.
            pool: What these names are to the conversation.
            names: All that there are.
            count: How many.

        Raises:
            ConfigurationError: There are not so many left.

        >>> World().look_alikes(Random("a"), "town", ["Dalwick", "Dalhaven", "Fenwick"], 2)
        ['Dalhaven', 'Dalwick']
        """
        taken = self._taken.setdefault(pool, set())
        groups: dict[str, list[str]] = {}
        for name in rng.sample(list(names), len(names)):
            if name not in taken:
                groups.setdefault(name[:3], []).append(name)
        alike = next((group[:count] for group in groups.values() if len(group) >= count), None)
        # Where no so many are left that begin alike, any will do.
        return self.sample(rng, pool, alike or names, count)

    def make(self, rng: Random, pool: str, maker: Callable[[Random], T]) -> T:
        """Something made up that nobody has been given yet.

        Args:
            rng: Given to `maker`.
            pool: What it is to the conversation.
            maker: Makes one; called again if it is taken.

        Raises:
            ConfigurationError: Everything that it makes is taken.
        """
        taken = self._taken.setdefault(pool, set())
        for _ in range(_TRIES):
            if (thing := maker(rng)) not in taken:
                taken.add(thing)
                return thing
        raise ConfigurationError(
            f"the tests of this conversation need more of {pool!r} than there are; give fewer dataset_examples"
        )

    def first_names(self, rng: Random, count: int) -> list[str]:
        """First names that nobody else in the conversation has, as long as there are any; then they begin anew.

        Args:
            rng: Decides which.
            count: How many.
        """
        return self._sample_again(rng, "first name", FIRST_NAMES, count)

    def people(self, rng: Random, count: int) -> list[str]:
        """People, each with a first name and a surname that nobody else has, as long as there are any.

        Args:
            rng: Decides who.
            count: How many.
        """
        surnames = self._sample_again(rng, "surname", SURNAMES, count)
        named = [f"{first} {last}" for first, last in zip(self.first_names(rng, count), surnames, strict=True)]
        # Where names have begun anew, one pair in a hundred thousand would be somebody else's.
        return named if self._take("person", named) else self.people(rng, count)

    def namesakes(self, rng: Random, count: int) -> list[str]:
        """People who share their first name with each other and with nobody else.

        Args:
            rng: Decides who.
            count: How many.
        """
        (first,) = self.first_names(rng, 1)
        named = [f"{first} {last}" for last in self._sample_again(rng, "surname", SURNAMES, count)]
        return named if self._take("person", named) else self.namesakes(rng, count)

    def towns(self, rng: Random, count: int) -> list[str]:
        """Made-up towns that no other test speaks of.

        Args:
            rng: Decides which.
            count: How many.
        """
        return self.sample(rng, "town", TOWNS, count)

    def _sample_again(self, rng: Random, pool: str, names: Sequence[str], count: int) -> list[str]:
        """Names that are not taken; all of them again once too few are left."""
        taken = self._taken.setdefault(pool, set())
        if len(names) - len(taken) < count:
            taken.clear()
        return self.sample(rng, pool, names, count)

    def _take(self, pool: str, things: Sequence[str]) -> bool:
        """Whether none of them was taken; they are now."""
        taken = self._taken.setdefault(pool, set())
        free = taken.isdisjoint(things)
        taken.update(things)
        return free
