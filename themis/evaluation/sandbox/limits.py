"""How much model-written code may use before it is ended."""

from __future__ import annotations

from dataclasses import dataclass, fields

from themis.exceptions import ConfigurationError

__all__ = ["Limits"]


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Of one program or one test. Memory and processor time count for each of its processes.

    The wall clock starts when the program's first line is about to run: starting the interpreter is not the program's
    fault. `processes` counts threads too. Writing more than `output_kb` to either stream ends the program.
    """

    cpu_seconds: int = 5
    wall_seconds: int = 15
    memory_mb: int = 512
    file_mb: int = 32
    processes: int = 32
    output_kb: int = 256

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise ConfigurationError(f"the limit {field.name} is a whole number of at least 1, got {value!r}")
        smallest_interpreter_mb = 64
        if self.memory_mb < smallest_interpreter_mb:
            raise ConfigurationError(f"memory_mb is at least {smallest_interpreter_mb}, got {self.memory_mb}")
