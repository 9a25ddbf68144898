"""A new agent in thirty lines: it keeps a note of every statement and answers a question with the latest fitting note."""

from _running import play

from themis.memory import Agent, Reply, register_agent


@register_agent("notes")
class Notes(Agent):
    """`-a notes`, or `-a notes(10)` to keep only the last ten."""

    def __init__(self, argument=""):
        self.name = "notes"
        self.most = int(argument or 1_000)
        self.notes = []

    def reply(self, message, *, turn, now, presupplied=None):
        if presupplied is not None:
            return Reply(presupplied)  # filler, answered for us: nothing to remember
        if not message.endswith("?"):
            self.observe(message, "Noted.", turn=turn, now=now)
            return Reply("Noted.")
        words = set(message.lower().strip("?").split())
        fitting = [note for note in self.notes if words & set(note.lower().strip(".").split())]
        return Reply(fitting[-1] if fitting else "I do not know.", cost_usd=0.0)

    def observe(self, message, reply, *, turn, now):
        """A resumed run tells what was said before; so does `reply`."""
        if not message.endswith("?"):
            self.notes = [*self.notes, message][-self.most :]

    def reset(self):
        self.notes.clear()


if __name__ == "__main__":
    play("names", agents=["notes", "notes(1)"])
