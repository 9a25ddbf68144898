"""A sandbox for code that a model wrote: it never runs in our process.

sandbox = Sandbox(Limits(cpu_seconds=2))
sandbox.run_program("print(input()[::-1])", stdin="abc").stdout
sandbox.run_tests("def add(a, b): return a + b", [CallTest("add", [1, 2], 3), AssertTest("assert add(1, 1) == 2")])
sandbox_level()
"""

from themis.evaluation.sandbox.code_tests import AssertTest, CallTest, CodeTest, ProgramTest, Verdict
from themis.evaluation.sandbox.execution import (
    Execution,
    Sandbox,
    available_protections,
    sandbox_level,
    strongest_protection,
)
from themis.evaluation.sandbox.protection import (
    ALLOWED_VARIABLE,
    GIVEN_UP,
    Limits,
    Protection,
    SandboxError,
    read_weaknesses,
)

__all__ = [
    "ALLOWED_VARIABLE",
    "GIVEN_UP",
    "AssertTest",
    "CallTest",
    "CodeTest",
    "Execution",
    "Limits",
    "ProgramTest",
    "Protection",
    "Sandbox",
    "SandboxError",
    "Verdict",
    "available_protections",
    "read_weaknesses",
    "sandbox_level",
    "strongest_protection",
]
