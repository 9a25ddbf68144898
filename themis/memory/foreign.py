"""Lets our kinds judge tests that another program made, by what those tests themselves told and expect.

Older generations of the GoodAI LTM Benchmark wrote expectations and questions in other forms. They are read here into the
form of the kind, or refused in one sentence; and no list of words of our own generators is applied to them.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from themis.exceptions import ConfigurationError
from themis.memory.actions import AgentReply, Grade, Grading, Judgement
from themis.memory.examples import DatasetInterface, Definition, TestExample
from themis.memory.scoring.claims import abstains, find_claims, grade_claim
from themis.memory.scoring.lists import grade_members, measure_recall, parse_json_field, parse_json_list
from themis.memory.scoring.words import find_phrases, shorten, split_words
from themis.memory.tests.invented import InventedTest
from themis.memory.tests.kind import ask_yes_or_no

# Instead of `builtin`: free answers, which nobody has drawn from our lists.
_BY_A_MODEL = "model"


def is_own(arguments: Definition) -> bool:
    """Whether our own program made a test: it writes out all arguments of a kind.

    This one no configuration of the GoodAI LTM Benchmark has: its program refuses it there.
    """
    return "max_message_size" in arguments


def load_foreign_example(kind: type[DatasetInterface], row: Definition) -> TestExample:
    """A test of another program, ready to be judged by its own expected answers.

    Args:
        kind: The kind of ours that judges such tests.
        row: Its definition, with `kind`, `example_id` and `arguments`.

    Raises:
        ConfigurationError: What it expects has no form that the kind can judge; the sentence says what is wrong.
    """
    definition, name = dict(row), str(row["kind"])
    reader = _read_texts if issubclass(kind, InventedTest) else _READERS.get(name)
    if reader is not None:
        try:
            definition["expected_responses"] = reader(definition)
        except (LookupError, TypeError, ValueError) as error:
            raise ConfigurationError(f"what is expected cannot be read: {error}") from error
    if not any(definition.get("is_question") or []):
        raise ConfigurationError("it asks no question")
    if definition.get("is_temporal") and kind.temporal_question is DatasetInterface.temporal_question:
        raise ConfigurationError(f"{kind.name} has no question that depends on the time")
    if kind.callback is DatasetInterface.callback:
        definition["uses_callback"] = False
    given = _pick_arguments(kind, row.get("arguments") or {})
    if issubclass(kind, InventedTest):
        given["generator"] = _BY_A_MODEL
    dataset: DatasetInterface = _judge_by_told(kind, name, _list_statements(definition))(**given)
    return dataset.load_example(str(row["example_id"]), definition)


def _list_statements(definition: Definition) -> list[str]:
    flags = definition.get("is_question") or []
    return [line for line, asks in zip(definition.get("script") or [], flags, strict=False) if not asks]


def _pick_arguments(kind: type[DatasetInterface], arguments: Definition) -> Definition:
    """Those of the arguments that the kind has, and that are of the type it wants."""
    known = kind.arguments()
    return {
        name: value
        for name, value in arguments.items()
        if name in known and isinstance(value, type(known[name].default))
    }


# --- what is expected, in every form ----------------------------------------------------------------------------------


def _read_texts(definition: Definition) -> list[str]:
    expected = definition.get("expected_responses")
    texts = [expected] if isinstance(expected, str) else expected
    if not isinstance(texts, list) or not texts or not all(isinstance(text, str) and text.strip() for text in texts):
        raise ValueError(f"expected a list of texts, got {shorten(repr(expected), 60)}")
    return texts


def _read_joke(definition: Definition) -> list[str]:
    """The joke that is asked for, then the others, which must not be told as well."""
    joke, told = _read_texts(definition)[0], _list_statements(definition)
    if not any(joke in line for line in told):
        raise ValueError(f"nobody told {shorten(joke, 60)!r}")
    return [joke, *(line for line in told if joke not in line)]


def _read_option(definition: Definition) -> list[str]:
    texts = _read_texts(definition)
    if not texts[0].strip().isdecimal():
        raise ValueError(f"expected the number of an option, got {shorten(texts[0], 60)!r}")
    return texts


def _read_route(definition: Definition) -> list[str]:
    texts = _read_texts(definition)
    if not re.search(r"\d\s*km\b", texts[0], re.IGNORECASE):
        raise ValueError(f"no distance in {shorten(texts[0], 60)!r}")
    return texts


def _read_quantities(definition: Definition) -> list[list[object]]:
    expected = definition.get("expected_responses")
    if not isinstance(expected, list) or not all(
        isinstance(entry, list) and len(entry) == 2 and isinstance(entry[0], str) and isinstance(entry[1], int)
        for entry in expected
    ):
        raise ValueError(f"expected items with quantities, got {shorten(repr(expected), 60)}")
    return expected


def _read_keywords(definition: Definition) -> list[list[str]]:
    expected = definition.get("expected_responses")
    if not isinstance(expected, list) or not expected:
        raise ValueError(f"expected lists of keywords, got {shorten(repr(expected), 60)}")
    return [_read_texts({"expected_responses": keywords}) for keywords in expected]


_SAY = re.compile(r"""\s*say\s*:?\s*(['"‘“])(?P<phrase>.+)['"’”]\s*\Z""", re.DOTALL | re.IGNORECASE)


def _read_phrases(definition: Definition) -> list[str | None]:
    """The phrase to be said at each message; one form is `say: '...'`. None where it is not to be said."""
    expected = definition.get("expected_responses")
    if not isinstance(expected, list) or not any(expected):
        raise ValueError(f"expected the phrase to be said, got {shorten(repr(expected), 60)}")
    phrases: list[str | None] = []
    for text in expected:
        if text is not None and not (isinstance(text, str) and text.strip()):
            raise ValueError(f"expected the phrase to be said, got {shorten(repr(text), 60)}")
        plain = None if text is None else html.unescape(text)
        said = None if plain is None else _SAY.fullmatch(plain)
        phrases.append(plain if said is None else said["phrase"])
    return phrases


def _read_recital(definition: Definition) -> list[list[object]]:
    """Quotation, author and the place of the reply it belongs into, the reply to the request being the first.

    The newest generation writes the three down. Before, they were sentences for a model to judge by, and the request said
    how many messages after it are to pass.
    """
    script = definition.get("script") or []
    if len(script) != 2:
        raise ValueError(f"expected a quotation and a request, got {len(script)} lines")
    expected = definition.get("expected_responses")
    if isinstance(expected, list) and expected and isinstance(expected[0], list):
        quotation, author, place = expected[0]
        if not isinstance(quotation, str) or not quotation.strip() or not isinstance(place, int) or place < 1:
            raise ValueError(f"expected quotation, author and place, got {shorten(repr(expected[0]), 60)}")
        return [[quotation, author, place]]
    texts = [script[0], *_read_texts(definition)]
    quotation = next(filter(None, map(_find_quotation, texts)), None)
    if quotation is None:
        raise ValueError(f"no quotation in {shorten(script[0], 60)!r}")
    return [[quotation, "", _read_place(script[1])]]


_OPENING, _CLOSING = r"""(?<![^\s(,:;–—-])["'“‘«](?=\S)""", r"""["'”’»](?![^\s,.;:!?)–—-])"""
_QUOTATIONS = (
    # Whatever quotation marks the author's name may have.
    re.compile(rf"{_OPENING}(.+?){_CLOSING}\s*[-–—]+\s*\S", re.DOTALL),
    # An apostrophe within is no end.
    re.compile(rf"{_OPENING}(.+){_CLOSING}", re.DOTALL),
)


def _find_quotation(text: str) -> str | None:
    plain = html.unescape(text)
    found = next(filter(None, (pattern.search(plain) for pattern in _QUOTATIONS)), None)
    return None if found is None else found[1].strip()


_ORDINALS = (
    "first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth", "eleventh", "twelfth",
)  # fmt: skip
_CARDINALS = (
    "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
)  # fmt: skip
_REQUEST_IS_FIRST = re.compile(
    r"\b(?:response|reply|answer) to this (?:message|one|request) (?:as|is|being|counts as) (?:the )?(?:first|1st)\b"
    r"(?: (?:response|reply|one))?",
    re.IGNORECASE,
)
_LATER = re.compile(r"\b(?:after|next|following|from now)\b", re.IGNORECASE)
_PLACE = re.compile(
    rf"\b(?:(?P<figures>\d{{1,3}})(?:st|nd|rd|th)?|(?P<ordinal>{'|'.join(_ORDINALS)})"
    rf"|(?:next|following|after) (?P<cardinal>{'|'.join(_CARDINALS)}))\b",
    re.IGNORECASE,
)


def _read_place(request: str) -> int:
    counted_from_request = _REQUEST_IS_FIRST.search(request) is not None
    found = _PLACE.search(_REQUEST_IS_FIRST.sub(" ", request))
    if found is None:
        raise ValueError(f"no place of a reply in {shorten(request, 80)!r}")
    if found["figures"]:
        number = int(found["figures"])
    else:
        words, word = (_ORDINALS, found["ordinal"]) if found["ordinal"] else (_CARDINALS, found["cardinal"])
        number = words.index(word.lower()) + 1
    if counted_from_request:
        return number
    if not _LATER.search(request):
        raise ValueError(f"where to count from is not in {shorten(request, 80)!r}")
    return number + 1


_READERS: dict[str, Callable[[Definition], object]] = {
    "names": _read_texts,
    "name_list": _read_texts,
    "colours": _read_texts,
    "sallyanne": _read_texts,
    "jokes": _read_joke,
    "kv": _read_texts,
    "chapterbreak": _read_option,
    "shopping": _read_quantities,
    "spy_meeting": _read_keywords,
    "locations": _read_route,
    "locations_directions": _read_route,
    "trigger_response": _read_phrases,
    "prospective_memory": _read_recital,
}


# --- judged by what was told, instead of by what our generators could have told ----------------------------------------


@dataclass(frozen=True)
class Asked:
    """What a verdict rests on: what was told and asked, the replies, what was expected, and what our kind says of it."""

    told: list[str]
    questions: Sequence[str]
    replies: Sequence[str]
    expected: Sequence[str]
    ours: Callable[[], Grading]


def _judge_by_told(kind: type[DatasetInterface], name: str, told: list[str]) -> type:
    """The kind for one test: its possible answers are those that the test told, and its verdict rests on them."""
    judge = _JUDGES.get(name)
    changed: dict[str, object] = {"answers": tuple(_list_told(told))}
    if judge is not None:

        def evaluate(
            self: DatasetInterface, questions: Sequence[str], responses: Sequence[AgentReply], expected: Sequence[str]
        ) -> Grading:
            own = partial(kind.evaluate, self, questions, responses, expected)
            return judge(Asked(told, questions, responses, expected, own))

        changed["evaluate"] = evaluate
    if judge is _judge_last_value:
        changed["needed_lines"] = _find_last_value
    return type(kind.__name__, (kind,), changed)


def _find_last_value(dataset: DatasetInterface, example: TestExample) -> list[Sequence[int] | None]:
    """The last statement of the value that is asked for."""
    lines = example.lines_with(example.expected_responses[0])
    return [None if lines is None else lines[-1:]]


def _judge_last_value(asked: Asked) -> Judgement:
    """Our verdict, unless the reply also claims another of the values that were told."""
    verdict = asked.ours()
    grade = verdict if isinstance(verdict, Grade) else (yield from verdict)
    if grade.failed or grade.score < 1:
        return grade
    reply = asked.replies[-1]
    return grade_claim(reply, asked.expected[0], _find_told(asked.told, reply))


def _judge_names(asked: Asked) -> Grade:
    reply, expected = asked.replies[0], asked.expected
    if _asks_for_json(asked.questions) or parse_json_list(reply) is not None:
        return grade_members(reply, expected)
    # The first generation asked for the names, and not for JSON.
    found = find_phrases(reply, expected)
    missing = [name for name in expected if name not in found]
    reasons = [f"{len(found)} of {len(expected)} are in the answer"]
    if missing:
        reasons.append(f"missing: {', '.join(missing)}")
    return Grade.share(len(found), len(expected), *reasons)


def _judge_container(asked: Asked) -> Grade:
    reply, expected = asked.replies[0], asked.expected[0]
    answer: object = reply
    if _asks_for_json(asked.questions):
        answer = parse_json_field(reply, "answer")
        if not isinstance(answer, str):
            return Grade(0.0, (f"no JSON object with a text as `answer` in: {shorten(reply)}",))
    elif abstains(reply):
        return Grade(0.0, (f"declines: {shorten(reply)}",))
    containers = {place.replace("_", " ") for line in asked.told for place in _CONTAINER.findall(line)}
    return grade_claim(str(answer).replace("_", " "), expected.replace("_", " "), containers)


_CONTAINER = re.compile(r"\b(?:in|into|inside|to|from) the ([\w-]{2,30})\b")


def _judge_joke(asked: Asked) -> Judgement:
    reply, (joke, *rivals) = asked.replies[-1], asked.expected
    others = [rival for rival in rivals if measure_recall(reply, rival) >= _RECITED]
    if len(others) > 1:
        return Grade(0.0, (f"expected only {shorten(joke, 60)!r}, tells also {shorten(others[0], 60)!r}",))
    verdict = asked.ours()
    grade = verdict if isinstance(verdict, Grade) else (yield from verdict)
    if others and grade.score == 1:
        # Whoever tells two may have weighed them and chosen.
        return (
            yield from ask_yes_or_no(
                f"Somebody was to repeat this joke:\n{joke}\n\nThey said:\n{reply}\n\nDo they settle on this joke?",
                purpose="is this the joke?",
                undecided="tells two jokes; only a judge (--judge) can tell which is meant",
                reason=f"tells two jokes; the judge was asked whether it settles on {shorten(joke, 60)!r}",
            )
        )
    return grade


# So much of a joke's words means that it was told again.
_RECITED = 0.8


def _judge_meeting(asked: Asked) -> Grade:
    """The share of parts of which a keyword is claimed, also in a compound: for locked doors, lockpicks are picks."""
    points, reasons = 0, []
    for keywords in asked.expected:
        claimed = find_claims(_split_compounds(asked.replies[0], keywords, asked.told), keywords)
        points += bool(claimed)
        none = f"none of {', '.join(keywords)} in the answer"
        reasons.append(f"understood: {', '.join(sorted(claimed))}" if claimed else none)
    return Grade.share(points, len(asked.expected), *reasons)


def _split_compounds(text: str, words: Sequence[str], told: Sequence[str]) -> str:
    """The text with compounds of the words taken apart, without their endings, where a message told of their first part."""
    heard = {word for line in told for word in split_words(line)}

    def split(compound: re.Match[str]) -> str:
        first = compound[1].casefold()
        return f"{compound[1]} {compound[2]}" if any(word.startswith(first) for word in heard) else compound[0]

    for word in words:
        if word.isalpha():
            pattern = rf"\b([^\W\d_]{{3,20}})({word})(?:\(?s\)?|ing|ers?)?(?!\w)"
            text = re.sub(pattern, split, text, flags=re.IGNORECASE)
    return text


_JUDGES: dict[str, Callable[[Asked], Grading]] = {
    "names": _judge_last_value,
    "colours": _judge_last_value,
    "name_list": _judge_names,
    "sallyanne": _judge_container,
    "jokes": _judge_joke,
    "spy_meeting": _judge_meeting,
}


def _asks_for_json(questions: Sequence[str]) -> bool:
    return any("json" in question.lower() for question in questions)


def _find_told(told: Sequence[str], reply: str) -> list[str]:
    """The names that the statements tell, one each, as far as the reply writes them like names."""
    return [name for name in _list_told(told) if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", reply)]


def _list_told(told: Sequence[str]) -> Iterator[str]:
    for line in told:
        words = re.findall(r"[^\W\d_][\w'-]*", line)
        named = [word for word in words[1:] if word[0].isupper() and len(word) > 1]
        if len(named) == 1:
            yield named[0]
        elif not named and words and words[0][0].isupper() and len(words[0]) > 1 and words[0] not in _BEGINNINGS:
            yield words[0]


# With which sentences about one's name or colour begin, if not with it.
_BEGINNINGS = frozenset(
    {"My", "The", "From", "Please", "You", "Call", "Refer", "Start", "It", "Now", "For", "If", "At"}
)
