"""Something must be done later, unprompted: a quotation belongs into exactly the n-th reply."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from themis.memory.actions import Ask, Grade, Listen, Say, Script, Wait
from themis.memory.examples import LAST_SHARE, DatasetInterface, TestExample
from themis.memory.material.quotations import QUOTATIONS
from themis.memory.scoring import recites, shortened

__all__ = ["ProspectiveMemory", "grade_recital"]

_ORDINALS = {2: "second", 3: "third", 4: "fourth", 5: "fifth", 6: "sixth", 7: "seventh", 8: "eighth"}


@dataclass(kw_only=True)
class ProspectiveMemory(DatasetInterface):
    """Remembering to do something.

    Scores: perfect 1, memoryless 0; quoting in every reply scores 0. Right is the quotation, word for word, in the n-th
    reply to anyone counted from the request, and in none before. About 60 tokens, plus up to seven exchanges of others.
    Interferes with verbatim, whose passage it would lengthen, and with trigger_response and instruction_exceptions, which
    ask for replies of a set form.
    """

    name: ClassVar[str] = "Prospective Memory"
    description: ClassVar[str] = "The agent must append a quotation to its n-th reply, and to no other."
    reset_message: ClassVar[str] = "Please forget the quotation and what I asked you to do with it."
    interferes_with: ClassVar[frozenset[str]] = frozenset({"instruction_exceptions", "trigger_response", "verbatim"})

    def generate_examples(self, num_examples: int) -> list[TestExample]:
        chance = self.random("order")
        order: list[tuple[str, str]] = []
        while len(order) < num_examples:
            order += chance.sample(QUOTATIONS, len(QUOTATIONS))
        return [self._example(number, *order[number]) for number in range(num_examples)]

    def _example(self, number: int, quotation: str, author: str) -> TestExample:
        place = self.random(number).choice(tuple(_ORDINALS))
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
        quoting == [place], f"{shortened(quotation, 60)!r} belongs into reply {place} only, it is {told} of {place}"
    )
