"""Memory depends on what is in flight, not on the size of the run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

PROGRAM = Path(__file__).with_name("streamed_run.py")


def test_a_hundred_thousand_rows_from_a_generator_fit_into_300_mb_of_address_space(tmp_path):
    # Threads of a linear-algebra library reserve address space that nobody uses.
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, str(PROGRAM), str(tmp_path), "100000", "300"],
        capture_output=True, text=True, env=environment, timeout=900,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    mean, scored, read_back, _ = done.stdout.split()
    assert (float(mean), int(scored), int(read_back)) == (1.0, 100_000, 100_000)
