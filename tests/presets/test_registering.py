"""Benchmarks by name: the catalogue's, users' own, and where their rows come from."""

from __future__ import annotations

import json

import datasets
import pyarrow.parquet
import pytest

from themis.core.entities import MetricScore
from themis.evaluation.extractors import IdentityExtractor
from themis.evaluation.resolve import resolve_extractor, resolve_metric
from themis.exceptions import ConfigurationError, DatasetError
from themis.generation.templates import PromptTemplate
from themis.interfaces import Metric
from themis.presets import (
    BenchmarkPreset,
    create_dataset,
    fetch_benchmark,
    get_benchmark_preset,
    is_dataset_registered,
    list_benchmarks,
    list_datasets,
    register_benchmark,
    register_dataset,
)
from themis.presets.benchmarks import BENCHMARKS, DATASETS
from themis.presets.loading import sample_rows


@pytest.fixture(autouse=True)
def _registries_as_before(monkeypatch):
    for registry in (BENCHMARKS, DATASETS):
        registry.names()
        monkeypatch.setattr(registry, "_targets", {name: registry.target(name) for name in registry.names()})


class Always(Metric):
    name = "Always"

    def compute(self, *, prediction, references, metadata=None):
        return MetricScore(self.name, 1.0)


def preset(name="Mine", loader=lambda limit=None: [{"id": "1", "q": "?", "answer": "!"}][:limit], **changes):
    given = {
        "name": name,
        "prompt_template": PromptTemplate(name="t", template="{q}"),
        "metrics": [Always()],
        "extractor": IdentityExtractor(),
        "dataset_loader": loader,
        **changes,
    }
    return BenchmarkPreset(**given)


def test_a_preset_has_the_documented_defaults():
    mine = preset()

    assert (mine.metadata_fields, mine.reference_field, mine.dataset_id_field, mine.description) == (
        (),
        "answer",
        "id",
        "",
    )


def test_the_loader_receives_the_limit_as_its_one_positional_argument():
    calls = []
    mine = preset(loader=lambda *args, **kwargs: calls.append((args, kwargs)) or [])

    mine.load_dataset()
    mine.load_dataset(limit=3)
    mine.load_dataset(4)

    assert calls == [((None,), {}), ((3,), {}), ((4,), {})]


def test_a_registered_benchmark_is_found_whatever_the_letters_case_and_can_be_replaced():
    register_benchmark(preset("My-Bench", description="one"))
    register_benchmark(preset("my-bench", description="two"))

    assert get_benchmark_preset("MY-BENCH").description == "two"
    assert "my-bench" in list_benchmarks()


def test_a_user_s_benchmark_may_take_a_catalogue_s_name():
    register_benchmark(preset("gsm8k"))

    assert list(get_benchmark_preset("gsm8k").load_dataset()) == [{"id": "1", "q": "?", "answer": "!"}]
    with pytest.raises(ConfigurationError, match="no sample rows"):
        get_benchmark_preset("gsm8k", sample=True)


def test_only_presets_can_be_registered():
    with pytest.raises(ConfigurationError, match="BenchmarkPreset, got dict"):
        register_benchmark({"name": "x"})  # type: ignore[arg-type]


def test_an_unknown_benchmark_is_answered_with_the_nearest_name_and_all_of_them():
    with pytest.raises(ConfigurationError) as caught:
        get_benchmark_preset("gsm8")

    assert "did you mean 'gsm8k'?" in str(caught.value)
    assert "mmlu-pro" in str(caught.value)


def test_names_of_metrics_and_extractors_are_looked_up_when_they_are_used():
    mine = preset(metrics=["exact_match", Always], extractor="last_number")

    assert [metric.name for metric in map(resolve_metric, mine.metrics)] == ["ExactMatch", "Always"]
    assert resolve_extractor(mine.extractor).extract("it is 42") == "42"
    unknown = preset(metrics=["no_such_metric"])
    with pytest.raises(ValueError, match="no_such_metric"):
        [resolve_metric(metric) for metric in unknown.metrics]


# ---- rows: sample, local copies, the Hub ----


def test_rows_can_be_gone_through_again_and_are_limited():
    rows = get_benchmark_preset("gsm8k", sample=True).load_dataset(2)

    assert list(rows) == list(rows)
    assert len(list(rows)) == 2


@pytest.mark.parametrize("suffix", [".jsonl", ".json", ".parquet"])
def test_a_local_copy_in_the_source_s_layout_gives_the_sample_s_rows(tmp_path, suffix):
    raw = list(sample_rows("mmlu-pro"))
    path = tmp_path / f"copy{suffix}"
    if suffix == ".parquet":
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(raw), path)
    else:
        path.write_text(json.dumps(raw) if suffix == ".json" else "\n".join(map(json.dumps, raw)))

    local = get_benchmark_preset("mmlu-pro", data=path).load_dataset()

    assert list(local) == list(get_benchmark_preset("mmlu-pro", sample=True).load_dataset())


def test_a_local_copy_as_csv_is_read_too(tmp_path):
    (tmp_path / "c.csv").write_text('nums,target\n"[95, 21, 3]",88\n')

    (row,) = get_benchmark_preset("countdown", data=tmp_path / "c.csv").load_dataset()

    assert row == {
        "id": "0",
        "numbers": [95, 21, 3],
        "numbers_str": "95, 21, 3",
        "target": 88,
        "reference": {"numbers": [95, 21, 3], "target": 88, "answer": "95 - 21 / 3"},
    }


def test_of_a_folder_with_several_splits_only_the_benchmark_s_is_read(tmp_path):
    raw = list(sample_rows("sciq"))
    for split, rows in {"train": raw[:1], "test": raw[1:]}.items():
        for shard, row in enumerate(rows):
            name = f"{split}-0000{shard}-of-0000{len(rows)}.parquet"
            pyarrow.parquet.write_table(pyarrow.Table.from_pylist([row]), tmp_path / name)

    questions = [row["question"] for row in get_benchmark_preset("sciq", data=tmp_path).load_dataset()]

    assert questions == [row["question"] for row in raw[1:]]


@pytest.mark.parametrize("as_dictionary", [True, False])
def test_a_folder_that_the_datasets_package_saved_is_read(tmp_path, as_dictionary):
    saved = datasets.Dataset.from_list(list(sample_rows("gsm8k")))
    (datasets.DatasetDict({"test": saved}) if as_dictionary else saved).save_to_disk(str(tmp_path / "saved"))

    rows = get_benchmark_preset("gsm8k", data=tmp_path / "saved").load_dataset()

    assert [row["answer"] for row in rows] == ["63", "1200", "32"]


def test_a_row_of_another_layout_is_named(tmp_path):
    (tmp_path / "x.jsonl").write_text('{"question": "?", "answer": "#### 1"}\n{"query": "?", "answer": "1"}\n')

    with pytest.raises(DatasetError) as caught:
        list(get_benchmark_preset("gsm8k", data=tmp_path / "x.jsonl").load_dataset())

    assert "gsm8k: row 2 of" in str(caught.value)
    assert "expected the source's fields question, answer" in str(caught.value)
    assert "found query, answer" in str(caught.value)


def test_a_split_without_labels_is_refused(tmp_path):
    raw = {**next(sample_rows("medmcqa")), "cop": -1}
    (tmp_path / "test.jsonl").write_text(json.dumps(raw))

    with pytest.raises(DatasetError, match="labels are hidden"):
        list(get_benchmark_preset("medmcqa", data=tmp_path).load_dataset())


def test_a_missing_local_copy_is_reported_before_any_row_is_asked_for(tmp_path):
    with pytest.raises(DatasetError, match="there is no file"):
        get_benchmark_preset("gsm8k", data=tmp_path / "none.jsonl").load_dataset()


def test_data_and_sample_exclude_each_other(tmp_path):
    with pytest.raises(ConfigurationError, match="not both"):
        get_benchmark_preset("gsm8k", data=tmp_path, sample=True).load_dataset()


def test_a_negative_limit_is_refused():
    with pytest.raises(ConfigurationError, match="0 or more"):
        get_benchmark_preset("gsm8k", sample=True).load_dataset(-1)


def test_a_user_s_benchmark_reads_other_rows_from_a_file(tmp_path):
    register_benchmark(preset("mine"))
    (tmp_path / "rows.jsonl").write_text('{"id": "a"}\n{"id": "b"}\n')

    rows = get_benchmark_preset("mine", data=tmp_path / "rows.jsonl").load_dataset(1)

    assert list(rows) == list(rows) == [{"id": "a"}]


@pytest.fixture
def hub(monkeypatch):
    """Stands in for the Hub: what it holds, and what it was asked for."""

    class Hub:
        rows = None
        asked = ()

    def load_dataset(*args, **kwargs):
        Hub.asked = (args, kwargs)
        if Hub.rows is None:
            raise ConnectionError(f"Couldn't reach {args[0]!r} on the Hub")
        return datasets.Dataset.from_list(Hub.rows)

    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    monkeypatch.setattr("themis.presets.hub._reachable", lambda endpoint: Hub.rows is not None)
    return Hub


def test_rows_come_from_the_hub_at_the_pinned_revision(hub):
    hub.rows = list(sample_rows("gsm8k"))

    rows = list(get_benchmark_preset("gsm8k").load_dataset(2))

    assert [row["answer"] for row in rows] == ["63", "1200"]
    assert hub.asked[0] == ("openai/gsm8k", "main")
    assert hub.asked[1]["split"] == "test"
    assert len(hub.asked[1]["revision"]) == 40


def test_without_hub_and_data_one_line_says_what_can_be_done(hub):
    with pytest.raises(DatasetError) as caught:
        get_benchmark_preset("gsm8k").load_dataset(3)

    message = str(caught.value)
    assert "\n" not in message
    assert "openai/gsm8k (main, test)" in message
    assert "cannot be reached" in message
    assert "--data PATH" in message
    assert "`themis data fetch gsm8k --to DIR`" in message
    assert "--sample" in message


def test_without_a_connection_the_package_is_told_so_and_left_as_it_was(hub, monkeypatch):
    seen = []
    monkeypatch.setattr(
        datasets, "load_dataset", lambda *args, **kwargs: seen.append(datasets.config.HF_HUB_OFFLINE) or []
    )
    before = datasets.config.HF_HUB_OFFLINE

    get_benchmark_preset("gsm8k").load_dataset(3)

    assert seen == [True]
    assert before == datasets.config.HF_HUB_OFFLINE


def test_a_gated_dataset_says_how_access_is_got(hub):
    with pytest.raises(DatasetError, match="access to it must be asked for"):
        get_benchmark_preset("gpqa").load_dataset(3)


def test_a_fetched_benchmark_is_the_same_without_the_hub(hub, tmp_path):
    hub.rows = list(sample_rows("medmcqa"))
    online = list(get_benchmark_preset("medmcqa").load_dataset())

    fetched = fetch_benchmark("MedMCQA", tmp_path / "deep" / "folder")
    hub.rows = None
    offline = get_benchmark_preset("medmcqa", data=tmp_path / "deep" / "folder").load_dataset()

    assert list(offline) == online
    assert fetched.rows == len(online) == 4
    manifest = json.loads(fetched.manifest_path.read_text())
    assert manifest["rows"] == 4
    assert manifest["sha256"] == fetched.sha256
    assert manifest["source"]["dataset"] == "openlifescienceai/medmcqa"
    assert manifest["source"]["revision"] == "91c6572c454088bf71b679ad90aa8dffcd0d5868"
    assert manifest["licence"] == "Apache-2.0"


def test_several_benchmarks_share_a_folder(tmp_path):
    fetch_benchmark("countdown-3", tmp_path, limit=2)
    fetch_benchmark("demo", tmp_path, limit=2)

    assert [
        len(list(get_benchmark_preset(name, data=tmp_path).load_dataset())) for name in ("demo", "countdown-3")
    ] == [2, 2]


def test_a_fetched_file_that_changed_on_the_way_is_refused(tmp_path):
    fetched = fetch_benchmark("countdown", tmp_path, limit=3)
    fetched.path.write_text(fetched.path.read_text()[:-20])

    with pytest.raises(DatasetError, match="fetch or copy it again"):
        get_benchmark_preset("countdown", data=fetched.path).load_dataset()


def test_a_fetch_that_fails_leaves_the_copy_from_before(hub, tmp_path):
    hub.rows = list(sample_rows("gsm8k"))
    fetched = fetch_benchmark("gsm8k", tmp_path)
    hub.rows = None

    with pytest.raises(DatasetError, match="needs a connection"):
        fetch_benchmark("gsm8k", tmp_path)

    assert len(fetched.path.read_text().splitlines()) == 3


def test_a_user_s_benchmark_cannot_be_fetched(tmp_path):
    register_benchmark(preset("mine"))

    with pytest.raises(ConfigurationError, match="loads its own rows"):
        fetch_benchmark("mine", tmp_path)


# ---- datasets ----


def test_a_dataset_is_registered_once_and_made_with_options():
    register_dataset("mine", lambda options: [{"n": options.get("n", 0)}])

    assert is_dataset_registered("mine")
    assert "mine" in list_datasets()
    assert create_dataset("mine", {"n": 3}) == [{"n": 3}]
    assert create_dataset("mine") == [{"n": 0}]
    with pytest.raises(ConfigurationError, match="already a dataset 'mine'"):
        register_dataset("mine", lambda options: [])


def test_the_catalogue_s_rows_are_datasets_too():
    assert {"gsm8k", "countdown"} <= set(list_datasets())
    assert len(list(create_dataset("gsm8k", {"sample": True, "limit": 2}))) == 2
    with pytest.raises(ConfigurationError, match="no option 'split'"):
        create_dataset("gsm8k", {"split": "train"})


def test_unknown_datasets_and_unfit_factories_are_refused():
    assert not is_dataset_registered("nope")
    with pytest.raises(ConfigurationError, match="unknown dataset 'nope'"):
        create_dataset("nope")
    with pytest.raises(ConfigurationError, match="expected a function of options"):
        register_dataset("nope", [1, 2])  # type: ignore[arg-type]


def test_a_benchmark_s_metrics_are_objects_however_they_were_named():
    mine = preset(metrics=["exact_match", Always, Always()], extractor="identity")

    assert [metric.name for metric in mine.metrics] == ["ExactMatch", "Always", "Always"]
    assert [metric.name for metric in mine.metrics[1:]] == ["Always", "Always"]
    assert mine.metrics[2] is mine.written_metrics[2]
    assert mine.protocol.metrics == ("exact_match", "Always", "Always")


@pytest.mark.parametrize("name", list_benchmarks())
def test_the_metrics_of_every_benchmark_of_the_catalogue_have_names(name):
    found = get_benchmark_preset(name)

    assert all(metric.name for metric in found.metrics)
    assert found.read_from(sample=True).protocol == found.protocol


def test_rows_have_a_length(tmp_path):
    assert len(get_benchmark_preset("demo").dataset_loader(3)) == 3
    assert len(get_benchmark_preset("coqa", sample=True).load_dataset()) > len(list(sample_rows("coqa")))
    (tmp_path / "demo.jsonl").write_text(
        "".join(json.dumps({"id": n, "question": "q", "answer": "a"}) + "\n" for n in "ab")
    )
    assert len(get_benchmark_preset("demo", data=tmp_path).load_dataset(5)) == 2
