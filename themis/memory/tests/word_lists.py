"""Words that several families of tests take from: names of people, cities, months.

No first name is also an English word, a colour or a place that another test uses, so that finding one in a reply means
that the name was said. Users and people in stories never share a name.
"""

from __future__ import annotations

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

CITIES = (
    "Antwerp", "Bergen", "Bilbao", "Dresden", "Graz", "Gdansk", "Lausanne", "Ljubljana", "Malmo", "Naples",
    "Porto", "Riga", "Salzburg", "Tampere", "Utrecht", "Valencia", "Zagreb",
)  # fmt: skip

MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip
