"""Extractors and judges that read another part of a reply than the answer."""

from __future__ import annotations

import json

import pytest

from themis.core.entities import (
    GenerationRecord,
    GenerationTask,
    ModelOutput,
    ModelSpec,
    PromptRender,
    PromptSpec,
    Reference,
    SamplingConfig,
)
from themis.evaluation.judges import AnswerJudge, JudgePanel, PairwiseJudge, Reply, RubricJudge
from themis.evaluation.metrics import ConsistencyMetric, Ece, ExactMatch
from themis.evaluation.parts import PARTS, read_part
from themis.evaluation.pipeline import EvaluationPipeline
from themis.evaluation.registries import EXTRACTOR_CLASSES
from themis.evaluation.resolve import extractor, resolve_extractor
from themis.exceptions import ConfigurationError, EvaluationError

OUTPUT = ModelOutput(
    "It is 5.",
    reasoning="So 5.",
    transcript=(
        {
            "role": "assistant",
            "content": "",
            "reasoning": "2 + 3 needs adding.",
            "tool_calls": [{"id": "1", "name": "add", "arguments": {"a": 2, "b": 3}}],
        },
        {"role": "tool", "tool_call_id": "1", "name": "add", "content": "5"},
    ),
)


def judge(extractor_or_name, *, output=OUTPUT, metrics=None, reference=None):
    pipeline = EvaluationPipeline(extractor=resolve_extractor(extractor_or_name), metrics=metrics or [ExactMatch()])
    task = GenerationTask(
        PromptRender(PromptSpec("p", ""), "2 + 3?"),
        ModelSpec("m", "fake"),
        SamplingConfig(),
        {"dataset_id": "1"},
        None if reference is None else Reference("answer", reference),
    )
    return pipeline.judge(GenerationRecord(task, output, None))


@pytest.mark.parametrize(
    ("part", "text"),
    [
        ("text", "It is 5."),
        ("reasoning", "2 + 3 needs adding.\n\nSo 5."),
        ("transcript", 'assistant calls add({"a": 2, "b": 3})\ntool add: 5\nassistant: It is 5.'),
        ("tool_calls", '[{"name": "add", "arguments": {"a": 2, "b": 3}}]'),
        (
            "everything",
            'assistant (thinking): 2 + 3 needs adding.\nassistant calls add({"a": 2, "b": 3})\ntool add: 5\n'
            "assistant (thinking): So 5.\nassistant: It is 5.",
        ),
    ],
)
def test_each_part_of_a_reply_is_a_text(part, text):
    assert read_part(OUTPUT, part) == text
    assert judge(f"identity(part={part!r})", reference=text).scores[0].value == 1.0


@pytest.mark.parametrize("name", sorted(set(EXTRACTOR_CLASSES) - {"chain"}))
def test_every_extractor_can_be_told_which_part_to_read(name):
    pattern = "'x', " if name == "regex" else ""

    assert resolve_extractor(f"{name}({pattern}part='reasoning')").part == "reasoning"
    assert resolve_extractor(f"{name}('x')" if pattern else name).part == "text"


def test_a_field_of_the_tool_calls_is_read_as_json():
    assert judge("json_field('0.arguments.b', part='tool_calls')", reference="3").scores[0].value == 1.0


def test_the_first_extractor_of_a_chain_says_what_is_read():
    chain = resolve_extractor("""chain("identity(part='reasoning')", "last_number")""")

    assert chain.part == "reasoning"
    assert judge(chain, reference="5").scores[0].value == 1.0
    with pytest.raises(
        ConfigurationError, match=r"only the first extractor of a chain reads the reply, so part='reasoning'"
    ):
        resolve_extractor("""chain("last_number", "identity(part='reasoning')")""")


def test_a_function_may_ask_for_a_part():
    @extractor(name="count_calls_of_test", part="tool_calls")
    def count_calls(text):
        return len(json.loads(text))

    assert judge(count_calls, reference="1").scores[0].value == 1.0


def test_a_class_may_ask_for_a_part():
    class LastLine:
        part = "transcript"

        def extract(self, raw_output):
            return raw_output.splitlines()[-1]

    assert judge(LastLine(), reference="assistant: It is 5.").scores[0].value == 1.0


def test_a_reply_without_the_part_has_no_answer():
    judged = judge("identity(part='reasoning')", output=ModelOutput("5"), reference="5")

    assert judged.scores[0].value == 0.0
    assert judged.scores[0].details == {"error": "the answer came without reasoning"}
    assert judged.scores[0].metadata == {"outcome": "unparsed"}


def test_a_part_that_does_not_exist_is_refused():
    with pytest.raises(ConfigurationError, match=r"part is one of text, reasoning.*got 'reasonning' \(did you mean"):
        judge("identity(part='reasonning')")


def test_a_confidence_may_stand_in_the_reasoning():
    output = ModelOutput("5", reasoning="Confidence: 80%")
    metric = Ece(confidence="confidence(part='reasoning')")

    assert judge("identity", output=output, metrics=[metric], reference="5").scores[0].value == pytest.approx(0.2)


def test_attempts_are_known_by_their_texts_alone():
    with pytest.raises(ConfigurationError, match="has the attempts' texts alone"):
        ConsistencyMetric(extractor="identity(part='reasoning')")


# --- judges ----------------------------------------------------------------------------------------------------------------


class Asked:
    """Answers every question with one verdict, and keeps the questions."""

    def __init__(self, verdict):
        self.verdict = verdict
        self.questions = []

    def __call__(self, prompt, *, anew=False):
        self.questions.append(prompt)
        return Reply(json.dumps(self.verdict), stored=False)


JUDGES = [
    (RubricJudge, {"verdict": "pass"}, 1.0),
    (AnswerJudge, {"grade": "correct"}, 1.0),
    (PairwiseJudge, {"preference": "tie"}, 0.5),
]


@pytest.mark.parametrize(("kind", "verdict", "value"), JUDGES)
def test_a_judge_can_be_told_to_read_the_transcript(kind, verdict, value):
    asked = Asked(verdict)
    metric = kind(model="fake/judge", part="transcript")
    metric.bind(asked)

    judged = judge("identity", metrics=[metric], reference="5")

    assert judged.scores[0].value == value
    assert all("tool add: 5\nassistant: It is 5." in question for question in asked.questions)
    assert all("needs adding" not in question for question in asked.questions)


@pytest.mark.parametrize(("kind", "verdict", "value"), JUDGES)
def test_a_judge_reads_the_extracted_answer_by_default(kind, verdict, value):
    asked = Asked(verdict)
    metric = kind(model="fake/judge")
    metric.bind(asked)

    judged = judge("last_number", metrics=[metric], reference="7")

    assert judged.scores[0].value == value
    assert metric.reads_output is False
    assert all("It is 5" not in question for question in asked.questions)


def test_a_judge_of_the_transcript_judges_answers_that_no_extractor_can_read():
    asked = Asked({"verdict": "pass"})
    metric = RubricJudge(model="fake/judge", part="everything")
    metric.bind(asked)

    judged = judge("boxed", metrics=[metric])

    assert (judged.scores[0].value, judged.failures) == (1.0, [])
    assert "2 + 3 needs adding." in asked.questions[0]


def test_a_judge_of_the_reasoning_fails_where_there_is_none():
    metric = RubricJudge(model="fake/judge", part="reasoning")
    metric.bind(Asked({"verdict": "pass"}))

    judged = judge("identity", output=ModelOutput("5"), metrics=[metric])

    assert judged.scores == []
    assert "the answer came without reasoning" in judged.failures[0]


def test_a_panel_may_read_the_transcript_too():
    panel = JudgePanel(judges=[RubricJudge(model="fake/a", part="transcript"), RubricJudge(model="fake/b")])
    asked = [Asked({"verdict": "pass"}), Asked({"verdict": "pass"})]
    for one, questions in zip(panel.judges, asked, strict=True):
        one.bind(questions)

    assert judge("identity", metrics=[panel]).scores[0].value == 1.0
    assert ["tool add: 5" in questions.questions[0] for questions in asked] == [True, False]


def test_a_long_transcript_keeps_its_beginning_and_its_end():
    asked = Asked({"verdict": "pass"})
    metric = RubricJudge(model="fake/judge", part="transcript")
    metric.bind(asked)
    long = ModelOutput(
        "the end", transcript=({"role": "tool", "name": "t", "content": "the beginning " + "x" * 100_000},)
    )

    judge("identity", output=long, metrics=[metric])

    assert "the beginning" in asked.questions[0]
    assert "assistant: the end" in asked.questions[0]
    assert "[left out here: " in asked.questions[0]
    assert len(asked.questions[0]) < 25_000


def test_a_part_that_a_judge_does_not_know_is_refused():
    with pytest.raises(ConfigurationError, match=f"part is one of {', '.join(PARTS)}, got 'steps'"):
        RubricJudge(model="fake/judge", part="steps")


def test_a_judge_of_the_transcript_needs_the_output():
    metric = RubricJudge(model="fake/judge", part="transcript")

    with pytest.raises(EvaluationError, match=r"metadata\['model_output'\] is not there"):
        metric.compute(prediction="5", references=[])
