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
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import NoReturn, NotRequired, TypedDict

from themis.core.entities import Result
from themis.exceptions import ConfigurationError
from themis.generation.attempts import Request, is_unheard

PRICES_VARIABLE = "THEMIS_PRICES"
# Dated snapshots of a model cost what the model costs; anything else must match to the letter.
_SNAPSHOT = re.compile(r"(-\d{4}-\d{2}-\d{2}|-\d{8}|-\d{4}|-latest|@\d{8})$")
# Of the list price, what calls in batches cost where a price list does not say otherwise.
_BATCH_SHARE = 0.5
# How long an answer is taken to be at most where nobody limits it.
_UNLIMITED_TOKENS = 4_096
# The providers whose prices genai-prices knows under the same names. Of a server of the user's own it cannot know any,
# though the model may have a name that others sell.
_SOLD_BY = {
    *("anthropic", "azure", "deepseek", "fireworks", "gemini", "google", "groq", "litellm", "mistral", "openai"),
    *("openrouter", "together", "xai"),
}


@dataclass(frozen=True)
class Price:
    """US dollars per million tokens.

    Args:
        input_usd: For a million tokens of prompts.
        output_usd: For a million tokens of answers.
        source: Where the price is from, with its date or version, for people.
        batch_input_usd: For a million tokens of prompts in a batch; half of `input_usd` where the list says nothing of it.
        batch_output_usd: For a million tokens of answers in a batch, likewise.
        cached_usd: For a million tokens of prompts that are read from the provider's cache; None for as much as any other.
        cache_write_usd: For those that are written to it; None for as much as any other.
        cache_write_1h_usd: For those that are kept there for an hour.

    >>> price = Price(2.5, 10.0)
    >>> price.of(prompt_tokens=1_000, completion_tokens=100)
    0.0035
    >>> price.in_batch.of(prompt_tokens=1_000, completion_tokens=100)
    0.00175
    >>> Price(3.0, 15.0, cached_usd=0.3, cache_write_usd=3.75).of(10_000, 100, cached_tokens=9_000)
    0.0072
    """

    input_usd: float
    output_usd: float
    source: str = field(default="", compare=False)
    batch_input_usd: float | None = field(default=None, repr=False)
    batch_output_usd: float | None = field(default=None, repr=False)
    cached_usd: float | None = None
    cache_write_usd: float | None = None
    cache_write_1h_usd: float | None = None

    def of(
        self, prompt_tokens: int, completion_tokens: int, cached_tokens: int = 0, cache_write_tokens: int = 0
    ) -> float:
        """What a call cost; the tokens of the cache are among the prompt's."""
        usd = prompt_tokens * self.input_usd + completion_tokens * self.output_usd
        if cached_tokens and self.cached_usd is not None:
            usd -= cached_tokens * (self.input_usd - self.cached_usd)
        if cache_write_tokens and self.cache_write_usd is not None:
            usd += cache_write_tokens * (self.cache_write_usd - self.input_usd)
        return usd / 1_000_000

    def most(self, prompt_tokens: int, completion_tokens: int) -> float:
        """The most that such a call may cost: where writing to the cache costs more, all of the prompt is written."""
        each = max(self.input_usd, self.cache_write_usd or 0.0)
        return (prompt_tokens * each + completion_tokens * self.output_usd) / 1_000_000

    def cached_for(self, wanted: object) -> Price:
        """The price under a provider's option `prompt_cache`, which may ask for an hour."""
        if wanted != "1h" or self.cache_write_1h_usd is None:
            return self
        return replace(self, cache_write_usd=self.cache_write_1h_usd)

    @property
    def in_batch(self) -> Price:
        """The price of tokens in a batch."""
        prompt = self.input_usd * _BATCH_SHARE if self.batch_input_usd is None else self.batch_input_usd
        answer = self.output_usd * _BATCH_SHARE if self.batch_output_usd is None else self.batch_output_usd
        share = prompt / self.input_usd if self.input_usd else _BATCH_SHARE
        cache = (self.cached_usd, self.cache_write_usd, self.cache_write_1h_usd)
        cached, written, for_an_hour = (None if one is None else one * share for one in cache)
        return Price(prompt, answer, self.source, None, None, cached, written, for_an_hour)

    def of_result(self, result: Result) -> float:
        """What a result cost: what came of batches at their price, the rest at the other."""
        prompt, completion = result.batch_prompt_tokens, result.batch_completion_tokens
        cache = (result.cached_tokens, result.cache_write_tokens)
        if not (prompt or completion):
            return self.of(result.prompt_tokens, result.completion_tokens, *cache)
        singly = self.of(result.prompt_tokens - prompt, result.completion_tokens - completion)
        return singly + self.in_batch.of(prompt, completion, *cache)


FREE = Price(0.0, 0.0)


def cost_of(result: Result, price: Price | None) -> float | None:
    """What whoever answered says that it cost, or else what its tokens do; None where neither is known.

    Args:
        result: The answer, or the failure.
        price: Of its tokens.
    """
    if not result.calls and result.told_usd is None:
        return 0.0  # its last answer was a step, and is paid for as such
    if result.told_usd is not None:
        return result.told_usd
    return None if price is None else price.of_result(result)


class PriceTable(TypedDict):
    """Prices by model; `version` and `updated_at` say of when. `batch` has those in batches that are not half of it.

    A row has those of prompts, of answers, and where known of prompts that are read from a cache, written to it, and written to
    it for an hour.
    """

    version: str
    updated_at: str
    models: dict[str, list[float | None]]
    batch: NotRequired[dict[str, list[float]]]


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

    >>> price = price_of("gpt-4o", "openai")
    >>> price.input_usd, price.output_usd, price.cached_usd, price.source
    (2.5, 10.0, 1.25, 'prices of 2026-11-18')
    """
    if is_local:
        return FREE
    bare = model.rsplit("/", 1)[-1]
    own = os.environ.get(PRICES_VARIABLE, "")
    tables = [_read_own(own), _read_packaged()] if own else [_read_packaged()]
    for table in tables:
        for candidate in (model, bare, _SNAPSHOT.sub("", bare)):
            if candidate in table["models"]:
                batched = table.get("batch", {}).get(candidate, [None, None])
                return _read_price(table["models"][candidate], batched, f"prices of {table['updated_at']}")
    return _find_in_package(model, provider) if provider in _SOLD_BY else None


def _read_price(row: Sequence[float | None], batched: Sequence[float | None], source: str) -> Price:
    prompt, answer, *cache = row
    cached, written, for_an_hour = (*cache, None, None, None)[:3]
    batch_input, batch_output = batched
    return Price(prompt or 0.0, answer or 0.0, source, batch_input, batch_output, cached, written, for_an_hour)


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
        "batch": {**packaged.get("batch", {}), **own.get("batch", {})},
    }


@lru_cache(maxsize=1)
def _read_packaged() -> PriceTable:
    table: PriceTable = json.loads(Path(__file__).with_name("prices.json").read_text(encoding="utf-8"))
    return table


@lru_cache(maxsize=4)
def _read_own(path: str) -> PriceTable:
    try:
        own = json.loads(Path(path).read_text(encoding="utf-8"))
        models = {
            str(name): [None if value is None else float(value) for value in row] for name, row in own["models"].items()
        }
        if any(not 2 <= len(row) <= 5 or None in row[:2] for row in models.values()):
            raise ValueError("a model has two to five prices")
        batch = {str(name): [float(value) for value in pair] for name, pair in own.get("batch", {}).items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ConfigurationError(
            f"{PRICES_VARIABLE}={path!r} is not a price file ({error}); expected "
            '{"version": "...", "models": {"name": [input, output]}} in US dollars per million tokens, where known with those of '
            'prompts read from a cache, written to it, and written to it for an hour, and "batch" likewise with two'
        ) from error
    named = str(own.get("version", Path(path).name))
    return {"version": named, "updated_at": str(own.get("updated_at", named)), "models": models, "batch": batch}


@lru_cache(maxsize=256)
def _find_in_package(model: str, provider: str) -> Price | None:
    """From the data inside genai-prices, as of now: without its tiers for very long prompts."""
    try:
        import genai_prices
    except ImportError:  # in the extra "prices"
        return None
    tokens = 1_000

    def ask(**parts: int) -> float | None:
        """The dollars for a million prompt tokens of which these are all."""
        try:
            usage = genai_prices.Usage(input_tokens=tokens, output_tokens=tokens, **parts)
            found = genai_prices.calc_price(usage, model, provider_id=provider)
        except (LookupError, ValueError, TypeError):
            return None
        return float(found.input_price) * 1_000_000 / tokens

    try:
        found = genai_prices.calc_price(
            genai_prices.Usage(input_tokens=tokens, output_tokens=tokens), model, provider_id=provider
        )
    except (LookupError, ValueError):
        return None
    return Price(
        float(found.input_price) * 1_000_000 / tokens,
        float(found.output_price) * 1_000_000 / tokens,
        source=f"genai-prices {genai_prices.__version__}",
        cached_usd=ask(cache_read_tokens=tokens),
        cache_write_usd=ask(cache_write_tokens=tokens),
        cache_write_1h_usd=ask(cache_write_tokens=tokens, cache_write_1h_tokens=tokens),
    )


# --- budgets -----------------------------------------------------------------------------------------------------------


NAME_THE_PRICE = f"add it to a price file and name that file in {PRICES_VARIABLE}"
_ROUNDING_USD = 1e-12


def refuse_unknown_cost(of: str, what_to_do: str = NAME_THE_PRICE) -> NoReturn:
    """For whoever would be called under a budget at a price that is not known: such a budget could not bind."""
    raise ConfigurationError(f"a budget needs the price of {of}, which is not known; {what_to_do}")


class Reservation:
    """What is set aside for one call; `cost_usd` is what the call says that it cost, all of it if it says nothing."""

    def __init__(self, most_usd: float) -> None:
        self.cost_usd: float | None = most_usd


class Budget:
    """What a run may spend in all, and has spent. Calls of many threads may be under way at once.

    Runs of one experiment share what is left of its budget: each has one of its own `within` that of the whole.
    """

    def __init__(self, cap_usd: float | None, spent_usd: float = 0.0, within: Budget | None = None) -> None:
        self.cap_usd = math.inf if cap_usd is None else cap_usd
        self.spent_usd = spent_usd
        # Calls that were given up because too little was left.
        self.given_up = 0
        self._within = within
        self._lock = threading.Lock()
        self._reserved_usd = 0.0
        self._refused_usd = 0.0
        # Which of the two had too little left.
        self._refused_by: Budget = self

    @property
    def is_capped(self) -> bool:
        return math.isfinite(self.cap_usd) or (self._within is not None and self._within.is_capped)

    def reserve(self, most_usd: float) -> bool:
        """Sets this much aside for one call, if there is as much."""
        with self._lock:
            if not self.has_left(most_usd):
                self._refused_by = self
            elif self._within is not None and not self._within.reserve(most_usd):
                self._refused_by = self._within
            else:
                # Who refused another call before is not forgotten: a smaller one fits.
                self._reserved_usd += most_usd
                return True
            self._refused_usd = most_usd
            return False

    def reserve_spent(self, most_usd: float) -> None:
        """Sets this much aside for a call that cannot be prevented any more, whatever is left."""
        with self._lock:
            self._reserved_usd += most_usd
        if self._within is not None:
            self._within.reserve_spent(most_usd)

    def has_left(self, usd: float) -> bool:
        """Whether so much is neither spent nor set aside."""
        return self.spent_usd + self._reserved_usd + usd <= self.cap_usd + _ROUNDING_USD

    def spend(self, usd: float, *, reserved_usd: float) -> None:
        """What a call cost takes the place of what was set aside for it."""
        with self._lock:
            self._reserved_usd -= reserved_usd
            self.spent_usd += usd
        if self._within is not None:
            self._within.spend(usd, reserved_usd=reserved_usd)

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
        except BaseException as error:
            # No answer, and hardly anybody says what that cost.
            made.cost_usd = getattr(error, "cost_usd", None) or 0.0
            raise
        finally:
            self.spend(most_usd if made.cost_usd is None else made.cost_usd, reserved_usd=most_usd)

    @property
    def reached(self) -> str:
        """Why nothing more is called, for people."""
        if self._refused_by is not self:
            return f"{self._refused_by.reached}, for all runs of the experiment together"
        return f"budget_usd={self.cap_usd:g} allows no further call (${self.spent_usd:.4f} spent)"

    @property
    def refused_usd(self) -> float:
        """What the call would have cost at most that was refused last; 0 where none was."""
        return self._refused_usd

    def larger_cap_usd(self) -> float:
        """A budget with which the run goes on: twice what was spent with the call that was refused, two digits of it."""
        if self._refused_by is not self:
            return self._refused_by.larger_cap_usd()
        wanted = 2 * max(self.cap_usd, self.spent_usd + self._refused_usd)
        unit = 10.0 ** (math.floor(math.log10(wanted)) - 1) if wanted > 0 else 0.01
        return round(max(1, math.ceil(wanted / unit)) * unit, 12)


class PricedCalls:
    """The budget's view of one model's calls: what each may cost at most, from its prompt and the longest answer.

    A provider may count more prompt tokens than we do (its own system prompt, another tokenizer): the largest ratio seen
    is applied to every later reservation. Of a subject without a price `most_usd` is the most that it says an answer may
    cost, and what an answer says of itself is counted.
    """

    def __init__(self, budget: Budget, price: Price | None, most_usd: float | None = None) -> None:
        self.budget = budget
        self.exhausted = False
        self._price = price
        self._told_most_usd = most_usd
        # The prompt's tokens as we count them, and what is set aside.
        self._reserved: dict[Hashable, tuple[int, float]] = {}
        self._sent: dict[Hashable, tuple[int, float]] = {}
        # What calls for an answer that is not there yet have cost.
        self._paid: dict[Hashable, float] = {}
        # Not known before the first answer, so the first call is made alone.
        self._ratio: float | None = None if price is not None else 1.0

    @property
    def is_calibrated(self) -> bool:
        """Whether it is known how the provider counts, so that calls may be admitted together."""
        return self._ratio is not None

    def admit(
        self,
        call: Hashable,
        prompt_tokens: int,
        most_completion_tokens: int,
        *,
        in_batch: bool = False,
        before: Request | None = None,
    ) -> bool:
        """Whether the call may be made; a retry replaces the reservation of the call `before` it, which may have cost something.

        One that took too long is taken to have cost what was set aside: it may have been answered.
        """
        _, replaced = self._take(call)
        if before is not None and before.calls:
            self._spend(call, self._told_usd(before), replaced, is_unheard=before.is_unheard)
        else:
            self.budget.spend(0.0, reserved_usd=replaced)
        if self._ratio is None and self._reserved:
            return False
        most = self._most_usd(prompt_tokens, most_completion_tokens, in_batch=in_batch)
        self.exhausted = not self.budget.reserve(most)
        if not self.exhausted:
            self._reserved[call] = (prompt_tokens, most)
        return not self.exhausted

    def reserve_sent(self, call: Hashable, prompt_tokens: int, most_completion_tokens: int) -> None:
        """Sets aside what a call in a batch may cost that was sent before: nobody can take it back."""
        most = self._most_usd(prompt_tokens, most_completion_tokens, in_batch=True)
        self.budget.reserve_spent(most)
        self._sent[call] = (prompt_tokens, most)

    def _most_usd(self, prompt_tokens: int, most_completion_tokens: int, *, in_batch: bool) -> float:
        if self._price is None:
            return self._told_most_usd or 0.0
        price = self._price.in_batch if in_batch else self._price
        return price.most(round(prompt_tokens * (self._ratio or 1.0)), most_completion_tokens)

    def settle(self, call: Hashable, result: Result) -> None:
        counted, reserved = self._take(call)
        self.learn(counted, result.prompt_tokens)
        error = result.record.error
        self._spend(call, cost_of(result, self._price), reserved, is_unheard=error is not None and is_unheard(error))
        self._paid.pop(call, None)

    def _spend(self, call: Hashable, cost: float | None, reserved: float, *, is_unheard: bool) -> None:
        """What calls for one answer have cost so far, or all of what was set aside where nobody can tell."""
        paid = self._paid.get(call, 0.0)
        new = reserved if cost is None else max(0.0, cost - paid)
        self.budget.spend(max(new, reserved) if is_unheard else new, reserved_usd=reserved)
        self._paid[call] = paid if cost is None else max(paid, cost)

    def _told_usd(self, request: Request) -> float | None:
        """What the calls of a request have cost as far as they tell."""
        if request.told_usd is not None or self._price is None:
            return request.told_usd or 0.0
        tokens = (request.prompt_tokens, request.completion_tokens, request.cached_tokens, request.cache_write_tokens)
        return self._price.of(*tokens)

    def learn(self, counted: int, prompt_tokens: int) -> None:
        """How many tokens the provider says a prompt had, of as many as we count in it."""
        if prompt_tokens:
            self._ratio = max(self._ratio or 1.0, prompt_tokens / max(1, counted))

    def forfeit(self, call: Hashable) -> None:
        """A call whose answer nobody saw is taken to have cost what was set aside for it."""
        _, reserved = self._take(call)
        self.budget.spend(reserved, reserved_usd=reserved)

    def _take(self, call: Hashable) -> tuple[int, float]:
        return self._reserved.pop(call, None) or self._sent.pop(call, (0, 0.0))
