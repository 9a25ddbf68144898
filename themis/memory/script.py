"""Plays one test's script: the only code that runs one, whoever gives the answers.

The scheduler answers from a conversation, `planning` as a perfect agent would, `rejudging` from what was stored.
"""

from __future__ import annotations

from collections.abc import Callable, Generator

from themis.memory.actions import Action, AgentReply, Consult, Grade, Instant, JudgeReply, Listen, Script

Answer = AgentReply | Instant | JudgeReply | None


class ScriptDriver:
    """A script under way: what it wants next, and its grade so far.

    Grades are collected on the way, a judge's reply is parsed, and whatever goes wrong in the script is a failed grade.

    Args:
        play: Starts the script.
    """

    def __init__(self, play: Callable[[], Script]) -> None:
        self._play = play
        self._script: Script | None = None
        # What it wants; None before its beginning and after its end.
        self.action: Action | None = None
        self._grade: Grade | None = None
        # Whether it was told, while it listened, that the conversation is over.
        self._end_notified = False

    @property
    def grade(self) -> Grade:
        return self._grade or Grade.failure("the script ended without a grade")

    def advance(self, answer: Answer = None) -> Action | None:
        """Gives the script the answer to its last action and returns what it wants next, None once it has ended."""
        if isinstance(self.action, Listen) and answer is None:
            self._end_notified = True
        elif isinstance(self.action, Consult) and isinstance(answer, JudgeReply):
            answer = parse_reply(self.action, answer)
        self.action = self._send(answer)
        while isinstance(self.action, Grade):
            self._grade = self.action
            self.action = self._send(None)
        if isinstance(self.action, Listen) and self._end_notified:
            self.stop("listened on after the conversation was over")
        return self.action

    def run(self, answer: Callable[[Action], Answer]) -> Grade:
        """Plays the script to its end."""
        action = self.advance()
        while action is not None:
            action = self.advance(answer(action))
        return self.grade

    def stop(self, reason: str) -> None:
        """Ends the script with a failure."""
        self.close()
        self.action, self._grade = None, Grade.failure(reason)

    def close(self) -> None:
        if self._script is not None:
            self._script.close()

    def _send(self, answer: Answer) -> Action | None:
        try:
            if self._script is None:
                script = self._play()
                if not isinstance(script, Generator):
                    raise TypeError(f"a script yields its actions, and this one returned {type(script).__name__}")
                self._script = script
            action = self._script.send(answer)
        except StopIteration:
            return None
        except Exception as error:  # boundary: a test is the user's code
            self.stop(f"the script raised {type(error).__name__}: {error}")
            return None
        if not isinstance(action, Action):
            self.stop(f"the script yielded {type(action).__name__}, expected an action")
            return None
        return action


def parse_reply(consult: Consult, reply: JudgeReply) -> JudgeReply:
    """The judge's reply with the value that the test's own parser finds in it."""
    if reply.failed:
        return reply
    try:
        return JudgeReply(reply.text, value=consult.parse(reply.text))
    except Exception as error:  # boundary: a judge's answer may hold anything, and parsing it is the test's code
        return JudgeReply(reply.text, f"the judge's answer cannot be read: {type(error).__name__}: {error}")
