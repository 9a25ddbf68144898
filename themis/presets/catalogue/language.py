"""Language: reading comprehension and instructions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from themis.evaluation.extractors.answers import find_announced_line, find_final_answer
from themis.evaluation.extractors.exceptions import FieldExtractionError
from themis.evaluation.extractors.text import strip_thinking
from themis.presets.benchmarks import CatalogueBenchmark
from themis.presets.catalogue.sources import SEE_PAGE, SHORT
from themis.presets.fields import conversation_turns, mapped
from themis.presets.hub import HubDataset
from themis.presets.instructions import InstructionFollowing


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


@dataclass(frozen=True)
class PartsExtractor:
    """The whole line that the reply announces as its answer, with all parts of it; else its last paragraph."""

    example: ClassVar[str] = 'PartsExtractor().extract("Two.\\nAnswer: Frisian; Dutch") == "Frisian; Dutch"'

    def extract(self, raw_output: str) -> str:
        text = strip_thinking(str(raw_output))
        answer = (find_announced_line(text) or text.strip().rpartition("\n\n")[2]).strip("*_`\"' \t\n.")
        if not answer:
            raise FieldExtractionError("empty_output")
        return answer


LANGUAGE = (
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
        sampling=SHORT,
        # As its own scorer compares: without case, punctuation and articles.
        metrics=("f1", "exact_match(ignore_punctuation=True, ignore_articles=True)"),
        metadata_fields=("turn",),
        licence=SEE_PAGE,
        citation="Reddy et al. 2019, arXiv:1808.07042",
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
        sampling=SHORT,
        metrics=tuple(
            InstructionFollowing(level=level, loose=loose)
            for loose in (False, True)
            for level in ("prompt", "instruction")
        ),
        protocol_source="Zhou et al. 2023, arXiv:2311.07911, with a larger budget than lm-eval's 1,280 tokens",
        reference_field="reference",
        licence="Apache-2.0",
        citation="Zhou et al. 2023, arXiv:2311.07911",
    ),
)
