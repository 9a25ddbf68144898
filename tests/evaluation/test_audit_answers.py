"""Answers are made of which it is known whether they are right."""

from __future__ import annotations

import pytest

from themis.evaluation.audit_answers import WRONG_KINDS, AuditItem, Kind, make_audit_answers

ITEMS = [
    AuditItem("legs", "How many legs has a spider?", ("8",)),
    AuditItem("far", "How far is it?", ("1,250 km",)),
    AuditItem("near", "How near is it?", ("12 km",)),
    AuditItem("group", "When did Caroline go to the group?", ("7 May 2023",)),
    AuditItem("paint", "When did Melanie paint?", ("1 June 2022",)),
    AuditItem("hamlet", "Who wrote Hamlet?", ("William Shakespeare", "Shakespeare")),
    AuditItem("mould", "Who found penicillin?", ("Alexander Fleming",)),
    AuditItem("wet", "Is water wet?", ("yes",)),
    AuditItem("trip", "What does Melanie plan?", ("a camping trip with her family",)),
    AuditItem("buy", "What did he buy?", ("two old bicycles",)),
]


def texts(item_id: str, kind: Kind) -> set[str]:
    """What any of many seeds makes of an item."""
    return {
        answer.text
        for seed in range(40)
        for answer in make_audit_answers(ITEMS, 80, seed=seed)
        if (answer.item_id, answer.kind) == (item_id, kind)
    }


def test_half_of_the_answers_are_right_and_the_wrong_ones_come_in_equal_parts():
    made = make_audit_answers(ITEMS, 40)
    assert len(made) == 40
    assert sum(answer.kind.is_right for answer in made) == 20
    assert {kind: sum(answer.kind is kind for answer in made) for kind in WRONG_KINDS} == dict.fromkeys(WRONG_KINDS, 5)
    assert len({(answer.item_id, answer.text) for answer in made}) == 40
    assert made == make_audit_answers(ITEMS, 40)
    assert made != make_audit_answers(ITEMS, 40, seed=1)


def test_right_answers_say_the_same_in_other_words():
    dates = " ".join(texts("group", Kind.REPHRASED))
    assert all(form in dates for form in ("7 May 2023", "May 7, 2023", "2023-05-07"))
    distances = " ".join(texts("far", Kind.REPHRASED))
    assert all(form in distances for form in ("1,250 km", "1250 km", "1,250 kilometres"))
    assert any("eight" in text for text in texts("legs", Kind.REPHRASED))
    assert texts("wet", Kind.REPHRASED) <= {"Yes, that is so.", "Indeed, that is the case.", "That is correct."}
    assert all("Alexander Fleming" in text and len(text) > 80 for text in texts("mould", Kind.EXPLAINED))


def test_wrong_values_are_of_the_same_kind():
    assert all("12 km" in text for text in texts("far", Kind.SPECIFIC))
    assert all("1 June 2022" in text for text in texts("group", Kind.SPECIFIC))
    assert all("Alexander Fleming" in text for text in texts("hamlet", Kind.SPECIFIC))
    assert all("two old bicycles" in text for text in texts("trip", Kind.SPECIFIC))


def test_near_misses_are_beside_the_right_value():
    numbers = " ".join(texts("far", Kind.NEAR_MISS))
    assert all(near in numbers for near in ("1,249 km", "1,251 km", "1,205 km"))
    assert any("8 May 2023" in text for text in texts("group", Kind.NEAR_MISS))
    assert all("William" in text or "Shakespeare" in text for text in texts("hamlet", Kind.NEAR_MISS))


@pytest.mark.parametrize(
    ("reference", "near"),
    [
        ("June 2023", {"May 2023", "July 2023", "June 2024"}),
        ("2020", {"2019", "2021", "2002"}),
        ("the week before 9 June 2023", {"the week before 10 June 2023", "the week before 9 July 2023"}),
        ("three months", {"four months"}),
    ],
)
def test_a_near_miss_of_what_holds_a_number_or_a_month_changes_that(reference, near):
    item = AuditItem("one", "When was it?", (reference,))
    answers = (answer for seed in range(60) for answer in make_audit_answers([item], 20, seed=seed))
    made = [answer.text for answer in answers if answer.kind is Kind.NEAR_MISS]
    assert all(any(value in text for text in made) for value in near)
    assert not [text for text in made if reference in text]


def test_a_long_text_is_not_called_wrong_for_one_of_its_words():
    long = "by carving out some time each day for reading or playing the violin"
    items = [
        AuditItem("one", "How does she rest?", (long,)),
        AuditItem("two", "How did he?", ("by running along rivers",)),
    ]
    assert not [
        answer for answer in make_audit_answers(items, 40) if (answer.item_id, answer.kind) == ("one", Kind.NEAR_MISS)
    ]


def test_a_negation_says_the_contrary():
    assert {text.lower().rstrip(".").split()[-1] for text in texts("wet", Kind.NEGATION)} <= {"no", "clearly"}
    assert all(
        "7 May 2023" in text and ("not" in text.lower() or "but" in text) for text in texts("group", Kind.NEGATION)
    )


def test_a_vague_answer_uses_the_questions_words_and_none_of_the_answers():
    options = AuditItem("city", "Is the capital Paris or Rome? Which city is the capital?", ("Paris",))
    made = [
        answer.text
        for seed in range(20)
        for answer in make_audit_answers([options], 20, seed=seed)
        if answer.kind is Kind.VAGUE
    ]
    assert made
    assert all("city" in text and "Paris" not in text for text in made)


@pytest.mark.parametrize(
    ("accepted", "other"),
    [("New York City", "New York"), ("1,000", "1000"), ("7 May 2023", "2023-05-07"), ("The Beatles", "beatles")],
)
def test_what_may_be_right_by_accident_is_no_wrong_answer(accepted, other):
    items = [AuditItem("one", "What is it?", (accepted,)), AuditItem("two", "And this?", (other,))]
    for seed in range(20):
        wrong = [one for one in make_audit_answers(items, 20, seed=seed) if one.kind is Kind.SPECIFIC]
        assert not [one for one in wrong if other in one.text and one.item_id == "one"]


def test_another_reference_to_the_same_question_is_no_wrong_answer():
    items = [
        AuditItem(str(n), "Name a primary colour", (colour,)) for n, colour in enumerate(["Red", "Blue", "Yellow"])
    ]
    assert not [one for one in make_audit_answers(items, 40) if one.kind is Kind.SPECIFIC]
