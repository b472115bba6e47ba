# SPDX-License-Identifier: Apache-2.0
"""The vLLM client against a real server with a real, small model: `make test-vllm` starts one."""

import importlib
import os
from collections.abc import Iterator
from typing import Any

import pytest
from datapizza.tools import Tool
from pydantic import BaseModel, Field

URL = os.environ.get("AKAION_VLLM", "")
pytestmark = pytest.mark.skipif(not URL, reason="no vLLM: make test-vllm")


class Town(BaseModel):
    """A town."""

    name: str = Field(max_length=12)
    coast: bool


# Bounded, or a model this small may write letters until its tokens are spent.
weather = Tool(
    name="weather",
    description="Say what the weather is.",
    properties={"city": {"type": "string", "maxLength": 12}},
    required=["city"],
)


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    module = importlib.import_module("datapizza.clients.vllm")
    made = module.VllmClient(model="smollm2-135m-instruct", base_url=URL, temperature=0.0)
    yield made
    made.close()


def test_even_a_tiny_model_fills_a_schema_and_calls_a_tool(client: Any) -> None:
    (town,) = client.structured_response(input="A town in Italy?", output_cls=Town).structured_data
    assert isinstance(town, Town)
    response = client.invoke("Weather in Rome?", tools=[weather], tool_choice="required", max_tokens=200)
    (call,) = response.function_calls
    assert set(call.arguments) == {"city"}


def test_a_real_stream_ends_whole(client: Any) -> None:
    pieces = list(client.stream_invoke("Count to five.", max_tokens=16))
    assert "".join(piece.delta or "" for piece in pieces) == pieces[-1].text
    assert pieces[-1].usage.completion_tokens > 0
