"""Agents by name: which one a text such as `openai/gpt-4o`, `window(2000)` or `http://localhost:8080` means.

perfect                            hears everything, is told nothing else, and answers by rules: what honest memory scores
oracle, window, amnesiac, parrot   agents that are handed the answers, to test the engine: window has the last -m tokens
retrieval, retrieval(MODEL)        past exchanges are found again; rag means the same
ts-MODEL                           a model that sees how long ago every message was said
http://..., https://...            an agent in another process, by JSON
command:PROGRAM ARGUMENTS          an agent as a program, by JSON lines
python:FILE.py:NAME                a class of yours, or a function that is shown as much of the conversation as fits
human                              you
cost(IN,OUT)                       an estimate for prices in US dollars per 1,000 tokens
anything registered                by register_agent
gpt-4-1106, claude-3-opus, gemini  what the GoodAI LTM Benchmark calls models; see themis.memory.short_names
any other model                    a windowed chat
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar, overload

from themis.core.redaction import look_up_secrets
from themis.core.registry import Registry, nearest
from themis.core.tokens import DEFAULT_TOKENIZER
from themis.core.user_code import load_object
from themis.exceptions import ConfigurationError
from themis.generation.providers import parse_model
from themis.memory.agents.agent import Agent, AgentSettings, Reply
from themis.memory.agents.calibration import parse_prices
from themis.memory.short_names import expand_model, refuse_absent
from themis.runs.prices import Price, price_of

__all__ = [
    "AGENTS",
    "Agent",
    "AgentSettings",
    "Reply",
    "agent_maker",
    "create_agent",
    "find_code",
    "find_price",
    "register_agent",
]

_HERE = "themis.memory.agents"
_CODE = "python:"
_CALLED = re.compile(r"^(?P<name>[\w.-]+)\((?P<argument>.*)\)$", re.DOTALL)


# A factory takes `argument` (what stands in the brackets, or ""), `settings`, and the agent's own options by keyword.
AgentFactory = Callable[..., Agent]
F = TypeVar("F", bound=AgentFactory)

AGENTS: Registry[AgentFactory] = Registry(
    "agent",
    {
        "amnesiac": f"{_HERE}.calibration:Amnesiac",
        "chat": f"{_HERE}.chat:ChatAgent",
        "command": f"{_HERE}.program:ProgramAgent",
        "cost": f"{_HERE}.calibration:CostEstimate",
        "http": f"{_HERE}.http:HttpAgent",
        "human": f"{_HERE}.calibration:Human",
        "oracle": f"{_HERE}.calibration:Oracle",
        "parrot": f"{_HERE}.calibration:Parrot",
        "perfect": f"{_HERE}.perfect:Perfect",
        "rag": f"{_HERE}.retrieval:RetrievalAgent",
        "retrieval": f"{_HERE}.retrieval:RetrievalAgent",
        "ts": f"{_HERE}.chat:timestamped",
        "window": f"{_HERE}.calibration:window",
    },
)


@overload
def register_agent(name: str) -> Callable[[F], F]: ...
@overload
def register_agent(name: str, factory: F) -> F: ...
def register_agent(name: str, factory: F | None = None) -> F | Callable[[F], F]:
    """Makes an agent known under a name. Also a decorator.

    Args:
        name: What `-a` takes, also as `name(ARGUMENT)`.
        factory: A subclass of `Agent`, or a function that makes an agent; what is written in the brackets reaches it as
            `argument`, the run's settings as `settings`, and options by their names. Left out where this decorates.

    Raises:
        ConfigurationError: It is no such class or function.

    >>> @register_agent("echo")
    ... class Echo(Agent):
    ...     def reply(self, message, *, turn, now, presupplied=None):
    ...         return message
    ...     def reset(self):
    ...         pass
    >>> create_agent("echo").reply("hello", turn=1, now=None)
    'hello'
    """
    if factory is None:
        return lambda made: register_agent(name, made)
    if not callable(factory):
        raise ConfigurationError(f"agent {name!r} must be a class or a function that makes one, got {factory!r}")
    if inspect.isclass(factory) and not (issubclass(factory, Agent) and not inspect.isabstract(factory)):
        missing = (
            ", ".join(sorted(getattr(factory, "__abstractmethods__", ()))) or "themis.memory.Agent as its base class"
        )
        raise ConfigurationError(f"agent {name!r}: the class {factory.__name__} lacks {missing}")
    AGENTS.register(name, factory)
    return factory


def create_agent(
    text: str,
    *,
    max_prompt_tokens: int | None = None,
    options: Mapping[str, object] | None = None,
    session: str = "session",
    tokenizer: str = DEFAULT_TOKENIZER,
    is_local: bool = False,
) -> Agent:
    """The agent that a text means.

    Args:
        text: A registered name, also with an argument in brackets; an address; `command:PROGRAM`; or a model.
        max_prompt_tokens: The most that it may send to its model.
        options: Its own options by name.
        session: Name of the conversation, for agents that hold several.
        tokenizer: How tokens are counted.
        is_local: Its calls cost nothing.

    >>> create_agent("window(2000)").name
    'window-2000'
    """
    settings = AgentSettings(
        max_prompt_tokens=max_prompt_tokens, session=session, tokenizer=tokenizer, is_local=is_local
    )
    return agent_maker(text, settings, options)(session)


def agent_maker(
    text: str, settings: AgentSettings, options: Mapping[str, object] | None = None
) -> Callable[[str], Agent]:
    """Makes agents of one kind, each for a conversation of its own."""
    name, argument = _split_name(text)
    factory = _find_class(text) or AGENTS.get(name)
    takes = inspect.signature(factory).parameters
    anything = any(parameter.kind is parameter.VAR_KEYWORD for parameter in takes.values())
    if not anything:
        _reject_unknown(
            name, [parameter for parameter in takes if parameter not in ("argument", "settings")], options or {}
        )
    given = look_up_secrets(options or {})
    argument = look_up_secrets({"agent": argument})["agent"]

    def make(session: str) -> Agent:
        told = {"argument": argument, "settings": replace(settings, session=session)}
        agent = factory(**{key: value for key, value in told.items() if anything or key in takes}, **given)
        if not isinstance(agent, Agent):
            raise ConfigurationError(f"agent {name!r} made {type(agent).__name__}, which is not an Agent")
        return agent

    return make


def find_code(text: str) -> object | None:
    """The user's code behind an agent's name, which decides what it says; None where there is none.

    Args:
        text: The agent, as `create_agent` takes it.

    >>> find_code("window(2000)") is None
    True
    """
    name, argument = _split_name(text)
    if argument.startswith(_CODE):
        found: object = load_object(argument.removeprefix(_CODE))
        return found
    factory = AGENTS.get(name)
    return None if factory.__module__.partition(".")[0] == "themis" else factory


def _find_class(text: str) -> AgentFactory | None:
    """The class of an agent that a text names by its file or module."""
    found = load_object(text.strip().removeprefix(_CODE)) if text.strip().startswith(_CODE) else None
    return found if inspect.isclass(found) and issubclass(found, Agent) else None


def find_price(text: str) -> Price | None:
    """The price of the tokens that an agent sends and gets, where it is known beforehand.

    Args:
        text: The agent, as `create_agent` takes it.

    >>> find_price("cost(0.0025,0.01)")
    Price(input_usd=2.5, output_usd=10.0, source='the prices given')
    """
    name, argument = _split_name(text)
    if name == "cost":
        return parse_prices(argument)
    if name not in ("chat", "ts") or not argument:
        return None
    spec = parse_model(expand_model(argument))
    return price_of(spec.identifier, spec.provider)


def _split_name(text: str) -> tuple[str, str]:
    """The registered name of an agent and what it is given."""
    text = text.strip()
    if not text:
        raise ConfigurationError(
            "an agent is named as, say, oracle, openai/gpt-4o or http://localhost:8080; got nothing"
        )
    if text.startswith(("http://", "https://")):
        return "http", text
    if text.startswith("command:"):
        return "command", text.removeprefix("command:")
    if text.startswith("ts-"):
        return "ts", text.removeprefix("ts-")
    called = _CALLED.match(text)
    if called and called["name"] in AGENTS:
        return called["name"], called["argument"].strip()
    if text in AGENTS:
        return text, ""
    if expand_model(text) != text:
        return "chat", text
    refuse_absent(text)
    if not any(mark in text for mark in "/:(") and (close := nearest(text, AGENTS.names())):
        raise ConfigurationError(f"unknown agent {text!r}{close}; a model is named as provider/model")
    return "chat", text


def _reject_unknown(name: str, known: Sequence[str], options: Mapping[str, object]) -> None:
    for option in options:
        if option not in known:
            raise ConfigurationError(
                f"agent {name!r} has no option {option!r}{nearest(option, known)}; it has {', '.join(known) or 'none'}"
            )
