"""Definitions are the same everywhere and forever: for a seed, on every machine, in every version of Python."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.memory.tests.conversation import TESTS, dataset
from tests.memory.tests.known_replies import read_golden
from themis.core.codec import canonical_json


def definitions(name, seed=0):
    return [{"id": test.test_id, **test.definition()} for test in dataset(name, seed=seed).generate_examples(3)]


def fingerprint(name):
    return hashlib.sha256(canonical_json(definitions(name)).encode()).hexdigest()[:16]


@pytest.mark.parametrize("name", TESTS)
def test_the_definitions_of_seed_zero_never_change(name):
    assert fingerprint(name) == read_golden(name)


@pytest.mark.parametrize("hash_seed", ["1", "4711"])
def test_the_definitions_do_not_depend_on_how_python_hashes(hash_seed):
    code = (
        "import json; from tests.memory.tests.test_definitions import TESTS, fingerprint;"
        "print(json.dumps({name: fingerprint(name) for name in TESTS}))"
    )
    made = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
        cwd=Path(__file__).parents[3],
        capture_output=True,
        check=True,
    )

    assert json.loads(made.stdout) == {name: read_golden(name) for name in TESTS}


@pytest.mark.parametrize("name", TESTS)
def test_another_seed_gives_other_tests_and_the_same_seed_the_same(name):
    assert definitions(name, 1) == definitions(name, 1)
    assert definitions(name, 1) != definitions(name, 2)


@pytest.mark.parametrize("name", TESTS)
def test_more_examples_leave_the_first_ones_as_they_are(name):
    few, many = dataset(name).generate_examples(2), dataset(name).generate_examples(5)

    assert [test.definition() for test in many[:2]] == [test.definition() for test in few]
    assert len({test.test_id for test in many}) == 5


@pytest.mark.parametrize("name", TESTS)
def test_a_definition_survives_being_written_and_read(name):
    kind = dataset(name)
    for test in kind.generate_examples(3):
        stored = json.loads(json.dumps(test.definition()))
        again = kind.load_example(test.example_id, stored)

        assert again.definition() == stored
        assert again.test_id == test.test_id
