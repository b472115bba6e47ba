# SPDX-License-Identifier: Apache-2.0
"""The codec for llama.cpp inside this process: llama-server's protocol without a socket.

Owns one difference. The engine can be stopped only when it reports something, so every request streams and
asks for progress on the prompt, whether or not the caller wants a stream. It reads no media: no projector is
loaded. Leaves the engine itself to
`transport.inprocess`. Serves P1 as `llamacpp` does.
"""

from dataclasses import dataclass, field, replace

from runner.capability.backends.chat import chat_decoder, chat_wire, grammar_field
from runner.capability.backends.protocol import reply_budget
from runner.kernel.inference import Address, InferenceRequest, WireRequest
from runner.kernel.ports import Decoder


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddedBackend:
    """The embedded engine with `model` loaded and a context of `context` tokens (0: not known).

    Implements `Backend`.
    """

    name: str
    model: str
    context: int
    address: Address = field(default=Address(scheme="inproc"), init=False)

    def encode(self, request: InferenceRequest) -> WireRequest:
        """Return the exact bytes for `request`; raise `BackendError` if it cannot be expressed."""
        fields = {
            "max_tokens": reply_budget(self.name, request, self.context),
            "cache_prompt": True,
            "return_progress": True,
            **grammar_field(self.name, request.schema),
        }
        streamed = replace(request, stream=True)
        return chat_wire(
            name=self.name,
            model=self.model,
            address=self.address,
            request=streamed,
            fields=fields,
            media=(),
        )

    def decoder(self, request: InferenceRequest, status: int) -> Decoder:  # noqa: ARG002 - the Backend port
        """Return a decoder for the reply to `request` that arrived with `status`."""
        return chat_decoder(name=self.name, status=status, stream=True)
