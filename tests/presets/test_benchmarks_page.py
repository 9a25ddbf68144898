"""docs/reference/benchmarks.md says of every benchmark what the catalogue says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from themis.evaluation.resolve import resolve_metric
from themis.presets import get_benchmark_preset
from themis.presets.benchmarks import BENCHMARKS
from themis.presets.catalogue import CATALOGUE
from themis.presets.hub import HubDataset

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "benchmarks.md").read_text(encoding="utf-8")

PROTOCOLS = PAGE.partition("<!-- protocols -->")[2].partition("<!-- end of protocols -->")[0]


@pytest.mark.parametrize("name", CATALOGUE)
def test_the_page_tells_of_every_benchmark(name):
    entry = CATALOGUE[name]

    assert f"`{name}`" in PAGE
    if isinstance(entry.source, HubDataset):
        line = next(line for line in PAGE.splitlines() if line.startswith(f"| `{name}` |"))
        for expected in (entry.description, entry.source.dataset, entry.source.split, entry.licence, entry.citation):
            assert expected in line
        assert (entry.source.revision or "newest")[:12] in line


@pytest.mark.parametrize("name", CATALOGUE)
def test_the_page_tells_the_whole_protocol(name):
    protocol = CATALOGUE[name].protocol
    (line,) = [line for line in PROTOCOLS.splitlines() if line.startswith(f"| `{name}` |")]
    _, examples, tokens, temperature, attempts, extractor, metrics, source = (
        cell.strip() for cell in line.strip("|").split("|")
    )

    few_shot, sampling = protocol.few_shot, protocol.sampling
    assert examples.partition(" ")[0] == ("–" if few_shot is None else str(few_shot.count))
    assert few_shot is None or f"`{few_shot.split}`" in examples
    assert tokens == f"{sampling.max_tokens:,}"
    nucleus = "" if sampling.top_p is None else f", top_p {sampling.top_p:g}"
    assert temperature == f"{sampling.temperature:g}{nucleus}"
    assert (attempts, extractor, source) == (str(protocol.attempts), f"`{protocol.extractor}`", protocol.source)
    assert metrics == ", ".join(f"`{metric}`" for metric in protocol.metrics)


def test_the_page_s_own_benchmark_runs(monkeypatch):
    monkeypatch.setattr(BENCHMARKS, "_targets", {name: BENCHMARKS.target(name) for name in BENCHMARKS.names()})
    (block,) = [block for block in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL) if "register_benchmark" in block]

    exec(block, {})

    preset = get_benchmark_preset("capitals")
    (row,) = preset.load_dataset(1)
    assert preset.prompt_template.fill(row) == "What is the capital of France?"
    (metric,) = [resolve_metric(metric) for metric in preset.metrics]
    assert metric.compute(prediction="It is Paris.", references=[row["answer"]]).value == 1.0
