"""What is counted while it is told: a shopping list that grows and shrinks, reports of a workshop to be added up."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from random import Random
from typing import ClassVar

from themis.memory.actions import Grade, Judgement
from themis.memory.examples import TestExample
from themis.memory.phrasing import Phrasing, any_of
from themis.memory.reader import Reader
from themis.memory.scoring.claims import remove_guesses, weigh_claim
from themis.memory.scoring.lists import grade_quantities
from themis.memory.scoring.numbers import grade_number, parse_count, parse_unit
from themis.memory.tests.kind import BuiltinTest, settle, whole_number
from themis.memory.tests.word_lists import MONTHS, VILLAGES

_NUMBERS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
_COUNT = rf"\d+|{any_of(_NUMBERS)}"
_TOWN = r"[A-Z]\w+"


def _write_count(rng: Random, count: int) -> str:
    """In words more often than in figures."""
    return _NUMBERS[count - 1] if count <= len(_NUMBERS) and rng.random() < 0.7 else str(count)


def _join(parts: Sequence[str]) -> str:
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


# --- a shopping list --------------------------------------------------------------------------------------------------

# No item is part of another's name.
GOODS = (
    "apple", "aubergine", "bar of chocolate", "battery", "bottle of olive oil", "box of matches", "bread roll", "bunch of leeks",
    "candle", "carton of eggs", "cauliflower", "coconut", "cucumber", "bag of flour", "envelope", "jar of honey",
    "jar of mustard",
    "lemon", "light bulb", "loaf of rye bread", "mango", "melon", "notebook", "onion", "packet of rice", "packet of tea", "pear",
    "pencil", "pineapple", "pumpkin", "roll of tape", "sponge", "stick of butter", "tea towel", "tin of beans", "tin of sardines",
    "toothbrush", "tube of glue", "turnip",
)  # fmt: skip


def to_plural(item: str) -> str:
    """More than one of a thing.

    >>> to_plural("loaf of rye bread"), to_plural("battery"), to_plural("toothbrush")
    ('loaves of rye bread', 'batteries', 'toothbrushes')
    """
    noun, of, rest = item.partition(" of ")
    if noun.endswith("y"):
        noun = f"{noun[:-1]}ies"
    elif noun.endswith("af"):
        noun = f"{noun[:-1]}ves"
    else:
        noun += "es" if noun.endswith(("x", "s", "sh", "ch")) else "s"
    return noun + of + rest


_BY_NUMBER = {form: item for item in GOODS for form in (item, to_plural(item))}
_GOODS_SLOTS = {"count": _COUNT, "former": _COUNT, "item": any_of(_BY_NUMBER), "town": _TOWN}
_ADD = Phrasing(
    "[Put|Write] {count} {item} on my shopping list[, please|].",
    "I need {count} {item}[ more|] [from the shop|from town]; add that to the shopping list.",
    "For the shopping list: {count} {item}.",
    "We are [out of|short of] {item}, so the shopping list wants {count} [more|of them added].",
    "[Next time I go to the shop|When I go shopping] I must bring {count} {item}, note that on the list.",
    "The list for the shop [grows again|gets longer]: {count} {item} [on top|more], [I fear|alas].",
    "Could you [jot down|enter] {count} {item} among the things I have to buy?",
    "[My guests|The neighbours' children] [will want|have asked for] {count} {item}, so [on the shopping list with "
    "them|list them for the shop].",
    "[Somebody|The cat] has ruined our {item}; [new ones|replacements] go on the shopping list, {count} in number.",
    "Remind me at the shop of {count} {item} besides what is listed already.",
    "Shopping again: [do not let me forget|I am not to come home without] {count} {item}, on top of the rest of the list.",
    **_GOODS_SLOTS,
)
_REMOVE = Phrasing(
    "Take {count} {item} off my shopping list[ again|].",
    "I found {count} {item} at home, so strike [that many|as many] from the shopping list.",
    "[My sister|The woman upstairs] has given me {count} {item}: [so much less|that much less] to buy from the list.",
    "The shopping list can do without {count} {item}[, as it turns out|].",
    "[There was|I came past] a [market|stall] and I bought {count} {item} there already; cross as many off the shopping list.",
    **_GOODS_SLOTS,
)
_CORRECT = Phrasing(
    "[About the shopping list|The list again]: not {former} {item}, as I said, but {count} in all.",
    "I [misspoke|was wrong] about the shopping list, where it says {former} {item} it should say {count}.",
    "Make it {count} {item} altogether on the shopping list, instead of {former}.",
    **_GOODS_SLOTS,
)
_RECIPE = Phrasing(
    "A proper {town} hamper [takes|wants] {count} {item}[, my aunt always said|].",
    "[The leaflet|The catalogue] asks for {count} {item} to make up the {town} hamper.",
    **_GOODS_SLOTS,
)
_ADD_RECIPE = Phrasing(
    "[I am going to make up|On Sunday I will make up] that {town} hamper after all: put what it needs on my "
    "shopping list.",
    "What I told you that the {town} hamper needs goes on the shopping list as well.",
    **_GOODS_SLOTS,
)
_OTHER_GOODS = Phrasing(
    "My neighbour has {count} {item} on a list of his own, he says.",
    "I [nearly|almost] [asked for|wrote down] {count} {item} as well, but [we have enough|there is no need].",
    "The shop [had|was selling] {count} {item} for the price of one, [which tempted nobody|and still I passed by].",
    "[Yesterday|Last week] I [got through|used up] {count} {item} [without noticing|in one go].",
    **_GOODS_SLOTS,
)
_ASK_LIST = Phrasing(
    "What is on my shopping list[ now|]? Answer with a JSON list of objects with the fields `item` and `quantity` (a number).",
    "[Read|Give] me my shopping list as it [stands|is] now. Answer with a JSON list of objects with the fields `item` and "
    "`quantity` (a number).",
    "What do I have to buy, by the shopping list, and how much of each? Answer with a JSON list of objects with the fields "
    "`item` and "
    "`quantity` (a number).",
)


@dataclass(kw_only=True)
class Shopping(BuiltinTest):
    """Keeping count while a list changes.

    Scores: perfect 1, memoryless 0. A third for the items found, a third for their quantities, a third for nothing else;
    see `grade_quantities`. The answer is kept by the generator as it writes the statements; the list is never empty at
    the end. Some changes correct an earlier one or ask for what a recipe of an earlier message needs; goods that are not
    on the list are mentioned too. About 30 tokens per change. Interferes with no other test.
    """

    kind: ClassVar[str] = "shopping"
    name: ClassVar[str] = "Shopping"
    description: ClassVar[str] = "A shopping list changes step by step; the agent must know what is on it."
    reset_message: ClassVar[str] = "I have done my shopping: please forget the whole shopping list."
    answers: ClassVar[Sequence[object]] = tuple(
        {"item": item, "quantity": quantity} for item in GOODS for quantity in (1, 2, 3)
    )

    item_changes: int = whole_number(3, least=1)

    def make_example(self, number: int, rng: Random) -> TestExample:
        listed: dict[str, int] = {}
        lines: list[str] = []
        cooked_at = rng.randrange(1, self.item_changes) if self.item_changes > 2 and rng.random() < 0.4 else None
        town = "" if cooked_at is None else self.world.draw(rng, "village", VILLAGES)
        recipe = (town, rng.choice(GOODS), rng.randint(1, 4))
        for change in range(self.item_changes):
            if change == cooked_at:
                said = _change_list(listed, rng, recipe=recipe)
            else:
                said = _change_list(listed, rng)
            if cooked_at is not None and change == cooked_at - 1:
                said = f"{said} {_RECIPE.say(rng, town=town, **_goods(rng, *recipe[1:]))}"
            if rng.random() < 0.3:
                other = _OTHER_GOODS.say(rng, **_goods(rng, rng.choice(GOODS), rng.randint(2, 6)))
                said = " ".join(rng.sample((said, other), 2))
            lines.append(self.chat(rng, said))
        expected = [[item, count] for item, count in listed.items()]
        return self.tell_and_ask(number, lines, [_ASK_LIST.say(rng)], expected)

    def ideal_answers(self, example: TestExample) -> list[str]:
        return [_write_list(example.expected_responses)]

    def evaluate(
        self, questions: Sequence[str], responses: Sequence[str], expected: Sequence[tuple[str, int]]
    ) -> Judgement:
        grades = [grade_quantities(responses[0], expected)]
        return Grade.mean((yield from settle(questions, responses, [_write_list(expected)], grades)))

    @classmethod
    def make_reader(cls) -> Reader:
        return _ShoppingReader()


def _goods(rng: Random, item: str, count: int) -> dict[str, str]:
    return {"count": _write_count(rng, count), "item": item if count == 1 else to_plural(item)}


def _change_list(listed: dict[str, int], rng: Random, recipe: tuple[str, str, int] | None = None) -> str:
    """One change of the list and the sentence that tells of it; the last thing on the list is never struck off."""
    if recipe is not None:
        town, item, count = recipe
        listed[item] = listed.get(item, 0) + count
        return _ADD_RECIPE.say(rng, town=town)
    chance = rng.random()
    if listed and chance < 0.2:
        item = rng.choice(list(listed))
        former = listed[item]
        listed[item] = rng.choice([count for count in range(1, 7) if count != former])
        said = _goods(rng, item, listed[item])
        # The noun stands with the former count in some of the sentences, so neither is one.
        if min(former, listed[item]) > 1:
            return _CORRECT.say(rng, former=_write_count(rng, former), **said)
        listed[item] = former
    if sum(listed.values()) > 1 and chance < 0.45:
        item = rng.choice(list(listed))
        count = rng.randint(1, min(listed[item], sum(listed.values()) - 1))
        listed[item] -= count
        if not listed[item]:
            del listed[item]
        return _REMOVE.say(rng, **_goods(rng, item, count))
    item, count = rng.choice(GOODS), rng.randint(2, 4)
    listed[item] = listed.get(item, 0) + count
    return _ADD.say(rng, **_goods(rng, item, count))


def _write_list(entries: Iterable[Sequence[object]]) -> str:
    return json.dumps([{"item": item, "quantity": quantity} for item, quantity in entries])


class _ShoppingReader(Reader):
    def __init__(self) -> None:
        self._listed: dict[str, int] = {}
        self._recipes: dict[str, dict[str, str]] = {}

    def answer(self, message: str, now: datetime) -> str | None:
        for recipe in _RECIPE.read_all(message):
            self._recipes[recipe["town"]] = recipe
        if message == Shopping.reset_message:
            self._listed.clear()
        if added := _ADD.read(message):
            self._change(added, 1)
        elif (wanted := _ADD_RECIPE.read(message)) and wanted["town"] in self._recipes:
            self._change(self._recipes[wanted["town"]], 1)
        elif removed := _REMOVE.read(message):
            self._change(removed, -1)
        elif corrected := _CORRECT.read(message):
            self._listed[_BY_NUMBER[corrected["item"]]] = parse_count(corrected["count"]) or 0
        return _write_list(self._listed.items()) if _ASK_LIST.matches(message) else None

    def _change(self, told: dict[str, str], sign: int) -> None:
        item = _BY_NUMBER[told["item"]]
        count = self._listed.pop(item, 0) + sign * (parse_count(told["count"]) or 0)
        if count > 0:
            self._listed[item] = count


# --- reports of a workshop --------------------------------------------------------------------------------------------

# What a workshop repairs.
REPAIRS = (
    "accordions", "barometers", "bicycles", "cameras", "clocks", "kettles", "lanterns", "mandolins", "prams", "saddles",
    "sewing machines", "suitcases", "telescopes", "tents", "typewriters", "umbrellas",
)  # fmt: skip
_REPAIRED = rf"(?:(?:{_COUNT}) (?:{any_of(REPAIRS)})(?:, | and |))+"
_ITEM = Phrasing("{count} {item}", count=_COUNT, item=any_of(REPAIRS))
_REPORT_SLOTS = {
    "town": _TOWN,
    "date": rf"\d{{1,2}} (?:{any_of(MONTHS)})",
    "repaired": _REPAIRED,
    "count": _COUNT,
    "former": _COUNT,
    "item": any_of(REPAIRS),
}
_REPORT = Phrasing(
    "Report from the {town} workshop for {date}: repaired {repaired}.",
    "On {date} the {town} workshop [repaired|put right] {repaired}.",
    "{date} in the {town} workshop: {repaired} [mended|done], [nothing else|no more than that].",
    "The people of the {town} workshop [tell me|report] that {repaired} left their hands on {date}.",
    "I have the {town} workshop's report of {date} before me: {repaired} repaired.",
    "[A good day|Not a bad day] in the {town} workshop, {date}, with {repaired} [brought back to life|made as good as new].",
    "What the {town} workshop repaired on {date} was {repaired}.",
    "{repaired} were collected, repaired, from the {town} workshop on {date}.",
    "For {date} the book of the {town} workshop [lists|shows] {repaired} as repaired.",
    "The {town} workshop did {repaired} on {date}, [and everybody went home early|says its foreman].",
    **_REPORT_SLOTS,
)
_REPORT_ERROR = Phrasing(
    "My report of {date} from the {town} workshop was wrong: [they repaired {count} {item}, not {former}|not {former} {item} "
    "were repaired but {count}].",
    "[Correction|One more thing]: in the {town} workshop it was {count} {item} on {date}, not {former}, as I told you.",
    **_REPORT_SLOTS,
)
_NOT_REPAIRED = Phrasing(
    "The {town} workshop [expects|hopes for] {repaired} [next month|in the new year], but that is [some way off|still to come].",
    "{repaired} [were turned away|had to wait] at the {town} workshop, [for want of parts|for lack of time].",
    **_REPORT_SLOTS,
)
_ASK_SUM = Phrasing(
    "How many {item} were repaired, all the reports that I gave you from the {town} workshop taken together? Answer with the "
    "number "
    "only.",
    "Over all my reports from the {town} workshop: what is the total number of {item} that were repaired? Answer with the "
    "number only.",
    "If you add up every report from the {town} workshop, how many {item} were repaired? Answer with the number only.",
    **_REPORT_SLOTS,
)
_ASK_COUNT = Phrasing(
    "In how many of my reports from the {town} workshop were there any {item} repaired? Answer with the number only.",
    "On how many of the days that I reported on were {item} repaired in the {town} workshop? Answer with the number only.",
    "How many of the reports from the {town} workshop list {item} as repaired? Answer with the number only.",
    **_REPORT_SLOTS,
)
_ASK_MOST = Phrasing(
    "What did the {town} workshop repair most of, all its reports taken together? Answer with the name of the thing only.",
    "Which thing comes out on top at the {town} workshop when the numbers of all its reports are added up? Answer with the "
    "name of the "
    "thing only.",
    **_REPORT_SLOTS,
)


@dataclass(kw_only=True)
class Aggregation(BuiltinTest):
    """Putting together what was never said together.

    Scores: perfect 1, memoryless 0. A third each for a sum over all reports, for the number of reports that speak of a
    thing, and for what was repaired most often. All are computed from the reports of one workshop, one of which may be
    corrected later; the last answer is unique. What another workshop with a similar name reports, and what is only
    expected, does not count. One wrong or forgotten report makes an answer wrong. About 35 tokens per report. Interferes
    with no other test: no other one speaks of these workshops.
    """

    kind: ClassVar[str] = "aggregation"
    name: ClassVar[str] = "Aggregation"
    description: ClassVar[str] = "The agent must add up and count over reports that lie far apart."
    answers: ClassVar[Sequence[str]] = (*map(str, range(100)), *REPAIRS)

    sessions: int = whole_number(5, least=3, most=200)

    def make_example(self, number: int, rng: Random) -> TestExample:
        town, other_town = self.world.look_alikes(rng, "village", VILLAGES, 2)
        reports = _draw_reports(rng, self.sessions)
        kinds = sorted({kind for report in reports for kind in report})
        lines: list[str] = []
        told_in: dict[str, list[int]] = {kind: [] for kind in kinds}
        wrong = rng.randrange(self.sessions) if rng.random() < 0.5 else None
        for place, report in enumerate(reports):
            said_report = dict(report)
            if place == wrong:
                corrected = rng.choice(list(report))
                said_report[corrected] = report[corrected] % 9 + 2
            said = _REPORT.say(rng, town=town, date=_date_of(place), repaired=_write_repaired(rng, said_report))
            if rng.random() < 0.3:
                said = " ".join(rng.sample((said, self._tell_other(rng, town, other_town, kinds)), 2))
            for kind in report:
                told_in[kind].append(len(lines))
            lines.append(self.chat(rng, said))
        if wrong is not None:
            told_in[corrected].append(len(lines))
            counts = (reports[wrong][corrected], reports[wrong][corrected] % 9 + 2)
            count, former = (_write_count(rng, one) for one in counts)
            said = _REPORT_ERROR.say(rng, town=town, date=_date_of(wrong), count=count, former=former, item=corrected)
            lines.append(self.chat(rng, said))
        return self._ask(number, rng, town, reports, lines, told_in)

    def _ask(
        self,
        number: int,
        rng: Random,
        town: str,
        reports: list[dict[str, int]],
        lines: list[str],
        told_in: dict[str, list[int]],
    ) -> TestExample:
        totals = {kind: sum(report.get(kind, 0) for report in reports) for kind in told_in}
        summed, counted = rng.sample(sorted(told_in), 2)
        questions = [
            _ASK_SUM.say(rng, item=summed, town=town),
            _ASK_COUNT.say(rng, item=counted, town=town),
            _ASK_MOST.say(rng, town=town),
        ]
        seen = sum(counted in report for report in reports)
        expected = [str(totals[summed]), str(seen), max(totals, key=lambda kind: totals[kind])]
        every_line = sorted({line for told in told_in.values() for line in told})
        reported = [line for line in told_in[counted] if line < self.sessions]
        return self.tell_and_ask(number, lines, questions, expected, needed=[told_in[summed], reported, every_line])

    def _tell_other(self, rng: Random, town: str, other_town: str, kinds: Sequence[str]) -> str:
        repaired = _write_repaired(rng, {kind: rng.randint(2, 9) for kind in rng.sample(kinds, rng.randint(1, 2))})
        if rng.random() < 0.5:
            return _NOT_REPAIRED.say(rng, town=town, repaired=repaired)
        return _REPORT.say(rng, town=other_town, date=_date_of(rng.randrange(self.sessions)), repaired=repaired)

    def evaluate(self, questions: Sequence[str], responses: Sequence[str], expected: Sequence[str]) -> Judgement:
        things = [answer for answer in self.answers if not str(answer).isdigit()]
        grades = [
            grade_number(remove_guesses(responses[0]), int(expected[0]), unit=parse_unit(questions[0])),
            grade_number(remove_guesses(responses[1]), int(expected[1]), unit=parse_unit(questions[1])),
            weigh_claim(responses[2], expected[2], things),
        ]
        return Grade.mean((yield from settle(questions, responses, expected, grades)))

    @classmethod
    def make_reader(cls) -> Reader:
        return _ReportsReader()


def _draw_reports(rng: Random, sessions: int) -> list[dict[str, int]]:
    """Reports of three kinds of things, of which one comes out on top."""
    while True:
        kinds = rng.sample(REPAIRS, 3)
        reports = [{kind: rng.randint(2, 9) for kind in rng.sample(kinds, rng.randint(1, 3))} for _ in range(sessions)]
        ranking = sorted(sum(report.get(kind, 0) for report in reports) for kind in kinds)
        # A count of one is often written as the pronoun, and a tie has no answer.
        if min(sum(kind in report for report in reports) for kind in kinds) > 1 and ranking[-1] > ranking[-2]:
            return reports


def _date_of(report: int) -> str:
    return f"{report % 25 + 2} {MONTHS[report // 25 + 2]}"


def _write_repaired(rng: Random, report: dict[str, int]) -> str:
    return _join([f"{_write_count(rng, count)} {kind}" for kind, count in report.items()])


@dataclass
class _Workshop:
    """What was reported by date, and what was put right afterwards by date and thing."""

    reports: dict[str, dict[str, int]] = field(default_factory=dict)
    errors: dict[tuple[str, str], int] = field(default_factory=dict)

    def list_counts(self, item: str) -> list[int]:
        return [self.errors.get((day, item), report[item]) for day, report in self.reports.items() if item in report]


class _ReportsReader(Reader):
    def __init__(self) -> None:
        self._workshops: dict[str, _Workshop] = {}

    def answer(self, message: str, now: datetime) -> str | None:
        for told in _REPORT.read_all(message):
            report = self._workshop(told).reports.setdefault(told["date"], {})
            for repaired in told["repaired"].replace(" and ", ", ").split(", "):
                if found := _ITEM.read(repaired):
                    report[found["item"]] = parse_count(found["count"]) or 0
        for error in _REPORT_ERROR.read_all(message):
            self._workshop(error).errors[error["date"], error["item"]] = parse_count(error["count"]) or 0
        if asked := _ASK_SUM.read(message):
            return str(sum(self._workshop(asked).list_counts(asked["item"])))
        if asked := _ASK_COUNT.read(message):
            return str(len(self._workshop(asked).list_counts(asked["item"])))
        if asked := _ASK_MOST.read(message):
            return max(REPAIRS, key=lambda item: sum(self._workshop(asked).list_counts(item)))
        return None

    def _workshop(self, told: dict[str, str]) -> _Workshop:
        return self._workshops.setdefault(told["town"], _Workshop())
