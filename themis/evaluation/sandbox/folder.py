"""The files that programs of one sample leave to each other in the sandbox, as values: in memory, and as JSON in the store."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from themis.evaluation.sandbox.inside.wire import FolderEntry
from themis.exceptions import ConfigurationError

__all__ = ["Folder"]


@dataclass(frozen=True)
class Folder:
    """Files and empty directories by their paths.

    >>> Folder.from_state({"notes/a.txt": "hello", "empty/": None}).to_state()
    {'empty/': None, 'notes/a.txt': 'hello'}
    """

    entries: Sequence[FolderEntry] = ()

    @classmethod
    def from_state(cls, files: object) -> Folder:
        """From what `to_state` made of one.

        Args:
            files: By path: a text, `{"base64": ...}` for what is no text, with `"executable": true` where it is a program;
                None for an empty directory, whose path ends with a slash.

        Raises:
            ConfigurationError: It is something else.
        """
        if not isinstance(files, Mapping):
            raise ConfigurationError(f"the files of a folder are given by their paths, got {str(files)[:80]!r}")
        return cls([_read_entry(str(path), content) for path, content in sorted(files.items())])

    def to_state(self) -> dict[str, object]:
        """As JSON that people can read: texts as they are."""
        return dict(sorted(_write_entry(entry) for entry in self.entries))


def _read_entry(path: str, content: object) -> FolderEntry:
    parts = path.removesuffix("/").split("/")
    if not all(part not in ("", ".", "..") and "\0" not in part for part in parts):
        raise ConfigurationError(f"a file of a folder lies below it, got {path!r}")
    if content is None:
        return {"path": "/".join(parts), "data": None, "executable": False}
    described = content if isinstance(content, Mapping) else {"text": content}
    text = described.get("text")
    try:
        data = base64.b64decode(str(described["base64"])) if text is None else str(text).encode()
    except (KeyError, binascii.Error) as error:
        raise ConfigurationError(f"the file {path!r} of a folder is a text or {{'base64': ...}}: {error}") from error
    encoded = base64.b64encode(data).decode()
    return {"path": path, "data": encoded, "executable": bool(described.get("executable"))}


def _write_entry(entry: FolderEntry) -> tuple[str, object]:
    if entry["data"] is None:
        return f"{entry['path']}/", None
    try:
        text = base64.b64decode(entry["data"]).decode()
    except UnicodeDecodeError:
        text = "\0"
    # Not every database keeps a zero in a text.
    content: dict[str, object] = {"base64": entry["data"]} if "\0" in text else {"text": text}
    if entry["executable"]:
        return entry["path"], {**content, "executable": True}
    return entry["path"], text if "text" in content else content
