"""Things told at once that must be given back in detail: facts, a procedure, a notice word for word, a table of codes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from random import Random
from typing import ClassVar

from themis.memory.actions import Grade
from themis.memory.examples import TestExample
from themis.memory.scoring.claims import grade_answers
from themis.memory.scoring.lists import grade_passage
from themis.memory.scoring.words import find_correction, shorten
from themis.memory.tests.invented import InventedTest
from themis.memory.tests.kind import BuiltinTest, whole_number

# --- an island that does not exist ------------------------------------------------------------------------------------

# Statement, question, possible answers. No answer of one kind occurs in another.
_ISLAND_FACTS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("The capital of {island} is {answer}.", "What is the capital of {island}?",
     ("Torvane", "Ulmeston", "Brackwick", "Quenhaven", "Sildoma", "Harrowmere")),
    ("{island} is ruled by Queen {answer}.", "Which queen rules {island}?",
     ("Ysolde", "Maravel", "Thessaly", "Ondine", "Perpetua", "Ermengard")),
    ("People on {island} pay in {answer}.", "In which currency do people pay on {island}?",
     ("korrins", "pellas", "drubbins", "ostrals", "veshes", "moidos")),
    ("The longest river of {island} is the {answer}.", "What is the longest river of {island} called?",
     ("Ossel", "Grindle", "Vaunt", "Tarrow", "Lisk", "Eddermoor")),
    ("The emblem of {island} shows a {answer}.", "Which animal does the emblem of {island} show?",
     ("heron", "badger", "lynx", "stag beetle", "porpoise", "hedgehog")),
    ("Every meal on {island} contains {answer}.", "Which food does every meal on {island} contain?",
     ("chestnuts", "seaweed", "goat cheese", "pickled plums", "barley", "smoked eel")),
    ("The great feast of {island} is held in honour of {answer}.", "In whose honour is the great feast of {island} held?",
     ("the lamplighters", "the midwives", "the bell founders", "the beekeepers", "the well diggers", "the net menders")),
    ("It is forbidden on {island} to {answer}.", "What is it forbidden to do on {island}?",
     ("whistle", "wear gloves", "run downhill", "paint doors", "count gulls", "sell rope")),
    ("The roofs of {island} are made of {answer}.", "What are the roofs of {island} made of?",
     ("slate", "copper sheets", "whale bone", "thatch", "cork", "oyster shells")),
    ("Children on {island} learn {answer} before they learn to read.",
     "What do children on {island} learn before they learn to read?",
     ("knot tying", "juggling", "swimming", "map drawing", "bread baking", "candle making")),
    ("The volcano of {island} last erupted in the year of the {answer}.",
     "In the year of what did the volcano of {island} last erupt?",
     ("comet", "plague", "two kings", "long frost", "great marriage", "lost fleet")),
    ("Visitors to {island} are greeted with {answer}.", "With what are visitors to {island} greeted?",
     ("a song", "three bows", "a pinch of salt", "a spoonful of honey", "a riddle", "a clap of hands")),
)  # fmt: skip
_ISLANDS = ("Calvery", "Dunmarrow", "Estrelle", "Fennoway", "Ghelt", "Hespera", "Iskaday", "Jorundel")
ISLAND_KINDS = tuple(answers for _, _, answers in _ISLAND_FACTS)
_LEAD_INS = (
    "Back to the island I told you about.",
    "A question about that island.",
    "Do you remember the island?",
    "Let us return to the island for a moment.",
)


@dataclass(kw_only=True)
class DelayedRecall(InventedTest):
    """Recall of many facts given once.

    Scores: perfect 1, memoryless 0; the share of right answers. An answer is right if it names what was told and nothing
    else of its kind; reciting all facts each time scores 0. The island and its facts are made up, so no model knows them
    beforehand. About 20 tokens per fact, once told and once asked. Interferes with no other test.
    With `generator: model` the model `generation_model` invents the material.
    """

    kind: ClassVar[str] = "delayed_recall"
    name: ClassVar[str] = "Delayed Recall"
    description: ClassVar[str] = "The agent is told facts about an invented island and asked for them later."
    invention: ClassVar[str] = (
        "Invent a fictional place and ten facts about it that nobody could guess, one sentence each. Then ask one question per "
        "fact."
    )
    reset_message: ClassVar[str] = "Please forget everything about that island."
    answers: ClassVar[Sequence[str]] = tuple(answer for kind in ISLAND_KINDS for answer in kind)

    facts: int = whole_number(10, least=2, most=len(ISLAND_KINDS))

    def make_example(self, number: int, rng: Random) -> TestExample:
        island = rng.choice(_ISLANDS)
        facts = [
            (statement, question, rng.choice(answers))
            for statement, question, answers in rng.sample(_ISLAND_FACTS, self.facts)
        ]
        told = [statement.format(island=island, answer=answer) for statement, _, answer in facts]
        asked = rng.sample(facts, len(facts))
        return self.tell_and_ask(
            number,
            ["Let me tell you about an island.\n" + "\n".join(told)],
            [f"{rng.choice(_LEAD_INS)} {question.format(island=island)}" for _, question, _ in asked],
            [answer for _, _, answer in asked],
        )

    def grade_builtin(self, questions: Sequence[str], responses: Sequence[str], expected: Sequence[str]) -> Grade:
        return grade_answers(responses, expected, ISLAND_KINDS, questions)


# --- a machine that does not exist ------------------------------------------------------------------------------------

# Step with a detail, question for the detail, possible details.
_STEPS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("Unlock the {detail} flap.", "Which flap do I unlock?", ("upper", "lower", "rear", "hidden")),
    ("Pour in {detail}.", "What do I pour in?", ("rainwater", "vinegar", "lamp oil", "buttermilk")),
    ("Turn the crank {detail} times.", "How many times do I turn the crank?", ("4", "6", "9", "13")),
    ("Wait {detail} minutes.", "How many minutes do I wait?", ("3", "8", "12", "20")),
    ("Tap the dial with a {detail}.", "With what do I tap the dial?", ("spoon", "thimble", "walnut", "pencil")),
    ("Hang the {detail} weight on the chain.", "Which weight do I hang on the chain?",
     ("brass", "leaden", "granite", "wooden")),
    ("Say the word “{detail}” into the funnel.", "Which word do I say into the funnel?",
     ("perhaps", "albatross", "thursday", "encore")),
    ("Wipe the lens with {detail}.", "With what do I wipe the lens?", ("silk", "felt", "chamois", "newspaper")),
    ("Move the lever to the {detail} mark.", "To which mark do I move the lever?", ("moon", "anchor", "feather", "owl")),
    ("Feed it {detail} buttons.", "How many buttons do I feed it?", ("5", "7", "11", "16")),
    ("Close your {detail}.", "What of mine do I close?", ("eyes", "umbrella", "coat", "ledger")),
    ("Ring for the {detail}.", "For whom do I ring?", ("caretaker", "night nurse", "stoker", "pianist")),
)  # fmt: skip
_MACHINES = ("fog organ", "dream press", "tide clock", "echo still", "cloud loom", "memory kiln")
MACHINE_KINDS = tuple(details for _, _, details in _STEPS)
# Not in figures: a number in the question could be taken for the answer.
_ORDINALS = (
    "first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth", "eleventh", "twelfth",
)  # fmt: skip


@dataclass(kw_only=True)
class InstructionRecall(InventedTest):
    """Recall of a procedure.

    Scores: perfect 1, memoryless 0; the share of right answers. An answer is right if it gives the detail of the step and
    no other one; reciting the instructions each time scores 0. Machine and steps are made up. About 15 tokens per step and
    25 per question. Interferes with no other test.
    With `generator: model` the model `generation_model` invents the material.
    """

    kind: ClassVar[str] = "instruction_recall"
    name: ClassVar[str] = "Instruction Recall"
    description: ClassVar[str] = "The agent is told how to start an invented machine and asked for the steps later."
    invention: ClassVar[str] = (
        "Invent a fictional machine or craft and the ten steps of using it, one sentence each, with odd details. Then ask five "
        "questions about details of single steps."
    )
    reset_message: ClassVar[str] = "Please forget how that machine is started."
    answers: ClassVar[Sequence[str]] = tuple(detail for kind in MACHINE_KINDS for detail in kind)

    steps: int = whole_number(10, least=2, most=len(_STEPS))
    questions: int = whole_number(5, least=1, most=lambda test: test.steps)

    def make_example(self, number: int, rng: Random) -> TestExample:
        machine = rng.choice(_MACHINES)
        chosen = [(step, question, rng.choice(details)) for step, question, details in rng.sample(_STEPS, self.steps)]
        lines = [f"{place}. {step.format(detail=detail)}" for place, (step, _, detail) in enumerate(chosen, start=1)]
        asked = rng.sample(range(self.steps), self.questions)
        return self.tell_and_ask(
            number,
            ["\n".join([f"This is how the {machine} is started. Keep to the order:", *lines])],
            [_ask_for_detail(machine, place, chosen[place][1], rng) for place in asked],
            [chosen[place][2] for place in asked],
        )

    def grade_builtin(self, questions: Sequence[str], responses: Sequence[str], expected: Sequence[str]) -> Grade:
        return grade_answers(responses, expected, MACHINE_KINDS, questions)


def _ask_for_detail(machine: str, place: int, question: str, rng: Random) -> str:
    """For the detail of one step, sometimes by its place alone."""
    if rng.random() < 0.5:
        return f"I am starting the {machine}. {question}"
    return f"I am starting the {machine} and have come to the {_ORDINALS[place]} step. {question}"


# --- notices that nobody has ever read --------------------------------------------------------------------------------

TITLES = (
    "the harbour office", "the allotment society", "the chess club", "the night bus company", "the museum of locks",
    "the guild of chimney sweeps",
)  # fmt: skip
_SENTENCES = (
    "On the {count} {day} of the month {who} will inspect {what}, weather permitting.",
    "Members who own {what} are asked to bring it before {day}, together with {count} copies of the form.",
    "{who} regrets the loss of {what} and offers {count} crowns for its return.",
    "Until further notice {what} may only be used between {hour} and sunset.",
    "Complaints about {what} are heard by {who} every second {day}.",
    "It has been decided, by {count} votes to two, that {what} shall be painted again.",
    "{who} kindly reminds everybody that {what} is neither a toy nor a weapon.",
    "Whoever finds {what} unattended must ring the small bell {count} times.",
)
_WHO = ("the treasurer", "the deputy warden", "the committee for order", "Mrs Applegarth", "the third secretary")
_WHAT = (
    "the iron staircase", "the visitors' telescope", "the spare ladder", "the long table", "the ceremonial trumpet",
    "the cold store", "the weighing machine", "the glass partition",
)  # fmt: skip
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday")
_COUNTS = ("five", "seven", "nine", "eleven", "fourteen", "thirty")
_HOURS = ("half past six", "a quarter to eight", "ten o'clock", "noon")


@dataclass(kw_only=True)
class Verbatim(BuiltinTest):
    """Remembering the words, not only the sense.

    Scores: perfect 1, memoryless 0. Word for word scores 1; from there the score falls to 0 where only half of the words
    agree, counting what is added too, so reciting all notices scores 0. The sentences are put together at random, so they
    cannot be guessed. About 20 tokens per sentence. Interferes with no other test.
    """

    kind: ClassVar[str] = "verbatim"
    name: ClassVar[str] = "Verbatim Recall"
    description: ClassVar[str] = "The agent must repeat one of several notices word for word."

    passages: int = whole_number(3, least=3, most=len(TITLES))
    sentences: int = whole_number(3, least=2, most=8)

    def make_example(self, number: int, rng: Random) -> TestExample:
        titles = rng.sample(TITLES, self.passages)
        notices = [_write_notice(self.sentences, rng) for _ in titles]
        asked = rng.randrange(self.passages)
        return self.tell_and_ask(
            number,
            [f"A notice of {title} reads: “{notice}”" for title, notice in zip(titles, notices, strict=True)],
            [f"Repeat the notice of {titles[asked]} word for word, and nothing else."],
            [notices[asked]],
        )

    def every_answer(self, example: TestExample) -> list[object]:
        return list(example.script[:-1])

    def needed_lines(self, example: TestExample) -> list[Sequence[int] | None]:
        return [example.lines_with(example.expected_responses[0])]

    def evaluate(self, questions: Sequence[str], responses: Sequence[str], expected: Sequence[str]) -> Grade:
        return grade_passage(responses[0], expected[0])


def _write_notice(sentences: int, rng: Random) -> str:
    written = []
    for sentence in rng.sample(_SENTENCES, sentences):
        text = sentence.format(
            count=rng.choice(_COUNTS),
            day=rng.choice(_DAYS),
            who=rng.choice(_WHO),
            what=rng.choice(_WHAT),
            hour=rng.choice(_HOURS),
        )
        written.append(text[0].upper() + text[1:])
    return " ".join(written)


# --- keys and values --------------------------------------------------------------------------------------------------

_CODE = re.compile(r"(?<![^\W_])[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(?![^\W_])")
_DENIED = re.compile(r"\bnot\s[\"'`]?[0-9a-f]{8}-")
# Two codes with their quotes: about fifty tokens in the tokenizers of today.
_TOKENS_PER_PAIR = 56


@dataclass(kw_only=True)
class KeyValuePairs(BuiltinTest):
    """Looking up what cannot be guessed.

    Scores: perfect 1, memoryless 0. With `nested_levels` a value is itself a key, so many times over. The reply must end
    on the value asked for, and may name no other code but those on the way. The codes are random 128-bit numbers, so the
    answer is unique. About 50 tokens per pair, 7,000 with the default, over as many messages as their size demands.
    Interferes with no other test.
    """

    kind: ClassVar[str] = "kv"
    name: ClassVar[str] = "Key-Value Pairs"
    description: ClassVar[str] = "The agent must look up one value in a table of random keys and values."

    nested_levels: int = whole_number(0, least=0)
    num_kv_pairs: int = whole_number(140, least=lambda test: 2 * (test.nested_levels + 1))

    def make_example(self, number: int, rng: Random) -> TestExample:
        codes = _draw_codes(rng)
        chains = [
            [next(codes) for _ in range(self.nested_levels + 2)]
            for _ in range(self.num_kv_pairs // (self.nested_levels + 1))
        ]
        pairs = [pair for chain in chains for pair in pairwise(chain)]
        rng.shuffle(pairs)
        size = max(1, self.max_message_size // _TOKENS_PER_PAIR)
        pages = [dict(pairs[start : start + size]) for start in range(0, len(pairs), size)]
        asked = rng.choice(chains)
        through = " Where a value is itself a key, follow it to the end." if self.nested_levels else ""
        return self.tell_and_ask(
            number,
            [f"Here are keys and their values, as JSON:\n{json.dumps(page, indent=0)}" for page in pages],
            [f"Which value belongs to the key {asked[0]}?{through} Answer with the value only."],
            [asked[-1]],
        )

    def every_answer(self, example: TestExample) -> list[object]:
        return list(_CODE.findall(" ".join(example.script[:-1])))

    def needed_lines(self, example: TestExample) -> list[Sequence[int] | None]:
        return [example.lines_with(f'"{example.expected_responses[0]}"')] if not self.nested_levels else [None]

    def evaluate(self, questions: Sequence[str], responses: Sequence[str], expected: Sequence[str]) -> Grade:
        return grade_code(responses[0], expected[0], given=questions[0], on_the_way=self.nested_levels)


def grade_code(reply: str, expected: str, *, given: str, on_the_way: int = 0) -> Grade:
    """1 if the last code is the expected one and no more others are named than the way to it has."""
    text = _DENIED.sub(" ", find_correction(reply.lower()) or reply.lower())
    named = [code for code in _CODE.findall(text) if code not in given]
    others = set(named) - {expected}
    if named[-1:] == [expected] and len(others) <= on_the_way:
        return Grade(1.0, (f"ends on {expected}",))
    if expected in named:
        return Grade(0.0, (f"names {expected}, but also {len(others)} other codes or not in the end",))
    return Grade(0.0, (f"{expected} is not in: {shorten(reply)}",))


def _draw_codes(rng: Random) -> Iterator[str]:
    while True:
        digits = f"{rng.getrandbits(128):032x}"
        yield f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"
