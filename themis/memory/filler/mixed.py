"""Filler of many kinds: talk, documents, e-mails, code, tables, quizzes, and news in seven more languages.

Every kind is a grammar in a file of its own. It speaks of invented people and societies that no test uses, and never of
whoever talks to the agent. A message is a frame (an opening, a line to find, a question, the reply) around as many items as
its size leaves room for.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from functools import cache

from themis.core.codec import digest
from themis.core.tokens import DEFAULT_TOKENIZER, tokenizer
from themis.memory.actions import FillerMessage
from themis.memory.filler.facts import draw_pair
from themis.memory.filler.grammar import Draw, Grammar

# How many of 28 messages are of each kind.
KINDS = {
    "talk": 8,
    "documents": 3,
    "mails": 3,
    "tables": 2,
    "quiz": 2,
    **dict.fromkeys(("python", "javascript", "sql"), 1),
    **dict.fromkeys(("de", "fr", "es", "it", "pt", "ru", "ja"), 1),
}
_SMALLEST_KIND = "talk"
# Kinds and frames tried for a message that is too small for the first ones.
_ATTEMPTS = 24
# Short lines drawn at most to meet a size exactly.
_CANDIDATES = 150
# What a grammar leaves for short lines that does not say otherwise.
_CLOSING_TOKENS = 30
# Items in a row that are too large for what is left, before short lines take over.
_MISFITS = 2
# One of so many items ends a paragraph, where sentences follow each other on one line.
_PARAGRAPH_ITEMS = 5
# But none ends where little more follows.
_PARAGRAPH_TOKENS = 180


@dataclass(slots=True)
class Draft:
    """A message in the making: what it is made of, and the tokens that are left for more."""

    reply: str
    left: int
    pieces: list[str] = field(default_factory=list)
    items: list[str] = field(default_factory=list)
    # Whether the next piece begins a line.
    at_start: bool = True

    def add(self, text: str, tokens: int) -> None:
        self.pieces.append(text)
        self.left -= tokens
        self.at_start = text.endswith("\n")


class Mixed:
    """Talk, documents, e-mails, code, tables and quizzes in eight languages, each message with a short answer."""

    def __init__(self, *, seed: int = 0, tokenizer_name: str = DEFAULT_TOKENIZER) -> None:
        self._seed = seed
        self._count = tokenizer(tokenizer_name)
        self._kinds = [name for name, share in KINDS.items() for _ in range(share)]
        sources = (_load(kind).grammar.source for kind in KINDS)
        # The grammars, and for how they are used one message of each kind.
        samples = (self._compose(kind, random.Random(f"{seed}:{kind}").random, 300) for kind in KINDS)
        self.fingerprint = digest(str(seed), *sources, *("".join(made.pieces) for made in samples))

    def make(self, number: int, tokens: int) -> FillerMessage:
        made = self.compose(number, tokens)
        return FillerMessage("".join(made.pieces), made.reply)

    def compose(self, number: int, tokens: int) -> Draft:
        """Message `number` in its parts."""
        draw = random.Random(f"{self._seed}:{number}").random
        best: Draft | None = None
        for attempt in range(_ATTEMPTS):
            kind = self._kinds[int(draw() * len(self._kinds))] if attempt < 2 else _SMALLEST_KIND
            made = self._compose(kind, draw, tokens)
            if made.left == 0:
                return made
            if best is None or abs(made.left) < abs(best.left):
                best = made
        assert best is not None
        return best

    def _compose(self, kind: str, draw: Draw, tokens: int) -> Draft:
        """A message of one kind; `left` is not 0 where it cannot have that size."""
        source, count = _load(kind), self._count
        opening, key, question, reply = source.draw_frame(draw)
        question = f" {question}" if question and source.joins == " " else question
        made = Draft(reply, tokens - count(reply) - (count(question) if question else 0))
        if opening:
            made.add(opening, count(opening))
        # Before which item the line to find stands.
        place = int(draw() * max(1, made.left // 60)) if key else -1
        reserve = source.closing_tokens + (count(f" {key}") if key else 0)
        misfits = 0
        while misfits < _MISFITS:
            if len(made.items) == place:
                self._add(made, source, key)
                place, reserve = -1, source.closing_tokens
            ends = draw() * _PARAGRAPH_ITEMS < 1 and made.left > _PARAGRAPH_TOKENS
            text = source.join(source.draw_item(draw), at_start=made.at_start, ends_paragraph=ends)
            tokens = count(text)
            if tokens + reserve > made.left:
                misfits += 1
                continue
            made.items.append(text)
            made.add(text, tokens)
        if place >= 0:
            self._add(made, source, key)
        if made.at_start and source.joins == " ":
            self._add(made, source, source.draw_short(draw))
        for text in self._fit(made.left, source, draw):
            made.items.append(text)
            made.add(text, count(text))
        if question:
            made.pieces.append(question)
        return made

    def _add(self, made: Draft, source: Source, text: str) -> None:
        text = source.join(text, at_start=made.at_start)
        made.items.append(text)
        made.add(text, self._count(text))

    def _fit(self, left: int, source: Source, draw: Draw) -> tuple[str, ...]:
        """Short lines that take up exactly what is left; none where none do."""
        # For every amount that lines drawn so far make up: which.
        made_up: dict[int, tuple[str, ...]] = {0: ()}
        for _ in range(_CANDIDATES):
            if left in made_up:
                return made_up[left]
            text = source.join(source.draw_short(draw), at_start=False)
            size = self._count(text)
            for amount, texts in list(made_up.items()):
                if amount + size <= left and text not in texts:
                    made_up.setdefault(amount + size, (*texts, text))
        return ()


@dataclass(frozen=True)
class Source:
    """One kind's grammar, and what stands between its items: a space, a blank line, or nothing but their own line ends."""

    grammar: Grammar
    joins: str
    # What is left at least for short lines, from which any size that is larger can be made up.
    closing_tokens: int

    def draw_frame(self, draw: Draw) -> tuple[str, str, str, str]:
        return self.grammar.draw_frame(draw)

    def draw_item(self, draw: Draw) -> str:
        return self.grammar["item"].draw(draw)

    def draw_short(self, draw: Draw) -> str:
        return self.grammar["short"].draw(draw)

    def join(self, text: str, *, at_start: bool, ends_paragraph: bool = False) -> str:
        """A text as it follows another one. No token spans what is between them, so each is counted by itself."""
        if self.joins == " ":
            return ("" if at_start else " ") + text + ("\n\n" if ends_paragraph else "")
        return text.rstrip("\n") + "\n\n" if self.joins == "\n\n" else text


class Quiz(Source):
    """Questions with computed answers; the last question is the agent's to answer."""

    def draw_frame(self, draw: Draw) -> tuple[str, str, str, str]:
        question, answer = draw_pair(draw)
        return self.grammar.draw_frame(draw, {"QUESTION": question, "ANSWER": answer})

    def draw_item(self, draw: Draw) -> str:
        question, answer = draw_pair(draw)
        return f"Q: {question} A: {answer}\n"

    draw_short = draw_item


_JOINS = {"space": " ", "blank": "\n\n", "own": ""}


@cache
def _load(kind: str) -> Source:
    grammar = Grammar(kind, _shared(), given=("QUESTION", "ANSWER") if kind == "quiz" else ())
    made = Quiz if kind == "quiz" else Source
    return made(grammar, _JOINS[grammar.settings["join"]], int(grammar.settings.get("closing", _CLOSING_TOKENS)))


@cache
def _shared() -> Grammar:
    return Grammar("shared")
