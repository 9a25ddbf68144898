"""A protocol: everything that decides a benchmark's figure, as data.

A figure can be compared with a published one only if prompt, examples, budget, sampling, attempts, extraction and metrics are
the published ones. A benchmark says them once; a run keeps them in its manifest, and says where it was run otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Literal

from themis.core.entities import SamplingConfig
from themis.exceptions import ConfigurationError
from themis.presets.fields import Row, RowMap

Scoring = Literal["generate", "loglikelihood"]
# Of a row and its filled prompt: what is scored by its log-probability, as [context, continuation] each.
Continuations = Callable[[Row, str], Sequence[Sequence[str]]]

# The source of a protocol that is our own.
OWN = "themis"


@dataclass(frozen=True, kw_only=True)
class FewShot:
    """Worked examples that stand before the question: how many, which, and how they are written.

    Args:
        count: How many; 0 for a protocol without examples, of which `--shots` can ask for some.
        split: The split of the benchmark's own dataset, at the same revision, that they come from.
        rows: The examples themselves, in place of a split.
        reply: Text over an example's fields: how it is answered. In one text it follows the example's question at once.
        question: Text over an example's fields: how it is asked; by default as the row is.
        row: Makes an example's fields from the split's raw row; by default as for the benchmark's own rows.
        group: A field: a row is shown examples of its own group only, such as its `category`.
        seed: Of the draw; None takes the first ones, in the split's order.
        introduction: Text over the row's fields that stands before the examples, and before the question where there are none.
        separator: What stands between two examples, and before the question.
        as_messages: As turns of a chat, in place of one text.

    >>> FewShot(count=5, split="train", reply=" {answer}").count
    5
    """

    count: int
    reply: str
    split: str = ""
    rows: Sequence[Row] = ()
    question: str | None = None
    row: RowMap | None = field(default=None, compare=False)
    group: str | None = None
    seed: int | None = None
    introduction: str = ""
    separator: str = "\n\n"
    as_messages: bool = False

    def __post_init__(self) -> None:
        if isinstance(self.count, bool) or not isinstance(self.count, int) or self.count < 0:
            raise ConfigurationError(
                f"the number of examples (shots) is a whole number of at least 0, got {self.count!r}"
            )
        if bool(self.split) == bool(self.rows):
            raise ConfigurationError("examples come from a split or are rows: give one of the two")


@dataclass(frozen=True, kw_only=True)
class Protocol:
    """A benchmark's whole recipe: what decides its figure, and who published that.

    Args:
        benchmark: Its name.
        version: Counts up whenever anything below changes a figure.
        source: Where these settings were published (a paper, a repository); `themis` where they are our own.
        dataset: Where the rows come from: name, configuration and revision.
        split: Which of its splits is asked.
        prompt: How a row is asked.
        system_prompt: What the model is told before.
        few_shot: The examples; None for none.
        sampling: Temperature, top_p, token budget and stop.
        attempts: Answers drawn for each row.
        reducer: How they become one score; `average` where there are several.
        extractor: What reads the answer.
        metrics: All the published numbers, by name.
        aggregation: How a metric's scores become one number, for those where it is no mean.
        scoring: `generate`, or `loglikelihood`: options are scored by their log-probabilities.
        licence: The dataset's.
        citation: The dataset's.

    >>> from themis.presets import get_benchmark_preset
    >>> protocol = get_benchmark_preset("aime24").protocol
    >>> protocol.sampling.max_tokens, protocol.metrics
    (32768, ('numeric',))
    """

    benchmark: str
    version: str = "1"
    source: str = OWN
    dataset: str = ""
    split: str = ""
    prompt: str = ""
    system_prompt: str | None = None
    few_shot: FewShot | None = None
    sampling: SamplingConfig = field(default_factory=SamplingConfig)
    attempts: int = 1
    reducer: str | None = None
    extractor: str = ""
    metrics: tuple[str, ...] = ()
    aggregation: tuple[tuple[str, str], ...] = ()
    scoring: Scoring = "generate"
    licence: str = ""
    citation: str = ""

    @property
    def shots(self) -> int:
        """How many examples stand before the question."""
        return 0 if self.few_shot is None else self.few_shot.count

    def to_dict(self) -> dict[str, object]:
        """As plain values, as a manifest holds it; what makes an example's fields is code, and left out.

        >>> Protocol(benchmark="sums", prompt="{question}").to_dict()["sampling"]["max_tokens"]
        512
        """
        told = asdict(self)
        if self.few_shot is not None:
            del told["few_shot"]["row"]
        told["sampling"]["stop"] = list(self.sampling.stop)
        return {**told, "metrics": list(self.metrics), "aggregation": dict(self.aggregation)}
