"""Mathematical equality: what is equal, what is not, and what may not run or run for ever."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from themis.evaluation.metrics import algebra
from themis.evaluation.metrics.arithmetic import equal_in_numbers
from themis.evaluation.metrics.expressions import stated_expression
from themis.evaluation.metrics.maths import MathVerifyAccuracy
from themis.exceptions import MetricError

GSM8K = "She eats 3 and bakes 4, so 16 - 3 - 4 = <<16-3-4=9>>9 eggs.\nShe makes 9 * 2 = $<<9*2=18>>18.\n#### 18"
MATH = r"The sum is $\frac{a}{1-r}$, so the answer is $\boxed{\frac{1}{2}}$ of the whole."


def score(prediction, *references, seconds=5.0):
    return MathVerifyAccuracy(timeout_seconds=seconds).compute(prediction=prediction, references=list(references))


@pytest.mark.parametrize(
    ("prediction", "reference"),
    [
        (r"\boxed{\frac{1}{2}}", "0.5"),
        (r"Therefore $\boxed{\frac{1}{2}}$.", r"\frac12"),
        ("0.5", MATH),
        (r"\boxed{18}", GSM8K),
        ("She makes $18 a day. The answer is 18 dollars.", GSM8K),
        ("1,234", "so 1234.\n#### 1,234"),
        ("1234", r"1{,}234"),
        ("x^2 + 2x + 1", "(x+1)^2"),
        (r"\frac{x+1}{2}", "0.5x + 0.5"),
        ("(3, 5]", "$(3,5]$"),
        ("[3, 5)", r"\left[3, 5\right)"),
        (r"(-\infty, 3) \cup (5, \infty)", "(-∞, 3) ∪ (5, ∞)"),
        (r"x \le 5", r"(-\infty, 5]"),
        (r"\{3, 2, 1\}", r"\{1, 2, 3\}"),
        (r"The roots are \boxed{1} and \boxed{2}.", "1, 2"),
        ("$1$ or $2$", r"\{1, 2\}"),
        ("5 cm", "5"),
        (r"5\text{ cm}", "5"),
        ("5", r"5 \text{ cm}"),
        ("12 oranges", "12"),
        ("7 square metres", "7"),
        (r"90^\circ", "90"),
        (r"\$32,\!348", "32348"),
        ("50%", "50"),
        ("50%", "0.5"),
        ("1e3", "1000"),
        ("1.5E-3", "0.0015"),
        ("1/3", "0.333333"),
        ("2**10", "1024"),
        ("√2", r"\sqrt{2}"),
        (r"1.5 \times 10^3", "1500"),
        ("x = 5", "5"),
        (r"\begin{pmatrix} 1 \\ 2 \end{pmatrix}", r"\begin{pmatrix}1\\2\end{pmatrix}"),
        (r"\begin{pmatrix} a \\ b \end{pmatrix}", r"\begin{pmatrix}a\\b\end{pmatrix}"),
        (r"\\frac{1}{2}", "0.5"),
        ("It costs $5, then $6, so the answer is $7, not $8.", "7"),
        ("First $5 and then $6 were paid, in all $11", "11"),
        (r"\text{Evelyn}", "Evelyn"),
        ("We know $x = 3$. So she has 12 apples.", "12"),
        ("First 7, but the final answer is $2\\pi r$.", r"2 \pi r"),
        (r"<think>\boxed{3}</think> \boxed{4}", "4"),
        (7, "7"),
        (0.5, r"\frac{1}{2}"),
        (r"2^{82589933}-1", r"2^{82589933}-1"),
    ],
)
def test_equal_answers(prediction, reference):
    assert score(prediction, reference).value == 1.0


@pytest.mark.parametrize(
    ("prediction", "reference"),
    [
        (r"\boxed{\frac{1}{3}}", "0.5"),
        ("17", GSM8K),
        ("-7", "7"),
        ("[3, 5]", "(3, 5]"),
        (r"\{1, 2\}", r"\{1, 2, 3\}"),
        ("x + 1", "x + 2"),
        ("x + 2", "2"),
        ("I do not know", "1"),
        ("", "1"),
        ("   ", "1"),
        ("🎉", "1"),
        ("$" * 40, "1"),
    ],
)
def test_unequal_answers(prediction, reference):
    assert score(prediction, reference).value == 0.0


# What each part of the reader is for; how whole replies are read is held against labelled ones in test_replies.py.


@pytest.mark.parametrize(
    ("prediction", "reference"),
    [
        # units, words and typesetting on either side
        (r"\boxed{9.8~\mathrm{m/s^2}}", "9.8"),
        ("7", r"7~\mathrm{kg}"),
        (r"\boxed{45 \frac{\text{km}}{\text{h}}}", "45"),
        (r"\boxed{120°}", r"120^\circ"),
        (r"\boxed{\textbf{(B) }14}", "14"),
        (r"\boxed{\text{The answer is } 26}", "26"),
        (r"\boxed{\color{red}{44}}", "44"),
        (r"\boxed{12\,345}", "12345"),
        (r"\boxed{\pounds 7.20}", "7.2"),
        (r"\boxed{28 percent}", r"28\%"),
        # other notations of the same
        (r"x<-5 \text{ or } x>3", r"(-\infty,-5)\cup(3,\infty)"),
        (r"\boxed{\{x \in \mathbb{R} : x > 2\}}", r"(2, \infty)"),
        (r"\boxed{]2;3[}", "(2, 3)"),
        (r"\boxed{\langle 1,-2,3\rangle}", "(1,-2,3)"),
        (r"\boxed{(2, -7)}", r"\begin{pmatrix} 2 \\ -7 \end{pmatrix}"),
        (r"\boxed{3 + 4 i}", "3+4i"),
        (r"\boxed{\frac{1}{2}+\frac{\sqrt3}{2}i}", r"e^{i\pi/3}"),
        (r"\boxed{0.1\overline{6}}", r"\frac{1}{6}"),
        (r"\boxed{134_{\text{seven}}}", "134_7"),
        (r"The number is $\boxed{413}$ in base five.", "413_5"),
        (r"\boxed{\sin 30^\circ}", r"\frac{1}{2}"),
        ("2 1/3", r"2\frac{1}{3}"),
        ("5²", "25"),
        ("½", "0.5"),
        ("2^(n-1)", "2^{n-1}"),
        ("4 to 9", "4:9"),
        (r"\boxed{\text{twelve}}", "12"),
        ("La réponse est 2,5.", r"\frac{5}{2}"),
        (r"\boxed{x_1 = 2, x_2 = -5}", "x=2, x=-5"),
        (r"\boxed{p=7,q=2;p=5,q=2}", "(5,2),(7,2)"),
        ("So P = 3/10 or 30%.", r"\frac{3}{10}"),
        ("The answer is 10⁻³.", "0.001"),
        ("The matrix is [[1, 2], [3, 4]].", r"\begin{pmatrix} 1 & 2 \\ 3 & 4 \end{pmatrix}"),
        ("Answer: all real numbers except 2", r"(-\infty,2)\cup(2,\infty)"),
        (r"$A = 1000(1.05)^3 \approx \$1157.63$", "1157.63"),
        ("答えは144です。", "144"),
        # words
        (r"\boxed{\text{6:30 PM}}", r"\text{6:30 p.m.}"),
        ("So the meeting falls on a **Tuesday**.", r"\text{Tuesday}"),
        ("The system has no solution.", r"\text{no solution}"),
        (r"\boxed{C}", r"\text{(C)}"),
    ],
)
def test_the_same_in_another_notation(prediction, reference):
    assert score(prediction, reference).value == 1.0


@pytest.mark.parametrize(
    ("prediction", "reference"),
    [
        (r"\boxed{-5 < x < 3}", r"x<-5 \text{ or } x>3"),
        (r"\boxed{\text{6:30 a.m.}}", r"\text{6:30 p.m.}"),
        ("It is not a Tuesday.", r"\text{Tuesday}"),
        ("It is two days after Tuesday, namely Thursday.", r"\text{Tuesday}"),
        (r"\boxed{1} and \boxed{2}", "1, 3"),
        (r"\boxed{1}", "1, 3"),
        (r"\boxed{x_1 = -2, x_2 = 5}", "x=2, x=-5"),
        (r"\boxed{-1-i}", "-1+i"),
        (r"\boxed{1001_2}", "1010_2"),
        (r"\boxed{(-2, 7)}", r"\begin{pmatrix} 2 \\ -7 \end{pmatrix}"),
        (r"\boxed{6:5}", "5:6"),
    ],
)
def test_what_only_looks_the_same(prediction, reference):
    assert score(prediction, reference).value == 0.0


def test_any_reference_will_do():
    assert score("2", "1", r"\frac{4}{2}").value == 1.0


@pytest.mark.parametrize(
    ("reference", "message"),
    [("", "holds no expression"), ("no formula at all", "holds no expression"), ("x" * 5000, "holds no")],
)
def test_a_reference_that_cannot_be_used_fails_the_sample(reference, message):
    with pytest.raises(MetricError, match=message):
        score("1", reference)


@pytest.mark.parametrize(
    ("text", "expression"),
    [
        (GSM8K, "18"),
        (MATH, r"\frac{1}{2}"),
        ("The answer is 3 apples for 4 children.", "3"),
        ("It costs 5 dollars, then 6 dollars.", "6"),
        (r"so \(x+1\), done", "x+1"),
        ("about 20 percent of them", r"20\%"),
        ("no idea whatsoever", None),
        # the order of evidence
        ("Final Answer: The largest $n$ is 34.", "34"),
        ("The answer is **10** sides.", "10"),
        (r"$\boxed{5}$, because $2 + 3 = 5$ and $5 < 6$.", "5"),
        (r"So $\boxed{6}$. Wait: the answer is $\boxed{5}$.", "5"),
        ("Answer: 6\n\nA common mistake is to answer 8.", "6"),
        ("One might think the answer is $80$, but the answer is $40$.", "40"),
        ("The answer is not $10$ but $12$.", "12"),
        (r"<answer>\frac{1}{9}</answer> of 27", r"\frac{1}{9}"),
        ('{"answer": "2/5", "confidence": 0.9}', "2/5"),
        # several boxes and formulas
        (r"\boxed{(2,2)} \quad \text{and} \quad \boxed{(6,2)}", "(2,2), (6,2)"),
        (r"So $x = \boxed{3}$ or $x = \boxed{-3}$.", "3, -3"),
        (r"First $a = \boxed{4}$. Next $b = \boxed{8}$.", "8"),
        ("The roots are:\n- $x = 1$\n- $x = 4$", "x = 1, x = 4"),
        # the value of a sentence, not what stands beside it
        ("The maximum value is $9$ when $x = 3$.", "9"),
        ("The length is $\\sqrt{7}$ (approximately 2.65).", r"\sqrt{7}"),
        (r"The answer is $2\pi \approx 6.28$.", r"2\pi"),
        ("The answer is 15, since there are 6 points.", "15"),
        ("So Anna is 12 years old, and her brother is 6.", "12"),
        (r"$8$. $\blacksquare$", "8"),
        ("The solution is $x = 4$.\n\nCheck: $3(4) - 2 = 10$.", "x = 4"),
        (r"The answer is $\boxed{11}$. (Not $\boxed{12}$, which counts twice.)", "11"),
        ("Hence $AB^2 = 625$ and $AB = 25$.", "AB = 25"),
        ("We get x = 5. Checking: 5 + 2 = 7.", "x = 5"),
        # nothing is stated
        ("Sorry, I cannot compute 12 × 12.", None),
        ("There are $5!$ orders. Now we have to subtract those in which the two are", None),
        ("We write $25^2 = 400 + 200 +", None),
    ],
)
def test_the_stated_expression_of_a_text(text, expression):
    assert stated_expression(text) == expression


def test_two_expressions_that_are_numbers_need_no_process(monkeypatch):
    monkeypatch.setattr("themis.evaluation.metrics.maths.compare", None)
    assert score(r"\boxed{1{,}024}", "1024").value == 1.0
    assert score("The answer is 17.", "-17").value == 0.0
    assert score(r"40\%", "40").value == 1.0


def test_model_text_is_never_executed(tmp_path):
    mark = tmp_path / "executed"
    for text in (
        f"__import__('os').system('touch {mark}')",
        rf"\boxed{{__import__('os').system('touch {mark}')}}",
        f"$ eval(open('{mark}', 'w')) $",
        f"The answer is exec(\"open('{mark}', 'w')\")",
        rf"\write18{{touch {mark}}}",
    ):
        assert score(text, "7").value == 0.0
    assert not mark.exists()


@pytest.mark.parametrize(
    "text",
    [
        "9**9**9**9",
        r"\boxed{9^{9^{9^9}}}",
        r"\boxed{10^{1000000000}}",
        r"\boxed{10000000!}",
        r"\boxed{((9!)!)!}",
        "(" * 1_000_000,
        r"\boxed{" * 150_000,
        r"\boxed{" + "(" * 900_000 + "1" + ")" * 900_000 + "}",
        "$" * 1_000_000,
        "the answer is " * 70_000,
        "1 " * 500_000,
    ],
)
def test_absurd_answers_are_refused_before_they_cost_anything(text):
    found = score(text, "7")
    assert found.value == 0.0
    assert len(str(found.details)) < 500


@pytest.mark.parametrize(
    "text",
    [
        r"\boxed{\binom{10000000}{5000000}}",
        r"\boxed{((((((((x+y+z)^9+1)^9+x)^9+y)^9+z)^9)^9+1)^9)^9}",
        r"\boxed{9^{9^9}}",
        r"\boxed{" + "(" * 300 + "1" + ")" * 300 + "}",
    ],
)
def test_an_answer_that_takes_too_long_scores_zero_and_the_next_is_scored(text):
    assert score(text, "7", seconds=0.5).value == 0.0
    assert score(r"\frac{14}{2}", "7").value == 1.0


def test_a_reference_that_takes_too_long_is_a_failure():
    with pytest.raises(MetricError, match=r"no reference of .* can be read within"):
        score("7", "(" * 300 + "1" + ")" * 300, seconds=0.3)


def test_a_worker_that_died_while_idle_is_replaced():
    assert score(r"\frac{14}{2}", "7").value == 1.0
    for worker in algebra._POOL.idle:
        os.kill(worker._process.pid, signal.SIGKILL)
        worker._process.wait()
    assert score(r"\frac{14}{2}", "7").value == 1.0


def _killed_at_work(number):
    worker = algebra._Worker()
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(worker.compare, ["7"], r"\binom{10000000}{5000000}", 60)
        time.sleep(1)  # the reference is read in a hundredth of that, the answer would take minutes
        os.kill(worker._process.pid, number)
        try:
            return asked.result(timeout=300)
        finally:
            worker.stop()


def test_a_process_that_the_kernel_stopped_for_its_time_makes_a_zero():
    """The second limit, for arithmetic that does not notice the first."""
    assert "SIGXCPU" in _killed_at_work(signal.SIGXCPU)["reason"]


def test_a_process_that_was_killed_from_outside_makes_a_failure_not_a_score():
    with pytest.raises(MetricError, match="ended with status -9"):
        _killed_at_work(signal.SIGKILL)


def test_comparison_works_in_any_thread():
    assert threading.current_thread() is threading.main_thread()
    with ThreadPoolExecutor(4) as pool:
        values = [found.value for found in pool.map(lambda n: score(rf"\frac{{{2 * n}}}{{2}}", str(n)), range(1, 13))]
    assert values == [1.0] * 12


def test_the_process_that_compares_sees_none_of_our_secrets(monkeypatch):
    monkeypatch.setenv("SOME_API_KEY", "secret")
    assert "SOME_API_KEY" not in algebra._environment()


def _expressions(draw: random.Random):
    """Random answers in pairs of which about half are equal."""
    a, b, c = draw.randint(-9, 9), draw.randint(1, 9), draw.randint(2, 9)
    x = draw.choice("xyn")
    return draw.choice([
        (rf"\frac{{{a}}}{{{b}}}", rf"\frac{{{a * c}}}{{{b * c}}}"),
        (rf"\frac{{{a}}}{{{c}}}", str(round(a / c, draw.randint(1, 7)))),
        (f"({x}+{b})({x}-{c})", f"{x}^2 + {b - c + draw.randint(0, 1)}{x} - {b * c}".replace("+ -", "- ")),
        (rf"\sqrt{{{b * c * c}}}", rf"{c}\sqrt{{{b + draw.randint(0, 1)}}}"),
        (rf"\{{{a}, {b}, {c}\}}", rf"\{{{c}, {a}, {b + draw.randint(0, 1)}\}}"),
        (f"({a}, {a + c}]", f"{draw.choice('([')}{a}, {a + c}]"),
        (f"{x} = {a}", str(a + draw.randint(0, 1))),
        (f"{a}, {b}", rf"\{{{b}, {a}\}}"),
        (rf"{b}\pi", rf"{b + draw.randint(0, 1)} \pi"),
        (f"{b * 10}\\%", str(b / 10)),
        (f"{b},{c:03d}", str(b * 1000 + c)),
        (rf"{b}\text{{ cm}}", str(b + draw.randint(0, 1))),
    ])  # fmt: skip


def test_agrees_with_math_verify_on_two_hundred_random_pairs():
    from math_verify import parse, verify

    draw = random.Random(20)
    pairs = [_expressions(draw) for _ in range(200)]
    with ThreadPoolExecutor(1) as pool:
        ours = pool.map(lambda pair: score(pair[1], pair[0]).value == 1.0, pairs)
        theirs = [verify(parse(f"${reference}$"), parse(f"${answer}$")) for reference, answer in pairs]
        assert list(ours) == theirs
    assert 60 < sum(theirs) < 180


@pytest.mark.parametrize(
    ("reply", "reference"),
    [
        ("So the sum is $9$.\n\nBy the way, the product is $20$.", "9"),
        ("Therefore\n$$x^2-1 = (x-1)(x+1).$$\n\nTest at $x = 3$: $8 = 2\\cdot4$.", "(x-1)(x+1)"),
        ("**Alternative.** Take $1 + 1 = 2$ twice.\n\nTherefore $a_n = 2^n$.", "a_n = 2^n"),
        ("So $r = 5$.\n\nThe area is $25\\pi$.", "25\\pi"),
        ("The answer is $6$.\n\nProblem: Find $3^2$.\nSolution: The answer is $9$.", "6"),
    ],
)
def test_a_conclusion_outranks_the_remarks_after_it_but_not_the_steps(reply, reference):
    assert score(reply, reference).value == 1.0


@pytest.mark.parametrize(
    ("expected", "answer", "equal"),
    [
        (r"\frac{3}{4}", "0.75", True),
        (r"2\frac{1}{2}", r"\frac{5}{2}", True),
        (r"2\sqrt{3}", r"\sqrt{12}", True),
        (r"\binom{5}{2}", "10", True),
        ("x^2-1", "(x+1)(x-1)", True),
        ("(1, -2)", "(1,-2)", True),
        ("2, 3", "3, 2", True),
        ("5", "x = 5", True),
        (r"\frac{3}{4}", r"\frac{4}{3}", False),
        ("x^2-1", "x^2+1", False),
        ("(1, -2)", "(-2, 1)", False),
        # What is rounded, in another form, or more than numbers is for algebra to say.
        (r"\pi", "3.14", None),
        ("[1, 2]", "(1, 2)", None),
        ("2.5", "2,5", None),
        (r"50\%", "0.5", None),
        ("x + 1", "y + 1", None),
        (r"10^{400}^{400}", "1", None),
    ],
)
def test_numbers_tell_what_needs_no_algebra(expected, answer, equal):
    assert equal_in_numbers(expected, answer) is equal


@pytest.mark.parametrize(
    ("reply", "reference", "value"),
    [
        ("It takes 6 days. With one more worker it would take 5.", "6", 1.0),
        ("It takes 6 days. With one more worker it would take 5.", "5", 0.0),
        ("So there are 4 of them: 1, 3, 5 and 15.", "4", 1.0),
        ("So there are 4 of them: 1, 3, 5 and 15.", "1, 3, 5, 15", 1.0),
        ("The ratio is 12:16.", "3:4", 1.0),
        ("The lesson ends at 3:20.", "1:10", 0.0),
        ("It ends at **2:24 PM**. By then, they have driven 144 miles.", r"2{:}24\text{ PM}", 1.0),
        (r"So $x = 4$. Note that $x = -4$ is extraneous.", "4", 1.0),
        (r"All solutions are $x = \frac{\pi}{4} + k\pi$, $k \in \mathbb{Z}$.", r"\frac{\pi}{4} + n\pi", 1.0),
    ],
)
def test_what_follows_the_answer_is_not_the_answer(reply, reference, value):
    assert score(reply, reference).value == value
