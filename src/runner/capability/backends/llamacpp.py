# SPDX-License-Identifier: Apache-2.0
"""The codec for llama-server: chat completions with a GBNF grammar.

Owns the fields only llama.cpp knows. Leaves the shared shape to `chat`, grammars to `capability.grammar`,
and I/O to the perimeter's transport. Serves P1: a request becomes the same bytes whatever came before it.
Tools and a grammar are never sent together: llama-server refuses that.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from runner.capability.backends.canaries import LLAMA, LLAMA_OTHERS
from runner.capability.backends.chat import ChatCodec, grammar_field
from runner.capability.backends.facts import llama_facts, llama_questions
from runner.capability.backends.protocol import reply_budget
from runner.kernel.capabilities import Facts, Mechanism
from runner.kernel.inference import Answer, InferenceRequest, WireRequest
from runner.kernel.messages import JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class LlamaCppBackend(ChatCodec):
    """A llama-server at `address`, asked for `model`. Implements `Backend` and `Probeable`.

    `context` is its context in tokens, 0 when that is not known.
    """

    context: int

    mechanisms: ClassVar[tuple[Mechanism, ...]] = LLAMA
    other_forms: ClassVar[tuple[Mechanism, ...]] = LLAMA_OTHERS
    wrapped: ClassVar[bool] = False

    def fields(self, request: InferenceRequest) -> JsonObject:
        """Return what only this runtime knows; raise `BackendError`."""
        return {
            "max_tokens": reply_budget(self.name, request, self.context),
            "cache_prompt": True,
            **grammar_field(self.name, request.schema),
        }

    @property
    def facts_asked(self) -> tuple[WireRequest, ...]:
        """What the runtime is asked about itself."""
        return llama_questions(self.address)

    def facts(self, answers: Sequence[Answer | None]) -> Facts:
        """Return what `answers` say. Total."""
        return llama_facts(answers)
