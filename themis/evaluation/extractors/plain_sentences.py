"""Replies of one plain sentence: the clause that answers, and what it says where only its verb tells.

`conclusions` asks here before it looks for conclusions, and again where a sentence has no "is".
"""

from __future__ import annotations

import re

from themis.core.patterns import lazy_pattern

# No sentence that answers by itself is longer.
_LONGEST = 400
_MOST_WORDS = 14


def main_clause(text: str) -> str:
    """One sentence without what it concedes, where it is set and under which condition; other texts as they are.

    >>> main_clause("Many people say Milan, but the capital of Italy is Rome.")
    'The capital of Italy is Rome.'
    """
    if "\n" in text or len(text) > _LONGEST:
        return text
    for pattern in (_CONCEDES, _REPORTS, _SUPPOSES, _SPANS):
        if opening := pattern.match(text):
            text = text[opening.end() :]
            text = text[:1].upper() + text[1:]
    for pattern, whole in _CONTRACTIONS:
        text = pattern.sub(whole, text)
    return _NOT_BUT.sub("", text)


# "Many people assume it's Melbourne, but", "As an AI, I have no taste of my own, but"
_CONCEDES = lazy_pattern(
    r"(?:(?:many|most|some|people|as an AI|as a language model|you (?:might|may|could)|one (?:might|may|could)"
    r"|it(?:['’]s| is) (?:often|commonly|sometimes|widely|tempting)|contrary to|I(?:['’]m| am) (?:not|no|just|only)"
    r"|I (?:don['’]t|do not) have|I thought|I used to|you(?:['’]re| are) (?:close|almost|nearly))\b[^.;!?\n]{3,160}?,? but "
    r"(?:actually |in fact |really )?(?!not\b|I (?:can|could|do|don|am)\b|I['’]m\b|[^,.]{0,40}\b(?:help|try)\b)"
    r"|(?:although|though|even though|while|whereas|contrary to|despite|unlike)\b[^,.;!?\n]{3,120}, )"
    r"(?=(?:the|an?|it|its|he|she|they|this|that|his|her|in|[A-ZÀ-Þ\"“*])(?!\w*ly\b))",
    re.IGNORECASE,
)
_REPORTS = lazy_pattern(
    r"(?:according to|based on|looking at|judging by|as (?:stated|mentioned|described|explained|noted|said|told) in"
    r"|as per|per|from"
    r"|in|laut|selon|según|segundo|secondo) "
    r"(?:the|this|that|your|dem|der|le|la|el|o|il) (?:\w+ )?"
    r"(?:text|passage|article|document|story|paragraph|table|report|email|letter|transcript|conversation|excerpt|context|chart|note|memo"
    r"|author|narrator|tree|diagram|map|graph|picture|image|clues?|data|texte|texto|testo|bericht)\b[^,.\n]{0,40}, (?=\S)",
    re.IGNORECASE,
)
# "If today is Friday, then in three days it will be Monday": what is supposed, where nothing else is said.
_SUPPOSES = lazy_pattern(
    r"(?:if|when|since|assuming|given that) (?!you (?:want|need|like|have|would|are|mean|prefer"
    r"|ask))[^.;:!?\n]{3,120}, (?:then )?"
    r"(?=(?:in [^,.]{2,30} )?(?:the|an?|it|he|she|they|you|that|this|there|today|tomorrow|yesterday|[A-Z])\b)",
    re.IGNORECASE,
)
_SPANS = lazy_pattern(
    r"(?:from|between) [^,.\n]{1,40} (?:to|until|and) [^,\n]{1,40}, (?=(?:it|that|there)\b)|"
    r"in [^,.\n]{2,30} (?=(?:it|that) (?:will|would|is|['’])[^,]{1,40}\Z)",
    re.IGNORECASE,
)
_CONTRACTIONS = (
    (lazy_pattern(r"\b(it|that|there|he|she|they|this|you|we)['’]ll\b", re.IGNORECASE), r"\1 will"),
    (lazy_pattern(r"\b(it|that|there|he|she|this)['’]d be\b", re.IGNORECASE), r"\1 would be"),
)
_NOT_BUT = lazy_pattern(
    r"(?<= )(?:nicht [^,.;\n]{1,40}, sondern|no [^,.;\n]{1,40},? sino|pas [^,.;\n]{1,40},? mais) (?=\S)", re.IGNORECASE
)


def drop_concession(text: str) -> str:
    """A text without the answer of somebody else that its first sentence concedes.

    >>> drop_concession("I see why you might think it is 54, but 7 x 8 is 56.")
    '7 x 8 is 56.'
    """
    conceded = _CONCEDED.match(text)
    return text[conceded.end() :] if conceded else text


_CONCEDED = lazy_pattern(
    r"\s*(?:(?:I (?:can )?(?:understand|see|know|get) (?:why|that|how)|(?:many|most|some|lots of) (?:people|students)"
    r"|you (?:might|may|could|said|wrote)"
    r"|one (?:might|may|could)|it(?:['’]s| is) (?:tempting|easy|natural|a common)|your (?:answer|result|guess|claim)"
    r"|at first (?:glance|sight)"
    r"|a common (?:mistake|error|guess|misconception))\b[^.!?\n]{3,160}?[,;] (?:but|yet|however,?"
    r"|actually,?) (?:actually,? |in fact,? )?"
    r"(?!(?:I|we|you)\b))(?=\S)",
    re.IGNORECASE,
)


def read_plain(sentence: str) -> str | None:
    """What a sentence without "is" says: who did more, where something is, how large a share; None where it is unknown.

    >>> read_plain("The sun rises in the east.")
    'the east'
    """
    sentence = sentence.strip().rstrip(".!")
    if len(sentence) > _LONGEST:
        return None
    sentence = _SETTING.sub("", sentence)
    for pattern in _SAYS:
        if found := pattern.fullmatch(sentence):
            said = next(part for part in found.groups() if part).strip()
            if said and len(said.split()) <= _MOST_WORDS:
                return said
    return None


# "In Australia, July falls in winter"
_SETTING = lazy_pattern(r"\A(?:In|On|At|For) [^,.\n]{2,40}, (?=(?:the|an?|it|[A-Z]\w+) )(?![^\n]*,)")
_NAME = r"(?:the |an? )?[A-ZÀ-Þ][\w'’.-]*(?: (?:of |the |de |van |von )?[A-ZÀ-Þ\d][\w'’.-]*){0,4}"
_THING = (
    r"(?!(?:It|it|[Ww]e|You|you|There|I)\b|(?:This|That) (?:is|was)\b)(?:[Tt]he |[Aa]n? |(?:Mr|Mrs|Ms|Dr"
    r"|Prof)\. )?(?:[\w'’-]+ ){0,3}?[\w'’-]+"
)
_VERBS_OF_PLACE = (
    r"rises?|rose|sets?|hangs?|hung|flows?|flowed|emptie[sd]|empty|drains?|lives?|lived|grows?|grew(?: up)?|sits?|sat"
    r"|stands?|stood|lies?"
    r"|leaves?|departs?|arrives?|comes?|came|stems?|originates?d?|occurs?|occurred|happens?|happened|takes? place"
    r"|took place|falls?|fell"
    r"|appears?|appeared|works?|worked|starts?|started|ends?|ended|runs?|ran|resides?d?|dwells?|settle[sd]?|moved?|went|goes|go"
    r"|flew|travel(?:s|led|ed)?|orbits?|resembles?|dates? back|listens?|meets?|belongs?"
)
_SAYS = (
    # 'The missing word is "heart": "Absence makes the heart grow fonder"', '"Bonjour" means "hello" in French'
    lazy_pattern(
        r"(?:[\"“][^\"“”]{1,60}[\"”] )?[^\"“”]*?(?:[\"“][^\"“”]{1,60}[\"”] )?(?:is|was|would be|means|are)(?: probably"
        r"| most likely| spelled| written| pronounced)? "
        r"[\"“]([^\"“”]{1,80}?)[.,]?[\"”](?:(?: in| \(|[:;,] | [–—] ).*)?"
    ),
    lazy_pattern(
        r"(?:[Yy]ou|I|[Ww]e)(?: should| would| could| can|['’]d)? (?:use|write|say|choose"
        r"|spell it) [\"“]([^\"“”]{1,60})[\"”](?: \w+)?"
    ),
    lazy_pattern(r"[^\n]* (?:at|is|via|to|on|under|visit) ([^\s@]+@[^\s@]+\w|https?://\S+|www\.\S+)"),
    lazy_pattern(
        r"(?:The|Its|His|Her) (?:\w+ )?(?:idea|message|theme|point|argument|claim|moral|lesson|thesis|problem"
        r"|reason)\b[^.,\n]{0,60} (?:is|was) that (.+)"
        r"|(?:The|Its|His|Her) (?:[\w'’]+ ){0,3}(?:purpose|goal|aim|intention|job|task|function|plan|role"
        r"|advice)\b[^.,\n]{0,60} (?:is|was) (to .+)"
    ),
    lazy_pattern(r"(?:The|My|Its) [^.\n]{2,60} is in (the [\w' -]{2,40})"),
    lazy_pattern(
        r"(?:The )?(?:number )?\d[\w,.]* (?:in|as|to|written|expressed|converted|rounded)\b[^.,\n]* is ([^\s,]{1,40})"
    ),
    # "The inequality holds for -2 < x < 5"
    lazy_pattern(
        r"[A-Z][^<>≤≥=\n]* (?:for|when|if|is|are|means|gives) (?:all )?((?:[-−]?[\w./]+ ?[<>≤≥]=? ?){1,2}[-−]?[\w./]+)"
    ),
    lazy_pattern(
        r"[^,;\n]* you(?:['’]re| are| will be|['’]ll be) (?:now )?(?:facing|looking|heading|going) (\w+)"
        r"|[Yy]ou(?:['’]re| are) (?:now )?(?:facing|looking|heading) (\w+)"
    ),
    # "is 12:8, which simplifies to 3:2"
    lazy_pattern(
        r"[^\n]*\d[^\n]*, which (?:simplifies|reduces|rounds|simplified|rounded|comes(?: out)?|amounts"
        r"|works out) (?:to|is) ([^,;\n]{1,40})"
    ),
    # "It wasn't Percy Shelley but Mary Shelley who wrote it"
    lazy_pattern(
        r"[Ii]t (?:wasn['’]t|was not|isn['’]t|is not) [^,;.]{1,60}?,? but (?:rather )?([^,;.]{1,60}?),? (?:who|that|which)\b.*"
    ),
    # "Goethe lived longer", "the blue car is faster than the red one"
    lazy_pattern(
        rf"({_THING}) (?!is |was |needs |this )(?!.* (?:is|are|was|were) )(?:[a-z]+(?:ed|s|ew|an|on|ot|ook)|has|had"
        rf"|have|did|got|came"
        rf"|went) (?:(?:longer|more|farther|further|faster|earlier"
        r"|later|better|higher|less|fewer|sooner|slower|worse|closer)|(?:the )?(?:most|least|fewest|longest|fastest"
        r"|best|first|last))(?: [\w ]{1,30})?"
    ),
    lazy_pattern(
        rf"({_THING}) (?:is|was|are|were) (?:(?:\w+ly|much|far|slightly) )?(?:[a-z]{{2,}}er|more [a-z]+"
        rf"|less [a-z]+) than [^,;]+"
    ),
    lazy_pattern(
        rf"({_THING}) (?:had|has|scored|got|received|recorded|showed|shows|sold|earned|made|won|reached"
        rf"|achieved) the (?:[a-z]{{2,}}est|most|fewest|least) [\w ]{{2,40}}"
    ),
    lazy_pattern(
        r"[^,;\n]* (?:is|was|were|are) (?:the )?(?:highest|lowest|largest|greatest|smallest|strongest|weakest"
        r"|longest|shortest|busiest|best|worst) (?:in|on|at|for|during|among) ([\w ]{2,40})"
    ),
    lazy_pattern(r"\d[^=,\n]{0,20}? equals? ([^,=\n]{1,30})"),
    lazy_pattern(r"[^,;\n]* (?:wurden?|worden) von ([^,;\n]{2,50}) [a-zäöüß]+(?:t|en)"),
    lazy_pattern(
        r"[Tt]he (?:\w+ )?(?:command|function|method|keyword|operator|option|flag|statement|module|library"
        r"|package) `([^`\n]{1,80})` [^`\d\"“]*"
    ),
    # "Nitrogen makes up about 78% of the atmosphere"
    lazy_pattern(
        r"[^%\d]* (?:about |roughly |around |approximately |nearly |some |only )?(\d[\d.,]*\s?%"
        r"|\d+(?:\.\d+)? percent) of [^%\d]*"
    ),
    lazy_pattern(r"[^\d]* port (\d{1,5})(?: by default)?"),
    # "she kept the letters in the attic"
    lazy_pattern(
        r"(?:\w+ ){1,4}?(?:hid|hides|kept|keeps|put|puts|left|placed|places|stored|stores|found|buried|parked|dropped"
        r"|lost|saw|met) "
        r"(?:[\w'’-]+ ){1,4}?((?:in|on|under|behind|beside|next to|near|between|inside|above|below|beneath|at) (?:the"
        r"|an?|his|her|their|my|its) [\w' -]{2,40})"
    ),
    # "The sun rises in the east", "the quote comes from *Casablanca*"
    lazy_pattern(
        rf"{_THING} (?:\w+ly )?(?:{_VERBS_OF_PLACE})(?: back| up| out| down)? (?:in|on|at|as|from|into|to(?! be\b)"
        rf"|near|around|through|under) ((?:the )?(?!.* (?:is|are|was|were)\b)[\w'’* -]{{2,50}}?)(?: by default)?"
    ),
    # "The speaker feels nostalgic"
    lazy_pattern(r"[Tt]he (?:\w+ )?\w+ (?:feels|felt|seems|sounds|looks|appears) ([a-z-]{3,}(?: and [a-z-]{3,})?)"),
    lazy_pattern(
        r"(?:[\w'’]+ ){1,8}?(?:is|are|was|were) (?:most |mostly |usually |often |generally |commonly "
        r"|chiefly )?(?:associated|linked|connected|identified) with (.+)"
    ),
    lazy_pattern(rf"(?:[\w'’*\"-]+ ){{1,8}}(?:is|was) an? (?:\w+ ){{1,3}}(?:by|from) ({_NAME})"),
    # "Stolicą Polski jest Warszawa", "Huvudstaden i Sverige är Stockholm", "Η πρωτεύουσα είναι η Αθήνα"
    lazy_pattern(
        r"[^.,\n]{3,80}? (?:jest|są|była?|było|nazywa się|är|heter|είναι|ήταν|este|adalah|là) (?:(?:η|ο|το|οι"
        r"|τα|o|την?|τον?) (?=[Α-ΩΆ-Ώ]))?([^.,\n]{1,60})"
    ),
    lazy_pattern(
        r"[A-ZÆØÅ][^.,\n]{2,60} (?:i|på|av|af|som|til|for) [^.,\n]{1,40} (?:er|heter|hedder) ([A-ZÆØÅ\d][^.,\n]{0,60})"
    ),
    lazy_pattern(r"[^.,\n]*[ěščřžýůťň][^.,\n]* je ([^.,\n]{1,60})"),
    lazy_pattern(r"[^.,\n]{3,80} (?:is|was) een (?:\w+ ){1,3}?van ([A-Z][^.,\n]{1,50})"),
    lazy_pattern(r"[^.,\n]{3,80} ([A-ZÇĞİÖŞÜ][^\s'’]+(?: [A-ZÇĞİÖŞÜ][^\s'’]+)*)['’][dt][ıiuü]r"),
    lazy_pattern(r"[^.,\n]{3,80} (?:stammt|stammen|kommt) (?:von|aus|vom) ([^.,\n]{2,50})"),
)
