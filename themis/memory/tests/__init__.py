"""The built-in memory tests: one file a kind, imported when a configuration names it."""

from __future__ import annotations

__all__ = ["BUILTIN_TESTS"]

BUILTIN_TESTS = {
    "abstention": "themis.memory.tests.abstention:Abstention",
    "aggregation": "themis.memory.tests.aggregation:Aggregation",
    "chapterbreak": "themis.memory.tests.chapterbreak:ChapterBreak",
    "colours": "themis.memory.tests.colours:Colours",
    "conflicting_personal_info": "themis.memory.tests.conflicting_personal_info:ConflictingPersonalInfo",
    "contradiction": "themis.memory.tests.contradiction:ContradictionDetection",
    "delayed_recall": "themis.memory.tests.delayed_recall:DelayedRecall",
    "forgetting": "themis.memory.tests.forgetting:Forgetting",
    "how_to_think": "themis.memory.tests.how_to_think:HowToThink",
    "instruction_exceptions": "themis.memory.tests.instruction_exceptions:InstructionExceptions",
    "instruction_recall": "themis.memory.tests.instruction_recall:InstructionRecall",
    "interference": "themis.memory.tests.interference:Interference",
    "jokes": "themis.memory.tests.jokes:Jokes",
    "knowledge_update": "themis.memory.tests.knowledge_update:KnowledgeUpdate",
    "kv": "themis.memory.tests.key_values:KeyValuePairs",
    "locations": "themis.memory.tests.locations:Locations",
    "locations_directions": "themis.memory.tests.locations_directions:LocationsDirections",
    "name_list": "themis.memory.tests.name_list:NameList",
    "names": "themis.memory.tests.names:Names",
    "preference": "themis.memory.tests.preference:PreferenceFollowing",
    "prospective_memory": "themis.memory.tests.prospective_memory:ProspectiveMemory",
    "restaurant": "themis.memory.tests.restaurant:Restaurant",
    "sallyanne": "themis.memory.tests.sallyanne:SallyAnne",
    "shopping": "themis.memory.tests.shopping:Shopping",
    "spy_meeting": "themis.memory.tests.spy_meeting:SpyMeeting",
    "temporal_order": "themis.memory.tests.temporal_order:TemporalOrder",
    "trigger_response": "themis.memory.tests.trigger_response:TriggerResponse",
    "verbatim": "themis.memory.tests.verbatim:Verbatim",
}
