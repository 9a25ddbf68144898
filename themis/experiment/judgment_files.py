"""Reads files of judgments that were made elsewhere: answers with labels and verdicts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from themis.evaluation.judge_rates import Judgment
from themis.exceptions import ConfigurationError, DatasetError
from themis.presets.loading import read_rows
from themis.runs.judge_audits import ACCEPTED_FROM

__all__ = ["read_judgments_file"]

# What the columns of a file are usually called, the likeliest first.
_COLUMNS = {
    "label": ("label", "truth", "is_right", "gold", "correct"),
    "verdict": ("verdict", "judgment", "judgement", "judge", "accepted", "score"),
    "kind": ("kind", "category", "type"),
    "item": ("item", "id", "question_id", "question"),
}
_TRUE = frozenset(["true", "yes", "right", "correct", "pass", "passed", "accept", "accepted"])
_FALSE = frozenset(["false", "no", "wrong", "incorrect", "fail", "failed", "reject", "rejected"])


def read_judgments_file(path: str | Path, columns: Mapping[str, str] | None = None) -> list[Judgment]:
    """Judgments that were made elsewhere: answers with what they are and what the judge said.

    Args:
        path: A .csv, .tsv, .jsonl, .json or .parquet file. A row has a label (whether the answer is right) and a verdict
            (whether the judge accepted it), each a word (right, wrong, true, false, pass, fail, ...) or a number from 0 to 1;
            an empty verdict is one that could not be read. It may have a kind, and the item that was answered.
        columns: The file's names of `label`, `verdict`, `kind` and `item`, where they are not the usual ones.

    Raises:
        DatasetError: A column is missing or a value is neither; says which.

    >>> _ = Path("judged.csv").write_text("gold,verdict,kind\\nwrong,CORRECT,vague\\nright,CORRECT,\\n")
    >>> read_judgments_file("judged.csv", {"label": "gold"})[0]
    Judgment(is_right=False, accepted=True, kind='vague', item_id='')
    """
    unknown = [name for name in columns or {} if name not in _COLUMNS]
    if unknown:
        raise ConfigurationError(
            f"a file of judgments has the columns {', '.join(_COLUMNS)}, none called {unknown[0]!r}"
        )
    return list(_read_judgments(str(path), dict(columns or {})))


def _read_judgments(path: str, given: Mapping[str, str]) -> Iterator[Judgment]:
    count = 0
    for count, row in enumerate(read_rows(path), start=1):
        found = {
            name: _find_column(name, usual, given, row, f"{path}, row {count}") for name, usual in _COLUMNS.items()
        }
        label_column, verdict_column = str(found["label"]), str(found["verdict"])
        label = _read_truth(row.get(label_column))
        if label is None:
            raise DatasetError(
                f"{path}, row {count}: {label_column} {row.get(label_column)!r} says neither right nor wrong; write true or "
                "false, or a number from 0 to 1"
            )
        verdict, said = row.get(verdict_column), None
        if verdict is not None and str(verdict).strip():
            said = _read_truth(verdict)
            if said is None:
                raise DatasetError(
                    f"{path}, row {count}: {verdict_column} {verdict!r} says neither right nor wrong; leave it empty where "
                    "the judge could not be read"
                )
        kind, item = ("" if column is None else str(row.get(column) or "") for column in (found["kind"], found["item"]))
        yield Judgment(label, said, kind.strip(), item)
    if not count:
        raise DatasetError(f"{path} has no rows")


def _find_column(
    name: str, usual: Sequence[str], given: Mapping[str, str], row: Mapping[str, object], where: str
) -> str | None:
    wanted = [given[name]] if name in given else usual
    found = next((column for column in wanted if column in row), None)
    if found is None and (name in given or name in ("label", "verdict")):
        raise DatasetError(
            f"{where}: no {name} (looked for {', '.join(wanted)}); it has {', '.join(map(str, row))}: say which it is by "
            f"--field {name}=COLUMN"
        )
    return found


def _read_truth(value: object) -> bool | None:
    text = str(value).strip().lower()
    if text in _TRUE or text in _FALSE:
        return text in _TRUE
    try:
        number = float(text)
    except ValueError:
        return None
    return number >= ACCEPTED_FROM if 0 <= number <= 1 else None
