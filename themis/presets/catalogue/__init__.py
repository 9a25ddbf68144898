"""The benchmarks that Themis knows, as data; a file for each family.

Each says where the rows come from and at which revision, how a raw row becomes one of ours, how the model is asked
and how its reply is judged. Every one of the Hub's has a file of sample rows in `samples/`, made by us in the source's
layout, with which all of that is tested.
"""

from __future__ import annotations

from themis.presets.benchmarks import CatalogueBenchmark, DatasetFactory, dataset_of
from themis.presets.catalogue.choice import CHOICE
from themis.presets.catalogue.code import CODE
from themis.presets.catalogue.contests import CONTESTS
from themis.presets.catalogue.knowledge import KNOWLEDGE
from themis.presets.catalogue.language import LANGUAGE
from themis.presets.catalogue.long_context import LONG_CONTEXT
from themis.presets.catalogue.mathematics import MATHEMATICS
from themis.presets.catalogue.puzzles import PUZZLES
from themis.presets.catalogue.reasoning import REASONING

CATALOGUE: dict[str, CatalogueBenchmark] = {
    benchmark.name: benchmark
    for family in (PUZZLES, MATHEMATICS, CHOICE, KNOWLEDGE, REASONING, LANGUAGE, LONG_CONTEXT, CODE, CONTESTS)
    for benchmark in family
}
DATASETS: dict[str, DatasetFactory] = {name: dataset_of(benchmark) for name, benchmark in CATALOGUE.items()}
