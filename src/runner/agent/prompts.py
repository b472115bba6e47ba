# SPDX-License-Identifier: Apache-2.0
"""Every word the runner says to a model, and every schema it asks for.

Owns texts and limits, so that they can be read, versioned and measured in one place. They speak of no
practice, document or question in particular.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Final

from runner.kernel.messages import JsonObject, ToolSpec
from runner.kernel.tiers import CallFailure

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

FINISH: Final = "answer"
"""What the model says when it needs no further call."""
NATIVE: Final = "You help with a task by calling tools."
CALL: Final = f"Call the next tool, or several at once. If you know enough, write only: {FINISH}"
FORM: Final = '<tool_call>{"name": "add_days", "arguments": {"date": "2026-03-01", "days": 30}}</tool_call>'
"""How a call is written as text, of a tool that is not there. Many models know this form."""
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


def in_text(tools: Iterable[ToolSpec]) -> str:
    """Return the system message that describes `tools`, to be called in the text of a reply.

    A small model that is shown a schema as "arguments" gives it back as the arguments; one example of a call
    keeps it from that.
    """
    return (
        "You help with a task by calling tools. These are the tools:\n<tools>\n"
        + "\n".join(map(_as_json, tools))
        + "\n</tools>\nWrite each call as one line, with the values of its arguments. For example, a tool "
        f"add_days would be called like this:\n{FORM}"
    )


def _as_json(tool: ToolSpec) -> str:
    described = {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
    return json.dumps(described, ensure_ascii=False)


PROBLEMS: Final[Mapping[CallFailure, str]] = {
    CallFailure.NO_CALL: "it holds no call",
    CallFailure.WRONG_TOOL: "it names a tool that does not exist",
    CallFailure.MALFORMED_JSON: "its JSON cannot be read",
    CallFailure.SCHEMA_VIOLATION: "an argument has the wrong type or value",
    CallFailure.MISSING_REQUIRED: "an argument that the tool needs is missing",
    CallFailure.HALLUCINATED_ARGUMENT: "it has an argument that the tool does not have",
    CallFailure.TRUNCATED: "it is cut off",
    CallFailure.AMBIGUOUS: "it can be read in more than one way",
    CallFailure.TOO_MANY_CALLS: "it asks for too many calls",
    CallFailure.REFUSED: "it could not be had",
}


def repair(failure: CallFailure, where: str) -> str:
    """Return the message that says what was wrong with a reply, and `where` in it, in our words only."""
    problem = " ".join(filter(None, [PROBLEMS[failure], where]))
    return f"Your last reply cannot be used: {problem}. Write only the call, in the form that was asked for."


FREE_SCHEMA: Final[JsonObject] = {
    "type": "object",
    "properties": {"answer": {"type": "string", "maxLength": ANSWER_LENGTH}},
    "required": ["answer"],
    "additionalProperties": False,
}


def own_texts(tools: Iterable[ToolSpec]) -> tuple[str, ...]:
    """Return everything the runner says to a model in its own words, `tools` described included."""
    specs = tuple(tools)
    fixed = (TRANSLATE, READ, FREE_ANSWER, CHOOSE, NATIVE, CALL, choose(specs), in_text(specs))
    repairs = (repair(failure, "") for failure in CallFailure)
    return (*fixed, *repairs, *(fill(tool) for tool in specs))
