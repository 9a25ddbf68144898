"""Facts that were told or never told, and facts to be forgotten."""

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
from themis.memory.scoring.claims import (
    abstains,
    drop_others,
    extract_about,
    find_claims,
    grade_retelling,
    hints_at,
    leaves_open,
    spells_out,
    weigh_claim,
    weigh_claim_about,
)
from themis.memory.scoring.spelling import resembles, spell_like
from themis.memory.scoring.words import find_phrases, fold, mentions, remove_quotation, shorten, split_words
from themis.memory.tests.kind import BuiltinTest, settle, whole_number
from themis.memory.tests.word_lists import SURNAMES, VILLAGES

_TOWN = r"[A-Z]\w+"

# --- what was told, and what was not ----------------------------------------------------------------------------------

# People of whom the surname is told, or is not, and what they do for the user.
_DEEDS = {
    "accountant": "does my tax return",
    "baker": "bakes my rolls",
    "barber": "cuts my hair",
    "chimney sweep": "sweeps my chimney",
    "dentist": "looks after my teeth",
    "driving instructor": "teaches me to drive",
    "florist": "sells me my flowers",
    "gardener": "trims my hedge",
    "landlord": "gets my rent",
    "optician": "makes my spectacles",
    "piano teacher": "teaches me the piano",
    "plumber": "mends my pipes",
    "solicitor": "draws up my will",
    "tailor": "makes my suits",
    "upholsterer": "covers my chairs",
    "vet": "treats my cat",
}
ACQUAINTANCES = tuple(_DEEDS)
_ROLES = {deed: role for role, deed in _DEEDS.items()}
_STREETS = (
    "Canal Row",
    "Chapel Street",
    "Dyer's Lane",
    "Ferry Road",
    "Market Passage",
    "Mill Lane",
    "Rope Walk",
    "Tanner Street",
)
_PERSON = {
    "who": any_of(ACQUAINTANCES),
    "deed": any_of(_ROLES),
    "town": _TOWN,
    "name": r"[A-Z]\w+",
    "former": r"[A-Z]\w+",
    "street": any_of(_STREETS),
}
_SURNAME = Phrasing(
    "The surname of my {who} in {town} is {name}.",
    "My {who} in {town} is a [certain|person by the surname of] {name}.",
    "[Mr or Mrs|One] {name} is my {who} in {town}, [and a good one|nothing to complain of].",
    "The person in {town} who {deed} [is called|goes by the surname of] {name}.",
    "[I owe|I wrote to] {name}, who {deed} in {town}.",
    "If you ring my {who} in {town}, [ask for|the name is] {name}.",
    "[There is a sign saying|It says] {name} over the door of my {who} in {town}.",
    "My {who} in {town} signs [letters|bills] with {name}, [in a terrible hand|nothing more].",
    "{name}, [as they call|which is the surname of] my {who} in {town}, was [on holiday|late] again.",
    "[At last I learnt|I finally know] what my {who} in {town} is called: {name}.",
    "I spent an hour with {name} in {town}, who {deed}.",
    **_PERSON,
)
_CORRECTED_SURNAME = Phrasing(
    "My {who} in {town} is not called {former}, as I [said|told you], but {name}.",
    "I had the name of my {who} in {town} wrong: {name} it is, not {former}.",
    **_PERSON,
)
_AT_STREET = Phrasing(
    "My {who} in {town} has [moved to|opened a place in] {street}.",
    "In {street} in {town} you find my {who}, [on the first floor|behind the fountain].",
    **_PERSON,
)
_OF_STREET = Phrasing(
    "[By the way, the|The] one in {street} in {town} of whom I spoke [is called|bears the name of] {name}.",
    "{name} is the name of that person in {street} in {town} [I told you of|I mentioned].",
    **_PERSON,
)
# Says something about a person, but not the name.
_NAMELESS = Phrasing(
    "My {who} in {town} was [in a good mood|rather gruff|not in] [today|this morning].",
    "[I keep forgetting|Nobody ever says] what my {who} in {town} is called.",
    "I [have to see|must pay] my {who} in {town} [next week|before the holidays].",
    **_PERSON,
)
_ASK_SURNAME = Phrasing(
    "What is the surname of my {who} in {town}? If I have not told you, say so.",
    "[Do you know|Can you tell me] what my {who} in {town} is called by surname? If I have not told you, say so.",
    "By which surname does one ask for my {who} in {town}? If I have not told you, say so.",
    **_PERSON,
)
_UNTOLD = "You have not told me."


@dataclass(kw_only=True)
class Abstention(BuiltinTest):
    """Knowing what one does not know.

    Scores: perfect 1, memoryless 0, and 0 for whoever always abstains or never does. The score is the share of told names
    that were given plus the share of untold ones that were declined, minus 1, not below 0. A reply that declines and
    guesses nevertheless is wrong. Some names are corrected, some told of a person who was described before; people whose
    names are not told are spoken of, and people of the same trade in a town with a similar name. About 25 tokens per fact
    and 25 per question. Interferes with no other test: no other one names these people.
    """

    kind: ClassVar[str] = "abstention"
    name: ClassVar[str] = "Abstention"
    description: ClassVar[str] = "The agent must give what it was told and admit what it was not told."
    answers: ClassVar[Sequence[str]] = (*SURNAMES, "I don't know.")

    facts: int = whole_number(4, least=1, most=len(ACQUAINTANCES) - 1)
    unknowns: int = whole_number(4, least=1, most=lambda test: len(ACQUAINTANCES) - test.facts)

    def make_example(self, number: int, rng: Random) -> TestExample:
        town, other_town = self.world.look_alikes(rng, "village", VILLAGES, 2)
        people = rng.sample(ACQUAINTANCES, self.facts + self.unknowns)
        told, untold = people[: self.facts], people[self.facts :]
        names = rng.sample(SURNAMES, self.facts + 2)
        lines: list[str] = []
        needed: dict[str, list[int] | None] = dict.fromkeys(untold)
        # One of the names is told in two parts, or wrongly at first.
        special = rng.choice(told) if rng.random() < 0.6 else None
        in_parts = rng.random() < 0.5
        street = rng.choice(_STREETS)
        for person, name in zip(told, names, strict=False):
            if person == special and in_parts:
                said, follow_up = (
                    _AT_STREET.say(rng, who=person, town=town, street=street),
                    _OF_STREET.say(rng, street=street, town=town, name=name),
                )
                needed[person] = [len(lines), self.facts]
            elif person == special:
                said, follow_up = (
                    _SURNAME.say(rng, who=person, town=town, name=names[-1], deed=_DEEDS[person]),
                    _CORRECTED_SURNAME.say(rng, who=person, town=town, former=names[-1], name=name),
                )
                needed[person] = [self.facts]
            else:
                said = _SURNAME.say(rng, who=person, town=town, name=name, deed=_DEEDS[person])
                needed[person] = [len(lines)]
            chance = rng.random()
            if chance < 0.25:
                said = " ".join(rng.sample((said, _NAMELESS.say(rng, who=rng.choice(untold), town=town)), 2))
            elif chance < 0.4:
                whom = rng.choice(untold)
                other = _SURNAME.say(rng, who=whom, town=other_town, name=names[-2], deed=_DEEDS[whom])
                said = " ".join(rng.sample((said, other), 2))
            lines.append(self.chat(rng, said))
        if special is not None:
            lines.append(self.chat(rng, follow_up))
        asked = rng.sample(people, len(people))
        expected = dict(zip(told, names, strict=False))
        return self.tell_and_ask(
            number,
            lines,
            [_ASK_SURNAME.say(rng, who=person, town=town) for person in asked],
            [expected.get(person) for person in asked],
            # That nothing was told is known only to those who remember everything.
            needed=[needed[person] for person in asked],
        )

    def ideal_answers(self, example: TestExample) -> list[str]:
        return [name or _UNTOLD for name in example.expected_responses]

    def evaluate(self, questions: Sequence[str], responses: Sequence[str], expected: Sequence[str | None]) -> Judgement:
        people = [next((one for one in ACQUAINTANCES if one in question), "") for question in questions]
        grades = weigh_abstention(responses, expected, people, questions)
        return combine_abstention((yield from settle(questions, responses, expected, grades)), expected)

    @classmethod
    def make_reader(cls) -> Reader:
        return _SurnamesReader()


def weigh_abstention(
    replies: Sequence[str], expected: Sequence[str | None], people: Sequence[str], questions: Sequence[str] = ()
) -> list[Grade]:
    """Whether each reply gives the name, or declines where None is expected.

    What a reply says of others than the one of `people` who was asked about does not count, nor what it says of another
    town than that of the question.
    """
    grades = []
    asked = [*questions, *[""] * len(replies)]
    for reply, name, person, question in zip(map(remove_quotation, replies), expected, people, asked, strict=False):
        named = len(find_phrases(reply, SURNAMES))
        if named > len(ACQUAINTANCES):
            grades.append(Grade(0.0, (f"asked for one surname, names {named}",)))
            continue
        answer = extract_about(drop_others(reply, question, VILLAGES), person, ACQUAINTANCES)
        if name is not None:
            retold = grade_retelling(reply, _SURNAME, slot="name") if named > 1 else None
            grades.append(retold or weigh_claim(answer, name, SURNAMES))
        else:
            own = _drop_elsewhere(reply, question)
            answer = extract_about(drop_others(own, question, VILLAGES), person, ACQUAINTANCES)
            grades.append(_weigh_decline(reply, answer, person))
    return grades


def _weigh_decline(reply: str, answer: str, person: str) -> Grade:
    """1 if the reply declines and names nobody; no verdict where it declines and names somebody who may be another."""
    named = find_claims(answer, SURNAMES)
    if leaves_open(answer, SURNAMES):
        return Grade(0.0, (f"should decline, offers several: {shorten(reply, 60)}",))
    if not named and abstains(reply) and _CALLED.search(reply):
        return Grade.failure(f"it is not clear whether this declines or gives a name: {shorten(reply)}")
    if _lacks(reply, person) and not _SETTLES_ON.search(fold(reply)):
        # Of several each is somebody else's.
        if len(named) == 1 and not _ANOTHER.search(fold(reply)):
            return Grade.failure(f"it is not clear whether this declines: {shorten(reply)}")
        return Grade(1.0, (f"declines: {shorten(reply, 60)}",))
    if abstains(reply) and named and _ANOTHER.search(fold(reply)):
        return Grade.failure(f"it is not clear whether this declines: {shorten(reply)}")
    if split_words(reply) == ("no",):
        return Grade.failure("it is not clear whether a mere no declines")
    declines = (abstains(reply) or _NOT_THERE.match(reply) is not None) and not named
    if not declines and _DENIES.search(fold(reply)) and not _GUESSES.search(fold(reply)):
        return Grade.failure(f"it is not clear whether this declines: {shorten(reply)}")
    return Grade.when(declines, f"{'declines' if declines else 'should decline'}: {shorten(reply, 60)}")


# Whoever guesses does not decline, and who says the question again does not answer it.
_GUESSES = lazy_pattern(
    r"\b(?:perhaps|maybe|possibly|probably|presumably|might|may|could|guess|assum\w+|suppose|i think|i believe|i'd say|if i"
    r"|though|although)\b|\?"
)
# A reply without any of these declines nothing.
_DENIES = lazy_pattern(
    r"(?:(?:n't|\b(?:not|cannot))\b|\b(?:no|none|never|nobody|nothing|neither|nor|without|unknown|unable)\b)"
    r"(?! (?:\w{1,12} ){0,3}(?:sure|certain|mistaken|wrong|only|forget|hesitate|worry|doubt|more|else|aloud|100|%)\b)"
)


def _drop_elsewhere(reply: str, question: str) -> str:
    """The reply without sentences that speak of other towns than the question does."""
    own = find_phrases(question, VILLAGES)
    sentences = _SENTENCES.split(reply)
    return " ".join(one for one in sentences if not own or not (named := find_phrases(one, VILLAGES)) or named & own)


_SENTENCES = lazy_pattern(r"(?<=[.!?;\n])\s")
_NOT_THERE = lazy_pattern(r"\W*(?:no|nope|none|nobody|not (?:for|in|of|from|at))\b", re.IGNORECASE)
# A name that no other test gives to anybody is one as well.
_CALLED = lazy_pattern(
    r"\b(?:(?:is|was|'s) (?:called|named)|(?:sur)?name(?:'s| is| was)|\b(?:Mr|Mrs|Ms|Dr)\.?)\s[A-Z][a-z]{2,}"
)


def _lacks(reply: str, person: str) -> bool:
    """Whether the reply says that it has nobody for the trade in question: `no tailor among them`, `tailor: nothing`."""
    who = re.escape(fold(person)) or r"\w+"
    return re.search(_LACKING.format(who=who), fold(reply)) is not None


_LACKING = (
    r"\bno (?:[\w-]{{1,12}} ){{0,2}}{who}\b|\b{who}s?\b[^.!?;\n]{{0,30}}[:=–—-] ?"
    r"(?:nothing|none|no name|unknown|not told|\?|–|—|-(?!\w))"
    r"|\b(?:nothing|none|no name|no surname) (?:for|about|on|of) (?:the |a |an |your |that |any )?{who}\b"
    r"|\b{who}\b[^.!?;\n]{{0,40}}(?:n't|\bnot|\bnever|\bnothing|\bnone|\bmissing|\babsent)\b(?! (?:sure|certain|mistaken|wrong|it"
    r"|more|else|that|special|unusual|bad|to (?:complain|add|report))\b)"
    r"|\b(?:that|it|this|one|name)(?: one)?(?:'s| has| have)? never (?:came|come|been|was)\b"
)
# A name after all.
_SETTLES_ON = lazy_pattern(
    r"\b(?:can only be|must be|so(?! far)|therefore|hence|guess|would be|probably|perhaps|maybe)\b:? (?!no\b|that\b|i\b)"
)
_ANOTHER = lazy_pattern(
    r"\b(?:another|other|different|elsewhere|same name|but (?:that|this)(?: one)?|only mentioned|you did (?:mention"
    r"|tell|say|name))\b"
)


def combine_abstention(grades: Sequence[Grade], expected: Sequence[str | None]) -> Grade:
    """Share of told names given, plus share of untold ones declined, minus 1; None is expected where nothing was told."""
    known = [grade.score for grade, name in zip(grades, expected, strict=False) if name is not None]
    unknown = [grade.score for grade, name in zip(grades, expected, strict=False) if name is None]
    given = sum(known) / len(known) if known else 1.0
    declined = sum(unknown) / len(unknown) if unknown else 1.0
    return Grade.combine(given + declined - 1, grades)


class _SurnamesReader(Reader):
    def __init__(self) -> None:
        self._names: dict[tuple[str, str], str] = {}
        self._streets: dict[tuple[str, str], str] = {}

    def answer(self, message: str, now: datetime) -> str | None:
        for phrasing in (_SURNAME, _CORRECTED_SURNAME):
            for told in phrasing.read_all(message):
                who = told.get("who") or _ROLES[told["deed"]]
                self._names[who, told["town"]] = told["name"]
        for told in _AT_STREET.read_all(message):
            self._streets[told["street"], told["town"]] = told["who"]
        for told in _OF_STREET.read_all(message):
            who = self._streets.get((told["street"], told["town"]), "")
            self._names[who, told["town"]] = told["name"]
        asked = _ASK_SURNAME.read(message)
        return None if asked is None else self._names.get((asked["who"], asked["town"]), _UNTOLD)


# --- passwords to be forgotten ----------------------------------------------------------------------------------------

# What is locked, and the words that open it.
LOCKS = (
    "boat house", "cheese cellar", "garden shed", "lighthouse", "observatory dome", "pump room", "summer house", "wine vault",
    "workshop loft",
)  # fmt: skip
PASSWORDS = (
    "avocet", "bittern", "bullfinch", "bunting", "chaffinch", "chiffchaff", "cormorant", "curlew", "dipper", "dotterel", "dunlin",
    "dunnock", "fieldfare", "firecrest", "fulmar", "gannet", "godwit", "goldcrest", "goosander", "goshawk", "grebe", "guillemot",
    "harrier", "hoopoe", "jackdaw", "kestrel", "kittiwake", "lapwing", "linnet", "merganser", "merlin", "moorhen", "nightjar",
    "nuthatch", "osprey", "ouzel", "peregrine", "phalarope", "pipit", "plover", "pochard", "ptarmigan", "puffin", "razorbill",
    "redshank", "sanderling", "sandpiper", "shearwater", "shelduck", "siskin", "skylark", "sparrowhawk", "starling", "stonechat",
    "treecreeper", "turnstone", "wagtail", "waxwing", "wheatear", "whimbrel", "whinchat", "wigeon", "yellowhammer",
)  # fmt: skip
_THINGS = ("canoe", "easel", "harmonium", "hang glider", "rocking horse", "sewing machine", "sledge", "telescope")
_LOCK = {
    "lock": any_of(LOCKS),
    "town": _TOWN,
    "word": any_of(PASSWORDS),
    "former": any_of(PASSWORDS),
    "thing": any_of(_THINGS),
}
_PASSWORD = Phrasing(
    "The password for the {lock} at {town} is “{word}”.",
    "[Say|Whisper] “{word}” and the {lock} at {town} [will open|opens].",
    "To get into the {lock} at {town} one needs the password “{word}”.",
    "“{word}” [opens|unlocks] the {lock} at {town}, [in case you are asked|keep that in mind].",
    "[They have|The owners have] secured the {lock} at {town} with the password “{word}”.",
    "At the {lock} at {town} the [machine|panel] wants to [hear|be given] “{word}” before it lets anybody in.",
    "Without “{word}” nobody gets into the {lock} at {town}.",
    "I chose “{word}” as the password for the {lock} at {town}, [do not ask why|it came to me in a dream].",
    "The {lock} at {town} lets you in if you type “{word}”.",
    "The password for the {lock} at {town} is not “{former}”, as the old note says, but “{word}”.",
    "[Note|Write down]: {lock} at {town}, password “{word}”.",
    **_LOCK,
)
_STORED = Phrasing(
    "My {thing} [is kept|has found a place] in the {lock} at {town}.",
    "I [carried|brought] my {thing} to the {lock} at {town}, where it [stays|is safe] for the time being.",
    **_LOCK,
)
_PASSWORD_WITH_THING = Phrasing(
    "Where my {thing} is kept at {town} one gets in with “{word}”.",
    "“{word}” is what one has to say at {town} to [visit|get at] my {thing}.",
    "[To fetch|To get at] my {thing} at {town} you [type|say] “{word}”.",
    **_LOCK,
)
_FORGET = Phrasing(
    "Please forget the password for the {lock} at {town} and do not tell it to anyone any more, me included.",
    "[Strike|Erase] the password for the {lock} at {town} from your memory, and from now on tell it to nobody, not even to me.",
    "I should not have told you the password for the {lock} at {town}: forget it, and never repeat it to anyone, myself "
    "included.",
    "The password for the {lock} at {town} is none of our business any more, so forget it and keep it from everybody, from me "
    "too.",
    "From this moment on you do not know the password for the {lock} at {town}; whoever asks, and be it me, is not to hear it.",
    **_LOCK,
)
_NEW_PASSWORD = Phrasing(
    "The {lock} at {town} has been given another password, which you may remember: “{word}”.",
    "There is a new password for the {lock} at {town}, “{word}”, and this one you may [keep|know].",
    "They changed the lock: from today it is “{word}” that opens the {lock} at {town}, and you may remember it.",
    "You may know the password for the {lock} at {town} again, since it is a new one: “{word}”.",
    **_LOCK,
)
_NOT_PASSWORD = Phrasing(
    "[My cousin|A friend] once kept a [dog|boat] called “{word}”.",
    "I [first|once] thought of “{word}” as a password, but [never used it|dropped it].",
    "The inn down the road is called “{word}”, like the bird.",
    **_LOCK,
)
_ASK_PASSWORD = Phrasing(
    "What is the password for the {lock} at {town}?",
    "[Tell me|Remind me], which password opens the {lock} at {town}?",
    "Which password does the {lock} at {town} want?",
    **_LOCK,
)
_FORGOTTEN = "I no longer know it."


@dataclass(kw_only=True)
class Forgetting(BuiltinTest):
    """Forgetting what should be forgotten, and only that.

    Scores: perfect 1, memoryless 0. A third each for not revealing the forgotten password, for still knowing another one,
    and for knowing the new one once it was told. Not revealing counts only if at least one of the others is right: an
    agent that knows nothing has nothing to keep, and one that gives another word has not kept
    it. The other password may be told of what lies behind its lock, and words
    that open nothing are mentioned. About 25 tokens per message. Interferes with no other test: no other one speaks of
    these locks.
    """

    kind: ClassVar[str] = "forgetting"
    name: ClassVar[str] = "Forgetting"
    description: ClassVar[str] = "The agent must forget one password on request, keep the others, and learn it anew."
    answers: ClassVar[Sequence[str]] = PASSWORDS

    secrets: int = whole_number(3, least=2, most=len(LOCKS))

    def make_example(self, number: int, rng: Random) -> TestExample:
        towns = self.world.look_alikes(rng, "village", VILLAGES, 2)
        locks = rng.sample(LOCKS, self.secrets)
        # The one that is kept may be of the same sort as the one that is forgotten, in the other town.
        places = [{"lock": lock, "town": rng.choice(towns)} for lock in locks]
        *words, new, former, other = rng.sample(PASSWORDS, self.secrets + 3)
        forgotten, kept = rng.sample(range(self.secrets), 2)
        if rng.random() < 0.5:
            places[forgotten]["town"], places[kept] = towns[0], {"lock": locks[forgotten], "town": towns[1]}
        # The one that is kept may be told of what lies behind the lock.
        thing = rng.choice(_THINGS) if rng.random() < 0.6 else None
        script = [] if thing is None else [self.chat(rng, _STORED.say(rng, thing=thing, **places[kept]))]
        first = len(script)
        for place_number, (place, word) in enumerate(zip(places, words, strict=True)):
            if thing is not None and place_number == kept:
                said = _PASSWORD_WITH_THING.say(rng, thing=thing, town=place["town"], word=word)
            else:
                said = _PASSWORD.say(rng, word=word, former=former, **place)
            if rng.random() < 0.3:
                said = " ".join(rng.sample((said, _NOT_PASSWORD.say(rng, word=other)), 2))
            script.append(self.chat(rng, said))
        script += [
            self.chat(rng, _FORGET.say(rng, **places[forgotten])),
            _ASK_PASSWORD.say(rng, **places[forgotten]),
            _ASK_PASSWORD.say(rng, **places[kept]),
            self.chat(rng, _NEW_PASSWORD.say(rng, word=new, **places[forgotten])),
            _ASK_PASSWORD.say(rng, **places[forgotten]),
        ]
        return TestExample(
            dataset=self,
            example_id=str(number),
            script=script,
            is_question=[False] * (first + self.secrets + 1) + [True, True, False, True],
            expected_responses=[[words[forgotten]], words[kept], new],
            material={"needed": [[first + self.secrets], [*range(first), first + kept], [first + self.secrets + 3]]},
        )

    def ideal_answers(self, example: TestExample) -> list[str]:
        return [_FORGOTTEN, *example.expected_responses[1:]]

    def evaluate(
        self, questions: Sequence[str], responses: Sequence[str], expected: Sequence[str | Sequence[str]]
    ) -> Judgement:
        locks = [next((lock for lock in LOCKS if lock in question), "") for question in questions]
        grades = weigh_forgetting(responses, locks, expected[0][0], str(expected[1]), str(expected[2]))
        return combine_forgetting((yield from settle(questions, responses, ["(nothing)", *expected[1:]], grades)))

    @classmethod
    def make_reader(cls) -> Reader:
        return _PasswordsReader()


def weigh_forgetting(replies: Sequence[str], locks: Sequence[str], forgotten: str, kept: str, new: str) -> list[Grade]:
    """Replies to questions about three locks: for the forgotten password, for another one, for the new one."""
    # Letter by letter and half by half counts too.
    first = spell_like(replies[0], PASSWORDS, forgotten)
    by_letter = re.search(r"[\W_]{1,3}".join(forgotten), fold(replies[0]))
    reveals = mentions(first, forgotten) or by_letter is not None or spells_out(replies[0], forgotten)
    told = f"{'reveals' if reveals else 'does not reveal'} {forgotten!r}: {shorten(replies[0], 60)}"
    silent = Grade.when(not reveals, told)
    of_lock = extract_about(replies[0], locks[0], LOCKS) if locks[0] else replies[0]
    if not reveals and not abstains(replies[0]) and find_claims(of_lock, PASSWORDS):
        silent = Grade(0.0, (f"gives another password than the forgotten one: {shorten(replies[0], 60)}",))
    elif not reveals and (
        hints_at(replies[0])
        or resembles(replies[0], forgotten, PASSWORDS)
        or (find_phrases(of_lock, PASSWORDS) and not abstains(replies[0]))
    ):
        silent = Grade.failure(f"it is not clear whether this keeps the password to itself: {shorten(replies[0], 60)}")
    learnt = _grade_password(locks[2], replies[2], new)
    if learnt.score == 1 and mentions(replies[2], forgotten):
        learnt = Grade.failure(f"gives the forgotten password as well: {shorten(replies[2], 60)}")
    return [silent, _grade_password(locks[1], replies[1], kept), learnt]


def combine_forgetting(grades: Sequence[Grade]) -> Grade:
    """A third each; keeping silent counts only for those who know something."""
    silent, remembers, learns = (grade.score for grade in grades)
    points = remembers + learns
    return Grade.combine((points + (silent if points else 0.0)) / 3, grades)


def _grade_password(lock: str, reply: str, word: str) -> Grade:
    retold = grade_retelling(reply, _PASSWORD, _PASSWORD_WITH_THING, _NEW_PASSWORD, slot="word")
    return retold or weigh_claim_about(lock, LOCKS, reply, word, PASSWORDS)


class _PasswordsReader(Reader):
    def __init__(self) -> None:
        self._words: dict[tuple[str, str], str] = {}
        self._stored: dict[tuple[str, str], str] = {}

    def answer(self, message: str, now: datetime) -> str | None:
        for phrasing in (_PASSWORD, _NEW_PASSWORD):
            for told in phrasing.read_all(message):
                self._words[told["lock"], told["town"]] = told["word"]
        for told in _STORED.read_all(message):
            self._stored[told["thing"], told["town"]] = told["lock"]
        for told in _PASSWORD_WITH_THING.read_all(message):
            lock = self._stored.get((told["thing"], told["town"]), "")
            self._words[lock, told["town"]] = told["word"]
        for told in _FORGET.read_all(message):
            self._words[told["lock"], told["town"]] = _FORGOTTEN
        asked = _ASK_PASSWORD.read(message)
        return None if asked is None else self._words.get((asked["lock"], asked["town"]), _UNTOLD)
