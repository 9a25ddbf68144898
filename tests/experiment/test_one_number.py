"""Every surface shows the same mean, n, failed and interval: each run is worked out again from its database, with pandas.

The model fails calls, says what cannot be read and breaks a metric, all decided by a hash of item and attempt. What the runs
should say is worked out from the stored answers alone, by formulas of this file; only the interval's formula is the product's.
"""

from __future__ import annotations

import contextlib
import hashlib
import html
import io
import json
import math
import re
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient

import themis
from themis.cli import _run
from themis.comparison import compare_runs
from themis.core.entities import GenerationRecord, ModelError, ModelOutput
from themis.core.intervals import summarise
from themis.evaluation.extractors import LastNumberExtractor
from themis.evaluation.metrics import ExactMatch
from themis.evaluation.pipeline import EvaluationPipeline
from themis.evaluation.strategies import strategy_from_name
from themis.experiment import export
from themis.experiment.assemble import stored_pipeline
from themis.experiment.share import draw_badge
from themis.integrations.trackers import report_numbers
from themis.interfaces import StatelessTaskExecutor
from themis.runs.judging import rejudge
from themis.runs.report import build_report
from themis.server import create_app
from themis.storage import ExperimentStorage

pd = pytest.importorskip("pandas")

ITEMS, ATTEMPTS = 24, 4
FAILURES = ("none", "calls", "unreadable", "metric", "references")
ALL = "calls+unreadable+metric+references"
REDUCERS = ("average", "keep", "first", "best", "majority", "any", "pass@2", "pass^2")
COUNTS_PASSED = ("any", "pass@2", "pass^2")
# What each is of a metric: the mean with its interval, samples with and without a score, attempts.
FIELDS = ("mean", "low", "high", "count", "failed", "attempts", "failed_attempts")


# --- runs that go wrong -----------------------------------------------------------------------------------------------


def draw(*what: object) -> int:
    return int(hashlib.sha256(repr(what).encode()).hexdigest()[:8], 16)


class Crooked(StatelessTaskExecutor):
    """Fails, mumbles and errs as the model's name says; a seventh of the items fails altogether."""

    def execute(self, task):
        wrong, item, attempt = task.model.identifier, task.metadata["dataset_id"], task.metadata.get("attempts", 0)
        if "calls" in wrong and (draw(item) % 7 == 0 or draw(item, attempt, "call") % 5 == 0):
            return GenerationRecord(task, None, ModelError("overloaded", kind="server_error"))
        number = int(task.prompt.text) + (draw(item, attempt, "right") % 3 == 0)
        text = f"It is {number}."
        if "unreadable" in wrong and (draw(item, attempt, "read") % 6 == 0 or draw(item, "mumbles") % 9 == 0):
            text = "I wonder."
        ended = "length" if draw(item, attempt, "cut") % 4 == 0 else "stop"
        usage = {"prompt_tokens": 7, "completion_tokens": 3}
        return GenerationRecord(task, ModelOutput(text, usage=usage, finish_reason=ended), None)


def moody(prediction: object) -> bool:
    """A user's metric without a declared range, which breaks where the run is made to."""
    if MOODY["breaks"] and str(prediction).endswith(("1", "4")):
        raise ValueError("not today")
    return int(str(prediction)) % 2 == 0


MOODY = {"breaks": False}


@dataclass(frozen=True)
class Case:
    reducer: str
    failures: str
    clustered: bool

    @property
    def run_id(self) -> str:
        reducer = self.reducer.replace("@", "-at-").replace("^", "-hat-")
        return f"{reducer}-{self.failures}-{'clustered' if self.clustered else 'plain'}"

    @property
    def metrics(self) -> list[str]:
        # A length is neither good nor bad, so that nothing of it is best or passes.
        return ["exact_match", "moody", *(() if self.reducer in (*COUNTS_PASSED, "best") else ("response_length",))]


# What is shown everywhere; every other combination is held to the report that all of them show.
CASES = [
    *(Case(reducer, ALL, clustered) for reducer, clustered in zip(REDUCERS, (False, True) * 4, strict=True)),
    *(Case("keep", failures, False) for failures in (*FAILURES, ALL)),
]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """One store with the run of every case, made by the command line; beside it what the command said."""
    root = tmp_path_factory.mktemp("surfaces")
    prepare(root)
    for case in CASES:
        (root / f"{case.run_id}.txt").write_text(evaluate(root, case, case.run_id))
    yield root
    MOODY["breaks"] = False


@pytest.fixture(scope="module")
def client(store: Path) -> Iterator[TestClient]:
    with TestClient(create_app(store), base_url="http://127.0.0.1") as client:
        yield client


def prepare(root: Path) -> None:
    themis.register_provider("crooked", lambda **options: Crooked())
    themis.register_metric("moody", moody)
    for has_gaps in (False, True):
        answers = [None if has_gaps and n % 8 == 3 else str(n) for n in range(ITEMS)]
        lines = [
            {"id": f"q{n}", "question": str(n), "answer": answer, "passage": f"p{n % 5 if n < 15 else 5}"}
            for n, answer in enumerate(answers)
        ]
        (root / f"{has_gaps}.jsonl").write_text("\n".join(map(json.dumps, lines)))


def evaluate(root: Path, case: Case, run_id: str) -> str:
    MOODY["breaks"] = "metric" in case.failures
    words = ["eval", str(root / f"{'references' in case.failures}.jsonl"), "-m", f"crooked/{case.failures}"]
    words += ["--run-id", run_id, "--storage", str(root), "--num-samples", str(ATTEMPTS), "--reducer", case.reducer]
    words += ["--extractor", "last_number", "--keep-going", "--max-retries", "1", "--cache", "off"]
    words += [word for metric in case.metrics for word in ("--metric", metric)]
    code, said = call(*words, *(["--cluster-field", "passage"] if case.clustered else []))
    assert code == 0, said
    return said


def call(*words: str) -> tuple[int, str]:
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(io.StringIO()):
        code = _run(words)
    return code, said.getvalue()


# --- what they should say ---------------------------------------------------------------------------------------------


def read_calls(root: Path, run_id: str) -> Any:
    """Every call of a run as a table: item, attempt, whether it was answered, the text, the reference, the cluster."""
    with contextlib.closing(sqlite3.connect(root / "themis.db")) as database:
        calls = pd.read_sql_query(
            """SELECT samples.item_id, samples.cluster, items.content, records.attempt, records.ok, records.body, records.seconds
               FROM runs JOIN samples ON samples.run = runs.run JOIN items ON items.fingerprint = samples.fingerprint
               LEFT JOIN records ON records.run = runs.run AND records.position = samples.position
               WHERE runs.run_id = ? ORDER BY samples.position, records.attempt""",
            database,
            params=(run_id,),
        )
    calls["text"] = calls["body"].map(lambda body: json.loads(body).get("text"))
    calls["answer"] = calls["content"].map(lambda content: json.loads(content)["answer"] or "")
    return calls


def score(metric: str, call: Any, breaks: bool) -> float | None:
    """The score of one answer; None where there is none."""
    numbers = re.findall(r"\d+", call.text)
    if metric == "exact_match":
        # What has no reference is neither right nor wrong; what cannot be read is wrong.
        return float(numbers[-1:] == [call.answer]) if call.answer else None
    if metric == "response_length":
        return float(len(numbers[-1])) if numbers else None
    if not numbers:
        return 0.0
    return None if breaks and numbers[-1][-1] in "14" else float(int(numbers[-1]) % 2 == 0)


def choose(reducer: str, answered: list[Any]) -> list[Any]:
    """The answers that a reducer looks at."""
    if reducer == "first":
        return answered[:1]
    if reducer == "majority":
        texts = [call.text for call in answered if re.search(r"\d", call.text)]
        # Of equally common answers the earliest; where none can be read, the first.
        winner = max(texts, key=texts.count) if texts else None
        return [next((call for call in answered if call.text == winner), *answered[:1])] if answered else []
    return answered


def reduce(reducer: str, scores: list[float]) -> float | None:
    n, passed = len(scores), sum(value == 1 for value in scores)
    if reducer in ("pass@2", "pass^2"):
        if n < 2:
            return None
        none, every = math.comb(n - passed, 2) / math.comb(n, 2), math.comb(passed, 2) / math.comb(n, 2)
        return 1 - none if reducer == "pass@2" else every
    if reducer == "any":
        return float(passed > 0)
    return max(scores) if reducer == "best" else sum(scores) / n


def expect(root: Path, case: Case, run_id: str = "") -> dict[str, dict[str, float]]:
    calls = read_calls(root, run_id or case.run_id)
    names = {"exact_match": "ExactMatch", "moody": "moody", "response_length": "ResponseLength"}
    ranges = {"exact_match": (0.0, 1.0), "response_length": (0.0, None)}
    items = [list(of_item.itertuples()) for _, of_item in calls.groupby("item_id", sort=False)]
    found = {}
    for metric in case.metrics:
        rows = []
        for of_item in items:
            looked_at = choose(case.reducer, [call for call in of_item if call.ok])
            scores = [score(metric, call, "metric" in case.failures) for call in looked_at]
            have = [value for value in scores if value is not None]
            value = reduce(case.reducer, have) if have else None
            rows.append((of_item[0].cluster, value, len(scores) - len(have)))
        table = pd.DataFrame(rows, columns=["cluster", "value", "unscored"])
        scored = table[table.value.notna()]
        clusters = list(scored.cluster) if case.clustered else None
        interval = summarise(list(scored.value), clusters=clusters, score_range=ranges.get(metric)).ci
        assert interval is not None
        found[names[metric]] = {
            "mean": float(scored.value.mean()),
            "low": interval[0],
            "high": interval[1],
            "count": len(scored),
            "failed": len(table) - len(scored),
            "attempts": len(calls),
            "failed_attempts": int((calls.ok == 0).sum() + scored.unscored.sum()),
        }
    return found


# --- what they say ----------------------------------------------------------------------------------------------------

Shown = dict[str, dict[str, Any]]


def flatten(metrics: dict[str, dict[str, Any]]) -> Shown:
    """Metrics as files and APIs give them, the interval by its ends."""
    return {
        name: {**{field: one[field] for field in FIELDS if field in one}, "low": one["ci"][0], "high": one["ci"][1]}
        for name, one in metrics.items()
    }


def read_text_table(text: str, order: tuple[str, ...]) -> Shown:
    """A table for people: the metric's name, then numbers in a known order."""
    found: Shown = {}
    for name in ("ExactMatch", "moody", "ResponseLength"):
        for line in text.splitlines():
            numbers = (
                re.findall(r"-?\d+(?:\.\d+)?", line.partition(name)[2]) if line.lstrip(" |").startswith(name) else []
            )
            if len(numbers) == len(order):
                found[name] = dict(zip(order, numbers, strict=True))
    return found


def strip_tags(page: str) -> str:
    """A line a table row, without pictures."""
    rows = re.findall(r"<tr.*?</tr>", re.sub(r"<svg.*?</svg>", "", page, flags=re.DOTALL), re.DOTALL)
    return "\n".join(" ".join(html.unescape(re.sub(r"<[^>]*>", " ", row)).split()) for row in rows)


def column_numbers(columns: Any, attempts: Any) -> Shown:
    """What the columns of a table with a row a sample add up to; the interval is for whoever reads it to work out."""
    return {
        name.removeprefix("metric:"): {
            "mean": float(columns[name].mean()),
            "count": int(columns[name].notna().sum()),
            "failed": int(columns[name].isna().sum()),
            "attempts": int(attempts.sum()),
        }
        for name in columns
    }


def from_csv(report: Any, folder: Path) -> Shown:
    table = pd.read_csv(export.export_csv(report, folder / "r.csv"))
    return column_numbers(table[[name for name in table if name.startswith("metric:")]], table["attempts"])


def from_parquet(report: Any, folder: Path) -> Shown:
    table = pd.read_parquet(export.export_parquet(report, folder / "r.parquet"))
    return column_numbers(table[[name for name in table if name.startswith("metric:")]], table["attempts"])


def from_tracker(report: Any, folder: Path) -> Shown:
    logged = report_numbers(report)
    names = {"low": "ci_low", "high": "ci_high"}
    return {
        metric: {"mean": logged[metric], **{f: logged[f"{metric}.{names.get(f, f)}"] for f in FIELDS[1:]}}
        for metric in report.evaluation_report.metrics
    }


def from_report(report: Any, folder: Path) -> Shown:
    return flatten({name: {**vars(one), "ci": one.ci} for name, one in report.evaluation_report.metrics.items()})


def from_item_scores(report: Any, folder: Path) -> Shown:
    found = {}
    for metric in report.evaluation_report.metrics:
        scores = [value for value in report.item_scores(metric).values() if value is not None]
        found[metric] = {"mean": float(np.mean(scores)), "count": len(scores)}
    return found


def from_badge(report: Any, folder: Path) -> Shown:
    metric = report.metric("exact_match")
    drawn = re.findall(r">([^<]+)</text>", draw_badge(report, metric))
    low, high = re.findall(r"\d\.\d+", next(text for text in drawn if "95 % interval" in text))
    numbers = {"mean": drawn[2], "low": low, "high": high}
    counts = next(text for text in drawn if "scored" in text)
    numbers["count"] = re.search(r"(\d+) scored", counts)[1]
    lost = re.search(r"(\d+) of (\d+) attempts failed", counts)
    return {"ExactMatch": {**numbers, **({"failed_attempts": lost[1], "attempts": lost[2]} if lost else {})}}


def from_inspect_log(report: Any, folder: Path) -> Shown:
    found: Shown = {}
    from themis.experiment.export.as_logs import _results

    for one in _results(report)["scores"]:
        found[one["name"]] = {
            "mean": one["metrics"]["mean"]["value"],
            "count": one["scored_samples"],
            "failed": one["unscored_samples"],
        }
    return found


IN_TABLES = ("mean", "low", "high", "count", "failed", "attempts", "failed_attempts")
IN_PAGES = ("mean", "low", "high", "count", "failed", "unparsed", "attempts", "failed_attempts")
ON_RUN_PAGE = (*IN_PAGES[:-2], "failed_attempts", "attempts")
EXPORTS: dict[str, Callable[[Any, Path], Shown]] = {
    "Python": from_report,
    "item_scores": from_item_scores,
    "JSON": lambda report, folder: flatten(
        {one["name"]: one for one in json.loads(export.export_json(report, folder / "r.json").read_text())["metrics"]}
    ),
    "summary": lambda report, folder: flatten(
        json.loads(export.export_summary(report, folder / "s.json").read_text())["metrics"]
    ),
    "CSV": from_csv,
    "Parquet": from_parquet,
    "Markdown": lambda report, folder: read_text_table(
        export.export_markdown(report, folder / "r.md").read_text(), IN_TABLES
    ),
    "LaTeX": lambda report, folder: read_text_table(
        export.export_latex(report, folder / "r.tex").read_text(), IN_TABLES
    ),
    "HTML": lambda report, folder: read_text_table(
        strip_tags(export.export_html(report, folder / "r.html").read_text()), IN_PAGES
    ),
    "Inspect's log": from_inspect_log,
    "tracker": from_tracker,
    "badge": from_badge,
}


def check(surface: str, shown: Shown, expected: dict[str, dict[str, float]], metrics: int | None = None) -> None:
    """Whatever a surface shows is what was worked out, to the digits it shows."""
    assert len(shown) == (len(expected) if metrics is None else metrics), (surface, shown)
    for metric, numbers in shown.items():
        for field, value in numbers.items():
            if field not in FIELDS:
                continue
            wanted = expected[metric][field]
            if isinstance(value, str):
                digits = len(value.partition(".")[2])
                assert value == f"{wanted:.{digits}f}", (surface, metric, field)
            else:
                assert value == pytest.approx(wanted, abs=1e-12), (surface, metric, field)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.run_id)
def test_every_surface_shows_what_the_stored_answers_amount_to(
    case: Case, store: Path, client: TestClient, tmp_path: Path
):
    expected = expect(store, case)
    report = build_report(ExperimentStorage(store), case.run_id)
    if case.failures == ALL:
        assert all(numbers["failed"] and numbers["failed_attempts"] for numbers in expected.values())

    for name, read in EXPORTS.items():
        check(name, read(report, tmp_path), expected, metrics=1 if name == "badge" else None)

    terminal = ("mean", "low", "high", "count", "failed", "unparsed", "attempts", "failed_attempts")
    check("end of eval", read_text_table((store / f"{case.run_id}.txt").read_text(), terminal), expected)
    in_store = ("--storage", str(store))
    check("show", read_text_table(call("show", case.run_id, *in_store)[1], terminal), expected)
    check("show --json", flatten(json.loads(call("show", case.run_id, *in_store, "--json")[1])["metrics"]), expected)
    check("API", flatten(client.get(f"/api/runs/{case.run_id}").json()["metric_details"]), expected)
    check("page", read_text_table(strip_tags(client.get(f"/runs/{case.run_id}").text), ON_RUN_PAGE), expected)


@pytest.mark.parametrize("clustered", [False, True], ids=["plain", "clustered"])
@pytest.mark.parametrize("failures", [*FAILURES, ALL])
def test_every_reducer_sums_up_every_kind_of_failure(failures: str, clustered: bool, tmp_path: Path):
    prepare(tmp_path)
    evaluate(tmp_path, Case("average", failures, clustered), "run")
    storage = ExperimentStorage(tmp_path)
    for reducer in REDUCERS:
        case = Case(reducer, failures, clustered)
        pipeline = stored_pipeline(storage, "run", metrics=case.metrics, reducer=reducer)
        check(reducer, from_report(rejudge(storage, "run", pipeline), tmp_path), expect(tmp_path, case, "run"))


def test_the_lists_of_runs_say_of_how_many_samples_a_mean_is(store: Path, client: TestClient):
    said = call("list", "runs", "--verbose", "--storage", str(store))[1]
    listed = {run["run_id"]: run for run in json.loads(call("list", "runs", "--json", "--storage", str(store))[1])}
    page = strip_tags(client.get("/runs").text)

    for case in CASES:
        expected = expect(store, case)
        check("list --json", flatten(listed[case.run_id]["metrics"]), expected)
        exact = expected["ExactMatch"]
        line = next(line for line in said.splitlines() if f"- {case.run_id} [" in line)
        assert f"ExactMatch={exact['mean']:.4f} (n={exact['count']})" in line
        row = next(row for row in page.splitlines() if row.startswith(case.run_id))
        assert f"ExactMatch {exact['mean']:.3f} n {exact['count']}" in row


@pytest.mark.parametrize("reducer", ["average", "keep", "pass@2"])
def test_a_comparison_shows_the_runs_own_means_where_all_items_are_shared(reducer: str, store: Path):
    case = next(case for case in CASES if (case.reducer, case.failures) == (reducer, ALL))
    evaluate(store, case, f"{case.run_id}-again")

    compared = compare_runs([case.run_id, f"{case.run_id}-again"], storage_path=store)

    expected = expect(store, case)
    for result in compared.pairwise_results:
        wanted = expected[result.metric_name]
        assert (result.run_a_mean, result.run_b_mean) == pytest.approx((wanted["mean"], wanted["mean"]), abs=1e-12)
        assert len(result.run_a_samples) == wanted["count"]


def test_slices_are_aggregated_as_the_run_is(tmp_path: Path):
    """A slice of every item is the run; of clusters and kept attempts it knows as much."""
    pipeline = EvaluationPipeline(
        extractor=LastNumberExtractor(),
        metrics=[ExactMatch()],
        strategy_resolver=lambda record: strategy_from_name("keep"),
    )
    pipeline.register_slice("all", lambda record: True)
    pipeline.register_slice("first half", lambda record: int(record.task.metadata["dataset_id"][1:]) < ITEMS // 2)
    rows = [{"id": f"q{n}", "question": str(n), "answer": str(n), "passage": f"p{n % 5}"} for n in range(ITEMS)]
    themis.register_provider("crooked", lambda **options: Crooked())
    report = themis.evaluate(
        rows, model="crooked/calls", prompt="{question}", evaluation_pipeline=pipeline, num_samples=ATTEMPTS,
        cluster_field="passage", storage=tmp_path, run_id="sliced", max_retries=1, keep_going=True, progress=False,
    )  # fmt: skip

    whole, half = (report.evaluation_report.slices[name]["ExactMatch"] for name in ("all", "first half"))
    assert whole.to_dict() == report.metric("exact_match").to_dict()
    assert whole.ci_method == "clustered"
    assert (half.count + half.failed, half.attempts) == (ITEMS // 2, ITEMS // 2 * ATTEMPTS)
    assert [score.value for score in half.per_sample] == [score.value for score in whole.per_sample][
        : len(half.per_sample)
    ]


# --- how the calls went -----------------------------------------------------------------------------------------------


@pytest.fixture
def priced(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A price for every crooked model, of a dollar for a thousand tokens."""
    prices = {"version": "test", "updated_at": "2026-01-01", "models": {"calls": [1000.0, 1000.0]}}
    (tmp_path / "prices.json").write_text(json.dumps(prices))
    monkeypatch.setenv("THEMIS_PRICES", str(tmp_path / "prices.json"))


@pytest.mark.usefixtures("priced")
def test_every_surface_tells_latency_truncated_answers_and_what_a_success_cost(tmp_path: Path):
    case = Case("average", "calls", clustered=False)
    prepare(tmp_path)
    said = evaluate(tmp_path, case, case.run_id)
    report = build_report(ExperimentStorage(tmp_path), case.run_id)

    calls = read_calls(tmp_path, case.run_id)
    answered = calls[calls.ok == 1]
    truncated = int(answered.body.map(lambda body: json.loads(body)["finish_reason"] == "length").sum())
    successes = {
        name: one["mean"] * one["count"] for name, one in expect(tmp_path, case).items() if name != "ResponseLength"
    }
    tokens = 10 * len(answered)
    expected = {
        "attempts": len(calls),
        "failed_attempts": len(calls) - len(answered),
        "latency_seconds": {
            f"p{n}": float(np.quantile(answered.seconds, n / 100, method="inverted_cdf")) for n in (50, 90, 99)
        },
        "truncated": truncated,
        "truncated_share": pytest.approx(truncated / len(answered)),
        "cost_per_success_usd": {name: pytest.approx(tokens / 1000 / count) for name, count in successes.items()},
        "tokens_per_success": {name: pytest.approx(tokens / count) for name, count in successes.items()},
    }
    assert report.metadata["performance"] == expected
    assert json.loads(export.export_json(report, tmp_path / "r.json").read_text())["summary"]["performance"] == expected
    assert json.loads(export.export_summary(report, tmp_path / "s.json").read_text())["performance"] == expected
    shown = call("show", case.run_id, "--storage", str(tmp_path), "--json")[1]
    assert json.loads(shown)["performance"] == expected
    with TestClient(create_app(tmp_path), base_url="http://127.0.0.1") as client:
        assert client.get(f"/api/runs/{case.run_id}").json()["performance"] == expected
        page = client.get(f"/runs/{case.run_id}").text
    logged = report_numbers(report)
    assert (logged["latency_seconds.p90"], logged["truncated"]) == (expected["latency_seconds"]["p90"], truncated)
    assert logged["ExactMatch.cost_per_success_usd"] == expected["cost_per_success_usd"]["ExactMatch"]

    facts = [
        f"{truncated:,} answers ({truncated / len(answered):.1%})",
        f"{len(calls):,}, {len(calls) - len(answered):,} failed",
    ]
    facts += [f"ExactMatch ${tokens / 1000 / successes['ExactMatch']:.4f}"]
    written = export.export_html(report, tmp_path / "r.html").read_text()
    table = export.export_markdown(report, tmp_path / "r.md").read_text().replace("\\", "")
    for surface in (said, call("show", case.run_id, "--storage", str(tmp_path))[1], page, written, table):
        assert all(fact in surface for fact in facts)


def test_a_summary_that_was_stored_with_less_is_completed_from_the_records(tmp_path: Path):
    case = Case("keep", "calls", clustered=False)
    prepare(tmp_path)
    evaluate(tmp_path, case, case.run_id)
    with contextlib.closing(sqlite3.connect(tmp_path / "themis.db")) as database, database:
        (text,) = database.execute("SELECT summary FROM runs").fetchone()
        old = {name: value for name, value in json.loads(text).items() if name != "performance"}
        old["metrics"]["ExactMatch"]["mean"] = 0.123456
        database.execute("UPDATE runs SET summary = ?", (json.dumps(old),))

    expected = expect(tmp_path, case)
    described = json.loads(call("show", case.run_id, "--storage", str(tmp_path), "--json")[1])
    assert described["performance"]["attempts"] == ITEMS * ATTEMPTS
    check("show", flatten(described["metrics"]), expected)
    with TestClient(create_app(tmp_path), base_url="http://127.0.0.1") as client:
        check("page", read_text_table(strip_tags(client.get(f"/runs/{case.run_id}").text), ON_RUN_PAGE), expected)
        check("API", flatten(client.get(f"/api/runs/{case.run_id}").json()["metric_details"]), expected)
