"""What an evaluation would take: calls, tokens, dollars and minutes, with the assumptions behind them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

from themis.core.tokens import DEFAULT_TOKENIZER, count_prompt_tokens
from themis.exceptions import DatasetError
from themis.generation.templates import PromptTemplate
from themis.runs.prices import Price, max_completion_tokens

__all__ = ["Estimate", "estimate_run"]

# Beyond this many rows the rest is assumed to be like them.
_COUNTED_ROWS = 5_000


@dataclass(frozen=True)
class Estimate:
    """`most_usd` is what it costs if every answer is as long as allowed; `likely_usd` with the assumed length."""

    rows: int
    calls: int
    prompt_tokens: int
    likely_completion_tokens: int
    most_completion_tokens: int
    likely_usd: float | None
    most_usd: float | None
    minutes: float
    assumptions: tuple[str, ...]


def estimate_run(
    rows: Iterable[Mapping[str, Any]],
    template: PromptTemplate,
    *,
    price: Price | None,
    max_tokens: int,
    num_samples: int = 1,
    workers: int = 4,
    limit: int | None = None,
    answer_tokens: int | None = None,
    seconds_per_call: float = 2.0,
) -> Estimate:
    counted = tokens = total = 0
    for row in islice(iter(rows), limit):
        total += 1
        if counted < _COUNTED_ROWS:
            turns = template.messages(row)
            tokens += count_prompt_tokens(template.fill(row), row if turns is None else {**row, "messages": turns})
            template.refuse_unfilled(row)
            counted += 1
    if not total:
        raise DatasetError("the dataset has no rows")
    calls = total * num_samples
    prompt = round(tokens / counted * calls)
    most_each = max_completion_tokens(max_tokens)
    likely_each = min(answer_tokens if answer_tokens is not None else 200, most_each)
    assumptions = (
        f"prompts counted with {DEFAULT_TOKENIZER}" + (f" over the first {counted} rows" if counted < total else ""),
        f"answers of {likely_each} tokens, at most {most_each}",
        f"{seconds_per_call:g} s a call, {workers} at a time, no retries",
        *((price.source,) if price is not None and price.source else ()),
    )
    return Estimate(
        rows=total,
        calls=calls,
        prompt_tokens=prompt,
        likely_completion_tokens=likely_each * calls,
        most_completion_tokens=most_each * calls,
        likely_usd=None if price is None else price.of(prompt, likely_each * calls),
        most_usd=None if price is None else price.of(prompt, most_each * calls),
        minutes=calls * seconds_per_call / max(1, workers) / 60,
        assumptions=assumptions,
    )
