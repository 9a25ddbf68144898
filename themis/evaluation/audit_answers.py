"""Makes answers of which it is known whether they are right, out of references: what a judge is audited with.

Right answers say a reference in other words; wrong ones stay on the topic and say something else, or nothing. No model is
asked, and the same seed makes the same answers.
"""

from __future__ import annotations

import calendar
import datetime
import enum
import random
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

from themis.core.codec import digest

__all__ = ["WRONG_KINDS", "AuditAnswer", "AuditItem", "Kind", "make_audit_answers"]


class Kind(enum.StrEnum):
    """What an answer is made of.

    >>> Kind("vague").is_right
    False
    """

    # Right: the reference itself, in a sentence or another form, and inside a longer explanation.
    REFERENCE = "reference"
    REPHRASED = "rephrased"
    EXPLAINED = "explained"
    # Wrong: another value of the same kind, the contrary, nearly the right value, and nothing definite.
    SPECIFIC = "specific"
    NEGATION = "negation"
    NEAR_MISS = "near_miss"
    VAGUE = "vague"

    @property
    def is_right(self) -> bool:
        return self in (Kind.REFERENCE, Kind.REPHRASED, Kind.EXPLAINED)


RIGHT_KINDS = tuple(kind for kind in Kind if kind.is_right)
WRONG_KINDS = tuple(kind for kind in Kind if not kind.is_right)


@dataclass(frozen=True)
class AuditItem:
    """A question with everything that is accepted as its answer; `topic` is the question without what surrounds it."""

    item_id: str
    prompt: str
    references: tuple[str, ...]
    topic: str = ""

    @property
    def question(self) -> str:
        """The topic, or the last sentence of the prompt that asks, or its last line."""
        asked = re.findall(r"[^.?!\n]+\?", self.prompt)
        lines = [line for line in self.prompt.splitlines() if line.strip()]
        return self.topic or (asked or lines or [self.prompt])[-1].strip()

    @property
    def asks_for(self) -> str:
        """The word that asks: who, when, where, why, how; nothing where none does, or what and which."""
        found = re.search(r"\b(who|whom|whose|when|where|why|how)\b", self.question, re.IGNORECASE)
        return found[0].lower() if found else ""


@dataclass(frozen=True)
class AuditAnswer:
    """A made answer to an item."""

    item_id: str
    kind: Kind
    text: str


def make_audit_answers(items: Sequence[AuditItem], n: int, *, seed: int = 0) -> list[AuditAnswer]:
    """As many answers as are wanted, or can be made: half of them right, the wrong ones of four kinds in equal parts.

    Items are used in an order of the seed's, none a second time for one kind, so that answers are as independent as the
    items allow. What might be right by accident is not among the wrong ones: a value that equals an accepted one after
    normalisation, or that contains it or is contained in it.

    Args:
        items: Questions with references.
        n: How many answers.
        seed: Of the draws.

    >>> items = [AuditItem("1", "How many legs has a spider?", ("8",)), AuditItem("2", "And an ant?", ("6",))]
    >>> for answer in make_audit_answers(items, 8)[4:]:
    ...     print(answer.item_id, answer.kind, answer.text)
    2 specific That comes to 8.
    2 negation Anything but 6.
    1 near_miss 7, as far as I can tell.
    1 vague It was something that came up in connection with legs spider.
    """
    accepted = _accepted_by_prompt(items)
    others = _values_by_shape(items)
    made = [
        _Maker(item, accepted[item.prompt], others, seed)
        for item in items
        if any(reference.strip() for reference in item.references)
    ]
    order = random.Random(seed)
    of_right = _take_in_turn(made, RIGHT_KINDS, (n + 1) // 2, order)
    of_wrong = _take_in_turn(made, WRONG_KINDS, n // 2, order)
    return [*of_right, *of_wrong]


def _take_in_turn(
    makers: Sequence[_Maker], kinds: Sequence[Kind], wanted: int, order: random.Random
) -> list[AuditAnswer]:
    """Kinds in equal parts, each from items in an order of its own; a kind that runs out leaves its part to the others."""
    queues = {kind: _answers_of_kind(order.sample(makers, len(makers)), kind) for kind in kinds}
    found: list[AuditAnswer] = []
    said: set[tuple[str, str]] = set()
    while queues and len(found) < wanted:
        for kind in list(queues):
            answer = next((one for one in queues[kind] if (one.item_id, one.text) not in said), None)
            if answer is None:
                del queues[kind]
            elif len(found) < wanted:
                said.add((answer.item_id, answer.text))
                found.append(answer)
    return found


def _answers_of_kind(makers: Sequence[_Maker], kind: Kind) -> Iterator[AuditAnswer]:
    for maker in makers:
        text = maker.make(kind)
        if text is not None:
            yield AuditAnswer(maker.item.item_id, kind, text)


def _accepted_by_prompt(items: Iterable[AuditItem]) -> dict[str, list[str]]:
    """Everything that some item accepts as the answer to a prompt."""
    accepted: dict[str, list[str]] = {}
    for item in items:
        accepted.setdefault(item.prompt, []).extend(item.references)
    return accepted


def _values_by_shape(items: Iterable[AuditItem]) -> dict[_Shape, list[str]]:
    values: dict[_Shape, dict[str, None]] = {}
    for item in items:
        for reference in item.references[:1]:
            shape = _Value.read(reference, item.asks_for).shape
            # Also for whoever finds nothing that answers the same sort of question.
            for wanted in {shape, _Shape(shape.form)}:
                values.setdefault(wanted, {})[reference.strip()] = None
    return {shape: list(found) for shape, found in values.items()}


# --- what a reference is ------------------------------------------------------------------------------------------------


class _Shape(NamedTuple):
    """What may stand in for what: a number for a number of the same unit, a name for a name that is asked for alike."""

    form: str
    unit: str = ""


_YES_NO = {"yes": "no", "no": "yes", "true": "false", "false": "true"}
_NUMBER = re.compile(
    r"(?P<before>[$€£]?)(?P<digits>-?\d{1,3}(?:,\d{3})+|-?\d+)(?P<decimals>\.\d+)?(?P<after>\s*[%a-zA-Zµ°]*[²³]?)"
)
_LONGEST_NAME = 6
_LONGEST_DATE = len("30th September, 2024.")
_MOST_LOOKED_AT = 50
_DATE_FORMS = ("%Y-%m-%d", "%d %B %Y", "%d %B, %Y", "%B %d, %Y", "%d %b %Y", "%b %d, %Y")
_MONTH_FORMS = ("%B %Y", "%B, %Y", "%b %Y")
_WRITTEN = re.findall(
    r"\w+",
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen "
    "nineteen twenty",
)
_UNITS = {"km": "kilometres", "m": "metres", "cm": "centimetres", "kg": "kilograms", "g": "grams", "%": "percent", "h": "hours",
          "min": "minutes", "s": "seconds", "$": "dollars", "€": "euros", "£": "pounds"}  # fmt: skip


@dataclass(frozen=True)
class _Value:
    """A reference, read: its text, what it is of, and its number or date."""

    text: str
    shape: _Shape
    number: float | None = None
    date: datetime.date | None = None

    @classmethod
    def read(cls, reference: str, asks_for: str = "") -> _Value:
        text = " ".join(reference.split())
        if text.lower().rstrip(".") in _YES_NO:
            return cls(text.rstrip("."), _Shape("yes or no"))
        if re.fullmatch(r"\(?[A-J]\)?", text):
            return cls(text, _Shape("letter"))
        if date := _read_date(text, _DATE_FORMS):
            return cls(text, _Shape("date"), date=date)
        if date := _read_date(text, _MONTH_FORMS):
            return cls(text, _Shape("month"), date=date)
        if re.fullmatch(r"1\d{3}|20\d{2}", text):
            return cls(text, _Shape("year"), number=float(text))
        if match := _NUMBER.fullmatch(text):
            number = float(match["digits"].replace(",", "") + (match["decimals"] or ""))
            return cls(text, _Shape("number", match["before"] + match["after"].strip()), number=number)
        words = text.split()
        if len(words) > _LONGEST_NAME:
            return cls(text, _Shape("text", asks_for))
        is_name = all(word[:1].isupper() or word.lower() in _SMALL_WORDS for word in words)
        return cls(text, _Shape("name" if is_name else "phrase", asks_for))


def _read_date(text: str, forms: Sequence[str]) -> datetime.date | None:
    if len(text) > _LONGEST_DATE or not re.search(r"\d{4}", text):
        return None
    plain = re.sub(r"(?<=\d)(?:st|nd|rd|th)\b", "", text.rstrip("."))
    for form in forms:
        try:
            return datetime.datetime.strptime(plain, form).date()
        except ValueError:
            continue
    return None


# Words that hold no fact.
_SMALL_WORDS = frozenset(
    re.findall(
        r"\w+",
        "a an the of in on at to for from by and or with is are was were be been it its this that these those as what which who "
        "whom whose when where why how many much did do does done has have had not no yes can could would should will may might "
        "there their they he she his her you your i we our us me my according given answer question following please",
    )
)


@lru_cache(maxsize=4096)
def _normalise(text: str) -> tuple[str, ...]:
    """The words of an answer that matter; numbers and dates by value."""
    value = _Value.read(text)
    if value.date is not None:
        # A year holds its months, and a month its days.
        parts = value.date.isoformat().split("-")
        return tuple(parts[:2] if value.shape.form == "month" else parts)
    if value.number is not None:
        return (f"{value.number:g}",)
    words = re.findall(r"\w+", text.casefold().replace(",", ""))
    return tuple(word for word in words if word not in ("a", "an", "the"))


def _may_be_right(text: str, accepted: Iterable[str]) -> bool:
    """Whether one of the two says what the other says, perhaps with more words."""
    words = _normalise(text)
    return any(_contains(words, right) or _contains(right, words) for right in map(_normalise, accepted))


def _contains(words: Sequence[str], part: Sequence[str]) -> bool:
    length = len(part)
    return any(tuple(words[start : start + length]) == tuple(part) for start in range(len(words) - length + 1))


# --- what is made of it ---------------------------------------------------------------------------------------------------

_FRAMES = {
    "number": ("It is {}.", "The answer is {}.", "That comes to {}.", "{}, as far as I can tell."),
    "date": ("It was on {}.", "The answer is {}.", "That happened on {}.", "{}, as far as I can tell."),
    "month": ("It was in {}.", "The answer is {}.", "That happened in {}.", "{}, as far as I can tell."),
    "year": ("It was in {}.", "The answer is {}.", "That happened in {}.", "{}, as far as I can tell."),
    "letter": ("The answer is {}.", "I choose {}.", "Option {}.", "Answer: {}"),
    "name": ("It was {}.", "The answer is {}.", "That would be {}.", "{}, as far as I can tell."),
}
_EXPLAINED = (
    "I went through what was asked step by step and weighed each possibility. {} Everything that was said agrees with this.",
    "There are several things one could consider here, and one of them settles the question. {} I have checked this again and "
    "am confident of it.",
)
_VAGUE = (
    "It has to do with {topic}.",
    "It was something that came up in connection with {topic}.",
    "That is described where {topic} is spoken of, and it was quite meaningful.",
    "It depends on the circumstances of {topic}; there was a particular one.",
)


@dataclass
class _Maker:
    """Makes the answers to one item."""

    item: AuditItem
    accepted: Sequence[str]
    others: Mapping[_Shape, Sequence[str]]
    seed: int

    @cached_property
    def draw(self) -> random.Random:
        return random.Random(digest(str(self.seed), self.item.item_id, self.item.prompt))

    @cached_property
    def _value(self) -> _Value:
        first = next(reference for reference in self.item.references if reference.strip())
        return _Value.read(first, self.item.asks_for)

    def _some_others(self) -> list[str]:
        """Values that other items have and that are wrong here: of the same shape, or at least of the same form."""
        shape = self._value.shape
        for pool in (self.others.get(shape, ()), self.others.get(_Shape(shape.form), ())):
            some = self.draw.sample(pool, min(len(pool), _MOST_LOOKED_AT))
            if wrong := [text for text in some if not _may_be_right(text, self.accepted)]:
                return wrong
        return []

    def make(self, kind: Kind) -> str | None:
        """An answer of this kind; None where there is none."""
        makers: dict[Kind, Callable[[], str | None]] = {
            Kind.REFERENCE: lambda: self._value.text,
            Kind.REPHRASED: self._rephrase,
            Kind.EXPLAINED: lambda: self.draw.choice(_EXPLAINED).format(self._sentence(self._value.text)),
            Kind.SPECIFIC: self._other_value,
            Kind.NEGATION: self._negate,
            Kind.NEAR_MISS: self._miss,
            Kind.VAGUE: self._evade,
        }
        return makers[kind]()

    # --- right ---

    def _rephrase(self) -> str:
        value = self._value
        if value.shape.form == "yes or no":
            is_yes = value.text.lower() in ("yes", "true")
            said = ("Yes, that is so.", "Indeed, that is the case.", "That is correct.")
            denied = ("No, that is not so.", "That is not the case.", "No, it is not.")
            return self.draw.choice(said if is_yes else denied)
        forms = [self._sentence(value.text), *map(self._sentence, _other_forms(value)), *_other_cases(value)]
        forms += [self._sentence(other) for other in self.item.references[1:] if other.strip()]
        return self.draw.choice(forms)

    def _sentence(self, text: str) -> str:
        form = self._value.shape.form
        if form in ("text", "phrase"):
            return f"The answer is: {text.rstrip('.')}."
        if form == "yes or no":
            return f"The answer is {text.lower()}."
        return self.draw.choice(_FRAMES[form]).format(text)

    # --- wrong ---

    def _other_value(self) -> str | None:
        """What is the answer to another item, of the same shape."""
        shape = self._value.shape
        if shape.form == "yes or no":
            return None  # that is the negation
        if shape.form == "letter":
            values = [letter for letter in "ABCD" if not _may_be_right(letter, self.accepted)]
        else:
            values = self._some_others() or self._invented_values()
        if not values:
            return None
        chosen = self.draw.choice(values)
        return self.draw.choice([chosen, self._sentence(chosen)])

    def _invented_values(self) -> list[str]:
        """Numbers and dates that are far from the right one, where no other item has any."""
        value = self._value
        made: list[str] = []
        if value.number is not None:
            made = [_with_number(value, value.number * factor + 7) for factor in (2, 3, 5)]
        elif value.date is not None:
            years = [year for year in (value.date.year - 3, value.date.year + 2) if 1 <= year <= 9998]
            made = [_with_date(value, value.date.replace(year=year, day=min(value.date.day, 28))) for year in years]
        return [text for text in made if not _may_be_right(text, self.accepted)]

    def _negate(self) -> str | None:
        value = self._value
        if value.shape.form == "yes or no":
            word = _YES_NO[value.text.lower()].capitalize()
            return self.draw.choice([f"{word}.", f"The answer is {word.lower()}.", f"{word}, clearly."])
        text = value.text.rstrip(".")
        if value.shape.form in ("text", "phrase"):
            return f"The answer is not: {text}."
        return self.draw.choice([f"It was not {text}.", f"Not {text}, but something else.", f"Anything but {text}."])

    def _miss(self) -> str | None:
        """Nearly the right value: another digit, a day before, one word replaced."""
        value = self._value
        if value.number is not None:
            made = [_with_number(value, number) for number in _near_numbers(value)]
        elif value.date is not None:
            made = [_with_date(value, date) for date in _near_dates(value)]
        elif value.shape.form in ("name", "phrase", "text"):
            made = _near_texts(value.text) or self._replace_a_word(value.text.split())
        else:
            return None
        safe = [text for text in made if not _may_be_right(text, self.accepted)]
        return self._sentence(self.draw.choice(safe)) if safe else None

    def _replace_a_word(self, words: list[str]) -> list[str]:
        """With one word from another item's value; not in a long text, which may be right without one of its words."""
        places = [place for place, word in enumerate(words) if word.casefold() not in _SMALL_WORDS]
        if not 2 <= len(words) <= _LONGEST_NAME or not places:
            return []
        known = {word for text in self.accepted for word in _normalise(text)}
        pool = [
            word.strip(".,;:")
            for text in self._some_others()
            for word in text.split()
            if word.casefold() not in _SMALL_WORDS and not known.intersection(_normalise(word))
        ]
        if not pool:
            return []
        place = self.draw.choice(places)
        return [" ".join([*words[:place], self.draw.choice(pool), *words[place + 1 :]])]

    def _evade(self) -> str | None:
        """On the topic and without the fact: the question's own words, less those of any accepted answer."""
        facts = {word for text in self.accepted for word in _normalise(text)}
        asked = re.findall(r"[\w'-]+", self.item.question)
        kept = [
            word for word in asked if word.casefold() not in _SMALL_WORDS and not facts.intersection(_normalise(word))
        ]
        topic = " ".join(dict.fromkeys(kept[:8])) or "what the question is about"
        return self.draw.choice(_VAGUE).format(topic=topic)


def _other_forms(value: _Value) -> list[str]:
    """The same number or date, written otherwise."""
    if value.shape.form in ("year", "month"):
        return []
    if value.date is not None:
        day = value.date
        month = calendar.month_name[day.month]
        forms = [f"{day.day} {month} {day.year}", f"{month} {day.day}, {day.year}", day.isoformat()]
        return [form for form in forms if form.casefold() != value.text.casefold()]
    if value.number is None:
        return []
    match = _NUMBER.fullmatch(value.text)
    assert match is not None  # it was read by this pattern
    before, digits, decimals, after = match["before"], match["digits"], match["decimals"] or "", match["after"].strip()
    plain = digits.replace(",", "")
    number, forms = int(plain), list[str]()
    if abs(number) >= 1000:
        grouped = f"{number:,}{decimals}"
        forms.append(f"{before}{plain if ',' in digits else grouped.removesuffix(decimals)}{decimals}{match['after']}")
    unit = _UNITS.get(before or after, "" if before else after)
    if not decimals and 0 <= number < len(_WRITTEN):
        forms.append(f"{_WRITTEN[number]} {unit}".strip())
    if (before or after) in _UNITS and number not in (1, -1):
        forms.append(f"{digits}{decimals} {unit}")
    return forms


def _other_cases(value: _Value) -> list[str]:
    return [value.text.upper(), value.text.lower()] if value.shape.form in ("name", "phrase") else []


def _near_numbers(value: _Value) -> list[float]:
    """One more, one less, and the last two digits swapped."""
    assert value.number is not None
    step = 1.0
    if match := re.search(r"\.(\d+)", value.text):
        step = 10.0 ** -len(match[1])
    near = [value.number + step, value.number - step]
    digits = str(abs(int(value.number)))
    if len(digits) >= 2 and digits[-1] != digits[-2] and step == 1.0:
        swapped = int(digits[:-2] + digits[-1] + digits[-2])
        near.append(float(swapped if value.number >= 0 else -swapped))
    return [number for number in near if (number < 0) <= (value.number < 0)]


def _with_number(value: _Value, number: float) -> str:
    """The value's text with another number in its place, written as it was."""
    match = _NUMBER.fullmatch(value.text)
    assert match is not None  # it was read by this pattern
    places = len(match["decimals"] or ".") - 1
    written = f"{number:,.{places}f}" if "," in match["digits"] else f"{number:.{places}f}"
    return f"{match['before']}{written}{match['after']}"


def _near_dates(value: _Value) -> list[datetime.date]:
    """The day before and after, the same day of the months beside it, and of the next year."""
    date = value.date
    assert date is not None
    if not 2 <= date.year <= 9997:
        return []
    day = min(date.day, 28)
    months = [date.replace(day=day) + datetime.timedelta(days=31), date.replace(day=1) - datetime.timedelta(days=1)]
    beside = [date - datetime.timedelta(days=1), date + datetime.timedelta(days=1)]
    return [
        *(beside if value.shape.form == "date" else ()),
        *(month.replace(day=day) for month in months),
        date.replace(year=date.year + 1, day=day),
    ]


def _near_texts(text: str) -> list[str]:
    """The text with another number, year or month in it, where it has one."""
    months = [name for name in calendar.month_name if name]
    made = []
    for found in re.finditer(r"[^\W_]+", text):
        word, others = found[0], list[str]()
        if word.isascii() and word.isdigit():
            others = [str(int(word) + 1), *([str(int(word) - 1)] if int(word) > 1 else [])]
        elif word.capitalize() in months:
            place = months.index(word.capitalize())
            others = [months[place - 1], months[(place + 1) % len(months)]]
        elif word.lower() in _WRITTEN[2:-1]:
            others = [_WRITTEN[_WRITTEN.index(word.lower()) + 1]]
        made += [f"{text[: found.start()]}{other}{text[found.end() :]}" for other in others]
    return made


def _with_date(value: _Value, date: datetime.date) -> str:
    """Another date in the form of the value's."""
    month = calendar.month_name[date.month]
    if value.shape.form == "month":
        return f"{month} {date.year}"
    if re.match(r"\d{4}-", value.text):
        return date.isoformat()
    if re.match(r"\d", value.text):
        return f"{date.day} {month} {date.year}"
    return f"{month} {date.day}, {date.year}"
