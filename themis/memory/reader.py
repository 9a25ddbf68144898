"""The honest reader of a kind of test: it hears what an agent hears, remembers all of it, and answers by rules alone.

A reader knows how its kind of test talks, and nothing of any one test: neither its answers nor which message belongs to
which. That an agent made of readers scores 1.0 shows that everything a test asks follows from what was said.
"""

from __future__ import annotations

from datetime import datetime


class Reader:
    """Hears a whole conversation. A kind of test subclasses it and returns the class from `make_reader`.

    >>> from themis.memory.phrasing import Phrasing
    >>> class ShoeSizeReader(Reader):
    ...     told = Phrasing("My shoe size is {size}.")
    ...     asked = Phrasing("What is my shoe size?")
    ...     size = None
    ...     def answer(self, message, now):
    ...         if found := self.told.read(message):
    ...             self.size = found["size"]
    ...         return self.size if self.asked.matches(message) else None
    >>> reader = ShoeSizeReader()
    >>> reader.answer("I was at the shop. My shoe size is 43.", None)
    >>> reader.answer("What is my shoe size?", None)
    '43'
    """

    def answer(self, message: str, now: datetime) -> str | None:
        """Takes in a message; the reply to it if it asks what this reader answers, else None.

        Args:
            message: What was said to the agent.
            now: The virtual time.
        """
        return None

    def extend(self, message: str, reply: str, now: datetime) -> str:
        """The reply that is about to be given to any message, with what a standing request adds to it.

        Args:
            message: What was said to the agent.
            reply: What it is going to reply.
            now: The virtual time.
        """
        return reply

    def observe(self, message: str, reply: str, now: datetime) -> None:
        """Takes in what the agent replied in the end, to a message of this kind or of any other.

        Args:
            message: What was said to the agent.
            reply: What it replied, or was made to.
            now: The virtual time.
        """
