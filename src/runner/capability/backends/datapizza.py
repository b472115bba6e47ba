# SPDX-License-Identifier: Apache-2.0
"""The codec made from a datapizza client: its code lays out the bytes and reads the reply, and sends nothing.

Owns the stage: a transport put where the SDK's connection was. While a request is encoded it keeps what the
SDK would have sent; while a reply is decoded it plays back what was received; at any other time it refuses.
Leaves judging, the credential and I/O to the perimeter. Serves P1: the SDK's exact body passes the same gate,
and neither its retries, redirects and proxies nor datapizza's cache, keyword arguments and tracing take part.
Serves I12: what their code says when it fails is dropped, and so is what it logs: an SDK logs whole requests.
"""

import logging
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from copy import copy
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final, NoReturn, assert_never

import httpx
from datapizza.core.clients import Client
from datapizza.memory import Memory
from datapizza.type import ROLE, MediaBlock, TextBlock
from datapizza.type import Media as TheirMedia

from runner.capability.backends.protocol import (
    IMAGES,
    NotProtocolError,
    Part,
    Whole,
    base64_of,
    decoder_for,
    has_media,
    member_count,
    member_text,
    member_word,
    sampling,
    text_of,
)
from runner.kernel.errors import BackendError, SealError
from runner.kernel.inference import Address, InferenceRequest, Usage, WireRequest
from runner.kernel.messages import JsonObject, Media, Message, Role
from runner.kernel.ports import Decoder

_OK: Final = 200
_PORTS: Final[Mapping[str, int]] = {"http": 80, "https": 443}
_FINISH: Final[Mapping[str, str]] = {"completed": "stop", "incomplete": "length"}
"""Words of the responses protocol for the two that the runner knows."""
_HEADERS: Final = ("Content-Type", "Accept")
"""What the request needs. The key is the perimeter's to add; what describes this machine stays here."""
_ROLES: Final[Mapping[Role, Any]] = {Role.USER: ROLE.USER, Role.ASSISTANT: ROLE.ASSISTANT}


class _Dialect(Enum):
    """The protocol an SDK speaks, by the end of the path it posts to."""

    CHAT = "/chat/completions"
    RESPONSES = "/responses"


def from_datapizza(client: Client, *, name: str = "remote") -> "DatapizzaBackend":
    """Return a codec made from `client`, which is taken over: from here on it cannot send by itself.

    Its SDK gets a connection that leads nowhere, without retries, redirects and proxies; the connection it
    had is closed, also one the caller made. `name` is the backend's name in the profile. Pass the result to
    `open_profile(codecs=[...])`.

    Raises `SealError` when there is no known way to do that. An SDK without `with_options(http_client=...)`
    is left as it was; one that speaks neither chat completions nor responses stays closed, and so does that
    of a client which asks by another way, where the error is `BackendError`.
    """
    if not isinstance(client, Client):
        raise SealError("from_datapizza takes a datapizza.core.clients.Client")
    sdk, staged = _staged(client)
    sdk.close()
    probe = _captured(staged, _question(InferenceRequest(messages=(), max_tokens=1)), name)
    dialect = next((each for each in _Dialect if probe.url.path.endswith(each.value)), None)
    if dialect is None:
        raise _no_way(client, "its SDK speaks a protocol that is not known here")
    client.client, client.a_client = staged.client, staged.a_client
    address = _address(probe.url)
    return DatapizzaBackend(
        name=name, model=client.model_name, address=address, client=staged, dialect=dialect
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class DatapizzaBackend:
    """A datapizza client as a codec. Implements `Backend`. Made by `from_datapizza`.

    Every request asks for a whole reply, streamed or not: their code reads replies whole.
    """

    name: str
    model: str
    address: Address
    client: Client = field(repr=False)
    dialect: _Dialect

    def encode(self, request: InferenceRequest) -> WireRequest:
        """Return the bytes their SDK would send for `request`; raise `BackendError` if it cannot say it."""
        sent = _captured(self.client, self._question(request), self.name)
        return WireRequest(
            method=sent.method,
            address=_address(sent.url),
            path=sent.url.raw_path.decode("ascii"),
            headers=tuple((name, sent.headers[name]) for name in _HEADERS if name in sent.headers),
            body=sent.read(),
        )

    def decoder(self, request: InferenceRequest, status: int) -> Decoder:
        """Return a decoder for the reply to `request` that arrived with `status`."""
        return decoder_for(
            self.name, status, lambda: Whole(self.name, lambda body: self._parse(request, body))
        )

    def _parse(self, request: InferenceRequest, body: bytes) -> Part:
        """Return what their code reads in `body`, the whole reply to `request`."""
        return _parse_response(_played(self.client, self._question(request), body, self.name))

    def _question(self, request: InferenceRequest) -> dict[str, Any]:
        """Return the arguments for their `_invoke`; what it would drop or cannot say is extra body."""
        if request.tools:
            raise BackendError(f"backend {self.name!r}: tools are not offered through a datapizza client")
        if any(message.role is Role.SYSTEM for message in request.messages[1:]):
            raise BackendError(f"backend {self.name!r}: a system message can only be the first")
        for message in request.messages:
            has_media(self.name, message, IMAGES)
        return {**_question(request), "extra_body": _extra(request, self.dialect)}


# --- the stage ---------------------------------------------------------------------------------

_TAKEN_OVER: Final = "this datapizza client was taken over: ask through Perimeter.seal() instead"
_Scene = Callable[[httpx.Request], httpx.Response]
_scene: ContextVar[_Scene | None] = ContextVar("_scene", default=None)
"""What the stage does with a request, in this thread or task, right now."""


class _Stage(httpx.BaseTransport, httpx.AsyncBaseTransport):
    """Stands where a connection was. Sends nothing, ever."""

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        scene = _scene.get()
        if scene is None:
            raise SealError(_TAKEN_OVER)
        return scene(request)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:  # noqa: ARG002 - the port
        raise SealError(_TAKEN_OVER)


class _Captured(BaseException):
    """Their code has laid out `request`. Not an error: it unwinds their code, which retries on errors."""

    def __init__(self, request: httpx.Request) -> None:
        self.request = request
        super().__init__()


def _capture(request: httpx.Request) -> NoReturn:
    raise _Captured(request)


def _captured(client: Client, question: Mapping[str, Any], name: str) -> httpx.Request:
    """Return the request that `client` lays out for `question`."""
    try:
        _perform(client, question, _capture, name)
    except _Captured as captured:
        return captured.request
    raise BackendError(f"backend {name!r}: its client answered without asking")


def _played(client: Client, question: Mapping[str, Any], body: bytes, name: str) -> object:
    """Return what `client` answers to `question` when the endpoint's reply is `body`."""
    headers = {"Content-Type": "application/json"}
    return _perform(client, question, lambda _: httpx.Response(_OK, headers=headers, content=body), name)


def _perform(client: Client, question: Mapping[str, Any], scene: _Scene, name: str) -> object:
    """Run their code with `scene` on the stage, unlogged; whatever it raises becomes `BackendError`."""
    _hush(client)
    token = _scene.set(scene)
    try:
        return client._invoke(**question)  # noqa: SLF001 - below their cache, their spans and their defaults
    except Exception as error:  # noqa: BLE001 - a foreign fault is translated, its text dropped (I12)
        raise BackendError(f"backend {name!r}: its client failed ({type(error).__name__})") from None
    finally:
        _scene.reset(token)


def _hush(client: Client) -> None:
    """Keep what their code does on the stage out of the host program's log; what the host does is logged."""
    packages = {type(each).__module__.partition(".")[0] for each in (client, client.client)}
    for name in list(logging.root.manager.loggerDict):
        if name.partition(".")[0] in packages | {"datapizza", "httpx"}:
            logging.getLogger(name).addFilter(_is_off_stage)


def _is_off_stage(_: logging.LogRecord) -> bool:
    return _scene.get() is None


def _staged(client: Client) -> tuple[Any, Client]:
    """Return the SDK of `client` as it is, and a copy of `client` with its SDKs on the stage."""
    staged = copy(client)
    try:
        sdk = staged._get_client()  # noqa: SLF001 - makes it where it is made late
    except NotImplementedError:
        raise _no_way(client, "it carries no SDK") from None
    staged.client = _on_stage(client, sdk, httpx.Client(transport=_Stage(), trust_env=False))
    try:
        asynchronous = staged._get_a_client()  # noqa: SLF001 - as above
    except NotImplementedError:
        staged.a_client = None
    else:
        unused = httpx.AsyncClient(transport=_Stage(), trust_env=False)
        staged.a_client = _on_stage(client, asynchronous, unused)
    return sdk, staged


def _on_stage(client: Client, sdk: Any, http: httpx.Client | httpx.AsyncClient) -> Any:  # noqa: ANN401 - an untyped SDK
    """Return `sdk` with `http` for its only connection; raise `SealError` if that did not take."""
    try:
        staged = sdk.with_options(http_client=http, max_retries=0)
    except (AttributeError, TypeError):
        raise _no_way(client, "its SDK has no with_options(http_client=...)") from None
    if getattr(staged, "_client", None) is not http:
        raise _no_way(client, "its SDK kept its own connection")
    return staged


def _no_way(client: Client, reason: str) -> SealError:
    fix = "use an OpenAI-like client, or a backend of the profile"
    return SealError(f"no transport can be injected into {type(client).__name__}: {reason}. Fix: {fix}")


# --- requests ----------------------------------------------------------------------------------


def _question(request: InferenceRequest) -> dict[str, Any]:
    """Return `request` in the arguments all datapizza clients share."""
    first, rest = request.messages[:1], request.messages[1:]
    system = text_of(first[0]) if first and first[0].role is Role.SYSTEM else None
    memory = Memory()
    for message in rest if system is not None else request.messages:
        memory.add_turn(_turn(message), _ROLES[message.role])
    return {
        "input": [],
        "tools": [],
        "memory": memory,
        "tool_choice": "none",
        "temperature": None,
        "max_tokens": request.max_tokens,
        "system_prompt": system,
    }


def _turn(message: Message) -> list[Any]:
    """Return `message` in their blocks: its text, then its media; their code puts texts together anyway."""
    pictures = [_picture(block.media) for block in message.blocks if block.media is not None]
    return [TextBlock(content=text_of(message)), *pictures]


def _picture(media: Media) -> Any:  # noqa: ANN401 - one of datapizza's untyped blocks
    kind, _, extension = media.mime.partition("/")
    theirs = TheirMedia(media_type=kind, extension=extension, source_type="base64", source=base64_of(media))
    return MediaBlock(media=theirs)


def _extra(request: InferenceRequest, dialect: _Dialect) -> JsonObject:
    """Return the members of the body that their signature has no word for, or drops when they are zero."""
    schema = request.schema
    match dialect:
        case _Dialect.CHAT:
            named: JsonObject = {"name": "reply", "strict": True, "schema": schema}
            form: JsonObject = {"response_format": {"type": "json_schema", "json_schema": named}}
            drawn = sampling(request)
        case _Dialect.RESPONSES:
            asked: JsonObject = {"type": "json_schema", "name": "reply", "strict": True, "schema": schema}
            form = {"text": {"format": asked}}
            drawn = {"temperature": request.temperature, "store": False}
        case _:
            assert_never(dialect)
    return drawn if schema is None else {**drawn, **form}


def _address(url: httpx.URL) -> Address:
    return Address(scheme=url.scheme, host=url.host, port=url.port or _PORTS.get(url.scheme, 0))


# --- parsing: what their code returns is believed no more than a server --------------------------------


def _parse_response(response: Any) -> Part:  # noqa: ANN401 - parse step: an untyped object
    """Return what a `ClientResponse` says; raise `NotProtocolError` for anything else."""
    try:
        texts = [block.content for block in response.content if isinstance(block, TextBlock)]
        finish, usage = response.stop_reason, response.usage
        counts = (usage.prompt_tokens, usage.completion_tokens)
    except (AttributeError, TypeError):
        raise NotProtocolError from None
    word = member_word(finish)
    return Part(
        text="".join(member_text(text) for text in texts),
        finish=None if word is None else _FINISH.get(word, word),
        usage=Usage(prompt_tokens=member_count(counts[0]), completion_tokens=member_count(counts[1])),
    )
