"""Sessions on different days, each with a greeting, a date and something of its own: which was when must be known."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from random import Random
from typing import ClassVar

from themis.core.patterns import lazy_pattern
from themis.memory.actions import Ask, Grade, Say, Script, Wait
from themis.memory.examples import LAST_SHARE, TestExample
from themis.memory.phrasing import Phrasing, any_of
from themis.memory.reader import Reader
from themis.memory.scoring.claims import drop_others, grade_retelling, weigh_claim
from themis.memory.scoring.languages import translate
from themis.memory.scoring.lists import grade_order
from themis.memory.scoring.words import find_phrases
from themis.memory.tests.kind import BuiltinTest, settle, whole_number
from themis.memory.tests.word_lists import MONTHS

WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
# What a piece of work is about, and what was settled.
_PROJECTS = (
    "almanac", "anthology", "atlas", "cantata", "cookery book", "documentary", "exhibition", "fountain", "glossary",
    "greenhouse", "herb garden", "kite", "mosaic", "mural", "organ", "pavilion", "puppet play", "quilt", "regatta",
    "sundial", "tapestry", "travel guide", "tree house", "weather station",
)  # fmt: skip
MATTERS = (
    "the binding", "the budget", "the caterer", "the colour scheme", "the contract", "the copyright", "the drainage",
    "the fire exits", "the foreword", "the glue", "the handrail", "the insurance", "the invitations", "the lettering",
    "the lighting", "the measurements", "the opening hours", "the permit", "the photographs", "the pulleys",
    "the rehearsal plan", "the seating", "the spare parts", "the sponsors", "the ticket price", "the timetable",
    "the translation", "the transport", "the varnish", "the ventilation",
)  # fmt: skip
_PROJECT = rf"\w+ (?:{any_of(_PROJECTS)})"
_DATE = rf"\d{{1,2}} (?:{'|'.join(MONTHS)})"
_SLOTS = {
    "day": any_of(WEEKDAYS), "date": _DATE, "project": _PROJECT, "matter": any_of(MATTERS),
    "plan": any_of(MATTERS),
}  # fmt: skip
_OPENING = Phrasing(
    "[Good morning|Hello again|Good day]! [It is|Today is] {day}, {date}, and this is our session about the {project}.",
    "[Hello|Good evening|Hi]! {day}, {date}: time for our session about the {project}.",
    "[Here I am|There you are], as agreed, on {day}, {date}, for another session about the {project}.",
    **_SLOTS,
)
_SETTLED = Phrasing(
    "Today we [settled|decided on|dealt with] {matter}, and nothing else.",
    "All we [talked|argued] about was {matter}, but that is done now.",
    "I wanted to go through {plan}, but in the end we only got to {matter}.",
    "The whole session went on {matter}; {plan} [must wait|will have to wait].",
    "It took an hour, but now we are done with {matter}.",
    "We did not get round to {plan}: it was all about {matter}.",
    "What we [cleared up|sorted out] today is {matter}.",
    "[Thank you|Thanks] for your patience with {matter}, which was all that we managed today.",
    "So the matter of {matter} is closed, and {plan} will come another time.",
    "Let the minutes say that this session was about {matter} only.",
    **_SLOTS,
)
_ASK_WHICH = Phrasing(
    "What did we deal with in {when} session about the {project}? Name that one matter only.",
    "Which matter was it that we settled in {when} session about the {project}? Name that one matter only.",
    when=rf"today's|yesterday's|last \w+'s|the {_DATE}", project=_PROJECT,
)  # fmt: skip
_ASK_DAY = Phrasing(
    "On which day of the week did we deal with {matter} in our sessions about the {project}? Answer with the day only.",
    "Which day of the week was it when our session about the {project} was about {matter}? Answer with the day only.",
    **_SLOTS,
)
_ASK_ORDER = Phrasing(
    "In which order did our sessions about the {project} deal with these: {matters}? Answer with a JSON list, the earliest "
    "first.",
    project=_PROJECT, matters=r"[\w, ]+",
)  # fmt: skip


@dataclass(kw_only=True)
class Sessions(BuiltinTest):
    """Knowing which session was when.

    Scores: perfect 1, memoryless 0. A third each for what a session on a certain day was about, for the day on which a
    matter was dealt with, and for the order of all sessions. Each session opens with its weekday and date, which are those
    of the virtual clock, and is about one matter, while others are put off. All days of the week are different. About 80
    tokens per session. Interferes with no other test: its project is its own.
    """

    kind: ClassVar[str] = "sessions"
    name: ClassVar[str] = "Sessions"
    description: ClassVar[str] = "Sessions take place on different days; the agent must know which was when."
    interferes_with_itself: ClassVar[bool] = False
    answers: ClassVar[Sequence[str]] = (*MATTERS, *WEEKDAYS)

    sessions: int = whole_number(3, least=2, most=6)

    def make_example(self, number: int, rng: Random) -> TestExample:
        matters = rng.sample(MATTERS, self.sessions + 2)
        told = [
            {
                "opening": rng.randrange(len(_OPENING)),
                "said": self.chat(
                    rng, _SETTLED.say(rng, matter=matters[place], plan=rng.choice(matters[self.sessions :]))
                ),
            }
            for place in range(self.sessions)
        ]
        return TestExample(
            dataset=self,
            example_id=str(number),
            expected_responses=[matters[: self.sessions]],
            material={
                "project": f"{self.world.towns(rng, 1)[0]} {rng.choice(_PROJECTS)}",
                "told": told,
                "which": rng.randrange(self.sessions),
                "day_of": rng.randrange(self.sessions),
                "ask": [rng.randrange(2), rng.randrange(2)],
            },
        )

    def play(self, example: TestExample) -> Script:
        matters, asked = example.expected_responses[0], example.material
        project, rng = asked["project"], self.random("say", example.example_id)
        days: list[datetime] = []
        for place, session in enumerate(asked["told"]):
            now = (yield Wait()).now
            opening = _OPENING.render(session["opening"], rng, project=project, **_name_date(now))
            yield Say(f"{opening} {session['said']}")
            days.append(now)
            wait = timedelta(days=1) if place + 1 < len(matters) else timedelta(hours=1)
            yield Wait(time=wait, until_share=(place + 1) * LAST_SHARE / len(matters))
        place = asked["which"]
        now = (yield Wait()).now
        when = _name_session(days[place], now)
        about = yield Ask(
            _ASK_WHICH.render(asked["ask"][0], rng, when=when, project=project), ideal=matters[place], needs=[place]
        )
        place = asked["day_of"]
        day = WEEKDAYS[days[place].weekday()]
        on = yield Ask(
            _ASK_DAY.render(asked["ask"][1], rng, matter=matters[place], project=project), ideal=day, needs=[place]
        )
        order = yield Ask(
            _ASK_ORDER.say(rng, project=project, matters=", ".join(sorted(matters))), ideal=json.dumps(matters)
        )
        matter = matters[asked["which"]]
        about_when = drop_others(about, when, (*WEEKDAYS, "today", "yesterday"))
        on_matter = drop_others(on, _strip(matters[place]), map(_strip, MATTERS))
        grades = [grade_matter(about_when, matter), grade_weekday(on_matter, day), grade_matters(order, matters)]
        replies = (about, on, order)
        yield Grade.mean(
            (yield from settle([reply.message for reply in replies], replies, [matter, day, matters], grades))
        )

    @classmethod
    def make_reader(cls) -> Reader:
        return _SessionsReader()


def grade_matter(reply: str, matter: str) -> Grade:
    """1 if the reply names the matter and no other, with or without its article."""
    retold = grade_retelling(reply, _SETTLED, slot="matter")
    stated = _PUT_OFF.sub("", reply)
    return retold or weigh_claim(stated if stated.strip() else reply, _strip(matter), map(_strip, MATTERS))


# What was not dealt with in the session.
_PUT_OFF = lazy_pattern(
    r"[^.;:!?,()\n–—]{1,60}\b(?:put off|postponed|deferred|had to wait|must wait|waits|another (?:session|time|day|week))\b"
    r"[^.;!?()\n]{0,60}"
)


def grade_weekday(reply: str, day: str) -> Grade:
    """1 if the reply names the day of the week and no other."""
    reply = reply if find_phrases(reply, WEEKDAYS) else _FOREIGN_DAY.sub(_translate_day, reply)
    stated = _SHORT_DAY.sub(lambda short: _DAYS_BY_LETTERS[short[0].strip(" .*").lower()[:3]], reply)
    return grade_retelling(reply, _OPENING, slot="day") or weigh_claim(stated, day, WEEKDAYS)


_FOREIGN_DAY = lazy_pattern(r"[^\W\d_]{5,10}")
_DAYS_BY_LETTERS = {day[:3].lower(): day for day in WEEKDAYS}
_SHORT_DAY = lazy_pattern(
    r"\b(Mon|Tues?|Wed|Thu(?:rs?)?|Fri|Sat|Sun)\b\.?|\A\W*(mon|tues?|wed|thu(?:rs?)?|fri|sat|sun)(?=\W*\Z)"
)


def _translate_day(word: re.Match[str]) -> str:
    english = translate(word[0]).capitalize()
    return english if english in WEEKDAYS else word[0]


def grade_matters(reply: str, matters: Sequence[str]) -> Grade:
    """The order of matters, by its pairs, with or without their articles."""
    return grade_order(reply, matters)


def _name_date(moment: datetime) -> dict[str, str]:
    return {"day": WEEKDAYS[moment.weekday()], "date": f"{moment.day} {MONTHS[moment.month - 1]}"}


def _name_session(held: datetime, now: datetime) -> str:
    """A session as one speaks of it: by how long ago it was, or by its date where that would be unclear."""
    days = (now.date() - held.date()).days
    if days < 2:
        return ("today's", "yesterday's")[days]
    return f"last {WEEKDAYS[held.weekday()]}'s" if days < 7 else f"the {_name_date(held)['date']}"


def _strip(matter: str) -> str:
    return matter.removeprefix("the ")


class _SessionsReader(Reader):
    """Writes down for each project on which date what was dealt with."""

    def __init__(self) -> None:
        self._minutes: dict[str, list[tuple[datetime, str]]] = {}

    def answer(self, message: str, now: datetime) -> str | None:
        opened, settled = _OPENING.read(message), _SETTLED.read(message)
        if opened and settled:
            held = _to_date(opened["date"], now)
            self._minutes.setdefault(opened["project"], []).append((held, settled["matter"]))
        if asked := _ASK_WHICH.read(message):
            named = {_name_session(held, now): matter for held, matter in self._minutes.get(asked["project"], ())}
            return named.get(asked["when"], "I do not know.")
        if asked := _ASK_DAY.read(message):
            days = [
                WEEKDAYS[held.weekday()] for held, matter in self._of(asked["project"]) if matter == asked["matter"]
            ]
            return days[0] if days else "I do not know."
        if asked := _ASK_ORDER.read(message):
            return json.dumps([matter for _, matter in self._of(asked["project"])])
        return None

    def _of(self, project: str) -> list[tuple[datetime, str]]:
        return sorted(self._minutes.get(project, ()))


def _to_date(text: str, now: datetime) -> datetime:
    """The last day of this date, as it was read at a moment."""
    day, month = text.split()
    held = now.replace(month=MONTHS.index(month) + 1, day=int(day))
    return held if held <= now else held.replace(year=now.year - 1)
