# SPDX-License-Identifier: Apache-2.0
"""One run as the record tells it: when, with what, what was sent, denied, failed, and how long it took.

Owns reading a log as runs. Pure and total: what is not on record is None or empty, never guessed. Leaves
which lines are verified to `book.py`, and showing to the commands. Carries I12: a run is ids, words of the
profile and of the format, and numbers.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import median, quantiles
from typing import Any, Final

from runner.adapters.ledger.book import Entry, ReadLog
from runner.kernel.ports import RELEASE
from runner.kernel.tiers import Tier

GRANTED: Final = "granted"
"""The word for a yes of `answer_word`."""
OPEN: Final = "open"
"""The outcome of a run whose end is not on record: it goes on, or was interrupted."""
INTERRUPTED: Final = "interrupted"
"""The outcome of one in a log that broke off, where the next log accounts for it: it does not go on."""
_TIERS: Final = tuple(Tier)
_P95: Final = 94
"""The 95th percentile among the 99 cuts of 100 parts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BackendFacts:
    """What a backend was, when it was used: the latest record of it."""

    name: str
    model: str
    locality: str
    caps_digest: str
    seq: int

    @property
    def shown(self) -> str:
        """The backend and its model in one word."""
        return f"{self.name}:{self.model}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Send:
    """One send, or its denial. `latency_us`: from its record to that of its result, sealing included.

    `tokens_in` and `tokens_out` are what the backend says it read and wrote.
    """

    seq: int
    ts: int
    channel: str
    backend: str
    locality: str
    data_class: str
    decision: str
    reason: str
    bytes: int
    status: str = ""
    latency_us: int | None = None
    tier: str = ""
    failure: str = ""
    bytes_back: int | None = None
    tokens_in: int | None = None
    tokens_out: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One task, from its start to its end. `verified`: every line that it is told by is.

    It is told by its verified lines, if it has any: what no seal covers counts for nothing. `entries`: all.
    """

    task: str
    log: int
    first: int
    last: int
    verified: bool
    start_us: int
    end_us: int | None
    outcome: str
    goal_class: str
    mark: str
    matters: int
    profile: str
    policy_digest: str
    config_digest: str
    prompts: str
    writer: str
    backends: tuple[BackendFacts, ...]
    sends: tuple[Send, ...]
    tools: Mapping[str, int]
    denied_tools: Mapping[str, int]
    denied_calls: Mapping[str, int]
    approvals: Mapping[str, int]
    lowered: Mapping[str, int]
    entries: tuple[Entry, ...] = field(repr=False)

    @property
    def duration_us(self) -> int | None:
        """From its first record to its last, in microseconds; None while its end is not on record."""
        return None if self.end_us is None else self.end_us - self.start_us

    @property
    def denials(self) -> int:
        """How many sends and calls were denied, and how many times a yes was needed and not given."""
        return sum(self.denied.values())

    @property
    def denied(self) -> dict[str, int]:
        """What `denials` counts, by the rule, or by how no yes came of the question."""
        sends = (each.reason for each in self.sends if each.decision == "denied")
        unapproved = {word: count for word, count in self.approvals.items() if word != GRANTED}
        parts = (counted(sends), self.denied_calls, unapproved)
        return dict(sum(map(Counter, parts), Counter[str]()))

    @property
    def inferences(self) -> tuple[Send, ...]:
        """The sends to backends that were not denied."""
        return tuple(each for each in self.sends if each.channel == "inference" and each.decision != "denied")

    @property
    def latencies(self) -> tuple[int, ...]:
        """How long each inference took that was answered, in microseconds."""
        return tuple(each.latency_us for each in self.inferences if each.latency_us is not None)

    @property
    def falls(self) -> int:
        """How often a backend was then asked in a tier below the one before."""
        asked: dict[str, list[int]] = {}
        for each in self.inferences:
            if each.tier in _TIERS:
                asked.setdefault(each.backend, []).append(_TIERS.index(Tier(each.tier)))
        return sum(after > before for tiers in asked.values() for before, after in pairwise(tiers))

    def data(self) -> dict[str, Any]:
        """Return the run as JSON data."""
        return {
            "task": self.task,
            "log": self.log,
            "first": self.first,
            "last": self.last,
            "verified": self.verified,
            "start_us": self.start_us,
            "end_us": self.end_us,
            "duration_us": self.duration_us,
            "outcome": self.outcome,
            "class": self.goal_class,
            "mark": self.mark,
            "matters": self.matters,
            "profile": self.profile,
            "policy_digest": self.policy_digest,
            "config_digest": self.config_digest,
            "prompts": self.prompts,
            "writer": self.writer,
            "models": [each.shown for each in self.backends],
            "latency_us": {"n": len(self.latencies), **_spread(self.latencies)},
            "tokens": {
                "in": total(each.tokens_in for each in self.inferences),
                "out": total(each.tokens_out for each in self.inferences),
            },
            "sends": self.sends_by_class(),
            "tools": dict(self.tools),
            "denied_tools": dict(self.denied_tools),
            "denials": self.denials,
            "denied_sends": counted(each.reason for each in self.sends if each.decision == "denied"),
            "denied_calls": dict(self.denied_calls),
            "approvals": dict(self.approvals),
            "lowered": dict(self.lowered),
            "failures": counted(each.failure for each in self.sends if each.failure),
            "faults": counted(each.status for each in self.sends if each.status not in {"", "ok"}),
            "tier_falls": self.falls,
        }

    def sends_by_class(self) -> dict[str, dict[str, int]]:
        """Return how many sends of each class there were, by where they went: `local`, `remote`, `denied`."""
        found: dict[str, Counter[str]] = {}
        for each in self.sends:
            where = "remote" if each.locality == "remote" else "local"
            where = "denied" if each.decision == "denied" else where
            found.setdefault(where, Counter())[each.data_class] += 1
        return {where: dict(sorted(found[where].items())) for where in sorted(found)}


def runs_of(log: ReadLog) -> Iterator[Run]:
    """Yield the runs of a log in the order in which they started."""
    tasks: dict[str, list[Entry]] = {}
    for entry in log.entries:
        if entry.task:
            tasks.setdefault(entry.task, []).append(entry)
    backends = [entry for entry in log.entries if entry.kind == "backend"]
    for task, entries in tasks.items():
        yield _run(task, log.header, entries, backends)


def _run(task: str, header: Entry, found: Sequence[Entry], backends: Sequence[Entry]) -> Run:
    entries = [entry for entry in found if entry.verified] or found
    start, end = entries[0], entries[-1]
    ended = end.kind == "task_end"
    sends = tuple(_sends(entries))
    classes = [entry.word("class") for entry in entries if entry.kind in {"task_start", "classify"}]
    return Run(
        task=task,
        log=header.log,
        first=start.seq,
        last=end.seq,
        verified=header.verified and all(entry.verified for entry in entries),
        start_us=start.ts,
        end_us=end.ts if ended else None,
        outcome=end.word("outcome") if ended else OPEN,
        goal_class=start.word("class"),
        mark=max(classes, default=""),
        matters=len(start.words("matters")),
        profile=header.word("profile"),
        policy_digest=header.word("policy_digest"),
        config_digest=header.word("config_digest"),
        prompts=header.word("x_prompts"),
        writer=header.word("writer"),
        backends=tuple(_used(sends, backends)),
        sends=sends,
        tools=counted(entry.word("tool") for entry in entries if entry.kind == "tool_call"),
        denied_tools=counted(_denied_tools(entries)),
        denied_calls=counted(
            entry.word("rule")
            for entry in entries
            if entry.kind == "policy_decision" and entry.word("decision") == "deny"
        ),
        approvals=counted(
            answer_word(granted=entry.is_set("granted"), by=entry.word("by"))
            for entry in entries
            if entry.kind == "approval"
        ),
        lowered=counted(entry.word("rule") or "approval" for entry in entries if entry.kind == "declassify"),
        entries=tuple(found),
    )


def answer_word(*, granted: bool, by: str) -> str:
    """Return what came of a question: a yes, a no, or that there was nobody to put it to."""
    if granted:
        return GRANTED
    return "nobody to ask" if by == "none" else "refused"


def _denied_tools(entries: Sequence[Entry]) -> Iterator[str]:
    """Yield the tool of each call that was denied, or that needed a yes and got none."""
    refused = {e.word("call_id") for e in entries if e.kind == "approval" and not e.is_set("granted")}
    for entry in entries:
        denied = entry.word("decision") == "deny" or entry.word("call_id") in refused
        if entry.kind == "policy_decision" and denied and entry.word("tool") != RELEASE:
            yield entry.word("tool")


def _sends(entries: Sequence[Entry]) -> Iterator[Send]:
    results = {entry.word("send_id"): entry for entry in entries if entry.kind == "egress_result"}
    for entry in entries:
        if entry.kind == "egress":
            yield _send(entry, results.get(entry.word("send_id")))


def _send(sent: Entry, result: Entry | None) -> Send:
    return Send(
        seq=sent.seq,
        ts=sent.ts,
        channel=sent.word("channel"),
        backend=sent.word("backend"),
        locality=sent.word("locality"),
        data_class=sent.word("class"),
        decision=sent.word("decision"),
        reason=sent.word("reason"),
        bytes=sent.count("bytes") or 0,
        status="" if result is None else result.word("status"),
        latency_us=None if result is None else result.ts - sent.ts,
        tier="" if result is None else result.word("tier"),
        failure="" if result is None else result.word("failure"),
        bytes_back=None if result is None else result.count("bytes"),
        tokens_in=None if result is None else result.count("x_tokens_in"),
        tokens_out=None if result is None else result.count("x_tokens_out"),
    )


def _used(sends: Sequence[Send], backends: Sequence[Entry]) -> Iterator[BackendFacts]:
    """Yield what each backend that was asked was at its last send, in the order of their first sends."""
    last = {send.backend: send.seq for send in sends if send.channel == "inference"}
    for name, seq in last.items():
        found = [each for each in backends if each.word("name") == name and each.seq < seq]
        if found:
            yield backend_facts(found[-1])


def backend_facts(entry: Entry) -> BackendFacts:
    """Return what a `backend` record says."""
    return BackendFacts(
        name=entry.word("name"),
        model=entry.word("model"),
        locality=entry.word("locality"),
        caps_digest=entry.word("caps_digest"),
        seq=entry.seq,
    )


def counted(words: Iterator[str]) -> dict[str, int]:
    """Return how often each word comes, in the order of the alphabet."""
    return dict(sorted(Counter(words).items()))


def total(numbers: Iterator[int | None]) -> int | None:
    """Return the sum of the numbers that are known; None when none is."""
    known = [each for each in numbers if each is not None]
    return sum(known) if known else None


def _spread(numbers: Sequence[int]) -> dict[str, int | None]:
    if not numbers:
        return {"median": None, "p95": None}
    return {"median": round(median(numbers)), "p95": p95(numbers)}


def p95(numbers: Sequence[int]) -> int:
    """Return the 95th percentile of at least one number, none beyond the largest."""
    if len(numbers) == 1:
        return numbers[0]
    return round(quantiles(numbers, n=100, method="inclusive")[_P95])
