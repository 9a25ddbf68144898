"""The process of the solution: runs it as a program, or loads it and answers calls to what it defines."""

from __future__ import annotations

import atexit
import linecache
import os
import shlex
import sys
import types
from collections.abc import Sequence

from themis.evaluation.sandbox.inside.wire import SOLUTION_MODULE, Peer, last_line_in

_FILE = "<solution>"


def run_as_program(code: str) -> int:
    """Runs the code as `python file.py` would, and returns its exit status."""
    try:
        _execute(code, "__main__")
        status = 0
    except SystemExit as leaving:
        status = _exit_status(leaving)
    except BaseException as error:  # boundary: the solution's code
        _print_error(error)
        status = 1
    return _finish(status)


def run_as_step(code: str, language: str, packages: Sequence[str]) -> int:
    """Runs the code where earlier programs left their files, as `python file.py` or `sh file.sh` would."""
    # What the interpreter would write down of modules is no work of the program's.
    os.environ.update(PYTHONDONTWRITEBYTECODE="1", **({"PYTHONPATH": ":".join(packages)} if packages else {}))
    if language == "shell":
        shell = next((path for path in ("/bin/bash", "/usr/bin/bash") if os.path.exists(path)), "/bin/sh")
        os.execv(shell, [shell, "-c", f"{_python_by_name()}\n{code}"])
    sys.path.insert(0, os.getcwd())
    return run_as_program(code)


def _python_by_name() -> str:
    """`python3` in a shell: the interpreter may lie where no shell looks for it."""
    return "\n".join(f'{name}() {{ {shlex.quote(sys.executable)} "$@"; }}' for name in ("python", "python3"))


def serve_calls(code: str, incoming: int, outgoing: int) -> int:
    """Loads the code as a module, says whether that worked, then answers until nobody asks any more."""
    names: dict[str, object] = {}
    peer = Peer(incoming, outgoing, find=lambda path: _find(names, path))
    try:
        names.update(_execute(code, SOLUTION_MODULE))
    except BaseException as error:  # boundary: the solution's code
        line = error.lineno if isinstance(error, SyntaxError) else last_line_in(_FILE, error)
        place = f" (line {line})" if line else ""
        text = error.msg if isinstance(error, SyntaxError) else error
        peer.send(["unloaded", f"{type(error).__name__}: {text}{place}"[:2000]])
        return 1
    peer.send(["loaded", ""])
    peer.serve()
    return 0


def _execute(code: str, name: str) -> dict[str, object]:
    _forget_the_harness()
    module = types.ModuleType(name)
    sys.modules[name] = module
    # Tracebacks and inspect.getsource find the text here, for there is no file.
    linecache.cache[_FILE] = (len(code), None, code.splitlines(keepends=True), _FILE)
    exec(compile(code, _FILE, "exec", dont_inherit=True), module.__dict__)
    return module.__dict__


def _forget_the_harness() -> None:
    """The solution finds what `python` would give it: no modules of ours, `exit` and `quit`."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "themis"]:
        del sys.modules[name]
    import _sitebuiltins
    import builtins

    for name in ("exit", "quit"):
        setattr(builtins, name, _sitebuiltins.Quitter(name, "Ctrl-D (i.e. EOF)"))
    sys.argv = [_FILE]
    sys.dont_write_bytecode = True


def _find(names: dict[str, object], path: str) -> object:
    """`name` or `Class.method`; a class on the way is instantiated without arguments."""
    first, *rest = path.split(".")
    if first not in names:
        raise NameError(f"the solution defines no {first!r}")
    value = names[first]
    for part in rest:
        if isinstance(value, type):
            value = value()
        value = getattr(value, part)
    return value


def _exit_status(leaving: SystemExit) -> int:
    if leaving.code is None or isinstance(leaving.code, int):
        return (leaving.code or 0) & 0xFF
    print(leaving.code, file=sys.stderr)
    return 1


def _print_error(error: BaseException) -> None:
    if isinstance(error, MemoryError):
        # There may be no memory for anything longer.
        os.write(2, b"MemoryError\n")
        return
    import traceback

    inner = error.__traceback__
    while inner is not None and inner.tb_frame.f_code.co_filename != _FILE:
        inner = inner.tb_next
    traceback.print_exception(type(error), error, inner)


def _finish(status: int) -> int:
    """What the interpreter does at the end of a program: waits for threads, runs exit functions, flushes."""
    try:
        if "threading" in sys.modules:
            sys.modules["threading"]._shutdown()
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
    except BaseException as error:  # boundary: the solution's exit functions and streams
        _print_error(error)
        return status or 120
    return status
