# SPDX-License-Identifier: Apache-2.0
"""The codec for OpenAI-shaped endpoints elsewhere: `openai` and `akaion`.

Owns how they take a reply schema. Leaves the shared shape to `chat`, the broker token or API key to the
perimeter, which adds it after `release()` (I5), and I/O to the transport. Serves P1.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from runner.capability.backends.chat import ChatCodec
from runner.kernel.capabilities import Facts, Mechanism
from runner.kernel.inference import Answer, InferenceRequest, WireRequest
from runner.kernel.messages import JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenAIBackend(ChatCodec):
    """An OpenAI-shaped endpoint at `address`, asked for `model`. Implements `Backend` and `Probeable`.

    A schema travels as a strict `response_format`. The endpoint may still ignore it, so the reply is
    validated by whoever asked.
    """

    mechanisms: ClassVar[tuple[Mechanism, ...]] = (
        Mechanism.RESPONSE_FORMAT,
        Mechanism.TOOLS,
        Mechanism.TOOLS_WITH_FORMAT,
        Mechanism.RESPONSE_FORMAT_FLAT,
        Mechanism.TOOL_CHOICE,
    )
    other_forms: ClassVar[tuple[Mechanism, ...]] = (
        Mechanism.RESPONSE_FORMAT_FLAT,
        Mechanism.TOOL_CHOICE,
        Mechanism.JSON_OBJECT,
        Mechanism.GUIDED_JSON,
    )
    wrapped: ClassVar[bool] = True

    def fields(self, request: InferenceRequest) -> JsonObject:
        """Return what only this runtime knows; raise `BackendError`."""
        return {"max_completion_tokens": request.max_tokens, **_response_format(request.schema)}

    @property
    def facts_asked(self) -> tuple[WireRequest, ...]:
        """What the runtime is asked about itself."""
        return ()

    def facts(self, answers: Sequence[Answer | None]) -> Facts:  # noqa: ARG002 - the Probeable port
        """Return what `answers` say. Total."""
        return Facts()


def _response_format(schema: JsonObject | None) -> JsonObject:
    if schema is None:
        return {}
    named: JsonObject = {"name": "reply", "strict": True, "schema": schema}
    return {"response_format": {"type": "json_schema", "json_schema": named}}
