"""The driver of memory runs: what such a run is made of and known by, its tests as items, conversations as work.

`runs.lifecycle` calls it; `memory.runner` holds the conversations.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from themis.config.specification import STORED_AS, MemorySpecification
from themis.core.codec import canonical_json, digest, fingerprint, to_plain
from themis.core.entities import ExperimentReport, SamplingConfig
from themis.memory.benchmark import Benchmark
from themis.memory.models import ChatModel
from themis.memory.result_store import describe_test, frame_of
from themis.memory.runner import AgentPool, Session
from themis.runs.lifecycle import Driver, OpenRun
from themis.runs.lifecycle import run as run_driver
from themis.runs.manifest import build_reproducibility_manifest, diff_identity, manifest_hash
from themis.runs.observers import Observer, Progress
from themis.runs.prices import refuse_unknown_cost
from themis.runs.report import OVERALL, build_report, why_not_judged
from themis.storage import ExperimentStorage
from themis.storage.runs import Item
from themis.storage.writing import RunDescription

_NAMED_TESTS = 5


def run(benchmark: Benchmark, storage: ExperimentStorage, observers: Sequence[Observer] = ()) -> ExperimentReport:
    """Runs a benchmark of memory tests, or what is left of it, and reports on all of it.

    Args:
        benchmark: Everything the run is made of.
        storage: Where it is kept.
        observers: Told of everything after it is stored.

    Returns:
        The report; its records are the tests that have ended.

    Raises:
        ConfigurationError: The run exists with other inputs, or a budget could not bind; nothing was said.
        RunInterrupted: The user stopped it; everything said is stored.
        RunFailedError: Not one test could be judged; has the report.

    >>> from themis.memory.agents import create_agent
    >>> from themis.memory.filler import create_filler
    >>> from themis.memory.examples import MEMORY_TESTS
    >>> tests = MEMORY_TESTS.get("names")(memory_span=500).generate_examples(1)
    >>> benchmark = Benchmark(
    ...     run_id="small",
    ...     name="small",
    ...     tests=tests,
    ...     kinds={tests[0].test_id: "names"},
    ...     conflicts={},
    ...     agent_name="amnesiac",
    ...     make_agent=lambda session: create_agent("amnesiac"),
    ...     filler=create_filler("mixed"),
    ... )
    >>> run(benchmark, ExperimentStorage("runs"))
    ExperimentReport(small: 1 samples; Names=0.0000, memory=0.0000)
    """
    return run_driver(MemoryDriver(benchmark), storage, observers)


class MemoryDriver(Driver):
    """One long conversation, or with isolated tests one for each."""

    def __init__(self, setup: Benchmark) -> None:
        asked = setup.specification or MemorySpecification(needs_program="a program started it")
        self.specification = replace(asked, run_id=setup.run_id, budget_usd=setup.budget_usd)
        self.model = f"agent:{setup.agent_name}"
        self.benchmark = setup.name
        self._setup = setup
        self._agents = AgentPool(setup)
        self._session: Session | None = None

    @property
    def metric_names(self) -> list[str]:
        return [*dict.fromkeys(test.dataset.name for test in self._setup.tests), OVERALL]

    # --- what the run is ----------------------------------------------------------------------------------------------

    def check(self) -> None:
        """Makes the first agent, so that what is wrong with it is found before there is a run."""
        agent = self._agents.make_first()
        self.moves_clock = self._setup.clock.moves_for(agent)

    def refuse_unknown_costs(self) -> None:
        agent, setup = self._agents.first, self._setup
        if not setup.agent_is_free and agent.most_cost_usd("") is None:
            refuse_unknown_cost(f"the agent {setup.agent_name!r}", agent.how_to_bound_cost)
        if setup.judge is not None and setup.judge.most_cost_usd("") is None:
            refuse_unknown_cost(f"the judge {setup.judge.name!r}")

    def close(self) -> None:
        self._agents.close()
        if isinstance(self._setup.judge, ChatModel):
            self._setup.judge.close()

    def find_drift(self, storage: ExperimentStorage) -> list[str]:
        differences = diff_identity(storage.reader(self._setup.run_id).identity, identity(self._setup))
        return [*differences, *self._changed_tests(storage)] if differences else []

    def ways_on(self, storage: ExperimentStorage) -> list[str]:
        run_id = shlex.quote(self._setup.run_id)
        ways = ["restore what has changed", f"delete the run with: themis delete {run_id}"]
        judge = "" if self._setup.judge is None else self._setup.judge.name
        if judge and storage.reader(self._setup.run_id).identity.get("judge", "") != judge:
            ways.append(f"another judge takes its stored answers: themis rejudge {run_id} --judge {judge}")
        return ways

    def _changed_tests(self, storage: ExperimentStorage) -> list[str]:
        """Which tests are not as they were, the first few by name."""
        stored = storage.reader(self._setup.run_id).samples()
        then = {sample.item_id: digest(canonical_json(sample.row)) for sample in stored}
        now = {item.item_id: item.fingerprint for item in self.items()}
        changed = sorted(name for name in then.keys() | now.keys() if then.get(name) != now.get(name))
        if not changed:
            return []
        more = f" and {len(changed) - _NAMED_TESTS} more" if len(changed) > _NAMED_TESTS else ""
        return [f"tests that are not as they were: {', '.join(changed[:_NAMED_TESTS])}{more}"]

    def items(self) -> Iterable[Item]:
        for position, test in enumerate(self._setup.tests):
            content = canonical_json(to_plain(describe_test(test, self._setup.kinds[test.test_id])))
            yield Item(position, test.test_id, digest(content), content)

    def describe(self) -> RunDescription:
        setup = self._setup
        manifest = _manifest(setup)
        stamp = manifest_hash(manifest)
        start = setup.start or datetime.now(UTC).replace(microsecond=0)
        config = {
            "reproducibility_manifest": manifest,
            "manifest_hash": stamp,
            "task": frame_of(setup.agent_name).to_config(),
            "start": start.isoformat(),
            STORED_AS: self.specification.to_stored(),
            "memory": {
                "isolated": setup.isolated,
                "clock": setup.clock.mode,
                "tokenizer": setup.tokenizer,
                "seed": setup.seed,
                "spans": sorted({test.dataset.memory_span for test in setup.tests}),
                "definitions": definitions_fingerprint(setup.tests),
            },
        }
        return RunDescription(identity=identity(setup), config=config, manifest_hash=stamp)

    # --- what it does -------------------------------------------------------------------------------------------------

    def work(self, run: OpenRun) -> None:
        start = datetime.fromisoformat(run.storage.get_run(run.run_id).config_snapshot["start"])
        self._session = Session(self._setup, run, start, self._agents)
        run.notify_start()
        if run.on_result is not None:
            for _, record in run.reader.records():
                run.hand_over(record)
        self._session.play()
        self._session.judge_rest()

    def stop(self, *, at_once: bool) -> int:
        return 0 if self._session is None else self._session.in_flight

    def progress(self) -> Progress:
        return Progress() if self._session is None else self._session.progress()

    def report(self, run: OpenRun) -> ExperimentReport:
        if self._session is not None:
            self._session.store_totals()
        report = build_report(run.storage, run.run_id)
        report.metadata.update(self.summary())
        return report

    def why_nothing_worked(self, report: ExperimentReport) -> str:
        return why_not_judged(report, by_each=False)

    def summary(self) -> dict[str, object]:
        return {} if self._session is None else {"memory": self._session.summary()}


def identity(setup: Benchmark) -> dict[str, str]:
    """What decides a run's results, by dimension."""
    conflicts = {kind: sorted(others) for kind, others in setup.conflicts.items()}
    return {
        "agent": setup.agent_name,
        "agent_options": canonical_json(dict(setup.agent_options)) if setup.agent_options else "",
        "definitions": f"{len(setup.tests)} tests, {definitions_fingerprint(setup.tests)[:16]}",
        "incompatibilities": fingerprint(conflicts)[:16],
        "isolated": str(setup.isolated),
        "clock": setup.clock.mode,
        "filler": setup.filler.fingerprint[:16],
        "tokenizer": setup.tokenizer,
        "max_message_tokens": str(setup.max_message_tokens),
        "introduction": digest(setup.introduction or "")[:16],
        "judge": setup.judge.name if setup.judge else "",
    }


def definitions_fingerprint(tests: Any) -> str:
    """One hash over the tests in order: what each says, waits for, expects, and with which arguments it is judged."""
    return fingerprint([[test.test_id, test.definition(), test.arguments()] for test in tests])


def _manifest(setup: Benchmark) -> dict[str, Any]:
    datasets = sorted({test.dataset.name for test in setup.tests})
    return build_reproducibility_manifest(
        model=setup.agent_name,
        provider="agent",
        provider_options=dict(setup.agent_options),
        sampling=SamplingConfig(),
        num_samples=1,
        evaluation_config={
            "metrics": [OVERALL, *datasets],
            "extractor": "memory tests",
            "judge": setup.judge.name if setup.judge else None,
        },
        seeds={"provider_seed": setup.seed},
        dataset_fingerprint=definitions_fingerprint(setup.tests),
        benchmark_id=setup.name,
        dataset_source=identity(setup),
    )
