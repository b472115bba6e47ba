# SPDX-License-Identifier: Apache-2.0
"""Content that a practice kept, matched with what the record committed to.

Owns the search: which of these texts is behind which commitment of these lines. The record holds commitments
only and the vault their salts; the content itself nobody keeps but whoever owns it. What matches no
commitment is not disclosed: a pack shows no text that the record does not prove. Carries I12.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from runner.adapters.ledger.book import Entry
from runner.kernel.errors import TraceError
from runner.perimeter.trace.commit import commitment

MAX_TEXTS: Final = 5_000
MAX_BYTES: Final = 1 << 20
"""The largest file that is looked at."""
_COMMIT: Final = re.compile(r"[0-9a-f]{64}")
_COMMITTED: Final = frozenset({"commit", "source", "user", "matters"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Disclosure:
    """`payload` is what the member `member` of a line commits to under `salt` (32 bytes)."""

    log: int
    seq: int
    member: str
    commit: str
    salt: bytes = field(repr=False)
    payload: bytes = field(repr=False)

    @property
    def holds(self) -> bool:
        """Whether this is what was committed."""
        return commitment(self.salt, self.payload) == self.commit

    @property
    def file(self) -> str:
        """Its name in a pack."""
        return f"content/{self.log:06d}-{self.seq:06d}-{self.member}-{self.commit[:16]}.bin"


def commitments(entry: Entry) -> Iterator[tuple[str, str]]:
    """Yield the members of a line that commit to content, and each commitment in them."""
    for member, value in entry.body.items():
        if member in _COMMITTED or member.endswith("_commit"):
            yield from ((member, each) for each in _listed(value) if _COMMIT.fullmatch(each))


def _listed(value: Any) -> list[str]:  # noqa: ANN401 - JSON
    return [each for each in (value if isinstance(value, list) else [value]) if isinstance(each, str)]


def disclose(
    entries: Sequence[Entry], salts: Mapping[str, bytes], texts: Sequence[bytes]
) -> tuple[Disclosure, ...]:
    """Return what of `texts` the lines commit to; `salts` are those that the vault still holds."""
    found = (
        Disclosure(
            log=entry.log, seq=entry.seq, member=member, commit=commit, salt=salts[commit], payload=text
        )
        for entry in entries
        for member, commit in commitments(entry)
        if commit in salts
        for text in texts
    )
    return tuple(each for each in found if each.holds)


UNMATCHED: Final = (
    "no: none of these lines commits to the whole file or to a line of it, or the salt was deleted"
)


def tried(folder: Path, disclosed: Sequence[Disclosure]) -> dict[str, str]:
    """Return for each file that `read_texts` read whether it matched, by its path in `folder`; and why not.

    Raises `OSError` for a file that can no longer be read.
    """
    payloads = {each.payload for each in disclosed}
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): _match(path.read_bytes(), payloads) for path in files}


def _match(text: bytes, payloads: set[bytes]) -> str:
    if {text, text.removesuffix(b"\n").removesuffix(b"\r")} & payloads:
        return "whole"
    lines = sum(line in payloads for line in text.splitlines())
    return f"{lines} of its lines" if lines else UNMATCHED


def read_texts(folder: Path) -> tuple[bytes, ...]:
    """Return what may be behind a commitment: each file in `folder`, whole, and each line of it.

    With and without a final newline, each text once, in the order of their bytes. Raises `TraceError` for
    more than `MAX_TEXTS`, a file above `MAX_BYTES`, or what cannot be read.
    """
    try:
        files = [path for path in folder.rglob("*") if path.is_file()]
        if not folder.is_dir() or any(path.stat().st_size > MAX_BYTES for path in files):
            raise TraceError(
                f"{folder} is no folder of small files. Fix: name one with files up to {MAX_BYTES >> 20} MiB"
            )
        whole = {path.read_bytes() for path in files}
    except OSError as error:
        raise TraceError(f"{folder} cannot be read ({error.strerror}). Fix: own it and its files") from None
    lines = {line for text in whole for line in text.splitlines()}
    texts = {*whole, *(text.removesuffix(b"\n").removesuffix(b"\r") for text in whole), *lines} - {b""}
    if len(texts) > MAX_TEXTS:
        raise TraceError(
            f"{folder} holds {len(texts)} texts, more than {MAX_TEXTS}. Fix: leave out what cannot be it"
        )
    return tuple(sorted(texts))
