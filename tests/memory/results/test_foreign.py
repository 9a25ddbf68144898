"""Tests of other programs are judged by what they told and expect, in every form that generations gave them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.memory.results.published import Published, write_benchmark
from themis.api import perform
from themis.config.specification import MemorySpecification
from themis.memory.agents.agent import Reply
from themis.memory.exporting import export_run
from themis.memory.importing import import_folder
from themis.memory.rejudging import rejudge_memory_run
from themis.memory.results import StoredResult, load_results
from themis.storage import ExperimentStorage


@pytest.fixture
def storage(tmp_path: Path) -> ExperimentStorage:
    return ExperimentStorage(tmp_path / "store")


def judge(tmp_path: Path, storage: ExperimentStorage, *tests: Published) -> list[StoredResult]:
    """Our verdicts on published tests."""
    (done,) = import_folder(write_benchmark(tmp_path / "old", tests), storage)
    assert done.broken == []
    return load_results(storage, done.run_id, "rescored").results


# --- a phrase to be said ----------------------------------------------------------------------------------------------

TELL = "Whenever I sneeze then say: &#x27;Bless you. Close the window&#x27;"


@pytest.mark.parametrize("expected", ["say: 'Bless you. Close the window'", "Bless you. Close the window"])
@pytest.mark.parametrize(("reply", "score"), [("Bless you. Close the window!", 1.0), ("Shall I fetch a doctor?", 0.0)])
def test_a_phrase_is_expected_with_or_without_a_say_before_it(storage, tmp_path, expected, reply, score):
    test = Published("Trigger Response", [TELL], [("Achoo!", reply)] * 2, [expected] * 2, 2, 2)

    assert [one.score for one in judge(tmp_path, storage, test)] == [score]


# --- a quotation in a later reply -------------------------------------------------------------------------------------

QUOTATION = "Rain is only the river's way of visiting."
QUIET = [("How are you?", "Well."), ("What is two and two?", "Four."), ("And three and three?", "Six.")]
# What is told, asked and expected, and how many exchanges after the request the quotation belongs.
FORMS = [
    (
        f"In the words of the ferryman, Old Tam, '{QUOTATION}'",
        "Please recite the quote by Old Tam after the next 2 statements.",
        [f"The quote by Old Tam must come after the next 2 statements. The quote is: '{QUOTATION}' and n is 2."],
        2,
    ),
    (
        f'"{QUOTATION}" - Old "Ferry" Tam',
        "After the next two statements, please recite the quote from Old Tam.",
        ["The task is completed when the quote is recited."],
        2,
    ),
    (
        f"'{QUOTATION}' - Old Tam",
        "Recite the quote from Old Tam in the response to the 3rd new message after this one.",
        ["Done when it is recited in the 3rd new message following this one."],
        3,
    ),
    (
        f"'{QUOTATION}' - Old Tam",
        "Append the quote to your third response. Count your response to this message as the first response.",
        [[QUOTATION, "Old Tam", 3]],
        2,
    ),
]


@pytest.mark.parametrize(("told", "request_text", "expected", "place"), FORMS)
@pytest.mark.parametrize("heard_in", ["task_log", "full_log"])
def test_the_quotation_belongs_where_the_request_says_in_every_generation(
    storage, tmp_path, told, request_text, expected, place, heard_in
):
    def recited(*places: int) -> list[tuple[str, str]]:
        return [
            (message, f"{reply} {QUOTATION}" if number in places else reply)
            for number, (message, reply) in enumerate(QUIET, start=1)
        ]

    said = [recited(place), recited(place - 1), recited(place - 1, place), QUIET]
    tests = [
        Published(
            "Prospective Memory", [told], [(request_text, "I will.")], expected,
            example_id=str(number), heard=heard, heard_in=heard_in,
        )
        for number, heard in enumerate(said)
    ]  # fmt: skip

    assert [one.score for one in judge(tmp_path, storage, *tests)] == [1.0, 0.0, 0.0, 0.0]


def test_a_quotation_is_judged_again_from_what_the_result_tells(storage, tmp_path):
    told, asked, expected, place = FORMS[0]
    heard = [*QUIET[: place - 1], ("Go on.", QUOTATION)]
    test = Published("Prospective Memory", [told], [(asked, "I will.")], expected, heard=heard)
    (done,) = import_folder(write_benchmark(tmp_path / "old", [test]), storage)

    assert [one.score for one in rejudge_memory_run(storage, done.run_id).results] == [1.0]


# --- free answers -----------------------------------------------------------------------------------------------------


class SayingYes:
    name = "yes"

    def answer(self, prompt: str) -> Reply:
        return Reply("yes")

    def close(self) -> None:
        pass


FACTS = ["The guild of Varn was founded by Ada the Tall.", "Its hall stands on stilts."]
ASKED = ["Who founded the guild of Varn?", "On what does its hall stand?"]
ANSWERS = ["Ada the Tall founded the guild of Varn.", "The hall of the guild stands on stilts."]


@pytest.mark.parametrize("dataset", ["Delayed Recall", "Instruction Recall"])
def test_free_answers_go_to_the_judge_and_are_undecided_without_one(storage, tmp_path, dataset):
    replies = ["The guild was founded by Ada the Tall.", "On stilts, I think."]
    test = Published(dataset, ["\n".join(FACTS)], list(zip(ASKED, replies, strict=True)), ANSWERS, 2, 2)
    (result,) = judge(tmp_path, storage, test)

    assert result.score is None
    assert "only a judge (--judge)" in result.reasoning[0]
    (run,) = storage.list_runs()
    assert [one.score for one in rejudge_memory_run(storage, run.run_id, SayingYes()).results] == [1.0]


def test_our_own_answers_are_still_judged_by_our_own_words_after_export_and_import(storage, tmp_path):
    kinds = ", ".join(f"{{name: {kind}}}" for kind in ("delayed_recall", "how_to_think", "colours", "spy_meeting"))
    config = tmp_path / "own.yml"
    config.write_text(
        f"config: {{run_name: own}}\ndatasets: {{args: {{memory_span: 2000, dataset_examples: 1}}, datasets: [{kinds}]}}"
    )
    perform(MemorySpecification(configuration=str(config), agent="oracle", run_id="own"), storage)
    export_run(storage, "own", tmp_path / "out")
    (back,) = import_folder(tmp_path / "out", storage, name="back")

    assert (back.broken, back.rescored, back.rescored_equal) == ([], back.tests, back.tests)


# --- questions that asked for no JSON, and rivals that the test itself told --------------------------------------------

NAMES = ["Refer to me as Gerd.", "Almut is what I am called.", "My name is Wiebke."]
COLOURS = ["The name of my favourite colour is Ochre.", "My favourite colour could be described as Puce."]
STORY = ["Ida entered the loft.\n", "The kite is in the urn.\n", "Ida moved the kite to the tin_box.\n"]
TOLD_JOKES = [
    "My ladder left me because I kept taking it for granted one step at a time.",
    "The soup sued the spoon for stirring up trouble in the pot.",
    "A clock retired early since it could no longer keep up with the times.",
]
TWO_JOKES = f"{TOLD_JOKES[1]} But that was earlier; it must be the other one: {TOLD_JOKES[0]}"
HINTS = ["Three people will write to you.", "Bring what opens locked doors.", "Come when the sun is highest."]
KEYWORDS = [["pick"], ["noon", "midday"]]


@pytest.mark.parametrize(
    ("dataset", "told", "asked", "expected", "reply", "score"),
    [
        ("NameList", NAMES, "What have been all of my names?", ["Gerd", "Almut", "Wiebke"], "Gerd, Almut and Wiebke.", 1.0),
        ("NameList", NAMES, "What have been all of my names?", ["Gerd", "Almut", "Wiebke"], "Gerd, then Wiebke.", 2 / 3),
        ("NameList", NAMES, "All my names, as a JSON list?", ["Gerd", "Almut", "Wiebke"], "Gerd, Almut and Wiebke.", 0.0),
        ("Names", NAMES, "What is my name?", ["Wiebke"], "Your name is Wiebke.", 1.0),
        ("Names", NAMES, "What is my name?", ["Wiebke"], "Gerd, Almut, Wiebke.", 0.0),
        ("Colours", COLOURS, "What is my favourite colour?", ["Puce"], "It is Puce.", 1.0),
        ("Colours", COLOURS, "What is my favourite colour?", ["Puce"], "Ochre or Puce.", 0.0),
        ("SallyAnne", STORY, "Where will Ida look for the kite?", ["tin_box"], "She will look in the tin box.", 1.0),
        ("SallyAnne", STORY, "Where will Ida look for the kite?", ["tin_box"], "In the urn.", 0.0),
        ("SallyAnne", STORY, "Where will Ida look? Provide JSON.", ["tin_box"], '{"answer": "Tin_box"}', 1.0),
        ("SallyAnne", STORY, "Where will Ida look? Provide JSON.", ["tin_box"], "In the tin box.", 0.0),
        ("Jokes", TOLD_JOKES, "Which joke did I tell an hour ago?", TOLD_JOKES[:1], TOLD_JOKES[0], 1.0),
        ("Jokes", TOLD_JOKES, "Which joke did I tell an hour ago?", TOLD_JOKES[:1], "\n".join(TOLD_JOKES), 0.0),
        ("Jokes", TOLD_JOKES, "Which joke did I tell an hour ago?", TOLD_JOKES[:1], TWO_JOKES, None),
        ("Spy Meeting", HINTS, "When, and what to bring?", KEYWORDS, "Bring lockpick(s), at noon or early afternoon.", 1.0),
        ("Spy Meeting", HINTS, "When, and what to bring?", KEYWORDS, "A toothpick, in the afternoon.", 0.0),
    ],
)  # fmt: skip
def test_replies_are_judged_as_the_test_itself_asked(storage, tmp_path, dataset, told, asked, expected, reply, score):
    test = Published(dataset, told, [(asked, reply)], expected, temporal=dataset == "Jokes")

    assert [one.score for one in judge(tmp_path, storage, test)] == [pytest.approx(score) if score else score]


@pytest.mark.parametrize(
    ("dataset", "told", "expected"),
    [
        ("Colours", COLOURS, None),
        ("Colours", COLOURS, [["Puce"]]),
        ("Colours", COLOURS, []),
        ("Spy Meeting", HINTS, ["noon", 3]),
        ("Trigger Response", [TELL], []),
        ("Trigger Response", [TELL], [{"say": "Bless you"}]),
        ("Prospective Memory", [f"'{QUOTATION}' - Old Tam"], ["Recite it."]),
        ("Prospective Memory", ["No quotation at all."], ["Recite it."]),
        ("Prospective Memory", [f"'{QUOTATION}' - Old Tam"], [[QUOTATION, "Old Tam"]]),
        ("Prospective Memory", [f"'{QUOTATION}' - Old Tam"], [[QUOTATION, "Old Tam", "soon"]]),
        ("Delayed Recall", ["\n".join(FACTS)], {"answer": 1}),
    ],
)
def test_what_is_expected_in_no_known_form_is_undecided_in_one_sentence(storage, tmp_path, dataset, told, expected):
    test = Published(dataset, told, [("What now?", "I do not know what you mean.")], expected)
    (result,) = judge(tmp_path, storage, test)

    assert result.score is None
    assert result.reasoning[0].startswith("what is expected cannot be read: ")
