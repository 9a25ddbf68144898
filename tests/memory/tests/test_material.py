"""The material keeps what the tests promise of it."""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from itertools import combinations

import pytest

from tests.memory.tests.conversation import TESTS, dataset, example, play
from themis.core.tokens import count_tokens
from themis.exceptions import ConfigurationError, DatasetError
from themis.memory.agents.agent import Agent
from themis.memory.agents.calibration import Oracle
from themis.memory.examples import MEMORY_TESTS
from themis.memory.scoring.claims import find_claims
from themis.memory.scoring.lists import measure_recall, recites
from themis.memory.scoring.words import find_phrases
from themis.memory.tests.beliefs import _LEAVE, _RETURN, CONTAINERS, Beliefs, read_stories
from themis.memory.tests.facts import PASSWORDS
from themis.memory.tests.instructions import INNS, STORES
from themis.memory.tests.jokes import make_joke
from themis.memory.tests.journeys import FACETS, OPTIONS, read_opening, tell_tale
from themis.memory.tests.people import _LIVES, TRAITS
from themis.memory.tests.places import build_town, position_after
from themis.memory.tests.preferences import DOMAINS
from themis.memory.tests.recall import ISLAND_KINDS, MACHINE_KINDS
from themis.memory.tests.restaurant import DISHES, DRINKS, read_order
from themis.memory.tests.spies import KEYWORDS, NUMBERS, PLACES, THINGS
from themis.memory.tests.standing_requests import OCCASIONS, make_phrase, make_quotation, says_phrase
from themis.memory.tests.tales import split_pages
from themis.memory.tests.tallies import REPAIRS
from themis.memory.tests.times import _DONE, _find_day, _to_moment
from themis.memory.tests.updates import COLOUR, COLOURS, ROOMS
from themis.memory.tests.word_lists import FIRST_NAMES, SURNAMES
from themis.memory.world import World

SINGLE_ANSWERS = [
    FIRST_NAMES,
    SURNAMES,
    COLOURS,
    INNS,
    ROOMS,
    PASSWORDS,
    REPAIRS,
    STORES,
    CONTAINERS,
    *ISLAND_KINDS,
    *MACHINE_KINDS,
    *(trait.values for trait in TRAITS.values()),
    *(domain.options for domain in DOMAINS),
]


@pytest.mark.parametrize("values", SINGLE_ANSWERS, ids=lambda values: values[0])
def test_every_possible_answer_can_be_claimed_and_none_contains_another(values):
    candidates = [value.removeprefix("the ") for value in values]
    for value in candidates:
        if not value.isdigit():
            assert find_claims(f"It is the {value}.", candidates) == {value}


def test_no_clue_of_a_spy_contains_a_keyword():
    keywords = [word for variants in KEYWORDS.values() for own in variants for word in own]
    known = (*PLACES.values(), *THINGS.values(), *NUMBERS.values())
    clues = [clue for clues in known for clue in clues]

    assert [clue for clue in clues if find_phrases(clue, keywords)] == []
    assert len(set(keywords)) == len(keywords)
    assert len(set(clues)) == len(clues)


def test_no_trigger_gives_its_phrase_away():
    rng = random.Random("phrases")
    phrases = [make_phrase(rng) for _ in range(20)]
    for occasion in OCCASIONS:
        for place in range(len(occasion.told)):
            message = occasion.told.render(place, rng, who="Agnes Dalby")
            assert max(measure_recall(message, phrase) for phrase in phrases) < 0.5


def test_neither_a_set_sentence_nor_a_quotation_is_taken_for_the_other():
    rng = random.Random("lines")
    for _ in range(1_000):
        phrase, quotation = make_phrase(rng), make_quotation(rng)
        assert says_phrase(quotation, phrase, 0.75) is False
        assert not recites(phrase, quotation)
        assert not find_phrases(quotation, STORES)


def test_jokes_quotations_and_set_sentences_are_without_number():
    for make in (make_joke, make_quotation, make_phrase):
        rng = random.Random("many")
        assert len({make(rng) for _ in range(1_000)}) > 800


def test_no_two_jokes_of_a_test_resemble_each_other():
    for seed in range(100):
        for one, other in combinations(example("jokes", seed).expected_responses, 2):
            assert measure_recall(one, other) < 0.4


def test_each_of_three_options_could_be_the_right_one():
    """Every option lacks one of three things that somebody cannot bear, so none of them stands out."""
    features = {
        feature: (domain.asked, taste)
        for domain in DOMAINS
        for taste, (_, words) in domain.tastes.items()
        for feature in words
    }
    for seed in range(50):
        test = example("preference", seed)
        for question in test.script[-3:]:
            options = re.findall(r"the [\w' ]+? with .+?(?=, the | or the |[.?])", question)
            has = [{features[word] for word in features if find_phrases(option, (word,))} for option in options]
            assert [len(tastes) for tastes in has] == [2, 2, 2], question
            assert len(set.union(*has)) == 3


def test_every_item_of_the_menu_has_a_word_of_its_own():
    for item in (*DISHES, *DRINKS):
        assert read_order(f"I take the {item}.", ()).items == (item,)


def test_the_town_is_consistent_and_cannot_be_walked_by_repeating_it():
    for seed in range(200):
        town = build_town(World(), 5, dataset("locations", seed=seed).random(), in_line=seed % 2 == 0)
        spots = [position_after(town.legs[:count]) for count in range(5)]
        assert len(set(spots)) == 5
        if seed % 2 == 0:
            assert 0 in spots[-1]


def tales():
    for seed in range(100):
        yield tell_tale(dataset("chapterbreak", seed=seed).random(), ("Ivo", "Agnes"), chapters=12, characters=300)


@pytest.mark.parametrize("name", TESTS)
def test_no_sentence_has_the_wrong_article(name):
    wrong = []
    for seed in range(12):
        text = json.dumps(example(name, seed).definition(), ensure_ascii=False)
        for article, word in re.findall(r"\b([Aa]n?) ([a-z]+)", text, re.IGNORECASE):
            wants_an = (word[0].lower() in "aeiou" and not _LIKE_A_CONSONANT.match(word)) or word.startswith(_SILENT)
            wrong += [f"{article} {word}"] if (article.lower() == "an") != wants_an else []

    assert wrong == []


# Words said twice, sentences that begin small, one of many, a machine without a bin, rooms that are none.
_NOBODY_SAYS = re.compile(
    r"\b([a-z]+) \1\b|\b(the \w+|\w+ing) and \2\b|[?!] [a-z]|\b(?:one|1) [\w ]+ for the price of one"
    r"|(?:Bring|need|without|you) what (?:are|have|sit) |\ba replacement goes[\w ]+, \w+ in number"
    r"|(?:boiler|lift|printer|thermostat) wants emptying|after the other, \w"
    r"|\bate \w+ (?:light bulbs|batteries|candles|sponges)|in(?:to)? the workshop gate|the (?:bagpipes|castanets) (?:is|comes)"
    r"|nailed to the (?:ford|weir|wall)|(?:ford|wall|stile) had lost its railing|down to the attic|\bday the \d|reads \w+ since"
)


@pytest.mark.parametrize("name", TESTS)
def test_nobody_says_what_has_no_sense(name):
    for seed in range(60):
        text = json.dumps(example(name, seed).definition(), ensure_ascii=False)
        assert _NOBODY_SAYS.search(text) is None, _NOBODY_SAYS.search(text)


def test_a_day_that_is_denied_is_another_one_than_the_day_of_the_deed():
    denied = 0
    for seed in range(60):
        listener = _Listener()
        play(example("temporal_order", seed, events=8), listener)
        for now, told in ((now, told) for now, message in listener.heard for told in _DONE.read_all(message)):
            if "not_when" in told:
                denied += 1
                day, other = (_find_day(_to_moment(told[slot]), now) for slot in ("when", "not_when"))
                assert day != other, told

    assert denied > 20


class _Listener(Agent):
    """Answers nothing, and keeps what it was told at what time."""

    name = "listener"

    def __init__(self):
        self.heard = []

    def reply(self, message, *, turn, now, presupplied=None):
        self.heard.append((now, message))
        return "Yes."

    def reset(self):
        """It is asked for what it heard after all is said."""


def test_whoever_comes_back_in_a_film_comes_from_where_they_went():
    returned = 0
    for seed in range(100):
        away = {}
        for line in example("sallyanne", seed).script:
            left, back = _LEAVE.read(line), _RETURN.read(line)
            if left:
                away[left["person"]] = left.get("elsewhere")
            if back and "elsewhere" in back and away[back["person"]]:
                returned += 1
                assert back["elsewhere"] == away[back["person"]], line

    assert returned > 3


def test_nobody_in_a_film_is_asked_about_who_has_seen_that_more_happened_than_they_know():
    """Ann comes back while Ben is out, and sees the coin taken from where she did not know it: did Ben know?"""
    beliefs = Beliefs(["Ann", "Ben", "Cy"])
    beliefs.put("drawer")
    beliefs.present = ["Ben", "Cy"]
    beliefs.put("safe")
    beliefs.present = ["Ann", "Cy"]
    assert beliefs.unsure == set()
    beliefs.put("vase")
    assert beliefs.unsure == {("Ann", "Ben")}
    beliefs.present = ["Ann", "Ben", "Cy"]
    beliefs.put("chest")
    assert ("Ann", "Ben") not in beliefs.unsure


def test_a_colour_that_is_turned_down_was_never_the_favourite():
    for seed in range(60):
        test = example("colours", seed, colour_changes=6)
        told = [found for line in test.script for found in (COLOUR.told.read(line), COLOUR.changed.read(line)) if found]
        favourites = {one["value"] for one in told}
        asides = {found["value"] for line in test.script for found in COLOUR.others.read_all(line)}
        assert not favourites & asides, test.script


def test_no_two_relatives_of_a_test_have_one_name():
    for seed in range(300):
        told = example("conflicting_personal_info", seed, other_relatives=7).script[:-1]
        named = {tuple(found[slot] for slot in ("relative", "who")) for line in told for found in _LIVES.read_all(line)}
        assert len({who for _, who in named}) == len(named) == 7


def test_no_chapter_tells_the_same_kind_of_scene_twice_in_a_row():
    for tale in tales():
        for chapter in tale.chapters:
            assert chapter.count("There were footprints ahead") < 2, chapter


_LIKE_A_CONSONANT = re.compile(r"uni(?!n)|use|one|eu|u[rs][aeiu]", re.IGNORECASE)
_SILENT = ("hour", "honest", "heir")


def test_of_the_continuations_of_a_tale_none_stands_out():
    """Whoever has not read the tale finds every value of what differs equally often."""
    for told in tales():
        values = [read_opening(opening)[1] for opening in told.openings]
        frequencies = {facet: Counter(Counter(one[facet] for one in values).values()) for facet in FACETS}

        assert len({tuple(one.values()) for one in values}) == OPTIONS
        assert sorted(map(str, frequencies.values())) == sorted(
            map(str, [Counter({6: 1}), Counter({6: 1}), Counter({3: 2}), Counter({2: 3})])
        )


def test_the_true_continuation_of_a_tale_may_be_any_of_the_options():
    assert {told.answer for told in tales()} == set(range(1, OPTIONS + 1))


@pytest.mark.parametrize("span", [1_000, 2_000, 8_000, 32_000, 200_000])
def test_a_tale_is_as_long_as_its_span_allows_and_its_beginning_is_needed(span):
    test = example("chapterbreak", 5, memory_span=span)
    tokens = sum(count_tokens(line) for line in test.script)

    assert 0.55 * span < tokens < 0.72 * span
    # A page leaves others time to speak.
    assert max(count_tokens(line) for line in test.script[1:-2]) < max(160, 0.06 * span)
    assert test.waits[-3].until_tokens == 0.9 * span
    (needed,) = test.dataset.needed_lines(test)
    assert needed[0] <= 2 + 0.06 * len(test.script)


def test_a_known_story_has_the_known_answers():
    beliefs = Beliefs(["Elena", "Hugo", "Wanda"])
    beliefs.put("crate")
    beliefs.present.remove("Hugo")
    beliefs.put("basket")
    beliefs.present.remove("Elena")
    beliefs.put("chest")
    held = {pair: container for pair, (container, _) in beliefs.held.items()}

    assert [held[who, who] for who in ("Elena", "Hugo", "Wanda")] == ["basket", "crate", "chest"]
    assert held["Wanda", "Elena"] == held["Elena", "Wanda"] == "basket"
    assert held["Hugo", "Wanda"] == held["Wanda", "Hugo"] == "crate"


def test_stories_of_a_file_are_read_in_the_layout_of_tomi(tmp_path):
    file = tmp_path / "stories.txt"
    file.write_text(
        "1 Elena entered the attic.\n2 The scarf is in the treasure_chest.\n3 Where is the scarf really?\ttreasure_chest\t1\n"
        "1 Hugo entered the attic.\n2 Hugo likes the scarf.\n3 Where will Hugo look for the scarf?\tbasket\n"
    )
    assert [story.answer for story in read_stories(str(file), "any")] == ["treasure chest", "basket"]
    assert [story.answer for story in read_stories(str(file), "world_model")] == ["treasure chest"]
    made = dataset("sallyanne", data_location=str(file)).generate_examples(2)
    assert {test.expected_responses[0] for test in made} == {"treasure chest", "basket"}
    with pytest.raises(DatasetError, match="2 stories of type any, 3 wanted"):
        dataset("sallyanne", data_location=str(file)).generate_examples(3)
    with pytest.raises(DatasetError, match="cannot be read"):
        dataset("sallyanne", data_location=str(tmp_path / "none.txt")).generate_examples(1)


def test_chapters_of_the_public_file_are_read_and_paged_without_loss(tmp_path):
    file = tmp_path / "chapterbreak.json"
    text = " ".join(f"Sentence number {number} of the book." for number in range(400))
    sample = {"ctx": text, "pos": "It went on.", "negs": [f"It did not go on in way {n}." for n in "abcde"]}
    file.write_text(json.dumps({"pg19": {"1": [sample]}, "ao3": {"90051444": [sample]}}))
    (test,) = dataset("chapterbreak", split="goodai", data_location=str(file), max_message_size=520).generate_examples(
        1
    )

    assert test.example_id == "90051444_0"
    assert text in "".join(test.script)
    right = test.expected_responses[0]
    assert f"Option {right}:\nIt went on." in test.script
    assert all(len(line) <= 1500 for line in test.script)
    assert "".join(split_pages(text, 100)) == text
    with pytest.raises(DatasetError, match="split: tale"):
        dataset("chapterbreak", split="ao3").generate_examples(1)
    (tmp_path / "packed.zst").write_bytes(b"\x28\xb5\x2f\xfd....")
    with pytest.raises(DatasetError, match="zstd -d"):
        dataset("chapterbreak", split="ao3", data_location=str(tmp_path / "packed.zst")).generate_examples(1)
    (tmp_path / "other.json").write_text('{"pg19": []}')
    with pytest.raises(DatasetError, match="cannot be read as ChapterBreak data"):
        dataset("chapterbreak", split="pg19", data_location=str(tmp_path / "other.json")).generate_examples(1)


ARGUMENTS = {
    "names": ["name_changes"],
    "name_list": ["name_changes"],
    "colours": ["colour_changes"],
    "shopping": ["item_changes"],
    "locations": ["known_locations"],
    "locations_directions": ["known_locations"],
    "sallyanne": ["question_type", "data_location"],
    "jokes": ["jokes_told", "minutes_low", "minutes_high", "joke_prefix"],
    "kv": ["nested_levels", "num_kv_pairs"],
    "chapterbreak": ["split"],
    "trigger_response": ["trigger_activations", "rouge_score_threshold"],
}
BAD = {
    "names": {"name_changes": 0},
    "name_list": {"name_changes": 10_000},
    "colours": {"colour_changes": 0},
    "shopping": {"item_changes": 0},
    "locations": {"known_locations": 1},
    "locations_directions": {"known_locations": 99},
    "sallyanne": {"question_type": "world_modell"},
    "jokes": {"jokes_told": 41},
    "kv": {"num_kv_pairs": 1},
    "chapterbreak": {"split": "tales"},
    "delayed_recall": {"facts": 13},
    "instruction_recall": {"questions": 11},
    "how_to_think": {"options": 2},
    "conflicting_personal_info": {"other_relatives": 8},
    "trigger_response": {"trigger_activations": 0},
    "abstention": {"unknowns": 13},
    "knowledge_update": {"updates": 1},
    "temporal_order": {"days_high": 1},
    "aggregation": {"sessions": 2},
    "preference": {"preferences": 41},
    "contradiction": {"contradictions": 3},
    "forgetting": {"secrets": 1},
    "interference": {"people": 1},
    "instruction_exceptions": {"requests": 2},
    "verbatim": {"passages": 2},
    "multi_hop": {"chains": 1},
    "sessions": {"sessions": 7},
    "group_chat": {"people": 1},
    "confidence": {"secrets": 0},
    "own_words": {"choices": 9},
    "rule_learning": {"words": 2},
    "document": {"questions": 0},
    "summary": {"points": 3},
    "erasure": {"people": 1},
}


def test_arguments_keep_their_names():
    for name, arguments in ARGUMENTS.items():
        assert set(arguments) <= set(MEMORY_TESTS.get(name).arguments())


@pytest.mark.parametrize("name", sorted(BAD))
def test_an_argument_out_of_range_is_refused_with_its_name(name):
    ((argument, value),) = BAD[name].items()
    with pytest.raises(ConfigurationError, match=rf"memory test {name}: {argument} .* got {value!r}"):
        dataset(name, **BAD[name]).generate_examples(1)


HARDER = {
    "names": {"name_changes": 20},
    "name_list": {"name_changes": 20},
    "colours": {"colour_changes": 30},
    "shopping": {"item_changes": 60},
    "locations": {"known_locations": 12},
    "locations_directions": {"known_locations": 12},
    "jokes": {"jokes_told": 16},
    "kv": {"nested_levels": 3},
    "chapterbreak": {"chapters": 30},
    "delayed_recall": {"facts": 12},
    "instruction_recall": {"steps": 12},
    "how_to_think": {"options": 9},
    "conflicting_personal_info": {"other_relatives": 7},
    "trigger_response": {"trigger_activations": 9},
    "abstention": {"facts": 6, "unknowns": 6},
    "knowledge_update": {"updates": 12},
    "temporal_order": {"events": 20},
    "aggregation": {"sessions": 20},
    "preference": {"preferences": 20},
    "contradiction": {"people": 20, "contradictions": 6},
    "forgetting": {"secrets": 6},
    "interference": {"people": 6, "attributes": 6},
    "instruction_exceptions": {"exceptions": 6, "requests": 12},
    "verbatim": {"passages": 6, "sentences": 8},
    "multi_hop": {"chains": 8},
    "sessions": {"sessions": 6},
    "group_chat": {"people": 8},
    "confidence": {"secrets": 6},
    "own_words": {"choices": 8},
    "rule_learning": {"words": 8},
    "document": {"questions": 10, "memory_span": 20_000},
    "summary": {"points": 16},
    "erasure": {"people": 8},
}


@pytest.mark.parametrize("name", sorted(HARDER))
def test_a_harder_test_is_still_answered_by_perfect_memory(name):
    for seed in range(10):
        assert play(example(name, seed, **HARDER[name]), Oracle()).grade.score == 1.0


def test_interference_is_declared_between_tests_that_exist():
    for name in TESTS:
        for other in MEMORY_TESTS.get(name).interferes_with:
            assert name in MEMORY_TESTS.get(other).interferes_with


@pytest.mark.parametrize("name", TESTS)
def test_an_answer_needs_lines_that_were_said_before_it(name):
    for seed in range(20):
        test = example(name, seed)
        asked = [line for line, question in enumerate(test.is_question) if question]
        for question, needed in zip(asked, test.dataset.needed_lines(test), strict=True):
            assert needed is None or (needed and all(0 <= line < question for line in needed))


def test_the_line_that_holds_the_answer_is_the_one_that_is_needed():
    for name in ("names", "colours", "jokes", "verbatim", "kv", "knowledge_update", "interference"):
        test = example(name, 3)
        for answer, needed in zip(test.expected_responses, test.dataset.needed_lines(test), strict=False):
            # What is told over two messages stands in one of them.
            assert any(answer in test.script[line] for line in needed)


@pytest.mark.parametrize("span_tokens", [1_000, 8_000, 120_000, 1_000_000])
def test_a_document_takes_a_tenth_of_its_span_in_pages_that_do_not_block_it(span_tokens):

    test = example("document", 5, memory_span=span_tokens, max_message_size=2_000)
    pages = [count_tokens(line) for line, asked in zip(test.script, test.is_question, strict=True) if not asked]
    places = re.findall(r"(?:^|\n\n)([^\n]*)", "\n\n".join(test.script))

    assert 0.08 * span_tokens < sum(pages) < 0.16 * span_tokens + 100
    assert max(pages) <= min(2_000, max(90, 0.05 * span_tokens))
    assert len(places) == len(set(places))


def test_no_translation_is_among_the_examples_and_none_follows_from_one_example():
    for seed in range(50):
        test = example("rule_learning", seed)
        told = [line for line, asked in zip(test.script, test.is_question, strict=True) if not asked]
        for translation in test.expected_responses["translations"]:
            first, second = translation.split()
            assert not any(translation in line for line in told)
            assert not any(first in line and second in line for line in told)
