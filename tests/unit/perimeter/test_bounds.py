# SPDX-License-Identifier: Apache-2.0
"""I7, I8 and I9 against size: what others make long is cut off, and is read where a deadline still counts."""

import threading
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import anyio
import anyio.to_thread
import pytest

from runner.kernel.errors import BackendError, EgressDenied, ReplyInvalid, SealError
from runner.kernel.inference import InferenceRequest, WireReply, WireRequest
from runner.kernel.labels import DataClass, Label
from runner.kernel.messages import Block, BlockKind, Message, Role, ToolCall
from runner.kernel.ports import Credential, Effect, ToolOutput
from runner.perimeter.aside import HERE_UP_TO, aside
from runner.perimeter.exchange import SLACK_BYTES, SLACK_CHARACTERS, TOKEN_BYTES, TOKEN_CHARACTERS
from runner.perimeter.validate import MAX_CHARACTERS, MAX_DEPTH
from runner.testing import FakeClassifier, FakeFinding, FakeTool

pytestmark = pytest.mark.anyio

LONG = "long " * HERE_UP_TO
TOKENS = 16
ANYTHING: dict[str, Any] = {"type": "object"}


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def asking(*blocks: Block, max_tokens: int = TOKENS, stream: bool = False) -> InferenceRequest:
    messages = (Message(role=Role.USER, blocks=blocks),)
    return InferenceRequest(messages=messages, max_tokens=max_tokens, stream=stream)


# --- a reply has room for the tokens that were asked for -----------------------------------------


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("beyond", [0, 1])
async def test_i7_a_reply_longer_than_its_tokens_can_be_is_an_error_on_record_and_no_block(
    make_world: Any, *, beyond: int, stream: bool
) -> None:
    text = "x" * (TOKENS * TOKEN_CHARACTERS + SLACK_CHARACTERS + beyond)
    world = make_world(replies=[text])
    shown: list[str] = []
    with world.perimeter.task("q") as task:
        request = asking(task.goal, stream=stream)
        if beyond:
            with pytest.raises(BackendError, match="longer than 16 tokens can be"):
                await world.client.infer(request, task=task, on_text=shown.append)
        else:
            assert (await world.client.infer(request, task=task)).block.text == text
    assert [record["status"] for record in world.records("egress_result")] == ["error" if beyond else "ok"]
    assert len(world.records("classify")) == (1 if beyond else 2)
    assert len("".join(shown)) <= TOKENS * TOKEN_CHARACTERS + SLACK_CHARACTERS


class Endless:
    """A transport whose reply never ends, and says little: it counts the bytes that were read."""

    def __init__(self) -> None:
        self.read = 0

    async def _chunks(self) -> AsyncIterator[bytes]:
        while True:
            self.read += 65536
            yield b" " * 65536

    @asynccontextmanager
    async def open(self, _: WireRequest, *, credential: Credential | None) -> AsyncIterator[WireReply]:
        del credential
        yield WireReply(status=200, chunks=self._chunks())


async def test_i7_a_reply_without_end_is_not_read_on(make_world: Any) -> None:
    world, endless = make_world(replies=[]), Endless()
    object.__setattr__(world.perimeter.registration("scripted"), "transport", endless)
    with pytest.raises(BackendError, match="longer"), world.perimeter.task("q") as task:
        await world.client.infer(asking(task.goal), task=task)
    assert endless.read <= TOKENS * TOKEN_BYTES + SLACK_BYTES + 65536
    assert [record["status"] for record in world.records("egress_result")] == ["error"]


# --- a deadline counts while a long text is read --------------------------------------------------


class Pausing(FakeClassifier):
    """A classifier that does not come back from a long text of `kind` before it is let go."""

    def __init__(self, pauses: Callable[[str], bool], classes: Mapping[str, DataClass] | None = None) -> None:
        super().__init__(classes)
        self._pauses = pauses
        self.entered, self.let_go = threading.Event(), threading.Event()

    def classify(self, text: str, *, source: str | None = None) -> FakeFinding:
        if self._pauses(text) and not self.entered.is_set():
            self.entered.set()
            self.let_go.wait(timeout=120)
        return super().classify(text, source=source)


async def cut_off(work: Callable[[], Any], classifier: Pausing) -> None:
    """Run `work` until the classifier pauses in it, then cancel it; let the classifier go afterwards."""
    async with anyio.create_task_group() as group:
        group.start_soon(work)
        await anyio.to_thread.run_sync(classifier.entered.wait)
        assert not classifier.let_go.is_set()
        group.cancel_scope.cancel()
    classifier.let_go.set()


@pytest.mark.parametrize("beyond", [0, 1])
async def test_only_what_is_read_in_some_milliseconds_is_read_on_the_event_loop(*, beyond: int) -> None:
    assert HERE_UP_TO <= 1024  # hostile texts of this length take some tens of milliseconds
    thread = await aside(threading.get_ident, size=HERE_UP_TO + beyond)
    assert (thread != threading.get_ident()) is bool(beyond)


async def test_i7_i9_a_deadline_counts_while_a_long_reply_is_classified(make_world: Any) -> None:
    classifier = Pausing(lambda text: text == LONG)
    world = make_world(replies=[LONG], classifier=classifier)
    returned: list[object] = []
    with world.perimeter.task("q") as task:

        async def work() -> None:
            returned.append(await world.client.infer(asking(task.goal, max_tokens=4096), task=task))

        await cut_off(work, classifier)
    assert returned == []
    assert [record["status"] for record in world.records("egress_result")] == ["cancelled"]
    assert len(world.records("classify")) == 1


async def test_i7_a_deadline_counts_while_a_long_request_is_judged_and_nothing_is_sent(
    make_world: Any,
) -> None:
    classifier = Pausing(lambda text: LONG in text)
    world = make_world(replies=["never"], classifier=classifier)
    with world.perimeter.task("q") as task:
        classifier.entered.set()
        block = task.mint(BlockKind.TOOL, LONG, Label())
        classifier.entered.clear()

        async def work() -> None:
            await world.client.infer(asking(block), task=task)

        await cut_off(work, classifier)
    assert (world.backend.transport.sent, world.records("egress")) == ([], [])


async def test_i7_a_deadline_counts_while_what_a_tool_returned_is_classified(
    make_world: Any, grant: Any
) -> None:
    classifier = Pausing(lambda text: text == LONG)
    tool = FakeTool(output=ToolOutput(text=LONG), parameters=ANYTHING, path_arguments=frozenset())
    world = make_world(classifier=classifier, grants={"fake": grant(tool)})
    returned: list[object] = []
    with world.perimeter.task("q") as task:

        async def work() -> None:
            call = ToolCall(tool="fake", arguments={}, origin=task.goal)
            returned.append(await world.perimeter.seal_tools([tool]).call(call, task=task))

        await cut_off(work, classifier)
    assert (returned, world.records("tool_result")) == ([], [])


async def test_i8_what_a_task_reads_while_its_request_is_judged_counts(make_world: Any) -> None:
    """The request is judged in another thread; a C3 block that comes meanwhile still denies it."""
    classifier = Pausing(lambda text: LONG in text)
    world = make_world(replies=["never"], local=False, ceiling=DataClass.C1, classifier=classifier)
    denied: list[str] = []
    with world.perimeter.task("q") as task:
        classifier.entered.set()
        block = task.mint(BlockKind.TOOL, LONG, Label())
        classifier.entered.clear()

        async def work() -> None:
            with pytest.raises(EgressDenied) as caught:
                await world.client.infer(asking(block), task=task)
            denied.append(caught.value.reason)

        async with anyio.create_task_group() as group:
            group.start_soon(work)
            await anyio.to_thread.run_sync(classifier.entered.wait)
            task.mint(BlockKind.TOOL, "x", Label(declared=DataClass.C3))
            classifier.let_go.set()
    assert denied == ["c3-never-leaves"]
    assert world.backend.transport.sent == []


async def test_i8_what_redaction_cannot_lower_counts_when_it_comes_while_a_request_is_judged(
    make_world: Any,
) -> None:
    """The mark is no higher for it, since it held the same class; the residue is. A token is being judged."""
    classifier = Pausing(lambda text: text.startswith("["), {"Rossi": DataClass.C2})
    world = make_world(
        replies=["never"], local=False, ceiling=DataClass.C1, classifier=classifier, redaction=True
    )
    denied: list[str] = []
    with world.perimeter.task("Rossi") as task:
        block = task.mint(BlockKind.TOOL, LONG, Label())

        async def work() -> None:
            with pytest.raises(EgressDenied) as caught:
                await world.client.infer(asking(task.goal, block), task=task)
            denied.append(caught.value.reason)

        async with anyio.create_task_group() as group:
            group.start_soon(work)
            await anyio.to_thread.run_sync(classifier.entered.wait)
            mark = task.mark
            task.mint(BlockKind.TOOL, "x", Label(), residue=Label(detected=DataClass.C2))
            assert task.mark == mark
            classifier.let_go.set()
    assert denied == ["class-above-ceiling"]
    assert world.backend.transport.sent == []


async def test_i8_what_was_found_in_another_text_does_not_count(make_world: Any) -> None:
    world = make_world(classifier=FakeClassifier({"secret": DataClass.C3}))
    with world.perimeter.task("q") as task:
        before = len(world.records())
        harmless = task.examine("harmless")
        assert (task.mark.data_class, len(world.records())) == (DataClass.C1, before)
        block = task.mint(BlockKind.TOOL, "secret", Label(), examined=harmless)
    assert block.label.data_class is DataClass.C3


# --- arguments ------------------------------------------------------------------------------------


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = {"a": value}
    return value


@pytest.mark.parametrize(
    "value",
    [
        nested(MAX_DEPTH + 1),
        nested(50_000),
        "x" * (MAX_CHARACTERS + 1),
        [0] * (MAX_CHARACTERS + 1),
        10**5000,
        float("nan"),
        {1: 1},
        b"bytes",
    ],
    ids=["deep", "deeper", "long", "many", "digits", "nan", "keys", "bytes"],
)
async def test_i1_i4_arguments_beyond_the_bounds_are_denied_on_record_and_run_nothing(
    value: Any, make_world: Any, grant: Any
) -> None:
    tool = FakeTool(parameters=ANYTHING, effect=Effect.HOST, path_arguments=frozenset())
    world = make_world(grants={"fake": grant(tool, ask=True)})
    with world.perimeter.task("q") as task:
        call = ToolCall(tool="fake", arguments={"a": value}, origin=task.goal)
        reply = await world.perimeter.seal_tools([tool]).call(call, task=task)
    assert (reply.status, tool.calls) == ("denied", [])
    (decision,) = world.records("policy_decision")
    assert (decision["decision"], decision["rule"]) == ("deny", "arguments-unbounded")
    assert world.records("task_end")[0]["outcome"] == "done"


async def test_i1_a_tool_whose_arguments_could_take_for_ever_to_judge_is_not_sealed(make_world: Any) -> None:
    parameters: Any = {"type": "object", "properties": {"a": {"type": "string", "pattern": "(?=x)"}}}
    tool = FakeTool(name="digits", parameters=parameters, path_arguments=frozenset())
    with pytest.raises(SealError, match=r"'digits': properties\.a\.pattern .* Fix: .*RE2"):
        make_world().perimeter.seal_tools([tool])


async def test_i7_a_deep_reply_is_invalid_and_raises_nothing_else(make_world: Any) -> None:
    """Every depth up to where the parser itself gives up."""
    for depth in (MAX_DEPTH + 1, 300, 900, 1500):
        text = '{"a":' * depth + "1" + "}" * depth
        world = make_world(replies=[text])
        with world.perimeter.task("q") as task:
            request = InferenceRequest(messages=asking(task.goal).messages, schema=ANYTHING, max_tokens=4096)
            with pytest.raises(ReplyInvalid):
                await world.client.infer(request, task=task)
        assert world.records("egress_result")[0]["status"] == "ok"
