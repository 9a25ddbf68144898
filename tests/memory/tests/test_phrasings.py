"""Right and wrong answers as a person would judge them: at least fifty for each test, in `phrasings/<test>.txt`."""

from __future__ import annotations

import pytest

from tests.memory.tests.conversation import TESTS, dataset
from tests.memory.tests.known_replies import read_phrasings, score_of
from themis.memory.scoring.claims import weigh_claim
from themis.memory.scoring.lists import grade_order
from themis.memory.tests.erasure import grade_hidden
from themis.memory.tests.own_words import find_choice, grade_choice
from themis.memory.tests.restaurant import notices, read_order
from themis.memory.tests.sessions import grade_matter, grade_matters, grade_weekday
from themis.memory.tests.speakers import PRESENTS, grade_secret
from themis.memory.tests.standing_requests import grade_recital
from themis.memory.tests.times import grade_days
from themis.memory.tests.updates import grade_as_of

# In the order of the menu, which gives their numbers.
MENU = (
    "Beetroot carpaccio", "Stuffed vine leaves", "Smoked trout mousse", "Marinated artichokes", "Pumpkin soup", "Fish broth",
    "Gazpacho", "Veal schnitzel", "Lamb cutlets", "Duck breast", "Tofu skewers", "Grilled sardines", "Mussels in cider",
    "Halibut with fennel", "Spinach ravioli", "Tagliatelle with truffle", "Gnocchi with gorgonzola", "Roast potatoes",
    "Braised cabbage", "Couscous", "Apricot dumplings", "Pistachio parfait", "Rhubarb crumble", "Sparkling water",
    "Elderflower lemonade", "Wheat beer", "Riesling", "Ginger ale", "Hibiscus tea", "Espresso",
)  # fmt: skip
QUOTATION = "It is not down in any map; true places never are."


def passwords(reply, place):
    replies = ["I no longer know it.", "osprey", "plover"]
    replies[place] = reply
    questions = [f"What is the password for the {lock}?" for lock in ("wine vault", "garden shed", "wine vault")]
    score = score_of(dataset("forgetting").evaluate(questions, replies, [["kestrel"], "osprey", "plover"]))
    return None if score is None else float(score == 1)


def ordered(reply):
    order = read_order(reply, MENU)
    return None if order.unclear else ", ".join(sorted(order.items)) or "-"


def settled(grade):
    return None if grade.failed else grade.score


def chosen(reply):
    return 1.0 if find_choice(reply, ["Emberkin", "Driftsong", "Larkfoot"]) == "Emberkin" else 0.0


# Questions that no `evaluate` of one question answers.
JUDGES = {
    "confidence/secret": lambda reply: settled(grade_secret(reply, "brass globe")),
    "confidence/told": lambda reply: settled(weigh_claim(reply, "brass globe", PRESENTS)),
    "erasure/hidden": lambda reply: settled(grade_hidden(reply, "harp")),
    "forgetting/forgotten": lambda reply: passwords(reply, 0),
    "forgetting/kept": lambda reply: passwords(reply, 1),
    "forgetting/new": lambda reply: passwords(reply, 2),
    "knowledge_update/then": lambda reply: grade_as_of(reply, "Willow").score,
    "own_words/choosing": chosen,
    "own_words/name": lambda reply: settled(grade_choice(reply, "Emberkin")),
    "own_words/promise": lambda reply: settled(grade_choice(reply, "a haiku")),
    "prospective_memory": lambda reply: grade_recital(["I will.", "Fine.", reply], QUOTATION, 3).score,
    "restaurant/order": ordered,
    "restaurant/served": lambda reply: {True: 1.0, False: 0.0, None: None}[notices(reply, "Gazpacho", "Pumpkin soup")],
    "sessions/day": lambda reply: settled(grade_weekday(reply, "Tuesday")),
    "sessions/order": lambda reply: settled(grade_matters(reply, ["the glue", "the lighting", "the permit"])),
    "sessions/which": lambda reply: settled(grade_matter(reply, "the glue")),
    "temporal_order/order": lambda reply: grade_order(reply, ["hedge", "piano", "fence", "canoe"]).score,
    "temporal_order/days": lambda reply: grade_days(reply, 14).score,
}


def agrees(found, verdict):
    if verdict == "?" or found is None:
        return verdict == "?" and found is None
    if isinstance(found, str):
        return found == ", ".join(sorted(verdict.split(", ")))
    return found == pytest.approx(float(verdict), abs=0.01)


@pytest.mark.parametrize("test", TESTS)
def test_answers_are_judged_as_a_person_would(test):
    questions = read_phrasings(test)
    misjudged = []
    for question in questions:
        judge = JUDGES.get(question.name, question.judge)
        for verdict, reply in question.replies:
            if not agrees(found := judge(reply), verdict):
                misjudged.append(f"{question.name}: {verdict}, got {found}: {reply!r}")

    assert misjudged == []
    assert sum(len({reply for _, reply in question.replies}) for question in questions) >= 50
    verdicts = [verdict for question in questions for verdict, _ in question.replies]
    assert sum(1 for verdict in verdicts if verdict not in ("0", "?", "-")) >= 10
    assert sum(1 for verdict in verdicts if verdict in ("0", "?", "-")) >= 10
