"""The specification of an experiment: subjects x prompts x datasets x sampling, and a memory sweep, as a list of runs.

A file, a dict and a program all become one `ExperimentSpecification`; it expands into the specifications of single runs, by
the fields that those have: a new field of theirs can be set in an experiment without a word here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Self

from themis.comparison.engine import TestSettings
from themis.config.loading import read_located_yaml
from themis.core.redaction import redact
from themis.exceptions import ConfigurationError
from themis.experiments.expanding import Expanded, PlannedRun, expand
from themis.experiments.gates import GateRule
from themis.experiments.mistakes import Mistakes, Places
from themis.experiments.values import Settings
from themis.storage.runs import is_storable

__all__ = ["ExperimentSpecification", "MistakenExperimentError", "load_experiment"]

# What stands on an axis: a list, or a mapping from names.
AxisValues = Sequence[object] | Mapping[str, object]
# What a file may not say, for it is said by the file itself.
_NOT_IN_FILES = ("settings", "folder", "places")
_MOST_PARALLEL = 1_000


class MistakenExperimentError(ConfigurationError):
    """What is wrong with a specification, and the rest of it: whoever can look at its runs tells what is wrong with them, too."""

    def __init__(self, experiment: ExperimentSpecification, mistakes: Mistakes) -> None:
        super().__init__(mistakes.describe())
        self.experiment = experiment
        self.mistakes = mistakes


@dataclass(frozen=True, kw_only=True)
class ExperimentSpecification:
    """Many runs asked for as one: every subject with every prompt on every dataset with every sampling.

    What stands on an axis is given as a list, or as a mapping from names: each a bare value (a model, a prompt, a dataset), or
    a mapping of any settings of a run. Such a mapping may also name the variants of other axes that it goes with.

    Args:
        name: Of the experiment: its runs belong to it, and their ids begin with it.
        subjects: Who answers: models, functions, endpoints, programs; a bare value is `model`.
        prompts: What is asked; a bare value is `prompt`.
        datasets: Of what; a bare value is `dataset`.
        sampling: Settings that vary besides, such as `{temperature: 0.7, num_samples: 5}`.
        settings: Settings that all sample runs share, by the fields of `SampleSpecification`. A file has them beside the other
            keys. Metrics with parameters may be written as `{numeric: {tolerance: 0.01}}`; `prompt_file` names a prompt's file.
        memory: A sweep of memory runs: `agents`, `configurations`, `spans` and `seeds` (a number, or a list) as axes,
            `baseline` and `gates` as here, and settings by the fields of `MemorySpecification`.
        baseline: Labels of what runs are compared with, such as `gpt-4o` or `[gpt-4o, plain]`: a run's baseline has these in
            place of its own on their axes. The first variant of every axis but the datasets by default.
        gates: Limits that every run must keep: `metric` with rules of `Gate` beside the baseline (`min_delta`,
            `non_inferiority`, ...), or `at_least` and `at_most` for its mean; `only` names the runs.
        compare: How differences are tested: `test`, `alpha`, `correction`.
        budget_usd: Never spend more than this on all runs together, earlier sessions included.
        parallel: Runs at once; with 1 for models that run on this machine.
        fail_on_errors: The share of a run's items that may fail; more is told and makes the exit code 1.
        load: Python files that register metrics, providers, agents and others.
        folder: What relative paths are relative to; the working directory by default, a file's own folder for a file.
        places: Where in a file each value stands, for messages.

    Raises:
        ConfigurationError: Lists everything that is wrong with it.

    >>> experiment = ExperimentSpecification(
    ...     name="sums",
    ...     subjects=["fake/perfect", {"name": "weak", "model": "fake/noisy-0.5"}],
    ...     datasets=["demo"],
    ...     sampling={"greedy": {"temperature": 0}, "five": {"temperature": 0.7, "num_samples": 5}},
    ... )
    >>> [run.run_id for run in experiment.runs]
    ['sums--perfect--demo--greedy', 'sums--perfect--demo--five', 'sums--weak--demo--greedy', 'sums--weak--demo--five']
    """

    name: str
    subjects: AxisValues = ()
    prompts: AxisValues = ()
    datasets: AxisValues = ()
    sampling: AxisValues = ()
    settings: Mapping[str, object] = field(default_factory=dict)
    memory: Mapping[str, object] = field(default_factory=dict)
    baseline: str | Sequence[str] | None = None
    gates: Sequence[Mapping[str, object]] = ()
    compare: Mapping[str, object] = field(default_factory=dict)
    budget_usd: float | None = None
    parallel: int = 4
    fail_on_errors: float | None = None
    load: Sequence[str] = ()
    folder: str = ""
    places: Places = field(default_factory=Places, repr=False, compare=False)

    def __post_init__(self) -> None:
        mistakes = Mistakes(self.places)
        if not self._check_own_values(mistakes):
            mistakes.raise_any()
        self.__dict__["_expanded"] = expand(self, mistakes)
        if mistakes:
            raise MistakenExperimentError(self, mistakes)

    @classmethod
    def from_values(
        cls, values: Mapping[str, object], *, name: str = "", folder: str = "", places: Places | None = None
    ) -> Self:
        """From the keys of a file.

        Args:
            values: Keys of an experiment and settings of its runs, beside each other.
            name: Of the experiment, where the values say none.
            folder: What relative paths are relative to.
            places: Where each value stands.

        Raises:
            ConfigurationError: Lists everything that is wrong.

        >>> ExperimentSpecification.from_values({"name": "sums", "model": "fake/perfect", "dataset": "demo"}).runs[0].run_id
        'sums'
        """
        places = places or Places()
        if not isinstance(values, Mapping):
            raise ConfigurationError(
                f"{places.find(())}: an experiment is a mapping of keys, got {redact(values)!r}".lstrip(": ")
            )
        own = cls.own_keys()
        given: Settings = {key: value for key, value in values.items() if key in own and value is not None}
        settings = {str(key): value for key, value in values.items() if key not in own}
        return cls(**{"name": name, **given}, settings=settings, folder=folder, places=places)

    @classmethod
    def own_keys(cls) -> list[str]:
        """The keys of a file that are the experiment's own; the others are settings of its runs."""
        return [one.name for one in fields(cls) if one.name not in _NOT_IN_FILES]

    @property
    def runs(self) -> list[PlannedRun]:
        """Every run of it, those of samples first."""
        return list(self._expansion.runs)

    @property
    def baselines(self) -> dict[str, str]:
        """For the id of a run the id of its baseline, where it has one."""
        return dict(self._expansion.baselines)

    def gates_of(self, kind: str) -> list[GateRule]:
        """The gates of its runs of a kind.

        Args:
            kind: `samples` or `memory`.
        """
        return list(self._expansion.gates[kind])

    @property
    def test_settings(self) -> TestSettings:
        """How differences are tested."""
        return self._expansion.test_settings

    @property
    def _expansion(self) -> Expanded:
        found: Expanded = self.__dict__["_expanded"]
        return found

    def _check_own_values(self, mistakes: Mistakes) -> bool:
        """Whether runs can be made of it, whatever else is wrong."""
        has_runs = True
        for name, is_good, what in (
            ("name", _is_name(self.name), "is what the experiment is called, a text that can be stored"),
            ("memory", isinstance(self.memory, Mapping), "is a mapping of a sweep's keys"),
            ("compare", isinstance(self.compare, Mapping), "is a mapping, such as {alpha: 0.01}"),
            ("budget_usd", self.budget_usd is None or _is_above(self.budget_usd, 0), "is a number greater than 0"),
            (
                "parallel",
                isinstance(self.parallel, int) and _is_above(self.parallel, 0) and self.parallel <= _MOST_PARALLEL,
                f"is a whole number from 1 to {_MOST_PARALLEL:,}",
            ),
            ("fail_on_errors", self.fail_on_errors is None or _is_share(self.fail_on_errors), "is a share from 0 to 1"),
            ("load", _are_texts(self.load), "is a list of Python files"),
        ):
            if not is_good:
                mistakes.add((name,), f"{name} {what}, got {redact(getattr(self, name))!r}")
                has_runs = has_runs and name not in ("name", "memory", "load")
        return has_runs


def _is_name(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip()) and is_storable(value)


def _is_above(value: object, bound: float) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and bound < value < math.inf


def _is_share(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1


def _are_texts(value: object) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str) and all(isinstance(one, str) for one in value)


def load_experiment(source: str | Path | Mapping[str, object] | ExperimentSpecification) -> ExperimentSpecification:
    """The experiment that a file, a dict of the same keys, or a specification is.

    Args:
        source: A YAML file; its name is the experiment's where it says none, and its folder what paths are relative to.

    Raises:
        ConfigurationError: Lists everything that is wrong, with the lines.

    >>> _ = Path("sums.yml").write_text("model: fake/perfect\\ndatasets: [demo]\\nlimt: 3\\n")
    >>> load_experiment("sums.yml")
    Traceback (most recent call last):
    themis.experiments.specification.MistakenExperimentError: sums.yml:3: unknown key 'limt' (did you mean 'limit'?)
    """
    if isinstance(source, ExperimentSpecification):
        return source
    if isinstance(source, Mapping):
        return ExperimentSpecification.from_values(source, name="experiment")
    file = Path(source)
    found = read_located_yaml(file)
    places = Places(str(source), found.lines)
    return ExperimentSpecification.from_values(
        found.content if found.content is not None else {}, name=file.stem, folder=str(file.parent), places=places
    )
