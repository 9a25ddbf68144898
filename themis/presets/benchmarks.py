"""What a benchmark is, where its rows come from, and the names under which benchmarks and datasets are found.

Built-in benchmarks (`catalogue`) and users' own ones are the same kind of thing; those of the catalogue also know their
source, so that their rows can be fetched where there is internet and carried to where there is none.
"""

from __future__ import annotations

import datetime
import hashlib
import itertools
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, overload

from themis.core.entities import SamplingConfig
from themis.core.files import atomic_write, file_sha256
from themis.core.registry import Registry
from themis.evaluation.metrics import METRICS
from themis.evaluation.pipeline import EvaluationPipeline
from themis.evaluation.resolve import resolve_metric
from themis.exceptions import ConfigurationError, DatasetError
from themis.generation.templates import PromptTemplate
from themis.interfaces import Extractor, Metric
from themis.presets.fields import Raw, Row, RowMap, Value
from themis.presets.hub import HubDataset, hub_rows, saved_rows
from themis.presets.loading import MANIFEST_SUFFIX, FileRows, read_rows, readable_files, sample_rows
from themis.presets.protocols import OWN, Continuations, FewShot, Protocol, Scoring

# Where the first ones of a split are shown, so many of them are fetched.
_MOST_EXAMPLES = 1_000

# In a metric's text: the model that the user names as the judge.
JUDGE = "{judge}"
# Takes the limit (None for all rows) as its one positional argument.
DatasetLoader = Callable[[int | None], Iterable[Row]]
Options = Mapping[str, Any]
DatasetFactory = Callable[[Options], Iterable[Row]]
RawRows = Callable[[], Iterable[Raw]]
# Makes raw rows here: the given number of them, or as many as the benchmark has.
Generator = Callable[[int | None], Iterable[Raw]]


@dataclass(frozen=True)
class PresetMetrics(Sequence[Metric]):
    """A benchmark's metrics as objects, looked up when they are gone through; `written` has them as they were named.

    >>> [metric.name for metric in PresetMetrics(("exact_match", "f1"))]
    ['ExactMatch', 'F1']
    """

    written: tuple[Metric | str | type[Metric], ...]

    @overload
    def __getitem__(self, place: int) -> Metric: ...
    @overload
    def __getitem__(self, place: slice) -> PresetMetrics: ...
    def __getitem__(self, place: int | slice) -> Metric | PresetMetrics:
        if isinstance(place, slice):
            return PresetMetrics(self.written[place])
        return resolve_metric(self.written[place])

    def __len__(self) -> int:
        return len(self.written)


@dataclass
class BenchmarkPreset:
    """Rows, prompt, extractor and metrics under one name, as `evaluate` runs them.

    Args:
        name: Under which it is registered and stored.
        prompt_template: How the model is asked; its fields are those of a row.
        metrics: Objects, classes or registered names; names are looked up when they are used, so that the attribute gives
            objects: `[metric.name for metric in preset.metrics]`. Where a model grades, it is written `{judge}`, as in
            `answer_judge(model='{judge}')`, and the user names it.
        extractor: The same, for what reads the answer in a reply.
        dataset_loader: Takes the limit (None for all rows) and returns the rows.
        metadata_fields: Fields of a row that the metrics are given.
        reference_field: The field with the right answer.
        dataset_id_field: The field that names a row.
        description: One line for lists.
        system_prompt: What the model is told before.
        few_shot: Worked examples that stand before the question; none by default.
        sampling: Temperature, top_p, token budget and stop; by default temperature 0 and 512 tokens.
        attempts: Answers drawn for each row.
        reducer: How several become one score; their average by default.
        scoring: `generate`, or `loglikelihood`: what `continuations` makes is scored by its log-probability.
        continuations: Of a row and its filled prompt, with `loglikelihood`: `[context, continuation]` for each option.
        version: Of the protocol; counts up whenever a change of it changes figures.
        protocol_source: Where these settings were published; `themis` where they are its own.

    Example:
        >>> preset = BenchmarkPreset("sums", PromptTemplate("sums", "{question}"), ["exact_match"], "last_number",
        ...                          lambda limit: [{"id": "1", "question": "1+1", "answer": "2"}])
        >>> list(preset.load_dataset())
        [{'id': '1', 'question': '1+1', 'answer': '2'}]
    """

    name: str
    prompt_template: PromptTemplate
    metrics: Sequence[Metric | str | type[Metric]]
    extractor: Extractor | str | type[Extractor]
    dataset_loader: DatasetLoader
    metadata_fields: Sequence[str] = ()
    reference_field: str = "answer"
    dataset_id_field: str = "id"
    description: str = ""
    system_prompt: str | None = None
    few_shot: FewShot | None = None
    sampling: SamplingConfig = field(default_factory=SamplingConfig)
    attempts: int = 1
    reducer: str | None = None
    scoring: Scoring = "generate"
    continuations: Continuations | None = None
    version: str = "1"
    protocol_source: str = OWN

    def __post_init__(self) -> None:
        self.metrics = PresetMetrics(self.written_metrics)

    @property
    def written_metrics(self) -> tuple[Metric | str | type[Metric], ...]:
        """The metrics as they were given, names as names."""
        return self.metrics.written if isinstance(self.metrics, PresetMetrics) else tuple(self.metrics)

    @property
    def protocol(self) -> Protocol:
        """Everything of it that decides its figure, as data."""
        return Protocol(
            benchmark=self.name,
            version=self.version,
            source=self.protocol_source,
            prompt=self.prompt_template.template,
            system_prompt=self.system_prompt,
            few_shot=self.few_shot,
            sampling=self.sampling,
            attempts=self.attempts,
            reducer=self.reducer,
            extractor=part_name(self.extractor),
            metrics=tuple(part_name(metric) for metric in self.written_metrics),
            aggregation=tuple(
                (part_name(one), name) for one in self.written_metrics if (name := _aggregation_name(one))
            ),
            scoring=self.scoring,
        )

    def load_dataset(self, limit: int | None = None) -> Iterable[Row]:
        """Its rows.

        Args:
            limit: Only the first so many; all by default.
        """
        return self.dataset_loader(limit)

    def load_examples(self) -> Iterable[Row]:
        """The rows that examples before a question are made of.

        Raises:
            ConfigurationError: It has none.
        """
        if self.few_shot is None or not self.few_shot.rows:
            raise ConfigurationError(
                f"benchmark {self.name!r} loads its own rows and says no examples; give it few_shot=FewShot(rows=...)"
            )
        return self.few_shot.rows

    @property
    def pipeline(self) -> EvaluationPipeline | None:
        """What judges its answers as a whole, in place of extractor and metrics; nothing by default."""
        return None

    @property
    def facts(self) -> Mapping[str, object]:
        """What a manifest says of it beside its name."""
        return {}

    def fetch(self, folder: Path) -> FetchedBenchmark | None:
        """Writes what it reads to a folder for `data=`; None where there is nothing to fetch.

        Args:
            folder: Gets the files.
        """
        return None

    @property
    def writes_prompts(self) -> bool:
        """Whether its rows hold all that is asked, with examples and system prompt, so that nothing is put before them."""
        return False

    @property
    def limits_parts(self) -> bool:
        """Whether a limit is of each of its parts, which `load_dataset` then heeds itself."""
        return False

    def read_stored(self, rows: Iterable[Mapping[str, object]]) -> BenchmarkPreset:
        """The same benchmark for a stored run, whose rows may be all that is needed.

        Args:
            rows: As the run has stored them.
        """
        return self

    def read_from(self, *, data: str | Path | None = None, sample: bool = False) -> BenchmarkPreset:
        """The same benchmark with the rows of a file or folder.

        Args:
            data: The file or folder.
            sample: Its shipped rows instead, for those of the catalogue.

        Raises:
            ConfigurationError: It has no sample rows.
        """
        if data is None:
            raise ConfigurationError(f"benchmark {self.name!r} has no sample rows; those of the catalogue have")
        return replace(self, dataset_loader=lambda limit: FileRows(data, limit))


def part_name(part: object) -> str:
    """An extractor or a metric as it is named where it was chosen."""
    if isinstance(part, str):
        return part
    named = getattr(part, "name", None)
    return named if isinstance(named, str) else getattr(part, "__name__", type(part).__name__)


def _aggregation_name(metric: object) -> str | None:
    if isinstance(metric, str):
        name = metric.partition("(")[0]
        metric = METRICS.get(name) if name in METRICS else None
    found = getattr(metric, "aggregation", None)
    return found if isinstance(found, str) else None


# --- benchmarks that know their source --------------------------------------------------------------------------------


@dataclass(kw_only=True)
class CatalogueBenchmark(BenchmarkPreset):
    """A benchmark of the catalogue: where its rows come from, and how a raw row becomes one of ours.

    `raw_fields` are those by which a row of the source's layout is known from one of ours, and `keep` says which of its rows
    belong to the benchmark. `data` and `sample` say where rows are read instead of from the source; `sample_name` names the file
    of samples of another benchmark that has the same rows. With `reads_examples` rows are those that
    examples are made of.
    """

    prompt: str
    source: HubDataset | Generator
    raw_fields: tuple[str, ...]
    row: RowMap
    licence: str
    citation: str
    extractor: Extractor | str | type[Extractor] = "think_tag_stripper"
    row_id: Value | None = None
    keep: Callable[[Raw], bool] | None = None
    sample_name: str = ""
    data: str | Path | None = None
    sample: bool = False
    reads_examples: bool = False
    prompt_template: PromptTemplate = field(init=False)
    dataset_loader: DatasetLoader = field(init=False, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.prompt_template = PromptTemplate(name=self.name, template=self.prompt)
        self.dataset_loader = self._load

    @property
    def protocol(self) -> Protocol:
        told = super().protocol
        if not isinstance(self.source, HubDataset):
            return replace(told, dataset="made by themis", licence=self.licence, citation=self.citation)
        hub = self.source
        dataset = " ".join(part for part in (hub.dataset, hub.config or hub.data_dir) if part)
        return replace(
            told,
            dataset=f"{dataset}@{hub.revision or 'newest'}",
            split=hub.split,
            licence=self.licence,
            citation=self.citation,
        )

    def read_from(self, *, data: str | Path | None = None, sample: bool = False) -> CatalogueBenchmark:
        return replace(self, data=data, sample=sample)

    def load_examples(self) -> Iterable[Row]:
        few_shot, source = self.few_shot, self.source
        if few_shot is None or few_shot.rows or not isinstance(source, HubDataset):
            return super().load_examples()
        # The same dataset at the same revision, another split of it.
        split = replace(
            self,
            source=replace(source, split=few_shot.split),
            row=few_shot.row or self.row,
            reads_examples=True,
            few_shot=None,
        )
        try:
            return split.load_dataset()
        except DatasetError as error:
            raise DatasetError(
                f"the protocol of {self.name} shows examples of the split {few_shot.split!r}: {error}. "
                "Or ask without examples: --shots 0 (shots=0), which is not the published protocol"
            ) from error

    def rows_of(self, raw: Raw, index: int) -> Iterator[Row]:
        """The row, or the several rows, that a raw row makes; a row in our own layout is itself."""
        if all(name in raw for name in self.raw_fields):
            identifier = self._identifier(raw, index)
            for made in self.row(raw):
                yield {"id": f"{identifier}-{made['turn']}" if "turn" in made else identifier, **made}
        elif self._own_fields <= raw.keys():
            yield {"id": str(index), **raw}
        else:
            raise ValueError(
                f"expected the source's fields {', '.join(self.raw_fields)}, or {', '.join(sorted(self._own_fields))}; "
                f"found {', '.join(map(str, raw)) or 'none'}"
            )

    def _identifier(self, raw: Raw, index: int) -> str:
        if callable(self.row_id):
            return str(self.row_id(raw))
        named = [raw.get(name) for name in (self.row_id, "id") if name is not None]
        return str(next((name for name in named if name not in (None, "")), index))

    @cached_property
    def _own_fields(self) -> frozenset[str]:
        return frozenset({*self.prompt_template.fields, self.reference_field})

    def _load(self, limit: int | None = None) -> _BenchmarkRows:
        """Finds the source at once, so that a missing one is known before anything is run."""
        if limit is not None and limit < 0:
            raise ConfigurationError(f"limit must be 0 or more, got {limit}")
        if self.data is not None and self.sample:
            raise ConfigurationError(f"{self.name}: give data= or sample=True, not both")
        if self.data is not None:
            return _BenchmarkRows(self, self._find_local(Path(self.data)), str(self.data), limit)
        source = self.source
        if not isinstance(source, HubDataset):
            return _BenchmarkRows(self, lambda: source(limit), "its generator", limit)
        if self.sample:
            stem = self._file_stem.replace(self.name, self.sample_name or self.name, 1)
            return _BenchmarkRows(self, lambda: sample_rows(stem), "its sample", limit)
        otherwise = (
            "Give a local copy (--data PATH or data=PATH), made where there is internet by "
            f"`themis data fetch {self.name} --to DIR`, or try its few sample rows (--sample or sample=True)"
        )
        found = hub_rows(source, otherwise=otherwise).rows
        return _BenchmarkRows(self, lambda: found, str(source), limit)

    @property
    def _file_stem(self) -> str:
        """Under which its rows are shipped and fetched; those of another split have its name behind theirs."""
        split = self.source.split if isinstance(self.source, HubDataset) else ""
        return f"{self.name}.{split}" if self.reads_examples else self.name

    def _find_local(self, path: Path) -> RawRows:
        """In a folder: this benchmark's fetched copy, a dataset saved by `datasets`, the files of its split, or all files."""
        split = self.source.split if isinstance(self.source, HubDataset) else ""
        fetched = path / f"{self._file_stem}.jsonl"
        if self.reads_examples and not path.is_dir():
            # Beside a file of rows lie its examples, as a fetch writes them.
            fetched = path.with_name(f"{self._file_stem}.jsonl")
            if not fetched.is_file():
                raise DatasetError(f"beside {path} there is no {fetched.name}; `themis data fetch` writes both")
        if not path.is_dir() or fetched.is_file():
            file = fetched if path.is_dir() or self.reads_examples else path
            _verify_copy(file)
            read_rows(file)
            return lambda: read_rows(file)
        saved = path / split if (path / "dataset_dict.json").is_file() else path
        if (saved / "state.json").is_file():
            found = saved_rows(saved)
            return lambda: found
        files = readable_files(path)
        of_split = [file for file in files if split in (file.parent.name, *re.split(r"[-_.]", file.stem))]
        if self.reads_examples and not of_split:
            raise DatasetError(
                f"{path} has neither {fetched.name} nor files of that split; `themis data fetch` writes both"
            )
        read_rows(path)
        return lambda: itertools.chain.from_iterable(read_rows(file) for file in of_split or files)


@dataclass(frozen=True)
class _BenchmarkRows:
    """Rows in our layout, made anew each time they are gone through; never all in memory."""

    benchmark: CatalogueBenchmark
    raw: RawRows
    where: str
    limit: int | None = None

    def __iter__(self) -> Iterator[Row]:
        return itertools.islice(self._all(), self.limit)

    def __len__(self) -> int:
        return self._count

    @cached_property
    def _count(self) -> int:
        # A source's row may make several rows or none, so that only who goes through them knows.
        return sum(1 for _ in self)

    def _all(self) -> Iterator[Row]:
        for index, raw in enumerate(self.raw()):
            try:
                if self.benchmark.keep is None or self.benchmark.keep(raw):
                    yield from self.benchmark.rows_of(raw, index)
            except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
                reason = f"the field {error} is missing" if isinstance(error, KeyError) else str(error)
                raise DatasetError(f"{self.benchmark.name}: row {index + 1} of {self.where}: {reason}") from error


def _verify_copy(file: Path) -> None:
    """A fetched copy must be what its manifest says; other files have none."""
    manifest = file.with_name(file.stem + MANIFEST_SUFFIX)
    if manifest.is_file() and file.is_file():
        expected = json.loads(manifest.read_text(encoding="utf-8")).get("sha256")
        if expected != file_sha256(file):
            raise DatasetError(f"{file} is not what {manifest.name} describes; fetch or copy it again")


# --- benchmarks by name -----------------------------------------------------------------------------------------------

BENCHMARKS: Registry[BenchmarkPreset] = Registry("benchmark", "themis.presets.catalogue:CATALOGUE")
# Benchmarks of other projects, as PROJECT:NAME: a function of the whole name, the task's options and a local folder of data.
BenchmarkFinder = Callable[[str, Options | None, str | Path | None], BenchmarkPreset]
FAMILIES: Registry[BenchmarkFinder] = Registry(
    "family of benchmarks", {"lm-eval": "themis.presets.lm_eval.benchmark:find_lm_eval_task"}
)


def register_benchmark(preset: BenchmarkPreset) -> None:
    """Makes a benchmark known under its name, in lower case; the last registration wins.

    Args:
        preset: The benchmark.

    Raises:
        ConfigurationError: It is no `BenchmarkPreset`.

    >>> rows = [{"id": "fr", "country": "France", "answer": "Paris"}]
    >>> template = PromptTemplate("capitals", "The capital of {country}?")
    >>> register_benchmark(BenchmarkPreset("capitals", template, ["exact_match"], "identity", lambda limit: rows[:limit]))
    >>> get_benchmark_preset("Capitals").load_dataset()
    [{'id': 'fr', 'country': 'France', 'answer': 'Paris'}]
    """
    if not isinstance(preset, BenchmarkPreset):
        raise ConfigurationError(f"a benchmark is registered as a BenchmarkPreset, got {type(preset).__name__}")
    BENCHMARKS.register(preset.name.lower(), preset)


def get_benchmark_preset(
    name: str, *, data: str | Path | None = None, sample: bool = False, options: Options | None = None
) -> BenchmarkPreset:
    """The benchmark of a name.

    Args:
        name: Its name, whatever the letters' case, or `lm-eval:TASK`.
        data: A file or folder from which its rows are read instead.
        sample: Reads the few rows that are shipped with it, for a try without the internet.
        options: Of a task of lm-eval: `include`, `chat`, `unsafe_code` and others.

    Raises:
        ConfigurationError: There is no such benchmark, it has no sample rows, or it takes no options.

    Example:
        >>> get_benchmark_preset("GSM8K").description
        'Grade-school word problems'
    """
    family, colon, _ = name.partition(":")
    if colon and family in FAMILIES:
        found = FAMILIES.get(family)(name, options, data)
        return found.read_from(data=data, sample=True) if sample else found
    if options:
        raise ConfigurationError(f"task options are of tasks of lm-eval, as lm-eval:TASK; {name!r} is none")
    if re.fullmatch(r"[\w-]+/[\w.-]+", name) and name not in BENCHMARKS:
        raise ConfigurationError(
            f"there is no benchmark, file or folder {name!r}; a dataset of the Hugging Face Hub is hf://{name}/SPLIT"
        )
    preset = BENCHMARKS.get(name)
    return preset if data is None and not sample else preset.read_from(data=data, sample=sample)


def list_benchmarks() -> list[str]:
    """The names of all benchmarks, registered ones too.

    >>> list_benchmarks()[:3]
    ['aime24', 'aime25', 'amc23']
    """
    return BENCHMARKS.names()


@dataclass(frozen=True)
class FetchedBenchmark:
    """What a fetch wrote."""

    name: str
    path: Path
    manifest_path: Path
    rows: int
    sha256: str


def fetch_benchmark(name: str, to_dir: str | Path, *, limit: int | None = None) -> FetchedBenchmark:
    """Writes a benchmark's rows to a folder, for `data=` on a machine without internet.

    Args:
        name: A benchmark of the catalogue, or `lm-eval:TASK`.
        to_dir: Gets NAME.jsonl, in the source's own layout, and NAME.manifest.json, which says where it came from; also
            NAME.SPLIT.jsonl, of which examples can be made, where there is such a split. Of a task of lm-eval all the datasets
            that it reads, whole.
        limit: Only the first so many rows.

    Raises:
        ConfigurationError: The benchmark loads its own rows, so there is nothing to fetch.
        DatasetError: The Hub cannot be reached.

    >>> fetch_benchmark("demo", "rows", limit=2).rows
    2
    """
    benchmark = get_benchmark_preset(name)
    if not isinstance(benchmark, CatalogueBenchmark):
        if (fetched := benchmark.fetch(Path(to_dir))) is not None:
            return fetched
        raise ConfigurationError(
            f"benchmark {name!r} was registered here and loads its own rows; there is nothing to fetch"
        )
    few_shot, source = benchmark.few_shot, benchmark.source
    if few_shot is not None and few_shot.split and isinstance(source, HubDataset):
        is_chosen_from_all = few_shot.seed is not None or few_shot.group is not None
        most = None if is_chosen_from_all else _MOST_EXAMPLES
        _fetch(benchmark, replace(source, split=few_shot.split), Path(to_dir), most, f".{few_shot.split}")
    return _fetch(benchmark, source, Path(to_dir), limit)


def _fetch(
    benchmark: CatalogueBenchmark, source: HubDataset | Generator, folder: Path, limit: int | None, suffix: str = ""
) -> FetchedBenchmark:
    commit: str | None = None
    raw: Iterable[Raw]
    if isinstance(source, HubDataset):
        found = hub_rows(source, otherwise="Fetching needs a connection to the Hub")
        raw, commit, origin = found.rows, found.commit, asdict(source)
    else:
        raw, origin = source(limit), {"dataset": "made by themis"}
    path = folder / f"{benchmark.name}{suffix}.jsonl"
    count, sha256 = _write_rows(path, itertools.islice(raw, limit))
    manifest = {
        "benchmark": benchmark.name,
        "file": path.name,
        "rows": count,
        "sha256": sha256,
        "source": origin,
        "commit": commit,
        "licence": benchmark.licence,
        "citation": benchmark.citation,
        "fetched_at": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    }
    manifest_path = folder / f"{benchmark.name}{suffix}{MANIFEST_SUFFIX}"
    manifest_path.write_text(json.dumps(manifest, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    return FetchedBenchmark(benchmark.name, path, manifest_path, count, sha256)


def _write_rows(path: Path, rows: Iterable[Raw]) -> tuple[int, str]:
    """How many there were, and their hash; a broken fetch leaves the copy from before."""
    count, hasher = 0, hashlib.sha256()
    with atomic_write(path) as file:
        for row in rows:
            line = (json.dumps(row, ensure_ascii=False, default=str) + "\n").encode()
            file.write(line)
            hasher.update(line)
            count += 1
    return count, hasher.hexdigest()


# --- datasets by name -------------------------------------------------------------------------------------------------

DATASETS: Registry[DatasetFactory] = Registry("dataset", "themis.presets.catalogue:DATASETS")
_OPTIONS = {"limit", "data", "sample"}


def register_dataset(name: str, factory: DatasetFactory) -> None:
    """Makes rows known under a name.

    Args:
        name: A name that is not taken yet.
        factory: Takes a mapping of options and returns rows.

    Raises:
        ConfigurationError: The name is taken, or the factory cannot be called.

    >>> register_dataset("squares", lambda options: [{"n": n, "answer": str(n * n)} for n in range(options.get("limit", 3))])
    >>> list(create_dataset("squares", {"limit": 2}))
    [{'n': 0, 'answer': '0'}, {'n': 1, 'answer': '1'}]
    """
    if not callable(factory):
        raise ConfigurationError(
            f"dataset {name!r}: expected a function of options that returns rows, got {factory!r:.80}"
        )
    if is_dataset_registered(name):
        raise ConfigurationError(f"there is already a dataset {name!r}")
    DATASETS.register(name, factory)


def create_dataset(name: str, options: Options | None = None) -> Iterable[Row]:
    """The rows of a dataset.

    Args:
        name: A registered dataset, or a benchmark of the catalogue.
        options: What its factory takes; a benchmark takes limit, data and sample.

    Raises:
        ConfigurationError: There is no such dataset or option.

    Example:
        >>> next(iter(create_dataset("demo", {"limit": 1})))["answer"]
        '4'
    """
    return DATASETS.get(name)(options or {})


def list_datasets() -> list[str]:
    """The names of all datasets: those of the catalogue's benchmarks, and those registered here.

    >>> "gsm8k" in list_datasets()
    True
    """
    return DATASETS.names()


def is_dataset_registered(name: str) -> bool:
    """Whether a dataset has that name.

    Args:
        name: In any case of its letters.

    >>> is_dataset_registered("gsm8k"), is_dataset_registered("gsm9k")
    (True, False)
    """
    return name in DATASETS


def dataset_of(benchmark: CatalogueBenchmark) -> DatasetFactory:
    """A benchmark's rows as a dataset."""

    def create(options: Options) -> Iterable[Row]:
        unknown = sorted(set(options) - _OPTIONS)
        if unknown:
            raise ConfigurationError(
                f"dataset {benchmark.name!r} has no option {unknown[0]!r}; it takes limit, data and sample"
            )
        source = benchmark.read_from(data=options.get("data"), sample=options.get("sample", False))
        return source.load_dataset(options.get("limit"))

    return create
