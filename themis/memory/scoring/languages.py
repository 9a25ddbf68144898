"""Words of other languages that a short answer may consist of, in English: days, months, directions, colours, small numbers."""

from __future__ import annotations

import re

from themis.core.patterns import lazy_pattern
from themis.memory.scoring.words import fold


def translate(text: str) -> str:
    """The folded text with days, months, directions, colours and small numbers of other languages in English.

    >>> translate("El lunes")
    'el monday'
    """
    return _FOREIGN_WORDS.sub(lambda found: _ENGLISH[found[0]], fold(text))


def is_foreign(text: str) -> bool:
    """Whether a text has more small words of another language than of English, so that rules for English do not read it.

    >>> is_foreign("Das ist jetzt blau, nicht mehr rot.")
    True
    """
    words = re.findall(r"[^\W\d_]+", fold(text))
    foreign = sum(word in _FOREIGN_SMALL for word in words)
    return foreign > 1 and foreign > sum(word in _ENGLISH_SMALL for word in words)


# Frequent words of German, French, Spanish, Italian, Portuguese and Dutch that English does not have.
_FOREIGN_SMALL = frozenset(
    [
        "aber",
        "auf",
        "im",
        "uber",
        "unter",
        "auch",
        "aus",
        "bei",
        "das",
        "dein",
        "deine",
        "dem",
        "den",
        "der",
        "dies",
        "diese",
        "ein",
        "eine",
        "einen",
        "einer",
        "er",
        "es",
        "fur",
        "ganz",
        "habe",
        "hast",
        "hat",
        "ich",
        "ihr",
        "ist",
        "ja",
        "jetzt",
        "kein",
        "keine",
        "mehr",
        "mein",
        "meine",
        "mit",
        "nach",
        "nein",
        "nicht",
        "noch",
        "nun",
        "oder",
        "schon",
        "sein",
        "seine",
        "sich",
        "sie",
        "sind",
        "und",
        "uns",
        "vom",
        "von",
        "war",
        "waren",
        "wie",
        "wird",
        "zu",
        "zum",
        "zur",
        "mais",
        "au",
        "aux",
        "avec",
        "ce",
        "cela",
        "cette",
        "dans",
        "de",
        "des",
        "du",
        "elle",
        "est",
        "et",
        "etait",
        "il",
        "la",
        "le",
        "les",
        "leur",
        "lui",
        "ma",
        "maintenant",
        "mon",
        "ne",
        "notre",
        "nous",
        "ou",
        "par",
        "pas",
        "plus",
        "pour",
        "que",
        "qui",
        "sa",
        "ses",
        "son",
        "sont",
        "sur",
        "ta",
        "tes",
        "ton",
        "tu",
        "un",
        "une",
        "votre",
        "vous",
        "ahora",
        "al",
        "como",
        "con",
        "del",
        "el",
        "ella",
        "en",
        "era",
        "eres",
        "esta",
        "este",
        "fue",
        "hay",
        "los",
        "las",
        "lo",
        "me",
        "mi",
        "mis",
        "muy",
        "no",
        "para",
        "pero",
        "por",
        "se",
        "si",
        "su",
        "sus",
        "tambien",
        "te",
        "tiene",
        "una",
        "unos",
        "y",
        "ya",
        "che",
        "chi",
        "ci",
        "da",
        "dei",
        "della",
        "di",
        "e",
        "gli",
        "io",
        "nel",
        "non",
        "ora",
        "per",
        "piu",
        "quella",
        "questo",
        "sei",
        "sono",
        "suo",
        "tuo",
        "agora",
        "ao",
        "com",
        "ele",
        "ela",
        "em",
        "eu",
        "foi",
        "mas",
        "na",
        "nao",
        "nas",
        "nos",
        "o",
        "os",
        "pela",
        "pelo",
        "seu",
        "sua",
        "uma",
        "het",
        "een",
        "niet",
        "maar",
        "zijn",
    ]
) - frozenset(
    ["a", "no", "o", "e", "me", "y", "me", "mi", "do", "on", "in", "he", "as", "was", "war", "an", "so", "am"]
)
_ENGLISH_SMALL = frozenset(
    [
        "a",
        "about",
        "and",
        "are",
        "as",
        "at",
        "be",
        "been",
        "before",
        "but",
        "by",
        "did",
        "do",
        "for",
        "from",
        "had",
        "has",
        "have",
        "he",
        "her",
        "his",
        "i",
        "if",
        "in",
        "is",
        "it",
        "its",
        "my",
        "no",
        "not",
        "now",
        "of",
        "on",
        "or",
        "she",
        "so",
        "that",
        "the",
        "their",
        "then",
        "there",
        "they",
        "this",
        "to",
        "was",
        "we",
        "were",
        "what",
        "which",
        "who",
        "will",
        "with",
        "would",
        "you",
        "your",
    ]
)


def _list_translations() -> dict[str, str]:
    return {
        word: english
        for line in _TRANSLATIONS.split("\n")
        for english, _, words in [line.strip().partition(": ")]
        for word in words.split()
    }


# German, French, Spanish, Italian and Portuguese, folded; not those that are English words as well.
_TRANSLATIONS = """monday: montag lundi lunes lunedi
    tuesday: dienstag mardi martes martedi
    wednesday: mittwoch mercredi miercoles mercoledi
    thursday: donnerstag jeudi jueves giovedi
    friday: freitag vendredi viernes venerdi
    saturday: samstag sonnabend samedi sabado sabato
    sunday: sonntag dimanche domingo domenica
    january: januar janvier enero gennaio janeiro
    february: februar fevrier febrero febbraio fevereiro
    march: marz mars marzo
    april: avril abril aprile
    may: mai mayo maggio maio
    june: juni juin junio giugno junho
    july: juli juillet julio luglio julho
    august: aout agosto
    september: septembre septiembre settembre setembro
    october: oktober octobre octubre ottobre outubro
    november: novembre noviembre novembro
    december: dezember decembre diciembre dicembre dezembro
    north: nord norden norte nordlich
    south: sud suden sudlich meridione
    east: osten ostlich leste levante
    west: westen westlich ouest oeste ovest poniente
    red: rot rouge rojo rosso vermelho
    blue: blau bleu azul blu azzurro
    green: grun vert verde
    yellow: gelb jaune amarillo giallo amarelo
    black: schwarz noir negro nero preto
    white: weiss blanc blanco bianco branco
    brown: braun brun marrone castanho
    grey: grau gris grigio cinza
    pink: rosa
    two: zwei deux dos dois duas
    three: drei trois tres tre
    four: vier quatre cuatro quattro quatro
    five: funf cinq cinco cinque
    six: sechs seis sei
    seven: sieben sept siete sette sete
    eight: acht huit ocho oito
    nine: neun neuf nueve nove
    ten: zehn dix diez dieci dez
    eleven: onze undici
    twelve: zwolf douze doce dodici doze"""
_ENGLISH = _list_translations()
_FOREIGN_WORDS = lazy_pattern(rf"\b(?:{'|'.join(sorted(_ENGLISH, key=lambda word: (-len(word), word)))})\b")
