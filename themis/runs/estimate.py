"""What an evaluation would take: calls, tokens, dollars and minutes, with the assumptions behind them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import islice

from themis.core.tokens import DEFAULT_TOKENIZER, count_prompt_tokens
from themis.exceptions import DatasetError
from themis.generation.templates import PromptTemplate
from themis.runs.prices import Price, is_paid, max_completion_tokens

__all__ = ["Estimate", "add_judge", "estimate_run"]

# Beyond this many rows the rest is assumed to be like them.
_COUNTED_ROWS = 5_000
# What most batches take.
_BATCH_MINUTES = 60.0
# What a judge is told beside the question and the answer, and how long a verdict is.
_INSTRUCTION_TOKENS = 250
_VERDICT_TOKENS = 100


@dataclass(frozen=True)
class Estimate:
    """`most_usd` is what it costs if every answer is as long as allowed; `likely_usd` with the assumed length.

    `calls` and tokens are the model's; judges are asked besides, and are in the dollars, of which `judge_likely_usd` and
    `judge_most_usd` are theirs. Where an answer `takes_steps`, one call is counted for it, and nobody knows the most.
    """

    rows: int
    calls: int
    prompt_tokens: int
    likely_completion_tokens: int
    most_completion_tokens: int
    likely_usd: float | None
    most_usd: float | None
    minutes: float
    assumptions: tuple[str, ...]
    judge_calls: int = 0
    judge_tokens: int = 0
    judge_likely_usd: float | None = 0.0
    judge_most_usd: float | None = 0.0
    takes_steps: bool = False


def estimate_run(
    rows: Iterable[Mapping[str, object]],
    template: PromptTemplate,
    *,
    price: Price | None,
    max_tokens: int,
    num_samples: int = 1,
    workers: int = 4,
    limit: int | None = None,
    answer_tokens: int | None = None,
    seconds_per_call: float = 2.0,
    in_batch: bool = False,
    takes_steps: bool = False,
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
        "batches that take an hour; they may take a day"
        if in_batch
        else f"{seconds_per_call:g} s a call, {workers} at a time, no retries",
        *(("one call an answer; with tools, or somebody to talk to, it takes more",) if takes_steps else ()),
        *((price.source,) if price is not None and price.source else ()),
    )
    return Estimate(
        rows=total,
        calls=calls,
        prompt_tokens=prompt,
        likely_completion_tokens=likely_each * calls,
        most_completion_tokens=most_each * calls,
        likely_usd=None if price is None else price.of(prompt, likely_each * calls),
        most_usd=None if price is None or (takes_steps and is_paid(price)) else price.most(prompt, most_each * calls),
        minutes=_BATCH_MINUTES if in_batch else calls * seconds_per_call / max(1, workers) / 60,
        assumptions=assumptions,
        takes_steps=takes_steps,
    )


def add_judge(estimate: Estimate, *, price: Price | None, max_tokens: int, questions: int = 1) -> Estimate:
    """The same with a judge that is asked so many questions about every answer."""
    calls = estimate.calls * questions
    shown = estimate.prompt_tokens + _INSTRUCTION_TOKENS * estimate.calls
    verdict = min(_VERDICT_TOKENS, max_completion_tokens(max_tokens))
    likely_prompt = questions * (shown + estimate.likely_completion_tokens)
    likely = most = None
    if price is not None:
        likely = price.of(likely_prompt, verdict * calls)
        most = price.of(
            questions * (shown + estimate.most_completion_tokens), max_completion_tokens(max_tokens) * calls
        )
    assumed = f"a judge asked {calls:,} times, verdicts of {_VERDICT_TOKENS} tokens"
    return replace(
        estimate,
        judge_calls=estimate.judge_calls + calls,
        judge_tokens=estimate.judge_tokens + likely_prompt + verdict * calls,
        likely_usd=_add(estimate.likely_usd, likely),
        most_usd=_add(estimate.most_usd, most),
        judge_likely_usd=_add(estimate.judge_likely_usd, likely),
        judge_most_usd=_add(estimate.judge_most_usd, most),
        assumptions=(*estimate.assumptions, assumed),
    )


def _add(usd: float | None, more: float | None) -> float | None:
    return None if usd is None or more is None else usd + more
