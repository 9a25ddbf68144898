"""What came of a memory run, read from the store: every test's result, and the run in a few numbers with their intervals.

How the numbers are defined is written in docs/guides/memory-results.md; `summarise_results` is where they are computed.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, ClassVar

from themis.core.entities import EvaluationRecord
from themis.core.intervals import MeanEstimate, bounded_interval, estimate_mean
from themis.exceptions import ConfigurationError
from themis.memory.actions import Message
from themis.memory.examples import MEMORY_TESTS, TestResult
from themis.memory.questions import Question, QuestionScore, find_questions
from themis.memory.spans import EffectiveSpan, Point, effective_span
from themis.runs.report import OVERALL
from themis.storage import ExperimentStorage, RunMetadata
from themis.storage.queries import RunReader

# Distances within so large a factor of each other are about one.
_ABOUT_ONE = 1.25


@dataclass(kw_only=True)
class StoredResult(TestResult):
    """A test's result with its place in the conversation and what it took. `ended` is False for a test still to run."""

    __test__: ClassVar[bool] = False

    ended: bool = False
    # Of what the test says and how it is judged: two runs have the same test where this is the same.
    fingerprint: str = ""
    span_tokens: int = 0
    began_tokens: int = 0
    ended_tokens: int = 0
    listened: bool = False
    overran: bool = False
    in_doubt: bool = False
    messages: list[Message] = field(default_factory=list)
    agent_seconds: float = 0.0
    cost_usd: float | None = 0.0
    judge_calls: int = 0
    judge_cost_usd: float | None = 0.0
    judge_seconds: float = 0.0
    # Message and reply of everyone's exchanges while it listened, where no conversation is stored.
    heard: list[Sequence[str]] = field(default_factory=list)
    # A score that somebody published: as it was written, and the automatic one where a person has changed it.
    published: Mapping[str, Any] = field(default_factory=dict)
    # A person's verdict in place of the automatic one: score before, reason, who, when.
    override: Mapping[str, Any] = field(default_factory=dict)
    # Where the source of a question says which messages hold its answer.
    evidence: Mapping[str, object] = field(default_factory=dict)

    # The verdict on each question, where the test gave one.
    question_scores: list[QuestionScore] = field(default_factory=list)
    ended_now: datetime | None = None

    @property
    def questions(self) -> list[Question]:
        """What was asked, with the distance to everything that each answer needs, and with its score."""
        return find_questions(
            self.messages,
            self.question_scores,
            score=self.score,
            listened_until=(self.ended_tokens, self.ended_now) if self.listened else None,
        )

    @property
    def distance_tokens(self) -> int:
        """How far back the oldest thing lies that an answer needs."""
        return max((question.distance_tokens for question in self.questions), default=0)


@dataclass(frozen=True)
class DatasetScore:
    """The mean of a dataset's tests from 0 to 1; NaN with nothing scored."""

    name: str
    mean: float
    stderr: float | None
    interval: tuple[float, float] | None
    scored: int
    undecided: int = 0
    missing: int = 0


@dataclass(frozen=True, kw_only=True)
class RunSummary:
    """A run in a few numbers. What cannot be known (the price of a model, say) is None."""

    run_id: str
    agent: str
    datasets: list[DatasetScore]
    # Sum of the datasets' means, out of the number of datasets that have one.
    score: float
    score_interval: tuple[float, float] | None
    max_score: int
    scored: int
    undecided: int
    missing: int
    # Accuracy-weighted distance: the mean over tests of what their questions score times their distance, in tokens.
    ltm_score: float
    effective_span: EffectiveSpan | None
    overran: int
    in_doubt: int
    overridden: int
    hand_edited: int
    cost_usd: float | None
    judge_cost_usd: float | None
    judge_calls: int
    # Tests that words did not settle, so that the judge was asked.
    judged: int
    agent_seconds: float
    # The replies that the agent made itself, in tokens.
    verbosity_tokens: int | None = None

    @property
    def accuracy(self) -> float:
        """Percent of the possible score."""
        return 100 * self.score / self.max_score if self.max_score else math.nan

    @property
    def speed_tokens_per_second(self) -> float | None:
        if not self.verbosity_tokens or self.agent_seconds <= 0:
            return None
        return self.verbosity_tokens / self.agent_seconds

    def to_dict(self) -> dict[str, object]:
        span, tests = self.effective_span, {"scored": self.scored, "undecided": self.undecided, "missing": self.missing}
        return {
            **{name: value for name, value in vars(self).items() if name not in tests},
            "accuracy": self.accuracy,
            "effective_span": None if span is None else span.to_dict(),
            "tests": tests,
            "speed_tokens_per_second": self.speed_tokens_per_second,
            "datasets": [vars(dataset) for dataset in self.datasets],
        }


@dataclass(frozen=True)
class RunResults:
    """A run with its tests' results, in the order of the benchmark."""

    run: RunMetadata
    results: list[StoredResult]
    judged_as: str
    # What is stored of that way of judging.
    judging: Mapping[str, object] = field(default_factory=dict)

    @property
    def run_id(self) -> str:
        return self.run.run_id

    @property
    def agent(self) -> str:
        return self.run.model.removeprefix("agent:")

    @property
    def isolated(self) -> bool:
        return bool(self.run.config_snapshot.get("memory", {}).get("isolated"))


# --- reading ----------------------------------------------------------------------------------------------------------


def load_results(storage: ExperimentStorage, run_id: str, judged_as: str | None = None) -> RunResults:
    """Every test of a run with its result.

    Args:
        storage: The store that has the run.
        run_id: A memory run.
        judged_as: The evaluation whose scores are wanted; by default the current one.

    Raises:
        ConfigurationError: It is no memory run, or has no such evaluation.
    """
    return read_results(storage.reader(run_id), judged_as)


def read_results(reader: RunReader, judged_as: str | None = None) -> RunResults:
    """Every test of a run with its result, for whoever reads the run already.

    Args:
        reader: A memory run.
        judged_as: The evaluation whose scores are wanted; by default the current one.

    Raises:
        ConfigurationError: It is no memory run, or has no such evaluation.
    """
    run = reader.metadata
    if run.kind != "memory":
        raise ConfigurationError(f"run {run.run_id!r} is a run of kind {run.kind!r}, expected a memory run")
    evaluation = reader.evaluation
    name, judging = "as run", dict[str, object]()
    if judged_as is not None or evaluation is not None:
        found = reader.find_evaluation(judged_as or str(evaluation))
        evaluation, name, judging = found.evaluation, found.name, dict(found.config)
    records = {record.task.metadata["dataset_id"]: record for _, record in reader.records()}
    verdicts = {}
    if evaluation is not None:
        verdicts = {record.sample_id: record for _, record in reader.evaluations(evaluation)}
    results = []
    for sample in reader.samples():
        result = replace(_read_planned(run, sample.item_id, sample.row), fingerprint=sample.fingerprint)
        if (record := records.get(sample.item_id)) is not None:
            _add_record(result, record.metrics.get("memory", {}))
        if (verdict := verdicts.get(sample.item_id)) is not None:
            _add_verdict(result, verdict)
        results.append(result)
    return RunResults(run, results, name, judging)


def _read_planned(run: RunMetadata, item_id: str, row: Mapping[str, Any]) -> StoredResult:
    kind = str(row.get("kind", ""))
    known = kind in MEMORY_TESTS
    return StoredResult(
        run_name=run.benchmark or "",
        agent_name=run.model.removeprefix("agent:"),
        dataset_name=str(row.get("dataset") or item_id.rpartition(" - ")[0]),
        example_id=str(row.get("example_id") or item_id.rpartition(" - ")[2]),
        description=MEMORY_TESTS.get(kind).description if known else "",
        expected_responses=row.get("expected_responses"),
        span_tokens=int((row.get("arguments") or {}).get("memory_span") or 0),
        evidence=(row.get("material") or {}).get("evidence") or {},
    )


def _add_record(result: StoredResult, memory: Mapping[str, Any]) -> None:
    result.ended = True
    result.messages = [Message.from_stored(said) for said in memory.get("said", ())]
    result.actual_responses = list(memory.get("responses", ()))
    result.reasoning = list(memory.get("reasons", ()))
    result.tokens, result.characters = int(memory.get("tokens") or 0), int(memory.get("characters") or 0)
    result.needles = int(memory.get("needles") or 0)
    result.span_tokens = int(memory.get("span_tokens") or result.span_tokens)
    result.began_tokens, result.ended_tokens = (
        int((memory.get(end) or {}).get("tokens") or 0) for end in ("began", "ended")
    )
    now = (memory.get("ended") or {}).get("now")
    result.ended_now = datetime.fromisoformat(now) if now else None
    result.listened = memory.get("listened_from_turn") is not None
    result.overran, result.in_doubt = bool(memory.get("overran")), bool(memory.get("in_doubt"))
    result.agent_seconds = float(memory.get("agent_seconds") or 0.0)
    result.cost_usd = memory.get("cost_usd")
    result.judge_calls = int(memory.get("judge_calls") or 0)
    result.judge_cost_usd = memory.get("judge_cost_usd", 0.0)
    result.judge_seconds = float(memory.get("judge_seconds") or 0.0)
    if memory.get("expected_responses") is not None:
        result.expected_responses = memory["expected_responses"]
    result.task_log = list(memory.get("task_log") or [])
    result.heard = list(memory.get("heard") or [])


def _add_verdict(result: StoredResult, verdict: EvaluationRecord) -> None:
    score = next((score for score in verdict.scores if score.metric_name == OVERALL), None)
    if score is None:
        result.reasoning = list(verdict.failures) or result.reasoning
        return
    result.score = score.value
    result.reasoning = [str(reason) for reason in score.details.get("reasons", result.reasoning)]
    result.question_scores = [
        QuestionScore(one["score"], tuple(one["reasons"])) for one in score.details.get("questions", ())
    ]
    result.published = score.details.get("published") or {}
    result.override = score.details.get("override") or {}


# --- a run in a few numbers -------------------------------------------------------------------------------------------


def summarise_results(
    found: RunResults, *, verbosity_tokens: int | None = None, conversations: Sequence[Hashable] | None = None
) -> RunSummary:
    """Score, span and cost of a run.

    Args:
        found: What `load_results` returned.
        verbosity_tokens: Tokens of the agent's own replies, known to whoever has read the conversation.
        conversations: For each result, the conversation it is from, where several runs are pooled: intervals then rest on
            whole conversations.
    """
    run, results = found.run, found.results
    datasets = dataset_scores(results, conversations)
    decided = [dataset for dataset in datasets if dataset.interval is not None]
    scored = [result for result in results if result.score is not None]
    return RunSummary(
        run_id=run.run_id,
        agent=found.agent,
        datasets=datasets,
        score=math.fsum(dataset.mean for dataset in decided) if decided else math.nan,
        score_interval=interval_of_sum(_by_dataset(results, conversations).values()),
        max_score=len(decided),
        scored=len(scored),
        undecided=sum(result.ended and result.score is None for result in results),
        missing=sum(not result.ended for result in results),
        ltm_score=_ltm_score(scored),
        effective_span=effective_span(points_of(results)),
        overran=sum(result.overran for result in results),
        in_doubt=sum(result.in_doubt for result in results),
        overridden=sum(bool(result.override) for result in results),
        hand_edited=sum(bool(result.published.get("by_hand")) for result in results),
        cost_usd=run.cost_usd,
        judge_cost_usd=run.judge_cost_usd,
        judge_calls=run.judge_calls,
        judged=sum(result.judge_calls > 0 for result in results),
        agent_seconds=run.seconds,
        verbosity_tokens=verbosity_tokens,
    )


def points_of(results: Iterable[StoredResult], conversation: Hashable = None) -> list[Point]:
    """The scored questions as the effective span takes them.

    A question that needs nothing that was told says nothing about memory. Where a test has several questions and only one
    score, it is one point, if its questions lie at about one distance; else nobody can tell what was forgotten.

    Args:
        results: Of one run.
        conversation: What tells this run's conversation from others' in a sweep.
    """
    points = []
    for result in results:
        questions = [question for question in result.questions if question.needles]
        decided = [(one.distance_tokens, one.score) for one in questions if one.score is not None]
        if not decided and result.score is not None and questions:
            distances = sorted(question.distance_tokens for question in questions)
            if distances[-1] <= _ABOUT_ONE * max(1, distances[0]):
                decided = [(distances[len(distances) // 2], result.score)]
        points += [
            Point(result.dataset_name, distance, score, conversation, result.test_id) for distance, score in decided
        ]
    return points


def _ltm_score(scored: Sequence[StoredResult]) -> float:
    """The mean over tests of score times distance: of each question, or of the whole where questions have no scores."""
    reached = []
    for result in scored:
        parts = [one.score * one.distance_tokens for one in result.questions if one.score is not None]
        reached.append(_mean(parts) if parts else (result.score or 0.0) * result.distance_tokens)
    return _mean(reached)


@dataclass(frozen=True)
class ScoredTest:
    """A test's score, and the conversation it was held in; None where there is one conversation."""

    score: float
    conversation: Hashable = None


def dataset_scores(
    results: Iterable[StoredResult], conversations: Sequence[Hashable] | None = None
) -> list[DatasetScore]:
    """One entry a dataset, in the order in which they first appear.

    Args:
        results: Of any number of datasets.
        conversations: For each result, the conversation it is from, where there are several.
    """
    results = list(results)
    grouped: dict[str, list[StoredResult]] = {}
    for result in results:
        grouped.setdefault(result.dataset_name, []).append(result)
    tests = _by_dataset(results, conversations)
    return [_dataset_score(name, members, tests.get(name, ())) for name, members in grouped.items()]


def _by_dataset(
    results: Sequence[StoredResult], conversations: Sequence[Hashable] | None
) -> dict[str, list[ScoredTest]]:
    grouped: dict[str, list[ScoredTest]] = {}
    for place, result in enumerate(results):
        if result.score is not None:
            test = ScoredTest(result.score, conversations[place] if conversations else None)
            grouped.setdefault(result.dataset_name, []).append(test)
    return grouped


def _dataset_score(name: str, members: Sequence[StoredResult], tests: Sequence[ScoredTest]) -> DatasetScore:
    estimate = _estimate(tests)
    return DatasetScore(
        name=name,
        mean=_mean([test.score for test in tests]),
        stderr=None if estimate is None else estimate.stderr,
        interval=interval_of_mean(tests) if tests else None,
        scored=len(tests),
        undecided=sum(member.ended and member.score is None for member in members),
        missing=sum(not member.ended for member in members),
    )


def interval_of_mean(tests: Sequence[ScoredTest]) -> tuple[float, float]:
    """Interval of the mean of scores from 0 to 1, by whole conversations where there are several.

    It never pretends to certainty where three tests happen to agree, and a single test has one too.
    """
    within = _clip_scores(tests)
    return bounded_interval(_estimate(within) or MeanEstimate(within[0].score, 0.0, 1))


def _estimate(tests: Sequence[ScoredTest]) -> MeanEstimate | None:
    labels = [test.conversation for test in tests]
    return estimate_mean([test.score for test in tests], labels if len(set(labels)) > 1 else None)


def _clip_scores(tests: Sequence[ScoredTest]) -> list[ScoredTest]:
    """The tests with scores from 0 to 1: a published one may lie beyond, which no interval reaches."""
    return [ScoredTest(min(1.0, max(0.0, test.score)), test.conversation) for test in tests]


def interval_of_sum(datasets: Iterable[Sequence[ScoredTest]]) -> tuple[float, float] | None:
    """The interval of the sum of the datasets' means, which err independently of each other.

    A dataset of few tests hardly knows its own variance: three right ones would have none. So one more test is imagined in
    each, as right as all tests together are, and the variance is scaled so that this leaves no bias. The sum then counts
    as that of so many independent tests as have this variance. Conversations that several datasets share go as a whole.

    Args:
        datasets: The scored tests of each.
    """
    groups = [_clip_scores(tests) for tests in datasets if tests]
    if len(groups) < 2:
        return interval_of_mean(groups[0]) if groups else None
    count = len(groups)
    tests = sum(map(len, groups))
    overall = (math.fsum(test.score for group in groups for test in group) + 0.5) / (tests + 1)
    variance = math.fsum(_variance_of_mean([test.score for test in group], overall) for group in groups) / count**2
    mean = math.fsum(_mean([test.score for test in group]) for group in groups) / count
    units = min(count**2 / math.fsum(1 / len(group) for group in groups), overall * (1 - overall) / variance)
    conversations = {test.conversation for group in groups for test in group}
    if len(conversations) > 1:
        variance = max(variance, _variance_between_conversations(groups))
        units = min(units, len(conversations))
    units = max(units, 2.0)
    low, high = bounded_interval(MeanEstimate(mean, math.sqrt(variance * units / (units - 1)), units))
    return count * low, count * high


def _variance_of_mean(scores: Sequence[float], overall: float) -> float:
    n = len(scores)
    centre = (math.fsum(scores) + overall) / (n + 1)
    squares = math.fsum((score - centre) ** 2 for score in scores)
    squares += overall * (1 - centre) ** 2 + (1 - overall) * centre**2
    # What the imagined test takes off the variance of right and wrong, on average, is put back.
    return squares * (n + 1) / (n * n + n + 1) / n


def _variance_between_conversations(groups: Sequence[Sequence[ScoredTest]]) -> float:
    """Variance of the mean of the datasets' means, from what each conversation adds to it."""
    added: dict[Hashable, float] = {}
    for group in groups:
        mean = _mean([test.score for test in group])
        for test in group:
            share = (test.score - mean) / len(group) / len(groups)
            added[test.conversation] = added.get(test.conversation, 0.0) + share
    return math.fsum(value**2 for value in added.values()) * len(added) / (len(added) - 1)


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values) if values else math.nan
