"""Sends runs as OpenTelemetry traces: a span for the run, one for each call, with the names of the GenAI conventions."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from themis.core.entities import EvaluationRecord, ExperimentReport, GenerationRecord, Result, mean_scores
from themis.core.redaction import redact_text
from themis.exceptions import DependencyError
from themis.experiment.export.samples import join_samples, report_run_id
from themis.integrations.trackers import report_numbers, report_parameters
from themis.runs.observers import Observer, RunStart
from themis.storage import RunStatus

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.trace import Span

# A batching processor drops spans that come faster than it sends them, so it is emptied in between.
_SPANS_BETWEEN_FLUSHES = 500
_NANOSECONDS = 1_000_000_000


class OpenTelemetryTracker:
    """Traces over OTLP.

    Args:
        endpoint: Of a collector; by default OTEL_EXPORTER_OTLP_ENDPOINT.
        service: The name under which the traces are found.
        content: Whether prompts and answers are sent.
        tracer_provider: One that exists already, to send by instead.
    """

    def __init__(
        self,
        endpoint: str | None = None,
        service: str = "themis",
        content: bool = False,
        tracer_provider: TracerProvider | None = None,
    ) -> None:
        self._endpoint = endpoint
        self._service = service
        self._given_provider = tracer_provider
        self._unsent = 0
        self.content = content

    def publish(self, report: ExperimentReport) -> str:
        """Sends a stored run; its spans end now, because the store does not keep when each call was made.

        Args:
            report: What `evaluate` returned, or `build_report` made from the store.
        """
        trace = _Trace(self, report_run_id(report), {"themis.published_afterwards": True})
        for sample in join_samples(report):
            record = sample.record
            for attempt in (record.attempts or [record]) if record is not None else ():
                seconds = (attempt.metrics.get("generation_time_ms") or 0.0) / 1000
                trace.call(attempt, seconds, sample.mean_scores)
        return trace.end(report, RunStatus(report.metadata.get("status", RunStatus.COMPLETED)))

    def observer(self) -> Observer:
        """What watches a run and sends a span a call."""
        if self._given_provider is None:
            _check_packages()
        return _TraceObserver(self)

    def provider(self) -> TracerProvider:
        """What makes the spans: the one that was given, or one for the endpoint."""
        if self._given_provider is not None:
            return self._given_provider
        _check_packages()
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExportResult

        tracker = self

        class Exporter(OTLPSpanExporter):
            """Counts what did not arrive, of which a batching processor tells nobody."""

            def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
                result = super().export(spans)
                tracker._unsent += 0 if result is SpanExportResult.SUCCESS else len(spans)
                return result

        provider = TracerProvider(resource=Resource.create({"service.name": self._service}))
        provider.add_span_processor(BatchSpanProcessor(Exporter(endpoint=self._endpoint)))
        return provider

    def flush(self, provider: TracerProvider) -> None:
        """Sends what is left; a provider that was given is the giver's to close.

        Args:
            provider: What made the spans.

        Raises:
            ConnectionError: Some spans did not arrive.
        """
        provider.force_flush()
        if self._given_provider is None:
            provider.shutdown()
        if self._unsent:
            raise ConnectionError(f"{self._unsent} spans did not arrive at {self._endpoint or 'the collector'}")


class _Trace:
    """The spans of one run."""

    def __init__(self, tracker: OpenTelemetryTracker, run_id: str, attributes: Mapping[str, str | bool | int]) -> None:
        from opentelemetry.context import Context
        from opentelemetry.trace import set_span_in_context

        self._tracker = tracker
        self._provider = tracker.provider()
        self._tracer = self._provider.get_tracer("themis")
        self._since_flush = 0
        # An empty context: the run is a trace of its own, whatever its program is in the middle of.
        self._root = self._tracer.start_span(
            f"evaluate {run_id}", attributes={"themis.run_id": run_id, **attributes}, context=Context()
        )
        self._context = set_span_in_context(self._root)

    def open_call(self, record: GenerationRecord, seconds: float, end: int) -> Span:
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

    def close_call(self, span: Span, end: int, scores: Mapping[str, float]) -> None:
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
            for name, value in report_parameters(report).items():
                self._root.set_attribute(
                    f"themis.{name}", value if isinstance(value, str | int | float) else str(value)
                )
            for name, number in report_numbers(report).items():
                self._root.set_attribute(f"themis.result.{name}", number)
        self._root.set_attribute("themis.status", status.value)
        self._root.set_status(Status(StatusCode.OK if status is RunStatus.COMPLETED else StatusCode.ERROR))
        self._root.end()
        self._tracker.flush(self._provider)
        return f"trace {self._root.get_span_context().trace_id:032x}"

    def _attributes(self, record: GenerationRecord) -> dict[str, str | int | float]:
        task, output = record.task, record.output
        attributes: dict[str, str | int | float] = {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": task.model.provider,
            "gen_ai.request.model": task.model.identifier,
            "gen_ai.request.temperature": task.sampling.temperature,
            "themis.sample_id": str(task.metadata.get("dataset_id", "")),
            "themis.attempt": int(task.metadata.get("attempts", 0)),
        }
        if task.sampling.top_p is not None:
            attributes["gen_ai.request.top_p"] = task.sampling.top_p
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


class _TraceObserver(Observer):
    name = "OpenTelemetry"

    def __init__(self, tracker: OpenTelemetryTracker) -> None:
        self._tracker = tracker
        self._trace: _Trace
        # Spans of answers whose verdict has not come: a sample's verdict follows its last attempt.
        self._waiting: dict[str, list[tuple[Span, int]]] = {}

    def on_start(self, run: RunStart) -> None:
        about = {"themis.samples": run.total, "themis.samples_done_before": run.done}
        self._trace = _Trace(self._tracker, run.run_id, about)

    def on_answers(self, results: list[Result]) -> None:
        now = time.time_ns()
        for result in results:
            span = self._trace.open_call(result.record, result.seconds, now)
            if result.record.error is not None:
                self._trace.close_call(span, now, {})
            else:
                sample_id = str(result.record.task.metadata.get("dataset_id", ""))
                self._waiting.setdefault(sample_id, []).append((span, now))

    def on_scores(self, records: list[EvaluationRecord]) -> None:
        for record in records:
            for span, end in self._waiting.pop(record.sample_id or "", ()):
                self._trace.close_call(span, end, mean_scores(record.scores))

    def on_end(self, status: RunStatus, report: ExperimentReport | None) -> None:
        for spans in self._waiting.values():
            for span, end in spans:
                self._trace.close_call(span, end, {})
        self._waiting.clear()
        self._trace.end(report, status)


def _check_packages() -> None:
    try:
        import opentelemetry.exporter.otlp.proto.http
        import opentelemetry.sdk.trace  # noqa: F401
    except ImportError as error:
        raise DependencyError.for_extra("opentelemetry-sdk", "otel", "sending traces") from error
