"""Answers that take several steps: the model calls tools, or somebody goes on talking to it.

An episode is one such answer. What happens in it is a play: a generator that yields what is to be done next (ask the model,
call a tool, let the user speak) and receives what came of it. It must be pure: given the same outcomes it yields the same
actions, so that an episode that was cut off goes on by playing its stored steps through it again. `EpisodeRunner` stands
between a driver and the engine: every model call of every episode goes through the engine like any other, every step is
committed before the next is made.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypeAlias

from themis.core.entities import SAMPLE_LIMITS, GenerationRecord, GenerationTask, ModelError, ModelOutput, Result, Step
from themis.core.messages import PROVIDER_DATA, Message, ToolCall, mend_text, read_text
from themis.core.registry import Registry
from themis.exceptions import ConfigurationError, ToolError
from themis.generation.attempts import PENDING, Request
from themis.generation.engine import Engine

# How long to wait for tools where no call is under way that could be waited for instead.
_IDLE_SECONDS = 0.002
# A tool whose sample has no time left gets this long all the same: most take less.
_LEAST_SECONDS = 1.0


# --- what a play yields -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AskModel:
    """Asks the subject for its next message in the conversation so far; receives the `ModelOutput`."""


@dataclass(frozen=True, slots=True)
class CallTool:
    """Calls a tool; receives its message."""

    call: ToolCall


@dataclass(frozen=True, slots=True)
class LetUserSpeak:
    """Asks whoever plays the user for the next message, or for None where the conversation is over; receives the message."""

    speak: Callable[[Sequence[Message]], UserTurn]


@dataclass(frozen=True, slots=True)
class Tell:
    """Adds a message to the conversation that nobody has to be asked for; receives it."""

    message: Message


@dataclass(frozen=True, slots=True)
class UserTurn:
    """What a user said, and what asking for it took; without a text the conversation is over."""

    text: str | None
    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost_usd: float | None = 0.0


_NOTHING_SPENT = UserTurn(None)
EpisodeAction: TypeAlias = "AskModel | CallTool | LetUserSpeak | Tell"
Play: TypeAlias = Generator[EpisodeAction, Any, "dict[str, object] | None"]


class Scene(Protocol):
    """Starts the play of one sample; what the play returns is kept with the answer."""

    def __call__(self, row: Mapping[str, object]) -> Play: ...


# How samples are played other than by a prompt alone, by the setting that asks for it.
SCENES: Registry[Callable[..., Scene]] = Registry(
    "scene",
    {"script": "themis.memory.scenes:ScriptScene", "user": "themis.generation.users:SimulatedUser"},
)


def answer_with_tools() -> Play:
    """Asks the model until it calls no more tools. The play of a sample that has tools and nobody to talk to."""
    while True:
        output: ModelOutput = yield AskModel()
        if not output.tool_calls:
            return None
        for call in output.tool_calls:
            yield CallTool(call)


# --- one answer under way -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class EpisodeLimits:
    """The most of one sample, all its steps together."""

    max_turns: int = 10
    max_sample_tokens: int | None = None
    max_sample_seconds: float | None = None
    max_sample_usd: float | None = None


class RunningCall(Protocol):
    """A tool's call under way, whose time is watched by whoever asks whether it is over."""

    done: Future[Message]

    def is_over(self) -> bool: ...


class ToolSession(Protocol):
    """The tools of one sample, with their state."""

    def begin(self, call: ToolCall, within: float = math.inf) -> RunningCall: ...
    def state(self) -> object | None: ...
    def close(self) -> None: ...


class Toolset(Protocol):
    """The tools of a run."""

    schemas: list[dict[str, Any]]

    def describe(self) -> object: ...
    def open(self, row: Mapping[str, object], state: object = None) -> ToolSession: ...
    def close(self) -> None: ...


@dataclass
class Episode:
    """One answer under way: its play, what was said so far, and what that took."""

    request: Request
    play: Play
    opening: list[Message]
    tools: ToolSession
    steps: list[Step] = field(default_factory=list)
    said: list[Message] = field(default_factory=list)
    last: ModelOutput | None = None
    kept: dict[str, object] = field(default_factory=dict)
    cost_is_known: bool = True
    # What all steps took together, by the limits that it is held to.
    spent: dict[str, float] = field(default_factory=lambda: dict.fromkeys(SAMPLE_LIMITS, 0.0))

    @property
    def place(self) -> tuple[int, int]:
        return self.request.position, self.request.attempt

    def replay(self, stored: Sequence[Step]) -> EpisodeAction | None:
        """Plays the stored steps again; what the play wants next, None where it is over."""
        action = self._advance(None)
        for step in stored:
            while isinstance(action, Tell):
                action = self._advance(self._say(dict(action.message)))
            if action is None:
                break
            self._add(step)
            action = self._advance(self._outcome(action, step.message))
        return action

    def on_answer(self, output: ModelOutput) -> EpisodeAction | None:
        """What the play wants after an answer of the subject; None where it is over."""
        output = mend_calls(output, self.said)
        self.last = output
        self._say(output.to_message())
        return self._advance(output)

    def on_message(self, action: EpisodeAction, message: Message) -> EpisodeAction | None:
        """What the play wants after the outcome of another action; None where it is over."""
        return self._advance(self._outcome(action, message))

    def _outcome(self, action: EpisodeAction, message: Message) -> object:
        if isinstance(action, LetUserSpeak) and message.get("over"):
            return None
        self._say({name: value for name, value in message.items() if name not in _NOT_SAID})
        if isinstance(action, AskModel):
            self.last = _read_answer(message)
            return self.last
        return message

    def _say(self, message: Message) -> Message:
        self.said.append(message)
        return message

    def _advance(self, outcome: object) -> EpisodeAction | None:
        try:
            return self.play.send(outcome)
        except StopIteration as end:
            self.kept = end.value or {}
            return None

    def add_step(self, kind: str, message: Message, **took: Any) -> Step:
        position, attempt = self.place
        step = Step(position, attempt, len(self.steps), kind, message, **took)
        self._add(step)
        return step

    def _add(self, step: Step) -> None:
        self.steps.append(step)
        self.spent["max_turns"] += step.kind == "answer"
        self.spent["max_sample_tokens"] += step.prompt_tokens + step.completion_tokens
        self.spent["max_sample_seconds"] += step.seconds
        self.spent["max_sample_usd"] += step.cost_usd or 0.0
        self.cost_is_known &= step.cost_usd is not None

    def limit_reached(self, limits: EpisodeLimits) -> str:
        """The limit that no further call of the model keeps, if there is one.

        Raises:
            ConfigurationError: Whether there is one cannot be told.
        """
        if limits.max_sample_usd is not None and not self.cost_is_known:
            raise ConfigurationError(
                "max_sample_usd needs to know what every step costs, and one does not tell: name a price (THEMIS_PRICES), let "
                "whoever answers say cost_usd, or bound samples by max_turns or max_sample_tokens"
            )
        for name, spent in self.spent.items():
            most = getattr(limits, name)
            if most is not None and spent >= most:
                return name
        return ""

    def seconds_left(self, limits: EpisodeLimits) -> float:
        """How long a tool that begins now may take: what is left of the sample's time, and a moment even if nothing is."""
        most = limits.max_sample_seconds
        return math.inf if most is None else max(_LEAST_SECONDS, most - self.spent["max_sample_seconds"])

    def next_task(self, schemas: list[dict[str, Any]]) -> GenerationTask:
        """What the model is asked next: the conversation so far, of which the prompt is what the user said last."""
        task = self.request.task
        metadata = {**task.metadata, "messages": [*self.opening, *self.said]}
        if schemas:
            metadata["tools"] = schemas
        asked = next((message["content"] for message in reversed(self.said) if message["role"] == "user"), None)
        prompt = task.prompt if asked is None else replace(task.prompt, text=read_text(asked))
        return replace(task, prompt=prompt, metadata=metadata)

    def answer(self, finish_reason: str | None = None) -> ModelOutput:
        """The whole answer: the model's last message, and how it came to it."""
        last = self.last or ModelOutput("")
        state = self.tools.state()
        raw = {**(last.raw if isinstance(last.raw, Mapping) else {}), **self.kept}
        if state is not None:
            raw["state"] = state
        return replace(
            last,
            raw=raw or None,
            transcript=tuple(self.said),
            finish_reason=finish_reason or last.finish_reason,
        )


def mend_calls(output: ModelOutput, said: Sequence[Message]) -> ModelOutput:
    """An answer that can be sent back: every call has an id of its own, and no text half of a character.

    Args:
        output: As it came.
        said: What was said before.

    >>> answer = ModelOutput("", tool_calls=(ToolCall("add", id="1"), ToolCall("add", id="1"), ToolCall("add")))
    >>> [call.id for call in mend_calls(answer, []).tool_calls]
    ['1', 'call00002', 'call00003']
    """
    text, reasoning = mend_text(output.text), output.reasoning and mend_text(output.reasoning)
    if text is not output.text or reasoning is not output.reasoning:
        output = replace(output, text=text, reasoning=reasoning)
    if not output.tool_calls:
        return output
    taken = {call.get("id") for message in said for call in message.get("tool_calls", ())} | {""}
    before, calls = len(taken) - 1, []
    renamed: dict[str, str] = {}
    for number, call in enumerate(output.tool_calls, start=before + 1):
        if call.id in taken:
            # Nine letters and digits, which is what the strictest take.
            new = next(one for one in (f"call{n:05d}" for n in itertools.count(number)) if one not in taken)
            renamed.setdefault(call.id, new)
            call = replace(call, id=new)
        taken.add(call.id)
        calls.append(call)
    return replace(output, tool_calls=tuple(calls), raw=_rename_extras(output.raw, renamed)) if renamed else output


def _rename_extras(raw: object, renamed: Mapping[str, str]) -> object:
    """What a provider wants back with its calls, under the ids that they have now."""
    kept = raw.get(PROVIDER_DATA) if isinstance(raw, Mapping) else None
    if not isinstance(raw, Mapping) or not isinstance(kept, Mapping) or "extra_content" not in kept:
        return raw
    extras = {renamed.get(name, name): extra for name, extra in kept["extra_content"].items()}
    return {**raw, PROVIDER_DATA: {**kept, "extra_content": extras}}


# Of the message of a step, what nobody says: a tool's state, and what an answer is beside its message.
_NOT_SAID = ("state", "answer")
_OF_ANSWER = ("raw", "usage", "finish_reason", "logprobs", "cost_usd")


def _write_answer(output: ModelOutput) -> Message:
    """An answer as the message of a step, with all that `_read_answer` needs."""
    rest = {name: value for name in _OF_ANSWER if (value := getattr(output, name)) is not None}
    return {**output.to_message(), "answer": rest}


def _read_answer(message: Message) -> ModelOutput:
    """A stored message of the model, as the answer it was."""
    content = message.get("content")
    parts = [part for part in content if part.get("type") != "text"] if isinstance(content, list) else []
    return ModelOutput(
        read_text(content),
        reasoning=message.get("reasoning"),
        refusal=message.get("refusal"),
        tool_calls=tuple(ToolCall(**call) for call in message.get("tool_calls", ())),
        parts=tuple(parts),
        **message.get("answer", {}),
    )


# --- all of a run's -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class _Doing:
    """What a tool or a user is asked for beside the engine: a tool's message, or a user's turn."""

    episode: Episode
    action: CallTool | LetUserSpeak
    began: float
    done: Future[Message] | Future[UserTurn]
    is_over: Callable[[], bool]


class EpisodeRunner:
    """Plays episodes through an engine: many at once, each step committed before the next.

    Args:
        engine: Asks the subject.
        scene: How a sample is played; by default the model is asked until it calls no more tools.
        toolset: What the model may call.
        limits: Of one sample.
        commit: Makes steps durable.
        stored: The stored steps of an answer that was cut off.
        cost_of: What a call of the subject cost.
        workers: Episodes at once.
    """

    def __init__(
        self,
        engine: Engine,
        *,
        scene: Scene | None,
        toolset: Toolset,
        limits: EpisodeLimits,
        commit: Callable[[list[Step]], None],
        stored: Callable[[int, int], list[Step]],
        cost_of: Callable[[Result], float | None],
        workers: int,
    ) -> None:
        self._engine = engine
        self._scene = scene
        self._toolset = toolset
        self._limits = limits
        self._commit = commit
        self._stored = stored
        self._cost_of = cost_of
        self._workers = workers
        self._open: dict[tuple[int, int], Episode] = {}
        self._ready: deque[Request] = deque()
        self._finished: list[Result] = []
        # What is done outside of the engine.
        self._doing: list[_Doing] = []
        self._threads = ThreadPoolExecutor(workers, thread_name_prefix="themis-user")

    def run(self, requests: Iterator[Request]) -> Generator[list[Result]]:
        """Results of whole answers, in the order in which they finish."""
        try:
            with contextlib.closing(self._engine.run(self._feed(requests))) as batches:
                for batch in batches:
                    self._take(batch)
                    yield self._take_finished()
            # What a tool has done is not to be done again.
            while self._doing:
                self._commit_steps([step for step, *_ in self._outcomes()])
                time.sleep(_IDLE_SECONDS)
            yield self._take_finished()
        finally:
            self._threads.shutdown(wait=False, cancel_futures=True)
            for episode in self._open.values():
                self._close(episode)

    def _take_finished(self) -> list[Result]:
        finished, self._finished = self._finished, []
        return finished

    def _feed(self, requests: Iterator[Request]) -> Iterator[Request]:
        """What the engine is to ask: first for episodes under way, then for new ones."""
        while True:
            if self._ready:
                yield self._ready.popleft()
            elif len(self._open) < self._workers and (request := next(requests, None)) is not None:
                self._begin(request)
            elif self._open:
                yield PENDING
            else:
                return

    def _begin(self, request: Request) -> None:
        row, task = request.task.prompt.context, request.task
        stored = self._stored(request.position, request.attempt)
        states = [step.message["state"] for step in stored if "state" in step.message]
        try:
            tools = self._toolset.open(row, states[-1] if states else None)
        except ToolError as error:  # of this row: the others have environments of their own
            self._finished.append(_failed(request, error))
            return
        opening = task.metadata.get("messages") or [{"role": "user", "content": task.prompt.text}]
        play = answer_with_tools() if self._scene is None else self._scene(row)
        episode = Episode(
            request, play, [] if self._scene is not None and _speaks_first(self._scene) else opening, tools
        )
        self._open[episode.place] = episode
        self._go_on(episode, episode.replay(stored))

    def _go_on(self, episode: Episode, action: EpisodeAction | None) -> None:
        """Does what the play wants next: what came before is committed."""
        while isinstance(action, Tell):
            action = episode.on_message(action, dict(action.message))
        if action is None:
            self._finish(episode)
        elif isinstance(action, AskModel):
            if reached := episode.limit_reached(self._limits):
                self._finish(episode, reached)
                return
            request = episode.request
            self._ready.append(
                Request(request.position, request.attempt, request.key, episode.next_task(self._toolset.schemas))
            )
        else:
            doing = self._do(episode, action)
            self._doing.append(doing)
            doing.done.add_done_callback(lambda _: self._engine.wake())

    def _do(self, episode: Episode, action: CallTool | LetUserSpeak) -> _Doing:
        began = time.perf_counter()
        if isinstance(action, CallTool):
            running = episode.tools.begin(action.call, episode.seconds_left(self._limits))
            return _Doing(episode, action, began, running.done, running.is_over)
        spoken = self._threads.submit(action.speak, [*episode.opening, *episode.said])
        return _Doing(episode, action, began, spoken, spoken.done)

    def _take(self, batch: list[Result]) -> None:
        """What came since the last time, committed as one before anything follows from it."""
        taken = [*self._answers(batch), *self._outcomes()]
        self._commit_steps([step for step, *_ in taken])
        for _, episode, action in taken:
            self._go_on(episode, action)

    def _commit_steps(self, steps: list[Step]) -> None:
        if steps:
            self._commit(steps)

    def _answers(self, batch: list[Result]) -> Iterator[tuple[Step, Episode, EpisodeAction | None]]:
        """What the subject said as a step, with what is to follow; an answer may also end its episode."""
        for result in batch:
            episode = self._open[result.position, result.attempt]
            output = result.record.output
            if output is None:
                self._fail(episode, result)
                continue
            action = episode.on_answer(output)
            if action is None:
                self._finish(episode, result=result)
                continue
            yield self._add_answer(episode, result), episode, action

    def _add_answer(self, episode: Episode, result: Result) -> Step:
        """What the subject has just said, as a step."""
        assert episode.last is not None
        took = {name: getattr(result, name) for name in _TAKEN}
        return episode.add_step("answer", _write_answer(episode.last), cost_usd=self._cost_of(result), **took)

    def _outcomes(self) -> Iterator[tuple[Step, Episode, EpisodeAction | None]]:
        """What tools and users have said meanwhile, likewise."""
        over = [doing for doing in self._doing if doing.is_over()]
        for doing in over:
            self._doing.remove(doing)
            episode, turn = doing.episode, _NOTHING_SPENT
            try:
                outcome = doing.done.result()
            except Exception as error:  # boundary: a user is another model, or code of the user's
                self._fail(episode, _failed(episode.request, error))
                continue
            if isinstance(outcome, UserTurn):
                kind, turn, message = "user", outcome, _write_turn(outcome)
            else:
                kind, message = "tool", outcome
            took = {name: getattr(turn, name) for name in ("calls", "prompt_tokens", "completion_tokens", "cost_usd")}
            step = episode.add_step(kind, message, seconds=time.perf_counter() - doing.began, **took)
            yield step, episode, episode.on_message(doing.action, message)

    def _finish(self, episode: Episode, limit: str = "", result: Result | None = None) -> None:
        """The episode is over: by its last answer, by its play, or by a limit."""
        request = episode.request
        try:
            output = episode.answer(limit or None)
        except ToolError as error:  # of an environment that cannot tell its state any more
            if result is not None:
                self._commit_steps([self._add_answer(episode, result)])
            self._fail(episode, _failed(request, error))
            return
        metrics = dict(result.record.metrics) if result is not None else {}
        metrics["steps"] = len(episode.steps) + (result is not None)
        record = GenerationRecord(request.task, output, None, metrics)
        final = Result(request.position, request.attempt, request.key, record, calls=0, steps=tuple(episode.steps))
        if result is not None:
            final = replace(result, record=record, steps=tuple(episode.steps))
        self._leave(episode, final)

    def _fail(self, episode: Episode, result: Result) -> None:
        """No answer: the steps stay, and a resumed run goes on from there."""
        self._leave(episode, replace(result, record=replace(result.record, task=episode.request.task)))

    def _leave(self, episode: Episode, result: Result) -> None:
        del self._open[episode.place]
        self._finished.append(result)
        self._close(episode)

    @staticmethod
    def _close(episode: Episode) -> None:
        episode.play.close()
        episode.tools.close()


# What a call took, as results and steps tell it.
_TAKEN = ("calls", "prompt_tokens", "completion_tokens", "seconds", "cached_tokens", "cache_write_tokens")


def _failed(request: Request, error: Exception) -> Result:
    kind = getattr(error, "kind", None) or type(error).__name__
    record = GenerationRecord(request.task, None, ModelError(f"{error}" or kind, kind=str(kind)))
    turn: UserTurn = getattr(error, "turn", _NOTHING_SPENT)
    return Result(
        request.position,
        request.attempt,
        request.key,
        record,
        turn.calls,
        turn.prompt_tokens,
        turn.completion_tokens,
        # Of an unknown price, as is said of the run.
        told_usd=turn.cost_usd or 0.0,
    )


def _speaks_first(scene: Scene) -> bool:
    """Whether the scene says everything itself, so that the prompt is not said."""
    return bool(getattr(scene, "speaks_first", False))


def _write_turn(turn: UserTurn) -> Message:
    if turn.text is None:
        return {"role": "user", "content": "", "over": True}
    return {"role": "user", "content": turn.text}
