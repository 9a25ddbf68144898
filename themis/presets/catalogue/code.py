"""Code: functions that must pass a row's tests."""

from __future__ import annotations

from themis.core.entities import SamplingConfig
from themis.presets.benchmarks import CatalogueBenchmark
from themis.presets.catalogue.sources import SHORT
from themis.presets.fields import mapped
from themis.presets.hub import HubDataset
from themis.presets.protocols import FewShot

ASK_FOR_CODE = "\n\nReply with one Python code block that holds the whole function and every import it needs."

_with_code = mapped(
    prompt="text",
    tests=lambda raw: "\n".join(raw["test_list"]),
    code=lambda raw: str(raw["code"]).replace("\r\n", "\n"),
)

CODE = (
    CatalogueBenchmark(
        name="humaneval",
        description="Python functions from their docstrings",
        source=HubDataset(
            dataset="openai/openai_humaneval", split="test", revision="7dce6050a7d6d172f3cc5c32aa97f52fa1a2e544"
        ),
        raw_fields=("prompt", "test", "entry_point"),
        row=mapped(
            prompt="prompt",
            reference=lambda raw: {
                "test": raw["test"],
                "entry_point": raw["entry_point"],
                "prompt": raw["prompt"],
                "answer": f"{raw['prompt']}{raw.get('canonical_solution', '')}",
            },
        ),
        row_id="task_id",
        prompt="Complete this Python function.\n\n```python\n{prompt}\n```" + ASK_FOR_CODE,
        sampling=SHORT,
        metrics=("pass_at_k",),
        reference_field="reference",
        licence="MIT",
        citation="Chen et al. 2021, arXiv:2107.03374",
    ),
    CatalogueBenchmark(
        name="mbpp",
        description="Short Python programs from one sentence",
        source=HubDataset(
            dataset="google-research-datasets/mbpp",
            config="full",
            split="test",
            revision="4bb6404fdc6cacfda99d4ac4205087b89d32030c",
        ),
        raw_fields=("text", "test_list"),
        row=mapped(
            prompt="text",
            tests=lambda raw: "\n".join(raw["test_list"]),
            reference=lambda raw: {
                "test_list": raw["test_list"],
                "test_imports": [raw["test_setup_code"]] if raw.get("test_setup_code") else [],
                "answer": raw.get("code", ""),
            },
        ),
        row_id="task_id",
        prompt=(
            "You are an expert Python programmer, and here is your task: {prompt} Your code should pass these tests:\n\n"
            "{tests}\n[BEGIN]\n"
        ),
        few_shot=FewShot(count=3, split="prompt", row=_with_code, reply="{code}\n[DONE]"),
        sampling=SamplingConfig(max_tokens=8_192, stop=("[DONE]",)),
        metrics=("pass_at_k",),
        reference_field="reference",
        protocol_source="Austin et al. 2021, arXiv:2108.07732, 3 examples, with a larger budget",
        licence="CC-BY-4.0",
        citation="Austin et al. 2021, arXiv:2108.07732",
    ),
    CatalogueBenchmark(
        name="mbpp-sanitized",
        description="Short Python programs from one sentence, those that people have checked",
        source=HubDataset(
            dataset="google-research-datasets/mbpp",
            config="sanitized",
            split="test",
            revision="4bb6404fdc6cacfda99d4ac4205087b89d32030c",
        ),
        raw_fields=("prompt", "test_list"),
        row=mapped(
            prompt="prompt",
            tests=lambda raw: "\n".join(raw["test_list"]),
            reference=lambda raw: {
                "test_list": raw["test_list"],
                "test_imports": raw.get("test_imports") or [],
                "answer": raw.get("code", ""),
            },
        ),
        row_id="task_id",
        prompt="{prompt}\n\nThe code must pass these tests:\n\n{tests}" + ASK_FOR_CODE,
        sampling=SHORT,
        metrics=("pass_at_k",),
        reference_field="reference",
        licence="CC-BY-4.0",
        citation="Austin et al. 2021, arXiv:2108.07732",
    ),
)
