"""What was said in a sample is shown as what it is: messages, images, tool calls, reasoning, each attempt with its verdict."""

from __future__ import annotations

import hashlib
import html
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

import themis
from tests.spoken_runs import PLOT, PNG, STEPS, SVG, Speaker, write_spoken_runs
from themis.core.entities import Step
from themis.server import create_app
from themis.server.bundle import write_bundle
from themis.storage import ExperimentStorage

HERE = "http://127.0.0.1"


@pytest.fixture(scope="module")
def spoken(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("spoken")
    write_spoken_runs(root)
    return root


@pytest.fixture(scope="module")
def client(spoken: Path) -> Iterator[TestClient]:
    with TestClient(create_app(spoken), base_url=HERE) as client:
        yield client


def read_page(client: TestClient, run: str, item: str) -> str:
    page = client.get(f"/runs/{run}/sample", params={"item": item})
    assert page.status_code == 200
    return page.text


def words(text: str) -> str:
    """What people read of a page."""
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", text)).split())


def test_the_system_prompt_stands_above_a_plain_prompt(client):
    shown = words(read_page(client, "said", "plain"))

    assert "System prompt Be <brief>. Prompt Say it: plain Answer 4" in shown


def test_a_chat_prompt_is_shown_message_by_message_with_its_image_and_files(client):
    page = read_page(client, "images", "cat")

    assert re.findall(r'<p class="role"><span>(\w+)</span>', page) == ["system", "user"]
    assert "Reply in Latin." in page
    [image] = re.findall(r'<img src="(/api[^"]+)" alt="cat.png"', page)
    assert words(page).count("paper.pdf application/pdf") == 1
    assert words(page).count("logo.svg image/svg+xml") == 1
    answer = client.get(image)
    assert (answer.content, answer.headers["content-type"]) == (PNG, "image/png")
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["content-security-policy"] == "default-src 'none'; sandbox"


@pytest.mark.parametrize("content", [SVG, b"%PDF-1.7"])
def test_what_browsers_could_run_is_only_ever_a_file(client, content):
    answer = client.get(f"/api/runs/images/attachments/{hashlib.sha256(content).hexdigest()}")

    assert answer.content == content
    assert answer.headers["content-type"] == "application/octet-stream"
    assert answer.headers["content-disposition"] == "attachment"
    assert answer.headers["x-content-type-options"] == "nosniff"


def test_a_call_of_a_tool_stands_with_what_it_returned(client):
    shown = words(read_page(client, "said", "steps"))

    assert "stopped by max_turns assistant Reasoning 12 characters Both cities. Let me look." in shown
    assert 'calls weather {"city": "Paris"} returned 21 degrees' in shown
    assert 'calls weather {"city": "Atlantis"} failed LookupError: no such city' in shown
    assert "assistant the answer It is 21 degrees in Paris." in shown


def test_an_image_that_a_tool_returned_is_served_from_the_message_that_holds_it(client):
    [image] = re.findall(r'<img src="([^"]+)"', read_page(client, "said", "steps").partition("<main")[2])
    address = html.unescape(image)

    assert address.endswith("?item=steps")
    assert client.get(address).content == PLOT
    assert client.get(address.partition("?")[0]).status_code == 404
    assert client.get(address.replace("steps", "plain")).json()["code"] == "not_found"


def test_an_attachment_is_named_by_its_digest_and_nothing_else(client):
    assert client.get(f"/api/runs/said/attachments/{'0' * 64}").status_code == 404
    assert client.get("/api/runs/said/attachments/..%2fsecret").status_code in (404, 422)
    assert client.get("/api/runs/said/attachments/cat.png").status_code == 422


def test_images_are_behind_the_token_as_pages_are(spoken):
    address = f"/api/runs/images/attachments/{hashlib.sha256(PNG).hexdigest()}"
    with TestClient(create_app(spoken, token="a long secret"), base_url=HERE) as client:
        assert client.get(address).status_code == 401
        assert client.get(address, headers={"authorization": "Bearer a long secret"}).content == PNG


def test_reasoning_is_folded_and_apart_from_the_answer(client):
    page = read_page(client, "said", "thought")

    folded = page.partition('<details class="thought">')[2].partition("</details>")[0]
    assert "7 x 13 = 91" in folded
    assert '<pre class="text">91</pre>' in page.partition("</details>")[2]


def test_an_answer_of_nothing_but_calls_shows_them(client):
    shown = words(read_page(client, "said", "called"))

    assert "Answer ended by calling tools calls search" in shown
    assert 'calls open not a JSON object {"url No result.' in shown
    assert '<pre class="text"></pre>' not in read_page(client, "said", "called")
    assert 'calls search(query="Paris") calls open({"url)' in words(client.get("/runs/said").text)


@pytest.mark.parametrize(
    ("item", "ending"), [("cut", "cut off at max_tokens=512"), ("refused", "refused I cannot say."), ("plain", "")]
)
def test_how_an_answer_ended_is_said_in_words(client, item, ending):
    assert f"Answer {ending}" in words(read_page(client, "said", item))


@pytest.mark.parametrize("run", ["four", "kept"])
def test_each_attempt_has_its_own_verdict(client, run):
    shown = words(read_page(client, run, "q")).partition("Attempts")[2]

    assert "Attempt 1 ExactMatch 1 4" in shown
    assert "Attempt 2 no answer connection: " in shown
    assert "Attempt 3 ExactMatch 0 5" in shown
    assert "Attempt 4 ExactMatch 1 4" in shown


def test_the_api_has_the_parts_of_a_sample_as_fields(client):
    steps = client.get("/api/runs/said/samples/steps").json()
    called = client.get("/api/runs/said/samples/called").json()["attempts"][0]
    thought = client.get("/api/runs/said/samples/thought").json()["attempts"][0]
    four = client.get("/api/runs/four/samples/q").json()["attempts"]

    assert [message["role"] for message in steps["messages"]] == ["system", "user"]
    assert steps["attempts"][0]["transcript"] == list(STEPS)
    assert (steps["attempts"][0]["finish_reason"], steps["attempts"][0]["ending"]) == (
        "max_turns",
        "stopped by max_turns",
    )
    assert called["tool_calls"][0] == {"id": "1", "name": "search", "arguments": {"query": "Paris"}}
    assert called["tool_calls"][1]["invalid"] == '{"url'
    assert (thought["reasoning"], thought["response"], thought["ending"]) == ("7 x 13 = 91", "91", "")
    assert [[verdict["value"] for verdict in one["verdicts"]] for one in four] == [[1.0], [], [0.0], [1.0]]


def test_a_conversation_is_whole_as_plain_text(client):
    def read(part: str) -> str:
        return client.get("/runs/said/text", params={"item": "steps", "part": part}).text

    assert read("conversation").splitlines()[:4] == [
        "system: Be <brief>.",
        "user: Say it: steps",
        "assistant (thinking): Both cities.",
        "assistant: Let me look.",
    ]
    assert read("response") == "It is 21 degrees in Paris."
    assert client.get("/runs/said/text?item=steps&attempt=7").status_code == 404


def test_a_long_conversation_is_shown_in_part_with_a_way_to_the_rest(tmp_path):
    said = [{"role": "assistant" if n % 2 else "user", "content": f"message {n} " + "x" * 30_000} for n in range(301)]
    rows = [{"id": "long", "messages": said, "answer": "4"}]
    themis.evaluate(rows, model="fake/perfect", prompt="{messages}", run_id="long", storage=tmp_path, progress=False)
    with TestClient(create_app(tmp_path), base_url=HERE) as client:
        page = read_page(client, "long", "long")
        [link] = set(re.findall(r'href="([^"]+part=conversation[^"]*)"', page))
        whole = client.get(html.unescape(link)).text

    assert len(page) < 1_000_000
    assert "101 more messages." in page
    assert whole.count("message 300 ") == 1


def test_what_was_said_before_an_attempt_failed_is_shown(tmp_path):
    themis.register_provider("speaker", Speaker)
    fixed: dict[str, Any] = {"prompt": "{question}", "run_id": "r", "storage": tmp_path, "progress": False}
    rows = [{"id": "q", "question": "2 + 2?", "answer": "4"}]
    themis.evaluate(rows, model="speaker/x", num_samples=2, max_retries=1, metrics=["exact_match"], **fixed)
    with ExperimentStorage(tmp_path).open_run("r") as writer:
        writer.commit_steps([Step(0, 1, 0, "answer", {**STEPS[0], "state": {"hidden": True}})])
    with TestClient(create_app(tmp_path), base_url=HERE) as client:
        shown = words(read_page(client, "r", "q"))

    assert "What was said before: assistant Reasoning 12 characters Both cities. Let me look." in shown
    assert "hidden" not in shown


def test_a_function_that_returns_the_whole_conversation_is_not_shown_with_the_prompt_again(tmp_path):
    def answer(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [*messages, {"role": "assistant", "content": "4"}]

    rows = [{"id": "q", "question": "2 + 2?", "answer": "4"}]
    themis.evaluate(rows, model=answer, prompt="{question}", run_id="r", storage=tmp_path, progress=False)
    with TestClient(create_app(tmp_path), base_url=HERE) as client:
        shown = words(read_page(client, "r", "q"))

    assert "Conversation user 2 + 2? assistant the answer 4" in shown
    assert "Prompt" not in shown


def test_a_static_copy_has_the_images_beside_its_pages(spoken, tmp_path):
    write_bundle(spoken, tmp_path / "copy", ["images", "said"])

    page = next(page for page in (tmp_path / "copy").glob("sample-*.html") if "cat.png" in page.read_text("utf-8"))
    links = re.findall(r'(?:src|href)="(attachments/[^"]+)"', page.read_text("utf-8"))
    assert [link.rpartition(".")[2] for link in links] == ["png", "bin", "bin"]
    assert [(tmp_path / "copy" / link).read_bytes() for link in links] == [PNG, SVG, b"%PDF-1.7"]
    assert (tmp_path / "copy" / "attachments" / f"{hashlib.sha256(PLOT).hexdigest()}.png").read_bytes() == PLOT

    write_bundle(spoken, tmp_path / "copy", ["four"])
    assert not list((tmp_path / "copy" / "attachments").iterdir())
