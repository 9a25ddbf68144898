"""Prompt templates: what they render, what they refuse, and what they say about it."""

from __future__ import annotations

import dataclasses
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

import themis
from themis.core.codec import fingerprint
from themis.core.entities import PromptRender, PromptSpec
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


# --- Jinja -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("{{question}}", "2+2?"),
        ("Q: {{ question | upper }}", "Q: 2+2?"),
        ("{% for one in options %}{{ loop.index }}. {{ one }}\n{% endfor %}", "1. a\n2. b\n"),
        ("{% if hint is defined %}{{ hint }}{% else %}none{% endif %}", "none"),
        ("{{ nested.key }} {{ nested['key'] }}", "v v"),
        ('{"q": "{{ question }}"}', '{"q": "2+2?"}'),
    ],
)
def test_jinja_is_known_from_the_text(text, shown):
    row = {"question": "2+2?", "options": ["a", "b"], "nested": {"key": "v"}}

    assert PromptTemplate("t", text).fill(row) == shown


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("{{ question }}{% for one in options %} {{ one }}{% endfor %}", "2+2? a b"),
        ("{{ question }}{% if hint %} {{ hint }}{% endif %}", "2+2?"),
        ("{{ question }}{% if hint is not none %} {{ hint }}{% endif %}", "2+2?"),
        ("{% set twice = question * 2 %}{{ twice }}", "2+2?2+2?"),
        ("{% raw %}{{ x }}{% endraw %} {{ question }}", "{{ x }} 2+2?"),
    ],
)
def test_a_row_is_asked_whatever_jinja_makes_names_for_and_keeps_from_being_shown(text, asked, tmp_path):
    row = {"question": "2+2?", "options": ["a", "b"], "hint": None, "answer": asked}

    report = themis.evaluate([row], model="fake/echo", prompt=text, storage=tmp_path, progress=False)

    assert report.generation_results[0].output.text == asked


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{{ question }} {{ hint }}", "'hint' is empty"),
        ("{% if question %}{{ hint }}{% endif %}", "'hint' is empty"),
        ("{{ question }} {{ hint or answer.absent }}", "asks for an item that a field lacks"),
        ("{{ question }} {{ hint + 1 }}", "cannot be filled from this row: TypeError"),
        ("{{ question.title }}", r"title is a method: an item of this name is written \['title'\]"),
        ("{question}{% raw %}{% endraw %}", r"Write \{\{ question \}\} to put"),
    ],
)
def test_a_row_that_jinja_would_not_ask_is_refused(text, said, tmp_path):
    row = {"question": "2+2?", "hint": None, "answer": "4"}

    with pytest.raises(ConfigurationError, match=said):
        themis.evaluate([row], model="fake/echo", prompt=text, storage=tmp_path, progress=False)


@pytest.mark.parametrize(
    "text",
    ["{question}", "{question} as {{json}}", r"{question} \boxed{{answer}}", '{question} {{"a": 1}}', "no fields"],
)
def test_what_formats_is_no_jinja(text):
    assert not PromptTemplate("t", text).is_jinja


def test_the_syntax_can_be_said():
    assert PromptTemplate("t", "{{question}}", syntax="format").fill({"question": "x"}) == "{question}"
    assert PromptTemplate("t", "{question}", syntax="jinja").fill({"question": "x"}) == "{question}"
    with pytest.raises(TemplateRenderingError, match="format or jinja"):
        PromptTemplate("t", "{question}", syntax="mustache")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{{ qestion }}", "did you mean 'question'"),
        ("{% if question %}", "cannot be read as Jinja"),
        ("{{ ''.__class__.__mro__ }}", "cannot be filled"),
        ("{{ question.__class__ }}", "cannot be filled|asks for"),
        ("{% for n in range(100000000) %}x{% endfor %}", "cannot be filled"),
        ("{{ 1 // 0 }} {{ question }}", "cannot be filled"),
        ("{{ 2 ** 100000 }} {{ question }}", "cannot be (read|filled)"),
        ("{{ range(9) | random }} {{ question }}", "No filter named 'random'. If"),
    ],
)
def test_what_jinja_cannot_or_may_not_do_is_told(text, said):
    with pytest.raises(TemplateRenderingError, match=said):
        PromptTemplate("t", text, syntax="jinja").fill({"question": "x"})


def test_a_prompt_of_messages_is_asked_in_turns(tmp_path):
    seen = []

    def answer(messages):
        seen.append(messages)
        return "x"

    turns = [{"role": "system", "content": "In {tongue}."}, {"role": "user", "content": "{{ question }}"}]
    themis.evaluate(
        [{"question": "Why?", "tongue": "Latin", "answer": "x"}],
        model=answer,
        prompt=turns,
        storage=tmp_path,
        progress=False,
    )

    assert seen == [[{"role": "system", "content": "In Latin."}, {"role": "user", "content": "Why?"}]]


@pytest.mark.parametrize(
    "prompt", [[], [{"content": "x"}], ["x"], {"role": "user"}, [{"role": "user", "content": "x"}]]
)
def test_what_is_no_prompt_is_refused(prompt, tmp_path):
    with pytest.raises(ConfigurationError):
        themis.evaluate([{"q": "?", "answer": "x"}], model="fake/echo", prompt=prompt, storage=tmp_path, progress=False)


@pytest.mark.parametrize("prompt", ["{{ word | upper }}", [{"role": "user", "content": "{word}"}]])
def test_a_resumed_run_asks_with_the_same_syntax(prompt, tmp_path):
    rows = [{"id": str(n), "word": "ab", "answer": "AB"} for n in range(3)]
    asked = {
        "model": "fake/echo",
        "prompt": prompt,
        "storage": tmp_path,
        "progress": False,
        "run_id": "r",
        "workers": 1,
    }
    themis.evaluate(rows, system_prompt="Be brief.", stop_when=lambda record: "enough", **asked)
    report = themis.api.resume("r", storage=tmp_path, progress=False)

    assert len({record.output.text for record in report.generation_results}) == 1
    assert all(record.task.metadata["system_prompt"] == "Be brief." for record in report.generation_results)


def test_a_conversation_stands_in_a_prompt_as_what_was_said_and_by_whom():
    said = [
        {
            "role": "user",
            "content": [{"type": "text", "text": "Look: "}, {"type": "image", "name": "a.png", "data": "AAAA"}],
        },
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "1", "function": {"name": "f", "arguments": "{}"}}],
        },
    ]

    assert template("{messages}").fill({"messages": said}) == "user: Look: [image a.png]\nassistant calls f({})"
    assert template("Go on: {messages}").fill({"messages": "hello"}) == "Go on: hello"
    assert template("{messages}").fill({"messages": [1, 2]}) == "[1, 2]"
    assert template("{messages[0]}").fill({"messages": ["one"]}) == "one"
