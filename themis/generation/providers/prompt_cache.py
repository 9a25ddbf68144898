"""Which parts of requests are marked to be kept in a provider's prompt cache, where it keeps only what is marked."""

from __future__ import annotations

from themis.core.messages import Message, Part
from themis.core.tokens import count_tokens
from themis.exceptions import ConfigurationError

# No model caches less; what is marked and shorter is not cached, and costs nothing more.
_SHORTEST_CACHED_TOKENS = 512
# Without being asked, the beginning of requests is cached once so many of them have begun alike, and where a run has so many, for
# each that may be under way: each of those may write it, at a quarter more, before the others read it for a tenth of its price.
_ALIKE_PER_WRITE = 2
_CALLS_PER_WRITE = 4


class CacheMarks:
    """Which parts of requests are marked to be cached.

    Args:
        wanted: True, or for how long (`5m`, `1h`); False for none; None for what pays.
    """

    def __init__(self, wanted: bool | str | None) -> None:
        if wanted not in (True, False, None, "5m", "1h"):
            raise ConfigurationError(f"prompt_cache is true, false or '1h', got {wanted!r}")
        self.concurrency = 1
        self.expected_calls = 0
        self._wanted = wanted
        self._mark = {"type": "ephemeral", **({"ttl": "1h"} if wanted == "1h" else {})}
        # How the last requests began, how many of them alike, and whether that is long enough.
        self._beginning: object = None
        self._alike = 0
        self._is_long = False

    def mark_system(self, system: str | list[Part], tools: object = None) -> str | list[Part]:
        """What the system says, marked where that pays."""
        if not self._is_marked((system, tools)):
            return system
        parts = [{"type": "text", "text": system}] if isinstance(system, str) else system
        return self._mark_last_of(parts)

    def mark_tools(self, tools: list[dict[str, object]]) -> list[dict[str, object]]:
        return self._mark_last_of(tools) if self._is_marked(tools) else tools

    def mark_last(self, messages: list[Message]) -> list[Message]:
        """The conversation so far, where the user asks for it: whether it goes on nobody knows."""
        if not self._wanted:
            return messages
        last, content = messages[-1], messages[-1].get("content")
        parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
        if not isinstance(parts, list) or not parts:
            return messages
        return [*messages[:-1], {**last, "content": self._mark_last_of(parts)}]

    def mark_openai(self, messages: list[Message]) -> list[Message]:
        """The same in OpenAI's form, for gateways that pass marks on: what the system says, and the last message."""
        if not self._wanted:
            return messages
        marked = self.mark_last(messages) if len(messages) > 2 else list(messages)
        if messages[0].get("role") == "system" and isinstance(messages[0]["content"], str):
            marked[0] = {
                **messages[0],
                "content": self._mark_last_of([{"type": "text", "text": messages[0]["content"]}]),
            }
        return marked

    def _mark_last_of(self, parts: list[Part]) -> list[Part]:
        return [*parts[:-1], {**parts[-1], "cache_control": self._mark}]

    def _is_marked(self, beginning: object) -> bool:
        if self._wanted is not None:
            return bool(self._wanted)
        if self.expected_calls < _CALLS_PER_WRITE * self.concurrency:
            return False
        if beginning != self._beginning:
            self._beginning, self._alike = beginning, 0
            self._is_long = count_tokens(str(beginning)) >= _SHORTEST_CACHED_TOKENS
        self._alike += 1
        return self._is_long and self._alike > _ALIKE_PER_WRITE * self.concurrency
