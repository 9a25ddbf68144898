"""Writes runs as static pages that need no server: open `index.html`, or put the folder on any web host."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from themis.core.codec import digest
from themis.core.files import atomic_write
from themis.core.redaction import Redactor
from themis.core.transcripts import PICTURES, ShownPart
from themis.exceptions import ConfigurationError, StorageError
from themis.runs.samples import list_attached
from themis.server.app import STATIC
from themis.server.pages import Pages
from themis.server.views import NotFound, RunsView, run_line, sample_view, score_bars
from themis.storage import ExperimentStorage
from themis.storage.queries import RunReader
from themis.storage.search import SampleFilter, find_runs, find_samples

# A copy is for reading, not for keeping: of a longer run it has the beginning.
_MOST_SAMPLES = 1_000
_MOST_RUNS = 500
_ATTACHMENTS = "attachments"
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

    def run(self, run_id: str, **query: str | int | None) -> str:
        return f"run-{digest(run_id)[:16]}.html"

    def sample(self, run_id: str, item_id: str) -> str:
        return f"sample-{digest(run_id, item_id)[:24]}.html"

    def attachment(self, run_id: str, item_id: str, part: ShownPart) -> str:
        # By its ending no program takes it for anything but a picture, or for nothing that can be opened.
        return f"{_ATTACHMENTS}/{part.digest}.{PICTURES.get(part.media_type, 'bin')}"

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
    for pattern in ("run-*.html", "sample-*.html", f"{_ATTACHMENTS}/*"):
        for page in folder.glob(pattern):
            page.unlink()
    for file in STATIC.iterdir():
        (folder / "static").mkdir(exist_ok=True)
        shutil.copyfile(file, folder / "static" / file.name)
    pages, redactor = Pages(BundleLinks()), Redactor()
    samples = sum(_write_run(reader, store, folder, pages, redactor) for reader in readers)
    lines = [(run, run_line(run), score_bars(run.summary.get("metrics", {}))) for run in runs]
    view = RunsView(lines, len(lines), 0, len(lines))
    _write(folder / BundleLinks().runs(), pages.render("runs.html", view=view, chosen={}, sorts=()))
    return Written(len(runs), samples)


def _write_run(reader: RunReader, store: ExperimentStorage, folder: Path, pages: Pages, redactor: Redactor) -> int:
    run = reader.metadata
    links = BundleLinks()
    chosen = {"q": "", "outcome": "all", "sort": "dataset"}
    page = pages.render_run(
        reader, SampleFilter(), chosen, store=store, redactor=redactor, limit=_MOST_SAMPLES, after=-1
    )
    _write(folder / links.run(run.run_id), page)
    listed = find_samples(reader, SampleFilter(), limit=_MOST_SAMPLES, characters=1).samples
    ids = [sample.item_id for sample in listed]
    for number, item_id in enumerate(ids):
        try:
            sample = sample_view(reader, item_id, redactor)
        except NotFound:
            continue  # not asked yet
        before = ids[number - 1] if number else None
        after = ids[number + 1] if number + 1 < len(ids) else None
        _write(folder / links.sample(run.run_id, item_id), pages.render_sample(reader, sample, before, after))
        for part in list_attached(sample):
            _write_attachment(reader, folder / links.attachment(run.run_id, item_id, part), part)
    return len(ids)


def _write_attachment(reader: RunReader, path: Path, part: ShownPart) -> None:
    """What several samples share is written once; what is lost from the store is a picture that does not show."""
    stored = reader.attachment(part.digest) if part.content is None and not path.exists() else None
    content = part.content if stored is None else stored.content
    if content is not None and not path.exists():
        with atomic_write(path) as file:
            file.write(content)


def _write(path: Path, text: str) -> None:
    with atomic_write(path) as file:
        file.write(text.encode())
