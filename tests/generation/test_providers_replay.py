"""Answers that were given before, from a stored run."""

from __future__ import annotations

import pytest

from themis.core.entities import GenerationRecord, ModelError, ModelOutput
from themis.exceptions import ProviderCallError
from themis.generation.providers import create_provider


def stored(task, records):
    """What the caller hands in: a look-up by item."""
    return create_provider(
        "replay", {"answers": lambda asked: records.get(asked.metadata["dataset_id"])}, model_identifier="run-1"
    )


def test_a_stored_answer_is_given_again(task):
    asked = task()
    output = ModelOutput(text="42", raw={"id": "1"}, finish_reason="stop", usage={"prompt_tokens": 3})
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
