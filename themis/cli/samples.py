"""One sample of a run in a terminal: what was asked, each attempt in its parts with its verdict, scores and their reasons."""

from __future__ import annotations

import math
import shutil
import sys
import textwrap
from collections.abc import Iterator, Mapping
from typing import Any

import click

from themis.cli.terminal import escape_terminal, wrap_text
from themis.core.codec import format_value
from themis.core.redaction import Redactor
from themis.core.registry import nearest
from themis.core.transcripts import ShownCall, Turn, list_turns, shorten_data
from themis.exceptions import ConfigurationError
from themis.runs.samples import messages_before, messages_of_attempt, read_sample, why_missing
from themis.storage.queries import RunReader

_PIPE_WIDTH, _WIDEST = 80, 100
# Of a text that is not shown in full: so many lines of what is said, of what a tool returned, and of what a model thought.
_LINES, _RESULT_LINES, _THOUGHT_LINES = 40, 12, 3
_LONGEST_DETAIL = 200
_MOST_SUGGESTED = 10_000
_INDENT = "  "


def find_sample(reader: RunReader, item_id: str) -> dict[str, Any]:
    """A sample that is there, with everything stored of it.

    Args:
        reader: Of the run.
        item_id: The sample.

    Raises:
        ConfigurationError: It is not there, or has no answer yet; names the nearest.
    """
    found = read_sample(reader, item_id, Redactor())
    if found is None:
        known = [sample.item_id for sample, _ in zip(reader.samples(), range(_MOST_SUGGESTED), strict=False)]
        raise ConfigurationError(f"sample {item_id!r} {why_missing(reader, item_id)}{nearest(item_id, known)}")
    return found


def print_sample(sample: Mapping[str, object], *, title: str, full: bool) -> None:
    """Prints a sample for people.

    Args:
        sample: As `find_sample` gives it.
        title: What stands above it.
        full: Whether long texts are shown to their ends.
    """
    width = min(shutil.get_terminal_size().columns, _WIDEST) if sys.stdout.isatty() else _PIPE_WIDTH
    for line in format_sample(sample, title=title, width=width, full=full):
        click.secho(line, bold=bool(line) and not line.startswith(" "))


def format_sample(sample: Mapping[str, Any], *, title: str, width: int, full: bool) -> list[str]:
    """The lines of a sample; headings stand at the beginning of theirs.

    Args:
        sample: As `find_sample` gives it.
        title: The first line.
        width: What lines keep to, as far as words allow.
        full: Whether long texts are shown to their ends.
    """
    page = _Page(width, full)
    page.add(title, 0)
    _add_scores(page, sample)
    asked = list_turns(messages_before(dict(sample)))
    if asked and (sample["prompt"] or not sample["attempts"][0]["continuations"]):
        page.add_heading("prompt")
        _add_turns(page, asked, are_named=len(asked) > 1 or not asked[0].is_plain or asked[0].role != "user")
    several = len(sample["attempts"]) > 1
    for attempt in sample["attempts"]:
        _add_attempt(page, attempt, several=several)
    if sample["reference"] is not None:
        page.add_heading("expected")
        page.add(format_value(sample["reference"]), 1, _LINES)
    return page.lines


class _Page:
    """Lines of text, none of which can steer a terminal."""

    def __init__(self, width: int, full: bool) -> None:
        self._width, self._full = width, full
        self.lines: list[str] = []

    def add(self, text: object, depth: int, most: int | None = None) -> None:
        """A text, moved in; at most so many lines of it unless all is asked for."""
        indent = _INDENT * depth
        wrapped = [
            line
            for given in escape_terminal(text).expandtabs(4).splitlines() or [""]
            for line in wrap_text(indent + given, self._width).splitlines() or [""]
        ]
        if most is not None and not self._full:
            wrapped = self._shorten(wrapped, indent, most)
        self.lines += wrapped

    def _shorten(self, wrapped: list[str], indent: str, most: int) -> list[str]:
        """So many lines at most, as a terminal counts them: a word that fills several of its lines is several."""
        rows = [max(math.ceil(len(line) / self._width), 1) for line in wrapped]
        if sum(rows) <= most + 1:
            return wrapped
        kept, room = [], most
        for line, taken in zip(wrapped, rows, strict=True):
            if taken > room:
                kept += [indent + part for part in textwrap.wrap(line.strip(), self._width - len(indent))[:room]]
                break
            kept.append(line)
            room -= taken
        return [*kept, f"{indent}… {sum(rows) - most:,} more lines (--full shows them)"]

    def add_heading(self, text: str, note: str = "") -> None:
        self.lines.append("")
        self.add(f"{text}  {note}" if note else text, 0)


# --- scores -------------------------------------------------------------------------------------------------------------


def _add_scores(page: _Page, sample: Mapping[str, Any]) -> None:
    page.add_heading("scores")
    for score in sample["verdicts"]:
        number = score["metadata"].get("of_attempt") if len(sample["attempts"]) > 1 else None
        of_attempt = "" if number is None else f"  (attempt {number + 1})"
        unparsed = "  no answer could be read" if score["metadata"].get("outcome") == "unparsed" else ""
        page.add(f"{score['metric']}  {score['value']:.4g}{of_attempt}{unparsed}", 1)
        for line in _list_details(score["details"]):
            page.add(line, 2, _LINES)
    for reason in sample["failures"]:
        page.add(f"failed: {reason}", 1)
    if not sample["verdicts"] and not sample["failures"]:
        page.add("none", 1)


def _list_details(details: Mapping[str, object]) -> Iterator[str]:
    for name, value in details.items():
        shown = f"{value:.4g}" if isinstance(value, float) else format_value(value)
        is_long = len(shown) > _LONGEST_DETAIL and name not in ("reason", "error")
        yield f"{name.replace('_', ' ')}: {'(long; --json has it)' if is_long else shown}"


# --- what was said ------------------------------------------------------------------------------------------------------


def _add_attempt(page: _Page, attempt: Mapping[str, Any], *, several: bool) -> None:
    verdicts = [_format_verdict(verdict) for verdict in attempt["verdicts"]] if several else []
    notes = [
        *verdicts,
        *(["no answer"] if attempt["error"] else []),
        *([attempt["ending"]] if attempt["ending"] else []),
    ]
    page.add_heading(f"attempt {attempt['attempt'] + 1}" if several else "answer", " · ".join(notes))
    for verdict in attempt["verdicts"] if several else ():
        if verdict["reason"]:
            page.add(f"{verdict['metric']}: {verdict['reason']}", 1)
    if attempt["error"]:
        page.add(f"{attempt['error']['kind']}: {attempt['error']['message']}", 1)
    for one in attempt["continuations"]:
        page.add(_format_continuation(one), 1)
    turns = [] if attempt["continuations"] else list_turns(messages_of_attempt(dict(attempt)))
    _add_turns(page, turns, are_named=len(turns) > 1)


def _format_continuation(one: Mapping[str, Any]) -> str:
    known = {"is_likeliest": "likeliest", "is_baseline": "baseline", "greedy": "greedy"}
    marks = ", ".join(mark for name, mark in known.items() if one[name])
    return f"{one['logprob']:10.4f}  {one['text'].strip()}{f' ({marks})' if marks else ''}"


def _format_verdict(verdict: Mapping[str, object]) -> str:
    value = "failed" if verdict["value"] is None else f"{verdict['value']:.4g}"
    return f"{verdict['metric']} {value}{' unreadable' if verdict['outcome'] == 'unparsed' else ''}"


def _add_turns(page: _Page, turns: list[Turn], *, are_named: bool) -> None:
    for turn in turns:
        if are_named:
            page.add(f"{turn.role}{f' {turn.name}' if turn.name else ''}{': failed' if turn.is_error else ''}", 1)
        _add_turn(page, turn, 2 if are_named else 1)


def _add_turn(page: _Page, turn: Turn, depth: int) -> None:
    if turn.reasoning:
        page.add("thinking", depth)
        page.add(turn.reasoning, depth + 1, _THOUGHT_LINES)
    if turn.refusal:
        page.add(f"refused: {turn.refusal}", depth)
    for part in turn.parts:
        if part.text != turn.refusal or not turn.refusal:
            page.add(part.described, depth, _LINES)
    for call in turn.calls:
        _add_call(page, call, depth)
    if not turn.parts and not turn.calls and not turn.refusal:
        page.add("(no text)", depth)


def _add_call(page: _Page, call: ShownCall, depth: int) -> None:
    shortened = ShownCall(call.name, shorten_data(call.arguments), call.invalid)
    page.add(f"calls {shortened.written}", depth, _RESULT_LINES)
    page.add(f"-> {call.outcome}", depth + 1, _RESULT_LINES)
