"""Measures of corpora, classes, confidence and ranked lists: their values against references, and what counts in them."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Mapping

import numpy as np
import pytest
import sacrebleu
from hypothesis import given, settings
from hypothesis import strategies as st

import themis
from themis.core.entities import GenerationRecord, ModelError, ModelOutput
from themis.evaluation.aggregations import register_aggregation
from themis.evaluation.corpus import Corpus, Observation
from themis.evaluation.extractors import ConfidenceExtractor, FieldExtractionError
from themis.evaluation.metrics import Brier, CorpusBleu, Ece, MacroF1, MeanAveragePrecision, Ndcg, PrecisionAtK
from themis.evaluation.resolve import resolve_metric
from themis.exceptions import ConfigurationError, MetricError
from themis.interfaces import StatelessTaskExecutor


class Say(StatelessTaskExecutor):
    """Says what the row's field `said` holds; a field `error` is a call that fails."""

    instant = True

    def execute(self, task):
        row = task.prompt.context
        if row.get("error"):
            return GenerationRecord(task, None, ModelError("broken", "refused", retryable=False))
        return GenerationRecord(task, ModelOutput(row["said"], raw=row.get("raw")), None)


@pytest.fixture
def run(tmp_path):
    themis.register_provider("say", Say)

    def evaluate(rows, metrics, **options):
        rows = [{"id": f"r{n}", **row} for n, row in enumerate(rows)]
        options = {"prompt": "{id}", "reference_field": "expected", "progress": False, **options}
        return themis.evaluate(rows, model="say/it", metrics=metrics, storage=tmp_path / "store", **options)

    return evaluate


def corpus(aggregation: str, statistics, clusters=None) -> Corpus:
    labels = clusters or itertools.repeat(None)
    observed = [
        Observation(str(n), label, {"statistics": one})
        for n, (one, label) in enumerate(zip(statistics, labels, strict=False))
    ]
    return Corpus.build(aggregation, "measure", observed)


# --- texts --------------------------------------------------------------------------------------------------------------

WORDS = ["the", "a", "Cat", "dog", "sat,", "ran.", "on", "under", "mat", "house", "3.5", "über", "猫"]


def translations(seed: int, count: int = 40):
    rng = random.Random(seed)
    rows = []
    for n in range(count):
        reference = " ".join(rng.choices(WORDS, k=rng.randint(1, 12)))
        said = " ".join(word if rng.random() < 0.6 else rng.choice(WORDS) for word in reference.split())
        rows.append({"said": "" if n % 9 == 4 else said, "expected": [reference, " ".join(rng.choices(WORDS, k=6))]})
    return rows


@pytest.mark.parametrize(
    ("metric", "score"),
    [
        ("corpus_bleu", lambda said, of: sacrebleu.corpus_bleu(said, of)),
        ("corpus_bleu(tokenize='char', lowercase=True)",
         lambda said, of: sacrebleu.corpus_bleu(said, of, lowercase=True, tokenize="char")),
        ("corpus_bleu(smooth_method='add-k')", lambda said, of: sacrebleu.corpus_bleu(said, of, smooth_method="add-k")),
        ("corpus_bleu(smooth_method='floor', smooth_value=0.2)",
         lambda said, of: sacrebleu.corpus_bleu(said, of, smooth_method="floor", smooth_value=0.2)),
        ("corpus_chrf", lambda said, of: sacrebleu.corpus_chrf(said, of)),
        ("corpus_chrf(word_order=2)", lambda said, of: sacrebleu.corpus_chrf(said, of, word_order=2)),
        ("ter", lambda said, of: sacrebleu.corpus_ter(said, of)),
        ("ter(normalized=True, no_punct=True)", lambda said, of: sacrebleu.corpus_ter(said, of, normalized=True, no_punct=True)),
    ],
)  # fmt: skip
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_corpus_score_is_sacrebleus(run, metric, score, seed):
    rows = translations(seed)

    report = run(rows, [metric])

    ((_, found),) = report.evaluation_report.metrics.items()
    references = [[row["expected"][n] for row in rows] for n in (0, 1)]
    assert found.mean == pytest.approx(score([row["said"] for row in rows], references).score / 100, rel=1e-12)
    assert found.ci[0] < found.mean < found.ci[1]
    assert found.count == 40


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.lists(st.integers(0, 9), min_size=10, max_size=10), min_size=1, max_size=4),
    st.sampled_from(["exp", "floor", "add-k", "none"]),
)
def test_bleu_of_any_sums_is_sacrebleus(rows, method):
    for row in rows:
        # No more matches than n-grams.
        row[2:6] = [min(found, total) for found, total in zip(row[2:6], row[6:], strict=True)]
    sums = np.sum(rows, axis=0).tolist()
    expected = sacrebleu.BLEU(smooth_method=method)._compute_score_from_stats(list(sums)).score / 100

    assert corpus(f"corpus_bleu(smooth_method={method!r})", rows).value == pytest.approx(expected, rel=1e-9, abs=1e-15)


def test_an_answer_that_cannot_be_read_counts_as_an_empty_one_and_a_failed_call_not_at_all(run):
    rows = [{"said": f"<answer>{row['said']}</answer>", "expected": row["expected"]} for row in translations(5, 20)]
    rows[3]["said"] = "no tag"
    rows[7]["error"] = True

    report = run(rows, ["corpus_bleu", "ter"], extractor="xml_tag('answer')")

    said = [row["said"][8:-9] if row["said"] != "no tag" else "" for row in rows]
    kept = [n for n in range(20) if n != 7]
    references = [[rows[n]["expected"][which] for n in kept] for which in (0, 1)]
    hypotheses = [said[n] for n in kept]
    for name, score in (("corpus_bleu", sacrebleu.corpus_bleu), ("ter", sacrebleu.corpus_ter)):
        found = report.metric(name)
        assert found.mean == pytest.approx(score(hypotheses, references).score / 100)
        assert (found.count, found.failed, found.unparsed) == (19, 1, 1)


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ("corpus_bleu(tokenize='14a')", "unknown tokenize '14a'"),
        ("corpus_bleu(smooth_method='expo')", "did you mean 'exp'"),
        ("corpus_bleu(max_ngram_order=0)", "at least 1"),
        ("corpus_chrf(char_order=0)", "at least 1"),
        ("macro_f1(labels='yes')", "a list of at least two classes"),
        ("kappa(labels=['Yes', 'yes.'])", "read the same"),
        ("ece(bins=0)", "at least 1"),
        ("ece(metric='response_length')", "correctness is a metric of which 1 is right"),
        ("ndcg(gain='log')", "'linear' or 'exponential'"),
        ("recall@0", "at least 1"),
        ("exact_match@3", "unexpected keyword argument 'k'"),
    ],
)
def test_an_option_that_makes_no_sense_is_refused(written, told):
    with pytest.raises(ConfigurationError, match=told):
        resolve_metric(written)


# --- classes ------------------------------------------------------------------------------------------------------------


def by_hand(pairs) -> dict[str, float]:
    """From the definitions, with a plain confusion matrix."""
    classes = sorted({expected for expected, _ in pairs})
    answers = [*classes, None]
    said = [answer if answer in classes else None for _, answer in pairs]
    n = len(pairs)
    table = {
        (e, p): sum(1 for (x, _), y in zip(pairs, said, strict=True) if (x, y) == (e, p))
        for e in classes
        for p in answers
    }
    rows = {e: sum(table[e, p] for p in answers) for e in classes}
    columns = {p: sum(table[e, p] for e in classes) for p in answers}
    f1 = {e: 2 * table[e, e] / (rows[e] + columns[e]) for e in classes}
    right = sum(table[e, e] for e in classes)
    chance = sum(rows[e] * columns[e] for e in classes)
    spread = (n**2 - sum(v**2 for v in columns.values())) * (n**2 - sum(v**2 for v in rows.values()))
    return {
        "accuracy": right / n,
        "balanced_accuracy": sum(table[e, e] / rows[e] for e in classes) / len(classes),
        "macro_f1": sum(f1.values()) / len(classes),
        "weighted_f1": sum(f1[e] * rows[e] for e in classes) / n,
        "mcc": (right * n - chance) / math.sqrt(spread) if spread else 0.0,
        "kappa": (right / n - chance / n**2) / (1 - chance / n**2) if chance < n**2 else 0.0,
    }


@settings(max_examples=80, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(["a", "b", "c", "d", None])), min_size=1, max_size=30)
)
def test_numbers_of_classes_are_those_of_their_definitions(pairs):
    for name, expected in by_hand(pairs).items():
        assert corpus(name, pairs).value == pytest.approx(expected, abs=1e-12), name


def test_kappa_and_mcc_agree_with_other_definitions():
    rng = np.random.default_rng(0)
    expected, said = rng.integers(0, 2, 200), rng.integers(0, 2, 200)
    pairs = [[str(one), str(other)] for one, other in zip(expected, said, strict=True)]
    from statsmodels.stats.inter_rater import cohens_kappa

    table = np.array([[np.sum((expected == row) & (said == column)) for column in (0, 1)] for row in (0, 1)])

    assert corpus("mcc", pairs).value == pytest.approx(np.corrcoef(expected, said)[0, 1])
    assert corpus("kappa", pairs).value == pytest.approx(cohens_kappa(table).kappa)


def test_answers_outside_the_classes_stand_in_a_column_of_their_own(run):
    rows = [{"said": said, "expected": expected} for said, expected in
            (("Cat.", "cat"), ("DOG", "dog"), ("a fish", "cat"), ("", "dog"), ("cat", "dog"))]  # fmt: skip

    details = run(rows, ["macro_f1", "accuracy"]).metric("macro_f1").details

    cells = {(one["expected"], one["predicted"]): one["count"] for one in details["confusion"]}
    assert cells == {
        ("cat", "cat"): 1,
        ("cat", "(other)"): 1,
        ("dog", "cat"): 1,
        ("dog", "dog"): 1,
        ("dog", "(other)"): 1,
    }
    assert details["classes"] == ["cat", "dog"]
    assert [(one["precision"], one["recall"]) for one in details["by_class"]] == [(0.5, 0.5), (1.0, 1 / 3)]


def test_labels_fix_the_order_of_the_classes_and_a_reference_outside_them_is_a_mistake(run):
    rows = [{"said": "yes", "expected": "Yes"}, {"said": "no", "expected": "no"}]

    report = run(rows, ["macro_f1(labels=['yes', 'no', 'maybe'])"])
    assert report.metric("macro_f1").details["classes"] == ["yes", "no", "maybe"]
    # A class that is neither expected nor answered does not count.
    assert report.metric("macro_f1").mean == 1.0

    with pytest.raises(themis.ThemisError, match="'perhaps' is none of the labels"):
        run([{"said": "yes", "expected": "perhaps"}], ["macro_f1(labels=['yes', 'no'])"])


def test_one_of_several_right_classes_suffices():
    assert MacroF1().compute(prediction="B", references=["a", "b"]).details == {"statistics": ["b", "b"]}
    assert MacroF1().compute(prediction="c", references=["a", "b"]).details == {"statistics": ["a", "c"]}


def test_a_thousand_classes_are_counted():
    rng = np.random.default_rng(1)
    expected, other, right = rng.integers(1000, size=5000), rng.integers(1000, size=5000), rng.random(5000) < 0.7
    pairs = [[str(e), str(e if r else o)] for e, o, r in zip(expected, other, right, strict=True)]

    found = corpus("macro_f1", pairs)

    assert found.value == pytest.approx(
        by_hand([tuple(pair) for pair in pairs[:0]] or [("a", "a")])["macro_f1"], abs=0.35
    )
    assert 0.6 < found.interval()[0] < found.value < found.interval()[1] < 0.8


# --- confidence ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "confidence"),
    [
        ("Paris. Confidence: 80%", 0.8), ('{"answer": "Paris", "confidence": 0.85}', 0.85), ("**Confidence:** 8/10", 0.8),
        ("Confidence (0-100): 70", 0.7), ("I am 95% sure that it is Paris", 0.95), ("My confidence is about 0.6.", 0.6),
        ("Confidence level: .5", 0.5), ("probability = 1", 1.0), ("confidence: 20%\nNo: confidence: 90 percent", 0.9),
        ("I'm 7 out of 10 confident", 0.7), ("85%", 0.85), ("0.3", 0.3), ("Certainty: 1%", 0.01),
    ],
)  # fmt: skip
def test_a_stated_confidence_is_read(text, confidence):
    assert ConfidenceExtractor().extract(text) == pytest.approx(confidence)


@pytest.mark.parametrize("text", ["It is Paris, founded in 250.", "Confidence: 180%", "confidence: high", ""])
def test_what_states_no_confidence_is_not_read(text):
    with pytest.raises(FieldExtractionError):
        ConfidenceExtractor().extract(text)


def test_calibration_is_computed_from_the_whole_reply_whatever_the_extractor_takes(run):
    rows = [
        {"said": "Answer: Paris\nConfidence: 90%", "expected": "Paris"},
        {"said": "Answer: Rome\nConfidence: 70%", "expected": "Paris"},
        {"said": "Answer: Oslo\nConfidence: 65%", "expected": "Oslo"},
        {"said": "who knows. Confidence: 10%", "expected": "Bern"},
        {"said": "Answer: Bern", "expected": "Bern"},
    ]

    report = run(rows, ["exact_match", "ece", "brier"], extractor=r"regex('Answer: ([A-Z]\\w+)')")

    # Bins (0.8, 0.9], (0.6, 0.7] with two, (0, 0.1]: 0.1 + |1.35 - 1| + 0.1, over four.
    assert report.metric("ece").mean == pytest.approx((0.1 + 0.35 + 0.1) / 4)
    assert report.metric("brier").mean == pytest.approx((0.01 + 0.49 + 0.35**2 + 0.01) / 4)
    assert [(report.metric(name).count, report.metric(name).failed) for name in ("ece", "brier", "exact_match")] == [
        (4, 1), (4, 1), (5, 0)]  # fmt: skip
    filled = [one for one in report.metric("ece").details["reliability"] if one["count"]]
    assert [(one["high"], one["count"], one["accuracy"]) for one in filled] == [
        (0.1, 1, 0.0),
        (0.7, 2, 0.5),
        (0.9, 1, 1.0),
    ]
    assert "no confidence is stated" in report.evaluation_report.failures[0].message


def test_log_probabilities_are_a_confidence():
    tokens = {"content": [{"token": "Pa", "logprob": math.log(0.9)}, {"token": "ris", "logprob": math.log(0.4)}]}
    given = {"prediction": "Paris", "references": ["Paris"]}

    score = Brier(confidence="logprobs").compute(
        **given, metadata={"model_output": ModelOutput("Paris", logprobs=tokens)}
    )
    assert score.value == pytest.approx((0.6 - 1) ** 2)
    with pytest.raises(MetricError, match="came without: ask for them"):
        Ece(confidence="logprobs").compute(**given, metadata={"model_output": ModelOutput("Paris")})


def test_the_interval_of_a_calibrated_models_error_reaches_zero():
    rng = np.random.default_rng(4)
    confidence = rng.beta(4, 1.5, size=100)
    calibrated = [[float(c), float(rng.random() < c)] for c in confidence]
    boastful = [[float(c), float(rng.random() < 0.3)] for c in confidence]

    assert corpus("ece", calibrated).value > 0.05
    assert corpus("ece", calibrated).interval()[0] == 0.0
    low, high = corpus("ece", boastful).interval()
    assert 0.2 < low < 0.45 < high < 0.6


# --- ranked lists -------------------------------------------------------------------------------------------------------


def dcg(gains, k):
    return sum(gain / math.log2(place + 2) for place, gain in enumerate(gains[:k]))


@settings(max_examples=80, deadline=None)
@given(
    st.permutations([f"d{n}" for n in range(7)]),
    st.integers(0, 7),
    st.dictionaries(st.sampled_from([f"d{n}" for n in range(9)]), st.integers(1, 3), min_size=1),
    st.integers(1, 8),
)
def test_ranked_lists_score_as_their_definitions_say(order, length, relevant, k):
    said = order[:length]
    gains = [relevant.get(one, 0) for one in said]
    hits = [bool(gain) for gain in gains]
    precisions = [sum(hits[: place + 1]) / (place + 1) for place in range(min(k, length)) if hits[place]]
    expected = {
        f"mrr@{k}": 1 / (hits.index(True) + 1) if any(hits[:k]) else 0.0,
        f"ndcg@{k}": dcg(gains, k) / dcg(sorted(relevant.values(), reverse=True), k),
        f"recall@{k}": sum(hits[:k]) / len(relevant),
        f"precision@{k}": sum(hits[:k]) / k,
        f"map@{k}": sum(precisions) / min(len(relevant), k),
    }
    for name, value in expected.items():
        metric = resolve_metric(name)
        assert metric.name == name
        assert metric.compute(prediction=said, references=[relevant]).value == pytest.approx(value), name


@pytest.mark.parametrize(
    "answer",
    ['["d2", "d9", "d5"]', "1. d2\n2. d9\n3. d5", "Here you are:\n- `d2`\n- d9\n- d5", "d2\nd9\nd5", "d2, d9, d5",
     '{"ranking": ["d2", "d9", "d5"]}', '[{"id": "d2", "score": 3}, {"id": "d9"}, {"id": "d5"}]',
     {"d9": 0.5, "d2": 0.9, "d5": 0.5}, ("d2", "d9", "d2", "d5")],
)  # fmt: skip
def test_a_list_is_read_in_any_of_its_forms(answer):
    found = MeanAveragePrecision().compute(prediction=answer, references=["d2", "d5"])

    assert found.details["ranked"] == ["d2", "d9", "d5"]
    assert found.value == pytest.approx((1 + 2 / 3) / 2)


def test_an_empty_list_scores_nothing_and_a_row_without_relevant_ids_fails():
    assert Ndcg().compute(prediction="[]", references=["a"]).value == 0.0
    assert PrecisionAtK().compute(prediction="", references=["a"]).value == 0.0
    assert PrecisionAtK().compute(prediction=None, references=["a"]).value == 0.0
    with pytest.raises(MetricError, match="at least one relevant id"):
        Ndcg().compute(prediction="a", references=[{"a": 0}])
    with pytest.raises(MetricError, match="a number of at least 0"):
        Ndcg().compute(prediction="a", references=[{"a": "very"}])


# --- over a run ---------------------------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from("abc")), min_size=2, max_size=20),
    st.sampled_from(["macro_f1", "mcc", "kappa", "balanced_accuracy"]),
    st.randoms(),
)
def test_an_interval_holds_the_value_has_a_width_and_stays_in_range(pairs, name, order):
    found = corpus(name, pairs)
    low, high = found.interval()
    bottom, top = found.aggregation.value_range

    assert bottom <= low <= found.value <= high <= top
    assert low < high
    shuffled = order.sample(pairs, len(pairs))
    assert corpus(name, shuffled).interval() == pytest.approx((low, high), abs=1e-9)


def test_clusters_are_left_out_whole():
    pairs = [["a", "a"], ["b", "b"], ["a", "b"]] * 10
    alone = corpus("macro_f1", pairs)
    # Each item three times is no more evidence than once.
    tripled = corpus("macro_f1", [pair for pair in pairs for _ in range(3)], [str(n // 3) for n in range(90)])

    assert tripled.interval() == pytest.approx(alone.interval())
    assert tripled.summarise().method == "jackknife_clustered"


def test_attempts_at_an_item_share_its_weight(run):
    class Changing(StatelessTaskExecutor):
        prompt_only = True

        def execute(self, task):
            return GenerationRecord(task, ModelOutput("ab"[task.metadata["attempts"] % 2]), None)

    themis.register_provider("changing", Changing)
    rows = [{"id": str(n), "q": str(n), "expected": "a"} for n in range(4)] + [{"id": "x", "q": "x", "expected": "b"}]
    for reducer in ("average", "keep"):
        report = themis.evaluate(rows, model="changing/it", prompt="{q}", reference_field="expected", num_samples=2,
                                 reducer=reducer, metrics=["macro_f1"], progress=False, run_id=reducer)  # fmt: skip
        cells = {
            (one["expected"], one["predicted"]): one["count"] for one in report.metric("macro_f1").details["confusion"]
        }
        assert cells == {("a", "a"): 2, ("a", "b"): 2, ("b", "a"): 0.5, ("b", "b"): 0.5}
        assert report.metric("macro_f1").mean == pytest.approx((2 * 2 / 6.5 + 2 * 0.5 / 3.5) / 2)


def test_a_users_own_number_over_a_run_is_computed_from_the_store(run, tmp_path):
    register_aggregation("ratio_of_lengths", lambda sums: sums[:, 0] / sums[:, 1], value_range=(0.0, None))

    @themis.metric(aggregation="ratio_of_lengths", score_range=(0, None))
    def length_ratio(prediction, reference):
        return len(prediction) / len(reference), {"statistics": [len(prediction), len(reference)]}

    rows = [{"said": "a" * n, "expected": "b" * (n + 3)} for n in range(1, 9)]
    found = run(rows, [length_ratio]).metric("length_ratio")

    assert found.mean == pytest.approx(36 / 60)
    assert 0 < found.ci[0] < 0.6 < found.ci[1]
    assert isinstance(found.details, Mapping)


def test_an_aggregation_that_nobody_has_registered_is_refused_before_the_first_call():
    with pytest.raises(ConfigurationError, match=r"unknown aggregation 'nowhere'.*once the module that registers it"):
        themis.metric(aggregation="nowhere")(lambda prediction: 1.0)


def test_scores_without_statistics_are_refused():
    with pytest.raises(MetricError, match="holds no statistics"):
        Corpus.build("macro_f1", "macro_f1", [Observation("a", None, {})])


def test_options_are_part_of_the_identity_of_a_metric():
    from themis.core.identity import describe_object

    assert describe_object(CorpusBleu()) == describe_object(CorpusBleu())
    assert describe_object(CorpusBleu()) != describe_object(CorpusBleu(tokenize="char"))
    assert describe_object(Ece()) != describe_object(Ece(metric="includes"))
    assert describe_object(Ece()) != describe_object(Ece(confidence="json_field('confidence')"))


@pytest.mark.parametrize("reducer", ["pass@2", "any"])
def test_attempts_that_passed_are_not_counted_of_a_number_over_all_samples(run, reducer):
    rows = [{"said": "a", "expected": "a"}, {"said": "b", "expected": "a"}]
    options = {"num_samples": 2, "reducer": reducer}

    with pytest.raises(ConfigurationError, match="macro_f1 is a number over all samples"):
        run(rows, ["macro_f1"], **options)
    # Accuracy is a mean, of which passed attempts can be counted.
    assert run(rows, ["accuracy"], **options).metric("accuracy").mean == 0.5
