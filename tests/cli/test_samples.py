"""`themis show RUN --sample ID`: one sample in a terminal of eighty columns."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import themis
from tests.spoken_runs import write_spoken_runs


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> str:
    root = tmp_path_factory.mktemp("spoken")
    write_spoken_runs(root)
    return str(root)


def test_a_conversation_is_printed_with_roles_calls_and_results(call, store):
    said = call("show", "said", "--sample", "steps", "--storage", store)

    assert said.code == 0
    assert said.out.splitlines() == [
        "steps, sample 2 of 6 in said (speaker:x)",
        "",
        "scores",
        "  ExactMatch  0  no answer could be read",
        "    error: not answered: stopped by max_turns",
        "",
        "prompt",
        "  system",
        "    Be <brief>.",
        "  user",
        "    Say it: steps",
        "",
        "answer  stopped by max_turns",
        "  assistant",
        "    thinking",
        "      Both cities.",
        "    Let me look.",
        '    calls weather(city="Paris")',
        "      -> 21 degrees",
        "      [image image/png]",
        '    calls weather(city="Atlantis")',
        "      -> failed: LookupError: no such city",
        "  assistant",
        "    It is 21 degrees in Paris.",
        "",
        "expected",
        "  4",
    ]


def test_every_attempt_is_printed_with_its_verdict(call, store):
    lines = call("show", "four", "--sample", "q", "--storage", store).out.splitlines()

    assert [line for line in lines if line.startswith("attempt")] == [
        "attempt 1  ExactMatch 1",
        "attempt 2  no answer",
        "attempt 3  ExactMatch 0",
        "attempt 4  ExactMatch 1",
    ]


@pytest.mark.parametrize(
    ("item", "line"),
    [
        ("called", "answer  ended by calling tools"),
        ("called", '  calls search(query="Paris")'),
        ("called", '  calls open({"url)'),
        ("cut", "answer  cut off at max_tokens=512"),
        ("refused", "  refused: I cannot say."),
        ("plain", "  4"),
    ],
)
def test_no_answer_is_an_empty_line(call, store, item, line):
    assert line in call("show", "said", "--sample", item, "--storage", store).out.splitlines()


def test_images_and_files_are_named(call, store):
    lines = call("show", "images", "--sample", "cat", "--storage", store).out.splitlines()

    assert [line.strip() for line in lines if line.strip().startswith("[")] == [
        "[image cat.png, image/png]",
        "[image logo.svg, image/svg+xml]",
        "[file paper.pdf, application/pdf]",
    ]


def test_long_reasoning_is_folded_unless_all_of_it_is_asked_for(call, tmp_path):
    def answer(prompt: str) -> dict[str, str]:
        thought = " ".join(f"thought{n}" for n in range(200))
        return {"text": "4", "reasoning": thought}

    rows = [{"id": "q", "question": "2 + 2?", "answer": "4"}]
    themis.evaluate(rows, model=answer, prompt="{question}", run_id="r", storage=tmp_path, progress=False)
    folded = call("show", "r", "--sample", "q", "--storage", str(tmp_path)).out
    whole = call("show", "r", "--sample", "q", "--full", "--storage", str(tmp_path)).out

    assert "more lines (--full shows them)" in folded
    assert "thought199" not in folded
    assert "thought199" in whole
    assert max(map(len, whole.partition("thinking")[2].splitlines())) <= 80


def test_nothing_in_a_sample_steers_the_terminal(call, tmp_path):
    attack = "\x1b]0;owned\x07\x1b[2J\r\u202e\x9b31m"

    def answer(prompt: str) -> list[dict[str, object]]:
        calls = [{"id": attack, "name": attack, "arguments": {attack: attack}}]
        return [
            {"role": attack, "name": attack, "content": attack},
            {
                "role": "assistant",
                "content": [{"type": "image", "name": attack}],
                "tool_calls": calls,
                "reasoning": attack,
            },
            {"role": "tool", "tool_call_id": attack, "content": attack},
            {"role": "assistant", "content": attack},
        ]

    rows = [{"id": "q", "question": attack, "answer": attack}]
    themis.evaluate(rows, model=answer, prompt="{question}", run_id="r", storage=tmp_path, progress=False)
    out = call("show", "r", "--sample", "q", "--full", "--storage", str(tmp_path)).out

    assert not any(character in out for character in "\x1b\x07\r\u202e\x9b")


def test_programs_get_everything_as_json(call, store):
    found = json.loads(call("show", "said", "--sample", "thought", "--json", "--storage", store).out)

    assert found["attempts"][0]["reasoning"] == "7 x 13 = 91"
    assert found["attempts"][0]["verdicts"][0]["metric"] == "ExactMatch"


def test_a_sample_that_is_not_there_is_named_with_the_nearest(call, store):
    said = call("show", "said", "--sample", "thougt", "--storage", store)

    assert (said.code, said.out) == (2, "")
    assert said.err == "Error: sample 'thougt' is not in run said (did you mean 'thought'?)\n"


def test_all_of_a_text_is_asked_for_with_a_sample_only(call, store: str | Path):
    said = call("show", "said", "--full", "--storage", str(store))

    assert (said.code, "--sample ID" in said.err) == (2, True)


def answer_with_a_silent_tool(messages: list[dict[str, object]]) -> dict[str, object]:
    """Calls a tool, and then says one word that has no end."""
    if messages[-1]["role"] == "tool":
        return {"text": "first\n" + "z" * 60_000}
    return {"text": "", "tool_calls": [{"id": "1", "name": "forget", "arguments": {}}]}


def forget() -> None:
    """Returns nothing."""


def ask_with_a_silent_tool(storage: Path, *, answer: str) -> None:
    themis.evaluate(
        [{"id": "q", "question": "?", "answer": answer}],
        model=answer_with_a_silent_tool,
        prompt="{question}",
        tools=[forget],
        run_id="r",
        storage=storage,
        progress=False,
    )


def test_a_word_without_end_fills_no_more_lines_than_other_texts_and_keeps_its_place(call, tmp_path):
    ask_with_a_silent_tool(tmp_path, answer="w" * 1_000)
    shown = call("show", "r", "--sample", "q", "--storage", str(tmp_path)).out
    whole = call("show", "r", "--sample", "q", "--full", "--storage", str(tmp_path)).out

    assert len(shown) < 6_000
    assert "more lines (--full shows them)" in shown
    assert "z" * 60_000 in whole
    assert f"\nexpected\n  {'w' * 1_000}" in shown


def test_a_tool_that_returned_nothing_says_so(call, tmp_path):
    ask_with_a_silent_tool(tmp_path, answer="4")

    assert "-> (nothing)" in call("show", "r", "--sample", "q", "--storage", str(tmp_path)).out
