"""The report of an experiment as a file: one self-contained page, Markdown, or JSON."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from themis.comparison.pages import forest_plot
from themis.core.codec import json_bytes
from themis.core.files import atomic_write
from themis.core.markup import escape_markdown, format_table
from themis.core.registry import nearest
from themis.exceptions import ConfigurationError
from themis.experiments.results import ExperimentResult, Table

__all__ = ["check_output", "experiment_page", "experiment_text", "write_result"]


def experiment_page(result: ExperimentResult) -> str:
    """The report with a forest plot of differences for each dataset and metric."""
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

    environment = Environment(
        # The style sheet and the plot are those of every comparison.
        loader=ChoiceLoader([PackageLoader("themis.experiments"), PackageLoader("themis.comparison")]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    sections = []
    for table in result.tables():
        numeric = [index for index in range(len(table.columns)) if _is_numeric(table, index)]
        sections.append(
            {"table": table, "plot": forest_plot(table.plotted) if table.plotted else None, "numeric": numeric}
        )
    return environment.get_template("experiment.html").render(result=result, sections=sections)


def _is_numeric(table: Table, column: int) -> bool:
    cells = [row[column] for row in table.rows]
    return bool(cells) and all(not cell or cell[0] in "0123456789+-–[$<n" for cell in cells) and column > 0


def experiment_text(result: ExperimentResult) -> str:
    """The report as Markdown, for a pull request."""
    lines = [f"# {escape_markdown(result.name)}", "", f"{escape_markdown(result.headline())}.", ""]
    lines += [f"- {escape_markdown(problem)}" for problem in result.problems()]
    for table in result.tables():
        lines += ["", f"## {escape_markdown(table.title)}", "", format_table(table.columns, table.rows), ""]
        lines += [f"- {escape_markdown(note)}" for note in table.notes]
    return "\n".join([*lines, "", *(f"- {escape_markdown(note)}" for note in result.notes()), ""])


_WRITERS: dict[str, Callable[[ExperimentResult], bytes]] = {
    ".html": lambda result: experiment_page(result).encode("utf-8", "backslashreplace"),
    ".md": lambda result: experiment_text(result).encode("utf-8", "backslashreplace"),
    ".json": lambda result: json_bytes(result.to_dict(), indent=2),
}


def check_output(path: str) -> None:
    """Raises where no report can be written to a file of that name."""
    suffix = Path(path).suffix.lower()
    if suffix not in _WRITERS:
        raise ConfigurationError(
            f"a report is written as {', '.join(_WRITERS)}, got {path!r}{nearest(suffix, list(_WRITERS))}"
        )


def write_result(result: ExperimentResult, path: str) -> None:
    """Writes the report in the form that the file's name ends with.

    Args:
        result: The report.
        path: A `.html`, `.md` or `.json` file.

    Raises:
        ConfigurationError: It ends otherwise.
    """
    check_output(path)
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path) as file:
        file.write(_WRITERS[Path(path).suffix.lower()](result))
