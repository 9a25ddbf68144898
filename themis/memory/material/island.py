"""An island that does not exist: ten facts about it that nobody can know unless told."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

__all__ = ["KINDS", "Fact", "describe_island"]


@dataclass(frozen=True)
class Fact:
    statement: str
    question: str
    answer: str


# Statement, question, possible answers. No answer of one kind occurs in another.
_KINDS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
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

KINDS = tuple(answers for _, _, answers in _KINDS)


def describe_island(facts: int, chance: Random) -> list[Fact]:
    island = chance.choice(_ISLANDS)
    described = []
    for statement, question, answers in chance.sample(_KINDS, facts):
        answer = chance.choice(answers)
        described.append(Fact(statement.format(island=island, answer=answer), question.format(island=island), answer))
    return described
