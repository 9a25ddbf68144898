"""What a notebook shows: progress in a real kernel, and reports, comparisons and samples as HTML that cannot act."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

import themis
from themis.comparison import compare_runs
from themis.core.entities import (
    GenerationRecord,
    GenerationTask,
    ModelError,
    ModelOutput,
    ModelSpec,
    PromptRender,
    PromptSpec,
    SamplingConfig,
)
from themis.generation.providers import register_provider

PROJECT = Path(__file__).parents[2]
HOSTILE = "<script>alert(1)</script>\u202e</pre><img src=x onerror=alert(2)>"
ROWS = [{"id": f"{HOSTILE}{n}", "question": f"{HOSTILE} {n}?", "answer": f"{n}{HOSTILE}"} for n in range(8)]


class Elements(HTMLParser):
    """The names and attributes of everything that HTML would make a browser do."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.found += [tag, *(name for name, _ in attrs)]


class Hostile:
    def execute(self, task: GenerationTask) -> GenerationRecord:
        return GenerationRecord(task, ModelOutput(f"{HOSTILE} sk-very-secret-key-1234567890"), None)


@pytest.fixture
def report(tmp_path, monkeypatch):
    monkeypatch.setenv("SOME_API_KEY", "sk-very-secret-key-1234567890")
    register_provider("hostile", Hostile)
    return themis.evaluate(
        ROWS, model="hostile/x", prompt="{question}", run_id="hostile & co", storage=tmp_path, progress=False
    )


def test_a_report_shows_metrics_intervals_and_first_samples_and_nothing_in_it_can_act(report):
    html = report._repr_html_()

    assert "hostile &amp; co" in html
    assert "5 of 8 samples; report.to_frame() has all of them" in html
    assert re.search(r"ExactMatch</td>.*>0\.0000</td>.*>8</td>", html)
    assert_harmless(html)


def test_prices_in_a_text_are_not_set_as_mathematics(report):
    for shown in (report, report.generation_results[0]):
        outermost = re.match(r"<div[^>]*>", shown._repr_html_())
        assert outermost
        assert 'class="tex2jax_ignore mathjax_ignore"' in outermost.group()


def test_a_sample_shows_prompt_answer_reference_and_its_scores(report):
    html = report.generation_results[0]._repr_html_()

    for shown in ("Prompt", "Answer", "Expected", "ExactMatch 0", "0&lt;script&gt;"):
        assert shown in html
    assert_harmless(html)


def test_a_sample_of_several_steps_shows_what_was_said_to_whom_and_no_empty_box(tmp_path):
    def add(a: int, b: int) -> int:
        """The sum."""
        return a + b

    def pupil(question, messages):
        if messages[-1]["role"] == "tool":
            return {"content": "It is 5.", "reasoning": f"I was told {HOSTILE}"}
        return {"tool_calls": [{"name": "add", "arguments": {"a": 2, "b": 3}}]}

    asked = {"prompt": "{question}", "storage": tmp_path, "progress": False}
    report = themis.evaluate(
        ROWS[:2], model=pupil, tools=[add], system_prompt="Be <i>brief</i>.", run_id="steps", **asked
    )
    html = report.generation_results[0]._repr_html_()

    told = ["Prompt: system", "Be &lt;i&gt;brief", "calls add(a=2, b=3)", "-&gt; 5", "thinking</summary>", "It is 5."]
    assert [text for text in told if text not in html] == []
    assert_harmless(html)

    report = themis.evaluate(
        ROWS[:2], model=lambda question: pupil(question, [{"role": "user"}]), run_id="call", **asked
    )
    html = report.generation_results[0]._repr_html_()

    assert "calls add(a=2, b=3)</pre>" in html
    assert "calls add" in report._repr_html_()


def test_a_comparison_shows_who_is_better_and_how_that_was_found(report, tmp_path):
    themis.evaluate(ROWS, model="fake/perfect", prompt="{question}", run_id="other", storage=tmp_path, progress=False)
    html = compare_runs(["hostile & co", "other"], storage_path=tmp_path)._repr_html_()

    assert "-1.0000" in html
    assert "other (1.0000), better beyond chance" in html
    assert_harmless(html)


def assert_harmless(html: str) -> None:
    found = set(Elements(html).found)
    assert not found & {"script", "img", "iframe", "link", "style-sheet", "onerror", "onclick", "href", "src"}
    assert found & {"pre", "table"}
    assert "sk-very-secret" not in html
    assert "\u202e" not in html


def test_a_sample_without_an_answer_says_why():
    task = GenerationTask(PromptRender(PromptSpec("p", "{q}"), "2 + 2?"), ModelSpec("x", "some"), SamplingConfig())

    html = GenerationRecord(task, None, ModelError("out of order", kind="broken"))._repr_html_()

    assert "No answer" in html
    assert "broken: out of order" in html


# --- a real kernel ------------------------------------------------------------------------------------------------------


class Watching(NotebookClient):
    """Keeps every state that a cell's output went through."""

    def __init__(self, *arguments, **settings):
        super().__init__(*arguments, **settings)
        self.states: list[str] = []

    def process_message(self, msg, cell, cell_index):
        if msg["msg_type"] in ("display_data", "update_display_data"):
            self.states.append(msg["content"]["data"]["text/html"])
        return super().process_message(msg, cell, cell_index)


@pytest.fixture
def run_cells(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(PROJECT))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))

    def run(*cells: str) -> tuple[list[str], list[list[nbformat.NotebookNode]]]:
        notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
        client = Watching(notebook, timeout=240, kernel_name="python3")
        client.execute()
        return client.states, [cell.outputs for cell in notebook.cells]

    return run


EVALUATE = """
import themis
rows = [{"id": str(n), "question": f"{n}?", "answer": str(n)} for n in range(60)]
report = themis.evaluate(rows, model="fake/noisy-0.2?ms=40", prompt="{question}", run_id="live", workers=2)
report
"""


def test_a_run_is_drawn_in_its_cell_while_it_goes_on_and_its_report_is_shown_below(run_cells):
    states, [outputs, sample] = run_cells(EVALUATE, "report.generation_results[0]")

    done = [int(re.search(r'<progress value="(\d+)" max="60"', state)[1]) for state in states]
    assert done[0] == 0
    assert done[-1] == 60
    assert any(0 < count < 60 for count in done)
    assert done == sorted(done)
    # One output is replaced; it does not become many.
    assert [output.output_type for output in outputs] == ["display_data", "execute_result"]
    assert "60/60" in outputs[0].data["text/html"]
    assert "completed" in outputs[0].data["text/html"]
    assert "<table" in outputs[1].data["text/html"]
    assert "Prompt" in sample[0].data["text/html"]


def test_no_progress_is_none_in_a_notebook_too(run_cells):
    states, [outputs] = run_cells(EVALUATE.replace('"live"', '"quiet", progress=False'))

    assert states == []
    assert [output.output_type for output in outputs] == ["execute_result"]


def test_whoever_has_no_notebook_is_not_made_to_load_one(tmp_path):
    program = "import sys, themis; themis.evaluate('demo', model='fake/perfect', storage='s'); sys.exit('IPython' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(PROJECT)})

    assert done.returncode == 0


def test_a_word_without_end_does_not_push_the_scores_out_of_a_reports_table(tmp_path):
    rows = [{"id": "q", "question": "m" * 5_000, "answer": "4"}]
    shown = themis.evaluate(
        rows, model="fake/perfect", prompt="{question}", storage=tmp_path, progress=False
    )._repr_html_()

    [cell] = re.findall(r'<td style="([^"]*)">m+…</td>', shown)
    assert "overflow-wrap:anywhere" in cell
