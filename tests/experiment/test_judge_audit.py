"""An audit finds how far a judge is to be trusted, and what its scores are worth."""

from __future__ import annotations

import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable
from typing import Any

import pytest

import themis
from tests.waiting import wait_until
from themis.cli import _run
from themis.core import entities as core
from themis.evaluation.judge_rates import Judgment, corrected_difference, judge_rates
from themis.evaluation.judges import PairwiseJudge
from themis.exceptions import ConfigurationError
from themis.experiment.judge_audit import audit_judge
from themis.interfaces import StatelessTaskExecutor
from themis.runs.judge_audits import AUDITS
from themis.storage import ExperimentStorage

FIRST = ["Anna", "Boris", "Clara", "Dmitri", "Elena", "Felix", "Greta", "Hugo", "Irene", "Jonas", "Karla", "Leon"]
LAST = [
    "Abel",
    "Brandt",
    "Conti",
    "Duarte",
    "Ekman",
    "Fischer",
    "Gallo",
    "Hansen",
    "Ivanov",
    "Jansen",
    "Kovacs",
    "Lund",
]
NAMES = [f"{first} {last}" for first in FIRST for last in LAST]
JUDGE = "rubric_judge(model='lenient/m')"


def share(text: str) -> float:
    """A number from 0 to 1 that depends on the text alone."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") / 2**64


def read_question(prompt: str) -> tuple[str, str]:
    """What the judge was given as the expected answer and as the answer, between their marks."""
    expected, answer = (
        re.search(rf"{what}:\n(---\w+---)\n(.*?)\n\1", prompt, re.DOTALL)[2]
        for what in ("Expected answer", "Answer to judge")
    )
    return expected, answer


def is_right(expected: str, answer: str) -> bool:
    denied = re.search(r"\b(not|anything but)\b", answer, re.IGNORECASE)
    return expected.casefold() in answer.casefold() and not denied


class Lenient(StatelessTaskExecutor):
    """A judge that knows the truth from its prompt, and accepts a share of what is wrong all the same."""

    accepts: Callable[[str, str], float]
    asked: list[str]
    lock = threading.Lock()

    def __init__(self, **_: Any) -> None:
        pass

    def execute(self, task: core.GenerationTask) -> core.GenerationRecord:
        with self.lock:
            type(self).asked.append(task.prompt.text)
        expected, answer = read_question(task.prompt.text)
        accepted = is_right(expected, answer) or share(expected + answer) < type(self).accepts(expected, answer)
        text = json.dumps({"verdict": "pass" if accepted else "fail", "reason": ""})
        usage = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
        return core.GenerationRecord(task, core.ModelOutput(text, usage=usage), None)


@pytest.fixture
def lenient():
    Lenient.asked = []
    Lenient.accepts = staticmethod(lambda expected, answer: 0.6)
    themis.register_provider("lenient", Lenient)
    return Lenient


@pytest.fixture(autouse=True)
def guessing():
    themis.register_provider("guessing", Guessing)


class Guessing(StatelessTaskExecutor):
    """Names who won a race in the share of cases that its model is called by, and somebody else in the others."""

    is_local = True

    def __init__(self, **_: Any) -> None:
        pass

    def execute(self, task: core.GenerationTask) -> core.GenerationRecord:
        assert task.reference is not None
        text = guess(task.model.identifier, str(task.reference.value))
        return core.GenerationRecord(task, core.ModelOutput(text), None)


def guess(model: str, name: str) -> str:
    return name if share(model + name) < float(model) else NAMES[(NAMES.index(name) + 31) % len(NAMES)]


ROWS = [{"id": str(n), "question": f"Who won race {n}?", "answer": name} for n, name in enumerate(NAMES)]


def run(tmp_path: Any, right: str = "0.5", run_id: str = "run", **changes: Any) -> float:
    """A run judged by the lenient judge; the true share of right answers."""
    given = {"metrics": [JUDGE], "storage": tmp_path, "run_id": run_id, "progress": False, **changes}
    themis.evaluate(ROWS, model=f"guessing/{right}", prompt="{question}", **given)
    return sum(guess(right, name) == name for name in NAMES) / len(NAMES)


def audit_json(capsys: Any, *words: str) -> dict[str, Any]:
    capsys.readouterr()
    assert _run(["judge", "audit", *words, "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_an_audit_of_a_lenient_judge_recovers_the_true_score(lenient, tmp_path, capsys):
    truth = run(tmp_path)
    found = audit_json(capsys, "run", "--storage", str(tmp_path))
    assert found["rates"]["sensitivity"]["value"] == 1.0
    low, high = found["rates"]["specificity"]["ci"]
    assert low <= 0.4 <= high
    corrected = found["runs"][0]["corrected"]
    assert corrected["accepted"] > truth + 0.2
    assert corrected["ci"][0] <= truth <= corrected["ci"][1]
    assert corrected["ci"][1] < corrected["accepted"]
    assert abs(corrected["score"] - truth) < 0.15


def test_what_is_accepted_of_vague_and_of_specific_answers_is_told_apart(lenient, tmp_path, capsys):
    # As a published audit found of a judge in use: 63 % of vague answers accepted, 11 % of specific ones.
    def accepts(expected: str, answer: str) -> float:
        return 0.11 if any(name.casefold() in answer.casefold() for name in FIRST + LAST) else 0.63

    lenient.accepts = staticmethod(accepts)
    run(tmp_path)
    kinds = audit_json(capsys, "run", "--n", "560", "--storage", str(tmp_path))["rates"]["by_kind"]
    for kind, rate in (("vague", 0.63), ("specific", 0.11), ("near_miss", 0.11), ("negation", 0.11)):
        assert kinds[kind]["n"] == 70
        assert kinds[kind]["ci"][0] <= rate <= kinds[kind]["ci"][1]
    assert kinds["vague"]["ci"][0] > kinds["specific"]["ci"][1]


def test_the_same_audit_again_asks_nothing(lenient, tmp_path, capsys):
    run(tmp_path)
    first = audit_json(capsys, "run", "--n", "60", "--storage", str(tmp_path))
    asked = len(lenient.asked)
    assert audit_json(capsys, "run", "--n", "60", "--storage", str(tmp_path)) == first
    assert len(lenient.asked) == asked
    assert len(ExperimentStorage(tmp_path).list_runs(AUDITS)) == 1


def test_an_audit_keeps_its_budget_and_goes_on_with_more(lenient, tmp_path, capsys, monkeypatch):
    prices = tmp_path / "prices.json"
    prices.write_text(json.dumps({"version": "t", "models": {"m": [10.0, 10.0]}}))
    monkeypatch.setenv("THEMIS_PRICES", str(prices))
    run(tmp_path / "store")
    words = ["judge", "audit", "run", "--n", "60", "--storage", str(tmp_path / "store"), "--workers", "1"]
    assert _run([*words, "--budget-usd", "0.05"]) == 130
    assert "budget" in capsys.readouterr().err
    (stored,) = ExperimentStorage(tmp_path / "store").list_runs(AUDITS)
    assert 0 < stored.judge_cost_usd <= 0.05
    assert _run([*words, "--budget-usd", "5"]) == 0
    assert "sensitivity 1.0000" in capsys.readouterr().out


def test_verdicts_that_cannot_be_read_are_counted_and_in_no_share(lenient, tmp_path, capsys, monkeypatch):
    run(tmp_path)
    execute = Lenient.execute

    def garbled(self: Lenient, task: core.GenerationTask) -> core.GenerationRecord:
        record = execute(self, task)
        if "race 7" in task.prompt.text:
            record.output = core.ModelOutput("no idea")
        return record

    monkeypatch.setattr(Lenient, "execute", garbled)
    found = audit_json(capsys, "run", "--n", "80", "--storage", str(tmp_path))
    rates = found["rates"]
    assert rates["failed"] > 0
    assert rates["sensitivity"]["n"] + rates["specificity"]["n"] + rates["failed"] == 80
    assert any("got no verdict that could be read" in note for note in found["notes"])


def test_a_judge_that_cannot_be_read_at_all_fails_the_audit(lenient, tmp_path, capsys):
    run(tmp_path)
    assert _run(["judge", "audit", "run", "--judge", "fake/constant?text=hello", "--storage", str(tmp_path)]) == 3
    assert "could be judged" in capsys.readouterr().err


def test_a_judge_that_accepts_everything_says_nothing(tmp_path, capsys):
    run(tmp_path, metrics=["""rubric_judge(model='fake/constant?text={"verdict": "pass"}')"""])
    assert _run(["judge", "audit", "run", "--n", "40", "--storage", str(tmp_path)]) == 0
    shown = capsys.readouterr().out
    assert "its scores say nothing" in shown
    assert "[0.0000, 1.0000]" in shown
    page = tmp_path / "pages" / "audit.html"
    assert _run(["judge", "audit", "run", "--n", "40", "--html", str(page), "--storage", str(tmp_path)]) == 0
    assert "its scores say nothing" in page.read_text()


def test_a_run_that_another_judge_scored_is_not_corrected(lenient, tmp_path, capsys):
    run(tmp_path)
    words = ["run", "--judge", "rubric_judge(model='lenient/m', instructions='Be kind.')", "--n", "40"]
    (found,) = audit_json(capsys, *words, "--storage", str(tmp_path))["runs"]
    assert found["corrected"] is None
    assert "another judge" in found["note"]


def test_peoples_labels_correct_the_score_too(lenient, tmp_path, capsys):
    truth = run(tmp_path)
    labels = tmp_path / "people.csv"
    known = [row for row in ROWS if share("label" + row["id"]) < 0.5]
    lines = [f"{row['id']},{guess('0.5', row['answer']) == row['answer']}\n" for row in known]
    labels.write_text("id,label\n" + "".join(lines))
    (found,) = audit_json(capsys, "run", "--n", "80", "--labels", str(labels), "--storage", str(tmp_path))["runs"]
    low, high = found["labelled"]["corrected_ci"]
    assert low <= truth <= high


def test_in_python_a_judge_may_be_an_object(lenient, tmp_path):
    truth = run(tmp_path)
    audit = audit_judge("run", storage=tmp_path, metric="rubric_judge", n=120)
    assert audit.runs[0].corrected is not None
    assert audit.runs[0].corrected.ci[0] <= truth <= audit.runs[0].corrected.ci[1]
    assert "wrong (1 - specificity)" in audit.to_markdown().replace("\\", "")
    with pytest.raises(ConfigurationError, match="prefers one answer to another"):
        audit_judge("run", storage=tmp_path, judge=PairwiseJudge(model="lenient/m"))


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ([], "name runs whose rows have references"),
        (["plain"], "name it by judge (--judge)"),
        (["run", "--metric", "nothing"], "no metric 'nothing'"),
        (["bare", "--metric", "response_length"], "has a reference"),
        (["run", "--field", "label=x"], "name the file by --from"),
    ],
)
def test_what_cannot_be_audited_is_explained(lenient, tmp_path, capsys, words, says):
    run(tmp_path)
    run(tmp_path, run_id="plain", metrics=["exact_match"])
    given = {"metrics": ["response_length"], "reference_field": "", "storage": tmp_path, "progress": False}
    themis.evaluate(ROWS, model="fake/echo", prompt="{question}", run_id="bare", **given)
    assert _run(["judge", "audit", *words, "--storage", str(tmp_path)]) == 2
    assert says in capsys.readouterr().err


# --- comparisons ----------------------------------------------------------------------------------------------------------


def test_a_comparison_says_whether_the_difference_survives_the_judges_errors(lenient, tmp_path, capsys):
    better, worse = run(tmp_path, "0.9", "better"), run(tmp_path, "0.4", "worse")
    words = ["compare", "better", "worse", "--storage", str(tmp_path)]
    assert _run(words) == 0
    assert "corrected for its judge" not in capsys.readouterr().out

    audit_json(capsys, "better", "--storage", str(tmp_path))
    assert _run([*words, "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)["judge_corrections"]
    assert found["survives"] is True
    assert found["corrected"] > found["difference"] > 0
    assert found["ci"][0] <= better - worse <= found["ci"][1]
    for form in ([], ["--markdown"]):
        assert _run([*words, *form]) == 0
        assert "corrected for its judge" in capsys.readouterr().out


def test_a_difference_that_a_judge_without_a_clue_saw_does_not_survive(lenient, tmp_path, capsys):
    lenient.accepts = staticmethod(lambda expected, answer: 1.0)
    run(tmp_path, "0.9", "one")
    run(tmp_path, "0.4", "other")
    audit_json(capsys, "one", "--n", "80", "--storage", str(tmp_path))
    assert _run(["compare", "one", "other", "--storage", str(tmp_path)]) == 0
    assert "the judge's scores say nothing about the answers" in capsys.readouterr().out


def test_a_difference_may_be_one_of_kinds_of_wrong_answers():
    judged = [Judgment(True, True, "reference")] * 200
    judged += [Judgment(False, n < 126, "vague") for n in range(200)] + [
        Judgment(False, n < 22, "specific") for n in range(200)
    ]
    small = corrected_difference(0.70, 0.62, (0.03, 0.13), judge_rates(judged))
    assert (small.survives, small.survives_any_kind) == (True, False)
    large = corrected_difference(0.95, 0.40, (0.48, 0.62), judge_rates(judged))
    assert (large.survives, large.survives_any_kind) == (True, True)


# --- judgments made elsewhere -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "json"])
def test_judgments_made_elsewhere_are_taken_from_a_file(tmp_path, capsys, suffix):
    made = [
        {"answer": f"r{n}", "label": "right", "verdict": "CORRECT" if n < 95 else "WRONG", "kind": ""}
        for n in range(100)
    ]
    for kind, accepted in (("vague", 63), ("specific", 11)):
        made += [
            {"answer": f"{kind}{n}", "label": "wrong", "verdict": "CORRECT" if n < accepted else "WRONG", "kind": kind}
            for n in range(100)
        ]
    path = tmp_path / f"elsewhere.{suffix}"
    if suffix == "csv":
        lines = [",".join(row.values()) for row in made]
        path.write_text("\n".join(["answer,label,verdict,kind", *lines]))
    elif suffix == "jsonl":
        path.write_text("\n".join(map(json.dumps, made)))
    else:
        path.write_text(json.dumps(made))
    rates = audit_json(capsys, "--from", str(path))["rates"]
    assert rates["sensitivity"]["value"] == 0.95
    assert rates["specificity"]["value"] == 0.63
    assert (rates["by_kind"]["vague"]["value"], rates["by_kind"]["specific"]["value"]) == (0.63, 0.11)


def test_a_file_corrects_the_score_of_a_run(lenient, tmp_path, capsys):
    truth = run(tmp_path)
    path = tmp_path / "elsewhere.csv"
    path.write_text("gold,said\n" + "1,1\n" * 200 + "0,1\n" * 120 + "0,0\n" * 80 + "0,\n" * 3)
    words = ["run", "--metric", "RubricJudge", "--from", str(path), "--field", "label=gold", "--field", "verdict=said"]
    found = audit_json(capsys, *words, "--storage", str(tmp_path))
    assert found["rates"]["failed"] == 3
    corrected = found["runs"][0]["corrected"]
    assert corrected["ci"][0] <= truth <= corrected["ci"][1]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("answer,verdict\na,1\n", "row 1: no label (looked for label, truth"),
        ("label,verdict\nperhaps,1\n", "row 1: label 'perhaps' says neither right nor wrong"),
        ("label,verdict\n1,7\n", "row 1: verdict '7' says neither right nor wrong"),
        ("label,verdict\n1,1\n1,0\n", "none of 2 judgments is of a wrong answer"),
        ("label,verdict\n", "has no rows"),
    ],
)
def test_a_file_that_cannot_be_used_says_why(tmp_path, capsys, content, says):
    path = tmp_path / "elsewhere.csv"
    path.write_text(content)
    assert _run(["judge", "audit", "--from", str(path)]) == 2
    assert says in capsys.readouterr().err


# --- killed in the middle -----------------------------------------------------------------------------------------------


def test_an_audit_that_is_killed_goes_on_and_pays_for_nothing_twice(tmp_path):
    program = tmp_path / "audit.py"
    program.write_text(
        textwrap.dedent(
            """
            import json, sys, time
            import themis
            from themis.core import entities as core
            from themis.experiment.judge_audit import audit_judge
            from themis.interfaces import StatelessTaskExecutor

            class Slow(StatelessTaskExecutor):
                def __init__(self, **_): pass
                def execute(self, task):
                    with open("asked.txt", "a") as file:
                        file.write(str(hash(task.prompt.text)) + "\\n")
                    time.sleep(0.03)
                    return core.GenerationRecord(task, core.ModelOutput('{"verdict": "pass"}'), None)

            themis.register_provider("slow", Slow)
            rows = [{"id": n, "question": f"Name {n}?", "answer": f"Person{n} Smith"} for n in range(60)]
            judge = "rubric_judge(model='slow/m')"
            if sys.argv[1] == "run":
                themis.evaluate(rows, model="fake/perfect", prompt="{question}", metrics=["exact_match"], run_id="run",
                                storage="store", progress=False)
            else:
                audit = audit_judge("run", storage="store", judge=judge, n=100, workers=2)
                print(audit.rates.sensitivity.n + audit.rates.specificity.n)
            """
        )
    )
    environment = {**os.environ, "PYTHONHASHSEED": "1", "PYTHONPATH": os.pathsep.join(sys.path)}

    def start(what: str) -> subprocess.Popen[str]:
        command = [sys.executable, str(program), what]
        return subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, text=True)

    asked = tmp_path / "asked.txt"
    assert start("run").wait() == 0
    killed = start("audit")
    wait_until(lambda: asked.exists() and len(asked.read_text().split()) >= 20)
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    before = len(asked.read_text().split())
    assert before < 100
    again = start("audit")
    assert again.communicate()[0].strip() == "100"
    lines = asked.read_text().split()
    assert len(set(lines)) == 100
    # Only what was in flight when it was killed is asked a second time.
    assert len(lines) - len(set(lines)) <= 2
