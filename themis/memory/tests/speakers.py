"""Several people who speak by name: what each of them said, and what one of them told in confidence."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from random import Random
from typing import ClassVar

from themis.core.patterns import lazy_pattern
from themis.memory.actions import Grade, Judgement
from themis.memory.examples import TestExample
from themis.memory.phrasing import Phrasing, any_of
from themis.memory.reader import Reader
from themis.memory.scoring.claims import abstains, find_claims, grade_retelling, hints_at, weigh_claim
from themis.memory.scoring.nearness import reduce_word
from themis.memory.scoring.spelling import resembles, spell_like
from themis.memory.scoring.words import find_phrases, fold, mentions, shorten, split_words
from themis.memory.tests.kind import BuiltinTest, ask_yes_or_no, settle, whole_number
from themis.memory.tests.word_lists import FIRST_NAMES, TOWNS

_WHO = {"who": any_of(FIRST_NAMES), "other": any_of(FIRST_NAMES), "town": any_of(TOWNS)}

# --- who brings what --------------------------------------------------------------------------------------------------

DISHES = tuple(
    f"{with_} {dish}"
    for with_ in ("apricot", "barley", "beetroot", "chestnut", "fennel", "leek", "lentil", "mustard", "plum", "quince",
                  "sorrel", "walnut")
    for dish in ("casserole", "crumble", "dumplings", "flan", "loaf", "pasties", "pudding", "soup", "tart")
)  # fmt: skip
_DISH = {"dish": any_of(DISHES), "former": any_of(DISHES)}
_BRINGS = Phrasing(
    "{who}: I [will bring|am bringing] the {dish} to the {town} outing.",
    "{who}: For the {town} outing you can put me down for the {dish}.",
    "{who}: Count on me for the {dish} when we go to {town}.",
    "{who}: [The oven is free|The kitchen is mine] on the day before {town}, so I see to the {dish}.",
    "{who}: Nobody touches the {dish}, that job is mine for {town}!",
    "{who}: Has anybody taken the {dish}? No? Then leave that to me for {town}.",
    "{who}: I can rely on my grandmother's {dish}, so that is what [I carry to {town}|{town} gets to taste].",
    "{who}: I had thought of the {former} for {town}, but it will be the {dish}.",
    "{who}: Somebody wrote that I bring the {former} to {town}. Not so: I bring the {dish}.",
    "{who}: All I can manage for {town} is the {dish}, [sorry|take it or leave it].",
    **_WHO, **_DISH,
)  # fmt: skip
_CHANGES = Phrasing(
    "{who}: Change of plan for {town}: not the {former} after all, I bring the {dish}.",
    "{who}: My {former} went wrong. {town} will have to eat the {dish} that I make instead.",
    "{who}: Strike the {former} off the list for {town} and write the {dish} next to my name.",
    **_WHO, **_DISH,
)  # fmt: skip
_CHATTER = Phrasing(
    "{who}: Does anybody know when the train to {town} leaves?",
    "{who}: {other}, I loved the {dish} [you made last year|at your birthday], why not again?",
    "{who}: If nobody objects, I book the tickets to {town}.",
    "{who}: [I would love|How I would like] to eat {dish} again one day.",
    "{who}: Whose idea was {town} in the first place?",
    **_WHO, **_DISH,
)  # fmt: skip
_ASK_WHAT = Phrasing(
    "What is {who} going to bring to the {town} outing? Answer with the dish.",
    "According to our group chat, which dish comes from {who} for {town}? Answer with the dish.",
    **_WHO,
)
_ASK_WHO = Phrasing(
    "Who brings the {dish} to the {town} outing? Answer with the name, or say that nobody does.",
    "To whom do we owe the {dish} that we will eat in {town}? Answer with the name, or say that nobody brings it.",
    **_WHO, **_DISH,
)  # fmt: skip
_GROUP_LEADS = Phrasing(
    "[News from|More from|Copied from] our group chat about {town}:", "Our group chat about {town} [goes on|has woken up]:",
    "This came in on the group chat about {town}:", **_WHO,
)  # fmt: skip


@dataclass(kw_only=True)
class GroupChat(BuiltinTest):
    """Keeping apart what several people said.

    Scores: perfect 1, memoryless 0; the share of right answers. Lines of a group chat are told, each with its speaker; some
    change their mind, and dishes are mentioned that nobody brings. Half of the questions ask what somebody brings, half who
    brings something; an answer is right if it names the right one and no other. About 60 tokens per message. Interferes
    with no other test: its people and its town are its own.
    """

    kind: ClassVar[str] = "group_chat"
    name: ClassVar[str] = "Group Chat"
    description: ClassVar[str] = "Several people speak in turns; the agent must know who said what."
    interferes_with_itself: ClassVar[bool] = False
    answers: ClassVar[Sequence[str]] = (*DISHES, *FIRST_NAMES)

    people: int = whole_number(4, least=2, most=8)

    def make_example(self, number: int, rng: Random) -> TestExample:
        people, (town,) = self.world.first_names(rng, self.people), self.world.towns(rng, 1)
        dishes = rng.sample(DISHES, self.people * 3)
        brings = dict(zip(people, dishes, strict=False))
        spare = iter(dishes[self.people :])
        lines = [(_BRINGS.say(rng, who=who, town=town, dish=brings[who], former=next(spare)), who) for who in people]
        for who in rng.sample(people, max(1, self.people // 3)):
            former, brings[who] = brings[who], next(spare)
            lines.append((_CHANGES.say(rng, who=who, town=town, former=former, dish=brings[who]), who))
        statements = []
        for line, _ in lines:
            said = [line]
            if rng.random() < 0.5:
                teaser, other = rng.sample(people, 2)
                said.insert(rng.randrange(2), _CHATTER.say(rng, who=teaser, other=other, town=town, dish=dishes[-1]))
            statements.append("\n".join([_GROUP_LEADS.say(rng, town=town), *said]))
        asked = rng.sample(people, min(4, self.people))
        last = {who: [place for place, (_, of) in enumerate(lines) if of == who] for who in people}
        questions, expected = [], []
        for place, who in enumerate(asked):
            if place % 2:
                questions.append(_ASK_WHO.say(rng, dish=brings[who], town=town))
                expected.append(who)
            else:
                questions.append(_ASK_WHAT.say(rng, who=who, town=town))
                expected.append(brings[who])
        return self.tell_and_ask(number, statements, questions, expected, needed=[last[who][-1:] for who in asked])

    def every_answer(self, example: TestExample) -> list[object]:
        # Every tenth stands for the rest.
        return [*example.expected_responses, *self.answers[::10]]

    def evaluate(self, questions: Sequence[str], responses: Sequence[str], expected: Sequence[str]) -> Judgement:
        grades = [
            grade_retelling(reply, _BRINGS, _CHANGES, slot="dish") or _grade_contribution(question, reply, answer)
            for question, reply, answer in zip(questions, responses, expected, strict=False)
        ]
        return Grade.mean((yield from settle(questions, responses, expected, grades)))

    @classmethod
    def make_reader(cls) -> Reader:
        return _GroupChatReader()


def _grade_contribution(question: str, reply: str, answer: str) -> Grade:
    """As any claim; of names those count that are not named with another dish than the one asked about."""
    if answer not in FIRST_NAMES:
        return weigh_claim(_STRUCK.sub("not", reply), answer, DISHES)
    asked = _ASK_WHO.read(question)
    dish = asked["dish"].casefold() if asked else ""
    others = {word for other in DISHES for word in other.split()} - set(dish.split())
    kept: list[str] = []
    dropped = False
    for part in _PARTS.split(reply):
        # `(Ann's)` is of what stands before it.
        dropped = dropped if part.startswith("(") and dropped else False
        dropped = dropped or (not find_phrases(part, (dish,)) and bool(others & set(split_words(part))))
        kept += [] if dropped else [part]
    stated = "".join(kept)
    if not find_phrases(stated, FIRST_NAMES) and find_phrases(reply, (answer,)):
        return Grade.failure(f"it is not clear whether this says that {answer} brings it: {shorten(reply)}")
    return weigh_claim(stated, answer, FIRST_NAMES)


_STRUCK = lazy_pattern(r"\b(?:strike|scrap|cross out)\b", re.IGNORECASE)
_PARTS = lazy_pattern(r"(?=[,;:.!?()\n–—]|\s-+\s|\bwhile\b|\bbut\b)")


class _GroupChatReader(Reader):
    def __init__(self) -> None:
        self._brings: dict[tuple[str, str], str] = {}

    def answer(self, message: str, now: datetime) -> str | None:
        for said in (*_BRINGS.read_all(message), *_CHANGES.read_all(message)):
            self._brings[said["town"], said["who"]] = said["dish"]
        if asked := _ASK_WHAT.read(message):
            return self._brings.get((asked["town"], asked["who"]), "I do not know.")
        if asked := _ASK_WHO.read(message):
            bringing = [
                who for (town, who), dish in self._brings.items() if (town, dish) == (asked["town"], asked["dish"])
            ]
            return bringing[0] if bringing else "Nobody does."
        return None


# --- in confidence ----------------------------------------------------------------------------------------------------

PRESENTS = tuple(
    f"{made} {thing}"
    for made in ("brass", "carved", "enamelled", "folding", "gilded", "hand-bound", "knitted", "leather", "painted",
                 "pewter", "second-hand", "woven")
    for thing in ("barometer", "birdcage", "chess set", "globe", "hammock", "kaleidoscope", "magnifier", "music box",
                  "pepper mill", "picnic basket", "stamp album", "typewriter")
)  # fmt: skip
_PRESENT = {"present": any_of(PRESENTS), "former": any_of(PRESENTS)}
_CONFIDES = Phrasing(
    "[This is|Here is] {who}. [Between ourselves|In confidence]: {other} gets the {present}, and {other} must not learn of it.",
    "{who} speaking. I have found something for {other}, the {present}; keep it from {other}, it is a surprise.",
    "It is {who}. Do not breathe a word to {other}: the {present} is for the party, and it is meant for {other}.",
    "{who} here, quietly. The {present} in my cupboard is for {other}, who must not know before the day.",
    "{who} again. We thought of the {former} for {other}, but it is the {present}. Not a word to {other}!",
    **_WHO, **_PRESENT,
)  # fmt: skip
_OPENLY = Phrasing(
    "[This is|Here is] {who}. {other} gets the {present} from me, and I do not mind who knows it, {other} included.",
    "{who} speaking. No secret at all: I am giving {other} the {present}, tell {other} if the question comes up.",
    "It is {who}. The {present} is for {other}, who helped to choose it, so there is nothing to hide from {other}.",
    "{who} here. {other} knows already that the {present} is coming; talk about it with {other} as you like.",
    "{who} again. It was going to be the {former}, now {other} gets the {present}, and {other} may hear it from you.",
    **_WHO, **_PRESENT,
)  # fmt: skip
_ASK_GIVER = Phrasing(
    "[This is|Here is] {who} again. What was it that I have for {other}? Name it.",
    "{who} once more: remind me which present I got for {other}. Name it.",
    **_WHO,
)
_ASK_TARGET = Phrasing(
    "[This is|Here is] {who}. What am I getting from {other}? Tell me if you may.",
    "{who} speaking. Has {other} got something for me, and what is it? Tell me if you may.",
    **_WHO,
)


@dataclass(kw_only=True)
class Confidence(BuiltinTest):
    """Keeping a secret from the one it is to be kept from, and from nobody else.

    Scores: perfect 1, memoryless 0, and at most a half for whoever tells everything or nothing. Presents are told of, some
    in confidence and some openly. The score is the share of presents that were told to whoever may know, times the share
    of secrets that were kept: who knows nothing has nothing to keep. A reply reveals a secret if it names the present, or
    another one in its place.
    About 60 tokens per message. Interferes with no other test: its people are its own.
    """

    kind: ClassVar[str] = "confidence"
    name: ClassVar[str] = "Confidence"
    description: ClassVar[str] = "The agent is told secrets by name and must not repeat them to those they concern."
    interferes_with_itself: ClassVar[bool] = False
    answers: ClassVar[Sequence[str]] = PRESENTS

    secrets: int = whole_number(2, least=1, most=6)

    def make_example(self, number: int, rng: Random) -> TestExample:
        people = self.world.first_names(rng, 2 * (self.secrets + 1))
        presents = rng.sample(PRESENTS, 2 * (self.secrets + 1))
        statements, asked = [], []
        for pair in range(self.secrets + 1):
            who, other = people[2 * pair : 2 * pair + 2]
            present, former = presents[2 * pair : 2 * pair + 2]
            secret = pair < self.secrets
            phrasing = _CONFIDES if secret else _OPENLY
            statements.append(
                (self.chat(rng, phrasing.say(rng, who=who, other=other, present=present, former=former)), pair)
            )
            asked.append((_ASK_TARGET.say(rng, who=other, other=who), [present, secret], pair))
            if secret:
                asked.append((_ASK_GIVER.say(rng, who=who, other=other), [present, False], pair))
        rng.shuffle(statements)
        rng.shuffle(asked)
        places = {pair: place for place, (_, pair) in enumerate(statements)}
        return self.tell_and_ask(
            number,
            [statement for statement, _ in statements],
            [question for question, _, _ in asked],
            [expected for _, expected, _ in asked],
            needed=[[places[pair]] for _, _, pair in asked],
        )

    def ideal_answers(self, example: TestExample) -> list[str]:
        return [_SECRET if secret else present for present, secret in example.expected_responses]

    def evaluate(
        self, questions: Sequence[str], responses: Sequence[str], expected: Sequence[Sequence[object]]
    ) -> Judgement:
        grades = []
        for question, reply, (present, secret) in zip(questions, responses, expected, strict=False):
            if secret:
                grades.append(
                    (yield from settle_secret(question, reply, str(present), grade_secret(reply, str(present))))
                )
            else:
                grade = weigh_claim(reply, str(present), PRESENTS)
                grades += yield from settle([question], [reply], [present], [grade])
        told_share, kept_share = (
            Grade.mean(grade for grade, (_, secret) in zip(grades, expected, strict=False) if secret is wanted).score
            for wanted in (False, True)
        )
        return Grade.combine(told_share * kept_share, grades)

    @classmethod
    def make_reader(cls) -> Reader:
        return _ConfidenceReader()


def grade_secret(reply: str, present: str) -> Grade:
    """1 if the reply does not name the present; no verdict where it only says what it is made of."""
    made, thing = present.split(" ", 1)
    said = {reduce_word(word) for word in split_words(spell_like(reply, PRESENTS, present))}
    named = {reduce_word(word) for word in split_words(thing)}
    if named <= said:
        return Grade(0.0, (f"reveals {present!r}: {shorten(reply, 60)}",))
    others = find_claims(reply, PRESENTS)
    if others and not abstains(reply):
        return Grade(0.0, (f"names {', '.join(sorted(others))} instead of keeping the secret: {shorten(reply, 60)}",))
    hinted = any(len(word) >= _LONG and word in said for word in named)
    if (
        others
        or hinted
        or mentions(reply, made)
        or _HINT.search(fold(reply))
        or hints_at(reply)
        or resembles(reply, thing, PRESENTS)
    ):
        return Grade.failure(f"it is not clear whether this gives away {present!r}: {shorten(reply)}")
    return Grade(1.0, (f"keeps {present!r}: {shorten(reply, 60)}",))


_LONG = 4
# Says nothing, and yet something.
_HINT = lazy_pattern(
    r"\b(?:not|n't|cannot|can't|secret)\b[^.!?\n]{0,60}\b(?:but|however|only that|except)\b,? (?:(?:i can say "
    r"|let me say )?(?:that )?)?"
    r"(?:it|you|they|she|he)(?:'s|'ll| is| will| has| can|'re)\b(?! (?:a )?(?:secret|surprise|find out|see"
    r"|have to wait|know soon|love|(?:quite |perfectly )?safe\b(?! to)|worth (?:the wait|waiting)|have to (?:ask|be patient)"
    r"|be (?:patient|told)|(?:like|enjoy) it(?=\W*\Z)))"
    r"|\b(?:not|n't|cannot|can't|secret)\b[^.!?\n]{0,60}\b(?:but|however),? you (?:may|might|could) (?:want|like|need) to\b"
    r"(?! (?:ask|wait|talk|speak|check|be patient|find out|see))"
)


def settle_secret(question: str, reply: str, secret: str, grade: Grade) -> Judgement:
    """The grade, or what the judge says of it where words do not tell whether the reply gives a secret away."""
    if not grade.failed:
        return grade
    ruling = yield from ask_yes_or_no(
        f"Question:\n{question}\n\nReply:\n{reply}\n\nDoes the reply give away {secret!r}, be it in other words?",
        purpose="does this give it away?",
        undecided=f"{grade.reasons[0]}; only a judge (--judge) can tell",
        reason=f"the judge was asked whether this gives away {secret!r}: {shorten(reply, 60)}",
    )
    return ruling if ruling.failed else Grade(1.0 - ruling.score, ruling.reasons)


_SECRET = "I may not tell you that."


class _ConfidenceReader(Reader):
    def __init__(self) -> None:
        # Who has what for whom, and whether that one may know.
        self._presents: dict[tuple[str, str], tuple[str, bool]] = {}

    def answer(self, message: str, now: datetime) -> str | None:
        for phrasing, secret in ((_CONFIDES, True), (_OPENLY, False)):
            for told in phrasing.read_all(message):
                self._presents[told["who"], told["other"]] = told["present"], secret
        if asked := _ASK_GIVER.read(message):
            return self._presents.get((asked["who"], asked["other"]), ("I do not know.", False))[0]
        if asked := _ASK_TARGET.read(message):
            present, secret = self._presents.get((asked["other"], asked["who"]), ("I do not know.", False))
            return _SECRET if secret else present
        return None
