# SPDX-License-Identifier: Apache-2.0
"""The codec for vLLM's OpenAI-like server: chat completions with `structured_outputs`.

Owns the fields only vLLM knows. Leaves the shared shape to `chat`, grammars to `capability.grammar`, what the
server says of itself to `listings`, and I/O to the perimeter's transport. Serves P1: a request becomes the
same bytes whatever came before it.

Of the kinds of constraint in `structured_outputs`, of which a request may have one, it is `grammar`, in the
GBNF of our compiler. With `json` whitespace has no bound: `disable_any_whitespace` of a request is accepted
and read by nobody, so a small model spends its budget on line ends. The older `guided_*` are accepted and
ignored altogether.
Source: protocol and sampling parameters of vLLM 0.32; `scripts/vllm` holds a real server to this.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from runner.capability.backends.chat import ChatCodec
from runner.capability.backends.facts import vllm_facts, vllm_questions
from runner.capability.backends.protocol import grammar_of, reply_budget
from runner.kernel.capabilities import Facts, Mechanism
from runner.kernel.inference import Answer, InferenceRequest, WireRequest
from runner.kernel.messages import JsonObject

_QUIET: Final[JsonObject] = {
    "include_reasoning": False,
    "chat_template_kwargs": {"enable_thinking": False},
}
"""Thinking is off where the template knows the word, and not sent back where it does not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VllmBackend(ChatCodec):
    """A vLLM server at `address`, asked for `model`, the name under which it is served.

    Implements `Backend` and `Probeable`. `context` is its context in tokens (`--max-model-len`), 0 when that
    is not known. A prompt that exceeds it is refused by the server, never cut.
    """

    context: int

    mechanisms: ClassVar[tuple[Mechanism, ...]] = (
        Mechanism.STRUCTURED_OUTPUTS,
        Mechanism.TOOLS,
        Mechanism.TOOLS_WITH_FORMAT,
        Mechanism.GUIDED_JSON,
        Mechanism.TOOL_CHOICE,
    )
    other_forms: ClassVar[tuple[Mechanism, ...]] = (
        Mechanism.GUIDED_JSON,
        Mechanism.TOOL_CHOICE,
        Mechanism.RESPONSE_FORMAT,
        Mechanism.JSON_OBJECT,
    )
    wrapped: ClassVar[bool] = False

    def fields(self, request: InferenceRequest) -> JsonObject:
        """Return what only this runtime knows; raise `BackendError`."""
        return {
            "max_tokens": reply_budget(self.name, request, self.context),
            **_QUIET,
            **_constraint(self.name, request.schema),
        }

    @property
    def facts_asked(self) -> tuple[WireRequest, ...]:
        """What the runtime is asked about itself."""
        return vllm_questions(self.address)

    def facts(self, answers: Sequence[Answer | None]) -> Facts:
        """Return what `answers` say. Total."""
        return vllm_facts(answers, model=self.model)


def _constraint(name: str, schema: JsonObject | None) -> JsonObject:
    return {} if schema is None else {"structured_outputs": {"grammar": grammar_of(name, schema)}}
