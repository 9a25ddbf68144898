"""The answer by regular expression."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, ClassVar

from themis.evaluation.extractors.exceptions import FieldExtractionError
from themis.evaluation.extractors.text import last_of, shortened, text_of
from themis.exceptions import ConfigurationError

__all__ = ["RegexExtractor"]


@dataclass
class RegexExtractor:
    """What a pattern matches: the group asked for, else its only named or its first group, else the whole match.

    With several named groups and none asked for, the result is a dictionary of them.
    """

    example: ClassVar[str] = r"""RegexExtractor(r"total: (\d+)").extract("total: 42 apples") == "42" """.strip()

    pattern: str | re.Pattern[str]
    group: int | str | None = None
    flags: int = 0
    last: bool = False

    def __post_init__(self) -> None:
        try:
            self._compiled = re.compile(self.pattern, self.flags) if isinstance(self.pattern, str) else self.pattern
        except re.error as error:
            raise ConfigurationError(f"the regex extractor's pattern {self.pattern!r} is invalid: {error}") from error
        known = {*range(self._compiled.groups + 1), *self._compiled.groupindex}
        if self.group is not None and self.group not in known:
            raise ConfigurationError(
                f"group {self.group!r} is not in the pattern {self._compiled.pattern!r}, "
                f"which has {', '.join(map(repr, sorted(known, key=str)))}"
            )

    def extract(self, raw_output: str) -> Any:
        text = text_of(raw_output)
        found = last_of(self._compiled.finditer(text)) if self.last else self._compiled.search(text)
        if found is None:
            raise FieldExtractionError(f"no match for {self._compiled.pattern!r} in {shortened(text)}")
        names = list(self._compiled.groupindex)
        if self.group is None and len(names) > 1:
            return found.groupdict()
        group = self.group if self.group is not None else names[0] if names else min(1, self._compiled.groups)
        if found[group] is None:
            raise FieldExtractionError(f"group {group!r} took no part in the match of {self._compiled.pattern!r}")
        return found[group]
