# SPDX-License-Identifier: Apache-2.0
"""What a runtime can be held to, as it was seen to behave.

Owns the words of a finding, what is known of one backend, and which tiers follow. Leaves asking to the
perimeter and the forms of a question to codecs. Carries I7: what was not seen to hold is not counted on. A
runtime that accepts a constraint and ignores it answers 200 too, so acceptance is no finding.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from runner.kernel.messages import JsonObject
from runner.kernel.tiers import WITHOUT_NATIVE, Tier


class Standing(StrEnum):
    """What became of a mechanism when it was tried."""

    ENFORCED = "enforced"
    """Twice, with two different nonces, exactly what only the mechanism could have brought about."""
    IGNORED = "ignored"
    """The runtime answered as if it had not been asked."""
    REFUSED = "refused"
    """The runtime said that it does not do this."""
    UNVERIFIED = "unverified"
    """Not tried, no answer, an answer that says nothing, or right only once."""


class Mechanism(StrEnum):
    """A way to hold a reply to something, named after its place in the request."""

    GRAMMAR = "grammar"
    """llama.cpp: `grammar`, a GBNF text."""
    JSON_SCHEMA = "json_schema"
    """llama-server: `json_schema`, a schema."""
    RESPONSE_FORMAT = "response_format"
    """OpenAI: `response_format` with the schema in `json_schema.schema`."""
    RESPONSE_FORMAT_FLAT = "response_format_flat"
    """The same with the schema beside `type`: llama-server then takes any object."""
    JSON_OBJECT = "json_object"
    """llama-cpp-python: `response_format` of type `json_object` with `schema`."""
    FORMAT = "format"
    """Ollama: `format`, a schema."""
    STRUCTURED_OUTPUTS = "structured_outputs"
    """vLLM since 0.12: `structured_outputs.json`."""
    GUIDED_JSON = "guided_json"
    """vLLM before: accepted and ignored since."""
    OUTPUT_CONFIG = "output_config"
    """Anthropic: `output_config.format`."""
    GRAMMAR_UNTYPED = "grammar_untyped"
    """llama.cpp: `grammar` of a wrong type. To refuse is right."""
    GRAMMAR_BROKEN = "grammar_broken"
    """llama.cpp: `grammar` that no parser reads. To refuse is right."""
    TOOLS = "tools"
    """A call in the runtime's own protocol, asked for in words, that comes back parsed and valid."""
    TOOL_CHOICE = "tool_choice"
    """A call to the tool that the request names, where the words ask for another."""
    TOOLS_WITH_FORMAT = "tools_with_format"
    """Tools and a schema in one request: the reply held to the schema. Never used; good to know."""


class Thinking(StrEnum):
    """Where a model's reasoning was seen."""

    BESIDE = "beside"
    """In a member of its own, which is dropped. What stands there was not in the answer."""
    INLINE = "inline"
    """In the text of the answer, between tags."""
    ABSENT = "absent"
    """In no answer that was read."""
    UNVERIFIED = "unverified"
    """No answer was read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fingerprint:
    """Which runtime, model and template were asked: each a version, a digest or "" when it cannot be read."""

    build: str = ""
    model: str = ""
    template: str = ""

    @property
    def known(self) -> bool:
        """Whether all of it could be read: only then can a finding be kept for later."""
        return bool(self.build and self.model and self.template)


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What a runtime says of itself. `context` is in tokens, 0 when it does not say.

    `claims` are capabilities it lists, for show only: runtimes list what they do not do.
    """

    fingerprint: Fingerprint = Fingerprint()
    context: int = 0
    claims: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What one backend was seen to do.

    `uses` is the mechanism that its codec holds a reply to a schema with; None when it has none, or nobody
    knows. `standings` are the findings: what is not in it is unverified.
    """

    uses: Mechanism | None = None
    standings: Mapping[Mechanism, Standing] = field(default_factory=dict)
    thinking: Thinking = Thinking.UNVERIFIED
    facts: Facts = Facts()

    def __getitem__(self, mechanism: Mechanism) -> Standing:
        """Return what became of `mechanism`."""
        return self.standings.get(mechanism, Standing.UNVERIFIED)

    @property
    def tools_with_format(self) -> Standing:
        """What became of tools and a schema in one request."""
        return self[Mechanism.TOOLS_WITH_FORMAT]

    @property
    def context(self) -> int:
        """The context in tokens, 0 when it is not known."""
        return self.facts.context

    @property
    def ignores(self) -> tuple[Mechanism, ...]:
        """What the runtime accepts and does not do, in the order of `Mechanism`."""
        return tuple(each for each in Mechanism if self[each] is Standing.IGNORED)

    def as_json(self) -> JsonObject:
        """Return the one form in which this is shown, kept and digested."""
        return {
            "uses": self.uses,
            "standings": {each.value: self[each].value for each in Mechanism if each in self.standings},
            "thinking": self.thinking.value,
            "context": self.facts.context,
            "build": self.facts.fingerprint.build,
            "model": self.facts.fingerprint.model,
            "template": self.facts.fingerprint.template,
            "claims": list(self.facts.claims),
        }


UNPROBED: Final = Capabilities()
"""What is known of a backend nobody asked."""


def tiers_for(capabilities: Capabilities) -> tuple[Tier, ...]:
    """Return the tiers to try on a backend of these capabilities, the best first; text is always the last.

    Native tools only where real calls came back, a constraint only where the one its codec uses was enforced.
    Where nothing was found out at all, a constraint is worth a try: every reply is validated anyway.
    """
    if set(capabilities.standings.values()) <= {Standing.UNVERIFIED}:
        return WITHOUT_NATIVE
    uses = capabilities.uses
    native = capabilities[Mechanism.TOOLS] is Standing.ENFORCED
    constrained = uses is not None and capabilities[uses] is Standing.ENFORCED
    chosen = {Tier.NATIVE: native, Tier.CONSTRAINED: constrained, Tier.TEXT: True}
    return tuple(tier for tier in Tier if chosen[tier])
