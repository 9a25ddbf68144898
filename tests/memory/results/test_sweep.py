"""Sweeps: the same tests at several spans with several agents."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from themis.cli import themis
from themis.exceptions import ConfigurationError
from themis.memory.report.pages import agents_page
from themis.memory.sweep import Sweep, parse_spans, plan_sweep, read_sweep, run_sweep
from themis.storage import ExperimentStorage

CONFIGURATION = """
config: {run_name: tiny}
datasets:
  args: {memory_span: 99999, dataset_examples: 2}
  datasets: [{name: colours, args: {memory_span: 77777}}, {name: names}]
"""


@pytest.fixture
def sweep(tmp_path: Path) -> Sweep:
    file = tmp_path / "tiny.yml"
    file.write_text(CONFIGURATION)
    return Sweep(configuration=str(file), agents=["oracle", "window(300)"], spans=[400, 1_500], seeds=2)


def test_spans_are_read_as_people_write_them() -> None:
    assert parse_spans("32k, 2000,0.5M") == [2_000, 32_000, 500_000]


@pytest.mark.parametrize("text", ["", "2x", "0", "2k,,8k", "2k,2000"])
def test_spans_that_are_none_are_refused(text: str) -> None:
    with pytest.raises(ConfigurationError):
        parse_spans(text)


def test_a_sweep_shows_where_a_window_ends(sweep: Sweep, tmp_path: Path) -> None:
    storage = ExperimentStorage(tmp_path / "store")
    assert run_sweep(sweep, storage) == []
    found = read_sweep(sweep, storage)

    means = {one.name: [(point.span_tokens, point.mean, point.runs) for point in one.points] for one in found.spans}
    assert means == {
        "oracle": [(400, 1.0, 2), (1_500, 1.0, 2)],
        "window(300)": [(400, 1.0, 2), (1_500, 0.0, 2)],
    }
    window = found.agents[1].summary.effective_span
    assert window is not None
    assert 100 <= window.tokens <= 300
    assert found.comparisons[0].test_result.clusters == 4
    page = agents_page(found.agents, found.spans, found.comparisons)
    assert "Score against span" in page
    assert "swapping whole conversations" in page


def test_agents_share_the_tests_of_a_span_and_seed(sweep: Sweep, tmp_path: Path) -> None:
    storage = ExperimentStorage(tmp_path / "store")
    run_sweep(sweep, storage)
    tests = {one: [sample.fingerprint for sample in storage.reader(one.run_id).samples()] for one in plan_sweep(sweep)}

    by_place: dict[tuple[int, int], set[str]] = {}
    for one, fingerprints in tests.items():
        by_place.setdefault((one.span_tokens, one.seed), set()).add("".join(fingerprints))
    assert len(by_place) == 4
    assert all(len(different) == 1 for different in by_place.values())
    assert len(set.union(*by_place.values())) == 4


def test_a_sweep_that_was_cut_off_goes_on_where_it_stopped(sweep: Sweep, tmp_path: Path) -> None:
    storage = ExperimentStorage(tmp_path / "store")
    ended: list[str] = []

    class Enough(Exception):
        pass

    def stop_after_three(one: object, error: str | None) -> None:
        ended.append("")
        if len(ended) == 3:
            raise Enough

    with pytest.raises(Enough):
        run_sweep(sweep, storage, tell=stop_after_three)
    changed = {run.run_id: run.updated_at for run in storage.list_runs(kind="memory")}
    assert len(read_sweep(sweep, storage).missing) == 5
    run_sweep(sweep, storage)

    assert read_sweep(sweep, storage).missing == []
    assert {run_id: storage.get_run(run_id).updated_at for run_id in changed} == changed


@pytest.mark.parametrize("parallel", [1, 2])
def test_one_run_that_fails_does_not_stop_the_others(sweep: Sweep, tmp_path: Path, parallel: int) -> None:
    storage = ExperimentStorage(tmp_path / "store")
    told: dict[str, str | None] = {}
    broken = Sweep(**{**vars(sweep), "agents": ["oracle", "command:/no/such/program"]})
    failed = run_sweep(broken, storage, parallel=parallel, tell=lambda one, error: told.update({one.run_id: error}))

    assert {one.agent for one in failed} == {"command:/no/such/program"}
    assert all(told[one.run_id] for one in failed)
    assert read_sweep(broken, storage).agents[0].name == "oracle"


def test_the_command_runs_in_processes_and_writes_one_page(sweep: Sweep, tmp_path: Path) -> None:
    arguments = ["memory", "sweep", "-c", sweep.configuration, "-a", "oracle", "-a", "amnesiac", "--spans", "400"]
    arguments += [
        "--parallel",
        "2",
        "--to",
        str(tmp_path / "page.html"),
        "--storage",
        str(tmp_path / "store"),
        "--json",
    ]
    outcome = CliRunner().invoke(themis, arguments, catch_exceptions=False)

    assert outcome.exit_code == 0, outcome.output
    printed = json.loads(outcome.stdout)
    assert [agent["score"] for agent in printed["agents"]] == [2.0, 0.0]
    assert "Score against span" in (tmp_path / "page.html").read_text()
