"""One sample of a stored run with everything that is stored of it, in JSON's types and without secrets.

What the API answers, what pages draw and what `themis show --sample` prints are this.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from themis.core.continuations import ScoredContinuation, list_scored
from themis.core.entities import EvaluationRecord, GenerationRecord, ModelError, ModelOutput
from themis.core.messages import Message
from themis.core.redaction import Redactor
from themis.core.transcripts import (
    AttemptVerdict,
    ShownPart,
    describe_ending,
    list_answered,
    list_asked,
    list_turns,
    verdicts_by_attempt,
    without_retold,
)
from themis.storage.queries import RunReader
from themis.storage.runs import Attachment
from themis.storage.search import Score, scores_of

JSONObject = dict[str, Any]


def read_sample(reader: RunReader, item_id: str, redactor: Redactor) -> JSONObject | None:
    """A sample with what was asked, each attempt in its parts with its verdicts, and the scores; None where it has no answer.

    Args:
        reader: Of the run.
        item_id: The sample.
        redactor: Takes secrets out.
    """
    found = reader.record(item_id)
    if found is None:
        return None
    judged = None if reader.evaluation is None else reader.evaluation_of(reader.evaluation, item_id)
    return _format_sample(reader, *found, judged, scores_of(reader, found[0]), redactor)


def why_missing(reader: RunReader, item_id: str) -> str:
    """Why there is nothing to show of a sample, as the end of a sentence."""
    is_planned = reader.position(item_id) is not None
    return "has no answer yet" if is_planned else f"is not in run {reader.metadata.run_id}"


def _format_sample(
    reader: RunReader,
    position: int,
    record: GenerationRecord,
    judged: EvaluationRecord | None,
    scores: list[Score],
    redactor: Redactor,
) -> JSONObject:
    task, attempts = record.task, _number_attempts(record)
    verdicts = verdicts_by_attempt(judged.scores if judged is not None else (), list(attempts))
    return {
        "id": str(task.metadata.get("dataset_id", "")),
        "position": position,
        "prompt": redactor.values(task.prompt.text),
        "messages": redactor.data(list_asked(task)),
        "response": None if record.output is None else redactor.values(record.output.text),
        "reference": None if task.reference is None else redactor.data(task.reference.value),
        "row": redactor.data(task.prompt.context),
        "scores": {score.metric: score.value for score in scores if score.value is not None},
        "outcomes": {score.metric: score.outcome for score in scores},
        "verdicts": [
            {
                "metric": score.metric_name,
                "value": score.value,
                "details": redactor.data(score.details),
                "metadata": redactor.data(score.metadata),
            }
            for score in (judged.scores if judged is not None else ())
        ],
        "failures": [redactor.text(reason) for reason in (judged.failures if judged is not None else ())],
        "attempts": [
            {
                "attempt": number,
                **_format_attempt(attempt, _steps_of(reader, position, number, attempt), redactor),
                "verdicts": [_format_verdict(verdict, redactor) for verdict in verdicts[number]],
            }
            for number, attempt in attempts.items()
        ],
        "metrics": redactor.data({k: v for k, v in record.metrics.items() if k != "attempt_outcomes"}),
    }


def _number_attempts(record: GenerationRecord) -> dict[int, GenerationRecord]:
    """The attempts by their numbers, which have gaps while some of them are not made yet."""
    attempts = record.attempts or [record]
    if len(attempts) == 1:
        return {0: attempts[0]}
    return {int(one.task.metadata.get("attempts", place)): one for place, one in enumerate(attempts)}


def _steps_of(reader: RunReader, position: int, number: int, attempt: GenerationRecord) -> list[Message]:
    """What was said in an attempt that has no answer, before it failed."""
    if attempt.error is None:
        return []
    messages = (step.message for step in reader.steps(position, number))
    return [
        {name: value for name, value in message.items() if name != "state"}
        for message in messages
        if not message.get("over")
    ]


def _format_attempt(attempt: GenerationRecord, steps: list[Message], redactor: Redactor) -> JSONObject:
    output = attempt.output
    return {
        "response": None if output is None else redactor.values(output.text),
        **_format_parts(output, redactor),
        "ending": redactor.text(describe_ending(output, attempt.task.sampling.max_tokens)),
        "transcript": redactor.data(steps if output is None else output.transcript),
        "usage": None if output is None else output.usage,
        "raw": None if output is None else redactor.data(output.raw),
        "continuations": [_format_scored(one, attempt, redactor) for one in list_scored(attempt)],
        "error": format_error(attempt.error, redactor),
        "metrics": redactor.data(attempt.metrics),
    }


def _format_parts(output: ModelOutput | None, redactor: Redactor) -> JSONObject:
    said = output or ModelOutput("")
    return {
        "reasoning": None if said.reasoning is None else redactor.values(said.reasoning),
        "tool_calls": redactor.data([call.to_plain() for call in said.tool_calls]),
        "refusal": None if said.refusal is None else redactor.values(said.refusal),
        "finish_reason": said.finish_reason,
        "logprobs": said.logprobs,
        "parts": redactor.data(said.parts),
    }


def format_error(error: ModelError | None, redactor: Redactor) -> JSONObject | None:
    return None if error is None else {"kind": error.kind, "message": redactor.text(error.message)}


def _format_verdict(verdict: AttemptVerdict, redactor: Redactor) -> JSONObject:
    return {**vars(verdict), "reason": redactor.values(verdict.reason)}


def _format_scored(one: ScoredContinuation, attempt: GenerationRecord, redactor: Redactor) -> JSONObject:
    return {
        # Most stand after the prompt, which is shown anyway.
        "context": None
        if one.pair.context == (attempt.task.prompt.text or None)
        else redactor.values(one.pair.context),
        "text": redactor.values(one.pair.text),
        "logprob": one.found.logprob,
        "tokens": one.found.tokens,
        "greedy": one.found.greedy,
        "is_baseline": one.is_baseline,
        "is_likeliest": one.is_likeliest,
    }


# --- what was said in it ------------------------------------------------------------------------------------------------


def messages_of_attempt(attempt: JSONObject) -> list[Message]:
    """What was said after the prompt in an attempt that `read_sample` has told; nothing where it has no answer.

    Args:
        attempt: Of the sample's.
    """
    if attempt["transcript"] or attempt["response"] is None:
        return list(attempt["transcript"])
    text, parts = attempt["response"], attempt["parts"]
    message: Message = {"role": "assistant", "content": text}
    if parts:
        message["content"] = [{"type": "text", "text": text}, *parts]
    return [{**message, **{name: attempt[name] for name in ("reasoning", "refusal", "tool_calls") if attempt[name]}}]


def messages_before(sample: JSONObject) -> list[Message]:
    """What was asked, without what the attempts tell themselves.

    Args:
        sample: As `read_sample` has told it.
    """
    return without_retold(sample["messages"], [messages_of_attempt(attempt) for attempt in sample["attempts"]])


# --- images and files ---------------------------------------------------------------------------------------------------


def list_attached(sample: JSONObject) -> list[ShownPart]:
    """The images and files of a sample whose content is at hand, each once for every type that it is given.

    Args:
        sample: As `read_sample` has told it.
    """
    said = [*sample["messages"], *(message for one in sample["attempts"] for message in messages_of_attempt(one))]
    return list({(part.digest, part.media_type): part for part in _walk_parts(said) if part.digest}.values())


def find_attachment(reader: RunReader, digest: str, item_id: str | None = None) -> Attachment | None:
    """The content of an image or a file that messages name.

    Args:
        reader: Of the run.
        digest: SHA-256 of the content, in hexadecimal.
        item_id: The sample, where the content stands in its messages.
    """
    stored = reader.attachment(digest)
    found = None if stored is not None or item_id is None else reader.record(item_id)
    if found is None:
        return stored
    record = found[1]
    said = [*list_asked(record.task), *(one for a in record.attempts for one in list_answered(a.output))]
    inline = [part for part in _walk_parts(said) if part.digest == digest and part.content is not None]
    # Where it is called several things, it is drawn if any of them is a picture.
    best = min(inline, key=lambda part: not part.is_picture, default=None)
    return None if best is None else Attachment(digest, best.media_type, best.content or b"")


def _walk_parts(messages: list[Message]) -> Iterator[ShownPart]:
    for turn in list_turns(messages):
        yield from turn.parts
        for call in turn.calls:
            yield from call.result.parts if call.result is not None else ()
