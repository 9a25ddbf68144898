"""Code that no fence marks: which lines of a text are code, and which spans of prose."""

from __future__ import annotations

import ast
import re
import textwrap
import warnings

from themis.core.patterns import lazy_pattern

_LOOKED_AT = 200_000
# Words that open a statement; prose that begins with one of them does not go on as code does.
_STATEMENT = lazy_pattern(
    r"""\s*(?:
    (?:async\s+)?def\s+\w+\s*\(|class\s+\w+\s*[(:{]|class\s+\w+$|import\s+[\w.{*"']+(?:\s*(?:,|as\s)|\s*;?\s*$|\s+from\s|\s*\w*\s*\})|from\s+[\w.]+\s+import\s
    |@\w[\w.]*(?:\(|$)|\#include\b|\#!|\#define\b|package\s+[\w.]+;?$|using\s+(?:namespace\s+)?[\w.:]+;|(?:public|private|protected|static)\s.*[({;]
    |func\s+(?:\([^)]*\)\s*)?\w+\(|(?:pub\s+)?fn\s+\w+|function\b\s*\w*\s*\(|(?:let|const|var)\s+[\w{\[].*(?:=|;)|(?:export|module\.exports)\b.*[={(;]
    |(?:if|elif|while|for|with|try|else|except|finally|match|case)\b[^.]*:\s*(?:\#.*)?$|(?:if|for|while|switch)\s*\(.*[{;)]\s*$
    |return\b(?:\s+[^\s].*)?$|raise\s+\w+|yield\b|assert\s+[\w(]|del\s+\w+$|pass$|break;?$|continue;?$|print\s*\(.*\)\s*;?$|lambda\b.*:
    |(?:SELECT|INSERT\s+INTO|UPDATE|DELETE\s+FROM|CREATE\s+(?:TABLE|VIEW|INDEX|OR)|ALTER\s+TABLE|WITH\s+\w+\s+AS|DROP\s+TABLE)\s
    |(?:FROM|WHERE|GROUP\s+BY|ORDER\s+BY|HAVING|LIMIT|VALUES|SET|UNION|(?:LEFT|RIGHT|INNER|OUTER|CROSS)?\s?JOIN|AND|ON)\s
    |<!DOCTYPE\b|</?(?:html|head|body|div|p|h[1-6]|ul|ol|li|table|tr|td|script|style|form|span|a|img|input|button)\b[^<>]*>
    |[\w.\[\]"'()*, ]{1,60}\s*(?:[-+*/%|&^]|//|\*\*|<<|>>)?=(?!=)\s*\S.*$
    |[\w.]+\(.*\)\s*;?\s*(?:\#.*|//.*)?$|\$\s\w|set\s+-|echo\s|for\s+\w+\s+in\s.*;\s*do|(?:done|fi|esac|do|then)$
    |[\w:<>,*& ]+\s+\w+\([^()]*\)\s*\{|struct\s+\w+|impl\b.*\{|\}\s*(?:else|catch|finally)?\s*.*\{?$|[\])}]+[;,)]*$|\{$
    )""",
    re.VERBOSE,
)
_STRONG = lazy_pattern(
    r"\s*(?:(?:async\s+)?def\s+\w+\s*\(|class\s+\w+\s*[(:{]|#include\b|#!|package\s+\w+|public\s+class|func\s"
    r"|(?:pub\s+)?fn\s|function\b\s*\w*\s*\("
    r"|SELECT\s|CREATE\s+TABLE|<!DOCTYPE|<html|import\s+[\w.]+$|from\s+[\w.]+\s+import\s|(?:let|const|var)\s+\w+\s*=)"
)
_COMMENT = lazy_pattern(r"\s*(?:#(?!#|!)|//|--\s|/\*|\*/|\*\s|\"\"\"|''')")
_LABEL = lazy_pattern(
    r"\s*(?:python3?|copy code|copy|javascript|js|java|c\+\+|cpp|sql|bash|go|rust|html|code|answer|solution"
    r"|output)\s*:?\s*$",
    re.IGNORECASE,
)
_PROSE = lazy_pattern(r"\s*[^\W\d_][^\n]*\s[^\n]*[.!?:]\s*$")


def find_bare_code(text: str) -> str | None:
    """The code in a text that has no fence: from its first line of code to its last, without the prose around; or None.

    >>> find_bare_code("This doubles:\\n\\ndef f(x):\\n    return 2 * x\\n\\nIt is short.")
    'def f(x):\\n    return 2 * x'
    """
    lines = _ANNOUNCED.sub("", text[:_LOOKED_AT].strip("\n")).split("\n")
    kinds = [_is_code(line) for line in lines]
    if not any(kinds):
        alone = text.strip()
        return alone if len(lines) == 1 and alone[:1] in "[{(" and is_expression(alone) else None
    first = kinds.index(True)
    while first > 0 and _COMMENT.match(lines[first - 1]) and not _PROSE.match(lines[first - 1][:_LINE]):
        first -= 1
    while first > 0 and lines[first][:1] in (" ", "\t") and _leads_in(lines[first - 1]):
        first -= 1
    # Only prose is left out: a line that is neither prose nor code is code that is broken.
    first = next((place for place in range(first) if not _may_introduce(lines[place])), first)
    last = len(kinds) - 1 - kinds[::-1].index(True)
    chosen = lines[first : last + 1]
    if not _holds_together(chosen, kinds[first : last + 1]):
        return None
    code = "\n".join(chosen).rstrip()
    # A whole program may be indented as Markdown sets code; the rest of a body keeps its place.
    return textwrap.dedent(code) if code[:1] in " \t" and _STRONG.match(code) else code


# "Answer: SELECT ..." on one line.
_ANNOUNCED = lazy_pattern(
    r"\A\s*\*{0,2}(?:answer|solution|code|query|sql|command|output)\*{0,2}:\*{0,2}[ \t]+(?=\S)", re.IGNORECASE
)


def _leads_in(line: str) -> bool:
    """Whether the indented line below belongs to this one: unless it is blank, or prose that announces it."""
    return bool(line.strip()) and (not line.rstrip().endswith((".", ":")) or bool(re.search(r"[=(){}\[\];<>]", line)))


def _may_introduce(line: str) -> bool:
    return not line.strip() or bool(_LABEL.fullmatch(line) or re.search(r"[.:!?。：！)*_>]\s*$|^\s*[#>*-]", line))


# A line of code is not longer; of one that is, its beginning tells.
_LINE = 500


def _is_code(line: str) -> bool:
    line = line[:_LINE]
    if not line.strip() or _LABEL.fullmatch(line):
        return False
    if _STATEMENT.match(line):
        return not _reads_as_prose(line)
    return bool(
        line[:1] in " \t" and not _reads_as_prose(line) and not re.match(r"\s*(?:[-*•]|\d+[.)])\s", line)
    ) and _has_marks(line)


def _has_marks(line: str) -> bool:
    return bool(re.search(r"[=(){}\[\];<>:+*/]|^\s+\w+$", line))


# Words of prose that no statement holds one after the other.
_TALK = lazy_pattern(
    r"\b(?:the|this|that|you|we|should|would|will|can|must|is a|is the|are|of the|to the|in the|it|they|please|which)\b",
    re.IGNORECASE,
)


def _reads_as_prose(line: str) -> bool:
    """Whether a line that begins like code goes on like a sentence."""
    without_strings = re.sub(r"\"[^\"\n]*\"|'[^'\n]*'|#.*|//.*", "", line)
    if _STRONG.match(line) or re.search(r"[{};]\s*$|\w\(.*\)|[\])]\s*:\s*$", without_strings):
        return bool(re.search(r"[.!?]\s*$", without_strings)) and len(_TALK.findall(without_strings)) > 1
    return len(_TALK.findall(without_strings)) > 0 and bool(
        re.search(r"[.!?,:]\s*$|\b(?:and|or|the|a)\s*$", without_strings)
    )


def _holds_together(lines: list[str], kinds: list[bool]) -> bool:
    """Whether what was found is code and not a sentence or two that look like it."""
    text = "\n".join(lines)
    if any(_STRONG.match(line) for line in lines):
        return True
    filled = [
        kind for line, kind in zip(lines, kinds, strict=True) if kind or (line.strip() and not _COMMENT.match(line))
    ]
    if len(filled) == 1:
        return is_expression(text) or bool(re.match(r"\s", text)) or text.rstrip().endswith(";") or _parses(text)
    return sum(filled) * 2 > len(filled)


def _parses(code: str) -> bool:
    """Whether code is Python that does something: more than a name or a value."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            body = ast.parse(code.strip()[:_LOOKED_AT]).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return any(
        not isinstance(one, ast.Expr)
        or isinstance(one.value, ast.Call | ast.ListComp | ast.DictComp | ast.SetComp | ast.GeneratorExp)
        for one in body
    )


def is_expression(code: str) -> bool:
    """Whether a line is a call or a comprehension of Python."""
    return len(code) < 2_000 and "\n" not in code.strip() and bool(re.search(r"[(\[=]", code)) and _parses(code)


_INLINE = lazy_pattern(r"(?<!`)`([^`\n]{3,500})`(?!`)")


def find_inline_code(text: str) -> str | None:
    """What is set as code in a line of prose: the whole reply, or the longest statement or call; or None."""
    alone = _INLINE.fullmatch(text.strip()) if len(text) < 2_000 else None
    if alone and re.search(r"[^\w\s.,]", alone[1]):
        return alone[1].strip()
    found = [one[1].strip() for one in _INLINE.finditer(text[:_LOOKED_AT])]
    if len(text.split()) > _SAID_WORDS and not text.rstrip().endswith((".", "!", "?", ":", "`", ")", "。")):
        return None  # cut off before the code
    commands = [code for code in found if _COMMAND.match(code)]
    return max((code for code in found if is_expression(code)), key=len, default=commands[0] if commands else None)


# Longer than this, a text that does not end as sentences do was cut off.
_SAID_WORDS = 40
_COMMAND = lazy_pattern(
    r"(?:sudo )?(?:git|docker|npm|npx|yarn|pip3?|conda|apt(?:-get)?|brew|ls|cd|grep|find|awk|sed|cat|curl|wget|tar|ssh|scp|rsync"
    r"|chmod|chown|kubectl|terraform|make|cargo|go|python3?|node|ffmpeg|sort|du|df|ps|kill|systemctl|mv|cp|rm|mkdir|ln|xargs|wc"
    r"|head|tail|echo|export|openssl|jq|zip|unzip|SELECT|UPDATE|DELETE|INSERT)\s+\S"
)
