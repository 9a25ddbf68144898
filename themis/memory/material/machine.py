"""Instructions for a machine that does not exist: ten steps, and questions about their order and details."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

__all__ = ["KINDS", "STEPS_AVAILABLE", "Instructions", "write_instructions"]

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

STEPS_AVAILABLE = len(_STEPS)
KINDS = tuple(details for _, _, details in _STEPS)


@dataclass(frozen=True)
class Instructions:
    text: str
    questions: tuple[str, ...]
    answers: tuple[str, ...]


def write_instructions(steps: int, questions: int, chance: Random) -> Instructions:
    machine = chance.choice(_MACHINES)
    chosen = [(step, question, chance.choice(details)) for step, question, details in chance.sample(_STEPS, steps)]
    lines = [f"{number}. {step.format(detail=detail)}" for number, (step, _, detail) in enumerate(chosen, start=1)]
    text = "\n".join([f"This is how the {machine} is started. Keep to the order:", *lines])
    asked = chance.sample(range(steps), questions)
    return Instructions(
        text,
        tuple(_question(machine, place, chosen[place][1], chance) for place in asked),
        tuple(chosen[place][2] for place in asked),
    )


def _question(machine: str, place: int, question: str, chance: Random) -> str:
    """For the detail of one step, sometimes by its place alone."""
    if chance.random() < 0.5:
        return f"I am starting the {machine}. {question}"
    return f"I am starting the {machine} and have come to the {_ORDINALS[place]} step. {question}"


# Not in figures: a number in the question could be taken for the answer.
_ORDINALS = (
    "first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth", "eleventh", "twelfth",
)  # fmt: skip
