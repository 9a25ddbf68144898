"""How lm-eval makes one number of its documents' values, and a group's of its tasks', as aggregations of ours.

Functions of sums are computed as such, so that intervals and comparisons cost nothing; any other function of lm-eval's or of a
task's own file is called with the documents' values.
"""

from __future__ import annotations

import inspect
import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import ClassVar, TypeAlias

import numpy as np
import numpy.typing as npt

from themis.core.codec import to_plain
from themis.core.intervals import Floats, ScoreRange
from themis.core.registry import import_extra
from themis.evaluation.aggregations import Aggregation, Rows
from themis.exceptions import ConfigurationError, MetricError
from themis.presets.lm_eval.index import Foreign, load_index, tasks_folder

# What lm-eval's `process_results` gives for a document under one metric.
Item: TypeAlias = Foreign
ItemFunction: TypeAlias = Callable[[Sequence[Item]], Foreign]

_TASK = "task:"
# What rounding leaves of a weight that is taken away.
_NOTHING = 1e-9


# --- names of functions --------------------------------------------------------------------------------------------------


def name_function(function: Foreign, task: str, metric: str) -> str:
    """A name under which another process finds the function: lm-eval's own, a file's, or that of a Python task."""
    registry = import_extra("lm_eval.api.registry", "lm-eval", "aggregating lm-eval's metrics").AGGREGATION_REGISTRY
    if function is np.mean:
        return "mean"
    for name, known in registry.items():
        if known is function:
            return str(name)
    qualified = getattr(function, "__qualname__", "<")
    if "<" in qualified or isinstance(function, partial):
        return f"{_TASK}{task}:{metric}"
    path, folder = Path(inspect.getfile(function)).resolve(), tasks_folder().resolve()
    return f"{path.relative_to(folder) if path.is_relative_to(folder) else path}:{qualified}"


@lru_cache(maxsize=256)
def find_function(name: str) -> ItemFunction:
    """The function of a name that `name_function` gave.

    Raises:
        ConfigurationError: Its file is not here.
        DependencyError: lm-eval is not installed.
    """
    if name.startswith(_TASK):
        return _find_in_task(*name.removeprefix(_TASK).rpartition(":")[::2])
    path, _, function = name.rpartition(":")
    if not path:
        import_extra("lm_eval.api.metrics", "lm-eval", "aggregating lm-eval's metrics")
        registry = import_extra("lm_eval.api.registry", "lm-eval", "aggregating lm-eval's metrics")
        found: ItemFunction = registry.get_aggregation(name)
        return found
    file = Path(path) if Path(path).is_absolute() else tasks_folder() / path
    if not file.is_file():
        raise ConfigurationError(f"the figure is made by {function} of {path}, and that file is not here")
    loader = import_extra("lm_eval.tasks._yaml_loader", "lm-eval", "aggregating lm-eval's metrics")
    target: Foreign = loader._load_module_with_cache(file.resolve())
    for part in function.split("."):
        target = getattr(target, part)
    return _as_function(target)


def call_function(name: str, items: Sequence[Item]) -> float:
    """A function's value, without its library's remarks on classes that a few documents do not have."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return float(find_function(name)(items))


def _find_in_task(task: str, metric: str) -> ItemFunction:
    """Of a task that is a Python class: what its `aggregation` says needs no dataset."""
    loader = import_extra("lm_eval.tasks._yaml_loader", "lm-eval", "aggregating lm-eval's metrics")
    entry = load_index().find(task)
    made = loader.load_yaml(entry.path, resolve_func=True) if entry.path else {}
    if "class" in made:
        return _as_function(object.__new__(made["class"]).aggregation()[metric])
    for one in made.get("metric_list") or ():
        if one.get("metric") == metric and callable(one.get("aggregation")):
            return _as_function(one["aggregation"])
    raise ConfigurationError(f"lm-eval's task {task!r} does not say how {metric} is aggregated")


def _as_function(target: Foreign) -> ItemFunction:
    function: ItemFunction = target
    return function


# --- values in a store ---------------------------------------------------------------------------------------------------


def pack(item: Item) -> object:
    """A document's value as a store keeps it: a tuple as a list, a list and a set by name."""
    if isinstance(item, tuple):
        return [_pack_part(part) for part in item]
    return _pack_part(item)


def _pack_part(part: Foreign) -> object:
    if isinstance(part, set | frozenset):
        return {"set": to_plain(sorted(part, key=repr))}
    if isinstance(part, list):
        return {"list": to_plain(part)}
    if hasattr(part, "tolist"):
        return part.tolist() if not getattr(part, "ndim", 0) else {"list": part.tolist()}
    return to_plain(part)


def unpack(stored: object) -> Item:
    """The opposite of `pack`.

    >>> unpack(pack((["a"], 3, {"x"})))
    (['a'], 3, {'x'})
    """
    if isinstance(stored, list):
        return tuple(_unpack_part(part) for part in stored)
    return _unpack_part(stored)


def _unpack_part(part: object) -> Foreign:
    if isinstance(part, Mapping) and len(part) == 1:
        if "list" in part:
            return part["list"]
        if "set" in part:
            return set(part["set"])
    return part


# --- functions of sums ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _OfSums:
    """A function of columns that are summed over documents: what a document adds, and the value of sums and counts."""

    columns: Callable[[Item], Sequence[float]]
    value: Callable[[Floats, Floats], Floats]
    value_range: ScoreRange | None = None
    # What is done to a task's values before they are looked at one by one.
    prepare: Callable[[list[Item]], list[Item]] = lambda items: items


def _mean(sums: Floats, counts: Floats) -> Floats:
    found: Floats = sums[..., 0] / counts
    return found


def _ratio(sums: Floats, counts: Floats) -> Floats:
    found: Floats = sums[..., 0] / sums[..., 1]
    return found


def _brier(item: Item) -> list[float]:
    gold, probabilities = item
    expected = np.eye(len(probabilities))[gold]
    return [float(np.sum((np.asarray(probabilities) - expected) ** 2))]


def _sacrebleu(make: Callable[[Foreign], Foreign], value_range: ScoreRange) -> _OfSums:
    """sacrebleu's own statistics of a sentence, and its own score of their sums."""

    def columns(item: Item) -> list[float]:
        references, said = item
        text = said if isinstance(said, str) else said[0]
        found = _scorer(make)._extract_corpus_statistics([text], [[one] for one in references])[0]
        return [float(one) for one in found]

    def prepare(items: list[Item]) -> list[Item]:
        several = [([item[0]] if isinstance(item[0], str) else list(item[0]), item[1]) for item in items]
        # Where documents have different numbers of references, lm-eval takes as many of each as all have.
        fewest = min((len(references) for references, _ in several), default=0)
        return [(references[:fewest], said) for references, said in several]

    def value(sums: Floats, counts: Floats) -> Floats:
        scorer = _scorer(make)
        lines = zip(sums.reshape(-1, sums.shape[-1]), counts.ravel(), strict=True)
        found = [
            scorer._compute_score_from_stats(line.tolist()).score if count > 0 else math.nan for line, count in lines
        ]
        return np.asarray(found).reshape(sums.shape[:-1])

    return _OfSums(columns, value, value_range, prepare)


@lru_cache(maxsize=8)
def _scorer(make: Callable[[Foreign], Foreign]) -> Foreign:
    return make(import_extra("sacrebleu.metrics", "lm-eval", "aggregating lm-eval's metrics"))


OF_SUMS: dict[str, _OfSums] = {
    "mean": _OfSums(lambda item: [float(item)], _mean),
    "perplexity": _OfSums(lambda item: [float(item)], lambda sums, counts: np.exp(-_mean(sums, counts)), (0.0, None)),
    "weighted_perplexity": _OfSums(lambda item: item, lambda sums, counts: np.exp(-_ratio(sums, counts)), (0.0, None)),
    "bits_per_byte": _OfSums(lambda item: item, lambda sums, counts: -_ratio(sums, counts) / math.log(2), (0.0, None)),
    "brier_score": _OfSums(_brier, _mean, (0.0, 2.0)),
    "bleu": _sacrebleu(lambda metrics: metrics.BLEU(), (0.0, 100.0)),
    "chrf": _sacrebleu(lambda metrics: metrics.CHRF(), (0.0, 100.0)),
    "chrf++": _sacrebleu(lambda metrics: metrics.CHRF(word_order=2), (0.0, 100.0)),
    "ter": _sacrebleu(lambda metrics: metrics.TER(), (0.0, None)),
}


# --- aggregations --------------------------------------------------------------------------------------------------------


@dataclass
class LmEvalAggregation(Aggregation):
    """One number of lm-eval's, of a task's documents or of a group's tasks.

    Args:
        function: What makes a task's number of its documents' values: a name of lm-eval's, a function of a file, or for tasks
            that differ one for each.
        tasks: Of a group or a tag its tasks; a score's statistics are then [task, value].
        weighted: Whether a task counts by the number of its documents; otherwise all count alike. None says that too, of tasks
            of whose numbers lm-eval itself makes none.
        groups: Groups within the group, each with its own `weighted` and its tasks, for what is shown beside the number.

    >>> both = LmEvalAggregation("mean", tasks=["a", "b"])
    >>> rows = both.tabulate([["a", 1.0], ["a", 0.0], ["a", 0.0], ["b", 1.0]])
    >>> both.compute(np.asarray(rows.sum(axis=0)).reshape(1, -1)).round(3)
    array([0.667])
    """

    function: str | dict[str, str] = "mean"
    tasks: list[str] | None = None
    weighted: bool | None = False
    groups: dict[str, tuple[bool, list[str]]] = field(default_factory=dict)
    _items: list[Item] = field(default_factory=list, init=False, repr=False)
    _owners: list[int] = field(default_factory=list, init=False, repr=False)

    def __post_init__(self) -> None:
        self.value_range = None if self._of_sums is None else self._of_sums.value_range

    @cached_property
    def _of_sums(self) -> _OfSums | None:
        return OF_SUMS.get(self.function) if isinstance(self.function, str) else None

    @property
    def costly(self) -> bool:  # type: ignore[override]
        return self._of_sums is None

    def tabulate(self, statistics: Sequence[object]) -> Rows:
        from scipy.sparse import csr_array, eye_array

        owners, items = self._read(statistics)
        if self._of_sums is None:
            self._owners, self._items = owners, items
            return eye_array(len(items), format="csr")
        columns = [self._of_sums.columns(item) for item in self._of_sums.prepare(items)]
        width = len(columns[0]) + 1 if columns else 1
        values = np.array([[*one, 1.0] for one in columns], dtype=np.float64)
        places = np.asarray(owners)[:, None] * width + np.arange(width)
        rows = np.repeat(np.arange(len(items)), width)
        return csr_array((values.ravel(), (rows, places.ravel())), shape=(len(items), width * len(self._names)))

    def compute(self, sums: Floats) -> Floats:
        values, counts = self._by_task(sums)
        weights = counts if self.weighted else (counts > 0).astype(np.float64)
        with np.errstate(invalid="ignore", divide="ignore"):
            found: Floats = np.where(counts > 0, values * weights, 0.0).sum(axis=1) / weights.sum(axis=1)
        # Of one task it is that task's own number, to the last digit.
        return values[:, 0] if len(self._names) == 1 else found

    def describe(self, statistics: Sequence[object], weights: Floats) -> dict[str, object]:
        if self.tasks is None:
            return {}
        rows = self.tabulate(statistics)
        values, counts = self._by_task(np.asarray(weights @ rows).reshape(1, -1))
        found = dict(zip(self._names, zip(values[0], counts[0], strict=True), strict=True))
        told = [
            self._tell(name, [found[one] for one in members], weighted)
            for name, (weighted, members) in self.groups.items()
        ]
        told += [self._tell(name, [one], False) for name, one in found.items() if one[1] > 0]
        rule = {True: "by their documents", False: "alike", None: "alike; lm-eval itself makes no number of them"}
        return {"by_group": told, "tasks_count": rule[self.weighted]}

    # --- inside ------------------------------------------------------------------------------------------------------

    @cached_property
    def _names(self) -> list[str]:
        return self.tasks if self.tasks is not None else [""]

    def _read(self, statistics: Sequence[object]) -> tuple[list[int], list[Item]]:
        if self.tasks is None:
            return [0] * len(statistics), [unpack(one) for one in statistics]
        places = {name: place for place, name in enumerate(self.tasks)}
        try:
            pairs = [(places[one[0]], unpack(one[1])) for one in statistics]  # type: ignore[index]
        except (KeyError, TypeError, IndexError) as error:
            raise MetricError(f"a score of the group names none of its tasks: {error}") from error
        return [owner for owner, _ in pairs], [item for _, item in pairs]

    def _by_task(self, sums: Floats) -> tuple[Floats, Floats]:
        """Each task's number, and how many documents it is of; a line for each line of sums."""
        if self._of_sums is None:
            return self._call(sums)
        shaped = sums.reshape(len(sums), len(self._names), -1)
        counts = shaped[:, :, -1]
        with np.errstate(invalid="ignore", divide="ignore"):
            return self._of_sums.value(shaped[:, :, :-1], counts), counts

    def _call(self, sums: Floats) -> tuple[Floats, Floats]:
        """The functions themselves, called with the values that a line of weights stands for."""
        values = np.full((len(sums), len(self._names)), math.nan)
        counts = np.zeros((len(sums), len(self._names)))
        owners = np.asarray(self._owners)
        for line, given in enumerate(sums):
            weights = _whole_weights(given)
            for place, name in enumerate(self._names):
                chosen = np.flatnonzero((owners == place) & (weights > 0))
                items = [self._items[one] for one in chosen for _ in range(weights[one])]
                if items:
                    wanted = self.function if isinstance(self.function, str) else self.function[name]
                    values[line, place], counts[line, place] = call_function(wanted, items), given[chosen].sum()
        return values, counts

    @staticmethod
    def _tell(name: str, tasks: Sequence[tuple[float, float]], weighted: bool) -> dict[str, object]:
        """A line of what is shown beside the number: a task's own, or that of a group within the group."""
        counted = [(value, count) for value, count in tasks if count > 0]
        weights = [count if weighted else 1.0 for _, count in counted]
        total = sum(value * weight for (value, _), weight in zip(counted, weights, strict=True))
        mean = float(total / sum(weights)) if weights else math.nan
        return {"group": name, "mean": mean, "count": round(sum(count for _, count in counted))}


def _whole_weights(given: Floats) -> npt.NDArray[np.int64]:
    """How often each value is handed over: several attempts share the weight of their document."""
    present = given[given > _NOTHING]
    least = min(1.0, float(present.min())) if present.size else 1.0
    return np.rint(given / least).astype(np.int64)


@dataclass
class LmEvalMean(LmEvalAggregation):
    """A group's mean over all its documents: what is known of means applies to it; shows each task's own beside it."""

    is_mean: ClassVar[bool] = True
