# SPDX-License-Identifier: Apache-2.0
"""The codec for llama-server: chat completions with a GBNF grammar.

Owns the fields only llama.cpp knows. Leaves the shared shape to `chat`, grammars to `capability.grammar`,
and I/O to the perimeter's transport. Serves P1: a request becomes the same bytes whatever came before it.
Tools and a grammar are never sent together: llama-server refuses that.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from runner.capability.backends.canaries import LLAMA, LLAMA_OTHERS, canary_wire, chat_form, chat_heard
from runner.capability.backends.chat import chat_decoder, chat_wire, grammar_field
from runner.capability.backends.facts import llama_facts, llama_questions
from runner.capability.backends.protocol import reply_budget
from runner.kernel.capabilities import Facts, Mechanism
from runner.kernel.inference import Address, Answer, InferenceRequest, WireRequest
from runner.kernel.ports import Decoder
from runner.kernel.probing import Canary, Heard


@dataclass(frozen=True, slots=True, kw_only=True)
class LlamaCppBackend:
    """A llama-server at `address`, asked for `model`. Implements `Backend` and `Probeable`.

    `context` is its context in tokens, 0 when that is not known.
    """

    name: str
    model: str
    address: Address
    context: int

    mechanisms: ClassVar[tuple[Mechanism, ...]] = LLAMA
    other_forms: ClassVar[tuple[Mechanism, ...]] = LLAMA_OTHERS
    wrapped: ClassVar[bool] = False

    def encode(self, request: InferenceRequest) -> WireRequest:
        """Return the exact bytes for `request`; raise `BackendError` if it cannot be expressed."""
        fields = {
            "max_tokens": reply_budget(self.name, request, self.context),
            "cache_prompt": True,
            **grammar_field(self.name, request.schema),
        }
        return chat_wire(
            name=self.name, model=self.model, address=self.address, request=request, fields=fields
        )

    def decoder(self, request: InferenceRequest, status: int) -> Decoder:
        """Return a decoder for the reply to `request` that arrived with `status`."""
        return chat_decoder(name=self.name, request=request, status=status, stream=request.stream)

    def canary(self, canary: Canary) -> WireRequest:
        """Return the exact bytes of `canary`; raise `BackendError` if it cannot be expressed."""
        return canary_wire(self, canary, uses=self.mechanisms[0], form=chat_form)

    def heard(self, body: bytes) -> Heard:
        """Return what `body`, the whole reply to a canary, says; raise `BackendError`."""
        return chat_heard(body)

    @property
    def facts_asked(self) -> tuple[WireRequest, ...]:
        """What the runtime is asked about itself."""
        return llama_questions(self.address)

    def facts(self, answers: Sequence[Answer | None]) -> Facts:
        """Return what `answers` say. Total."""
        return llama_facts(answers)
