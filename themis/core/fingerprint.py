"""Identity is content: the sha256 of a value's canonical JSON, the same in every process and Python version."""

from __future__ import annotations

import hashlib

from themis.core.codec import canonical_json


def fingerprint(value: object) -> str:
    """Hex sha256 of the canonical JSON."""
    return hashlib.sha256(canonical_json(value).encode("ascii")).hexdigest()


def digest(*parts: str) -> str:
    """128 bits of sha256 over strings that cannot run into each other: the key of a stored answer or item."""
    text = "".join([f"{len(part)}:{part}" for part in parts])
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]
