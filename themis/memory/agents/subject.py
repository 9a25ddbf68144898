"""An agent that was written for memory runs, asked the rows of a dataset: each in a conversation of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from themis.core.entities import GenerationRecord, GenerationTask, ModelOutput
from themis.core.identity import describe_object
from themis.core.messages import Message, read_text
from themis.exceptions import ConfigurationError, ProviderCallError
from themis.generation.providers.chat import attempt_index, conversation_of, make_usage
from themis.interfaces import StatelessTaskExecutor
from themis.memory.agents import Agent, AgentSettings, Reply, agent_maker, find_code


class AgentSubject(StatelessTaskExecutor):
    """`agent:NAME`, where NAME is whatever `themis memory run -a` takes: `agent:rag(openai/gpt-4o)`, `agent:http://...`.

    Args:
        agent: In place of a name: a subclass of `Agent`, or a function that makes one.
        most_cost_usd: The most that an answer may cost, for a budget.
        max_prompt_tokens: The most that the agent may send to its model.
        is_local: Its answers cost nothing.
    """

    def __init__(
        self,
        *,
        model_identifier: str = "",
        agent: Callable[[], Agent] | None = None,
        most_cost_usd: float | None = None,
        max_prompt_tokens: int | None = None,
        is_local: bool = False,
        **options: object,
    ) -> None:
        self.is_local = is_local  # type: ignore[misc]
        self.most_cost_usd = most_cost_usd
        settings = AgentSettings(max_prompt_tokens=max_prompt_tokens, is_local=is_local)
        self._make: Callable[[str], Agent]
        self._code = find_code(model_identifier) if agent is None else agent
        if agent is None:
            self._make = agent_maker(model_identifier, settings, options)
        else:
            if options:
                raise ConfigurationError(f"an agent of the program's takes no options, got {', '.join(options)}")
            self._make = lambda session: agent()

    def __themis_identity__(self) -> object:
        return None if self._code is None else describe_object(self._code)

    def execute(self, task: GenerationTask) -> GenerationRecord:
        name = task.metadata.get("dataset_id", "")
        agent = self._make(f"{task.metadata.get('manifest_hash', '')[:12]}:{name}:{attempt_index(task)}")
        try:
            return GenerationRecord(task, _hold(agent, conversation_of(task, None)), None)
        finally:
            agent.close()


def _hold(agent: Agent, messages: Sequence[Message]) -> ModelOutput:
    """The reply to the last message; what was said before it is told as the conversation so far."""
    exchanges, now = _pair(messages), datetime.now(UTC)
    for turn, (message, replied) in enumerate(exchanges[:-1], 1):
        agent.observe(message, replied or "", turn=turn, now=now)
    last, given = exchanges[-1]
    if given is not None:
        raise ProviderCallError("the messages end with the assistant's; an agent replies to a user", retryable=False)
    said = agent.reply(last, turn=len(exchanges), now=now)
    reply = said if isinstance(said, Reply) else Reply(said, cost_usd=None)
    usage = make_usage(reply.prompt_tokens, reply.completion_tokens) if reply.calls else None
    return replace(ModelOutput(reply.text), usage=usage, cost_usd=reply.cost_usd)


def _find_other_parts(content: object) -> list[str]:
    parts = content if isinstance(content, list) else []
    kinds = [str(part.get("type")) for part in parts if isinstance(part, Mapping)]
    return sorted({kind for kind in kinds if kind != "text"})


def _pair(messages: Sequence[Message]) -> list[tuple[str, str | None]]:
    """Messages of the user, each with the reply to it; what the system says stands before the first."""
    system = "\n\n".join(read_text(one["content"]) for one in messages if one["role"] in ("system", "developer"))
    pairs: list[tuple[str, str | None]] = []
    for message in messages:
        text = read_text(message.get("content"))
        if unread := _find_other_parts(message.get("content")):
            raise ProviderCallError(
                f"an agent is told texts, and a message has parts of the type {', '.join(unread)}; ask a model or a function",
                kind="bad_request",
                retryable=False,
            )
        if message["role"] == "user":
            pairs.append((text, None))
        elif message["role"] == "assistant" and pairs:
            pairs[-1] = (pairs[-1][0], text)
    if not pairs:
        raise ProviderCallError("there is no message of a user to reply to", kind="bad_request", retryable=False)
    if system:
        pairs[0] = (f"{system}\n\n{pairs[0][0]}", pairs[0][1])
    return pairs
