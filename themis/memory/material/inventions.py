"""Material that a model invents: asked for until it keeps to the form, and kept under a hash of all that could change it.

Whoever asks for the same again, in another run or after a kill, gets what was paid for already.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from themis.core.fingerprint import digest
from themis.core.json_repair import parse_json
from themis.core.registry import Registry
from themis.exceptions import DatasetError
from themis.memory.models import Completion

__all__ = ["FORM", "INVENTORS", "Invention", "Inventor", "Wish", "invent"]

# From a prompt, a model's name and a temperature to what it says.
Inventor = Callable[[str, str, float], str | Completion]
INVENTORS: Registry[Inventor] = Registry("generator", {"model": "themis.memory.material.inventor:ask_model"})
FORM = (
    'Answer with a JSON object and nothing else: {"content": [sentences to be told], "questions": [questions about them], '
    '"answers": [the short answer to each question, one to five words of the content]}.'
)


@dataclass(frozen=True, kw_only=True)
class Wish:
    """All that could change what is invented. The seed is not sent: it tells one series of tests from another."""

    generator: str
    model: str
    temperature: float
    seed: int
    prompt: str


@dataclass(frozen=True, kw_only=True)
class Invention:
    """Sentences to be told, questions about them with their answers, and how they came about."""

    content: list[str]
    questions: list[str]
    answers: list[str]
    record: dict[str, Any]


def invent(wish: Wish, *, max_attempts: int, file: str | None) -> Invention:
    """From the file, if it holds this one; else from the model, tried until it keeps to the form."""
    inventor = INVENTORS.get(wish.generator)
    path = _default_file() if file is None else Path(file)
    key = digest(*(f"{name}={value}" for name, value in asdict(wish).items()))
    kept = _read(path).get(key)
    if kept is not None:
        return _checked(kept, kept.get("record", {}))
    mistake, cost_usd = "it was never asked", 0.0
    for attempt in range(1, max_attempts + 1):
        said = inventor(wish.prompt, wish.model, wish.temperature)
        text, cost = (said, None) if isinstance(said, str) else (said.text, said.cost_usd)
        cost_usd += cost or 0.0
        try:
            made = _checked(parse_json(text), {**asdict(wish), "attempts": attempt, "cost_usd": cost_usd})
        except ValueError as error:
            mistake = str(error)
            continue
        _write(path, {**_read(path), key: asdict(made)})
        return made
    raise DatasetError(f"{wish.model} did not keep to the form in {max_attempts} attempts, the last time: {mistake}")


def _checked(value: Any, record: dict[str, Any]) -> Invention:
    fields = ("content", "questions", "answers")
    lists = [value.get(field) for field in fields] if isinstance(value, dict) else [None]
    if not all(
        isinstance(one, list) and one and all(isinstance(text, str) and text.strip() for text in one) for one in lists
    ):
        raise ValueError("content, questions and answers must be lists of texts")
    if len(value["questions"]) != len(value["answers"]):
        raise ValueError(f"{len(value['questions'])} questions but {len(value['answers'])} answers")
    texts = {field: [text.strip() for text in value[field]] for field in fields}
    return Invention(**texts, record=record)


def _default_file() -> Path:
    cache = os.environ.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else Path.home() / ".cache") / "themis" / "inventions.json"


def _read(file: Path) -> dict[str, Any]:
    if not file.exists():
        return {}
    try:
        kept = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DatasetError(f"generation_file {str(file)!r} cannot be read: {error}") from error
    if not isinstance(kept, dict):
        raise DatasetError(f"generation_file {str(file)!r} holds no inventions, but a {type(kept).__name__}")
    return kept


def _write(file: Path, kept: dict[str, Any]) -> None:
    unfinished = file.with_name(f"{file.name}.{os.getpid()}.unfinished")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        unfinished.write_text(json.dumps(kept, indent=1, sort_keys=True), encoding="utf-8")
        os.replace(unfinished, file)
    except OSError as error:
        raise DatasetError(f"generation_file {str(file)!r} cannot be written: {error}") from error
