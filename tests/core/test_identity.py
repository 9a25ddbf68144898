"""An object is known by its class, its parameters and everything that its code reaches and reads."""

import ast
import enum
import functools
import re
from dataclasses import dataclass, field

import pytest

from themis.core.codec import canonical_json, digest, fingerprint
from themis.core.identity import describe_object
from themis.core.source import canonical_code


def identity(value) -> str:
    return fingerprint(describe_object(value))


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
    assert identity(Threshold()) == identity(Threshold(limit=0.5))
    assert identity(Threshold()) != identity(Threshold(limit=0.6))


def test_a_parameter_of_an_inner_metric_counts_too():
    strict, lax = Combined([Threshold(limit=0.9)]), Combined([Threshold(limit=0.1)])

    assert identity(strict) != identity(lax)
    assert "Threshold.compute" in describe_object(strict)["made_of"]


def test_a_leading_underscore_marks_state_that_does_not_count():
    class Caching:
        def __init__(self, size):
            self.size = size
            self._seen = object()

    assert identity(Caching(1)) == identity(Caching(1))
    assert identity(Caching(1)) != identity(Caching(2))


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

    assert identity(defined(original)) == identity(defined(original))
    assert identity(defined(changed)) != identity(defined(original))


def test_a_static_method_that_changes_is_seen_without_a_source_file():
    template = (
        "class Judge:\n    @staticmethod\n    def helper(): return {}\n    @property\n    def size(self): return {}"
    )

    one, other, third = (defined(template.format(*numbers)) for numbers in ((1, 1), (2, 1), (1, 2)))

    assert len({identity(kind) for kind in (one, other, third)}) == 3


def test_a_base_class_of_the_users_own_counts():
    def build(limit):
        base = defined(f"class Judge:\n    def limit(self): return {limit}")
        return type("Child", (base,), {})

    assert identity(build(1)) != identity(build(2))


def test_what_a_function_closes_over_counts():
    def above(limit):
        return lambda value: value > limit

    assert identity(above(1)) == identity(above(1))
    assert identity(above(1)) != identity(above(2))


def test_defaults_count_with_or_without_keywords():
    def build(limit):
        def judge(value, *, floor=limit):
            return value > floor

        return judge

    assert identity(build(1)) == identity(build(1))
    assert identity(build(1)) != identity(build(2))


def test_arguments_of_a_partial_function_count():
    def judge(value, limit):
        return value > limit

    assert describe_object(functools.partial(judge, limit=1)) != describe_object(functools.partial(judge, limit=2))


def test_a_bound_method_carries_the_parameters_of_its_object():
    assert identity(Threshold(limit=0.1).compute) != identity(Threshold(limit=0.2).compute)


def test_a_regular_expression_is_its_pattern_and_flags():
    @dataclass
    class Finder:
        pattern: re.Pattern

    described = [identity(Finder(p)) for p in (re.compile("a"), re.compile("a", re.I), re.compile("b"))]

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

    assert identity(outer()) == identity(outer())
    assert identity(one) == identity(two)


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
        return identity(namespace["Metric"]), identity(namespace["near"])

    assert made(1) == made(1)
    assert all(one != other for one, other in zip(made(1), made(2), strict=True))


GRAMMAR = '''
def every(a, /, b: int = 1, *c, d=-2, **e) -> str:
    """Gone."""
    x = f"{a!r:>{b}} {c=} {d:} {d:>5} {a:{b}{c}} {{}} {e['k']:%Y-%m}" "tail" f"{a}"
    match a:
        case {"x": 1, **rest}: pass
        case [1, *_, (2 | 3) as q]: return -1
        case str() | None: ...
    with (open(a) as g, open(b)): pass
    try: pass
    except* (A, B) as error: raise
    return [i async for i in a[1:2, ..., *c] if (n := 10) > 5 and (lambda *k, m=1: (yield))]

class Kind(Base, metaclass=M, k=1):
    "Gone."
    x: int = 0xff + 1_000 + 1j
    @property
    async def p(self): await super().p; u"gone"
'''  # fmt: skip


def test_code_has_one_text_under_every_version_of_python():
    assert digest(canonical_code(ast.parse(GRAMMAR))) == "718e2d67a670cfaa1e36db0edd4bb204"


def test_a_description_is_the_same_under_every_version_of_python():
    class Shape(enum.StrEnum):
        ROUND = enum.auto()

        def corners(self):
            return 0

    @dataclass(frozen=True, slots=True, order=True)
    class Size:
        width: float = 0.5
        parts: list = field(default_factory=list)

    smallest = Size(0.25)

    def judge(value, *, least=smallest):
        return (Shape.ROUND.corners(), least, [part for part in value if part in {"a", "b"}])

    assert identity(judge)[:12] == "9e50ef0f5fae"
