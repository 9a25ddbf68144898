"""Completes words in a shell: what can be named where, and `themis completion`, which prints the script that asks for it.

A key press must not wait for what commands import, which takes seconds. So the commands, with everything that the package
brings by name, stand in `completions.json` too, written by `make docs`; a shell is answered from there, from the entry points of
other packages, and by one query of the store.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from functools import lru_cache
from pathlib import Path
from typing import TypeAlias, cast

import click
from click.shell_completion import (
    BashComplete,
    CompletionItem,
    FishComplete,
    add_completion_class,
    get_completion_class,
    split_arg_string,
)

from themis.core.registry import Registry
from themis.core.secrets import read_dotenv

VARIABLE = "_THEMIS_COMPLETE"
TABLE = Path(__file__).with_name("completions.json")

_SHELLS = ("bash", "zsh", "fish")
_DATABASE = "themis.db"
_STORAGE_VARIABLE, _STORAGE = "THEMIS_STORAGE", ".cache/experiments"
_MOST_WORDS = 500
# Stands behind what has been typed where that is taken apart.
_END = "\0"
_ROW_FILES = (".jsonl", ".ndjson", ".json", ".csv", ".tsv", ".parquet")

Described: TypeAlias = Mapping[str, object]


# --- words --------------------------------------------------------------------------------------------------------------


class Word(click.types.StringParamType):
    """A word that stands for something that has a name, by which it is completed.

    Args:
        name: What it stands for, as help shows it.
        find: What there is, given the command so far and the beginning of the word.
        files: Endings of files that may be named instead.
    """

    def __init__(
        self, name: str, find: Callable[[click.Context, str], Iterable[str]], *, files: tuple[str, ...] = ()
    ) -> None:
        self.name = name
        self._find = find
        self._files = files

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        found = dict.fromkeys(word for word in self._find(ctx, incomplete) if word.startswith(incomplete))
        if self._files:
            found |= dict.fromkeys(_find_files(incomplete, self._files))
            if not found:
                return [CompletionItem(incomplete, type="file")]
        return [CompletionItem(word) for word in found]


def _named(*kinds: str) -> Callable[[click.Context, str], Iterable[str]]:
    """What the package has of these kinds, and other packages by their entry points."""
    return lambda ctx, incomplete: (
        name
        for kind in kinds
        for name in Registry(kind, dict.fromkeys(_read_table()["names"].get(kind, ()), "")).names()
    )


def _stored(column: str) -> Callable[[click.Context, str], Iterable[str]]:
    return lambda ctx, incomplete: _read_store(_find_storage(ctx), column, incomplete)


def _find_runs(ctx: click.Context, incomplete: str) -> Iterable[str]:
    """Archived versions, called `id@n`, only where one is being named."""
    only = "" if "@" in incomplete else "AND replace(run_id, '@', '') = run_id"
    return _read_store(_find_storage(ctx), "run_id", incomplete, only)


def _find_models(ctx: click.Context, incomplete: str) -> Iterator[str]:
    """Models that the store has runs of, then those whose prices are known, then every provider."""
    yield from (model.replace(":", "/", 1) for model in _read_store(_find_storage(ctx), "model"))
    yield from _named("model")(ctx, incomplete)
    yield from (f"{provider}/" for provider in _named("provider")(ctx, incomplete))


def _find_agents(ctx: click.Context, incomplete: str) -> Iterator[str]:
    yield from _named("agent")(ctx, incomplete)
    yield from _find_models(ctx, incomplete)


def _find_files(incomplete: str, endings: tuple[str, ...]) -> list[str]:
    """Files in the folder that is being named."""
    folder, _, start = incomplete.rpartition("/")
    try:
        names = sorted(os.listdir(folder or ("/" if incomplete.startswith("/") else ".")))
    except OSError:
        return []
    before = incomplete[: len(incomplete) - len(start)]
    return [f"{before}{name}" for name in names if name.startswith(start) and name.lower().endswith(endings)]


AGENT = Word("agent", _find_agents)
BACKEND = Word("backend", _named("execution backend"))
BENCHMARK = Word("benchmark", _named("benchmark"))
CONFIGURATION = Word("configuration", _named("configuration"), files=(".yml", ".yaml"))
DATASET = Word("dataset", _named("benchmark"), files=_ROW_FILES)
EMBEDDED_MODEL = Word("name", _named("embedded model"))
EXPERIMENT = Word("experiment", _stored("experiment_id"))
EXTRACTOR = Word("extractor", _named("extractor"))
FILLER = Word("filler", _named("filler"), files=(".json", ".jsonl"))
METRIC = Word("metric", _named("metric"))
MODEL = Word("model", _find_models)
REDUCER = Word("reducer", _named("reducer"))
RUN_ID = Word("run", _find_runs)
TRACKER = Word("tracker", _named("tracker"))

_WORDS = {
    one.name: one
    for one in (
        *(AGENT, BACKEND, BENCHMARK, CONFIGURATION, DATASET, EMBEDDED_MODEL, EXPERIMENT),
        *(EXTRACTOR, FILLER, METRIC, MODEL, REDUCER, RUN_ID, TRACKER),
    )
}


# --- the store ----------------------------------------------------------------------------------------------------------


def _find_storage(ctx: click.Context) -> str:
    if given := ctx.params.get("storage"):
        return str(given)
    read_dotenv()
    return os.environ.get(_STORAGE_VARIABLE) or _STORAGE


def _read_store(location: str, column: str, start: str = "", only: str = "") -> list[str]:
    """Different values of a column of the runs that begin so, the newest first; none where they are not to be had at once.

    Nothing is made, migrated or waited for, and SQLAlchemy alone would take longer than all of this.
    """
    query = (
        f"SELECT {column} FROM runs WHERE substr({column}, 1, {len(start)}) = ? {only} "
        f"GROUP BY {column} ORDER BY max(created_at) DESC LIMIT {_MOST_WORDS}"
    )
    rows = _query_postgres(location, query, start) if "://" in location else _query_sqlite(Path(location), query, start)
    # What has a line break or a control character in it would be another word, or none, on a command line.
    return [text for (value,) in rows if (text := str(value or "")) and text.isprintable()]


def _query_sqlite(root: Path, query: str, value: str) -> list[tuple[object]]:
    import sqlite3

    path = root if root.suffix == ".db" else root / _DATABASE
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=0.5)) as connection:
            return connection.execute(query, (value,)).fetchall()
    except sqlite3.Error:
        return []


def _query_postgres(url: str, query: str, value: str) -> list[tuple[object]]:
    try:
        import psycopg
    except ImportError:
        return []
    plain = re.sub(r"^postgres(ql)?(\+\w+)?://", "postgresql://", url)
    try:
        with psycopg.connect(plain, connect_timeout=2) as connection:
            return cast(
                "list[tuple[object]]", connection.execute(query.replace("?", "%s").encode(), (value,)).fetchall()
            )
    except psycopg.Error:
        return []


# --- the commands, without their modules --------------------------------------------------------------------------------


def complete(arguments: list[str]) -> None:
    """Answers a shell that asks by `_THEMIS_COMPLETE`, and ends the program."""
    commands = cast("Described", _read_table()["commands"])
    build_command("themis", commands).main(arguments, prog_name="themis", complete_var=VARIABLE)


@lru_cache(maxsize=1)
def _read_table() -> Mapping[str, Mapping[str, list[str]]]:
    return cast("Mapping[str, Mapping[str, list[str]]]", json.loads(TABLE.read_text(encoding="utf-8")))


def build_command(name: str, described: Described) -> click.Command:
    """A command with the words of a real one, and nothing behind them."""
    parameters = [_build_parameter(one) for one in cast("list[Described]", described["parameters"])]
    about = cast(str, described["help"])
    inner = cast("Mapping[str, Described] | None", described.get("commands"))
    if inner is None:
        return click.Command(name, params=parameters, help=about, add_help_option=False)
    commands = {called: build_command(called, one) for called, one in inner.items()}
    return click.Group(name, commands, params=parameters, help=about, add_help_option=False)


def _build_parameter(described: Described) -> click.Parameter:
    takes, names = cast("str | list[str]", described["takes"]), cast("list[str]", described["names"])
    nargs = cast(int, described.get("nargs", 1))
    if takes == "flag":
        return click.Option(names, is_flag=True, help=cast(str, described["help"]))
    kind = click.Choice(takes) if isinstance(takes, list) else _WORDS.get(takes) or _PATHS.get(takes)
    if "help" not in described:
        return click.Argument(names, type=kind, nargs=nargs, required=False)
    many = bool(described.get("many"))
    return click.Option(names, type=kind, nargs=nargs, multiple=many, help=cast(str, described["help"]))


_PATHS = {"file": click.Path(), "folder": click.Path(file_okay=False)}


def describe_command(command: click.Command, context: click.Context) -> dict[str, object]:
    """What `build_command` needs of a command, as JSON has it."""
    parameters = [_describe_parameter(one) for one in command.get_params(context) if not getattr(one, "hidden", False)]
    described: dict[str, object] = {"help": command.get_short_help_str(80), "parameters": parameters}
    if isinstance(command, click.Group):
        inner = {name: command.get_command(context, name) for name in command.list_commands(context)}
        described["commands"] = {
            name: describe_command(one, click.Context(one, info_name=name, parent=context))
            for name, one in inner.items()
            if one is not None and not one.hidden
        }
    return described


def _describe_parameter(parameter: click.Parameter) -> dict[str, object]:
    described: dict[str, object] = {"names": [str(parameter.name)], "takes": _describe_type(parameter)}
    if isinstance(parameter, click.Option):
        slashed = "/".join([parameter.opts[-1], *parameter.secondary_opts])
        described["names"] = [*parameter.opts[:-1], slashed, str(parameter.name)]
        described["help"] = (parameter.help or "").partition(". ")[0].partition(";")[0].strip()
        described |= {"many": True} if parameter.multiple else {}
    return {**described, **({"nargs": parameter.nargs} if parameter.nargs != 1 else {})}


def _describe_type(parameter: click.Parameter) -> str | list[str]:
    if getattr(parameter, "is_flag", False):
        return "flag"
    kind = parameter.type
    if isinstance(kind, click.Choice):
        return [str(choice) for choice in kind.choices]
    if isinstance(kind, click.Path):
        return "file" if kind.file_okay else "folder"
    return kind.name if isinstance(kind, Word) else "text"


# --- the script ---------------------------------------------------------------------------------------------------------


@click.command()
@click.argument("shell", type=click.Choice(_SHELLS), required=False)
def completion(shell: str | None) -> None:
    """Print the script that completes commands, options, run ids and names in a SHELL; by default in the one you use.

    \b
    bash   eval "$(themis completion bash)"      in ~/.bashrc
    zsh    eval "$(themis completion zsh)"       in ~/.zshrc, behind compinit
    fish   themis completion fish | source       in ~/.config/fish/config.fish
    """
    name = shell or Path(os.environ.get("SHELL", "")).name
    if name not in _SHELLS:
        raise click.UsageError(f"name a shell, one of {', '.join(_SHELLS)}; yours is {name or 'not known'}")
    made = get_completion_class(name)
    assert made is not None
    click.echo(made(click.Group("themis"), {}, "themis", VARIABLE).source())


@add_completion_class
class _Bash(BashComplete):
    """Completion in bash, which breaks words at `:`, `=` and `@`: names have them (`ollama/llama3:8b`, `nightly@1`).

    Bash puts in what it is told, as if it had been typed: so it is told words that mean themselves.
    """

    source_template = r"""%(complete_func)s() {
    local line="${COMP_LINE:0:COMP_POINT}" type value
    # What of the word stands before the place where bash breaks it, which for @ is before it: that stays on the line.
    local breaks="${COMP_WORDBREAKS//[^:=@]/}" word="${line##*[[:space:]]}" before=""
    [[ -n $breaks ]] && before="${word%%"${word##*[$breaks]}"}" && before="${before%%@}"

    COMPREPLY=()
    while IFS=',' read -r type value; do
        if [[ $type == 'dir' ]]; then
            compopt -o dirnames
        elif [[ $type == 'file' ]]; then
            compopt -o default
        elif [[ $type == 'plain' ]]; then
            COMPREPLY+=("${value#"$before"}")
        fi
    done < <(env COMP_WORDS="$line" %(complete_var)s=bash_complete "$1")
    # A provider is followed by its model, not by the next word.
    [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == */ ]] && compopt -o nospace 2>/dev/null
    return 0
}

complete -o nosort -F %(complete_func)s %(prog_name)s
"""

    def get_completion_args(self) -> tuple[list[str], str]:
        # A space may belong to the last word, and only the word's end tells.
        *words, last = split_arg_string(os.environ["COMP_WORDS"] + _END)
        return words[1:], last.removesuffix(_END)

    def format_completion(self, item: CompletionItem) -> str:
        value, (word, quote) = str(item.value), _find_last_word(os.environ["COMP_WORDS"])
        _, last = self.get_completion_args()
        # What has been typed stays as it was, for bash finds by it where its own word begins.
        if not value.startswith(last):
            return f"{item.type},{_quote(value, quote)}"
        return f"{item.type},{word.removeprefix(quote)}{_quote(value[len(last) :], quote)}"


def _find_last_word(typed: str) -> tuple[str, str]:
    """The last word of a line as it stands there, and the quote that is open at its end, or nothing."""
    start, quote, is_escaped = 0, "", False
    for place, sign in enumerate(typed):
        if is_escaped:
            is_escaped = False
        elif sign == "\\" and quote != "'":
            is_escaped = True
        elif sign in ("'", '"') and quote in ("", sign):
            quote = "" if quote else sign
        elif sign.isspace() and not quote:
            start = place + 1
    return typed[start:], quote


def _quote(word: str, quote: str) -> str:
    """A word as it stands in bash for itself, behind a quote or none."""
    if quote == "'":
        return word.replace("'", r"'\''")
    return re.sub(r'([\\"$`])' if quote else r"([^\w@%+=:,./-])", r"\\\1", word)


@add_completion_class
class _Fish(FishComplete):
    """Completion in fish, with words that have commas."""

    source_template = FishComplete.source_template.replace('split "," $', 'split --max 1 "," $')
