# SPDX-License-Identifier: Apache-2.0
"""What the readers of keywords need from the reader of a document.

Owns the port between them: ``read`` implements it, ``keywords`` and ``unevaluated`` are written against it,
and neither imports the other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .model import Formula
    from .resolve import References


class Reader(Protocol):
    """Turns subschemas into nodes and formulas."""

    @property
    def assert_formats(self) -> bool:
        """Whether ``format`` constrains."""

    @property
    def legacy(self) -> bool:
        """Whether the document is of a draft before 2019-09."""

    @property
    def modern(self) -> bool:
        """Whether the document says that it is of draft 2019-09 or later."""

    @property
    def references(self) -> References:
        """The targets of references in the document."""

    def node(self, schema: object, base: str) -> int:
        """Return the literal of ``schema``."""

    def nodes(self, value: object, keyword: str, base: str) -> tuple[int, ...]:
        """Return the literals of a list of schemas."""

    def node_map(self, value: object, keyword: str, base: str) -> tuple[tuple[str, int], ...]:
        """Return names and literals of a map of schemas."""

    def constant(self, value: object) -> int:
        """Return the literal "equals ``value``"."""

    def formula(self, node: int) -> Formula:
        """Return what a node (not negated) says."""

    def resolve(self, reference: object, base: str) -> tuple[object, str]:
        """Return where a reference leads."""

    def sources(self, node: int) -> tuple[object, str]:
        """Return the schema of a node and its base URI."""

    def keywords(self, schema: Mapping[str, object], base: str) -> Formula:
        """Return the conjunction of the keywords of ``schema``."""
