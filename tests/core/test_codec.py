"""What is read back from the store equals what was written, whatever it holds."""

import datetime
import json
import math
import re
from dataclasses import dataclass, field
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from themis.core.codec import canonical_json, decode, decode_as, encode, json_bytes, to_plain
from themis.core.entities import GenerationTask, ModelError, ModelSpec, PromptRender, PromptSpec, SamplingConfig

PAIRED_SURROGATES = re.compile("[\ud800-\udbff][\udc00-\udfff]")

# Every character there is, lone surrogates and NUL included. JSON itself reads a surrogate pair as one character.
TEXT = st.text(st.characters() | st.characters(categories=["Cs"])).filter(
    lambda text: not PAIRED_SURROGATES.search(text)
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.integers(-(10**300), 10**300) | st.floats() | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=16,
)


def same(one: Any, other: Any) -> bool:
    """Equal with NaN equal to itself, and 1 not equal to 1.0 or True."""
    if type(one) is not type(other):
        return False
    if isinstance(one, float):
        return (math.isnan(one) and math.isnan(other)) or (
            one == other and math.copysign(1, one) == math.copysign(1, other)
        )
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    return one == other


@given(VALUES)
@example(value={"a": math.nan, "b": [None, -math.inf], "\ud800": "\x00"})
@example(value=[2**63, 2**64, -(2**63) - 1, 10**400, -0.0, 5e-324])
@example(value="null")
@example(value={"emoji 🙂": "family 👨‍👩‍👧 and \u2028"})
def test_values_are_read_back_as_they_were_written(value):
    assert same(decode(encode(value)), value)


@given(VALUES)
def test_the_text_can_be_stored_anywhere(value):
    text = encode(value)

    assert "\x00" not in text
    text.encode("utf-8")


class Body(msgspec.Struct, omit_defaults=True):
    prompt: str
    error: ModelError | None = None
    metrics: dict[str, Any] = msgspec.field(default_factory=dict)


@given(TEXT, TEXT, VALUES)
@example("p", "boom", math.nan)
@example("\ud800", "boom", None)
@example("p", "\udfff", 2**70)
def test_a_structure_with_a_data_class_inside_comes_back_whole(prompt, message, value):
    body = Body(prompt, ModelError(message, details={"value": value}), {"value": value})

    back = decode_as(encode(body), Body)

    assert (back.prompt, back.error.message) == (prompt, message)
    assert same(back.error.details["value"], value)
    assert same(back.metrics["value"], value)


def test_an_entity_of_entities_comes_back_equal():
    task = GenerationTask(
        PromptRender(PromptSpec("p", "{q}"), "why?", {"q": "why?"}),
        ModelSpec("m", "fake", SamplingConfig()),
        SamplingConfig(temperature=0.7),
        {"row": 1},
    )

    assert decode_as(encode(task), GenerationTask) == task


def test_what_json_does_not_know_becomes_what_it_does():
    @dataclass
    class Row:
        when: datetime.date
        scores: Any = field(default_factory=lambda: np.array([0.5, np.nan]))

    text = encode({"row": Row(datetime.date(2026, 1, 31)), "set": {3, 1, 2}, "half": np.float32(0.5), "pair": (1, 2)})

    assert text == '{"row":{"when":"2026-01-31","scores":[0.5,NaN]},"set":[1,2,3],"half":0.5,"pair":[1,2]}'


@pytest.mark.parametrize("extra", [{}, {"nan": math.nan}, {"surrogate": "\ud800"}, {None: 1}])
def test_one_value_has_one_spelling_whatever_lies_beside_it(extra):
    when = datetime.datetime(2026, 1, 31, tzinfo=datetime.UTC)

    read = decode(encode({"x": {"when": when.date(), "error": ModelError("m"), 7: "seven"}, "extra": extra}))

    assert {name: read["x"]["error"][name] for name in ("message", "kind")} == {"message": "m", "kind": "model_error"}
    assert (read["x"]["when"], read["x"]["7"]) == ("2026-01-31", "seven")


def test_keys_of_any_kind_become_text():
    assert decode(encode({1: "a", None: "b", (1, 2): "c"})) == {"1": "a", "None": "b", "(1, 2)": "c"}
    assert to_plain({1: {2.5: (None,)}}) == {"1": {"2.5": [None]}}


def test_what_has_no_stable_text_is_refused():
    with pytest.raises(TypeError, match="object"):
        encode({"client": object()})


def test_text_of_another_shape_is_refused():
    with pytest.raises(msgspec.ValidationError, match="prompt"):
        decode_as('{"prompt": 3}', Body)
    with pytest.raises(msgspec.ValidationError, match="prompt"):
        decode_as('{"prompt": 3, "metrics": {"x": NaN}}', Body)
    with pytest.raises(ValueError):
        decode("{not json")


@given(st.text(alphabet=st.characters(codec=None, exclude_categories=())))
def test_any_text_can_be_written_as_json_that_strict_readers_take(text):
    expected = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    assert msgspec.json.decode(json_bytes({"text": text})) == {"text": expected}


def test_what_json_has_no_word_for_is_written_so_that_every_reader_takes_it():
    value = {"mean": math.nan, "when": datetime.date(2026, 1, 2), 3: {"mine": [Odd()], "most": -math.inf}}

    assert json_bytes(value) == b'{"mean": null, "when": "2026-01-02", "3": {"mine": ["odd"], "most": null}}'
    with pytest.raises(TypeError, match="no canonical form for Odd"):
        to_plain(value)


class Odd:
    def __str__(self) -> str:
        return "odd"


ROWS = st.dictionaries(TEXT, st.none() | st.booleans() | st.integers() | TEXT | VALUES, max_size=6)


@given(ROWS)
@example({"b": 1, "a": 2**70})
@example({"a": "\ud800"})
@example({"a": "\x7f", "é": None})
@example({"a": 'a "quoted" \\ text\n', "": True})
@example({"zahl": 1.5, "b": [1, {"y": 1, "x": 2}]})
@example({"A": 1, "a": 2, "_": 3, "0": 4})
def test_equal_rows_have_one_text_whichever_way_it_is_written(row: dict[Any, Any]) -> None:
    text = canonical_json(row)

    assert text == canonical_json(dict(reversed(row.items())))
    assert text == json.dumps(row, sort_keys=True, separators=(",", ":"))
