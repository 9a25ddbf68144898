"""The sandbox holds hostile programs, says what it is, and is refused rather than weakened; with real users and filters."""

from __future__ import annotations

import json
import os
import platform
import stat
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.faults.hostile import programs
from themis.evaluation.metrics.code import PassAtK
from themis.evaluation.sandbox import Limits, Protection, Sandbox, SandboxError, read_weaknesses
from themis.evaluation.sandbox.launch import OPTIONS, memory_cgroup, start_command
from themis.exceptions import ConfigurationError

REPOSITORY = Path(__file__).parents[2]
UNSHARE, LANDLOCK, PRCTL = (272, 444, 157) if platform.machine() == "x86_64" else (97, 444, 167)
NOBODY = 65534


def interpreter_for_everybody() -> str | None:
    """A Python like ours that an ordinary user can start, too."""
    name = f"python{sys.version_info.major}.{sys.version_info.minor}"
    candidates = [sys.executable, f"/usr/bin/{name}", f"/usr/local/bin/{name}"]
    return next((path for path in candidates if os.path.exists(path) and _reachable(path)), None)


def _reachable(path: str) -> bool:
    real = Path(os.path.realpath(path))
    return all(parent.stat().st_mode & stat.S_IXOTH for parent in (real, *real.parents))


Attack = Callable[..., dict]


@pytest.fixture
def attack(tmp_path_factory) -> Attack:
    """Lets `hostile.py` try everything, as root or as an ordinary user, with these system calls refused beforehand."""
    place = tmp_path_factory.mktemp("canary")
    for directory in (place, *list(place.parents)[:2]):
        directory.chmod(0o755)
    canary = place / "canary"
    canary.write_text("for our eyes")

    def run(user: str = "", *, refuse: tuple[int, ...] = (), sandbox: str = "") -> dict:
        request = {"canary": str(canary), "port": 9, "refuse": refuse, "sandbox": sandbox}
        python, who = sys.executable, {}
        if user == "ordinary" and os.geteuid() == 0:
            python = interpreter_for_everybody() or pytest.skip("no Python here that an ordinary user can start")
            who = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
        ran = subprocess.run(
            [python, str(REPOSITORY / "tests/faults/hostile.py"), json.dumps(request)],
            env={
                "PATH": os.environ["PATH"],
                "PYTHONPATH": f"{REPOSITORY}:{sysconfig.get_path('purelib')}",
                "PYTHONDONTWRITEBYTECODE": "1",
                "PLANTED_KEY": "sk-PLANTED-0123456789",
            },
            capture_output=True,
            text=True,
            cwd="/",
            timeout=300,
            **who,
        )
        assert ran.returncode == 0, ran.stderr
        return json.loads(ran.stdout)

    return run


def broke_out(result: dict) -> list[str]:
    return [name for name, said in result["said"].items() if said == "broke out"]


def only_the_interpreter(files: list[str]) -> bool:
    """Of all that a program finds from the root down, outside of the standard library."""
    expected = ("/usr/share/zoneinfo/", "/usr/lib/locale/C.", "/dev/", "/bin/sh", "/etc/ld.so.cache")
    others = [path for path in files if path and not path.startswith(expected) and "/bin/python" not in path]
    libraries = [path for path in others if ".so" in path and "-packages/" not in path]
    return bool(libraries) and others == libraries


each_user = pytest.mark.parametrize("user", ["root", "ordinary"] if os.geteuid() == 0 else ["ordinary"])
linux = pytest.mark.skipif(sys.platform != "linux", reason="namespaces and filters are Linux's")


@linux
class TestHostilePrograms:
    @each_user
    def test_none_of_them_breaks_out_at_the_strongest_level(self, attack, user):
        result = attack(user)

        assert len(result["said"]) == len(programs()) >= 70
        assert "namespaces" in result["level"]
        assert broke_out(result) == []
        assert only_the_interpreter(result["files"])

    def test_none_breaks_out_where_a_container_refuses_namespaces(self, attack):
        result = attack("ordinary", refuse=(UNSHARE,))

        assert result["level"].startswith("landlock+")
        assert broke_out(result) == []

    @pytest.mark.bubblewrap
    def test_none_breaks_out_of_bubblewrap(self, attack):
        result = attack(sandbox="bubblewrap")

        assert result["level"] == "bubblewrap+seccomp"
        assert broke_out(result) == []

    def test_all_processes_of_a_program_share_one_limit_of_memory_where_a_group_can_be_made(self):
        """Eight processes with 60 MB each, where all of them together may have 194."""
        eat = (
            "import os, time\nfor _ in range(3): os.fork()\nheld = b'x' * (60 << 20)\ntime.sleep(0.5)\nprint(len(held))"
        )
        limits = Limits(memory_mb=192, file_mb=1)

        execution = Sandbox(limits).run_program(eat)

        with memory_cgroup(limits, Protection((), sys.executable)) as group:
            assert (execution.stdout.count("\n") < 8) == (group is not None)


@linux
class TestMinimum:
    @each_user
    def test_without_namespaces_and_landlock_code_is_not_run(self, attack, user):
        refused = attack(user, refuse=(UNSHARE, LANDLOCK))["refused"]

        words = {"root": "files", "ordinary": "files,processes"}[user]
        assert "can read your files" in refused
        assert f"--allow-weak-sandbox {words} " in refused

    def test_where_nothing_works_an_ordinary_user_is_not_told_about_root(self, attack):
        refused = attack("ordinary", refuse=(UNSHARE, LANDLOCK, PRCTL))["refused"]

        assert refused.startswith("no sandbox works here for model-written code: run outside the container")
        assert "root" not in refused

    @pytest.mark.parametrize(
        ("layers", "weaknesses"),
        [
            (("namespaces", "user", "seccomp"), ()),
            (("namespaces",), ()),
            (("bubblewrap", "seccomp"), ()),
            (("docker", "seccomp"), ()),
            (("landlock", "seccomp"), ()),
            (("landlock",), ("network", "processes")),
            (("user", "seccomp"), ("files",)),
            (("user",), ("network", "files")),
            (("seccomp",), ("files", "processes")),
            ((), ("network", "files", "processes")),
        ],
    )
    def test_a_level_is_allowed_only_by_naming_all_that_it_gives_up(self, layers, weaknesses):
        protection = Protection(layers, sys.executable)

        assert protection.weaknesses == weaknesses
        protection.refuse_unless_allowed(weaknesses)
        for missing in weaknesses:
            with pytest.raises(SandboxError, match="model-written code is not run here"):
                protection.refuse_unless_allowed([word for word in weaknesses if word != missing])

    def test_an_unknown_word_is_refused_with_what_each_means(self):
        with pytest.raises(ConfigurationError, match=r"files: code can read your files.*got 'everything'"):
            read_weaknesses("files,everything")


WEAK = (
    "import sys\nfrom tests.faults.hostile import refuse\n"
    f"refuse({UNSHARE}, {LANDLOCK})\nfrom themis.cli import main\nmain(sys.argv[1:])"
)


@linux
class TestCommands:
    @pytest.fixture
    def weak_themis(self, tmp_path):
        """The command line on a machine that refuses namespaces and Landlock."""

        def run(*words: str) -> subprocess.CompletedProcess[str]:
            return subprocess.run(
                [sys.executable, "-c", WEAK, *words],
                cwd=tmp_path,
                env={**os.environ, "PYTHONPATH": f"{REPOSITORY}", "NO_COLOR": "1"},
                capture_output=True,
                text=True,
                timeout=300,
            )

        return run

    @pytest.fixture
    def rows(self, tmp_path):
        path = tmp_path / "rows.jsonl"
        path.write_text(
            json.dumps({"id": "1", "prompt": "say def f(x): return x", "answer": ["assert f(2) == 2"]}) + "\n"
        )
        return str(path)

    @pytest.mark.fault(
        area="Code and the sandbox",
        wrong="the machine allows only a weak sandbox",
        does="refuses before the first call and says what code could get at, and how to accept that",
        status="–",
        exit_code=3,
    )
    def test_a_weak_sandbox_is_refused_before_the_first_call(self, weak_themis, rows, endpoint, fault, monkeypatch):
        monkeypatch.setenv("ACME_BASE_URL", endpoint.url)
        monkeypatch.setenv("ACME_API_KEY", "k")
        before = sum(endpoint.calls.values())

        ran = weak_themis("eval", rows, "-m", "acme/good", "--metric", "pass_at_k", "--run-id", "weak")

        assert ran.returncode == fault.exit_code, ran.stderr
        assert "--allow-weak-sandbox files" in ran.stderr
        assert sum(endpoint.calls.values()) == before
        assert weak_themis("show", "weak").returncode != 0

    @pytest.mark.fault(
        area="Code and the sandbox",
        wrong="a weak sandbox is allowed knowingly",
        does="runs the code; every score, page and `themis doctor` names the level and what it does not protect",
        status="completed",
        exit_code=0,
    )
    def test_a_weak_sandbox_that_is_allowed_is_named_in_every_score(self, weak_themis, rows, fault, tmp_path):
        given = "files" if os.geteuid() == 0 else "files,processes"

        ran = weak_themis(
            "eval", rows, "-m", "fake:echo", "--prompt", "def f(x): return x  # {id}", "--metric", "pass_at_k",
            "--run-id", "weak", "--allow-weak-sandbox", given, "--json",
        )  # fmt: skip
        page = weak_themis("export", "weak", "--format", "html", "--to", "out")

        assert ran.returncode == fault.exit_code, ran.stderr
        assert json.loads(ran.stdout)["status"] == fault.status
        assert page.returncode == 0, page.stderr
        text = "".join(path.read_text() for path in (tmp_path / "out").glob("*.html"))
        assert "not_protected" in text
        assert "can read your files" in text

    def test_doctor_names_the_level_and_what_it_leaves_open(self, weak_themis):
        (found,) = [each for each in json.loads(weak_themis("doctor", "--json").stdout) if each["what"] == "sandbox"]

        assert found["state"] == "absent"
        assert "can read your files" in found["detail"]
        assert "metrics that run code refuse" in found["detail"]


class TestByName:
    @pytest.mark.bubblewrap
    def test_bubblewrap_judges_as_our_own_does(self):
        metric = PassAtK(sandbox="bubblewrap")

        right = metric.compute(prediction="def f(x): return x * x", references=["assert f(3) == 9"])
        wrong = metric.compute(prediction="def f(x): return x", references=["assert f(3) == 9"])

        assert (right.value, wrong.value) == (1.0, 0.0)
        assert right.details["sandbox"].startswith("bubblewrap")

    @pytest.mark.bubblewrap
    def test_what_a_test_leaves_in_bubblewrap_is_gone_for_the_next(self):
        code = "import os\ndef f():\n    found = os.listdir('.')\n    open('x', 'wb').write(b'x' * (20 << 20))\n    return found"

        scores = PassAtK(sandbox="bubblewrap").compute(prediction=code, references=["assert f() == []"] * 3)

        assert scores.value == 1.0, scores.details

    @pytest.mark.fault(
        area="Code and the sandbox",
        wrong="a sandbox is chosen by name and is not there",
        does="refuses before the first call, with what to install or start",
        status="–",
        exit_code=3,
    )
    @pytest.mark.parametrize(
        ("name", "advice"), [("docker", "needs the program docker"), ("bubblewrap", "apt-get install")]
    )
    def test_a_sandbox_that_is_not_there_is_named(self, themis, tmp_path, fault, name, advice):
        rows = tmp_path / "rows.jsonl"
        rows.write_text('{"id": "1", "prompt": "p", "answer": ["assert f(2) == 2"]}\n')

        ran = themis(
            "eval", str(rows), "-m", "fake:echo", "--metric", f"pass_at_k(sandbox='{name}')", PATH=str(tmp_path)
        )  # fmt: skip

        assert ran.returncode == fault.exit_code
        assert advice in ran.stderr

    def test_an_engine_that_does_not_answer_is_told_from_one_that_is_missing(self, tmp_path, monkeypatch):
        _program(tmp_path / "docker", "echo 'Cannot connect to the Docker daemon' >&2; exit 1")
        monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")

        with pytest.raises(SandboxError, match=r"no engine answers; start it.*Cannot connect to the Docker daemon"):
            Sandbox(name="docker:engine-test").run_program("print(1)")

    def test_a_container_gets_no_network_no_rights_and_the_limits(self):
        protection = Protection(("docker", "seccomp"), "python", "python:3.12-slim")

        words = start_command(protection, Limits(memory_mb=100, file_mb=8), {"packages": []})

        line = " ".join(words)
        for part in ("--network none", "--read-only", "--cap-drop ALL", "no-new-privileges", "--user 65534:65534"):
            assert part in line
        assert "--memory 356m --memory-swap 356m" in line
        assert "size=8m" in line
        assert line.endswith(f"python:3.12-slim python {' '.join(OPTIONS)} /themis-sandbox supervisor")

    def test_code_is_judged_through_what_docker_runs(self, tmp_path, monkeypatch):
        """A `docker` that runs the container's command here: all but the container itself."""
        _program(
            tmp_path / "docker",
            f'case "$1" in version) echo 28; exit 0;; esac\nrm -rf {tmp_path}/box; mkdir {tmp_path}/box\n'
            f'while [ "$1" != python:9-test ]; do shift; done\nshift 2\n'
            f'for word; do shift; [ "$word" = /themis-sandbox ] && word={REPOSITORY}/themis/evaluation/sandbox\n'
            f'set -- "$@" "$word"; done\nexec {sys._base_executable} "$@"',
        )
        monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
        if not os.path.isdir("/box"):
            monkeypatch.setattr("themis.evaluation.sandbox.launch._WORK", str(tmp_path / "box"))

        execution = Sandbox(name="docker:python:9-test").run_program("print(input())", stdin="through")

        assert (execution.outcome, execution.stdout, execution.level) == ("ok", "through\n", "docker+seccomp")


class TestPackages:
    def test_only_what_was_allowed_can_be_imported(self):
        code = "import numpy\nprint(int(numpy.ones((2, 2)).sum()))"

        assert Sandbox(packages=("numpy",)).run_program(code).stdout == "4\n"
        assert "No module named 'numpy'" in Sandbox().run_program(code).reason
        assert "No module named 'click'" in Sandbox(packages=("numpy",)).run_program("import click").reason

    def test_a_package_that_is_not_installed_is_refused_before_anything_runs(self):
        with pytest.raises(ConfigurationError, match="packages names 'no_such_package'"):
            PassAtK(packages=["no_such_package"]).check_machine()


def _program(path: Path, body: str) -> None:
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
