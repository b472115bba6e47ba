# SPDX-License-Identifier: Apache-2.0
"""Every word the runner says to a model, and every schema it asks for.

Owns texts and limits, so that they can be read, versioned and measured in one place. They speak of no
practice, document or question in particular.
"""

from collections.abc import Iterable
from typing import Final

from runner.kernel.messages import JsonObject, ToolSpec

QUERY_LENGTH: Final = 400
"""Characters of a search query."""
CONTEXT_LENGTH: Final = 6000
"""Characters of tool output shown when choosing the next step."""
PAGE_LENGTH: Final = 2200
"""Characters of file lines that an answer is read from: a small model reads a page well, a book badly."""
MEANINGFUL: Final = 4
"""Characters a line needs to be worth showing: a rule or a bullet says nothing."""
GAP: Final = 2
"""Line numbers between two lines that still belong together: one blank line in between."""

TRANSLATE: Final = "Translate the question into Italian and into English."
TRANSLATE_SCHEMA: Final[JsonObject] = {
    "type": "object",
    "properties": {
        "it": {"type": "string", "maxLength": 120},
        "en": {"type": "string", "maxLength": 120},
    },
    "required": ["it", "en"],
    "additionalProperties": False,
}

NOT_FOUND: Final = "not found"
READ: Final = (
    "Answer the question from the files, briefly, in words of the files. "
    f"If the files do not say it, answer: {NOT_FOUND}"
)
READ_SCHEMA: Final[JsonObject] = {
    "type": "object",
    "properties": {"answer": {"type": "string", "maxLength": 80}},
    "required": ["answer"],
    "additionalProperties": False,
}

CHOOSE: Final = "Choose the next tool, or answer if you know enough."
FREE_ANSWER: Final = "Answer the question briefly, in its language, from what the tools returned."
ANSWER_LENGTH: Final = 300
"""Characters of an answer."""


def choose(tools: Iterable[ToolSpec]) -> str:
    """Return the system message of a choice among `tools`."""
    lines = [f"- {tool.name}: {tool.description}" for tool in tools]
    return "You help with a task by calling tools, one at a time:\n" + "\n".join(lines)


def fill(tool: ToolSpec) -> str:
    """Return the message that asks for the arguments of `tool`."""
    return f"Give the arguments of {tool.name} as JSON."


FREE_SCHEMA: Final[JsonObject] = {
    "type": "object",
    "properties": {"answer": {"type": "string", "maxLength": ANSWER_LENGTH}},
    "required": ["answer"],
    "additionalProperties": False,
}


def own_texts(tools: Iterable[ToolSpec]) -> tuple[str, ...]:
    """Return everything the runner says to a model in its own words, `tools` described included."""
    specs = tuple(tools)
    return (TRANSLATE, READ, FREE_ANSWER, CHOOSE, choose(specs), *(fill(tool) for tool in specs))
