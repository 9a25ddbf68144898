"""Code of the user's, by file and name, that `--load`, `python:FILE.py:NAME` and tools by name run; and what it raises."""

from __future__ import annotations

import importlib
import importlib.util
import sys
import traceback
from pathlib import Path
from types import ModuleType
from typing import Any

from themis.core.registry import nearest
from themis.exceptions import ConfigurationError, ThemisError

# Files that have been run, each with when it was written, and the module that it made.
_LOADED: dict[tuple[Path, int], ModuleType] = {}


def load_user_code(path: str | Path) -> ModuleType:
    """Runs a Python file, which may register metrics, providers, tests, agents or fillers; its folder can be imported from.

    Args:
        path: The file. It is run once, and again when it has changed.

    Raises:
        ConfigurationError: There is no such file, or it cannot be run.
    """
    file = Path(path).resolve()
    version = (file, file.stat().st_mtime_ns if file.is_file() else 0)
    if version in _LOADED:
        return _LOADED[version]
    specification = importlib.util.spec_from_file_location(file.stem, file)
    if not file.is_file() or specification is None or specification.loader is None:
        raise ConfigurationError(f"--load takes a Python file, and there is none at {str(path)!r}")
    sys.path.insert(0, str(file.parent))
    module = importlib.util.module_from_spec(specification)
    # Data classes look their module up by name while they are made.
    sys.modules[file.stem] = module
    try:
        specification.loader.exec_module(module)
    except ThemisError:
        raise
    except Exception as error:  # boundary: the file is the user's code
        lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(file)]
        place = f"{path}, line {lines[-1]}" if lines else str(path)
        raise ConfigurationError(f"{place}: cannot be run: {type(error).__name__}: {error}") from error
    _LOADED[version] = module
    return module


def load_object(text: str) -> Any:
    """What `FILE.py:NAME` or `package.module:NAME` names; NAME may be dotted.

    Args:
        text: The file or module, and the name in it.

    Raises:
        ConfigurationError: There is no such file, module or name; names the nearest.

    >>> load_object("math:sqrt")(16)
    4.0
    """
    place, separator, name = text.rpartition(":")
    if not separator or not place or not name:
        raise ConfigurationError(f"code is named as FILE.py:NAME or package.module:NAME, got {text!r}")
    found: Any = load_user_code(place) if place.endswith(".py") else _import(place)
    for part in name.split("."):
        if not hasattr(found, part):
            known = [one for one in vars(found) if not one.startswith("_")] if hasattr(found, "__dict__") else []
            raise ConfigurationError(f"{place} has no {part!r}{nearest(part, known)}")
        found = getattr(found, part)
    return found


def _import(name: str) -> ModuleType:
    # As `python -m` does: modules of the folder one stands in are found.
    if "" not in sys.path and str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not name.startswith(error.name):
            raise  # something that the module itself needs
        raise ConfigurationError(f"no module {name!r}; code is named as FILE.py:NAME or package.module:NAME") from error


# Of a group of errors, so many are told.
_MOST_TOLD = 3


def format_error(error: BaseException) -> str:
    """An exception of the user's code in words, with those that a group holds; never raises one of its own.

    >>> format_error(ExceptionGroup("of a TaskGroup", [ValueError("no such city")]))
    'ExceptionGroup: of a TaskGroup (1 sub-exception): ValueError: no such city'
    """
    try:
        text = str(error).strip()
    except Exception:  # boundary: the exception too is the user's code
        text = ""
    said = f"{type(error).__name__}: {text}" if text else type(error).__name__
    if not isinstance(error, BaseExceptionGroup):
        return said
    return f"{said}: {'; '.join(format_error(one) for one in error.exceptions[:_MOST_TOLD])}"
