"""Who is let in, from where, how often and with how much."""

from __future__ import annotations

import json
import logging

import pytest
from fastapi.testclient import TestClient
from hypothesis import given
from hypothesis import strategies as st
from starlette.websockets import WebSocketDisconnect

from themis.exceptions import ConfigurationError
from themis.server import create_app
from themis.server.settings import Settings
from themis.server.tokens import LIFETIME_SECONDS, ClientThrottle, is_session, new_session

HERE = "http://127.0.0.1"
TOKEN = "a-token-for-tests"
BEARER = {"authorization": f"Bearer {TOKEN}"}
PAGE = {"accept": "text/html"}
PAGES = (
    *("/runs", "/runs/baseline", "/runs/baseline/sample?item=q1", "/compare?run=baseline&run=variant"),
    *("/docs", "/login", "/runs/nobody"),
)
SOCKET = "ws://127.0.0.1/ws"


@pytest.fixture
def guarded(two_runs):
    with TestClient(create_app(two_runs, token=TOKEN), base_url=HERE, follow_redirects=False) as client:
        yield client


# --- names and origins ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "localhost.evil", "", "user@127.0.0.1"])
def test_a_name_that_is_not_ours_is_refused(client, host):
    assert client.get("/api/runs", headers={"host": host}).status_code == 400


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "localhost:8080", "[::1]:9"])
def test_this_machine_has_several_names(client, host):
    assert client.get("/api/runs", headers={"host": host}).status_code == 200


def test_with_a_port_given_another_port_is_another_server(two_runs):
    with TestClient(create_app(two_runs, port=8080), base_url="http://127.0.0.1:8080") as client:
        assert client.get("/api/health").status_code == 200
        assert client.get("/api/health", headers={"host": "127.0.0.1:9090"}).status_code == 400


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "https://evil.example"},
        {"origin": "http://127.0.0.1:81"},
        {"origin": "null"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"cookie": "themis_session=x"},
    ],
)
def test_a_page_of_another_address_cannot_change_anything(client, headers):
    assert client.delete("/api/runs/baseline", headers=headers).status_code == 403
    assert client.post("/api/compare", json={"run_ids": ["baseline", "variant"]}, headers=headers).status_code == 403


def test_our_own_page_can(client):
    headers = {"origin": HERE, "sec-fetch-site": "same-origin"}
    assert client.delete("/api/runs/nobody", headers=headers).status_code == 404


def test_no_other_page_may_read_unless_it_was_named(two_runs):
    with TestClient(create_app(two_runs, allowed_origins=("https://lab.example",)), base_url=HERE) as client:
        stranger = client.get("/api/runs", headers={"origin": "https://evil.example"})
        named = client.get("/api/runs", headers={"origin": "https://lab.example"})
        asked = client.options("/api/compare", headers={"origin": "https://lab.example"})

    assert "access-control-allow-origin" not in stranger.headers
    assert named.headers["access-control-allow-origin"] == "https://lab.example"
    assert "access-control-allow-credentials" not in named.headers
    assert asked.status_code == 204


def test_a_socket_from_another_page_is_refused(client):
    with (
        pytest.raises(WebSocketDisconnect),
        client.websocket_connect(SOCKET, headers={"origin": "https://evil.example"}),
    ):
        pass


# --- tokens -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"authorization": "Bearer wrong"},
        {"authorization": TOKEN},
        {"authorization": f"Basic {TOKEN}"},
        {"cookie": "themis_session=9999999999.0000"},
        {"cookie": "themis_session=" + "9" * 400 + ".x"},
    ],
)
@pytest.mark.parametrize("path", ["/api/runs", "/api/runs/baseline", "/openapi.json", "/api/events", "/runs", "/"])
def test_without_the_token_nothing_is_shown(guarded, path, headers):
    assert guarded.get(path, headers=headers).status_code == 401


def test_a_bearer_header_opens_the_api(guarded):
    assert guarded.get("/api/runs", headers=BEARER).status_code == 200


def test_a_socket_needs_the_token_too(guarded):
    with pytest.raises(WebSocketDisconnect), guarded.websocket_connect(SOCKET):
        pass
    with guarded.websocket_connect(SOCKET, headers=BEARER) as socket:
        socket.send_text('{"type": "ping"}')
        assert socket.receive_json() == {"type": "pong"}


def test_people_are_sent_to_the_login_page_and_back(guarded):
    sent = guarded.get("/runs/baseline?q=a", headers=PAGE)
    assert sent.status_code == 303
    assert sent.headers["location"] == "/login?next=%2Fruns%2Fbaseline%3Fq%3Da"

    form = {"token": TOKEN, "next": "/runs/baseline?q=a"}
    entered = guarded.post("/login", data=form, headers={"origin": HERE})
    assert entered.headers["location"] == "/runs/baseline?q=a"
    cookie = entered.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert TOKEN not in cookie
    assert "secure" not in cookie
    assert guarded.get("/runs/baseline").status_code == 200

    guarded.post("/logout", headers={"origin": HERE})
    assert guarded.get("/runs/baseline", headers=PAGE).status_code == 303


def test_a_session_begun_by_https_before_a_proxy_never_goes_by_http(guarded):
    entered = guarded.post("/login", data={"token": TOKEN}, headers={"origin": HERE.replace("http", "https")})

    assert "; secure" in entered.headers["set-cookie"].lower()


@pytest.mark.parametrize(
    "target", ["https://evil.example/", "//evil.example", "/\\evil.example", "javascript:alert(1)", "http://["]
)
def test_logging_in_never_leads_elsewhere(guarded, target):
    answer = guarded.post("/login", data={"token": TOKEN, "next": target}, headers={"origin": HERE})

    assert answer.headers["location"] == "/runs"


def test_trying_tokens_is_slowed_down(guarded):
    statuses = [guarded.post("/login", data={"token": "x" * n}, headers={"origin": HERE}).status_code for n in range(8)]

    assert statuses == [403] * 5 + [429] * 3
    right = guarded.post("/login", data={"token": TOKEN}, headers={"origin": HERE})
    assert right.status_code == 429


def test_a_link_opens_the_pages_and_leads_to_an_address_without_its_token(two_runs):
    app = create_app(two_runs, token=TOKEN, link_token="made-for-the-link")
    with TestClient(app, base_url=HERE, follow_redirects=False) as client:
        for _ in range(8):
            client.get("/login?token=guessed")  # others who try from this address do not lock its owner out
        entered = client.get("/login?token=made-for-the-link&next=/runs/baseline%3Fq%3Da")
        assert (entered.status_code, entered.headers["location"]) == (303, "/runs/baseline?q=a")
        assert "httponly" in entered.headers["set-cookie"].lower()
        assert entered.headers["cache-control"] == "no-store"
        assert client.get("/runs/baseline").status_code == 200


def test_the_token_of_a_link_is_none_for_programs(two_runs):
    app = create_app(two_runs, token=TOKEN, link_token="made-for-the-link")
    with TestClient(app, base_url=HERE) as client:
        as_bearer = {"authorization": "Bearer made-for-the-link"}
        assert client.get("/api/runs", headers=as_bearer).status_code == 401


def test_wrong_bearer_tokens_are_tries_as_those_at_the_login_page_are(guarded):
    wrong = [{"authorization": f"Bearer {'x' * n}"} for n in range(1, 5)]
    assert [guarded.get("/api/runs", headers=BEARER).status_code for _ in range(8)] == [200] * 8
    assert [guarded.get("/api/runs", headers=one).status_code for one in wrong] == [401] * 4
    assert guarded.post("/login", data={"token": "wrong"}, headers={"origin": HERE}).status_code == 403

    refused = guarded.get("/api/runs", headers=wrong[0])
    assert (refused.status_code, refused.json()["code"]) == (429, "too_many_requests")
    assert int(refused.headers["retry-after"]) >= 1
    assert guarded.get("/api/runs", headers=BEARER).status_code == 429, (
        "a guess that is right must not be told from others"
    )


def test_a_link_with_a_wrong_token_is_refused_and_counted(guarded):
    statuses = [guarded.get(f"/login?token={'x' * n}").status_code for n in range(1, 8)]

    assert statuses == [403] * 5 + [429] * 2
    assert guarded.get(f"/login?token={TOKEN}").status_code == 429


# --- proxies ----------------------------------------------------------------------------------------------------------


def tries(client: TestClient, forwarded_for: str, count: int = 6) -> list[int]:
    headers = {"origin": HERE, "x-forwarded-for": forwarded_for}
    return [client.post("/login", data={"token": "wrong-one"}, headers=headers).status_code for _ in range(count)]


def test_behind_a_named_proxy_each_client_has_its_own_tries(two_runs):
    app = create_app(two_runs, token=TOKEN, trusted_proxies=("10.0.0.7",))
    with TestClient(app, base_url=HERE, client=("10.0.0.7", 5)) as client:
        assert tries(client, "192.0.2.1")[-1] == 429
        assert tries(client, "192.0.2.2", 1) == [403]
        # What a client writes before the proxy adds its address does not make it another client.
        assert tries(client, "198.51.100.9, 192.0.2.1", 1) == [429]


def test_a_client_cannot_call_itself_another_by_the_header_of_proxies(two_runs):
    app = create_app(two_runs, token=TOKEN, trusted_proxies=("10.0.0.7",))
    with TestClient(app, base_url=HERE, client=("192.0.2.1", 5)) as client:
        assert [tries(client, f"198.51.100.{n}", 1)[0] for n in range(6)] == [403] * 5 + [429]


@pytest.mark.parametrize(
    ("peer", "forwarded_for", "client"),
    [
        ("10.0.0.7", "", "10.0.0.7"),
        ("10.0.0.7", "192.0.2.1", "192.0.2.1"),
        ("10.0.0.7", "192.0.2.1:4711", "192.0.2.1"),
        ("10.0.0.7", "2001:db8::1", "2001:db8::1"),
        ("10.0.0.7", "[2001:db8::1]:4711", "2001:db8::1"),
        ("10.0.0.7", "203.0.113.5, 192.0.2.1, 10.0.0.9", "192.0.2.1"),
        ("10.0.0.7", "unknown", "10.0.0.7"),
        ("10.0.0.7", "192.0.2.1, nonsense", "10.0.0.7"),
        ("::ffff:10.0.0.7", "192.0.2.1", "192.0.2.1"),
        ("192.0.2.9", "192.0.2.1", "192.0.2.9"),
        ("", "192.0.2.1", ""),
    ],
)
def test_the_client_is_the_last_address_that_no_proxy_of_ours_has(peer, forwarded_for, client):
    settings = Settings(storage_path="x", trusted_proxies=("10.0.0.0/24",))

    assert settings.client_of(peer, forwarded_for) == client
    assert Settings(storage_path="x").client_of(peer, forwarded_for) == peer


@given(st.text(min_size=8, max_size=30), st.text(min_size=8, max_size=30))
def test_a_session_belongs_to_its_token_and_ends(token, other):
    session = new_session(token, now=1_000)

    assert is_session(token, session, now=1_001)
    assert not is_session(token, session, now=1_001 + LIFETIME_SECONDS)
    assert is_session(other, session, now=1_001) == (other == token)
    assert not is_session(token, session[:-1] + ("0" if session[-1] != "0" else "1"), now=1_001)


@given(st.text())
def test_no_made_up_session_is_accepted(session):
    assert not is_session(TOKEN, session)


def test_beyond_this_machine_a_token_is_needed():
    with pytest.raises(ConfigurationError, match="needs a token"):
        create_app("nowhere", host="0.0.0.0")
    with pytest.raises(ConfigurationError, match="at least 8"):
        create_app("nowhere", token="short")


def test_a_server_for_everyone_is_reached_by_address_or_by_its_own_names():
    settings = Settings(storage_path="x", host="0.0.0.0", port=80, token=TOKEN, allowed_hosts=("lab.example",))

    assert settings.is_own_name("192.168.1.7:80")
    assert settings.is_own_name("lab.example")
    assert not settings.is_own_name("evil.example:80")


# --- sizes and rates --------------------------------------------------------------------------------------------------


def test_a_large_body_is_refused_whether_it_says_so_or_not(client):
    text = json.dumps({"run_ids": ["x" * 2_000_000]})
    declared = client.post("/api/compare", content=text, headers={"content-type": "application/json"})

    def pieces():
        for start in range(0, len(text), 100_000):
            yield text[start : start + 100_000].encode()

    streamed = client.post("/api/compare", content=pieces(), headers={"content-type": "application/json"})

    assert declared.status_code == streamed.status_code == 413


def test_a_client_from_elsewhere_cannot_ask_for_ever(two_runs):
    app = create_app(two_runs, requests_per_second=1)
    with TestClient(app, base_url=HERE, client=("192.0.2.1", 5)) as client:
        statuses = [client.get("/api/health").status_code for _ in range(6)]
        last = client.get("/api/health")

    assert statuses[0] == 200
    assert statuses[-1] == 429
    assert int(last.headers["retry-after"]) >= 1


@given(st.lists(st.floats(0, 100), max_size=60), st.floats(0.1, 10), st.integers(1, 20))
def test_no_client_gets_more_than_burst_and_rate_allow(moments, per_second, burst):
    limit = ClientThrottle(per_second, burst)
    moments = sorted(moments)
    admitted = sum(limit.wait_seconds("someone", now) == 0 for now in moments)

    span = moments[-1] - moments[0] if moments else 0
    assert admitted <= burst + span * per_second + 1e-6


# --- what every answer carries ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path", ["/runs", "/runs/baseline", "/api/runs", "/nowhere", "/login", "/docs", "/static/themis.js"]
)
def test_every_answer_forbids_foreign_and_inline_scripts(client, path):
    headers = client.get(path, headers=PAGE).headers

    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-frame-options"] == "DENY"


@pytest.mark.parametrize(
    "path",
    [
        "/runs",
        "/runs/baseline",
        "/runs/baseline/sample?item=q1",
        "/compare?run=baseline&run=variant",
        "/docs",
        "/login",
    ],
)
def test_no_page_needs_an_inline_script_or_style_or_another_host(client, path):
    text = client.get(path, headers=PAGE).text

    assert "<script>" not in text
    assert " style=" not in text
    assert "<style" not in text
    assert " onclick=" not in text
    assert "http://" not in text.replace("http://www.w3.org", "")
    assert "https://" not in text


def test_requests_are_logged_as_json_without_what_was_searched_for(client, caplog):
    with caplog.at_level(logging.INFO, logger="themis.server.access"):
        client.get("/api/runs?q=private")

    entry = json.loads(caplog.records[-1].getMessage())
    assert (entry["method"], entry["path"], entry["status"]) == ("GET", "/api/runs", 200)
    assert "private" not in caplog.text
