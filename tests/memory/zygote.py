"""A process that has imported everything and forks one run of the small tests for every line it reads.

Lines are `URL FOLDER SOURCE COMMITS`: the agent's server (or `oracle`), where the store is, whether the tests are `given` or
the run generates their definitions (`generating`), and how many commits the child lives (0: to its end). It answers with the
child's process id, and with `ended CODE` when the child is gone.
"""

from __future__ import annotations

import os
import signal
import sys
import traceback
from pathlib import Path
from typing import Any

import sqlalchemy

import themis.memory.driver
import themis.runs.report
from tests.memory.small_tests import YesJudge, benchmark, register_small_tests, store_in
from themis.memory.agents.agent import Agent, AgentSettings
from themis.memory.agents.calibration import Oracle
from themis.memory.agents.http import HttpAgent

# A run that generates has a test whose stored waits must be exact; errands are long enough for that alone.
GENERATED = {"errands": 1, "promises": 1, "orders": 1}


def play(url: str, folder: str, source: str) -> None:
    storage = store_in(Path(folder))

    def make(session: str) -> Agent:
        if url == "oracle":
            return Oracle()
        agent = HttpAgent(url, AgentSettings(session=session, is_local=True))
        agent.first_delay_seconds = 0.01
        return agent

    settings: dict[str, Any] = {}
    if source == "generating":
        settings = {"counts": GENERATED, "span": 1_200, "generated_in": storage}
    themis.memory.driver.run(
        benchmark(agent_name="http", make_agent=make, judge=YesJudge(), **settings),
        storage,
    )


def die_before_commit(number: int) -> None:
    """Kills this process just before its commit of this number, counted from 1."""
    seen = 0

    def count(connection: sqlalchemy.Connection) -> None:
        nonlocal seen
        seen += 1
        if seen == number:
            os.kill(os.getpid(), signal.SIGKILL)

    sqlalchemy.event.listen(sqlalchemy.Engine, "commit", count)


def main() -> None:
    # What a run imports late is imported now, so that a child spends its life running.
    assert themis.runs.report
    register_small_tests()
    for line in sys.stdin:
        url, folder, source, commits = line.split()
        child = os.fork()
        if child == 0:
            code = 1
            try:
                if commits != "0":
                    die_before_commit(int(commits))
                play(url, folder, source)
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
