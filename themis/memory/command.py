"""Puts a memory run together from what the command line says: configuration, definitions, agent, filler, judge."""

from __future__ import annotations

import dataclasses
import importlib.util
import json
import logging
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from themis.config import load_memory_config
from themis.config.schema import MemoryConfig
from themis.core.redaction import REDACTED, redact_options
from themis.exceptions import ConfigurationError
from themis.memory import definitions
from themis.memory.agents import AgentSettings, agent_maker
from themis.memory.benchmark import INTRODUCTION, Benchmark
from themis.memory.clock import Clock
from themis.memory.filler import create_filler
from themis.memory.judging import create_judge
from themis.runs.resuming import NEEDS_PROGRAM
from themis.storage import ExperimentStorage, RunMetadata
from themis.storage.runs import validate_run_id

__all__ = [
    "Request",
    "assemble",
    "command_of",
    "configured",
    "default_run_id",
    "load_user_code",
    "parse_span",
    "resuming_command",
]

_BOUND = "most_cost_usd"
_UNITS = {"": 1, "k": 1_000, "m": 1_000_000}


@dataclass(frozen=True, kw_only=True)
class Request:
    """What the user asks for. What is None is the configuration's to say."""

    configuration: str
    agent: str
    max_prompt_tokens: int | None = None
    agent_options: Mapping[str, Any] = field(default_factory=dict)
    isolated: bool = False
    is_local: bool = False
    run_id: str | None = None
    # In place of the configuration's; definitions of another span or seed are kept under a name of their own.
    span_tokens: int | None = None
    seed: int | None = None
    judge: str | None = None
    judge_options: Mapping[str, Any] = field(default_factory=dict)
    filler: str | None = None
    clock: str | None = None
    max_message_tokens: int | None = None
    budget_usd: float | None = None
    parallel: int = 1
    regenerate: bool = False
    definitions: str | None = None
    # Python files that register tests, agents or fillers.
    load: Sequence[str] = ()


def assemble(request: Request, storage: ExperimentStorage, *, reuse: Callable[[str], bool]) -> Benchmark:
    """Everything a run is made of; every mistake is found here, before the first message."""
    if request.parallel < 1:
        raise ConfigurationError(f"--parallel is at least 1, got {request.parallel}")
    if request.parallel > 1 and not request.isolated:
        raise ConfigurationError("--parallel needs -i: only isolated tests are independent of each other")
    config = configured(request)
    if config.debug:
        logging.getLogger("themis.memory").setLevel(logging.DEBUG)
    clock = Clock(config.clock)
    settings = AgentSettings(
        max_prompt_tokens=request.max_prompt_tokens, tokenizer=config.tokenizer, is_local=request.is_local
    )
    make_agent = agent_maker(request.agent, settings, request.agent_options)
    filler = create_filler(config.filler, seed=config.seed, tokenizer_name=config.tokenizer)
    judge = create_judge(config.judge, request.judge_options)
    if request.definitions is not None:
        defined = definitions.load_folder(Path(request.definitions), config)
    else:
        defined = definitions.prepare(config, storage, reuse=reuse, regenerate=request.regenerate)
    # A key decides no reply, and belongs neither into the store nor into what a run is known by.
    options = redact_options(request.agent_options)
    options.pop(_BOUND, None)  # nor does the most that a reply may cost
    if request.max_prompt_tokens is not None:
        options["max_prompt_tokens"] = request.max_prompt_tokens
    run_id = validate_run_id(request.run_id or default_run_id(config.run_name, request))
    return Benchmark(
        run_id=run_id,
        name=config.run_name,
        tests=[one.example for one in defined],
        kinds={one.example.test_id: one.kind for one in defined},
        conflicts=definitions.conflicts_of(defined, config.incompatibilities),
        agent_name=_agent_without_secrets(request),
        make_agent=make_agent,
        agent_is_free=request.is_local,
        filler=filler,
        judge=judge,
        clock=clock,
        isolated=request.isolated,
        parallel=request.parallel,
        introduction=None if request.isolated else INTRODUCTION,
        max_message_tokens=config.max_message_tokens,
        tokenizer=config.tokenizer,
        seed=config.seed,
        budget_usd=request.budget_usd,
        agent_options=options,
        invocation=command_of(request),
    )


def configured(request: Request) -> MemoryConfig:
    """The configuration file with what the command line says instead."""
    config = load_memory_config(request.configuration)
    if request.span_tokens is not None:
        tests = [
            dataclasses.replace(test, arguments={**test.arguments, "memory_span": request.span_tokens})
            for test in config.tests
        ]
        config = dataclasses.replace(config, tests=tests, run_name=f"{config.run_name} {request.span_tokens}")
    if request.seed is not None:
        config = dataclasses.replace(config, run_name=f"{config.run_name} s{request.seed}")
    said: dict[str, Any] = {
        "seed": request.seed,
        "judge": request.judge,
        "filler": request.filler,
        "clock": request.clock,
        "max_message_tokens": request.max_message_tokens,
    }
    return dataclasses.replace(config, **{name: value for name, value in said.items() if value is not None})


def parse_span(text: str) -> int:
    """`2000`, `8k` or `1M` as tokens."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kKmM]?)\s*", text)
    if match is None or (span := round(float(match[1]) * _UNITS[match[2].lower()])) < 1:
        raise ConfigurationError(f"spans are numbers of tokens such as 2000, 8k or 1M, got {text.strip()!r}")
    return span


def command_of(request: Request) -> dict[str, Any]:
    """The words behind `themis` that ask for this again under any run id, and what is missing in them."""
    agent = _agent_without_secrets(request)
    words = ["memory", "run", "-c", request.configuration, "-a", agent]
    for option, value in (
        ("-m", request.max_prompt_tokens),
        ("--span", request.span_tokens),
        ("--seed", request.seed),
        ("--judge", request.judge),
        ("--filler", request.filler),
        ("--clock", request.clock),
        ("--max-message-tokens", request.max_message_tokens),
        ("--budget-usd", request.budget_usd),
        ("--definitions", request.definitions),
        ("--parallel", None if request.parallel == 1 else request.parallel),
    ):
        words += [] if value is None else [option, str(value)]
    words += ["-i"] * request.isolated + ["-l"] * request.is_local
    secrets = ["agent"] if REDACTED in agent else []
    for option, given in (("--option", request.agent_options), ("--judge-option", request.judge_options)):
        for name, value in given.items():
            if REDACTED in json.dumps(redact_options({name: value}), default=str):
                secrets.append(name)
            else:
                words += [option, f"{name}={value if isinstance(value, str) else json.dumps(value)}"]
    for path in request.load:
        words += ["--load", path]
    invocation: dict[str, Any] = {"command": words}
    if secrets:
        invocation |= {"secret_options": secrets, NEEDS_PROGRAM: f"{', '.join(secrets)}: a secret, which is not stored"}
    return invocation


def resuming_command(run: RunMetadata, *, budget_usd: float | None = None) -> list[str]:
    """The words behind `themis` that go on with a stored run."""
    words = list((run.config_snapshot.get("invocation") or {}).get("command") or ())
    if not words:
        raise ConfigurationError(
            f"run {run.run_id!r} does not say how it was started; run the program that made it again, or, if it was "
            "imported, look at it with: themis memory report"
        )
    return [*words, "--run-id", run.run_id, *([] if budget_usd is None else ["--budget-usd", str(budget_usd)])]


def load_user_code(path: str) -> None:
    """Runs a Python file of the user's, which registers tests, agents or fillers; its folder can be imported from."""
    file = Path(path).resolve()
    specification = importlib.util.spec_from_file_location(file.stem, file)
    if not file.is_file() or specification is None or specification.loader is None:
        raise ConfigurationError(f"--load takes a Python file, got {path!r}")
    sys.path.insert(0, str(file.parent))
    module = importlib.util.module_from_spec(specification)
    # Data classes look their module up by name while they are made.
    sys.modules[file.stem] = module
    specification.loader.exec_module(module)


def _agent_without_secrets(request: Request) -> str:
    return str(redact_options({"agent": request.agent})["agent"])


def default_run_id(name: str, request: Request) -> str:
    """One run for each configuration, agent and prompt size, so that the same command resumes it."""
    agent = re.sub(r"[^\w.()-]+", "-", _agent_without_secrets(request)).strip("-.") or "agent"
    size = "" if request.max_prompt_tokens is None else f" {request.max_prompt_tokens}"
    return f"{name} - {agent}{size}{' (isolated)' if request.isolated else ''}"
