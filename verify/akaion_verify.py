# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: INP001 - one file that stands alone, in no package
"""Verify an `akaion-trace/1` book: one folder in, one verdict out.

Owns: the proof that a book of logs is unaltered, in order, sealed by the keys it names, and obeys the rules
of the trace. Leaves to others: writing logs, fetching anchors, judging whether the labels were true.
Carries I4 (a missing or rewritten entry is detectable), I9 (a seal stands before every effect), S1-S14
of `contracts/trace/v1/README.md`. It shares no code with the program that writes the logs.

Run it with nothing installed:  python3 -I -S akaion_verify.py FOLDER --pin device.vkey
To show or check one line alone:  ... prove FOLDER LOG SEQ    ... check PROOF --pin device.vkey
To hold two copies of a book side by side:  ... compare FOLDER FOLDER --pin device.vkey

How to read this file, which is also the order in which a book is checked:

    1. Reasons    every verdict this program can give, and why
    2. Ed25519    strict verification of one signature
    3. Bytes      from one line to one value, or a refusal
    4. Tree       the Merkle root over the lines so far
    5. Shapes     which members each record has
    6. Keys       verifier keys, pins and signed notes
    7. Rules      what the records of one log say about each other
    8. Log        one file, line by line
    9. Book       all files, in order
   10. Anchors    what an auditor, or a witness, has seen before, which must still be there
   11. Verdict    the worst reason wins; printed for people or as JSON
   12. Proofs     one line shown without its log, and two books held side by side
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import itertools
import json
import os
import re
import stat
import sys
import time
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, BinaryIO, Callable, Dict, Iterator, List, NoReturn, Optional, Sequence, Set, Tuple

VERSION = "0.1.0"
Body = Dict[str, Any]  # a JSON object whose shape step 5 has checked

# ---------------------------------------------------------------------------------------------------------
# 1. Reasons
# ---------------------------------------------------------------------------------------------------------

# Worst first. A verdict is the worst of its reasons; without any reason it is PASS.
EXIT_CODES = {"FAIL": 1, "UNTRUSTED": 3, "INCOMPLETE": 2, "PARTIAL": 5, "UNVERIFIABLE": 4, "PASS": 0}
USAGE_EXIT = 64

REASONS: Dict[str, Tuple[str, str]] = {
    # the folder
    "stray-file": ("FAIL", "a name ending in .jsonl is not a log of this book"),
    "log-number-repeated": ("FAIL", "two files have the same log number"),
    "no-logs": ("INCOMPLETE", "the folder is missing, unreadable or holds no log"),
    "log-unreadable": ("INCOMPLETE", "a log could not be read from disk"),
    "log-missing": ("INCOMPLETE", "a log number is skipped"),
    "state-differs": ("FAIL", "what the auditor's state says was seen before is not in the book"),
    "state-missing": ("INCOMPLETE", "the log that the auditor's state speaks of is not in the folder"),
    "state-unusable": ("UNTRUSTED", "the auditor's state is unreadable, malformed or inside the folder"),
    "witness-differs": ("FAIL", "a pinned witness cosigned other lines than the book has, or more of them"),
    "witness-silent": ("INCOMPLETE", "a pinned witness has cosigned nothing of this book"),
    "witness-unusable": ("UNTRUSTED", "a witness's key is unreadable, malformed, weak or inside the folder"),
    "starts-late": ("PARTIAL", "the book starts after log 0"),
    # bytes and chain
    "line-too-long": ("FAIL", "a line is longer than 1 MiB"),
    "bad-json": ("FAIL", "a line is not JSON within the profile (UTF-8, integers, names, depth, duplicates)"),
    "not-canonical": ("FAIL", "a line is not the one canonical encoding of its value"),
    "too-many-records": ("FAIL", "a log holds more than 100,000 records"),
    "record-shape": ("FAIL", "a record has an unknown kind, an unknown or missing member, or a wrong value"),
    "extension-unlisted": ("FAIL", "an x_ member is not listed in the header"),
    "seq-wrong": ("FAIL", "a record's seq is not its line number"),
    "chain-broken": ("FAIL", "a record's prev is not the hash of the line before it"),
    "time-backwards": ("FAIL", "a time stamp is earlier than the one before it"),
    # header and keys
    "header-misplaced": ("FAIL", "the header is not exactly the first record"),
    "file-name-differs": ("FAIL", "the header's log_no or log_id is not that of the file name"),
    "header-contradiction": ("FAIL", "the header's members contradict each other"),
    "book-name-differs": ("FAIL", "the origin is not <book>/<log_id> with the book's own name"),
    "key-unusable": ("FAIL", "the log's key is malformed, weak or has a wrong id"),
    "key-reused": ("FAIL", "a key serves more than one log, or is the device key"),
    # seals
    "first-seal-misplaced": ("FAIL", "the record after the header is not a seal"),
    "seal-note": ("FAIL", "a seal's note is malformed or has other signature lines than it must"),
    "seal-differs": ("FAIL", "a seal's origin, size or root is not that of the log"),
    "seal-signature": ("FAIL", "a seal's signature by the log's key is wrong"),
    "device-signature": ("FAIL", "the pinned device key did not sign this first seal"),
    "seal-empty": ("FAIL", "a seal follows a seal"),
    "seal-overdue": ("FAIL", "S9: more than seal_every entries stand without a seal"),
    # from log to log
    "prev-log-differs": ("FAIL", "prev_log is not the id, size and root of the log before"),
    "recovery-misplaced": ("FAIL", "recovery is not the first entry after the header, sealed at once"),
    "recovery-differs": ("FAIL", "recovery does not state what the log before it is"),
    "after-close": ("FAIL", "something other than one seal follows close"),
    "never-sealed": ("INCOMPLETE", "a log has no seal"),
    "log-open": ("INCOMPLETE", "a log does not end with a sealed close, and no recovery accounts for it"),
    "unsealed-tail": ("INCOMPLETE", "lines after the last seal, and no recovery accounts for them"),
    "torn-tail": ("INCOMPLETE", "bytes after the last whole line, and no recovery accounts for them"),
    "after-succession": ("FAIL", "a log follows the one that named the book's next device key"),
    # rules
    "egress-c3": ("FAIL", "S1: C3 was released to something that is not local"),
    "egress-above-ceiling": ("FAIL", "S1: a release that is not local is above max_egress_class"),
    "id-reused": ("FAIL", "S2: a call_id or send_id serves twice"),
    "unknown-tool-allowed": ("FAIL", "S2: a decision on an unknown tool is not deny"),
    "approval-unasked": ("FAIL", "S2: an approval without a matching decision ask, or a second one"),
    "call-undecided": ("FAIL", "S2: a tool call without a decision"),
    "call-denied": ("FAIL", "S2: a tool call after a deny"),
    "call-unapproved": ("FAIL", "S2: a tool call after ask, without a granted approval"),
    "call-expired": ("FAIL", "S2: a tool call after its approval expired"),
    "call-differs": ("FAIL", "S2: a tool call with another tool or other arguments than decided"),
    "call-repeated": ("FAIL", "S2: a second tool call on one decision"),
    "result-unmatched": ("FAIL", "S3: a result without its call or send, or a second one"),
    "task-not-open": ("FAIL", "S4: an entry outside its task's start and end"),
    "task-reused": ("FAIL", "S4: a task starts twice"),
    "task-left-open": ("FAIL", "S4: the log closes while a task is open"),
    "egress-outside-call": ("FAIL", "S5: a tool's egress outside its tool call"),
    "net-undeclared": ("FAIL", "S5: egress of a tool that was called without net"),
    "net-unrecorded": ("FAIL", "S5: a tool with net finished without an egress record"),
    "policy-differs": ("FAIL", "S6: another policy was in force; that does not say the record was altered"),
    "decision-differs": ("FAIL", "S10: a decision is not the one that the supplied policy gives"),
    "effect-unsealed": ("FAIL", "S7: no seal between a tool call or egress and its result"),
    "counts-differ": ("FAIL", "S8: stated counts are not those of the log"),
    "backend-unlisted": ("FAIL", "S11: a backend is not in the header"),
    "backend-unprobed": ("FAIL", "S11: an egress to a backend without an earlier backend record"),
    "locality-differs": ("FAIL", "S11: an egress states another locality than its backend's latest record"),
    "parts-differ": ("FAIL", "S12: a block's class is not the maximum of its parts"),
    "classifier-unlisted": ("FAIL", "S13: a block was classified by something the header does not name"),
    "opinion-too-low": ("FAIL", "S13: a block's class is below that of the opinion on it"),
    "block-unknown": ("FAIL", "S12: a block is used before it is classified"),
    "block-reused": ("FAIL", "S12: a block is classified or produced twice"),
    "class-too-low": ("FAIL", "S12: a class is below that of what it was made from, or its task has seen"),
    "declassify-differs": ("FAIL", "S12: no declassification covers exactly this lowering"),
    "declassify-c3": ("FAIL", "S12: C3 is lowered, which no rule and no approval may do"),
    "declassify-rule": ("FAIL", "S12: a declassification names a rule that may not lower"),
    "declassify-unapproved": ("FAIL", "S12: a declassification names no valid approval"),
    "matters-met": ("FAIL", "S14: a call brought a second matter into its task without an approval"),
    # trust and honesty
    "no-pin": ("UNTRUSTED", "no device key was pinned, so anyone could have made this book"),
    "pin-inside-folder": ("UNTRUSTED", "the pin lies inside the folder it should vouch for, and was refused"),
    "pin-unusable": ("UNTRUSTED", "the pin is unreadable, malformed or a weak key"),
    "key-not-pinned": ("UNTRUSTED", "a log was certified by another device key than the pinned one"),
    "unverifiable": ("UNVERIFIABLE", "P3: the header declares that something ran outside the perimeter"),
    "proof-malformed": ("FAIL", "a proof is malformed, or does not lead from its line to its note's root"),
    "verifier-fault": ("FAIL", "this program failed; the book is not verified"),
}

NOT_CLAIMED = (
    "that the labels and classes were true",
    "that no other log or book exists, or that none follows the last one seen",
    "that an allowed send without a result was not delivered",
    "that records and the clock say what happened: they say what the runner recorded",
)
NOT_ANCHORED = "not protected against a holder of the device key: there is no anchor and no auditor state"
NOT_SHOWN = "that the book of this line keeps the rules, or what else stands in it"
ANCHORED = "what follows the last anchor is not protected against a holder of the device key"
WITNESSED = "that what a witness cosigned was not written anew before the time of its cosignature"


class Fault(Exception):
    """A broken structure: nothing after it in the book can be judged."""

    def __init__(self, code: str) -> None:
        """Name the reason; `code` is a key of `REASONS`."""
        super().__init__(code)
        self.code = code


# ---------------------------------------------------------------------------------------------------------
# 2. Ed25519 (RFC 8032, section 5.1), strict: one answer for every input
# ---------------------------------------------------------------------------------------------------------

P = 2**255 - 19
L = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, P - 2, P) % P
Point = Tuple[int, int, int, int]  # extended coordinates (X, Y, Z, T): x = X/Z, y = Y/Z, x*y = T/Z
IDENTITY: Point = (0, 1, 1, 0)


def point_add(p: Point, q: Point) -> Point:
    """Add two points; complete, so it also doubles (RFC 8032, section 5.1.4)."""
    a = (p[1] - p[0]) * (q[1] - q[0]) % P
    b = (p[1] + p[0]) * (q[1] + q[0]) % P
    c = 2 * D * p[3] * q[3] % P
    d = 2 * p[2] * q[2] % P
    e, f, g, h = b - a, d - c, d + c, b + a
    return (e * f % P, g * h % P, f * g % P, e * h % P)


def point_encode(p: Point) -> bytes:
    """Return the one canonical encoding of a point, 32 bytes."""
    inverse = pow(p[2], P - 2, P)
    x, y = p[0] * inverse % P, p[1] * inverse % P
    return (y | (x & 1) << 255).to_bytes(32, "little")


def point_decode(data: bytes) -> Optional[Point]:
    """Return the point of a canonical 32-byte encoding that is not of small order, else None."""
    number = int.from_bytes(data, "little")
    sign, y = number >> 255, number & (1 << 255) - 1
    if len(data) != 32 or y >= P:
        return None
    square = (y * y - 1) * pow(D * y * y + 1, P - 2, P) % P
    x = pow(square, (P + 3) // 8, P)
    if (x * x - square) % P:
        x = x * pow(2, (P - 1) // 4, P) % P
    if (x * x - square) % P or (x == 0 and sign):
        return None
    if x & 1 != sign:
        x = P - x
    point = (x, y, 1, x * y % P)
    eightfold = point
    for _ in range(3):
        eightfold = point_add(eightfold, eightfold)
    return None if point_encode(eightfold) == point_encode(IDENTITY) else point


Comb = List[List[Point]]


def comb_of(point: Point) -> Comb:
    """Return 64 rows of 16 multiples: row i holds 0..15 times 16^i times the point."""
    rows = []
    for _ in range(64):
        row = [IDENTITY, point]
        while len(row) < 16:
            row.append(point_add(row[-1], point))
        rows.append(row)
        point = point_add(row[15], point)
    return rows


def comb_times(comb: Comb, scalar: int) -> Point:
    """Multiply the comb's point by a scalar below 2^256: one addition for each of its 64 digits."""
    total = IDENTITY
    for row in comb:
        total = point_add(total, row[scalar & 15])
        scalar >>= 4
    return total


@lru_cache(maxsize=1)
def base_comb() -> Comb:
    """Return the comb of the base point, whose y is 4/5 and whose x is even."""
    base = point_decode((4 * pow(5, P - 2, P) % P).to_bytes(32, "little"))
    if base is None:
        raise AssertionError("the base point is on the curve")
    return comb_of(base)


@lru_cache(maxsize=4)
def negated_key_comb(key: bytes) -> Optional[Comb]:
    """Return the comb of minus the key's point, or None for a key that must be refused."""
    point = point_decode(key)
    return None if point is None else comb_of((P - point[0], point[1], 1, P - point[3]))


def signature_ok(key: bytes, message: bytes, signature: bytes) -> bool:
    """Say whether `signature` (64 bytes) by `key` (32 bytes) holds for `message`. Total: never raises.

    Refused are keys and R of small order or in a second encoding, and S >= L. The equation has no cofactor.
    """
    comb = negated_key_comb(key)
    if comb is None or len(signature) != 64:
        return False
    r, s = signature[:32], int.from_bytes(signature[32:], "little")
    if s >= L or point_decode(r) is None:
        return False
    k = int.from_bytes(hashlib.sha512(r + key + message).digest(), "little") % L
    return point_encode(point_add(comb_times(base_comb(), s), comb_times(comb, k))) == r


# ---------------------------------------------------------------------------------------------------------
# 3. Bytes: RFC 8785 restricted. A line must be the one encoding of what it means
# ---------------------------------------------------------------------------------------------------------

MAX_LINE = 1 << 20
MAX_INTEGER = 2**53 - 1
MAX_DEPTH = 8
MEMBER = re.compile(r"[a-z][a-z0-9_]{0,63}")
is_member = lru_cache(maxsize=1024)(MEMBER.fullmatch)


def _parse_members(pairs: List[Tuple[str, object]]) -> Dict[str, object]:
    members = dict(pairs)
    if len(members) != len(pairs) or not all(map(is_member, members)):
        raise ValueError("member names")
    return members


def _parse_integer(digits: str) -> int:
    if len(digits) > 17 or abs(int(digits)) > MAX_INTEGER:
        raise ValueError("integer")
    return int(digits)


def _refuse(token: str) -> NoReturn:
    raise ValueError("not an integer: " + token[:1])


_DECODER = json.JSONDecoder(
    object_pairs_hook=_parse_members, parse_int=_parse_integer, parse_float=_refuse, parse_constant=_refuse
)


_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def _fits(value: object, depth: int) -> bool:
    """Say whether a value nests no deeper than `depth`."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return inner is None or (depth > 0 and all(_fits(item, depth - 1) for item in inner))


def parse_line(line: bytes) -> object:
    """Return the value of one line, given without its 0x0A.

    Raises `Fault` with `line-too-long`, `bad-json` or `not-canonical`.
    """
    if len(line) > MAX_LINE:
        raise Fault("line-too-long")
    try:
        value: object = _DECODER.decode(line.decode("utf-8"))
        if not _fits(value, MAX_DEPTH):
            raise Fault("bad-json")
        again = _ENCODER.encode(value).encode("utf-8")
    except (ValueError, RecursionError) as error:  # includes bad UTF-8 and lone surrogates
        raise Fault("bad-json") from error
    if again != line:
        raise Fault("not-canonical")
    return value


# ---------------------------------------------------------------------------------------------------------
# 4. Tree: the link of the chain is the Merkle leaf of the line before (RFC 6962, section 2.1)
# ---------------------------------------------------------------------------------------------------------

FIRST_PREV = hashlib.sha256(b"akaion-trace/1\n").hexdigest()


def leaf_hash(line: bytes) -> bytes:
    """Return the leaf hash of a line."""
    return hashlib.sha256(b"\x00" + line).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    """Return the hash of an inner node."""
    return hashlib.sha256(b"\x01" + left + right).digest()


@dataclass
class Tree:
    """A Merkle tree that only grows: it keeps the roots of its complete subtrees, largest first."""

    size: int = 0
    peaks: List[bytes] = field(default_factory=list)

    def append(self, leaf: bytes) -> None:
        """Add a leaf: each trailing 1 bit of the size is a complete subtree to merge with."""
        bits = self.size
        while bits & 1:
            leaf = node_hash(self.peaks.pop(), leaf)
            bits >>= 1
        self.peaks.append(leaf)
        self.size += 1

    def root(self) -> bytes:
        """Return the root over all leaves so far."""
        root = self.peaks[-1] if self.peaks else hashlib.sha256(b"").digest()
        for peak in reversed(self.peaks[:-1]):
            root = node_hash(peak, root)
        return root


def inclusion_path(leaves: Sequence[bytes], index: int) -> List[bytes]:
    """Return the proof that leaf `index` is among `leaves`, from the leaf up (RFC 6962, section 2.1.1)."""
    if len(leaves) == 1:
        return []
    half = 1 << (len(leaves) - 1).bit_length() - 1
    inside, beside = (leaves[:half], leaves[half:]) if index < half else (leaves[half:], leaves[:half])
    return [*inclusion_path(inside, index % half), root_of(beside)]


def root_of(leaves: Sequence[bytes]) -> bytes:
    """Return the root over leaves."""
    tree = Tree()
    for leaf in leaves:
        tree.append(leaf)
    return tree.root()


def climb(leaf: bytes, index: int, size: int, path: Sequence[bytes]) -> Optional[bytes]:
    """Return the root that a proof leads to (RFC 9162, section 2.1.3.2), or None if it has a wrong length."""
    root, last = leaf, size - 1
    for sibling in path:
        if last == 0:
            return None
        if index & 1 or index == last:
            root = node_hash(sibling, root)
            while index and not index & 1:
                index, last = index >> 1, last >> 1
        else:
            root = node_hash(root, sibling)
        index, last = index >> 1, last >> 1
    return root if last == 0 else None


# ---------------------------------------------------------------------------------------------------------
# 5. Shapes: exactly these members, exactly these values
# ---------------------------------------------------------------------------------------------------------

Check = Callable[[object], bool]
EXTENSION = re.compile(r"x_[a-z0-9_]{1,62}")


def matches(pattern: str) -> Check:
    """Check: a string that the whole pattern matches."""
    compiled = re.compile(pattern)
    return lambda value: isinstance(value, str) and compiled.fullmatch(value) is not None


def one_of(words: str) -> Check:
    """Check: one of these words, which are written with `|` between them."""
    allowed = frozenset(words.split("|"))
    return lambda value: isinstance(value, str) and value in allowed


def integer(low: int, high: int = MAX_INTEGER) -> Check:
    """Check: an integer within bounds (a boolean is none)."""
    return lambda value: type(value) is int and low <= value <= high


def list_of(item: Check, least: int = 0, key: Optional[str] = None) -> Check:
    """Check: an array of at least `least` such items, no two the same (or the same in member `key`)."""
    return both(
        lambda value: isinstance(value, list) and len(value) >= least and all(map(item, value)),
        lambda value: len({entry[key] if key else entry for entry in value}) == len(value),
    )


def record_of(members: str) -> Check:
    """Check: an object with exactly these members, written `name=type` or `name?=type` (may be absent).

    A type is a name in `TYPES`, or the words that are allowed, joined by `|`.
    """
    needed, checks = set(), {}
    for member in members.split():
        name, kind = member.split("=")
        checks[name.rstrip("?")] = TYPES[kind] if kind in TYPES else one_of(kind)
        if not name.endswith("?"):
            needed.add(name)

    def check(value: object) -> bool:
        if not isinstance(value, dict) or not needed <= value.keys() <= checks.keys():
            return False
        for name, member in value.items():  # noqa: SIM110 - nothing else takes so much time
            if not checks[name](member):
                return False
        return True

    return check


def both(first: Check, second: Callable[[Any], bool]) -> Check:
    """Check: `first`, and then `second`, which may rely on it."""
    return lambda value: first(value) and bool(second(value))


def object_of(item: Check, most: Optional[int] = None) -> Check:
    """Check: an object of any members, `most` at most, each with such a value."""
    return both(
        lambda value: isinstance(value, dict) and (most is None or len(value) <= most),
        lambda value: all(map(item, value.values())),
    )


def commits_to_other(value: Body) -> bool:
    """Say whether `tool_commit` stands beside the tool `other` and only there."""
    return bool(value["tool"] == "other") == ("tool_commit" in value)


def egress_fits_channel(body: Body) -> bool:
    """Say whether an egress has the members its channel and decision ask for."""
    if body["decision"] == "denied" and "reason" not in body:
        return False
    if body["channel"] == "inference":
        return "backend" in body and "host_commit" not in body
    tool_only = "host_commit" in body and "backend" not in body and "declassify" not in body
    return tool_only and bool(body["locality"] == "remote")


def failure_fits_status(body: Body) -> bool:
    """Say whether a failure stands beside a tier, and is `refused` where the send failed, and only there."""
    if "failure" not in body:
        return True
    return "tier" in body and body["status"] == ("error" if body["failure"] == "refused" else "ok")


def opinion_fits_classifier(body: Body) -> bool:
    """Say whether an opinion, on one block, stands where more than the rules was asked, and only there."""
    if body["classifier"] == "rules-only":
        return "opinion" not in body
    return "opinion" in body and len(body["inputs"]) == 1


TYPES: Dict[str, Check] = {
    "object": lambda value: isinstance(value, dict),
    "boolean": lambda value: isinstance(value, bool),
    "text": lambda value: isinstance(value, str),
    "hex32": matches("[0-9a-f]{32}"),
    "hex64": matches("[0-9a-f]{64}"),
    "name": matches("[A-Za-z0-9][A-Za-z0-9_.:@/+-]{0,127}"),
    "origin": matches("[a-z0-9][a-z0-9._/-]{0,94}/[0-9a-f]{32}"),
    "block": matches("b(0|[1-9][0-9]{0,15})"),
    "class": one_of("C0|C1|C2|C3"),
    "locality": one_of("L0|L1|L2|remote"),
    "status": one_of("ok|error|timeout|cancelled"),
    "failure": one_of(
        "no_call|wrong_tool|malformed_json|schema_violation|missing_required|hallucinated_argument"
        "|truncated|ambiguous|too_many_calls|refused"
    ),
    "count": integer(0),
    "list": lambda value: isinstance(value, list),
    "seal_every": integer(1, 256),
    "seal_ms": integer(1, 60_000),
    "extensions": list_of(matches(EXTENSION.pattern)),
}
TYPES["counts"] = object_of(TYPES["count"])
TYPES["replay"] = object_of(lambda value: isinstance(value, int) or TYPES["name"](value), 32)
TYPES["judges"] = both(TYPES["name"], matches("rules-only|rules(\\+[A-Za-z0-9][A-Za-z0-9_.:@/-]{0,99})+"))
TYPES["names"], TYPES["blocks"] = list_of(TYPES["name"]), list_of(TYPES["block"])
TYPES["some_blocks"], TYPES["some_hex64"] = list_of(TYPES["block"], 1), list_of(TYPES["hex64"], 1)
TYPES["host_tools"] = list_of(record_of("name=name trusted=boolean"), key="name")
TYPES["parts"] = record_of("declared?=class default=class detected?=class")
TYPES["sink"] = record_of("to=name max_class=class payload=list cases=list")
TYPES["prev_log"] = record_of("id=hex32 size=count root=hex64")
TYPES["steps"] = list_of(both(record_of("id=count tool=name tool_commit?=hex64"), commits_to_other), key="id")
TYPES["causes"] = list_of(
    one_of("host-tool-untrusted|tool-unrestricted|network-unrestricted|sandbox-missing|fail-open")
)

# Kind, whether the entry names a task, members of its body. A line that starts with a blank goes on.
TABLE = """
header no format=akaion-trace/1 log_id=hex32 log_no=count prev_log?=prev_log origin=origin vkey=text
    alg=ed25519 profile=name policy_digest=hex64 config_digest=hex64 backends=names host_tools=host_tools
    max_egress_class=none|C0|C1 classifier=judges enforcement=cooperative|isolated
    sandbox=none|bubblewrap|bubblewrap-landlock|landlock|seatbelt|container verifiable=boolean
    unverifiable_because=causes custody=file|keyring|process|hardware seal_every=seal_every seal_ms=seal_ms
    writer=name host_commit=hex64 boot_id=hex32 extensions?=extensions
backend no name=name model=name locality=locality is_local=boolean caps_digest=hex64 endpoint_commit=hex64
task_start must goal_commit=hex64 class=class user?=hex64 matters?=some_hex64
task_end must outcome=done|failed|cancelled|stopped counts=counts
plan must by=model|user|plane steps=steps
classify may block=block class=class parts=parts integrity=user|plane|plan|practice|untrusted
    classifier=judges version=name opinion?=none|person|health|judicial|secrecy|credential|fault
    inputs=blocks commit=hex64
policy_decision must call_id=hex32 tool=name tool_commit?=hex64 decision=allow|ask|deny rule=name
    args_commit=hex64 replay=replay class=class inputs=blocks
approval must call_id=hex32 by=user|operator|none args_commit=hex64 rendering_digest=hex64 expires=count
    granted=boolean
tool_call must call_id=hex32 tool=name args_commit=hex64 net=boolean
tool_result must call_id=hex32 status=status result_commit=hex64 bytes=count block?=block
egress may call_id=hex32 send_id=hex32 channel=inference|tool backend?=name host_commit?=hex64
    locality=locality class=class inputs=blocks decision=allowed|redacted|denied reason?=name
    payload_commit=hex64 bytes=count declassify?=hex32
egress_result may call_id=hex32 send_id=hex32 status=status bytes=count block?=block
    tier?=native|constrained|text failure?=failure
step_verdict must step=count verdict=pass|fail|unsure by=model|user|plane|rule
declassify must id=hex32 rule?=name approval?=hex32 source=hex64 from=class to=class backend=name
    expires=count commit=hex64
compact must inputs=some_blocks block=block
recovery no log_no=count size=count root=hex64 torn_bytes=count torn_sha256=hex64 unsealed_kept=count
close no entries=count reason=done|rotated|shutdown|error
"""
ALSO: Dict[str, Callable[[Body], bool]] = {  # what members of one body ask of each other
    "backend": lambda body: bool(body["is_local"] == (body["locality"] != "remote")),
    "classify": opinion_fits_classifier,
    "policy_decision": commits_to_other,
    "approval": lambda body: body["by"] != "none" or not body["granted"],
    "tool_call": lambda body: body["tool"] not in ("other", "release"),
    "egress": egress_fits_channel,
    "egress_result": failure_fits_status,
    "declassify": lambda body: body["to"] < body["from"] and ("rule" in body) != ("approval" in body),
}
ROWS = [row.split(None, 2) for row in TABLE.strip().replace("\n ", " ").split("\n")]
NAMES_TASK = {kind: task for kind, task, _ in ROWS}
BODIES = {kind: both(record_of(members), ALSO.get(kind, bool)) for kind, _, members in ROWS}
SEAL = record_of("kind=seal note=text prev=hex64 seq=count")
ENTRY = record_of("body=object kind=text prev=hex64 seq=count task?=hex32 ts=count")


def parse_record(value: object, extensions: Optional[Sequence[str]]) -> Body:
    """Return the value as a record of known shape; `extensions` is None before the header is known.

    Raises `Fault` with `record-shape` or `extension-unlisted`.
    """
    if isinstance(value, dict) and SEAL(value):
        return value
    if not isinstance(value, dict) or not ENTRY(value) or value["kind"] not in BODIES:
        raise Fault("record-shape")
    body = value["body"]
    names_task, shape = NAMES_TASK[value["kind"]], BODIES[value["kind"]]
    extended = {name for name in body if name.startswith("x_") and EXTENSION.fullmatch(name)}
    plain = {name: member for name, member in body.items() if name not in extended} if extended else body
    if not shape(plain) or names_task == ("no" if "task" in value else "must"):
        raise Fault("record-shape")
    if not extended <= set(plain.get("extensions", []) if extensions is None else extensions):
        raise Fault("extension-unlisted")
    return value


# ---------------------------------------------------------------------------------------------------------
# 6. Keys: C2SP verifier keys ("name+id+base64") and C2SP signed notes
# ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Key:
    """A named Ed25519 public key that passed the strict checks of step 2."""

    name: str
    key_id: bytes
    public: bytes


def parse_base64(text: str) -> Optional[bytes]:
    """Return the bytes of standard base64 in its one spelling, else None."""
    try:
        data = base64.b64decode(text.encode("ascii"), validate=True)
    except ValueError:
        return None
    return data if base64.b64encode(data).decode("ascii") == text else None


def parse_vkey(text: str, kind: int = 1) -> Optional[Key]:
    """Return the key of a C2SP verifier key, or None if it is malformed, weak or has a wrong id or kind."""
    parts = re.fullmatch(r"([!-*,-~]+)\+([0-9a-f]{8})\+([!-~]+)", text)
    if parts is None:
        return None
    name, data = parts.group(1), parse_base64(parts.group(3))
    if data is None or len(data) != 33 or data[0] != kind:
        return None
    key_id = hashlib.sha256(name.encode("ascii") + b"\n" + data).digest()[:4]
    if key_id.hex() != parts.group(2) or point_decode(data[1:]) is None:
        return None
    return Key(name, key_id, data[1:])


def checkpoint_text(origin: str, size: int, root: bytes) -> str:
    """Return what is signed of a tree (C2SP tlog-checkpoint)."""
    return f"{origin}\n{size}\n{base64.b64encode(root).decode('ascii')}\n"


def check_note(note: str, key: Key, size: int, root: bytes, signers: int) -> Tuple[str, List[str]]:
    """Return the signed text of a seal's note and its signature lines, the first of which `key` made.

    The text is recomputed from `size` and `root`, never read: what is signed is what the log is. Raises
    `Fault` with `seal-note`, `seal-differs` or `seal-signature`.
    """
    text = checkpoint_text(key.name, size, root)
    stated, blank, signatures = note.partition("\n\n")
    if not blank or not signatures.endswith("\n"):
        raise Fault("seal-note")
    if stated + "\n" != text:
        raise Fault("seal-differs")
    lines = signatures[:-1].split("\n")
    if len(lines) != signers:
        raise Fault("seal-note")
    key_id, signature = parse_signature(lines[0], key.name)
    if key_id != key.key_id or not signature_ok(key.public, text.encode("utf-8"), signature):
        raise Fault("seal-signature")
    return text, lines


def parse_device(line: str, book: str) -> Tuple[str, bytes]:
    """Return the name of the device key in a note's signature line, with its id, and the signature.

    Raises `Fault`: `seal-note`.
    """
    key_id, signature = parse_signature(line, f"{book}/device")
    return f"{book}/device+{key_id.hex()}", signature


def check_device(device: str, signature: bytes, text: str, pin: Optional[Key]) -> Optional[str]:
    """Return `key-not-pinned` if another device key than the pin signed `text`.

    Raises `Fault`: `device-signature`.
    """
    if pin is None:
        return None
    if f"{pin.name}+{pin.key_id.hex()}" != device:
        return "key-not-pinned"
    if not signature_ok(pin.public, text.encode("utf-8"), signature):
        raise Fault("device-signature")
    return None


def parse_signature(line: str, name: str, length: int = 68) -> Tuple[bytes, bytes]:
    """Return key id and signature of a note's signature line by `name`. Raises `Fault`: `seal-note`."""
    start = f"\u2014 {name} "
    data = parse_base64(line[len(start) :]) if line.startswith(start) else None
    if data is None or len(data) != length:
        raise Fault("seal-note")
    return data[:4], data[4:]


# ---------------------------------------------------------------------------------------------------------
# 7. Rules: what the records of one log say about each other (S1-S5, S7, S8, S10-S14)
# ---------------------------------------------------------------------------------------------------------

Report = Callable[[str, Optional[int]], None]  # a reason code and the seq it shows at


@dataclass
class Scope:
    """What is remembered about one task until its end, or about the entries without a task."""

    start: str = "C0"  # the class of the task_start
    mark: str = "C0"  # the highest class this task has seen; nothing lowers it while the task lasts
    matters: int = 0  # how many matters this task was opened for or let in to
    counts: Dict[str, int] = field(default_factory=dict)
    decisions: Dict[str, Body] = field(default_factory=dict)
    approvals: Dict[str, Body] = field(default_factory=dict)
    calls: Dict[str, Tuple[int, bool]] = field(default_factory=dict)  # call_id -> seq, net
    finished: Set[str] = field(default_factory=set)  # call_ids with a tool_result
    networked: Set[str] = field(default_factory=set)  # call_ids with an egress
    inferences: Set[str] = field(default_factory=set)  # call_ids of inferences
    sends: Dict[str, Tuple[int, Body]] = field(default_factory=dict)  # send_id -> seq, egress
    answered: Set[str] = field(default_factory=set)  # send_ids with an egress_result
    lowerings: Dict[str, Body] = field(default_factory=dict)
    blocks: Dict[str, Body] = field(default_factory=dict)  # the classify of each block, in order
    made: Dict[str, List[str]] = field(default_factory=dict)  # block -> the blocks it was made from
    replies: Dict[str, str] = field(default_factory=dict)  # block -> the backend that said it by approval


LOWERING_RULES = ("redact-detected",)
LOWERED_AS = {"redacted": "rule", "allowed": "approval"}  # what lowers a send of this decision
OPINION_CLASS = {"none": "C0", "person": "C2"}  # the least class by the opinion; else C3 (S13)


EDGES = " ".join(f"s{number}?=count e{number}?=count" for number in range(14))
RELEASE = record_of(f"backend=name to=class chars=count {EDGES}")


def release_terms(decision: Body) -> Optional[Body]:
    """Return what a decision on `release` (S12) asks a person to let go, or None if it is none, or unclear.

    That is its `replay` with the `blocks`, and whether as a `whole`.
    """
    said, blocks = decision["replay"], decision["inputs"]
    if decision["tool"] != "release" or not blocks or not RELEASE(said):
        return None
    edges = [said.get(f"{edge}{number}") for number in range(len(said) // 2 - 1) for edge in "se"]
    if len(edges) != len(said) - 3 or None in edges:
        return None
    spans = [edges[at : at + 2] for at in range(0, len(edges), 2)]
    inside = edges == sorted(edges) and max([0, *edges]) <= said["chars"]
    if not inside or any(start == end for start, end in spans) or (spans and len(blocks) != 1):
        return None
    return {**said, "blocks": blocks, "whole": not spans}


def matters_after(decision: Body) -> Optional[int]:
    """Return how many matters a decision says its task has after the call (S14), or None for a wrong word."""
    matters = decision["replay"].get("matters", 0)
    return matters if TYPES["count"](matters) else None


GRANT = record_of(
    "tool=name effect=name ask=boolean arguments=list path_arguments=list roots=list binaries?=object"
    " limits?=text reads?=object calls?=count sink?=sink"
)
BEYOND_POLICY = one_of(  # what is denied whatever a policy says
    "arguments-unbounded|no-call-left|origin-unknown|refused-before|restored-value-to-sink|too-many-questions"
    "|tool-not-granted|write-behind-veil"
)


@dataclass(frozen=True)
class Policy:
    """A policy that the auditor supplied: its digest (S6), and its grants by tool if known (S10)."""

    digest: str
    grants: Optional[Dict[str, Body]] = None


def parse_policy(line: bytes) -> Policy:
    """Return the policy in the line that `akaion policy export` prints. Raises `Fault` or `ValueError`."""
    value = parse_line(line)
    grants = value.get("grants") if isinstance(value, dict) else None
    if not isinstance(grants, list) or not all(GRANT(grant) for grant in grants):
        raise ValueError("not a policy")
    digest = hashlib.sha256(b"akaion-policy/1\x00" + line).hexdigest()
    return Policy(digest, {grant["tool"]: grant for grant in grants})


def most_written(grant: Body, said: Body) -> str:
    """Return the highest class of what a call may write: that of the folder, at most the grant's highest."""
    if grant["effect"] != "write":
        return "C3"
    roots = [root for root in grant["roots"] if isinstance(root, dict)]
    highest = max((str(root.get("declared") or "C2") for root in roots), default="C3")
    return min(str(said.get("into", "C3")), highest)


def policy_answer(grants: Dict[str, Body], body: Body) -> Tuple[str, str]:
    """Return decision and rule that follow from the grants and the premises in `replay` (S10).

    A premise that is not stated is the one that the recorded rule speaks of.
    """
    rule, said, grant = body["rule"], body["replay"], grants.get(body["tool"])
    if body["tool"] == "release":  # S12 judges it
        return body["decision"], rule
    if body["decision"] == "deny" and BEYOND_POLICY(rule):
        return "deny", rule
    if grant is None:
        return "deny", "tool-not-granted"
    # Each rule, where it applies, and the premise that a call must meet there: without one, it never does.
    for name, applies, premise in (
        ("arguments-invalid", True, "fits"),
        ("argument-outside-grant", "limits" in grant, "within"),
        ("no-path-granted", grant["path_arguments"] and not grant["roots"], None),
        ("command-not-granted", "binaries" in grant, "command"),
        ("path-outside-grant", True, "inside"),
        ("above-sink", "sink" in grant and body["class"] > grant["sink"]["max_class"], None),
        ("no-path-granted", grant["roots"], "reached"),
        ("above-folder", body["class"] > most_written(grant, said), None),
    ):
        if applies and not (premise and said.get(premise, rule != name)):
            return "deny", name
    if said.get("meets", rule == "matters-meet"):
        return "ask", "matters-meet"
    if "sink" in grant and not said.get("vouched", rule != "critical-not-named"):
        return "ask", "critical-not-named"
    return "ask" if grant["ask"] else "allow", "grant." + grant["tool"]


@dataclass
class Rules:
    """The rules over one log. Every entry that a seal covers is shown to it once, in order."""

    header: Body
    report: Report  # receives each broken rule
    grants: Optional[Dict[str, Body]]  # of the policy that the header names, if the auditor supplied it
    tasks: Dict[Optional[str], Scope] = field(default_factory=lambda: {None: Scope()})
    ended: Set[Optional[str]] = field(default_factory=set)
    backends: Dict[str, str] = field(default_factory=dict)  # latest locality
    classes: Dict[str, str] = field(default_factory=dict)  # of classified blocks
    floors: Dict[str, str] = field(default_factory=dict)  # least class of produced blocks
    entries: int = 0
    last_seal: int = 0

    def entry(self, record: Body) -> None:
        """Judge one entry against those before it."""
        kind, seq, task, body = record["kind"], record["seq"], record.get("task"), record["body"]
        self.entries += 1
        if seq - self.last_seal > self.header["seal_every"]:
            self.report("seal-overdue", seq)
        if kind == "task_start":
            if task in self.tasks or task in self.ended:
                self.report("task-reused", seq)
            self.tasks[task] = Scope(body["class"], body["class"], len(body.get("matters", [])))
        scope = self.tasks.get(task)
        if scope is None:
            self.report("task-not-open", seq)
            return
        handler: Optional[Callable[[int, int, Scope, Body], None]] = getattr(self, f"_{kind}", None)
        if handler is not None:
            handler(seq, record["ts"], scope, body)
        scope.counts[kind] = scope.counts.get(kind, 0) + 1
        if kind == "task_end":
            del self.tasks[task]
            self.ended.add(task)

    def _backend(self, seq: int, _ts: int, _scope: Scope, body: Body) -> None:
        if body["name"] not in self.header["backends"]:
            self.report("backend-unlisted", seq)
        self.backends[body["name"]] = body["locality"]

    def _task_end(self, seq: int, _ts: int, scope: Scope, body: Body) -> None:
        if body["counts"] != scope.counts:
            self.report("counts-differ", seq)

    def _close(self, seq: int, _ts: int, _scope: Scope, body: Body) -> None:
        if body["entries"] != self.entries:
            self.report("counts-differ", seq)
        if len(self.tasks) > 1:
            self.report("task-left-open", seq)

    # Blocks (S12, S13). Classes compare as their names do.

    def _join(self, seq: int, blocks: List[str]) -> str:
        if not all(block in self.classes for block in blocks):
            self.report("block-unknown", seq)
        return max((self.classes.get(block, "C0") for block in blocks), default="C0")

    def _produce(self, seq: int, block: Optional[str], floor: str) -> None:
        if block is None:
            return
        if block in self.floors:
            self.report("block-reused", seq)
        if self.classes.get(block, "C3") < floor:
            self.report("class-too-low", seq)
        self.floors[block] = floor

    def _classify(self, seq: int, _ts: int, scope: Scope, body: Body) -> None:
        block = body["block"]
        if block in self.classes:
            self.report("block-reused", seq)
        if body["class"] != max(body["parts"].values()):
            self.report("parts-differ", seq)
        if body["classifier"] not in ("rules-only", self.header["classifier"]):
            self.report("classifier-unlisted", seq)
        if body["class"] < OPINION_CLASS.get(body.get("opinion", "none"), "C3"):
            self.report("opinion-too-low", seq)
        if body["class"] < max(self._join(seq, body["inputs"]), self.floors.get(block, "C0")):
            self.report("class-too-low", seq)
        self.classes[block] = body["class"]
        scope.mark = max(scope.mark, body["class"])
        scope.blocks.setdefault(block, body)
        if "opinion" in body:
            scope.made[block] = body["inputs"]

    def _compact(self, seq: int, _ts: int, scope: Scope, body: Body) -> None:
        scope.made.setdefault(body["block"], body["inputs"])
        self._produce(seq, body["block"], self._join(seq, body["inputs"]))

    # Tools (S2, S3, S5, S7).

    def _policy_decision(self, seq: int, _ts: int, scope: Scope, body: Body) -> None:
        call = body["call_id"]
        self._join(seq, body["inputs"])
        stated = (body["decision"], body["rule"])
        if self.grants is not None and stated != policy_answer(self.grants, body):
            self.report("decision-differs", seq)
        if body["tool"] == "other" and body["decision"] != "deny":
            self.report("unknown-tool-allowed", seq)
        if call in scope.decisions or call in scope.inferences:
            self.report("id-reused", seq)
            return
        scope.decisions[call] = body
        matters = matters_after(body)
        if matters is None or (body["decision"] == "allow" and matters > max(1, scope.matters)):
            self.report("matters-met", seq)
        elif body["decision"] == "allow":
            scope.matters = max(scope.matters, matters)

    def _approval(self, seq: int, _ts: int, scope: Scope, body: Body) -> None:
        call = body["call_id"]
        asked = scope.decisions.get(call, {"decision": "none"})
        repeated = call in scope.approvals
        if asked["decision"] != "ask" or repeated or body["args_commit"] != asked["args_commit"]:
            self.report("approval-unasked", seq)
            return
        scope.approvals[call] = body
        if body["granted"]:
            scope.matters = max(scope.matters, matters_after(asked) or 0)

    def _tool_call(self, seq: int, ts: int, scope: Scope, body: Body) -> None:
        call = body["call_id"]
        decision, approval = scope.decisions.get(call), scope.approvals.get(call)
        if decision is None:
            self.report("call-undecided", seq)
        elif decision["decision"] == "deny":
            self.report("call-denied", seq)
        elif (decision["tool"], decision["args_commit"]) != (body["tool"], body["args_commit"]):
            self.report("call-differs", seq)
        elif call in scope.calls:
            self.report("call-repeated", seq)
        elif decision["decision"] == "ask" and (approval is None or not approval["granted"]):
            self.report("call-unapproved", seq)
        elif approval is not None and ts >= approval["expires"]:
            self.report("call-expired", seq)
        scope.calls.setdefault(call, (seq, body["net"]))

    def _tool_result(self, seq: int, _ts: int, scope: Scope, body: Body) -> None:
        call = body["call_id"]
        if call not in scope.calls or call in scope.finished:
            self.report("result-unmatched", seq)
            return
        called_at, net = scope.calls[call]
        scope.finished.add(call)
        if self.last_seal < called_at:
            self.report("effect-unsealed", seq)
        if net and body["status"] == "ok" and call not in scope.networked:
            self.report("net-unrecorded", seq)
        decision = scope.decisions.get(call, {"class": "C0"})
        self._produce(seq, body.get("block"), decision["class"])

    # Egress (S1, S3, S5, S7, S11, S12).

    def _egress(self, seq: int, ts: int, scope: Scope, body: Body) -> None:
        if body["send_id"] in scope.sends:
            self.report("id-reused", seq)
        scope.sends[body["send_id"]] = (seq, body)
        if body["channel"] == "tool":
            self._tool_egress(seq, scope, body["call_id"])
        else:
            self._inference_egress(seq, scope, body)
        if body["locality"] == "remote" and body["decision"] != "denied":
            ceiling = self.header["max_egress_class"]
            if body["class"] == "C3":
                self.report("egress-c3", seq)
            elif ceiling == "none" or body["class"] > ceiling:
                self.report("egress-above-ceiling", seq)
        self._lowered(seq, ts, scope, body)

    def _tool_egress(self, seq: int, scope: Scope, call: str) -> None:
        scope.networked.add(call)
        if call not in scope.calls or call in scope.finished:
            self.report("egress-outside-call", seq)
        elif not scope.calls[call][1]:
            self.report("net-undeclared", seq)

    def _inference_egress(self, seq: int, scope: Scope, body: Body) -> None:
        scope.inferences.add(body["call_id"])
        if body["call_id"] in scope.decisions:
            self.report("id-reused", seq)
        if body["backend"] not in self.header["backends"]:
            self.report("backend-unlisted", seq)
        elif body["backend"] not in self.backends:
            self.report("backend-unprobed", seq)
        elif body["locality"] != self.backends[body["backend"]]:
            self.report("locality-differs", seq)

    def _lowered(self, seq: int, ts: int, scope: Scope, body: Body) -> None:
        join = self._join(seq, body["inputs"])
        if body["channel"] == "inference" and scope is not self.tasks[None]:
            # A list of inputs does not show what steered a request: what its task has seen may have.
            join = max(join, scope.mark)
        if "declassify" not in body:
            if body["class"] < join:
                self.report("class-too-low", seq)
            return
        cover = scope.lowerings.get(body["declassify"])
        wanted = (join, body["class"], body["backend"])
        if (
            cover is None
            or (cover["from"], cover["to"], cover["backend"]) != wanted
            or ts >= cover["expires"]
            or LOWERED_AS.get(body["decision"]) not in cover
            or ("approval" in cover and not self._explained(ts, scope, body))
        ):
            self.report("declassify-differs", seq)

    def _explained(self, ts: int, scope: Scope, body: Body) -> bool:
        """Say whether everything above the class of a send that its task has seen may go to its backend."""
        to, free = body["class"], self._free(ts, scope, body)
        seen = [*scope.blocks, *body["inputs"]]
        if any(self.classes.get(block, "C3") > to and block not in free for block in seen):
            return False
        return bool(scope.start <= max([to, *(self.classes[block] for block in free)]))

    def _free(self, ts: int, scope: Scope, body: Body) -> Set[str]:
        """Return the blocks that may go to the backend of a send by what a person said; never one of C3.

        A person named it, it was made from such blocks and from none that may not go, or that backend said it
        in answer to a send that a person let through.
        """
        to, named = body["class"], self._named(ts, scope, body["backend"])
        free: Set[str] = set()
        for block, label in scope.blocks.items():
            made, parts = scope.made.get(block, []), label["parts"]
            told = max(parts["default"], parts.get("declared", "C0"))
            by_person = block in named and (named[block] or told <= to)
            by_backend = scope.replies.get(block) == body["backend"]
            no_more = all(one in free or self.classes.get(one, "C3") <= to for one in made)
            if label["class"] != "C3" and (by_person or by_backend or (free & set(made) and no_more)):
                free.add(block)
        return free

    def _named(self, ts: int, scope: Scope, backend: str) -> Dict[str, bool]:
        """Return the blocks that a person let go to a backend and still does, and whether as a whole."""
        named: Dict[str, bool] = {}
        for call, approval in scope.approvals.items():
            terms = release_terms(scope.decisions[call])
            valid = approval["granted"] and ts < approval["expires"]
            if terms is not None and terms["backend"] == backend and valid:
                named.update({block: terms["whole"] or named.get(block, False) for block in terms["blocks"]})
        return named

    def _egress_result(self, seq: int, _ts: int, scope: Scope, body: Body) -> None:
        send = body["send_id"]
        sent_at, egress = scope.sends.get(send, (0, None))
        if egress is None or egress["decision"] == "denied" or send in scope.answered:
            self.report("result-unmatched", seq)
            return
        if egress["call_id"] != body["call_id"]:
            self.report("result-unmatched", seq)
        scope.answered.add(send)
        if self.last_seal < sent_at:
            self.report("effect-unsealed", seq)
        self._produce(seq, body.get("block"), egress["class"])
        if "block" in body and "approval" in scope.lowerings.get(egress.get("declassify", ""), {}):
            scope.replies[body["block"]] = egress["backend"]

    def _declassify(self, seq: int, ts: int, scope: Scope, body: Body) -> None:
        if body["id"] in scope.lowerings:
            self.report("id-reused", seq)
        scope.lowerings[body["id"]] = body
        if body["from"] == "C3":
            self.report("declassify-c3", seq)
        if body.get("rule", LOWERING_RULES[0]) not in LOWERING_RULES:
            self.report("declassify-rule", seq)
        if "approval" in body and not self._approved(ts, scope, body):
            self.report("declassify-unapproved", seq)

    def _approved(self, ts: int, scope: Scope, body: Body) -> bool:
        """Say whether a person who was asked let exactly this lowering through, for as long as it says."""
        approval = scope.approvals.get(body["approval"])
        if approval is None or not approval["granted"] or approval["args_commit"] != body["commit"]:
            return False
        terms = release_terms(scope.decisions[body["approval"]])
        if terms is None or terms["backend"] != body["backend"] or body["to"] > terms["to"]:
            return False
        return bool(ts < approval["expires"] and body["expires"] <= approval["expires"])


# ---------------------------------------------------------------------------------------------------------
# 8. Log: one file, line by line
# ---------------------------------------------------------------------------------------------------------

MAX_RECORDS = 100_000


@dataclass
class Findings:
    """What has been learned about the book so far."""

    reasons: Dict[str, Body] = field(default_factory=dict)  # by code, with the place where it shows
    through: Optional[Dict[str, object]] = None
    headers: List[Body] = field(default_factory=list)
    interrupted: List[int] = field(default_factory=list)
    # Entries are those that a seal of their log covers: only they are judged. The other lines are unsealed.
    counts: Dict[str, int] = field(default_factory=lambda: {"entries": 0, "seals": 0, "unsealed": 0})
    egress: Dict[str, int] = field(default_factory=lambda: {"allowed": 0, "denied": 0, "redacted": 0})
    declassified: Dict[str, int] = field(default_factory=lambda: {"approval": 0, "rule": 0})
    lowering_rules: Set[str] = field(default_factory=set)
    localities: Set[str] = field(default_factory=set)
    device_ids: Set[str] = field(default_factory=set)
    seen: Optional[Dict[str, object]] = None  # the log up to its last seal, that line included
    anchors: List[Body] = field(default_factory=list)  # what was seen before and is still there
    covered: bool = False  # and nothing follows it

    def add(self, code: str, log: Optional[int] = None, seq: Optional[int] = None) -> None:
        """Keep a reason, at the first place where it shows."""
        self.reasons.setdefault(code, {"code": code, "log": log, "seq": seq})


@dataclass
class Log:
    """One log while it is read, and what its successor must say about it."""

    number: int
    log_id: str
    tree: Tree = field(default_factory=Tree)
    prev: str = FIRST_PREV
    ts: int = 0
    last: str = ""  # the kind of the last record
    last_seal: Optional[int] = None
    closed_at: Optional[int] = None
    recovered: bool = False
    torn_bytes: int = 0
    torn_sha256: str = hashlib.sha256(b"").hexdigest()

    def unsealed(self) -> int:
        """Return how many whole lines stand after the last seal."""
        return self.tree.size if self.last_seal is None else self.tree.size - self.last_seal - 1

    def complete(self) -> bool:
        """Say whether the log ends with close and its seal."""
        return self.closed_at is not None and self.last_seal == self.closed_at + 1

    def incompleteness(self) -> List[Tuple[str, int]]:
        """Return why this log is not complete, each with the seq where it shows."""
        shortfalls = []
        if self.last_seal is None:
            shortfalls.append(("never-sealed", 0))
        elif self.unsealed():
            shortfalls.append(("unsealed-tail", self.last_seal + 1))
        if not self.complete():
            shortfalls.append(("log-open", self.tree.size))
        if self.torn_bytes:
            shortfalls.append(("torn-tail", self.tree.size))
        return shortfalls


def read_lines(file: BinaryIO, log: Log) -> Iterator[bytes]:
    """Yield the whole lines, split on 0x0A only; put length and digest of a torn rest on the log.

    Raises `Fault` with `line-too-long`, and `OSError`.
    """
    torn = hashlib.sha256()
    for part in iter(lambda: file.readline(MAX_LINE + 2), b""):
        if not part.endswith(b"\n"):
            torn.update(part)
            log.torn_bytes += len(part)
        elif log.torn_bytes:
            raise Fault("line-too-long")
        else:
            yield part[:-1]
    log.torn_sha256 = torn.hexdigest()


@dataclass
class Reader:
    """Reads one log: chain, tree, shapes, seals, and the rules of step 7.

    The structure of a line is judged at once. What an entry means waits for the seal that covers it: anybody
    who can write to the file can add lines after the last seal, and nothing was done on their account.
    """

    book: Book
    log: Log
    key: Optional[Key] = None
    rules: Optional[Rules] = None
    waiting: List[Body] = field(default_factory=list)  # the entries since the last seal

    def report(self, code: str, seq: Optional[int]) -> None:
        """Keep a broken rule and read on."""
        self.book.findings.add(code, self.log.number, seq)

    def line(self, line: bytes) -> None:
        """Check one line. Raises `Fault` if the structure is broken."""
        log, findings = self.log, self.book.findings
        extensions = self.rules.header.get("extensions", []) if self.rules else None
        record = parse_record(parse_line(line), extensions)
        kind, seq = record["kind"], log.tree.size
        # 8.1 the record stands where it says
        if record["seq"] != seq:
            raise Fault("seq-wrong")
        if record["prev"] != log.prev:
            raise Fault("chain-broken")
        if seq >= MAX_RECORDS:
            raise Fault("too-many-records")
        self._check_place(kind, seq)
        # 8.2 a seal is checked by itself, an entry against its log
        if kind == "seal":
            self._check_seal(record["note"], seq)
            findings.counts["seals"] += 1
        else:
            if record["ts"] < log.ts:
                raise Fault("time-backwards")
            log.ts = record["ts"]
            self._entry(record)
            self.waiting.append(record)
        # 8.3 only then it is part of the tree
        leaf = leaf_hash(line)
        log.tree.append(leaf)
        log.prev = leaf.hex()
        log.last = kind
        self.book.recall(log, leaf)
        if kind == "seal":
            size = {"size": log.tree.size, "root": log.tree.root().hex()}
            findings.seen = {"log": log.number, "log_id": log.log_id, **size}

    def _check_place(self, kind: str, seq: int) -> None:
        last = self.log.last
        if (kind == "header") != (seq == 0):
            raise Fault("header-misplaced")
        if seq == 1 and kind != "seal":
            raise Fault("first-seal-misplaced")
        if (kind == "recovery" and seq != 2) or (last == "recovery" and kind != "seal"):
            raise Fault("recovery-misplaced")
        if self.log.closed_at is not None and (last != "close" or kind != "seal"):
            raise Fault("after-close")
        if kind == "seal" and last == "seal":
            raise Fault("seal-empty")

    def _entry(self, record: Body) -> None:
        """Take an entry's place in the structure. Raises `Fault`."""
        kind, body = record["kind"], record["body"]
        if kind == "header":
            self._header(body)
            policy = self.book.policies.get(body["policy_digest"])
            self.rules = Rules(body, self.report, policy.grants if policy else None)
        elif kind == "recovery":
            self._recovery(body)
        elif kind == "close":
            self.log.closed_at = record["seq"]

    def _judge(self, record: Body, rules: Rules) -> None:
        """Count an entry that a seal covers, and hold it against the rules."""
        findings, kind, body = self.book.findings, record["kind"], record["body"]
        findings.counts["entries"] += 1
        if kind == "header":
            self._declared(body)
        elif kind == "recovery":
            self.log.recovered = True
        elif kind == "egress":
            findings.egress[body["decision"]] += 1
            if body["decision"] != "denied":
                findings.localities.add(body["locality"])
        elif kind == "declassify":
            findings.declassified["rule" if "rule" in body else "approval"] += 1
            findings.lowering_rules |= {body["rule"]} if "rule" in body else set()
        rules.entry(record)

    def _declared(self, body: Body) -> None:
        if not body["verifiable"]:
            self.report("unverifiable", 0)
        if self.book.policies and body["policy_digest"] not in self.book.policies:
            self.report("policy-differs", 0)
        if any(SUCCESSION in earlier for earlier in self.book.findings.headers[-1:]):
            self.report("after-succession", 0)
        self.book.findings.headers.append(body)

    def _header(self, body: Body) -> None:
        book, log = self.book, self.log
        if (body["log_no"], body["log_id"]) != (log.number, log.log_id):
            raise Fault("file-name-differs")
        untrusted = any(not tool["trusted"] for tool in body["host_tools"])
        causes = body["unverifiable_because"]
        if body["verifiable"] != (not causes) or (untrusted and "host-tool-untrusted" not in causes):
            raise Fault("header-contradiction")
        name, log_id = body["origin"].rsplit("/", 1)
        if log_id != log.log_id or name != (book.name or name):
            raise Fault("book-name-differs")
        key = parse_vkey(body["vkey"])
        if key is None or key.name != body["origin"]:
            raise Fault("key-unusable")
        if key.public in book.keys or (book.pin is not None and key.public == book.pin.public):
            raise Fault("key-reused")
        self._check_prev_log(body.get("prev_log"))
        self.key, book.name = key, name
        book.keys.add(key.public)

    def _check_prev_log(self, stated: Optional[Body]) -> None:
        before, found = self.book.before, stated
        if before is not None:
            found = {"id": before.log_id, "size": before.tree.size, "root": before.tree.root().hex()}
        if (stated is None) != (self.log.number == 0) or stated != found:
            raise Fault("prev-log-differs")

    def _recovery(self, body: Body) -> None:
        before, stated = self.book.before, self.book.findings.headers[-1].get("prev_log")
        claim = (body["log_no"], body["size"], body["root"])
        if stated is None or claim != (self.log.number - 1, stated["size"], stated["root"]):
            raise Fault("recovery-differs")
        if before is not None:
            rest = (body["torn_bytes"], body["torn_sha256"], body["unsealed_kept"])
            if before.complete() or rest != (before.torn_bytes, before.torn_sha256, before.unsealed()):
                raise Fault("recovery-differs")

    def _check_seal(self, note: str, seq: int) -> None:
        if self.key is None or self.rules is None:
            raise Fault("header-misplaced")
        root, first = self.log.tree.root(), self.log.last_seal is None
        text, lines = check_note(note, self.key, seq, root, 2 if first else 1)
        if first:
            device, signature = parse_device(lines[1], str(self.book.name))
            self.book.findings.device_ids.add(device)
            distrust = check_device(device, signature, text, self.book.pin)
            if distrust is not None:
                self.report(distrust, 1)
        for record in self.waiting:
            self._judge(record, self.rules)
        self.waiting.clear()
        self.log.last_seal = self.rules.last_seal = seq
        log = {"log": self.log.number, "log_id": self.log.log_id}
        self.book.findings.through = {**log, "seq": seq, "size": seq, "root": root.hex()}


# ---------------------------------------------------------------------------------------------------------
# 9. Book: all logs of a folder, in order
# ---------------------------------------------------------------------------------------------------------

SUCCESSION = "x_next_device_key"  # in the header of a book's last log: the device key that goes on
LOG_NAME = re.compile(r"([0-9]{6,15})-([0-9a-f]{32})\.jsonl")


def find_logs(folder: Path, findings: Findings) -> Dict[int, str]:
    """Return the names of the logs of a folder by number; report what is no log."""
    logs: Dict[int, str] = {}
    try:
        entries = sorted((entry.name, entry.is_file(follow_symlinks=False)) for entry in os.scandir(folder))
    except OSError:
        return logs
    for name, regular in entries:
        if not name.endswith(".jsonl"):
            continue
        parts = LOG_NAME.fullmatch(name)
        number = int(parts.group(1)) if parts else -1
        if parts is None or f"{number:06d}" != parts.group(1) or not regular:
            findings.add("stray-file")
        elif number in logs:
            findings.add("log-number-repeated", number)
        else:
            logs[number] = name
    return logs


@dataclass
class Book:
    """Reads the logs of one folder in order; `findings` says what came out."""

    folder: Path
    pin: Optional[Key]  # the device key that the auditor trusts
    policies: Dict[str, Policy]  # by digest; if there are any, each log must be under one of them
    state: Optional[Body]  # what the auditor has seen of this book before, and
    cosigned: Sequence[Cosigned]  # what pinned witnesses have (step 10)
    recalled: bool = False  # what the state speaks of was met, as it was
    lines: Tree = field(default_factory=Tree)  # over all logs; it grows only for what witnesses cosigned
    findings: Findings = field(default_factory=Findings)
    name: Optional[str] = None
    keys: Set[bytes] = field(default_factory=set)  # of the logs so far
    before: Optional[Log] = None  # the log with the number just before, if it was read

    def read(self) -> Findings:
        """Check every log until the structure breaks."""
        logs = find_logs(self.folder, self.findings)
        if sorted(logs) != list(range(len(logs))):
            self.cosigned = ()  # what witnesses saw begins with log 0: without that there is no telling
        if not logs and not self.findings.reasons:
            self.findings.add("no-logs")
        if logs and min(logs) > 0:
            self.findings.add("starts-late", min(logs))
        for number in sorted(logs):
            if number - 1 not in logs and number > min(logs):
                self.findings.add("log-missing", number - 1)
                self._leave_open(self.before)
                self.before = None
            if not self._read_log(Log(number, logs[number][-38:-6])):
                break
        self._leave_open(self.before)
        if self.state is not None and logs and not self.recalled:
            earlier = self.state["log"] < min(logs)
            self.findings.add("state-missing" if earlier else "state-differs", self.state["log"])
        sizes = [size for text, size, _, _ in self.cosigned if text.startswith(f"{self.name}\n")]
        if self.before is not None and max(sizes, default=0) > self.lines.size:
            self.findings.add("witness-differs", self.before.number)
        return self.findings

    def recall(self, log: Log, leaf: bytes) -> None:
        """Take note when the book has grown to where the state or a witness saw it, and is what it was."""
        self.findings.covered = False
        if self.cosigned:
            self.lines.append(leaf)
            for text, size, witness, moment in self.cosigned:
                if size != self.lines.size or not text.startswith(f"{self.name}\n"):
                    continue
                if text == checkpoint_text(str(self.name), size, self.lines.root()):
                    seer: Body = {"kind": "witness", "witness": witness.name, "time": moment}
                    self.findings.anchors.append({**seer, "log": log.number, "size": log.tree.size})
                    self.findings.covered = True
                else:
                    self.findings.add("witness-differs", log.number, log.tree.size - 1)
        state = self.state
        if state is not None and (state["log"], state["size"]) == (log.number, log.tree.size):
            seen = (self.name, log.log_id, log.tree.root().hex())
            self.recalled = seen == (state["book"], state["log_id"], state["root"])
            if self.recalled:
                self.findings.anchors.append({"kind": "state", "log": state["log"], "size": state["size"]})

    def _read_log(self, log: Log) -> bool:
        """Read one log; say whether the next one can be judged."""
        before, fault = self.before, self._read_lines(log)
        if before is not None and log.recovered and before.last_seal is not None:
            self.findings.interrupted.append(before.number)
        else:
            self._leave_open(before)
        self.before = None if fault else log
        self.findings.counts["unsealed"] += log.unsealed()
        if fault:
            self.findings.add(fault, log.number, log.tree.size)
        return fault is None

    def _read_lines(self, log: Log) -> Optional[str]:
        """Show every line of a log to a reader; return the reason to stop, if there is one."""
        reader = Reader(self, log)
        try:
            path = self.folder / f"{log.number:06d}-{log.log_id}.jsonl"
            with open_regular(path, getattr(os, "O_NOFOLLOW", 0)) as file:
                for line in read_lines(file, log):
                    reader.line(line)
        except Fault as fault:
            return fault.code
        except OSError:
            return "log-unreadable"
        return "after-close" if log.complete() and log.torn_bytes else None

    def _leave_open(self, log: Optional[Log]) -> None:
        """Report what is missing from a log that no recovery accounts for."""
        for code, seq in log.incompleteness() if log is not None else []:
            self.findings.add(code, log.number if log else None, seq)


def open_regular(path: Path, flags: int = 0) -> BinaryIO:
    """Open a regular file for reading. Raises `OSError` for anything else, and never waits for a writer.

    A pipe at this path would otherwise hold the auditor's program for as long as nobody writes to it.
    """
    no_wait: int = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)  # each where there is one
    handle = os.open(path, os.O_RDONLY | no_wait | flags)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError("not a regular file")
    return os.fdopen(handle, "rb")


# ---------------------------------------------------------------------------------------------------------
# 10. Anchors: what an auditor or a witness has seen before. A later book must still hold it
# ---------------------------------------------------------------------------------------------------------

STATE = record_of("format=akaion-state/1 book=text log=count log_id=hex32 size=count root=hex64")


def lies_inside(folder: Path, path: Path) -> bool:
    """Say whether a file lies in the folder it should vouch for. Raises `OSError` or `RuntimeError`."""
    inside, real = folder.resolve(), path.resolve()
    return inside == real or inside in real.parents


def read_state(folder: Path, path: Path) -> Tuple[Optional[Body], Optional[str]]:
    """Return what the auditor has seen (None at the first time), or the reason why it cannot be known."""
    try:
        if lies_inside(folder, path):
            return None, "state-unusable"
        with open_regular(path) as file:
            state = parse_line(file.read(4096).removesuffix(b"\n"))
    except FileNotFoundError:
        return None, None
    except (OSError, RuntimeError, Fault):
        return None, "state-unusable"
    return (state, None) if isinstance(state, dict) and STATE(state) else (None, "state-unusable")


def write_state(path: Path, report: Dict[str, Any]) -> None:
    """Keep what was verified, unless the book did not hold or what was seen before is not in it.

    The last seal itself counts as seen, so that it cannot be taken off and the state walked back with it.
    Raises `OSError`.
    """
    seen, codes = report["seen"], {reason["code"] for reason in report["reasons"]}
    if seen is None or report["verdict"] in {"FAIL", "UNTRUSTED"} or "state-missing" in codes:
        return
    state = {"format": "akaion-state/1", "book": report["book"], **seen}
    fresh = path.with_name(path.name + ".new")
    fresh.unlink(missing_ok=True)  # a pipe or a link that stands there is not written through
    with fresh.open("x", encoding="ascii", newline="\n") as file:
        file.write(json.dumps(state, sort_keys=True, separators=(",", ":")) + "\n")
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)


Cosigned = Tuple[str, int, Key, int]  # a checkpoint's text and size, and who cosigned it when
# A line is as long as a pin at most, and a note is tried from the start of a line only: else a line of 1 MiB
# that begins none would be read from each of its characters on.
LINE = "[^\n]{1,4096}\n"
NOTE = re.compile(f"(?<![^\n])({LINE}([1-9][0-9]{{0,15}})\n{LINE})\n((?:\u2014 {LINE})+)")
MAX_SIDECARS, MAX_COSIGNATURES, MAX_TIME = 10_000, 64, 2**33  # the second of one sidecar; in the year 2242


def read_cosigned(folder: Path, witnesses: Sequence[Key]) -> List[Cosigned]:
    """Return what these witnesses cosigned, as the folder's last sidecars by name say, in that order.

    A sidecar that cannot be read, or holds nothing by them, is as good as none.
    """
    found: List[Cosigned] = []
    names = sorted(path.name for path in folder.glob("*") if path.name.endswith(".witness"))
    for name in names[-MAX_SIDECARS:] if witnesses else ():
        try:
            with open_regular(folder / name, getattr(os, "O_NOFOLLOW", 0)) as file:
                notes = NOTE.findall(file.read(MAX_LINE).decode("utf-8"))
        except (OSError, ValueError):
            continue
        signed = [(note, line) for note in notes for line in note[2][:-1].split("\n")][:MAX_COSIGNATURES]
        for ((text, size, _), line), key in itertools.product(signed, witnesses):
            moment = cosigned_at(line, text, key)
            if moment is not None:
                found.append((text, int(size), key, moment))
    return found


def cosigned_at(line: str, text: str, key: Key) -> Optional[int]:
    """Return when, in seconds since 1970, a witness says it saw `text` (C2SP cosignature/v1); None if not."""
    try:
        key_id, stamped = parse_signature(line, key.name, 76)
    except Fault:
        return None
    moment = int.from_bytes(stamped[:8], "big")
    signed = f"cosignature/v1\ntime {moment}\n{text}".encode("utf-8")
    holds = key_id == key.key_id and signature_ok(key.public, signed, stamped[8:])
    return moment if holds and moment <= MAX_TIME else None


# ---------------------------------------------------------------------------------------------------------
# 11. Verdict
# ---------------------------------------------------------------------------------------------------------


def read_pin(folder: Path, path: Optional[Path], kind: int = 1) -> Tuple[Optional[Key], Optional[str]]:
    """Return the pinned key, or the reason why there is none."""
    if path is None:
        return None, "no-pin"
    try:
        if lies_inside(folder, path):
            return None, "pin-inside-folder"
        with open_regular(path) as file:
            text = file.read(4096).decode("ascii")
    except (OSError, ValueError, RuntimeError):  # RuntimeError: a loop of links, before Python 3.13
        return None, "pin-unusable"
    key = parse_vkey(text.removesuffix("\n"), kind)
    return key, None if key else "pin-unusable"


def verify(
    folder: Path,
    pin: Optional[Path] = None,
    policies: Sequence[Policy] = (),
    state: Optional[Path] = None,
    witnesses: Sequence[Path] = (),
) -> Dict[str, object]:
    """Verify the book in `folder` and return the report that `--json` prints. Total over all bytes on disk.

    `pin` is a file with the device's verifier key, `policies` are those of which each log must name one,
    `state` is a file of the auditor's, which this reads and does not write, and `witnesses` are files with
    their verifier keys. In whichever order policies and witnesses are given, and how often, the report is the
    same: a policy counts before its digest alone, and a witness once.
    """
    key, distrust = read_pin(folder, pin)
    seen, doubt = (None, None) if state is None else read_state(folder, state)
    read = [read_pin(folder, path, 4)[0] for path in witnesses]
    seers = list(dict.fromkeys(seer for seer in read if seer is not None))
    cosigned = read_cosigned(folder, seers)
    known = sorted(policies, key=lambda policy: policy.grants is not None)
    book = Book(folder, key, {policy.digest: policy for policy in known}, seen, cosigned)
    findings = book.read()
    heard = {seer for text, _, seer, _ in cosigned if text.startswith(f"{book.name}\n")}
    dumb = "witness-unusable" if None in read else None
    silent = None if heard.issuperset(seers) else "witness-silent"
    for code in filter(None, (distrust, doubt, dumb, silent)):
        findings.add(code)
    return report_of(findings, book.policies, pinned=key is not None)


def weakest(headers: List[Body], member: str, order: Sequence[str]) -> Optional[str]:
    """Return the weakest declared value over all logs, weakest first in `order`."""
    return min((header[member] for header in headers), key=order.index, default=None)


def worst_first(codes: Sequence[str]) -> Tuple[str, List[str]]:
    """Return the verdict of these reasons, and the reasons with the worst first."""
    ordered = sorted(codes, key=lambda code: list(EXIT_CODES).index(REASONS[code][0]))
    return REASONS[ordered[0]][0] if ordered else "PASS", ordered


def report_of(findings: Findings, policies: Dict[str, Policy], *, pinned: bool) -> Dict[str, object]:
    """Turn findings into the report: verdict, reasons, what was seen, what is not claimed."""
    verdict, codes = worst_first(list(findings.reasons))
    headers, anchors = findings.headers, findings.anchors
    claims = [*NOT_CLAIMED, *([] if findings.covered else [ANCHORED if anchors else NOT_ANCHORED])]
    replayed = {digest for digest, policy in policies.items() if policy.grants is not None}
    named = {header["policy_digest"] for header in headers}
    tools = {(tool["name"], tool["trusted"]) for header in headers for tool in header["host_tools"]}
    return {
        "verdict": verdict,
        "exit": EXIT_CODES[verdict],
        "reasons": [findings.reasons[code] for code in codes],
        "book": headers[0]["origin"].rpartition("/")[0] if headers else None,
        "verified_through": findings.through,
        "seen": findings.seen,
        "anchors": anchors,
        "device_keys": sorted(findings.device_ids),
        "pinned": pinned,
        "custody": weakest(headers, "custody", ("file", "keyring", "process", "hardware")),
        "enforcement": weakest(headers, "enforcement", ("cooperative", "isolated")),
        "policies": {digest: digest in replayed for digest in sorted(named)},
        "classifiers": sorted({header["classifier"] for header in headers}),
        "localities": sorted(findings.localities),
        "host_tools": [{"name": name, "trusted": trusted} for name, trusted in sorted(tools)],
        "verifiable": all(header["verifiable"] for header in headers) if headers else None,
        "logs": len(headers),
        **findings.counts,
        "interrupted": findings.interrupted,
        "egress": findings.egress,
        "declassified": findings.declassified,
        "lowering_rules": sorted(findings.lowering_rules),
        "claims_not_made": claims + [WITNESSED] * any(each["kind"] == "witness" for each in anchors),
    }


REPLAYED = {True: "its decisions were repeated as far as verified", False: "not repeated: no file was given"}
TRUSTED = {True: "vouched for by the profile", False: "untrusted"}


def describe_voucher(report: Dict[str, Any]) -> str:
    """Say who vouches for the book: the pinned key only if it certified every log of a book that holds."""
    if not report["pinned"]:
        return "nobody you named (no usable pin)"
    # S6 judges the policy that was in force, and takes nothing from what was recorded under it.
    found = {REASONS[reason["code"]][0] for reason in report["reasons"] if reason["code"] != "policy-differs"}
    holds = report["logs"] and not found & {"FAIL", "UNTRUSTED"}
    return "the pinned device key" if holds else "nobody: the pinned key does not vouch for it as it stands"


def describe_anchor(anchor: Body) -> str:
    """Say who saw which lines, and when."""
    where = "log {log}, its first {size} lines".format(**anchor)
    if anchor["kind"] == "state":
        return f"auditor's state, {where}"
    moment = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(anchor["time"]))
    return f"witness {anchor['witness']}, {where}, at {moment}"


def describe(report: Dict[str, Any]) -> str:
    """Return the report in plain words; ASCII, since every word in it is of the profile's vocabulary."""
    through, egress, anchors = report["verified_through"], report["egress"], report["anchors"]
    policies, tools = report["policies"].items(), report["host_tools"]
    lowered, rules = report["declassified"], ", ".join(report["lowering_rules"])
    named = rules and f" ({rules})"
    lines = [f"{report['verdict']} (exit {report['exit']})"]
    for reason in report["reasons"]:
        place = "".join(f", {part} {reason[part]}" for part in ("log", "seq") if reason[part] is not None)
        kind, meaning = REASONS[reason["code"]]
        lines.append(f"  {kind}: {reason['code']}{place}: {meaning}")
    facts = {
        "Checked": "logs {logs}, entries {entries}, seals {seals}".format(**report),
        "Checked for": "bytes, chain, tree, signatures, order, and rules S1-S14 (S6 and S10 if asked)",
        "Rules explained in": "section 9 of contracts/trace/v1/README.md, the format akaion-trace/1",
        "Verified through": "log {log}, seq {seq}, root {root}".format(**through) if through else "nothing",
        "Under no seal": f"{report['unsealed']} lines (nobody vouches for them, no rule was applied to them)",
        "Vouched for by": describe_voucher(report),
        "Device keys named": ", ".join(report["device_keys"]) or "none",
        "Anchors": "; ".join(describe_anchor(anchor) for anchor in anchors) or "none",
        "Policies named": ", ".join(f"{digest} ({REPLAYED[yes]})" for digest, yes in policies) or "none",
        "Classified by": ", ".join(report["classifiers"]) or "nothing",
        "Declared": f"custody {report['custody']}, enforcement {report['enforcement']}",
        "Host tools": ", ".join(f"{tool['name']} ({TRUSTED[tool['trusted']]})" for tool in tools) or "none",
        "Sends": ", ".join(f"{count} {decision}" for decision, count in egress.items()),
        "Classes lowered": f"{lowered['rule']} by a rule{named}, {lowered['approval']} by an approval",
        "Localities used": ", ".join(report["localities"]) or "none",
        "Interrupted, accounted for": ", ".join(map("log {}".format, report["interrupted"])) or "none",
    }
    lines += [f"{name}: {fact}" for name, fact in facts.items()]
    return "\n".join([*lines, "Not claimed:", *(f"  - {claim}" for claim in report["claims_not_made"])])


class Arguments(argparse.ArgumentParser):
    """An argument parser that leaves with the exit code for usage errors."""

    def error(self, message: str) -> NoReturn:
        """Print the usage and leave with 64."""
        self.print_usage(sys.stderr)
        self.exit(USAGE_EXIT, f"{self.prog}: {message}\n")


def digest_argument(text: str) -> Policy:
    """Return the policy of a digest, 64 lowercase hex digits. Raises `argparse.ArgumentTypeError`."""
    if not TYPES["hex64"](text):
        raise argparse.ArgumentTypeError("must be 64 lowercase hex digits")
    return Policy(text)


def file_argument(text: str) -> Path:
    """Return the path of a file that can be read. Raises `argparse.ArgumentTypeError`."""
    try:
        open_regular(Path(text)).close()
    except OSError as error:
        raise argparse.ArgumentTypeError(f"cannot read {text!a}: {error.strerror or error}") from None
    return Path(text)


def policy_argument(text: str) -> Policy:
    """Return the policy in a file. Raises `argparse.ArgumentTypeError`."""
    try:
        with open_regular(file_argument(text)) as file:
            return parse_policy(file.read(MAX_LINE).removesuffix(b"\n"))
    except (OSError, ValueError, Fault):
        raise argparse.ArgumentTypeError("must be a file that `akaion policy export` made") from None


# ---------------------------------------------------------------------------------------------------------
# 12. Proofs: one line shown without its log, and two books held side by side
# ---------------------------------------------------------------------------------------------------------

PROOF = record_of("format=akaion-proof/1 header=text certificate=text line=text proof=text")
PROOF_HEAD = "c2sp.org/tlog-proof@v1"


def read_log(folder: Path, number: int) -> List[bytes]:
    """Return the whole lines of log `number`, none if there is none. Raises `Fault` and `OSError`."""
    name = find_logs(folder, Findings()).get(number)
    if name is None:
        return []
    with open_regular(folder / name, getattr(os, "O_NOFOLLOW", 0)) as file:
        return list(read_lines(file, Log(number, name[-38:-6])))


def next_seal(lines: Sequence[bytes], seq: int) -> Optional[Tuple[int, str]]:
    """Return seq and note of the first seal after line `seq`, or None. Raises `Fault`."""
    for at in range(seq + 1, len(lines)):
        later = parse_line(lines[at])
        if isinstance(later, dict) and SEAL(later):
            return at, str(later["note"])
    return None


def prove(folder: Path, number: int, seq: int) -> Optional[Dict[str, str]]:
    """Return the proof that line `seq` stands in log `number`, or None if no seal covers such a line.

    It holds the line, a C2SP tlog-proof of it up to the next seal, and what vouches for the log's key: the
    header and the first seal's note. It is checked by `check`, not here. Raises `Fault` and `OSError`.
    """
    lines = read_log(folder, number)
    first, seal = next_seal(lines, 0), next_seal(lines, seq) if seq >= 0 else None
    if first is None or seal is None:
        return None
    path = inclusion_path([leaf_hash(line) for line in lines[: seal[0]]], seq)
    hashes = [base64.b64encode(step).decode("ascii") for step in path]
    return {
        "format": "akaion-proof/1",
        "header": lines[0].decode("utf-8"),
        "certificate": first[1],
        "line": lines[seq].decode("utf-8"),
        "proof": "\n".join([PROOF_HEAD, f"index {seq}", *hashes, "", seal[1]]),
    }


def parse_proof(text: str) -> Tuple[int, List[bytes], str]:
    """Return index, path and note of a C2SP tlog-proof. Raises `Fault`: `proof-malformed`."""
    head, blank, note = text.partition("\n\n")
    first, *rest = head.split("\n")
    index = re.fullmatch(r"index (0|[1-9][0-9]{0,5})", rest[0]) if rest else None
    path = [parse_base64(line) or b"" for line in rest[1:]]
    hashes = len(path) <= 17 and all(len(step) == 32 for step in path)
    if first != PROOF_HEAD or not blank or index is None or not hashes:
        raise Fault("proof-malformed")
    return int(index.group(1)), path, note


def check_proof(document: object, pin: Optional[Key]) -> Tuple[Body, Optional[str], Optional[str]]:
    """Return the record that a proof shows, and two reasons for doubt, if there are any.

    They are that the log is not of the pinned device, and that its header declares it unverifiable.

    Raises `Fault` if the proof does not hold.
    """
    if not isinstance(document, dict) or not PROOF(document):
        raise Fault("proof-malformed")
    header = parse_record(parse_line(document["header"].encode("utf-8", "surrogatepass")), None)
    if header["kind"] != "header" or header["seq"] != 0 or header["prev"] != FIRST_PREV:
        raise Fault("header-misplaced")
    body = header["body"]
    key = parse_vkey(body["vkey"])
    if key is None or key.name != body["origin"] or (pin is not None and pin.public == key.public):
        raise Fault("key-unusable")
    doubt = None if body["verifiable"] and not body["unverifiable_because"] else "unverifiable"
    book = body["origin"].rpartition("/")[0]
    start = leaf_hash(document["header"].encode("utf-8"))
    text, lines = check_note(document["certificate"], key, 1, start, 2)
    distrust = check_device(*parse_device(lines[1], book), text, pin)
    index, path, note = parse_proof(document["proof"])
    line = document["line"].encode("utf-8", "surrogatepass")
    record = parse_record(parse_line(line), body.get("extensions", []))
    size = re.match(r"[^\n]*\n([1-9][0-9]{0,5})\n", note)
    root = climb(leaf_hash(line), index, int(size.group(1)), path) if size else None
    if size is None or root is None or record["seq"] != index or index >= int(size.group(1)):
        raise Fault("proof-malformed")
    check_note(note, key, int(size.group(1)), root, 2 if size.group(1) == "1" else 1)
    return record, distrust or ("no-pin" if pin is None else None), doubt


def compare(first: Path, second: Path, *, vouched: bool) -> Tuple[str, Optional[Tuple[int, int]]]:
    """Return how two books relate, and where they part: log and seq.

    `nothing`, if one holds no log; `disjoint`, if they have no log number in common; `same`; `continues`, if
    one has all that the other has, and more; `overlaps`, if each has more. Where they part: `unrelated`, if
    logs of one number have two ids and do not follow one log, as in two books that one device keeps;
    `forked`, if both have sealed what stands there, be it a line or the next log; `differs`, if not both
    have, or `vouched` is false. This compares lines: `vouched` says that both books hold by themselves and
    the pinned device certified them. Raises `Fault` and `OSError`.
    """
    folders = (first, second)
    names = [find_logs(folder, Findings()) for folder in folders]
    common = names[0].keys() & names[1].keys()
    if not all(names) or not common:
        return "disjoint" if all(names) else "nothing", None
    more = [each.keys() > common for each in names]
    for number in sorted(common):
        logs = [read_log(folder, number) for folder in folders]
        if names[0][number] != names[1][number]:
            heads = [parse_record(parse_line(line), None) for log in logs for line in log[:1]]
            stated = [head.get("body", {}).get("prev_log", {}).get("id") for head in heads]
            if not any(stated) or stated[0] != stated[-1]:
                return "unrelated", (number, 0)
        pairs = enumerate(itertools.zip_longest(*logs))
        seq = next((at for at, (one, two) in pairs if one != two), None)
        if seq is None:
            continue
        goes_on = [seq < len(log) or number + 1 in each for log, each in zip(logs, names)]
        if all(goes_on):
            later = [log + read_log(folder, number + 1) for log, folder in zip(logs, folders)]
            sealed = all(next_seal(lines, seq - 1) for lines in later)
            return "forked" if sealed and vouched else "differs", (number, seq)
        more[goes_on.index(True)] = True
    return ("same", "continues", "overlaps")[sum(more)], None


RELATIONS = {
    "nothing": "at least one of the two folders holds no log that can be read",
    "disjoint": "the two have no log number in common, so nothing can be said of how they relate",
    "unrelated": "these are two books, not two copies of one: a log of the same number has another id",
    "same": "the two hold the same lines",
    "continues": "one is the beginning, or a part, of the other",
    "overlaps": "what both have is the same, and each has more than the other",
    "differs": "the two part at a line of which at least one copy proves nothing",
    "forked": "the pinned device sealed two stories of one book: no honest writer does, unless an old copy "
    "of its disk was put back and went on",
}


def main_check(chosen: argparse.Namespace) -> int:
    """Check one proof, print what it shows, and return the exit code.

    Without a reason to doubt it the answer is `INCLUDED`: that the book keeps the rules, only the book shows.
    """
    pin, distrust = read_pin(chosen.proof, chosen.pin)
    record, codes = None, [distrust]
    try:
        with open_regular(chosen.proof) as file:
            text = file.read(4 * MAX_LINE).decode("utf-8")
        record, *doubts = check_proof(json.loads(text, object_pairs_hook=_parse_members), pin)
        codes += doubts
    except Fault as fault:
        codes = [fault.code]
    except (OSError, ValueError, RecursionError):
        codes = ["proof-malformed"]
    verdict, reasons = worst_first(sorted({code for code in codes if code}))
    word, claims = "INCLUDED" if verdict == "PASS" else verdict, [*NOT_CLAIMED, NOT_SHOWN]
    report = {"verdict": word, "exit": EXIT_CODES[verdict], "reasons": reasons, "record": record}
    if chosen.json:
        print(json.dumps({**report, "claims_not_made": claims}, indent=2))
    else:
        lines = [f"{word} (exit {EXIT_CODES[verdict]})"]
        lines += [f"  {REASONS[code][0]}: {code}: {REASONS[code][1]}" for code in reasons]
        lines += [json.dumps(record, indent=2, sort_keys=True), "Not claimed:"]
        print("\n".join([*lines, *(f"  - {claim}" for claim in claims)]))
    return EXIT_CODES[verdict]


def main_prove(chosen: argparse.Namespace) -> int:
    """Print the proof of one line, and return the exit code."""
    try:
        proof = prove(chosen.folder, chosen.log, chosen.seq)
    except (Fault, OSError, ValueError):
        proof = None
    if proof is None:
        print(f"{str(chosen.folder)!a}: no sealed line {chosen.seq} in a log {chosen.log}", file=sys.stderr)
        return EXIT_CODES["INCOMPLETE"]
    print(json.dumps(proof, indent=2))
    return 0


def main_compare(chosen: argparse.Namespace) -> int:
    """Verify two books, print how they relate, and return the worst exit code."""
    reports = [verify(folder, chosen.pin) for folder in (chosen.folder, chosen.other)]
    vouched = all(report["verdict"] not in {"FAIL", "UNTRUSTED"} for report in reports)
    try:
        relation, place = compare(chosen.folder, chosen.other, vouched=vouched)
    except (Fault, OSError):
        relation, place = "differs", None
    verdicts = [str(report["verdict"]) for report in reports] + (["FAIL"] if relation == "forked" else [])
    verdict = min(verdicts, key=list(EXIT_CODES).index)
    if chosen.json:
        data = {"verdict": verdict, "exit": EXIT_CODES[verdict], "relation": relation, "parts_at": place}
        print(json.dumps({**data, "books": reports}, indent=2))
        return EXIT_CODES[verdict]
    where = "" if place is None else f" (log {place[0]}, seq {place[1]})"
    print(f"{verdict} (exit {EXIT_CODES[verdict]})\n{relation}: {RELATIONS[relation]}{where}")
    for folder, report in zip((chosen.folder, chosen.other), reports):
        print(f"\n{str(folder)!a}:\n{describe(report)}")
    return EXIT_CODES[verdict]


def main_verify(chosen: argparse.Namespace) -> int:
    """Verify a book, print the report, keep the auditor's state, and return the exit code."""
    policies = [*chosen.policy, *chosen.policy_digest]
    try:
        report = verify(chosen.folder, chosen.pin, policies, chosen.state, chosen.witness)
    except Exception:  # noqa: BLE001 - a defect of this program must read as a failure, never as a traceback
        fault: Body = {"code": "verifier-fault", "log": None, "seq": None}
        report = report_of(Findings({"verifier-fault": fault}), {}, pinned=False)
    gone = "" if os.access(chosen.folder, os.F_OK) else f": there is no folder {str(chosen.folder)!a}"
    print(json.dumps(report, indent=2) if chosen.json else describe(report).replace("\n", f"{gone}\n", 1))
    if chosen.state is not None:
        try:
            write_state(chosen.state, report)
        except OSError as error:
            print(f"the state was not written: {error.strerror}; it is what it was before", file=sys.stderr)
    return EXIT_CODES[str(report["verdict"])]


COMMANDS: Dict[str, Tuple[Callable[[argparse.Namespace], int], str, Tuple[str, ...]]] = {
    "verify": (main_verify, "Verify a folder of akaion-trace/1 logs (if no command is named).", ("folder",)),
    "prove": (main_prove, "Print the proof of line SEQ, from 0, of log LOG.", ("folder", "log", "seq")),
    "check": (main_check, "Check a proof that `prove` printed.", ("proof",)),
    "compare": (main_compare, "Verify two copies of a book, and say where they part.", ("folder", "other")),
}
OPERANDS: Dict[str, Tuple[Callable[[str], object], str]] = {
    "folder": (Path, "the book: a folder of .jsonl logs"),
    "other": (Path, "the other copy"),
    "proof": (Path, "a file with a proof"),
    "log": (int, "the number of the log"),
    "seq": (int, "the number of the line, from 0"),
}
OPTIONS: Dict[str, Tuple[Callable[[str], object], str]] = {
    "--pin": (file_argument, "file with the device's verifier key, got elsewhere"),
    "--policy": (policy_argument, "file with a policy, to repeat each decision under it (S10); repeatable"),
    "--policy-digest": (digest_argument, "a policy that a log may be under (S6), 64 hex digits; repeatable"),
    "--witness": (file_argument, "file with the key of a witness whose cosignatures count; repeatable"),
    "--state": (Path, "your file of what you saw: checked, then brought on"),
}


def main(arguments: Optional[Sequence[str]] = None) -> int:
    """Run the command and return the exit code of the verdict."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    command = given.pop(0) if given and given[0] in COMMANDS else "verify"
    run, description, operands = COMMANDS[command]
    program = "akaion-verify" if command == "verify" else f"akaion-verify {command}"
    others = "other commands, each with --help: " + ", ".join(name for name in COMMANDS if name != command)
    parser = Arguments(prog=program, description=description, epilog=others)
    for name in operands:
        convert, meaning = OPERANDS[name]
        parser.add_argument(name, type=convert, help=meaning)
    for name, (convert, meaning) in OPTIONS.items():
        if command == "verify" or (name == "--pin" and command != "prove"):
            parser.add_argument(name, type=convert, action="append", default=[], help=meaning)
    if command != "prove":
        parser.add_argument("--json", action="store_true", help="print the report as JSON")
    parser.add_argument("--version", action="version", version=VERSION)
    chosen = parser.parse_args(given)
    for single in ("pin", "state"):  # of two the last would count, and nothing would say so
        values = getattr(chosen, single, [])
        if len(values) > 1:
            parser.error(f"--{single} may be given once")
        setattr(chosen, single, values[0] if values else None)
    return run(chosen)


if __name__ == "__main__":
    sys.exit(main())
