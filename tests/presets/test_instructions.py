"""Checks of instructions by rule: each kind with a response that follows it and one that does not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from themis.exceptions import MetricError
from themis.presets.instructions import CHECKS, LANGUAGES, InstructionFollowing, is_written_in


def judge(response, *instructions):
    reference = {
        "instruction_id_list": [kind for kind, _ in instructions],
        "kwargs": [parameters for _, parameters in instructions],
    }
    return InstructionFollowing().compute(prediction=response, references=[reference])


WORDS_300 = "word " * 300

CASES = {
    "keywords:existence": ({"keywords": ["sea", "salt"]}, "The Sea tastes of salt.", "The season is over, salt."),
    "keywords:frequency": (
        {"keyword": "tea", "frequency": 2, "relation": "at least"},
        "Tea for two: tea!",
        "One tea, and a team.",
    ),
    "keywords:forbidden_words": ({"forbidden_words": ["bad", "not at all"]}, "A badge.", "Too BAD."),
    "keywords:letter_frequency": (
        {"letter": "q", "let_frequency": 3, "let_relation": "less than"},
        "Quick quiz.",
        "Quick quiz, quite.",
    ),
    "language:response_language": ({"language": "de"}, "Das ist nicht der Weg, und es regnet.", "This is not the way."),
    "length_constraints:number_sentences": (
        {"num_sentences": 3, "relation": "less than"},
        "Dr. Brown paid 3.50 for it. He left!",
        "One. Two? Three.",
    ),
    "length_constraints:number_words": ({"num_words": 300, "relation": "at least"}, WORDS_300, WORDS_300[5:]),
    "length_constraints:number_paragraphs": ({"num_paragraphs": 2}, "One\n***\nTwo", "One\n\nTwo"),
    "length_constraints:nth_paragraph_first_word": (
        {"num_paragraphs": 2, "nth_paragraph": 2, "first_word": "therefore"},
        "So it was.\n\n**Therefore**, it is.",
        "Therefore it was.\n\nSo it is.",
    ),
    "detectable_content:number_placeholders": ({"num_placeholders": 2}, "Dear [name], see [place].", "Dear [name] []."),
    "detectable_content:postscript": ({"postscript_marker": "P.S."}, "Yours\nP.S. Bring tea.", "Yours, and so on."),
    "detectable_format:number_bullet_lists": ({"num_bullets": 2}, "List:\n* one\n- two", "* one\n* two\n* three"),
    "detectable_format:constrained_response": ({}, "My answer is maybe.", "Maybe."),
    "detectable_format:number_highlighted_sections": ({"num_highlights": 2}, "*one* and **two**", "*one* ** **"),
    "detectable_format:multiple_sections": (
        {"section_spliter": "SECTION", "num_sections": 2},
        "SECTION 1\na\nSECTION 2\nb",
        "SECTION 1\nalone",
    ),
    "detectable_format:json_format": ({}, '```json\n{"a": [1]}\n```', "a: 1"),
    "detectable_format:title": ({}, "<<On Tea>>\nIt is hot.", "<< >>\nIt is hot."),
    "combination:two_responses": ({}, "One way.\n******\nAnother.", "One way.\n******\nOne way."),
    "combination:repeat_prompt": ({"prompt_to_repeat": "Say tea."}, "Say tea.\nTea!", "Tea!"),
    "startend:end_checker": ({"end_phrase": "That is all."}, "So it is. That is all.", "That is all. Or not."),
    "startend:quotation": ({}, '"Quoted."', '"Quoted" twice'),
    "change_case:capital_word_frequency": (
        {"capital_frequency": 2, "capital_relation": "at least"},
        "The BBC and NASA.",
        "The BBC 123.",
    ),
    "change_case:english_capital": ({}, "THE SEA IS CALM.", "The sea is calm."),
    "change_case:english_lowercase": ({}, "the sea is calm.", "The sea is calm."),
    "punctuation:no_comma": ({}, "No such thing.", "Well, one."),
}


@pytest.mark.parametrize("kind", CHECKS)
def test_each_kind_tells_a_follower_from_one_that_does_not(kind):
    parameters, follows, does_not = CASES[kind]

    assert judge(follows, (kind, parameters)).value == 1.0
    assert judge(does_not, (kind, parameters)).value == 0.0


def test_all_instructions_must_be_followed_and_the_details_say_which_were():
    score = judge("Tea, please.", ("punctuation:no_comma", {}), ("keywords:existence", {"keywords": ["tea"]}))

    assert score.value == 0.0
    assert score.details["share_followed"] == 0.5
    assert [each["followed"] for each in score.details["followed"]] == [False, True]


def test_parameters_that_are_none_are_absent_as_in_the_source_s_rows():
    assert judge("tea", ("punctuation:no_comma", {"num_words": None, "relation": None})).value == 1.0


def test_an_empty_response_follows_nothing():
    assert judge("  ", ("punctuation:no_comma", {})).value == 0.0


@pytest.mark.parametrize(
    "instruction",
    [
        ("punctuation:no_coma", {}),
        ("keywords:existence", {"keyword": "tea"}),
        ("length_constraints:number_words", {"num_words": 3, "relation": "about"}),
        ("language:response_language", {"language": "tlh"}),
    ],
)
def test_what_cannot_be_checked_is_a_failure_and_not_a_score(instruction):
    with pytest.raises(MetricError):
        judge("tea", instruction)


@pytest.mark.parametrize("reference", [None, "text", {}, {"instruction_id_list": [], "kwargs": []}])
def test_a_reference_without_instructions_is_a_failure(reference):
    with pytest.raises(MetricError):
        InstructionFollowing().compute(prediction="tea", references=[reference])


@given(st.text(), st.sampled_from(sorted(CHECKS)))
def test_no_response_whatever_raises(response, kind):
    assert judge(response, (kind, CASES[kind][0])).value in (0.0, 1.0)


SENTENCES = {
    "ar": "هذا هو البيت الذي كان في المدينة، ولا أحد من الناس على الطريق.",
    "bg": "Това е къщата, която се намира на хълма и беше построена от баща ми.",
    "bn": "আমি প্রতিদিন সকালে চা খাই।",
    "de": "Das Haus ist auf dem Hügel, und ich wohne nicht in der Stadt.",
    "en": "The house is on the hill and it was built by my father.",
    "es": "La casa está en la colina y no es como las de la ciudad.",
    "fa": "این خانه در شهر است که برای آن از دور آمده است.",
    "fi": "Talo on mäellä, mutta se ei ole vanha ja hän oli siellä.",
    "fr": "La maison est sur la colline et je ne suis pas dans la ville.",
    "gu": "હું દરરોજ સવારે ચા પીઉં છું.",
    "he": "הבית נמצא על הגבעה.",
    "hi": "यह घर पहाड़ी पर है और इसमें एक बगीचा भी है।",
    "it": "La casa è sulla collina e non sono in città con gli amici.",
    "ja": "その家は丘の上にあります。",
    "kn": "ಮನೆ ಬೆಟ್ಟದ ಮೇಲಿದೆ.",
    "ko": "그 집은 언덕 위에 있습니다.",
    "ml": "വീട് കുന്നിൻ മുകളിലാണ്.",
    "mr": "हे घर टेकडीवर आहे आणि ते जुने नाही.",
    "ne": "यो घर पहाडमा छ र पुरानो पनि हो।",
    "pa": "ਘਰ ਪਹਾੜੀ ਉੱਤੇ ਹੈ।",
    "pl": "Dom jest na wzgórzu i nie jest stary, ale to jego dom.",
    "pt": "A casa fica na colina e não é da cidade, mas você gosta dos jardins.",
    "ru": "Это дом на холме, и он не такой, как в городе.",
    "sw": "Nyumba hii ni ya baba yake na iko katika kijiji, lakini watu ni wengi sana.",
    "ta": "வீடு மலையின் மேல் உள்ளது.",
    "te": "ఇల్లు కొండ మీద ఉంది.",
    "th": "บ้านอยู่บนเนินเขา",
    "uk": "Це будинок на пагорбі, і він не такий, як у місті, що є за річкою.",
    "ur": "یہ گھر پہاڑی پر ہے اور اس میں ایک باغ بھی ہے۔",
    "vi": "Ngôi nhà này là của một người trong làng và có các khu vườn với những cây.",
    "zh": "这座房子在山上。",
}


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_sentence_is_of_its_own_language_and_of_no_other(language):
    text = SENTENCES[language]

    assert [other for other in LANGUAGES if is_written_in(text, other)] == [language]
