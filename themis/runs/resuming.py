"""How to go on with a run that has stopped: a command that works as it is printed, or what to do where none can."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from pathlib import Path

from themis.config.specification import STORED_AS
from themis.core.redaction import redact_text
from themis.exceptions import RunBusyError, StorageError
from themis.storage import DEFAULT_STORAGE, ExperimentStorage, RunMetadata

__all__ = ["how_to_repeat", "how_to_resume", "how_to_resume_stored", "say_how_to_resume"]

STORAGE_VARIABLE = "THEMIS_STORAGE"


def how_to_resume(run_id: str, needs_program: str, location: str | Path, *, options: Sequence[str] = ()) -> str:
    """One sentence for people. `needs_program` is why the store alone is not enough, where it is not."""
    obstacle = needs_program
    storage = _storage_words(location)
    if storage is None:
        obstacle = obstacle or "the address of the store holds a password, which is not printed"
    if obstacle or storage is None:
        return f"To go on, run the same command or program again with the run id {run_id!r}: {obstacle}"
    # An id that looks like an option stands behind everything.
    name = ["--", run_id] if run_id.startswith("-") else [run_id]
    words = [*storage, *options, *name] if name[0] == "--" else [*name, *storage, *options]
    return f"Go on with: {shlex.join(['themis', 'resume', *words])}"


def how_to_resume_stored(storage: ExperimentStorage, run: RunMetadata) -> str:
    """The same for a run that somebody else has left."""
    stored = run.config_snapshot.get(STORED_AS) or {}
    return how_to_resume(run.run_id, str(stored.get("needs_program", "")), storage.location)


def say_how_to_resume(error: BaseException, resume: str) -> BaseException:
    """What ended a run, as whoever started it is told: of a store that failed they also learn how to go on later."""
    if isinstance(error, StorageError) and not isinstance(error, RunBusyError):
        return StorageError(f"{error}. {resume}")
    return error


def how_to_repeat(words: Sequence[str], location: str | Path) -> str:
    """The same for a command that goes on when it is given again; `words` are those behind `themis`."""
    given = any(word == "--storage" or word.startswith("--storage=") for word in words)
    storage = [] if given else _storage_words(location)
    if storage is None or redact_text(shlex.join(words)) != shlex.join(words):
        return "To go on, run the same command again"
    return f"Go on with: {shlex.join(['themis', *words, *storage])}"


def _storage_words(location: str | Path) -> list[str] | None:
    """What names the store to a command in this directory; None where that would tell a password."""
    address, variable = str(location), os.environ.get(STORAGE_VARIABLE)
    if redact_text(address) != address:
        # Whoever has it in the environment need not be told.
        return [] if variable == address else None
    return [] if address == DEFAULT_STORAGE and not variable else ["--storage", address]
