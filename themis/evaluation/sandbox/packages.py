"""Finds the installed packages that model-written code may import: what was allowed, beside the standard library."""

from __future__ import annotations

import functools
import importlib.util
import os

from themis.exceptions import ConfigurationError

__all__ = ["locate_packages"]


@functools.cache
def locate_packages(names: tuple[str, ...]) -> tuple[str, ...]:
    """The directories and files of these packages, with the shared libraries that wheels put beside them."""
    found: list[str] = []
    for name in names:
        spec = importlib.util.find_spec(name) if name.isidentifier() else None
        if spec is None or not (spec.origin or spec.submodule_search_locations):
            raise ConfigurationError(
                f"packages names {name!r}, which is no importable package here; it is a list of names such as ['numpy']"
            )
        places = list(spec.submodule_search_locations or [str(spec.origin)])
        libraries = [f"{os.path.dirname(place)}/{name}.libs" for place in places]
        found += [os.path.realpath(path) for path in (*places, *libraries) if os.path.exists(path)]
    return tuple(found)
