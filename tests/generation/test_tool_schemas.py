"""What models are told of functions, and what becomes of the arguments that they write."""

from __future__ import annotations

import enum
import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Annotated, Any, Literal, NewType, NotRequired, Optional, TypedDict

import pytest

from themis.core.messages import ToolCall
from themis.exceptions import ConfigurationError
from themis.generation.tool_schemas import ArgumentError, Parameters
from themis.generation.tools import GivenRow, Tool, Toolset


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.Enum):
    LOW = (1, 2)
    HIGH = (3, 4)


class Filter(TypedDict):
    field: str
    least: NotRequired[float]


@dataclass
class Order:
    """An order.

    Args:
        item: What is ordered.
    """

    item: str
    count: int = 1
    colours: list[Colour] = field(default_factory=list)


Kilos = NewType("Kilos", float)


def schema_of(annotation: object) -> object:
    """What a model is told of a parameter of a type."""

    def tool(value):
        return None

    tool.__annotations__ = {"value": annotation}
    (told,) = Toolset([tool]).schemas
    return told["parameters"]["properties"]["value"]


def given_to_tool(annotation: object, written: object) -> object:
    """What a tool gets where a model writes a value for a parameter of a type."""
    got = []

    def tool(value):
        got.append(value)

    tool.__annotations__ = {"value": annotation}
    message = Toolset([tool]).open({}).call(ToolCall("tool", {"value": written}))
    assert "error" not in message, message
    return got[0]


@pytest.mark.parametrize(
    ("annotation", "schema"),
    [
        (str, {"type": "string"}),
        (int, {"type": "integer"}),
        (float, {"type": "number"}),
        (bool, {"type": "boolean"}),
        (Any, {}),
        (Literal["a", "b"], {"enum": ["a", "b"], "type": "string"}),
        (Literal["a", 1], {"enum": ["a", 1]}),
        (Colour, {"enum": ["red", "blue"], "type": "string"}),
        (Level, {"enum": ["LOW", "HIGH"], "type": "string"}),
        (Optional[int], {"anyOf": [{"type": "integer"}, {"type": "null"}]}),  # noqa: UP045 -- as many write it
        (int | str, {"anyOf": [{"type": "integer"}, {"type": "string"}]}),
        (list[int], {"type": "array", "items": {"type": "integer"}}),
        (Sequence[str], {"type": "array", "items": {"type": "string"}}),
        (list, {"type": "array"}),
        (set[str], {"type": "array", "items": {"type": "string"}, "uniqueItems": True}),
        (tuple[float, float], {"type": "array", "minItems": 2, "maxItems": 2, "items": {"type": "number"}}),
        (tuple[int, ...], {"type": "array", "items": {"type": "integer"}}),
        (
            tuple[str, int],
            {"type": "array", "minItems": 2, "maxItems": 2, "prefixItems": [{"type": "string"}, {"type": "integer"}]},
        ),
        (dict[str, int], {"type": "object", "additionalProperties": {"type": "integer"}}),
        (Mapping[str, Any], {"type": "object"}),
        (date, {"type": "string", "format": "date"}),
        (Path, {"type": "string"}),
        (Kilos, {"type": "number"}),
        (Annotated[int, "How many."], {"type": "integer", "description": "How many."}),
        (
            Filter,
            {
                "type": "object",
                "properties": {"field": {"type": "string"}, "least": {"type": "number"}},
                "required": ["field"],
                "additionalProperties": False,
            },
        ),
        (
            Order,
            {
                "type": "object",
                "properties": {
                    "item": {"type": "string", "description": "What is ordered."},
                    "count": {"type": "integer"},
                    "colours": {"type": "array", "items": {"enum": ["red", "blue"], "type": "string"}},
                },
                "required": ["item"],
                "additionalProperties": False,
            },
        ),
    ],
)
def test_a_type_is_a_schema(annotation, schema):
    assert schema_of(annotation) == schema


@pytest.mark.parametrize(
    ("annotation", "written", "got"),
    [
        (int, 3.0, 3),
        (float, 3, 3.0),
        (Colour, "red", Colour.RED),
        (Level, "HIGH", Level.HIGH),
        (Optional[Colour], None, None),  # noqa: UP045
        (list[Colour], ["blue"], [Colour.BLUE]),
        (tuple[int, str], [1, "a"], (1, "a")),
        (set[int], [1, 2], {1, 2}),
        (dict[str, Colour], {"a": "red"}, {"a": Colour.RED}),
        (date, "2026-02-03", date(2026, 2, 3)),
        (Order | str, "all", "all"),
        (Order | str, {"item": "tea", "colours": ["red"]}, Order("tea", colours=[Colour.RED])),
        (Filter, {"field": "x"}, {"field": "x"}),
    ],
)
def test_a_tool_gets_what_its_types_say(annotation, written, got):
    found = given_to_tool(annotation, written)

    assert (found, type(found)) == (got, type(got))


def test_a_whole_number_is_no_fraction_for_the_tool():
    assert type(given_to_tool(int, 3.0)) is int
    assert type(given_to_tool(float, 3)) is float


@dataclass
class Tree:
    children: list[Tree]


class Unknown:
    pass


@pytest.mark.parametrize(
    ("annotation", "said"),
    [
        (Unknown, "parameter 'value' of tool 'tool' has the type Unknown, of which a model cannot write values"),
        (dict[int, str], "has keys that are no texts"),
        (Tree, "Tree holds itself"),
        ("NoSuchName", "its annotations cannot be read: NameError"),
    ],
)
def test_a_type_that_no_model_can_write_is_refused_before_the_first_call(annotation, said):
    with pytest.raises(ConfigurationError, match=said):
        schema_of(annotation)


# --- docstrings -----------------------------------------------------------------------------------------------------------


def google(city, days=3):
    """The weather of a city.

    For the days to come.

    Args:
        city (str): Where, as people
            call it.
        days: How many days.

    Returns:
        A sentence.
    """


def numpy(city, days=3):
    """The weather of a city.

    For the days to come.

    Parameters
    ----------
    city : str
        Where, as people
        call it.
    days : int, optional
        How many days.

    Returns
    -------
    str
        A sentence.
    """


def rest(city, days=3):
    """The weather of a city.

    For the days to come.

    :param city: Where, as people
        call it.
    :type city: str
    :param int days: How many days.
    :returns: A sentence.
    """


@pytest.mark.parametrize("function", [google, numpy, rest])
def test_docstrings_of_every_style_say_the_same(function):
    (told,) = Toolset([function]).schemas

    assert told["description"] == "The weather of a city.\n\nFor the days to come."
    assert told["parameters"] == {
        "type": "object",
        "properties": {
            "city": {"type": "string", "description": "Where, as people call it."},
            "days": {"type": "integer", "description": "How many days.", "default": 3},
        },
        "required": ["city"],
        "additionalProperties": False,
    }


def test_a_function_without_annotations_or_docstring_takes_anything():
    def tool(value, flag=False):
        return value

    (told,) = Toolset([tool]).schemas

    assert told["description"] == ""
    assert told["parameters"]["properties"] == {"value": {}, "flag": {"type": "boolean", "default": False}}


def test_what_an_annotation_says_comes_before_what_the_docstring_says():
    def tool(count: Annotated[int, "From the annotation."]):
        """Args:
        count: From the docstring.
        """

    assert Toolset([tool]).schemas[0]["parameters"]["properties"]["count"]["description"] == "From the annotation."


# --- parameters that are not the model's -----------------------------------------------------------------------------------


def test_a_parameter_called_row_is_given_the_row_and_not_shown():
    def look_up(key: str, row: dict):
        return row["facts"][key]

    tools = Toolset([look_up])

    assert list(tools.schemas[0]["parameters"]["properties"]) == ["key"]
    assert tools.open({"facts": {"a": "b"}}).call(ToolCall("look_up", {"key": "a"}))["content"] == "b"


def test_a_parameter_of_another_name_can_be_marked_as_the_row():
    def look_up(key: str, sample: GivenRow):
        return sample[key]

    tools = Toolset([look_up])

    assert list(tools.schemas[0]["parameters"]["properties"]) == ["key"]
    assert tools.open({"a": "b"}).call(ToolCall("look_up", {"key": "a"}))["content"] == "b"


def test_the_row_of_a_spreadsheet_is_the_models():
    def read_cell(row: int, column: int):
        return f"{row}/{column}"

    tools = Toolset([read_cell])

    assert list(tools.schemas[0]["parameters"]["properties"]) == ["row", "column"]
    assert tools.open({}).call(ToolCall("read_cell", {"row": 1, "column": 2}))["content"] == "1/2"


def test_what_a_tool_does_to_the_row_reaches_neither_the_row_nor_the_next_call():
    def count(row):
        row["seen"].append(1)
        return len(row["seen"])

    row = {"seen": []}
    session = Toolset([count]).open(row)

    assert [session.call(ToolCall("count"))["content"] for _ in range(2)] == ["1", "1"]
    assert row == {"seen": []}


def test_what_a_tool_does_to_its_arguments_does_not_reach_the_transcript():
    def sort(numbers: list[int]):
        numbers.sort()
        return numbers

    call = ToolCall("sort", {"numbers": [3, 1, 2]})

    assert Toolset([sort]).open({}).call(call)["content"] == "[1, 2, 3]"
    assert call.arguments == {"numbers": [3, 1, 2]}


def test_what_a_partial_function_has_already_is_not_asked_for():
    def convert(amount: float, currency: str, rate: float = 1.0):
        return f"{amount * rate:g} {currency}"

    tools = Toolset([functools.partial(convert, currency="EUR")])

    assert list(tools.schemas[0]["parameters"]["properties"]) == ["amount", "rate"]
    assert tools.schemas[0]["name"] == "convert"
    assert tools.open({}).call(ToolCall("convert", {"amount": 2, "rate": 3}))["content"] == "6 EUR"


def test_a_function_of_pythons_own_is_a_tool():
    assert Toolset([math.sqrt]).open({}).call(ToolCall("sqrt", {"x": 16}))["content"] == "4.0"
    with pytest.raises(ConfigurationError, match="tool 'hypot': its parameters are not known"):
        Toolset([math.hypot])


def test_a_function_that_takes_more_keywords_is_given_them():
    def search(query: str, **filters: str):
        return f"{query} {filters}"

    tools = Toolset([search])

    assert tools.open({}).call(ToolCall("search", {"query": "q", "year": "2026"}))["content"] == "q {'year': '2026'}"


def test_an_object_that_can_be_called_is_a_tool_of_its_class():
    class WordCount:
        """Counts words."""

        def __call__(self, text: str) -> int:
            return len(text.split())

    tools = Toolset([WordCount()])

    assert (tools.schemas[0]["name"], tools.schemas[0]["description"]) == ("word_count", "Counts words.")
    assert tools.open({}).call(ToolCall("word_count", {"text": "a b"}))["content"] == "2"


def test_what_the_model_is_told_can_be_written_by_hand():
    schema = {"type": "object", "properties": {"q": {"type": "string", "maxLength": 3}}, "required": ["q"]}
    tools = Toolset([Tool(function=lambda q: q.upper(), name="shout", description="Loud.", parameters=schema)])
    session = tools.open({})

    assert tools.schemas == [{"name": "shout", "description": "Loud.", "parameters": schema}]
    assert session.call(ToolCall("shout", {"q": "abc"}))["content"] == "ABC"
    assert session.call(ToolCall("shout", {"q": "abcd"}))["error"] is True


# --- arguments that do not fit ---------------------------------------------------------------------------------------------


def book(seat: int, name: str, options: Filter | None = None):
    return "booked"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({}, "book: missing argument 'seat'; missing argument 'name'. The parameters are {"),
        ({"seat": "three", "name": "A"}, "book: argument 'seat': 'three' is not of type 'integer'."),
        ({"seat": True, "name": "A"}, "book: argument 'seat': True is not of type 'integer'."),
        ({"seat": 1, "nmae": "A"}, "unknown argument 'nmae' (did you mean 'name'?)"),
        ({"seat": 1, "name": "A", "options": {"field": 1}}, "argument 'options'"),
    ],
)
def test_arguments_that_do_not_fit_are_explained(arguments, said):
    message = Toolset([book]).open({}).call(ToolCall("book", arguments))

    assert message["error"] is True
    assert said in message["content"]


def test_arguments_inside_of_others_are_named_by_their_path():
    def plan(stops: list[Filter]):
        return "planned"

    message = Toolset([plan]).open({}).call(ToolCall("plan", {"stops": [{"field": "a"}, {"least": 1, "moost": 2}]}))

    assert "in 'stops[1]': missing argument 'field'" in message["content"]
    assert "in 'stops[1]': unknown argument 'moost'" in message["content"]


def test_a_day_that_does_not_exist_is_explained():
    def on(day: date):
        return str(day)

    message = Toolset([on]).open({}).call(ToolCall("on", {"day": "2026-02-30"}))

    assert message["error"] is True
    assert "argument 'day': day is out of range for month" in message["content"]


def test_an_endless_argument_is_not_repeated_whole():
    message = Toolset([book]).open({}).call(ToolCall("book", {"seat": "x" * 10_000, "name": "A"}))

    assert len(message["content"]) < 2_000


@pytest.mark.parametrize("schema", [{"$ref": "#"}, {"$ref": "http://127.0.0.1:1/schema.json"}])
def test_a_schema_that_leads_nowhere_holds_nobody_up(schema):
    """Of a server's: nothing is fetched for it, and the server checks the arguments itself."""
    assert Parameters(schema).read({"a": 1}) == {"a": 1}


def test_a_schema_of_an_older_draft_is_read_as_such():
    schema = {"$schema": "http://json-schema.org/draft-07/schema#", "items": [{"type": "string"}], "required": ["a"]}

    with pytest.raises(ArgumentError, match="missing argument 'a'"):
        Parameters(schema).read({})


def test_parameters_that_have_no_names_are_given_by_their_places():
    def divide(dividend: float, divisor: float = 2.0, /) -> float:
        return dividend / divisor

    session = Toolset([divide]).open({})

    assert session.call(ToolCall("divide", {"dividend": 9, "divisor": 3}))["content"] == "3.0"
    assert session.call(ToolCall("divide", {"dividend": 9}))["content"] == "4.5"
    assert session.call(ToolCall("divide", {"divisor": 3}))["error"] is True


def test_a_function_that_takes_its_arguments_by_place_alone_is_refused():
    def add(*numbers: int) -> int:
        return sum(numbers)

    with pytest.raises(ConfigurationError, match=r"'add' takes its arguments as \*numbers.*take a list"):
        Toolset([add])


def test_arguments_by_place_that_nobody_needs_are_left_out():
    def note(text: str, *more: str) -> str:
        return f"{text} {more}"

    assert Toolset([note]).open({}).call(ToolCall("note", {"text": "tea"}))["content"] == "tea ()"
