"""What calls cost: prices from a dated table, and a budget that is never passed.

An unknown price is unknown, not zero; a local model costs nothing.
"""

from __future__ import annotations

import json
import os
import re
import threading
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from themis.exceptions import ConfigurationError

__all__ = ["FREE", "Budget", "Price", "is_paid", "longest_answer", "price_of", "price_table"]

PRICES_VARIABLE = "THEMIS_PRICES"
# Dated snapshots of a model cost what the model costs; anything else must match to the letter.
_SNAPSHOT = re.compile(r"(-\d{4}-\d{2}-\d{2}|-\d{8}|-\d{4}|-latest|@\d{8})$")


@dataclass(frozen=True)
class Price:
    """US dollars per million tokens."""

    input_usd: float
    output_usd: float

    def of(self, prompt_tokens: int, completion_tokens: int) -> float:
        return (prompt_tokens * self.input_usd + completion_tokens * self.output_usd) / 1_000_000


FREE = Price(0.0, 0.0)
# How long an answer is taken to be at most where nobody limits it.
_UNLIMITED_TOKENS = 4_096


def is_paid(price: Price | None) -> bool:
    """Whether tokens are known to cost something, and so must be counted where the model does not tell them."""
    return price is not None and price != FREE


def longest_answer(max_tokens: int) -> int:
    """The most tokens to reckon with; a negative limit is none."""
    return max_tokens if max_tokens >= 0 else _UNLIMITED_TOKENS


def price_of(model: str, *, is_local: bool = False) -> Price | None:
    """The price of a model id, or None where it is not known."""
    if is_local:
        return FREE
    models = price_table()["models"]
    bare = model.rsplit("/", 1)[-1]
    for candidate in (model, bare, _SNAPSHOT.sub("", bare)):
        if candidate in models:
            return Price(*models[candidate])
    return None


def price_table() -> dict[str, Any]:
    """The packaged table with the user's own (a file of the same shape named by THEMIS_PRICES) on top."""
    return _table(os.environ.get(PRICES_VARIABLE, ""))


@lru_cache(maxsize=4)
def _table(override: str) -> dict[str, Any]:
    table: dict[str, Any] = json.loads(Path(__file__).with_name("prices.json").read_text(encoding="utf-8"))
    if override:
        try:
            own = json.loads(Path(override).read_text(encoding="utf-8"))
            prices = {str(name): [float(value) for value in pair] for name, pair in own["models"].items()}
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise ConfigurationError(
                f"{PRICES_VARIABLE}={override!r} is not a price file ({error}); expected "
                '{"version": "...", "models": {"name": [input, output]}} in US dollars per million tokens'
            ) from error
        table["models"].update(prices)
        table["version"] = f"{table['version']}+{own.get('version', Path(override).name)}"
    return table


class Budget:
    """Reserves the most that each call could cost before it starts, so that the sum does not pass the cap.

    A provider may count more prompt tokens than we do (its own system prompt, another tokenizer): the largest ratio seen
    is applied to every later reservation.
    """

    def __init__(self, cap_usd: float, spent_usd: float, price: Price, most_completion_tokens: int) -> None:
        self.cap_usd = cap_usd
        self.spent_usd = spent_usd
        self.exhausted = False
        self._price = price
        self._completion = most_completion_tokens
        self._lock = threading.Lock()
        self._reserved_usd = 0.0
        # Of calls of the judged model: the prompt's tokens as we count them, and what is set aside.
        self._jobs: dict[int, tuple[int, float]] = {}
        self._ratio = 1.0

    def admit(self, job: object, prompt_tokens: int) -> bool:
        _, replaced = self._jobs.pop(id(job), (0, 0.0))  # a retry replaces its own reservation
        self.spend(0.0, reserved_usd=replaced)
        most = self._price.of(round(prompt_tokens * self._ratio), self._completion)
        self.exhausted = not self.reserve(most)
        if not self.exhausted:
            self._jobs[id(job)] = (prompt_tokens, most)
        return not self.exhausted

    def settle(self, job: object, prompt_tokens: int, completion_tokens: int) -> None:
        counted, reserved = self._jobs.pop(id(job), (0, 0.0))
        self._ratio = max(self._ratio, prompt_tokens / max(1, counted))
        self.spend(self._price.of(prompt_tokens, completion_tokens), reserved_usd=reserved)

    def forfeit(self, job: object) -> None:
        """A call whose answer nobody saw is taken to have cost what was set aside for it."""
        _, reserved = self._jobs.pop(id(job), (0, 0.0))
        self.spend(reserved, reserved_usd=reserved)

    def reserve(self, most_usd: float) -> bool:
        """Sets this much aside for one call, if there is as much."""
        with self._lock:
            fits = self.spent_usd + self._reserved_usd + most_usd <= self.cap_usd + 1e-12
            if fits:
                self._reserved_usd += most_usd
            return fits

    def spend(self, usd: float, *, reserved_usd: float) -> None:
        """What a call cost takes the place of what was set aside for it."""
        with self._lock:
            self._reserved_usd -= reserved_usd
            self.spent_usd += usd
