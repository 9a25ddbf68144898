"""Where the tests of the tutorial run: a copy of the examples in a folder of its own, with no way out of the machine."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from themis.generation.models import models_dir

REPOSITORY = Path(__file__).parents[2]
PAGE = REPOSITORY / "docs" / "guides" / "countdown-tutorial.md"
EXAMPLES = REPOSITORY / "examples" / "countdown"
# Nothing listens at this port.
NOWHERE = "http://127.0.0.1:9"


def working_copy(root: Path) -> Path:
    """As a fresh clone is, as far as the scripts look at it."""
    leave = shutil.ignore_patterns("__pycache__")
    shutil.copytree(EXAMPLES, root / "examples" / "countdown", ignore=leave)
    return root


def offline_environment(root: Path, **changes: str) -> dict[str, str]:
    """Neither Hub nor endpoint nor tracker can be reached, and nothing that the developer has set is seen."""
    prefixes = ("COUNTDOWN_", "HF_", "MLFLOW_", "THEMIS_", "WANDB_", "PYTHONPATH")
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(prefixes) and not name.lower().endswith("_proxy")
    }
    return {
        **kept,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(root),
        "HF_ENDPOINT": NOWHERE,
        "HF_HOME": str(root / "hub"),
        "COUNTDOWN_API_BASE": f"{NOWHERE}/api/v1/chat",
        "WANDB_SILENT": "true",
        "THEMIS_NO_DOTENV": "1",
        "THEMIS_MODELS_DIR": str(models_dir()),
        **changes,
    }


def run(root: Path, *command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """One command in the copy; the models that are installed on this machine are there for it."""
    return subprocess.run(
        command,
        cwd=root,
        env=offline_environment(root, **environment),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
    )


def script(root: Path, name: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return run(root, sys.executable, f"examples/countdown/{name}", **environment)
