"""Experiments: many runs asked for as one, by a file or a program, run together from one budget and compared.

`specification` says what is asked for, `checking` finds what is wrong with it, `planning` what it takes, `running` makes the
runs, `results` reads what came of them.
"""

from themis.experiments.conducting import plan_experiment, run_experiment
from themis.experiments.expanding import PlannedRun
from themis.experiments.planning import ExperimentPlan, RunPlan
from themis.experiments.results import ExperimentResult, RunResult
from themis.experiments.running import EndedRun, Watch
from themis.experiments.specification import ExperimentSpecification, load_experiment

__all__ = [
    "EndedRun",
    "ExperimentPlan",
    "ExperimentResult",
    "ExperimentSpecification",
    "PlannedRun",
    "RunPlan",
    "RunResult",
    "Watch",
    "load_experiment",
    "plan_experiment",
    "run_experiment",
]
