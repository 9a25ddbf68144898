"""What a memory run is made of, and what it has used."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from themis.config.specification import MemorySpecification
from themis.core.tokens import DEFAULT_TOKENIZER
from themis.memory.agents.agent import Agent
from themis.memory.clock import Clock
from themis.memory.examples import TestExample
from themis.memory.filler import Filler
from themis.memory.models import Judge

INTRODUCTION = (
    "Hello! Several people will talk to you in this conversation, about many things at once. Do what they ask you to "
    "do and be brief in your answers. Some messages only bring something to read, such as news, a document, an e-mail, a "
    "table or code, in several languages: answer what they ask in a few words, or else just say that you have read it."
)


@dataclass(frozen=True, kw_only=True)
class Benchmark:
    """Everything a memory run is made of, resolved and checked.

    Args:
        run_id: The run's id.
        name: Of the configuration; runs of one name are compared.
        tests: All of them.
        kinds: The kind of each test, by the test's id.
        conflicts: Which kinds of test disturb which.
        agent_name: What the agent is called in lists.
        filler: What is said between tests.
        judge: The model that judges what code cannot, if a test asks for it.
        clock: How virtual time reaches the agent.
        isolated: Each test in a conversation of its own.
        parallel: Isolated tests at once.
        introduction: What opens the conversation; None for nothing.
        max_message_tokens: Longest filler message.
        tokenizer: What tokens are counted with.
        seed: What the tests were generated with; kept with the run.
        budget_usd: The most that the run may cost.

    >>> from themis.memory import create_agent, create_filler, run
    >>> from themis.memory.examples import MEMORY_TESTS
    >>> from themis.storage import ExperimentStorage
    >>> tests = MEMORY_TESTS.get("colours")(memory_span=500).generate_examples(2)
    >>> benchmark = Benchmark(
    ...     run_id="small",
    ...     name="small",
    ...     tests=tests,
    ...     kinds={test.test_id: "colours" for test in tests},
    ...     conflicts={"colours": ["colours"]},
    ...     agent_name="oracle",
    ...     make_agent=lambda session: create_agent("oracle", session=session),
    ...     filler=create_filler("mixed"),
    ... )
    >>> run(benchmark, ExperimentStorage("runs"))
    ExperimentReport(small: 2 samples; Colours=1.0000, memory=1.0000)
    """

    run_id: str
    name: str
    tests: Sequence[TestExample]
    kinds: Mapping[str, str]
    conflicts: Mapping[str, Iterable[str]]
    agent_name: str
    # Makes the agent of one conversation, given that conversation's name.
    make_agent: Callable[[str], Agent]
    filler: Filler
    judge: Judge | None = None
    clock: Clock = field(default_factory=Clock)
    isolated: bool = False
    parallel: int = 1
    introduction: str | None = INTRODUCTION
    max_message_tokens: int = 4_096
    tokenizer: str = DEFAULT_TOKENIZER
    seed: int = 0
    # The virtual time at which a new run begins; now, if not given.
    start: datetime | None = None
    budget_usd: float | None = None
    # What decides the agent's replies beyond its name.
    agent_options: Mapping[str, Any] = field(default_factory=dict)
    # Its replies cost nothing, whatever it says of them.
    agent_is_free: bool = False
    # What was asked for, where a specification did; a program's own benchmark can be resumed only by that program.
    specification: MemorySpecification | None = None
