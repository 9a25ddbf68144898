"""RULER's synthetic tasks, made here: needles, chains of variables and common words in a text of a wanted length.

After Hsieh et al. 2024: eleven of its thirteen kinds, with its counts of needles, hops and words. The two kinds that ask about
documents of other datasets are not among them; `lm-eval:ruler` has them. All words are ours.
"""

from __future__ import annotations

import string
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise

from themis.core.tokens import count_tokens
from themis.presets.fields import Draw, Raw

# What a run without a limit has of each kind; the paper has 500.
ROWS_OF_EACH_KIND = 25
# The model's own tokens are not known here: some room, so that no prompt is longer than its name says.
_ROOM_TOKENS = 160

_NOISE = (
    "The road runs along the river. The mill stands still today. A cart waits at the gate. The wind has turned.",
    "Two boats lie at the pier. Nobody is on the stairs. The clock has stopped. It will rain later.",
)
_SUBJECTS = ("The old carpenter", "A teacher of ours", "The harbour master", "My neighbour", "The young painter")
_SUBJECTS_2 = ("A travelling doctor", "The village council", "Her brother", "The night porter", "A retired pilot")
_VERBS = ("repaired", "described", "forgot", "measured", "sold", "praised", "copied", "looked for", "drew", "cleaned")
_OBJECTS = ("the garden wall", "a long letter", "the brass lamp", "an old map", "the kitchen table", "three chairs")
_OBJECTS_2 = ("a small boat", "the church bell", "a map of the coast", "the narrow bridge", "a box of nails")
_ENDS = ("before the winter", "without a word", "for the second time", "in spite of the rain", "after the market")
_ENDS_2 = (
    "and went home",
    "as everybody had hoped",
    "while the bell rang",
    "for very little money",
    "near the station",
)
_ADJECTIVES = (
    *("amber", "brisk", "calm", "dapper", "eager", "frosty", "gentle", "hollow", "ivory", "jolly", "keen", "lucid"),
    *("mellow", "nimble", "opal", "plain", "quiet", "rustic", "silver", "tidy", "urban", "velvet", "witty", "young"),
)
_NOUNS = (
    *("anchor", "badger", "candle", "drum", "engine", "falcon", "guitar", "hammer", "island", "jacket", "kettle"),
    *("ladder", "magnet", "needle", "orchard", "pencil", "quarry", "ribbon", "saddle", "tunnel", "violin", "window"),
)


def raw_rows(limit: int | None, *, length_tokens: int, seed: int = 0) -> Iterator[Raw]:
    """Rows of all kinds in turn; the same seed and length give the same rows on every machine.

    Args:
        limit: How many rows; 25 of each kind by default.
        length_tokens: How long a prompt may be, its answer not counted.
        seed: Another one draws other rows.
    """
    count = len(KINDS) * ROWS_OF_EACH_KIND if limit is None else limit
    names = list(KINDS)
    for index in range(count):
        name = names[index % len(names)]
        draw = Draw("ruler", seed, length_tokens, name, index // len(names))
        made = KINDS[name](draw, length_tokens - _ROOM_TOKENS)
        yield {"index": index, "task": name, "length": length_tokens, **made}


# --- needles in a haystack -----------------------------------------------------------------------------------------------


def _needles(
    *, haystack: str, form: str = "number", keys: int = 1, values: int = 1, asked: int = 1
) -> Callable[[Draw, int], Raw]:
    def make(draw: Draw, tokens: int) -> Raw:
        key_form = "words" if haystack != "needles" else "uuid" if form == "uuid" else "long"
        names = _distinct_keys(draw, keys, key_form)
        hidden = [(name, _value(draw, form)) for name in names for _ in range(values)]
        questions = names[:asked]
        what = "numbers" if form == "number" else "codes"
        head = f"Some {what} are hidden in the text below. Remember them: you will be asked for them afterwards.\n\n"
        wanted = " and ".join([", ".join(questions[:-1]), questions[-1]] if asked > 1 else questions)
        tail = f"\n\nWhich special magic {what} for {wanted} does the text name? Reply with them alone."
        room = tokens - count_tokens(head + tail)
        sentences = [_needle(name, value, form) for name, value in hidden]
        room -= count_tokens(" ".join(sentences))
        if haystack == "needles":
            hay = _fill(room, lambda: _needle(_other_key(draw, key_form, names), _value(draw, form), form))
        else:
            hay = _haystack(draw, haystack, room)
        body = _scatter(draw, hay, sentences)
        answers = [value for name, value in hidden if name in questions]
        return {"input": f"{head}{body}{tail}", "outputs": answers}

    return make


def _needle(key: str, value: str, form: str) -> str:
    return f"One of the special magic {'numbers' if form == 'number' else 'codes'} for {key} is: {value}."


def _distinct_keys(draw: Draw, count: int, form: str) -> list[str]:
    found: dict[str, None] = {}
    while len(found) < count:
        found[_key(draw, form)] = None
    return list(found)


def _other_key(draw: Draw, form: str, taken: Sequence[str]) -> str:
    while (key := _key(draw, form)) in taken:
        pass
    return key


def _key(draw: Draw, form: str) -> str:
    """In a text that is all needles the words of a key are more, so that there are enough different ones."""
    if form == "uuid":
        return _uuid(draw)
    words = [_pick(draw, _ADJECTIVES), _pick(draw, _NOUNS), *([_pick(draw, _NOUNS)] if form == "long" else [])]
    return "-".join(words)


def _value(draw: Draw, form: str) -> str:
    return _uuid(draw) if form == "uuid" else str(1_000_000 + draw.below(9_000_000))


def _uuid(draw: Draw) -> str:
    return "-".join("".join(_pick(draw, "0123456789abcdef") for _ in range(size)) for size in (8, 4, 4, 4, 12))


def _haystack(draw: Draw, kind: str, tokens: int) -> list[str]:
    """Sentences that together have at most so many tokens."""
    return _fill(tokens, lambda: _pick(draw, _NOISE) if kind == "noise" else _sentence(draw))


def _sentence(draw: Draw) -> str:
    subject, verb = _pick(draw, (*_SUBJECTS, *_SUBJECTS_2)), _pick(draw, _VERBS)
    return f"{subject} {verb} {_pick(draw, (*_OBJECTS, *_OBJECTS_2))} {_pick(draw, (*_ENDS, *_ENDS_2))}."


def _fill(tokens: int, sentence: Callable[[], str]) -> list[str]:
    found: list[str] = []
    used = 0
    while True:
        one = sentence()
        used += count_tokens(one) + 1
        if used > tokens:
            return found
        found.append(one)


def _scatter(draw: Draw, sentences: Sequence[str], needles: Sequence[str]) -> str:
    """The needles at places that are drawn, in their order."""
    places = sorted(draw.below(len(sentences) + 1) for _ in needles)
    found: list[str] = []
    start = 0
    for place, needle in zip(places, needles, strict=True):
        found += [*sentences[start:place], needle]
        start = place
    return " ".join([*found, *sentences[start:]])


def _pick(draw: Draw, among: Sequence[str]) -> str:
    return among[draw.below(len(among))]


# --- variables, common words ---------------------------------------------------------------------------------------------


def _variables(draw: Draw, tokens: int) -> Raw:
    """One chain of five names with one value, as assignments that are scattered in noise."""
    names: dict[str, None] = {}
    while len(names) < 5:
        names["".join(_pick(draw, string.ascii_uppercase) for _ in range(5))] = None
    chain, value = list(names), str(10_000 + draw.below(90_000))
    steps = [f"VAR {chain[0]} = {value}."]
    steps += [f"VAR {name} = VAR {before}." for before, name in pairwise(chain)]
    head = "Assignments of variables are hidden in the text below. Keep track of them.\n\n"
    tail = f"\n\nWhich variables have the value {value}? Reply with their names alone; there are five."
    room = tokens - count_tokens(head + tail + " ".join(steps))
    return {"input": head + _scatter(draw, _haystack(draw, "noise", room), steps) + tail, "outputs": chain}


def _made_word(draw: Draw) -> str:
    return "".join(_pick(draw, "bcdfglmnprstv") + _pick(draw, "aeiou") for _ in range(2 + draw.below(2)))


def _word_list(draw: Draw, count: int) -> list[str]:
    found: dict[str, None] = {}
    while len(found) < count:
        found[_made_word(draw)] = None
    return list(found)


def _common_words(draw: Draw, tokens: int) -> Raw:
    """Ten words stand thirty times each in a numbered list, all others three times."""
    head = "Below is a numbered list in which some words stand far more often than others.\n\n"
    tail = "\n\nWhich ten words stand most often in the list? Reply with the words alone."
    each = 6  # tokens of a line with its number
    room = max(60, (tokens - count_tokens(head + tail)) // each)
    often = max(2, min(30, room // 20))
    others = max(1, (room - 10 * often) // 3)
    words = _word_list(draw, 10 + others)
    lines = draw.shuffled([*(words[:10] * often), *(words[10:] * 3)])
    return {"input": head + " ".join(f"{n}. {w}" for n, w in enumerate(lines, 1)) + tail, "outputs": words[:10]}


def _frequent_words(draw: Draw, tokens: int) -> Raw:
    """Words of a code by a zeta law with exponent 2: the three commonest are asked for."""
    head = "Read this coded text, whose words are made up. The most frequent word is only dots and does not count.\n\n"
    tail = "\n\nWhich three words stand most often in the coded text? Reply with the words alone."
    room = tokens - count_tokens(head + tail)
    words = _word_list(draw, max(12, room // 120))
    weights = [1 / (rank + 1) ** 2 for rank in range(len(words))]
    each = sum(weight * count_tokens(f" {word}") for weight, word in zip(weights, words, strict=True)) / sum(weights)
    share = 0.95 * room / each / sum(weights)
    counts = [max(1, round(weight * share)) for weight in weights]
    lines = draw.shuffled([word for word, count in zip(words, counts, strict=True) for _ in range(count)])
    return {"input": head + " ".join(line if draw.below(5) else "....." for line in lines) + tail, "outputs": words[:3]}


KINDS: Mapping[str, Callable[[Draw, int], Raw]] = {
    "niah_single_1": _needles(haystack="noise"),
    "niah_single_2": _needles(haystack="prose"),
    "niah_single_3": _needles(haystack="prose", form="uuid"),
    "niah_multikey_1": _needles(haystack="prose", keys=4),
    "niah_multikey_2": _needles(haystack="needles"),
    "niah_multikey_3": _needles(haystack="needles", form="uuid"),
    "niah_multivalue": _needles(haystack="prose", values=4),
    "niah_multiquery": _needles(haystack="prose", keys=4, asked=4),
    "vt": _variables,
    "cwe": _common_words,
    "fwe": _frequent_words,
}
