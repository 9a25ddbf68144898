"""`themis memory`: run the memory benchmark, plan it, read its conversations and definitions, and what came of it."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import click

from themis.backends.ray import RayExecutionBackend
from themis.cli.completing import AGENT, CONFIGURATION, FILLER, MODEL, RUN_ID
from themis.cli.grouping import ANSWERED, ASKED, JUDGED, RUN, GroupedCommand
from themis.cli.memory_options import WHICH_CONFIGURATION, configuration_option, span_option
from themis.cli.output import (
    command_words,
    interruptible,
    json_option,
    key_values_option,
    print_data,
    print_json,
    print_result,
    print_table,
    storage_option,
)
from themis.cli.running import attempt, load_option, run_options, start_options, take_watching, workers_option
from themis.cli.terminal import echo_error, escape_terminal, is_person_there
from themis.comparison.reports import TIE
from themis.config import load_memory_config
from themis.config.schema import LEAST_FILLER_TOKENS
from themis.config.specification import MemorySpecification
from themis.core.files import atomic_write
from themis.core.registry import nearest
from themis.core.user_code import load_user_code
from themis.exceptions import ConfigurationError, EvaluationError
from themis.experiment.importing import NO_LIMITS
from themis.memory import definitions as defining
from themis.memory.agents import find_price
from themis.memory.clock import CLOCKS
from themis.memory.estimating import plan_conversation
from themis.memory.exporting import export_run
from themis.memory.importing import ImportedAgent, import_folder
from themis.memory.keys import KeyCheck, check_keys
from themis.memory.master_log import from_master_log, to_master_log
from themis.memory.overrides import override_score, read_overrides, withdraw_override
from themis.memory.planning import Plan, draw
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
    span_sentences,
)
from themis.memory.short_names import expand_model
from themis.memory.sweep import Sweep, SweepReport, SweepRun, parse_spans, plan_sweep, read_sweep, run_sweep
from themis.memory.tape import read_entries
from themis.runs.prices import Price
from themis.runs.resuming import how_to_repeat
from themis.storage import ExperimentStorage, RunStatus
from themis.storage.runs import batched

F = TypeVar("F", bound=Callable[..., Any])

_SUFFIXES = (".html", ".md", ".tex")
_INTERRUPTED = 130


@click.group()
def memory() -> None:
    """Test the long-term memory of agents in one long conversation."""


@memory.command(
    cls=GroupedCommand,
    examples=(
        ("a first look, without a key", "memory run -c quick -a 'window(2000)'"),
        ("a model that is sent at most 16,000 tokens, for at most ten dollars",
         "memory run -c benchmark-32k -a openai/gpt-4o -m 16000 --budget-usd 10"),
        ("an agent of your own behind an address, each test by itself", "memory run -c all-8k -a http://localhost:8080 -i"),
    ),
)  # fmt: skip
@configuration_option
@ANSWERED.option("-a", "--agent", "--agent-name", required=True, type=AGENT,
              help="oracle, window, amnesiac, parrot, retrieval, retrieval(MODEL), MODEL, ts-MODEL, http://..., "
              "command:PROGRAM, human, cost(IN,OUT), or one registered by a package.")  # fmt: skip
@ANSWERED.option("-m", "--max-prompt-size", "max_prompt_tokens", type=click.IntRange(min=1), metavar="TOKENS",
              help="The most tokens an agent may send to its model; the window of the window agent.")  # fmt: skip
@RUN.option("-i", "--isolated", is_flag=True,
              help="Each test in a conversation of its own: no interleaving, no filler.")  # fmt: skip
@RUN.option("-l", "--local", "is_local", is_flag=True, help="The agent costs nothing; unknown prices count as zero.")
@start_options
@storage_option
@span_option
@ASKED.option("--seed", type=int, help="Seed of the definitions and the filler.  [default: the configuration's, or 0]")
@JUDGED.option("--judge", type=MODEL, help="Model that decides where words must be understood.")
@ASKED.option(
    "--filler",
    type=FILLER,
    metavar="NAME|FILE",
    help="mixed, facts, a TriviaQA JSON file, or JSONL with question and answer.  [default: mixed]",
)
@ASKED.option(
    "--clock", type=click.Choice(CLOCKS), help="How time passes for the agent: jumped over, signalled, or waited for."
)
@ASKED.option(
    "--max-message-tokens",
    type=click.IntRange(min=LEAST_FILLER_TOKENS),
    help="Longest filler message.  [default: 4096]",
)
@workers_option(1, "With -i: so many tests at once.")
@key_values_option("--option", "agent_options", typed=True, group=ANSWERED,
                   help="Option of the agent, may be repeated; ${NAME} in it is a secret of the environment.")  # fmt: skip
@key_values_option("--judge-option", "judge_options", typed=True, group=JUDGED, help="Option of the judge's provider.")
@ASKED.option(
    "--definitions",
    type=click.Path(exists=True, file_okay=False),
    help="Take the tests from a folder of .def.json files.",
)
@load_option
@ASKED.option(
    "--regenerate",
    is_flag=True,
    help="Generate the definitions anew; the same seed makes the same ones, other ones are kept beside the old.",
)
@run_options
@json_option
@interruptible
def run(storage: str, yes: bool, as_json: bool, **asked: object) -> int:
    """Run the tests of a configuration with an agent, or what is left of them after an interruption."""
    watching = take_watching(asked)
    specification = MemorySpecification.from_values(asked)
    if not yes:
        _ask_before_spending(specification)
    return attempt(
        specification,
        ExperimentStorage(storage),
        watching,
        as_json=as_json,
        confirm=lambda question: _agreed(question, yes),
    )


@memory.command()
@configuration_option
@click.option(
    "-a",
    "--agent",
    "model",
    type=MODEL,
    metavar="MODEL",
    help="A model, or cost(IN,OUT) in dollars per 1,000 tokens, for the price.",
)
@click.option(
    "-m", "--max-prompt-size", "max_prompt_tokens", type=click.IntRange(min=1), help="Tokens the agent may send."
)
@click.option("-i", "--isolated", is_flag=True, help="Each test in a conversation of its own.")
@span_option
@click.option("--seed", type=int, help="Seed of the definitions.  [default: the configuration's, or 0]")
@load_option
@click.option("--seconds-per-reply", type=float, default=3.0, show_default=True, help="For the minutes.")
@click.option("--width", type=click.IntRange(min=20), default=72, show_default=True, help="Columns of the chart.")
@json_option
def plan(
    configuration: str,
    model: str | None,
    max_prompt_tokens: int | None,
    isolated: bool,
    seconds_per_reply: float,
    width: int,
    as_json: bool,
    **given: Any,
) -> int:
    """Simulate the schedule without an agent: who speaks when, tokens, idle filler, dollars, minutes, true keys.

    Exits with 1 where an agent that remembers everything could not answer rightly.
    """
    made, price, keys = _plan(
        MemorySpecification(
            configuration=configuration,
            agent=model or "",
            isolated=isolated,
            max_prompt_tokens=max_prompt_tokens,
            **given,
        )
    )
    dollars = None if price is None else made.dollars(price)
    if as_json:
        described = {**asdict(made), "virtual_seconds": made.virtual_time.total_seconds()}
        del described["virtual_time"]
        described |= {"filler_share": made.filler_share, "idle_filler_share": made.idle_filler_share}
        described |= {"cost_usd": dollars, "minutes": made.minutes(seconds_per_reply), "keys": asdict(keys)}
        print_json(described)
        return int(not keys.holds)
    click.echo(draw(made, width))
    click.echo(
        f"\n{len(made.bars)} tests, at most {made.most_at_once} at once; {made.exchanges} exchanges, "
        f"{made.replies_to_generate} of them answered by the agent; {made.virtual_time} of virtual time; "
        f"{made.consultations} consultations of the judge"
    )
    idle = (
        "" if isolated else f"; idle filler {made.idle_filler_share:.1%}: said while fewer than two tests were running"
    )
    click.echo(f"{made.tokens:,} tokens, of them filler {made.filler_share:.1%}{idle}")
    if overran := [bar.test_id for bar in made.bars if bar.overran]:
        click.echo(f"longer than their spans: {', '.join(overran)}")
    click.echo(f"prompt {made.prompt_tokens:,} tokens, completion {made.completion_tokens:,} tokens")
    price_shown = "price not known (-a takes a model of known price, or cost(IN,OUT))"
    if price is not None:
        price_shown = f"about ${dollars:.2f} ({price.source})"
    click.echo(f"{price_shown}, about {made.minutes(seconds_per_reply):.0f} minutes at {seconds_per_reply:g} s a reply")
    for line in keys.lines():
        click.echo(line)
    return int(not keys.holds)


@memory.command()
@click.argument("run_id", type=RUN_ID, metavar="RUN")
@click.option("--test", "test_id", metavar="TEST", help="Only one test, such as 'Colours - 0'.")
@storage_option
@json_option
def turns(run_id: str, test_id: str | None, storage: str, as_json: bool) -> None:
    """Print a run's conversation: every exchange and event, one a line."""
    store = ExperimentStorage(storage)
    for entry in read_entries(store.reader(run_id).turns(), test_id=test_id):
        if as_json:
            print_data(json.dumps(entry, ensure_ascii=False))
        else:
            click.echo(_line(entry))


@memory.group()
def definitions() -> None:
    """The tests of a configuration, as they are stored and as files."""


@definitions.command(name="list")
@storage_option
@json_option
def list_definitions(storage: str, as_json: bool) -> None:
    """Stored definitions, by run name."""
    store = ExperimentStorage(storage)
    found = []
    for stored in store.list_definitions():
        runs = len(store.list_runs(kind="memory", benchmark=stored.name))
        created = datetime.fromtimestamp(stored.created_at, UTC).isoformat()
        found.append({"run_name": stored.name, "version": stored.version, "created_at": created, "runs": runs})
    rows = [tuple(entry.values()) for entry in found]
    print_result(found, ("run name", "version", "created", "runs"), rows, as_json=as_json)


@definitions.command(name="show")
@click.argument("run_name")
@storage_option
@json_option
def show_definitions(run_name: str, storage: str, as_json: bool) -> None:
    """The tests stored under a run name."""
    defined = defining.load_stored(ExperimentStorage(storage), run_name)
    described = [{"test_id": one.example.test_id, "kind": one.kind, **one.example.definition()} for one in defined]
    rows = [
        (
            one.example.test_id,
            one.kind,
            one.example.needles,
            sum(one.example.is_question),
            one.example.dataset.memory_span,
        )
        for one in defined
    ]
    print_result(described, ("test", "kind", "statements", "questions", "span"), rows, as_json=as_json)


@definitions.command(name="export")
@click.argument("run_name")
@click.option("--to", "folder", required=True, type=click.Path(file_okay=False), help="Folder to write to.")
@storage_option
def export_definitions(run_name: str, folder: str, storage: str) -> None:
    """Write stored definitions as .def.json files, a folder a dataset."""
    defined = defining.load_stored(ExperimentStorage(storage), run_name)
    click.echo(f"wrote {defining.export_definitions(defined, Path(folder))} definitions to {folder}", err=True)


@definitions.command(name="generate")
@click.option("-c", "--configuration", required=True, type=CONFIGURATION, metavar="NAME|FILE", help=WHICH_CONFIGURATION)
@click.option("--to", "folder", required=True, type=click.Path(file_okay=False), help="Folder to write to.")
@click.option("--seed", type=int, help="Seed.  [default: the configuration's, or 0]")
def generate_definitions(configuration: str, folder: str, seed: int | None) -> None:
    """Generate the tests of a configuration as .def.json files, without storing them."""
    config = load_memory_config(configuration)
    defined = defining.generate(config if seed is None else replace(config, seed=seed))
    click.echo(f"wrote {defining.export_definitions(defined, Path(folder))} definitions to {folder}", err=True)


@memory.group()
def log() -> None:
    """Conversations as master_log.jsonl files."""


@log.command(name="export")
@click.argument("run_id", type=RUN_ID, metavar="RUN")
@click.option("--to", "target", type=click.Path(dir_okay=False), help="File to write.  [default: stdout]")
@storage_option
def export_log(run_id: str, target: str | None, storage: str) -> None:
    """Write a run's conversation as a master_log.jsonl."""
    lines = to_master_log(ExperimentStorage(storage).reader(run_id).turns())
    if target is None:
        for line in lines:
            click.echo(line)
        return
    with open(target, "w", encoding="utf-8") as handle:
        handle.writelines(f"{line}\n" for line in lines)
    click.echo(f"wrote {target}", err=True)


@log.command(name="import")
@click.argument("file", type=click.Path(exists=True, dir_okay=False))
@click.option("--run-id", required=True, help="Name of the new run.")
@click.option("--agent", default="imported", show_default=True, help="Name of the agent that spoke.")
@storage_option
def import_log(file: str, run_id: str, agent: str, storage: str) -> None:
    """Read a master_log.jsonl into a new run, to be looked at; it has no scores."""
    store = ExperimentStorage(storage)
    with open(file, encoding="utf-8") as handle:
        rows = from_master_log(handle)
    store.start_run(run_id, kind="memory", model=f"agent:{agent}", config={"imported_from": Path(file).name})
    with store.open_run(run_id) as writer:
        for batch in batched(rows, 500):
            writer.append_turns(batch)
        writer.finish(RunStatus.COMPLETED)
    click.echo(f"imported {len(rows)} rows as {run_id}", err=True)


# --- what came of runs ------------------------------------------------------------------------------------------------


@memory.command()
@click.argument("run_ids", type=RUN_ID, metavar="RUN...", nargs=-1, required=True)
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


@memory.command()
@click.option("-c", "--configuration", required=True, type=CONFIGURATION, metavar="NAME|FILE", help=WHICH_CONFIGURATION)
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
    _print_spans(found.agents)
    click.echo()
    for pair in found.comparisons:
        verdict = "undecided" if pair.winner == TIE else pair.verdict()
        shown = "n/a" if pair.corrected_p_value is None else f"{pair.corrected_p_value:.4f}"
        paired = "" if pair.pairing is None else f", {pair.pairing.describe(pair.run_a_id, pair.run_b_id)}"
        remarks = f" ({'; '.join(pair.remarks)})" if pair.remarks else ""
        click.echo(
            f"{pair.run_a_id} - {pair.run_b_id}: {pair.delta:+.3f}, corrected p {shown}{paired}: {verdict}{remarks}"
        )


@memory.command()
@click.argument("run_id", type=RUN_ID, metavar="RUN")
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
    columns = ("test", "score", "automatic", "by", "when", "reason")
    print_result([asdict(record) for record in records], columns, rows, as_json=as_json)


@memory.command(name="import")
@click.argument("path", type=click.Path(exists=True, file_okay=False))
@click.option("--name", help="Name of the benchmark.  [default: the one in its configuration]")
@click.option("--no-limits", is_flag=True, help="Read folders of any size: only those you trust.")
@storage_option
@json_option
def import_(path: str, name: str | None, no_limits: bool, storage: str, as_json: bool) -> int:
    """Read a folder of the GoodAI LTM Benchmark, or of many: every agent becomes a run, with its scores as published.

    What cannot be read is named and left out, scores outside their range are named and count for nothing, the rest is
    imported, and the exit code is 3.
    """
    limits = NO_LIMITS if no_limits else None
    imported = import_folder(path, ExperimentStorage(storage), name=name, limits=limits)
    code = 3 if any(one.broken for one in imported) else 0
    if as_json:
        print_json([{**vars(one), "broken": [vars(part) for part in one.broken]} for one in imported])
        return code
    for one in imported:
        _echo_import(one)
    new, before = (sum(bool(one.tests) and one.already is already for one in imported) for already in (False, True))
    problems = sum(len(one.broken) for one in imported)
    click.echo(f"{new} runs imported, {before} imported before, {problems} problems")
    return code


def _echo_import(one: ImportedAgent) -> None:
    tests = f"{one.tests} tests" if one.tests else "nothing imported"
    click.echo(f"{one.run_id}: {'imported before; nothing changed' if one.already else tests}")
    if not one.already and one.tests:
        if one.without_result:
            click.echo(f"  defined, but without a result: {_name_some(one.without_result)}")
        click.echo(
            f"  {one.turns} rows of conversation; tokens of {one.tokens_reproduced} and characters of "
            f"{one.characters_reproduced} of {one.counted} tests found again in the log"
        )
        click.echo(
            f"  {one.hand_edited} scores edited by hand; our scorers judge {one.rescored} tests, "
            f"{one.rescored_equal} of them as published (--scores rescored shows them)"
        )
    for part in one.broken:
        click.echo(f"  problem: {part.where}: {part.reason}", err=True)


def _name_some(names: Sequence[str], most: int = 5) -> str:
    """The first names; --json has them all."""
    left = len(names) - most
    return ", ".join(names[:most]) + (f" and {left} more" if left > 0 else "")


@memory.command(name="export")
@click.argument("run_id", type=RUN_ID, metavar="RUN")
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
    _print_spans(views)
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


def _print_spans(views: list[RunView]) -> None:
    click.echo()
    for sentence in span_sentences(views):
        click.echo(escape_terminal(sentence))


# --- what commands say ------------------------------------------------------------------------------------------------


def _plan(asked: MemorySpecification) -> tuple[Plan, Price | None, KeyCheck]:
    """The schedule without an agent, the price of a token where the agent is a model of known price, and the keys."""
    made = plan_conversation(asked)
    # Tests with a conversation each cannot answer each other's questions.
    conversations = [[one] for one in made.defined] if asked.isolated else [made.defined]
    longest = made.config.max_message_tokens
    checks = [check_keys(tests, made.conflicts, made.filler, max_message_tokens=longest) for tests in conversations]
    return made.plan, find_price(asked.agent) if asked.agent else None, KeyCheck.join(checks)


def _ask_before_spending(asked: MemorySpecification) -> None:
    """Where a person is there to answer and the agent is a model of known price, says what it may cost and asks."""
    model = expand_model(asked.agent)
    if asked.is_local or not is_person_there() or "/" not in model or "://" in model:
        return
    made, price, keys = _plan(asked)
    for line in keys.lines() if not keys.holds else ():
        click.echo(line, err=True)
    if price is not None:
        click.echo(
            f"{asked.configuration} with {asked.agent}: {made.replies_to_generate:,} replies, about "
            f"${made.dollars(price):.2f}, {price.source}",
            err=True,
        )
        click.confirm("go on?", default=True, abort=True, err=True)


def _agreed(question: str, yes: bool) -> bool:
    """Yes without asking with -y, or where nobody could answer."""
    if yes or not is_person_there():
        return True
    return click.confirm(question, default=True, err=True)


def _line(entry: dict[str, Any]) -> str:
    """An entry for people, on one line; nothing an agent says reaches the terminal as control characters."""
    head = f"{entry['seq']:>6} {entry['kind']:<7} {entry['test_id'] or '-'}"
    if entry["message"] is not None and entry["reply"] is not None:
        rest = f"{entry['message']} -> {entry['reply']}"
    elif entry["message"] is not None:
        rest = entry["message"]
    else:
        shown = ("score", "reasons", "until_tokens", "until", "failure")
        rest = " ".join(f"{name}={entry[name]}" for name in shown if name in entry)
    clean = "".join(character if character.isprintable() else " " for character in rest)
    return f"{head}  {clean if len(clean) <= 200 else clean[:199] + '…'}"
