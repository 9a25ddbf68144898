"""The words that announce an answer, and those around it that are no part of it, in the languages models write."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

from themis.core.patterns import lazy_pattern


@dataclass(frozen=True)
class Language:
    """How one language says "the answer is", "X is the answer" and "because": words, and parts of regular expressions."""

    nouns: tuple[str, ...]
    verbs: str
    reasons: str = ""
    turns: str = ""
    hedges: str = ""
    # Whether blanks part its words; where they do not, a word may stand inside a run of letters.
    spaced: bool = True

    @cached_property
    def noun(self) -> str:
        """An expression for any of its nouns, as a word of its own."""
        nouns = "|".join(self.nouns)
        return rf"(?<![^\W_])(?:{nouns})(?![^\W_])" if self.spaced else f"(?:{nouns})"

    @cached_property
    def label(self) -> re.Pattern[str]:
        """A noun that opens a line or a sentence and is followed by a colon, a dash, or nothing on its line."""
        return re.compile(
            rf"{_LINE_START}[\[【]?(?P<before>(?:{_WORD}(?:'s)?[ \u00a0]){{0,3}}?(?:最终|最終|正确|正確|參考|최종 ?|अंतिम "
            rf"|सही )?)(?P<noun>{self.noun})"
            rf"(?P<after>(?:[ \u00a0](?!is\b|are\b|was\b)[(]?{_WORD}[)]?){{0,3}}?)[*_`\s]{{0,6}}?"
            r"(?P<mark>[:：=]|[*_]{2}[ ](?=[^\s|])|[\]】][ ]?(?=\S)|(?<=\bans)\.[ ]"
            r"|[ ](?=-?[$\d(\\])|[*_ ]{0,4}\|(?=[^|\n]+\|)|[ \u00a0][-–—→](?=[ \u00a0])|[*_#]{0,4}[ \t]*(?:\r?\n"
            r"|\Z))[*_`\s]{0,20}",
            re.IGNORECASE | re.MULTILINE,
        )

    @cached_property
    def announcement(self) -> re.Pattern[str]:
        """A noun and, in the same clause, a verb or a colon after it."""
        return re.compile(
            rf"{self.noun}(?P<between>(?:\"[^\"\n]{{0,150}}\"|[^\n.:=。：;\"]){{0,60}}?)(?:{self.verbs}"
            rf"|[:：=])[\s:：*_,]{{0,20}}(?=\S)",
            re.IGNORECASE,
        )


# At the beginning of a line: quotes, headings, bullets, numbers of a list, emphasis, pictures.
_LINE_START = r"(?:^|(?<=[.!?。→⇒:;]\s)|(?<=[。→⇒]))[^\S\n]*(?:[>#*_\-•|✅🎯➡️✔👉📌💡⭐]|\d{1,2}[.)]|[^\S\n]){0,12}"
_WORD = r"[^\W\d_]+"


# Reasons are cut wherever they begin; turns only after a comma, a dash or a bracket.
LANGUAGES = (
    Language(
        (
            "answer",
            "answers",
            "ans",
            "solution",
            "solutions",
            "result",
            "results",
            "conclusion",
            "verdict",
            "guess",
            "tl;dr",
            "tldr",
            "bottom line",
            "short version",
        ),
        r"(?<!\byou\s)(?<!\bwe\s)(?<!\bthey\s)(?<!\bI\s)(?<!\bthat\s)(?<!\bwhich\s)"
        r"\b(?:(?:will|would|must|should|has to|have to|might|may|could|can)\s+(?:\w+\s+)?be|turns? out (?:to be|as)"
        r"|comes? (?:out )?(?:to|as)|(?:is|was)(?:n['’]t)?|are|were|be|being|equals|becomes|remains|given by)\b"
        r"|(?<!\blet)['’]s\b",
        r"because|since|even (?:though|if)|despite|in spite of|and (?:the reason|this is|it is|that is)|and not"
        r"|but not|due to|given that|rather than"
        r"|instead of|as opposed to|in contrast to"
        r"|based on the fact|considering"
        r"|according to|owing to|after (?:all|accounting)",
        r"not|but|though|although|however|whereas|while|which|where|who|whose|that is|i\.e\.|meaning|assuming|so"
        r"|as|for|and not"
        r"|I(?:'m| am| think| believe| guess| suppose| would say|'d say)|if|from|using|with|when|unless|to be|plus or minus"
        r"|probably|maybe|perhaps|presumably|most likely|of course|thanks to|by|it|this|these|they|he|she|we|you"
        r"|nor|thus|hence"
        r"|therefore|making|giving|leaving|having|being|they're|it's|that's|rounded|calculated|computed|obtained"
        r"|found|see|per|e\.g\.|for instance|such as|in other words|in fact|namely|specifically|(?:both|all|one|some"
        r"|most|each|part|none) of"
        r"|home (?:of|to)|(?:also |better |formerly |once )?known|formerly"
        r"|also called|located|situated|(?:\w+ly )?[a-z]+(?:ed|ing|wn|ght|lt) (?:in|by|on|at|to|as|from|for|with|during|between"
        r"|near|the|an?|up|out|of|it|his|her|about|around|over|under|through|against|when|after|before)",
        r"likely to be|either|in(?=\s+\d{4}\W*\Z)|probably|likely|to be|most (?:likely|probably)|very likely"
        r"|quite (?:likely|possibly)"
        r"|maybe|perhaps|possibly"
        r"|presumably|surely"
        r"|certainly|definitely|clearly|simply|just|actually|indeed|in fact|of course|then|therefore|thus|hence|now|still"
        r"|arguably|apparently|seemingly|approximately|approx\.?|about|around|roughly|nearly|close to|exactly|precisely"
        r"|equal to|given by|going to be|called|known as"
        r"|that(?!\s+(?:is|was|makes|leaves|gives))|in my opinion|I (?:think|believe|guess|suppose|would say)|I'd say"
        r"|it(?:'s| is)"
        r"|(?:would|should|must|will|might|may|could) be|as follows|the following|none other than|always|obviously|again"
        r"|instead|also|really|in the end|ultimately|I'm (?:fairly|pretty|quite) sure",
    ),
    Language(
        ("antwort", "lösung", "ergebnis", "endergebnis", "endantwort"),
        r"\b(?:ist|sind|lautet|lauten|wäre|war|beträgt|heißt|muss\s+\w+\s+sein)\b",
        r"weil|denn|aufgrund|statt|anstatt",
        r"nicht|aber|obwohl|da|wobei|also|und nicht|sondern|wo|welche[rsmn]?|deren|dessen|d(?:er|ie|as|em"
        r"|en)(?!.*\b(?:und|oder)\b)",
        r"wahrscheinlich|vermutlich|vielleicht|wohl|ungefähr|etwa|rund|circa|ca\.|also|somit|eindeutig|natürlich|genau",
    ),
    Language(
        ("réponse", "résultat", "solution"),
        r"\b(?:est|sont|serait|était|vaut|doit être)\b",
        r"car(?=\s+\d|\s.*\b(?:ne|est|pas|l[ae]s?|une?|des|du|et|ils?|elles?|à|sont|ce|on|\w+[éèêà]\w*)(?!\w))|parce qu[e']"
        r"|puisque|plutôt que|au lieu de",
        r"mais|non|et non|pas|bien que|qui|donc|soit|et pas|où|dont|l(?:eque|aque)l\w*",
        r"de(?=\s+\d)|probablement|sans doute|peut-être|environ|donc|certainement|bien|simplement|égale? à",
    ),
    Language(
        ("respuesta", "resultado", "solución"),
        r"\b(?:es|son|sería|era|debe ser|equivale a)\b",
        r"porque|ya que|puesto que|dado que|en lugar de|en vez de",
        r"pero|no|aunque|que|y no|pues|es decir|donde|cuy[oa]s?|(?:el|la) cual|quien",
        r"probablemente|quizás?|tal vez|aproximadamente|seguramente|simplemente|por lo tanto|entonces|igual a",
    ),
    Language(
        ("resposta", "resultado", "solução"),
        r"\b(?:é|são|seria|era|deve ser)(?!\w)",
        r"porque|já que|uma vez que|pois|em vez de",
        r"mas|não|embora|que|e não|ou seja|onde|cuj[oa]s?|[oa] qual",
        r"provavelmente|talvez|aproximadamente|cerca de|portanto|simplesmente|igual a",
    ),
    Language(
        ("risposta", "risultato", "soluzione"),
        r"(?<!\w)(?:è|sono|sarebbe|era|deve essere)(?!\w)",
        r"perché|poiché|dato che|siccome|invece di|anziché",
        r"ma|non|anche se|che|e non|cioè|dove|(?:il|la) quale|cui",
        r"probabilmente|forse|circa|quindi|dunque|semplicemente|uguale a",
    ),
    Language(
        ("antwoord", "oplossing", "resultaat"),
        r"\b(?:is|zijn|luidt|was)\b",
        r"omdat|want(?=\s+(?:de|het|een|dat|die|er|dit|hij|zij|ze|we|in|\d\S*)\b)|aangezien",
        r"maar|niet|hoewel",
        r"waarschijnlijk|misschien|ongeveer|dus",
    ),
    Language(
        ("ответ", "ответом", "решение", "результат", "відповідь"),
        r"[—–]|\b(?:это|является|будет|равен|равно|таков)\b",
        r"потому что|так как|поскольку|ведь|вместо",
        r"а не|но|хотя|не|то есть|котор\w+|где",
        r"вероятно|скорее всего|возможно|наверное|примерно|около|это|таков",
    ),
    Language(
        ("答案", "答え", "解答", "正解", "回答", "答"),
        r"(?:应该是|應該是|就是|是|应为|應為|为|為|は|が|即)",
        r"因为|因為|由于|由於|而不是|なぜなら|ので|から",
        r"不是|但|而|因此|所以|即|ただし",
        r"大概|可能|应该|應該|大约|約|约|おそらく|多分|たぶん",
        spaced=False,
    ),
    Language(("정답", "답변", "답"), r"(?:은|는)", r"왜냐하면|때문에", r"", r"아마도|아마", spaced=False),
    Language(
        ("الجواب", "الإجابة", "الاجابة", "النتيجة", "الحل"),
        r"(?:هي|هو)",
        r"لأن|بسبب",
        r"وليس|لكن|لا",
        r"ربما|تقريبا|تقريبًا|على الأرجح",
        spaced=False,
    ),
    Language(("उत्तर", "जवाब", "परिणाम"), r"(?=\s+[^:\n]{1,60}है)", r"क्योंकि", r"लेकिन|न कि", r"शायद|लगभग", spaced=False),
    Language(
        ("odpowiedź", "odpowiedzią", "odpowiedzi", "wynik"),
        r"\b(?:to|jest|brzmi|wynosi)\b",
        r"ponieważ|bo",
        r"a nie|ale",
    ),
    Language(("cevap", "yanıt", "sonuç"), r"(?!)", r"çünkü", r"değil|ama"),
    Language(("svar", "svaret"), r"\b(?:är|er)\b", r"eftersom|fordi|därför att", r"inte|ikke|men"),
    Language(
        ("vastaus", "odpověď", "válasz", "răspuns", "răspunsul", "jawaban", "jawabannya"),
        r"\b(?:on|je|az|este|adalah)\b",
    ),
    Language(
        ("đáp án", "câu trả lời", "đáp số", "คำตอบ", "απάντηση", "תשובה"), r"(?:là|คือ|είναι|היא)", r"vì|bởi vì", r""
    ),
)


def _join(part: str, *, spaced: bool) -> str:
    """One part of every language whose words blanks part, or of every other."""
    return "|".join(filter(None, (getattr(language, part) for language in LANGUAGES if language.spaced is spaced)))


NOUNS = "|".join(language.noun for language in LANGUAGES)


def languages_of(text: str) -> list[Language]:
    """The languages of which a text holds a noun that announces; to look for all in each reply would take long."""
    lowered = text.lower()
    return [language for language in LANGUAGES if any(noun in lowered for noun in language.nouns)]


# Alone these head a working as often as an answer; "final" or "my" before them makes the difference.
WEAK_NOUN = lazy_pattern(
    r"solutions?|results?|conclusion|verdict|guess|tl;dr|tldr|bottom line|short version|ergebnis|lösung|résultat|resultado"
    r"|solución|solução|risultato|soluzione|решение"
    r"|результат|النتيجة|الحل|परिणाम|wynik",
    re.IGNORECASE,
)
FIRM_LABEL = lazy_pattern(
    r"final|\bmy\b|correct|right|endgültig|richtige|corretta|правильн|окончательн|最|정|अंतिम", re.IGNORECASE
)
# An answer that is somebody else's, or called wrong.
NOT_MEANT = lazy_pattern(
    r"\b(?:wrong|incorrect|not|no|bad|tempting|alternative|previous|original|old|possible|example|sample|format|initial"
    r"|first|naive"
    r"|long|longer|detailed|student|students|student's|your|user's|intermediate|partial|common|earlier|falsche?"
    r"|mauvaise|incorrecta"
    r"|errada|sbagliata"
    r"|неправильн\w+|неверн\w+|错误|错误的)\b|错误",
    re.IGNORECASE,
)

ANNOUNCED_AFTER = lazy_pattern(
    r"\s+(?:(?:is|was|must be|should be|would be|has to be|are)\s+(?:\w+\s+)?(?:the|my|our)\s+(?:\w+\s+){0,2}?"
    r"(?:answer|solution|right one|correct one|correct option)\b"
    r"|as\s+(?:the|our|my)\s+(?:\w+\s+){0,2}?(?:answer|solution|result)\b"
    r"|ist (?:also |somit )?die (?:\w+ )?(?:antwort|lösung)\b|est (?:donc )?la (?:\w+ )?(?:réponse|solution)\b"
    r"|es la (?:\w+ )?(?:respuesta|solución)\b|é a (?:\w+ )?(?:resposta|solução)\b|è la (?:\w+ )?(?:risposta|soluzione)\b)"
    r"|是(?:正确)?答案|が(?:答え|正解)",
    re.IGNORECASE,
)
# "That makes Beethoven the answer"
MADE_THE_ANSWER = lazy_pattern(
    r"\bmak(?:es|ing)\s+(?P<said>[^\n.;:]{1,60}?)\s+(?:the|my|our) (?:\w+ ){0,2}?(?:answer|solution)\b", re.IGNORECASE
)
# What is only supposed, or said by others, counts where nothing is stated.
SUPPOSED = lazy_pattern(
    r"\b(?:if|might|would|could|may|tempting|tempted|some (?:people|say|would|might|texts?|textbooks?|sources?)"
    r"|people|others?"
    r"|one could|one might|many|students?|suppose|assume|suggests?|seems?|at first|initially|I said|I wrote"
    r"|I thought|wrongly"
    r"|mistakenly|incorrectly|unless|were|had|guess|would have|wenn|würde|man könnte|si|serait|podría|parecía"
    r"|если|бы)\b|如果",
    re.IGNORECASE,
)
# "I'd go with 5": no noun, but nothing else it could be.
CHOOSES = lazy_pattern(
    r"\bI(?:'d|’d| would|'ll|’ll| will|'m going to| am going to)? (?:(?:have to |rather )?(?:go|going) (?:with"
    r"|for)|say(?: that)?(?: it(?:'s| is))?"
    r"|(?:classify|label|categori[sz]e|rate|tag|mark) [^\n.:]{1,60}? as"
    r"|answer(?: with)?|choose|pick|conclude(?: that)?(?: it(?:'s| is))?)[\s:*_]{1,9}(?=\S)"
    r"|\bI(?:['’]m| am) (?:\w+ )?(?:sure|certain|confident|positive)(?: that)? (?:it(?:['’]s| is| was)"
    r"|that['’]s)[\s:*_]{1,9}(?=\S)"
    r"|\byou(?:['’]re| are| may be| might be| must be) (?:thinking of|looking for|referring to"
    r"|describing)[\s:*_]{1,9}(?!is\b|are\b|was\b)(?=\S)",
    re.IGNORECASE,
)
NEGATED = lazy_pattern(
    r"(?:\bnot\b|n't\b|n’t\b|\bcannot\b|\bnever\b|\bneither\b|\bnor\b|\bnicht\b|\bkeine?\b|\bpas\b|(?<!\w)не(?!\w)|不|ない"
    r"|\bwrong\b|\bincorrect\b|\bno (?:es|son)\b|\bnão\b|\bnon è\b|\bne serait\b|\bcan never\b|\bfalsch\b)",
    re.IGNORECASE,
)
# What stands in an instruction for the answer, and a box that never closes.
PLACEHOLDER = lazy_pattern(
    r"<(?:your|the|number|letter|answer|value|final|insert|text|x)[^<>\n]{0,30}>|\[(?:your|the"
    r"|insert)\b[^\]\n]{0,30}\]|\.{3}|…|\\boxed\b"
    r"|(?:answer|your answer)$",
    re.IGNORECASE,
)
# The announced thing is no answer: it only says where to find one, or what is to be thought of it.
NO_CONTENT = lazy_pattern(
    rf"(?:{PLACEHOLDER.pattern})|(?:not|n't|nicht|pas|не|不|no longer|no es|non è|não é)\b(?!\s*[.,;:!]?\s*$)|不是"
    r"|(?:found|given|shown|listed|stated|explained|provided|hidden|supposed|required|needed|asked|expected"
    r"|based)\s+(?:in|on|below|above|by|as|to|for)\b"
    r"|(?:in|on|at) the (?:text|passage|table|figure|question|article|back|box|book|end|form|following|last|second|first)\b"
    r"|(?:below|above|here|there|unknown|unclear|correct|incorrect|wrong|right|obvious|clear|simple|easy"
    r"|straightforward|as follows)"
    r"(?=\s*[.,:;!]|\s*$|\s+(?:because|since|from|if|when|in|and|but))",
    re.IGNORECASE,
)
DECLINES = lazy_pattern(
    r"\b(?:I(?:'m|’m| am) (?:sorry|unable|not able|not sure|unsure|afraid)|I (?:can(?:'t|’t|not)|could not"
    r"|couldn't|won't|will not)\b"
    r"|I (?:do not|don't|don’t) (?:know|have|think I can|understand)|as an AI|as a (?:large )?language model"
    r"|there(?:['’]s| is) no (?:\w+ly |such thing as (?:a |the )?)?(?:best|single|one|universal|objective|perfect"
    r"|ideal|definitive)\b(?! other)"
    r"|no opinion|(?:not|n't) (?:contain|have|provide|give|include|offer) (?:enough|sufficient|access|any)"
    r"|not enough information"
    r"|insufficient information"
    r"|no (?:\w+ly )?(?:single|clear|accepted|definitive|definite|agreed|right|correct|exact|simple"
    r"|generally) (?:\w+ )?answer|(?:rather|prefer) not "
    r"|(?:not|n['’]t|never) (?:mentioned|stated|specified|given|said|indicated|named|provided) (?:in|by|anywhere)"
    r"|(?:text|passage|article|document|table|question|story|image|figure|prompt) (?:does not|doesn['’]t|did not"
    r"|didn['’]t) (?:actually )?"
    r"(?:say|state|mention|specify|tell|load|contain|give|name|indicate|reveal|disclose|explain)"
    r"|(?:text|passage|article|document|story|author|narrator) never (?:says|states|mentions|tells|reveals|specifies)"
    r"|please (?:clarify|provide|share|specify)"
    r"|(?:cannot|can't|can not) (?:be )?(?:determined?|answer|help|assist|say|tell|provide|solve|give)"
    r"|need (?:a few |some |a bit )?more (?:information|details?|context)|(?:hard|difficult|impossible|not possible"
    r"|no way) to (?:say|tell|know|determine|answer)\b"
    r"|unable to|no idea|(?:gives?|provides?|contains?|has|is) no (?:information|mention|indication)|(?:is"
    r"|remains) (?:unknown|not known)|es tut mir leid|ich (?:weiß (?:es |das )?nicht"
    r"|kann (?:das |diese |dir |ihnen )?)"
    r"|(?:kann|weiß) ich (?:\w+ )?nicht|leider (?:nicht|keine)|je ne suis pas|impossible de|no es posible|não é possível"
    r"|je ne (?:sais|peux)"
    r"|désolée?|lo siento|no lo sé|no tengo|suficiente información|no (?:puedo|sé)|desculpe|não (?:sei|posso)"
    r"|mi dispiace|non (?:lo )?so\b|non posso)"
    r"|(?:не знаю|не могу|извините|к сожалению|抱歉|不知道|无法|無法|わかりません|申し訳|できません|آسف|لا أعرف|لا أستطيع"
    r"|क्षमा|माफ़|नहीं जानता|नहीं पता|죄송|모르겠)",
    re.IGNORECASE,
)
# An announced answer that is none.
DECLINED = lazy_pattern(
    r"(?:I(?:['’]m| am) (?:sorry|unable|not able|not sure|afraid)|I (?:can(?:['’]t|not)|could not|couldn['’]t"
    r"|do not|don['’]t) (?:know|say|tell|determine"
    r"|answer|find|help|provide|give|identify|verify|access)|(?:the|this) (?:text|passage|article|document|table"
    r"|question|story|image|prompt) "
    r"(?:does not|doesn['’]t|did not|didn['’]t) )",
    re.IGNORECASE,
)

# --- what is said around an answer ---------------------------------------------------------------------------------------

_REASON = lazy_pattern(
    rf"(?:\s+[,;(–—-]?\s*|[,;]\s*)[(]?(?:{_join('reasons', spaced=True)})\b"
    rf"|[\s,，、;；(（]*(?:{_join('reasons', spaced=False)})",
    re.IGNORECASE,
)
_TURN = lazy_pattern(
    rf"(?:\s*[,;]\s+|\s+[–—]\s*|\s+-\s+|\s+\()(?:{_join('turns', spaced=True)})(?!\w)"
    rf"|[，、;；(（,]\s*(?:{_join('turns', spaced=False)})"
    r"|\s+[–—]\s+(?=[^\W\d])|\s+-\s+(?=[^\W\d_]{3,})|\s*;\s|\s+\((?=[^()]{0,20}[^\W\d_]{2,} [^\W\d_]{2,} )"
    r"|\s+\((?=(?:=|not|see|about|approx\w*|or|i\.e|that is|rounded)\b|[≈~]|\d[\d.,]*\s?%\)$)|\s+\((?=[^()\n]*=)"
    r"|\s+[–—]\s+(?=[^\n]*=)|\s+\((?=[^()\\\n]*[^\W\d_]{2,}[^()\\\n]*\)[.!]?\Z)(?<![\s(][^\W\d_]\s\()"
    r"|(?<=[^\W\d_])\s+\((?=\d{3,4}\s?[–-]\s?\d{2,4}\))"
    r"|\s+\[(?=[^\[\]\n]*[^\W\d_]{2,} [^\[\]\n]*\])"
    r"|\s+\((?=[$€£¥₹₩₽₺₿]\))|,\s+at (?:about |around |roughly |nearly |over )?(?=\d)|(?<=[a-z]),\s+in (?=\d{4}\Z)"
    r"|(?<=[^\W\d]),\s+or (?=[-−]?\d[\d.,]* ?[^\W\d°]*°?[CF]?\Z)"
    r"|\s*(?:→|⇒|=>)\s",
    re.IGNORECASE,
)
_HEDGE = lazy_pattern(
    rf"(?:(?:{_join('hedges', spaced=True)})(?!\w)"
    rf"|(?:{_join('hedges', spaced=False)}))[\s,:]*(?=\S)",
    re.IGNORECASE,
)
_AFTERTHOUGHT = lazy_pattern(
    r",?\s+(?:I (?:think|believe|guess|suppose|would say)|I'd say|probably|maybe|perhaps|presumably|most likely"
    r"|in total|of course"
    r"|for sure|no doubt|without (?:a |any )?doubt|I(?:['’]m| am) (?:\w+ )?(?:sure|certain)"
    r"|as (?:required|needed|expected|requested|desired|claimed)|respectively|if I remember correctly|right)[.!?]*$",
    re.IGNORECASE,
)
_SENTENCE_END = lazy_pattern(r"[.!?]+[*_\"'”»)\]$`]{0,6}(?=\s)|[。！？।](?=.)|\s*<br\s*/?>")
_ABBREVIATED = lazy_pattern(
    r"(?:^|[\s(*_\"'])(?:St|Mt|Mr|Mrs|Ms|Dr|Prof|No|vs|Jr|Sr|Ft|Lt|Col|Gen|Sen|Rep|Rev|Gov|Capt|Sgt|Inc|Ltd|Co"
    r"|approx|ca|etc|Fig|Eq"
    r"|Sec|Vol|Ave|Dept|Op|et al|e\.g|i\.e|a\.m|p\.m|[A-Z](?:\.[A-Z])*)$"
)
# "14. Juli": the dot of an ordinal number.
_ORDINAL = lazy_pattern(
    r"\d{1,2}\.\s(?:jan|feb|mär|mar|apr|mai|maj|jun|jul|aug|sep|okt|nov|dez|des|dec|jahrhundert|platz|klasse|stock)",
    re.IGNORECASE,
)
_GOES_ON = lazy_pattern(
    r"\s+(?:The|It|This|That|These|Those|Because|Since|However|But|So|Therefore|Thus|Hence|Option|If|We|I|You|As"
    r"|In|Here|Note|There|They"
    r"|Let|For|To|My|Please|And|Not|Its|He|She|Many|Some|What|All|Both|Each|Another|Now|Then|Check|Explanation|Why)\b"
)


# No answer is longer, and none needs its end to be told from what follows it.
_LONGEST = 1_000


def trim_answer(said: str) -> str:
    r"""An answer without reasons, hedges, next sentences and typesetting.

    >>> trim_answer(r"probably \(\frac{1}{2}\), since two of four are red. Check it.")
    '\\frac{1}{2}'
    """
    if bold := _BOLD_FIRST.match(said.strip()):
        said = bold[1]
    answer = _strip_marks(_TAKEN_BACK.sub("", re.sub(r"~~[^~\n]+~~(?=\s*\S)", "", said[:_LONGEST])))
    for _ in range(4):
        before = answer
        answer = _strip_marks(_cut_sentence(answer))
        answer = _strip_marks(_cut(answer, _REASON))
        answer = _strip_marks(_cut(answer, _TURN))
        answer = _strip_marks(_AFTERTHOUGHT.sub("", _cut_apposition(answer)))
        hedge = _HEDGE.match(answer)
        answer = _strip_marks(answer[hedge.end() :] if hedge else answer)
        if answer == before:
            break
    return answer


# What is set in bold is the answer where only a bracket or a comma follows it; a unit may follow without.
_BOLD_FIRST = lazy_pattern(r"(?:\*\*)?([^*\n]+)\*\*\s*(?:[(,]|[–—-]\s)")
# "15 — wait, no, 18": what is taken back in the same breath.
_TAKEN_BACK = lazy_pattern(
    r"\A[^\n]{1,60}?(?:[—–,;]|--|\.\.\.|…|\s-)\s*(?:no,? )?(?:wait|sorry|scratch that|I mean|make that"
    r"|correction|oops|hold on|actually,? no)\b"
    r"(?:[\s,:.!—–-]|\b(?:no|it's|it is|that's|make that|I mean|actually|should be)\b)*(?=\S)",
    re.IGNORECASE,
)


def _cut(answer: str, at: re.Pattern[str]) -> str:
    """The answer up to where something begins that is no part of it; what begins with it is left alone."""
    for found in at.finditer(answer):
        kept = answer[: found.start()]
        # A bracket that is still open belongs together: f(x, as y), \text{not so}.
        if kept.strip() and all(kept.count(opens) <= kept.count(closes) for opens, closes in ("()", "{}", "[]")):
            return kept
    return answer


_APPOSITION = lazy_pattern(
    r",\s+(?=[A-Z]\w+['’]s? [a-z]+\Z)|,\s+(?=(?:(?:the|an?|one of|l[ae]s?|une?|d(?:er|ie|as)|eine?|el|una|il|lo|um)\s+\w+\s+\w+"
    r"|(?:[a-z]+\s+){1,3}(?:of|in|to|for|at|from|behind)\s)(?!.*\b(?:and|et|und|y|e)\b))"
    r"|\s+(?=(?:which|who|whose|whom)\s)"
)
# "NASA, the National Aeronautics and Space Administration"
_ACRONYM = lazy_pattern(r"(?:the )?[A-Z]{2,8}")
_SPELLED_OUT = lazy_pattern(r",\s+(?:the )?(?:[A-Z][\w'-]* (?:(?:and|of|for|the|in|on|&) )*)+[A-Z][\w'-]*\Z")
_ADVERBIAL = lazy_pattern(
    r"(?:so|therefore|thus|hence|consequently|finally|overall|altogether|then|in|after|according|based|from|for"
    r"|at|on|by|with|given"
    r"|as|to|when|since|if|while|because|during|before)\b",
    re.IGNORECASE,
)


def _cut_apposition(answer: str) -> str:
    """A name without what explains it: "Paris, the capital of France"."""
    found = _APPOSITION.search(answer)
    kept = answer[: found.start()] if found else answer.partition(",")[0]
    words = kept.split()
    if _ACRONYM.fullmatch(kept) and _SPELLED_OUT.match(answer, len(kept)):
        return kept
    is_name = 0 < len(words) <= 5 and (words[-1][:1].isupper() or words[-1][-1:].isdecimal())
    return kept if found and is_name and not _ADVERBIAL.match(kept) else answer


def _cut_sentence(answer: str) -> str:
    for end in _SENTENCE_END.finditer(answer):
        kept = answer[: end.start()]
        if end.group()[0] == "." and _ORDINAL.match(answer[max(0, end.start() - 2) : end.start() + 20].lstrip()):
            continue
        if end.group()[0] == "." and _ABBREVIATED.search(kept[-12:]) and not _GOES_ON.match(answer, end.end()):
            continue
        if kept.strip():
            return kept
    return answer


_PAIRS = (
    ("**", "**"), ("__", "__"), ("$$", "$$"), ("\\(", "\\)"), ("\\[", "\\]"), ("`", "`"), ("“", "”"), ("«", "»"), ("„", "“"),
    ("「", "」"), ("‘", "’"), ('"', '"'), ("'", "'"), ("*", "*"), ("_", "_"), ("~~", "~~"), ("{{", "}}"),
)  # fmt: skip
# \text{CO}_2
_SET_WITH_INDEX = lazy_pattern(r"\\(?:text|mathrm)\s*\{([^{}]*)\}\s?_\s?\{?(\d+)\}?")
_SET_AS = lazy_pattern(r"\\(?:text|textbf|textit|mathrm|mathbf|mathit|mathsf|operatorname|mbox|bf|rm)\s*\{([^{}]*)\}")
_WHOLLY_SET = lazy_pattern(
    r"\\(?:mathbf|boldsymbol|displaystyle|textstyle|bm|mathbb)\s*(?:\{(.*)\}|(?<=style)\s*(.*))", re.DOTALL
)
_TOKENS = lazy_pattern(
    r"<\|[^<>|\n]{1,40}\|>|</?(?:answer|final_answer|b|strong|i|em|p|span|u|mark|code)(?:\s[^<>\n]{0,80})?>|</\w{1,30}>\s*$"
)
# Where it was found: 1815 [1].
_CITED = lazy_pattern(r"(?<=[\w.])\s{0,3}(?:(?<=\s)\[\d{1,2}\]|【[^【】\n]{1,40}】)(?=[\s.]*\Z)")
# At either end: 🏆 Brazil, Kenya 🇰🇪.
_PICTURES = lazy_pattern(
    r"\A[✅✔✓✨⭐☑\U0001f000-\U0001faff\ufe0f\u200d\s]+(?=\S)|(?<=\S)[\s✅✔✓✨⭐☑\U0001f000-\U0001faff\ufe0f\u200d]+\Z"
    r"|(?<=\S)\s[\u2600-\u2668\u2690-\u27b0\u2b00-\u2bff\ufe0f]+\Z"
)
_BRACKETED = lazy_pattern(r"\[\[([^\[\]\n]+)\]\]|\[([^\W\d][^\[\],;\d\n]*)\]")
_POLITE_ENDS = lazy_pattern(r"(?:です|である|だ|でした|となります|になります|입니다|이다|है|हैं)$")


def _strip_marks(answer: str) -> str:
    """Without the marks around it, of whatever kind; money keeps its sign, and an abbreviation its dot."""
    answer = _CITED.sub("", _TOKENS.sub("", answer))
    for _ in range(6):
        before = answer
        answer = _PICTURES.sub("", answer.strip().lstrip("、，,")).strip().strip("|").strip()
        answer = re.sub(r"\A(?:=>|->|[→⇒∴])\s*", "", answer)
        answer = answer.rstrip(";,!。！।:：…?").rstrip() or answer
        answer = answer.rstrip(".") if answer.endswith("..") else answer[:-1] if _ends_in_full_stop(answer) else answer
        answer = _POLITE_ENDS.sub("", answer).strip()
        for opens, closes in _PAIRS:
            if answer.startswith(opens) and answer.endswith(closes) and len(answer) > len(opens) + len(closes):
                inside = answer[len(opens) : -len(closes)]
                if closes not in inside and opens not in inside:
                    answer = inside.strip()
        answer = _strip_lonely(answer)
        if bracketed := _BRACKETED.fullmatch(answer):
            answer = (bracketed[1] or bracketed[2]).strip()
        if whole := _WHOLLY_SET.fullmatch(answer):
            answer = (whole[1] if whole[1] is not None else whole[2]).strip()
        if answer == before:
            break
    if _CHEMICAL.fullmatch(answer):
        return re.sub(r"[_{}]", "", answer)
    if "\\" in answer:
        answer = _SET_WITH_INDEX.sub(r"\1\2", answer)
    return _SET_AS.sub(r"\1", re.sub(r"\\([$%#&])", r"\1", answer)) if "\\" in answer else answer


# C_6H_{12}O_6: of several elements, and no variable with an index.
_CHEMICAL = lazy_pattern(r"(?=.*_)(?:[A-Z][a-z]?(?:_\{?\d+\}?)?){2,}")


def _ends_in_full_stop(answer: str) -> bool:
    return answer.endswith(".") and not re.search(r"(?:^|[\s(])(?:[a-zA-Z]\.){2,}$", answer)


def _strip_lonely(answer: str) -> str:
    """Without half a pair at either end, and without emphasis inside: **10** sides."""
    answer = re.sub(r"\*\*(?=\S)(.*?)(?<=\S)\*\*", r"\1", answer)
    if answer.count("*") == 1 + answer.startswith("*"):
        answer = re.sub(r"\A\*?(?=[^\W\d])([^*\n]*[^\W\d])\*(?=\s|\Z)", r"\1", answer)  # *Emma* by Jane Austen
    if re.fullmatch(r"\$(?:[^$\\]|\\.)+\$", answer, re.DOTALL):
        answer = answer[1:-1].strip()
    elif answer.count("$") == 2 and re.match(r"\$[^$]+(?<!\\)\$\s*[^\d$]", answer):  # $12$ cm
        answer = answer.replace("$", "", 2)
    for opens, closes in _PAIRS[:4]:
        if answer.endswith(closes) and answer.count(opens) + (opens != closes) * answer.count(closes) == 1:
            answer = answer.removesuffix(closes).rstrip()
        if answer.startswith(opens) and answer.count(opens) + (opens != closes) * answer.count(closes) == 1:
            answer = answer.removeprefix(opens).lstrip()
        elif opens != closes and answer.startswith(opens) and answer.count(opens) == 1 and answer.count(closes) == 1:
            answer = answer.replace(opens, "").replace(closes, "").strip()  # \(12\) cm
    if answer.endswith("$") and answer.count("$") == 1:
        answer = answer[:-1].rstrip()
    if answer.endswith((")", "]")) and not re.search(r"[(\[{]", answer):
        answer = answer[:-1].rstrip()  # (Answer: Odin)
    return answer.strip("`").strip()
