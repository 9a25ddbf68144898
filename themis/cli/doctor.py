"""`themis doctor` and `themis cache`: what this machine has, and what decides whether a stored answer is used."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass

import click

from themis import __version__
from themis.cli.completing import RUN_ID
from themis.cli.output import json_option, print_json, print_table, storage_option
from themis.core.redaction import redact_text
from themis.core.tokens import DEFAULT_TOKENIZER, count_tokens
from themis.evaluation.sandbox import GIVEN_UP, read_weaknesses, strongest_protection
from themis.exceptions import ThemisError
from themis.experiment.audit import explain_cache
from themis.storage import ExperimentStorage
from themis.storage.search import find_runs

# extra -> the packages that make it usable
EXTRAS = {
    "server": ("fastapi", "uvicorn", "websockets"),
    "local": ("xllamacpp",),
    "math": ("math_verify",),
    "nlp": ("sacrebleu", "rouge_score", "nltk", "wordllama"),
    "ifeval": ("nltk", "langdetect"),
    "hub": ("datasets", "huggingface_hub", "pyarrow"),
    "lm-eval": ("lm_eval",),
    "litellm": ("litellm",),
    "mcp": ("mcp",),
    "prices": ("genai_prices",),
    "frames": ("pandas", "polars"),
    "ray": ("ray",),
    "postgres": ("psycopg",),
    "wandb": ("wandb",),
    "mlflow": ("mlflow",),
    "otel": ("opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.http"),
}


@dataclass(frozen=True)
class Finding:
    what: str
    state: str  # "ok", "absent" (optional, fine) or "problem"
    detail: str


@click.command()
@storage_option
@click.option("--endpoint", help="Also try this URL (an OpenAI-compatible server, say).")
@json_option
def doctor(storage: str, endpoint: str | None, as_json: bool) -> int:
    """Check Python, extras, store, tokenizer, browser and endpoints: one line each."""
    findings = list(check_machine(storage, endpoint))
    if as_json:
        print_json([vars(finding) for finding in findings])
    else:
        for finding in findings:
            colour = {"ok": "green", "absent": "yellow", "problem": "red"}[finding.state]
            click.echo(f"{click.style(f'{finding.state:8}', fg=colour)} {finding.what}: {finding.detail}")
    return 1 if any(finding.state == "problem" for finding in findings) else 0


def check_machine(storage: str, endpoint: str | None) -> Iterator[Finding]:
    version = ".".join(map(str, sys.version_info[:3]))
    fine = sys.version_info >= (3, 11)
    yield Finding("python", "ok" if fine else "problem", version if fine else f"{version}; 3.11 or newer is needed")
    yield Finding("themis", "ok", __version__)
    for extra, packages in EXTRAS.items():
        missing = [package for package in packages if not _is_installed(package)]
        if missing:
            yield Finding(f"extra {extra}", "absent", f"no {', '.join(missing)}: pip install 'themis-eval[{extra}]'")
        else:
            yield Finding(f"extra {extra}", "ok", ", ".join(packages))
    yield _check_store(storage)
    yield _check_tokenizer()
    yield _check_sandbox()
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    yield Finding(
        "browser", "ok" if browser else "absent", browser or "no Chromium in PATH; only the page tests need it"
    )
    for name in sorted(name for name in os.environ if name.endswith("_BASE_URL")):
        yield _check_endpoint(name, os.environ[name])
    if endpoint:
        yield _check_endpoint("endpoint", endpoint)


def _is_installed(package: str) -> bool:
    """Whether a package, or one inside a package, could be imported."""
    try:
        return importlib.util.find_spec(package) is not None
    except ModuleNotFoundError:
        return False


def _check_store(location: str) -> Finding:
    store = ExperimentStorage(location)
    shown = redact_text(location)
    try:
        if not store.exists():
            return Finding("store", "absent", f"none at {shown} yet; the first run makes it")
        return Finding(
            "store",
            "ok",
            f"{shown}, {find_runs(store.engine, limit=1).total:,} runs, {store.get_storage_size():,} bytes",
        )
    except ThemisError as error:
        return Finding("store", "problem", str(error))


def _check_tokenizer() -> Finding:
    try:
        return Finding("tokenizer", "ok", f"{DEFAULT_TOKENIZER}, 'hello world' is {count_tokens('hello world')} tokens")
    except (ImportError, ThemisError) as error:
        return Finding("tokenizer", "problem", str(error))


def _check_sandbox() -> Finding:
    """What keeps model-written code away from this machine, and what it does not keep it away from."""
    try:
        protection = strongest_protection()
        allowed = read_weaknesses(())
    except ThemisError as error:
        return Finding("sandbox", "problem", str(error))
    if not protection.weaknesses:
        return Finding("sandbox", "ok", f"{protection.level}: no access to your files, processes and network")
    open_to_code = ", ".join(GIVEN_UP[word] for word in protection.weaknesses)
    said = f"{protection.level}: model-written code {open_to_code}"
    if all(word in allowed for word in protection.weaknesses):
        return Finding("sandbox", "problem", f"{said}; THEMIS_ALLOW_WEAK_SANDBOX lets it run all the same")
    return Finding("sandbox", "absent", f"{said}, so metrics that run code refuse; see --allow-weak-sandbox")


def _check_endpoint(name: str, url: str) -> Finding:
    shown = redact_text(url)
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return Finding(name, "ok", f"{shown} answers {answer.status}")
    except urllib.error.HTTPError as error:
        return Finding(name, "ok", f"{shown} answers {error.code}")
    except (OSError, ValueError) as error:
        return Finding(name, "problem", f"{shown} does not answer: {redact_text(str(error))}")


@click.group()
def cache() -> None:
    """What decides whether a stored answer is used."""


@cache.command()
@click.argument("run_id", type=RUN_ID, metavar="RUN")
@click.argument("item_id", metavar="ITEM")
@click.option(
    "--other", type=RUN_ID, metavar="RUN", help="Compare with this run; by default with the most similar one."
)
@storage_option
@json_option
def why(run_id: str, item_id: str, other: str | None, storage: str, as_json: bool) -> None:
    """In what a sample's answer differs from the nearest stored one, field by field."""
    found = explain_cache(ExperimentStorage(storage), run_id, item_id, other)
    if as_json:
        print_json(vars(found))
        return
    click.echo(f"answer of item {item_id} in {run_id}: key {found.key}")
    if found.other_run_id is None:
        click.echo("no other run in this store has an answer for this item")
    elif not found.differences:
        click.echo(f"the same inputs as in {found.other_run_id}: cache=store would share the answer")
    else:
        click.echo(f"differs from the answer in {found.other_run_id} in:")
        print_table(("field", run_id, found.other_run_id), [(n, a, b) for n, (a, b) in found.differences.items()])
