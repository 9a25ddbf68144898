"""Reports of memory runs, and a run as they see it: results, numbers and the timeline of the conversation, read once."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from themis.memory.results import RunResults, RunSummary, StoredResult, load_results, points_of, summarise_results
from themis.memory.spans import Point
from themis.memory.timeline import Timeline, read_timeline
from themis.storage import ExperimentStorage


@dataclass(frozen=True)
class RunView:
    """`name` is what the run is called on this page."""

    name: str
    found: RunResults
    summary: RunSummary
    timeline: Timeline

    @property
    def results(self) -> list[StoredResult]:
        return self.found.results

    @property
    def points(self) -> list[Point]:
        return points_of(self.results)

    @property
    def latency(self) -> tuple[float, float] | None:
        """Median and 95th percentile of the seconds of a reply."""
        seconds = sorted(self.timeline.latencies)
        if not seconds:
            return None
        return seconds[(len(seconds) - 1) // 2], seconds[math.ceil(0.95 * len(seconds)) - 1]


def read_view(storage: ExperimentStorage, run_id: str, *, judged_as: str | None = None) -> RunView:
    found = load_results(storage, run_id, judged_as)
    memory = found.run.config_snapshot.get("memory", {})
    timeline = read_timeline(
        storage.reader(run_id).turns(),
        isolated=found.isolated,
        **({"tokenizer_name": memory["tokenizer"]} if memory.get("tokenizer") else {}),
    )
    verbosity = memory.get("published_agent_tokens") or timeline.reply_tokens or None
    return RunView(run_id, found, summarise_results(found, verbosity_tokens=verbosity), timeline)


def ways_of_judging(agents: Mapping[str, Sequence[RunView]]) -> dict[str, list[Mapping[str, object]]]:
    """How the tests of each agent's runs were judged; judges that none of them has asked had no part in it."""
    asked = any(view.found.run.judge_calls for views in agents.values() for view in views)
    unasked: dict[str, object] = {} if asked else {"judge": None}
    return {agent: [{**view.found.judging, **unasked} for view in views] for agent, views in agents.items()}


def label_views(views: Sequence[RunView]) -> list[RunView]:
    """The runs by the shortest names that tell them apart: the agent's, with its window, or else the run id."""
    agents = [view.found.agent for view in views]
    windows = [_name_with_window(view) for view in views]
    names = next((names for names in (agents, windows) if len(set(names)) == len(names)), None)
    return [
        replace(view, name=name) for view, name in zip(views, names or [v.found.run_id for v in views], strict=True)
    ]


def _name_with_window(view: RunView) -> str:
    manifest = view.found.run.config_snapshot.get("reproducibility_manifest", {})
    window = ((manifest.get("model") or {}).get("provider_options") or {}).get("max_prompt_tokens")
    return view.found.agent if window is None else f"{view.found.agent} {window}"
