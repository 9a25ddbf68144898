"""Secrets stay out of whatever is written or shown; everything else stays as it is."""

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from themis.core.redaction import REDACTED, Redactor, redact, redact_text
from themis.core.secret_names import is_secret_name


@pytest.mark.parametrize(
    "name",
    [
        *("api_key", "API-KEY", "apiKey", "x-api-key", "openai_api_key", "Authorization", "Proxy-Authorization"),
        *("password", "db.password", "PASSWD", "passphrase", "client_secret", "aws_secret_access_key", "private_key"),
        *("token", "hf_token", "auth-token", "access_token", "refreshToken", "hubToken", "session_token", "Cookie"),
        *("credentials", "bearer"),
    ],
)
def test_these_names_hide_their_values(name):
    assert is_secret_name(name)


@pytest.mark.parametrize(
    "name",
    [
        *("prompt_tokens", "max_tokens", "completion_tokens", "total_tokens", "span_tokens", "tokens", "tokenizer"),
        *("eos_token", "pad_token", "stop-token", "author", "key", "keys", "dataset_id", "model", "passed"),
    ],
)
def test_these_names_do_not(name):
    assert not is_secret_name(name)


def test_secrets_are_found_by_their_keys_at_any_depth():
    options = {
        "model": "m",
        "max_tokens": 512,
        "usage": {"prompt_tokens": 3},
        "servers": [{"url": "http://host", "headers": {"Authorization": "anything at all"}}],
        "nested": ({"deeper": {"api_key": ["a", "b"]}},),
        "password": "",
        "token": None,
    }

    assert redact(options) == {
        "model": "m",
        "max_tokens": 512,
        "usage": {"prompt_tokens": 3},
        "servers": [{"url": "http://host", "headers": {"Authorization": REDACTED}}],
        "nested": [{"deeper": {"api_key": REDACTED}}],
        "password": "",
        "token": None,
    }
    assert options["nested"][0]["deeper"]["api_key"] == ["a", "b"]


def test_values_of_secret_environment_variables_are_found_wherever_they_stand(monkeypatch):
    monkeypatch.setenv("VENDOR_API_KEY", "correct-horse-battery")
    monkeypatch.setenv("VENDOR_REGION", "north-north-west")

    shown = redact({"note": ["called north-north-west with correct-horse-battery twice"]})

    assert shown == {"note": [f"called north-north-west with {REDACTED} twice"]}


def test_the_longer_of_two_secrets_is_taken_out_whole(monkeypatch):
    monkeypatch.setenv("A_TOKEN", "abcdefgh")
    monkeypatch.setenv("B_TOKEN", "abcdefgh-and-more")

    assert redact_text("<abcdefgh-and-more> <abcdefgh>") == f"<{REDACTED}> <{REDACTED}>"


def test_the_path_of_a_credentials_file_is_no_secret(monkeypatch, tmp_path):
    path = tmp_path / "credentials.json"
    path.write_text("{}")
    monkeypatch.setenv("CLOUD_CREDENTIALS", str(path))

    assert redact_text(f"reads {path}") == f"reads {path}"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Authorization: Bearer abc.DEF-123_456", f"Authorization: Bearer {REDACTED}"),
        ("got 'bearer   abcdefgh'", f"got 'bearer   {REDACTED}'"),
        ("header Basic dXNlcjpodW50ZXIy", f"header Basic {REDACTED}"),
        ("key sk-proj-abcdefghijklmnop1234 was refused", f"key {REDACTED} was refused"),
        ("hf_abcdefghijklmnopqrst", REDACTED),
        ("ghp_abcdefghijklmnopqrstuvwx", REDACTED),
        ("AKIAABCDEFGHIJKLMNOP", REDACTED),
        ("postgresql://ada:hunter2@host:5432/runs", f"postgresql://ada:{REDACTED}@host:5432/runs"),
        ("postgresql://ada:p@ss@host/runs", f"postgresql://ada:{REDACTED}@host/runs"),
        ("redis://:hunter2@host", f"redis://:{REDACTED}@host"),
        ("GET https://host/v1?q=cats&api_key=abc123&n=2", f"GET https://host/v1?q=cats&api_key={REDACTED}&n=2"),
        ("https://host/f?key=abc123", f"https://host/f?key={REDACTED}"),
    ],
)
def test_secrets_are_known_by_their_shape(text, shown):
    assert redact_text(text) == shown


@pytest.mark.parametrize(
    "text",
    [
        "Solve these basic arithmetic problems about a Bearer of news.",
        "Basic understanding of JavaScript; basic JavaScript",
        "the task-management-and-planning-suite",
        "see https://host:8080/path and mail ada@example.org",
        "https://host/search?q=tokens&max_tokens=5&page=2",
        "[3, 21, 95] -> 88",
    ],
)
def test_ordinary_text_is_left_alone(text):
    assert redact_text(text) == text


def test_a_models_answer_loses_known_secrets_but_not_what_merely_looks_like_one(monkeypatch):
    monkeypatch.setenv("VENDOR_API_KEY", "correct-horse-battery")
    redactor = Redactor({"headers": {"Authorization": "Bearer options-secret"}})

    answer = "keys look like sk-abcdefghijklmnopqrstuv; mine is correct-horse-battery, yours options-secret"

    assert redactor.values(answer) == f"keys look like sk-abcdefghijklmnopqrstuv; mine is {REDACTED}, yours {REDACTED}"


@given(st.text(st.characters(codec="ascii", categories=("L", "N")), min_size=8, max_size=40), st.text(), st.text())
def test_a_secret_option_never_survives(secret, before, after):
    redactor = Redactor({"api_key": secret})

    assert secret not in redactor.values(f"{before} {secret} {after}").replace(REDACTED, " ")


@given(st.text(min_size=1, max_size=12), st.text(min_size=5, max_size=20))
def test_a_basic_header_never_survives(user, password):
    pair = base64.b64encode(f"{user}:{password}".encode("utf-8", "replace")).decode()

    assert redact_text(f"Authorization: Basic {pair}") == f"Authorization: Basic {REDACTED}"
