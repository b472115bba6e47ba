# SPDX-License-Identifier: Apache-2.0
"""Regenerates the golden books of `akaion-trace/1` from fixed keys, entropy and clock.

    python scripts/golden_trace.py [FOLDER]      (default: contracts/trace/v1/golden)

`quiet` is a book of a start and a stop. `studio` is a book of two complete logs with every kind of record but
`recovery`. In `interrupted` the power
fails in the middle of a batch, and the next log accounts for it; `broken-off` is the same book without that
next log. Beside each book lie its auditor's pin and its salts; `verdicts.json` says what a verifier must
answer. The keys are public: never use them.
"""

import json
import sys
from hashlib import sha256
from pathlib import Path
from typing import Final, Literal

from runner.kernel.labels import DataClass, Integrity
from runner.kernel.ports import RELEASE, Locality
from runner.kernel.tiers import CallFailure, Tier
from runner.perimeter.trace import records as r
from runner.perimeter.trace.commit import caps_digest, config_digest, policy_digest, rendering_digest
from runner.perimeter.trace.log import HeaderFacts, Trace
from runner.perimeter.trace.note import device_key_name, vkey
from runner.testing import FixedEntropy, FrozenClock, MemoryLogStore, MemorySaltStore, MemorySigner

GOLDEN: Final = Path(__file__).resolve().parent.parent / "contracts" / "trace" / "v1" / "golden"
START_US: Final = 1_767_603_600_000_000  # 2026-01-05 09:00:00 UTC
MINUTE_US: Final = 60_000_000
C0, C1, C2, C3 = DataClass


class SteppingClock(FrozenClock):
    """A clock that moves on by a millisecond at each look at the wall."""

    def now_us(self) -> int:
        """Return the next millisecond."""
        self.advance(0.001)
        return super().now_us()


class Author:
    """Writes the records of one book in the order a runner would."""

    def __init__(self, book: str) -> None:
        self.book, self.store, self.salts = book, MemoryLogStore(), MemorySaltStore()
        self.signer = MemorySigner(sha256(f"{book} device".encode()).digest())
        self.entropy, self.clock = FixedEntropy(book.encode()), SteppingClock(START_US)

    def open(self) -> Trace:
        """Open the next log of the book."""
        facts = HeaderFacts(
            book=self.book,
            host="golden",
            boot_id=sha256(b"boot").hexdigest()[:32],
            profile="attached",
            policy_digest=policy_digest({"default": "deny", "grants": []}),
            config_digest=config_digest({"profile": "attached"}),
            backends=("local", "akaion", "opinion"),
            host_tools=(r.HostTool(name="diary", trusted=True),),
            max_egress_class="C1",
            classifier="rules+local:second",
            enforcement="cooperative",
            sandbox="none",
            writer="akaion-runner/golden",
            seal_every=8,
        )
        return Trace.open(
            store=self.store,
            signer=self.signer,
            salts=self.salts,
            clock=self.clock,
            entropy=self.entropy,
            facts=facts,
        )

    def write(self, folder: Path, name: str) -> None:
        """Write the book as `name`, its pin and its salts beside it, under `folder`."""
        (folder / name).mkdir(parents=True, exist_ok=True)
        for log_name, log in self.store.files.items():
            (folder / name / log_name).write_bytes(log.data)
        pin = vkey(device_key_name(self.book), self.signer.public_key)
        (folder / f"{name}.pin").write_text(pin + "\n", encoding="ascii")
        salts = "".join(f"{commit} {salt.hex()}\n" for commit, salt in self.salts.salts.items())
        (folder / f"{name}.salts").write_text(salts, encoding="ascii")


class Story:
    """One task in an open log."""

    def __init__(self, trace: Trace, goal: bytes, data_class: DataClass) -> None:
        self.trace, self.task = trace, trace.mint_id()
        start = r.TaskStart(goal_commit=trace.commit(goal), data_class=data_class, user=trace.commit(b"anna"))
        trace.append(start, task=self.task)
        self.goal = self.block(goal, data_class, Integrity.USER)

    def block(self, text: bytes, data_class: DataClass, integrity: Integrity, *inputs: str) -> str:
        """Label a new block."""
        trace, name = self.trace, self.trace.mint_block()
        label = r.Classify(
            block=name,
            data_class=data_class,
            parts=r.Parts(default=data_class, detected=C0),
            integrity=integrity,
            classifier="rules-only",
            version="rules/1",
            inputs=inputs,
            commit=trace.commit(text),
        )
        trace.append(label, task=self.task)
        return name

    def ask(
        self,
        backend: str,
        data_class: DataClass,
        *inputs: str,
        decision: Literal["allowed", "redacted"] = "allowed",
        declassify: str | None = None,
        failure: CallFailure | None = None,
    ) -> str:
        """Send an inference and label its answer, which fails to be a call by `failure`."""
        trace, call, send, body = self.trace, self.trace.mint_id(), self.trace.mint_id(), b'{"messages":[]}'
        sent = r.Egress(
            call_id=call,
            send_id=send,
            channel="inference",
            backend=backend,
            locality=Locality.L1 if backend == "local" else Locality.REMOTE,
            data_class=data_class,
            inputs=inputs,
            decision=decision,
            payload_commit=trace.commit(body),
            bytes=len(body),
            declassify=declassify,
        )
        trace.barrier(trace.append(sent, task=self.task))
        answer = trace.mint_block()
        result = r.EgressResult(
            call_id=call,
            send_id=send,
            status="ok",
            bytes=12,
            block=answer,
            tier=Tier.CONSTRAINED,
            failure=failure,
            x_tokens_in=21,
            x_tokens_out=4,
        )
        trace.append(result, task=self.task)
        label = r.Classify(
            block=answer,
            data_class=data_class,
            parts=r.Parts(declared=C0, default=data_class, detected=C0),
            integrity=Integrity.UNTRUSTED,
            classifier="rules-only",
            version="rules/1",
            inputs=inputs if declassify is None else (),
            commit=trace.commit(b"the answer"),
        )
        trace.append(label, task=self.task)
        return answer

    def second_opinion(self, block: str, data_class: DataClass, opinion: str) -> None:
        """Ask the second opinion about a block, and label it again."""
        trace, call, send = self.trace, self.trace.mint_id(), self.trace.mint_id()
        sent = r.Egress(
            call_id=call,
            send_id=send,
            channel="inference",
            backend="opinion",
            locality=Locality.L2,
            data_class=C3,
            inputs=(block,),
            decision="allowed",
            payload_commit=trace.commit(b'{"messages":[]}'),
            bytes=15,
        )
        trace.barrier(trace.append(sent, task=self.task))
        trace.append(r.EgressResult(call_id=call, send_id=send, status="ok", bytes=7), task=self.task)
        label = r.Classify(
            block=trace.mint_block(),
            data_class=data_class,
            parts=r.Parts(default=C1, detected=data_class),
            integrity=Integrity.USER,
            classifier="rules+local:second",
            version="opinion/1",
            opinion=opinion,  # type: ignore[arg-type]  # any other word is refused by the record
            inputs=(block,),
            commit=trace.commit(b"the goal"),
        )
        trace.append(label, task=self.task)

    def deny_send(self, data_class: DataClass, *inputs: str) -> None:
        """Refuse an inference to the remote backend."""
        denied = r.Egress(
            call_id=self.trace.mint_id(),
            send_id=self.trace.mint_id(),
            channel="inference",
            backend="akaion",
            locality=Locality.REMOTE,
            data_class=data_class,
            inputs=inputs,
            decision="denied",
            reason="class-above-ceiling",
            payload_commit=self.trace.commit(b"{}"),
            bytes=2,
        )
        self.trace.append(denied, task=self.task)

    def let_go(self, block: str) -> tuple[str, str]:
        """Record that a person is asked about a block; return call id and the commitment of the arguments."""
        call, args = self.trace.mint_id(), self.trace.commit(b'["release",{"block":"b9"}]')
        record = r.PolicyDecision(
            call_id=call,
            tool=RELEASE,
            decision="ask",
            rule="declassify",
            args_commit=args,
            replay={"backend": "akaion", "to": "C1", "chars": 1280},
            data_class=C2,
            inputs=(block,),
        )
        self.trace.append(record, task=self.task)
        return call, args

    def decide(self, tool: str, decision: str, rule: str, data_class: DataClass) -> tuple[str, str]:
        """Record a policy decision; return call id and the commitment of the arguments."""
        call, args = self.trace.mint_id(), self.trace.commit(b'{"path":"studio/scadenze.md"}')
        name, unknown = self.trace.vocab_or_other(tool, {"read_file", "write_file", "fetch_page"})
        record = r.PolicyDecision(
            call_id=call,
            tool=name,
            tool_commit=unknown,
            decision=decision,  # type: ignore[arg-type]  # any other word is refused by the record
            rule=rule,
            args_commit=args,
            replay={"grant": 0, "path_granted": decision != "deny"},
            data_class=data_class,
            inputs=(self.goal,),
        )
        self.trace.append(record, task=self.task)
        return call, args

    def approve(self, call: str, args: str, *, granted: bool) -> None:
        """Record a person's answer."""
        approval = r.Approval(
            call_id=call,
            by="user" if granted else "none",
            args_commit=args,
            rendering_digest=rendering_digest("C2 write_file studio/bozza.md"),
            expires=START_US + 10 * MINUTE_US,
            granted=granted,
        )
        self.trace.append(approval, task=self.task)

    def run(
        self,
        tool: str,
        call: str,
        args: str,
        data_class: DataClass,
        *,
        net: bool = False,
        denied: str | None = None,
    ) -> str:
        """Run a tool that was allowed, through the network if `net`, and label its output.

        What it would have sent is refused for the reason `denied`.
        """
        trace = self.trace
        started = trace.append(r.ToolCall(call_id=call, tool=tool, args_commit=args, net=net), task=self.task)
        trace.barrier(started)
        if net:
            self._fetch(call, denied)
        block = trace.mint_block()
        result = r.ToolResult(
            call_id=call,
            status="error" if denied else "ok",
            result_commit=trace.commit(b"42 lines"),
            bytes=8,
            block=block,
        )
        trace.append(result, task=self.task)
        label = r.Classify(
            block=block,
            data_class=data_class,
            parts=r.Parts(declared=data_class, default=C0),
            integrity=Integrity.UNTRUSTED if net else Integrity.PRACTICE,
            classifier="rules-only",
            version="rules/1",
            commit=trace.commit(b"42 lines"),
        )
        trace.append(label, task=self.task)
        return block

    def _fetch(self, call: str, denied: str | None) -> None:
        trace, send = self.trace, self.trace.mint_id()
        sent = r.Egress(
            call_id=call,
            send_id=send,
            channel="tool",
            host_commit=trace.commit(b"www.example"),
            locality=Locality.REMOTE,
            data_class=C1,
            inputs=(self.goal,),
            decision="denied" if denied else "allowed",
            reason=denied,
            payload_commit=trace.commit(b""),
            bytes=0,
        )
        trace.barrier(trace.append(sent, task=self.task))
        if denied is None:
            trace.append(r.EgressResult(call_id=call, send_id=send, status="ok", bytes=8), task=self.task)

    def lower(self, *, rule: str | None = None, approval: tuple[str, str] | None = None) -> str:
        """Record a lowering from C2 to C1, by a rule or by an approval; return its id."""
        trace, name = self.trace, self.trace.mint_id()
        record = r.Declassify(
            id=name,
            rule=rule,
            approval=approval and approval[0],
            source=trace.commit(b"studio/scadenze.md"),
            from_class=C2,
            to_class=C1,
            backend="akaion",
            expires=START_US + 10 * MINUTE_US,
            commit=approval[1] if approval else trace.commit(b"Anna"),
        )
        trace.append(record, task=self.task)
        return name

    def end(self, outcome: str = "done") -> None:
        """End the task."""
        self.trace.append(r.TaskEnd(outcome=outcome), task=self.task)  # type: ignore[arg-type]  # as above


def announce(trace: Trace, name: str, model: str, locality: Locality) -> None:
    """Record what a backend is."""
    record = r.Backend(
        name=name,
        model=model,
        locality=locality,
        is_local=locality is not Locality.REMOTE,
        caps_digest=caps_digest({"grammar": "gbnf", "native_tools": False}),
        endpoint_commit=trace.commit(b"http://127.0.0.1:8080"),
    )
    trace.append(record)


def probe(trace: Trace) -> None:
    """Announce the backends, probe the local one, announce it again."""
    announce(trace, "local", "small-instruct", Locality.L0)
    announce(trace, "akaion", "large-instruct", Locality.REMOTE)
    announce(trace, "opinion", "second", Locality.L2)
    call, send = trace.mint_id(), trace.mint_id()
    sent = r.Egress(
        call_id=call,
        send_id=send,
        channel="inference",
        backend="local",
        locality=Locality.L0,
        data_class=C0,
        decision="allowed",
        payload_commit=trace.commit(b"ping"),
        bytes=4,
    )
    trace.barrier(trace.append(sent))
    trace.append(r.EgressResult(call_id=call, send_id=send, status="ok", bytes=4))
    announce(trace, "local", "small-instruct", Locality.L1)


def quiet() -> Author:
    """Return the book of one log in which nobody asked anything."""
    author = Author("quiet")
    with author.open() as trace:
        announce(trace, "local", "small-instruct", Locality.L0)
    return author


def studio() -> Author:
    """Return the book of two complete logs."""
    author = Author("studio")
    with author.open() as trace:
        probe(trace)
        story = Story(trace, b"Which hearings are due this week?", C1)
        name, unknown = trace.vocab_or_other("rm_everything", {"read_file"})
        steps = (
            r.PlanStep(id=0, tool="read_file"),
            r.PlanStep(id=1, tool=name, tool_commit=unknown),
        )
        trace.append(r.Plan(by="model", steps=steps), task=story.task)
        read = story.run("read_file", *story.decide("read_file", "allow", "grant:read_file", C1), C2)
        story.decide("rm_everything", "deny", "unknown-tool", C1)
        story.decide("write_file", "deny", "path-outside-grant", C1)
        story.deny_send(C2, story.goal, read)
        story.ask("local", C2, story.goal, read, failure=CallFailure.TRUNCATED)
        answer = story.ask("local", C2, story.goal, read)
        trace.append(r.StepVerdict(step=0, verdict="pass", by="model"), task=story.task)
        short = story.block(b"three hearings", C2, Integrity.UNTRUSTED, answer, read)
        trace.append(r.Compact(inputs=(answer, read), block=short), task=story.task)
        call, args = story.decide("write_file", "ask", "grant:write_file", C2)
        story.approve(call, args, granted=True)
        story.run("write_file", call, args, C2)
        story.approve(*story.decide("write_file", "ask", "grant:write_file", C2), granted=False)
        story.end()
    with author.open() as trace:
        probe(trace)
        story = Story(trace, b"What does article 13 of the GDPR require?", C1)
        story.second_opinion(story.goal, C1, "none")
        story.ask("akaion", C1, story.goal)
        page = story.run("fetch_page", *story.decide("fetch_page", "allow", "grant:fetch", C1), C1, net=True)
        read = story.run("read_file", *story.decide("read_file", "allow", "grant:read_file", C1), C2)
        lowered = story.lower(rule="redact-detected")
        story.ask("akaion", C1, page, read, decision="redacted", declassify=lowered)
        call, args = story.let_go(read)
        story.approve(call, args, granted=True)
        story.ask("akaion", C1, read, declassify=story.lower(approval=(call, args)))
        story.second_opinion(story.goal, C3, "health")
        story.deny_send(C3, story.goal)
        asked = story.decide("fetch_page", "allow", "grant:fetch", C1)
        story.run("fetch_page", *asked, C1, net=True, denied="class-above-ceiling")
        story.end("stopped")
    return author


def interrupted() -> Author:
    """Return the book whose first log breaks off in the middle of a batch."""
    author = Author("interrupted")
    trace = author.open()
    probe(trace)
    story = Story(trace, b"Summarise the lease.", C1)
    story.ask("local", C1, story.goal)
    story.decide("read_file", "allow", "grant:read_file", C1)
    pin = author.store.pin
    trace.barrier()
    # The power fails: the end of the last batch did not reach the disk, and neither did the new pin.
    (log,) = author.store.files.values()
    log.data, author.store.pin = log.data[:-700], pin
    author.store.release()
    with author.open() as trace:
        probe(trace)
        story = Story(trace, b"Summarise the lease.", C1)
        story.ask("local", C1, story.goal)
        story.end()
    return author


def main(folder: Path) -> None:
    """Write the books under `folder`."""
    quiet().write(folder, "quiet")
    studio().write(folder, "studio")
    author = interrupted()
    author.write(folder, "interrupted")
    author.store.files.popitem()
    author.write(folder, "broken-off")
    verdicts = {"broken-off": "INCOMPLETE", "interrupted": "PASS", "quiet": "PASS", "studio": "PASS"}
    (folder / "verdicts.json").write_text(json.dumps(verdicts, indent=2) + "\n", encoding="ascii")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if sys.argv[1:] else GOLDEN)
