"""The API's shapes, paging, filters and errors."""

from __future__ import annotations

import csv
import io
import json

import pytest
from fastapi.testclient import TestClient

import themis
from themis import __version__
from themis.core.entities import GenerationRecord, GenerationTask, ModelOutput
from themis.interfaces import StatelessTaskExecutor
from themis.server import create_app
from themis.storage import ExperimentStorage

HERE = "http://127.0.0.1"


def test_the_root_says_who_is_there(client):
    assert client.get("/").json() == {"status": "ok", "service": "themis-api", "version": __version__}


def test_the_list_of_runs_has_the_tutorials_shape(client):
    runs = client.get("/api/runs").json()

    assert [run["run_id"] for run in runs] == ["perfect", "variant", "baseline"]
    first = runs[0]
    assert (first["experiment_id"], first["status"], first["num_samples"]) == ("default", "completed", 10)
    assert first["metrics"] == {"ExactMatch": 1.0, "F1": 1.0}
    assert first["created_at"].startswith("20")


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("status=completed", {"baseline", "variant", "perfect"}),
        ("status=failed", set()),
        ("model=fake:perfect", {"perfect"}),
        ("tag=team", {"baseline", "variant"}),
        ("tag=team=lab", {"baseline", "variant"}),
        ("tag=team=other", set()),
        ("experiment=default", {"baseline", "variant", "perfect"}),
        ("experiment=nobody", set()),
        ("tag=tea", set()),
        ("kind=memory", set()),
        ("benchmark=none", set()),
        ("q=BASE", {"baseline"}),
        ("q=noisy", {"baseline", "variant"}),
        ("q=%25", set()),
    ],
)
def test_runs_are_filtered(client, query, expected):
    answer = client.get(f"/api/runs?{query}")

    assert {run["run_id"] for run in answer.json()} == expected
    assert answer.headers["x-total-count"] == str(len(expected))


def test_runs_are_sorted_and_paged_with_a_link_to_the_next_page(client):
    first = client.get("/api/runs?sort=run_id&limit=2")
    assert [run["run_id"] for run in first.json()] == ["baseline", "perfect"]

    address = first.headers["link"].partition(">")[0].removeprefix("<")
    second = client.get(address)
    assert [run["run_id"] for run in second.json()] == ["variant"]
    assert "link" not in second.headers


def test_the_next_page_is_linked_by_what_the_list_understands_only(client):
    link = client.get("/api/runs?limit=1&tag=team&token=mine").headers["link"]

    assert link == '</api/runs?tag=team&sort=-created&limit=1&offset=1>; rel="next"'


def test_a_run_comes_with_a_page_of_its_samples(client):
    run = client.get("/api/runs/baseline?limit=3&offset=2").json()

    assert [sample["id"] for sample in run["samples"]] == ["q2", "q3", "q4"]
    sample = run["samples"][0]
    assert sample["prompt"] == "What is 2 + 2?"
    assert set(sample["scores"]) == {"ExactMatch", "F1"}
    assert run["next_offset"] == 5
    assert run["metadata"]["created_at"] == run["created_at"]


def test_the_pages_of_a_run_are_the_run(client):
    seen, offset = [], 0
    while offset is not None:
        page = client.get(f"/api/runs/baseline?limit=7&offset={offset}").json()
        seen += [sample["id"] for sample in page["samples"]]
        offset = page["next_offset"]

    assert seen == [f"q{n}" for n in range(40)]


def test_right_and_wrong_samples_are_the_whole_run(client):
    right, wrong = (
        client.get(f"/api/runs/baseline?outcome={outcome}&metric=ExactMatch&limit=200").json()["samples"]
        for outcome in ("right", "wrong")
    )

    assert all(sample["scores"]["ExactMatch"] == 1.0 for sample in right)
    assert all(sample["scores"]["ExactMatch"] == 0.0 for sample in wrong)
    assert len(right) + len(wrong) == 40


@pytest.mark.parametrize(("text", "ids"), [("what is 7 +", ["q7"]), ("Q39", ["q39"]), ("no such words", []), ("%", [])])
def test_search_looks_into_ids_and_prompts_whatever_the_case(client, text, ids):
    found = client.get("/api/runs/perfect" if ids == ["q7"] else "/api/runs/baseline", params={"q": text}).json()

    assert [sample["id"] for sample in found["samples"]] == ids


def test_samples_are_sorted_by_score(client):
    samples = client.get("/api/runs/baseline?sort=-score&metric=ExactMatch&limit=200").json()["samples"]

    scores = [sample["scores"]["ExactMatch"] for sample in samples]
    assert scores == sorted(scores, reverse=True)


def test_a_sample_has_everything_that_is_stored_of_it(client):
    sample = client.get("/api/runs/perfect/samples/q4").json()

    assert (sample["prompt"], sample["response"], sample["reference"]) == ("What is 4 + 4?", "8", "8")
    assert [verdict["metric"] for verdict in sample["verdicts"]] == ["ExactMatch", "F1"]
    assert len(sample["attempts"]) == 1


def test_an_item_may_be_called_anything(tmp_path):
    ids = ["a/b", "..", "a?b=c&d", "ünï", "a b", "#", "%2F", "<b>"]
    rows = [{"id": name, "question": "1 + 1", "answer": "2"} for name in ids]
    themis.evaluate(
        rows, model="fake/perfect", prompt="{question}", metrics=["exact_match"], run_id="odd", storage=tmp_path
    )
    with TestClient(create_app(tmp_path), base_url=HERE) as client:
        for name in ids:
            page = client.get("/runs/odd/sample", params={"item": name})
            assert page.status_code == 200, name
        assert client.get("/api/runs/odd/samples/a%2Fb").json()["id"] == "a/b"


def test_an_unknown_run_is_a_404_that_names_the_nearest(client):
    answer = client.get("/api/runs/baselin")

    assert answer.status_code == 404
    assert answer.json() == {"detail": "Run not found: baselin (did you mean 'baseline'?)", "code": "not_found"}


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("GET", "/api/runs/baseline/samples/q99", None, 404),
        ("GET", "/api/runs?limit=0", None, 422),
        ("GET", "/api/runs?sort=colour", None, 400),
        ("GET", f"/api/runs?q={'a' * 60_000}", None, 422),
        ("GET", f"/api/runs/baseline?q={'a' * 60_000}", None, 422),
        ("GET", f"/runs?q={'a' * 60_000}", None, 422),
        ("GET", "/api/runs/baseline?outcome=rigth", None, 400),
        ("GET", "/api/runs/baseline?sort=size", None, 400),
        ("GET", "/nowhere", None, 404),
        ("PUT", "/api/runs", None, 405),
        ("POST", "/api/compare", {"run_ids": ["baseline"]}, 400),
        ("POST", "/api/compare", {"run_ids": ["baseline", "nobody"]}, 404),
        ("POST", "/api/compare", {"run_ids": ["baseline", "variant"], "statistical_test": "magic"}, 400),
        ("POST", "/api/compare", {"run_ids": ["baseline", "variant"], "metrics": ["Beauty"]}, 400),
        ("POST", "/api/compare", {"run_ids": "baseline"}, 422),
        ("POST", "/api/compare", {"run_ids": ["baseline", "variant"], "alpha": 2}, 422),
        ("POST", "/api/diff", {"run_a": "baseline", "run_b": "baseline"}, 400),
        ("POST", "/api/gate", {"candidate": "baseline", "baseline": "nobody", "metric": "ExactMatch"}, 404),
    ],
)
def test_every_error_has_one_shape(client, method, path, body, status):
    answer = client.request(method, path, json=body)

    assert answer.status_code == status
    assert set(answer.json()) == {"detail", "code"}
    assert isinstance(answer.json()["detail"], str)


def test_an_error_of_our_own_shows_no_traceback(two_runs):
    app = create_app(two_runs)

    @app.get("/api/broken")
    def broken():
        raise RuntimeError("the secret inside")

    with TestClient(app, base_url=HERE, raise_server_exceptions=False) as client:
        answer = client.get("/api/broken")

    assert answer.status_code == 500
    assert "secret" not in answer.text
    assert "Traceback" not in answer.text


def test_two_runs_are_compared_as_in_the_tutorial(client):
    body = {
        "run_ids": ["baseline", "variant"],
        "metrics": ["ExactMatch"],
        "statistical_test": "bootstrap",
        "alpha": 0.05,
    }
    report = client.post("/api/compare", json=body).json()

    assert report["run_ids"] == ["baseline", "variant"]
    assert report["best_run_per_metric"] == {"ExactMatch": "variant"}
    result = report["pairwise_results"][0]
    means = {run["run_id"]: run["metrics"]["ExactMatch"] for run in client.get("/api/runs").json()}
    assert result["delta"] == pytest.approx(means["baseline"] - means["variant"])


def test_a_diff_counts_and_lists_what_changed(client):
    body = {"run_a": "baseline", "run_b": "variant", "metric": "ExactMatch", "only": "fixed", "limit": 2}
    diff = client.post("/api/diff", json=body).json()

    counts = diff["metrics"]["ExactMatch"]["counts"]
    assert sum(counts.values()) == 40
    assert [item["change"] for item in diff["items"]] == ["fixed", "fixed"]
    assert diff["next_offset"] == 2


def test_a_gate_passes_the_better_run_and_fails_the_worse(client):
    passed = client.post("/api/gate", json={"candidate": "variant", "baseline": "baseline", "metric": "exact_match"})
    failed = client.post("/api/gate", json={"candidate": "baseline", "baseline": "variant", "metric": "exact_match"})

    assert (passed.json()["verdict"], failed.json()["verdict"]) == ("pass", "fail")


def test_a_run_is_exported_in_every_format(client):
    rows = list(csv.DictReader(io.StringIO(client.get("/api/runs/perfect/export?format=csv").text)))
    lines = client.get("/api/runs/perfect/export?format=jsonl").text.splitlines()
    report = client.get("/api/runs/perfect/export?format=json")
    summary = client.get("/api/runs/perfect/export?format=summary").json()

    assert len(rows) == len(lines) == report.json()["total_samples"] == summary["total_samples"] == 10
    assert json.loads(lines[3])["response"] == "6"
    assert 'attachment; filename="perfect.json"' in report.headers["content-disposition"]


def test_deleting_needs_the_id_again(tmp_path):
    themis.evaluate(
        [{"id": "a", "question": "1", "answer": "1"}], model="fake/perfect", prompt="{question}", run_id="döömed",
        metrics=["exact_match"], storage=tmp_path,
    )  # fmt: skip
    with TestClient(create_app(tmp_path), base_url=HERE) as client:
        unconfirmed = client.delete("/api/runs/döömed")
        assert unconfirmed.status_code == 428
        assert client.get("/api/runs/döömed").status_code == 200
        confirmed = client.delete("/api/runs/döömed", headers={"x-confirm-delete": "d%C3%B6%C3%B6med"})
        assert confirmed.json() == {"deleted": "döömed"}
        assert client.get("/api/runs").json() == []


def test_a_run_that_is_being_written_cannot_be_deleted(tmp_path):
    store = ExperimentStorage(tmp_path)
    store.start_run("busy")
    with store.open_run("busy"), TestClient(create_app(tmp_path), base_url=HERE) as client:
        assert client.delete("/api/runs/busy", headers={"x-confirm-delete": "busy"}).status_code == 409


def test_a_read_only_server_deletes_nothing(two_runs):
    with TestClient(create_app(two_runs, read_only=True), base_url=HERE) as client:
        assert client.delete("/api/runs/baseline", headers={"x-confirm-delete": "baseline"}).status_code == 403
        assert client.get("/api/runs/baseline").status_code == 200


def test_looking_at_a_store_that_is_not_there_does_not_make_one(tmp_path):
    root = tmp_path / "none"
    with TestClient(create_app(root), base_url=HERE) as client:
        assert client.get("/api/runs").json() == []
        assert client.get("/api/runs/x").status_code == 404
        assert client.get("/api/health").json() == {"status": "ok"}
        assert "themis demo" in client.get("/runs", headers={"accept": "text/html"}).text
    assert not root.exists()


def test_what_can_be_named_is_listed(client):
    assert "exact_match" in client.get("/api/metrics").json()["metrics"]
    assert client.get("/api/benchmarks").json()["benchmarks"] == themis.list_benchmarks()
    assert client.get("/api/version").json() == {"version": __version__}


def test_a_new_run_is_in_the_list_at_once(tmp_path):
    with TestClient(create_app(tmp_path), base_url=HERE) as client:
        assert client.get("/api/runs").json() == []
        ExperimentStorage(tmp_path).start_run("fresh", model="fake:x")
        found = client.get("/api/runs?limit=99").json()
        assert [run["run_id"] for run in found] == ["fresh"]
        assert found[0]["is_abandoned"]
        assert "fresh" in client.get("/runs?sort=-updated").text


def test_secrets_are_not_served(tmp_path, monkeypatch):
    monkeypatch.setenv("LAB_API_KEY", "correct-horse-battery")
    store = ExperimentStorage(tmp_path)
    manifest = {"provider_options": {"api_key": "plain-secret-value"}, "url": "https://me:pass@host/"}
    store.start_run("r", config={"reproducibility_manifest": manifest}, tags={"note": "correct-horse-battery"})
    store.fail_run("r", "said correct-horse-battery")
    with TestClient(create_app(tmp_path), base_url=HERE) as client:
        pages = [client.get(path).text for path in ("/api/runs", "/api/runs/r", "/runs/r", "/runs")]

    for text in pages:
        assert "correct-horse-battery" not in text
        assert "plain-secret-value" not in text
        assert "pass@" not in text


def test_the_document_describes_every_route_with_examples(client):
    document = client.get("/openapi.json").json()

    assert document["info"]["title"] == "Themis API"
    for path in (
        "/api/runs",
        "/api/runs/{run_id}",
        "/api/compare",
        "/api/diff",
        "/api/gate",
        "/api/runs/{run_id}/export",
    ):
        assert path in document["paths"]
    example = document["paths"]["/api/runs"]["get"]["responses"]["200"]["content"]["application/json"]["example"]
    assert example[0]["run_id"] == "countdown-baseline"


def test_a_store_on_either_database_is_served(store_location):
    rows = [{"id": f"q{n}", "question": f"Is {n} ODD? 100%", "answer": "yes"} for n in range(6)]
    themis.evaluate(
        rows, model="fake/noisy-0.5", prompt="{question}", metrics=["exact_match"], run_id="r", storage=store_location
    )
    with TestClient(create_app(store_location), base_url=HERE) as client:
        assert client.get("/api/runs?q=NOISY").headers["x-total-count"] == "1"
        assert [s["id"] for s in client.get("/api/runs/r?q=is 3 odd").json()["samples"]] == ["q3"]
        assert len(client.get("/api/runs/r?q=100%25").json()["samples"]) == 6
        right = client.get("/api/runs/r?outcome=right&metric=ExactMatch").json()["samples"]
        overview = client.get("/api/runs/r/overview").json()
        assert overview["histograms"][0]["counts"][-1] == len(right)
        assert sum(overview["histograms"][0]["counts"]) == 6
        for sort in ("dataset", "-dataset", "score", "-score", "slowest"):
            assert len(client.get(f"/api/runs/r?sort={sort}").json()["samples"]) == 6
        assert client.get("/runs/r").status_code == 200


def test_answers_that_were_cut_off_are_counted(tmp_path):
    class Wordy(StatelessTaskExecutor):
        def execute(self, task: GenerationTask) -> GenerationRecord:
            return GenerationRecord(task, ModelOutput("well", finish_reason="length"), None)

    themis.register_provider("long-winded", Wordy)
    rows = [{"id": n, "question": str(n), "answer": str(n)} for n in range(3)]
    themis.evaluate(rows, model="long-winded/m", prompt="{question}", run_id="r", storage=tmp_path)
    with TestClient(create_app(tmp_path), base_url=HERE) as client:
        assert client.get("/api/runs").json()[0]["num_cut_off"] == 3
        assert "3 cut off" in client.get("/runs/r").text


def test_failures_are_told_by_kind(tmp_path):
    rows = [{"id": f"q{n}", "question": str(n), "answer": str(n)} for n in range(8)]
    themis.evaluate(
        rows,
        model="fake/flaky-0.5",
        prompt="{question}",
        metrics=["exact_match"],
        run_id="r",
        storage=tmp_path,
        max_retries=1,
    )
    with TestClient(create_app(tmp_path), base_url=HERE) as client:
        overview = client.get("/api/runs/r/overview").json()
        failed = client.get("/api/runs/r?outcome=failed").json()["samples"]

    assert overview["failed"] == len(failed) == overview["failures_read"] > 0
    assert overview["failures"][0]["message"]
    assert failed[0]["scores"] == {}
