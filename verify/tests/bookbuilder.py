# SPDX-License-Identifier: Apache-2.0
"""Builds `akaion-trace/1` books for the verifier's tests, right by default and wrong on request.

Owns: a second, separate implementation of `contracts/trace/v1/README.md` as far as tests need one (its own
encoding, tree and signing). Leaves to others: everything a real writer does about locks, disks and crashes.
Keys, ids and clock are fixed, so a book is the same bytes on every run.
"""

from __future__ import annotations

import base64
import copy
import hashlib
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

if TYPE_CHECKING:
    from pathlib import Path

BOOK = "studio.example/desk"
SECOND = "rules+local:second"
TASK = "70" * 16
EXPIRES = 2_000_000_000_000_000
NOTHING = hashlib.sha256(b"").hexdigest()
LOCAL, REMOTE = "local-llama", "remote-gw"


def hex32(label: str) -> str:
    return hashlib.sha256(label.encode()).hexdigest()[:32]


def hex64(label: str) -> str:
    return hashlib.sha256(label.encode()).hexdigest()


def encode(value: object) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def merkle_root(leaves: list[bytes]) -> bytes:
    """MTH of RFC 6962, section 2.1, by its recursive definition; the leaves are already hashed."""
    if not leaves:
        return hashlib.sha256(b"").digest()
    if len(leaves) == 1:
        return leaves[0]
    half = 1
    while half * 2 < len(leaves):
        half *= 2
    return hashlib.sha256(b"\x01" + merkle_root(leaves[:half]) + merkle_root(leaves[half:])).digest()


def leaf(line: bytes) -> bytes:
    return hashlib.sha256(b"\x00" + line).digest()


def secret(label: str) -> Ed25519PrivateKey:
    return Ed25519PrivateKey.from_private_bytes(hashlib.sha256(label.encode()).digest())


def public(key: Ed25519PrivateKey) -> bytes:
    return key.public_key().public_bytes_raw()


def key_id(name: str, raw: bytes) -> bytes:
    return hashlib.sha256(name.encode() + b"\n\x01" + raw).digest()[:4]


def vkey(name: str, raw: bytes) -> str:
    encoded = base64.b64encode(b"\x01" + raw).decode()
    return f"{name}+{key_id(name, raw).hex()}+{encoded}"


DEVICE = secret("device")
DEVICE_NAME = f"{BOOK}/device"
DEVICE_VKEY = vkey(DEVICE_NAME, public(DEVICE))


def signature_line(name: str, key: Ed25519PrivateKey, text: str) -> str:
    blob = key_id(name, public(key)) + key.sign(text.encode())
    return f"\u2014 {name} {base64.b64encode(blob).decode()}\n"


@dataclass
class Step:
    """One record to write: an entry, or a seal. The label lets a test find it."""

    label: str
    kind: str
    body: dict[str, Any] = field(default_factory=dict)
    task: str | None = None
    ts: int | None = None


@dataclass
class LogBuilder:
    """Writes the lines of one log. Public attributes may be changed to break it."""

    number: int = 0
    prev_log: dict[str, Any] | None = None
    changes: dict[str, Any] = field(default_factory=dict)
    device: Ed25519PrivateKey = DEVICE
    lines: list[bytes] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    entries: int = 0
    clock: int = 1_700_000_000_000_000

    @property
    def log_id(self) -> str:
        return hex32(f"log {self.number}")

    @property
    def origin(self) -> str:
        return f"{BOOK}/{self.log_id}"

    @property
    def key(self) -> Ed25519PrivateKey:
        return secret(f"log key {self.number}")

    @property
    def name(self) -> str:
        return f"{self.number:06d}-{self.log_id}.jsonl"

    def header(self) -> dict[str, Any]:
        body: dict[str, Any] = {
            "format": "akaion-trace/1",
            "log_id": self.log_id,
            "log_no": self.number,
            "origin": self.origin,
            "vkey": vkey(self.origin, public(self.key)),
            "alg": "ed25519",
            "profile": "attached",
            "policy_digest": hex64("policy"),
            "config_digest": hex64("config"),
            "backends": [LOCAL, REMOTE],
            "host_tools": [{"name": "calendar", "trusted": True}],
            "max_egress_class": "C1",
            "classifier": SECOND,
            "enforcement": "cooperative",
            "sandbox": "bubblewrap",
            "verifiable": True,
            "unverifiable_because": [],
            "custody": "file",
            "seal_every": 20,
            "seal_ms": 1000,
            "writer": "bookbuilder/1",
            "host_commit": hex64("host"),
            "boot_id": hex32("boot"),
        }
        if self.prev_log is not None:
            body["prev_log"] = self.prev_log
        body.update(self.changes)
        return {name: value for name, value in body.items() if value is not None}

    def raw(self, record: dict[str, Any]) -> None:
        """Append a record, with `prev` and `seq` filled in where it does not state them."""
        first = hashlib.sha256(b"akaion-trace/1\n").hexdigest()
        prev = leaf(self.lines[-1]).hex() if self.lines else first
        self.lines.append(encode({"prev": prev, "seq": len(self.lines), **record}))

    def entry(self, step: Step) -> None:
        self.clock += 1000
        self.entries += 1
        body = dict(step.body)
        if step.kind == "task_end":
            body.setdefault("counts", dict(self.counts))
        if step.kind == "close":
            body.setdefault("entries", self.entries)
        record: dict[str, Any] = {"body": body, "kind": step.kind, "ts": step.ts or self.clock}
        if step.task is not None:
            record["task"] = step.task
            self.counts[step.kind] = self.counts.get(step.kind, 0) + 1
        self.raw(record)

    def text(self) -> str:
        root = base64.b64encode(merkle_root([leaf(line) for line in self.lines])).decode()
        return f"{self.origin}\n{len(self.lines)}\n{root}\n"

    def note(self) -> str:
        text = self.text()
        note = text + "\n" + signature_line(self.origin, self.key, text)
        if len(self.lines) == 1:
            note += signature_line(DEVICE_NAME, self.device, text)
        return note

    def seal(self, **changes: object) -> None:
        self.raw({"kind": "seal", "note": self.note(), **changes})

    def open(self) -> LogBuilder:
        self.entry(Step("header", "header", self.header()))
        self.seal()
        return self

    def play(self, steps: list[Step]) -> LogBuilder:
        for step in steps:
            if step.kind == "seal":
                self.seal()
            else:
                self.entry(step)
        return self

    def close(self) -> LogBuilder:
        return self.play([Step("close", "close", {"reason": "done"}), Step("end", "seal")])

    def as_prev(self) -> dict[str, Any]:
        root = merkle_root([leaf(line) for line in self.lines]).hex()
        return {"id": self.log_id, "size": len(self.lines), "root": root}

    def recovery(self, torn: bytes = b"", **changes: object) -> Step:
        """The step with which the next log accounts for this one."""
        seals = [index for index, line in enumerate(self.lines) if b'"kind":"seal"' in line]
        prev = self.as_prev()
        body = {
            "log_no": self.number,
            "size": prev["size"],
            "root": prev["root"],
            "torn_bytes": len(torn),
            "torn_sha256": hashlib.sha256(torn).hexdigest(),
            "unsealed_kept": len(self.lines) - seals[-1] - 1 if seals else len(self.lines),
        }
        return Step("recovery", "recovery", {**body, **changes})

    def next(self, **changes: object) -> LogBuilder:
        return LogBuilder(number=self.number + 1, prev_log=self.as_prev(), changes=changes)

    def content(self) -> bytes:
        return b"".join(line + b"\n" for line in self.lines)

    def write(self, folder: Path, torn: bytes = b"") -> LogBuilder:
        (folder / self.name).write_bytes(self.content() + torn)
        return self


def inference(label: str, backend: str, locality: str, data_class: str, blocks: list[str]) -> dict[str, Any]:
    return {
        "call_id": hex32(f"call {label}"),
        "send_id": hex32(f"send {label}"),
        "channel": "inference",
        "backend": backend,
        "locality": locality,
        "class": data_class,
        "inputs": blocks,
        "decision": "allowed",
        "payload_commit": hex64(f"payload {label}"),
        "bytes": 512,
    }


def answer(label: str, block: str | None, call: str | None = None) -> dict[str, Any]:
    ids = {"call_id": hex32(f"call {call or label}"), "send_id": hex32(f"send {label}")}
    return {**ids, "status": "ok", "bytes": 64, **({"block": block} if block else {})}


def classified(block: str, data_class: str, inputs: list[str]) -> dict[str, Any]:
    return {
        "block": block,
        "class": data_class,
        "parts": {"default": "C0", "detected": data_class},
        "integrity": "user",
        "classifier": "rules-only",
        "version": "1",
        "inputs": inputs,
        "commit": hex64(f"content {block}"),
    }


def opined(block: str, data_class: str, of: str, opinion: str) -> dict[str, Any]:
    return {**classified(block, data_class, [of]), "classifier": SECOND, "opinion": opinion}


def decided(label: str, tool: str, decision: str, blocks: list[str]) -> dict[str, Any]:
    return {
        "call_id": hex32(f"call {label}"),
        "tool": tool,
        "decision": decision,
        "rule": f"grant:{tool}",
        "args_commit": hex64(f"args {label}"),
        "replay": {"path": hex64("path"), "write": False, "count": 2},
        "class": "C1",
        "inputs": blocks,
    }


def released(label: str, block: str, *spans: int, backend: str = REMOTE) -> dict[str, Any]:
    """Return the decision to ask whether `block`, or its spans, may go to `backend`."""
    parts = {f"{'se'[at % 2]}{at // 2}": edge for at, edge in enumerate(spans)}
    replay = {"backend": backend, "to": "C1", "chars": 100, **parts}
    return {**decided(label, "release", "ask", [block]), "replay": replay, "class": "C2"}


def approved(label: str) -> dict[str, Any]:
    return {
        "call_id": hex32(f"call {label}"),
        "by": "user",
        "args_commit": hex64(f"args {label}"),
        "rendering_digest": hex64("rendering"),
        "expires": EXPIRES,
        "granted": True,
    }


def called(label: str, tool: str, *, net: bool) -> dict[str, Any]:
    return {
        "call_id": hex32(f"call {label}"),
        "tool": tool,
        "args_commit": hex64(f"args {label}"),
        "net": net,
    }


def returned(label: str, block: str) -> dict[str, Any]:
    result = {"status": "ok", "result_commit": hex64("result"), "bytes": 9, "block": block}
    return {"call_id": hex32(f"call {label}"), **result}


def backend(name: str, locality: str) -> dict[str, Any]:
    return {
        "name": name,
        "model": "qwen3:14b-instruct",
        "locality": locality,
        "is_local": locality != "remote",
        "caps_digest": hex64("caps"),
        "endpoint_commit": hex64("endpoint"),
    }


def story() -> list[Step]:
    """Every kind of entry at least once, and every rule obeyed."""
    seals = iter(range(100))

    def seal() -> Step:
        return Step(f"seal{next(seals)}", "seal")

    def step(label: str, kind: str, body: dict[str, Any]) -> Step:
        return Step(label, kind, body, TASK)

    web = inference("web", REMOTE, "remote", "C1", ["b1"])
    del web["backend"]
    web |= {"channel": "tool", "host_commit": hex64("host"), "call_id": hex32("call fetch")}
    lowered = inference("ask", REMOTE, "remote", "C1", ["b2"])
    refused = inference("refused", REMOTE, "remote", "C2", ["b2"])
    return [
        Step("declared", "backend", backend(LOCAL, "L0")),
        Step("probe", "egress", inference("probe", LOCAL, "L0", "C0", [])),
        seal(),
        Step("probed", "egress_result", answer("probe", None)),
        Step("local", "backend", backend(LOCAL, "L1")),
        Step("remote", "backend", backend(REMOTE, "remote")),
        step("start", "task_start", {"goal_commit": hex64("goal"), "class": "C1", "matters": [hex64("m")]}),
        step("b0", "classify", classified("b0", "C1", [])),
        step("plan", "plan", {"by": "model", "steps": [{"id": 1, "tool": "read_file"}]}),
        step("think", "egress", inference("think", LOCAL, "L1", "C1", ["b0"])),
        seal(),
        step("thought", "egress_result", answer("think", "b1")),
        step("b1", "classify", classified("b1", "C1", ["b0"])),
        step("b7", "classify", opined("b7", "C1", "b0", "none")),
        step("allow", "policy_decision", decided("read", "read_file", "allow", ["b1"])),
        step("read", "tool_call", called("read", "read_file", net=False)),
        seal(),
        step("was_read", "tool_result", returned("read", "b2")),
        step("b2", "classify", classified("b2", "C2", ["b1"])),
        step("ask", "policy_decision", decided("fetch", "fetch", "ask", ["b1"])),
        step("grant", "approval", approved("fetch")),
        step("fetch", "tool_call", called("fetch", "fetch", net=True)),
        step("web", "egress", web),
        seal(),
        step("page", "egress_result", answer("web", "b3", call="fetch")),
        step("b3", "classify", classified("b3", "C1", [])),
        step("fetched", "tool_result", returned("fetch", "b4")),
        step("b4", "classify", classified("b4", "C1", ["b3"])),
        step(
            "deny", "policy_decision", {**decided("bad", "other", "deny", ["b1"]), "tool_commit": hex64("?")}
        ),
        step("ask_release", "policy_decision", released("release", "b2")),
        step("granted", "approval", approved("release")),
        step(
            "lower",
            "declassify",
            {
                "id": hex32("lower"),
                "approval": hex32("call release"),
                "source": hex64("file"),
                "from": "C2",
                "to": "C1",
                "backend": REMOTE,
                "expires": EXPIRES,
                "commit": hex64("args release"),
            },
        ),
        step("send", "egress", {**lowered, "declassify": hex32("lower")}),
        seal(),
        step("reply", "egress_result", answer("ask", "b5")),
        step("b5", "classify", classified("b5", "C2", ["b2"])),
        step("refused", "egress", {**refused, "decision": "denied", "reason": "class:C2"}),
        step("compact", "compact", {"inputs": ["b1", "b2"], "block": "b6"}),
        step("b6", "classify", classified("b6", "C2", ["b1", "b2"])),
        step("judged", "step_verdict", {"step": 1, "verdict": "pass", "by": "rule"}),
        step("finish", "task_end", {"outcome": "done"}),
        Step("close", "close", {"reason": "done"}),
        Step("end", "seal"),
    ]


class Story(list[Step]):
    """A story that can be edited by label. `seq` says where a label ends up (header and seal come first)."""

    def __init__(self) -> None:
        super().__init__(copy.deepcopy(story()))

    def at(self, label: str) -> int:
        return [step.label for step in self].index(label)

    def seq(self, label: str) -> int:
        return self.at(label) + 2

    def change(self, label: str, **members: object) -> None:
        """Set body members; None removes one."""
        body = self[self.at(label)].body
        body.update(members)
        for name in [name for name, value in members.items() if value is None]:
            del body[name]

    def drop(self, *labels: str) -> None:
        for label in labels:
            del self[self.at(label)]

    def redact(self, rule: str = "redact-detected") -> None:
        """Let redaction lower the send, and nobody be asked."""
        self.drop("ask_release", "granted")
        self.change("lower", approval=None, rule=rule)
        self.change("send", decision="redacted")

    def after(self, label: str, *steps: Step) -> None:
        place = self.at(label) + 1
        self[place:place] = list(steps)

    def again(self, label: str, new_label: str = "again", **members: object) -> Step:
        step = copy.deepcopy(self[self.at(label)])
        step.label = new_label
        step.body.update(members)
        return step
