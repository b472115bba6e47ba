# SPDX-License-Identifier: Apache-2.0
"""The codec for OpenAI-shaped endpoints elsewhere: `openai` and `akaion`.

Owns how they take a reply schema. Leaves the shared shape to `chat`, the broker token or API key to the
perimeter, which adds it after `release()` (I5), and I/O to the transport. Serves P1.
"""

from dataclasses import dataclass

from runner.capability.backends.chat import chat_decoder, chat_wire
from runner.kernel.inference import Address, InferenceRequest, WireRequest
from runner.kernel.messages import JsonObject
from runner.kernel.ports import Decoder


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenAIBackend:
    """An OpenAI-shaped endpoint at `address`, asked for `model`. Implements `Backend`.

    A schema travels as a strict `response_format`. The endpoint may still ignore it, so the reply is
    validated by whoever asked.
    """

    name: str
    model: str
    address: Address

    def encode(self, request: InferenceRequest) -> WireRequest:
        """Return the exact bytes for `request`; raise `BackendError` if it cannot be expressed."""
        fields = {"max_completion_tokens": request.max_tokens, **_response_format(request.schema)}
        return chat_wire(
            name=self.name, model=self.model, address=self.address, request=request, fields=fields
        )

    def decoder(self, request: InferenceRequest, status: int) -> Decoder:
        """Return a decoder for the reply to `request` that arrived with `status`."""
        return chat_decoder(name=self.name, status=status, stream=request.stream)


def _response_format(schema: JsonObject | None) -> JsonObject:
    if schema is None:
        return {}
    named: JsonObject = {"name": "reply", "strict": True, "schema": schema}
    return {"response_format": {"type": "json_schema", "json_schema": named}}
