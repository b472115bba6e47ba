# SPDX-License-Identifier: Apache-2.0
"""Every word the runner says to a model, and every schema it asks for.

Owns texts and limits, so that they can be read, versioned and measured in one place. They speak of no
practice, document or question in particular.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from runner.kernel.messages import JsonObject, ToolSpec

QUERY_LENGTH: Final = 400
"""Characters of a search query."""
CONTEXT_LENGTH: Final = 6000
"""Characters of tool output shown when choosing the next step."""

SEARCH_WORDS: Final = (
    "Give search words to find the answer in files written in Italian or English. "
    "Use short words and synonyms."
)
_WORD_LIST: Final[JsonObject] = {
    "type": "array",
    "items": {"type": "string", "minLength": 2, "maxLength": 24},
    "minItems": 1,
    "maxItems": 5,
}
WORDS_SCHEMA: Final[JsonObject] = {
    "type": "object",
    "properties": {"italian": _WORD_LIST, "english": _WORD_LIST},
    "required": ["italian", "english"],
    "additionalProperties": False,
}

CHOOSE: Final = "Choose the next tool, or answer if you know enough."
ANSWER: Final = (
    "Answer the question from the files. First copy the one line that states the answer, "
    "then answer briefly in the language of the question."
)
FREE_ANSWER: Final = "Answer the question briefly, in its language, from what the tools returned."
JUDGE: Final = "Does the line of the file answer the question?"
JUDGE_SCHEMA: Final[JsonObject] = {
    "type": "object",
    "properties": {"answers": {"type": "boolean"}},
    "required": ["answers"],
    "additionalProperties": False,
}
ANSWER_LENGTH: Final = 300
"""Characters of an answer."""


def choose(tools: Iterable[ToolSpec]) -> str:
    """Return the system message of a choice among `tools`."""
    lines = [f"- {tool.name}: {tool.description}" for tool in tools]
    return "You help with a task by calling tools, one at a time:\n" + "\n".join(lines)


def fill(tool: ToolSpec) -> str:
    """Return the message that asks for the arguments of `tool`."""
    return f"Give the arguments of {tool.name} as JSON."


def answer_schema(lines: Sequence[str]) -> JsonObject:
    """Return the schema of an answer that quotes one of `lines`, or none of them ("")."""
    return {
        "type": "object",
        "properties": {
            "quote": {"enum": [*dict.fromkeys(lines)]},
            "answer": {"type": "string", "maxLength": ANSWER_LENGTH},
        },
        "required": ["quote", "answer"],
        "additionalProperties": False,
    }


FREE_SCHEMA: Final[JsonObject] = {
    "type": "object",
    "properties": {"answer": {"type": "string", "maxLength": ANSWER_LENGTH}},
    "required": ["answer"],
    "additionalProperties": False,
}
