"""The numbers of memory runs as a table for a pull request or a paper."""

from __future__ import annotations

from collections.abc import Sequence

from themis.experiment.export.as_tables import in_latex, in_markdown
from themis.memory.report.pages import agents_table, named_views
from themis.memory.report.view import RunView
from themis.memory.results import DatasetScore

__all__ = ["latex_table", "markdown_table"]


def markdown_table(views: Sequence[RunView]) -> str:
    """The summary of each run, then the score of each dataset."""
    columns, rows = agents_table(views)
    lines = [f"| agent | {' | '.join(column.lower() for column in columns)} |", f"|---|{'---:|' * len(columns)}"]
    lines += [f"| {in_markdown(name)} | {' | '.join(map(in_markdown, cells))} |" for name, cells in rows]
    names, by_dataset = _datasets(views)
    lines += ["", f"| dataset | {' | '.join(map(in_markdown, names))} |", f"|---|{'---:|' * len(names)}"]
    lines += [f"| {in_markdown(dataset)} | {' | '.join(cells)} |" for dataset, cells in by_dataset]
    return "\n".join([*lines, ""])


def latex_table(views: Sequence[RunView]) -> str:
    """A `tabular` to \\input, datasets by agents; it uses the rules of the package booktabs."""
    names, by_dataset = _datasets(views)
    totals = [f"{view.summary.score:.2f} of {view.summary.max_score}" for view in views]
    lines = [
        "% needs \\usepackage{booktabs}",
        f"\\begin{{tabular}}{{l{'r' * len(names)}}}",
        r"\toprule",
        f"Dataset & {' & '.join(map(in_latex, names))} \\\\",
        r"\midrule",
        *(f"{in_latex(dataset)} & {' & '.join(map(in_latex, cells))} \\\\" for dataset, cells in by_dataset),
        r"\midrule",
        f"Score & {' & '.join(totals)} \\\\",
        r"\bottomrule",
        r"\end{tabular}",
    ]
    return "\n".join([*lines, ""])


def _datasets(views: Sequence[RunView]) -> tuple[list[str], list[tuple[str, list[str]]]]:
    named = named_views(views)
    scores = [{dataset.name: dataset for dataset in view.summary.datasets} for view in named]
    datasets = dict.fromkeys(name for found in scores for name in found)
    rows = [(name, [_cell(found.get(name)) for found in scores]) for name in datasets]
    return [view.name for view in named], rows


def _cell(dataset: DatasetScore | None) -> str:
    if dataset is None or dataset.interval is None:
        return "n/a"
    return f"{dataset.mean:.2f} [{dataset.interval[0]:.2f}, {dataset.interval[1]:.2f}]"
