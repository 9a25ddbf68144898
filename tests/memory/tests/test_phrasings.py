"""Right and wrong answers as a person would judge them: at least fifty for each test, in `phrasings/<test>.txt`.

A line is the verdict and the reply, in which \\n breaks the line: `1` right, `0` wrong, a share, or `?` where words do not
settle it and the judge is asked. `== name` begins another question of the same test, `#` explains.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.memory.tests.conversation import dataset
from themis.memory.actions import Grade
from themis.memory.material.complaints import notices
from themis.memory.material.jokes import JOKES
from themis.memory.material.menu import read_order
from themis.memory.scoring import grade_order
from themis.memory.tests import BUILTIN_TESTS
from themis.memory.tests.knowledge_update import grade_as_of
from themis.memory.tests.prospective_memory import grade_recital
from themis.memory.tests.temporal_order import grade_days

FOLDER = Path(__file__).parent / "phrasings"
CODE, KEY = "0123abcd-4567-89ab-cdef-0123456789ab", "ba9876543210-fedc-ba98-7654-dcbaffff"
ROUTE = (
    "From bakery, go 2 km north to dairy.\nFrom dairy, go 3 km east to quarry.\nFrom quarry, go 1 km south to cinema."
)
NOTICE = (
    "The treasurer regrets the loss of the spare ladder and offers nine crowns for its return. "
    "Complaints are heard every Monday."
)
QUOTATION = "It is not down in any map; true places never are."
ISLAND = ["Torvane", "Ysolde", "korrins", "Ossel", "heron", "slate"]
MACHINE = ["lamp oil", "9", "12", "thimble", "7", "eyes", "stoker"]
PEOPLE = {
    "instrument": ("Which instrument does Elena Moreau play?", "harp"),
    "animal": ("Which animal does Elena Szabo keep?", "gecko"),
}


def asked(test, expected, question="?"):
    """The verdict of a test's own `evaluate` on its only question."""
    return lambda reply: settled(dataset(test).evaluate([question], [reply], expected))


def one_of(test, answers, place, question="?"):
    """The verdict on one of several answers, the others being right."""

    def judge(reply):
        replies = [*answers[:place], reply, *answers[place + 1 :]]
        grade = settled(dataset(test).evaluate([question] * len(answers), replies, answers))
        return None if grade is None else grade * len(answers) - (len(answers) - 1)

    return judge


def settled(verdict):
    """The score, or None where the judge is asked."""
    if isinstance(verdict, Grade):
        return verdict.score
    try:
        next(verdict)
    except StopIteration as end:
        return end.value.score
    return None


def passwords(reply, place):
    replies = ["I no longer know it.", "osprey", "plover"]
    replies[place] = reply
    questions = [f"What is the password for the {lock}?" for lock in ("wine vault", "garden shed", "wine vault")]
    grade = dataset("forgetting").evaluate(questions, replies, [["kestrel"], "osprey", "plover"])
    return 1.0 if grade.score == 1 else 0.0


def ordered(reply):
    order = read_order(reply)
    return None if order.unclear else ", ".join(sorted(order.items)) or "-"


JUDGES = {
    "abstention/told": asked("abstention", ["Moreau"], "What is the surname of my dentist?"),
    "abstention/untold": asked("abstention", [None], "What is the surname of my dentist?"),
    "aggregation/sum": one_of("aggregation", ["21", "3", "bicycles"], 0),
    "aggregation/count": one_of("aggregation", ["21", "3", "bicycles"], 1),
    "aggregation/most": one_of("aggregation", ["21", "3", "bicycles"], 2),
    "chapterbreak": asked("chapterbreak", ["4"]),
    "colours": asked("colours", ["crimson"]),
    "conflicting_personal_info": asked(
        "conflicting_personal_info", [["Bergen", "Porto"]], "Where does my sister live?"
    ),
    "contradiction": asked("contradiction", ["Elena", "Hugo"]),
    "delayed_recall/capital": one_of("delayed_recall", ISLAND, 0),
    "delayed_recall/river": one_of("delayed_recall", ISLAND, 3),
    "delayed_recall/emblem": one_of("delayed_recall", ISLAND, 4),
    "delayed_recall/roofs": one_of("delayed_recall", ISLAND, 5),
    "forgetting/forgotten": lambda reply: passwords(reply, 0),
    "forgetting/kept": lambda reply: passwords(reply, 1),
    "forgetting/new": lambda reply: passwords(reply, 2),
    "how_to_think": asked("how_to_think", ["Falcon"]),
    "instruction_exceptions/fragile": asked("instruction_exceptions", ["chapel"]),
    "instruction_exceptions/ordinary": asked("instruction_exceptions", ["barn"]),
    "instruction_recall/pour": one_of("instruction_recall", MACHINE, 0),
    "instruction_recall/crank": one_of("instruction_recall", MACHINE, 1, "How many times do I turn the crank?"),
    "instruction_recall/tap": one_of("instruction_recall", MACHINE, 3),
    **{f"interference/{name}": asked("interference", [value], question) for name, (question, value) in PEOPLE.items()},
    "jokes": asked("jokes", [JOKES[1]]),
    "knowledge_update/now": one_of("knowledge_update", ["Elm", "Willow"], 0),
    "knowledge_update/then": lambda reply: grade_as_of(reply, "Willow").score,
    "kv": asked("kv", [CODE], f"Which value belongs to the key {KEY}? Answer with the value only."),
    "locations": asked("locations", ["3 km North"]),
    "locations_directions": asked("locations_directions", [ROUTE]),
    "name_list": asked("name_list", ["Terence", "Jane", "Liam", "Orla"]),
    "names": asked("names", ["Agnes"]),
    "preference": asked("preference", ["the lemon sponge"]),
    "prospective_memory": lambda reply: grade_recital(["I will.", "Fine.", reply], QUOTATION, 3).score,
    "restaurant/order": ordered,
    "restaurant/served": lambda reply: {True: 1.0, False: 0.0, None: None}[notices(reply, "Gazpacho", "Pumpkin soup")],
    "sallyanne": asked("sallyanne", ["crate"]),
    "shopping": asked("shopping", [["lemon", 2], ["jar of honey", 1], ["candle", 3]]),
    "spy_meeting": asked(
        "spy_meeting",
        [
            ["noon", "midday", "12 pm", "twelve o'clock"],
            ["cemetery", "graveyard", "churchyard", "burial ground"],
            ["umbrella", "parasol"],
        ],
    ),
    "temporal_order/order": lambda reply: grade_order(reply, ["hedge", "piano", "fence", "canoe"]).score,
    "temporal_order/days": lambda reply: grade_days(reply, 14).score,
    "trigger_response": asked("trigger_response", ["Read it a chapter about the sea"]),
    "verbatim": asked("verbatim", [NOTICE]),
}


def read_phrasings(test):
    """Question, verdict and reply of every line."""
    question = test
    for line in (FOLDER / f"{test}.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("== "):
            question = f"{test}/{line[3:]}"
        elif not line.startswith("#"):
            verdict, _, reply = line.partition(" |")
            yield question, verdict, reply.removeprefix(" ").replace("\\n", "\n")


def agrees(found, verdict):
    if verdict == "?" or found is None:
        return verdict == "?" and found is None
    if isinstance(found, str):
        return found == ", ".join(sorted(verdict.split(", ")))
    return found == pytest.approx(float(verdict), abs=0.01)


@pytest.mark.parametrize("test", sorted(BUILTIN_TESTS))
def test_answers_are_judged_as_a_person_would(test):
    phrasings = list(read_phrasings(test))
    misjudged = []
    for question, verdict, reply in phrasings:
        found = JUDGES[question](reply)
        if not agrees(found, verdict):
            misjudged.append(f"{question}: {verdict}, got {found}: {reply!r}")

    assert misjudged == []
    assert len({(question, reply) for question, _, reply in phrasings}) >= 50
    assert sum(1 for _, verdict, _ in phrasings if verdict not in ("0", "?", "-")) >= 10
    assert sum(1 for _, verdict, _ in phrasings if verdict in ("0", "?", "-")) >= 10
