"""What each family of models takes: which parameters it refuses, renames and bounds, by the model's name.

The facts are in `families.json`; nothing else in Themis knows the names of models.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

import msgspec


class Rules(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is known of a model.

    Args:
        rename: Parameters that it knows by another name.
        refuse: Parameters that it never takes.
        refuse_reasoning: Parameters that it does not take while it reasons.
        exclusive: Pairs of which it takes one.
        limits: The most that it takes of a parameter.
        reasoning: How it is told to reason: `effort`, `budget` (of tokens), `adaptive` (by effort alone), or empty.
        efforts: The words that it knows for an effort; empty for all.
        default_effort: What it does when nobody says; `none` where it does not reason then, empty where that is not known.
        no_reasoning: How an adaptive model is kept from reasoning: `omit` (it does not unless told), `disabled`, or `lowest`
            where it always does.
        takes_budget: An adaptive model that takes a budget too.
        shows_reasoning: An adaptive model that has to be asked for the text of its reasoning.
        with_tools: What has to be sent beside tools.
        tools_by_responses: It reasons beside tools only over OpenAI's Responses API.
        tool_choices: Which choices of tools it takes; empty for all.
        returns_reasoning: The field under which it wants its reasoning back beside tool calls.
    """

    rename: dict[str, str] = {}
    refuse: tuple[str, ...] = ()
    refuse_reasoning: tuple[str, ...] = ()
    exclusive: tuple[tuple[str, str], ...] = ()
    limits: dict[str, float] = {}
    reasoning: str = ""
    efforts: tuple[str, ...] = ()
    default_effort: str = ""
    no_reasoning: str = "omit"
    takes_budget: bool = False
    shows_reasoning: bool = False
    with_tools: dict[str, object] = {}
    tools_by_responses: bool = False
    tool_choices: tuple[str, ...] = ()
    returns_reasoning: str = ""


_ADDED_UP = ("refuse", "refuse_reasoning", "exclusive")
_ABOUT_IT = ("name", "match", "provider", "source", "date")


@lru_cache(maxsize=256)
def find_rules(model: str, provider: str = "") -> Rules:
    """What is known of a model by its name, whoever stands before it.

    Args:
        model: The id at its provider, such as `o3-mini`, `openai/o3-mini` or `us.anthropic.claude-opus-4-7-v1:0`.
        provider: Who serves it, for what is true of one address only.

    >>> rules = find_rules("openai/o3-mini", "openrouter")
    >>> rules.rename, "temperature" in rules.refuse
    ({'max_tokens': 'max_completion_tokens'}, True)
    >>> find_rules("llama-3.3-70b") == Rules()
    True
    """
    found: dict[str, object] = {}
    for pattern, providers, facts in _read_families():
        if (providers and provider not in providers) or not pattern.search(model.lower()):
            continue
        for name, value in facts.items():
            before = found.get(name)
            if name in _ADDED_UP and isinstance(before, list) and isinstance(value, list):
                found[name] = before + value
            elif name in ("rename", "limits") and isinstance(before, dict) and isinstance(value, dict):
                found[name] = {**before, **value}
            else:
                found[name] = value
    return msgspec.convert(found, Rules)


def families_date() -> str:
    """Of when the facts are."""
    return str(_read_file()["updated_at"])


@lru_cache(maxsize=1)
def _read_families() -> list[tuple[re.Pattern[str], tuple[str, ...], Mapping[str, object]]]:
    return [
        (
            re.compile(family["match"]),
            tuple(family.get("provider", ())),
            {name: value for name, value in family.items() if name not in _ABOUT_IT},
        )
        for family in _read_file()["families"]
    ]


@lru_cache(maxsize=1)
def _read_file() -> dict[str, list[dict[str, str]]]:
    content: dict[str, list[dict[str, str]]] = msgspec.json.decode(
        Path(__file__).with_name("families.json").read_bytes()
    )
    return content
