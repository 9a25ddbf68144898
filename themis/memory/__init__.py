"""The conversational memory benchmark: many tests interleaved in one long conversation with an agent, in virtual time.

The public names are imported when they are first used; see `themis.memory.scheduler` for how a run works.
"""

from __future__ import annotations

import importlib
from typing import Any

_EXPORTS = {
    "Action": "themis.memory.actions",
    "Ask": "themis.memory.actions",
    "Consult": "themis.memory.actions",
    "Grade": "themis.memory.actions",
    "AgentReply": "themis.memory.actions",
    "Line": "themis.memory.actions",
    "Listen": "themis.memory.actions",
    "Log": "themis.memory.actions",
    "Instant": "themis.memory.actions",
    "JudgeReply": "themis.memory.actions",
    "Say": "themis.memory.actions",
    "Script": "themis.memory.actions",
    "Wait": "themis.memory.actions",
    "DatasetInterface": "themis.memory.examples",
    "DynamicExample": "themis.memory.examples",
    "TestExample": "themis.memory.examples",
    "TestResult": "themis.memory.examples",
    "register_memory_test": "themis.memory.examples",
    "Phrasing": "themis.memory.phrasing",
    "Reader": "themis.memory.reader",
    "World": "themis.memory.world",
    "Agent": "themis.memory.agents",
    "Reply": "themis.memory.agents",
    "create_agent": "themis.memory.agents",
    "register_agent": "themis.memory.agents",
    "Benchmark": "themis.memory.benchmark",
    "Clock": "themis.memory.clock",
    "create_filler": "themis.memory.filler",
    "run": "themis.memory.driver",
}

__all__ = sorted(_EXPORTS)


def __getattr__(name: str) -> Any:
    if name not in _EXPORTS:
        raise AttributeError(f"module 'themis.memory' has no attribute {name!r}")
    value = getattr(importlib.import_module(_EXPORTS[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_EXPORTS])
