"""One thing said in many ways, and read back from what was said.

A phrasing is a set of sentences with slots (`{colour}`) and alternatives (`[these days|now|]`, which may be nested). A test
says one of them at random; the honest reader of the test finds it again in whatever was said around it. Both sides use the
same sentences, so a test never says what its reader cannot read.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator, Mapping
from random import Random

from themis.exceptions import ConfigurationError

# What a slot may hold unless the phrasing says otherwise: part of a sentence.
_ANYTHING = r"[^.!?;:\n]+?"
# A sentence begins where a text, a line or a quotation does, or after the end of another; and ends before the next.
_BEGINNING, _END = r"(?:(?<![^\s“\"(])(?<![^.!?:…”\")\]\s][^\S\n]))", r"(?![^\s”\")])"
_TOKEN = re.compile(r"\[|\]|\||\{(\w+)\}|[^\[\]|{}]+")


class Phrasing:
    """Sentences that say the same.

    Args:
        *sentences: Whole sentences with slots and alternatives.
        **slots: For a slot, a regular expression of what it may hold.

    >>> liking = Phrasing("[These days |]my favourite colour is {colour}.", "No colour beats {colour} for me.")
    >>> liking.say(Random("b"), colour="teal")
    'These days my favourite colour is teal.'
    >>> liking.read("It is late. No colour beats teal for me. Anyway, good night!")
    {'colour': 'teal'}
    >>> liking.matches("My favourite dish is soup."), liking.forms
    (False, 3)
    """

    def __init__(self, *sentences: str, **slots: str) -> None:
        self._trees = [_parse(sentence) for sentence in sentences]
        self._slots = slots

    @functools.cached_property
    def _pattern(self) -> re.Pattern[str]:
        """Made when something is read: a test that only says it need not wait for that."""
        every = (_to_pattern(tree, self._slots, place) for place, tree in enumerate(self._trees))
        # Where a sentence begins is looked for once for all of them.
        return re.compile(f"{_BEGINNING}(?:{'|'.join(every)}){_END}", re.IGNORECASE)

    @property
    def forms(self) -> int:
        """In how many ways it can be said."""
        return sum(map(_count_forms, self._trees))

    def say(self, rng: Random, **values: object) -> str:
        """One of the sentences, with a capital at its beginning.

        Args:
            rng: Decides which.
            **values: What the slots hold.
        """
        return self.render(rng.randrange(len(self._trees)), rng, **values)

    def render(self, sentence: int, rng: Random, **values: object) -> str:
        """The same for a given sentence.

        Args:
            sentence: Its place among the phrasing's sentences.
            rng: Decides between alternatives.
            **values: What the slots hold.
        """
        said = " ".join("".join(_write(self._trees[sentence], rng, values)).split())
        return said[0].upper() + said[1:]

    def __len__(self) -> int:
        return len(self._trees)

    def read(self, text: str) -> dict[str, str] | None:
        """What the slots hold in the first of these sentences in a text; None where there is none.

        Args:
            text: Anything that was said.
        """
        return next(self.read_all(text), None)

    def matches(self, text: str) -> bool:
        """Whether one of these sentences stands in a text; for sentences without slots.

        Args:
            text: Anything that was said.
        """
        return self.read(text) is not None

    def read_all(self, text: str) -> Iterator[dict[str, str]]:
        """The same for every one of these sentences in a text, in order.

        Args:
            text: Anything that was said.
        """
        for match in self._pattern.finditer(text):
            found: dict[str, str] = {}
            # A slot has a group for each place that it stands in; it holds the same everywhere.
            filled = [
                (group.partition("__")[0], value) for group, value in match.groupdict().items() if value is not None
            ]
            if all(found.setdefault(slot, value).casefold() == value.casefold() for slot, value in filled):
                yield found


def any_of(words: Iterable[str]) -> str:
    """The regular expression of one of several words, for a slot.

    Args:
        words: All that it may hold.

    >>> any_of(["red", "red wine"])
    'red wine|red'
    """
    # The longer of two that begin alike must be tried first.
    return "|".join(re.escape(word).replace(r"\ ", " ") for word in sorted(words, key=lambda word: (-len(word), word)))


# A sentence as a tree: texts, slots (a tuple with the name), alternatives (a list of such lists).
_Node = str | tuple[str] | list[list["_Node"]]


def _parse(sentence: str) -> list[_Node]:
    levels: list[list[list[_Node]]] = [[[]]]
    for token in _TOKEN.finditer(sentence):
        if token[0] == "[":
            levels.append([[]])
        elif token[0] == "|" and len(levels) > 1:
            levels[-1].append([])
        elif token[0] == "]" and len(levels) > 1:
            closed = levels.pop()
            levels[-1][-1].append(closed)
        elif token[1]:
            levels[-1][-1].append((token[1],))
        else:
            levels[-1][-1].append(token[0])
    if len(levels) != 1:
        raise ConfigurationError(f"a bracket is not closed in the phrasing {sentence!r}")
    return levels[0][0]


def _write(nodes: list[_Node], rng: Random, values: Mapping[str, object]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, str):
            yield node
        elif isinstance(node, tuple):
            yield str(values[node[0]])
        else:
            yield from _write(node[rng.randrange(len(node))], rng, values)


def _to_pattern(nodes: list[_Node], slots: Mapping[str, str], sentence: int) -> str:
    parts = []

    def convert(nodes: list[_Node]) -> None:
        for node in nodes:
            if isinstance(node, str):
                # However many blanks an alternative that is left out leaves behind.
                parts.append(r"\s*".join(re.escape(word) for word in re.split(r"\s+", node)))
            elif isinstance(node, tuple):
                parts.append(f"(?P<{node[0]}__{sentence}_{len(parts)}>{slots.get(node[0], _ANYTHING)})")
            else:
                parts.append("(?:")
                for place, choice in enumerate(node):
                    if place:
                        parts.append("|")
                    convert(choice)
                parts.append(")")

    convert(nodes)
    return "".join(parts)


def _count_forms(nodes: list[_Node]) -> int:
    forms = 1
    for node in nodes:
        if isinstance(node, list):
            forms *= sum(map(_count_forms, node))
    return forms
