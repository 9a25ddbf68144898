"""What a newcomer gets wrong is told before a call is made: the endpoint counts, and has nothing to count."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import themis as package
from tests.faults.conftest import CommandLine, Fault
from tests.stories.endpoint import Endpoint
from themis.cli import main
from themis.comparison import compare_runs
from themis.core.entities import GenerationRecord, GenerationTask, MetricScore, ModelOutput
from themis.evaluation.extractors import IdentityExtractor
from themis.evaluation.metrics import ExactMatch
from themis.evaluation.pipeline import EvaluationPipeline
from themis.evaluation.strategies import PassAtK
from themis.exceptions import ConfigurationError, DatasetError, ProviderError, ThemisError
from themis.experiment.assemble import stored_pipeline
from themis.generation.providers import PROVIDERS, parse_model
from themis.generation.templates import PromptTemplate, TemplateRenderingError
from themis.memory.agents import register_agent
from themis.runs.judging import rejudge
from themis.storage import ExperimentStorage

Evaluate = Callable[..., tuple[int, str]]

ROWS = [{"id": n, "question": f"say {n}", "answer": str(n)} for n in range(4)]


@pytest.fixture
def rows(tmp_path: Path) -> str:
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    return path.name


@pytest.fixture
def no_call(endpoint: Endpoint) -> Iterator[dict[str, str]]:
    """Variables that lead to the endpoint, which must not hear of it."""
    before = endpoint.calls.total()
    yield {"OPENAI_BASE_URL": endpoint.url, "OPENAI_API_KEY": "sk-none"}
    assert endpoint.calls.total() == before


@pytest.fixture
def evaluate(
    tmp_path: Path,
    rows: str,
    no_call: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Evaluate:
    """`themis eval rows.jsonl WORDS` in this process, against the endpoint: the exit code, and what it complained of."""
    monkeypatch.chdir(tmp_path)
    for name, value in no_call.items():
        monkeypatch.setenv(name, value)

    def run(*words: str) -> tuple[int, str]:
        with pytest.raises(SystemExit) as ended:
            main(["eval", rows, *words])
        return int(str(ended.value.code)), capsys.readouterr().err

    return run


class Duck:
    """A provider as one writes it who has not read of a base class."""

    asked: list[str]

    def __init__(self) -> None:
        Duck.asked = []

    def execute(self, task: GenerationTask) -> GenerationRecord:
        Duck.asked.append(task.prompt.text)
        return GenerationRecord(task=task, output=ModelOutput(text=task.prompt.text.removeprefix("say ")), error=None)


class Silent:
    """Has no method at all."""


@pytest.fixture
def duck(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(PROVIDERS, "_targets", {name: PROVIDERS.target(name) for name in PROVIDERS.names()})
    Duck.asked = []
    package.register_provider("duck", Duck)
    return "duck/quack"


def ask(tmp_path: Path, dataset: Any = ROWS, **changes: Any) -> Any:
    return package.evaluate(
        dataset, **{"model": "duck/quack", "prompt": "{question}", "storage": tmp_path / "runs", **changes}
    )


# --- prompts --------------------------------------------------------------------------------------------------------


@pytest.mark.fault(
    area="Before the first call",
    wrong="Fields in single and in double braces in one prompt: `{{question}} ({topic})`",
    does="Refuses, and says to write `{question}`",
    status="–",
    exit_code=2,
)
def test_fields_in_both_kinds_of_braces_are_refused(
    themis: CommandLine, rows: str, no_call: dict[str, str], fault: Fault
):
    done = themis("eval", rows, "-m", "openai/good", "--prompt", "Q: {{ question }} ({id})", **no_call)

    assert done.returncode == fault.exit_code
    assert "has 'question' between literal braces" in done.stderr
    assert "Write {question}, with single braces" in done.stderr


@pytest.mark.fault(
    area="Before the first call",
    wrong="A prompt that uses no field of the row",
    does="Refuses, and names the fields; a constant prompt can be meant knowingly",
    status="–",
    exit_code=2,
)
def test_a_prompt_without_a_field_is_refused(evaluate: Evaluate, fault: Fault):
    code, said = evaluate("-m", "openai/good", "--prompt", "Answer $question")

    assert code == fault.exit_code
    assert "uses no field of the row, which has id, question, answer" in said


@pytest.mark.parametrize("text", ["{{question}} ({topic})", "{{ question|trim }} {topic}", "Hello", ""])
def test_a_prompt_that_only_seems_to_ask_is_refused(tmp_path: Path, duck: str, text: str):
    with pytest.raises(TemplateRenderingError, match=r"Write \{question\}, with single braces"):
        ask(tmp_path, [{**row, "topic": "numbers"} for row in ROWS], prompt=text)

    assert Duck.asked == []


@pytest.mark.parametrize(
    "text",
    [
        r"{question} End with \boxed{{answer}}.",
        "{question} Answer as {{answer}}.",
        'Question: {question} Reply as {{"question": "...", "answer": "..."}}',
        "{{{question}}}",
        r"\frac{{id}}{{topic}} {question}",
    ],
)
def test_braces_that_are_meant_are_left_alone(text: str):
    PromptTemplate("p", text).refuse_unfilled({**ROWS[0], "topic": "numbers"})


def test_a_constant_prompt_can_be_meant_and_the_run_resumed(tmp_path: Path, duck: str):
    meant = PromptTemplate("greeting", "Say {{question}}", metadata={"as_written": True})

    ask(tmp_path, prompt=meant, run_id="greeted")
    assert Duck.asked == ["Say {question}"] * 4

    from themis.api import resume

    assert resume("greeted", storage=tmp_path / "runs").metadata["successful_generations"] == 4


def test_rows_that_speak_for_themselves_may_share_a_prompt(tmp_path: Path, duck: str):
    ask(tmp_path, [{**row, "system_prompt": f"You are number {row['id']}."} for row in ROWS], prompt="Who are you?")

    assert Duck.asked == ["Who are you?"] * 4


@pytest.mark.parametrize("empty", [None, float("nan")])
def test_an_empty_field_is_not_asked_as_the_word_none(tmp_path: Path, duck: str, empty: object):
    with pytest.raises(TemplateRenderingError, match="row 4: the field 'question' is empty"):
        ask(tmp_path, [*ROWS, {"id": 4, "question": empty, "answer": "4"}])

    assert Duck.asked == []


@pytest.mark.fault(
    area="Before the first call",
    wrong="Rows without a single expected answer, for a metric that compares with one",
    does="Refuses, and names the field",
    status="–",
    exit_code=2,
)
def test_references_that_are_all_empty_are_refused(evaluate: Evaluate, tmp_path: Path, fault: Fault):
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps({**row, "answer": None}) + "\n" for row in ROWS))
    code, said = evaluate("-m", "openai/good", "--metric", "exact_match")

    assert code == fault.exit_code
    assert "ExactMatch can compare answers only with a reference, and 'answer' is empty in every row" in said


# --- reducers -------------------------------------------------------------------------------------------------------


@pytest.mark.fault(
    area="Before the first call",
    wrong="A reducer that needs more answers per row than are asked for: `pass@5` of 4",
    does="Refuses, and says how many are needed",
    status="–",
    exit_code=2,
)
def test_a_reducer_needs_its_attempts(evaluate: Evaluate, fault: Fault):
    code, said = evaluate("-m", "openai/good", "--num-samples", "4", "--reducer", "pass@5")

    assert code == fault.exit_code
    assert "needs 5 answers per row, and there are 4: give num_samples=5 (--num-samples 5)" in said


def test_every_reducer_with_a_number_needs_as_many_attempts(tmp_path: Path, duck: str):
    for reducer in ("pass@2", "pass^2"):
        with pytest.raises(ConfigurationError, match="needs 2 answers per row, and there are 1"):
            ask(tmp_path, reducer=reducer)
    assert Duck.asked == []

    report = ask(tmp_path, reducer="pass@2", num_samples=2)
    assert report.metric("exact_match").mean == 1.0


@pytest.mark.fault(
    area="Before the first call",
    wrong="A reducer that makes no sense of a metric: `pass@2` of a length, `any` of a graded score, `best` of a length",
    does="Refuses, names the metric, and says what to do",
    status="–",
    exit_code=2,
)
@pytest.mark.parametrize(
    ("reducer", "metric", "reason"),
    [
        ("pass@2", "response_length", "counts the attempts that passed, and ResponseLength is neither good nor bad"),
        ("pass^2", "latency", "counts the attempts that passed, and Latency is better the less it is"),
        ("any", "f1", "counts the attempts that passed, and F1 grades answers"),
        ("best", "response_length", "takes the best of the attempts, and ResponseLength is neither good nor bad"),
    ],
)
def test_a_reducer_needs_metrics_that_fit_it(evaluate: Evaluate, fault: Fault, reducer: str, metric: str, reason: str):
    words = ["--reducer", reducer, "--metric", "exact_match", "--metric", metric]
    code, said = evaluate("-m", "openai/good", "--num-samples", "2", *words)

    assert code == fault.exit_code
    assert reason in said
    assert re.search(r": leave \w+ out, or use reducer 'average'", said)


def test_what_has_scores_beyond_0_and_1_passes_nothing(tmp_path: Path, duck: str):
    points = package.metric(name="points", score_range=(0, 5))(lambda prediction: 3)

    with pytest.raises(ConfigurationError, match="points has scores from 0 to 5, not 0 and 1: leave points out"):
        ask(tmp_path, reducer="pass@2", num_samples=2, metrics=[points])
    assert Duck.asked == []


def test_a_pipeline_of_ones_own_needs_its_attempts_too(tmp_path: Path, duck: str):
    pipeline = EvaluationPipeline(
        extractor=IdentityExtractor(), metrics=[ExactMatch()], strategy_resolver=lambda record: PassAtK(k=5)
    )

    with pytest.raises(ConfigurationError, match="needs 5 answers per row, and there are 4"):
        ask(tmp_path, num_samples=4, evaluation_pipeline=pipeline, metrics=None)
    assert Duck.asked == []

    ask(tmp_path, num_samples=2, run_id="stored")
    storage = ExperimentStorage(tmp_path / "runs")
    with pytest.raises(ConfigurationError, match="needs 5 answers per row, and there are 2"):
        rejudge(storage, "stored", pipeline)
    with pytest.raises(ConfigurationError, match="needs 3 answers per row, and there are 2"):
        stored_pipeline(storage, "stored", reducer="pass@3")


# --- numbers and options ----------------------------------------------------------------------------------------------


@pytest.mark.fault(
    area="Before the first call",
    wrong="An option that cannot be meant: a rate of 0, an answer of 0 tokens, `--sample` for a file of one's own",
    does="Refuses, and says what is expected",
    status="–",
    exit_code=2,
)
@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--rpm", "0"), "requests_per_minute is a number greater than 0, and left out for no limit, got 0.0"),
        (("--tpm", "-5"), "tokens_per_minute is a number greater than 0"),
        (("--max-tokens", "0"), "max_tokens is at least 1, or -1 for no limit, got 0"),
        (("--sample",), "data and sample are for benchmarks (--data, --sample)"),
        (("--option", "temperature=1"), "it is said by temperature=, --temperature"),
    ],
)
def test_an_option_that_cannot_be_meant_is_refused(evaluate: Evaluate, fault: Fault, words: tuple[str, ...], says: str):
    code, said = evaluate("-m", "openai/good", *words)

    assert code == fault.exit_code
    assert says in said


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"dataset": {"question": ["a"], "answer": ["b"]}}, "its parts are columns"),
        (
            {"dataset": [{**row, "group": None} for row in ROWS], "cluster_field": "group"},
            "'group' is empty in row '0'",
        ),
        (
            {"model": Silent},
            "Silent can not be asked: expected a function, or an object that is callable or has one of",
        ),
        ({"metrics": [len]}, "neither a plain function nor a factory"),
        ({"reducer": max}, "reducer is a name"),
        ({"rate_limit": "60"}, "rate_limit is requests a minute, or a dict of limits"),
    ],
)
def test_arguments_of_the_wrong_kind_are_told_as_such(tmp_path: Path, duck: str, changes: dict[str, Any], says: str):
    with pytest.raises(ThemisError, match=re.escape(says)):
        ask(tmp_path, **changes)

    assert Duck.asked == []


def test_a_file_with_other_separators_is_told_as_such(tmp_path: Path):
    (tmp_path / "rows.csv").write_text("id;question;answer\n1;say 1;1\n")

    with pytest.raises(DatasetError, match="seem to be separated by ';'"):
        ask(tmp_path, tmp_path / "rows.csv", model="fake/perfect")


def test_a_prompt_that_gives_the_answer_away_is_told(tmp_path: Path, duck: str, caplog: pytest.LogCaptureFixture):
    ask(tmp_path, prompt="{question} is {answer}")

    assert "the prompt shows the model the expected answer: it uses {answer}" in caplog.text


# --- who answers ----------------------------------------------------------------------------------------------------


@pytest.mark.fault(
    area="Before the first call",
    wrong="An unknown provider before the model's name: `opnai/gpt-4o`",
    does="Names the nearest, and the ways to any other endpoint or vendor",
    status="–",
    exit_code=3,
)
def test_an_unknown_provider_is_named_with_the_nearest(evaluate: Evaluate, fault: Fault):
    code, said = evaluate("-m", "opnai/good")

    assert code == fault.exit_code
    assert "unknown provider 'opnai' in model 'opnai/good' (did you mean 'openai'?)" in said
    assert all(way in said for way in ("base_url=URL", "OPNAI_BASE_URL", "azure/...", "litellm/opnai/good"))


@pytest.mark.fault(
    area="Before the first call",
    wrong="A vendor that is reached through a package that is not installed: `bedrock/some-model`",
    does="Says which package, and the way without it",
    status="–",
    exit_code=3,
)
def test_bedrock_is_told_how_it_is_reached(themis: CommandLine, tmp_path: Path, rows: str, fault: Fault):
    # As if the package were not installed, wherever this runs.
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.modules['litellm'] = None\n")
    done = themis("eval", rows, "-m", "bedrock/some-model", PYTHONPATH=f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}")

    assert done.returncode == fault.exit_code
    assert "the model 'bedrock/some-model' needs the package litellm: pip install 'themis-eval[litellm]'" in done.stderr
    assert "base_url=https://bedrock-mantle.REGION.api.aws/v1" in done.stderr


@pytest.mark.fault(
    area="Before the first call",
    wrong="A vendor whose address depends on the account, without one: `azure/gpt-4o`, `vertex/google/some-model`",
    does="Names the variables and options, and the model's name through litellm",
    status="–",
    exit_code=3,
)
@pytest.mark.parametrize(
    ("model", "ways"),
    [
        (
            "azure/gpt-4o",
            ["AZURE_OPENAI_ENDPOINT", "base_url=https://RESOURCE.openai.azure.com", "'litellm/azure/gpt-4o'"],
        ),
        ("vertex/google/some-model", ["GOOGLE_CLOUD_PROJECT", "project=", "'litellm/vertex_ai/some-model'"]),
    ],
)
def test_azure_and_vertex_are_told_how_they_are_reached(evaluate: Evaluate, fault: Fault, model: str, ways: list[str]):
    code, said = evaluate("-m", model)

    assert code == fault.exit_code
    assert all(way in said for way in (*ways, "pip install 'themis-eval[litellm]'"))


def test_an_endpoint_of_any_name_is_reached_by_its_address(themis: CommandLine, rows: str, endpoint: Endpoint):
    done = themis(
        *("eval", rows, "-m", "acme/good", "--option", f"base_url={endpoint.url}", "--run-id", "by-address", "--json"),
        *("--system", "Be brief."),
    )
    assert json.loads(done.stdout)["metrics"]["ExactMatch"]["mean"] == 1.0

    told = json.loads(done.stdout)["tokens"]
    assert (told["total_tokens"], told["answers_without_tokens"]) == (28, 0)

    again = themis("resume", "by-address", "--json")
    assert (again.returncode, json.loads(again.stdout)["model"]) == (0, "acme:good")


@pytest.mark.parametrize(
    ("text", "options", "provider", "identifier"),
    [
        ("google/gemini-x", {}, "google", "gemini-x"),
        ("huggingface/some/model", {}, "huggingface", "some/model"),
        ("hf/some/model", {}, "hf", "some/model"),
        ("azure/gpt-4o", {}, "azure", "gpt-4o"),
        ("vertex/google/gemini-x", {}, "vertex", "google/gemini-x"),
        ("bedrock:some.model-v1:0", {}, "litellm", "bedrock/some.model-v1:0"),
        ("azure/gpt-4o", {"base_url": "https://r.example/openai/v1"}, "azure", "gpt-4o"),
        ("azure/gpt-4o", {"api_base": "https://r.example/"}, "azure", "gpt-4o"),
        ("bedrock/some.model", {"base_url": "https://bedrock.example/v1"}, "bedrock", "some.model"),
        ("acme/m", {"api_base": "https://models.acme.example/v1"}, "acme", "m"),
    ],
)
def test_vendors_are_found_by_name_or_by_address(text: str, options: dict[str, str], provider: str, identifier: str):
    found = parse_model(text, options)

    assert (found.provider, found.identifier) == (provider, identifier)


# --- what users write -----------------------------------------------------------------------------------------------


def test_a_provider_that_merely_has_the_method_works(tmp_path: Path, duck: str):
    report = ask(tmp_path)
    assert report.metric("exact_match").mean == 1.0
    assert sorted(Duck.asked) == [row["question"] for row in ROWS]
    # It says nothing of tokens, and that is told.
    assert report.metadata["cost"]["token_counts"]["answers_without_tokens"] == 4


def test_an_async_one_with_slots_works_and_is_closed(tmp_path: Path, duck: str):
    closed = []

    class Async:
        __slots__ = ()

        async def execute(self, task: GenerationTask) -> GenerationRecord:
            return Duck().execute(task)

        async def aclose(self) -> None:
            closed.append(True)

    package.register_provider("async-duck", Async)
    assert ask(tmp_path, model="async-duck/quack").metric("exact_match").mean == 1.0
    assert closed == [True]


class Forgetful:
    def execute(self) -> None:
        """Takes no task."""


@pytest.mark.fault(
    area="Before the first call",
    wrong="A provider, metric, extractor or agent of one's own that lacks its method, or whose method cannot be called",
    does="Refuses it when it is registered or named, and says what is missing",
    status="–",
    exit_code=None,
)
def test_what_lacks_its_method_is_refused_at_registration(fault: Fault):
    assert fault.area == "Before the first call"
    for target, says in (
        (Silent, "Silent has no method execute"),
        (Forgetful, r"Forgetful\.execute\(self\) cannot be called with a task"),
        (Duck(), "register its class"),
        ("duck", "must be a class or a function"),
    ):
        with pytest.raises(ConfigurationError, match=says):
            package.register_provider("mine", target)
    with pytest.raises(ConfigurationError, match=r"the class Silent lacks .*Agent as its base class"):
        register_agent("mine", Silent)


def test_a_function_that_answers_is_no_factory(tmp_path: Path, duck: str):
    package.register_provider("function", lambda question: question)

    with pytest.raises(ProviderError, match="makes a provider from options, it does not answer"):
        ask(tmp_path, model="function/x")


class OneReference:
    name = "one_reference"

    def compute(self, prediction: str, reference: str) -> float:
        return float(prediction == reference)


class Awaited:
    name = "awaited"

    async def compute(self, *, prediction: str, references: list[str], metadata: dict[str, Any]) -> float:
        return 1.0


class NoText:
    def extract(self) -> str:
        return ""


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"metrics": [OneReference]}, r"compute\(prediction, reference\) is called as compute\(\*, prediction"),
        ({"metrics": [Awaited()]}, "is async"),
        ({"extractor": NoText}, r"extract\(\) is called as extract\(raw_output\)"),
    ],
)
def test_a_metric_or_extractor_that_cannot_be_called_is_refused(
    tmp_path: Path, duck: str, changes: dict[str, Any], says: str
):
    with pytest.raises(ConfigurationError, match=says):
        ask(tmp_path, **changes)

    assert Duck.asked == []


# --- rows -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "table",
    [
        pd.DataFrame(ROWS),
        pd.DataFrame(ROWS).set_index("id"),
        pa.Table.from_pylist(ROWS),
        pa.RecordBatch.from_pylist(ROWS),
    ],
    ids=["pandas", "pandas with ids as index", "arrow", "arrow batch"],
)
def test_a_table_is_rows(tmp_path: Path, duck: str, table: Any):
    report = ask(tmp_path, table)

    assert sorted(Duck.asked) == [row["question"] for row in ROWS]
    assert [record.task.metadata["dataset_id"] for record in report.generation_results] == ["0", "1", "2", "3"]


def test_a_missing_cell_is_none_and_long_tables_are_read_whole(tmp_path: Path, duck: str):
    count = 1_500
    table = pd.DataFrame(
        {
            "id": range(count),
            "question": [f"say {n}" for n in range(count)],
            "answer": [str(n) for n in range(count)],
            "weight": [np.nan if n % 2 else n / 2 for n in range(count)],
            "seen": pd.to_datetime(["2026-01-01" if n % 2 else None for n in range(count)]),
        }
    )
    records = list(ask(tmp_path, table).generation_results)

    assert len(records) == count
    assert [records[n].task.metadata["weight"] for n in (0, 1, 2)] == [0.0, None, 1.0]
    assert [records[n].task.metadata["seen"] for n in (0, 1)] == [None, "2026-01-01T00:00:00"]


def test_columns_of_one_name_are_refused(tmp_path: Path, duck: str):
    with pytest.raises(DatasetError, match="more than one column 'question'"):
        ask(tmp_path, pd.DataFrame([[1, "a", "b"]], columns=["id", "question", "question"]))


def test_data_and_sample_do_what_the_message_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    # Not by the variable: the Hub's package reads it once, for everybody who comes later.
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    with pytest.raises(DatasetError, match=r"data=PATH.*sample=True"):
        package.evaluate("gsm8k", model="fake/perfect", storage=tmp_path / "runs")

    few = package.evaluate("gsm8k", model="fake/perfect", sample=True, storage=tmp_path / "runs", limit=2)
    assert few.metadata["total_samples"] == 2

    (tmp_path / "gsm8k.jsonl").write_text(json.dumps({"question": "1 + 1?", "answer": "2\n#### 2"}) + "\n")
    own = package.evaluate("gsm8k", model="fake/perfect", data=tmp_path, storage=tmp_path / "runs")
    assert (own.metadata["total_samples"], own.metric("numeric").mean) == (1, 1.0)

    with pytest.raises(ConfigurationError, match="say where a benchmark's rows come from"):
        package.evaluate(ROWS, model="fake/perfect", prompt="{question}", sample=True, storage=tmp_path / "runs")


# --- scores and their ranges ------------------------------------------------------------------------------------------


class Graded:
    """Right answers are worth a little less than 1 now and then."""

    name = "graded"
    score_range = (0.0, 1.0)

    def compute(self, *, prediction: str, references: list[str], metadata: dict[str, Any]) -> MetricScore:
        return MetricScore(self.name, 0.9 if prediction == "0" else 1.0)


class Broken(Graded):
    name = "broken"

    def compute(self, *, prediction: str, references: list[str], metadata: dict[str, Any]) -> MetricScore:
        return MetricScore(self.name, 7.0 if prediction == "0" else 1.0)


def test_no_interval_leaves_the_range_that_a_metric_declares(tmp_path: Path, duck: str):
    low, high = ask(tmp_path, metrics=[Graded], run_id="graded").metric("graded").ci

    assert 0.5 < low < 0.975 < high <= 1.0


def test_no_interval_of_a_difference_leaves_the_width_of_the_range(tmp_path: Path):
    class NearlyAll(Graded):
        def compute(self, *, prediction: str, references: list[str], metadata: dict[str, Any]) -> MetricScore:
            wrong = 0.05 if references == ["1"] else 0.0
            return MetricScore(self.name, (0.9 if prediction == "0" else 1.0) if prediction in references else wrong)

    for model in ("fake/perfect", "fake/constant?text=nothing"):
        ask(tmp_path, model=model, metrics=[NearlyAll], run_id=model[5:9])
    # Four items are too few for a permutation test to rule out that nothing differs, and its interval says so.
    for test, least in (("t_test", 0.8), ("permutation", -1e-9)):
        (row,) = compare_runs(["perf", "cons"], storage_path=tmp_path / "runs", statistical_test=test).pairwise_results
        assert row.interval is not None
        assert least < row.interval[0] < row.delta < row.interval[1] <= 1.0


def test_a_score_outside_the_declared_range_is_a_failure_of_the_metric(tmp_path: Path, duck: str):
    report = ask(tmp_path, metrics=[Broken])

    broken = report.metric("broken")
    assert (broken.mean, broken.count, broken.failed) == (1.0, 3, 1)
    assert "outside the metric's own score_range" in next(iter(report.evaluation_report.failures)).message


# --- .env -----------------------------------------------------------------------------------------------------------


def test_the_nearest_dotenv_is_read_on_the_command_line(
    themis: CommandLine, tmp_path: Path, rows: str, endpoint: Endpoint
):
    below = tmp_path / "work" / "today"
    below.mkdir(parents=True)
    (tmp_path / ".env").write_text(
        f"# where\nexport LAB_BASE_URL=\"{endpoint.url}\"   # note\nLAB_API_KEY='from-dotenv'\nTHEMIS_STORAGE=elsewhere\n"
    )
    done = themis("eval", f"../../{rows}", "-m", "lab/good", "--json", cwd=below, THEMIS_NO_DOTENV="")

    assert json.loads(done.stdout)["metrics"]["ExactMatch"]["mean"] == 1.0, done.stderr
    assert "Bearer from-dotenv" in endpoint.keys
    assert (below / "elsewhere" / "themis.db").exists()

    off = themis("eval", f"../../{rows}", "-m", "lab/good", cwd=below)
    assert (off.returncode, "unknown provider 'lab'" in off.stderr) == (3, True)


def test_python_reads_the_same_file_and_what_is_set_wins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, endpoint: Endpoint
):
    (tmp_path / ".env").write_text(f"LAB_BASE_URL={endpoint.url}\nLAB_API_KEY=from-dotenv-again\n")
    monkeypatch.setenv("LAB_API_KEY", "set-before")
    monkeypatch.setenv("LAB_BASE_URL", "")
    monkeypatch.delenv("LAB_BASE_URL")
    monkeypatch.delenv("THEMIS_NO_DOTENV")
    monkeypatch.chdir(tmp_path)

    assert ask(tmp_path, model="lab/good").metric("exact_match").mean == 1.0
    assert "Bearer set-before" in endpoint.keys
    assert "Bearer from-dotenv-again" not in endpoint.keys


def test_a_key_can_be_mended_in_the_file_without_a_new_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("DUCK_POND", "")
    monkeypatch.delenv("DUCK_POND")
    monkeypatch.delenv("THEMIS_NO_DOTENV")
    monkeypatch.chdir(tmp_path)
    for value in ("wrong", "right"):
        (tmp_path / ".env").write_text(f"DUCK_POND={value}\n")
        parse_model("fake/perfect")
        assert os.environ["DUCK_POND"] == value


@pytest.mark.fault(
    area="Before the first call",
    wrong="A `.env` file that cannot be read",
    does="Refuses, and names the file and the line, not what stands there",
    status="–",
    exit_code=2,
)
def test_a_broken_dotenv_says_so(themis: CommandLine, tmp_path: Path, rows: str, no_call: dict[str, str], fault: Fault):
    (tmp_path / ".env").write_text("GOOD=1\nOPENAI_API_KEY sk-secret\n")
    done = themis("eval", rows, "-m", "openai/good", THEMIS_NO_DOTENV="", **no_call)

    assert done.returncode == fault.exit_code
    assert f"line 2 of {tmp_path / '.env'} cannot be read, expected NAME=value" in done.stderr
    assert "THEMIS_NO_DOTENV=1" in done.stderr
    assert "sk-secret" not in done.stderr


@pytest.mark.parametrize("content", [b"\xff\xfe\x00", b"A=1\nB=\x00\n"])
def test_a_dotenv_that_is_no_text_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes):
    (tmp_path / ".env").write_bytes(content)
    monkeypatch.delenv("THEMIS_NO_DOTENV")
    monkeypatch.chdir(tmp_path)

    with pytest.raises(ConfigurationError, match="cannot be read"):
        parse_model("fake/perfect")
