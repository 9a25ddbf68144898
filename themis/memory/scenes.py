"""A script with the actions of a memory test, played with any subject, alone in its conversation."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from themis.core.entities import ModelOutput
from themis.core.tokens import count_tokens
from themis.core.user_code import load_object
from themis.exceptions import ConfigurationError
from themis.generation.episodes import AskModel, Play, Tell, answer_with_tools
from themis.memory.actions import AgentReply, Ask, Consult, Grade, Instant, JudgeReply, Line, Listen, Say, Script, Wait
from themis.memory.script import Answer, ScriptDriver
from themis.memory.tape import ConversationLog

_START = datetime(2024, 1, 1, 9, tzinfo=UTC)
_PACE = timedelta(seconds=30)


class ScriptScene:
    """Plays a function of a row that yields `Say`, `Ask`, `Wait` and `Grade`; its grade is kept with the answer.

    There is nobody else in the conversation: a `Wait` ends at once, with the virtual time moved on, a `Listen` hears that the
    conversation is over, and a `Consult` that there is no judge: metrics judge the transcript.

    Args:
        script: The function, or its name (`FILE.py:NAME`).
    """

    # The prompt of the row is for the script to say.
    speaks_first = True

    def __init__(self, script: str | Callable[..., Script]) -> None:
        found: Any = load_object(script) if isinstance(script, str) else script
        if not callable(found):
            raise ConfigurationError(f"a script is a function of a row that yields actions, got {found!r}")
        self._script: Callable[..., Script] = found

    def __call__(self, row: Mapping[str, object]) -> Play:
        # Its own: other attempts, and metrics, see the row as it was given.
        driver = ScriptDriver(lambda: self._script(copy.deepcopy(dict(row))))
        log, now = ConversationLog(), _START
        tokens = 0
        action = driver.advance()
        while action is not None:
            answer: Answer = None
            if isinstance(action, Say | Ask):
                yield Tell({"role": "user", "content": action.text})
                output = yield from _reply()
                now += _PACE
                tokens += count_tokens(action.text) + count_tokens(output.text)
                turn = len(log) + 1
                log.append(Line(turn, "script", action.text, output.text, now, isinstance(action, Ask)))
                answer = AgentReply(
                    output.text, turn=turn, now=now, tokens=tokens, message=action.text, test_id="script", log=log
                )
            elif isinstance(action, Wait):
                now += action.time or timedelta(0)
                answer = Instant(now, tokens)
            elif isinstance(action, Consult):
                answer = JudgeReply(failure="there is no judge here; judge the transcript with a metric")
            elif isinstance(action, Listen):
                answer = None
            action = driver.advance(answer)
        return {"grade": _describe(driver.grade)}


def _reply() -> Any:
    """The subject's reply to what was just said, after the tools it calls."""
    last: ModelOutput | None = None
    play = answer_with_tools()
    action = next(play)
    while True:
        outcome = yield action
        if isinstance(action, AskModel):
            last = outcome
        try:
            action = play.send(outcome)
        except StopIteration:
            return last


def _describe(grade: Grade) -> dict[str, object]:
    return {"score": None if grade.failed else grade.score, "reasons": list(grade.reasons)}
