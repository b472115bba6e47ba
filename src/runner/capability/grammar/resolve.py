# SPDX-License-Identifier: Apache-2.0
"""Where a ``$ref`` points.

Owns identifiers, anchors and JSON pointers inside one document. Leaves meaning to ``read``. Nothing is ever
fetched: a reference out of the document is refused.

Invariant: resolution reads the schema value and nothing else (P1: no network in here).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias
from urllib.parse import unquote, urldefrag, urljoin

from .model import SchemaRefusedError

if TYPE_CHECKING:
    from collections.abc import Mapping

_DEPTH_LIMIT = 2000
_DATA = frozenset({"const", "enum", "default", "examples"})
_MAPS = frozenset(
    {"properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"}
)

Located: TypeAlias = tuple[object, str]
"""A subschema and the base URI in force inside it."""


@dataclass(slots=True)
class References:
    """The identified subschemas of one document; ``legacy`` is draft 7 or older."""

    document: Mapping[str, object]
    legacy: bool
    _resources: dict[str, Located] = field(default_factory=dict)
    _anchors: dict[str, Located] = field(default_factory=dict)
    dynamic: dict[str, list[Located]] = field(default_factory=dict)
    """Targets of each ``$dynamicAnchor`` name."""

    def __post_init__(self) -> None:
        self._resources[""] = (self.document, self.base_of(self.document, ""))
        stack: list[tuple[object, str, int, bool]] = [(self.document, "", 0, True)]
        while stack:
            value, base, depth, is_schema = stack.pop()
            if depth > _DEPTH_LIMIT:
                raise SchemaRefusedError("the schema nests more than 2000 levels deep")
            if isinstance(value, list):
                stack.extend((item, base, depth + 1, True) for item in value)
            elif isinstance(value, dict):
                if is_schema:
                    base = self._index(value, base)
                for key, item in value.items():
                    if not is_schema or key not in _DATA:
                        stack.append((item, base, depth + 1, not (is_schema and key in _MAPS)))

    def base_of(self, schema: object, base: str) -> str:
        """Return the base URI inside ``schema``, found where ``base`` is in force."""
        if not isinstance(schema, dict) or (self.legacy and "$ref" in schema):
            return base
        name = schema.get("$id", schema.get("id") if self.legacy else None)
        if not isinstance(name, str) or name.startswith("#"):
            return base
        try:
            return urldefrag(urljoin(base, name)).url
        except ValueError:
            raise SchemaRefusedError("$id: not a URI reference") from None

    def _index(self, schema: dict[str, object], base: str) -> str:
        inner = self.base_of(schema, base)
        located: Located = (schema, inner)
        if inner != base or schema is self.document:
            self._resources.setdefault(inner, located)
        for key in ("$anchor", "$dynamicAnchor", "$id", "id"):
            name = schema.get(key)
            if not isinstance(name, str):
                continue
            if key in ("$id", "id"):
                if not (self.legacy and name.startswith("#")):
                    continue
                name = name[1:]
            self._anchors.setdefault(f"{inner}#{name}", located)
            if key == "$dynamicAnchor":
                self.dynamic.setdefault(name, []).append(located)
        return inner

    def resolve(self, reference: str, base: str) -> Located:
        """Return what ``reference`` points at, read where ``base`` is in force.

        Raises ``SchemaRefusedError`` when it points out of the document or at nothing.
        """
        try:
            target, fragment = urldefrag(urljoin(base, reference) if reference else base)
        except ValueError:
            raise SchemaRefusedError("$ref: not a URI reference") from None
        if reference.startswith("#"):
            target, fragment = base, reference[1:]
        if target not in self._resources:
            raise SchemaRefusedError("$ref: points outside the document; inline what it names")
        fragment = unquote(fragment)
        if fragment and not fragment.startswith("/"):
            if f"{target}#{fragment}" not in self._anchors:
                raise SchemaRefusedError("$ref: no such anchor")
            return self._anchors[f"{target}#{fragment}"]
        return self._walk(self._resources[target], fragment)

    def _walk(self, located: Located, pointer: str) -> Located:
        value, base = located
        for part in pointer.split("/")[1:]:
            token = part.replace("~1", "/").replace("~0", "~")
            if isinstance(value, dict) and token in value:
                value = value[token]
            elif isinstance(value, list) and token.isascii() and token.isdigit() and int(token) < len(value):
                value = value[int(token)]
            else:
                raise SchemaRefusedError("$ref: the pointer leads nowhere")
            base = self.base_of(value, base)
        return value, base
