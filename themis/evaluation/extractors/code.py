"""Which of the code in a reply is the solution: fenced blocks by what they define and how they are introduced, else bare code."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from themis.core.patterns import lazy_pattern
from themis.evaluation.extractors.bare_code import find_bare_code, find_inline_code
from themis.evaluation.extractors.text import find_next_turns

# Names under which one language is fenced.
_LANGUAGES = {
    "py": "python", "python3": "python", "python2": "python", "ipython": "python", "js": "javascript", "node": "javascript",
    "jsx": "javascript", "ts": "typescript", "tsx": "typescript", "sh": "bash", "shell": "bash", "zsh": "bash", "c++": "cpp",
    "cc": "cpp", "cxx": "cpp", "golang": "go", "rs": "rust", "rb": "ruby", "cs": "csharp", "c#": "csharp", "kt": "kotlin",
    "postgresql": "sql", "mysql": "sql", "sqlite": "sql", "hs": "haskell", "md": "markdown", "htm": "html", "yml": "yaml",
}  # fmt: skip
# Fenced so, a block shows something; it is not there to be run as the answer.
_SHOWN = {
    "text",
    "txt",
    "output",
    "console",
    "plaintext",
    "plain",
    "log",
    "terminal",
    "pycon",
    "stdout",
    "mermaid",
    "diff",
    "none",
    "out",
}
# What is typed where nothing else is given.
_TYPED = {"console", "terminal"}
_BESIDE = {
    *_SHOWN,
    "bash",
    "json",
    "yaml",
    "toml",
    "ini",
    "markdown",
    "csv",
    "powershell",
    "cmd",
    "bat",
    "dockerfile",
    "makefile",
}


@dataclass(frozen=True)
class CodeBlock:
    """A fenced block: its language ("" where the fence names none), its code, and the line of prose before it."""

    language: str
    code: str
    introduced: str = ""


def find_code(text: str, language: str | None = None, *, bare: bool = True) -> str | None:
    """The code that a reply gives to be run, or None; see `CodeBlockExtractor` for what counts."""
    text = _first_turn(text.replace("\r\n", "\n"))
    blocks = find_code_blocks(text)
    if blocks:
        wanted = _of_language(blocks, language)
        return "\n\n".join(block.code for block in _choose(wanted)) if wanted else None
    return find_bare_code(text) or find_inline_code(text) if bare else None


def _first_turn(text: str) -> str:
    """The text up to where the model goes on with a task of its own, after it has given code for the one that was set."""
    for end in find_next_turns(text):
        if text.count("```", 0, end) % 2 == 0 and (find_code_blocks(text[:end]) or find_bare_code(text[:end])):
            return text[:end]
    return text


# --- fences --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Fence:
    """A line that opens or closes a block: where it begins and ends, what stands before its mark and after it."""

    start: int
    end: int
    mark: str
    before: str
    info: str

    @property
    def late(self) -> bool:
        """Whether prose stands before the mark on the same line."""
        return not _INDENT.fullmatch(self.before)


_INDENT = lazy_pattern(r"(?:[ \t]*>){0,9}[ \t]*(?:(?:[-*•]|\d{1,2}[.)])[ \t]+)?")
_MARK = lazy_pattern(r"`{3,}|~{3,}")
_LATE_INFO = lazy_pattern(r"[\w+#-]*[ \t]*")


def _find_fences(text: str) -> Iterator[_Fence]:
    end = -1
    for mark in _MARK.finditer(text):
        if mark.start() < end:
            continue
        start = text.rfind("\n", 0, mark.start()) + 1
        end = text.find("\n", mark.end())
        end = len(text) if end < 0 else end
        fence = _Fence(start, end, mark.group(), text[start : mark.start()], text[mark.end() : end].rstrip("\r"))
        if "`" in fence.info or (fence.late and (not _LATE_INFO.fullmatch(fence.info) or fence.mark[0] == "~")):
            continue
        yield fence


_INFO = lazy_pattern(r"[{.\s]*([\w+#-]*)")
_ONE_LINE = lazy_pattern(r"```(?:(?P<language>[a-zA-Z+#]{1,12})[ \t]+)?(?P<code>[^`\n]+)```")
_TAGS = lazy_pattern(
    r"\[(?P<bracket>PYTHON|CODE|SOLUTION|BEGIN)\]\n?(?P<in_brackets>.*?)(?:\[/(?:PYTHON|CODE|SOLUTION)\]"
    r"|\[DONE\]|\[END\]|\Z)"
    r"|<(?P<tag>code|python|solution|answer|pre|final_answer|program"
    r"|script_code)(?:\s[^<>\n]{0,80})?>\n?(?P<in_tags>.*?)(?:</(?P=tag)>|\Z)",
    re.DOTALL | re.IGNORECASE,
)


def find_code_blocks(text: str) -> list[CodeBlock]:
    """Every fenced block; one whose closing fence is missing goes to the end."""
    blocks: list[CodeBlock] = []
    opened: _Fence | None = None
    prose_from = 0
    for fence in _find_fences(text):
        if opened is None:
            opened = fence
        elif fence.mark.startswith(opened.mark) and (not fence.info.strip() or fence.info.lstrip().startswith("<")):
            # The last line of the code may stand before its closing fence, and a tag after it.
            end = fence.start + len(fence.before) if fence.late else fence.start
            blocks.append(_block(text, opened, end, prose_from))
            opened, prose_from = None, fence.end
    if opened is not None:
        rest = _block(text, opened, len(text), prose_from)
        if rest.code.strip():
            blocks.append(rest)
        elif not blocks and not opened.late and not opened.info.strip():
            # Only the closing fence is there: the prompt had opened the block.
            blocks.append(CodeBlock("", text[: opened.start].strip("\n").rstrip()))
    blocks = [block for block in blocks if block.code.strip()]
    if not blocks:
        blocks = [
            CodeBlock(canonical_language(one["language"] or ""), one["code"].strip())
            for one in _ONE_LINE.finditer(text)
        ]
    return blocks or _find_tagged(text)


def _find_tagged(text: str) -> list[CodeBlock]:
    """Code between tags; of nested ones the inner."""
    found = []
    for one in _TAGS.finditer(text):
        inside = one["in_brackets"] if one["bracket"] else one["in_tags"]
        if one["tag"] and one["tag"].lower() == "pre":
            inside = re.sub(r"\A\s*<code[^<>\n]{0,80}>\n?|</code>\s*\Z", "", inside)
        code = find_bare_code(inside)
        if code is not None:
            found.append(CodeBlock("python" if (one["tag"] or "").lower() == "python" else "", code))
    return found


def _block(text: str, opened: _Fence, end: int, prose_from: int) -> CodeBlock:
    info = _INFO.match(opened.info)
    code = text[opened.end + 1 : end]
    if opened.before and not opened.late:
        code = "\n".join(_unindent(line, opened.before) for line in code.split("\n"))
    prose = text[prose_from : opened.start] + (opened.before if opened.late else "")
    lines = [line for line in prose[-600:].split("\n") if line.strip()]
    introduced = " ".join(lines[-2:] if len(lines) > 1 and len(lines[-1].split()) < 4 else lines[-1:])
    return CodeBlock(canonical_language(info[1] if info else ""), code.strip("\n").rstrip(), introduced)


def _unindent(line: str, indent: str) -> str:
    """A line without the quote marks and blanks that its fence has before it."""
    for mark in re.findall(r"[ \t]*>", indent):
        line = line.lstrip(" \t").removeprefix(mark.strip())
        line = line.removeprefix(" ")
    blanks = len(re.sub(r"[ \t]*>[ \t]?", "", indent))
    return line[min(blanks, len(line) - len(line.lstrip(" \t"))) :]


def canonical_language(language: str) -> str:
    """One name for each language, however it is fenced."""
    folded = language.casefold().strip("-")
    return _LANGUAGES.get(folded, folded)


# --- which blocks are the solution ------------------------------------------------------------------------------------------


def _of_language(blocks: Sequence[CodeBlock], language: str | None) -> list[CodeBlock]:
    if language is None:
        of_code = [block for block in blocks if block.language not in _BESIDE]
        return (
            of_code
            or [block for block in blocks if block.language not in _SHOWN]
            or [block for block in blocks[:1] if block.language in _TYPED]
        )
    wanted = canonical_language(language)
    named = [block for block in blocks if block.language == wanted]
    unnamed = [block for block in blocks if not block.language]
    # A block without a name may go with the others, or be what they print; alone it is the answer.
    return named or unnamed or [block for block in blocks if wanted == "bash" and block.language in _TYPED]


_OUTPUT = lazy_pattern(
    r"\b(?:outputs?|prints?|printed|returns|results? in|ausgabe|gibt aus|sortie|affiche|salida|imprime|saída"
    r"|risultato|stampa|вывод|выведет"
    r"|console|uitvoer)\b|输出|結果|结果|出力|परिणाम|आउटपुट|الناتج|المخرجات|출력",
    re.IGNORECASE,
)
_USE = lazy_pattern(
    r"\b(?:usage|examples?|use it|call it|calling|try it|run it|run this|running|tests?|testing|test cases?"
    r"|verify|check|assert\w*|demo|invoke"
    r"|beispiele?|aufruf|verwendung|anwendung|exemples?|utilisation|ejemplos?|uso|exemplos?|esempi[oi]?"
    r"|пример\w*|использован\w*|тест\w*|prova"
    r"|voorbeeld)\b|示例|例子|用法|测试|使用例|テスト|例|उदाहरण|مثال|예시|사용",
    re.IGNORECASE,
)
_WRONG = lazy_pattern(
    r"\b(?:mistakes?|do not|don't|don’t|never|wrong|incorrect|fails?|avoid|bad|broken|buggy|instead of|pitfall"
    r"|not (?:like|work)|anti-?pattern"
    r"|falsch|fehler|erreur|faux|incorrecto|erro|errato|неправильно|ошибк\w*)\b|错误|間違",
    re.IGNORECASE,
)
_OTHER_WAY = lazy_pattern(
    r"\b(?:(?:solution|approach|method|option|variant) (?:2|3|two|three|b|c)|alternatively|alternatives?"
    r"|another (?:way|option|approach|version|solution)|other (?:way|option"
    r"|approach)s?|you (?:can|could) also"
    r"|one-?liner|shorter|more concise|or,? (?:using|with|if)|if you prefer|for comparison|optional\w*|bonus"
    r"|variants?|recursive version"
    r"|equivalent\w*|less (?:robust|efficient)|alternativ\w*|sinon|otra forma|outra forma|in alternativa"
    r"|альтернатив\w*)\b|另一种|另外|別の|または",
    re.IGNORECASE,
)
_CORRECTED = lazy_pattern(
    r"\b(?:correct(?:ed|ion)?|fix(?:ed)?|improved?|better|final|updated?|revised?|rewritten|optimi[sz]ed|optimal"
    r"|efficient|refactored|actually|wait"
    r"|oops|sorry|instead|now|complete|full|whole|korrigiert\w*|verbessert\w*|richtig\w*|corrigée?|corregid[oa]"
    r"|corrigid[oa]|corrett[oa]"
    r"|исправлен\w*)\b|修正|更正|改进|正确",
    re.IGNORECASE,
)
_DEFINES = lazy_pattern(
    r"^(?:@[\w.]+(?:\([^\n]*\))?\s*\n)*(?:export\s+|public\s+|private\s+|static\s+|async\s+|pub\s+|default\s+)*"
    r"(?:def|class|function\*?|fn|func|struct|interface|enum|impl|trait|type|sub|module"
    r"|CREATE\s+(?:OR\s+REPLACE\s+)?(?:TABLE|VIEW|FUNCTION|PROCEDURE))"
    r"\s+(?:\([^()\n]{0,80}\)\s*)?(?P<name>[\w.]+)"
    r"|^(?:const|let|var)\s+(?P<bound>\w+)\s*=\s*(?:async\s*)?(?:function|\([^()\n]{0,200}\)\s*=>|\w+\s*=>)"
    r"|^(?P<assigned>\w+)\s*=\s*lambda\b"
    r"|^(?:[\w:<>,*&]+[ \t]+){1,3}[*&]?(?P<c_name>\w+)\([^;{}()]{0,200}\)\s*(?:const\s*)?\{",
    re.MULTILINE | re.IGNORECASE,
)
_TEST_NAME = lazy_pattern(r"test|main$", re.IGNORECASE)
_STUB = lazy_pattern(
    r"^[ \t]*(?:pass|\.\.\.|raise NotImplementedError[^\n]*|#[^\n]*|//[^\n]*|TODO[^\n]*|return;?)?[ \t]*$", re.MULTILINE
)
_SETUP_LINE = lazy_pattern(
    r"\s*(?:import\s|from\s+[\w.]+\s+import\s|#|//|using\s|require\b|use\s|package\s|const\s.*\brequire\("
    r"|\w+\s*(?::\s*[\w\[\], ]+)?=\s)|[\s)}\]]*$"
)
_ORDERED = lazy_pattern(
    r"\b(?:step|first|then|next|finally|part|schritt|étape|paso|passo|шаг)\b|步|まず|次に", re.IGNORECASE
)


def _choose(blocks: Sequence[CodeBlock]) -> list[CodeBlock]:
    """The blocks that together are the solution, in their order."""
    asked = [
        block for place, block in enumerate(blocks) if place + 1 == len(blocks) or not _GIVEN.search(block.introduced)
    ]
    if len(asked) == 1:
        return asked
    blocks = asked
    defined = [_names(block.code) for block in blocks]
    if not any(defined):
        return _choose_script(blocks)
    kept: list[int] = []
    for place, block in enumerate(blocks):
        names = defined[place]
        if not names and any(defined[earlier] for earlier in kept):
            continue  # a call, a test, an output or a part repeated
        if not names and not _is_setup(block.code):
            continue
        if names and _is_stub(block.code) and not _is_needed(names, defined[place + 1 :], blocks[place + 1 :]):
            continue
        said = block.introduced
        if kept and (_WRONG.search(said) or _OTHER_WAY.search(said)) and not _CORRECTED.search(said):
            continue
        # The same thing again is its new version, and so is a whole that is announced as one.
        kept = [earlier for earlier in kept if not (names & defined[earlier])]
        if names and _WHOLE.search(said):
            kept = [earlier for earlier in kept if defined[earlier] or _only_imports(blocks[earlier].code)]
        kept.append(place)
    kept = [place for place in kept if not _is_wrong_start(blocks[place], kept[-1] != place)]
    return [blocks[place] for place in kept] or [max(blocks, key=lambda block: len(block.code))]


# What is asked about, not what is answered.
_GIVEN = lazy_pattern(
    r"\b(?:(?:given|assuming|suppose|with) (?:you have |we have )?(?:your|the|this|these|an?|following) "
    r"(?:\w+ )?(?:schema|tables?|input|data)\b|your (?:schema|tables?|data|input)\b)",
    re.IGNORECASE,
)
# The parts before it are in it.
_WHOLE = lazy_pattern(
    r"\b(?:final|complete|full|whole|entire|all together|everything together|putting|put (?:it|everything|them)|combin(?:ed|ing)"
    r"|vollständig\w*|zusammen|complète?|completo|completa|полн\w+)\b|完整|完成",
    re.IGNORECASE,
)


def _only_imports(code: str) -> bool:
    return all(re.match(r"\s*(?:import\s|from\s|#|using\s|use\s|$)", line) for line in code.split("\n"))


def _is_needed(names: set[str], later: Sequence[set[str]], blocks: Sequence[CodeBlock]) -> bool:
    """Whether what a stub announces is not defined later, and used there or nowhere given otherwise."""
    if any(names & others for others in later):
        return False
    return not any(later) or any(re.search(rf"\b{re.escape(name)}\b", one.code) for name in names for one in blocks)


def _is_wrong_start(block: CodeBlock, has_later: bool) -> bool:
    return has_later and bool(
        re.search(r"\b(?:your code|original|wrong|buggy|broken|given code)\b", block.introduced, re.IGNORECASE)
    )


def _choose_script(blocks: Sequence[CodeBlock]) -> list[CodeBlock]:
    """Of blocks that define nothing: steps and what they need together, a corrected version alone, else the longest."""
    meant = [
        block
        for place, block in enumerate(blocks)
        if not place or not any(kind.search(block.introduced) for kind in (_OUTPUT, _USE, _WRONG, _OTHER_WAY))
        or _CORRECTED.search(block.introduced)
    ]  # fmt: skip
    corrected = [place for place, block in enumerate(meant) if place and _CORRECTED.search(block.introduced)]
    meant = meant[corrected[-1] :] if corrected else meant
    if len(meant) > 1 and (
        all(_ORDERED.search(block.introduced) for block in meant) or all(_is_setup(one.code) for one in meant[:-1])
    ):
        return meant
    return [max(reversed(meant), key=lambda block: len(block.code))]


def _names(code: str) -> set[str]:
    """What code defines at its top level, tests and the entry point not counted where there is something else."""
    found = {name for one in _DEFINES.finditer(code) for name in one.groups() if name}
    return {name for name in found if not _TEST_NAME.match(name)} or _entry(found)


def _entry(found: Iterable[str]) -> set[str]:
    return {name for name in found if name.casefold() == "main"}


def _is_stub(code: str) -> bool:
    """Whether functions are only announced: a signature, a docstring, and nothing that does anything."""
    body = re.sub(r"(\"\"\"|\'\'\').*?(?:\1|\Z)", "", code, flags=re.DOTALL)
    lines = [line for line in _STUB.sub("", body).split("\n") if line.strip()]
    return all(re.match(r"(?:async\s+)?(?:def|class)\s|import\s|from\s|@", line) for line in lines)


def _is_setup(code: str) -> bool:
    """Whether code only imports and assigns: what another block needs."""
    return all(_SETUP_LINE.match(line) for line in code.split("\n"))
