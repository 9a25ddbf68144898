r"""What a text without a formal answer ends with: its last conclusion, not the check or remark after it.

The last sentence with a value counts, but for the asides: a check, an illustration, another way, a further quantity.
A paragraph that concludes ("Therefore ...") counts although it stands after an aside.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from themis.evaluation.extractors.remarks import drop_remarks
from themis.evaluation.extractors.stated_number import find_stated_number
from themis.evaluation.extractors.text import last_of
from themis.evaluation.metrics.notation import to_latex
from themis.evaluation.metrics.sentences import find_formulas, split_sentences, value_of

# What is asked stands in so many characters of a text that begins by saying it again.
_MAX_QUESTION = 600


@dataclass(frozen=True)
class _Said:
    """One sentence or displayed formula, where it stands, and the sentence that leads to it: itself, or that before it."""

    text: str
    start: int
    lead: str
    opens: bool  # a paragraph

    @property
    def concludes(self) -> bool:
        """By its first word, or that of its last clause; a displayed formula by any word before it."""
        if self.lead is not self.text and _CONCLUDES.search(self.lead):
            return True
        return bool(_CONCLUDES_FIRST.match(self.lead) or _CONCLUDES_LAST.search(self.text))

    @property
    def value(self) -> str | None:
        return prose_value(self.text) or value_of(self.text, announced=False)


def ending_value(text: str) -> str | None:
    """The LaTeX of what a text that announces nothing ends with, or None.

    >>> ending_value("So $x = 5$. Check: $2 + 5 = 7$.")
    'x = 5'
    """
    text = drop_remarks(text)
    end = len(without_asides(text))
    said = list(_sentences(text))
    for one in reversed(said):
        if one.start >= end and one.opens and one.concludes and not _is_remark(one) and one.value:
            return one.value
    said = [one for one in said if one.start < end]
    listed = _of_bullets([one.text for one in said])
    if listed:
        return listed
    # A sentence in brackets is a remark.
    told = [one for one in said if not re.fullmatch(r"[(（].*[)）]\W?", one.text, re.DOTALL) and not _is_aside(one)]
    told = [one for one in told if _CONCLUDES.search(one.text) or not _REFUSES.search(one.text)]
    if found := _in_bold(told) or _concluded_before(told):
        return found
    return _last_value(told or [one for one in said if not _REFUSES.search(one.text)], text[:_MAX_QUESTION])


def _sentences(text: str) -> Iterator[_Said]:
    before: _Said | None = None
    end = 0
    for sentence in split_sentences(text):
        start = text.index(sentence, end)
        opens = before is None or text.count("\n", end, start) > 1
        leads = before is not None and _DISPLAYED.match(sentence) and _LEADS.search(before.text)
        before = _Said(
            sentence, start, before.lead if before and leads else sentence, before.opens if before and leads else opens
        )
        end = start + len(sentence)
        yield before


def _in_bold(told: Sequence[_Said]) -> str | None:
    """The last value in bold within a sentence, where nothing is concluded after it: "So it reaches **8 feet** up the wall"."""
    for place, one in reversed(list(enumerate(told))):
        bold = last_of(_BOLD.finditer(one.text))
        if bold and not _BOLD_HEADING.match(one.text) and re.search(r"[\d$\\]", bold[1]):
            later = told[place + 1 :]
            if any(map(_continues, later)) or (not later and not _is_only_bold(one.text, bold)):
                return None
            return prose_value(bold[1]) or value_of(bold[1], announced=True)
    return None


def _is_only_bold(sentence: str, bold: re.Match[str]) -> bool:
    """Whether a sentence has one value in bold, and goes on in words: "ends in exactly **24 zeros**"."""
    values = [one for one in _BOLD.finditer(sentence) if re.search(r"[\d$\\]", one[1])]
    return len(values) == 1 and not re.match(r"\s*(?:=|[A-Za-z]{0,12}\s?,?\s?(?:and|or)\b|,)", sentence[bold.end() :])


def prose_value(sentence: str) -> str | None:
    """The number that a sentence in words states, as the reader of numbers finds it; None where it has formulas.

    >>> prose_value("Hence, 18 cups of flour are needed for 12 batches.")
    '18'
    """
    sentence = sentence.strip().strip("*_ ")
    if _FORMAL.search(sentence) or len(re.findall(r"\d[\d.,]*", sentence)) < 2 or not _IN_WORDS.search(sentence):
        return None
    number = find_stated_number(sentence)
    return None if number is None else f"{number}\\%" if number.percent else str(number)


_FORMAL = re.compile(
    r"[\\√π∞∪^≤≥<>±|=+×*/≈]|\$[^\d]|\$\d[^$\n]{0,40}\$|\d\s?[a-z]\b|\([^()]*\d\s?,|\d\s?:\s?\d|\d\s?[-−–]\s?\d"
    r"|\d,? (?:and|or|to) |\d, |[²³°]"
    r"|\b(?:base|that is|i\.e\.|below|namely|in other words)\b",
    re.IGNORECASE,
)
_IN_WORDS = re.compile(r"[^\W\d_]{2,} (?:[^\W\d_]+ )*[$€£]?\d")


def _concluded_before(told: Sequence[_Said]) -> str | None:
    """What a sentence that begins with "so" states, where those after it neither conclude nor go on."""
    for place, one in reversed(list(enumerate(told))):
        if _CONCLUDES_FIRST.match(one.lead) and one.value:
            later = told[place + 1 :]
            return one.value if later and not any(map(_continues, later)) else None
    return None


def _continues(said: _Said) -> bool:
    """Whether a sentence goes on with the working, or states something of its own."""
    if (
        _CONCLUDES_FIRST.match(said.lead)
        or _THEREFORE.search(said.lead)
        or _GOES_ON.match(said.lead)
        or _PLAINLY.match(said.lead)
    ):
        return True
    bold = last_of(_BOLD.finditer(said.text))
    if _DISPLAYED.match(said.text) or _CALCULATES.search(said.text) or (bold and re.search(r"\d", bold[1])):
        return True
    concludes = _CONCLUDES_LAST.search(said.text)
    return bool(concludes and re.search(r"[\d$\\]", said.text[concludes.end() :]))


_BOLD = re.compile(r"\*\*([^*\n]{1,120})\*\*")
_BOLD_HEADING = re.compile(r"\s*(?:[-•*]\s|\d{1,2}[.)]\s|\|)|[#>\s]*\*\*[^*\n]*(?::\*\*|\*\*\s?:|[.]\*\*\s|\*\*\s*$)")
_THEREFORE = re.compile(r"\b(?:is|are|was|were) (?:therefore|thus|hence|consequently)\b", re.IGNORECASE)
_CALCULATES = re.compile(
    r"\b(?:we|you) (?:get|obtain|find|have|then)\b|\b(?:gives?|yields?|leaves)\b|^\W*only\b", re.IGNORECASE
)
_DISPLAYED = re.compile(r"\$\$|\\\[|\\begin\b")
_LEADS = re.compile(r"(?<![\s*_.!?。！？✓])[*_\s]*\Z|\A[\s*_#]*+(?:\d+[.)]\s*)?\w+(?:\s\w+){0,2}[.:][\s*_]*\Z")


def _last_value(said: Sequence[_Said], opening: str) -> str | None:
    for place, one in enumerate(reversed(said)):
        if not place and _ENDS_IN_A_FORMULA.search(one.text):
            return None
        found = one.value
        if found:
            if place and not _CONCLUDES.search(one.lead) and _is_cut_off(said[-1].text):
                return None
            return _answer_before(one, said[: len(said) - place - 1], opening.partition("\n\n")[0]) or found
    return None


def _answer_before(last: _Said, said: Sequence[_Said], question: str) -> str | None:
    """What a paragraph concluded before a last sentence that goes on to something else."""
    if _CONCLUDES.search(last.lead) or _GOES_ON.match(last.lead) or _is_about(last, question):
        return None
    for one in reversed(said[1:]):
        if _GOES_ON.match(one.lead):
            return None
        if one.concludes and (
            _is_about(one, question) or (one.opens and not (last.opens and _PLAINLY.match(last.lead)))
        ):
            return one.value
        if _CONCLUDES.search(one.lead) or _is_about(one, question):
            return None
    return None


_GOES_ON = re.compile(
    r"[\s*_#>-]*(?:step|then|now|next|substitut\w*|plug\w*|with|using|this (?:gives|means|yields)|dann|nun|schritt|einsetzen"
    r"|alors|puis|maintenant|étape|entonces|ahora|paso|então|agora|passo|allora|ora|тогда|теперь|шаг|于是|那么|步骤)\b",
    re.IGNORECASE,
)
# A last paragraph of one plain sentence is the answer after an intermediate conclusion: "So r = 5. ... The area is 25."
_PLAINLY = re.compile(
    r"[\s*_]*(?:(?:The|Its|Der|Die|Das|Le|La|El|Il|O|A)\s|L['’])[^,.$\d]{2,50}\s(?:is|are|equals|ist|beträgt|est|vaut|es|è|é)\b[^,;]{1,60}$"
)


def _is_about(said: _Said, question: str) -> bool:
    """Whether a sentence's subject, or the left side of its formula, stands in the question."""
    for formula in find_formulas(said.text):
        left, equals, _ = said.text[formula.inside].partition("=")
        left = "".join(left.split())
        if equals and len(left) > 2 and left in "".join(question.split()):
            return True
    subject = _SUBJECT.match(_CONCLUDES_FIRST.sub("", said.lead))
    words = re.findall(r"[^\W\d_]{4,}", subject[1].lower()) if subject else []
    return any(re.search(rf"\b{word}", question, re.IGNORECASE) or _ANSWERS.fullmatch(word) for word in words)


_SUBJECT = re.compile(
    r"[\s,:*]*([^.$\\\d]{1,80}?)\s(?:is|are|equals?|ist|sind|beträgt|lautet|est|sont|vaut|es|son|é|são|è|sono|равн\w+)\b"
)
_ANSWERS = re.compile(r"solutions?|lösung\w*|soluci[oó]n\w*|soluç\w+|soluzion\w*|probability|results?|решени\w+")


# --- lists of solutions ---------------------------------------------------------------------------------------------


def _of_bullets(sentences: list[str]) -> str | None:
    """All of them where the text ends with a list of several solutions."""
    sentences = re.sub(r"^(\d{1,2}\.)\n", r"\1 ", "\n".join(sentences), flags=re.MULTILINE).split("\n")
    if len(sentences) > 1 and len({found[1] for found in map(_ASSIGNS.match, sentences) if found}) == len(sentences):
        return to_latex(", ".join(one.strip("$., ") for one in sentences))
    items = list(itertools.takewhile(_BULLET.match, reversed(sentences)))
    if len(items) < 2 or len(items) == len(sentences) or not _SEVERAL.search(sentences[-len(items) - 1]):
        return None
    values = [value_of(_BULLET.sub("", item), announced=True) for item in reversed(items)]
    return ", ".join(value for value in values if value) if all(values) else None


_ASSIGNS = re.compile(r"\$?\s*([A-Za-z])\s*=[^=]+$")
_BULLET = re.compile(r"\s*(?:[-*•]|\d+[.)])\s+")
_SEVERAL = re.compile(
    r"\b(?:solutions?|system|values|roots|answers|pairs|triples|points|numbers|functions|possibilities)\b.*:\W*$",
    re.IGNORECASE,
)


# --- words ----------------------------------------------------------------------------------------------------------

_REFUSES = re.compile(
    r"\b(?:(?:I|we|you|one) (?:cannot|can['’]t)|(?:cannot|can['’]t) (?:be )?(?:determine|answer|comput|calculat"
    r"|solve|found|help|say|tell|assist)"
    r"|unable to|not able to)",
    re.IGNORECASE,
)
_ENDS_IN_A_FORMULA = re.compile(r"(?:[-+/=^{(\\]|(?<!\*)\*)\s*$")


def _is_cut_off(sentence: str) -> bool:
    return len(sentence.split()) > 3 and not sentence.rstrip().endswith((*".!?。！？)]}$*:>`\"'✓✅", "\\]", "\\)"))


_CONCLUDES = re.compile(
    r"\b(?:so|therefore|thus|hence|consequently|donc|also|somit|por lo tanto|portanto|quindi)\b|所以|因此|故|したがって|よって|∴",
    re.IGNORECASE,
)
_CONCLUDES_FIRST = re.compile(
    r"""
    [\s*_\#>-]*+(?:\d{1,2}[.)][\s*_]*+)?
    (?:
        (?:so|therefore|thus|hence|consequently|(?:in\ )?conclusion|result|both\ (?:ways\ )?(?:lead|give)|altogether
          |in\ total|finally|overall|we\ conclude|it\ follows
          |also|somit|daher|folglich|daraus\ folgt|damit|insgesamt|ergebnis|donc|ainsi|par\ conséquent|en\ conclusion|résultat
          |on\ (?:en\ )?(?:conclut|déduit)
          |d['’]où
          |por\ (?:lo\ )?tanto|portanto|así\ que|luego|en\ conclusión|resultado|logo|assim|quindi|dunque|pertanto|risultato
          |следовательно|таким\ образом|значит|итак|итого|отсюда)\b
      | 所以 | 因此 | 故 | 综上 | したがって | よって | ゆえに | ∴ | \$?\\therefore\b
    )
    """,
    re.IGNORECASE | re.VERBOSE,
)
_CONCLUDES_LAST = re.compile(
    r"[,;] (?:and )?(?:so|hence|thus|therefore|also|somit|donc|quindi|portanto)\b", re.IGNORECASE
)
_CONFIRMS = re.compile(
    r"✓|✔|✅|\b(?:correct|confirm\w*|verif\w*|holds|checks|agree\w*|consistent|stimmt)\b", re.IGNORECASE
)


_LINE_START = r"^[ \t*_\#>(\[-]*+(?:\d{1,2}[.)][ \t*_]*+)?"
_ASIDE_WORDS = r"""
    check\w*|verif\w*|let(?:'s|\ me|\ us)\ (?:verify|check|double|know|test)|to\ (?:verify|check|double|illustrate)|note\b|remark
      |(?:we|i|you)\ (?:can\ |could\ |may\ )?(?:also\ |now\ |quickly\ )?(?:check|verify|test)|test(?:ing)?\b|sanity|proof\b
      |one\ (?:can\ )?(?:check|verif)\w*
      |source|confidence|difficulty|alternative|another\ (?:way|approach|method)|i\ hope|hope\ this|feel\ free|would\ you
      |if\ you\ (?:have|would|need|want)|this\ completes|explanation|here(?:['’]s|\ is)\ (?:why|how)\b
      |(?:from|of|out\ of)\ this\b|at\ (?:that|this)\ (?:time|point|moment)|you\ (?:may|might)\ (?:recogni[sz]e|notice
      |wonder)|don['’]t\ forget
      |(?:two|both)\ methods|两种方法
      |plugging|substitut\w+\ (?:it\ |this\ |these\ |them\ )?back|putting\ (?:it|this)\ back|to\ be\ (?:sure|safe)
      |in\ general\b|more\ generally
      |the\ general\ (?:formula|case|rule)|remember\b|keep\ in\ mind|(?:quick\ |pro\ |useful\ )?(?:tip|trick|hint)\b
      |recall\b|here\ we\ (?:used|use|have\ used)
      |numerically|as\ a\ decimal|in\ decimal|(?:this|that|it)(?:['’]s|\ is)\ (?:roughly|about|approximately|around|nearly
      |close\ to)\b
      |(?:this|that|the|it)(?:\ \w+){0,2}\ (?:is|are)\ (?:already\ |indeed\ )?(?:in\ (?:its\ )?(?:lowest|simplest|reduced)
      |irreducible|fully\ (?:reduced|simplified))
      |(?:this|that|it|the\ fraction)\ (?:can(?:not|['’]t)|does(?:\ not|n['’]t))\ (?:be\ )?(?:further\ )?(?:reduce
      |simplif)\w*|the\ check\b|warning|caution
      |by\ the\ way|by\ symmetry|incidentally|as\ an\ aside
      |from\ here|for\ (?:comparison|reference|illustration|the\ record)|as\ an?\ (?:check|illustration|example|remark)|aside\b
      |a\ (?:quick\ )?(?:check|test|remark|note)\b|many\ (?:students|people)|(?:a\ )?common\ (?:mistake|error)|fun\ fact|bonus
      |(?:they|their|these|both\ of\ (?:them|these))(?:['’]re)?\b
      |vérif\w*|remarque|preuve|au\ passage|pour\ (?:vérifier|illustrer|information)|à\ titre|on\ (?:peut\ )?vérifie\w*
      |probe\b|kontroll\w*|überprüf\w*|bemerkung|anmerkung|hinweis|zur\ (?:probe|kontrolle|veranschaulichung)|übrigens|nebenbei
      |comprob\w*|comprueb\w*|verific\w*|observaci\w*|observaç\w*|nota\b|prueba\b|por\ cierto|a\ propósito
      |osservazion\w*|per\ inciso
      |проверка|проверим|замечание|кстати|验证|检验|验算|注\b|注意|顺便|検算|確認|ちなみに|参考
"""
_ASIDE = re.compile(rf"{_LINE_START}(?:{_ASIDE_WORDS})", re.IGNORECASE | re.MULTILINE | re.VERBOSE)
_INSERTED = re.compile(
    r"\b(?:by the way|as an? (?:quick )?check|incidentally|of them|indeed|of course|interestingly|for (?:example|instance)"
    r"|should you|in case you|übrigens|nebenbei|als probe|zur (?:probe|kontrolle)|au passage"
    r"|por cierto|a propósito|per inciso|кстати)\b|顺便",
    re.IGNORECASE,
)
_RETRACTS = re.compile(
    r"\b(?:wait|actually|mistake|wrong|fails?|incorrect|correct(?:ed)? (?:answer|value)|should be|does(?:n't| not)|however)\b",
    re.IGNORECASE,
)


def _is_remark(said: _Said) -> bool:
    return _is_aside(said) or _CONFIRMS.search(said.text) is not None


def _is_aside(said: _Said) -> bool:
    inserted = _INSERTED.search(said.text) and not said.concludes
    return bool(
        _ASIDE.match(said.text) or inserted or (_SUPPOSED.search(said.text) and not _CONCLUDES_FIRST.match(said.lead))
    )


_SUPPOSED = re.compile(
    r"\b(?:would(?!\ be\ left)|could\ also|not\ (?:asked|needed|required)|wäre|serait|sería|seria|sarebbe|unlike"
    r"|if\ (?:it|we|you|the\w*)\ (?:had|were))\b",
    re.IGNORECASE,
)


def without_asides(text: str) -> str:
    """Up to the first check or remark after the answer, unless it takes something back."""
    begins = re.search(r"[\d$\\]", text)
    retracts = last_of(_RETRACTS.finditer(text))
    for aside in _ASIDE.finditer(text):
        if begins and begins.start() < aside.start() and not (retracts and retracts.start() >= aside.start()):
            return text[: aside.start()].rstrip()
    return text
