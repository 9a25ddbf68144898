"""What a sample run would take, from its specification alone: no provider is made, so no key is needed."""

from __future__ import annotations

from collections.abc import Mapping

from themis.config.specification import SampleSpecification
from themis.evaluation.judges import find_judges
from themis.experiment.assemble import build_pipeline, settle
from themis.experiment.datasets import resolve_dataset
from themis.generation.providers import parse_model, provider_factory
from themis.runs.estimate import Estimate, add_judge, estimate_run
from themis.runs.prices import Price, max_completion_tokens, price_of

__all__ = ["estimate_samples"]


def estimate_samples(
    asked: SampleSpecification, *, answer_tokens: int | None = None, seconds_per_call: float = 2.0
) -> Estimate:
    """Calls, tokens, dollars and minutes of a run, judges included.

    Args:
        asked: What to do.
        answer_tokens: How long a usual answer is; 200 tokens by default.
        seconds_per_call: How long a call takes.

    Raises:
        ConfigurationError: The rows, the prompt or the metrics cannot be used.

    >>> estimate_samples(SampleSpecification(dataset="demo", model="openai/gpt-4o", num_samples=2)).calls
    20
    """
    source = resolve_dataset(asked)
    settings = settle(asked, source)
    price = _find_price(asked.model, asked.provider_options)
    # Thoughts come on top of an answer's limit.
    thoughts = (asked.provider_options or {}).get("thinking_budget") or 0
    estimate = estimate_run(
        source.rows,
        source.template,
        price=price.in_batch if price is not None and asked.batch else price,
        in_batch=asked.batch,
        max_tokens=max_completion_tokens(settings.sampling.max_tokens) + int(thoughts),
        num_samples=settings.attempts,
        workers=asked.workers,
        limit=None if source.is_limited else asked.limit,
        answer_tokens=answer_tokens,
        seconds_per_call=seconds_per_call,
        takes_steps=bool(asked.tools) or asked.user is not None or asked.script is not None,
    )
    if asked.judge is None and asked.metrics is None and asked.evaluation_pipeline is None:
        return estimate  # no benchmark brings a judge that nobody named
    for judge in find_judges(getattr(build_pipeline(asked, source, settings), "metrics", ())):
        estimate = add_judge(
            estimate,
            price=_find_price(judge.model, judge.provider_options),
            max_tokens=judge.sampling.max_tokens,
            questions=2 if getattr(judge, "swap", False) else 1,
        )
    return estimate


def _find_price(model: object, options: Mapping[str, object] | None) -> Price | None:
    if not isinstance(model, str):
        return None
    spec = parse_model(model, options)
    provider = provider_factory(spec.provider, options)
    is_local = bool(getattr(provider, "is_local", False)) or spec.provider == "fake"
    return price_of(spec.identifier, spec.provider, is_local=is_local)
