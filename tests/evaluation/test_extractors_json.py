"""JSON as models write it."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from themis.core.json_repair import parse_json


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": 1}', {"a": 1}),
        ("\ufeff [1]", [1]),
        ('```json\n{"a": 1}\n```', {"a": 1}),
        ('```\n{"draft": 1}\n```\nbetter:\n```JSON\n{"final": 2}\n```', {"final": 2}),
        ('Sure! Here it is: {"a": [1, 2]}. See [1].', {"a": [1, 2]}),
        ('{thing} {"x": null}', {"x": None}),
        ('[see below] the result is {"score": 3}', {"score": 3}),
        ('["] {"a": 1}', {"a": 1}),
        ('```python\nx = [1, 2, 3]\n```\n{"answer": 1,}', {"answer": 1}),
        ("{'a': 'it's fine', 'b': \"x\"}", {"a": "it's fine", "b": "x"}),
        ("{“a”: “b”}", {"a": "b"}),
        ('{"a": 1, "b": [1, 2,],}', {"a": 1, "b": [1, 2]}),
        ('{"a": 1 "b": 2}', {"a": 1, "b": 2}),
        ('{// note\n"a": 1, # more\n/* and */ "b": 2}', {"a": 1, "b": 2}),
        ("{'ok': True, 'no': False, 'none': None}", {"ok": True, "no": False, "none": None}),
        ("{a: 1, $b-c: 2, 3: 4}", {"a": 1, "$b-c": 2, "3": 4}),
        ('{"a": .5, "b": 1., "c": +3, "d": -1e2}', {"a": 0.5, "b": 1.0, "c": 3, "d": -100.0}),
        ('{"text": "two\nlines"}', {"text": "two\nlines"}),
        (r"""{'f': "\ud83d\ude00 \u00e9 \n \alpha",}""", {"f": "😀 é \n \\alpha"}),
        ('{"" : 1,}', {"": 1}),
        ("True", True),
        ('{"größe": "東京",}', {"größe": "東京"}),
    ],
)
def test_what_was_meant_is_read(text, value):
    assert parse_json(text) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"verdict": "pass", "reason": "the mod', {"verdict": "pass"}),
        ('{"a": 1, "b": 12', {"a": 1}),
        ('{"a": 1, "b', {"a": 1}),
        ('{"a": 1, "b":', {"a": 1}),
        ('{"a": true', {"a": True}),
        ("[1, 2, 3", [1, 2]),
        ('{"a": {"b": [1, {"c": 2', {"a": {"b": [1]}}),
        ('```json\n{"a": 1,\n', {"a": 1}),
    ],
)
def test_a_cut_off_tail_loses_only_the_value_that_was_cut(text, value):
    assert parse_json(text) == value


@pytest.mark.parametrize(
    "text", ["", "no", "{", '{"a"', '{"a": 1', "{,}", "[1,,2]", "{: 1}", "{1, 2}", "‘", "42,", "[" * 5000]
)
def test_what_is_not_json_is_an_error_with_its_text(text):
    with pytest.raises(ValueError, match="no JSON value in"):
        parse_json(text)


def test_nothing_is_evaluated():
    with pytest.raises(ValueError, match="no JSON value"):
        parse_json("{'a': __import__('os').getcwd()}")


values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**20), 10**20)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
containers = st.lists(values, max_size=4) | st.dictionaries(st.text(), values, max_size=4)


@given(values)
def test_json_reads_back_as_itself(value):
    assert parse_json(json.dumps(value)) == value
    assert parse_json(json.dumps(value, indent=2, ensure_ascii=False)) == value


@given(containers.filter(bool))
def test_json_in_prose_reads_back_as_itself(value):
    assert parse_json(f"Here you are:\n\n{json.dumps(value)}\n\nAnything else?") == value
    assert parse_json(f"Here:\n```json\n{json.dumps(value, indent=1)}\n```\nok") == value


@given(containers, st.data())
@settings(max_examples=50)
def test_a_cut_text_never_yields_what_was_not_there(value, data):
    text = json.dumps(value)
    try:
        found = parse_json(text[: data.draw(st.integers(0, len(text)))])
    except ValueError:
        return
    assert _is_part(found, value)


def _is_part(found, whole):
    if isinstance(found, dict) and isinstance(whole, dict):
        return all(key in whole and _is_part(item, whole[key]) for key, item in found.items())
    if isinstance(found, list) and isinstance(whole, list):
        return len(found) <= len(whole) and all(map(_is_part, found, whole))
    return found == whole


@given(st.text(alphabet="{}[]\"':, \\/#*`\nat1.-e", max_size=60))
def test_any_text_is_read_or_refused(text):
    try:
        found = parse_json(text)
    except ValueError as error:
        found = str(error)
    # Numbers, texts and containers of them; never half a value's marker.
    assert isinstance(json.dumps(found), str)
