"""First names for users and for people in stories.

None of them is also an English word, a colour or a place that another test uses, so that finding one in a reply means
that the name was said. Users and story people never share a name.
"""

from __future__ import annotations

__all__ = ["FIRST_NAMES", "STORY_NAMES", "SURNAMES"]

FIRST_NAMES = (
    "Agnes", "Alban", "Amira", "Anselm", "Astrid", "Aurelio", "Beatrix", "Birgit", "Bogdan", "Bronwen",
    "Cedric", "Clotilde", "Cormac", "Dagmar", "Damian", "Delphine", "Dmitri", "Dorothea", "Edmund", "Eilidh",
    "Elspeth", "Emeka", "Enzo", "Fabian", "Farida", "Fergus", "Florian", "Freya", "Gareth", "Gideon",
    "Greta", "Gustav", "Hamish", "Hannelore", "Harriet", "Henrik", "Ibrahim", "Ilse", "Imogen", "Ingrid",
    "Isolde", "Ivo", "Jelena", "Joachim", "Jolanta", "Kasimir", "Katarina", "Keiko", "Klara", "Laszlo",
    "Leopold", "Linnea", "Lorcan", "Ludmila", "Magnus", "Maeve", "Marcella", "Mathilda", "Milos", "Mireille",
    "Nadia", "Nikolai", "Odette", "Olaf", "Orla", "Ottilie", "Pascal", "Philippa", "Quentin", "Ramona",
    "Rasmus", "Roderick", "Rosalind", "Rupert", "Saskia", "Sigrid", "Silas", "Sunniva", "Tamsin", "Tariq",
    "Theodora", "Tobias", "Ulrika", "Ursula", "Valentin", "Vilhelm", "Winifred", "Wolfgang", "Xenia", "Yannick",
    "Yusuf", "Zelda", "Zoltan",
)  # fmt: skip

STORY_NAMES = (
    "Abena", "Boris", "Carmen", "Darius", "Elena", "Felipe", "Gwen", "Hugo", "Irina", "Jonas", "Kofi", "Lucia",
    "Marek", "Noor", "Oscar", "Priya", "Rafael", "Selma", "Tomas", "Vera", "Wanda", "Yara",
)  # fmt: skip

SURNAMES = (
    "Abernathy", "Borowski", "Castellan", "Drummond", "Eriksen", "Fontaine", "Grimshaw", "Halvorsen", "Ivanova",
    "Jernigan", "Kowalczyk", "Lindqvist", "Moreau", "Nakagawa", "Okonkwo", "Pemberton", "Quilliam", "Rasmussen",
    "Szabo", "Thackeray", "Underhill", "Vasquez", "Whitcombe", "Yilmaz",
)  # fmt: skip
