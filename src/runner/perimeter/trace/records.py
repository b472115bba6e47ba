# SPDX-License-Identifier: Apache-2.0
"""The records of a log: one frozen data class per kind of `contracts/trace/v1` §5.

Owns their fields and the rules between fields of one record. Rules between records are the verifier's;
what the log itself fills in (counts, sequence, time, hashes) is `log`'s and `chain`'s. Carries I12: every
field is a word of the profile or of the format, an id minted by the runtime, a number, or a commitment.

`TASK` says whether an entry of the kind belongs to a task: it must, it may, or it cannot.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Final, Literal, TypeAlias

from runner.kernel.labels import DataClass, Integrity
from runner.kernel.ports import RELEASE, Locality
from runner.kernel.tiers import CallFailure, Tier
from runner.perimeter.trace.shape import (
    BlockId,
    Blocks,
    Commits,
    Count,
    Hex32,
    Hex64,
    Judges,
    Member,
    Name,
    Names,
    SealEvery,
    SealMs,
    Shape,
    TimeUs,
    matching,
)

FORMAT: Final = "akaion-trace/1"
OTHER: Final = "other"
"""Stands for a tool that the profile does not name; its commitment stands beside it."""
MATTERS: Final = "matters"
"""The member of `replay` that counts the matters of a task once the call has run."""

TaskUse: TypeAlias = Literal["must", "may", "no"]
Status: TypeAlias = Literal["ok", "error", "timeout", "cancelled"]
Origin: TypeAlias = Annotated[str, matching(r"[a-z0-9][a-z0-9._/-]{0,94}/[0-9a-f]{32}")]
VerifierKey: TypeAlias = Annotated[str, matching(r"[a-z0-9._/-]+\+[0-9a-f]{8}\+[A-Za-z0-9+/=]+")]
Unverifiable: TypeAlias = Literal[
    "host-tool-untrusted", "tool-unrestricted", "network-unrestricted", "sandbox-missing", "fail-open"
]
Sandbox: TypeAlias = Literal["none", "bubblewrap", "bubblewrap-landlock", "landlock", "seatbelt", "container"]
Ceiling: TypeAlias = Literal["none", "C0", "C1"]
OpinionWord: TypeAlias = Literal["none", "person", "health", "judicial", "secrecy", "credential", "fault"]
RULES_ONLY: Final = "rules-only"
"""The classifier that asks no second opinion, in headers and for what only the rules have seen."""
MAX_REPLAY: Final = 32
EXTENSIONS: Final = ("x_prompts", "x_tokens_in", "x_tokens_out")
"""The members this writer adds to those of the format. Every header lists them; no verifier judges them."""
SUCCESSION: Final = "x_next_device_key"
"""One more, of a book's last log: the device key that goes on. Whoever certified that log says so."""


class Record(Shape):
    """Base of what `Trace.append` takes, and of the records the trace writes by itself."""

    __slots__ = ()
    TASK: ClassVar[TaskUse] = "must"


def _tool_defect(tool: str, commit: str | None) -> str | None:
    return None if (tool == OTHER) == (commit is not None) else "tool_commit stands beside tool 'other' only"


# --- the frame of a log, written by the trace itself -----------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class PrevLog(Shape):
    """The predecessor in the book: its id, its whole lines, the root over them."""

    id: Hex32
    size: Count
    root: Hex64


@dataclass(frozen=True, slots=True, kw_only=True)
class HostTool(Shape):
    """A host program's own callable, and whether the profile vouches for it."""

    name: Name
    trusted: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Header(Record):
    """Record 0: what this log is, under which profile, policy and keys."""

    kind: ClassVar[str] = "header"
    TASK: ClassVar[TaskUse] = "no"

    format: Literal["akaion-trace/1"] = FORMAT
    log_id: Hex32
    log_no: Count
    prev_log: PrevLog | None
    origin: Origin
    vkey: VerifierKey
    alg: Literal["ed25519"] = "ed25519"
    profile: Name
    policy_digest: Hex64
    config_digest: Hex64
    backends: Names
    host_tools: tuple[HostTool, ...]
    max_egress_class: Ceiling
    classifier: Judges
    enforcement: Literal["cooperative", "isolated"]
    sandbox: Sandbox
    verifiable: bool
    unverifiable_because: tuple[Unverifiable, ...]
    custody: Literal["file", "keyring", "process", "hardware"]
    seal_every: SealEvery
    seal_ms: SealMs
    writer: Name
    host_commit: Hex64
    boot_id: Hex32
    extensions: Names = EXTENSIONS
    x_prompts: Hex64 | None = None
    x_next_device_key: VerifierKey | None = None

    def _defect(self) -> str | None:
        reasons = self.unverifiable_because
        if len(set(reasons)) != len(reasons) or self.verifiable is bool(reasons):
            return "verifiable is true exactly when there is no reason against it, each named once"
        if len({tool.name for tool in self.host_tools}) != len(self.host_tools):
            return "a host tool is named twice"
        if "host-tool-untrusted" not in reasons and not all(tool.trusted for tool in self.host_tools):
            return "an untrusted host tool makes the log unverifiable (P3)"
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovery(Record):
    """Accounts for an interrupted predecessor."""

    kind: ClassVar[str] = "recovery"
    TASK: ClassVar[TaskUse] = "no"

    log_no: Count
    size: Count
    root: Hex64
    torn_bytes: Count
    torn_sha256: Hex64
    unsealed_kept: Count


@dataclass(frozen=True, slots=True, kw_only=True)
class Close(Record):
    """The last entry of a complete log."""

    kind: ClassVar[str] = "close"
    TASK: ClassVar[TaskUse] = "no"

    entries: Count
    reason: Literal["done", "rotated", "shutdown", "error"]


# --- tasks and blocks -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Backend(Record):
    """What a configured backend is, with the locality that was checked (I10)."""

    kind: ClassVar[str] = "backend"
    TASK: ClassVar[TaskUse] = "no"

    name: Name
    model: Name
    locality: Locality
    is_local: bool
    caps_digest: Hex64
    endpoint_commit: Hex64

    def _defect(self) -> str | None:
        local = self.locality is not Locality.REMOTE
        return None if self.is_local is local else "is_local contradicts locality"


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskStart(Record):
    """The first entry of a task."""

    kind: ClassVar[str] = "task_start"

    goal_commit: Hex64
    data_class: DataClass
    user: Hex64 | None = None
    matters: Commits | None = None

    def _defect(self) -> str | None:
        return "matters is absent or names at least one" if self.matters == () else None


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskEnd(Record):
    """The last entry of a task. The trace fills in `counts`: entries of the task by kind."""

    kind: ClassVar[str] = "task_end"

    outcome: Literal["done", "failed", "cancelled", "stopped"]
    counts: Mapping[Member, Count] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanStep(Shape):
    """One step of a plan."""

    id: Count
    tool: Name
    tool_commit: Hex64 | None = None

    def _defect(self) -> str | None:
        return _tool_defect(self.tool, self.tool_commit)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan(Record):
    """A list of steps, and who made it."""

    kind: ClassVar[str] = "plan"

    by: Literal["model", "user", "plane"]
    steps: tuple[PlanStep, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class StepVerdict(Record):
    """What a judge said about a step."""

    kind: ClassVar[str] = "step_verdict"

    step: Count
    verdict: Literal["pass", "fail", "unsure"]
    by: Literal["model", "user", "plane", "rule"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts(Shape):
    """The three parts of a block's class."""

    declared: DataClass | None = None
    default: DataClass
    detected: DataClass | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Classify(Record):
    """The label of a new block. `commit` commits to its content.

    A second opinion on a block is a new block with the old one as its input; `opinion` says why it has its
    class. What is made from a block is no lower: so opinions only raise (I8).
    """

    kind: ClassVar[str] = "classify"
    TASK: ClassVar[TaskUse] = "may"

    block: BlockId
    data_class: DataClass
    parts: Parts
    integrity: Integrity
    classifier: Judges
    version: Name
    opinion: OpinionWord | None = None
    inputs: Blocks = ()
    commit: Hex64

    def _defect(self) -> str | None:
        if (self.opinion is None) is not (self.classifier == RULES_ONLY):
            return "an opinion stands where more than the rules was asked, and only there"
        if self.opinion is not None and len(self.inputs) != 1:
            return "an opinion is about one block"
        parts = (self.parts.declared, self.parts.default, self.parts.detected)
        highest = max(part for part in parts if part is not None)
        return None if self.data_class is highest else "the class is not the maximum of its parts"


@dataclass(frozen=True, slots=True, kw_only=True)
class Compact(Record):
    """A block computed from others."""

    kind: ClassVar[str] = "compact"

    inputs: Blocks
    block: BlockId

    def _defect(self) -> str | None:
        return None if self.inputs else "a computed block has at least one input"


# --- decisions and their effects --------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyDecision(Record):
    """What the policy answered to a call. `replay` is what repeating the decision needs."""

    kind: ClassVar[str] = "policy_decision"

    call_id: Hex32
    tool: Name
    tool_commit: Hex64 | None = None
    decision: Literal["allow", "ask", "deny"]
    rule: Name
    args_commit: Hex64
    replay: Mapping[Member, Name | Count | bool] = field(default_factory=dict)
    data_class: DataClass
    inputs: Blocks = ()

    def _defect(self) -> str | None:
        if self.tool == OTHER and self.decision != "deny":
            return "an unknown tool is denied (I1)"
        if len(self.replay) > MAX_REPLAY:
            return f"replay holds more than {MAX_REPLAY} members"
        return _tool_defect(self.tool, self.tool_commit)


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval(Record):
    """A person's answer to an `ask`. `expires` is when a grant lapses."""

    kind: ClassVar[str] = "approval"

    call_id: Hex32
    by: Literal["user", "operator", "none"]
    args_commit: Hex64
    rendering_digest: Hex64
    expires: TimeUs
    granted: bool

    def _defect(self) -> str | None:
        return "nobody granted it" if self.granted and self.by == "none" else None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall(Record):
    """A call that is about to run. `net`: the tool can reach the network."""

    kind: ClassVar[str] = "tool_call"

    call_id: Hex32
    tool: Name
    args_commit: Hex64
    net: bool

    def _defect(self) -> str | None:
        return "this tool never runs" if self.tool in {OTHER, RELEASE} else None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult(Record):
    """How a call ended. `bytes` is the size of what `result_commit` commits to."""

    kind: ClassVar[str] = "tool_result"

    call_id: Hex32
    status: Status
    result_commit: Hex64
    bytes: Count
    block: BlockId | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Egress(Record):
    """One physical send that is about to happen, or was denied."""

    kind: ClassVar[str] = "egress"
    TASK: ClassVar[TaskUse] = "may"

    call_id: Hex32
    send_id: Hex32
    channel: Literal["inference", "tool"]
    backend: Name | None = None
    host_commit: Hex64 | None = None
    locality: Locality
    data_class: DataClass
    inputs: Blocks = ()
    decision: Literal["allowed", "redacted", "denied"]
    reason: Name | None = None
    payload_commit: Hex64
    bytes: Count
    declassify: Hex32 | None = None

    def _defect(self) -> str | None:
        inference = self.channel == "inference"
        if (self.backend is not None) is not inference or (self.host_commit is None) is not inference:
            return "channel inference names a backend, channel tool commits to a host"
        if not inference and (self.locality is not Locality.REMOTE or self.declassify is not None):
            return "channel tool is remote and knows no declassify"
        if self.decision == "denied" and self.reason is None:
            return "a denial names its reason"
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class EgressResult(Record):
    """How a send ended.

    `tier` is how its reply was to be held to a form, and `failure` why that was of no use. The tokens are
    those that the backend says it read and wrote; absent where it says nothing.
    """

    kind: ClassVar[str] = "egress_result"
    TASK: ClassVar[TaskUse] = "may"

    call_id: Hex32
    send_id: Hex32
    status: Status
    bytes: Count
    block: BlockId | None = None
    tier: Tier | None = None
    failure: CallFailure | None = None
    x_tokens_in: Count | None = None
    x_tokens_out: Count | None = None

    def _defect(self) -> str | None:
        if self.failure is not None and self.tier is None:
            return "a reply that was asked for in no tier has no failure"
        refused = self.failure is CallFailure.REFUSED
        if self.failure is not None and (self.status, refused) not in {("ok", False), ("error", True)}:
            return "a failure is refused where the send failed, and only there"
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Declassify(Record):
    """A recorded lowering (I8): by a rule, or by the approval of call `approval`."""

    kind: ClassVar[str] = "declassify"

    id: Hex32
    rule: Name | None = None
    approval: Hex32 | None = None
    source: Hex64
    from_class: DataClass
    to_class: DataClass
    backend: Name
    expires: TimeUs
    commit: Hex64

    def _defect(self) -> str | None:
        if (self.rule is None) is (self.approval is None):
            return "exactly one of rule and approval lowers a class"
        return None if self.to_class < self.from_class else "the class is not lowered"
