# SPDX-License-Identifier: Apache-2.0
"""Media in the form of each protocol, and a clear error before anything is sent where there is none (P1)."""

import base64
import json
from collections.abc import Callable
from typing import Any

import pytest
from datapizza.clients.openai_like import OpenAILikeClient

from runner.adapters.datapizza import from_datapizza
from runner.capability.backends.anthropic import AnthropicBackend
from runner.capability.backends.embedded import EmbeddedBackend
from runner.capability.backends.llamacpp import LlamaCppBackend
from runner.capability.backends.ollama import OllamaBackend
from runner.capability.backends.openai import OpenAIBackend
from runner.kernel.errors import BackendError
from runner.kernel.inference import Address, InferenceRequest
from runner.kernel.labels import Label
from runner.kernel.messages import Block, BlockKind, Media, Message, Role
from runner.kernel.ports import Backend

HERE = Address(scheme="http", host="127.0.0.1", port=8080)
PNG = b"\x89PNG\r\n\x1a\n and so on"
URL = f"data:image/png;base64,{base64.b64encode(PNG).decode()}"
OPENAI = OpenAIBackend(name="b", model="m", address=HERE)
LLAMA = LlamaCppBackend(name="b", model="m", address=HERE, context=4096)
OLLAMA = OllamaBackend(name="b", model="m", address=HERE, context=4096)
ANTHROPIC = AnthropicBackend(name="b", model="m", address=HERE)
EMBEDDED = EmbeddedBackend(name="b", model="m", context=4096)


def theirs() -> Backend:
    return from_datapizza(
        OpenAILikeClient(api_key="-", model="m", base_url="http://127.0.0.1:8080/v1"), name="b"
    )


def text(said: str) -> Block:
    return Block(id="b0", kind=BlockKind.GOAL, text=said, label=Label())


def media(mime: str = "image/png", data: bytes = PNG) -> Block:
    return Block(id="b1", kind=BlockKind.FOREIGN, text="", label=Label(), media=Media(mime=mime, data=data))


def asked(*blocks: Block, role: Role = Role.USER) -> InferenceRequest:
    return InferenceRequest(messages=(Message(role=role, blocks=blocks),))


def content(backend: Backend, *blocks: Block) -> Any:
    return json.loads(backend.encode(asked(*blocks)).body)["messages"][0]["content"]


@pytest.mark.parametrize("backend", [OPENAI, LLAMA], ids=["openai", "llamacpp"])
def test_a_chat_completion_carries_pictures_as_data_urls_in_order(backend: Backend) -> None:
    assert content(backend, text("before"), media(), text("after")) == [
        {"type": "text", "text": "before"},
        {"type": "image_url", "image_url": {"url": URL}},
        {"type": "text", "text": "after"},
    ]


def test_a_datapizza_client_carries_pictures_behind_the_text() -> None:
    said, picture = content(theirs(), text("before"), media(), text("after"))
    assert said == {"type": "text", "text": "before\n\nafter"}
    assert (picture["type"], picture["image_url"]) == ("image_url", {"url": URL})


def test_anthropic_carries_pictures_and_documents_as_base64_sources() -> None:
    picture, document = content(ANTHROPIC, media(), media("application/pdf", b"%PDF-1.7"))
    source = {"type": "base64", "media_type": "image/png", "data": base64.b64encode(PNG).decode()}
    assert picture == {"type": "image", "source": source}
    assert (document["type"], document["source"]["media_type"]) == ("document", "application/pdf")
    assert base64.b64decode(document["source"]["data"]) == b"%PDF-1.7"


def test_ollama_carries_pictures_beside_the_text() -> None:
    said = json.loads(OLLAMA.encode(asked(text("before"), media(), text("after"))).body)["messages"][0]
    assert said == {
        "role": "user",
        "content": "before\n\nafter",
        "images": [base64.b64encode(PNG).decode()],
    }


CODECS: dict[str, Callable[[], Backend]] = {
    "openai": lambda: OPENAI,
    "llamacpp": lambda: LLAMA,
    "ollama": lambda: OLLAMA,
    "anthropic": lambda: ANTHROPIC,
    "datapizza": theirs,
}


@pytest.mark.parametrize("name", CODECS)
def test_a_message_without_media_is_what_it_was(name: str) -> None:
    assert content(CODECS[name](), text("a"), text("b")) == "a\n\nb"


@pytest.mark.parametrize("name", CODECS)
@pytest.mark.parametrize("role", [Role.SYSTEM, Role.ASSISTANT])
def test_media_belong_to_the_user(name: str, role: Role) -> None:
    with pytest.raises(BackendError, match="message of the user"):
        CODECS[name]().encode(asked(media(), role=role))


@pytest.mark.parametrize("name", CODECS)
@pytest.mark.parametrize("mime", ["image/svg+xml", "text/html", "audio/wav", "image/rssmra80a01f205x"])
def test_i12_a_type_without_a_form_is_refused_and_not_quoted(name: str, mime: str) -> None:
    with pytest.raises(BackendError, match="no form for this media") as caught:
        CODECS[name]().encode(asked(text("x"), media(mime)))
    assert "rssmra" not in str(caught.value)


def test_the_engine_in_this_process_reads_no_media() -> None:
    with pytest.raises(BackendError, match="no form for media"):
        EMBEDDED.encode(asked(media()))
