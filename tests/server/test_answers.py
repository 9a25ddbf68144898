"""Answers that are shared: made once for a crowd, made anew when the store changes, kept within bounds."""

from __future__ import annotations

import asyncio
import os

import pytest

from themis.server.state import Answer, ResponseCache
from themis.storage import ExperimentStorage


def counted(made: list[int], size: int = 1):
    def make() -> Answer:
        made.append(1)
        return Answer(os.urandom(size))

    return make


def test_a_crowd_with_one_question_makes_one_answer(tmp_path):
    made: list[int] = []

    async def crowd() -> list[Answer]:
        answers = ResponseCache(ExperimentStorage(tmp_path))
        return await asyncio.gather(*(answers.get("question", counted(made)) for _ in range(50)))

    assert len(asyncio.run(crowd())) == 50
    assert len(made) == 1


def test_an_answer_is_made_anew_when_what_it_depends_on_has_changed(tmp_path):
    made: list[int] = []
    versions = iter([(1,), (1,), (2,)])

    async def ask() -> None:
        answers = ResponseCache(ExperimentStorage(tmp_path))
        for _ in range(3):
            await answers.get("question", counted(made), lambda: next(versions))
            await asyncio.sleep(0.25)  # older than an answer may be

    asyncio.run(ask())
    assert len(made) == 2


def test_many_large_answers_do_not_stay_in_memory(tmp_path):
    made: list[int] = []

    async def ask() -> int:
        answers = ResponseCache(ExperimentStorage(tmp_path))
        for number in range(40):
            await answers.get(number, counted(made, 1_000_000))
        return answers.kept_bytes

    assert asyncio.run(ask()) <= 16_000_000
    assert len(made) == 40


def test_a_failure_is_told_to_everyone_who_waits_and_is_not_kept(tmp_path):
    async def ask() -> Answer:
        answers = ResponseCache(ExperimentStorage(tmp_path))

        def fail() -> Answer:
            raise ValueError("the store is away")

        results = await asyncio.gather(*(answers.get("question", fail) for _ in range(3)), return_exceptions=True)
        assert [str(error) for error in results] == ["the store is away"] * 3
        return await answers.get("question", lambda: Answer(b"back"))

    assert asyncio.run(ask()).body == b"back"


def test_a_list_is_sent_packed_to_those_who_can_unpack_it(client):
    for path in ("/runs", "/api/runs"):
        packed = client.get(path, headers={"accept-encoding": "gzip"})
        plain = client.get(path, headers={"accept-encoding": "identity"})

        assert packed.headers["content-encoding"] == "gzip"
        assert "content-encoding" not in plain.headers
        assert packed.text == plain.text
        assert int(packed.headers["content-length"]) < int(plain.headers["content-length"]) / 2


@pytest.mark.parametrize("size", [0, 20_000_000])
def test_an_answer_of_any_size_is_given(tmp_path, size):
    async def ask() -> Answer:
        return await ResponseCache(ExperimentStorage(tmp_path)).get("question", counted([], size))

    assert len(asyncio.run(ask()).body) == size
