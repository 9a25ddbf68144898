"""Replies that somebody else wrote, who knew the conversations and not the scorers, are judged as their writer did.

`replies_of_others/KIND.jsonl` has the definitions of some tests, by seed, and then one reply a line: to which question of
which test it was given while all others were answered well, and its score; null where a person would ask back.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from themis.memory.actions import AgentReply, Ask, Consult, Grade, Instant, JudgeReply, Line, Listen, Say, Wait
from themis.memory.examples import MEMORY_TESTS, TestExample
from themis.memory.script import ScriptDriver
from themis.memory.tape import ConversationLog

FOLDER = Path(__file__).parent / "replies_of_others"
# Replies to some of the same tests, by those who wrote the rules: a handful of each family that a rule is for.
FAMILIES = Path(__file__).parent / "replies_by_family"
START, PACE, MOST_FILLER = datetime(2024, 1, 1, 9, tzinfo=UTC), timedelta(seconds=30), 60


def test_nearly_all_replies_of_others_are_judged_as_their_writer_did_and_few_wrongly():
    verdicts = Counter(verdict for path in sorted(FOLDER.glob("*.jsonl")) for verdict in judge_all(path))

    total = verdicts.total()
    assert total > 12_200
    assert verdicts["right"] / total >= 0.97
    assert verdicts["wrong"] / total <= 0.01
    assert verdicts["wrong"] < verdicts["undecided"] / 2


def test_replies_of_every_family_that_a_rule_is_for_are_judged_as_a_person_would():
    verdicts = Counter(verdict for path in sorted(FAMILIES.glob("*.jsonl")) for verdict in judge_all(path))

    assert verdicts.total() > 1_150
    assert verdicts["right"] / verdicts.total() >= 0.97
    assert verdicts["wrong"] <= 3


def judge_all(path: Path) -> Iterator[str]:
    """For each reply of a file whether it was judged as written there, not at all, or otherwise."""
    tests: dict[int, TestExample] = {}
    kind = MEMORY_TESTS.get(path.stem)
    lines = path.read_text(encoding="utf-8").splitlines()
    if not any('"definition"' in line for line in lines):
        told = (FOLDER / path.name).read_text(encoding="utf-8").splitlines()
        lines = [line for line in told if '"definition"' in line] + lines
    for line in lines:
        row = json.loads(line)
        if "definition" in row:
            known = {name: value for name, value in row["arguments"].items() if name in kind.arguments()}
            tests[row["seed"]] = kind(**known).load_example("0", row["definition"])
            continue
        grade, questions = play(tests[row["seed"]], row["ask"], row["reply"])
        own = grade.questions[row["ask"]] if 0 < questions == len(grade.questions) else grade
        given = None if own.failed else own.score
        if given is None or row["score"] is None:
            yield "right" if given is row["score"] else "undecided" if given is None else "wrong"
        else:
            yield "right" if abs(given - row["score"]) < 0.06 else "wrong"


def play(test: TestExample, place: int, reply: str) -> tuple[Grade, int]:
    """The verdict on an agent that answers one question with a reply and all others as it should, and how many there are."""
    script, log, now = ScriptDriver(test.play), ConversationLog(), START
    asked = listened = 0
    action = script.advance()
    while action is not None:
        answer: AgentReply | Instant | JudgeReply | None = None
        if isinstance(action, Say | Ask | Listen):
            text = reply if isinstance(action, Listen) and action.ideal is not None else "Understood."
            if isinstance(action, Ask):
                text = reply if asked == place else action.ideal or text
                asked += 1
            listened += isinstance(action, Listen)
            if listened <= MOST_FILLER:
                message = "What is new?" if isinstance(action, Listen) else action.text
                turn, now = len(log) + 1, now + PACE
                own = None if isinstance(action, Listen) else test.test_id
                log.append(Line(turn, own, message, text, now, isinstance(action, Ask)))
                answer = AgentReply(text, turn=turn, now=now, tokens=50 * turn, message=message, test_id=own, log=log)
        elif isinstance(action, Wait):
            now += action.time or timedelta(0)
            answer = Instant(now, 50 * len(log))
        elif isinstance(action, Consult):
            answer = JudgeReply(failure="there is none")
        action = script.advance(answer)
    return script.grade, asked
