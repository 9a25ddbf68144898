"""One driver plays every script, whoever gives the answers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.memory.small_tests import START
from themis.memory.actions import Action, AgentReply, Ask, Consult, Grade, Instant, JudgeReply, Listen, Say, Wait
from themis.memory.script import ScriptDriver
from themis.memory.tape import ConversationLog


def reply(text: str) -> AgentReply:
    return AgentReply(text, turn=1, now=START, tokens=9, message="hello", test_id=None, log=ConversationLog())


def answers(action: Action) -> Any:
    match action:
        case Say() | Ask():
            return reply("Oslo")
        case Wait():
            return Instant(START, 9)
        case Consult():
            return JudgeReply("7")
        case _:
            return None


def test_a_script_is_played_to_its_last_grade_and_a_judges_reply_is_parsed() -> None:
    seen: list[Any] = []

    def script() -> Iterator[Any]:
        seen.append((yield Ask("Where do I live?")))
        seen.append((yield Wait(tokens=5)))
        yield Grade(0.0)
        ruling = yield Consult("how many?", parse=int)
        yield Grade(ruling.value / 7)

    assert ScriptDriver(script).run(answers) == Grade(1.0)
    assert seen == ["Oslo", Instant(START, 9)]


def test_a_listener_is_told_once_that_the_conversation_is_over() -> None:
    def stubborn() -> Iterator[Any]:
        while True:
            yield Listen()

    driver = ScriptDriver(stubborn)

    assert driver.advance() == driver.advance(reply("hello")) == Listen()
    assert driver.advance(None) is None
    assert driver.grade == Grade.failure("listened on after the conversation was over")


def test_a_script_that_breaks_after_a_grade_has_failed() -> None:
    def breaking() -> Iterator[Any]:
        yield Grade(1.0)
        raise KeyError("gone")

    driver = ScriptDriver(breaking)

    assert driver.run(answers) == Grade.failure("the script raised KeyError: 'gone'")
    assert driver.advance() is None
