# SPDX-License-Identifier: Apache-2.0
"""The llama.cpp client against a real llama-server with a real, small model."""

import importlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from datapizza.tools import Tool
from pydantic import BaseModel, Field

xllamacpp = pytest.importorskip("xllamacpp")
ROOT = Path(__file__).resolve().parents[2]
WEIGHTS = Path(os.environ.get("AKAION_HOME", ROOT / ".akaion")) / "models" / "SmolLM2-135M-Instruct.Q4_1.gguf"


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
    if not WEIGHTS.is_file():
        pytest.skip("the model is not here: make models")
    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(WEIGHTS)
    parameters.n_ctx = 2048
    parameters.port = 0
    running = xllamacpp.Server(parameters)
    made = importlib.import_module("datapizza.clients.llamacpp").LlamaCppClient(
        base_url=running.listening_address
    )
    yield made
    made.close()
    del running


@pytest.mark.model
def test_even_a_tiny_model_fills_a_schema_and_calls_a_tool(client: Any) -> None:
    (town,) = client.structured_response(input="A town in Italy?", output_cls=Town).structured_data
    assert isinstance(town, Town)
    response = client.invoke("Weather in Rome?", tools=[weather], tool_choice="required", max_tokens=200)
    (call,) = response.function_calls
    assert set(call.arguments) == {"city"}


@pytest.mark.model
def test_a_real_stream_ends_whole(client: Any) -> None:
    pieces = list(client.stream_invoke("Count to five.", max_tokens=16))
    assert "".join(piece.delta or "" for piece in pieces) == pieces[-1].text
    assert pieces[-1].usage.completion_tokens > 0
