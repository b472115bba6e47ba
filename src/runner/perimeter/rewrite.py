# SPDX-License-Identifier: Apache-2.0
"""A whole request, redacted: the same request with tokens in its texts.

Owns which texts of a request may be replaced. Leaves replacing to `redact.py` and judging to
`Perimeter.release()`: what is not replaced here is still there when the new bytes are judged, and denies.
Pure but for the map, which learns. Serves P1.
"""

from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from runner.kernel.decisions import Span
from runner.kernel.inference import InferenceRequest
from runner.kernel.labels import DataClass
from runner.kernel.messages import Block, Json, JsonObject
from runner.kernel.ports import Classifier
from runner.perimeter.finding import ask_classifier
from runner.perimeter.redact import Entry, Redactor


@dataclass(frozen=True, slots=True, kw_only=True)
class RedactedRequest:
    """A request to be encoded and judged again; `spans` of the original were replaced by `entries`."""

    request: InferenceRequest
    spans: tuple[Span, ...]
    entries: tuple[Entry, ...]


def redact_request(
    request: InferenceRequest,
    redactor: Redactor,
    classifier: Classifier,
    *,
    above: DataClass,
    said: Mapping[str, str] = MappingProxyType({}),
    veiled: Container[str | None] = (),
) -> RedactedRequest:
    """Return `request` with what is above the class `above` replaced, in its blocks and its schema.

    The schema's strings are replaced too, so that a constrained reply comes back in tokens; its member names
    and patterns are not, so that what is found there is denied. `said` is, by block, what a model that sees
    tokens wrote: that goes back as it came, so that nothing in it shows which of its guesses was right.
    The blocks `veiled` hold tokens of this very map, which stay. Raises `Unredactable`, and whatever the
    classifier raises.
    """
    texts = dict(_texts(request))
    blocks = {
        f"/messages/{number}/blocks/{index}": block.id
        for number, message in enumerate(request.messages)
        for index, block in enumerate(message.blocks)
    }
    own = {pointer: said[block] for pointer, block in blocks.items() if block in said}
    texts = {pointer: named for pointer, named in texts.items() if pointer not in own}
    hits = {pointer: ask_classifier(classifier, text, name).spans for pointer, (name, text) in texts.items()}
    for pointer, (_, text) in texts.items():  # all of it first: a value may be recognised in one place only
        redactor.learn(text, hits[pointer])
    redacted: dict[str, str] = {}
    spans: list[Span] = []
    entries: dict[str, Entry] = {}
    for pointer, (_, text) in texts.items():
        redacted[pointer], removals = redactor.take_out(
            text, hits[pointer], above=above, own=blocks.get(pointer) in veiled
        )
        for each in removals:
            spans.append(Span(pointer=pointer, start=each.start, end=each.end, kind=each.entry.kind))
            entries[each.entry.token] = each.entry
    redacted |= own
    for entry in (each for text in redacted.values() for each in redactor.standing_in(text)):
        entries[entry.token] = entry
    return RedactedRequest(
        request=_rewritten(request, redacted), spans=tuple(spans), entries=tuple(entries.values())
    )


def _texts(request: InferenceRequest) -> Iterator[tuple[str, tuple[str | None, str]]]:
    """Yield the pointer of each text that may be replaced, the name it stands under, and the text."""
    for number, message in enumerate(request.messages):
        for index, block in enumerate(message.blocks):
            yield f"/messages/{number}/blocks/{index}", (None, block.text)
    for pointer, text in _strings(request.schema, "/schema"):
        name = pointer.rpartition("/")[2]
        if name != "pattern":
            yield pointer, (None if name.isdigit() else name, text)


def _rewritten(request: InferenceRequest, texts: Mapping[str, str]) -> InferenceRequest:
    def block(number: int, index: int, original: Block) -> Block:
        return replace(original, text=texts[f"/messages/{number}/blocks/{index}"])

    messages = tuple(
        replace(
            message, blocks=tuple(block(number, index, each) for index, each in enumerate(message.blocks))
        )
        for number, message in enumerate(request.messages)
    )
    schema = None if request.schema is None else _replaced_members(request.schema, "/schema", texts)
    return replace(request, messages=messages, schema=schema)


def _strings(value: Json, pointer: str) -> Iterator[tuple[str, str]]:
    """Yield pointer (RFC 6901) and text of each string leaf in `value`."""
    match value:
        case str():
            yield pointer, value
        case Mapping():
            for name, item in value.items():
                yield from _strings(item, _under(pointer, name))
        case list() | tuple():
            for index, item in enumerate(value):
                yield from _strings(item, f"{pointer}/{index}")
        case _:
            pass


def _replaced(value: Json, pointer: str, texts: Mapping[str, str]) -> Json:
    match value:
        case str():
            return texts.get(pointer, value)
        case Mapping():
            return _replaced_members(value, pointer, texts)
        case list() | tuple():
            return [_replaced(item, f"{pointer}/{index}", texts) for index, item in enumerate(value)]
        case _:
            return value


def _replaced_members(value: JsonObject, pointer: str, texts: Mapping[str, str]) -> JsonObject:
    return {name: _replaced(item, _under(pointer, name), texts) for name, item in value.items()}


def _under(pointer: str, name: str) -> str:
    return f"{pointer}/{name.replace('~', '~0').replace('/', '~1')}"
