# SPDX-License-Identifier: Apache-2.0
"""Statements for a data protection officer: what one is, and which follow from lines that belong together.

Owns which line belongs to which: a call and its result, a send and its result, a block. Pure: the same lines
give the same statements. A statement is a code with values; `words.py` has its sentence in each language.
Carries I12: values are words of the profile and the format, ids and numbers.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from runner.adapters.ledger.book import Entry
from runner.adapters.ledger.run import Run
from runner.adapters.ledger.select import shown_moment

Ref: TypeAlias = tuple[int, int]
"""A line: the number of its log, and its `seq`."""
WRITE_TOOLS: Final = frozenset({"write_file", "patch_file", "move_to_bin"})
"""The shipped tools that write: a record names a tool, and what it can do stands in the policy alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """`code` names the sentence, `values` fill it, `refs` are the lines it rests on: none if done by hand."""

    code: str
    values: Mapping[str, str | int]
    refs: tuple[Ref, ...] = ()

    def data(self) -> dict[str, Any]:
        """Return it as JSON data."""
        lines = [{"log": log, "seq": seq} for log, seq in self.refs]
        return {"code": self.code, "values": dict(self.values), "lines": lines, "by_hand": not self.refs}


Account: TypeAlias = Mapping[str, tuple[Statement, ...]]
"""The statements of each section, in the order in which they are read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """What an account is made from: runs, entries of no task (probes), and the headers of their logs."""

    runs: tuple[Run, ...]
    loose: tuple[Entry, ...]
    headers: tuple[Entry, ...]
    backends: tuple[Entry, ...]

    @property
    def is_whole(self) -> bool:
        """Whether every run is here from its start to its end."""
        return all(map(is_whole, self.runs))

    @property
    def entries(self) -> tuple[Entry, ...]:
        """Every entry that something is said of, in order."""
        of_runs = (entry for run in self.runs for entry in run.entries)
        return tuple(sorted((*of_runs, *self.loose), key=ref))


def ref(entry: Entry) -> Ref:
    """Return where an entry stands."""
    return entry.log, entry.seq


def is_whole(run: Run) -> bool:
    """Return whether the end of a run counts as many entries of each kind as are here (S8)."""
    stated = run.entries[-1].body.get("counts")
    return stated == Counter(entry.kind for entry in run.entries[:-1])


def nothing(code: str, material: Material) -> Statement:
    """Return that something is not on record: which rests on the whole of every run, from start to end.

    Where a run is not here whole, it does not follow, and that is what is said.
    """
    if not material.is_whole:
        refs = [(run.log, run.last) for run in material.runs if not is_whole(run)]
        return Statement(code="not_all_shown", values={}, refs=tuple(refs))
    refs = [place for run in material.runs for place in ((run.log, run.first), (run.log, run.last))]
    return Statement(code=code, values={}, refs=tuple(refs) or tuple(map(ref, material.headers)))


def by_hand(code: str) -> Statement:
    """Return what no record can say: the practice completes it."""
    return Statement(code=code, values={})


class Story:
    """Entries, and those that belong together: a call and its result, a send and its result, a block."""

    def __init__(self, entries: Sequence[Entry], backends: Sequence[Entry]) -> None:
        self.entries = entries
        self._backends = backends
        self._calls = {(e.log, e.word("call_id")): e for e in entries if e.kind == "tool_call"}
        self._decisions = {(e.log, e.word("call_id")): e for e in entries if e.kind == "policy_decision"}
        self._results = {(e.log, e.word("send_id")): e for e in entries if e.kind == "egress_result"}
        self._lowerings = {(e.log, e.word("id")): e for e in entries if e.kind == "declassify"}
        self._blocks = {(e.log, e.word("block")): e for e in entries if e.kind == "classify"}

    def of(self, kind: str) -> list[Entry]:
        """Return the entries of a kind."""
        return [entry for entry in self.entries if entry.kind == kind]

    def left(self) -> list[Entry]:
        """Return the sends that left this machine."""
        sends = self.of("egress")
        return [each for each in sends if each.word("decision") != "denied" and is_remote(each)]

    def lowering(self, sent: Entry) -> Entry | None:
        """Return the record of what lowered the class of a send, if anything did."""
        return self._lowerings.get((sent.log, sent.word("declassify")))

    def call(self, sent: Entry) -> Entry | None:
        """Return the call of the tool that a send belongs to, if it belongs to one."""
        return self._calls.get((sent.log, sent.word("call_id")))

    def recipient(self, sent: Entry) -> str:
        """Return the backend that a send is for, or the tool that sends it."""
        call = self.call(sent)
        return sent.word("backend") or ("" if call is None else call.word("tool"))

    def origin(self, sent: Entry) -> str:
        """Return the class of what left: before a person lowered it, after a rule took out what it found."""
        lowered = self.lowering(sent)
        return sent.word("class") if lowered is None or not lowered.word("approval") else lowered.word("from")

    def read(self) -> Iterator[Statement]:
        """Yield what each tool gave back that does not write."""
        for result in self.of("tool_result"):
            call = self._calls.get((result.log, result.word("call_id")))
            if call is not None and call.word("tool") in WRITE_TOOLS:
                continue
            block = self._blocks.get((result.log, result.word("block")))
            values: dict[str, str | int] = {
                "time": shown_moment(result.ts),
                "tool": "" if call is None else call.word("tool"),
                "status": result.word("status"),
                "bytes": result.count("bytes") or 0,
                "class": "none" if block is None else block.word("class"),
            }
            known = (each for each in (call, result, block) if each is not None)
            yield Statement(code="read", values=values, refs=tuple(map(ref, known)))

    def written(self) -> Iterator[Statement]:
        """Yield how each call of a shipped tool that writes ended."""
        for result in self.of("tool_result"):
            call = self._calls.get((result.log, result.word("call_id")))
            if call is None or call.word("tool") not in WRITE_TOOLS:
                continue
            decision = self._decisions.get((result.log, result.word("call_id")))
            values: dict[str, str | int] = {
                "time": shown_moment(result.ts),
                "tool": call.word("tool"),
                "status": result.word("status"),
                "class": "none" if decision is None else decision.word("class"),
            }
            known = (each for each in (decision, call, result) if each is not None)
            yield Statement(code="written", values=values, refs=tuple(map(ref, known)))

    def sends(self) -> Iterator[Statement]:
        """Yield every send that was not denied."""
        for sent in self.of("egress"):
            if sent.word("decision") == "denied":
                continue
            result = self._results.get((sent.log, sent.word("send_id")))
            backend = self._backend(sent)
            lowered = self.lowering(sent)
            values = {**self._send(sent), "status": "none" if result is None else result.word("status")}
            values |= {} if lowered is None else {"from": lowered.word("from")}
            known = (each for each in (sent, result, backend, lowered, self.call(sent)) if each is not None)
            code = _send_code(sent, lowered)
            yield Statement(code=code, values=values, refs=tuple(map(ref, known)))

    def denied(self) -> Iterator[Statement]:
        """Yield every send and call that was denied, and every refusal of a person."""
        for entry in self.entries:
            match entry.kind, entry.word("decision"):
                case "egress", "denied":
                    values = {**self._send(entry), "reason": entry.word("reason")}
                    refs = tuple(map(ref, filter(None, (entry, self.call(entry)))))
                    code = "tool_send_denied" if entry.word("channel") == "tool" else "send_denied"
                    yield Statement(code=code, values=values, refs=refs)
                case "policy_decision", "deny":
                    calls: dict[str, str | int] = {
                        "time": shown_moment(entry.ts),
                        "tool": entry.word("tool"),
                        "rule": entry.word("rule"),
                        "class": entry.word("class"),
                    }
                    yield Statement(code="call_denied", values=calls, refs=(ref(entry),))
                case _:
                    pass

    def lowered(self) -> Iterator[Statement]:
        """Yield what counted as a lower class, by whose word, and which sends rest on it."""
        for entry in self.of("declassify"):
            rests = [
                e
                for e in self.of("egress")
                if e.log == entry.log and e.word("declassify") == entry.word("id")
            ]
            approval = entry.word("approval")
            yes = [e for e in self.of("approval") if e.log == entry.log and e.word("call_id") == approval]
            values: dict[str, str | int] = {
                "time": shown_moment(entry.ts),
                "from": entry.word("from"),
                "to": entry.word("to"),
                "backend": entry.word("backend"),
                "rule": entry.word("rule"),
                "by": yes[0].word("by") if yes else "",
                "sends": len(rests),
            }
            code = "lowered_by_person" if approval else "lowered_by_rule"
            yield Statement(code=code, values=values, refs=tuple(map(ref, (entry, *yes, *rests))))

    def approved(self) -> Iterator[Statement]:
        """Yield what a person was asked, and the answer; or that nobody was there to be asked."""
        for entry in self.of("approval"):
            asked = self._decisions.get((entry.log, entry.word("call_id")))
            values: dict[str, str | int] = {
                "time": shown_moment(entry.ts),
                "by": entry.word("by"),
                "tool": "" if asked is None else asked.word("tool"),
                "rendering": entry.word("rendering_digest"),
                "expires": shown_moment(entry.count("expires") or 0),
            }
            no = "unanswered" if entry.word("by") == "none" else "refused"
            code = "approved" if entry.is_set("granted") else no
            yield Statement(code=code, values=values, refs=tuple(map(ref, filter(None, (asked, entry)))))

    def _send(self, sent: Entry) -> dict[str, str | int]:
        backend = self._backend(sent)
        return {
            "time": shown_moment(sent.ts),
            "bytes": sent.count("bytes") or 0,
            "class": sent.word("class"),
            "backend": self.recipient(sent),
            "model": "" if backend is None else backend.word("model"),
            "locality": sent.word("locality"),
            "decision": sent.word("decision"),
        }

    def _backend(self, sent: Entry) -> Entry | None:
        """Return the latest record of the backend of a send."""
        name = sent.word("backend")
        known = [
            e for e in self._backends if e.log == sent.log and e.seq < sent.seq and e.word("name") == name
        ]
        return known[-1] if known and name else None


def _send_code(sent: Entry, lowered: Entry | None) -> str:
    if sent.word("channel") == "tool":
        return "sent_by_tool"
    if not sent.task:
        return "probe"
    if not is_remote(sent):
        return "stayed"
    return "sent" if lowered is None else "sent_lowered"


def is_remote(sent: Entry) -> bool:
    """Return whether a send was for another machine."""
    return sent.word("locality") == "remote"
