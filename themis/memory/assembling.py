"""From a specification to a memory run: configuration, definitions, agent, filler, judge, every mistake found."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from themis.config import load_memory_config
from themis.config.schema import MemoryConfig
from themis.config.specification import MemorySpecification
from themis.core.redaction import redact_options
from themis.core.user_code import load_user_code
from themis.exceptions import ConfigurationError
from themis.memory import definitions
from themis.memory.agents import AgentSettings, agent_maker
from themis.memory.benchmark import INTRODUCTION, Benchmark
from themis.memory.clock import Clock
from themis.memory.driver import MemoryDriver
from themis.memory.filler import create_filler
from themis.memory.models import ChatModel
from themis.storage import ExperimentStorage
from themis.storage.runs import validate_run_id

_BOUND = "most_cost_usd"
_UNITS = {"": 1, "k": 1_000, "m": 1_000_000}


def assemble_driver(
    asked: MemorySpecification, storage: ExperimentStorage, *, reuse: Callable[[str], bool], keep: bool = True
) -> MemoryDriver:
    """What the lifecycle of runs drives such a run by."""
    return MemoryDriver(assemble(asked, storage, reuse=reuse, keep=keep))


def assemble(
    asked: MemorySpecification, storage: ExperimentStorage, *, reuse: Callable[[str], bool], keep: bool = True
) -> Benchmark:
    """Everything a run is made of; every mistake is found here, before the first message. New tests are kept if `keep`."""
    for path in asked.load:
        load_user_code(path)
    config = load_config(asked)
    if config.debug:
        logging.getLogger("themis.memory").setLevel(logging.DEBUG)
    clock = Clock(config.clock)
    settings = AgentSettings(
        max_prompt_tokens=asked.max_prompt_tokens, tokenizer=config.tokenizer, is_local=asked.is_local
    )
    make_agent = agent_maker(asked.agent, settings, asked.agent_options or {})
    filler = create_filler(config.filler, seed=config.seed, tokenizer_name=config.tokenizer)
    judge = ChatModel(config.judge, asked.judge_options or {}) if config.judge is not None else None
    if asked.definitions is not None:
        defined = definitions.load_folder(Path(asked.definitions), config)
    else:
        defined = definitions.prepare(config, storage, reuse=reuse, regenerate=asked.regenerate, keep=keep)
    # A key decides no reply, and belongs neither into the store nor into what a run is known by.
    options = redact_options(asked.agent_options or {})
    options.pop(_BOUND, None)  # nor does the most that a reply may cost
    if asked.max_prompt_tokens is not None:
        options["max_prompt_tokens"] = asked.max_prompt_tokens
    run_id = validate_run_id(asked.run_id or default_run_id(config.run_name, asked))
    hidden = asked.secret_options
    return Benchmark(
        run_id=run_id,
        name=config.run_name,
        tests=[one.example for one in defined],
        kinds={one.example.test_id: one.kind for one in defined},
        conflicts=definitions.conflicts_of(defined, config.incompatibilities),
        agent_name=asked.shown_agent,
        make_agent=make_agent,
        agent_is_free=asked.is_local,
        filler=filler,
        judge=judge,
        clock=clock,
        isolated=asked.isolated,
        parallel=asked.workers,
        introduction=None if asked.isolated else INTRODUCTION,
        max_message_tokens=config.max_message_tokens,
        tokenizer=config.tokenizer,
        seed=config.seed,
        budget_usd=asked.budget_usd,
        agent_options=options,
        # Secrets are not stored: to go on, the program that has them is needed.
        specification=replace(
            asked, needs_program=f"{', '.join(hidden)}: a secret, which is not stored" if hidden else ""
        ),
    )


def load_config(asked: MemorySpecification) -> MemoryConfig:
    """The configuration file with what the command line says instead."""
    config = load_memory_config(asked.configuration)
    if asked.span_tokens is not None:
        tests = [replace(test, arguments={**test.arguments, "memory_span": asked.span_tokens}) for test in config.tests]
        config = replace(config, tests=tests, run_name=f"{config.run_name} {asked.span_tokens}")
    if asked.seed is not None:
        config = replace(config, run_name=f"{config.run_name} s{asked.seed}")
    said: dict[str, Any] = {
        "seed": asked.seed,
        "judge": asked.judge,
        "filler": asked.filler,
        "clock": asked.clock,
        "max_message_tokens": asked.max_message_tokens,
    }
    return replace(config, **{name: value for name, value in said.items() if value is not None})


def parse_span(text: str) -> int:
    """`2000`, `8k` or `1M` as tokens."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kKmM]?)\s*", text)
    if match is None or (span := round(float(match[1]) * _UNITS[match[2].lower()])) < 1:
        raise ConfigurationError(f"spans are numbers of tokens such as 2000, 8k or 1M, got {text.strip()!r}")
    return span


def default_run_id(name: str, asked: MemorySpecification) -> str:
    """One run for each configuration, agent and prompt size, so that the same command resumes it."""
    agent = re.sub(r"[^\w.()-]+", "-", asked.shown_agent).strip("-.") or "agent"
    size = "" if asked.max_prompt_tokens is None else f" {asked.max_prompt_tokens}"
    return f"{name} - {agent}{size}{' (isolated)' if asked.isolated else ''}"
