"""A callback test in thirty lines: a condition on the rest of the conversation, checked after every exchange."""

from dataclasses import dataclass

from _running import play

from themis.memory import DatasetInterface, Grade, TestExample, register_memory_test

REQUEST = "From now on never use the word '{word}', whatever you are asked. If you understand, answer with OK."


@register_memory_test("forbidden_word")
@dataclass(kw_only=True)
class ForbiddenWord(DatasetInterface):
    """For the next replies, to anyone, a word must not be used."""

    name = "Forbidden Word"
    description = "A word is forbidden for the next replies."

    replies: int = 5

    def generate_examples(self, num_examples):
        words = self.random().sample(["certainly", "unfortunately", "absolutely", "basically"], 4)
        return [
            TestExample(dataset=self, example_id=str(number), script=[REQUEST.format(word=words[number % 4])],
                        expected_responses=["OK"], uses_callback=True, material={"word": words[number % 4]})
            for number in range(num_examples)
        ]  # fmt: skip

    def callback(self, example, log):
        """Called after every exchange with a view of the whole conversation; None means: go on."""
        begun = next(line.turn for line in log if line.message == example.script[0])
        heard = [line.reply.lower().split() for line in log.after(begun - 1)]
        if any(example.material["word"] in words for words in heard):
            return Grade(0.0, f"said {example.material['word']!r} in reply {len(heard)}")
        return Grade(1.0, f"{len(heard)} replies without it") if len(heard) >= self.replies else None


if __name__ == "__main__":
    play("forbidden_word", agents=["oracle", "parrot"])
