"""`themis compare`, `diff` and `power` from the command line."""

import json

import pytest
from scored_runs import Number, scored_run

from themis.cli import main

BASELINE = [1, 0, 0, 1, 0, 0, 1, 0, 0, 1] * 4
CANDIDATE = [1, 1, 0, 1, 1, 0, 1, 1, 0, 0] * 4


@pytest.fixture
def themis(tmp_path, capsys):
    """Runs a command on a store with two runs and returns its exit code, stdout and stderr."""
    scored_run(tmp_path / "store", "baseline", BASELINE)
    scored_run(tmp_path / "store", "candidate", CANDIDATE)

    def run(*words):
        with pytest.raises(SystemExit) as leaving:
            main([*words, "--storage", str(tmp_path / "store")])
        said = capsys.readouterr()
        return leaving.value.code or 0, said.out, said.err

    return run


def test_compare_prints_the_report_and_every_pair(themis):
    code, out, _ = themis("compare", "baseline", "candidate")

    assert code == 0
    assert "COMPARISON REPORT" in out
    assert "Number: baseline 0.4000 - candidate 0.6000 = -0.2000" in out


def test_compare_says_why_auto_took_a_test(themis):
    _, out, _ = themis("compare", "baseline", "candidate", "--test", "auto", "--details")

    assert "test of Number: McNemar's test, because every score is 0 or 1" in out
    assert "row against column" in out


def test_compare_prints_nothing_but_json(themis):
    code, out, _ = themis("compare", "baseline", "candidate", "--test", "permutation", "--alpha", "0.5", "--json")

    payload = json.loads(out)
    assert code == 0
    assert payload["metadata"]["alpha"] == 0.5
    assert payload["overall_best_run"] == "candidate"


def test_compare_can_leave_p_values_uncorrected(themis):
    _, out, _ = themis("compare", "baseline", "candidate", "--test", "t_test", "--correction", "none", "--json")

    assert json.loads(out)["pairwise_results"][0]["corrected_p_value"] is None


def test_compare_writes_a_page_and_prints_tables(themis, tmp_path):
    files = {suffix: tmp_path / "out" / f"c.{suffix}" for suffix in ("html", "json", "md", "tex")}
    outputs = [word for path in files.values() for word in ("--output", str(path))]
    code, out, err = themis("compare", "baseline", "candidate", *outputs)
    assert (code, out.splitlines()[1]) == (0, "COMPARISON REPORT")
    assert err.count("wrote ") == 4
    written = {suffix: path.read_text(encoding="utf-8") for suffix, path in files.items()}
    assert "<svg" in written["html"]
    assert json.loads(written["json"])["run_ids"] == ["baseline", "candidate"]
    assert written["md"].startswith("| Metric |")
    assert written["tex"].startswith(r"\begin{tabular}")
    assert themis("compare", "baseline", "candidate", "--latex")[1].startswith(r"\begin{tabular}")
    assert themis("compare", "baseline", "candidate", "--markdown")[1].startswith("| Metric |")


def test_compare_explains_what_is_wrong(themis):
    code, _, err = themis("compare", "baseline", "candidat")
    assert (code, "did you mean 'candidate'" in err) == (3, True)
    code, _, err = themis("compare", "baseline", "candidate", "--metric", "Nmber")
    assert (code, "did you mean 'Number'" in err) == (2, True)
    code, _, err = themis("compare", "baseline")
    assert (code, "at least two runs" in err) == (2, True)


def test_diff_counts_and_shows_what_changed(themis):
    code, out, err = themis("diff", "baseline", "candidate", "--limit", "1")

    assert code == 0
    assert "broken  9  Number 1 -> 0" in out
    assert "  baseline: 1\n  candidate: 0" in out
    assert "1 of 16 items" in err


def test_diff_shows_other_items_on_request(themis):
    _, out, _ = themis("diff", "baseline", "candidate", "--only", "both-wrong", "--json")

    payload = json.loads(out)
    assert {item["change"] for item in payload["items"]} == {"both-wrong"}
    found = payload["metrics"]["Number"]
    assert found["counts"] == {"broken": 4, "fixed": 12, "both-wrong": 12, "both-right": 12}
    assert (found["pairing"]["n"], found["pairing"]["left_out_a"], found["pairing"]["left_out_b"]) == (40, 0, 0)


def test_diff_writes_every_item_to_a_file(themis, tmp_path):
    code, _, err = themis("diff", "baseline", "candidate", "--to", str(tmp_path / "diff.jsonl"))

    assert (code, "wrote 40 items" in err) == (0, True)
    assert len((tmp_path / "diff.jsonl").read_text().splitlines()) == 40


def test_control_characters_of_an_answer_do_not_reach_the_terminal(tmp_path, capsys):
    """The metric reads past them, as one of a user's could."""

    class Lenient(Number):
        def compute(self, *, prediction, references, metadata=None):
            return super().compute(prediction=prediction[-1], references=references)

    scored_run(tmp_path, "a", ["\x1b[31m1"], metrics=[Lenient()])
    scored_run(tmp_path, "b", ["0"], metrics=[Lenient()])

    with pytest.raises(SystemExit):
        main(["diff", "a", "b", "--storage", str(tmp_path)])

    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert "\ufffd[31m1" in out


def test_power_says_what_the_items_show_and_what_a_difference_needs(themis):
    code, out, _ = themis("power", "--baseline", "baseline", "--metric", "number", "--difference", "0.1")
    assert code == 0
    assert "Number of baseline: mean 0.4000 over 40 items" in out
    assert "a difference of 0.1 needs" in out
    assert "assumed correlation of 0.5" in out
    _, out, _ = themis("power", "--baseline", "baseline", "--metric", "Number", "--pilot", "candidate", "--json")
    payload = json.loads(out)
    assert payload["n"] == 40
    assert 0 < payload["detectable_difference"] < 0.4
    assert payload["required_n"] is None


def test_compare_says_before_it_compares_that_it_cannot_write_such_a_file(themis):
    code, out, err = themis("compare", "baseline", "candidate", "-o", "comparison.docx")

    assert (code, out) == (2, "")
    assert "a comparison is written as .html, .json, .md or .tex, got 'comparison.docx'" in err
