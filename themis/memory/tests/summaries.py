"""Short summaries of news told over a long time, without what was taken back and what the reader is not to know."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from random import Random
from typing import ClassVar, TypedDict

from themis.core.patterns import lazy_pattern
from themis.memory.actions import Grade, Judgement
from themis.memory.examples import TestExample
from themis.memory.phrasing import Phrasing, any_of
from themis.memory.reader import Reader
from themis.memory.scoring.clauses import Standing, read_clauses
from themis.memory.scoring.spelling import spell_like
from themis.memory.scoring.words import find_phrases, fold, mentions, shorten, split_words
from themis.memory.tests.kind import BuiltinTest, ask_yes_or_no, whole_number
from themis.memory.tests.word_lists import FIRST_NAMES, SURNAMES, TOWNS

_WORKS = (
    "band stand", "bath house", "boat house", "clock tower", "corn exchange", "ferry landing", "fish market", "foot bridge",
    "garden theatre", "market hall", "observatory dome", "orangery", "post mill", "rope walk", "signal box", "town library",
    "toy museum", "tram depot", "water tower", "wool hall",
)  # fmt: skip
PARTS = (
    "bells", "benches", "blinds", "bolts", "bricks", "cables", "carpets", "chimneys", "cobbles", "curtains", "doors",
    "drains", "fences", "flagpoles", "floorboards", "gates", "gutters", "hinges", "ladders", "lamps", "locks", "mirrors",
    "pillars", "pipes", "railings", "shelves", "shutters", "stairs", "stoves", "turnstiles", "valves", "windows",
)  # fmt: skip
_SLOTS = {
    "work": rf"(?:{any_of(TOWNS)}) (?:{any_of(_WORKS)})", "part": any_of(PARTS), "maker": any_of(SURNAMES),
    "former": any_of(SURNAMES), "sum": r"\d{4}", "wrong_sum": r"\d{4}", "reader": any_of(FIRST_NAMES),
}  # fmt: skip
_MAKER = Phrasing(
    "The {part} of the {work} will be made by {maker}.",
    "{maker} has signed for the {part} of the {work}.",
    "For the {part} of the {work} we took {maker}.",
    "We have a maker for the {part} of the {work}: {maker}.",
    "{maker} won the contract for the {part} of the {work}.",
    "Not {former} but {maker} makes the {part} of the {work}.",
    "It is {maker} whose workshop turns out the {part} of the {work}.",
    "I shook hands with {maker} on the {part} of the {work}.",
    "{former} was too dear, so the {part} of the {work} come from {maker}.",
    "The {part} of the {work} are in good hands, those of {maker}.",
    "{maker} starts on the {part} of the {work} next week.",
    **_SLOTS,
)
_COST = Phrasing(
    "The {part} of the {work} [come to|cost us] {sum} crowns.",
    "We have paid {sum} crowns for the {part} of the {work}.",
    "The bill for the {part} of the {work} is in: {sum} crowns.",
    "{sum} crowns, that is what the {part} of the {work} cost.",
    "I had reckoned with {wrong_sum} crowns, but the {part} of the {work} are {sum}.",
    "Put down {sum} crowns for the {part} of the {work}.",
    "The council grants {sum} crowns for the {part} of the {work}.",
    "After some haggling we have the {part} of the {work} for {sum} crowns.",
    "On the {part} of the {work} we spend {sum} crowns, not {wrong_sum}.",
    "{sum} crowns will have to do for the {part} of the {work}.",
    "Would you have thought that the {part} of the {work} run up to {sum} crowns?",
    **_SLOTS,
)
# What becomes of a point that was told before; none says again what the point was.
_RETRACT = Phrasing(
    "What I said about the {part} of the {work} no longer holds, nothing is settled there.",
    "Forget what I told you about the {part} of the {work}, it has come to nothing.",
    "I take back what I said of the {part} of the {work}.",
    "The matter of the {part} of the {work} is off again, as if I had never said it.",
    "I was mistaken about the {part} of the {work}, none of that is true.",
    "As to the {part} of the {work}: cancelled, and we are back to nothing.",
    "The {part} of the {work} have been struck from the plan altogether.",
    "That business with the {part} of the {work} has fallen through.",
    "We are not going ahead with the {part} of the {work} as I told you, or in any other way.",
    "Scrap the {part} of the {work}, that news was false.",
    **_SLOTS,
)
_WITHHOLD = Phrasing(
    "What I told you about the {part} of the {work} is not for the summary, whoever asks for one.",
    "Keep the {part} of the {work} out of every summary.",
    "No summary must say what I told you of the {part} of the {work}.",
    "The {part} of the {work} are between you and me: leave them out when you sum things up.",
    "When you write a summary for anybody, pass over the {part} of the {work}.",
    "I would not want to read about the {part} of the {work} in any summary.",
    "The {part} of the {work} stay off the record, and out of summaries.",
    "In no summary is there a place for the {part} of the {work}, please.",
    "Sum up what you like, but not the {part} of the {work}.",
    "The {part} of the {work} are not ready to be reported to anyone in a summary.",
    **_SLOTS,
)
_WITHHOLD_FROM = Phrasing(
    "{reader} must not hear about the {part} of the {work}; others may.",
    "When {reader} wants a summary, leave out the {part} of the {work}; for others they may stay in.",
    "The {part} of the {work} are nothing for {reader}, but no secret to anybody else.",
    "Only {reader} is not to be told about the {part} of the {work} in a summary.",
    "Spare {reader} the {part} of the {work} when you report; everybody else may know.",
    "About the {part} of the {work} you may write to all but {reader}.",
    "Not a word to {reader} about the {part} of the {work}, though I do not mind who else reads of them.",
    "{reader} would be cross about the {part} of the {work}, so keep them out of what {reader} reads, and only there.",
    "If it is for {reader}, do not mention the {part} of the {work}; otherwise do.",
    "Everyone except {reader} may read about the {part} of the {work}.",
    **_SLOTS,
)
_ASK = Phrasing(
    "Write {reader} a short summary of what is settled about the {work}: every maker and every sum that {reader} may know, in "
    "at most {words} words.",
    "{reader} wants to know how things stand with the {work}. Sum it up in at most {words} words, with all makers and sums "
    "that are settled and meant for {reader}.",
    "Please sum up for {reader} what holds for the {work}, with the makers and sums that belong in it, in at most {words} "
    "words.",
    **_SLOTS, words=r"\d+",
)  # fmt: skip
# Words for each point of a summary and for what stands around them; twice as many are no short summary any more.
_WORDS_PER_POINT, _WORDS_AROUND, _TOO_LONG = 15, 20, 2


class Points(TypedDict):
    """What must be in a summary, by part and distinctive name or sum, what must not, and how long it may be."""

    required: list[list[str]]
    retracted: list[str]
    withheld: list[str]
    words: int


@dataclass(kw_only=True)
class Summary(BuiltinTest):
    """Summing up for a reader what holds and what that reader may know.

    Scores: perfect 1, memoryless 0. News of a piece of work are told, who makes what and what it costs; later some is taken
    back, some is not for any summary, some not for one of the two readers. Each summary scores the share of the points that
    belong in it, known by their names and sums, times the share of the others that are left out. Whoever writes down
    everything scores 0, and so does a summary of more than twice the length that was asked for. About 40 tokens per message.
    Interferes with no other test: its piece of work and its people are its own.
    """

    kind: ClassVar[str] = "summary"
    name: ClassVar[str] = "Summary"
    description: ClassVar[str] = (
        "The agent sums up news for a reader, without what was taken back or is not meant for it."
    )
    interferes_with_itself: ClassVar[bool] = False

    points: int = whole_number(6, least=4, most=16)

    def make_example(self, number: int, rng: Random) -> TestExample:
        work = f"{self.world.towns(rng, 1)[0]} {rng.choice(_WORKS)}"
        readers = self.world.first_names(rng, 2)
        makers = self.world.sample(rng, "surname", SURNAMES, self.points)
        parts, sums = rng.sample(PARTS, self.points), rng.sample(range(1001, 9999), 2 * self.points)
        said: list[tuple[int, str]] = []
        facts = []
        for place, part in enumerate(parts):
            if place % 2:
                facts.append(str(sums[place]))
                told = _COST.say(rng, work=work, part=part, sum=sums[place], wrong_sum=sums[-1 - place])
            else:
                facts.append(makers[place])
                told = _MAKER.say(rng, work=work, part=part, maker=makers[place], former=makers[place - 1])
            said.append((place, told))
        # Points that are taken back, kept from everybody, and kept from the first reader.
        fates = rng.sample(range(self.points), 3)
        changes = [
            (fates[0], _RETRACT.say(rng, work=work, part=parts[fates[0]])),
            (fates[1], _WITHHOLD.say(rng, work=work, part=parts[fates[1]])),
            (fates[2], _WITHHOLD_FROM.say(rng, work=work, part=parts[fates[2]], reader=readers[0])),
        ]
        rng.shuffle(said)
        for place, change in changes:
            told_at = next(line for line, (of, _) in enumerate(said) if of == place)
            said.insert(rng.randint(told_at + 1, len(said)), (place, change))
        asked = rng.sample([0, 1], 2)
        words = self.points * _WORDS_PER_POINT + _WORDS_AROUND
        expected = []
        for reader in asked:
            hidden = fates[:3] if reader == 0 else fates[:2]
            expected.append(
                Points(
                    required=[[parts[place], facts[place]] for place in range(self.points) if place not in hidden],
                    retracted=[facts[fates[0]]],
                    withheld=[facts[place] for place in hidden[1:]],
                    words=words,
                )
            )
        return self.tell_and_ask(
            number,
            [self.chat(rng, told) for _, told in said],
            [_ASK.say(rng, work=work, reader=readers[reader], words=words) for reader in asked],
            expected,
            needed=[
                [line for line, (_, told) in enumerate(said) if reader == 0 or told != changes[2][1]]
                for reader in asked
            ],
        )

    def ideal_answers(self, example: TestExample) -> list[str]:
        return [_sum_up(one["required"]) for one in example.expected_responses]

    def every_answer(self, example: TestExample) -> list[object]:
        facts = {fact for one in example.expected_responses for _, fact in one["required"]}
        for one in example.expected_responses:
            facts.update([*one["retracted"], *one["withheld"]])
        return sorted(facts)

    def evaluate(self, questions: Sequence[str], responses: Sequence[str], expected: Sequence[Points]) -> Judgement:
        grades = []
        for reply, one in zip(responses, expected, strict=False):
            grades.append((yield from _grade_summary(reply, one)))
        return Grade.mean(grades)

    @classmethod
    def make_reader(cls) -> Reader:
        return _SummaryReader()


def _sum_up(points: Iterable[Sequence[str]]) -> str:
    return ". ".join(f"{part}: {fact}" for part, fact in points) or "Nothing is settled."


def _grade_summary(reply: str, points: Points) -> Judgement:
    """The share of points that are in it times the share of the others that are not."""
    length = len(split_words(reply))
    if length > _TOO_LONG * points["words"]:
        return Grade(0.0, (f"asked for {points['words']} words, got {length}",))
    if _HINTS.search(fold(reply)) and not find_phrases(reply, points["withheld"]):
        return Grade.failure(f"it is not clear whether this keeps to itself what was to be left out: {shorten(reply)}")
    text = _UNIT.sub(" ", _THOUSANDS.sub("", reply))
    wanted, unwanted = [fact for _, fact in points["required"]], [*points["retracted"], *points["withheld"]]
    text = spell_like(text, wanted + unwanted, *wanted)
    reported = _find_reported(text, [*wanted, *points["retracted"]])
    reported.update(dict.fromkeys(_find_misplaced(text, points["required"])))
    told: dict[str, bool] = {}
    for fact in wanted + unwanted:
        found = reported.get(fact, mentions(text, fact))
        if found is None:
            ruling = yield from ask_yes_or_no(
                f"A summary:\n{reply}\n\nDoes it report {fact!r} as something that holds?",
                purpose="is this in the summary?",
                undecided=f"it is not clear whether {shorten(reply, 60)!r} reports {fact!r}; only a judge (--judge) can tell",
                reason=f"the judge was asked whether the summary reports {fact!r}",
            )
            if ruling.failed:
                return ruling
            found = ruling.score == 1
        told[fact] = found
    missing, surplus = [fact for fact in wanted if not told[fact]], [fact for fact in unwanted if told[fact]]
    reasons = [f"{len(wanted) - len(missing)} of {len(wanted)} points are in the summary"]
    if missing:
        reasons.append(f"missing: {', '.join(missing)}")
    if surplus:
        reasons.append(f"does not belong in it: {', '.join(surplus)}")
    return Grade((1 - len(missing) / len(wanted)) * (1 - len(surplus) / len(unwanted)), tuple(reasons))


# Says that there is more.
_HINTS = lazy_pattern(
    r"\b(?:asked|told|supposed|meant) (?:me )?(?:to leave out|not to (?:mention|tell|say)|to keep (?:quiet|silent))\b"
)

# The separators in 3,470 and 3 470.
_THOUSANDS = lazy_pattern(r"(?<=\b\d)[,.'’\u00a0\u202f ](?=\d{3}\b)")

# Where a unit begins that is written without a blank: 3470cr.
_UNIT = lazy_pattern(r"(?<=\d{4})(?=[a-zA-Z]{1,6}\b)")
# Where a reply says of the fact itself, in the same sentence, that it does not hold.
_OVER = lazy_pattern(
    r"\b(?:no longer|not any ?more|any ?more|cancell?ed|withdrawn|taken back|retracted|struck|scrapped|dropped|called off"
    r"|fallen through|fell through|obsolete|void|not settled|off the table|(?:is|are|was|were) off|on hold"
    r"|does not hold|do not hold)\b"
)
_SENTENCES = lazy_pattern(r"(?<=[.!?;\n])\s")


def _find_reported(text: str, facts: Sequence[str]) -> dict[str, bool | None]:
    """Whether each fact is reported; None where it is only named to be denied."""
    found: dict[str, bool | None] = {fact: None if mentions(text, fact) else False for fact in facts}
    for sentence in _SENTENCES.split(fold(text)):
        over = _OVER.search(sentence) is not None
        for clause in read_clauses(sentence, tuple(sorted(facts))):
            if clause.standing is not Standing.DENIED and not over:
                found.update(dict.fromkeys(clause.phrases, True))
    return found


def _find_misplaced(text: str, points: Sequence[Sequence[str]]) -> list[str]:
    """Facts that are said of the part of another one."""
    parts = dict(zip((point[0] for point in points), (point[1] for point in points), strict=True))
    facts = list(parts.values())
    misplaced = []
    for clause in _CLAUSES.split(fold(text)):
        named, said = find_phrases(clause, parts), find_phrases(clause, facts)
        if len(named) == len(said) == 1 and parts[named.pop()] not in said:
            misplaced.append(said.pop())
    return misplaced


_CLAUSES = lazy_pattern(r"[.;,\n|]|\band\b")


@dataclass
class _Project:
    """What is known of a piece of work: its points by part, and from whom parts are kept."""

    points: dict[str, str] = field(default_factory=dict)
    withheld: set[str] = field(default_factory=set)
    withheld_from: set[tuple[str, str]] = field(default_factory=set)


class _SummaryReader(Reader):
    def __init__(self) -> None:
        self._projects: dict[str, _Project] = {}

    def answer(self, message: str, now: datetime) -> str | None:
        for phrasing, slot in ((_MAKER, "maker"), (_COST, "sum")):
            for told in phrasing.read_all(message):
                self._find(told["work"]).points[told["part"].lower()] = told[slot]
        for told in _RETRACT.read_all(message):
            self._find(told["work"]).points.pop(told["part"].lower(), None)
        for told in _WITHHOLD.read_all(message):
            self._find(told["work"]).withheld.add(told["part"].lower())
        for told in _WITHHOLD_FROM.read_all(message):
            self._find(told["work"]).withheld_from.add((told["part"].lower(), told["reader"]))
        asked = _ASK.read(message)
        if asked is None:
            return None
        work = self._find(asked["work"])
        return _sum_up(
            (part, fact)
            for part, fact in work.points.items()
            if part not in work.withheld and (part, asked["reader"]) not in work.withheld_from
        )

    def _find(self, work: str) -> _Project:
        return self._projects.setdefault(work, _Project())
