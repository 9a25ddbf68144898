"""`themis memory report`, `import` and `export`: what came of memory runs, here and elsewhere."""

from __future__ import annotations

from pathlib import Path

import click

from themis.cli.output import json_option, print_json, print_table, storage_option
from themis.core.registry import nearest
from themis.exceptions import ConfigurationError
from themis.experiment.export.whole_files import whole_file
from themis.memory.exporting import LAYOUTS, export_run
from themis.memory.importing import ImportedAgent, import_folder
from themis.memory.report.files import write_figures
from themis.memory.report.pages import agents_figures, agents_page, agents_table, run_figures, run_page
from themis.memory.report.tables import latex_table, markdown_table
from themis.memory.report.view import RunView, read_view
from themis.storage import ExperimentStorage

__all__ = ["RESULT_COMMANDS", "export", "import_", "report"]

_SUFFIXES = (".html", ".md", ".tex")


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
        with whole_file(target) as file:
            file.write(_written(views, suffix or "").encode("utf-8", "backslashreplace"))
        click.echo(f"wrote {target}", err=True)
    if figures is not None:
        drawn = run_figures(views[0]) if len(views) == 1 else agents_figures(views)
        for path in write_figures(drawn, Path(figures), as_png=as_png):
            click.echo(f"wrote {path}", err=True)
    if as_json:
        print_json([view.summary.to_dict() for view in views])
    elif target is None and figures is None:
        _print(views)


@click.command(name="import")
@click.argument("path", type=click.Path(exists=True, file_okay=False))
@click.option("--name", help="Name of the benchmark.  [default: the one in its configuration]")
@storage_option
@json_option
def import_(path: str, name: str | None, storage: str, as_json: bool) -> None:
    """Read a folder of the GoodAI LTM Benchmark: every agent in it becomes a run, with its scores as published."""
    imported = import_folder(path, ExperimentStorage(storage), name=name)
    if as_json:
        print_json([{**vars(one), "broken": [vars(part) for part in one.broken]} for one in imported])
        return
    for one in imported:
        _tell_import(one)


def _tell_import(one: ImportedAgent) -> None:
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
@click.option(
    "--layout", type=click.Choice(LAYOUTS), default="goodai", show_default=True, help="Whose folders to write."
)
@click.option("--to", "folder", required=True, type=click.Path(file_okay=False), help="Folder to write to.")
@click.option("--scores", "judged_as", metavar="NAME", help="Which verdicts to write.  [default: the current ones]")
@storage_option
def export(run_id: str, layout: str, folder: str, judged_as: str | None, storage: str) -> None:
    """Write a run as definitions, results and master log in the layout of another benchmark."""
    done = export_run(ExperimentStorage(storage), run_id, folder, judged_as=judged_as)
    click.echo(f"wrote {done.definitions} definitions and {done.results} results to {folder}", err=True)
    for test_id in done.left_out:
        click.echo(f"left out: {test_id} has no verdict", err=True)


def _written(views: list[RunView], suffix: str) -> str:
    if suffix == ".md":
        return markdown_table(views)
    if suffix == ".tex":
        return latex_table(views)
    return run_page(views[0]) if len(views) == 1 else agents_page(views)


def _print(views: list[RunView]) -> None:
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
RESULT_COMMANDS: tuple[click.Command, ...] = (report, import_, export)
