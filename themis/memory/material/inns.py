"""Choices between inns, and an arbitrary rule by which somebody wants them made."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

__all__ = ["INNS", "Dilemma", "Rule", "make_rule", "pose_dilemma"]

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


@dataclass(frozen=True)
class Rule:
    """First by one attribute; where that is equal, by another."""

    first: str
    first_most: bool
    second: str
    second_most: bool

    @property
    def text(self) -> str:
        first, second = _named(self.first, self.first_most), _named(self.second, self.second_most)
        return (
            f"Whenever I have to choose between inns, think like this for me: take the one with {first}. If that does "
            f"not decide it, take of those the one with {second}. Nothing else matters to me."
        )

    def choose(self, inns: dict[str, dict[str, int]]) -> str:
        signs = ((self.first, self.first_most), (self.second, self.second_most))
        return max(inns, key=lambda inn: [inns[inn][name] * (1 if most else -1) for name, most in signs])


@dataclass(frozen=True)
class Dilemma:
    question: str
    answer: str


def make_rule(chance: Random) -> Rule:
    first, second = chance.sample(tuple(_ATTRIBUTES), 2)
    return Rule(first, chance.random() < 0.5, second, chance.random() < 0.5)


def pose_dilemma(rule: Rule, options: int, chance: Random) -> Dilemma:
    """Inns of which the rule chooses one; half of the time only its second part decides."""
    distractor = chance.choice([name for name in _ATTRIBUTES if name not in (rule.first, rule.second)])
    inns = chance.sample(INNS, options)
    extreme = chance.randint(3, 7)
    tied = chance.sample(inns, 2 if chance.random() < 0.5 else 1)
    worse = (1, 2) if rule.first_most else (8, 9)
    seconds = chance.sample(range(1, 10), options)
    facts = {
        inn: {
            rule.first: extreme if inn in tied else chance.choice(worse),
            rule.second: seconds[place],
            distractor: chance.randint(2, 9),
        }
        for place, inn in enumerate(inns)
    }
    told = "; ".join(f"the {inn} has {_told(facts[inn], chance)}" for inn in inns)
    return Dilemma(f"I must choose an inn: {told}. Which one do I take?", rule.choose(facts))


def _told(facts: dict[str, int], chance: Random) -> str:
    names = chance.sample(tuple(facts), len(facts))
    parts = [_ATTRIBUTES[name][0].format(facts[name]) for name in names]
    return f"{', '.join(parts[:-1])} and {parts[-1]}"


def _named(attribute: str, most: bool) -> str:
    return _ATTRIBUTES[attribute][1 if most else 2]
