"""Sends runs as OpenTelemetry traces: a span for the run, one for each call, with the names of the GenAI conventions."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from themis.core.entities import EvaluationRecord, ExperimentReport, GenerationRecord, Result
from themis.core.redaction import redact_text
from themis.exceptions import DependencyError
from themis.experiment.export.as_json import report_run_id
from themis.experiment.export.samples import joined, score_values
from themis.integrations.facts import numbers_of, parameters_of
from themis.runs.observers import Observer, RunStart
from themis.storage import RunStatus

__all__ = ["OpenTelemetryTracker"]

# A batching processor drops spans that come faster than it sends them, so it is emptied in between.
_SPANS_BETWEEN_FLUSHES = 500
_NANOSECONDS = 1_000_000_000


class OpenTelemetryTracker:
    """Traces over OTLP to `endpoint` (or OTEL_EXPORTER_OTLP_ENDPOINT), or to a `tracer_provider` that exists already.

    Prompts and answers are not sent unless `content` is true.
    """

    def __init__(
        self, endpoint: str | None = None, service: str = "themis", content: bool = False, tracer_provider: Any = None
    ) -> None:
        self._endpoint = endpoint
        self._service = service
        self._given = tracer_provider
        self._unsent = 0
        self.content = content

    def publish(self, report: ExperimentReport) -> str:
        """Sends a stored run; its spans end now, because the store does not keep when each call was made."""
        trace = _Trace(self)
        trace.start(report_run_id(report), {"themis.published_afterwards": True})
        for sample in joined(report):
            record = sample.record
            for attempt in (record.attempts or [record]) if record is not None else ():
                seconds = (attempt.metrics.get("generation_time_ms") or 0.0) / 1000
                trace.call(attempt, seconds, score_values(sample.scores))
        return trace.end(report, RunStatus(report.metadata.get("status", RunStatus.COMPLETED)))

    def observer(self) -> Observer:
        if self._given is None:
            _look_for_packages()
        return _Watching(self)

    def provider(self) -> Any:
        if self._given is not None:
            return self._given
        _look_for_packages()
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExportResult

        tracker = self

        class Exporter(OTLPSpanExporter):
            """Counts what did not arrive, of which a batching processor tells nobody."""

            def export(self, spans: Any) -> Any:
                result = super().export(spans)
                tracker._unsent += 0 if result is SpanExportResult.SUCCESS else len(spans)
                return result

        provider = TracerProvider(resource=Resource.create({"service.name": self._service}))
        provider.add_span_processor(BatchSpanProcessor(Exporter(endpoint=self._endpoint)))
        return provider

    def let_go(self, provider: Any) -> None:
        """Sends what is left; a provider that was given is the giver's to close."""
        provider.force_flush()
        if self._given is None:
            provider.shutdown()
        if self._unsent:
            raise ConnectionError(f"{self._unsent} spans did not arrive at {self._endpoint or 'the collector'}")


class _Trace:
    """The spans of one run."""

    def __init__(self, tracker: OpenTelemetryTracker) -> None:
        self._tracker = tracker
        self._provider = tracker.provider()
        self._tracer = self._provider.get_tracer("themis")
        self._root: Any = None
        self._context: Any = None
        self._since_flush = 0

    def start(self, run_id: str, attributes: Mapping[str, Any]) -> None:
        from opentelemetry.context import Context
        from opentelemetry.trace import set_span_in_context

        # An empty context: the run is a trace of its own, whatever its program is in the middle of.
        self._root = self._tracer.start_span(
            f"evaluate {run_id}", attributes={"themis.run_id": run_id, **attributes}, context=Context()
        )
        self._context = set_span_in_context(self._root)

    def open_call(self, record: GenerationRecord, seconds: float, end: int) -> Any:
        """A call's span, to be ended when its verdict is known."""
        from opentelemetry.trace import SpanKind, Status, StatusCode

        span = self._tracer.start_span(
            f"chat {record.task.model.identifier}",
            context=self._context,
            kind=SpanKind.CLIENT,
            start_time=end - round(seconds * _NANOSECONDS),
            attributes=self._attributes(record),
        )
        if record.error is not None:
            span.set_attribute("error.type", record.error.kind)
            span.set_status(Status(StatusCode.ERROR, redact_text(record.error.message)))
        return span

    def close_call(self, span: Any, end: int, scores: Mapping[str, float]) -> None:
        for name, value in scores.items():
            span.set_attribute(f"themis.score.{name}", value)
        span.end(end_time=end)
        self._since_flush += 1
        if self._since_flush >= _SPANS_BETWEEN_FLUSHES:
            self._since_flush = 0
            self._provider.force_flush()

    def call(self, record: GenerationRecord, seconds: float, scores: Mapping[str, float]) -> None:
        end = time.time_ns()
        self.close_call(self.open_call(record, seconds, end), end, {} if record.error is not None else scores)

    def end(self, report: ExperimentReport | None, status: RunStatus) -> str:
        from opentelemetry.trace import Status, StatusCode

        if report is not None:
            for name, value in parameters_of(report).items():
                self._root.set_attribute(
                    f"themis.{name}", value if isinstance(value, str | int | float) else str(value)
                )
            for name, number in numbers_of(report).items():
                self._root.set_attribute(f"themis.result.{name}", number)
        self._root.set_attribute("themis.status", status.value)
        self._root.set_status(Status(StatusCode.OK if status is RunStatus.COMPLETED else StatusCode.ERROR))
        self._root.end()
        self._tracker.let_go(self._provider)
        return f"trace {self._root.get_span_context().trace_id:032x}"

    def _attributes(self, record: GenerationRecord) -> dict[str, Any]:
        task, output = record.task, record.output
        attributes: dict[str, Any] = {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": task.model.provider,
            "gen_ai.request.model": task.model.identifier,
            "gen_ai.request.temperature": task.sampling.temperature,
            "gen_ai.request.top_p": task.sampling.top_p,
            "themis.sample_id": str(task.metadata.get("dataset_id", "")),
            "themis.attempt": int(task.metadata.get("attempts", 0)),
        }
        if task.sampling.max_tokens > 0:
            attributes["gen_ai.request.max_tokens"] = task.sampling.max_tokens
        usage = (output.usage if output is not None else None) or {}
        if usage.get("prompt_tokens") is not None:
            attributes["gen_ai.usage.input_tokens"] = int(usage["prompt_tokens"])
        if usage.get("completion_tokens") is not None:
            attributes["gen_ai.usage.output_tokens"] = int(usage["completion_tokens"])
        if self._tracker.content:
            attributes["themis.prompt"] = task.prompt.text
            attributes["themis.answer"] = "" if output is None else output.text
        return attributes


class _Watching(Observer):
    name = "OpenTelemetry"

    def __init__(self, tracker: OpenTelemetryTracker) -> None:
        self._tracker = tracker
        self._trace: Any = None
        # Spans of answers whose verdict has not come: a sample's verdict follows its last attempt.
        self._waiting: dict[str, list[tuple[Any, int]]] = {}

    def on_start(self, run: RunStart) -> None:
        self._trace = _Trace(self._tracker)
        self._trace.start(run.run_id, {"themis.samples": run.total, "themis.samples_done_before": run.done})

    def on_answers(self, calls: list[Result]) -> None:
        now = time.time_ns()
        for call in calls:
            span = self._trace.open_call(call.record, call.seconds, now)
            if call.record.error is not None:
                self._trace.close_call(span, now, {})
            else:
                sample_id = str(call.record.task.metadata.get("dataset_id", ""))
                self._waiting.setdefault(sample_id, []).append((span, now))

    def on_scores(self, records: list[EvaluationRecord]) -> None:
        for record in records:
            for span, end in self._waiting.pop(record.sample_id or "", ()):
                self._trace.close_call(span, end, score_values(record.scores))

    def on_end(self, status: RunStatus, report: ExperimentReport | None) -> None:
        for spans in self._waiting.values():
            for span, end in spans:
                self._trace.close_call(span, end, {})
        self._waiting.clear()
        self._trace.end(report, status)


def _look_for_packages() -> None:
    try:
        import opentelemetry.exporter.otlp.proto.http
        import opentelemetry.sdk.trace  # noqa: F401
    except ImportError as error:
        raise DependencyError.for_extra("opentelemetry-sdk", "otel", "sending traces") from error
