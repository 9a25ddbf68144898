"""Applications that answer: an HTTP endpoint gets the question as JSON, a program as a line of JSON."""

from __future__ import annotations

import json
import queue
import re
import subprocess
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from themis.core.entities import GenerationRecord, GenerationTask, ModelOutput
from themis.core.processes import JsonProcess, end_program, parse_command, refuse_absent_program, run_program
from themis.exceptions import ConfigurationError, ProviderCallError
from themis.generation.providers.chat import request_body
from themis.generation.providers.functions import describe_question, hide_expected, read_answer, refuse_error
from themis.generation.providers.http import HttpProvider
from themis.generation.templates import PromptTemplate
from themis.interfaces import StatelessTaskExecutor


class HttpApplication(HttpProvider):
    """An application behind one address that takes and gives JSON: `http://HOST:PORT/PATH`.

    Args:
        request: What is sent, where the application has a shape of its own: JSON in whose texts `{prompt}`, `{messages}`,
            `{row[field]}`, `{item_id}`, `{attempt}` and `{sampling[temperature]}` stand for those. A text that is only such a
            name becomes that value. By default the whole question.
        response: Where the answer is in what comes back, such as `data.answers[0].text`; by default it is found by name.
        headers: Sent with every request; `${NAME}` in them is a secret of the environment.
        most_cost_usd: The most that an answer may cost, for a budget; what it says in `cost_usd` is counted.
        is_local: Its answers cost nothing.
    """

    address_option = "the model"
    prompt_only = False  # it is sent the row, too

    def __init__(
        self,
        *,
        model_identifier: str = "",
        provider_name: str = "http",
        request: object = None,
        response: str | None = None,
        headers: Mapping[str, str] | None = None,
        api_key: str | None = None,
        timeout: float | None = None,
        proxy: str | None = None,
        ca_file: str | None = None,
        verify: bool = True,
        max_response_bytes: int = 64 * 2**20,
        system_prompt: str | None = None,
        most_cost_usd: float | None = None,
        is_local: bool = False,
    ) -> None:
        bearer = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        super().__init__(
            f"{provider_name}:{model_identifier}",
            headers={**bearer, **(headers or {})},
            api_key=api_key,
            timeout=timeout,
            proxy=proxy,
            ca_file=ca_file,
            verify=verify,
            max_response_bytes=max_response_bytes,
            system_prompt=system_prompt,
        )
        self.is_local = is_local  # type: ignore[misc]
        self.most_cost_usd = most_cost_usd
        # The row's fields that metrics compare with.
        self.withheld: Collection[str] = ()
        self._request = None if request is None else _Shape.read(request)
        if self._request is not None:
            self._request.refuse_unasked("request")
        self._path = None if response is None else _parse_path(response)

    async def execute(self, task: GenerationTask) -> GenerationRecord:
        shown = hide_expected(task, self.withheld)
        question = describe_question(shown, self._system_prompt, with_contents=self._request is not None)
        asked = question if self._request is None else self._request.fill(question)
        reply = await self._post(request_body(task, asked))
        said = self._decode(reply.body, object, "JSON")
        try:
            if self._path is not None and isinstance(said, Mapping):
                refuse_error(said.get("error"))
            output = read_answer(said if self._path is None else _follow(said, self._path))
        except (ProviderCallError, LookupError) as error:
            raise self._no_answer(error, reply.body) from error
        return GenerationRecord(task, output, None)

    def _no_answer(self, error: Exception, body: bytes) -> ProviderCallError:
        """What came back is an error, or has its answer somewhere else."""
        failed = isinstance(error, ProviderCallError) and error.kind == "server_error"
        if not failed and (refusal := self._refused_in_body(body)):
            return refusal
        where = "" if failed or self._path else ", or the option response=, which says where that is"
        unusable = self._failure(
            f"answered, but {error}{where}: {self._excerpt(body)}",
            kind="server_error" if failed else "invalid_response",
            retryable=failed,
        )
        if isinstance(error, ProviderCallError):
            unusable.usage, unusable.cost_usd = error.usage, error.cost_usd
        return unusable


class _Shape(NamedTuple):
    """JSON with names in its texts: a template of each text, everything else as it is."""

    content: object

    @classmethod
    def read(cls, given: object) -> _Shape:
        if isinstance(given, str):
            try:
                given = json.loads(given)
            except ValueError as error:
                raise ConfigurationError(f'request is JSON, such as {{"query": "{{prompt}}"}}: {error}') from error
        return cls(_compile_shape(given))

    def fill(self, question: Mapping[str, object]) -> Any:
        return _fill_shape(self.content, question)

    def refuse_unasked(self, what: str) -> None:
        """Raises where it would ask for something that no question has, or every row the same."""
        used = dict.fromkeys(name for template in _templates_in(self.content) for name in template.fields)
        if unknown := next((name for name in used if name not in _QUESTION), None):
            raise ConfigurationError(
                f"{what} names {{{unknown}}}, which no question has: there are "
                f"{', '.join(f'{{{name}}}' for name in _QUESTION)}; a field of the row is {{row[{unknown}]}}, and braces that "
                "are meant literally are doubled"
            )
        if not used.keys() & _ASKING:
            raise ConfigurationError(
                f"{what} has nothing of the question in it, so every row would be asked the same: write {{prompt}}, "
                "{messages} or {row[FIELD]}, with single braces"
            )


def _compile_shape(value: object) -> object:
    if isinstance(value, Mapping):
        return {name: _compile_shape(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_compile_shape(one) for one in value]
    return PromptTemplate("request", value, metadata={"as_written": True}) if isinstance(value, str) else value


# What a question has (`describe_question`), and what of that differs from row to row.
_QUESTION = (
    *("prompt", "messages", "row", "item_id", "attempt", "sampling", "tools"),
    *("message", "session", "turn", "type", "now", "presupplied"),
)
_ASKING = {"prompt", "messages", "message", "row", "item_id", "session"}


def _templates_in(value: object) -> Iterator[PromptTemplate]:
    if isinstance(value, PromptTemplate):
        yield value
    for one in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _templates_in(one)


def _fill_shape(value: object, question: Mapping[str, object]) -> object:
    if isinstance(value, dict):
        return {name: _fill_shape(one, question) for name, one in value.items()}
    if isinstance(value, list):
        return [_fill_shape(one, question) for one in value]
    if not isinstance(value, PromptTemplate):
        return value
    alone = value.template[1:-1]
    return question[alone] if value.template == f"{{{alone}}}" and alone in question else value.fill(question)


def _parse_path(text: str) -> list[str | int]:
    """`data.answers[0].text` -> the names and numbers of the way there."""
    words = text.replace("[", ".").replace("]", "").removeprefix("$").split(".")
    return [int(word) if word.lstrip("-").isdigit() else word for word in words if word]


def _follow(value: Any, path: Sequence[str | int]) -> object:
    for step in path:
        try:
            value = value[step]
        except (LookupError, TypeError):
            raise LookupError(f"sent nothing at {step!r} of response={'.'.join(map(str, path))}") from None
    found: object = value
    return found


# Arguments in which a question is to stand.
_NAMES_QUESTION = re.compile(r"\{(?:prompt|message|messages|row(?:\[[^\]]+\])?|item_id|attempt)\}")
_BARE_FIELD = re.compile(r"\{\w+\}")


# --- a program ----------------------------------------------------------------------------------------------------------


class ProgramApplication(StatelessTaskExecutor):
    """A program that reads a question a line, as JSON, and writes an answer a line: `command:./app ARGUMENTS`.

    As many of it run as there are calls at once. One whose arguments name the question (`command:./app --ask {prompt}`) is
    started for each, reads nothing, and answers with all that it writes. No shell is involved.

    Args:
        timeout_seconds: How long it may be silent.
        most_cost_usd: The most that an answer may cost, for a budget; what it says in `cost_usd` is counted.
        is_local: Its answers cost nothing.
    """

    def __init__(
        self,
        *,
        model_identifier: str = "",
        timeout_seconds: float = 600.0,
        system_prompt: str | None = None,
        most_cost_usd: float | None = None,
        is_local: bool = False,
    ) -> None:
        self._arguments = parse_command(model_identifier)
        self._filled = _Shape(_compile_shape(self._arguments)) if _NAMES_QUESTION.search(model_identifier) else None
        if self._filled is not None:
            self._filled.refuse_unasked("the command")
        if not _NAMES_QUESTION.search(self._arguments[0]):
            refuse_absent_program(self._arguments)
        # A program may have such words of its own (`awk '{print}'`): only the row tells whether a field is meant.
        self._bare = [] if self._filled else [word[1:-1] for word in self._arguments if _BARE_FIELD.fullmatch(word)]
        self._timeout_seconds = timeout_seconds
        self._system_prompt = system_prompt
        self.is_local = is_local  # type: ignore[misc]
        self.most_cost_usd = most_cost_usd
        self.withheld: Collection[str] = ()
        self._idle: queue.SimpleQueue[JsonProcess] = queue.SimpleQueue()
        # Those that are asked right now.
        self._busy: set[JsonProcess] = set()
        self._running: set[subprocess.Popen[bytes]] = set()

    def execute(self, task: GenerationTask) -> GenerationRecord:
        shown = hide_expected(task, self.withheld)
        question = describe_question(shown, self._system_prompt, with_contents=self._filled is not None)
        if self._filled is not None:
            words = [one if isinstance(one, str) else json.dumps(one) for one in self._filled.fill(question)]
            said = run_program(words, timeout_seconds=self._timeout_seconds, running=self._running)
            return GenerationRecord(task, ModelOutput(said), None)
        if meant := next((name for name in self._bare if name in task.prompt.context), None):
            raise ProviderCallError(
                f"the command has {{{meant}}}, and a field of the row is written {{row[{meant}]}}",
                kind="bad_request",
                retryable=False,
            )
        try:
            program = self._idle.get_nowait()
        except queue.Empty:
            program = JsonProcess(self._arguments, timeout_seconds=self._timeout_seconds)
        self._busy.add(program)
        try:
            output = read_answer(program.ask(json.loads(request_body(task, question))))
        except ProviderCallError as error:
            if error.kind != "invalid_response":
                raise
            # Whatever it wrote was not the answer, which may still come, and would be taken for the next.
            program.kill()
            if error.retryable is False:
                raise
            hint = "; one that answers in plain text and ends is named with its question: command:./app {prompt}"
            raise ProviderCallError(
                f"{error}{hint}", kind=error.kind, retryable=False, usage=error.usage, cost_usd=error.cost_usd
            ) from error
        finally:
            self._busy.discard(program)
            self._idle.put(program)
        return GenerationRecord(task, output, None)

    def close(self) -> None:
        """Ends the programs: those that wait for a question, and those whose answer nobody waits for any longer."""
        for program in list(self._busy):
            program.interrupt()
        for process in list(self._running):
            end_program(process)
        while True:
            try:
                self._idle.get_nowait().close()
            except queue.Empty:
                return
