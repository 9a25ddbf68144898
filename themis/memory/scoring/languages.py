"""Words of other languages that a short answer may consist of, in English: days, months, directions, small numbers."""

from __future__ import annotations

import re

from themis.memory.scoring.words import fold


def translate(text: str) -> str:
    """The folded text with days, months, directions and small numbers of other languages in English.

    >>> translate("El lunes")
    'el monday'
    """
    return _FOREIGN_WORDS.sub(lambda found: _ENGLISH[found[0]], fold(text))


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
_FOREIGN_WORDS = re.compile(rf"\b(?:{'|'.join(sorted(_ENGLISH, key=lambda word: (-len(word), word)))})\b")
