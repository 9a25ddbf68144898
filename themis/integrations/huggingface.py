"""Puts runs on the Hugging Face Hub, as files of a dataset repository, one commit a run."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from themis.config.schema import HuggingFaceHubConfig
from themis.core.codec import json_bytes
from themis.core.entities import ExperimentReport
from themis.core.files import safe_filename
from themis.core.registry import import_extra
from themis.exceptions import ConfigurationError
from themis.experiment.export import export_json
from themis.experiment.export.as_json import describe_sample
from themis.experiment.export.samples import Sample, join_samples, report_run_id
from themis.runs.observers import Observer
from themis.storage import RunStatus
from themis.storage.runs import batched

_package = partial(import_extra, "huggingface_hub", "hub", "uploading to the Hugging Face Hub")

# The Hub grows slow with many small files, and a folder there holds no more than ten thousand.
_MOST_FILES = 1_000
_LINES_A_PART = 10_000


class HuggingFaceHubUploader:
    """Uploads `<run_id>/report.json`, the manifest, and each sample as `<run_id>/generations/<id>.json`.

    A run of more than a thousand samples has `generations/part-00000.jsonl` and so on instead. The repository is made if
    it is not there.

    Args:
        config: The repository, and whether anything is uploaded at all.
        endpoint: Of the Hub; by default huggingface_hub's own (HF_ENDPOINT).
        token: By default huggingface_hub's own (HF_TOKEN).
        private: Whether a repository that is made is private: prompts and answers are in it.
    """

    def __init__(
        self,
        config: HuggingFaceHubConfig,
        *,
        endpoint: str | None = None,
        token: str | None = None,
        private: bool = True,
    ) -> None:
        self._config = config
        self._endpoint, self._token, self._private = endpoint, token, private

    def upload_results(self, report: ExperimentReport, run_path: Path | None = None) -> str | None:
        """Uploads a run in one commit and returns its address; nothing happens unless the config enables it.

        Args:
            report: What `evaluate` returned, or `build_report` made from the store.
            run_path: The run's own folder (`storage.get_run_path`): its manifest is uploaded, nothing in it is changed.

        Raises:
            ConfigurationError: No repository is named.
            DependencyError: The package huggingface_hub is not installed.
        """
        if not self._config.enable:
            return None
        if not self._config.repository:
            raise ConfigurationError("uploading to the Hugging Face Hub needs a repository such as 'org/name'")
        hub = _package()
        api = hub.HfApi(endpoint=self._endpoint, token=self._token)
        run_id = report_run_id(report)
        folder = safe_filename(run_id)
        api.create_repo(self._config.repository, repo_type="dataset", private=self._private, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="themis-hub-") as scratch:
            files = _files(report, Path(scratch), run_path)
            commit = api.create_commit(
                self._config.repository,
                [hub.CommitOperationAdd(f"{folder}/{name}", content) for name, content in files],
                commit_message=f"Themis run {run_id}",
                repo_type="dataset",
            )
        return str(commit.commit_url)

    def publish(self, report: ExperimentReport) -> str:
        """Uploads a run and says where it is to be found.

        Args:
            report: What `evaluate` returned, or `build_report` made from the store.
        """
        return self.upload_results(report) or "nowhere: uploading is not enabled"

    def observer(self) -> Observer:
        """What uploads a run when it is over."""
        _package()
        return _UploadAtEnd(self)


def hub_tracker(
    repository: str, endpoint: str | None = None, token: str | None = None, private: bool = True
) -> HuggingFaceHubUploader:
    """An uploader to one repository."""
    config = HuggingFaceHubConfig(enable=True, repository=repository)
    return HuggingFaceHubUploader(config, endpoint=endpoint, token=token, private=private)


def _files(report: ExperimentReport, scratch: Path, run_path: Path | None) -> Iterator[tuple[str, bytes | str]]:
    """(path below the run's folder, content or the file that holds it)."""
    yield "report.json", str(export_json(report, scratch / "report.json"))
    manifest = None if run_path is None else Path(run_path) / "manifest.json"
    if manifest is not None and manifest.is_file():
        yield "manifest.json", str(manifest)
    if len(report.generation_results) <= _MOST_FILES:
        taken: set[str] = set()
        for number, sample in enumerate(join_samples(report)):
            yield f"generations/{_sample_name(sample, number, taken)}.json", json_bytes(describe_sample(sample), 2)
        return
    for number, samples in enumerate(batched(join_samples(report), _LINES_A_PART)):
        part = scratch / f"part-{number:05d}.jsonl"
        with part.open("wb") as file:
            file.writelines(json_bytes(describe_sample(sample)) + b"\n" for sample in samples)
        yield f"generations/{part.name}", str(part)


def _sample_name(sample: Sample, number: int, taken: set[str]) -> str:
    """A file's name from an id that is somebody's data; two ids never share a file, on any file system."""
    word = safe_filename(sample.sample_id if sample.sample_id is not None else f"unnamed {number}")
    names = itertools.chain([word], (f"{word}-{n}" for n in itertools.count(2)))
    name = next(name for name in names if name.casefold() not in taken)
    taken.add(name.casefold())
    return name


class _UploadAtEnd(Observer):
    name = "the Hugging Face Hub"

    def __init__(self, uploader: HuggingFaceHubUploader) -> None:
        self._uploader = uploader

    def on_end(self, status: RunStatus, report: ExperimentReport | None) -> None:
        if report is not None:
            self._uploader.upload_results(report)
