"""The file that holds a user's token: made once, readable by its owner, and not trusted otherwise."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from themis.exceptions import ConfigurationError
from themis.server.tokens import read_or_make_token, token_path


def test_it_lies_in_the_users_state_directory(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert token_path() == tmp_path / "themis" / "server-token"

    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setenv("HOME", "/home/ada")
    assert token_path() == Path("/home/ada/.local/state/themis/server-token")


def test_it_is_made_once_also_by_servers_that_start_together(tmp_path):
    path = tmp_path / "state" / "themis" / "server-token"
    found: list[str] = []
    starting = [threading.Thread(target=lambda: found.append(read_or_make_token(path))) for _ in range(8)]
    for one in starting:
        one.start()
    for one in starting:
        one.join()

    assert len(found) == 8
    assert {*found, read_or_make_token(path)} == {path.read_text().strip()}
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert [entry.name for entry in path.parent.iterdir()] == ["server-token"]


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o666])
def test_one_that_others_may_have_read_is_refused(tmp_path, mode):
    path = tmp_path / "server-token"
    path.write_text("known to everybody\n")
    path.chmod(mode)

    with pytest.raises(ConfigurationError, match=rf"has mode {mode:04o}, so others may have read it; delete it"):
        read_or_make_token(path)


def test_a_link_to_a_file_of_somebody_else_is_not_followed(tmp_path):
    (tmp_path / "theirs").write_text("known to them")
    (tmp_path / "theirs").chmod(0o600)
    (tmp_path / "server-token").symlink_to(tmp_path / "theirs")

    with pytest.raises(ConfigurationError, match="cannot be kept in"):
        read_or_make_token(tmp_path / "server-token")


def test_an_empty_one_is_no_token(tmp_path):
    path = tmp_path / "server-token"
    path.touch(mode=0o600)

    with pytest.raises(ConfigurationError, match="is empty; delete it"):
        read_or_make_token(path)


def test_where_none_can_be_written_the_ways_out_are_named(tmp_path):
    (tmp_path / "file").touch()

    with pytest.raises(ConfigurationError, match=r"set THEMIS_SERVER_TOKEN .* or give --no-token"):
        read_or_make_token(tmp_path / "file" / "themis" / "server-token")
