"""How large the house is, and how much of it a call of `evaluate`, a row, a memory turn, a page and a comparison walk through.

`make shape` prints it. Modules and functions are those of `themis` that run, profiled after a first call that imports
everything; what one row or turn costs is what a larger run calls more often than a smaller one.
"""

from __future__ import annotations

import ast
import re
import statistics
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from types import FrameType

PROJECT = Path(__file__).resolve().parents[1]
PACKAGE = PROJECT / "themis"

CONFIGURATION = """
config: {run_name: shape%d}
datasets:
  args: {memory_span: %d, dataset_examples: 1}
  datasets: [{name: colours}]
"""

Calls = Counter[tuple[str, str]]


class Profile:
    """Counts calls of ours in every thread that is started while it is open, as long as `counting` is set."""

    def __init__(self) -> None:
        self.calls: Calls = Counter()
        self.counting = False

    def __enter__(self) -> Profile:
        threading.setprofile(self._count)
        sys.setprofile(self._count)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)
        threading.setprofile(None)

    def _count(self, frame: FrameType, event: str, argument: object) -> None:
        if not self.counting or event != "call":
            return
        name, code = str(frame.f_globals.get("__name__", "")), frame.f_code
        if name.partition(".")[0] == "themis" and code.co_name not in (
            "<module>",
            "<genexpr>",
            "<listcomp>",
            "<dictcomp>",
        ):
            self.calls[name, code.co_qualname] += 1


def profile(work: Callable[[], object]) -> Calls:
    """(module, function) of ours -> how often it was called."""
    with Profile() as found:
        found.counting = True
        work()
    return found.calls


def walk_evaluate(folder: Path) -> Calls:
    """What a whole call of `evaluate` with one row and a new store calls."""
    import themis

    data = [{"id": "1", "question": "1?", "answer": "1"}]

    def evaluate(name: str) -> object:
        return themis.evaluate(data, model="fake/perfect", prompt="{question}", storage=folder / name, progress=False)

    evaluate("first")
    return profile(lambda: evaluate("second"))


def walk_row(folder: Path) -> Calls:
    """What every further row of a sample run calls."""
    import themis

    def evaluate(rows: int) -> Callable[[], object]:
        data = [{"id": str(n), "question": f"{n}?", "answer": str(n)} for n in range(rows)]
        return lambda: themis.evaluate(
            data, model="fake/perfect", prompt="{question}", storage=folder / "rows", run_id=f"r{rows}", progress=False
        )

    evaluate(1)()
    return _growth(profile(evaluate(40)), profile(evaluate(240)))


def walk_turn(folder: Path) -> Calls:
    """What every further turn of a conversation calls."""
    from themis.api import perform
    from themis.config.specification import MemorySpecification
    from themis.storage import ExperimentStorage

    store = ExperimentStorage(folder / "turns")

    def converse(span: int) -> Callable[[], object]:
        path = folder / f"{span}.yml"
        path.write_text(CONFIGURATION % (span, span), encoding="utf-8")
        asked = MemorySpecification(
            configuration=str(path), agent="window(100000)", run_id=f"t{span}", max_message_tokens=60
        )
        return lambda: perform(asked, store, progress=False)

    converse(500)()
    return _growth(profile(converse(1_000)), profile(converse(5_000)))


def walk_page(folder: Path) -> Calls:
    """What a request of one run's page calls."""
    from fastapi.testclient import TestClient

    from themis.server import create_app

    _two_runs(folder / "page")
    with Profile() as found, TestClient(create_app(folder / "page"), base_url="http://127.0.0.1") as client:
        assert client.get("/runs/a").status_code == 200
        found.counting = True
        assert client.get("/runs/a?page=1").status_code == 200
        found.counting = False
    return found.calls


def walk_comparison(folder: Path) -> Calls:
    """What comparing two runs calls."""
    from themis.comparison import compare_runs

    _two_runs(folder / "compare")

    def compare() -> object:
        return compare_runs(["a", "b"], storage_path=folder / "compare", metrics=["ExactMatch"])

    compare()
    return profile(compare)


def _two_runs(folder: Path) -> None:
    import themis

    data = [{"id": str(n), "question": f"{n}?", "answer": str(n)} for n in range(20)]
    for run_id, model in (("a", "fake/noisy-0.3"), ("b", "fake/noisy-0.6")):
        themis.evaluate(data, model=model, prompt="{question}", storage=folder, run_id=run_id, progress=False)


def _growth(small: Calls, large: Calls) -> Calls:
    """What the larger run calls at least as many times more often as it has items more, all but a few."""
    return Counter({name: count - small[name] for name, count in large.items() if count - small[name] > 3})


# --- size -------------------------------------------------------------------------------------------------------------


def measure() -> dict[str, float]:
    """Files, lines, lines with `Any`, and how long functions are without their docstrings."""
    files = sorted(PACKAGE.rglob("*.py"))
    texts = [path.read_text(encoding="utf-8") for path in files]
    lengths = sorted(length for _, length in function_lengths(texts))
    return {
        "files": len(files),
        "lines": sum(text.count("\n") for text in texts),
        "lines with Any": sum(len(re.findall(r"^.*\bAny\b.*$", text, re.MULTILINE)) for text in texts),
        "functions": len(lengths),
        "function length p50": statistics.median(lengths),
        "function length p95": lengths[int(len(lengths) * 0.95)],
        "longest function": lengths[-1],
    }


def function_lengths(texts: Iterable[str]) -> list[tuple[str, int]]:
    """Each function's name and lines."""
    return [
        (node.name, _length(node))
        for text in texts
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]


def _length(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines without the docstring, which may say all there is to say."""
    first = function.body[0]
    documented = ast.get_docstring(function) is not None
    said = (first.end_lineno or first.lineno) - first.lineno + 1 if documented else 0
    return (function.end_lineno or function.lineno) - function.lineno + 1 - said


WALKS = {
    "one evaluate": walk_evaluate,
    "one row": walk_row,
    "one turn": walk_turn,
    "one page": walk_page,
    "one comparison": walk_comparison,
}


def main() -> None:
    for name, value in measure().items():
        print(f"{name:<22} {value:>8,.0f}")
    print(f"\n{'':<22} {'modules':>8} {'functions':>10} {'calls':>8}")
    for name, walk in WALKS.items():
        with tempfile.TemporaryDirectory() as folder:
            calls = walk(Path(folder))
        modules = {module for module, _ in calls}
        print(f"{name:<22} {len(modules):>8} {len(calls):>10} {sum(calls.values()):>8}")
        if "-v" in sys.argv:
            for module in sorted(modules):
                print(f"    {module}: {', '.join(sorted(name for found, name in calls if found == module))}")


if __name__ == "__main__":
    main()
