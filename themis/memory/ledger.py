"""How a memory run lies in the store: the run and what decides it, its tests as items, ended tests as records with scores.

Two agents' runs of one benchmark have the same item ids, so they can be compared test by test.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from themis.core.codec import canonical_json, encode, to_plain
from themis.core.entities import GenerationRecord, ModelOutput, ModelSpec, PromptSpec, SamplingConfig
from themis.core.fingerprint import digest, fingerprint
from themis.exceptions import ConfigurationError
from themis.experiment.manifest import build_reproducibility_manifest, diff_identity, manifest_hash
from themis.experiment.report import build_report, summarise_run
from themis.memory.benchmark import Benchmark, Spent
from themis.memory.commands import Outcome
from themis.memory.examples import TestExample
from themis.storage import ExperimentStorage, RunStatus
from themis.storage.records import FAILED, SCORED, Call, Frame, Item, Verdict
from themis.storage.writing import RunWriter

__all__ = ["OVERALL", "Ledger", "definitions_fingerprint", "identity", "make_room", "plan"]

# The metric that every test is scored under, besides the name of its dataset.
OVERALL = "memory"
_KIND = "memory"
_NAMED_TESTS = 5


def make_room(benchmark: Benchmark, storage: ExperimentStorage) -> datetime:
    """Starts the run, or sees that the stored one may be resumed. Returns the virtual time at which it began."""
    run_id = benchmark.run_id
    if not storage.run_exists(run_id):
        start = benchmark.start or datetime.now(UTC).replace(microsecond=0)
        storage.start_run(
            run_id,
            kind=_KIND,
            model=f"agent:{benchmark.agent_name}",
            benchmark=benchmark.name,
            config={"start": start.isoformat(), "invocation": dict(benchmark.invocation)},
        )
        return start
    run = storage.get_run(run_id)
    if run.kind != _KIND:
        raise ConfigurationError(f"run {run_id!r} is a run of kind {run.kind!r}; give this one another --run-id")
    if storage.is_planned(run_id) and (differences := diff_identity(storage.identity(run_id), identity(benchmark))):
        shown = [*differences, *_changed_tests(benchmark, storage)]
        raise ConfigurationError(
            f"run {run_id!r} exists with other inputs:\n  " + "\n  ".join(shown) + "\nGive another --run-id, "
            f"restore what has changed, or delete the run with: themis delete {shlex.quote(run_id)}"
            + _other_judge(benchmark, storage)
        )
    return datetime.fromisoformat(run.config_snapshot["start"])


def _changed_tests(benchmark: Benchmark, storage: ExperimentStorage) -> list[str]:
    """Which tests are not as they were, the first few by name."""
    then = {sample.item_id: digest(canonical_json(sample.row)) for sample in storage.reader(benchmark.run_id).samples()}
    now = {test.test_id: digest(canonical_json(to_plain(_content(test, benchmark)))) for test in benchmark.tests}
    changed = sorted(name for name in then.keys() | now.keys() if then.get(name) != now.get(name))
    if not changed:
        return []
    more = f" and {len(changed) - _NAMED_TESTS} more" if len(changed) > _NAMED_TESTS else ""
    return [f"tests that are not as they were: {', '.join(changed[:_NAMED_TESTS])}{more}"]


def _other_judge(benchmark: Benchmark, storage: ExperimentStorage) -> str:
    """How to have another judge without another conversation."""
    judge = "" if benchmark.judge is None else benchmark.judge.name
    if not judge or storage.identity(benchmark.run_id).get("judge", "") == judge:
        return ""
    return f". Another judge takes its stored answers: themis rejudge {shlex.quote(benchmark.run_id)} --judge {judge}"


def plan(benchmark: Benchmark, storage: ExperimentStorage, writer: RunWriter, start: datetime) -> None:
    """Stores the tests as items and what decides the run, once."""
    if storage.is_planned(benchmark.run_id):
        if storage.count_lost_rows(benchmark.run_id):
            writer.restore_rows(_item(position, test, benchmark) for position, test in enumerate(benchmark.tests))
        writer.update(status=RunStatus.IN_PROGRESS.value, error=None)
        return
    manifest = _manifest(benchmark)
    stamp = manifest_hash(manifest)
    config = {
        "reproducibility_manifest": manifest,
        "manifest_hash": stamp,
        "task": _frame(benchmark).to_config(),
        "start": start.isoformat(),
        "invocation": dict(benchmark.invocation),
        "memory": {
            "isolated": benchmark.isolated,
            "clock": benchmark.clock.mode,
            "tokenizer": benchmark.tokenizer,
            "seed": benchmark.seed,
            "spans": sorted({test.dataset.memory_span for test in benchmark.tests}),
            "definitions": definitions_fingerprint(benchmark.tests),
        },
    }
    # First what the run is, then its tests: a run counts as planned when both are there.
    writer.describe(identity=identity(benchmark), config=config, manifest_hash=stamp)
    writer.forget_plan()
    writer.plan(_item(position, test, benchmark) for position, test in enumerate(benchmark.tests))


def identity(benchmark: Benchmark) -> dict[str, str]:
    """What decides a run's results, by dimension."""
    conflicts = {kind: sorted(others) for kind, others in benchmark.conflicts.items()}
    return {
        "agent": benchmark.agent_name,
        "agent_options": canonical_json(dict(benchmark.agent_options)) if benchmark.agent_options else "",
        "definitions": f"{len(benchmark.tests)} tests, {definitions_fingerprint(benchmark.tests)[:16]}",
        "incompatibilities": fingerprint(conflicts)[:16],
        "isolated": str(benchmark.isolated),
        "clock": benchmark.clock.mode,
        "filler": benchmark.filler.fingerprint[:16],
        "tokenizer": benchmark.tokenizer,
        "max_message_tokens": str(benchmark.max_message_tokens),
        "introduction": digest(benchmark.introduction or "")[:16],
        "judge": benchmark.judge.name if benchmark.judge else "",
    }


def definitions_fingerprint(tests: Any) -> str:
    """One hash over the tests in order: what each says, waits for, expects, and with which arguments it is judged."""
    return fingerprint([[test.test_id, test.definition(), _arguments(test)] for test in tests])


class Ledger:
    """Enters ended tests and keeps the run's sums. Entering a test twice changes nothing."""

    def __init__(self, benchmark: Benchmark, storage: ExperimentStorage, writer: RunWriter) -> None:
        self._benchmark = benchmark
        self._storage = storage
        self._writer = writer
        self._frame = _frame(benchmark)
        self._positions = {test.test_id: position for position, test in enumerate(benchmark.tests)}
        judge = benchmark.judge.name if benchmark.judge else None
        current = storage.current_evaluation(benchmark.run_id)
        self.evaluation = writer.open_evaluation(
            fingerprint(["memory", judge]), {"metrics": [OVERALL], "extractor": None, "judge": judge}
        )
        reader = storage.reader(benchmark.run_id)
        self._entered = {record.task.metadata["dataset_id"] for _, record in reader.records()}
        # Tests that an earlier process ended without a verdict.
        self.undecided = self._entered - self.scores().keys()
        if current is not None and len(self._entered) == len(benchmark.tests):
            # Verdicts that were given since, by another judge or by people, go on to count.
            writer.update(evaluation=current)

    def scores(self) -> dict[str, float]:
        """Of the tests that have one in the run's own evaluation."""
        values = self._storage.reader(self._benchmark.run_id).values(self.evaluation, OVERALL)
        return {test_id: value for test_id, _, value in values}

    def has(self, test_id: str) -> bool:
        return test_id in self._entered

    def store(self, outcome: Outcome, used: Spent, run_spent: Spent, *, in_doubt: bool) -> None:
        if self.has(outcome.test_id):
            return
        position = self._positions[outcome.test_id]
        test = self._benchmark.tests[position]
        self._writer.commit_verdicts(self.evaluation, _verdicts(position, test, outcome))
        key = digest(self._benchmark.run_id, outcome.test_id)
        record = self._record(test, outcome, used, in_doubt)
        # The run's sums are set as a whole below, so the call itself counts as spent already.
        call = Call(
            position,
            0,
            key,
            record,
            cost_usd=None if used.unpriced_calls else used.cost_usd,
            prompt_tokens=used.prompt_tokens,
            completion_tokens=used.completion_tokens,
            seconds=used.agent_seconds,
            reused=True,
        )
        self._writer.commit_calls([call])
        self._entered.add(outcome.test_id)
        self._writer.update(succeeded=len(self._entered), **_sums(run_spent))

    def close(self, status: RunStatus, spent: Spent, reason: str | None) -> None:
        self._writer.update(succeeded=len(self._entered), **_sums(spent))
        summary = summarise_run(build_report(self._storage, self._benchmark.run_id))
        summary["memory"] = {
            "tests": len(self._benchmark.tests),
            "ended": len(self._entered),
            "turns": spent.turns,
            "conversation_tokens": spent.conversation_tokens,
            "agent_seconds": round(spent.agent_seconds, 3),
        }
        self._writer.finish(status, summary=summary, error=reason)

    def snapshot(self, lane: str | None) -> tuple[int, bytes] | None:
        """The turn and the memory of the agent's last snapshot."""
        stored = self._storage.artifact(self._benchmark.run_id, _snapshot_name(lane))
        return None if stored is None else (int.from_bytes(stored[:8], "big"), stored[8:])

    def save_snapshot(self, lane: str | None, turn: int, memory: bytes) -> None:
        content = turn.to_bytes(8, "big") + memory
        self._writer.save_artifact(_snapshot_name(lane), content, "application/octet-stream")

    def _record(self, test: TestExample, outcome: Outcome, used: Spent, in_doubt: bool) -> GenerationRecord:
        answers = [said.reply for said in outcome.said if said.question]
        questions = [said.text for said in outcome.said if said.question]
        task = self._frame.task(test.test_id, _content(test, self._benchmark), "\n".join(questions))
        memory = {
            "dataset": test.dataset.name,
            "tokens": outcome.tokens,
            "characters": outcome.characters,
            "span_tokens": outcome.span_tokens,
            "overran": outcome.overran,
            "in_doubt": in_doubt,
            "needles": sum(said.needle for said in outcome.said),
            "began": {"tokens": outcome.began.tokens, "now": outcome.began.now},
            "ended": {"tokens": outcome.ended.tokens, "now": outcome.ended.now},
            "listened_from_turn": outcome.listened_from_turn,
            "reasons": list(outcome.grade.reasons),
            "failed": outcome.grade.failed,
            "responses": answers,
            "said": [
                {
                    "turn": said.turn,
                    "now": said.now,
                    "tokens_before": said.tokens_before,
                    "question": said.question,
                    "needle": said.needle,
                    "needs": said.needs,
                    "message": said.text,
                    "reply": said.reply,
                }
                for said in outcome.said
            ],
            "agent_seconds": used.agent_seconds,
            "cost_usd": None if used.unpriced_calls else used.cost_usd,
            "judge_calls": used.judge_calls,
            "judge_cost_usd": None if used.unpriced_judge_calls else used.judge_cost_usd,
            "judge_seconds": used.judge_seconds,
        }
        output = ModelOutput(text="\n\n".join(answers))
        return GenerationRecord(task=task, output=output, error=None, metrics={"memory": to_plain(memory)})


def _sums(spent: Spent) -> dict[str, Any]:
    return {
        "calls": spent.calls,
        "unpriced_calls": spent.unpriced_calls,
        "prompt_tokens": spent.prompt_tokens,
        "completion_tokens": spent.completion_tokens,
        "cost_usd": spent.cost_usd,
        "seconds": spent.agent_seconds,
        "judge_calls": spent.judge_calls,
        "judge_cost_usd": spent.judge_cost_usd,
        "unpriced_judge_calls": spent.unpriced_judge_calls,
    }


def _verdicts(position: int, test: TestExample, outcome: Outcome) -> list[Verdict]:
    grade = outcome.grade
    if grade.failed:
        text = encode({"failures": list(grade.reasons) or ["no verdict and no reason given"]})
        return [Verdict(position, name, 0, None, FAILED, text) for name in (OVERALL, test.dataset.name)]
    text = encode({"details": {"reasons": list(grade.reasons)}, "metadata": {}})
    return [Verdict(position, name, 0, grade.score, SCORED, text) for name in (OVERALL, test.dataset.name)]


def _item(position: int, test: TestExample, benchmark: Benchmark) -> Item:
    content = canonical_json(to_plain(_content(test, benchmark)))
    return Item(position, test.test_id, digest(content), content)


def _content(test: TestExample, benchmark: Benchmark) -> dict[str, Any]:
    return {
        "id": test.test_id,
        "dataset": test.dataset.name,
        "kind": benchmark.kinds[test.test_id],
        "example_id": test.example_id,
        "arguments": _arguments(test),
        **test.definition(),
    }


def _arguments(test: TestExample) -> dict[str, Any]:
    found: Mapping[str, Any] = {name: getattr(test.dataset, name) for name in test.dataset.arguments()}
    return {name: to_plain(value) for name, value in sorted(found.items())}


def _frame(benchmark: Benchmark) -> Frame:
    return Frame(
        model=ModelSpec(benchmark.agent_name, "agent"),
        sampling=SamplingConfig(),
        prompt=PromptSpec("conversation", ""),
        id_field="id",
        reference_field="expected_responses",
    )


def _manifest(benchmark: Benchmark) -> dict[str, Any]:
    datasets = sorted({test.dataset.name for test in benchmark.tests})
    return build_reproducibility_manifest(
        model=benchmark.agent_name,
        provider="agent",
        provider_options=dict(benchmark.agent_options),
        sampling=SamplingConfig(),
        num_samples=1,
        evaluation_config={
            "metrics": [OVERALL, *datasets],
            "extractor": "memory tests",
            "judge": benchmark.judge.name if benchmark.judge else None,
        },
        seeds={"provider_seed": benchmark.seed},
        dataset_fingerprint=definitions_fingerprint(benchmark.tests),
        benchmark_id=benchmark.name,
        dataset_source=identity(benchmark),
    )


def _snapshot_name(lane: str | None) -> str:
    return "agent-snapshot" if lane is None else f"agent-snapshot {lane}"
