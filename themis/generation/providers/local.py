"""Models inside this process: llama.cpp by way of xllamacpp, one loaded server for each file and size.

Deterministic at temperature 0, whatever was asked before: llama.cpp's prompt cache and its batching of parallel slots
change the order of floating-point sums, and with it some answers (2 of 24 in our measurement), so both are off unless
asked for. Continuations are scored by a server of their own, one row at a time, whose cache holds nothing but the row's context.
"""

from __future__ import annotations

import importlib.util
import json
import logging
import os
import secrets
import threading
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import msgspec

from themis.core.continuations import continuations_of, likelihood_output
from themis.core.entities import GenerationRecord, GenerationTask
from themis.exceptions import ConfigurationError, DependencyError, ProviderCallError, ProviderError
from themis.generation.models import resolve_model
from themis.generation.providers.chat import (
    Completion,
    check_messages,
    completion_fields,
    constant_fields,
    is_plain,
    item_name,
    read_completion,
)
from themis.generation.providers.token_scoring import Questions, Scored, Tokenize, score_by_tokens
from themis.generation.providers.wire import refuse_parts
from themis.interfaces import StatelessTaskExecutor

logger = logging.getLogger(__name__)


class LocalModel(StatelessTaskExecutor):
    """`local/smollm2`, or any GGUF file: `local//models/some.gguf`, or with the option `path`.

    `grammar` (GBNF) or `json_schema` restrict what it can say; `context_tokens` is for each of the `parallel` slots.
    The model is loaded by the first call and shared by all providers of the process that ask for the same one.
    """

    prompt_only = True

    is_local: ClassVar[bool] = True

    def __init__(
        self,
        *,
        path: str | os.PathLike[str] | None = None,
        context_tokens: int = 4096,
        parallel: int = 1,
        threads: int | None = None,
        prompt_cache: bool = False,
        system_prompt: str | None = None,
        seed: int = 0,
        stop: str | Sequence[str] | None = None,
        logprobs: bool | int | None = None,
        grammar: str | None = None,
        json_schema: Mapping[str, object] | None = None,
        extra_body: Mapping[str, object] | None = None,
        model_identifier: str = "",
    ) -> None:
        if grammar is not None and json_schema is not None:
            raise ConfigurationError("give a local model a grammar or a json_schema, not both")
        require_runtime()
        self._path = None if path is None else os.fspath(path)
        self._name = self._path or model_identifier
        if self._name:
            resolve_model(self._name)  # a missing model is found before the first call
        self._context_tokens = _positive("context_tokens", context_tokens)
        self._parallel = _positive("parallel", parallel)
        self._threads = _positive("threads", threads) if threads is not None else usable_cores()
        self._system_prompt = system_prompt
        self._seed = seed
        self._has_truncated = False
        self._always = {
            "cache_prompt": prompt_cache,
            **constant_fields(stop, logprobs, extra_body, grammar=grammar, json_schema=json_schema),
        }

    def execute(self, task: GenerationTask) -> GenerationRecord:
        self._name = self._path or task.model.identifier
        loaded = self._load(self._name)
        try:
            answer = loaded.server.handle_chat_completions(self._request(task))
        except (TypeError, ValueError) as error:  # a request that llama.cpp cannot read
            raise ProviderCallError(
                f"item {item_name(task)} cannot be sent to the model: {error}", kind="bad_request", retryable=False
            ) from error
        if "error" in answer:
            raise _refusal(task, answer["error"])
        # Without llama.cpp's response id, which is random: the same question gives the same record.
        completion = msgspec.convert({**answer, "model": task.model.identifier}, Completion)
        output = read_completion(completion, _fail)
        del output.raw["id"]
        return GenerationRecord(task=task, output=output, error=None)

    def score_continuations(self, task: GenerationTask) -> GenerationRecord:
        self._name = self._path or task.model.identifier
        loaded = self._load(self._name, for_scoring=True)
        # Another row between two requests would change what is in the cache, and with it the last digits.
        with loaded.lock:
            asked = score_by_tokens(
                continuations_of(task), prefix_token=loaded.prefix_token, window_tokens=self._context_tokens
            )
            found = self._answer(task, loaded, asked)
        details = {"truncated_tokens": found.truncated_tokens} if found.truncated_tokens else {}
        if details and not self._has_truncated:
            self._has_truncated = True
            logger.warning(
                "contexts are longer than context_tokens=%d and are cut off on the left: %d tokens of item %s",
                self._context_tokens,
                found.truncated_tokens,
                item_name(task),
            )
        output = likelihood_output(task, found.likelihoods, evaluated_tokens=found.evaluated_tokens, **details)
        return GenerationRecord(task=task, output=output, error=None)

    def _answer(self, task: GenerationTask, loaded: _Loaded, questions: Questions) -> Scored:
        answer: object = None
        while True:
            try:
                asked = questions.send(answer)
            except StopIteration as finished:
                scored: Scored = finished.value
                return scored
            if isinstance(asked, Tokenize):
                try:
                    answer = loaded.tokenize(asked.text, begins=asked.begins)
                except (
                    urllib.error.HTTPError
                ) as error:  # a text that llama.cpp cannot read, such as half of a character
                    raise ProviderCallError(
                        f"item {item_name(task)} cannot be tokenized: {error}", kind="bad_request", retryable=False
                    ) from error
                continue
            completion = loaded.server.handle_completions(asked.body)
            if "error" in completion:
                raise _refusal(task, completion["error"])
            answer = completion

    def count_tokens(self, text: str) -> int:
        """By the tokenizer of the model that was named, or called last."""
        return len(self._load(self._name).tokenize(text))

    def _load(self, name: str, *, for_scoring: bool = False) -> _Loaded:
        settings = ServerSettings(
            path=resolve_model(name),
            context_tokens=self._context_tokens,
            parallel=self._parallel,
            threads=self._threads,
        )
        if for_scoring:
            # llama.cpp keeps a place for a token after the last one.
            settings = replace(settings, context_tokens=self._context_tokens + 1, parallel=1, for_scoring=True)
        try:
            return _load_server(settings)
        except ProviderError as error:
            raise ProviderCallError(str(error), kind="not_found", retryable=False) from error

    def _request(self, task: GenerationTask) -> dict[str, object]:
        if "messages" in task.metadata and not is_plain(task.metadata["messages"]):
            refuse_parts(check_messages(task.metadata["messages"], task), "a model in this process")
        fields = completion_fields(task, system_prompt=self._system_prompt, seed=self._seed)
        return {**fields, **self._always}


@dataclass(frozen=True, kw_only=True)
class ServerSettings:
    """Which file is loaded, how large, and where its HTTP side listens (port 0: anywhere that is free)."""

    path: Path
    context_tokens: int = 4096
    parallel: int = 1
    threads: int = 1
    host: str = "127.0.0.1"
    port: int = 0
    alias: str | None = None
    for_scoring: bool = False


def start_server(settings: ServerSettings, *, api_key: str | None = None) -> Any:
    """llama.cpp's server with a model loaded, in threads of this process; it stops when the object is dropped."""
    xllamacpp = _runtime()
    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(settings.path)
    parameters.model_alias = {settings.alias or settings.path.stem}
    parameters.n_ctx = settings.context_tokens * settings.parallel  # divided evenly among the slots
    parameters.n_parallel = settings.parallel
    parameters.cpuparams.n_threads = settings.threads
    parameters.cpuparams_batch.n_threads = settings.threads
    parameters.hostnames = [settings.host]
    parameters.port = settings.port
    parameters.api_keys = [api_key] if api_key else []
    parameters.verbosity = -1
    try:
        return xllamacpp.Server(parameters)
    except RuntimeError as error:
        raise ProviderError(
            f"llama.cpp cannot serve {settings.path.name} with context_tokens={settings.context_tokens} and "
            f"parallel={settings.parallel}: a kind of model it does not know, too little memory, or a busy port"
        ) from error


def require_runtime() -> None:
    if importlib.util.find_spec("xllamacpp") is None:
        raise DependencyError.for_extra("xllamacpp", "local", "running a model inside this process")


def usable_cores() -> int:
    """Cores that this process may use; beyond eight the small models gain nothing."""
    try:
        cores = len(os.sched_getaffinity(0))
    except AttributeError:  # only Linux says
        cores = os.cpu_count() or 1
    return min(cores, 8)


def _runtime() -> Any:
    # Read by OpenMP while the library is loaded. Threads that spin while they wait make generation ten times slower as
    # soon as anything else uses the cores.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    os.environ.setdefault("GOMP_SPINCOUNT", "0")
    require_runtime()
    import xllamacpp

    return xllamacpp


@dataclass(frozen=True)
class _Loaded:
    """A server of this process. Its HTTP side, which only the tokenizer is asked through, wants a secret key."""

    server: Any
    api_key: str
    lock: threading.Lock = field(default_factory=threading.Lock)

    def tokenize(self, text: str, *, begins: bool = False) -> list[int]:
        """The tokens of a text; at the beginning, with what the model's file wants there."""
        tokens: list[int] = self._ask("/tokenize", {"content": text, "add_special": begins})["tokens"]
        return tokens

    @cached_property
    def prefix_token(self) -> int:
        """What a text without a context follows: the token of its beginning, or else that of an end."""
        properties = self._ask("/props")
        tokens = self.tokenize(properties.get("bos_token") or properties.get("eos_token") or "")
        if not tokens:
            raise ProviderError("the model's file names no token for the beginning or the end of a text")
        return tokens[0]

    def _ask(self, path: str, body: Mapping[str, object] | None = None) -> Any:
        request = urllib.request.Request(
            f"{self.server.listening_address}{path}",
            data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": "application/json", "Authorization": f"Bearer {self.api_key}"},
        )
        # Not through a proxy: the address is this process.
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request) as response:
            return json.load(response)


_LOADED: dict[tuple[int, ServerSettings], _Loaded] = {}
_LOADING = threading.Lock()


def _load_server(settings: ServerSettings) -> _Loaded:
    key = (os.getpid(), settings)  # the threads of a server do not survive a fork
    found = _LOADED.get(key)
    if found is not None:
        return found
    with _LOADING:
        if key not in _LOADED:
            api_key = secrets.token_urlsafe(16)
            _LOADED[key] = _Loaded(start_server(settings, api_key=api_key), api_key)
        return _LOADED[key]


def _refusal(task: GenerationTask, error: Mapping[str, object]) -> ProviderCallError:
    code = error.get("code")
    status = code if isinstance(code, int) else None
    too_long = error.get("type") == "exceed_context_size_error"
    hint = "; raise context_tokens" if too_long else ""
    return ProviderCallError(
        f"llama.cpp refused item {item_name(task)}: {error.get('message', 'without a reason')}{hint}",
        kind="context_length" if too_long else "bad_request" if status is not None and status < 500 else "server_error",
        status=status,
        retryable=status is None or status >= 500,
    )


def _fail(what: str, *, kind: str, retryable: bool) -> ProviderCallError:
    return ProviderCallError(f"llama.cpp {what}", kind=kind, retryable=retryable)


def _positive(name: str, value: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ConfigurationError(f"{name} is a whole number of at least 1, got {value!r}")
    return value
