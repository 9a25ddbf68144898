"""Continuations scored over HTTP: by completions with echo as servers answer them, and token by token on llama.cpp's."""

from __future__ import annotations

import hashlib
import math
import re
from dataclasses import dataclass
from typing import Any

import pytest
from aiohttp import web

from themis.exceptions import ProviderCallError
from themis.generation.providers.openai_compatible import OpenAICompatible

WORD = re.compile(r"<begin>|\s*[^\s日]+|\s*日")
PAIRS = [["The capital of France is", " Paris"], ["The capital of France is ", "Rome now"], ["Else", " nothing at all"]]


def probability(before: str, word: str) -> float:
    """That of a word: half for one whose name is long enough, little for the others."""
    drawn = hashlib.blake2b(f"{before}|{word}".encode(), digest_size=2).digest()
    return 0.1 + 0.8 * int.from_bytes(drawn, "big") / 2**16


def expected(context: str, text: str, *, beginning: str = "") -> tuple[float, bool, int]:
    """Sum, greedy and tokens by the chain rule; a word of more than a half is the likeliest."""
    read = beginning + context.rstrip()
    words = WORD.findall((context + text)[len(context.rstrip()) :])
    total, greedy = 0.0, True
    for word in words:
        total += math.log(probability(read, word))
        greedy = greedy and probability(read, word) > 0.5
        read += word
    return total, greedy, len(words)


@dataclass
class Echoing:
    """A completions endpoint as vLLM has it, with the quirks that servers have."""

    takes_lists: bool = True
    beginning: str = "<s>"
    late_by_one: bool = False
    tells_likeliest: bool = True
    pieces: bool = False
    zero: bool = False

    async def __call__(self, request: web.Request, seen: Any) -> web.StreamResponse:
        assert seen.path == "/v1/completions", seen.path
        body = seen.body
        assert (body["echo"], body["logprobs"], body["temperature"]) == (True, 1, 0.0)
        given = body["prompt"]
        if isinstance(given, list) and not self.takes_lists:
            return web.json_response({"detail": "prompt: str type expected"}, status=422)
        prompts = given if isinstance(given, list) else [given]
        choices = [self.choice(number, prompt) for number, prompt in enumerate(prompts)]
        tokens = sum(len(choice["logprobs"]["tokens"]) - 1 for choice in choices)
        # In the order in which they were finished.
        choices.reverse()
        usage = {"prompt_tokens": tokens, "completion_tokens": len(choices), "total_tokens": tokens + len(choices)}
        return web.json_response({"choices": choices, "usage": usage})

    def choice(self, number: int, prompt: str) -> dict[str, Any]:
        words = [*([self.beginning] if self.beginning else []), *WORD.findall(prompt), " end"]
        read, logprobs, likeliest, tokens = "", [], [], []
        for word in words:
            logprob = math.log(probability(read, word)) if read else None
            read += word
            # A character that is two tokens shows as two marks in place of its halves.
            halves = ["\ufffd", "\ufffd"] if self.pieces and "日" in word else [word]
            for half, share in zip(halves, (logprob, 0.0), strict=False):
                tokens.append(half)
                logprobs.append(-9999.0 if self.zero and share is not None else share)
                best = {} if share is None else {half: share, "other": math.log(0.5)}
                likeliest.append(best if self.tells_likeliest else None)
        if self.late_by_one:
            tokens, logprobs, likeliest = tokens[:-1], [None, *logprobs[2:]], [None, *likeliest[2:]]
        told = {"tokens": tokens, "token_logprobs": logprobs, "top_logprobs": likeliest, "text_offset": []}
        return {"index": number, "text": prompt + " end", "finish_reason": "length", "logprobs": told}


@dataclass
class LlamaCpp:
    """llama.cpp's own server: it knows no echo, and tells of the token that it generates."""

    refuses: bool

    async def __call__(self, request: web.Request, seen: Any) -> web.StreamResponse:
        if seen.path == "/props":
            return web.json_response(
                {"bos_token": "<s>", "eos_token": "", "default_generation_settings": {"n_ctx": 64}}
            )
        if seen.path == "/tokenize":
            text = ("<s>" if seen.body["add_special"] else "") + seen.body["content"]
            return web.json_response({"tokens": [self.number(word) for word in re.findall(r"<s>|\s*[^\s<]+", text)]})
        assert seen.path == "/v1/completions"
        body = seen.body
        if body.get("echo") and self.refuses:
            return web.json_response({"error": {"code": 400, "message": "Only no echo is supported"}}, status=400)
        told: dict[str, Any] = {"id": 7, "token": " end", "logprob": -0.1, "top_logprobs": []}
        if "echo" not in body:
            [[forced, bias]] = body["logit_bias"]
            assert bias > 1e6
            logprob = math.log(probability("".join(self.word(one) for one in body["prompt"]), self.word(forced)))
            told = {
                "id": forced,
                "logprob": logprob,
                "top_logprobs": [{"id": forced if logprob > math.log(0.5) else 0}],
            }
        count = len(body["prompt"])
        usage = {
            "prompt_tokens": count,
            "prompt_tokens_details": {"cached_tokens": count - 1 if body.get("cache_prompt") else 0},
        }
        choices = [{"index": 0, "logprobs": {"content": [told]}, "finish_reason": "length"}]
        return web.json_response({"choices": choices, "usage": usage})

    words: Any = None

    def number(self, word: str) -> int:
        self.words = self.words or ["<unknown>"]
        if word not in self.words:
            self.words.append(word)
        return int(self.words.index(word))

    def word(self, number: int) -> str:
        return str(self.words[number])


async def score(server: Any, task: Any, pairs: list[Any], answer: Any, **options: Any) -> Any:
    server.answer = answer
    provider = OpenAICompatible(base_url=server.address("/v1"), **options)
    try:
        return (await provider.score_continuations(task(metadata={"continuations": pairs}))).output
    finally:
        await provider.aclose()


def found(output: Any) -> list[tuple[float, bool, int]]:
    return [(pytest.approx(one["logprob"]), one["greedy"], one["tokens"]) for one in output.raw["continuations"]]


@pytest.mark.parametrize("beginning", ["<s>", ""])
async def test_all_pairs_of_a_row_are_one_request(server, task, beginning):
    output = await score(server, task, PAIRS, Echoing(beginning=beginning))

    assert found(output) == [expected(*pair, beginning=beginning) for pair in PAIRS]
    assert len(server.seen) == 1
    assert server.last.body["prompt"] == [context + text for context, text in PAIRS]
    # Every token was read, and one for each text was written.
    assert output.usage["completion_tokens"] == 3
    best = max(PAIRS, key=lambda pair: expected(*pair, beginning=beginning)[0])
    assert output.text == best[1]


async def test_a_server_that_takes_one_text_at_a_time_is_asked_so_from_then_on(server, task):
    server.answer = Echoing(takes_lists=False)
    provider = OpenAICompatible(base_url=server.address("/v1"))

    first = await provider.score_continuations(task(metadata={"continuations": PAIRS}))
    asked = len(server.seen)
    second = await provider.score_continuations(task(metadata={"continuations": PAIRS}))
    await provider.aclose()

    assert found(first.output) == found(second.output) == [expected(*pair, beginning="<s>") for pair in PAIRS]
    assert (asked, len(server.seen)) == (4, 7)


async def test_tokens_that_are_parts_of_characters_are_found_by_counting_those_of_the_context(server, task):
    pair = ["Say 日", " 日 again"]

    output = await score(server, task, [pair], Echoing(pieces=True))

    logprob, _, _ = expected(*pair, beginning="<s>")
    # Each 日 is two tokens, of which the second was certain.
    assert output.raw["continuations"][0]["logprob"] == pytest.approx(logprob)
    assert output.raw["continuations"][0]["tokens"] == 3


async def test_a_text_without_a_context_follows_the_token_of_its_beginning(server, task):
    text = "One text by itself"
    own = await score(server, task, [["", text]], Echoing(beginning="<s>"))
    given = await score(server, task, [["", text]], Echoing(beginning=""), beginning_of_text="<begin>")

    assert found(own) == [expected("", text, beginning="<s>")]
    assert found(given) == [expected("", text, beginning="<begin>")]
    assert own.text == ""


@pytest.mark.parametrize(
    ("answer", "pair", "why"),
    [
        (Echoing(beginning=""), ["", "One text"], "give the option beginning_of_text"),
        (Echoing(late_by_one=True), ["One", " text"], "belongs to the next one, as llama-cpp-python does"),
        (Echoing(late_by_one=True, pieces=True), ["One", " 日"], "belongs to the next one, as llama-cpp-python does"),
        (Echoing(tells_likeliest=False), ["One", " text"], "does not tell the likeliest tokens"),
        (Echoing(zero=True), ["One", " text"], "has the probability 0"),
        (Echoing(), ["On", "e"], "has no token of its own behind its context"),
    ],
)
async def test_what_is_no_score_is_a_failure_with_a_reason(server, task, answer, pair, why):
    with pytest.raises(ProviderCallError, match=why) as raised:
        await score(server, task, [pair], answer)
    assert raised.value.retryable is False


async def test_a_server_without_log_probabilities_says_so_with_its_address(server, task):
    server.says({"choices": [{"index": 0, "text": "One text end", "logprobs": None}]})

    with pytest.raises(ProviderCallError, match=r"/v1/completions does not tell the log-probabilities of a prompt"):
        await score(server, task, [["One", " text"]], server.answer)


@pytest.mark.parametrize("refuses", [True, False])
async def test_a_server_of_llama_cpp_is_asked_token_by_token(server, task, refuses):
    pairs = [["The capital of France is", " Paris"], ["The capital of France is", " Rome now"], ["", "One text"]]

    output = await score(server, task, pairs, LlamaCpp(refuses))

    assert found(output) == [expected(*pair, beginning="<s>") for pair in pairs]
    completions = [seen.body for seen in server.seen if seen.path == "/v1/completions" and "echo" not in seen.body]
    # Two contexts are read, and each of five tokens is one request more.
    assert len(completions) == 2 + 5
    assert [body["cache_prompt"] for body in completions] == [False, True, True, True, False, True, True]
    assert output.usage["prompt_tokens"] == 6 + 3 + 1 + 2


async def test_the_window_of_llama_cpp_cuts_long_contexts_on_the_left(server, task):
    context = " ".join(f"word{number}" for number in range(100))

    output = await score(server, task, [[context, " end of it"]], LlamaCpp(refuses=True))

    # 101 tokens of context and three more, of which the last is not read: 63 fit.
    assert output.raw["truncated_tokens"] == 101 + 3 - 1 - 63
    kept = " ".join(f"word{number}" for number in range(100))[-sum(len(f" word{n}") for n in range(39, 100)) :]
    assert found(output) == [expected(kept, " end of it")]
