"""Jokes are told hours apart; one of them must be named by when it was told."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, ClassVar

from themis.memory.actions import Action, AgentReply, Grade, Wait
from themis.memory.examples import LAST_SHARE, DatasetInterface, TestExample
from themis.memory.material.jokes import JOKES
from themis.memory.scoring import plain_words, recited_share, shortened
from themis.memory.tests.arguments import require_number
from themis.memory.tests.judging import ask_yes_or_no

__all__ = ["Jokes", "settle_joke"]

# Of a joke's words: so many mean that it was told again, so few that it was not.
_TOLD, _NOT_TOLD = 0.8, 0.4
# So many long words of a joke point at it.
_ALLUDED, _LONG = 2, 5


@dataclass(kw_only=True)
class Jokes(DatasetInterface):
    """Episodic memory: when something was said.

    Scores: perfect 1, memoryless 0; reciting several jokes scores 0. Which joke is meant follows from the virtual times
    at which they were told, at least `minutes_low` apart. A reply with most of the joke's words is right, one with few of
    them wrong; only a paraphrase in between goes to the judge. About 30 tokens per joke. Interferes with no other test.
    """

    name: ClassVar[str] = "Jokes"
    description: ClassVar[str] = "The agent must recall which joke was told how long ago."

    jokes_told: int = 3
    minutes_low: int = 30
    minutes_high: int = 240
    joke_prefix: bool = False

    def generate_examples(self, num_examples: int) -> list[TestExample]:
        require_number("jokes", "jokes_told", self.jokes_told, least=1, most=len(JOKES))
        require_number("jokes", "minutes_low", self.minutes_low, least=1)
        require_number("jokes", "minutes_high", self.minutes_high, least=self.minutes_low)
        return [self._example(number) for number in range(num_examples)]

    def _example(self, number: int) -> TestExample:
        chance = self.random(number)
        told = chance.sample(JOKES, self.jokes_told)
        waits = [
            Wait(
                time=timedelta(minutes=chance.randint(self.minutes_low, self.minutes_high)),
                until_share=place * LAST_SHARE / self.jokes_told,
            )
            for place in range(1, self.jokes_told + 1)
        ]
        return TestExample(
            dataset=self,
            example_id=str(number),
            script=[f"Here is a joke: {joke}" if self.joke_prefix else joke for joke in told],
            is_question=[False] * self.jokes_told + [True],
            waits=waits,
            expected_responses=[chance.choice(told)],
            is_temporal=True,
        )

    def needed_lines(self, example: TestExample) -> list[Sequence[int] | None]:
        return [example.lines_with(example.expected_responses[0])]

    def temporal_question(self, example: TestExample, said: Sequence[AgentReply], now: Any) -> str:
        joke = example.expected_responses[0]
        told = next(heard for heard, line in zip(said, example.script, strict=False) if joke in line)
        return f"Which joke did I tell you about {_in_words(now - told.now)} ago?"

    def evaluate(
        self, questions: Sequence[str], responses: Sequence[str], expected: Any
    ) -> Grade | Generator[Action, Any, Grade]:
        return settle_joke(responses[-1], expected[0]) or _ask_judge(responses[-1], expected[0])


def settle_joke(reply: str, expected: str) -> Grade | None:
    """The verdict where words decide; None for a paraphrase or an allusion."""
    shares = {joke: recited_share(reply, joke) for joke in (*JOKES, expected)}
    others = [joke for joke, share in shares.items() if joke != expected and share >= _TOLD]
    if others:
        return Grade(0.0, (f"expected only {shortened(expected, 60)!r}, tells also {shortened(others[0], 60)!r}",))
    if shares[expected] >= _TOLD:
        return Grade(1.0, (f"tells {shortened(expected, 60)!r}",))
    if shares[expected] <= _NOT_TOLD and len(_telling(expected) & _telling(reply)) < _ALLUDED:
        return Grade(0.0, (f"expected {shortened(expected, 60)!r}, got: {shortened(reply)}",))
    return None


def _telling(text: str) -> set[str]:
    """The words of a text that are long enough to tell it from others."""
    return {word for word in plain_words(text) if len(word) >= _LONG}


def _ask_judge(reply: str, expected: str) -> Generator[Action, Any, Grade]:
    return ask_yes_or_no(
        f"Somebody was to repeat this joke:\n{expected}\n\nThey said:\n{reply}\n\n"
        "Did they tell or clearly paraphrase this joke, and no other one?",
        purpose="is this the joke?",
        undecided="a paraphrase that only a judge (--judge) can settle",
        reason=f"the judge was asked whether the reply paraphrases {shortened(expected, 60)!r}",
    )


def _in_words(elapsed: timedelta) -> str:
    minutes = max(1, round(elapsed.total_seconds() / 60))
    parts = [(minutes // 1440, "day"), (minutes % 1440 // 60, "hour"), (minutes % 60, "minute")]
    return " ".join(f"{count} {unit}{'s' * (count != 1)}" for count, unit in parts if count)
