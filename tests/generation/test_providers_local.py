"""The embedded model, really loaded and really asked."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from themis.exceptions import ConfigurationError, DependencyError, ProviderCallError, ProviderError
from themis.generation.providers import create_provider, parse_model

QUESTION = "Name the three primary colours."


@pytest.fixture
def local(smollm2):
    """A provider of the small model; the loaded model behind it is shared by all tests of this process."""
    return lambda **options: create_provider("local", {"context_tokens": 1024, **options}, model_identifier="smollm2")


def text_of(provider, asked) -> str:
    return provider.execute(asked).output.text


@pytest.mark.model
def test_it_loads_and_answers_with_counts_of_its_own_tokenizer(local, task):
    record = local().execute(task(QUESTION, model="smollm2", max_tokens=12))

    assert record.output.text.strip()
    assert (record.output.raw, record.output.finish_reason) == ({"model": "smollm2"}, "length")
    usage = record.output.usage
    assert usage["completion_tokens"] == 12
    assert usage["total_tokens"] == usage["prompt_tokens"] + 12
    # The chat template of this model adds a system message of its own.
    assert usage["prompt_tokens"] > len(QUESTION.split()) + 20


@pytest.mark.model
def test_at_temperature_zero_the_answer_does_not_depend_on_what_was_asked_before(local, task):
    prompts = [f"Write one sentence about the number {number}." for number in range(3)]
    asked = [task(prompt, model="smollm2", max_tokens=10) for prompt in prompts]
    provider = local()

    forwards = [text_of(provider, one) for one in asked]
    backwards = [text_of(provider, one) for one in reversed(asked)][::-1]
    with ThreadPoolExecutor(3) as threads:
        at_once = list(threads.map(lambda one: text_of(provider, one), asked))
    assert forwards == backwards == at_once
    assert len(set(forwards)) > 1


@pytest.mark.model
def test_a_seed_repeats_and_another_one_does_not(local, task):
    asked = task(QUESTION, model="smollm2", max_tokens=8, temperature=1.5)

    assert text_of(local(seed=1), asked) == text_of(local(seed=1), asked)
    assert text_of(local(seed=1), asked) != text_of(local(seed=2), asked)


@pytest.mark.model
def test_samples_of_one_prompt_differ_and_repeat(local, task):
    def samples():
        return [
            text_of(local(), task(QUESTION, model="smollm2", max_tokens=6, temperature=1.5, metadata={"attempts": n}))
            for n in range(3)
        ]

    first = samples()
    assert samples() == first
    assert len(set(first)) == 3


@pytest.mark.model
def test_a_grammar_restricts_what_it_can_say(local, task):
    provider = local(grammar='root ::= [0-9] " + " [0-9]')

    assert re.fullmatch(r"\d \+ \d", text_of(provider, task("Write a sum.", model="smollm2")))


@pytest.mark.model
def test_a_json_schema_restricts_what_it_can_say(local, task):
    schema = {
        "type": "object",
        "properties": {"colour": {"enum": ["red", "teal"]}},
        "required": ["colour"],
        "additionalProperties": False,
    }
    answer = text_of(local(json_schema=schema), task("I like teal.", model="smollm2", max_tokens=40))

    assert json.loads(answer)["colour"] in {"red", "teal"}


@pytest.mark.model
def test_stop_words_end_the_answer_and_log_probabilities_are_kept(local, task):
    provider = local(stop=" ", logprobs=2)
    output = provider.execute(task(QUESTION, model="smollm2", max_tokens=12)).output

    assert " " not in output.text.strip()
    assert output.finish_reason == "stop"
    assert len(output.logprobs["content"][0]["top_logprobs"]) == 2


@pytest.mark.model
def test_tokens_are_counted_by_the_models_tokenizer(local):
    assert local().count_tokens("hello world") == 2
    assert local().count_tokens("") == 0


@pytest.mark.model
def test_a_prompt_that_does_not_fit_says_so_and_is_not_tried_again(local, task):
    with pytest.raises(ProviderCallError, match="raise context_tokens") as raised:
        local().execute(task("word " * 2000, model="smollm2"))

    assert (raised.value.kind, raised.value.retryable) == ("context_length", False)


@pytest.mark.model
def test_a_grammar_that_is_none_is_refused(local, task):
    with pytest.raises(ProviderCallError, match="grammar") as raised:
        local(grammar="root ::= (").execute(task(model="smollm2"))

    assert (raised.value.kind, raised.value.retryable) == ("bad_request", False)


def scores_of(provider, task, pairs) -> list[tuple[float, bool, int]]:
    output = provider.score_continuations(task(model="smollm2", metadata={"continuations": pairs})).output
    return [(one["logprob"], one["greedy"], one["tokens"]) for one in output.raw["continuations"]]


@pytest.mark.model
def test_a_continuations_score_depends_on_nothing_else_in_its_row(local, task):
    pairs = [["The capital of France is", " Paris"], ["The capital of France is", " Rome, no"], ["", "Hello 日本"]]
    paris, rome, text = scores_of(local(), task, pairs)

    assert scores_of(local(), task, pairs[::-1]) == [text, rome, paris]
    assert scores_of(local(), task, pairs[1:2]) == [rome]
    # A space at the end of the context is the beginning of the word.
    assert scores_of(local(), task, [["The capital of France is ", "Paris"]]) == [paris]
    assert paris[0] == pytest.approx(-0.26, abs=0.1)
    assert [paris[1], paris[2], rome[1], rome[2]] == [True, 1, False, 3]
    # Parts of characters are scored too: each of the two signs is several tokens.
    assert text[2] >= 5
    assert text[0] < -5


@pytest.mark.model
def test_long_contexts_are_cut_on_the_left_and_long_texts_are_read_in_windows(local, task, caplog):
    words = "one two three four five six seven eight nine ten "
    provider = local(context_tokens=16)
    asked = task(model="smollm2", metadata={"continuations": [[3 * words, "eleven"], ["", 3 * words]]})

    output = provider.score_continuations(asked).output

    last, text = output.raw["continuations"]
    kept = scores_of(local(context_tokens=64), task, [[" " + " ".join((3 * words).split()[-15:]), " eleven"]])
    assert output.raw["truncated_tokens"] == 30 - 16
    assert "are cut off on the left" in caplog.text
    assert last["logprob"] == pytest.approx(kept[0][0], abs=0.5)
    assert text["tokens"] == 31
    with pytest.raises(ProviderCallError, match="more than context_tokens=16"):
        provider.score_continuations(task(model="smollm2", metadata={"continuations": [["So:", 3 * words]]}))


@pytest.mark.model
def test_any_gguf_file_is_a_model(smollm2, task):
    model = parse_model(f"local/{smollm2}")
    by_name = create_provider("local", {"context_tokens": 1024}, model_identifier=model.identifier)
    by_path = create_provider("local", {"context_tokens": 1024, "path": smollm2}, model_identifier="mine")

    asked = task(QUESTION, model=model.identifier, max_tokens=8)
    assert text_of(by_name, asked) == text_of(by_path, task(QUESTION, model="mine", max_tokens=8))


@pytest.mark.model
def test_the_wait_policy_is_passive_and_one_model_is_loaded_for_all(smollm2):
    program = """
import os
from themis.core.entities import GenerationTask, ModelSpec, PromptRender, PromptSpec, SamplingConfig
from themis.generation.providers import create_provider, local
task = GenerationTask(
    prompt=PromptRender(spec=PromptSpec(name="d", template="t"), text="Hi"),
    model=ModelSpec(identifier="smollm2", provider="local"),
    sampling=SamplingConfig(max_tokens=2),
)
providers = [create_provider("local", {"context_tokens": 256}, model_identifier="smollm2") for _ in range(3)]
assert "OMP_WAIT_POLICY" not in os.environ and not local._LOADED
for provider in providers:
    provider.execute(task)
print(os.environ["OMP_WAIT_POLICY"], os.environ["GOMP_SPINCOUNT"], len(local._LOADED))
"""
    environment = {name: value for name, value in os.environ.items() if "OMP_" not in name}
    finished = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, env=environment
    )

    assert (finished.returncode, finished.stdout, finished.stderr) == (0, "passive 0 1\n", "")


def test_a_model_that_is_not_installed_says_how_to_install_it(tmp_path, monkeypatch):
    monkeypatch.setenv("THEMIS_MODELS_DIR", str(tmp_path))

    with pytest.raises(ProviderError, match="themis models install smollm2"):
        create_provider("local", {}, model_identifier="smollm2")


def test_a_file_that_llama_cpp_cannot_read_is_told(tmp_path, task):
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"GGUF" + b"\0" * 100)
    provider = create_provider("local", {}, model_identifier=str(broken))

    with pytest.raises(ProviderCallError, match=r"cannot serve broken\.gguf") as raised:
        provider.execute(task(model=str(broken)))
    assert raised.value.retryable is False


@pytest.mark.parametrize(
    "options",
    [{"parallel": 0}, {"context_tokens": "4k"}, {"threads": -1}, {"grammar": "root ::= [0-9]", "json_schema": {}}],
)
def test_options_that_cannot_work_are_found_before_loading(options):
    with pytest.raises(ConfigurationError):
        create_provider("local", options)


def test_without_the_runtime_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "xllamacpp", None)

    with pytest.raises(DependencyError, match=r"themis-eval\[local\]"):
        create_provider("local", {})
