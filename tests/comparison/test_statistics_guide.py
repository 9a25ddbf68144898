"""The guide's examples run as they stand and print what it says they print."""

import re
from pathlib import Path

import pytest

from themis.comparison.power import PairedProportions

GUIDE = (Path(__file__).parents[2] / "docs" / "guides" / "statistics.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", GUIDE, flags=re.DOTALL)


@pytest.mark.parametrize("block", BLOCKS, ids=range(len(BLOCKS)))
def test_an_example_prints_what_its_comments_promise(block, capsys):
    exec(compile(block, "statistics.md", "exec"), {"__name__": "guide"})

    printed = capsys.readouterr().out
    promised = re.findall(r"\)\n# (.*)", block)
    for line in promised:
        pattern = re.escape(line).replace(re.escape("..."), r"\d*")
        assert re.search(f"^{pattern}$", printed, flags=re.MULTILINE), f"{line!r} is not in {printed!r}"


def test_the_guides_table_of_items_is_computed():
    rows = re.findall(r"^\| (\d+) % \| ([\d,]+) \| ([\d,]+) \| ([\d,]+) \| ([\d,]+) \|$", GUIDE, flags=re.MULTILINE)

    assert len(rows) == 3
    for share, *needed in rows:
        for difference, items in zip((0.01, 0.02, 0.05, 0.1), needed, strict=True):
            plan = PairedProportions(discordant=int(share) / 100).required_n(difference=difference)
            assert plan.n == int(items.replace(",", ""))
