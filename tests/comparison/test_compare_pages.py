"""A comparison as a page, a Markdown table or a LaTeX table: complete, escaped, and nothing drawn outside the plot."""

import re
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scored_runs import Number, scored_run

from themis.comparison import ComparisonEngine
from themis.comparison.latex import latex_table
from themis.comparison.pages import comparison_page, forest_plot
from themis.comparison.reports import ComparisonResult, markdown_table

HOSTILE = '<script>alert("x")</script>|_100%_'


@pytest.fixture
def report(tmp_path):
    metrics = [Number(HOSTILE)]
    scored_run(tmp_path, "base_line", [0, 0, 0, 1, 0, 1, 0, 0, 1, 0] * 2, metrics=metrics)
    scored_run(tmp_path, "candidate", [1, 1, 0, 1, 1, 1, 1, 1, 1, 1] * 2, metrics=metrics)
    scored_run(tmp_path, "third & last", [1, 0, 1, 0, 1, 0, 1, 0, 1, 0] * 2, metrics=metrics)
    engine = ComparisonEngine(storage_path=tmp_path, statistical_test="auto")
    return engine.compare_runs(["base_line", "candidate", "third & last"])


class Elements(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.found = []
        self.open = []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.found.append((tag, dict(attributes)))
        if tag not in ("meta", "line", "circle"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.found.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_a_page_holds_a_forest_plot_and_every_pair(report):
    page = comparison_page(report)
    elements = Elements(page)

    assert elements.open == []
    tags = [tag for tag, _ in elements.found]
    assert (tags.count("svg"), tags.count("circle")) == (1, 3)
    assert len([1 for tag, a in elements.found if tag == "line" and a.get("class") == "range"]) == 3
    assert page.count("third &amp; last") > 3
    assert 'name="viewport"' in page
    assert "prefers-color-scheme: dark" in page


def test_a_page_runs_and_loads_nothing(report):
    page = comparison_page(report)

    assert "<script" not in page
    assert not re.search(r"\b(src|href|on\w+)\s*=", page)
    assert not re.search(r"https?:|url\(|@import", page)
    assert "&lt;script&gt;" in page


def test_a_markdown_table_cannot_be_broken_by_a_name(report):
    table = markdown_table(report)

    rows = [line for line in table.splitlines() if line.startswith("| ")]
    assert len(rows) == 1 + 3
    assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows} == {11}
    assert "<script" not in table.replace("\\<", "")


def test_a_latex_table_escapes_what_latex_would_read(report):
    table = latex_table(report)

    assert table.count(r"\\") == 1 + 3
    assert r"base\_line" in table
    assert r"third \& last" in table
    assert r"\textbf{0.9000}" in table
    cells = [re.findall(r"(?<!\\)&", line) for line in table.splitlines() if line.endswith(r"\\")]
    assert {len(found) for found in cells} == {8}


numbers = st.floats(-1e6, 1e6)


@given(st.lists(st.tuples(numbers, numbers, numbers), min_size=1, max_size=8))
def test_a_plot_never_draws_outside_itself(rows):
    results = [
        ComparisonResult("m", "a", "b", 0, 0, delta, 0, "tie", interval=(min(ends), max(ends))) for delta, *ends in rows
    ]

    plot = forest_plot(results)

    for row in plot.rows:
        assert all(0 <= place <= 100 for place in (row.point, row.low, row.high))
        assert row.low <= row.high
    assert 0 <= plot.zero <= 100
    assert all(0 <= tick.x <= 100 for tick in plot.ticks)
    assert "0" in [tick.text for tick in plot.ticks]
    assert len(plot.ticks) <= 7


def test_a_plot_of_equal_runs_has_zero_in_the_middle():
    plot = forest_plot([ComparisonResult("m", "a", "b", 1, 1, 0.0, 0, "tie")])

    assert (plot.zero, plot.rows[0].point, plot.rows[0].low) == (50, 50, None)


def test_long_run_ids_keep_the_end_that_tells_them_apart():
    one, other = "countdown-part8-with-a-long-prefix-r1", "countdown-part8-with-a-long-prefix-r2"
    (row,) = forest_plot([ComparisonResult("m", one, other, 1, 1, 0.0, 0, "tie")]).rows

    first, second = row.label.split(" − ")
    assert (first[-2:], second[-2:]) == ("r1", "r2")
    assert len(first) == len(second) == 21
    assert one in row.title
