"""Writes runs as static pages that need no server: open `index.html`, or put the folder on any web host."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from themis.core.fingerprint import digest
from themis.core.redaction import Redactor
from themis.exceptions import ConfigurationError, StorageError
from themis.server.app import STATIC
from themis.server.memory_views import chat_view, drawn_tests
from themis.server.pages import Pages
from themis.server.shapes import run_line, whole_sample
from themis.server.views import RunsView, run_view, score_bars
from themis.storage import ExperimentStorage
from themis.storage.queries import RunReader
from themis.storage.search import OUTCOMES, SAMPLE_SORTS, SampleFilter, find_runs, scores_of

__all__ = ["BundleLinks", "Written", "write_bundle"]

# A copy is for reading, not for keeping: of a longer run it has the beginning.
_MOST_SAMPLES = 1_000
_MOST_RUNS = 500
# By this file in it a folder is known as a copy.
_OURS = "themis.js"


@dataclass(frozen=True)
class Written:
    """How much was written."""

    runs: int
    samples: int


class BundleLinks:
    """Files beside each other, named by hashes, because ids may hold what no file name can."""

    is_live = False

    def static(self, name: str) -> str:
        return f"static/{name}"

    def runs(self) -> str:
        return "index.html"

    def run(self, run_id: str, **query: Any) -> str:
        return f"run-{digest(run_id)[:16]}.html"

    def sample(self, run_id: str, item_id: str) -> str:
        return f"sample-{digest(run_id, item_id)[:24]}.html"

    def compare(self, run_ids: list[str]) -> str:
        return "index.html"


def write_bundle(storage: str | Path, folder: str | Path, run_ids: Sequence[str] = ()) -> Written:
    """Writes the named runs, or the newest ones of a store, into a folder that is new, empty or an earlier copy."""
    store, folder = ExperimentStorage(storage), Path(folder)
    if not store.exists():
        raise StorageError(f"there is no store at {storage}; a first run makes one: themis demo")
    is_copy = (folder / "static" / _OURS).exists()
    if folder.exists() and any(folder.iterdir()) and not is_copy:
        raise ConfigurationError(f"{folder} has files that are not a copy of runs; give an empty --bundle directory")
    chosen = run_ids or [run.run_id for run in find_runs(store.engine, limit=_MOST_RUNS).runs]
    readers = [store.reader(run_id) for run_id in chosen]
    runs = [reader.metadata for reader in readers]
    if not runs:
        raise ConfigurationError(f"the store at {storage} has no runs to copy")
    folder.mkdir(parents=True, exist_ok=True)
    # Whoever leaves a run out of a new copy does not want its pages to stay.
    for pattern in ("run-*.html", "sample-*.html"):
        for page in folder.glob(pattern):
            page.unlink()
    for file in STATIC.iterdir():
        (folder / "static").mkdir(exist_ok=True)
        shutil.copyfile(file, folder / "static" / file.name)
    pages, redactor = Pages(BundleLinks()), Redactor()
    samples = sum(_write_run(reader, folder, pages, redactor) for reader in readers)
    lines = [(run, run_line(run), score_bars(run.summary.get("metrics", {}))) for run in runs]
    view = RunsView(lines, len(lines), 0, len(lines))
    _write(folder / BundleLinks().runs(), pages.render("runs.html", view=view, chosen={}, sorts=()))
    return Written(len(runs), samples)


def _write_run(reader: RunReader, folder: Path, pages: Pages, redactor: Redactor) -> int:
    run = reader.metadata
    view = run_view(reader, SampleFilter(), limit=_MOST_SAMPLES)
    page = pages.render(
        "run.html",
        view=view,
        tests=drawn_tests(reader) if run.kind == "memory" else None,
        chat=chat_view(reader, after=-1) if run.kind == "memory" else None,
        chosen={"q": "", "outcome": "all", "metric": "", "sort": "dataset"},
        outcomes=OUTCOMES,
        sorts=SAMPLE_SORTS,
        manifest=redactor.deep(run.config_snapshot.get("reproducibility_manifest", {})),
        test="",
    )
    links = BundleLinks()
    _write(folder / links.run(run.run_id), page)
    ids = [sample.item_id for sample in view.samples.samples]
    for number, item_id in enumerate(ids):
        found = reader.record(item_id)
        if found is None:
            continue
        judged = None if reader.evaluation is None else reader.evaluation_of(reader.evaluation, item_id)
        sample = whole_sample(*found, judged, scores_of(reader, found[0]), redactor)
        neighbours = {
            "before": ids[number - 1] if number else None,
            "after": ids[number + 1] if number + 1 < len(ids) else None,
        }
        _write(
            folder / links.sample(run.run_id, item_id),
            pages.render("sample.html", run=run, sample=sample, **neighbours),
        )
    return len(ids)


def _write(path: Path, text: str) -> None:
    partial = path.with_name(f".{path.name}.partial")
    partial.write_text(text, encoding="utf-8")
    os.replace(partial, path)
