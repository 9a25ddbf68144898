"""How the calls of a sample run went: attempts that failed, latency, truncated answers, what a success has cost.

`runs.report` measures it once, beside the means; whoever shows it to people takes the words from here.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from typing import TypedDict

from themis.core.entities import MetricAggregate
from themis.storage.queries import AttemptCounts, RunReader

_PERCENTILES = (50, 90, 99)


class Performance(TypedDict):
    """Of a sample run, as JSON tells it.

    Latency is of answers, each with its retries: the least time within which half, 90 % and 99 % of them came. What a success
    has cost is all that was paid, for failed samples and judges too, by the sum of a metric's scores: of scores that are 0 or 1,
    by the samples that passed. Metrics whose scores are no shares of a success have no entry, and None is for no success at all
    or an unknown price.
    """

    attempts: int
    failed_attempts: int
    latency_seconds: dict[str, float] | None
    truncated: int
    truncated_share: float | None
    cost_per_success_usd: dict[str, float | None]
    tokens_per_success: dict[str, float | None]


def measure_performance(
    reader: RunReader, metrics: Mapping[str, MetricAggregate], attempts: AttemptCounts
) -> Performance:
    """One pass over the times of a run's answers; everything else is counted already."""
    run = reader.metadata
    answered = attempts.made - attempts.failed
    tokens, cost = run.prompt_tokens + run.completion_tokens, run.total_cost_usd
    successes = {name: metric.successes for name, metric in metrics.items() if metric.successes is not None}
    return {
        "attempts": attempts.made,
        "failed_attempts": attempts.failed,
        "latency_seconds": _percentiles(reader.answer_seconds()),
        "truncated": run.cut_off,
        "truncated_share": run.cut_off / answered if answered else None,
        "cost_per_success_usd": {
            name: cost / count if count and cost is not None else None for name, count in successes.items()
        },
        "tokens_per_success": {name: tokens / count if count else None for name, count in successes.items()},
    }


def _percentiles(seconds: array[float]) -> dict[str, float] | None:
    """Measured values, the smallest at or below which so many percent lie; None of nothing."""
    if not seconds:
        return None
    import numpy as np

    ordered = np.sort(np.frombuffer(seconds))
    return {f"p{percent}": float(ordered[-(-percent * ordered.size // 100) - 1]) for percent in _PERCENTILES}


# --- in words ---------------------------------------------------------------------------------------------------------


def has_several_attempts(metric: Mapping[str, int]) -> bool:
    """Whether a metric's samples have more than one attempt each, so that attempts are worth a column."""
    return metric.get("attempts", 0) > metric["count"] + metric["failed"]


def performance_facts(found: Performance | None) -> dict[str, str]:
    """What people are shown, by name; nothing of a run that was not measured."""
    if found is None or not found["attempts"]:
        return {}
    facts = {"attempts": f"{found['attempts']:,}, {found['failed_attempts']:,} failed"}
    latency = found["latency_seconds"]
    if latency is not None:
        facts["latency"] = ", ".join(f"{name} {format_duration(seconds)}" for name, seconds in latency.items())
    if (share := found["truncated_share"]) is not None:
        facts["truncated"] = f"{found['truncated']:,} answers ({share:.1%})" if found["truncated"] else "no answers"
    costs, tokens = found["cost_per_success_usd"], found["tokens_per_success"]
    # What cost nothing costs nothing a success.
    if any(costs.values()):
        facts["cost per success"] = _join({name: _dollars(cost) for name, cost in costs.items()})
    if any(count is None or count for count in tokens.values()):
        facts["tokens per success"] = _join(
            {name: "none passed" if count is None else f"{count:,.0f}" for name, count in tokens.items()}
        )
    return facts


def _join(by_metric: Mapping[str, str]) -> str:
    if len(by_metric) == 1:
        return next(iter(by_metric.values()))
    return ", ".join(f"{name} {text}" for name, text in by_metric.items())


def _dollars(value: float | None) -> str:
    """Two figures at least, however little it is."""
    if value is None:
        return "none passed"
    return f"${value:,.4f}" if value >= 0.01 else f"${value:.2g}"


def format_duration(seconds: float | None) -> str:
    """A time as people say it, in units that fit it."""
    if seconds is None:
        return "–"
    if 0 < seconds < 0.001:
        return "< 1 ms"
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 90:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"
