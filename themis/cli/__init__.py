"""The command `themis`: one verb a module, imported when it is used, so that `--help` is immediate."""

from __future__ import annotations

import importlib
import io
import logging
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import click

from themis import __version__
from themis.cli import completing
from themis.cli.elsewhere import explain_command, explain_option
from themis.cli.terminal import echo_error, hide_secrets_in_output
from themis.core.redaction import redact_text
from themis.core.registry import nearest
from themis.core.secrets import read_dotenv
from themis.exceptions import (
    ConfigurationError,
    DatasetError,
    MetricError,
    RunInterrupted,
    ThemisError,
)

# verb -> (where it lives, its line in --help)
COMMANDS: dict[str, tuple[str, str]] = {
    "init": ("themis.cli.experiments:init", "Write a commented experiment file to begin with."),
    "run": ("themis.cli.experiments:run", "Run all that an experiment file asks for, and compare the runs."),
    "eval": ("themis.cli.evaluating:evaluate_command", "Ask a model every row of a benchmark or file, and judge it."),
    "resume": ("themis.cli.evaluating:resume", "Go on with a run that was interrupted or has failures."),
    "estimate": ("themis.cli.evaluating:estimate", "Calls, tokens, dollars and minutes of an evaluation, before it."),
    "rejudge": ("themis.cli.judging:rejudge", "Judge a run's stored answers again, without calling the model."),
    "judge": ("themis.cli.judging:judge", "What a judge's scores are worth: calibration and agreement."),
    "compare": ("themis.cli.comparing:compare", "Compare runs with paired statistics."),
    "diff": ("themis.cli.comparing:diff", "Samples that one run fixes or breaks beside another."),
    "power": ("themis.cli.comparing:power", "How many samples a difference needs, or what this many can show."),
    "gate": ("themis.cli.comparing:gate", "Pass or fail a candidate against a baseline, for CI."),
    "manifest": ("themis.cli.provenance:manifest", "What made a run: show, diff and audit manifests."),
    "reproduce": ("themis.cli.provenance:reproduce", "The command that made a run, and what differs here."),
    "list": ("themis.cli.listing:list_", "What there is: runs, benchmarks, metrics, providers, ..."),
    "show": ("themis.cli.runs:show", "One run: status, scores, cost."),
    "delete": ("themis.cli.runs:delete", "Remove a run from the store."),
    "memory": ("themis.cli.memory:memory", "The memory benchmark: run, plan, turns, definitions."),
    "export": (
        "themis.cli.exchange:export",
        "Write a run as CSV, JSON, HTML, Parquet, JUnit, Inspect or lm-eval logs.",
    ),
    "import": ("themis.cli.exchange:import_", "Bring logs of Inspect or lm-eval into the store as runs."),
    "share": ("themis.cli.exchange:share", "A badge and a Markdown snippet of a run."),
    "publish": ("themis.cli.exchange:publish", "Send a run to W&B, MLflow, the Hugging Face Hub or OpenTelemetry."),
    "serve": ("themis.cli.serving:serve", "An API and pages over a store, on this machine or for a team."),
    "cache": ("themis.cli.doctor:cache", "Why an answer is, or is not, taken from the cache."),
    "data": ("themis.cli.exchange:data", "Fetch benchmarks' rows for machines without the internet."),
    "models": ("themis.cli.models:models", "Embedded models: install, list, serve, remove."),
    "store": ("themis.cli.store:store", "Check, repair, prune, copy or vacuum a store."),
    "completion": ("themis.cli.completing:completion", "The script that completes words in bash, zsh or fish."),
    "doctor": ("themis.cli.doctor:doctor", "Check this machine: Python, extras, store, endpoints, browser."),
    "demo": ("themis.cli.demo:demo", "A first run on this machine, without a key or the internet."),
}

EPILOG = """\b
Exit codes:
  0    fine
  1    a gate or a check failed
  2    wrong usage, or nothing selected
  3    the store, a provider or a package is missing or broken
  130  interrupted

\b
Environment:
  THEMIS_STORAGE     where runs are stored (default .cache/experiments)
  THEMIS_DURABILITY  process or power: what a stored answer outlives
  THEMIS_DATABASE_WAIT_SECONDS
                     how long a run waits for PostgreSQL (default 300)
  THEMIS_PRICES      a file of prices, which win over the package's own
  THEMIS_MODELS_DIR  where embedded models are kept
  THEMIS_SECRETS     names of variables, divided by commas, whose values are
                     shown and stored nowhere; those with KEY, TOKEN, ... in
                     their names never are
  NO_COLOR           no colours
  THEMIS_NO_DOTENV   1: do not read the nearest .env file, of the working
                     directory or above (what is set already wins over it)
"""


class LazyGroup(click.Group):
    """A group whose commands stand in a table, beside those that are added to it as usual.

    Args:
        table: name -> ("module:attribute", the line in `--help`).
        settings: What every `click.Group` takes.
    """

    def __init__(self, *, table: Mapping[str, tuple[str, str]], **settings: Any) -> None:
        super().__init__(**settings)
        self._table = table

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*self._table, *super().list_commands(ctx)]

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in self._table:
            return super().get_command(ctx, name)
        module, _, attribute = self._table[name][0].partition(":")
        command: click.Command = getattr(importlib.import_module(module), attribute)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name, known = args[0] if args else "", self.list_commands(ctx)
        if name and name not in known and not name.startswith("-"):
            here = explain_command(name, args[1:]) if ctx.parent is None else ""
            raise click.UsageError(f"no command {name!r}{here or nearest(name, known)}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        lines = [(name, line) for name, (_, line) in self._table.items()]
        lines += [(name, command.get_short_help_str(80)) for name, command in self.commands.items()]
        with formatter.section("Commands"):
            formatter.write_dl(lines)


@click.group(
    cls=LazyGroup,
    table=COMMANDS,
    epilog=EPILOG,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="themis")
@click.option("-v", "--verbose", is_flag=True, help="Log decisions to stderr.")
def themis(verbose: bool) -> None:
    """Judge language models and the agents built on them."""
    level = logging.INFO if verbose else logging.WARNING
    logging.basicConfig(level=level, stream=sys.stderr, format="%(levelname)s %(name)s: %(message)s")
    read_dotenv()


def main(arguments: Sequence[str] | None = None) -> None:
    """The console script: runs the command and turns errors into a line and an exit code."""
    hide_secrets_in_output()
    if completing.VARIABLE in os.environ:
        completing.complete(sys.argv[1:] if arguments is None else list(arguments))
    code = _run(arguments)
    if arguments is None:
        # What is left is Python's own end, of which one more Ctrl-C would show a traceback.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.exit(code)


def _run(arguments: Sequence[str] | None) -> int:
    words = sys.argv[1:] if arguments is None else list(arguments)
    try:
        result: object = themis.main(args=words, prog_name="themis", standalone_mode=False, obj=tuple(words))
        return result if isinstance(result, int) else 0
    except click.exceptions.Exit as leaving:
        return leaving.exit_code
    except click.ClickException as error:
        shown = io.StringIO()
        explain_option(error).show(file=shown)
        echo_error(redact_text(shown.getvalue()).rstrip("\n"))
        return error.exit_code
    except (click.Abort, KeyboardInterrupt) as stopped:
        echo_error(_find_reason(stopped))
        return 130
    except BrokenPipeError:
        # The reader of a pipe has seen enough (`themis list runs | head`).
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except ThemisError as error:
        echo_error(f"Error: {redact_text(str(error))}")
        return 2 if isinstance(error, ConfigurationError | DatasetError | MetricError) else 3


def _find_reason(stopped: BaseException) -> str:
    """What a run said of being stopped: click turns an interrupt into an Abort, and the next one may come on top of it."""
    reason: BaseException | None = stopped
    while reason is not None and not isinstance(reason, RunInterrupted):
        reason = reason.__cause__ or reason.__context__
    return "aborted" if reason is None else str(reason)
