"""What must be given back exactly as it was told: a notice word for word, a value of a table of random codes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from random import Random
from typing import ClassVar

from themis.core.patterns import lazy_pattern
from themis.memory.actions import Grade, Grading, Judgement
from themis.memory.examples import TestExample
from themis.memory.phrasing import Phrasing, any_of
from themis.memory.reader import Reader
from themis.memory.scoring.claims import find_claims
from themis.memory.scoring.lists import grade_passage
from themis.memory.scoring.prominence import is_prominent
from themis.memory.scoring.words import find_correction, shorten, split_words
from themis.memory.tests.kind import BuiltinTest, settle, whole_number
from themis.memory.tests.telling import tell

# --- notices that nobody has ever read --------------------------------------------------------------------------------

_TOWNS = (
    "Ald Bram Cran Dern Ebb Fen Garn Hal Ing Jar Kest Lor Mel Nes Orl Pell Quar Rad Sal Tem Ul Var Wend Yar",
    "bury by cliffe den field ford ham hurst ley mere minster ton",
)
_SOCIETIES = (
    "allotment society", "angling club", "archive of bells", "band of trumpeters", "bathing association", "bee inspectorate",
    "chess club", "cheese guild", "choral union", "cycling league", "debating hall", "ferry office", "fire brigade",
    "fog signal board", "harbour office", "knitting circle", "ladder registry", "library for sailors", "museum of locks",
    "night bus company", "observatory", "paper mill", "post museum", "rowing club", "swimming baths", "tram depot",
    "water board", "weather bureau",
)  # fmt: skip
_STEMS, _ENDINGS = (syllables.split() for syllables in _TOWNS)
_TITLE = rf"the (?:{any_of(_STEMS)})(?:{any_of(_ENDINGS)}) (?:{any_of(_SOCIETIES)})"
_SENTENCES = (
    "On {count} {day}s of the year {who} will inspect {what}, weather permitting.",
    "Members who own {what} are asked to bring it before {day}, together with {count} copies of the form.",
    "{who} regrets the loss of {what} and offers {count} crowns for its return.",
    "Until further notice {what} may only be used between {hour} and sunset.",
    "Complaints about {what} are heard by {who} every second {day}.",
    "It has been decided, by {count} votes to two, that {what} shall be painted again.",
    "{who} kindly reminds everybody that {what} is neither a toy nor a weapon.",
    "Whoever finds {what} unattended must ring the small bell {count} times.",
    "From {day} on, {what} will be guarded by {who} and {count} volunteers.",
    "Nobody under {count} years of age may touch {what} unless {who} is present.",
    "At {hour} sharp {who} closes the doors, and {what} stays inside.",
    "For {count} crowns a day {what} can be hired from {who}, except on a {day}.",
    "The old {day} rule is abolished: {what} is to be covered at {hour}.",
    "{count} persons have asked for {what}, and {who} asks them to be patient until {day}.",
)
_WHO = (
    "the treasurer", "the deputy warden", "the committee for order", "Mrs Applegarth", "the third secretary", "the bell ringer",
    "Dr Fennimore", "the honorary chairman", "the youngest member", "the inspector of ropes", "Miss Quillfeather",
    "the keeper of keys", "the board of elders", "Captain Ostrander", "the librarian", "the acting president",
)  # fmt: skip
_WHAT = (
    "the iron staircase", "the visitors' telescope", "the spare ladder", "the long table", "the ceremonial trumpet",
    "the cold store", "the weighing machine", "the glass partition", "the folding boat", "the stuffed pike", "the old gong",
    "the lost umbrella", "the brass barometer", "the second lift", "the tin bathtub", "the signal lamp", "the model bridge",
    "the marble bench", "the wet cellar", "the velvet curtain",
)  # fmt: skip
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_COUNTS = ("three", "five", "six", "seven", "nine", "eleven", "twelve", "fourteen", "seventeen", "thirty", "forty")
_HOURS = ("half past six", "a quarter to eight", "ten o'clock", "noon", "five past four", "a quarter past nine")
_SLOTS = {"title": _TITLE, "notice": r"[^“”]+"}
_POSTED = Phrasing(
    "A notice of {title} reads: “{notice}”",
    "At the door of {title} there is a notice, and it says: “{notice}”",
    "They have put up a notice at {title}: “{notice}”",
    "I copied the notice of {title} for you: “{notice}”",
    "“{notice}” That is what the notice of {title} says.",
    "“{notice}” So it stands in the notice of {title}, in large letters.",
    "This came in the post, the notice of {title}: “{notice}”",
    "On my way home I read the notice of {title}: “{notice}”",
    "My neighbour read the notice of {title} out to me: “{notice}”",
    "If you wonder what {title} has on its notice board: “{notice}”",
    **_SLOTS,
)
_REPLACED = Phrasing(
    "The notice of {title} has been taken down, and the new one reads: “{notice}”",
    "{title} has another notice now, forget the old one: “{notice}”",
    "What I gave you as the notice of {title} no longer holds, today it says: “{notice}”",
    **_SLOTS,
)
_QUOTED_NOTICE = lazy_pattern(r"“([^“”]+)”")
_ASK_NOTICE = Phrasing(
    "Repeat the notice of {title} word for word.",
    "What does the notice of {title} say? I need it word for word.",
    "Please give me the exact words of the notice of {title}.",
    **_SLOTS,
)


@dataclass(kw_only=True)
class Verbatim(BuiltinTest):
    """Remembering the words, not only the sense.

    Scores: perfect 1, memoryless 0. Word for word scores 1; from there the score falls to 0 where only half of the words
    agree, counting what is added too, so reciting all notices scores 0. The sentences are put together at random, so they
    cannot be guessed; two notices resemble each other, and one is replaced by another later. About 30 tokens per sentence.
    Interferes with no other test.
    """

    kind: ClassVar[str] = "verbatim"
    name: ClassVar[str] = "Verbatim Recall"
    description: ClassVar[str] = "The agent must repeat one of several notices word for word."

    passages: int = whole_number(3, least=3, most=12)
    sentences: int = whole_number(3, least=2, most=8)

    def make_example(self, number: int, rng: Random) -> TestExample:
        titles = [self.world.make(rng, "society", _name_society) for _ in range(self.passages - 1)]
        town = titles[0].split()[1]
        # Another society of the same town.
        titles.append(self.world.make(rng, "society", lambda rng: f"the {town} {rng.choice(_SOCIETIES)}"))
        order = rng.sample(range(len(_SENTENCES)), self.sentences)
        # The first and the last have the same sentences with other details.
        orders = [order, *(rng.sample(range(len(_SENTENCES)), self.sentences) for _ in titles[2:]), order]
        notices = [_write_notice(chosen, rng) for chosen in orders]
        told = [_POSTED.say(rng, title=title, notice=text) for title, text in zip(titles, notices, strict=True)]
        places = rng.sample(range(len(titles)), len(titles))
        told = [told[place] for place in places]
        replaced = rng.randrange(len(titles))
        notices[replaced] = _write_notice(orders[replaced], rng)
        told.append(_REPLACED.say(rng, title=titles[replaced], notice=notices[replaced]))
        asked = rng.randrange(len(titles))
        return self.tell_and_ask(
            number,
            [tell(rng, said, self.memory_span) for said in told],
            [_ASK_NOTICE.say(rng, title=titles[asked])],
            [notices[asked]],
            needed=[[len(told) - 1 if asked == replaced else places.index(asked)]],
        )

    def every_answer(self, example: TestExample) -> list[object]:
        return list(example.script[:-1])

    def evaluate(self, questions: Sequence[str], responses: Sequence[str], expected: Sequence[str]) -> Grade:
        return grade_passage(responses[0], expected[0])

    def evaluate_example(self, example: TestExample, questions: Sequence[str], responses: Sequence[str]) -> Grading:
        wanted = example.expected_responses
        notices = [text for line in example.script for text in _QUOTED_NOTICE.findall(line)]
        grade = grade_passage(responses[0], wanted[0], [text for text in notices if text != wanted[0]])
        return Grade.mean((yield from settle(questions, responses, wanted, [grade])))

    @classmethod
    def make_reader(cls) -> Reader:
        return _NoticeReader()


def _name_society(rng: Random) -> str:
    return f"the {rng.choice(_STEMS)}{rng.choice(_ENDINGS)} {rng.choice(_SOCIETIES)}"


def _write_notice(sentences: Sequence[int], rng: Random) -> str:
    written = []
    for sentence in sentences:
        text = _SENTENCES[sentence].format(
            count=rng.choice(_COUNTS),
            day=rng.choice(_DAYS),
            who=rng.choice(_WHO),
            what=rng.choice(_WHAT),
            hour=rng.choice(_HOURS),
        )
        written.append(text[0].upper() + text[1:])
    return " ".join(written)


class _NoticeReader(Reader):
    """The last notice of every society."""

    def __init__(self) -> None:
        self._notices: dict[str, str] = {}

    def answer(self, message: str, now: datetime) -> str | None:
        if asked := _ASK_NOTICE.read(message):
            return self._notices.get(asked["title"].lower(), "I do not know.")
        for phrasing in (_POSTED, _REPLACED):
            for told in phrasing.read_all(message):
                self._notices[told["title"].lower()] = told["notice"]
        return None


# --- keys and values --------------------------------------------------------------------------------------------------

_HEX = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_CODE = lazy_pattern(rf"(?<![^\W_]){_HEX}(?![^\W_])")
# Codes that the reply does not give as the value: denied ones, and those that were the value before.
_DENIED = lazy_pattern(
    rf"\b(?:not|no longer|instead of|in place of|rather than|forget|corrected from)[\s:\"'`(]{{1,4}}{_HEX}"
)
_BRACKETED = lazy_pattern(r"\([^()]{1,200}\)")
_GONE = lazy_pattern(
    r"\b(?:used to be|formerly|previously|originally|initially|it was|was first|replac(?:es|ed|ing)|changed (?:it )?from)"
    rf"[\s:\"'`(]{{1,4}}{_HEX}|{_HEX}[^\n.]{{0,40}}?"
    r"\b(?:(?:was|been|got|is|is now) (?:replaced|changed|superseded|withdrawn|updated|outdated|wrong)"
    r"|(?:updated|changed|corrected) to)\b"
)
# Two codes with what stands between them: about fifty tokens in the tokenizers of today.
_TOKENS_PER_PAIR = 56
# By default a table takes this share of the span, and has no more pairs than this.
_SHARE_OF_SPAN, _MOST_PAIRS = 0.25, 140
# No message takes more than this share.
_SHARE_OF_MESSAGE = 0.05
_TABLE_HEADS = (
    "Here are keys and their values, as JSON:",
    "These are entries of a register, each key with its value:",
    "More keys, each with the value that belongs to it:",
    "From the log of the machine, one key and its value a line:",
)
_ENTRIES = (
    '"{key}": "{value}"',
    "{key} -> {value}",
    "| {key} | {value} |",
    "{key} = {value}",
    "{key}\t{value}",
    "- {key}: {value}",
)
_ENTRY = lazy_pattern(rf"({_HEX})\"?(?:: \"?| -> | \| | = |\t)({_HEX})")
_SPOKEN = Phrasing(
    "Under the key {key} they keep the value {value}.",
    "Somebody asked me for {key}, and the value is {value}.",
    "The value {value} belongs to the key {key}.",
    "Write down that {key} stands for {value}.",
    key=_HEX,
    value=_HEX,
)
_CHANGED = Phrasing(
    "The key {key} has a new value, {value}, in place of {old}.",
    "The value of the key {key} is no longer {old} but {value}.",
    "A mistake has been put right: what belongs to the key {key} is {value} and not {old}.",
    key=_HEX,
    value=_HEX,
    old=_HEX,
)
# The same without the key: it must be found by the old value.
_WITHDRAWN = Phrasing(
    "Wherever a key has the value {old}, it is to be {value} from now on.",
    "The value {old} has been withdrawn, and {value} stands in its place.",
    "They found the value {old} to be wrong; put {value} there instead.",
    value=_HEX,
    old=_HEX,
)
_ASK_VALUE = Phrasing(
    "Which value belongs to the key {key}?",
    "What is the value of the key {key}?",
    "Look up the key {key}: which value does it have?",
    key=_HEX,
)
_FOLLOW = "Where a value is itself a key, follow it to the end."
_VALUE_ONLY = "Answer with the value only."


@dataclass(kw_only=True)
class KeyValuePairs(BuiltinTest):
    """Looking up what cannot be guessed.

    Scores: perfect 1, memoryless 0. With `nested_levels` a value is itself a key, so many times over. The reply must end
    on the value asked for, and may name no other code but those on the way. The codes are random 128-bit numbers; some keys
    differ in one digit, some values are changed later, and of some changes only the old value is told. About 50 tokens per
    pair; `num_kv_pairs` 0 is as many as fill a quarter of the span, at most 140, over as many messages as their size
    demands. Interferes with no other test.
    """

    kind: ClassVar[str] = "kv"
    name: ClassVar[str] = "Key-Value Pairs"
    description: ClassVar[str] = "The agent must look up one value in a table of random keys and values."

    nested_levels: int = whole_number(0, least=0)
    num_kv_pairs: int = whole_number(0, least=lambda test: 2 * (test.nested_levels + 1) if test.num_kv_pairs else 0)

    def make_example(self, number: int, rng: Random) -> TestExample:
        chains = self._draw_chains(rng)
        asked, *others = rng.sample(chains, len(chains))
        pairs = [pair for chain in (asked, *others) for pair in pairwise(chain)]
        # These were told otherwise before: a pair on the way, or another one.
        changed = rng.sample(pairs, min(len(pairs), 1 + len(pairs) // 20))
        if rng.random() < 0.6:
            changed = [*changed[1:], rng.choice(list(pairwise(asked)))]
        before = {pair: _draw_code(rng) for pair in dict.fromkeys(changed)}
        rng.shuffle(pairs)
        told, lines = self._write_pages(rng, pairs, before)
        for (key, value), old in before.items():
            if rng.random() < 0.5:
                lines[key, value] = {len(told)}
                said = _CHANGED.say(rng, key=key, value=value, old=old)
            else:
                lines[key, value].add(len(told))
                said = _WITHDRAWN.say(rng, value=value, old=old)
            told.append(tell(rng, said, self.memory_span))
        question = " ".join([_ASK_VALUE.say(rng, key=asked[0]), *([_FOLLOW] * bool(self.nested_levels)), _VALUE_ONLY])
        needed = [line for pair in pairwise(asked) for line in lines[pair]]
        return self.tell_and_ask(number, told, [question], [asked[-1]], needed=[needed])

    def _draw_chains(self, rng: Random) -> list[list[str]]:
        """Codes each of which is the key of the next; the first keys of two chains differ in one digit."""
        least = 2 * (self.nested_levels + 1)
        fitting = int(_SHARE_OF_SPAN * self.memory_span / _TOKENS_PER_PAIR)
        pairs = self.num_kv_pairs or max(least, min(_MOST_PAIRS, fitting))
        chains = [
            [_draw_code(rng) for _ in range(self.nested_levels + 2)] for _ in range(pairs // (self.nested_levels + 1))
        ]
        for first, second in zip(chains[::4], chains[1::4], strict=False):
            second[0] = _change_digit(rng, first[0])
        return chains

    def _write_pages(
        self, rng: Random, pairs: Sequence[tuple[str, str]], before: dict[tuple[str, str], str]
    ) -> tuple[list[str], dict[tuple[str, str], set[int]]]:
        """The pairs in messages, and which of them holds which."""
        tokens = min(self.max_message_size, max(4 * _TOKENS_PER_PAIR, int(_SHARE_OF_MESSAGE * self.memory_span)))
        size = max(1, tokens // _TOKENS_PER_PAIR)
        told: list[str] = []
        lines: dict[tuple[str, str], set[int]] = {}
        for start in range(0, len(pairs), size):
            page = pairs[start : start + size]
            lines |= {pair: {len(told)} for pair in page}
            told.append(
                _write_page(rng, {key: before.get((key, value), value) for key, value in page}, self.memory_span)
            )
        return told, lines

    def every_answer(self, example: TestExample) -> list[object]:
        return list(_CODE.findall(" ".join(example.script[:-1])))

    def evaluate(self, questions: Sequence[str], responses: Sequence[str], expected: Sequence[str]) -> Judgement:
        grades = [grade_code(responses[0], expected[0], given=questions[0], on_the_way=self.nested_levels)]
        return Grade.mean((yield from settle(questions, responses, expected, grades)))

    @classmethod
    def make_reader(cls) -> Reader:
        return _CodeReader()


def _write_page(rng: Random, values: dict[str, str], span_tokens: int) -> str:
    if len(values) <= 2:
        return tell(rng, " ".join(_SPOKEN.say(rng, key=key, value=value) for key, value in values.items()), span_tokens)
    head = rng.choice(_TABLE_HEADS)
    if head == _TABLE_HEADS[0]:
        return f"{head}\n{json.dumps(values, indent=0)}"
    entry = rng.choice(_ENTRIES)
    return "\n".join([head, *(entry.format(key=key, value=value) for key, value in values.items())])


def grade_code(reply: str, expected: str, *, given: str, on_the_way: int = 0) -> Grade:
    """1 if the reply gives the expected code as the value, and no more others than the way to it has.

    One that was the value before may be named as such. Where it is not clear which of a few is given there is no verdict.

    Args:
        reply: What was answered.
        expected: The value.
        given: What was asked, whose codes count for nothing.
        on_the_way: How many other codes lead to the value.
    """
    text = _UNHYPHENED.sub(r"\1-\2-\3-\4-\5", reply.lower())
    codes = {code for code in _CODE.findall(text) if code not in given}
    if expected not in codes:
        return Grade(0.0, (f"{expected} is not in: {shorten(reply)}",))
    stated = _DENIED.sub(" ", find_correction(text) or text)
    current = _GONE.sub(" ", stated)
    named = [code for code in _CODE.findall(current if _CODE.search(current) else stated) if code not in given]
    others = set(named) - {expected}
    if named[-1:] == [expected] and len(others) <= on_the_way:
        return Grade(1.0, (f"ends on {expected}",))
    spoken = len(split_words(_CODE.sub(" ", text))) > _BARE_WORDS and len(codes) <= _FEW_CODES and not on_the_way
    claimed = find_claims(text, codes) if spoken else frozenset()
    if claimed == {expected}:
        return Grade(1.0, (f"gives {expected}",))
    concluded = spoken and _CODE.findall(_BRACKETED.sub(" ", current))[-1:] == [expected]
    settled = expected in claimed or concluded or is_prominent(current, expected, codes)
    if (not others and not _DENIED.search(text)) or (settled and not _EITHER.search(text)):
        return Grade.failure(f"it is not clear which code this gives: {shorten(reply)}")
    return Grade(0.0, (f"names {expected}, but also {len(others)} other codes",))


_UNHYPHENED = lazy_pattern(
    r"(?<![0-9a-f-])([0-9a-f]{8})([0-9a-f]{4})([0-9a-f]{4})([0-9a-f]{4})([0-9a-f]{12})(?![0-9a-f-])"
)
# Among more codes than these no answer is looked for; beside fewer words than these nothing is said of them.
_FEW_CODES, _BARE_WORDS = 3, 3
_EITHER = lazy_pattern(r"\b(?:or|either|both)\b|(?:can't|cannot) (?:tell|say)")


class _CodeReader(Reader):
    """The last value of every key, followed to the end."""

    def __init__(self) -> None:
        self._values: dict[str, str] = {}

    def answer(self, message: str, now: datetime) -> str | None:
        if asked := _ASK_VALUE.read(message):
            return self._look_up(asked["key"].lower(), follow=_FOLLOW in message)
        for key, value in _find_pairs(message):
            self._values[key.lower()] = value.lower()
        for told in _WITHDRAWN.read_all(message):
            for key, value in self._values.items():
                if value == told["old"].lower():
                    self._values[key] = told["value"].lower()
        return None

    def _look_up(self, key: str, *, follow: bool) -> str:
        value = self._values.get(key, "I do not know.")
        while follow and value in self._values:
            value = self._values[value]
        return value


def _find_pairs(message: str) -> Iterator[tuple[str, str]]:
    yield from _ENTRY.findall(message)
    for phrasing in (_SPOKEN, _CHANGED):
        for told in phrasing.read_all(message):
            yield told["key"], told["value"]


def _draw_code(rng: Random) -> str:
    digits = f"{rng.randrange(1 << 128):032x}"
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def _change_digit(rng: Random, code: str) -> str:
    place = rng.choice([place for place, character in enumerate(code) if character != "-"])
    return (
        code[:place] + rng.choice([digit for digit in "0123456789abcdef" if digit != code[place]]) + code[place + 1 :]
    )
