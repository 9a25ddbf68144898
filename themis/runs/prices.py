"""What calls cost: prices from a dated table.

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

__all__ = ["FREE", "PRICES_VARIABLE", "Price", "is_paid", "longest_answer", "price_of", "price_table"]

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
