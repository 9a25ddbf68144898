"""Knowledge and common sense: asked as a question with lettered options, or scored by log-probabilities; and short answers."""

from __future__ import annotations

import re
from functools import partial
from typing import Any, TypeAlias

from themis.core.entities import SamplingConfig
from themis.presets.benchmarks import CatalogueBenchmark
from themis.presets.catalogue.choice import ASK_FOR_LETTER
from themis.presets.catalogue.language import ShortAnswerExtractor
from themis.presets.fields import Raw, Row, Value, lettered, mapped, option_texts, position
from themis.presets.hub import HubDataset
from themis.presets.protocols import FewShot

# What the two ways to ask a benchmark have in common: arguments of `CatalogueBenchmark`.
Fields: TypeAlias = dict[str, Any]

_ONE_TOKEN = SamplingConfig(max_tokens=1)
_SHORT = SamplingConfig(max_tokens=64, stop=("\n",))


def _each_option(row: Row, prompt: str) -> list[list[str]]:
    return [[prompt, f" {text}"] for text in row["choices"]]


def _each_letter(row: Row, prompt: str) -> list[list[str]]:
    return [[prompt, f" {chr(ord('A') + place)}"] for place in range(len(row["choices"]))]


_asked = partial(
    CatalogueBenchmark,
    prompt="{question}" + ASK_FOR_LETTER,
    sampling=SamplingConfig(max_tokens=32_768),
    metrics=("multiple_choice",),
    metadata_fields=("choices",),
)
_scored = partial(
    CatalogueBenchmark,
    scoring="loglikelihood",
    continuations=_each_option,
    sampling=_ONE_TOKEN,
    extractor="identity",
    metrics=("acc", "acc_norm"),
    metadata_fields=("choices",),
)

# --- MMLU ---------------------------------------------------------------------------------------------------------------


def _mmlu_correct(raw: Raw) -> int:
    """A number in the source's rows; in ours, which have the same fields, a letter."""
    answer = raw["answer"]
    return ord(answer) - ord("A") if isinstance(answer, str) and answer.isalpha() else int(answer)


_MMLU: Fields = {
    "source": HubDataset(
        dataset="cais/mmlu", config="all", split="test", revision="c30699e8356da336a370243923dbaf21066bb9fe"
    ),
    "raw_fields": ("question", "choices", "answer", "subject"),
    "row": lettered(
        question="question",
        options="choices",
        correct=_mmlu_correct,
        subject="subject",
        topic=lambda raw: str(raw["subject"]).replace("_", " "),
    ),
    "metadata_fields": ("choices", "subject"),
    "licence": "MIT",
    "citation": "Hendrycks et al. 2021, arXiv:2009.03300",
}

# --- ARC ----------------------------------------------------------------------------------------------------------------


def _arc_correct(raw: Raw) -> int:
    """Labels are letters, in some rows digits."""
    return list(raw["choices"]["label"]).index(raw["answerKey"])


def _arc(config: str) -> Fields:
    return {
        "source": HubDataset(
            dataset="allenai/ai2_arc", config=config, split="test", revision="210d026faf9955653af8916fad021475a3f00453"
        ),
        "raw_fields": ("question", "choices", "answerKey"),
        "row": lettered(question="question", options=lambda raw: raw["choices"]["text"], correct=_arc_correct),
        "row_id": "id",
        "licence": "CC-BY-SA-4.0",
        "citation": "Clark et al. 2018, arXiv:1803.05457",
    }


_arc_example = mapped(question="question", right=lambda raw: raw["choices"]["text"][_arc_correct(raw)])

# --- HellaSwag, WinoGrande ------------------------------------------------------------------------------------------------


def _clean_hellaswag(text: str) -> str:
    """Marks of the instructions that some of the texts were taken from are left out, as its authors' scripts do."""
    text = re.sub(r"\[.*?\]", "", text.strip().replace(" [title]", ". "))
    return text.replace("  ", " ")


def _hellaswag_context(raw: Raw) -> str:
    begun = f"{raw['ctx_a']} {str(raw['ctx_b']).capitalize()}" if raw.get("ctx_b") else str(raw["ctx"])
    return _clean_hellaswag(f"{raw['activity_label']}: {begun}")


_HELLASWAG: Fields = {
    "source": HubDataset(
        dataset="Rowan/hellaswag", split="validation", revision="218ec52e09a7e7462a5400043bb9a69a41d06b76"
    ),
    "raw_fields": ("activity_label", "ctx", "endings", "label"),
    "row": lettered(
        context=_hellaswag_context,
        options=lambda raw: [_clean_hellaswag(ending) for ending in raw["endings"]],
        correct=position("label"),
        activity="activity_label",
    ),
    "row_id": "ind",
    "metadata_fields": ("choices", "activity"),
    "licence": "MIT",
    "citation": "Zellers et al. 2019, arXiv:1905.07830",
}
_WINOGRANDE: Fields = {
    "source": HubDataset(
        dataset="allenai/winogrande",
        config="winogrande_xl",
        split="validation",
        revision="01e74176c63542e6b0bcb004dcdea22d94fb67b5",
    ),
    "raw_fields": ("sentence", "option1", "option2", "answer"),
    "row": lettered(
        sentence="sentence", options=option_texts("option1", "option2"), correct=position("answer", first=1)
    ),
    "licence": "CC-BY-4.0",
    "citation": "Sakaguchi et al. 2019, arXiv:1907.10641",
}


def _fill_blank(raw: Raw) -> str:
    return str(raw["sentence"]).replace("_", str(raw[f"option{raw['answer']}"]))


def _rest_of_sentence(row: Row, prompt: str) -> list[list[str]]:
    """Each option stands in the context, and what follows the blank is scored: the same words for both."""
    before, _, after = str(row["sentence"]).partition("_")
    examples = prompt[: len(prompt) - len(str(row["sentence"]))]
    return [[f"{examples}{before}{text}", f" {after.strip()}"] for text in row["choices"]]


# --- short answers --------------------------------------------------------------------------------------------------------


def _examples(first: Value) -> FewShot:
    return FewShot(
        count=5,
        split="train",
        reply=" {first}",
        row=mapped(question="question", first=first),
        introduction="Questions with their short answers.",
    )


_short_answer = partial(
    CatalogueBenchmark,
    prompt="Question: {question}\nAnswer:",
    sampling=_SHORT,
    extractor=ShortAnswerExtractor,
    metrics=("exact_match(ignore_punctuation=True, ignore_articles=True)", "f1"),
)

KNOWLEDGE = (
    _asked(name="mmlu", description="Examinations in 57 subjects, asked as a question", **_MMLU),
    _scored(
        **_MMLU,
        name="mmlu-likelihood",
        sample_name="mmlu",
        description="Examinations in 57 subjects, five examples, letters by log-probability",
        prompt="{question}\n{options}\nAnswer:",
        few_shot=FewShot(
            count=5,
            split="dev",
            reply=" {answer}",
            group="subject",
            introduction="Multiple-choice questions about {topic}, with their answers.",
        ),
        continuations=_each_letter,
        metrics=("acc", "group_mean('acc', field='subject')"),
        protocol_source="Hendrycks et al. 2021: five examples of the subject's dev split, letters by probability; words ours",
    ),
    *(
        _asked(name=f"arc-{name}", description=f"Grade-school science, {name} questions, asked", **_arc(config))
        for name, config in (("easy", "ARC-Easy"), ("challenge", "ARC-Challenge"))
    ),
    *(
        _scored(
            name=f"arc-{name}-likelihood",
            sample_name=f"arc-{name}",
            description=f"Grade-school science, {name} questions, options by log-probability",
            prompt="Question: {question}\nAnswer:",
            few_shot=FewShot(count=shots, split="train", reply=" {right}", row=_arc_example) if shots else None,
            protocol_source=source,
            **_arc(config),
        )
        for name, config, shots, source in (
            ("easy", "ARC-Easy", 0, "lm-evaluation-harness arc_easy: zero-shot, acc and acc_norm"),
            ("challenge", "ARC-Challenge", 25, "Open LLM Leaderboard 2023: 25 examples, acc_norm"),
        )
    ),
    _asked(
        name="hellaswag",
        description="How an everyday scene goes on, asked",
        prompt="How does this go on?\n\n{context} ..." + ASK_FOR_LETTER,
        **_HELLASWAG,
    ),
    _scored(
        name="hellaswag-likelihood",
        sample_name="hellaswag",
        description="How an everyday scene goes on, endings by log-probability",
        prompt="{context}",
        protocol_source="lm-evaluation-harness hellaswag: zero-shot, acc and acc_norm",
        **_HELLASWAG,
    ),
    _asked(
        name="winogrande",
        description="Which of two a sentence is about, asked",
        prompt="Which option belongs in place of the underscore?\n\n{sentence}" + ASK_FOR_LETTER,
        **_WINOGRANDE,
    ),
    _scored(
        name="winogrande-likelihood",
        sample_name="winogrande",
        description="Which of two a sentence is about, by the probability of the sentence's rest",
        prompt="{sentence}",
        continuations=_rest_of_sentence,
        few_shot=FewShot(count=5, split="train", question="{filled}", reply="", row=mapped(filled=_fill_blank)),
        metrics=("acc",),
        protocol_source="Open LLM Leaderboard 2023: five examples, partial scoring of Trinh and Le 2018",
        **_WINOGRANDE,
    ),
    _short_answer(
        name="triviaqa",
        description="Questions of quizzes, without documents",
        source=HubDataset(
            dataset="mandarjoshi/trivia_qa",
            config="rc.nocontext",
            split="validation",
            revision="0f7faf33a3908546c6fd5b73a660e0f8ff173c2f",
        ),
        raw_fields=("question", "answer", "question_id"),
        row=mapped(
            question="question",
            answer=lambda raw: list(dict.fromkeys([raw["answer"]["value"], *raw["answer"]["aliases"]])),
        ),
        few_shot=_examples(lambda raw: raw["answer"]["value"]),
        row_id="question_id",
        licence="Apache-2.0",
        citation="Joshi et al. 2017, arXiv:1705.03551",
        protocol_source="Touvron et al. 2023 (arXiv:2302.13971): five examples, exact match after normalisation",
    ),
    _short_answer(
        name="nq",
        description="Natural Questions, open: what people asked a search engine",
        source=HubDataset(
            dataset="google-research-datasets/nq_open",
            split="validation",
            revision="5dd9790a83002ad084ddeb7c420dc716852c6f28",
        ),
        raw_fields=("question", "answer"),
        row=mapped(question="question", answer="answer"),
        few_shot=_examples(lambda raw: raw["answer"][0]),
        licence="CC-BY-SA-3.0",
        citation="Kwiatkowski et al. 2019; Lee et al. 2019, arXiv:1906.00300",
        protocol_source="Touvron et al. 2023 (arXiv:2302.13971): five examples, exact match after normalisation",
    ),
)
