"""The shapes of the files that users write: what may stand in them, with defaults."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

__all__ = ["LEAST_FILLER_TOKENS", "HuggingFaceHubConfig", "MemoryConfig", "MemoryTestConfig"]

# Every filler can make up so many tokens; whoever waits for fewer waits for as many.
LEAST_FILLER_TOKENS = 60


@dataclass
class HuggingFaceHubConfig:
    """Whether results go to a dataset repository on the Hugging Face Hub, and to which."""

    enable: bool = False
    repository: str | None = None


@dataclass(frozen=True, kw_only=True)
class MemoryTestConfig:
    """One entry of `datasets.datasets`: a kind of memory test, how many of it, and its arguments."""

    name: str
    examples: int
    # Those of `datasets.args` and its own, the latter winning.
    arguments: Mapping[str, Any] = field(default_factory=dict)
    # Where each argument stands in the file, for errors.
    places: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class MemoryConfig:
    """A configuration of the memory benchmark."""

    run_name: str
    tests: Sequence[MemoryTestConfig]
    incompatibilities: Sequence[Sequence[str]] = ()
    debug: bool = False
    seed: int = 0
    filler: str = "mixed"
    clock: str = "jump"
    judge: str | None = None
    tokenizer: str = "cl100k_base"
    max_message_tokens: int = 4_096
    # The file it was read from, for messages.
    source: str = ""
