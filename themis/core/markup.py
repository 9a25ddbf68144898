"""Text that cannot act, as it is and in tables of Markdown or LaTeX.

What would be invisible, steer a terminal, reorder its surroundings or break an encoding is spelled out. HTML is the templates'
to escape; this is for the characters that HTML, Markdown and terminals let through, and for the cells of tables.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Sequence
from typing import Literal

# Controls, half characters, directional overrides, zero-width characters and tags.
_ACTIVE = (
    "[\x00-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)
_SYMBOLS = {code: chr(0x2400 + code) for code in range(0x20)} | {0x7F: "\u2421"}


def escape_control(text: str, *, keep: str = "\t\n", replacement: str | None = None) -> str:
    """Text whose control characters are shown instead of obeyed.

    Args:
        text: Anything, such as what a model has said.
        keep: Control characters that the surface takes as they are meant.
        replacement: What stands for each of the others, where the surface has no letters for them; by default each is
            spelled out.

    >>> escape_control("\\x1b[31mred \\u202etxt.exe")
    '␛[31mred ⟨U+202E⟩txt.exe'
    """

    def escape(match: re.Match[str]) -> str:
        code = ord(match[0])
        return replacement if replacement is not None else _SYMBOLS.get(code) or f"⟨U+{code:04X}⟩"

    return _pattern(keep).sub(escape, text.replace("\r\n", "\n"))


@functools.cache
def _pattern(keep: str) -> re.Pattern[str]:
    return re.compile(f"(?![{re.escape(keep)}]){_ACTIVE}" if keep else _ACTIVE)


# --- tables ------------------------------------------------------------------------------------------------------------

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


def truncate(text: str, longest: int) -> str:
    """The text, or its beginning with a mark where it is longer than this.

    Args:
        text: Anything.
        longest: The most characters, the mark included.

    >>> truncate("a long story", 7)
    'a long…'
    """
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


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
