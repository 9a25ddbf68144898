"""The pages for whoever comes from another tool are true: what they name here exists, and their words are answered."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from tests.contract.countdown import REPOSITORY
from themis.cli import themis
from themis.cli.elsewhere import _COMMANDS, _OPTIONS
from themis.evaluation.extractors import EXTRACTORS
from themis.evaluation.metrics import METRICS
from themis.evaluation.registries import _METRICS_ELSEWHERE
from themis.evaluation.resolve import resolve_extractor, resolve_metric
from themis.exceptions import ProviderError
from themis.generation.providers import parse_model

GUIDES = REPOSITORY / "docs" / "guides"
PAGES = sorted(GUIDES.glob("from-*.md"))


def cells(page: Path) -> Iterator[tuple[str, str]]:
    """What is theirs and what it is here, row by row of the page's table."""
    table = page.read_text(encoding="utf-8").partition("\n|---|---|\n")[2].partition("\n\n")[0]
    for line in table.splitlines():
        theirs, here = re.split(r"(?<!\\)\|", line.strip("|"))
        yield theirs, here


def code(text: str) -> list[str]:
    return re.findall(r"`([^`]+)`", text)


def our_options(command: click.Command | None = None) -> set[str]:
    command = command or themis
    found = {name for parameter in command.params for name in [*parameter.opts, *parameter.secondary_opts]}
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            found |= our_options(command.get_command(context, name))
    return found


def test_there_are_pages_for_the_tools_that_people_come_from():
    assert [page.stem for page in PAGES] == ["from-inspect", "from-lm-eval", "from-promptfoo", "from-themis-1"]
    assert all(len(list(cells(page))) > 15 for page in PAGES)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_option_that_a_page_names_as_ours_is_one(page):
    named = {
        word for _, here in cells(page) for text in code(here) for word in re.findall(r"(?<!\w)--?[a-z][\w-]*", text)
    }

    assert named - our_options() == set()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_metric_and_extractor_that_a_page_names_can_be_used_as_written(page):
    named = [text for _, here in cells(page) for text in code(here)]
    calls = [text for text in named if re.match(r"\w+\(", text)]
    for call in calls:
        written = call.replace("provider/model", "a/b").replace("{...}", "{}")
        name = written.partition("(")[0]
        if name in METRICS:
            resolve_metric(written)
        elif name in EXTRACTORS:
            resolve_extractor(written)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_whoever_types_an_option_of_theirs_is_answered(page):
    theirs = {
        word for cell, _ in cells(page) for text in code(cell) for word in re.findall(r"(?<!\S)--[a-z][\w-]*", text)
    }

    known = {*our_options(), *_OPTIONS}
    assert {word for word in theirs if word.replace("_", "-") not in known} == set()


def test_whoever_types_a_command_of_theirs_is_answered():
    told = set(re.findall(r"`(?:inspect|promptfoo) ([a-z-]+)", "".join(page.read_text() for page in PAGES)))

    assert told >= {"eval", "eval-retry", "score", "view"}
    assert told - {*_COMMANDS, *themis.list_commands(click.Context(themis))} == set()


def test_no_metric_of_ours_is_taken_for_one_of_another_tool_and_what_is_named_in_its_place_exists():
    assert [name for name in _METRICS_ELSEWHERE if name in METRICS] == []
    for here in _METRICS_ELSEWHERE.values():
        named = re.findall(r"[a-z_0-9]+(?:\([^)]*\))?", here.replace("provider/model", "a/b"))
        assert any(name.partition("(")[0] in METRICS for name in named) or "@themis.metric" in here, here


@pytest.mark.parametrize(
    ("theirs", "here"),
    [
        ("openai:chat:gpt-4o-mini", "openai/gpt-4o-mini"),
        ("anthropic:messages:claude-haiku-4-5", "anthropic/claude-haiku-4-5"),
        ("ollama:chat:llama3:8b", "ollama/llama3:8b"),
    ],
)
def test_a_model_that_is_named_as_in_promptfoo_is_told_its_name_here(theirs, here):
    with pytest.raises(ProviderError, match=f"here it is '{here}'"):
        parse_model(theirs)
    assert parse_model(theirs.replace(":", "/", 1)).identifier == theirs.partition(":")[2]
    assert parse_model("ollama:llama3:8b").identifier == "llama3:8b"


NAMES_OF_1_3 = """
from themis import evaluate, get_benchmark_preset, list_datasets, register_metric, register_provider
from themis.backends import LocalExecutionBackend, RayExecutionBackend
from themis.comparison import ComparisonEngine, StatisticalTest, compare_runs
from themis.datasets import create_dataset, is_dataset_registered, list_datasets, register_dataset
from themis.evaluation.metrics import ExactMatch, MathVerifyAccuracy, PairwiseJudgeMetric, ResponseLength, RubricJudgeMetric
from themis.experiment.export import export_html_report, export_report_csv, export_report_json, export_summary_json
from themis.experiment.share import create_share_pack
from themis.providers import create_provider, list_providers, parse_model, register_provider
from themis.storage import ExperimentStorage, RetentionPolicy
"""


@pytest.mark.parametrize("line", NAMES_OF_1_3.strip().splitlines())
def test_programs_for_1_3_find_the_names_that_its_documentation_imports(line):
    exec(compile(line, "<program>", "exec"), {})
