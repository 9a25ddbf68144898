"""Readers of multiple choice: ours, and the rules of lm-eval, simple-evals and MMLU-Pro as they are published.

Only the regular expressions are theirs. Each reader gives the letter, or None where its rules find none.
"""

from __future__ import annotations

import re
import unicodedata

from tests.evaluation.replies import Line, Reader
from themis.evaluation.extractors.choice import find_choice, parse_options


def themis(line: Line) -> str | None:
    """What the metric `multiple_choice` reads."""
    letters = line["letters"]
    return find_choice(line["reply"], letters, parse_options(line.get("options"), letters))


def lm_eval_mmlu_pro(line: Line) -> str | None:
    """lm-eval's `custom-extract` of mmlu_pro: the first `answer is (B)`."""
    found = re.search(r"answer is \(?([ABCDEFGHIJ])\)?", line["reply"])
    return found[1] if found else None


def lm_eval_gpqa_strict(line: Line) -> str | None:
    """lm-eval's `strict-match` of gpqa: all that follows the first `The answer is `, then compared without punctuation."""
    found = re.search(r"(?<=The answer is )(.*)(?=.)", line["reply"])
    return _letter_without_punctuation(found[1]) if found else None


def lm_eval_gpqa_flexible(line: Line) -> str | None:
    """lm-eval's `flexible-extract` of gpqa: the last `(B)`, else the last option's text, else the last letter after a colon."""
    reply, letters = line["reply"], line["letters"]
    options = parse_options(line.get("options"), letters)
    bracketed = re.findall(r"(\([A-Z]\))", reply)
    if bracketed:
        return _letter_without_punctuation(bracketed[-1])
    texts = {_fold(text.strip()): letter for letter, text in options.items()}
    longest_first = sorted(map(re.escape, texts), key=len, reverse=True)
    spelled = re.findall("|".join(longest_first), _fold(reply)) if texts else []
    if spelled:
        return texts.get(spelled[-1].strip())
    after_colon = re.findall(rf":[\s]*({'|'.join(letters)})", reply)
    return after_colon[-1] if after_colon else None


def simple_evals(line: Line) -> str | None:
    """simple-evals' expression: the first `Answer: B`. Its class ends at D; here it takes the letters there are."""
    found = re.search(rf"(?i)Answer[ \t]*:[ \t]*\$?([{line['letters']}])\$?", line["reply"])
    return found[1].upper() if found else None


def mmlu_pro(line: Line) -> str | None:
    """MMLU-Pro's own three steps: `answer is (B)`, else `Answer: B`, else the last letter that stands alone."""
    reply = line["reply"]
    for pattern, flags in (
        (r"answer is \(?([A-J])\)?", 0),
        (r".*[aA]nswer:\s*([A-J])", 0),
        (r"(\b[A-J]\b)(?!.*\b[A-J]\b)", re.DOTALL),
    ):
        found = re.search(pattern, reply, flags)
        if found:
            return found[1]
    return None


def _fold(text: str) -> str:
    return "".join(sign for sign in text.lower() if not unicodedata.category(sign).startswith("P"))


def _letter_without_punctuation(text: str) -> str | None:
    letter = _fold(text).strip().upper()
    return letter if len(letter) == 1 else None


READERS: dict[str, Reader] = {
    "themis": themis,
    "lm-eval mmlu_pro": lm_eval_mmlu_pro,
    "lm-eval gpqa strict": lm_eval_gpqa_strict,
    "lm-eval gpqa flexible": lm_eval_gpqa_flexible,
    "simple-evals": simple_evals,
    "MMLU-Pro": mmlu_pro,
}
