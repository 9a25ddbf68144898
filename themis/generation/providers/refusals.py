"""Reads out of a provider's refusal which parameter of the request it was for, and what is to be done about it.

Nothing here acts. Every vendor and gateway has words of its own; what they have in common is that the parameter is named, by
`param` or in the sentence, and that some word says that it is not taken.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import NamedTuple

from themis.core.registry import snake_case
from themis.exceptions import ProviderCallError


class Refusal(NamedTuple):
    """What a provider does not take, and the remedy.

    Args:
        name: The parameter as it was sent.
        remedy: `leave_out`, `rename` (to `value`), `exclusive` (with the parameter `value`), `at_most` (`value`), `one_of` (the
            words `value`), `beside_tools` (send `value` where there are tools) or `adaptive` (think by effort, not by budget).
        value: What the remedy needs.
    """

    name: str
    remedy: str
    value: object = None


# What can be left out of a request without asking something else.
_CAN_BE_LEFT_OUT = frozenset(
    {
        *("temperature", "top_p", "top_k", "min_p", "seed", "random_seed", "stop", "stop_sequences", "logprobs"),
        *("top_logprobs", "logit_bias", "presence_penalty", "frequency_penalty", "tool_choice", "parallel_tool_calls"),
        *("reasoning_effort", "reasoning", "thinking", "output_config"),
    }
)
_LIMITS = ("max_tokens", "max_completion_tokens")
# All that a refusal may name, with what says how to answer.
PARAMETERS = _CAN_BE_LEFT_OUT | {*_LIMITS, "response_format", "grammar"}
# Words of everyday language, which are taken for a parameter only where they are marked as one.
# Where a place begins that lies in what is said, in `param` or at the beginning of a sentence.
_CONTENT = re.compile(
    r"(?:\d+: )?['\"`]?(?:messages|tools|system|input|prompt|functions)(?:[.\[]|['\"`]?(?:: |$))", re.IGNORECASE
)
_EVERYDAY = frozenset({"stop", "seed", "reasoning", "thinking", "temperature"})

_REFUSES = re.compile(
    r"unsupported|not support|only the default|deprecated|unknown|unrecogni[sz]ed|unexpected|not permitted|extra inputs"
    r"|(?:is|are) not allowed|only [\w.' ]{1,12} is allowed|may only be set|incompatible|cannot be (?:used|set)"
    r"|not available|not valid for|(?:or|must be) unset|supported values are",
    re.IGNORECASE,
)
# Words that gateways use, and others for a value that is out of range: of that the user is told.
_REFUSES_OTHERWISE = re.compile(
    r"n['’]t support|(?:not|n['’]t) (?:be )?(?:accept|recogni[sz]e|implement)|(?:can['’]t|can not|may not) be (?:used|set)"
    r"|(?:invalid|illegal|no such|extraneous) (?:parameter|argument|field|key|property)|not a valid (?:parameter|argument|field)"
    r"|(?:is|are) (?:illegal|disallowed|forbidden|invalid for)|only [\w.' ]{1,12} is accepted"
    r"|(?:must|has to|should) be 1(?:\.0)?\b(?!\.\d| ?[-,<]| or | to )",
    re.IGNORECASE,
)
_OUT_OF_RANGE = re.compile(
    r"between|\brange\b|\b(?:less|greater|more|lower|higher|smaller|larger) than|at (?:most|least)|above|below|[<>≤≥]"
    r"|\bin(?: the)?(?: interval)? ?[\[(]|m(?:in|ax)imum",
    re.IGNORECASE,
)
_INSTEAD = re.compile(
    r"['\"`]?(?P<old>\w+)['\"`]?[^.'\"`]{0,80}\.?\s+(?:please )?use ['\"`](?P<new>\w+)['\"`] instead", re.I
)
_INSTEAD_OF = re.compile(r"use ['\"`]?(?P<new>\w+)['\"`]? instead of ['\"`]?(?P<old>\w+)", re.I)
_NOT_BOTH = re.compile(
    r"['\"`]?(?P<one>\w+)['\"`]? and ['\"`]?(?P<other>\w+)['\"`]? cannot both be (?:specified|set|used)", re.I
)
_AT_MOST = re.compile(
    r"(?:max_tokens|max_completion_tokens)[^.]{0,40}?too large\D*\d+\D+?at most (?P<most>\d+)|max_tokens: \d+ > (?P<allowed>\d+)"
    r"|\bmax_(?:completion_)?tokens\W+must be less than or equal to \W?(?P<below>\d+)"
    r"|range of max_(?:completion_)?tokens is \[\d+, ?(?P<last>\d+)\]",
    re.IGNORECASE,
)
_ONE_OF = re.compile(r"supported values are:? (?P<words>[^.]+)", re.IGNORECASE)
_TOOLS = re.compile(r"set ['\"`]?(?P<name>\w+)['\"`]? to ['\"`](?P<value>\w+)['\"`]", re.IGNORECASE)
_BUDGET = re.compile(r"thinking\.type\.enabled\W{0,3} is not supported", re.IGNORECASE)
_NO_SWITCH = re.compile(r"thinking\.type\.\w+\W{0,3} is not supported", re.IGNORECASE)


def read_refusal(error: ProviderCallError, sent: Mapping[str, object]) -> Refusal | None:
    """What the error of a call says about a parameter; None where it says nothing that could be mended.

    Args:
        error: Of status 400 or 422; its `parameter` is what the provider named.
        sent: The fields of the request.

    >>> said = "Unsupported value: 'temperature' does not support 0 with this model. Only the default (1) value is supported."
    >>> read_refusal(ProviderCallError(said, kind="bad_request", status=400), {"temperature": 0.0})
    Refusal(name='temperature', remedy='leave_out', value=None)
    """
    if error.status not in (400, 422) or error.kind != "bad_request":
        return None
    said = own_words(error)
    return _read_marked(said, sent) or _read_single(said, find_refused(error, sent), sent)


def find_refused(error: ProviderCallError, sent: Collection[str]) -> str:
    """The parameter that the error says is not taken: as the provider names it, or the first of those sent that stands in the
    sentence; empty where it says nothing of the kind.

    Args:
        error: Of a call.
        sent: The names of the request's fields.
    """
    said = own_words(error)
    if not _is_refusal(said) or is_about_content(error):
        return ""
    if given := find_named(error, sent):
        return given
    known = [name for name in sent if name in PARAMETERS]
    mentioned = [(place.start(), name) for name in known if (place := _find_mention(name, said)) is not None]
    return min(mentioned)[1] if mentioned else ""


def _is_refusal(said: str) -> bool:
    if _REFUSES.search(said) is not None:
        return True
    return _REFUSES_OTHERWISE.search(said) is not None and _OUT_OF_RANGE.search(said) is None


def is_about_content(error: ProviderCallError) -> bool:
    """Whether the place that is named lies in messages or tools, whose words are no parameters.

    >>> said = "Invalid schema for function 'seed': 'additionalProperties' is not supported"
    >>> is_about_content(ProviderCallError(said, kind="bad_request", status=400, parameter="tools[0].function.parameters"))
    True
    """
    return any(_CONTENT.match(named) is not None for named in (error.parameter, own_words(error)))


def find_named(error: ProviderCallError, sent: Collection[str]) -> str:
    """The field of a request that the error names apart from its words, whatever is said of it."""
    named = error.parameter
    spellings = (named, snake_case(named), named.replace(".", "_"), re.split(r"[.\[]", named)[0])
    return next((given for given in spellings if given and given in sent), "")


def own_words(error: ProviderCallError) -> str:
    """What the server said: before the status stands the address, whose words say nothing."""
    return str(error).partition(" answered ")[2] or str(error)


def _read_marked(said: str, sent: Mapping[str, object]) -> Refusal | None:
    """The sentences that say what to do. A remedy that the request has already is none."""
    if (found := _AT_MOST.search(said)) is not None:
        most = int(next(filter(None, found.groups())))
        over = [name for name in _LIMITS if isinstance(value := sent.get(name), int) and value > most]
        return Refusal(over[0], "at_most", most) if over else None
    if "tools" in sent and (found := _TOOLS.search(said)) is not None and sent.get(found["name"]) != found["value"]:
        return Refusal(found["name"], "beside_tools", found["value"])
    thinking = sent.get("thinking")
    if isinstance(thinking, Mapping) and _BUDGET.search(said) and thinking.get("type") == "enabled":
        return Refusal("thinking", "adaptive")
    if thinking is not None and _NO_SWITCH.search(said):
        return Refusal("thinking", "leave_out")
    for found in (*_INSTEAD.finditer(said), *_INSTEAD_OF.finditer(said)):
        if found["old"] in sent and found["new"] not in sent:
            return Refusal(found["old"], "rename", found["new"])
    if (found := _NOT_BOTH.search(said)) is not None and {found["one"], found["other"]} <= sent.keys():
        return Refusal(found["one"], "exclusive", found["other"])
    return None


def _read_single(said: str, name: str, sent: Mapping[str, object]) -> Refusal | None:
    if name in _LIMITS:
        # Without a limit nobody knows what an answer may cost.
        return Refusal(name, "rename", _LIMITS[1 - _LIMITS.index(name)])
    if name == "reasoning_effort" and (found := _ONE_OF.search(said)) is not None:
        words = tuple(word for word in re.findall(r"\w+", found["words"]) if word != "and")
        return Refusal(name, "one_of", words) if sent[name] not in words else None
    return Refusal(name, "leave_out") if name in _CAN_BE_LEFT_OUT else None


def _find_mention(name: str, said: str) -> re.Match[str] | None:
    spelled = rf"(?:{name}|{_camel_case(name)})"
    if name in _EVERYDAY:
        marked = (
            rf"['\"`\[]{spelled}['\"`\]]|\b{spelled}\s*[:=]|: {spelled}\b(?! \w)"
            rf"|\b{spelled}(?= (?:is|may|cannot|can['’]t|can not|does|and|must be|has to|field|parameter|argument)\b)"
            rf"|\b(?:parameter|argument|field|key|property|accept|support) {spelled}\b"
        )
        return re.search(marked, said, re.IGNORECASE)
    return re.search(rf"\b{spelled}\b", said)


def _camel_case(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)
