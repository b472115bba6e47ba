# SPDX-License-Identifier: Apache-2.0
"""What a request says: every text in its bytes, read as the server that gets it would read them.

Owns the reading of a wire request: method, path, query, headers, body, and the name of its host where that
is not the profile's. Percent signs of a path and of a form are undone here, as the escapes of JSON are, so
that what is judged is what is said. Leaves judging to `release.py`. Carries P1: no part of a request that can
carry a text is missing here.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple, NoReturn

from runner.kernel.errors import RunnerError
from runner.kernel.inference import WireRequest
from runner.kernel.language import how_many
from runner.kernel.messages import Json, JsonObject

_ESCAPED: Final = re.compile(r"%([0-9A-Fa-f]{2})")
_JSON: Final = re.compile(r"[a-z]+/(?:[a-z0-9.-]+\+)?json\Z")
_FORM: Final = "application/x-www-form-urlencoded"
FRAMES: Final = frozenset({"role", "type", "id", "object", "model", "name"})
"""Names of members of a body that stand between two turns and carry nothing of them."""


class NotText(RunnerError):
    """A body that its content type calls something else than text. Ends in `release.py`."""


class Text(NamedTuple):
    """A text of a request, the name it stands under, and whether it may be a part of something longer."""

    name: str | None
    text: str
    is_value: bool

    def __repr__(self) -> str:
        """Return its length, never the text (I12)."""
        return f"<Text of {how_many(len(self.text), 'character')}>"


def texts_of(wire: WireRequest, *, host: bool) -> Iterator[Text]:
    """Yield every text that `wire` carries, in order; with `host` the labels of its host's name too.

    Raises `NotText` for a body that is not text at all, and `ValueError` for one that cannot be read.
    """
    yield Text(None, wire.method, False)
    if host:
        yield Text(None, wire.address.host, False)
        yield from (Text(None, label, True) for label in wire.address.host.split("."))
    yield from _path(wire.path)
    for name, value in wire.headers:
        yield Text(None, name, False)
        yield Text(name, value, True)
    if wire.body:
        yield from _body(wire)


def values_of(wire: WireRequest) -> tuple[str, ...]:
    """Return the texts of the path and query of `wire` over which something may be split."""
    return tuple(text.text for text in _path(wire.path) if text.is_value)


def texts_of_schema(schema: JsonObject) -> Iterator[Text]:
    """Yield every text in `schema`: a codec may write it as a grammar, and there in pieces."""
    stack: list[tuple[str | None, object]] = [(None, schema)]
    while stack:
        match stack.pop():
            case _, Mapping() as members:
                yield from (Text(None, str(name), False) for name in members)
                stack.extend((str(name), item) for name, item in members.items())
            case name, list() | tuple() as items:
                stack.extend((name, item) for item in items)
            case name, str() | int() | float() as value:
                yield Text(name, str(value), False)
            case _:
                pass


def _path(path: str) -> Iterator[Text]:
    """Yield the path as it is written, then its segments and the members of its query as they are read."""
    yield Text(None, path, False)
    before, _, query = path.partition("?")
    yield from (Text(None, _unescaped(segment), True) for segment in before.split("/") if segment)
    yield from _form(query)


def _form(text: str) -> Iterator[Text]:
    """Yield the names and values of a query or a form (WHATWG URL, section 5.1)."""
    for member in filter(None, text.replace(";", "&").split("&")):
        name, _, value = member.replace("+", " ").partition("=")
        yield Text(None, _unescaped(name), not value)
        if value:
            yield Text(_unescaped(name), _unescaped(value), True)


def _unescaped(text: str) -> str:
    """Return `text` with its percent signs undone once: UTF-8, and Latin-1 for a byte that is not."""
    data = text.encode("utf-8", "surrogatepass").decode("latin-1")
    plain = _ESCAPED.sub(lambda found: chr(int(found[1], 16)), data).encode("latin-1")
    try:
        return plain.decode("utf-8")
    except UnicodeDecodeError:
        return plain.decode("latin-1")


def _body(wire: WireRequest) -> Iterator[Text]:
    """Yield the texts of the body by its content type; without one it is JSON."""
    named = [value for name, value in wire.headers if name.lower() == "content-type"]
    kind = named[0].partition(";")[0].strip().lower() if named else "application/json"
    if len(named) > 1:
        raise ValueError("a request with two content types")
    if _JSON.match(kind):
        yield from _leaves(_parse_json(wire.body))
    elif kind == _FORM:
        yield from _form(wire.body.decode("utf-8"))
    elif kind.startswith("text/"):
        yield Text(None, wire.body.decode("utf-8"), True)
    else:
        raise NotText("a body that is not text")


def _parse_json(body: bytes) -> Json:
    """Return the one JSON text `body`; raise `ValueError` for anything else, and `RecursionError` for depth.

    Strict, so that nobody reads in these bytes what was not judged: UTF-8 only, no NaN, nothing behind it.
    """
    value: Json = json.loads(
        body.decode("utf-8"),
        object_pairs_hook=_Members,
        parse_int=_Number,
        parse_float=_Number,
        parse_constant=_refuse,
    )
    return value


def _refuse(_: str) -> NoReturn:
    raise ValueError("not JSON")


class _Number(str):
    """A JSON number as it is written: its digits are text too, and a float would drop some."""

    __slots__ = ()


class _Members(list[tuple[str, Json]]):
    """A JSON object as its members in order: a repeated name hides nothing, as it would in a dict."""


def _leaves(value: Json) -> Iterator[Text]:
    """Yield every string and number in `value` in order, and every member name; no recursion.

    A number counts as it is written; one with an exponent also written out.
    """
    stack: list[tuple[str | None, Json]] = [(None, value)]
    while stack:
        match stack.pop():
            case _, _Members() as members:
                yield from (Text(None, name, False) for name, _ in members)
                stack.extend(reversed(members))
            case name, list() as items:
                stack.extend((name, item) for item in reversed(items))
            case name, _Number() as number:
                yield Text(name, str(number), name not in FRAMES)
                if "e" in number.lower():
                    yield Text(name, f"{float(number):.0f}", False)
            case name, str() as text:
                yield Text(name, text, name not in FRAMES)
            case _:
                pass
