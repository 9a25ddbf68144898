"""Audits a judge: asks it about answers whose truth is known, and corrects the scores that it gave.

An audit is a sample run like any other. Its rows are made answers (`evaluation.audit_answers`), its model replies with them,
its one metric is the judge: so it is stored, resumed, budgeted and shown as every run is, and no verdict is paid for twice.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from themis.comparison.scores import find_metric, open_scores, open_store
from themis.config.specification import SampleSpecification, load_specification
from themis.core.codec import canonical_json, digest
from themis.core.entities import ExperimentReport, GenerationRecord
from themis.core.markup import escape_markdown, format_table
from themis.evaluation.agreement import Calibration, calibrate
from themis.evaluation.audit_answers import AuditItem, make_audit_answers
from themis.evaluation.judge_rates import CorrectedScore, JudgeRates, Judgment, Rate, correct_score, judge_rates
from themis.evaluation.judges import PairwiseJudge, RubricJudge, find_judges
from themis.evaluation.metrics import METRICS
from themis.evaluation.resolve import resolve_metric
from themis.exceptions import ConfigurationError, RunFailedError
from themis.experiment.assemble import assemble
from themis.interfaces import Metric
from themis.runs.judge_audits import (
    ACCEPTED_FROM,
    ANSWER,
    AUDITS,
    ITEM,
    KIND,
    TAG,
    TRUTH,
    identify_judge,
    read_judgments,
    stored_judge,
)
from themis.runs.lifecycle import run as run_driver
from themis.runs.observers import Observer
from themis.storage import DEFAULT_STORAGE, ExperimentStorage

__all__ = ["AuditedRun", "JudgeAudit", "audit_judge", "audit_judgments"]

_PROMPT, _REFERENCE, _ID = "audit_prompt", "audit_reference", "audit_id"
# What is said of tasks beside their rows' own fields.
_OF_TASKS = ("dataset_id", "manifest_hash", "attempts")
# Fields in which rows usually hold the question without what surrounds it.
_QUESTIONS = ("question", "query", "problem", "input")


@dataclass(frozen=True)
class AuditedRun:
    """A run's score by the audited judge, and corrected for the judge's errors.

    Args:
        run_id: The run.
        corrected: Its score by the judge and the corrected one; None where the judge did not score it.
        by_kind: The corrected score if all wrong answers of the run were of this kind.
        labelled: The same from people's labels of its items, where there are any.
        note: Why there is no corrected score, or what to know of it.
    """

    run_id: str
    corrected: CorrectedScore | None = None
    by_kind: Mapping[str, CorrectedScore] = field(default_factory=dict)
    labelled: Calibration | None = None
    note: str = ""


@dataclass(frozen=True)
class JudgeAudit:
    """How far a judge is to be trusted, and what that makes of runs' scores.

    Args:
        judge: The judge's metric.
        rates: Sensitivity and specificity with intervals, and what it accepts of each kind of answer.
        runs: The runs' scores, corrected.
        run_id: The audit itself in the store; None where its judgments came from a file.
        report: The report of that run; its `metadata["stopped"]` says why where not all answers were judged.
        notes: What to know of it, a sentence each.

    >>> judged = [Judgment(True, True, "reference")] * 20 + [Judgment(False, number < 6, "vague") for number in range(10)]
    >>> print(audit_judgments(judged).to_markdown().partition("\\n\\n")[0].replace("\\\\", ""))
    | answers | n | accepted | 95 % interval |
    |---|---:|---:|---|
    | right (sensitivity) | 20 | 1.0000 | [0.8316, 1.0000] |
    | reference | 20 | 1.0000 | [0.8316, 1.0000] |
    | wrong (1 - specificity) | 10 | 0.6000 | [0.2624, 0.8784] |
    | vague | 10 | 0.6000 | [0.2624, 0.8784] |
    """

    judge: str
    rates: JudgeRates
    runs: Sequence[AuditedRun] = ()
    run_id: str | None = None
    report: ExperimentReport | None = None
    notes: Sequence[str] = ()

    def to_dict(self) -> dict[str, object]:
        """Everything but the report, as JSON holds it."""
        rates = {**asdict(self.rates), "informedness": self.rates.informedness}
        return {
            "judge": self.judge,
            "run_id": self.run_id,
            "rates": rates,
            "runs": [asdict(run) for run in self.runs],
            "notes": list(self.notes),
        }

    def to_markdown(self) -> str:
        """Two tables: how the judge did, and the runs' scores."""
        parts = [format_table(("answers", "n", "accepted", "95 % interval"), self.rate_rows(), right=[1, 2])]
        if self.runs:
            parts.append(
                format_table(
                    ("run", "n", "judge's score", "corrected", "95 % interval", "how"), self.run_rows(), right=[1, 2, 3]
                )
            )
        return "\n\n".join([*parts, *map(escape_markdown, self.lines())])

    def lines(self) -> list[str]:
        """What to know of the runs' scores and of the audit."""
        return [*(f"{run.run_id}: {run.note}" for run in self.runs if run.note), *self.notes]

    def rate_rows(self) -> list[tuple[str, str, str, str]]:
        """What the judge accepts: of right answers, of wrong ones, and of each kind of them."""
        right, refused = self.rates.sensitivity, self.rates.specificity
        wrong = _complement(refused)
        kinds = self.rates.by_kind
        rows = [("right (sensitivity)", right), *((f"  {kind}", kinds[kind]) for kind in self.rates.right_kinds)]
        rows += [("wrong (1 - specificity)", wrong), *((f"  {kind}", kinds[kind]) for kind in self.rates.wrong_kinds)]
        return [(name, str(rate.n), _number(rate.value), _interval(rate.ci)) for name, rate in rows]

    def run_rows(self) -> list[tuple[str, str, str, str, str, str]]:
        """The runs' scores, as the judge gave them and corrected."""
        rows = []
        for run in self.runs:
            ways = [("for the judge's errors", run.corrected)]
            ways += [(f"if every wrong answer were {kind}", found) for kind, found in run.by_kind.items()]
            for how, found in ways:
                if found is not None:
                    rows.append(
                        (
                            run.run_id,
                            str(found.n),
                            _number(found.accepted),
                            _number(found.score),
                            _interval(found.ci),
                            how,
                        )
                    )
            if run.labelled is not None:
                told = run.labelled
                how = f"by {told.labelled} labels (prediction-powered)"
                mean = _number(told.corrected_mean)
                rows.append(
                    (run.run_id, str(told.judged), _number(told.judge_mean), mean, _interval(told.corrected_ci), how)
                )
        return rows


def audit_judge(
    run_ids: str | Sequence[str],
    *,
    storage: str | Path | ExperimentStorage = DEFAULT_STORAGE,
    metric: str | None = None,
    judge: str | Metric | None = None,
    n: int = 200,
    seed: int = 0,
    labels: Mapping[str, float] | None = None,
    budget_usd: float | None = None,
    workers: int = 4,
    observers: Sequence[Observer] = (),
) -> JudgeAudit:
    """Asks a judge about answers whose truth is known, and corrects the scores it gave for what it gets wrong.

    The answers are made from the references of stored runs: right ones in other words; wrong ones that stay on the topic (the
    value of another row, the contrary, nearly the right value, and vague ones that say nothing). The same call again goes on
    where it stopped, and asks nothing twice.

    Args:
        run_ids: Runs whose rows have references. Those that the judge has scored get their scores corrected.
        storage: Where they are kept; `.cache/experiments` by default.
        metric: The judge's metric in these runs; the one judge that they have by default.
        judge: The judge, where the store cannot make it again: an object, a metric as `rubric_judge(model='...')`, or the
            model of a judge without a rubric.
        n: How many answers to make at most, half of them right. 200 tell a rate to about 10 points.
        seed: Of the draws that make them.
        labels: People's labels of items of these runs, from 0 to 1: the scores are corrected by them, too.
        budget_usd: Never spend more than this on the audit.
        workers: Calls in flight at once.
        observers: Told of the audit's run while it goes on.

    Returns:
        Sensitivity and specificity with intervals, by kind of answer, and the corrected scores.

    Raises:
        ConfigurationError: It is not clear which judge is meant, or the rows have no references.
        MetricError: The judge gave no verdict on right answers, or on wrong ones.
        RunFailedError: The judge could not be asked.
        RunInterrupted: The user stopped it; everything finished is stored.

    >>> import themis
    >>> rows = [{"id": n, "question": f"What is {n} + {n}?", "answer": str(n + n)} for n in range(30)]
    >>> report = themis.evaluate(rows, model="fake/noisy-0.3", prompt="{question}", metrics=["includes"], run_id="sums",
    ...                          storage="runs", progress=False)
    >>> audit = audit_judge("sums", storage="runs", metric="includes", n=80)
    >>> audit.rates.sensitivity.value, audit.rates.by_kind["negation"].value
    (0.95, 1.0)
    """
    store = open_store(storage)
    names = [run_ids] if isinstance(run_ids, str) else list(run_ids)
    if not names:
        raise ConfigurationError("an audit needs at least one run whose rows have references")
    sources = _collect_items(store, names)
    chosen = _find_judge(store, names, metric, judge)
    if isinstance(chosen.metric, PairwiseJudge):
        raise ConfigurationError(
            f"{chosen.metric.name} prefers one answer to another; an audit is of judges that say right or wrong"
        )
    rows = _make_rows(sources, n, seed)
    asked = SampleSpecification(
        dataset=rows,
        model=f"fake/field-{ANSWER}",
        prompt=f"{{{_PROMPT}}}",
        reference_field=_REFERENCE,
        dataset_id_field=_ID,
        metrics=[chosen.written or chosen.metric],
        cluster_field=ITEM,
        run_id=f"judge-audit-{digest(chosen.identity, canonical_json(rows))[:12]}",
        experiment=AUDITS,
        tags={TAG: chosen.identity, "judge": chosen.metric.name},
        budget_usd=budget_usd,
        workers=workers,
    )
    try:
        report = run_driver(assemble(asked, store), store, observers)
    except RunFailedError as failed:
        if not any(found.count for found in failed.report.evaluation_report.metrics.values()):
            raise
        report = failed.report
    rates = judge_rates(read_judgments(store, report.run_id))
    runs = [_correct_run(store, name, chosen, rates, labels or {}) for name in names]
    return JudgeAudit(chosen.metric.name, rates, runs, report.run_id, report, _notes(rates))


def audit_judgments(
    judgments: Iterable[Judgment],
    *,
    judge: str = "judge",
    run_ids: Sequence[str] = (),
    metric: str | None = None,
    storage: str | Path | ExperimentStorage = DEFAULT_STORAGE,
    labels: Mapping[str, float] | None = None,
) -> JudgeAudit:
    """The same from judgments that were made elsewhere: nobody is asked and nothing is stored.

    Args:
        judgments: The judge's verdicts on answers whose truth is known.
        judge: What the judge is called.
        run_ids: Runs that the same judge has scored: their scores are corrected.
        metric: The judge's metric in those runs.
        storage: Where those runs are kept.
        labels: People's labels of items of those runs.

    >>> judged = [Judgment(True, True)] * 19 + [Judgment(True, False)]
    >>> judged += [Judgment(False, number < 63, "vague") for number in range(100)]
    >>> audit = audit_judgments(judged, judge="gpt-4o-mini")
    >>> audit.rates.by_kind["vague"].value
    0.63
    """
    rates = judge_rates(judgments)
    runs = []
    if run_ids:
        if metric is None:
            raise ConfigurationError("which of the runs' metrics is this judge? name it: metric (--metric)")
        store = open_store(storage)
        runs = [_correct_scores(store, name, metric, rates, labels or {}) for name in run_ids]
    return JudgeAudit(judge, rates, runs, notes=_notes(rates))


def _notes(rates: JudgeRates) -> list[str]:
    notes = []
    if rates.failed:
        notes.append(f"{rates.failed} answers got no verdict that could be read, and are in no share.")
    passing = {kind: rates.by_kind[kind].value for kind in rates.wrong_kinds if rates.by_kind[kind].n}
    if passing and rates.informedness > 0:
        worst = max(passing, key=lambda kind: passing[kind])
        notes.append(
            f"The correction takes the runs' wrong answers as the audit's: of those, {worst} ones are accepted most often "
            f"({passing[worst]:.0%})."
        )
    if rates.informedness <= 0:
        notes.append(
            "The judge accepts wrong answers as often as right ones: its scores say nothing, and none is corrected."
        )
    return notes


# --- which judge ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _ChosenJudge:
    """A judge, as the command line would write it where that is known, and what it is known by."""

    metric: Metric
    written: str | None
    identity: str


def _find_judge(
    store: ExperimentStorage, run_ids: Sequence[str], metric: str | None, judge: str | Metric | None
) -> _ChosenJudge:
    if isinstance(judge, str):
        is_metric = judge.partition("(")[0].strip() in METRICS
        made = resolve_metric(judge) if is_metric else RubricJudge(model=judge)
        written = judge if is_metric else f"rubric_judge(model={judge!r})"
        return _ChosenJudge(made, written, identify_judge(made))
    if judge is not None:
        made = resolve_metric(judge)
        return _ChosenJudge(made, None, identify_judge(made))
    return _judge_of_runs(store, run_ids, metric)


def _judge_of_runs(store: ExperimentStorage, run_ids: Sequence[str], metric: str | None) -> _ChosenJudge:
    """The judge that a run names in its specification."""
    for run_id in run_ids:
        loaded = load_specification(store.get_run(run_id))
        named = loaded.metrics if isinstance(loaded, SampleSpecification) else None
        written = [one for one in named or () if isinstance(one, str)]
        made = {resolved.name: (resolved, text) for text in written for resolved in (resolve_metric(text),)}
        names = list(made) if metric is not None else [name for name, (one, _) in made.items() if find_judges([one])]
        if metric is not None and made:
            names = [find_metric(metric, names, f"the metrics of {run_id!r}")]
        if len(names) == 1:
            found, text = made[names[0]]
            return _ChosenJudge(found, text, identify_judge(found))
        if len(names) > 1:
            raise ConfigurationError(f"run {run_id!r} has the judges {', '.join(names)}; name one by metric (--metric)")
    raise ConfigurationError(
        f"the store does not say how to make the judge of {', '.join(map(repr, run_ids))} again; name it by judge (--judge), as "
        "\"rubric_judge(model='openai/gpt-4o')\" or its model, or name another metric by metric (--metric)"
    )


# --- what is asked ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _SourceItem:
    item: AuditItem
    row: Mapping[str, Any]
    reference: object


def _collect_items(store: ExperimentStorage, run_ids: Sequence[str]) -> list[_SourceItem]:
    """Every question of the runs that has a reference that is text, each once."""
    found: dict[str, _SourceItem] = {}
    count = 0
    for run_id in run_ids:
        if (kind := store.get_run(run_id).kind) != "samples":
            raise ConfigurationError(f"run {run_id!r} is a {kind} run; an audit takes the rows of sample runs")
        for _, record in store.reader(run_id).records():
            count += 1
            references = _texts(record)
            if references:
                prompt = record.task.prompt.text
                key = digest(prompt, *references)
                item = AuditItem(str(record.task.metadata.get("dataset_id")), prompt, references, _topic(record))
                row = {name: value for name, value in record.task.metadata.items() if name not in _OF_TASKS}
                found.setdefault(key, _SourceItem(item, row, record.task.reference and record.task.reference.value))
    if not found:
        raise ConfigurationError(
            f"none of the {count} rows of {', '.join(map(repr, run_ids))} has a reference that is a text or a number; an audit "
            "makes its answers from references"
        )
    return list(found.values())


def _texts(record: GenerationRecord) -> tuple[str, ...]:
    value: Any = None if record.task.reference is None else record.task.reference.value
    if isinstance(value, Mapping):
        value = value.get("answer")
    accepted = value if isinstance(value, list | tuple) else [value]
    if not all(isinstance(one, str | int | float) for one in accepted):
        return ()
    said = ((str(one).lower() if isinstance(one, bool) else str(one)) for one in accepted)
    return tuple(text for text in said if text.strip())


def _topic(record: GenerationRecord) -> str:
    row = record.task.metadata
    return next((str(row[name]) for name in _QUESTIONS if isinstance(row.get(name), str)), "")


def _make_rows(sources: Sequence[_SourceItem], n: int, seed: int) -> list[dict[str, Any]]:
    if n < 2:
        raise ConfigurationError(f"an audit asks about at least two answers, a right and a wrong one; got n={n}")
    by_key = {str(number): source for number, source in enumerate(sources)}
    items = [replace(source.item, item_id=key) for key, source in by_key.items()]
    rows = []
    for number, answer in enumerate(make_audit_answers(items, n, seed=seed)):
        source = by_key[answer.item_id]
        rows.append(
            {
                **source.row,
                _ID: f"{number:05d}-{answer.kind.value}",
                _PROMPT: source.item.prompt,
                _REFERENCE: source.reference,
                ANSWER: answer.text,
                KIND: answer.kind.value,
                TRUTH: answer.kind.is_right,
                ITEM: source.item.item_id,
            }
        )
    return rows


# --- what becomes of scores -------------------------------------------------------------------------------------------


def _correct_run(
    store: ExperimentStorage, run_id: str, judge: _ChosenJudge, rates: JudgeRates, labels: Mapping[str, float]
) -> AuditedRun:
    reader = store.reader(run_id)
    name = judge.metric.name
    if reader.evaluation is None or name not in reader.metric_names(reader.evaluation):
        return AuditedRun(run_id, note=f"not scored by {name}: only its rows were used")
    if stored_judge(reader, reader.evaluation, name) != judge.identity:
        return AuditedRun(
            run_id, note=f"its {name} is another judge (model, rubric, sampling or code): rejudge it, or audit that one"
        )
    return _correct_scores(store, run_id, name, rates, labels)


def _correct_scores(
    store: ExperimentStorage, run_id: str, metric: str, rates: JudgeRates, labels: Mapping[str, float]
) -> AuditedRun:
    (scored,) = open_scores(store, [run_id])
    scores = scored.read(find_metric(metric, scored.metrics, f"the metrics of {run_id!r}"))
    accepted = [value >= ACCEPTED_FROM for value in scores.values.tolist()]
    share = Rate.of(accepted, scores.clusters)

    def corrected(specificity: Rate) -> CorrectedScore:
        return correct_score(share.count, share.n, rates.sensitivity, specificity, effective_n=share.effective_n)

    by_kind = {kind: corrected(_complement(rates.by_kind[kind])) for kind in rates.wrong_kinds}
    overall = corrected(rates.specificity)
    judged = dict(zip(scores.item_ids, scores.values.tolist(), strict=True))
    labelled = calibrate(judged, labels) if len(labels.keys() & judged.keys()) >= 2 else None
    note = overall.note
    if labels and labelled is None:
        note = "; ".join(filter(None, [note, "fewer than two of the labels are of its items"]))
    return AuditedRun(run_id, overall, by_kind if len(by_kind) > 1 else {}, labelled, note)


def _complement(rate: Rate) -> Rate:
    """The share of what is not counted: of the accepted ones those that were refused, and the other way round."""
    low, high = rate.ci
    return replace(rate, count=rate.n - rate.count, value=1 - rate.value, ci=(1 - high, 1 - low))


def _number(value: float) -> str:
    return "n/a" if math.isnan(value) else f"{value:.4f}"


def _interval(ci: tuple[float, float]) -> str:
    return f"[{ci[0]:.4f}, {ci[1]:.4f}]"
