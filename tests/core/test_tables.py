"""A cell of a table stays text, in Markdown and in LaTeX."""

from hypothesis import given
from hypothesis import strategies as st

from themis.core.markup import Raw, escape_latex, escape_markdown, format_table


@given(st.text())
def test_markdown_and_latex_stay_on_one_line_and_in_one_cell(text):
    markdown, latex = escape_markdown(text), escape_latex(text)
    assert "\n" not in markdown + latex
    assert "<" not in markdown
    assert all(markdown[n - 1] == "\\" for n, character in enumerate(markdown) if character == "|")
    assert not any(c in "&%$#" and (n == 0 or latex[n - 1] != "\\") for n, c in enumerate(latex))


@given(st.lists(st.lists(st.text(max_size=8), min_size=2, max_size=2), max_size=3))
def test_a_table_has_a_line_a_row_whatever_is_in_it(rows):
    assert format_table(["a", "b"], rows).count("\n") == 1 + len(rows)
    assert format_table(["a", "b"], rows, "latex").count("\\\\\n") == 1 + len(rows)


def test_latex_has_rules_sides_and_a_last_row():
    rows = [["50%", Raw("$p$")]]

    assert format_table(["what", "n"], rows, "latex", right=[1], footer=["sum", "2"]).splitlines() == [
        r"\begin{tabular}{lr}",
        r"  \toprule",
        r"  what & n \\",
        r"  \midrule",
        r"  50\% & $p$ \\",
        r"  \midrule",
        r"  sum & 2 \\",
        r"  \bottomrule",
        r"\end{tabular}",
    ]
