"""A dynamic test in thirty lines: what is said next depends on what the agent replied."""

from dataclasses import dataclass

from _running import play

from themis.memory import Ask, DatasetInterface, DynamicExample, Grade, Wait, register_memory_test


@register_memory_test("own_choice")
@dataclass(kw_only=True)
class OwnChoice(DatasetInterface):
    """The agent chooses something itself and must remember its own choice."""

    name = "Own Choice"
    description = "Remember what you chose yourself."

    def generate_examples(self, num_examples):
        return [Choice(dataset=self, example_id=str(number)) for number in range(num_examples)]

    def load_example(self, example_id, definition):
        return Choice(dataset=self, example_id=example_id)


class Choice(DynamicExample):
    def play(self):
        animals = ["otter", "heron", "lynx"]
        reply = yield Ask(f"Which do you like best: {', '.join(animals)}? Name only one.", ideal="heron", needs=())
        chosen = [animal for animal in animals if animal in reply.lower()]
        if len(chosen) != 1:
            yield Grade(0.0, f"chose {chosen or 'none'}, asked for one")
            return
        yield Wait(share_of_span=0.8)
        again = yield Ask("Which animal did you choose when I asked you?", ideal=chosen[0])
        named = [animal for animal in animals if animal in again.lower()]
        yield Grade.when(named == chosen, f"chose {chosen[0]}, now says {named or 'none'}")


if __name__ == "__main__":
    play("own_choice", agents=["oracle", "amnesiac"])
