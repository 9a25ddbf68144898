"""Texts whose log-probability a model is asked for: a row's `continuations`, and what a provider found of each.

A row brings pairs of a context and a continuation. All pairs of a row are one call, one record and one commit, and metrics
(`themis.evaluation.metrics.likelihood`) read the stored record alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeAlias

from themis.core.entities import GenerationRecord, GenerationTask, ModelOutput
from themis.exceptions import ConfigurationError, ProviderCallError

__all__ = [
    "BASELINES",
    "CONTINUATIONS",
    "Continuation",
    "Likelihood",
    "ScoredContinuation",
    "check_likelihoods",
    "continuations_of",
    "likelihood_output",
    "list_scored",
    "move_spaces",
    "option_continuations",
    "read_baselines",
    "read_continuations",
    "read_likelihoods",
]

# The row's fields, and under the first name what the raw output holds of each.
CONTINUATIONS = "continuations"
BASELINES = "baselines"

Row: TypeAlias = Mapping[str, object]


class Continuation(NamedTuple):
    """A text and what stands before it; after an empty context the text is read from the model's beginning-of-text token."""

    context: str
    text: str


class Likelihood(NamedTuple):
    """What a model makes of a continuation.

    `logprob` is the sum over its tokens in nats, `greedy` says whether each of them was the likeliest one, `tokens` how many
    they are.
    """

    logprob: float
    greedy: bool
    tokens: int


# --- what a row asks ---------------------------------------------------------------------------------------------------


def option_continuations(
    options: Sequence[str], *, delimiter: str = " ", context: str | None = None, baseline: str | None = None
) -> dict[str, object]:
    """The fields of a row whose options are scored by their log-probability.

    Args:
        options: The texts to choose among, in the order of the answer's index.
        delimiter: What stands between the context and an option.
        context: What stands before each option; None for the row's prompt, as its template fills it.
        baseline: A context that says nothing of the question, such as "Answer:" or "" for none at all, after which each option
            is scored too: `acc_mutual_info` takes that away. None for no baseline.

    >>> option_continuations(["red", "blue"], baseline="")
    {'continuations': [' red', ' blue', ['', ' red'], ['', ' blue']], 'baselines': [2, 3]}
    """
    texts = [f"{delimiter}{option}" for option in options]
    asked: list[object] = list(texts) if context is None else [[context, text] for text in texts]
    if baseline is None:
        return {CONTINUATIONS: asked}
    count = len(asked)
    return {
        CONTINUATIONS: [*asked, *([baseline, text] for text in texts)],
        BASELINES: list(range(count, 2 * count)),
    }


def read_continuations(row: Row, prompt: str) -> list[Continuation]:
    """The pairs of a row that has `continuations`.

    Args:
        row: The row's fields.
        prompt: The context of those that are plain texts.

    Raises:
        ConfigurationError: They are not of that form, one of them is empty, or the row speaks to a chat model too.

    >>> read_continuations({"continuations": [" Paris", ["Rome is in", " Italy"]]}, "The capital of France is")
    [Continuation(context='The capital of France is', text=' Paris'), Continuation(context='Rome is in', text=' Italy')]
    """
    given = row[CONTINUATIONS]
    if not isinstance(given, list | tuple) or not given:
        raise ConfigurationError(
            f"`continuations` is a list of [context, continuation] pairs or of texts, got {given!r:.80}"
        )
    for name in ("messages", "system_prompt"):
        if row.get(name):
            raise ConfigurationError(
                f"the row has `continuations`, which are scored as plain text, and `{name}`; leave one of them out"
            )
    pairs = [_read_pair(one, prompt, place) for place, one in enumerate(given)]
    read_baselines(row)
    return pairs


def _read_pair(given: object, prompt: str, place: int) -> Continuation:
    if isinstance(given, str):
        pair = Continuation(prompt, given)
    elif isinstance(given, list | tuple) and len(given) == 2 and all(isinstance(part, str) for part in given):
        pair = Continuation(given[0], given[1])
    else:
        raise ConfigurationError(f"continuation {place} is a text or [context, continuation], got {given!r:.80}")
    if not pair.text:
        raise ConfigurationError(
            f"continuation {place} is empty, so there is nothing to score; the text itself stands second, as in ['', text]"
        )
    return pair


def read_baselines(row: Row) -> list[int]:
    """For each option of the row the place of its baseline among the `continuations`; nothing where there are none.

    Raises:
        ConfigurationError: `baselines` does not name one for each of the other continuations.

    >>> read_baselines({"continuations": ["a", "b", ["", "a"], ["", "b"]], "baselines": [2, 3]})
    [2, 3]
    """
    given, continuations = row.get(BASELINES), row.get(CONTINUATIONS)
    if given is None or not isinstance(continuations, list | tuple):
        return []
    known = range(len(continuations))
    named = given if isinstance(given, list | tuple) else [given]
    places = [place for place in named if isinstance(place, int) and place in known]
    if not places or len(places) != len(named) or len(places) != len(known) - len(set(places)):
        raise ConfigurationError(
            "`baselines` names for each option the place of its baseline among the `continuations`, such as [4, 5, 6, 7] "
            f"for four options before four baselines; got {given!r:.80} of {len(known)} continuations"
        )
    return places


def move_spaces(pair: Continuation) -> Continuation:
    """The pair with the white space at the context's end as the beginning of the text.

    Words are tokens together with the space before them, so a text is scored by the tokens that it would be written in. A
    context of nothing but white space is none.

    >>> move_spaces(Continuation("Answer: ", "42"))
    Continuation(context='Answer:', text=' 42')
    """
    context = pair.context.rstrip()
    return Continuation(context, pair.context[len(context) :] + pair.text)


def continuations_of(task: GenerationTask) -> list[Continuation]:
    """The pairs of a task; what is wrong with them is a failure of this call.

    >>> from themis.core.entities import ModelSpec, PromptRender, PromptSpec, SamplingConfig
    >>> asked = PromptRender(PromptSpec("sum", "{question}"), "2 + 2 =")
    >>> task = GenerationTask(asked, ModelSpec("m", "local"), SamplingConfig(), {"continuations": [" 4"]})
    >>> continuations_of(task)
    [Continuation(context='2 + 2 =', text=' 4')]
    """
    try:
        return read_continuations(task.metadata, task.prompt.text)
    except ConfigurationError as error:
        item = task.metadata.get("dataset_id", "without an id")
        raise ProviderCallError(f"item {item!r}: {error}", kind="bad_request", retryable=False) from error


# --- what a provider found ----------------------------------------------------------------------------------------------


def likelihood_output(
    task: GenerationTask,
    found: Sequence[Likelihood],
    *,
    evaluated_tokens: int,
    generated_tokens: int = 0,
    **raw: object,
) -> ModelOutput:
    """The output of a call that scored a task's continuations.

    Its text is the option with the highest sum; of a single one, itself where the model would have written it and nothing where
    not, and nothing for a single text without a context.

    Args:
        task: What was asked.
        found: One for each continuation, in their order.
        evaluated_tokens: Tokens that the model really read for it.
        generated_tokens: Tokens that it wrote, where a server generates at least one.
        **raw: What else is worth keeping, such as how many tokens of a context were cut off.

    Raises:
        ProviderCallError: There is not a finite log-probability for each continuation.

    >>> from themis.core.entities import ModelSpec, PromptRender, PromptSpec, SamplingConfig
    >>> asked = PromptRender(PromptSpec("sum", "{question}"), "2 + 2 =")
    >>> task = GenerationTask(asked, ModelSpec("m", "local"), SamplingConfig(), {"continuations": [" 4", " 5"]})
    >>> likelihood_output(task, [Likelihood(-0.2, True, 1), Likelihood(-3.0, False, 1)], evaluated_tokens=7).text
    ' 4'
    """
    pairs = continuations_of(task)
    listed = [{"logprob": one.logprob, "greedy": one.greedy, "tokens": one.tokens} for one in found]
    output = ModelOutput(
        text="",
        raw={CONTINUATIONS: listed, "model": task.model.identifier, **raw},
        usage={
            "prompt_tokens": evaluated_tokens,
            "completion_tokens": generated_tokens,
            "total_tokens": evaluated_tokens + generated_tokens,
        },
    )
    check_likelihoods(output, task)
    return ModelOutput(_choose(pairs, found, read_baselines(task.metadata)), output.raw, output.usage)


def _choose(pairs: Sequence[Continuation], found: Sequence[Likelihood], baselines: Sequence[int]) -> str:
    options = [place for place in range(len(pairs)) if place not in baselines]
    if len(options) > 1:
        return pairs[max(options, key=lambda place: found[place].logprob)].text
    only = options[0]
    return pairs[only].text if found[only].greedy and pairs[only].context else ""


def check_likelihoods(output: ModelOutput | None, task: GenerationTask) -> None:
    """Raises where an output does not have a finite log-probability for each continuation of its task.

    Args:
        output: What a provider returned.
        task: What it was asked.

    Raises:
        ProviderCallError: What is wrong with it; the call has failed, and nothing of it is a score.
    """
    found = read_likelihoods(output)
    asked = task.metadata[CONTINUATIONS]
    count = len(asked) if isinstance(asked, list | tuple) else 0
    if len(found) != count:
        raise ProviderCallError(
            f"the provider scored {len(found)} continuations of {count}; raw['continuations'] has "
            "{'logprob', 'greedy', 'tokens'} for each",
            kind="invalid_response",
            retryable=False,
        )
    for place, one in enumerate(found):
        if not math.isfinite(one.logprob) or one.logprob > _ROUNDING:
            raise ProviderCallError(
                f"the log-probability of continuation {place} is {one.logprob}, which is no score",
                kind="invalid_response",
                retryable=False,
            )


# What sums of rounded log-probabilities may be above zero.
_ROUNDING = 1e-3


def read_likelihoods(output: ModelOutput | None) -> list[Likelihood]:
    """What a stored output says of each continuation; nothing where it was no such call.

    >>> read_likelihoods(ModelOutput("", raw={"continuations": [{"logprob": -1.5, "greedy": False, "tokens": 2}]}))
    [Likelihood(logprob=-1.5, greedy=False, tokens=2)]
    """
    raw = output.raw if output is not None else None
    listed = raw.get(CONTINUATIONS) if isinstance(raw, Mapping) else None
    if not isinstance(listed, list | tuple):
        return []
    return [_read_likelihood(one) for one in listed]


def _read_likelihood(one: object) -> Likelihood:
    logprob = one.get("logprob") if isinstance(one, Mapping) else None
    is_number = isinstance(logprob, int | float) and not isinstance(logprob, bool)
    if not isinstance(one, Mapping) or not is_number:
        return Likelihood(math.nan, False, 0)
    tokens = one.get("tokens")
    return Likelihood(float(logprob or 0.0), bool(one.get("greedy")), tokens if isinstance(tokens, int) else 0)


# --- what people are shown ------------------------------------------------------------------------------------------------


class ScoredContinuation(NamedTuple):
    """A pair with what the model made of it, as a line of what a record shows."""

    pair: Continuation
    found: Likelihood
    is_baseline: bool
    is_likeliest: bool


def list_scored(record: GenerationRecord) -> list[ScoredContinuation]:
    """The continuations of a stored record with their log-probabilities; nothing of a record that has none."""
    found = read_likelihoods(record.output)
    if not found or record.task.metadata.get(CONTINUATIONS) is None:
        return []
    pairs = read_continuations(record.task.metadata, record.task.prompt.text)
    baselines = set(read_baselines(record.task.metadata))
    options = [place for place in range(len(pairs)) if place not in baselines]
    likeliest = max(options, key=lambda place: found[place].logprob) if len(options) > 1 else None
    return [
        ScoredContinuation(pair, one, place in baselines, place == likeliest)
        for place, (pair, one) in enumerate(zip(pairs, found, strict=True))
    ]
