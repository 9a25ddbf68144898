"""`themis export`, `import`, `share`, `publish` and `data`: runs and rows on their way into the store and out of it."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import click

from themis.cli.completing import BENCHMARK, RUN_ID, TRACKER
from themis.cli.output import json_option, key_values_option, print_json, storage_option
from themis.comparison.scores import open_store
from themis.core.redaction import redact_text
from themis.exceptions import ConfigurationError, DependencyError, ThemisError
from themis.experiment.export import DEFAULT_FORMATS, FORMATS, export_formats
from themis.experiment.importing import NO_LIMITS, Imported, import_log
from themis.experiment.share import create_share_pack
from themis.integrations.trackers import make_trackers
from themis.presets import fetch_benchmark
from themis.runs.report import build_report
from themis.storage import ExperimentStorage


@click.command()
@click.argument("run_id", type=RUN_ID, metavar="RUN")
@click.option("--to", "directory", required=True, type=click.Path(path_type=Path), help="Directory for the files.")
@click.option(
    "--format",
    "formats",
    multiple=True,
    default=(",".join(DEFAULT_FORMATS),),
    show_default=True,
    help=f"Formats with commas between them: {', '.join(FORMATS)}.",
)
@click.option(
    "--pass-at", type=float, default=0.5, show_default=True, help="JUnit only: the score from which a sample passes."
)
@storage_option
@json_option
def export(run_id: str, directory: Path, formats: tuple[str, ...], pass_at: float, storage: str, as_json: bool) -> None:
    """Write a run as files for spreadsheets, programs, people, papers, build servers or other systems."""
    store = open_store(storage)
    run = store.get_run(run_id)
    wanted = [name.strip() for group in formats for name in group.split(",") if name.strip()]
    written = export_formats(
        build_report(store, run_id), directory, wanted, run_id=run_id, created_at=run.created_at, pass_at=pass_at
    )
    if as_json:
        print_json({name: [str(path) for path in paths] for name, paths in written.items()})
        return
    for paths in written.values():
        for path in paths:
            click.echo(path)


_SHOWN_BROKEN = 5


@click.command(name="import")
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--run-id", help="Name of the run (one file only); by default made from source, task and content.")
@click.option("--model", help="provider:name, where the file does not say which model it was.")
@click.option("--no-limits", is_flag=True, help="Read files of any size, packed however tightly: only those you trust.")
@storage_option
@json_option
def import_(
    files: tuple[Path, ...], run_id: str | None, model: str | None, no_limits: bool, storage: str, as_json: bool
) -> int:
    """Bring Inspect logs (.json, .eval) and lm-eval samples_*.jsonl into the store, scores as published.

    The same file again changes nothing. Lines that cannot be read, and scores outside their metric's range, are named
    and left out, the others are imported, and the exit code is 3. A file that would take much memory is refused.
    """
    if run_id is not None and len(files) > 1:
        raise ConfigurationError(f"--run-id names one run, but {len(files)} files were given")
    store = ExperimentStorage(storage)
    done = []
    for path in files:
        imported = import_log(path, store, run_id=run_id, model=model, limits=NO_LIMITS if no_limits else None)
        done.append({"file": str(path), **dataclasses.asdict(imported)})
        _echo_import(path, imported)
        if not as_json:
            click.echo(imported.run_id)
    if as_json:
        print_json(done)
    return 3 if any(one["broken"] for one in done) else 0


def _echo_import(path: Path, imported: Imported) -> None:
    state = "was imported before" if imported.already else f"{imported.samples} samples, {imported.failed} failed"
    click.echo(f"{path.name}: {state}, as {imported.run_id}", err=True)
    for note in imported.notes:
        click.echo(f"  note: {note}", err=True)
    for broken in imported.broken[:_SHOWN_BROKEN]:
        click.echo(f"  {broken.where} was left out: {broken.reason}", err=True)
    if len(imported.broken) > _SHOWN_BROKEN:
        click.echo(f"  … {len(imported.broken)} places were left out in all", err=True)


@click.command()
@click.argument("run_id", type=RUN_ID, metavar="RUN")
@click.option("--metric", help="Which metric the badge shows; by default the first that judged every sample.")
@click.option(
    "--output-dir",
    default=".",
    show_default=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="Where the files go.",
)
@storage_option
@json_option
def share(run_id: str, metric: str | None, output_dir: Path, storage: str, as_json: bool) -> None:
    """Write a badge (SVG) and a summary (Markdown) of a run, and print the line that shows it."""
    shared = create_share_pack(run_id, storage_root=open_store(storage), output_dir=output_dir, metric=metric)
    if as_json:
        print_json(
            {"svg": str(shared.svg_path), "markdown": str(shared.markdown_path), "snippet": shared.markdown_snippet}
        )
        return
    click.echo(f"badge    {shared.svg_path}")
    click.echo(f"summary  {shared.markdown_path}")
    click.echo(shared.markdown_snippet)


@click.command()
@click.argument("run_id", type=RUN_ID, metavar="RUN")
@click.option(
    "--to", "trackers", multiple=True, required=True, type=TRACKER, help="wandb, mlflow, hub or otel; may be repeated."
)
@key_values_option("--option", "options", help="Option of a tracker, or TRACKER.K=V; may be repeated.")
@storage_option
@json_option
def publish(run_id: str, trackers: tuple[str, ...], options: dict[str, str], storage: str, as_json: bool) -> None:
    """Send a stored run to Weights & Biases, MLflow, the Hugging Face Hub or an OpenTelemetry collector.

    Publishing a run again goes on with what is there. Credentials come from the tracker's own environment variables.
    """
    store = open_store(storage)
    store.get_run(run_id)
    made = make_trackers(trackers, options)
    report = build_report(store, run_id)
    places, failures = {}, []
    for name, tracker in made.items():
        try:
            places[name] = tracker.publish(report)
        except DependencyError:
            raise
        except Exception as error:  # boundary: a tracker is another system, and the others can be reached all the same
            failures.append(f"{name}: {type(error).__name__}: {redact_text(str(error))}")
            continue
        click.echo(f"{run_id} is in {name}", err=True)
        if not as_json:
            click.echo(places[name])
    if as_json:
        print_json(places)
    if failures:
        raise ThemisError(f"{run_id} could not be sent to {'; '.join(failures)}")


@click.group()
def data() -> None:
    """Benchmarks' rows on disk, for machines without the internet."""


@data.command()
@click.argument("benchmark", type=BENCHMARK)
@click.option("--to", "folder", required=True, type=click.Path(file_okay=False), help="Folder to write into.")
@click.option("-n", "--limit", type=click.IntRange(min=1), help="Only the first so many rows.")
@json_option
def fetch(benchmark: str, folder: str, limit: int | None, as_json: bool) -> None:
    """Download a benchmark's rows with a manifest of where they came from; use them with `eval --data FOLDER`."""
    fetched = fetch_benchmark(benchmark, folder, limit=limit)
    if as_json:
        print_json({"path": str(fetched.path), "rows": fetched.rows, "sha256": fetched.sha256})
    else:
        click.echo(f"{fetched.rows} rows of {fetched.name} in {fetched.path}")
