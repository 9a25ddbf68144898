"""Images and files that rows name: read once, known by their content, sent with the prompt.

A field may hold a path, an address, a `data:` URL, bytes, an image of PIL or of a dataset of the Hub, or a list of those. In the
stored row stands what it is and the digest of its content; the content is stored once.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import io
import mimetypes
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from themis.core.messages import Message, Part
from themis.core.registry import nearest
from themis.exceptions import DatasetError
from themis.storage.runs import Attachment

_LARGEST_BYTES = 50 * 2**20
_DATA_URL = re.compile(r"data:(?P<media_type>[\w.+-]+/[\w.+-]+)?(?:;[\w=.+-]+)*;base64,(?P<data>.*)", re.DOTALL)
_ADDRESS = re.compile(r"https?://[^/]", re.IGNORECASE)
_LONGEST_SHOWN = 80
# Of images, which many files do not say in their names.
_SIGNATURES = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
    (b"%PDF-", "application/pdf"),
)
_KNOWN_BY_CONTENT = ("image/png", "image/jpeg", "image/gif", "image/webp")


@dataclass
class AttachmentReader:
    """Reads what the given fields of a row name.

    Args:
        fields: The fields.
        folder: What paths are relative to.
    """

    fields: Sequence[str]
    folder: Path = field(default_factory=Path)

    def read(self, row: Mapping[str, object], position: int) -> tuple[dict[str, Any], list[Attachment]]:
        """The row with what its fields hold in place of their values, and the contents."""
        found: list[Attachment] = []
        attached = dict(row)
        for name in self.fields:
            if name not in row:
                raise DatasetError(
                    f"row {position} has no field {name!r} to attach{nearest(name, row)}; it has {', '.join(sorted(row))}"
                )
            value = row[name]
            if value is None or value == "":
                attached[name] = None
                continue
            try:
                several = [self._read(one, found) for one in value] if isinstance(value, list | tuple) else None
                attached[name] = self._read(value, found) if several is None else several
            except DatasetError as error:
                raise DatasetError(f"row {position}, field {name!r}: {error}") from error
        return attached, found

    def _read(self, value: object, found: list[Attachment]) -> Part:
        if isinstance(value, Mapping) and "type" in value and ("digest" in value or "url" in value):
            return dict(value)  # of a stored run
        if isinstance(value, Mapping) and isinstance(value.get("url"), str):
            value = value["url"]
        if isinstance(value, str) and _ADDRESS.match(value):
            guessed = mimetypes.guess_type(value.partition("?")[0])[0] or "image/*"
            return {"type": _kind(guessed), "url": value}
        content, name, media_type = self._load(value)
        if not content:
            raise DatasetError(f"{name} is empty")
        if len(content) > _LARGEST_BYTES:
            raise DatasetError(f"{name} has {len(content):,} bytes, more than the {_LARGEST_BYTES:,} that are sent")
        digest = hashlib.sha256(content).hexdigest()
        found.append(Attachment(digest, media_type, content))
        return {"type": _kind(media_type), "media_type": media_type, "name": name, "digest": digest}

    def _load(self, value: object) -> tuple[bytes, str, str]:
        """The content, what it is called, and its media type."""
        if isinstance(value, Mapping) and value.get("bytes"):
            given: Any = value["bytes"]
            content = bytes.fromhex(given) if isinstance(given, str) else bytes(given)
            name = Path(str(value.get("path") or "attachment")).name
            return content, name, _media_type(name, content)
        if isinstance(value, Mapping) and value.get("path"):
            value = str(value["path"])
        if isinstance(value, bytes | bytearray | memoryview):
            return bytes(value), "attachment", _media_type("", bytes(value))
        if callable(getattr(value, "save", None)):  # an image of PIL
            written = io.BytesIO()
            value.save(written, format="PNG")  # type: ignore[attr-defined]
            return written.getvalue(), "image.png", "image/png"
        if not isinstance(value, str | Path):
            raise DatasetError(f"expected a path, an address, bytes or an image, got {type(value).__name__}")
        if isinstance(value, str) and (inline := _DATA_URL.fullmatch(value)):
            try:
                content = base64.b64decode(inline["data"], validate=True)
            except binascii.Error as error:
                raise DatasetError(f"its data: URL is not base64 ({error})") from error
            return content, "attachment", _media_type("", content, inline["media_type"])
        try:
            path = self.folder / Path(value).expanduser()
            content = path.read_bytes()
        except (OSError, RuntimeError, ValueError) as error:
            raise _unreadable(self.folder, str(value), error) from error
        return content, path.name, _media_type(path.name, content)


def _unreadable(folder: Path, given: str, error: Exception) -> DatasetError:
    if len(given) > 255 or given.startswith("data:"):
        shown = f"{given[:_LONGEST_SHOWN]}…" if len(given) > _LONGEST_SHOWN else given
        return DatasetError(
            f"{shown!r} ({len(given):,} characters) is no path; content in base64 is given as data:image/png;base64,..."
        )
    if "://" in given:
        return DatasetError(f"{given!r} is not read: expected a path, or an address of http:// or https://")
    return DatasetError(f"cannot read {str(folder / given)!r}: {getattr(error, 'strerror', None) or error}")


def attach_to(messages: Sequence[Mapping[str, Any]], row: Mapping[str, Any], fields: Sequence[str]) -> list[Message]:
    """The messages with what the row's fields hold behind the text of the user's last one."""
    parts: list[Part] = []
    for name in fields:
        value = row.get(name)
        parts += value if isinstance(value, list) else [dict(value)] if isinstance(value, Mapping) else []
    found = [dict(message) for message in messages]
    last = next((one for one in reversed(found) if one.get("role") == "user"), None)
    if parts and last is not None:
        content = last.get("content") or ""
        last["content"] = [*([{"type": "text", "text": content}] if isinstance(content, str) else content), *parts]
    return found


def _kind(media_type: str) -> str:
    return "image" if media_type.startswith("image/") else "file"


def _media_type(name: str, content: bytes, said: str | None = None) -> str:
    """What the content is: by its first bytes, or else as it is said or called."""
    for signature, known in _SIGNATURES:
        if content.startswith(signature):
            return known
    if content[:4] == b"RIFF" and content[8:12] == b"WEBP":
        return "image/webp"
    guessed = said or mimetypes.guess_type(name)[0]
    if content and guessed in _KNOWN_BY_CONTENT:
        raise DatasetError(f"{name or 'it'} should be {guessed}, and its content is something else")
    if guessed is not None:
        return guessed
    return "text/plain" if _is_text(content) else "application/octet-stream"


def _is_text(content: bytes) -> bool:
    try:
        content.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return b"\x00" not in content
