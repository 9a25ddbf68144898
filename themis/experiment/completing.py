"""What a specification leaves unsaid of rows of one's own, as far as their first row shows it: prompt, reference, id."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import cast

from themis.config.specification import SampleSpecification
from themis.core.continuations import CONTINUATIONS
from themis.exceptions import ConfigurationError, DatasetError
from themis.experiment.datasets import PROMPT_FIELDS, Row, is_row_file, read_named
from themis.presets.pipes import PipedRows

# Fields that rows may have, the likeliest first.
_REFERENCE_FIELDS = ("answer", "reference", "expected", "label", "target", "solution")
_ID_FIELDS = ("id", "sample_id", "dataset_id", "unique_id", "uid")


@dataclass(frozen=True)
class Completed:
    """A specification with nothing left unsaid of its rows. `prompt_field` is the one that is asked as it is, if any."""

    specification: SampleSpecification
    prompt_field: str | None = None


def complete_from_rows(asked: SampleSpecification) -> Completed:
    """With the prompt and the fields of a file, a folder or a dataset of the Hub; a benchmark says its own.

    Raises:
        ConfigurationError: No field of the rows is known to be what is asked.
        DatasetError: There are no rows.

    >>> _ = Path("rows.jsonl").write_text('{"question": "2 + 2?", "expected": "4"}')
    >>> found = complete_from_rows(SampleSpecification(dataset="rows.jsonl", model="fake/perfect")).specification
    >>> found.prompt, found.reference_field
    ('{question}', 'expected')
    """
    dataset = asked.dataset
    is_piped = isinstance(dataset, PipedRows)
    if not is_piped and (not isinstance(dataset, str | Path) or not is_row_file(dataset)):
        return Completed(asked)
    name = "standard input" if is_piped else str(dataset)
    if asked.data is not None or asked.sample:
        raise ConfigurationError(f"data and sample are for benchmarks (--data, --sample); {name!r} has its own rows")
    rows: Iterable[Row] = dataset if isinstance(dataset, PipedRows) else read_named(cast("str | Path", dataset))[0]
    first = next(islice(iter(rows), 1), None)
    if first is None:
        raise DatasetError(f"{name} has no rows")
    prompt, field = asked.prompt, None
    # Pairs of a context and a continuation bring their own prompts.
    scored = first.get(CONTINUATIONS) or [""]
    if prompt is None and any(isinstance(one, str) for one in scored):
        field = next((one for one in PROMPT_FIELDS if one in first), None)
        if field is None:
            raise ConfigurationError(
                f"{name} has the fields {', '.join(map(str, first))} and none of {', '.join(PROMPT_FIELDS)}; "
                "say by prompt (--prompt) what to ask"
            )
        prompt = f"{{{field}}}"
    reference, id_field = asked.reference_field, asked.dataset_id_field
    if reference is None:
        # Where there is none, the reader of the rows refuses metrics that need one.
        reference = next((one for one in _REFERENCE_FIELDS if one in first), None)
    if id_field is None:
        id_field = next((one for one in _ID_FIELDS if one in first), None)
    return Completed(replace(asked, prompt=prompt, reference_field=reference, dataset_id_field=id_field), field)
