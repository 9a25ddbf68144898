"""The pipeline judges records; whatever a user's extractor or metric does, the others go on."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest

import themis
from themis.core.codec import fingerprint
from themis.core.entities import (
    GenerationRecord,
    GenerationTask,
    MetricScore,
    ModelError,
    ModelOutput,
    ModelSpec,
    PromptRender,
    PromptSpec,
    Reference,
    SamplingConfig,
)
from themis.evaluation import strategies
from themis.evaluation.extractors import IdentityExtractor, RegexExtractor
from themis.evaluation.extractors.exceptions import FieldExtractionError
from themis.evaluation.metrics.text import ExactMatch, Latency, ResponseLength
from themis.evaluation.pipeline import EvaluationPipeline
from themis.evaluation.resolve import FunctionMetric
from themis.exceptions import ConfigurationError
from themis.interfaces import Metric, StatelessTaskExecutor


def record(
    text: str | None, reference: Any = "yes", sample_id: str = "s", attempts: Sequence[str] = ()
) -> GenerationRecord:
    def one(answer: str | None, number: int = 0) -> GenerationRecord:
        task = GenerationTask(
            PromptRender(PromptSpec("default", ""), "?"),
            ModelSpec("m", "p"),
            SamplingConfig(),
            {"dataset_id": sample_id, "topic": "t", "attempts": number},
            None if reference is None else Reference("answer", reference),
        )
        if answer is None:
            return GenerationRecord(task, None, ModelError("down"))
        return GenerationRecord(task, ModelOutput(answer), None)

    whole = one(text)
    whole.attempts = [one(answer, number) for number, answer in enumerate(attempts)]
    return whole


def judge(answer: str | None, *metrics: Metric, extractor: Any = None, **options: Any) -> Any:
    pipeline = EvaluationPipeline(
        extractor=extractor or IdentityExtractor(), metrics=metrics or [ExactMatch()], **options
    )
    return pipeline.judge(record(answer))


def test_a_right_answer_scores_one():
    judged = judge("yes")
    assert [(score.metric_name, score.value) for score in judged.scores] == [("ExactMatch", 1.0)]
    assert judged.failures == []


def test_an_answer_that_cannot_be_read_is_the_models_fault_and_scores_zero():
    score = judge("no digits", extractor=RegexExtractor(r"(\d+)")).scores[0]
    assert score.value == 0.0
    assert score.metadata["outcome"] == "unparsed"
    assert score.details["error"]


def test_an_answer_that_cannot_be_read_can_be_excluded_instead():
    judged = judge("no digits", extractor=RegexExtractor(r"(\d+)"), unparsed="exclude")
    assert judged.scores == []
    assert judged.failures[0].startswith("extractor: ")


def test_an_unreadable_answer_is_no_good_news_where_lower_is_better_and_still_took_its_time():
    unread = record("no digits")
    unread.metrics["generation_time_ms"] = 12.5
    pipeline = EvaluationPipeline(
        extractor=RegexExtractor(r"(\d+)"), metrics=[ExactMatch(), Latency(), ResponseLength(), Distance()]
    )

    judged = pipeline.judge(unread)

    assert {score.metric_name: score.value for score in judged.scores} == {"ExactMatch": 0.0, "Latency": 12.5}
    assert len(judged.failures) == 1
    assert judged.failures[0].startswith("extractor: ")


class Distance(Metric):
    name = "Distance"
    higher_is_better = False

    def compute(self, *, prediction, references, metadata=None):
        return MetricScore(self.name, float(prediction != references[0]))


def test_an_extractor_that_crashes_is_a_failure_of_the_sample():
    class Crashes:
        def extract(self, raw_output: str) -> Any:
            raise ZeroDivisionError("oops")

    judged = judge("yes", extractor=Crashes())
    assert judged.scores == []
    assert judged.failures == ["extractor: ZeroDivisionError: oops"]


@dataclass
class Returns(Metric):
    """Returns whatever it is told to."""

    what: Any = 1.0
    name: str = "Returns"

    def compute(self, *, prediction: Any, references: Sequence[Any], metadata: dict[str, Any] | None = None) -> Any:
        if isinstance(self.what, Exception):
            raise self.what
        return self.what


@pytest.mark.parametrize(
    "what",
    [
        RuntimeError("broken"), None, "1.0", 0.5, MetricScore("Returns", math.nan), MetricScore("Returns", math.inf),
        MetricScore("Returns", None), MetricScore("Returns", "high"), MetricScore("Returns", 10**400),
        MetricScore("Returns", -1e300), [1],
    ],
)  # fmt: skip
def test_a_metric_that_misbehaves_is_one_failure_and_the_other_metric_still_scores(what):
    judged = judge("yes", Returns(what), ExactMatch())
    assert [score.metric_name for score in judged.scores] == ["ExactMatch"]
    assert len(judged.failures) == 1
    assert judged.failures[0].startswith("Returns: ")


@pytest.mark.parametrize(("value", "kept"), [(True, 1.0), (0, 0.0), (2, 2.0)])
def test_whole_numbers_and_booleans_are_scores(value, kept):
    assert judge("yes", Returns(MetricScore("Returns", value))).scores[0].value == kept


def test_a_failed_generation_is_never_judged():
    judged = judge(None)
    assert judged.scores == []
    assert judged.failures == ["no answer: down"]


def test_references_are_spread_or_wrapped():
    seen: list[Any] = []

    @dataclass
    class Sees(Metric):
        name: str = "Sees"

        def compute(self, *, prediction: Any, references: Sequence[Any], metadata: Any = None) -> MetricScore:
            seen.append((list(references), metadata["sample_id"], metadata["topic"]))
            return MetricScore(self.name, 1.0)

    pipeline = EvaluationPipeline(extractor=IdentityExtractor(), metrics=[Sees()])
    for reference in (["a", "b"], ("a",), "a", {"numbers": [1]}, 0):
        pipeline.judge(record("x", reference))
    assert [entry[0] for entry in seen] == [["a", "b"], ["a"], ["a"], [{"numbers": [1]}], [0]]
    assert seen[0][1:] == ("s", "t")


def test_a_metric_that_needs_a_reference_says_so():
    pipeline = EvaluationPipeline(extractor=IdentityExtractor(), metrics=[ExactMatch()])
    assert "needs a reference" in pipeline.judge(record("x", None)).failures[0]


def test_two_metrics_of_one_name_are_refused():
    with pytest.raises(ConfigurationError, match="two metrics have the name 'ExactMatch'"):
        EvaluationPipeline(extractor=IdentityExtractor(), metrics=[ExactMatch(), ExactMatch(case_sensitive=True)])


def test_the_fingerprint_knows_parameters_code_and_strategy():
    def made(**changes: Any) -> str:
        parts: dict[str, Any] = {"extractor": IdentityExtractor(), "metrics": [ExactMatch()]}
        return fingerprint(EvaluationPipeline(**{**parts, **changes}).evaluation_fingerprint())

    class SameNameOtherCode(ExactMatch):
        def compute(self, **arguments: Any) -> MetricScore:
            return MetricScore(self.name, 0.5)

    fingerprints = [
        made(),
        made(metrics=[ExactMatch(case_sensitive=True)]),
        made(metrics=[SameNameOtherCode()]),
        made(extractor=RegexExtractor(r"(\d+)")),
        made(extractor=RegexExtractor(r"(\w+)")),
        made(unparsed="exclude"),
        made(strategy_resolver=lambda _: strategies.AttemptAwareEvaluationStrategy(average_attempts=True)),
        made(strategy_resolver=lambda _: strategies.AttemptAwareEvaluationStrategy(average_attempts=False)),
    ]
    assert len(set(fingerprints)) == len(fingerprints)
    assert made() == fingerprints[0]


def test_a_reference_selector_without_a_strategy_warns():
    with pytest.warns(UserWarning, match="reference_selector"):
        EvaluationPipeline(extractor=IdentityExtractor(), metrics=[ExactMatch()], reference_selector=lambda record: "x")


def test_a_report_counts_failures_beside_the_mean_and_knows_slices():
    pipeline = EvaluationPipeline(extractor=IdentityExtractor(), metrics=[ExactMatch()])
    pipeline.register_slice("first", lambda generated: generated.task.metadata["dataset_id"] == "0")
    report = pipeline.evaluate([record("yes", sample_id="0"), record("no", sample_id="1"), record(None, sample_id="2")])
    exact = report.metrics["ExactMatch"]
    assert (exact.mean, exact.count, exact.failed) == (0.5, 2, 1)
    assert report.slices["first"]["ExactMatch"].mean == 1.0
    assert [failure.sample_id for failure in report.failures] == ["2"]


def test_a_slice_counts_its_failures_and_a_predicate_that_raises_costs_no_run(tmp_path, caplog):
    class Flaky(StatelessTaskExecutor):
        def execute(self, task):
            if task.metadata["dataset_id"] == "0":
                raise RuntimeError("503")
            return GenerationRecord(task, ModelOutput("yes"), None)

    themis.register_provider("flaky-once", lambda **_: Flaky())
    pipeline = EvaluationPipeline(extractor=IdentityExtractor(), metrics=[ExactMatch()])
    pipeline.register_slice("even", lambda generated: int(generated.task.metadata["dataset_id"]) % 2 == 0)
    pipeline.register_slice("broken", lambda generated: generated.task.metadata["no such field"])

    report = themis.evaluate(
        [{"id": n, "q": "?", "answer": "yes"} for n in range(4)],
        model="flaky-once:m", prompt="{q}", evaluation_pipeline=pipeline, storage=tmp_path, max_retries=1,
    )  # fmt: skip

    even, broken = (report.evaluation_report.slices[name]["ExactMatch"] for name in ("even", "broken"))
    assert (even.mean, even.count, even.failed) == (1.0, 1, 1)
    assert (broken.count, broken.failed) == (0, 0)
    assert "left out of the slice broken: KeyError: 'no such field'" in caplog.text


@pytest.mark.parametrize(
    ("name", "attempts", "expected"),
    [
        ("average", ["yes", "no", "no", "yes"], [0.5]),
        ("keep", ["yes", "no"], [1.0, 0.0]),
        ("first", ["no", "yes"], [0.0]),
        ("best", ["no", "yes"], [1.0]),
        ("any", ["no", "yes"], [1.0]),
        ("any", ["no", "no"], [0.0]),
        ("majority", ["no", "yes", " YES "], [1.0]),
        ("majority", ["no", "yes"], [0.0]),  # the earliest of equally common answers
        ("pass@1", ["yes", "no", "no", "no"], [0.25]),
        ("pass@2", ["yes", "no", "no", "no"], [0.5]),  # 1 - C(3,2)/C(4,2)
        ("pass^2", ["yes", "yes", "no", "no"], [1 / 6]),  # C(2,2)/C(4,2)
    ],
)
def test_attempts_are_reduced_as_the_name_says(name, attempts, expected):
    strategy = strategies.strategy_from_name(name)
    pipeline = EvaluationPipeline(
        extractor=IdentityExtractor(), metrics=[ExactMatch()], strategy_resolver=lambda _: strategy
    )
    judged = pipeline.judge(record(attempts[0], attempts=attempts))
    assert [score.value for score in judged.scores] == pytest.approx(expected)


def test_the_best_attempt_is_the_lowest_where_lower_is_better():
    strategy = strategies.strategy_from_name("best", [ExactMatch(), Distance()])
    pipeline = EvaluationPipeline(
        extractor=IdentityExtractor(), metrics=[ExactMatch(), Distance()], strategy_resolver=lambda _: strategy
    )
    judged = pipeline.judge(record("no", attempts=["no", "yes"]))
    assert [(score.metric_name, score.value) for score in judged.scores] == [("ExactMatch", 1.0), ("Distance", 0.0)]


def test_pass_at_k_with_too_few_attempts_is_a_failure():
    strategy = strategies.strategy_from_name("pass@3")
    pipeline = EvaluationPipeline(
        extractor=IdentityExtractor(), metrics=[ExactMatch()], strategy_resolver=lambda _: strategy
    )
    judged = pipeline.judge(record("yes", attempts=["yes", "no"]))
    assert judged.scores == []
    assert "needs 3 answered attempts, this sample has 2" in judged.failures[0]


def test_a_users_metric_passes_with_0_and_1_and_fails_with_what_lies_between():
    """Nobody has said at which score it passes, and the first call could not tell."""
    strategy = strategies.strategy_from_name("pass@2", [FunctionMetric(len, "words")])
    pipeline = EvaluationPipeline(
        extractor=IdentityExtractor(),
        metrics=[FunctionMetric(lambda prediction: float(prediction), "said"), ExactMatch()],
        strategy_resolver=lambda _: strategy,
    )

    assert [score.value for score in pipeline.judge(record("1", attempts=["1", "0"])).scores] == [1.0, 0.0]
    judged = pipeline.judge(record("1", attempts=["1", "0.5"]))
    assert [score.metric_name for score in judged.scores] == ["ExactMatch"]
    assert judged.failures == [
        "strategy: said: EvaluationError: pass@2 counts attempts that passed, and a score of 0.5 says neither; "
        "let the metric return 0 or 1, or use reducer 'average'"
    ]


def test_an_attempt_that_a_metric_cannot_score_is_told_with_the_score_of_the_others():
    def picky(prediction: str) -> float:
        return 1 / len(prediction)

    strategy = strategies.strategy_from_name("average")
    pipeline = EvaluationPipeline(
        extractor=IdentityExtractor(), metrics=[FunctionMetric(picky, "picky")], strategy_resolver=lambda _: strategy
    )

    report = pipeline.evaluate([record("a", attempts=["a", "", "bb"])])

    (score,) = report.records[0].scores
    assert (score.value, score.metadata["attempts"]) == (0.75, 2)
    assert score.metadata["unscored_attempts"] == ["picky: ZeroDivisionError: division by zero"]
    picked = report.metric("picky")
    assert (picked.count, picked.failed, picked.attempts, picked.failed_attempts) == (1, 0, 3, 1)


def judge_attempts(reducer: str | None, *answers: str | None) -> list[MetricScore]:
    strategy = None if reducer is None else strategies.strategy_from_name(reducer)
    pipeline = EvaluationPipeline(
        extractor=RegexExtractor(r"(\d+)"),
        metrics=[ExactMatch()],
        strategy_resolver=None if strategy is None else (lambda _: strategy),
    )
    return pipeline.judge(record(answers[0], reference="4", attempts=answers)).scores


@pytest.mark.parametrize("reducer", ["average", "best", "any", "pass@2"])
def test_a_score_of_several_attempts_tells_what_each_of_them_was_given(reducer):
    (score,) = judge_attempts(reducer, "4", None, "5", "none")

    assert score.metadata["attempt_scores"] == [
        {"attempt": 0, "value": 1.0},
        {"attempt": 2, "value": 0.0},
        {"attempt": 3, "value": 0.0, "outcome": "unparsed", "reason": "no match for '(\\\\d+)' in 'none'"},
    ]


@pytest.mark.parametrize(("reducer", "numbers"), [("keep", [1, 2]), ("first", [1]), ("majority", [1]), (None, [1])])
def test_a_score_of_one_attempt_says_of_which(reducer, numbers):
    scores = judge_attempts(reducer, None, "4", "5")

    assert [score.metadata["of_attempt"] for score in scores] == numbers
    assert not any("attempt_scores" in score.metadata for score in scores)


@pytest.mark.parametrize("reducer", ["average", "keep", None])
def test_the_score_of_the_only_attempt_says_nothing_of_attempts(reducer):
    (score,) = judge_attempts(reducer, "4")

    assert not {"attempt_scores", "of_attempt"} & score.metadata.keys()


def test_an_attempt_that_a_metric_failed_on_is_among_those_that_are_told():
    def picky(prediction: str) -> float:
        return 1 / len(prediction)

    strategy = strategies.strategy_from_name("average")
    pipeline = EvaluationPipeline(
        extractor=IdentityExtractor(), metrics=[FunctionMetric(picky, "picky")], strategy_resolver=lambda _: strategy
    )

    (score,) = pipeline.judge(record("a", attempts=["a", ""])).scores
    assert score.metadata["attempt_scores"] == [
        {"attempt": 0, "value": 1.0},
        {"attempt": 1, "value": None, "reason": "picky: ZeroDivisionError: division by zero"},
    ]


def test_an_unreadable_answer_is_not_wrong_where_there_is_nothing_to_compare_it_with():
    class Nothing:
        def extract(self, raw_output: str) -> str:
            raise FieldExtractionError("nothing found")

    judged = EvaluationPipeline(extractor=Nothing(), metrics=[ExactMatch()]).judge(record("?", reference=None))
    assert (judged.scores, judged.failures) == ([], ["extractor: nothing found"])


def test_the_tutorials_averaging_marks_how_many_attempts_it_is_over():
    pipeline = EvaluationPipeline(
        extractor=IdentityExtractor(),
        metrics=[ExactMatch()],
        strategy_resolver=lambda _: strategies.AttemptAwareEvaluationStrategy(average_attempts=True),
    )
    (score,) = pipeline.judge(record("yes", attempts=["yes", "no"])).scores
    assert (score.value, score.details, score.metadata["attempts"]) == (0.5, {}, 2)


def test_an_unreadable_attempt_counts_as_zero_in_the_average():
    class Digits:
        def extract(self, raw_output: str) -> str:
            if not raw_output.isdigit():
                raise FieldExtractionError("no digits")
            return raw_output

    strategy = strategies.strategy_from_name("average")
    pipeline = EvaluationPipeline(extractor=Digits(), metrics=[ExactMatch()], strategy_resolver=lambda _: strategy)
    (score,) = pipeline.judge(record("1", reference="1", attempts=["1", "x"])).scores
    assert score.value == 0.5
    assert "outcome" not in score.metadata


def test_a_pipeline_takes_names_as_an_evaluation_does():
    pipeline = EvaluationPipeline(extractor="last_number", metrics=["exact_match", "numeric(tolerance=1)"])

    assert pipeline.extractor.extract("4, or 5") == "5"
    assert pipeline.metric_names == ["ExactMatch", "Numeric"]
