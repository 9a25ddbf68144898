"""Log-probabilities as scores: which option a model finds likeliest, and how well it predicts a text.

For rows with `continuations`. These metrics read the stored record and never the model's words, so that judging a run again by
another of them asks nobody. Options are all continuations that are not named in the row's `baselines`; the reference is the right
option's index from 0, its text, or its letter.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from themis.core.continuations import (
    CONTINUATIONS,
    Continuation,
    Likelihood,
    read_baselines,
    read_continuations,
    read_likelihoods,
)
from themis.core.entities import MetricScore, ModelOutput
from themis.evaluation.corpus import STATISTICS
from themis.exceptions import ConfigurationError, MetricError
from themis.interfaces import Metric, Row

# A larger exponent makes a number of which no mean can be made.
_LARGEST_EXPONENT = 230.0


class Option(NamedTuple):
    """One of a row's continuations, and what the model made of it."""

    pair: Continuation
    found: Likelihood

    @property
    def text(self) -> str:
        """Without the white space before it."""
        return self.pair.text.lstrip() or self.pair.text


# --- which option ---------------------------------------------------------------------------------------------------------


class _Chosen(Metric):
    """Whether the option with the highest score is the right one; a subclass says how an option is scored."""

    score_range = (0.0, 1.0)
    pass_fail = True
    requires_answer = False
    reads_output = True

    def check_row(self, references: Sequence[object], row: Mapping[str, object]) -> None:
        """A reference that is none of the options is a mistake in the data."""
        unknown = Likelihood(math.nan, False, 0)
        right_options(self.name, references, [Option(pair, unknown) for _, pair in _pairs(self.name, row)])

    def compute(self, *, prediction: object, references: Sequence[object], metadata: Row | None = None) -> MetricScore:
        row = metadata or {}
        options = read_options(self.name, row)
        right = right_options(self.name, references, options)
        scores = self.score(options, row)
        chosen = max(range(len(options)), key=scores.__getitem__)
        details = {"chosen": chosen, "right": sorted(right), "scores": [round(score, 6) for score in scores]}
        return MetricScore(self.name, float(chosen in right), details)

    def score(self, options: Sequence[Option], row: Row) -> list[float]:
        """A number for each option, the higher the better."""
        raise NotImplementedError


@dataclass
class OptionAccuracy(_Chosen):
    """Share of the rows whose right option has the highest log-probability: lm-eval's `acc` of a multiple choice.

    Args:
        name: What the scores are reported as.

    >>> OptionAccuracy().name
    'acc'
    >>> from themis.core.entities import ModelOutput
    >>> found = [{"logprob": -4.0, "greedy": False, "tokens": 2}, {"logprob": -1.5, "greedy": True, "tokens": 1}]
    >>> row = {"prompt": "2 + 2 =", "continuations": [" five", " 4"], "model_output": ModelOutput("", {"continuations": found})}
    >>> OptionAccuracy().compute(prediction=None, references=["4"], metadata=row).details
    {'chosen': 1, 'right': [1], 'scores': [-4.0, -1.5]}
    """

    name: str = "acc"

    def score(self, options: Sequence[Option], row: Row) -> list[float]:
        return [option.found.logprob for option in options]


_LENGTHS: dict[str, Callable[[Option], int]] = {
    "characters": lambda option: len(option.text),
    "bytes": lambda option: len(option.text.encode("utf-8", "surrogatepass")),
    "tokens": lambda option: option.found.tokens,
}
_NAMES = {"characters": "acc_norm", "bytes": "acc_bytes", "tokens": "acc_tokens"}


@dataclass
class NormalizedOptionAccuracy(_Chosen):
    """Share of the rows whose right option has the highest log-probability for its length.

    Args:
        by: What the length is counted in: `characters`, as lm-eval's `acc_norm` does, `bytes` of UTF-8, as its `acc_bytes`, or
            `tokens`. The white space before an option, which divides it from its context, is not counted.
        name: What the scores are reported as; by default `acc_norm`, `acc_bytes` or `acc_tokens`.

    >>> NormalizedOptionAccuracy(by="bytes").name
    'acc_bytes'
    """

    by: str = "characters"
    name: str = ""

    def __post_init__(self) -> None:
        if self.by not in _LENGTHS:
            raise ConfigurationError(f"acc_norm: by is one of {', '.join(_LENGTHS)}, got {self.by!r}")
        self.name = self.name or _NAMES[self.by]

    def score(self, options: Sequence[Option], row: Row) -> list[float]:
        length = _LENGTHS[self.by]
        return [option.found.logprob / max(1, length(option)) for option in options]


@dataclass
class MutualInformationAccuracy(_Chosen):
    """Share of the rows whose right option gains most by its context: its log-probability less that of its baseline.

    The row brings the baselines: its `continuations` hold them after the options, and its `baselines` name the place of each, in
    the order of the options (`themis.core.continuations.option_continuations` makes both).

    Args:
        name: What the scores are reported as.

    >>> MutualInformationAccuracy().name
    'acc_mutual_info'
    >>> from themis.core.entities import ModelOutput
    >>> sums = [-4.0, -1.5, -6.0, -1.0]
    >>> output = ModelOutput("", {"continuations": [{"logprob": one, "greedy": False, "tokens": 1} for one in sums]})
    >>> pairs = [["2 + 2 =", " 4"], ["2 + 2 =", " the"], ["", " 4"], ["", " the"]]
    >>> row = {"continuations": pairs, "baselines": [2, 3], "model_output": output}
    >>> MutualInformationAccuracy().compute(prediction=None, references=[0], metadata=row).details["scores"]
    [2.0, -0.5]
    """

    name: str = "acc_mutual_info"

    def check_row(self, references: Sequence[object], row: Mapping[str, object]) -> None:
        super().check_row(references, row)
        self._baselines(row)

    def score(self, options: Sequence[Option], row: Row) -> list[float]:
        found = read_likelihoods(_output(row))
        baselines = [found[place].logprob for place in self._baselines(row)]
        return [option.found.logprob - baseline for option, baseline in zip(options, baselines, strict=True)]

    def _baselines(self, row: Mapping[str, object]) -> list[int]:
        if places := read_baselines(row):
            return places
        raise MetricError(
            f"{self.name} compares each option with a baseline, and the row has no `baselines`: score each option "
            "after a context that says nothing too, as option_continuations(options, baseline='') makes it"
        )


@dataclass
class GreedyMatch(Metric):
    """Whether the model, always taking its likeliest token, would have written the continuation: lm-eval's `acc` of one target.

    Of several options it is the right one that counts.

    Args:
        name: What the scores are reported as.

    >>> GreedyMatch().name
    'greedy_match'
    >>> from themis.core.entities import ModelOutput
    >>> output = ModelOutput("", {"continuations": [{"logprob": -1.5, "greedy": True, "tokens": 1}]})
    >>> row = {"continuations": [["2 + 2 =", " 4"]], "model_output": output}
    >>> GreedyMatch().compute(prediction=None, references=[], metadata=row).value
    1.0
    """

    name: str = "greedy_match"
    score_range = (0.0, 1.0)
    pass_fail = True
    requires_reference = False
    requires_answer = False
    reads_output = True

    def compute(self, *, prediction: object, references: Sequence[object], metadata: Row | None = None) -> MetricScore:
        target = read_targets(self.name, references, metadata or {})
        return MetricScore(self.name, float(any(option.found.greedy for option in target)))


# --- how well a text is predicted ------------------------------------------------------------------------------------------


class _PerUnit(Metric):
    """Log-probability for each unit of text, over all rows together; a row's own score is that of its text alone."""

    higher_is_better = False
    requires_reference = False
    requires_answer = False
    reads_output = True
    score_range = (1.0, None)

    def scored(self, logprob: float, units: float) -> MetricScore:
        value = math.exp(min(max(0.0, -logprob / units), _LARGEST_EXPONENT))
        return MetricScore(self.name, value, {"logprob": logprob, STATISTICS: [logprob, units]})


@dataclass
class Perplexity(_PerUnit):
    """How surprised the model is by the right continuation: the exponential of the mean negative log-probability a row.

    One target a row, or the right one of several options. Less is better; 1 is a model that knows each of them for certain.

    Args:
        name: What the scores are reported as.

    >>> Perplexity().name
    'perplexity'
    >>> from themis.core.entities import ModelOutput
    >>> output = ModelOutput("", {"continuations": [{"logprob": -1.5, "greedy": True, "tokens": 1}]})
    >>> row = {"continuations": [["2 + 2 =", " 4"]], "model_output": output}
    >>> round(Perplexity().compute(prediction=None, references=[], metadata=row).value, 3)
    4.482
    """

    name: str = "perplexity"
    aggregation = "perplexity"

    def compute(self, *, prediction: object, references: Sequence[object], metadata: Row | None = None) -> MetricScore:
        target = read_targets(self.name, references, metadata or {})
        return self.scored(max(option.found.logprob for option in target), 1.0)


def count_words(text: str) -> int:
    r"""Pieces between white space, counted as lm-eval does: white space at an end has an empty piece beside it.

    >>> count_words("two words"), count_words("two words\n")
    (2, 3)
    """
    return len(re.split(r"\s+", text))


def count_bytes(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


class _OfText(_PerUnit):
    """The same for each word or byte of the texts that were scored."""

    text_field: str | None
    count_units: ClassVar[Mapping[str, Callable[[str], int]]] = {"words": count_words, "bytes": count_bytes}
    units: ClassVar[str]

    def compute(self, *, prediction: object, references: Sequence[object], metadata: Row | None = None) -> MetricScore:
        row = metadata or {}
        options = read_options(self.name, row)
        units = self.count_units[self.units](self._text(options, row))
        if units < 1:
            raise MetricError(f"{self.name}: the text has nothing to count")
        return self.scored(math.fsum(option.found.logprob for option in options), float(units))

    def _text(self, options: Sequence[Option], row: Row) -> str:
        if self.text_field is None:
            # As it was scored, with the white space that belongs to it.
            return "".join(option.pair.text for option in options)
        text = row.get(self.text_field)
        if not isinstance(text, str):
            raise MetricError(f"{self.name}: the row's field {self.text_field!r} is no text")
        return text


@dataclass
class WordPerplexity(_OfText):
    """Perplexity a word over all texts of the run: exp(-sum of log-probabilities / words). Less is better.

    Args:
        text_field: The row's field whose words are counted, where another form of it was scored; by default the scored text.
        name: What the scores are reported as.

    >>> WordPerplexity().name
    'word_perplexity'
    >>> from themis.core.entities import ModelOutput
    >>> output = ModelOutput("", {"continuations": [{"logprob": -9.0, "greedy": False, "tokens": 4}]})
    >>> row = {"continuations": [["", "three short words"]], "model_output": output}
    >>> round(WordPerplexity().compute(prediction=None, references=[], metadata=row).value, 2)
    20.09
    """

    text_field: str | None = None
    name: str = "word_perplexity"
    aggregation = "perplexity"
    units = "words"


@dataclass
class BytePerplexity(_OfText):
    """Perplexity a byte of UTF-8 over all texts of the run. Less is better.

    Args:
        text_field: The row's field whose bytes are counted, where another form of it was scored; by default the scored text.
        name: What the scores are reported as.

    >>> BytePerplexity().name
    'byte_perplexity'
    >>> from themis.core.entities import ModelOutput
    >>> output = ModelOutput("", {"continuations": [{"logprob": -9.0, "greedy": False, "tokens": 4}]})
    >>> row = {"continuations": [["", "three short words"]], "model_output": output}
    >>> round(BytePerplexity().compute(prediction=None, references=[], metadata=row).value, 3)
    1.698
    """

    text_field: str | None = None
    name: str = "byte_perplexity"
    aggregation = "perplexity"
    units = "bytes"


@dataclass
class BitsPerByte(_OfText):
    """Bits that the model needs for a byte of UTF-8, over all texts of the run. Less is better.

    Args:
        text_field: The row's field whose bytes are counted, where another form of it was scored; by default the scored text.
        name: What the scores are reported as.

    >>> BitsPerByte().name
    'bits_per_byte'
    >>> from themis.core.entities import ModelOutput
    >>> output = ModelOutput("", {"continuations": [{"logprob": -9.0, "greedy": False, "tokens": 4}]})
    >>> row = {"continuations": [["", "three short words"]], "model_output": output}
    >>> round(BitsPerByte().compute(prediction=None, references=[], metadata=row).value, 3)
    0.764
    """

    text_field: str | None = None
    name: str = "bits_per_byte"
    aggregation = "bits_per_byte"
    score_range = (0.0, None)
    units = "bytes"

    def scored(self, logprob: float, units: float) -> MetricScore:
        value = max(0.0, -logprob / units / math.log(2))
        return MetricScore(self.name, value, {"logprob": logprob, STATISTICS: [logprob, units]})


# --- reading ---------------------------------------------------------------------------------------------------------------


def read_options(metric: str, row: Row) -> list[Option]:
    """The row's continuations that are not baselines, with what the model made of each.

    Raises:
        MetricError: The record holds no log-probabilities.
    """
    found = read_likelihoods(_output(row))
    if not found:
        raise MetricError(f"{metric} reads log-probabilities, and this answer has none; give the rows `continuations`")
    return [Option(pair, found[place]) for place, pair in _pairs(metric, row)]


def read_targets(metric: str, references: Sequence[object], row: Row) -> list[Option]:
    """The only option, or of several the right ones."""
    options = read_options(metric, row)
    if len(options) == 1:
        return options
    if not references:
        raise MetricError(
            f"{metric}: which of {len(options)} options is right? Name the row's field by reference_field"
        )
    return [options[place] for place in right_options(metric, references, options)]


def right_options(metric: str, references: Sequence[object], options: Sequence[Option]) -> list[int]:
    """The places of the options that references name by index, text or letter.

    Raises:
        MetricError: One of them names none, or by its text more than one in different contexts.
    """
    return sorted({place for reference in references for place in _places(metric, reference, options)})


def _places(metric: str, reference: object, options: Sequence[Option]) -> list[int]:
    if isinstance(reference, int | float) and not isinstance(reference, bool):
        if reference == int(reference) and 0 <= reference < len(options):
            return [int(reference)]
        raise MetricError(
            f"{metric}: the reference {reference!r} is no index of {len(options)} options, which count from 0"
        )
    wanted = str(reference).strip()
    same = [place for place, option in enumerate(options) if option.text.strip() == wanted]
    if not same:
        same = [place for place, option in enumerate(options) if option.text.strip().casefold() == wanted.casefold()]
    if len({options[place].pair.context for place in same}) > 1:
        raise MetricError(
            f"{metric}: the reference {wanted!r:.60} is the text of several options; give the right one's index"
        )
    if same:
        return same
    index = _index_of(wanted)
    if index is not None and index < len(options):
        return [index]
    texts = ", ".join(repr(option.text) for option in options[:8])
    raise MetricError(
        f"{metric}: the reference {wanted!r:.60} is no option's text, letter or index; the options are {texts:.300}"
    )


def _index_of(text: str) -> int | None:
    """`B`, `(B)` and `1` are the second option."""
    text = text.strip("().: ")
    if re.fullmatch(r"[A-Za-z]", text):
        return ord(text.upper()) - ord("A")
    return int(text) if re.fullmatch(r"\d{1,6}", text, re.ASCII) else None


def _pairs(metric: str, row: Mapping[str, object]) -> list[tuple[int, Continuation]]:
    """Each option with its place among the row's continuations."""
    if row.get(CONTINUATIONS) is None:
        raise MetricError(f"{metric} is for rows with `continuations`, and this one has none")
    baselines = set(read_baselines(row))
    pairs = enumerate(read_continuations(row, str(row.get("prompt", ""))))
    return [(place, pair) for place, pair in pairs if place not in baselines]


def _output(row: Mapping[str, object]) -> ModelOutput | None:
    output = row.get("model_output")
    return output if isinstance(output, ModelOutput) else None
