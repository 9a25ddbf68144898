"""Every public name documents itself where it stands: what it is, every parameter, and an example that runs."""

import dataclasses
import inspect
import os
import subprocess
import sys

import themis
from tests.shape.test_documentation import load_script
from tests.shape.tree import PROJECT

reference = load_script("python_reference")
ENTRIES = [entry for section in reference.SECTIONS for entry in reference.read_entries(section)]
DOCUMENTED = [entry for entry in ENTRIES if inspect.isclass(entry.value) or inspect.isroutine(entry.value)]

# Why a name has no example.
WITHOUT_EXAMPLE = {
    "themis.integrations.wandb.WandbTracker": "needs the package and an account or its files",
    "themis.integrations.mlflow.MlflowTracker": "needs the package and its store",
    "themis.integrations.opentelemetry.OpenTelemetryTracker": "needs the package and a collector",
    "themis.integrations.huggingface.HuggingFaceHubUploader": "needs the package and the Hub",
    "themis.memory.Log": "is handed out by a conversation",
}

# One process for all examples, which register things that no other test should meet; a folder for each.
PROGRAM = """
import doctest, importlib, os, sys, tempfile
for path in sys.argv[1:]:
    module, _, name = path.rpartition(".")
    value = getattr(importlib.import_module(module), name)
    names = dict(vars(sys.modules[value.__module__]))
    for test in doctest.DocTestFinder(recurse=False).find(value, path, module=False, globs=names):
        with tempfile.TemporaryDirectory(dir=".") as folder:
            os.chdir(folder)
            doctest.DocTestRunner().run(test)
            os.chdir("..")
"""


def test_a_public_name_says_what_it_is_and_what_every_parameter_means():
    described = [(entry.path, entry.value) for entry in DOCUMENTED]
    described += [
        (f"{path}.{name}", method)
        for path, value in described
        if inspect.isclass(value)
        for name, method in reference.read_methods(value)
    ]

    assert [gap for path, value in described for gap in find_gaps(path, value)] == []


def find_gaps(path, value):
    written = reference.read_docstring(value)
    # A data class without a docstring gets its signature for one.
    if not written.summary or written.summary.startswith(f"{path.rpartition('.')[2]}("):
        yield f"{path} does not say what it is"
    if inspect.isclass(value) or inspect.isfunction(value):
        for parameter in reference.read_parameters(value):
            if not written.arguments.get(parameter.name.lstrip("*")):
                yield f"{path} does not say what {parameter.name} is"


def test_a_public_constant_has_a_comment():
    constants = [entry for entry in ENTRIES if entry not in DOCUMENTED]

    assert [entry.path for entry in constants if not reference.read_comment(entry)] == []


def test_a_function_or_a_class_that_does_something_has_an_example_with_its_output():
    wanted = [one for one in DOCUMENTED if one.path not in WITHOUT_EXAMPLE and not is_plain_data(one.value)]

    assert [entry.path for entry in wanted if not shows_output(reference.read_docstring(entry.value))] == []


def is_plain_data(value):
    """Values, errors and choices without methods of their own."""
    if not inspect.isclass(value):
        return False
    methods = [method for _, method in reference.read_methods(value) if inspect.isfunction(method)]
    return issubclass(value, BaseException) or not methods


def shows_output(written):
    lines = "\n".join(written.examples).splitlines()
    return any(not line.startswith((">>> ", "...")) for line in lines) and not any("+SKIP" in line for line in lines)


def test_the_examples_run_and_give_what_they_show(tmp_path):
    with_examples = [entry.path for entry in DOCUMENTED if reference.read_docstring(entry.value).examples]

    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *with_examples],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(PROJECT), "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )

    assert (done.returncode, done.stdout) == (0, ""), done.stderr[-3_000:]


def test_every_name_that_themis_exports_is_on_the_page():
    named = {entry.name for entry in ENTRIES if entry.module in ("themis", "themis.exceptions")}

    assert set(themis.__all__) - named == {"__version__"}


def test_a_docstring_is_read_by_its_parts():
    written = reference.parse_docstring(
        """Adds numbers.

        They may be negative.

        Args:
            one: The first,
                whatever it is.
            *others: The rest.

        Returns:
            Their sum.

        Raises:
            ValueError: One is not a number.

        >>> add(1, 2)
        3
        """
    )

    assert dataclasses.asdict(written) == {
        "summary": "Adds numbers.",
        "body": ["They may be negative."],
        "arguments": {"one": "The first, whatever it is.", "others": "The rest."},
        "returns": "Their sum.",
        "raises": {"ValueError": "One is not a number."},
        "examples": [">>> add(1, 2)\n3"],
    }
