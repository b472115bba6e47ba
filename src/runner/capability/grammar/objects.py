# SPDX-License-Identifier: Apache-2.0
"""Settling objects: which names, in which order, with which goals.

Owns the sorting of names into declared members and classes of other names. Two classes never share a name
and no class holds a declared one, so a second member of the same name can only repeat what the first
satisfies.

Invariant: a generated name gets every constraint that the schema puts on it; where repetition of a name
could deceive a count, the keyword is noted.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from .model import (
    FALSE,
    REPEAT_LIMIT,
    Extra,
    Goal,
    HasOther,
    Ledger,
    Member,
    Members,
    ObjectDraft,
    ObjectShape,
    StringShape,
    Text,
    TooLargeError,
)
from .pattern import UnsupportedPatternError
from .regex import language
from .shapes import both_strings, few_words, goal, in_strings, settle_string
from .terminals import writable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_CLASS_LIMIT = 64
_NEVER = frozenset({FALSE})


class ObjectSettler:
    """Settles object drafts; ``strings`` answers which strings satisfy a goal."""

    __slots__ = ("_ledger", "_strings")

    def __init__(self, ledger: Ledger, strings: Callable[[Goal], tuple[StringShape, ...]]) -> None:
        self._ledger = ledger
        self._strings = strings

    def settle(self, draft: ObjectDraft) -> list[ObjectShape]:
        """Return the alternatives of ``draft``; none when no object satisfies it."""
        if draft.hi is not None and draft.hi < len(draft.required):
            return []
        members = self._members(draft)
        if members is None:
            return []
        extras = self._extras(draft, frozenset(member.name for member in members))
        members += [
            Member(name=name, goal=extra.goal, required=False)
            for extra in extras
            for name in few_words(extra.names)
        ]
        extras = [extra for extra in extras if not few_words(extra.names)]
        present = [member for member in members if member.goal != _NEVER]
        shapes = [ObjectShape(members=tuple(present), extras=tuple(extras), lo=draft.lo, hi=draft.hi)]
        for other in draft.others:
            shapes = [found for shape in shapes for found in self._with_other(shape, other)]
        return [settled for shape in shapes for settled in self._sized(shape)]

    def _members(self, draft: ObjectDraft) -> list[Member] | None:
        names = dict.fromkeys(name for group in draft.members for name, _ in group.names)
        names.update(dict.fromkeys(draft.required))
        self._ledger.spend(len(names) * max(len(draft.members), 1), "properties")
        tables = [dict(group.names) for group in draft.members]
        allowed = self._strings(draft.naming) if draft.naming else None
        result = []
        for name in names:
            literals: list[int] = []
            for group, table in zip(draft.members, tables, strict=True):
                literals.extend(self._literals(name, group, table))
            if not writable(name) or (
                allowed is not None and not any(in_strings(shape, name) for shape in allowed)
            ):
                literals.append(FALSE)
            member = Member(name=name, goal=goal(literals), required=name in draft.required)
            if member.required and member.goal == _NEVER:
                return None
            result.append(member)
        return result

    def _literals(self, name: str, group: Members, table: dict[str, int]) -> Iterator[int]:
        matched = name in table
        if matched:
            yield table[name]
        for pattern, literal in group.patterns:
            if not self._supported(pattern):
                continue
            holds = language(pattern).holds(name)
            matched = matched or holds
            # Beyond printable ASCII the dialects of expressions differ: if any matches, both rules apply.
            if holds or (not _is_plain(name) and language(pattern, wide=True).holds(name)):
                yield literal
        if not matched:
            yield group.extra

    def _supported(self, pattern: str) -> bool:
        try:
            language(pattern)
            language(pattern, wide=True)
        except (UnsupportedPatternError, TooLargeError):
            self._ledger.note("patternProperties")
            return False
        return True

    def _extras(self, draft: ObjectDraft, declared: frozenset[str]) -> list[Extra]:
        classes = [Extra(names=StringShape(barred=declared), goal=frozenset())]
        for shape in (self._strings(draft.naming),) if draft.naming else ():
            parts = (
                (both_strings(extra.names, names, self._ledger), extra)
                for extra in classes
                for names in shape
            )
            classes = [replace(extra, names=names) for names, extra in parts if names is not None]
        for group in draft.members:
            if any(not self._supported(pattern) for pattern, _ in group.patterns):
                # A name may match the pattern we cannot read: say nothing about the others.
                continue
            classes = [found for extra in classes for found in self._split(extra, group)]
            if len(classes) > _CLASS_LIMIT:
                raise TooLargeError("patternProperties")
        return [extra for extra in classes if extra.goal != _NEVER]

    def _split(self, extra: Extra, group: Members) -> Iterator[Extra]:
        """Split a class of names by the patterns of ``group``, and give each part what applies to it."""
        parts: list[tuple[Extra, bool]] = [(extra, False)]
        for pattern, literal in group.patterns:
            split: list[tuple[Extra, bool]] = []
            for part, matched in parts:
                for holds in (True, False):
                    text = StringShape(texts=frozenset({Text(pattern=pattern, holds=holds)}))
                    names = both_strings(part.names, text, self._ledger)
                    if names is not None:
                        literals = (*part.goal, literal) if holds else part.goal
                        split.append((Extra(names=names, goal=goal(literals)), matched or holds))
            parts = split
        for part, matched in parts:
            yield part if matched else Extra(names=part.names, goal=goal((*part.goal, group.extra)))

    def _with_other(self, shape: ObjectShape, other: HasOther) -> Iterator[ObjectShape]:
        """Require a member outside ``other``: one that is declared here, or one that is not."""
        if not all(self._supported(pattern) for pattern in other.patterns):
            yield shape
            return
        texts = frozenset(Text(pattern=pattern, holds=False) for pattern in other.patterns)
        outside = settle_string(StringShape(barred=other.names, texts=texts), self._ledger)
        if outside is None:
            return
        for index, member in enumerate(shape.members):
            if in_strings(outside, member.name):
                needed = replace(member, required=True)
                yield replace(shape, members=(*shape.members[:index], needed, *shape.members[index + 1 :]))
        if any(extra.needed for extra in shape.extras):
            self._ledger.note("not")
            yield shape
            return
        needed_extras = [
            replace(extra, names=names, needed=True)
            for extra in shape.extras
            if (names := both_strings(extra.names, outside, self._ledger)) is not None
        ]
        if needed_extras:
            yield replace(shape, extras=(*shape.extras, *needed_extras))

    def _sized(self, shape: ObjectShape) -> Iterator[ObjectShape]:
        """Simplify the bounds on the number of members, and say when repetition of a name could deceive."""
        lo, hi = shape.lo, shape.hi
        required = sum(member.required for member in shape.members)
        if hi is not None and hi < required:
            return
        if not shape.extras:
            if lo > len(shape.members):
                return
            hi = None if hi is not None and hi >= len(shape.members) else hi
        elif lo > required + 1:
            # Two members of one name count once; only one member outside the declared ones is sure to count.
            self._ledger.note("minProperties")
        if max(lo, hi or 0) >= REPEAT_LIMIT:
            self._ledger.note("minProperties" if lo >= REPEAT_LIMIT else "maxProperties")
            lo, hi = 0, None
        lo = 0 if lo <= required else lo
        yield ObjectShape(members=shape.members, extras=shape.extras, lo=lo, hi=hi)


def _is_plain(name: str) -> bool:
    return name.isascii() and name.isprintable()
