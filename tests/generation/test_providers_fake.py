"""Fake models say what their names promise, and the same every time."""

from __future__ import annotations

import contextlib
import inspect
import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from themis.exceptions import ProviderCallError, ProviderError
from themis.generation.providers import create_provider
from themis.generation.providers.fake import solve


def answer(task, model: str, text: str = "What is 6 * 7?", *, seed: int = 0, **details) -> str:
    provider = create_provider("fake", {"seed": seed}, model_identifier=model)
    return provider.execute(task(text, model=model, provider="fake", **{"reference": "42", **details})).output.text


def test_perfect_answers_with_the_reference(task):
    assert answer(task, "perfect") == "42"
    assert answer(task, "perfect", reference=["first", "second"]) == "first"
    assert answer(task, "perfect", reference={"answer": "95 - 21 / 3", "target": 88}) == "95 - 21 / 3"
    assert answer(task, "perfect", reference={"target": 88}) == "{'target': 88}"


def test_perfect_without_a_reference_is_a_failure_that_names_the_item(task):
    with pytest.raises(ProviderCallError, match="'row-7'") as raised:
        answer(task, "perfect", reference=None)

    assert raised.value.retryable is False


@pytest.mark.parametrize("model", ["noisy-0.3", "noisy?rate=0.3"])
def test_noisy_is_wrong_about_as_often_as_it_says(task, model):
    answers = [answer(task, model, f"prompt {number}") for number in range(400)]

    assert 0.22 < sum(text != "42" for text in answers) / 400 < 0.38


def test_noise_depends_on_prompt_attempt_and_seed_alone(task):
    def answers(**changes):
        return [answer(task, "noisy-0.5", f"prompt {number}", **changes) for number in range(60)]

    assert answers() == answers()
    assert answers() != answers(seed=1)
    assert answers() != answers(metadata={"attempts": 1})


@pytest.mark.parametrize(
    "reference",
    ["42", "-3", "B", "J", "yes", "False", "Paris", "3.14", "1.000000", "\\frac{1}{2}", "3 + 4", "9" * 5000, ""],
)
def test_a_wrong_answer_is_never_the_right_one(task, reference):
    assert all(answer(task, "noisy-1", f"{n}", reference=reference) != reference for n in range(30))


@pytest.mark.parametrize("reference", ["27.0", "1.000000", "\\frac{1}{2}", "3 * (4 + 25)", "J"])
def test_a_wrong_answer_does_not_hold_the_right_one(task, reference):
    """A lenient extractor would find it, and score a wrong answer as right."""
    assert all(reference not in answer(task, "noisy-1", f"{n}", reference=reference) for n in range(30))


def test_flaky_fails_and_then_answers_when_tried_again(task):
    provider = create_provider("fake", {}, model_identifier="flaky-0.5")

    def calls_needed(asked) -> int:
        for call in itertools.count(1):
            with contextlib.suppress(ProviderCallError):
                assert provider.execute(asked).output.text == "42"
                return call

    needed = [calls_needed(task(f"prompt {number}", model="flaky-0.5", reference="42")) for number in range(60)]
    assert min(needed) == 1
    assert max(needed) > 2


def test_what_a_flaky_model_raises_is_worth_another_try(task):
    with pytest.raises(ProviderCallError) as raised:
        answer(task, "flaky-1")

    assert (raised.value.kind, raised.value.status, raised.value.retryable) == ("server_error", 503, True)


async def test_slow_waits_without_blocking_and_answers_right(task):
    provider = create_provider("fake", {}, model_identifier="slow-5ms")
    record = await provider.execute(task(model="slow-5ms", reference="42"))

    assert record.output.text == "42"
    assert provider.instant is False


def test_all_that_do_not_sleep_are_instant():
    for model in ("perfect", "noisy-0.3", "flaky-0.5", "refusing", "verbose", "echo", "constant", "fake-math-llm"):
        provider = create_provider("fake", {}, model_identifier=model)
        assert provider.instant
        assert provider.is_local
        assert not inspect.iscoroutinefunction(provider.execute)


async def test_a_provider_that_was_told_of_no_model_can_play_any(task):
    provider = create_provider("fake", {})

    assert (await provider.execute(task(model="perfect", reference="42"))).output.text == "42"
    assert (await provider.execute(task(model="echo?ms=1"))).output.text == "How do 3, 21 and 95 make 88?"


def test_the_others_say_what_their_names_promise(task):
    assert answer(task, "echo", "Polly?") == "Polly?"
    assert answer(task, "constant?text=yes%20please") == "yes please"
    assert answer(task, "Constant-B") == "B"
    assert "can't" in answer(task, "refusing")
    assert answer(task, "verbose").endswith("The answer is 42")
    assert len(answer(task, "verbose").split()) > 60


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("What is 2 + 2?", "4"),
        ("Q: What is 7 times 8?\nA:", "56"),
        ("What is 15 minus 9? Answer with a number only.", "6"),
        ("Compute (3 + 5) * 2.", "16"),
        ("What is 7 divided by 2?", "3.5"),
        ("12 × 12 = ?", "144"),
        ("What is 9 squared plus 1?", "82"),
        ("Example: 1 + 1 = 2. Now: what is 10 - 4?", "6"),
        ("2 ^ 10", "1024"),
        ("What is 1 / 0?", "I can only do arithmetic."),
        ("What is the capital of France?", "I can only do arithmetic."),
    ],
)
def test_the_maths_model_works_the_question_out(task, question, expected):
    assert answer(task, "fake-math-llm", question) == expected


@given(st.text())
def test_the_maths_model_never_fails(text):
    assert solve(text)


@given(st.integers(0, 10**6), st.integers(0, 10**6), st.sampled_from("+-*"))
def test_the_maths_model_is_right(left, right, sign):
    expected = {"+": left + right, "-": left - right, "*": left * right}[sign]
    assert solve(f"What is {left} {sign} {right}?") == str(expected)


@pytest.mark.parametrize(
    ("model", "said"),
    [
        ("prefect", "did you mean 'perfect'"),
        ("noisy-2", "from 0 to 1"),
        ("noisy?speed=3", "no setting 'speed'"),
        ("slow-fast", "50ms"),
        ("perfect-0.5", "behind a dash"),
    ],
)
def test_a_name_that_says_nothing_is_explained_before_any_call(model, said):
    with pytest.raises(ProviderError, match=said):
        create_provider("fake", {}, model_identifier=model)
