"""The agent is a guest in a restaurant: it orders, reorders, and must notice what is wrong."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, ClassVar

from themis.core.json_repair import parse_json
from themis.memory.actions import Action, AgentReply, Ask, Consult, Grade, Say, Script, Wait
from themis.memory.examples import DatasetInterface, TestExample
from themis.memory.material.complaints import notices
from themis.memory.material.menu import DISHES, DRINKS, Order, menu_text, read_order, section_of
from themis.memory.scoring import shortened
from themis.memory.tests.judging import ask_yes_or_no

__all__ = ["Restaurant"]

POINTS = 5
# Whoever names more than this has not chosen.
_MOST_ITEMS = 6
ROLES = (
    "Let us play: I am the waiter of a restaurant and you are a guest who has just sat down. Stay in your role, choose for "
    "yourself, and answer in one or two sentences. We will be interrupted by other things; the game goes on whenever I "
    "speak as the waiter."
)


class _Undecided(Exception):
    """The judge was needed and gave no answer."""


@dataclass(kw_only=True)
class Restaurant(DatasetInterface):
    """Staying in a role with a memory of it.

    Scores: perfect 1, memoryless 0 if it does not play along and 0.2 if it does (the menu and the first order are one
    message). A fifth each for: ordering only drinks, ordering only dishes of the menu, choosing something else when a dish
    has run out, noticing a dish that was not ordered, and knowing one's drink. The first miss ends the test. Orders are
    read by the words of the menu; the judge is asked only where those do not decide. About 900 tokens, of which the menu
    is 350. Interferes with preference, which also chooses dishes.
    """

    name: ClassVar[str] = "Restaurant"
    description: ClassVar[str] = "The agent plays a guest who orders, reorders and checks what is served."
    reset_message: ClassVar[str] = "The restaurant has closed: our game is over, please forget your order."
    interferes_with: ClassVar[frozenset[str]] = frozenset({"preference"})

    def generate_examples(self, num_examples: int) -> list[TestExample]:
        examples = []
        for number in range(num_examples):
            chance = self.random(number)
            wishes = {
                "drink": chance.choice(DRINKS),
                "dishes": chance.sample(DISHES, 3),
                "luck": chance.getrandbits(32),
            }
            examples.append(TestExample(dataset=self, example_id=str(number), material=wishes))
        return examples

    def play(self, example: TestExample) -> Script:
        points, reasons = 0, []
        evening = _evening(example.material)
        try:
            action = next(evening)
            while True:
                if isinstance(action, str):
                    points += 1
                    reasons.append(action)
                    action = evening.send(None)
                else:
                    action = evening.send((yield action))
        except StopIteration as end:
            reasons += [end.value] if end.value else []
        except _Undecided as undecided:
            yield Grade.failure(*reasons, str(undecided))
            return
        yield Grade.share(points, POINTS, *reasons)


def _evening(wishes: dict[str, Any]) -> Generator[Action | str, Any, str | None]:
    """Yields actions and, for each point won, why; returns why it ended early."""
    luck = Random(wishes["luck"])
    yield Say(ROLES)
    yield Wait(until_share=0.2)

    reply = yield Ask(
        f"Good evening! Here is the menu:\n\n{menu_text()}\n\nWhat may I bring you to drink? We come to the food later.",
        ideal=f"I would like the {wishes['drink']}, please.",
    )
    drinks = yield from _ordered(reply)
    if not drinks or not set(drinks) <= set(DRINKS) or len(drinks) > 3:
        return f"should order a drink and nothing else: {shortened(reply)}"
    yield f"orders {', '.join(drinks)} to drink"
    yield Wait(until_share=0.4)

    reply = yield Ask(
        "Here are your drinks. And what would you like to eat?", ideal=f"I will have {_listed(wishes['dishes'])}."
    )
    dishes = list((yield from _ordered(reply)))
    if not dishes or not set(dishes) <= set(DISHES) or len(dishes) > _MOST_ITEMS:
        return f"should order dishes of the menu and nothing else: {shortened(reply)}"
    yield f"orders {', '.join(dishes)} to eat"
    yield Say(f"Very well: {_listed(dishes)}. It will take a little while.", needle=False)
    yield Wait(until_share=0.6)

    missing = luck.choice(dishes)
    substitute = luck.choice([dish for dish in DISHES if dish not in dishes])
    reply = yield Ask(
        f"I am sorry, we have run out of {missing}. What would you like from the menu instead?",
        ideal=f"Then I take the {substitute}.",
    )
    chosen = yield from _ordered(reply)
    if not chosen or missing in chosen or not set(chosen) <= set(DISHES) or len(set(chosen) - set(dishes)) != 1:
        return f"should choose one other dish of the menu instead of {missing}: {shortened(reply)}"
    new = next(dish for dish in chosen if dish not in dishes)
    dishes[dishes.index(missing)] = new
    yield f"takes {new} instead of {missing}"
    yield Say(f"Gladly, {new} it is.", needle=False)
    yield Wait(until_share=0.8)

    right = luck.choice(dishes)
    wrong = luck.choice(
        [dish for dish in section_of(right) if dish not in dishes] or [d for d in DISHES if d not in dishes]
    )
    served = [wrong if dish == right else dish for dish in dishes]
    reply = yield Ask(
        f"Your food is ready: {_listed(served)}. Is everything as you wished?",
        ideal=f"I did not order the {wrong}; I ordered the {right}.",
    )
    noticed = notices(reply, wrong, right)
    if noticed is None:
        noticed = yield from _ask_noticed(reply, wrong, right)
    if not noticed:
        return f"does not notice that it was served {wrong} instead of {right}: {shortened(reply)}"
    yield f"notices that {wrong} was served instead of {right}"
    yield Say(f"My mistake, forgive me. Here is the {right}.", needle=False)
    yield Wait(until_share=0.9)

    reply = yield Ask(
        "Would you like another drink of the same? Remind me, please: what were you having?",
        ideal=f"I was having the {' and the '.join(drinks)}.",
    )
    recalled = yield from _ordered(reply)
    if set(recalled) != set(drinks):
        return f"had {', '.join(drinks)}, says: {shortened(reply)}"
    yield f"knows that it had {', '.join(drinks)}"
    return None


def _ordered(reply: AgentReply) -> Generator[Action, Any, Sequence[str]]:
    """The items that a reply orders; the judge reads it where the words of the menu do not."""
    order: Order = read_order(reply)
    if not order.unclear:
        return order.items
    ruling = yield Consult(
        f"A guest of a restaurant has this menu:\n{menu_text()}\n\nThe guest says:\n{reply}\n\n"
        "Which items of the menu does the guest order? Answer with a JSON list of their names as the menu spells them.",
        parse=_parse_items,
        purpose="which items were ordered?",
    )
    if ruling.failed:
        raise _Undecided(f"only a judge (--judge) can read this order: {shortened(reply)}: {ruling.failure}")
    return tuple(ruling.value)


def _parse_items(text: str) -> list[str]:
    names = parse_json(text)
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ValueError(f"expected a JSON list of names, got {text[:80]!r}")
    return [item for name in names for item in read_order(name).items]


def _ask_noticed(reply: AgentReply, wrong: str, right: str) -> Generator[Action, Any, bool]:
    ruling = yield from ask_yes_or_no(
        f"A guest ordered {right} and was served {wrong}. The guest says:\n{reply}\n\n"
        "Does the guest point out that something is wrong with what was served?",
        purpose="was the wrong dish noticed?",
        undecided=f"only a judge (--judge) can tell if this is a complaint: {shortened(reply)}",
        reason=f"the judge was asked whether the guest noticed {wrong}",
    )
    if ruling.failed:
        raise _Undecided(*ruling.reasons)
    return ruling.score == 1


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:-1]) + f" and {names[-1]}" if len(names) > 1 else names[0]
