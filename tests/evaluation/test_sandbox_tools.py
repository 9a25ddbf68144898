"""The tools `python` and `shell`: what a sample's programs leave to each other, and what hostile ones do not get."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import tempfile
import threading
from pathlib import Path

import pytest

from themis.core.messages import ToolCall
from themis.evaluation.sandbox import Protection, SandboxError, available_protections
from themis.evaluation.sandbox import execution as execution_module
from themis.evaluation.sandbox.folder import Folder
from themis.evaluation.sandbox.tools import PythonTool, ShellTool
from themis.exceptions import ConfigurationError, ToolError
from themis.generation.tools import Toolset

AVAILABLE = available_protections()


def levels_worth_testing() -> list[Protection]:
    """The strongest, and the strongest that does without namespaces."""
    without_namespaces = [each for each in AVAILABLE if "namespaces" not in each.layers and "landlock" in each.layers]
    return [AVAILABLE[0], *without_namespaces[:1]]


@pytest.fixture(params=levels_worth_testing(), ids=lambda protection: protection.level)
def level(request, monkeypatch):
    """As if this were the strongest that the machine allows."""
    monkeypatch.setattr(execution_module, "strongest_protection", lambda: request.param)
    return request.param


@pytest.fixture
def session(level):
    with Toolset(["python", "shell"]) as tools:
        yield tools.open({})


def run(session, name, code):
    return session.call(ToolCall(name, {"code" if name == "python" else "command": code}, id="1"))


def say(session, name, code):
    message = run(session, name, code)
    assert "error" not in message, message["content"]
    return message["content"]


class TestOrdinaryWork:
    def test_programs_of_one_sample_find_what_earlier_ones_left(self, session):
        assert say(session, "python", "open('notes.txt', 'w').write('seven')\nprint(3 + 4)") == "7"
        assert say(session, "shell", "cat notes.txt; mkdir -p deep/er; echo x > deep/er/file") == "seven"
        assert say(session, "python", "import os; print(sorted(os.listdir('.')), open('deep/er/file').read())") == (
            "['deep', 'notes.txt'] x\n".strip()
        )
        assert session.state() == {"python": {"files": {"deep/er/file": "x\n", "notes.txt": "seven"}}}

    def test_a_module_that_was_written_can_be_imported_and_run(self, session):
        say(
            session,
            "python",
            "open('helper.py', 'w').write('VALUE = 5\\nif __name__ == \"__main__\": print(\"main\")\\n')",
        )

        assert say(session, "python", "import helper; print(helper.VALUE)") == "5"
        assert say(session, "shell", "python3 helper.py; python -c 'import helper; print(helper.VALUE)'") == "main\n5"
        assert list(session.state()["python"]["files"]) == ["helper.py"]

    def test_a_script_that_was_made_a_program_stays_one(self, session):
        say(session, "shell", "printf '#!/bin/sh\\necho ran\\n' > run.sh; chmod +x run.sh")

        assert say(session, "shell", "./run.sh") == "ran"
        assert session.state()["python"]["files"]["run.sh"] == {"text": "#!/bin/sh\necho ran\n", "executable": True}

    def test_the_usual_programs_are_there(self, session):
        assert (
            say(session, "shell", "printf 'b\\na\\n' | sort | head -n 1; seq 3 | awk '{s += $1} END {print s}'")
            == "a\n6"
        )

    def test_what_was_removed_is_gone(self, session):
        say(session, "shell", "echo x > a; echo y > b")
        say(session, "shell", "rm a")

        assert session.state() == {"python": {"files": {"b": "y\n"}}}

    def test_bytes_and_empty_folders_are_kept(self, session):
        say(session, "python", "import os; os.mkdir('empty'); open('raw', 'wb').write(bytes([0, 255]))")

        assert session.state() == {"python": {"files": {"empty/": None, "raw": {"base64": "AP8="}}}}
        assert (
            say(session, "python", "import os; print(os.listdir('empty'), open('raw', 'rb').read())")
            == "[] b'\\x00\\xff'"
        )

    def test_a_failing_program_is_an_error_with_its_traceback(self, session):
        message = run(session, "python", "print('before')\nopen('kept', 'w').write('1')\n1 / 0")

        assert message["error"] is True
        assert message["content"].startswith("before\nTraceback (most recent call last):")
        assert message["content"].endswith("ZeroDivisionError: division by zero")
        assert session.state()["python"]["files"] == {"kept": "1"}

    def test_a_failing_command_is_an_error_with_its_status(self, session):
        message = run(session, "shell", "echo before; exit 3")

        assert (message["content"], message["error"]) == ("before\n[exited with status 3]", True)
        assert run(session, "shell", "ls nowhere")["content"].endswith(
            "No such file or directory\n[ended with an error]"
        )

    def test_a_program_that_prints_nothing_says_so(self, session):
        assert say(session, "python", "x = 1") == "[no output]"

    def test_a_sample_goes_on_with_the_files_that_were_stored(self, level):
        with Toolset(["shell"]) as tools:
            first = tools.open({})
            say(first, "shell", "echo 1 > a; mkdir d; printf '\\0' > d/zero; chmod +x a")
            stored = json.loads(json.dumps(first.state()))

            assert stored == {"files": {"a": {"text": "1\n", "executable": True}, "d/zero": {"base64": "AA=="}}}
            resumed = tools.open({}, stored)
            assert resumed.state() == stored
            assert say(resumed, "shell", "cat a; wc -c < d/zero; test -x a && echo program") == "1\n1\nprogram"

    def test_samples_do_not_see_each_other_s_files(self, session, level):
        say(session, "shell", "echo secret > mine")
        with Toolset(["shell"]) as tools:
            assert say(tools.open({}), "shell", "ls -a | wc -l") == "2"


def test_options_are_given_with_the_name():
    with Toolset(["python(cpu_seconds=1, wall_seconds=60, packages=['click'])"]) as tools:
        machine = tools.describe()["made_of"][0]["machine"]
        session = tools.open({})

        assert (machine["limits"]["cpu_seconds"], machine["packages"]) == (1, ["click"])
        assert say(session, "python", "import click; print(click.__name__)") == "click"
        message = run(session, "python", "while True: pass")
        assert (message["content"], message["error"]) == ("[used more than 1 s of processor time]", True)


def test_the_level_of_the_sandbox_is_part_of_the_tools_identity(level):
    with Toolset(["python"]) as tools:
        assert tools.describe()["made_of"][0]["machine"]["sandbox"] == level.level


@pytest.mark.parametrize(
    ("tool", "said"),
    [
        ("python(memory_mb=1)", "memory_mb is at least 64"),
        ("python(folder_kb=0)", "folder_kb and folder_files are at least 1"),
        ("python(packages=['no_such_package'])", "packages names 'no_such_package'"),
        ("shell(sandbox='fortress')", "sandbox is one of bubblewrap, docker"),
        ("shell(memory=1)", r"did you mean 'memory_mb'\?"),
    ],
)
def test_options_that_cannot_be_kept_are_refused_before_the_first_call(tool, said):
    with pytest.raises(ConfigurationError, match=said):
        Toolset([tool])


class TestWeakSandboxes:
    WEAK = Protection((), AVAILABLE[0].interpreter)

    def test_a_weak_sandbox_is_refused_before_the_first_call(self, monkeypatch):
        monkeypatch.setattr(execution_module, "strongest_protection", lambda: self.WEAK)

        with pytest.raises(SandboxError, match="--allow-weak-sandbox network,files,processes"):
            Toolset(["python"])

    def test_a_weak_sandbox_is_used_where_that_is_allowed(self, monkeypatch):
        weakest = AVAILABLE[-1]
        monkeypatch.setattr(execution_module, "strongest_protection", lambda: weakest)
        monkeypatch.setenv("THEMIS_ALLOW_WEAK_SANDBOX", ",".join(weakest.weaknesses))

        with Toolset(["python", "shell"]) as tools:
            session = tools.open({})
            say(session, "python", "open('a', 'w').write('b')")

            assert say(session, "shell", "cat a") == "b"
            assert tools.describe()["made_of"][0]["machine"]["sandbox"] == weakest.level


class TestHostilePrograms:
    def test_nothing_outside_can_be_read(self, session, tmp_path):
        secret = tmp_path / "secret.txt"
        secret.write_text("planted in a file")
        tried = f"cat {secret} /etc/passwd ~root/.bashrc /proc/1/environ; ls {Path.home()} {Path.cwd()}"

        message = run(session, "shell", tried)

        assert message["error"] is True
        assert "planted" not in message["content"]
        assert "root:x:" not in message["content"]
        assert "themis" not in message["content"].replace(str(Path.cwd()), "").replace(str(tmp_path), "")

    def test_a_link_out_of_the_folder_is_not_followed_when_it_is_kept(self, session, tmp_path):
        secret = tmp_path / "secret.txt"
        secret.write_text("planted in a file")
        secret.chmod(0o644)

        content = say(
            session, "shell", f"ln -s {secret} link; ln -s / root; ln -s . again; mkfifo pipe || true; echo x > a"
        )

        assert "link (a symbolic link)" in content
        assert session.state() == {"python": {"files": {"a": "x\n"}}}

    def test_a_second_name_for_a_file_is_not_kept(self, session):
        say(session, "shell", "echo x > a")
        content = say(session, "shell", "ln a b; echo y > c")

        assert "a (a file of several names), b (a file of several names)" in content
        assert session.state() == {"python": {"files": {"c": "y\n"}}}

    def test_our_environment_is_not_its_own(self, session, monkeypatch):
        monkeypatch.setenv("PLANTED_SECRET", "planted-in-our-environment")

        assert "planted" not in say(session, "shell", "env; cat /proc/self/environ 2>/dev/null | tr '\\0' '\\n'")

    def test_no_connection_can_be_opened(self, session):
        with socket.socket() as listening:
            listening.bind(("127.0.0.1", 0))
            listening.listen()
            port = listening.getsockname()[1]
            accepted = []
            listening.settimeout(0.5)

            def accept():
                try:
                    accepted.append(listening.accept())
                except OSError:
                    pass

            thread = threading.Thread(target=accept)
            thread.start()
            message = run(session, "python", f"import socket; socket.create_connection(('127.0.0.1', {port}), 2)")
            thread.join()

        assert message["error"] is True
        assert accepted == []

    @pytest.mark.parametrize(
        ("name", "bomb"),
        [
            ("shell", "bomb() { bomb | bomb & }; bomb; sleep 60"),
            ("python", "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass"),
        ],
    )
    def test_a_fork_bomb_ends_with_its_call(self, level, name, bomb):
        with Toolset([f"{name}(wall_seconds=2, cpu_seconds=2)"]) as tools:
            session = tools.open({})
            message = run(session, name, bomb)

            assert message["error"] is True
            assert say(session, name, "print(7)" if name == "python" else "echo 7") == "7"
        assert not processes_with("bomb")

    def test_a_daemon_does_not_outlive_its_call(self, session):
        say(session, "shell", "(sleep 4321 > /dev/null 2>&1 &) ; echo started")

        assert not processes_with("sleep 4321")

    @pytest.mark.parametrize("flood", ["yes x", "yes x >&2", "while true; do echo xxxxxxxxxxxxxxxxxxxxxxxx; done"])
    def test_a_flood_of_output_is_cut_off(self, session, flood):
        message = run(session, "shell", flood.replace("yes x", "while :; do printf '%01000d' 1; done"))

        assert message["error"] is True
        assert message["content"].endswith("[wrote more than 24 KB]")
        assert len(message["content"]) < 60_000

    @pytest.mark.parametrize(
        ("code", "holds"),
        [
            ("open('big', 'wb').write(b'x' * 3_000_000)", "3,000,001 bytes in 2 files"),
            ("for n in range(300): open(f'f{n}', 'w').close()", "1 bytes in 301 files"),
        ],
    )
    def test_a_folder_that_grows_too_large_is_as_it_was_before(self, session, code, holds):
        say(session, "python", "open('a', 'w').write('b')")
        message = run(session, "python", f"print('done')\n{code}")

        assert message["error"] is True
        assert message["content"].startswith(
            f"done\n[the folder holds {holds}, and 1,048,576 bytes in 200 files are kept"
        )
        assert session.state() == {"python": {"files": {"a": "b"}}}
        assert say(session, "shell", "ls") == "a"

    def test_files_that_were_locked_or_hidden_in_depths_do_no_harm(self, session):
        code = (
            "import os\n"
            "os.mkdir('locked'); open('locked/a', 'w').write('x'); os.chmod('locked/a', 0); os.chmod('locked', 0)\n"
            "open('line\\nbreak', 'w').close(); open(b'no-\\xff-text', 'wb').close()\n"
            "for _ in range(300):\n    os.mkdir('deep' * 10); os.chdir('deep' * 10)\n"
            "open('buried', 'w').write('y')\n"
        )
        content = say(session, "python", code)

        assert "a name that is too long or no text" in content
        assert session.state() == {"python": {"files": {"locked/a": "x"}}}

    def test_nothing_is_left_on_the_machine(self, session, monkeypatch):
        with tempfile.TemporaryDirectory() as place:
            os.chmod(place, 0o755)
            monkeypatch.setattr(tempfile, "tempdir", place)
            say(session, "shell", "echo x > a; mkdir -p b/c; touch b/c/d; chmod 0 b/c b")

            assert os.listdir(place) == []

    def test_a_sandbox_that_fails_is_no_fault_of_the_model(self, session, monkeypatch):
        def broken(*_, **__):
            raise SandboxError("lost")

        monkeypatch.setattr(execution_module, "launch", broken)

        with pytest.raises(ToolError, match="the sandbox failed: lost"):
            run(session, "python", "print(1)")


def processes_with(text: str) -> list[str]:
    listed = subprocess.run(["ps", "-eww", "-o", "args"], capture_output=True, text=True, check=True).stdout
    return [line for line in listed.splitlines() if text in line and "pytest" not in line]


class TestFolders:
    @pytest.mark.parametrize("path", ["/etc/passwd", "../a", "a/../../b", "a//b", ""])
    def test_a_stored_path_that_leads_out_is_refused(self, path):
        with pytest.raises(ConfigurationError, match="a file of a folder lies below it"):
            Folder.from_state({path: "x"})

    @pytest.mark.parametrize("files", [["a"], "a", 3])
    def test_files_that_are_no_files_are_refused(self, files):
        with pytest.raises(ConfigurationError, match="given by their paths"):
            Folder.from_state(files)

    def test_a_state_of_something_else_is_refused(self):
        for tool in (PythonTool(), ShellTool()):
            with pytest.raises(ConfigurationError, match="the stored state of a sandbox is its files"):
                tool.restore({"balance": 3})


@pytest.mark.bubblewrap
def test_a_sandbox_can_be_chosen_by_name():
    with Toolset(["shell(sandbox='bubblewrap')"]) as tools:
        session = tools.open({})
        say(session, "shell", "echo x > a; mkdir locked; chmod 0 locked")

        assert say(session, "shell", "cat a; ls -d locked") == "x\nlocked"
        assert session.state() == {"files": {"a": "x\n", "locked/": None}}
        assert "bubblewrap" in tools.describe()["made_of"][0]["machine"]["sandbox"]
