"""A batch: requests that a provider takes together, works off within a day and charges less for.

The provider keeps it, whatever becomes of the process that sent it. So what a store knows of it (`Batch`) is written before
and after each step, and nothing that is in a batch is asked for again until its fate is known.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import NamedTuple

__all__ = ["Batch", "BatchItem", "BatchState"]


class BatchState(enum.StrEnum):
    """How far a batch has come, as the store knows it."""

    # Written down before anything is sent: whether the provider has it is not known.
    INTENDED = "intended"
    # The provider has it, under an id.
    SUBMITTED = "submitted"
    # Over: every result is stored; the provider refused or lost it; or it never came to be.
    COLLECTED = "collected"
    FAILED = "failed"
    DISSOLVED = "dissolved"

    @property
    def is_open(self) -> bool:
        """Whether its items may still be answered, or be answered already."""
        return self in (BatchState.INTENDED, BatchState.SUBMITTED)


class BatchItem(NamedTuple):
    """One request of a batch: which of a run's answers it is for, and the key that the answer is stored under."""

    position: int
    attempt: int
    key: str


@dataclass(kw_only=True)
class Batch:
    """What is stored of a batch.

    Args:
        number: Of the batch in its run, from 0.
        token: Ours, and the only one of its kind: the provider is given it with the batch, so that it is found again.
        provider: Who has it, for people.
        endpoint: Where.
        items: What is in it.
        created_at: Before it was sent, by the provider's clock, in seconds since 1970.
        state: How far it has come.
        id: The provider's; None while nobody knows it.
        files: Names of its files at the provider, by what they are for.

    >>> batch = Batch(number=0, token="1f3a", provider="OpenAI", endpoint="https://api.openai.com/v1/chat/completions",
    ...               items=[BatchItem(0, 0, "7c2e")], created_at=1_760_000_000.0)
    >>> batch.state.is_open, batch.named
    (True, 'a batch of 1 item')
    """

    number: int
    token: str
    provider: str
    endpoint: str
    items: list[BatchItem]
    created_at: float
    state: BatchState = BatchState.INTENDED
    id: str | None = None
    files: dict[str, str] = field(default_factory=dict)

    @property
    def named(self) -> str:
        """For people: by its id, where it has one."""
        count = f"{len(self.items):,} item{'' if len(self.items) == 1 else 's'}"
        return f"batch {self.id} of {count}" if self.id else f"a batch of {count}"
