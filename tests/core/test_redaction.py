"""Secrets stay out of whatever is written or shown; everything else stays as it is."""

import base64
import html
import json
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from themis.core.redaction import (
    REDACTED,
    Redactor,
    learn_secrets,
    look_up_secrets,
    redact,
    redact_options,
    redact_text,
)
from themis.core.secrets import is_secret_name
from themis.exceptions import ConfigurationError


@pytest.mark.parametrize(
    "name",
    [
        *("api_key", "API-KEY", "apiKey", "x-api-key", "openai_api_key", "Authorization", "Proxy-Authorization"),
        *("password", "db.password", "PASSWD", "passphrase", "client_secret", "aws_secret_access_key", "private_key"),
        *("token", "hf_token", "auth-token", "access_token", "refreshToken", "hubToken", "session_token", "Cookie"),
        *("credentials", "bearer", "Ocp-Apim-Subscription-Key", "X-Auth-Key", "Helicone-Auth", "X-Custom-Auth", "auth"),
        *("pwd", "DB_PASS", "sas", "x-jwt", "basicAuth", "portkey-virtual-key", "OAUTH", "smtp_pwd"),
    ],
)
def test_these_names_hide_their_values(name):
    assert is_secret_name(name)


@pytest.mark.parametrize(
    "name",
    [
        *("prompt_tokens", "max_tokens", "completion_tokens", "total_tokens", "span_tokens", "tokens", "tokenizer"),
        *("eos_token", "pad_token", "stop-token", "author", "key", "keys", "dataset_id", "model", "passed"),
        *("pass_rate", "compass", "authority", "pattern", "primary_key", "cache_key", "oauth_scopes", "basename"),
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
        ("https://host/f?subscription=abc&sas=1234", f"https://host/f?subscription={REDACTED}&sas={REDACTED}"),
        ("postgresql://ada:p/s@s@host/runs", f"postgresql://ada:{REDACTED}@host/runs"),
        ("clone https://a-token-alone@host/x.git", f"clone https://{REDACTED}@host/x.git"),
        *(
            (f"{prefix}{'aB3' * 8}", REDACTED)
            for prefix in ("gsk_", "xai-", "nvapi-", "r8_", "glpat-", "pplx-", "sk-ant-")
        ),
        *(
            (f"{prefix}{'aB3' * 14}", REDACTED)
            for prefix in ("github_pat_", "AIza", "xoxb-", "pypi-", "npm_", "ya29.", "lsv2_pt_")
        ),
        ("ASIAABCDEFGHIJKLMNOP", REDACTED),
        ("<eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.SflKxwRJ>", f"<{REDACTED}>"),
        (
            "-----BEGIN EC PRIVATE KEY-----\nMHcCAQEE\n-----END EC PRIVATE KEY-----",
            f"-----BEGIN EC PRIVATE KEY----- {REDACTED}",
        ),
        (
            "curl -H 'X-Lab: research' -H 'Accept: */*' -u ada:hunter2",
            f"curl -H 'X-Lab: {REDACTED}' -H 'Accept: */*' -u ada:{REDACTED}",
        ),
        ("env LAB_KEY=q7w8e9r0t1 ./agent -k z9y8x7w6v5", f"env LAB_KEY={REDACTED} ./agent -k {REDACTED}"),
        ("Incorrect API key provided: Xk29fjQp1Lz8Yt7Rw3Vb6Nm4", f"Incorrect API key provided: {REDACTED}"),
        ("./agent --api-key abc123 --verbose", f"./agent --api-key {REDACTED} --verbose"),
        ("ACME_TOKEN='abc123' ./agent", f"ACME_TOKEN='{REDACTED}' ./agent"),
        ('sent {"api_key": "q7w8e9r0t1", "n": 1}', f'sent {{"api_key": "{REDACTED}", "n": 1}}'),
        ('{\\"password\\": \\"q7w8e9r0t1\\"}', f'{{\\"password\\": \\"{REDACTED}\\"}}'),
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
        "unexpected token: expected a name, in pass: 0.5; --token --verbose",
        "the risk-averse-and-overly-careful agent in asiapacificnorthwest",
        "api_key=${ACME_KEY} --token ${OTHER}",
        "sort_key=created_at, the key question-17 and the token <eos> were not found",
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


# --- options ----------------------------------------------------------------------------------------------------------


def test_headers_are_secret_unless_they_are_known_to_be_harmless():
    shown = redact_options(
        {
            "extra_headers": {
                "X-Whatever": "q7w8e9r0t1",
                "X-Team": "research",
                "X-Title": "Our lab",
                "Accept": "text/plain",
            },
            "headers": [["X-Pair", "abc"]],
        }
    )

    assert shown["extra_headers"] == {
        "X-Whatever": REDACTED,
        "X-Team": REDACTED,
        "X-Title": "Our lab",
        "Accept": "text/plain",
    }
    assert "abc" not in str(shown["headers"])


def test_names_that_are_in_doubt_hide_what_looks_like_a_key():
    options = {"license_key": "q7w8e9r0t1", "sort_key": "created_at", "sessionKey": "z9y8x7w6v5", "signature": "short"}

    assert redact_options(options) == {**options, "license_key": REDACTED, "sessionKey": REDACTED}


def test_parameters_of_an_address_are_secret_unless_they_are_known_to_be_harmless():
    shown = redact_options({"base_url": "https://host/v1?subscription=a-1&unheard=b&api-version=2024-10-21&model=m"})

    assert shown["base_url"] == (
        f"https://host/v1?subscription={REDACTED}&unheard={REDACTED}&api-version=2024-10-21&model=m"
    )


def test_what_an_option_held_is_taken_out_of_every_later_text_of_the_process():
    late, early = Redactor(), "q7w8e9r0t1-late"
    assert late.values(f"said {early}") == f"said {early}"

    learn_secrets({"extra_headers": {"X-Whatever": early}})

    assert late.values(f"said {early}") == f"said {REDACTED}"
    assert redact_text(f"{early}!") == f"{REDACTED}!"


@pytest.mark.parametrize(
    ("options", "answer"),
    [
        ({"extra_headers": {"X-Team": "research", "X-Region": "eu-central-1"}}, "research in eu-central-1"),
        (
            {"extra_headers": {"X-Model": "gpt-4o-mini-2024-07-18", "X-Class": "OpenAICompatible"}},
            "gpt-4o-mini-2024-07-18",
        ),
        ({"api_key": "EMPTY"}, "EMPTY"),
        ({"api_key": "not-needed", "password": "true"}, "not-needed: true"),
        ({"api_key": "", "token": None, "auth": True, "pwd": 1}, "True 1 None"),
        ({"extra_headers": {"X-Day": "2024-10-21", "X-Port": "8080"}}, "on 2024-10-21 at 8080"),
        ({"system_prompt": "The password: q7w8e9r0t1zz, token=abcdefgh1"}, "q7w8e9r0t1zz abcdefgh1"),
    ],
)
def test_common_values_stay_in_answers_whatever_they_are_given_for(options, answer):
    assert Redactor(options).values(answer) == answer


@given(st.text(st.characters(min_codepoint=33, max_codepoint=0x17F), min_size=8, max_size=30), st.integers(0, 5))
def test_a_secret_is_found_in_whatever_form_a_text_holds_it(secret, before):
    redactor = Redactor({"api_key": f"q7{secret}"})
    secret = f"q7{secret}"
    forms = [secret, json.dumps(secret), repr(secret), html.escape(secret), quote(secret, safe=""), quote_plus(secret)]

    for form in forms:
        text = redactor.values(f"<{form}>")
        assert REDACTED in text, form
    pair = base64.b64encode(f"{'u' * before}:{secret}".encode()).decode()
    for form in (pair, secret.encode().hex(), quote(quote(secret, safe=""), safe=""), json.dumps(json.dumps(secret))):
        assert REDACTED in redactor.text(f"<{form}>"), form


@settings(max_examples=40)
@given(st.text(st.characters(codec="ascii", categories=("L", "N")), min_size=12, max_size=20), st.sampled_from("@/?#"))
def test_a_password_with_marks_of_a_url_in_it_leaves_no_tail(half, mark):
    url = f"postgresql://ada:{half}{mark}{half[::-1]}@db.example:5432/runs"

    shown = redact_options({"storage": url})["storage"]

    assert shown == f"postgresql://ada:{REDACTED}@db.example:5432/runs"
    assert half[::-1] not in redact_text(f"could not translate host name {half[::-1]}@db.example")


def test_a_models_own_words_are_not_hidden_by_the_names_around_them():
    logprobs = {"content": [{"token": "Hello", "logprob": -0.1}], "reasoning": "token=abcdefgh1 is not a key"}

    assert Redactor().data(logprobs) == logprobs


# --- marked by the user -----------------------------------------------------------------------------------------------


def test_variables_that_the_user_names_are_secret(monkeypatch):
    monkeypatch.setenv("THEMIS_SECRETS", "LAB_LOGIN, OTHER")
    monkeypatch.setenv("LAB_LOGIN", "research")
    monkeypatch.setenv("OTHER", "on")

    assert redact_text("research is on") == f"{REDACTED} is on"


def test_credentials_in_variables_of_any_name_are_secret(monkeypatch):
    monkeypatch.setenv("DATABASE_URL", "postgresql://ada:q7w8e9r0t1@host/runs")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-team=z9y8x7w6v5,accept=text/plain")

    assert redact_text("q7w8e9r0t1 z9y8x7w6v5 text/plain") == f"{REDACTED} {REDACTED} text/plain"


def test_a_reference_is_what_is_stored_and_its_value_is_a_secret(monkeypatch):
    monkeypatch.setenv("LAB_KEY", "ordinary words")
    options = {
        "extra_headers": {"X-Lab": "Bearer ${LAB_KEY}"},
        "base_url": "https://host/v1?k=${LAB_KEY}",
        "omit": ("seed",),
    }

    used = look_up_secrets(options)

    assert used == {
        "extra_headers": {"X-Lab": "Bearer ordinary words"},
        "base_url": "https://host/v1?k=ordinary words",
        "omit": ("seed",),
    }
    assert redact_options(options) == {**options, "omit": ["seed"]}
    assert redact_text("no ordinary words") == f"no {REDACTED}"


def test_a_reference_to_nothing_says_which_option_it_is_of():
    with pytest.raises(ConfigurationError, match=r"'extra_headers.X-Lab' refers to .* NOWHERE_SET, which is not set"):
        look_up_secrets({"extra_headers": {"X-Lab": "${NOWHERE_SET}"}})


def test_what_looks_like_a_reference_in_a_prompt_is_the_prompts():
    assert look_up_secrets({"system_prompt": "Say ${NAME}."}) == {"system_prompt": "Say ${NAME}."}


def test_a_secret_in_json_that_stands_in_json_as_a_text_is_taken_out(monkeypatch):
    secret = 'shop"secret\\9f8e7d6c5b4a/ü3'
    monkeypatch.setenv("SHOP_API_KEY", secret)
    returned = json.dumps({"key": secret}, ensure_ascii=False)
    stored = json.dumps({"content": returned}, ensure_ascii=False)

    assert "9f8e7d6c5b4a" not in Redactor().values(stored)
