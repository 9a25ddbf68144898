"""A score knows what made it: an edit that could change it makes it again, any other edit does not.

Every line of the tables is done for real: a user's files are written and loaded, a run is evaluated, one file is edited and
loaded again, and the same run is evaluated once more. A score was made again where the run has another evaluation.
"""

import importlib
import itertools
import linecache
import logging
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import themis
from themis.core.codec import canonical_json, fingerprint
from themis.core.entities import GenerationRecord, ModelOutput
from themis.core.identity import describe_object
from themis.exceptions import ConfigurationError
from themis.interfaces import StatelessTaskExecutor
from themis.storage import ExperimentStorage

ROWS = [{"id": "a", "q": "1 + 1", "answer": "2"}, {"id": "b", "q": "2 + 2", "answer": "4"}]

# The files of a user, with a metric for each way in which code depends on something.
PROJECT = Path(__file__).parent / "shop"

METRICS, HELPERS, SETTINGS, LATE, BUILD, MORE, MIXINS = (
    f"shop/{name}.py" for name in ("metrics", "helpers", "settings", "late", "build", "more", "mixins")
)

EVEN = "def even(n):\n    return True if n == 0 else odd(n - 1)\n\n\n"
ODD = "def odd(n):\n    return False if n == 0 else even(n - 1)\n\n\n"
FLOOR, CEILING = '"floor": 0.1', '"ceiling": 0.9'

# metric, file, what is replaced, by what
MAKES_SCORES_AGAIN = {
    "a global": ("Global", METRICS, "LIMIT = 0.25", "LIMIT = 0.3"),
    "an int that becomes a float": ("Global", METRICS, "LIMIT = 0.25", "LIMIT = 0"),
    "a config dict": ("Config", METRICS, '"floor": 0.1', '"floor": 0.2'),
    "the order of a dict that is gone through": ("Rules", METRICS, '"first": "a", "second": "b"', '"second": "b", "first": "a"'),
    "a set": ("Rules", METRICS, '{"yes", "no"}', '{"yes", "never"}'),
    "a date": ("Values", METRICS, "date(2026, 1, 1)", "date(2026, 1, 2)"),
    "a decimal": ("Values", METRICS, 'Decimal("1.50")', 'Decimal("1.51")'),
    "a path": ("Values", METRICS, "data/words.txt", "data/other.txt"),
    "one number of an array": ("Values", METRICS, "[1.0, 2.0, 3.0]", "[1.0, 2.0, 4.0]"),
    "bytes": ("Values", METRICS, 'b"abc"', 'b"abd"'),
    "deep inside a value": ("Values", METRICS, '{"min": 2}', '{"min": 3}'),
    "a namespace's attribute": ("Values", METRICS, "SimpleNamespace(limit=0.5)", "SimpleNamespace(limit=0.6)"),
    "a field of a dataclass": ("Values", METRICS, "Policy(tolerance=0.02)", "Policy(tolerance=0.03)"),
    "a method of a value's class": ("Values", METRICS, "difference <= self", "difference < self"),
    "a helper's helper": ("Helped", HELPERS, "text.strip()", "text.strip().lower()"),
    "a list that a helper's helper reads": ("Helped", HELPERS, '["kg", "cm"]', '["kg"]'),
    "a regular expression in another module": ("Helped", HELPERS, "[.,]", "[.,;]"),
    "a regular expression's flags": ("Helped", HELPERS, 're.compile(r"[.,]")', 're.compile(r"[.,]", re.I)'),
    "an attribute of an imported module": ("Dotted", SETTINGS, "THRESHOLD = 0.5", "THRESHOLD = 0.6"),
    "a value that a module imports from a third": ("Dotted", SETTINGS, '"exact": 0.7', '"exact": 0.8'),
    "which member of an enum": ("Dotted", SETTINGS, "MODE = Mode.STRICT", "MODE = Mode.LAX"),
    "the value of an enum's member": ("Dotted", SETTINGS, 'STRICT = "strict"', 'STRICT = "exact"'),
    "what a function imports when it runs": ("Late", LATE, "LATE = 0.1", "LATE = 0.2"),
    "what a module has that is imported late": ("Late", "shop/deep/inner.py", "DEPTH = 3", "DEPTH = 4"),
    "a class attribute": ("Attribute", METRICS, "LIMIT * 2", "LIMIT * 3"),
    "a global behind a class attribute": ("Attribute", METRICS, "LIMIT = 0.25", "LIMIT = 0.3"),
    "how a cache begins that holds a setting": ("Counting", METRICS, 'CACHE = {"limit": 0.5}', 'CACHE = {"limit": 0.6}'),
    "what the constructor keeps of its arguments": ("given", BUILD, "m.Given(0.5)", "m.Given(0.6)"),
    "a global in a default of a keyword": ("Spelled", METRICS, "LIMIT = 0.25", "LIMIT = 0.3"),
    "a default that is written out": ("Spelled", METRICS, "step=2", "step=3"),
    "a base class": ("Global", METRICS, "score(self.judge", "1 - score(self.judge"),
    "a cached function": ("Cached", METRICS, "len(text) > LIMIT", "len(text) >= LIMIT"),
    "what a cached function reads": ("Cached", METRICS, "LIMIT = 0.25", "LIMIT = 0.3"),
    "a decorator": ("Decorated", METRICS, "max(limit, function", "min(limit, function"),
    "a decorator's argument": ("Decorated", METRICS, "FLOOR = 0.0", "FLOOR = 0.1"),
    "a static method": ("Decorated", METRICS, "return 1\n\n    @property", "return 3\n\n    @property"),
    "what a function closes over": ("closure", BUILD, "make_metric(0.5)", "make_metric(0.6)"),
    "an argument of a partial": ("partial", BUILD, "tolerance=1", "tolerance=2"),
    "a function behind a partial": ("partial", METRICS, "<= tolerance", "< tolerance"),
    "a plain function": ("plain", METRICS, 'len(prediction) > CONFIG["floor"]', 'len(prediction) > 2 * CONFIG["floor"]'),
    "one of two functions that call each other": ("plain", METRICS, "False if n == 0", "None if n == 0"),
    "a lambda in a list": ("Lambdas", METRICS, "lambda p: p > 2]", "lambda p: p > 3]"),
    "an inner object's default": ("Composed", METRICS, "Policy(0.5))", "Policy(0.6))"),
}  # fmt: skip

KEEPS_SCORES = {
    "nothing": ("Values", METRICS, "", ""),
    "a comment": ("Global", METRICS, "# Closer than the limit.", "# Closer than the limit, that is."),
    "a comment that goes": ("Global", METRICS, "        # Closer than the limit.\n", ""),
    "a docstring": ("Global", METRICS, '"""Within the limit."""', '"""Within the limit, or at it."""'),
    "a docstring that goes": ("Global", METRICS, '        """Within the limit."""\n', ""),
    "the module's docstring": ("Global", METRICS, "Metrics of the shop.", "What the shop measures."),
    "lines above": ("Global", METRICS, "LIMIT = 0.25", "\n\n\nLIMIT = 0.25"),
    "blanks and brackets": ("Global", METRICS, "return len(prediction) * LIMIT > 0", "return (len( prediction )*LIMIT) > 0"),
    "quotes": ("Config", METRICS, 'CONFIG["floor"] < 1', "CONFIG['floor'] < 1"),
    "how a number is written": ("Global", METRICS, "LIMIT = 0.25", "LIMIT = 25e-2"),
    "a function that nobody calls": ("Global", METRICS, "return 1\n\n\ndef score", "return 2\n\n\ndef score"),
    "a class that nobody uses": ("Global", METRICS, "CONFIG[\"floor\"] < 1", "CONFIG[\"floor\"] < 2"),
    "a global that it does not read": ("Global", METRICS, '"floor": 0.1', '"floor": 0.2'),
    "another attribute of an imported module": ("Dotted", SETTINGS, "UNRELATED = 1", "UNRELATED = 2"),
    "a function beside a helper": ("Helped", HELPERS, "text.upper()", "text.lower()"),
    "another value beside a late import": ("Late", "shop/deep/inner.py", "OTHER = 4", "OTHER = 5"),
    "the order of a dict that is looked up by key": ("Config", METRICS, f"{FLOOR}, {CEILING}", f"{CEILING}, {FLOOR}"),
    "the order of a set": ("Rules", METRICS, '{"yes", "no"}', '{"no", "yes"}'),
    "the order of two functions": ("plain", METRICS, EVEN + ODD, ODD + EVEN),
    "what the code itself counts": ("Counting", METRICS, "calls = 0\n    seen", "calls = 0\n\n    seen"),
    "the size of a cache": ("Cached", METRICS, "lru_cache(maxsize=16)", "lru_cache(  maxsize=16  )"),
    "a counter that a closure keeps": ("closure", METRICS, "nonlocal calls\n", "nonlocal calls  # counted\n"),
    "how an object was built": ("given", BUILD, "m.Given(0.5)", "m.Given(limit=1 / 2)"),
}  # fmt: skip

# Written when the code was done, and not touched since: what it had not been made for.
MAKES_SCORES_AGAIN_UNSEEN = {
    "a function in a table of functions": ("Many", MORE, "text.isdigit()", "text.isdecimal()"),
    "which function a table has": ("Many", MORE, '"numbers": rule_of_numbers', '"numbers": rule_of_words'),
    "one way of a function that goes by type": ("Many", MORE, "return len(value)", "return len(value) + 1"),
    "the other way": ("Many", MORE, "return 0\n", "return 1\n"),
    "a callable object's parameter": ("Many", MORE, "Checker(1)", "Checker(2)"),
    "a callable object's code": ("Many", MORE, ">= self.least", "> self.least"),
    "a coroutine": ("Asked", MORE, 'text + "!"', 'text + "?"'),
    "a generator": ("Asked", MORE, 'split(",")', 'split(";")'),
    "the end of a long text": ("Asked", MORE, "Say yes or no.", "Say yes, or no."),
    "a context manager": ("Kept", MORE, "weight * 2", "weight * 3"),
    "a context manager's default": ("Kept", MORE, "weight=1", "weight=2"),
    "a named tuple": ("Kept", MORE, "Span(0, 1)", "Span(0, 2)"),
    "a table of pandas": ("Kept", MORE, "[1, 2, 3], index", "[1, 2, 4], index"),
    "the index of a table": ("Kept", MORE, '"a", "b", "c"', '"a", "b", "d"'),
    "a fraction": ("Kept", MORE, "Fraction(1, 3)", "Fraction(1, 4)"),
    "a range": ("Kept", MORE, "range(0, 10, 2)", "range(0, 10, 3)"),
    "what a default dict gives": ("Kept", MORE, "lambda: 1)", "lambda: 2)"),
    "a module that is looked into by name": ("Dynamic", SETTINGS, "THRESHOLD = 0.5", "THRESHOLD = 0.6"),
    "an attribute of a class of options": ("Dynamic", MORE, "scale = 2", "scale = 4"),
    "deep in an attribute of a class": ("Dynamic", MORE, '{"limit": 1}', '{"limit": 2}'),
    "the object of a bound method": ("Dynamic", METRICS, "Policy(tolerance=0.02)", "Policy(tolerance=0.03)"),
    "a partial of a built-in function": ("Dynamic", MORE, "partial(max, 3)", "partial(max, 4)"),
    "a partial's built-in function": ("Dynamic", MORE, "partial(max, 3)", "partial(min, 3)"),
    "a name that came with a star": ("Starred", SETTINGS, "THRESHOLD = 0.5", "THRESHOLD = 0.6"),
    "a mixin in another file": ("Mixed", MIXINS, "round(value, DIGITS)", "round(value, DIGITS + 1)"),
    "a constant that a mixin reads": ("Mixed", MIXINS, "DIGITS = 2", "DIGITS = 3"),
    "a cached property": ("Mixed", MORE, "max(self.levels", "min(self.levels"),
    "a public attribute": ("Mixed", MORE, '"high": 2', '"high": 3'),
    "the order of a public attribute": ("Mixed", MORE, '"low": 1, "high": 2', '"high": 2, "low": 1'),
    "a keyword of a class": ("Keyworded", MORE, "scale=3", "scale=5"),
    "what a class does with its subclasses": ("Keyworded", MORE, "cls.scale = scale", "cls.scale = scale + 1"),
    "a global in the default of a lambda": ("Keyworded", SETTINGS, "THRESHOLD = 0.5", "THRESHOLD = 0.6"),
    "a method that was put in from outside": ("Patched", MORE, "return settings.UNRELATED", "return -settings.UNRELATED"),
    "what such a method reads": ("Patched", SETTINGS, "UNRELATED = 1", "UNRELATED = 2"),
}  # fmt: skip

KEEPS_SCORES_UNSEEN = {
    "when it was made": ("Mixed", MORE, "", ""),
    "a cache that is filled": ("Kept", MORE, "", ""),
    "what is done when run as a script": ("Many", MORE, "print(Many())", "print(Many().name)"),
    "an import more": ("Many", MORE, "import asyncio\n", "import asyncio\nimport abc\n"),
    "a constant more": ("Many", MORE, "MEMO = {}\n", "MEMO = {}\nMORE = 1\n"),
    "a metric more": ("Many", MORE, "class Asked(Base):", "class Fresh(Base):\n    limit = 1\n\n\nclass Asked(Base):"),
    "how a text is cut into lines": ("Asked", MORE, 'lenient with words, and never', 'lenient with words," " and never'),
    "a docstring of a mixin's": ("Mixed", MIXINS, "class Rounded:\n", 'class Rounded:\n    """Rounds."""\n\n'),
    "a comment of a base class": ("Mixed", METRICS, "raise NotImplementedError", "raise NotImplementedError  # abstract"),
    "pass after a docstring": ("Mixed", MORE, '"""Rounds."""\n', '"""Rounds."""\n\n    pass\n'),
    "where a mixin stands in its file": ("Mixed", MIXINS, "DIGITS = 2\n", "OTHER = 1\nDIGITS = 2\n\n\ndef other(): ...\n"),
    "another way of a table that is not its own": ("Asked", MORE, "text.isdigit()", "text.isdecimal()"),
}  # fmt: skip


class Shop:
    """A user's files, the store they evaluate into, and how often scores were made."""

    def __init__(self, folder: Path, store: Path) -> None:
        self.folder, self.store = folder, store
        shutil.copytree(PROJECT, folder / "shop")

    def edit(self, name: str, old: str, new: str) -> None:
        file = self.folder / name
        text = file.read_text()
        assert old in text, f"{old!r} is not in {name}"
        file.write_text(text.replace(old, new, 1))

    def load(self, name: str):
        for loaded in [one for one in sys.modules if one.partition(".")[0] == "shop"]:
            del sys.modules[loaded]
        importlib.invalidate_caches()
        return importlib.import_module(name)

    def evaluate(self, metric, run_id: str, **options) -> int:
        """The number of the run's evaluation after another call."""
        themis.evaluate(
            ROWS, model="fake/perfect", metrics=metric and [metric], run_id=run_id, storage=self.store, progress=False,
            **{"prompt": "{q}", **options},
        )  # fmt: skip
        reader = ExperimentStorage(self.store).reader(run_id)
        return reader.list_evaluations()[-1].evaluation


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return tmp_path_factory.mktemp("store")


@pytest.fixture
def shop(tmp_path, store, monkeypatch):
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield Shop(tmp_path, store)
    for loaded in [one for one in sys.modules if one.partition(".")[0] == "shop"]:
        del sys.modules[loaded]


def is_scored_again(shop: Shop, metric: str, file: str, old: str, new: str, run_id: str) -> bool:
    before = shop.evaluate(shop.load("shop.build").build(metric), run_id)
    shop.edit(file, old, new)
    return shop.evaluate(shop.load("shop.build").build(metric), run_id) != before


def identity(value: object) -> str:
    return fingerprint(describe_object(value))


def named(edit: str) -> str:
    return re.sub(r"\W+", "-", edit)


@pytest.mark.parametrize("edit", [*MAKES_SCORES_AGAIN, *MAKES_SCORES_AGAIN_UNSEEN])
def test_an_edit_that_could_change_a_score_makes_it_again(shop, edit):
    change = {**MAKES_SCORES_AGAIN, **MAKES_SCORES_AGAIN_UNSEEN}[edit]

    assert is_scored_again(shop, *change, run_id=f"again-{named(edit)}")


@pytest.mark.parametrize("edit", [*KEEPS_SCORES, *KEEPS_SCORES_UNSEEN])
def test_an_edit_that_cannot_change_a_score_keeps_it(shop, edit):
    change = {**KEEPS_SCORES, **KEEPS_SCORES_UNSEEN}[edit]

    assert not is_scored_again(shop, *change, run_id=f"kept-{named(edit)}")


@pytest.mark.parametrize("metric", ["Counting", "Cached", "Mixed", "given", "closure", "Values"])
def test_what_code_keeps_for_itself_while_it_scores_does_not_make_scores_again(shop, metric):
    built = shop.load("shop.build").build(metric)

    assert len({shop.evaluate(built, f"state-{metric}") for _ in range(3)}) == 1


# --- what cannot be known ------------------------------------------------------------------------------------------------

CLIENT = """
import socket

from themis.core.entities import MetricScore


class Client:
    def __init__(self):
        self.connection = socket.socket()

    def ask(self, text):
        return len(text)


client = Client()
{hook}

def asked(prediction, reference):
    return client.ask(prediction) > 0
"""


def test_what_cannot_be_known_is_named_and_judged_again_each_time(shop, caplog):
    (shop.folder / "shop/judge_tools.py").write_text(CLIENT.format(hook=""))
    metric = shop.load("shop.judge_tools").asked

    with caplog.at_level(logging.WARNING):
        first = shop.evaluate(metric, "unknown")
    assert shop.evaluate(metric, "unknown") > first

    said = [record.getMessage() for record in caplog.records if "judged anew" in record.getMessage()]
    assert len(said) == 2  # once a run
    assert "attribute `connection` of global `client` of module shop.judge_tools (socket.socket)" in said[0]
    assert "__themis_identity__" in said[0]
    described = ExperimentStorage(shop.store).reader("unknown").list_evaluations()[-1].config
    assert described["unknown"] == [
        "attribute `connection` of global `client` of module shop.judge_tools (socket.socket)"
    ]


def test_an_object_that_says_what_it_is_is_known_by_that(shop, caplog):
    def evaluate(version: str) -> int:
        text = CLIENT.format(hook=f'client.__themis_identity__ = "{version}"')
        (shop.folder / "shop/judge_tools.py").write_text(text)
        return shop.evaluate(shop.load("shop.judge_tools").asked, "hooked")

    with caplog.at_level(logging.WARNING):
        first, same, other = evaluate("one"), evaluate("one"), evaluate("two")

    assert first == same != other
    assert not caplog.records


def test_what_a_metric_holds_besides_is_known_by_a_method_that_says_so():
    class Model:
        def __init__(self, name):
            self.session, self.model_name = object(), name

        def __themis_identity__(self):
            return {"model": self.model_name}

    class Judge:
        def __init__(self, name):
            self.model = Model(name)

    assert describe_object(Judge("a"))["parameters"]["model"]["identity"] == {"model": "a"}
    assert describe_object(Judge("a")) == describe_object(Judge("a")) != describe_object(Judge("b"))


# --- what is judged, asked and extracted ----------------------------------------------------------------------------------


def test_an_extractor_is_known_by_what_its_code_reads(shop):
    def evaluate() -> int:
        return shop.evaluate("exact_match", "extractor", extractor=shop.load("shop.metrics").extract)

    before = evaluate()
    shop.edit(METRICS, "def extract(text):\n", "def extract(text):\n    # Up to the first.\n")
    assert evaluate() == before

    shop.edit(METRICS, 'SEPARATOR = "|"', 'SEPARATOR = ";"')
    assert evaluate() > before


PIPELINE = """
from themis.core.entities import EvaluationItem
from themis.evaluation.extractors import IdentityExtractor
from themis.evaluation.metrics import ExactMatch
from themis.evaluation.pipeline import EvaluationPipeline

FIELD = "answer"
SHARE = 1.0


class Strategy:
    def prepare(self, record):
        return [EvaluationItem(record, record.task.reference)]

    def aggregate(self, record, scores):
        return [score for score in scores if score.value <= SHARE]


class Pipeline(EvaluationPipeline):
    def judge(self, record):
        return super().judge(record)


def select(record):
    return record.task.metadata.get(FIELD, "2")


def build():
    return Pipeline(
        extractor=IdentityExtractor(),
        metrics=[ExactMatch()],
        strategy_resolver=lambda record: Strategy(),
        reference_selector=select,
    )
"""


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("SHARE = 1.0", "SHARE = 0.5"),
        ('FIELD = "answer"', 'FIELD = "other"'),
        ("return super().judge(record)", "return super().judge(record) or None"),
        ("if score.value <= SHARE", "if score.value < SHARE + 1"),
    ],
)
def test_a_pipeline_of_the_users_own_is_known_by_its_code(shop, old, new):
    def evaluate(text: str) -> int:
        (shop.folder / "shop/pipeline.py").write_text(text)
        pipeline = shop.load("shop.pipeline").build()
        return shop.evaluate(None, f"pipeline-{named(old)}", evaluation_pipeline=pipeline)

    assert old in PIPELINE
    before = evaluate(PIPELINE)
    assert evaluate(PIPELINE.replace("class Strategy:", "# Keeps all.\nclass Strategy:")) == before
    assert evaluate(PIPELINE.replace(old, new)) > before


PROMPT = """
from themis.generation.templates import PromptTemplate

INSTRUCTION = "Answer briefly."


class Told(PromptTemplate):
    def fill(self, row):
        return f"{INSTRUCTION} {super().fill(row)}"
"""


def test_a_prompt_that_code_fills_is_known_by_what_comes_out(shop):
    def evaluate(text: str) -> int:
        (shop.folder / "shop/prompts.py").write_text(text)
        return shop.evaluate("exact_match", "prompts", prompt=shop.load("shop.prompts").Told("told", "{q}"))

    before = evaluate(PROMPT)
    assert evaluate(PROMPT.replace("    def fill", "    # Says how first.\n    def fill")) == before
    with pytest.raises(ConfigurationError, match=r"prompt: stored '.* made by Told.*now '.* made by Told"):
        evaluate(PROMPT.replace("briefly", "at length"))


class Lenient(StatelessTaskExecutor):
    """A judge's model that counts how often it is asked."""

    calls = 0

    def execute(self, task):
        type(self).calls += 1
        return GenerationRecord(task, ModelOutput('{"verdict": "pass", "scores": {}}'), error=None)


JUDGE = """
from dataclasses import replace

from themis.evaluation.judges import RubricJudge

FACTOR = 1.0


class Mine(RubricJudge):
    def compute(self, *, prediction, references, metadata=None):
        score = super().compute(prediction=prediction, references=references, metadata=metadata)
        return replace(score, value=score.value * FACTOR)
"""


def test_a_judge_that_is_known_anew_judges_again_without_asking_again(shop):
    themis.register_provider("lenient", Lenient)

    def evaluate(text: str, **options) -> int:
        (shop.folder / "shop/judge.py").write_text(text)
        judge = shop.load("shop.judge").Mine(model="lenient:m", **options)
        return shop.evaluate(judge, "judged")

    before = evaluate(JUDGE)
    asked = Lenient.calls
    assert asked == len(ROWS)
    assert evaluate(JUDGE.replace("FACTOR = 1.0", "FACTOR = 0.5")) > before
    assert Lenient.calls == asked

    evaluate(JUDGE, instructions="Be strict.")
    assert Lenient.calls == 2 * asked


def test_a_secret_that_code_reads_is_stored_nowhere_and_decides_nothing(shop):
    def evaluate(key: str) -> int:
        text = f'API_KEY = "{key}"\n\n\ndef keyed(prediction):\n    return len(API_KEY) > 1\n'
        (shop.folder / "shop/keyed.py").write_text(text)
        return shop.evaluate(shop.load("shop.keyed").keyed, "keyed")

    assert evaluate("sk-old-0123456789") == evaluate("sk-new-9876543210")
    described = ExperimentStorage(shop.store).reader("keyed").list_evaluations()[-1].config
    assert "sk-" not in canonical_json(described)


# --- where code comes from -------------------------------------------------------------------------------------------------

SCRIPT = """
import sys

import themis

LIMIT = {limit}


def near(prediction, reference):
    return len(prediction) >= LIMIT


if __name__ == "__main__":
    rows = [{{"id": "a", "q": "1 + 1", "answer": "2"}}, {{"id": "b", "q": "2 + 2", "answer": "4"}}]
    themis.evaluate(
        rows, model="fake/perfect", prompt="{{q}}", metrics=[near], run_id="script", storage=sys.argv[1], progress=False
    )
"""


def test_a_script_and_the_module_it_is_make_the_same_scores(shop):
    def run(limit: int) -> int:
        (shop.folder / "script_of_a_user.py").write_text(SCRIPT.format(limit=limit))
        subprocess.run([sys.executable, "script_of_a_user.py", str(shop.store)], cwd=shop.folder, check=True)
        return ExperimentStorage(shop.store).reader("script").list_evaluations()[-1].evaluation

    first = run(1)
    assert shop.evaluate(shop.load("script_of_a_user").near, "script") == first
    assert run(2) > first
    del sys.modules["script_of_a_user"]


def typed(source: str, name: str, namespace: dict) -> object:
    """What a cell of a notebook defines: its text is known to `linecache` alone."""
    cell = f"<cell {next(CELLS)}>"
    linecache.cache[cell] = (len(source), None, source.splitlines(keepends=True), cell)
    exec(compile(source, cell, "exec"), namespace)
    return namespace[name]


CELLS = itertools.count()


def test_a_cell_of_a_notebook_is_known_by_its_text_and_what_it_reads():
    namespace = {"__name__": "__main__"}
    judge = "def judge(p):\n    {comment}\n    SEEN[p] = True\n    return len(p) > LIMIT\n"
    typed("LIMIT = 1\nSEEN = {}\n", "LIMIT", namespace)

    first = identity(typed(judge.format(comment="# one"), "judge", namespace))
    assert identity(typed(judge.format(comment="# two"), "judge", namespace)) == first
    namespace["SEEN"]["a"] = True
    assert identity(namespace["judge"]) == first
    typed("LIMIT = 2\n", "LIMIT", namespace)
    assert identity(namespace["judge"]) != first


def test_code_without_a_text_is_known_by_its_byte_code_and_says_so():
    def made(body: str) -> dict:
        namespace = {"__name__": "typed_in", "LIMIT": 1}
        exec(f'def judge(p):\n    """{body[:3]}."""\n    return {body}\n', namespace)
        return describe_object(namespace["judge"])

    assert made("p > LIMIT")["without_source"] == ["judge"]
    assert made("p > LIMIT") == made("p > LIMIT") != made("p < LIMIT")
    assert made("p > LIMIT")["reads"] == {"LIMIT": 1}


def test_a_file_that_was_edited_after_it_was_loaded_does_not_speak_for_what_runs(shop):
    loaded = shop.load("shop.metrics")
    before = describe_object(loaded.plain)
    shop.edit(METRICS, 'len(prediction) > CONFIG["floor"]', 'len(prediction) > 2 * CONFIG["floor"]')

    assert describe_object(loaded.plain)["without_source"] == ["plain"]
    assert identity(shop.load("shop.metrics").plain) not in (fingerprint(before), identity(loaded.plain))


def test_lines_above_that_were_added_after_loading_change_nothing(shop):
    loaded = shop.load("shop.metrics")
    before = identity(loaded.plain)
    shop.edit(METRICS, "# How close", "# More.\n\n# How close")

    assert identity(loaded.plain) == before


def test_functions_that_are_swapped_are_told_apart():
    def swapped(first, second):
        return lambda p: first(p) - second(p)

    def one(p):
        return 1

    def two(p):
        return 2

    assert identity(swapped(one, two)) != identity(swapped(two, one))
    assert identity(swapped(lambda p: 1, lambda p: 2)) != identity(swapped(lambda p: 2, lambda p: 1))
    assert identity(swapped(max, min)) != identity(swapped(min, max))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("from math import floor as cut", "from math import ceil as cut"),
        ("import math as cut", "import cmath as cut"),
        ("cut = max", "cut = min"),
        ("cut = int", "cut = float"),
        ("from statistics import mean as cut", "from numpy import mean as cut"),
        ("cut = 1", "cut = 1.0"),
        ("cut = True", "cut = 1"),
        ("cut = [1, 2]", "cut = {1, 2}"),
        ("cut = {1: 2}", "cut = {'1': 2}"),
        ("cut = 'a'", "cut = b'a'"),
    ],
)
def test_a_name_that_stands_for_something_else_is_noticed(one, other):
    def made(statement: str) -> str:
        namespace = {"__name__": "typed_in"}
        exec(statement, namespace)
        return identity(typed("def judge(p):\n    return cut.sqrt(p) if p else cut\n", "judge", namespace))

    assert made(one) == made(one) != made(other)


SNIPPETS = {
    "an attribute of a function": "def judge(p):\n    return judge.limit\n\n\njudge.limit = {}\n",
    "what is looked up in globals": "LIMIT = {}\n\n\ndef judge(p):\n    return globals()['LIMIT']\n",
    "what is evaluated": "LIMIT = {}\n\n\ndef judge(p):\n    return eval('LIMIT')\n",
    "a metaclass": (
        "class Meta(type):\n    def __call__(cls):\n        return {}\n\n\nclass Kind(metaclass=Meta):\n    pass\n\n\n"
        "def judge(p):\n    return Kind()\n"
    ),
    "a class of dicts": (
        "class Config(dict):\n    def limit(self):\n        return {}\n\n\nCONFIG = Config(a=1)\n\n\n"
        "def judge(p):\n    return CONFIG.limit()\n"
    ),
    "a class made by a function": (
        "def make(limit):\n    class Kind:\n        def score(self):\n            return limit\n    return Kind()\n\n\n"
        "KIND = make({})\n\n\ndef judge(p):\n    return KIND.score()\n"
    ),
    "what a module-level loop fills in": (
        "TABLE = {{}}\nfor n in range({}):\n    TABLE[n] = n\n\n\ndef judge(p):\n    TABLE[p] = p\n    return TABLE\n"
    ),
    "the default of a function in a function": (
        "LIMIT = {}\n\n\ndef judge(p):\n    def inner(q, most=LIMIT):\n        return most\n    return inner(p)\n"
    ),
    "a property's setter": (
        "class Kind:\n    @property\n    def size(self):\n        return self._size\n\n    @size.setter\n"
        "    def size(self, value):\n        self._size = value * {}\n\n\ndef judge(p):\n    kind = Kind()\n"
        "    kind.size = p\n    return kind.size\n"
    ),
}


def written(folder: Path, text: str) -> object:
    """The function `judge` of a file with this text."""
    folder.mkdir(exist_ok=True)
    file = folder / f"written_{next(CELLS)}.py"
    file.write_text(text)
    spec = importlib.util.spec_from_file_location("written", file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.judge


@pytest.mark.parametrize("name", SNIPPETS)
def test_what_is_read_in_a_roundabout_way_counts(name, tmp_path):
    one, same, other = (written(tmp_path, SNIPPETS[name].format(number)) for number in (1, 1, 2))

    assert "without_source" not in describe_object(one)
    assert identity(one) == identity(same) != identity(other)


def test_of_a_loop_that_fills_a_list_only_what_has_a_part_in_the_list_counts(tmp_path):
    text = (
        "KNOWN = []\nWORDS = ('a', '{word}')\n\n\ndef judge(p):\n    KNOWN.append(p)\n    return len(KNOWN)\n\n\n"
        "for place in range(2):\n    KNOWN.clear()\n    for word in WORDS:\n        if len(word) > {limit}:\n"
        "            continue\n        longer = word + '{end}'\n        KNOWN.append(longer)\n"
        "    started = {started}\n    report = [started, KNOWN]\n    for line in report:\n        started += 1\n"
    )

    def made(**changed: object) -> str:
        return identity(
            written(tmp_path, text.format(**{"word": "b", "limit": 1, "end": "!", "started": 1, **changed}))
        )

    assert made() == made(started=2)
    assert len({made(), made(word="c"), made(limit=2), made(end="?")}) == 4


def test_an_order_counts_if_one_of_two_functions_goes_through_it(tmp_path):
    text = (
        "RULES = {{{}}}\n\n\ndef look(p):\n    return RULES['a']\n\n\ndef walk(p):\n    return list(RULES)\n\n\n"
        "def judge(p):\n    return {}\n"
    )
    one, other = "'a': 1, 'b': 2", "'b': 2, 'a': 1"

    def made(rules: str, returned: str) -> str:
        return identity(written(tmp_path, text.format(rules, returned)))

    assert made(one, "look(p)") == made(other, "look(p)")
    assert made(one, "(walk(p), look(p))") != made(other, "(walk(p), look(p))")
    assert made(one, "(look(p), walk(p))") != made(other, "(look(p), walk(p))")


def test_a_project_in_another_folder_is_the_same(tmp_path):
    text = (
        "from pathlib import Path\n\nHERE = Path(__file__).parent\nWORDS = str(HERE / '{}')\n\n\n"
        "def judge(p):\n    judge.calls = getattr(judge, 'calls', 0) + 1\n    return HERE, WORDS\n"
    )
    here, there = (written(tmp_path / folder, text.format("words.txt")) for folder in ("here", "there"))
    here(1)

    assert identity(here) == identity(there) != identity(written(tmp_path / "here", text.format("other.txt")))


# --- our own metrics --------------------------------------------------------------------------------------------------------

DESCRIBE = """
from themis.core.codec import fingerprint
from themis.core.identity import describe_object
from themis.evaluation.resolve import resolve_metric
for name in ("exact_match", "f1", "numeric"):
    print(fingerprint(describe_object(resolve_metric(name))))
"""


def test_a_metric_of_ours_stays_what_it_is_when_its_file_changes_elsewhere(tmp_path):
    here = Path(themis.__file__).parent
    shutil.copytree(here, tmp_path / "themis", ignore=shutil.ignore_patterns("__pycache__", "static", "*.parquet"))
    file = tmp_path / "themis/evaluation/metrics/text.py"

    def describe() -> list[str]:
        command = [sys.executable, "-B", "-c", DESCRIBE]
        found = subprocess.run(
            command, cwd=tmp_path, capture_output=True, text=True, check=True, env=_environment(tmp_path)
        )
        return found.stdout.split()

    before, text = describe(), file.read_text()
    file.write_text(
        "# Texts.\n" + text.replace("class F1(", "class Fresh:\n    limit = 1\n\n\nclass F1(") + "\n\nEXTRA = 1\n"
    )
    assert describe() == before

    file.write_text(text.replace(r"\b(?:a|an|the)\b", r"\b(?:an|the)\b"))
    changed = describe()
    assert [one != other for one, other in zip(before, changed, strict=True)] == [True, True, False]


def _environment(folder: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(folder)}
