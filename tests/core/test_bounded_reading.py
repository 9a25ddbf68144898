"""Pieces of a file are found where a JSON decoder finds them, however the chunks fall."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from themis.core import bounded_reading
from themis.core.bounded_reading import JsonFile, ReadLimits, read_lines
from themis.exceptions import DatasetError

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.sampled_from(['"', "\\", '\\"', "]}", "[{"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=60)
@given(
    before=st.dictionaries(st.sampled_from("abc"), VALUES),
    items=st.lists(VALUES, max_size=5),
    after=st.dictionaries(st.sampled_from("xyz"), VALUES),
    chunk=st.integers(1, 40),
    indent=st.none() | st.integers(0, 2),
    ascii_only=st.booleans(),
)
def test_every_value_is_where_a_decoder_finds_it(tmp_path_factory, before, items, after, chunk, indent, ascii_only):
    whole = {**before, "samples": items, **after}
    text = json.dumps(whole, indent=indent, ensure_ascii=ascii_only)
    path = tmp_path_factory.getbasetemp() / "pieces.json"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bounded_reading, "_CHUNK", chunk)
        file = JsonFile(path, ReadLimits(), array="samples")

    def decoded(piece):
        return json.dumps(json.loads(file.read(piece).decode("utf-8", "surrogatepass")))

    assert file.items is not None
    assert [decoded(piece) for piece in file.items] == [json.dumps(item) for item in items]
    assert {name: decoded(piece) for name, piece in file.members.items()} == {
        name: json.dumps(value) for name, value in whole.items() if name != "samples"
    }


@pytest.mark.parametrize(
    "text", ["", "7", "[", '{"a"', '{"a":', '{"a": }', '{"a": "b', '{"a": "b\\', '{"samples": [1, 2', '{"a": [}']
)
def test_what_ends_too_early_is_an_error_and_no_loop(tmp_path, text):
    (tmp_path / "log.json").write_text(text)

    with pytest.raises(DatasetError, match=r"log\.json is not (JSON|whole)"):
        JsonFile(tmp_path / "log.json", ReadLimits(), array="samples")


def test_a_line_is_bounded_too(tmp_path):
    (tmp_path / "a.jsonl").write_bytes(b"short\n\n" + b"x" * 2_000 + b"\nshort")
    assert [number for number, _ in read_lines(tmp_path / "a.jsonl", ReadLimits())] == [1, 3, 4]

    with pytest.raises(DatasetError, match=r"line 3 of a\.jsonl has more than 1\.0 kB, .* --no-limits"):
        list(read_lines(tmp_path / "a.jsonl", ReadLimits(part_bytes=1_000)))
