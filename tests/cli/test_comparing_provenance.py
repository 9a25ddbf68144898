"""`themis manifest` and `themis reproduce` from the command line."""

import json

import pytest

import themis
from themis.cli import main
from themis.storage import ExperimentStorage

ROWS = [{"id": str(number), "question": f"{number} + 1?", "answer": str(number + 1)} for number in range(6)]


@pytest.fixture
def command(tmp_path, capsys, monkeypatch):
    """Runs a command in a directory with a store of three runs and returns its exit code, stdout and stderr."""
    monkeypatch.chdir(tmp_path)
    for run_id, prompt, model in (
        ("first", "{question}", "fake/noisy-0.3"),
        ("second", "{question}", "fake/noisy-0.3"),
        ("reworded", "Answer: {question}", "fake/noisy-0.3"),
    ):
        themis.evaluate(
            ROWS, model=model, prompt=prompt, metrics=["exact_match"], run_id=run_id, storage="store", progress=False
        )

    def run(*words):
        capsys.readouterr()
        with pytest.raises(SystemExit) as leaving:
            main([*words, "--storage", "store"])
        said = capsys.readouterr()
        return leaving.value.code or 0, said.out, said.err

    return run


def test_a_manifest_is_shown_with_its_hash(command):
    code, out, _ = command("manifest", "show", "first")

    assert code == 0
    assert "model.identifier" in out
    stamp = ExperimentStorage("store").get_run("first").manifest_hash
    assert f"manifest {stamp}" in out
    assert json.loads(command("manifest", "show", "first", "--json")[1])["manifest_hash"] == stamp


def test_manifests_are_diffed_by_dimension(command):
    assert command("manifest", "diff", "first", "second")[1] == "diff_count 0\n"
    code, out, _ = command("manifest", "diff", "first", "reworded", "--json")
    assert code == 0
    assert list(json.loads(out)["diffs"]) == ["prompt.template_hash"]


def test_differences_fit_eighty_columns_and_name_what_is_allowed(command):
    _, out, _ = command("manifest", "audit", "first", "reworded", "--allow", "prompt")
    assert "prompt.template_hash (allowed)\n" in out
    assert max(map(len, out.splitlines())) <= 80
    assert "prompt.template_hash (forbidden)\n" in command("manifest", "audit", "first", "reworded")[1]


def test_an_audit_fails_on_drift_that_is_not_allowed_and_writes_what_it_found(command):
    code, out, _ = command("manifest", "audit", "first", "reworded", "--to", "out/reproducibility_audit.json")
    with open("out/reproducibility_audit.json", encoding="utf-8") as handle:
        written = json.load(handle)

    assert (code, written["pass"]) == (1, False)
    assert list(written["forbidden_drift"]) == ["prompt.template_hash"]
    assert "audit fail" in out
    allowed = command("manifest", "audit", "first", "reworded", "--allow", "prompt.template_hash", "--json")
    assert (allowed[0], json.loads(allowed[1])["pass"]) == (0, True)
    assert command("manifest", "audit", "first", "second")[0] == 0
    assert command("manifest", "audit", "first")[0] == 0
    assert command("manifest", "audit", "first", "nowhere")[0] == 3


def test_reproduce_prints_commands_that_make_the_run_again(command):
    code, out, err = command("reproduce", "first")

    assert code == 0
    rows, evaluate = out.splitlines()
    assert rows == "themis reproduce first --rows first.rows.jsonl --storage store"
    assert evaluate.startswith("themis eval first.rows.jsonl --model fake/noisy-0.3 ")
    assert evaluate.endswith("--run-id first-again --storage store")
    assert "the rows came from Python" in err
    assert not ExperimentStorage("store").run_exists("first-again")


def test_reproduce_can_perform_what_it_prints(command):
    code, _, err = command("reproduce", "first", "--run", "--as", "mine")

    store = ExperimentStorage("store")
    assert (code, "both manifests agree" in err) == (0, True)
    answers = [[record.output.text for _, record in store.reader(run_id).records()] for run_id in ("first", "mine")]
    assert answers[0] == answers[1]
    assert store.get_run("mine").summary["metrics"] == store.get_run("first").summary["metrics"]
    code, _, err = command("reproduce", "first", "--run", "--as", "mine")
    assert (code, "'mine' exists already" in err) == (2, True)


def test_reproduce_does_not_perform_what_python_made(command):
    class Shout:
        def extract(self, raw_output):
            return raw_output.upper()

    themis.evaluate(
        ROWS,
        model="fake/perfect",
        prompt="{question}",
        extractor=Shout(),
        run_id="own",
        storage="store",
        progress=False,
    )

    code, _, err = command("reproduce", "own", "--run")

    assert (code, "its extractor was made in Python" in err) == (2, True)
    assert not ExperimentStorage("store").run_exists("own-again")
