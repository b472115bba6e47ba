# SPDX-License-Identifier: Apache-2.0
"""Properties of the codecs: stateless encoding (P1), and replies that do not depend on their chunking."""

import itertools
import json
from collections.abc import Callable
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.capability.backends.anthropic import AnthropicBackend
from runner.capability.backends.embedded import EmbeddedBackend
from runner.capability.backends.llamacpp import LlamaCppBackend
from runner.capability.backends.ollama import OllamaBackend
from runner.capability.backends.openai import OpenAIBackend
from runner.capability.backends.vllm import VllmBackend
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
    lambda: OllamaBackend(name="b", model="m", address=HERE, context=4096),
    lambda: AnthropicBackend(name="b", model="m", address=HERE),
    lambda: VllmBackend(name="b", model="m", address=HERE, context=4096),
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


@pytest.mark.parametrize("make", MAKERS)
@given(request_=REQUESTS)
def test_every_message_is_in_the_bytes_whole_and_in_order(
    make: Callable[[], Backend], request_: InferenceRequest
) -> None:
    """A system prompt that stands beside the messages is in order among its like."""
    body = json.loads(make().encode(request_).body)
    asked = [(m.role.value, "\n\n".join(b.text for b in m.blocks)) for m in request_.messages]
    found = [(m["role"], m["content"]) for m in body["messages"]]
    if isinstance(make(), AnthropicBackend):
        system = [text for role, text in asked if role == "system"]
        assert body.get("system", "") == "\n\n".join(system)
        asked = [(role, text) for role, text in asked if role != "system"]
    assert found == asked


# --- replies, in the protocol of each server ----------------------------------------------------


def chat_stream(texts: list[str]) -> list[object]:
    objects: list[object] = [{"choices": [{"delta": {"content": text}}]} for text in texts]
    return [*objects, {"choices": [{"delta": {}, "finish_reason": "stop"}]}]


def anthropic_stream(texts: list[str]) -> list[object]:
    deltas = [{"type": "content_block_delta", "delta": {"type": "text_delta", "text": t}} for t in texts]
    finish = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 0}}
    return [{"type": "message_start", "message": {"usage": {}}}, {"type": "ping"}, *deltas, finish]


def ollama_stream(texts: list[str]) -> list[object]:
    objects: list[object] = [{"message": {"content": text}, "done": False} for text in texts]
    return [*objects, {"message": {"content": ""}, "done": True, "done_reason": "stop"}]


@dataclass(frozen=True, kw_only=True)
class Dialect:
    """How a server of one protocol says a text: as a stream of objects, framed, and as one object."""

    make: Callable[[], Backend]
    stream: Callable[[list[str]], list[object]]
    whole: Callable[[str], object]
    prefix: str = "data: "
    gap: int = 2
    last: str = ""


CHAT = Dialect(
    make=MAKERS[0],
    stream=chat_stream,
    whole=lambda text: {"choices": [{"message": {"content": text}, "finish_reason": "length"}]},
    last="[DONE]",
)
OLLAMA = Dialect(
    make=MAKERS[3],
    stream=ollama_stream,
    whole=lambda text: {"message": {"content": text}, "done": True, "done_reason": "length"},
    prefix="",
    gap=1,
)
ANTHROPIC = Dialect(
    make=MAKERS[4],
    stream=anthropic_stream,
    whole=lambda text: {
        "type": "message",
        "content": [{"type": "thinking", "thinking": "x"}, {"type": "text", "text": text}],
        "stop_reason": "max_tokens",
    },
    last='{"type":"message_stop"}',
)
DIALECTS = pytest.mark.parametrize("dialect", [CHAT, OLLAMA, ANTHROPIC], ids=["chat", "ollama", "anthropic"])


@st.composite
def said(draw: st.DrawFn) -> tuple[list[str], str, bool]:
    """Return the pieces of a reply, an end of line, and whether JSON is written in ASCII only."""
    return draw(st.lists(TEXT, max_size=6)), draw(st.sampled_from(["\n", "\r\n"])), draw(st.booleans())


def stream_of(dialect: Dialect, reply: tuple[list[str], str, bool]) -> tuple[str, bytes]:
    """Return the text of a reply and its bytes as a stream, in one of the forms servers use."""
    texts, end, ascii_only = reply
    lines = [json.dumps(item, ensure_ascii=ascii_only) for item in dialect.stream(texts)]
    lines += [dialect.last] if dialect.last else []
    return "".join(texts), "".join(f"{dialect.prefix}{line}{end * dialect.gap}" for line in lines).encode()


def cut(data: bytes, places: list[int]) -> list[bytes]:
    bounds = [0, *sorted(place % (len(data) + 1) for place in places), len(data)]
    return [data[start:stop] for start, stop in itertools.pairwise(bounds)]


def decoder(dialect: Dialect, *, stream: bool, status: int = 200) -> Decoder:
    return dialect.make().decoder(InferenceRequest(messages=(), stream=stream), status)


@DIALECTS
@given(reply=said(), places=st.lists(st.integers(0, 10_000), max_size=12))
def test_a_stream_reads_the_same_wherever_it_is_cut(
    dialect: Dialect, reply: tuple[list[str], str, bool], places: list[int]
) -> None:
    text, data = stream_of(dialect, reply)
    reader = decoder(dialect, stream=True)
    shown = "".join(reader.feed(chunk) for chunk in cut(data, places))
    assert shown == text
    assert reader.finish() == InferenceReply(text=text, finish="stop")


@DIALECTS
@given(reply=said())
def test_a_stream_may_come_byte_by_byte(dialect: Dialect, reply: tuple[list[str], str, bool]) -> None:
    text, data = stream_of(dialect, reply)
    reader = decoder(dialect, stream=True)
    for start in range(len(data)):
        reader.feed(data[start : start + 1])
    assert reader.finish().text == text


@DIALECTS
@given(text=TEXT, ascii_only=st.booleans(), places=st.lists(st.integers(0, 10_000), max_size=12))
def test_a_whole_reply_reads_the_same_wherever_it_is_cut(
    *, dialect: Dialect, text: str, ascii_only: bool, places: list[int]
) -> None:
    data = json.dumps(dialect.whole(text), ensure_ascii=ascii_only).encode()
    reader = decoder(dialect, stream=False)
    for chunk in cut(data, places):
        reader.feed(chunk)
    assert reader.finish() == InferenceReply(text=text, finish="length")


@DIALECTS
@given(reply=said(), keep=st.floats(0, 1, exclude_max=True))
def test_no_beginning_of_a_stream_passes_for_the_whole(
    dialect: Dialect, reply: tuple[list[str], str, bool], keep: float
) -> None:
    _, data = stream_of(dialect, reply)
    without_last_line_end = data.rstrip(b"\r\n")
    reader = decoder(dialect, stream=True)
    reader.feed(data[: int(len(without_last_line_end) * keep)])
    with pytest.raises(BackendError):
        reader.finish()


@DIALECTS
@given(data=st.binary(), stream=st.booleans(), status=st.sampled_from([200, 204, 302, 400, 500, 999]))
def test_a_decoder_is_total_on_any_bytes(*, dialect: Dialect, data: bytes, stream: bool, status: int) -> None:
    reader = decoder(dialect, stream=stream, status=status)
    reader.feed(data)
    with pytest.raises(BackendError):
        reader.finish()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(TEXT, inner),
)
KINDS = st.sampled_from(
    ["message", "message_start", "content_block_delta", "message_delta", "message_stop", "text", "text_delta"]
)
CHATTY = st.dictionaries(
    st.sampled_from(
        [
            "choices",
            "usage",
            "error",
            "message",
            "done",
            "done_reason",
            "type",
            "content",
            "delta",
            "stop_reason",
        ]
    ),
    JSON
    | KINDS
    | st.dictionaries(st.sampled_from(["type", "text", "content", "stop_reason", "usage"]), JSON | KINDS)
    | st.lists(
        st.dictionaries(
            st.sampled_from(["delta", "message", "finish_reason", "type", "text"]),
            JSON | KINDS | st.dictionaries(st.sampled_from(["content", "reasoning_content"]), JSON),
        )
    ),
)


@DIALECTS
@given(item=CHATTY, stream=st.booleans())
def test_a_decoder_is_total_on_almost_right_json(*, dialect: Dialect, item: object, stream: bool) -> None:
    lines = [json.dumps(item), *([dialect.last] if dialect.last else [])]
    reader = decoder(dialect, stream=stream)
    framed = "".join(f"{dialect.prefix}{line}\n\n" for line in lines)
    reader.feed(framed.encode() if stream else lines[0].encode())
    try:
        reply = reader.finish()
    except BackendError:
        return
    assert isinstance(reply.text, str)
