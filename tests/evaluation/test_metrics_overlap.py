"""BLEU, chrF, ROUGE, METEOR and embeddings: hand-checked cases, and agreement with the packages everyone compares with."""

from __future__ import annotations

import random
import sys

import pytest
import sacrebleu
from nltk.translate.meteor_score import single_meteor_score
from rouge_score.rouge_scorer import RougeScorer

from themis.evaluation.metrics import METRICS, Bleu, Chrf, EmbeddingSimilarity, Meteor, Rouge1, Rouge2, RougeL
from themis.evaluation.metrics.overlap import _NoSynonyms
from themis.evaluation.resolve import resolve_metric
from themis.exceptions import ConfigurationError, DependencyError

WORDS = [
    "the", "a", "cat", "cats", "dog", "sat", "sitting", "on", "under", "mat", "matting", "quickly", "happiness", "happy",
    "42", "it's", "runs,", "running.", "Paris!",
]  # fmt: skip


def value(metric, prediction, *references):
    found = metric.compute(prediction=prediction, references=list(references))
    assert 0.0 <= found.value <= 1.0
    return found.value


def sentences(seed, count=200):
    draw = random.Random(seed)
    for _ in range(count):
        yield [" ".join(draw.choices(WORDS, k=draw.randint(0, 14))) for _ in range(3)]


def test_bleu_agrees_with_sacrebleu_on_two_hundred_random_cases():
    for answer, *references in sentences(1):
        theirs = sacrebleu.sentence_bleu(answer, references).score / 100
        assert value(Bleu(), answer, *references) == pytest.approx(theirs, abs=1e-12)


def test_chrf_agrees_with_sacrebleu_on_two_hundred_random_cases():
    for answer, *references in sentences(2):
        theirs = sacrebleu.sentence_chrf(answer, references).score / 100
        assert value(Chrf(), answer, *references) == pytest.approx(theirs, abs=1e-12)
    assert (
        value(Chrf(word_order=2), "the cat", "the dog")
        == sacrebleu.sentence_chrf("the cat", ["the dog"], word_order=2).score / 100
    )


def test_rouge_agrees_with_rouge_score_on_two_hundred_random_cases():
    ours = [Rouge1(), Rouge2(), RougeL()]
    for stem in (True, False):
        scorer = RougeScorer(["rouge1", "rouge2", "rougeL"], use_stemmer=stem)
        for answer, *references in sentences(3):
            theirs = scorer.score_multi(references, answer)
            for metric in ours:
                metric.stem = stem
                found = metric.compute(prediction=answer, references=references)
                assert found.value == pytest.approx(theirs[metric.name].fmeasure, abs=1e-12)
    assert found.details.keys() == {"precision", "recall"}


def test_meteor_agrees_with_nltk_on_two_hundred_random_cases():
    for answer, *references in sentences(4):
        tokens = [
            [word.strip(".,!").lower() for word in text.replace("'", " ").split()] for text in (answer, *references)
        ]
        theirs = max(single_meteor_score(reference, tokens[0], wordnet=_NoSynonyms()) for reference in tokens[1:])
        assert value(Meteor(), answer, *references) == pytest.approx(theirs, abs=1e-12)


@pytest.mark.parametrize(
    ("metric", "prediction", "references", "expected"),
    [
        (Bleu(), "the cat sat on the mat", ["the cat sat on the mat"], 1),
        (Bleu(), "", ["the cat"], 0),
        (Bleu(), "x", ["the cat sat"], 0),
        (Bleu(), 42, ["42"], 1),
        (Bleu(), "猫 が いる の", ["猫 が いる の"], 1),
        (Chrf(), "größe", ["größe"], 1),
        (Chrf(), "", ["x"], 0),
        (Chrf(), "abc", ["xyz"], 0),
        (Rouge1(), "cats sat", ["the cat sat"], 0.8),
        (Rouge1(stem=False), "cats sat", ["the cat sat"], 0.4),
        (Rouge1(), "", [""], 0),
        (Rouge1(), "Москва", ["Москва", "x"], 1),
        (Rouge1(), "東京都", ["東京"], 0.8),
        (Rouge2(), "the cat sat", ["the cat ran"], 0.5),
        (Rouge2(), "cat", ["cat"], 0),
        (RougeL(), "a c b", ["a b c"], 2 / 3),
        (RougeL(), "a b", ["x y", "a b"], 1),
        (Meteor(), "the cat sat", ["the cat sat"], 1 - 0.5 / 27),
        (Meteor(), "dog", ["cat"], 0),
        (Meteor(), "", ["cat"], 0),
        (Meteor(gamma=0.0), "cats", ["cat"], 1),
    ],
)
def test_overlap_by_hand(metric, prediction, references, expected):
    assert value(metric, prediction, *references) == pytest.approx(expected, abs=1e-9)


def test_bleu_gives_the_numbers_behind_the_score():
    details = Bleu().compute(prediction="the cat sat", references=["the cat sat down"]).details
    assert details["precisions"][0] == 1.0
    assert (details["answer_words"], details["reference_words"]) == (3, 4)
    assert details["brevity_penalty"] == pytest.approx(2.718281828 ** (1 - 4 / 3))


def test_embeddings_know_what_is_related():
    metric = EmbeddingSimilarity()

    def near(one, *others):
        return metric.compute(prediction=one, references=list(others)).value

    assert near("a dog barked", "a dog barked") == pytest.approx(1.0)
    assert near("the physician treated her", "the doctor cured her") > near(
        "the physician treated her", "stock prices fell"
    )
    assert near("a cat", "stock prices", "a cat") == pytest.approx(1.0)
    assert near("", "a cat") == 0.0
    assert near("a cat", "") == 0.0
    assert near("a cat", "", "a cat") == pytest.approx(1.0)


def test_synonyms_need_data_and_say_which(monkeypatch):
    from nltk.corpus import wordnet

    monkeypatch.setattr(type(wordnet), "ensure_loaded", _not_there, raising=False)
    with pytest.raises(ConfigurationError, match=r"needs WordNet: python -m nltk\.downloader wordnet"):
        Meteor(synonyms=True)


def _not_there(self):
    raise LookupError("wordnet")


@pytest.mark.parametrize(
    ("name", "module", "extra"),
    [
        ("bleu", "sacrebleu", "nlp"),
        ("chrf", "sacrebleu", "nlp"),
        ("rouge1", "nltk", "nlp"),
        ("meteor", "nltk", "nlp"),
        ("embedding_similarity", "wordllama", "nlp"),
        ("math_verify", "math_verify", "math"),
    ],
)
def test_a_missing_package_is_named_before_the_run(monkeypatch, name, module, extra):
    import importlib.util

    there = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda wanted, *rest: None if wanted == module else there(wanted, *rest)
    )
    with pytest.raises(DependencyError, match=rf"{name}.* needs the package .*themis-eval\[{extra}\]"):
        resolve_metric(name)


def test_naming_the_metrics_loads_none_of_their_packages():
    """The list of metrics is part of the command line's start."""
    import subprocess

    code = "import sys; from themis.evaluation.resolve import describe; from themis.evaluation.metrics import METRICS; "
    code += "[describe(METRICS, name) for name in METRICS.names()]; "
    code += "print(*(m for m in ('nltk', 'sacrebleu', 'sympy', 'numpy', 'wordllama') if m in sys.modules))"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == ""
    assert "rougeL" in METRICS
