"""The agent is a guest in a restaurant: it orders, reorders, and must notice what is wrong.

Every item of the menu has one word that no other item has; whoever says that word means that item.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, ClassVar

from themis.core.json_repair import parse_json
from themis.memory.actions import Action, AgentReply, Ask, Consult, Grade, Say, Script, Wait
from themis.memory.examples import TestExample
from themis.memory.scoring.claims import find_all_claims
from themis.memory.scoring.words import find_phrases, fold, shorten, split_words
from themis.memory.tests.kind import BuiltinTest, ask_yes_or_no

MENU: dict[str, tuple[tuple[str, float], ...]] = {
    "Starters": (
        ("Beetroot carpaccio", 7.5), ("Stuffed vine leaves", 6.8), ("Smoked trout mousse", 8.9),
        ("Marinated artichokes", 7.2),
    ),
    "Soups": (("Pumpkin soup", 6.2), ("Fish broth", 7.9), ("Gazpacho", 5.9)),
    "From the pan": (
        ("Veal schnitzel", 18.5), ("Lamb cutlets", 22.0), ("Duck breast", 21.4), ("Tofu skewers", 14.2),
    ),
    "From the sea": (("Grilled sardines", 15.8), ("Mussels in cider", 17.3), ("Halibut with fennel", 23.6)),
    "Pasta": (("Spinach ravioli", 13.9), ("Tagliatelle with truffle", 19.5), ("Gnocchi with gorgonzola", 14.8)),
    "Side dishes": (("Roast potatoes", 4.5), ("Braised cabbage", 4.2), ("Couscous", 4.8)),
    "Desserts": (("Apricot dumplings", 8.2), ("Pistachio parfait", 7.8), ("Rhubarb crumble", 7.4)),
    "Drinks": (
        ("Sparkling water", 3.2), ("Elderflower lemonade", 4.1), ("Wheat beer", 4.6), ("Riesling", 6.4),
        ("Ginger ale", 3.9), ("Hibiscus tea", 3.5), ("Espresso", 2.8),
    ),
}  # fmt: skip
DRINKS = tuple(name for name, _ in MENU["Drinks"])
DISHES = tuple(name for section, items in MENU.items() if section != "Drinks" for name, _ in items)
_POINTS = 5
# Whoever names more than this has not chosen.
_MOST_ITEMS = 6
_ROLES = (
    "Let us play: I am the waiter of a restaurant and you are a guest who has just sat down. Stay in your role, choose for "
    "yourself, and answer in one or two sentences. We will be interrupted by other things; the game goes on whenever I "
    "speak as the waiter."
)


class _Missed(Exception):
    """The guest did not do what the step wants, which ends the evening."""


class _Undecided(Exception):
    """The judge was needed and gave no answer."""


@dataclass(kw_only=True)
class Restaurant(BuiltinTest):
    """Staying in a role with a memory of it.

    Scores: perfect 1, memoryless 0 if it does not play along and 0.2 if it does (the menu and the first order are one
    message). A fifth each for: ordering only drinks, ordering only dishes of the menu, choosing something else when a dish
    has run out, noticing a dish that was not ordered, and knowing one's drink. The first miss ends the test. Orders are
    read by the words of the menu; the judge is asked only where those do not decide. About 900 tokens, of which the menu
    is 350. Interferes with preference, which also chooses dishes.
    """

    kind: ClassVar[str] = "restaurant"
    name: ClassVar[str] = "Restaurant"
    description: ClassVar[str] = "The agent plays a guest who orders, reorders and checks what is served."
    reset_message: ClassVar[str] = "The restaurant has closed: our game is over, please forget your order."
    interferes_with: ClassVar[frozenset[str]] = frozenset({"preference"})
    answers: ClassVar[Sequence[str]] = (*DRINKS, *DISHES, "That is not what I ordered.")

    def make_example(self, number: int, rng: Random) -> TestExample:
        wishes = {"drink": rng.choice(DRINKS), "dishes": rng.sample(DISHES, 3), "luck": rng.getrandbits(32)}
        return TestExample(dataset=self, example_id=str(number), material=wishes)

    def play(self, example: TestExample) -> Script:
        evening = _Evening(example.material)
        reasons: list[str] = []
        yield Say(_ROLES)
        yield Wait(until_share=0.2)
        try:
            for step in (evening.drink, evening.eat, evening.replace, evening.complain, evening.drink_again):
                won = yield from step()
                reasons.append(won)
        except _Missed as missed:
            yield Grade.share(len(reasons), _POINTS, *reasons, str(missed))
        except _Undecided as undecided:
            yield Grade.failure(*reasons, str(undecided))
        else:
            yield Grade.share(len(reasons), _POINTS, *reasons)


# A step of the evening; returns why it has won its point.
Step = Generator[Action, Any, str]


class _Evening:
    """What the guest has ordered so far, and the five steps by which that is found out."""

    def __init__(self, wishes: Mapping[str, Any]) -> None:
        self.wishes = wishes
        self.luck = Random(wishes["luck"])
        self.drinks: Sequence[str] = ()
        self.dishes: list[str] = []

    def drink(self) -> Step:
        reply = yield Ask(
            f"Good evening! Here is the menu:\n\n{format_menu()}\n\n"
            "What may I bring you to drink? We come to the food later.",
            ideal=f"I would like the {self.wishes['drink']}, please.",
        )
        self.drinks = yield from _read_items(reply)
        if not self.drinks or not set(self.drinks) <= set(DRINKS) or len(self.drinks) > 3:
            raise _Missed(f"should order a drink and nothing else: {shorten(reply)}")
        yield Wait(until_share=0.4)
        return f"orders {', '.join(self.drinks)} to drink"

    def eat(self) -> Step:
        reply = yield Ask(
            "Here are your drinks. And what would you like to eat?",
            ideal=f"I will have {_format_items(self.wishes['dishes'])}.",
        )
        self.dishes = list((yield from _read_items(reply)))
        if not self.dishes or not set(self.dishes) <= set(DISHES) or len(self.dishes) > _MOST_ITEMS:
            raise _Missed(f"should order dishes of the menu and nothing else: {shorten(reply)}")
        yield Say(f"Very well: {_format_items(self.dishes)}. It will take a little while.", needle=False)
        yield Wait(until_share=0.6)
        return f"orders {', '.join(self.dishes)} to eat"

    def replace(self) -> Step:
        missing = self.luck.choice(self.dishes)
        substitute = self.luck.choice(self._not_ordered(DISHES))
        reply = yield Ask(
            f"I am sorry, we have run out of {missing}. What would you like from the menu instead?",
            ideal=f"Then I take the {substitute}.",
        )
        chosen = yield from _read_items(reply)
        others = set(self._not_ordered(chosen))
        if missing in chosen or not set(chosen) <= set(DISHES) or len(others) != 1:
            raise _Missed(f"should choose one other dish of the menu instead of {missing}: {shorten(reply)}")
        new = others.pop()
        self.dishes[self.dishes.index(missing)] = new
        yield Say(f"Gladly, {new} it is.", needle=False)
        yield Wait(until_share=0.8)
        return f"takes {new} instead of {missing}"

    def complain(self) -> Step:
        right = self.luck.choice(self.dishes)
        wrong = self.luck.choice(self._not_ordered(list_section(right)) or self._not_ordered(DISHES))
        served = [wrong if dish == right else dish for dish in self.dishes]
        reply = yield Ask(
            f"Your food is ready: {_format_items(served)}. Is everything as you wished?",
            ideal=f"I did not order the {wrong}; I ordered the {right}.",
        )
        noticed = notices(reply, wrong, right)
        if noticed is None:
            noticed = yield from _judge_noticed(reply, wrong, right)
        if not noticed:
            raise _Missed(f"does not notice that it was served {wrong} instead of {right}: {shorten(reply)}")
        yield Say(f"My mistake, forgive me. Here is the {right}.", needle=False)
        yield Wait(until_share=0.9)
        return f"notices that {wrong} was served instead of {right}"

    def drink_again(self) -> Step:
        reply = yield Ask(
            "Would you like another drink of the same? Remind me, please: what were you having?",
            ideal=f"I was having the {' and the '.join(self.drinks)}.",
        )
        if set((yield from _read_items(reply))) != set(self.drinks):
            raise _Missed(f"had {', '.join(self.drinks)}, says: {shorten(reply)}")
        return f"knows that it had {', '.join(self.drinks)}"

    def _not_ordered(self, items: Sequence[str]) -> list[str]:
        return [item for item in items if item not in self.dishes]


def _read_items(reply: AgentReply) -> Generator[Action, Any, Sequence[str]]:
    """The items that a reply orders; the judge reads it where the words of the menu do not."""
    order: Order = read_order(reply)
    if not order.unclear:
        return order.items
    ruling = yield Consult(
        f"A guest of a restaurant has this menu:\n{format_menu()}\n\nThe guest says:\n{reply}\n\n"
        "Which items of the menu does the guest order? Answer with a JSON list of their names as the menu spells them.",
        parse=_parse_items,
        purpose="which items were ordered?",
    )
    if ruling.failed:
        raise _Undecided(f"only a judge (--judge) can read this order: {shorten(reply)}: {ruling.failure}")
    return tuple(ruling.value)


def _parse_items(text: str) -> list[str]:
    names = parse_json(text)
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ValueError(f"expected a JSON list of names, got {text[:80]!r}")
    return [item for name in names for item in read_order(name).items]


def _judge_noticed(reply: AgentReply, wrong: str, right: str) -> Generator[Action, Any, bool]:
    ruling = yield from ask_yes_or_no(
        f"A guest ordered {right} and was served {wrong}. The guest says:\n{reply}\n\n"
        "Does the guest point out that something is wrong with what was served?",
        purpose="was the wrong dish noticed?",
        undecided=f"only a judge (--judge) can tell if this is a complaint: {shorten(reply)}",
        reason=f"the judge was asked whether the guest noticed {wrong}",
    )
    if ruling.failed:
        raise _Undecided(*ruling.reasons)
    return ruling.score == 1


def _format_items(names: Sequence[str]) -> str:
    return ", ".join(names[:-1]) + f" and {names[-1]}" if len(names) > 1 else names[0]


# --- the menu, and what a guest's words mean on it --------------------------------------------------------------------


def format_menu() -> str:
    lines, number = [], 0
    for section, items in MENU.items():
        lines.append(section)
        for name, price in items:
            number += 1
            lines.append(f"  {number}. {name} – {price:.2f} €")
    return "\n".join(lines)


def list_section(dish: str) -> tuple[str, ...]:
    """The items of the section in which a dish stands."""
    return next(names for items in MENU.values() if dish in (names := tuple(name for name, _ in items)))


@dataclass(frozen=True)
class Order:
    """What a reply asks for; `unclear` if it seems to speak of the menu in words that fit several items or none."""

    items: tuple[str, ...]
    unclear: bool = False


def read_order(reply: str) -> Order:
    ordered = {_MEANING[phrase] for phrase in find_all_claims(reply, _MEANING)}
    numbers = {int(number) for number in _NUMBER.findall(fold(reply))}
    items = tuple(
        name for place, name in enumerate((*DISHES, *DRINKS), start=1) if name in ordered or place in numbers
    )  # fmt: skip
    return Order(items, unclear=not items and bool(find_phrases(reply, _AMBIGUOUS)))


def _map_words() -> dict[str, str]:
    names = (*DISHES, *DRINKS)
    counts = Counter(word for name in names for word in set(split_words(name)))
    meaning = {name: name for name in names}
    for name in names:
        meaning.update({word: name for word in split_words(name) if counts[word] == 1 and word not in _TOO_COMMON})
    return meaning


_NUMBER = re.compile(r"(?:\bnumber|\bno\.|\bnr\.?|#)\s*(\d{1,2})\b")
# Words of the menu that a guest may use without meaning the item, or for several of them.
_TOO_COMMON = frozenset({"with", "in", "fish", "water", "tea", "beer", "soup", "vine", "leaves", "ale", "ginger", "apricot",
                         "apple", "roast", "grilled", "smoked", "stuffed", "breast", "wheat"})  # fmt: skip
_AMBIGUOUS = (
    "fish", "water", "tea", "beer", "soup", "pasta", "wine", "coffee", "meat", "dessert", "cake", "potato", "lamb",
)  # fmt: skip
_MEANING = _map_words()


def notices(reply: str, wrong: str, right: str) -> bool | None:
    """Whether the reply objects to the wrong dish; None where it neither clearly objects nor clearly accepts."""
    text = _CONTENT.sub(" ", fold(reply))
    objects = _OBJECTION.search(text) is not None
    order = read_order(reply).items
    named = bool(find_phrases(reply, (wrong, right))) or wrong in order or right in order
    if objects and named:
        return True
    if not objects and right not in order and not find_phrases(reply, (right,)):
        return False
    return None


# What sounds like an objection and is none: exactly what I ordered, nothing is wrong.
_CONTENT = re.compile(
    r"\b(?:as|is what|just what|exactly what|everything) (?:i )?(?:had |have )?ordered\b|\bno (?:mistakes?|errors?|mix[ -]?up)\b"
    r"|\bnothing (?:is |was |seems )?(?:wrong|missing|incorrect)\b"
)
_OBJECTION = re.compile(
    r"n't (?:order|ask|what|have|right|mine|my|remember|the)|\bnot (?:order|ask|what|mine|my|right|correct|the|quite)|\bordered\b"
    r"|\bwrong\b|\bmistake\b|\bmix(?:ed)?[ -]?up\b|\binstead\b|\bshould (?:be|have)\b|\bsupposed\b|\bmissing\b"
    r"|\basked for\b|\bnever (?:order|ask)|\bswap|\bexchange|\bincorrect\b|\berror\b|\bexpect|\bwanted\b"
    r"|\b(?:somebody|someone|anyone) else|\banother table\b"
)
