# SPDX-License-Identifier: Apache-2.0
"""The codec made from a datapizza client: exact bytes, replies, and what it refuses. Defends P1 and I12."""

import json
import logging
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from datapizza.clients import MockClient
from datapizza.core.clients import Client

from runner.capability.backends.datapizza import DatapizzaBackend, from_datapizza
from runner.kernel.errors import BackendError, SealError
from runner.kernel.inference import Address, InferenceReply, InferenceRequest, Usage
from runner.kernel.labels import Label
from runner.kernel.messages import Block, BlockKind, JsonObject, Message, Role
from runner.testing import ScriptedServer

SRC = Path(__file__).resolve().parents[4] / "src"
URL = "http://127.0.0.1:8080/v1"
CANARY = "RSSMRA80A01F205X"
SCHEMA: JsonObject = {"type": "string", "enum": ["yes", "no"]}


def chat_client(**more: Any) -> Client:
    clients = pytest.importorskip("datapizza.clients.openai_like")
    return clients.OpenAILikeClient(**{"api_key": "sk-none", "model": "m", "base_url": URL, **more})


def responses_client(**more: Any) -> Client:
    clients = pytest.importorskip("datapizza.clients.openai")
    return clients.OpenAIClient(**{"api_key": "sk-none", "model": "m", "base_url": URL, **more})


@pytest.fixture
def chat() -> DatapizzaBackend:
    return from_datapizza(chat_client())


@pytest.fixture
def responses() -> DatapizzaBackend:
    return from_datapizza(responses_client())


def said(role: Role, *texts: str) -> Message:
    blocks = tuple(Block(id="b1", kind=BlockKind.GOAL, text=text, label=Label()) for text in texts)
    return Message(role=role, blocks=blocks)


def ask(*texts: str, **more: Any) -> InferenceRequest:
    return InferenceRequest(messages=(said(Role.USER, *texts or ("Ciao.",)),), **{"max_tokens": 16, **more})


CONVERSATION = InferenceRequest(
    messages=(
        said(Role.SYSTEM, "Sii breve."),
        said(Role.USER, "Perché?", "Quando?"),
        said(Role.ASSISTANT, "Oggi."),
        said(Role.USER, "E poi?"),
    ),
    schema=SCHEMA,
    max_tokens=16,
    seed=7,
)


def completion(content: object, finish: object = "stop", **more: object) -> bytes:
    message = {"role": "assistant", "content": content}
    choice = {"index": 0, "message": message, "finish_reason": finish}
    return json.dumps({"choices": [choice], **more}).encode()


def read(backend: DatapizzaBackend, data: bytes, *, status: int = 200, cut: int = 7) -> InferenceReply:
    decoder = backend.decoder(ask(), status)
    for start in range(0, len(data), cut):
        assert decoder.feed(data[start : start + cut]) == ""
    return decoder.finish()


# --- requests ----------------------------------------------------------------------------------


def test_p1_the_bytes_are_those_their_sdk_lays_out(chat: DatapizzaBackend) -> None:
    wire = chat.encode(CONVERSATION)
    assert json.loads(wire.body) == {
        "model": "m",
        "messages": [
            {"role": "system", "content": "Sii breve."},
            {"role": "user", "content": "Perché?\n\nQuando?"},
            {"role": "assistant", "content": "Oggi."},
            {"role": "user", "content": "E poi?"},
        ],
        "max_completion_tokens": 16,
        "stream": False,
        "temperature": 0.0,
        "seed": 7,
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "reply", "strict": True, "schema": SCHEMA},
        },
    }
    assert (wire.method, wire.path) == ("POST", "/v1/chat/completions")
    assert wire.address == chat.address == Address(scheme="http", host="127.0.0.1", port=8080)


def test_a_penalty_is_said_where_their_protocol_has_one(chat: DatapizzaBackend) -> None:
    body = json.loads(chat.encode(replace(CONVERSATION, frequency_penalty=0.5)).body)
    assert body["frequency_penalty"] == 0.5


def test_p1_the_responses_protocol_is_known_and_asks_that_nothing_is_kept(
    responses: DatapizzaBackend,
) -> None:
    wire = responses.encode(CONVERSATION)
    body = json.loads(wire.body)
    assert wire.path == "/v1/responses"
    assert body["input"][0] == {"role": "system", "content": "Sii breve."}
    assert body["input"][3]["content"] == [{"type": "input_text", "text": "E poi?"}]
    assert body["text"]["format"] == {
        "type": "json_schema",
        "name": "reply",
        "strict": True,
        "schema": SCHEMA,
    }
    assert (body["temperature"], body["store"], body["max_output_tokens"]) == (0.0, False, 16)


def test_i5_neither_the_key_nor_this_machine_is_in_the_headers(chat: DatapizzaBackend) -> None:
    assert chat.encode(ask()).headers == (
        ("Content-Type", "application/json"),
        ("Accept", "application/json"),
    )


def test_p1_encoding_keeps_no_state_between_requests_or_threads(chat: DatapizzaBackend) -> None:
    requests = [ask(f"question {number}") for number in range(8)]
    expected = [from_datapizza(chat_client()).encode(request) for request in requests]
    found: dict[int, list[object]] = {}

    def work(thread: int) -> None:
        found[thread] = [chat.encode(request) for request in requests]

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert list(found.values()) == [expected] * 4


def test_what_their_client_says_by_itself_is_not_asked() -> None:
    """Its own system prompt, temperature and cache belong to calls that no longer exist."""
    backend = from_datapizza(chat_client(system_prompt=CANARY, temperature=1.5))
    body = json.loads(backend.encode(ask()).body)
    assert CANARY not in json.dumps(body)
    assert body["temperature"] == 0.0


@pytest.mark.parametrize("request_", [ask(CANARY + "\ud800"), ask(CANARY, temperature=float("nan"))])
def test_i12_what_json_cannot_carry_is_refused_without_a_quote(
    chat: DatapizzaBackend, request_: InferenceRequest
) -> None:
    with pytest.raises(BackendError, match="its client failed") as caught:
        chat.encode(request_)
    assert CANARY not in str(caught.value)
    assert caught.value.__cause__ is None


def test_a_system_message_elsewhere_than_first_is_refused(chat: DatapizzaBackend) -> None:
    late = InferenceRequest(messages=(said(Role.USER, "a"), said(Role.SYSTEM, "b")))
    with pytest.raises(BackendError, match="can only be the first"):
        chat.encode(late)


# --- replies -----------------------------------------------------------------------------------


def test_their_code_reads_the_reply_however_it_is_cut(chat: DatapizzaBackend) -> None:
    usage = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}
    expected = InferenceReply(
        text="Sì, oggi.", finish="stop", usage=Usage(prompt_tokens=3, completion_tokens=2)
    )
    data = completion("Sì, oggi.", usage=usage)
    assert {read(chat, data, cut=cut) for cut in (1, 7, 4096)} == {expected}


def test_a_reply_of_the_responses_protocol_is_read(responses: DatapizzaBackend) -> None:
    content = [{"type": "output_text", "text": "Oggi.", "annotations": []}]
    message = {"id": "1", "type": "message", "role": "assistant", "status": "completed", "content": content}
    usage = {"input_tokens": 3, "output_tokens": 2}
    for status, finish in (("completed", "stop"), ("incomplete", "length")):
        body = {"id": "r", "object": "response", "status": status, "output": [message], "usage": usage}
        reply = read(responses, json.dumps(body).encode())
        assert (reply.text, reply.finish) == ("Oggi.", finish)
        assert reply.usage == Usage(prompt_tokens=3, completion_tokens=2)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"null",
        b"{}",
        CANARY.encode(),
        completion({"text": CANARY}),
        completion(CANARY, finish=None),
        completion(CANARY, finish="Stop me " + CANARY),
        json.dumps({"choices": [], "note": CANARY}).encode(),
        completion(CANARY).replace(CANARY.encode(), b"\\ud800"),
    ],
)
def test_i12_what_is_not_a_reply_is_an_error_that_does_not_quote_it(
    chat: DatapizzaBackend, data: bytes
) -> None:
    with pytest.raises(BackendError) as caught:
        read(chat, data)
    assert CANARY not in str(caught.value)


def test_i12_an_error_status_is_told_in_our_words(chat: DatapizzaBackend) -> None:
    with pytest.raises(BackendError, match="answered 401: it wants a credential") as caught:
        read(chat, CANARY.encode(), status=401)
    assert CANARY not in str(caught.value)


# --- taking over -------------------------------------------------------------------------------


def test_p1_the_connection_their_sdk_had_is_closed_also_one_the_caller_made() -> None:
    mine = httpx.Client()
    client = responses_client(http_client=mine)
    theirs = client.client._client
    from_datapizza(client)
    assert theirs is mine
    assert mine.is_closed
    assert client.client.max_retries == client.a_client.max_retries == 0


class NoInjection(Client):  # type: ignore[misc]  # datapizza publishes no types
    """A client whose SDK nobody knows. `asked` counts what it was asked."""

    def __init__(self, sdk: Any) -> None:
        super().__init__(model_name="m", system_prompt="")
        self.client = sdk
        self.a_client = sdk
        self.asked = 0

    def _invoke(self, **_: object) -> object:
        self.asked += 1
        return None

    _a_invoke = _stream_invoke = _a_stream_invoke = _invoke
    _structured_response = _a_structured_response = _convert_tool_choice = _invoke


class SecondReference(NoInjection):
    """A client that asks by a second reference to its SDK, which nobody can see to replace."""

    def _invoke(self, **_: object) -> object:
        return self.second.chat.completions.create(model="m", messages=[])

    _a_invoke = _stream_invoke = _a_stream_invoke = _invoke
    _structured_response = _a_structured_response = _convert_tool_choice = _invoke


class KeepsItsOwn:
    """An SDK that takes a connection and goes on with another one."""

    _client = httpx.Client()

    def with_options(self, **_: object) -> "KeepsItsOwn":
        return self


class OtherPath:
    """An SDK that takes the connection and speaks a protocol of its own."""

    def close(self) -> None:
        pass

    def __init__(self, client: httpx.Client | None = None) -> None:
        self._client = client

    def with_options(self, *, http_client: httpx.Client, max_retries: int) -> "OtherPath":
        assert max_retries == 0
        return OtherPath(http_client)


class SpeaksOtherwise(NoInjection):
    def _invoke(self, **_: object) -> object:
        return self.client._client.post("http://127.0.0.1:9/v2/tell", json={})

    _a_invoke = _stream_invoke = _a_stream_invoke = _invoke
    _structured_response = _a_structured_response = _convert_tool_choice = _invoke


@pytest.mark.parametrize(
    ("client", "reason"),
    [
        (NoInjection(object()), r"no with_options\(http_client"),
        (NoInjection(KeepsItsOwn()), "kept its own connection"),
        (SpeaksOtherwise(OtherPath()), "a protocol that is not known"),
    ],
)
def test_p1_a_client_without_a_transport_to_inject_is_refused_and_left_alone(
    client: NoInjection, reason: str
) -> None:
    before = client.client
    with pytest.raises(SealError, match=reason):
        from_datapizza(client)
    assert client.client is before
    assert client.asked == 0


def test_p1_a_client_without_an_sdk_is_refused() -> None:
    with pytest.raises(SealError, match="it carries no SDK"):
        from_datapizza(MockClient())


def test_p1_a_client_that_answers_without_asking_is_refused() -> None:
    with pytest.raises(BackendError, match="answered without asking"):
        from_datapizza(NoInjection(OtherPath()))


def test_p1_a_client_with_a_second_way_to_its_sdk_sends_nothing_while_it_is_refused() -> None:
    with ScriptedServer(replies=["Hello."] * 2) as server:
        known = chat_client(base_url=f"{server.url}/v1")
        client = SecondReference(known.client.with_options(max_retries=0))
        client.second, client.a_client = client.client, known._get_a_client()
        with pytest.raises(BackendError, match="its client failed"):
            from_datapizza(client)
        assert server.received == []


def test_what_is_no_datapizza_client_is_refused() -> None:
    with pytest.raises(SealError, match=r"a datapizza\.core\.clients\.Client"):
        from_datapizza(object())


def test_p1_neither_encoding_nor_decoding_opens_a_socket() -> None:
    """In a fresh interpreter, with every connection watched."""
    pytest.importorskip("datapizza.clients.openai_like")
    code = (
        "import sys, json\n"
        "def watch(event, _):\n"
        "    if event.startswith(('socket.connect', 'socket.bind', 'socket.getaddrinfo')):\n"
        "        raise SystemExit(event)\n"
        "from datapizza.clients.openai_like import OpenAILikeClient\n"
        "from runner.capability.backends.datapizza import from_datapizza\n"
        "from runner.kernel.inference import InferenceRequest\n"
        "client = OpenAILikeClient(api_key='k', model='m', base_url='http://127.0.0.1:9/v1')\n"
        "sys.addaudithook(watch)\n"
        "backend = from_datapizza(client)\n"
        "request = InferenceRequest(messages=())\n"
        "backend.encode(request)\n"
        "decoder = backend.decoder(request, 200)\n"
        'decoder.feed(b\'{"choices":[{"index":0,"finish_reason":"stop","message":{"content":"ok"}}]}\')\n'
        "print(decoder.finish().text)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": str(SRC)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "ok\n", "")


@pytest.mark.parametrize("client", [chat_client, responses_client])
def test_i12_what_their_sdk_logs_of_a_request_or_a_reply_is_in_no_log(
    client: Callable[..., Client], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    backend = from_datapizza(client())
    caplog.clear()
    backend.encode(ask(CANARY))
    decoder = backend.decoder(ask(CANARY), 200)
    decoder.feed(json.dumps({"id": CANARY, "choices": []}).encode())
    with pytest.raises(BackendError):
        decoder.finish()
    assert caplog.records == []


def test_what_a_host_program_does_with_the_sdk_is_logged_as_ever(
    chat: DatapizzaBackend, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    chat.encode(ask())
    caplog.clear()
    logging.getLogger("openai._base_client").debug("a request of the host's own")
    assert len(caplog.records) == 1
