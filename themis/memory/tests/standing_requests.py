"""Standing requests: a set sentence for an occasion, a quotation in a later reply."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from difflib import SequenceMatcher
from random import Random
from typing import ClassVar

from themis.core.patterns import lazy_pattern
from themis.memory.actions import Grade, Judgement, Listen, Say, Script, Wait
from themis.memory.examples import LAST_SHARE, TestExample
from themis.memory.phrasing import Phrasing, any_of
from themis.memory.reader import Reader
from themis.memory.scoring.languages import is_foreign
from themis.memory.scoring.lists import recites, similarity
from themis.memory.scoring.nearness import is_other_spelling
from themis.memory.scoring.words import fold, shorten, split_words
from themis.memory.tests.kind import BuiltinTest, ask_yes_or_no, whole_number
from themis.memory.tests.naming import PERSON, make_namesake, make_person

# --- a sentence for an occasion ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Occasion:
    """Something that happens to a person time and again.

    Args:
        request: What the user will tell, after `that {who}`.
        told: How the user tells it.
        averted: What sounds alike and is not it.
    """

    request: str
    told: Phrasing
    averted: Phrasing


def _make_occasion(request: str, told: Sequence[str], averted: Sequence[str]) -> Occasion:
    return Occasion(request, Phrasing(*told, who=PERSON), Phrasing(*averted, who=PERSON))


# No sentence to be said has a word in common with any of these beyond the smallest ones.
OCCASIONS = (
    _make_occasion(
        "cannot sleep",
        ("{who} cannot sleep [again|tonight].", "It is two in the morning and {who} lies awake once more.",
         "{who} was awake [all night|until dawn][ again|, poor thing].",
         "Another night without a wink of sleep for {who}."),
        ("{who} slept like a log [last night|for once].", "{who} was asleep before ten [last night|yesterday]."),
    ),
    _make_occasion(
        "has lost the spectacles",
        ("{who} has lost the spectacles.", "The spectacles of {who} are nowhere to be found.",
         "{who} is looking everywhere for those spectacles [again|once more].",
         "Guess who is without spectacles again: {who}."),
        ("{who} has bought new spectacles.", "{who} has found the spectacles after all."),
    ),
    _make_occasion(
        "missed the train",
        ("{who} missed the train.", "{who} came to the station two minutes late[ again|], and the train was gone.",
         "The train left without {who}.", "{who} is stuck at the station, having just seen the train leave."),
        ("{who} caught the train in time.", "{who} took the bus, the train being full."),
    ),
    _make_occasion(
        "has burnt the dinner",
        ("{who} has burnt the dinner.", "There is smoke in the kitchen of {who}, and the roast is black.",
         "{who} forgot the stew on the stove until it was charred.", "Black potatoes again at the table of {who}."),
        ("{who} cooked a perfect dinner.", "{who} ordered dinner in[, for once|]."),
    ),
    _make_occasion(
        "complains about the neighbours",
        ("{who} has been complaining about the neighbours.", "The neighbours are too loud for {who}[, as always|].",
         "{who} cannot bear the people next door any longer, I was told at length.",
         "An hour on the telephone with {who} about nothing but the "
         "neighbours and their noise."),
        ("{who} speaks highly of the neighbours.", "The neighbours have invited {who} to a feast."),
    ),
    _make_occasion(
        "has quarrelled with the landlord",
        ("{who} has quarrelled with the landlord.", "{who} and the landlord are not on speaking terms again.",
         "There was another row between {who} and the landlord.",
         "The landlord shouted at {who} in the stairwell, and {who} shouted back."),
        ("{who} has made peace with the landlord.", "{who} has a new landlord, a quiet man."),
    ),
    _make_occasion(
        "has a cold",
        ("{who} has a cold.", "{who} is [sneezing and coughing|in bed with a running nose] again.",
         "Poor {who}, nothing but sneezing [since Monday|all day].", "{who} has caught it too, the cold that goes round."),
        ("{who} is over the cold.", "{who} has escaped the cold that goes round."),
    ),
    _make_occasion(
        "has locked the key inside",
        ("{who} has locked the key inside.", "{who} stands before a shut door, and the key is on the wrong side of it.",
         "The door fell shut behind {who}, with the key still on the hook inside.",
         "{who} cannot get in again, for the key is in there."),
        ("{who} had a spare key made.", "{who} found the key in the other pocket."),
    ),
    _make_occasion(
        "has backed out of a dinner",
        ("{who} has backed out of a dinner.", "{who} will not come to dinner after all[, once more|].",
         "An excuse from {who} again, and a chair too many at the table.", "{who} has cried off at the last minute."),
        ("{who} is coming to dinner, and early at that.", "{who} has promised to stay for dessert as well."),
    ),
    _make_occasion(
        "has lost at cards",
        ("{who} has lost at cards.", "{who} came home from the card table with empty pockets.",
         "The cards were against {who} [again|all evening].", "Not one hand went to {who} at cards last night."),
        ("{who} has won at cards.", "{who} no longer plays cards."),
    ),
    _make_occasion(
        "has forgotten the umbrella",
        ("{who} has forgotten the umbrella.", "{who} left the umbrella on the bus[ again|].",
         "{who} arrived soaked, for the umbrella stood at home.", "The umbrella of {who} is with lost property once more."),
        ("{who} never goes out without the umbrella now.", "{who} lent me the umbrella."),
    ),
    _make_occasion(
        "wants to change jobs",
        ("{who} wants to change jobs.", "{who} is writing applications again.",
         "{who} has had enough of that office and is looking for another.", "Once more {who} talks of handing in notice."),
        ("{who} likes the job better than ever.", "{who} has been promoted."),
    ),
    _make_occasion(
        "has broken a cup",
        ("{who} has broken a cup.", "A cup slipped from the hands of {who} and is in a hundred pieces.",
         "{who} is sweeping up a cup[ again|].", "One cup fewer in the cupboard of {who}, and shards in the bin."),
        ("{who} has never broken a cup yet.", "{who} has bought six new cups."),
    ),
    _make_occasion(
        "has bought a lottery ticket",
        ("{who} has bought a lottery ticket.", "{who} is at it again, with a ticket for the lottery on the fridge.",
         "The lottery has another customer in {who}.", "{who} spent the change on the lottery[ again|, as every week]."),
        ("{who} has given up the lottery for good.", "{who} laughed at everybody who plays the lottery."),
    ),
    _make_occasion(
        "is late with the rent",
        ("{who} is late with the rent.", "The rent of {who} is overdue[ again|].",
        "{who} has not paid the rent yet, and it is past the tenth.",
         "There is a reminder about the rent in the letter box of {who}."),
        ("{who} has paid the rent for the whole year.", "{who} got a part of the rent back."),
    ),
    _make_occasion(
        "has a flat tyre",
        ("{who} has a flat tyre.", "{who} is pushing the bicycle home on a flat tyre.",
        "A nail again, and the tyre of {who} is flat.",
         "{who} sits at the roadside with a puncture."),
        ("{who} has new tyres on the bicycle.", "{who} sold the bicycle, tyres and all."),
    ),
)  # fmt: skip
# The sentence to be said: what to do to what, and where.
_VERBS = (
    "Count", "Polish", "Whistle to", "Salute", "Varnish", "Untangle", "Whitewash", "Applaud", "Alphabetise", "Photograph",
    "Weigh", "Serenade", "Unroll", "Sketch", "Baptise", "Starch", "Hoist", "Unscrew", "Sprinkle", "Stack",
)  # fmt: skip
_MADE_OF = (
    "brass", "paper", "velvet", "copper", "marble", "wicker", "pewter", "amber", "bamboo", "ivory", "plaster",
    "cork", "tin",
    "quartz", "felt", "rubber",
)  # fmt: skip
_THINGS = (
    "herons", "lanterns", "trumpets", "anchors", "thimbles", "hourglasses", "gargoyles", "pelicans", "compasses",
    "accordions",
    "chandeliers", "flamingos", "binoculars", "metronomes", "periscopes", "tambourines", "unicorns", "walruses",
    "xylophones",
    "zeppelins", "abacuses", "bagpipes", "cockatoos", "dominoes",
)  # fmt: skip
_SPOTS = (
    "behind the lighthouse", "beneath the viaduct", "beside the fountain", "above the aquarium", "near the observatory",
    "along the promenade", "opposite the carousel", "under the grandstand", "outside the planetarium",
    "past the drawbridge",
)  # fmt: skip
_PHRASE = rf"(?:{any_of(_VERBS)}) the (?:{any_of(_MADE_OF)}) (?:{any_of(_THINGS)}) (?:{any_of(_SPOTS)})"
_REQUEST = Phrasing(
    'Whenever I tell you that {who} {occasion}, answer with the sentence "{phrase}". At no other time.',
    'I have a standing request: each time you hear from me that {who} {occasion}, say "{phrase}" in your reply, and '
    "never otherwise.",
    'Should I mention that {who} {occasion}, in whatever words, then reply "{phrase}", every time, but only then.',
    'It is a joke between us: "{phrase}" is what you [say|answer] whenever I report that {who} {occasion}, and on '
    "no other occasion.",
    'There is a sentence for the days on which {who} {occasion}, namely "{phrase}", and you are to say it whenever '
    "I tell you of such a "
    "day, not before and not otherwise.",
    'Please keep the sentence "{phrase}" for those messages in which I tell you that {who} {occasion}; say it then, '
    "each time, and do "
    "not say it when it is about [anybody|somebody] else.",
    'Do me a favour: if ever I write that {who} {occasion}, I want to read "{phrase}" in your answer, each time, and nowhere '
    "else.",
    '"{phrase}" is to be your comment each time I let you know that {who} {occasion}, and on no other matter.',
    "My late aunt had a saying for it. Whenever you learn from me that {who} {occasion}, say what she would have said: "
    '"{phrase}". Keep it for that.',
    'You will hear a lot about {who} from me. Only if it is that {who} {occasion}, answer "{phrase}", and do so every time.',
    who=PERSON,
    occasion=any_of(occasion.request for occasion in OCCASIONS),
    phrase=_PHRASE,
)
# Below this share of common words a sentence is not an attempt at the phrase.
_UNLIKE = 0.5


@dataclass(kw_only=True)
class TriggerResponse(BuiltinTest):
    """Following a standing request.

    Scores: perfect 1, memoryless 0; always saying the phrase scores 0. The score is the share of triggers that were
    answered with the phrase, minus 1 if a message that is no trigger was answered with it too. The request is about one
    person; two messages look like triggers and are none: the same happens to a namesake, and the person fares otherwise. The
    phrase counts word for word, or in a sentence about the same things that agrees with it in more than
    `rouge_score_threshold` of the words; only
    what is less alike, yet half the same, goes to the judge. About 25 tokens per message. Interferes with no other test.
    """

    kind: ClassVar[str] = "trigger_response"
    name: ClassVar[str] = "Trigger Response"
    description: ClassVar[str] = "The agent must answer a certain kind of message with a set phrase."
    reset_message: ClassVar[str] = "You no longer have to answer with that phrase; please forget about it."

    trigger_activations: int = whole_number(3, least=1)
    rouge_score_threshold: float = 0.75

    def make_example(self, number: int, rng: Random) -> TestExample:
        who = make_person(self.world, rng)
        namesake = make_namesake(self.world, rng, who)
        occasion = rng.choice(OCCASIONS)
        phrase = self.world.make(rng, "set sentence", make_phrase)
        forms = rng.sample(range(len(occasion.told)), len(occasion.told))
        messages = [
            occasion.told.render(forms[place % len(forms)], rng, who=who) for place in range(self.trigger_activations)
        ]
        expected: list[str | None] = [phrase] * self.trigger_activations
        for foil in (occasion.told.say(rng, who=namesake), occasion.averted.say(rng, who=who)):
            place = rng.randint(0, len(messages))
            messages.insert(place, foil)
            expected.insert(place, None)
        request = self.chat(rng, _REQUEST.say(rng, who=who, occasion=occasion.request, phrase=phrase))
        return self.tell_and_ask(number, [request], messages, expected, needed=[[0]] * len(messages))

    def ideal_answers(self, example: TestExample) -> list[str]:
        return [f"{phrase}." if phrase else "Thank you for telling me." for phrase in example.expected_responses]

    def every_answer(self, example: TestExample) -> list[object]:
        rng = self.random("every answer")
        return [*(phrase for phrase in example.expected_responses if phrase), *(make_phrase(rng) for _ in range(20))]

    def evaluate(self, questions: Sequence[str], responses: Sequence[str], expected: Sequence[str | None]) -> Judgement:
        phrase = next((phrase for phrase in expected if phrase), None)
        if phrase is None:
            return Grade.failure("the test does not say which phrase it expects")
        grades = []
        for reply, wanted in zip(responses, expected, strict=False):
            uttered = says_phrase(reply, phrase, self.rouge_score_threshold)
            if uttered is None:
                ruling = yield from ask_yes_or_no(
                    f"Somebody was to say: {phrase}\n\nThey said:\n{reply}\n\n"
                    "Does this contain that sentence, if perhaps in slightly other words?",
                    purpose="was the phrase said?",
                    undecided=f"only a judge (--judge) can tell if it says {phrase!r}",
                    reason=f"the judge was asked whether it says {phrase!r}",
                )
                if ruling.failed:
                    return ruling
                uttered = ruling.score == 1
            said = f"{'says' if uttered else 'does not say'} {phrase!r}: {shorten(reply, 60)}"
            alarm = (" where it was not asked for",) if uttered and not wanted else ()
            grades.append(Grade.when(uttered == bool(wanted), said, *alarm))
        hits = sum(grade.score for grade, wanted in zip(grades, expected, strict=False) if wanted)
        false_alarm = any(not grade.score for grade, wanted in zip(grades, expected, strict=False) if not wanted)
        triggers = sum(1 for wanted in expected if wanted)
        return Grade.combine(hits / triggers - (1 if false_alarm else 0), grades)

    @classmethod
    def make_reader(cls) -> Reader:
        return _TriggerReader()


def make_phrase(rng: Random) -> str:
    """A sentence that nobody says by chance: `Count the brass herons behind the lighthouse`."""
    return f"{rng.choice(_VERBS)} the {rng.choice(_MADE_OF)} {rng.choice(_THINGS)} {rng.choice(_SPOTS)}"


def says_phrase(reply: str, phrase: str, threshold: float) -> bool | None:
    """Whether the phrase was said; None where a sentence resembles it too much for a no and too little for a yes."""
    if recites(reply, phrase):
        return None if _UNSAID.search(fold(reply)) else True
    nearest = max(re.split(r"[.!?\n]+", reply[:20_000]), key=lambda sentence: similarity(sentence, phrase))
    alike = similarity(nearest, phrase)
    if alike > threshold:
        return not _exchanges_thing(nearest, phrase)
    if is_foreign(nearest) and abs(len(split_words(reply)) - len(split_words(phrase))) <= _SHORT:
        return None
    said, wanted = ({word for word in split_words(text) if len(word) > _TINY} for text in (reply, phrase))
    replaced = min(len(wanted - said), len(said - wanted)) if len(split_words(reply)) <= _BRIEF_WORDS else 0
    return None if alike > _UNLIKE and replaced < _FEW_MISSING else False


def _exchanges_thing(sentence: str, phrase: str) -> bool:
    """Whether a sentence speaks of other things than the phrase, or says another word of such phrases in place of its own."""
    said, wanted = split_words(sentence), split_words(phrase)
    missing = _OWN_THINGS & {word for word in wanted if not any(_is_alike(word, one) for one in said)}
    strange = {word for word in said if not any(_is_alike(word, one) for one in wanted)}
    return bool(strange) and (bool(missing) or bool(strange & _OWN_WORDS and _OWN_THINGS & set(wanted)))


def _is_alike(word: str, other: str) -> bool:
    return word == other or is_other_spelling(word, other) or SequenceMatcher(None, word, other).ratio() >= _ALIKE


# Two spellings of one word, as a rule.
_ALIKE = 0.75
_OWN_THINGS = frozenset(word for thing in _THINGS for word in split_words(thing))
_OWN_WORDS = _OWN_THINGS | {word for one in (*_VERBS, *_MADE_OF) for word in split_words(one)}


# Speaks of the phrase instead of saying it.
_UNSAID = lazy_pattern(
    r"\b(?:no need to say|(?:n't|not) (?:going to |have to |need to )?say|instead of saying|without saying"
    r"|not the (?:time|case|day) for)\b"
)


class _TriggerReader(Reader):
    """Remembers every such request, and for whom it is."""

    def __init__(self) -> None:
        self._phrases: dict[tuple[str, str], str] = {}

    def answer(self, message: str, now: datetime) -> str | None:
        requested = _REQUEST.read(message)
        if requested is not None:
            self._phrases[requested["who"], requested["occasion"]] = requested["phrase"]
            return None
        for occasion in OCCASIONS:
            for told in occasion.told.read_all(message):
                if (phrase := self._phrases.get((told["who"], occasion.request))) is not None:
                    return f"{phrase}."
        return None


# --- a quotation in a later reply -------------------------------------------------------------------------------------

_WORTHS = (
    "patience", "silence", "courage", "candour", "thrift", "mercy", "doubt", "leisure", "ambition", "gratitude", "solitude",
    "vanity", "wisdom", "laughter", "sorrow", "friendship", "honesty", "envy", "habit", "memory",
)  # fmt: skip
_FIGURES = (
    "harvest", "mirror", "candle", "ladder", "vineyard", "river", "shadow", "bridge", "beacon", "coin", "winter coat",
    "locked drawer", "borrowed horse", "crooked path", "silver spoon", "closed book", "broken oath", "patient tailor",
    "long staircase", "torn letter",
)  # fmt: skip
_SAYING = Phrasing(
    "{worth} is a {figure} that nobody dares to inherit.",
    "He who mistakes {worth} for {other} has never carried a {figure}.",
    "Give me {worth}, and I shall ask no {figure} for directions.",
    "Where {worth} goes on foot, {other} must learn to travel with a {figure}.",
    "There is more {worth} in a {figure} than in all the {other} of kings.",
    "What {worth} builds by candlelight, {other} will pawn for a {figure}.",
    "Beware of {worth} when it comes dressed as a {figure}.",
    "No {figure} was ever improved by {worth}, and few were spoilt by {other}.",
    worth=any_of(_WORTHS),
    other=any_of(_WORTHS),
    figure=any_of(_FIGURES),
)
_QUOTED = Phrasing(
    "“{quotation}” – {author}.",
    "I came across a line by {author} [today|in the paper]: “{quotation}”",
    "Keep this for me, it is from {author}: “{quotation}”",
    "“{quotation}” is what {author} [once wrote|is said to have said].",
    "My calendar has this by {author} for today: “{quotation}”",
    "{author} put it well: “{quotation}”",
    "Do you like the words of {author}, “{quotation}”, as much as I do?",
    "Over the door of the library they have carved “{quotation}”, which is by {author}.",
    "Somebody at the next table kept quoting {author}: “{quotation}”",
    "I am told that {author} ended every letter with this: “{quotation}”",
    author=PERSON,
    quotation=r"[^“”]+",
)
_ORDINALS = {2: "second", 3: "third", 4: "fourth", 5: "fifth", 6: "sixth", 7: "seventh", 8: "eighth"}
_LATER = Phrasing(
    "Add the quotation from {author} that I gave you to your {place} reply from now on, as a last line of its own "
    "below whatever "
    "else you say there, even if that reply is wanted in a certain form; to no other reply. Your reply to this "
    "message is the "
    "first; all your replies count, whatever they are about.",
    "Count your replies, the one to this message being the first and every one counting, whoever it answers: the "
    "{place} is to "
    "end with the quotation from {author} that I gave you, on a line of its own after everything else, even where a set "
    "sentence, a list or a single word is asked for; no other reply is to contain it.",
    "I should like to be surprised: let your {place} reply, counting this coming one as the first and leaving none "
    "out, close "
    "with the words of {author} that I gave you, in a last line of their own, whatever that reply is about and in "
    "whatever form "
    "it was asked for; leave them out of all the others.",
    "Please put the words by {author} that I gave you under your {place} reply, as a last line after everything else. All "
    "replies count from now on, whatever they are about, your answer to this one being the first. Do it even if that reply "
    "should consist of a list or a set sentence, and do it in no other reply.",
    author=PERSON,
    place=any_of(_ORDINALS.values()),
)


@dataclass(kw_only=True)
class ProspectiveMemory(BuiltinTest):
    """Remembering to do something.

    Scores: perfect 1, memoryless 0; quoting in every reply scores 0. Right is the quotation, word for word, in the n-th
    reply to anyone counted from the request, and in none before; a namesake of its author is quoted too. About 150 tokens,
    plus up to seven exchanges of others. Interferes with no other test: the quotation is a line more in a reply, which no
    other test minds.
    """

    kind: ClassVar[str] = "prospective_memory"
    name: ClassVar[str] = "Prospective Memory"
    description: ClassVar[str] = "The agent must append a quotation to its n-th reply, and to no other."
    reset_message: ClassVar[str] = "Please forget the quotation and what I asked you to do with it."

    def make_example(self, number: int, rng: Random) -> TestExample:
        author = make_person(self.world, rng)
        quotation, other = (self.world.make(rng, "quotation", make_quotation) for _ in range(2))
        place = rng.choice(tuple(_ORDINALS))
        # The one that counts comes first: the newest is not the right one.
        quotations = [
            self.chat(rng, _QUOTED.say(rng, quotation=quotation, author=author)),
            self.chat(rng, _QUOTED.say(rng, quotation=other, author=make_namesake(self.world, rng, author))),
        ]
        return TestExample(
            dataset=self,
            example_id=str(number),
            script=[*quotations, _LATER.say(rng, author=author, place=_ORDINALS[place])],
            waits=[Wait(until_share=LAST_SHARE / 2), Wait(until_share=LAST_SHARE), Wait()],
            expected_responses=[[quotation, author, place]],
        )

    def needed_lines(self, example: TestExample) -> list[Sequence[int] | None]:
        return [example.lines_with(example.expected_responses[0][0])]

    def every_answer(self, example: TestExample) -> list[object]:
        rng = self.random("every answer")
        return [example.expected_responses[0][0], *(make_quotation(rng) for _ in range(20))]

    def play(self, example: TestExample) -> Script:
        quotation, _, place = example.expected_responses[0]
        for line, wait in zip(example.script[:-1], example.waits, strict=False):
            yield Say(line)
            yield wait
        replies = [(yield Say(example.script[-1]))]
        while len(replies) < place:
            due = len(replies) == place - 1
            reply = yield Listen(ideal=quotation if due else None)
            if reply is None:
                yield Grade.failure(f"the conversation ended after {len(replies)} of {place} replies")
                return
            replies.append(reply)
        yield grade_recital(replies, quotation, place)

    @classmethod
    def make_reader(cls) -> Reader:
        return _QuotationReader()


def make_quotation(rng: Random) -> str:
    """A line that nobody has ever written."""
    worth, other = rng.sample(_WORTHS, 2)
    return _SAYING.say(rng, worth=worth, other=other, figure=rng.choice(_FIGURES))


def grade_recital(replies: Sequence[str], quotation: str, place: int) -> Grade:
    """1 if the quotation is in reply number `place`, counted from 1, and in no other up to there."""
    quoting = [number for number, reply in enumerate(replies[:place], start=1) if quotes(reply, quotation)]
    told = f"in replies {', '.join(map(str, quoting))}" if quoting else "in none"
    return Grade.when(
        quoting == [place], f"{shorten(quotation, 60)!r} belongs into reply {place} only, it is {told} of {place}"
    )


def quotes(reply: str, quotation: str) -> bool:
    """Whether a reply repeats a quotation, be it with a word in another spelling: spoiled for spoilt."""
    if recites(reply, quotation):
        return True
    wanted, words = split_words(quotation), split_words(reply)
    for at in range(min(len(words) - len(wanted), _MOST_WORDS) + 1):
        pairs = list(zip(words[at : at + len(wanted)], wanted, strict=True))
        other = [pair for pair in pairs if pair[0] != pair[1]]
        if len(other) == 1 and (set(other[0]) == {"a", "an"} or _is_other_spelling(*other[0])):
            return True
    return False


def _is_other_spelling(word: str, meant: str) -> bool:
    return len(meant) > _SHORT and is_other_spelling(word, meant)


# A longer reply is looked through no further.
_MOST_WORDS, _SHORT, _TINY = 2_000, 4, 3
# With so many of its words replaced a phrase is another one.
_FEW_MISSING, _BRIEF_WORDS = 2, 12


class _QuotationReader(Reader):
    """Remembers who is quoted with what, and counts replies where that was asked for."""

    def __init__(self) -> None:
        self._quotations: dict[str, str] = {}
        # For an author how many replies are left, the one with the quotation included.
        self._left: dict[str, int] = {}

    def answer(self, message: str, now: datetime) -> str | None:
        for told in _QUOTED.read_all(message):
            self._quotations[told["author"]] = told["quotation"]
        if (asked := _LATER.read(message)) is not None:
            self._left[asked["author"]] = next(place for place, word in _ORDINALS.items() if word == asked["place"])
        return None

    def extend(self, message: str, reply: str, now: datetime) -> str:
        due = [
            self._quotations[author] for author, left in self._left.items() if left == 1 and author in self._quotations
        ]
        return "\n".join([reply, *due])

    def observe(self, message: str, reply: str, now: datetime) -> None:
        self._left = {author: left - 1 for author, left in self._left.items() if left > 1}
