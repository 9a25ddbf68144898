"""What a run is made of, and who watches it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from themis.core.entities import EvaluationRecord, ExperimentReport, GenerationRecord, ModelSpec, Result, SamplingConfig
from themis.evaluation.pipeline import EvaluationPipeline
from themis.generation.engine import Engine, EngineSettings
from themis.generation.templates import PromptTemplate
from themis.interfaces import StatelessTaskExecutor
from themis.runs.prices import Price
from themis.runs.stopping import RunHandle
from themis.storage import RunStatus

__all__ = ["Experiment", "Observer"]


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """Everything a run is made of, resolved and checked."""

    run_id: str
    rows: Iterable[Mapping[str, Any]]
    template: PromptTemplate
    model: ModelSpec
    executor: StatelessTaskExecutor
    pipeline: EvaluationPipeline
    sampling: SamplingConfig = field(default_factory=SamplingConfig)
    num_samples: int = 1
    seed: int | None = None
    provider_options: Mapping[str, Any] = field(default_factory=dict)
    id_field: str = "id"
    reference_field: str | None = None
    cluster_field: str | None = None
    limit: int | None = None
    benchmark: str | None = None
    dataset_source: Mapping[str, Any] = field(default_factory=dict)
    engine: EngineSettings = field(default_factory=EngineSettings)
    execution_backend: Any = None
    # Builds the executor again, in a process of the backend's.
    make_executor: Callable[[], StatelessTaskExecutor] | None = None
    price: Price | None = None
    budget_usd: float | None = None
    tags: Mapping[str, str] = field(default_factory=dict)
    resume: bool = True
    allow_drift: bool = False
    cache: str = "run"
    max_records_in_memory: int | None = None
    # Called once a sample, after its record is stored; an exception ends the run.
    on_result: Callable[[GenerationRecord], Any] | None = None
    # Hears of every verdict; a text ends the run, as the reason.
    stop_when: Callable[[EvaluationRecord], str | None] | None = None
    # What is kept beside the run so that a command line can take it up again.
    invocation: Mapping[str, Any] = field(default_factory=dict)
    # Lets another thread stop the run.
    handle: RunHandle | None = None


class Observer:
    """Watches a run: override what you want to hear of. Called in the run's own thread, after the commit; must not raise."""

    def started(self, run_id: str, total: int, done: int, engine: Engine) -> None:
        """The dataset is stored; `done` of its samples are answered already."""

    def advanced(self, calls: list[Result]) -> None:
        """Calls were finished and stored."""

    def judged(self, records: list[EvaluationRecord]) -> None:
        """Samples were judged and their scores stored."""

    def idle(self) -> None:
        """Nothing was finished for a moment; calls are under way."""

    def stopping(self, under_way: int) -> None:
        """Nothing new is started any more; so many calls are still being finished."""

    def ended(self, status: RunStatus, report: ExperimentReport | None) -> None:
        """The run is over, for whatever reason."""
