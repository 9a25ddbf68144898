"""The page of one sample: what was asked, answered, judged, and why."""

from __future__ import annotations

import re
from typing import Any

from fastapi.testclient import TestClient

import themis
from themis.core.continuations import option_continuations
from themis.core.entities import GenerationRecord, GenerationTask, ModelOutput
from themis.evaluation.extractors import IdentityExtractor
from themis.evaluation.judges import RubricJudge
from themis.evaluation.pipeline import EvaluationPipeline
from themis.interfaces import StatelessTaskExecutor
from themis.server import create_app


class Lenient(StatelessTaskExecutor):
    """A judge that is content with everything, and says so at the second time of asking."""

    def __init__(self, **options: Any) -> None:
        pass

    def execute(self, task: GenerationTask) -> GenerationRecord:
        asked_again = "could not be used" in task.prompt.text
        said = '{"verdict": "pass", "reason": "<b>fine</b>"}' if asked_again else "I like it."
        return GenerationRecord(task, ModelOutput(said), None)


def test_the_page_of_a_sample_shows_what_the_judge_was_asked_and_replied(tmp_path):
    themis.register_provider("lenient", Lenient)
    judge = RubricJudge(model="lenient:m", instructions="Mind the tone.")
    pipeline = EvaluationPipeline(extractor=IdentityExtractor(), metrics=[judge])
    rows = [{"id": "q1", "question": "How are you?", "answer": "Well."}]
    fixed = {"model": "fake/perfect", "prompt": "{question}", "run_id": "judged", "storage": tmp_path}
    themis.evaluate(rows, evaluation_pipeline=pipeline, **fixed)

    with TestClient(create_app(tmp_path), base_url="http://127.0.0.1") as client:
        page = client.get("/runs/judged/sample?item=q1").text

    assert "What the judge was asked and replied" in page
    assert page.count("Mind the tone.") == 2
    assert "I like it." in page
    assert "&lt;b&gt;fine&lt;/b&gt;" in page


def test_the_page_of_a_row_with_continuations_is_a_table_of_their_log_probabilities(tmp_path):
    fields = option_continuations(["<i>red</i>", "blue"], baseline="")
    rows = [{"id": "q1", "question": "Which colour?", **fields, "answer": 0}]
    report = themis.evaluate(
        rows, model="fake/likelihood", prompt="{question}", run_id="r", storage=tmp_path, progress=False
    )
    scored = report.generation_results[0].output.raw["continuations"]

    with TestClient(create_app(tmp_path), base_url="http://127.0.0.1") as client:
        page = client.get("/runs/r/sample?item=q1").text

    table = page.partition("Log-probability</th>")[2].partition("</table>")[0]
    lines = [" ".join(re.sub(r"<[^>]+>", " ", line).split()) for line in table.split("<tr>")[1:]]
    assert ["Log-probabilities" in page, len(lines)] == [True, 4]
    for line, one in zip(lines, scored, strict=True):
        assert f"{one['logprob']:.4f}" in line
    assert "&lt;i&gt;red&lt;/i&gt;" in lines[0]
    assert [line.startswith("the prompt") for line in lines] == [True, True, False, False]
    assert ["baseline" in line for line in lines] == [False, False, True, True]
    assert sum("likeliest" in line for line in lines) == 1
