"""The one-method contracts between Themis and the code of its users.

A provider executes, a metric computes, an extractor extracts, an agent replies. Everything built in is written
against these too.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Mapping, Sequence
from typing import ClassVar, Protocol, TypeAlias, runtime_checkable

from themis.core.entities import GenerationRecord, GenerationTask, MetricScore

__all__ = ["Extractor", "Metric", "Row", "StatelessTaskExecutor"]

# The fields of a dataset row by name, whatever their values are.
Row: TypeAlias = dict[str, object]


class StatelessTaskExecutor(ABC):
    """A provider: takes a task, returns the record of what the model answered.

    `execute` may be a plain method (called from `workers` threads) or `async def` (all calls share one event loop).
    It may raise, or return a record with an error: both are failures of the world and are tried again when that makes
    sense. The constructor receives the provider options as keywords. A provider that knows log-probabilities of given texts
    has a method `score_continuations(task)` too, sync or async like `execute`, which is called for rows with `continuations`
    (`themis.core.continuations`).

    >>> from themis.core.entities import ModelOutput
    >>> class Echo(StatelessTaskExecutor):
    ...     def __init__(self, *, suffix=""):
    ...         self.suffix = suffix
    ...     def execute(self, task):
    ...         return GenerationRecord(task, ModelOutput(task.prompt.text + self.suffix), error=None)
    >>> import themis
    >>> themis.register_provider("echo", Echo)
    >>> rows = [{"word": "ab", "answer": "ab!"}]
    >>> themis.evaluate(rows, model="echo/any", prompt="{word}", provider_options={"suffix": "!"}, run_id="e", progress=False)
    ExperimentReport(e: 1 samples; ExactMatch=1.0000)
    """

    # Only what is said decides the answer (the prompt, and a row's `system_prompt`, `messages` and `continuations`), not the
    # rest of the row: lets runs over other rows share cached answers.
    prompt_only: ClassVar[bool] = False
    # Returns at once and never blocks: called where it stands, without threads or deadlines.
    instant: ClassVar[bool] = False
    # Costs nothing to call, whatever the model is named.
    is_local: ClassVar[bool] = False

    @abstractmethod
    def execute(self, task: GenerationTask) -> GenerationRecord | Awaitable[GenerationRecord]:
        """The record of one call.

        Args:
            task: The prompt, the model, how to sample, and the row in `task.prompt.context`.
        """


class Metric(ABC):
    """Scores one extracted answer against its references.

    `references` is always a list: list and tuple references are spread, anything else is wrapped. `metadata` holds the
    row's other fields and `sample_id`. A subclass may be a dataclass; its parameters, its code and what that reads are part
    of the evaluation's fingerprint, so nothing that changed meets an old score. An attribute or method
    `__themis_identity__` stands for the parameters of an object that has no form of its own, such as a client.

    >>> class Shorter(Metric):
    ...     name = "Shorter"
    ...     score_range = (0, 1)
    ...     def compute(self, *, prediction, references, metadata=None):
    ...         return MetricScore(self.name, float(len(prediction) <= min(map(len, references))))
    >>> Shorter().compute(prediction="yes", references=["indeed"]).value
    1.0
    """

    name: str
    requires_reference: bool = True
    # Whether it needs what the extractor found. One that does not (a time) is computed of unreadable answers too.
    requires_answer: bool = True
    # False where less is better (a time, a distance), None for a measure that is neither good nor bad (a length).
    # Comparisons, gates and diffs go by it.
    higher_is_better: bool | None = True
    # The least and the most that a score can be, None for no limit on that side; None altogether where nobody has said.
    # A score outside is a failure of the metric, and intervals stay inside.
    score_range: tuple[float | None, float | None] | None = None
    # Whether a score says that the answer passed (1) or not (0) and nothing between. Reducers that count passed attempts
    # (pass@k, pass^k, any) refuse a metric that says False; of one that says nothing, a score between is a failure.
    pass_fail: bool | None = None
    # For a number over a run that is no mean of its items' scores (corpus BLEU, macro-F1): the name of an aggregation
    # (`themis.evaluation.aggregations`), which gets what each score's details hold under "statistics". An answer that
    # cannot be read is scored with the prediction None then, so that it counts in the sums.
    aggregation: str | None = None
    # Fields of a row that hold what is expected: functions, applications and programs that answer are not shown them.
    expected_fields: Sequence[str] = ()
    # Whether it looks at all that the model returned: `metadata["model_output"]` holds it then, with text and raw reply.
    reads_output: bool = False

    def check_machine(self) -> None:  # noqa: B027 -- most metrics need nothing of the machine
        """Raises where this machine cannot compute the metric; called once, before the first model call."""

    def check_row(  # noqa: B027 -- most metrics take what comes
        self, references: Sequence[object], row: Mapping[str, object]
    ) -> None:
        """Raises where no answer to this row could be scored; called for every row, before the first model call.

        Args:
            references: As `compute` gets them.
            row: What `compute` gets as `metadata`.
        """

    @abstractmethod
    def compute(self, *, prediction: object, references: Sequence[object], metadata: Row | None = None) -> MetricScore:
        """The score of one answer.

        Args:
            prediction: What the extractor found; None where nothing could be read and `requires_answer` is False.
            references: The right answers, any of which will do.
            metadata: The row's other fields, `sample_id`, `prompt`, and `generation_time_ms` where it is known.

        Raises:
            MetricError: This sample cannot be scored; it counts as failed, never as zero.
        """


@runtime_checkable
class Extractor(Protocol):
    """Finds the answer in what the model said; raises `FieldExtractionError` where there is none.

    It is given the answer without reasoning, unless an attribute `part` asks for another part: `reasoning`, `transcript` (all
    that was said, with tool calls and what tools returned), `tool_calls` (a JSON list) or `everything`.

    >>> class FirstWord:
    ...     def extract(self, raw_output):
    ...         return raw_output.split()[0]
    >>> isinstance(FirstWord(), Extractor)
    True
    """

    def extract(self, raw_output: str) -> object:
        """The answer in the text: a string, a number, or what the metrics are to compare.

        Args:
            raw_output: What the model said, or the part of it that the extractor asks for.
        """
