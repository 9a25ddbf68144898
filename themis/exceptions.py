"""The tree of errors that users can catch.

    ThemisError
    ├── ConfigurationError   (ValueError)    what was asked for cannot be done: unknown option, missing field, drift
    ├── DatasetError         (ValueError)    rows that cannot be read, or are not there
    ├── MetricError          (ValueError)    an unknown metric, or numbers that cannot be computed
    ├── ProviderError        (KeyError)      an unknown provider, or one that cannot be built
    │   └── ProviderCallError                one call to a model failed; says whether trying again makes sense
    ├── ToolError            (RuntimeError)  a tool could not be reached, through nobody's fault but the world's
    ├── EvaluationError      (RuntimeError)  judging could not go on
    ├── RunFailedError       (RuntimeError)  a run in which nothing worked, or nothing more would
    ├── StorageError         (RuntimeError)  the store cannot be read or written
    │   ├── RunBusyError                     another process is writing this run
    │   └── RunNotFoundError (FileNotFoundError)  no run of this id is there
    └── DependencyError      (ImportError)   an optional package is missing; the message names the pip command
    RunInterrupted           (KeyboardInterrupt)  the user stopped a run; everything finished is saved

Stands at the bottom of the house: imports nothing of ours.
"""

from __future__ import annotations

from typing import Any

__all__ = [
    "ConfigurationError",
    "DatasetError",
    "DependencyError",
    "EvaluationError",
    "MetricError",
    "ProviderCallError",
    "ProviderError",
    "RunBusyError",
    "RunFailedError",
    "RunInterrupted",
    "RunNotFoundError",
    "StorageError",
    "ThemisError",
    "ToolError",
]


class ThemisError(Exception):
    """Anything this package raises on purpose."""


class ConfigurationError(ThemisError, ValueError):
    """What was asked for cannot be done; found before any model is called."""


class DatasetError(ThemisError, ValueError):
    """Rows that cannot be read, or are not there."""


class MetricError(ThemisError, ValueError):
    """An unknown metric, or numbers that cannot be computed from what is there."""


class ProviderError(ThemisError, KeyError):
    """An unknown provider, or one that cannot be built."""

    def __str__(self) -> str:
        # KeyError shows the repr of its argument, which would put quotes around a sentence.
        return str(self.args[0]) if self.args else ""


class ProviderCallError(ProviderError):
    """One call to a model failed.

    Args:
        message: What happened, for people.
        kind: A short code for it, by which failures are counted.
        status: The HTTP status, if there was one.
        retry_after_seconds: How long the server asked to wait.
        retryable: Whether trying again makes sense; None leaves that to the status and the text.
        parameter: What of the request the provider refused, where it names it.
        usage: The tokens that it says the call took all the same.
        cost_usd: The dollars, likewise.
    """

    def __init__(
        self,
        message: str,
        *,
        kind: str = "provider_error",
        status: int | None = None,
        retry_after_seconds: float | None = None,
        retryable: bool | None = None,
        parameter: str = "",
        usage: dict[str, object] | None = None,
        cost_usd: float | None = None,
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.status = status
        self.retry_after_seconds = retry_after_seconds
        self.retryable = retryable
        self.parameter = parameter
        self.usage = usage
        self.cost_usd = cost_usd


class ToolError(ThemisError, RuntimeError):
    """A tool could not be reached: the sample has failed, and is tried again when the run is resumed.

    Whatever else a tool raises is a result that the model sees; a tool of yours raises this where the model shall not.
    """


class EvaluationError(ThemisError, RuntimeError):
    """Judging could not go on."""


class RunFailedError(ThemisError, RuntimeError):
    """A run that ended without a result: nothing was answered, nothing could be judged, or every further call would fail.

    What was finished is stored.

    Args:
        run_id: The run.
        reason: Why it came no further.
        report: The report of the run as far as it came.
    """

    def __init__(self, run_id: str, reason: str, report: Any) -> None:
        super().__init__(f"run {run_id} failed: {reason}")
        self.run_id = run_id
        self.reason = reason
        self.report = report


class StorageError(ThemisError, RuntimeError):
    """The store cannot be read or written."""


class RunBusyError(StorageError):
    """Another process holds the run's lease."""


class RunNotFoundError(StorageError, FileNotFoundError):
    """No run of this id is in the store, or there is no store yet."""


class DependencyError(ThemisError, ImportError):
    """An optional package is missing."""

    @classmethod
    def for_extra(cls, package: str, extra: str, purpose: str) -> DependencyError:
        """The error of a missing package, with the command that installs it.

        Args:
            package: What is missing.
            extra: The extra of Themis that brings it.
            purpose: What it is needed for; begins the sentence.
        """
        return cls(f"{purpose} needs the package {package}: pip install 'themis-eval[{extra}]'")


class RunInterrupted(KeyboardInterrupt):
    """The user stopped a run; what was finished is stored.

    Args:
        run_id: The run.
        resume: A sentence that says how to go on.
    """

    def __init__(self, run_id: str, resume: str) -> None:
        super().__init__(f"run {run_id} interrupted; everything finished is saved. {resume}")
        self.run_id = run_id
        self.resume = resume

    def __reduce__(self) -> tuple[type[RunInterrupted], tuple[str, str]]:
        # It may have to leave the process that it was raised in.
        return type(self), (self.run_id, self.resume)
