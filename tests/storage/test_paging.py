"""What looks like a list or dict of a whole run reads it a page at a time."""

import gc
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.storage.stored_runs import FRAME, answered, call, failed, fill, item, judged, rows
from themis.core.entities import MetricScore
from themis.storage import ExperimentStorage
from themis.storage.lazy import LazyMapping, LazySequence

MANY = 1_234


@given(st.integers(0, 1_200), st.lists(st.integers(-1_300, 1_300), max_size=6), st.slices(1_200))
@settings(max_examples=60)
def test_a_lazy_sequence_behaves_like_the_list_it_stands_for(length, indices, cut):
    whole = list(range(length))
    lazy = LazySequence(length, lambda: iter(whole))

    assert (len(lazy), list(lazy), lazy == whole, lazy[cut]) == (length, whole, True, whole[cut])
    for index in indices:
        if -length <= index < length:
            assert lazy[index] == whole[index]
        else:
            with pytest.raises(IndexError, match=f"index {index} of a sequence of {length}"):
                lazy[index]


def test_a_lazy_sequence_counts_itself_when_nobody_has():
    lazy = LazySequence(None, lambda: iter("abc"))

    assert (len(lazy), repr(lazy), lazy[-1], lazy != ["a"]) == (3, "<3 stored entries>", "c", True)


def test_going_forwards_reads_each_page_once():
    streams = []

    def stream():
        streams.append(1)
        return iter(range(5_000))

    lazy = LazySequence(5_000, stream)

    assert [lazy[n] for n in range(5_000)] == list(range(5_000))
    assert len(streams) == 1


def test_a_sequence_whose_run_has_shrunk_says_so():
    lazy = LazySequence(10, lambda: iter(range(3)))

    with pytest.raises(IndexError, match="fewer entries than when this was made"):
        lazy[5]


def test_a_lazy_mapping_behaves_like_the_dict_it_stands_for():
    whole = {f"key-{n}": n for n in range(10)}
    lazy = LazyMapping(lambda: iter(whole.items()), lambda: len(whole), whole.get)

    assert (dict(lazy), list(lazy), len(lazy), lazy["key-3"]) == (whole, list(whole), 10, 3)
    assert (list(lazy.values()), list(lazy.items())) == (list(whole.values()), list(whole.items()))
    assert (len(lazy.values()), len(lazy.items()), "key-3" in lazy, "none" in lazy, 3 in lazy) == (
        10,
        10,
        True,
        False,
        False,
    )
    assert (lazy.get("none"), repr(lazy)) == (None, "<10 stored entries>")
    with pytest.raises(KeyError, match="none"):
        lazy["none"]


def test_pages_follow_each_other_without_a_gap(storage):
    storage.start_run("run", config={"task": FRAME.to_config()})
    many = rows(MANY)
    with storage.open_run("run") as writer:
        writer.store_dataset(item(n, row) for n, row in enumerate(many))
        evaluation = writer.open_evaluation("e" * 32, {})
        # Three attempts each put the end of a page inside a sample.
        writer.commit_results([call(n, answered(row, None, a), a) for n, row in enumerate(many) for a in range(3)])
        scored = [
            judged(n, answered(row), MetricScore("A", n), MetricScore("B", -n)) for n, row in enumerate(many[:700])
        ]
        writer.commit_scores(evaluation, [verdict for verdicts in scored for verdict in verdicts])
    reader = storage.reader("run")

    assert [sample.row for sample in reader.samples()] == many
    assert [sample.position for sample in reader.samples()] == list(range(MANY))
    records = list(reader.records())
    assert [position for position, _ in records] == list(range(MANY))
    assert {len(record.attempts) for _, record in records} == {3}
    evaluations = list(reader.evaluations(evaluation))
    assert [(position, [score.value for score in record.scores]) for position, record in evaluations] == [
        (n, [n, -n]) for n in range(700)
    ]
    assert [position for position, _ in reader.unjudged(evaluation)] == list(range(700, MANY))
    assert reader.count_evaluated(evaluation) == 700
    assert reader.position_before_last(10) == MANY - 11
    assert storage.load_cached_records("run")["item-1000"].task.metadata["dataset_id"] == "item-1000"


def test_a_sample_with_more_rows_than_a_page_is_read_whole(storage):
    storage.start_run("run", config={"task": FRAME.to_config()})
    first, second = rows(2)
    with storage.open_run("run") as writer:
        writer.store_dataset([item(0, first), item(1, second)])
        writer.commit_results([call(0, answered(first, str(a), a), a) for a in range(1_100)])
        writer.commit_results([call(1, answered(second))])

    counted = [(position, len(record.attempts)) for position, record in storage.reader("run").records()]

    assert counted == [(0, 1_100), (1, 1)]


def test_unfinished_samples_come_with_the_attempts_they_have(storage):
    storage.start_run("run", config={"task": FRAME.to_config()})
    many = rows(600)
    with storage.open_run("run") as writer:
        writer.store_dataset(item(n, row) for n, row in enumerate(many))
        writer.commit_results([call(n, answered(row, None, 1), 1) for n, row in enumerate(many[:550])])
        writer.commit_results([call(n, answered(row), 0) for n, row in enumerate(many[:10])])
        writer.commit_results([call(11, failed(many[11]), 0)])

    found = [(sample.position, have) for sample, have in storage.reader("run").unfinished(2)]

    assert found == [(n, frozenset({1})) for n in range(10, 550)] + [(n, frozenset()) for n in range(550, 600)]


def test_reading_goes_on_while_the_run_is_being_written(storage):
    fill(storage, "run", 1_100)
    row = {"id": "late", "question": "?", "answer": "!"}
    seen = 0
    with storage.open_run("run") as writer:
        for seen, _ in enumerate(storage.reader("run").records(), start=1):
            if seen == 10:
                writer.restore_rows([item(1_100, row)])
                writer.commit_results([call(1_100, answered(row))])

    assert seen == 1_101


def test_twenty_thousand_records_are_read_in_the_memory_of_one_page(tmp_path):
    storage = ExperimentStorage(tmp_path / "store")
    storage.start_run("run", config={"task": FRAME.to_config()})
    text, many = "x" * 1_000, rows(20_000)
    with storage.open_run("run") as writer:
        writer.store_dataset(item(n, row) for n, row in enumerate(many))
        for start in range(0, 20_000, 1_000):
            writer.commit_results([call(n, answered(many[n], text)) for n in range(start, start + 1_000)])
    records = storage.load_cached_records("run")
    next(iter(records.values()))
    gc.collect()
    tracemalloc.start()

    count = sum(1 for record in records.values() if record.output.text == text)

    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    storage.close()
    assert count == 20_000
    assert peak < 12_000_000, f"20 MB of answers were read with a peak of {peak:,} bytes"
