"""What a filler message is, and what makes them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class FillerMessage:
    """A filler and the reply that is expected to it."""

    text: str
    reply: str


class Filler(Protocol):
    """Makes filler messages. `fingerprint` changes when any message would."""

    fingerprint: str

    def make(self, number: int, tokens: int) -> FillerMessage:
        """Message `number`, of so many tokens together with its expected reply."""
