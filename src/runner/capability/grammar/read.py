# SPDX-License-Identifier: Apache-2.0
"""From a JSON Schema to nodes and formulas.

Owns nodes: each subschema that says something has a number, and its formula is made when it is first needed.
Leaves the meaning of keywords to ``keywords`` and targets of references to ``resolve``.

Invariant: two references to one subschema are one node, so that a recursive schema has finitely many.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from .keywords import KEYWORDS, parse_map
from .logic import ANYTHING, both
from .model import FALSE, TRUE, Formula, Lit, SchemaRefusedError
from .resolve import References

if TYPE_CHECKING:
    from collections.abc import Mapping

_ALIAS_LIMIT = 100
_MODERN = ("draft/2019-09", "draft/2020-12")


class Reader:
    """Reads one document; ``assert_formats`` says whether ``format`` constrains."""

    __slots__ = (
        "_bases",
        "_formulas",
        "_keys",
        "_schemas",
        "assert_formats",
        "legacy",
        "modern",
        "references",
    )

    def __init__(self, document: Mapping[str, object], *, assert_formats: bool) -> None:
        dialect = document.get("$schema", "")
        self.modern = isinstance(dialect, str) and any(name in dialect for name in _MODERN)
        self.legacy = not self.modern and isinstance(dialect, str) and "json-schema.org/" in dialect
        self.assert_formats = assert_formats
        self.references = References(document, legacy=self.legacy)
        self._schemas: list[object] = [True]
        self._bases: list[str] = [""]
        self._keys: dict[tuple[object, str], int] = {}
        self._formulas: dict[int, Formula] = {TRUE: ANYTHING}

    def node(self, schema: object, base: str) -> int:
        """Return the literal of ``schema``, found where ``base`` is in force.

        Raises ``SchemaRefusedError`` for what is not a schema and for reference cycles.
        """
        for _ in range(_ALIAS_LIMIT):
            if isinstance(schema, bool):
                return TRUE if schema else FALSE
            if not isinstance(schema, dict):
                raise SchemaRefusedError("a schema is an object or a boolean")
            inner = self.references.base_of(schema, base)
            if not self._is_alias(schema):
                break
            schema, base = self.resolve(schema["$ref"], inner)
        else:
            raise SchemaRefusedError("$ref: a cycle of references alone")
        if not any(key in KEYWORDS for key in schema):
            return TRUE
        return self._intern((id(schema), inner), schema, inner)

    def constant(self, value: object) -> int:
        """Return the literal "equals ``value``"."""
        return self._intern((json.dumps(value, sort_keys=True), "const"), {"const": value}, "")

    def formula(self, node: int) -> Formula:
        """Return what a node (not negated) says. Raises ``SchemaRefusedError`` where it cannot be read."""
        found = self._formulas.get(node)
        if found is None:
            found = self._formulas[node] = self._read(self._schemas[node], self._bases[node])
        return found

    def resolve(self, reference: object, base: str) -> tuple[object, str]:
        """Return where a reference leads; raises ``SchemaRefusedError`` when nowhere in the document."""
        if not isinstance(reference, str):
            raise SchemaRefusedError("$ref: a string is needed")
        return self.references.resolve(reference, base)

    def sources(self, node: int) -> tuple[object, str]:
        """Return the schema of a node and its base URI."""
        return self._schemas[node], self._bases[node]

    def keywords(self, schema: Mapping[str, object], base: str) -> Formula:
        """Return the conjunction of the keywords of ``schema``, in their order."""
        if self.legacy and "$ref" in schema:
            return Lit(node=self.node(*self.resolve(schema["$ref"], base)))
        done: set[str] = set()
        parts: list[Formula] = []
        for key in schema:
            group, read = KEYWORDS.get(key, ("", None))
            if read and group not in done:
                done.add(group)
                parts.append(read(self, schema, base))
        return both(*parts)

    def _is_alias(self, schema: Mapping[str, object]) -> bool:
        if "$ref" not in schema:
            return False
        return self.legacy or all(key == "$ref" or key not in KEYWORDS for key in schema)

    def _intern(self, key: tuple[object, str], schema: object, base: str) -> int:
        found = self._keys.get(key)
        if found is None:
            found = self._keys[key] = len(self._schemas)
            self._schemas.append(schema)  # keeps the object alive, so that its id stays its own
            self._bases.append(base)
        return found

    def _read(self, schema: object, base: str) -> Formula:
        return self.keywords(parse_map(schema, "schema"), base)

    def nodes(self, value: object, keyword: str, base: str) -> tuple[int, ...]:
        """Return the literals of a list of schemas; raises ``SchemaRefusedError`` when it is not one."""
        if not isinstance(value, list) or not value:
            raise SchemaRefusedError(f"{keyword}: a list of schemas is needed")
        return tuple(self.node(item, base) for item in value)

    def node_map(self, value: object, keyword: str, base: str) -> tuple[tuple[str, int], ...]:
        """Return names and literals of a map of schemas; raises ``SchemaRefusedError`` when it is not one."""
        return tuple((name, self.node(item, base)) for name, item in parse_map(value, keyword).items())
