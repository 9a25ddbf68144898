"""Talk about nothing in particular, for facts to be told in the middle of it.

None of it says anything that a test asks for, and no test's reader takes it for one of the test's own sentences.
"""

from __future__ import annotations

from random import Random

from themis.memory.phrasing import Phrasing

_BEFORE = Phrasing(
    "[Sorry|Forgive me], I am [typing|writing] this [on the bus|between two meetings|with one hand|from the waiting room].",
    "[What a day|What a morning|What an afternoon] [that was|it has been], [nothing but|full of] {errands}.",
    "I [only just|finally|at last] [sat down|found a quiet corner|put the kettle on] after [all those|so many] {errands}.",
    "[Before I forget|While I think of it|Before the phone rings again], let me get [something|one thing] off my chest.",
    "You [would not believe|can hardly imagine] how [long|slow] the queue at the {counter} was.",
    "[Somebody|A man|A woman] at the {counter} [kept talking|would not stop talking] about {topic}, and I nearly dozed off.",
    "I have been reading about {topic} [half the night|all week|over breakfast], which is neither here nor there.",
    "The {machine} is [being repaired|out of order|humming] again, so [excuse|do not mind] the [short|untidy] message.",
    "[A colleague's|An old friend's] [children|guests] are [here|visiting] and nobody sits still.",
    "It is [oddly|rather|surprisingly] quiet [here|in the house|on our street] [today|this evening|for once].",
)
_AFTER = Phrasing(
    "[Anyway|Well|Right], the {machine} [is beeping|makes that noise again], I had better [see to it|go and look].",
    "[Enough of that|So much for that], [dinner will not cook itself|the {machine} will not repair itself].",
    "[Later|Next] I still have to [go to|telephone] the {counter}, and [heaven knows|who knows] how long that takes.",
    "[No need to|You need not] [make a fuss about it|say much to that], I only wanted [it said|to mention it].",
    "[On another note|By the way], there was a [long|dull|lovely] programme about {topic} [last night|on the wireless].",
    "I could [talk|go on] for hours, but [somebody is at the door|the bus is coming|the meeting starts].",
    "[Otherwise|Apart from that] there is [little|not much] to [report|tell], [only|just] {errands} as always.",
    "[Did you ever|Do people still] [take an interest in|care about] {topic}? [Never mind|It does not matter].",
)
_SLOTS = {
    "errands": (
        "calls and forms", "deliveries and signatures", "dishes and laundry", "e-mails and invoices", "errands",
        "meetings and minutes", "parcels and receipts", "stairs and corridors", "tickets and timetables",
        "visits and apologies",
    ),
    "counter": (
        "bank", "bus station", "cheese counter", "customs desk", "hardware shop", "pharmacy on the corner", "post office",
        "registry", "surgery", "swimming baths", "tax office", "ticket booth",
    ),
    "topic": (
        "bridges", "canals", "deep-sea cables", "early cinema", "glaciers", "handwriting", "harbour cranes", "knots",
        "lichen", "medieval roads", "meteorites", "old maps", "peat", "pigments", "printing presses", "railway gauges",
        "roof tiles", "salt mines", "sundials", "tide tables", "turbines", "volcanoes", "weather balloons", "wind tunnels",
    ),
    "machine": (
        "boiler", "coffee machine", "dishwasher", "dryer", "heating", "lawn mower", "lift", "oven", "printer", "scanner",
        "thermostat", "vacuum cleaner",
    ),
}  # fmt: skip


def wrap(rng: Random, sentence: str, *, before: int = 1, after: int = 1) -> str:
    """A sentence in the middle of talk about nothing.

    Args:
        rng: Decides what is said around it.
        sentence: What matters.
        before: At most so many sentences before it.
        after: At most so many after it.

    >>> wrap(Random("c"), "My shoe size is 43.")
    'I at last put the kettle on after all those e-mails and invoices. My shoe size is 43.'
    """
    said = [_chat(_BEFORE, rng) for _ in range(rng.randint(0, before))]
    said.append(sentence)
    said += [_chat(_AFTER, rng) for _ in range(rng.randint(0, after))]
    return " ".join(said)


def _chat(phrasing: Phrasing, rng: Random) -> str:
    return phrasing.say(rng, **{slot: rng.choice(values) for slot, values in _SLOTS.items()})
