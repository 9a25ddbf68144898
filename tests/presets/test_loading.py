"""Reading rows from files: every format, one row at a time, with the line of what is wrong."""

from __future__ import annotations

import csv
import itertools
import json
import sys

import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from themis.exceptions import DatasetError, DependencyError
from themis.presets.loading import READABLE_SUFFIXES, read_rows, sample_rows

ROWS = [{"id": 1, "q": "ü\u2028?", "tags": ["a", "b"]}, {"id": 2, "q": "b\nc", "tags": []}]


def write(path, rows):
    if path.suffix in (".jsonl", ".ndjson"):
        path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    elif path.suffix == ".json":
        path.write_text(json.dumps(rows, indent=1, ensure_ascii=False), encoding="utf-8")
    elif path.suffix in (".csv", ".tsv"):
        with path.open("w", encoding="utf-8", newline="") as file:
            table = csv.writer(file, delimiter="\t" if path.suffix == ".tsv" else ",")
            table.writerow(rows[0])
            table.writerows([[v if isinstance(v, str) else json.dumps(v) for v in row.values()] for row in rows])
    else:
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    return path


@pytest.mark.parametrize("suffix", READABLE_SUFFIXES)
def test_every_format_gives_the_same_rows(tmp_path, suffix):
    path = write(tmp_path / f"rows{suffix}", ROWS)

    expected = [{**row, "id": str(row["id"])} for row in ROWS] if suffix in (".csv", ".tsv") else ROWS
    assert list(read_rows(path)) == expected
    assert list(read_rows(str(path))) == expected


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(st.lists(st.dictionaries(st.text(max_size=8), JSON_VALUES, max_size=4), max_size=6), st.integers(1, 40))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
def test_json_is_read_whole_wherever_the_window_cuts_it(tmp_path, monkeypatch, rows, chunk):
    monkeypatch.setattr("themis.presets.loading._Window.CHUNK_CHARS", chunk)
    array, lines = tmp_path / "a.json", tmp_path / "a.jsonl"
    array.write_text(json.dumps(rows, indent=chunk % 3 or None), encoding="utf-8")
    lines.write_text("".join(json.dumps(row) + "\n\n" for row in rows), encoding="utf-8")

    assert list(read_rows(array)) == rows
    assert list(read_rows(lines)) == rows


def test_rows_are_read_as_they_are_asked_for(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text('{"a": 1}\n{"a": 2}\nnot json\n')

    assert list(itertools.islice(read_rows(path), 2)) == [{"a": 1}, {"a": 2}]


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("a.jsonl", '{"a": 1}\n\n{"a": \n', "line 3: not valid JSON"),
        ("a.jsonl", '{"a": 1}\n[1]\n', "line 2: a row is an object with named fields, found list"),
        ("a.jsonl", b'{"a": 1}\n{"a": "\xff"}\n', "line 2: not UTF-8"),
        ("a.jsonl", '{"a": ' + "[" * 100_000, "line 1: not valid JSON"),
        ("a.json", '[\n {"a": 1},\n {"a": oops}\n]', "line 3: not valid JSON"),
        ("a.json", '[\n {"a": 1},\n 7\n]', "line 3: a row is an object"),
        ("a.json", '[{"a": 1}', "line 1: not valid JSON"),
        ("a.json", b'[{"a": "\xff"}]', "not UTF-8"),
        ("a.json", '{"a": 1,\n "b": 2}', "an object with the keys a, b"),
        ("a.json", "7", "found int"),
        ("a.csv", "a,b\n1,2\n3\n", "line 3: 1 cells, but the first line names 2 columns"),
        ("a.csv", "a,a\n1,2\n", "must name each column once, it says a, a"),
        ("a.csv", "", "it says nothing"),
        ("a.csv", 'a\n"x"y\n', "line 2: not valid CSV"),
        ("a.csv", b"a\n\xff\n", "not UTF-8"),
        ("a.parquet", "text", "not a readable Parquet file"),
    ],
)
def test_what_cannot_be_read_is_named_by_file_and_line(tmp_path, name, content, says):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())

    with pytest.raises(DatasetError) as caught:
        list(read_rows(path))

    assert says in str(caught.value)
    assert str(path) in str(caught.value)


def test_a_byte_order_mark_is_no_part_of_a_name(tmp_path):
    for name, text in {"a.csv": "a\n1\n", "a.json": '[{"a": "1"}]', "a.jsonl": '{"a": "1"}\n'}.items():
        (tmp_path / name).write_text(text, encoding="utf-8-sig")
        assert list(read_rows(tmp_path / name)) == [{"a": "1"}]


def test_json_lines_that_are_called_json_are_read(tmp_path):
    path = tmp_path / "rows.json"
    path.write_text('{"a": 1}\n{"a": 2}\n')

    assert list(read_rows(path)) == [{"a": 1}, {"a": 2}]


def test_an_object_that_holds_one_array_of_rows_is_read(tmp_path):
    path = tmp_path / "rows.json"
    path.write_text('{\n"version": 1, "data": [{"a": 1}]}')

    assert list(read_rows(path)) == [{"a": 1}]


def test_empty_files_have_no_rows(tmp_path):
    (tmp_path / "a.jsonl").write_text("\n\n")
    (tmp_path / "a.json").write_text("[ ]")

    assert list(read_rows(tmp_path / "a.jsonl")) == list(read_rows(tmp_path / "a.json")) == []


def test_a_folder_is_its_files_in_the_order_of_their_names(tmp_path):
    (tmp_path / "b").mkdir()
    write(tmp_path / "b" / "x.jsonl", [{"n": 2}])
    write(tmp_path / "a.json", [{"n": 1}])
    (tmp_path / "README.md").write_text("not rows")
    (tmp_path / "a.manifest.json").write_text("{}")

    assert [row["n"] for row in read_rows(tmp_path)] == [1, 2]


def test_a_missing_file_is_reported_at_once_with_the_nearest_name(tmp_path):
    write(tmp_path / "questions.jsonl", ROWS)

    with pytest.raises(DatasetError, match=r"did you mean 'questions.jsonl'\?"):
        read_rows(tmp_path / "question.jsonl")
    with pytest.raises(DatasetError, match="there is no file"):
        read_rows(tmp_path / "nowhere" / "rows.jsonl")


def test_an_unknown_kind_of_file_or_an_empty_folder_is_reported_at_once(tmp_path):
    (tmp_path / "rows.xlsx").write_text("")

    with pytest.raises(DatasetError, match=r"ends in '.xlsx'; rows are read from .jsonl"):
        read_rows(tmp_path / "rows.xlsx")
    (tmp_path / "experiment.yml").write_text("")
    with pytest.raises(DatasetError, match="an experiment's file is for `themis run`"):
        read_rows(tmp_path / "experiment.yml")
    with pytest.raises(DatasetError, match=r"no .jsonl, .*file in the folder"):
        read_rows(tmp_path)


def test_parquet_without_its_package_names_the_extra(tmp_path, monkeypatch):
    path = write(tmp_path / "rows.parquet", ROWS)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)

    with pytest.raises(DependencyError, match=r"themis-eval\[hub\]"):
        list(read_rows(path))


def test_sample_rows_are_shipped():
    assert next(sample_rows("gsm8k"))["answer"].endswith("#### 63")
