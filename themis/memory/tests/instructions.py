"""Standing instructions: a rule, its exceptions, a set phrase, something to do later, a preference mentioned once."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import ClassVar

from themis.memory.actions import Ask, Grade, Judgement, Listen, Say, Script, Wait
from themis.memory.examples import LAST_SHARE, TestExample
from themis.memory.scoring.claims import grade_claim
from themis.memory.scoring.lists import recites, similarity
from themis.memory.scoring.words import shorten
from themis.memory.tests.invented import InventedTest
from themis.memory.tests.kind import BuiltinTest, ask_yes_or_no, whole_number
from themis.memory.tests.word_lists import CITIES

# --- parcels, by a rule with exceptions -------------------------------------------------------------------------------

STORES = ("barn", "chapel", "gatehouse", "icehouse", "loft", "stable", "vestry", "washhouse")


@dataclass(kw_only=True)
class InstructionExceptions(BuiltinTest):
    """Following an instruction with exceptions over a long time.

    Scores: perfect 1, memoryless 0, a guess one in as many as there are stores; the share of parcels sent to the right
    one. The generator applies the rule it tells: fragile goes before origin, origin before the rest. Among the parcels
    every case occurs. About 100 tokens for the rule and 30 per parcel. Interferes with no other test.
    """

    kind: ClassVar[str] = "instruction_exceptions"
    name: ClassVar[str] = "Instruction with Exceptions"
    description: ClassVar[str] = "The agent must sort parcels by a rule with exceptions that was given once."
    answers: ClassVar[Sequence[str]] = STORES

    exceptions: int = whole_number(2, least=1, most=len(STORES) - 2)
    requests: int = whole_number(5, least=lambda test: test.exceptions + 2)

    def make_example(self, number: int, rng: Random) -> TestExample:
        usual, fragile, *others = rng.sample(STORES, self.exceptions + 2)
        cities = rng.sample(CITIES, len(CITIES))
        special = dict(zip(cities, others, strict=False))
        ordinary = cities[self.exceptions :]
        rules = " ".join(f"Parcels from {city} go to the {store} instead." for city, store in special.items())
        rule = (
            f"Whenever I announce a parcel, tell me in one word where it goes. Parcels go to the {usual}. {rules} But "
            f"whatever is marked fragile goes to the {fragile}, wherever it comes from."
        )
        cases = [(rng.choice(ordinary), False), (rng.choice(list(special)), True), *((c, False) for c in special)]
        while len(cases) < self.requests:
            cases.append((rng.choice(cities), rng.random() < 0.3))
        rng.shuffle(cases)
        announced = [
            f"A parcel from {city} has arrived, {rng.randint(2, 30)} kg{', marked fragile' if breaks else ''}."
            for city, breaks in cases
        ]
        stores = [fragile if breaks else special.get(city, usual) for city, breaks in cases]
        return self.tell_and_ask(number, [rule], announced, stores)

    def needed_lines(self, example: TestExample) -> list[Sequence[int] | None]:
        return [[0] for _ in example.expected_responses]

    def evaluate(self, questions: Sequence[str], responses: Sequence[str], expected: Sequence[str]) -> Grade:
        return Grade.mean(grade_claim(*one, STORES) for one in zip(responses, expected, strict=False))


# --- choices between inns, by an arbitrary rule -----------------------------------------------------------------------

INNS = (
    "Anvil", "Blue Lobster", "Crooked Oar", "Dancing Goat", "Empty Saddle", "Falcon", "Golden Thistle", "Hammer",
    "Iron Kettle", "Jolly Miller", "King's Boot", "Laughing Trout", "Mermaid", "Nutmeg", "Old Cannon", "Painted Drum",
)  # fmt: skip
# What is told of an inn, and how the most and the least of it is called.
_ATTRIBUTES = {
    "beds": ("{} beds", "the most beds", "the fewest beds"),
    "cats": ("{} cats", "the most cats", "the fewest cats"),
    "chimneys": ("{} chimneys", "the most chimneys", "the fewest chimneys"),
    "steps": ("{} steps up to the door", "the most steps up to the door", "the fewest steps up to the door"),
    "clocks": ("{} clocks", "the most clocks", "the fewest clocks"),
    "mirrors": ("{} mirrors", "the most mirrors", "the fewest mirrors"),
}


@dataclass(kw_only=True)
class HowToThink(InventedTest):
    """Applying a rule that was given long ago.

    Scores: perfect 1, memoryless 0, a guess 1/3 with three options; the share of right choices. A choice is right if the
    reply claims one inn and the rule chooses it; the rule is arbitrary and always decides, half of the time only by its
    second part. About 60 tokens for the rule and 80 per choice. Interferes with no other test.
    With `generator: model` the model `generation_model` invents the material.
    """

    kind: ClassVar[str] = "how_to_think"
    name: ClassVar[str] = "How to Think"
    description: ClassVar[str] = "The agent is given a rule for choosing and must follow it in later choices."
    invention: ClassVar[str] = (
        "Invent an arbitrary rule by which somebody wants choices to be made, told in the first person. Then pose five choices "
        "between named options that the rule decides and common sense does not; the answer is the name of the option."
    )
    answers: ClassVar[Sequence[str]] = INNS

    dilemmas: int = whole_number(5, least=1)
    options: int = whole_number(3, least=3, most=9)

    def make_example(self, number: int, rng: Random) -> TestExample:
        first, second = rng.sample(tuple(_ATTRIBUTES), 2)
        rule = Rule(first, rng.random() < 0.5, second, rng.random() < 0.5)
        dilemmas = [_pose_dilemma(rule, self.options, rng) for _ in range(self.dilemmas)]
        return self.tell_and_ask(
            number, [rule.text], [question for question, _ in dilemmas], [answer for _, answer in dilemmas]
        )

    def grade_builtin(self, questions: Sequence[str], responses: Sequence[str], expected: Sequence[str]) -> Grade:
        return Grade.mean(grade_claim(*one, INNS) for one in zip(responses, expected, strict=False))


@dataclass(frozen=True)
class Rule:
    """First by one attribute; where that is equal, by another."""

    first: str
    first_most: bool
    second: str
    second_most: bool

    @property
    def text(self) -> str:
        first, second = _name_extreme(self.first, self.first_most), _name_extreme(self.second, self.second_most)
        return (
            f"Whenever I have to choose between inns, think like this for me: take the one with {first}. If that does "
            f"not decide it, take of those the one with {second}. Nothing else matters to me."
        )

    def choose(self, inns: dict[str, dict[str, int]]) -> str:
        signs = ((self.first, self.first_most), (self.second, self.second_most))
        return max(inns, key=lambda inn: [inns[inn][name] * (1 if most else -1) for name, most in signs])


def _pose_dilemma(rule: Rule, options: int, rng: Random) -> tuple[str, str]:
    """A choice between inns, and the one that the rule takes; half of the time only its second part decides."""
    distractor = rng.choice([name for name in _ATTRIBUTES if name not in (rule.first, rule.second)])
    inns = rng.sample(INNS, options)
    extreme = rng.randint(3, 7)
    tied = rng.sample(inns, 2 if rng.random() < 0.5 else 1)
    worse = (1, 2) if rule.first_most else (8, 9)
    seconds = rng.sample(range(1, 10), options)
    facts = {
        inn: {
            rule.first: extreme if inn in tied else rng.choice(worse),
            rule.second: seconds[place],
            distractor: rng.randint(2, 9),
        }
        for place, inn in enumerate(inns)
    }
    described = "; ".join(f"the {inn} has {_describe_inn(facts[inn], rng)}" for inn in inns)
    return f"I must choose an inn: {described}. Which one do I take?", rule.choose(facts)


def _describe_inn(facts: dict[str, int], rng: Random) -> str:
    names = rng.sample(tuple(facts), len(facts))
    parts = [_ATTRIBUTES[name][0].format(facts[name]) for name in names]
    return f"{', '.join(parts[:-1])} and {parts[-1]}"


def _name_extreme(attribute: str, most: bool) -> str:
    return _ATTRIBUTES[attribute][1 if most else 2]


# --- a phrase for an occasion -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Trigger:
    """What the user will do, what the agent is then to say, how the user does it, and a like message that is no trigger.

    No phrase to be said occurs in any message but the request.
    """

    occasion: str
    phrase: str
    messages: tuple[str, ...]
    foil: str


TRIGGERS = (
    Trigger(
        "tell you that I cannot sleep", "Count the herons on the roof",
        ("I cannot sleep tonight.", "It is two in the morning and I still cannot sleep.", "Once more I cannot sleep."),
        "I slept very well and feel rested.",
    ),
    Trigger(
        "say that I have lost my spectacles", "They are on your forehead, captain",
        ("I have lost my spectacles.", "Where are they? I have lost my spectacles.", "My spectacles! I have lost them again."),
        "I have bought new spectacles.",
    ),
    Trigger(
        "mention that it is raining", "Good weather for mushrooms and poets",
        ("It is raining here.", "Look outside, it is raining.", "It has started: it is raining."),
        "The sun is shining here.",
    ),
    Trigger(
        "complain about the noise of my neighbours", "Play the trombone until they move out",
        ("My neighbours are so noisy again.", "The noise from next door, my neighbours are unbearable.",
         "I must complain: the neighbours make such noise."),
        "My neighbours are very quiet people.",
    ),
    Trigger(
        "tell you that I missed the train", "Every missed train is a found hour",
        ("I missed the train.", "Just now I missed the train.", "Bad luck, I missed the train."),
        "I caught the train in time.",
    ),
    Trigger(
        "say that my plant looks unwell", "Read it a chapter about the sea",
        ("My plant looks unwell.", "The plant on the sill looks unwell.", "I am worried, my plant looks unwell."),
        "My plant has three new leaves.",
    ),
    Trigger(
        "mention that I burnt the toast", "Charcoal is a vegetable too",
        ("I burnt the toast.", "Oh dear, I burnt the toast.", "There is smoke: I burnt the toast."),
        "The toast came out golden.",
    ),
    Trigger(
        "tell you that my watch has stopped", "Then it is always teatime",
        ("My watch has stopped.", "I just noticed that my watch has stopped.", "My watch, it has stopped."),
        "My watch keeps perfect time.",
    ),
)  # fmt: skip
# Below this share of common words a sentence is not an attempt at the phrase.
_UNLIKE = 0.5


@dataclass(kw_only=True)
class TriggerResponse(BuiltinTest):
    """Following a standing request.

    Scores: perfect 1, memoryless 0; always saying the phrase scores 0. The score is the share of triggers that were
    answered with the phrase, minus 1 if a message of the same kind that is no trigger was answered with it too. The phrase
    counts word for word, or in a sentence that agrees with it in more than `rouge_score_threshold` of the words; only what
    is less alike, yet half the same, goes to the judge. About 30 tokens per message. Interferes with no other test.
    """

    kind: ClassVar[str] = "trigger_response"
    name: ClassVar[str] = "Trigger Response"
    description: ClassVar[str] = "The agent must answer a certain kind of message with a set phrase."
    reset_message: ClassVar[str] = "You no longer have to answer with that phrase; please forget about it."
    answers: ClassVar[Sequence[str]] = tuple(trigger.phrase for trigger in TRIGGERS)

    trigger_activations: int = whole_number(3, least=1)
    rouge_score_threshold: float = 0.75

    def make_example(self, number: int, rng: Random) -> TestExample:
        trigger = self.deal(TRIGGERS, number)
        messages = [rng.choice(trigger.messages) for _ in range(self.trigger_activations)]
        expected: list[str | None] = [trigger.phrase] * self.trigger_activations
        foil = rng.randint(0, self.trigger_activations)
        messages.insert(foil, trigger.foil)
        expected.insert(foil, None)
        request = f'Whenever I {trigger.occasion}, answer with the sentence "{trigger.phrase}". At no other time.'
        return self.tell_and_ask(number, [request], messages, expected)

    def ideal_answers(self, example: TestExample) -> list[str]:
        return [f"{phrase}." if phrase else "I am glad to hear that." for phrase in example.expected_responses]

    def needed_lines(self, example: TestExample) -> list[Sequence[int] | None]:
        return [[0] for _ in example.expected_responses]

    def evaluate(self, questions: Sequence[str], responses: Sequence[str], expected: Sequence[str | None]) -> Judgement:
        phrase = next(phrase for phrase in expected if phrase)
        hits, false_alarms, reasons = 0, 0, []
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
            hits += bool(uttered and wanted)
            false_alarms += bool(uttered and not wanted)
            reasons.append(f"{'says' if uttered else 'does not say'} {phrase!r}: {shorten(reply, 60)}")
        triggers = sum(1 for wanted in expected if wanted)
        if false_alarms:
            reasons.append("says it where it was not asked for")
        return Grade.share(hits / triggers - (1 if false_alarms else 0), 1, *reasons)


def says_phrase(reply: str, phrase: str, threshold: float) -> bool | None:
    """Whether the phrase was said; None where a sentence resembles it too much for a no and too little for a yes."""
    if recites(reply, phrase):
        return True
    alike = max((similarity(sentence, phrase) for sentence in re.split(r"[.!?\n]+", reply[:20_000])), default=0.0)
    return True if alike > threshold else None if alike > _UNLIKE else False


# --- a quotation in a later reply -------------------------------------------------------------------------------------

# Of authors whose works are in the public domain, one of each author.
QUOTATIONS = (
    ("It is not down in any map; true places never are.", "Herman Melville"),
    ("I am no bird; and no net ensnares me.", "Charlotte Brontë"),
    ("Beware; for I am fearless, and therefore powerful.", "Mary Shelley"),
    ("The mass of men lead lives of quiet desperation.", "Henry David Thoreau"),
    ("A foolish consistency is the hobgoblin of little minds.", "Ralph Waldo Emerson"),
    ("I can resist everything except temptation.", "Oscar Wilde"),
    ("All the world's a stage, and all the men and women merely players.", "William Shakespeare"),
    ("A thing of beauty is a joy for ever.", "John Keats"),
    ("It was the best of times, it was the worst of times.", "Charles Dickens"),
    ("No man is an island, entire of itself.", "John Donne"),
    ("Better to reign in Hell, than serve in Heaven.", "John Milton"),
    ("It is a narrow mind which cannot look at a subject from various points of view.", "George Eliot"),
    ("If you look for perfection, you'll never be content.", "Leo Tolstoy"),
    ("Hope is the thing with feathers that perches in the soul.", "Emily Dickinson"),
    ("To err is human; to forgive, divine.", "Alexander Pope"),
)
_ORDINALS = {2: "second", 3: "third", 4: "fourth", 5: "fifth", 6: "sixth", 7: "seventh", 8: "eighth"}


@dataclass(kw_only=True)
class ProspectiveMemory(BuiltinTest):
    """Remembering to do something.

    Scores: perfect 1, memoryless 0; quoting in every reply scores 0. Right is the quotation, word for word, in the n-th
    reply to anyone counted from the request, and in none before. About 60 tokens, plus up to seven exchanges of others.
    Interferes with no other test: the quotation is a line more in a reply, which no other test minds.
    """

    kind: ClassVar[str] = "prospective_memory"
    name: ClassVar[str] = "Prospective Memory"
    description: ClassVar[str] = "The agent must append a quotation to its n-th reply, and to no other."
    reset_message: ClassVar[str] = "Please forget the quotation and what I asked you to do with it."
    answers: ClassVar[Sequence[str]] = tuple(quotation for quotation, _ in QUOTATIONS)

    def make_example(self, number: int, rng: Random) -> TestExample:
        quotation, author = self.deal(QUOTATIONS, number)
        place = rng.choice(tuple(_ORDINALS))
        request = (
            f"Append the quotation from {author} that I gave you to your {_ORDINALS[place]} reply from now on, and to no "
            "other one. Your reply to this message is the first; all your replies count, whatever they are about."
        )
        return TestExample(
            dataset=self,
            example_id=str(number),
            script=[f"“{quotation}” – {author}", request],
            waits=[Wait(until_share=LAST_SHARE), Wait()],
            expected_responses=[[quotation, author, place]],
        )

    def play(self, example: TestExample) -> Script:
        quotation, _, place = example.expected_responses[0]
        yield Say(example.script[0])
        yield example.waits[0]
        replies = [(yield Ask(example.script[1], ideal="I will.", needs=()))]
        while len(replies) < place:
            due = len(replies) == place - 1
            reply = yield Listen(ideal=quotation if due else None)
            if reply is None:
                yield Grade.failure(f"the conversation ended after {len(replies)} of {place} replies")
                return
            replies.append(reply)
        yield grade_recital(replies, quotation, place)


def grade_recital(replies: Sequence[str], quotation: str, place: int) -> Grade:
    """1 if the quotation is in reply number `place`, counted from 1, and in no other up to there."""
    quoting = [number for number, reply in enumerate(replies[:place], start=1) if recites(reply, quotation)]
    told = f"in replies {', '.join(map(str, quoting))}" if quoting else "in none"
    return Grade.when(
        quoting == [place], f"{shorten(quotation, 60)!r} belongs into reply {place} only, it is {told} of {place}"
    )


# --- preferences ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Preference:
    statement: str
    request: str
    fitting: tuple[str, ...]
    violating: tuple[str, ...]


PREFERENCES = (
    Preference(
        "I must not eat nuts of any kind.", "Which cake shall I order for Sunday",
        ("the lemon sponge", "the cherry strudel", "the poppy seed cake"),
        ("the hazelnut torte", "the walnut roll", "the pecan pie"),
    ),
    Preference(
        "I am afraid of heights.", "Where shall we go on our outing",
        ("the botanical garden", "the tram museum", "the duck pond"),
        ("the rope bridge", "the cable car", "the bell tower"),
    ),
    Preference(
        "I refuse to fly, whatever the distance.", "How shall I travel to the congress",
        ("the night train", "the coach", "the ferry"),
        ("the seaplane", "the charter flight", "the helicopter"),
    ),
    Preference(
        "I am of no use to anyone before ten in the morning.", "Which course shall I sign up for",
        ("evening pottery", "the afternoon choir", "life drawing at eight in the evening"),
        ("sunrise yoga", "the breakfast debate", "the early birds' swimming"),
    ),
    Preference(
        "Wool makes my skin itch terribly.", "What shall I wear to the wedding",
        ("the linen suit", "the silk blouse", "the cotton velvet jacket"),
        ("the merino cardigan", "the tweed jacket", "the cashmere pullover"),
    ),
    Preference(
        "I cannot bear stories with ghosts in them.", "Which play shall I book",
        ("The Gardener's Wedding", "A Quarrel over Cheese", "The Miser of Lyon"),
        ("The Phantom Lodger", "Séance at Seven", "The Haunted Spinet"),
    ),
    Preference(
        "I cannot swim.", "Which trip shall I give my nephew and myself for his birthday",
        ("the steam railway", "the deer park", "the planetarium"),
        ("the kayak tour", "the snorkelling day", "the white-water rafting"),
    ),
    Preference(
        "I am allergic to cats.", "Which holiday flat shall I take",
        ("the bookshop flat", "the canal flat", "the terrace flat"),
        ("the cat breeder's flat", "the kitten rescue house", "the flat over the cat hotel"),
    ),
)  # fmt: skip


@dataclass(kw_only=True)
class PreferenceFollowing(BuiltinTest):
    """Using what is known without being asked for it.

    Scores: perfect 1, memoryless 0, a guess 1/3; the share of requests that were advised well. Exactly one of three
    options fits what the user said of themselves; naming several is wrong. About 15 tokens per preference and 40 per
    request. Interferes with restaurant, where dishes are chosen too.
    """

    kind: ClassVar[str] = "preference"
    name: ClassVar[str] = "Preference Following"
    description: ClassVar[str] = "The agent must give advice that fits preferences mentioned long before."
    interferes_with: ClassVar[frozenset[str]] = frozenset({"restaurant"})
    answers: ClassVar[Sequence[str]] = tuple(
        option for preference in PREFERENCES for option in (*preference.fitting, *preference.violating)
    )

    preferences: int = whole_number(3, least=1, most=len(PREFERENCES))

    def make_example(self, number: int, rng: Random) -> TestExample:
        chosen = rng.sample(PREFERENCES, self.preferences)
        requests, expected = [], []
        for preference in rng.sample(chosen, len(chosen)):
            fitting = rng.choice(preference.fitting)
            options = rng.sample((fitting, *rng.sample(preference.violating, 2)), 3)
            requests.append(f"{preference.request}: {options[0]}, {options[1]} or {options[2]}? Name one of them.")
            expected.append(fitting)
        return self.tell_and_ask(number, [preference.statement for preference in chosen], requests, expected)

    def needed_lines(self, example: TestExample) -> list[Sequence[int] | None]:
        told = {option: one.statement for one in PREFERENCES for option in one.fitting}
        return [example.lines_with(told.get(fitting, fitting)) for fitting in example.expected_responses]

    def evaluate(self, questions: Sequence[str], responses: Sequence[str], expected: Sequence[str]) -> Grade:
        options = [_strip_article(option) for option in self.answers]
        return Grade.mean(
            grade_claim(reply, _strip_article(fitting), options)
            for reply, fitting in zip(responses, expected, strict=False)
        )


def _strip_article(option: str) -> str:
    """The option without its article, which nobody must repeat."""
    return option.removeprefix("the ").removeprefix("The ").removeprefix("A ")
