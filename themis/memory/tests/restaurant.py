"""The agent is a guest in a restaurant: it orders, reorders, and must notice what is wrong.

Every item of the menu has one word that no other item has; whoever says that word means that item.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from random import Random
from typing import Any, ClassVar

from themis.core.json_repair import parse_json
from themis.core.patterns import lazy_pattern
from themis.memory.actions import Action, AgentReply, Ask, Consult, Grade, Say, Script, Wait
from themis.memory.examples import TestExample
from themis.memory.phrasing import Phrasing
from themis.memory.reader import Reader
from themis.memory.scoring.claims import find_all_claims
from themis.memory.scoring.spelling import spell_like
from themis.memory.scoring.words import find_phrases, fold, shorten, split_words
from themis.memory.tests.kind import BuiltinTest, ask_yes_or_no
from themis.memory.tests.word_lists import TOWNS

# What restaurants serve; each has a part of it on its menu.
POOL = {
    "Starters": (
        "Beetroot carpaccio", "Stuffed vine leaves", "Smoked trout mousse", "Marinated artichokes", "Crab croquettes",
        "Lentil fritters", "Aubergine dip", "Celeriac remoulade",
    ),
    "Soups": (
        "Pumpkin soup", "Fish broth", "Gazpacho", "Nettle velouté", "Chestnut bisque", "Borscht", "Minestrone",
    ),
    "From the pan": (
        "Veal schnitzel", "Lamb cutlets", "Duck breast", "Tofu skewers", "Venison ragout", "Pork medallions", "Rabbit stew",
        "Chicken paprika",
    ),
    "From the sea": (
        "Grilled sardines", "Mussels in cider", "Halibut with fennel", "Monkfish curry", "Calamari rings",
        "Scallops in butter",
    ),
    "Pasta": (
        "Spinach ravioli", "Tagliatelle with truffle", "Gnocchi with gorgonzola", "Saffron risotto", "Chanterelle lasagne",
        "Pesto linguine",
    ),
    "Side dishes": (
        "Roast potatoes", "Braised cabbage", "Couscous", "Polenta", "Glazed carrots", "Wild rice",
    ),
    "Desserts": (
        "Apricot dumplings", "Pistachio parfait", "Rhubarb crumble", "Almond blancmange", "Plum compote",
        "Hazelnut praline",
        "Meringue nest",
    ),
    "Drinks": (
        "Sparkling water", "Elderflower lemonade", "Wheat beer", "Riesling", "Ginger ale", "Hibiscus tea", "Espresso",
        "Tomato juice", "Cranberry spritzer", "Mango lassi", "Burgundy", "Sloe gin",
    ),
}  # fmt: skip
DRINKS = POOL["Drinks"]
DISHES = tuple(name for section, items in POOL.items() if section != "Drinks" for name in items)
# Of each section so many are on a menu.
_SERVED_DISHES, _SERVED_DRINKS = 3, 6
_POINTS = 5
# Whoever names more than this has not chosen.
_MOST_ITEMS = 6
_ROLES = Phrasing(
    "Let us play: I am the waiter of {place} and you are a guest who has just sat down. Stay in your role, choose "
    "for yourself, and "
    "answer in one or two sentences. We will be interrupted by other things; the game goes on whenever I speak as "
    "the waiter.",
    "A little game: at {place}, where I wait at table, you are the guest. Order what you like yourself, in a "
    "sentence or two, and keep "
    "in mind what you have ordered. Other things will come in between; whenever the waiter speaks, we are back at "
    "the table.",
    "Imagine that you have come to dine at {place} and that I am your waiter. Answer me as a guest would, briefly, "
    "and make your own "
    "choices. Between the courses we will talk of other matters, but the evening goes on when I speak as the waiter.",
    place=r"the \w+ \w+ in \w+",
)
_GREETING = Phrasing(
    "Good evening! Here is the menu:",
    "Welcome, here is what we have [today|tonight]:",
    "A warm welcome from the kitchen! The menu:",
)
_DRINK = Phrasing(
    "What may I bring you to drink? We will come to the food later.",
    "May I take your order for drinks? The food comes later.",
    "What would you like to drink, before we come to the food?",
)
_EAT = Phrasing(
    "Here are your drinks. And what would you like to eat?",
    "Your drinks, there you are. Have you chosen something to eat from the menu?",
    "To your health! What may I bring you from the kitchen?",
)
_RUN_OUT = Phrasing(
    "I am sorry, we have run out of {dish}. What would you like from the menu instead?",
    "The kitchen sends its apologies: the {dish} can no longer be had. Which other dish of the menu may it be?",
    "Unfortunately the last portion of {dish} has just gone to another table. What else may I "
    "bring you from the menu in its place?",
)
_SERVED = Phrasing(
    "Your food is ready: {dishes}. Is everything as you wished?",
    "Here we are, {dishes}. Have I got everything right?",
    "Careful, the plates are hot: {dishes}. Is that all as you ordered it?",
    dishes=r"[^.?!:\n]+",
)
_SAME_AGAIN = Phrasing(
    "Would you like another drink of the same? Remind me, please: what were you having?",
    "Your glass is empty. The same again? Then tell me what it was, please.",
    "One more drink of the kind you had? I am afraid I forget what that was, do tell me.",
)
_NAMES = (
    ("Silver", "Copper", "Dancing", "Singing", "Hungry", "Merry", "Velvet", "Painted"),
    ("Ladle", "Skillet", "Spoon", "Platter", "Cauldron", "Saucepan", "Tureen", "Colander"),
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
    has run out, noticing a dish that was not ordered, and knowing one's drink. What the guest has ordered nobody
    repeats: it must remember its own words. The first miss ends the test. Orders are read by the words of the menu; the judge
    is asked only where those do not decide. About 650 tokens, of which the menu is 270. Interferes with no other test.
    """

    kind: ClassVar[str] = "restaurant"
    name: ClassVar[str] = "Restaurant"
    description: ClassVar[str] = "The agent plays a guest who orders, reorders and checks what is served."
    reset_message: ClassVar[str] = "The restaurant has closed: our game is over, please forget your order."
    answers: ClassVar[Sequence[str]] = (*DRINKS, *DISHES, "That is not what I ordered.")

    def make_example(self, number: int, rng: Random) -> TestExample:
        sections = {
            section: rng.sample(items, _SERVED_DRINKS if section == "Drinks" else _SERVED_DISHES)
            for section, items in POOL.items()
        }
        menu = Menu.of(sections)
        place = self.world.make(
            rng, "restaurant", lambda rng: f"the {' '.join(map(rng.choice, _NAMES))} in {rng.choice(TOWNS)}"
        )
        wishes = {
            "menu": sections,
            "prices": [rng.randrange(25, 60 if name in DRINKS else 240) / 10 for name in menu.items],
            "roles": _ROLES.say(rng, place=place),
            "drink": rng.choice(menu.drinks),
            "dishes": rng.sample(menu.dishes, 3),
            "luck": rng.randrange(2**32),
        }
        return TestExample(dataset=self, example_id=str(number), material=wishes)

    def play(self, example: TestExample) -> Script:
        evening = _Evening(example.material)
        grades: list[Grade] = []
        yield Say(example.material["roles"])
        yield Wait(until_share=0.2)
        for step in (evening.drink, evening.eat, evening.replace, evening.complain, evening.drink_again):
            try:
                grades.append(Grade(1.0, ((yield from step()),)))
            except _Missed as missed:
                grades.append(Grade(0.0, (str(missed),)))
                break
            except _Undecided as undecided:
                grades.append(Grade.failure(str(undecided)))
                break
        yield Grade.combine(sum(grade.score for grade in grades) / _POINTS, grades)

    @classmethod
    def make_reader(cls) -> Reader:
        return _Guest()


# A step of the evening; returns why it has won its point.
Step = Generator[Action, Any, str]


class _Evening:
    """What the guest has ordered so far, and the five steps by which that is found out.

    The messages are numbered: 0 the roles, 1 the menu with the question for drinks, 2 for dishes, 3 for another dish.
    """

    def __init__(self, wishes: Mapping[str, Any]) -> None:
        self.wishes = wishes
        self.luck = Random(str(wishes["luck"]))
        self.menu = Menu.of(wishes["menu"])
        self.drinks: Sequence[str] = ()
        self.dishes: list[str] = []

    def drink(self) -> Step:
        listed = self.menu.format(self.wishes["prices"])
        reply = yield Ask(
            f"{_GREETING.say(self.luck)}\n\n{listed}\n\n{_DRINK.say(self.luck)}",
            ideal=f"I would like the {self.wishes['drink']}, please.",
            needs=(0,),
        )
        self.drinks = yield from _read_items(reply, self.menu)
        if not self.drinks or not set(self.drinks) <= set(self.menu.drinks) or len(self.drinks) > 3:
            raise _Missed(f"should order a drink and nothing else: {shorten(reply)}")
        yield Wait(until_share=0.4)
        return f"orders {', '.join(self.drinks)} to drink"

    def eat(self) -> Step:
        reply = yield Ask(
            _EAT.say(self.luck), ideal=f"I will have {_format_items(self.wishes['dishes'])}.", needs=(0, 1)
        )
        self.dishes = list((yield from _read_items(reply, self.menu)))
        if not self.dishes or not set(self.dishes) <= set(self.menu.dishes) or len(self.dishes) > _MOST_ITEMS:
            raise _Missed(f"should order dishes of the menu and nothing else: {shorten(reply)}")
        yield Wait(until_share=0.6)
        return f"orders {', '.join(self.dishes)} to eat"

    def replace(self) -> Step:
        missing = self.luck.choice(self.dishes)
        substitute = self.luck.choice(self._not_ordered(self.menu.dishes))
        reply = yield Ask(_RUN_OUT.say(self.luck, dish=missing), ideal=f"Then I take the {substitute}.", needs=(1, 2))
        chosen = yield from _read_items(reply, self.menu)
        others = set(self._not_ordered(chosen))
        if missing in chosen or not set(chosen) <= set(self.menu.dishes) or len(others) != 1:
            raise _Missed(f"should choose one other dish of the menu instead of {missing}: {shorten(reply)}")
        new = others.pop()
        self.dishes[self.dishes.index(missing)] = new
        yield Wait(until_share=0.8)
        return f"takes {new} instead of {missing}"

    def complain(self) -> Step:
        right = self.luck.choice(self.dishes)
        wrong = self.luck.choice(
            self._not_ordered(self.menu.list_section(right)) or self._not_ordered(self.menu.dishes)
        )
        served = [wrong if dish == right else dish for dish in self.dishes]
        reply = yield Ask(
            _SERVED.say(self.luck, dishes=_format_items(served)),
            ideal=f"I did not order the {wrong}; I ordered the {right}.",
            needs=(2, 3),
        )
        noticed = notices(reply, wrong, right, self.dishes)
        if noticed is None:
            noticed = yield from _judge_noticed(reply, wrong, right)
        if not noticed:
            raise _Missed(f"does not notice that it was served {wrong} instead of {right}: {shorten(reply)}")
        yield Wait(until_share=0.9)
        return f"notices that {wrong} was served instead of {right}"

    def drink_again(self) -> Step:
        reply = yield Ask(
            _SAME_AGAIN.say(self.luck), ideal=f"I was having the {' and the '.join(self.drinks)}.", needs=(1,)
        )
        if set((yield from _read_items(reply, self.menu))) != set(self.drinks):
            raise _Missed(f"had {', '.join(self.drinks)}, says: {shorten(reply)}")
        return f"knows that it had {', '.join(self.drinks)}"

    def _not_ordered(self, items: Sequence[str]) -> list[str]:
        return [item for item in items if item not in self.dishes]


def _read_items(reply: AgentReply, menu: Menu) -> Generator[Action, Any, Sequence[str]]:
    """The items that a reply orders; the judge reads it where the words of the menu do not."""
    order: Order = read_order(reply, menu.items)
    if not order.unclear:
        return order.items
    ruling = yield Consult(
        f"A guest of a restaurant has this menu:\n{menu.format()}\n\nThe guest says:\n{reply}\n\n"
        "Which items of the menu does the guest order? Answer with a JSON list of their names as the menu spells them.",
        parse=partial(_parse_items, menu.items),
        purpose="which items were ordered?",
    )
    if ruling.failed:
        raise _Undecided(f"only a judge (--judge) can read this order: {shorten(reply)}: {ruling.failure}")
    return tuple(ruling.value)


def _parse_items(menu: Sequence[str], text: str) -> list[str]:
    names = parse_json(text)
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ValueError(f"expected a JSON list of names, got {text[:80]!r}")
    return [item for name in names for item in read_order(name, menu).items]


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


@dataclass(frozen=True)
class Menu:
    """What a restaurant serves, by sections."""

    sections: tuple[tuple[str, tuple[str, ...]], ...]

    @classmethod
    def of(cls, sections: Mapping[str, Sequence[str]]) -> Menu:
        # In the order of the pool, whatever the order in which a stored one comes.
        return cls(tuple((section, tuple(sections[section])) for section in POOL if section in sections))

    @property
    def items(self) -> tuple[str, ...]:
        return tuple(name for _, names in self.sections for name in names)

    @property
    def drinks(self) -> tuple[str, ...]:
        return tuple(name for name in self.items if name in DRINKS)

    @property
    def dishes(self) -> tuple[str, ...]:
        return tuple(name for name in self.items if name not in DRINKS)

    def list_section(self, dish: str) -> tuple[str, ...]:
        """The items of the section in which a dish stands."""
        return next(names for _, names in self.sections if dish in names)

    def format(self, prices: Sequence[float] = ()) -> str:
        lines, number = [], 0
        for section, names in self.sections:
            lines.append(section)
            for name in names:
                number += 1
                price = f" – {prices[number - 1]:.2f} €" if prices else ""
                lines.append(f"  {number}. {name}{price}")
        return "\n".join(lines)


@dataclass(frozen=True)
class Order:
    """What a reply asks for; `unclear` if it seems to speak of the menu in words that fit several items or none."""

    items: tuple[str, ...]
    unclear: bool = False


def read_order(reply: str, menu: Sequence[str]) -> Order:
    """The items that a reply orders; also those that are on other restaurants' menus, but numbers of this one."""
    reply = spell_like(reply, _MEANING, *menu)
    ordered = {_MEANING[phrase] for phrase in find_all_claims(_REGRET.sub(" ", reply), _MEANING)}
    numbers = {int(number) for listed in _NUMBER.findall(fold(reply)) for number in re.findall(r"\d{1,2}", listed)}
    known = (*menu, *(name for name in (*DISHES, *DRINKS) if name not in menu))
    items = tuple(
        name for place, name in enumerate(known, start=1) if name in ordered or (place in numbers and name in menu)
    )
    return Order(items, unclear=not items and bool(find_phrases(reply, _AMBIGUOUS)))


def _map_words() -> dict[str, str]:
    names = (*DISHES, *DRINKS)
    counts = Counter(word for name in names for word in set(split_words(name)))
    meaning = {name: name for name in names}
    for name in names:
        meaning.update({word: name for word in split_words(name) if counts[word] == 1 and word not in _TOO_COMMON})
    return meaning


# `What a pity about the duck` does not order it.
_REGRET = lazy_pattern(
    r"\b(?:what a (?:shame|pity)|(?:too|so) bad|(?:a |that's a )?pity|(?:i'm |i am )?sorry to hear)\b[^.!?;,\n]{0,100}",
    re.IGNORECASE,
)
_NUMBER = lazy_pattern(
    r"(?:\bnumbers?|\bnos?\.|\bnr\.?|#)\s*(\d{1,2}(?:(?:,| and|, and| &|, #| and #)\s?\d{1,2}){0,5})\b"
)
# Words of the menu that a guest may use without meaning the item, or for several of them.
_TOO_COMMON = frozenset({"with", "in", "fish", "water", "tea", "beer", "soup", "vine", "leaves", "ale", "ginger", "apricot",
                         "apple", "roast", "grilled", "smoked", "stuffed", "breast", "wheat", "juice", "wild",
                         "butter", "rings",
                         "nest", "plum", "almond", "hazelnut", "tomato", "chicken"})  # fmt: skip
_AMBIGUOUS = (
    "fish", "water", "tea", "beer", "soup", "pasta", "wine", "coffee", "meat", "dessert", "cake", "potato", "lamb",
)  # fmt: skip
_MEANING = _map_words()


def notices(reply: str, wrong: str, right: str, ordered: Sequence[str] = ()) -> bool | None:
    """Whether the reply objects to the wrong dish; None where it neither clearly objects nor clearly accepts.

    Who misses a dish that is not one of those `ordered`, and not the right one, does not know what was ordered.
    """
    reply = spell_like(reply, _MEANING, wrong, right)
    missed = set(read_order(_WANTED.sub("ordered", _DISH_ON_TABLE.sub(" ", reply)), ()).items) - {wrong}
    if ordered and right not in missed and missed - set(ordered):
        # It may speak of what it ordered before.
        return None if len(find_phrases(reply, (wrong, right))) == 2 else False
    mentioned = {*read_order(reply, ()).items}
    if right not in mentioned and _asks_for_wrong(reply, wrong):
        return False
    if (refused := _list_refused(reply)) and refused <= {*ordered} - {right} and right not in mentioned:
        # Objects to what was ordered; of the dish in question it may say something as well.
        return None if wrong in mentioned else False
    text = _CONTENT.sub(" ", fold(reply))
    objects = _OBJECTION.search(text) is not None
    order = read_order(reply, ()).items
    named = bool(find_phrases(reply, (wrong, right))) or wrong in order or right in order
    named = named or any(len(word) > _SHORT and word in split_words(reply) for word in split_words(wrong))
    if named and _DOUBTS.search(text):
        return None
    if objects and named:
        return True
    if not objects and right not in order and not find_phrases(reply, (right,)):
        return False
    return None


def _asks_for_wrong(reply: str, wrong: str) -> bool:
    """Whether the reply says that it ordered the very dish that it did not order."""
    return any(wrong in read_order(part, ()).items for part in _ASKED_FOR.findall(reply))


def _list_refused(reply: str) -> set[str]:
    """The dishes of which the reply says that they were not ordered."""
    return {item for parts in _NOT_MINE.findall(reply) for part in parts for item in read_order(part, ()).items}


# `I ordered the soup`, and neither `I never ordered it` nor `I ordered the fish and got the soup`.
_ASKED_FOR = lazy_pattern(
    r"(?<!believe )(?<!think )(?<!suppose )(?<!remember )\bI(?:'d| had|'ve| have)? "
    r"(?:ordered|asked for|wanted|chose|chosen|picked) (?![^.!;,\n]{0,60}\?)"
    r"((?:(?!\b(?:not|and|but|instead|rather|got|than|never|when|after|before)\b|n't)[^.!?;,\n–—]){1,50})",
    re.IGNORECASE,
)
_NOT_MINE = lazy_pattern(
    r"(?:n't|\bnot|\bnever) (?:(?:think|believe|remember|recall) (?:that )?(?:i(?:'d| had|'ve| have)? )?)?"
    r"(?:order(?:ed|ing)?|ask(?:ed|ing)? for|want(?:ed)?) ([^.!?;,\n–—]{1,50})"
    r"|([^.!?;,\n–—]{1,50}?) (?:(?:is|are|was|were)(?:n't| not)) (?:what i|mine|my|for me|right)\b",
    re.IGNORECASE,
)
# `You brought me the soup` and `this is soup` speak of what was served.
_DISH_ON_TABLE = lazy_pattern(
    r"\b(?:brought|served|gave|given|got|received|this is|that is|that's|there is|there's|these are|what is"
    r"|looks like)\b[^.!?;,\n]{1,60}",
    re.IGNORECASE,
)
_WANTED = lazy_pattern(r"\bwanted\b", re.IGNORECASE)
_SHORT = 4
# What sounds like an objection and is none: exactly what I ordered, nothing is wrong.
_CONTENT = lazy_pattern(
    r"n't (?:remember|recall|know) what i(?:'d| had| have)? ordered\b"
    r"|\b(?:just|exactly|precisely) what i(?:'d| had| have)? (?:ordered|wanted|wished|asked)\b"
    r"|\b(?:as|is what|just what|exactly what|everything) (?:i )?(?:had |have )?ordered\b|\bno "
    r"(?:mistakes?|errors?|mix[ -]?up)\b"
    r"|\bnothing (?:is |was |seems )?(?:wrong|missing|incorrect)\b"
)
_DOUBTS = lazy_pattern(
    r"\bdid i\b[^.!\n]{0,60}\?[^?]{0,40}\bnot (?:sure|certain)\b|\bi'?m not sure (?:if|whether) (?:i|that)\b"
)
_OBJECTION = lazy_pattern(
    r"n't (?:think so\b|order|ask|what|have|right|mine|my|remember|recall|the|for me)|\bnot "
    r"(?:order|ask|what|mine|my|right|correct|the|quite|exactly|for me)|\bordered\b"
    r"|n't (?:think|believe|suppose)\b[^.!?\n]{0,60}\b(?:mine|my|i|right|correct)\b"
    r"|\bwrong\b|\bmistake\b|\bmix(?:ed)?[ -]?up\b|\binstead\b|\bshould (?:be|have)\b|\bsupposed\b|\bmissing\b"
    r"|\basked for\b|\bnever (?:order|ask)|\bswap|\bexchange|\bincorrect\b|\berror\b|\bexpect|\bwanted\b"
    r"|\b(?:had|i) (?:chosen|chose)\b|\b(?:wasn't|weren't|didn't) i\b"
    r"|\b(?:somebody|someone|anyone) else|\banother table\b|\bwhere(?:'s| is| are) (?:my|the)\b|\balmost[,:.]"
)


# --- the guest who remembers ------------------------------------------------------------------------------------------


class _Guest(Reader):
    """Orders from the menu that it was given last, and remembers what it said itself."""

    def __init__(self) -> None:
        self._menu: Menu | None = None
        self._drink = ""
        self._dishes: list[str] = []

    def answer(self, message: str, now: datetime) -> str | None:
        if _GREETING.matches(message) and _DRINK.matches(message):
            return self._order_drink(message)
        if self._menu is None:
            return None
        if _EAT.matches(message):
            self._dishes = [names[0] for _, names in self._menu.sections if names[0] not in DRINKS][1:4]
            return f"I will have {_format_items(self._dishes)}, please."
        if (gone := _RUN_OUT.read(message)) is not None and gone["dish"] in self._dishes:
            other = next(dish for dish in self._menu.dishes if dish not in self._dishes)
            self._dishes[self._dishes.index(gone["dish"])] = other
            return f"Then I take the {other}."
        if (served := _SERVED.read(message)) is not None and self._dishes:
            brought = [dish for dish in self._menu.dishes if dish in served["dishes"]]
            wrong = [dish for dish in brought if dish not in self._dishes]
            missing = [dish for dish in self._dishes if dish not in brought]
            return f"I did not order the {wrong[0]}; I ordered the {missing[0]}." if wrong and missing else "Thank you."
        return f"I was having the {self._drink}." if _SAME_AGAIN.matches(message) else None

    def _order_drink(self, message: str) -> str:
        sections: dict[str, list[str]] = {}
        names: list[str] = []
        for line in message.splitlines():
            if line in POOL:
                names = sections.setdefault(line, [])
            elif (item := _MENU_LINE.match(line)) is not None:
                names.append(item[1])
        self._menu = Menu.of(sections)
        self._drink, self._dishes = self._menu.drinks[0], []
        return f"I would like the {self._drink}, please."


_MENU_LINE = lazy_pattern(r"\s+\d+\. (.+?)(?: – [\d.]+ €)?$")
