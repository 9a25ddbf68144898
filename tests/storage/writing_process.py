"""A process that writes a run and says what it has committed: `python writing_process.py LOCATION RUN MODE [LEASE_SECONDS]`.

hold    takes the run, says `holding`, waits for a line, commits once more, says `committed` or what went wrong
batches writes batches of seven calls with their scores until it is stopped; says how many calls are committed after each
all     writes a whole run of 210 samples and completes it
"""

from __future__ import annotations

import itertools
import sys

from tests.storage.stored_runs import FRAME, answered, call, item, judged, rows
from themis.core.entities import MetricScore
from themis.exceptions import StorageError
from themis.storage import ExperimentStorage, RunStatus, writing
from themis.storage.writing import RunWriter

BATCH = 7
PLANNED = 7_000


def say(text: object) -> None:
    print(text, flush=True)


def hold(writer: RunWriter) -> None:
    say("holding")
    sys.stdin.readline()
    try:
        writer.update(error="written by the holder")
        say("committed")
    except StorageError as error:
        say(f"{type(error).__name__}: {error}")


def batches(writer: RunWriter, total: int | None = None) -> None:
    samples = rows(PLANNED if total is None else total)
    writer.store_dataset(item(n, row) for n, row in enumerate(samples))
    evaluation = writer.open_evaluation("e" * 32, {})
    say(0)
    for start in itertools.count(0, BATCH) if total is None else range(0, total, BATCH):
        records = [(n, answered(samples[n])) for n in range(start, start + BATCH)]
        writer.commit_results([call(n, record, prompt_tokens=1) for n, record in records])
        verdicts = [verdict for n, record in records for verdict in judged(n, record, MetricScore("Match", 1.0))]
        writer.commit_scores(evaluation, verdicts)
        say(start + BATCH)


def main() -> None:
    location, run_id, mode, *lease = sys.argv[1:]
    if lease:
        writing.LEASE_SECONDS = float(lease[0])
    storage = ExperimentStorage(location)
    if not storage.run_exists(run_id):
        storage.start_run(run_id, config={"task": FRAME.to_config()})
    with storage.open_run(run_id) as writer:
        if mode == "hold":
            hold(writer)
        elif mode == "batches":
            batches(writer)
        else:
            batches(writer, total=210)
            writer.finish(RunStatus.COMPLETED)


if __name__ == "__main__":
    main()
