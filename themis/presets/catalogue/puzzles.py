"""What is made here: sums to see that everything works, and Countdown puzzles without end."""

from __future__ import annotations

from functools import partial

from themis.evaluation.extractors.countdown import CountdownExpressionExtractor
from themis.evaluation.metrics.countdown import CountdownValidity
from themis.presets.benchmarks import CatalogueBenchmark
from themis.presets.catalogue.sources import SHORT
from themis.presets.countdown import DIFFICULTIES, puzzle_rows, raw_puzzles
from themis.presets.fields import mapped
from themis.presets.loading import sample_rows

PUZZLES = (
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
            sampling=SHORT,
            metrics=(CountdownValidity,),
            reference_field="reference",
            metadata_fields=("numbers", "target"),
            licence="MIT",
            citation="Themis",
        )
        for difficulty in (None, *DIFFICULTIES)
    ),
)
