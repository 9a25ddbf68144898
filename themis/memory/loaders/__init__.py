"""Other benchmarks' data as memory tests: the user supplies the file, `data_location` names it; imported when named."""

from __future__ import annotations

__all__ = ["LOADED_TESTS"]

LOADED_TESTS = {
    "babilong": "themis.memory.loaders.babilong:BabiLong",
    "locomo": "themis.memory.loaders.locomo:LoCoMo",
    "longmemeval": "themis.memory.loaders.longmemeval:LongMemEval",
}
