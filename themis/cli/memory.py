"""`themis memory`: run the memory benchmark, plan it, read its conversations and definitions."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import click

from themis.cli.memory_results import RESULT_COMMANDS
from themis.cli.options import parse_key_values
from themis.cli.output import interruptible, json_option, print_json, print_table, storage_option
from themis.cli.running import attempt, run_options, start_options, take_watching, workers_option
from themis.config import load_memory_config
from themis.config.specification import MemorySpecification
from themis.generation.providers import parse_model
from themis.memory import definitions as defining
from themis.memory.assembling import load_config, load_user_code, parse_span
from themis.memory.clock import CLOCKS
from themis.memory.filler import create_filler
from themis.memory.master_log import from_master_log, to_master_log
from themis.memory.planning import Plan, draw, make_plan
from themis.memory.tape import read_entries
from themis.runs.prices import Price, price_of
from themis.storage import ExperimentStorage, RunStatus
from themis.storage.records import batched

__all__ = ["memory", "run"]

F = TypeVar("F", bound=Callable[..., Any])

_DEFAULT_CONFIGURATION = "configurations/quick.yml"


@click.group()
def memory() -> None:
    """Test the long-term memory of agents in one long conversation."""


def _load_option(function: F) -> F:
    def load(context: click.Context, option: click.Parameter, paths: tuple[str, ...]) -> tuple[str, ...]:
        for path in paths:
            load_user_code(path)
        return paths

    return click.option(
        "--load",
        multiple=True,
        metavar="FILE.py",
        callback=load,
        is_eager=True,
        help="Python file that registers tests, agents or fillers, may be repeated.",
    )(function)


def _span_option(function: F) -> F:
    def parse(context: click.Context, option: click.Parameter, text: str | None) -> int | None:
        return None if text is None else parse_span(text)

    return click.option(
        "--span",
        "span_tokens",
        metavar="TOKENS",
        callback=parse,
        help="Memory span of every test, such as 8k.  [default: the configuration's]",
    )(function)


@memory.command()
@click.option("-c", "--configuration", default=_DEFAULT_CONFIGURATION, show_default=True, help="YAML file.")
@click.option("-a", "--agent", "--agent-name", required=True, metavar="AGENT",
              help="oracle, window, amnesiac, parrot, retrieval, retrieval(MODEL), MODEL, ts-MODEL, http://..., "
              "command:PROGRAM, human, cost(IN,OUT), or one registered by a package.")  # fmt: skip
@click.option("-m", "--max-prompt-size", "max_prompt_tokens", type=click.IntRange(min=1), metavar="TOKENS",
              help="The most tokens an agent may send to its model; the window of the window agent.")  # fmt: skip
@click.option("-i", "--isolated", is_flag=True,
              help="Each test in a conversation of its own: no interleaving, no filler.")  # fmt: skip
@click.option("-l", "--local", "is_local", is_flag=True, help="The agent costs nothing; unknown prices count as zero.")
@start_options
@storage_option
@_span_option
@click.option("--seed", type=int, help="Seed of the definitions and the filler.  [default: the configuration's, or 0]")
@click.option("--judge", metavar="MODEL", help="Model that decides where words must be understood.")
@click.option(
    "--filler", metavar="NAME|FILE", help="facts (built in), a TriviaQA JSON file, or JSONL with question and answer."
)
@click.option(
    "--clock", type=click.Choice(CLOCKS), help="How time passes for the agent: jumped over, signalled, or waited for."
)
@click.option("--max-message-tokens", type=click.IntRange(min=60), help="Longest filler message.  [default: 4096]")
@workers_option(1, "With -i: so many tests at once.")
@click.option(
    "--option",
    "options",
    multiple=True,
    metavar="K=V",
    help="Option of the agent, may be repeated; ${NAME} in it is a secret of the environment.",
)
@click.option("--judge-option", "judge_options", multiple=True, metavar="K=V", help="Option of the judge's provider.")
@click.option(
    "--definitions",
    type=click.Path(exists=True, file_okay=False),
    help="Take the tests from a folder of .def.json files.",
)
@_load_option
@click.option("--regenerate", is_flag=True, help="Generate the definitions anew; the old ones and their runs are kept.")
@run_options
@json_option
@interruptible
def run(
    storage: str,
    yes: bool,
    options: tuple[str, ...],
    judge_options: tuple[str, ...],
    tags: tuple[str, ...],
    as_json: bool,
    **asked: Any,
) -> int:
    """Run the tests of a configuration with an agent, or what is left of them after an interruption."""
    watching = take_watching(asked)
    specification = MemorySpecification.from_values(
        {
            **asked,
            "tags": parse_key_values(tags),
            "agent_options": parse_key_values(options, typed=True),
            "judge_options": parse_key_values(judge_options, typed=True),
        }
    )
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
@click.option("-c", "--configuration", default=_DEFAULT_CONFIGURATION, show_default=True, help="YAML file.")
@click.option("-a", "--agent", "model", metavar="MODEL", help="A model, for the price; tokens only without one.")
@click.option(
    "-m", "--max-prompt-size", "max_prompt_tokens", type=click.IntRange(min=1), help="Tokens the agent may send."
)
@click.option("-i", "--isolated", is_flag=True, help="Each test in a conversation of its own.")
@_span_option
@click.option("--seed", type=int, help="Seed of the definitions.  [default: the configuration's, or 0]")
@_load_option
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
) -> None:
    """Simulate the schedule without an agent: who speaks when, tokens, dollars, minutes."""
    from dataclasses import asdict

    made, price = _plan(
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
        print_json({**described, "cost_usd": dollars, "minutes": made.minutes(seconds_per_reply)})
        return
    click.echo(draw(made, width))
    click.echo(
        f"\n{len(made.bars)} tests, at most {made.most_at_once} at once; {made.exchanges} exchanges, "
        f"{made.replies_to_generate} of them answered by the agent; {made.tokens:,} tokens, {made.filler_tokens:,} of them "
        f"filler; {made.virtual_time} of virtual time; {made.consultations} consultations of the judge"
    )
    click.echo(f"prompt {made.prompt_tokens:,} tokens, completion {made.completion_tokens:,} tokens")
    shown = "unknown without a model of known price (-a)" if price is None else f"${dollars:.2f} ({price.source})"
    click.echo(f"about {shown}, about {made.minutes(seconds_per_reply):.0f} minutes at {seconds_per_reply:g} s a reply")


@memory.command()
@click.argument("run_id", metavar="RUN")
@click.option("--test", "test_id", metavar="TEST", help="Only one test, such as 'Colours - 0'.")
@storage_option
@json_option
def turns(run_id: str, test_id: str | None, storage: str, as_json: bool) -> None:
    """Print a run's conversation: every exchange and event, one a line."""
    store = ExperimentStorage(storage)
    for entry in read_entries(store.reader(run_id).turns(), test_id=test_id):
        if as_json:
            click.echo(json.dumps(entry, ensure_ascii=False))
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
    if as_json:
        print_json(found)
    else:
        print_table(("run name", "version", "created", "runs"), [tuple(entry.values()) for entry in found])


@definitions.command(name="show")
@click.argument("run_name")
@storage_option
@json_option
def show_definitions(run_name: str, storage: str, as_json: bool) -> None:
    """The tests stored under a run name."""
    defined = defining.load_stored(ExperimentStorage(storage), run_name)
    if as_json:
        print_json([{"test_id": one.example.test_id, "kind": one.kind, **one.example.definition()} for one in defined])
        return
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
    print_table(("test", "kind", "statements", "questions", "span"), rows)


@definitions.command(name="export")
@click.argument("run_name")
@click.option("--to", "folder", required=True, type=click.Path(file_okay=False), help="Folder to write to.")
@storage_option
def export_definitions(run_name: str, folder: str, storage: str) -> None:
    """Write stored definitions as .def.json files, a folder a dataset."""
    defined = defining.load_stored(ExperimentStorage(storage), run_name)
    click.echo(f"wrote {defining.export_definitions(defined, Path(folder))} definitions to {folder}", err=True)


@definitions.command(name="generate")
@click.option("-c", "--configuration", required=True, help="YAML file.")
@click.option("--to", "folder", required=True, type=click.Path(file_okay=False), help="Folder to write to.")
@click.option("--seed", type=int, help="Seed.  [default: the configuration's, or 0]")
def generate_definitions(configuration: str, folder: str, seed: int | None) -> None:
    """Generate the tests of a configuration as .def.json files, without storing them."""
    from dataclasses import replace

    config = load_memory_config(configuration)
    defined = defining.generate(config if seed is None else replace(config, seed=seed))
    click.echo(f"wrote {defining.export_definitions(defined, Path(folder))} definitions to {folder}", err=True)


@memory.group()
def log() -> None:
    """Conversations as master_log.jsonl files."""


@log.command(name="export")
@click.argument("run_id", metavar="RUN")
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


for _command in RESULT_COMMANDS:
    memory.add_command(_command)


# --- what commands say ------------------------------------------------------------------------------------------------


def _plan(asked: MemorySpecification) -> tuple[Plan, Price | None]:
    """The schedule without an agent, and the price of a token where the agent is a model of known price."""
    config = load_config(asked)
    defined = defining.generate(config)
    made = make_plan(
        defined,
        defining.conflicts_of(defined, config.incompatibilities),
        create_filler(config.filler, seed=config.seed, tokenizer_name=config.tokenizer),
        isolated=asked.isolated,
        max_message_tokens=config.max_message_tokens,
        max_prompt_tokens=asked.max_prompt_tokens,
        tokenizer_name=config.tokenizer,
    )
    spec = parse_model(asked.agent) if asked.agent else None
    return made, None if spec is None else price_of(spec.identifier, spec.provider)


def _ask_before_spending(asked: MemorySpecification) -> None:
    """Where a person is there to answer and the agent is a model of known price, says what it may cost and asks."""
    if asked.is_local or not sys.stdin.isatty() or "/" not in asked.agent or "://" in asked.agent:
        return
    made, price = _plan(asked)
    if price is not None:
        click.echo(
            f"{asked.configuration} with {asked.agent}: {made.replies_to_generate:,} replies, about "
            f"${made.dollars(price):.2f}, {price.source}",
            err=True,
        )
        click.confirm("go on?", default=True, abort=True, err=True)


def _agreed(question: str, yes: bool) -> bool:
    """Yes without asking with -y, or where nobody could answer."""
    if yes or not sys.stdin.isatty():
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
