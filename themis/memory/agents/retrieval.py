"""A memory of its own making: past exchanges are found again by their words and put beside the recent ones.

The honest baseline to beat. Words are weighed by BM25; where the package wordllama is installed, static embeddings find what is
said in other words. Without a model the agent answers a question with the sentence that fits it best, so it works anywhere; it
cannot draw conclusions, follow instructions or keep to a format.
"""

from __future__ import annotations

import functools
import heapq
import math
import re
from collections import Counter
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Protocol

from themis.memory.agents.agent import Agent, AgentSettings, Reply
from themis.memory.agents.chat import (
    DEFAULT_MAX_PROMPT_TOKENS,
    SYSTEM_PROMPT,
    Exchange,
    History,
    format_elapsed,
    format_prompt,
)
from themis.memory.models import ChatModel

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_WORD = re.compile(r"\w+")
# Words that say nothing about what a passage is about.
_SILENT_WORDS = """
a an and are as at be but by did do does for from had has have how i in is it its me my of on or our so that the their them
then there they this to was we were what when where which who why will with you your
"""
_STOP = frozenset(_SILENT_WORDS.split())
_SATURATION, _LENGTH_WEIGHT = 1.2, 0.75
_PASSAGES = 12
# Of the prompt: for what was found again; the rest is for what was said last.
_FOUND_SHARE = 0.5
_LONGEST_PASSAGE = 1_200
# A sentence with this part of the best one's score may be what is asked for.
_NEARLY_AS_GOOD = 0.6
# A sentence that has less than this part of what a question is about does not answer it.
_ENOUGH_IN_COMMON = 0.4
_SENTENCE_END = re.compile(r"(?<=[.!?])[\"'”’)]*\s+|\n+")


class PassageIndex:
    """Passages by their words. Adding and searching cost what the new passage or the query's words do."""

    def __init__(self) -> None:
        self.passages: list[Exchange] = []
        self._postings: dict[str, list[tuple[int, int]]] = {}
        self._lengths: list[int] = []
        self._total = 0

    def add(self, exchange: Exchange) -> None:
        number = len(self.passages)
        words = Counter(_words(f"{exchange.message} {exchange.reply}"))
        for word, count in words.items():
            self._postings.setdefault(word, []).append((number, count))
        self.passages.append(exchange)
        self._lengths.append(sum(words.values()))
        self._total += self._lengths[-1]

    def search(self, query: str, most: int) -> dict[int, float]:
        """The passages with the highest BM25 scores."""
        if not self.passages:
            return {}
        mean = max(1.0, self._total / len(self.passages))
        scores: dict[int, float] = {}
        for word in set(_words(query)):
            postings = self._postings.get(word, ())
            rarity = self._rarity(len(postings))
            for number, count in postings:
                norm = _SATURATION * (1 - _LENGTH_WEIGHT + _LENGTH_WEIGHT * self._lengths[number] / mean)
                scores[number] = scores.get(number, 0.0) + rarity * count * (_SATURATION + 1) / (count + norm)
        best = heapq.nlargest(most, scores.items(), key=lambda item: (item[1], item[0]))
        return dict(best)

    def in_common(self, query: str, number: int) -> float:
        """The part of a query's words, weighed by how rare they are, that a passage has."""
        words = set(_words(query))
        weights = {word: self._rarity(len(self._postings.get(word, ()))) for word in words}
        passage = self.passages[number]
        there = words & set(_words(f"{passage.message} {passage.reply}"))
        return sum(weights[word] for word in there) / (sum(weights.values()) or 1.0)

    def _rarity(self, passages_having: int) -> float:
        return math.log(1 + (len(self.passages) - passages_having + 0.5) / (passages_having + 0.5))


class RetrievalAgent(Agent):
    """Searches what was said before: `retrieval` replies with what it finds, `retrieval(MODEL)` lets a model read it."""

    reads_clock: ClassVar[bool] = False

    def __init__(
        self,
        argument: str,
        settings: AgentSettings,
        *,
        system_prompt: str = SYSTEM_PROMPT,
        temperature: float = 0.0,
        max_tokens: int = 1_024,
        embeddings: bool = True,
        **provider_options: object,
    ) -> None:
        self.name = f"retrieval({argument})" if argument else "retrieval"
        self._model: ChatModel | None = None
        if argument:
            self._model = ChatModel(
                argument, provider_options, temperature=temperature, max_tokens=max_tokens, is_local=settings.is_local
            )
        max_prompt_tokens = settings.max_prompt_tokens or DEFAULT_MAX_PROMPT_TOKENS
        self._system_prompt = system_prompt
        self._found_tokens = int(max_prompt_tokens * _FOUND_SHARE)
        self._recent = History(max_prompt_tokens - self._found_tokens, tokenizer_name=settings.tokenizer)
        self._max_prompt_tokens = max_prompt_tokens
        self._index = PassageIndex()
        # What it may quote: without a model only.
        self._sentences = PassageIndex()
        embedder = _embedder() if embeddings else None
        self._vectors = None if embedder is None else _Vectors(embedder)

    def reply(self, message: str, *, turn: int, now: datetime, presupplied: str | None = None) -> Reply:
        if presupplied is not None:
            self.observe(message, presupplied, turn=turn, now=now)
            return Reply(presupplied)
        if self._model is None:
            said = Reply(self._quote(message))
        else:
            self._recent.evict_until_fits(message)
            said = self._model.complete(self._prompt(message, self.find(message), now))
        self.observe(message, said.text, turn=turn, now=now)
        return said

    def observe(self, message: str, reply: str, *, turn: int, now: datetime) -> None:
        exchange = self._recent.add(message, reply, turn=turn, now=now)
        self._index.add(exchange)
        if self._vectors is not None:
            self._vectors.add(message)
        if self._model is None and not _is_question(message):
            for sentence in _SENTENCE_END.split(message):
                if sentence.strip() and len(sentence) <= _LONGEST_PASSAGE:
                    self._sentences.add(replace(exchange, message=sentence.strip(), reply=""))

    def reset(self) -> None:
        self._recent.clear()
        self._index, self._sentences = PassageIndex(), PassageIndex()
        if self._vectors is not None:
            self._vectors.clear()

    def close(self) -> None:
        if self._model is not None:
            self._model.close()

    def most_cost_usd(self, message: str) -> float | None:
        if self._model is None:
            return 0.0
        return self._model.most_of(self._max_prompt_tokens)

    def find(self, message: str) -> list[Exchange]:
        """Past exchanges that have to do with a message, the best first."""
        ranked = list(self._index.search(message, 4 * _PASSAGES))
        if self._vectors is None:
            chosen = ranked[:_PASSAGES]
        else:
            # Reciprocal ranks put two rankings together whose scores cannot be compared.
            merged: dict[int, float] = {}
            for ranking in (ranked, self._vectors.search(message, 4 * _PASSAGES)):
                for place, number in enumerate(ranking):
                    merged[number] = merged.get(number, 0.0) + 1 / (60 + place)
            chosen = sorted(merged, key=lambda number: (-merged[number], -number))[:_PASSAGES]
        return [self._index.passages[number] for number in chosen]

    def _quote(self, message: str) -> str:
        """The latest of the sentences that fit a question best: what was said later has replaced what was said before."""
        if not _is_question(message):
            return "Noted."
        # How to answer is said around the question, and is not what is asked for.
        asked = " ".join(part for part in _SENTENCE_END.split(message) if "?" in part) or message
        known = self._sentences
        scores = known.search(asked, 4 * _PASSAGES)
        enough = _NEARLY_AS_GOOD * max(scores.values(), default=0.0)
        fitting = [
            number
            for number, score in scores.items()
            if score >= enough and known.in_common(asked, number) >= _ENOUGH_IN_COMMON
        ]
        return f"You told me: {known.passages[max(fitting)].message}" if fitting else "You have not told me."

    def _prompt(self, message: str, found: list[Exchange], now: datetime) -> list[dict[str, str]]:
        recent = {exchange.turn for exchange in self._recent}
        room, lines = self._found_tokens, list[tuple[int, str]]()
        for exchange in found:
            if exchange.turn in recent or exchange.tokens > room:
                continue
            room -= exchange.tokens
            ago = format_elapsed(now - exchange.now)
            lines.append((exchange.turn, f"[{ago}] User: {exchange.message}\nYou: {exchange.reply}"))
        remembered = "\n".join(line for _, line in sorted(lines))
        system = self._system_prompt
        if remembered:
            system = f"{system}\nWhat you remember of earlier in the conversation, oldest first:\n{remembered}"
        return format_prompt(system, [(exchange.message, exchange.reply) for exchange in self._recent], message)


def _is_question(message: str) -> bool:
    return "?" in message


def _words(text: str) -> list[str]:
    return [_stem(word) for word in _WORD.findall(text.lower()) if word not in _STOP]


def _stem(word: str) -> str:
    """Plural and singular, and the commonest endings of verbs, as one word."""
    for ending in ("ing", "ies", "ed", "es", "s", "e"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)]
    return word


# --- embeddings -------------------------------------------------------------------------------------------------------


class _Vectors:
    """Embeddings of passages in one growing array."""

    def __init__(self, embedder: _Embedder) -> None:
        self._embedder = embedder
        self._rows: NDArray[np.float32] | None = None
        self._count = 0

    def _embed(self, text: str) -> NDArray[np.float32]:
        vector: NDArray[np.float32] = self._embedder.embed([text[:_LONGEST_PASSAGE]], norm=True)[0]
        return vector

    def add(self, text: str) -> None:
        import numpy as np

        vector = self._embed(text)
        rows = np.zeros((64, vector.shape[0]), dtype=np.float32) if self._rows is None else self._rows
        if self._count == len(rows):
            # Doubling keeps the cost of growing constant per passage.
            rows = np.concatenate([rows, np.zeros_like(rows)])
        rows[self._count] = vector
        self._rows = rows
        self._count += 1

    def clear(self) -> None:
        self._rows, self._count = None, 0

    def search(self, query: str, most: int) -> list[int]:
        import numpy as np

        if self._rows is None:
            return []
        similar = self._rows[: self._count] @ self._embed(query).astype(np.float32)
        order: list[int] = np.argsort(-similar, kind="stable")[:most].tolist()
        return order


class _Embedder(Protocol):
    def embed(self, texts: list[str], *, norm: bool) -> NDArray[np.float32]: ...


@functools.cache
def _embedder() -> _Embedder | None:
    """The static embeddings inside the wordllama wheel, or None where it is not installed."""
    try:
        import wordllama
    except ImportError:
        return None
    embedder: _Embedder = wordllama.WordLlama.load(cache_dir=Path(wordllama.__file__).parent, disable_download=True)
    return embedder
