"""Model-written code in the sandbox: ordinary code works, hostile code neither passes nor harms, at every level here."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from themis.evaluation.sandbox import (
    AssertTest,
    CallTest,
    Limits,
    ProgramTest,
    Protection,
    Sandbox,
    SandboxError,
    available_protections,
    sandbox_level,
    strongest_protection,
)
from themis.evaluation.sandbox.inside.wire import Values
from themis.exceptions import ConfigurationError

AVAILABLE = available_protections()


def levels_worth_testing() -> list[Protection]:
    """The strongest, the strongest that does without namespaces, and the weakest."""
    without_namespaces = [each for each in AVAILABLE if "namespaces" not in each.layers]
    chosen = [AVAILABLE[0], *without_namespaces[:1], AVAILABLE[-1]]
    return sorted(set(chosen), key=AVAILABLE.index)


each_level = pytest.mark.parametrize("protection", levels_worth_testing(), ids=lambda protection: protection.level)


@pytest.fixture
def marked(tmp_path):
    """Protections whose processes can be told from all others by their command line."""

    def mark(protection: Protection) -> Protection:
        link = tmp_path / "python-of-this-test"
        link.symlink_to(os.path.realpath(protection.interpreter))
        return Protection(protection.layers, str(link))

    yield mark
    assert not processes_of(Protection((), str(tmp_path / "python-of-this-test"))), "processes were left behind"


def processes_of(protection: Protection) -> list[str]:
    listed = subprocess.run(["ps", "-eww", "-o", "args"], capture_output=True, text=True, check=True).stdout
    return [line for line in listed.splitlines() if line.startswith(protection.interpreter)]


def wait_until(holds: Callable[[], bool]) -> None:
    until = time.monotonic() + 300
    while not holds():
        assert time.monotonic() < until, "waited for five minutes"
        time.sleep(0.02)


def sandbox_at(protection: Protection, **limits: int) -> Sandbox:
    return Sandbox(Limits(**limits), protection)


class TestOrdinaryCode:
    @each_level
    def test_a_program_reads_its_input_and_prints_its_output(self, protection):
        execution = sandbox_at(protection).run_program("print(input()[::-1])", stdin="naïve ✓ 漢字")

        assert (execution.outcome, execution.stdout) == ("ok", "字漢 ✓ evïan\n")
        assert execution.level == protection.level

    @pytest.mark.parametrize(
        ("code", "printed"),
        [
            ("def f(n): return 1 if n < 2 else n * f(n - 1)\nprint(f(20))", "2432902008176640000\n"),
            ("import sys\nsys.setrecursionlimit(50000)\ndef f(n): return n and 1 + f(n - 1)\nprint(f(20000))", "20000\n"),
            ("class A:\n    def get(self): return helper(1)\ndef helper(n): return n + 1\nprint(A().get())", "2\n"),
            ("from dataclasses import dataclass\n@dataclass\nclass P:\n    x: int\nprint(P(3))", "P(x=3)\n"),
            ("import re, math, json, sqlite3, itertools\nprint(list(itertools.accumulate([1, 2, 3])))", "[1, 3, 6]\n"),
            ("import asyncio\nasync def f(): return 7\nprint(asyncio.run(f()))", "7\n"),
            (
                "from concurrent.futures import ThreadPoolExecutor as Pool\n"
                "with Pool(4) as pool: print(sum(pool.map(abs, [-1, -2])))",
                "3\n",
            ),
            ("import subprocess\nsubprocess.run('echo hi', shell=True)", "hi\n"),
            (
                "import subprocess, sys\nsubprocess.run([sys.executable, '-c', 'print(7)'])",
                "7\n",
            ),
            ("from zoneinfo import ZoneInfo\nprint(ZoneInfo('Europe/Paris'))", "Europe/Paris\n"),
            ("open('note.txt', 'w').write('kept')\nprint(open('note.txt').read())", "kept\n"),
            ("if __name__ == '__main__':\n    print('main')\n    exit()", "main\n"),
            ("import atexit\natexit.register(print, 'bye')\nprint('hello')", "hello\nbye\n"),
            ("import sys\nprint(sys.stdin.read(), end='|')", "|"),
        ],
    )  # fmt: skip
    def test_what_python_runs_the_sandbox_runs(self, code, printed):
        execution = Sandbox().run_program(code)

        assert (execution.outcome, execution.reason, execution.stdout) == ("ok", "", printed)

    @pytest.mark.parametrize(
        ("code", "reason"),
        [
            ("def f(:", "SyntaxError: invalid syntax"),
            ("1 / 0", "ZeroDivisionError: division by zero"),
            ("def f(): return f()\nf()", "RecursionError: maximum recursion depth exceeded"),
            ("raise SystemExit(3)", "exited with status 3"),
            ("import sys; sys.exit('nothing to do')", "nothing to do"),
            ("import numpy", "ModuleNotFoundError: No module named 'numpy'"),
            ("import themis", "ModuleNotFoundError: No module named 'themis'"),
            ("input()", "EOFError: EOF when reading a line"),
        ],
    )
    def test_an_error_is_reported_with_its_last_line(self, code, reason):
        execution = Sandbox().run_program(code)

        assert (execution.outcome, execution.reason) == ("error", reason)

    def test_the_traceback_shows_the_programs_lines_and_not_the_sandboxes(self):
        execution = Sandbox().run_program("def f():\n    return 1 / 0\nf()")

        assert "return 1 / 0" in execution.stderr
        assert "supervisor" not in execution.stderr

    @pytest.mark.parametrize(
        ("code", "name"),
        [
            ("import ctypes; ctypes.string_at(0)", "SIGSEGV"),
            ("import os; os.abort()", "SIGABRT"),
            ("import os; os.kill(os.getpid(), 40)", "signal 40"),
        ],
    )
    def test_a_crash_names_its_signal(self, code, name):
        execution = Sandbox().run_program(code)

        assert (execution.outcome, execution.reason) == ("crashed", f"was ended by {name}")

    def test_starting_does_not_count_as_running(self):
        """On a loaded machine the interpreter alone may take longer than a strict limit allows the program."""
        execution = Sandbox(Limits(wall_seconds=1)).run_program("import time; time.sleep(0.2); print('done')")

        assert (execution.outcome, execution.stdout) == ("ok", "done\n")

    def test_sets_of_strings_have_the_same_order_in_every_run(self):
        code = "print(list({'a', 'b', 'c', 'd', 'e', 'f'}))"

        assert Sandbox().run_program(code).stdout == Sandbox().run_program(code).stdout

    def test_many_threads_can_use_one_sandbox(self):
        sandbox = Sandbox()
        with ThreadPoolExecutor(4) as pool:
            outputs = list(pool.map(lambda n: sandbox.run_program(f"print({n} * 2)").stdout, range(12)))

        assert outputs == [f"{n * 2}\n" for n in range(12)]


class TestHostilePrograms:
    @each_level
    def test_an_endless_loop_is_ended_by_its_processor_time(self, protection, marked):
        execution = sandbox_at(marked(protection), cpu_seconds=1).run_program("while True: pass")

        assert (execution.outcome, execution.reason) == ("timeout", "used more than 1 s of processor time")

    @each_level
    def test_an_endless_sleep_is_ended_by_the_clock(self, protection, marked):
        execution = sandbox_at(marked(protection), wall_seconds=1).run_program("import time; time.sleep(600)")

        assert (execution.outcome, execution.reason) == ("timeout", "ran for more than 1 s")

    @each_level
    def test_a_fork_bomb_ends_with_its_program(self, protection, marked):
        bomb = "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass"

        execution = sandbox_at(marked(protection), wall_seconds=1).run_program(bomb)

        # Where the memory of all processes counts together, so many of them may reach that limit first.
        assert execution.outcome in ("timeout", "memory")

    @each_level
    def test_a_daemon_does_not_outlive_its_program(self, protection, marked):
        daemon = """
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        time.sleep(600)
    os._exit(0)
os.wait()
print("left")
"""
        execution = sandbox_at(marked(protection)).run_program(daemon)

        assert (execution.outcome, execution.stdout) == ("ok", "left\n")

    @each_level
    def test_a_memory_bomb_is_stopped(self, protection, marked):
        bomb = "held = []\nwhile True: held.append(bytearray(10**7))"

        execution = sandbox_at(marked(protection), memory_mb=128).run_program(bomb)

        assert (execution.outcome, execution.reason) == ("memory", "needed more than 128 MB of memory")

    @each_level
    @pytest.mark.parametrize("stream", ["stdout", "stderr"])
    def test_printing_100_mb_is_cut_off(self, protection, stream, marked):
        flood = f"import sys\nfor _ in range(100): sys.{stream}.write('x' * 10**6)"

        execution = sandbox_at(marked(protection), output_kb=64).run_program(flood)

        assert (execution.outcome, execution.reason) == ("output", "wrote more than 64 KB")
        assert len(getattr(execution, stream)) == 64 * 1024

    @each_level
    def test_a_file_cannot_grow_without_limit(self, protection, marked):
        execution = sandbox_at(marked(protection), file_mb=1).run_program("open('big', 'wb').write(b'x' * 5 * 10**6)")

        assert (execution.outcome, execution.reason) == ("error", "OSError: [Errno 27] File too large")

    @each_level
    def test_our_environment_is_not_its_own(self, protection, monkeypatch):
        monkeypatch.setenv("PLANTED_SECRET", "planted-in-our-environment")

        execution = sandbox_at(protection).run_program("import os\nprint(sorted(os.environ))")

        assert execution.stdout == "['HOME', 'LANG', 'PATH', 'TMPDIR']\n"

    @each_level
    def test_our_environment_cannot_be_read_from_our_process(self, protection):
        peek = f"print(open('/proc/{os.getpid()}/environ', 'rb').read())"

        execution = sandbox_at(protection).run_program(peek)

        assert (execution.outcome == "error") == protection.hides_environment

    @each_level
    def test_files_outside_cannot_be_written(self, protection, tmp_path):
        target = tmp_path / "outside"

        execution = sandbox_at(protection).run_program(f"open({str(target)!r}, 'w').write('x')")

        assert (execution.outcome == "error") == (protection.hides_files or "user" in protection.layers)
        assert target.exists() != (protection.hides_files or "user" in protection.layers)

    @each_level
    def test_files_outside_cannot_be_read(self, protection):
        with tempfile.TemporaryDirectory() as place:
            os.chmod(place, 0o755)
            private = Path(place) / "private"
            private.write_text("for our eyes")
            execution = sandbox_at(protection).run_program(f"print(open({str(private)!r}).read())")

        assert (execution.outcome == "error") == protection.hides_files
        assert ("for our eyes" in execution.stdout) != protection.hides_files

    @each_level
    def test_passwords_cannot_be_read(self, protection):
        execution = sandbox_at(protection).run_program("print(open('/etc/shadow').read())")

        assert execution.outcome == "error"
        assert "/etc/shadow" in execution.reason

    @each_level
    def test_a_listener_on_this_machine_cannot_be_reached(self, protection):
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            listener.listen()
            listener.setblocking(False)
            address = listener.getsockname()
            execution = sandbox_at(protection).run_program(
                f"import socket\nsocket.create_connection({address!r}, timeout=5)\nprint('connected')"
            )
            try:
                listener.accept()[0].close()
                reached = True
            except BlockingIOError:
                reached = False

        assert reached != protection.denies_network
        assert (execution.outcome == "error") == protection.denies_network

    @each_level
    def test_the_sandbox_ends_when_we_do(self, protection, marked):
        protection = marked(protection)
        ours = (
            "from themis.evaluation.sandbox import Limits, Protection, Sandbox\n"
            f"Sandbox(Limits(wall_seconds=600), Protection({protection.layers!r}, {protection.interpreter!r}))"
            ".run_program('import time, os\\nos.fork()\\ntime.sleep(600)')"
        )
        with tempfile.TemporaryDirectory() as place:
            os.chmod(place, 0o755)
            process = subprocess.Popen([sys.executable, "-c", ours], env={**os.environ, "TMPDIR": place})
            wait_until(lambda: len(processes_of(protection)) >= 3)

            process.kill()
            process.wait()

            wait_until(lambda: not processes_of(protection))

    @each_level
    def test_our_process_cannot_be_killed(self, protection, marked):
        if not protection.shields_processes:  # trying it would end the test run
            assert protection.level == "limits"
            return
        attack = f"""
import os, signal
for process in (os.getppid(), {os.getpid()}, {os.getppid()}, -1):
    try:
        os.kill(process, signal.SIGKILL)
    except OSError:
        pass
print("alive")
"""
        execution = sandbox_at(marked(protection)).run_program(attack)

        assert (execution.outcome, execution.stdout) == ("ok", "alive\n")

    @each_level
    def test_the_directory_is_empty_and_gone_afterwards(self, protection, monkeypatch):
        nest = "import os\nprint(os.listdir('.'))\nfor _ in range(50): os.mkdir('d'); os.chdir('d')\nos.chmod('.', 0)"
        with tempfile.TemporaryDirectory() as place:
            os.chmod(place, 0o755)
            monkeypatch.setattr(tempfile, "tempdir", place)
            execution = sandbox_at(protection).run_program(nest)
            left = os.listdir(place)

        assert (execution.outcome, execution.stdout) == ("ok", "[]\n")
        assert left == []


class TestTests:
    def test_calls_are_compared_outside_the_solutions_process(self):
        code = "def add(a, b):\n    return a + b"
        tests = [CallTest("add", [1, 2], 3), CallTest("add", [1, 2], 4), CallTest("subtract", [1, 2], 3)]

        verdicts = Sandbox().run_tests(code, tests)

        assert [(verdict.outcome, verdict.reason) for verdict in verdicts] == [
            ("passed", ""),
            ("failed", "expected 4, got 3"),
            ("error", "NameError: the solution defines no 'subtract'"),
        ]

    @pytest.mark.parametrize(
        ("code", "test"),
        [
            ("def f(items): return sum(items)", CallTest("f", [1, 2, 3], 6)),
            ("def f(a, b, c): return a + b + c", CallTest("f", [1, 2, 3], 6)),
            ("def f(items, start=0): return sum(items, start)", CallTest("f", [1, 2, 3], 6)),
            ("def f(*items): return sum(items)", CallTest("f", [1, 2, 3], 6)),
            ("def f(): return 6", CallTest("f", [], 6)),
            ("def f(matrix): return len(matrix)", CallTest("f", [[[1, 2], [3, 4]]], 2, spread=True)),
            ("def f(a, *, b): return a - b", CallTest("f", 9, 3, {"b": 6})),
            ("from functools import cache\n@cache\ndef f(n): return n if n < 2 else f(n - 1) + f(n - 2)", CallTest("f", 9, 34)),
            ("def f(): return (1, (2, 3))", CallTest("f", [], [1, [2, 3]])),
            ("def f(): return {3, 1, 2}", CallTest("f", [], [1, 2, 3])),
            ("def f(): return {(1, 2), (3, 4)}", CallTest("f", [], [[1, 2], [3, 4]])),
            ("def f(): return {1: 'a'}", CallTest("f", [], {"1": "a"})),
            ("def f(): return 0.1 + 0.2", CallTest("f", [], 0.3)),
            ("def f(): return float('nan')", CallTest("f", [], float("nan"))),
            ("def f(): return 7 ** 7000", CallTest("f", [], 7**7000)),
            ("def f(text): return text.upper()", CallTest("f", "straße\ud800", "STRASSE\ud800")),
            ("def f(data): return bytes(reversed(data))", CallTest("f", b"abc", b"cba")),
            ("class Solution:\n    def last(self, a, b): return b", CallTest("Solution.last", [[2, 7], 9], 9)),
            ("from collections import Counter\ndef f(s): return Counter(s)", CallTest("f", "aab", {"a": 2, "b": 1})),
        ],
    )  # fmt: skip
    def test_a_right_answer_passes_however_it_is_shaped(self, code, test):
        (verdict,) = Sandbox().run_tests(code, [test])

        assert (verdict.outcome, verdict.reason) == ("passed", "")

    @pytest.mark.parametrize(
        ("returned", "expected"),
        [("[1, 2]", [1, 2, 3]), ("'12'", ["1", "2"]), ("{1, 2}", [1, 1]), ("None", 0), ("{'a': 1}", {"a": 2}), ("0.31", 0.3),
         ("'3'", 3), ("[[1]]", [[2]]), ("object()", None), ("print", "print")],
    )  # fmt: skip
    def test_a_wrong_answer_fails(self, returned, expected):
        (verdict,) = Sandbox().run_tests(f"def f(): return {returned}", [CallTest("f", [], expected)])

        assert verdict.outcome == "failed"
        assert verdict.reason.startswith("expected ")

    @pytest.mark.parametrize(
        ("code", "test"),
        [
            ("def f(x): return x + 1", "assert f(1) == 2, 'off by one'"),
            ("def f(x): return {x}", "assert set(f(1)) == {1}"),
            ("def sum(a, b): return a * b", "assert sum(2, 3) == 6"),
            ("def f(items): items.sort()", "items = [3, 1, 2]\nf(items)\nassert items == [1, 2, 3]"),
            ("def f(d): d['x'] = 1", "d = {}\nf(d)\nassert d == {'x': 1}"),
            ("def f(g, x): return g(g(x))", "assert f(lambda n: n * 3, 2) == 18"),
            ("def f(g, items): return list(map(g, items))", "assert f(len, ['a', 'bb']) == [1, 2]"),
            ("def f(n):\n    for i in range(n): yield i", "assert list(f(3)) == [0, 1, 2]\nassert next(f(1)) == 0"),
            ("def f(n): return lambda m: n + m", "assert f(2)(3) == 5"),
            ("import math\ndef f(x): return math.sqrt(x)", "assert math.isclose(f(2) ** 2, 2)"),
            (
                "def f(): raise ValueError('no')",
                "try:\n    f()\n    assert False\nexcept ValueError as error:\n    assert str(error) == 'no'",
            ),
            (
                "class Empty(KeyError): pass\ndef f(): raise Empty('x')",
                "try:\n    f()\n    raise SystemError\nexcept Empty: pass",
            ),
            (
                "class Stack:\n    def __init__(self): self.items = []\n    def push(self, x): self.items.append(x)\n"
                "    def pop(self): return self.items.pop()\n    def __len__(self): return len(self.items)",
                "s = Stack()\ns.push(1)\ns.push('two')\nassert len(s) == 2\n"
                "assert s.pop() == 'two'\nassert s.items == [1]\nassert s",
            ),
            (
                "class V:\n    def __init__(self, x): self.x = x\n    def __add__(self, o): return V(self.x + o.x)\n"
                "    def __mul__(self, n): return V(self.x * n)\n    def __eq__(self, o): return self.x == o.x",
                "assert V(1) + V(2) == V(3)\nassert (V(2) * 3).x == 6\nassert V(1) != V(2)\nassert isinstance(V(1), V)",
            ),
            (
                "def total(node):\n    return 0 if node is None else node.value + total(node.next)",
                "class Node:\n    def __init__(self, value, next=None):\n        self.value, self.next = value, next\n"
                "assert total(Node(1, Node(2))) == 3",
            ),
            ("from enum import IntEnum\nclass C(IntEnum):\n    RED = 1\ndef f(): return C.RED", "assert f() == 1"),
            (
                "from decimal import Decimal\ndef f(): return Decimal('0.1') * 3",
                "from decimal import Decimal\nassert f() == Decimal('0.3')",
            ),
            (
                "import datetime\ndef f(): return datetime.date(2024, 2, 29)",
                "import datetime\nassert f() == datetime.date(2024, 2, 29)",
            ),
            ("def f(xs): return [x for x in xs]", "assert f(i * i for i in range(3)) == [0, 1, 4]"),
        ],
    )  # fmt: skip
    def test_assertions_see_what_they_would_see_in_one_process(self, code, test):
        (verdict,) = Sandbox().run_tests(code, [AssertTest(test)])

        assert (verdict.outcome, verdict.reason) == ("passed", "")

    def test_a_failed_assertion_names_its_line(self):
        code, test = "def f(x): return x", "x = 2\nassert f(1) == 1\nassert f(x) == 3, 'wrong'"

        (verdict,) = Sandbox().run_tests(code, [AssertTest(test)])

        assert (verdict.outcome, verdict.reason) == ("failed", "AssertionError: wrong at `assert f(x) == 3, 'wrong'`")

    def test_code_that_does_not_load_says_where(self):
        (verdict,) = Sandbox().run_tests("x = 1\ny = x / 0\n", [CallTest("f", [], 1)])

        assert (verdict.outcome, verdict.reason) == (
            "error",
            "the code does not load: ZeroDivisionError: division by zero (line 2)",
        )

    def test_programs_are_judged_by_what_they_print(self):
        code = "n = int(input())\nprint(n * 2, ' ')\nprint()"
        tests = [ProgramTest("2", "4"), ProgramTest("2", "5"), ProgramTest("x", "1"), ProgramTest("2", "4\n4")]

        verdicts = Sandbox().run_tests(code, tests)

        assert [(verdict.outcome, verdict.reason) for verdict in verdicts] == [
            ("passed", ""),
            ("failed", "line 1: expected '5', got '4'"),
            ("error", "ValueError: invalid literal for int() with base 10: 'x'"),
            ("failed", "line 2: expected '4', got nothing"),
        ]

    def test_tests_do_not_see_each_other(self):
        """Neither through variables, nor files, nor processes left behind."""
        code = """
import os
seen = []
def f():
    seen.append(1)
    open("trace", "a").write("x")
    if os.fork() == 0:
        while True: os.sched_yield()
    return [len(seen), os.path.getsize("trace")]
"""
        verdicts = Sandbox().run_tests(code, [CallTest("f", [], [1, 1])] * 3)

        assert [verdict.outcome for verdict in verdicts] == ["passed"] * 3

    def test_one_test_that_hangs_does_not_take_the_others_along(self):
        code = "def f(n):\n    while n == 2: pass\n    return n"

        verdicts = Sandbox(Limits(cpu_seconds=1)).run_tests(code, [CallTest("f", n, n) for n in (1, 2, 3)])

        assert [verdict.outcome for verdict in verdicts] == ["passed", "timeout", "passed"]

    def test_after_three_timeouts_the_rest_are_not_tried(self):
        code = "def f(n):\n    while True: pass"

        verdicts = Sandbox(Limits(cpu_seconds=1)).run_tests(code, [CallTest("f", n, n) for n in range(20)])

        assert {verdict.outcome for verdict in verdicts} == {"timeout"}
        assert Counter(verdict.reason for verdict in verdicts) == {
            "used more than 1 s of processor time": 3,
            "not tried: the code had already run out of time on others": 17,
        }

    def test_a_test_that_is_itself_broken_is_not_blamed_on_the_code(self):
        (verdict,) = Sandbox().run_tests("x = 1", [AssertTest("assert x == 1", setup="import no_such_module")])

        assert (verdict.outcome, verdict.reason) == ("broken", "ModuleNotFoundError: No module named 'no_such_module'")
        with pytest.raises(ConfigurationError, match="the test code does not parse"):
            Sandbox().run_tests("x = 1", [AssertTest("assert (")])

    def test_a_test_that_never_ends_is_ended(self):
        (verdict,) = Sandbox(Limits(cpu_seconds=1)).run_tests(
            "def f(): pass", [AssertTest("while True: pass\nassert f()")]
        )

        assert (verdict.outcome, verdict.reason) == ("timeout", "used more than 1 s of processor time")

    def test_no_tests_give_no_verdicts(self):
        assert Sandbox().run_tests("while True: pass", []) == []


# Each tries to pass a test of `add(1, 2) == 3` without adding: the code, the outcome and the reason that is given.
FORGERIES = {
    "exits before the tests": ("import os\nos._exit(0)", "ended", "exited with status 0 before it had answered"),
    "calls sys.exit": ("import sys\nsys.exit(0)", "error", "the code does not load: SystemExit: 0 (line 2)"),
    "exits when called": (
        "import os\ndef add(a, b): os._exit(0)",
        "ended",
        "exited with status 0 before it had answered",
    ),
    "calls sys.exit when called": ("def add(a, b): exit(0)", "error", "the solution raised SystemExit: 0"),
    "prints a verdict": (
        'print(\'{"outcome": "passed", "reason": ""}\')\ndef add(a, b): return 0',
        "failed",
        "expected 3, got 0",
    ),
    "writes verdicts to every file": (
        "import os, json, struct\n"
        "data = json.dumps({'outcome': 'passed', 'reason': ''}).encode()\n"
        "for fd in range(64):\n"
        "    try: os.write(fd, struct.pack('=Q', len(data)) + data)\n"
        "    except OSError: pass\n"
        "os._exit(0)",
        "ended",
        "exited with status 0 before it had answered",
    ),
    "equals everything": (
        "class Yes:\n"
        "    def __eq__(self, other): return True\n"
        "    def __sub__(self, other): return 0\n"
        "    __rsub__ = __sub__\n"
        "    def __abs__(self): return 0\n"
        "    def __lt__(self, other): return True\n"
        "    __le__ = __gt__ = __ge__ = __lt__\n"
        "    def __bool__(self): return True\n"
        "def add(a, b): return Yes()",
        "failed",
        "expected 3, got an object of the solution's own",
    ),
    "differs from nothing by an object": (
        "class Yes:\n"
        "    def __sub__(self, other): return self\n"
        "    def __abs__(self): return 0\n"
        "    def __float__(self): return 0.0\n"
        "    def __lt__(self, other): return True\n"
        "def add(a, b): return Yes()",
        "failed",
        "expected 3, got an object of the solution's own",
    ),
    "equals everything as a number": (
        "class Yes(int):\n"
        "    def __eq__(self, other): return True\n"
        "    __hash__ = int.__hash__\n"
        "def add(a, b): return Yes(0)",
        "failed",
        "expected 3, got 0",
    ),
    "redefines what tests use": (
        "import builtins\n"
        "builtins.abs = abs = lambda x: 0\n"
        "class AssertionError(Exception): pass\n"
        "builtins.AssertionError = AssertionError\n"
        "def add(a, b): return 0",
        "failed",
        "expected 3, got 0",
    ),
    "patches the harness": (
        "import gc, sys\n"
        "for thing in gc.get_objects():\n"
        "    if type(thing).__name__ == 'Peer':\n"
        "        type(thing).encode = lambda self, value: {'mine': 0}\n"
        "for depth in range(3):\n"
        "    sys._getframe(depth).f_globals['examine'] = lambda *a: 0\n"
        "def add(a, b): return 0",
        "error",
        None,
    ),
    "speaks for the harness": (
        "import os, json, struct\n"
        "def say(message):\n"
        "    data = json.dumps(message).encode()\n"
        "    os.write(4, struct.pack('=Q', len(data)) + data)\n"
        "say(['loaded', ''])\n"
        "say(['ask', 'call', [{'builtin': 'exec'}, ['import os; os._exit(0)'], {'dict': []}]])\n"
        "say(['ask', 'get', [{'builtin': 'print'}, '__self__']])\n"
        "say(['ask', 'name', ['expected']])\n"
        "say(['passed'])\n"
        "def add(a, b): return 0",
        "ended",
        None,
    ),
}
if strongest_protection().shields_processes:  # elsewhere it would reach the test run
    FORGERIES["kills its judge"] = (
        "import os\ndef add(a, b):\n    os.kill(-1, 9)\n    return 3",
        *(
            ("ended", "ended the process that tests it")
            if "namespaces" in strongest_protection().layers
            else (None, None)
        ),
    )


class TestForgery:
    @pytest.mark.parametrize("name", FORGERIES)
    def test_a_forged_pass_is_refused(self, name):
        code, outcome, reason = FORGERIES[name]
        tests = [
            CallTest("add", [1, 2], 3),
            AssertTest("assert add(1, 2) == 3"),
            AssertTest("assert abs(add(1, 2) - 3) < 1e-6"),
            AssertTest("import math\nassert math.isclose(add(1, 2), 3)"),
        ]

        verdicts = Sandbox().run_tests(code, tests)

        assert [verdict.passed for verdict in verdicts] == [False] * 4
        assert outcome in (verdicts[0].outcome, None)
        assert reason in (verdicts[0].reason, None)

    @each_level
    def test_leaving_early_passes_at_no_level(self, protection, marked):
        tests = [CallTest("add", [1, 2], 3), AssertTest("assert add(1, 2) == 3")]

        verdicts = sandbox_at(marked(protection)).run_tests("import os\nos._exit(0)", tests)

        assert [verdict.reason for verdict in verdicts] == ["exited with status 0 before it had answered"] * 2

    def test_a_test_that_expects_an_exception_is_not_passed_by_vanishing(self):
        test = AssertTest("try:\n    f()\nexcept BaseException:\n    pass\nelse:\n    raise SystemError")

        (raises, vanishes) = (
            Sandbox().run_tests(f"import os\ndef f(): {body}", [test])[0]
            for body in ("raise ValueError", "os._exit(0)")
        )

        assert raises.passed
        assert (vanishes.outcome, vanishes.reason) == ("ended", "exited with status 0 before it had answered")

    def test_what_is_expected_never_enters_the_solutions_process(self):
        code = """
import gc, os, sys
def f(n):
    places = [repr(thing) for thing in gc.get_objects()] + [repr(os.environ), repr(sys.argv)]
    for fd in (0, 3):
        os.set_blocking(fd, False)
        try: places.append(repr(os.read(fd, 10**6)))
        except OSError: pass
        os.set_blocking(fd, True)
    mark = "".join(["qzx", "jwv"])
    return sum(mark in text for text in places)
"""
        tests = [CallTest("f", 1, "qzxjwv"), AssertTest("found = f(1)\nassert found == 'qzxjwv', found")]

        call, asserted = Sandbox().run_tests(code, tests)

        assert call.reason == "expected 'qzxjwv', got 0"
        assert asserted.reason.startswith("AssertionError: 0 at")

    def test_the_solution_cannot_look_through_a_tests_own_objects(self):
        """A generator handed over would lead by its frame to the variables of the test."""
        code = """
def f(gift):
    for name in ("gi_frame", "gi_code", "__globals__", "__self__"):
        try: return getattr(gift, name)
        except AttributeError: pass
    return "nothing"
"""
        hand_over = "answer = 42\nassert f({}) == 'nothing', f({})"
        handed = ["(answer for _ in 'ab')", "(lambda: answer)", "open"]

        verdicts = Sandbox().run_tests(code, [AssertTest(hand_over.format(gift, gift)) for gift in handed])

        assert [verdict.outcome for verdict in verdicts] == ["passed"] * 3


class TestLevels:
    def test_the_level_in_use_is_the_strongest_that_works(self):
        assert strongest_protection() == AVAILABLE[0]
        assert sandbox_level() == Sandbox().level == AVAILABLE[0].level

    def test_a_level_that_does_not_work_is_an_error_of_the_sandbox(self):
        impossible = Protection((), "/no/such/python")

        with pytest.raises(SandboxError, match="/no/such/python does not start"):
            Sandbox(protection=impossible).run_program("print(1)")

    def test_an_interpreter_that_is_none_is_an_error_of_the_sandbox(self):
        with pytest.raises(SandboxError, match="the sandbox ended with status 1"):
            Sandbox(protection=Protection((), "/bin/false")).run_program("print(1)")

    def test_code_never_runs_as_root(self):
        assert Sandbox().run_program("import os; print(os.getuid() == 0 or os.geteuid() == 0)").stdout == "False\n"

    def test_levels_are_named_after_their_layers(self):
        assert Protection(("namespaces", "user"), sys.executable).level == "namespaces+user"
        assert Protection((), sys.executable).level == "limits"

    def test_first_use_by_many_threads_finds_one_level(self):
        found: list[str] = []
        threads = [threading.Thread(target=lambda: found.append(sandbox_level())) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        assert found == [AVAILABLE[0].level] * 4


class TestLimits:
    @pytest.mark.parametrize("wrong", [0, -1, 1.5, True, None])
    def test_a_limit_is_a_positive_whole_number(self, wrong):
        with pytest.raises(ConfigurationError, match="cpu_seconds is a whole number of at least 1, got"):
            Limits(cpu_seconds=wrong)

    def test_memory_must_hold_an_interpreter(self):
        with pytest.raises(ConfigurationError, match="memory_mb is at least 64, got 8"):
            Limits(memory_mb=8)


scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary()
keys = st.text() | st.integers() | st.tuples(st.integers())
plain_values = st.recursive(
    scalars | st.decimals(allow_nan=False),
    lambda inner: st.lists(inner) | st.tuples(inner, inner) | st.dictionaries(keys, inner),
    max_leaves=8,
)


class TestValues:
    @settings(max_examples=60, deadline=None)
    @given(plain_values)
    def test_plain_values_come_back_as_they_went(self, value):
        values = Values()

        returned = values.decode(json.loads(json.dumps(values.encode(value))))

        assert returned == value
        assert type(returned) is type(value)

    @pytest.mark.parametrize(
        "value", [{1, 2}, frozenset({"a"}), 2**100, -(2**64), complex(1, 2), range(3), Decimal("0.10")]
    )
    def test_what_json_does_not_know_keeps_its_kind(self, value):
        values = Values()

        assert repr(values.decode(values.encode(value))) == repr(value)

    def test_objects_are_refused(self):
        with pytest.raises(TypeError, match="a function cannot be sent into the sandbox"):
            Values().encode(lambda: 0)
