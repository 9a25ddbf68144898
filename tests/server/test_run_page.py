"""The page of one run: what it costs the store, and how to go on with a run that somebody left."""

from __future__ import annotations

import sqlalchemy as sa
from fastapi.testclient import TestClient

import themis
from themis.server import create_app
from themis.storage import ExperimentStorage


def test_the_page_of_a_run_reads_its_row_once(client):
    asked: list[str] = []

    @sa.event.listens_for(sa.Engine, "before_cursor_execute")
    def note(connection, cursor, statement, *rest):
        asked.append(statement)

    try:
        assert client.get("/runs/baseline").status_code == 200
    finally:
        sa.event.remove(sa.Engine, "before_cursor_execute", note)

    assert sum("FROM runs" in statement for statement in asked) == 1


def test_a_run_that_was_left_says_how_to_go_on_with_its_store(client, two_runs):
    store = ExperimentStorage(two_runs)
    store.start_run("left")
    try:
        page = client.get("/runs/left").text
    finally:
        store.delete_run("left")

    assert "Nobody is writing this run. Go on with: themis resume left --storage" in page
    assert str(two_runs) in page


def test_the_list_of_samples_says_what_it_cuts_and_where_nothing_was_said(tmp_path):
    said = {"long": "m" * 1_000, "blank": " \n\t", "just": "j" * 280}
    rows = [{"id": name, "question": f"Say {name}", "answer": "4"} for name in said]
    themis.evaluate(
        rows,
        model=lambda row: said[row["id"]],
        prompt="{question}",
        run_id="r",
        storage=tmp_path,
        progress=False,
    )
    with TestClient(create_app(tmp_path), base_url="http://127.0.0.1") as client:
        page = client.get("/runs/r").text

    assert f"{'m' * 280}…" in page
    assert f"{'j' * 280}</td>" in page
    assert '<span class="soft">no text</span>' in page


def test_counts_and_times_are_not_coloured_as_if_more_were_good(tmp_path):
    rows = [{"id": "q", "question": "4", "answer": "4"}]
    themis.evaluate(
        rows,
        model="fake/perfect",
        prompt="{question}",
        metrics=["exact_match", "steps"],
        run_id="r",
        storage=tmp_path,
        progress=False,
    )
    with TestClient(create_app(tmp_path), base_url="http://127.0.0.1") as client:
        line, page = client.get("/runs/r").text, client.get("/runs/r/sample?item=q").text

    assert '<span class="verdict good" title="ExactMatch: scored">' in line
    assert '<span class="verdict " title="steps: scored">' in line
    assert page.count('<div class="card scored good">') == 1
    assert page.count('<div class="card scored ">') == 1
