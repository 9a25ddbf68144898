"""Where examples before a question come from: the shipped rows, a folder of the user's, and what is said where there are none."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import themis
from themis.exceptions import DatasetError
from themis.presets import get_benchmark_preset
from themis.presets.catalogue import CATALOGUE
from themis.presets.examples import with_examples

SAMPLES = Path(themis.__file__).parent / "presets" / "samples"
WITH_EXAMPLES = [name for name, entry in CATALOGUE.items() if entry.few_shot is not None]


@pytest.mark.parametrize("name", WITH_EXAMPLES)
def test_every_benchmark_that_can_show_examples_ships_some(name):
    preset = get_benchmark_preset(name, sample=True)
    shots = preset.few_shot.count or 2
    template = with_examples(preset, shots=shots)

    for row in preset.load_dataset(3):
        asked = preset.prompt_template.fill(row)
        text = template.fill(row)
        assert text.endswith(asked)
        assert len(text) > len(asked) + 20
        assert text.count(asked) == 1


@pytest.mark.parametrize("layout", ["fetched", "splits"])
def test_a_folder_of_the_user_s_brings_its_examples(tmp_path, layout):
    names = {"fetched": ("gsm8k.jsonl", "gsm8k.train.jsonl"), "splits": ("test-0.jsonl", "train-0.jsonl")}[layout]
    for source, name in zip(("gsm8k.jsonl", "gsm8k.train.jsonl"), names, strict=True):
        shutil.copy(SAMPLES / source, tmp_path / name)

    preset = get_benchmark_preset("gsm8k", data=tmp_path)

    row = next(iter(preset.load_dataset(1)))
    assert "trays" in row["question"]
    text = with_examples(preset, shots=2).fill(row)
    assert text.startswith("A library has 4 shelves")
    assert (text.count("\nAnswer: <number>"), text.count("\nAnswer: 112")) == (3, 1)
    assert "<<" not in text


def test_examples_lie_beside_a_file_of_rows(tmp_path):
    shutil.copy(SAMPLES / "gsm8k.jsonl", tmp_path / "rows.jsonl")
    preset = get_benchmark_preset("gsm8k", data=tmp_path / "rows.jsonl")

    with pytest.raises(
        DatasetError, match=r"examples of the split 'train': .* there is no gsm8k.train.jsonl.*--shots 0"
    ):
        with_examples(preset, shots=1)

    shutil.copy(SAMPLES / "gsm8k.train.jsonl", tmp_path)
    assert "4 shelves" in with_examples(preset, shots=1).fill(next(iter(preset.load_dataset(1))))


def test_a_folder_without_the_split_is_told_what_to_do(tmp_path):
    shutil.copy(SAMPLES / "gsm8k.jsonl", tmp_path / "gsm8k.jsonl")

    with pytest.raises(DatasetError, match=r"has neither gsm8k.train.jsonl nor files of that split.*--shots 0"):
        with_examples(get_benchmark_preset("gsm8k", data=tmp_path), shots=1)


def test_too_few_examples_of_a_group_are_refused_but_for_shipped_ones(tmp_path):
    for name in ("mmlu-pro.jsonl", "mmlu-pro.validation.jsonl"):
        shutil.copy(SAMPLES / name, tmp_path / name)

    with pytest.raises(DatasetError, match=r"5 examples are to be shown, and there are 2 of 'biology'; --shots 2"):
        with_examples(get_benchmark_preset("mmlu-pro", data=tmp_path))
    sample = get_benchmark_preset("mmlu-pro", sample=True)
    assert with_examples(sample).fill(next(iter(sample.load_dataset(1)))).count("Question:") == 3


def test_a_run_shows_as_many_examples_as_are_asked_for(tmp_path):
    (tmp_path / "sciq.jsonl").write_text((SAMPLES / "sciq.jsonl").read_text())
    (tmp_path / "sciq.train.jsonl").write_text((SAMPLES / "sciq.train.jsonl").read_text())

    report = themis.evaluate(
        "sciq", model="fake/perfect", data=tmp_path, shots=3, storage=tmp_path / "runs", run_id="run", progress=False
    )

    assert report.metadata["caveats"] == ["not the published protocol: 3 shots instead of 0"]
    prompt = report.generation_results[0].task.prompt.text
    assert all(text in prompt for text in ("What force pulls", "hardest natural", "largest of our"))
