# SPDX-License-Identifier: Apache-2.0
"""What a data protection officer is told of some runs: statements, each with the lines it rests on.

Owns which statements follow from which lines. Pure: the same lines give the same account. A statement is a
code with values; `words.py` has its sentence in each language. What no record can say (purposes, the country
of a recipient, how long records are kept) is a statement to be completed by hand, and marked so. Carries I12:
values are words of the profile and the format, ids and numbers.
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
PERSONAL: Final = ("C2", "C3")
WRITE_TOOLS: Final = frozenset({"write_file", "patch_file", "move_to_bin"})
"""The shipped tools that write: a record names a tool, and what it can do stands in the policy alone."""
_FACTS: Final = ("custody", "enforcement", "sandbox", "classifier", "max_egress_class", "seal_every")


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
    def entries(self) -> tuple[Entry, ...]:
        """Every entry that something is said of, in order."""
        of_runs = (entry for run in self.runs for entry in run.entries)
        return tuple(sorted((*of_runs, *self.loose), key=ref))


def ref(entry: Entry) -> Ref:
    """Return where an entry stands."""
    return entry.log, entry.seq


def account(material: Material) -> Account:
    """Return everything that is said of `material`."""
    entries = material.entries
    story = _Story(entries, material.backends)
    left = [each for each in story.sends() if each.values["locality"] == "remote"]
    return {
        "asked": tuple(_asked(material.runs)),
        "read": tuple(story.read()),
        "written": tuple(story.written()) or (_nothing("nothing_written", material),),
        "left": tuple(left) or (_nothing("nothing_left", material),),
        "stayed": tuple(each for each in story.sends() if each.values["locality"] != "remote"),
        "denied": tuple(story.denied()) or (_nothing("nothing_denied", material),),
        "lowered": tuple(story.lowered()) or (_nothing("nothing_lowered", material),),
        "approved": tuple(story.approved()) or (_nothing("nobody_asked", material),),
        "affected": tuple(_affected(material, story)),
        "art30": tuple(_art30(material, story)),
        "art35": tuple(_art35(material, story)),
        "art33": tuple(_art33(material, story)),
    }


def _nothing(code: str, material: Material) -> Statement:
    """Return that something is not on record: which rests on the whole of every run, from start to end."""
    refs = [place for run in material.runs for place in ((run.log, run.first), (run.log, run.last))]
    return Statement(code=code, values={}, refs=tuple(refs) or tuple(map(ref, material.headers)))


def _by_hand(code: str) -> Statement:
    return Statement(code=code, values={})


def _asked(runs: Sequence[Run]) -> Iterator[Statement]:
    for run in runs:
        values: dict[str, str | int] = {
            "time": shown_moment(run.start_us),
            "class": run.goal_class,
            "task": run.task,
            "outcome": run.outcome,
            "end": "" if run.end_us is None else shown_moment(run.end_us),
        }
        code = "asked_open" if run.end_us is None else "asked"
        yield Statement(code=code, values=values, refs=((run.log, run.first), (run.log, run.last)))
        if run.matters:
            more: dict[str, str | int] = {"task": run.task, "matters": run.matters}
            yield Statement(code="matters", values=more, refs=((run.log, run.first),))
        if not _is_whole(run):
            yield Statement(code="incomplete", values={"task": run.task}, refs=((run.log, run.last),))


def _is_whole(run: Run) -> bool:
    """Return whether the end of a run counts as many entries of each kind as are here (S8)."""
    stated = run.entries[-1].body.get("counts")
    return stated == Counter(entry.kind for entry in run.entries[:-1])


class _Story:
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
        return [each for each in sends if each.word("decision") != "denied" and _remote(each)]

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
        """Yield what a person was asked, and the answer."""
        for entry in self.of("approval"):
            asked = self._decisions.get((entry.log, entry.word("call_id")))
            values: dict[str, str | int] = {
                "time": shown_moment(entry.ts),
                "by": entry.word("by"),
                "tool": "" if asked is None else asked.word("tool"),
                "rendering": entry.word("rendering_digest"),
                "expires": shown_moment(entry.count("expires") or 0),
            }
            code = "approved" if entry.is_set("granted") else "refused"
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
    if not _remote(sent):
        return "stayed"
    return "sent" if lowered is None else "sent_lowered"


def _remote(sent: Entry) -> bool:
    return sent.word("locality") == "remote"


def _affected(material: Material, story: _Story) -> Iterator[Statement]:
    """Yield of which classes content was, and whether any of it left: names are not on record."""
    blocks = story.of("classify")
    for data_class in sorted({each.word("class") for each in blocks}):
        met = [each for each in blocks if each.word("class") == data_class]
        left = [each for each in story.left() if story.origin(each) == data_class]
        values: dict[str, str | int] = {"class": data_class, "blocks": len(met), "sends": len(left)}
        yield Statement(code="class_met", values=values, refs=tuple(map(ref, (*met, *left))))
    words = Counter(each.word("opinion") for each in blocks if each.word("opinion") not in {"", "none"})
    for word, count in sorted(words.items()):
        refs = tuple(ref(each) for each in blocks if each.word("opinion") == word)
        yield Statement(code="opinion", values={"opinion": word, "blocks": count}, refs=refs)
    if matters := [run for run in material.runs if run.matters]:
        count = sum(run.matters for run in matters)
        refs = tuple((run.log, run.first) for run in matters)
        yield Statement(code="matters_all", values={"matters": count}, refs=refs)
    yield _by_hand("who_by_hand")


def _recipients(story: _Story) -> Iterator[Statement]:
    """Yield each recipient that something left for."""
    names = Counter((each.word("channel"), story.recipient(each)) for each in story.left())
    for channel, name in sorted(names):
        sends = [e for e in story.left() if (e.word("channel"), story.recipient(e)) == (channel, name)]
        values: dict[str, str | int] = {
            "backend": name,
            "sends": len(sends),
            "bytes": sum(each.count("bytes") or 0 for each in sends),
            "classes": ", ".join(sorted({story.origin(each) for each in sends})),
            "first": shown_moment(sends[0].ts),
            "last": shown_moment(sends[-1].ts),
        }
        code = "recipient_tool" if channel == "tool" else "recipient"
        yield Statement(code=code, values=values, refs=tuple(map(ref, sends)))


def _safeguards(material: Material) -> Iterator[Statement]:
    """Yield what the headers say of the rules that were in force."""
    for header in material.headers:
        values: dict[str, str | int] = {"log": header.log, "policy": header.word("policy_digest")}
        values |= {name: header.count(name) or header.word(name) for name in _FACTS}
        yield Statement(code="safeguards", values=values, refs=(ref(header),))


def _art30(material: Material, story: _Story) -> Iterator[Statement]:
    yield _by_hand("controller_by_hand")
    yield _by_hand("purposes_by_hand")
    yield from (each for each in _affected(material, story) if each.code != "who_by_hand")
    yield _by_hand("subjects_by_hand")
    yield from tuple(_recipients(story)) or (_nothing("no_recipient", material),)
    yield _by_hand("transfers_by_hand" if story.left() else "no_transfer_by_hand")
    yield _by_hand("retention_by_hand")
    yield from _safeguards(material)


def _art35(material: Material, story: _Story) -> Iterator[Statement]:
    runs = material.runs
    refs = tuple((run.log, run.first) for run in runs) or tuple(map(ref, material.headers))
    values: dict[str, str | int] = {
        "runs": len(runs),
        "reads": len(story.of("tool_result")),
        "sends": len(story.of("egress")),
        "left": len(story.left()),
    }
    yield Statement(code="operations", values=values, refs=refs)
    yield _by_hand("necessity_by_hand")
    untrusted = [each for each in story.of("classify") if each.word("integrity") == "untrusted"]
    if untrusted:
        count: dict[str, str | int] = {"blocks": len(untrusted)}
        yield Statement(code="risk_untrusted", values=count, refs=tuple(map(ref, untrusted)))
    kept = [e for e in story.of("egress") if e.word("decision") == "denied" and e.word("class") in PERSONAL]
    if kept:
        yield Statement(code="risk_kept", values={"sends": len(kept)}, refs=tuple(map(ref, kept)))
    lowered = story.of("declassify")
    if lowered:
        yield Statement(code="risk_lowered", values={"times": len(lowered)}, refs=tuple(map(ref, lowered)))
    yield _by_hand("rights_by_hand")
    yield from _safeguards(material)


def _art33(material: Material, story: _Story) -> Iterator[Statement]:
    left = story.left()
    personal = [each for each in left if story.origin(each) in PERSONAL]
    if not left:
        yield _nothing("breach_nothing_left", material)
    else:
        values: dict[str, str | int] = {
            "sends": len(left),
            "personal": len(personal),
            "first": shown_moment(left[0].ts),
            "last": shown_moment(left[-1].ts),
        }
        yield Statement(code="breach_left", values=values, refs=tuple(map(ref, left)))
    lowered = [each for each in left if each.word("declassify")]
    if lowered:
        yield Statement(code="breach_lowered", values={"sends": len(lowered)}, refs=tuple(map(ref, lowered)))
    yield from _recipients(story)
    yield _by_hand("breach_read_by_hand")
    yield _by_hand("breach_when_by_hand")
    yield _by_hand("breach_subjects_by_hand")
    yield _by_hand("breach_consequences_by_hand")
    yield from _safeguards(material)
