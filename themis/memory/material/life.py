"""What users tell of their lives. Each test has its own part of it, so that no two tests speak of the same thing."""

from __future__ import annotations

__all__ = [
    "ACQUAINTANCES", "ATTRIBUTES", "CITIES", "DEEDS", "LOCKS", "MONTHS", "PASSWORDS", "RELATIVES", "REPAIRS", "ROOMS",
]  # fmt: skip

# conflicting_personal_info, and the origin of parcels in instruction_exceptions
RELATIVES = ("sister", "brother", "cousin", "aunt", "godmother", "uncle", "niece", "nephew")
CITIES = (
    "Antwerp", "Bergen", "Bilbao", "Dresden", "Graz", "Gdansk", "Lausanne", "Ljubljana", "Malmo", "Naples",
    "Porto", "Riga", "Salzburg", "Tampere", "Utrecht", "Valencia", "Zagreb",
)  # fmt: skip

# contradiction, knowledge_update
MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip

# abstention: people of whom the surname is told, or is not
ACQUAINTANCES = (
    "accountant", "barber", "dentist", "driving instructor", "gardener", "landlord", "optician", "piano teacher",
    "plumber", "solicitor", "tailor", "vet",
)  # fmt: skip

# knowledge_update: rooms in which a choir rehearses
ROOMS = (
    "Alder", "Beech", "Cedar", "Elm", "Hazel", "Juniper", "Larch", "Linden", "Maple", "Poplar", "Rowan", "Spruce",
    "Sycamore", "Willow",
)  # fmt: skip

# temporal_order: the word that stands for a deed, and the deed
DEEDS = {
    "hedge": "planted the hedge", "piano": "sold the piano", "fence": "painted the fence", "canoe": "built the canoe",
    "kitchen": "tiled the kitchen", "novel": "finished the novel", "clarinet": "bought the clarinet",
    "cellar": "cleared out the cellar", "will": "signed the will", "beehive": "set up the beehive",
}  # fmt: skip

# aggregation: what a workshop repairs
REPAIRS = ("accordions", "bicycles", "clocks", "kettles", "lanterns", "prams", "typewriters", "umbrellas")

# forgetting: what is locked, and the words that open it
LOCKS = ("boat house", "garden shed", "observatory dome", "safe in the hall", "wine vault", "workshop gate")
PASSWORDS = (
    "bittern", "cormorant", "curlew", "dunlin", "goshawk", "kestrel", "lapwing", "nightjar", "osprey", "plover",
    "sandpiper", "wagtail",
)  # fmt: skip

# interference: statement, question and values of what is told of people who are easily confused
ATTRIBUTES: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "instrument": ("{who} plays the {value}.", "Which instrument does {who} play?",
                   ("bassoon", "cello", "harp", "mandolin", "oboe", "tuba")),
    "animal": ("{who} keeps a {value}.", "Which animal does {who} keep?",
               ("chinchilla", "ferret", "gecko", "parakeet", "tortoise", "whippet")),
    "sport": ("{who} spends every weekend on {value}.", "On which sport does {who} spend every weekend?",
              ("archery", "badminton", "curling", "fencing", "rowing", "table tennis")),
    "trade": ("{who} works as a {value}.", "What does {who} work as?",
              ("cooper", "glazier", "locksmith", "notary", "saddler", "surveyor")),
    "language": ("{who} is learning {value}.", "Which language is {who} learning?",
                 ("Basque", "Danish", "Greek", "Hungarian", "Swahili", "Turkish")),
    "drink": ("{who} starts the day with {value}.", "With what does {who} start the day?",
              ("buttermilk", "cocoa", "hot broth", "iced tea", "peppermint tea", "tomato juice")),
}  # fmt: skip
