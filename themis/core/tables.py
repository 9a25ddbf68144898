"""Tables as text: Markdown for a pull request, LaTeX for a paper. What stands in a cell stays text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Literal

from themis.core.escaping import escape_control

Style = Literal["markdown", "latex"]

_LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    **{character: f"\\{character}" for character in "&%$#_{}"},
}
_RULES = {"left": "---", "right": "---:"}


class Raw(str):
    """A cell that is markup already, such as a formula."""


def format_table(
    columns: Sequence[str],
    rows: Iterable[Sequence[str]],
    style: Style = "markdown",
    *,
    right: Iterable[int] = (),
    footer: Sequence[str] | None = None,
) -> str:
    r"""A table, without a line feed at its end.

    Args:
        columns: The heads of the columns.
        rows: One text a column each. Texts are escaped, but for those that are `Raw`.
        style: `markdown`, or `latex`: a `tabular` that needs `\usepackage{booktabs}`.
        right: The places of the columns that stand at the right, as numbers do.
        footer: A last row, which LaTeX divides from the others by a rule.

    >>> print(format_table(["metric", "mean"], [["a|b", "0.5000"]], right=[1]))
    | metric | mean |
    |---|---:|
    | a\|b | 0.5000 |
    """
    sides = ["right" if place in set(right) else "left" for place in range(len(columns))]
    escape = escape_markdown if style == "markdown" else escape_latex
    head, *lines = ([cell if isinstance(cell, Raw) else escape(cell) for cell in row] for row in (columns, *rows))
    last = [] if footer is None else [[cell if isinstance(cell, Raw) else escape(cell) for cell in footer]]
    if style == "markdown":
        rule = f"|{'|'.join(_RULES[side] for side in sides)}|"
        return "\n".join([_markdown_row(head), rule, *map(_markdown_row, [*lines, *last])])
    return "\n".join(
        [
            rf"\begin{{tabular}}{{{''.join(side[0] for side in sides)}}}",
            r"  \toprule",
            _latex_row(head),
            r"  \midrule",
            *map(_latex_row, lines),
            *([r"  \midrule", *map(_latex_row, last)] if last else []),
            r"  \bottomrule",
            r"\end{tabular}",
        ]
    )


def escape_markdown(text: str) -> str:
    """Text that stays text: no markup, no HTML, no second table cell, no second line."""
    text = re.sub(r"([\\`*_{}\[\]()#|~!])", r"\\\1", escape_control(" ".join(text.split())))
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def escape_latex(text: str) -> str:
    # A paper's fonts have no letters for control characters.
    plain = escape_control(" ".join(text.split()), replacement="?")
    return "".join(_LATEX.get(character, character) for character in plain)


def _markdown_row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _latex_row(cells: Sequence[str]) -> str:
    return f"  {' & '.join(cells)} \\\\"
