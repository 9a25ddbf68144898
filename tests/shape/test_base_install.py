"""Without any extra: everything imports, the command line works, and what is missing is named with its pip command.

The extras are hidden from a process of its own: every package that the base dependencies do not bring is refused there,
as if it were not installed.
"""

import json
import re
import subprocess
import sys
from importlib.metadata import distribution, packages_distributions

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.shape.tree import PROJECT, modules
from themis.cli import COMMANDS

# Packages of ours that are an extra as a whole, or that only pytest loads.
WHOLE_EXTRAS = ("themis.server.", "themis.testing.")
PIP_COMMAND = re.compile(r"pip install 'themis-eval\[\w+\]'")

WORKING = [
    ["--help"],
    ["--version"],
    *([name, "--help"] for name in COMMANDS),
    *(["list", kind] for kind in ("metrics", "extractors", "providers", "benchmarks")),
]
# What is asked -> the extra that it needs.
MISSING = {
    ("list", "runs", "--storage", "postgresql://127.0.0.1:1/runs"): "postgres",
}


def base_distributions() -> set[str]:
    """The base dependencies and all that they need, by canonical name."""
    found: set[str] = set()
    waiting = ["themis-eval"]
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        found.add(name)
        for text in distribution(name).requires or ():
            requirement = Requirement(text)
            if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
                waiting.append(canonicalize_name(requirement.name))
    return found


def hidden_packages() -> list[str]:
    base = base_distributions()
    return sorted(
        package
        for package, owners in packages_distributions().items()
        if not {canonicalize_name(owner) for owner in owners} & base
    )


@pytest.fixture(scope="module")
def without_extras() -> dict:
    asked = {
        "hidden": hidden_packages(),
        "modules": modules(),
        "commands": [*WORKING, *map(list, MISSING)],
    }
    done = subprocess.run(
        [sys.executable, PROJECT / "tests" / "shape" / "without_extras.py"],
        input=json.dumps(asked),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_extras_are_hidden_and_the_base_is_not():
    hidden = hidden_packages()

    assert {"fastapi", "psycopg", "datasets", "math_verify", "pytest"} <= set(hidden)
    assert not {"click", "rich", "sqlalchemy", "msgspec", "numpy", "scipy", "aiohttp", "jinja2", "yaml"} & set(hidden)


def test_every_module_imports(without_extras):
    problems = {
        name: problem for name, problem in without_extras["modules"].items() if not f"{name}.".startswith(WHOLE_EXTRAS)
    }

    assert problems == {}


@pytest.mark.parametrize("number", range(len(WORKING)), ids=[" ".join(arguments) for arguments in WORKING])
def test_the_command_line_works(without_extras, number):
    answer = without_extras["commands"][number]

    assert (answer["code"], answer["err"]) == (0, "")
    assert answer["out"].strip()


@pytest.mark.parametrize("number", range(len(MISSING)), ids=[" ".join(arguments) for arguments in MISSING])
def test_what_is_missing_is_one_line_that_names_the_pip_command(without_extras, number):
    answer = without_extras["commands"][len(WORKING) + number]
    extra = list(MISSING.values())[number]

    assert (answer["code"], answer["out"]) == (3, "")
    assert len(answer["err"].splitlines()) == 1
    assert f"pip install 'themis-eval[{extra}]'" in answer["err"]


def test_what_can_be_named_loads_or_says_what_to_install(without_extras):
    vague = {name: why for name, why in without_extras["registries"].items() if not PIP_COMMAND.search(why)}

    assert vague == {}
