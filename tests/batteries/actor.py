# SPDX-License-Identifier: Apache-2.0
"""Somebody who does what a runner may do with an open log, in whatever order.

Owns which record may follow which. Owns no log, no fault and no verdict.
"""

from typing import Any

from runner.kernel.labels import DataClass, Integrity
from runner.kernel.ports import Locality
from runner.perimeter.trace import records as r
from runner.perimeter.trace.log import TooLate, Trace

BACKEND = "akaion"


class Actor:
    """Tasks, blocks, calls and sends in `trace`. Each move takes a number, so that it can be drawn."""

    def __init__(self, trace: Trace) -> None:
        """Do nothing yet."""
        self.trace = trace
        self.tasks: list[str] = []
        self.marks: dict[str, DataClass] = {}
        self.blocks: list[tuple[str, DataClass]] = []
        self.asked: list[r.Egress] = []

    def announce(self) -> None:
        """Say what the backend is; every log needs it once, and the trace repeats it at a rotation."""
        commit = self.trace.commit(b"address")
        self.trace.append(
            r.Backend(
                name=BACKEND,
                model="model",
                locality=Locality.REMOTE,
                is_local=False,
                caps_digest="3" * 64,
                endpoint_commit=commit,
            )
        )

    def task(self, number: int) -> str:
        """Return one of the open tasks, after starting one if there is none."""
        if not self.tasks:
            self.start(number)
        return self.tasks[number % len(self.tasks)]

    def start(self, number: int) -> None:
        """Start a task."""
        task = self.trace.mint_id()
        commit = self.trace.commit(str(number).encode())
        if not self.tasks:
            self.blocks = []  # this may be the next log, and blocks are those of a log
        self.trace.append(r.TaskStart(goal_commit=commit, data_class=DataClass.C1), task=task)
        self.tasks.append(task)
        self.marks[task] = DataClass.C1

    def end(self, number: int) -> None:
        """End a task."""
        task = self.task(number)
        self.tasks.remove(task)
        self.trace.append(r.TaskEnd(outcome="stopped"), task=task)

    def classify(self, number: int) -> None:
        """Label something, perhaps made from what was labelled before."""
        task = self.task(number)
        inputs = dict(self.blocks[-(number % 3) :] if number % 3 else [])
        data_class = max([DataClass(number % 4), *inputs.values()])
        self.label(self.trace.mint_block(), data_class, tuple(inputs), task)

    def label(self, block: str, data_class: DataClass, inputs: tuple[str, ...], task: str) -> None:
        """Label `block`."""
        record = r.Classify(
            block=block,
            data_class=data_class,
            parts=r.Parts(default=data_class),
            integrity=Integrity.UNTRUSTED,
            classifier="rules-only",
            version="rules/1",
            inputs=inputs,
            commit=self.trace.commit(block.encode()),
        )
        self.trace.append(record, task=task)
        self.blocks.append((block, data_class))
        self.marks[task] = max(self.marks[task], data_class)

    def call(self, number: int) -> None:
        """Decide on a call of a tool, ask if need be, and run it if it may run."""
        task, call, args = self.task(number), self.trace.mint_id(), self.trace.commit(b"args")
        tool, commit = self.trace.vocab_or_other(f"tool{number % 4}", {"tool0", "tool1", "tool2"})
        decision: Any = "deny" if commit else ("allow", "ask", "deny")[number % 3]
        self.trace.append(
            r.PolicyDecision(
                call_id=call,
                tool=tool,
                tool_commit=commit,
                decision=decision,
                rule="rule",
                args_commit=args,
                data_class=DataClass.C1,
            ),
            task=task,
        )
        expires = self.trace.now_us() + 1 + number if decision == "ask" else None
        if expires is not None:
            self.trace.append(
                r.Approval(
                    call_id=call,
                    by="user",
                    args_commit=args,
                    rendering_digest="4" * 64,
                    expires=expires,
                    granted=number % 2 == 0,
                ),
                task=task,
            )
        if decision == "allow" or (decision == "ask" and number % 2 == 0):
            self.run(task, (call, tool, args), before=expires)

    def run(self, task: str, decided: tuple[str, str, str], *, before: int | None) -> None:
        """Run a tool, unless the approval, which holds `before` a time, is over by now."""
        call, tool, args = decided
        record = r.ToolCall(call_id=call, tool=tool, args_commit=args, net=False)
        try:
            self.trace.append(record, task=task, before=before)
        except TooLate:
            return
        self.trace.barrier()
        block, commit = self.trace.mint_block(), self.trace.commit(b"result")
        result = r.ToolResult(call_id=call, status="ok", result_commit=commit, bytes=6, block=block)
        self.trace.append(result, task=task)
        self.label(block, DataClass.C2, (), task)

    def send(self, number: int) -> None:
        """Ask the backend, or be denied."""
        task, call, send = self.task(number), self.trace.mint_id(), self.trace.mint_id()
        inputs = dict(self.blocks[-1:])
        data_class = max([self.marks[task], *inputs.values()])
        denied = data_class > DataClass.C1
        self.trace.append(
            r.Egress(
                call_id=call,
                send_id=send,
                channel="inference",
                backend=BACKEND,
                locality=Locality.REMOTE,
                data_class=data_class,
                inputs=tuple(inputs),
                decision="denied" if denied else "allowed",
                reason="class-above-ceiling" if denied else None,
                payload_commit=self.trace.commit(b"body"),
                bytes=4,
            ),
            task=task,
        )
        if not denied:
            self.trace.barrier()
            self.trace.append(r.EgressResult(call_id=call, send_id=send, status="ok", bytes=4), task=task)

    def ask(self, _: int) -> None:
        """Ask the backend about itself, outside any task."""
        sent = r.Egress(
            call_id=self.trace.mint_id(),
            send_id=self.trace.mint_id(),
            channel="inference",
            backend=BACKEND,
            locality=Locality.REMOTE,
            data_class=DataClass.C0,
            decision="allowed",
            payload_commit=self.trace.commit(b"who are you"),
            bytes=11,
        )
        self.trace.append(sent)
        self.trace.barrier()
        self.asked.append(sent)

    def answer(self, _: int) -> None:
        """Put on record what the backend said about itself."""
        if self.asked:
            sent = self.asked.pop(0)
            said = r.EgressResult(call_id=sent.call_id, send_id=sent.send_id, status="ok", bytes=4)
            self.trace.append(said)
