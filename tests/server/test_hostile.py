"""What models, rows and names may hold never acts: not in a page, not in an answer, not in a file."""

from __future__ import annotations

import html.parser
import re
from base64 import b64encode
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from fastapi.testclient import TestClient

import themis
from themis.core.codec import encode
from themis.core.entities import GenerationRecord, ModelOutput
from themis.experiment.export import export_html
from themis.interfaces import StatelessTaskExecutor
from themis.runs.report import build_report
from themis.server import create_app
from themis.server.bundle import write_bundle
from themis.storage import ExperimentStorage
from themis.storage.runs import Turn

HERE = "http://127.0.0.1"
ATTACKS = [
    "<script>window.acted = 1</script>",
    "<img src=x onerror='window.acted = 1'>",
    "</pre></td></table><svg onload=window.acted=1>",
    '"><a href="javascript:window.acted=1" autofocus onfocus=window.acted=1>x</a>',
    "{{ 7 * 7 }}{% raw %}",
    "\x1b[2J\x1b]0;owned\x07\x00 \x9b31m",
    "\u202egnp.exe\u202c \u2066hidden\u2069 \u200b\ufeff",
    "&lt;script&gt;&#x3c;script>",
    "\ud800 half a character",
    "]]><!--</title></textarea><style>*{display:none}</style>",
]
RUN_ID = "';alert(1)--&amp; run {{7+42}} #1 100% ünï"
ADDRESS = quote(RUN_ID, safe="")


class Attacker(StatelessTaskExecutor):
    """Answers with the attack that it is asked for, the last one as five megabytes."""

    def execute(self, task):
        number = int(task.metadata["number"])
        text = ATTACKS[number % len(ATTACKS)] * (100_000 if number == len(ATTACKS) else 1)
        return GenerationRecord(task, ModelOutput(text, raw={"<b>": ATTACKS[number % len(ATTACKS)]}), None)


@pytest.fixture(scope="module")
def hostile(tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("hostile")
    themis.register_provider("attacker", lambda **options: Attacker())
    storable = [attack for attack in ATTACKS if "\x00" not in attack and "\ud800" not in attack]
    rows = [
        {
            "id": f"{n} {storable[n % len(storable)]}",
            "number": str(n),
            "question": ATTACKS[n % len(ATTACKS)],
            "answer": ATTACKS[n % len(ATTACKS)],
            "<script>": ATTACKS[0],
        }
        for n in range(len(ATTACKS) + 1)
    ]
    for run_id in (RUN_ID, f"{RUN_ID} again"):
        themis.evaluate(
            rows,
            model="attacker:<script>window.acted=1</script>",
            prompt="{question}",
            metrics=["exact_match", "f1"],
            run_id=run_id,
            storage=root,
            tags={"<img src=x onerror=window.acted=1>": "<script>window.acted=1</script>"},
        )
    return root


def hostile_message(attack: str) -> dict[str, Any]:
    """A message with the attack in every place that is shown."""
    svg = f'<svg xmlns="http://www.w3.org/2000/svg" onload="window.acted=1">{attack}</svg>'.encode("utf-8", "replace")
    kinds = [attack, "text/html", "image/svg+xml", "image/png"]
    return {
        "role": attack,
        "name": attack,
        "reasoning": attack,
        "refusal": attack,
        "error": True,
        "content": [
            {"type": "text", "text": attack},
            {"type": attack, "value": attack},
            {"type": "file", "name": attack, "media_type": attack, "url": "javascript:window.acted=1"},
            {"type": "image", "name": attack, "media_type": "image/png", "digest": attack},
            {"type": "image", "name": attack, "url": attack},
            *({"type": "image", "name": attack, "media_type": kind, "data": b64encode(svg).decode()} for kind in kinds),
        ],
        "tool_calls": [{"id": attack, "name": attack, "arguments": {attack: attack}, "invalid": attack}],
    }


class Conversing(StatelessTaskExecutor):
    """Answers in several steps with the attack that it is asked for."""

    def execute(self, task):
        attack = ATTACKS[int(task.metadata["number"])]
        said = [hostile_message(attack), {"role": "tool", "tool_call_id": attack, "content": attack, "error": True}]
        output = ModelOutput(attack, reasoning=attack, refusal=attack, finish_reason=attack, transcript=tuple(said))
        return GenerationRecord(task, output, None)


@pytest.fixture(scope="module")
def conversation(tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("conversation")
    themis.register_provider("conversing", lambda **options: Conversing())
    rows = [
        {
            "id": str(n),
            "number": str(n),
            "messages": [hostile_message(attack)],
            "system_prompt": attack,
            "answer": attack,
        }
        for n, attack in enumerate(ATTACKS)
    ]
    fixed = {"prompt": "{messages}", "metrics": ["exact_match"], "run_id": "said", "storage": root}
    themis.evaluate(rows, model="conversing:x", num_samples=2, **fixed)
    return root


class Elements(html.parser.HTMLParser):
    """Collects what a browser would act on."""

    def __init__(self) -> None:
        super().__init__()
        self.scripts: list[str | None] = []
        self.handlers: list[str] = []
        self.addresses: list[str] = []

    def handle_starttag(self, tag, attributes):
        if tag == "script":
            self.scripts.append(dict(attributes).get("src"))
        self.handlers += [name for name, _ in attributes if name.startswith("on") or name == "style"]
        self.addresses += [value or "" for name, value in attributes if name in ("href", "src", "action")]
        assert tag not in ("style", "iframe", "object", "embed", "base")


class Sources(html.parser.HTMLParser):
    """The addresses in a page's attributes of one name."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self._name = name
        self.found: list[str] = []

    def handle_starttag(self, tag, attributes):
        self.found += [value or "" for name, value in attributes if name == self._name]

    @classmethod
    def of(cls, text: str, name: str = "src") -> list[str]:
        parser = cls(name)
        parser.feed(text)
        return parser.found


def assert_inert(text: str) -> None:
    found = Elements()
    found.feed(text)
    assert all(source and "static/" in source for source in found.scripts)
    assert not found.handlers
    assert not [
        address for address in found.addresses if address.strip().lower().startswith(("javascript", "data", "//"))
    ]
    assert not any(character in text for character in "\x1b\x00\x9b\u202e\u2066\u200b\ufeff")
    assert "49" not in text.partition("<title>")[2].partition("</title>")[0]


def test_every_page_of_a_hostile_run_is_inert(hostile):
    store = ExperimentStorage(hostile)
    ids = [sample.item_id for sample in store.reader(RUN_ID).samples()]
    with TestClient(create_app(hostile), base_url=HERE) as client:
        pages = [
            client.get("/runs"),
            client.get("/runs", params={"q": ATTACKS[0], "tag": ATTACKS[1], "model": ATTACKS[3], "sort": "-created"}),
            client.get("/runs/" + ADDRESS),
            client.get("/compare", params={"run": [RUN_ID, f"{RUN_ID} again"]}),
            client.get("/compare", params={"run": [ATTACKS[0], ATTACKS[3]], "test": ATTACKS[1]}),
            client.get("/runs/" + "<script>alert(1)", headers={"accept": "text/html"}),
            client.get("/login", params={"next": ATTACKS[3]}),
            *(client.get(f"/runs/{ADDRESS}/sample", params={"item": i}) for i in ids),
        ]

    assert [page.status_code for page in pages] == [200, 200, 200, 200, 404, 404, 200, *[200] * len(ids)]
    for page in pages:
        assert_inert(page.text)
        # Five megabytes are one link away, not in the page.
        assert len(page.content) < 1_000_000


def test_the_api_gives_back_exactly_what_was_said(hostile):
    with TestClient(create_app(hostile), base_url=HERE) as client:
        run = client.get(f"/api/runs/{ADDRESS}?limit=200")

    assert run.headers["content-type"] == "application/json"
    said = [sample["response"] for sample in run.json()["samples"]]
    # Half a character cannot be sent; it is the only thing that changes.
    assert said[: len(ATTACKS)] == [attack.replace("\ud800", "\N{REPLACEMENT CHARACTER}") for attack in ATTACKS]
    assert run.json()["samples"][-1]["is_cut"]


def test_a_long_answer_is_whole_as_plain_text(hostile):
    last = [sample.item_id for sample in ExperimentStorage(hostile).reader(RUN_ID).samples()][-1]
    with TestClient(create_app(hostile), base_url=HERE) as client:
        path = f"/runs/{ADDRESS}/text"
        answer = client.get(path, params={"item": last, "part": "response"})

    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert answer.text == ATTACKS[0] * 100_000


def test_a_hostile_conversation_is_inert(tmp_path):
    store = ExperimentStorage(tmp_path)
    store.start_run("talk", kind="memory", model="agent:<script>")
    with store.open_run("talk") as writer:
        for number, attack in enumerate(
            attack for attack in ATTACKS if "\x00" not in attack and "\ud800" not in attack
        ):
            sent = {"turn": number, "message": attack}
            reply = {"turn": number, "reply": attack, "tokens": 5, "tokens_total": 5 * (number + 1)}
            rows = (("begin", {}), ("say", sent), ("reply", reply), ("consult", {"prompt": attack, "failure": attack}))
            writer.append_turns(
                [Turn(4 * number + place, kind, attack, encode(body)) for place, (kind, body) in enumerate(rows)]
            )
    with TestClient(create_app(tmp_path), base_url=HERE) as client:
        pages = [client.get("/runs/talk"), client.get("/runs/talk/progress"), client.get("/runs/talk?test=<script>")]

    for page in pages:
        assert page.status_code == 200
        assert_inert(page.text)
    assert pages[0].text.count('class="turn say') == len(ATTACKS) - 2


def test_what_a_hostile_conversation_holds_is_inert_in_every_place(conversation, tmp_path):
    with TestClient(create_app(conversation), base_url=HERE) as client:
        pages = [client.get("/runs/said"), *(client.get(f"/runs/said/sample?item={n}") for n in range(len(ATTACKS)))]
        sources = [source for page in pages for source in Sources.of(page.text)]
        images = [client.get(source) for source in sources if source.startswith("/api")]
    write_bundle(conversation, tmp_path / "copy")

    assert [page.status_code for page in pages] == [200] * (1 + len(ATTACKS))
    copies = [page.read_text(encoding="utf-8") for page in (tmp_path / "copy").glob("*.html")]
    for text in [page.text for page in pages] + copies:
        assert_inert(text)
    # What calls itself a picture and is none is sent as a picture, which runs nothing; all else is a file.
    assert {(image.status_code, image.headers["content-type"]) for image in images} == {(200, "image/png")}
    files = [path for path in (tmp_path / "copy").rglob("*") if path.is_file() and path.parent.name == "attachments"]
    assert {path.suffix for path in files} == {".png", ".bin"}
    assert all(path.parent == tmp_path / "copy" / "attachments" for path in files)


def test_a_program_that_calls_itself_an_image_is_a_file(conversation):
    sample = {"params": {"item": "0"}}
    with TestClient(create_app(conversation), base_url=HERE) as client:
        page = client.get("/runs/said/sample", **sample).text
        files = {link for link in Sources.of(page, "href") if "/attachments/" in link}
        answers = [client.get(link) for link in files]

    assert files
    for answer in answers:
        assert answer.headers["content-type"] in ("application/octet-stream", "image/png")
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "sandbox" in answer.headers["content-security-policy"]


def test_the_page_of_a_hostile_conversation_runs_nothing_of_it(conversation, tmp_path):
    report = build_report(ExperimentStorage(conversation), "said")
    text = export_html(report, tmp_path / "report.html").read_text(encoding="utf-8")

    scripts = re.findall(r"<script[^>]*>", text)
    assert len(scripts) == 4
    assert "window.acted = 1</script>" not in text
    assert set(re.findall(r'"data:([^;]{1,40});base64', text)) == {"image/png"}


def test_the_static_copy_of_a_hostile_run_is_inert(hostile, tmp_path):
    write_bundle(hostile, tmp_path / "copy")

    pages = list((tmp_path / "copy").glob("*.html"))
    assert len(pages) == 1 + 2 + 2 * (len(ATTACKS) + 1)
    for page in pages:
        assert_inert(page.read_text(encoding="utf-8"))
