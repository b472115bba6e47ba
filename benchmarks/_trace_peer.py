# SPDX-License-Identifier: Apache-2.0
"""One peer of benchmarks/trace.py, in an interpreter of its own: what it costs, and which attacks it refuses.

Run by trace.py: PYTHON _trace_peer.py NAME RECORDS. Prints one JSON object: the version, records a second by
what was done, and for each attack whether the result was refused, alone and with what an auditor kept
elsewhere. Needs the peer and the standard library only.
"""

import importlib.metadata
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

Rows = list[Any]
ATTACKS: Final[dict[str, Callable[[Rows], None]]] = {
    "nothing": lambda _: None,
    "a record altered": lambda rows: rows.__setitem__(5, _altered(rows[5])),
    "a record removed": lambda rows: rows.__delitem__(5),
    "two records swapped": lambda rows: rows.__setitem__(slice(5, 7), [rows[6], rows[5]]),
    "the last records cut off": lambda rows: rows.__delitem__(slice(-3, None)),
}
ANEW: Final = ("written anew by another key", "written anew by the same key")
LIE: Final = "a call after a deny, validly signed"


def _altered(row: Any) -> Any:  # noqa: ANN401 - a line or an object of a peer's own
    if isinstance(row, str):
        return row.replace("A", "B", 1) if "A" in row else row.replace("1", "2", 1)
    name = next(each for each in ("payload_hash", "data") if each in row)
    return {**row, name: "0" * len(str(row[name]))}


def payloads(count: int, word: str = "") -> list[bytes]:
    """Return `count` payloads of some 300 bytes."""
    return [json.dumps({"n": number, "word": word, "pad": "A" * 260}).encode() for number in range(count)]


def rate(count: int, work: Callable[[], object]) -> float:
    """Return how many of `count` a second `work` does."""
    started = time.perf_counter()
    work()
    return count / (time.perf_counter() - started)


def judged(attack: Callable[[Rows], None], rows: Rows, accepts: Callable[[Rows, bool], bool]) -> list[bool]:
    """Return whether the rows are refused after `attack`: alone, and with what was kept elsewhere."""
    spoiled = list(rows)
    attack(spoiled)
    return [not accepts(spoiled, anchored) for anchored in (False, True)]


def tamperlog(count: int) -> dict[str, Any]:
    """Judge tamperlog: a tree without signatures, checked against a checkpoint kept elsewhere."""
    from tamperlog import AppendOnlyLog, JSONLStorage, TamperlogError

    folder = Path(tempfile.mkdtemp())
    log = AppendOnlyLog(JSONLStorage(folder / "log"))
    speed = {"append": rate(count, lambda: [log.append(each) for each in payloads(count)])}
    kept = log.checkpoint()

    def accepts(rows: Rows, anchored: bool) -> bool:  # noqa: FBT001 - data of this table
        (folder / "read").write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")
        try:
            found = AppendOnlyLog(JSONLStorage(folder / "read"))
            if anchored:
                found.verify_against(kept)
        except (TamperlogError, ValueError):
            return False
        return True

    rows = (folder / "log").read_text(encoding="utf-8").splitlines()
    speed["verify"] = rate(count, lambda: accepts(rows, anchored=True))
    anew = AppendOnlyLog(JSONLStorage(folder / "anew"))
    for each in payloads(count, "other"):
        anew.append(each)
    other = (folder / "anew").read_text(encoding="utf-8").splitlines()
    attacks = {name: judged(attack, rows, accepts) for name, attack in ATTACKS.items()}
    attacks |= {name: [not accepts(other, anchored) for anchored in (False, True)] for name in ANEW}
    return {"speed": speed, "attacks": attacks}


def witness_log(count: int) -> dict[str, Any]:
    """Judge witness-log: a signed tree in Rust; what was kept elsewhere is a head seen earlier."""
    from witness_log import JournaledLog, verify_dossier_json

    folder = tempfile.mkdtemp()

    def made(name: str, seed: bytes, word: str = "") -> Any:  # noqa: ANN401 - the library's
        log = JournaledLog.create(os.path.join(folder, name), seed)  # noqa: PTH118 - it takes a text
        for each in payloads(count, word):
            log.append_intent(each)
        return log

    log = JournaledLog.create(os.path.join(folder, "speed"), b"s" * 32)  # noqa: PTH118 - as above
    speed = {"append": rate(count, lambda: [log.append_intent(each) for each in payloads(count)])}
    few = count // 40
    speed["durable"] = rate(few, lambda: [(log.append_intent(each), log.sync()) for each in payloads(few)])
    real = made("real", b"s" * 32)
    dossier = json.loads(real.to_dossier_json())
    seen, identity = dossier["checkpoint"], real.identity_pubkey_hex()
    heads = [f"{seen['tree_size']}:{seen['root_hash']}"]
    good = {"witnessed", "consistent_unwitnessed", "unanchored"}

    def accepts(rows: Rows, anchored: bool, around: dict[str, Any] = dossier) -> bool:  # noqa: FBT001 - as above
        text = json.dumps({**around, "leaves": rows})
        try:
            said = verify_dossier_json(text, 0.0, identity, known_heads=heads if anchored else None)
        except Exception:  # noqa: BLE001 - whatever it raises is no yes
            return False
        return json.loads(said)["verdict"] in good

    rows = dossier["leaves"]
    text = json.dumps(dossier)
    speed["verify"] = rate(count, lambda: verify_dossier_json(text, 0.0, identity))
    attacks = {name: judged(attack, rows, accepts) for name, attack in ATTACKS.items()}
    for name, seed in zip(ANEW, (b"t" * 32, b"s" * 32), strict=True):
        other = json.loads(made(name.replace(" ", "-"), seed, "other").to_dossier_json())
        attacks[name] = [not accepts(other["leaves"], anchored, other) for anchored in (False, True)]
    return {"speed": speed, "attacks": attacks}


def aat_verify(count: int) -> dict[str, Any]:
    """Judge aat-verify, which verifies and does not write: a chain, each record signed with ES256."""
    from aat_verify import core, verify_trail
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec, utils

    keys = [ec.generate_private_key(ec.SECP256R1()) for _ in range(2)]
    points = [key.public_key().public_numbers() for key in keys]
    kid = "device"
    place = {name: core.b64u(getattr(points[0], name).to_bytes(32, "big")) for name in ("x", "y")}
    keystore = {kid: {"alg": "ES256", "jwk_x_y": place}}

    def made(key: Any, word: str = "") -> Rows:  # noqa: ANN401 - the library's
        rows: Rows = []
        for number, each in enumerate(payloads(count, word)):
            before = core.sha256_hex(core.jcs(core.chain_core(rows[-1]))) if rows else None
            row = {
                "data": each.decode(),
                "prev_hash": before,
                "signer_kid": kid,
                "timestamp": f"{number:09d}",
            }
            made_of = key.sign(core.signed_hash(row), ec.ECDSA(utils.Prehashed(hashes.SHA256())))
            first, second = utils.decode_dss_signature(made_of)
            row["signature"] = core.b64u(first.to_bytes(32, "big") + second.to_bytes(32, "big"))
            rows.append(row)
        return rows

    def accepts(rows: Rows, anchored: bool) -> bool:  # noqa: ARG001, FBT001 - it keeps nothing elsewhere
        return bool(verify_trail(rows, keystore).ok)

    rows = made(keys[0])
    speed = {"verify": rate(count, lambda: accepts(rows, anchored=False))}
    attacks = {name: judged(attack, rows, accepts) for name, attack in ATTACKS.items()}
    for name, key in zip(ANEW, reversed(keys), strict=True):
        attacks[name] = [not accepts(made(key, "other"), anchored) for anchored in (False, True)]
    return {"speed": speed, "attacks": attacks}


PEERS: Final = {"witness-log": witness_log, "tamperlog": tamperlog, "aat-verify": aat_verify}


def main() -> None:
    """Print what the peer does."""
    name, count = sys.argv[1], int(sys.argv[2])
    found = PEERS[name](count)
    found["attacks"][LIE] = [False, False]  # none of them has rules between records: any signed ones will do
    print(json.dumps({"version": importlib.metadata.version(name), **found}))


if __name__ == "__main__":
    main()
