"""Worked examples before the question: a prompt template that shows each row some, as one text or as turns of a chat."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Self

import msgspec

from themis.core.codec import digest
from themis.core.entities import PromptSpec
from themis.generation.templates import PromptTemplate, TemplateRenderingError

# Under this name the examples stand in a template's stored form.
STORED_AS = "examples"


class Example(msgspec.Struct, frozen=True):
    """A question with its reply; `known_by` tells whether a row is this example itself."""

    known_by: str
    question: str
    reply: str


class Examples(msgspec.Struct, frozen=True, kw_only=True):
    """What may stand before a question, by the group a row is of (all are of the group "" where there are none).

    Each group has one more than is shown where there is one, for a row that is an example itself.
    """

    count: int
    groups: dict[str, list[Example]]
    group_field: str | None = None
    introduction: str = ""
    separator: str = "\n\n"
    as_messages: bool = False


@dataclass(frozen=True, kw_only=True)
class FewShotTemplate(PromptTemplate):
    """A template with examples before the question; a row is never its own example.

    >>> shown = Examples(count=1, groups={"": [Example("", "1+1=", "2")]})
    >>> FewShotTemplate(name="sums", template="{question}=", examples=shown).fill({"question": "3+4"})
    '1+1=2\\n\\n3+4='
    """

    examples: Examples = field(hash=False)

    @cached_property
    def spec(self) -> PromptSpec:
        return PromptSpec(
            self.name, self.template, {**(self.metadata or {}), STORED_AS: msgspec.to_builtins(self.examples)}
        )

    def fill(self, row: Mapping[str, object]) -> str:
        """The examples and the question as one text; as turns of a chat, the question alone."""
        question = super().fill(row)
        if self.examples.as_messages:
            return question
        shown = [example.question + example.reply for example in self._choose(row, question)]
        return self.examples.separator.join([*self._introduce(row), *shown, question])

    def messages(self, row: Mapping[str, object]) -> list[dict[str, str]] | None:
        """The examples and the question as turns of a chat, where that is how they are shown."""
        if not self.examples.as_messages:
            return None
        question = super().fill(row)
        turns = [
            {"role": role, "content": text}
            for example in self._choose(row, question)
            for role, text in (("user", example.question), ("assistant", example.reply.strip()))
        ]
        turns.append({"role": "user", "content": question})
        turns[0]["content"] = self.examples.separator.join([*self._introduce(row), turns[0]["content"]])
        return turns

    def _introduce(self, row: Mapping[str, object]) -> list[str]:
        return [self._introduction.fill(row)] if self.examples.introduction else []

    @cached_property
    def _introduction(self) -> PromptTemplate:
        return PromptTemplate(f"{self.name}-introduction", self.examples.introduction)

    def _choose(self, row: Mapping[str, object], question: str) -> Sequence[Example]:
        shown = self.examples
        group = "" if shown.group_field is None else str(row.get(shown.group_field))
        if group not in shown.groups:
            raise TemplateRenderingError(
                f"there are no examples whose {shown.group_field} is {group!r}, only of {', '.join(sorted(shown.groups))}; "
                "shots=0 (--shots 0) asks without examples"
            )
        itself = digest(question)
        return [example for example in shown.groups[group] if example.known_by != itself][: shown.count]

    @classmethod
    def from_spec(cls, spec: PromptSpec) -> Self | None:
        """The template that a stored one was; None where it had no examples."""
        if STORED_AS not in spec.metadata:
            return None
        return cls(
            name=spec.name,
            template=spec.template,
            metadata={"as_written": True},
            examples=msgspec.convert(spec.metadata[STORED_AS], Examples),
        )


def make_examples(
    rows: Sequence[Mapping[str, object]], *, asked: PromptTemplate, question: PromptTemplate, reply: PromptTemplate
) -> list[Example]:
    """Rows as examples: `asked` is how a row itself is asked, by which it is known again where it has those fields."""
    return [
        Example(
            digest(asked.fill(row)) if all(name in row for name in asked.fields) else "",
            question.fill(row),
            reply.fill(row),
        )
        for row in rows
    ]
