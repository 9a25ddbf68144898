"""`themis run` and `themis init`: whole experiments from one file, and a file to begin with."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import click

from themis.cli.output import command_words, interruptible, json_option, print_json, print_table, storage_option
from themis.cli.running import durability_option, weak_sandbox_option
from themis.cli.terminal import echo_error, echo_text, escape_terminal, is_person_there
from themis.exceptions import ConfigurationError
from themis.experiments.conducting import OpenExperiment, open_experiment
from themis.experiments.pages import check_output, write_result
from themis.experiments.planning import ExperimentPlan
from themis.experiments.progress import ExperimentProgress
from themis.experiments.results import ExperimentResult
from themis.experiments.schema import experiment_schema
from themis.experiments.starting import STARTERS, write_starter
from themis.runs.progress import is_interactive
from themis.runs.resuming import how_to_repeat


def _print_schema(context: click.Context, option: click.Parameter, is_wanted: bool) -> None:
    if is_wanted:
        print_json(experiment_schema())
        context.exit()


@click.command()
@click.argument("file", metavar="FILE.yml", type=click.Path(exists=True, dir_okay=False))
@click.option(
    "--dry-run", is_flag=True, help="Print what it would take, and what of it is done. Calls and writes nothing."
)
@click.option("--only", multiple=True, metavar="PATTERN",
              help="Only runs whose id, name or label matches, such as '*terse*' or gpt-4o; may be repeated.")  # fmt: skip
@click.option("--output", "outputs", multiple=True, type=click.Path(dir_okay=False, resolve_path=True),
              help="Write the report to this .html, .md or .json file, too; may be repeated.")  # fmt: skip
@click.option("--budget-usd", type=float, help="The most that all runs may cost together, in place of the file's.")
@click.option("--parallel", type=click.IntRange(min=1), help="Runs at once, in place of the file's.")
@click.option("--resume/--no-resume", default=True, show_default=True,
              help="Go on with the runs that are stored, or archive them and start anew.")  # fmt: skip
@click.option("--allow-drift", is_flag=True, help="Start anew what has changed, using every stored answer that fits.")
@click.option("--schema", is_flag=True, is_eager=True, expose_value=False, callback=_print_schema,
              help="Print the JSON schema of such files, for editors.")  # fmt: skip
@click.option("-y", "--yes", is_flag=True, help="Do not ask before money is spent.")
@click.option(
    "--progress/--no-progress", default=None, help="Show a moving line; by default when stderr is a terminal."
)
@durability_option
@weak_sandbox_option
@storage_option
@json_option
@interruptible
def run(
    file: str,
    storage: str,
    dry_run: bool,
    outputs: tuple[str, ...],
    yes: bool,
    progress: bool | None,
    as_json: bool,
    **chosen: Any,
) -> int:
    """Run all that an experiment file asks for, or what is left of it, and compare the runs.

    Every mistake is found before the first call. Exits with 0 if all runs are done and every gate passes, 1 if a gate fails or
    too much failed, 3 if a run is broken or a gate cannot tell, 130 if it was stopped by you or a budget.
    """
    for path in outputs:
        check_output(path)
    with open_experiment(file, storage=storage, **chosen) as opened:
        if dry_run:
            return _show_plan(opened, as_json)
        checked = opened.check()
        if not yes:
            _ask_before_spending(opened)
        is_live = is_interactive() if progress is None else progress
        with closing(ExperimentProgress(opened.experiment.name, checked, opened.store, is_live=is_live)) as shown:
            result = opened.run(checked, shown)
    for path in outputs:
        write_result(result, path)
        click.echo(f"wrote {path}", err=True)
    if as_json:
        print_json(result.to_dict())
    else:
        _print_result(result)
    for problem in result.problems():
        echo_error(escape_terminal(problem))
    if not all(one.is_complete for one in result.runs):
        echo_error(how_to_repeat(_words_to_go_on(result), storage))
    return result.exit_code


def _words_to_go_on(result: ExperimentResult) -> list[str]:
    """The command once more: to go on is not to begin anew, and needs more than the budget that was reached."""
    words = [word for word in command_words() if word not in ("--no-resume", "--allow-drift")]
    larger = max((one.larger_budget_usd or 0.0 for one in result.runs), default=0.0)
    if result.budget_usd is None or larger <= result.budget_usd:
        return words
    if "--budget-usd" in words:
        place = words.index("--budget-usd")
        del words[place : place + 2]
    return [*words, "--budget-usd", f"{larger:g}"]


def _show_plan(opened: OpenExperiment, as_json: bool) -> int:
    """The plan, and then what would keep it from beginning, if anything."""
    try:
        plan = opened.plan()
    except ConfigurationError:
        opened.check()  # tells all that is wrong, where a plan tells what keeps it from being made
        raise
    if as_json:
        print_json(plan.to_dict())
    else:
        _print_plan(plan)
    opened.check()
    return 0


def _print_plan(plan: ExperimentPlan) -> None:
    rows = [
        (
            run.run.name,
            f"{run.estimate.rows:,}",
            run.standing,
            f"{run.calls:,}",
            f"{run.tokens:,}",
            _dollars(run.likely_usd),
            _dollars(run.most_usd),
        )
        for run in plan.runs
    ]
    total = ("all that is left", "", "", f"{plan.calls:,}", f"{plan.tokens:,}", _dollars(plan.likely_usd))
    print_table(
        ("run", "rows", "done", "calls", "tokens", "likely", "at most"), [*rows, (*total, _dollars(plan.most_usd))]
    )
    if any(run.estimate.takes_steps and not run.is_complete for run in plan.runs):
        echo_text("with tools, or somebody to talk to, an answer takes more calls than the one that is counted for it")
    spent = f"${plan.spent_usd:.4f} spent so far"
    echo_text(f"{spent}; budget ${plan.budget_usd:g}" if plan.budget_usd is not None else spent)
    if plan.budget_usd is not None and plan.most_usd is not None and plan.spent_usd + plan.most_usd > plan.budget_usd:
        echo_text(
            "the budget may not be enough for all of it; the experiment would stop there, and go on with a larger one"
        )


def _dollars(usd: float | None) -> str:
    return "n/a" if usd is None else f"${usd:.4f}"


def _ask_before_spending(opened: OpenExperiment) -> None:
    """Where a person is there to answer and something costs money, says what it may cost and asks."""
    if not is_person_there():
        return
    plan = opened.plan()
    if plan.likely_usd == 0 and plan.most_usd == 0:
        return
    cost = "at unknown prices" if plan.likely_usd is None else f"about ${plan.likely_usd:.4f}"
    most = "" if plan.most_usd is None else f" (at most ${plan.most_usd:.4f})"
    click.echo(f"{plan.name}: {len(plan.runs)} runs, {plan.calls:,} calls, {cost}{most}", err=True)
    click.confirm("go on?", default=True, abort=True, err=True)


def _print_result(result: ExperimentResult) -> None:
    for table in result.tables():
        click.echo()
        print_table(table.columns, table.rows, title=table.title)
        for note in table.notes:
            echo_text(escape_terminal(note))
    click.echo()
    for note in result.notes():
        echo_text(escape_terminal(note))
    echo_text(escape_terminal(result.headline()))


@click.command()
@click.argument("task", metavar="[TASK]", required=False, default="questions")
@click.option(
    "--to", "folder", default=".", show_default=True, type=click.Path(file_okay=False), help="Folder to write to."
)
@click.option("--list", "is_listed", is_flag=True, help="List the tasks.")
def init(task: str, folder: str, is_listed: bool) -> None:
    """Write a commented experiment file to begin with, and what it needs: it runs as it is, without a key or the internet.

    TASK is one of questions (rows of your own), benchmark, function, rag-app (over HTTP), tools, memory,
    compare-prompts; questions by default.
    """
    if is_listed:
        print_table(("task", "what it is"), [(name, starter.about) for name, starter in STARTERS.items()])
        return
    written = write_starter(task, folder)
    for path in written:
        click.echo(f"wrote {path}")
    click.echo(f"run it with: themis run {written[0]}")
