"""Brings a store that an older Themis wrote to the schema: an ordered list of functions, applied by `database` on opening."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from themis.core.codec import decode, encode, read_word
from themis.core.messages import REASONING_MARKS, read_messages, split_reasoning
from themis.exceptions import ConfigurationError
from themis.storage import schema
from themis.storage.schema import artifacts, attachments, batches, definitions, records, runs, steps


def _create_tables(connection: Connection) -> None:
    schema.metadata.create_all(connection)


def _create_indexes(connection: Connection) -> None:
    """Indexes that were added to tables which older stores have already."""
    for table in (runs, records):
        for index in table.indexes:
            index.create(connection, checkfirst=True)


def _add_column(name: str, declared: str, connection: Connection) -> None:
    """A column that was added to a table which older stores have already."""
    if name not in {column["name"] for column in sa.inspect(connection).get_columns("runs")}:
        connection.exec_driver_sql(f"ALTER TABLE runs ADD COLUMN {name} {declared}")


def _create_steps(connection: Connection) -> None:
    for table in (steps, attachments):
        table.create(connection, checkfirst=True)


def _create_batches(connection: Connection) -> None:
    batches.create(connection, checkfirst=True)


def _create_definitions(connection: Connection) -> None:
    definitions.create(connection, checkfirst=True)
    move_definitions(connection)


def move_definitions(connection: Connection) -> None:
    """Moves definitions out of the runs `definitions NAME` and `definitions NAME@n` that older stores keep them in."""
    archived: dict[str, int] = {}
    query = (
        sa.select(runs.c.run_id, runs.c.benchmark, runs.c.config, runs.c.created_at, artifacts.c.content)
        .join(artifacts, (artifacts.c.run == runs.c.run) & (artifacts.c.name == "definitions.json"))
        .where(runs.c.kind == "definitions", runs.c.status == "completed")
    )
    found = [(row, row.run_id.rpartition("@")[2]) for row in connection.execute(query)]
    # The one without a number is the newest.
    for row, number in sorted(found, key=lambda one: (not one[1].isdigit(), one[1].zfill(9))):
        name = row.benchmark or ""
        version = archived[name] = int(number) if number.isdigit() else archived.get(name, 0) + 1
        config = decode(row.config)
        values = {
            "name": name,
            "version": version,
            "created_at": row.created_at,
            "configuration": config.get("configuration", ""),
            "digest": config.get("digest", ""),
            "content": bytes(row.content).decode("utf-8", "replace"),
        }
        connection.execute(sa.insert(definitions).values(**values))
    theirs = sa.select(runs.c.run).where(runs.c.kind == "definitions")
    connection.execute(sa.delete(artifacts).where(artifacts.c.run.in_(theirs)))
    connection.execute(sa.delete(runs).where(runs.c.kind == "definitions"))


# What older stores keep of an answer in what the provider sent.
_MOVED_PARTS = ("finish_reason", "reasoning", "tool_calls", "refusal", "logprobs")
_FINISH_REASONS = {"end_turn": "stop", "stop_sequence": "stop", "max_tokens": "length", "tool_use": "tool_calls"}
_MIGRATED_TOGETHER = 500


def separate_parts(connection: Connection) -> None:
    """Reasoning, tool calls, refusals and why an answer ended, where older stores keep them in what the provider sent."""
    _rewrite_bodies(connection, sa.or_(*(records.c.body.contains(f'"{n}"') for n in _MOVED_PARTS)), _move_parts)


def separate_reasoning(connection: Connection) -> None:
    """Thoughts in tags, where older stores keep them in the answer."""
    of_samples = records.c.run.in_(sa.select(runs.c.run).where(runs.c.kind == "samples"))
    tagged = sa.or_(*(records.c.body.icontains(mark, autoescape=True) for mark in REASONING_MARKS))
    _rewrite_bodies(connection, of_samples & tagged, _move_reasoning)


def _rewrite_bodies(connection: Connection, condition: schema.AnyColumn, rewrite: Callable[[str], str | None]) -> None:
    """Stored answers that meet a condition, changed, some at a time; None leaves one as it is."""
    key = (records.c.run, records.c.position, records.c.attempt)
    query = sa.select(*key, records.c.body).where(condition)
    last: tuple[int, ...] = (-1, -1, -1)
    while rows := connection.execute(
        query.where(sa.tuple_(*key) > sa.tuple_(*last)).order_by(*key).limit(_MIGRATED_TOGETHER)
    ).all():
        last = tuple(rows[-1][:3])
        for run, position, attempt, body in rows:
            changed = rewrite(body)
            if changed is not None:
                here = (records.c.run == run) & (records.c.position == position) & (records.c.attempt == attempt)
                connection.execute(sa.update(records).where(here).values(body=changed))


def _move_reasoning(body: str) -> str | None:
    try:
        stored = decode(body)
    except ValueError:
        return None
    text = stored.get("text") if isinstance(stored, dict) else None
    if not isinstance(text, str) or stored.get("reasoning") is not None:
        return None
    reasoning, answer = split_reasoning(text)
    return None if reasoning is None else encode({**stored, "text": answer, "reasoning": reasoning})


def _move_parts(body: str) -> str | None:
    """The body with its parts apart; None where there is nothing to move, or it cannot be read."""
    try:
        stored = decode(body)
    except ValueError:
        return None
    raw = stored.get("raw") if isinstance(stored, dict) else None
    if not isinstance(raw, dict) or not raw.keys() & set(_MOVED_PARTS):
        return None
    for name in _MOVED_PARTS:
        value = raw.pop(name, None)
        if name == "finish_reason" and value is not None:
            stored[name] = _FINISH_REASONS.get(str(value), str(value))
        elif name in ("reasoning", "refusal") and value:
            stored[name] = value if isinstance(value, str) else encode(value)
        elif name == "tool_calls" and isinstance(value, list):
            calls = [call for call in value if isinstance(call, dict)]
            stored[name] = read_messages([{"role": "assistant", "tool_calls": calls}])[0].get(name, [])
        elif name == "logprobs" and value:
            stored[name] = value
    if not raw:
        del stored["raw"]
    return encode(stored)


# Options of the commands that older stores keep for memory runs, and the setting that each is.
_COMMAND_SETTINGS = {
    "-c": "configuration",
    "-a": "agent",
    "-m": "max_prompt_tokens",
    "--span": "span_tokens",
    "--seed": "seed",
    "--judge": "judge",
    "--filler": "filler",
    "--clock": "clock",
    "--max-message-tokens": "max_message_tokens",
    "--budget-usd": "budget_usd",
    "--definitions": "definitions",
    "--parallel": "workers",
}
_WHOLE_SETTINGS = ("max_prompt_tokens", "span_tokens", "seed", "max_message_tokens", "workers")


def store_specifications(connection: Connection) -> None:
    """What a run was asked to be, where older stores keep arguments of a call or the words of a command."""
    for row in connection.execute(sa.select(runs.c.run, runs.c.kind, runs.c.config)).all():
        config = decode(row.config)
        given = config.pop("invocation", None)
        if not isinstance(given, dict):
            continue
        if row.kind == "memory":
            try:
                specification = _read_command(given)
            except (ValueError, StopIteration, ConfigurationError):
                continue  # damaged: it stays as it is
        else:
            specification = {name: value for name, value in given.items() if name != "custom_pipeline"}
            if given.get("custom_pipeline"):
                specification["made_in_python"] = ["evaluation_pipeline"]
        if specification:
            config["specification"] = {"kind": row.kind, **specification}
            connection.execute(sa.update(runs).where(runs.c.run == row.run).values(config=encode(config)))


def _read_command(given: dict[str, Any]) -> dict[str, object]:
    """The settings in the words behind `themis`; none where no command started the run."""
    words, settings = iter(given.get("command") or ()), dict[str, Any]()
    options: dict[str, dict[str, object]] = {"--option": {}, "--judge-option": {}}
    for word in words:
        if word in _COMMAND_SETTINGS:
            name, value = _COMMAND_SETTINGS[word], next(words)
            settings[name] = int(value) if name in _WHOLE_SETTINGS else float(value) if name == "budget_usd" else value
        elif word in ("-i", "-l"):
            settings["isolated" if word == "-i" else "is_local"] = True
        elif word in options:
            name, _, text = next(words).partition("=")
            options[word][name] = read_word(text)
        elif word == "--load":
            settings.setdefault("load", []).append(next(words))
    if settings:
        settings |= {"agent_options": options["--option"], "judge_options": options["--judge-option"]}
        settings["needs_program"] = str(given.get("needs_program") or "")
    return {name: value for name, value in settings.items() if value not in ("", {})}


def store_system_prompts(connection: Connection) -> None:
    """What the system said, where older stores keep it among the provider's options alone: with the prompt, as it is shown."""
    of_samples = sa.select(runs.c.run, runs.c.config).where(runs.c.kind == "samples")
    for row in connection.execute(of_samples.where(runs.c.config.contains('"system_prompt"'))).all():
        config = decode(row.config)
        options = (config.get("specification") or {}).get("provider_options") or {}
        prompt = (config.get("task") or {}).get("prompt")
        if isinstance(said := options.get("system_prompt"), str) and isinstance(prompt, dict):
            prompt.setdefault("system_prompt", said)
            connection.execute(sa.update(runs).where(runs.c.run == row.run).values(config=encode(config)))


# Applied in order on opening; a store remembers how many it has had. Append only.
MIGRATIONS: list[Callable[[Connection], None]] = [
    _create_tables,
    _create_indexes,
    partial(_add_column, "unpriced_judge_calls", "BIGINT NOT NULL DEFAULT 0"),
    partial(_add_column, "cut_off", "BIGINT NOT NULL DEFAULT 0"),
    partial(_add_column, "waiting", "TEXT"),
    _create_definitions,
    store_specifications,
    _create_steps,
    separate_parts,
    _create_batches,
    partial(_add_column, "cached_tokens", "BIGINT NOT NULL DEFAULT 0"),
    partial(_add_column, "cache_write_tokens", "BIGINT NOT NULL DEFAULT 0"),
    separate_reasoning,
    store_system_prompts,
]
