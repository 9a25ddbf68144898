"""A real model in the process answers Countdown rows from end to end, and says the same when asked again."""

from __future__ import annotations

from pathlib import Path

import pytest

import themis
from themis.core.entities import ExperimentReport

# Three numbers and two operations: the shape of an answer, so that even a weak model plays by the rules of the form.
EXPRESSION = 'root ::= num (" " op " " num){2}\nnum ::= [0-9]{1,3}\nop ::= [-+*/]'


def play(storage: Path, run_id: str, workers: int) -> ExperimentReport:
    return themis.evaluate(
        "countdown-3",
        model="local/smollm2",
        limit=4,
        max_tokens=24,
        run_id=run_id,
        workers=workers,
        storage=storage,
        provider_options={"grammar": EXPRESSION, "context_tokens": 1024},
        progress=False,
    )


@pytest.mark.model
def test_countdown_is_answered_by_the_embedded_model_and_the_answers_do_not_change(tmp_path):
    first, second = play(tmp_path, "first", workers=1), play(tmp_path, "second", workers=2)

    said = [
        {r.task.metadata["dataset_id"]: r.output.text for r in report.generation_results} for report in (first, second)
    ]
    assert len(said[0]) == 4
    assert said[0] == said[1]
    assert all(text.strip() for text in said[0].values())
    (metric,) = first.evaluation_report.metrics
    scored = first.metric(metric)
    assert (scored.count, scored.failed) == (4, 0)
    assert second.metric(metric).mean == scored.mean
    assert first.metadata["cost"]["total_cost"] == 0.0
    assert first.metadata["cost"]["token_counts"]["completion_tokens"] > 0
