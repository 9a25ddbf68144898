"""Things told days and weeks apart, with when they happened: in which order, how long after one another, how long ago."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from random import Random
from typing import ClassVar

from themis.core.patterns import lazy_pattern
from themis.memory.actions import Ask, Grade, Say, Script, Wait
from themis.memory.examples import LAST_SHARE, TestExample
from themis.memory.phrasing import Phrasing, any_of
from themis.memory.reader import Reader
from themis.memory.scoring.lists import grade_order
from themis.memory.scoring.numbers import grade_number, remove_non_answers, to_figures
from themis.memory.scoring.words import find_correction, fold, shorten
from themis.memory.tests.kind import BuiltinTest, settle, whole_number
from themis.memory.tests.naming import PERSON, make_person

# What the user did, with what: the thing stands for the deed.
_DEEDS = {
    "planted": ("hedge", "vine", "rose bed", "willow"),
    "sold": ("piano", "caravan", "stamp album", "wardrobe"),
    "painted": ("fence", "shutters", "bench", "gate"),
    "repaired": ("canoe", "gramophone", "sledge", "barometer"),
    "bought": ("clarinet", "telescope", "typewriter", "tent"),
    "framed": ("poster", "map", "portrait", "diploma"),
    "auctioned": ("carpet", "chess set", "chandelier", "globe"),
    "donated": ("rocking chair", "aquarium", "sewing machine", "tool box"),
}
_LOOKS = (
    "walnut", "striped", "rusty", "tall", "Danish", "dented", "heirloom", "patched", "checkered", "lacquered", "crooked",
    "faded", "folding", "weathered", "hand-made", "moth-eaten", "miniature", "oversized",
    "antique", "battered", "borrowed", "creaking", "dusty", "engraved", "frayed", "gaudy", "hollow", "inherited", "knotted",
    "lopsided", "mossy", "narrow", "ornate", "pale", "quilted", "rickety", "speckled", "wobbly",
)  # fmt: skip
_THING = rf"(?:{any_of(_LOOKS)}) (?:{any_of(thing for things in _DEEDS.values() for thing in things)})"
_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_NUMBERS = ("zero", "one", "two", "three", "four", "five", "six")
# How long ago something was, in days, where that is said without the day's name.
_AGO = {
    "earlier today": 0, "yesterday": 1, "the day before yesterday": 2,
    **{f"{_NUMBERS[days]} days ago": days for days in range(2, 7)}, "a week ago": 7, "a week ago yesterday": 8,
}  # fmt: skip
_WHEN = any_of([*_AGO, *(f"on {day}" for day in _WEEKDAYS)])
_SLOTS = {
    "verb": any_of(_DEEDS), "thing": _THING, "when": _WHEN, "not_when": _WHEN, "who": PERSON, "other": _THING,
}  # fmt: skip
_DONE = Phrasing(
    "A little news: {when} I {verb} the {thing}.",
    "I {verb} the {thing} {when}.",
    "You will not guess what I did {when}: I {verb} the {thing}.",
    "It is done, I {verb} the {thing}, and that was {when}.",
    "{when}, after putting it off for months, I {verb} the {thing}.",
    "My back still aches, for {when} I {verb} the {thing}.",
    "It was {when}, not {not_when}, that I {verb} the {thing}[, as I told my sister|].",
    "[Everybody|My sister] asks about the {thing}: yes, I {verb} it, {when} to be exact.",
    "Thanks to a free afternoon {when} I {verb} the {thing} at last.",
    "The {thing} is off my list, since I {verb} it {when}.",
    **_SLOTS,
)
# What somebody else did, or what did not come about.
_NOT_DONE = Phrasing(
    "{who} {verb} the {other} {when}, but that was [no concern of mine|without me].",
    "I [meant|had hoped] to do something about the {other} {when}, but nothing came of it.",
    "The {other} can wait, I did nothing about it {when} either.",
    **_SLOTS,
)
_ORDER = Phrasing(
    "I have told you when I did something about each of these: {things}. In which order did I do it? Answer with a JSON list of "
    "these words, the earliest first.",
    "Put these into the order in which I did something about them, not the order in which I told you of it: {things}. Answer "
    "with a JSON list of these words, the earliest first.",
    things=rf"{_THING}(?:, {_THING})+",
)
_BETWEEN = Phrasing(
    "How many days after I {verb} the {thing} was it that I {later_verb} the {other}? Answer in days.",
    "How many days lie between the day on which I {verb} the {thing} and the day on which I {later_verb} the {other}? Answer in "
    "days.",
    later_verb=any_of(_DEEDS),
    **_SLOTS,
)
_SINCE = Phrasing(
    "How many days ago is it that I {verb} the {thing}? Answer in days.",
    "How many days have passed since I {verb} the {thing}? Answer in days.",
    **_SLOTS,
)
_ELSEWHERE_SHARE = 0.4


@dataclass(kw_only=True)
class TemporalOrder(BuiltinTest):
    """A sense of time.

    Scores: perfect 1, memoryless 0. A third each for the order of all deeds, for the days between two of them, and for the
    days since one of them. The order scores pairs in the right order minus pairs in the wrong one; days may be off by one
    or a tenth. Deeds are told with when they happened as seen from that moment (`on Tuesday`, `three days ago`), not always in
    the order in which they happened; when each was told is known from the virtual clock. Other people's deeds and plans that
    came to nothing are mentioned too. A random order of four scores a fifth of its third. About 35 tokens per deed.
    Interferes with no other test.
    """

    kind: ClassVar[str] = "temporal_order"
    name: ClassVar[str] = "Temporal Order"
    description: ClassVar[str] = "Events lie days and weeks apart; the agent must know their order and distance."

    events: int = whole_number(4, least=2, most=40)
    days_low: int = whole_number(2, least=1)
    days_high: int = whole_number(21, least=lambda test: test.days_low)

    def make_example(self, number: int, rng: Random) -> TestExample:
        deeds = [self._make_deed(rng) for _ in range(self.events)]
        days = [rng.randint(self.days_low, self.days_high) for _ in deeds]
        return TestExample(
            dataset=self,
            example_id=str(number),
            expected_responses=[f"{verb} the {thing}" for verb, thing in deeds],
            material={
                "deeds": deeds,
                "days": days,
                "between": rng.sample(range(self.events), 2),
                "since": rng.randrange(self.events),
                "others": [self._tell_of_another(rng) if rng.random() < _ELSEWHERE_SHARE else "" for _ in deeds],
                "luck": rng.randrange(2**32),
            },
        )

    def _make_deed(self, rng: Random) -> list[str]:
        """What was done, and to a thing that nobody else speaks of."""
        verb = rng.choice(tuple(_DEEDS))
        thing = self.world.make(rng, "thing", lambda rng: f"{rng.choice(_LOOKS)} {rng.choice(_DEEDS[verb])}")
        return [verb, thing]

    def _tell_of_another(self, rng: Random) -> str:
        verb, thing = self._make_deed(rng)
        return _NOT_DONE.say(
            rng, who=make_person(self.world, rng), verb=verb, other=thing, when=rng.choice(tuple(_AGO))
        )

    def every_answer(self, example: TestExample) -> list[object]:
        return [*(thing for _, thing in example.material["deeds"]), *map(str, range(100))]

    def play(self, example: TestExample) -> Script:
        asked = example.material
        deeds, luck = asked["deeds"], Random(str(asked["luck"]))
        days: list[date] = []
        for place, ((verb, thing), wait, other) in enumerate(
            zip(deeds, asked["days"], asked["others"], strict=True), start=1
        ):
            now = (yield Wait()).now
            when = _choose_moment(now, days, luck)
            days.append(_find_day(when, now))
            others = [moment for moment in _AGO if moment != when]
            false = luck.choice(others)
            if _find_day(false, now) == days[-1]:  # a day with two names is not denied by one of them
                false = next(moment for moment in others if _find_day(moment, now) != days[-1])
            said = _DONE.say(luck, verb=verb, thing=thing, when=when, not_when=false)
            yield Say(self.chat(luck, f"{said} {other}".strip()))
            yield Wait(time=timedelta(days=wait), until_share=place * LAST_SHARE / len(deeds))
        today = (yield Wait()).now.date()
        in_order = sorted(range(len(deeds)), key=days.__getitem__)
        things = [deeds[place][1] for place in in_order]
        order = yield Ask(_ORDER.say(luck, things=", ".join(sorted(things))), ideal=json.dumps(things))
        earlier, later = sorted(asked["between"], key=days.__getitem__)
        between, since = (days[later] - days[earlier]).days, (today - days[asked["since"]]).days
        distance = yield Ask(
            _BETWEEN.say(
                luck,
                verb=deeds[earlier][0],
                thing=deeds[earlier][1],
                later_verb=deeds[later][0],
                other=deeds[later][1],
            ),
            ideal=f"{between} days",
            needs=tuple(sorted((earlier, later))),
        )
        verb, thing = deeds[asked["since"]]
        age = yield Ask(_SINCE.say(luck, verb=verb, thing=thing), ideal=f"{since} days", needs=(asked["since"],))
        grades = [grade_order(order, things), grade_days(distance, between), grade_days(age, since)]
        replies = (order, distance, age)
        wanted = (things, f"{between} days", f"{since} days")
        yield Grade.mean((yield from settle([reply.message for reply in replies], replies, wanted, grades)))

    @classmethod
    def make_reader(cls) -> Reader:
        return _DeedReader()


def _choose_moment(now: datetime, taken: Sequence[date], luck: Random) -> str:
    """When a deed was done, as it is said now: on a day on which nothing else was."""
    # Of today's own name nobody knows which week is meant.
    moments = [*_AGO, *(f"on {day}" for place, day in enumerate(_WEEKDAYS) if place != now.weekday())]
    # Something can always have happened today: days pass before the next is told.
    return next(when for when in luck.sample(moments, len(moments)) if _find_day(when, now) not in taken)


def _find_day(when: str, now: datetime) -> date:
    """Which day is meant. A weekday is the last one before today."""
    ago = _AGO[when] if when in _AGO else (now.weekday() - _WEEKDAYS.index(when.removeprefix("on "))) % 7
    return (now - timedelta(days=ago)).date()


def grade_days(reply: str, days: int) -> Grade:
    """1 if the reply settles on this many days; weeks count as seven.

    Who says that it is roughly so may be off by one or a tenth. One day more or less may be another way of counting: no
    verdict.
    """
    if _GUESS.search(fold(reply)):
        return Grade(0.0, (f"expected {days} days, got a guess: {shorten(reply)}",))
    text = to_figures(reply)
    # When it was told of is not when it was done, unless the reply says nothing else.
    text = done if _PLAIN_DAYS.search(done := _TOLD_AGO.sub(" ", text)) else text
    # `13 days, i.e. nearly two weeks` gives days and explains them.
    plain = set(_PLAIN_DAYS.findall(remove_non_answers(text)))
    explained = _SPAN.sub(" ", text) if len(plain) == 1 and not find_correction(text) else _SPAN.sub(_to_days, text)
    roughly = _ROUGHLY.search(text) is not None or (not plain and _SPAN.search(text) is not None)
    grade = grade_number(explained, days, tolerance=max(1, days // 10) if roughly else 0, unit="days")
    if (
        not roughly
        and not grade.failed
        and not grade.score
        and grade_number(explained, days, tolerance=1, unit="days").score
    ):
        return Grade.failure(f"expected {days} days, got one more or less: {shorten(reply)}")
    return grade


_ROUGHLY = lazy_pattern(
    # `You told me about it` is no rough figure.
    r"\b(?:(?:about|around)(?! (?:it|that|this|them|the|your|my|his|her)\b)"
    r"|roughly|approximately|approx|some|almost|nearly|circa|ca|give or take|or so)\b|~|≈"
)


_GUESS = lazy_pattern(
    r"(?:n't (?:know|recall|remember)|\bno idea|n't told|\bnever told|\bnot told)\b.{0,80}\b(?:maybe|perhaps|guess|possibly)\b",
    re.DOTALL,
)
_TOLD_AGO = lazy_pattern(
    r"\b(?:told|mentioned|spoke|talked|heard)\b[^.!?;:\n\d]{0,40}\d{1,4} days? ago\b"
    r"(?:[,;]? (?:and )?(?:it|that|this)(?: (?:was|happened))? \d{1,3} days? (?:before|earlier)(?: that| then)?)?"
)
_PLAIN_DAYS = lazy_pattern(r"(?<!weeks and )(?<!week and )(?<![\w.])(\d{1,4}) days?\b(?! (?:a|per|each)\b)")
_SPAN = lazy_pattern(
    r"\b(\d{1,4}|an?|one) (minute|hour|week|fortnight|month|year)s?\b(?:,? and (?:(\d{1,2}|an?|one) days?|(a half))\b)?"
)
_DAYS = {"minute": 1 / 1440, "hour": 1 / 24, "week": 7, "fortnight": 14, "month": 30, "year": 365}


def _to_days(span: re.Match[str]) -> str:
    count, more = (int(figures) if figures.isdigit() else 1 for figures in (span[1], span[3] or "0"))
    return f"{(count + (0.5 if span[4] else 0.0)) * _DAYS[span[2]] + more:.0f} days"


class _DeedReader(Reader):
    """Remembers on which day each thing was seen to."""

    def __init__(self) -> None:
        self._days: dict[str, date] = {}

    def answer(self, message: str, now: datetime) -> str | None:
        for told in _DONE.read_all(message):
            self._days[told["thing"]] = _find_day(_to_moment(told["when"]), now)
        if (asked := _ORDER.read(message)) is not None:
            things = asked["things"].split(", ")
            known = [thing for thing in things if thing in self._days]
            return json.dumps(sorted(known, key=self._days.__getitem__))
        if (asked := _BETWEEN.read(message)) is not None:
            if asked["thing"] in self._days and asked["other"] in self._days:
                return f"{(self._days[asked['other']] - self._days[asked['thing']]).days} days"
        elif (asked := _SINCE.read(message)) is not None and asked["thing"] in self._days:
            return f"{(now.date() - self._days[asked['thing']]).days} days"
        return None


def _to_moment(when: str) -> str:
    """As it is written in the middle of a sentence."""
    return f"on {when[3:].capitalize()}" if when.lower().startswith("on ") else when.lower()
