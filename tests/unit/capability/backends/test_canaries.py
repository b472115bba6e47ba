# SPDX-License-Identifier: Apache-2.0
"""I7: what a canary tries is what a codec sends. So the bytes are those of its own `encode`."""

import json
from dataclasses import replace

import pytest

from runner.capability.backends.anthropic import AnthropicBackend
from runner.capability.backends.embedded import EmbeddedBackend
from runner.capability.backends.llamacpp import LlamaCppBackend
from runner.capability.backends.ollama import OllamaBackend
from runner.capability.backends.openai import OpenAIBackend
from runner.capability.backends.vllm import VllmBackend
from runner.kernel.capabilities import Mechanism
from runner.kernel.inference import Address
from runner.kernel.messages import JsonObject, ToolSpec
from runner.kernel.ports import Probeable
from runner.kernel.probing import Canary

HERE = Address(scheme="http", host="127.0.0.1", port=8080)
CODECS: list[Probeable] = [
    LlamaCppBackend(name="b", model="m", address=HERE, context=4096),
    VllmBackend(name="b", model="m", address=HERE, context=4096),
    OllamaBackend(name="b", model="m", address=HERE, context=4096),
    OpenAIBackend(name="b", model="m", address=HERE),
    AnthropicBackend(name="b", model="m", address=HERE),
]
NAMES = [type(codec).__name__ for codec in CODECS]
SCHEMA: JsonObject = {
    "type": "object",
    "properties": {"v": {"enum": ["zq7123"]}},
    "required": ["v"],
    "additionalProperties": False,
}
TOOL = ToolSpec(name="dim", description="Turns it.", parameters=SCHEMA)
PLAIN = Canary(mechanism=Mechanism.TOOLS, words="w", schema=SCHEMA, answer={"v": "zq7123"}, max_tokens=10)


@pytest.mark.parametrize("codec", CODECS, ids=NAMES)
def test_i7_the_form_in_use_is_tried_as_it_is_used(codec: Probeable) -> None:
    canary = replace(PLAIN, mechanism=codec.mechanisms[0])
    assert codec.canary(canary) == codec.encode(canary.request(held=True))
    assert b"zq7123" in codec.canary(canary).body


@pytest.mark.parametrize("codec", CODECS, ids=NAMES)
def test_i7_tools_are_tried_as_they_are_used(codec: Probeable) -> None:
    canary = replace(PLAIN, tools=(TOOL,), called="dim")
    assert codec.canary(canary) == codec.encode(canary.request(held=False))
    assert b'"dim"' in codec.canary(canary).body


@pytest.mark.parametrize("codec", CODECS, ids=NAMES)
def test_each_form_has_a_place_of_its_own_in_a_request(codec: Probeable) -> None:
    tried = dict.fromkeys((*codec.mechanisms, *codec.other_forms))
    bodies = set()
    for mechanism in tried:
        tools = (TOOL,) if mechanism.value.startswith("tool") else ()
        choice = "dim" if mechanism is Mechanism.TOOL_CHOICE else ""
        bodies.add(codec.canary(replace(PLAIN, mechanism=mechanism, tools=tools, choice=choice)).body)
    assert len(bodies) == len(tried)


def test_the_engine_in_this_process_answers_a_canary_whole() -> None:
    codec = EmbeddedBackend(name="b", model="m", context=4096)
    canary = replace(PLAIN, mechanism=Mechanism.GRAMMAR)
    sent, used = (
        json.loads(wire.body) for wire in (codec.canary(canary), codec.encode(canary.request(held=True)))
    )
    for member in ("stream_options", "return_progress"):
        assert member in used
        del used[member]
    assert sent == used | {"stream": False}
