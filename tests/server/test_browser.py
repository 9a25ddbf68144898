"""The pages in a real Chromium: found, filtered, compared, followed live, locked; and nothing leaves the machine."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from playwright.sync_api import expect

import themis
from tests.running_server import RunningServer
from tests.spoken_runs import write_spoken_runs
from themis.core.codec import encode
from themis.core.entities import GenerationRecord, ModelError, ModelOutput
from themis.exceptions import RunFailedError
from themis.interfaces import StatelessTaskExecutor
from themis.storage import ExperimentStorage
from themis.storage.runs import Turn

pytestmark = pytest.mark.browser

# Answers one question for each line that it is given.
PACED_RUN = """
import sys, themis
from themis.core.entities import GenerationRecord, ModelOutput
from themis.interfaces import StatelessTaskExecutor

class Paced(StatelessTaskExecutor):
    def execute(self, task):
        sys.stdin.readline()
        return GenerationRecord(task, ModelOutput(task.reference.value), None)

themis.register_provider("paced", lambda **options: Paced())
rows = [{"id": f"q{n}", "question": f"{n} + {n}", "answer": str(2 * n)} for n in range(30)]
fixed = dict(prompt="{question}", metrics=["exact_match"], run_id="live", workers=1)
themis.evaluate(rows, model="paced:x", storage=sys.argv[1], **fixed)
"""

AGENT = """
import json, sys, time
for line in sys.stdin:
    message = json.loads(line)
    time.sleep(0.05 if message["type"] == "message" else 0)
    print(json.dumps({"reply": "I forgot."}), flush=True)
"""
CONFIGURATION = Path(__file__).parents[2] / "configurations" / "quick.yml"


@pytest.fixture
def open_page(browser: Any) -> Iterator[Callable[..., Any]]:
    """Opens a page by the server's link; it may not complain on its console nor ask another host for anything."""
    complaints: list[str] = []
    contexts: list[Any] = []

    def open_page(server: RunningServer, path: str = "/", **options: Any) -> Any:
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **options})
        context.set_default_timeout(120_000)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on(
            "request",
            lambda request: None if request.url.startswith(server.address) else complaints.append(request.url),
        )
        page.goto(server.link(path))
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert complaints == []


def row_names(page: Any) -> list[str]:
    return [text.strip() for text in page.locator("[data-row] [data-open]").all_inner_texts()]


def test_runs_are_found_filtered_and_sorted(reading_server, open_page):
    page = open_page(reading_server)
    assert row_names(page) == ["perfect", "variant", "baseline"]

    page.get_by_role("link", name="Run", exact=True).click()
    page.wait_for_url("**sort=-run_id**")
    assert row_names(page) == ["variant", "perfect", "baseline"]

    page.keyboard.press("/")
    page.keyboard.type("noisy")
    page.keyboard.press("Enter")
    page.wait_for_url("**q=noisy**")
    assert row_names(page) == ["variant", "baseline"]

    page.locator("select[name=status]").select_option("failed")
    page.wait_for_url("**status=failed**")
    page.get_by_text("No run fits").wait_for()


def test_samples_are_searched_filtered_and_walked_by_keyboard(reading_server, open_page):
    page = open_page(reading_server, "/runs/baseline")
    total = page.locator("[data-row]").count()

    page.locator("select[name=outcome]").select_option("wrong")
    page.wait_for_url("**outcome=wrong**")
    wrong = row_names(page)
    assert 0 < len(wrong) < total

    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("k")
    page.keyboard.press("Enter")
    page.wait_for_url("**/sample?item=*")
    assert page.locator("h1").inner_text() == wrong[0]
    page.keyboard.press("n")
    expect(page.locator("h1")).not_to_have_text(wrong[0])
    page.keyboard.press("u")
    page.wait_for_url("**/runs/baseline")

    page.get_by_label("Search samples").fill("what is 7 +")
    page.keyboard.press("Enter")
    page.wait_for_url("**q=what*")
    assert row_names(page) == ["q7"]


def test_two_ticked_runs_are_compared(reading_server, open_page):
    page = open_page(reading_server, "/runs")
    assert page.locator("#compare").is_disabled()

    page.get_by_label("Compare baseline").check()
    page.get_by_label("Compare variant").check()
    page.locator("#compare").click()
    page.wait_for_url("**/compare?run=*")

    assert page.get_by_role("heading", name="ExactMatch").is_visible()
    assert page.locator("svg.forest").count() == 2
    assert page.locator("svg.scatter circle").count() >= 2
    assert page.locator(".verdict").first.inner_text() == "broken"


def test_a_run_is_watched_to_its_end(start_server, open_page, tmp_path):
    server = start_server(tmp_path)
    page = open_page(server)
    page.get_by_role("heading", name="No runs yet").wait_for()

    command = [sys.executable, "-c", PACED_RUN, str(tmp_path)]
    writer = subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert writer.stdin is not None

    def answer(count: int) -> None:
        writer.stdin.write("\n" * count)
        writer.stdin.flush()

    page.get_by_role("link", name="live", exact=True).click()
    page.get_by_text("in progress").wait_for()
    answer(7)
    expect(page.locator("[data-answered]").first).to_have_text("7")
    answer(23)
    page.get_by_text("completed").wait_for()
    page.get_by_text("(mid-p)").wait_for()
    assert page.locator("[data-answered]").first.inner_text() == "30"
    assert page.locator("[data-mean]").inner_text() == "1.0000"
    writer.communicate()


def test_a_memory_run_is_followed_turn_by_turn(start_server, open_page, tmp_path):
    store = ExperimentStorage(tmp_path)
    store.start_run("talk", kind="memory", model="agent:someone", benchmark="small")
    page = open_page(start_server(tmp_path), "/runs/talk")
    page.get_by_text("Nothing has been said yet").wait_for()
    page.get_by_text("live", exact=True).wait_for()
    with store.open_run("talk") as writer:
        writer.append_turns([Turn(0, "begin", "names 1", encode({"tokens_total": 0}))])
        writer.append_turns([Turn(1, "say", "names 1", encode({"turn": 1, "message": "Call me <b>Ada</b>."}))])
        page.get_by_text("Call me <b>Ada</b>.").wait_for()
        page.get_by_text("waiting for the reply").wait_for()
        reply = {"turn": 1, "reply": "Hello Ada!", "tokens": 9, "tokens_total": 9}
        writer.append_turns([Turn(2, "reply", "names 1", encode(reply))])
        page.get_by_text("Hello Ada!").wait_for()
        expect(page.locator(".gantt g.open circle.say")).to_have_count(1)
        writer.append_turns([Turn(3, "begin", "colours 1", encode({"tokens_total": 9}))])
        expect(page.locator(".gantt g.open")).to_have_count(2)


def test_many_tabs_stay_open_beside_each_other(reading_server, open_page):
    """A browser has six connections to a server, whatever is open; a page that kept one would lock the seventh out."""
    page = open_page(reading_server, "/runs")
    for _ in range(8):
        page = page.context.new_page()
        page.goto(f"{reading_server.address}/runs")
        page.get_by_text("live", exact=True).wait_for()


def test_a_conversation_has_no_gap_and_no_echo_after_a_lost_connection(start_server, open_page, tmp_path):
    store = ExperimentStorage(tmp_path)
    store.start_run("talk", kind="memory", model="agent:someone", benchmark="small")
    page = open_page(start_server(tmp_path))
    connections: list[Any] = []
    subscribings: list[Callable[[], None]] = []

    def pass_on(socket: Any) -> None:
        server = socket.connect_to_server()
        connections.append(socket)
        socket.on_message(lambda message: subscribings.append(lambda: server.send(message)))

    def subscribe(times: int) -> None:
        """Lets the page's wish through to the server, which until then tells it nothing."""
        while len(subscribings) < times:
            page.wait_for_timeout(20)
        subscribings[-1]()

    page.route_web_socket("**/ws", pass_on)
    page.get_by_role("link", name="talk", exact=True).click()
    messages = page.locator("#chat .message")
    with store.open_run("talk") as writer:

        def say(number: int) -> None:
            reply = {"turn": number, "reply": "I see.", "tokens": 9, "tokens_total": 9 * number}
            said = Turn(2 * number, "say", "names 1", encode({"turn": number, "message": f"message {number}"}))
            writer.append_turns([said, Turn(2 * number + 1, "reply", "names 1", encode(reply))])

        subscribe(1)
        say(1)
        expect(messages).to_have_text(["message 1"])
        connections[0].close(code=1001)
        page.get_by_text("connecting").wait_for()
        say(2)
        page.get_by_text("live", exact=True).wait_for()
        say(3)
        subscribe(2)
        say(4)
        expect(messages).to_have_text([f"message {number}" for number in (1, 2, 3, 4)])
        assert page.locator("#chat .waiting").count() == 0


def test_a_run_is_followed_where_no_websocket_comes_through(start_server, open_page, tmp_path):
    store = ExperimentStorage(tmp_path)
    store.start_run("talk", kind="memory", model="agent:someone", benchmark="small")
    page = open_page(start_server(tmp_path))
    page.add_init_script("window.WebSocket = class { constructor() { setTimeout(() => this.onclose()); } };")
    page.get_by_role("link", name="talk", exact=True).click()
    page.get_by_text("live", exact=True).wait_for()
    with store.open_run("talk") as writer:
        writer.append_turns([Turn(0, "say", "names 1", encode({"turn": 1, "message": "Call me Ada."}))])
        page.get_by_text("Call me Ada.").wait_for()


def test_a_list_keeps_its_ticks_when_a_run_begins_and_ends(start_server, open_page, tmp_path):
    store = ExperimentStorage(tmp_path)
    store.start_run("first")
    page = open_page(start_server(tmp_path), "/runs")
    page.get_by_text("live", exact=True).wait_for()
    page.get_by_label("Compare first").check()
    page.get_by_label("Search runs").fill("half typ")

    store.start_run("second")
    page.get_by_role("link", name="second", exact=True).wait_for()
    store.complete_run("second")
    page.get_by_text("completed").last.wait_for()

    assert page.get_by_label("Compare first").is_checked()
    assert page.get_by_label("Search runs").input_value() == "half typ"
    page.get_by_label("Compare second").check()
    expect(page.locator("#compare")).to_be_enabled()


def test_a_real_memory_run_is_followed_to_its_end(start_server, open_page, tmp_path):
    """`themis memory run` in another process, with an agent that is a program and takes its time."""
    agent = tmp_path / "agent.py"
    agent.write_text(AGENT)
    store = tmp_path / "store"
    page = open_page(start_server(store))
    command = [sys.executable, "-m", "themis", "memory", "run", "-a", f"command:{sys.executable} {agent}", "-y"]
    options = ["-l", "--run-id", "followed", "--storage", str(store), "-c", str(CONFIGURATION)]
    writer = subprocess.Popen([*command, *options], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    page.get_by_role("link", name="followed", exact=True).click()

    page.locator(".gantt g.open").first.wait_for()
    page.locator("#chat .turn").first.wait_for()
    page.locator(".card.test").first.wait_for()
    page.get_by_text("completed").wait_for()
    assert writer.wait() == 0
    expect(page.locator(".gantt g")).to_have_count(20)
    expect(page.locator(".card.test")).to_have_count(20)
    assert page.locator(".gantt g.open").count() == 0
    assert page.locator("[data-metric=memory] [data-mean]").inner_text() == "0.0000"


def test_the_printed_link_lets_a_browser_in_and_is_not_in_its_address(reading_server, open_page):
    page = open_page(reading_server, "/runs/baseline?outcome=wrong")

    assert page.url == f"{reading_server.address}/runs/baseline?outcome=wrong"
    assert page.evaluate("document.cookie") == ""
    assert page.evaluate("performance.getEntriesByType('navigation')[0].name.includes('token')") is False
    page.go_back()
    assert page.url == "about:blank"


def test_a_token_opens_the_pages_and_nothing_else_does(start_server, open_page, two_runs):
    server = start_server(two_runs, "--token", "open-sesame-please")
    page = open_page(server, "/runs/baseline")
    assert "/login" in page.url

    page.get_by_label("Token").fill("open-sesame-please")
    page.get_by_role("button", name="Log in").click()
    page.wait_for_url("**/runs/baseline")
    assert page.evaluate("document.cookie") == ""

    page.get_by_role("button", name="Log out").click()
    page.wait_for_url("**/login")


def test_a_run_is_deleted_when_told_twice(start_server, open_page, tmp_path):
    ExperimentStorage(tmp_path).start_run("old one")
    ExperimentStorage(tmp_path).start_run("kept")
    page = open_page(start_server(tmp_path), "/runs/old%20one")

    page.get_by_role("button", name="Delete run").click()
    page.get_by_role("button", name="Delete for good?").click()
    page.wait_for_url("**/runs")
    assert row_names(page) == ["kept"]


class Attacker(StatelessTaskExecutor):
    def execute(self, task):
        attack = task.prompt.text
        return GenerationRecord(task, ModelOutput(attack), None)


def test_a_hostile_run_does_nothing_in_a_real_browser(start_server, open_page, tmp_path):
    attacks = [
        "<script>window.acted = 1</script>",
        "<img src=x onerror='window.acted = 1'>",
        "</pre><svg onload=window.acted=1>",
        '"><a href="javascript:window.acted=1" onfocus=window.acted=1 autofocus>x</a>',
        "\u202etxt.exe",
    ]
    themis.register_provider("echoing", lambda **options: Attacker())
    rows = [{"id": attack, "question": attack, "answer": attack} for attack in attacks]
    run_id = "%2e%2e & {{7}} 'run'"
    for name in (run_id, "second"):
        themis.evaluate(
            rows, model="echoing:x", prompt="{question}", metrics=["exact_match"], run_id=name, storage=tmp_path
        )
    server = start_server(tmp_path)
    quoted = quote(run_id, safe="")
    paths = ["/runs", f"/runs/{quoted}", f"/compare?run={quoted}&run=second", f"/runs?q={quote(attacks[1])}"]
    paths += [f"/runs/{quoted}/sample?item={quote(attack, safe='')}" for attack in attacks]
    page = open_page(server)
    for path in paths:
        answer = page.goto(server.address + path)
        assert answer.status == 200
        page.wait_for_load_state("load")
        assert page.evaluate("window.acted") is None


class Unreachable(StatelessTaskExecutor):
    def execute(self, task):
        return GenerationRecord(task, None, ModelError("cannot be reached; is the server running? " * 8, "connection"))


LONG_NAME = "a-name-that-somebody-made-from-everything-they-varied-" * 3


@pytest.fixture(scope="module")
def lab(
    two_runs: Path, start_lasting_server: Callable[..., Any], tmp_path_factory: pytest.TempPathFactory
) -> RunningServer:
    """A server with runs of both kinds, one that failed, and names that are too long."""
    root = tmp_path_factory.mktemp("lab") / "store"
    shutil.copytree(two_runs, root)
    memory = ["memory", "run", "-a", "window(500)", "-y", "-c", str(CONFIGURATION), "--run-id", "talk"]
    subprocess.run([sys.executable, "-m", "themis", *memory, "--storage", str(root)], check=True, capture_output=True)
    write_spoken_runs(root)
    ExperimentStorage(root).start_run(LONG_NAME, tags={"team": "lab"})
    themis.register_provider("unreachable", lambda **options: Unreachable())
    rows = [{"id": f"q{n}", "question": f"{n} + {n}", "answer": str(2 * n)} for n in range(20)]
    fixed = {"prompt": "{question}", "metrics": ["exact_match"], "storage": root}
    for run_id, model in ((f"{LONG_NAME}a", "fake/noisy-0.6"), (f"{LONG_NAME}b", "fake/perfect")):
        themis.evaluate(rows, model=model, run_id=run_id, **fixed)
    with pytest.raises(RunFailedError):
        themis.evaluate(rows[:2], model="unreachable:x", run_id="failed", max_retries=1, **fixed)
    return start_lasting_server(root)


PATHS = {
    "runs": "/runs",
    "run": "/runs/baseline",
    "sample": "/runs/baseline/sample?item=q3",
    "steps": "/runs/said/sample?item=steps",
    "called": "/runs/said/sample?item=called",
    "images": "/runs/images/sample?item=cat",
    "attempts": "/runs/four/sample?item=q",
    "compare": "/compare?run=baseline&run=variant",
    "long names": f"/compare?run={LONG_NAME}a&run={LONG_NAME}b",
    "memory": "/runs/talk",
    "failed": "/runs/failed",
    "login": "/login",
    "docs": "/docs",
}


@pytest.mark.parametrize("width", [1440, 820, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_fit_every_width_in_both_themes(lab, open_page, scheme, width):
    """Set THEMIS_SCREENSHOTS to a folder to look at them; what is asserted is measured on the page, not on its picture."""
    page = open_page(lab, viewport={"width": width, "height": 900}, color_scheme=scheme)
    folder = os.environ.get("THEMIS_SCREENSHOTS")
    for name, path in PATHS.items():
        page.goto(lab.address + path)
        if folder:
            page.screenshot(path=Path(folder) / f"{name}-{width}-{scheme}.png")
        assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth"), name
        assert page.evaluate(CUT_OFF) == [], name
        assert page.evaluate(SPILT) == [], name
        assert page.evaluate(CONTRAST) >= 4.5, name
        assert page.evaluate(UNLABELLED) == [], name


def test_images_are_drawn_and_reasoning_is_unfolded(lab, open_page):
    page = open_page(lab, "/runs/said/sample?item=steps")
    drawn = "() => [...document.querySelectorAll('main img')].map((image) => [image.complete, image.naturalWidth])"
    expect(page.locator("main img")).to_have_count(1)
    page.locator("main img").scroll_into_view_if_needed()
    expect(page.locator("main img")).to_have_js_property("complete", True)
    assert page.evaluate(drawn) == [[True, 80]]

    assert not page.get_by_text("Both cities.").is_visible()
    page.get_by_text("Reasoning").click()
    expect(page.get_by_text("Both cities.")).to_be_visible()

    page.goto(lab.address + "/runs/images/sample?item=cat")
    expect(page.locator("main img")).to_have_js_property("complete", True)
    assert page.evaluate(drawn) == [[True, 96]]
    with page.expect_download() as kept:
        page.get_by_role("link", name="logo.svg").click()
    assert kept.value.suggested_filename == "logo.svg"


def test_everything_is_printed(lab, open_page):
    page = open_page(lab, "/runs/talk")
    assert "chat" in page.evaluate(SCROLLED_AWAY)

    page.emulate_media(media="print")
    assert page.evaluate(SCROLLED_AWAY) == []


# Tables of which a part can only be reached by scrolling sideways.
CUT_OFF = """() => [...document.querySelectorAll(".table-frame")]
  .filter((frame) => frame.scrollWidth > frame.clientWidth + 1).map((frame) => frame.textContent.slice(0, 80))"""
# Cells whose text runs over what stands below them.
SPILT = """() => [...document.querySelectorAll(".list td")]
  .filter((cell) => cell.scrollHeight > cell.clientHeight + 1).map((cell) => cell.textContent.slice(0, 80))"""
# Boxes of which paper would show only what is not scrolled away.
SCROLLED_AWAY = """() => [...document.querySelectorAll("main *:not(svg *, .hidden)")]
  .filter((box) => getComputedStyle(box).overflowY !== "visible" && box.scrollHeight > box.clientHeight + 1)
  .map((box) => box.className)"""
# The lowest contrast of any text on the page against what is behind it.
CONTRAST = """() => {
  const channels = (colour) => colour.match(/[\\d.]+/g).map(Number);
  const light = (c) => { c /= 255; return c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4; };
  const luminance = ([r, g, b]) => 0.2126 * light(r) + 0.7152 * light(g) + 0.0722 * light(b);
  const ground = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const found = channels(getComputedStyle(at).backgroundColor);
      if (found.length < 4 || found[3] === 1) return found;
    }
    return [255, 255, 255];
  };
  let lowest = 21;
  for (const element of document.querySelectorAll("main *:not(svg *):not(:disabled)")) {
    if (![...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim())) continue;
    if (!element.checkVisibility()) continue;
    const [one, two] = [luminance(channels(getComputedStyle(element).color)), luminance(ground(element))];
    lowest = Math.min(lowest, (Math.max(one, two) + 0.05) / (Math.min(one, two) + 0.05));
  }
  return lowest;
}"""
# Fields, buttons and pictures that say nothing to those who cannot see them.
UNLABELLED = """() => [...document.querySelectorAll("input:not([type=hidden]), select, button, svg[role=img], img")]
  .filter((element) => !(element.labels?.length || element.ariaLabel || element.getAttribute("aria-label")
    || element.textContent.trim() || element.getAttribute("alt") !== null)).map((element) => element.outerHTML)"""
