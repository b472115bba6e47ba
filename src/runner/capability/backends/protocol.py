# SPDX-License-Identifier: Apache-2.0
"""What all codecs do with bytes: JSON out, lines and events in, an error's status in our words.

Owns how a reply is put together out of parts, whole or streamed, and how a schema is compiled for a runtime.
Leaves what a part says to each protocol's own `parse_` function. Serves P1: the bytes depend on the typed
request only. Serves I12: what a server says about an error is dropped, since it echoes the prompt; a status
and our own words remain.
"""

import base64
import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, cast

from runner.capability.grammar import CompiledSchema, compile_schema
from runner.kernel.errors import BackendError, RequestRefused
from runner.kernel.inference import InferenceReply, InferenceRequest, Usage, WrittenCall
from runner.kernel.messages import Block, JsonObject, Media, Message, Role, ToolSpec
from runner.kernel.ports import Decoder

_OK: Final = 200
_NO_USAGE: Final = Usage()
IMAGES: Final = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
"""The types of pictures that chat protocols share."""
_WORD: Final = re.compile(r"[a-z_]{1,32}\Z")
_PHRASES: Final[Mapping[int, str]] = {
    400: "it refused the request; the prompt may exceed its context, or it cannot read the grammar",
    401: "it wants a credential; check the one the profile names",
    403: "it does not accept the credential the profile names",
    404: "it does not have this model or path",
    413: "the request is too large for it",
    429: "too many requests",
    503: "it is not ready; its model may still be loading",
    529: "it is overloaded",
}


# --- requests ----------------------------------------------------------------------------------


def encode_json(name: str, body: JsonObject) -> bytes:
    """Return `body` as JSON in UTF-8.

    Raises `BackendError`, naming the backend `name`, for a lone surrogate, a number that is not finite, or a
    schema that is not JSON.
    """
    try:
        text = json.dumps(body, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        return text.encode("utf-8")
    except (ValueError, TypeError, RecursionError):
        raise BackendError(f"backend {name!r}: the request holds what JSON in UTF-8 cannot carry") from None


def text_of(message: Message) -> str:
    """Return the blocks of `message` that are text as one text, an empty line between two."""
    return "\n\n".join(block.text for block in message.blocks if block.media is None)


def has_media(name: str, message: Message, accepted: Collection[str]) -> bool:
    """Return whether `message` holds media.

    Raises `BackendError`, naming the backend `name`, if it holds one whose type is not among `accepted`, or
    is not the user's: chat protocols have no form for that.
    """
    types = {block.media.mime for block in message.blocks if block.media is not None}
    if not types:
        return False
    if not accepted:
        raise BackendError(f"backend {name!r}: its protocol has no form for media. Fix: ask another backend")
    if message.role is not Role.USER or not types <= set(accepted):
        fix = f"send {', '.join(sorted(accepted))}, in a message of the user"
        raise BackendError(f"backend {name!r}: its protocol has no form for this media. Fix: {fix}")
    return True


def base64_of(media: Media) -> str:
    """Return the bytes of `media` as base64, on one line."""
    return base64.b64encode(media.data).decode("ascii")


def texts_of(name: str, blocks: Sequence[Block]) -> list[str]:
    """Return the texts of `blocks`; raise `BackendError`, naming the backend `name`, if one is no text."""
    if any(block.media is not None for block in blocks):
        raise BackendError(f"backend {name!r}: only text is embedded. Fix: leave the media out")
    return [block.text for block in blocks]


def sampling(request: InferenceRequest) -> JsonObject:
    """Return the members that say how the tokens of a reply are drawn, as most runtimes name them."""
    penalty: JsonObject = {}
    if request.frequency_penalty:
        penalty = {"frequency_penalty": request.frequency_penalty}
    return {"temperature": request.temperature, "seed": request.seed, **penalty}


def reply_budget(name: str, request: InferenceRequest, context: int) -> int:
    """Return the tokens the reply may take; raise `BackendError` when `context` tokens cannot hold them.

    A `context` of 0 is unknown and not checked.
    """
    if context and request.max_tokens >= context:
        raise BackendError(
            f"backend {name!r}: a reply of {request.max_tokens} tokens leaves no room for a prompt in a "
            f"context of {context}; ask for less, or raise the context in the profile"
        )
    return request.max_tokens


def grammar_of(name: str, schema: JsonObject) -> str:
    """Return the grammar (GBNF) that holds a reply to `schema`; raise `BackendError` if it has none."""
    compiled = _compiled(name, schema)
    if compiled.gbnf is None:
        raise BackendError(f"backend {name!r}: the reply schema has no grammar")
    return compiled.gbnf


def lowered_of(name: str, schema: JsonObject) -> JsonObject:
    """Return `schema` in the plain form that runtimes read; raise `BackendError` if it has none.

    It accepts every value that the schema's grammar accepts, and perhaps more.
    """
    compiled = _compiled(name, schema)
    if compiled.lowered is None:
        raise BackendError(f"backend {name!r}: the reply schema has no plain form")
    lowered: JsonObject = json.loads(json.dumps(compiled.lowered))
    return lowered


def function_of(tool: ToolSpec, *, described: str | None = None) -> JsonObject:
    """Return `tool` in the form that chat protocols share; `described` stands in for its description."""
    function: JsonObject = {
        "name": tool.name,
        "description": tool.description if described is None else described,
        "parameters": tool.parameters,
    }
    return {"type": "function", "function": function}


def _compiled(name: str, schema: JsonObject) -> CompiledSchema:
    compiled = compile_schema(schema)
    if compiled.status == "refused":
        raise BackendError(f"backend {name!r}: the reply schema has no grammar: {compiled.reason}")
    return compiled


# --- replies -----------------------------------------------------------------------------------


class NotProtocolError(BackendError):
    """The bytes are not the protocol. Carries no text; the decoder that catches it names the backend."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallPart:
    """A call, or a piece of one. Pieces of one call have one `place` (None: it is a whole call by itself).

    `id` is the server's, and says only which pieces are of two calls. `arguments` is JSON text, or an object.
    """

    place: int | None
    id: str = field(default="", repr=False)
    name: str = field(default="", repr=False)
    arguments: str | JsonObject = field(default="", repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """What one JSON object of a reply says.

    `error` is the status of an error it reports (0: none); `done` says that nothing follows it.
    """

    text: str = field(default="", repr=False)
    finish: str | None = field(default=None, repr=False)
    usage: Usage = _NO_USAGE
    error: int = 0
    done: bool = False
    calls: tuple[CallPart, ...] = ()


Parse = Callable[[bytes], Part]
"""Reads one JSON object of a reply; raises `NotProtocolError`."""
Cut = Callable[[bytes], Iterable[bytes]]
"""Takes the next chunk; yields what it completes."""


def read_by(parse: Parse, request: InferenceRequest) -> Parse:
    """Return `parse` for the reply to `request`: calls that nobody offered are none, and are dropped."""
    return parse if request.tools else lambda data: replace(parse(data), calls=())


def decoder_for(name: str, status: int, decoder: Callable[[], Decoder]) -> Decoder:
    """Return the decoder that `decoder` makes for a reply of backend `name`, or one that reports `status`."""
    return decoder() if status == _OK else _Refused(name, status)


def describe_status(name: str, status: int) -> str:
    """Return our words for an error `status` of backend `name`."""
    phrase = _PHRASES.get(status, "it failed" if status >= 500 else "it refused the request")  # noqa: PLR2004 - RFC 9110
    return f"backend {name!r} answered {status}: {phrase}"


def refused(name: str, status: int) -> RequestRefused:
    """Return the error for an error `status` of backend `name`."""
    return RequestRefused(describe_status(name, status), status=status)


class _Refused:
    """The reply to a request that failed: its body is dropped unread."""

    def __init__(self, name: str, status: int) -> None:
        self._error = refused(name, status)

    def feed(self, chunk: bytes) -> str:  # noqa: ARG002 - the Decoder port
        return ""

    def finish(self) -> InferenceReply:
        raise self._error


class Whole:
    """A reply that is one JSON object. Implements `Decoder`."""

    def __init__(self, name: str, parse: Parse) -> None:
        self._name = name
        self._parse = parse
        self._chunks: list[bytes] = []

    def feed(self, chunk: bytes) -> str:
        """Keep `chunk`; nothing is visible before the end."""
        self._chunks.append(chunk)
        return ""

    def finish(self) -> InferenceReply:
        """Return the reply; raise `BackendError`."""
        try:
            part = self._parse(b"".join(self._chunks))
        except NotProtocolError:
            raise BackendError(f"backend {self._name!r} did not answer in its protocol") from None
        return _reply(self._name, part, complete=True)


class Stream:
    """A reply in pieces, until one says that it is done. After a fault the rest is dropped.

    Implements `Decoder`.
    """

    def __init__(self, name: str, cut: Cut, parse: Parse) -> None:
        self._name = name
        self._cut = cut
        self._parse = parse
        self._texts: list[str] = []
        self._calls: list[list[CallPart]] = []
        self._places: dict[int, list[CallPart]] = {}
        self._whole = Part()
        self._broken = False

    def feed(self, chunk: bytes) -> str:
        """Take `chunk`; return the text it completes."""
        before = len(self._texts)
        try:
            for piece in self._cut(chunk):
                if self._broken or self._whole.done or self._whole.error:
                    break
                self._take(self._parse(piece))
        except NotProtocolError:
            self._broken = True
        return "".join(self._texts[before:])

    def finish(self) -> InferenceReply:
        """Return the reply; raise `BackendError`."""
        if self._broken:
            raise BackendError(f"backend {self._name!r} sent a piece that is not its protocol")
        whole = self._whole
        try:
            calls = tuple(map(_joined, self._calls))
        except NotProtocolError:
            raise BackendError(f"backend {self._name!r} sent a piece that is not its protocol") from None
        part = Part(
            text="".join(self._texts),
            finish=whole.finish,
            usage=whole.usage,
            error=whole.error,
            calls=calls,
        )
        return _reply(self._name, part, complete=whole.done)

    def _take(self, part: Part) -> None:
        self._texts.append(part.text)
        for piece in part.calls:
            pieces = [] if piece.place is None else self._places.setdefault(piece.place, [])
            if not pieces:
                self._calls.append(pieces)
            pieces.append(piece)
        known = self._whole
        self._whole = Part(
            finish=part.finish or known.finish,
            usage=Usage(
                prompt_tokens=part.usage.prompt_tokens or known.usage.prompt_tokens,
                completion_tokens=part.usage.completion_tokens or known.usage.completion_tokens,
            ),
            error=part.error,
            done=part.done,
        )


def _reply(name: str, part: Part, *, complete: bool) -> InferenceReply:
    if part.error:
        raise refused(name, part.error)
    if part.finish is None or not complete:
        raise BackendError(f"backend {name!r} broke off before the end of its reply")
    calls = tuple(WrittenCall(name=call.name, arguments=call.arguments) for call in part.calls)
    return InferenceReply(text=part.text, finish=part.finish, usage=part.usage, calls=calls)


def _joined(pieces: Sequence[CallPart]) -> CallPart:
    """Return the call that `pieces` make, in linear time; raise `NotProtocolError` if they are of two."""
    ids = {piece.id for piece in pieces} - {""}
    names = {piece.name for piece in pieces} - {""}
    begun, *more = texts = [piece.arguments for piece in pieces]
    if len(ids) > 1 or len(names) > 1:
        raise NotProtocolError
    if not more:
        return pieces[0]
    if begun == {} and not any(more):  # begun as an object, and no text of it came
        return CallPart(place=None, name="".join(names), arguments={})
    if begun == {}:
        texts = more
    if not all(isinstance(text, str) for text in texts):
        raise NotProtocolError
    return CallPart(place=None, name="".join(names), arguments="".join(map(str, texts)))


class Lines:
    """Cuts bytes into lines, whatever their chunking, in linear time."""

    def __init__(self) -> None:
        self._open: list[bytes] = []

    def split(self, chunk: bytes) -> Iterator[bytes]:
        """Yield the lines that `chunk` completes, without their ends."""
        head, *rest = chunk.split(b"\n")
        self._open.append(head)
        for piece in rest:
            line = b"".join(self._open).removesuffix(b"\r")
            self._open = [piece]
            yield line


class Events:
    """Cuts bytes into the data of server-sent events (WHATWG HTML, section 9.2)."""

    def __init__(self) -> None:
        self._lines = Lines()
        self._data: list[bytes] = []

    def split(self, chunk: bytes) -> Iterator[bytes]:
        """Yield the data of the events that `chunk` completes; an old server's `error` field is one too."""
        for line in self._lines.split(chunk):
            name, _, value = line.partition(b":")
            if not line and self._data:
                data, self._data = b"\n".join(self._data), []
                yield data
            elif name == b"data":
                self._data.append(value.removeprefix(b" "))
            elif name == b"error":
                yield b'{"error":{}}'


# --- parsing: from here on the bytes are a server's, and nothing in them is believed -------------------


def parse_object(data: bytes) -> Mapping[str, object]:
    """Return `data` as a JSON object; raise `NotProtocolError` if it is none, or a member stands twice."""
    try:
        return member_object(json.loads(data.decode("utf-8"), object_pairs_hook=_unique))
    except (ValueError, RecursionError):
        raise NotProtocolError from None


def _unique(members: list[tuple[str, object]]) -> dict[str, object]:
    """Return `members` as an object: two readers of one that is repeated need not see the same."""
    found = dict(members)
    if len(found) != len(members):
        raise NotProtocolError
    return found


def member_object(value: object) -> Mapping[str, object]:
    """Return `value` if it is a JSON object; raise `NotProtocolError` if not."""
    if not isinstance(value, dict):
        raise NotProtocolError
    return value


def member_text(value: object) -> str:
    """Return `value` if it is a text without lone surrogates, "" for null; else raise `NotProtocolError`."""
    if value is None:
        return ""
    if not isinstance(value, str) or any("\ud800" <= char <= "\udfff" for char in value):
        raise NotProtocolError
    return value


def member_word(value: object) -> str | None:
    """Return `value` if it is a word fit for a record, None for null; else raise `NotProtocolError`."""
    if value is None:
        return None
    if not isinstance(value, str) or not _WORD.match(value):
        raise NotProtocolError
    return value


def member_vector(value: object) -> tuple[float, ...]:
    """Return `value` if it is an array of numbers; else raise `NotProtocolError`."""
    if not isinstance(value, list) or any(type(item) not in {int, float} for item in value):
        raise NotProtocolError
    try:
        return tuple(map(float, value))
    except OverflowError:
        raise NotProtocolError from None


def member_list(value: object) -> list[object]:
    """Return `value` if it is an array, an empty one for null; else raise `NotProtocolError`."""
    if value is None:
        return []
    if not isinstance(value, list):
        raise NotProtocolError
    return value


def member_arguments(value: object) -> str | JsonObject:
    """Return `value` if it is text or an object, as arguments are; else raise `NotProtocolError`."""
    return cast("JsonObject", value) if isinstance(value, dict) else member_text(value)


def member_count(value: object) -> int:
    """Return `value` if it is a count; 0 if not, since a figure is not worth a reply."""
    return value if type(value) is int and 0 <= value < 1 << 53 else 0
