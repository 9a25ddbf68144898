"""Other benchmarks' files as memory tests; the samples are made up here, in their layouts."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from themis.exceptions import ConfigurationError, DatasetError
from themis.memory.actions import Ask, Consult, Grade, JudgeReply, Say, Wait
from themis.memory.examples import MEMORY_TESTS, TestExample
from themis.memory.tests.histories import BabiLong, LoCoMo, LongMemEval, token_f1

LONGMEMEVAL = [
    {
        "question_id": "q1",
        "question_type": "single-session-user",
        "question": "What is the name of my parrot?",
        "question_date": "2023/06/01 (Thu) 10:00",
        "answer": "Pepper",
        "haystack_session_ids": ["s1", "s2"],
        "haystack_dates": ["2023/05/20 (Sat) 02:21", "2023/05/22 (Mon) 02:21"],
        "haystack_sessions": [
            [
                {"role": "user", "content": "My parrot is called Pepper.", "has_answer": True},
                {"role": "assistant", "content": "A good name."},
            ],
            [{"role": "user", "content": "How do I boil an egg?"}, {"role": "assistant", "content": "In water."}],
        ],
        "answer_session_ids": ["s1"],
    },
    {
        "question_id": "q2_abs",
        "question_type": "multi-session",
        "question": "What is the name of my horse?",
        "answer": "You did not mention a horse.",
        "haystack_session_ids": ["s3"],
        "haystack_dates": ["2023/05/20 (Sat) 02:21"],
        "haystack_sessions": [[{"role": "user", "content": "I like horses."}]],
        "answer_session_ids": [],
    },
]
LOCOMO = [
    {
        "sample_id": "conv-1",
        "conversation": {
            "speaker_a": "Ann",
            "speaker_b": "Bo",
            "session_1_date_time": "1:56 pm on 8 May, 2023",
            "session_1": [
                {"speaker": "Ann", "dia_id": "D1:1", "text": "I went to Porto in April."},
                {"speaker": "Bo", "dia_id": "D1:2", "text": "Nice!", "blip_caption": "a river"},
            ],
            "session_2_date_time": "3:00 pm on 9 May, 2023",
            "session_2": [{"speaker": "Bo", "dia_id": "D2:1", "text": "I bought a red bicycle."}],
        },
        "qa": [
            {"question": "Where did Ann go?", "answer": "Porto", "evidence": ["D1:1"], "category": 4},
            {"question": "What did Bo buy?", "answer": "a red bicycle", "evidence": ["D2:1"], "category": 4},
            {"question": "What did Ann buy?", "adversarial_answer": "a bicycle", "evidence": ["D2:1"], "category": 5},
        ],
    }
]
BABILONG = [
    {"input": "It was a dark night. Mary went to the kitchen.\nThe wind blew.", "question": "Where is Mary?",
     "target": "kitchen"},
    {"input": "John is in the garden.", "question": "Where is John?", "target": "garden"},
]  # fmt: skip


def write(path: Path, content: Any, *, lines: bool = False) -> str:
    path.write_text("\n".join(map(json.dumps, content)) if lines else json.dumps(content))
    return str(path)


def played(example: TestExample, answers: list[str], ruling: str | None = None) -> tuple[Grade, list[Any]]:
    """The grade of a test that is answered so, and everything it did."""
    script, done, answer, remaining = example.play(), [], None, iter(answers)
    grade = None
    while True:
        try:
            action = script.send(answer)
        except StopIteration:
            assert grade is not None
            return grade, done
        done.append(action)
        answer = None
        if isinstance(action, Ask):
            answer = next(remaining)
        elif isinstance(action, Consult):
            answer = (
                JudgeReply(failure="no judge") if ruling is None else JudgeReply(ruling, value=action.parse(ruling))
            )
        elif isinstance(action, Grade):
            grade = action


def test_longmemeval_tells_dated_sessions_and_keeps_the_evidence(tmp_path: Path) -> None:
    dataset = LongMemEval(data_location=write(tmp_path / "s.json", LONGMEMEVAL), memory_span=5_000)
    first, second = dataset.generate_examples(2)
    grade, done = played(first, ["It is Pepper!"])

    assert first.test_id == "LongMemEval - q1"
    assert [type(action).__name__ for action in done] == ["Say", "Wait", "Say", "Wait", "Ask", "Grade"]
    assert done[0] == Say("[2023/05/20 (Sat) 02:21]\nuser: My parrot is called Pepper.\nassistant: A good name.")
    assert (done[1].time, done[3].time) == (timedelta(days=2), None)
    assert done[4].needs == (0,)
    assert first.material["evidence"]["questions"][0]["labels"] == ["s1:0"]
    assert grade.score == 1.0
    assert played(second, ["You never told me about a horse."])[0].score == 1.0
    assert played(second, ["It is called Star."])[0].score == 0.0


def test_longmemeval_asks_the_judge_only_where_words_do_not_decide(tmp_path: Path) -> None:
    row = {**LONGMEMEVAL[0], "answer": "Pepper, a grey parrot"}
    dataset = LongMemEval(data_location=write(tmp_path / "s.json", [row]), memory_span=5_000)
    (example,) = dataset.generate_examples(1)

    assert played(example, ["I do not know."])[0].score == 0.0
    assert played(example, ["The grey one is Pepper."], "yes")[0].score == 1.0
    assert played(example, ["The grey one is Pepper."])[0].failed


def test_locomo_asks_at_the_end_or_as_soon_as_the_evidence_is_told(tmp_path: Path) -> None:
    file = write(tmp_path / "locomo.json", LOCOMO)
    (at_end,) = LoCoMo(data_location=file, memory_span=5_000).generate_examples(1)
    (between,) = LoCoMo(data_location=file, memory_span=5_000, ask="interleaved").generate_examples(1)

    assert at_end.is_question == [False, False, True, True, True]
    assert between.is_question == [False, True, False, True, True]
    answers = ["Porto", "a bicycle", "That was not mentioned."]
    grade, done = played(between, answers)
    assert [action.needs for action in done if isinstance(action, Ask)] == [(0,), (2,), ()]
    assert grade.score == pytest.approx((1.0 + 2 / 3 + 1.0) / 3)
    assert "a river" in between.script[0]


def test_locomo_takes_one_category(tmp_path: Path) -> None:
    file = write(tmp_path / "locomo.json", LOCOMO)
    (example,) = LoCoMo(data_location=file, memory_span=5_000, category="adversarial").generate_examples(1)

    assert example.expected_responses == ["not mentioned"]
    with pytest.raises(ConfigurationError, match="category is one of"):
        LoCoMo(data_location=file, category="hard").generate_examples(1)


def test_babilong_wants_the_target_and_no_other(tmp_path: Path) -> None:
    file = write(tmp_path / "qa1.jsonl", BABILONG, lines=True)
    first, _ = BabiLong(data_location=file, memory_span=5_000).generate_examples(2)

    assert played(first, ["Mary is in the Kitchen."])[0].score == 1.0
    assert played(first, ["Kitchen or garden."])[0].score == 0.0
    assert played(first, ["In the attic."])[0].score == 0.0


def test_a_long_session_is_told_in_messages_that_fit(tmp_path: Path) -> None:
    words = " ".join(f"word{number}" for number in range(400))
    row = {**BABILONG[0], "input": f"{words}\nMary went to the kitchen."}
    dataset = BabiLong(data_location=write(tmp_path / "x.json", [row]), memory_span=50_000, max_message_size=200)
    (example,) = dataset.generate_examples(1)

    assert len(example.script) > 5
    told = " ".join(line for line, asked in zip(example.script, example.is_question, strict=True) if not asked)
    assert told.split() == f"{words} Mary went to the kitchen.".split()


def test_a_stored_test_is_the_same_test(tmp_path: Path) -> None:
    dataset = LoCoMo(data_location=write(tmp_path / "locomo.json", LOCOMO), memory_span=5_000)
    (example,) = dataset.generate_examples(1)
    again = dataset.load_example(example.example_id, json.loads(json.dumps(example.definition())))

    assert played(again, ["Porto", "x", "y"]) == played(example, ["Porto", "x", "y"])


@pytest.mark.parametrize("kind", [LongMemEval, LoCoMo, BabiLong])
def test_files_that_are_none_are_refused(tmp_path: Path, kind: Any) -> None:
    with pytest.raises(ConfigurationError, match="data_location must name"):
        kind().generate_examples(1)
    with pytest.raises(DatasetError, match="there is no file"):
        kind(data_location=str(tmp_path / "none.json")).generate_examples(1)
    with pytest.raises(DatasetError, match=r"object 0|row 0"):
        kind(data_location=write(tmp_path / "other.json", [{"a": 1}])).generate_examples(1)
    (tmp_path / "broken.jsonl").write_text('{"a": 1}\n{"a": ')
    with pytest.raises(DatasetError, match="line 2 is not JSON"):
        kind(data_location=str(tmp_path / "broken.jsonl")).generate_examples(1)


def test_their_names_are_known_to_whoever_lists_memory_tests() -> None:
    # A process of its own: in this one they have been imported already.
    listed = subprocess.run(
        [sys.executable, "-m", "themis", "list", "memory-tests", "--json"],
        capture_output=True,
        text=True,
        check=True,
    )

    kinds = {"babilong": BabiLong, "locomo": LoCoMo, "longmemeval": LongMemEval}
    assert set(kinds) <= set(json.loads(listed.stdout))
    assert {name: MEMORY_TESTS.get(name) for name in kinds} == kinds


@pytest.mark.parametrize(
    ("reply", "answer", "score"),
    [("a red bicycle", "the red bicycle", 1.0), ("red", "red bicycle", 2 / 3), ("no", "yes", 0)],
)
def test_f1_counts_words_without_articles(reply: str, answer: str, score: float) -> None:
    assert token_f1(reply, answer) == pytest.approx(score)


def test_waits_lead_through_the_span(tmp_path: Path) -> None:
    (example,) = LoCoMo(data_location=write(tmp_path / "l.json", LOCOMO), memory_span=5_000).generate_examples(1)

    assert [wait for wait in example.waits if wait.until_tokens] == [
        Wait(time=timedelta(hours=25, minutes=4), until_tokens=2_250),
        Wait(until_tokens=4_500),
    ]
