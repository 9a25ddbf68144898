"""The judging half of a report, under the names users import."""

from themis.core.entities import EvaluationFailure, EvaluationReport, MetricAggregate

__all__ = ["EvaluationFailure", "EvaluationReport", "MetricAggregate"]
