"""Other benchmarks' data as memory tests: the user supplies the file, `data_location` names it.

Importing this package makes the names usable in configurations; a kind's own module is imported on use.
"""

from __future__ import annotations

from themis.memory.examples import MEMORY_TESTS

__all__ = ["LOADED_TESTS"]

LOADED_TESTS = {
    "babilong": "themis.memory.loaders.babilong:BabiLong",
    "locomo": "themis.memory.loaders.locomo:LoCoMo",
    "longmemeval": "themis.memory.loaders.longmemeval:LongMemEval",
}

for _name, _target in LOADED_TESTS.items():
    MEMORY_TESTS.register(_name, _target)
