"""lm-eval's task objects: one loaded without the others, with lm-eval's own seeds, and what makes our rows of its documents.

Everything that lm-eval's own code decides (prompts, shots, requests) is decided by that code here too.
"""

from __future__ import annotations

import contextlib
import json
import logging
import random
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from themis.core.codec import canonical_json, digest, to_plain
from themis.core.entities import SamplingConfig
from themis.core.files import file_sha256
from themis.core.registry import import_extra, nearest
from themis.exceptions import ConfigurationError, ThemisError
from themis.interfaces import Row
from themis.presets.lm_eval.data import Answer, LocalFolder, SavedFromHub, StoredDocs, answer_datasets, from_hub
from themis.presets.lm_eval.index import Entry, Foreign, TaskIndex, lm_eval_version, load_index, tasks_folder

# lm-eval's objects: it has no types that a checker could know.
Task: TypeAlias = Foreign
Group: TypeAlias = Foreign

# What `lm_eval.simple_evaluate` seeds by default before it loads tasks.
_RANDOM_SEED, _NUMPY_SEED, FEWSHOT_SEED = 0, 1234, 1234
# The longest answer where a task says nothing, as lm-eval's model classes have it.
MAX_TOKENS = 256
_TOKEN_LIMITS = ("max_gen_toks", "max_new_tokens", "max_tokens", "max_completion_tokens")


@dataclass(frozen=True, kw_only=True)
class TaskOptions:
    """What may be said about an lm-eval task beside its name, as lm-eval's own command line has it.

    Args:
        include: Folders or files with YAML tasks of the user's own.
        shots: Examples before the question, in place of the task's number.
        seed: Of the draw of examples.
        chat: Ask by chat messages (`--apply_chat_template` there), for tasks that generate.
        multiturn: With `chat`, examples are turns of the conversation (`--fewshot_as_multiturn`).
        system: A system instruction.
        unsafe_code: Run tasks whose scoring executes what the model wrote (`--confirm_run_unsafe_code`).
        generation: Settings of generation in place of the task's (`--gen_kwargs`).
        metadata: What tasks that make their own data take (`--metadata`).
    """

    include: tuple[str, ...] = ()
    shots: int | None = None
    seed: int = FEWSHOT_SEED
    chat: bool = False
    multiturn: bool = True
    system: str | None = None
    unsafe_code: bool = False
    generation: Mapping[str, Foreign] = field(default_factory=dict)
    metadata: Mapping[str, Foreign] = field(default_factory=dict)

    @classmethod
    def from_values(cls, values: Mapping[str, Foreign]) -> TaskOptions:
        """From names and values, as a command line or a store has them.

        Raises:
            ConfigurationError: There is no such option, or it takes something else.
        """
        known = {name: type(default) for name, default in vars(cls()).items()}
        expected = {"shots": int, "system": str, "include": tuple}
        kept: dict[str, Foreign] = {}
        for name, value in values.items():
            if name not in known:
                raise ConfigurationError(
                    f"an lm-eval task has no option {name!r}{nearest(name, known)}; it takes {', '.join(known)}"
                )
            given = tuple(value) if name == "include" and isinstance(value, list) else value
            kind = expected.get(name, known[name])
            if given is None or not isinstance(given, kind) or (kind is int and isinstance(given, bool)):
                said = {bool: "true or false", int: "a whole number", str: "a text", dict: "a JSON object"}
                raise ConfigurationError(
                    f"the option {name} of an lm-eval task is {said.get(kind, 'a list')}, got {value!r}"
                )
            kept[name] = given
        return cls(**kept)


@dataclass
class LoadedTasks:
    """A task, a tag's tasks, or a group's, as lm-eval built them."""

    name: str
    entry: Entry
    options: TaskOptions
    tasks: dict[str, Task]
    # The group of that name with its subgroups; empty where it is no group.
    groups: dict[str, Group]
    # Each task's configuration as its files say it, with code by its fingerprint.
    configs: dict[str, dict[str, Foreign]]
    # Where each dataset was loaded from.
    datasets: dict[str, str]
    state: _RandomState

    @property
    def is_single(self) -> bool:
        return self.entry.kind in ("task", "class")

    @property
    def attempts(self) -> int:
        """Answers a document needs: the most that one of the tasks repeats its requests."""
        return max(repeats_of(task) for task in self.tasks.values())

    @property
    def version(self) -> str:
        """The task's or the group's own; of a tag, those of its tasks where they are the same."""
        if self.entry.kind == "group":
            return str(self.groups[self.name].version)
        found = {str(task.VERSION) for task in self.tasks.values()}
        return found.pop() if len(found) == 1 else "mixed"

    @property
    def judging_identity(self) -> dict[str, object]:
        """Everything of the task that decides a score of given answers."""
        return {
            "task": self.name,
            "version": self.version,
            "lm_eval": lm_eval_version(),
            "config": digest(canonical_json(to_plain(self.configs))),
        }

    @property
    def sampling(self) -> SamplingConfig:
        """How answers are drawn, where all tasks say the same; each row says its own."""
        given = [task.config.generation_kwargs for task in self.tasks.values() if task.OUTPUT_TYPE == "generate_until"]
        usual = SamplingConfig(temperature=0.0, max_tokens=MAX_TOKENS)
        found = [usual.override(read_sampling(one)) for one in given if isinstance(one, Mapping)]
        return found[0] if found and all(one == found[0] for one in found) else usual

    @property
    def filters(self) -> list[str]:
        """The names of the tasks' filters."""
        return list(dict.fromkeys(one.name for task in self.tasks.values() for one in getattr(task, "_filters", ())))

    @property
    def shots(self) -> int | None:
        """Examples before the question; None where the tasks differ."""
        found = {int(task.config.num_fewshot or 0) for task in self.tasks.values()}
        return found.pop() if len(found) == 1 else None

    def rows(self, limit: int | None = None) -> Iterator[Row]:
        """A row for each document of each task.

        Args:
            limit: Only the first so many documents of each task.
        """
        self.state.rewind()
        for name, task in self.tasks.items():
            task.set_fewshot_seed(seed=self.options.seed)
            with self.state:
                documents = task.doc_iterator(limit=limit)
            while True:
                # lm-eval's code may draw at random; nothing else may draw in between.
                with self.state:
                    found = next(documents, None)
                    row = None if found is None else self._row(name, task, *found)
                if row is None:
                    break
                yield row

    def _row(self, name: str, task: Task, index: int, doc: Foreign) -> Row:
        options = self.options
        try:
            context = task.fewshot_context(
                doc,
                num_fewshot=task.config.num_fewshot or 0,
                system_instruction=options.system,
                apply_chat_template=options.chat,
                fewshot_as_multiturn=options.multiturn,
                chat_template=_write_messages if options.chat else None,
                gen_prefix=task.doc_to_prefix(doc),
            )
            asked = task.construct_requests(
                doc=doc,
                ctx=context,
                metadata=(name, index, task.config.repeats),
                apply_chat_template=options.chat,
                chat_template=_write_messages if options.chat else None,
            )
        except Exception as error:  # boundary: the task's own code
            raise explain(name, error, f"its document {index} cannot be asked") from error
        requests = asked if isinstance(asked, list) else [asked]
        row: Row = {
            "id": str(index) if self.is_single else f"{name}/{index}",
            "task": name,
            "target": _target(task, doc),
            **_request_fields(name, requests, options),
        }
        if _is_plain(doc):
            row["doc"] = doc
        else:
            row["document"] = index
        return row


def repeats_of(task: Task) -> int:
    """How many answers a document of a task needs."""
    return int(task.config.repeats or 1)


# --- loading ------------------------------------------------------------------------------------------------------------


def load_tasks(name: str, options: TaskOptions, data: str | Path | None = None) -> LoadedTasks:
    """What a name stands for, with its datasets.

    Args:
        name: Of a task, a group or a tag, or the path of a YAML file.
        options: What is said beside it.
        data: A local folder with the datasets, in place of the Hub.

    Raises:
        ConfigurationError: There is no such task, or it cannot run here; says why.
        DatasetError: Its dataset cannot be had.
    """
    source: Answer = from_hub if data is None else LocalFolder(Path(data))
    return _load(name, options, lambda task: source, judging=False)


def fetch_datasets(name: str, options: TaskOptions, folder: Path) -> LoadedTasks:
    """The same from the Hub, with every dataset written to a folder for `load_tasks`."""
    source = SavedFromHub(folder)
    return _load(name, options, lambda task: source, judging=False)


def load_for_judging(name: str, options: TaskOptions, docs: Mapping[str, Foreign]) -> LoadedTasks:
    """The same from the first stored document of each task: enough to judge by, without any dataset."""
    return _load(name, options, lambda task: StoredDocs([docs[task]]), judging=True)


def _load(name: str, options: TaskOptions, source: Callable[[str], Answer], *, judging: bool) -> LoadedTasks:
    index = load_index(options.include)
    entry = index.find(name)
    _quiet()
    factory_module = import_extra("lm_eval.tasks._factory", "lm-eval", f"running lm-eval's task {name!r}")
    index_module = import_extra("lm_eval.tasks._index", "lm-eval", f"running lm-eval's task {name!r}")
    factory = _make_factory(factory_module.TaskFactory, options, source, judging=judging)
    registry = _Registry(index_module, index)
    if name not in registry:
        registry[name] = _lm_entry(index_module, entry)
    state = _RandomState()
    with state, _without_bytecode():
        try:
            built = factory.build(registry[name], overrides=None, registry=registry)
        except ThemisError:
            raise
        except Exception as error:  # boundary: the task's own code
            raise explain(name, error) from error
    items = built if isinstance(built, list) else [built]
    tasks: dict[str, Task] = {}
    groups: dict[str, Group] = {}
    for item in items:
        if hasattr(item, "get_all_tasks"):
            groups |= {item.name: item} | {one.name: one for one in item.get_all_groups()}
            tasks |= {task.task_name: task for task in item.get_all_tasks()}
        else:
            tasks[item.task_name] = item
    if not tasks:
        raise ConfigurationError(f"lm-eval's {entry.kind} {name!r} has no tasks")
    for one, task in tasks.items():
        _configure(one, task, options)
    state.mark()
    return LoadedTasks(name, entry, options, tasks, groups, factory.configs, factory.origins, state)


@contextlib.contextmanager
def _without_bytecode() -> Iterator[None]:
    """Leaves no compiled copy of a task's own code: one of the same size and second would be taken for a changed file."""
    before, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        yield
    finally:
        sys.dont_write_bytecode = before


def _configure(name: str, task: Task, options: TaskOptions) -> None:
    """What lm-eval's `simple_evaluate` sets on a loaded task."""
    if options.chat and task.OUTPUT_TYPE != "generate_until":
        raise ConfigurationError(
            f"lm-eval's task {name!r} scores given texts ({task.OUTPUT_TYPE}), which a chat cannot; leave the option chat out"
        )
    if options.generation and task.OUTPUT_TYPE == "generate_until":
        task.set_config(key="generation_kwargs", value=dict(options.generation), update=True)
    own = task.get_config("num_fewshot")
    # A task whose number is 0 was written without examples: lm-eval leaves it so too.
    if own is None or (options.shots is not None and own != 0):
        task.set_config(key="num_fewshot", value=options.shots or 0)
    task.set_fewshot_seed(seed=options.seed)


def _make_factory(base: type, options: TaskOptions, source: Callable[[str], Answer], *, judging: bool) -> Foreign:
    """lm-eval's factory, which says why a task cannot run before it tries, and keeps what each is made of."""
    loader = import_extra("lm_eval.tasks._yaml_loader", "lm-eval", "reading lm-eval's tasks")
    # Documents are stored as they are asked: for judging nothing is drawn, loaded or prepared again.
    neutral = {
        "process_docs": None,
        "custom_dataset": None,
        "fewshot_config": None,
        "fewshot_split": None,
        "num_fewshot": 0,
    }

    class Factory(base):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__(meta=dict(options.metadata))
            self.configs: dict[str, dict[str, Foreign]] = {}
            self.origins: dict[str, str] = {}

        def _build_task(self, entry: Foreign, overrides: dict[str, Foreign] | None) -> Task:
            written = (
                loader.load_yaml(entry.yaml_path, resolve_func=False) if entry.yaml_path else dict(entry.cfg or {})
            )
            written = {**written, **(overrides or {})}
            name = str(written.get("task") or entry.name)
            _refuse_unfit(name, written, options)
            self.configs[name] = _describe_config(written, entry.yaml_path)
            changed = {**(overrides or {}), **neutral} if judging and "class" not in written else overrides
            try:
                with answer_datasets(source(name)) as origins:
                    task: Task = super()._build_task(entry, changed)
            except ThemisError:
                raise
            except Exception as error:  # boundary: the task's own code
                raise explain(name, error) from error
            self.origins |= origins
            _refuse_multimodal(name, task)
            return task

    return Factory()


def _refuse_unfit(name: str, config: Mapping[str, Foreign], options: TaskOptions) -> None:
    if config.get("unsafe_code") and not options.unsafe_code:
        raise ConfigurationError(
            f"lm-eval's task {name!r} runs the code that the model writes, on this machine and outside of our sandbox; if that "
            "is meant, say so with --task-option unsafe_code=true (task_options={'unsafe_code': True})"
        )
    if config.get("doc_to_image") or config.get("doc_to_audio"):
        raise ConfigurationError(f"lm-eval's task {name!r} shows images or sounds, and only text is asked here")


def _refuse_multimodal(name: str, task: Task) -> None:
    if getattr(task, "MULTIMODAL", False):
        raise ConfigurationError(f"lm-eval's task {name!r} shows images or sounds, and only text is asked here")


def explain(name: str, error: Exception, what: str = "it cannot be set up") -> ThemisError:
    """Why a task cannot run, in one sentence."""
    if isinstance(error, ModuleNotFoundError) and error.name:
        return ConfigurationError(
            f"lm-eval's task {name!r} needs the package {error.name!r}, which is not installed: pip install {error.name}"
        )
    reason = " ".join(str(error).split())[:300]
    if isinstance(error, KeyError):
        reason = f"there is no {reason}, which may be a split or a field that its dataset should have"
    return ConfigurationError(f"lm-eval's task {name!r}: {what}: {type(error).__name__}: {reason}")


def _quiet() -> None:
    """lm-eval warns of every default that it takes; what matters is said by us."""
    logging.getLogger("lm_eval").setLevel(logging.ERROR)
    import_extra("datasets", "lm-eval", "loading the dataset of an lm-eval task").disable_progress_bars()


class _Registry(dict[str, Foreign]):
    """The index as lm-eval's factory reads it; an entry is made when it is asked for."""

    def __init__(self, module: Foreign, index: TaskIndex) -> None:
        self._module, self._index = module, index

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or name in self._index.entries

    def get(self, name: str, default: Foreign = None) -> Foreign:
        return self[name] if name in self else default  # noqa: SIM401 -- this is that method

    def __missing__(self, name: str) -> Foreign:
        self[name] = _lm_entry(self._module, self._index.entries[name])
        return self[name]


def _lm_entry(module: Foreign, entry: Entry) -> Foreign:
    kinds = {"task": "TASK", "class": "PY_TASK", "group": "GROUP", "tag": "TAG"}
    path = None if entry.path is None else Path(entry.path)
    return module.Entry(entry.name, module.Kind[kinds[entry.kind]], path, tags=set(entry.tasks))


def _describe_config(config: Mapping[str, Foreign], path: Path | None) -> dict[str, Foreign]:
    """A task's configuration without places of this machine: code is known by its file's content."""
    folders = [str(folder) for folder in ([] if path is None else [Path(path).resolve().parent, Path(path).parent])]
    roots = [str(tasks_folder().resolve()), *folders]

    def describe(value: Foreign) -> Foreign:
        if isinstance(value, Mapping):
            return {str(key): describe(one) for key, one in value.items()}
        if isinstance(value, list | tuple):
            return [describe(one) for one in value]
        if isinstance(value, str) and value.startswith(tuple(roots)):
            file, _, function = value.rpartition(".")
            code = Path(f"{file}.py")
            root = next(one for one in roots if value.startswith(one))
            said = f"{file.removeprefix(root).lstrip('/')}:{function}"
            return f"{said}@{file_sha256(code)[:16]}" if code.is_file() else said
        return value if isinstance(value, str | int | float | bool | None) else repr(value)

    return {str(key): describe(value) for key, value in config.items() if key != "metadata"} | {
        "metadata": {key: value for key, value in (config.get("metadata") or {}).items() if key != "config_source"}
        if isinstance(config.get("metadata"), Mapping)
        else {}
    }


class _RandomState:
    """The global generators as lm-eval has them while it loads and asks; everybody else keeps theirs."""

    def __init__(self) -> None:
        import numpy

        self._numpy = numpy.random
        self._ours: tuple[Foreign, Foreign] = (
            random.Random(_RANDOM_SEED).getstate(),
            self._numpy.RandomState(_NUMPY_SEED).get_state(),
        )
        self._others: tuple[Foreign, Foreign] | None = None
        self._marked = self._ours

    def __enter__(self) -> None:
        self._others = (random.getstate(), self._numpy.get_state())
        self._set(self._ours)

    def __exit__(self, *_: object) -> None:
        self._ours = (random.getstate(), self._numpy.get_state())
        assert self._others is not None
        self._set(self._others)

    def mark(self) -> None:
        """Remembers the state for `rewind`."""
        self._marked = self._ours

    def rewind(self) -> None:
        self._ours = self._marked

    def _set(self, states: tuple[Foreign, Foreign]) -> None:
        random.setstate(states[0])
        self._numpy.set_state(states[1])


# --- requests -----------------------------------------------------------------------------------------------------------


def _request_fields(name: str, requests: Sequence[Foreign], options: TaskOptions) -> Row:
    """What a document's requests become in a row: a prompt with its sampling, or texts to score."""
    kinds = {request.request_type for request in requests}
    if kinds == {"generate_until"} and len(requests) == 1:
        context, settings = requests[0].args[:2]
        fields: Row = {"prompt": context, "sampling": read_sampling(settings)}
        if options.chat:
            messages = json.loads(context)
            fields |= {"prompt": str(messages[-1]["content"]), "messages": messages}
        return fields
    if kinds == {"loglikelihood"}:
        pairs = [request.args[:2] for request in requests]
        context = pairs[0][0]
        # Texts that stand behind the prompt need not repeat it.
        texts = [text if before == context else [before, text] for before, text in pairs]
        return {"prompt": context, "continuations": texts}
    if kinds == {"loglikelihood_rolling"}:
        return {"prompt": "", "continuations": [["", request.args[0]] for request in requests]}
    raise ConfigurationError(
        f"lm-eval's task {name!r} asks {len(requests)} things of one document ({', '.join(sorted(kinds))}); here a row is either "
        "answered in one text or scored by log-probabilities"
    )


def read_sampling(settings: Mapping[str, Foreign]) -> dict[str, Foreign]:
    """lm-eval's settings of generation as a row's `sampling`.

    >>> read_sampling({"until": ["Q:"], "do_sample": False, "temperature": 0.7, "max_gen_toks": 64})
    {'temperature': 0.0, 'max_tokens': 64, 'stop': ['Q:']}
    """
    until = settings.get("until") or []
    limit = next((settings[name] for name in _TOKEN_LIMITS if settings.get(name) is not None), MAX_TOKENS)
    draws = settings.get("do_sample", True) is not False
    found: dict[str, Foreign] = {
        "temperature": float(settings.get("temperature") or 0.0) if draws else 0.0,
        "max_tokens": int(limit),
    }
    if draws and settings.get("top_p") is not None:
        found["top_p"] = float(settings["top_p"])
    stop = [text for text in ([until] if isinstance(until, str) else until) if text]
    return {**found, "stop": stop} if stop else found


def _write_messages(messages: Sequence[Mapping[str, Foreign]], add_generation_prompt: bool = True) -> str:
    """Chat messages as lm-eval's own chat models take them: a text that holds them."""
    return json.dumps(list(messages), ensure_ascii=False)


def _target(task: Task, doc: Foreign) -> Foreign:
    """The right answer as a person reads it; only shown, since the task itself compares."""
    try:
        found = task.doc_to_target(doc)
        if isinstance(found, int) and task.config.doc_to_choice is not None:
            choices = task.doc_to_choice(doc)
            found = choices[found] if 0 <= found < len(choices) else found
    except Exception:  # boundary: the task's own code, and nothing depends on it
        return None
    return found if _is_plain(found) else str(found)


def _is_plain(value: Foreign) -> bool:
    """Whether a store gives back exactly this."""
    try:
        return bool(json.loads(canonical_json(value)) == value)
    except (TypeError, ValueError, RecursionError):
        return False
