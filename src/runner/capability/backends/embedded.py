# SPDX-License-Identifier: Apache-2.0
"""The codec for llama.cpp inside this process: llama-server's protocol without a socket.

Owns one difference. The engine can be stopped only when it reports something, so every request streams and
asks for progress on the prompt, whether or not the caller wants a stream. It reads no media: no projector is
loaded. Leaves the engine itself to
`transport.inprocess`. Serves P1 as `llamacpp` does.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Final

from runner.capability.backends.canaries import ENGINE_OTHERS, LLAMA, canary_wire, chat_form, chat_heard
from runner.capability.backends.chat import chat_decoder, chat_wire, grammar_field
from runner.capability.backends.facts import engine_facts, get
from runner.capability.backends.protocol import reply_budget
from runner.kernel.capabilities import Facts, Mechanism
from runner.kernel.inference import Address, Answer, InferenceRequest, WireRequest
from runner.kernel.messages import JsonObject
from runner.kernel.ports import Decoder
from runner.kernel.probing import Canary, Heard

_WHOLE: Final[JsonObject] = {"stream": False, "stream_options": None, "return_progress": None}
"""A canary is short, and its answer is read whole."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddedBackend:
    """The embedded engine with `model` loaded and a context of `context` tokens (0: not known).

    Implements `Backend` and `Probeable`.
    """

    name: str
    model: str
    context: int
    address: Address = field(default=Address(scheme="inproc"), init=False)

    mechanisms: ClassVar[tuple[Mechanism, ...]] = LLAMA
    other_forms: ClassVar[tuple[Mechanism, ...]] = ENGINE_OTHERS
    wrapped: ClassVar[bool] = False

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

    def decoder(self, request: InferenceRequest, status: int) -> Decoder:
        """Return a decoder for the reply to `request` that arrived with `status`."""
        return chat_decoder(name=self.name, request=request, status=status, stream=True)

    def canary(self, canary: Canary) -> WireRequest:
        """Return the exact bytes of `canary`; raise `BackendError` if it cannot be expressed."""
        return canary_wire(self, canary, uses=self.mechanisms[0], form=chat_form, also=_WHOLE)

    def heard(self, body: bytes) -> Heard:
        """Return what `body`, the whole reply to a canary, says; raise `BackendError`."""
        return chat_heard(body)

    @property
    def facts_asked(self) -> tuple[WireRequest, ...]:
        """What the runtime is asked about itself."""
        return (get(self.address, "/props"),)

    def facts(self, answers: Sequence[Answer | None]) -> Facts:
        """Return what `answers` say. Total."""
        return engine_facts(answers)
