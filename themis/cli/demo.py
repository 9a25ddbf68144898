"""`themis demo`: a first run on this machine, without a key or the internet."""

from __future__ import annotations

import contextlib
import importlib.util
import logging
import random
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import click

from themis import api
from themis.cli.output import format_number, print_table, storage_option
from themis.cli.terminal import echo_error, echo_text
from themis.comparison import StatisticalTest, compare_runs
from themis.core.entities import ExperimentReport
from themis.core.files import atomic_write
from themis.exceptions import EvaluationError, ThemisError
from themis.experiment.export import export_report_bundle
from themis.generation import models
from themis.memory.report.pages import agents_page
from themis.memory.sweep import Sweep, read_sweep, run_sweep
from themis.storage import ExperimentStorage
from themis.storage.database import is_url

RUNS = {
    "demo-plain": (
        "Numbers: {numbers_str}\nTarget: {target}\n"
        "Write one arithmetic expression with these numbers that equals the target. Answer with the expression only."
    ),
    "demo-examples": (
        "Numbers: 2, 10, 7\nTarget: 27\nExpression: 2 * 10 + 7\n\n"
        "Numbers: 4, 6, 5\nTarget: 29\nExpression: 4 * 6 + 5\n\n"
        "Numbers: {numbers_str}\nTarget: {target}\nExpression:"
    ),
}
# The model may write nothing but an expression of three numbers.
GRAMMAR = 'root ::= num " " op " " num " " op " " num\nnum ::= [1-9] [0-9]?\nop ::= [-+*/]'
SMALL_MODEL = "smollm2"

MEMORY = """
config: {run_name: demo-memory}
datasets:
  args: {memory_span: 1000, dataset_examples: 2}
  datasets: [{name: colours}, {name: names}, {name: shopping}, {name: jokes}, {name: prospective_memory}, {name: spy_meeting}]
"""
# Perfect memory, perfect memory of the last 2,000 tokens, no memory at all.
AGENTS = ("oracle", "window(2000)", "amnesiac")
SPANS = (1_000, 2_000, 4_000, 8_000)
# Fewer conversations could not tell even perfect memory from none beyond chance.
SEEDS = 3


@click.command()
@storage_option
@click.option("--model", help="Model to ask; by default a small real one that runs in this process.")
@click.option("-n", "--limit", type=click.IntRange(2, 1000), default=10, show_default=True, help="Puzzles.")
def demo(storage: str, model: str | None, limit: int) -> None:
    """Countdown with two prompts on a real model in this process, compared with statistics; then three agents' memory."""
    chosen, options = (model, dict[str, str]()) if model else _embedded_model()
    echo_error(f"Countdown, {limit} easy puzzles, two prompts, model {chosen}")
    reports = {
        run_id: api.evaluate(
            easy_puzzles(limit),
            model=chosen,
            prompt=prompt,
            metrics=["countdown_validity"],
            provider_options=options,
            max_tokens=16,
            workers=1,
            run_id=run_id,
            storage=storage,
            resume=True,
            allow_drift=True,
        )
        for run_id, prompt in RUNS.items()
    }
    _print_reports(reports)
    _compare(storage)
    folder = _folder(storage)
    memory_page = _run_memory(ExperimentStorage(storage), folder)
    page = folder / "demo-report.html"
    export_report_bundle(reports["demo-plain"], html_path=page, run_id="demo-plain", title="Countdown, plain prompt")
    click.echo(f"\nreports to open in a browser:\n  {page}\n  {memory_page}")
    click.echo(f"next: {_name_program()} list runs --verbose --storage {storage}")


def _name_program() -> str:
    """What to type for `themis`, which right after `make demo` is in an environment that is not activated."""
    is_script = Path(sys.argv[0]).name == "themis"
    return sys.argv[0] if is_script and not shutil.which("themis") else "themis"


def _embedded_model() -> tuple[str, dict[str, str]]:
    """The small real model where it can be had; otherwise a fake one, and that is said aloud."""
    if importlib.util.find_spec("xllamacpp") is None:
        echo_error("no xllamacpp (pip install 'themis-eval[local]'): using a fake model instead")
        return "fake/noisy-0.4", {}
    try:
        if not models.is_installed(models.find_in_catalogue(SMALL_MODEL)):
            click.echo(f"installing the model {SMALL_MODEL} (98 MB, once) ...", err=True)
            models.install_model(SMALL_MODEL)
    except ThemisError as error:
        echo_error(f"{error}: using a fake model instead")
        return "fake/noisy-0.4", {}
    return f"local/{SMALL_MODEL}", {"grammar": GRAMMAR}


def easy_puzzles(count: int, seed: int = 7) -> list[dict[str, object]]:
    """Puzzles that a very small model has a chance with: every other one is just the sum of its numbers."""
    chance = random.Random(seed)
    rows = []
    for index in range(count):
        a, b, c = chance.randint(2, 9), chance.randint(2, 12), chance.randint(1, 20)
        target = a + b + c if index % 2 == 0 else a * b + c
        answer = f"{a} + {b} + {c}" if index % 2 == 0 else f"{a} * {b} + {c}"
        reference = {"numbers": [a, b, c], "target": target, "answer": answer}
        rows.append({"id": index, "numbers_str": f"{a}, {b}, {c}", "target": target, "reference": reference})
    return rows


def _compare(storage: str) -> None:
    """Both prompts saw the same puzzles, so they are compared puzzle by puzzle."""
    compared = compare_runs(list(RUNS), storage_path=storage, statistical_test=StatisticalTest.AUTO)
    for row in compared.pairwise_results:
        test = row.test_result
        if test is None:
            continue
        p_value = "" if test.p_value is None else f", p = {test.p_value:.3f}"
        verdict = "a real difference" if row.is_significant() else "no difference can be claimed from so few puzzles"
        echo_text(f"{row.run_a_id} - {row.run_b_id}: {row.delta:+.2f} ({test.test_name}{p_value}): {verdict}")


def _folder(storage: str) -> Path:
    """Where the pages go: beside the runs, or here if those are in a database elsewhere."""
    return Path() if is_url(storage) else Path(storage)


def _run_memory(store: ExperimentStorage, folder: Path) -> Path:
    """Twelve memory tests in one conversation, over four spans: perfect memory, a short window, none. Returns the page."""
    configuration, page = folder / "demo-memory.yml", folder / "demo-memory.html"
    configuration.write_text(MEMORY, encoding="utf-8")
    sweep = Sweep(configuration=str(configuration), agents=AGENTS, spans=SPANS, seeds=SEEDS)
    total, width = len(AGENTS) * len(SPANS) * SEEDS, len(f"{SPANS[-1]:,}")
    echo_error(f"\nMemory: twelve tests in one conversation, {len(AGENTS)} agents, {total} conversations")
    with _quiet("themis.memory.runner"):
        failed = run_sweep(sweep, store)
    if failed:
        raise EvaluationError(f"{len(failed)} of {total} conversations are not complete; run the same command again")
    found = read_sweep(sweep, store)
    with atomic_write(page) as file:
        file.write(agents_page(found.agents, found.spans, found.comparisons).encode("utf-8", "backslashreplace"))
    rows = [
        (f"{span:>{width},}", *(_bar(one.points[place].mean) for one in found.spans))
        for place, span in enumerate(SPANS)
    ]
    print_table(("tokens to bridge", *AGENTS), rows, title="Memory")
    echo_text("The window agent remembers the last 2,000 tokens perfectly, and nothing before them.")
    return page


@contextlib.contextmanager
def _quiet(name: str) -> Iterator[None]:
    """Without warnings: tests that take a few tokens more than their span are marked in the report."""
    logger = logging.getLogger(name)
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(before)


def _bar(share: float) -> str:
    """A score as a number and a picture."""
    return f"{share:.2f} {'█' * round(10 * share)}{'·' * (10 - round(10 * share))}"


def _print_reports(reports: dict[str, ExperimentReport]) -> None:
    rows = []
    for run_id, report in reports.items():
        metric = report.metric("CountdownValidity")
        interval = f"[{metric.ci[0]:.2f}, {metric.ci[1]:.2f}]" if metric.ci else "n/a"
        rows.append((run_id, format_number(metric.mean, 2), interval, metric.count, metric.failed))
    print_table(("run", "solved", "95 % interval", "count", "failed"), rows, title="Countdown")
    for run_id, report in reports.items():
        record = report.generation_results[0]
        said = record.output.text if record.output else "nothing"
        asked = record.task.prompt.context
        echo_text(f"{run_id}: to {asked['numbers_str']} -> {asked['target']} it said {said!r}")
