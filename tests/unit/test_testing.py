# SPDX-License-Identifier: Apache-2.0
"""The public fakes do what their docstrings say, since programs that embed the runner test with them."""

import hashlib
import json

import httpx
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

import runner.testing
from runner.capability.backends.llamacpp import LlamaCppBackend
from runner.capability.transport.http import HttpTransport
from runner.kernel import ports
from runner.kernel.errors import BackendError, ToolError, TraceError, TransportError
from runner.kernel.inference import (
    Address,
    EmbeddingReply,
    EmbeddingRequest,
    InferenceReply,
    InferenceRequest,
)
from runner.kernel.labels import DataClass, Label
from runner.kernel.messages import Block, BlockKind, Media, Message, Role
from runner.testing import (
    BreakOff,
    FakeClassifier,
    FakeServerCheck,
    FakeTool,
    FixedEntropy,
    FixedLocality,
    FrozenClock,
    MemoryLogStore,
    MemorySaltStore,
    MemorySigner,
    Redirect,
    Reply,
    ScriptedApprover,
    ScriptedBackend,
    ScriptedEmbedder,
    ScriptedServer,
    ServerError,
    ServerReply,
    Truncated,
    vector_of,
)

CHAT = "/v1/chat/completions"


def ask(text: str = "Ciao.", *, stream: bool = False) -> InferenceRequest:
    block = Block(id="b1", kind=BlockKind.GOAL, text=text, label=Label())
    return InferenceRequest(messages=(Message(role=Role.USER, blocks=(block,)),), stream=stream)


async def infer(
    backend: ports.Backend, transport: ports.Transport, request: InferenceRequest
) -> InferenceReply:
    async with transport.open(backend.encode(request), credential=None) as reply:
        decoder = backend.decoder(request, reply.status)
        shown = "".join([decoder.feed(chunk) async for chunk in reply.chunks])
    assert shown in {"", decoder.finish().text}
    return decoder.finish()


def implements_all_ports() -> tuple[
    ports.Backend,
    ports.Embedder,
    ports.Transport,
    ports.LocalityCheck,
    ports.ServerCheck,
    ports.Classifier,
    ports.Approver,
    ports.Tool,
    ports.LogStore,
    ports.SaltStore,
    ports.Signer,
    ports.Clock,
    ports.Entropy,
]:
    """Return one fake of each port: mypy checks that each is one."""
    backend = ScriptedBackend(replies=[])
    return (
        backend,
        ScriptedEmbedder(),
        backend.transport,
        FixedLocality(locality=ports.Locality.L0),
        FakeServerCheck(locality=ports.Locality.L1),
        FakeClassifier(),
        ScriptedApprover(),
        FakeTool(),
        MemoryLogStore(),
        MemorySaltStore(),
        MemorySigner(),
        FrozenClock(),
        FixedEntropy(),
    )


def test_every_public_name_is_exported_and_documented() -> None:
    assert len(implements_all_ports()) == 13
    for name in runner.testing.__all__:
        assert hasattr(runner.testing, name)


# --- scripted inference --------------------------------------------------------------------------------


@pytest.mark.anyio
async def test_a_scripted_backend_answers_in_order_and_says_when_the_script_ends() -> None:
    backend = ScriptedBackend(
        replies=["Buongiorno a tutti.", {"tool": "read"}, lambda request: request.messages[0].blocks[0].text]
    )
    replies = [await infer(backend, backend.transport, ask(text)) for text in ("uno", "due", "tre")]
    assert [reply.text for reply in replies] == ["Buongiorno a tutti.", '{"tool": "read"}', "tre"]
    assert replies[0].finish == "stop"
    assert replies[0].usage.completion_tokens == 3
    assert [request.messages[0].blocks[0].text for request in backend.requests] == ["uno", "due", "tre"]
    assert [b"uno" in wire.body for wire in backend.transport.sent] == [True, False, False]
    with pytest.raises(TransportError, match="3 replies and was asked for one more"):
        await infer(backend, backend.transport, ask())


@pytest.mark.anyio
async def test_a_script_may_cut_a_reply_or_raise() -> None:
    replies: list[Reply] = [Truncated(text='{"a'), BackendError("scripted")]
    backend = ScriptedBackend(replies=replies)
    assert (await infer(backend, backend.transport, ask())).finish == "length"
    with pytest.raises(BackendError, match="scripted"):
        await infer(backend, backend.transport, ask())


@pytest.mark.anyio
async def test_a_scripted_embedder_answers_each_batch_and_keeps_it() -> None:
    def text(said: str) -> Block:
        return Block(id="b1", kind=BlockKind.FOREIGN, text=said, label=Label())

    embedder = ScriptedEmbedder(replies=[[[1.0, 2.0]], BackendError("scripted")])
    batch = EmbeddingRequest(blocks=(text("uno"), text("due")))

    async def answer() -> EmbeddingReply:
        async with embedder.transport.open(embedder.encode(batch), credential=None) as reply:
            body = b"".join([chunk async for chunk in reply.chunks])
        return embedder.parse(batch, reply.status, body)

    assert (await answer()).vectors == ((1.0, 2.0),)
    with pytest.raises(BackendError, match="scripted"):
        await answer()
    assert (await answer()).vectors == (vector_of("uno"), vector_of("due"))
    assert embedder.requests == [batch] * 3
    assert b"uno" in embedder.transport.sent[0].body
    with pytest.raises(BackendError, match="answered 500"):
        embedder.parse(batch, 500, b"no")


def test_the_vectors_of_fakes_are_finite_and_differ() -> None:
    assert vector_of("uno") == vector_of("uno") != vector_of("due")
    assert all(0 <= number <= 1 for number in vector_of("\ud800"))


def test_a_scripted_backend_carries_media_as_type_and_base64() -> None:
    picture = Media(mime="image/png", data=b"\x00\xff")
    block = Block(id="b1", kind=BlockKind.FOREIGN, text="", label=Label(), media=picture)
    request = InferenceRequest(messages=(Message(role=Role.USER, blocks=(block,)),))
    wire = ScriptedBackend(replies=[]).encode(request)
    assert json.loads(wire.body)["messages"][0]["content"] == [{"mime": "image/png", "data": "AP8="}]


@pytest.mark.anyio
async def test_a_scripted_reply_needs_its_end() -> None:
    decoder = ScriptedBackend(replies=[]).decoder(ask(), 200)
    assert decoder.feed('{"text": "perché"}\n{"te'.encode()) == "perché"
    with pytest.raises(BackendError):
        decoder.finish()


# --- the scripted server -------------------------------------------------------------------------------


def codec(server: ScriptedServer) -> LlamaCppBackend:
    return LlamaCppBackend(name="server", model="m", address=server.address, context=4096)


@pytest.mark.anyio
@pytest.mark.parametrize("stream", [False, True])
async def test_a_scripted_server_answers_a_real_codec(*, stream: bool) -> None:
    replies: list[ServerReply] = ["Così è.", {"a": 1}, lambda body: str(body["messages"])]
    with ScriptedServer(replies=replies) as server:
        texts = [(await infer(codec(server), HttpTransport(5.0), ask(stream=stream))).text for _ in replies]
        assert texts[:2] == ["Così è.", '{"a": 1}']
        assert "Ciao." in texts[2]
        assert server.bodies[0] == codec(server).encode(ask(stream=stream)).body
        with pytest.raises(BackendError, match="answered 500"):
            await infer(codec(server), HttpTransport(5.0), ask())


@pytest.mark.anyio
@pytest.mark.parametrize(
    "fault", [Redirect(location="http://127.0.0.1:1/"), BreakOff(text="x", after=3), ServerError(status=503)]
)
async def test_a_scripted_server_can_fail(fault: ServerReply) -> None:
    with ScriptedServer(replies=[fault]) as server, pytest.raises((TransportError, BackendError)):
        await infer(codec(server), HttpTransport(5.0), ask())


def test_a_scripted_server_embeds_without_using_up_a_reply() -> None:
    with ScriptedServer(replies=["Ciao."]) as server:
        asked = {"model": "m", "input": ["uno", "due"]}
        answer = httpx.post(server.url + "/v1/embeddings", json=asked, trust_env=False).json()
        assert server.take() == "Ciao."
    assert [tuple(each["embedding"]) for each in answer["data"]] == [vector_of("uno"), vector_of("due")]
    assert [each["index"] for each in answer["data"]] == [0, 1]


def test_a_scripted_server_keeps_every_byte_of_every_request() -> None:
    with ScriptedServer() as server:
        answer = httpx.get(server.url + "/elsewhere?x=1", headers={"X-Canary": "seen"}, trust_env=False)
        httpx.post(server.url + CHAT, content=b"\x00\xff", trust_env=False)
    assert answer.status_code == 404
    assert server.received[0].startswith(b"GET /elsewhere?x=1 HTTP/1.1\r\n")
    assert b"seen" in server.received[0]
    assert server.bodies == [b"", b"\x00\xff"]
    assert server.address == Address(scheme="http", host="127.0.0.1", port=server.address.port)


# --- judgement -----------------------------------------------------------------------------------------


def test_a_fake_classifier_finds_what_it_was_told_or_raises() -> None:
    fake = FakeClassifier({"Rossi": DataClass.C2, "segreto": DataClass.C3})
    found = [fake.classify(text).data_class for text in ("il segreto di Rossi", "Rossi", "niente")]
    assert found == [DataClass.C3, DataClass.C2, DataClass.C0]
    assert fake.seen == ["il segreto di Rossi", "Rossi", "niente"]
    with pytest.raises(RuntimeError, match="down"):
        FakeClassifier(fault=RuntimeError("down")).classify("x")


@pytest.mark.anyio
async def test_a_scripted_approver_says_no_after_its_script() -> None:
    request = ports.ApprovalRequest(tool="t", data_class=DataClass.C2, rendering="C2: t")
    approver = ScriptedApprover(answers=[True])
    assert [await approver.approve(request) for _ in range(2)] == [True, False]
    assert approver.asked == [request, request]


@pytest.mark.anyio
async def test_a_fixed_locality_is_fixed() -> None:
    check = FixedLocality(locality=ports.Locality.L1)
    assert await check.grade(Address(scheme="https", host="x", port=1)) is ports.Locality.L1


def test_a_fake_tool_records_its_calls() -> None:
    call = ports.GrantedCall(arguments={"path": "a"}, roots=())
    tool = FakeTool(output=ports.ToolOutput(text="found"))
    assert (tool.run(call).text, tool.calls) == ("found", [call])
    with pytest.raises(ToolError, match="no such file"):
        FakeTool(output=ToolError("no such file")).run(call)


# --- the record ----------------------------------------------------------------------------------------


def test_a_memory_log_tells_written_from_durable_i9() -> None:
    store = MemoryLogStore()
    log = store.create("0001", b"head\n")
    log.append(b"one\n")
    assert (store.read("0001"), log.durable) == (b"head\none\n", b"head\n")
    log.sync()
    assert log.durable == b"head\none\n"
    log.fault = OSError("disk full")
    for step in (log.sync, lambda: log.append(b"two")):
        with pytest.raises(OSError, match="disk full"):
            step()
    assert store.read("0001") == b"head\none\n"


def test_a_memory_store_has_one_writer_ordered_names_and_a_pin() -> None:
    store = MemoryLogStore()
    store.acquire()
    with pytest.raises(TraceError):
        store.acquire()
    store.release()
    store.acquire()
    for name in ("b", "a"):
        store.create(name, b"").close()
    assert list(store.names()) == ["a", "b"]
    with pytest.raises(FileExistsError):
        store.create("a", b"")
    with pytest.raises(FileNotFoundError):
        store.read("c")
    with pytest.raises(ValueError, match="closed"):
        store.files["a"].append(b"x")
    assert store.read_pin() is None
    store.write_pin(b"pin")
    assert store.read_pin() == b"pin"


def test_memory_salts_are_durable_once_synced() -> None:
    salts = MemorySaltStore()
    salts.keep("ab", b"salt")
    assert salts.durable == {}
    salts.sync()
    assert salts.durable == salts.salts == {"ab": b"salt"}


def test_a_memory_signer_is_the_same_everywhere() -> None:
    one, two = MemorySigner(), MemorySigner()
    assert one.public_key.hex() == "3b6a27bcceb6a42d62a3a8d02a6f0d73653215771de243a63ac048a18b59da29"
    assert one.sign(b"x") == two.sign(b"x")
    Ed25519PublicKey.from_public_bytes(one.public_key).verify(one.sign(b"x"), b"x")
    assert MemorySigner(b"\x01" * 32).public_key != one.public_key


# --- time and chance -----------------------------------------------------------------------------------


def test_a_frozen_clock_moves_when_told() -> None:
    clock = FrozenClock(now_us=1_000)
    clock.advance(1.5)
    assert (clock.now_us(), clock.monotonic()) == (1_501_000, 1.5)
    with pytest.raises(ValueError, match="does not go back"):
        clock.advance(-1)


def test_fixed_entropy_is_a_known_stream() -> None:
    stream = FixedEntropy(b"s")
    assert stream.token(32) == hashlib.sha256(b"s" + bytes(8)).digest()
    blocks = [hashlib.sha256(b"s" + number.to_bytes(8, "big")).digest() for number in (1, 2)]
    assert stream.token(40) == b"".join(blocks)[:40]
    assert stream.token(0) == b""


def test_a_scripted_server_says_nothing_about_itself_and_spends_no_reply_on_it() -> None:
    with ScriptedServer(replies=["Ciao."]) as server:
        assert httpx.get(f"{server.url}/props", trust_env=False).status_code == 404
        reply = httpx.post(f"{server.url}{CHAT}", json={}, trust_env=False).json()
    assert reply["choices"][0]["message"]["content"] == "Ciao."
    assert len(server.received) == 2
