"""One-liners, written for these tests. No two share more than a few words."""

from __future__ import annotations

__all__ = ["JOKES"]

JOKES = (
    "My calendar resigned this morning; it said its days were numbered.",
    "I lent my ladder to a mathematician, and he returned it with an extra rung for infinity.",
    "The ghost failed the job interview because everyone could see right through him.",
    "I bought a boomerang second-hand, but the former owner keeps coming back.",
    "Our village baker quit after thirty years since he no longer kneaded the dough.",
    "A snail was robbed by two tortoises and told the police that it all happened too fast.",
    "My tailor dislikes gossip, yet he is always ready to hem and haw.",
    "The clockmaker's party was dull at the beginning, then everybody got wound up.",
    "I told my suitcase that there would be no holiday this year, and it has been full of emotional baggage.",
    "Fishermen make poor comedians because their best lines are always under water.",
    "The orchestra's triangle player left suddenly after one ting led to another.",
    "A librarian slipped on the ice and landed in the non-friction section.",
    "Gardeners never lose an argument; they simply plant a doubt and let it grow.",
    "My bicycle fell asleep in the hallway, for it was two tired.",
    "The astronomer moved to a smaller house as he needed no more space.",
    "Whoever invented the knock on doors deserves a prize with no bell on it.",
)
