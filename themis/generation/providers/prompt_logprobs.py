"""Log-probabilities of given texts from text completions with echo, which tell those of the prompt's own tokens.

vLLM and llama-cpp-python answer so; `openai_compatible` sends the requests. Where a continuation begins among the tokens is found
by their texts, and where those do not say it (tokens that are parts of characters), by how many tokens the context has alone.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple

import msgspec

from themis.core.continuations import Continuation, Likelihood, move_spaces
from themis.exceptions import ProviderCallError

# What servers write for the logarithm of zero, which JSON does not have.
_NO_PROBABILITY = -9_999.0


class EchoedLogprobs(msgspec.Struct):
    tokens: list[str] = []
    token_logprobs: list[float | None] = []
    top_logprobs: list[dict[str, float] | None] | None = None
    # llama.cpp's own server tells of generated tokens alone, in the form of chats.
    content: object = None


class EchoedChoice(msgspec.Struct):
    index: int = 0
    finish_reason: object = None
    logprobs: EchoedLogprobs | None = None


class Echoed(msgspec.Struct):
    """A text completion, as far as it is needed."""

    choices: list[EchoedChoice] | None = None
    usage: object = None


# Sends texts to be completed, and returns a choice for each, in their order.
Ask = Callable[[Sequence[str]], Awaitable[list[EchoedLogprobs]]]


@dataclass(frozen=True)
class EchoScorer:
    """Scores continuations by asking for completions of context and text.

    `beginning_of_text` stands in front of a text without a context, where the server puts nothing there itself.
    """

    ask: Ask
    beginning_of_text: str = ""

    async def score(self, pairs: Sequence[Continuation]) -> list[Likelihood]:
        """What the model makes of each continuation, in their order."""
        asked = [self._with_beginning(move_spaces(pair)) for pair in pairs]
        echoed = await self.ask([pair.context + pair.text for pair in asked])
        found = []
        for place, (pair, logprobs) in enumerate(zip(asked, echoed, strict=True)):
            span = find_span(logprobs.tokens, pair)
            if span is None:
                span = await self._count_span(pair)
            found.append(_add_up(logprobs, span, place))
        return found

    def _with_beginning(self, pair: Continuation) -> Continuation:
        return pair if pair.context else Continuation(self.beginning_of_text, pair.text)

    async def _count_span(self, pair: Continuation) -> Span:
        """As many tokens as the context has alone are its own; the last one of all is generated."""
        # By such a text it would be seen that a server's probabilities stand a token too late.
        await self.ask(["One two three"])
        whole, *context = [(await self.ask([text]))[0] for text in (pair.context + pair.text, pair.context) if text]
        return Span(len(context[0].tokens) - 1 if context else 0, len(whole.tokens) - 1)


class Span(NamedTuple):
    """The continuation's tokens: from the first of them to the first that is not."""

    start: int
    end: int


def find_span(tokens: Sequence[str], pair: Continuation) -> Span | None:
    """Where the continuation is among the echoed tokens; None where their texts do not say it.

    A token before the text, such as the one of its beginning, is passed over.

    >>> find_span(["<s>", "Two", " plus", " two", "?"], Continuation("Two plus", " two"))
    Span(start=3, end=4)
    """
    whole = pair.context + pair.text
    for before in (0, 1):
        ends = list(accumulate(map(len, tokens[before:]), initial=0))
        if not "".join(tokens[before:]).startswith(whole):
            continue
        if len(pair.context) in ends and len(whole) in ends:
            # Of tokens without a text, which stand at one place, those before the continuation are the context's.
            start = max(place for place, end in enumerate(ends) if end == len(pair.context))
            end = min(place for place, end in enumerate(ends) if end == len(whole))
            return Span(before + start, before + end)
    return None


def lacks_generated(choice: EchoedChoice, text: str) -> bool:
    """Whether the token that was generated after the text is not listed with those of the text.

    It follows the last of them, so a list without it is one of probabilities that stand a token too late.
    """
    tokens = choice.logprobs.tokens if choice.logprobs is not None else []
    return choice.finish_reason == "length" and text in ("".join(tokens), "".join(tokens[1:]))


def _add_up(echoed: EchoedLogprobs, span: Span, place: int) -> Likelihood:
    logprobs = echoed.token_logprobs[span.start : span.end]
    top = (echoed.top_logprobs or [])[span.start : span.end]
    if not logprobs:
        raise _refusal(f"continuation {place} has no token of its own behind its context; begin it where a word begins")
    known = [logprob for logprob in logprobs if logprob is not None]
    if len(known) < len(logprobs):
        raise _refusal(
            f"the first token of continuation {place} has no log-probability, because the server puts no beginning-of-text token "
            "in front of a text; give the option beginning_of_text with the text of that token, such as '<|endoftext|>'"
        )
    if min(known) <= _NO_PROBABILITY:
        raise _refusal(f"a token of continuation {place} has the probability 0, whose logarithm is no score")
    if len(top) < len(known) or None in top:
        raise _refusal(
            "the server does not tell the likeliest tokens (top_logprobs), so nobody knows which were greedy"
        )
    greedy = all(
        logprob >= max(likeliest.values(), default=logprob)
        for logprob, likeliest in zip(known, (one or {} for one in top), strict=True)
    )
    return Likelihood(sum(known), greedy, len(known))


def _refusal(why: str) -> ProviderCallError:
    return ProviderCallError(why, kind="bad_request", retryable=False)
