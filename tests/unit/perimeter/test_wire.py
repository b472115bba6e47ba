# SPDX-License-Identifier: Apache-2.0
"""P1, I7: whatever a request carries, and wherever, `Perimeter.release()` finds it in the bytes.

Two ways, for every codec. Outside in: each leaf and each name of an encoded body is exchanged for an
identifier, one at a time. Inside out: an identifier is planted in each place of a typed request, encoded, and
looked for in the bytes by a judge that shares no code with the gate.
"""

import base64
import json
import re
import struct
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest
from datapizza.clients.openai_like import OpenAILikeClient
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from runner.adapters.datapizza import from_datapizza
from runner.capability.backends.anthropic import AnthropicBackend
from runner.capability.backends.embedded import EmbeddedBackend
from runner.capability.backends.embeddings import OllamaEmbedder, OpenAIEmbedder
from runner.capability.backends.llamacpp import LlamaCppBackend
from runner.capability.backends.ollama import OllamaBackend
from runner.capability.backends.openai import OpenAIBackend
from runner.kernel.decisions import Allowed, Denied
from runner.kernel.errors import BackendError
from runner.kernel.inference import Address, EmbeddingRequest, InferenceRequest, WireRequest
from runner.kernel.labels import DataClass, Label
from runner.kernel.messages import Block, BlockKind, JsonObject, Media, Message, Role
from runner.kernel.ports import Finding
from runner.perimeter.classify import Classifier
from runner.testing import IN_PROCESS, FakeClassifier, ScriptedBackend, ScriptedEmbedder

HERE = Address(scheme="http", host="127.0.0.1", port=8080)
CODE = "RSSMRA80A01F205X"
CARD = 4111111111111111
HARMLESS = "what is due in march"


def theirs(model: str) -> Any:
    client = OpenAILikeClient(api_key="-", model=model, base_url="http://127.0.0.1:8080/v1")
    return from_datapizza(client, name="b")


CODECS: dict[str, Callable[[str], Any]] = {
    "llamacpp": lambda model: LlamaCppBackend(name="b", model=model, address=HERE, context=4096),
    "embedded": lambda model: EmbeddedBackend(name="b", model=model, context=4096),
    "openai": lambda model: OpenAIBackend(name="b", model=model, address=HERE),
    "ollama": lambda model: OllamaBackend(name="b", model=model, address=HERE, context=4096),
    "anthropic": lambda model: AnthropicBackend(name="b", model=model, address=HERE),
    "datapizza": theirs,
    "scripted": lambda model: ScriptedBackend(replies=[], model=model),
    "openai embeddings": lambda model: OpenAIEmbedder(name="b", model=model, address=HERE),
    "ollama embeddings": lambda model: OllamaEmbedder(name="b", model=model, address=HERE),
    "scripted embeddings": lambda model: ScriptedEmbedder(model=model),
}
CHATS = [name for name in CODECS if "embeddings" not in name]


def block(text: str, *, media: Media | None = None) -> Block:
    return Block(id="b1", kind=BlockKind.FOREIGN, text=text, label=Label(), media=media)


def note(text: str) -> bytes:
    """A picture with a note."""
    body = b"Comment\0" + text.encode()
    check = struct.pack(">I", zlib.crc32(b"tEXt" + body))
    return b"\x89PNG\r\n\x1a\n" + struct.pack(">I", len(body)) + b"tEXt" + body + check


def schema(**more: Any) -> JsonObject:
    verdict = {"type": "string", "enum": ["yes", "no"], "description": "the verdict"}
    return {
        "type": "object",
        "title": "Answer",
        "properties": {"verdict": verdict, "count": {"type": "integer", "minimum": 3}},
        "required": ["verdict"],
        "additionalProperties": False,
        **more,
    }


def chat(*, media: bool = False, stream: bool = False, form: JsonObject | None = None) -> InferenceRequest:
    picture = [block("", media=Media(mime="image/png", data=note(HARMLESS)))] if media else []
    messages = (
        Message(role=Role.SYSTEM, blocks=(block("be brief"),)),
        Message(role=Role.USER, blocks=(block("a question"), *picture)),
        Message(role=Role.ASSISTANT, blocks=(block("an answer"),)),
        Message(role=Role.USER, blocks=(block(HARMLESS), block("and then?"))),
    )
    return InferenceRequest(messages=messages, schema=form, stream=stream)


def encoded(name: str, **more: Any) -> WireRequest:
    codec = CODECS[name]("small-model")
    if "embeddings" in name:
        return codec.encode(EmbeddingRequest(blocks=(block("one"), block("two"))))  # type: ignore[no-any-return]
    return codec.encode(chat(**more))  # type: ignore[no-any-return] # one of two protocols


class Careful:
    """The shipped rules, and one for a card's number wherever it stands. Implements `Classifier`."""

    version = "careful/1"

    def __init__(self) -> None:
        self._rules, self._card = Classifier(), FakeClassifier({str(CARD): DataClass.C2})

    def classify(self, text: str, *, source: str | None = None) -> Finding:
        """Return what the card's rule finds, else what the shipped ones do."""
        found = self._card.classify(text)
        return found if found.spans else self._rules.classify(text, source=source)


CAREFUL = Careful()


class Judge:
    """The gate of a world whose remote backend lets nothing of a person leave."""

    def __init__(self, make_world: Any) -> None:
        world = make_world(local=False, ceiling=DataClass.C1, classifier=CAREFUL)
        self._perimeter = world.perimeter
        self._checked = world.perimeter._checked(world.backend, "remote")

    def __call__(self, wire: WireRequest, form: JsonObject | None = None) -> Any:
        here = replace(wire, address=IN_PROCESS)
        return self._perimeter.release(here, Label(), "scripted", checked=self._checked, schema=form)

    def finds(self, wire: WireRequest, form: JsonObject | None = None) -> bool:
        decision = self(wire, form)
        return isinstance(decision, Denied) and decision.reason == "class-above-ceiling"


@pytest.fixture
def judge(make_world: Any) -> Judge:
    return Judge(make_world)


# --- outside in --------------------------------------------------------------------------------------------


def mutants(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield `value` with one leaf or one name exchanged for an identifier, for each of them."""
    match value:
        case dict():
            for name, item in value.items():
                rest = {key: each for key, each in value.items() if key != name}
                yield f"the name {name}", {**rest, CODE: item}
                yield f"beside {name}", {**value, f"{name} {CODE}": None}
                for place, mutant in mutants(item):
                    yield f"{name}.{place}", {**value, name: mutant}
        case list():
            yield "appended", [*value, CODE]
            for index, item in enumerate(value):
                for place, mutant in mutants(item):
                    yield f"{index}.{place}", [*value[:index], mutant, *value[index + 1 :]]
        case str():
            yield "exchanged", CODE
            yield "at the end", f"{value} {CODE}"
            yield "as media", f"{value} {base64.b64encode(note(CODE)).decode()}"
        case bool() | None:
            yield "exchanged", CODE
        case _:
            yield "a number", CARD
            yield "a fraction", float(CARD)
            yield "exchanged", CODE


FORMS: dict[str, dict[str, Any]] = {
    "plain": {},
    "stream": {"stream": True},
    "schema": {"form": schema()},
    "media": {"media": True},
}
ENCODED = [
    (name, form)
    for name in CODECS
    for form in FORMS
    if (name != "embedded" or form != "media") and (name in CHATS or form == "plain")
]


@pytest.mark.parametrize(("name", "form"), ENCODED, ids=lambda each: each)
def test_p1_an_identifier_in_any_leaf_or_name_of_the_bytes_is_found(
    name: str, form: str, judge: Judge
) -> None:
    wire = encoded(name, **FORMS[form])
    assert isinstance(judge(wire), Allowed), "the request as such passes"
    places = list(mutants(json.loads(wire.body)))
    missed = [
        place
        for place, body in places
        if not judge.finds(replace(wire, body=json.dumps(body, ensure_ascii=False).encode()))
    ]
    assert missed == []
    assert len(places) > 10


@pytest.mark.parametrize("name", CODECS)
def test_p1_an_identifier_in_path_method_or_headers_is_found(name: str, judge: Judge) -> None:
    wire = encoded(name)
    beside = [
        replace(wire, path=f"{wire.path}/{CODE}"),
        replace(wire, path=f"{wire.path}?q={CODE}"),
        replace(wire, path=f"{wire.path}?{CODE}"),
        replace(wire, path=f"{wire.path}?q=" + "".join(f"%{ord(letter):02x}" for letter in CODE)),
        replace(wire, method=CODE),
        replace(wire, headers=(*wire.headers, ("X-Note", CODE))),
        replace(wire, headers=(*wire.headers, (f"X-{CODE}", "1"))),
    ]
    assert [each for each in beside if not judge.finds(each)] == []


@pytest.mark.parametrize(
    "twist",
    [
        lambda body: body + b"\n" + body,
        lambda body: body + b" x",
        lambda body: body[:-1],
        lambda body: b"\xef\xbb\xbf" + body,
        lambda body: body.decode().encode("utf-16"),
        lambda body: body.replace(b"small-model", b"small\xff"),
        lambda body: body[:-1] + b',"x":NaN}',
        lambda body: body[:-1] + b',"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    ],
    ids=["lines", "trailing", "cut", "bom", "utf-16", "not utf-8", "nan", "deep"],
)
@pytest.mark.parametrize("name", CODECS)
def test_i7_a_body_that_is_not_one_json_text_in_utf_8_is_denied(
    name: str, twist: Callable[[bytes], bytes], judge: Judge
) -> None:
    wire = encoded(name)
    decision = judge(replace(wire, body=twist(wire.body)))
    assert (decision.reason, decision.data_class) == ("fault.release", DataClass.C2)


@pytest.mark.parametrize("name", CODECS)
def test_p1_a_number_counts_as_it_is_written_and_written_out(name: str, judge: Judge) -> None:
    """Digits that a float would drop are text too."""
    wire = encoded(name)
    for number in (
        b"4.111111111111111e15",
        b"4111111111111111E0",
        b"0.00041111111111111110000",
        b"-4111111111111111",
    ):
        assert judge.finds(replace(wire, body=wire.body[:-1] + b',"x":' + number + b"}"))


@pytest.mark.parametrize("name", CODECS)
def test_p1_a_repeated_name_a_get_and_another_type_hide_nothing(name: str, judge: Judge) -> None:
    wire = encoded(name)
    first = b'{"model":"%b",' % CODE.encode() + wire.body[1:]
    lines = tuple((key, "application/x-ndjson") for key, _ in wire.headers[:1])
    assert judge.finds(replace(wire, body=first))
    assert judge.finds(replace(wire, method="GET", body=first))
    assert judge(replace(wire, headers=lines)).reason == "c3-never-leaves", "a type nobody reads is C3"


# --- inside out --------------------------------------------------------------------------------------------

PLANTS: dict[str, JsonObject] = {
    "an enum": {"type": "string", "enum": ["yes", CODE]},
    "a constant": {"const": CODE},
    "a member": {"type": "object", "properties": {CODE: {"type": "string"}}, "additionalProperties": False},
    "a required member": {"type": "object", "required": [CODE], "properties": {"a": {"type": "string"}}},
    "a description": {"type": "string", "description": f"such as {CODE}"},
    "a title": {"type": "string", "title": CODE},
    "a comment": {"type": "string", "$comment": CODE},
    "a default": {"type": "string", "default": CODE},
    "an example": {"type": "string", "examples": ["x", CODE]},
    "a format": {"type": "string", "format": CODE},
    "a pattern": {"type": "string", "pattern": f"^{CODE}$"},
    "a definition": {"$defs": {CODE: {"type": "string"}}, "$ref": f"#/$defs/{CODE}"},
    "an unknown word": {"type": "string", "x-note": {"deep": [CODE]}},
    "a name of members": {
        "type": "object",
        "propertyNames": {"enum": [CODE]},
        "additionalProperties": {"type": "string"},
    },
    "an excluded member": {
        "type": "object",
        "properties": {CODE: False, "a": {"type": "string"}},
        "required": ["a"],
    },
    "a least number": {"type": "integer", "minimum": CARD, "maximum": CARD + 8},
    "a number": {"const": CARD},
}


@pytest.mark.parametrize("plant", PLANTS)
@pytest.mark.parametrize("name", CHATS)
def test_p1_an_identifier_in_the_schema_is_found_however_the_codec_writes_it(
    name: str, plant: str, judge: Judge
) -> None:
    """A grammar may write it in pieces, letter by letter: so the schema counts as it was given."""
    form = PLANTS[plant]
    try:
        wire = CODECS[name]("small-model").encode(chat(form=form))
    except BackendError:
        return
    assert judge.finds(wire, form)
    if says(wire, CODE):
        assert judge.finds(wire), "and so do the bytes alone"


def says(wire: WireRequest, code: str) -> bool:
    """Whether `code` stands in the bytes in one piece, in any of the ways these protocols write a text."""
    texts = [wire.body, json.dumps(json.loads(wire.body), ensure_ascii=False).encode(), wire.path.encode()]
    runs = [run for text in texts for run in re.findall(rb"[A-Za-z0-9+/]{24,}={0,2}", text)]
    opened = [base64.b64decode(run[: len(run) // 4 * 4]) for run in runs]
    return any(code.encode() in text for text in [*texts, *opened])


def planted(name: str, where: str) -> WireRequest:
    """The bytes of a request with an identifier at `where`."""
    request = chat(media=True) if name != "embedded" else chat()
    first, *rest = request.messages
    blocks = {
        "system": (block(CODE),),
        "user": (block(HARMLESS), block(f"who is {CODE}?")),
        "assistant": (block(CODE),),
        "media": (block("", media=Media(mime="image/png", data=note(CODE))),),
        "media type": (block("", media=Media(mime=f"image/{CODE.lower()}", data=note("x"))),),
    }
    if where == "model":
        return CODECS[name](CODE).encode(request)  # type: ignore[no-any-return] # one of two protocols
    if where == "system":
        messages = (Message(role=Role.SYSTEM, blocks=blocks[where]), *rest)
    else:
        role = Role.ASSISTANT if where == "assistant" else Role.USER
        messages = (first, *rest, Message(role=role, blocks=blocks[where]))
    return CODECS[name]("small-model").encode(replace(request, messages=messages))  # type: ignore[no-any-return]


@pytest.mark.parametrize("where", ["system", "user", "assistant", "media", "media type", "model"])
@pytest.mark.parametrize("name", CHATS)
def test_p1_an_identifier_in_any_part_of_a_request_is_found_in_its_bytes(
    name: str, where: str, judge: Judge
) -> None:
    try:
        wire = planted(name, where)
    except BackendError:
        assert where.startswith("media"), "only media may have no form"
        return
    assert says(wire, CODE) or says(wire, CODE.lower())
    assert judge.finds(wire)


@pytest.mark.parametrize("name", [name for name in CODECS if name not in CHATS])
def test_p1_an_identifier_in_any_text_of_a_batch_is_found_in_its_bytes(name: str, judge: Judge) -> None:
    texts = [block("x")] * 40
    for place in (0, 17, 40):
        batch = EmbeddingRequest(blocks=(*texts[:place], block(f"a {CODE} b"), *texts[place:]))
        assert judge.finds(CODECS[name]("small-model").encode(batch))
    assert judge.finds(CODECS[name](CODE).encode(EmbeddingRequest(blocks=(block("x"),))))


LEAVES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(value=VALUES, path=st.lists(st.integers(0, 5), max_size=5), as_name=st.booleans())
def test_p1_no_shape_of_a_body_hides_an_identifier(
    make_world: Any, *, value: Any, path: list[int], as_name: bool
) -> None:
    """Any JSON at all, with an identifier put somewhere in it."""
    body = json.dumps(hidden(value, path, as_name=as_name)).encode()
    wire = WireRequest(method="POST", address=HERE, path="/", headers=(), body=body)
    decision = Judge(make_world)(wire)
    assert isinstance(decision, Denied)
    assert decision.data_class >= DataClass.C2


def hidden(value: Any, path: list[int], *, as_name: bool) -> Any:
    """`value` with the identifier at `path`, as far as it leads."""
    step, *rest = path or [0]
    if path and isinstance(value, Mapping) and value:
        name = list(value)[step % len(value)]
        return {**value, name: hidden(value[name], rest, as_name=as_name)}
    if path and isinstance(value, list) and value:
        at = step % len(value)
        return [*value[:at], hidden(value[at], rest, as_name=as_name), *value[at + 1 :]]
    return {CODE: value} if as_name else [value, CODE]
