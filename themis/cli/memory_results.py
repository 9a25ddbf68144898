"""`themis memory report`, `sweep`, `override`, `import` and `export`: what came of memory runs, here and elsewhere."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from themis.backends.ray import RayExecutionBackend
from themis.cli.output import (
    command_words,
    interruptible,
    json_option,
    print_json,
    print_table,
    storage_option,
)
from themis.cli.terminal import echo_error
from themis.comparison.reports import TIE
from themis.core.files import atomic_write
from themis.core.registry import nearest
from themis.exceptions import ConfigurationError, EvaluationError
from themis.experiment.importing import NO_LIMITS
from themis.memory.assembling import load_user_code
from themis.memory.exporting import export_run
from themis.memory.importing import ImportedAgent, import_folder
from themis.memory.overrides import override_score, read_overrides, withdraw_override
from themis.memory.report import RunView, read_view
from themis.memory.report.charts import write_figures
from themis.memory.report.pages import (
    agents_figures,
    agents_page,
    agents_table,
    latex_table,
    markdown_table,
    run_figures,
    run_page,
)
from themis.memory.sweep import Sweep, SweepReport, SweepRun, parse_spans, plan_sweep, read_sweep, run_sweep
from themis.runs.resuming import how_to_repeat
from themis.storage import ExperimentStorage

__all__ = ["RESULT_COMMANDS", "export", "import_", "override", "report", "sweep"]

_SUFFIXES = (".html", ".md", ".tex")
_INTERRUPTED = 130


@click.command()
@click.argument("run_ids", metavar="RUN...", nargs=-1, required=True)
@click.option("--to", "target", type=click.Path(dir_okay=False),
              help="Write a page (.html) or a table (.md, .tex) to this file.")  # fmt: skip
@click.option("--figures", type=click.Path(file_okay=False), help="Write the main figures as SVG files to this folder.")
@click.option("--png", "as_png", is_flag=True, help="With --figures: PNG files too, drawn by an installed browser.")
@click.option("--scores", "judged_as", metavar="NAME",
              help="Which verdicts to show where a run was judged more than once.  [default: the current ones]")  # fmt: skip
@storage_option
@json_option
def report(
    run_ids: tuple[str, ...],
    target: str | None,
    figures: str | None,
    as_png: bool,
    judged_as: str | None,
    storage: str,
    as_json: bool,
) -> None:
    """What came of a memory run, or of several agents beside each other."""
    suffix = None if target is None else Path(target).suffix.lower()
    if suffix is not None and suffix not in _SUFFIXES:
        raise ConfigurationError(f"--to writes {', '.join(_SUFFIXES)}, got {target!r}{nearest(suffix, _SUFFIXES)}")
    if len(set(run_ids)) < len(run_ids):
        raise ConfigurationError("a run is given twice; give each run once")
    store = ExperimentStorage(storage)
    views = [read_view(store, run_id, judged_as=judged_as) for run_id in run_ids]
    if target is not None:
        with atomic_write(target) as file:
            file.write(_render_report(views, suffix or "").encode("utf-8", "backslashreplace"))
        click.echo(f"wrote {target}", err=True)
    if figures is not None:
        drawn = run_figures(views[0]) if len(views) == 1 else agents_figures(views)
        for path in write_figures(drawn, Path(figures), as_png=as_png):
            click.echo(f"wrote {path}", err=True)
    if as_json:
        print_json([view.summary.to_dict() for view in views])
    elif target is None and figures is None:
        _print_views(views)


@click.command()
@click.option("-c", "--configuration", required=True, type=click.Path(exists=True, dir_okay=False), help="YAML file.")
@click.option("-a", "--agent", "agents", multiple=True, required=True, metavar="AGENT", help="Agent, may be repeated.")
@click.option("--spans", required=True, metavar="SPANS", help="Memory spans in tokens, such as 2k,8k,32k.")
@click.option("--seeds", type=click.IntRange(min=1), default=1, show_default=True, help="Runs of each span.")
@click.option("-m", "--max-prompt-size", "max_prompt_tokens", type=click.IntRange(min=1), metavar="TOKENS",
              help="The most tokens an agent may send to its model.")  # fmt: skip
@click.option("--judge", metavar="MODEL", help="Model that decides where words must be understood.")
@click.option("-l", "--local", "is_local", is_flag=True, help="The agents cost nothing.")
@click.option("--parallel", type=click.IntRange(min=1), show_default="1; on Ray, one for each CPU",
              help="So many runs at once.")  # fmt: skip
@click.option("--execution", type=click.Choice(["local", "ray"]), default="local", show_default=True,
              help="Where the runs are made: in processes of this machine, or in those of a Ray cluster.")  # fmt: skip
@click.option("--load", multiple=True, metavar="FILE.py", type=click.Path(exists=True, dir_okay=False),
              help="Python file that registers tests or agents, may be repeated.")  # fmt: skip
@click.option("--to", "target", type=click.Path(dir_okay=False), help="Write the comparative page to this .html file.")
@click.option("--figures", type=click.Path(file_okay=False), help="Write the main figures as SVG files to this folder.")
@storage_option
@json_option
@interruptible
def sweep(
    spans: str,
    parallel: int | None,
    execution: str,
    target: str | None,
    figures: str | None,
    storage: str,
    as_json: bool,
    **given: Any,
) -> None:
    """Run agents over several spans and seeds, or what is left of that, and compare them."""
    wanted = Sweep(spans=parse_spans(spans), **given)
    for file_of_user in wanted.load:
        load_user_code(file_of_user)
    store = ExperimentStorage(storage)
    total = len(plan_sweep(wanted))
    done = 0
    errors: dict[str, str] = {}

    def tell(one: SweepRun, error: str | None) -> None:
        nonlocal done
        done += 1
        if error is not None:
            errors[one.run_id] = error
        click.echo(f"[{done}/{total}] {one.run_id}{'' if error is None else f': {error}'}", err=True)

    try:
        with RayExecutionBackend() if execution == "ray" else nullcontext() as backend:
            run_sweep(wanted, store, parallel=parallel, backend=backend, tell=tell)
    except KeyboardInterrupt as stopped:
        go_on = how_to_repeat(command_words(), storage)
        echo_error(f"sweep interrupted after {done} of {total} runs; everything finished is saved. {go_on}")
        raise click.exceptions.Exit(_INTERRUPTED) from stopped
    incomplete = EvaluationError(
        f"{len(errors)} of {total} runs are not complete ({', '.join(errors)}); run the same command again to go on"
    )
    if len(errors) == total and not any(store.run_exists(run_id) for run_id in errors):
        raise incomplete
    found = read_sweep(wanted, store)
    if target is not None:
        with atomic_write(target) as file:
            file.write(agents_page(found.agents, found.spans, found.comparisons).encode("utf-8", "backslashreplace"))
        click.echo(f"wrote {target}", err=True)
    if figures is not None:
        for path in write_figures(agents_figures(found.agents, found.spans), Path(figures)):
            click.echo(f"wrote {path}", err=True)
    if as_json:
        points = {one.name: [vars(point) for point in one.points] for one in found.spans}
        print_json({"agents": [view.summary.to_dict() for view in found.agents], "spans": points, "failed": errors})
    else:
        _print_sweep(found)
    if errors:
        raise incomplete


def _print_sweep(found: SweepReport) -> None:
    spans = sorted({point.span_tokens for one in found.spans for point in one.points})
    rows = []
    for span in spans:
        points = [next((p for p in one.points if p.span_tokens == span), None) for one in found.spans]
        cells = ["n/a" if p is None else f"{p.mean:.3f} [{p.low:.3f}, {p.high:.3f}]" for p in points]
        rows.append((f"{span:,}", *cells))
    print_table(("span", *(one.name for one in found.spans)), rows)
    for pair in found.comparisons:
        verdict = "undecided" if pair.winner == TIE else f"{pair.winner} is better"
        shown = "n/a" if pair.corrected_p_value is None else f"{pair.corrected_p_value:.4f}"
        click.echo(f"{pair.run_a_id} - {pair.run_b_id}: {pair.delta:+.3f}, corrected p {shown}: {verdict}")


@click.command()
@click.argument("run_id", metavar="RUN")
@click.argument("test_id", metavar="TEST", required=False)
@click.option("--score", type=click.FloatRange(0, 1), help="The score that this test should have, from 0 to 1.")
@click.option("--withdraw", is_flag=True, help="Take an override back.")
@click.option("--reason", default="", help="Why; shown wherever the score is.")
@click.option("--by", default="", help="Who says so.")
@storage_option
@json_option
def override(
    run_id: str,
    test_id: str | None,
    score: float | None,
    withdraw: bool,
    reason: str,
    by: str,
    storage: str,
    as_json: bool,
) -> None:
    """Set a test's score by hand, as a signed record beside the automatic one; without a TEST, list them."""
    store = ExperimentStorage(storage)
    if test_id is not None:
        if withdraw == (score is not None):
            raise ConfigurationError("give either --score or --withdraw")
        if score is not None:
            override_score(store, run_id, test_id, score, reason=reason, by=by)
        else:
            withdraw_override(store, run_id, test_id, reason=reason, by=by)
    records = read_overrides(store, run_id)
    if as_json:
        print_json([asdict(record) for record in records])
        return
    rows = [
        (
            one.test_id,
            "withdrawn" if one.score is None else f"{one.score:g}",
            "n/a" if one.before is None else f"{one.before:g}",
            one.by,
            one.at,
            one.reason,
        )
        for one in records
    ]
    print_table(("test", "score", "automatic", "by", "when", "reason"), rows)


@click.command(name="import")
@click.argument("path", type=click.Path(exists=True, file_okay=False))
@click.option("--name", help="Name of the benchmark.  [default: the one in its configuration]")
@click.option("--no-limits", is_flag=True, help="Read folders of any size: only those you trust.")
@storage_option
@json_option
def import_(path: str, name: str | None, no_limits: bool, storage: str, as_json: bool) -> int:
    """Read a folder of the GoodAI LTM Benchmark: every agent in it becomes a run, with its scores as published.

    What cannot be read, and scores outside their range, are named and left out, the rest is imported, and the exit code
    is 3.
    """
    limits = NO_LIMITS if no_limits else None
    imported = import_folder(path, ExperimentStorage(storage), name=name, limits=limits)
    code = 3 if any(one.broken for one in imported) else 0
    if as_json:
        print_json([{**vars(one), "broken": [vars(part) for part in one.broken]} for one in imported])
        return code
    for one in imported:
        _echo_import(one)
    return code


def _echo_import(one: ImportedAgent) -> None:
    click.echo(f"{one.run_id}: {'imported before; nothing changed' if one.already else f'{one.tests} tests'}")
    if not one.already and one.tests:
        click.echo(
            f"  {one.turns} rows of conversation; tokens of {one.tokens_reproduced} and characters of "
            f"{one.characters_reproduced} of {one.counted} tests found again in the log"
        )
        click.echo(
            f"  {one.hand_edited} scores edited by hand; our scorers judge {one.rescored} tests, "
            f"{one.rescored_equal} of them as published (--scores rescored shows them)"
        )
    for part in one.broken:
        click.echo(f"  not read: {part.where}: {part.reason}", err=True)


@click.command(name="export")
@click.argument("run_id", metavar="RUN")
@click.option("--to", "folder", required=True, type=click.Path(file_okay=False), help="Folder to write to.")
@click.option("--scores", "judged_as", metavar="NAME", help="Which verdicts to write.  [default: the current ones]")
@storage_option
def export(run_id: str, folder: str, judged_as: str | None, storage: str) -> None:
    """Write a run as definitions, results and master log in the layout of the GoodAI LTM Benchmark."""
    done = export_run(ExperimentStorage(storage), run_id, folder, judged_as=judged_as)
    click.echo(f"wrote {done.definitions} definitions and {done.results} results to {folder}", err=True)
    for test_id in done.left_out:
        click.echo(f"left out: {test_id} has no verdict", err=True)


def _render_report(views: list[RunView], suffix: str) -> str:
    if suffix == ".md":
        return markdown_table(views)
    if suffix == ".tex":
        return latex_table(views)
    return run_page(views[0]) if len(views) == 1 else agents_page(views)


def _print_views(views: list[RunView]) -> None:
    columns, rows = agents_table(views)
    # An agent a column: names are long, and a terminal is narrow.
    measures = [(column.lower(), *(cells[place] for _, cells in rows)) for place, column in enumerate(columns)]
    print_table(("", *(name for name, _ in rows)), measures)
    if len(views) == 1:
        click.echo()
        datasets = views[0].summary.datasets
        shown = [
            (
                one.name,
                "n/a" if one.interval is None else f"{one.mean:.3f}",
                "n/a" if one.stderr is None else f"{one.stderr:.3f}",
                "n/a" if one.interval is None else f"{one.interval[0]:.3f} – {one.interval[1]:.3f}",
                one.scored,
                one.undecided,
            )
            for one in datasets
        ]
        print_table(("dataset", "score", "standard error", "95 % interval", "tests", "undecided"), shown)


# What `themis memory` has besides running and planning.
RESULT_COMMANDS: tuple[click.Command, ...] = (report, sweep, override, import_, export)
