"""Definitions are the same everywhere and forever: for a seed, on every machine, in every version of Python."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.memory.tests.conversation import dataset
from themis.core.codec import canonical_json
from themis.memory.tests import BUILTIN_TESTS

TESTS = sorted(BUILTIN_TESTS)


def definitions(name, seed=0):
    return [{"id": test.test_id, **test.definition()} for test in dataset(name, seed=seed).generate_examples(3)]


def fingerprint(name):
    return hashlib.sha256(canonical_json(definitions(name)).encode()).hexdigest()[:16]


GOLDEN = {
    "abstention": "f6a535df6d689ac1",
    "aggregation": "f6baa95f5e4c31be",
    "chapterbreak": "176f1c9e9438426b",
    "colours": "9199fd7f0b7ea1de",
    "conflicting_personal_info": "79a33dd4c6c17d61",
    "contradiction": "05859ed6f3de9458",
    "delayed_recall": "19e6c8d21b52a35a",
    "forgetting": "22e14ec93fc911e6",
    "how_to_think": "279c50be7b864018",
    "instruction_exceptions": "8f01777c21ae01c1",
    "instruction_recall": "97ef4b1503f9a044",
    "interference": "0335da56478f5fdf",
    "jokes": "c2fbb606b9182b4d",
    "knowledge_update": "1ee27a71b3cc46e4",
    "kv": "b97be7636a4538dd",
    "locations": "a1473855c96caf66",
    "locations_directions": "4aaedf83a13042f0",
    "name_list": "ae20c3e12dbc9295",
    "names": "5e682265d8311afa",
    "preference": "d5b2226ca1adce3d",
    "prospective_memory": "977c611d0a499e7a",
    "restaurant": "0b7ada89e72318ec",
    "sallyanne": "be2a916d242054be",
    "shopping": "a044381e67517c3b",
    "spy_meeting": "7886e3722a3ee81b",
    "temporal_order": "791a3010080390f2",
    "trigger_response": "d73ce68cceaf6fe0",
    "verbatim": "97d5b66ea7fe178e",
}


@pytest.mark.parametrize("name", TESTS)
def test_the_definitions_of_seed_zero_never_change(name):
    assert fingerprint(name) == GOLDEN[name]


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

    assert json.loads(made.stdout) == GOLDEN


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
