"""What the documentation of metrics, extractors and judges shows is what they do."""

from __future__ import annotations

import doctest
import importlib
import inspect

import pytest

from themis.evaluation import agreement, audit_answers, judge_rates, judges, pipeline, resolve, strategies
from themis.evaluation.extractors import EXTRACTORS
from themis.evaluation.metrics import METRICS
from themis.evaluation.registries import EXTRACTOR_CLASSES, METRIC_CLASSES

MODULES = sorted({target.partition(":")[0] for target in (*METRIC_CLASSES.values(), *EXTRACTOR_CLASSES.values())})
CLASSES = [*map(METRICS.get, METRIC_CLASSES), *map(EXTRACTORS.get, EXTRACTOR_CLASSES), judges.JudgePanel]


@pytest.mark.parametrize(
    "name",
    [*MODULES, *(module.__name__ for module in (agreement, audit_answers, judge_rates, pipeline, resolve, strategies))],
)
def test_the_examples_give_what_they_show(name, monkeypatch):
    for registry in (METRICS, EXTRACTORS):
        monkeypatch.setattr(registry, "_targets", {name: registry.target(name) for name in registry.names()})
        monkeypatch.setattr(registry, "_registered", set())

    failed, tried = doctest.testmod(importlib.import_module(name))

    assert failed == 0
    assert tried > 0


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_every_parameter_and_an_example_are_documented(kind):
    documentation = inspect.getdoc(kind) or ""
    parameters = list(inspect.signature(kind).parameters)

    assert ">>> " in documentation
    assert [name for name in parameters if f"\n    {name}: " not in documentation] == []
