"""What ends a memory run, and what it says when nothing, or not everything, could be graded."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from themis.storage import ExperimentStorage

TESTS = """
from dataclasses import dataclass

from themis.memory import DatasetInterface, Grade, TestExample, register_memory_test


@register_memory_test("moods")
@dataclass(kw_only=True)
class Moods(DatasetInterface):
    '''Asks how somebody is; of every test below `ungraded` nobody can say whether the answer is right.'''

    name = "Moods"
    ungraded: int = 2

    def generate_examples(self, num_examples):
        return [TestExample(dataset=self, example_id=str(number), script=["I am well.", "How am I?"],
                            expected_responses=[str(number)]) for number in range(num_examples)]

    def evaluate(self, questions, responses, expected):
        if int(expected[0]) < self.ungraded:
            return Grade.failure("a mood cannot be measured")
        return Grade.when("well" in responses[0], "expected well")
"""


@pytest.fixture
def converse(themis, tmp_path: Path):
    """A memory run of two moods, so many of which nobody can grade."""
    (tmp_path / "moods.py").write_text(TESTS)

    def run(ungraded: int, *words: str, agent: str = "oracle", **variables: str):
        tests = f"{{name: moods, args: {{ungraded: {ungraded}}}}}"
        args = "args: {memory_span: 500, dataset_examples: 2}"
        (tmp_path / "c.yml").write_text(f"config: {{run_name: moods}}\ndatasets:\n  {args}\n  datasets: [{tests}]\n")
        command = [
            "memory",
            "run",
            "-c",
            "c.yml",
            "-a",
            agent,
            "--load",
            "moods.py",
            "--run-id",
            "r",
            "--storage",
            "store",
        ]
        return themis(*command, "-y", *words, **variables)

    return run


def stored(tmp_path: Path):
    storage = ExperimentStorage(tmp_path / "store")
    run = storage.get_run("r")
    storage.close()
    return run


@pytest.mark.fault(
    area="Memory runs",
    wrong="The agent's model refuses the key, is unknown or cannot be reached",
    does="ends with the exchange that failed; everything before it is saved, and the printed command goes on",
    status="failed",
    exit_code=3,
)
def test_an_agent_whose_key_is_refused_ends_the_run_with_its_first_call(converse, fault, endpoint, tmp_path):
    endpoint.calls.clear()
    done = converse(0, agent="openai/refuses-the-key", OPENAI_BASE_URL=endpoint.url, OPENAI_API_KEY="k-1234567")

    run = stored(tmp_path)
    assert (done.returncode, run.status) == (fault.exit_code, fault.status)
    assert endpoint.calls.total() == 1
    assert "Incorrect API key provided" in done.stderr
    assert "Incorrect API key provided" in run.error_message
    assert "themis resume r --storage store" in done.stderr


@pytest.mark.fault(
    area="Memory runs",
    wrong="Not one test could be graded (no judge, or none that answers)",
    does="says why of one of them; the conversation is kept, and `themis rejudge --judge MODEL` grades it",
    status="failed",
    exit_code=3,
)
def test_a_run_of_which_no_test_could_be_graded_has_failed(converse, fault, tmp_path):
    done = converse(2, "--json")

    run = stored(tmp_path)
    assert (done.returncode, run.status) == (fault.exit_code, fault.status)
    assert "none of 2 answers could be judged, for example Moods - " in run.error_message
    assert "a mood cannot be measured" in done.stderr
    assert json.loads(done.stdout)["status"] == "failed"


@pytest.mark.fault(
    area="Memory runs",
    wrong="More tests cannot be graded than `--fail-on-errors SHARE` allows",
    does="the mean is over those that were; an exit code for CI",
    status="completed",
    exit_code=1,
)
def test_more_ungraded_tests_than_allowed_are_an_exit_code(converse, fault, tmp_path):
    done = converse(1, "--fail-on-errors", "0.4")

    assert (done.returncode, stored(tmp_path).status) == (fault.exit_code, fault.status)
    assert "50.0% of the tests failed, more than --fail-on-errors 0.4 allows" in done.stderr
