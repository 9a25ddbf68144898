"""JSON: the one module that writes it, and reads it back.

- `encode`: compact and exact, for everything that is stored. What is read back equals what was written.
- `canonical_json`: one text for equal values, whatever process wrote it; `fingerprint` is its hash, for identity is content.
- `json_bytes`: what any other program reads, for exports, pages and answers.
- `read_word`: a word of a command line that is JSON is that value, any other is text.

msgspec does the work of `encode`. What it cannot hold exactly (NaN, infinities, lone surrogates, integers beyond 64 bits)
goes through the standard library's JSON, which can. The one exception is JSON's own: a high and a low surrogate side by
side come back as the character they stand for.
"""

from __future__ import annotations

import dataclasses
import datetime
import enum
import functools
import hashlib
import json
import math
import pathlib
from collections.abc import Callable, Iterable, Mapping, Set
from typing import IO, Any, TypeVar

import msgspec

from themis.exceptions import ConfigurationError

T = TypeVar("T")

_ATOMS = frozenset({str, int, bool, type(None)})


# --- to plain types ---------------------------------------------------------------------------------------------------


def to_plain(value: object, *, portable: bool = False) -> Any:
    """The value in JSON's types, all the way down; keys that are not strings become strings.

    Args:
        value: Anything `json_default` knows, in mappings and lists of any depth.
        portable: Whether readers are to take it that know only the standard: NaN and infinities become None, and an
            object that has no stable text is written as `str` shows it.

    Raises:
        TypeError: There is an object in it that has no stable text, and `portable` is false.

    >>> to_plain({"when": datetime.date(2026, 1, 2), 3: (math.nan,)}, portable=True)
    {'when': '2026-01-02', '3': [None]}
    """
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return None if portable and not math.isfinite(value) else value
    if isinstance(value, Mapping):
        # Most values are texts and numbers of rows, which need no call.
        return {
            key if isinstance(key, str) else str(key): item
            if type(item) in _ATOMS
            else to_plain(item, portable=portable)
            for key, item in value.items()
        }
    if isinstance(value, list | tuple):
        return [to_plain(item, portable=portable) for item in value]
    try:
        known = json_default(value)
    except TypeError:
        if not portable:
            raise
        # Something of the user's own in a row or in a score's details.
        return str(value)
    return to_plain(known, portable=portable)


def json_default(value: Any) -> Any:
    """JSON's types for one object that JSON does not know, one level deep; for an encoder's `default` hook.

    Raises:
        TypeError: It has no stable text.
    """
    if isinstance(value, enum.Enum):
        return _plain_or_same(value.value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        return {"__class__": type(value).__name__, **fields}
    if hasattr(value, "__struct_fields__") and not isinstance(value, type):  # msgspec
        return {"__class__": type(value).__name__, **{name: getattr(value, name) for name in value.__struct_fields__}}
    if isinstance(value, datetime.datetime):
        moment = value if value.tzinfo is None else value.astimezone(datetime.UTC)
        return moment.isoformat()
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, datetime.timedelta):
        return {"seconds": value.total_seconds()}
    if isinstance(value, pathlib.PurePath):
        return value.as_posix()
    if isinstance(value, bytes | bytearray | memoryview):
        return {"bytes": bytes(value).hex()}
    if isinstance(value, Set):
        return sorted((_plain_or_same(item) for item in value), key=canonical_json)
    if isinstance(value, Mapping):
        return dict(value)
    if type(value).__module__.partition(".")[0] == "numpy":
        return value.tolist()
    if hasattr(value, "model_dump"):  # pydantic
        return value.model_dump()
    if hasattr(value, "_asdict"):
        return value._asdict()
    raise TypeError(f"no canonical form for {type(value).__name__}")


def _plain_or_same(value: object) -> object:
    known = value is None or isinstance(value, bool | int | float | str | list | tuple | dict)
    return value if known else json_default(value)


# --- stored -----------------------------------------------------------------------------------------------------------

_ENCODER = msgspec.json.Encoder(enc_hook=json_default)
_DECODER = msgspec.json.Decoder()
_typed_decoder: Callable[[object], msgspec.json.Decoder[Any]] = functools.cache(msgspec.json.Decoder)


def encode(value: object) -> str:
    """JSON text of a value. NaN survives; keys that are not strings become strings."""
    try:
        data = _ENCODER.encode(value)
    except (msgspec.MsgspecError, UnicodeEncodeError, OverflowError, TypeError, ValueError, RecursionError):
        return _exact(_builtins(value))
    # msgspec writes NaN and infinities as null, so a null may be one of them.
    if b"null" in data and _has_non_finite(builtins := _builtins(value)):
        return _exact(builtins)
    return data.decode()


def decode(text: str | bytes) -> Any:
    try:
        return _DECODER.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError):
        return json.loads(text)


def decode_as(text: str | bytes, kind: type[T]) -> T:
    """Decode into a type; text that only the standard library can read is converted from plain values."""
    try:
        value: T = _typed_decoder(kind).decode(text)
        return value
    except msgspec.ValidationError:
        raise
    except (msgspec.DecodeError, UnicodeEncodeError):
        return msgspec.convert(json.loads(text), type=kind, strict=False)


def _builtins(value: object) -> object:
    """The value in JSON types, spelled as msgspec's encoder spells it."""
    try:
        builtins: object = msgspec.to_builtins(value, str_keys=True, enc_hook=json_default)
    except (msgspec.MsgspecError, TypeError):
        # Keys that msgspec does not take, such as None or a tuple.
        return to_plain(value)
    return builtins


def _exact(builtins: object) -> str:
    return json.dumps(builtins, ensure_ascii=True, separators=(",", ":"), allow_nan=True)


def _has_non_finite(builtins: object) -> bool:
    stack = [builtins]
    while stack:
        current = stack.pop()
        if isinstance(current, float):
            if not math.isfinite(current):
                return True
        elif isinstance(current, dict):
            stack.extend(current.values())
        elif isinstance(current, list | tuple):
            stack.extend(current)
    return False


# --- canonical --------------------------------------------------------------------------------------------------------

_CANONICAL = json.JSONEncoder(
    ensure_ascii=True, sort_keys=True, separators=(",", ":"), allow_nan=True, default=json_default
)


_SORTED = msgspec.json.Encoder(order="sorted")


def canonical_json(value: object) -> str:
    """One text for equal values: keys sorted, ASCII only, no spaces. NaN and infinities as Python writes them."""
    if type(value) is dict and (plain := _plain_row(value)) is not None:
        return plain
    try:
        return _CANONICAL.encode(value)
    except TypeError:
        # Keys that are not strings cannot be sorted beside strings: spell every key out.
        return _CANONICAL.encode(_string_keys(value))


def _plain_row(row: dict[object, object]) -> str | None:
    """The same text, faster, of a row of texts and whole numbers in which nothing is escaped; None of any other."""
    for key, item in row.items():
        if type(key) is not str or type(item) not in _ATOMS:
            return None
    try:
        data = _SORTED.encode(row)
    except (UnicodeEncodeError, OverflowError):
        return None
    return data.decode("ascii") if data.isascii() and b"\\" not in data and b"\x7f" not in data else None


def _string_keys(value: object) -> object:
    if isinstance(value, Mapping):
        return {
            key if isinstance(key, str) else f"{type(key).__name__}:{key}": _string_keys(item)
            for key, item in value.items()
        }
    if isinstance(value, list | tuple):
        return [_string_keys(item) for item in value]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return _string_keys(json_default(value))


# --- for other programs -----------------------------------------------------------------------------------------------


def json_bytes(value: object, indent: int | None = None) -> bytes:
    """JSON in UTF-8 that every reader takes; what the standard has no word for is written as `to_plain` says.

    Args:
        value: Anything.
        indent: Spaces by which each level is moved in, for people; None for one line.

    Half a surrogate pair, which UTF-8 cannot hold, becomes the replacement character.
    """
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, indent=indent).encode()
    except (TypeError, ValueError):
        pass  # something that JSON has no word for: rare, and worth another pass only then
    text = json.dumps(to_plain(value, portable=True), ensure_ascii=False, indent=indent)
    # Escaping the half would be JSON too, but strict readers refuse it.
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()


def format_value(value: object) -> str:
    """A string as it is, anything else as JSON."""
    return value if isinstance(value, str) else json_bytes(value).decode()


class JsonObjectWriter:
    """Writes one JSON object field by field, so that a long list is never held."""

    def __init__(self, file: IO[bytes], indent: int | None = 2) -> None:
        self._file = file
        self._indent = indent
        self._newline = b"" if indent is None else b"\n" + b" " * indent
        self._before = b"{"

    def put(self, name: str, value: object) -> None:
        text = json_bytes(value, self._indent).replace(b"\n", self._newline or b"\n")
        self._start(name)
        self._file.write(text)

    def put_each(self, name: str, values: Iterable[object]) -> int:
        """A list with one element a line; returns how many."""
        self._start(name)
        count = 0
        before = b"["
        for value in values:
            self._file.write(before + b"\n" + json_bytes(value))
            before = b","
            count += 1
        self._file.write(b"\n]" if count else b"[]")
        return count

    def end(self) -> None:
        self._file.write(b"\n}\n")

    def _start(self, name: str) -> None:
        self._file.write(self._before + self._newline + json_bytes(name) + b": ")
        self._before = b","


# --- words of a command line -------------------------------------------------------------------------------------------

# As people write them who have Python in mind; as text they would count as true.
_SPELLED = {"True": True, "False": False, "None": None}


def read_word(word: str) -> object:
    """`3` is a number, `true` a truth value, `["a"]` a list, `2024-06-01` and `a: b` are text."""
    try:
        return _SPELLED[word] if word in _SPELLED else json.loads(word)
    except (ValueError, RecursionError) as error:
        if word.lstrip().startswith(("[", "{")):
            raise ConfigurationError(
                f"a word begins like JSON, with {word.lstrip()[0]!r}, and is none ({error}); text that begins so is written "
                "in double quotes"
            ) from error
        return word


def write_word(value: object) -> str:
    """The shortest word that is read as this value."""
    if isinstance(value, str):
        try:
            if read_word(value) == value:
                return value
        except ConfigurationError:
            pass
    return json.dumps(value)


# --- identity is content ----------------------------------------------------------------------------------------------


def fingerprint(value: object) -> str:
    """Hex sha256 of the canonical JSON."""
    return hashlib.sha256(canonical_json(value).encode("ascii")).hexdigest()


def digest(*parts: str) -> str:
    """128 bits of sha256 over strings that cannot run into each other: the key of a stored answer or item."""
    text = ""
    for part in parts:  # few and short: faster than joining a list of them
        text += f"{len(part)}:{part}"
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]
