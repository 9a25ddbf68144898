r"""How replies announce, conclude, decline, check and remark: the wording that tells the stated number from the others.

Patterns only; `number_sentences` and `stated_number` say what follows from them. Languages stand a line each.
"""

from __future__ import annotations

import re

from themis.core.patterns import lazy_pattern
from themis.evaluation.extractors.announcements import LANGUAGES, WEAK_NOUN


def _pattern(pattern: str, flags: re.RegexFlag = re.IGNORECASE) -> re.Pattern[str]:
    """Capitals do not matter, unless the flags say so."""
    return lazy_pattern(pattern, flags)


def _any(*lines: str) -> str:
    """Alternatives, listed over several lines."""
    return "|".join(lines)


_MARKUP = r"[\s*_#>(\-•]*"  # before the first word of a sentence

# --- sentences -------------------------------------------------------------------------------------------------------

_ABBREVIATED = "".join(
    rf"(?<!\b{name}\.)"
    for name in (r"i\.e", r"e\.g", r"d\.h", r"z\.B", "Rs", "approx", "Mr", "Mrs", "Dr", "No", "vs", "ca")
)
SENTENCE_END = _pattern(rf"{_ABBREVIATED}(?<=[.!?])[\"'”)*`\]]{{0,4}}\s+(?![=≈])|[。！？，；]|[\n\r]+")
DIGITS = _pattern(r"\d+(?:[.,]\d+)*")
PARAGRAPH = _pattern(r"\n\s*\n\s*$")
LINE = _pattern(r"[^\n]*\S[^\n]*")
ROW_OR_BULLET = _pattern(r"\s*(?:\||[-*•+]\s)")
BOLD = _pattern(
    r"\*\*(?!\s)(?!(?:step|part|method|case|note|day|week|month|year|example|option|approach)\b|\d{1,2}[.)]\s)"
    r"(?P<inside>[^*\n]{1,300})(?<!:)\*\*(?!\s?:)"
)
PROGRAM = _pattern(
    r"^```(?!json|text|txt|latex|tex|markdown|md|math)[A-Za-z+]{1,20}\n(?:(?!```)[^\n]*\n)*(?:```|\Z)", re.MULTILINE
)
RULE = _pattern(r"^[ \t]{0,3}(?:```\w*|-{3,}|\*{3,}|_{3,}|={3,})[ \t]*$", re.MULTILINE)
NEXT_TURN = _pattern(r"\n[ \t*#]{0,9}(?:Q|Question|User|Human|Problem)\s?\d{0,3}[ *]{0,3}:", re.NOFLAG)

# --- formal answers --------------------------------------------------------------------------------------------------


def _nouns(*, spaced: bool) -> str:
    """The nouns that announce an answer and nothing less, of the languages whose words blanks part, or of the others."""
    languages = [language for language in LANGUAGES if language.spaced is spaced]
    nouns = (noun for language in languages for noun in language.nouns if not WEAK_NOUN.fullmatch(noun))
    return "|".join(noun.replace(" ", r"\s") for noun in nouns)


_NOUNS = _nouns(spaced=True)
_NOUNS_WITHOUT_VERB = _any(_nouns(spaced=False), r"پاسخ|উত্তর")
_VERBS = _any(
    r"(?:would|should|must|will|could|might|has to|have to)\s(?:\w+\s)?be|is|was|equals|comes (?:out )?to|becomes",
    r"ist|lautet|wäre|beträgt",
    r"est(?:\sde)?|es(?:\sde)?|sería|é(?:\sde)?|seria|è|sarebbe|este",
    r"är|er|adalah|là|to(?=\s[\d*])|jest|wynosi|είναι|равен|это",
)
ANNOUNCES = lazy_pattern(
    rf"""
    (?<![A-Za-z/]) (?<!</final_) (?:{_NOUNS}) (?![^\W_])
    (?: [^\n.:=|]{{0,160}}? \b(?P<says>{_VERBS})(?!\w)
      | [^\n.:=|\d]{{0,30}}? (?: [:=|>] | \s[-→—](?=\s) ) )
    [\s:*_]{{0,20}} (?!not\b)
  | (?:{_NOUNS_WITHOUT_VERB}) (?:\sالنهائية)? [\s*]{{0,4}} (?:应该是|應該是|就是|是|为|為|は|가|은|는|هو|هي|[:=|])?
    [\s:*_]{{0,20}}
    """,
    re.VERBOSE | re.IGNORECASE,
)
HEADING = _pattern(
    rf"^[ \t#*_>]{{0,9}}(?:the\s|my\s)?(?:final\s)?(?:{_NOUNS})[ \t*_:#]{{0,9}}\n\s*", re.MULTILINE | re.IGNORECASE
)
HASHES = _pattern(r"####[ \t]*(?=[*$€£ ]{0,4}-?[$€£]?\.?\d)(?![*]{0,2}\d{1,2}[.)]\s+\D)")
# Before "answer": it is supposed, another one than the last, or a verb.
NOT_THE_ANSWER = _pattern(
    r"\b(?:if|whether|suppose|supposing|assuming|unless|wrong|incorrect|long|longer|detailed|first|initial|previous|original|old"
    r"|earlier)\s(?:the\s|your\s|my\s)?(?:\w+\s)?$|\b(?:to|can|could|cannot|can't|I|we|please)\s$"
)
CONDITION = _pattern(r"(?:^|[.!?:\n]\s?)[\s*_(]*(?:if|had|without|otherwise|with)\b[^.!?\n]*$")
CONDITION_AFTER = _pattern(r"[^.;\n]{1,40}\bif\b[^.\n]*,\s(?:but|so)\b")
UNREAL = ("would", "could", "might")
# What may stand between an announcement and its number.
LEAD = _pattern(
    r"(?:[\s*_`\"'“<\[({|~≈:>=\\-]|\$(?!\d)|(?:"
    + _any(
        r"approximately|approx\.?|about|around|exactly|roughly|nearly|probably|likely|maybe|just|only|simply|indeed|clearly",
        r"equal to|a total of|[a-z](?=\s?=)|is|USD|EUR|GBP|INR|Rs\.?|CHF|US|R(?=\$)",
        r"ungefähr|etwa|environ|de|aproximadamente|circa|примерно|около|约|大约|約",
    )
    + r")(?![^\W\d_]))*"
)
# After a number: a calculation goes on, so that it is not the result.
CALCULATES = _pattern(
    r"[*_`)\s]{0,4}(?:[A-Za-z°%$€]{1,12}\s)?(?:[+×·÷*/^]|-(?=[\s\d])|x(?=\s?\d))\s?[\d(√$]|\s?!\s?=|[a-z]\s?[=+-]"
)
NO_ANSWER = _pattern(
    r"[\s*_`\"'“<\[({$]*(?:null(?=\s*[,}])|none given|unknown|n/?a\b|undefined|infinit|∞|cannot|can't"
    r"|not\s(?:enough|possible|determin|given|known|defined)|impossible|undetermined|indeterminate|no\s(?:answer|solution)"
    r"|insufficient|unclear|it depends)"
)
RETRACTS = _pattern(
    r"(?:^|[.!?:\n(*_\s-])(?:wait|actually|hmm|oops|correction|sorry|apologies|I apologi[sz]e|scratch that|on second thought"
    r"|no,|no\.|let me re|I (?:made|forgot|mis|overlooked)|there(?:'s| is| was) a(?:n| small)? (?:mistake|error))"
)
AFFIRMS = _pattern(
    r"\b(?:is|was|looks|that's|seems|still|indeed|are)\s(?:\w+\s)?(?:correct|right|fine|holds?)\b|\bchecks out\b|\bconfirm"
    r"|\bstands\b|\bmatches\b|[✓✔✅]"
)

# --- answers that stand alone ----------------------------------------------------------------------------------------

BEFORE_ALONE = _pattern(
    r"(?:[^\w+×·÷/%.,]|\b(?:it's|it is|that's|USD|EUR|GBP|INR|Rs\.?|about|approximately|so|yes|only|just|exactly|sure|TL;DR"
    r"|short answer|in short)\b|^\s*A(?:nswer)?:)*"
)
RATED = _pattern(
    r"[\s*_#]*(?:(?:my |overall |final |quality )?(?:score|rating|grade|mark|points?)"
    r"|rated?)[\s*_]*:[\s*_]*(?=(?P<score>\d{1,3}(?:\.\d+)?)"
    r"(?:\s?(?:/|out of)\s?\d+)?[\s*_.]*(?:\n|$))"
)
_NO_SIGN = r"[^\w=+×÷?.]"
AFTER_ALONE = _pattern(
    rf"{_NO_SIGN}*(?:(?!(?:is|are|was|were|plus|minus|times|has|have)\b)[^\W\d_]+{_NO_SIGN}{{1,3}}){{0,2}}(?:[^\W\d_]+)?(?:\^\d)?"
    rf"{_NO_SIGN}*(?:\.(?!\.){_NO_SIGN}*)?"
)
BEFORE_REMARK = _pattern(
    r"[*_$)%°]{0,4}(?:\s[^\W\d_]+){0,3}(?:\^\d)?[*_$)]{0,4}(?::|\s?[—(;]|\s-|,(?=\s[a-z])|\s(?=because\b|since\b|as\b))\s?"
    r"(?=[^\W\d_]|[\"'(√]|\d+\s[a-z]{3,})(?s:.*)",
    re.NOFLAG,
)
EXPLAINS = _pattern(
    _MARKUP
    + "(?:"
    + _any(
        r"breakdown|explanation|(?:using|because)(?![^.\n]*,)|here(?:'s|’s| is) (?:why|how|the)",
        r"reasoning|reason|why|details|working|steps|calculation|how|erklärung|begründung|explication|explicación|explicação|spiegazione|объяснение",
        r"解释|解析|説明|설명|الشرح|व्याख्या",
    )
    + r")\b"
)

# --- no answer -------------------------------------------------------------------------------------------------------

DECLINES = _pattern(
    r"\b(?:"
    + _any(
        r"I(?:'m|’m| am) (?:sorry|unable|not able)|as an AI|I (?:do not|don't|don’t) (?:know|have)|need more information",
        r"I (?:can(?:'t|’t|not)|won't|will not|could not|couldn't) (?:help|assist|answer|provide|determine|say|tell|solve"
        r"|compute|give|do)",
        r"(?:can(?:not|'t| not)|could not) (?:be )?(?:determine|answer|say|tell|compute|calculate|solve|found|work)\w*",
        r"(?:not|no) enough\b|insufficient|without (?:more|further|either|knowing)\b|could be anything\b",
        r"unable to|impossible to|(?:not|isn['’]t|wasn['’]t) possible to|(?:isn|wasn|aren)['’]t (?:given|stated"
        r"|mentioned|specified) (?:anywhere|in)",
        r"does(?:n't|n’t| not) (?:say|give|specif|provide|state|tell|mention|contain|include)",
        r"no (?:real |unique |integer )?solutions?|is undefined|depends on",
        r"nicht (?:bestimmen|möglich|berechnen|genug)|weiß (?:es |ich )?nicht|je ne (?:sais|peux)",
        r"no (?:puedo|sé|hay suficiente)|não (?:sei|posso|há)|non (?:posso|so)\b",
    )
    + r")|n['’]t enough\b|не могу|не знаю|недостаточно|无法|無法|不知道|信息不足|わかりません|できません|لا أستطيع|لا يمكن"
    r"|알 수 없"
)
# What is known, and what else would have to be: "We know that both together cost $7, but we'd need a second equation".
WOULD_NEED = _pattern(
    r"\b(?:(?:would|['’]d)\s(?:also\s)?(?:need|have)\b|need(?:s|ed)? (?:to know|more|another|a second|an additional)"
    r"|without (?:more|knowing))"
    r"|\bwe (?:only |just )?know\b|\b(?:tells|given|told) (?:us )?only\b|\bonly (?:tells|gives|says|states|know)\b"
)
ENDS = _pattern(r"[.!?。！？।)\]}>|`\"'”*✓✔☺-⟿😀-🫿]$")
BREAKS_OFF = _pattern(
    r"(?:[=+×·÷*/({,:;-]|\d\s?x|\b(?:the|a|an|of|is|are|and|or|to|so|we|which|that|for|with|by|in|at|on|from|then|than|be|has|have"
    r"|was|were|if|because|since|as|need|will|it|each|per|there|when|where|their|his|her)|,\s(?:which|so that)\s[^\W\d_]+)$"
)
FULL_STOP = _pattern(r"[a-z)][.!?]\s")
OPENS = _pattern(
    _MARKUP
    + r"(?:we know|let(?:'s| us| me)|first|to (?:find|solve|determine|calculate)|given|step|okay|ok|alright|start)\b"
)
MORE_WORDS = _pattern(r"(?:\W+[^\W\d_]+){3}")

# --- conclusions -----------------------------------------------------------------------------------------------------

CONCLUDES = _pattern(
    r"\b(?:"
    + _any(
        r"in total|in all|altogether|overall|finally|(?<!sub)total|totals|together|result|conclusion|in the end|ends up",
        r"this means|that means|which means|we get|remain|remains|remaining|left|still (?:has|have|needs?|owes?)",
        r"insgesamt|ergebnis|bleiben|au total|résultat|restent|en total|resultado|quedan|no total|restam|in totale|risultato",
        r"итого|всего|осталось|totalt|totaal",
    )
    + r")\b|\b(?:leaves|leaving|giving|gives|makes)\s(?:(?:her|him|them|us|you|with|a|total|of|it)\s){0,3}\$?\d"
    r"|一共|总共|共有|剩|合計|残り|المجموع|कुल"
)
STEP = _pattern(
    r"\b(?:"
    + _any(
        r"so|therefore|thus|hence|consequently|which means|meaning|(?:in all|in total|altogether)(?=:?\s[$€£]?\d)"
        r"|we (?:find|obtain)|adding (?:both|these|them|everything)",
        r"also|daher|somit|folglich|donc|ainsi|par conséquent|por lo tanto|por tanto|así que|entonces",
        r"portanto|logo|então|quindi|perciò|dunque|следовательно|таким образом|значит|поэтому|dus|derfor|alltså|jadi|vậy",
    )
    + r")\b|所以|因此|故|したがって|よって|따라서|그러므로|لذلك|إذن|अतः|इसलिए|[⇒→➜]|=>"
)
OPENS_CONCLUSION = _pattern(rf"{_MARKUP}(?:and\s)?(?:{STEP.pattern})")
REASON = _pattern(
    r",\s(?:because|since|as|denn|weil|car|puisque|porque|ya que|pois|perché|poiché|потому что|так как)\s[^,\n]*$"
)
EQUALS = _pattern(r"(?<![<>!=])[=≈](?![=>])")
STATEMENT = _pattern(
    r"[\s*_]*(?:the|this|that)\b[^.!?\n=:]*\s(?:is|equals)\s[*$(\\]*-?[$€£]?\d[\d.,]*[^\s]*(?:\s[^\W\d_]+){0,2}\s*$"
)
ANSWERS = _pattern(
    _MARKUP
    + "(?:"
    + _any(
        r"(?:it|that|this|you|they|she|he|we|the|there|an?|its|es|er|sie|das|der|die|man|il|elle|c'est|la|le|el|ela|ele|o)\b"
        r"[^\n=]*?\b(?:is|are|it's|takes?|needs?|costs?|would|will|should|must|can|ha(?:s|ve) to|paid|pays?|equals|ist|sind"
        r"|dauert|kostet|braucht|est|faut|coûte|es|son|cuesta|necesita|é|são|custa|precisa|sono|costa|serve)\b",
        r"(?:son|es|são|é|sono|è|hay|si|se necesitan?|hacen falta|ci vogliono|ci sono|há)\b",
        r"(?:нужно|потребуется|понадобится|надо|需要|要)",
        r"\$?\d[^\n=]*?\b(?:are|is|will be)\s(?:needed|required|necessary|enough|left)\b",
    )
    + ")"
)
TELLS_A_GIVEN = _pattern(
    r"\b(?:has(?! to)|have(?! to)|had|starts?|started|begins?|began|buys?|bought|sells|gets?|got|gives?|gave|first"
    r"|initially|originally|if|let|given|since|each|every|per|know|want|asks?|find"
    r"|cada|jede[rsn]?|chaque|ogni|каждый|hat|hatte|kauft|avait|tenía|tinha|aveva)\b|\bthere (?:are|is|were|was)\b"
)

# Before the last operand of a calculation whose result is not written.
OPERATOR = _pattern(r"\d[%)]{0,2}\s?(?:[+×·÷*/:-]|x|por|mal|fois|times|divided by|multiplied by)\s?$")
# In a calculation that goes on with the story, and so is no check.
CONTINUES = _pattern(
    r"\b(?:then|next|after|finally|now|later|more|another|dann|danach|ensuite|puis|luego|después|depois|poi|затем|потом)\b"
    r"|然后|再|次に"
)
HYPOTHETICAL = _pattern(r"\b(?:would|could have)\b|['’]d\b")

# --- within a sentence -----------------------------------------------------------------------------------------------

REJECTS_NEXT = _pattern(
    r"\b(?:some|many|most|people|others?|you|one)\s(?:\w+\s){0,2}(?:say|think|answer|guess|expect|claim|assume)\s"
    r"(?:it(?:'s| is)\s|of\s)?$|"
    r"(?:\b(?:not|rather than|instead of|as opposed to|isn't|wasn't|aren't|never|cannot be|can't be|nicht|statt|pas|não|non|no es"
    r"|не|а не)|n't|不是|而不是|ではなく)\s*(?:just|only|the|be|by|equal to|exactly)?\s*[$€£*_\"'(]*$"
)
REJECTS_LAST = _pattern(
    r"[*_`]{0,4}(?:,|\.\.\.|…|\s?[—-])\s?(?:I mean\b|I meant\b|sorry\b|no, |wait, |or rather\b|make that\b|scratch that\b)"
    r"|[*_`\"')$]{0,4}\s(?:\w+\s)?(?:(?:is|was|would be|seems|looks)\s(?:clearly\s|also\s)?(?:wrong|incorrect|not"
    r"|too|extraneous|invalid"
    r"|rejected|discarded|spurious|excluded)\b"
    r"|cannot be\b|can't be\b)"
)
# An operand of a formula with letters: "1 + r", "(n + 1)/2".
AFTER_FORMULA = _pattern(r"(?<!\w)[a-z]\s?[+×·/]\s?$|(?<!\w)[a-z]\s?[+-]\s?\d{1,9}\)\s?[/×·]\s?$")
BEFORE_FORMULA = _pattern(r"\s?[+×·]\s?[a-z](?![\w'’])|\s?-\s?[b-hj-z](?![\w'’]|\s[^\W\d_])")
IS_SUBJECT = _pattern(r"[*_$)]{0,4}\s(?:is|are|was|were)\s")
# Directly before the number that a sentence states.
STATES = _pattern(
    r"(?:(?P<sign>[=≈⇒→:]|=>)|\b(?:"
    + _any(
        r"is|are|was|were|be|(?:it|that|there|he|she)['’]s|equals?|equal to|gives?|gets?|makes?|leaves?|has|have|had",
        r"becomes?|means|yields?|returns?|prints?|outputs?",
        r"(?:faster|slower|taller|longer|shorter|older|younger|heavier|cheaper|(?:in|de)creased?|rose|fell|dropped|grew|up|down"
        r"|higher|lower|larger|smaller)\sby",
        r"(?:comes?|arrives?|evaluates?|corresponds?|works?|adds?|amounts?|sums?|totals?|reduces?|simplifies|rounds?|drops?|rises?"
        r"|grows?|turns?)(?:\s(?:out|up|down))?\s(?:to|at)",
        r"ist|sind|beträgt|hat|haben|bleiben|est|sont|reste|restent|es|son|hay|quedan|é|são|tem|restam|è|sono|ha|restano",
        r"равно|осталось",
    )
    + r")|是|为|有|は|了)"
    r"(?:\s|[*_$€£~(\\]|\b(?:about|approximately|only|just|exactly|then|still|now|a total of|also|de|di)\b)*$"
)
# Before "≈": a fraction that is the value itself and no division, as in "x = 7/3 ≈ 2.33".
IS_EXACT = _pattern(r"(?:(?<![\w])[a-z]|\d/\d{1,9}\)?)\s?=[\s$(\\]{0,3}-?\d{1,9}/\d{1,9}[\s$)\\]{0,3}$")
_QUANTITIES = ("total", "sum", "crease", "profit", "loss", "average", "change", "difference", "value", "speed", "score")
# Directly before a number that the question gave, or that only belongs to the one stated.
GIVEN = _pattern(
    r"(?:\b(?:"
    + _any(
        r"in|for|from|at|after|before|between|per|by|with|over|on|among|than|below|above|under|to|until|within|during|out of",
        r"the|these|those|all|every|each|both|first|last|next|remaining|other|original|entire|initial|same",
        r"reach|day|week|room|group|adding|subtracting|multiplying|dividing|combining",
        r"von|für|aus|mit|nach|den|der|auf|bei|pro|des|les|en|pour|par|dans|sur|avec|para|por|las|los|con|entre",
        r"em|nas|nos|das|dos|com|di|nei|per|dei|из|в|за|на|по|для|от",
    )
    + ")|"
    + "".join(rf"(?<!{quantity})" for quantity in _QUANTITIES)
    + r"\s+of|^of)\s"
    r"(?:(?:the|an?|about|its|their|his|her|only|de|den|het|die|das|der|les|las|los|le|gli|as|os|la|el|il)\s)?[$€£(*]*$"
)
# "for n = 5", "to get 100 ml": a condition or an aim, whatever the verb says.
SUPPOSED = _pattern(
    r"\b(?:for|with|when|at|if|where|let|setting|substituting|using|taking|plugging in)\s+[$*]{0,2}[a-z]{1,3}\s?=\s?[$*]{0,2}$"
    r"|\bto\s(?:reach|get|make|fill|have|earn|buy|cover|finish|travel|drive|walk|run|complete|do|read|paint|build|bake|feed|serve|produce|empty"
    r"|drain|cross|climb|type|print|seat|hold|carry|transport|pay for|go)\s(?:the\s|a\s|at least\s)?[$€£*]{0,2}$"
    r"|\bto\s(?:get|have|reach|achieve|obtain|earn|keep|raise|bring)\s(?:an?|the|her|his|their)\s(?:\w+\s){1,3}(?:of|to)\s[$€£*]{0,2}$"
)
BEFORE_YEAR = _pattern(r"\b(?:in|since|by|until|of|from|the|year|im Jahr|en|in the)\s$")
YEAR = _pattern(r"(?:1[5-9]|20)\d\d")
JOINS = _pattern(r"[%*$]{0,3}\s?(?:,|and|or|&|und|et|y|e|и)?,?\s?(?:and\s|or\s)?[$€£(*]*")
# "6 teams can be formed and 2 players stay behind": what is added after the statement, unless it is what is left.
ADDS = _pattern(r"[^\W\d_]+\s+(?:and|y|und|et|e|и)\s(?:about\s|only\s|the\s)?[$€£*]*$")
IS_LEFT = _pattern(r"[^.;\n]*\b(?:left(?! out| over| behind)|remain\w*|in total|altogether|in all|total)\b")
BRACKETS = _pattern(r"(?<![\w^\\])\([^()\n]{2,300}\)")
# Where the main clause ends; after a calculation "which is" goes on with it.
CLAUSE = _pattern(
    r",?\s(?:"
    + _any(
        r"because|since|where|given|who|whose|when|while|whereas|although|assuming|provided|as there",
        r"cioè|soit|es decir|ou seja|das heißt|d\.h\.|то есть",
    )
    + r")\b|,\s(?:with|not|if|(?:\w+\s){0,3}of (?:which|whom|them)|namely|nämlich|à savoir|a saber|ossia"
    r"|including|up from|down from|about|roughly|around|approximately|almost|nearly|maybe|perhaps|possibly|attained"
    r"|achieved|reached)\b|,\s(?:an?\s|une?\s|uma?\s)?(?=\d[\d.,]{0,9}\s?%\s(?:of|de|du|des|del|della|der|von)\b)|,\s(?=\S{1,9}\s(?:\w+\s)?(?:more|fewer|less|higher|lower)\sthan\b)"
    r"|(?P<result>,\s(?:which|that is|i\.e\.))"
    r"|,?\s(?:and|whereas|und|et|y|e)\s(?:her|his|their|its|sein|seine|ihr|ihre|son|sa|su|sus|seu|sua|suo)\b"
    r"|;\s(?!(?:it|that|this|the\s\w+)(?:['’]s|\s(?:is|was|equals))\b)(?=[^=]*$)|:\s(?=[^\n:=]*\d[^\n=\d]+\d[^\n=]*$)"
    r"|\s(?:weil|denn|da|wobei|car|parce que|puisque|porque|ya que|pois|perché|poiché|потому|так как)\s"
)
EXPRESSION = _pattern(r"[=≈×+*/]|\.\.\.|…|\d\s?-\s?\d|\b(?:multiplied|divided|times|plus|minus|added|subtracted)\b")

# --- what is said besides --------------------------------------------------------------------------------------------

_CHECKS = _any(
    r"check|checking|verification|verify|verifying|double[- ]check|sanity check|proof|note|notes|n\.b\.|p\.s\.|ps|confidence",
    r"probe|überprüfung|anmerkung|vérification|remarque|comprobación|verificación|verificação|verifica|nota|проверка",
    r"(?:zur|als|die|eine) (?:probe|kontrolle)|kontrolle|gegenprobe|pour vérifier|on vérifie|para (?:comprobar|verificar)",
    r"comprobemos|comprobamos|verifiquemos|verificando|per (?:verificare|controllo)|verifichiamo|проверим|для проверки",
    r"検算|確認|验证|验算|检验|검산",
)
ASIDE = _pattern(
    rf"{_MARKUP}(?:(?:{_CHECKS})\b|(?:let(?:'s| me| us)|(?:just )?to|we can|you can|I'll|quick)\s"
    r"(?:also\s|now\s|just\s|quickly\s)?(?:(?:double|cross)[- ]?)?(?:check|verify|confirm|be\s(?:on the\s)?(?:safe|sure|certain))"
    r"|if\b|had\b|hope\b|I hope|let me know|would you|feel free"
    r"|for (?:comparison|reference|example)|by the way|alternatively|remember|recall|source|in general"
    r"|more generally|as a (?:\w+[ -])?(?:check|side note)"
    r"|wenn\b|(?:si|se)\b(?!\s(?:necesita|requiere|tarda|gasta|paga|vende|obtiene|ottiene|trova|ha|spende)n?\b)|если\b|如果)"
    r"|[^\n]{0,400}?(?:[✓✔]|,\s(?:which|and this|and that|as)\s(?:\w+\s){0,2}?"
    r"(?:matches|agrees|fits|checks|confirms|tallies|expected|required|given|stated|claimed|needed|should)\b[^,.!?\n]{0,80}[.!]*\s*$)"
    r"|[^\n]{0,400}?,\sbut\s(?:you|the question)\s(?:\w+\s)?(?:asked|asks|wanted|wants)\b|\s*\([^()\n]*\)\W*$"
)
ASIDE_HEADING = _pattern(rf"{_MARKUP}(?:{_CHECKS})[\s*_:]*$")
ORDINAL = _pattern(r"(?<![\w.])(?P<number>\d{1,9})(?:st|nd|rd|th)\b")
PLACES = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")
# "the third planet": not a third of something.
PLACE = _pattern(
    rf"\b(?:is|was|were|are|comes|came|ranks|ranked|finished|in|takes|took|be)\s(?:in\s)?(?:the\s)?({_any(*PLACES)})(?:[.!]|\s(?!of\b|and\b)|$)"
)
ASKS = _pattern(r"[\s*_]*(?:do|did|could|can|would|should|shall|what|how|which|who|are|does)\b")
IS_QUESTION = _pattern(r"\?[\s*_\"')]*$")
