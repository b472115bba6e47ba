# SPDX-License-Identifier: Apache-2.0
"""From datapizza's blocks to the runner's messages.

Owns the one place where datapizza's content enters a task: as foreign content of the declared class, whatever
role it claims. A system prompt of theirs is no instruction of the runner's. Labels cannot travel through
their blocks, so what comes back from their memory takes the declared class again, and the task's mark keeps
what is above it (I8). Takes media as bytes, once; refuses a path or an address: they would be read after the
gate (P1). Media for which nobody declared a class are C3.
"""

import base64
import binascii
import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any, Final, TypeAlias

from datapizza.memory import Memory
from datapizza.type import (
    ROLE,
    FunctionCallBlock,
    FunctionCallResultBlock,
    Media,
    MediaBlock,
    StructuredBlock,
    TextBlock,
    ThoughtBlock,
)
from pydantic import BaseModel

from runner.kernel.errors import MediaError, SealError
from runner.kernel.labels import DataClass
from runner.kernel.messages import Block, Message, Role
from runner.perimeter.task import Task

SOURCE: Final = "datapizza"
_ROLES: Final = {
    ROLE.SYSTEM: Role.SYSTEM,
    ROLE.USER: Role.USER,
    ROLE.ASSISTANT: Role.ASSISTANT,
    ROLE.TOOL: Role.USER,
}
_Said: TypeAlias = tuple[Role, Block]
_MEDIA: Final = {
    ("image", "png"): "image/png",
    ("image", "jpg"): "image/jpeg",
    ("image", "jpeg"): "image/jpeg",
    ("image", "gif"): "image/gif",
    ("image", "webp"): "image/webp",
    ("pdf", "pdf"): "application/pdf",
    ("audio", "mp3"): "audio/mpeg",
    ("audio", "wav"): "audio/wav",
    ("video", "mp4"): "video/mp4",
}
"""The media type of what they call by kind and extension."""
_EXTENSIONS: Final = {"pdf": "pdf"}
"""The extension of a kind for which they give none."""


class Bridge:
    """Brings datapizza's content into `task`, each text and each picture once.

    Texts are of at least the class `data_class`, media of `media_class`: None when nobody declared one.
    """

    def __init__(self, task: Task, data_class: DataClass, media_class: DataClass | None = None) -> None:
        self._task = task
        self._data_class = data_class
        self._media_class = media_class
        self._known: dict[str, Block] = {}
        self._media: dict[tuple[str, bytes], Block] = {}

    def block(self, text: str) -> Block:
        """Return the block for `text`."""
        if text not in self._known:
            self._known[text] = self._task.foreign(text, declared=self._data_class, source=SOURCE)
        return self._known[text]

    def media(self, media: Media) -> Block:
        """Return the block for the bytes of `media`; raise `MediaError` where there are none to judge."""
        mime, data = _type_of(media), _bytes_of(media)
        if (mime, data) not in self._media:
            self._media[mime, data] = self._task.media(
                data, mime, data_class=self._media_class, source=SOURCE
            )
        return self._media[mime, data]

    def messages(
        self, system: Sequence[Block], memory: Memory | None, asked: str | Sequence[Any]
    ) -> tuple[Message, ...]:
        """Return `system`, the turns of `memory` and what is `asked` now as messages.

        Turns of one role in a row become one message: a result of a tool is told by the user. Raises
        `SealError` for a block that is neither text nor media, and for nothing at all, and `MediaError`.
        """
        turns = [(turn.role, list(turn)) for turn in memory or ()]
        said: list[_Said] = [(Role.SYSTEM, block) for block in system]
        said += [(_ROLES[role], self._said(each)) for role, turn in turns for each in _contents(turn)]
        now = _contents(asked) if not isinstance(asked, str) else [asked] if asked else []
        said += [(Role.USER, self._said(each)) for each in now]
        if not said:
            raise SealError("there is nothing to ask: input, memory and system prompt are empty")
        return tuple(_merged(said))

    def _said(self, content: str | Media) -> Block:
        return self.block(content) if isinstance(content, str) else self.media(content)


def _merged(said: Iterable[_Said]) -> Iterator[Message]:
    """Yield one message for each run of one role; what the system says stands first, as protocols want it."""
    first = sorted(said, key=lambda each: each[0] is not Role.SYSTEM)
    for role, run in groupby(first, key=itemgetter(0)):
        yield Message(role=role, blocks=tuple(block for _, block in run))


def _contents(blocks: Iterable[Any]) -> Iterator[Any]:
    """Yield the text or the media of each of datapizza's `blocks`, what a model thought left out.

    Raises `SealError` for any other block.
    """
    for block in blocks:
        match block:
            case TextBlock():
                yield str(block.content)
            case StructuredBlock():
                yield _json(block.content)
            case FunctionCallBlock():
                yield _json({"tool": block.name, "arguments": block.arguments})
            case FunctionCallResultBlock():
                yield f"Result of {block.tool.name}:\n{block.result}"
            case MediaBlock():
                yield block.media
            case ThoughtBlock():
                pass
            case _:
                raise SealError(f"a sealed client takes text and media, not a {type(block).__name__}")


def _type_of(media: Media) -> str:
    """Return the media type of `media`; raise `MediaError` for what is not known."""
    named = media.extension or _EXTENSIONS.get(media.media_type, "")
    mime = _MEDIA.get((media.media_type, str(named).lower().removeprefix(".")))
    if mime is None:
        known = ", ".join(extension for _, extension in _MEDIA)
        raise MediaError(f"this kind of media is not known. Fix: Media(extension=...), one of {known}")
    return mime


def _bytes_of(media: Media) -> bytes:
    """Return the bytes of `media`, a copy that nobody can change; raise `MediaError` where there are none."""
    match media.source_type, media.source:
        case "raw", bytes() | bytearray() as data:
            return bytes(data)
        case "base64", str() | bytes() as text:
            try:
                return base64.b64decode(text, validate=True)
            except (binascii.Error, ValueError):
                raise MediaError("the source of a MediaBlock is not base64. Fix: encode the bytes") from None
        case _:
            fix = "read the file, and pass Media(source_type='raw', source=BYTES)"
            raise MediaError(f"a MediaBlock names media that would be read after the gate. Fix: {fix}")


def _json(value: Any) -> str:  # noqa: ANN401 - whatever their block holds
    if isinstance(value, BaseModel):
        return value.model_dump_json()
    try:
        return json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        raise SealError("a datapizza block holds what is not JSON") from None
