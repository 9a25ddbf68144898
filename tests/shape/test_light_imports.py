"""`import themis` and `themis --help` load nothing that costs: no package of others, and of ours only what is needed."""

import json
import subprocess
import sys

import pytest

HEAVY = {"numpy", "scipy", "sqlalchemy", "aiohttp", "rich", "jinja2", "msgspec", "yaml", "asyncio", "rs_bpe", "pandas"}
LOADED = "import json, sys; json.dump(sorted({name.partition('.')[0] for name in sys.modules}), sys.stderr)"


def loaded_after(program: str) -> set[str]:
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(json.loads(done.stderr))


@pytest.fixture(scope="module")
def before() -> set[str]:
    """What the environment's own hooks load at every start."""
    return loaded_after(LOADED)


def test_importing_themis_loads_no_other_package(before):
    new = loaded_after(f"import themis; {LOADED}") - before

    assert new & HEAVY == set()
    assert {name for name in new if name not in sys.stdlib_module_names} == {"themis"}


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["no-such-command"]])
def test_the_command_line_needs_only_click_to_explain_itself(before, arguments):
    program = (
        "import sys, io; from themis.cli import main; kept = sys.stderr; sys.stderr = io.StringIO()\n"
        f"try: main({arguments})\n"
        f"except SystemExit: sys.stderr = kept\n{LOADED}"
    )
    new = loaded_after(program) - before

    assert new & HEAVY == set()
    assert {name for name in new if name not in sys.stdlib_module_names} == {"themis", "click"}


def test_a_run_of_rows_that_asks_nobody_over_http_loads_no_client_for_it_and_no_benchmarks_or_memory_runs():
    program = (
        "import json, sys, tempfile, themis\n"
        "with tempfile.TemporaryDirectory() as folder:\n"
        "    rows = [{'id': '1', 'question': '1?', 'answer': '1'}]\n"
        "    themis.evaluate(rows, model='fake/perfect', prompt='{question}', storage=folder, progress=False)\n"
        "json.dump(sorted(sys.modules), sys.stderr)"
    )
    loaded = loaded_after(program)

    assert loaded & {"aiohttp", "themis.presets.catalogue", "themis.memory", "scipy", "pandas"} == set()
