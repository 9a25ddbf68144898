"""The documentation is true: the command line's page is the command line's, and every block of Python runs."""

import functools
import importlib.util
import os
import pkgutil
import re
import subprocess
import sys

import pytest

from tests.shape.tree import PROJECT

PAGES = sorted([PROJECT / "README.md", *(PROJECT / "docs").rglob("*.md")])
# A block that cannot run offline has this comment on the line above it.
NOT_RUN = "<!-- no-run -->"
BLOCK = re.compile(r"^```python\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL)

# Each page is one program: its blocks share their names, and an error shows the line of the page.
PROGRAM = """
import sys
page, *places = sys.argv[1:]
lines = open(page, encoding="utf-8").read().splitlines(keepends=True)
names = {"__name__": "__main__"}
for place in places:
    first, last = map(int, place.split("-"))
    code = "\\n" * first + "".join(lines[first:last])
    exec(compile(code, page, "exec"), names)
"""


def blocks(text: str) -> list[tuple[int, int]]:
    """(line before the first, last line) of every block that is to run."""
    found = []
    for match in BLOCK.finditer(text):
        before = text[: match.start()].rstrip("\n").rpartition("\n")[2].strip()
        if before != NOT_RUN:
            first = text[: match.start("code")].count("\n")
            found.append((first, first + match["code"].count("\n")))
    return found


# Pages that need more than an empty directory, and the tests that follow them.
FOLLOWED = {"docs/guides/countdown-tutorial.md": "tests/contract/countdown.py"}
WITH_CODE = [
    page
    for page in PAGES
    if str(page.relative_to(PROJECT)) not in FOLLOWED and blocks(page.read_text(encoding="utf-8"))
]


@pytest.mark.parametrize("page", WITH_CODE, ids=lambda page: str(page.relative_to(PROJECT)))
def test_the_python_of_a_page_runs(page, tmp_path):
    places = [f"{first}-{last}" for first, last in blocks(page.read_text(encoding="utf-8"))]

    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(page), *places],
        cwd=tmp_path,
        env={**os.environ, "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )

    assert done.returncode == 0, done.stderr[-3_000:]


@pytest.mark.parametrize("page", FOLLOWED)
def test_a_page_that_is_not_run_here_is_followed_elsewhere(page):
    follower = PROJECT / FOLLOWED[page]

    assert page.rpartition("/")[2] in follower.read_text(encoding="utf-8")


def test_a_block_is_found_with_its_lines_and_left_out_when_marked():
    page = (
        f"# Title\n\n```python\na = 1\nb = 2\n```\n\n{NOT_RUN}\n```python\nraise SystemExit\n```\n\n```bash\nls\n```\n"
    )

    assert blocks(page) == [(3, 5)]


@pytest.mark.parametrize(
    "name", ["cli_reference", "completion_table", "fault_table", "lm_eval_table", "python_reference"]
)
def test_a_page_that_is_written_by_a_script_is_up_to_date(name):
    # In a process of its own: what other tests have registered here is in nobody's page.
    program = f"import {name} as script; print(script.PAGE.read_text('utf-8') == script.render())"
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, cwd=PROJECT / "scripts", capture_output=True, text=True, check=True)

    assert done.stdout == "True\n", "run `make docs`"


def test_every_row_of_the_table_of_faults_is_what_its_test_asserts():
    rows = list(load_script("fault_table").read_faults())
    # "–": nothing of a run or of a command comes to an end there.
    promised = [(row, {"status", "exit_code"} - {name for name in row if row[name] in (None, "–")}) for row in rows]

    assert [row["test"] for row, fields in promised if not fields <= row["uses"]] == []


def load_script(name):
    spec = importlib.util.spec_from_file_location(name, PROJECT / "scripts" / f"{name}.py")
    # Data classes look their module up there.
    script = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    return script


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(PROJECT)))
def test_links_between_pages_lead_somewhere(page):
    targets = [target for target in re.findall(r"\]\(([^)\s]+)\)", prose(page)) if "://" not in target]

    assert [target for target in targets if not leads_somewhere(page, target)] == []


def test_every_page_is_reached_from_another():
    reached = {
        (page.parent / target.partition("#")[0]).resolve()
        for page in PAGES
        for target in re.findall(r"\]\(([^)\s#]+)", prose(page))
        if "://" not in target
    }

    assert [page.name for page in PAGES if "docs" in page.parts and page.resolve() not in reached] == []


def leads_somewhere(page, target):
    name, _, anchor = target.partition("#")
    there = page.parent / name if name else page
    return there.exists() and (not anchor or anchor in anchors(there))


@functools.cache
def anchors(page):
    """What a forge lets links lead to: the headings, in small letters, with dashes for spaces."""
    titles = re.findall(r"^#+ (.+)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


def prose(page):
    return re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)


def test_every_type_that_the_concepts_name_exists():
    page = (PROJECT / "docs" / "concepts.md").read_text(encoding="utf-8")
    cells = [row.strip("|").split("|") for row in re.findall(r"^\| .+ \|$", page, re.MULTILINE)]
    named = [name for cell in cells for name in re.findall(r"`([\w.]+)`", cell[2])]
    lost = []
    for name in named:
        try:
            pkgutil.resolve_name(f"themis.{name}")
        except (ImportError, AttributeError):
            lost.append(name)

    assert len(named) > 30
    assert lost == []
