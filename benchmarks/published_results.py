"""How far our scorers agree with published results of the GoodAI LTM Benchmark, and by which rule they differ.

    python benchmarks/published_results.py FOLDER [--differences N]

FOLDER is a benchmark's folder, or one of many benchmarks, as `themis memory import` takes it. It is imported into a store
that is thrown away. Printed are, kind by kind, how many results our scorers settle and how many of those as published, and
every difference under the rule that explains it. Differences that a known error of the original explains are set aside.
Ends with status 1 if less than 98 % of the rest agree on what the original scored without a model, or if a test could not be
judged because of an error.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from themis.core.bounded_reading import ReadLimits
from themis.experiment.importing import NO_LIMITS
from themis.memory.importing import PUBLISHED, RESCORED, import_folder
from themis.memory.results import StoredResult, load_results
from themis.storage import ExperimentStorage

LEAST_AGREEMENT = 0.98
# Those that the original scores without a model.
DETERMINISTIC = (
    "ChapterBreak", "Colours", "NameList", "Names", "Prospective Memory", "SallyAnne", "Shopping", "Spy Meeting",
    "Key-Value Pairs",
)  # fmt: skip


@dataclass(frozen=True)
class Pair:
    """One result under both verdicts."""

    run_id: str
    published: StoredResult
    ours: StoredResult

    @property
    def kind(self) -> str:
        return self.ours.dataset_name

    @property
    def reply(self) -> str:
        answers = self.ours.actual_responses
        return answers[-1 if self.kind in ("Colours", "ChapterBreak") else 0] if answers else ""

    @property
    def deterministic(self) -> bool:
        """Whether the original scored it without a model; of older generations the reasons tell."""
        return self.kind in DETERMINISTIC and "checklist" not in " ".join(self.published.reasoning).lower()

    @property
    def settled(self) -> bool:
        return self.ours.score is not None and self.published.score is not None

    @property
    def equal(self) -> bool:
        return self.settled and _same(self.ours.score, self.published.score)


def main() -> int:
    parser = argparse.ArgumentParser(description="Agreement with published results.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--differences", type=int, default=0, metavar="N", help="show the first N of each rule")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as store:
        pairs = list(read_pairs(asked.folder, ExperimentStorage(store), NO_LIMITS))
    return report(pairs, asked.differences)


def read_pairs(folder: Path, storage: ExperimentStorage, limits: ReadLimits) -> Iterator[Pair]:
    for done in import_folder(folder, storage, limits=limits):
        for part in done.broken:
            print(f"{done.run_id}: {part.where}: {part.reason}", file=sys.stderr)
        if not done.tests:
            continue
        ours = {one.test_id: one for one in load_results(storage, done.run_id, RESCORED).results}
        for one in load_results(storage, done.run_id, PUBLISHED).results:
            if one.ended:
                yield Pair(done.run_id, one, ours[one.test_id])


def report(pairs: Sequence[Pair], shown: int) -> int:
    differing: dict[tuple[str, str], list[Pair]] = defaultdict(list)
    for pair in pairs:
        if pair.settled and not pair.equal:
            differing[pair.kind, explain(pair)].append(pair)
    every = sorted({pair.kind for pair in pairs}, key=lambda kind: (kind not in DETERMINISTIC, kind))
    print("| kind | results | settled | as published | set aside | agreement |\n|---|---|---|---|---|---|")
    for kind in every:
        print(_format_row(kind, [pair for pair in pairs if pair.kind == kind]))
    certain = [pair for pair in pairs if pair.deterministic]
    print(_format_row("**scored without a model**", certain))
    print("\n| kind | why ours differs | results | set aside |\n|---|---|---|---|")
    for (kind, rule), found in sorted(differing.items()):
        print(f"| {kind} | {rule} | {len(found)} | {'no' if rule == UNEXPLAINED else 'yes'} |")
        for pair in found[:shown]:
            print(
                f"    {pair.run_id}: {pair.ours.test_id}: published {pair.published.score:g}, ours {pair.ours.score:g}"
            )
            print(f"      {pair.reply[:300]!r}\n      {pair.ours.reasoning}")
    print("\n| left undecided | results |\n|---|---|")
    undecided = Counter(_shorten_reason(pair.ours) for pair in pairs if pair.ours.score is None)
    for reason, count in undecided.most_common():
        print(f"| {reason} | {count} |")
    raised = sum(count for reason, count in undecided.items() if "raised" in reason)
    return 1 if raised or _agreement(certain) < LEAST_AGREEMENT else 0


def _format_row(name: str, pairs: Sequence[Pair]) -> str:
    settled = [pair for pair in pairs if pair.settled]
    aside = sum(not pair.equal and explain(pair) != UNEXPLAINED for pair in settled)
    equal = sum(pair.equal for pair in settled)
    agreement = f"{100 * _agreement(pairs):.1f} %" if settled else "–"
    return f"| {name} | {len(pairs)} | {len(settled)} | {equal} | {aside} | {agreement} |"


def _agreement(pairs: Iterable[Pair]) -> float:
    counted = [pair for pair in pairs if pair.settled and (pair.equal or explain(pair) == UNEXPLAINED)]
    return sum(pair.equal for pair in counted) / len(counted) if counted else 1.0


def _shorten_reason(result: StoredResult) -> str:
    return f"{result.dataset_name}: {re.sub(r'[0-9]+', 'n', ' '.join(result.reasoning))[:90]}"


def _same(first: float | None, second: float | None) -> bool:
    return first is not None and second is not None and abs(first - second) < 1e-9


# --- rules: what explains a difference, the first that applies ---------------------------------------------------------

UNEXPLAINED = "none of the rules: ours may be wrong"


def explain(pair: Pair) -> str:
    """Why ours differs from the published score."""
    return next((rule for rule, applies in RULES if applies(pair)), UNEXPLAINED)


def _differs_from_original(pair: Pair) -> bool:
    by_rule = original_score(pair)
    return by_rule is not None and not _same(by_rule, pair.published.score)


def _names_several(pair: Pair) -> bool:
    """The expected colour stands among others in the reply, and the original looks for its letters anywhere."""
    expected = str(pair.ours.expected_responses[0]).lower()
    told = re.findall(r"[A-Z]?[a-z]+", " ".join(message.text for message in pair.ours.messages if not message.question))
    others = (
        {word.lower() for word in (*told, *_COLOURS)}
        & set(re.findall(r"[a-z]+", pair.reply.lower()))
        & {*_COLOURS, *(word.lower() for word in told if word[0].isupper())}
    )
    return pair.kind in ("Colours", "Names") and expected in pair.reply.lower() and bool(others - {expected})


def _inside_a_word(pair: Pair) -> bool:
    expected = re.escape(str(pair.ours.expected_responses[0]).lower())
    found = expected in pair.reply.lower() and not re.search(rf"\b{expected}\b", pair.reply.lower())
    return pair.kind in ("Colours", "Names") and found


def _empty_list(pair: Pair) -> bool:
    return pair.kind == "Shopping" and original_json(pair.reply) == []


def _other_json(pair: Pair) -> bool:
    """JSON as models write it, which the original cannot read or takes apart: single quotes, an object around the list."""
    if pair.kind not in ("Shopping", "NameList", "SallyAnne"):
        return False
    wanted = dict if pair.kind == "SallyAnne" else list
    return not isinstance(original_json(pair.reply), wanted)


def _mostly_something_else(pair: Pair) -> bool:
    """A list of which half and more is not on it: ours counts only the share that is."""
    answer = original_json(pair.reply)
    expected = pair.ours.expected_responses
    return pair.kind == "Shopping" and isinstance(answer, list) and len(answer) >= 2 * max(1, len(expected))


def _item_twice(pair: Pair) -> bool:
    answer = original_json(pair.reply)
    if pair.kind not in ("Shopping", "NameList") or not isinstance(answer, list):
        return False
    names = [str(entry.get("item") if isinstance(entry, dict) else entry).lower() for entry in answer]
    return len(set(names)) < len(names)


def _spy_penalty(pair: Pair) -> bool:
    """One point was taken off what the original found, for a word of another message."""
    hits = _count_hits(pair)
    return hits > 0 and _same(pair.published.score, (hits - 1) / len(pair.ours.expected_responses))


def _spy_letters(pair: Pair) -> bool:
    """A keyword with a capital, in the plural or in a compound, which the original does not find."""
    return pair.kind == "Spy Meeting" and (pair.ours.score or 0) * len(pair.ours.expected_responses) > _count_hits(pair)


def _count_hits(pair: Pair) -> int:
    """Parts of which the original finds a keyword, as it is written."""
    if pair.kind != "Spy Meeting":
        return 0
    found = [
        [re.search(rf"\b{re.escape(word)}\b", pair.reply) for word in part] for part in pair.ours.expected_responses
    ]
    return sum(any(part) for part in found)


def _spy_by_hand(pair: Pair) -> bool:
    parts = max(1, len(pair.ours.expected_responses or ()))
    hits = _count_hits(pair)
    possible = (hits / parts, max(0, hits - 1) / parts)
    return pair.kind == "Spy Meeting" and not any(_same(pair.published.score, score) for score in possible)


def _letter_case(pair: Pair) -> bool:
    answer = original_json(pair.reply)
    return (
        pair.kind == "SallyAnne"
        and isinstance(answer, dict)
        and str(answer.get("answer")).strip() != str(answer.get("answer")).strip().lower()
    )


RULES: tuple[tuple[str, Callable[[Pair], bool]], ...] = (
    ("a person changed the published score, and said so", lambda pair: bool(pair.published.published.get("by_hand"))),
    ("published score does not follow from the original's own rule: older code, or changed by hand", _differs_from_original),
    ("published score does not follow from the keywords: older code, or changed by hand", _spy_by_hand),
    ("the original counts letters inside another word", _inside_a_word),
    ("the original counts one of several colours or names", _names_several),
    ("the original gives an empty list a third", _empty_list),
    ("the original counts an item twice", _item_twice),
    ("ours counts a list that is mostly something else for what is right in it", _mostly_something_else),
    ("the original cannot read this JSON", _other_json),
    ("the original minds capitals", _letter_case),
    ("the original takes a point off for a word of another message", _spy_penalty),
    ("the original finds keywords only as they are written", _spy_letters),
)  # fmt: skip

_COLOURS = frozenset(
    (
        "amber", "beige", "black", "blue", "brown", "cream", "crimson", "cyan", "gold", "gray", "green", "grey", "indigo",
        "lavender", "lilac", "magenta", "maroon", "navy", "olive", "orange", "pink", "purple", "red", "scarlet", "silver",
        "tan", "teal", "turquoise", "violet", "white", "yellow",
    )
)  # fmt: skip


# --- what the original gives, as its documents and code say; None where it asks a model --------------------------------


def original_score(pair: Pair) -> float | None:
    score = _ORIGINAL.get(pair.kind)
    expected = pair.ours.expected_responses
    return None if score is None or not expected or not pair.reply else score(pair.reply, expected)


def original_json(reply: str) -> object:
    """JSON as it stands, in the last fence, or from the first bracket on; None where there is none."""
    fences = re.findall(r"```(?:json|javascript)?\s*(.*?)```", reply, re.DOTALL)
    start = re.search(r"[\[{]", reply)
    for text in (reply, *fences[-1:], reply[start.start() :] if start else ""):
        try:
            return json.JSONDecoder().raw_decode(text.strip())[0]
        except ValueError:
            continue
    return None


def _contains(reply: str, expected: Sequence[str]) -> float:
    return float(str(expected[0]).lower() in reply.lower())


def _option(reply: str, expected: Sequence[str]) -> float:
    return float({int(number) for number in re.findall(r"\d{1,9}", reply)} == {int(expected[0])})


def _place(reply: str, expected: Sequence[str]) -> float | None:
    answer = original_json(reply)
    if not isinstance(answer, dict):
        return 0.0
    said = answer.get("answer")
    return float(said.lower() == str(expected[0]).lower()) if isinstance(said, str) else None


def _members(reply: str, expected: Sequence[str]) -> float | None:
    answer = original_json(reply)
    if not isinstance(answer, list):
        return 0.0 if answer is None else None
    open_names = [str(name).lower() for name in expected]
    hits = 0
    for name in answer:
        if str(name).lower() in open_names:
            open_names.remove(str(name).lower())
            hits += 1
    return hits / max(len(expected), len(answer), 1)


def _quantities(reply: str, expected: Sequence[tuple[str, int]]) -> float | None:
    answer = original_json(reply)
    if not isinstance(answer, list) or not expected:
        return 0.0 if expected else None
    wanted = {str(item).lower(): count for item, count in expected}
    found = counted = 0
    surplus = False
    for entry in answer:
        if not isinstance(entry, dict) or "item" not in entry or not isinstance(entry.get("quantity"), int):
            return 0.0
        item = next((name for name in wanted if name in str(entry["item"]).lower()), None)
        found += item is not None
        counted += item is not None and wanted[item] == entry["quantity"]
        surplus = surplus or item is None
    return (found / len(wanted) + counted / len(wanted) + (not surplus)) / 3


_ORIGINAL: dict[str, Callable[[str, Any], float | None]] = {
    "Colours": _contains,
    "Names": _contains,
    "Key-Value Pairs": _contains,
    "ChapterBreak": _option,
    "SallyAnne": _place,
    "NameList": _members,
    "Shopping": _quantities,
}


if __name__ == "__main__":
    sys.exit(main())
