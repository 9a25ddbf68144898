"""Notices that nobody has ever read: sentences put together at random, to be repeated word for word."""

from __future__ import annotations

from random import Random

__all__ = ["TITLES", "write_notice"]

TITLES = (
    "the harbour office", "the allotment society", "the chess club", "the night bus company", "the museum of locks",
    "the guild of chimney sweeps",
)  # fmt: skip
_SENTENCES = (
    "On the {count} {day} of the month {who} will inspect {what}, weather permitting.",
    "Members who own {what} are asked to bring it before {day}, together with {count} copies of the form.",
    "{who} regrets the loss of {what} and offers {count} crowns for its return.",
    "Until further notice {what} may only be used between {hour} and sunset.",
    "Complaints about {what} are heard by {who} every second {day}.",
    "It has been decided, by {count} votes to two, that {what} shall be painted again.",
    "{who} kindly reminds everybody that {what} is neither a toy nor a weapon.",
    "Whoever finds {what} unattended must ring the small bell {count} times.",
)
_WHO = ("the treasurer", "the deputy warden", "the committee for order", "Mrs Applegarth", "the third secretary")
_WHAT = (
    "the iron staircase", "the visitors' telescope", "the spare ladder", "the long table", "the ceremonial trumpet",
    "the cold store", "the weighing machine", "the glass partition",
)  # fmt: skip
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday")
_COUNTS = ("five", "seven", "nine", "eleven", "fourteen", "thirty")
_HOURS = ("half past six", "a quarter to eight", "ten o'clock", "noon")


def write_notice(sentences: int, chance: Random) -> str:
    written = []
    for sentence in chance.sample(_SENTENCES, sentences):
        text = sentence.format(
            count=chance.choice(_COUNTS),
            day=chance.choice(_DAYS),
            who=chance.choice(_WHO),
            what=chance.choice(_WHAT),
            hour=chance.choice(_HOURS),
        )
        written.append(text[0].upper() + text[1:])
    return " ".join(written)
