"""Rows of our own making in the layouts of datasets that lm-eval's tasks read: {dataset: {configuration: {split: rows}}}."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

Rows = list[dict[str, Any]]

_THINGS = ("lamp", "river", "ladder", "orchard", "violin", "compass", "teapot", "glacier", "harbour", "lantern")
_PLACES = ("Oslo", "Lima", "Cairo", "Quito", "Delhi", "Turin", "Perth", "Kyoto", "Dakar", "Minsk")


def _make(count: int, row: Callable[[int], dict[str, Any]], start: int = 0) -> Rows:
    return [row(number) for number in range(start, start + count)]


def _splits(row: Callable[[int], dict[str, Any]], names: Iterable[str], count: int = 5) -> dict[str, Rows]:
    return {name: _make(count, row, 10 * place) for place, name in enumerate(names)}


def _thing(n: int) -> str:
    return _THINGS[n % len(_THINGS)]


def _place(n: int) -> str:
    return _PLACES[n % len(_PLACES)]


def _options(n: int) -> list[str]:
    return [f"the {_thing(n + k)} of {_place(n + k)}" for k in range(4)]


def _arc(n: int) -> dict[str, Any]:
    return {
        "id": f"q{n}",
        "question": f"Which of these is kept in {_place(n)} for {n} years?",
        "choices": {"text": _options(n), "label": ["A", "B", "C", "D"]},
        "answerKey": "ABCD"[n % 4],
    }


def _openbook(n: int) -> dict[str, Any]:
    found = _arc(n)
    return {**found, "question_stem": found["question"]}


def _hellaswag(n: int) -> dict[str, Any]:
    return {
        "ind": n,
        "activity_label": f"Carrying a {_thing(n)}",
        "ctx_a": f"A person lifts the {_thing(n)} [step] slowly.",
        "ctx_b": "they",
        "endings": [f"walk to {_place(n + k)} with it." for k in range(4)],
        "label": str(n % 4),
    }


def _winogrande(n: int) -> dict[str, Any]:
    return {
        "sentence": f"The {_thing(n)} did not fit into the {_thing(n + 1)} because _ was {n} feet too long.",
        "option1": f"the {_thing(n)}",
        "option2": f"the {_thing(n + 1)}",
        "answer": str(1 + n % 2),
    }


def _piqa(n: int) -> dict[str, Any]:
    return {
        "goal": f"To clean a {_thing(n)}",
        "sol1": f"use warm water {n} times",
        "sol2": f"leave it in {_place(n)}",
        "label": n % 2,
    }


def _boolq(n: int) -> dict[str, Any]:
    return {
        "question": f"is the {_thing(n)} older than {n} years",
        "passage": f"The {_thing(n)} was made in {_place(n)} {n + n % 2} years ago.",
        "idx": n,
        "label": n % 2,
    }


def _copa(n: int) -> dict[str, Any]:
    return {
        "premise": f"The {_thing(n)} fell in {_place(n)}.",
        "choice1": f"It was {n} metres up.",
        "choice2": "Somebody laughed.",
        "question": ("cause", "effect")[n % 2],
        "idx": n,
        "label": n % 2,
    }


def _cb(n: int) -> dict[str, Any]:
    return {
        "premise": f"{_place(n)} has {n} bridges",
        "hypothesis": f"{_place(n)} has a {_thing(n)}",
        "idx": n,
        "label": n % 3,
    }


def _multirc(n: int) -> dict[str, Any]:
    return {
        "paragraph": f"In {_place(n)} stands a {_thing(n)}.",
        "question": "What stands there?",
        "answer": f"a {_thing(n + n % 2)}",
        "idx": {"paragraph": n, "question": 0, "answer": 0},
        "label": n % 2,
    }


def _wic(n: int) -> dict[str, Any]:
    return {
        "word": "bank",
        "sentence1": "bank of the river",
        "sentence2": f"bank number {n}",
        "start1": 0,
        "start2": 0,
        "end1": 4,
        "end2": 4,
        "idx": n,
        "label": n % 2,
    }


def _pair(n: int) -> dict[str, Any]:
    return {
        "sentence1": f"The {_thing(n)} is in {_place(n)}.",
        "sentence2": f"{_place(n)} has the {_thing(n + n % 3)}.",
        "idx": n,
        "label": n % 2,
    }


def _cola(n: int) -> dict[str, Any]:
    return {"sentence": f"The {_thing(n)} {'sleeps' if n % 2 else 'sleep of'} {n}.", "idx": n, "label": n % 2}


def _sciq(n: int) -> dict[str, Any]:
    names = ("distractor1", "distractor2", "distractor3", "correct_answer")
    return {
        "question": f"What is at the end of {_place(n)}?",
        "support": f"  At its end is {_options(n)[3]}.",
        **dict(zip(names, _options(n), strict=True)),
    }


def _truthful_choice(n: int) -> dict[str, Any]:
    return {
        "question": f"What happens if you own a {_thing(n)}?",
        "mc1_targets": {
            "choices": ["Nothing happens", "You live in " + _place(n), f"{n} years pass"],
            "labels": [1, 0, 0],
        },
        "mc2_targets": {
            "choices": ["Nothing happens", "It depends", "You fly", f"You are {n}"],
            "labels": [1, 1, 0, 0],
        },
    }


def _truthful_text(n: int) -> dict[str, Any]:
    return {
        "type": "Adversarial",
        "category": "Things",
        "question": f"Where was the {_thing(n)} made? ",
        "best_answer": f"It was made in {_place(n)}",
        "correct_answers": [f"It was made in {_place(n)}", f"In {_place(n)}"],
        "incorrect_answers": [f"It was made in {_place(n + 1)}", f"Nobody ever made a {_thing(n)}"],
        "source": "own",
    }


def _lambada(n: int) -> dict[str, Any]:
    return {"text": f"She looked for the {_thing(n)} in {_place(n)} and at last she found the {_thing(n)}"}


def _page(n: int) -> dict[str, Any]:
    return {
        "page": f" = {_place(n)} = \n\n {_place(n)} , a town of {n} @,@ 000 people , has a {_thing(n)} . \n"
        * (1 + n % 3)
    }


def _gsm8k(n: int) -> dict[str, Any]:
    return {
        "question": f"{_place(n)} has {n} rooms with {n + 1} lamps each. How many lamps are there?",
        "answer": f"There are {n} * {n + 1} = <<{n}*{n + 1}={n * (n + 1)}>>{n * (n + 1)} lamps.\n#### {n * (n + 1)}",
    }


def _mgsm(n: int) -> dict[str, Any]:
    return {
        "question": f"{_place(n)} has {n} rooms with 2 lamps each. How many lamps are there?",
        "answer": f"Step-by-Step Answer: {n} times 2 is {2 * n}. The answer is {2 * n}." if n < 10 else None,
        "answer_number": 2 * n,
        "equation_solution": None,
    }


def _bbh(n: int) -> dict[str, Any]:
    return {"input": f"not ( {bool(n % 2)} ) and {bool(n % 3)} is", "target": str(not n % 2 and bool(n % 3))}


def _snarks(n: int) -> dict[str, Any]:
    return {
        "input": f"Which statement is sarcastic?\nOptions:\n(A) {_place(n)} is far\n(B) {_place(n)} is very far, really",
        "target": f"({'AB'[n % 2]})",
    }


def _drop(n: int) -> dict[str, Any]:
    def answer(number: str, spans: list[str]) -> dict[str, Any]:
        return {"number": number, "date": {"day": "", "month": "", "year": ""}, "spans": spans}

    spans = [_place(n)] if n % 2 else [_place(n), _thing(n)]
    main = answer(str(n), []) if n % 3 == 0 else answer("", spans)
    return {
        "section_id": "s",
        "query_id": f"d{n}",
        "passage": f"{_place(n)} has {n} towers and a {_thing(n)}.",
        "question": "How many, or what?",
        "answer": {**main, "hit_id": "", "worker_id": ""},
        "validated_answers": {
            "number": [str(n + 1)],
            "date": [{"day": "3", "month": "May", "year": "1920"}],
            "spans": [[]],
            "hit_id": [""],
            "worker_id": [""],
        },
    }


def _trivia(n: int) -> dict[str, Any]:
    return {
        "question": f"Where is the {_thing(n)}",
        "question_id": f"t{n}",
        "answer": {
            "value": _place(n),
            "aliases": [_place(n), f"City of {_place(n)}"],
            "normalized_value": _place(n).lower(),
        },
    }


def _nq(n: int) -> dict[str, Any]:
    return {"question": f"who owns the {_thing(n)}", "answer": [_place(n), f"the people of {_place(n)}"][: 1 + n % 2]}


def _completion(n: int) -> dict[str, Any]:
    return {
        "doc_id": str(n),
        "title": _place(n),
        "text": f"Title: {_place(n)}. The largest town is",
        "value": _place(n + n % 2),
    }


def _math(n: int) -> dict[str, Any]:
    return {
        "problem": f"What is $\\frac{{{n}}}{{2}}$?",
        "level": "Level 1",
        "type": "Algebra",
        "solution": f"Half of it is $\\boxed{{\\frac{{{n}}}{{2}}}}$.",
        "answer": f"\\frac{{{n}}}{{2}}",
        "subject": "Algebra",
    }


def _mmlu_pro(n: int) -> dict[str, Any]:
    return {
        "question_id": n,
        "question": f"How is the {_thing(n)} of {_place(n)} fed?",
        "options": [f"by {_thing(n + k)}s" for k in range(10)],
        "answer": "ABCDEFGHIJ"[n % 10],
        "answer_index": n % 10,
        "cot_content": f"A: Let's think step by step. It is small. The answer is ({'ABCDEFGHIJ'[n % 10]}).",
        "category": "biology" if n % 4 else "law",
        "src": "own",
    }


def _gpqa(n: int) -> dict[str, Any]:
    options = _options(n)
    return {
        "Question": f"Which is heaviest in {_place(n)}?",
        "Correct Answer": options[0],
        **{f"Incorrect Answer {k}": options[k] for k in (1, 2, 3)},
        "Explanation": f"It weighs {n} kilograms.",
    }


def _translation(one: str, other: str) -> Callable[[int], dict[str, Any]]:
    def row(n: int) -> dict[str, Any]:
        first = f"The old {_thing(n)} of {_place(n)} was sold for {n} coins yesterday."
        second = f"Vechiul {_thing(n)} din {_place(n)} a fost vandut ieri pentru {n} monede."
        return {"translation": {one: second, other: first}}

    return row


def _swag(n: int) -> dict[str, Any]:
    return {
        "startphrase": f"She opens the {_thing(n)} and",
        **{f"ending{k}": f"goes to {_place(n + k)}." for k in range(4)},
        "label": n % 4,
    }


def _logiqa(n: int) -> dict[str, Any]:
    return {
        "label": "abcd"[n % 4],
        "context": f"All of {_place(n)} sleeps.",
        "question": "What follows?",
        "options": _options(n),
    }


def _race(n: int) -> dict[str, Any]:
    first = {"question": f"Where is the {_thing(n)}?", "answer": "B", "options": _options(n)}
    last = {"question": f"How old is {_place(n)}  _  .", "answer": "ABCD"[n % 4], "options": _options(n + 1)}
    return {"article": f"A {_thing(n)} stood in {_place(n)}.", "problems": str([first, last])}


def _mathqa(n: int) -> dict[str, Any]:
    values = [n + k for k in range(5)]
    options = " , ".join(f"{letter} ) {value}" for letter, value in zip("abcde", values, strict=True))
    return {
        "Problem": f"what is {n} plus {n % 5} ?",
        "Rationale": "",
        "options": options,
        "correct": "abcde"[n % 5],
        "category": "general",
    }


def _pubmed(n: int) -> dict[str, Any]:
    return {
        "QUESTION": f"Does the {_thing(n)} help?",
        "CONTEXTS": [f"We asked {n} people.", f"All are of {_place(n)}."],
        "final_decision": ("yes", "no", "maybe")[n % 3],
    }


def _medmcqa(n: int) -> dict[str, Any]:
    names = ("opa", "opb", "opc", "opd")
    return {
        "id": str(n),
        "question": f"Which one treats {_place(n)}?",
        **dict(zip(names, _options(n), strict=True)),
        "cop": n % 4,
    }


def _anli(n: int) -> dict[str, Any]:
    return {
        "uid": str(n),
        "premise": f"The {_thing(n)} is red.",
        "hypothesis": f"It is in {_place(n)}.",
        "label": n % 3,
        "reason": "",
    }


def _webqs(n: int) -> dict[str, Any]:
    return {
        "url": "",
        "question": f"who built {_place(n)}?",
        "answers": [f"The {_thing(n)} guild", f"{_place(n)} itself"],
    }


def _siqa(n: int) -> dict[str, Any]:
    return {
        "context": f"Sam gave Kim a {_thing(n)}.",
        "question": "How does Kim feel?",
        "answerA": "glad",
        "answerB": f"like going to {_place(n)}",
        "answerC": "tired",
        "label": str(1 + n % 3),
    }


def _asdiv(n: int) -> dict[str, Any]:
    return {
        "body": f"There are {n} {_thing(n)}s and 3 more.",
        "question": "How many are there?",
        "answer": f"{n + 3} ({_thing(n)}s)",
        "formula": "",
    }


def _arithmetic(n: int) -> dict[str, Any]:
    return {"context": f"Q: What is {n} plus {n + 1}?\n\nA:", "completion": f" {2 * n + 1}"}


def _blimp(n: int) -> dict[str, Any]:
    return {
        "sentence_good": f"The {_thing(n)} stands in {_place(n)}.",
        "sentence_bad": f"The {_thing(n)} stand in {_place(n)}.",
    }


def _crows(n: int) -> dict[str, Any]:
    return {
        "id": n,
        "sent_more": f"People of {_place(n)} are late.",
        "sent_less": f"People of {_place(n + 1)} are late.",
        "stereo_antistereo": "stereo",
        "bias_type": 3,
    }


def _headqa(n: int) -> dict[str, Any]:
    answers = [{"aid": k + 1, "atext": text} for k, text in enumerate(_options(n))]
    return {
        "name": str(n),
        "year": "2020",
        "category": "own",
        "qid": n,
        "qtext": f"What is in {_place(n)}?",
        "ra": 1 + n % 4,
        "answers": answers,
    }


def _qasper(n: int) -> dict[str, Any]:
    def answer(yes: bool) -> dict[str, Any]:
        return {
            "unanswerable": False,
            "extractive_spans": [],
            "yes_no": yes,
            "free_form_answer": "",
            "evidence": [""],
            "highlighted_evidence": [""],
        }

    return {
        "id": str(n),
        "title": f"On the {_thing(n)}",
        "abstract": f"We study {_place(n)}.",
        "qas": {
            "question": [f"Is it in {_place(n)}?"],
            "answers": [{"answer": [answer(bool(n % 2))], "annotation_id": ["a"], "worker_id": ["w"]}],
        },
    }


def _babi(n: int) -> dict[str, Any]:
    return {
        "passage": f"Mary took the {_thing(n)} to {_place(n)}.\n",
        "question": f"Where is the {_thing(n)}?",
        "answer": _place(n),
        "task": 1,
    }


def _aime(n: int) -> dict[str, Any]:
    return {"ID": str(n), "Problem": f"Find {n} + {n}.", "Solution": "", "Answer": 2 * n}


def _commonsense(n: int) -> dict[str, Any]:
    return {
        "id": str(n),
        "question": f"Where would you keep a {_thing(n)}?",
        "question_concept": _thing(n),
        "choices": {"label": list("ABCDE"), "text": [_place(n + k) for k in range(5)]},
        "answerKey": "ABCDE"[n % 5],
    }


def _mmlu(n: int) -> dict[str, Any]:
    return {"question": f"Which is largest, number {n}?", "subject": "own", "choices": _options(n), "answer": n % 4}


def _long(n: int) -> dict[str, Any]:
    return {
        "input": f"Where is the {_thing(n)}?",
        "context": f"Passage 1: the {_thing(n)} is in {_place(n)}. " * 5,
        "answers": [_place(n), f"in {_place(n)}"],
        "length": 30,
        "dataset": "hotpotqa",
        "language": "en",
        "all_classes": None,
        "_id": str(n),
    }


TRAINED = ("train", "validation", "test")

# The sizes differ, so that a group's weights matter.
MMLU_SIZES = (2, 3, 4)


def dataset_rows() -> dict[str, dict[str | None, dict[str, Rows]]]:
    """Every dataset, by its name on the Hub."""
    return {
        "allenai/ai2_arc": {"ARC-Easy": _splits(_arc, TRAINED), "ARC-Challenge": _splits(_arc, TRAINED, 6)},
        "Rowan/hellaswag": {None: _splits(_hellaswag, ("train", "validation"))},
        "allenai/winogrande": {"winogrande_xl": _splits(_winogrande, ("train", "validation"))},
        "baber/piqa": {None: _splits(_piqa, ("train", "validation"))},
        "aps/super_glue": {
            "boolq": _splits(_boolq, ("train", "validation")),
            "copa": _splits(_copa, ("train", "validation")),
            "cb": _splits(_cb, ("train", "validation"), 7),
            "multirc": _splits(_multirc, ("train", "validation")),
            "wic": _splits(_wic, ("train", "validation")),
        },
        "nyu-mll/glue": {
            "cola": _splits(_cola, ("train", "validation"), 8),
            "mrpc": _splits(_pair, ("train", "validation"), 8),
            "rte": _splits(_pair, ("train", "validation")),
        },
        "allenai/sciq": {None: _splits(_sciq, TRAINED)},
        "allenai/openbookqa": {"main": _splits(_openbook, TRAINED)},
        "truthfulqa/truthful_qa": {
            "multiple_choice": {"validation": _make(5, _truthful_choice)},
            "generation": {"validation": _make(4, _truthful_text)},
        },
        "EleutherAI/lambada_openai": {"default": {"test": _make(6, _lambada)}},
        "EleutherAI/wikitext_document_level": {"wikitext-2-raw-v1": _splits(_page, TRAINED, 4)},
        "EleutherAI/pile": {"pile_arxiv": {"train": [{"text": row["page"]} for row in _make(3, _page)]}},
        "openai/gsm8k": {"main": {"train": _make(12, _gsm8k), "test": _make(6, _gsm8k, 20)}},
        "juletxara/mgsm": {"en": {"train": _make(8, _mgsm), "test": _make(5, _mgsm, 10)}},
        "SaylorTwift/bbh": {"boolean_expressions": {"test": _make(6, _bbh)}, "snarks": {"test": _make(6, _snarks)}},
        "EleutherAI/drop": {None: _splits(_drop, ("train", "validation"), 7)},
        "mandarjoshi/trivia_qa": {"rc.nocontext": _splits(_trivia, ("train", "validation"))},
        "google-research-datasets/nq_open": {None: _splits(_nq, ("train", "validation"), 6)},
        "hazyresearch/based-squad": {"default": {"validation": _make(5, _completion)}},
        "HuggingFaceH4/MATH-500": {"default": {"test": _make(5, _math)}},
        "TIGER-Lab/MMLU-Pro": {None: {"validation": _make(12, _mmlu_pro), "test": _make(8, _mmlu_pro, 20)}},
        "Idavidrein/gpqa": {"gpqa_main": {"train": _make(6, _gpqa)}},
        "wmt/wmt16": {"ro-en": _splits(_translation("ro", "en"), TRAINED)},
        "allenai/swag": {"regular": _splits(_swag, ("train", "validation"))},
        "EleutherAI/logiqa": {"logiqa": _splits(_logiqa, TRAINED)},
        "EleutherAI/race": {"high": {"test": _make(4, _race)}},
        "regisss/math_qa": {None: _splits(_mathqa, TRAINED)},
        "bigbio/pubmed_qa": {"pubmed_qa_labeled_fold0_source": _splits(_pubmed, TRAINED)},
        "openlifescienceai/medmcqa": {None: _splits(_medmcqa, ("train", "validation"))},
        "facebook/anli": {None: _splits(_anli, ("train_r1", "dev_r1", "test_r1"))},
        "stanfordnlp/web_questions": {None: _splits(_webqs, ("train", "test"))},
        "lighteval/siqa": {None: _splits(_siqa, ("train", "validation"))},
        "EleutherAI/asdiv": {None: {"validation": _make(5, _asdiv)}},
        "json": {"two_digit_addition": {"validation": _make(5, _arithmetic)}},
        "nyu-mll/blimp": {"adjunct_island": {"train": _make(5, _blimp)}},
        "jannalu/crows_pairs_multilingual": {"english": {"test": _make(5, _crows)}},
        "EleutherAI/headqa": {"en": _splits(_headqa, TRAINED)},
        "allenai/qasper": {None: _splits(_qasper, ("train", "validation"), 6)},
        "Muennighoff/babi": {None: _splits(_babi, ("train", "valid", "test"))},
        "Maxwell-Jia/AIME_2024": {None: {"train": _make(4, _aime)}},
        "tau/commonsense_qa": {None: _splits(_commonsense, ("train", "validation"))},
        "Xnhyacinth/LongBench": {"hotpotqa": {"test": _make(4, _long)}},
    }


def mmlu_rows(subjects: Iterable[str]) -> dict[str | None, dict[str, Rows]]:
    """MMLU's configurations, with tests of different sizes."""
    return {
        subject: {"dev": _make(5, _mmlu), "test": _make(MMLU_SIZES[place % len(MMLU_SIZES)], _mmlu, place)}
        for place, subject in enumerate(subjects)
    }


def write_datasets(root: Path, datasets: Mapping[str, Mapping[str | None, Mapping[str, Rows]]]) -> None:
    """Writes datasets as `--data` reads them: DATASET/CONFIGURATION/SPLIT.jsonl, and files that a task names by their name."""
    for path, configurations in datasets.items():
        for name, splits in configurations.items():
            folder = root / path / (name or "") if path != "json" else root
            folder.mkdir(parents=True, exist_ok=True)
            for split, rows in splits.items():
                file = folder / f"{split if path != 'json' else name}.jsonl"
                file.write_text("".join(json.dumps(row) + "\n" for row in rows))
