"""Writes the table of docs/guides/lm-eval.md that shows where our benchmarks differ from lm-eval's tasks: `make docs`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from lm_eval.tasks._yaml_loader import load_yaml

from themis.presets import get_benchmark_preset, list_benchmarks
from themis.presets.lm_eval.index import TaskIndex, load_index
from themis.presets.lm_eval.tasks import MAX_TOKENS, read_sampling

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "guides" / "lm-eval.md"
BEGIN, END = "<!-- from both catalogues: make docs -->", "<!-- end -->"
HEAD = "| Ours, lm-eval's | Asked | Shots | Tokens | Read by | Figures |\n|---|---|---|---|---|---|\n"
# Where the same rows have another name there.
NAMES = {
    "gpqa": "gpqa_main_zeroshot",
    "math500": "hendrycks_math500",
    "med_qa": "medqa_4options",
    "mmlu-pro": "mmlu_pro",
    "social_i_qa": "social_iqa",
    "truthfulqa": "truthfulqa_mc1",
}
_LONGEST = 44


def render() -> str:
    """The whole page, with its table made anew."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    after = rest.partition(END)[2]
    return f"{before}{BEGIN}\n\n{HEAD}" + "".join(f"{line}\n" for line in rows()) + f"\n{END}{after}"


def rows() -> Iterator[str]:
    """Two lines a benchmark that both have: ours, then lm-eval's."""
    index = load_index()
    for name in list_benchmarks():
        theirs = NAMES.get(name, name.replace("-", "_"))
        if theirs not in index.entries:
            continue
        protocol = get_benchmark_preset(name).protocol
        reader = "log-probabilities" if protocol.scoring == "loglikelihood" else f"`{protocol.extractor}`"
        yield _line(
            f"`{name}`", protocol.prompt, protocol.shots, protocol.sampling.max_tokens, reader, protocol.metrics
        )
        yield _their_line(theirs, first_config(index, theirs))


def first_config(index: TaskIndex, name: str) -> Mapping[str, Any]:
    """A task's configuration; of a group or tag that of its first task."""
    entry = index.find(name)
    if entry.kind == "tag":
        return first_config(index, entry.tasks[0])
    config = load_yaml(str(entry.path), resolve_func=False)
    if entry.kind != "group":
        return config
    first = config["task"][0]
    return first_config(index, first if isinstance(first, str) else first["task"])


def _their_line(name: str, config: Mapping[str, Any]) -> str:
    asked = config.get("doc_to_text", "")
    asked = "(code)" if not isinstance(asked, str) or asked.startswith("/") else asked
    scored = config.get("output_type", "generate_until") != "generate_until"
    filters = [f"`{one['name']}`" for one in config.get("filter_list") or ()]
    metrics = [str(one["metric"]).rpartition(".")[2] for one in config.get("metric_list") or ()]
    budget = read_sampling(config.get("generation_kwargs") or {})["max_tokens"] if not scored else MAX_TOKENS
    reader = "log-probabilities" if scored else ", ".join(filters) or "as it is"
    return _line(
        f"`lm-eval:{name}`", asked, int(config.get("num_fewshot") or 0), None if scored else budget, reader, metrics
    )


def _line(name: str, asked: str, shots: int, tokens: int | None, reader: str, metrics: Any) -> str:
    text = " ".join(asked.replace("|", "/").replace("`", "'").split())
    text = text if len(text) <= _LONGEST else f"… {text[-_LONGEST:]}"
    shown = ", ".join(f"`{metric}`" for metric in metrics)
    return f"| {name} | {f'`{text}`' if text else ''} | {shots} | {f'{tokens:,}' if tokens else '–'} | {reader} | {shown} |"


if __name__ == "__main__":
    PAGE.write_text(render(), encoding="utf-8")
