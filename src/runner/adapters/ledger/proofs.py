# SPDX-License-Identifier: Apache-2.0
"""The proof that one line stands in a sealed log, in the form that `akaion-verify check` takes.

Owns making proofs (`contracts/trace/v1` §11): the line, an inclusion proof up to the next seal, and what
vouches for the log's key. Leaves checking to the verifier, which is another program; a test holds every proof
made here to be, byte for byte, what `akaion-verify prove` prints. Carries I4.
"""

import base64
import json
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Final

from runner.adapters.ledger.book import Entry, ReadLog, parse_record
from runner.perimeter.trace.merkle import leaf_hash, node_hash

FORMAT: Final = "akaion-proof/1"
_HEAD: Final = "c2sp.org/tlog-proof@v1"


@dataclass(frozen=True, slots=True)
class Prover:
    """Makes the proofs of one log. Roots of subtrees are kept: many proofs cost little more than one."""

    log: ReadLog
    _roots: dict[tuple[int, int], bytes] = field(default_factory=dict, repr=False)

    def prove(self, seq: int) -> bytes | None:
        """Return the proof of line `seq` as a JSON file; None if no seal covers it."""
        seals = [entry.seq for entry in self.log.entries if entry.kind == "seal"]
        later = [at for at in seals if at > seq]
        if not later:
            return None
        path = self._path(seq, 0, later[0])
        hashes = [base64.b64encode(step).decode("ascii") for step in path]
        document = {
            "format": FORMAT,
            "header": _text(self.log.header),
            "certificate": _note(self.log.entries[seals[0]]),
            "line": _text(self.log.entries[seq]),
            "proof": "\n".join([_HEAD, f"index {seq}", *hashes, "", _note(self.log.entries[later[0]])]),
        }
        return json.dumps(document, indent=2).encode("ascii") + b"\n"

    def _path(self, seq: int, start: int, end: int) -> list[bytes]:
        """Return the siblings from leaf `seq` up to the root over `start` to `end` (RFC 6962, 2.1.1)."""
        if end - start == 1:
            return []
        middle = start + _largest_power_below(end - start)
        if seq < middle:
            return [*self._path(seq, start, middle), self._root(middle, end)]
        return [*self._path(seq, middle, end), self._root(start, middle)]

    def _root(self, start: int, end: int) -> bytes:
        if end - start == 1:
            return leaf_hash(self.log.entries[start].line)
        known = self._roots.get((start, end))
        if known is None:
            middle = start + _largest_power_below(end - start)
            known = self._roots[start, end] = node_hash(self._root(start, middle), self._root(middle, end))
        return known


def proof_name(place: tuple[int, int]) -> str:
    """Return the name of the file with the proof of a line in a pack: by log and seq."""
    return f"proofs/{place[0]:06d}-{place[1]:06d}.json"


def leaf_of(entry: Entry) -> str:
    """Return the leaf hash of a line in hex: what `prev` of the next line is."""
    return sha256(b"\0" + entry.line).hexdigest()


def _largest_power_below(size: int) -> int:
    return int(1 << (size - 1).bit_length() - 1)


def _text(entry: Entry) -> str:
    return entry.line.decode("utf-8")


def _note(seal: Entry) -> str:
    return str(parse_record(seal.line)["note"])
