"""The trackers by name, made from options as a command line or a configuration gives them, and let to observe runs."""

from __future__ import annotations

import inspect
import math
import time
from collections.abc import Callable, Iterable, Mapping
from types import ModuleType
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from themis.core.codec import digest
from themis.core.entities import EvaluationRecord, ExperimentReport, Result
from themis.core.redaction import look_up_secrets, redact
from themis.core.registry import Registry, add_own_files, import_extra, nearest
from themis.exceptions import ConfigurationError
from themis.experiment.export.samples import count_failed, report_run_id
from themis.runs.manifest import SCIENTIFIC_KEYS, value_at
from themis.runs.observers import Observer, RunStart, Totals
from themis.storage import RunStatus


class Tracker(Protocol):
    """Somewhere a run can be shown: afterwards with `publish`, or while it goes on with its `observer`.

    >>> from themis.runs.observers import Observer
    >>> class Printing:
    ...     def publish(self, report):
    ...         return print(report) or "on the screen"
    ...     def observer(self):
    ...         return Observer()
    >>> import themis
    >>> report = themis.evaluate("demo", model="fake/perfect", run_id="first", observers=[Printing()], progress=False)
    >>> Printing().publish(report)
    ExperimentReport(first: 10 samples; ExactMatch=1.0000)
    'on the screen'
    """

    def publish(self, report: ExperimentReport) -> str:
        """Sends a finished run and says where it is to be found.

        Args:
            report: What `evaluate` returned, or `build_report` made from the store.
        """
        ...

    def observer(self) -> Observer:
        """What watches a run and shows it as it goes on."""


_BUILTIN = {
    "wandb": "themis.integrations.wandb:WandbTracker",
    "mlflow": "themis.integrations.mlflow:MlflowTracker",
    "hub": "themis.integrations.huggingface:hub_tracker",
    "otel": "themis.integrations.opentelemetry:OpenTelemetryTracker",
}

# Trackers by the names that `evaluate(observers=[...])` takes: wandb, mlflow, hub, otel.
TRACKERS: Registry[Callable[..., Tracker]] = Registry("tracker", lambda: add_own_files(_BUILTIN, "themis.integrations"))

_TRUTH = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


# --- making them ------------------------------------------------------------------------------------------------------


def as_observers(given: object) -> list[Observer]:
    """Observers of a run.

    Args:
        given: A list of trackers, their names, and observers of the user's own.

    Raises:
        ConfigurationError: It is no list, or there is something else in it.
    """
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise ConfigurationError(f"observers is a list, such as ['wandb'], got {given!r}")
    return [_as_observer(one) for one in given]


def _as_observer(given: object) -> Observer:
    if isinstance(given, str):
        return make_tracker(given).observer()
    if isinstance(given, Observer):
        return given
    make = getattr(given, "observer", None)
    if callable(make):
        observer: Observer = make()
        return observer
    raise ConfigurationError(
        f"an observer is a tracker's name ({', '.join(TRACKERS)}), a tracker or an Observer, got {given!r}"
    )


def make_trackers(names: Iterable[str], options: Mapping[str, object]) -> dict[str, Tracker]:
    """Trackers that share options: each takes those it has, and `otel.endpoint` is for otel alone."""
    has = {name: tuple(inspect.signature(TRACKERS.get(name)).parameters) for name in names}
    given: dict[str, dict[str, object]] = {name: {} for name in has}
    for option, value in options.items():
        tracker, dot, own = option.rpartition(".")
        if dot and tracker not in has:
            raise ConfigurationError(f"option {option!r} is for {tracker!r}; the run goes to {', '.join(has)}")
        takers = [tracker] if dot else [name for name in has if own in has[name]]
        # Nobody has it: the first tracker says so, and what it has.
        for taker in takers or list(has)[:1]:
            given[taker][own] = value
    return {name: make_tracker(name, given[name]) for name in has}


def make_tracker(name: str, options: Mapping[str, object] | None = None) -> Tracker:
    """A tracker with its options.

    Args:
        name: wandb, mlflow, hub, otel, or one that was registered.
        options: By the names of its parameters; text becomes what the option is, and `${NAME}` is looked
            up in the environment.

    Raises:
        ConfigurationError: There is no such tracker or option, or one that it needs is missing.

    >>> make_tracker("mlflow", {"experiment": "prompts"}).name
    'MLflow'
    """
    factory = TRACKERS.get(name)
    parameters = inspect.signature(factory).parameters
    given = {}
    for option, value in look_up_secrets(options or {}).items():
        if option not in parameters:
            raise ConfigurationError(
                f"{name} has no option {option!r}{nearest(option, parameters)}; it has {', '.join(parameters)}"
            )
        given[option] = _parse_option(name, option, value, parameters[option].default)
    for option, parameter in parameters.items():
        if parameter.default is inspect.Parameter.empty and option not in given:
            raise ConfigurationError(f"{name} needs the option {option}=...")
    return factory(**given)


def _parse_option(tracker: str, option: str, value: object, default: object) -> object:
    if not isinstance(value, str):
        return value
    if isinstance(default, bool):
        if value.lower() not in _TRUTH:
            raise ConfigurationError(f"{tracker}'s option {option} is true or false, got {value!r}")
        return _TRUTH[value.lower()]
    if isinstance(default, int):
        try:
            return int(value)
        except ValueError as error:
            raise ConfigurationError(f"{tracker}'s option {option} is a whole number, got {value!r}") from error
    return value


# --- what they are told -----------------------------------------------------------------------------------------------


def report_parameters(report: ExperimentReport) -> dict[str, object]:
    """What decides the run's results, by the manifest's dotted names."""
    manifest = redact(report.metadata.get("reproducibility_manifest") or {})
    found = {key: value for key in SCIENTIFIC_KEYS if (value := value_at(manifest, key)) is not None}
    if report.metadata.get("manifest_hash"):
        found["manifest_hash"] = report.metadata["manifest_hash"]
    return found


def report_numbers(report: ExperimentReport) -> dict[str, float]:
    """Means under the metrics' own names, what belongs to them under `name.what`, and the run's sums. No NaN."""
    found: dict[str, float | None] = {}
    for name, metric in report.evaluation_report.metrics.items():
        numbers = metric.to_dict()
        found[name] = numbers["mean"]
        of_metric = ("count", "failed", "unparsed", "stderr", "attempts", "failed_attempts")
        found |= {f"{name}.{what}": numbers[what] for what in of_metric}
        found |= dict(zip((f"{name}.ci_low", f"{name}.ci_high"), numbers["ci"] or (None, None), strict=True))
    found |= _performance_numbers(report.metadata.get("performance") or {})
    cost = report.metadata.get("cost") or {}
    found |= {
        "samples": report.metadata.get("total_samples"),
        "failed_samples": count_failed(report),
        "cost_usd": cost.get("total_cost"),
        "calls": cost.get("api_calls"),
        "tokens": (cost.get("token_counts") or {}).get("total_tokens"),
    }
    return {name: float(value) for name, value in found.items() if value is not None and math.isfinite(value)}


def _performance_numbers(performance: Mapping[str, Any]) -> dict[str, float | None]:
    found: dict[str, float | None] = {
        name: performance.get(name) for name in ("attempts", "failed_attempts", "truncated", "truncated_share")
    }
    found |= {f"latency_seconds.{name}": value for name, value in (performance.get("latency_seconds") or {}).items()}
    for what in ("cost_per_success_usd", "tokens_per_success"):
        found |= {f"{metric}.{what}": value for metric, value in performance.get(what, {}).items()}
    return found


def tracker_key(run_id: str, manifest_hash: str | None) -> str:
    """What a tracker knows a run by. Ids such as `baseline` are common; with the manifest two of them do not meet."""
    return digest(run_id, manifest_hash or "")


def progress_numbers(totals: Totals) -> dict[str, float]:
    """Sums of a run under way, and its means so far."""
    sums = {
        "progress/answered": totals.answered,
        "progress/failed_calls": totals.failed,
        "progress/calls": totals.calls,
        "progress/tokens": totals.tokens,
    }
    cost = {} if totals.cost_usd is None else {"progress/cost_usd": totals.cost_usd}
    means = totals.means().items()
    return {
        **sums,
        **cost,
        **{f"progress/{name}": mean for name, (mean, _) in means},
        **{f"progress/{name}.count": count for name, (_, count) in means},
    }


# --- while a run goes on ----------------------------------------------------------------------------------------------


Handle = TypeVar("Handle")


class LiveTracker(Generic[Handle]):
    """A tracker with one run of its own for each of ours, which publishing again goes on with.

    `Handle` is what the tracker's package knows its run by.
    """

    name: ClassVar[str]
    # Its module, the extra that installs it, and what it is for.
    package: ClassVar[tuple[str, str, str]]
    # The least between two requests of a run that goes on: one for each answer would make it wait for the tracker.
    seconds_between_logs: ClassVar[float] = 0.0

    def open(self, run_id: str, manifest_hash: str | None) -> Handle:
        """Starts the tracker's run, or takes it up again."""
        raise NotImplementedError

    def log(self, handle: Handle, numbers: Mapping[str, float], step: int) -> None:
        """Shows how far the run has come."""
        raise NotImplementedError

    def complete(self, handle: Handle, report: ExperimentReport, status: RunStatus) -> str:
        """Sends everything, ends the tracker's run and says where it is to be found."""
        raise NotImplementedError

    def abort(self, handle: Handle, status: RunStatus) -> None:
        """Ends the tracker's run without a report."""
        raise NotImplementedError

    def import_package(self) -> ModuleType:
        """The tracker's package; raises where it is not installed."""
        return import_extra(*self.package)

    def publish(self, report: ExperimentReport) -> str:
        """Sends a finished run and says where it is to be found."""
        handle = self.open(report_run_id(report), report.metadata.get("manifest_hash"))
        return self.complete(handle, report, RunStatus(report.metadata.get("status", RunStatus.COMPLETED)))

    def observer(self) -> Observer:
        """What watches a run and shows it as it goes on."""
        self.import_package()  # before the run, not after its first answers
        return _LiveObserver(self)


class _LiveObserver(Observer, Generic[Handle]):
    """Opens the tracker's run with the first answers: a run that gets none is shown once it is over."""

    def __init__(self, tracker: LiveTracker[Handle]) -> None:
        self.name = tracker.name
        self._tracker = tracker
        self._start: RunStart
        self._handle: Handle | None = None
        self._totals = Totals()
        self._logged_at = -math.inf

    def on_start(self, run: RunStart) -> None:
        self._start, self._totals = run, Totals(answered=run.done)

    def on_answers(self, results: list[Result]) -> None:
        if self._handle is None:
            self._handle = self._tracker.open(self._start.run_id, self._start.manifest_hash)
        self._totals.add_results(results)
        if time.monotonic() - self._logged_at >= self._tracker.seconds_between_logs:
            self._logged_at = time.monotonic()
            self._tracker.log(self._handle, progress_numbers(self._totals), self._totals.answered)

    def on_scores(self, records: list[EvaluationRecord]) -> None:
        self._totals.add_scores(records)

    def on_end(self, status: RunStatus, report: ExperimentReport | None) -> None:
        if report is None:
            if self._handle is not None:
                self._tracker.abort(self._handle, status)
        elif self._handle is None:
            self._tracker.publish(report)
        else:
            self._tracker.complete(self._handle, report, status)
