"""`themis memory`: what commands print, where, and with which exit code."""

from __future__ import annotations

import json
import logging
import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.memory.small_tests import store_in
from tests.memory.test_configuration import GOOD
from themis.cli import themis
from themis.cli.memory import memory
from themis.exceptions import ConfigurationError
from themis.memory.master_log import from_master_log, to_master_log
from themis.memory.tape import read_entries

pytestmark = pytest.mark.usefixtures("registered")


@pytest.fixture
def configuration(tmp_path) -> str:
    path = tmp_path / "small.yml"
    path.write_text(GOOD)
    return str(path)


def call(tmp_path: Path, *arguments: str, ok: bool = True) -> Result:
    storage = [] if arguments[0] == "plan" else ["--storage", str(tmp_path / "store")]
    result = CliRunner().invoke(memory, [*arguments, *storage])
    if ok and result.exception is not None:
        raise result.exception
    return result


def themis_command(tmp_path: Path, *arguments: str) -> Result:
    return CliRunner().invoke(themis, [*arguments, "--storage", str(tmp_path / "store")], standalone_mode=False)


def test_a_run_prints_scores_by_dataset_and_the_same_command_resumes_it(tmp_path, configuration):
    first = call(tmp_path, "run", "-c", configuration, "-a", "oracle", "-y")
    second = call(tmp_path, "run", "-c", configuration, "-a", "oracle", "-y", "--json")

    assert "Cities" in first.stdout
    assert "starting small - oracle: 3 tests" in first.stderr
    assert "resuming small - oracle" in second.stderr
    printed = json.loads(second.stdout)
    assert printed["scores"] == {"Cities - 0": 1.0, "Cities - 1": 1.0, "Orders - 0": None}
    assert printed["status"] == "completed"


def test_turns_are_printed_as_json_lines_with_the_promised_fields(tmp_path, configuration):
    call(tmp_path, "run", "-c", configuration, "-a", "oracle")

    whole = [json.loads(line) for line in call(tmp_path, "turns", "small - oracle", "--json").stdout.splitlines()]
    one = [json.loads(line) for line in
           call(tmp_path, "turns", "small - oracle", "--json", "--test", "Cities - 1").stdout.splitlines()]  # fmt: skip

    fields = {
        "seq",
        "test_id",
        "kind",
        "message",
        "reply",
        "question",
        "presupplied",
        "now",
        "tokens_total",
        "cost_usd",
    }
    assert all(fields <= set(entry) for entry in whole)
    assert {entry["kind"] for entry in whole} >= {"intro", "say", "ask", "fill", "begin", "wait", "consult", "end"}
    assert {entry["test_id"] for entry in one} == {"Cities - 1"}
    assert [entry for entry in whole if entry["test_id"] == "Cities - 1"] == one
    asked = next(entry for entry in one if entry["question"])
    assert asked["message"] == "Where do I live?"
    assert asked["reply"] in ("Lima", "Oslo", "Quito", "Rabat", "Turin")
    assert any(entry["presupplied"] for entry in whole)


def test_turns_for_people_show_no_control_characters(tmp_path, configuration):
    call(tmp_path, "run", "-c", configuration, "-a", "parrot")

    shown = call(tmp_path, "turns", "small - parrot").stdout

    assert "Where do I live? -> Where do I live?" in shown
    assert all(character.isprintable() or character == "\n" for character in shown)


def test_a_plan_needs_no_agent_and_draws_the_chart(tmp_path, configuration):
    drawn = call(tmp_path, "plan", "-c", configuration, "-a", "openai/gpt-4o").stdout
    counted = json.loads(call(tmp_path, "plan", "-c", configuration, "--json").stdout)

    assert re.search(r"^Cities - 0 +█─+█─+█─+█$", drawn, re.MULTILINE)
    assert re.search(r"tokens, of them filler \d+\.\d%; idle filler \d+\.\d%", drawn)
    assert "about $" in drawn
    assert "price not known" in call(tmp_path, "plan", "-c", configuration, "-a", "http://localhost:1").stdout
    given = json.loads(call(tmp_path, "plan", "-c", configuration, "-a", "cost(1,0)", "--json").stdout)
    assert given["cost_usd"] == pytest.approx(given["prompt_tokens"] / 1_000)
    assert counted["tokens"] > 1_000
    assert counted["idle_filler_share"] == counted["filler_share"] > 0
    assert counted["most_at_once"] == 1  # cities and orders interfere
    assert not (tmp_path / "store").exists()


def test_a_plan_is_what_a_run_with_a_perfect_agent_becomes(tmp_path, configuration):
    planned = json.loads(call(tmp_path, "plan", "-c", configuration, "--json").stdout)
    played = json.loads(call(tmp_path, "run", "-c", configuration, "-a", "oracle", "--json").stdout)

    assert planned["tokens"] == played["memory"]["conversation_tokens"]
    assert planned["exchanges"] == played["memory"]["turns"]


def test_isolated_runs_have_a_name_of_their_own_and_may_run_side_by_side(tmp_path, configuration):
    played = json.loads(
        call(
            tmp_path, "run", "-c", configuration, "-a", "window", "-m", "500", "-i", "--parallel", "3", "--json"
        ).stdout
    )

    assert played["run_id"] == "small - window 500 (isolated)"
    assert played["scores"]["Cities - 0"] == 1.0
    with pytest.raises(ConfigurationError, match="--workers needs -i"):
        call(tmp_path, "run", "-c", configuration, "-a", "oracle", "--parallel", "2")


def test_definitions_are_listed_shown_and_exported(tmp_path, configuration):
    call(tmp_path, "run", "-c", configuration, "-a", "oracle")

    assert "small" in call(tmp_path, "definitions", "list").stdout
    assert "Cities - 0" in call(tmp_path, "definitions", "show", "small").stdout
    call(tmp_path, "definitions", "export", "small", "--to", str(tmp_path / "out"))
    assert sorted(path.name for path in (tmp_path / "out" / "Cities").iterdir()) == ["0.def.json", "1.def.json"]
    again = call(tmp_path, "run", "-c", configuration, "-a", "oracle", "--definitions", str(tmp_path / "out"), "--json")
    assert json.loads(again.stdout)["scores"]["Cities - 0"] == 1.0


def test_a_budget_that_is_used_up_ends_the_run_as_interrupted_and_names_the_way_on(tmp_path, configuration):
    stopped = themis_command(tmp_path, "memory", "run", "-c", configuration, "-a", "cost(1,1)", "--budget-usd", "1")

    assert stopped.return_value == 130
    assert "budget_usd=1 allows no further call" in stopped.stderr
    assert f"themis resume 'small - cost(1-1)' --storage {tmp_path / 'store'}" in stopped.stderr
    assert store_in(tmp_path).list_runs(kind="memory")[0].status.value == "interrupted"


def test_resume_goes_on_with_a_memory_run_by_its_name_alone(tmp_path, configuration):
    call(tmp_path, "run", "-c", configuration, "-a", "cost(1,1)", "--budget-usd", "1", ok=False)
    before = len(list(store_in(tmp_path).reader("small - cost(1-1)").turns()))

    again = themis_command(tmp_path, "resume", "small - cost(1-1)", "--json")
    enough = themis_command(tmp_path, "resume", "small - cost(1-1)", "--budget-usd", "1000", "--json")

    assert (again.return_value, json.loads(again.stdout)["status"]) == (130, "interrupted")
    assert (enough.return_value, json.loads(enough.stdout)["status"]) == (0, "completed")
    assert len(list(store_in(tmp_path).reader("small - cost(1-1)").turns())) > before


def test_a_run_of_an_imported_log_cannot_be_resumed_and_says_so(tmp_path, configuration):
    call(tmp_path, "run", "-c", configuration, "-a", "oracle")
    call(tmp_path, "log", "export", "small - oracle", "--to", str(tmp_path / "log.jsonl"))
    call(tmp_path, "log", "import", str(tmp_path / "log.jsonl"), "--run-id", "copy")

    refused = themis_command(tmp_path, "resume", "copy")

    assert isinstance(refused.exception, ConfigurationError)
    assert "does not say how it was started" in str(refused.exception)


def test_a_run_can_be_made_again_by_the_command_it_keeps(tmp_path, configuration):
    options = ("-m", "500", "--span", "2k", "--seed", "3", "--clock", "signal", "--max-message-tokens", "300", "-i")
    call(tmp_path, "run", "-c", configuration, "-a", "window", *options)

    again = themis_command(tmp_path, "reproduce", "small 2000 s3 - window 500 (isolated)", "--run", "--as", "again")

    assert again.exit_code == 0, again.stderr
    assert "both manifests agree" in again.stderr
    storage = store_in(tmp_path)
    said = [
        [(entry["message"], entry["reply"]) for entry in read_entries(storage.reader(run).turns())]
        for run in ("again", "small 2000 s3 - window 500 (isolated)")
    ]
    assert said[0] == said[1]


def test_a_key_of_the_agent_reaches_neither_the_store_nor_the_command_that_is_kept(tmp_path, configuration):
    key, address = "k3y-that-nobody-may-see", "http://user:passw0rd-of-mine@127.0.0.1:9/"
    options = ("--option", f'headers={{"X-Api-Key": "{key}"}}', "--option", "attempts=1")
    call(tmp_path, "run", "-c", configuration, "-a", address, *options, "--run-id", "web", ok=False)

    shown = themis_command(tmp_path, "reproduce", "web")

    stored = b"".join(path.read_bytes() for path in (tmp_path / "store").rglob("*") if path.is_file())
    assert b"attempts" in stored
    assert key.encode() not in stored
    assert b"passw0rd-of-mine" not in stored
    assert "--option attempts=1" in shown.stdout
    assert "'headers' is a secret and not stored" in shown.stderr


def test_another_span_or_seed_has_definitions_of_its_own(tmp_path, configuration):
    call(tmp_path, "run", "-c", configuration, "-a", "oracle")
    call(tmp_path, "run", "-c", configuration, "-a", "oracle", "--span", "3k", "--seed", "5")

    assert {one.name for one in store_in(tmp_path).list_definitions()} == {"small", "small 3000 s5"}
    with pytest.raises(ConfigurationError, match="such as 2000, 8k or 1M, got '8kb'"):
        call(tmp_path, "run", "-c", configuration, "-a", "oracle", "--span", "8kb")


def test_debug_logs_every_exchange(tmp_path, caplog):
    path = tmp_path / "loud.yml"
    path.write_text(GOOD.replace("run_name: small", "run_name: small\n  debug: true"))

    call(tmp_path, "run", "-c", str(path), "-a", "oracle")

    logging.getLogger("themis.memory").setLevel(logging.NOTSET)
    assert any("Cities - 0: I live in" in message for message in caplog.messages)


def test_a_wrong_agent_leaves_no_run_behind(tmp_path, configuration):
    with pytest.raises(ConfigurationError, match="did you mean 'oracle'"):
        call(tmp_path, "run", "-c", configuration, "-a", "oracel")

    assert store_in(tmp_path).list_runs(kind="memory") == []


def test_a_conversation_goes_out_as_a_master_log_and_comes_back(tmp_path, configuration):
    call(tmp_path, "run", "-c", configuration, "-a", "oracle")
    target = tmp_path / "master_log.jsonl"

    written = call(tmp_path, "log", "export", "small - oracle", "--to", str(target))
    call(tmp_path, "log", "import", str(target), "--run-id", "copy")

    assert (written.stdout, written.stderr) == ("", f"wrote {target}\n")
    events = [json.loads(line) for line in target.read_text().splitlines()]
    assert {event["type"] for event in events} >= {0, 1, 2, 3, 4, 5, 6, 8}
    assert all(set(event) == {"type", "timestamp", "test_id", "data"} for event in events)
    storage = store_in(tmp_path)

    def said(run: str) -> list[object]:
        return [
            (entry["test_id"], entry["message"], entry["reply"], entry["question"])
            for entry in read_entries(storage.reader(run).turns())
            if entry["kind"] in ("say", "ask", "fill", "intro", "forget")
        ]

    assert said("copy") == said("small - oracle")
    again = to_master_log(from_master_log(target.read_text().splitlines()))
    assert next(again).startswith('{"type": 3')
