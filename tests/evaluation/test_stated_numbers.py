"""Which number a reply states, and how numbers are written; the labelled replies of the family `number` have many more."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from themis.evaluation.extractors.number_words import find_number_words
from themis.evaluation.extractors.numbers import find_numbers
from themis.evaluation.extractors.stated_number import find_stated_number
from themis.evaluation.metrics.numeric import Numeric


def read(reply: str) -> str | None:
    number = find_stated_number(reply)
    return None if number is None else str(number)


@pytest.mark.parametrize(
    ("reply", "number"),
    [
        # A formal answer outranks any later mention, and a later formal one an earlier one.
        ("Answer: 12\n\nThere were 20, and 8 of them are red. 8 + 12 = 20.", "12"),
        ("\\boxed{144}, and not the 169 that 13 would give.", "144"),
        ("#### 18\n\nCheck: 18 / 2 = 9.", "18"),
        ('{"answer": 64, "steps": ["8 * 8 = 64"], "version": 2}', "64"),
        ("<answer>6</answer>\n\nNote that 6 is half of 12.", "6"),
        ("| Distance | 300 km |\n| **Answer** | **3.75 h** |\n| Speed | 80 km/h |", "3.75"),
        ("The answer is 12. Wait, two came later. The answer is 14.", "14"),
        ("\\boxed{25}\n\nNo, 9 x 3 is 27.\n\n\\boxed{27}", "27"),
        # What takes a formal answer back outranks it; what confirms it does not.
        ("Answer: 40\n\nI made a mistake: 6 x 7 is 42, so the total is 42.", "42"),
        ("Answer: 44. Wait, let me check: 44 / 4 = 11. Yes, that is correct.", "44"),
        # In an announcing sentence the number that it states.
        ("Final Answer: The largest $n$ with $n^2 < 1200$ is 34.", "34"),
        ("The answer to how many of the 20 are left after 5 were eaten is 15.", "15"),
        ("The answer is 3 + 12 = 15 apples on 2 days.", "15"),
        # What is rejected or supposed is never the answer.
        ("The answer is not 12 but 15.", "15"),
        ("It's 7 rather than 8.", "7"),
        ("Answer: 45\n\nIf there were 10 more, the answer would be 55.", "45"),
        # An answer that stands alone, a conclusion, the last sentence.
        ("18\n\nShe sells 9 eggs at $2 on 7 days.", "18"),
        ("They need **23** buses for the 910 pupils, 40 in each.", "23"),
        ("So 15 stickers are left. He had gotten the 20 stickers from 4 friends.", "15"),
        ("250 / 45 = 5.56, so we need 6 buses.", "6"),
        ("So she has 20. Then 20 + 5 = 25.", "25"),
        ("Of 250, 100 are broken.", "100"),
        # A calculation that leads back from the answer to what was known is a check, in any wording; one that goes on is not.
        ("3n - 4 = 50, so n = 18.\n3 · 18 - 4 = 54 - 4 = 50.", "18"),
        ("Le prix est de 45 €, moins 9 €. Elle paie donc 36 €. Et 36 + 9 = 45.", "36"),
        ("She has 20 coins and spends 5, so 15 are left. Then she finds 5 more: 15 + 5 = 20.", "20"),
        ("Each pays $18. With 5 friends that makes $90 in total, which matches the bill.", "18"),
        # A first paragraph is the answer where the text ends in what it follows from, and a given one where it is used.
        ("The probability is 1/3.\n\nThe other side is red with probability 2/3, leaving 1 − 2/3 for white.", "1/3"),
        ("The perimeter is 24 cm.\n\nA side has 24 / 4 = 6 cm, so the area is 6 × 6 = 36 cm².", "36"),
        # A fraction is exact and its decimals are not, but a division has its decimals for a result.
        ("x = 7/3 ≈ 2.33", "7/3"),
        ("Average = 25 / 3 ≈ 8.33", "8.33"),
        # In bold, and as a conclusion, words count as digits do.
        ("- Jeans: 2\n- Chinos: 2\n\nThat makes **four** outfits.", "4"),
        ("6 × 5 = 30 and 31 come. Therefore seven groups are needed.", "7"),
        ("5 × 5 = 25. So the two of them fit.", "25"),
        ("**Total:** **77** km over **3** days", "77"),
        ("They need 13 buses, the last of which carries 32 students.", "13"),
        # Nothing is stated.
        ("Use A = P(1 + r/n)^(nt), or n(n + 1)/2 for sums.", None),
        ("The problem says that there are 3 boxes, but not how many books, so the total cannot be determined.", None),
        ("16 x 7 = 112. Next we subtract what she eats, 3 x", None),
        ('{"answer": null, "seconds": 3}', None),
        ("", None),
    ],
)
def test_the_order_of_evidence(reply, number):
    assert read(reply) == number


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("1,234 and 12,34,567 and 3,50 EUR", ["1234", "1234567", "3.5"]),
        ("1.000,50 and 1.234", ["1000.5", "1234"]),  # the first shows what the dot of the second is
        ("1.234", ["1.234"]),
        ("1.234 or 1.2", ["1.234", "1.2"]),
        ("Antwort: 1.234 Stück", ["1234"]),
        ("1.234.567", ["1234567"]),
        ("0,125", ["0.125"]),
        ("1 000 000, 1\u00a0000, 1'234.5, 25\\,000, 36{,}288", ["1000000", "1000", "1234.5", "25000", "36288"]),
        ("2 1/2, 3½, 2\\frac{1}{3}, 1-3/4", ["2.5", "3.5", "7/3", "1.75"]),
        (
            "$5M, 3.5k, 2 lakh, 1.2 billion, 3 dozen, 2.5亿",
            ["5000000", "3500", "200000", "1200000000", "36", "250000000"],
        ),
        ("10^{-3}, 2 × 10⁻³, 1.2e-4", ["0.001", "0.002", "0.00012"]),
        ("−4, –4, －４, x = - 4", ["-4", "-4", "-4", "-4"]),
        ("٣٫٥, १२, １２８", ["3.5", "12", "128"]),
        ("on 2024-05-06 at 9:15, v1.2.3, GPT-4, H2O, m^-3, https://a.b/7", []),
        ("1. Start with 5\n2. Done", ["5"]),
    ],
)
def test_numbers_are_read_as_people_write_them(text, numbers):
    assert [str(number) for number in find_numbers(text)] == numbers


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("three hundred and forty-two", "342"),
        ("minus two and a half", "-2.5"),
        ("two thirds", "2/3"),
        ("half a million", "500000"),
        ("einundzwanzig", "21"),
        ("quatre-vingt-dix", "90"),
        ("veintitrés", "23"),
        ("ventuno", "21"),
        ("двадцать три", "23"),
        ("二百五十", "250"),
        ("四分之三", "0.75"),
    ],
)
def test_numbers_in_words_are_read_in_the_languages_of_the_world(text, number):
    assert [str(found) for found in find_number_words(text)] == [number]
    assert read(f"The answer is {text}.") == number


@given(st.integers(-(10**12), 10**12), st.integers(0, 3))
def test_every_way_to_group_digits_is_read_back(whole, places):
    value = Fraction(whole, 10**places)
    plain = f"{abs(whole) // 10**places:,}" + (f".{abs(whole) % 10**places:0{places}d}" if places else "")
    sign = "-" if value < 0 else ""
    swap = str.maketrans(",.", ".,")

    for written in (plain, plain.replace(",", "'"), plain.replace(",", "\u202f"), plain.replace(",", "{,}")):
        assert read(f"Answer: {sign}{written}") == read(f"\\boxed{{{sign}{written}}}")
        assert find_stated_number(f"Answer: {sign}{written}").value == value
    if plain.count(",") > 1 or ("," in plain and places):
        assert find_stated_number(f"Answer: {sign}{plain.translate(swap)}").value == value


@given(st.integers(-999, 999), st.lists(st.integers(0, 999), min_size=1, max_size=5))
def test_nothing_said_in_passing_outranks_a_formal_answer(answer, others):
    passing = " ".join(f"There were {other} of them on day {other}, or {other} + 1 in all." for other in others)

    assert read(f"{passing}\n\nAnswer: {answer}\n\n{passing}") == str(answer)
    assert read(f"{passing} \\boxed{{{answer}}} {passing}") == str(answer)


HOSTILE = [
    "answer is ", "Answer:\n", "Answer: x\n", "\\boxed{", "**5** ", "**5**\n", "so 5 ", "5; ", "(5) ", "5, which ", "5 = ", "1 ",
    "1/", "1.", "1:1:", "~~", "__5", " ", "```python\n", "one ", "twenty-", "\\frac{", "Question: 5\n", "5 is ", "wait 5 ", "½",
    "so x = 7/3 ≈ 2.3 ", "**two** ", "5, which matches ", "So 5.\n5 + 5 = 10\n", "5 of which ", "n + 1 ", ", since 5 ",
    "It is 5.\n\n",
]  # fmt: skip


@pytest.mark.parametrize("piece", HOSTILE)
def test_a_lot_of_anything_is_read_in_one_pass(piece):
    """Would not end if the time went with the square of the text."""
    score = Numeric().compute(prediction=piece * (8_000 // len(piece)), references=["-1"])

    assert score.value == 0.0
