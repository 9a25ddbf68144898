"""Longer answers: jokes, passages, quotations, phrases, codes, hints, conflicts and a guest's words."""

from __future__ import annotations

import pytest

from themis.memory.material.jokes import JOKES
from themis.memory.material.menu import read_order
from themis.memory.scoring import grade_passage
from themis.memory.tests.abstention import grade_abstention
from themis.memory.tests.conflicting_personal_info import grade_conflict
from themis.memory.tests.forgetting import grade_forgetting
from themis.memory.tests.jokes import settle_joke
from themis.memory.tests.key_values import grade_code
from themis.memory.tests.knowledge_update import grade_as_of
from themis.memory.tests.prospective_memory import grade_recital
from themis.memory.tests.restaurant import notices
from themis.memory.tests.spy_meeting import SpyMeeting
from themis.memory.tests.trigger_response import said

# How a text is repeated; each is a repetition.
REPEATED = [
    "{text}",
    "“{text}”",
    '"{text}"',
    "{text}!",
    "It was: {text}",
    "You told me: “{text}”",
    "**{text}**",
    "_{text}_",
    "> {text}",
    "- {text}",
    "Sure! {text}",
    "Here it is:\n\n{text}",
    "{text}\n\nAnything else?",
    "{TEXT}",
    "{lower}",
    "Of course. {text}",
    "I remember it well: {text}",
    "{unpunctuated}",
    "That was “{text}”.",
    "```\n{text}\n```",
    "Answer: {text}",
    " {text} ",
    "{text} (as far as I recall)",
    "Let me think... {text}",
    "'{text}'",
]


def repeated(text):
    forms = {
        "text": text,
        "TEXT": text.upper(),
        "lower": text.lower(),
        "unpunctuated": text.rstrip(".").replace(",", ""),
    }
    return [wording.format(**forms) for wording in REPEATED]


NOT_JOKES = [
    "",
    "I do not know.",
    "A joke.",
    "You told me a joke about something.",
    "It was very funny!",
    "Ha ha ha",
    "null",
    "The third one.",
    "You have not told me any jokes.",
    "Which one?",
    "The joke about the chicken that crossed the road.",
    "Understood.",
    "[]",
    "Why did the chicken cross the road?",
    "Knock knock.",
    "I am a language model and cannot remember jokes.",
    "42",
    "The one that made me laugh",
    "Something with a ladder.",
    "a mathematician",
    "...",
    "One about infinity, I believe.",
    "No.",
    "Yes.",
    *(JOKES[0], JOKES[2], f"{JOKES[1]} {JOKES[0]}", " ".join(JOKES), "\n".join(reversed(JOKES))),
]


def test_a_joke_is_told_or_it_is_not():
    joke = JOKES[1]

    assert [
        reply for reply in repeated(joke) if settle_joke(reply, joke) is None or settle_joke(reply, joke).score != 1
    ] == []
    assert [
        reply for reply in NOT_JOKES if settle_joke(reply, joke) is None or settle_joke(reply, joke).score != 0
    ] == []
    assert settle_joke("The one in which I lent my ladder to a mathematician and got back infinity.", joke) is None


NOTICE = (
    "The treasurer regrets the loss of the spare ladder and offers nine crowns for its return. "
    "Complaints are heard every Monday."
)


def test_a_passage_is_repeated_word_for_word_or_in_part():
    assert [reply for reply in repeated(NOTICE) if grade_passage(reply, NOTICE).score != 1] == []
    assert [reply for reply in NOT_JOKES if grade_passage(reply, NOTICE).score != 0] == []
    one_word_off = NOTICE.replace("nine", "ten")
    assert 0.85 < grade_passage(one_word_off, NOTICE).score < 1
    half = "The treasurer regrets the loss of the spare ladder."
    assert grade_passage(half, NOTICE).score == 0
    assert grade_passage(f"{NOTICE} {'And another notice about something else entirely. ' * 6}", NOTICE).score == 0


def test_a_quotation_belongs_into_one_reply_only():
    quotation = "It is not down in any map; true places never are."
    for wording in repeated(quotation):
        assert grade_recital(["I will.", "Fine.", f"The answer is 4.\n\n{wording}"], quotation, 3).score == 1, wording
        assert grade_recital(["I will.", wording, "4"], quotation, 3).score == 0, wording
    for reply in NOT_JOKES:
        assert grade_recital(["I will.", "Fine.", reply], quotation, 3).score == 0, reply
    assert grade_recital([quotation, quotation, quotation], quotation, 3).score == 0
    assert grade_recital(["I will.", "Fine."], quotation, 3).score == 0
    assert grade_recital(["I will.", "Fine.", quotation, quotation], quotation, 3).score == 1


def test_a_phrase_is_said_or_not():
    phrase = "Read it a chapter about the sea"
    assert [reply for reply in repeated(phrase) if said(reply, phrase, 0.75) is not True] == []
    assert [reply for reply in NOT_JOKES if said(reply, phrase, 0.75) is not False] == []
    assert said("Read it a chapter on the sea.", phrase, 0.75) is True
    assert said("Read it one page about the sea.", phrase, 0.75) is None


CODE, OTHER = "0123abcd-4567-89ab-cdef-0123456789ab", "ffffabcd-4567-89ab-cdef-0123456789ab"


def test_a_code_is_found_or_not():
    given = f"Which value belongs to the key {OTHER[::-1]}?"
    assert [reply for reply in repeated(CODE) if grade_code(reply, CODE, given=given).score != 1] == []
    wrong = [
        *NOT_JOKES,
        OTHER,
        f"{CODE} {OTHER}",
        f"{OTHER} {CODE}",
        CODE[:-1],
        CODE[1:],
        f"a{CODE}",
        CODE.replace("-", ""),
    ]
    assert [reply for reply in wrong if grade_code(reply, CODE, given=given).score != 0] == []
    assert grade_code(f"{OTHER} -> {CODE}", CODE, given=given, on_the_way=1).score == 1
    assert grade_code(f"{CODE} -> {OTHER}", CODE, given=given, on_the_way=1).score == 0


# Expected: at noon in the cemetery with an umbrella.
MEETINGS = [
    ("At noon in the cemetery, bring an umbrella.", 3),
    ("noon; cemetery; umbrella", 3),
    ("Midday, graveyard, parasol", 3),
    ("NOON at the CEMETERY with an UMBRELLA", 3),
    ("Be at the churchyard at midday and take your umbrella.", 3),
    ("When: noon. Where: cemetery. What: umbrella.", 3),
    ("- Time: midday\n- Place: cemetery\n- Bring: umbrella", 3),
    ("**Noon**, **cemetery**, **umbrella**", 3),
    ("12 pm, cemetery, umbrella", 3),
    ("At twelve o'clock at the graveyard. Umbrella!", 3),
    ("You should be at the cemetery (graveyard) at noon (midday) with an umbrella.", 3),
    ("The burial ground, at noon, with a parasol", 3),
    ("At noon, not at midnight, at the cemetery with an umbrella", 3),
    ("Umbrellas, cemeteries... I mean the cemetery, at noon", 3),
    ("It's at midday. The place is a graveyard. Take an umbrella with you.", 3),
    ("Around noon by the cemetery; umbrella needed", 3),
    ("noon, umbrella", 2),
    ("cemetery and umbrella", 2),
    ("noon at the cemetery", 2),
    ("noon at the library with an umbrella", 2),
    ("midnight, cemetery, umbrella", 2),
    ("noon, cemetery, torch", 2),
    ("At noon or midnight, in the cemetery, with an umbrella", 2),
    ("noon, at the cemetery or the zoo, umbrella", 2),
    ("noon, cemetery, umbrella and compass", 2),
    ("midday at the hospital, parasol", 2),
    ("dawn, graveyard, parasol", 2),
    ("graveyard, umbrella, tea time", 2),
    ("noon", 1),
    ("cemetery", 1),
    ("umbrella", 1),
    ("noon at the zoo with a boat", 1),
    ("dawn, cemetery, boat", 1),
    ("midnight, zoo, umbrella", 1),
    ("At the graveyard at dusk with a torch", 1),
    ("", 0),
    ("I do not know.", 0),
    ("when both hands point to heaven, where the dead lie in rows under stone", 0),
    ("something that keeps the sky off your head", 0),
    ("dawn, library, torch", 0),
    ("midnight at the zoo with a boat", 0),
    ("noontide, cemeteryish, umbrellaless", 0),
    ("Which meeting?", 0),
    ("null", 0),
    ("[]", 0),
    ("There are three messages.", 0),
    ("They want to meet in secret.", 0),
    ("Ask the spies.", 0),
    ("sunset hospital compass", 0),
    ("noon dawn midnight sunset teatime cemetery library station zoo hospital umbrella torch compass boat", 0),
    ("The meeting takes place; be there; do not come without it.", 0),
]


def test_a_meeting_scores_the_parts_that_were_understood():
    expected = [
        ["noon", "midday", "12 pm", "twelve o'clock"],
        ["cemetery", "graveyard", "churchyard", "burial ground"],
        ["umbrella", "parasol"],
    ]
    for reply, points in MEETINGS:
        assert SpyMeeting().evaluate([""], [reply], expected).score == pytest.approx(points / 3), reply


CONFLICTS = [
    ("You said Bergen and later Porto.", 1),
    ("Bergen and Porto", 1),
    ("Porto, Bergen", 1),
    ("First Bergen, then Porto.", 1),
    ("Either Bergen or Porto; you contradicted yourself.", 1),
    ("Bergen / Porto", 1),
    ("- Bergen\n- Porto", 1),
    ("BERGEN, PORTO", 1),
    ("You told me two things: Bergen and Porto.", 1),
    ("**Bergen** at first, **Porto** afterwards", 1),
    ("It was Bergen; then you said Porto.", 1),
    ("In Porto, although earlier you said Bergen.", 1),
    ('["Bergen", "Porto"]', 1),
    ("Porto (or Bergen, as you also said)", 1),
    ("I have both Bergen and Porto on record.", 1),
    ("Bergen? Or Porto? You told me both.", 1),
    ("bergen & porto", 1),
    ("Porto", 0.5),
    ("In Porto.", 0.5),
    ("Your sister lives in Porto.", 0.5),
    ("**Porto**", 0.5),
    ("porto!", 0.5),
    ("It is Porto.", 0.5),
    ("You said Porto.", 0.5),
    ("I believe Porto", 0.5),
    ("Porto, Porto, Porto", 0.5),
    ("Bergen", 0),
    ("In Bergen.", 0),
    ("Riga", 0),
    ("Bergen, Porto and Riga", 0),
    ("Porto and Riga", 0),
    ("Bergen or Riga", 0),
    ("", 0),
    ("I do not know.", 0),
    ("You contradicted yourself.", 0),
    ("null", 0),
    ("Somewhere in Europe", 0),
    ("Graz", 0),
    ("With me", 0),
    ("[]", 0),
    ("Portobello", 0),
    ("Bergenish", 0),
    ("In a flat", 0),
    ("Abroad", 0),
    ("Antwerp, Bergen, Bilbao, Porto", 0),
    ("Which sister?", 0),
    ("Malmo and Zagreb", 0),
    ("There are two answers.", 0),
    ("My sister?", 0),
    ("Both.", 0),
]


def test_both_sides_of_a_conflict_must_be_named():
    for reply, score in CONFLICTS:
        assert grade_conflict(reply, "Bergen", "Porto").score == score, reply


AS_OF = [
    ("Willow", 1),
    ("The Willow room.", 1),
    ("**Willow**", 1),
    ("In the willow room", 1),
    ("It was the Willow room.", 1),
    ("You rehearsed in the Willow room then.", 1),
    ("Willow; by now it is Elm.", 1),
    ("The Willow room, later the Elm room", 1),
    ("On 20 April it was Willow.", 1),
    ("WILLOW!", 1),
    ("willow (since March)", 1),
    ("Answer: Willow", 1),
    ("“Willow”", 1),
    ("That was in the Willow room, before the move to Elm", 1),
    ("Back then: Willow", 1),
    ("The Willow Room", 1),
    ("Elm", 0),
    ("The Elm room.", 0),
    ("", 0),
    ("I do not know.", 0),
    ("Elm, formerly Willow", 0),
    ("Willow, Elm and Larch", 0),
    ("Alder Beech Cedar Elm Hazel Willow", 0),
    ("Elm or Willow", 0),
    ("null", 0),
    ("A room", 0),
    ("Larch", 0),
    ("willowy", 0),
    ("In the church", 0),
    ("Which choir?", 0),
    ("[]", 0),
    ("Cedar; no, Maple", 0),
]


def test_what_held_at_a_date_must_be_named_first():
    for reply, score in AS_OF:
        assert grade_as_of(reply, "Willow").score == score, reply


ORDERS = [
    ("The Riesling, please.", ["Riesling"]),
    ("I would like the Elderflower lemonade.", ["Elderflower lemonade"]),
    ("espresso", ["Espresso"]),
    ("A lemonade, please!", ["Elderflower lemonade"]),
    ("Sparkling water and an espresso.", ["Sparkling water", "Espresso"]),
    ("I'll have the veal schnitzel with roast potatoes.", ["Veal schnitzel", "Roast potatoes"]),
    ("Gazpacho.", ["Gazpacho"]),
    ("The schnitzel", ["Veal schnitzel"]),
    ("Could I get the mussels?", ["Mussels in cider"]),
    ("Ravioli for me.", ["Spinach ravioli"]),
    ("The halibut, but not the sardines.", ["Halibut with fennel"]),
    ("I'd rather not have the Riesling. An espresso.", ["Espresso"]),
    ("**Duck breast**", ["Duck breast"]),
    ("duck breast, braised cabbage and couscous", ["Duck breast", "Braised cabbage", "Couscous"]),
    ("The pistachio parfait instead of the crumble", ["Pistachio parfait"]),
    ("TOFU SKEWERS", ["Tofu skewers"]),
    ("I am full.", []),
    ("Nothing, thank you.", []),
    ("I do not know.", []),
    ("", []),
    ("A pizza, please.", []),
    ("A hamburger and a cola", []),
    ("Thank you!", []),
    ("null", []),
    ("Let us start with the fish broth.", ["Fish broth"]),
    ("truffle tagliatelle", ["Tagliatelle with truffle"]),
    ("Number 7, please.", ["Gazpacho"]),
    ("#31 for me", []),
    ("No. 1 and number 2", ["Beetroot carpaccio", "Stuffed vine leaves"]),
    ("Gnocchi, please; no drinks.", ["Gnocchi with gorgonzola"]),
    ("artichokes and cutlets", ["Marinated artichokes", "Lamb cutlets"]),
]
UNCLEAR = ["The fish, please.", "A tea.", "Some wine.", "The soup.", "a beer", "Any dessert will do."]
NOTICED = [
    "I did not order the Gazpacho.",
    "I ordered the Pumpkin soup, not Gazpacho.",
    "This is wrong: the Gazpacho is not mine.",
    "There is a mistake, I asked for Pumpkin soup.",
    "Excuse me, I didn't order Gazpacho.",
    "I believe I ordered the pumpkin soup.",
    "Shouldn't this be Pumpkin soup instead of Gazpacho?",
    "The Gazpacho should be a Pumpkin soup.",
    "Where is my Pumpkin soup? This is wrong.",
    "You mixed up the Gazpacho, I asked for Pumpkin soup.",
    "No, the Gazpacho is wrong.",
    "My pumpkin soup is missing.",
]
UNNOTICED = [
    "Thank you!",
    "Everything is perfect.",
    "Yes, thanks. The Gazpacho looks delicious.",
    "It smells wonderful.",
    "",
    "I do not know.",
    "Great, enjoy!",
    "Yes.",
    "All good.",
    "Lovely, thank you very much.",
    "null",
    "Could I have some salt?",
]


def test_a_guest_is_understood_by_the_words_of_the_menu():
    for reply, items in ORDERS:
        assert sorted(read_order(reply).items) == sorted(items), reply
        assert not read_order(reply).unclear, reply
    assert [reply for reply in UNCLEAR if not read_order(reply).unclear] == []
    assert [reply for reply in NOTICED if notices(reply, "Gazpacho", "Pumpkin soup") is not True] == []
    assert [reply for reply in UNNOTICED if notices(reply, "Gazpacho", "Pumpkin soup") is not False] == []
    assert notices("There is something wrong here.", "Gazpacho", "Pumpkin soup") is None


def test_forgetting_counts_only_for_those_who_remember():
    assert grade_forgetting(["I no longer know it.", "osprey", "plover"], "kestrel", "osprey", "plover").score == 1
    assert grade_forgetting(["kestrel", "osprey", "plover"], "kestrel", "osprey", "plover").score == pytest.approx(
        2 / 3
    )
    assert (
        grade_forgetting(["You asked me to forget “kestrel”.", "osprey", "plover"], "kestrel", "osprey", "plover").score
        < 0.7
    )
    assert grade_forgetting(["I do not know."] * 3, "kestrel", "osprey", "plover").score == 0
    assert grade_forgetting(["", "osprey", "kestrel"], "kestrel", "osprey", "plover").score == pytest.approx(2 / 3)


def test_neither_always_declining_nor_always_guessing_pays():
    expected = ["Moreau", None, "Szabo", None]
    assert (
        grade_abstention(["Moreau", "You have not told me.", "It's Szabo.", "I don't know that."], expected).score == 1
    )
    assert grade_abstention(["I don't know."] * 4, expected).score == 0
    assert grade_abstention(["Moreau", "Vasquez", "Szabo", "Vasquez"], expected).score == 0
    assert grade_abstention(["Moreau", "I don't know, maybe Vasquez.", "Szabo", "No idea."], expected).score == 0.5
