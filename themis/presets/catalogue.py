"""The benchmarks that Themis knows, as data.

Each says where the rows come from and at which revision, how a raw row becomes one of ours, how the model is asked
and how its reply is judged. Every one of the Hub's has a file of sample rows in `samples/`, made by us in the source's
layout, with which all of that is tested.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from themis.evaluation.extractors.answers import find_final_answer
from themis.evaluation.extractors.countdown import CountdownExpressionExtractor
from themis.evaluation.extractors.exceptions import FieldExtractionError
from themis.evaluation.extractors.text import strip_thinking
from themis.evaluation.metrics.countdown import CountdownValidity
from themis.presets.benchmarks import CatalogueBenchmark, dataset_of, register_benchmark, register_dataset
from themis.presets.countdown import DIFFICULTIES, puzzle_rows, raw_puzzles
from themis.presets.fields import (
    after_hashes,
    boxed,
    conversation_turns,
    joined,
    lettered,
    mapped,
    option_texts,
    position,
    position_of,
)
from themis.presets.hub import HubDataset
from themis.presets.instructions import InstructionFollowing
from themis.presets.loading import sample_rows


@dataclass(frozen=True)
class ShortAnswerExtractor:
    """What the reply announces as its answer, else its last paragraph, without reasoning tags and outer marks."""

    example: ClassVar[str] = 'ShortAnswerExtractor().extract("The answer is **white**.") == "white"'

    def extract(self, raw_output: str) -> str:
        text = strip_thinking(str(raw_output))
        answer = (
            (find_final_answer(text) or text.rpartition("\n\n")[2]).strip().strip("*_`\"' ").removesuffix(".").strip()
        )
        if not answer:
            raise FieldExtractionError("empty_output")
        return answer


ASK_FOR_NUMBER = "\n\nReason step by step, then end with a line of the form\nAnswer: <number>"
ASK_FOR_BOX = "\n\nReason step by step, and put the final answer alone in \\boxed{{}}."
ASK_FOR_LETTER = (
    "\n\n{options}\n\nOne option is right. Reason if you need to, then end with a line of the form\nAnswer: <letter>"
)
ASK_FOR_CODE = "\n\nReply with one Python code block that holds the whole function and every import it needs."

SEE_PAGE = "see the dataset's page"
CONVERTED = "refs/convert/parquet"  # the Hub's own conversion of datasets that exist as scripts only

_multiple_choice = partial(
    CatalogueBenchmark,
    prompt="{question}" + ASK_FOR_LETTER,
    metrics=("multiple_choice",),
    metadata_fields=("choices",),
)

_ALL = (
    CatalogueBenchmark(
        name="demo",
        description="Ten sums, to see that everything works",
        source=lambda limit: sample_rows("demo"),
        raw_fields=("question", "answer"),
        row=mapped(question="question", answer="answer"),
        prompt="{question}\nAnswer with the number only.",
        extractor="last_number",
        metrics=("exact_match",),
        licence="MIT",
        citation="Themis",
    ),
    CatalogueBenchmark(
        name="gsm8k",
        description="Grade-school word problems",
        source=HubDataset(
            dataset="openai/gsm8k", config="main", split="test", revision="740312add88f781978c0658806c59bc2815b9866"
        ),
        raw_fields=("question", "answer"),
        row=mapped(question="question", answer=after_hashes("answer")),
        prompt="{question}" + ASK_FOR_NUMBER,
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
        metrics=("numeric",),
        licence=SEE_PAGE,
        citation="ByteDance Seed 2025, arXiv:2504.13914",
    ),
    _multiple_choice(
        name="mmlu-pro",
        description="Professional knowledge in 14 fields, up to ten options",
        source=HubDataset(
            dataset="TIGER-Lab/MMLU-Pro", split="test", revision="b189ec765aa7ed75c8acfea42df31fdae71f97be"
        ),
        raw_fields=("question", "options", "answer_index"),
        row=lettered(question="question", options="options", correct=position("answer_index"), category="category"),
        row_id="question_id",
        metadata_fields=("choices", "category"),
        licence="MIT",
        citation="Wang et al. 2024, arXiv:2406.01574",
    ),
    _multiple_choice(
        name="supergpqa",
        description="Graduate questions in 285 disciplines",
        source=HubDataset(
            dataset="m-a-p/SuperGPQA", split="train", revision="4430d4458112c7d4497fdcf94d7cc223313d6acf"
        ),
        raw_fields=("question", "options", "answer_letter"),
        row=lettered(
            question="question",
            options="options",
            correct=lambda raw: ord(raw["answer_letter"].strip().upper()) - ord("A"),
            discipline="discipline",
            difficulty="difficulty",
        ),
        row_id="uuid",
        metadata_fields=("choices", "discipline", "difficulty"),
        licence="ODC-BY",
        citation="M-A-P Team 2025, arXiv:2502.14739",
    ),
    _multiple_choice(
        name="gpqa",
        description="GPQA Diamond: graduate questions that a search does not answer",
        source=HubDataset(
            dataset="Idavidrein/gpqa",
            config="gpqa_diamond",
            split="train",
            revision="633f5ee89ab8ad4522a9f850766b73f62147ffdd",
            gated=True,
        ),
        raw_fields=("Question", "Correct Answer"),
        row=lettered(
            question="Question",
            options=option_texts("Correct Answer", "Incorrect Answer 1", "Incorrect Answer 2", "Incorrect Answer 3"),
            correct=lambda raw: 0,
            shuffled=True,
            domain=lambda raw: raw.get("High-level domain", ""),
        ),
        row_id="Record ID",
        metadata_fields=("choices", "domain"),
        licence="CC-BY-4.0",
        citation="Rein et al. 2023, arXiv:2311.12022",
    ),
    _multiple_choice(
        name="medmcqa",
        description="Indian medical entrance examinations",
        # The test split's labels are hidden; `cop` counts from 0.
        source=HubDataset(
            dataset="openlifescienceai/medmcqa",
            split="validation",
            revision="91c6572c454088bf71b679ad90aa8dffcd0d5868",
        ),
        raw_fields=("question", "opa", "opb", "opc", "opd", "cop"),
        row=lettered(
            question="question",
            options=option_texts("opa", "opb", "opc", "opd"),
            correct=position("cop"),
            subject="subject_name",
        ),
        metadata_fields=("choices", "subject"),
        licence="Apache-2.0",
        citation="Pal et al. 2022, arXiv:2203.14371",
    ),
    _multiple_choice(
        name="med_qa",
        description="United States medical licensing examination",
        source=HubDataset(dataset="bigbio/med_qa", data_dir="med_qa_en_bigbio_qa", split="test", revision=CONVERTED),
        raw_fields=("question", "choices", "answer", "document_id"),
        row=lettered(question="question", options="choices", correct=position_of("answer", "choices")),
        row_id="question_id",
        licence=SEE_PAGE,
        citation="Jin et al. 2020, arXiv:2009.13081",
    ),
    _multiple_choice(
        name="sciq",
        description="Crowd-written science questions",
        source=HubDataset(dataset="allenai/sciq", split="test", revision="2c94ad3e1aafab77146f384e23536f97a4849815"),
        raw_fields=("question", "correct_answer", "distractor1", "distractor2", "distractor3"),
        row=lettered(
            question="question",
            options=option_texts("correct_answer", "distractor1", "distractor2", "distractor3"),
            correct=lambda raw: 0,
            shuffled=True,
        ),
        licence="CC-BY-NC-3.0",
        citation="Welbl et al. 2017, arXiv:1707.06209",
    ),
    _multiple_choice(
        name="commonsense_qa",
        description="Everyday knowledge, five options",
        source=HubDataset(
            dataset="tau/commonsense_qa", split="validation", revision="94630fe30dad47192a8546eb75f094926d47e155"
        ),
        raw_fields=("question", "choices", "answerKey"),
        row=lettered(
            question="question",
            options=lambda raw: raw["choices"]["text"],
            correct=position_of("answerKey", lambda raw: raw["choices"]["label"]),
        ),
        licence="MIT",
        citation="Talmor et al. 2019, arXiv:1811.00937",
    ),
    _multiple_choice(
        name="piqa",
        description="Which of two ways works in the physical world",
        source=HubDataset(dataset="ybisk/piqa", data_dir="plain_text", split="validation", revision=CONVERTED),
        raw_fields=("goal", "sol1", "sol2", "label"),
        row=lettered(question="goal", options=option_texts("sol1", "sol2"), correct=position("label")),
        prompt="Goal: {question}\n\nWhich way reaches it?" + ASK_FOR_LETTER,
        licence=SEE_PAGE,
        citation="Bisk et al. 2020, arXiv:1911.11641",
    ),
    _multiple_choice(
        name="social_i_qa",
        description="Why people act as they do, and what they feel",
        source=HubDataset(dataset="allenai/social_i_qa", data_dir="default", split="validation", revision=CONVERTED),
        raw_fields=("context", "question", "answerA", "answerB", "answerC", "label"),
        row=lettered(
            context="context",
            question="question",
            options=option_texts("answerA", "answerB", "answerC"),
            correct=position("label", first=1),
        ),
        prompt="{context}\n\n{question}" + ASK_FOR_LETTER,
        licence=SEE_PAGE,
        citation="Sap et al. 2019, arXiv:1904.09728",
    ),
    _multiple_choice(
        name="truthfulqa",
        description="Questions that invite a common misconception (MC1)",
        source=HubDataset(
            dataset="truthfulqa/truthful_qa",
            config="multiple_choice",
            split="validation",
            revision="741b8276f2d1982aa3d5b832d3ee81ed3b896490",
        ),
        raw_fields=("question", "mc1_targets"),
        row=lettered(
            question="question",
            options=lambda raw: raw["mc1_targets"]["choices"],
            correct=lambda raw: list(raw["mc1_targets"]["labels"]).index(1),
            shuffled=True,
        ),
        licence="Apache-2.0",
        citation="Lin et al. 2022, arXiv:2109.07958",
    ),
    CatalogueBenchmark(
        name="coqa",
        description="Questions in conversation about a passage",
        source=HubDataset(dataset="stanfordnlp/coqa", split="validation"),
        raw_fields=("story", "questions", "answers"),
        row=conversation_turns(story="story", questions="questions", answers="answers"),
        prompt=(
            "Read the passage and answer the last question in as few words as possible.\n\n{story}\n\n"
            "{history}Question: {question}\nAnswer:"
        ),
        extractor=ShortAnswerExtractor,
        metrics=("f1", "exact_match"),
        metadata_fields=("turn",),
        licence=SEE_PAGE,
        citation="Reddy et al. 2019, arXiv:1808.07042",
    ),
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
        metrics=("pass_at_k",),
        reference_field="reference",
        licence="MIT",
        citation="Chen et al. 2021, arXiv:2107.03374",
    ),
    CatalogueBenchmark(
        name="mbpp",
        description="Short Python programs from one sentence (sanitized)",
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
        metrics=("pass_at_k",),
        reference_field="reference",
        licence="CC-BY-4.0",
        citation="Austin et al. 2021, arXiv:2108.07732",
    ),
    CatalogueBenchmark(
        name="ifeval",
        description="Instructions whose following can be checked by rule",
        source=HubDataset(dataset="google/IFEval", split="train", revision="966cd89545d6b6acfd7638bc708b98261ca58e84"),
        raw_fields=("prompt", "instruction_id_list", "kwargs"),
        row=mapped(
            prompt="prompt",
            # The source knows no right replies; those of the sample are ours.
            reference=lambda raw: {
                name: raw[name] for name in ("instruction_id_list", "kwargs", "answer") if name in raw
            },
        ),
        row_id="key",
        prompt="{prompt}",
        metrics=(InstructionFollowing,),
        reference_field="reference",
        licence="Apache-2.0",
        citation="Zhou et al. 2023, arXiv:2311.07911",
    ),
    *(
        CatalogueBenchmark(
            name="countdown" if difficulty is None else f"countdown-{difficulty}",
            description=(
                f"Reach a target number with + - * / from {difficulty or '3 to 6'} numbers; generated, always solvable"
            ),
            source=partial(raw_puzzles, difficulty=difficulty),
            raw_fields=("nums", "target"),
            row=puzzle_rows,
            prompt=(
                "Solve this Countdown puzzle.\nNumbers: {numbers_str}\nTarget: {target}\n"
                "Use each number at most once, with +, -, * and / only; every intermediate result must be a positive "
                "integer.\nEnd with a line of the form\nExpression: <expression>"
            ),
            extractor=CountdownExpressionExtractor,
            metrics=(CountdownValidity,),
            reference_field="reference",
            metadata_fields=("numbers", "target"),
            licence="MIT",
            citation="Themis",
        )
        for difficulty in (None, *DIFFICULTIES)
    ),
)

CATALOGUE: dict[str, CatalogueBenchmark] = {benchmark.name: benchmark for benchmark in _ALL}

for _benchmark in _ALL:
    register_benchmark(_benchmark)
    register_dataset(_benchmark.name, dataset_of(_benchmark))
