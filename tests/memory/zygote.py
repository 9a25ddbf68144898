"""A process that has imported everything and forks one run of the small tests for every line it reads.

Lines are `URL FOLDER`; it answers with the child's process id, and with `ended CODE` when the child is gone.
"""

from __future__ import annotations

import os
import sys
import traceback
from pathlib import Path

import themis.experiment.report
import themis.memory.runner
from tests.memory.small_tests import YesJudge, benchmark, store_in
from themis.memory.agents.http import HttpAgent


def play(url: str, folder: str) -> None:
    themis.memory.runner.run(
        benchmark(
            agent_name="http",
            make_agent=lambda session: HttpAgent(url, session, first_delay_seconds=0.01, is_local=True),
            judge=YesJudge(),
        ),
        store_in(Path(folder)),
    )


def main() -> None:
    # What a run imports late is imported now, so that a child spends its life running.
    assert themis.experiment.report
    for line in sys.stdin:
        url, folder = line.split()
        child = os.fork()
        if child == 0:
            code = 1
            try:
                play(url, folder)
                code = 0
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(code)
        print(child, flush=True)
        _, status = os.waitpid(child, 0)
        print("ended", os.waitstatus_to_exitcode(status), flush=True)


if __name__ == "__main__":
    main()
