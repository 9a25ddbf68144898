"""Standing requests: what the user will do, what the agent is then to say, and how the user does it.

The foil is a message of the same kind that is no trigger. No phrase to be said occurs in any message but the request.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["TRIGGERS", "Trigger"]


@dataclass(frozen=True)
class Trigger:
    occasion: str
    phrase: str
    messages: tuple[str, ...]
    foil: str


TRIGGERS = (
    Trigger(
        "tell you that I cannot sleep", "Count the herons on the roof",
        ("I cannot sleep tonight.", "It is two in the morning and I still cannot sleep.", "Once more I cannot sleep."),
        "I slept very well and feel rested.",
    ),
    Trigger(
        "say that I have lost my spectacles", "They are on your forehead, captain",
        ("I have lost my spectacles.", "Where are they? I have lost my spectacles.", "My spectacles! I have lost them again."),
        "I have bought new spectacles.",
    ),
    Trigger(
        "mention that it is raining", "Good weather for mushrooms and poets",
        ("It is raining here.", "Look outside, it is raining.", "It has started: it is raining."),
        "The sun is shining here.",
    ),
    Trigger(
        "complain about the noise of my neighbours", "Play the trombone until they move out",
        ("My neighbours are so noisy again.", "The noise from next door, my neighbours are unbearable.",
         "I must complain: the neighbours make such noise."),
        "My neighbours are very quiet people.",
    ),
    Trigger(
        "tell you that I missed the train", "Every missed train is a found hour",
        ("I missed the train.", "Just now I missed the train.", "Bad luck, I missed the train."),
        "I caught the train in time.",
    ),
    Trigger(
        "say that my plant looks unwell", "Read it a chapter about the sea",
        ("My plant looks unwell.", "The plant on the sill looks unwell.", "I am worried, my plant looks unwell."),
        "My plant has three new leaves.",
    ),
    Trigger(
        "mention that I burnt the toast", "Charcoal is a vegetable too",
        ("I burnt the toast.", "Oh dear, I burnt the toast.", "There is smoke: I burnt the toast."),
        "The toast came out golden.",
    ),
    Trigger(
        "tell you that my watch has stopped", "Then it is always teatime",
        ("My watch has stopped.", "I just noticed that my watch has stopped.", "My watch, it has stopped."),
        "My watch keeps perfect time.",
    ),
)  # fmt: skip
