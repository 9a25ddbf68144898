"""The page of a memory run: its tests on the conversation, and the chat, while it goes on and afterwards."""

from __future__ import annotations

import re

from fastapi.testclient import TestClient
from scored_runs import Number, scored_run

from themis.core.codec import encode
from themis.server import create_app
from themis.server.memory_views import chat_view, gantt_view
from themis.storage import ExperimentStorage
from themis.storage.runs import Turn


def exchange(number: int, test_id: str, kind: str = "say") -> list[Turn]:
    """A message and its reply, ten tokens together."""
    reply = {"turn": number, "reply": f"reply {number}", "tokens": 10, "tokens_total": 10 * (number + 1)}
    return [
        Turn(2 * number, kind, test_id, encode({"turn": number, "message": f"message {number}"})),
        Turn(2 * number + 1, "reply", test_id, encode(reply)),
    ]


def test_a_test_under_way_is_drawn_from_its_beginning_to_now(tmp_path):
    store = ExperimentStorage(tmp_path)
    store.start_run("talk", kind="memory")
    with store.open_run("talk") as writer:
        writer.append_turns(exchange(0, "Names - 0"))
        writer.append_turns([Turn(50, "begin", "Colours - 0", encode({"tokens_total": 10}))])
        writer.append_turns(exchange(30, "Colours - 0"))
        writer.append_turns(exchange(31, "Colours - 0", "ask"))

    view = gantt_view(store.reader("talk"))

    [row] = view.rows
    assert (row.span.dataset, row.span.state, row.span.began) == ("Colours", "open", 10)
    assert (list(row.span.says), list(row.span.asks)) == ([300], [310])
    assert (view.tokens, view.turns) == (320, 31)


def test_a_run_under_way_shows_the_end_of_its_conversation_and_an_ended_one_the_beginning(tmp_path):
    store = ExperimentStorage(tmp_path)
    store.start_run("talk", kind="memory")
    with store.open_run("talk") as writer:
        for number in range(150):
            writer.append_turns(exchange(number, "Names - 0"))

    live = chat_view(store.reader("talk"))
    store.complete_run("talk")
    ended = chat_view(store.reader("talk"))
    rest = chat_view(store.reader("talk"), after=ended.next_after)

    assert [entry["turn"] for entry in live.entries] == list(range(50, 150))
    assert (live.after, live.next_after) == (99, None)
    assert [entry["turn"] for entry in ended.entries + rest.entries] == list(range(150))
    assert (ended.after, rest.next_after) == (None, None)


def test_a_page_of_the_conversation_never_parts_a_message_from_its_reply(tmp_path):
    store = ExperimentStorage(tmp_path)
    store.start_run("talk", kind="memory")
    with store.open_run("talk") as writer:
        writer.append_turns([Turn(0, "begin", "Names - 0", encode({}))])
        for number in range(1, 150):
            writer.append_turns(exchange(number, "Names - 0"))

    reader = store.reader("talk")
    first = chat_view(reader, after=-1)
    rest = chat_view(reader, after=first.next_after)
    live = chat_view(reader)

    for view in (first, rest, live):
        assert all(entry["reply"] for entry in view.entries if entry["kind"] == "say")
        assert not [entry for entry in view.entries if entry["kind"] == "reply"]


def test_runs_are_compared_on_the_score_of_the_whole_conversation_first(tmp_path):
    for run_id in ("one", "other"):
        scored_run(tmp_path, run_id, [0, 1, 1], metrics=[Number("Colours"), Number("memory")])

    with TestClient(create_app(tmp_path), base_url="http://127.0.0.1") as client:
        page = client.get("/compare", params={"run": ["one", "other"]}).text

    assert re.findall(r"<h2[^>]*>([^<]*)<", page) == ["memory", "Colours"]
