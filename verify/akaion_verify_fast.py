# SPDX-License-Identifier: Apache-2.0
"""Runs `akaion_verify.py`, which stands beside it, faster: with `cryptography` and `orjson`, where they are.

Owns two shortcuts: signatures by OpenSSL, and lines by a faster parser. The parser only ever says yes, and
only where the slow way says yes too; whatever else it meets, the slow way judges and gives the reason. Leaves
everything else to the verifier, options and answers included. Without the two packages nothing changes.

    python3 akaion_verify_fast.py FOLDER --pin device.vkey
"""

from __future__ import annotations

import sys
from functools import lru_cache
from typing import Any, Iterable

import akaion_verify

try:
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric import ed25519
except ImportError:
    ed25519 = None  # type: ignore[assignment]  # then that shortcut is left out
try:
    import orjson
except ImportError:
    orjson = None

ORDER_EIGHT = (
    "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc",
    "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03",
)
SMALL_ORDER = {  # the eight points of small order, each in its one encoding
    b"\x01" + bytes(31),
    b"\xec" + b"\xff" * 30 + b"\x7f",
    bytes(32),
    bytes(31) + b"\x80",
    *(bytes.fromhex(ORDER_EIGHT[0]) + last for last in (b"\x05", b"\x85")),
    *(bytes.fromhex(ORDER_EIGHT[1]) + last for last in (b"\x7a", b"\xfa")),
}


def install(verifier: Any) -> None:  # noqa: ANN401 - a module, whose names are replaced
    """Put the shortcuts into the module `verifier`, as far as their packages are here."""
    if ed25519 is not None:
        verifier.signature_ok = _signatures(verifier)
    if orjson is not None:
        verifier.parse_line = _lines(verifier)


def _signatures(verifier: Any) -> Any:  # noqa: ANN401 - a module, and a function of one
    """Return `signature_ok` by OpenSSL.

    It computes a point and compares its encoding with R, so that no second encoding of R holds. It takes keys
    and R of small order, and keys in a second encoding: these are refused here.
    """
    usable = lru_cache(maxsize=256)(lambda key: verifier.point_decode(key) is not None)

    def signature_ok(key: bytes, message: bytes, signature: bytes) -> bool:
        """Say whether `signature` (64 bytes) by `key` (32 bytes) holds for `message`. Total: never raises."""
        if len(signature) != 64 or signature[:32] in SMALL_ORDER or not usable(key):
            return False
        if int.from_bytes(signature[32:], "little") >= verifier.L:
            return False
        try:
            ed25519.Ed25519PublicKey.from_public_bytes(key).verify(signature, message)
        except (InvalidSignature, ValueError):
            return False
        return True

    return signature_ok


def _lines(verifier: Any) -> Any:  # noqa: ANN401, C901 - as above, and one walk in one place
    """Return `parse_line` by orjson, for an object or array as orjson writes it; any other goes the slow way.

    What a round trip does not show, and the slow way refuses, is looked for in the value: numbers with a
    fraction or beyond 2^53 - 1, members' names of other letters, and depth.
    """
    slow, loads, dumps, by_name = verifier.parse_line, orjson.loads, orjson.dumps, orjson.OPT_SORT_KEYS
    is_name = verifier.is_member
    greatest, deepest = verifier.MAX_INTEGER, verifier.MAX_DEPTH
    plain = frozenset({str, bool, type(None)})

    def fits(value: Any, room: int) -> bool:  # noqa: ANN401 - any JSON value
        items: Iterable[Any] = ()
        if type(value) is dict and all(map(is_name, value)):
            items = value.values()
        elif type(value) is list:
            items = value
        else:
            return False
        for item in items:
            kind = type(item)
            if kind is int:
                if not -greatest <= item <= greatest:
                    return False
            elif kind not in plain and not fits(item, room - 1):
                return False
        return room > 0

    def parse_line(line: bytes) -> object:
        """Return the value of one line. Raises `Fault` as the slow way does."""
        if len(line) > verifier.MAX_LINE:
            return slow(line)
        try:
            value = loads(line)
            again = dumps(value, option=by_name)
        except (ValueError, TypeError):  # orjson's errors are of these kinds
            return slow(line)
        return value if again == line and fits(value, deepest) else slow(line)

    return parse_line


def main() -> int:
    """Run the verifier with the shortcuts, and return the exit code of the verdict."""
    install(akaion_verify)
    return akaion_verify.main()


if __name__ == "__main__":
    sys.exit(main())
