"""From the axes of an experiment to its runs: every combination with its settings, its id and its baseline."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, get_type_hints

from themis.comparison.engine import CORRECTIONS, StatisticalTest, TestSettings
from themis.config.specification import MemorySpecification, SampleSpecification, Specification
from themis.core.codec import digest
from themis.core.redaction import redact
from themis.core.registry import nearest
from themis.evaluation.judges import find_judges
from themis.exceptions import ConfigurationError
from themis.experiments.gates import GateRule, read_gates
from themis.experiments.mistakes import Mistakes, ValuePath
from themis.experiments.values import (
    PROMPT_FILE,
    Settings,
    check_setting,
    explain_unknown,
    fits,
    read_settings,
    reusable,
    settable,
)
from themis.experiments.variants import (
    MEMORY_AXES,
    SAMPLE_AXES,
    Axis,
    Variant,
    read_names,
    read_variants,
    slug,
    slug_pattern,
)
from themis.interfaces import Metric

if TYPE_CHECKING:
    from themis.experiments.specification import ExperimentSpecification

__all__ = ["Expanded", "PlannedRun", "expand", "find_baselines", "make_run_id"]

# Between the parts of a run's id, and the most characters of one before it is cut.
_JOINT = "--"
_LONGEST_ID = 120
_MOST_SEEDS = 10_000
_USUAL_CONFIGURATION = "quick"
# Keys of a memory sweep beside its axes and the settings of its runs.
_OF_THE_SWEEP = ("baseline", "gates")
# What a variant says in one form takes the place of what all share in the other.
_INSTEAD_OF = {"prompt": PROMPT_FILE, PROMPT_FILE: "prompt"}


@dataclass(frozen=True, kw_only=True)
class PlannedRun:
    """One run of an experiment.

    Args:
        specification: What it is asked to be, with its id.
        labels: What it is called on each axis that the experiment has.
        paths: Where each of its settings stands.

    >>> import themis
    >>> experiment = {"name": "sums", "dataset": "demo", "subjects": ["fake/perfect", "fake/echo"]}
    >>> themis.ExperimentSpecification.from_values(experiment).runs[1].name
    'echo'
    """

    specification: Specification
    labels: Mapping[str, str] = field(default_factory=dict)
    paths: Mapping[str, ValuePath] = field(default_factory=dict)

    @property
    def run_id(self) -> str:
        """Its id, made of the experiment's name and the labels."""
        return str(self.specification.run_id)

    @property
    def kind(self) -> str:
        """`samples` or `memory`."""
        return self.specification.kind

    @property
    def name(self) -> str:
        """What it is called within the experiment."""
        return " · ".join(self.labels.values()) or self.run_id

    def matches(self, pattern: str) -> bool:
        """Whether a pattern such as `*terse*` names it: its id, its name, or one of its labels.

        Args:
            pattern: With `*`, `?` and `[...]` as in a shell.
        """
        texts = (self.run_id, self.name, *self.labels.values())
        return any(fnmatchcase(text, one) for text in texts for one in (pattern, slug_pattern(pattern)))

    def to_be_made(self, *, resume: bool, allow_drift: bool = False) -> PlannedRun:
        """The same run, gone on with or begun anew.

        Args:
            resume: Go on with what is stored of it.
            allow_drift: Begin anew where inputs have changed, with every stored answer that still fits.
        """
        return replace(self, specification=replace(self.specification, resume=resume, allow_drift=allow_drift))


@dataclass(frozen=True, kw_only=True)
class Expanded:
    """The runs of an experiment, for each its baseline, and by kind of run the gates."""

    runs: Sequence[PlannedRun]
    baselines: Mapping[str, str]
    gates: Mapping[str, Sequence[GateRule]]
    test_settings: TestSettings


def expand(experiment: ExperimentSpecification, mistakes: Mistakes) -> Expanded:
    """Everything that an experiment asks for; what is wrong with it is added to the mistakes."""
    samples = _Part(
        kind=SampleSpecification,
        axes=SAMPLE_AXES,
        needed=(("subjects", "model"), ("datasets", "dataset")),
        given={axis.key: getattr(experiment, axis.key) for axis in SAMPLE_AXES},
        shared=_good_settings(SampleSpecification, experiment.settings, (), experiment.own_keys(), mistakes),
    )
    if not experiment.memory or samples.is_meant:
        samples.require(mistakes)
    runs = list(samples.expand(experiment, mistakes)) if samples.is_meant else []
    baselines = find_baselines(runs, experiment.baseline, ("baseline",), mistakes)
    gates = {"samples": read_gates(experiment.gates, ("gates",), mistakes), "memory": list[GateRule]()}
    if experiment.memory:
        memory = _memory_part(experiment, mistakes)
        swept = list(memory.expand(experiment, mistakes))
        baselines |= find_baselines(swept, experiment.memory.get("baseline"), ("memory", "baseline"), mistakes)
        if (given := experiment.memory.get("gates")) is not None:
            gates["memory"] = read_gates(given, ("memory", "gates"), mistakes)
        runs += swept
    if not mistakes:
        _refuse_equal_ids(runs, mistakes)
    return Expanded(
        runs=runs, baselines=baselines, gates=gates, test_settings=_read_test_settings(experiment.compare, mistakes)
    )


def _memory_part(experiment: ExperimentSpecification, mistakes: Mistakes) -> _Part:
    keys = [axis.key for axis in MEMORY_AXES]
    given = {key: experiment.memory[key] for key in keys if experiment.memory.get(key) is not None}
    if isinstance(seeds := given.get("seeds"), int) and not isinstance(seeds, bool):
        if not 1 <= seeds <= _MOST_SEEDS:
            problem = f"seeds is a list, or how many of them: 1 to {_MOST_SEEDS:,}, got {seeds}"
            mistakes.add(("memory", "seeds"), problem)
        given["seeds"] = list(range(min(seeds, _MOST_SEEDS)))
    said = {name: value for name, value in experiment.memory.items() if name not in (*keys, *_OF_THE_SWEEP)}
    shared = _good_settings(MemorySpecification, said, ("memory",), [*keys, *_OF_THE_SWEEP], mistakes)
    part = _Part(
        kind=MemorySpecification,
        axes=MEMORY_AXES,
        needed=(("agents", "agent"),),
        given=given,
        shared=shared,
        path=("memory",),
    )
    part.require(mistakes)
    if "configurations" not in given:
        part.shared.setdefault("configuration", _USUAL_CONFIGURATION)
    return part


def _good_settings(
    kind: type[Specification], settings: object, path: ValuePath, others: Sequence[str], mistakes: Mistakes
) -> Settings:
    """The settings that there are and that fit; the rest are mistakes."""
    known = [*settable(kind), PROMPT_FILE, *others]
    good = {}
    for name, value in settings.items() if isinstance(settings, Mapping) else ():
        if name not in settable(kind) and name != PROMPT_FILE:
            mistakes.add((*path, str(name)), explain_unknown(str(name), known))
        elif misfit := check_setting(kind, name, value):
            mistakes.add((*path, name), misfit)
        else:
            good[name] = reusable(value)
    return good


@dataclass(kw_only=True)
class _Part:
    """The runs of one kind: axes, what stands on them, and what all runs share."""

    kind: type[Specification]
    axes: Sequence[Axis]
    # Settings that every run has, each with the axis that says it unless all share it.
    needed: Sequence[tuple[str, str]]
    given: Mapping[str, object]
    shared: Settings
    path: ValuePath = ()

    @property
    def is_meant(self) -> bool:
        """Whether anything is said of such runs."""
        return any(self.given.values()) or bool(self.shared)

    def require(self, mistakes: Mistakes) -> None:
        """Notes what is missing, unless a key that is wrong may have been meant for it."""
        for axis, setting in self.needed if not mistakes else ():
            if not self.given.get(axis) and setting not in self.shared:
                mistakes.add((*self.path, axis), f"there are no {axis}; name them under {axis}:, or one as {setting}:")

    def expand(self, experiment: ExperimentSpecification, mistakes: Mistakes) -> Iterator[PlannedRun]:
        standing = {
            axis.key: read_variants(axis, self.given[axis.key], (*self.path, axis.key), self.axes, mistakes)
            for axis in self.axes
            if self.given.get(axis.key) not in (None, (), [], {})
        }
        _check_goes_with(standing, mistakes)
        every = [dict(zip(standing, variants, strict=True)) for variants in itertools.product(*standing.values())]
        combined = [chosen for chosen in every if _go_together(chosen)]
        if not mistakes:  # else they may come of it
            _check_combined(standing, combined, mistakes)
        for chosen in combined:
            if (run := self._plan(experiment, chosen, mistakes)) is not None:
                yield run

    def _plan(
        self, experiment: ExperimentSpecification, chosen: Mapping[str, Variant], mistakes: Mistakes
    ) -> PlannedRun | None:
        labels = {axis: variant.label for axis, variant in chosen.items()}
        paths: dict[str, ValuePath] = {name: (*self.path, name) for name in self.shared}
        values, said_by = dict(self.shared), dict[str, str]()
        for axis, variant in chosen.items():
            for name, value in variant.values.items():
                if isinstance(value, Mapping) and isinstance(values.get(name), Mapping):
                    value = {**values[name], **value}
                elif name in said_by:
                    what = f"{name} is said twice: here, and by {said_by[name]}"
                    mistakes.add((*variant.path, name), what)
                values[name], said_by[name] = value, f"{axis}, {variant.label!r}"
                paths[name] = (*variant.path, name)
                if (other := _INSTEAD_OF.get(name)) in values and other not in said_by:
                    del values[other], paths[other]
        for axis, setting in self.needed:
            if setting not in values:
                if axis in chosen and not mistakes:  # else a value that is wrong may have been meant for it
                    mistakes.add(chosen[axis].path, f"{chosen[axis].label!r} of {axis} has no {setting}")
                return None
        decided: Settings = {
            "run_id": make_run_id(experiment.name, list(labels.values())),
            "experiment": experiment.name,
        }
        if "load" in settable(self.kind):
            decided["load"] = [*experiment.load, *values.pop("load", ())]
        try:
            read = _own_copies(read_settings(values, experiment.folder))
            specification = self.kind.from_values({**read, **decided})
        except ConfigurationError as error:
            mistakes.add(_find_path(paths, str(error)), str(error))
            return None
        return PlannedRun(specification=specification, labels=labels, paths=paths)


def _find_path(paths: Mapping[str, ValuePath], message: str) -> ValuePath:
    """Where the setting stands that a message begins with."""
    first = message.split(maxsplit=1)[0] if message else ""
    return paths.get(first, next(iter(paths.values()), ()))


def _own_copies(values: Mapping[str, object]) -> Settings:
    """Judges made in Python are bound to the run that they judge: each run has its own."""
    own = dict(values)
    metrics = own.get("metrics")
    if isinstance(metrics, Sequence):
        own["metrics"] = [
            copy.deepcopy(one) if isinstance(one, Metric) and find_judges([one]) else one for one in metrics
        ]
    return own


def _go_together(chosen: Mapping[str, Variant]) -> bool:
    return all(
        axis not in chosen or chosen[axis].label in labels
        for variant in chosen.values()
        for axis, labels in variant.goes_with.items()
    )


def _check_goes_with(standing: Mapping[str, Sequence[Variant]], mistakes: Mistakes) -> None:
    for variant in itertools.chain.from_iterable(standing.values()):
        for axis, labels in variant.goes_with.items():
            known = [one.label for one in standing.get(axis, ())]
            for label in labels:
                if label not in known:
                    shown = f"; there are {', '.join(known)}" if known else ""
                    mistakes.add(
                        (*variant.path, axis), f"no {axis} are called {label!r}{nearest(str(label), known)}{shown}"
                    )


def _check_combined(
    standing: Mapping[str, Sequence[Variant]], combined: Sequence[Mapping[str, Variant]], mistakes: Mistakes
) -> None:
    """Notes what would be left out without a word: variants that the others do not go with."""
    used = {(axis, variant.label) for chosen in combined for axis, variant in chosen.items()}
    every = [(axis, variant) for axis, variants in standing.items() for variant in variants]
    left_out = [(axis, variant) for axis, variant in every if (axis, variant.label) not in used]
    # Those that say whom they go with, where there are any: the others may be left out because of them.
    for axis, variant in [pair for pair in left_out if pair[1].goes_with] or left_out:
        mistakes.add(variant.path, f"{variant.label!r} of {axis} goes with nothing: no run would be made of it")


def make_run_id(name: str, labels: Sequence[str]) -> str:
    """The id of a run: the same for the same experiment and combination.

    >>> make_run_id("capitals", ["gpt-4o", "terse"])
    'capitals--gpt-4o--terse'
    """
    whole = _JOINT.join([slug(name), *labels])
    return whole if len(whole) <= _LONGEST_ID else f"{whole[:_LONGEST_ID]}-{digest(whole)[:8]}"


def _refuse_equal_ids(runs: Sequence[PlannedRun], mistakes: Mistakes) -> None:
    seen: dict[str, PlannedRun] = {}
    for run in runs:
        if run.run_id in seen:
            path = next(iter(run.paths.values()), ())
            mistakes.add(path, f"two runs would be called {run.run_id!r}; name an agent or a subject otherwise")
        seen[run.run_id] = run


# --- comparing --------------------------------------------------------------------------------------------------------


def find_baselines(runs: Sequence[PlannedRun], wanted: object, path: ValuePath, mistakes: Mistakes) -> dict[str, str]:
    """For each run the one that has the baseline's labels in place of its own; by default the first variants' labels."""
    if not runs:
        return {}
    given = None if wanted is None else read_names(wanted)
    if given is None and wanted is not None:
        mistakes.add(path, f"baseline is a name of what stands on an axis, or a list of such, got {redact(wanted)!r}")
        return {}
    replaced: dict[str, str] = {}
    if wanted is None:
        replaced = {axis: label for axis, label in runs[0].labels.items() if axis not in ("datasets", "spans", "seeds")}
    for label in given or ():
        axes = sorted({axis for run in runs for axis, own in run.labels.items() if own == label})
        if len(axes) != 1:
            known = list(dict.fromkeys(own for run in runs for own in run.labels.values()))
            what = (
                f"is on several axes ({', '.join(axes)})" if axes else f"stands on no axis{nearest(str(label), known)}"
            )
            mistakes.add(path, f"baseline {label!r} {what}")
            return {}
        replaced[axes[0]] = str(label)
    by_labels = {tuple(sorted(run.labels.items())): run.run_id for run in runs}
    found = {}
    for run in runs:
        baseline = by_labels.get(tuple(sorted({**run.labels, **replaced}.items())))
        if baseline is not None and baseline != run.run_id:
            found[run.run_id] = baseline
    return found


def _read_test_settings(compare: object, mistakes: Mistakes) -> TestSettings:
    hints = get_type_hints(TestSettings)
    known: dict[str, object] = {one.name: hints[one.name] for one in fields(TestSettings)} | {
        "test": str,
        "correction": str | bool | None,
    }
    values: Settings = {}
    for name, value in compare.items() if isinstance(compare, Mapping) else ():
        if name not in known:
            mistakes.add(("compare", str(name)), explain_unknown(str(name), list(known)))
        elif not fits(value, known[name]):
            mistakes.add(("compare", name), f"{name} of compare cannot be {redact(value)!r}")
        else:
            values[name] = value
    if values.get("correction") in ("none", False):
        values["correction"] = None
    try:
        if "test" in values:
            values["test"] = StatisticalTest(values["test"])
        return TestSettings(**values)
    except (ConfigurationError, TypeError, ValueError) as error:
        tests, corrections = ", ".join(one.value for one in StatisticalTest), ", ".join(CORRECTIONS)
        mistakes.add(("compare",), f"{error}; test is one of {tests}; correction one of {corrections}, none")
        return TestSettings()
