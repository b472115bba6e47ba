# SPDX-License-Identifier: Apache-2.0
"""Plain YAML: text in, plain values and the line of each key out. Total: every other text is a mistake.

Owns the part of YAML 1.2 that a file of the practice needs: mappings with text keys, lists, texts, numbers,
true, false, null. Aliases, anchors, merge keys, tags and directives are refused, since they make a file say
more than a reader sees, or far more than its size. Carries I6 and I7, and I12: no mistake quotes the text.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from io import StringIO
from typing import Any, Final, NoReturn, TypeAlias

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError
from ruamel.yaml.events import (
    AliasEvent,
    CollectionEndEvent,
    DocumentStartEvent,
    MappingStartEvent,
    NodeEvent,
    ScalarEvent,
    SequenceStartEvent,
)
from ruamel.yaml.nodes import ScalarNode
from ruamel.yaml.reader import ReaderError

from runner.kernel.errors import ConfigError, Mistake

Where: TypeAlias = tuple[str | int, ...]
Scalar: TypeAlias = str | int | float | bool | None

_DEPTH: Final = 32
_SCALAR_CHARS: Final = 4096
_UNFIT: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
_QUOTES: Final = "write it in quotes if it is meant as text"
_CORE: Final = "tag:yaml.org,2002:"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainYaml:
    """The `value` of a document, and the line, from 1, of each key and item by its location."""

    value: Any = field(repr=False)
    lines: Mapping[Where, int] = field(repr=False)


def parse_plain(text: str, *, file: str, nodes: int) -> PlainYaml:
    """Return the document in `text`, whose value is None when it is empty.

    Raises `ConfigError` with the line in `file` and a fix for any text that is not plain YAML of at most
    `nodes` keys and values.
    """
    yaml = YAML(typ="rt", pure=True)
    yaml.version = (1, 2)
    builder = _Builder(yaml, file, nodes)
    try:
        for event in yaml.parse(StringIO(text)):
            builder.take(event)
    except ConfigError:
        raise
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        builder.refuse("this is not YAML", "check indentation and quotes here", mark)
    except ReaderError as error:
        builder.line = text.count("\n", 0, error.position) + 1
        builder.refuse("a character stands here that YAML does not allow", "remove it")
    except Exception:  # noqa: BLE001 - a foreign parser on any text: whatever it raises, it is no profile (I7)
        builder.refuse("this is not YAML", "check indentation and quotes here")
    return PlainYaml(value=builder.value, lines=builder.lines)


@dataclass(slots=True, kw_only=True)
class _Open:
    """A mapping or list that is being read, where it stands, and the key whose value comes next."""

    into: dict[str, Any] | list[Any]
    where: Where
    key: str | None = None

    @property
    def next(self) -> Where:
        """Return where the next value stands."""
        return (*self.where, len(self.into) if isinstance(self.into, list) else self.key or "")


class _Builder:
    """Builds plain values from the parser's events, one by one, and keeps no graph."""

    def __init__(self, yaml: Any, file: str, nodes: int) -> None:  # noqa: ANN401 - a foreign class
        self.value: Any = None
        self.lines: dict[Where, int] = {}
        self.line = 0
        self._file = file
        self._left = nodes
        self._resolver = yaml.resolver
        self._documents = 0
        self._open: list[_Open] = []

    def refuse(self, problem: str, fix: str, mark: Any = None) -> NoReturn:  # noqa: ANN401 - a foreign mark
        """Raise `ConfigError` for the line of `mark`, or else of the latest event."""
        line = self.line if mark is None else int(mark.line) + 1
        raise ConfigError([Mistake(file=self._file, line=line, where="", problem=problem, fix=fix)])

    def take(self, event: object) -> None:
        """Take the next event; raise `ConfigError`."""
        self.line = int(event.start_mark.line) + 1 if hasattr(event, "start_mark") else self.line
        match event:
            case DocumentStartEvent():
                self._start(event)
            case AliasEvent():
                self.refuse("aliases are not understood here", "write the value itself")
            case NodeEvent():
                self._node(event)
            case CollectionEndEvent():
                self._open.pop()
            case _:
                pass

    def _start(self, event: DocumentStartEvent) -> None:
        self._documents += 1
        if self._documents > 1:
            self.refuse("a second document starts here", "keep one document in the file")
        if event.version or event.tags:
            self.refuse("directives are not understood here", "remove the line that starts with %")

    def _node(self, event: Any) -> None:  # noqa: ANN401 - a node event of a foreign library
        self._left -= 1
        if self._left < 0 or len(self._open) > _DEPTH:
            self.refuse("the file holds too much or nests too deeply", "leave out what is not needed")
        if event.anchor is not None:
            self.refuse("anchors are not understood here", f"remove the &name, or {_QUOTES}")
        if event.tag is not None:
            self.refuse("tags are not understood here", f"remove the !name, or {_QUOTES}")
        match event:
            case MappingStartEvent():
                self._enter({})
            case SequenceStartEvent():
                self._enter([])
            case ScalarEvent():
                self._scalar(event)
            case _:
                self.refuse("this is not YAML", "write keys, lists and values only")

    def _enter(self, into: dict[str, Any] | list[Any]) -> None:
        parent = self._open[-1] if self._open else None
        if parent is not None and isinstance(parent.into, dict) and parent.key is None:
            self.refuse("a key is not a word", "write keys as plain words")
        where = () if parent is None else parent.next
        self._place(into)
        self._open.append(_Open(into=into, where=where))

    def _scalar(self, event: ScalarEvent) -> None:
        value = self._parsed(event)
        parent = self._open[-1] if self._open else None
        if parent is None or isinstance(parent.into, list) or parent.key is not None:
            self._place(value)
            return
        if not isinstance(value, str) or not value:
            self.refuse("a key is not a word", "write keys as plain words")
        if value in parent.into:
            self.refuse("a key stands twice", "keep one of the two")
        parent.key = value
        self.lines[parent.next] = self.line

    def _place(self, value: object) -> None:
        """Put `value` where the next one belongs."""
        if not self._open:
            self.value = value
            return
        parent = self._open[-1]
        if isinstance(parent.into, list):
            self.lines[parent.next] = self.line
            parent.into.append(value)
        else:
            parent.into[str(parent.key)] = value
            parent.key = None

    def _parsed(self, event: ScalarEvent) -> Scalar:
        """Return the value of a scalar; raise `ConfigError` for one that is not plain."""
        text = str(event.value)
        if len(text) > _SCALAR_CHARS:
            self.refuse(f"a value is longer than {_SCALAR_CHARS} characters", "shorten it")
        if _UNFIT.search(text):
            self.refuse("a value holds a character that no name or path can hold", "remove it")
        plain = bool(event.implicit[0])
        kind = str(self._resolver.resolve(ScalarNode, text, (True, False))) if plain else f"{_CORE}str"
        try:
            return _VALUES[kind.removeprefix(_CORE)](text)
        except (KeyError, ValueError):
            self.refuse("this word means something else in YAML, such as a date or a merge", _QUOTES)


def _whole(text: str) -> int:
    """Return the number in `text`: decimal, or hexadecimal or octal with their mark; raise `ValueError`."""
    bare = text.replace("_", "").lower()
    return int(bare, 0) if bare.lstrip("+-")[:2] in {"0x", "0o", "0b"} else int(bare)


def _fraction(text: str) -> float:
    """Return the number in `text`, which may be infinite or none; raise `ValueError`."""
    return float(text.replace("_", "").lower().replace(".inf", "inf").replace(".nan", "nan"))


_VALUES: Final[Mapping[str, Callable[[str], Scalar]]] = {
    "str": str,
    "int": _whole,
    "float": _fraction,
    "bool": lambda text: text.lower() == "true",
    "null": lambda _: None,
}
"""What a plain word becomes, by the kind that YAML 1.2 gives it."""
