"""The words by which replies announce, choose, confirm and reject an option, in the languages models answer in.

`choice` looks at what stands before and behind each mention of an option; these are the expressions it looks with. Each is
tried on a short stretch of one sentence, so that no text can make them slow.
"""

from __future__ import annotations

import re

from themis.core.patterns import lazy_pattern


def _any(spaced: str, unspaced: str = "") -> str:
    """Either of the words; an underscore is a space. Whole words, but parts of a run in scripts that put no spaces."""
    whole = "|".join(spaced.replace("_", r"\s").split())
    parts = "".join(f"|{word}" for word in unspaced.replace("_", r"\s").split())
    return rf"(?:\b(?:{whole})\b{parts})"


def _compile(pattern: str) -> re.Pattern[str]:
    return lazy_pattern(pattern, re.IGNORECASE)


CHOICE = _any(
    """option choice letter alternative statement ending continuation completion möglichkeit buchstabe aussage lettre
    proposition opci[oó]n letra alternativa opção opzione lettera optie opcja seçenek seçeneği şık şıkkı вариант варіант
    буква pilihan možnost moznost vaihtoehto alternativ alternativet svaralternativ mulighed opțiunea varianta opsi
    επιλογή опция opcija lehetőség""",
    "选项 選項 選択肢 선택지 보기 الخيار الحرف विकल्प lựa_chọn",
)
CORRECT = _any(
    """correct right best true
    most_(?:appropriate|accurate|likely|suitable|plausible|sensible|natural|reasonable|logical) appropriate accurate
    proper valid richtige?[rs]? korrekte?[rs]? zutreffende? correcte bonne? exacte? juste vraie? correct[ao]
    verdader[ao] corret[ao] cert[ao] verdadeir[ao] corrett[ao] giust[ao] esatt[ao] juiste? goede? prawidłow[aey]
    poprawn[aey] doğru(?:dur)? правильн[а-яії]+ верн[а-я]+ верен вірн[а-яії]+ правилен вярн[а-я]+ benar betul rätt
    riktigt? rigtige? rette? korrekt správn[áéěýy]+ oikea helyes corect[ăe]? σωστή točan točna tačan pravilen pravilna
    sahihi tama õige teisingas pareizā""",
    "正确 正確 正しい 正解 맞는 맞습 맞다 옳은 옳 الصحيحة الصحيح صحيحة صحيح सही đúng",
)
ANSWER = _any(
    """answer ans answer_key key solution conclusion tldr selection selected pick verdict response result prediction
    decision recommendation recommended suggestion judge?ment my_(?:guess|vote|bet|call|take|preference)
    best_(?:guess|bet) summary bottom_line wahl empfehlung recommandation recomendaci[oó]n recomendação raccomandazione final
    exception odd_one_out winner antwort lösung ergebnis auswahl réponse respuesta soluci[oó]n resposta gabarito solução
    risposta soluzione antwoord oplossing odpowiedź odpowiedzią cevap cevabı yanıt yanıtı ответ ответом відповідь svar
    svaret vastaus válasz răspuns răspunsul odpověď odpoveď απάντηση jawaban jawapan đáp_án отговор отговорът odgovor
    sagot jibu vastus atsakymas atbilde cavab javob жауап erantzuna""",
    """答案 答え 解答 正解 回答 정답 답 الإجابة الاجابة الجواب جواب उत्तर जवाब উত্তর คำตอบ תשובה התשובה پاسخ பதில் விடை
    సమాధానం ಉತ್ತರ ഉത്തരം જવાબ ਜਵਾਬ պատասխան პასუხი 故选 故選 应选 應選""",
)
LINK = _any(
    """is was be becomes are equals falls_on goes_to ist fällt_auf wäre lautet est serait es sería ser é seria è sarebbe
    jest (?<=odpowiedź_)to это является är er este adalah là είναι (?<=vastaus_)on (?<=jibu_)ni (?<=sahihi_)ni je е є ay""",
    "[:=→⇒—–>-] 是 为 為 は が 은 는 이 가 هي هو है คือ হল হলো היא",
)
_BETWEEN = _any(
    """the a an option choice letter answer alternative statement number item correct right best most likely probably
    possibly definitely clearly certainly simply just indeed therefore thus then hence actually final one either both but
    rather instead in_fact obviously surely still now again only of_course approximately around roughly la le el il lo l
    die der das de het donc clairement lettre claramente entonces portanto quindi dunque also daher somit wohl vermutlich
    buchstabe opci[oó]n opção opzione optie letra lettera réponse respuesta resposta risposta alternativa вариант
    ending continuation completion candidate varianta možnost vaihtoehto alternativ alternativet opsi η под_буквой буква
    именно soit ou_bien entweder""",
    "选项 選項 選択肢 应该是 应该 應該 是 为 الخيار الحرف विकल्प 선택지 보기",
)
# What may stand between an announcement and its letter without changing what is meant.
_FILLER = rf"(?:[\s\"'“”‘’«»()\[\]<>:,=*`「」『』【】—–-]|{_BETWEEN}){{0,30}}?\Z"
_FILLER_WITHOUT_COLON = rf"(?:[\s\"'“”‘’«»()\[\]<>,*`「」『』【】]|{_BETWEEN}){{0,20}}?\Z"

# --- before a mention

# The answer is … B · Correct option: B · 答案是B
ANNOUNCED = _compile(
    rf"(?:(?:{ANSWER}|{CORRECT}(?=\s{{0,2}}(?:one\b|(?:\w+\s?)?:|(?:\w+\s){{0,2}}(?:is|ist|est)\b)))[^.!?;。！？]{{0,60}}?"
    rf"|{CHOICE}[^.!?;,。！？]{{0,60}}?){LINK}{_FILLER}"
)
# Answer B · cevap D · 答案B, where nothing of a sentence follows the letter.
NAMED = _compile(ANSWER + _FILLER)
# … 12 (answer B), which tells the letter of a figure and not that it is chosen.
IN_BRACKETS = _compile(ANSWER + r"\s?\Z")
# The answer would be B · B might be the answer: less than an answer that is given without condition.
WOULD = _compile(r"\b(?:would|could|might|may|wäre|serait|sería|seria|sarebbe)\b")
# Option B. · Letra D!
ONLY_NAMED = _compile(rf"\W*(?:{CHOICE}|{ANSWER})[\s(\[\"']{{0,4}}\w[\s)\]\"']{{0,4}}[.!]{{1,2}}\s*")
# option b · answer: 3, where a small letter or a digit is an option.
NAMED_BEFORE = _compile(rf"(?:{ANSWER}|{CHOICE})\W{{0,3}}(?:{LINK}\W{{0,3}})?\Z")
CHOICE_BEFORE = _compile(CHOICE + r"\s\Z")
LINKED = _compile(LINK + r"\s*\Z")
# What makes an announcement that of something else: my first answer was B.
NOT_THE_ANSWER = _compile(
    _any(
        """incorrect wrong second other rejected alternative next previous first initial original earlier old common popular
        typical bad worst no not_an? not_the possible tempting mistaken intuitive naive draft tentative falsche mauvaise
        otra otras incorrecta errada sbagliata неправильный неверный""",
        "错误 誤った",
    )
    + r"\s{0,3}\Z"
)
# I choose B · we'd go with B
_DECIDE = (
    r"(?:choos(?:e|ing)|pick(?:ing)?|select(?:ing)?|go(?:ing)? (?:with|for)|vot(?:e|ing) for|opt(?:ing)? for"
    r"|stick(?:ing)? with|settl(?:e|ing) on|submit(?:ting)?|recommend(?:ing)?)\b"
)
DECIDED = _compile(
    r"(?:\b(?:ich (?:wähle|nehme|entscheide mich(?: \w+)? für)|je choisis|j['’]opte pour|elijo|escojo|me quedo con|scelgo"
    r"|escolho|wybieram|выбираю|jag väljer|jeg vælger|ik kies)\b|\A\W*(?:chọn|选|選)"
    r"|\b(?:i|we)(?:['’](?:d|ll|m|re)| would| will| am| are)?(?: \w+)? "
    rf"(?:answer(?:ing)?\b|(?<=still )(?:get|got)\b|tak(?:e|ing)\b|{_DECIDE})"
    rf"|(?:\A|\b(?:so|thus|hence|therefore|then)\b)\W{{0,3}}(?!\w+ing\b(?! with)){_DECIDE})" + _FILLER
)
CHOSEN = _compile(
    _any(
        r"""choose chose choosing chosen pick picked picking select selected selecting opt_for lock_in put_down go_with
        going_with going_for go_for went_with settle_on stick(?:ing)?_with lean(?:ing)?_towards? vote_for
        leaves(?:_us_with)? leaving left_with left_is remaining(?:_\w+)?_is remains must_be has_to_be should_be would_be
        will_be gotta_be can_only_be it_is it_was it['’]?s that['’]s that_is this_is points_to point_to matches match
        matching corresponds?_(?:to|with) corresponding_to consistent_with agrees_with so so_about hence thus therefore
        say believe think guess reckon suggest stands conclude answer_with mark marked which_is namely i\.e only clearly
        definitely certainly surely obviously probably maybe perhaps changed?_to changing_\w+_\w+_to listed_(?:as|under)
        under switch_to (?-i:Yes) (?:i|we)(?:_still|_again|_also)?_(?:get|got) arriv(?:e|es|ed)_at end(?:ed)?_up_with
        land(?:ed)?_on com(?:e|es)_out_(?:as|to) came_out_(?:as|to) wähle nehme bleibt entspricht ist sind choisis
        choisir reste s['’]agit_de s['’]agit_donc_de est c['’]est elijo escojo queda corresponde_a es escolho marque
        resta é scelgo rimane è kies blijft wybieram seçiyorum выбираю остаётся остается значит это является""",
        "→ ⇒ => -> 选择 选 選択 選 よって したがって 따라서 고르 نختار أختار चुनता चुनूंगा",
    )
    + _FILLER
)
REJECTED = _compile(
    _any(
        r"""not cannot can_not never neither nor exclud(?:e|es|ed|ing) eliminat(?:e|es|ed|ing) reject(?:s|ed|ing)?
        rul(?:e|es|ed|ing)_out discard(?:s|ed|ing)? dismiss(?:es|ed|ing)? than instead_of in_place_of unlike
        as_opposed_to against avoid(?:s|ed|ing)? tempt(?:ed|ing)_by tempt(?:ed|ing)_to_\w+
        confus(?:e|ed|ing)(?:_\w+)?_with without consider(?:ed|ing)? what_about how_about why_not such_as
        compar(?:e|ed|ing)(?:_\w+)?_(?:to|with) contrast(?:_\w+)?_(?:to|with) and_so_(?:is|are) nicht kein keine
        ausschließen statt (?<!jibu_)(?<!sahihi_)ni pas éliminer exclure écarter plutôt_que descart(?:ar|amos|o|a)
        tampoco en_lugar_de no_(?:es|puede_ser|sería|la) não não_(?:é|pode_ser) em_vez_de non non_(?:è|può_essere)
        escludere escludiamo invece_di niet nie nie_jest değil не не_может_быть не_является исключ[а-я]+""",
        r"n['’]t\b 不是 不可能是 不能是 不选 不選 排除 并非 ليست ليس نستبعد नहीं",
    )
    + r"(?:\s+(?:be|been|pick|choose|select|go with|answer|options?|choices?|être|ser|essere|sein|even)\b){0,3}"
    + _FILLER_WITHOUT_COLON
)
# Rejected: A, C · Incorrect options: A, C · the other choices, (A) and (C); but not: A is wrong, B …
LISTED_AS_WRONG = _compile(
    r"(?<!\bis\s)(?<!\bare\s)(?<!=\s)(?<!→\s)(?<!:\s)"
    + _any(
        """incorrect wrong rejected eliminated excluded discarded ruled_out false distractors? others? second runner-up
        alternative trap falsche? autres? otras? outras? altre""",
        "错误 其他 其余",
    )
    + r"(?:\s?(?:\b(?:options?|choices?|answers?|ones?|best|optionen|opciones|opções)\b|选项)\s?,?)?"
    + r"\s?(?::|\bare\b|\bis\b|\bwas\b|\binclude\b|(?<=s,))"
    + _FILLER
)
MARKED_AS_WRONG = lazy_pattern(r"[✗✘❌☒☐×][\s(\[\"']{0,4}\Z")
MARKED_AS_RIGHT = lazy_pattern(r"[✓✔✅☑][\s(\[\"']{0,4}\Z")
# Everything but B can be excluded: what is said of the others confirms this one.
EXCEPTED = _compile(
    r"\b(?:everything|all|none|nothing|every|any|no)(?: \w+){0,3} (?:but|except|except for|other than|besides)\b"
    + _FILLER
)
# Although B is partly true, …
CONCEDED = _compile(
    _any("although though while whereas even_if granted admittedly obwohl bien_que aunque embora sebbene хотя")
    + r"[^,]{0,60}\Z"
)
# I initially chose B, but …
AT_FIRST = _compile(
    r"\b(?:initially|originally|at first|zuerst|zunächst|d['’]abord|al principio|inizialmente|сначала"
    r"|(?:almost|nearly) (?:chose|picked|said|went|answered|put|selected)|was about to|previously"
    r"|earlier|(?:considered|thought about|tempted|going to) \w+"
    r"|first (?:thought|chose|guess|instinct|picked|said))\b[^,.!?:]{0,40}\Z"
)
# Being looked at is not being chosen.
LOOKED_AT = _compile(
    _any(
        """consider compar(?:e|es|ed|ing) check checking examine look_at looking_at test testing regarding about as_for for
        now evaluate analy[sz]e verify through among between choose_among prüfen betrachten examinons consideremos"""
    )
    + _FILLER
)
# Figure A · vitamin C · the altitude from B
NO_OPTION = _compile(
    _any(
        """appendix figure table section plan vitamin type group hepatitis grade class part step case team point triangle
        angle from of at in on let"""
    )
    + r"\s+\Z"
)

# --- behind a mention

# … is the correct answer · が正解です
IS_ANSWER = _compile(
    rf"\W{{0,6}}번?(?:(?:{LINK}|\b(?:must|would|should|has to|remains)\b(?: be)?)\W{{0,3}})?"
    r"(?:\b(?:the|our|my|your|la|le|die|der|das|het|de|el|il|a|o)\b\s?)?(?<!\bis a\s)"
    rf"(?:(?:{CORRECT}\s?)?{ANSWER}(?! that\b)|(?:{CORRECT}|\b(?:my|our|final))\s?{CHOICE}|\bthe one\b"
    r"|\bthe (?:odd|only|exception|false|incorrect)\b)"
)
# Of verbs only one that follows at once: `B fits`, not `B says that the opposite holds`.
_YES = (
    _any("supported yes the_answer better stimmt passt convient sí sì", "[✓✔✅☑] 成立 适合 を選 를_선택 을_선택")
    + r"|\A[\W|]{0,6}(?:(?:also|still|clearly|alone|only|best|indeed|really|does)\s)?"
    + r"(?:fits|holds|works|matches|satisfies|passes|remains|wins|stands|survives)\b"
)
_NO = _any(
    """(?<!,_)not(?!_(?:sure|certain)) cannot never nor neither nope incorrect incorrectly wrong wrongly false untrue
    inaccurate invalid impossible implausible unlikely irrelevant inconsistent unsupported absurd violates? fails? out
    ruled eliminated? excluded? rejected? dismissed discarded contradicts? misses ignores lacks confuses
    (?:might|may|could)_(?:seem|look|appear|sound) distractors? tempting trap attractive close plausible runner-up
    second-best next-best second_best next_best mistake misconception too off-topic unrelated less weaker partially
    partly half half-right falsch nicht scheidet scheiden kein keine unzutreffend ne fausse? faux incorrecte pas inexacte
    incorrect[ao]s? fals[ao]s? err[oó]ne[ao] errad[ao]s? não sbagliat[ao] errat[ao] non onjuist fout niet błędn[aey]
    niepoprawn[aey] nieprawidłow[aey] yanlış(?:tır)? değil невер[а-я]+ неправ[а-я]+ не ошибоч[а-я]+ salah""",
    r"""(?<=[:–—|-]_)no\b n['’]t\b [✗✘❌☒×] 不 错 錯 誤 間違 正しくない ではない ません 違 不適切 않 틀 아닙 아니 오답 غير
    خاطئ خطأ ليس गलत नहीं sai""",
)
# What is said of an option right behind it; of several the first counts.
SAID = _compile(
    rf"(?P<yes>(?:{CORRECT}|{_YES})(?!\W+(?:but|yet|though|only|at first|in general|in principle)\b))|(?P<no>{_NO})"
)
REPLIES = _compile(rf"(?P<yes>{CORRECT}|{_YES}|\b(?:oui|ja|да)\b)|(?P<no>{_NO}|\b(?:no|nein|нет)\b)")
# This option is (incorrect)
OF_THIS = _compile(
    r"\A[\s*:–-]*(?:(?:verdict|status|so|therefore|thus|hence|but)\b[\s,:]*)?"
    r"(?:(?:this|that|das|dies|cela|esto|isso|questo|это)\b(?:\s(?:option|statement|choice|one|answer))?"
    r"\s?(?:is|are|ist|est|es|é|è)?\s?(?:also|therefore|thus)?\s?)?"
)
OF_ANOTHER = _compile(
    r"\W*(?:not\W+(?:\w+\W+)?\w\b(?!['’])|[✓✔✅☑✗✘❌☒×]\W*\w\b|(?:in)?correct\s(?:options|choices|answers)\b|wrong\s\w+s\b)"
)
# Long answer: A and B are special cases, which does not choose them.
IS_SUBJECT = _compile(
    rf"[\s)\]]{{1,3}}(?:are|were|have|do|differ|describe|mean|say)\b(?!\W+(?:both\W+|all\W+)?{CORRECT})"
)
# Neither A nor C is right; B is.
AND_THIS_IS = _compile(r"[)\]\"']?\s+(?:it\s)?(?:is|does|can|do|ist|est|es)[.!]?\s*\Z")
# Straight behind a formal answer only a verb takes it back: the answer B is wrong.
TAKES_BACK = _compile(
    r"\W{0,4}(?:(?:is|are|was|were|can|could|does|do|did|would|will|seems?|est|ist|es|é|è|está)\b\s*){1,2}"
    r"(?:be\s+|also\s+|therefore\s+)?(?:(?:not|cannot|wrong|incorrect|false|ruled|eliminated|impossible|out|excluded|dismissed|discarded|rejected|falsch"
    r"|nicht|fausse?|faux|incorrecte?|incorrect[ao]|errad[ao]|sbagliat[ao])\b|n['’]t\b)"
    r"|\W{0,4}(?:cannot|can['’]t|isn['’]t|doesn['’]t|不|غير|गलत|fails?\b)"
)
_BUT = _any("but though although yet however aber mais pero mas ma но")
# Where the verb comes last: Cは正解ではありません · C는 정답이 아닙니다 · C सही नहीं है
NEGATED_BEHIND = lazy_pattern("아닙|아니|않|ではありません|ではない|じゃない|くない|くありません|नहीं|değil")
COPULA = lazy_pattern(r"\A[)\]\"']?\s?(?:です|だ|である|입니다|이다|है)(?=\W|\Z)")
# What follows these tells why, and no longer what.
REASON = _compile(
    _any(
        """because since as due_to given_that weil denn da car puisque porque ya_que pois perché poiché want omdat ponieważ
        çünkü потому так_как поскольку""",
        "因为 因為 なので ので لأن क्योंकि",
    )
    + r"|\b(?:mean|say|claim|state|suggest|impl[yi]e?)s?\b|,\s?(?:so|while)\b|,\s?"
    + _BUT
    + r"|\b(?:but|aber|mais|pero)\b"
)
BUT = _compile(r"(?:,\s?)?" + _BUT)
# After these a capital A at the start of a sentence is an option; before any other small word it is an article.
AFTER_A_LETTER = lazy_pattern(
    r"\s+"
    + _any(
        """is isn are was were can cannot could would should must may might does doesn do did has have because since as and
        or but not nor fails? seems? looks? fits? holds for rather over instead with in at by if due though although while
        which that it then to says states? describes? gives? also only alone remains follows stands wins works matches
        misses through correctly incorrectly violates contradicts makes requires out here exactly directly best above ist
        weil kann und oder scheidet est car parce et ou es porque y o está pois e é è perché want en jest bo ponieważ
        çünkü seçeneği"""
    )
)

# --- around it

# Is it B? · Why not B? But not: hm, B?
ASKS = _compile(r"\W*(?:why|what|how|is|isn['’]t|shall|should|would|do|does|did|could|can|are|which)\b")

# Said of a case that is not at hand …
SUPPOSED = _compile(
    r"\bif\b(?! (?:(?:i|we) (?:had|have|were|must|am|need|take|use|set|plug|put|add|solve|look)|forced|pressed|pushed)\b)"
    r"[^.!?]{0,160}\b(?:would|could|might|['’]d)\b"
    r"|\b(?:would|could|might)\b[^.!?]{0,40}\b(?:if(?! i\b)|only (?:if|in|when|under|for|be)|had|unless)\b|\bhad the\b"
    r"|\b(?:could|would|might) have been\b|\bonly if\b|\bif (?:you|one|someone) (?:pick|choose|chose|answer)"
    r"|\bwould(?: only| also| then)? be (?:right|correct|true|appropriate|valid|preferred|indicated)"
    r" (?:for|in|when|under|with|at|on)\b(?! (?:this|our|the (?:given|question))\b)"
    r"|\bto (?:a different|another|some other) (?:question|problem)\b"
    r"|\b(?:choosing|picking|selecting|answering|going with)\b[^.!?]{0,30}\b(?:would|means|requires)\b"
    r"|\bfor\b[^.!?]{0,30}\bto be (?:right|correct|true)\b"
    r"|(?:\A|[,;:]\s)\s*were\b[^.!?]{0,80}\bwould\b|\b(?:wenn|falls|wäre|hätte)\b[^.!?]{0,80}\bwäre\b|\bwäre\b[^.!?]{0,60}\b(?:wenn|falls|nur)\b"
    r"|\bs[ie]\b[^.!?]{0,80}\b(?:serait|sería|seria|sarebbe)\b|\b(?:serait|sería|seria|sarebbe)\b[^.!?]{0,60}\bs[ie]\b"
    r"|\b(?:если|был[аои]?) бы\b|\bbył[aoy]by\b|\bskulle\b[^.!?]{0,60}\bom\b|\bchỉ đúng\b"
    r"|如果|才(?!是)|看似|(?<!それ)なら(?!な|ば)|がち"
)
# … or by somebody else.
_TO_PICK = (
    r"(?:(?<!the )(?<!correct )(?<!right )(?<!best )answer(?!\w* (?:is|must|should|has)\b)"
    r"|pick|choose|chose|select|say|think|give|guess|believe|go (?:with|for))(?:ed|s)?\b"
)
BY_OTHERS = _compile(
    r"\b(?:students?|people|learners|test-takers|someone|somebody|everyone|nobody|no one|classmates?|friends?|colleagues?"
    rf"|(?:one|you|some|many|others|anyone) (?:might|may|would|could|often))\b[^.!?,]{{0,40}}\b{_TO_PICK}"
    rf"|\b(?:who|easy to|tempting to|why \w+ (?:would|might|may|could))\b(?: \w+)? {_TO_PICK}"
    r"|\byour (?:\w+ )?(?:answer|choice|pick|guess|suggestion)(?: was| of)\b|\bof the (?:rest|others)\b"
    r"|\b(?:viele|manche|beaucoup|certains|muchos|algunos|muitos|alguns|molti|alcuni|многие|wielu|velen|många|mange|nhiều"
    r"|birçok)\b[^.!?,]{0,40}\Z|误选|誤選|很多人|很多同学|不少人"
    # Forgetting the factor of two leads to B.
    r"|\b(?:wrong|mistakenly|incorrectly|forget\w*|forgot|mis(?!s)\w{3,}ing|confus\w+)\b[^.!?,]{0,60}"
    r"\b(?:gives?|leads?|gets?|yields?|produces?|results?|arrive|end)\b[^.!?,]{0,20}\Z"
    r"|\byou(?:['’]ve| have)? (?:said|suggested|chose|picked|answered|proposed|wrote|selected|mentioned|gave)\b[^.!?,]{0,20}\Z"
)
# You chose B, which is correct.
CONFIRMED = _compile(rf"[\s,)]*(?:which|and (?:that|this|it)|this|that)?\s?(?:is|was)\s(?:\w+ )?{CORRECT}")
JOINS = _compile(
    r"[\s)\]\"'*.]{0,4}(?:,|/|&|\+|、|，|\.\s+also\b|"
    + _any("and or nor und oder et ou y o e и или as_well_as along_with through", "和 或 与 と や 및 와 과 و أو और या")
    + r"|,\s?(?:and|or|und|oder|et|ou|y|o|e|и|или)\b)"
    + r"[\s(\[\"'*]{0,4}(?:\b(?:option|choice|answer|also|both|the|la|le)s?\b:?\s?){0,2}[\s(\[\"'*]{0,3}"
)
ANNOUNCES_NEXT_LINE = _compile(
    r"\W*(?:(?:the|my|your|our|final|single|best|most|likely|therefore|thus|so|hence|is|la|die|le|el|il|short|finale?"
    rf"|{CORRECT})\W+){{0,5}}(?:{CORRECT}\W{{0,3}})?(?:{ANSWER}|{CHOICE})\W{{0,3}}(?:{CORRECT}|finale?)?"
    rf"\W{{0,3}}(?:{LINK})?\W*"
)
NEXT_QUESTION = lazy_pattern(
    r"^[ \t#*]*(?:(?:question|problem|frage|pregunta|问题)\s{0,3}\d*|q\d*|user|human)\s?\*{0,2}:",
    re.IGNORECASE | re.MULTILINE,
)
# What was said before is taken back.
RETRACTS = _compile(
    r"(?:\A|[.!?…\n—–])\W{0,5}"
    + _any(
        """wait hold_on hang_on no_wait oops my_bad correction edit sorry apologies moment attendez espera perdón aspetta opa
        desculpe стоп подождите""",
        "等等 抱歉 待って 잠깐 انتظر रुकिए",
    )
    + "|"
    + _any(
        """scratch_that just_kidding on_second_thought i_misread i_made_an?_(?:mistake|error) my_mistake i_apologi[sz]e
        let_me_correct i_take_that_back i_meant mi_correggo""",
        "算错",
    )
)
# Wait, that is wrong.
RENOUNCES = _compile(
    r"(?:\A|[.!?…\n—–])\W{0,5}(?:wait|hmm|no|oops|hold on|sorry|actually)\b[^.!?\n]{0,30}"
    r"\b(?:that|this|it)(?: is|['’]s| was) (?:wrong|incorrect|not right|not correct|a mistake)\b"
)
UNDECIDED = _compile(
    _any(
        r"""none_of_(?:these|them|the_(?!other|remaining)(?:\w+_)?(?:above|options|choices|answers|statements|alternatives|three|four|five|ones))
        neither_of no_option all_of_(?:the|these)_\w+_are_(?:wrong|incorrect) (?:can['’]?t|cannot|can_not)_decide
        it_depends keine_der aucune?_des ninguna_de nenhuma_das nessuna_delle ни_один_из""",
    )
)
ORDINAL = _compile(r"\bthe\s(?:(first)|(second)|(third)|(fourth)|(fifth)|(last))\s(?:option|statement|alternative)\b")
# I can't tell which of them matches, because the figure is missing.
REFUSES = _compile(
    r"\b(?:i|we)(?:['’]m| am| are| was)? ?(?:cannot|can['’]?t|could not|couldn['’]?t|unable to|not able to"
    r"|won['’]?t|will not|decline to|prefer not to|['’]d rather not)"
    r" (?:\w+ )?(?:determine|answer|tell|say|choose|pick|select|see|view|decide|help|know|provide|identify|access|have enough)\b"
    r"|(?:\bnot|n['’]t) (?:\w+ )?(?:among|one of|in|match any of) the (?:\w+ )?(?:options|choices|answers|list)\b"
    r"|\b(?:i|we) (?:do not|don['’]?t) (?:know|have enough|have access"
    r"|see (?:an?|the|any) (?:image|figure|picture|graph|attachment|question))\b"
    r"|\bno way (?:for me |of |to )"
)
QUOTED = lazy_pattern(r'"[^"\n]{1,200}"')
# B has the right sign and the wrong unit.
HALF_WRONG = _compile(r"\b(?:and|with)(?: \w+)? (?:wrong|incorrect|false)\b")

# A last sentence that concludes, and names one option as what it comes to.
CONCLUDES_WITH = lazy_pattern(
    r"(?:^|[.!?\n]\s*)(?:so|therefore|thus|hence|consequently|in conclusion|overall|as a result)\b(?![^.!?\n]*\b(?:not"
    r"|n't|neither|if|unless)\b)"
    r"[^.!?\n]{3,200}\b(?i:is|which is|are|matches|corresponds to|gives|means|namely|i\.e\.,?) (?i:option|choice"
    r"|answer|letter) [(\[]?([A-Z])[)\]]?[.!]?\Z",
    re.IGNORECASE,
)
