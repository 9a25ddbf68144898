"""LiveCodeBench: problems of programming contests, with the tests by which the contests judge."""

from __future__ import annotations

import base64
import json
import pickletools
import zlib
from typing import Any

from themis.core.entities import SamplingConfig
from themis.presets.benchmarks import CatalogueBenchmark
from themis.presets.catalogue.sources import SEE_PAGE
from themis.presets.fields import Raw, mapped
from themis.presets.hub import HubDataset

# Contests let solutions use these without a word.
PRELUDE = (
    "import bisect, collections, functools, heapq, itertools, math, operator, random, re, string, sys\n"
    "from bisect import *\nfrom collections import *\nfrom functools import *\nfrom heapq import *\nfrom itertools import *\n"
    "from math import *\nfrom typing import *\n"
)
# A test file is some megabytes; nothing honest unpacks to more.
_MOST_BYTES = 512 * 2**20
_HARMLESS = {"PROTO", "FRAME", "MEMOIZE", "BINPUT", "LONG_BINPUT", "STOP"}


def _tests(raw: Raw) -> dict[str, Any]:
    """All tests of a problem in the form that `pass_at_k` reads."""
    tests = [*json.loads(raw["public_test_cases"]), *_unpack(raw["private_test_cases"])]
    function = json.loads(raw.get("metadata") or "{}").get("func_name")
    # The source knows no solutions; those of the sample are ours.
    beside = {"prelude": PRELUDE, **({"answer": raw["answer"]} if "answer" in raw else {})}
    if not function:
        return {"inputs": [test["input"] for test in tests], "outputs": [test["output"] for test in tests], **beside}
    return {
        # Arguments stand on a line each.
        "inputs": [[json.loads(line) for line in test["input"].split("\n") if line.strip()] for test in tests],
        "outputs": [json.loads(test["output"]) for test in tests],
        "fn_name": f"Solution.{function}",
        **beside,
    }


def _unpack(packed: str) -> list[dict[str, str]]:
    """The hidden tests: JSON, or JSON as a pickled text, compressed; it is not unpickled, only its one text is read."""
    try:
        found: list[dict[str, str]] = json.loads(packed)
        return found
    except ValueError:
        pass
    unpacker = zlib.decompressobj()
    data = unpacker.decompress(base64.b64decode(packed), _MOST_BYTES)
    if unpacker.unconsumed_tail:
        raise ValueError(f"the hidden tests unpack to more than {_MOST_BYTES // 2**20} MB")
    texts = []
    for operation, argument, _ in pickletools.genops(data):
        if "UNICODE" in operation.name and isinstance(argument, str):
            texts.append(argument)
        elif operation.name not in _HARMLESS:
            raise ValueError(f"the hidden tests hold more than a text ({operation.name})")
    if len(texts) != 1:
        raise ValueError(f"the hidden tests hold {len(texts)} texts, expected one")
    unpacked: list[dict[str, str]] = json.loads(texts[0])
    return unpacked


def _form(raw: Raw) -> str:
    if raw.get("starter_code"):
        return f"Begin with this code:\n\n```python\n{raw['starter_code']}\n```"
    return "Write a program that reads standard input and writes the answer to standard output."


CONTESTS = (
    CatalogueBenchmark(
        name="livecodebench",
        description="Problems of programming contests, May 2023 to April 2025 (release 6)",
        source=HubDataset(
            dataset="livecodebench/code_generation_lite",
            data_files=("test.jsonl", "test2.jsonl", "test3.jsonl", "test4.jsonl", "test5.jsonl", "test6.jsonl"),
            split="train",  # what `datasets` calls the rows of files that it is given
            revision="0fe84c3912ea0c4d4a78037083943e8f0c4dd505",
        ),
        raw_fields=("question_content", "public_test_cases", "private_test_cases"),
        row=mapped(
            problem="question_content",
            form=_form,
            reference=_tests,
            difficulty="difficulty",
            platform="platform",
            contest_date=lambda raw: str(raw["contest_date"])[:10],
        ),
        row_id="question_id",
        prompt="{problem}\n\n{form}\n\nReply with one Python code block that holds the whole program.",
        sampling=SamplingConfig(temperature=0.2, top_p=0.95, max_tokens=32_768),
        attempts=10,
        reducer="pass@1",
        metrics=("pass_at_k(limits={'cpu_seconds': 6})",),
        reference_field="reference",
        metadata_fields=("difficulty", "platform", "contest_date"),
        licence=SEE_PAGE,
        citation="Jain et al. 2024, arXiv:2403.07974",
        protocol_source="LiveCodeBench's runner: ten answers at temperature 0.2 and top_p 0.95, pass@1; longer answers",
    ),
)
