"""The page of one run: what it costs the store, and how to go on with a run that somebody left."""

from __future__ import annotations

import sqlalchemy as sa

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
