"""A task of lm-eval as a benchmark of ours: its rows, its pipeline, and what is said of it in manifests and lists."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from themis.config.specification import LM_EVAL_PREFIX
from themis.core.files import file_sha256, safe_filename
from themis.exceptions import ConfigurationError
from themis.generation.templates import PromptTemplate
from themis.interfaces import Row
from themis.presets.benchmarks import BenchmarkPreset, FetchedBenchmark
from themis.presets.lm_eval.index import Foreign, lm_eval_version
from themis.presets.lm_eval.scoring import LmEvalPipeline
from themis.presets.lm_eval.tasks import LoadedTasks, TaskOptions, fetch_datasets, load_for_judging, load_tasks
from themis.presets.loading import MANIFEST_SUFFIX
from themis.presets.protocols import FewShot, Protocol

# A row brings its whole prompt, or the texts to be scored.
_TEMPLATE = "{prompt}"
# Where examples come from that stand in the task's own file.
_OWN_EXAMPLES = "its own file"


def find_lm_eval_task(
    name: str, options: Mapping[str, Foreign] | None = None, data: str | Path | None = None
) -> LmEvalBenchmark:
    """The benchmark behind `lm-eval:TASK`.

    Args:
        name: With the prefix.
        options: Of the task, by the names of `TaskOptions`.
        data: A local folder with its datasets.

    Raises:
        ConfigurationError: An option is wrong.
    """
    return LmEvalBenchmark(
        name=name, task=name.removeprefix(LM_EVAL_PREFIX), options=TaskOptions.from_values(options or {}), data=data
    )


@dataclass(kw_only=True)
class LmEvalBenchmark(BenchmarkPreset):
    """A task, a group or a tag of lm-eval. Nothing is loaded before rows or metrics are asked for."""

    task: str
    options: TaskOptions = field(default_factory=TaskOptions)
    data: str | Path | None = None
    # Rows of a stored run, by which answers are judged without any dataset.
    stored: Iterable[Mapping[str, Foreign]] | None = None
    prompt_template: PromptTemplate = field(init=False)
    metrics: Foreign = ()
    extractor: Foreign = "identity"
    dataset_loader: Foreign = field(init=False, repr=False, default=None)
    reference_field: str = "target"

    def __post_init__(self) -> None:
        super().__post_init__()
        self.prompt_template = PromptTemplate(self.name, _TEMPLATE)
        self.dataset_loader = lambda limit: TaskRows(self, limit)
        self.description = f"lm-eval's task {self.task}"

    def read_from(self, *, data: str | Path | None = None, sample: bool = False) -> LmEvalBenchmark:
        if sample:
            raise ConfigurationError(f"{self.name} has no sample rows; give a folder with its dataset by --data")
        return replace(self, data=data)

    def read_stored(self, rows: Iterable[Mapping[str, Foreign]]) -> LmEvalBenchmark:
        """The same for judging the answers of a stored run, whose rows hold the documents."""
        return replace(self, stored=rows)

    @cached_property
    def loaded(self) -> LoadedTasks:
        """The tasks themselves."""
        docs = {} if self.stored is None else _first_docs(self.stored)
        if not docs:
            return load_tasks(self.task, self.options, self.data)
        return load_for_judging(self.task, self.options, docs)

    @cached_property
    def pipeline(self) -> LmEvalPipeline:
        """How its answers are judged."""
        return LmEvalPipeline(self.loaded)

    @property
    def facts(self) -> dict[str, object]:
        """What decides its figure, for the manifest."""
        options = {name: value for name, value in vars(self.options).items() if value not in (None, (), {}, False)}
        told = {
            **self.loaded.judging_identity,
            "shots": self.loaded.shots,
            "options": options,
            "datasets": self.loaded.datasets,
        }
        return {"lm_eval": told}

    def fetch(self, folder: Path) -> FetchedBenchmark:
        """Writes its datasets to a folder for `--data`, with a manifest that says where they are from."""
        loaded = fetch_datasets(self.task, self.options, folder)
        counts = {name: len(task.eval_docs) for name, task in loaded.tasks.items()}
        told = {"benchmark": self.name, "lm_eval": lm_eval_version(), "datasets": loaded.datasets, "documents": counts}
        path = folder / f"{safe_filename(self.name)}{MANIFEST_SUFFIX}"
        path.write_text(json.dumps(told, indent=2) + "\n", encoding="utf-8")
        return FetchedBenchmark(self.name, folder, path, sum(counts.values()), file_sha256(path))

    @property
    def limits_parts(self) -> bool:
        return True

    @property
    def writes_prompts(self) -> bool:
        return True

    @property
    def protocol(self) -> Protocol:
        loaded, first = self.loaded, next(iter(self.loaded.tasks.values()))
        text, shots = first.config.doc_to_text, loaded.shots
        config = first.config
        source = config.fewshot_split or config.training_split or config.validation_split or _OWN_EXAMPLES
        return Protocol(
            benchmark=self.name,
            version=loaded.version,
            source=f"lm-eval {lm_eval_version()}",
            dataset=", ".join(loaded.datasets),
            split=str(first.config.test_split or first.config.validation_split or ""),
            prompt=text if isinstance(text, str) and loaded.is_single else "as lm-eval's task writes it",
            system_prompt=self.options.system,
            few_shot=FewShot(count=shots, split=source, reply="{target}", seed=self.options.seed) if shots else None,
            sampling=loaded.sampling,
            attempts=loaded.attempts,
            extractor=", ".join(loaded.filters),
            metrics=tuple(self.pipeline.metric_names),
            scoring="generate" if first.OUTPUT_TYPE == "generate_until" else "loglikelihood",
        )


@dataclass(frozen=True)
class TaskRows:
    """A task's rows, made anew each time they are gone through."""

    benchmark: LmEvalBenchmark
    limit: int | None = None

    def __iter__(self) -> Iterator[Row]:
        return self.benchmark.loaded.rows(self.limit)


def _first_docs(rows: Iterable[Mapping[str, Foreign]]) -> dict[str, Foreign]:
    """Each task's first document; nothing where one of them could not be stored."""
    found: dict[str, Foreign] = {}
    for row in rows:
        if "doc" not in row:
            return {}
        found.setdefault(str(row["task"]), row["doc"])
    return found
