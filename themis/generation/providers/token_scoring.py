"""Log-probabilities of given texts from llama.cpp, which tells those of tokens that it generates: each token in turn is forced.

The next token is forced by a bias, and llama.cpp reports its probability without the bias, and which token was likeliest. The
context of a row is read once and kept in the cache; a token of a continuation costs one small request. What is asked is
decided here, in a generator that yields questions and is sent the answers: `local` asks inside the process,
`openai_compatible` over HTTP.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from themis.core.continuations import Continuation, Likelihood, move_spaces
from themis.exceptions import ProviderCallError

# Above every logit, so that the biased token is the one that is generated.
_FORCING_BIAS = 1e9
# How many of the likeliest tokens are looked through for one that llama.cpp does not tell of by itself: some, more, all.
_LOOKED_THROUGH = (512, 8_192, 10_000_000)
# What llama.cpp writes for the logarithm of a probability that has become zero.
_NO_PROBABILITY = -1e30


class Tokenize(NamedTuple):
    """Asks for the tokens of a text: a list of numbers."""

    text: str
    # With the token that the model's file wants at the beginning of every text, if it wants one.
    begins: bool


class Complete(NamedTuple):
    """Asks for a completion, as its body says: llama.cpp's answer."""

    body: dict[str, object]


Question: TypeAlias = Tokenize | Complete
Questions: TypeAlias = Generator[Question, object, "Scored"]


@dataclass(frozen=True)
class Scored:
    """What was found of each continuation, how many tokens were read for it, and how many of contexts were cut off."""

    likelihoods: list[Likelihood]
    evaluated_tokens: int
    truncated_tokens: int


class Passage(NamedTuple):
    """Tokens to score, and those before them."""

    context: tuple[int, ...]
    tokens: tuple[int, ...]


def score_by_tokens(pairs: Sequence[Continuation], *, prefix_token: int, window_tokens: int) -> Questions:
    """Scores continuations; the result is what the generator returns.

    Args:
        pairs: What is asked.
        prefix_token: What a text without a context begins with: the model's beginning-of-text token.
        window_tokens: How many tokens the model can read at once.
    """
    passages: list[list[Passage]] = []
    truncated = 0
    for place, pair in enumerate(pairs):
        found, cut = yield from _encode(move_spaces(pair), place, prefix_token, window_tokens)
        passages.append(found)
        truncated += cut
    scores: dict[Passage, Likelihood] = {}
    evaluated = 0
    for context in dict.fromkeys(passage.context for of_pair in passages for passage in of_pair):
        # Read by itself, so that a continuation's score depends on nothing else in its row.
        evaluated += _count_evaluated((yield _completion(context, prefix_token, is_cached=False)))
        for passage in dict.fromkeys(one for of_pair in passages for one in of_pair if one.context == context):
            scores[passage], read = yield from _score(passage, prefix_token)
            evaluated += read
    return Scored([_add_up(scores[one] for one in of_pair) for of_pair in passages], evaluated, truncated)


# --- tokens -------------------------------------------------------------------------------------------------------------


def _encode(
    pair: Continuation, place: int, prefix_token: int, window_tokens: int
) -> Generator[Question, object, tuple[list[Passage], int]]:
    """The passages of a continuation, and how many tokens of its context were cut off."""
    if not pair.context:
        tokens = _tokens((yield Tokenize(pair.text, begins=False)))
        if tokens[:1] == (prefix_token,):
            tokens = tokens[1:]
        _refuse_none(tokens, pair, place)
        return list(roll(tokens, prefix_token, window_tokens)), 0
    whole = _tokens((yield Tokenize(pair.context + pair.text, begins=True)))
    context = _tokens((yield Tokenize(pair.context, begins=True)))
    tokens = whole[len(context) :]
    _refuse_none(tokens, pair, place)
    if len(tokens) > window_tokens:
        raise ProviderCallError(
            f"continuation {place} has {len(tokens)} tokens, more than context_tokens={window_tokens}; raise that",
            kind="context_length",
            retryable=False,
        )
    # The last token is not read, only predicted.
    room = window_tokens + 1 - len(tokens)
    cut = max(0, len(context) - room)
    return [Passage(context[cut:] or (prefix_token,), tokens)], cut


def roll(tokens: tuple[int, ...], prefix_token: int, window_tokens: int) -> Iterator[Passage]:
    """A text in windows of which each token is predicted once: from the beginning, then each after the last token of the one
    before it; the last window is filled up with what stands before it.

    >>> list(roll((1, 2, 3, 4, 5), 0, 3))
    [Passage(context=(0,), tokens=(1, 2, 3)), Passage(context=(2, 3), tokens=(4, 5))]
    """
    yield Passage((prefix_token,), tokens[:window_tokens])
    done = window_tokens
    while done < len(tokens):
        end = min(done + window_tokens, len(tokens))
        yield Passage(tokens[end - 1 - window_tokens : done], tokens[done:end])
        done = end


def _refuse_none(tokens: tuple[int, ...], pair: Continuation, place: int) -> None:
    if not tokens:
        raise ProviderCallError(
            f"continuation {place} ({pair.text!r:.60}) has no token of its own behind its context; begin it where a word begins",
            kind="bad_request",
            retryable=False,
        )


def _tokens(answer: object) -> tuple[int, ...]:
    if not isinstance(answer, list | tuple) or not all(isinstance(token, int) for token in answer):
        raise _unreadable("tokens", answer)
    return tuple(answer)


# --- probabilities ------------------------------------------------------------------------------------------------------


def _score(passage: Passage, prefix_token: int) -> Generator[Question, object, tuple[Likelihood, int]]:
    """What the model makes of a passage whose context it has just read, and how many tokens were read for it."""
    logprob, greedy, evaluated = 0.0, True, 0
    read = passage.context
    for token in passage.tokens:
        answer = yield _completion(read, token)
        evaluated += _count_evaluated(answer)
        found = _generated(answer)
        if found is None or found.get("id") != token:
            # A part of a character is not told of: its probability stands among those of another token.
            found, more = yield from _look_up(read, token, prefix_token)
            evaluated += more
        value = found.get("logprob")
        if not isinstance(value, int | float) or not value > _NO_PROBABILITY:
            raise ProviderCallError(
                f"llama.cpp gives token {token} the probability 0, whose logarithm is no score",
                kind="invalid_response",
                retryable=False,
            )
        logprob += value
        greedy = greedy and _likeliest(found)[:1] == [token]
        read += (token,)
    return Likelihood(logprob, greedy, len(passage.tokens)), evaluated


def _look_up(
    read: tuple[int, ...], token: int, prefix_token: int
) -> Generator[Question, object, tuple[Mapping[str, object], int]]:
    evaluated = 0
    for count in _LOOKED_THROUGH:
        answer = yield _completion(read, prefix_token, likeliest=count)
        evaluated += _count_evaluated(answer)
        told = _generated(answer) or {}
        listed = _listed(told)
        found = next((one for one in listed if one.get("id") == token), None)
        if found is not None:
            return {**found, "top_logprobs": listed[:1]}, evaluated
    raise _unreadable(f"the probability of token {token}", told)


def _completion(read: tuple[int, ...], forced: int, *, is_cached: bool = True, likeliest: int = 1) -> Complete:
    return Complete(
        {
            "prompt": list(read),
            "n_predict": 1,
            "n_probs": likeliest,
            "logit_bias": [[forced, _FORCING_BIAS]],
            "temperature": 0.0,
            "cache_prompt": is_cached,
        }
    )


def _generated(answer: object) -> Mapping[str, object] | None:
    """The generated token with its log-probability; None where llama.cpp does not tell."""
    choices = _get(answer, "choices")
    if not isinstance(choices, list) or not choices:
        raise _unreadable("choices", answer)
    content = _get(_get(choices[0], "logprobs"), "content")
    return content[0] if isinstance(content, list) and content and isinstance(content[0], Mapping) else None


def _likeliest(found: Mapping[str, object]) -> list[object]:
    return [one.get("id") for one in _listed(found)]


def _listed(found: Mapping[str, object]) -> list[Mapping[str, object]]:
    listed = found.get("top_logprobs")
    return [one for one in listed if isinstance(one, Mapping)] if isinstance(listed, list) else []


def _count_evaluated(answer: object) -> int:
    usage = _get(answer, "usage")
    sent, cached = _get(usage, "prompt_tokens"), _get(_get(usage, "prompt_tokens_details"), "cached_tokens")
    return (sent if isinstance(sent, int) else 0) - (cached if isinstance(cached, int) else 0)


def _add_up(parts: Iterator[Likelihood]) -> Likelihood:
    logprobs, greedy, tokens = zip(*parts, strict=True)
    return Likelihood(sum(logprobs), all(greedy), sum(tokens))


def _get(value: object, name: str) -> object:
    return value.get(name) if isinstance(value, Mapping) else None


def _unreadable(expected: str, answer: object) -> ProviderCallError:
    return ProviderCallError(
        f"llama.cpp did not answer with {expected}: {answer!r:.200}", kind="invalid_response", retryable=True
    )
