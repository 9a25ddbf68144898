"""Memory tests as users write them: a dataset generates examples, an example is a script, a result is what became of it.

Registering a `DatasetInterface` makes its name usable in configurations.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
import pkgutil
import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, ClassVar, TypeVar

from themis.core.codec import to_plain
from themis.core.registry import Registry
from themis.exceptions import ConfigurationError
from themis.memory.actions import AgentReply, Ask, Grade, Grading, Listen, Log, Say, Script, Wait
from themis.memory.reader import Reader
from themis.memory.world import World

# How far through its span a fixed script has come when its last line is said.
LAST_SHARE = 0.9
# Plain JSON, in the layout of a `.def.json` file.
Definition = dict[str, Any]


@dataclass(kw_only=True)
class DatasetInterface(ABC):
    """One kind of memory test. Its dataclass fields are the arguments that a configuration may set.

    A subclass is a dataclass with a `name` (shown to people and part of every test's id) and a `description`. It must be
    seeded: `generate_examples` draws only from `self.random(...)`.

    Args:
        seed: Decides everything that is drawn at random.
        memory_span: Tokens of conversation that a test is spread over.
        max_message_size: Longest message of a test, in tokens.

    >>> @dataclass(kw_only=True)
    ... class ShoeSize(DatasetInterface):
    ...     name = "Shoe Size"
    ...     def generate_examples(self, num_examples):
    ...         sizes = [self.random(number).randrange(35, 47) for number in range(num_examples)]
    ...         return [
    ...             TestExample(
    ...                 dataset=self,
    ...                 example_id=str(number),
    ...                 script=[f"My shoe size is {size}.", "What is my shoe size?"],
    ...                 expected_responses=[str(size)],
    ...             )
    ...             for number, size in enumerate(sizes)
    ...         ]
    ...     def evaluate(self, questions, responses, expected):
    ...         return Grade.when(expected[0] in responses[0], f"expected {expected[0]}")
    >>> [test.script[0] for test in ShoeSize(seed=1).generate_examples(2)]
    ['My shoe size is 46.', 'My shoe size is 36.']
    """

    __test__: ClassVar[bool] = False

    name: ClassVar[str]
    description: ClassVar[str] = ""
    # Sent to the agent when a test has ended, so that it does not disturb the next one of its kind.
    reset_message: ClassVar[str] = ""
    # Registered names of kinds whose messages would spoil this one, besides itself.
    interferes_with: ClassVar[frozenset[str]] = frozenset()
    # Two tests of this kind may not run at the same time.
    interferes_with_itself: ClassVar[bool] = True
    # A later statement replaces an earlier one, so that what an earlier test of the kind told does no harm.
    latest_counts: ClassVar[bool] = False

    seed: int = 0
    memory_span: int = 2_000
    max_message_size: int = 4_096

    @abstractmethod
    def generate_examples(self, num_examples: int) -> list[TestExample]:
        """So many tests, the same ones for the same arguments on every machine.

        Args:
            num_examples: How many.
        """

    @functools.cached_property
    def world(self) -> World:
        """Whom and what the tests of one conversation speak of; a configuration's kinds share one."""
        return World()

    def random(self, *names: object) -> random.Random:
        """A random number generator of its own for every purpose named, fixed by the seed.

        Args:
            *names: The purpose, such as the test's number.
        """
        return random.Random(":".join(map(str, (type(self).__qualname__, self.seed, *names))))

    def evaluate(self, questions: Sequence[str], responses: Sequence[AgentReply], expected: Any) -> Grading:
        """The verdict on a fixed script's answers. One that needs the judge is a generator that yields `Consult`.

        Args:
            questions: What was asked.
            responses: The reply to each.
            expected: The example's `expected_responses`.
        """
        raise NotImplementedError(f"{type(self).__name__} has fixed scripts and needs an evaluate method")

    def evaluate_example(
        self, example: TestExample, questions: Sequence[str], responses: Sequence[AgentReply]
    ) -> Grading:
        """The verdict on a fixed script's answers where it takes what else was told; otherwise as `evaluate`.

        Args:
            example: The test.
            questions: What was asked.
            responses: The reply to each.
        """
        return self.evaluate(questions, responses, example.expected_responses)

    def callback(self, example: TestExample, log: Log) -> Grade | None:
        """For examples with `uses_callback`: called after every exchange; a grade ends the test, None goes on.

        Args:
            example: The test.
            log: The conversation so far.
        """
        raise NotImplementedError(f"{type(self).__name__} uses callbacks and needs a callback method")

    def conversation_over(self, example: TestExample, log: Log) -> Grade:
        """For examples with `uses_callback`: the verdict when the conversation ended before the callback gave one.

        Args:
            example: The test.
            log: The whole conversation.
        """
        return Grade.failure("the conversation ended before the callback gave a verdict")

    def ideal_answers(self, example: TestExample) -> list[str]:
        """What an agent with perfect memory would answer to each question; for calibration agents only.

        Args:
            example: The test.
        """
        expected = example.expected_responses
        answers = expected if isinstance(expected, list | tuple) else [expected]
        questions = sum(example.is_question)
        if len(answers) != questions:
            return [str(expected)] * questions
        return [str(answer) for answer in answers]

    def needed_lines(self, example: TestExample) -> list[Sequence[int] | None]:
        """Which lines of the script the answer to each question rests on, None for all: distances are measured to them.

        Args:
            example: The test.
        """
        return [None] * sum(example.is_question)

    def temporal_question(self, example: TestExample, said: Sequence[AgentReply], now: datetime) -> str:
        """For examples with `is_temporal`: the last question, which depends on when things were said.

        Args:
            example: The test.
            said: The replies to the lines before, which know when they were said.
            now: The virtual time.
        """
        raise NotImplementedError(f"{type(self).__name__} is temporal and needs a temporal_question method")

    def play(self, example: TestExample) -> Script:
        """The example as a script: its lines, its waits, its questions, then the verdict. Tests may override it.

        Args:
            example: The test.
        """
        return _fixed_script(self, example)

    def load_example(self, example_id: str, definition: Definition) -> TestExample:
        """An example from the fields that `TestExample.definition` wrote.

        Args:
            example_id: Its id among those of its kind.
            definition: The fields.
        """
        return TestExample.from_definition(self, example_id, definition)

    @classmethod
    def make_reader(cls) -> Reader | None:
        """A reader of this kind of test for one conversation, which the agent `perfect` is made of; None without one."""
        return None

    def is_readable(self, example: TestExample) -> bool:
        """Whether the reader of the kind reads this test: not where its material is a file's or a model's.

        Args:
            example: The test.
        """
        return self.make_reader() is not None

    @classmethod
    def arguments(cls) -> dict[str, dataclasses.Field[object]]:
        """What a configuration may set, by name."""
        return {argument.name: argument for argument in dataclasses.fields(cls) if argument.init}


@dataclass(kw_only=True)
class TestExample:
    """One test, ready to run.

    Args:
        dataset: The kind of test that made it.
        example_id: Its id among those of its kind.
        script: What is said, line by line; of a dynamic test what it starts from.
        is_question: Which lines are questions; by default the last one.
        waits: How long to wait after each line; by default they are spread over nine tenths of the span.
        expected_responses: What `evaluate` compares the answers with.
        is_temporal: The last question is made when it is asked, by the dataset's `temporal_question`.
        uses_callback: The dataset's `callback` looks at every exchange until it gives a verdict.
        material: Whatever else the dataset's `play` needs; plain JSON.

    Raises:
        ConfigurationError: There are not as many flags as lines.

    >>> from themis.memory.examples import MEMORY_TESTS
    >>> test = MEMORY_TESTS.get("colours")(seed=1).generate_examples(1)[0]
    >>> test.test_id, test.is_question
    ('Colours - 0', [False, False, False, True])
    """

    __test__: ClassVar[bool] = False

    dataset: DatasetInterface = field(repr=False, compare=False)
    example_id: str
    script: list[str] = field(default_factory=list)
    is_question: list[bool] = field(default_factory=list)
    waits: list[Wait] = field(default_factory=list)
    expected_responses: Any = None
    is_temporal: bool = False
    uses_callback: bool = False
    material: Definition = field(default_factory=dict)

    def __post_init__(self) -> None:
        lines = len(self.script) + self.is_temporal
        if not self.is_question:
            self.is_question = [False] * max(0, lines - 1) + [True] * (lines > 0)
        if len(self.is_question) != lines:
            raise ConfigurationError(
                f"test {self.test_id!r}: {lines} lines but {len(self.is_question)} is_question flags"
            )
        if not self.waits:
            self.waits = spread(lines)
        if len(self.waits) < lines:
            # A temporal question is made at run time, so stored waits may be one short.
            self.waits = [*self.waits, *[Wait()] * (lines - len(self.waits))]
        # Fixed when the test is made, so that a stored one waits exactly as long.
        self.waits = [wait.in_tokens(self.dataset.memory_span) for wait in self.waits]

    @property
    def test_id(self) -> str:
        """The kind's name and the example's id: what results and logs call it."""
        return f"{self.dataset.name} - {self.example_id}"

    @property
    def needles(self) -> int:
        """Statements to remember."""
        return len(self.is_question) - sum(self.is_question)

    def lines_with(self, *texts: str) -> list[int] | None:
        """The lines of the script that contain all of the texts; None where there is none.

        Args:
            *texts: What to look for.
        """
        return [number for number, line in enumerate(self.script) if all(text in line for text in texts)] or None

    def play(self) -> Script:
        """The test as a script."""
        return self.dataset.play(self)

    def arguments(self) -> Definition:
        """What its dataset was made with, as plain JSON."""
        return {name: to_plain(getattr(self.dataset, name)) for name in sorted(self.dataset.arguments())}

    def definition(self) -> Definition:
        """The example as plain JSON, in the layout of a `.def.json` file."""
        stored: Definition = {
            "script": list(self.script),
            "is_question": list(self.is_question),
            "waits": [_wait_fields(wait, self.dataset.memory_span) for wait in self.waits],
            "expected_responses": self.expected_responses,
            "can_be_interleaved": True,
            "is_temporal": self.is_temporal,
            "uses_callback": self.uses_callback,
        }
        if self.material:
            stored["material"] = self.material
        return stored

    @classmethod
    def from_definition(cls, dataset: DatasetInterface, example_id: str, definition: Definition) -> TestExample:
        """The opposite of `definition`.

        Args:
            dataset: The kind of test.
            example_id: Its id among those of its kind.
            definition: The fields.
        """
        return cls(
            dataset=dataset,
            example_id=example_id,
            script=list(definition.get("script", [])),
            is_question=list(definition.get("is_question", [])),
            waits=[_wait_from(fields, dataset.memory_span) for fields in definition.get("waits", [])],
            expected_responses=definition.get("expected_responses"),
            is_temporal=bool(definition.get("is_temporal", False)),
            uses_callback=bool(definition.get("uses_callback", False)),
            material=dict(definition.get("material", {})),
        )


@dataclass(kw_only=True)
class DynamicExample(TestExample):
    """A test whose messages depend on the replies. A subclass writes `play`; what it starts from is its `material`.

    >>> class Insisting(DynamicExample):
    ...     def play(self):
    ...         reply = yield Ask("Please say hello.")
    ...         if "hello" not in reply.lower():
    ...             reply = yield Ask("You did not say it.")
    ...         yield Grade.when("hello" in reply.lower(), "expected a greeting")
    >>> play = Insisting(dataset=MEMORY_TESTS.get("colours")(), example_id="0").play()
    >>> next(play).text
    'Please say hello.'
    >>> play.send("Hello!").score
    1.0
    """

    @property
    def needles(self) -> int:
        return len(self.script)

    def play(self) -> Script:
        raise NotImplementedError(f"{type(self).__name__} needs a play method that yields actions")


@dataclass(kw_only=True)
class TestResult:
    """What became of one test.

    Args:
        run_name: The run's name.
        agent_name: Who was tested.
        dataset_name: The kind of test.
        example_id: Its id among those of its kind.
        description: What the kind tests, for people.
        task_log: The test's own exchanges, a line each.
        expected_responses: What was expected.
        actual_responses: What the agent answered.
        reasoning: Why the score is what it is.
        max_score: The most that the score could be.
        tokens: Length of conversation from the test's first message to its last.
        characters: The same in characters.
        repetition: Which of several plays of one test it is, from 0.
        full_log: Everything that was said while it ran, a line each.
        needles: Statements that had to be remembered.
    """

    __test__: ClassVar[bool] = False

    run_name: str
    agent_name: str
    dataset_name: str
    example_id: str
    description: str = ""
    task_log: list[str] = field(default_factory=list)
    expected_responses: Any = None
    actual_responses: list[str] = field(default_factory=list)
    reasoning: list[str] = field(default_factory=list)
    # None when there is no verdict: a failure is never a score.
    score: float | None = None
    max_score: float = 1.0
    tokens: int = 0
    characters: int = 0
    repetition: int = 0
    full_log: list[str] = field(default_factory=list)
    needles: int = 0

    @property
    def test_id(self) -> str:
        """The kind's name and the example's id."""
        return f"{self.dataset_name} - {self.example_id}"


# --- fixed scripts ----------------------------------------------------------------------------------------------------


def spread(lines: int) -> list[Wait]:
    """Waits that spread so many lines over the span, the last one at nine tenths of it."""
    if lines < 2:
        return [Wait()] * lines
    return [Wait(until_share=(line + 1) * LAST_SHARE / (lines - 1)) for line in range(lines - 1)] + [Wait()]


def _fixed_script(dataset: DatasetInterface, example: TestExample) -> Script:
    """Says the lines, waits between them, collects the answers, then lets the dataset judge."""
    ideals, needed = iter(dataset.ideal_answers(example)), iter(dataset.needed_lines(example))
    said: list[AgentReply] = []
    questions: list[str] = []
    responses: list[AgentReply] = []
    lines: list[str | None] = [*example.script, *([None] * example.is_temporal)]
    for line, is_question, wait in zip(lines, example.is_question, example.waits, strict=False):
        if line is None:
            moment = yield Wait()
            line = dataset.temporal_question(example, said, moment.now)
        if is_question:
            heard = yield Ask(line, ideal=next(ideals, None), needs=next(needed, None))
            questions.append(line)
            responses.append(heard)
        else:
            heard = yield Say(line)
        said.append(heard)
        if wait != Wait():
            yield wait
    if example.uses_callback:
        yield from _until_callback(dataset, example, said[-1].log if said else None)
        return
    verdict = dataset.evaluate_example(example, questions, responses)
    yield (yield from verdict) if isinstance(verdict, Generator) else verdict


def _until_callback(dataset: DatasetInterface, example: TestExample, log: Log | None) -> Script:
    while True:
        if log is not None and (grade := dataset.callback(example, log)) is not None:
            yield grade
            return
        heard = yield Listen()
        if heard is None:
            assert log is not None
            yield dataset.conversation_over(example, log)
            return
        log = heard.log


def _wait_fields(wait: Wait, span_tokens: int) -> Definition:
    fields: Definition = {}
    if wait.tokens:
        fields["tokens"] = wait.tokens
    if wait.time:
        seconds = wait.time.total_seconds()
        fields["time"] = int(seconds) if seconds == int(seconds) else seconds
    if wait.until_tokens:
        # So many digits give the whole tokens back, of any span; 0.9 * 100 without rounding is 90.00000000000001.
        fields["percentage_finished"] = round(wait.until_tokens / span_tokens * 100, 9)
    return fields


def _wait_from(fields: Definition, span_tokens: int) -> Wait:
    seconds = fields.get("time") or 0
    return Wait(
        tokens=int(fields.get("tokens") or 0),
        time=timedelta(seconds=seconds) if seconds else None,
        until_tokens=round(float(fields.get("percentage_finished") or 0.0) / 100 * span_tokens),
        share_of_span=float(fields.get("share_of_span") or 0.0),
    )


# --- registry ---------------------------------------------------------------------------------------------------------


def find_kinds(package: str) -> dict[str, str]:
    """Every class with a `kind` in the modules of a package, by that name, as `module:class`; imports them."""
    found = {}
    for module in pkgutil.iter_modules(importlib.import_module(package).__path__, f"{package}."):
        for name, value in vars(importlib.import_module(module.name)).items():
            if isinstance(value, type) and issubclass(value, DatasetInterface) and "kind" in vars(value):
                found[str(vars(value)["kind"])] = f"{value.__module__}:{name}"
    return found


MEMORY_TESTS: Registry[type[DatasetInterface]] = Registry("memory test", lambda: find_kinds("themis.memory.tests"))

D = TypeVar("D", bound=type[DatasetInterface])


def register_memory_test(name: str) -> Callable[[D], D]:
    """Class decorator: makes a kind of test usable in configurations under a name.

    Args:
        name: What configurations call it.

    Raises:
        ConfigurationError: The class is no `DatasetInterface`, or has no `name`.

    >>> @register_memory_test("nothing")
    ... @dataclass(kw_only=True)
    ... class Nothing(DatasetInterface):
    ...     name = "Nothing"
    ...     def generate_examples(self, num_examples):
    ...         return []
    >>> "nothing" in MEMORY_TESTS
    True
    """

    def register(kind: D) -> D:
        if not (isinstance(kind, type) and issubclass(kind, DatasetInterface)):
            raise ConfigurationError(f"memory test {name!r} must be a subclass of DatasetInterface, got {kind!r}")
        if not isinstance(getattr(kind, "name", None), str) or not kind.name:
            raise ConfigurationError(f"memory test {name!r}: {kind.__name__} needs a class attribute `name`")
        MEMORY_TESTS.register(name, kind)
        return kind

    return register
