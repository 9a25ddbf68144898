"""Every benchmark of the catalogue, end to end on its sample rows: field map, prompt, extractor, metric."""

from __future__ import annotations

import base64
import os
import pickle
import re
import urllib.parse
import zlib

import pytest

import themis
from themis.evaluation.extractors.exceptions import FieldExtractionError
from themis.evaluation.metrics.countdown import CountdownStrict
from themis.evaluation.resolve import resolve_extractor, resolve_metric
from themis.exceptions import ConfigurationError
from themis.presets import get_benchmark_preset, list_benchmarks
from themis.presets.catalogue import CATALOGUE
from themis.presets.catalogue.language import PartsExtractor, ShortAnswerExtractor
from themis.presets.countdown import solve
from themis.presets.hub import HubDataset
from themis.presets.instructions import InstructionFollowing
from themis.presets.loading import sample_rows


def sample_of(name: str) -> list[dict]:
    return list(get_benchmark_preset(name, sample=True).load_dataset(10))


def scores(name: str, row: dict, reply: str) -> list[float]:
    """What a run would score: an unreadable reply is a zero."""
    preset = get_benchmark_preset(name)
    reference = row[preset.reference_field]
    metadata = {key: value for key, value in row.items() if key not in (preset.reference_field, "id")}
    try:
        answer = resolve_extractor(preset.extractor).extract(reply)
    except FieldExtractionError:
        return [0.0 for _ in preset.metrics]
    references = list(reference) if isinstance(reference, list | tuple) else [reference]
    return [
        metric.compute(prediction=answer, references=references, metadata=metadata).value
        for metric in map(resolve_metric, preset.metrics)
    ]


# ---- how a model that knows the answer might put it, and one that does not ----


def number_replies(row: dict) -> list[str]:
    answer = row["answer"]
    return [
        f"{answer}",
        f"Answer: {answer}",
        f"The answer is {answer}.",
        f"**Answer:** {answer}",
        f"#### {answer}",
        f"\\boxed{{{answer}}}",
        f"We have 3 * 4 = 12 and 2 more.\n\nSo the final answer is $\\boxed{{{answer}}}$.",
        f"There are 12 of one kind and 7 of the other.\n\nAnswer: {answer}",
        f"Adding 5 to 7 and going on, we get **{answer}**",
        f"<think>Is it 5? Or 77?</think>\nAnswer: {answer}",
    ]


def wrong_number(row: dict) -> str:
    return f"So 3 * 4 = 12.\n\nAnswer: {float(row['answer']) + 1:g}"


def formula_replies(row: dict) -> list[str]:
    answer = row["answer"].strip("$")
    return [
        f"\\boxed{{{answer}}}",
        f"Step by step: $1 + 1 = 2$.\n\n$$\\boxed{{{answer}}}$$",
        f"The final answer is ${answer}$.",
        f"Hence the answer is $\\boxed{{{answer}}}$.",
        f"<think>maybe \\boxed{{7}}</think> \\boxed{{{answer}}}",
    ]


def letter_replies(row: dict) -> list[str]:
    letter = row["answer"]
    text = row["choices"][ord(letter) - ord("A")]
    other = "B" if letter == "A" else "A"
    return [
        letter,
        f"{letter}.",
        f"({letter})",
        f"**{letter}**",
        f"{letter}. {text}",
        f"Answer: {letter}",
        f"Answer: ({letter}) {text}",
        f"The answer is {letter}.",
        f"The correct answer is **({letter}) {text}**.",
        f"\\boxed{{{letter}}}",
        f"Option {other} is wrong, since it does not fit.\n\nAnswer: {letter}",
        f"<think>{other}? No.</think>\nAnswer: {letter}",
        text,
    ]


def wrong_letter(row: dict) -> str:
    return f"Answer: {'B' if row['answer'] == 'A' else 'A'}"


def short_replies(row: dict) -> list[str]:
    answer = row["answer"]
    return [
        answer,
        f"{answer}.",
        answer.capitalize(),
        f"Answer: {answer}",
        f"The answer is {answer}.",
        f"**{answer}**",
        f'"{answer}"',
        f"<think>The passage says so.</think>\n{answer}",
    ]


def code_replies(row: dict) -> list[str]:
    code = row["reference"]["answer"]
    return [
        f"```python\n{code}\n```",
        f"Here is the function:\n\n```python\n{code}\n```\n\nIt is short.",
        f"<think>easy</think>\n```py\n{code}\n```",
        code,
    ]


def wrong_code(row: dict) -> str:
    name = re.findall(r"def (\w+)", row["reference"]["answer"])[-1]
    return f"```python\ndef {name}(*args):\n    return None\n```"


def countdown_replies(row: dict) -> list[str]:
    expression = solve(row["numbers"], row["target"])
    return [
        expression,
        f"Expression: {expression}",
        f"{expression} = {row['target']}",
        f"**Expression:** {expression} = {row['target']}",
        f"I tried {row['numbers'][0]} + {row['numbers'][1]} first.\n\nExpression: `{expression}`",
        f"<think>1 + 1</think>\n\\boxed{{{expression.replace('*', chr(92) + 'times ')}}}",
    ]


def part_replies(row: dict) -> list[str]:
    answer = row["answer"]
    return [answer, f"Answer: {answer}", f"<think>Let me see.</think>\n{answer}", f"**{answer}**"]


def first_replies(row: dict) -> list[str]:
    return short_replies({"answer": row["answer"][0]})


def longbench_replies(row: dict) -> list[str]:
    return [row["answer"][0], f"<think>The text is long.</think>\n{row['answer'][0]}"]


NUMBERS = (number_replies, wrong_number)
FORMULAS = (formula_replies, lambda row: "The answer is $\\boxed{-123456789}$.")
LETTERS = (letter_replies, wrong_letter)
CODE = (code_replies, wrong_code)
FIRST = (first_replies, lambda row: "a purple elephant")
PARTS = (part_replies, lambda row: "Answer: a purple elephant")
COUNTDOWN = (countdown_replies, lambda row: f"Expression: {row['target']} + 0")
KINDS = {
    "demo": NUMBERS,
    "gsm8k": NUMBERS,
    "gsm-symbolic": NUMBERS,
    "aime24": NUMBERS,
    "aime25": NUMBERS,
    "amc23": NUMBERS,
    "beyondaime": NUMBERS,
    "math500": FORMULAS,
    "olympiadbench": FORMULAS,
    "mmlu-pro": LETTERS,
    "supergpqa": LETTERS,
    "gpqa": LETTERS,
    "medmcqa": LETTERS,
    "med_qa": LETTERS,
    "sciq": LETTERS,
    "commonsense_qa": LETTERS,
    "piqa": LETTERS,
    "social_i_qa": LETTERS,
    "truthfulqa": LETTERS,
    "coqa": (short_replies, lambda row: "a purple elephant"),
    "humaneval": CODE,
    "mbpp": CODE,
    "mbpp-sanitized": CODE,
    "ifeval": (lambda row: [row["reference"]["answer"]], lambda row: "Yes, of course."),
    **dict.fromkeys(("mmlu", "arc-easy", "arc-challenge", "hellaswag", "winogrande"), LETTERS),
    "math": FORMULAS,
    "triviaqa": FIRST,
    "nq": FIRST,
    "bbh": (short_replies, lambda row: "Answer: none of these words"),
    "drop": PARTS,
    "longbench": (longbench_replies, lambda row: "xyzzy"),
    "ruler-4k": PARTS,
    "livecodebench": CODE,
    "countdown": COUNTDOWN,
    "countdown-3": COUNTDOWN,
    "countdown-4": COUNTDOWN,
    "countdown-5": COUNTDOWN,
    "countdown-6": COUNTDOWN,
}


# Metrics that give something for a part of the answer.
PARTLY = ("F1", "prompt_level", "inst_level", "drop_f1", "LongBench", "PartsFound")
# Graded by a model; scored by log-probabilities; the same rows in other lengths.
GRADED = ("simpleqa", "hle")
SCORED = [name for name in CATALOGUE if name.endswith("-likelihood")]
LONGER = [f"ruler-{length}k" for length in (8, 16, 32, 64, 128)]


def test_every_entry_is_listed_and_tested_here():
    assert {*KINDS, *GRADED, *SCORED, *LONGER} == set(CATALOGUE)
    assert set(CATALOGUE) <= set(list_benchmarks())


@pytest.mark.parametrize("name", KINDS)
def test_a_right_answer_scores_one_however_it_is_phrased(name):
    replies, _ = KINDS[name]
    rows = sample_of(name)

    assert len(rows) >= 3
    for row in rows:
        for reply in replies(row):
            assert set(scores(name, row, reply)) == {1.0}, (row["id"], reply)


@pytest.mark.parametrize("name", KINDS)
def test_a_wrong_answer_scores_zero(name):
    _, wrong = KINDS[name]

    for row in sample_of(name):
        assert set(scores(name, row, wrong(row))) == {0.0}, (row["id"], wrong(row))
        assert set(scores(name, row, "")) == {0.0}


@pytest.mark.parametrize("name", KINDS)
def test_a_run_with_a_perfect_model_scores_one_and_with_a_wrong_one_less(name, tmp_path):
    preset = get_benchmark_preset(name, sample=True)
    asked = {"limit": 11, "num_samples": 1, "storage": tmp_path, "progress": False}
    perfect = themis.evaluate(preset, model="fake/perfect", **asked)
    wrong = themis.evaluate(preset, model="fake/noisy-1", **asked)

    for metric, result in perfect.evaluation_report.metrics.items():
        assert (result.mean, result.failed, result.unparsed) == (1.0, 0, 0)
        # Some of a changed reply may be right still: a word of it, or the instructions it follows.
        assert wrong.metric(metric).mean <= (0.8 if metric.startswith(PARTLY) else 0)


@pytest.mark.parametrize("name", SCORED)
def test_options_are_scored_by_log_probability_after_the_published_examples(name, tmp_path):
    preset = get_benchmark_preset(name, sample=True)
    report = themis.evaluate(preset, model="fake/likelihood", storage=tmp_path, progress=False)

    for result in report.evaluation_report.metrics.values():
        assert 0 <= result.mean <= 1
        assert (result.count, result.failed) == (len(sample_of(name)), 0)
    for record in report.generation_results:
        asked = record.task.metadata["continuations"]
        assert len(record.output.raw["continuations"]) == len(asked) == len(record.task.metadata["choices"])
        (row,) = [row for row in sample_of(name) if row["id"] == record.task.metadata["dataset_id"]]
        # Examples stand before the question, and never the row itself.
        assert (len(asked[0][0]) > 2 * len(preset.prompt_template.fill(row))) == (preset.few_shot is not None)


def test_answers_that_a_model_grades_need_the_users_word_who_it_is(tmp_path):
    with pytest.raises(ConfigurationError, match="--judge MODEL"):
        themis.evaluate(
            get_benchmark_preset("hle", sample=True), model="fake/perfect", storage=tmp_path, progress=False
        )


@pytest.mark.parametrize("name", GRADED)
def test_answers_are_graded_by_the_named_model(name, tmp_path):
    verdict = '{"grade": "correct", "reason": "the same"}'
    preset = get_benchmark_preset(name, sample=True)
    judge = f"fake/constant?text={urllib.parse.quote(verdict)}"
    report = themis.evaluate(preset, model="fake/perfect", judge=judge, storage=tmp_path, progress=False)

    assert {result.mean for result in report.evaluation_report.metrics.values()} == {1.0}
    assert len(report.evaluation_report.metrics) == len(preset.metrics)


def test_hidden_tests_that_are_more_than_a_text_are_refused():
    packed = base64.b64encode(zlib.compress(pickle.dumps([os.system]))).decode()
    (raw, *_) = sample_rows("livecodebench")

    with pytest.raises(ValueError, match="more than a text"):
        list(CATALOGUE["livecodebench"].rows_of({**raw, "private_test_cases": packed}, 0))


@pytest.mark.parametrize("name", CATALOGUE)
def test_the_prompt_shows_the_question_and_not_the_answer(name):
    preset = get_benchmark_preset(name)
    rows = sample_of(name)

    for row in rows:
        prompt = preset.prompt_template.fill(row)
        assert len(prompt) > 20
        assert not [field for field in preset.prompt_template.fields if f"{{{field}}}" in prompt]
        solution = row.get(preset.reference_field)
        if isinstance(solution, dict) and "answer" in solution:
            assert solution["answer"] not in prompt


@pytest.mark.parametrize("name", CATALOGUE)
def test_rows_have_unique_text_ids_and_the_fields_that_the_preset_names(name):
    preset = get_benchmark_preset(name)
    rows = sample_of(name)

    assert len({row["id"] for row in rows}) == len(rows)
    for row in rows:
        assert isinstance(row["id"], str)
        assert {*preset.metadata_fields, preset.reference_field, *preset.prompt_template.fields} <= row.keys()


@pytest.mark.parametrize("name", CATALOGUE)
def test_rows_in_our_own_layout_are_read_as_they_are(name):
    rows = sample_of(name)

    for index, row in enumerate(rows):
        assert list(CATALOGUE[name].rows_of(row, index)) == [row]


@pytest.mark.parametrize("name", CATALOGUE)
def test_every_entry_says_where_it_comes_from(name):
    entry = CATALOGUE[name]

    assert entry.licence
    assert entry.citation
    assert entry.description
    if isinstance(entry.source, HubDataset):
        assert entry.source.dataset.count("/") == 1
        assert entry.source.revision is None or re.fullmatch(
            r"[0-9a-f]{40}|refs/convert/parquet", entry.source.revision
        )


# ---- what other evaluators got wrong ----


def test_the_reference_of_a_worked_solution_is_its_final_number():
    assert [row["answer"] for row in sample_of("gsm8k")] == ["63", "1200", "32"]


def test_medmcqa_counts_from_zero_and_uses_the_split_that_has_labels():
    assert [row["answer"] for row in sample_of("medmcqa")] == ["A", "B", "C", "D"]
    assert CATALOGUE["medmcqa"].source.split == "validation"


def test_social_i_qa_counts_from_one():
    assert [row["answer"] for row in sample_of("social_i_qa")] == ["A", "B", "C"]


@pytest.mark.parametrize("name", ["gpqa", "sciq", "truthfulqa"])
def test_sources_that_put_the_right_option_first_are_shuffled_by_content(name):
    rows = sample_of(name)

    assert len({row["answer"] for row in rows}) > 1
    assert rows == sample_of(name)
    for row in rows:
        assert row["choices"] != sorted(row["choices"])  # by the alphabet would be a place that the text decides


def test_a_row_s_options_do_not_depend_on_its_neighbours():
    assert sample_of("gpqa")[2] == list(get_benchmark_preset("gpqa", sample=True).load_dataset(3))[-1]


def test_a_conversation_is_asked_turn_by_turn_with_what_was_said_before():
    first, second = sample_of("coqa")[:2]

    assert (first["id"], second["id"]) == ("0-1", "0-2")
    assert first["history"] == ""
    assert second["history"] == f"Question: {first['question']}\nAnswer: {first['answer']}\n\n"


def test_equal_values_in_another_form_are_right():
    half, root, _ = sample_of("math500")

    assert scores("math500", half, "\\boxed{0.5}") == [1.0]
    assert scores("math500", root, "The answer is $\\sqrt{18}$.") == [1.0]
    assert scores("amc23", sample_of("amc23")[0], "\\boxed{60}") == [1.0]
    assert scores("aime24", sample_of("aime24")[1], "\\boxed{99}") == [1.0]


def test_a_strict_judge_can_take_the_place_of_the_lenient_one():
    row = sample_of("countdown")[0]
    everything = solve(row["numbers"], row["target"], use_every_number=True)

    assert CountdownStrict().compute(prediction=everything, references=[row["reference"]]).value == 1.0


@pytest.mark.parametrize("kind", [InstructionFollowing, PartsExtractor, ShortAnswerExtractor])
def test_the_example_in_the_documentation_is_true(kind):
    assert eval(kind.example, {kind.__name__: kind}) is True


def test_a_dataset_of_the_hub_that_is_named_as_there_is_told_its_name_here():
    with pytest.raises(
        ConfigurationError, match=r"no benchmark, file or folder 'openai/gsm8k'.* hf://openai/gsm8k/SPLIT"
    ):
        get_benchmark_preset("openai/gsm8k")
