"""Filler: questions with their answers, sent to put distance between the messages of tests.

The agent is asked for the answers as a JSON list; that list is the expected reply. Message number n is made from the seed
and n alone, so replaying a conversation needs no state.
"""

from __future__ import annotations

import datetime
import json
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from themis.core.fingerprint import digest
from themis.core.registry import Registry
from themis.core.tokens import DEFAULT_TOKENIZER, tokenizer
from themis.exceptions import DatasetError
from themis.memory.tests.word_lists import MONTHS

_REQUEST = (
    "Here are some trivia questions with their answers. Reply with a JSON list of all the answers, in order, "
    "and nothing else."
)
# From so many pairs the last ones of a message are chosen to meet its size exactly.
_CLOSING_PAIRS = 512
# They make up the last part of a message, of so many times the largest pair.
_CLOSING_STEPS = 3


@dataclass(frozen=True, slots=True)
class FillerMessage:
    """A filler and the reply that is expected to it."""

    text: str
    reply: str


class Filler(Protocol):
    """Makes filler messages. `fingerprint` changes when any message would."""

    fingerprint: str

    def make(self, number: int, tokens: int) -> FillerMessage:
        """Message `number`, of so many tokens together with its expected reply."""


class Trivia:
    """Filler from pairs of questions and answers."""

    def __init__(
        self, pairs: Sequence[tuple[str, str]], *, seed: int = 0, tokenizer_name: str = DEFAULT_TOKENIZER
    ) -> None:
        if not pairs:
            raise DatasetError("filler needs at least one question with its answer, got none")
        self.fingerprint = digest(str(seed), *(part for pair in pairs for part in pair))
        self._pairs = pairs
        self._seed = seed
        self._count = tokenizer(tokenizer_name)
        # Both lines of every pair used so far, and their tokens.
        self._lines: list[tuple[str, str, int] | None] = [None] * len(pairs)
        self._frame = self._count(f"{_REQUEST}\n") + self._count("[\n") + self._count("]")
        closing = random.Random(seed).sample(range(len(pairs)), min(_CLOSING_PAIRS, len(pairs)))
        self._by_size: dict[int, list[int]] = {}
        for index in closing:
            self._by_size.setdefault(self._format_pair(index)[2], []).append(index)
        self._smallest, self._largest = min(self._by_size), max(self._by_size)
        # For every amount that pairs can make up exactly: the sizes that the first of them may have.
        self._first: dict[int, list[int]] = {0: []}
        for amount in range(1, _CLOSING_STEPS * self._largest + 1):
            sizes = [size for size in sorted(self._by_size) if amount - size in self._first]
            if sizes:
                self._first[amount] = sizes

    def make(self, number: int, tokens: int) -> FillerMessage:
        rng = random.Random(f"{self._seed}:{number}")
        draw, pairs, closing_tokens = rng.random, len(self._pairs), _CLOSING_STEPS * self._largest
        questions, answers = [f"{_REQUEST}\n"], ["[\n"]
        left = tokens - self._frame
        while left > closing_tokens:
            question, answer, size = self._format_pair(int(draw() * pairs))
            questions.append(question)
            answers.append(answer)
            left -= size
        for index in self._draw_closing(left, rng) or [rng.choice(self._by_size[self._smallest])]:
            question, answer, _ = self._format_pair(index)
            questions.append(question)
            answers.append(answer)
        # The last answer has no comma.
        answers[-1] = f"{answers[-1][:-2]}\n]"
        return FillerMessage("".join(questions), "".join(answers))

    def _draw_closing(self, left: int, rng: random.Random) -> list[int]:
        """Pairs whose sizes add up to what is left, or to as much of it as can be made up."""
        amount = next((amount for amount in range(left, 0, -1) if amount in self._first), 0)
        chosen: list[int] = []
        while amount:
            size = rng.choice(self._first[amount])
            chosen.append(rng.choice(self._by_size[size]))
            amount -= size
        return chosen

    def _format_pair(self, index: int) -> tuple[str, str, int]:
        """A pair as a line of the message and one of the reply; counted one by one, since no token spans a line's end."""
        lines = self._lines[index]
        if lines is None:
            question, answer = self._pairs[index]
            asked, answered = f"Q: {question}, A: {answer}\n", f"{json.dumps(answer, ensure_ascii=False)},\n"
            lines = self._lines[index] = (asked, answered, self._count(asked) + self._count(answered))
        return lines


# --- sources ----------------------------------------------------------------------------------------------------------


def create_filler(source: str, *, seed: int = 0, tokenizer_name: str = DEFAULT_TOKENIZER) -> Filler:
    """Filler by its registered name, or from a file.

    Args:
        source: A name such as `facts`; or TriviaQA's JSON, or JSONL with `question` and `answer`.
        seed: Decides the order.
        tokenizer_name: What tokens are counted with.

    Raises:
        DatasetError: The file cannot be read.
        ConfigurationError: There is no such filler; names the nearest.

    >>> type(create_filler("facts", seed=1)).__name__
    'Trivia'
    """
    if source in FILLERS:
        return FILLERS.get(source)(seed=seed, tokenizer_name=tokenizer_name)
    path = Path(source)
    if path.suffix.lower() in (".json", ".jsonl") or path.exists():
        return Trivia(read_pairs(path), seed=seed, tokenizer_name=tokenizer_name)
    FILLERS.get(source)  # names the nearest
    raise AssertionError("unreachable")


def facts(*, seed: int = 0, tokenizer_name: str = DEFAULT_TOKENIZER) -> Trivia:
    """The built-in filler."""
    return Trivia(trivia_pairs(), seed=seed, tokenizer_name=tokenizer_name)


def read_pairs(path: Path) -> list[tuple[str, str]]:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise DatasetError(f"filler file {str(path)!r} cannot be read: {error}") from error
    pairs = list(_parse_pairs(path, text))
    if not pairs:
        raise DatasetError(
            f"filler file {str(path)!r} has no pairs; expected TriviaQA's JSON (Data[].Question and Answer.Value) or "
            'JSONL with {"question": ..., "answer": ...}'
        )
    return pairs


def _parse_pairs(path: Path, text: str) -> Iterator[tuple[str, str]]:
    try:
        whole = json.loads(text)
    except ValueError:
        for number, line in enumerate(text.splitlines(), start=1):
            if line.strip():
                yield _parse_pair(path, number, _parse_line(path, number, line))
        return
    entries = whole.get("Data", [whole]) if isinstance(whole, dict) else whole
    for number, entry in enumerate(entries, start=1):
        yield _parse_pair(path, number, entry)


def _parse_line(path: Path, number: int, line: str) -> object:
    try:
        return json.loads(line)
    except ValueError as error:
        raise DatasetError(f"{path}:{number} is not JSON: {error}") from error


def _parse_pair(path: Path, number: int, entry: object) -> tuple[str, str]:
    if isinstance(entry, dict):
        question = entry.get("Question", entry.get("question"))
        answer = entry.get("AnswerValue", entry.get("Answer", entry.get("answer")))
        if isinstance(answer, dict):
            answer = answer.get("Value")
        if isinstance(question, str) and isinstance(answer, str | int | float):
            # A line break inside would make one pair two lines.
            return " ".join(question.split()), " ".join(str(answer).split())
    raise DatasetError(f"{path}: entry {number} has no question with an answer: {str(entry)[:120]}")


FILLERS: Registry[Callable[..., Filler]] = Registry("filler", {"facts": "themis.memory.filler:facts"})


# --- our own trivia: some tables, the rest computed, so that every answer is right --------------------------------------

_ELEMENTS = (
    "Hydrogen H, Helium He, Lithium Li, Beryllium Be, Boron B, Carbon C, Nitrogen N, Oxygen O, Fluorine F, Neon Ne, "
    "Sodium Na, Magnesium Mg, Aluminium Al, Silicon Si, Phosphorus P, Sulfur S, Chlorine Cl, Argon Ar, Potassium K, "
    "Calcium Ca, Scandium Sc, Titanium Ti, Vanadium V, Chromium Cr, Manganese Mn, Iron Fe, Cobalt Co, Nickel Ni, "
    "Copper Cu, Zinc Zn, Gallium Ga, Germanium Ge, Arsenic As, Selenium Se, Bromine Br, Krypton Kr, Rubidium Rb, "
    "Strontium Sr, Yttrium Y, Zirconium Zr, Niobium Nb, Molybdenum Mo, Technetium Tc, Ruthenium Ru, Rhodium Rh, "
    "Palladium Pd, Silver Ag, Cadmium Cd, Indium In, Tin Sn, Antimony Sb, Tellurium Te, Iodine I, Xenon Xe, "
    "Caesium Cs, Barium Ba, Lanthanum La, Cerium Ce, Praseodymium Pr, Neodymium Nd, Promethium Pm, Samarium Sm, "
    "Europium Eu, Gadolinium Gd, Terbium Tb, Dysprosium Dy, Holmium Ho, Erbium Er, Thulium Tm, Ytterbium Yb, "
    "Lutetium Lu, Hafnium Hf, Tantalum Ta, Tungsten W, Rhenium Re, Osmium Os, Iridium Ir, Platinum Pt, Gold Au, "
    "Mercury Hg, Thallium Tl, Lead Pb, Bismuth Bi, Polonium Po, Astatine At, Radon Rn, Francium Fr, Radium Ra, "
    "Actinium Ac, Thorium Th, Protactinium Pa, Uranium U, Neptunium Np, Plutonium Pu, Americium Am, Curium Cm"
)

_CAPITALS = (
    "Afghanistan:Kabul, Albania:Tirana, Algeria:Algiers, Angola:Luanda, Argentina:Buenos Aires, Armenia:Yerevan, "
    "Australia:Canberra, Austria:Vienna, Azerbaijan:Baku, Bahrain:Manama, Bangladesh:Dhaka, Belarus:Minsk, "
    "Belgium:Brussels, Belize:Belmopan, Bhutan:Thimphu, Botswana:Gaborone, Brazil:Brasília, Bulgaria:Sofia, "
    "Cambodia:Phnom Penh, Cameroon:Yaoundé, Canada:Ottawa, Chad:N'Djamena, Chile:Santiago, China:Beijing, "
    "Colombia:Bogotá, Costa Rica:San José, Croatia:Zagreb, Cuba:Havana, Cyprus:Nicosia, Czechia:Prague, "
    "Denmark:Copenhagen, Ecuador:Quito, Egypt:Cairo, El Salvador:San Salvador, Eritrea:Asmara, Estonia:Tallinn, "
    "Ethiopia:Addis Ababa, Fiji:Suva, Finland:Helsinki, France:Paris, Gabon:Libreville, Georgia:Tbilisi, "
    "Germany:Berlin, Ghana:Accra, Greece:Athens, Guatemala:Guatemala City, Guinea:Conakry, Guyana:Georgetown, "
    "Haiti:Port-au-Prince, Honduras:Tegucigalpa, Hungary:Budapest, Iceland:Reykjavík, India:New Delhi, Iran:Tehran, "
    "Iraq:Baghdad, Ireland:Dublin, Italy:Rome, Jamaica:Kingston, Japan:Tokyo, Jordan:Amman, Kenya:Nairobi, "
    "Kuwait:Kuwait City, Kyrgyzstan:Bishkek, Laos:Vientiane, Latvia:Riga, Lebanon:Beirut, Lesotho:Maseru, "
    "Liberia:Monrovia, Libya:Tripoli, Lithuania:Vilnius, Luxembourg:Luxembourg, Madagascar:Antananarivo, "
    "Malawi:Lilongwe, Malaysia:Kuala Lumpur, Maldives:Malé, Mali:Bamako, Malta:Valletta, Mauritania:Nouakchott, "
    "Mauritius:Port Louis, Mexico:Mexico City, Moldova:Chișinău, Mongolia:Ulaanbaatar, Montenegro:Podgorica, "
    "Morocco:Rabat, Mozambique:Maputo, Namibia:Windhoek, Nepal:Kathmandu, the Netherlands:Amsterdam, "
    "New Zealand:Wellington, Nicaragua:Managua, Niger:Niamey, Nigeria:Abuja, North Macedonia:Skopje, Norway:Oslo, "
    "Oman:Muscat, Pakistan:Islamabad, Panama:Panama City, Papua New Guinea:Port Moresby, Paraguay:Asunción, "
    "Peru:Lima, the Philippines:Manila, Poland:Warsaw, Portugal:Lisbon, Qatar:Doha, Romania:Bucharest, "
    "Russia:Moscow, Rwanda:Kigali, Samoa:Apia, Saudi Arabia:Riyadh, Senegal:Dakar, Serbia:Belgrade, "
    "Sierra Leone:Freetown, Slovakia:Bratislava, Slovenia:Ljubljana, Somalia:Mogadishu, South Korea:Seoul, "
    "Spain:Madrid, Sudan:Khartoum, Suriname:Paramaribo, Sweden:Stockholm, Switzerland:Bern, Syria:Damascus, "
    "Tajikistan:Dushanbe, Thailand:Bangkok, Togo:Lomé, Tonga:Nukuʻalofa, Tunisia:Tunis, Turkey:Ankara, "
    "Turkmenistan:Ashgabat, Uganda:Kampala, Ukraine:Kyiv, the United Arab Emirates:Abu Dhabi, "
    "the United Kingdom:London, the United States:Washington, Uruguay:Montevideo, Uzbekistan:Tashkent, "
    "Vanuatu:Port Vila, Venezuela:Caracas, Vietnam:Hanoi, Zambia:Lusaka, Zimbabwe:Harare"
)

_ROMAN = ((100, "C"), (90, "XC"), (50, "L"), (40, "XL"), (10, "X"), (9, "IX"), (5, "V"), (4, "IV"), (1, "I"))
# Exact by definition: how many of the second there are in one of the first.
_UNITS = (
    *(("weeks", "days", 7), ("days", "hours", 24), ("hours", "minutes", 60), ("minutes", "seconds", 60)),
    *(("kilometres", "metres", 1_000), ("metres", "centimetres", 100), ("kilograms", "grams", 1_000)),
    *(("yards", "feet", 3), ("feet", "inches", 12), ("dozens", "pieces", 12), ("litres", "millilitres", 1_000)),
    *(("centuries", "years", 100), ("kibibytes", "bytes", 1_024), ("full turns", "degrees", 360)),
)
_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


def trivia_pairs() -> list[tuple[str, str]]:
    """Distinct questions with their answers, always in the same order."""
    return [*_elements(), *_capitals(), *_numbers(), *_romans(), *_units(), *_calendar(), *_letters()]


def _elements() -> Iterator[tuple[str, str]]:
    for number, entry in enumerate(_ELEMENTS.split(", "), start=1):
        element, symbol = entry.split()
        yield f"What is the chemical symbol of {element.lower()}?", symbol
        yield f"Which element has the atomic number {number}?", element
        yield f"Which element has the chemical symbol {symbol}?", element


def _capitals() -> Iterator[tuple[str, str]]:
    for entry in _CAPITALS.split(", "):
        country, capital = entry.split(":")
        yield f"What is the capital of {country}?", capital
        yield f"Of which country is {capital} the capital?", country.removeprefix("the ")


def _numbers() -> Iterator[tuple[str, str]]:
    for number in range(11, 100):
        yield f"What is the square of {number}?", str(number * number)
        yield f"Is {number} a prime number?", "yes" if _smallest_factor(number) == number else "no"
        yield f"What is the smallest prime factor of {number * 2 - 1}?", str(_smallest_factor(number * 2 - 1))
        yield f"How is {number} written in binary?", f"{number:b}"
        yield (
            f"How many seconds are there in {number} minutes and {number % 60} seconds?",
            str(number * 60 + number % 60),
        )
    for first in range(12, 30):
        for second in range(first + 1, 50):
            yield f"What is {first} times {second}?", str(first * second)


def _romans() -> Iterator[tuple[str, str]]:
    for number in range(14, 100):
        text, rest = "", number
        for value, numeral in _ROMAN:
            text += numeral * (rest // value)
            rest %= value
        yield f"How is the number {number} written in Roman numerals?", text


def _units() -> Iterator[tuple[str, str]]:
    for larger, smaller, factor in _UNITS:
        for amount in range(2, 22):
            yield f"How many {smaller} are there in {amount} {larger}?", str(amount * factor)


def _calendar() -> Iterator[tuple[str, str]]:
    for year in range(1900, 2000, 3):
        for month in (year % 12, (year + 5) % 12):
            day = datetime.date(year, month + 1, 1 + year % 28)
            shown = f"{day.day} {MONTHS[month]} {year}"
            yield f"Which day of the week was {shown}?", _WEEKDAYS[day.weekday()]
            yield (
                f"Which day of the year {year} was {day.day} {MONTHS[month]}, counted from 1?",
                str(day.timetuple().tm_yday),
            )
    for year in range(1904, 2024, 2):
        leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
        yield f"Was or is {year} a leap year in the Gregorian calendar?", "yes" if leap else "no"


def _letters() -> Iterator[tuple[str, str]]:
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    for place, letter in enumerate(alphabet, start=1):
        yield f"Which place does the letter {letter} have in the English alphabet?", str(place)
        if place < len(alphabet):
            yield f"Which letter follows {letter} in the English alphabet?", alphabet[place]


def _smallest_factor(number: int) -> int:
    return next((factor for factor in range(2, int(number**0.5) + 1) if number % factor == 0), number)
