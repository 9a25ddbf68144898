"""Rows of any dataset of the Hub by its address, and of folders: parsed, loaded from this machine, or refused with ways on."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import datasets
import pytest

import themis
from themis.exceptions import ConfigurationError, DatasetError
from themis.presets.hub import load_address, parse_hub_address

ROWS = [{"question": f"What is {n} + 1?", "expected": str(n + 1)} for n in range(5)]


@pytest.mark.parametrize(
    ("address", "dataset", "revision", "config", "split"),
    [
        ("hf://allenai/sciq/test", "allenai/sciq", None, None, "test"),
        ("hf://openai/gsm8k/main/test", "openai/gsm8k", None, "main", "test"),
        ("hf://openai/gsm8k@e53f048/main/train[:10]", "openai/gsm8k", "e53f048", "main", "train[:10]"),
    ],
)
def test_an_address_names_dataset_revision_configuration_and_split(address, dataset, revision, config, split):
    found = parse_hub_address(address)

    assert (found.dataset, found.revision, found.config, found.split) == (dataset, revision, config, split)


@pytest.mark.parametrize("address", ["hf://openai/gsm8k", "hf://gsm8k", "hf://a/b/c/d/e", "hf://a//test", "hf://"])
def test_an_address_without_a_split_is_refused_with_the_form(address):
    with pytest.raises(ConfigurationError, match=r"write hf://owner/name/split, or hf://owner/name/config/split"):
        parse_hub_address(address)


@pytest.fixture
def unreachable(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No Hub, and nothing loaded before."""

    def refuse(*_: object, **__: object) -> None:
        raise ConnectionError("no network here")

    load_address.cache_clear()
    monkeypatch.setattr("themis.presets.hub._reachable", lambda endpoint: False)
    monkeypatch.setattr(datasets, "load_dataset", refuse)


def test_without_a_connection_one_sentence_says_what_can_be_done(unreachable, tmp_path):
    with pytest.raises(DatasetError) as caught:
        themis.evaluate("hf://openai/gsm8k/main/test", model="fake/perfect", prompt="{question}", storage=tmp_path)

    message = str(caught.value)
    assert message.startswith("openai/gsm8k (main, test) cannot be loaded from the Hugging Face Hub")
    assert "cannot be reached, and no earlier download is on this machine" in message
    assert "save_to_disk" in message
    assert "\n" not in message


def test_what_was_loaded_before_is_found_without_a_connection(tmp_path):
    """In a process of its own: `datasets` looks for its cache when it is imported."""
    repository, home = tmp_path / "capitals", tmp_path / "home"
    repository.mkdir()
    datasets.Dataset.from_list(ROWS).to_parquet(repository / "test-00000-of-00001.parquet")
    environment = {**os.environ, "HF_HOME": str(home), "HF_ENDPOINT": "http://127.0.0.1:9"}
    # Arrow's threads abort some processes that end while the machine is busy.
    fill = f"import datasets, os; datasets.load_dataset({str(repository)!r}, split='test'); os._exit(0)"
    subprocess.run([sys.executable, "-c", fill], env=environment, check=True, capture_output=True)
    # As the package calls what it has loaded from somebody's repository.
    (home / "datasets" / "capitals").rename(home / "datasets" / "somebody___capitals")

    done = subprocess.run(
        [sys.executable, "-m", "themis", "eval", "hf://somebody/capitals/test", "-m", "fake/perfect", "--json",
         "--storage", str(tmp_path / "store")],
        env=environment, check=False, capture_output=True, text=True,
    )  # fmt: skip

    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["metrics"]["ExactMatch"]["mean"] == 1.0
    assert "prompt: the field 'question' as it is" in done.stderr


def test_a_folder_that_datasets_saved_is_a_dataset_and_so_is_one_of_files(tmp_path):
    datasets.Dataset.from_list(ROWS).save_to_disk(str(tmp_path / "saved"))
    (tmp_path / "parts").mkdir()
    datasets.Dataset.from_list(ROWS[:3]).to_parquet(tmp_path / "parts" / "test-00000-of-00002.parquet")
    datasets.Dataset.from_list(ROWS[3:]).to_parquet(tmp_path / "parts" / "test-00001-of-00002.parquet")

    for folder in ("saved", "parts"):
        report = themis.evaluate(
            tmp_path / folder, model="fake/perfect", prompt="{question}", reference_field="expected",
            storage=tmp_path / "store", progress=False,
        )  # fmt: skip
        assert (report.metric("exact_match").mean, report.metric("exact_match").count) == (1.0, 5)


def test_a_folder_of_several_splits_is_refused_with_their_names(tmp_path):
    both = datasets.DatasetDict({name: datasets.Dataset.from_list(ROWS) for name in ("train", "test")})
    both.save_to_disk(str(tmp_path / "saved"))
    (tmp_path / "files").mkdir()
    for name in ("train", "test"):
        datasets.Dataset.from_list(ROWS).to_parquet(tmp_path / "files" / f"{name}-00000-of-00001.parquet")

    for folder in ("saved", "files"):
        with pytest.raises(DatasetError, match="holds the splits test, train; name the files or the folder of one"):
            themis.evaluate(tmp_path / folder, model="fake/perfect", prompt="{question}", storage=tmp_path / "store")
