"""Whether two runs were judged alike, metric by metric: their stored ways of judging beside each other.

What belongs to other metrics does not count: a run with one metric more is judged alike on those that both have.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from themis.comparison.scores import ScoredRun
from themis.core.markup import truncate
from themis.runs.manifest import BESIDE_JUDGING

# What is stored with a way of judging and is not compared as a whole.
_BESIDE = frozenset({"metrics", "name", "unknown", "identity", *BESIDE_JUDGING})
# Levels of a description that say nothing to people.
_SILENT = frozenset({"parameters", "keywords"})
# What names an object in its description; where it differs, its parts are of no interest.
_NAMES = ("class", "function", "partial")
# Reducers after which an item's score is that of one attempt, or its mean over attempts: the same as without a reducer.
_OF_ONE_ATTEMPT = ("AttemptAwareEvaluationStrategy", "FirstAttempt", "DefaultEvaluationStrategy")
_LONGEST_VALUE = 60
_MOST_SHOWN = 4


@dataclass(frozen=True)
class JudgingDifference:
    """One thing in which two ways of judging differ, with both values; those of code are hashes and are not shown."""

    what: str
    a: str = ""
    b: str = ""

    def __str__(self) -> str:
        return f"{self.what}: {self.a} and {self.b}" if self.a or self.b else self.what


def judging_differences(one: ScoredRun, other: ScoredRun, metric: str) -> list[JudgingDifference]:
    """In what the judging of a metric differs between two runs; empty if they were judged alike."""
    configs = [one.config, other.config]
    if one.reader.kind == other.reader.kind == "memory" and not any(_asked_judge(run) for run in (one, other)):
        configs = [{**config, "judge": None} for config in configs]
    found = compare_judging(configs[0], configs[1], metric)
    fields = one.reader.frame.reference_field, other.reader.frame.reference_field
    if fields[0] != fields[1] and None not in fields:
        found.append(JudgingDifference("reference_field", repr(fields[0]), repr(fields[1])))
    return found


def _asked_judge(run: ScoredRun) -> bool:
    """Whether a memory run's judge was ever needed: most tests are decided without."""
    return run.reader.metadata.judge_calls > 0


def compare_judging(first: Mapping[str, object], second: Mapping[str, object], metric: str) -> list[JudgingDifference]:
    """In what two stored ways of judging differ as far as they concern a metric."""
    one, other = _describe(first, metric), _describe(second, metric)
    if "metrics" in one or "metrics" in other:
        _match_unnamed(one, other)
    # What could not be known of an object may differ, even if everything that could is the same.
    unknown = dict.fromkeys(name for side in (one, other) for name in _unknown(side))
    return [*_differences(one, other, ()), *(JudgingDifference(f"unknown: {name}") for name in unknown)]


def _unknown(described: Mapping[str, object]) -> Iterator[str]:
    """What the descriptions of the parts could not know; each of them says so itself."""
    for part in described.values():
        names = part.get("unknown") if isinstance(part, Mapping) else None
        yield from map(str, names if isinstance(names, list) else ())


def describe_differences(differences: Sequence[JudgingDifference]) -> str:
    """The differences in a phrase, the first few of them in full."""
    more = f" and {len(differences) - _MOST_SHOWN} more" if len(differences) > _MOST_SHOWN else ""
    return ", ".join(map(str, differences[:_MOST_SHOWN])) + more


def how_to_judge_alike(one: ScoredRun, other: ScoredRun) -> str:
    """What to do about runs that were judged differently."""
    if "memory" in (one.reader.kind, other.reader.kind):
        option = "--judge MODEL"
    else:
        option = "with the same --metric, --extractor and --reducer"
    alike = f"judge their stored answers alike: themis rejudge {one.run_id} and themis rejudge {other.run_id} {option}"
    return alike if one.across else f"{alike}; or compare them all the same: --across (across=True in Python)"


def _describe(config: Mapping[str, object], metric: str) -> dict[str, object]:
    """A way of judging as far as it concerns a metric: `metric` is its description, `metrics` those of all if it is not
    known which is its own."""
    described = {name: value for name, value in config.items() if name not in _BESIDE}
    if "judge" not in config and "name" in config:
        # A published or a people's verdict has nothing but its name.
        described["name"] = config["name"]
    if (reducer := _reducer(described.pop("strategy", None))) is not None:
        described["reducer"] = reducer
    metrics, names = config.get("metrics"), config.get("metric_names")
    if not isinstance(metrics, list) or not all(isinstance(one, Mapping) for one in metrics):
        return described  # known by name alone
    if isinstance(names, list) and metric in names:
        return {**described, "metric": metrics[names.index(metric)]}
    return {**described, "metric": metrics[0]} if len(metrics) == 1 else {**described, "metrics": metrics}


def _reducer(strategy: object) -> object:
    """How attempts become a score; None where that is as if there were one attempt only."""
    parameters = strategy.get("parameters") if isinstance(strategy, Mapping) else None
    fixed = parameters.get("strategy") if isinstance(parameters, Mapping) else None
    if not isinstance(fixed, Mapping):
        return strategy
    return None if _name(fixed) in _OF_ONE_ATTEMPT else fixed


def _match_unnamed(first: dict[str, object], second: dict[str, object]) -> None:
    """Stores that do not say which description is whose: the metric is the same if its description is among them."""
    for here, there in ((first, second), (second, first)):
        unnamed, known = here.get("metrics"), there.get("metric")
        if isinstance(unnamed, list) and known in unnamed:
            del here["metrics"]
            here["metric"] = known


def _differences(a: object, b: object, path: tuple[str, ...]) -> Iterator[JudgingDifference]:
    if a == b:
        return
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        if (names := (_name(a), _name(b)))[0] != names[1]:
            yield JudgingDifference(_words(path), *(name or "none" for name in names))
            return
        for name in {**a, **b}:
            yield from _differences(a.get(name), b.get(name), (*path, str(name)))
    elif isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        for number, (one, other) in enumerate(zip(a, b, strict=True), start=1):
            yield from _differences(one, other, (*path, str(number)))
    elif path[-1] == "code":
        yield JudgingDifference(f"code of the {_words(path[:-1])}")
    elif "made_of" in path[-2:-1]:
        yield JudgingDifference(f"code of {path[-1]}")
    else:
        yield JudgingDifference(_words(path), _format_value(a), _format_value(b))


def _name(description: Mapping[str, object]) -> str:
    for name in _NAMES:
        found = description.get(name)
        if isinstance(found, str):
            return found.rpartition(".")[2]
        if isinstance(found, Mapping):
            return _name(found)
    return ""


def _words(path: Sequence[str]) -> str:
    return " ".join(part for part in path if part not in _SILENT)


def _format_value(value: object) -> str:
    if value is None:
        return "none"
    if isinstance(value, Mapping) and (name := _name(value)):
        return name
    return truncate(repr(value), _LONGEST_VALUE)
