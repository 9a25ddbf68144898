"""`themis manifest` and `themis reproduce`: what made a run, and making it again."""

from __future__ import annotations

import contextlib
import json
import re
import shlex
from collections.abc import Mapping
from pathlib import Path

import click

from themis.api import perform
from themis.cli.completing import RUN_ID
from themis.cli.output import json_option, print_json, print_table, storage_option
from themis.comparison.scores import open_store
from themis.core.markup import truncate
from themis.core.redaction import redact_text
from themis.exceptions import ConfigurationError, RunFailedError
from themis.experiment.audit import Audit, audit_runs, diff_everything, diff_science, flatten_manifest, load_manifest
from themis.experiment.reproduce import Reproduction, reproduction, write_rows
from themis.runs.manifest import manifest_hash
from themis.storage import ExperimentStorage

_LONGEST_VALUE = 200
# Enough of a hash to tell two apart; the whole of it is in the JSON.
_SHOWN_OF_HASH = 12


@click.group()
def manifest() -> None:
    """The reproducibility manifests of runs: show, diff, audit."""


@manifest.command()
@click.argument("run_id", type=RUN_ID, metavar="RUN")
@storage_option
@json_option
def show(run_id: str, storage: str, as_json: bool) -> None:
    """What made a run: model, data, prompt, judging, versions."""
    found = load_manifest(open_store(storage), run_id)
    if as_json:
        print_json({"run_id": run_id, "manifest_hash": manifest_hash(found), "manifest": found})
        return
    print_table(("key", "value"), [row for key, value in flatten_manifest(found).items() for row in _rows(key, value)])
    click.echo(f"manifest {manifest_hash(found)}")


@manifest.command()
@click.argument("run_a", type=RUN_ID, metavar="A")
@click.argument("run_b", type=RUN_ID, metavar="B")
@click.option("--all", "everything", is_flag=True, help="Also versions, platform and transport.")
@storage_option
@json_option
def diff(run_a: str, run_b: str, everything: bool, storage: str, as_json: bool) -> None:
    """In which dimensions that decide results two runs differ."""
    store = open_store(storage)
    manifests = load_manifest(store, run_a), load_manifest(store, run_b)
    diffs = (diff_everything if everything else diff_science)(*manifests)
    if as_json:
        print_json({"run_a": run_a, "run_b": run_b, "diffs": diffs})
        return
    _print_diffs(diffs, run_a, run_b)
    click.echo(f"diff_count {len(diffs)}")


@manifest.command()
@click.argument("run_ids", type=RUN_ID, metavar="RUN [RUN]", nargs=-1, required=True)
@click.option(
    "--allow", multiple=True, metavar="KEY", help="Key that may differ, may be repeated; a section allows all in it."
)
@click.option(
    "--to",
    "target",
    type=click.Path(dir_okay=False),
    help="Write the audit, for example to reproducibility_audit.json.",
)
@storage_option
@json_option
def audit(run_ids: tuple[str, ...], allow: tuple[str, ...], target: str | None, storage: str, as_json: bool) -> int:
    """Check one run's manifest, or that two runs differ only where allowed. Exit 1 on forbidden drift."""
    keys = [key.strip() for text in allow for key in text.split(",") if key.strip()]
    found = audit_runs(open_store(storage), run_ids, keys)
    if target is not None:
        path = Path(target)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(found.to_dict(), indent=2) + "\n", encoding="utf-8")
        click.echo(f"wrote {target}", err=True)
    if as_json:
        print_json(found.to_dict())
    else:
        _print_audit(found)
    return 0 if found.passed else 1


def _print_audit(found: Audit) -> None:
    for run_id, stamp in found.manifest_hashes.items():
        click.echo(f"{run_id}: manifest {_format_value(stamp)}")
    if len(found.runs) == 2:
        verdicts = {key: "forbidden" if key in found.forbidden_drift else "allowed" for key in found.diffs}
        _print_diffs(found.diffs, *found.runs, verdicts)
        click.echo(f"allowed drift: {', '.join(found.allowed_drift) or 'none'}")
        click.echo(f"forbidden drift: {', '.join(found.forbidden_drift) or 'none'}")
    click.echo("audit pass" if found.passed else "audit fail")


def _print_diffs(
    diffs: Mapping[str, Mapping[str, object]], run_a: str, run_b: str, verdicts: Mapping[str, str] | None = None
) -> None:
    """A paragraph a key, for hashes and lists of metrics do not fit beside each other."""
    width = max(len(run_a), len(run_b))
    for key, values in sorted(diffs.items()):
        click.echo(f"{key} ({verdicts[key]})" if verdicts else key)
        for run_id, value, other in ((run_a, values["a"], values["b"]), (run_b, values["b"], values["a"])):
            click.echo(f"  {run_id:<{width}}  {_format_value(value, beside=other)}")


@click.command()
@click.argument("run_id", type=RUN_ID, metavar="RUN")
@click.option("--run", "perform", is_flag=True, help="Perform the command instead of printing it only.")
@click.option("--as", "new_run_id", metavar="ID", help="Id of the new run; RUN-again if not given.")
@click.option(
    "--rows", "rows_file", type=click.Path(dir_okay=False), help="Write the run's stored rows to this .jsonl file."
)
@storage_option
@json_option
def reproduce(
    run_id: str, perform: bool, new_run_id: str | None, rows_file: str | None, storage: str, as_json: bool
) -> None:
    """The exact command that made a run, and what of its environment differs now."""
    if rows_file is not None and not rows_file.endswith(".jsonl"):
        raise ConfigurationError(f"--rows writes a .jsonl file, got {rows_file!r}")
    store = open_store(storage)
    found = reproduction(store, run_id, new_run_id=new_run_id, rows_file=rows_file)
    if rows_file is not None:
        click.echo(f"wrote {write_rows(store, run_id, rows_file)} rows to {rows_file}", err=True)
    if as_json:
        print_json(found.to_dict())
    else:
        _print_reproduction(found, storage, rows_written=rows_file is not None)
    if perform:
        _perform(found, store, rows_written=rows_file is not None)


def _print_reproduction(found: Reproduction, storage: str, *, rows_written: bool) -> None:
    at = f" --storage {redact_text(storage)}"
    if found.rows_file is not None and not rows_written:
        click.echo(f"themis reproduce {found.run_id} --rows {found.rows_file}{at}")
    click.echo(found.shell + at)
    for line in found.obstacles:
        click.echo(f"cannot be repeated by a command: {line}", err=True)
    for line in found.remarks:
        click.echo(f"note: {line}", err=True)
    for key, values in found.environment.items():
        click.echo(f"differs: {key} was {values['then']}, is {values['now']}", err=True)


def _perform(found: Reproduction, store: ExperimentStorage, *, rows_written: bool) -> None:
    if found.obstacles:
        raise ConfigurationError(
            f"run {found.run_id!r} cannot be repeated by a command, for {'; '.join(found.obstacles)}: "
            "run the program that made it, under another run id"
        )
    if store.run_exists(found.new_run_id):
        raise ConfigurationError(f"run {found.new_run_id!r} exists already; name another with --as")
    if found.rows_file is not None and not rows_written:
        click.echo(f"wrote {write_rows(store, found.run_id, found.rows_file)} rows to {found.rows_file}", err=True)
    with contextlib.suppress(RunFailedError):  # its manifest is compared like any other's
        perform(found.specification, store)
    audit_of_both = audit_runs(store, [found.run_id, found.new_run_id])
    drift = ", ".join(audit_of_both.diffs)
    click.echo(
        f"{found.new_run_id} differs from {found.run_id} in: {drift}" if drift else "both manifests agree", err=True
    )
    click.echo(f"now: themis compare {shlex.join([found.run_id, found.new_run_id])}", err=True)


def _rows(key: str, value: object) -> list[tuple[str, str]]:
    """A line of a table for every item of a list."""
    items = value if isinstance(value, list) and value else [value]
    return [("" if number else key, "" if item is None else str(item)) for number, item in enumerate(items)]


def _format_value(value: object, beside: object = None) -> str:
    """A value on one line; of a list only what the one beside it does not have."""
    if value is None or value == "":
        return "nothing"
    if isinstance(value, list) and isinstance(beside, list):
        own = [str(item) for item in value if item not in beside]
        text = ", ".join(own) or "nothing more"
    else:
        text = str(value)
    if re.fullmatch(r"[0-9a-f]{32,}", text):
        return f"{text[:_SHOWN_OF_HASH]}…"
    return truncate(text, _LONGEST_VALUE)
