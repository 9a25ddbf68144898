"""The examples run as they are, and are as short as the guide says."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples" / "memory"


@pytest.mark.parametrize(
    ("name", "scores"),
    [
        ("new_test", {"oracle": "1.00", "window(300)": "0.00"}),
        ("callback_test", {"oracle": "1.00"}),
        ("dynamic_test", {"oracle": "1.00", "amnesiac": "0.00"}),
        ("new_agent", {}),
    ],
)
def test_an_example_runs_and_scores_what_it_must(name, scores):
    done = subprocess.run([sys.executable, f"{name}.py"], cwd=EXAMPLES, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
    means = {line.split()[0]: line.split()[2] for line in done.stdout.splitlines()}
    assert scores.items() <= means.items()


def test_an_agent_behind_http_takes_sixty_lines():
    lines = [line for line in (EXAMPLES / "http_agent_server.py").read_text().splitlines() if line.strip()]

    assert len(lines) <= 60
