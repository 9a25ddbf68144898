"""A budget that is never passed: the most that a call could cost is set aside before it is made."""

from __future__ import annotations

import math
import threading
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from typing import NoReturn

from themis.exceptions import ConfigurationError
from themis.runs.prices import PRICES_VARIABLE, Price

__all__ = ["Budget", "PricedCalls", "Reservation", "refuse_unknown_cost"]

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

    def __init__(self, budget: Budget, price: Price, most_completion_tokens: int) -> None:
        self.budget = budget
        self.exhausted = False
        self._price = price
        self._completion = most_completion_tokens
        # The prompt's tokens as we count them, and what is set aside.
        self._reserved: dict[Hashable, tuple[int, float]] = {}
        # Not known before the first answer, so the first call is made alone.
        self._ratio: float | None = None

    def admit(self, call: Hashable, prompt_tokens: int) -> bool:
        """Whether the call may be made; a retry replaces the reservation of the call before it."""
        _, replaced = self._reserved.pop(call, (0, 0.0))
        self.budget.spend(0.0, reserved_usd=replaced)
        if self._ratio is None and self._reserved:
            return False
        most = self._price.of(round(prompt_tokens * (self._ratio or 1.0)), self._completion)
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
