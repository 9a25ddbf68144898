"""Every extractor finds what models meant, and says so where there is nothing to find."""

from __future__ import annotations

import re

import pytest

from themis.core.identity import describe_object
from themis.evaluation.extractors import (
    EXTRACTORS,
    BoxedExtractor,
    ChainExtractor,
    CodeBlockExtractor,
    ErrorTaxonomyExtractor,
    FieldExtractionError,
    FinalAnswerExtractor,
    IdentityExtractor,
    JsonFieldExtractor,
    LastNumberExtractor,
    MultipleChoiceExtractor,
    RegexExtractor,
    ThinkTagStripper,
    XmlTagExtractor,
)
from themis.evaluation.registries import EXTRACTOR_CLASSES
from themis.evaluation.resolve import describe
from themis.exceptions import ConfigurationError
from themis.interfaces import Extractor

MUCH = 200_000


def test_every_builtin_is_an_extractor_whose_example_holds():
    for name, summary, example in (describe(EXTRACTORS, name) for name in EXTRACTOR_CLASSES):
        target = EXTRACTORS.get(name)
        assert summary
        assert "\n" not in example
        assert eval(example, {target.__name__: target}) is True, name


def test_identity_strips_unless_told_otherwise():
    assert IdentityExtractor().extract("  Paris \n") == "Paris"
    assert IdentityExtractor(strip_whitespace=False).extract("  Paris \n") == "  Paris \n"


@pytest.mark.parametrize(
    ("extractor", "text", "found"),
    [
        (RegexExtractor(r"\d+"), "between 12 and 34", "12"),
        (RegexExtractor(r"\d+", last=True), "between 12 and 34", "34"),
        (RegexExtractor(r"total: (\d+) of (\d+)"), "total: 3 of 5", "3"),
        (RegexExtractor(r"total: (\d+) of (\d+)", group=2), "total: 3 of 5", "5"),
        (RegexExtractor(r"(?P<answer>\w+)!"), "yes!", "yes"),
        (RegexExtractor(r"(?P<a>\d) (?P<b>\d)"), "1 2", {"a": "1", "b": "2"}),
        (RegexExtractor(r"(?P<a>\d) (?P<b>\d)", group="b"), "1 2", "2"),
        (RegexExtractor("ANSWER: (.*)", flags=re.IGNORECASE), "answer: naïve 東京", "naïve 東京"),
        (RegexExtractor(re.compile("a+")), "caat", "aa"),
    ],
)
def test_regex_gives_text_where_one_group_is_meant(extractor, text, found):
    assert extractor.extract(text) == found


def test_regex_refuses_what_cannot_be_used_before_the_run():
    with pytest.raises(ConfigurationError, match="invalid"):
        RegexExtractor("(")
    with pytest.raises(ConfigurationError, match="'answer' is not in the pattern"):
        RegexExtractor("(?P<reply>x)", group="answer")
    with pytest.raises(FieldExtractionError, match="took no part"):
        RegexExtractor("(a)|b").extract("b")


@pytest.mark.parametrize(
    ("path", "text", "found"),
    [
        ("answer", '{"answer": 42}', 42),
        ("a.b", '{"a": {"b": "x"}}', "x"),
        ("a.1.b", '{"a": [{}, {"b": null}]}', None),
        ("a.-1", '{"a": [1, 2]}', 2),
        ("", "[1, 2]", [1, 2]),
        ("answer", 'Sure!\n```json\n{"answer": "ja",}\n```', "ja"),
        ("answer", "I would say {'answer': True} here", True),
        ("wert", '{"wert": "größe"}', "größe"),
        ("answer", '{"Answer": 5}', 5),
        ("final_answer", '{"finalAnswer": 5}', 5),
        ("answer", '{"Answer": 1, "answer": 2}', 2),
        ("answer", '{"result": {"answer": 5}}', 5),
        ("answer", '{"draft": {"answer": 1}, "answer": 2}', 2),
        ("answer", '[{"answer": 5}]', 5),
        ("answer", '{"answer": 1}\nNo: {"answer": 2}\n{"tokens": 9}\n{"answer":', 2),
        ("answer", '<think>{"answer": 1}</think>{"answer": null}', None),
        ("answer", '{"name": "submit", "arguments": "{\\"answer\\": 3}"}', 3),
        ("answer", '"answer": 5}', 5),
        ("answer", '{"why": "he said "no" twice", "answer": 5}', 5),
        ("answer", r'{"answer": "\frac{1}{2}"}', r"\frac{1}{2}"),
    ],
)
def test_json_field_follows_a_path(path, text, found):
    assert JsonFieldExtractor(path).extract(text) == found


def test_json_field_reads_what_is_parsed_already():
    assert JsonFieldExtractor("a.b").extract({"a": [{"B": 1}]}) == 1
    assert JsonFieldExtractor().extract({"a": 1}) == {"a": 1}


def test_json_field_says_what_is_there_instead():
    with pytest.raises(FieldExtractionError, match=r"no field 'anwser'.*did you mean 'answer'"):
        JsonFieldExtractor("anwser").extract('{"answer": 1}')
    with pytest.raises(FieldExtractionError, match="no '7'"):
        JsonFieldExtractor("7").extract("[1]")
    with pytest.raises(FieldExtractionError, match="no JSON value"):
        JsonFieldExtractor("a").extract("nothing of the kind")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (r"\boxed{18}", "18"),
        (r"so \boxed{\frac{1}{2}}.", r"\frac{1}{2}"),
        (r"\boxed{1} then \boxed{ 2 }", "2"),
        (r"\boxed{\{1, 2\}}", r"\{1, 2\}"),
        (r"\boxed{\boxed{7}}", "7"),
        (r"\fbox{x}", "x"),
        (r"\boxed 5", "5"),
        (r"\\boxed{5}", "5"),
        (r"\boxed{\text{größer als } 3}", r"\text{größer als } 3"),
        (r"\boxed{1} and then \boxed{2", "1"),
        (r"\boxed{(2,2)} \quad \text{and} \quad \boxed{(6,2)}", "(2,2), (6,2)"),
        (r"$\boxed{1}, \boxed{2}, \boxed{3}$", "1, 2, 3"),
        (r"\boxed{7} or \boxed{-7}", "7 or -7"),
        (r"<think>\boxed{3}</think> so \boxed{4}", "4"),
    ],
)
def test_boxed_counts_braces(text, found):
    assert BoxedExtractor().extract(text) == found


@pytest.mark.parametrize("text", ["", "no box", r"\boxed{", r"\boxed{1", "}{", r"<think>\boxed{3}</think> so be it"])
def test_boxed_finds_nothing_where_no_box_closes(text):
    with pytest.raises(FieldExtractionError, match=r"no \\boxed"):
        BoxedExtractor().extract(text)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Janet makes 9 * 2 = $18.\n#### 18", "18"),
        ("#### 1,234", "1,234"),
        ("The final answer is **7**.", "7"),
        ("**Answer:** $x^2$", "x^2"),
        ("Answer:\n\n42", "42"),
        ("The answer is 5. Wait, the answer is 6.", "6"),
        ("The answer is not 5; the answer is 6", "6"),
        ("The answer is Paris. It lies on the Seine.", "Paris"),
        ("The answer to the question is St. Petersburg.", "St. Petersburg"),
        (r"The answer is 3, that is \boxed{4}", "4"),
        ("Answer: 東京", "東京"),
        (r"The answer is \(\frac{1}{2}\).", r"\frac{1}{2}"),
        ("The answer is 5 because 2+3=5.", "5"),
        ("The answer is probably 12.", "12"),
        ("The answer is $18, not $9.", "$18"),
        ("Die Antwort lautet 7, weil 3 + 4 = 7.", "7"),
        ("La réponse est 7 car 3 + 4 = 7.", "7"),
        ("答案是42。", "42"),
    ],
)
def test_final_answer_takes_what_was_announced_last(text, found):
    assert FinalAnswerExtractor().extract(text) == found


@pytest.mark.parametrize(
    "formal", ["Answer: Rome", r"\boxed{\text{Rome}}", "#### Rome", '{"answer": "Rome"}', "<answer>Rome</answer>"]
)
@pytest.mark.parametrize("later", ["Some say the answer is Milan.", "If it were 1865, the answer would be Turin."])
def test_a_formal_answer_outranks_any_later_mention_but_not_a_later_formal_one(formal, later):
    assert FinalAnswerExtractor().extract(f"{formal}\n\n{later}") == "Rome"
    assert FinalAnswerExtractor().extract(f"{formal}\n\nWait.\n\nAnswer: Milan") == "Milan"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("The answer is not iron; it is copper.", "copper"),
        ("The answer is Rome. The answer cannot be Milan.", "Rome"),
        ("Answer: Lima\n\nCommon wrong answer: Cusco", "Lima"),
        ("<think>The answer is 3.</think>The answer is 4.", "4"),
        ("12 + 30 = 42. So she has 42 apples.", "42 apples"),
        ("Canberra\n\nMany people name Sydney instead.", "Canberra"),
        ("Yes, because both are prime.", "Yes"),
    ],
)
def test_final_answer_knows_what_is_rejected_concluded_or_bare(text, found):
    assert FinalAnswerExtractor().extract(text) == found


@pytest.mark.parametrize(
    "text",
    [
        "",
        "I don't know the capital of France.",
        "So the answer is",
        "There are 5 red ones and then we add",
        "<think>The answer is 3.",
        r"Answer: \frac{1",
    ],
)
def test_final_answer_is_none_where_the_reply_refuses_or_breaks_off(text):
    with pytest.raises(FieldExtractionError, match="no announced answer"):
        FinalAnswerExtractor().extract(text)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("So 3 x 400 is $1,200.00 in all.", "1200"),
        ("-5", "-5"),
        ("−2.50", "-2.5"),
        ("-$3.50", "-3.5"),
        ("from 10-12", "12"),
        ("5 - 3", "3"),
        ("答案是42。", "42"),
        ("6.02×10^23", "602000000000000000000000"),
        ("2/3", "2/3"),
        (r"\frac{3}{4}", "0.75"),
        ("about 50%", "50"),
        ("25 m^2", "25"),
        ("12kg", "12"),
        (r"1{,}234", "1234"),
        ("1'234'567", "1234567"),
        ("1,2,3", "3"),
        ("٣", "3"),
    ],
)
def test_last_number_reads_numbers_as_people_write_them(text, found):
    assert LastNumberExtractor().extract(text) == found


@pytest.mark.parametrize("text", ["", "none", "H2O", "x^2", "v1.2.3", "1e999999", "9**9**9**9"])
def test_last_number_ignores_digits_that_are_no_number(text):
    with pytest.raises(FieldExtractionError, match="no number"):
        LastNumberExtractor().extract(text)


@pytest.mark.parametrize(
    ("text", "letter"),
    [
        ("The answer is (B).", "B"),
        ("**B**", "B"),
        ("B.", "B"),
        ("(b)", "B"),
        ("b", "B"),
        ("[B]", "B"),
        ("B) Paris", "B"),
        ("(B) Paris", "B"),
        ("B\n\nBecause A is smaller.", "B"),
        ("I think it's option C because A is wrong", "C"),
        ("It is C, not A.", "C"),
        ("A or B? Neither: C", "C"),
        ("I think it's option C because option A is wrong", "C"),
        ("A is tempting. But on reflection, since 3 > 2, it must be\n\nD", "D"),
        ("First, A cannot hold. B is not it. D is wrong.\nSo: C", "C"),
        ("Answer: C\n\nExplanation: A and B are out.", "C"),
        ("The answer is not A. So I'd go with E", "E"),
        ("Options A and B are wrong, so the answer must be D", "D"),
        ("(A) is wrong; (B) is wrong; (C) fits", "C"),
        ("The correct answer is A because it is", "A"),
        ("the answer is a.", "A"),
        ("E is correct.", "E"),
        ("The best answer is **D. 42**", "D"),
        ("Final Answer: [E]", "E"),
        (r"$\boxed{\text{C}}$", "C"),
        (r"the answer is: $\boxed{A}$", "A"),
        ("<answer>D</answer>", "D"),
        ("<think>surely A</think>B", "B"),
        ("正解は B です", "B"),
    ],
)
def test_multiple_choice_survives_the_ways_of_saying_a_letter(text, letter):
    assert MultipleChoiceExtractor("A-E").extract(text) == letter


@pytest.mark.parametrize(
    ("text", "letter"),
    [
        ("Answer: B\n\nOption D is a common distractor.", "B"),
        ("B\n\nD is the option that most people would choose.", "B"),
        ("**Answer:** B) Paris\n\nA and C are correct only in other years.", "B"),
        ("Answer: B\n\nIf the sign were negative, the answer would be C.", "B"),
        ('{"answer": "B", "why": "Option C is right about the date only"}', "B"),
        ("Answer: B\n\nWait, I misread it.\n\nAnswer: C", "C"),
        (r"\boxed{B}, or rather, \boxed{C}", "C"),
        ("The answer is B. Just kidding, it's C.", "C"),
        ("The answer is B or C. Of the two I would pick C.", "C"),
        ("I choose B. C is mentioned as well", "B"),
        ("A is false. B is true. C is false.", "B"),
    ],
)
def test_a_formal_answer_outranks_what_is_said_later_unless_that_is_one_too(text, letter):
    assert MultipleChoiceExtractor("A-E").extract(text) == letter


@pytest.mark.parametrize(
    ("text", "letter"),
    [
        ("Option D (Nucleus) is incorrect because it stores DNA. So E", "E"),
        ("The answer cannot be A, so it is D.", "D"),
        ("The answer is not A but C.", "C"),
        ("Neither A nor B is right; D is.", "D"),
        ("We rule out A, B and C, and E is too large.", "D"),
        ("Everything but C can be excluded.", "C"),
        ("Die Antwort ist B, nicht A.", "B"),
        ("La réponse ne peut pas être A. La réponse est donc D.", "D"),
        ("答案不可能是A。所以答案是B。", "B"),
        ("Ответ: B. Вариант A неверен.", "B"),
    ],
)
def test_what_is_rejected_is_never_the_choice(text, letter):
    assert MultipleChoiceExtractor("A-E").extract(text) == letter


@pytest.mark.parametrize(
    "text",
    [
        "Answer: <B>", "Answer: 'B'", "Answer: “B”", "Answer：Ｂ", "**Answer: (B)**", "__Answer__: `B`", "ANSWER = B", "Ans. b)",
        r"$$\boxed{\text{B}}$$", r"\boxed{\textbf{(B)}\ \text{Paris}}", "<answer>\nB\n</answer>", "#### B", "## Answer\n\nB",
        "Antwort: B", "Réponse : « B »", "La respuesta correcta es la B.", "Ответ: В", "答案：（B）", "答えは B です。",
        "الإجابة: B", "सही उत्तर B है।", "정답은 B입니다.",
    ],
)  # fmt: skip
def test_an_answer_is_read_however_it_is_set(text):
    assert MultipleChoiceExtractor("A-E").extract(text) == "B"


def test_the_letter_of_an_answer_outranks_the_text_beside_it():
    options = ["Paris", "London", "Rome", "New York"]
    assert MultipleChoiceExtractor("A-D", options=options).extract("Answer: B) Rome") == "B"
    assert MultipleChoiceExtractor("A-D", options=options).extract("The answer is Rome.\n\nAnswer: B") == "B"


@pytest.mark.parametrize(
    "text",
    [
        "", "A cat is a cat", "nothing", "F", "I am not sure.", "not B", "Answer: B and C", "The answer is either A or D.",
        "A is wrong. B is wrong.", "The correct answer is", "Step one holds. Now consider option C: it seems that",
        "Shall I compare B with C?", "None of the options is correct.", "N/A", "<think>The answer is B, since",
    ],
)  # fmt: skip
def test_multiple_choice_does_not_guess(text):
    with pytest.raises(FieldExtractionError, match="no choice among A-E"):
        MultipleChoiceExtractor("A-E").extract(text)


@pytest.mark.parametrize(
    ("text", "letter"),
    [
        ("Paris", "A"),
        ("The answer is Rome.", "C"),
        ("Plan A fails; the answer is Rome", "C"),
        ("I believe it is New York, without a doubt", "D"),
        ("The capital is london", "B"),
        ("B", "B"),
    ],
)
def test_multiple_choice_reads_a_spelled_out_option(text, letter):
    options = ["Paris", "London", "Rome", "New York"]
    assert MultipleChoiceExtractor("A-D", options=options).extract(text) == letter


def test_multiple_choice_takes_digits_and_refuses_nonsense():
    assert MultipleChoiceExtractor("1-4").extract("Answer: 3") == "3"
    with pytest.raises(ConfigurationError, match="a range such as 'A-D'"):
        MultipleChoiceExtractor("A to D")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("hm <answer> 42 </answer> ok", "42"),
        ("<answer>1</answer><answer>2</answer>", "2"),
        ("<Answer kind='x'>naïve</ANSWER>", "naïve"),
        ("<answer>cut off", "cut off"),
        ("I use <answer> tags: <answer>5</answer> as <answer> asks", "5"),
        ("<think><answer>4</answer></think><answer>5</answer>", "5"),
        ("<answer/><answer><![CDATA[a < b]]></answer>", "a < b"),
    ],
)
def test_xml_tag_takes_the_last_one_even_if_unclosed(text, found):
    assert XmlTagExtractor("answer").extract(text) == found


def test_xml_tag_can_take_the_first_and_refuses_markup_as_a_name():
    assert XmlTagExtractor("a", last=False).extract("<a>1</a><a>2</a>") == "1"
    with pytest.raises(FieldExtractionError, match="no <a>"):
        XmlTagExtractor("a").extract("a")
    with pytest.raises(ConfigurationError, match="'<a>' is not the name of a tag"):
        XmlTagExtractor("<a>")


@pytest.mark.parametrize(
    ("extractor", "text", "found"),
    [
        (CodeBlockExtractor(), "Here:\n```python\nx = 1\n```\ndone", "x = 1"),
        (CodeBlockExtractor(), "```\nshort\n```\n```\nmuch longer\n```", "much longer"),
        (CodeBlockExtractor("python"), "```py\nx = 1\n```\n```js\nlonger code\n```", "x = 1"),
        (CodeBlockExtractor(), "```python\ndef f():\n    return 1", "def f():\n    return 1"),
        (CodeBlockExtractor(), "~~~\na\n~~~", "a"),
        (CodeBlockExtractor(), "````\n```\ninner\n```\n````", "```\ninner\n```"),
        (CodeBlockExtractor(), "def f():\n    return 1\n", "def f():\n    return 1"),
        (CodeBlockExtractor(), "    return 1\n", "    return 1"),
        (CodeBlockExtractor(), "So:\n\ndef f():\n    return 1\n\nIt is short.", "def f():\n    return 1"),
        (CodeBlockExtractor(), "1. Do:\n   ```\n   x = 1\n   ```", "x = 1"),
        (CodeBlockExtractor("python"), "```\nx = 1\n```", "x = 1"),
    ],
)
def test_code_block_reads_fences_and_bare_code(extractor, text, found):
    assert extractor.extract(text) == found


F = "```python\ndef f(x):\n    return 2 * x\n```\n"


@pytest.mark.parametrize(
    "text",
    [
        "```python\ndef f(x):\n    return x\n```\nThat is wrong. Corrected:\n" + F,
        F + "Example:\n```python\nprint(f(1))\nprint(f(2))\nprint(f(3))\n```\nOutput:\n```\n2\n4\n6\n```",
        F + "Tests:\n```python\ndef test_f():\n    assert f(1) == 2\n    assert f(2) == 4\n```",
        F + "Do not write:\n```python\ndef f(x):\n    x = x * 2  # changes its argument\n    return x\n```",
        "<think>\n```python\ndef f(x):\n    return x\n```\n</think>\n" + F,
        "```bash\npip install something-with-a-long-name and-another-one\n```\n" + F,
    ],
    ids=["corrected", "usage", "tests", "wrong", "thinking", "shell"],
)
def test_code_block_is_the_solution_and_not_what_stands_beside_it(text):
    assert CodeBlockExtractor().extract(text) == "def f(x):\n    return 2 * x"


def test_blocks_that_build_on_each_other_are_one_program():
    text = "First:\n```python\nimport math\n```\nThen:\n```python\ndef area(r):\n    return math.pi * r**2\n```"
    assert CodeBlockExtractor("python").extract(text) == "import math\n\ndef area(r):\n    return math.pi * r**2"


def test_prose_is_no_code():
    with pytest.raises(FieldExtractionError, match="no code block"):
        CodeBlockExtractor().extract("For each item, print its name. If it is empty, return nothing.")


def test_code_block_finds_nothing_of_another_language():
    with pytest.raises(FieldExtractionError, match="no code block of rust"):
        CodeBlockExtractor("rust").extract("```python\nx\n```")
    with pytest.raises(FieldExtractionError, match="no code block"):
        CodeBlockExtractor(bare=False).extract("x = 1")
    with pytest.raises(FieldExtractionError):
        CodeBlockExtractor().extract("")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("<think>2 + 2</think> 4", "4"),
        ("reasoning without a beginning</think> 4", "4"),
        ("<think>a<think>b</think>c</think>4", "4"),
        ("<THINKING >a</thinking>4<think>b</think>5", "45"),
        ("plain", "plain"),
        ("before <think>never closed", "before"),
        ("<think>a\n<think>b</think>4", "4"),
        ("[THINK]a[/THINK]4", "4"),
        ("◁think▷a◁/think▷4", "4"),
        ("<|begin_of_thought|>a<|end_of_thought|>4", "4"),
        ("<reasoning>never closed <answer>4</answer>", "<answer>4</answer>"),
        ("<|channel|>analysis<|message|>3<|end|><|start|>assistant<|channel|>final<|message|>4<|return|>", "4"),
        ("<|channel|>analysis<|message|>3<|channel|>final<|message|>4", "4"),
        ("analysisWe need 3.assistantfinal4", "4"),
        ("Use the <think> tag, then 4", "Use the <think> tag, then 4"),
        ("`</think>` ends it: 4", "`</think>` ends it: 4"),
    ],
)
def test_think_tags_are_stripped(text, found):
    assert ThinkTagStripper().extract(text) == found


def test_reasoning_that_never_ends_is_no_answer():
    with pytest.raises(FieldExtractionError, match="nothing follows the reasoning"):
        ThinkTagStripper().extract("<think>and then and then")
    with pytest.raises(FieldExtractionError, match="nothing follows the reasoning"):
        ThinkTagStripper().extract("<|channel|>analysis<|message|>and then")


@pytest.mark.parametrize(
    ("text", "flags"),
    [
        ("", {"empty"}),
        ("4", set()),
        ("I'm sorry, but I can't help with that.", {"refusal"}),
        ("I do not know.", {"uncertain"}),
        ("word " * 19 + "and then it", {"truncated"}),
        ("again and again and again " * 20 + ".", {"repetitive"}),
    ],
)
def test_error_taxonomy_raises_flags(text, flags):
    found = ErrorTaxonomyExtractor().extract(text)
    assert {name for name, raised in found.items() if raised} == flags


def test_a_chain_hands_each_find_on():
    chain = ChainExtractor("think_tag_stripper", JsonFieldExtractor("answer"), "last_number")
    assert chain.extract('<think>{"answer": "1"}</think>{"answer": "about 1,000"}') == "1000"
    with pytest.raises(FieldExtractionError, match="no field 'answer'"):
        chain.extract("{}")
    with pytest.raises(ConfigurationError, match="at least one"):
        ChainExtractor()


@pytest.mark.parametrize("given", [None, {"a": 1}, [1], object()])
def test_what_is_not_text_is_no_answer(given):
    for name in ("identity", "boxed", "final_answer", "last_number", "multiple_choice", "xml_tag", "error_taxonomy"):
        with pytest.raises(FieldExtractionError, match="expected text"):
            EXTRACTORS.get(name)().extract(given)


HOSTILE = [
    "(",
    "{",
    "[",
    "\\",
    "$",
    "<",
    "*",
    "```\n",
    "\\boxed{",
    "<think>",
    "<answer ",
    "answer is ",
    "A ",
    "1,111",
    "9",
    "**A",
    "#",
    "A, B and ",
    "B? No. ",
    "Answer: B\n",
    "wait. ",
    "[THINK]",
    "<|channel|>final<|message|>",
    "Answer: ",
    "so it is ",
    '{"a": "',
    "def f(",
    "($",
    "~~~\n",
]


@pytest.mark.parametrize("piece", HOSTILE)
def test_a_lot_of_anything_is_read_in_one_pass(piece):
    """Would not end if any extractor took time with the square of the text."""
    text = piece * (MUCH // len(piece))
    reasons = []
    for extractor in (
        BoxedExtractor(), CodeBlockExtractor(), ErrorTaxonomyExtractor(), FinalAnswerExtractor(), JsonFieldExtractor("a"),
        LastNumberExtractor(), MultipleChoiceExtractor(), ThinkTagStripper(), XmlTagExtractor("answer"),
    ):  # fmt: skip
        try:
            extractor.extract(text)
        except FieldExtractionError as error:
            reasons.append(str(error))
    assert max(map(len, reasons), default=0) < 300


def test_parameters_of_an_extractor_are_part_of_its_identity():
    described = [
        describe_object(extractor)
        for extractor in (
            RegexExtractor("a"), RegexExtractor("b"), RegexExtractor("a", last=True),
            JsonFieldExtractor("a"), JsonFieldExtractor("b"),
            ChainExtractor("boxed"), ChainExtractor("boxed", "last_number"),
        )
    ]  # fmt: skip
    assert all(described[i] != described[j] for i in range(7) for j in range(i))
    assert describe_object(RegexExtractor("a")) == described[0]


def test_every_builtin_satisfies_the_contract():
    built = [IdentityExtractor(), RegexExtractor("x"), ChainExtractor("boxed"), ThinkTagStripper()]
    assert all(isinstance(extractor, Extractor) for extractor in built)
