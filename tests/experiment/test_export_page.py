"""The page in a real browser: it finds samples quickly, follows the keyboard, and stays inert whatever a model said."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

import themis
from tests.spoken_runs import write_spoken_runs
from themis.core.entities import ExperimentReport
from themis.experiment import export
from themis.runs.report import build_report
from themis.storage import ExperimentStorage

pytestmark = pytest.mark.browser

HOSTILE = [
    "</script><script>alert(1)</script>",
    "<!--<script>",
    "<img src=x onerror=alert(1)>",
    "<svg/onload=alert(1)>",
    '"><iframe src="javascript:alert(1)"></iframe>',
    "[link](javascript:alert(1))",
    "<a href='javascript:alert(1)'>x</a>",
    "{{ 7 * 7 }} {% raw %} ${7*7} <!--samples--> <!--left-out-->",
    "\u202egnp.exe \u2066hidden\u2069 \u200f",
    "\x1b[31mred\x1b[0m \x1b]0;title\x07 \x00 \x9b",
    "<style>*{display:none}</style><link rel=stylesheet href=http://127.0.0.1:9/x.css>",
    "<meta http-equiv=refresh content='0;url=http://127.0.0.1:9/'>",
    "\u2028\u2029 half a pair \ud83d",
    "=cmd|'/c calc'!A1",
    "M" * 1_000_000,
]


class Visit:
    """An open page, and everything it did that a page should not do."""

    def __init__(self, browser: Any, path: Path, **context: Any) -> None:
        self.deeds: list[str] = []
        self.context = browser.new_context(**context)
        self.page = self.context.new_page()
        self.page.on("dialog", lambda dialog: (self.deeds.append(f"dialog {dialog.message}"), dialog.dismiss()))
        self.page.on("console", lambda message: self.deeds.append(f"console {message.text}"))
        self.page.on("pageerror", lambda error: self.deeds.append(f"error {error}"))
        self.page.on("request", lambda request: self._requested(request.url))
        self.page.goto(path.as_uri())

    def _requested(self, url: str) -> None:
        if not url.startswith("file://"):
            self.deeds.append(f"request {url}")

    def search(self, words: str) -> None:
        before = self.page.inner_text("#found")
        self.page.fill("#search", words)
        expect(self.page.locator("#found")).not_to_have_text(before)

    def rows(self) -> list[str]:
        return [row.inner_text() for row in self.page.query_selector_all(".sample")]


@pytest.fixture
def visit(browser: Any, tmp_path: Path) -> Iterator[Callable[..., Visit]]:
    visits: list[Visit] = []

    def go(report: ExperimentReport, **context: Any) -> Visit:
        path = export.export_html(report, tmp_path / "page.html")
        visits.append(Visit(browser, path, **context))
        return visits[-1]

    yield go
    for made in visits:
        made.context.close()


def evaluate(rows: list[dict[str, Any]], tmp_path: Path, **arguments: Any) -> ExperimentReport:
    given = {"model": "fake/noisy-0.3", "prompt": "{question}", "metrics": ["exact_match"], **arguments}
    return themis.evaluate(rows, storage=tmp_path / "store", run_id="page", progress=False, **given)


@pytest.fixture(scope="module")
def thousand(tmp_path_factory: pytest.TempPathFactory) -> ExperimentReport:
    rows = [{"id": f"item-{n:04d}", "question": f"Question {n} of {n % 7}", "answer": f"a{n}"} for n in range(1_000)]
    return evaluate(rows, tmp_path_factory.mktemp("thousand"))


def test_only_the_rows_in_sight_exist_and_search_finds_the_rest(thousand, visit):
    seen = visit(thousand)
    assert 5 < len(seen.rows()) < 60
    assert seen.page.inner_text("#found") == "1,000 of 1,000 samples"

    seen.search("QUESTION 987")
    assert seen.page.inner_text("#found") == "1 of 1,000 samples"
    assert seen.rows()[0].startswith("item-0987")
    assert "Question 987 of 0" in seen.page.inner_text("#detail")

    seen.search("nothing says this")
    assert seen.page.inner_text("#detail") == "No sample fits."
    assert seen.deeds == []


def test_samples_can_be_narrowed_to_those_below_one_and_put_in_order(thousand, visit):
    seen = visit(thousand)
    wrong = sum(record.scores[0].value < 1 for record in thousand.evaluation_report.records)
    seen.page.select_option("#show", label="ExactMatch below 1")
    assert seen.page.inner_text("#found") == f"{wrong} of 1,000 samples"
    seen.page.select_option("#show", label="all")
    seen.page.select_option("#order", label="ExactMatch, highest first")
    assert all("\n1" in row for row in seen.rows())


def test_the_keyboard_alone_is_enough(thousand, visit):
    seen = visit(thousand)

    def chosen() -> str:
        return seen.page.inner_text(".sample[aria-selected=true]").split("\n")[0]

    seen.page.keyboard.press("/")
    seen.page.keyboard.type("item-05")
    expect(seen.page.locator("#found")).to_contain_text("100 of")
    seen.page.keyboard.press("ArrowDown")
    assert chosen() == "item-0500"
    for key, expected in [("ArrowDown", "0501"), ("j", "0502"), ("k", "0501"), ("End", "0599"), ("Home", "0500")]:
        seen.page.keyboard.press(key)
        assert chosen() == f"item-{expected}"
    seen.page.keyboard.press("Enter")
    assert seen.page.evaluate("document.activeElement.id") == "detail"
    seen.page.keyboard.press("Escape")
    assert seen.page.evaluate("document.activeElement.id") == "list"


def test_a_hostile_run_renders_inert(tmp_path, visit):
    rows = [
        {"id": f"h{n} {text[:40]}" if text.isprintable() else f"h{n}", "question": f"q{n}", "answer": text, "row": text}
        for n, text in enumerate(HOSTILE)
    ]
    report = evaluate(rows, tmp_path, model="fake/perfect", prompt="{question} {row}")
    report.metadata["run_id"] = report.metadata["model"] = "</title><script>alert(2)</script>"
    seen = visit(report)
    for _ in HOSTILE:
        seen.page.keyboard.press("Tab")
        seen.page.focus("#list")
        seen.page.keyboard.press("ArrowDown")
        seen.page.wait_for_timeout(10)

    assert seen.deeds == []
    assert (
        seen.page.evaluate("document.querySelectorAll('iframe, img, a[href], meta[http-equiv=refresh], link').length")
        == 0
    )
    assert seen.page.evaluate("document.querySelectorAll('script').length") == 4
    assert seen.page.inner_text("#found") == f"{len(HOSTILE)} of {len(HOSTILE)} samples"
    text = seen.page.evaluate("document.body.innerText")
    assert not re.search("[\u202a-\u202e\u2066-\u2069\x1b\x00]", text)
    assert (tmp_path / "page.html").stat().st_size < 2_000_000


def test_a_script_that_got_into_the_page_would_not_run(thousand, visit, tmp_path, browser):
    path = export.export_html(thousand, tmp_path / "clean.html")
    path.write_text(path.read_text().replace("<main>", "<main><script>document.title = 'taken'</script>", 1))
    seen = Visit(browser, path)
    assert seen.page.title() != "taken"
    assert any("Content Security Policy" in deed for deed in seen.deeds)
    seen.context.close()


@pytest.mark.parametrize("width", [360, 800, 1400])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_sticks_out_at_any_width(thousand, visit, width, scheme):
    seen = visit(thousand, viewport={"width": width, "height": 800}, color_scheme=scheme)
    assert seen.page.evaluate("document.documentElement.scrollWidth") <= width
    ground = seen.page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (ground == "rgb(255, 255, 255)") == (scheme == "light")


def test_without_scripts_the_first_samples_are_a_plain_table(thousand, visit):
    seen = visit(thousand, java_script_enabled=False)
    assert seen.page.locator("#plain tbody tr").count() == 100
    assert "The first 100 of 1,000 samples." in seen.page.inner_text("#plain")
    assert not seen.page.is_visible("#browser")


def test_failures_costs_and_attempts_are_shown(tmp_path, visit):
    rows = [{"id": f"q{n}", "question": f"q{n}", "answer": "a"} for n in range(20)]
    report = evaluate(rows, tmp_path, model="fake/flaky-0.5", max_retries=1, num_samples=2)
    report.metadata["cost"] = {**report.metadata["cost"], "total_cost": 0.25, "per_model_costs": {"m": 0.25}}
    seen = visit(report)
    assert len(report.failures) > 0
    assert "0.250000" in seen.page.inner_text("[aria-labelledby=h-cost]")
    # The reasons differ only in the samples' names, so they are one.
    assert seen.page.locator("[aria-labelledby=h-failures] tbody tr").count() == 1
    assert re.search(r"\d+ samples? ha", seen.page.inner_text("[aria-labelledby=h-failures]"))
    seen.page.select_option("#show", label="failed")
    assert seen.page.inner_text("#found").startswith(f"{len(report.failures)} of 20")


def test_a_page_too_large_for_a_browser_says_what_is_missing(thousand, tmp_path, monkeypatch, browser):
    from themis.experiment.export import as_html

    monkeypatch.setattr(as_html, "_MOST_BYTES", 20_000)
    seen = Visit(browser, export.export_html(thousand, tmp_path / "part.html"))
    note = seen.page.inner_text("#partial")
    held = int(re.search(r"first ([\d,]+) of 1,000 samples", note)[1].replace(",", ""))
    assert 10 < held < 1_000
    assert seen.page.inner_text("#found") == f"{held} of {held} samples"
    block = re.search(r'id="samples">(.*?)</script>', (tmp_path / "part.html").read_text(), re.DOTALL)[1]
    assert len(json.loads(block)) == held
    seen.context.close()


def test_a_conversation_is_shown_with_calls_results_images_and_folded_reasoning(visit, tmp_path):
    write_spoken_runs(tmp_path / "spoken")
    seen = visit(build_report(ExperimentStorage(tmp_path / "spoken"), "said"))
    seen.search("LookupError")
    shown = " ".join(seen.page.inner_text("#detail").split())

    assert "system Be <brief>. user Say it: steps" in shown
    assert 'calls weather {"city": "Paris"} returned 21 degrees' in shown
    assert 'calls weather {"city": "Atlantis"} failed LookupError: no such city' in shown
    assert "answer stopped by max_turns" in shown
    assert "Both cities." not in shown
    seen.page.click("#detail summary")
    assert "Both cities." in seen.page.inner_text("#detail")
    drawn = "() => [...document.querySelectorAll('#detail img')].map((image) => image.naturalWidth)"
    seen.page.locator("#detail img").scroll_into_view_if_needed()
    expect(seen.page.locator("#detail img")).to_have_js_property("complete", True)
    assert seen.page.evaluate(drawn) == [80]
    assert seen.deeds == []


def test_each_attempt_is_shown_with_its_verdict(visit, tmp_path):
    write_spoken_runs(tmp_path / "spoken")
    shown = visit(build_report(ExperimentStorage(tmp_path / "spoken"), "four")).page.inner_text("#detail")

    assert "answer 1 ExactMatch 1" in shown
    assert "answer 2\nfailed: " in shown
    assert "answer 3 ExactMatch 0" in shown


def test_counts_are_not_coloured_blank_answers_are_named_and_references_are_json(visit, tmp_path):
    rows = [{"id": "q", "question": "Say nothing", "answer": {"a": [1, None]}}]
    report = evaluate(rows, tmp_path, model=lambda prompt: " \n", metrics=["exact_match", "steps"])
    page = visit(report).page

    assert page.locator("#detail dd.good").count() == 0
    assert page.locator("#detail dd.bad").count() == 1
    assert page.locator("#list .said").inner_text() == "no text"
    assert '{"a": [1, null]}' in page.locator("#plain").text_content()
