"""What a memory run would take, from its specification alone: its schedule is played without an agent."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from themis.config.schema import MemoryConfig
from themis.config.specification import MemorySpecification
from themis.exceptions import ThemisError
from themis.memory import definitions
from themis.memory.agents import create_agent, find_price
from themis.memory.assembling import load_config
from themis.memory.definitions import Defined
from themis.memory.filler import Filler, create_filler
from themis.memory.planning import Plan, make_plan
from themis.runs.estimate import Estimate
from themis.runs.prices import FREE, Price

__all__ = ["PlannedConversation", "estimate_memory", "plan_conversation"]

_SECONDS_PER_REPLY = 3.0


@dataclass(frozen=True, kw_only=True)
class PlannedConversation:
    """A run's schedule, and what it was made of."""

    plan: Plan
    config: MemoryConfig
    defined: Sequence[Defined]
    conflicts: Mapping[str, Iterable[str]]
    filler: Filler


def plan_conversation(asked: MemorySpecification) -> PlannedConversation:
    """The schedule of a run, played with a perfect agent."""
    config = load_config(asked)
    defined = definitions.generate(config)
    conflicts = definitions.conflicts_of(defined, config.incompatibilities)
    filler = create_filler(config.filler, seed=config.seed, tokenizer_name=config.tokenizer)
    plan = make_plan(
        defined,
        conflicts,
        filler,
        isolated=asked.isolated,
        max_message_tokens=config.max_message_tokens,
        max_prompt_tokens=asked.max_prompt_tokens,
        tokenizer_name=config.tokenizer,
    )
    return PlannedConversation(plan=plan, config=config, defined=defined, conflicts=conflicts, filler=filler)


def estimate_memory(asked: MemorySpecification) -> Estimate:
    """Replies, tokens and dollars of a run whose agent answers as shortly as a perfect one; how long it may get is not known.

    Args:
        asked: What to do.

    Raises:
        ConfigurationError: The configuration cannot be used.

    >>> estimate_memory(MemorySpecification(configuration="quick", agent="oracle", span_tokens=2000)).likely_usd
    0.0
    """
    plan, price = plan_conversation(asked).plan, _find_price(asked)
    return Estimate(
        rows=len(plan.bars),
        calls=plan.replies_to_generate,
        prompt_tokens=plan.prompt_tokens,
        likely_completion_tokens=plan.completion_tokens,
        most_completion_tokens=plan.completion_tokens,
        likely_usd=None if price is None else plan.dollars(price),
        most_usd=plan.dollars(price) if price == FREE else None,
        minutes=plan.minutes(_SECONDS_PER_REPLY),
        assumptions=("replies as short as a perfect agent's",),
        judge_calls=plan.consultations,
    )


def _find_price(asked: MemorySpecification) -> Price | None:
    if asked.is_local:
        return FREE
    if (price := find_price(asked.agent)) is not None:
        return price
    with contextlib.suppress(ThemisError):  # one that needs a key, or is not there: its price is not known then
        agent = create_agent(asked.agent, options=asked.agent_options)
        try:
            return FREE if agent.most_cost_usd("") == 0 else None
        finally:
            agent.close()
    return None
