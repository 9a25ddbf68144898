"""Log-probabilities of the embedded model beside lm-eval's own numbers for the same file and the same pairs.

    python benchmarks/log_likelihood.py PYTHON [--rows N]

PYTHON is an interpreter of an environment with `lm-eval[hf]`, `gguf` and torch: there lm-eval's HFLM scores the pairs with the
model's file read by transformers into 32-bit floats. Here `evaluate` scores them with llama.cpp, which computes with the
quantised weights. Compared are sums, greedy flags, token counts, and which option of a row comes out first.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

import themis
from themis.generation.models import resolve_model
from themis.storage import ExperimentStorage

MODEL = "smollm2"
REFERENCE = """
import json, sys, torch
from lm_eval.api.instance import Instance
from lm_eval.models.huggingface import HFLM
from transformers import AutoModelForCausalLM, AutoTokenizer

folder, name, asked, answered = sys.argv[1:]
model = AutoModelForCausalLM.from_pretrained(folder, gguf_file=name, dtype=torch.float32)
tokenizer = AutoTokenizer.from_pretrained(folder, gguf_file=name)
lm = HFLM(pretrained=model, tokenizer=tokenizer, device="cpu", batch_size=1)
found = []
for context, text in json.load(open(asked)):
    if context:
        [(logprob, greedy)] = lm.loglikelihood([Instance("loglikelihood", {}, (context, text), 0)], disable_tqdm=True)
        tokens = len(lm._encode_pair(context, text)[1])
    else:
        [logprob] = lm.loglikelihood_rolling([Instance("loglikelihood_rolling", {}, (text,), 0)], disable_tqdm=True)
        greedy, tokens = None, len(lm.tok_encode(text, add_special_tokens=False))
    found.append([logprob, greedy, tokens])
json.dump(found, open(answered, "w"))
"""

TOPICS = ["rivers", "metals", "whales", "bridges", "clocks", "bread", "volcanoes", "glass", "maps", "violins"]
QUESTIONS = [
    (
        "Question: What do people use {topic} for?\nAnswer:",
        ["work", "nothing at all", "a long walk", "the study of stars"],
    ),
    ("The history of {topic} begins", ["in the east", "with a letter", "thousands of years ago", "tomorrow"]),
    ("Q: Are {topic} older than writing?\nA:", ["Yes", "No", "Maybe", "It depends on where one looks."]),
    ("In a book about {topic} one finds ", ["pictures.", "recipes,", "the number 1234567", "“quoted words”"]),
    ("def count_{topic}(items):\n    return", ["len(items)", "sum(items)", "None", "items[0]"]),
    ("Une phrase sur les {topic} commence", ["par un mot", "à la fin", "où l'on veut", "demain"]),
    ("{topic}: 日本語では", ["橋です", "鯨です", "時計", "パン"]),
    ("Someone who has seen many {topic} is called a", ["sailor", "collector of things", "baker", "friend"]),
]
SHOTS = "".join(f"Question: What is {n} plus {n}?\nAnswer: {2 * n}\n\n" for n in range(1, 9))


def make_rows(count: int) -> list[dict[str, object]]:
    """Questions with four options in many forms, some after eight shots, and texts to roll through."""
    chance = random.Random(7)
    rows: list[dict[str, object]] = []
    for number in range(count):
        form, options = QUESTIONS[number % len(QUESTIONS)]
        context = form.format(topic=TOPICS[(number // len(QUESTIONS)) % len(TOPICS)])
        context = (SHOTS if chance.random() < 0.25 else "") + context
        space = "" if context.endswith((" ", "は")) else " "
        rows.append({"continuations": [[context, space + option] for option in options]})
    for topic in TOPICS:
        words = " ".join(chance.choice([topic, "and", "the", "old", "water", "is", "found", "near"]) for _ in range(40))
        rows.append({"continuations": [["", f"About {topic}. {words}."]]})
    return rows


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("python")
    parser.add_argument("--rows", type=int, default=60)
    asked = parser.parse_args()
    rows = make_rows(asked.rows)
    pairs = [pair for row in rows for pair in row["continuations"]]  # type: ignore[attr-defined]
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        themis.evaluate(
            rows,
            model=f"local/{MODEL}",
            metrics=["greedy_match"],
            reference_field="",
            storage=folder,
            run_id="ours",
            progress=False,
        )
        seconds = time.perf_counter() - began
        records = [record for _, record in ExperimentStorage(folder).reader("ours").records()]
        ours = [one for record in records for one in record.output.raw["continuations"]]  # type: ignore[union-attr]
        file = resolve_model(MODEL)
        given, told = Path(folder) / "pairs.json", Path(folder) / "found.json"
        given.write_text(json.dumps(pairs))
        subprocess.run(
            [asked.python, "-c", REFERENCE, str(file.parent), file.name, str(given), str(told)],
            check=True,
            capture_output=True,
        )
        theirs = json.loads(told.read_text())
    show(rows, ours, theirs, seconds)


def show(
    rows: list[dict[str, object]], ours: list[dict[str, object]], theirs: list[list[object]], seconds: float
) -> None:
    differences = [abs(one["logprob"] - other[0]) for one, other in zip(ours, theirs, strict=True)]  # type: ignore[operator]
    tokens = [int(str(one["tokens"])) for one in ours]
    greedy = [(one["greedy"], other[1]) for one, other in zip(ours, theirs, strict=True) if other[1] is not None]
    other_counts = sum(one["tokens"] != other[2] for one, other in zip(ours, theirs, strict=True))
    firsts, place = [], 0
    for row in rows:
        count = len(row["continuations"])  # type: ignore[arg-type]
        mine = [float(str(one["logprob"])) for one in ours[place : place + count]]
        other = [float(str(one[0])) for one in theirs[place : place + count]]
        place += count
        if count > 1:
            first = max(range(count), key=mine.__getitem__)
            firsts.append((first == max(range(count), key=other.__getitem__), max(other) - other[first]))
    print(f"pairs {len(ours)}, tokens {sum(tokens)}, {sum(tokens) / seconds:.0f} tokens/s here")
    print(f"sums: largest difference {max(differences):.3f}, median {statistics.median(differences):.3f} nats")
    each = [difference / count for difference, count in zip(differences, tokens, strict=True)]
    print(f"a token: largest {max(each):.3f}, mean {statistics.fmean(each):.4f} nats")
    signed = [float(str(one["logprob"])) - float(str(other[0])) for one, other in zip(ours, theirs, strict=True)]
    print(f"mean signed difference a token {sum(signed) / sum(tokens):+.4f} nats")
    print(
        f"token counts that differ: {other_counts}; greedy flags that differ: {sum(a != b for a, b in greedy)} of {len(greedy)}"
    )
    moved = [gap for same, gap in firsts if not same]
    print(
        f"rows whose first option differs: {len(moved)} of {len(firsts)}, by at most {max(moved, default=0.0):.3f} nats there"
    )


if __name__ == "__main__":
    main()
