"""A tiny memory test of every form, as users could have written them, and what runs them in a test."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from themis.config.schema import MemoryConfig, MemoryTestConfig
from themis.memory import definitions
from themis.memory.actions import Ask, Consult, Grade, Listen, Say, Wait
from themis.memory.agents.agent import Agent, Reply
from themis.memory.agents.calibration import Oracle
from themis.memory.benchmark import Benchmark
from themis.memory.examples import DatasetInterface, DynamicExample, TestExample, register_memory_test
from themis.memory.filler.facts import facts
from themis.storage import ExperimentStorage

START = datetime.datetime(2030, 1, 1, 12, tzinfo=datetime.UTC)
FILLER = facts(seed=1)


@dataclass(kw_only=True)
class Cities(DatasetInterface):
    """Fixed: the user moves; only the last city counts."""

    name = "Cities"
    reset_message = "Forget where I live."

    moves: int = 2

    def generate_examples(self, num_examples: int) -> list[TestExample]:
        examples = []
        for number in range(num_examples):
            cities = self.random(number).sample(["Lima", "Oslo", "Quito", "Rabat", "Turin"], self.moves)
            script = [*(f"I live in {city} now." for city in cities), "Where do I live?"]
            examples.append(
                TestExample(dataset=self, example_id=str(number), script=script, expected_responses=[cities[-1]])
            )
        return examples

    def evaluate(self, questions: Any, responses: Any, expected: Any) -> Grade:
        return Grade.when(expected[0] in responses[0], f"expected {expected[0]}")


@dataclass(kw_only=True)
class Errands(DatasetInterface):
    """Fixed, with so many lines that their shares of a span are no round numbers."""

    name = "Errands"

    def generate_examples(self, num_examples: int) -> list[TestExample]:
        return [
            TestExample(
                dataset=self,
                example_id=str(number),
                script=[*(f"Errand {errand} is done." for errand in range(10)), "Which errand was the last?"],
                expected_responses=["9"],
            )
            for number in range(num_examples)
        ]

    def evaluate(self, questions: Any, responses: Any, expected: Any) -> Grade:
        return Grade.when(expected[0] in responses[0], f"expected {expected[0]}")


@dataclass(kw_only=True)
class Appointments(DatasetInterface):
    """Temporal: the question depends on when something was said."""

    name = "Appointments"

    def generate_examples(self, num_examples: int) -> list[TestExample]:
        return [
            TestExample(
                dataset=self,
                example_id=str(number),
                script=["I have just been to the dentist.", "I have just been to the hairdresser."],
                waits=[Wait(time=datetime.timedelta(hours=30 + number), until_share=0.4), Wait(until_share=0.8)],
                expected_responses=["dentist"],
                is_temporal=True,
            )
            for number in range(num_examples)
        ]

    def temporal_question(self, example: TestExample, said: Any, now: datetime.datetime) -> str:
        hours = (now - said[0].now) / datetime.timedelta(hours=1)
        return f"Where was I {hours:.1f} hours ago?"

    def evaluate(self, questions: Any, responses: Any, expected: Any) -> Grade:
        return Grade.when(expected[0] in responses[0], questions[0])


@dataclass(kw_only=True)
class Promises(DatasetInterface):
    """Callback: from the third reply on the agent must have said the word once."""

    name = "Promises"

    def generate_examples(self, num_examples: int) -> list[TestExample]:
        return [
            TestExample(
                dataset=self,
                example_id=str(number),
                script=["Say 'pear' within your next four replies."],
                uses_callback=True,
                expected_responses=["pear"],
            )
            for number in range(num_examples)
        ]

    def callback(self, example: TestExample, log: Any) -> Grade | None:
        begun = next(line.turn for line in log if line.message == example.script[0])
        heard = [line.reply for line in log.after(begun - 1)][:4]
        if any("pear" in reply for reply in heard):
            return Grade(1.0, "said it")
        return Grade(0.0, "never said it") if len(heard) == 4 else None


@dataclass(kw_only=True)
class Orders(DatasetInterface):
    """Dynamic, with a judge: what is asked depends on the replies."""

    name = "Orders"

    def generate_examples(self, num_examples: int) -> list[TestExample]:
        return [
            Order(dataset=self, example_id=str(number), material={"dish": "soup"}) for number in range(num_examples)
        ]

    def load_example(self, example_id: str, definition: dict[str, Any]) -> TestExample:
        return Order(dataset=self, example_id=example_id, material=definition["material"])


class Order(DynamicExample):
    def play(self) -> Any:
        dish = self.material["dish"]
        ordered = yield Ask(f"We have {dish} and salad. What will you have?", ideal=dish, needs=())
        yield Wait(share_of_span=0.3)
        again = yield Ask(f"You said {ordered[:20]!r}. What was it?", ideal=dish)
        ruling = yield Consult(f"Is {again[:40]!r} {dish}? Answer yes or no.", parse=_yes_or_no)
        yield Grade.failure(ruling.failure) if ruling.failed else Grade.when(ruling.value, again[:20])


@dataclass(kw_only=True)
class Echoes(DatasetInterface):
    """A hand-written listener: from now on every reply to anyone ends with a word, to the end of the conversation."""

    name = "Echoes"

    def generate_examples(self, num_examples: int) -> list[TestExample]:
        return [DynamicEcho(dataset=self, example_id=str(number)) for number in range(num_examples)]

    def load_example(self, example_id: str, definition: dict[str, Any]) -> TestExample:
        return DynamicEcho(dataset=self, example_id=example_id)


class DynamicEcho(DynamicExample):
    def play(self) -> Any:
        yield Say("End each reply with 'over'.")
        heard, kept = 0, 0
        while (reply := (yield Listen(patience=0, ideal="over"))) is not None:
            heard += 1
            kept += reply.endswith("over")
        yield Grade.share(kept, heard, f"{kept} of {heard}")


def _yes_or_no(text: str) -> bool:
    if text.strip() not in ("yes", "no"):
        raise ValueError(f"neither yes nor no: {text!r}")
    return text.strip() == "yes"


KINDS: dict[str, type[DatasetInterface]] = {
    "cities": Cities,
    "errands": Errands,
    "appointments": Appointments,
    "promises": Promises,
    "orders": Orders,
    "echoes": Echoes,
}


def register_small_tests() -> None:
    """Makes them usable in configurations."""
    for name, kind in KINDS.items():
        register_memory_test(f"test_{name}")(kind)


class YesJudge:
    """Says yes to whatever has the word soup in it."""

    name = "yes-judge"

    def __init__(self) -> None:
        self.asked: list[str] = []

    def answer(self, prompt: str) -> Reply:
        self.asked.append(prompt)
        return Reply("yes" if prompt.count("soup") > 1 else "no", 0.001, 10, 1, 1)

    def most_cost_usd(self, prompt: str) -> float:
        return 0.001

    def close(self) -> None:
        pass


class Diary(Agent):
    """Remembers every exchange it has had and replies with how many and what it heard last: any gap in its memory shows."""

    name = "diary"

    def __init__(self) -> None:
        self.entries: list[tuple[str, str]] = []
        self.calls: list[int] = []

    def reply(self, message: str, *, turn: int, now: datetime.datetime, presupplied: str | None = None) -> Reply:
        if presupplied is None:
            self.calls.append(turn)
            before = self.entries[-1][0][-12:] if self.entries else "nothing"
            said = f"{len(self.entries)} before, last {before!r}; soup pear over"
            cost = 0.01
        else:
            said, cost = presupplied, 0.0
        self.entries.append((message, said))
        return Reply(said, cost_usd=cost, completion_tokens=3, calls=1)

    def observe(self, message: str, reply: str, *, turn: int, now: datetime.datetime) -> None:
        self.entries.append((message, reply))

    def most_cost_usd(self, message: str) -> float:
        return 0.01

    def reset(self) -> None:
        self.entries.clear()


def examples(counts: dict[str, int], span: int = 600) -> list[tuple[str, TestExample]]:
    """(kind, example) of so many tests of each kind."""
    made = []
    for kind, number in counts.items():
        dataset = KINDS[kind](memory_span=span)
        made += [(kind, example) for example in dataset.generate_examples(number)]
    return made


def prepared(storage: ExperimentStorage, counts: dict[str, int], span: int) -> list[tuple[str, TestExample]]:
    """The same through the store: generated into it by the first run, loaded from it by every later one."""
    tests = [
        MemoryTestConfig(name=f"test_{kind}", examples=number, arguments={"memory_span": span})
        for kind, number in counts.items()
    ]
    config = MemoryConfig(run_name="small", tests=tests)
    defined = definitions.prepare(config, storage, reuse=lambda question: True)
    return [(one.kind.removeprefix("test_"), one.example) for one in defined]


def benchmark(
    counts: dict[str, int] | None = None,
    *,
    span: int = 600,
    generated_in: ExperimentStorage | None = None,
    **changed: Any,
) -> Benchmark:
    """A run of the small tests; with `generated_in`, of definitions that the run itself generates and stores."""
    counts = counts or {"cities": 2, "appointments": 1, "promises": 1, "orders": 1, "echoes": 1}
    made = examples(counts, span) if generated_in is None else prepared(generated_in, counts, span)
    settings: dict[str, Any] = {
        "run_id": "r",
        "name": "small",
        "tests": [example for _, example in made],
        "kinds": {example.test_id: kind for kind, example in made},
        "conflicts": {kind: [kind] for kind in KINDS},
        "agent_name": "oracle",
        "make_agent": lambda session: Oracle(),
        "filler": FILLER,
        "judge": YesJudge(),
        "start": START,
        "max_message_tokens": 200,
    }
    return Benchmark(**(settings | changed))


def rows_of(storage: ExperimentStorage, run_id: str = "r") -> list[tuple[int, str, str | None, dict[str, Any]]]:
    """The tape without what depends on how fast this machine is."""
    from themis.core.codec import decode

    rows = []
    for turn in storage.reader(run_id).turns():
        body = decode(turn.body)
        body.pop("seconds", None)
        rows.append((turn.seq, turn.kind, turn.test_id, body))
    return rows


def store_in(folder: Path) -> ExperimentStorage:
    return ExperimentStorage(folder / "store")
