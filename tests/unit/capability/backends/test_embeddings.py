# SPDX-License-Identifier: Apache-2.0
"""The codecs of embedding endpoints: bytes out, vectors in, nothing believed (P1, I12)."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.capability.backends.embeddings import OllamaEmbedder, OpenAIEmbedder
from runner.kernel.errors import BackendError
from runner.kernel.inference import Address, EmbeddingReply, EmbeddingRequest, Usage
from runner.kernel.labels import Label
from runner.kernel.messages import Block, BlockKind, Media
from runner.kernel.ports import Embedder

HERE = Address(scheme="http", host="127.0.0.1", port=8080)
OPENAI = OpenAIEmbedder(name="local-embeddings", model="m", address=HERE)
OLLAMA = OllamaEmbedder(name="local-embeddings", model="m", address=HERE)
BOTH = pytest.mark.parametrize("codec", [OPENAI, OLLAMA], ids=["openai", "ollama"])


def batch(*texts: str) -> EmbeddingRequest:
    blocks = [
        Block(id=f"b{n}", kind=BlockKind.FOREIGN, text=each, label=Label()) for n, each in enumerate(texts)
    ]
    return EmbeddingRequest(blocks=tuple(blocks))


def listing(*entries: tuple[object, object], **more: object) -> bytes:
    return json.dumps({"data": [{"index": i, "embedding": v} for i, v in entries], **more}).encode()


def test_the_whole_batch_is_in_the_bytes_in_order() -> None:
    wire = OPENAI.encode(batch("uno", "due"))
    assert (wire.method, wire.path, wire.address) == ("POST", "/v1/embeddings", HERE)
    assert json.loads(wire.body) == {"model": "m", "input": ["uno", "due"], "encoding_format": "float"}
    wire = OLLAMA.encode(batch("uno", "due"))
    assert wire.path == "/api/embed"
    body = json.loads(wire.body)
    assert (body["input"], body["truncate"], body["keep_alive"]) == (["uno", "due"], False, "5m")


@BOTH
def test_media_are_not_embedded(codec: Embedder) -> None:
    picture = Media(mime="image/png", data=b"x")
    block = Block(id="b1", kind=BlockKind.FOREIGN, text="", label=Label(), media=picture)
    with pytest.raises(BackendError, match="only text is embedded"):
        codec.encode(EmbeddingRequest(blocks=(block,)))


def test_vectors_are_put_in_the_order_of_their_indices() -> None:
    body = listing((1, [3, 4.5]), (0, [1, 2]), usage={"prompt_tokens": 7})
    reply = OPENAI.parse(batch("a", "b"), 200, body)
    assert reply == EmbeddingReply(vectors=((1.0, 2.0), (3.0, 4.5)), usage=Usage(prompt_tokens=7))
    body = json.dumps({"embeddings": [[1, 2], [3, 4.5]], "prompt_eval_count": 7}).encode()
    assert OLLAMA.parse(batch("a", "b"), 200, body) == reply


@pytest.mark.parametrize(
    "body",
    [
        listing((0, [1]), (0, [2])),
        listing((0, [1]), (2, [2])),
        listing((True, [1]), (0, [2])),
        listing((None, [1])),
        listing((0, "AAAA")),
        listing((0, [True])),
        listing((0, ["1"])),
        listing((0, [10**400])),
        b'{"data": {}}',
        b"[]",
        b"\xff",
        b"",
    ],
)
def test_a_listing_that_is_not_one_is_refused(body: bytes) -> None:
    with pytest.raises(BackendError, match="did not answer in its protocol"):
        OPENAI.parse(batch("a", "b"), 200, body)


@BOTH
@pytest.mark.parametrize("status", [400, 404, 500])
def test_i12_an_error_is_told_by_its_status_alone(codec: Embedder, status: int) -> None:
    with pytest.raises(BackendError, match=f"answered {status}") as caught:
        codec.parse(batch("a"), status, b'{"error": {"message": "you said: il segreto"}}')
    assert "segreto" not in str(caught.value)


NUMBERS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3)
ENTRIES = st.dictionaries(st.sampled_from(["index", "embedding"]), NUMBERS | st.lists(NUMBERS, max_size=3))


@BOTH
@given(
    items=st.lists(ENTRIES | NUMBERS | st.lists(NUMBERS, max_size=3), max_size=3),
    raw=st.binary(max_size=40) | st.none(),
)
def test_parsing_is_total(codec: Embedder, items: list[object], raw: bytes | None) -> None:
    body = json.dumps({"data": items, "embeddings": items}).encode() if raw is None else raw
    try:
        reply = codec.parse(batch("a"), 200, body)
    except BackendError:
        return
    assert all(type(number) is float for vector in reply.vectors for number in vector)
