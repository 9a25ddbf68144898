"""Prompt templates: what they render, what they refuse, and what they say about it."""

from __future__ import annotations

import dataclasses
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from themis.core.entities import PromptRender, PromptSpec
from themis.core.fingerprint import fingerprint
from themis.exceptions import ConfigurationError, ThemisError
from themis.generation.templates import PromptTemplate, TemplateRenderingError


def template(text: str) -> PromptTemplate:
    return PromptTemplate(name="t", template=text)


def test_a_row_s_fields_are_put_into_the_text():
    prompt = PromptTemplate("sum", "What is {a} + {b}?")

    assert prompt.render(a=2, b="3", unused=None) == "What is 2 + 3?"
    assert prompt.fields == ("a", "b")


@pytest.mark.parametrize(
    ("text", "row", "expected"),
    [
        ("no fields, 100 %", {}, "no fields, 100 %"),
        ("{x} is 100 % sure: %s", {"x": 1}, "1 is 100 % sure: %s"),
        ("{{literal}} {x}", {"x": 1}, "{literal} 1"),
        ('{{"answer": "{x}"}}', {"x": 1}, '{"answer": "1"}'),
        ("{x}{x}", {"x": "ab"}, "abab"),
        ("{x:.2f} {x!r:>4}", {"x": 1.5}, "1.50  1.5"),
        ("{a[key]} {a[list][1]}", {"a": {"key": "v", "list": [1, 2]}}, "v 2"),
        ("{Correct Answer} {mixed-name} {2nd}", {"Correct Answer": 1, "mixed-name": 2, "2nd": 3}, "1 2 3"),
        ("{x}", {"x": (1, 2)}, "(1, 2)"),
        ("{x} {y}", {"x": None, "y": {"k": [1]}}, "None {'k': [1]}"),
        ("{x}", {"x": "{not} a %s field"}, "{not} a %s field"),
        ("", {}, ""),
        ("{näme}", {"näme": "ü"}, "ü"),
    ],
)
def test_templates_render_as_str_format_does(text, row, expected):
    assert template(text).fill(row) == expected
    assert text.format(**row) == expected


@given(
    literals=st.lists(st.text(alphabet=string.printable + "ü{}%"), min_size=1, max_size=5),
    values=st.lists(st.one_of(st.text(), st.integers(), st.none(), st.lists(st.integers())), min_size=4, max_size=4),
)
def test_every_template_of_plain_fields_agrees_with_str_format(literals, values):
    text = "".join(
        literal.replace("{", "{{").replace("}", "}}") + f"{{f{index % 4}}}" for index, literal in enumerate(literals)
    )
    row = {f"f{index}": value for index, value in enumerate(values)}

    assert template(text).fill(row) == text.format(**row)


def test_a_missing_field_is_named_with_the_row_s_fields_and_the_nearest_one():
    with pytest.raises(TemplateRenderingError) as caught:
        template("{qestion} {a}").fill({"question": "?", "a": 1})

    message = str(caught.value)
    assert "'qestion'" in message
    assert "did you mean 'question'?" in message
    assert "it has a, question" in message


def test_a_missing_item_is_named():
    with pytest.raises(TemplateRenderingError, match="an item that a field lacks: 'b'"):
        template("{a[b]}").fill({"a": {}})


def test_a_value_that_its_format_does_not_fit_is_an_error_of_the_template():
    with pytest.raises(TemplateRenderingError, match="cannot be filled"):
        template("{a:.2f}").fill({"a": "text"})


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('Answer as JSON: {"answer": 1}', "write {{"),
        ("{ }", "write {{"),
        ("{\n}", "write {{"),
        ("a set {1, 2}", "write {{"),
        ("open {", "written {{ or }}"),
        ("close }", "written {{ or }}"),
        ("{}", "positional field"),
        ("{0}", "positional field"),
        ("{12!r}", "positional field"),
    ],
)
def test_literal_braces_and_positional_fields_are_refused_when_the_template_is_made(text, says):
    with pytest.raises(TemplateRenderingError) as caught:
        template(text)

    assert says in str(caught.value)


def test_the_advice_for_literal_braces_works():
    with pytest.raises(TemplateRenderingError, match=r'write \{\{"k": 1\}\}'):
        template('{"k": 1}')

    assert template('{{"k": 1}}').render() == '{"k": 1}'


@pytest.mark.parametrize(
    "text", ["{row.__class__}", "{row[a].b}", "{row.__init__.__globals__[os]}", "{row.}", "{row[]}"]
)
def test_attributes_are_never_read(text):
    with pytest.raises(TemplateRenderingError):
        template(text)


def test_the_refusal_of_an_attribute_says_how_an_item_is_written():
    with pytest.raises(TemplateRenderingError, match=r"\{meta\[source\]\}"):
        template("{meta.source}")


@pytest.mark.parametrize("text", ["{x:{width}}", "{x!z}"])
def test_nested_specs_and_unknown_conversions_are_refused(text):
    with pytest.raises(TemplateRenderingError):
        template(text)


def test_a_template_that_is_not_text_is_refused():
    with pytest.raises(TemplateRenderingError, match="must be a string, got int"):
        PromptTemplate("t", 3)  # type: ignore[arg-type]


def test_its_error_is_a_configuration_error_and_a_runtime_error():
    assert issubclass(TemplateRenderingError, RuntimeError)
    assert issubclass(TemplateRenderingError, ConfigurationError)
    assert issubclass(TemplateRenderingError, ThemisError)


def test_a_render_carries_the_template_the_row_and_the_metadata():
    prompt = PromptTemplate("greet", "Hi {name}", metadata={"version": 2})
    row = {"name": "Ada", "id": 7}

    render = prompt.render_prompt(row)

    assert render == PromptRender(
        spec=PromptSpec("greet", "Hi {name}", {"version": 2}), text="Hi Ada", context=row, metadata={"version": 2}
    )
    assert render.context is not row


def test_templates_are_values():
    prompt = PromptTemplate("t", "{a}")

    assert prompt == PromptTemplate("t", "{a}")
    assert prompt != PromptTemplate("t", "{b}")
    assert dataclasses.replace(prompt, template="{b}").fill({"b": 1}) == "1"
    with pytest.raises(dataclasses.FrozenInstanceError):
        prompt.template = "{b}"  # type: ignore[misc]


def test_equal_templates_have_one_fingerprint():
    used = PromptTemplate("t", "{a}", {"k": 1})
    used.fill({"a": 1})

    assert fingerprint(used) == fingerprint(PromptTemplate("t", "{a}", {"k": 1}))
    assert hash(used) == hash(PromptTemplate("t", "{a}"))
