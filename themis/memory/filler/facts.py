"""Our own trivia: some tables, the rest computed, so that every answer is right."""

from __future__ import annotations

import datetime
from collections.abc import Iterator

from themis.core.tokens import DEFAULT_TOKENIZER
from themis.memory.filler.grammar import Draw
from themis.memory.filler.trivia import Trivia
from themis.memory.tests.word_lists import MONTHS

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

_ROMAN = (
    *((1_000, "M"), (900, "CM"), (500, "D"), (400, "CD"), (100, "C"), (90, "XC"), (50, "L"), (40, "XL")),
    *((10, "X"), (9, "IX"), (5, "V"), (4, "IV"), (1, "I")),
)
# Exact by definition: how many of the second there are in one of the first.
_UNITS = (
    *(("weeks", "days", 7), ("days", "hours", 24), ("hours", "minutes", 60), ("minutes", "seconds", 60)),
    *(("kilometres", "metres", 1_000), ("metres", "centimetres", 100), ("kilograms", "grams", 1_000)),
    *(("yards", "feet", 3), ("feet", "inches", 12), ("dozens", "pieces", 12), ("litres", "millilitres", 1_000)),
    *(("centuries", "years", 100), ("kibibytes", "bytes", 1_024), ("full turns", "degrees", 360)),
)
_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


def facts(*, seed: int = 0, tokenizer_name: str = DEFAULT_TOKENIZER) -> Trivia:
    """Two thousand questions of general knowledge with their answers, in messages that ask for a list of the answers."""
    return Trivia(trivia_pairs(), seed=seed, tokenizer_name=tokenizer_name)


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
        yield f"How is the number {number} written in Roman numerals?", _format_roman(number)


def _format_roman(number: int) -> str:
    text, rest = "", number
    for value, numeral in _ROMAN:
        text += numeral * (rest // value)
        rest %= value
    return text


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


# --- questions without end: from ranges so wide that hardly any is ever asked twice -----------------------------------


def draw_pair(draw: Draw) -> tuple[str, str]:
    """A question and its answer."""
    question, answer = _FAMILIES[int(draw() * len(_FAMILIES))](draw)
    return question, str(answer)


def _number(draw: Draw, first: int, last: int) -> int:
    return first + int(draw() * (last - first + 1))


def _product(draw: Draw) -> tuple[str, object]:
    first, second = _number(draw, 112, 98_999), _number(draw, 12, 989)
    return f"What is {first} times {second}?", first * second


def _remainder(draw: Draw) -> tuple[str, object]:
    first, second = _number(draw, 1_000, 98_999), _number(draw, 12, 989)
    return f"What is left over when {first} is divided by {second}?", first % second


def _binary(draw: Draw) -> tuple[str, object]:
    number = _number(draw, 1_000_000, 260_000_000)
    return f"Which number is written {number:b} in binary?", number


def _roman(draw: Draw) -> tuple[str, object]:
    first, second = _number(draw, 14, 3_999), _number(draw, 12, 98_999)
    return f"What is {_format_roman(first)} plus {second}, in figures?", first + second


def _weekday(draw: Draw) -> tuple[str, object]:
    day = datetime.date(1601, 1, 1) + datetime.timedelta(days=int(draw() * 290_000))
    later = _number(draw, 2, 90)
    shown = f"{day.day} {MONTHS[day.month - 1]} {day.year}"
    return (
        f"Which weekday is {later} days after {shown}?",
        _WEEKDAYS[(day + datetime.timedelta(days=later)).weekday()],
    )


def _seconds(draw: Draw) -> tuple[str, object]:
    hours, minutes, seconds = _number(draw, 2, 98_999), _number(draw, 2, 59), _number(draw, 2, 59)
    return (
        f"How many seconds are {hours} hours, {minutes} minutes and {seconds} seconds?",
        (hours * 60 + minutes) * 60 + seconds,
    )


def _measures(draw: Draw) -> tuple[str, object]:
    larger, smaller, factor = _UNITS[int(draw() * len(_UNITS))]
    amount, rest = _number(draw, 2, 98_999), _number(draw, 2, 989)
    return f"How many {smaller} are {amount} {larger} and {rest} {smaller}?", amount * factor + rest


_FAMILIES = (_product, _remainder, _binary, _roman, _weekday, _seconds, _measures)
