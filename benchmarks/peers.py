"""CPU per trivial sample of other evaluation frameworks beside ours, on the same work, in one interleaved run.

    python benchmarks/peers.py [rounds]

Each peer that pip can install gets an environment of its own under `.make/peers`; one that cannot be had is named and left out.
The work: rows with an id, a short question and its answer; a model in the process that returns at once; an exact-match score;
everything written to disk. CPU per sample is the slope between a small and a large run, so that start-up is not in it.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import textwrap
import venv
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PEERS = ROOT / ".make" / "peers"


@dataclass(frozen=True)
class Peer:
    """How a framework is installed, and a program that evaluates N rows and prints its CPU seconds."""

    name: str
    requirement: str
    small: int
    large: int
    program: str


OURS = """
import themis
from themis.core import entities as core
from themis.interfaces import StatelessTaskExecutor

class Same(StatelessTaskExecutor):
    def __init__(self, **_): pass
    def execute(self, task):
        return core.GenerationRecord(task=task, output=core.ModelOutput(text=task.reference.value), error=None)

themis.register_provider("same", Same)
def work(rows, folder):
    report = themis.evaluate(rows, model="same:m", prompt="{question}", storage=folder, progress=False)
    assert report.metric("exact_match").count == len(rows)
"""

INSPECT = """
import tiktoken

class Words:
    # Its tokenizer is fetched from the network; counting words instead is in its favour.
    def encode(self, text, **_): return text.split()
    encode_ordinary = encode

tiktoken.get_encoding = tiktoken.encoding_for_model = lambda *_, **__: Words()
from inspect_ai import Task, eval
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.scorer import exact
from inspect_ai.solver import generate

def work(rows, folder):
    samples = [Sample(id=row["id"], input=row["question"], target=row["answer"]) for row in rows]
    task = Task(dataset=MemoryDataset(samples), solver=generate(), scorer=exact())
    (log,) = eval(task, model="mockllm/model", log_dir=folder, display="none")
    assert log.status == "success" and len(log.samples) == len(rows)
"""

DEEPEVAL = """
import os
os.environ.update(DEEPEVAL_TELEMETRY_OPT_OUT="YES", DEEPEVAL_RESULTS_FOLDER="results")
from deepeval import evaluate
from deepeval.evaluate.configs import AsyncConfig, CacheConfig, DisplayConfig
from deepeval.metrics import BaseMetric
from deepeval.test_case import LLMTestCase

class Exact(BaseMetric):
    threshold = 0.5
    async_mode = False
    def measure(self, case, *_, **__):
        self.score = float(case.actual_output == case.expected_output)
        self.success = self.score >= self.threshold
        return self.score
    async def a_measure(self, case, *_, **__):
        return self.measure(case)
    def is_successful(self):
        return self.success
    @property
    def __name__(self):
        return "Exact"

def work(rows, folder):
    os.chdir(folder)
    cases = [LLMTestCase(input=row["question"], actual_output=row["answer"], expected_output=row["answer"]) for row in rows]
    display = DisplayConfig(show_indicator=False, print_results=False, inspect_after_run=False, results_folder=folder)
    # Its cache rewrites one file for every case; without it the results are still written at the end.
    evaluate(cases, [Exact()], display_config=display, cache_config=CacheConfig(write_cache=False),
             async_config=AsyncConfig(run_async=False))
"""

LM_EVAL = """
import json, os
from lm_eval import simple_evaluate
from lm_eval.api.model import LM
from lm_eval.tasks import TaskManager

class Same(LM):
    def generate_until(self, requests, **_):
        return [request.doc["answer"] for request in requests]
    def loglikelihood(self, requests, **_): raise NotImplementedError
    def loglikelihood_rolling(self, requests, **_): raise NotImplementedError

def work(rows, folder):
    path = os.path.join(folder, "rows.jsonl")
    with open(path, "w") as handle:
        handle.writelines(json.dumps(row) + "\\n" for row in rows)
    task = {
        "task": "rows", "dataset_path": "json", "dataset_kwargs": {"data_files": {"test": path}}, "test_split": "test",
        "output_type": "generate_until", "doc_to_text": "{{question}}", "doc_to_target": "{{answer}}",
        "generation_kwargs": {"until": ["\\n\\n"]}, "metric_list": [{"metric": "exact_match"}],
    }
    results = simple_evaluate(model=Same(), tasks=[task], log_samples=True, bootstrap_iters=0, task_manager=TaskManager())
    assert results["results"]["rows"]["exact_match,none"] == 1.0 and len(results["samples"]["rows"]) == len(rows)
    with open(os.path.join(folder, "samples.json"), "w") as handle:
        json.dump(results["samples"], handle, default=str)
"""

HARNESS = """
import contextlib, io, json, logging, sys, tempfile, time
logging.disable(logging.CRITICAL)
{program}
rows = lambda n: [{{"id": str(i), "question": f"what is {{i}} + 1?", "answer": str(i + 1)}} for i in range(n)]
with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
    with tempfile.TemporaryDirectory() as folder:
        work(rows(20), folder)
    with tempfile.TemporaryDirectory() as folder:
        began = time.process_time()
        work(rows(int(sys.argv[1])), folder)
        spent = time.process_time() - began
print(json.dumps(spent))
"""

ALL = [
    Peer("themis", "", 2_000, 12_000, OURS),
    Peer("inspect-ai", "inspect-ai", 100, 400, INSPECT),
    Peer("deepeval", "deepeval", 200, 1_200, DEEPEVAL),
    Peer("lm-eval", "lm-eval", 500, 2_500, LM_EVAL),
]


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    pythons = {peer.name: python for peer in ALL if (python := _python(peer)) is not None}
    slopes: dict[str, list[float]] = {name: [] for name in pythons}
    broken: dict[str, str] = {}
    for _ in range(rounds):
        for peer in ALL:
            if peer.name not in pythons or peer.name in broken:
                continue
            try:
                small, large = (_spent(pythons[peer.name], peer, count) for count in (peer.small, peer.large))
            except subprocess.CalledProcessError as error:
                broken[peer.name] = (error.stderr or "").strip().splitlines()[-1:][0] if error.stderr else "failed"
                continue
            slopes[peer.name].append((large - small) / (peer.large - peer.small))
    print("| framework | CPU per trivial sample (median of rounds) |\n|---|---|")
    for name, found in slopes.items():
        print(
            f"| {name} | {statistics.median(found) * 1e3:.2f} ms |"
            if found
            else f"| {name} | did not run: {broken[name]} |"
        )


def _python(peer: Peer) -> Path | None:
    if not peer.requirement:
        return Path(sys.executable)
    folder = PEERS / peer.name
    python = folder / "bin" / "python"
    done = folder / "installed"
    if not done.exists():
        venv.create(folder, with_pip=True, clear=True)
        print(f"installing {peer.name} ...", file=sys.stderr)
        installed = subprocess.run([python, "-m", "pip", "install", "-q", peer.requirement], capture_output=True)
        if installed.returncode:
            print(f"{peer.name} cannot be installed here; left out", file=sys.stderr)
            return None
        done.touch()
    return python


def _spent(python: Path, peer: Peer, count: int) -> float:
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "program.py"
        program.write_text(HARNESS.format(program=textwrap.dedent(peer.program)))
        done = subprocess.run(
            [python, program, str(count)], capture_output=True, text=True, check=True, cwd=folder, timeout=900
        )
    spent: float = json.loads(done.stdout.splitlines()[-1])
    return spent


if __name__ == "__main__":
    main()
