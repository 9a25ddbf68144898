"""IFEval's rules: each kind with a response that follows it and one that does not, and the four numbers."""

from __future__ import annotations

import sys

import nltk
import pytest
from hypothesis import given
from hypothesis import strategies as st

import themis
from themis.exceptions import DatasetError, DependencyError, MetricError
from themis.presets import get_benchmark_preset, instructions
from themis.presets.instructions import CHECKS, InstructionFollowing


@pytest.fixture(autouse=True, scope="module")
def punkt(tmp_path_factory):
    """A few words in the layout of nltk's data, which is not part of the package."""
    english = tmp_path_factory.mktemp("nltk") / "tokenizers" / "punkt_tab" / "english"
    english.mkdir(parents=True)
    (english / "abbrev_types.txt").write_text("dr\nmr\np.m\n", encoding="utf-8")
    for name in ("collocations.tab", "sent_starters.txt", "ortho_context.tab"):
        (english / name).write_text("", encoding="utf-8")
    before, nltk.data.path = nltk.data.path, [str(english.parents[2])]
    instructions._load_punkt.cache_clear()
    yield
    nltk.data.path = before
    instructions._load_punkt.cache_clear()


def reference_of(*asked):
    return {"instruction_id_list": [kind for kind, _ in asked], "kwargs": [parameters for _, parameters in asked]}


def judge(response, *asked, **settings):
    return InstructionFollowing(**settings).compute(prediction=response, references=[reference_of(*asked)])


WORDS_300 = "word " * 300

CASES = {
    "keywords:existence": ({"keywords": ["sea", "salt"]}, "The season tastes of saltwater.", "The sea is sweet."),
    "keywords:frequency": (
        {"keyword": "tea", "frequency": 2, "relation": "at least"},
        "One tea, and a team.",
        "Tea for two.",
    ),
    "keywords:forbidden_words": ({"forbidden_words": ["bad", "not at all"]}, "A badge.", "Too BAD."),
    "keywords:letter_frequency": (
        {"letter": "q", "let_frequency": 3, "let_relation": "less than"},
        "Quick quiz.",
        "Quick quiz, quite.",
    ),
    "language:response_language": ({"language": "de"}, "Das ist nicht der Weg, und es regnet.", "This is not the way."),
    "length_constraints:number_sentences": (
        {"num_sentences": 3, "relation": "less than"},
        "Dr. Brown paid 3.50 for it. He left!",
        "One. Two? Three.",
    ),
    "length_constraints:number_words": ({"num_words": 300, "relation": "at least"}, WORDS_300, WORDS_300[5:]),
    "length_constraints:number_paragraphs": ({"num_paragraphs": 2}, "One\n***\nTwo", "One\n\nTwo"),
    "length_constraints:nth_paragraph_first_word": (
        {"num_paragraphs": 2, "nth_paragraph": 2, "first_word": "therefore"},
        'So it was.\n\n"Therefore, it is."',
        "So it was.\n\n**Therefore**, it is.",
    ),
    "detectable_content:number_placeholders": ({"num_placeholders": 2}, "Dear [name] [].", "Dear [name]."),
    "detectable_content:postscript": ({"postscript_marker": "P.S."}, "Yours\nP.S. Bring tea.", "Yours, and so on."),
    "detectable_format:number_bullet_lists": ({"num_bullets": 2}, "List:\n* one\n- two", "* one\n* two\n* three"),
    "detectable_format:constrained_response": ({}, "My answer is maybe.", "Maybe."),
    "detectable_format:number_highlighted_sections": ({"num_highlights": 2}, "*one* and **two**", "*one* ** **"),
    "detectable_format:multiple_sections": (
        {"section_spliter": "SECTION", "num_sections": 2},
        "SECTION 1\na\nSECTION 2\nb",
        "SECTION 1\nalone",
    ),
    "detectable_format:json_format": ({}, '```json\n{"a": [1]}\n```', "a: 1"),
    "detectable_format:title": ({}, "<<On Tea>>\nIt is hot.", "<< >>\nIt is hot."),
    "combination:two_responses": ({}, "One way.\n******\nAnother.", "One way.\n******\nOne way."),
    "combination:repeat_prompt": ({"prompt_to_repeat": "Say tea."}, "Say tea.\nTea!", "Tea!"),
    "startend:end_checker": ({"end_phrase": "That is all."}, "So it is. That is all.", "That is all. Or not."),
    "startend:quotation": ({}, '"Quoted."', '"Quoted" twice'),
    "change_case:capital_word_frequency": (
        {"capital_frequency": 2, "capital_relation": "at least"},
        "It CAN'T be.",
        "The BBC 123.",
    ),
    "change_case:english_capital": ({}, "THE SEA IS CALM.", "The sea is calm."),
    "change_case:english_lowercase": ({}, "the sea is calm.", "The sea is calm."),
    "punctuation:no_comma": ({}, "No such thing.", "Well, one."),
}


@pytest.mark.parametrize("kind", CHECKS)
def test_each_kind_tells_a_follower_from_one_that_does_not(kind):
    parameters, follows, does_not = CASES[kind]

    assert judge(follows, (kind, parameters)).value == 1.0
    assert judge(does_not, (kind, parameters)).value == 0.0


def test_all_instructions_must_be_followed_and_the_details_say_which_were():
    score = judge("Tea, please.", ("punctuation:no_comma", {}), ("keywords:existence", {"keywords": ["tea"]}))

    assert score.value == 0.0
    assert score.details["share_followed"] == 0.5
    assert [each["followed"] for each in score.details["followed"]] == [False, True]


def test_parameters_that_are_none_are_absent_as_in_the_source_s_rows():
    assert judge("tea", ("punctuation:no_comma", {"num_words": None, "relation": None})).value == 1.0


def test_an_empty_response_follows_nothing():
    assert judge("  ", ("punctuation:no_comma", {})).value == 0.0


@pytest.mark.parametrize(
    "instruction",
    [
        ("punctuation:no_coma", {}),
        ("keywords:existence", {"keyword": "tea"}),
        ("length_constraints:number_words", {"num_words": 3, "relation": "about"}),
        ("keywords:existence", {"keywords": ["(tea"]}),
    ],
)
def test_what_cannot_be_checked_is_a_failure_and_not_a_score(instruction):
    with pytest.raises(MetricError):
        judge("tea", instruction)


@pytest.mark.parametrize("reference", [None, "text", {}, {"instruction_id_list": [], "kwargs": []}])
def test_a_reference_without_instructions_is_a_failure(reference):
    with pytest.raises(MetricError):
        InstructionFollowing().compute(prediction="tea", references=[reference])


@given(st.text(), st.sampled_from(sorted(CHECKS)))
def test_no_response_whatever_raises(response, kind):
    assert judge(response, (kind, CASES[kind][0])).value in (0.0, 1.0)


@pytest.mark.parametrize(
    ("response", "count"),
    [
        ("Dr. Brown paid 3.50 at 5 p.m. for it. He left!", 2),
        ("No end\nof line", 1),
        ('He said "No." Then he left.', 2),
        ("Wait... what? Go.", 2),
    ],
)
def test_sentences_are_punkt_s(response, count):
    kind = "length_constraints:number_sentences"

    assert judge(response, (kind, {"num_sentences": count, "relation": "at least"})).value == 1.0
    assert judge(response, (kind, {"num_sentences": count, "relation": "less than"})).value == 0.0


@pytest.mark.parametrize(
    ("response", "count"), [("It's 3.5 km.", 5), ("நான் தமிழ் பேசுகிறேன்", 3), ("snake_case – naïve, x² ½", 3)]
)
def test_words_are_runs_of_letters_marks_and_digits(response, count):
    kind = "length_constraints:number_words"

    assert judge(response, (kind, {"num_words": count, "relation": "at least"})).value == 1.0
    assert judge(response, (kind, {"num_words": count, "relation": "less than"})).value == 0.0


def test_loosely_a_response_may_lose_its_first_line_its_last_and_its_asterisks():
    asked = ("startend:end_checker", {"end_phrase": "That is all."})
    for response in (
        "That is all.\nHope it helps!",
        "*That is all.*",
        "Sure!\nThat is all.\n\n",
        "Well.\n*That is all.*\nBye",
    ):
        assert (judge(response, asked).value, judge(response, asked, loose=True).value) == (
            float(response.strip().endswith("all.")),
            1.0,
        )
    assert judge("All of it.", asked, loose=True).value == 0.0


def test_a_run_has_the_four_published_numbers_and_counts_instructions_over_all_rows(tmp_path):
    comma, title, quoted = ("punctuation:no_comma", {}), ("detectable_format:title", {}), ("startend:quotation", {})
    rows = [
        {"id": "a", "prompt": "1", "reference": {**reference_of(comma), "answer": "Yes"}},
        {
            "id": "b",
            "prompt": "2",
            "reference": {**reference_of(comma, title, quoted), "answer": "Sure, well\n<<A title>>"},
        },
    ]
    preset = get_benchmark_preset("ifeval")

    report = themis.evaluate(
        rows, model="fake/perfect", prompt="{prompt}", metrics=preset.metrics, reference_field="reference",
        storage=tmp_path, progress=False,
    )  # fmt: skip

    numbers = {name: (metric.mean, metric.count) for name, metric in report.evaluation_report.metrics.items()}
    assert numbers == {
        "prompt_level_strict_acc": (0.5, 2),
        "inst_level_strict_acc": (2 / 4, 2),
        "prompt_level_loose_acc": (0.5, 2),
        "inst_level_loose_acc": (3 / 4, 2),
    }
    assert report.metric("inst_level_loose_acc").details == {"part": 3, "whole": 4}


def test_what_a_rule_lacks_is_said_before_the_first_call(monkeypatch, tmp_path):
    monkeypatch.setattr(nltk.data, "path", [str(tmp_path)])
    instructions._load_punkt.cache_clear()
    sentences = ("length_constraints:number_sentences", {"num_sentences": 2, "relation": "at least"})
    rows = [{"id": "a", "prompt": "1", "reference": reference_of(sentences)}]

    with pytest.raises(DatasetError, match=r"row 0 cannot be scored: .* python -m nltk.downloader punkt_tab"):
        themis.evaluate(
            rows, model="fake/perfect", prompt="{prompt}", metrics=[InstructionFollowing()], reference_field="reference",
            storage=tmp_path / "runs", progress=False,
        )  # fmt: skip
    instructions._load_punkt.cache_clear()


def test_without_langdetect_a_language_is_not_guessed(monkeypatch):
    instructions._load_langdetect.cache_clear()
    monkeypatch.setitem(sys.modules, "langdetect", None)
    with pytest.raises(DependencyError, match=r"themis-eval\[ifeval\]"):
        judge("Das ist gut.", ("language:response_language", {"language": "de"}))
