"""Reasoning: BIG-Bench Hard, MATH, reading with arithmetic, and questions whose answers a model grades."""

from __future__ import annotations

from themis.core.entities import SamplingConfig
from themis.evaluation.extractors.answers import find_boxes
from themis.presets.benchmarks import CatalogueBenchmark
from themis.presets.catalogue.language import PartsExtractor, ShortAnswerExtractor
from themis.presets.catalogue.mathematics import ASK_FOR_BOX
from themis.presets.fields import Raw, mapped
from themis.presets.hub import HubDataset

_LONG = SamplingConfig(max_tokens=32_768)

BBH_TASKS = (
    *("boolean_expressions", "causal_judgement", "date_understanding", "disambiguation_qa", "dyck_languages"),
    *("formal_fallacies", "geometric_shapes", "hyperbaton", "logical_deduction_five_objects"),
    *("logical_deduction_seven_objects", "logical_deduction_three_objects", "movie_recommendation"),
    *("multistep_arithmetic_two", "navigate", "object_counting", "penguins_in_a_table"),
    *("reasoning_about_colored_objects", "ruin_names", "salient_translation_error_detection", "snarks"),
    *("sports_understanding", "temporal_sequences", "tracking_shuffled_objects_five_objects"),
    *("tracking_shuffled_objects_seven_objects", "tracking_shuffled_objects_three_objects", "web_of_lies"),
    "word_sorting",
)


MATH_SUBJECTS = (
    *("algebra", "counting_and_probability", "geometry", "intermediate_algebra", "number_theory", "prealgebra"),
    "precalculus",
)


def _last_box(raw: Raw) -> str:
    solution = str(raw["solution"])
    boxes = find_boxes(solution)
    if not boxes:
        raise ValueError("the solution has no \\boxed{...}")
    return solution[boxes[-1].inside].strip()


def _drop_parts(raw: Raw) -> str:
    """The parts of the answer, each once."""
    return "; ".join(dict.fromkeys(map(str, raw["answers_spans"]["spans"])))


def _of_text(raw: Raw) -> bool:
    return not raw.get("image")


# What a judge is asked to grade, in place of `{judge}` the model that the user names.
_GRADED = tuple(
    f"answer_judge(model='{{judge}}', measure='{measure}')"
    for measure in ("correct", "correct_given_attempted", "f_score")
)

REASONING = (
    CatalogueBenchmark(
        name="bbh",
        description="BIG-Bench Hard: 27 tasks on which people once did better than models",
        source=HubDataset(
            dataset="SaylorTwift/bbh",
            configs=BBH_TASKS,
            split="test",
            revision="b5306be6f827cfafbb545ff5a51f96916029b0fd",
        ),
        raw_fields=("input", "target"),
        row=mapped(input="input", answer="target", task=lambda raw: raw.get("subset") or raw["task"]),
        prompt="{input}\n\nReason step by step, then end with a line of the form\nAnswer: <answer>",
        sampling=_LONG,
        extractor=ShortAnswerExtractor,
        metrics=("bbh_match", "group_mean('bbh_match', field='task')"),
        metadata_fields=("task",),
        licence="MIT",
        citation="Suzgun et al. 2022, arXiv:2210.09261",
    ),
    CatalogueBenchmark(
        name="math",
        description="Competition problems in seven subjects, all 5,000",
        source=HubDataset(
            dataset="EleutherAI/hendrycks_math",
            configs=MATH_SUBJECTS,
            split="test",
            revision="21a5633873b6a120296cce3e2df9d5550074f4a3",
        ),
        raw_fields=("problem", "solution", "level", "type"),
        row=mapped(problem="problem", answer=_last_box, subject="type", level="level"),
        prompt="{problem}" + ASK_FOR_BOX,
        sampling=_LONG,
        metrics=("math_verify",),
        metadata_fields=("subject", "level"),
        licence="MIT",
        citation="Hendrycks et al. 2021, arXiv:2103.03874",
    ),
    CatalogueBenchmark(
        name="drop",
        description="Reading with counting, adding and comparing",
        source=HubDataset(
            dataset="ucinlp/drop", split="validation", revision="95cda593fae71b60b5b19f82de3fcf3298c1239c"
        ),
        raw_fields=("passage", "question", "answers_spans"),
        row=mapped(passage="passage", question="question", answer=_drop_parts),
        row_id="query_id",
        prompt=(
            "{passage}\n\nQuestion: {question}\n\nReason if you need to, then end with a line of the form\nAnswer: <answer>\n"
            "in as few words as possible; several answers are divided by semicolons."
        ),
        sampling=_LONG,
        extractor=PartsExtractor,
        metrics=("drop", "drop(exact=True)"),
        licence="CC-BY-SA-4.0",
        citation="Dua et al. 2019, arXiv:1903.00161",
    ),
    CatalogueBenchmark(
        name="simpleqa",
        description="Short questions about facts, graded by a model",
        source=HubDataset(
            dataset="basicv8vc/SimpleQA", split="test", revision="e319282ab125c3dbd0c7fd00be2e4dd54e7e8f94"
        ),
        raw_fields=("problem", "answer"),
        row=mapped(question="problem", answer="answer"),
        prompt="{question}",
        sampling=SamplingConfig(max_tokens=2_048),
        metrics=_GRADED,
        licence="MIT",
        citation="Wei et al. 2024, arXiv:2411.04368",
    ),
    CatalogueBenchmark(
        name="hle",
        description="Humanity's Last Exam, questions without pictures, graded by a model",
        source=HubDataset(
            dataset="cais/hle", split="test", revision="5a81a4c7271a2a2a312b9a690f0c2fde837e4c29", gated=True
        ),
        raw_fields=("question", "answer", "answer_type"),
        keep=_of_text,
        row=mapped(question="question", answer="answer", category="category", answer_type="answer_type"),
        row_id="id",
        prompt=(
            "{question}\n\nReason step by step, then end with two lines of the form\nAnswer: <answer>\n"
            "Confidence: <0 to 100>%"
        ),
        sampling=_LONG,
        metrics=_GRADED[:1],
        metadata_fields=("category", "answer_type"),
        licence="MIT",
        citation="Phan et al. 2025, arXiv:2501.14249",
    ),
)
