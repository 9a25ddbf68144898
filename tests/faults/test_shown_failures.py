"""What a run looks like of which some or nothing succeeded: in lists, on pages, in files, to programs, on its badge."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

import themis
from themis.core.entities import GenerationRecord, ModelError, ModelOutput
from themis.exceptions import MetricError, RunFailedError
from themis.experiment.export.as_html import export_html
from themis.experiment.export.as_tables import export_markdown
from themis.experiment.share import create_share_pack
from themis.interfaces import StatelessTaskExecutor
from themis.runs.report import build_report
from themis.server import create_app
from themis.server.bundle import write_bundle
from themis.storage import ExperimentStorage, RunStatus
from themis.storage.runs import standing_of

ROWS = [{"id": f"q{n}", "question": f"{n} + {n}", "answer": str(2 * n)} for n in range(6)]
WORDS = "Incorrect API key provided"
PAGE = {"accept": "text/html"}


class Refusing(StatelessTaskExecutor):
    """Answers rows below `answered`, and refuses the others."""

    def __init__(self, answered: int) -> None:
        self.answered = answered

    def execute(self, task):
        number = int(task.metadata["dataset_id"][1:])
        if number < self.answered:
            return GenerationRecord(task, ModelOutput(task.reference.value), None)
        return GenerationRecord(task, None, ModelError(WORDS, "authentication"))


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs as they lie in stores that were written before a run without any answer was called failed."""
    root = tmp_path_factory.mktemp("store")
    for run_id, answered in (("none", 0), ("some", 4), ("all", 6)):
        themis.register_provider(run_id, lambda answered=answered, **options: Refusing(answered))
        with contextlib.suppress(RunFailedError):
            themis.evaluate(
                ROWS, model=f"{run_id}:x", prompt="{question}", metrics=["exact_match"], run_id=run_id, storage=root,
                max_retries=1, keep_going=True,
            )  # fmt: skip
        with ExperimentStorage(root).open_run(run_id) as writer:
            writer.update(status=RunStatus.COMPLETED.value, error=None)
    return root


@pytest.fixture
def client(store: Path) -> Iterator[TestClient]:
    with TestClient(create_app(store), base_url="http://127.0.0.1") as opened:
        yield opened


def badge_on(page: str) -> tuple[str, str, str]:
    """(kind, word, note) of the first badge of a page."""
    badge = re.search(
        r'<span class="badge (\S+)" data-status>([^<]*)</span> <span[^>]*data-status-note[^>]*>([^<]*)<', page
    )
    assert badge, page
    return badge[1], badge[2], badge[3]


SHOWN = {
    "none": ("failed", "failed", "6 of 6 failed"),
    "some": ("partial", "completed", "2 of 6 failed"),
    "all": ("completed", "completed", ""),
}


@pytest.mark.fault(
    area="Server",
    wrong="A run of which nothing succeeded is looked at, also one that an earlier release stored as completed",
    does="It is shown as failed, with its count and the provider's words, in lists, pages, copies and reports; it has no badge",
    status="failed",
    exit_code=None,
)
def test_a_run_without_any_answer_is_shown_as_failed_everywhere(fault, client, store, tmp_path, themis):
    run = client.get("/api/runs/none").json()
    assert (run["status"], run["failed"], run["num_samples"]) == (fault.status, 6, 6)
    assert WORDS in run["error"]
    assert WORDS in client.get("/runs/none", headers=PAGE).text
    listed = themis("list", "runs", "--storage", str(store)).stdout
    assert f"none [{fault.status}, 6 of 6 failed]" in listed

    with pytest.raises(MetricError, match="has no scores to share: failed, 6 of 6 failed"):
        create_share_pack("none", storage_root=ExperimentStorage(store), output_dir=tmp_path)


def test_the_badge_to_share_says_how_many_failed(store, tmp_path):
    some, whole = (
        create_share_pack(run_id, storage_root=ExperimentStorage(store), output_dir=tmp_path)
        for run_id in ("some", "all")
    )

    assert ">completed, 2 of 6 failed</text>" in some.svg_path.read_text()
    assert some.markdown_snippet.startswith("![some: ExactMatch 1.000, completed, 2 of 6 failed]")
    assert ">completed</text>" in whole.svg_path.read_text()
    assert whole.markdown_snippet.startswith("![all: ExactMatch 1.000]")


@pytest.mark.parametrize("run_id", SHOWN)
def test_the_badge_of_a_page_says_how_many_failed(client, run_id):
    assert badge_on(client.get(f"/runs/{run_id}", headers=PAGE).text) == SHOWN[run_id]

    listed = client.get(f"/runs?q={run_id}:x", headers=PAGE).text
    assert badge_on(listed) == SHOWN[run_id]

    api = client.get(f"/api/runs/{run_id}").json()["standing"]
    assert (api["kind"], api["word"], api["note"]) == SHOWN[run_id]


def test_a_static_copy_has_the_same_badges(store, tmp_path):
    write_bundle(store, tmp_path / "copy")
    index = (tmp_path / "copy" / "index.html").read_text()

    assert {badge_on(row) for row in index.split("<tr data-run=")[1:]} == set(SHOWN.values())


def test_reports_say_it_beside_the_run(store, tmp_path):
    for run_id, (kind, word, note) in SHOWN.items():
        report = build_report(ExperimentStorage(store), run_id)
        words = f"{word}, {note}" if note else word
        page = export_html(report, tmp_path / f"{run_id}.html").read_text()
        assert f'<span class="standing {kind}">{words}</span>' in page
        assert f"- status: {words}\n" in export_markdown(report, tmp_path / f"{run_id}.md").read_text()


def test_filters_and_lists_go_by_the_status_that_is_shown(client, store):
    def found(status: str) -> set[str]:
        return {run["run_id"] for run in client.get(f"/api/runs?status={status}").json()}

    assert found("failed") == {"none"}
    assert found("completed") == {"some", "all"}
    assert [run.run_id for run in ExperimentStorage(store).list_runs(status="failed")] == ["none"]
    order = [run["run_id"] for run in client.get("/api/runs?sort=status").json()]
    assert order[-1] == "none"


def test_a_run_that_nobody_could_judge_is_not_green():
    judged_by = {"ExactMatch": {"count": 6, "failed": 0}, "Judge": {"count": 0, "failed": 6}}
    by_nobody = {"Judge": {"count": 0, "failed": 6}}

    partly = standing_of(RunStatus.COMPLETED, total=6, failed=0, metrics=judged_by)
    assert partly == ("completed", "6 not judged", "partial")
    assert standing_of(RunStatus.COMPLETED, total=6, failed=0, metrics=by_nobody) == (
        "not judged",
        "6 not judged",
        "failed",
    )


def test_a_run_that_waits_says_what_for_while_it_is_written(tmp_path):
    waiting = "waiting 40 s: the provider asked for it"
    storage = ExperimentStorage(tmp_path)
    storage.start_run("patient", model="fake:x")
    with TestClient(create_app(tmp_path), base_url="http://127.0.0.1") as client:
        with storage.open_run("patient") as writer:
            writer.update(waiting=waiting)
            assert client.get("/api/runs/patient").json()["waiting"] == waiting
            page = client.get("/runs/patient", headers=PAGE).text
            assert f'<p class="note" data-waiting>{waiting}</p>' in page
            writer.update(waiting=None)
            assert client.get("/api/runs/patient").json()["waiting"] is None
            writer.update(waiting=waiting)

        # Whoever waited is gone, and says so no longer.
        assert client.get("/api/runs/patient").json()["waiting"] is None
