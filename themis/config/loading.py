"""Reads configurations, shipped ones by their names. An error says where in the file it is and what was probably meant."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from themis.config.schema import LEAST_FILLER_TOKENS, MemoryConfig, MemoryTestConfig
from themis.core.redaction import redact
from themis.core.registry import nearest
from themis.exceptions import ConfigurationError

__all__ = [
    "LocatedYaml",
    "load_memory_config",
    "parse_memory_config",
    "read_located_yaml",
    "read_yaml",
    "shipped_configurations",
]

_SHIPPED = Path(__file__).with_name("configurations")

_SETTINGS: dict[str, type] = {
    "run_name": str,
    "incompatibilities": list,
    "debug": bool,
    "seed": int,
    "filler": str,
    "clock": str,
    "judge": str,
    "tokenizer": str,
    "max_message_tokens": int,
}
# Arguments of older configurations, which put distance between messages in another way.
_OLD_ARGUMENTS = ("filler_tokens", "filler_tokens_low", "filler_tokens_high", "pre_question_filler")


def shipped_configurations() -> dict[str, Path]:
    """The configurations of the memory benchmark that are part of the package, by name.

    >>> sorted(shipped_configurations())[0]
    'benchmark-120k'
    """
    files = sorted(_SHIPPED.rglob("*.yml"))
    return {file.relative_to(_SHIPPED).with_suffix("").as_posix(): file for file in files}


def load_memory_config(path: str | Path) -> MemoryConfig:
    """A configuration of the memory benchmark.

    Args:
        path: A YAML file, or the name of a shipped configuration such as `quick`. A file of that very name wins.

    Raises:
        ConfigurationError: There is none, naming the nearest; or something in it is wrong, naming the place.

    >>> load_memory_config("quick").run_name
    'quick'
    """
    shipped = None if Path(path).is_file() else shipped_configurations().get(str(path))
    return parse_memory_config(read_yaml(shipped or path), source=str(path))


def read_yaml(path: str | Path) -> Any:
    try:
        with open(path, encoding="utf-8") as handle:
            return yaml.load(handle, Loader=_OnceEachLoader)
    except FileNotFoundError as error:
        raise ConfigurationError(
            f"there is no configuration {str(path)!r}{_neighbour(Path(path))}; give a YAML file or one of "
            f"{', '.join(shipped_configurations())}"
        ) from error
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"configuration {str(path)!r} cannot be read: {error}") from error
    except RecursionError as error:
        raise ConfigurationError(f"configuration {str(path)!r} is nested too deeply") from error
    except yaml.YAMLError as error:
        raise ConfigurationError(f"configuration {str(path)!r} is not YAML: {error}") from error


@dataclass(frozen=True)
class LocatedYaml:
    """What a file says, and in which line each key and entry of it stands, by the keys and places that lead there."""

    content: Any
    lines: Mapping[tuple[str | int, ...], int]


def read_located_yaml(path: str | Path) -> LocatedYaml:
    """A YAML file with its lines.

    Raises:
        ConfigurationError: It is not there, or is no YAML; says in which line.

    >>> _ = Path("x.yml").write_text("name: capitals\\nsubjects:\\n- fake/perfect\\n")
    >>> read_located_yaml("x.yml").lines[("subjects", 0)]
    3
    """
    try:
        with open(path, encoding="utf-8") as handle:
            text = io.StringIO(handle.read())  # read whole, what is no UTF-8 has a line
        text.name = str(path)
        loader = _OnceEachLoader(text)
        node = loader.get_single_node()
        content = None if node is None else loader.construct_document(node)
        return LocatedYaml(content, dict(_find_lines(loader, node, ())))
    except UnicodeDecodeError as error:
        number = error.object.count(b"\n", 0, error.start) + 1
        raise ConfigurationError(
            f"{path}:{number}: the file is not UTF-8 ({error.reason}); save it as UTF-8"
        ) from error
    except OSError as error:
        raise ConfigurationError(f"{str(path)!r} cannot be read: {error}") from error
    except yaml.MarkedYAMLError as error:
        line = "" if error.problem_mark is None else f":{error.problem_mark.line + 1}"
        said = ", ".join(filter(None, (error.context, error.problem)))
        said += "; YAML is indented by spaces" if "'\\t'" in said else ""
        raise ConfigurationError(f"{path}{line}: {said}") from error
    except RecursionError as error:
        raise ConfigurationError(f"{path} is nested too deeply") from error
    except yaml.YAMLError as error:
        raise ConfigurationError(f"{path} is not YAML: {error}") from error


def _find_lines(
    loader: _OnceEachLoader, node: yaml.Node | None, path: tuple[str | int, ...]
) -> Iterator[tuple[tuple[str | int, ...], int]]:
    if not path:
        yield path, 1 if node is None else node.start_mark.line + 1
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            inner = (*path, str(loader.construct_object(key, deep=True)))
            yield inner, key.start_mark.line + 1
            yield from _find_lines(loader, value, inner)
    elif isinstance(node, yaml.SequenceNode):
        for place, value in enumerate(node.value):
            yield (*path, place), value.start_mark.line + 1
            yield from _find_lines(loader, value, (*path, place))


def parse_memory_config(content: object, *, source: str = "") -> MemoryConfig:
    reading = _Reading(source)
    top = reading.mapping(content, "", known=("config", "datasets"), required=("config", "datasets"))
    settings = reading.mapping(top["config"], "config", known=tuple(_SETTINGS), required=("run_name",))
    for name, value in settings.items():
        reading.typed(value, _SETTINGS[name], f"config.{name}")
    if not settings["run_name"].strip():
        raise reading.error("config.run_name", "must not be empty: definitions and runs are called by it")
    longest = settings.get("max_message_tokens", LEAST_FILLER_TOKENS)
    reading.at_least(LEAST_FILLER_TOKENS, longest, "config.max_message_tokens")
    datasets = reading.mapping(top["datasets"], "datasets", known=("args", "datasets"), required=("args", "datasets"))
    shared = reading.arguments(datasets["args"], "datasets.args")
    entries = reading.typed(datasets["datasets"], list, "datasets.datasets")
    tests = [reading.test(entry, f"datasets.datasets[{place}]", shared) for place, entry in enumerate(entries)]
    if not tests:
        raise reading.error("datasets.datasets", "needs at least one memory test")
    groups = [
        [
            reading.typed(name, str, f"config.incompatibilities[{place}][{index}]")
            for index, name in enumerate(reading.typed(group, list, f"config.incompatibilities[{place}]"))
        ]
        for place, group in enumerate(settings.get("incompatibilities", []))
    ]
    return MemoryConfig(**{**settings, "incompatibilities": groups, "tests": tests, "source": source})


class _Reading:
    """Checks a parsed file piece by piece, knowing where it is."""

    def __init__(self, source: str) -> None:
        self._source = source

    def error(self, place: str, what: str) -> ConfigurationError:
        where = f"{self._source}: " if self._source else ""
        return ConfigurationError(f"{where}{place or 'the file'} {what}")

    def mapping(
        self, value: object, place: str, *, known: Sequence[str], required: Sequence[str] = ()
    ) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self.typed(value, dict, place)
        for name in found:
            if name not in known:
                full = f"{place}.{name}" if place else str(name)
                raise self.error(full, f"is not known{nearest(str(name), known)}; known: {', '.join(known)}")
        for name in required:
            if name not in found:
                raise self.error(f"{place}.{name}" if place else name, "is missing")
        return found

    def test(self, entry: object, place: str, shared: Mapping[str, object]) -> MemoryTestConfig:
        found = self.mapping(entry, place, known=("name", "args"), required=("name",))
        name = self.typed(found["name"], str, f"{place}.name")
        own = self.arguments(found.get("args") or {}, f"{place}.args")
        arguments = {**shared, **own}
        places = {key: f"{place}.args.{key}" if key in own else f"datasets.args.{key}" for key in arguments}
        for needed in ("dataset_examples", "memory_span"):
            if needed not in arguments:
                meant = next((key for key in arguments if nearest(key, (needed,))), None)
                hint = "" if meant is None else f"; {places[meant]} is not known, did you mean {needed!r}?"
                raise self.error(f"datasets.args.{needed}", f"is missing ({place} needs it){hint}")
            self.at_least(1, self.typed(arguments[needed], int, places[needed]), places[needed])
        examples = arguments.pop("dataset_examples")
        return MemoryTestConfig(name=name, examples=examples, arguments=arguments, places=places)

    def arguments(self, value: object, place: str) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self.typed(value, dict, place)
        for name in found:
            if name in _OLD_ARGUMENTS:
                raise self.error(f"{place}.{name}", "belongs to older configurations; give memory_span instead")
        return found

    def typed(self, value: object, kind: type, place: str) -> Any:
        # True is an int to Python but not to whoever writes YAML.
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise self.error(place, f"must be {_IN_WORDS[kind]}, got {redact(value)!r}")
        return value

    def at_least(self, least: int, value: int, place: str) -> None:
        if value < least:
            raise self.error(place, f"must be at least {least}, got {value}")


_IN_WORDS = {str: "a text", int: "a whole number", bool: "true or false", list: "a list", dict: "a mapping"}


def _neighbour(path: Path) -> str:
    """The nearest file beside it, or shipped name."""
    files = {entry.name: str(entry) for entry in sorted(path.parent.glob("*.yml"))} if path.suffix else {}
    names = {**{name: name for name in shipped_configurations()}, **files}
    named = path.name if nearest(path.name, files) else path.stem
    return nearest(named, names, render=lambda name: repr(names[name]))


_MERGE_TAG = "tag:yaml.org,2002:merge"


class _OnceEachLoader(yaml.SafeLoader):
    """Refuses a key that stands twice in one mapping: the first value would be lost without a word."""


def _mapping_once_each(loader: _OnceEachLoader, node: yaml.MappingNode) -> dict[object, object]:
    seen: set[object] = set()
    for key_node, _ in node.value:
        if key_node.tag == _MERGE_TAG:
            continue  # `<<: *shared`: what stands beside it takes the place of what it brings
        key = loader.construct_object(key_node, deep=True)
        if isinstance(key, str | int | float | bool) and key in seen:
            raise yaml.constructor.ConstructorError(None, None, f"the key {key!r} stands twice", key_node.start_mark)
        if isinstance(key, str | int | float | bool):
            seen.add(key)
    loader.flatten_mapping(node)
    found: dict[object, object] = loader.construct_mapping(node, deep=True)
    return found


_OnceEachLoader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _mapping_once_each)
