"""Agents: what they remember, what they send, what they cost, and what happens when they fail."""

from __future__ import annotations

import datetime
import json
import sys
import textwrap
import threading
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.memory.small_tests import START, benchmark, store_in
from themis.core.entities import GenerationRecord, GenerationTask, ModelOutput
from themis.core.tokens import count_tokens
from themis.exceptions import ConfigurationError, EvaluationError, ProviderCallError, ProviderError
from themis.generation.providers import register_provider
from themis.interfaces import StatelessTaskExecutor
from themis.memory.actions import Expected, ExpectedContent
from themis.memory.agents import Agent, AgentSettings, create_agent, register_agent
from themis.memory.agents.calibration import Amnesiac, Window
from themis.memory.agents.chat import MESSAGE_TOKENS, History, format_elapsed
from themis.memory.agents.http import HttpAgent
from themis.memory.agents.program import FAKETIME_PLACES
from themis.memory.agents.retrieval import PassageIndex, RetrievalAgent
from themis.memory.driver import run

HOUR = datetime.timedelta(hours=1)


class Hearing(StatelessTaskExecutor):
    """A provider that answers with how many messages it was sent, and keeps them."""

    instant = True
    is_local = True
    heard: list[list[dict[str, str]]] = []  # noqa: RUF012 - shared by all, as a server would be

    def execute(self, task: GenerationTask) -> GenerationRecord:
        self.heard.append(task.metadata["messages"])
        text = f"{len(task.metadata['messages'])} messages"
        usage = {"prompt_tokens": 7, "completion_tokens": 2}
        return GenerationRecord(task=task, output=ModelOutput(text=text, usage=usage), error=None)


pytestmark = pytest.mark.usefixtures("registered")


@pytest.fixture(autouse=True)
def hearing(registered: None) -> None:
    register_provider("hearing", Hearing)


# --- windowed chat ----------------------------------------------------------------------------------------------------

texts = st.text(alphabet="ab ", max_size=60)


@given(st.lists(st.tuples(texts, texts), max_size=20), texts, st.integers(10, 150))
def test_a_history_keeps_the_latest_whole_exchanges_and_as_many_as_fit(exchanges, newest, limit):
    history = History(limit)
    for turn, (message, reply) in enumerate(exchanges):
        history.evict_until_fits(message)
        history.add(message, reply, turn=turn, now=START)

    history.evict_until_fits(newest)

    sizes = [count_tokens(a) + count_tokens(b) + 2 * MESSAGE_TOKENS for a, b in exchanges]
    room = limit - count_tokens(newest) - MESSAGE_TOKENS
    fitting = 0
    while fitting < len(sizes) and sum(sizes[len(sizes) - fitting - 1 :]) <= room:
        fitting += 1
    assert [exchange.turn for exchange in history] == list(range(len(exchanges) - fitting, len(exchanges)))
    assert history.tokens == sum(sizes[len(sizes) - fitting :])


def test_each_message_is_counted_once_whatever_the_length_of_the_conversation(monkeypatch):
    counted: list[str] = []
    monkeypatch.setattr(
        "themis.memory.agents.chat.tokenizer", lambda name: lambda text: counted.append(text) or len(text.split())
    )
    history = History(10_000)
    for turn in range(100):
        history.evict_until_fits(f"message {turn}")
        history.add(f"message {turn}", "reply", turn=turn, now=START)

    assert len(counted) <= 300


def test_a_model_is_sent_the_system_prompt_the_window_and_the_newest_message():
    agent = create_agent("hearing/model", max_prompt_tokens=100, options={"system_prompt": "Be brief."})
    Hearing.heard.clear()

    replies = [agent.reply(f"This is message number {turn}.", turn=turn, now=START) for turn in range(1, 12)]

    last = Hearing.heard[-1]
    assert last[0] == {"role": "system", "content": "Be brief."}
    assert last[-1]["content"] == "This is message number 11."
    assert [message["role"] for message in last[1:]] == ["user", "assistant"] * ((len(last) - 2) // 2) + ["user"]
    assert 3 < len(last) < 20
    assert sum(count_tokens(message["content"]) + MESSAGE_TOKENS for message in last) <= 100
    assert replies[-1].completion_tokens == 2
    assert replies[-1].cost_usd == 0.0


def test_a_presupplied_reply_enters_the_window_without_a_call():
    agent = create_agent("hearing/model")
    Hearing.heard.clear()

    assert agent.reply("List?", turn=1, now=START, presupplied="[1]").text == "[1]"
    agent.reply("And now?", turn=2, now=START)

    assert [message["content"] for message in Hearing.heard[0][1:]] == ["List?", "[1]", "And now?"]


def test_the_timestamped_variant_sees_how_long_ago_things_were_said():
    agent = create_agent("ts-hearing/model")
    Hearing.heard.clear()

    agent.reply("First.", turn=1, now=START)
    agent.reply("Second.", turn=2, now=START + 26 * HOUR)

    said = [message["content"] for message in Hearing.heard[-1] if message["role"] == "user"]
    assert said == ["[1.1 days ago] First.", "[just now] Second."]


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0, "just now"), (1, "1 second ago"), (59, "59 seconds ago"), (60, "1 minute ago"), (5400, "1.5 hours ago"),
     (86_400, "1 day ago"), (30 * 86_400, "30 days ago")],
)  # fmt: skip
def test_elapsed_time_in_words(seconds, words):
    assert format_elapsed(datetime.timedelta(seconds=seconds)) == words


def test_a_prompt_without_room_for_a_message_is_refused():
    with pytest.raises(ConfigurationError, match="give more with -m"):
        create_agent("hearing/model", max_prompt_tokens=10)


def test_a_model_that_fails_stops_the_run_with_its_reason(tmp_path):
    settings = {"counts": {"cities": 1}, "agent_name": "fake/flaky"}

    class Refusing(StatelessTaskExecutor):
        instant = True

        def execute(self, task):
            raise ProviderCallError("the key is wrong", status=401)

    register_provider("refusing-key", Refusing)
    with pytest.raises(EvaluationError, match=r"failed at turn 1: .*the key is wrong"):
        run(benchmark(**settings, make_agent=lambda session: create_agent("refusing-key/model")), store_in(tmp_path))


def test_a_model_that_does_not_say_its_tokens_is_not_free(tmp_path, monkeypatch):
    prices = tmp_path / "prices.json"
    prices.write_text('{"version": "mine", "models": {"terse-model": [1e6, 1e6]}}')  # a dollar for each token
    monkeypatch.setenv("THEMIS_PRICES", str(prices))

    class Terse(StatelessTaskExecutor):
        def execute(self, task: GenerationTask) -> GenerationRecord:
            return GenerationRecord(task, ModelOutput("one two"), None)

    register_provider("terse", Terse)
    agent = create_agent("terse/terse-model", options={"system_prompt": "Be brief"})

    assert [agent.reply("three", turn=turn, now=START).cost_usd for turn in (1, 2)] == [5.0, 8.0]
    agent.close()


# --- retrieval --------------------------------------------------------------------------------------------------------


def remembered(*messages: str) -> RetrievalAgent:
    agent = RetrievalAgent("", AgentSettings(), embeddings=False)
    for turn, message in enumerate(messages, start=1):
        agent.observe(message, "Noted.", turn=turn, now=START)
    return agent


def test_passages_are_found_by_their_rarest_common_words():
    index_of = remembered("My sister lives in Porto.", "My brother plays the cello.", "My cat is called Ada.")

    assert index_of.find("Which instrument does my brother play?")[0].message == "My brother plays the cello."
    assert index_of.find("zebra") == []


def test_the_index_agrees_with_a_plain_bm25():
    import math

    documents = ["red apple", "green apple tree", "red red house", "tree house by the lake"]
    index = PassageIndex()
    history = History(10_000)
    for turn, text in enumerate(documents):
        index.add(history.add(text, "", turn=turn, now=START))
    words = [[w for w in text.split() if w not in ("by", "the")] for text in documents]
    mean = sum(map(len, words)) / len(words)

    def plain(number: int, query: list[str]) -> float:
        total = 0.0
        for word in query:
            having = sum(word in other for other in words)
            rarity = math.log(1 + (len(words) - having + 0.5) / (having + 0.5))
            count = words[number].count(word)
            total += rarity * count * 2.2 / (count + 1.2 * (0.25 + 0.75 * len(words[number]) / mean))
        return total

    found = index.search("red house", 10)

    assert found == pytest.approx({0: plain(0, ["red", "house"]), 2: plain(2, ["red", "house"]),
                                   3: plain(3, ["red", "house"])})  # fmt: skip


def test_without_a_model_questions_are_answered_with_what_was_said():
    agent = remembered("My sister lives in Porto.", "I like tea.")

    assert "Porto" in agent.reply("Where does my sister live?", turn=3, now=START).text
    assert agent.reply("I also like coffee.", turn=4, now=START).text == "Noted."


def test_without_a_model_the_one_sentence_is_quoted_and_of_several_the_latest():
    island = "Let me tell you about an island. Its roofs are made of slate. Its emblem shows an otter."
    agent = remembered(island, "My favourite colour is teal.", "My favourite colour is maroon.", "The ferry was late.")

    said = [
        agent.reply(question, turn=turn, now=START).text
        for turn, question in enumerate(
            ("What are the roofs of the island made of?", "What is my favourite colour? Answer with one word."), start=5
        )
    ]

    assert said == ["You told me: Its roofs are made of slate.", "You told me: My favourite colour is maroon."]


def test_without_a_model_what_was_never_told_is_not_made_up():
    agent = remembered("The surname of my dentist is Moreau.", "The surname of my vet is Eriksen.")

    assert agent.reply("What is the surname of my gardener?", turn=3, now=START).text == "You have not told me."
    assert agent.reply("What is the surname of my vet?", turn=4, now=START).text.endswith("Eriksen.")


def test_with_a_model_what_was_found_is_put_before_the_recent_exchanges():
    agent = create_agent("retrieval(hearing/model)", max_prompt_tokens=200, options={"embeddings": False})
    Hearing.heard.clear()
    agent.observe("My sister lives in Porto.", "Noted.", turn=1, now=START)
    for turn in range(2, 30):
        agent.observe(f"Unrelated remark number {turn} about weather and trains.", "Noted.", turn=turn, now=START)

    agent.reply("Where does my sister live?", turn=30, now=START + HOUR)

    system = Hearing.heard[-1][0]["content"]
    assert "[1 hour ago] User: My sister lives in Porto." in system
    assert not any("Porto" in message["content"] for message in Hearing.heard[-1][1:])


def test_embeddings_find_what_is_said_in_other_words():
    pytest.importorskip("wordllama")
    agent = RetrievalAgent("", AgentSettings())
    for turn, message in enumerate(["My automobile is in the garage.", "Bread rises overnight.", "The sea was calm."]):
        agent.observe(message, "Noted.", turn=turn, now=START)

    assert agent.find("Where did I park the car?")[0].message == "My automobile is in the garage."


# --- calibration ------------------------------------------------------------------------------------------------------


def test_the_window_remembers_what_lies_within_it_the_message_included():
    window = Window(100)
    message = "one two three"

    for distance, said in ((100 - count_tokens(message), "yes"), (101 - count_tokens(message), "I do not know.")):
        window.prepare(Expected("yes", distance))
        assert window.reply(message, turn=1, now=START) == said


def test_the_amnesiac_knows_only_what_needs_no_memory():
    amnesiac = Amnesiac()
    amnesiac.prepare(Expected("yes", 0, (ExpectedContent("and this", 5),)))

    assert amnesiac.reply("?", turn=1, now=START) == "yes"


@pytest.mark.parametrize(
    ("agent", "scores"),
    [("oracle", {"Cities - 0": 1.0, "Promises - 0": 1.0}), ("amnesiac", {"Cities - 0": 0.0, "Promises - 0": 1.0}),
     ("window(50)", {"Cities - 0": 0.0, "Promises - 0": 1.0}), ("window(2000)", {"Cities - 0": 1.0, "Promises - 0": 1.0}),
     ("parrot", {"Cities - 0": 0.0, "Promises - 0": 1.0})],
)  # fmt: skip
def test_calibration_agents_score_what_they_must(tmp_path, agent, scores):
    small = benchmark({"cities": 1, "promises": 1}, agent_name=agent, make_agent=lambda session: create_agent(agent))

    assert run(small, store_in(tmp_path)).item_scores("memory") == scores


# --- http -------------------------------------------------------------------------------------------------------------


class Scripted:
    """A server that answers each request with the next of the given answers: (status, bytes)."""

    def __init__(self, *answers: tuple[int, bytes]) -> None:
        self.requests: list[tuple[dict[str, Any], str | None]] = []
        waiting = list(answers)
        requests = self.requests

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                requests.append((body, self.headers["Themis-Virtual-Time"]))
                status, content = waiting.pop(0) if len(waiting) > 1 else waiting[0]
                self.send_response(status)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *arguments: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/agent"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@pytest.fixture
def scripted():
    servers: list[Scripted] = []

    def make(*answers: tuple[int, bytes]) -> Scripted:
        servers.append(Scripted(*answers))
        return servers[-1]

    yield make
    for server in servers:
        server.close()


def http_agent(server: Scripted, *, is_local: bool = False, **options: Any) -> HttpAgent:
    return impatient(HttpAgent(server.url, AgentSettings(session="s", is_local=is_local), **options))


def impatient(agent: HttpAgent) -> HttpAgent:
    agent.first_delay_seconds = 0.0
    return agent


def test_a_message_carries_session_turn_and_virtual_time(scripted):
    server = scripted((200, b'{"reply": "hi", "cost_usd": 0.5, "prompt_tokens": 3, "completion_tokens": 1}'))

    reply = http_agent(server).reply("hello", turn=4, now=START, presupplied=None)

    assert (reply.text, reply.cost_usd, reply.prompt_tokens) == ("hi", 0.5, 3)
    now = START.isoformat()
    asked = {"type": "message", "session": "s", "now": now, "turn": 4, "message": "hello", "presupplied": None}
    assert server.requests == [(asked, now)]


def test_what_a_server_says_of_cost_and_tokens_counts_only_where_it_can_be_added_up(scripted):
    endless = b'{"reply": "hi", "cost_usd": 1%s, "prompt_tokens": 1%s}' % (b"0" * 400, b"0" * 400)
    replies = [http_agent(scripted((200, answer))).reply("hello", turn=1, now=START) for answer in (
        endless, b'{"reply": "hi", "cost_usd": 1e308, "prompt_tokens": true}', b'{"reply": "hi", "cost_usd": -1}'
    )]  # fmt: skip

    assert [(reply.text, reply.cost_usd, reply.prompt_tokens) for reply in replies] == [("hi", None, 0)] * 3


def test_what_fails_on_the_way_is_sent_again_under_the_same_turn(scripted):
    server = scripted((503, b"busy"), (500, b""), (200, b'{"reply": "hi"}'))

    assert http_agent(server).reply("hello", turn=9, now=START).text == "hi"
    assert [body["turn"] for body, _ in server.requests] == [9, 9, 9]


@pytest.mark.parametrize(
    ("answer", "message"),
    [((404, b"nothing here"), "HTTP 404: nothing here"), ((200, b"not json"), "not JSON"), ((200, b"[1]"), "not a JSON object"),
     ((200, b'{"text": "hi"}'), "no text in `reply`"), ((503, b"busy"), "after 3 tries: HTTP 503: busy")],
)  # fmt: skip
def test_a_server_that_does_not_answer_properly_is_named_with_what_it_said(scripted, answer, message):
    agent = http_agent(scripted(answer), attempts=3)

    with pytest.raises(ProviderError, match=message):
        agent.reply("hello", turn=1, now=START)


def test_bytes_that_are_not_text_and_megabytes_are_taken_as_said(scripted):
    server = scripted((200, b'{"reply": "caf\xe9"}'), (200, json.dumps({"reply": "x" * 1_000_000}).encode()))
    agent = http_agent(server)

    assert agent.reply("a", turn=1, now=START).text == "caf\N{REPLACEMENT CHARACTER}"
    assert len(agent.reply("b", turn=2, now=START).text) == 1_000_000


def test_a_server_that_is_not_there_is_an_error_after_its_tries():
    agent = impatient(HttpAgent("http://127.0.0.1:9/", AgentSettings(session="s"), attempts=2))

    with pytest.raises(ProviderError, match="after 2 tries: ConnectionRefusedError"):
        agent.last_turn()


def test_time_jumps_are_announced(tmp_path, scripted):
    server = scripted((200, b'{"reply": "dentist", "last_turn": 0}'))
    small = benchmark(
        {"appointments": 1}, agent_name="http", make_agent=lambda session: http_agent(server, is_local=True)
    )

    run(small, store_in(tmp_path))

    times = [datetime.datetime.fromisoformat(body["now"]) for body, _ in server.requests if body["type"] == "time"]
    assert times == [START + datetime.timedelta(hours=30, seconds=20)]


# --- command ----------------------------------------------------------------------------------------------------------

PROGRAM = """
import json, sys
known = 0
for line in sys.stdin:
    asked = json.loads(line)
    if asked["type"] in ("message", "observe"):
        known += 1
    if asked.get("message") == "die":
        sys.exit(3)
    if asked.get("message") == "mumble":
        print("mumble", flush=True)
        continue
    print(json.dumps({"reply": f"{known} known, now {asked['now'][:10]}"}), flush=True)
"""


@pytest.fixture
def program(tmp_path):
    path = tmp_path / "agent.py"
    path.write_text(textwrap.dedent(PROGRAM))
    return f"command:{sys.executable} {path}"


def test_a_program_is_an_agent_by_json_lines(program):
    agent = create_agent(program, is_local=True)
    agent.observe("earlier", "yes", turn=1, now=START)

    assert agent.reply("hello", turn=2, now=START).text == "2 known, now 2030-01-01"
    agent.close()


@pytest.mark.parametrize(
    ("message", "problem"), [("die", "has ended with exit code 3"), ("mumble", "wrote a line that is not JSON")]
)
def test_a_program_that_dies_or_mumbles_is_named(program, message, problem):
    agent = create_agent(program)

    with pytest.raises(ProviderError, match=problem):
        agent.reply(message, turn=1, now=START)
    agent.close()


def test_a_program_that_is_silent_times_out(tmp_path):
    path = tmp_path / "silent.py"
    path.write_text("import sys\nfor line in sys.stdin: pass\n")
    agent = create_agent(f"command:{sys.executable} {path}", options={"timeout_seconds": 0.05})

    with pytest.raises(ProviderError, match=r"wrote nothing for 0\.05 s"):
        agent.reply("hello", turn=1, now=START)
    agent.close()


def test_a_program_that_reads_the_clock_sees_the_virtual_time_where_libfaketime_is_installed(tmp_path):
    path = tmp_path / "clock.py"
    path.write_text(
        "import json, sys, time\n"
        "for line in sys.stdin:\n"
        "    print(json.dumps({'reply': f'{time.time()} {time.monotonic()}'}), flush=True)\n"
    )
    make = partial(create_agent, f"command:{sys.executable} {path}", options={"faketime": True})
    if not any(Path(place).exists() for place in FAKETIME_PLACES):
        with pytest.raises(ConfigurationError, match="apt-get install faketime"):
            make()
        return
    agent, seen = make(), []
    for turn in range(1, 101):
        now = START + datetime.timedelta(hours=101 * turn, microseconds=1_237 * turn)
        shown, ticking = map(float, agent.reply("hello", turn=turn, now=now).text.split())
        seen.append((shown - now.timestamp(), ticking))
    agent.close()

    # It ticks on while the program works; by the tens of seconds only on a very busy machine.
    assert all(0 <= ahead < 60 for ahead, _ in seen)
    assert seen[-1][1] - seen[0][1] < 3_600, "its own timers do not jump"


def test_a_program_that_does_not_exist_is_an_error_that_shows_the_command():
    with pytest.raises(ConfigurationError, match="cannot be started: /no/such/program"):
        create_agent("command:/no/such/program --x").reply("hello", turn=1, now=START)


def test_a_person_answers_until_an_empty_line_and_sees_what_was_answered_for_them(monkeypatch, capsys):
    typed = iter(["Lima,", "I think", "", "never read"])
    monkeypatch.setattr("builtins.input", lambda prompt="": next(typed))
    human = create_agent("human")

    assert human.reply("Where do I live?", turn=3, now=START).text == "Lima,\nI think"
    assert human.reply("List?", turn=4, now=START, presupplied="[1]").text == "[1]"
    shown = capsys.readouterr().err
    assert "[3, Tuesday 01 January 2030 12:00 UTC] Where do I live?" in shown
    assert "(answered for you: [1])" in shown


# --- names ------------------------------------------------------------------------------------------------------------


def test_the_cost_agent_counts_what_a_full_context_would_cost():
    agent = create_agent("cost(1,2)", max_prompt_tokens=200)

    first = agent.reply("one two three", turn=1, now=START)
    for turn in range(2, 8):
        last = agent.reply("one two three", turn=turn, now=START)

    assert first.cost_usd == pytest.approx((first.prompt_tokens + 2 * first.completion_tokens) / 1_000)
    assert last.prompt_tokens == 200


@pytest.mark.parametrize(
    ("text", "message"),
    [("orakle", "did you mean 'oracle'"), ("window", "needs its size in tokens"), ("cost(1)", "takes two prices"),
     ("", "got nothing"), ("http://", "address is http://host:port/path"), ("nosuch:model", "unknown provider 'nosuch'")],
)  # fmt: skip
def test_an_agent_that_cannot_be_made_is_an_error_that_says_how(text, message):
    with pytest.raises((ConfigurationError, ProviderError), match=message):
        create_agent(text)


def test_an_unknown_option_is_an_error_that_names_the_nearest():
    with pytest.raises(ConfigurationError, match="did you mean 'timeout_seconds'"):
        create_agent("http://localhost:1", options={"timeout_second": 3})


def test_users_register_agents_under_names_of_their_own():
    @register_agent("test-shouting")
    class Shouting(Agent):
        def __init__(self, argument: str = "", loud: bool = True) -> None:
            self.name, self.loud = f"shouting {argument}", loud

        def reply(self, message, *, turn, now, presupplied=None):
            return message.upper() if self.loud else message

        def reset(self):
            pass

    assert create_agent("test-shouting(x)").name == "shouting x"
    assert create_agent("test-shouting", options={"loud": False}).reply("hi", turn=1, now=START) == "hi"
