# SPDX-License-Identifier: Apache-2.0
"""What a model may reply to a datapizza agent, as one JSON Schema, and the reply in datapizza's blocks.

Owns the choice among tools: a constrained reply like any other, so that a backend that knows no tools can
make it and the perimeter validates it. Leaves running the tool to datapizza, outside.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeGuard

from datapizza.core.clients.models import ClientResponse, TokenUsage
from datapizza.tools import Tool
from datapizza.type import FunctionCallBlock, StructuredBlock, TextBlock
from pydantic import BaseModel, ValidationError

from runner.adapters.datapizza.tools import spec_of
from runner.kernel.errors import ReplyInvalid, SealError
from runner.kernel.messages import Json, JsonObject
from runner.perimeter.client import Reply

HOW: Final = (
    "Reply with one JSON object. To call a tool, write "
    '{"reply": {"tool": NAME, "arguments": {...}}}. To answer, write {"reply": {"answer": ...}}. '
    "The tools, with the JSON Schema of their arguments:"
)
"""What the runner tells the model about replying."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """The form of a reply: one of `tools` by name, or an answer.

    The answer is text, or an object of `output_cls`: a pydantic model, or a dict for any JSON object.
    `must_call` leaves no way to answer.
    """

    tools: Mapping[str, Tool]
    output_cls: Any = None
    must_call: bool = False

    @property
    def answer(self) -> JsonObject | None:
        """The JSON Schema of an answer; None for text."""
        if self.output_cls is None:
            return None
        return self.output_cls.model_json_schema() if _is_model(self.output_cls) else {"type": "object"}

    @property
    def schema(self) -> JsonObject | None:
        """The JSON Schema of the whole reply; None for free text."""
        if not self.tools:
            return self.answer
        answer = {"type": "string"} if self.answer is None else dict(self.answer)
        definitions = {"$defs": answer.pop("$defs")} if "$defs" in answer else {}
        calls: list[Json] = [_call(tool) for tool in self.tools.values()]
        answers: list[Json] = [] if self.must_call else [_object({"answer": answer})]
        return {**_object({"reply": {"anyOf": [*calls, *answers]}}), **definitions}

    def read(self, reply: Reply) -> ClientResponse:
        """Return `reply`, which fits the schema, in datapizza's words.

        Raises `ReplyInvalid` if a rule of `output_cls` that no schema can say rejects it.
        """
        usage = TokenUsage(
            prompt_tokens=reply.usage.prompt_tokens, completion_tokens=reply.usage.completion_tokens
        )
        return ClientResponse(content=[self._block(reply)], usage=usage)

    def _block(self, reply: Reply) -> Any:  # noqa: ANN401 - one of datapizza's untyped blocks
        chosen = reply.value["reply"] if self.tools else {"answer": reply.value}
        if "tool" in chosen:
            name, arguments = chosen["tool"], chosen["arguments"]
            return FunctionCallBlock(id=reply.block.id, name=name, arguments=arguments, tool=self.tools[name])
        if self.output_cls is None:
            return TextBlock(content=chosen["answer"] if self.tools else reply.block.text)
        return StructuredBlock(content=_parse_output(self.output_cls, chosen["answer"]))


def parse_form(tools: Sequence[Tool] | None, choice: Any, output_cls: Any) -> Form:  # noqa: ANN401 - datapizza's arguments
    """Return the form that `tools` and `tool_choice` ask for; raise `SealError` for another word."""
    by_name = {tool.name: tool for tool in tools or ()}
    match choice:
        case "none":
            return Form(tools={}, output_cls=output_cls)
        case "auto":
            return Form(tools=by_name, output_cls=output_cls)
        case "required":
            return Form(tools=by_name, output_cls=output_cls, must_call=True)
        case [*names] if names and by_name.keys() >= set(names):
            return Form(tools={name: by_name[name] for name in names}, output_cls=output_cls, must_call=True)
        case _:
            raise SealError("tool_choice is auto, required, none, or a list of tools that were passed")


def _call(tool: Tool) -> JsonObject:
    spec = spec_of(tool)
    return _object({"tool": {"enum": [spec.name]}, "arguments": spec.parameters})


def _object(properties: JsonObject) -> JsonObject:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _is_model(output_cls: Any) -> TypeGuard[type[BaseModel]]:  # noqa: ANN401 - as above
    return isinstance(output_cls, type) and issubclass(output_cls, BaseModel)


def _parse_output(output_cls: Any, value: Any) -> Any:  # noqa: ANN401 - as above
    if not _is_model(output_cls):
        return value
    try:
        return output_cls.model_validate(value)
    except ValidationError:
        raise ReplyInvalid("schema_violation: the reply breaks a rule of its output class") from None
