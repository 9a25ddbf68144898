"""Whose code a module is: the user's own, Themis's, the standard library's or an installed distribution's.

The first two are known by what they say; an installed one by its version, and by its files as well where it was installed
from a folder or a repository, whose version promises nothing.
"""

from __future__ import annotations

import hashlib
import sys
import sysconfig
from enum import Enum
from functools import lru_cache
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

__all__ = ["Origin", "library_version", "origin_of"]

_STANDARD = tuple({sysconfig.get_path(name) for name in ("stdlib", "platstdlib")})
_INSTALLED = frozenset({"site-packages", "dist-packages"})
# Ours too, but what everything speaks, what takes secrets out and where programs are run decides no score.
_CONTRACTS = frozenset({
    *("themis.interfaces", "themis.exceptions", "themis.core.entities", "themis.core.registry", "themis.core.secrets"),
    *("themis.core.redaction", "themis.evaluation.sandbox.execution", "themis.evaluation.sandbox.launch"),
    *("themis.evaluation.sandbox.protection", "themis.evaluation.pipeline"),
})  # fmt: skip


class Origin(Enum):
    """Who answers for a module's code."""

    OWN = "own"
    THEMIS = "themis"
    CONTRACT = "contract"
    STANDARD = "standard"
    INSTALLED = "installed"

    @property
    def is_read(self) -> bool:
        """Whether the code is known by what it says, instead of by a name and a version."""
        return self in (Origin.OWN, Origin.THEMIS)


def origin_of(module: str) -> Origin:
    """Whose a module is; one that nobody could import (typed in, built by a program) is the user's own."""
    if module.partition(".")[0] == "themis":
        return Origin.CONTRACT if module in _CONTRACTS else Origin.THEMIS
    if module in ("__main__", "__mp_main__"):
        return Origin.OWN
    loaded = sys.modules.get(module)
    return _origin_of_file(module, getattr(loaded, "__file__", None) if loaded is not None else _file_of(module))


@lru_cache(maxsize=4_096)
def _origin_of_file(module: str, file: str | None) -> Origin:
    if file is None:
        return Origin.STANDARD if module.partition(".")[0] in sys.stdlib_module_names else Origin.OWN
    if not _INSTALLED.isdisjoint(Path(file).parts):
        return Origin.INSTALLED
    return Origin.STANDARD if file.startswith(_STANDARD) else Origin.OWN


def _file_of(module: str) -> str | None:
    """Where a module that is not loaded would come from; its package is looked for, and nothing is run."""
    top = module.partition(".")[0]
    try:
        spec = find_spec(top)
    except (ImportError, ValueError, AttributeError):
        return None
    return spec.origin if spec is not None and spec.has_location else None


@lru_cache(maxsize=1_024)
def library_version(top: str) -> str:
    """The version of the distribution that an importable name belongs to, and a digest of its files where that says more."""
    distribution = _distribution(top)
    if distribution is None:
        loaded = sys.modules.get(top)
        file = getattr(loaded, "__file__", None) or _file_of(top)
        if file is not None and not file.endswith(".py") and Path(file).is_file():
            # Compiled, and of the user's own making.
            return "sha256 " + hashlib.sha256(Path(file).read_bytes()).hexdigest()[:16]
        return "absent" if file is None and loaded is None else str(getattr(loaded, "__version__", "unknown"))
    if distribution.read_text("direct_url.json") is None:
        return distribution.version
    code = sorted(line for line in (distribution.read_text("RECORD") or "").splitlines() if ".py,sha256=" in line)
    return f"{distribution.version}, files {hashlib.sha256(chr(10).join(code).encode()).hexdigest()[:16]}"


def _distribution(top: str) -> metadata.Distribution | None:
    try:
        return metadata.distribution(top)
    except (metadata.PackageNotFoundError, ValueError):
        pass
    # Some are installed under another name than they are imported by: yaml is PyYAML's.
    names = _distributions_by_package().get(top, ())
    return metadata.distribution(sorted(names)[0]) if names else None


@lru_cache(maxsize=1)
def _distributions_by_package() -> dict[str, list[str]]:
    return dict(metadata.packages_distributions())
