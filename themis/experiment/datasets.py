"""What is asked: a benchmark, a file, a table or rows of a program, with the prompt and fields that belong to it, as items.

Everything a user can have wrong in a dataset is found here, before the first model call.
"""

from __future__ import annotations

import hashlib
import itertools
import logging
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from themis.config.specification import SampleSpecification
from themis.core.codec import canonical_json, digest, to_plain
from themis.core.continuations import BASELINES, CONTINUATIONS, read_continuations
from themis.core.entities import SamplingConfig
from themis.core.registry import nearest
from themis.evaluation.pipeline import EvaluationPipeline
from themis.exceptions import ConfigurationError, DatasetError, ThemisError
from themis.experiment.attachments import AttachmentReader, attach_to
from themis.generation.templates import ChatTemplate, PromptTemplate, TemplateRenderingError, read_template
from themis.presets import BenchmarkPreset, get_benchmark_preset
from themis.presets.examples import with_examples
from themis.presets.hub import HUB_PREFIX, folder_rows, load_address, parse_hub_address
from themis.presets.lm_eval.index import is_lm_eval_task
from themis.presets.loading import READABLE_SUFFIXES, FileRows
from themis.presets.pipes import PipedRows
from themis.presets.protocols import Continuations, Protocol
from themis.storage import ExperimentStorage
from themis.storage.runs import Attachment, Frame, Item

logger = logging.getLogger(__name__)

Row = Mapping[str, Any]
_SHOWN_ROWS = 5
_LONGEST_ID = 1_000


@dataclass(frozen=True, kw_only=True)
class Source:
    """A dataset with everything that belongs to it. `metrics` and `extractor` judge it where nobody says otherwise."""

    rows: Iterable[Row]
    template: PromptTemplate
    id_field: str
    reference_field: str | None
    metrics: Sequence[Any] = ("exact_match",)
    extractor: Any = None
    benchmark: str | None = None
    description: Mapping[str, Any] = field(default_factory=dict)
    # Judges it as a whole, in place of `metrics` and `extractor`.
    pipeline: EvaluationPipeline | None = None
    # The rows are limited already, each part of them on its own.
    is_limited: bool = False
    # A benchmark's; rows of one's own have none.
    protocol: Protocol | None = None
    # What its rows are written with in place of its task's own, where they hold all that is asked.
    written_with: Mapping[str, object] | None = None
    continuations: Continuations | None = None
    # Fields whose images and files are sent with the prompt.
    attach: AttachmentReader | None = None

    def complete(self, row: Row, prompt: str) -> dict[str, object]:
        """What a provider is told beside the row's fields and the prompt: a chat's turns, and what it scores."""
        added: dict[str, object] = {}
        if row.get("messages") is None and (turns := self.template.messages(row)) is not None:
            added["messages"] = turns
        if self.attach is not None:
            said = added.get("messages") or row.get("messages") or [{"role": "user", "content": prompt}]
            added["messages"] = attach_to(cast("list[Row]", said), row, self.attach.fields)
        if self.continuations is not None and row.get("continuations") is None:
            added["continuations"] = [list(pair) for pair in self.continuations(dict(row), prompt)]
        return added


def resolve_dataset(asked: SampleSpecification) -> Source:
    """The dataset that a specification names or holds."""
    dataset = asked.dataset
    if (asked.data is not None or asked.sample) and (not isinstance(dataset, str) or is_row_file(dataset)):
        raise ConfigurationError("data and sample say where a benchmark's rows come from; here the rows are given")
    if asked.benchmark is not None:
        return _benchmark(
            get_benchmark_preset(asked.benchmark, options=_task_options(asked)), asked, rows=_as_rows(dataset)
        )
    if isinstance(dataset, BenchmarkPreset):
        return _benchmark(dataset, asked)
    if isinstance(dataset, str | Path) and is_row_file(dataset):
        return _custom(*read_named(dataset), asked)
    if isinstance(dataset, PipedRows):
        return _custom(dataset, {"kind": "standard input"}, asked)
    if isinstance(dataset, str):
        preset = get_benchmark_preset(dataset, data=asked.data, sample=asked.sample, options=_task_options(asked))
        return _benchmark(preset, asked)
    return _custom(_as_rows(dataset), {"kind": type(dataset).__name__, **_hub_facts(dataset)}, asked)


def _task_options(asked: SampleSpecification) -> dict[str, Any]:
    """What is said of a task of lm-eval, with the sampling that is asked for in lm-eval's own words."""
    options = dict(asked.task_options or {})
    if not is_lm_eval_task(asked.benchmark or str(asked.dataset)):
        return options
    said = {
        "max_gen_toks": asked.max_tokens,
        "temperature": asked.temperature,
        "do_sample": None if asked.temperature is None else asked.temperature > 0,
        "top_p": asked.top_p,
        "until": None if asked.stop is None else list(asked.stop),
    }
    sampling = {name: value for name, value in said.items() if value is not None}
    generation = {**options.get("generation", {}), **sampling}
    shots = {} if asked.shots is None else {"shots": asked.shots}
    return {**options, **shots, **({"generation": generation} if generation else {})}


def is_row_file(dataset: str | Path) -> bool:
    """Whether rows of one's own are named and no benchmark: a file, a folder, or a dataset of the Hub."""
    if isinstance(dataset, Path) or dataset.startswith(HUB_PREFIX):
        return True
    # A folder that has a benchmark's name is not meant where that name is.
    return dataset.lower().endswith(READABLE_SUFFIXES) or ("/" in dataset and Path(dataset).is_dir())


def read_named(dataset: str | Path) -> tuple[Iterable[Row], dict[str, Any]]:
    """The rows of a file, a folder or an address of the Hub, and where they are from."""
    if isinstance(dataset, str) and dataset.startswith(HUB_PREFIX):
        found, source = load_address(dataset), parse_hub_address(dataset)
        named = {"name": source.dataset, "config": source.config, "split": source.split}
        facts = {**named, "revision": found.commit or source.revision}
        return found.rows, {"kind": "hub", **{name: value for name, value in facts.items() if value}}
    path = Path(dataset)
    if path.is_dir():
        return folder_rows(path), {"kind": "folder", "path": str(dataset)}
    if not path.exists():
        raise DatasetError(f"no file {str(dataset)!r}; a benchmark's name has no ending like {path.suffix!r}")
    return FileRows(path), {"kind": "file", "path": str(dataset)}


def _as_rows(dataset: object) -> Iterable[Row]:
    if hasattr(dataset, "iter_samples"):
        samples: Iterable[Row] = dataset.iter_samples()
        return samples
    if (read := _find_table_reader(dataset)) is not None:
        return _TableRows(read, dataset)
    if isinstance(dataset, Mapping) or not isinstance(dataset, Iterable):
        raise DatasetError(
            f"a dataset is a benchmark's name, a file or an iterable of dicts, got {type(dataset).__name__}"
            f"{_parts_hint(dataset)}"
        )
    return dataset


def _parts_hint(dataset: object) -> str:
    """A mapping of names to rows, as the Hub's splits come, holds datasets and is none."""
    parts = dataset if isinstance(dataset, Mapping) else {}
    named = [repr(name) for name, part in parts.items() if isinstance(part, Iterable) and not isinstance(part, str)]
    if named and all(isinstance(part, list) and part and not isinstance(part[0], Mapping) for part in parts.values()):
        return "; its parts are columns, so give them as a table, such as pandas.DataFrame(...), or as rows"
    return f"; give one of its parts: {', '.join(named)}" if named else ""


class StoredRows:
    """The rows of a stored run, which can be read more than once."""

    def __init__(self, store: ExperimentStorage, run_id: str) -> None:
        self._store, self._run_id = store, run_id

    def __iter__(self) -> Iterator[Row]:
        return iter(self._store.load_dataset(self._run_id))

    @property
    def frame(self) -> Frame:
        """What the run's tasks have in common."""
        return self._store.reader(self._run_id).frame


def _hub_facts(dataset: object) -> dict[str, str]:
    """Where a Hugging Face dataset came from, as far as it says."""
    info = getattr(dataset, "info", None)
    split = getattr(dataset, "split", None)
    facts = {
        "name": getattr(info, "dataset_name", None) or getattr(info, "builder_name", None),
        "config": getattr(info, "config_name", None),
        "version": str(getattr(info, "version", None) or "") or None,
        "split": str(split) if split else None,
    }
    return {name: value for name, value in facts.items() if value}


def _custom(rows: Iterable[Row], description: Mapping[str, object], asked: SampleSpecification) -> Source:
    if asked.shots and not isinstance(asked.dataset, StoredRows):
        raise ConfigurationError(
            "shots are examples of a benchmark's own; for rows of yours write them into the prompt, or into each row's messages"
        )
    first, rows = _look_ahead(rows)
    scored = first.get(CONTINUATIONS)
    prompt = asked.prompt
    if prompt is None and (not scored or any(isinstance(one, str) for one in scored)):
        prompt = _guess_prompt(first, asked)
    return Source(
        rows=rows,
        # Pairs bring their own contexts.
        template=_template(prompt or "", asked),
        attach=_attachment_reader(asked),
        id_field=asked.dataset_id_field or "id",
        reference_field=asked.reference_field,
        metrics=usual_metrics(first) if scored else Source.metrics,
        description=description,
    )


# Fields that hold what is asked, where nobody says.
PROMPT_FIELDS = ("prompt", "question", "input", "text", "query", "problem", "messages")
# Who gets the row itself, so that the prompt is only what stands for it.
_READS_ROWS = ("python", "http", "https", "command", "agent")


def _guess_prompt(row: Row, asked: SampleSpecification) -> str:
    """What stands for a row that is a conversation, or whose subject gets it whole: the field that asks, or all of them."""
    if isinstance(asked.model, str) and asked.model.partition(":")[0] not in _READS_ROWS:
        if row.get("messages"):
            return "{messages}"
        raise ConfigurationError('rows of your own need a prompt, for example prompt="Q: {question}\\nA:"')
    known = next((name for name in PROMPT_FIELDS if name in row), None)
    if known is not None:
        return f"{{{known}}}"
    hidden = {asked.dataset_id_field or "id", asked.reference_field or "answer", "reference", *asked.attach}
    return "\n".join(f"{name}: {{{name}}}" for name in row if name not in hidden) or "{id}"


def _attachment_reader(asked: SampleSpecification) -> AttachmentReader | None:
    if not asked.attach:
        return None
    is_file = isinstance(asked.dataset, str | Path) and is_row_file(asked.dataset)
    return AttachmentReader(list(asked.attach), Path(str(asked.dataset)).parent if is_file else Path())


def _look_ahead(rows: Iterable[Row]) -> tuple[Row, Iterable[Row]]:
    """The first row, and all of them; what is wrong with it is found by whoever reads them."""
    if iter(rows) is not rows:
        first = next(iter(rows), {})
    else:
        taken = list(itertools.islice(rows, 1))
        first, rows = next(iter(taken), {}), itertools.chain(taken, rows)
    return first if isinstance(first, Mapping) else {}, rows


def usual_metrics(row: Row) -> tuple[str, ...]:
    """What rows with `continuations` are judged by where nobody says otherwise: options, one target, or a text by itself."""
    scored = row[CONTINUATIONS]
    if row.get(BASELINES):
        return ("acc", "acc_norm", "acc_mutual_info")
    if not isinstance(scored, list | tuple) or len(scored) != 1:
        return ("acc", "acc_norm")
    if isinstance(scored[0], str) or scored[0][:1] != [""]:
        return ("greedy_match", "perplexity")
    return ("word_perplexity", "byte_perplexity", "bits_per_byte")


def _benchmark(preset: BenchmarkPreset, asked: SampleSpecification, rows: Iterable[Row] | None = None) -> Source:
    preset = preset if rows is None else preset.read_stored(rows)
    if preset.pipeline is not None and asked.prompt is not None and rows is None:
        raise ConfigurationError(
            f"{preset.name} has its own prompts; write a task of your own, and give it by --include"
        )
    return Source(
        # The loader is told the limit too: it may stand for more rows than it is asked for.
        rows=preset.load_dataset(asked.limit) if rows is None else rows,
        template=_benchmark_template(preset, asked, is_stored=rows is not None),
        id_field=asked.dataset_id_field or preset.dataset_id_field,
        reference_field=preset.reference_field if asked.reference_field is None else asked.reference_field,
        metrics=preset.written_metrics,
        extractor=preset.extractor,
        benchmark=preset.name,
        description={"kind": "benchmark", "name": preset.name, **preset.facts},
        pipeline=preset.pipeline,
        is_limited=preset.limits_parts,
        protocol=preset.protocol,
        written_with=_task_options(asked) if preset.writes_prompts else None,
        continuations=preset.continuations,
        attach=_attachment_reader(asked),
    )


def _benchmark_template(preset: BenchmarkPreset, asked: SampleSpecification, *, is_stored: bool) -> PromptTemplate:
    prompt = None if asked.prompt is None else _template(asked.prompt, asked)
    if is_stored and prompt is not None:
        return prompt  # with the examples it was started with
    if preset.writes_prompts:
        return prompt or preset.prompt_template
    return with_examples(preset, prompt=prompt, shots=asked.shots)


def _template(prompt: object, asked: SampleSpecification) -> PromptTemplate:
    return read_template(prompt, syntax=asked.prompt_syntax)


# --- a table in memory: a DataFrame of pandas or polars, an Arrow table -------------------------------------------------

# Known by what they can do, so that none of their packages is needed here. A missing cell (NaN, NaT, NA, null) is None, as
# it is in a Parquet file.
_CHUNK = 1_024


@dataclass(frozen=True)
class _TableRows:
    """The rows of a table, read again each time they are gone through and never all at once."""

    read: Callable[[Any], Iterable[Row]]
    table: object

    def __iter__(self) -> Iterator[Row]:
        return iter(self.read(self.table))


def _find_table_reader(dataset: object) -> Callable[[Any], Iterable[Row]] | None:
    """For what has rows that going through it does not give: a DataFrame gives the names of its columns."""
    if hasattr(dataset, "iloc") and hasattr(dataset, "to_dict") and hasattr(dataset, "columns"):
        return _read_pandas
    if hasattr(dataset, "iter_rows") and hasattr(dataset, "columns"):
        return lambda frame: frame.iter_rows(named=True)
    if hasattr(dataset, "collect_schema") and hasattr(dataset, "collect"):
        return lambda frame: frame.collect().iter_rows(named=True)
    if hasattr(dataset, "to_pylist") and hasattr(dataset, "schema"):
        return _read_arrow
    return None


def _read_pandas(frame: Any) -> Iterator[Row]:
    if any(name is not None for name in frame.index.names):
        try:
            frame = frame.reset_index()  # an index with a name is a field like any other
        except ValueError as error:
            raise DatasetError(f"the DataFrame's index has the name of a column: {error}") from error
    names = [str(name) for name in frame.columns]
    doubled = sorted({name for name in names if names.count(name) > 1})
    if doubled:
        raise DatasetError(f"the DataFrame has more than one column {doubled[0]!r}; name each column once")
    for start in range(0, len(frame), _CHUNK):
        chunk = frame.iloc[start : start + _CHUNK].astype(object)
        yield from chunk.where(chunk.notna(), None).to_dict("records")


def _read_arrow(table: Any) -> Iterator[Row]:
    for batch in table.to_batches() if hasattr(table, "to_batches") else [table]:
        for start in range(0, batch.num_rows, _CHUNK):
            yield from batch.slice(start, _CHUNK).to_pylist()


# --- rows --------------------------------------------------------------------------------------------------------------


@dataclass
class RowReader:
    """Turns rows into items, one at a time, and knows the dataset's fingerprint when the last one is read.

    `reference_field` is None for "find it": `answer` if every row has one, else `reference`.
    """

    rows: Iterable[Mapping[str, Any]]
    template: PromptTemplate
    id_field: str = "id"
    reference_field: str | None = None
    cluster_field: str | None = None
    limit: int | None = None
    # Metrics that are of no use without references.
    compared: Sequence[str] = ()
    # Raises where no answer to a row could be scored; takes the reference, and the row with its prompt.
    check: Callable[[Any, Mapping[str, Any]], None] | None = None
    # Of a row and its prompt, the fields that a protocol adds before it is asked.
    complete: Callable[[Row, str], Row] | None = None
    # Why a row with `continuations` cannot be asked, where it cannot.
    no_scorer: str = ""
    attach: AttachmentReader | None = None
    # Of a row, what is said in its conversation; raises where the row does not fill it.
    scene: Callable[[Row], object] | None = None

    fingerprint: str = ""
    # A template of the user's own class fills prompts by code: they are known by what came out.
    filled_prompts: str = ""
    count: int = 0
    # The field that holds the expected answer, once rows were read; None when there is none.
    found_reference: str | None = None
    _numbered: bool | None = None
    _unlabelled: int = 0
    _without_reference: list[int] = field(default_factory=list)

    def __iter__(self) -> Iterator[Item]:
        hasher, prompts = hashlib.sha256(), hashlib.sha256()
        is_code = type(self.template) not in (PromptTemplate, ChatTemplate)
        self.count, self._unlabelled, self._numbered, self.found_reference = 0, 0, None, None
        self._without_reference = []
        rows = iter(self.rows) if self.limit is None else itertools.islice(iter(self.rows), self.limit)
        for position, raw in enumerate(rows):
            attached: list[Attachment] = []
            if self.attach is not None and isinstance(raw, Mapping):
                raw, attached = self.attach.read(raw, position)
            row = _as_row(raw, position)
            item_id = self._item_id(row, position)
            self._check_reference(row, position)
            self._check_sampling(row, position)
            self._unlabelled += row.get(self.found_reference or "") is None
            if position == 0 and self.found_reference in self.template.fields:
                logger.warning("the prompt shows the model the expected answer: it uses {%s}", self.found_reference)
            try:
                prompt = self.template.fill(row)
                self.template.refuse_unfilled(row, not_asked=(self.found_reference or "answer", "reference"))
                if self.scene is not None:
                    self.scene(row)
            except TemplateRenderingError as error:
                raise TemplateRenderingError(f"row {position}: {error}") from None
            if is_code:
                prompts.update(f"{len(prompt)}:{prompt}".encode("utf-8", "surrogatepass"))
            asked = row if self.complete is None else {**row, **self.complete(row, prompt)}
            if asked.get(CONTINUATIONS) is not None:
                self._check_continuations(asked, prompt, position)
            self._check_scoring(asked, prompt, position)
            content = canonical_json(row)
            item = Item(position, item_id, digest(content), content, self._cluster(row, item_id), tuple(attached))
            hasher.update(f"{len(item_id)}:{item_id}{item.fingerprint}".encode("utf-8", "surrogatepass"))
            self.count += 1
            yield item
        if self.count == 0:
            raise DatasetError("the dataset has no rows" + (f" (limit={self.limit})" if self.limit is not None else ""))
        self._refuse_missing_references()
        if self.compared and self.found_reference is not None and self._unlabelled == self.count:
            raise ConfigurationError(
                f"{', '.join(self.compared)} can compare answers only with a reference, and {self.found_reference!r} is "
                "empty in every row; name another field with reference_field, or choose other metrics"
            )
        self.fingerprint = hasher.hexdigest()
        self.filled_prompts = prompts.hexdigest() if is_code else ""

    def _item_id(self, row: Row, position: int) -> str:
        """The row's id as text; rows without any are numbered. Zero is an id like any other."""
        has_id = row.get(self.id_field) is not None
        if self._numbered is None:
            self._numbered = not has_id
            if not has_id and self.id_field != "id":
                raise ConfigurationError(
                    f"dataset_id_field {self.id_field!r} is not in row 0{nearest(self.id_field, row)}, "
                    f"which has {', '.join(sorted(row))}"
                )
        if has_id == self._numbered:
            state = "has no" if not has_id else "has an"
            raise ConfigurationError(
                f"row {position} {state} {self.id_field!r}, unlike the rows before it; give every row an id, or none"
            )
        if self._numbered:
            return str(position)
        value = row[self.id_field]
        if isinstance(value, list | dict):
            raise ConfigurationError(f"the id of row {position} is a {type(value).__name__}, expected text or a number")
        text = str(value)
        bad = None
        if not text.isprintable():
            bad = next((c for c in text if unicodedata.category(c) in ("Cc", "Cs")), None)
        if not text or len(text) > _LONGEST_ID or bad is not None:
            why = f"contains {bad!r}" if bad is not None else f"has {len(text)} characters"
            raise ConfigurationError(
                f"the id of row {position} {why}; ids have 1 to {_LONGEST_ID} characters and no control characters"
            )
        return text

    def _check_reference(self, row: Row, position: int) -> None:
        if self.reference_field == "":
            return
        here = next((name for name in ("answer", "reference") if name in row), None)
        if position == 0:
            self.found_reference = here if self.reference_field is None else self.reference_field
            if self.found_reference is None and self.compared:
                raise ConfigurationError(
                    f"{', '.join(self.compared)} can compare answers only with a reference, and the rows have neither "
                    f"'answer' nor 'reference' but {', '.join(sorted(row))}; name the field with reference_field "
                    "(--reference-field), or choose other metrics, or give an empty one to have answers alone"
                )
        if self.found_reference is None and here is not None:
            raise ConfigurationError(
                f"row {position} has {here!r} but the rows before it have not; name the field with reference_field, "
                'or give reference_field="" for none'
            )
        if self.found_reference is not None and self.found_reference not in row:
            self._without_reference.append(position)
            if len(self._without_reference) >= _SHOWN_ROWS or position == 0:
                self._refuse_missing_references(row)

    def _check_continuations(self, row: Row, prompt: str, position: int) -> None:
        if self.no_scorer:
            raise ConfigurationError(f"row {position} is scored by log-probability, and {self.no_scorer}")
        try:
            read_continuations(row, prompt)
        except ConfigurationError as error:
            raise DatasetError(f"row {position}: {error}") from error

    def _check_sampling(self, row: Row, position: int) -> None:
        # Rows of a stored run have been checked, or are of before rows had a sampling of their own.
        if row.get("sampling") is None or isinstance(self.rows, StoredRows):
            return
        try:
            SamplingConfig().override(row["sampling"])
        except ConfigurationError as error:
            raise ConfigurationError(f"row {position}: {error}") from None

    def _check_scoring(self, row: Row, prompt: str, position: int) -> None:
        name = self.found_reference
        if self.check is None or name is None or name not in row:
            return
        try:
            self.check(row[name], {**{key: row[key] for key in row if key != name}, "prompt": prompt})
        except ThemisError as error:
            raise DatasetError(f"row {position} cannot be scored: {error}") from error

    def _refuse_missing_references(self, row: Row | None = None) -> None:
        if not self._without_reference:
            return
        rows = ", ".join(map(str, self._without_reference))
        name = self.found_reference or ""
        hint = f"{nearest(name, row)}; that row has {', '.join(sorted(row))}" if row is not None else ""
        raise ConfigurationError(f"reference_field {name!r} is missing in row(s) {rows}{hint}")

    def _cluster(self, row: Row, item_id: str) -> str | None:
        if self.cluster_field is None:
            return None
        if self.cluster_field not in row:
            raise ConfigurationError(
                f"cluster_field {self.cluster_field!r} is not in row {item_id!r}{nearest(self.cluster_field, row)}, "
                f"which has {', '.join(sorted(row))}"
            )
        value = row[self.cluster_field]
        if value is None:
            raise ConfigurationError(
                f"cluster_field {self.cluster_field!r} is empty in row {item_id!r}; a row of its own gets a name of its own"
            )
        return value if isinstance(value, str) else canonical_json(value)


def _as_row(raw: object, position: int) -> dict[str, Any]:
    if not isinstance(raw, Mapping):
        raise DatasetError(f"row {position} is a {type(raw).__name__}, expected a dict of fields")
    try:
        row = to_plain(raw)
    except TypeError as error:
        raise DatasetError(
            f"row {position} cannot be stored: {error}; convert it to text, numbers, lists or dicts"
        ) from error
    except RecursionError as error:
        raise DatasetError(f"row {position} is nested too deeply to be stored") from error
    assert isinstance(row, dict)
    return row
