"""What calls cost, and a budget that is never passed: the most that a call could cost is set aside before it is made.

A price is looked for in the user's own file (THEMIS_PRICES), then in the table beside this module, then in the package
genai-prices where that is installed. An unknown price is unknown, not zero; a local model costs nothing.
"""

from __future__ import annotations

import json
import math
import os
import re
import threading
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import NoReturn, TypedDict

from themis.exceptions import ConfigurationError

PRICES_VARIABLE = "THEMIS_PRICES"
# Dated snapshots of a model cost what the model costs; anything else must match to the letter.
_SNAPSHOT = re.compile(r"(-\d{4}-\d{2}-\d{2}|-\d{8}|-\d{4}|-latest|@\d{8})$")
# How long an answer is taken to be at most where nobody limits it.
_UNLIMITED_TOKENS = 4_096
# The providers whose prices genai-prices knows under the same names. Of a server of the user's own it cannot know any,
# though the model may have a name that others sell.
_SOLD_BY = {
    *("anthropic", "deepseek", "fireworks", "gemini", "google", "groq", "litellm", "mistral", "openai", "openrouter"),
    *("together", "xai"),
}


@dataclass(frozen=True)
class Price:
    """US dollars per million tokens.

    Args:
        input_usd: For a million tokens of prompts.
        output_usd: For a million tokens of answers.
        source: Where the price is from, with its date or version, for people.

    >>> Price(2.5, 10.0).of(prompt_tokens=1_000, completion_tokens=100)
    0.0035
    """

    input_usd: float
    output_usd: float
    source: str = field(default="", compare=False)

    def of(self, prompt_tokens: int, completion_tokens: int) -> float:
        return (prompt_tokens * self.input_usd + completion_tokens * self.output_usd) / 1_000_000


FREE = Price(0.0, 0.0)


class PriceTable(TypedDict):
    """Prices by model; `version` and `updated_at` say of when."""

    version: str
    updated_at: str
    models: dict[str, list[float]]


def is_paid(price: Price | None) -> bool:
    """Whether tokens are known to cost something, and so must be counted where the model does not tell them."""
    return price is not None and price != FREE


def max_completion_tokens(max_tokens: int) -> int:
    """The most tokens of an answer to reckon with; a negative limit is none."""
    return max_tokens if max_tokens >= 0 else _UNLIMITED_TOKENS


def price_of(model: str, provider: str = "", *, is_local: bool = False) -> Price | None:
    """The price of a model, or None where it is not known.

    Args:
        model: The model's id at its provider, such as `gpt-4o-2024-08-06` or `meta-llama/llama-3.3-70b-instruct`.
        provider: Who sells it; without one only the tables are asked.
        is_local: Nobody is paid.

    Raises:
        ConfigurationError: The file named by THEMIS_PRICES is not a price file.

    >>> price_of("gpt-4o", "openai")
    Price(input_usd=2.5, output_usd=10.0, source='prices of 2025-08-15')
    """
    if is_local:
        return FREE
    bare = model.rsplit("/", 1)[-1]
    own = os.environ.get(PRICES_VARIABLE, "")
    tables = [_read_own(own), _read_packaged()] if own else [_read_packaged()]
    for table in tables:
        for candidate in (model, bare, _SNAPSHOT.sub("", bare)):
            if candidate in table["models"]:
                prompt, answer = table["models"][candidate]
                return Price(prompt, answer, source=f"prices of {table['updated_at']}")
    return _find_in_package(model, provider) if provider in _SOLD_BY else None


def price_table() -> PriceTable:
    """The packaged table with the user's own on top."""
    packaged = _read_packaged()
    if not (path := os.environ.get(PRICES_VARIABLE, "")):
        return packaged
    own = _read_own(path)
    return {
        "version": f"{packaged['version']}+{own['version']}",
        "updated_at": packaged["updated_at"],
        "models": {**packaged["models"], **own["models"]},
    }


@lru_cache(maxsize=1)
def _read_packaged() -> PriceTable:
    table: PriceTable = json.loads(Path(__file__).with_name("prices.json").read_text(encoding="utf-8"))
    return table


@lru_cache(maxsize=4)
def _read_own(path: str) -> PriceTable:
    try:
        own = json.loads(Path(path).read_text(encoding="utf-8"))
        models = {str(name): [float(value) for value in pair] for name, pair in own["models"].items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ConfigurationError(
            f"{PRICES_VARIABLE}={path!r} is not a price file ({error}); expected "
            '{"version": "...", "models": {"name": [input, output]}} in US dollars per million tokens'
        ) from error
    named = str(own.get("version", Path(path).name))
    return {"version": named, "updated_at": str(own.get("updated_at", named)), "models": models}


@lru_cache(maxsize=256)
def _find_in_package(model: str, provider: str) -> Price | None:
    """From the data inside genai-prices, as of now: without its tiers for very long prompts and for the cache."""
    try:
        import genai_prices
    except ImportError:  # in the extra "prices"
        return None
    tokens = 1_000
    try:
        found = genai_prices.calc_price(
            genai_prices.Usage(input_tokens=tokens, output_tokens=tokens), model, provider_id=provider
        )
    except (LookupError, ValueError):
        return None
    per_million = 1_000_000 / tokens
    return Price(
        float(found.input_price) * per_million,
        float(found.output_price) * per_million,
        source=f"genai-prices {genai_prices.__version__}",
    )


# --- budgets -----------------------------------------------------------------------------------------------------------


_NAME_THE_PRICE = f"add it to a price file and name that file in {PRICES_VARIABLE}"
_ROUNDING_USD = 1e-12


def refuse_unknown_cost(of: str, what_to_do: str = _NAME_THE_PRICE) -> NoReturn:
    """For whoever would be called under a budget at a price that is not known: such a budget could not bind."""
    raise ConfigurationError(f"a budget needs the price of {of}, which is not known; {what_to_do}")


class Reservation:
    """What is set aside for one call; `cost_usd` is what the call says that it cost, all of it if it says nothing."""

    def __init__(self, most_usd: float) -> None:
        self.cost_usd: float | None = most_usd


class Budget:
    """What a run may spend in all, and has spent. Calls of many threads may be under way at once."""

    def __init__(self, cap_usd: float | None, spent_usd: float = 0.0) -> None:
        self.cap_usd = math.inf if cap_usd is None else cap_usd
        self.spent_usd = spent_usd
        # Calls that were given up because too little was left.
        self.given_up = 0
        self._lock = threading.Lock()
        self._reserved_usd = 0.0
        self._refused_usd = 0.0

    @property
    def is_capped(self) -> bool:
        return math.isfinite(self.cap_usd)

    def reserve(self, most_usd: float) -> bool:
        """Sets this much aside for one call, if there is as much."""
        with self._lock:
            fits = self.spent_usd + self._reserved_usd + most_usd <= self.cap_usd + _ROUNDING_USD
            if fits:
                self._reserved_usd += most_usd
            else:
                self._refused_usd = most_usd
            return fits

    def spend(self, usd: float, *, reserved_usd: float) -> None:
        """What a call cost takes the place of what was set aside for it."""
        with self._lock:
            self._reserved_usd -= reserved_usd
            self.spent_usd += usd

    @contextmanager
    def reserving(self, most_usd: float) -> Iterator[Reservation | None]:
        """Sets aside while a call is made, and takes what it cost; None, and nothing set aside, where too little is left."""
        if not self.reserve(most_usd):
            self.given_up += 1
            yield None
            return
        made = Reservation(most_usd)
        try:
            yield made
        except BaseException:
            made.cost_usd = 0.0  # no answer, and nobody says what that cost
            raise
        finally:
            self.spend(most_usd if made.cost_usd is None else made.cost_usd, reserved_usd=most_usd)

    @property
    def reached(self) -> str:
        """Why nothing more is called, for people."""
        return f"budget_usd={self.cap_usd:g} allows no further call (${self.spent_usd:.4f} spent)"

    def larger_cap_usd(self) -> float:
        """A budget with which the run goes on: twice what was spent with the call that was refused, two digits of it."""
        wanted = 2 * max(self.cap_usd, self.spent_usd + self._refused_usd)
        unit = 10.0 ** (math.floor(math.log10(wanted)) - 1) if wanted > 0 else 0.01
        return round(max(1, math.ceil(wanted / unit)) * unit, 12)


class PricedCalls:
    """The budget's view of one model's calls: what each may cost at most, from its prompt and the longest answer.

    A provider may count more prompt tokens than we do (its own system prompt, another tokenizer): the largest ratio seen
    is applied to every later reservation.
    """

    def __init__(self, budget: Budget, price: Price) -> None:
        self.budget = budget
        self.exhausted = False
        self._price = price
        # The prompt's tokens as we count them, and what is set aside.
        self._reserved: dict[Hashable, tuple[int, float]] = {}
        # Not known before the first answer, so the first call is made alone.
        self._ratio: float | None = None

    def admit(self, call: Hashable, prompt_tokens: int, most_completion_tokens: int) -> bool:
        """Whether the call may be made; a retry replaces the reservation of the call before it."""
        _, replaced = self._reserved.pop(call, (0, 0.0))
        self.budget.spend(0.0, reserved_usd=replaced)
        if self._ratio is None and self._reserved:
            return False
        most = self._price.of(round(prompt_tokens * (self._ratio or 1.0)), most_completion_tokens)
        self.exhausted = not self.budget.reserve(most)
        if not self.exhausted:
            self._reserved[call] = (prompt_tokens, most)
        return not self.exhausted

    def settle(self, call: Hashable, prompt_tokens: int, completion_tokens: int) -> None:
        counted, reserved = self._reserved.pop(call, (0, 0.0))
        if prompt_tokens:
            self._ratio = max(self._ratio or 1.0, prompt_tokens / max(1, counted))
        self.budget.spend(self._price.of(prompt_tokens, completion_tokens), reserved_usd=reserved)

    def forfeit(self, call: Hashable) -> None:
        """A call whose answer nobody saw is taken to have cost what was set aside for it."""
        _, reserved = self._reserved.pop(call, (0, 0.0))
        self.budget.spend(reserved, reserved_usd=reserved)
