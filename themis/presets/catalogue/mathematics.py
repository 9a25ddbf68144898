"""Mathematics: word problems and competitions, answered by a number or a formula."""

from __future__ import annotations

from themis.presets.benchmarks import CatalogueBenchmark
from themis.presets.catalogue.sources import DRAWN, DRAWN_SOURCE, REASONING, SEE_PAGE, SHORT
from themis.presets.fields import after_hashes, before_hashes, boxed, joined, mapped
from themis.presets.hub import HubDataset
from themis.presets.protocols import FewShot

ASK_FOR_NUMBER = "\n\nReason step by step, then end with a line of the form\nAnswer: <number>"
ASK_FOR_BOX = "\n\nReason step by step, and put the final answer alone in \\boxed{{}}."


MATHEMATICS = (
    CatalogueBenchmark(
        name="gsm8k",
        description="Grade-school word problems",
        source=HubDataset(
            dataset="openai/gsm8k", config="main", split="test", revision="740312add88f781978c0658806c59bc2815b9866"
        ),
        raw_fields=("question", "answer"),
        row=mapped(question="question", answer=after_hashes("answer")),
        prompt="{question}" + ASK_FOR_NUMBER,
        few_shot=FewShot(
            count=0,
            split="train",
            row=mapped(question="question", solution=before_hashes("answer"), answer=after_hashes("answer")),
            reply="\n\n{solution}\nAnswer: {answer}",
        ),
        sampling=SHORT,
        metrics=("numeric",),
        licence="MIT",
        citation="Cobbe et al. 2021, arXiv:2110.14168",
    ),
    CatalogueBenchmark(
        name="gsm-symbolic",
        description="GSM8K problems with names and numbers drawn anew",
        source=HubDataset(dataset="apple/GSM-Symbolic", config="main", split="test"),
        raw_fields=("question", "answer"),
        row=mapped(question="question", answer=after_hashes("answer")),
        row_id=lambda raw: f"{raw['id']}-{raw['instance']}" if "instance" in raw else raw["id"],
        prompt="{question}" + ASK_FOR_NUMBER,
        sampling=SHORT,
        metrics=("numeric",),
        licence="CC-BY-NC-ND-4.0",
        citation="Mirzadeh et al. 2024, arXiv:2410.05229",
    ),
    CatalogueBenchmark(
        name="math500",
        description="500 competition problems from MATH",
        source=HubDataset(
            dataset="HuggingFaceH4/MATH-500", split="test", revision="6e4ed1a2a79af7d8630a6b768ec859cb5af4d3be"
        ),
        raw_fields=("problem", "answer"),
        row=mapped(problem="problem", answer="answer", subject="subject", level="level"),
        row_id="unique_id",
        prompt="{problem}" + ASK_FOR_BOX,
        sampling=REASONING,
        metrics=("math_verify",),
        metadata_fields=("subject", "level"),
        licence="MIT",
        citation="Hendrycks et al. 2021, arXiv:2103.03874; Lightman et al. 2023, arXiv:2305.20050",
    ),
    CatalogueBenchmark(
        name="aime24",
        description="American Invitational Mathematics Examination 2024",
        source=HubDataset(dataset="math-ai/aime24", split="test", revision="83a7f387baaa524a8bda0022eac0541582297103"),
        raw_fields=("problem", "solution"),
        row=mapped(problem="problem", answer=boxed("solution")),
        prompt="{problem}\n\nThe answer is an integer from 0 to 999." + ASK_FOR_BOX,
        sampling=DRAWN,
        attempts=16,
        protocol_source=DRAWN_SOURCE,
        metrics=("numeric",),
        licence="Apache-2.0",
        citation="Mathematical Association of America, AIME I and II 2024",
    ),
    CatalogueBenchmark(
        name="aime25",
        description="American Invitational Mathematics Examination 2025",
        source=HubDataset(dataset="math-ai/aime25", split="test", revision="563bb8404243c5f09de6ec262f2db674fe5bce9b"),
        raw_fields=("problem", "answer"),
        row=mapped(problem="problem", answer=boxed("answer")),
        prompt="{problem}\n\nThe answer is an integer from 0 to 999." + ASK_FOR_BOX,
        sampling=DRAWN,
        attempts=16,
        protocol_source=DRAWN_SOURCE,
        metrics=("numeric",),
        licence="Apache-2.0",
        citation="Mathematical Association of America, AIME I and II 2025",
    ),
    CatalogueBenchmark(
        name="amc23",
        description="American Mathematics Competitions 2023",
        source=HubDataset(dataset="math-ai/amc23", split="test", revision="80815d37005feb82cd7f8fbc6901d5d3eff43057"),
        raw_fields=("question", "answer"),
        row=mapped(question="question", answer="answer"),
        prompt="{question}" + ASK_FOR_BOX,
        sampling=DRAWN,
        attempts=16,
        protocol_source=DRAWN_SOURCE,
        metrics=("numeric",),
        licence="Apache-2.0",
        citation="Mathematical Association of America, AMC 12 2023",
    ),
    CatalogueBenchmark(
        name="olympiadbench",
        description="Olympiad problems in mathematics, text only",
        source=HubDataset(
            dataset="math-ai/olympiadbench", split="test", revision="4faaf1e6ec17d11a4218a9bf4c049ecaf954dd84"
        ),
        raw_fields=("question", "final_answer"),
        row=mapped(question="question", answer=joined("final_answer")),
        prompt="{question}" + ASK_FOR_BOX,
        sampling=REASONING,
        metrics=("math_verify",),
        licence="Apache-2.0",
        citation="He et al. 2024, arXiv:2402.14008",
    ),
    CatalogueBenchmark(
        name="beyondaime",
        description="Problems harder than AIME's, with integer answers",
        source=HubDataset(dataset="ByteDance-Seed/BeyondAIME", split="test"),
        raw_fields=("problem", "answer"),
        row=mapped(problem="problem", answer="answer"),
        prompt="{problem}\n\nThe answer is an integer." + ASK_FOR_BOX,
        sampling=DRAWN,
        attempts=8,
        protocol_source=DRAWN_SOURCE,
        metrics=("numeric",),
        licence=SEE_PAGE,
        citation="ByteDance Seed 2025, arXiv:2504.13914",
    ),
)
