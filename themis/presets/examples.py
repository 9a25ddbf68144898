"""Where a benchmark's examples come from and which are shown, put before its prompt."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from themis.exceptions import ConfigurationError, DatasetError
from themis.generation.few_shot import Examples, FewShotTemplate, make_examples
from themis.generation.templates import PromptTemplate
from themis.presets.benchmarks import BenchmarkPreset
from themis.presets.fields import Draw, Row
from themis.presets.protocols import FewShot


def with_examples(
    preset: BenchmarkPreset, *, prompt: PromptTemplate | None = None, shots: int | None = None
) -> PromptTemplate:
    """A benchmark's prompt, or another one, with as many examples before it as its protocol or `shots` says.

    Raises:
        ConfigurationError: The benchmark knows no examples, or fewer than are wanted; says what to do.
        DatasetError: They cannot be had.
    """
    template = preset.prompt_template if prompt is None else prompt
    few_shot = preset.few_shot
    count = shots if shots is not None else 0 if few_shot is None else few_shot.count
    if not count:
        # What introduces the examples tells how to answer, too.
        if few_shot is None or not few_shot.introduction or prompt is not None:
            return template
        return replace(template, template=f"{few_shot.introduction}{few_shot.separator}{template.template}")
    if few_shot is None:
        raise ConfigurationError(
            f"benchmark {preset.name!r} knows no examples to show before a question, as its dataset has none; leave shots "
            "(--shots) out, or write examples into a prompt of your own (--prompt)"
        )
    if type(template) is not PromptTemplate:
        raise ConfigurationError(
            f"a prompt of the class {type(template).__name__} is filled by code, which examples cannot be put before; give "
            "shots=0, or a text as the prompt"
        )
    groups = _choose(preset.load_examples(), few_shot, count)
    if short := _find_short(groups, count, preset):
        raise DatasetError(short)
    # Examples are asked as the row is, unless the protocol has a way of its own for its own prompt.
    own = few_shot.question if prompt is None else None
    question = template if own is None else PromptTemplate(f"{preset.name}-example", own)
    reply = PromptTemplate(f"{preset.name}-reply", few_shot.reply)
    return FewShotTemplate(
        name=template.name,
        template=template.template,
        metadata=template.metadata,
        examples=Examples(
            count=count,
            groups={
                group: make_examples(rows, asked=template, question=question, reply=reply)
                for group, rows in groups.items()
            },
            group_field=few_shot.group,
            introduction=few_shot.introduction,
            separator=few_shot.separator,
            as_messages=few_shot.as_messages,
        ),
    )


def _choose(rows: Iterable[Row], few_shot: FewShot, count: int) -> dict[str, Sequence[Row]]:
    """One more than is shown of each group, for a row that is an example itself: the first ones, or a draw."""
    most = count + 1
    if few_shot.group is None and few_shot.seed is None:
        return {"": list(itertools.islice(rows, most))}
    groups: dict[str, list[Row]] = {}
    for row in rows:
        found = groups.setdefault("" if few_shot.group is None else str(row.get(few_shot.group)), [])
        if few_shot.seed is not None or len(found) < most:
            found.append(row)
    if few_shot.seed is None:
        return dict(groups)
    return {group: Draw("examples", few_shot.seed, group).shuffled(found)[:most] for group, found in groups.items()}


def _find_short(groups: Mapping[str, Sequence[Row]], count: int, preset: BenchmarkPreset) -> str:
    """Why there are too few examples, if there are; of the shipped rows there may be fewer, since they measure nothing."""
    least = min(groups, key=lambda group: len(groups[group]), default="")
    found = len(groups.get(least, ()))
    if found >= count or (found and getattr(preset, "sample", False)):
        return ""
    of_group = f" of {least!r}" if least else ""
    return (
        f"{preset.name}: {count} examples are to be shown, and there are {found}{of_group}; --shots {found} (shots={found}) "
        "shows those"
    )
