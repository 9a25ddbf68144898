"""Readers of mathematical replies: ours, math-verify's, and the rules that lm-eval's MATH tasks use.

Each says whether a reply's answer equals the reference.
"""

from __future__ import annotations

import logging
import re

from tests.evaluation.replies import Line, Reader
from themis.evaluation.extractors.answers import find_boxes
from themis.evaluation.metrics.maths import MathVerifyAccuracy

_METRIC = MathVerifyAccuracy()


def read(line: Line) -> bool:
    """Whether our metric scores 1."""
    return _METRIC.compute(prediction=line["reply"], references=[line["reference"]]).value == 1.0


def read_by_math_verify(line: Line) -> bool:
    """As its README says: parse both with the default configurations, the key in dollar signs, then verify."""
    import math_verify

    logging.disable(logging.WARNING)
    return bool(math_verify.verify(math_verify.parse(f"${line['reference']}$"), math_verify.parse(line["reply"])))


def read_last_box(line: Line) -> bool:
    """The last box, compared as a string after the clean-up of the MATH dataset's own scorer."""
    boxes = find_boxes(line["reply"])
    return bool(boxes) and _clean(line["reply"][boxes[-1].inside]) == _clean(line["reference"])


def read_between_dollars(line: Line) -> bool:
    """What lm-eval's `hendrycks_math` takes: from the first dollar sign to the last, else the whole reply."""
    inside = line["reply"].split("$", 1)[-1].rsplit("$", 1)[0] if line["reply"].count("$") > 1 else line["reply"]
    return _clean(inside) == _clean(line["reference"])


def read_final_answer_sentence(line: Line) -> bool:
    """What lm-eval's `minerva_math` takes: the sentence of its own examples, by its normalisation and then by algebra.

    Algebra is math-verify's here, which reads more than the parser that the task calls.
    """
    import math_verify

    found = re.search(r"Final Answer: The final answer is(.*?).(?: I hope it is correct.|$)", line["reply"])
    if not found:
        return False
    answer, key = _normalise(found[1]), _normalise(line["reference"])
    logging.disable(logging.WARNING)
    return answer == key or bool(math_verify.verify(math_verify.parse(f"${key}$"), math_verify.parse(f"${answer}$")))


def _clean(latex: str) -> str:
    r"""Spacing, brackets' sizes, degrees, dollar signs, units in \text, percent signs and a short left side are dropped."""
    for dropped in ("\n", "\\!", "\\left", "\\right", "^{\\circ}", "^\\circ", "\\$", "\\%", "%"):
        latex = latex.replace(dropped, "")
    latex = latex.replace("\\\\", "\\").replace("tfrac", "frac").replace("dfrac", "frac")
    latex = re.sub(r"\\text\{ .*", "", latex)  # what follows is a unit
    latex = re.sub(r"(?<![\d])\.(?=\d)", "0.", latex)
    if latex.count("=") == 1 and len(latex.split("=")[0]) <= 2:
        latex = latex.split("=")[1]
    latex = re.sub(r"\\sqrt(\w)", r"\\sqrt{\1}", latex).replace(" ", "")
    latex = re.sub(r"\\frac(\w)(\w)", r"\\frac{\1}{\2}", latex)
    latex = re.sub(r"^(\d+)/(\d+)$", r"\\frac{\1}{\2}", latex)
    return "\\frac{1}{2}" if latex == "0.5" else latex


_UNITS = re.compile(
    r"(?<!\\)\b(?:square|ways|integers|dollars|mph|inches|ft|hours|km|units|points|feet|minutes|digits|cents|degrees|cm|gm"
    r"|pounds|meters|meals|edges|students|multiples)\b"
)


def _normalise(answer: str) -> str:
    """Behind the last equals sign, without spaces, unit words and wrapping."""
    answer = _UNITS.sub("", answer.split("=")[-1])
    for dropped in (
        "an ",
        "a ",
        "\\$",
        "\\ ",
        " ",
        "^\\circ",
        "^{\\circ}",
        "\\;",
        ",\\!",
        "{,}",
        '"',
        "\\ldots",
        "\\dots",
    ):
        answer = answer.replace(dropped, "")
    answer = answer.replace("mbox", "text").replace("\\text{and}", ",")
    answer = re.sub(r".*?\$(.*?)\$.*", r"\1", answer)
    answer = re.sub(r"\\(?:text|textbf|overline|boxed)\{(.*?)\}", r"\1", answer)
    answer = re.sub(r"frac([^{])(.)", r"frac{\1}{\2}", answer)
    answer = re.sub(r"sqrt([^{\[])", r"sqrt{\1}", answer).replace("$", "")
    return answer.replace(",", "") if answer.replace(",", "").isdigit() else answer


READERS: dict[str, Reader] = {
    "themis": read,
    "math-verify": read_by_math_verify,
    "lm-eval minerva_math": read_final_answer_sentence,
    "lm-eval hendrycks_math": read_between_dollars,
    "last box, MATH's own clean-up": read_last_box,
}
