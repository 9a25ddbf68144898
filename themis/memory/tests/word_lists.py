"""Words that several families of tests take from: names of people, cities, months.

No first name is also an English word, a colour or a place that another test uses, so that finding one in a reply means
that the name was said. Towns and most surnames are made up, so that no model knows anything about them.
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
    "Adaeze", "Aiko", "Alastair", "Aleksy", "Aleta", "Alois", "Alvaro", "Amadou", "Ambrose", "Anatole",
    "Andrzej", "Anoush", "Antonella", "Araminta", "Arjun", "Armando", "Arvid", "Ayesha", "Balthazar", "Barnabas",
    "Bartek", "Benedetta", "Benoit", "Berenice", "Bertil", "Bettina", "Bohdan", "Brigida", "Calliope", "Camille",
    "Carlotta", "Caspian", "Catalina", "Celestine", "Chiara", "Chidi", "Claudio", "Conrad", "Cordelia", "Corinna",
    "Cosima", "Cyprian", "Dalia", "Danuta", "Davide", "Deirdre", "Desmond", "Dieter", "Dolores", "Domenico",
    "Donatella", "Dragana", "Edwina", "Eleni", "Eliseo", "Elodie", "Emilio", "Erlend", "Ernesto", "Esmeralda",
    "Estelle", "Eugenia", "Evander", "Fatima", "Federica", "Feliks", "Fidelia", "Fiorella", "Francesca", "Frederik",
    "Fumiko", "Gabriela", "Gaspard", "Gennaro", "Georgios", "Ghislaine", "Giacomo", "Gilberto", "Giuliana", "Gonzalo",
    "Gottfried", "Gudrun", "Guillermo", "Gunnar", "Gwendolen", "Hadiza", "Halina", "Hassan", "Hedwig", "Heloise",
    "Hermione", "Hideo", "Hilario", "Hiroshi", "Horatio", "Hortensia", "Ignacy", "Ilaria", "Imelda", "Indira",
    "Inigo", "Ioana", "Isadora", "Ismail", "Jadwiga", "Jarmila", "Javier", "Jerzy", "Joaquin", "Jocasta",
    "Johanna", "Josefina", "Juliusz", "Kaito", "Kalinda", "Karolina", "Kenji", "Khadija", "Kirsten", "Konrad",
    "Kristof", "Kwame", "Ladislav", "Laetitia", "Leandro", "Leocadia", "Leonora", "Liselotte", "Lothar", "Lucinda",
    "Ludovic", "Luisella", "Lysander", "Madalena", "Malgorzata", "Manuela", "Marguerite", "Marisol", "Marlena", "Massimo",
    "Matteo", "Maximilian", "Melisande", "Mercedes", "Mihai", "Mikkel", "Milena", "Minerva", "Mirko", "Montserrat",
    "Morwenna", "Nadezhda", "Naveen", "Nerys", "Nicoletta", "Nikhil", "Nuria", "Octavia", "Oisin", "Olympia",
    "Ondrej", "Orsolya", "Osvaldo", "Paloma", "Pandora", "Paolo", "Parvati", "Patrizia", "Pavel", "Penelope",
    "Perpetua", "Petronella", "Phaedra", "Pietro", "Priscilla", "Radoslav", "Rainer", "Rashida", "Raymundo", "Reinhild",
    "Renata", "Ricardo", "Rodrigo", "Romuald", "Rosamund", "Rufina", "Ruslan", "Sabine", "Salvatore", "Samira",
    "Sandor", "Santiago", "Sebastian", "Serafina", "Severin", "Shirin", "Sibyl", "Siegfried", "Solveig", "Soraya",
    "Stanislav", "Stellan", "Svetlana", "Takumi", "Tatiana", "Temperance", "Teodor", "Thaddeus", "Thandiwe", "Theresa",
    "Thibault", "Tiberius", "Timea", "Torsten", "Umberto", "Urszula", "Valeria", "Veronika", "Vicente", "Viorica",
    "Vittoria", "Vladimir", "Walburga", "Wenceslas", "Wilhelmina", "Xavier", "Ximena", "Yevgeny", "Yolanda", "Yukiko",
    "Zacharias", "Zdenek", "Zenobia", "Zsofia", "Zuleika",
)  # fmt: skip

STORY_NAMES = (
    "Abena", "Boris", "Carmen", "Darius", "Elena", "Felipe", "Gwen", "Hugo", "Irina", "Jonas", "Kofi", "Lucia",
    "Marek", "Noor", "Oscar", "Priya", "Rafael", "Selma", "Tomas", "Vera", "Wanda", "Yara",
)  # fmt: skip

_REAL_SURNAMES = (
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

# Surnames and towns are put together from these, so that there are enough for hundreds of tests.
_STEMS = (
    "Ald", "Ash", "Bar", "Bel", "Bram", "Brin", "Cal", "Cran", "Dal", "Den", "Dor", "Eder", "Elm", "Fal", "Fen", "Gal",
    "Garn", "Glen", "Gris", "Hal", "Harl", "Hest", "Holl", "Ing", "Jar", "Kel", "Kest", "Lang", "Lind", "Lor", "Mal",
    "Marl", "Mel", "Mor", "Nor", "Oak", "Orl", "Pell", "Pend", "Quar", "Rad", "Rav", "Ros", "Sal", "Sel", "Stan", "Tal",
    "Tem", "Thorn", "Ul", "Var", "Wal", "Wend", "Wex", "Yar",
)  # fmt: skip
SURNAMES = _REAL_SURNAMES + tuple(
    stem + end for end in ("acott", "enshaw", "erby", "inson", "owitz", "stroem", "ubeck") for stem in _STEMS
)
TOWNS = tuple(
    stem + end
    for end in ("bourne", "burgh", "enmouth", "garth", "haven", "hythe", "iminster", "royd", "stead", "wick")
    for stem in _STEMS
)
# Places of which a test needs one or two of its own: more than a thousand, for conversations of hundreds of tests.
VILLAGES = tuple(
    stem + end
    for end in (
        "bourne", "combe", "dale", "don", "field", "ford", "gate", "hithe", "holm", "hurst", "ingham", "ley", "mere", "ness",
        "nock", "port", "sley", "stoke", "thorpe", "ton", "wardine", "well", "wold", "worth",
    )
    for stem in _STEMS
)  # fmt: skip
