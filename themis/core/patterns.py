"""Regular expressions that are compiled when they are first used.

The readers of replies have hundreds of them, and a command that reads none would spend a third of its start on compiling them.
"""

from __future__ import annotations

import re
from typing import cast


def lazy_pattern(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """What `re.compile` gives, compiled when it is first used; an error in it is found then.

    Args:
        pattern: The expression.
        flags: Those of `re`.

    >>> lazy_pattern("[a-c]+").findall("abc, cab")
    ['abc', 'cab']
    """
    return cast("re.Pattern[str]", LazyPattern(pattern, flags))


class LazyPattern:
    """A pattern that is not compiled yet, or was: each method and attribute of it is kept here once it has been asked for."""

    def __init__(self, pattern: str, flags: int = 0) -> None:
        self._given = (pattern, flags)
        self._compiled: re.Pattern[str] | None = None

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        value: object = getattr(self.compile(), name)
        self.__dict__[name] = value
        return value

    def __reduce__(self) -> tuple[object, ...]:
        return LazyPattern, self._given

    def __repr__(self) -> str:
        return repr(self.compile())

    def compile(self) -> re.Pattern[str]:
        """The pattern itself."""
        if self._compiled is None:
            self._compiled = re.compile(*self._given)
        return self._compiled
