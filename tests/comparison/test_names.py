"""Long run ids in tables: short, and still told apart."""

from hypothesis import given
from hypothesis import strategies as st

from themis.comparison.reports import short_labels

ids = st.lists(st.text("ab-_ 1", min_size=1, max_size=90), min_size=1, max_size=5, unique=True)


def test_ids_that_fit_stay_as_they_are():
    assert short_labels(["baseline", "candidate"], 20) == {"baseline": "baseline", "candidate": "candidate"}


def test_ids_that_begin_alike_are_called_by_their_ends():
    shared = "experiment-2026-11-16-qwen2.5-coder-temperature-0.7-chain-of-thought"

    names = short_labels([f"{shared}-a", f"{shared}-b"], 20)

    assert list(names.values()) == ["…-chain-of-thought-a", "…-chain-of-thought-b"]


def test_ids_that_end_alike_are_called_by_the_words_in_which_they_differ():
    end = "-on-a-benchmark-with-a-name-of-its-own"

    names = short_labels([f"lab-large-model{end}", f"lab-little-model{end}"], 24)

    assert list(names.values()) == ["…large-model-on…-its-own", "…little-model-o…-its-own"]


@given(ids, st.integers(12, 60))
def test_names_are_different_and_short_unless_that_cannot_be(run_ids, longest):
    names = short_labels(run_ids, longest)

    assert list(names) == run_ids
    assert len(set(names.values())) == len(run_ids)
    assert all(len(name) <= longest for name in names.values()) or all(name == one for one, name in names.items())
