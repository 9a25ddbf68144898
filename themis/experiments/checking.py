"""Finds what is wrong with the runs of an experiment before the first call of any: every run is put together as if it began.

Names become what they stand for, rows are read and prompts filled, machines and prices are looked at, stored runs compared.
Nothing is called, and nothing is stored.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from themis.api import make_driver
from themis.comparison.scores import find_metric
from themis.config.specification import SampleSpecification
from themis.core.user_code import load_user_code
from themis.evaluation.resolve import resolve_metric
from themis.exceptions import ConfigurationError, DatasetError, MetricError, ProviderError, ThemisError
from themis.experiment.completing import complete_from_rows
from themis.experiments.expanding import PlannedRun
from themis.experiments.mistakes import Mistakes, ValuePath
from themis.experiments.specification import ExperimentSpecification
from themis.experiments.values import Settings
from themis.generation.templates import TemplateRenderingError
from themis.runs.lifecycle import Driver, find_changed_inputs
from themis.storage import ExperimentStorage
from themis.storage.runs import explain_equal_ids

__all__ = ["CheckedRun", "check_runs", "complete_run", "in_folder", "load_code", "locate"]


@dataclass(frozen=True, kw_only=True)
class CheckedRun:
    """A run that can begin, with the number of its items. One that moves the clock has the process for itself."""

    planned: PlannedRun
    items: int = 0
    metrics: Sequence[str] = ()
    moves_clock: bool = False


@contextlib.contextmanager
def in_folder(experiment: ExperimentSpecification) -> Iterator[None]:
    """While inside, relative paths of every setting are relative to the experiment's folder: it is the working directory."""
    folder = Path(experiment.folder or ".").resolve()
    if folder == Path.cwd():
        yield
        return
    with contextlib.chdir(folder):
        yield


def load_code(experiment: ExperimentSpecification) -> None:
    """Runs the user's Python files, which register what the experiment names."""
    mistakes = Mistakes(experiment.places)
    for place, path in enumerate(experiment.load):
        try:
            load_user_code(path)
        except Exception as error:  # boundary: the file is the user's code
            mistakes.add(("load", place), _describe(error))
    mistakes.raise_any()


def complete_run(run: PlannedRun) -> PlannedRun:
    """The run with what its rows show: the prompt and the fields of a file that are not said."""
    if not isinstance(run.specification, SampleSpecification):
        return run
    return replace(run, specification=complete_from_rows(run.specification).specification)


def check_runs(
    experiment: ExperimentSpecification,
    runs: Sequence[PlannedRun],
    store: ExperimentStorage,
    mistakes: Mistakes | None = None,
) -> list[CheckedRun]:
    """The runs, once it is known that each can begin.

    Args:
        experiment: Which they belong to.
        runs: Those that are to be made.
        store: Where they are kept.
        mistakes: What is known to be wrong already, told with the rest.

    Raises:
        ConfigurationError: Lists everything that is wrong, with the lines.
    """
    mistakes = mistakes or Mistakes(experiment.places)
    found = [_check_whole(run, store, mistakes, has_budget=experiment.budget_usd is not None) for run in runs]
    checked = [run for run in found if run is not None]
    if not mistakes:
        _check_gates(experiment, checked, mistakes)
    mistakes.raise_any()
    return checked


# What is put in the place of a setting that is wrong, to find out what else is.
_HARMLESS: dict[str, Settings] = {
    "model": {"model": "fake/perfect", "provider_options": None, "batch": False},
    "dataset": {"dataset": [], "prompt": "", "data": None, "sample": False},
    "metrics": {"metrics": ["exact_match"]},
    "extractor": {"extractor": None},
    "reducer": {"reducer": None},
    "tools": {"tools": ()},
}


def _check_whole(
    run: PlannedRun, store: ExperimentStorage, mistakes: Mistakes, *, has_budget: bool
) -> CheckedRun | None:
    """The run, if it can begin; else notes all that is wrong with it: after each mistake it is tried without that setting."""
    replaced: set[str] = set()
    while True:
        try:
            checked = _check(run, store, has_budget=has_budget)
        except Exception as error:  # boundary: providers, metrics and agents are the user's code
            path = locate(run, error)
            name = next((one for one, stands in run.paths.items() if stands == path[: len(stands)]), "")
            if name in replaced:
                return None  # it may come of what was put in the place of that
            mistakes.add(path, _describe(error))
            if name == "metrics":
                _check_metrics(run, mistakes)
            if name not in _HARMLESS or not isinstance(run.specification, SampleSpecification):
                return None
            replaced.add(name)
            run = replace(run, specification=replace(run.specification, **_HARMLESS[name]))
        else:
            return checked if not replaced else None


def _check_metrics(run: PlannedRun, mistakes: Mistakes) -> None:
    """Notes every metric that there is not, for the first that is found ends the making of a run."""
    for metric in getattr(run.specification, "metrics", None) or ():
        try:
            resolve_metric(metric)
        except Exception as error:  # boundary: a metric is the user's code
            mistakes.add(locate(run, error), _describe(error))


def _check(run: PlannedRun, store: ExperimentStorage, *, has_budget: bool) -> CheckedRun:
    run = complete_run(run)
    driver = make_driver(run.specification, store, keep=False)
    with contextlib.closing(driver):
        driver.check()
        if has_budget or run.specification.budget_usd is not None:
            driver.refuse_unknown_costs()
        find_changed_inputs(driver, store, "another name for what has changed")
        stored = store.find_run(run.run_id) if run.specification.resume else None
        if stored is not None and stored.has_dataset:
            items = stored.count_samples()
        else:
            items = _count_items(driver)
        return CheckedRun(planned=run, items=items, metrics=driver.metric_names, moves_clock=driver.moves_clock)


def _count_items(driver: Driver) -> int:
    """How many items a run has; what is wrong with a row is found when it is read, and with two when both are.

    Raises:
        DatasetError: Rows cannot be used.
        TemplateRenderingError: A row does not fill the prompt.
    """
    positions: dict[str, int] = {}
    try:
        for item in driver.items():
            if (first := positions.setdefault(item.item_id, item.position)) != item.position:
                raise DatasetError(explain_equal_ids(item.item_id, first, item.position))
    except TemplateRenderingError:
        raise
    except ConfigurationError as error:
        raise DatasetError(str(error)) from error  # and so it is told with the line of the dataset
    return len(positions)


def _check_gates(experiment: ExperimentSpecification, runs: Sequence[CheckedRun], mistakes: Mistakes) -> None:
    """Every gate judges by a metric that its runs have, and has something to judge."""
    baselines = experiment.baselines
    for kind, path in (("samples", ("gates",)), ("memory", ("memory", "gates"))):
        of_kind = [run for run in runs if run.planned.kind == kind]
        for place, rule in enumerate(experiment.gates_of(kind)):
            meant = [run for run in of_kind if rule.only is None or run.planned.matches(rule.only)]
            for run in meant:
                try:
                    find_metric(rule.metric, list(run.metrics), f"the metrics of {run.planned.name!r}")
                except MetricError as error:
                    mistakes.add((*path, place, "metric"), str(error))
            if not any(run.planned.run_id in baselines or not rule.is_comparative for run in meant):
                what = "judges no run: " + ("none has a baseline" if meant else f"none is called {rule.only!r}")
                mistakes.add((*path, place), f"the gate of {rule.metric} {what}")


# What is wrong with a run, by the kind of error, where the error quotes no value of a setting.
_USUAL = {
    TemplateRenderingError: ("prompt", "prompt_file"),
    DatasetError: ("dataset",),
    ProviderError: ("model", "agent"),
    MetricError: ("metrics",),
}


def locate(run: PlannedRun, error: BaseException) -> ValuePath:
    """Where the setting stands that an error is about: the one whose value it quotes, the longest if several."""
    message, quoted = str(error), dict[ValuePath, str]()
    for name, path in run.paths.items():
        for place, text in _parts(path, getattr(run.specification, name, None)):
            shown = str(text) if isinstance(text, str | os.PathLike) else ""
            # Metrics are quoted without their parameters, or by one of them.
            called, _, parameters = shown.partition("(")
            if shown and (
                any(repr(form) in message for form in (shown, called))
                or any(one in parameters for one in re.findall(r"'[^']+'", message))
            ):
                quoted[place] = shown
    if quoted:
        return max(quoted, key=lambda path: len(quoted[path]))
    first = message.split(maxsplit=1)[0] if message else ""
    usual = next((names for kind, names in _USUAL.items() if isinstance(error, kind)), ())
    return next((run.paths[name] for name in (first, *usual, "model", "agent", "dataset") if name in run.paths), ())


def _parts(path: ValuePath, value: object) -> Iterator[tuple[ValuePath, object]]:
    """What a setting consists of, each with its place: entries of a list, keys of a mapping, or the value itself."""
    if isinstance(value, list | tuple):
        yield from (((*path, place), one) for place, one in enumerate(value))
    elif isinstance(value, Mapping):
        yield from (((*path, str(key)), key) for key in value)
    else:
        yield path, value


def _describe(error: BaseException) -> str:
    return str(error) if isinstance(error, ThemisError) else f"{type(error).__name__}: {error}"
