"""Jokes that nobody has heard before, told hours apart: which of them was told when?"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from random import Random
from typing import ClassVar

from themis.core.patterns import lazy_pattern
from themis.memory.actions import AgentReply, Grade, Grading, Wait
from themis.memory.examples import LAST_SHARE, TestExample
from themis.memory.phrasing import Phrasing, any_of
from themis.memory.reader import Reader
from themis.memory.scoring.claims import abstains, find_claims
from themis.memory.scoring.languages import is_foreign
from themis.memory.scoring.lists import measure_recall
from themis.memory.scoring.nearness import reduce_word
from themis.memory.scoring.words import fold, shorten, split_words
from themis.memory.tests.kind import BuiltinTest, ask_yes_or_no, whole_number

# A joke is somebody, what that one did, and how it ended. Every part has words of its own.
_HEROES = (
    "My calendar", "Our village baker", "A retired ghost", "The clockmaker's parrot", "My left shoe", "A polite burglar",
    "The orchestra's triangle player", "My grandmother's umbrella", "A vegetarian crocodile", "The deaf piano tuner",
    "An unemployed scarecrow", "My dentist's goldfish", "A shy volcano", "The admiral's bathtub", "A homesick snail",
    "My tailor's mannequin", "An absent-minded spider", "The town's only traffic light", "A nervous mountaineer",
    "My doorbell", "The librarian's hiccups", "A bankrupt magician", "Our weather forecaster", "A sleepless rooster",
    "The professor's toaster", "An honest fox", "My suitcase", "A left-handed octopus", "The butcher's accountant",
    "A superstitious ladder", "The mayor's wig", "My compost heap", "A penguin on holiday", "The lazy postman",
    "An overworked comma", "My reflection", "The gardener's lawyer", "A philosophical cow", "The night watchman",
    "An ambitious turnip",
)  # fmt: skip
_ACTIONS = (
    "applied for a pension", "took dancing lessons", "wrote an angry letter to the council", "opened a savings account",
    "joined a choir", "went on strike over breakfast", "entered a beauty contest", "bought a second-hand submarine",
    "asked for political asylum", "learnt to yodel", "sued the neighbours", "started a diet", "auditioned for an opera",
    "hired a bodyguard", "ran for parliament", "fell in love with a lamp post", "invested everything in mustard",
    "went to night school", "challenged a bishop to chess", "moved in with a taxidermist", "gave up coffee",
    "swallowed a dictionary", "demanded a rise", "took up fencing", "emigrated to the cellar", "published a cookbook",
    "got stuck in a revolving door", "adopted a hedgehog", "signed up for ballet", "mortgaged the chimney",
    "climbed into the wrong taxi", "was elected treasurer", "booked a cruise", "inherited a circus",
    "painted the ceiling twice",
    "trained for a marathon", "set the alarm for Christmas", "proposed to a statue", "opened an umbrella shop",
    "declared independence",
)  # fmt: skip
_ENDINGS = (
    "but the paperwork turned out to be ticklish", "and now the soup refuses to speak to anyone",
    "only to be told that Tuesdays are closed on principle", "which explains the feathers in the piano",
    "and has been paid in cucumbers ever since", "but nobody had warned the trombone", "so the goat had to sign for it",
    "and the moustache has never been found", "but the queue was longer than the story",
    "and the insurance covers only Thursdays",
    "which is why the stairs creak in Latin", "but forgot to take off the lid", "and now the cheese wants a lawyer",
    "only to discover that gravity charges extra", "and left the tip in a sock", "so we had to fold the guests",
    "but the echo answered first", "and the bill came with a spoon attached", "which the carpet took personally",
    "but it turned out to be a rehearsal", "and returned with somebody else's elbows",
    "so the fire brigade brought dessert",
    "but only the ankles were insured", "and the jury asked for gravy", "which made the trousers jealous",
    "but the punchline had already left by train", "and now there are buttons in the honey", "so the pope sent a postcard",
    "but had the instructions upside down", "and woke up as a footnote", "which the thermometer denied under oath",
    "but the applause was past its date", "and the receipt is still laughing", "so the dumplings formed a union",
    "but mistook the finish for a buffet", "and came second to a wheelbarrow", "which emptied the minibar",
    "but the horse knew the password", "and has spoken in rhymes since Easter", "so the violin asked for a divorce",
)  # fmt: skip
_JOKE = lazy_pattern(rf"(?:{any_of(_HEROES)}) (?:{any_of(_ACTIONS)}), (?:{any_of(_ENDINGS)})\.", re.IGNORECASE)
# How a joke is come to; often it just begins.
_LEADS = (
    "Here is a joke: {joke}", "Have you heard this one? {joke}", "They told this at the barber's: {joke}",
    "My uncle swears by this joke: {joke}", "Let me try a joke on you. {joke}", "A joke to cheer you up: {joke}",
    "{joke} I nearly choked on my tea when I heard that.", "{joke} You are allowed to laugh.",
    "{joke} It is better with the right voice, I admit.", "{joke}", "{joke}", "{joke}",
)  # fmt: skip
_UNTOLD = Phrasing(
    "My aunt began a joke about {hero}, but forgot how it ended.",
    "Nobody laughed at the one about {hero} at the party, so I will spare you that.",
    "Remind me never to tell the joke with {hero}.",
)
_WHICH = Phrasing(
    "Which joke did I tell you about {ago} ago? Tell me that one only.",
    "About {ago} ago I told you a joke. How did it go?",
    "What was the joke that I told you about {ago} ago? Repeat it, please, and no other.",
    ago=r"[\w ]+",
)
_AGO = lazy_pattern(r"(\d+) (day|hour|minute)")
_MINUTES = {"day": 1440, "hour": 60, "minute": 1}
# Of a joke's words: so many mean that it was told again, so few that it was not.
_TOLD, _NOT_TOLD = 0.8, 0.4
# So many long words of a joke point at it.
_ALLUDED, _LONG = 2, 5


@dataclass(kw_only=True)
class Jokes(BuiltinTest):
    """Episodic memory: when something was said.

    Scores: perfect 1, memoryless 0; reciting several jokes scores 0. Which joke is meant follows from the virtual times
    at which they were told, at least `minutes_low` apart. They are put together from parts, so that nobody knows them, and of
    some others it is said that they were not told. A reply with most of the joke's words is right, one with few of
    them wrong;
    only a paraphrase in between goes to the judge. About 35 tokens per joke. Interferes with no other test.
    """

    kind: ClassVar[str] = "jokes"
    name: ClassVar[str] = "Jokes"
    description: ClassVar[str] = "The agent must recall which joke was told how long ago."

    jokes_told: int = whole_number(3, least=1, most=len(_HEROES))
    minutes_low: int = whole_number(30, least=1)
    minutes_high: int = whole_number(240, least=lambda test: test.minutes_low)
    joke_prefix: bool = False

    def make_example(self, number: int, rng: Random) -> TestExample:
        heroes, actions, endings = (rng.sample(part, len(part)) for part in (_HEROES, _ACTIONS, _ENDINGS))
        told = [
            self.world.make(rng, "joke", partial(_vary_joke, heroes, actions, endings, place))
            for place in range(self.jokes_told)
        ]
        script = []
        for joke in told:
            said = rng.choice(_LEADS[:1] if self.joke_prefix else _LEADS).format(joke=joke)
            if rng.random() < 0.3:
                hero = rng.choice(heroes[self.jokes_told :] or heroes)
                said = f"{said} {_UNTOLD.say(rng, hero=hero[0].lower() + hero[1:])}"
            script.append(self.chat(rng, said))
        waits = [
            Wait(
                time=timedelta(minutes=rng.randint(self.minutes_low, self.minutes_high)),
                until_share=place * LAST_SHARE / self.jokes_told,
            )
            for place in range(1, self.jokes_told + 1)
        ]
        asked = rng.choice(told)
        return TestExample(
            dataset=self,
            example_id=str(number),
            script=script,
            is_question=[False] * self.jokes_told + [True],
            waits=waits,
            # The one that is asked for, then the others, which must not be told as well.
            expected_responses=[asked, *(joke for joke in told if joke != asked)],
            material={"question": rng.randrange(len(_WHICH))},
            is_temporal=True,
        )

    def ideal_answers(self, example: TestExample) -> list[str]:
        return [example.expected_responses[0]]

    def needed_lines(self, example: TestExample) -> list[Sequence[int] | None]:
        return [example.lines_with(example.expected_responses[0])]

    def every_answer(self, example: TestExample) -> list[object]:
        return list(example.expected_responses)

    def temporal_question(self, example: TestExample, said: Sequence[AgentReply], now: datetime) -> str:
        joke = example.expected_responses[0]
        told = next(heard for heard, line in zip(said, example.script, strict=False) if joke in line)
        form = example.material.get("question", 0)
        return _WHICH.render(form, self.random("question"), ago=format_elapsed(now - told.now))

    def evaluate(self, questions: Sequence[str], responses: Sequence[str], expected: Sequence[str]) -> Grading:
        return grade_joke(responses[-1], expected[0], (*self.answers, *expected[1:])) or ask_yes_or_no(
            f"Somebody was to repeat this joke:\n{expected[0]}\n\nThey said:\n{responses[-1]}\n\n"
            "Did they tell or clearly paraphrase this joke, and no other one?",
            purpose="is this the joke?",
            undecided="a paraphrase that only a judge (--judge) can settle",
            reason=f"the judge was asked whether the reply paraphrases {shorten(expected[0], 60)!r}",
        )

    @classmethod
    def make_reader(cls) -> Reader:
        return _JokeReader()


def make_joke(rng: Random) -> str:
    """A joke of the grammar: `A shy volcano joined a choir, but the echo answered first.`"""
    return f"{rng.choice(_HEROES)} {rng.choice(_ACTIONS)}, {rng.choice(_ENDINGS)}."


def _vary_joke(heroes: Sequence[str], actions: Sequence[str], endings: Sequence[str], place: int, rng: Random) -> str:
    """Joke number `place` of a test: its hero is no other one's, and its other parts are drawn again if it was "
    "told before."""
    action = actions[(place + rng.randrange(2) * len(heroes) // 2) % len(actions)]
    ending = endings[(place + rng.randrange(4) * len(endings) // 4) % len(endings)]
    return f"{heroes[place]} {action}, {ending}."


def grade_joke(reply: str, expected: str, rivals: Iterable[object]) -> Grade | None:
    """The verdict where words decide; None for a paraphrase, an allusion, or a choice between several."""
    shares = {str(joke): measure_recall(reply, str(joke)) for joke in (*rivals, expected)}
    others = [joke for joke, share in shares.items() if joke != expected and share >= _TOLD]
    said = set(split_words(reply))
    named = [joke for joke in shares if (hero := _find_hero(joke)) and hero[-1] in said]
    if (len(named) > 1 or (others and shares[expected] >= _TOLD)) and _OPEN.search(fold(reply)):
        return Grade(0.0, (f"expected only {shorten(expected, 60)!r}, leaves open which",))
    if len(others) == 1 and shares[expected] >= _TOLD:
        return _grade_choice(reply, expected, others[0])
    if others:
        return Grade(0.0, (f"expected only {shorten(expected, 60)!r}, tells also {shorten(others[0], 60)!r}",))
    if shares[expected] >= _TOLD:
        return Grade(1.0, (f"tells {shorten(expected, 60)!r}",))
    nearest = max((joke for joke in shares if joke != expected), key=shares.__getitem__, default=None)
    if nearest is not None and shares[nearest] > max(_HALF, shares[expected]):
        return Grade(0.0, (f"expected {shorten(expected, 60)!r}, tells most of {shorten(nearest, 60)!r}",))
    if _retells(reply, expected, [str(joke) for joke in rivals]):
        return Grade(1.0, (f"tells {shorten(expected, 60)!r} in other forms of its words",))
    alluded = _long_words(expected) & _long_words(reply) if not _names_hero(reply, expected) else _long_words(expected)
    if is_foreign(reply):
        return None
    if shares[expected] <= _NOT_TOLD and len(alluded) < _ALLUDED:
        return Grade(0.0, (f"expected {shorten(expected, 60)!r}, got: {shorten(reply)}",))
    return None


def _retells(reply: str, expected: str, rivals: Sequence[str]) -> bool:
    """Whether the reply has all words of the joke that tell it from others, be it in another form or order."""
    said = {reduce_word(word) for word in split_words(reply)}
    wanted = {reduce_word(word) for word in split_words(expected) if len(word) > _SHORT}
    common = [
        {reduce_word(word) for word in split_words(joke) if len(word) > _SHORT} for joke in rivals if joke != expected
    ]
    missing = len(wanted - said)
    strange = len(said) - len(wanted & said)
    others = any(len(words - said) <= len(words) / 2 for words in common)
    return missing <= len(wanted) // 6 and strange <= len(wanted) + 8 and not others and not _OPEN.search(fold(reply))


def _names_hero(reply: str, expected: str) -> bool:
    """Whether the reply points at a joke by whom it is about: `the one about the shy volcano`."""
    words, said = _find_hero(expected), split_words(reply)
    others = {split_words(one)[-1] for one in _HEROES if not expected.startswith(one)}
    named = set(words) <= set(said) or (len(said) <= _BRIEF_WORDS and words[-1:] and words[-1] in said)
    return bool(words and named) and not abstains(reply) and not others & set(said)


def _find_hero(joke: str) -> list[str]:
    """The words that name whom a joke is about; none for a joke that is not of the grammar."""
    hero = next((hero for hero in _HEROES if joke.startswith(hero)), "")
    return [word for word in split_words(hero) if word not in _ARTICLES]


_ARTICLES = ("a", "an", "the", "my", "our")
_BRIEF_WORDS = 10
_SHORT, _HALF = 3, 0.6
_OPEN = lazy_pattern(
    r"\b(?:one of (?:these|those|them|the two)|either|could (?:be|have been)"
    r"|(?:not sure|(?:can't|cannot) (?:say|tell|recall)) which)\b"
    r"|\bor\b\W{1,4}\n"
)


def _grade_choice(reply: str, expected: str, other: str) -> Grade | None:
    """Of a reply that tells two jokes: whether it weighs them and settles on one."""
    right, wrong = "jokenumberone", "jokenumbertwo"
    text = reply
    for joke, name in ((expected, right), (other, wrong)):
        text = re.sub(r"\W+".join(map(re.escape, split_words(joke))) + "[.!?]?", name, text, flags=re.IGNORECASE)
    last = _SETTLED.search(text)
    claimed = {last[1].lower()} if last else find_claims(text, (right, wrong))
    if claimed == {right}:
        return Grade(1.0, (f"settles on {shorten(expected, 60)!r}",))
    if claimed == {wrong} or not _WEIGHS.search(text):
        return Grade(0.0, (f"expected only {shorten(expected, 60)!r}, tells also {shorten(other, 60)!r}",))
    return None


_SETTLED = lazy_pattern(
    r"\b(?:must (?:have been|be)|it was|so it is|it is|answer is)[\s:\"“'*]{1,6}(jokenumber(?:one|two))\W*\Z",
    re.IGNORECASE,
)
# Whoever says such things may have chosen between two.
_WEIGHS = lazy_pattern(
    r"\b(?:not (?:that|the)|rather|instead|earlier|later|before that|after that|so it|must (?:be|have)|no|wait|second|first"
    r"|latter|former|but|think)\b",
    re.IGNORECASE,
)


def _long_words(text: str) -> set[str]:
    """The words of a text that are long enough to tell it from others."""
    return {word for word in split_words(text) if len(word) >= _LONG}


def format_elapsed(elapsed: timedelta) -> str:
    minutes = max(1, round(elapsed.total_seconds() / 60))
    parts = [(minutes // 1440, "day"), (minutes % 1440 // 60, "hour"), (minutes % 60, "minute")]
    return " ".join(f"{count} {unit}{'s' * (count != 1)}" for count, unit in parts if count)


class _JokeReader(Reader):
    """Remembers every joke with the moment at which it was told."""

    def __init__(self) -> None:
        self._told: list[tuple[datetime, str]] = []

    def answer(self, message: str, now: datetime) -> str | None:
        self._told += [(now, joke[0]) for joke in _JOKE.finditer(message)]
        asked = _WHICH.read(message)
        if asked is None or not self._told:
            return None
        minutes = sum(int(count) * _MINUTES[unit] for count, unit in _AGO.findall(asked["ago"]))
        then = now - timedelta(minutes=minutes)
        return min(self._told, key=lambda told: abs(told[0] - then))[1]
