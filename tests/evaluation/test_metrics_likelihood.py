"""Metrics of log-probabilities: which option comes out first, how well texts are predicted, over a run too."""

from __future__ import annotations

import math
from typing import Any

import pytest

import themis
from themis.core.continuations import Likelihood, likelihood_output, option_continuations
from themis.core.entities import GenerationRecord, GenerationTask, ModelOutput
from themis.evaluation.metrics import (
    BitsPerByte,
    BytePerplexity,
    GreedyMatch,
    MutualInformationAccuracy,
    NormalizedOptionAccuracy,
    OptionAccuracy,
    Perplexity,
    WordPerplexity,
)
from themis.exceptions import ConfigurationError, DatasetError, MetricError
from themis.generation.providers import PROVIDERS
from themis.interfaces import StatelessTaskExecutor


def row(continuations: list[Any], sums: list[float], *, greedy: int | None = None, **fields: Any) -> dict[str, Any]:
    """A row's fields as a metric gets them, with what a model made of its continuations."""
    found = [{"logprob": logprob, "greedy": place == greedy, "tokens": 2} for place, logprob in enumerate(sums)]
    output = ModelOutput("", raw={"continuations": found})
    return {"prompt": "Q:", "continuations": continuations, "model_output": output, **fields}


def value(metric: Any, metadata: dict[str, Any], *references: object) -> float:
    return float(metric.compute(prediction=None, references=list(references), metadata=metadata).value)


OPTIONS = [" a long answer", " short", " é"]


@pytest.mark.parametrize("reference", [1, "1", "short", " short", "Short", "B", "b", "(B)", 1.0])
def test_the_right_option_is_named_by_index_text_or_letter(reference):
    assert value(OptionAccuracy(), row(OPTIONS, [-9.0, -4.0, -5.0]), reference) == 1.0
    assert value(OptionAccuracy(), row(OPTIONS, [-3.0, -4.0, -5.0]), reference) == 0.0


def test_a_text_counts_before_a_letter_and_a_number_in_a_text_before_an_index():
    assert value(OptionAccuracy(), row([" C", " B", " A"], [-1.0, -2.0, -3.0]), "C") == 1.0
    assert value(OptionAccuracy(), row([" 3", " 1", " 2"], [-2.0, -1.0, -3.0]), "1") == 1.0
    assert value(OptionAccuracy(), row([" 3", " 1", " 2"], [-2.0, -1.0, -3.0]), 0) == 0.0


def test_of_several_right_options_any_will_do_and_of_equal_sums_the_first():
    assert value(OptionAccuracy(), row(OPTIONS, [-1.0, -4.0, -5.0]), 0, 2) == 1.0
    assert value(OptionAccuracy(), row(OPTIONS, [-4.0, -4.0, -5.0]), 1) == 0.0


@pytest.mark.parametrize("reference", [3, -1, "other", "D", 1.5])
def test_a_reference_that_is_no_option_is_a_mistake_in_the_data(reference):
    with pytest.raises(MetricError, match="the reference"):
        OptionAccuracy().check_row([reference], row(OPTIONS, [-1.0, -2.0, -3.0]))


def test_options_of_one_text_after_several_contexts_are_named_by_index():
    pairs = [["Ann met Bea and she", " laughed"], ["Ann met Bea and he", " laughed"]]

    assert value(OptionAccuracy(), row(pairs, [-1.0, -2.0]), 0) == 1.0
    with pytest.raises(MetricError, match="give the right one's index"):
        OptionAccuracy().check_row(["laughed"], row(pairs, [-1.0, -2.0]))


def test_lengths_are_characters_bytes_or_tokens_without_the_space_in_front():
    sums = [-13.0, -5.5, -1.5]

    assert value(OptionAccuracy(), row(OPTIONS, sums), 2) == 1.0
    # 13, 5 and 1 characters: -1, -1.1 and -1.5; 13, 5 and 2 bytes: -1, -1.1 and -0.75; 2 tokens each.
    assert value(NormalizedOptionAccuracy(), row(OPTIONS, sums), 0) == 1.0
    assert value(NormalizedOptionAccuracy(by="bytes"), row(OPTIONS, sums), 2) == 1.0
    assert value(NormalizedOptionAccuracy(by="tokens"), row(OPTIONS, sums), 2) == 1.0
    assert [NormalizedOptionAccuracy(by=by).name for by in ("characters", "bytes", "tokens")] == [
        "acc_norm",
        "acc_bytes",
        "acc_tokens",
    ]
    with pytest.raises(ConfigurationError, match="characters, bytes, tokens"):
        NormalizedOptionAccuracy(by="words")


def test_mutual_information_takes_each_options_own_baseline_away():
    fields = option_continuations(["the", "whale"], baseline="Answer:")
    scored = row(fields["continuations"], [-2.0, -6.0, -1.0, -9.0], baselines=fields["baselines"])

    assert value(OptionAccuracy(), scored, "the") == 1.0
    assert value(MutualInformationAccuracy(), scored, "whale") == 1.0
    # A baseline is no option, however likely.
    assert value(OptionAccuracy(), scored, 1) == 0.0
    with pytest.raises(MetricError, match="has no `baselines`"):
        MutualInformationAccuracy().check_row(["a"], row([" a", " b"], [-1.0, -2.0]))


def test_a_target_is_matched_when_the_model_would_have_written_it():
    assert value(GreedyMatch(), row([" Paris"], [-0.1], greedy=0)) == 1.0
    assert value(GreedyMatch(), row([" Paris"], [-0.1])) == 0.0
    assert value(GreedyMatch(), row(OPTIONS, [-1.0, -2.0, -3.0], greedy=1), "short") == 1.0
    with pytest.raises(MetricError, match="which of 3 options is right"):
        value(GreedyMatch(), row(OPTIONS, [-1.0, -2.0, -3.0]))


def test_perplexities_count_targets_words_and_bytes():
    text = row([["", "drei kleine Wörter"]], [-9.0])

    assert value(Perplexity(), row([" Paris"], [-1.5])) == pytest.approx(math.exp(1.5))
    assert value(Perplexity(), row(OPTIONS, [-1.0, -2.0, -3.0]), "short") == pytest.approx(math.exp(2))
    assert value(WordPerplexity(), text) == pytest.approx(math.exp(9 / 3))
    assert value(BytePerplexity(), text) == pytest.approx(math.exp(9 / 19))
    assert value(BitsPerByte(), text) == pytest.approx(9 / 19 / math.log(2))
    whole = row([["", "a scored form"]], [-9.0], page="the page as it was")
    assert value(WordPerplexity(text_field="page"), whole) == pytest.approx(math.exp(9 / 5))
    # So improbable that no mean could be made of the number itself.
    assert math.isfinite(value(Perplexity(), row([" Paris"], [-5_000.0])))


def test_an_answer_in_words_has_no_log_probability_to_judge():
    words = {"prompt": "Q:", "continuations": OPTIONS, "model_output": ModelOutput("short")}

    with pytest.raises(MetricError, match="this answer has none"):
        value(OptionAccuracy(), words, 1)
    with pytest.raises(MetricError, match="this one has none"):
        OptionAccuracy().check_row([1], {"prompt": "Q:"})


# --- over a run ---------------------------------------------------------------------------------------------------------


class Stated(StatelessTaskExecutor):
    """Gives each continuation the log-probability that the row states."""

    instant = True
    asked = 0

    def execute(self, task: GenerationTask) -> GenerationRecord:
        raise NotImplementedError

    def score_continuations(self, task: GenerationTask) -> GenerationRecord:
        type(self).asked += 1
        found = [Likelihood(logprob, logprob > -2, 1) for logprob in task.metadata["sums"]]
        return GenerationRecord(task, likelihood_output(task, found, evaluated_tokens=3), None)


@pytest.fixture(autouse=True)
def stated():
    PROVIDERS.register("stated", Stated)
    Stated.asked = 0


def test_a_runs_perplexity_is_made_of_all_texts_together_with_an_interval(tmp_path):
    texts = [("one two", -4.0), ("three", -5.0), ("four five six", -3.0), ("seven", -2.5)]
    rows = [{"continuations": [["", text]], "sums": [logprob]} for text, logprob in texts]

    report = themis.evaluate(rows, model="stated/any", storage=tmp_path, progress=False)

    word, byte, bits = (report.metric(name) for name in ("word_perplexity", "byte_perplexity", "bits_per_byte"))
    total, words, size = -14.5, 7, sum(len(text) for text, _ in texts)
    assert word.mean == pytest.approx(math.exp(-total / words))
    assert byte.mean == pytest.approx(math.exp(-total / size))
    assert bits.mean == pytest.approx(math.log2(byte.mean))
    assert word.ci_method == "jackknife"
    assert 1.0 < word.ci[0] < word.mean < word.ci[1]
    assert word.details == {"logprob": total, "units": words}


def test_what_a_row_is_decides_by_what_it_is_judged(tmp_path):
    def judged(continuations: list[Any], **fields: Any) -> list[str]:
        rows = [{"continuations": continuations, "sums": [-1.0] * len(continuations), "answer": 0, **fields}]
        report = themis.evaluate(iter(rows), model="stated/any", storage=tmp_path, prompt="Q:", progress=False)
        return sorted(report.evaluation_report.metrics)

    assert judged([" a", " b"]) == ["acc", "acc_norm"]
    assert judged([" a", " b", ["", " a"], ["", " b"]], baselines=[2, 3]) == ["acc", "acc_mutual_info", "acc_norm"]
    assert judged([" a"]) == ["greedy_match", "perplexity"]
    assert judged([["", "a"]]) == ["bits_per_byte", "byte_perplexity", "word_perplexity"]


def test_another_of_these_metrics_costs_no_call(tmp_path):
    rows = [{"continuations": [" a", " bbbb"], "sums": [-2.0, -3.0 - n], "answer": 1} for n in range(5)]
    common = {"model": "stated/any", "prompt": "Q:", "storage": tmp_path, "run_id": "r", "progress": False}

    first = themis.evaluate(rows, metrics=["acc"], **common)
    again = themis.evaluate(rows, metrics=["acc_norm", "greedy_match", "perplexity"], **common)

    assert (first.metric("acc").mean, again.metric("acc_norm").mean, Stated.asked) == (0.0, 1.0, 5)


def test_a_wrong_reference_is_found_before_the_first_call(tmp_path):
    rows = [{"continuations": [" a", " b"], "sums": [-1.0, -2.0], "answer": answer} for answer in (0, "c")]

    with pytest.raises(DatasetError, match=r"row 1 cannot be scored: acc: the reference 'c' is no option's"):
        themis.evaluate(rows, model="stated/any", prompt="Q:", storage=tmp_path, progress=False)
    assert Stated.asked == 0
