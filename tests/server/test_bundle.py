"""`themis serve --bundle`: pages that need no server."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from themis.cli.serving import serve
from themis.exceptions import ConfigurationError, StorageError
from themis.server.bundle import write_bundle


def test_every_link_of_a_copy_leads_to_a_file_in_it(two_runs, tmp_path):
    written = write_bundle(two_runs, tmp_path / "copy")

    assert (written.runs, written.samples) == (3, 90)
    for page in (tmp_path / "copy").glob("*.html"):
        for link in re.findall(r'(?:href|src)="([^"#]+)', page.read_text(encoding="utf-8")):
            assert (tmp_path / "copy" / link).is_file(), (page.name, link)


def test_only_the_chosen_runs_are_copied(two_runs, tmp_path):
    result = CliRunner().invoke(
        serve,
        ["--storage", str(two_runs), "--bundle", str(tmp_path / "copy"), "--run", "perfect"],
        catch_exceptions=False,
    )

    assert result.exit_code == 0
    assert result.stdout == ""
    assert "wrote 1 runs with 10 samples" in result.stderr
    text = (tmp_path / "copy" / "index.html").read_text(encoding="utf-8")
    assert "perfect" in text
    assert "baseline" not in text


def test_a_copy_replaces_an_earlier_copy_but_no_other_files(two_runs, tmp_path):
    write_bundle(two_runs, tmp_path / "copy", ["perfect"])
    assert write_bundle(two_runs, tmp_path / "copy", ["perfect"]).runs == 1
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "index.html").write_text("my own page")

    with pytest.raises(ConfigurationError, match="not a copy of runs"):
        write_bundle(two_runs, tmp_path / "mine")
    assert (tmp_path / "mine" / "index.html").read_text() == "my own page"
    with pytest.raises(StorageError, match="did you mean 'perfect'"):
        write_bundle(two_runs, tmp_path / "copy", ["perfekt"])


def test_a_run_that_is_left_out_of_a_new_copy_is_gone_from_it(two_runs, tmp_path):
    write_bundle(two_runs, tmp_path, ["perfect", "baseline"])
    write_bundle(two_runs, tmp_path, ["perfect"])

    assert not [page for page in tmp_path.glob("*.html") if "baseline" in page.read_text(encoding="utf-8")]
    assert len(list(tmp_path.glob("sample-*.html"))) == 10


@pytest.mark.browser
def test_a_copy_is_read_from_the_disk_without_complaints(two_runs, tmp_path):
    from conftest import chromium
    from playwright.sync_api import sync_playwright

    write_bundle(two_runs, tmp_path)
    complaints: list[str] = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page()
        page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(Path(tmp_path / "index.html").as_uri())
        page.get_by_role("link", name="baseline").click()
        page.get_by_role("link", name="q7", exact=True).first.click()
        assert page.locator("h1").inner_text() == "q7"
        browser.close()
    assert complaints == []
