"""A tale in chapters, and six ways in which it might go on, of which only one fits all that was told.

A journey has four circumstances: who comes along, how they travel, what they carry, where they go. Each chapter changes one
of them. The true opening of the next chapter has all four right; every other opening has exactly one wrong, if possible a
value that was right in an earlier chapter.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from themis.memory.material.names import STORY_NAMES

__all__ = ["CIRCUMSTANCES", "OPTIONS", "Tale", "tell_tale"]

OPTIONS = 6
CIRCUMSTANCES = {
    "companion": (
        "an old ferryman", "a runaway apprentice", "a deaf cartographer", "a travelling surgeon", "a retired juggler",
        "a shepherd girl", "a one-eyed trumpeter", "a novice nun", "a disgraced judge",
    ),
    "transport": (
        "on foot", "in a mule cart", "on a river barge", "on skis", "in a sledge drawn by dogs", "on two grey ponies",
        "in a leaking rowing boat", "in the mail coach", "on a raft of barrels",
    ),
    "burden": (
        "a sealed copper box", "a cage with a raven", "a roll of forbidden maps", "a bell without a clapper",
        "a sack of seed corn", "a portrait in oils", "a jar of quicksilver", "a broken crown", "a letter for the queen",
    ),
    "destination": (
        "the salt mines", "the drowned abbey", "the winter fair", "the glass harbour", "the hermit's tower",
        "the border fort", "the valley of mills", "the isle of lamps", "the old capital",
    ),
}  # fmt: skip
_CHANGES = {
    "companion": "That night {old} turned back without a farewell, and in the morning {new} asked to come along instead.",
    "transport": "They had travelled {old} so far, but the road ended there; from then on they went {new}.",
    "burden": "At the crossing {hero} traded {old} for {new}, and would not say why.",
    "destination": "A message came: it was useless to go to {old}. They were expected at {new}.",
}
_SCENES = (
    "The wind had turned, and the smoke of the last farms lay flat over the fields.",
    "Nobody spoke for an hour; there was only the creak of leather and the crows.",
    "A milestone leaned by the wayside, its letters eaten by moss.",
    "They ate what was left of the bread and shook the crumbs out for the sparrows.",
    "Far below, a mill turned without any sound reaching them.",
    "It rained until noon, then the clouds tore and the hills steamed.",
    "An inn stood empty, its sign taken down, a chair still on the table.",
    "Somebody had tied red thread around every birch along the path.",
    "The moon came up so large that it seemed to belong to another country.",
    "Dogs barked in a village that they never saw.",
    "A pedlar passed and offered needles, news and a cough medicine.",
    "The bridge had lost its railing, and they crossed it one after the other.",
    "Frost lay on the ropes in the morning and crackled when they were untied.",
    "There were footprints ahead of theirs, small ones, which stopped at a wall.",
    "The stars were out, and they quarrelled mildly over their names.",
    "A bell rang thirteen times somewhere in the fog.",
)
_OPENING = (
    "{hero} arrived at {destination} {transport}, with {companion} a step behind. The guard pointed at {burden}. "
    '"{remark}" he said, and the gate was opened.'
)
_REMARKS = (
    "So that is what all the fuss is about,",
    "You are later than the letter promised,",
    "We had given you up,",
    "Not a word to anyone inside,",
    "I have lost a wager on you,",
    "Wipe your boots, both of you,",
)


@dataclass(frozen=True)
class Tale:
    chapters: tuple[str, ...]
    openings: tuple[str, ...]
    # Which of the openings is true, counted from 1.
    answer: int


def tell_tale(chapters: int, chance: Random) -> Tale:
    hero = chance.choice(STORY_NAMES)
    state = {facet: chance.choice(values) for facet, values in CIRCUMSTANCES.items()}
    stale: dict[str, list[str]] = {facet: [] for facet in CIRCUMSTANCES}
    start = (
        f"{hero} set out {state['transport']} for {state['destination']}, carrying {state['burden']}. "
        f"With {hero} went {state['companion']}."
    )
    told = [_chapter(1, [start], chance)]
    facets: list[str] = []
    for number in range(2, chapters + 1):
        if not facets:
            facets = chance.sample(tuple(CIRCUMSTANCES), len(CIRCUMSTANCES))
        told.append(_chapter(number, [_change(facets.pop(), hero, state, stale, chance)], chance))
    openings = [(_opening(hero, state, remark), remark) for remark in _REMARKS]
    answer = chance.randrange(OPTIONS)
    texts = [text for text, _ in openings]
    wrong_facets = [facet for facet in CIRCUMSTANCES for _ in range(2)]
    chance.shuffle(wrong_facets)
    used: set[tuple[str, str]] = set()
    for place in range(OPTIONS):
        if place != answer:
            texts[place] = _opening(hero, _wrong(state, stale, wrong_facets.pop(), used, chance), _REMARKS[place])
    return Tale(tuple(told), tuple(texts), answer + 1)


def _chapter(number: int, events: list[str], chance: Random) -> str:
    before, after = chance.sample(_SCENES, 3), chance.sample(_SCENES, 3)
    return f"Chapter {number}\n" + " ".join([*before, *events, *(scene for scene in after if scene not in before)])


def _change(facet: str, hero: str, state: dict[str, str], stale: dict[str, list[str]], chance: Random) -> str:
    fresh = [value for value in CIRCUMSTANCES[facet] if value != state[facet] and value not in stale[facet]]
    old, new = state[facet], chance.choice(fresh or [value for value in CIRCUMSTANCES[facet] if value != state[facet]])
    stale[facet] = [value for value in (*stale[facet], old) if value != new]
    state[facet] = new
    return _CHANGES[facet].format(hero=hero, old=old, new=new)


def _opening(hero: str, state: dict[str, str], remark: str) -> str:
    return _OPENING.format(hero=hero, remark=remark, **state)


def _wrong(
    state: dict[str, str], stale: dict[str, list[str]], facet: str, used: set[tuple[str, str]], chance: Random
) -> dict[str, str]:
    """The state with one circumstance that does not hold; one that once held, while there is one left."""
    candidates = [value for value in stale[facet] if (facet, value) not in used] or [
        value for value in CIRCUMSTANCES[facet] if value != state[facet] and (facet, value) not in used
    ]
    value = chance.choice(candidates)
    used.add((facet, value))
    return {**state, facet: value}
