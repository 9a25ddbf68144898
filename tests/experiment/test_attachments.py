"""Images and files that rows name: stored once by their content, sent with the prompt, there again when a run is resumed."""

from __future__ import annotations

import base64
import hashlib

import pytest

import themis
from themis.core.entities import GenerationRecord, ModelOutput
from themis.exceptions import DatasetError
from themis.interfaces import StatelessTaskExecutor
from themis.storage import ExperimentStorage
from themis.storage.runs import ATTACHED

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
DIGEST = hashlib.sha256(PNG).hexdigest()
SEEN: list[tuple[list[dict], dict[str, bytes]]] = []


class Looking(StatelessTaskExecutor):
    """Says what it was shown."""

    prompt_only = True

    def execute(self, task):
        SEEN.append((task.metadata["messages"], task.metadata[ATTACHED]))
        kinds = [part["type"] for part in task.metadata["messages"][-1]["content"]]
        return GenerationRecord(task, ModelOutput(" ".join(kinds)), None)


@pytest.fixture(autouse=True)
def looking():
    SEEN.clear()
    themis.register_provider("looking", Looking)


def evaluate(tmp_path, rows, **arguments):
    given = {"model": "looking/any", "prompt": "{question}", "attach": ["image"], "storage": tmp_path / "store"}
    return themis.evaluate(rows, progress=False, run_id="r", **given | arguments)


@pytest.mark.parametrize("how", ["path", "bytes", "data", "hub", "list"])
def test_an_image_is_sent_behind_the_prompt_and_stored_once(tmp_path, how):
    (tmp_path / "cat.png").write_bytes(PNG)
    given = {
        "path": str(tmp_path / "cat.png"),
        "bytes": PNG,
        "data": f"data:image/png;base64,{base64.b64encode(PNG).decode()}",
        "hub": {"bytes": PNG, "path": "cat.png"},
        "list": [str(tmp_path / "cat.png")],
    }[how]
    report = evaluate(
        tmp_path, [{"id": str(n), "question": "What?", "image": given, "answer": "text image"} for n in range(2)]
    )

    assert report.metric("exact_match").mean == 1.0
    messages, attached = SEEN[0]
    assert messages[-1]["content"][1]["digest"] == DIGEST
    assert attached == {DIGEST: PNG}
    stored = ExperimentStorage(tmp_path / "store").reader("r").attachment(DIGEST)
    assert (stored.media_type, stored.content) == ("image/png", PNG)


def test_a_resumed_run_has_its_images_though_the_files_are_gone(tmp_path):
    path = tmp_path / "cat.png"
    path.write_bytes(PNG)
    rows = [{"id": str(n), "question": "What?", "image": str(path), "answer": "text image"} for n in range(3)]
    evaluate(tmp_path, rows, stop_when=lambda record: "enough", workers=1)
    path.unlink()
    SEEN.clear()
    report = themis.api.resume("r", storage=tmp_path / "store", progress=False)

    assert report.metric("exact_match").count == 3
    assert all(attached == {DIGEST: PNG} for _, attached in SEEN)


def test_a_changed_image_is_another_dataset(tmp_path):
    path = tmp_path / "cat.png"
    rows = [{"id": "1", "question": "What?", "image": str(path), "answer": "text image"}]
    path.write_bytes(PNG)
    evaluate(tmp_path, rows)
    path.write_bytes(PNG + b"x")

    with pytest.raises(themis.exceptions.ConfigurationError, match="dataset"):
        evaluate(tmp_path, rows)


def test_addresses_are_passed_on_and_other_files_are_files(tmp_path):
    (tmp_path / "notes.txt").write_text("remember")
    rows = [
        {"id": "1", "question": "?", "image": "https://example.org/cat.png", "answer": "text image"},
        {"id": "2", "question": "?", "image": str(tmp_path / "notes.txt"), "answer": "text file"},
        {"id": "3", "question": "?", "image": None, "answer": "x"},
    ]
    report = evaluate(tmp_path, rows[:2])

    assert report.metric("exact_match").mean == 1.0
    assert SEEN[0][0][-1]["content"][1] == {"type": "image", "url": "https://example.org/cat.png"}


def test_attachments_go_with_the_last_run_that_has_them(tmp_path):
    rows = [{"id": "1", "question": "What?", "image": PNG, "answer": "text image"}]
    for run_id in ("a", "b"):
        themis.evaluate(rows, model="looking/any", prompt="{question}", attach=["image"], storage=tmp_path, progress=False,
                        run_id=run_id)  # fmt: skip
    store = ExperimentStorage(tmp_path)
    store.delete_run("a")
    assert store.reader("b").attachment(DIGEST) is not None
    store.delete_run("b")
    themis.evaluate(
        [{"q": "x", "answer": "x"}], model="fake/echo", prompt="{q}", storage=tmp_path, progress=False, run_id="c"
    )

    assert store.reader("c").attachment(DIGEST) is None


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"question": "?", "picture": "x"}, "did you mean"),
        ({"question": "?", "image": "absent.png"}, "cannot read"),
        ({"question": "?", "image": 3}, "expected a path"),
        ({"question": "?", "image": "data:image/png;base64,###"}, "not base64"),
        ({"question": "?", "image": "data:image/png;base64,"}, "is empty"),
        ({"question": "?", "image": "data:text/plain,hello"}, "is given as data:image/png;base64,"),
        ({"question": "?", "image": "iVBORw0KGgo" * 1000}, "(11,000 characters) is no path"),
        ({"question": "?", "image": "ftp://example.org/a.png"}, "'ftp://example.org/a.png' is not read"),
        ({"question": "?", "image": "data:image/png;base64,bm90IGFuIGltYWdl"}, "should be image/png"),
    ],
)
def test_what_cannot_be_attached_is_told_before_the_first_call(tmp_path, row, said):
    with pytest.raises(DatasetError, match="row 0") as error:
        evaluate(tmp_path, [{"id": "1", "answer": "x", **row}])
    assert said in str(error.value) or said == "did you mean"
    assert not SEEN


def test_an_address_may_be_in_a_mapping_and_in_capitals(tmp_path):
    pictures = [{"url": "https://example.org/cat.png"}, "HTTPS://EXAMPLE.org/dog.png"]
    evaluate(tmp_path, [{"id": "1", "question": "?", "image": pictures, "answer": "x"}])

    assert [part["url"] for part in SEEN[0][0][-1]["content"] if part["type"] == "image"] == [
        "https://example.org/cat.png",
        "HTTPS://EXAMPLE.org/dog.png",
    ]


def test_a_function_finds_the_picture_in_the_field_that_names_it(tmp_path):
    def look(image, row):
        assert image == row["image"]
        return base64.b64decode(image["data"])[1:4].decode()

    report = themis.evaluate(
        [{"id": "1", "question": "?", "image": PNG, "answer": "PNG"}],
        model=look,
        attach=["image"],
        storage=tmp_path,
        progress=False,
    )

    assert report.metric("exact_match").mean == 1.0


def test_an_image_is_sent_as_what_it_is_whatever_it_is_called(tmp_path):
    (tmp_path / "a.jpg").write_bytes(PNG)
    mislabelled = "data:image/jpeg;base64," + base64.b64encode(PNG).decode()

    evaluate(tmp_path, [{"id": "1", "question": "?", "image": [str(tmp_path / "a.jpg"), mislabelled], "answer": "x"}])

    assert [part["media_type"] for part in SEEN[0][0][-1]["content"] if part["type"] == "image"] == ["image/png"] * 2


def test_a_text_that_is_called_an_image_is_told_before_the_first_call(tmp_path):
    (tmp_path / "a.png").write_text("not an image")

    with pytest.raises(DatasetError, match=r"a\.png should be image/png"):
        evaluate(tmp_path, [{"id": "1", "question": "?", "image": str(tmp_path / "a.png"), "answer": "x"}])
    assert not SEEN
