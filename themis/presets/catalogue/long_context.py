"""Long contexts: documents of real tasks (LongBench), and texts that are made to a length (RULER)."""

from __future__ import annotations

from functools import partial

from themis.core.entities import SamplingConfig
from themis.presets.benchmarks import CatalogueBenchmark
from themis.presets.fields import Raw, mapped
from themis.presets.hub import HubDataset
from themis.presets.ruler import raw_rows

# What is asked of each LongBench task.
_ANSWER_SHORTLY = "Answer the question with as few words as possible, from the text alone."
_LONGBENCH = {
    "narrativeqa": ("Story", f"{_ANSWER_SHORTLY}\n\nQuestion: {{input}}"),
    "qasper": (
        "Article",
        f'{_ANSWER_SHORTLY} Reply "unanswerable" where it does not say, and "yes" or "no" to a question of that kind.'
        "\n\nQuestion: {input}",
    ),
    "multifieldqa_en": ("Text", f"{_ANSWER_SHORTLY}\n\nQuestion: {{input}}"),
    "hotpotqa": ("Passages", f"{_ANSWER_SHORTLY}\n\nQuestion: {{input}}"),
    "2wikimqa": ("Passages", f"{_ANSWER_SHORTLY}\n\nQuestion: {{input}}"),
    "musique": ("Passages", f"{_ANSWER_SHORTLY}\n\nQuestion: {{input}}"),
    "gov_report": ("Report", "Write a summary of the report on one page."),
    "qmsum": ("Transcript of a meeting", "Answer about the meeting in a few sentences.\n\nQuestion: {input}"),
    "multi_news": ("News", "Write a summary of all the news on one page."),
    "trec": ("Questions with their types", "Give the type of this question alone, as in the examples.\n\n{input}"),
    "triviaqa": ("Examples", "Answer shortly from the passage, as in the examples.\n\n{input}"),
    "samsum": ("Dialogues with their summaries", "Summarise this dialogue as in the examples.\n\n{input}"),
    "passage_count": (
        "Paragraphs",
        "Some paragraphs may stand there more than once. How many different ones are there? Reply with the number alone.",
    ),
    "passage_retrieval_en": (
        "Paragraphs",
        'Which paragraph is this a summary of? Reply as in "Paragraph 1".\n\nSummary: {input}',
    ),
    "lcc": ("Code", "Write the next line of the code, and nothing else."),
    "repobench-p": ("Code of several files", "Write the next line of the code, and nothing else.\n\n{input}"),
}


def _task(raw: Raw) -> str:
    return str(raw.get("subset") or raw["dataset"])


def _asked(raw: Raw) -> str:
    title, question = _LONGBENCH[_task(raw).removesuffix("_e")]
    # The question has another name in the layout of the converted dataset.
    asked = question.replace("{input}", str(raw.get("input", raw.get("question")) or ""))
    return f"{title}:\n\n{raw['context']}\n\n{asked}"


LONG_CONTEXT = (
    CatalogueBenchmark(
        name="longbench",
        description="Sixteen tasks over long English documents and code",
        source=HubDataset(
            dataset="Xnhyacinth/LongBench",
            configs=tuple(_LONGBENCH),
            split="test",
            revision="2e9ade51ebf45d98942056c0716234f9d5d257d5",
        ),
        raw_fields=("context", "answers"),
        row=mapped(
            asked=_asked,
            answer="answers",
            task=_task,
            all_classes=lambda raw: list(raw.get("all_classes") or ()),
        ),
        row_id="_id",
        prompt="{asked}",
        sampling=SamplingConfig(max_tokens=512),
        metrics=("longbench", "group_mean('longbench', field='task')"),
        metadata_fields=("task",),
        licence="MIT",
        citation="Bai et al. 2023, arXiv:2308.14508",
    ),
    *(
        CatalogueBenchmark(
            name=f"ruler-{length // 1024}k",
            description=f"Needles, variables and common words in {length // 1024}k tokens; generated",
            source=partial(raw_rows, length_tokens=length),
            raw_fields=("input", "outputs", "task"),
            row=mapped(input="input", answer=lambda raw: "; ".join(raw["outputs"]), task="task"),
            row_id="index",
            prompt="{input}",
            sampling=SamplingConfig(max_tokens=128),
            metrics=("parts_found", "group_mean('parts_found', field='task')"),
            metadata_fields=("task",),
            licence="MIT",
            citation="after Hsieh et al. 2024, arXiv:2404.06654",
        )
        for length in (4_096, 8_192, 16_384, 32_768, 65_536, 131_072)
    ),
)
