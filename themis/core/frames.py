"""Columns as a data frame of pandas or polars, both of which are an extra."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from themis.core.registry import import_extra, nearest
from themis.exceptions import ConfigurationError

__all__ = ["LIBRARIES", "DataFrame", "build_frame"]

# Of pandas or polars, neither of which need be installed.
DataFrame: TypeAlias = Any

# What frames can be of.
LIBRARIES = ("pandas", "polars")


def build_frame(
    columns: Mapping[str, Sequence[object]], library: str = "pandas", *, kinds: Mapping[str, type] | None = None
) -> DataFrame:
    """A data frame of these columns; a missing value is None.

    Args:
        columns: Values of one kind each, or None, by name.
        library: `pandas` or `polars`.
        kinds: `float`, `int` or `str`, by name: what a column is that has no value at all, so that frames in which it has
            some can be put below it.

    Raises:
        ConfigurationError: There are no frames of this library.
        DependencyError: The library is not installed.

    >>> build_frame({"metric": ["ExactMatch"], "mean": [0.5]}).to_dict("records")
    [{'metric': 'ExactMatch', 'mean': 0.5}]
    """
    if library not in LIBRARIES:
        raise ConfigurationError(
            f"frames are of {' or '.join(LIBRARIES)}, got {library!r}{nearest(str(library), LIBRARIES)}"
        )
    frame = import_extra(library, "frames", f"a {library} frame").DataFrame(dict(columns))
    empty = {
        name: kind
        for name, kind in (kinds or {}).items()
        if name in columns and all(value is None for value in columns[name])
    }
    if library == "polars":
        return frame.cast(empty)
    # A number that is missing is NaN, which whole numbers do not have.
    return frame.astype({name: float for name, kind in empty.items() if kind is not str})
