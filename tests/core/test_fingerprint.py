"""Identity is content: the same text and hash in every process, another one for whatever could change a result."""

import datetime
import enum
import functools
import math
import os
import pathlib
import re
import subprocess
import sys
from collections import OrderedDict
from dataclasses import dataclass, field
from types import MappingProxyType

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from themis.core.codec import canonical_json, to_plain
from themis.core.fingerprint import code_fingerprint, describe_object, digest, fingerprint


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
from themis.core.fingerprint import code_fingerprint, describe_object, fingerprint

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


# --- code ------------------------------------------------------------------------------------------------------------


@dataclass
class Threshold:
    name: str = "threshold"
    limit: float = 0.5

    def compute(self, *, prediction, references, metadata=None):
        return float(prediction > self.limit)


@dataclass
class Combined:
    parts: list = field(default_factory=list)


def defined(source: str, name: str = "Judge"):
    """What the source defines, as code typed into an interpreter: without a file to read it from."""
    namespace: dict = {"__name__": "typed_in"}
    exec(source, namespace)
    return namespace[name]


def test_a_changed_parameter_changes_the_identity():
    assert fingerprint(describe_object(Threshold())) == fingerprint(describe_object(Threshold(limit=0.5)))
    assert fingerprint(describe_object(Threshold())) != fingerprint(describe_object(Threshold(limit=0.6)))


def test_a_parameter_of_an_inner_metric_counts_too():
    strict, lax = Combined([Threshold(limit=0.9)]), Combined([Threshold(limit=0.1)])

    assert fingerprint(describe_object(strict)) != fingerprint(describe_object(lax))
    assert code_fingerprint(Threshold) in canonical_json(describe_object(strict))


def test_a_leading_underscore_marks_state_that_does_not_count():
    class Caching:
        def __init__(self, size):
            self.size = size
            self._seen = object()

    assert fingerprint(describe_object(Caching(1))) == fingerprint(describe_object(Caching(1)))
    assert fingerprint(describe_object(Caching(1))) != fingerprint(describe_object(Caching(2)))


def test_slots_are_parameters():
    class OneSlot:
        __slots__ = "limit"

        def __init__(self, limit):
            self.limit = limit

    assert describe_object(OneSlot(3))["parameters"] == {"limit": 3}


@pytest.mark.parametrize(
    "changed",
    [
        "class Judge:\n    limit = 2\n    def compute(self): return 1",
        "class Judge:\n    limit = 1\n    def compute(self): return 2",
        "class Judge:\n    limit = 1\n    def compute(self): return self.limit",
        "class Judge:\n    limit = 1\n    @staticmethod\n    def helper(): return 1\n    def compute(self): return 1",
        "class Judge:\n    limit = 1\n    @property\n    def size(self): return 1\n    def compute(self): return 1",
    ],
)
def test_changed_code_changes_the_identity_even_without_a_source_file(changed):
    original = "class Judge:\n    limit = 1\n    def compute(self): return 1"

    assert code_fingerprint(defined(original)) == code_fingerprint(defined(original))
    assert code_fingerprint(defined(changed)) != code_fingerprint(defined(original))


def test_a_static_method_that_changes_is_seen_without_a_source_file():
    template = (
        "class Judge:\n    @staticmethod\n    def helper(): return {}\n    @property\n    def size(self): return {}"
    )

    one, other, third = (defined(template.format(*numbers)) for numbers in ((1, 1), (2, 1), (1, 2)))

    assert len({code_fingerprint(kind) for kind in (one, other, third)}) == 3


def test_a_base_class_of_the_users_own_counts():
    def build(limit):
        base = defined(f"class Judge:\n    def limit(self): return {limit}")
        return type("Child", (base,), {})

    assert code_fingerprint(build(1)) != code_fingerprint(build(2))


def test_what_a_function_closes_over_counts():
    def above(limit):
        return lambda value: value > limit

    assert code_fingerprint(above(1)) == code_fingerprint(above(1))
    assert code_fingerprint(above(1)) != code_fingerprint(above(2))


def test_defaults_count_with_or_without_keywords():
    def build(limit):
        def judge(value, *, floor=limit):
            return value > floor

        return judge

    assert code_fingerprint(build(1)) == code_fingerprint(build(1))
    assert code_fingerprint(build(1)) != code_fingerprint(build(2))


def test_arguments_of_a_partial_function_count():
    def judge(value, limit):
        return value > limit

    assert describe_object(functools.partial(judge, limit=1)) != describe_object(functools.partial(judge, limit=2))


def test_a_bound_method_carries_the_parameters_of_its_object():
    assert fingerprint(describe_object(Threshold(limit=0.1).compute)) != fingerprint(
        describe_object(Threshold(limit=0.2).compute)
    )


def test_a_regular_expression_is_its_pattern_and_flags():
    @dataclass
    class Finder:
        pattern: re.Pattern

    described = [
        fingerprint(describe_object(Finder(p))) for p in (re.compile("a"), re.compile("a", re.I), re.compile("b"))
    ]

    assert len(set(described)) == 3


def test_a_function_that_calls_itself_and_objects_that_know_each_other_have_an_end():
    def outer():
        def count_down(n):
            return 0 if n == 0 else count_down(n - 1)

        return count_down

    class Node:
        def __init__(self):
            self.other = None

    one, two = Node(), Node()
    one.other, two.other = two, one

    assert code_fingerprint(outer()) == code_fingerprint(outer())
    assert fingerprint(describe_object(one)) == fingerprint(describe_object(two))


def test_no_description_holds_a_place_in_memory():
    class Client:
        pass

    @dataclass
    class Judge:
        client: Client

    assert "0x" not in canonical_json(describe_object(Judge(Client())))
    assert describe_object(Judge(Client())) == describe_object(Judge(Client()))


def test_a_function_beside_a_metric_is_part_of_its_code():
    def made(added: int) -> tuple[str, str]:
        namespace: dict = {"__name__": "of_a_user"}
        exec(
            f"def deep(x):\n    return x + {added}\n\ndef near(x):\n    return deep(x)\n\n"
            "class Metric:\n    def compute(self):\n        return [near(y) for y in (1,)]\n",
            namespace,
        )
        return code_fingerprint(namespace["Metric"]), code_fingerprint(namespace["near"])

    assert made(1) == made(1)
    assert all(one != other for one, other in zip(made(1), made(2), strict=True))
