"""The tools of a run: what may be one, what becomes of calls, and the state of environments."""

from __future__ import annotations

import asyncio
import copy
import functools
import json
import pickle
import sys
import threading
import time
from dataclasses import dataclass
from datetime import date

import pytest

import themis
from tests.waiting import wait_until
from themis.core.messages import ToolCall, ToolResult
from themis.exceptions import ConfigurationError, ToolError
from themis.generation.tools import TOOLS, Tool, Toolset


def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


class Shop:
    """A shop with a till, for one customer."""

    def __init__(self, row):
        self.stock = dict(row.get("stock", {"tea": 2}))
        self.till = 0

    def buy(self, item: str) -> str:
        """Buys an item."""
        if not self.stock.get(item):
            raise LookupError(f"no {item} left")
        self.stock[item] -= 1
        self.till += 3
        return f"one {item}"

    def _count(self):
        return self.till


def call(session, name, /, **arguments):
    return session.call(ToolCall(name, arguments, id="call-1"))


# --- results ------------------------------------------------------------------------------------------------------------


def test_a_result_is_a_message_for_the_model():
    with Toolset([add]) as tools:
        assert call(tools.open({}), "add", a=2, b=3) == {
            "role": "tool",
            "tool_call_id": "call-1",
            "name": "add",
            "content": "5",
        }


@dataclass
class Point:
    x: int


IMAGE = {"type": "image", "media_type": "image/png", "data": "iVBORw0K"}


@pytest.mark.parametrize(
    ("returned", "content"),
    [
        ("text", "text"),
        (None, ""),
        (5, "5"),
        (True, "true"),
        ({"a": [1, None]}, '{"a": [1, null]}'),
        (["a", "b"], '["a", "b"]'),
        ((1, 2), "[1, 2]"),
        ({"when": date(2026, 1, 2)}, '{"when": "2026-01-02"}'),
        ("naïve ✓", "naïve ✓"),
        ({"a": "ü"}, '{"a": "ü"}'),
        (IMAGE, [IMAGE]),
        (["look:", IMAGE], [{"type": "text", "text": "look:"}, IMAGE]),
        ({"type": "text", "text": "said"}, [{"type": "text", "text": "said"}]),
        # Data that only looks like a part.
        ({"type": "text", "text": "said", "author": "x"}, '{"type": "text", "text": "said", "author": "x"}'),
        ({"type": "image"}, '{"type": "image"}'),
    ],
)
def test_whatever_a_tool_returns_is_content(returned, content):
    with Toolset([Tool(function=lambda: returned, name="tool")]) as tools:
        message = call(tools.open({}), "tool")

    assert message["content"] == content
    assert "error" not in message


def test_a_tool_says_itself_what_is_an_error():
    with Toolset([Tool(function=lambda: ToolResult({"code": 7}, error=True), name="tool")]) as tools:
        message = call(tools.open({}), "tool")

    assert (message["content"], message["error"]) == ('{"code": 7}', True)


def test_what_cannot_be_written_as_json_is_said():
    with Toolset([Tool(function=lambda: threading.Lock(), name="tool")]) as tools:
        message = call(tools.open({}), "tool")

    assert (
        message["content"] == "the tool returned something that cannot be written as JSON: no canonical form for lock"
    )
    assert message["error"] is True


def test_half_a_character_does_not_reach_the_store():
    with Toolset([Tool(function=lambda: "a\ud800b", name="tool")]) as tools:
        assert call(tools.open({}), "tool")["content"] == "a?b"


def test_a_long_result_is_cut_with_a_note():
    with Toolset([Tool(function=lambda: "é" * 5_000, name="tool")], result_kb=1) as tools:
        message = call(tools.open({}), "tool")

    shown, _, note = message["content"].partition("\n")
    assert shown == "é" * 512
    assert note == "[cut: the result has 10,000 bytes, and this is the first 1,024]"
    assert message["error"] is True


def test_texts_between_images_share_the_limit_and_an_endless_image_is_left_out():
    huge = {"type": "image", "media_type": "image/png", "data": "A" * 20_000_001}
    with Toolset([Tool(function=lambda: ["x" * 1_000, IMAGE, "y" * 1_000, huge], name="tool")], result_kb=1) as tools:
        message = call(tools.open({}), "tool")

    first, image, second, left_out = message["content"]
    assert (first["text"], image) == ("x" * 1_000, IMAGE)
    assert second["text"].startswith("y" * 24 + "\n[cut:")
    assert left_out == {"type": "text", "text": "[left out: the image has more than 20,000,000 characters]"}
    assert message["error"] is True


# --- whatever models and tools do -----------------------------------------------------------------------------------------


def test_an_unknown_tool_is_answered_with_the_nearest_name():
    with Toolset([add, Shop]) as tools:
        message = call(tools.open({}), "ad")

    assert message["content"] == "there is no tool 'ad' (did you mean 'add'?); the tools are add, buy"
    assert message["error"] is True


@pytest.mark.parametrize("written", ['{"a": 1, "b"', "[1, 2]", "a=1, b=2", "x" * 10_000])
def test_arguments_that_are_no_json_object_are_answered(written):
    with Toolset([add]) as tools:
        message = tools.open({}).call(ToolCall.read("add", written, id="1"))

    assert message["content"].startswith("the arguments of add must be one JSON object, got '")
    assert len(message["content"]) < 500
    assert message["error"] is True


@pytest.mark.parametrize("depth", [300, 900, 5_000])
def test_arguments_in_arguments_without_end_are_answered(depth):
    def keep(value):
        return value

    with Toolset([keep]) as tools:
        message = tools.open({}).call(ToolCall.read("keep", '{"value": ' + "[" * depth + "]" * depth + "}"))

    assert isinstance(message["content"], str)


def leave():
    sys.exit("good bye")


def cancel():
    raise asyncio.CancelledError


def late():
    raise TimeoutError("the database did not answer")


async def leave_later():
    sys.exit("good bye")


async def fail_later():
    await asyncio.sleep(0)
    raise KeyError("seat")


def endless_recursion():
    return endless_recursion()


class SilentError(Exception):
    def __str__(self):
        raise ValueError("no words")


def fail_without_words():
    raise SilentError


@pytest.mark.parametrize(
    ("tool", "said"),
    [
        (leave, "SystemExit: good bye"),
        (cancel, "CancelledError"),
        (late, "TimeoutError: the database did not answer"),
        (fail_later, "KeyError: 'seat'"),
        (leave_later, "RuntimeError: SystemExit: good bye"),
        (fail_without_words, "SilentError"),
        (endless_recursion, "RecursionError: maximum recursion depth exceeded"),
    ],
)
def test_what_a_tool_raises_is_a_result(tool, said):
    with Toolset([tool]) as tools:
        message = call(tools.open({}), tool.__name__)

    assert message["content"].startswith(said)
    assert message["error"] is True


def test_whoever_interrupts_a_tool_interrupts_the_run():
    def interrupted():
        raise KeyboardInterrupt

    with Toolset([interrupted]) as tools, pytest.raises(KeyboardInterrupt):
        call(tools.open({}), "interrupted")


def test_a_tool_that_the_world_has_failed_fails_the_sample():
    def look_up():
        raise ToolError("the index is being rebuilt")

    with Toolset([look_up]) as tools, pytest.raises(ToolError, match="rebuilt"):
        call(tools.open({}), "look_up")


def test_a_tool_that_takes_too_long_is_given_up():
    release = threading.Event()
    with Toolset([Tool(function=lambda: release.wait(60), name="sleep")], timeout_seconds=0.05) as tools:
        message = call(tools.open({}), "sleep")
        release.set()

    assert message["content"] == "sleep took more than 0.05 s, and nobody waits for it any longer"
    assert message["error"] is True


def test_a_coroutine_that_takes_too_long_is_cancelled():
    ended = threading.Event()

    async def sleep():
        try:
            await asyncio.sleep(600)
        finally:
            ended.set()

    with Toolset([sleep], timeout_seconds=0.05) as tools:
        message = call(tools.open({}), "sleep")

        assert ended.wait(60)
    assert message["content"].startswith("sleep took more than 0.05 s")


def test_coroutines_share_one_event_loop():
    loops = []

    async def where():
        loops.append(asyncio.get_running_loop())

    def handed_on():
        return where()

    with Toolset([where, handed_on]) as tools:
        session = tools.open({})
        for name in ("where", "where", "handed_on"):
            assert "error" not in call(session, name)

    assert len(loops) == 3
    assert len(set(loops)) == 1


def test_many_samples_call_at_once():
    together = threading.Barrier(8)

    def meet(number: int) -> int:
        together.wait(60)
        return number * 2

    with Toolset([meet]) as tools:
        found = {}

        def play(number):
            found[number] = call(tools.open({}), "meet", number=number)["content"]

        threads = [threading.Thread(target=play, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    assert found == {number: str(number * 2) for number in range(8)}


def test_calls_one_after_the_other_use_one_thread():
    threads = set()

    def note():
        threads.add(threading.get_ident())

    with Toolset([note]) as tools:
        for _ in range(20):
            call(tools.open({}), "note")

    assert len(threads) == 1


def test_a_closed_set_of_tools_leaves_no_threads():
    async def nothing():
        return None

    before = set(threading.enumerate())
    with Toolset([add, nothing]) as tools:
        call(tools.open({}), "add", a=1, b=2)
        call(tools.open({}), "nothing")
        assert set(threading.enumerate()) - before

    wait_until(lambda: not set(threading.enumerate()) - before)


def test_a_set_of_tools_is_made_anew_in_another_process():
    with Toolset([add], timeout_seconds=5) as tools:
        again = pickle.loads(pickle.dumps(tools))

    with again:
        assert again.timeout_seconds == 5
        assert call(again.open({}), "add", a=1, b=2)["content"] == "3"


# --- environments -----------------------------------------------------------------------------------------------------------


def test_every_sample_has_an_environment_of_its_own_made_from_its_row():
    with Toolset([Shop]) as tools:
        first, second = tools.open({"stock": {"tea": 1}}), tools.open({})

        assert [call(first, "buy", item="tea").get("error") for _ in range(2)] == [None, True]
        assert call(second, "buy", item="tea")["content"] == "one tea"
        assert first.state() == {"stock": {"tea": 0}, "till": 3}


def test_the_public_methods_are_the_tools():
    with Toolset([Shop]) as tools:
        assert [(told["name"], told["description"]) for told in tools.schemas] == [("buy", "Buys an item.")]


def test_a_sample_goes_on_with_the_state_that_was_stored():
    with Toolset([Shop]) as tools:
        session = tools.open({})
        call(session, "buy", item="tea")
        stored = json.loads(json.dumps(session.state()))

        resumed = tools.open({}, stored)
        assert resumed.state() == stored
        call(resumed, "buy", item="tea")
        assert call(resumed, "buy", item="tea")["content"] == "LookupError: no tea left"
        assert resumed.state() == {"stock": {"tea": 0}, "till": 6}


def test_a_stored_state_does_not_change_with_the_environment():
    with Toolset([Shop]) as tools:
        session = tools.open({})
        before = session.state()
        kept = copy.deepcopy(before)
        call(session, "buy", item="tea")

    assert before == kept


class Seats:
    """Keeps what JSON does not know, and says how it is stored."""

    def __init__(self):
        self.taken = set()

    def take(self, seat: int) -> str:
        self.taken.add(seat)
        return f"{len(self.taken)} taken"

    def snapshot(self):
        return sorted(self.taken)

    def restore(self, state):
        self.taken = set(state)


def test_an_environment_may_say_itself_what_its_state_is():
    with Toolset([Seats]) as tools:
        session = tools.open({})
        call(session, "take", seat=3)

        assert session.state() == [3]
        assert call(tools.open({}, [3]), "take", seat=4)["content"] == "2 taken"


def test_the_states_of_several_environments_stand_under_their_names():
    with Toolset([Shop, add, Seats]) as tools:
        session = tools.open({})
        call(session, "take", seat=3)
        state = session.state()

        assert state == {"Shop": {"stock": {"tea": 2}, "till": 0}, "Seats": [3]}
        assert tools.open({}, state).state() == state


def test_tools_without_environments_have_no_state():
    with Toolset([add]) as tools:
        assert tools.open({}).state() is None


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({1}, r"Held\.value is of the type set"),
        ((1, 2), r"Held\.value is of the type tuple"),
        ({1: 2}, r"Held\.value is a dict with keys that are no texts"),
        ({"a": [date(2026, 1, 2)]}, r"Held\.value\['a'\]\[0\] is of the type date"),
    ],
)
def test_a_state_that_cannot_be_stored_is_refused_when_the_sample_begins(value, said):
    class Held:
        def __init__(self):
            self.value = value

        def tool(self):
            return None

    with Toolset([Held]) as tools, pytest.raises(ConfigurationError, match=said):
        tools.open({})


def test_a_private_client_is_no_state_but_private_data_is():
    class Bank:
        def __init__(self):
            self._client = threading.Lock()
            self._balance = 5

        def pay(self, amount: int):
            self._balance -= amount

    with Toolset([Bank]) as tools:
        session = tools.open({})
        call(session, "pay", amount=2)

        assert session.state() == {"_balance": 3}


def test_an_attribute_that_was_removed_stays_removed():
    class Door:
        def __init__(self):
            self.key = "k"

        def throw_key_away(self):
            del self.key

        def open_door(self):
            return hasattr(self, "key")

    with Toolset([Door]) as tools:
        session = tools.open({})
        call(session, "throw_key_away")

        assert call(tools.open({}, session.state()), "open_door")["content"] == "false"


def test_calls_of_one_sample_to_its_environment_follow_each_other():
    class Counter:
        def __init__(self):
            self.count = 0

        def up(self):
            seen = self.count
            time.sleep(0.005)
            self.count = seen + 1

    with Toolset([Counter]) as tools:
        session = tools.open({})
        threads = [threading.Thread(target=call, args=(session, "up")) for _ in range(10)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        assert session.state() == {"count": 10}


def test_while_a_call_that_was_given_up_goes_on_the_state_is_the_one_before_it():
    release = threading.Event()

    class Slow:
        def __init__(self):
            self.steps = 0

        def step(self, wait: bool):
            self.steps += 1
            if wait:
                release.wait(60)

    with Toolset([Slow], timeout_seconds=0.1) as tools:
        session = tools.open({})
        call(session, "step", wait=False)
        assert session.state() == {"steps": 1}
        assert "took more than" in call(session, "step", wait=True)["content"]

        assert session.state() == {"steps": 1}
        again = call(session, "step", wait=False)
        assert again["content"] == "step was not called: an earlier call that took too long is still going on"
        release.set()
        until = time.monotonic() + 60
        while session.state() != {"steps": 2} and time.monotonic() < until:
            time.sleep(0.01)
        assert session.state() == {"steps": 2}


def test_async_methods_and_options_belong_to_environments_too():
    class Till:
        def __init__(self, row, currency="EUR"):
            self.currency = currency
            self.total = row["begins_with"]

        async def put(self, amount: int):
            await asyncio.sleep(0)
            self.total += amount
            return f"{self.total} {self.currency}"

    with Toolset([functools.partial(Till, currency="USD")]) as tools:
        assert call(tools.open({"begins_with": 1}), "put", amount=2)["content"] == "3 USD"


def test_environments_of_one_sample_know_those_before_them():
    class Ledger:
        def __init__(self):
            self.lines = []

        def read_ledger(self):
            return self.lines

    class Desk:
        def __init__(self, environments):
            (self._ledger,) = environments

        def write(self, line: str):
            self._ledger.lines.append(line)

    with Toolset([Ledger, Desk]) as tools:
        session = tools.open({})
        call(session, "write", line="a")

        assert call(session, "read_ledger")["content"] == '["a"]'


def test_environments_are_closed_with_their_sample():
    closed = []

    class Connection:
        def ask(self):
            return "?"

        def close(self):
            closed.append(self)

    with Toolset([Connection]) as tools:
        assert [told["name"] for told in tools.schemas] == ["ask"]
        tools.open({}).close()

    assert len(closed) == 1


def test_an_environment_may_take_its_time_to_close_and_fail_at_it(caplog):
    closed = []

    class Connection:
        def ask(self):
            return "?"

        async def close(self):
            await asyncio.sleep(0)
            closed.append(self)

    class Broken(Connection):
        ask_again = Connection.ask
        ask = None

        def close(self):
            raise OSError("gone")

    with Toolset([Connection, Broken]) as tools:
        tools.open({}).close()

    assert len(closed) == 1
    assert "an environment could not be closed: OSError: gone" in caplog.text


def test_an_environment_that_cannot_be_made_for_a_row_fails_the_sample():
    class Picky:
        def __init__(self, row):
            self.value = row["value"]

        def tool(self):
            return None

    with Toolset([Picky]) as tools, pytest.raises(ToolError, match="Picky could not be made for this sample: KeyError"):
        tools.open({})


def test_an_environment_that_cannot_tell_or_take_its_state_fails_the_sample():
    class Torn:
        def __init__(self, row):
            self._row = row

        def tool(self):
            return None

        def snapshot(self):
            return 1 / self._row["divisor"]

        def restore(self, state):
            self.restored = state["missing"]

    with Toolset([Torn]) as tools:
        with pytest.raises(ToolError, match=r"Torn\.snapshot failed: ZeroDivisionError"):
            tools.open({"divisor": 0})
        with pytest.raises(ToolError, match=r"Torn\.restore failed: KeyError: 'missing'"):
            tools.open({"divisor": 1}, {})


def test_an_object_is_shared_by_all_samples_and_has_no_state():
    shop = Shop({})
    with Toolset([shop]) as tools:
        call(tools.open({}), "buy", item="tea")
        session = tools.open({})
        call(session, "buy", item="tea")

        assert shop.till == 6
        assert session.state() is None


def test_one_method_of_an_object_is_a_tool():
    with Toolset([Shop({}).buy]) as tools:
        assert [told["name"] for told in tools.schemas] == ["buy"]
        assert call(tools.open({}), "buy", item="tea")["content"] == "one tea"


# --- by name ----------------------------------------------------------------------------------------------------------------


@pytest.fixture
def shop_file(tmp_path):
    file = tmp_path / "shop_of_tools_test.py"
    file.write_text(
        "class Shop:\n"
        "    def __init__(self, row, currency='EUR'):\n"
        "        self.currency = currency\n"
        "    def price(self) -> str:\n"
        "        return f'3 {self.currency}'\n"
        "def add(a: int, b: int) -> int:\n"
        "    return a + b\n"
    )
    yield file
    sys.modules.pop(file.stem, None)


def test_tools_of_a_file_are_found(shop_file):
    with Toolset([f"{shop_file}:add", f"{shop_file}:Shop(currency='USD')"]) as tools:
        session = tools.open({})

        assert call(session, "add", a=1, b=2)["content"] == "3"
        assert call(session, "price")["content"] == "3 USD"


def test_tools_of_a_module_are_found():
    with Toolset(["math:sqrt"]) as tools:
        assert call(tools.open({}), "sqrt", x=9)["content"] == "3.0"


@pytest.fixture
def registered():
    before = set(TOOLS.names())
    yield
    for name in set(TOOLS.names()) - before:
        del TOOLS._targets[name]


@pytest.mark.usefixtures("registered")
def test_a_registered_tool_is_known_by_its_name():
    themis.register_tool("sum_up", add)
    themis.register_tool("small_shop", Shop)

    with Toolset(["sum_up", "small_shop"]) as tools:
        assert [told["name"] for told in tools.schemas] == ["sum_up", "buy"]
        assert call(tools.open({}), "sum_up", a=1, b=2)["content"] == "3"


@pytest.mark.usefixtures("registered")
def test_what_is_no_tool_cannot_be_registered():
    with pytest.raises(ConfigurationError, match="a tool is registered itself, and not by a text, got 'mcp:server'"):
        themis.register_tool("server", "mcp:server")
    with pytest.raises(ConfigurationError, match="list has no public methods, so it offers no tools"):
        themis.register_tool("nothing", [])
    with pytest.raises(ConfigurationError, match=r"a tool's name has 1 to 64 letters, digits, - and _, got 'my tool'"):
        themis.register_tool("my tool", add)


class Needy:
    def __init__(self, currency):
        self.currency = currency

    def tool(self):
        return None


class HalfStored(Shop):
    def snapshot(self):
        return {}


@pytest.mark.parametrize(
    ("tools", "said"),
    [
        ("python", r"tools is a list, as in tools=\[search\]"),
        (["pyton"], r"unknown tool 'pyton' \(did you mean 'python'\?\); known: python, shell"),
        (["nowhere.py:f"], "nowhere.py"),
        (["math:sqr"], "math has no 'sqr'"),
        (["math:sqrt(x=1)"], "takes no options"),
        (["math"], "unknown tool 'math'"),
        ([lambda x: x], "got '<lambda>'; give it one with Tool"),
        ([add, add], "two tools are called 'add': one of add and one of add"),
        ([{"name": "add"}], "dict has no public methods"),
        (
            [Tool(function=add, parameters={"type": "strin"})],
            "the parameters of tool 'add' are no JSON schema: 'strin'",
        ),
        ([None], "NoneType has no public methods"),
        ([Needy], r"its constructor needs 'currency'.*functools\.partial\(Needy, currency=\.\.\.\)"),
        ([HalfStored], r"has one of snapshot\(\) and restore\(state\)"),
    ],
)
def test_what_is_no_tool_is_refused_before_the_first_call(tools, said):
    with pytest.raises(ConfigurationError, match=said):
        Toolset(tools)


def test_options_of_a_tool_by_name_are_checked(shop_file):
    with pytest.raises(ConfigurationError, match=r"did you mean 'currency'\?\); its options are row, currency"):
        Toolset([f"{shop_file}:Shop(curency='USD')"])


@pytest.mark.parametrize("options", [{"timeout_seconds": 0}, {"result_kb": 0}])
def test_limits_that_allow_nothing_are_refused(options):
    with pytest.raises(ConfigurationError, match="timeout_seconds is more than 0, and result_kb at least 1"):
        Toolset([add], **options)


# --- identity ---------------------------------------------------------------------------------------------------------------


def described(tools, **options):
    with Toolset(tools, **options) as made:
        return json.dumps(made.describe(), sort_keys=True)


def test_tools_are_known_by_their_code_and_what_it_reads(tmp_path):
    def written(text):
        file = tmp_path / "tool_known_by_code.py"
        file.write_text(text)
        return described([f"{file}:rate"])

    first = written("RATE = 2\ndef rate(x: int): return x * RATE\n")

    assert written("RATE = 2\ndef rate(x: int): return x * RATE  # the same\n") == first
    assert written("RATE = 3\ndef rate(x: int): return x * RATE\n") != first
    assert written("RATE = 2\ndef rate(x: int): return RATE * x\n") != first
    sys.modules.pop("tool_known_by_code", None)


def test_whatever_decides_what_tools_do_is_part_of_their_identity():
    plain = described([add])

    assert described([add]) == plain
    assert described([add, Shop]) != plain
    assert described([add], timeout_seconds=1) != plain
    assert described([add], result_kb=1) != plain
    assert described([Tool(function=add, description="Otherwise.")]) != plain
    assert described([functools.partial(add, b=1)]) != described([functools.partial(add, b=2)])


# --- cost -------------------------------------------------------------------------------------------------------------------


def test_a_call_costs_little_beside_the_tool_itself():
    with Toolset([add, Shop]) as tools:
        session = tools.open({"stock": {"tea": 10_000}})
        call(session, "add", a=1, b=2)
        took = []
        for _ in range(200):
            began = time.thread_time()
            call(session, "buy", item="tea")
            session.state()
            took.append(time.thread_time() - began)

    assert sorted(took)[len(took) // 2] < 0.003
