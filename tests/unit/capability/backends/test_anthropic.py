# SPDX-License-Identifier: Apache-2.0
"""The Messages codec: exact bytes, schemas the API takes, typed events, stop reasons. P1, I5, I7, I12."""

import json

import pytest

from runner.capability.backends.anthropic import AnthropicBackend
from runner.kernel.errors import BackendError
from runner.kernel.inference import Address, InferenceReply, InferenceRequest, Usage
from runner.kernel.labels import DataClass, Label
from runner.kernel.messages import Block, BlockKind, Json, JsonObject, Message, Role
from runner.kernel.ports import Locality
from runner.perimeter.classify import Classifier
from runner.perimeter.release import Rules, detect

AWAY = Address(scheme="https", host="api.anthropic.com", port=443)
CLAUDE = AnthropicBackend(name="remote", model="claude-model", address=AWAY)
CANARY = "RSSMRA80A01F205X"


def said(role: Role, *texts: str) -> Message:
    blocks = tuple(Block(id="b1", kind=BlockKind.GOAL, text=text, label=Label()) for text in texts)
    return Message(role=role, blocks=blocks)


def ask(*, schema: JsonObject | None = None, stream: bool = False) -> InferenceRequest:
    return InferenceRequest(
        messages=(said(Role.SYSTEM, "Sii breve.", "In italiano."), said(Role.USER, "Perché?")),
        schema=schema,
        stream=stream,
        max_tokens=64,
        temperature=0.5,
        seed=7,
    )


def asked_schema(schema: JsonObject) -> object:
    body = json.loads(CLAUDE.encode(ask(schema=schema)).body)
    assert body["output_config"]["format"]["type"] == "json_schema"
    return body["output_config"]["format"]["schema"]


def events(*objects: JsonObject) -> bytes:
    return "".join(f"event: {item['type']}\ndata: {json.dumps(item)}\n\n" for item in objects).encode()


def read(data: bytes, *, stream: bool, status: int = 200) -> InferenceReply:
    decoder = CLAUDE.decoder(ask(stream=stream), status)
    decoder.feed(data)
    return decoder.finish()


START: JsonObject = {
    "type": "message_start",
    "message": {"type": "message", "content": [], "usage": {"input_tokens": 9, "output_tokens": 1}},
}
STOP: JsonObject = {"type": "message_stop"}


def opened(kind: str) -> JsonObject:
    return {"type": "content_block_start", "index": 0, "content_block": {"type": kind, "text": ""}}


def delta(text: str, kind: str = "text_delta", key: str = "text") -> JsonObject:
    return {"type": "content_block_delta", "index": 0, "delta": {"type": kind, key: text}}


def ended(reason: Json = "end_turn", tokens: int = 4) -> JsonObject:
    return {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": tokens}}


def whole(*blocks: JsonObject, reason: Json = "end_turn", **more: Json) -> bytes:
    usage = {"input_tokens": 5, "cache_read_input_tokens": 4, "output_tokens": 3}
    message = {"type": "message", "content": list(blocks), "stop_reason": reason, "usage": usage, **more}
    return json.dumps(message).encode()


# --- requests ----------------------------------------------------------------------------------


def test_the_bytes_of_a_request_are_these_p1() -> None:
    """No temperature and no seed: the API refuses the one and has no other."""
    wire = CLAUDE.encode(ask())
    assert wire.body.decode() == (
        '{"model":"claude-model","max_tokens":64,"system":"Sii breve.\\n\\nIn italiano.",'
        '"messages":[{"role":"user","content":"Perché?"}],"stream":false}'
    )
    assert (wire.method, wire.path, wire.address) == ("POST", "/v1/messages", AWAY)
    assert wire.headers == (
        ("Content-Type", "application/json"),
        ("Accept", "application/json"),
        ("anthropic-version", "2023-06-01"),
    )


def test_what_the_codec_adds_is_public_to_the_real_detectors() -> None:
    """A header or member of its own that a detector took for personal data would deny every request."""
    rules = Rules(
        classifier=Classifier(), fault_as_c3=False, locality_c2=Locality.L0, locality_c3=Locality.L2
    )
    schema: JsonObject = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    for stream in (True, False):
        assert detect(CLAUDE.encode(ask(schema=schema, stream=stream)), rules) is DataClass.C0


def test_a_schema_travels_in_the_keywords_the_api_takes() -> None:
    """Bounds and patterns go: the API refuses them, and the reply is validated by whoever asked."""
    schema: JsonObject = {
        "type": "object",
        "properties": {
            "words": {"type": "array", "items": {"$ref": "#/$defs/word"}, "minItems": 1, "maxItems": 3},
            "line": {"type": "integer", "minimum": 0, "maximum": 9},
            "kind": {"enum": ["a", "b"]},
            "who": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        },
        "required": ["words", "line"],
        "$defs": {"word": {"type": "string", "maxLength": 40, "pattern": "^[a-z]+$"}},
    }
    assert asked_schema(schema) == {
        "type": "object",
        "properties": {
            "words": {"type": "array", "items": {"type": "string"}},
            "line": {"type": "integer"},
            "kind": {"type": "string", "enum": ["a", "b"]},
            "who": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        },
        "required": ["words", "line"],
        "additionalProperties": False,
    }


@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"type": "object"},
        {"type": "object", "properties": {"a": {}}, "required": ["a"]},
        {"type": "object", "additionalProperties": {"type": "string"}},
        {"type": "array", "prefixItems": [{"type": "string"}], "items": False},
        {"type": "array", "prefixItems": [{"type": "string"}], "items": {"type": "string"}},
        {"$ref": "https://elsewhere.example/schema"},
    ],
)
def test_a_schema_the_api_cannot_be_held_to_is_refused_and_not_loosened_away_i7(schema: JsonObject) -> None:
    with pytest.raises(BackendError, match=r"'remote'.*schema"):
        CLAUDE.encode(ask(schema=schema))


def test_a_recursive_schema_keeps_its_definitions() -> None:
    """The API answers 400 to it, and then our words for 400 stand: nothing is approximated in silence."""
    tree: JsonObject = {
        "$ref": "#/$defs/t",
        "$defs": {
            "t": {
                "type": "object",
                "properties": {"next": {"anyOf": [{"$ref": "#/$defs/t"}, {"type": "null"}]}},
                "required": ["next"],
                "additionalProperties": False,
            }
        },
    }
    assert "$defs" in str(asked_schema(tree))


# --- replies -----------------------------------------------------------------------------------


def test_a_whole_reply_is_its_text_blocks() -> None:
    blocks: list[JsonObject] = [
        {"type": "thinking", "thinking": "Hm."},
        {"type": "text", "text": "Buon"},
        {"type": "text", "text": "giorno"},
    ]
    usage = Usage(prompt_tokens=9, completion_tokens=3)
    assert read(whole(*blocks), stream=False) == InferenceReply(text="Buongiorno", finish="stop", usage=usage)


def test_a_stream_shows_text_as_it_comes_and_keeps_thinking_out() -> None:
    decoder = CLAUDE.decoder(ask(stream=True), 200)
    shown = [
        decoder.feed(events(START, {"type": "ping"}, opened("thinking"))),
        decoder.feed(events(delta("Hm.", "thinking_delta", "thinking"), {"type": "content_block_stop"})),
        decoder.feed(events(opened("text"), delta("Buon"))),
        decoder.feed(events(delta("giorno"), {"type": "a_later_kind", "text": "x"})),
        decoder.feed(events({"type": "content_block_stop"}, ended(tokens=12), STOP)),
    ]
    assert shown == ["", "", "Buon", "giorno", ""]
    usage = Usage(prompt_tokens=9, completion_tokens=12)
    assert decoder.finish() == InferenceReply(text="Buongiorno", finish="stop", usage=usage)


@pytest.mark.parametrize(
    ("reason", "finish"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("refusal", "refusal"),
        ("pause_turn", "pause_turn"),
    ],
)
def test_stop_reasons_are_told_in_the_runners_words(reason: str, finish: str) -> None:
    assert read(whole({"type": "text", "text": "x"}, reason=reason), stream=False).finish == finish
    assert read(events(START, delta("x"), ended(reason), STOP), stream=True).finish == finish


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        ("overloaded_error", 529),
        ("rate_limit_error", 429),
        ("invalid_request_error", 400),
        ("authentication_error", 401),
        ("a_later_error", 500),
    ],
)
def test_an_error_in_mid_stream_has_our_words_and_never_the_servers_i12(kind: str, status: int) -> None:
    error: JsonObject = {"type": "error", "error": {"type": kind, "message": CANARY}}
    with pytest.raises(BackendError, match=f"'remote' answered {status}: ") as caught:
        read(events(START, delta("So"), error, ended(), STOP), stream=True)
    assert CANARY not in str(caught.value)


@pytest.mark.parametrize(("status", "words"), [(401, "credential"), (429, "too many"), (529, "overloaded")])
@pytest.mark.parametrize("stream", [True, False])
def test_an_error_status_has_our_words_and_never_the_servers_i12(
    status: int, words: str, stream: bool
) -> None:
    body = json.dumps({"type": "error", "error": {"type": "x", "message": CANARY}}).encode()
    with pytest.raises(BackendError, match=f"answered {status}: .*{words}") as caught:
        read(body, stream=stream, status=status)
    assert CANARY not in str(caught.value)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        events(START, delta("x"), ended()),
        events(START, delta("x"), STOP),
        events(START, {"type": "content_block_delta", "delta": "x"}, ended(), STOP),
        events(START, delta(5), ended(), STOP),  # type: ignore[arg-type]  # what a server may send
        events(START, ended(CANARY), STOP),
        events(START, ended(["end_turn"]), STOP),
        b"data: {}\n\n" + events(ended(), STOP),
        b"data: {\n\n" + events(ended(), STOP),
        events(START, delta("x"), ended(), STOP)[:-1],
    ],
)
def test_a_stream_without_its_end_or_its_shape_is_refused_i7(data: bytes) -> None:
    with pytest.raises(BackendError) as caught:
        read(data, stream=True)
    assert CANARY not in str(caught.value)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"null",
        whole(reason=None),
        whole({"type": "text", "text": 5}),
        whole(type="completion"),
        whole(content="x"),
        json.dumps({"type": "error", "error": {"type": ["x"], "message": CANARY}}).encode(),
        json.dumps({"type": "error", "error": CANARY}).encode(),
    ],
)
def test_a_whole_reply_that_is_not_the_protocol_is_refused_i7(data: bytes) -> None:
    with pytest.raises(BackendError) as caught:
        read(data, stream=False)
    assert CANARY not in str(caught.value)
