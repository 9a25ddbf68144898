"""What a script itself says of the conversation that it held."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from themis.core.entities import MetricScore, ModelOutput
from themis.exceptions import MetricError
from themis.interfaces import Metric, Row


@dataclass
class ScriptGrade(Metric):
    """The grade that a sample's script gave (`evaluate(..., script=...)`), with its reasons.

    Args:
        name: What the scores are reported as.

    >>> held = ModelOutput("43", raw={"grade": {"score": 1.0, "reasons": ["named the shoe size"]}})
    >>> ScriptGrade().compute(prediction="43", references=[], metadata={"model_output": held}).value
    1.0
    """

    name: str = "ScriptGrade"
    requires_reference = False
    requires_answer = False
    reads_output = True
    score_range = (0.0, 1.0)

    def compute(self, *, prediction: object, references: Sequence[object], metadata: Row | None = None) -> MetricScore:
        output = (metadata or {}).get("model_output")
        raw = output.raw if isinstance(output, ModelOutput) else None
        grade = raw.get("grade") if isinstance(raw, Mapping) else None
        if isinstance(output, ModelOutput) and output.stopped_by:
            raise MetricError(f"the script was not played to its end: stopped by {output.stopped_by}")
        if not isinstance(grade, Mapping):
            raise MetricError(f"{self.name} needs a script: evaluate(..., script=function) or --script FILE.py:NAME")
        if grade.get("score") is None:
            raise MetricError(f"the script gave no grade: {'; '.join(map(str, grade.get('reasons', ())))}")
        return MetricScore(self.name, float(grade["score"]), {"reasons": list(grade.get("reasons", ()))})
