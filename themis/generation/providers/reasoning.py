"""How much a model is to think, said as its provider wants it said.

`reasoning_effort` (a word) and `thinking_budget` (tokens) are options of every chat provider. Where a model knows only the other
of the two it is translated, and what became of it is told.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from themis.exceptions import ConfigurationError
from themis.generation.providers.families import Rules

EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
# Tokens that stand for a word, as Google documents them for its models; the largest leave room for an answer below 32k.
_BUDGETS = {"minimal": 1_024, "low": 1_024, "medium": 8_192, "high": 24_576, "xhigh": 30_000, "max": 30_000}
_LEAST_BUDGET = 1_024
# Below which top_p is refused beside thinking, by Anthropic.
LEAST_TOP_P = 0.95


class ReasoningFields(NamedTuple):
    """What is sent so that a model reasons as it is asked to.

    Args:
        fields: Of every request.
        added_tokens: What an answer's limit is raised by: the API counts thoughts towards it.
        is_on: Whether the model reasons; None where that is not known.
        refused: Parameters that are not taken beside it.
        changed: Options that are sent as something else, and as what.
    """

    fields: Mapping[str, object] = {}
    added_tokens: int = 0
    is_on: bool | None = None
    refused: Sequence[str] = ()
    changed: Mapping[str, str] = {}


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What is asked of a model's reasoning: one of the two, or neither."""

    effort: str | None = None
    budget_tokens: int | None = None

    def __post_init__(self) -> None:
        if self.effort is not None and self.effort not in EFFORTS:
            raise ConfigurationError(f"reasoning_effort is one of {', '.join(EFFORTS)}, got {self.effort!r}")
        budget = self.budget_tokens
        if budget is not None and (isinstance(budget, bool) or not isinstance(budget, int) or budget < 0):
            raise ConfigurationError(
                f"thinking_budget is a number of tokens, 0 for no thinking, got {self.budget_tokens!r}"
            )
        if self.effort is not None and budget is not None:
            raise ConfigurationError("give reasoning_effort or thinking_budget, not both")

    @property
    def is_said(self) -> bool:
        return self.effort is not None or self.budget_tokens is not None

    @property
    def word(self) -> str:
        """The effort, or the one that comes nearest to the budget."""
        if self.effort is not None or self.budget_tokens is None:
            return self.effort or ""
        if self.budget_tokens == 0:
            return "none"
        return "low" if self.budget_tokens <= 4_096 else "medium" if self.budget_tokens <= 16_384 else "high"

    @property
    def tokens(self) -> int:
        """The budget, or the one that stands for the effort."""
        return _BUDGETS.get(self.effort or "", 0) if self.budget_tokens is None else self.budget_tokens


def nearest_effort(wanted: str, known: Sequence[str]) -> str:
    """The least of the known efforts that is no less than the wanted one, or else the most.

    >>> nearest_effort("minimal", ["none", "low", "medium", "high"])
    'low'
    >>> nearest_effort("max", ["low", "medium", "high"])
    'high'
    """
    ranked = sorted((word for word in known if word in EFFORTS), key=EFFORTS.index)
    if not ranked or wanted in ranked:
        return wanted
    return next((word for word in ranked if EFFORTS.index(word) > EFFORTS.index(wanted)), ranked[-1])


Form = Callable[[Rules, Wanted], ReasoningFields]


def in_openai_form(rules: Rules, wanted: Wanted) -> ReasoningFields:
    """`reasoning_effort`, a word that the model knows."""
    if not wanted.is_said:
        return ReasoningFields(is_on=_reasons_by_default(rules))
    word = nearest_effort(wanted.word, rules.efforts)
    return ReasoningFields({"reasoning_effort": word}, is_on=word != "none", changed=_say_changed(wanted, word))


def in_openrouter_form(rules: Rules, wanted: Wanted) -> ReasoningFields:
    """`reasoning`, with an effort or a number of tokens: OpenRouter knows both, of every model."""
    if not wanted.is_said:
        return ReasoningFields(is_on=_reasons_by_default(rules))
    said = {"effort": wanted.word} if wanted.budget_tokens in (None, 0) else {"max_tokens": wanted.budget_tokens}
    return ReasoningFields({"reasoning": said}, is_on=wanted.word != "none")


def in_google_form(rules: Rules, wanted: Wanted) -> ReasoningFields:
    """An effort as OpenAI has it; tokens in a field of Google's own."""
    if wanted.budget_tokens is None:
        return in_openai_form(rules, wanted)
    settings = {"thinking_config": {"thinking_budget": wanted.budget_tokens, "include_thoughts": True}}
    return ReasoningFields({"extra_body": {"google": settings}}, is_on=wanted.budget_tokens > 0)


def in_deepseek_form(rules: Rules, wanted: Wanted) -> ReasoningFields:
    """A switch, and an effort where it is on."""
    found = in_openai_form(rules, wanted)
    if not wanted.is_said:
        return found
    if not found.is_on:
        return found._replace(fields={"thinking": {"type": "disabled"}})
    return found._replace(fields={"thinking": {"type": "enabled"}, **found.fields})


def in_litellm_form(rules: Rules, wanted: Wanted) -> ReasoningFields:
    """litellm translates an effort for every vendor, and tokens for those that take them."""
    if not wanted.budget_tokens:
        return in_openai_form(rules, wanted)
    return _think_within_budget(wanted)


def in_anthropic_form(rules: Rules, wanted: Wanted) -> ReasoningFields:
    """`thinking`: with a budget for older models, by effort for newer ones, which think as much as they want."""
    if not wanted.is_said:
        return ReasoningFields(is_on=_reasons_by_default(rules))
    if wanted.word == "none":
        return _keep_from_thinking(rules, wanted)
    has_budget = wanted.budget_tokens is not None and rules.takes_budget
    if rules.reasoning == "adaptive" and not has_budget:
        word = nearest_effort(wanted.word, rules.efforts)
        thinking = {"type": "adaptive", **({"display": "summarized"} if rules.shows_reasoning else {})}
        return ReasoningFields(
            {"thinking": thinking, "output_config": {"effort": word}},
            is_on=True,
            refused=("temperature", "top_k", "top_p"),
            changed=_say_changed(wanted, word),
        )
    return _think_within_budget(wanted)._replace(refused=("temperature", "top_k", "top_p"))


def _think_within_budget(wanted: Wanted) -> ReasoningFields:
    budget, changed = max(_LEAST_BUDGET, wanted.tokens), {}
    if budget > wanted.tokens:
        changed = {"thinking_budget": f"{wanted.tokens} is sent as {budget}, the least that there is"}
    thinking = {"type": "enabled", "budget_tokens": budget}
    return ReasoningFields({"thinking": thinking}, added_tokens=budget, is_on=True, changed=changed)


def _keep_from_thinking(rules: Rules, wanted: Wanted) -> ReasoningFields:
    if rules.no_reasoning == "disabled":
        return ReasoningFields({"thinking": {"type": "disabled"}}, is_on=False)
    if rules.no_reasoning == "lowest":
        least = nearest_effort("none", rules.efforts)
        return ReasoningFields({"output_config": {"effort": least}}, is_on=True, changed=_say_changed(wanted, least))
    return ReasoningFields(is_on=False)


def _reasons_by_default(rules: Rules) -> bool | None:
    return None if not rules.default_effort else rules.default_effort != "none"


def _say_changed(wanted: Wanted, word: str) -> dict[str, str]:
    if wanted.budget_tokens is not None:
        return {"thinking_budget": f"{wanted.budget_tokens} is sent as the effort {word!r}"}
    return {} if word == wanted.effort else {"reasoning_effort": f"{wanted.effort!r} is sent as {word!r}"}


FORMS: dict[str, Form] = {
    "anthropic": in_anthropic_form,
    "deepseek": in_deepseek_form,
    "google": in_google_form,
    "litellm": in_litellm_form,
    "openai": in_openai_form,
    "openrouter": in_openrouter_form,
}
