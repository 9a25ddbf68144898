"""An experiment becomes a list of specifications: by axes, labels and the fields that runs have."""

from __future__ import annotations

from dataclasses import fields, replace
from datetime import date
from pathlib import Path

import pytest

from themis.config.specification import MemorySpecification, SampleSpecification
from themis.evaluation.judges import RubricJudge
from themis.exceptions import ConfigurationError
from themis.experiments import ExperimentSpecification, load_experiment
from themis.experiments.conducting import choose_runs
from themis.experiments.values import settable
from themis.experiments.variants import slug


def ids(experiment: ExperimentSpecification) -> list[str]:
    return [run.run_id for run in experiment.runs]


def mistakes_of(values: object) -> str:
    with pytest.raises(ConfigurationError) as caught:
        load_experiment(values)
    return str(caught.value)


def write(folder: Path, text: str) -> Path:
    path = folder / "experiment.yml"
    path.write_text(text, encoding="utf-8")
    return path


# --- combinations ---------------------------------------------------------------------------------------------------


def test_every_subject_meets_every_prompt_under_an_id_that_says_so(sums):
    experiment = load_experiment(sums)

    assert ids(experiment) == [
        "sums--perfect--plain--rows",
        "sums--perfect--terse--rows",
        "sums--weak--plain--rows",
        "sums--weak--terse--rows",
    ]
    last = experiment.runs[-1].specification
    assert (last.model, last.prompt, last.dataset) == ("fake/noisy-0.5", "Only the number: {question}", "rows.jsonl")
    assert (last.run_id, last.experiment) == ("sums--weak--terse--rows", "sums")


def test_a_file_a_dict_and_a_constructed_one_are_the_same_experiment(folder, sums):
    path = write(
        folder,
        """
name: sums
datasets: [rows.jsonl]
subjects: [fake/perfect, {name: weak, model: fake/noisy-0.5}]
prompts: {plain: "{question}", terse: "Only the number: {question}"}
temperature: 0.5
""",
    )
    constructed = ExperimentSpecification(**sums, settings={"temperature": 0.5}, folder=str(folder))

    assert load_experiment(path) == constructed
    assert replace(load_experiment({**sums, "temperature": 0.5}), folder=str(folder)) == constructed


def test_only_axes_that_are_there_are_in_an_id_and_another_variant_leaves_the_others_ids(sums):
    one = load_experiment({"name": "one", "model": "fake/perfect", "dataset": "demo"})
    two = load_experiment({**sums, "subjects": [*sums["subjects"], "fake/echo"]})

    assert ids(one) == ["one"]
    assert set(ids(load_experiment(sums))) < set(ids(two))


def test_a_variant_may_say_with_whom_it_goes(sums):
    sums["subjects"].append({"name": "app", "model": "fake/echo", "prompts": "plain"})

    assert [name for name in ids(load_experiment(sums)) if "app" in name] == ["sums--app--plain--rows"]


def test_what_a_variant_says_wins_over_what_all_share_and_mappings_are_joined():
    experiment = load_experiment(
        {
            "name": "x",
            "dataset": "demo",
            "temperature": 0,
            "provider_options": {"timeout": 5},
            "subjects": [
                "fake/perfect",
                {
                    "name": "hot",
                    "model": "fake/echo",
                    "temperature": 1.0,
                    "provider_options": {"base_url": "http://localhost"},
                },
            ],
        }
    )
    cold, hot = (run.specification for run in experiment.runs)

    assert (cold.temperature, hot.temperature) == (0, 1.0)
    assert hot.provider_options == {"timeout": 5, "base_url": "http://localhost"}


def test_two_axes_that_say_the_same_setting_are_a_mistake(sums):
    told = mistakes_of(
        {**sums, "subjects": [{"model": "fake/perfect", "temperature": 1}], "sampling": {"cold": {"temperature": 0}}}
    )

    assert "temperature is said twice: here, and by subjects, 'perfect'" in told


def test_subjects_of_one_name_are_told_apart_by_the_user_and_not_by_chance(sums):
    assert "two subjects are called 'gpt-4o'; give one of them a name" in mistakes_of(
        {**sums, "subjects": ["openai/gpt-4o", "azure/gpt-4o"]}
    )


@pytest.mark.parametrize(
    ("subject", "label"),
    [
        ("openai/gpt-4o", "gpt-4o"),
        ("ollama/llama3:8b", "llama3-8b"),
        ("openrouter/meta-llama/llama-3.3-70b", "llama-3.3-70b"),
        ("python:apps/app.py:answer", "app.answer"),
        ("http://localhost:8000/ask", "localhost-8000-ask"),
        ("command:./bin/app --fast", "app"),
        ("agent:window(2000)", "window(2000)"),
        ("fake/constant?text=4", "constant-text=4"),
    ],
)
def test_a_subject_is_called_by_what_tells_it_apart(subject, label):
    assert ids(load_experiment({"name": "x", "dataset": "demo", "subjects": [subject]})) == [f"x--{label}"]


@pytest.mark.parametrize(
    ("dataset", "label"),
    [
        ("data/rows.v2.jsonl", "rows.v2"),
        ("gsm8k", "gsm8k"),
        ("lm-eval:hellaswag", "hellaswag"),
        ("hf://openai/gsm8k/main/test", "gsm8k-main-test"),
    ],
)
def test_a_dataset_is_called_by_its_name(dataset, label):
    assert ids(load_experiment({"name": "x", "model": "fake/perfect", "datasets": [dataset]})) == [f"x--{label}"]


def test_an_id_that_would_be_too_long_is_cut_and_still_its_own():
    names = ["a" * 150 + "1", "a" * 150 + "2"]
    experiment = load_experiment({"name": "x", "dataset": "demo", "subjects": dict.fromkeys(names, "fake/perfect")})

    assert all(len(run_id) < 150 for run_id in ids(experiment))
    assert len(set(ids(experiment))) == 2


# --- settings by their fields ---------------------------------------------------------------------------------------


def test_every_field_of_a_run_that_is_the_user_s_to_say_can_be_said():
    left_out = {one.name for one in fields(SampleSpecification)} - set(settable(SampleSpecification))

    assert left_out == {
        *("run_id", "experiment", "resume", "allow_drift", "needs_program", "benchmark", "made_in_python"),
    }
    assert {"model", "temperature", "tags", "workers", "budget_usd"} <= set(settable(SampleSpecification))
    assert {"agent", "isolated", "load", "filler"} <= set(settable(MemorySpecification))


def test_metrics_with_parameters_are_written_as_mappings(sums):
    experiment = load_experiment({**sums, "metrics": ["exact_match", {"numeric": {"tolerance": 0.01, "name": "Near"}}]})

    assert experiment.runs[0].specification.metrics == ["exact_match", "numeric(tolerance=0.01, name='Near')"]


def test_a_prompt_may_lie_in_a_file(folder, sums):
    (folder / "long.txt").write_text("Think. {question}", encoding="utf-8")
    sums["prompts"] = {"long": {"prompt_file": "long.txt", "max_tokens": 900}}

    asked = load_experiment(sums).runs[0].specification
    assert (asked.prompt, asked.max_tokens) == ("Think. {question}", 900)
    assert "cannot be read" in mistakes_of({**sums, "prompts": {"lost": {"prompt_file": "no.txt"}}})


def test_rows_that_can_be_read_only_once_are_read_for_all_runs(sums):
    rows = ({"id": n, "question": str(n), "answer": str(n)} for n in range(3))
    experiment = load_experiment({**sums, "datasets": {"mine": rows}})

    assert [len(run.specification.dataset) for run in experiment.runs] == [3] * 4


def test_a_judge_made_in_python_is_each_run_s_own(sums):
    judge = RubricJudge(model="fake/constant?text=pass")
    experiment = load_experiment({**sums, "metrics": [judge]})

    bound = [run.specification.metrics[0] for run in experiment.runs]
    assert len({id(one) for one in bound}) == len(bound)


# --- memory ---------------------------------------------------------------------------------------------------------


def test_a_memory_sweep_is_agents_x_spans_x_seeds():
    experiment = load_experiment(
        {
            "name": "m",
            "memory": {"agents": ["window(2000)", "oracle"], "spans": ["2k", 500], "seeds": 2, "judge": "fake/x"},
        }
    )

    assert ids(experiment)[:4] == [f"m--window(2000)--{span}--s{seed}" for span in ("2k", "500") for seed in (0, 1)]
    first = experiment.runs[0].specification
    assert isinstance(first, MemorySpecification)
    assert (first.configuration, first.agent, first.span_tokens, first.seed) == ("quick", "window(2000)", 2_000, 0)
    assert first.judge == "fake/x"


def test_memory_runs_and_sample_runs_stand_in_one_file(sums):
    kinds = [run.kind for run in load_experiment({**sums, "memory": {"agent": "oracle"}}).runs]

    assert kinds == ["samples"] * 4 + ["memory"]


# --- baselines ------------------------------------------------------------------------------------------------------


def test_a_run_s_baseline_has_the_named_labels_in_place_of_its_own(sums):
    by_subject = load_experiment({**sums, "baseline": "perfect"}).baselines
    by_prompt = load_experiment({**sums, "baseline": "plain"}).baselines
    one = load_experiment({**sums, "baseline": ["weak", "terse"]}).baselines

    assert by_subject == {f"sums--weak--{p}--rows": f"sums--perfect--{p}--rows" for p in ("plain", "terse")}
    assert by_prompt == {f"sums--{s}--terse--rows": f"sums--{s}--plain--rows" for s in ("perfect", "weak")}
    assert set(one.values()) == {"sums--weak--terse--rows"}
    assert len(one) == 3


def test_without_one_the_first_of_everything_is_the_baseline_on_each_dataset(sums):
    baselines = load_experiment({**sums, "datasets": ["rows.jsonl", "demo"]}).baselines

    assert set(baselines.values()) == {"sums--perfect--plain--rows", "sums--perfect--plain--demo"}
    assert len(baselines) == 6


def test_a_baseline_that_is_nowhere_gets_the_nearest_name(sums):
    assert "baseline 'perfct' stands on no axis (did you mean 'perfect'?)" in mistakes_of(
        {**sums, "baseline": "perfct"}
    )


@pytest.mark.parametrize(
    ("name", "referred"), [("A b", "A b"), ("A b", "A-b"), (7, 7), (7, "7"), ("größer/als", "größer/als")]
)
def test_what_is_named_is_found_by_the_name_that_it_was_given(sums, name, referred):
    """Names stand in ids as slugs, and numbers as texts; nobody need know how."""
    named = {
        **sums,
        "subjects": {"a-b": "fake/echo", name: "fake/perfect"},
        "prompts": [
            {"name": "only", "prompt": "{question}", "subjects": referred},
            {"name": "all", "prompt": "Q {question}"},
        ],
        "baseline": referred,
        "gates": [{"metric": "ExactMatch", "at_least": 0.5, "only": referred}],
    }
    experiment = load_experiment(named)
    (found,) = [run for run in experiment.runs if "only" in run.labels.values()]
    (rule,) = experiment.gates_of("samples")

    assert found.labels["subjects"] == slug(str(name))
    assert experiment.baselines == {"sums--a-b--all--rows": f"sums--{slug(str(name))}--all--rows"}
    assert {run.labels["subjects"] for run in experiment.runs if run.matches(str(rule.only))} == {slug(str(name))}
    assert {run.labels["subjects"] for run in choose_runs(experiment.runs, [f"{referred}*"])} == {slug(str(name))}


# --- mistakes -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "told"), [(True, "yes, no, on and off as True"), (None, "null, ~ and an empty place as nothing")]
)
def test_a_name_that_yaml_takes_for_something_else_is_a_mistake(sums, name, told):
    for subjects in ({name: "fake/perfect"}, [{"name": name, "model": "fake/perfect"}]):
        assert f"a name is a text, and YAML reads {told}" in mistakes_of({**sums, "subjects": subjects})


def test_all_mistakes_of_a_file_are_listed_with_their_lines_and_the_nearest_names(folder):
    path = write(
        folder,
        """name: wrong
dataset: demo
subjcts: [fake/perfect]
prompts:
  plain: "{question}"
  terse: {promt: x}
temperature: hot
limit: "10"
gates: [{metrc: ExactMatch}]
memory:
  agents: [oracle]
  spans: [2x]
  sedes: 2
""",
    )

    told = mistakes_of(path)

    assert told.splitlines()[0] == "8 mistakes, and nothing was called:"
    for line, what in (
        (3, "unknown key 'subjcts' (did you mean 'subjects'?)"),
        (6, "unknown key 'promt' (did you mean 'prompt'?)"),
        (7, "temperature is a number, got 'hot'"),
        (8, "limit is a whole number, got '10'"),
        (9, "unknown key 'metrc' (did you mean 'metric'?)"),
        (12, "spans are numbers of tokens such as 2000, 8k or 1M, got '2x'"),
        (13, "unknown key 'sedes' (did you mean 'seeds'?)"),
    ):
        assert f"  {path}:{line}: {what}" in told.splitlines()


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"parallel": 0}, "parallel: parallel is a whole number from 1 to 1,000, got 0"),
        ({"parallel": 10**30}, "parallel: parallel is a whole number from 1 to 1,000, got 1000"),
        ({"budget_usd": -1}, "budget_usd: budget_usd is a number greater than 0, got -1"),
        ({"subjects": "fake/perfect"}, "subjects is a list, or a mapping from names, got 'fake/perfect'"),
        ({"sampling": [0.7]}, "a sampling is a mapping of settings, such as {temperature: 0.7}, got 0.7"),
        ({"compare": {"test": "sign"}}, "test is one of t_test"),
        ({"gates": [{"metric": "M", "non_inferiority": -1}]}, "a non-inferiority margin is greater than 0, got -1"),
        ({"gates": {"metric": "M"}}, "gates is a list"),
        ({"subjects": [{"model": "fake/perfect", "prompts": ["plan"]}]}, "no prompts are called 'plan' (did you mean 'plain'?)"),
        ({"name": ""}, "name is what the experiment is called"),
        ({"subjects": [{"model": "fake/perfect", "prompts": True}]}, "prompts names those that it goes with, got True"),
        ({"subjects": [{"name": "weak"}]}, "subjects[0]: 'weak' of subjects has no model"),
        ({"metrics": [{"numeric": 0.1}]}, "metrics: metrics with parameters is written as {name: {parameter: value}}"),
        ({"memory": {"agents": ["perfect"], "seeds": 0}}, "seeds is a list, or how many of them: 1 to 10,000, got 0"),
        ({"memory": {"agents": ["perfect"], "seeds": 10**30}}, "how many of them: 1 to 10,000, got 1000"),
        ({"limit": 10**30}, "limit is a whole number of at least 1, got 1000"),
        ({"prompts": 0}, "prompts is a list, or a mapping from names, got 0"),
        ({"memory": {"agents": ["perfect"], "gates": 0}}, "gates is a list"),
        ({"memory": {"agents": ["perfect"], "max_message_tokens": 0}}, "max_message_tokens is a whole number of at least 60"),
        ({"max_tokens": -2}, "max_tokens is at least 1, or -1 for no limit, got -2"),
        ({"gates": [{"metric": "M", "at_least": float("nan")}]}, "at_least of a gate cannot be nan"),
        ({"budget_usd": float("inf")}, "budget_usd is a number greater than 0, got inf"),
        ({"compare": {"alpha": "0.05"}}, "alpha of compare cannot be '0.05'"),
        ({"compare": {"n_bootstrap": 0}}, "n_bootstrap is at least 1 (10,000 is usual), got 0"),
        ({"name": "a\0b"}, "name is what the experiment is called, a text that can be stored, got 'a\\x00b'"),
        ({"metrics": [{"numeric": {"tolerance": float("nan")}}]}, "tolerance of numeric cannot be nan; give a number"),
        ({"metrics": [{"numeric": {"tolerance": date(2024, 1, 1)}}]}, "cannot be datetime.date(2024, 1, 1)"),
        ({"prompts": {"plain": {"question": None}}}, "unknown key 'question'; a text with braces stands in quotes"),
        ({"subjects": [{"model": "fake/perfect", "prompts": []}]}, "subjects[0]: 'perfect' of subjects goes with nothing"),
        ({"memory": {"agents": ["perfect"], "seeds": True}}, "seeds is a list, or a mapping from names, got True"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_said_with_its_key(sums, change, told):
    assert told in mistakes_of({**sums, **change})


def test_a_wrong_budget_does_not_hide_what_else_is_wrong(sums):
    told = mistakes_of({**sums, "budget_usd": "five", "limt": 3})

    assert told.startswith("2 mistakes")
    assert "unknown key 'limt' (did you mean 'limit'?)" in told


def test_two_subjects_of_one_name_are_one_mistake(sums):
    assert mistakes_of({**sums, "subjects": ["fake/perfect", "fake/perfect"]}).startswith(
        "subjects[1]: two subjects are called 'perfect'"
    )


def test_a_prompts_file_is_looked_for_beside_the_experiments(folder):
    (folder / "inner").mkdir()
    (folder / "inner" / "terse.txt").write_text("Only the number: {question}", encoding="utf-8")
    write(folder / "inner", "model: fake/perfect\ndataset: ../rows.jsonl\nprompt_file: terse.txt\n")

    assert load_experiment("inner/experiment.yml").runs[0].specification.prompt == "Only the number: {question}"


def test_a_variants_prompt_takes_the_place_of_the_one_that_all_share_in_either_form(sums, folder):
    (folder / "terse.txt").write_text("Only the number: {question}", encoding="utf-8")
    shared = {"name": "sums", "dataset": "rows.jsonl", "model": "fake/perfect"}
    first = load_experiment({**shared, "prompt": "{question}", "prompts": {"terse": {"prompt_file": "terse.txt"}}})
    second = load_experiment({**shared, "prompt_file": "terse.txt", "prompts": {"plain": "{question}"}})

    assert first.runs[0].specification.prompt == "Only the number: {question}"
    assert second.runs[0].specification.prompt == "{question}"


def test_what_is_missing_is_said(folder):
    assert "there are no subjects; name them under subjects:, or one as model:" in mistakes_of({"name": "x"})
    assert "there are no datasets" in mistakes_of({"name": "x", "model": "fake/perfect"})


def test_a_file_that_is_no_yaml_is_said_with_its_line(folder):
    assert mistakes_of(write(folder, "name: x\nsubjects: [a\nb: c\n")).startswith(f"{folder / 'experiment.yml'}:3: ")
    assert ":2: the key 'name' stands twice" in mistakes_of(write(folder, "name: x\nname: y\n"))
    assert ":1: an experiment is a mapping of keys" in mistakes_of(write(folder, "- a\n"))
    assert ":1: there are no subjects" in mistakes_of(write(folder, ""))
    assert ":2: expected a single document in the stream, but found another" in mistakes_of(
        write(folder, "name: x\n---\nname: y\n")
    )
    assert ":2: unknown key 'True'" in mistakes_of(write(folder, "name: x\non: 3\n"))


def test_a_file_that_is_not_utf_8_says_where_and_what_to_do(folder):
    path = write(folder, "")
    path.write_bytes(("# a comment\n" * 2_000 + "name: Größe\n").encode("latin-1"))

    with pytest.raises(ConfigurationError, match=r"experiment.yml:2001: the file is not UTF-8 .*; save it as UTF-8"):
        load_experiment(path)


def test_a_file_without_a_name_is_called_by_its_own(folder):
    path = folder / "capitals.yml"
    path.write_text("model: fake/perfect\ndataset: demo\n", encoding="utf-8")

    assert load_experiment(path).name == "capitals"


def test_variants_share_settings_by_the_merge_keys_of_yaml(folder):
    (folder / "sums.yml").write_text(
        "datasets: [rows.jsonl]\nprompt: '{question}'\nsubjects:\n"
        "  - &weak {name: weak, model: fake/noisy-0.5, temperature: 0.5}\n"
        "  - {<<: *weak, name: warm, temperature: 0.9}\n"
    )

    runs = load_experiment("sums.yml").runs

    assert [(run.name, run.specification.model, run.specification.temperature) for run in runs] == [
        ("weak · rows", "fake/noisy-0.5", 0.5),
        ("warm · rows", "fake/noisy-0.5", 0.9),
    ]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("name: sums\nsubjects:\n\t- fake/perfect\n", "that cannot start any token; YAML is indented by spaces"),
        ("name: " + "[" * 3000 + "]" * 3000, "sums.yml is nested too deeply"),
        ("datasets: [demo]\nmodel: fake/perfect\nprompt: {question}\n", "a text with braces stands in quotes"),
    ],
)  # fmt: skip
def test_what_is_no_yaml_is_told_in_its_own_words(folder, text, told):
    (folder / "sums.yml").write_text(text)

    with pytest.raises(ConfigurationError) as refused:
        load_experiment("sums.yml")

    assert told in str(refused.value)
