"""Rows on their way into a run: ids, references and prompts checked, each row turned into an item.

Everything a user can have wrong in a dataset is found here, before the first model call.
"""

from __future__ import annotations

import hashlib
import itertools
import logging
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from themis.core.codec import canonical_json, to_plain
from themis.core.fingerprint import digest
from themis.core.registry import nearest
from themis.exceptions import ConfigurationError, DatasetError, ThemisError
from themis.generation.templates import PromptTemplate, TemplateRenderingError
from themis.storage.records import Item

logger = logging.getLogger(__name__)

_SHOWN_ROWS = 5
_LONGEST_ID = 1_000


@dataclass
class RowReader:
    """Turns rows into items, one at a time, and knows the dataset's fingerprint when the last one is read.

    `reference_field` is None for "find it": `answer` if every row has one, else `reference`.
    """

    rows: Iterable[Mapping[str, Any]]
    template: PromptTemplate
    id_field: str = "id"
    reference_field: str | None = None
    cluster_field: str | None = None
    limit: int | None = None
    # Metrics that are of no use without references.
    compared: Sequence[str] = ()
    # Raises where no answer to a row could be scored; takes the reference, and the row with its prompt.
    check: Callable[[Any, Mapping[str, Any]], None] | None = None

    fingerprint: str = ""
    # A template of the user's own class fills prompts by code: they are known by what came out.
    filled_prompts: str = ""
    count: int = 0
    # The field that holds the expected answer, once rows were read; None when there is none.
    found_reference: str | None = None
    _numbered: bool | None = None
    _unlabelled: int = 0
    _without_reference: list[int] = field(default_factory=list)

    def __iter__(self) -> Iterator[Item]:
        hasher, prompts = hashlib.sha256(), hashlib.sha256()
        is_code = type(self.template) is not PromptTemplate
        self.count, self._unlabelled, self._numbered, self.found_reference = 0, 0, None, None
        self._without_reference = []
        rows = iter(self.rows) if self.limit is None else itertools.islice(iter(self.rows), self.limit)
        for position, raw in enumerate(rows):
            row = _as_row(raw, position)
            item_id = self._item_id(row, position)
            self._check_reference(row, position)
            self._unlabelled += row.get(self.found_reference or "") is None
            if position == 0 and self.found_reference in self.template.fields:
                logger.warning("the prompt shows the model the expected answer: it uses {%s}", self.found_reference)
            try:
                prompt = self.template.fill(row)
                self.template.refuse_unfilled(row, not_asked=(self.found_reference or "answer", "reference"))
            except TemplateRenderingError as error:
                raise TemplateRenderingError(f"row {position}: {error}") from None
            if is_code:
                prompts.update(f"{len(prompt)}:{prompt}".encode("utf-8", "surrogatepass"))
            self._check_scoring(row, prompt, position)
            content = canonical_json(row)
            item = Item(position, item_id, digest(content), content, self._cluster(row, item_id))
            hasher.update(f"{len(item_id)}:{item_id}{item.fingerprint}".encode("utf-8", "surrogatepass"))
            self.count += 1
            yield item
        if self.count == 0:
            raise DatasetError("the dataset has no rows" + (f" (limit={self.limit})" if self.limit is not None else ""))
        self._refuse_missing_references()
        if self.compared and self.found_reference is not None and self._unlabelled == self.count:
            raise ConfigurationError(
                f"{', '.join(self.compared)} can compare answers only with a reference, and {self.found_reference!r} is "
                "empty in every row; name another field with reference_field, or choose other metrics"
            )
        self.fingerprint = hasher.hexdigest()
        self.filled_prompts = prompts.hexdigest() if is_code else ""

    def _item_id(self, row: Mapping[str, Any], position: int) -> str:
        """The row's id as text; rows without any are numbered. Zero is an id like any other."""
        has_id = row.get(self.id_field) is not None
        if self._numbered is None:
            self._numbered = not has_id
            if not has_id and self.id_field != "id":
                raise ConfigurationError(
                    f"dataset_id_field {self.id_field!r} is not in row 0{nearest(self.id_field, row)}, "
                    f"which has {', '.join(sorted(row))}"
                )
        if has_id == self._numbered:
            state = "has no" if not has_id else "has an"
            raise ConfigurationError(
                f"row {position} {state} {self.id_field!r}, unlike the rows before it; give every row an id, or none"
            )
        if self._numbered:
            return str(position)
        value = row[self.id_field]
        if isinstance(value, list | dict):
            raise ConfigurationError(f"the id of row {position} is a {type(value).__name__}, expected text or a number")
        text = str(value)
        bad = None
        if not text.isprintable():
            bad = next((c for c in text if unicodedata.category(c) in ("Cc", "Cs")), None)
        if not text or len(text) > _LONGEST_ID or bad is not None:
            why = f"contains {bad!r}" if bad is not None else f"has {len(text)} characters"
            raise ConfigurationError(
                f"the id of row {position} {why}; ids have 1 to {_LONGEST_ID} characters and no control characters"
            )
        return text

    def _check_reference(self, row: Mapping[str, Any], position: int) -> None:
        if self.reference_field == "":
            return
        here = next((name for name in ("answer", "reference") if name in row), None)
        if position == 0:
            self.found_reference = here if self.reference_field is None else self.reference_field
            if self.found_reference is None and self.compared:
                raise ConfigurationError(
                    f"{', '.join(self.compared)} can compare answers only with a reference, and the rows have neither "
                    f"'answer' nor 'reference' but {', '.join(sorted(row))}; name the field with reference_field, or "
                    'choose other metrics, or give reference_field="" to have answers alone'
                )
        if self.found_reference is None and here is not None:
            raise ConfigurationError(
                f"row {position} has {here!r} but the rows before it have not; name the field with reference_field, "
                'or give reference_field="" for none'
            )
        if self.found_reference is not None and self.found_reference not in row:
            self._without_reference.append(position)
            if len(self._without_reference) >= _SHOWN_ROWS or position == 0:
                self._refuse_missing_references(row)

    def _check_scoring(self, row: Mapping[str, Any], prompt: str, position: int) -> None:
        name = self.found_reference
        if self.check is None or name is None or name not in row:
            return
        try:
            self.check(row[name], {**{key: row[key] for key in row if key != name}, "prompt": prompt})
        except ThemisError as error:
            raise DatasetError(f"row {position} cannot be scored: {error}") from error

    def _refuse_missing_references(self, row: Mapping[str, Any] | None = None) -> None:
        if not self._without_reference:
            return
        rows = ", ".join(map(str, self._without_reference))
        name = self.found_reference or ""
        hint = f"{nearest(name, row)}; that row has {', '.join(sorted(row))}" if row is not None else ""
        raise ConfigurationError(f"reference_field {name!r} is missing in row(s) {rows}{hint}")

    def _cluster(self, row: Mapping[str, Any], item_id: str) -> str | None:
        if self.cluster_field is None:
            return None
        if self.cluster_field not in row:
            raise ConfigurationError(
                f"cluster_field {self.cluster_field!r} is not in row {item_id!r}{nearest(self.cluster_field, row)}, "
                f"which has {', '.join(sorted(row))}"
            )
        value = row[self.cluster_field]
        if value is None:
            raise ConfigurationError(
                f"cluster_field {self.cluster_field!r} is empty in row {item_id!r}; a row of its own gets a name of its own"
            )
        return value if isinstance(value, str) else canonical_json(value)


def _as_row(raw: Any, position: int) -> dict[str, Any]:
    if not isinstance(raw, Mapping):
        raise DatasetError(f"row {position} is a {type(raw).__name__}, expected a dict of fields")
    try:
        row = to_plain(raw)
    except TypeError as error:
        raise DatasetError(
            f"row {position} cannot be stored: {error}; convert it to text, numbers, lists or dicts"
        ) from error
    except RecursionError as error:
        raise DatasetError(f"row {position} is nested too deeply to be stored") from error
    assert isinstance(row, dict)
    return row
