"""Material that a model invents: checked, kept, and judged where words do not settle it."""

from __future__ import annotations

import json

import pytest

from tests.memory.tests.conversation import NO_JUDGE, Repeater, dataset, play
from themis.exceptions import ConfigurationError, DatasetError
from themis.memory.agents.calibration import Amnesiac, Oracle
from themis.memory.tests.invented import INVENTORS, grade_invented

GOOD = {
    "content": ["In Ulm-on-the-Moon it rains soup.", "Its mayor is a goose.", "Shops open at midnight."],
    "questions": ["What rains there?", "Who is mayor?", "When do shops open?"],
    "answers": ["soup", "a goose", "at midnight"],
}
KINDS = ["delayed_recall", "instruction_recall", "how_to_think", "conflicting_personal_info"]


class Inventor:
    """Says one thing after the other, the last one for ever."""

    def __init__(self, *texts: str) -> None:
        self.texts, self.asked = list(texts), 0

    def __call__(self, prompt: str, model: str, temperature: float) -> str:
        self.asked += 1
        return self.texts.pop(0) if len(self.texts) > 1 else self.texts[0]


@pytest.fixture(autouse=True)
def forgotten(monkeypatch, tmp_path):
    """What a test registers and keeps is forgotten after it."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    INVENTORS.names()  # plugins are read once, into the table that stays
    monkeypatch.setattr(INVENTORS, "_targets", {name: INVENTORS.target(name) for name in INVENTORS.names()})


def invented(name, inventor, number=1, **arguments):
    INVENTORS.register("scripted", inventor)
    made = dataset(name, generator="scripted", generation_model="some/model", **arguments)
    return made.generate_examples(number)


@pytest.mark.parametrize("name", KINDS)
def test_what_a_model_invents_becomes_a_test(name):
    (test,) = invented(name, Inventor(f"Here you are:\n```json\n{json.dumps(GOOD)}\n```"))

    assert test.script == ["\n".join(GOOD["content"]), *GOOD["questions"]]
    assert test.expected_responses == GOOD["answers"]
    assert play(test, Oracle()).grade.score == 1.0
    assert play(test, Amnesiac()).grade.score == 0.0


def test_a_model_is_asked_until_it_keeps_to_the_form():
    inventor = Inventor(
        "I would love to!", '{"content": []}', json.dumps({**GOOD, "answers": ["soup"]}), json.dumps(GOOD)
    )

    assert invented("delayed_recall", inventor)[0].expected_responses == GOOD["answers"]
    assert inventor.asked == 4
    with pytest.raises(DatasetError, match="3 questions but 1 answers"):
        invented("delayed_recall", Inventor(json.dumps({**GOOD, "answers": ["soup"]})), max_attempts=2, seed=1)


def test_what_was_invented_is_kept_in_a_file_and_not_asked_for_again(tmp_path):
    file, inventor = tmp_path / "invented.json", Inventor(json.dumps(GOOD))

    first = invented("delayed_recall", inventor, 3, generation_file=str(file))
    again = invented("delayed_recall", inventor, 3, generation_file=str(file))

    assert inventor.asked == 3
    assert [test.definition() for test in first] == [test.definition() for test in again]
    file.write_text("{")
    with pytest.raises(DatasetError, match="cannot be read"):
        invented("delayed_recall", inventor, generation_file=str(file))


def test_the_same_is_never_paid_for_twice_even_without_a_file():
    inventor = Inventor(json.dumps(GOOD))

    first = invented("delayed_recall", inventor, 2)
    again = invented("delayed_recall", inventor, 3)
    invented("delayed_recall", inventor, 3, temperature=0.5)
    invented("delayed_recall", inventor, 3, seed=1)

    assert inventor.asked == 3 + 3 + 3
    assert [test.definition() for test in first] == [test.definition() for test in again[:2]]


def test_what_was_invented_before_a_failure_is_kept():
    inventor = Inventor(json.dumps(GOOD), "no", "no", "no", json.dumps(GOOD))
    with pytest.raises(DatasetError, match=r"memory test Delayed Recall: some/model did not keep to the form in 3"):
        invented("delayed_recall", inventor, 2, max_attempts=3)
    invented("delayed_recall", inventor, 2, max_attempts=3)

    assert inventor.asked == 1 + 3 + 1


def test_a_definition_records_who_invented_it_and_how(tmp_path):
    text = json.dumps(GOOD).replace(" ", "%20")
    model = f"fake/constant?text={text}"
    (test,) = dataset("delayed_recall", generator="model", generation_model=model, temperature=0.3).generate_examples(1)
    record = test.definition()["material"]["invented"]

    assert (record["generator"], record["model"], record["temperature"]) == ("model", model, 0.3)
    assert "Invent a fictional place" in record["prompt"]
    assert (record["attempts"], record["cost_usd"]) == (1, 0.0)


def test_a_model_must_be_named():
    with pytest.raises(ConfigurationError, match="needs generation_model"):
        dataset("how_to_think", generator="model").generate_examples(1)
    with pytest.raises(ConfigurationError, match=r"unknown generator 'modle' \(did you mean 'model'"):
        dataset("how_to_think", generator="modle", generation_model="some/model").generate_examples(1)


def test_a_model_of_any_provider_can_invent():
    text = json.dumps(GOOD).replace(" ", "%20")
    (test,) = dataset(
        "delayed_recall", generator="model", generation_model=f"fake/constant?text={text}"
    ).generate_examples(1)

    assert test.expected_responses == GOOD["answers"]


@pytest.mark.parametrize(
    ("reply", "score"),
    [
        ("soup", 1),
        ("Soup.", 1),
        ("It rains soup.", 1),
        ("**soup**", 1),
        ("It is soup that rains there!", 1),
        ("I don't know.", 0),
        ("", 0),
        ("You never told me.", 0),
        ("soup, a goose, at midnight", 0),
        ("soup or stew", None),
        ("stew", None),
        ("not soup", None),
        ("Something hot and liquid", None),
        ("either soup", None),
        ("soup and stew", None),
    ],
)
def test_only_what_is_not_plain_goes_to_the_judge(reply, score):
    settled = grade_invented(reply, "soup", GOOD["answers"])

    assert (None if settled is None else settled.score) == score


def test_the_judge_settles_the_rest():
    (test,) = invented("delayed_recall", Inventor(json.dumps(GOOD)))

    assert play(test, Repeater("Some kind of stew"), judge="yes").grade.score == 1.0
    assert play(test, Repeater("Some kind of stew"), judge="no").grade.score == 0.0
    failed = play(test, Repeater("Some kind of stew")).grade
    assert failed.failed
    assert NO_JUDGE in failed.reasons[0]
