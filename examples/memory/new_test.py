"""A new memory test in thirty lines. `python examples/memory/new_test.py` runs it against a perfect and a forgetful agent."""

from dataclasses import dataclass

from _running import play

from themis.memory import DatasetInterface, Grade, TestExample, register_memory_test

PLACES = ["in the drawer", "under the mat", "behind the clock", "in the blue jar"]


@register_memory_test("keys")
@dataclass(kw_only=True)
class Keys(DatasetInterface):
    """The keys are moved; only the last place counts."""

    name = "Keys"
    description = "Where did I leave my keys?"
    reset_message = "Never mind my keys any more."

    moves: int = 3

    def generate_examples(self, num_examples):
        return [self.example(number) for number in range(num_examples)]

    def example(self, number):
        places = self.random(number).sample(PLACES, self.moves)
        script = [*(f"I have put my keys {place}." for place in places), "Where are my keys?"]
        return TestExample(dataset=self, example_id=str(number), script=script, expected_responses=[places[-1]])

    def evaluate(self, questions, responses, expected):
        others = [place for place in PLACES if place != expected[0]]
        right = expected[0] in responses[0] and not any(place in responses[0] for place in others)
        return Grade.when(right, f"expected {expected[0]!r} and no other place")


if __name__ == "__main__":
    play("keys", agents=["oracle", "window(300)"])
