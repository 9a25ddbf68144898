"""Multiple choice: a question with lettered options, one of which is right."""

from __future__ import annotations

from functools import partial

from themis.presets.benchmarks import CatalogueBenchmark
from themis.presets.catalogue.sources import CONVERTED, REASONING, SEE_PAGE, SHORT
from themis.presets.fields import lettered, option_texts, position, position_of
from themis.presets.hub import HubDataset
from themis.presets.protocols import FewShot

ASK_FOR_LETTER = (
    "\n\n{options}\n\nOne option is right. Reason if you need to, then end with a line of the form\nAnswer: <letter>"
)

_multiple_choice = partial(
    CatalogueBenchmark,
    prompt="{question}" + ASK_FOR_LETTER,
    metrics=("multiple_choice",),
    metadata_fields=("choices",),
    sampling=SHORT,
)
# No examples unless asked for; those are the first ones of the split that nobody is tested on.
_FROM_TRAINING = FewShot(count=0, split="train", reply="\n\nAnswer: {answer}")

CHOICE = (
    _multiple_choice(
        name="mmlu-pro",
        description="Professional knowledge in 14 fields, up to ten options",
        source=HubDataset(
            dataset="TIGER-Lab/MMLU-Pro", split="test", revision="b189ec765aa7ed75c8acfea42df31fdae71f97be"
        ),
        raw_fields=("question", "options", "answer_index"),
        row=lettered(question="question", options="options", correct=position("answer_index"), category="category"),
        prompt="Question:\n{question}\nOptions:\n{options}\nAnswer: Let's think step by step.",
        few_shot=FewShot(
            count=5,
            split="validation",
            group="category",
            row=lettered(
                question="question",
                options="options",
                correct=position("answer_index"),
                category="category",
                solution=lambda raw: str(raw["cot_content"]).removeprefix("A: Let's think step by step.").strip(),
            ),
            introduction=(
                "The following are multiple choice questions (with answers) about {category}. Think step by step and then "
                'finish your answer with "the answer is (X)" where X is the correct letter choice.'
            ),
            reply=" {solution}",
        ),
        sampling=REASONING,
        protocol_source="Wang et al. 2024, github.com/TIGER-AI-Lab/MMLU-Pro, with a larger budget than its 2,048 tokens",
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
        sampling=REASONING,
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
        sampling=REASONING,
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
        few_shot=_FROM_TRAINING,
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
        few_shot=_FROM_TRAINING,
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
        few_shot=_FROM_TRAINING,
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
        few_shot=_FROM_TRAINING,
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
        few_shot=_FROM_TRAINING,
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
        few_shot=_FROM_TRAINING,
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
)
