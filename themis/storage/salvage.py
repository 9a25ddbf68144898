"""Makes the runs of a salvaged store fit what is left of them, and says what each has lost.

Second half of `storage.maintenance`'s repair. What a run lacks is told by what it should have: the rows of its dataset by their
number, calls by the index that still names them or by scores of them, a finished run's by the run, a conversation's rows by
their numbers.
"""

from __future__ import annotations

import shlex
import sqlite3
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from themis.core.codec import canonical_json, decode, digest
from themis.storage import schema
from themis.storage.runs import RunStatus

# A test of a conversation has a verdict under the metric of all tests and one under its own kind's.
_VERDICTS_OF_A_TEST = 2
# How a run was started stands in its configuration under the first of these names, in older stores under the second.
_STARTED_AS = ("specification", "invocation")
_SNAPSHOTS = "agent-snapshot%"
_ENDED = (RunStatus.COMPLETED.value, RunStatus.IN_PROGRESS.value)


@dataclass
class Loss:
    """What one run has lost; positions count from 0 in the run's dataset. `advice` is what brings it back."""

    run_id: str
    # Answers to ask for again.
    answers: list[int] = field(default_factory=list)
    # Rows of the dataset, which the store alone cannot bring back.
    rows: list[int] = field(default_factory=list)
    # Verdicts on answers that are there.
    verdicts: list[int] = field(default_factory=list)
    # Exchanges and events of a conversation: those that are gone, with all that followed them.
    turns: int = 0
    turns_kept: int = 0
    # The run's own row, or a file that belongs to it.
    other: str = ""
    advice: str = ""

    def __bool__(self) -> bool:
        return bool(self.answers or self.rows or self.verdicts or self.turns or self.other)

    def __str__(self) -> str:
        parts = [
            f"{len(lost):,} {what} lost (positions {spans(lost)})"
            for what, lost in (
                ("answers", self.answers),
                ("rows of the dataset", self.rows),
                ("samples' verdicts", self.verdicts),
            )
            if lost
        ]
        if self.turns:
            parts.append(f"{self.turns:,} rows of the conversation lost, {self.turns_kept:,} kept")
        parts += [self.other] if self.other else []
        return f"{', '.join(parts)}. {self.advice}"


def spans(positions: Sequence[int]) -> str:
    """`3, 7-9`: sorted numbers, those that follow each other as one."""
    found: list[list[int]] = []
    for position in positions:
        if found and position == found[-1][1] + 1:
            found[-1][1] = position
        else:
            found.append([position, position])
    return ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in found)


def salvage_runs(new: sqlite3.Connection, location: str | Path, *, has_lost_runs: bool) -> list[Loss]:
    """Settles every run and returns those that lost something. `new` has the calls that an index tells of in `seen`."""
    new.row_factory = sqlite3.Row
    new.execute("CREATE INDEX temp.seen_by_run ON seen (run, position, attempt)")
    new.execute("UPDATE runs SET lease_holder = NULL, lease_until = NULL")
    if has_lost_runs:
        _recover_runs(new)
    _delete_orphans(new)
    _recover_samples(new)
    losses = [_salvage_run(new, run, location) for run in new.execute("SELECT * FROM runs ORDER BY run").fetchall()]
    return [loss for loss in losses if loss]


def _recover_runs(new: sqlite3.Connection) -> None:
    """Gives rows whose run is gone a run of their own, so that they can be read."""
    tables = ("samples", "records", "turns", "evaluations")
    numbers = " UNION ".join(f"SELECT run FROM {table}" for table in tables)
    for (run,) in new.execute(f"SELECT run FROM ({numbers}) WHERE run NOT IN (SELECT run FROM runs)").fetchall():
        (turns,) = new.execute("SELECT count(*) FROM turns WHERE run = ?", (run,)).fetchone()
        places = (
            f"SELECT position FROM samples WHERE run = {run:d} UNION SELECT position FROM records WHERE run = {run:d}"
        )
        (last_place,) = new.execute(f"SELECT max(position) FROM ({places})").fetchone()
        (evaluation,) = new.execute("SELECT max(evaluation) FROM evaluations WHERE run = ?", (run,)).fetchone()
        times = (
            f"SELECT created_at FROM records WHERE run = {run:d} UNION SELECT created_at FROM turns WHERE run = {run:d}"
        )
        first, last = new.execute(f"SELECT min(created_at), max(created_at) FROM ({times})").fetchone()
        now = time.time()
        values = {
            **schema.RUN_DEFAULTS,
            "run": run,
            "run_id": f"recovered-{run}",
            "kind": "memory" if turns else "samples",
            "experiment_id": "default",
            "status": RunStatus.FAILED.value,
            "model": "",
            "evaluation": evaluation,
            "created_at": first or now,
            "updated_at": last or now,
            "planned": 1,
            "total": (last_place or 0) + 1,
            "identity": "{}",
            "config": "{}",
            "tags": "{}",
        }
        names, marks = ", ".join(values), ", ".join("?" for _ in values)
        new.execute(f"INSERT OR IGNORE INTO runs ({names}) VALUES ({marks})", list(values.values()))


def _recover_samples(new: sqlite3.Connection) -> None:
    """Gives answers whose row is gone a row of their own, in runs that no dataset can bring it back to."""
    here = "SELECT 1 FROM samples JOIN items USING (fingerprint) WHERE samples.run = records.run"
    query = (
        f"SELECT DISTINCT run, position FROM records WHERE NOT EXISTS ({here} AND samples.position = records.position)"
    )
    configs = {run: decode(config) for run, config in new.execute("SELECT run, config FROM runs")}
    for run, position in new.execute(query).fetchall():
        if _find_start(configs[run]):
            continue
        content = canonical_json({"lost_row": position})
        new.execute("INSERT OR IGNORE INTO items VALUES (?, ?)", (digest(content), content))
        old = new.execute("SELECT item_id FROM samples WHERE run = ? AND position = ?", (run, position)).fetchone()
        values = (run, position, old[0] if old else f"lost-row-{position}", digest(content))
        new.execute("INSERT OR REPLACE INTO samples VALUES (?, ?, ?, ?, NULL)", values)


def _delete_orphans(new: sqlite3.Connection) -> None:
    """Removes what belongs to no run: a flipped bit in a number puts a row where nobody looks."""
    for table in ("samples", "records", "steps", "batches", "turns", "evaluations", "artifacts"):
        new.execute(f"DELETE FROM {table} WHERE run NOT IN (SELECT run FROM runs)")
    new.execute("DELETE FROM scores WHERE evaluation NOT IN (SELECT evaluation FROM evaluations)")
    new.execute("UPDATE runs SET evaluation = NULL WHERE evaluation NOT IN (SELECT evaluation FROM evaluations)")
    new.execute(
        "DELETE FROM records WHERE EXISTS (SELECT 1 FROM runs WHERE runs.run = records.run AND planned = 1 AND "
        "position NOT BETWEEN 0 AND total - 1)"
    )


def _salvage_run(new: sqlite3.Connection, run: sqlite3.Row, location: str | Path) -> Loss:
    loss, config = Loss(run["run_id"]), decode(run["config"])
    has_ended = run["status"] == RunStatus.COMPLETED.value
    if run["config"] == "{}" and run["run_id"] == f"recovered-{run['run']}":
        loss.other = "the description of the run lost: it has a new name"
        loss.rows = _find_placeholders(new, run)
        new.execute(
            "UPDATE runs SET total = (SELECT count(*) FROM samples WHERE run = ?) WHERE run = ?", (run["run"],) * 2
        )
    elif _is_played_here(run, config):
        _truncate_conversation(new, run, loss, isolated=bool(config.get("memory", {}).get("isolated")))
        loss.rows = _find_lost_rows(new, run)
    else:
        is_ours = bool(_find_start(config))
        attempts = config.get("task", {}).get("attempts", 1) if is_ours else 1
        loss.rows = _find_lost_rows(new, run) if is_ours else _find_placeholders(new, run)
        loss.answers = _find_lost_answers(new, run, attempts if has_ended else 0)
        loss.verdicts = _find_lost_scores(new, run, is_whole=has_ended, same_metrics=is_ours)
    if loss:
        loss.advice = _advice(loss, run, config, location)
        _update(new, run, loss)
    return loss


def _find_start(config: Mapping[str, Any]) -> Mapping[str, object]:
    """How a run was started; empty for one that was not made here."""
    return next((config[name] for name in _STARTED_AS if config.get(name)), {})


def _is_played_here(run: sqlite3.Row, config: Mapping[str, object]) -> bool:
    """Whether it is a memory run that can be replayed, rather than an imported one."""
    return run["kind"] == "memory" and "memory" in config and "imported_from" not in decode(run["tags"])


def _read_value(new: sqlite3.Connection, query: str, *values: object) -> Any:
    return new.execute(query, values).fetchone()[0]


def _read_positions(new: sqlite3.Connection, query: str, *values: object) -> set[int]:
    return {position for (position,) in new.execute(query, values)}


def _advice(loss: Loss, run: sqlite3.Row, config: Mapping[str, object], location: str | Path) -> str:
    where = "" if str(location) == ".cache/experiments" else f" --storage {shlex.quote(str(location))}"
    resume = f"`themis resume {shlex.quote(loss.run_id)}{where}`"
    start = _find_start(config)
    if start.get("needs_program") or (not start and _is_played_here(run, config)):
        resume = "the program that made it, run again,"
    elif not start:
        return "It was not made by Themis here, so it can be read but not gone on with; import it again"
    if loss.rows:
        return (
            "Run what made it again, with the same dataset and run id: it stores those rows anew and asks only for what is "
            f"missing. If the dataset is a file or a benchmark, {resume} does that"
        )
    if loss.turns or loss.other:
        return f"{resume} goes on from the last exchange before the gap"
    if run["kind"] == "memory":
        return f"{resume} restores it from the stored conversation"
    return f"{resume} asks for them again" if loss.answers else f"{resume} judges them again"


def _update(new: sqlite3.Connection, run: sqlite3.Row, loss: Loss) -> None:
    """A run that lacks something is not completed, and what was reported of it no longer holds."""
    status = RunStatus.INTERRUPTED.value if run["status"] in _ENDED else run["status"]
    answered = "SELECT max(ok) AS ok FROM records WHERE run = ? GROUP BY position"
    good, total = new.execute(f"SELECT coalesce(sum(ok), 0), count(*) FROM ({answered})", (run["run"],)).fetchone()
    new.execute(
        "UPDATE runs SET status = ?, error = ?, summary = NULL, completed_at = NULL, succeeded = ?, failed = ? WHERE run = ?",
        (status, f"in the repair of a damaged store: {loss}", good, total - good, run["run"]),
    )


# --- samples ----------------------------------------------------------------------------------------------------------


def _find_lost_rows(new: sqlite3.Connection, run: sqlite3.Row) -> list[int]:
    if not run["planned"]:
        return []
    new.execute(
        "DELETE FROM samples WHERE run = ? AND fingerprint NOT IN (SELECT fingerprint FROM items)", (run["run"],)
    )
    present = _read_positions(new, "SELECT position FROM samples WHERE run = ?", run["run"])
    return [position for position in range(_total(new, run)) if position not in present]


def _find_placeholders(new: sqlite3.Connection, run: sqlite3.Row) -> list[int]:
    """Positions whose row was lost and has another in its place."""
    query = (
        "SELECT position FROM samples JOIN items USING (fingerprint) WHERE run = ? AND content LIKE '{\"lost_row\":%'"
    )
    return sorted(_read_positions(new, query, run["run"]))


def _total(new: sqlite3.Connection, run: sqlite3.Row) -> int:
    """How many rows the run has. A number that a flipped bit made huge is not believed."""
    highest = max(
        _read_value(new, f"SELECT max(position) FROM {t} WHERE run = ?", run["run"]) or 0
        for t in ("samples", "records")
    )
    return int(run["total"]) if run["total"] <= 1_000_000 + 2 * highest else highest + 1


def _find_lost_answers(new: sqlite3.Connection, run: sqlite3.Row, attempts: int) -> list[int]:
    """Positions whose answers are known to be gone: those of all `attempts`, or, where that is 0, what is told elsewhere."""
    number = run["run"]
    gone = "NOT EXISTS (SELECT 1 FROM records WHERE records.run = ? AND records.position = {0}.position {1})"
    told = f"SELECT position FROM seen WHERE run = ? AND {gone.format('seen', 'AND records.attempt = seen.attempt')}"
    mine = "evaluation IN (SELECT evaluation FROM evaluations WHERE run = ?)"
    judged = f"SELECT position FROM scores WHERE {mine} AND {gone.format('scores', '')}"
    lost = _read_positions(new, f"{told} UNION {judged}", *(number,) * 4)
    if attempts:
        whole = "SELECT position FROM records WHERE run = ? AND attempt < ? GROUP BY position HAVING count(*) >= ?"
        present = _read_positions(new, whole, number, attempts, attempts)
        lost.update(position for position in range(_total(new, run)) if position not in present)
    # A verdict on an answer that is gone would count as if it were there.
    new.execute(f"DELETE FROM scores WHERE {mine} AND {gone.format('scores', '')}", (number, number))
    return sorted(position for position in lost if not run["planned"] or 0 <= position < run["total"])


def _find_lost_scores(new: sqlite3.Connection, run: sqlite3.Row, *, is_whole: bool, same_metrics: bool) -> list[int]:
    """Answered samples that have lost verdicts. One that has only some of them is left with none: it is judged as a whole."""
    if run["evaluation"] is None:
        return _answered_positions(new, run) if is_whole else []
    evaluation = run["evaluation"]
    if same_metrics:
        metrics = _read_value(new, "SELECT count(DISTINCT metric) FROM scores WHERE evaluation = ?", evaluation)
        whole = "count(DISTINCT metric) = ?"
    else:
        metrics, whole = 1, "1 = ?"
    # The rows of one metric are numbered from 0.
    gap = (
        "SELECT position FROM scores WHERE evaluation = ? GROUP BY position, metric HAVING max(ordinal) + 1 > count(*)"
    )
    kept = f"SELECT position FROM scores WHERE evaluation = ? GROUP BY position HAVING {whole}"
    values = (evaluation, evaluation, metrics, evaluation)
    new.execute(
        f"DELETE FROM scores WHERE evaluation = ? AND (position NOT IN ({kept}) OR position IN ({gap}))", values
    )
    if not is_whole:
        return []
    judged = _read_positions(new, "SELECT position FROM scores WHERE evaluation = ?", evaluation)
    return [position for position in _answered_positions(new, run) if position not in judged]


def _answered_positions(new: sqlite3.Connection, run: sqlite3.Row) -> list[int]:
    return sorted(_read_positions(new, "SELECT position FROM records WHERE run = ? AND ok = 1", run["run"]))


# --- conversations ----------------------------------------------------------------------------------------------------


def _truncate_conversation(new: sqlite3.Connection, run: sqlite3.Row, loss: Loss, *, isolated: bool) -> None:
    """Cuts the tape where it has a gap, and removes every test that the rest of it does not end: replaying enters it again."""
    number = run["run"]
    rows_before_cut = _read_value(new, "SELECT max(seq) + 1 FROM turns WHERE run = ?", number) or 0
    for conversation, first in _find_cuts(new, number, isolated=isolated):
        of_conversation = "" if conversation is None else " AND test_id = ?"
        new.execute(
            f"DELETE FROM turns WHERE run = ? AND seq >= ?{of_conversation}",
            (number, first, *([conversation] if conversation else [])),
        )
    loss.turns_kept = _read_value(new, "SELECT count(*) FROM turns WHERE run = ?", number)
    loss.turns = rows_before_cut - loss.turns_kept
    ended = "SELECT test_id FROM turns WHERE run = samples.run AND kind = 'end'"
    verdicts = "SELECT count(*) FROM scores WHERE evaluation = ? AND scores.position = samples.position"
    query = (
        "SELECT position FROM samples JOIN records USING (run, position) WHERE run = ? AND "
        f"(item_id NOT IN ({ended}) OR ({verdicts}) < ?)"
    )
    incomplete = _read_positions(new, query, number, run["evaluation"], _VERDICTS_OF_A_TEST)
    if run["status"] == RunStatus.COMPLETED.value:
        held = _read_positions(new, "SELECT position FROM records WHERE run = ?", number)
        incomplete.update(position for position in range(_total(new, run)) if position not in held)
    mine = "SELECT evaluation FROM evaluations WHERE run = ?"
    for position in incomplete:
        new.execute("DELETE FROM records WHERE run = ? AND position = ?", (number, position))
        new.execute(f"DELETE FROM scores WHERE position = ? AND evaluation IN ({mine})", (position, number))
    loss.answers = sorted(incomplete)
    if not loss.turns and _read_value(
        new, f"SELECT count(*) FROM samples WHERE run = ? AND item_id NOT IN ({ended})", number
    ):
        loss.other = "the end of the conversation lost" if incomplete else ""
    if loss or _snapshot_is_newer(new, number):
        # The agent's saved memory may be of exchanges that are gone.
        new.execute("DELETE FROM artifacts WHERE run = ? AND name LIKE ?", (number, _SNAPSHOTS))


def _find_cuts(new: sqlite3.Connection, run: int, *, isolated: bool) -> list[tuple[str | None, int]]:
    """From which row on a conversation cannot be replayed: of the one there is, or of each test's own."""
    rows = new.execute("SELECT seq, kind, test_id FROM turns WHERE run = ? ORDER BY seq", (run,)).fetchall()
    gaps, expected = list[int](), 0
    for row in rows:
        if row["seq"] != expected:
            gaps.append(expected)
        expected = row["seq"] + 1
    if not isolated:
        return [(None, gap) for gap in gaps[:1]]
    cuts: dict[str, int] = {}
    for gap in gaps:
        for conversation, first in _open_conversations(rows, gap):
            cuts.setdefault(conversation, first)
    return list(cuts.items())


def _open_conversations(rows: Sequence[sqlite3.Row], gap: int) -> Iterator[tuple[str, int]]:
    """Tests of which a row may be missing at the gap: not ended before it, or not begun after it."""
    # What a judge was asked after the end is no part of a conversation.
    said = [row for row in rows if row["kind"] != "reconsult"]
    before: dict[str, str] = {row["test_id"]: row["kind"] for row in said if row["seq"] < gap}
    after: dict[str, str] = {row["test_id"]: row["kind"] for row in reversed(said) if row["seq"] > gap}
    for conversation in before.keys() | after.keys():
        if before.get(conversation, "end") != "end" or after.get(conversation, "begin") != "begin":
            yield conversation, gap


def _snapshot_is_newer(new: sqlite3.Connection, run: int) -> bool:
    """Whether the agent's saved memory is of a later turn than the last that is stored."""
    query = "SELECT content FROM artifacts WHERE run = ? AND name LIKE ?"
    known = [int.from_bytes(content[:8], "big") for (content,) in new.execute(query, (run, _SNAPSHOTS))]
    bodies = new.execute("SELECT body FROM turns WHERE run = ? AND kind = 'reply' ORDER BY seq DESC LIMIT 1", (run,))
    last = max((decode(body).get("turn", 0) for (body,) in bodies), default=0)
    return max(known, default=0) > last
