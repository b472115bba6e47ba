# SPDX-License-Identifier: Apache-2.0
"""Properties of the codecs: stateless encoding (P1), and replies that do not depend on their chunking."""

import itertools
import json
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.capability.backends.embedded import EmbeddedBackend
from runner.capability.backends.llamacpp import LlamaCppBackend
from runner.capability.backends.openai import OpenAIBackend
from runner.kernel.errors import BackendError
from runner.kernel.inference import Address, InferenceReply, InferenceRequest
from runner.kernel.labels import Label
from runner.kernel.messages import Block, BlockKind, Message, Role
from runner.kernel.ports import Backend, Decoder

HERE = Address(scheme="http", host="127.0.0.1", port=8080)
MAKERS: list[Callable[[], Backend]] = [
    lambda: LlamaCppBackend(name="b", model="m", address=HERE, context=4096),
    lambda: EmbeddedBackend(name="b", model="m", context=4096),
    lambda: OpenAIBackend(name="b", model="m", address=HERE),
]
TEXT = st.text(st.characters(exclude_categories=["Cs"]))
BLOCKS = TEXT.map(lambda text: Block(id="b", kind=BlockKind.GOAL, text=text, label=Label()))
MESSAGES = st.builds(
    Message, role=st.sampled_from(list(Role)), blocks=st.lists(BLOCKS, max_size=3).map(tuple)
)
REQUESTS = st.builds(
    InferenceRequest,
    messages=st.lists(MESSAGES, max_size=4).map(tuple),
    max_tokens=st.integers(1, 1000),
    temperature=st.floats(0, 2),
    seed=st.integers(0, 2**32),
    stream=st.booleans(),
    schema=st.sampled_from([None, {"type": "string", "enum": ["yes", "no"]}]),
)


@pytest.mark.parametrize("make", MAKERS)
@given(before=st.lists(REQUESTS, max_size=3), request_=REQUESTS)
def test_encoding_depends_on_the_request_alone_p1(
    make: Callable[[], Backend], before: list[InferenceRequest], request_: InferenceRequest
) -> None:
    used = make()
    for earlier in before:
        used.encode(earlier)
    assert used.encode(request_) == make().encode(request_)


@given(request_=REQUESTS)
def test_every_message_is_in_the_bytes_whole_and_in_order(request_: InferenceRequest) -> None:
    body = json.loads(MAKERS[0]().encode(request_).body)
    assert [(m["role"], m["content"]) for m in body["messages"]] == [
        (m.role.value, "\n\n".join(b.text for b in m.blocks)) for m in request_.messages
    ]


@st.composite
def replies(draw: st.DrawFn) -> tuple[str, bytes]:
    """Return the text of a reply and its bytes as events, in one of the forms servers use."""
    texts = draw(st.lists(TEXT, max_size=6))
    end, ascii_only = draw(st.sampled_from(["\n", "\r\n"])), draw(st.booleans())
    objects: list[object] = [{"choices": [{"delta": {"content": text}}]} for text in texts]
    objects.append({"choices": [{"delta": {}, "finish_reason": "stop"}]})
    lines = [f"data: {json.dumps(item, ensure_ascii=ascii_only)}" for item in objects]
    return "".join(texts), "".join(f"{line}{end}{end}" for line in [*lines, "data: [DONE]"]).encode()


def cut(data: bytes, places: list[int]) -> list[bytes]:
    bounds = [0, *sorted(place % (len(data) + 1) for place in places), len(data)]
    return [data[start:stop] for start, stop in itertools.pairwise(bounds)]


def decoder(*, stream: bool) -> Decoder:
    return MAKERS[0]().decoder(InferenceRequest(messages=(), stream=stream), 200)


@given(reply=replies(), places=st.lists(st.integers(0, 10_000), max_size=12))
def test_a_stream_reads_the_same_wherever_it_is_cut(reply: tuple[str, bytes], places: list[int]) -> None:
    text, data = reply
    reader = decoder(stream=True)
    shown = "".join(reader.feed(chunk) for chunk in cut(data, places))
    assert shown == text
    assert reader.finish() == InferenceReply(text=text, finish="stop")


@given(reply=replies(), byte_by_byte=st.just(1))
def test_a_stream_may_come_byte_by_byte(reply: tuple[str, bytes], byte_by_byte: int) -> None:
    text, data = reply
    reader = decoder(stream=True)
    for start in range(0, len(data), byte_by_byte):
        reader.feed(data[start : start + byte_by_byte])
    assert reader.finish().text == text


@given(text=TEXT, ascii_only=st.booleans(), places=st.lists(st.integers(0, 10_000), max_size=12))
def test_a_whole_reply_reads_the_same_wherever_it_is_cut(
    *, text: str, ascii_only: bool, places: list[int]
) -> None:
    choice = {"message": {"content": text}, "finish_reason": "length"}
    data = json.dumps({"choices": [choice]}, ensure_ascii=ascii_only).encode()
    reader = decoder(stream=False)
    for chunk in cut(data, places):
        reader.feed(chunk)
    assert reader.finish() == InferenceReply(text=text, finish="length")


@given(reply=replies(), keep=st.floats(0, 1, exclude_max=True))
def test_no_beginning_of_a_stream_passes_for_the_whole(reply: tuple[str, bytes], keep: float) -> None:
    _, data = reply
    without_last_line_end = data.rstrip(b"\r\n")
    reader = decoder(stream=True)
    reader.feed(data[: int(len(without_last_line_end) * keep)])
    with pytest.raises(BackendError):
        reader.finish()


@given(data=st.binary(), stream=st.booleans(), status=st.sampled_from([200, 204, 302, 400, 500, 999]))
def test_a_decoder_is_total_on_any_bytes(*, data: bytes, stream: bool, status: int) -> None:
    reader = MAKERS[0]().decoder(InferenceRequest(messages=(), stream=stream), status)
    reader.feed(data)
    with pytest.raises(BackendError):
        reader.finish()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(TEXT, inner),
)
CHATTY = st.dictionaries(
    st.sampled_from(["choices", "usage", "error"]),
    JSON
    | st.lists(
        st.dictionaries(
            st.sampled_from(["delta", "message", "finish_reason"]),
            JSON | st.dictionaries(st.sampled_from(["content", "reasoning_content"]), JSON),
        )
    ),
)


@given(item=CHATTY, stream=st.booleans())
def test_a_decoder_is_total_on_almost_right_json(*, item: object, stream: bool) -> None:
    text = json.dumps(item)
    reader = decoder(stream=stream)
    reader.feed(f"data: {text}\n\ndata: [DONE]\n\n".encode() if stream else text.encode())
    try:
        reply = reader.finish()
    except BackendError:
        return
    assert isinstance(reply.text, str)
