"""The demo's memory part: where a window ends, as numbers, as a picture, and as a page."""

from __future__ import annotations

import re
from pathlib import Path

from click.testing import CliRunner

from themis.cli.demo import demo
from themis.storage import ExperimentStorage


def test_the_demo_shows_where_a_window_ends_and_names_its_pages(tmp_path: Path) -> None:
    storage = tmp_path / "store"
    shown = CliRunner().invoke(demo, ["--model", "fake/noisy-0.4", "-n", "2", "--storage", str(storage)])

    assert shown.exit_code == 0, shown.output
    scores = {
        int(line[0].replace(",", "")): tuple(map(float, line[1:]))
        for line in re.findall(
            r"^ *(\d,\d{3}) +(\d\.\d\d) \S+ +(\d\.\d\d) \S+ +(\d\.\d\d) ", shown.stdout, re.MULTILINE
        )
    }
    assert {span: row[0] for span, row in scores.items()} == dict.fromkeys((1_000, 2_000, 4_000, 8_000), 1.0)
    assert (scores[1_000][1], scores[8_000][1]) == (1.0, 0.0)
    assert {row[2] for row in scores.values()} == {0.0}
    pages = [Path(line.strip()) for line in shown.stdout.splitlines() if line.endswith(".html")]
    assert [page.name for page in pages] == ["demo-report.html", "demo-memory.html"]
    assert "Score against span" in pages[1].read_text()
    assert len(ExperimentStorage(storage).list_runs(kind="memory")) == 36
