"""The parameters of requests as their model takes them: known by its family, learnt from what the provider refuses.

A provider has one `Parameters`, which has one `ModelParameters` a model. What is not sent as it was meant is said once, kept for
the run's report, and is an error where the user wants exactly what was asked for (`strict_parameters`).
"""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

import msgspec

from themis.core.entities import SamplingConfig
from themis.exceptions import ConfigurationError, ProviderCallError
from themis.generation.providers.families import Rules, families_date, find_rules
from themis.generation.providers.reasoning import LEAST_TOP_P, Form, Wanted
from themis.generation.providers.refusals import (
    PARAMETERS,
    Refusal,
    find_named,
    find_refused,
    is_about_content,
    own_words,
    read_refusal,
)

logger = logging.getLogger(__name__)

Q = TypeVar("Q")
R = TypeVar("R")

# Of a request, what is no parameter.
_CONTENT = ("model", "messages", "system", "tools", "input")
# Values with which a parameter says nothing: a model does that anyway.
_SAYS_NOTHING = {"temperature": 1.0, "top_p": 1.0, "presence_penalty": 0.0, "frequency_penalty": 0.0}
_LIMITS = ("max_tokens", "max_completion_tokens")
# Refusals of one request that are looked into. Each mends something, so that more would go in circles.
_MOST_REFUSALS = 8


class NotTakenError(ProviderCallError):
    """A parameter that was asked for is not taken by the model, and may not be left out."""

    def __init__(self, message: str) -> None:
        super().__init__(message, kind="bad_request", retryable=False)


@dataclass(frozen=True, kw_only=True)
class Wishes:
    """What is said of parameters beside the sampling itself.

    `asked` are the sampling parameters that the user gave and did not leave to their defaults. Where nobody knows it, a value
    that is not the default counts as given. `limit_field` is what the limit of an answer is called, and `is_limit_known` that
    the user says so. What is `untouchable` the user wrote into the request word for word; it is never left out. `returned`
    is what the endpoint wants back beside tool calls, whatever the model.
    """

    reasoning: Wanted = field(default_factory=Wanted)
    is_strict: bool = False
    asked: Collection[str] = ()
    limit_field: str = "max_tokens"
    is_limit_known: bool = False
    untouchable: Collection[str] = ()
    returned: tuple[str, ...] = ()

    def is_asked(self, name: str, value: object) -> bool:
        """Whether the user wants this value, which is then not left out unsaid."""
        if name in _LIMITS:
            return "max_tokens" in self.asked
        return name in self.asked or value != getattr(SamplingConfig, name, None)


class ProviderParameters:
    """What a provider knows of its models' parameters, and what became of them."""

    def __init__(self, provider: str, form: Form, wishes: Wishes) -> None:
        self.sent: dict[str, object] = {}
        self.left_out: dict[str, str] = {}
        self._provider = provider
        self._form = form
        self._wishes = wishes
        # Looked into for every request, before `of` is asked.
        self.models: dict[str, ModelParameters] = {}

    def of(self, model: str) -> ModelParameters:
        found = self.models.get(model)
        if found is None:
            rules = find_rules(model, self._provider)
            made = ModelParameters(model, rules, self._form, self._wishes, sent=self.sent, left_out=self.left_out)
            found = self.models.setdefault(model, made)
        return found

    def check(self, model: str, sampling: SamplingConfig, seed: int | None = None) -> None:
        """Raises where the user strictly wants a parameter that the model is known not to take."""
        fields: dict[str, object] = {"temperature": sampling.temperature}
        fields |= {} if seed is None else {"seed": seed}
        fields |= {} if sampling.top_p is None else {"top_p": sampling.top_p}
        fields |= {"stop": list(sampling.stop)} if sampling.stop else {}
        try:
            known = self.of(model)
            known.fit({**fields, known.limit_field: sampling.max_tokens})
        except NotTakenError as refused:
            raise ConfigurationError(str(refused)) from None

    async def ask_again(
        self,
        error: ProviderCallError,
        request: Q,
        *,
        model: str,
        make: Callable[[], Q],
        post: Callable[[Q], Awaitable[R]],
        read: Callable[[Q], Mapping[str, object]],
    ) -> R:
        """The reply to a request that was refused, made anew without what it was refused for; raises any other error."""
        known = self.of(model)
        for _ in range(_MOST_REFUSALS):
            if not known.learn(error, read(request)):
                break
            request = make()
            try:
                return await post(request)
            except ProviderCallError as again:
                error = again
        raise advise(error) from error


def read_body(body: bytes) -> dict[str, object]:
    """The fields of a request that was sent as JSON."""
    fields: dict[str, object] = msgspec.json.decode(body)
    return fields


class ModelParameters:
    """One model's: `fit` makes a request what it takes, `learn` takes a refusal into account."""

    def __init__(
        self, model: str, rules: Rules, form: Form, wishes: Wishes, *, sent: dict[str, object], left_out: dict[str, str]
    ) -> None:
        # Whether what is sent has been noted since it last changed.
        self.is_noted = False
        self.rules = rules
        self.limit_field = (
            wishes.limit_field if wishes.is_limit_known else rules.rename.get("max_tokens", wishes.limit_field)
        )
        self._model = model
        self._form = form
        self._wishes = wishes
        self._sent = sent
        self._left_out = left_out
        # What has been learnt: of which parameters, what is left out and why, and under which names a parameter was refused.
        self._learnt: set[str] = set()
        self._refusals: dict[str, str] = {}
        self._tried: set[str] = set()
        self._lock = threading.Lock()
        self.returned = (*wishes.returned, *([rules.returns_reasoning] if rules.returns_reasoning else []))
        self._prepare()

    def _prepare(self) -> None:
        rules, self.is_noted = self.rules, False
        self._reasoning = self._form(rules, self._wishes.reasoning)
        refused = {*rules.refuse, *self._reasoning.refused, *(rules.refuse_reasoning if self._reasoning.is_on else ())}
        self._refused = refused | self._refusals.keys()
        self._renamed = {old: new for old, new in rules.rename.items() if old != "max_tokens"}
        for option, said in self._reasoning.changed.items():
            self._say(option, said, is_asked=True)
        # To most requests nothing has to be done.
        self.is_plain = not (
            self._refused
            or self._renamed
            or self._reasoning.fields
            or rules.exclusive
            or rules.limits
            or rules.with_tools
            or rules.tool_choices
        )

    @property
    def added_tokens(self) -> int:
        """By how many tokens an answer may be longer than its limit, because the model thinks first."""
        return self._reasoning.added_tokens

    def takes(self, name: str) -> bool:
        return name not in self._refused

    # --- what is sent -------------------------------------------------------------------------------------------------

    def fit(self, fields: dict[str, object]) -> None:
        """Makes the fields of a request what the model takes."""
        fields.update(self._reasoning.fields)
        self._fit_numbers(fields)
        for name in self._refused & fields.keys():
            self._leave_out(name, fields)
        for one, other in self.rules.exclusive:
            if one in fields and other in fields:
                # The one that was asked for stays; of two, the first.
                kept, left = (one, other) if self._wishes.is_asked(one, fields[one]) else (other, one)
                self._leave_out(left, fields, why=f"not taken beside {kept}")
        if "tools" in fields:
            self._fit_tools(fields)
        for old, new in self._renamed.items():
            if old in fields:
                fields[new] = fields.pop(old)

    def note(self, fields: Mapping[str, object]) -> None:
        """Keeps what is sent, for the run's report."""
        self.is_noted = True
        self._sent.clear()
        self._sent.update({name: value for name, value in fields.items() if name not in _CONTENT})

    def _fit_numbers(self, fields: dict[str, object]) -> None:
        limit = fields.get(self.limit_field)
        if isinstance(limit, int) and self._reasoning.added_tokens:
            fields[self.limit_field] = limit + self._reasoning.added_tokens
        for name, most in self.rules.limits.items():
            name = self.limit_field if name == "max_tokens" else name
            value = fields.get(name)
            if isinstance(value, int | float) and value > most:
                fields[name] = type(value)(most)
                self._say(
                    name, f"{value:g} is sent as {most:g}, the most that it takes", self._wishes.is_asked(name, value)
                )

    def _leave_out(self, name: str, fields: dict[str, object], why: str = "") -> None:
        value = fields[name]
        if name == "top_p" and name in self._reasoning.refused and isinstance(value, float) and value >= LEAST_TOP_P:
            return
        del fields[name]
        if value == _SAYS_NOTHING.get(name) or (name in self._left_out and not self._wishes.is_strict):
            return
        why = why or self._refusals.get(name) or self._explain(name)
        here = "; answers are cut off there instead" if name == "stop" else ""
        self._say(name, f"{value!r} is not sent: {why}{here}", self._wishes.is_asked(name, value))

    def _explain(self, name: str) -> str:
        known = f"as of {families_date()}"
        if name in self.rules.refuse:
            return f"not taken by this model, {known}"
        return f"not taken by this model while it reasons, {known}"

    def _fit_tools(self, fields: dict[str, object]) -> None:
        for name, value in self.rules.with_tools.items():
            if fields.get(name) != value:
                fields[name] = value
                self._say(name, f"sent as {value!r} beside tools, which it does not take otherwise", is_asked=True)
        choice = fields.get("tool_choice")
        word = choice.get("type") if isinstance(choice, Mapping) else choice
        allowed = self.rules.tool_choices or (("auto", "none") if "thinking" in self._reasoning.fields else ())
        if choice is not None and allowed and word not in allowed:
            fields["tool_choice"] = {"type": "auto"} if isinstance(choice, Mapping) else "auto"
            self._say(
                "tool_choice", f"{choice!r} is sent as 'auto': it calls tools of its own accord only", is_asked=True
            )

    def _say(self, name: str, what: str, is_asked: bool) -> None:
        """Says once what is not sent as it was meant; raises where that may not be."""
        if is_asked and self._wishes.is_strict:
            raise NotTakenError(
                f"{self._model}: {name} {what}; strict_parameters (--strict-parameters) makes this an error"
            )
        if name in self._left_out:
            return
        self._left_out[name] = what
        level = logging.WARNING if is_asked or name in self._learnt else logging.INFO
        logger.log(level, "%s: %s%s %s", self._model, name, ", which was asked for:" if is_asked else "", what)

    # --- what is learnt -----------------------------------------------------------------------------------------------

    def learn(self, error: ProviderCallError, sent: Mapping[str, object]) -> bool:
        """Takes a refusal into account, for every later request too; False where it says nothing that could be mended."""
        refusal = read_refusal(error, sent)
        if refusal is None or refusal.name in self._wishes.untouchable:
            return False
        name, words = refusal.name, own_words(error)
        with self._lock:
            self._learnt.add(name)
            if refusal.remedy == "leave_out":
                self._refusals.setdefault(name, f"refused by the provider ({words})")
            elif refusal.remedy == "rename":
                if not self._rename(name, str(refusal.value), words):
                    return False
            else:
                changed = _change_rules(self.rules, refusal)
                if changed == self.rules:
                    return True  # another call has learnt it meanwhile
                self.rules = changed
                for option in ("reasoning_effort", "thinking_budget"):
                    self._left_out.pop(option, None)  # what it is sent as may be something else from now on
            self._prepare()
        return True

    def _rename(self, old: str, new: str, words: str) -> bool:
        if new in self._tried:
            return False  # it was refused under that name too
        self._tried.add(old)
        if new in (self.limit_field, self._renamed.get(old)):
            return True  # another call has learnt it meanwhile
        logger.warning("%s: %s is sent as %s from now on: refused by the provider (%s)", self._model, old, new, words)
        if old == self.limit_field:
            self.limit_field = new
        else:
            self.rules = msgspec.structs.replace(self.rules, rename={**self.rules.rename, old: new})
        return True


def _change_rules(rules: Rules, refusal: Refusal) -> Rules:
    """What is known of a model after a refusal."""
    name, value = refusal.name, refusal.value
    changed: dict[str, object] = {}
    if refusal.remedy == "exclusive":
        changed = {"exclusive": tuple(dict.fromkeys([*rules.exclusive, (name, str(value))]))}
    elif refusal.remedy == "at_most":
        changed = {"limits": {**rules.limits, "max_tokens": float(str(value))}}
    elif refusal.remedy == "one_of" and isinstance(value, tuple):
        changed = {"efforts": value}
    elif refusal.remedy == "beside_tools":
        changed = {"with_tools": {**rules.with_tools, name: value}}
    elif refusal.remedy == "adaptive":
        changed = {"reasoning": "adaptive", "takes_budget": False, "efforts": ("low", "medium", "high")}
    return msgspec.structs.replace(rules, **changed)


# --- what to do about an error -----------------------------------------------------------------------------------------

_TOO_LONG = re.compile(
    r"(?:max_tokens|max_completion_tokens)[^.]{0,40}?too large\D*\d+\D+?at most (?P<most>\d+)"
    r"|max_tokens: \d+ > (?P<allowed>\d+)"
    r"|maximum context length is (?P<context>\d+)[^\n]{0,120}completion",
    re.IGNORECASE,
)


def advise(error: ProviderCallError) -> ProviderCallError:
    """Of a parameter that the model refuses, the option that leaves it out; of an answer that is too long, a shorter one."""
    if error.status not in (400, 422) or error.kind == "content_filter":
        return error
    if (found := _TOO_LONG.search(str(error))) is not None:
        wanted = found["most"] or found["allowed"] or f"less than {found['context']}"
        return _add(error, f"the model takes no answers of so many tokens: give --max-tokens {wanted} (max_tokens=)")
    name, what = find_refused(error, PARAMETERS), ""
    if not name and not is_about_content(error):
        name, what = find_named(error, PARAMETERS), "this "
    if not name:
        return error
    option = f"omit={name}"
    if name == "max_tokens" and "max_completion_tokens" in str(error):
        option = "max_tokens_field=max_completion_tokens"
    another = "another one, or " if what else ""
    return _add(
        error, f"the model does not take {what}{name}: give {another}the provider option {option} (--option {option})"
    )


def _add(error: ProviderCallError, advice: str) -> ProviderCallError:
    # The way out comes first: the server's words may be long, and are cut where a line must be short.
    return ProviderCallError(
        f"{advice}. {error}",
        kind=error.kind,
        status=error.status,
        retry_after_seconds=error.retry_after_seconds,
        retryable=False,
    )
