"""What calls cost: prices from a dated table, and a budget that is never passed.

An unknown price is unknown, not zero; a local model costs nothing.
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from themis.exceptions import ConfigurationError

__all__ = ["FREE", "Budget", "Price", "price_of", "price_table"]

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
    """Reserves the most that each call could cost before it starts, so that the sum never passes the cap."""

    def __init__(self, cap_usd: float, spent_usd: float, price: Price, most_completion_tokens: int) -> None:
        self.cap_usd = cap_usd
        self.spent_usd = spent_usd
        self._price = price
        self._completion = most_completion_tokens
        self._reserved: dict[int, float] = {}
        self.exhausted = False

    def admit(self, job: object, prompt_tokens: int) -> bool:
        most = self._price.of(prompt_tokens, self._completion)
        if self.spent_usd + sum(self._reserved.values()) + most > self.cap_usd + 1e-12:
            self.exhausted = True
            return False
        self._reserved[id(job)] = most
        self.exhausted = False
        return True

    def settle(self, job: object, cost_usd: float) -> None:
        self._reserved.pop(id(job), None)
        self.spent_usd += cost_usd
