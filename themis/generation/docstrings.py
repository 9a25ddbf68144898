"""What a docstring says of a function and of each of its parameters, in the styles of Google, numpy and reST.

`tool_schemas` tells models what a tool is by it.
"""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass, field

__all__ = ["Documentation", "read_docstring"]


@dataclass
class Documentation:
    """A docstring in parts: the text before its sections, and what it says of parameters and their types."""

    text: str = ""
    parameters: dict[str, str] = field(default_factory=dict)
    types: dict[str, str] = field(default_factory=dict)


_OF_PARAMETERS = r"(?:Keyword |Other )?(?:Args|Arguments|Params|Parameters)"
_GOOGLE = re.compile(rf"^{_OF_PARAMETERS}:[ \t]*$", re.MULTILINE)
_NUMPY = re.compile(rf"^{_OF_PARAMETERS}[ \t]*\n-{{3,}}[ \t]*$", re.MULTILINE)
_FIELD = re.compile(r"^:(?P<kind>param|parameter|arg|argument|key|type)[ \t]+(?P<about>[^:\n]+):", re.MULTILINE)
# Where the text that describes the function itself ends.
_SECTION = re.compile(
    rf"^(?:(?:{_OF_PARAMETERS}|Returns|Yields|Raises|Examples?|Notes?|See Also):[ \t]*$"
    r"|(?:[A-Z]\w+(?: \w+)?)[ \t]*\n-{3,}[ \t]*$|:(?:param|parameter|arg|argument|key|type|returns?|rtype|raises?)\b|>>> )",
    re.MULTILINE,
)
_GOOGLE_ENTRY = re.compile(r"^\*{0,2}(?P<name>\w+)[ \t]*(?:\((?P<type>[^)]*)\))?:[ \t]*(?P<text>.*)$")
_NUMPY_ENTRY = re.compile(r"^\*{0,2}(?P<names>\w+(?:,[ \t]*\w+)*)[ \t]*(?::[ \t]*(?P<type>.+))?$")


def read_docstring(documented: object) -> Documentation:
    """The parts of an object's docstring; nothing where it has none.

    Args:
        documented: A function, class or object.
    """
    text = inspect.getdoc(documented) or ""
    found = Documentation()
    section = _SECTION.search(text)
    found.text = (text[: section.start()] if section else text).strip()
    for heading in _GOOGLE.finditer(text):
        _read_google(text[heading.end() :].split("\n"), found)
    for heading in _NUMPY.finditer(text):
        _read_numpy(text[heading.end() :].split("\n"), found)
    for one in _FIELD.finditer(text):
        _read_field(one, text[one.end() :], found)
    return found


def _read_google(lines: list[str], found: Documentation) -> None:
    """Entries are indented below the heading, and what goes on with one deeper still."""
    depth, name = 0, ""
    for line in lines[1:]:
        stripped, indent = line.strip(), _indent(line)
        if not stripped:
            continue
        depth = depth or indent
        if not indent or indent < depth:
            return
        entry = _GOOGLE_ENTRY.match(stripped) if indent == depth else None
        if entry is not None:
            name = entry["name"]
            found.parameters[name] = entry["text"]
            if entry["type"]:
                found.types[name] = entry["type"]
        elif name:
            found.parameters[name] = f"{found.parameters[name]} {stripped}".strip()


def _read_numpy(lines: list[str], found: Documentation) -> None:
    """Entries stand at the margin, their texts are indented; a line of dashes belongs to the next section."""
    names: list[str] = []
    for number, line in enumerate(lines[1:], start=1):
        stripped = line.strip()
        if not stripped:
            continue
        if _indent(line):
            for name in names:
                found.parameters[name] = f"{found.parameters[name]} {stripped}".strip()
            continue
        following = lines[number + 1].strip() if number + 1 < len(lines) else ""
        entry = _NUMPY_ENTRY.match(stripped)
        if entry is None or set(following) == {"-"}:
            return
        names = re.split(r",[ \t]*", entry["names"])
        for name in names:
            found.parameters.setdefault(name, "")
            if entry["type"]:
                found.types[name] = entry["type"]


def _read_field(one: re.Match[str], rest: str, found: Documentation) -> None:
    """`:param int count: how many`, `:param count: how many` or `:type count: int`; further lines are indented."""
    lines = rest.split("\n")
    said = [lines[0].strip()]
    for line in lines[1:]:
        if not line.strip() or not _indent(line):
            break
        said.append(line.strip())
    *kind, name = one["about"].split()
    if one["kind"] == "type":
        found.types[name.lstrip("*")] = " ".join(said)
        return
    found.parameters[name.lstrip("*")] = " ".join(said).strip()
    if kind:
        found.types[name.lstrip("*")] = " ".join(kind)


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
