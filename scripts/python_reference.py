"""Writes docs/reference/python.md from the docstrings of the public names: `make docs`."""

from __future__ import annotations

import ast
import dataclasses
import enum
import functools
import importlib
import inspect
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "python.md"

INTRODUCTION = """\
# Python

Every public name, by the package it is imported from. Written by `make docs` from the docstrings: `help(themis.evaluate)` shows
the same. The tests run the examples, each in an empty folder with the names of its own module imported, without a key or the
internet.

Most programs need [evaluate](#themisevaluate), what it returns ([ExperimentReport](#themiscoreentitiesexperimentreport)), a
[metric](#themismetric) or [provider](#themisregister_provider) of their own, and [compare_runs](#themiscomparisoncompare_runs).
"""


@dataclasses.dataclass(frozen=True)
class Section:
    """The public names of one module, under one heading of the page."""

    module: str
    about: str
    names: tuple[str, ...] = ()
    # Names that have pages of their own, or stand in another section.
    except_for: tuple[str, ...] = ()


SECTIONS = (
    Section(
        "themis",
        "The doors: one call for a run, and registries for what is yours. Errors stand [below](#themisexceptions).",
        except_for=(
            *("ConfigurationError", "DatasetError", "EvaluationError", "MetricError", "ProviderError", "StorageError"),
            *("ThemisError", "ToolError", "__version__"),
        ),
    ),
    Section("themis.api", "What stands behind the doors, for runs of either kind.", ("resume", "perform")),
    Section(
        "themis.experiments",
        "Many runs asked for as one: see [experiment files](../guides/experiment-files.md). `run_experiment`, "
        "`plan_experiment` and `ExperimentSpecification` are in [`themis`](#themis).",
        (
            "load_experiment",
            "PlannedRun",
            "ExperimentPlan",
            "RunPlan",
            "ExperimentResult",
            "RunResult",
            "EndedRun",
            "Watch",
        ),
    ),
    Section(
        "themis.config.specification",
        "What a run was asked to be; arguments, files, options and stored runs all become one of these.",
        ("Specification", "SampleSpecification", "MemorySpecification", "load_specification"),
    ),
    Section("themis.interfaces", "What your own provider, metric or extractor has to offer."),
    Section(
        "themis.core.entities",
        "The data that passes through a run, from the task to the report. Providers and metrics make the first ones, "
        "programs read the last ones.",
        except_for=("EvaluationSummary",),
    ),
    Section(
        "themis.core.thresholds",
        "A metric's mean against a limit: see [where people work](../guides/where-people-work.md#pytest).",
        ("Measurement", "LimitCheck"),
    ),
    Section("themis.generation.templates", "Prompts.", ("PromptTemplate",)),
    Section(
        "themis.generation.tools",
        "Tools that models may call: see [their guide](../guides/tools.md).",
        ("Toolset", "ToolSession", "Tool", "McpServer"),
    ),
    Section("themis.core.messages", "What a tool returns that has more to say than a value.", ("ToolResult",)),
    Section(
        "themis.evaluation.metrics",
        "The metrics have [a page of their own](metrics.md); `themis.metric` and `themis.register_metric` add yours.",
        ("METRICS",),
    ),
    Section(
        "themis.evaluation.extractors",
        "The extractors have [a page of their own](extractors.md); `themis.extractor` and `themis.register_extractor` add yours.",
        ("EXTRACTORS", "FieldExtractionError"),
    ),
    Section("themis.evaluation.pipeline", "Extractor, metrics and attempts together.", ("EvaluationPipeline",)),
    Section("themis.evaluation.strategies", "How several attempts at one sample become one score."),
    Section(
        "themis.experiment.judge_audit",
        "What a judge accepts of right and wrong answers, and what its scores are worth: see [Judges](../guides/judging.md).",
        ("audit_judge", "audit_judgments", "JudgeAudit"),
    ),
    Section("themis.experiment.judgment_files", "Judgments made elsewhere.", ("read_judgments_file",)),
    Section(
        "themis.evaluation.judge_rates",
        "The same without a store: rates of judgments, and scores and differences corrected for them.",
        ("Judgment", "JudgeRates", "judge_rates", "correct_score", "corrected_difference"),
    ),
    Section("themis.evaluation.agreement", "Judges against people and each other.", ("calibrate", "agreement_of")),
    Section(
        "themis.comparison",
        "Whether two runs differ, on shared items. [Statistics](../guides/statistics.md) says which test to take.",
    ),
    Section(
        "themis.memory", "Memory runs: see [their guide](../guides/memory-benchmark.md) for how a conversation goes."
    ),
    Section(
        "themis.presets",
        "Benchmarks and datasets by name: see [the list](benchmarks.md). Those that register and look up are in "
        "[`themis`](#themis) too.",
        ("BenchmarkPreset", "FewShot", "Protocol", "fetch_benchmark", "read_rows"),
    ),
    Section(
        "themis.datasets",
        "Rows by name; what registers and lists them is in [`themis`](#themis) too.",
        ("create_dataset",),
    ),
    Section(
        "themis.providers",
        "Providers by name: see [their guide](../guides/providers.md). What registers and lists them is in [`themis`](#themis) "
        "too.",
        ("parse_model", "create_provider"),
    ),
    Section("themis.storage", "Where runs are kept."),
    Section("themis.backends.execution", "Where calls are made."),
    Section("themis.backends.storage", "The store as `evaluate(storage_backend=...)` takes it."),
    Section(
        "themis.experiment.export",
        "A report as files: see [export and share](../guides/export-and-share.md).",
        except_for=("export_html_report", "export_report_csv", "export_report_json", "export_summary_json"),
    ),
    Section(
        "themis.experiment.share",
        "A run in one picture: see [export and share](../guides/export-and-share.md#a-badge).",
        ("create_share_pack", "SharePack"),
    ),
    Section(
        "themis.experiment.manifest",
        "What a run was made from, and whether another one was made from the same: see "
        "[provenance](../guides/gates-and-provenance.md).",
    ),
    Section("themis.runs.observers", "Watching a run.", ("Observer", "RunStart", "Progress")),
    Section(
        "themis.integrations.trackers",
        "Trackers by name: see [their guide](../guides/trackers.md).",
        ("Tracker", "TRACKERS", "make_tracker"),
    ),
    Section("themis.integrations.wandb", "Weights & Biases.", ("WandbTracker",)),
    Section("themis.integrations.mlflow", "MLflow.", ("MlflowTracker",)),
    Section("themis.integrations.opentelemetry", "Traces for any collector.", ("OpenTelemetryTracker",)),
    Section("themis.integrations.huggingface", "The Hub.", ("HuggingFaceHubUploader",)),
    Section("themis.exceptions", "What can go wrong; all but the last derive from `ThemisError`."),
)


@dataclasses.dataclass(frozen=True)
class Entry:
    """One public name."""

    module: str
    name: str
    value: object

    @property
    def path(self) -> str:
        return f"{self.module}.{self.name}"


def read_entries(section: Section) -> list[Entry]:
    """The section's names: as listed, or all that the module offers, in the order of its source if they stand there."""
    module = importlib.import_module(section.module)
    names = list(section.names) or [name for name in module.__all__ if name not in section.except_for]
    _, tree = _module_source(section.module)
    lines = {node.name: node.lineno for node in tree.body if isinstance(node, ast.ClassDef | ast.FunctionDef)}
    if not section.names and lines.keys() >= set(names):
        names.sort(key=lines.__getitem__)
    return [Entry(section.module, name, getattr(module, name)) for name in names]


def render() -> str:
    """The whole page."""
    sections = [(section, read_entries(section)) for section in SECTIONS]
    parts = [INTRODUCTION, _contents(sections)]
    for section, entries in sections:
        parts += [f"## {section.module}\n", f"{section.about}\n", *map(_render_entry, entries)]
    return "\n".join(parts)


def _contents(sections: Sequence[tuple[Section, list[Entry]]]) -> str:
    rows = ["| package | names |", "|---|---|"]
    for section, entries in sections:
        names = ", ".join(f"[{entry.name}](#{_anchor(entry.path)})" for entry in entries)
        rows.append(f"| [`{section.module}`](#{_anchor(section.module)}) | {names} |")
    return "\n".join([*rows, ""])


def _anchor(heading: str) -> str:
    """As forges make it from a heading."""
    return re.sub(r"[^\w-]", "", heading.lower())


def _render_entry(entry: Entry) -> str:
    value = entry.value
    heading = f"### {entry.path}\n"
    if inspect.isclass(value):
        return "\n".join([heading, *_render_class(entry.name, value)])
    if inspect.isroutine(value):
        return "\n".join([heading, *_render_function(entry.name, value)])
    return "\n".join([heading, *_render_constant(entry)])


# --- reading ----------------------------------------------------------------------------------------------------------


@dataclasses.dataclass
class Docstring:
    """A docstring by its parts, the texts as Markdown."""

    summary: str = ""
    body: list[str] = dataclasses.field(default_factory=list)
    arguments: dict[str, str] = dataclasses.field(default_factory=dict)
    returns: str = ""
    raises: dict[str, str] = dataclasses.field(default_factory=dict)
    examples: list[str] = dataclasses.field(default_factory=list)


_LONGEST_DEFAULT = 40
_LONGEST_CALL = 110
_HEADINGS = ("Args", "Attributes", "Returns", "Yields", "Raises", "Example")


def parse_docstring(text: str) -> Docstring:
    """The parts of a docstring in Google's style, with doctests."""
    found = Docstring()
    for heading, block in _blocks(inspect.cleandoc(text)):
        if heading in ("Args", "Attributes"):
            found.arguments |= _parse_terms(block)
        elif heading == "Raises":
            found.raises |= _parse_terms(block)
        elif heading in ("Returns", "Yields"):
            found.returns = _join(block)
        elif block.startswith(">>>"):
            found.examples.append(block)
        elif not found.summary:
            found.summary = _join(block)
        else:
            found.body.append(block if _is_preformatted(block) else _join(block))
    return found


def _blocks(text: str) -> Iterator[tuple[str, str]]:
    """Paragraphs, each with the heading that it stands under, if any."""
    heading = ""
    for block in re.split(r"\n\s*\n", text):
        first, _, rest = block.partition("\n")
        if first.rstrip().removesuffix(":") in _HEADINGS and first.rstrip().endswith(":"):
            heading = first.strip()[:-1]
            if rest:
                yield heading, inspect.cleandoc("\n" + rest)
        elif heading and block.startswith("    "):
            yield heading, inspect.cleandoc("\n" + block)
        else:
            heading = ""
            yield "", block


def _parse_terms(block: str) -> dict[str, str]:
    """`name: text` by name, where a text goes on in indented lines."""
    terms = re.split(r"\n(?=\S)", block)
    parted = [term.partition(":") for term in terms]
    return {name.strip().lstrip("*"): _join(text) for name, _, text in parted}


def _join(text: str) -> str:
    return " ".join(text.split())


def _is_preformatted(block: str) -> bool:
    return block.startswith(("    ", "- "))


def read_docstring(value: object) -> Docstring:
    """What is written at a class or function; of a class its `__init__` too, and what its bases say of their fields."""
    found = parse_docstring(inspect.getdoc(value) or "")
    if not inspect.isclass(value):
        return found
    constructor = parse_docstring(vars(value).get("__init__", object).__doc__ or "")
    found.arguments = {**constructor.arguments, **found.arguments}
    found.raises = {**constructor.raises, **found.raises}
    for base in value.__mro__:
        if base.__module__.startswith("themis"):
            own = parse_docstring(base.__dict__.get("__doc__") or "").arguments
            found.arguments = {**_field_comments(base), **own, **found.arguments}
    return found


def _field_comments(kind: type) -> dict[str, str]:
    """The comments above the fields of a class, by field."""
    lines, tree = _class_source(kind)
    if tree is None:
        return {}
    nodes = [node for node in tree.body if isinstance(node, ast.AnnAssign | ast.Assign)]
    names = [node.target if isinstance(node, ast.AnnAssign) else node.targets[0] for node in nodes]
    comments = [_comment_above(lines, node.lineno) for node in nodes]
    return {name.id: text for name, text in zip(names, comments, strict=True) if isinstance(name, ast.Name) and text}


@functools.cache
def _class_source(kind: type) -> tuple[list[str], ast.ClassDef | None]:
    try:
        lines, tree = _module_source(kind.__module__)
    except (OSError, TypeError):
        return [], None
    found = [node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == kind.__name__]
    return lines, found[0] if found else None


@functools.cache
def _module_source(name: str) -> tuple[list[str], ast.Module]:
    text = inspect.getsource(importlib.import_module(name))
    return text.splitlines(), ast.parse(text)


def _comment_above(lines: Sequence[str], number: int) -> str:
    """The comment that ends on the line before the given one (lines are counted from 1)."""
    first = number - 1
    while first > 0 and lines[first - 1].strip().startswith("#"):
        first -= 1
    return _join(" ".join(line.strip().lstrip("#").strip() for line in lines[first : number - 1]))


@dataclasses.dataclass(frozen=True)
class Parameter:
    """One parameter, as the page shows it."""

    name: str
    type: str
    default: str | None


def read_parameters(value: object) -> list[Parameter]:
    """The parameters of a function, or of a class's constructor; none where it has only those of built-in types."""
    if inspect.isclass(value) and not _has_constructor(value):
        return []
    return [_read_parameter(one) for one in _signature(value).parameters.values() if one.name not in ("self", "cls")]


def _signature(value: object) -> inspect.Signature:
    """As Python shows it, but for factories of defaults, in place of which stands what they make."""
    signature = inspect.signature(value)
    if not dataclasses.is_dataclass(value):
        return signature
    made = {
        field.name: f"{field.default_factory.__name__}()"
        for field in dataclasses.fields(value)
        if field.default_factory is not dataclasses.MISSING
    }
    written = {"dict()": "{}", "list()": "[]", "tuple()": "()"}
    return signature.replace(
        parameters=[
            one.replace(default=_AsWritten(written.get(made[one.name], made[one.name]))) if one.name in made else one
            for one in signature.parameters.values()
        ]
    )


class _AsWritten(str):
    """A default that is shown as the text it is."""

    __slots__ = ()

    __repr__ = str.__str__


def _has_constructor(kind: type) -> bool:
    if issubclass(kind, enum.Enum) or getattr(kind, "_is_protocol", False):
        return False
    made_by = {"__init__", "__new__", "__struct_fields__"}
    owner = next(base for base in kind.__mro__ if made_by & base.__dict__.keys())
    return owner.__module__.startswith("themis")


def _read_parameter(one: inspect.Parameter) -> Parameter:
    stars = {one.VAR_POSITIONAL: "*", one.VAR_KEYWORD: "**"}.get(one.kind, "")
    kind = one.annotation if isinstance(one.annotation, str) else inspect.formatannotation(one.annotation)
    kind = "" if one.annotation is one.empty else re.sub(r"\b(?:[a-z_]\w*\.)+(?=[A-Z])", "", kind)
    return Parameter(stars + one.name, kind, None if one.default is one.empty else _format_default(one.default))


def _format_default(value: object) -> str:
    if inspect.isclass(value):
        return value.__name__
    text = repr(value.value) if isinstance(value, enum.Enum) else repr(value)
    return "…" if text.startswith("<") or len(text) > _LONGEST_DEFAULT else text


def read_methods(kind: type) -> Iterator[tuple[str, object]]:
    """The class's own public methods and properties, in the order of the source; not those that a base explains."""
    explained = {name for base in kind.__mro__[1:] for name, value in vars(base).items() if value.__doc__}
    for name, value in vars(kind).items():
        plain = value.__func__ if isinstance(value, classmethod | staticmethod) else value
        if name.startswith("_") or name in explained:
            continue
        if inspect.isfunction(plain) or isinstance(plain, property | functools.cached_property):
            yield name, plain


# --- writing ----------------------------------------------------------------------------------------------------------


def _render_function(name: str, value: Callable[..., object]) -> Iterator[str]:
    yield _call(name, value)
    yield from _render_docstring(read_docstring(value), read_parameters(value))


def _render_class(name: str, kind: type) -> Iterator[str]:
    written = read_docstring(kind)
    if read_parameters(kind):
        yield _call(name, kind)
    yield from _render_docstring(written, read_parameters(kind))
    if issubclass(kind, enum.Enum):
        yield _table(("value", "meaning"), [(f"`{one.value}`", written.arguments.get(one.name, "")) for one in kind])
    elif other := {
        field: text
        for field, text in written.arguments.items()
        if field not in {one.name.lstrip("*") for one in read_parameters(kind)}
    }:
        yield _table(("attribute", "meaning"), [(f"`{field}`", text) for field, text in other.items()])
    for method, value in read_methods(kind):
        yield from _render_method(name, method, value)


def _render_method(owner: str, name: str, value: object) -> Iterator[str]:
    written = read_docstring(value)
    is_property = not inspect.isfunction(value)
    parameters = [] if is_property else read_parameters(value)
    if not written.summary:
        return
    call = f"{owner}.{name}" if is_property else _format_call(f"{owner}.{name}", value)
    yield f"**`{call}`**: {written.summary}\n"
    yield from (f"{part}\n" for part in written.body)
    described = [(one, written.arguments.get(one.name.lstrip("*"), "")) for one in parameters]
    lines = [f"- `{_format_parameter(one)}`: {text}" for one, text in described if text]
    lines += [f"- raises `{error}`: {text}" for error, text in written.raises.items()]
    if written.returns:
        lines.append(f"- returns: {written.returns}")
    if lines:
        yield "\n".join([*lines, ""])
    yield from map(_fence, written.examples)


def _render_docstring(written: Docstring, parameters: Sequence[Parameter]) -> Iterator[str]:
    yield f"{written.summary}\n"
    yield from (f"{part}\n" for part in written.body)
    rows = [
        (f"`{one.name}`", _code(one.type), _code(one.default), written.arguments.get(one.name.lstrip("*"), ""))
        for one in parameters
    ]
    if rows:
        yield _table(("argument", "type", "default", "meaning"), rows)
    if written.returns:
        yield f"Returns: {written.returns}\n"
    if written.raises:
        yield _table(("raises", "when"), [(f"`{error}`", text) for error, text in written.raises.items()])
    yield from map(_fence, written.examples)


def _render_constant(entry: Entry) -> Iterator[str]:
    """What the comment above an assignment says, and the assignment where it is short."""
    for name in (entry.module, *_homes(entry)):
        lines, tree = _module_source(name)
        for node in tree.body:
            target = node.target if isinstance(node, ast.AnnAssign) else getattr(node, "targets", [None])[0]
            if (
                isinstance(target, ast.Name)
                and target.id == entry.name
                and isinstance(node, ast.Assign | ast.AnnAssign)
            ):
                text = "\n".join(lines[node.lineno - 1 : node.end_lineno])
                yield f"{_comment_above(lines, node.lineno)}\n"
                if text.count("\n") < 3:
                    yield f"```text\n{text}\n```\n"
                elif isinstance(entry.value, dict):
                    yield ", ".join(f"`{key}`" for key in entry.value) + "\n"
                return


def _homes(entry: Entry) -> list[str]:
    """The modules that a package takes its names from."""
    _, tree = _module_source(entry.module)
    package = vars(importlib.import_module(entry.module))
    lazy = [home.get(entry.name) for home in (package.get("_EXPORTS", {}), package.get("_HOMES", {}))]
    imported = [
        str(node.module)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and entry.name in [alias.name for alias in node.names]
    ]
    return [*filter(None, lazy), *imported]


def read_comment(entry: Entry) -> str:
    """What the page says of a public name that is neither class nor function."""
    return next(_render_constant(entry), "").strip()


def _call(name: str, value: object) -> str:
    return f"```text\n{_format_call(name, value)}\n```\n"


def _format_call(name: str, value: object) -> str:
    """The call with its parameters; of many, only those that have no default."""
    signature = _signature(value)
    parameters = [one for one in signature.parameters.values() if one.name not in ("self", "cls")]
    written = [_format_parameter(_read_parameter(one)) for one in parameters]
    stars = [position for position, one in enumerate(parameters) if one.kind is one.KEYWORD_ONLY]
    if stars and not any(one.kind is one.VAR_POSITIONAL for one in parameters):
        written.insert(stars[0], "*")
        parameters.insert(stars[0], inspect.Parameter("star", inspect.Parameter.KEYWORD_ONLY))
    returns = signature.return_annotation
    told = f" -> {returns}" if isinstance(returns, str) and returns != "None" and not inspect.isclass(value) else ""
    kind = "class " if inspect.isclass(value) else ""
    whole = f"{kind}{name}({', '.join(written)}){told}"
    if len(whole) <= _LONGEST_CALL:
        return whole
    pairs = zip(parameters, written, strict=True)
    needed = [text for one, text in pairs if one.default is one.empty and one.kind is not one.VAR_KEYWORD]
    if needed[-1:] == ["*"]:
        needed.pop()
    return f"{kind}{name}({', '.join([*needed, '...'])}){told}"


def _format_parameter(one: Parameter) -> str:
    return one.name if one.default is None else f"{one.name}={one.default}"


def _code(text: str | None) -> str:
    return f"`{text}`" if text else ""


def _fence(example: str) -> str:
    return f"```pycon\n{example}\n```\n"


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table, without the columns that have nothing in them."""
    kept = [column for column in range(len(heads)) if any(row[column] for row in rows)]
    lines = [[heads[column] for column in kept], ["---"] * len(kept)]
    lines += [[row[column].replace("|", "\\|") for column in kept] for row in rows]
    return "\n".join([*(f"| {' | '.join(line)} |" for line in lines), ""])


if __name__ == "__main__":
    PAGE.parent.mkdir(parents=True, exist_ok=True)
    PAGE.write_text(render(), encoding="utf-8")
