"""Traces, with the real SDK: into memory, and over OTLP to a collector of our own."""

from __future__ import annotations

import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from themis.exceptions import DependencyError
from themis.integrations.opentelemetry import OpenTelemetryTracker


@pytest.fixture
def memory() -> tuple[InMemorySpanExporter, TracerProvider]:
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    return exporter, provider


def parted(exporter: InMemorySpanExporter) -> tuple[Any, list[Any]]:
    """The run's span, and those of its calls."""
    spans = exporter.get_finished_spans()
    (root,) = (span for span in spans if span.parent is None)
    return root, [span for span in spans if span.parent is not None]


def test_a_stored_run_is_one_trace_with_a_span_for_every_call(report, memory):
    exporter, provider = memory
    place = OpenTelemetryTracker(tracer_provider=provider).publish(report)

    root, calls = parted(exporter)
    assert place == f"trace {root.context.trace_id:032x}"
    assert root.attributes["themis.result.ExactMatch"] == pytest.approx(report.metric("exact_match").mean)
    assert root.attributes["themis.model.identifier"] == "noisy-0.3"
    assert {call.parent.span_id for call in calls} == {root.context.span_id}
    by_id = {call.attributes["themis.sample_id"]: call for call in calls}
    for record in report.evaluation_report.records:
        assert by_id[record.sample_id].attributes["themis.score.ExactMatch"] == record.scores[0].value
    assert by_id["q1"].attributes["gen_ai.request.model"] == "noisy-0.3"
    assert by_id["q1"].attributes["gen_ai.usage.input_tokens"] > 0


def test_texts_are_sent_only_when_asked_for(report, memory):
    exporter, provider = memory
    OpenTelemetryTracker(tracer_provider=provider).publish(report)
    assert not any("What is" in str(dict(span.attributes)) for span in exporter.get_finished_spans())

    exporter.clear()
    OpenTelemetryTracker(tracer_provider=provider, content=True).publish(report)
    assert any("What is 3 + 3?" in str(dict(span.attributes)) for span in exporter.get_finished_spans())


def test_a_run_is_traced_while_it_goes_on_and_failures_are_errors(watched, memory):
    exporter, provider = memory
    report = watched(OpenTelemetryTracker(tracer_provider=provider), model="fake/flaky-0.5")

    root, calls = parted(exporter)
    failed = {failure.sample_id for failure in report.failures}
    assert len(calls) == 12
    assert 0 < len(failed) < 12
    assert root.attributes["themis.status"] == "completed"
    for call in calls:
        is_error = call.status.status_code is StatusCode.ERROR
        assert is_error == (call.attributes["themis.sample_id"] in failed)
        assert ("themis.score.ExactMatch" in call.attributes) == (not is_error)


def test_no_span_is_lost_when_more_come_than_a_queue_holds(report, memory):
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(exporter, max_queue_size=600, max_export_batch_size=600))
    report.generation_results = [record for _ in range(200) for record in report.generation_results]
    OpenTelemetryTracker(tracer_provider=provider).publish(report)

    assert len(exporter.get_finished_spans()) == 200 * 12 + 1


def test_spans_reach_a_collector_over_otlp(report):
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    received: list[str] = []

    class Collector(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            import gzip

            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            request = ExportTraceServiceRequest.FromString(body)
            for resource in request.resource_spans:
                received.extend(span.name for scope in resource.scope_spans for span in scope.spans)
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Collector)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        OpenTelemetryTracker(endpoint=f"http://127.0.0.1:{server.server_port}/v1/traces").publish(report)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()

    assert sorted(received) == ["chat noisy-0.3"] * 12 + ["evaluate tracked"]


def test_spans_that_did_not_arrive_are_no_success(report):
    class Refusing(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(400)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Refusing)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        with pytest.raises(ConnectionError, match="13 spans did not arrive at"):
            OpenTelemetryTracker(endpoint=f"http://127.0.0.1:{server.server_port}/v1/traces").publish(report)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_without_the_package_one_line_says_what_to_install(report, monkeypatch):
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    with pytest.raises(DependencyError, match=r"pip install 'themis-eval\[otel\]'"):
        OpenTelemetryTracker().publish(report)
