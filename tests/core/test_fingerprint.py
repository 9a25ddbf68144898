"""Identity is content: the same text and hash in every process, another one for whatever could change a result."""

import datetime
import enum
import math
import os
import pathlib
import subprocess
import sys
from collections import OrderedDict
from dataclasses import dataclass
from types import MappingProxyType

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from themis.core.codec import canonical_json, digest, fingerprint, to_plain


@dataclass
class Point:
    x: float
    tags: tuple[str, ...] = ()


class Colour(enum.Enum):
    RED = "red"


class Pair(msgspec.Struct):
    left: int
    right: str


MOMENT = datetime.datetime(2026, 1, 31, 23, 59, 59, 500_000, tzinfo=datetime.UTC)

# value, canonical text, first twelve digits of its sha256
GOLDEN = {
    "none": (None, "null", "74234e98afe7"),
    "order of keys": ({"b": 1, "a": [True, None]}, '{"a":[true,null],"b":1}', "51705a2c9eb3"),
    "unicode": ("Zoë 🙂 \u2028", '"Zo\\u00eb \\ud83d\\ude42 \\u2028"', "e27696f50dbe"),
    "lone surrogate and NUL": ("\ud800\x00", '"\\ud800\\u0000"', "2890d3fafbba"),
    "floats": ([0.1, 1e16, 1e-7, -0.0, 1.0], "[0.1,1e+16,1e-07,-0.0,1.0]", "59db0f202c3e"),
    "not a number": ([math.nan, math.inf, -math.inf], "[NaN,Infinity,-Infinity]", "b1ec71618b1e"),
    "huge integer": (2**80, "1208925819614629174706176", "f357dd857f63"),
    "dataclass": (Point(0.5, ("a",)), '{"__class__":"Point","tags":["a"],"x":0.5}', "ba380dbbac4b"),
    "struct": (Pair(1, "r"), '{"__class__":"Pair","left":1,"right":"r"}', "30e340bf4839"),
    "numpy": (
        {"f": np.float64(0.5), "i": np.int32(3), "b": np.bool_(True), "a": np.array([[1, 2]])},
        '{"a":[[1,2]],"b":true,"f":0.5,"i":3}',
        "f09a8bf05587",
    ),
    "moment": (MOMENT, '"2026-01-31T23:59:59.500000+00:00"', "dc1c00b961f6"),
    "day and duration": (
        [datetime.date(2026, 1, 31), datetime.timedelta(minutes=2)],
        '["2026-01-31",{"seconds":120.0}]',
        "e17542d3a7bc",
    ),
    "set": ({"b", "a", "c"}, '["a","b","c"]', "fa1844c2988a"),
    "bytes and path": ([b"\x00\xff", pathlib.PurePosixPath("a/b")], '[{"bytes":"00ff"},"a/b"]', "6fc3e4e034d4"),
    "enumeration": (Colour.RED, '"red"', "4bc9274d8758"),
    "keys of many kinds": ({1: "a", "1": "b", None: "c"}, '{"1":"b","NoneType:None":"c","int:1":"a"}', "fd83ad26a579"),
}


@pytest.mark.parametrize("name", GOLDEN)
def test_a_value_has_this_canonical_text_and_hash(name):
    value, text, start = GOLDEN[name]

    assert canonical_json(value) == text
    assert fingerprint(value)[:12] == start


def test_equal_mappings_have_one_text_whatever_their_order_and_kind():
    texts = {
        canonical_json({"a": 1, "b": (1, 2)}),
        canonical_json({"b": [1, 2], "a": 1}),
        canonical_json(OrderedDict(b=[1, 2], a=1)),
        canonical_json(MappingProxyType({"b": [1, 2], "a": 1})),
    }

    assert texts == {'{"a":1,"b":[1,2]}'}


def test_one_moment_has_one_text_in_every_time_zone():
    elsewhere = MOMENT.astimezone(datetime.timezone(datetime.timedelta(hours=5, minutes=30)))

    assert canonical_json(elsewhere) == canonical_json(MOMENT)


def test_an_object_without_a_stable_text_is_refused():
    with pytest.raises(TypeError, match="no canonical form for object"):
        fingerprint({"a": object()})


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(VALUES)
def test_what_is_stored_has_the_fingerprint_of_what_was_given(value):
    assert fingerprint(to_plain(value)) == fingerprint(value)


@given(VALUES, VALUES)
def test_two_values_share_a_fingerprint_only_if_their_texts_are_equal(one, other):
    assert (fingerprint(one) == fingerprint(other)) == (canonical_json(one) == canonical_json(other))


def test_the_parts_of_a_digest_cannot_run_into_each_other():
    assert digest("ab", "c") != digest("a", "bc")
    assert digest("\ud800") != digest("?")
    assert digest("a", "b") == "facdde7abf1eac5b301273ab2e282f79"


OTHER_PROCESS = """
import datetime, math, numpy as np
from themis.core.codec import fingerprint
from themis.core.identity import code_fingerprint, describe_object

namespace = {}
exec("def among(text):\\n    return text in {'alpha', 'beta', 'gamma', 'delta', 'epsilon'}", namespace)

class Judge:
    def __init__(self):
        self.words = {"one", "two", "three", "four"}
        self.options = {"b": 1, "a": frozenset("xyz")}

print(fingerprint([{"b", "a", "c"}, {"k": math.nan}, np.float32(0.5), "Zo\\u00eb"]))
print(code_fingerprint(namespace["among"]))
print(fingerprint(describe_object(Judge())))
"""


def test_another_process_with_another_hash_seed_finds_the_same():
    answers = {
        subprocess.run(
            [sys.executable, "-c", OTHER_PROCESS],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "4242")
    }

    assert len(answers) == 1
