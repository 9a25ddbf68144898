"""Answers that were given before: from a stored run, and from a cassette."""

from __future__ import annotations

import json

import pytest

from themis.core.entities import GenerationRecord, ModelError, ModelOutput
from themis.exceptions import ConfigurationError, ProviderCallError
from themis.generation.providers import create_provider

KEY = "sk-a-key-that-must-never-be-shown"


def stored(task, records):
    """What the caller hands in: a look-up by item."""
    return create_provider(
        "replay", {"answers": lambda asked: records.get(asked.metadata["dataset_id"])}, model_identifier="run-1"
    )


def test_a_stored_answer_is_given_again(task):
    asked = task()
    output = ModelOutput(text="42", raw={"finish_reason": "stop"}, usage={"prompt_tokens": 3})
    record = stored(task, {"row-7": GenerationRecord(task=task("other"), output=output, error=None)}).execute(asked)

    assert record.task is asked
    assert record.output == output
    assert record.metrics == {"replayed": "run-1"}


def test_an_item_that_the_run_did_not_answer_is_named_and_final(task):
    with pytest.raises(ProviderCallError, match="'run-1' has no stored answer for item 'row-7'") as raised:
        stored(task, {}).execute(task())

    assert raised.value.retryable is False


def test_an_item_that_the_run_failed_on_fails_again(task):
    failed = GenerationRecord(task=task(), output=None, error=ModelError("timed out"))
    with pytest.raises(ProviderCallError, match="timed out"):
        stored(task, {"row-7": failed}).execute(task())


def recording(server, cassette, mode="auto", **options):
    return create_provider(
        "recording",
        {"cassette": cassette, "mode": mode, "options": {"base_url": server.address("/v1"), "api_key": KEY, **options}},
        model_identifier="openai/gpt-x",
    )


async def ask(provider, task):
    try:
        return (await provider.execute(task)).output
    finally:
        await provider.aclose()


@pytest.fixture
def cassette(tmp_path):
    return tmp_path / "tapes" / "answers.jsonl"


async def test_what_was_recorded_is_replayed_without_a_call(server, task, cassette):
    asked = task(model="openai/gpt-x", provider="recording")
    first = await ask(recording(server, cassette), asked)
    second = await ask(recording(server, cassette), asked)
    third = await ask(recording(server, cassette, mode="replay"), asked)

    assert first == second == third
    assert len(server.seen) == 1
    assert server.last.body["model"] == "gpt-x"


async def test_anything_that_changes_the_answer_is_asked_again(server, task, cassette):
    for changes in ({}, {"text": "another"}, {"temperature": 0.7}, {"metadata": {"attempts": 1}}):
        await ask(recording(server, cassette), task(model="openai/gpt-x", **changes))
    await ask(recording(server, cassette, system_prompt="Be brief."), task(model="openai/gpt-x"))

    assert len(server.seen) == 5


async def test_another_key_or_timeout_is_not_another_question(server, task, cassette):
    await ask(recording(server, cassette), task(model="openai/gpt-x"))
    await ask(recording(server, cassette, timeout=5), task(model="openai/gpt-x"))

    assert len(server.seen) == 1


async def test_recording_always_asks_and_the_newest_answer_counts(server, task, completion, cassette):
    asked = task(model="openai/gpt-x")
    for text in ("old", "new"):
        server.says(completion(text))
        await ask(recording(server, cassette, mode="record"), asked)

    assert (await ask(recording(server, cassette, mode="replay"), asked)).text == "new"


async def test_replaying_what_was_never_recorded_is_a_failure_that_names_it(server, task, cassette):
    with pytest.raises(ProviderCallError, match=r"answers\.jsonl holds no answer of openai:gpt-x for item 'row-7'"):
        await ask(recording(server, cassette, mode="replay"), task(model="openai/gpt-x"))

    assert server.seen == []


async def test_failures_are_not_recorded(server, task, completion, cassette):
    asked = task(model="openai/gpt-x")
    server.says({}, status=503)
    with pytest.raises(ProviderCallError):
        await ask(recording(server, cassette), asked)
    server.says(completion("well again"))

    assert (await ask(recording(server, cassette), asked)).text == "well again"


async def test_no_secret_is_on_the_cassette(server, task, cassette):
    await ask(recording(server, cassette, extra_headers={"X-Token": KEY}), task(model="openai/gpt-x"))

    assert KEY not in cassette.read_text()
    assert json.loads(cassette.read_text())["text"] == "95 - (21 / 3)"


async def test_a_line_that_was_cut_off_is_passed_over(server, task, cassette):
    asked = task(model="openai/gpt-x")
    await ask(recording(server, cassette), asked)
    with cassette.open("ab") as file:
        file.write(b'{"key": "half')

    assert (await ask(recording(server, cassette, mode="replay"), asked)).text == "95 - (21 / 3)"


async def test_a_file_that_is_no_cassette_is_refused(server, task, cassette):
    cassette.parent.mkdir()
    cassette.write_text('{"some": "other file"}\n')

    with pytest.raises(ConfigurationError, match="line 1"):
        await ask(recording(server, cassette), task(model="openai/gpt-x"))


async def test_sync_providers_are_recorded_too(task, cassette):
    provider = create_provider("recording", {"cassette": cassette}, model_identifier="fake/perfect")

    assert (await ask(provider, task(model="fake/perfect", reference="42"))).text == "42"


def test_an_unknown_mode_names_the_known_ones(cassette):
    with pytest.raises(ConfigurationError, match="auto, record, replay"):
        create_provider("recording", {"cassette": cassette, "mode": "rewind"})
