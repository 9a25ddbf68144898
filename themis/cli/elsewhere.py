"""What other tools call our commands and options, for the errors that whoever comes from there meets."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

import click

# A command of Themis 1.x, Inspect, lm-eval or promptfoo -> what it is here.
_COMMANDS = {
    "eval-retry": "themis resume RUN",
    "eval-set": "themis run experiment.yml",
    "log": "themis list runs, themis show RUN",
    "logs": "themis list runs, themis show RUN",
    "ls": "themis list benchmarks, themis list runs",
    "retry": "themis resume RUN",
    "score": "themis rejudge RUN --metric NAME",
    "validate": "themis estimate, which reads everything and calls nothing",
    "view": "themis serve",
}

# An option of theirs, with dashes unless that is an option of ours -> how it is said here.
_OPTIONS = {
    "--apply-chat-template": "--task-option chat=true, of an lm-eval:TASK",
    "--batch_size": "--workers N, for calls at once; half price in a provider's batches is --batch",
    "--cache-requests": "not needed: prompts are cheap to make, and answers are stored",
    "--config": "the file alone: themis run experiment.yml",
    "--confirm-run-unsafe-code": "--task-option unsafe_code=true, of an lm-eval:TASK",
    "--cost-limit": "--max-sample-usd for one sample, --budget-usd for the run",
    "--delay": "--rpm N, at most so many requests a minute",
    "--device": "the server's own option: small models run here as local/NAME, larger ones behind one as vllm/NAME",
    "--display": "--no-progress, or --json",
    "--env-file": "a file .env in the working directory, which is read",
    "--epochs": "--num-samples N, and --reducer for how attempts become a score",
    "--epochs-reducer": "--reducer NAME",
    "--fail-on-error": "--fail-on-errors SHARE, 0 for any",
    "--filter-failing": "not needed: themis resume RUN asks again what failed, and nothing else",
    "--filter-first-n": "--limit N",
    "--filter-pattern": "a file with the rows you want",
    "--gen-kwargs": "--temperature, --top-p, --max-tokens and --stop",
    "--grader": "--judge MODEL for benchmarks that a model grades, else --metric \"rubric_judge(model='...')\"",
    "--html": "--output FILE.html",
    "--include-path": "--include PATH",
    "--json-logs": "--json for the result; what is logged is Python's `logging`, by --verbose before the command",
    "--log-dir": "--storage DIR",
    "--log-level": "--verbose, before the command: themis --verbose eval ...",
    "--log-samples": "not needed: every answer is stored; themis export RUN --to DIR writes them",
    "--max-concurrency": "--workers N",
    "--max-connections": "--workers N",
    "--max-gen-toks": "--max-tokens N",
    "--max-samples": "--workers N",
    "--message-limit": "--max-turns N",
    "--model-args": "--option K=V for the provider; the model itself is -m provider/model",
    "--model-base-url": "--base-url URL",
    "--model-config": "--option K=V",
    "--model-role": "--judge MODEL for benchmarks that a model grades, else --metric \"rubric_judge(model='...')\"",
    "--no-cache": "--no-resume, which asks everything anew",
    "--no-score": "--reference-field '', for rows that are only answered",
    "--num-fewshot": "--shots N",
    "--older-than": "--max-age-days N, of themis store prune",
    "--output-path": "--output FILE.json",
    "--predict-only": "--reference-field '', for rows that are only answered",
    "--prompts": "--prompt TEXT or --prompt-file FILE",
    "--providers": "-m provider/model",
    "--repeat": "--num-samples N",
    "--retry-on-error": "--max-retries N for one answer; what failed is asked again by themis resume RUN",
    "--sample-id": "a file with the rows you want",
    "--sandbox": "not needed: code that a model wrote runs in a sandbox of the kernel's (docs/guides/code-sandbox.md)",
    "--scorer": "--metric NAME, and --extractor NAME for what reads the answer",
    "--show-diff": "--details for every pair; themis diff A B shows the items",
    "--solver": "-m python:FILE.py:FUNCTION, which answers as a model does, and --tool for tools",
    "--system-instruction": "--system TEXT",
    "--system-message": "--system TEXT",
    "--task": "the name alone: themis eval lm-eval:TASK",
    "--tasks": "the name alone: themis eval lm-eval:TASK",
    "--tests": "the file alone: themis eval tests.csv",
    "--time-limit": "--max-sample-seconds N",
    "--token-limit": "--max-sample-tokens N",
    "--trust-remote-code": "not needed: no code of a dataset is run",
    "--use-cache": "--cache store: answers of any stored run are used again",
    "--var": "a field of the rows",
    "--vars": "the file of rows alone: themis eval rows.csv",
    "--verbosity": "--verbose, before the command: themis --verbose eval ...",
    "--wandb-args": "--track wandb, with --track-option K=V",
    "--write-out": "themis show RUN --sample ID, with the prompt as it was asked",
}


def explain_command(name: str, arguments: Sequence[str]) -> str:
    """`: here it is ...` for a command of another tool, or nothing.

    Args:
        name: The command.
        arguments: What was written behind it.
    """
    if name == "clean":
        same = [word.replace("--older-than", "--max-age-days", 1) for word in arguments]
        asked = shlex.join(["themis", "store", "prune", *same])
        return f": here it is `{asked}`, which keeps the newest 5 runs of each experiment unless --keep-latest says otherwise"
    return f": here it is {_COMMANDS[name]}" if name in _COMMANDS else ""


def explain_option(error: click.ClickException) -> click.ClickException:
    """An error about an unknown option of another tool says how it is said here; any other stays what it is.

    Args:
        error: What click raised.
    """
    if not isinstance(error, click.NoSuchOption):
        return error
    here = _OPTIONS.get(error.option_name) or _OPTIONS.get(error.option_name.replace("_", "-"))
    return error if here is None else click.UsageError(f"no option '{error.option_name}': here it is {here}", error.ctx)
