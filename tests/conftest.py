"""What all tests share: components that may be missing, a real PostgreSQL, stores on both databases, any order."""

from __future__ import annotations

import fcntl
import gc
import importlib.util
import os
import random
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import hypothesis
import pytest
import throwaway_postgres
import throwaway_ray

# The same examples every time, so that a change is what makes a law fail; `explore` looks for new ones. No deadlines: the
# machine's other work must not decide a test.
hypothesis.settings.register_profile("themis", deadline=None, derandomize=True, database=None)
hypothesis.settings.register_profile("explore", deadline=None, database=None, print_blob=True, max_examples=1_000)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "themis"))

# What the developer has set for their own runs does not reach the tests, and neither does a .env file.
for _name in [name for name in os.environ if name.startswith("THEMIS_")]:
    if _name not in ("THEMIS_TEST_POSTGRES_URL", "THEMIS_MODELS_DIR"):
        del os.environ[_name]
os.environ["THEMIS_NO_DOTENV"] = "1"


# --- any order ------------------------------------------------------------------------------------------------------


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--shuffle", type=int, metavar="SEED", help="Run the tests in the order that this seed gives.")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    seed = config.getoption("--shuffle")
    if seed is not None:
        # By file, then within it: what a file has set up for all its tests is made once.
        places = {path: random.Random(f"{seed}{path}").random() for path in {str(item.path) for item in items}}
        items.sort(key=lambda item: (places[str(item.path)], random.Random(f"{seed}{item.nodeid}").random()))


def pytest_collection_finish() -> None:
    """What all tests have in common, a million objects, is not looked through for garbage again and again."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def _other_tests_secrets_are_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the options of one test taught this process must not blank the texts of another."""
    monkeypatch.setattr("themis.core.redaction._learned", frozenset())


# --- components that may be missing ---------------------------------------------------------------------------------


def chromium() -> str | None:
    """The program, if there is one."""
    return shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A real Chromium. Closed after each module: while it is open, tests in this process cannot run an event loop."""
    from playwright.sync_api import expect, sync_playwright

    # Long, for a machine that is busy with other things; what holds is seen at once.
    expect.set_options(timeout=120_000)
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(
            executable_path=chromium(), args=["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"]
        )
        yield started
        started.close()


def _has_embedded_model() -> bool:
    from themis.generation.models import find_in_catalogue, is_installed

    return importlib.util.find_spec("xllamacpp") is not None and is_installed(find_in_catalogue("smollm2"))


def _has_postgres() -> bool:
    return "THEMIS_TEST_POSTGRES_URL" in os.environ or throwaway_postgres.find_programs() is not None


# marker -> (is it there?, what to say if not)
COMPONENTS: dict[str, tuple[Callable[[], object], str]] = {
    "bubblewrap": (lambda: shutil.which("bwrap"), "no bubblewrap here: apt-get install bubblewrap"),
    "browser": (chromium, "no Chromium here: apt-get install chromium"),
    "model": (_has_embedded_model, "no embedded model here: themis models install smollm2"),
    "postgres": (_has_postgres, "no PostgreSQL here: apt-get install postgresql, or set THEMIS_TEST_POSTGRES_URL"),
}


def pytest_runtest_setup(item: pytest.Item) -> None:
    for marker, (is_there, advice) in COMPONENTS.items():
        if item.get_closest_marker(marker) and not is_there():
            pytest.skip(advice)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Names the order the tests ran in, and what was not run, and why."""
    if (seed := terminalreporter.config.getoption("--shuffle")) is not None:
        terminalreporter.line(f"order of the tests: --shuffle={seed} (make test SEED={seed})")
    reasons = Counter(
        report.longrepr[2].removeprefix("Skipped: ") if isinstance(report.longrepr, tuple) else str(report.longrepr)
        for report in terminalreporter.stats.get("skipped", [])
    )
    if reasons:
        terminalreporter.section("not run", yellow=True)
        for reason, count in reasons.items():
            terminalreporter.line(f"{count} tests: {reason}")


@pytest.fixture(scope="module")
def ray_cluster() -> Iterator[throwaway_ray.Cluster]:
    """A real Ray cluster on this machine."""
    with ExitStack() as stack:
        try:
            cluster = stack.enter_context(throwaway_ray.connected())
        except throwaway_ray.NotStarted as error:
            pytest.skip(f"no Ray cluster starts here: {error}")
        yield cluster


# --- stores ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def postgres_url(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Iterator[str]:
    """A database of this worker's own, in the one server of the test run."""
    import psycopg

    server = os.environ.get("THEMIS_TEST_POSTGRES_URL") or _shared_server(tmp_path_factory, worker_id)
    name = f"themis_test_{worker_id}_{os.getpid()}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
        yield urlsplit(server)._replace(path=f"/{name}").geturl()
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


def _shared_server(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> str:
    """Started by the worker that needs it first; it ends with the process that started the workers."""
    programs = throwaway_postgres.find_programs()
    assert programs is not None
    if worker_id == "master":
        return throwaway_postgres.start(programs, lives_for=os.getpid())
    note = tmp_path_factory.getbasetemp().parent / "postgres-url"
    with note.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not note.exists():
            note.write_text(throwaway_postgres.start(programs, lives_for=os.getppid()))
    return note.read_text()


@pytest.fixture
def empty_postgres(postgres_url: str) -> Iterator[str]:
    """The URL of an empty database."""
    import psycopg

    yield postgres_url
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() "
            "AND pid <> pg_backend_pid()"
        )
        connection.execute("DROP SCHEMA public CASCADE")
        connection.execute("CREATE SCHEMA public")


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def store_location(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where a store of the test's own may be made: a directory, or the URL of an empty database."""
    if request.param == "sqlite":
        return str(tmp_path / "store")
    url: str = request.getfixturevalue("empty_postgres")
    return url
