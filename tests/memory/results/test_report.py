"""Reports: pages, figures and tables of memory runs."""

from __future__ import annotations

import html
import json
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner
from fastapi.testclient import TestClient

from themis.cli import themis
from themis.core.markup import escape_markdown
from themis.exceptions import ConfigurationError
from themis.memory.report import read_view
from themis.memory.report.charts import SpanPoint, SpanSeries, draw_gantt, draw_spans, write_figures
from themis.memory.report.pages import agents_figures, agents_page, latex_table, markdown_table, run_figures, run_page
from themis.memory.timeline import Segment, Timeline, TimelineTest
from themis.server import create_app
from themis.storage import ExperimentStorage

RUNS = ("small - oracle", "small - window", "small - amnesiac")


class Tags(HTMLParser):
    """Which elements a page has, and where they lead."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.addresses: list[str] = []
        self.ids: set[str] = set()
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)
        for name, value in attrs:
            if name in ("src", "href", "action", "xlink:href"):
                self.addresses.append(value or "")
            if name.startswith("on"):
                self.names.add(name)
            if name == "id":
                self.ids.add(value or "")


def test_the_page_of_a_run_needs_nothing_else_and_obeys_no_reply(finished: ExperimentStorage) -> None:
    page = run_page(read_view(finished, "small - hostile"))
    tags = Tags(page)

    assert not tags.names & {"script", "img", "iframe", "object", "link", "onerror", "onload"}
    assert all(address.startswith("#") for address in tags.addresses)
    assert {address[1:] for address in tags.addresses} <= tags.ids
    assert "default-src 'none'" in page
    assert "&lt;script&gt;alert" in page, "the reply is there to be read"
    assert "\x1b" not in page
    assert "\u202e" not in page


def test_the_comparative_page_obeys_no_reply_either(finished: ExperimentStorage) -> None:
    page = agents_page([read_view(finished, run_id) for run_id in ("small - oracle", "small - hostile")])

    assert not Tags(page).names & {"script", "img", "iframe", "onerror"}
    assert "&lt;script&gt;alert" in page


def test_the_page_shows_every_test_with_questions_answers_and_reasons(finished: ExperimentStorage) -> None:
    view = read_view(finished, "small - oracle")
    page = run_page(view)

    assert "5.00 of 5" in page
    for result in view.results:
        assert result.test_id in page
    assert "colour" in page
    assert "its needles lie back" in page


def test_the_gantt_has_a_row_a_test_along_tokens_and_along_time(finished: ExperimentStorage) -> None:
    view = read_view(finished, "small - oracle")
    for figure in ("conversation", "conversation-time"):
        picture = ElementTree.fromstring(str(run_figures(view)[figure]))
        named = [text for text in picture.iter("{http://www.w3.org/2000/svg}text") if text.get("class") == "name"]
        assert sorted(text.text or "" for text in named) == sorted(result.test_id for result in view.results)


def test_the_gantt_of_a_long_run_is_a_small_picture() -> None:
    start = datetime(2030, 1, 1, tzinfo=UTC)

    def moment(tokens: int) -> datetime:
        return start + timedelta(seconds=tokens)

    fillers = [
        Segment("fill", (n * 500, n * 500 + 490), (moment(n * 500), moment(n * 500 + 490))) for n in range(1_000)
    ]
    tests = []
    for number in range(100):
        first = number * 4_000
        said = [
            Segment("say", (first + 900 * n, first + 900 * n + 20), (moment(first), moment(first))) for n in range(5)
        ]
        tests.append(
            TimelineTest(f"Test - {number}", (first, moment(first)), (first + 5_000, moment(first + 5_000)), said)
        )
    line = Timeline(tests=tests, fillers=fillers, tokens=500_000, start=start, end=moment(500_000))

    picture = str(draw_gantt(line))

    # A browser draws some thousand shapes at once; adjacent filler is one of them.
    assert picture.count("<rect") < 700
    assert len(picture) < 200_000


def test_figures_are_files_of_their_own(finished: ExperimentStorage, tmp_path: Path) -> None:
    views = [read_view(finished, run_id) for run_id in RUNS]
    written = write_figures(run_figures(views[0]) | agents_figures(views), tmp_path)

    assert {path.name for path in written} >= {"conversation.svg", "distances.svg", "datasets.svg", "radar.svg"}
    for path in written:
        assert ElementTree.fromstring(path.read_text()).tag.endswith("svg")


def test_the_curve_of_a_sweep_has_an_interval_for_each_point_and_agents_stand_side_by_side() -> None:
    points = [SpanPoint(2_000, 0.9, 0.8, 1.0, 3), SpanPoint(8_000, 0.2, 0.1, 0.4, 3)]
    picture = str(draw_spans([SpanSeries("one", points), SpanSeries("<two>", points)]))

    assert picture.count('class="whisker"') == 4
    assert len(set(re.findall('class="dot" cx="([^"]+)"', picture))) == 4
    assert "&lt;two&gt; at 8,000 tokens: 0.200" in picture


def test_no_line_of_a_time_jump_runs_through_the_name_of_a_test(finished: ExperimentStorage) -> None:
    picture = str(draw_gantt(read_view(finished, "small - oracle").timeline))

    assert picture.count('class="jump"') > 0
    names = [float(y) for y in re.findall('<text class="name" x="0" y="([^"]+)"', picture)]
    covers = [
        (float(y), float(y) + float(h))
        for y, h in re.findall('class="behind" [^>]*y="([^"]+)" height="([^"]+)"', picture)
    ]
    assert len(names) == 10
    assert all(top <= y - 9 and y <= bottom for y, (top, bottom) in zip(names, covers, strict=True))
    assert picture.index('class="jump"') < picture.index('class="behind"')


@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_page_prints_on_a_few_sheets_in_its_colours_whatever_the_screen_shows(
    finished: ExperimentStorage, tmp_path: Path, browser: Any, scheme: str
) -> None:
    views = [read_view(finished, f"small - {agent}") for agent in ("oracle", "amnesiac", "window")]
    pages = {"run": run_page(views[1]), "agents": agents_page(views)}
    for name, content in pages.items():
        (tmp_path / f"{name}.html").write_text(content)
        context = browser.new_context(color_scheme=scheme)
        page = context.new_page()
        page.goto((tmp_path / f"{name}.html").as_uri())
        sheets = len(re.findall(rb"/Type\s*/Page\b", page.pdf(format="A4")))
        page.emulate_media(media="print")

        assert sheets <= 3, name
        assert page.evaluate("getComputedStyle(document.querySelector('svg')).printColorAdjust") == "exact"
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        assert page.locator("details").first.locator("dl, .said").first.is_hidden()
        context.close()


def test_the_comparative_page_says_who_is_better(finished: ExperimentStorage) -> None:
    page = agents_page([read_view(finished, run_id) for run_id in RUNS])

    assert "oracle is better than amnesiac" in page
    assert re.search(r"\d+ of 10 tests differ", page)


def test_tables_keep_names_as_text(finished: ExperimentStorage) -> None:
    views = [read_view(finished, run_id) for run_id in RUNS]
    markdown, latex = markdown_table(views), latex_table(views)

    assert "| oracle | 5.00 of 5 |" in markdown
    assert "window\\(300\\)" in markdown
    assert latex.count("\\\\") == 2 + len(views[0].summary.datasets)


def test_the_command_prints_writes_and_refuses(finished: ExperimentStorage, tmp_path: Path) -> None:
    def call(*arguments: str) -> str:
        outcome = CliRunner().invoke(
            themis, ["memory", "report", *arguments, "--storage", str(finished.root)], catch_exceptions=False
        )
        assert outcome.exit_code == 0, outcome.output
        return outcome.stdout

    assert "Shopping" in call("small - oracle")
    assert json.loads(call("small - oracle", "--json"))[0]["score"] == 5.0
    call(*RUNS, "--to", str(tmp_path / "page.html"), "--figures", str(tmp_path / "figures"))
    assert (tmp_path / "page.html").read_text().startswith("<!doctype html>")
    assert (tmp_path / "figures" / "radar.svg").exists()
    with pytest.raises(ConfigurationError, match="--to writes"):
        call("small - oracle", "--to", str(tmp_path / "page.pdf"))
    with pytest.raises(ConfigurationError, match="given twice"):
        call("small - oracle", "small - oracle")


@pytest.mark.parametrize("run_id", RUNS)
def test_every_surface_says_the_same_of_the_effective_span(finished: ExperimentStorage, run_id: str) -> None:
    view = read_view(finished, run_id)
    assert view.summary.effective_span is not None
    sentence = view.summary.effective_span.sentence
    report = ["memory", "report", run_id, "--storage", str(finished.location)]
    printed = CliRunner().invoke(themis, report, catch_exceptions=False).stdout
    (as_json,) = json.loads(CliRunner().invoke(themis, [*report, "--json"], catch_exceptions=False).stdout)
    with TestClient(create_app(finished.location), base_url="http://127.0.0.1") as client:
        served = client.get(f"/runs/{run_id}").text

    assert f": {sentence}\n" in printed
    assert as_json["effective_span"]["sentence"] == sentence
    assert escape_markdown(sentence) in markdown_table([view])
    for page in (run_page(view), agents_page([view, replace(view, name="other")]), served):
        assert sentence in html.unescape(page)
