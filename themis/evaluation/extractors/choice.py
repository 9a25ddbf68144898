"""The letter of the option that a reply chooses, by an order of evidence.

Every mention of an option, by letter or by text, is weighed by what its sentence says of it; `find_choice` then reads down
the ranks of `Evidence`. The words for announcing, choosing and rejecting are in `choice_words`.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from enum import Enum, auto
from itertools import islice, pairwise

from themis.core.patterns import lazy_pattern
from themis.evaluation.extractors import choice_words as words
from themis.evaluation.extractors.answers import find_boxes
from themis.evaluation.extractors.exceptions import FieldExtractionError
from themis.evaluation.extractors.text import last_of, shorten, strip_thinking, text_of
from themis.exceptions import ConfigurationError


@dataclass(frozen=True)
class MultipleChoiceExtractor:
    """The letter of the chosen option: bare, in brackets, bold, boxed, announced, or at the end of reasoning.

    Args:
        choices: The letters there are, as a range or one by one.
        options: The options' texts, in order or by letter; a spelled-out option then counts as its letter.
        part: What of the reply is read: `text` (without reasoning), `reasoning`, `transcript`, `tool_calls` or `everything`.

    >>> MultipleChoiceExtractor("A-D").extract("So the answer is (b).")
    'B'
    """

    choices: str = "A-Z"
    options: Sequence[str] | Mapping[str, str] | None = None
    part: str = "text"

    def __post_init__(self) -> None:
        parse_letters(self.choices)

    def extract(self, raw_output: str) -> str:
        text = text_of(raw_output)
        letters = parse_letters(self.choices)
        letter = find_choice(text, letters, parse_options(self.options, letters))
        if letter is None:
            raise FieldExtractionError(f"no choice among {self.choices} in {shorten(text)}")
        return letter


def parse_letters(choices: str) -> str:
    """`"A-D"` and `"ABCD"` are both ABCD."""
    span = re.fullmatch(r"(\w)-(\w)", choices)
    letters = "".join(map(chr, range(ord(span[1]), ord(span[2]) + 1))) if span else choices
    if not letters.isalnum() or len(set(letters.upper())) != len(letters):
        raise ConfigurationError(f"choices must be a range such as 'A-D' or the letters themselves, got {choices!r}")
    return letters.upper()


def parse_options(options: object, letters: str) -> dict[str, str]:
    """The texts of the options: from a list, from a mapping by letter, or from a printed block of lettered lines."""
    if isinstance(options, str):
        lines = re.findall(r"^\s*\(?(\w)[).:]\s+(.+?)\s*$", options, re.MULTILINE)
        return {letter.upper(): text for letter, text in lines if letter.upper() in letters}
    if isinstance(options, Mapping):
        return {str(letter).upper(): str(text) for letter, text in options.items()}
    if isinstance(options, Sequence):
        return {letter: str(text) for letter, text in zip(letters, options, strict=False)}
    return {}


class Evidence(Enum):
    """What a mention of an option says about the answer."""

    FORMAL = auto()  # a box, a tag, a field, an answer line, `the answer is B`, a line that holds nothing else
    STATED = auto()  # `I choose B`, `B is correct`, `that leaves B`, `B: true`
    CLOSING = auto()  # the reply ends with it
    MENTIONED = auto()
    REJECTED = auto()  # `not B`, `B is wrong because`, `Incorrect options: B`
    ASIDE = auto()  # asked, supposed, looked at, or one of a list


def find_choice(text: str, letters: str, options: Mapping[str, str] | None = None) -> str | None:
    """The letter, upper case, of the option that the reply chooses, or None where it chooses none or several."""
    options = options or {}
    letters = "".join(letter for letter in letters if letter in options) or letters
    text = strip_thinking(text)
    reply = _plain(text, letters)
    texts = {letter: _plain(option, letters).strip().rstrip(".") for letter, option in options.items()}
    bold = {_plain(found, letters).strip(" .:,").casefold() for found in _BOLD.findall(text)}
    emphasised = {letter for letter, option in texts.items() if option.casefold() in bold}
    # A base model goes on with questions of its own: what it answers to them is not meant.
    further = next(
        (match.start() for match in words.NEXT_QUESTION.finditer(reply) if reply[: match.start()].strip()), 0
    )
    head = _read(_Page(reply[:further]), letters, texts, emphasised) if further else None
    is_open_object = text.rfind('{"') > text.rfind("}")
    return head or _read(_Page(reply, is_cut_off=is_open_object), letters, texts, emphasised)


def _read(page: _Page, letters: str, options: Mapping[str, str], emphasised: Set[str]) -> str | None:
    """The order of evidence, read down the page."""
    reply = page.reply
    weighed = _forget_retracted(reply, _weigh_all(page, _join(reply, _find_mentions(reply, letters, options)), letters))

    def by(evidence: Evidence) -> list[_Mention]:
        return [mention for mention, weight in weighed if weight is evidence]

    if concluded := _concludes_with(page, letters):
        return concluded
    formal, stated = by(Evidence.FORMAL), by(Evidence.STATED)
    for answers in ([mention for mention in formal if not mention.spelled], formal):
        if answers:
            return _only(_pick_of_several(answers[-1], stated))
    if opening := _opens_with_option(reply, options):
        return opening
    if (named := _NAMED_FIRST.match(reply)) and _letters(mention for mention, _ in weighed) == {named[1].upper()}:
        # `Option E: it cannot be determined` declines nothing.
        return named[1].upper()
    if _is_undecided(reply, options):
        return None
    rejected = _letters(by(Evidence.REJECTED))
    if stated:
        odd_one_out = _letters(mention for mention, _ in weighed) - _letters(stated)
        return _only(
            odd_one_out
            if len(letters) > 3 and len(_letters(stated)) == len(letters) - 1 and odd_one_out
            else stated[-1].letters
        )
    refusal = words.REFUSES.search(reply)
    for closing in by(Evidence.CLOSING)[-1:]:
        if not page.is_cut_off and not (refusal and page.sentence(closing)[0] <= refusal.start()):
            return _only(closing.letters)
    if page.is_cut_off or refusal:
        return None
    left = set(letters) - rejected if len(rejected) > 1 else set()
    mentioned = by(Evidence.MENTIONED)
    return (
        _only(emphasised - rejected)
        or _only(left)
        or _only(_letters(mentioned) - rejected)
        or _only(_letters(_opening(page, mentioned, letters)))
    )


_NAMED_FIRST = lazy_pattern(r"\W*(?:option|choice|answer)\s+\(?(\w)\)?\s?[:,.–—-]", re.IGNORECASE)


def _concludes_with(page: _Page, letters: str) -> str | None:
    """The option that the last sentence concludes with: "So the matching is 1-c, 2-b, 3-a, which is option C."."""
    found = words.CONCLUDES_WITH.search(page.reply[max(0, len(page.reply.rstrip()) - 300) :].rstrip())
    return found[1] if found and found[1] in letters and not page.is_cut_off else None


def _opens_with_option(reply: str, options: Mapping[str, str]) -> str | None:
    """The letter that a reply begins with, where the text of its option follows, and no list of the others."""
    if len(set(re.findall(r"^\W{0,6}([A-Z])\W{1,3}\s", reply, re.MULTILINE))) > 1:
        return None
    found = re.match(r"\W{0,4}([A-Z])\W{1,4}(?:the\s)?(?=\w)", reply, re.IGNORECASE)
    option = options.get(found[1].upper(), "").casefold().removeprefix("the ") if found else ""
    follows = reply[found.end() :].casefold() if found else ""
    is_whole = follows.startswith(option) and not follows[len(option) : len(option) + 1].isalnum()
    return found[1].upper() if found and option and is_whole and not words.RETRACTS.search(reply) else None


def _is_undecided(reply: str, options: Mapping[str, str]) -> bool:
    """None of them is right, said neither of a case that is not at hand nor as the text of an option."""
    if any(map(words.UNDECIDED.search, options.values())):
        return False
    reply = words.QUOTED.sub("", reply)
    return any(
        not words.SUPPOSED.search(_sentence_around(match))
        and not re.search(r"\b[A-Z][).:,]\W{0,3}\Z", reply[max(0, match.start() - 6) : match.start()])
        for match in islice(words.UNDECIDED.finditer(reply), _MOST_MENTIONS)
    )


def _sentence_around(match: re.Match[str]) -> str:
    before = _SENTENCE_END.split(match.string[max(0, match.start() - _WINDOW) : match.start()])[-1]
    return before + _SENTENCE_END.split(match.string[match.start() : match.end() + _WINDOW])[0]


def _opening(page: _Page, mentioned: Sequence[_Mention], letters: str) -> list[_Mention]:
    """The option that the first sentence is about, unless the reply seems to go through all of them."""
    return [
        one
        for one in mentioned[:1]
        if page.sentence(one)[0] == 0
        and letters[0] not in one.letters
        and not one.spelled
        and page.reply[one.end : one.end + 1] != ":"
    ]


def _letters(mentions: Iterable[_Mention]) -> set[str]:
    return {letter for mention in mentions for letter in mention.letters}


def _only(letters: Set[str]) -> str | None:
    return next(iter(letters)) if len(letters) == 1 else None


def _pick_of_several(answer: _Mention, stated: Sequence[_Mention]) -> Set[str]:
    """An answer may name several options, of which a later statement picks one."""
    later = [other.letters for other in stated if other.start > answer.start and other.letters < answer.letters]
    return later[-1] if later else answer.letters


def _forget_retracted(reply: str, weighed: list[tuple[_Mention, Evidence]]) -> list[tuple[_Mention, Evidence]]:
    """The answer is A. Wait: … it's B. What was taken back no longer counts, if another was chosen or it was called wrong."""
    choices = (Evidence.FORMAL, Evidence.STATED, Evidence.CLOSING)
    chosen = [mention.start for mention, weight in weighed if weight in choices]
    retracted = last_of(words.RETRACTS.finditer(reply[: chosen[-1]])) if len(chosen) > 1 else None
    retracted = retracted or words.RENOUNCES.search(reply, chosen[-1] if chosen else 0)
    return [(mention, weight) for mention, weight in weighed if not retracted or mention.start > retracted.start()]


# --- where options are mentioned


@dataclass(frozen=True)
class _Mention:
    """A place that names one option, or several at once (`B and C`)."""

    start: int
    end: int
    letters: frozenset[str]
    # By its text alone, or in a way that could also be a word or a number: it needs a context that asks for an option.
    spelled: bool = False
    faint: bool = False


_LATIN = r"A-Za-z0-9_\u00c0-\u024f\u0370-\u052f"
# A reply that names options more often than this says nothing new in between.
_MOST_MENTIONS = 400


def _find_mentions(reply: str, letters: str, options: Mapping[str, str]) -> list[_Mention]:
    """Letters and texts of options in their order; `B) Paris` is one mention, of B whatever the text says."""
    found = sorted(
        [*_find_letters(reply, letters), *_find_texts(reply, options), *_find_ordinals(reply, letters)],
        key=lambda one: (one.start, -one.end),
    )
    mentions: list[_Mention] = []
    for mention in found:
        last = mentions[-1] if mentions else None
        if last and mention.start < last.end:
            continue
        gap = reply[last.end : mention.start] if last else ""
        if last and mention.spelled and last.end == last.start + 1 and re.fullmatch(r"[ \t).:,(\[\]\"'|–—-]{1,5}", gap):
            mentions[-1] = replace(last, end=mention.end)
        elif last and last.spelled and not mention.spelled and gap.strip(" ") in ("(", "["):
            mentions[-1] = replace(mention, start=last.start)
        else:
            mentions.append(mention)
    return mentions


def _find_letters(reply: str, letters: str) -> Iterator[_Mention]:
    """A capital on its own; a small one or a digit only where it is set apart. A and I are English words too."""
    for match in _some_of(re.finditer(_LETTER.format(letters=letters, small=letters.lower()), reply)):
        letter, end = match.group(), match.end()
        before, after = reply[max(0, match.start() - 30) : match.start()], reply[end : end + 24]
        bracketed = before.endswith(("(", "[", "<", '"', "“", "'", "‘", "«"))
        is_small = not letter.isupper()
        if bracketed or not (
            _is_word(letter, before, after) or (is_small and not _is_set_apart(letter, before, after))
        ):
            yield _Mention(match.start(), end, frozenset(letter.upper()), faint=is_small)


_LETTER = (
    rf"(?<![{_LATIN}.\\])(?<![{_LATIN}]['’])"
    # 500 J · P(A) · N/A
    r"(?<!\d )(?<![A-Za-z]\()(?<!N/)"
    "[{letters}{small}]"
    # E° · C++ · B-52 · A.M. · A ∩ B · A = 5, but A/B and A = wrong
    rf"(?![{_LATIN}]|['’](?![dt][iı]r)\w|/(?![{{letters}}]\b)\w|[-+#^]\w|[°′∞]|\+\+|#|\.\w|\s?[∩∪×+<]\s"
    r"|\s?=(?!\s?(?i:wrong|right|true|false|correct|incorrect|yes|no)\b))"
)


def _some_of(matches: Iterator[re.Match[str]]) -> Iterator[re.Match[str]]:
    """All of them, or the first and the last: a reply that names options a thousand times says nothing new in between."""
    yield from islice(matches, _MOST_MENTIONS)
    yield from deque(matches, maxlen=_MOST_MENTIONS)


def _is_set_apart(letter: str, before: str, after: str) -> bool:
    if re.match(r"\s*(?:[).,:;!?\]\"'”>|]|$|\n)|\s+(?:because|since|bc)\b", after):
        return True
    # An article may follow `the answer is`, but not `option`.
    named = words.CHOICE_BEFORE if letter in "ai" else words.NAMED_BEFORE
    return named.search(before) is not None


def _is_word(letter: str, before: str, after: str) -> bool:
    """The article, which is a capital only where a sentence begins, or the pronoun."""
    if letter not in "AI" or not re.match(r"[ \t]+[a-zß-ÿ]" if letter == "A" else r",?[ \t]+[a-zß-ÿ]", after):
        return False
    if letter == "I":
        return not re.match(r",?\s+(?:is|because|since)\b", after) and not re.search(
            r"\b(?:only|option|choice)\s\Z", before, re.I
        )
    begins = re.search(r"(?:\A|[.!?:\n—–])[\s\"'“]*\Z", before)
    return bool(begins) and not words.AFTER_A_LETTER.match(after)


def _find_texts(reply: str, options: Mapping[str, str]) -> Iterator[_Mention]:
    by_pattern = {_text_pattern(text): letter for letter, text in options.items() if re.search(r"\w", text)}
    if not by_pattern:
        return
    longest_first = sorted(by_pattern, key=len, reverse=True)
    everything = re.compile("|".join(f"({pattern})" for pattern in longest_first), re.IGNORECASE)
    for match in _some_of(everything.finditer(reply)):
        letter = by_pattern[longest_first[(match.lastindex or 1) - 1]]
        yield _Mention(*match.span(), frozenset(letter), spelled=True)


def _find_ordinals(reply: str, letters: str) -> Iterator[_Mention]:
    """The second option."""
    for match in _some_of(words.ORDINAL.finditer(reply)):
        place = match.lastindex or 1
        letter = letters[-1] if place > 5 else letters[place - 1 : place]
        if letter:
            yield _Mention(*match.span(), frozenset(letter), spelled=True)


def _text_pattern(text: str) -> str:
    """The text with any spacing and case, with or without its article; a number not as a part of another."""
    article = re.match(r"(?:the|an?)\s+(?=\w)", text, re.IGNORECASE)
    text = text[article.end() :] if article else text
    pattern = r"\s*".join(map(re.escape, re.findall(r"\w+|[^\w\s]", text)))
    pattern = re.sub(r"(?<=\w)\\s\*(?=\w)", r"\\s+", pattern)
    start = rf"(?<![{_LATIN}])" if re.match(rf"[{_LATIN}]", text) else ""
    end = rf"(?![{_LATIN}])" if re.search(rf"[{_LATIN}]\Z", text) else ""
    if text[:1].isdigit():
        start += r"(?<![\d][.,/])(?<![-−^/.])"
    if text[-1:].isdigit():
        end += r"(?![.,/^]\d)(?!\s?%)"
    return start + (r"(?:(?:the|an?)\s+)?" if article else "") + pattern + end


_VERB = lazy_pattern(r"\W{0,3}(?:is|est|ist|es|é|è)\b")


def _join(reply: str, mentions: Sequence[_Mention]) -> list[_Mention]:
    """`B and C`, `A, B or D` as one mention of several; `B, C is wrong` are two."""
    joined: list[_Mention] = []
    for mention in mentions:
        last = joined[-1] if joined else None
        gap = reply[last.end : mention.start] if last else ""
        if last and len(gap) <= 24 and words.JOINS.fullmatch(gap) and not last.spelled and not mention.spelled:
            # B, C is wrong · unlike A, B and C, option D
            another = gap.lstrip(")] ").startswith(",") and (
                re.search(r"\b(?:and|und|et|y|e)\b", reply[last.start : last.end])
                or (not re.search(r"\w", gap) and _VERB.match(reply, mention.end))
            )
            if not another and not mention.letters <= last.letters:
                joined[-1] = _Mention(last.start, mention.end, last.letters | mention.letters, faint=last.faint)
                continue
        joined.append(mention)
    return joined


# --- what is said of each


class _Page:
    """A reply with the places where its lines and sentences begin and end."""

    def __init__(self, reply: str, *, is_cut_off: bool = False) -> None:
        self.reply = reply
        self._ends = [match.end() for match in _SENTENCE_END.finditer(reply)]
        lines = [match.span() for match in re.finditer(r"[^\n]*\S[^\n]*", reply)]
        self.first_line, self.last_line = (lines[0], lines[-1]) if lines else ((0, 0), (0, 0))
        # A last sentence without an end, after others that had one.
        unended = re.search(r"[.!?。！？:\n][^.!?。！？\n]*[^\W\d_]{2}\s*\Z", reply[-400:])
        announced = words.ANNOUNCES_NEXT_LINE.fullmatch(reply[slice(*self.last_line)][-80:]) if lines else None
        row = re.search(r"(?:\A|\n)\|[^\n]*[^|\s]\s*\Z|[,:+=(×]\s*\Z", reply[-400:])
        self.is_cut_off = bool(is_cut_off or announced or row or (unended and self._ends))

    def sentence(self, mention: _Mention) -> tuple[int, int]:
        """Where the sentence of a mention begins, and where it ends."""
        before = bisect_right(self._ends, mention.start)
        after = bisect_right(self._ends, mention.end - 1)
        start = self._ends[before - 1] if before else 0
        # A letter's own full stop (B. Paris) does not end its sentence where it begins a line.
        if after < len(self._ends) and self._ends[after] == mention.end + 1 and self.begins_line(mention):
            is_question = after + 1 < len(self._ends) and self.reply[self._ends[after + 1] - 1] == "?"
            after += self.reply[mention.end] == "." and not is_question
        end = self._ends[after] if after < len(self._ends) else len(self.reply)
        return max(start, mention.start - _WINDOW), min(end, mention.end + _WINDOW)

    def clause(self, mention: _Mention) -> str:
        """Its sentence without what another `but` says."""
        after = re.split(r", but\b", self.reply[mention.end : self.sentence(mention)[1]])[0]
        return self.clause_before(mention) + self.reply[mention.start : mention.end] + after

    def clause_before(self, mention: _Mention) -> str:
        return re.split(r", but\b", self.reply[self.sentence(mention)[0] : mention.start])[-1]

    def begins_line(self, mention: _Mention) -> bool:
        before = self.reply[max(0, mention.start - 12) : mention.start].rpartition("\n")[2]
        return not re.search(r"\w", before) and (mention.start <= 12 or len(before) < 12)

    def ends_line(self, mention: _Mention) -> bool:
        rest = self.reply[mention.end : mention.end + 12].partition("\n")[0]
        return not re.search(r"\w", words.COPULA.sub("", rest))

    def set_alike(self, one: _Mention, other: _Mention) -> bool:
        """Whether both are texts, or letters with the same signs around them."""
        if one.spelled or other.spelled:
            return one.spelled and other.spelled
        first, second = (
            (
                self.reply[max(0, place - 1) : place] in ("(", "["),
                self.reply[place + 1 : place + 3].lstrip(" ")[:1] or "\n",
            )
            for place in (one.start, other.start)
        )
        return first == second and not first[1].isalnum()

    def answer_to_itself(self, mention: _Mention) -> Evidence:
        """B? No, because … C? It has the right units, yes."""
        reply = re.match(r"[^?\n]{0,60}\?\W{0,3}([^.!?\n]{0,60})", self.reply[mention.end : mention.end + 130])
        said = words.REPLIES.search(reply[1]) if reply else None
        if said:
            return Evidence.STATED if said["yes"] else Evidence.REJECTED
        asks = len(self.clause(mention).split()) > 4 or words.ASKS.match(self.clause(mention))
        return Evidence.ASIDE if asks else Evidence.MENTIONED

    def verdict_on(self, mention: _Mention) -> re.Match[str] | None:
        """A later sentence about an option: `A) Paris. This is incorrect.`, or the line below one that heads a section."""
        rest, _, below = self.reply[mention.end : mention.end + 400].partition("\n")
        sentences = re.split(r"[.!?:;—–]\s", rest)[1:]
        if not self.begins_line(mention):
            sentences = [sentence for sentence in sentences[:1] if re.match(r"This|That", sentence)]
        elif (self.ends_line(mention) or not below.startswith("\n")) and not re.match(
            r"\W{0,3}\w[).:]", below.lstrip()
        ):
            sentences += re.split(r"[.!?;—–]\s", below.lstrip())[:1]
        sentences = [words.OF_THIS.sub("", sentence) for sentence in sentences if not words.OF_ANOTHER.match(sentence)]
        return next(filter(None, map(words.SAID.match, sentences)), None)


_WINDOW = 140
_SENTENCE_END = lazy_pattern(r"[.!?]+(?=[\s\"'”)\]]|$)|[。！？;；\n]")


def _weigh_all(page: _Page, mentions: Sequence[_Mention], letters: str) -> list[tuple[_Mention, Evidence]]:
    listed = _find_listed(page, mentions, letters)
    weighed: list[tuple[_Mention, Evidence]] = []
    for index, mention in enumerate(mentions):
        start, end = page.sentence(mention)
        before, after = page.reply[start : mention.start], page.reply[mention.end : end]
        if index:
            last = mentions[index - 1]
            if last.end > start:
                before = page.reply[last.end : mention.start]
                if weighed[-1][1] is Evidence.REJECTED:
                    # The answer is not A but B: what was said before A goes for B.
                    before = words.REJECTED.sub("", page.reply[start : last.start]) + before
        if index + 1 < len(mentions):
            # B, not C: what turns to the next is not said of this one.
            after = words.REJECTED.sub("", after[: max(0, mentions[index + 1].start - mention.end)])
        weighed.append((mention, _weigh(page, mention, before, after, index in listed)))
    return weighed


def _weigh(page: _Page, mention: _Mention, before: str, after: str, is_listed: bool) -> Evidence:
    """What one mention says, by the first of these that applies."""
    clause = page.clause(mention)
    if clause.rstrip("\n \"'”)]").endswith("?"):
        return page.answer_to_itself(mention)
    if words.EXCEPTED.search(before):
        return Evidence.STATED
    marked = before[-6:] if page.begins_line(mention) else ""
    if words.REJECTED.search(before) or words.LISTED_AS_WRONG.search(before) or words.MARKED_AS_WRONG.search(marked):
        return Evidence.REJECTED
    # What is supposed of the next option is not supposed of this one.
    supposed = words.SUPPOSED.search(page.clause_before(mention) + after) or (
        words.BY_OTHERS.search(before) and not words.CONFIRMED.match(after)
    )
    if _is_announced(before, after) or words.IS_ANSWER.match(after) or words.DECIDED.search(before):
        if len(mention.letters) > 1 and words.IS_SUBJECT.match(after):
            return Evidence.ASIDE
        was = re.search(r"\bwas\W*\Z", before)
        taken_back = (
            (was and re.match(r"[^.!?]{0,60}, but\b", after))
            or words.TAKES_BACK.match(after)
            or words.NEGATED_BEHIND.search(after[:30])
        )
        if taken_back or supposed or (was and words.AT_FIRST.search(before)):
            return Evidence.REJECTED if taken_back else Evidence.ASIDE
        return Evidence.STATED if was or words.WOULD.search(before[-20:] + after[:12]) else Evidence.FORMAL
    after = re.sub(r"\bnot because\b", "because", after)
    reason = words.REASON.search(after)
    said = words.SAID.search(after[: min(90, reason.start() if reason else 90)]) or page.verdict_on(mention)
    if said and (said["no"] or words.NEGATED_BEHIND.search(after[:30])):
        return Evidence.REJECTED
    if (
        supposed
        or words.CONCEDED.search(words.QUOTED.sub("", before))
        or words.AT_FIRST.search(before)
        or (said and reason and words.BUT.match(reason.group()))
        or (said and words.HALF_WRONG.search(after))
    ):
        return Evidence.ASIDE
    standing = None if is_listed else _standing(page, mention, after)
    if standing:
        return standing
    if (
        words.CHOSEN.search(before)
        or words.MARKED_AS_RIGHT.search(marked)
        or (said and said.start() < (12 if mention.spelled else 90))
    ):
        return Evidence.STATED
    if words.AND_THIS_IS.match(page.reply[mention.end : page.sentence(mention)[1]]):
        return Evidence.STATED
    no_option = not mention.spelled and words.NO_OPTION.search(before)
    if is_listed or mention.faint or no_option or words.LOOKED_AT.search(before):
        return Evidence.ASIDE
    is_last = mention.start >= page.last_line[0] and not re.search(r"\w", page.reply[mention.end :])
    leads_up = not mention.spelled or words.LINKED.search(before)
    return Evidence.CLOSING if is_last and leads_up else Evidence.MENTIONED


def _is_announced(before: str, after: str) -> bool:
    """By the noun nearest to the mention: the false statement is C, so the answer is C."""
    start = _last_start(words.ANNOUNCED, before)
    goes_on = re.match(r"[\s)\]]{0,3}(?:\d[\d.,]*\s)?[a-zß-ÿа-яḀ-ỿ]", after, re.IGNORECASE)
    if start is None and not goes_on and not (after.startswith(")") and words.IN_BRACKETS.search(before)):
        start = _last_start(words.NAMED, before)
    if start is None or words.NOT_THE_ANSWER.search(before[:start]):
        return False
    # The result is 17, which isn't among the options: A is 12.
    return not words.REFUSES.search(before, start)


def _last_start(pattern: re.Pattern[str], text: str) -> int | None:
    start = None
    match = pattern.search(text)
    while match:
        start = match.start()
        match = pattern.search(text, start + 1)
    return start


def _standing(page: _Page, mention: _Mention, after: str) -> Evidence | None:
    """What a line of its own says, or the beginning of the reply: `B. It is the only one that …`"""
    opens, closes = mention.start < page.first_line[1], mention.start >= page.last_line[0]
    line = page.reply[slice(*(page.first_line if opens else page.last_line))] + "." if opens or closes else ""
    if words.ONLY_NAMED.fullmatch(line) or words.ONLY_NAMED.fullmatch(page.clause(mention)):
        return Evidence.FORMAL
    if not page.begins_line(mention):
        return None
    if page.ends_line(mention) or re.match(r"[\s\"')\].]*\n", after):
        is_bare = mention.end - mention.start == 1
        if mention.spelled and not opens and not closes:
            return None
        return Evidence.FORMAL if opens or (closes and (is_bare or mention.spelled)) else Evidence.STATED
    if opens and mention.spelled:
        return Evidence.FORMAL if re.match(r",|\s*[–—.:]\s", after) else None
    if opens and re.match(r"[)\].:,;!]|\s*[–—-]\s|\s+(?:because|since|as|bc|weil|porque|car|因为)\b", after):
        # B) describes …, C) describes …: the first of a discussion is not yet an answer.
        return Evidence.STATED if re.match(r"[).:]\s+[a-zß-ÿ]", after) else Evidence.FORMAL
    return None


def _find_listed(page: _Page, mentions: Sequence[_Mention], letters: str) -> set[int]:
    """Those that head the entries of a list of options: A) …, B) …, C) …, on lines that adjoin, or else in their order."""
    heads = [index for index, one in enumerate(mentions) if len(one.letters) == 1 and page.begins_line(one)]
    alike = [(one, other) for one, other in pairwise(heads) if page.set_alike(mentions[one], mentions[other])]
    adjoining = [
        (one, other) for one, other in alike if page.reply.count("\n", mentions[one].end, mentions[other].start) == 1
    ]
    places = {index: letters.find(next(iter(mentions[index].letters))) for index in heads}
    in_order = [
        (one, other)
        for one, other in alike
        if places[other] == places[one] + 1
        and not mentions[one].spelled
        and page.ends_line(mentions[one]) == page.ends_line(mentions[other])
    ]
    return {index for pair in adjoining or in_order for index in pair}


# --- the text without its typesetting

_COMMANDS = lazy_pattern(
    r"\\(?:text|math|rm|bf|it|left|right|displaystyle|large|Large|quad|boxed|fbox)[a-z]*(?![a-zA-Z])|\\[,;! ]"
)
_ARROWS = lazy_pattern(r"\\(?:Rightarrow|Longrightarrow|rightarrow|implies|to|therefore)\b")
_ANSWER_TAG = lazy_pattern(
    r"<(?:final[_ -]?)?(?:answer|choice|option|selected[_-]?option|response|result|letter|output)(?:\s[^<>]{0,60})?>",
    re.IGNORECASE,
)
_LINE_TAG = lazy_pattern(r"<br\s?/?>|</(?:p|div|li|answer|choice|option)>", re.IGNORECASE)
_OTHER_TAG = lazy_pattern(r"</?[a-zA-Z]\w{1,20}(?:\s[^<>]{0,80})?/?>")
_BOLD = lazy_pattern(r"\*\*([^*\n]{1,200})\*\*")
_STRUCK = lazy_pattern(r"~~[^~]{1,300}~~")
_BOLD_LETTER = lazy_pattern(r"(\*\*|__)[\s(\[\"']{0,2}(\w)[\s).:\]\"']{0,2}\1(?!\w)")
_GLUED_BOLD = lazy_pattern(r"(?<=[^\W\d_]{2})(\*\*\(?\w\)?\*\*)")
# An option set in bold, letter and text.
_BOLD_OPTION = lazy_pattern(r"^[\s>#-]{0,9}\*\*(\(?\w[).:]\s[^*\n]{1,200})\*\*", re.MULTILINE)
_BULLET = lazy_pattern(
    r"^[ \t>#•·▪►●○◦]*(?:[-+*–][ \t]+)*(?:(?:question|q|frage)\s?\d{1,3}[.):][ \t]+(?=\S))?",
    re.IGNORECASE | re.MULTILINE,
)
_NUMBERED = lazy_pattern(r"^\d{1,2}[.)]\s+(?=\S)", re.MULTILINE)
_QUOTES = str.maketrans("’‘“”−", "''\"\"-")
_LOOKALIKES = str.maketrans("АВСЕНΑΒΕΗΙ", "ABCEHABEHI")
_FOREIGN_LETTER = lazy_pattern(rf"(?<![{_LATIN}'’])[АВСЕНΑΒΕΗΙ](?![{_LATIN}'’]|\s+\w)")
_FOREIGN_ALPHABET = lazy_pattern(rf"(?<![{_LATIN}])[БГДΓΔ][).]")


def _plain(text: str, letters: str) -> str:
    """One alphabet, no typesetting; boxes and tags as answer lines."""
    text = unicodedata.normalize("NFKC", text).translate(_QUOTES)
    text = re.sub(r"\[[xX✓✔]\](?!\()", "✅", re.sub(r"\[ \]", "☐", text))
    bold = _BOLD_OPTION.findall(text)
    if len(bold) == 1:
        text = _BOLD_OPTION.sub(r"✅ \1", text)
    text = _ANSWER_TAG.sub("\nanswer: ", _STRUCK.sub("", _unbox(text)))
    text = _OTHER_TAG.sub("", _LINE_TAG.sub("\n", text))
    for tag in {tag.lower() for tag in re.findall(r"</([a-zA-Z])>", text)}:
        text = re.sub(rf"</?{tag}>", "", text, flags=re.IGNORECASE)
    text = _ARROWS.sub("→", _COMMANDS.sub(" ", text))
    text = (
        re.sub(r"[{}$*`\\]", "", _BOLD_LETTER.sub(r"(\2)", _GLUED_BOLD.sub(r" \1 ", text)))
        .replace("_", " ")
        .replace("~", " ")
    )
    if not _FOREIGN_ALPHABET.search(text):
        text = _FOREIGN_LETTER.sub(lambda match: match.group().translate(_LOOKALIKES), text)
    text = re.sub(r"\b([Aa]ns|ANS)\.(?=\s)", r"\1:", _BULLET.sub("", text)).replace("TL;DR", "TLDR")
    return _join_announcements(text if letters.isdigit() else _NUMBERED.sub("", text))


def _unbox(text: str) -> str:
    parts: list[str] = []
    position = 0
    for box in find_boxes(text):
        if box.start >= position:
            parts += [text[position : box.start], " answer: ", text[box.inside], " "]
            position = box.end
    return "".join([*parts, text[position:]])


def _join_announcements(text: str) -> str:
    """`## Answer`, and the letter on the next line; but a list of options is no letter."""
    lines = text.split("\n")
    filled = [place for place, line in enumerate(lines) if line.strip()]
    for one, other, third in zip(filled, filled[1:], [*filled[2:], -1], strict=False):
        is_list = third > 0 and _ENTRY.match(lines[other]) and _ENTRY.match(lines[third])
        if not is_list and len(lines[one]) <= 80 and words.ANNOUNCES_NEXT_LINE.fullmatch(lines[one]):
            lines[one], lines[other] = "", f"answer: {lines[other].removeprefix('✅ ')}"
    return "\n".join(lines)


_ENTRY = lazy_pattern(r"\W{0,3}\w(?:[).:]|\s?[–—-])\s")
