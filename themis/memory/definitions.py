"""The tests of a configuration: generated once from a seed, kept in the store, shared by every agent's run.

They lie in a table of their own, every version of them under the configuration's name, and go in and out as folders of
`.def.json` files.
"""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from themis.config.schema import MemoryConfig, MemoryTestConfig
from themis.core.codec import canonical_json, decode, digest, fingerprint, to_plain
from themis.core.redaction import redact_text
from themis.core.registry import nearest
from themis.core.tokens import count_tokens
from themis.exceptions import ConfigurationError, StorageError
from themis.memory.examples import MEMORY_TESTS, DatasetInterface, TestExample
from themis.memory.world import World
from themis.storage import ExperimentStorage

logger = logging.getLogger(__name__)

# What the format of a chat adds to a message, for judging whether a script fits its span.
_LINE_TOKENS = 4


@dataclass(frozen=True)
class Defined:
    """A test with the name of its kind."""

    kind: str
    example: TestExample


def prepare(
    config: MemoryConfig,
    storage: ExperimentStorage,
    *,
    reuse: Callable[[str], bool],
    regenerate: bool = False,
    keep: bool = True,
) -> list[Defined]:
    """The tests of a configuration: those stored, if there are some and `reuse` agrees, else new ones, kept if `keep`."""
    stored = storage.list_definitions(config.run_name)
    same = False
    if stored:
        same = stored[0].configuration == _configuration_fingerprint(config)
        if not same and not regenerate:
            raise ConfigurationError(
                f"the stored definitions of {config.run_name!r} were generated from another configuration; give this one "
                f"another run_name, or generate them anew with --regenerate. {_dependants(storage, config.run_name)}"
            )
        if same and not regenerate and reuse(f"Definitions of {config.run_name!r} exist. Use them again?"):
            return load_stored(storage, config.run_name)
    made = generate(config)
    if not keep:
        return made
    if stored and _content(made) == stored[0].content:
        logger.warning(
            "the definitions of %s were generated anew and are identical to the stored ones; runs made with them can go on "
            "and be compared",
            config.run_name,
        )
        if same:
            return load_stored(storage, config.run_name)
    elif stored:
        logger.warning(
            "the definitions of %s were generated anew and differ from the stored ones. %s",
            config.run_name,
            _dependants(storage, config.run_name),
        )
    store(made, config, storage)
    # What is played is what was stored, now as in every later process.
    return load_stored(storage, config.run_name)


def _dependants(storage: ExperimentStorage, name: str) -> str:
    runs = [run.run_id for run in storage.list_runs(kind="memory", benchmark=name)]
    if not runs:
        return "No run depends on them"
    return (
        f"Runs that were made with the old ones stay as they are but cannot be resumed or compared with new ones: "
        f"{', '.join(runs)}"
    )


# --- generating -------------------------------------------------------------------------------------------------------


def generate(config: MemoryConfig) -> list[Defined]:
    """Every test of a configuration, the same for the same configuration on every machine."""
    defined: list[Defined] = []
    kinds_seen: Counter[str] = Counter()
    world = World()
    for test in config.tests:
        dataset = _configured_dataset(test, config)
        dataset.world = world
        examples = dataset.generate_examples(test.examples)
        if len(examples) != test.examples:
            raise ConfigurationError(
                f"memory test {test.name!r} was asked for {test.examples} examples and made {len(examples)}; "
                f"give fewer in {test.places['dataset_examples']}"
            )
        kind = MEMORY_TESTS.find(test.name) or test.name
        # A kind that stands twice in a configuration, with other arguments, has ids of its own each time.
        suffix = "" if not kinds_seen[kind] else chr(ord("a") + kinds_seen[kind])
        kinds_seen[kind] += 1
        for example in examples:
            example.example_id += suffix
            _refuse_too_long(example, config.tokenizer)
            defined.append(Defined(kind, example))
    _refuse_doubles(defined)
    return _round_trip(defined)


def _round_trip(defined: Sequence[Defined]) -> list[Defined]:
    """The tests as they come out of the store; one that would come out as another test is refused."""
    entries = [_entry(one) for one in defined]
    loaded = _from_entries(decode(canonical_json(entries)))
    for entry, one in zip(entries, loaded, strict=True):
        if canonical_json(_entry(one)) != canonical_json(entry):
            dataset = one.example.dataset
            raise ConfigurationError(
                f"test {one.example.test_id!r} is not the same when it is loaded from its definition; "
                f"{type(dataset).__name__}.load_example must make of what definition() gives the test that gave it"
            )
    return loaded


def _configured_dataset(test: MemoryTestConfig, config: MemoryConfig) -> DatasetInterface:
    if test.name not in MEMORY_TESTS:
        raise ConfigurationError(
            f"{config.source or 'the configuration'}: unknown memory test {test.name!r}"
            f"{nearest(test.name, MEMORY_TESTS.names())}; known: {', '.join(MEMORY_TESTS.names())}"
        )
    kind = MEMORY_TESTS.get(test.name)
    given = {"seed": config.seed, "max_message_size": config.max_message_tokens, **test.arguments}
    return _create_dataset(kind, given, test.places, config.source)


def _create_dataset(
    kind: type[DatasetInterface], given: Mapping[str, Any], places: Mapping[str, str], source: str
) -> DatasetInterface:
    known = kind.arguments()
    where = f"{source}: " if source else ""
    for name, value in given.items():
        place = f"{where}{places.get(name, name)}"
        if name not in known:
            raise ConfigurationError(
                f"{place} is not an argument of {kind.name}{nearest(name, known)}; it has {', '.join(sorted(known))}"
            )
        default = known[name].default
        if isinstance(default, bool | int | float | str) and not _fits(value, default):
            raise ConfigurationError(f"{place} must be like its default {default!r}, got {value!r}")
    return kind(**given)


def _fits(value: object, default: object) -> bool:
    if isinstance(default, bool) or isinstance(value, bool):
        return isinstance(value, bool) and isinstance(default, bool)
    if isinstance(default, float):
        return isinstance(value, int | float)
    return isinstance(value, type(default))


def _refuse_too_long(example: TestExample, tokenizer: str) -> None:
    span = example.dataset.memory_span
    tokens = sum(count_tokens(line, tokenizer) + _LINE_TOKENS for line in example.script)
    if tokens >= span:
        raise ConfigurationError(
            f"test {example.test_id!r} has {tokens} tokens of its own and does not fit into its span of {span}; "
            "give a larger memory_span or fewer lines"
        )


def _refuse_doubles(defined: Iterable[Defined]) -> None:
    seen: set[str] = set()
    for entry in defined:
        if entry.example.test_id in seen:
            raise ConfigurationError(f"two tests have the id {entry.example.test_id!r}; ids pair tests across agents")
        seen.add(entry.example.test_id)


def conflicts_of(defined: Iterable[Defined], incompatibilities: Sequence[Sequence[str]]) -> dict[str, set[str]]:
    """Which kinds may not run beside which: what the tests say of themselves, and what the configuration adds."""
    conflicts: dict[str, set[str]] = {}
    for entry in defined:
        dataset = entry.example.dataset
        others = conflicts.setdefault(entry.kind, set())
        others.update(dataset.interferes_with)
        if dataset.interferes_with_itself:
            others.add(entry.kind)
    for group in incompatibilities:
        for name in group:
            if name not in MEMORY_TESTS:
                raise ConfigurationError(
                    f"config.incompatibilities names {name!r}, which is no memory test"
                    f"{nearest(name, MEMORY_TESTS.names())}"
                )
            others = conflicts.setdefault(MEMORY_TESTS.find(name) or name, set())
            others.update(other for other in group if other != name)
    return conflicts


# --- in the store -----------------------------------------------------------------------------------------------------


def store(defined: Sequence[Defined], config: MemoryConfig, storage: ExperimentStorage) -> None:
    """Stores tests as the newest version under the configuration's name."""
    storage.store_definitions(config.run_name, _content(defined), configuration=_configuration_fingerprint(config))


def _content(defined: Sequence[Defined]) -> str:
    """Tests as they lie in the store."""
    return canonical_json([_entry(one) for one in defined])


def load_stored(storage: ExperimentStorage, name: str) -> list[Defined]:
    """The stored definitions of a run name; ones that were changed in the store are refused."""
    stored = storage.list_definitions(name)
    if not stored:
        known = sorted({one.name for one in storage.list_definitions()})
        raise StorageError(f"no definitions {name!r} in {redact_text(str(storage.location))}{nearest(name, known)}")
    if digest(stored[0].content) != stored[0].digest:
        raise ConfigurationError(
            f"the stored definitions of {name!r} were changed after they were generated; generate them anew with "
            "--regenerate, or load changed ones from a folder under another run_name"
        )
    return _from_entries(decode(stored[0].content))


def _entry(one: Defined) -> dict[str, object]:
    return {
        "kind": one.kind,
        "example_id": one.example.example_id,
        "arguments": one.example.arguments(),
        "definition": to_plain(one.example.definition()),
    }


def _from_entries(entries: Iterable[Mapping[str, Any]]) -> list[Defined]:
    datasets: dict[str, DatasetInterface] = {}
    defined = []
    for entry in entries:
        key = canonical_json([entry["kind"], entry["arguments"]])
        if key not in datasets:
            datasets[key] = _create_dataset(
                MEMORY_TESTS.get(entry["kind"]), entry["arguments"], {}, "stored definitions"
            )
        example = datasets[key].load_example(entry["example_id"], entry["definition"])
        defined.append(Defined(entry["kind"], example))
    return defined


def _configuration_fingerprint(config: MemoryConfig) -> str:
    """What decides the tests; agents, clocks and judges do not."""
    tests = [[test.name, test.examples, dict(test.arguments)] for test in config.tests]
    return fingerprint([tests, config.seed, config.max_message_tokens])


# --- as files ---------------------------------------------------------------------------------------------------------


def export_definitions(defined: Iterable[Defined], folder: Path) -> int:
    """Writes `<dataset name>/<example id>.def.json`; returns how many."""
    written = 0
    for one in defined:
        place = folder / safe_name(one.example.dataset.name)
        place.mkdir(parents=True, exist_ok=True)
        text = json.dumps(to_plain(one.example.definition()), indent=2, ensure_ascii=False)
        (place / f"{safe_name(one.example.example_id)}.def.json").write_text(text, encoding="utf-8")
        written += 1
    return written


def load_folder(folder: Path, config: MemoryConfig) -> list[Defined]:
    """The tests in a folder of `.def.json` files, with the arguments of the configuration."""
    defined = []
    for test in config.tests:
        dataset = _configured_dataset(test, config)
        kind = MEMORY_TESTS.find(test.name) or test.name
        files = sorted(
            (folder / safe_name(dataset.name)).glob("*.def.json"), key=lambda path: (len(path.name), path.name)
        )
        if not files:
            raise ConfigurationError(
                f"{folder} has no definitions of {dataset.name!r} (expected {dataset.name}/0.def.json)"
            )
        for path in files[: test.examples]:
            try:
                content = json.loads(path.read_text(encoding="utf-8"))
            except (OSError, ValueError) as error:
                raise ConfigurationError(f"{path} cannot be read: {error}") from error
            if not isinstance(content, dict):
                raise ConfigurationError(f"{path} must hold a JSON object, got {type(content).__name__}")
            defined.append(Defined(kind, dataset.load_example(path.name.removesuffix(".def.json"), content)))
    _refuse_doubles(defined)
    return defined


def safe_name(name: str) -> str:
    """A name as one part of a path, whatever a user has called a test."""
    safe = "".join("_" if one in '/\\:*?"<>|' or ord(one) < 32 else one for one in name).strip(". ")
    if not safe:
        raise ConfigurationError(f"{name!r} cannot be the name of a file")
    return safe
