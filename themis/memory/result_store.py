"""How ended memory tests lie in the store: as records with scores, like any other item's, and the agent's snapshots.

Two agents' runs of one benchmark have the same item ids, so they can be compared test by test.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from themis.core.codec import digest, encode, fingerprint, to_plain
from themis.core.entities import (
    EvaluationRecord,
    GenerationRecord,
    MetricScore,
    ModelOutput,
    ModelSpec,
    PromptSpec,
    Result,
    SamplingConfig,
)
from themis.memory.actions import Grade, Outcome
from themis.memory.benchmark import Benchmark
from themis.memory.examples import TestExample
from themis.memory.tape import Spent
from themis.runs.lifecycle import OpenRun
from themis.runs.report import OVERALL, build_report, summarise_run
from themis.storage import ExperimentStorage
from themis.storage.runs import FAILED, SCORED, Frame, ScoreRow
from themis.storage.writing import RunWriter


class ResultStore:
    """Stores ended tests and keeps the run's sums. Storing a test twice changes nothing."""

    def __init__(self, benchmark: Benchmark, run: OpenRun) -> None:
        self._benchmark = benchmark
        self._run = run
        self._frame = frame_of(benchmark.agent_name)
        self._positions = {test.test_id: position for position, test in enumerate(benchmark.tests)}
        judge = benchmark.judge.name if benchmark.judge else None
        current = run.storage.reader(run.run_id).evaluation
        self.evaluation = run.writer.open_evaluation(
            fingerprint(["memory", judge]), {"metrics": [OVERALL], "extractor": None, "judge": judge}
        )
        self._entered = {record.task.metadata["dataset_id"] for _, record in run.reader.records()}
        # Tests that an earlier process ended without a verdict.
        self.ungraded = self._entered - self.scores().keys()
        if current is not None and len(self._entered) == len(benchmark.tests):
            # Verdicts that were given since, by another judge or by people, go on to count.
            run.writer.update(evaluation=current)

    def scores(self) -> dict[str, float]:
        """Of the tests that have one in the run's own evaluation."""
        values = self._run.reader.values(self.evaluation, OVERALL)
        return {score.item_id: score.value for score in values}

    @property
    def count(self) -> int:
        return len(self._entered)

    def has(self, test_id: str) -> bool:
        return test_id in self._entered

    def store(self, outcome: Outcome, used: Spent, run_spent: Spent, *, in_doubt: bool) -> None:
        """Stores an ended test with its verdict, then tells of both."""
        if self.has(outcome.test_id):
            return
        position = self._positions[outcome.test_id]
        test = self._benchmark.tests[position]
        self._run.writer.commit_scores(self.evaluation, score_rows(position, test.dataset.name, outcome.grade))
        record = self._record(test, outcome, used, in_doubt)
        result = Result(
            position,
            0,
            digest(self._benchmark.run_id, outcome.test_id),
            record,
            cost_usd=None if used.unpriced_calls else used.cost_usd,
            calls=used.calls,
            prompt_tokens=used.prompt_tokens,
            completion_tokens=used.completion_tokens,
            seconds=used.agent_seconds,
        )
        self._entered.add(outcome.test_id)
        # What filler cost belongs to no test, so the run's sums are those of the tape and not of its results.
        self._run.commit([result], totals={"succeeded": len(self._entered), **_sums(run_spent)})
        judged = _to_evaluation_record(test, outcome)
        self._run.notify_scores([judged])
        self._run.hand_over(record)
        self._run.check_verdict(judged)

    def store_totals(self, spent: Spent) -> None:
        self._run.writer.update(succeeded=len(self._entered), **_sums(spent))

    def snapshot(self, conversation_id: str | None) -> tuple[int, bytes] | None:
        """The turn and the memory of the agent's last snapshot."""
        stored = self._run.storage.reader(self._run.run_id).artifact(_snapshot_name(conversation_id))
        return None if stored is None else (int.from_bytes(stored[:8], "big"), stored[8:])

    def save_snapshot(self, conversation_id: str | None, turn: int, memory: bytes) -> None:
        content = turn.to_bytes(8, "big") + memory
        self._run.writer.save_artifact(_snapshot_name(conversation_id), content, "application/octet-stream")

    def _record(self, test: TestExample, outcome: Outcome, used: Spent, in_doubt: bool) -> GenerationRecord:
        answers = [said.reply for said in outcome.said if said.question]
        questions = [said.text for said in outcome.said if said.question]
        task = self._frame.task(
            test.test_id, describe_test(test, self._benchmark.kinds[test.test_id]), "\n".join(questions)
        )
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
            "said": [said.to_stored() for said in outcome.said],
            "agent_seconds": used.agent_seconds,
            "cost_usd": None if used.unpriced_calls else used.cost_usd,
            "judge_calls": used.judge_calls,
            "judge_cost_usd": None if used.unpriced_judge_calls else used.judge_cost_usd,
            "judge_seconds": used.judge_seconds,
        }
        output = ModelOutput(text="\n\n".join(answers))
        return GenerationRecord(task=task, output=output, error=None, metrics={"memory": to_plain(memory)})


def _sums(spent: Spent) -> dict[str, float]:
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


def score_rows(
    position: int, dataset: str, grade: Grade, details: Mapping[str, object] | None = None
) -> list[ScoreRow]:
    """The rows of one verdict: under the overall metric, and under the dataset's name."""
    if grade.failed:
        text = encode({"failures": list(grade.reasons) or ["no verdict and no reason given"]})
        return [ScoreRow(position, name, 0, None, FAILED, text) for name in (OVERALL, dataset)]
    told: dict[str, object] = {"reasons": list(grade.reasons)}
    if grade.questions:
        told["questions"] = [{"score": one.score, "reasons": list(one.reasons)} for one in grade.questions]
    text = encode({"details": {**told, **(details or {})}, "metadata": {}})
    return [ScoreRow(position, name, 0, grade.score, SCORED, text) for name in (OVERALL, dataset)]


def add_evaluation(
    storage: ExperimentStorage,
    writer: RunWriter,
    key: Sequence[str],
    config: Mapping[str, object],
    rows: Iterable[Sequence[ScoreRow]],
) -> None:
    """Stores other verdicts on a run's tests as its new current evaluation; those before stay under theirs."""
    evaluation = writer.open_evaluation(fingerprint(["memory", *key]), {**config, "metrics": [OVERALL]})
    for verdict in rows:
        writer.commit_scores(evaluation, verdict)
    summary = summarise_run(build_report(storage, writer.run_id, evaluation))
    writer.update(summary=encode({**storage.get_run(writer.run_id).summary, **summary}))


def _to_evaluation_record(test: TestExample, outcome: Outcome) -> EvaluationRecord:
    grade = outcome.grade
    if grade.failed:
        return EvaluationRecord(test.test_id, [], list(grade.reasons))
    scores = [MetricScore(name, grade.score, {"reasons": list(grade.reasons)}) for name in (OVERALL, test.dataset.name)]
    return EvaluationRecord(test.test_id, scores)


def describe_test(test: TestExample, kind: str) -> dict[str, Any]:
    """A test as it is stored: what it says, and with which arguments it is judged."""
    return {
        "id": test.test_id,
        "dataset": test.dataset.name,
        "kind": kind,
        "example_id": test.example_id,
        "arguments": test.arguments(),
        **test.definition(),
    }


def frame_of(agent_name: str) -> Frame:
    """What the tasks of a memory run have in common."""
    return Frame(
        model=ModelSpec(agent_name, "agent"),
        sampling=SamplingConfig(),
        prompt=PromptSpec("conversation", ""),
        id_field="id",
        reference_field="expected_responses",
    )


def _snapshot_name(conversation_id: str | None) -> str:
    return "agent-snapshot" if conversation_id is None else f"agent-snapshot {conversation_id}"
