# SPDX-License-Identifier: Apache-2.0
"""Human declassification (P1, I1, I4, I8): what a person let go is subtracted, exactly, and nothing else."""

import base64
import json
from collections.abc import Callable
from typing import Any

import pytest
from rich.cells import cell_len

from runner.kernel.errors import EgressDenied, PerimeterError, SealError
from runner.kernel.inference import InferenceRequest, WireRequest
from runner.kernel.labels import DataClass, Label
from runner.kernel.messages import BlockKind, Message, Role
from runner.kernel.ports import FOREIGN, ApprovalRequest
from runner.perimeter.classify import EchoIndex, carried
from runner.perimeter.cuts import cuts, merged
from runner.perimeter.declassify import class_outside
from runner.perimeter.gate import Perimeter
from runner.perimeter.question import WIDTH
from runner.testing import FakeClassifier, FakeFinding, ScriptedApprover

pytestmark = pytest.mark.anyio

C0, C1, C2, C3 = DataClass
FILE = Label(declared=C2, sources=frozenset({"cases"}))
LETTER = "The board agreed to close the western plant in spring and to move the line abroad."


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def remote(make_world: Any) -> Callable[..., Any]:
    """Return a maker of worlds with a remote backend and a profile that lets a person be asked."""

    def make(*answers: bool, replies: int = 9, declassification: bool = True, **more: Any) -> Any:
        settings = {"local": False, "ceiling": C1, "replies": ["fine"] * replies, **more}
        approver = ScriptedApprover(answers=answers)
        world = make_world(declassification=declassification, approver=approver, **settings)
        return world, approver

    return make


def asking(*blocks: Any, **more: Any) -> InferenceRequest:
    return InferenceRequest(messages=(Message(role=Role.USER, blocks=blocks),), max_tokens=8, **more)


def read(task: Any, text: str = LETTER, label: Label = FILE) -> Any:
    return task.mint(BlockKind.TOOL, text, label)


async def denied(world: Any, task: Any, *blocks: Any) -> str:
    with pytest.raises(EgressDenied) as caught:
        await world.client.infer(asking(*blocks), task=task)
    return caught.value.reason


# --- what a yes does ------------------------------------------------------------------------------------


async def test_p1_what_a_person_let_go_leaves_and_its_record_says_who_and_what(remote: Any) -> None:
    world, approver = remote(True)
    with world.perimeter.task("sum it up") as task:
        letter = read(task)
        await world.client.infer(asking(task.goal, letter), task=task)
    (sent,) = world.backend.transport.sent
    assert LETTER.encode() in sent.body
    assert len(approver.asked) == 1
    decision, approval = world.records("policy_decision")[0], world.records("approval")[0]
    lowering, egress = world.records("declassify")[0], world.records("egress")[0]
    assert (decision["tool"], decision["decision"], decision["inputs"]) == ("release", "ask", [letter.id])
    assert decision["replay"] == {"backend": "scripted", "to": "C1", "chars": len(LETTER)}
    assert (lowering["from"], lowering["to"], lowering["backend"]) == ("C2", "C1", "scripted")
    assert lowering["approval"] == approval["call_id"] == decision["call_id"]
    assert lowering["commit"] == approval["args_commit"] == decision["args_commit"]
    assert lowering["expires"] == approval["expires"]
    assert (egress["decision"], egress["class"], egress["declassify"]) == ("allowed", "C1", lowering["id"])
    order = world.order()
    assert order.index("approval") < order.index("declassify") < order.index("egress")


async def test_i8_nothing_else_is_lowered_the_mark_stays_and_so_does_the_answer(remote: Any) -> None:
    world, _ = remote(True)
    with world.perimeter.task("sum it up") as task:
        reply = await world.client.infer(asking(task.goal, read(task)), task=task)
        assert task.mark.data_class is C2
        assert reply.block.label.data_class is C2
        assert task.residue.data_class is C2, "redaction does not lower what a person let go"


async def test_a_person_is_asked_once_for_each_document_of_a_task(remote: Any) -> None:
    """Usable: cuts of it, the backend's own words about it, and further requests ask nothing."""
    world, approver = remote(True, True)
    with world.perimeter.task("sum it up") as task:
        letter = read(task)
        reply = await world.client.infer(asking(task.goal, letter), task=task)
        page = task.derive(f"# one.txt\n{LETTER[4:40]}", [letter, task.goal])
        for blocks in ([page, task.goal], [letter, reply.block], [task.goal]):
            await world.client.infer(asking(*blocks), task=task)
        assert len(approver.asked) == 1
        await world.client.infer(asking(letter, read(task, "a second letter")), task=task)
        assert len(approver.asked) == 2
    assert len(world.backend.transport.sent) == 5


async def test_i1_a_no_is_a_denial_and_is_not_asked_again(remote: Any) -> None:
    world, approver = remote(False, True)
    with world.perimeter.task("q") as task:
        letter = read(task)
        assert await denied(world, task, letter) == "class-above-ceiling"
        assert await denied(world, task, letter, task.goal) == "class-above-ceiling"
    assert len(approver.asked) == 1
    assert world.backend.transport.sent == []
    assert world.records("approval")[0]["granted"] is False


async def test_i1_without_an_approver_the_answer_is_no(make_world: Any) -> None:
    world = make_world(local=False, ceiling=C1, declassification=True, replies=["fine"])
    with world.perimeter.task("q") as task:
        letter = read(task)
        assert await denied(world, task, letter) == "class-above-ceiling"
        assert world.records("policy_decision") == [], "nobody was asked"
        assert await world.client.declassify(letter, task=task) is False
    (approval,) = world.records("approval")
    assert (approval["by"], approval["granted"]) == ("none", False)


@pytest.mark.parametrize(
    ("settings", "label", "rule"),
    [
        ({"declassification": False}, FILE, "declassification-off"),
        ({}, Label(declared=C3), "c3-never-leaves"),
        ({}, Label(detected=C3), "c3-never-leaves"),
        ({"ceiling": None}, FILE, "nothing-may-leave"),
        ({"local": True}, FILE, "backend-is-local"),
    ],
)
async def test_i1_what_nobody_may_be_asked_about_is_denied_on_record(
    remote: Any, settings: dict[str, Any], label: Label, rule: str
) -> None:
    world, approver = remote(True, **settings)
    with world.perimeter.task("q") as task:
        letter = read(task, label=label)
        assert await world.client.declassify(letter, task=task) is False
        if "local" not in settings:
            await denied(world, task, letter)
    assert approver.asked == []
    assert world.records("policy_decision")[0]["rule"] == rule
    assert world.backend.transport.sent == []


async def test_what_may_leave_anyway_is_not_asked_about(remote: Any) -> None:
    world, approver = remote()
    with world.perimeter.task("q") as task:
        assert await world.client.declassify(task.goal, task=task) is True
    assert (approver.asked, world.records("policy_decision")) == ([], [])


# --- what it does not do --------------------------------------------------------------------------------


async def test_i8_what_the_task_has_seen_besides_still_counts(remote: Any) -> None:
    """Also when the request does not quote it: it may have steered what is asked."""
    world, _ = remote(True, False)
    with world.perimeter.task("q") as task:
        letter = read(task)
        await world.client.infer(asking(letter), task=task)
        read(task, "another file", FILE)
        assert await denied(world, task, letter) == "class-above-ceiling"
    assert len(world.backend.transport.sent) == 1


async def test_i8_after_c3_nothing_leaves_whatever_was_let_go_before(remote: Any) -> None:
    world, approver = remote(True, True, True)
    with world.perimeter.task("q") as task:
        letter = read(task)
        await world.client.infer(asking(letter), task=task)
        read(task, "privileged", Label(declared=C3))
        assert await denied(world, task, letter) == "c3-never-leaves"
    assert len(approver.asked) == 1


async def test_i8_a_yes_is_for_one_task(remote: Any) -> None:
    world, approver = remote(True, False)
    for sends in (1, 1):
        with world.perimeter.task("q") as task:
            letter = read(task)
            if len(approver.asked) == 0:
                await world.client.infer(asking(letter), task=task)
            else:
                await denied(world, task, letter)
        assert len(world.backend.transport.sent) == sends
    assert len(approver.asked) == 2


async def test_i8_a_yes_is_for_one_backend(remote: Any) -> None:
    world, _ = remote(True)
    with world.perimeter.task("q") as task:
        letter = read(task)
        assert await world.client.declassify(letter, task=task) is True
        (given,) = task.clearances.valid("scripted", world.clock.now_us())
        assert task.clearances.valid("another", world.clock.now_us()) == []
        assert task.clearances.covered(task.blocks, "another", above=C1, now_us=world.clock.now_us()) == {}
        assert given.expires - world.clock.now_us() == 900_000_000


@pytest.mark.parametrize(("seconds", "sent"), [(880, 2), (895, 1), (901, 1)])
async def test_i8_a_yes_expires(remote: Any, seconds: int, sent: int) -> None:
    """Shortly before the end nothing leaves any more: its record would come too late."""
    world, _ = remote(True)
    with world.perimeter.task("q") as task:
        letter = read(task)
        await world.client.infer(asking(letter), task=task)
        world.clock.advance(seconds)
        if sent == 1:
            assert await denied(world, task, letter) == "class-above-ceiling"
        else:
            await world.client.infer(asking(letter), task=task)
    assert len(world.backend.transport.sent) == sent


async def test_i7_release_refuses_a_yes_that_is_over_or_for_another(
    remote: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last place where it is looked at is the gate itself."""
    world, _ = remote(True)
    seen: list[Any] = []
    release = Perimeter.release

    def watch(self: Any, *args: Any, **named: Any) -> Any:
        if named.get("subtracted") is not None:
            seen.append((args, named))
        return release(self, *args, **named)

    monkeypatch.setattr(Perimeter, "release", watch)
    with world.perimeter.task("q") as task:
        await world.client.infer(asking(read(task)), task=task)
        args, named = seen[-1]
        assert type(world.perimeter.release(*args, **named)).__name__ == "Allowed"
        other = {**named, "subtracted": type(named["subtracted"])(**fields(named["subtracted"], backend="x"))}
        assert world.perimeter.release(*args, **other).reason == "declassification-over"
        world.clock.advance(901)
        fresh = await world.perimeter.check_locality(world.backend)
        late = world.perimeter.release(*args, **{**named, "checked": fresh})
        assert late.reason == "declassification-over"


def fields(value: Any, **changes: Any) -> dict[str, Any]:
    return {name: getattr(value, name) for name in value.__slots__} | changes


async def test_i8_a_changed_text_is_another_text(remote: Any) -> None:
    world, _ = remote(True, False)
    with world.perimeter.task("q") as task:
        letter = read(task)
        await world.client.infer(asking(letter), task=task)
        changed = read(task, LETTER + ".")
        assert await denied(world, task, changed) == "class-above-ceiling"
        with pytest.raises(SealError):
            await world.client.declassify(forged(letter), task=task)


def forged(block: Any) -> Any:
    return type(block)(id=block.id, kind=block.kind, text="other", label=block.label)


async def test_i8_what_a_local_model_said_of_it_counts_until_a_person_let_that_go(remote: Any) -> None:
    world, approver = remote(True, False)
    with world.perimeter.task("q") as task:
        letter = read(task)
        await world.client.infer(asking(letter), task=task)
        task.mint(BlockKind.MODEL, "they will close a plant", Label(declared=C2), [letter])
        assert await denied(world, task, letter) == "class-above-ceiling"
    assert "they will close a plant" in approver.asked[1].rendering


async def test_i8_what_is_made_of_it_and_of_something_else_still_counts(remote: Any) -> None:
    world, _ = remote(True, False)
    with world.perimeter.task("q") as task:
        letter, other = read(task), read(task, "secret")
        assert await world.client.declassify(letter, task=task) is True
        both = task.derive("board, secret", [letter, other])
        covered = task.clearances.covered(task.blocks, "scripted", above=C1, now_us=world.clock.now_us())
        assert set(covered) == {letter.id}
        assert await denied(world, task, both) == "class-above-ceiling"


async def test_i8_a_block_read_while_a_person_thinks_counts(make_world: Any) -> None:
    """The yes is to one letter; another one came in meanwhile, and is asked about by itself."""
    asked: list[str] = []

    class Slow:
        name = "slow"

        async def approve(self, request: ApprovalRequest) -> bool:
            asked.append(request.rendering)
            if len(asked) == 1:
                read(task, "a second letter")
            return len(asked) == 1

    world = make_world(local=False, ceiling=C1, declassification=True, replies=["fine"] * 3, approver=Slow())
    with world.perimeter.task("q") as task:
        assert await denied(world, task, read(task)) == "class-above-ceiling"
    assert ["a second letter" in rendering for rendering in asked] == [False, True]
    assert world.backend.transport.sent == []


async def test_i8_a_block_read_while_a_request_is_judged_counts(make_world: Any) -> None:
    """Long texts are judged aside, and the task goes on meanwhile: then it is judged again."""
    late: list[Any] = []

    class Meanwhile(FakeClassifier):
        def classify(self, text: str, *, source: str | None = None) -> FakeFinding:
            if source == "content" and late:
                read(late.pop(), "a second letter")
            return super().classify(text)

    approver = ScriptedApprover(answers=[True, False])
    world = make_world(
        local=False, ceiling=C1, declassification=True, replies=["fine"],
        classifier=Meanwhile(), approver=approver,
    )  # fmt: skip
    with world.perimeter.task("q") as task:
        letter = read(task)
        assert await world.client.declassify(letter, task=task) is True
        world.perimeter._rules.judged.class_of(world.perimeter._rules.classifier, LETTER, "content")
        late.append(task)
        assert await denied(world, task, letter) == "class-above-ceiling"
    assert "a second letter" in approver.asked[1].rendering


async def test_more_than_a_few_questions_at_once_are_not_asked(remote: Any) -> None:
    world, approver = remote(*[True] * 9)
    with world.perimeter.task("q") as task:
        letters = [read(task, f"letter {number}") for number in range(5)]
        assert await denied(world, task, *letters) == "class-above-ceiling"
        assert approver.asked == []
        for letter in letters:
            assert await world.client.declassify(letter, task=task) is True
        await world.client.infer(asking(*letters), task=task)
    assert len(approver.asked) == 5


# --- parts of a text ------------------------------------------------------------------------------------

NAMES = {"Mario Rossi": C2, "RSSMRA80A01F205X": C2, "the diagnosis": C3}
GOAL = "Write to Mario Rossi (RSSMRA80A01F205X) about the lease"
SPANS = [(9, 20), (22, 38)]


async def test_p1_spans_of_a_goal_take_away_what_was_found_in_them(remote: Any) -> None:
    world, approver = remote(True, classifier=FakeClassifier(NAMES))
    with world.perimeter.task(GOAL) as task:
        assert task.mark.data_class is C2
        assert await world.client.declassify(task.goal, task=task, spans=SPANS) is True
        asked = task.derive(f"Question: {GOAL}", [task.goal])
        for blocks in ([task.goal], [asked]):
            await world.client.infer(asking(*blocks), task=task)
    (shown,) = (request.rendering for request in approver.asked)
    assert f"characters 9 to 20\n{FOREIGN}Mario Rossi\n" in shown
    assert "about the lease" not in shown
    assert world.records("policy_decision")[0]["replay"] == {
        "backend": "scripted", "to": "C1", "chars": len(GOAL), "s0": 9, "e0": 20, "s1": 22, "e1": 38,
    }  # fmt: skip
    assert len(world.backend.transport.sent) == 2


@pytest.mark.parametrize("spans", [[(9, 20)], [(9, 20), (22, 37)], [(10, 20), (22, 38)]])
async def test_p1_what_was_found_outside_of_the_spans_or_across_their_edge_counts(
    remote: Any, spans: list[tuple[int, int]]
) -> None:
    world, _ = remote(True, False, classifier=FakeClassifier(NAMES))
    with world.perimeter.task(GOAL) as task:
        assert await world.client.declassify(task.goal, task=task, spans=spans) is True
        assert await denied(world, task, task.goal) == "class-above-ceiling"


async def test_i1_who_let_go_a_part_is_asked_about_the_whole_before_it_is_denied(
    remote: Any,
) -> None:
    world, approver = remote(True, True, classifier=FakeClassifier(NAMES))
    with world.perimeter.task(GOAL) as task:
        assert await world.client.declassify(task.goal, task=task, spans=SPANS[:1]) is True
        await world.client.infer(asking(task.goal), task=task)
        await world.client.infer(asking(task.goal), task=task)
    assert ["about the lease" in each.rendering for each in approver.asked] == [False, True]
    assert len(world.backend.transport.sent) == 2


class Failing:
    """Fails once it is armed. What it said of a wire is remembered, the rest of a block is judged anew."""

    version = "failing"
    armed = False

    def classify(self, text: str, *, source: str | None = None) -> Any:
        if self.armed:
            raise RuntimeError("down")
        return FakeClassifier(NAMES).classify(text, source=source)


async def test_i7_where_the_rest_of_a_part_cannot_be_judged_it_stays_denied(remote: Any) -> None:
    classifier = Failing()
    world, approver = remote(True, False, classifier=classifier)
    with world.perimeter.task(GOAL) as task:
        assert await world.client.declassify(task.goal, task=task, spans=SPANS[:1]) is True
        for classifier.armed in (False, True):
            assert await denied(world, task, task.goal) == "class-above-ceiling"
    assert len(approver.asked) == 2


async def test_i8_what_was_found_outside_of_the_spans_counts_for_a_request_that_does_not_quote_it(
    remote: Any,
) -> None:
    world, _ = remote(True, False, classifier=FakeClassifier(NAMES))
    with world.perimeter.task(GOAL) as task:
        assert await world.client.declassify(task.goal, task=task, spans=SPANS[:1]) is True
        assert await denied(world, task, task.instruction("Go on.")) == "class-above-ceiling"


async def test_i8_redaction_does_not_lower_what_a_model_said_of_a_name_it_got_in_clear(remote: Any) -> None:
    world, _ = remote(True, classifier=FakeClassifier(NAMES), redaction=True)
    with world.perimeter.task(GOAL) as task:
        assert task.residue.data_class is C1
        assert await world.client.declassify(task.goal, task=task, spans=SPANS) is True
        await world.client.infer(asking(task.goal), task=task)
        assert task.residue.data_class is C2


def test_i8_c3_is_covered_by_nothing_and_another_backends_words_are_not_either(make_world: Any) -> None:
    """Each of these is kept from leaving elsewhere too: this is the second lock."""
    world = make_world()
    with world.perimeter.task("q") as task:
        letter, secret = read(task), read(task, "x", Label(declared=C3))
        cut = task.derive("x", [secret])
        said = task.mint(BlockKind.MODEL, "their words", FILE)
        task.clearances.said(said, "one")
        every = frozenset({letter.id, secret.id})

        def covered(backend: str) -> set[str]:
            now = world.clock.now_us()
            return set(task.clearances.covered(task.blocks, backend, above=C1, now_us=now, also=every))

        assert covered("one") == {letter.id, said.id}
        assert covered("two") == {letter.id}
        assert cut.label.data_class is C3


def test_p1_an_echo_of_c3_counts_inside_of_what_was_let_go() -> None:
    echo = EchoIndex(b"key")
    echo.remember(LETTER, C2)
    whole = ((0, len(LETTER)),)
    assert class_outside(LETTER, whole, FakeClassifier(), echo) is C0
    assert class_outside(LETTER, ((0, 3),), FakeClassifier(), echo) is C2
    assert class_outside(f"{LETTER} {LETTER}", whole, FakeClassifier(), echo) is C2, "the second time"
    echo.remember(LETTER, C3)
    assert class_outside(LETTER, whole, FakeClassifier(), echo) is C3


async def test_p1_spans_are_carried_to_a_cut_only_where_the_whole_text_stands_in_it_once(remote: Any) -> None:
    world, _ = remote(True, False, classifier=FakeClassifier(NAMES))
    with world.perimeter.task(GOAL) as task:
        assert await world.client.declassify(task.goal, task=task, spans=SPANS) is True
        once, twice, cut = (
            task.derive(text, [task.goal]) for text in (f"Q: {GOAL}", f"{GOAL} {GOAL}", GOAL[5:])
        )
        covered = task.clearances.covered(task.blocks, "scripted", above=C1, now_us=world.clock.now_us())
        regions = {block: cover.regions for block, cover in covered.items()}
        assert regions == {task.goal.id: ((9, 20), (22, 38)), once.id: ((12, 23), (25, 41))}
        assert twice.id not in covered
        assert cut.id not in covered
        assert await denied(world, task, task.goal) == "class-above-ceiling", (
            "they are in the task, and count"
        )


async def test_i8_spans_do_not_lower_what_was_declared(remote: Any) -> None:
    world, _ = remote(True, False, classifier=FakeClassifier(NAMES))
    with world.perimeter.task("q") as task:
        letter = read(task, GOAL)
        assert await world.client.declassify(letter, task=task, spans=SPANS) is True
        assert await denied(world, task, letter) == "class-above-ceiling"


async def test_p1_the_same_words_elsewhere_in_the_request_are_not_let_go(remote: Any) -> None:
    """By position, not by value: another block quotes the name, and it counts."""
    world, _ = remote(True, classifier=FakeClassifier(NAMES))
    with world.perimeter.task(GOAL) as task:
        assert await world.client.declassify(task.goal, task=task, spans=SPANS) is True
        instruction = task.instruction("Be kind.")
        await world.client.infer(asking(instruction, task.goal), task=task)
        schema = {"type": "string", "enum": ["Mario Rossi"]}
        with pytest.raises(EgressDenied):
            await world.client.infer(asking(task.goal, schema=schema), task=task)
    assert len(world.backend.transport.sent) == 1


async def test_p1_c3_in_a_text_that_was_let_go_is_found_where_it_leaves(make_world: Any) -> None:
    """A classifier that sees it in the field of a body and not in the block: the gate reads the bytes."""

    class Late(FakeClassifier):
        def classify(self, text: str, *, source: str | None = None) -> FakeFinding:
            return super().classify(text) if source == "content" else FakeFinding(data_class=C0)

    world = make_world(
        local=False, ceiling=C1, declassification=True, replies=["fine"],
        classifier=Late(NAMES), approver=ScriptedApprover(answers=[True]),
    )  # fmt: skip
    with world.perimeter.task("q") as task:
        letter = read(task, "the diagnosis of Mario Rossi")
        assert await denied(world, task, letter) == "c3-never-leaves"


async def test_p1_an_unplaced_finding_is_not_left_out(make_world: Any) -> None:
    class Vague(FakeClassifier):
        def classify(self, text: str, *, source: str | None = None) -> FakeFinding:  # noqa: ARG002 - the port
            return FakeFinding(data_class=C2 if "Mario" in text else C0)

    world = make_world(
        local=False, ceiling=C1, declassification=True, replies=["fine"],
        classifier=Vague(), approver=ScriptedApprover(answers=[True] * 3),
    )  # fmt: skip
    with world.perimeter.task("ask Mario") as task:
        assert await world.client.declassify(task.goal, task=task) is True
        assert await denied(world, task, task.goal) == "class-above-ceiling"


async def test_p1_what_lies_inside_an_encoding_is_not_left_out(make_world: Any) -> None:
    class Encoded(FakeClassifier):
        def classify(self, text: str, *, source: str | None = None) -> FakeFinding:
            found = super().classify(text, source=source)
            hits = tuple(type(hit)(**fields(hit, redactable=False)) for hit in found.spans)
            return FakeFinding(data_class=found.data_class, spans=hits)

    world = make_world(
        local=False, ceiling=C1, declassification=True, replies=["fine"],
        classifier=Encoded(NAMES), approver=ScriptedApprover(answers=[True] * 3),
    )  # fmt: skip
    with world.perimeter.task("ask Mario Rossi") as task:
        assert await world.client.declassify(task.goal, task=task) is True
        assert await denied(world, task, task.goal) == "class-above-ceiling"


async def test_p1_an_echo_of_what_was_let_go_is_left_out_there_and_of_c3_nowhere(remote: Any) -> None:
    """What a tool read is remembered, so that its own text echoes; so does a quotation of it elsewhere."""
    world, _ = remote(True, classifier=FakeClassifier())
    with world.perimeter.task("q") as task:
        letter = read(task)
        task.remember(LETTER, C2)
        await world.client.infer(asking(letter), task=task)
        schema = {"type": "string", "description": LETTER}
        with pytest.raises(EgressDenied):
            await world.client.infer(asking(letter, schema=schema), task=task)
        task.remember(LETTER, C3)
        assert await denied(world, task, letter) == "c3-never-leaves"


async def test_p1_a_codec_that_moves_text_about_shows_no_place_and_so_nothing_leaves(
    remote: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    world, approver = remote(True)
    encode = world.backend.encode

    def shout(request: InferenceRequest) -> WireRequest:
        wire: WireRequest = encode(request)
        body = json.loads(wire.body)
        body["seed"] = len(wire.body)
        return type(wire)(**fields(wire, body=json.dumps(body).encode()))

    monkeypatch.setattr(world.backend, "encode", shout)
    with world.perimeter.task("q") as task:
        letter = read(task)
        assert await world.client.declassify(letter, task=task) is True
        assert await denied(world, task, letter) == "class-above-ceiling"
    assert len(approver.asked) == 1


async def test_p1_what_nobody_can_be_shown_is_not_let_go(remote: Any) -> None:
    """Media, and vectors, which are a block without text: they count, and nobody is asked."""
    world, approver = remote(True, True)
    with world.perimeter.task("q") as task:
        letter = read(task)
        await world.client.infer(asking(letter), task=task)
        picture = task.media(b"a picture", "image/png", data_class=C2)
        with pytest.raises(PerimeterError, match="only a text"):
            await world.client.declassify(picture, task=task)
        assert await denied(world, task, letter) == "class-above-ceiling"
    with world.perimeter.task("q") as task:
        letter = read(task)
        vectors = task.vectors(b"[0.1]", FILE, [letter], residue=FILE)
        with pytest.raises(PerimeterError, match="only a text"):
            await world.client.declassify(vectors, task=task)
        assert await denied(world, task, letter) == "class-above-ceiling"
    assert len(approver.asked) == 1


def test_p1_what_can_be_read_in_media_inside_of_a_text_is_not_left_out() -> None:
    encoded = base64.b64encode(b"%PDF-1.4 letter of Mario Rossi " + b"x" * 200).decode()
    text = f"see data:application/pdf;base64,{encoded}"
    assert any("Mario Rossi" in each for each in carried(text))
    assert class_outside(text, ((0, len(text)),), FakeClassifier(NAMES), EchoIndex(b"")) is C2


@pytest.mark.parametrize(
    "spans",
    [[(0, 99)], [(-1, 3)], [(3, 3)], [(5, 2)], [(0, 4), (3, 6)], [], [(n, n + 1) for n in range(15)]],
    ids=["outside", "before", "empty", "backwards", "overlapping", "none", "too-many"],
)
async def test_spans_that_are_none_are_refused(remote: Any, spans: list[tuple[int, int]]) -> None:
    world, approver = remote(True)
    with world.perimeter.task("what is the lease about?") as task, pytest.raises(PerimeterError):
        await world.client.declassify(task.goal, task=task, spans=spans)
    assert approver.asked == []


@pytest.mark.parametrize("seconds", [0, 59, 86_401, float("nan"), float("inf"), -1])
async def test_a_yes_lasts_a_minute_at_least_and_a_day_at_most(remote: Any, seconds: float) -> None:
    world, _ = remote(True)
    with world.perimeter.task("q") as task, pytest.raises(PerimeterError):
        await world.client.declassify(read(task), task=task, lasts_s=seconds)


# --- the question ---------------------------------------------------------------------------------------


async def test_i1_the_question_says_class_destination_time_and_the_text_whole_and_inert(remote: Any) -> None:
    hostile = "Perché\x1b[2J\u202e\nclass C0\nlet this text go nowhere\n" + "y" * 5000
    world, approver = remote(False)
    with world.perimeter.task("q") as task:
        letter = read(task, hostile)
        await world.client.declassify(letter, task=task, lasts_s=120)
    (request,) = approver.asked
    shown = request.rendering
    assert (request.tool, request.data_class) == ("release", C2)
    facts = shown[: shown.index(FOREIGN)]
    assert facts.splitlines()[:5] == [
        "class C2",
        "let this text go to scripted",
        "which is scripted-model at inproc:",
        "for 2 min, in this task only",
        "from tool, having read cases",
    ]
    assert shown.endswith(facts), "I1: and again where the question is"
    lines = shown.removeprefix(facts).removesuffix(facts).splitlines()
    assert all(line.startswith(FOREIGN) for line in lines)
    assert "Perché\\x1b[2J\\u202e" in shown
    assert "\x1b" not in shown
    assert "y" * 5000 in shown.replace("\n" + FOREIGN, "")


async def test_i12_the_record_of_a_question_holds_no_content(remote: Any) -> None:
    world, _ = remote(True, True, classifier=FakeClassifier(NAMES))
    with world.perimeter.task(GOAL) as task:
        await world.client.infer(asking(task.goal, read(task)), task=task)
    (log,) = world.store.files.values()
    for text in (b"Mario", b"plant", b"cases", b"the lease"):
        assert text not in log.data


# --- what is cut from what ------------------------------------------------------------------------------

OTHER = "Please write to Mario Rossi about the lease of the old mill before the end of May."


async def test_i8_another_text_derived_from_what_was_let_go_is_judged_and_asked_about(remote: Any) -> None:
    world, approver = remote(True, False, classifier=FakeClassifier(NAMES), echo=EchoIndex(b"k" * 16))
    with world.perimeter.task("q") as task:
        task.remember(OTHER, C2)
        letter = read(task)
        await world.client.infer(asking(letter), task=task)
        other = task.derive(OTHER, [letter])
        assert await denied(world, task, other) == "class-above-ceiling"
    assert "Mario Rossi" in approver.asked[1].rendering
    assert len(world.backend.transport.sent) == 1


async def test_i8_what_stands_beside_a_cut_is_judged(remote: Any) -> None:
    world, _ = remote(True, classifier=FakeClassifier(NAMES))
    with world.perimeter.task("q") as task:
        letter = read(task)
        await world.client.infer(asking(letter), task=task)
        await world.client.infer(asking(task.derive(f"# a.txt\n{LETTER[:40]}", [letter])), task=task)
        mixed = task.derive(f"{LETTER[:40]}\n{OTHER}", [letter])
        assert await denied(world, task, mixed) == "class-above-ceiling"
    assert len(world.backend.transport.sent) == 2


@pytest.mark.parametrize(
    ("text", "source", "cut"),
    [
        ("western plant", LETTER, [(0, 13)]),
        (f"Q: {LETTER}!", LETTER, [(3, 3 + len(LETTER))]),
        ("# a.txt\none  two\nthree\n\nfour", "a.txt\n1: one     two\n2: three\n4: four", [(2, 28)]),
        ("three\nother\none", "one\nthree", [(0, 5)]),
        ("on\nhree", "one\nthree", []),
        ("other", LETTER, []),
        ("", LETTER, []),
    ],
    ids=["cut", "quote", "page", "out-of-order", "half-words", "other", "empty"],
)
def test_i8_only_what_stands_in_the_source_is_cut_from_it(
    text: str, source: str, cut: list[tuple[int, int]]
) -> None:
    assert list(cuts(text, source)) == cut


def test_regions_that_overlap_or_touch_are_one() -> None:
    assert merged([(5, 7), (0, 2), (1, 3), (3, 4)]) == ((0, 4), (5, 7))


async def test_two_yeses_to_two_spans_of_one_block_count_together(remote: Any) -> None:
    world, approver = remote(True, True, classifier=FakeClassifier(NAMES))
    with world.perimeter.task(GOAL) as task:
        for span in SPANS:
            assert await world.client.declassify(task.goal, task=task, spans=[span]) is True
        await world.client.infer(asking(task.goal), task=task)
    assert len(approver.asked) == 2


# --- until when, and of what ----------------------------------------------------------------------------


async def test_i8_a_yes_that_expires_while_a_request_is_judged_lets_nothing_leave(
    remote: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its record would carry a later time, and the verifier goes by that."""
    world, _ = remote(True)
    record = Perimeter.record_egress

    def late(self: Any, sent: Any, *args: Any, **named: Any) -> None:
        if named.get("lowering") is not None:
            world.clock.advance(12)
        record(self, sent, *args, **named)

    monkeypatch.setattr(Perimeter, "record_egress", late)
    with world.perimeter.task("q") as task:
        letter = read(task)
        assert await world.client.declassify(letter, task=task, lasts_s=60) is True
        world.clock.advance(49)
        assert await denied(world, task, letter) == "declassification-over"
    (egress,) = world.records("egress")
    assert (egress["decision"], egress["reason"]) == ("denied", "declassification-over")
    assert "declassify" not in egress
    assert world.backend.transport.sent == []


async def test_i8_a_yes_that_was_over_at_once_is_a_no(remote: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The system's clock is set forward while the answer is written."""
    world, approver = remote(True)
    barrier = world.perimeter.trace.barrier

    def late() -> None:
        barrier()
        world.clock.advance(60)

    with world.perimeter.task("q") as task:
        monkeypatch.setattr(world.perimeter.trace, "barrier", late)
        assert await world.client.declassify(read(task), task=task, lasts_s=60) is False
    assert (len(approver.asked), world.records("approval")[0]["granted"]) == (1, True)


class Liar(str):
    """Text that shows another text than it is."""

    __slots__ = ()

    def __getitem__(self, key: Any) -> str:
        return "harmless words"[key]

    def encode(self, *_: Any) -> bytes:
        return b"harmless words"


async def test_i1_text_of_a_subclass_is_taken_for_the_characters_it_is(remote: Any) -> None:
    world, approver = remote(True)
    with world.perimeter.task(Liar("the goal")) as task:
        foreign = task.foreign(Liar(LETTER), declared=C2, source=Liar("mail"))
        made = [task.goal, foreign, task.instruction(Liar("x")), task.derive(Liar("y"), [foreign])]
        assert [type(block.text) for block in made] == [str] * 4
        picture = task.media(type("Bytes", (bytes,), {})(b"x"), Liar("image/png"), data_class=C1)
        assert picture.media is not None
        assert (type(picture.media.data), type(picture.media.mime)) == (bytes, str)
        await world.client.declassify(foreign, task=task)
    assert LETTER in approver.asked[0].rendering.replace(f"\n{FOREIGN}", "")


def test_questions_are_counted_no_further_than_there_may_be(make_world: Any) -> None:
    world = make_world(local=False, ceiling=C1)
    with world.perimeter.task("q") as task:
        for number in range(50):
            read(task, f"letter {number}")
        left = iter(task.blocks)
        asking = task.clearances.open_questions(
            left, "scripted", above=C1, now_us=0, most=4, outside=task.outside
        )
    assert [block.text for block in asking] == [f"letter {number}" for number in range(5)]
    assert len(list(left)) == 45, "of the goal and 50 letters, six were looked at"


async def test_i1_wide_and_unseen_characters_are_folded_and_numbered_in_the_question(remote: Any) -> None:
    world, approver = remote(True)
    with world.perimeter.task("q") as task:
        await world.client.declassify(read(task, "漢" * 200 + "a\ufe0f\U000e0101\u3164"), task=task)
    lines = [line for line in approver.asked[0].rendering.splitlines() if line.startswith(FOREIGN)]
    assert max(map(cell_len, lines)) == len(FOREIGN) + WIDTH
    assert "".join(line.removeprefix(FOREIGN) for line in lines) == (
        "漢" * 200 + "a\\ufe0f\\U000e0101\\u3164"
    )
