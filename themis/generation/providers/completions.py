"""Text completions over HTTP, from which rows with `continuations` are scored: by echo, or token by token on llama.cpp's server.

llama.cpp's own server knows no echo; once it has shown that, it is asked as an embedded model is (`token_scoring`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec
from yarl import URL

from themis.core.continuations import Likelihood, continuations_of, likelihood_output
from themis.core.entities import GenerationRecord, GenerationTask
from themis.exceptions import ProviderCallError
from themis.generation.providers.chat import read_usage, request_body
from themis.generation.providers.chat_over_http import ChatEndpoint
from themis.generation.providers.http import Reply
from themis.generation.providers.prompt_logprobs import (
    Echoed,
    EchoedChoice,
    EchoedLogprobs,
    EchoScorer,
    lacks_generated,
)
from themis.generation.providers.token_scoring import Question, Questions, Scored, Tokenize, score_by_tokens

# How llama.cpp's server refuses.
_NO_ECHO = "Only no echo is supported"
_TOO_FEW = "too_few_choices"
# Answers after which a list of texts is asked for one by one: bad requests, and what a server that did not expect it dies of.
_MAY_BE_THE_LIST = (400, 404, 413, 422, 500, 501)


class TextCompletions(ChatEndpoint):
    """A provider whose server completes texts beside chats; `prepare_scoring` says where."""

    def prepare_scoring(self, url: URL, *, beginning_of_text: str = "") -> None:
        self._texts_url = url
        self._beginning_of_text = beginning_of_text
        # Found out by asking: whether a request may hold several texts, and what llama.cpp's server is.
        self._takes_lists = True
        self._llamacpp: LlamaServer | None = None

    async def score_continuations(self, task: GenerationTask) -> GenerationRecord:
        if self._llamacpp is None:
            spent = _Spent()
            try:
                return self._record(task, await self._score_by_echo(task, spent), spent)
            except _NoEchoError:
                self._llamacpp = await self._meet_llamacpp()
        scored = await self._score_by_tokens(task, self._llamacpp)
        return self._record(task, scored.likelihoods, _Spent(scored.evaluated_tokens), scored.truncated_tokens)

    def _record(
        self, task: GenerationTask, found: list[Likelihood], spent: _Spent, truncated: int = 0
    ) -> GenerationRecord:
        details = {"truncated_tokens": truncated} if truncated else {}
        output = likelihood_output(
            task, found, evaluated_tokens=spent.prompt_tokens, generated_tokens=spent.completion_tokens, **details
        )
        return GenerationRecord(task=task, output=output, error=None)

    # --- with echo ---------------------------------------------------------------------------------------------------

    async def _score_by_echo(self, task: GenerationTask, spent: _Spent) -> list[Likelihood]:
        async def ask(texts: Sequence[str]) -> list[EchoedLogprobs]:
            if self._takes_lists and len(texts) > 1:
                try:
                    return await self._echo(task, list(texts), spent)
                except ProviderCallError as error:
                    if error.kind != _TOO_FEW and error.status not in _MAY_BE_THE_LIST:
                        raise
            echoed = [(await self._echo(task, text, spent))[0] for text in texts]
            # One by one it went well: that they were several was what was wrong.
            self._takes_lists = self._takes_lists and len(texts) == 1
            return echoed

        return await EchoScorer(ask, self._beginning_of_text).score(continuations_of(task))

    async def _echo(self, task: GenerationTask, prompt: str | list[str], spent: _Spent) -> list[EchoedLogprobs]:
        fields = {
            "model": task.model.identifier,
            "prompt": prompt,
            "echo": True,
            "logprobs": 1,
            # Some servers take none for no limit.
            "max_tokens": 1,
            "temperature": 0.0,
            **self._extra_body,
        }
        try:
            reply = await self._post(request_body(task, fields), self._texts_url)
        except ProviderCallError as error:
            if _NO_ECHO in str(error):
                raise _NoEchoError from error
            raise
        answer = self._decode(reply.body.decode("utf-8", "replace"), Echoed, "a text completion with log-probabilities")
        spent.add(read_usage(answer.usage))
        choices = sorted(answer.choices or (), key=lambda choice: choice.index)
        texts = prompt if isinstance(prompt, list) else [prompt]
        if any(choice.logprobs is not None and choice.logprobs.content for choice in choices):
            raise _NoEchoError
        if len(choices) != len(texts):
            raise self._failure(
                f"answered with {len(choices)} choices to {len(texts)} texts",
                kind=_TOO_FEW,
                url=self._texts_url,
                retryable=False,
            )
        return [self._check_echo(choice, text, reply) for choice, text in zip(choices, texts, strict=True)]

    def _check_echo(self, choice: EchoedChoice, text: str, reply: Reply) -> EchoedLogprobs:
        told = choice.logprobs
        if told is None or len(told.tokens) < 2 or len(told.tokens) != len(told.token_logprobs):
            raise self._failure(
                "does not tell the log-probabilities of a prompt, so it cannot score `continuations`: "
                f"{self._excerpt(reply.body)}",
                kind="bad_request",
                url=self._texts_url,
                retryable=False,
            )
        if lacks_generated(choice, text):
            raise self._failure(
                "gives each token of a prompt the log-probability that belongs to the next one, as llama-cpp-python does, so it "
                "cannot score `continuations`; serve the file with llama.cpp's own server, or run it as local/PATH",
                kind="bad_request",
                url=self._texts_url,
                retryable=False,
            )
        return told

    # --- llama.cpp's own server --------------------------------------------------------------------------------------

    async def _score_by_tokens(self, task: GenerationTask, server: LlamaServer) -> Scored:
        questions: Questions = score_by_tokens(
            continuations_of(task), prefix_token=server.prefix_token, window_tokens=server.window_tokens
        )
        answer: object = None
        while True:
            try:
                asked = questions.send(answer)
            except StopIteration as finished:
                scored: Scored = finished.value
                return scored
            answer = await self._ask_llamacpp(task, asked)

    async def _ask_llamacpp(self, task: GenerationTask, asked: Question) -> object:
        if isinstance(asked, Tokenize):
            return await self._tokenize(asked.text, begins=asked.begins)
        body = request_body(task, {"model": task.model.identifier, **asked.body, **self._extra_body})
        return _read_json((await self._post(body, self._texts_url)).body)

    async def _tokenize(self, text: str, *, begins: bool) -> object:
        body = msgspec.json.encode({"content": text, "add_special": begins})
        return _read_json((await self._post(body, self._beside("tokenize"))).body).get("tokens")

    async def _meet_llamacpp(self) -> LlamaServer:
        """What its properties say: the token of a text's beginning, and how much a slot can read."""
        told = _read_json((await self._send("GET", self._beside("props"))).body)
        tokens = await self._tokenize(str(told.get("bos_token") or told.get("eos_token") or ""), begins=False)
        settings = told.get("default_generation_settings")
        window = settings.get("n_ctx") if isinstance(settings, dict) else None
        if not isinstance(tokens, list) or not tokens or not isinstance(window, int):
            raise self._failure(
                "does not say in /props how its texts begin and how long they may be",
                kind="bad_request",
                retryable=False,
            )
        return LlamaServer(prefix_token=int(tokens[0]), window_tokens=window - 1)

    def _beside(self, name: str) -> URL:
        """An address of llama.cpp's own, which is not below the version of OpenAI's API."""
        root = self._texts_url.path.removesuffix("/completions").removesuffix("/v1")
        return self._texts_url.with_path(f"{root}/{name}")


class _NoEchoError(Exception):
    """The server is llama.cpp's own."""


@dataclass(frozen=True)
class LlamaServer:
    """What is to be known of llama.cpp's server before texts are scored on it."""

    prefix_token: int
    window_tokens: int


@dataclass
class _Spent:
    """Tokens that the requests of a row cost."""

    prompt_tokens: int = 0
    completion_tokens: int = 0

    def add(self, usage: Mapping[str, object] | None) -> None:
        for name in ("prompt_tokens", "completion_tokens"):
            count = (usage or {}).get(name)
            setattr(self, name, getattr(self, name) + (count if isinstance(count, int) else 0))


def _read_json(body: bytes) -> dict[str, object]:
    try:
        answer = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ProviderCallError(f"llama.cpp did not answer with JSON: {error}", kind="invalid_response") from error
    return answer if isinstance(answer, dict) else {}
