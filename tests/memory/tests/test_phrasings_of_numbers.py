"""Numbers, days, ways and options in words: right and wrong as a person would say."""

from __future__ import annotations

from themis.memory.scoring import grade_number
from themis.memory.tests.chapterbreak import grade_option
from themis.memory.tests.locations import settle_way
from themis.memory.tests.locations_directions import settle_route
from themis.memory.tests.temporal_order import grade_days

TWENTY_ONE = [
    "21",
    "21.",
    "**21**",
    "twenty-one",
    "Twenty-one.",
    "twenty one",
    "There were 21.",
    "21 bicycles",
    "It is 21!",
    '{"total": 21}',
    '```json\n{"total": 21}\n```',
    "{'total': 21}",
    '{"total": "21"}',
    "Answer: 21",
    "The total is 21.",
    "9 + 12 = 21",
    "9+12=21",
    "In total, 21.",
    "9 on the first day and 12 on the second, which makes 21.",
    "9 and then 12, so 21 in total.",
    "5, 4 and 12: 21 altogether",
    "I count 21 bicycles.",
    "21.0",
    "Exactly 21",
    "About 21, I think",
    "**21** (9 + 12)",
    "The sum of 9 and 12 is 21.\nTotal: 21",
]
NOT_TWENTY_ONE = [
    "",
    "20",
    "22",
    "twenty",
    "one",
    "two hundred",
    "121",
    "212",
    "2.1",
    "21,000",
    "-21",
    "21 or 22",
    "between 20 and 22",
    "9, 12",
    "9 bicycles, then 12 bicycles.",
    "I don't know.",
    "null",
    '{"total": null}',
    '{"total": [21]}',
    '{"a": 2, "b": 1}',
    "1 2 3 4 5 6 7 8 9 10 20 21 22",
    "x21y",
    "NaN",
    "Infinity",
    "true",
    "9 + 12 = 20",
    "9" * 400,
]


def test_the_number_that_a_reply_settles_on_counts():
    assert [reply for reply in TWENTY_ONE if grade_number(reply, 21).score != 1] == []
    assert [reply for reply in NOT_TWENTY_ONE if grade_number(reply, 21).score != 0] == []


FOURTEEN_DAYS = [
    "14",
    "14 days",
    "fourteen days",
    "Fourteen.",
    "2 weeks",
    "two weeks",
    "It was two weeks ago.",
    "14 days ago",
    "About 14 days.",
    "13 days",
    "15 days",
    "roughly two weeks, that is 14 days",
    "**14 days**",
    '{"days": 14}',
    "You did that fourteen days ago.",
    "Two weeks, give or take.",
    "14 days (2 weeks)",
    "Answer: 14",
    "It has been 14 days.",
    "exactly 2 weeks",
    "14 Days!",
    "13",
    "thirteen days",
    "fifteen",
    "That was 14 days later.",
]
NOT_FOURTEEN_DAYS = [
    "",
    "12 days",
    "16 days",
    "3 weeks",
    "a while",
    "yesterday",
    "1 month",
    "two days",
    "2",
    "140 days",
    "14 weeks",
    "I don't know.",
    "7 or 14 days",
    "between 10 and 20 days",
    "1 2 3 4 5 14",
    "today",
    "four days",
    "null",
    "recently",
    "40",
    "0",
    "2 months",
    "14 years",
    "fourteen weeks",
    "some days",
]


def test_days_may_be_given_in_weeks_and_be_off_by_one():
    assert [reply for reply in FOURTEEN_DAYS if grade_days(reply, 14).score != 1] == []
    assert [reply for reply in NOT_FOURTEEN_DAYS if grade_days(reply, 14).score != 0] == []


THREE_NORTH = [
    "Answer: 3 km North",
    "3 km north",
    "3km north.",
    "**3 km North**",
    "North, 3 km",
    "north for 3 km",
    "three kilometres north",
    "It is 3 kilometers to the north.",
    "3 km due north",
    "Go north for 3 kilometres.",
    "northwards 3 km",
    "3 km northwards",
    "3.0 km north",
    "The bakery is 3 km north of you.",
    "2 km east and back 2 km west, then 3 km north.\nAnswer: 3 km north",
    "Step 1: 1 km south. Step 2: 4 km north. Answer: 3 km North",
    "ANSWER: 3 KM NORTH",
    "Answer: **3 km north**",
    "`Answer: 3 km north`",
    "Answer: north, 3 km",
    "3 km towards the north",
    "You must walk 3 km in a northerly... north: 3 km",
    "Three km to the north",
    "3 kilometers, north",
    "Answer: 3 km north (straight).",
]
NOT_THREE_NORTH = [
    "",
    "3 km south",
    "2 km north",
    "Answer: 3 km east",
    "north",
    "3 km",
    "I do not know.",
    "33 km north",
    "3 miles north",
    "Answer: 4 km north",
    "30 km north",
    "Answer: 3 km south, I am sure of it",
    "1 km south and 1 km west",
    "far to the north",
    "three",
    "Answer: unknown",
    "13 km north",
    "Answer: <number> km <direction>",
    "0.3 km north",
    "Answer: 2 km north",
    "You are lost.",
    "4 km west, then 1 km north",
    "null",
    "Answer: 3 km west",
    "5 km northwards",
]


def test_a_way_is_read_whatever_its_wording():
    undecided = [reply for reply in (*THREE_NORTH, *NOT_THREE_NORTH) if settle_way(reply, "3 km North") is None]
    assert undecided == []
    assert [reply for reply in THREE_NORTH if settle_way(reply, "3 km North").score != 1] == []
    assert [reply for reply in NOT_THREE_NORTH if settle_way(reply, "3 km North").score != 0] == []
    assert settle_way("First 3 km north, then 2 km east, so you see.", "3 km North") is None


ROUTE = (
    "From bakery, go 2 km north to dairy.\nFrom dairy, go 3 km east to quarry.\nFrom quarry, go 1 km south to cinema."
)
ROUTES = [
    ROUTE,
    ROUTE.upper(),
    ROUTE.replace(" km", "km"),
    ROUTE.replace("go", "walk"),
    "2 km north, 3 km east, 1 km south",
    "North 2 km, east 3 km, south 1 km.",
    "Go north for 2 km, then east for 3 km, then south for 1 km.",
    "1. 2 km north\n2. 3 km east\n3. 1 km south",
    "two kilometres north; three kilometres east; one... 1 km south",
    "- 2 kilometers to the north\n- 3 kilometers to the east\n- 1 kilometer to the south",
    "1 km north and 3 km east",
    "From the bakery 2 km due north to the dairy, 3 km due east, 1 km due south.",
    "**2 km north**, **3 km east**, **1 km south**",
    "3 km east, 2 km north, 1 km south",
    "1 km north, 1 km north, 3 km east, 1 km south",
    "Head northwards for 2 km, eastwards for 3 km, southwards for 1 km",
    "2 km towards the north, 3 km east, 1 km south",
    "2.0 km north, 3.0 km east, 1.0 km south",
    "north: 2 km, east: 3 km, south: 1 km",
    "2 km North -> 3 km East -> 1 km South",
    "Starting at the bakery: 2 km north. Then 3 km east. Finally 1 km south. You have arrived.",
    "Walk 2 km north to the dairy, 3 km east to the quarry and 1 km south to the cinema.",
    "2km N... 2 km north, 3 km east, 1 km south",
    "Sure! 2 km north, 3 km east, 1 km south",
    "2 km north\n3 km east\n1 km south\n",
]
NO_ROUTES = [
    "",
    "I do not know.",
    "2 km south, 3 km east, 1 km south",
    "2 km north, 3 km west, 1 km south",
    "2 km north, 3 km east, 1 km north",
    "3 km north, 3 km east, 1 km south",
    "Ask somebody.",
    "Just walk there.",
    "north, east, south",
    "2, 3, 1",
    "null",
    "[]",
    "{}",
    "2 km north, 3 km east, 2 km south",
    "2 km east, 3 km north, 1 km west",
    "1 km south, 3 km west, 2 km south",
    "From dairy 2 km north, 3 km south, 1 km east",
    "Take the bus.",
    "It is not far.",
    "2 miles, 3 miles, 1 mile",
    "go 20 km north, 3 km east, 1 km south",
    "Understood.",
    "2 km north, 30 km east, 1 km south",
    "The cinema.",
    "4 km north, 4 km east, 4 km south, 4 km west",
]


def test_a_route_is_right_if_its_legs_lead_there():
    assert [
        reply for reply in ROUTES if settle_route(reply, ROUTE) is None or settle_route(reply, ROUTE).score != 1
    ] == []
    assert [
        reply for reply in NO_ROUTES if settle_route(reply, ROUTE) is None or settle_route(reply, ROUTE).score != 0
    ] == []
    assert settle_route("Walk north past 2 ponds, then right.", ROUTE) is None


OPTION_FOUR = [
    "4",
    "4.",
    " 4 ",
    "**4**",
    "Option 4",
    "option 4.",
    "Option four",
    "Four.",
    "four",
    "The answer is 4.",
    "Answer: 4",
    "(4)",
    "[4]",
    "#4",
    "4)",
    "It is option 4.",
    "I choose number 4.",
    "Option 4: the guard",
    "I would say 4",
    "Definitely option 4!",
    "The true beginning is option 4.",
    "4 – because of the raven",
    "My choice is 4",
    "`4`",
    '{"answer": 4}',
    "Option 4, since in chapter 2 the ferryman left.",
]
NOT_OPTION_FOUR = [
    "",
    "3",
    "44",
    "1 2 3 4 5 6",
    "4 or 5",
    "Option 3",
    "Option 4 or option 5",
    "five",
    "None of them",
    "I do not know.",
    "4.5",
    "Not sure",
    "1, 2, 3, 4, 5 and 6",
    "14",
    "Options 1 to 6",
    "-4",
    "IV",
    "the last one",
    "{}",
    "null",
    "0",
    "Option 6.",
    "either 4 or 2",
    "40",
    "Option 1, since in chapter 4 the ferryman left.",
]


def test_one_option_is_chosen_or_none():
    assert [reply for reply in OPTION_FOUR if grade_option(reply, "4").score != 1] == []
    assert [reply for reply in NOT_OPTION_FOUR if grade_option(reply, "4").score != 0] == []
