# SPDX-License-Identifier: Apache-2.0
"""Rules S1-S5, S7-S9, S11-S14: break one thing, get that reason at that seq (I4, I9)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Callable

import akaion_verify
import bookbuilder as bb
import pytest
from bookbuilder import Step, Story, hex32, hex64

if TYPE_CHECKING:
    from pathlib import Path

Expected = list[tuple[str, str]]  # reason code, label of the step where it shows
CASES: dict[str, Callable[[Story], Expected]] = {}


def case(edit: Callable[[Story], Expected]) -> Callable[[Story], Expected]:
    CASES[edit.__name__] = edit
    return edit


def judge(story: Story, folder: Path, pin: Path) -> tuple[str, list[tuple[str, int]]]:
    bb.LogBuilder().open().play(story).write(folder)
    report = akaion_verify.verify(folder, pin)
    return report["verdict"], [(reason["code"], reason["seq"]) for reason in report["reasons"]]


def test_the_whole_story_passes(folder: Path, pin: Path) -> None:
    assert judge(Story(), folder, pin) == ("PASS", [])


# S1


@case
def s1_c3_is_released_to_a_remote_backend(story: Story) -> Expected:
    story.change("b2", **{"class": "C3", "parts": {"default": "C3"}})
    story.change("b5", **{"class": "C3", "parts": {"default": "C3"}})
    story.change("b6", **{"class": "C3", "parts": {"default": "C3"}})
    story.change("send", **{"class": "C3", "declassify": None})
    story.change("refused", **{"class": "C3"})
    return [("egress-c3", "send")]


@case
def s1_c2_is_released_to_a_remote_backend(story: Story) -> Expected:
    story.change("send", **{"class": "C2", "declassify": None})
    return [("egress-above-ceiling", "send")]


@case
def s1_holds_for_the_network_of_tools_too(story: Story) -> Expected:
    story.change("web", **{"class": "C2"})
    story.change("b3", **{"class": "C2", "parts": {"default": "C2"}})
    story.change("b4", **{"class": "C2", "parts": {"default": "C2"}})
    return [("egress-above-ceiling", "web"), ("declassify-differs", "send")]


# S2


@case
def s2_two_decisions_on_one_call(story: Story) -> Expected:
    story.after("allow", story.again("allow"))
    return [("id-reused", "again")]


@case
def s2_a_send_id_serves_twice(story: Story) -> Expected:
    story.after("refused", story.again("refused"))
    return [("id-reused", "again")]


@case
def s2_an_inference_takes_the_id_of_a_tool_call(story: Story) -> Expected:
    story.after("refused", story.again("refused", send_id=hex32("new"), call_id=hex32("call read")))
    return [("id-reused", "again")]


@case
def s2_a_decision_takes_the_id_of_an_inference(story: Story) -> Expected:
    story.after("deny", story.again("allow", call_id=hex32("call think")))
    return [("id-reused", "again")]


@case
def s2_a_declassification_id_serves_twice(story: Story) -> Expected:
    story.after("lower", story.again("lower"))
    return [("id-reused", "again")]


@case
def s2_an_unknown_tool_is_asked_for(story: Story) -> Expected:
    story.change("deny", decision="ask")
    return [("unknown-tool-allowed", "deny")]


@case
def s2_an_approval_of_what_was_allowed(story: Story) -> Expected:
    story.after("allow", Step("approval", "approval", bb.approved("read"), bb.TASK))
    return [("approval-unasked", "approval")]


@case
def s2_an_approval_of_nothing(story: Story) -> Expected:
    story.after("allow", Step("approval", "approval", bb.approved("nothing"), bb.TASK))
    return [("approval-unasked", "approval")]


@case
def s2_a_second_approval(story: Story) -> Expected:
    story.after("grant", story.again("grant"))
    return [("approval-unasked", "again")]


@case
def s2_an_approval_of_other_arguments(story: Story) -> Expected:
    story.change("grant", args_commit=hex64("others"))
    return [("approval-unasked", "grant"), ("call-unapproved", "fetch")]


@case
def s2_a_call_without_a_decision(story: Story) -> Expected:
    story.drop("allow")
    return [("call-undecided", "read")]


@case
def s2_a_call_before_its_decision(story: Story) -> Expected:
    step = story[story.at("allow")]
    story.drop("allow")
    story.after("read", step)
    return [("call-undecided", "read")]


@case
def s2_a_call_after_a_deny(story: Story) -> Expected:
    story.change("allow", decision="deny")
    return [("call-denied", "read")]


@case
def s2_a_call_without_its_approval(story: Story) -> Expected:
    story.drop("grant")
    return [("call-unapproved", "fetch")]


@case
def s2_a_call_after_a_refused_approval(story: Story) -> Expected:
    story.change("grant", granted=False, by="none")
    return [("call-unapproved", "fetch")]


@case
def s2_a_call_at_the_moment_its_approval_expires(story: Story) -> Expected:
    moment = 1_700_000_000_900_000
    story.change("grant", expires=moment)
    for step in story[story.at("fetch") :]:
        step.ts = moment
    return [("call-expired", "fetch")]


@case
def s2_a_call_with_other_arguments(story: Story) -> Expected:
    story.change("read", args_commit=hex64("others"))
    return [("call-differs", "read")]


@case
def s2_a_call_of_another_tool(story: Story) -> Expected:
    story.change("read", tool="write_file")
    return [("call-differs", "read")]


@case
def s2_two_calls_on_one_decision(story: Story) -> Expected:
    story.after("read", story.again("read"))
    return [("call-repeated", "again")]


# S3


@case
def s3_a_result_without_a_call(story: Story) -> Expected:
    story.change("was_read", call_id=hex32("nothing"))
    return [("result-unmatched", "was_read")]


@case
def s3_two_results_of_one_call(story: Story) -> Expected:
    story.after("was_read", story.again("was_read", block="b9"))
    return [("result-unmatched", "again")]


@case
def s3_an_answer_without_a_send(story: Story) -> Expected:
    story.change("thought", send_id=hex32("nothing"))
    return [("result-unmatched", "thought")]


@case
def s3_an_answer_with_another_call(story: Story) -> Expected:
    story.change("thought", call_id=hex32("nothing"))
    return [("result-unmatched", "thought")]


@case
def s3_two_answers_to_one_send(story: Story) -> Expected:
    story.after("thought", story.again("thought", block="b9"))
    return [("result-unmatched", "again")]


@case
def s3_an_answer_to_what_was_denied(story: Story) -> Expected:
    story.after(
        "refused",
        Step("seal", "seal"),
        Step("answer", "egress_result", bb.answer("refused", None), bb.TASK),
    )
    return [("result-unmatched", "answer")]


@case
def s3_an_answer_in_another_task_than_its_send(story: Story) -> Expected:
    story[story.at("thought")].task = None
    return [("result-unmatched", "thought")]


# S4


@case
def s4_an_entry_before_its_task(story: Story) -> Expected:
    step = story[story.at("b0")]
    story.drop("b0")
    story.after("declared", step)
    return [("task-not-open", "b0"), ("block-unknown", "think"), ("counts-differ", "finish")]


@case
def s4_an_entry_after_its_task(story: Story) -> Expected:
    story.after("finish", story.again("judged"))
    return [("task-not-open", "again")]


@case
def s4_a_task_starts_again(story: Story) -> Expected:
    story.after("finish", story.again("start"), story.again("finish", "finished", counts={"task_start": 1}))
    return [("task-reused", "again")]


@case
def s4_the_log_closes_over_an_open_task(story: Story) -> Expected:
    story.drop("finish")
    return [("task-left-open", "close")]


# S5


@case
def s5_a_tool_sends_before_it_is_called(story: Story) -> Expected:
    step = story[story.at("web")]
    story.drop("web")
    story.after("grant", step)
    return [("egress-outside-call", "web")]


@case
def s5_a_tool_sends_after_its_result(story: Story) -> Expected:
    late = story.again("web", send_id=hex32("late"))
    story.after("fetched", late)
    return [("egress-outside-call", "again")]


@case
def s5_a_tool_without_net_sends(story: Story) -> Expected:
    story.change("fetch", net=False)
    return [("net-undeclared", "web")]


@case
def s5_a_tool_with_net_leaves_no_egress(story: Story) -> Expected:
    story.change("read", net=True)
    return [("net-unrecorded", "was_read")]


# S7


@case
def s7_a_tool_returns_before_its_call_is_sealed(story: Story) -> Expected:
    story.drop("seal2")
    return [("effect-unsealed", "was_read")]


@case
def s7_an_answer_comes_before_its_send_is_sealed(story: Story) -> Expected:
    story.drop("seal1")
    return [("effect-unsealed", "thought")]


@case
def s7_a_seal_before_the_call_is_not_enough(story: Story) -> Expected:
    seal = story[story.at("seal2")]
    story.drop("seal2")
    story.after("allow", seal)
    return [("effect-unsealed", "was_read")]


# S8


@case
def s8_a_task_counts_too_many(story: Story) -> Expected:
    story.change("finish", counts={"task_start": 1, "plan": 9})
    return [("counts-differ", "finish")]


@case
def s8_the_log_counts_too_few(story: Story) -> Expected:
    story.change("close", entries=3)
    return [("counts-differ", "close")]


# S9


@case
def s9_one_entry_too_many_without_a_seal(story: Story) -> Expected:
    # From the seal after "probe" to "think" stand 7 entries; 20 may stand, the 21st may not.
    story.after("plan", *[story.again("plan", f"plan{number}") for number in range(14)])
    return [("seal-overdue", "think")]


# S11


@case
def s11_a_backend_that_the_header_does_not_name(story: Story) -> Expected:
    story.after("remote", story.again("remote", name="elsewhere"))
    return [("backend-unlisted", "again")]


@case
def s11_an_egress_to_a_backend_that_the_header_does_not_name(story: Story) -> Expected:
    story.change("refused", backend="elsewhere")
    return [("backend-unlisted", "refused")]


@case
def s11_an_egress_before_its_backend_record(story: Story) -> Expected:
    story.drop("declared")
    return [("backend-unprobed", "probe")]


@case
def s11_an_egress_with_the_locality_of_an_earlier_record(story: Story) -> Expected:
    story.change("think", locality="L0")
    return [("locality-differs", "think")]


@case
def s11_a_remote_backend_that_calls_itself_local(story: Story) -> Expected:
    story.change("refused", locality="L2")
    return [("locality-differs", "refused")]


# S12


@case
def s12_a_class_below_its_parts(story: Story) -> Expected:
    story.change("b6", parts={"default": "C3"})
    return [("parts-differ", "b6")]


@case
def s12_a_block_below_its_inputs(story: Story) -> Expected:
    story.change("b1", **{"class": "C0", "parts": {"default": "C0"}})
    return [("class-too-low", "b1")]


@case
def s12_what_a_model_says_is_below_what_it_read(story: Story) -> Expected:
    story.change("b1", **{"class": "C0", "parts": {"default": "C0"}, "inputs": []})
    return [("class-too-low", "b1")]


@case
def s12_a_result_below_its_arguments(story: Story) -> Expected:
    story.change("b4", **{"class": "C0", "parts": {"default": "C0"}, "inputs": []})
    return [("class-too-low", "b4")]


@case
def s12_a_compaction_below_its_inputs(story: Story) -> Expected:
    story.change("b6", **{"class": "C1", "parts": {"default": "C1"}, "inputs": []})
    return [("class-too-low", "b6")]


@case
def s12_a_compaction_classified_too_low_beforehand(story: Story) -> Expected:
    step = story.again("b6", "early", **{"class": "C1", "parts": {"default": "C1"}, "inputs": []})
    story.drop("b6")
    story.after("refused", step)
    return [("class-too-low", "compact")]


@case
def s12_an_egress_below_its_inputs(story: Story) -> Expected:
    story.change("send", declassify=None)
    return [("class-too-low", "send")]


@case
def s12_i8_a_send_below_what_its_task_has_seen(story: Story) -> Expected:
    story.change("send", inputs=["b1"], decision="allowed", declassify=None)
    return [("class-too-low", "send")]


@case
def s12_i8_a_send_below_what_its_task_has_seen_with_no_inputs_at_all(story: Story) -> Expected:
    story.change("send", inputs=[], decision="allowed", declassify=None)
    return [("class-too-low", "send")]


@case
def s12_i8_a_denied_send_below_what_its_task_has_seen(story: Story) -> Expected:
    story.change("refused", **{"class": "C1"}, inputs=[])
    return [("class-too-low", "refused")]


@case
def s12_i8_a_send_below_the_goal_of_its_task(story: Story) -> Expected:
    story.change("start", **{"class": "C2"})
    return [("class-too-low", "think")]


@case
def s12_i8_a_redacted_send_without_a_declassification(story: Story) -> Expected:
    story.change("send", inputs=["b1"], declassify=None)
    return [("class-too-low", "send")]


@case
def s12_i8_a_declassification_from_less_than_its_task_has_seen(story: Story) -> Expected:
    story.change("send", **{"class": "C0"}, inputs=["b1"])
    story.change("lower", **{"from": "C1", "to": "C0"})
    return [("declassify-differs", "send")]


@case
def s12_an_unclassified_block_in_an_egress(story: Story) -> Expected:
    story.change("refused", inputs=["b2", "b77"])
    return [("block-unknown", "refused")]


@case
def s12_an_unclassified_block_in_a_decision(story: Story) -> Expected:
    story.change("allow", inputs=["b77"])
    return [("block-unknown", "allow")]


@case
def s12_a_block_is_classified_twice(story: Story) -> Expected:
    story.after("b1", story.again("b1"))
    return [("block-reused", "again")]


@case
def s12_a_block_is_produced_twice(story: Story) -> Expected:
    story.change("was_read", block="b1")
    return [("block-reused", "was_read")]


@case
def s12_a_declassification_of_another_class(story: Story) -> Expected:
    story.change("lower", **{"from": "C3"})
    return [("declassify-c3", "lower"), ("declassify-differs", "send")]


@case
def s12_a_declassification_to_another_class(story: Story) -> Expected:
    story.change("lower", to="C0")
    return [("declassify-differs", "send")]


@case
def s12_a_declassification_for_another_backend(story: Story) -> Expected:
    story.change("lower", backend=bb.LOCAL)
    return [("declassify-unapproved", "lower"), ("declassify-differs", "send")]


@case
def s12_a_declassification_that_has_expired(story: Story) -> Expected:
    story.change("lower", expires=5)
    return [("declassify-differs", "send")]


@case
def s12_a_declassification_that_is_not_needed(story: Story) -> Expected:
    story.change("send", **{"class": "C2", "backend": bb.LOCAL, "locality": "L1"})
    story.change("lower", backend=bb.LOCAL)
    return [("declassify-unapproved", "lower"), ("declassify-differs", "send")]


@case
def s12_a_declassification_that_comes_later(story: Story) -> Expected:
    step = story[story.at("lower")]
    story.drop("lower")
    story.after("send", step)
    return [("declassify-differs", "send")]


@case
def s12_a_declassification_without_its_approval(story: Story) -> Expected:
    story.drop("granted")
    return [("declassify-unapproved", "lower"), ("declassify-differs", "send")]


@case
def s12_a_declassification_on_a_refused_approval(story: Story) -> Expected:
    story.change("granted", granted=False)
    return [("declassify-unapproved", "lower"), ("declassify-differs", "send")]


@case
def s12_a_declassification_on_an_expired_approval(story: Story) -> Expected:
    story.change("granted", expires=5)
    return [("declassify-unapproved", "lower"), ("declassify-differs", "send")]


@case
def s12_a_declassification_of_something_else_than_approved(story: Story) -> Expected:
    story.change("lower", commit=hex64("more"))
    return [("declassify-unapproved", "lower")]


@case
def s12_a_declassification_on_the_approval_of_a_tool(story: Story) -> Expected:
    story.change("lower", approval=hex32("call fetch"), commit=hex64("args fetch"))
    return [("declassify-unapproved", "lower")]


def seen(block: str, data_class: str = "C2", **members: object) -> Step:
    """A step that classifies one more block of the task."""
    return Step(block, "classify", {**bb.classified(block, data_class, []), **members}, bb.TASK)


@case
def s12_i8_an_approval_lowers_a_text_that_it_did_not_name(story: Story) -> Expected:
    """The text changed after the yes: it is another block."""
    story.after("granted", seen("b8"))
    story.change("send", inputs=["b8"])
    return [("declassify-differs", "send")]


@case
def s12_i8_what_a_task_has_seen_besides_still_counts(story: Story) -> Expected:
    story.after("granted", seen("b8"))
    return [("declassify-differs", "send")]


@case
def s12_i8_an_approval_names_another_block(story: Story) -> Expected:
    story.change("ask_release", inputs=["b1"])
    return [("declassify-differs", "send")]


@case
def s12_i8_a_goal_above_what_was_let_go_is_not_explained(story: Story) -> Expected:
    """What the task was started with is C2, and what a person named is not that."""
    story.change("start", **{"class": "C2"})
    story.change("think", **{"class": "C2"})
    story.change("thought", block=None)
    story.change("b2", **{"class": "C1", "parts": {"default": "C1"}})
    return [("declassify-differs", "send")]


@case
def s12_i8_an_approval_for_another_backend(story: Story) -> Expected:
    story.change("ask_release", replay={"backend": bb.LOCAL, "to": "C1", "chars": 100})
    return [("declassify-unapproved", "lower"), ("declassify-differs", "send")]


@case
def s12_i8_a_declassification_below_what_was_approved(story: Story) -> Expected:
    story.change("ask_release", replay={"backend": bb.REMOTE, "to": "C0", "chars": 100})
    return [("declassify-unapproved", "lower")]


@case
def s12_i8_a_declassification_that_outlives_its_approval(story: Story) -> Expected:
    story.change("lower", expires=bb.EXPIRES + 1)
    return [("declassify-unapproved", "lower")]


@case
def s12_i8_the_approval_of_another_task(story: Story) -> Expected:
    """The yes was given in a task that is over."""
    other = hex32("another task")
    start, end = story.again("start", "start2"), story.again("finish", "over")
    block, asked, yes = story.again("b2", "seen2"), story.again("ask_release"), story.again("granted", "yes2")
    block.body |= {"block": "b20", "inputs": []}
    asked.body["inputs"] = ["b20"]
    end.body["counts"] = {"task_start": 1, "classify": 1, "policy_decision": 1, "approval": 1}
    for step in (start, block, asked, yes, end):
        step.task = other
    story.after("remote", start, block, asked, yes, end)
    story.drop("ask_release", "granted")
    kinds = [step.kind for step in story if step.task == bb.TASK][:-1]
    story.change("finish", counts={kind: kinds.count(kind) for kind in kinds})
    return [("declassify-unapproved", "lower"), ("declassify-differs", "send")]


@case
def s12_i8_c3_is_lowered_by_an_approval(story: Story) -> Expected:
    for block in ("b2", "b5", "b6"):
        story.change(block, **{"class": "C3", "parts": {"default": "C3"}})
    story.change("lower", **{"from": "C3"})
    story.change("refused", **{"class": "C3"})
    return [("declassify-c3", "lower"), ("declassify-differs", "send")]


@case
def s12_i8_c3_is_lowered_by_a_rule(story: Story) -> Expected:
    """No rule and nobody lowers C3, so a task that has seen it sends nothing to a remote backend."""
    story.redact()
    for block in ("b2", "b5", "b6"):
        story.change(block, **{"class": "C3", "parts": {"default": "C3"}})
    story.change("lower", **{"from": "C3"})
    story.change("refused", **{"class": "C3"})
    return [("declassify-c3", "lower")]


@case
def s12_i8_a_rule_that_nobody_knows_lowers(story: Story) -> Expected:
    story.redact("because")
    return [("declassify-rule", "lower")]


@case
def s12_i8_a_rule_lowers_what_was_not_redacted(story: Story) -> Expected:
    story.redact()
    story.change("send", decision="allowed")
    return [("declassify-differs", "send")]


@case
def s12_i8_an_approval_lowers_what_was_redacted(story: Story) -> Expected:
    story.change("send", decision="redacted")
    return [("declassify-differs", "send")]


@case
def s12_a_denied_send_is_lowered_by_a_rule(story: Story) -> Expected:
    story.redact()
    story.change("send", decision="denied", reason="fault.release")
    story.drop("reply")
    return [("declassify-differs", "send")]


@case
def s12_i8_parts_of_a_text_that_was_declared(story: Story) -> Expected:
    """Spans take away what detectors found in them, not what somebody said of the whole."""
    story.change("ask_release", **bb.released("release", "b2", 0, 9))
    story.change("b2", parts={"default": "C0", "declared": "C2", "detected": "C2"})
    return [("declassify-differs", "send")]


@case
def s12_i8_what_a_local_model_said_of_it_is_not_let_go(story: Story) -> Expected:
    local = Step("mull", "egress", bb.inference("mull", bb.LOCAL, "L1", "C2", ["b2"]), bb.TASK)
    said = Step("mulled", "egress_result", bb.answer("mull", "b8"), bb.TASK)
    story.after("granted", local, Step("seal8", "seal"), said, seen("b8"))
    return [("declassify-differs", "send")]


@case
def s12_i8_what_is_made_of_it_and_of_something_else_is_not_let_go(story: Story) -> Expected:
    made = Step("made", "compact", {"inputs": ["b2", "b8"], "block": "b9"}, bb.TASK)
    story.after("granted", seen("b8"), seen("b9"), made)
    story.after("granted", Step("also", "policy_decision", bb.released("other", "b9"), bb.TASK))
    story.drop("also")
    return [("declassify-differs", "send")]


@pytest.mark.parametrize(
    "terms",
    [
        {"backend": bb.REMOTE, "to": "C1"},
        {"backend": bb.REMOTE, "chars": 100},
        {"to": "C1", "chars": 100},
        {"backend": bb.REMOTE, "to": "C4", "chars": 100},
        {"backend": bb.REMOTE, "to": "C1", "chars": True},
        {"backend": bb.REMOTE, "to": "C1", "chars": 100, "more": 1},
        {"backend": bb.REMOTE, "to": "C1", "chars": 100, "s0": 1},
        {"backend": bb.REMOTE, "to": "C1", "chars": 100, "s1": 1, "e1": 2},
        {"backend": bb.REMOTE, "to": "C1", "chars": 100, "s0": 3, "e0": 3},
        {"backend": bb.REMOTE, "to": "C1", "chars": 100, "s0": 9, "e0": 3},
        {"backend": bb.REMOTE, "to": "C1", "chars": 100, "s0": 90, "e0": 101},
        {"backend": bb.REMOTE, "to": "C1", "chars": 100, "s0": 0, "e0": 9, "s1": 8, "e1": 12},
        {"backend": bb.REMOTE, "to": "C1", "chars": 100, "s0": 20, "e0": 29, "s1": 8, "e1": 12},
        {"backend": bb.REMOTE, "to": "C1", "chars": 100, "s0": 0, "e0": "x"},
    ],
    ids=[
        "no-length",
        "no-class",
        "no-backend",
        "no-such-class",
        "length-no-number",
        "one-more",
        "half-a-span",
        "second-span-only",
        "empty-span",
        "backwards",
        "outside-the-text",
        "overlapping",
        "out-of-order",
        "no-number",
    ],
)
def test_s12_terms_that_are_none_let_nothing_go(terms: dict[str, object], folder: Path, pin: Path) -> None:
    story = Story()
    story.change("ask_release", replay=terms)
    assert judge(story, folder, pin) == (
        "FAIL",
        [("declassify-unapproved", story.seq("lower")), ("declassify-differs", story.seq("send"))],
    )


def test_s12_spans_of_two_blocks_let_nothing_go(folder: Path, pin: Path) -> None:
    story = Story()
    story.change("ask_release", **{**bb.released("release", "b2", 0, 9), "inputs": ["b1", "b2"]})
    verdict, reasons = judge(story, folder, pin)
    assert (verdict, reasons[0][0]) == ("FAIL", "declassify-unapproved")


@case
def s12_a_second_opinion_lowers(story: Story) -> Expected:
    story.change("b7", **{"class": "C0", "parts": {"default": "C0", "detected": "C0"}})
    return [("class-too-low", "b7")]


@case
def s12_a_second_opinion_raises_what_is_sent_afterwards(story: Story) -> Expected:
    story.change("b7", **{"class": "C3", "parts": {"default": "C1", "detected": "C3"}, "opinion": "health"})
    return [("declassify-differs", "send"), ("class-too-low", "refused")]


@case
def s13_an_opinion_that_the_header_does_not_name(story: Story) -> Expected:
    story.change("b7", classifier="rules+local:another")
    return [("classifier-unlisted", "b7")]


WORDS = {"person": "C2", "health": "C3", "judicial": "C3", "secrecy": "C3", "credential": "C3", "fault": "C3"}


@pytest.mark.parametrize(("word", "least"), WORDS.items(), ids=WORDS)
def test_s13_i8_an_opinion_makes_its_block_at_least_the_class_of_its_word(
    word: str, least: str, folder: Path, pin: Path
) -> None:
    """In a task of its own, in which nothing is sent; each class, so that the word alone decides."""
    start, end, other = Story().again("start"), Story().again("finish", "over"), hex32("another task")
    end.body["counts"] = {"task_start": 1, "classify": 1}
    for data_class in ("C1", "C2", "C3"):
        story = Story()
        step = Step("said", "classify", bb.opined("b30", data_class, "b0", word))
        start.task = step.task = end.task = other
        story.after("finish", start, step, end)
        low = data_class < least
        assert judge(story, folder, pin) == (
            ("FAIL", [("opinion-too-low", story.seq("said"))]) if low else ("PASS", [])
        )


@pytest.mark.parametrize(
    "change",
    [
        {"opinion": None},
        {"opinion": "mood"},
        {"classifier": "rules-only"},
        {"classifier": "local:second"},
        {"inputs": []},
        {"inputs": ["b0", "b1"]},
    ],
    ids=["no-opinion", "another-word", "rules-with-opinion", "no-rules", "about-nothing", "about-two"],
)
def test_an_opinion_stands_where_it_was_asked_and_is_about_one_block(
    change: dict[str, object], folder: Path, pin: Path
) -> None:
    story = Story()
    story.change("b7", **change)
    verdict, reasons = judge(story, folder, pin)
    assert verdict == "FAIL"
    assert ("record-shape", story.seq("b7")) in reasons


# S14


@case
def s14_a_second_matter_is_allowed_without_a_question(story: Story) -> Expected:
    story.change("allow", replay={"matters": 2})
    return [("matters-met", "allow")]


@case
def s14_a_second_matter_on_a_refused_approval(story: Story) -> Expected:
    story.change("ask", replay={"matters": 2})
    story.change("grant", granted=False)
    story.drop("fetch", "web", "page", "b3", "fetched", "b4")
    more = story.again("allow", call_id=hex32("more"), replay={"matters": 2})
    story.after("grant", more)
    return [("matters-met", "again")]


@case
def s14_a_third_matter_on_the_approval_of_a_second(story: Story) -> Expected:
    story.change("ask", replay={"matters": 2})
    story.after("b4", story.again("allow", call_id=hex32("more"), replay={"matters": 3}))
    return [("matters-met", "again")]


@case
def s14_a_count_of_matters_that_is_none(story: Story) -> Expected:
    story.change("allow", replay={"matters": True})
    return [("matters-met", "allow")]


@case
def s14_a_task_without_a_matter_is_allowed_two(story: Story) -> Expected:
    story.change("start", matters=None)
    story.change("allow", replay={"matters": 2})
    return [("matters-met", "allow")]


@pytest.mark.parametrize("edit", CASES.values(), ids=CASES.keys())
def test_one_broken_rule_gives_its_reason(edit: Callable[[Story], Expected], folder: Path, pin: Path) -> None:
    story = Story()
    expected = [(code, story.seq(label)) for code, label in edit(story)]
    assert judge(story, folder, pin) == ("FAIL", expected)


# What the rules allow


def test_s12_parts_of_a_text_in_which_something_was_found_may_be_let_go(folder: Path, pin: Path) -> None:
    story = Story()
    story.change("ask_release", **bb.released("release", "b2", 0, 9, 9, 12, 50, 100))
    story.change("b2", parts={"default": "C1", "declared": "C0", "detected": "C2"})
    assert judge(story, folder, pin) == ("PASS", [])


def test_s12_fourteen_parts_are_the_most_a_record_holds(folder: Path, pin: Path) -> None:
    story = Story()
    edges = [edge for number in range(14) for edge in (number * 2, number * 2 + 1)]
    story.change("ask_release", **bb.released("release", "b2", *edges))
    story.change("b2", parts={"default": "C1", "detected": "C2"})
    assert judge(story, folder, pin) == ("PASS", [])


def test_s12_two_documents_take_two_approvals(folder: Path, pin: Path) -> None:
    story = Story()
    asked = Step("ask8", "policy_decision", bb.released("release8", "b8"), bb.TASK)
    yes = Step("yes8", "approval", bb.approved("release8"), bb.TASK)
    story.after("granted", seen("b8"), asked, yes)
    story.change("send", inputs=["b2", "b8"])
    assert judge(story, folder, pin) == ("PASS", [])
    story.change("yes8", granted=False)
    assert judge(story, folder, pin) == ("FAIL", [("declassify-differs", story.seq("send"))])


def test_s12_what_is_cut_from_it_and_said_of_it_by_that_backend_goes_with_it(folder: Path, pin: Path) -> None:
    """`b6` is cut from `b2` and from what may leave; `b5` is the reply of the backend it went to."""
    story = Story()
    opinion = Step("b8", "classify", bb.opined("b8", "C2", "b2", "person"), bb.TASK)
    lower = story.again("lower", "lower2", id=hex32("lower2"))
    again = story.again("send", "again", send_id=hex32("again"), call_id=hex32("again"))
    again.body |= {"inputs": ["b2", "b5", "b6", "b8"], "declassify": hex32("lower2")}
    story.after("b6", opinion, lower, again)
    assert judge(story, folder, pin) == ("PASS", [])
    story.change("again", backend=bb.LOCAL, locality="L1")
    story.change("lower2", backend=bb.LOCAL)
    verdict, reasons = judge(story, folder, pin)
    assert (verdict, [code for code, _ in reasons]) == (
        "FAIL",
        ["declassify-unapproved", "declassify-differs"],
    )


def test_s14_two_matters_meet_once_a_person_said_so(folder: Path, pin: Path) -> None:
    story = Story()
    story.change("start", matters=None)
    story.change("allow", replay={"matters": 1})
    story.change("ask", replay={"matters": 2})
    story.after("b4", story.again("allow", call_id=hex32("more"), replay={"matters": 2}))
    assert judge(story, folder, pin) == ("PASS", [])


def test_s14_a_task_may_be_opened_for_two_matters(folder: Path, pin: Path) -> None:
    story = Story()
    story.change("start", matters=[hex64("m"), hex64("n")])
    story.change("allow", replay={"matters": 2})
    assert judge(story, folder, pin) == ("PASS", [])


def test_a_call_and_a_send_may_lack_their_results(folder: Path, pin: Path) -> None:
    story = Story()
    story.drop("was_read", "thought", "page", "fetched")
    assert judge(story, folder, pin) == ("PASS", [])


def test_a_tool_with_net_that_failed_may_leave_no_egress(folder: Path, pin: Path) -> None:
    story = Story()
    story.change("read", net=True)
    story.change("was_read", status="error")
    assert judge(story, folder, pin) == ("PASS", [])


def test_a_lowering_by_rule_needs_no_approval(folder: Path, pin: Path) -> None:
    story = Story()
    story.redact()
    assert judge(story, folder, pin) == ("PASS", [])


def test_i8_the_mark_is_the_tasks_own(folder: Path, pin: Path) -> None:
    """What one task has seen does not bind the next one, nor a probe, which belongs to none."""
    story, other = Story(), hex32("another task")
    start, end = story.again("start", **{"class": "C1"}), story.again("finish", "over")
    sent = Step("sent", "egress", bb.inference("later", bb.LOCAL, "L1", "C1", ["b0"]))
    end.body["counts"] = {"task_start": 1, "egress": 1}
    start.task = sent.task = end.task = other
    probe = Step("probe2", "egress", bb.inference("probe2", bb.LOCAL, "L1", "C0", []))
    story.after("finish", start, sent, end, probe)
    assert judge(story, folder, pin) == ("PASS", [])


def test_i8_entries_without_a_task_have_no_mark(folder: Path, pin: Path) -> None:
    """A block may be labelled outside any task; a question to a server about itself is still C0."""
    story = Story()
    probe = Step("probe2", "egress", bb.inference("probe2", bb.LOCAL, "L1", "C0", []))
    story.after("remote", Step("loose", "classify", bb.classified("b9", "C3", [])), probe)
    assert judge(story, folder, pin) == ("PASS", [])


def test_i8_a_lowered_send_covers_what_its_task_has_seen_whatever_it_quotes(folder: Path, pin: Path) -> None:
    story = Story()
    story.change("send", inputs=["b1"])
    assert judge(story, folder, pin) == ("PASS", [])


def test_i8_a_send_of_a_tool_is_held_to_its_inputs_not_to_the_mark(folder: Path, pin: Path) -> None:
    """`web` in the story: a page is fetched, at C1, by a task that has seen C2."""
    story = Story()
    assert story.at("b2") < story.at("web")
    assert judge(story, folder, pin) == ("PASS", [])


def test_i8_lowerings_are_named_in_the_report(folder: Path, pin: Path) -> None:
    """The header is silent about them: an auditor reads here that there were some, and on whose word."""
    story = Story()
    by_rule = story.again("lower", id=hex32("by rule"), rule="redact-detected")
    del by_rule.body["approval"]
    story.after("lower", by_rule)
    bb.LogBuilder().open().play(story).write(folder)
    report = akaion_verify.verify(folder, pin)
    assert (report["declassified"], report["lowering_rules"]) == (
        {"approval": 1, "rule": 1},
        ["redact-detected"],
    )
    said = akaion_verify.describe(report).splitlines()
    assert "Classes lowered: 1 by a rule (redact-detected), 1 by an approval" in said


def test_exactly_seal_every_entries_may_stand_without_a_seal(folder: Path, pin: Path) -> None:
    story = Story()
    story.after("plan", *[story.again("plan", f"plan{number}") for number in range(13)])
    assert judge(story, folder, pin) == ("PASS", [])


def test_c3_may_go_to_a_local_backend(folder: Path, pin: Path) -> None:
    story = Story()
    for label in ("b2", "b6"):
        story.change(label, **{"class": "C3", "parts": {"default": "C0", "declared": "C3"}})
    story.change("send", **{"class": "C3", "backend": bb.LOCAL, "locality": "L1", "declassify": None})
    story.change("refused", **{"class": "C3"})
    story.change("b5", **{"class": "C3", "parts": {"default": "C3"}})
    assert judge(story, folder, pin) == ("PASS", [])


def test_ceiling_none_lets_nothing_leave(folder: Path, pin: Path) -> None:
    log = bb.LogBuilder(changes={"max_egress_class": "none"}).open()
    sent = bb.inference("x", bb.REMOTE, "remote", "C0", [])
    log.play([Step("b", "backend", bb.backend(bb.REMOTE, "remote")), Step("e", "egress", sent)])
    log.close().write(folder)
    report = akaion_verify.verify(folder, pin)
    assert [reason["code"] for reason in report["reasons"]] == ["egress-above-ceiling"]


def test_only_the_first_place_of_a_reason_is_kept(folder: Path, pin: Path) -> None:
    story = Story()
    story.after("b1", story.again("b1", "one"), story.again("b1", "two"))
    assert judge(story, folder, pin) == ("FAIL", [("block-reused", story.seq("one"))])
