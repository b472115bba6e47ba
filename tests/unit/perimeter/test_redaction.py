# SPDX-License-Identifier: Apache-2.0
"""P1, I4, I7, I8, I12: redaction in a client and its tools: what it lowers, and everything it does not."""

import json
import re
from dataclasses import replace
from typing import Any

import pytest

from runner.kernel.errors import EgressDenied, ReplyInvalid
from runner.kernel.inference import InferenceRequest
from runner.kernel.labels import DataClass, Label
from runner.kernel.messages import Block, BlockKind, JsonObject, Message, Role, ToolCall
from runner.kernel.ports import Effect, Root, ToolOutput
from runner.perimeter.flows import Flow, Sink, SinkKind
from runner.perimeter.outgoing import DECLASSIFY_LASTS_US
from runner.perimeter.policy import ToolGrant
from runner.perimeter.redact import TOKEN, Redactor
from runner.testing import FakeClassifier, FakeFinding, FakeHit, FakeTool

pytestmark = pytest.mark.anyio

SECRET = "Mario Rossi"
C1, C2, C3 = DataClass.C1, DataClass.C2, DataClass.C3
ANSWER_TEXT = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
ANSWER = {"type": "object", "properties": {"answer": {"type": "string"}}, "required": ["answer"]}


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def remote(make_world: Any) -> Any:
    """A maker of worlds with a remote backend, the ceiling C1, and redaction on."""

    def make(**more: Any) -> Any:
        settings = {
            "classifier": FakeClassifier({SECRET: C2}),
            "local": False,
            "ceiling": C1,
            "redaction": True,
        }
        return make_world(**(settings | more))

    return make


def asking(*blocks: Block, schema: Any = None, stream: bool = False) -> InferenceRequest:
    return InferenceRequest(messages=(Message(role=Role.USER, blocks=blocks),), schema=schema, stream=stream)


def texts(request: InferenceRequest) -> str:
    return "\n".join(block.text for message in request.messages for block in message.blocks)


def token_in(request: InferenceRequest) -> str:
    found = TOKEN.search(texts(request))
    assert found is not None
    return found[0]


def wires(world: Any) -> str:
    return "\n".join(wire.body.decode() for wire in world.backend.transport.sent)


def repeat(form: str) -> Any:
    """A reply that puts the token it was sent where `form` says {}."""
    return lambda request: form.format(token_in(request))


# --- what leaves, and what comes back -----------------------------------------------------------------


async def test_p1_the_bytes_that_leave_hold_a_token_and_the_reply_the_value(remote: Any) -> None:
    world = remote(replies=[repeat("{} it is")])
    with world.perimeter.task(f"who is {SECRET}?") as task:
        reply = await world.client.infer(asking(task.goal), task=task)
        assert task.mark.data_class is C2, "I8: redaction does not lower the mark"
        assert task.residue.data_class is C1
    assert reply.block.text == f"{SECRET} it is"
    assert reply.block.label.data_class is C2, "I8: a restored value keeps its class"
    assert SECRET not in wires(world)


async def test_i4_a_redacted_send_is_recorded_with_what_lowered_it(remote: Any) -> None:
    world = remote(replies=["fine"])
    with world.perimeter.task(f"who is {SECRET}?") as task:
        await world.client.infer(asking(task.goal), task=task)
    (egress,), (lowered,) = world.records("egress"), world.records("declassify")
    assert (egress["decision"], egress["class"], egress["declassify"]) == ("redacted", "C1", lowered["id"])
    assert (lowered["rule"], lowered["from"], lowered["to"]) == ("redact-detected", "C2", "C1")
    assert lowered["backend"] == egress["backend"]
    assert lowered["seq"] < egress["seq"]
    assert egress["bytes"] == len(world.backend.transport.sent[0].body)
    assert world.records("task_end")[0]["counts"]["declassify"] == 1


async def test_i4_a_clock_set_back_leaves_no_lowering_that_expired_before_its_send(remote: Any) -> None:
    world = remote(replies=["fine"])
    with world.perimeter.task(f"who is {SECRET}?") as task:
        world.clock._start_us -= 600_000_000
        await world.client.infer(asking(task.goal), task=task)
    (log,) = world.store.files.values()
    times = {record["kind"]: record.get("ts") for record in map(json.loads, log.durable.splitlines())}
    assert world.records("declassify")[0]["expires"] == times["egress"] + DECLASSIFY_LASTS_US


async def test_i9_the_declassification_is_on_disk_before_anything_leaves(remote: Any) -> None:
    seen: list[list[str]] = []
    world: Any = None

    def answer(_: InferenceRequest) -> str:
        seen.append(world.order())
        return "ok"

    world = remote(replies=[answer])
    with world.perimeter.task(SECRET) as task:
        await world.client.infer(asking(task.goal), task=task)
    (durable,) = seen
    assert durable[-3:] == ["declassify", "egress", "seal"]


async def test_i12_neither_value_nor_token_reaches_the_trace(remote: Any) -> None:
    world = remote(replies=[repeat("{}")])
    with world.perimeter.task(SECRET) as task:
        await world.client.infer(asking(task.goal), task=task)
    token = TOKEN.findall(wires(world))[0].encode()
    for log in world.store.files.values():
        assert SECRET.encode() not in log.data
        assert token not in log.data


async def test_a_constrained_reply_is_restored_on_its_leaves_and_fits_the_original_schema(
    remote: Any,
) -> None:
    line = f'"{SECRET}", tenant'
    schema = {
        "type": "object",
        "properties": {"quote": {"enum": [line, "another"]}},
        "required": ["quote"],
        "additionalProperties": False,
    }

    def choose(request: InferenceRequest) -> str:
        asked: Any = request.schema
        return json.dumps({"quote": asked["properties"]["quote"]["enum"][0]})

    world = remote(replies=[choose])
    with world.perimeter.task(f"who is {SECRET}?") as task:
        reply = await world.client.infer(asking(task.goal, schema=schema), task=task)
    assert reply.value == {"quote": line}
    assert json.loads(reply.block.text) == {"quote": line}, "never restored inside raw JSON"
    assert SECRET not in wires(world)


async def test_a_restored_reply_is_validated_again_and_what_does_not_fit_stays_as_it_was_said(
    remote: Any,
) -> None:
    """A second question would tell the model that the value did not fit: how long it is, how it begins."""
    schema = {"type": "object", "properties": {"answer": {"type": "string", "pattern": "^\\["}}}
    world = remote(replies=[repeat('{{"answer": "{}"}}')])
    with world.perimeter.task(SECRET) as task:
        reply = await world.client.infer(asking(task.goal, schema=schema), task=task)
    assert reply.value == reply.said
    assert re.fullmatch(TOKEN, reply.value["answer"])


async def test_a_reply_is_validated_as_it_was_said_too(remote: Any) -> None:
    schema = {"type": "object", "properties": {"answer": {"type": "string", "pattern": "^Mario"}}}
    world = remote(replies=[repeat('{{"answer": "{}"}}')])
    with world.perimeter.task(SECRET) as task:
        with pytest.raises(ReplyInvalid, match="schema_violation") as caught:
            await world.client.infer(asking(task.goal, schema=schema), task=task)
        assert SECRET not in str(caught.value)


@pytest.mark.parametrize("form", ['{{"answer": "{}"', "{}", '{{"answer": "{}", "answer": 1}}'])
async def test_nothing_is_restored_in_json_that_cannot_be_read(form: str, remote: Any) -> None:
    world = remote(replies=[repeat(form)])
    with world.perimeter.task(SECRET) as task, pytest.raises(ReplyInvalid, match="malformed_json"):
        await world.client.infer(asking(task.goal, schema=ANSWER), task=task)
    assert [block.text for block in task._blocks.values() if SECRET in block.text] == [SECRET]
    assert [record["status"] for record in world.records("egress_result")] == ["ok"]


async def test_free_text_that_is_json_is_restored_on_its_leaves(make_world: Any) -> None:
    value = 'Via "Roma"\n12'
    world = make_world(
        replies=[repeat('{{"where": "{}"}}')],
        classifier=FakeClassifier({value: C2}),
        local=False,
        ceiling=C1,
        redaction=True,
    )
    with world.perimeter.task(value) as task:
        reply = await world.client.infer(asking(task.goal), task=task)
    assert json.loads(reply.block.text) == {"where": value}


async def test_a_stream_is_shown_restored_and_never_cut(remote: Any) -> None:
    """The scripted backend cuts its stream every five characters."""
    world = remote(replies=[repeat("It is {}, or [SO")])
    shown: list[str] = []
    with world.perimeter.task(f"who is {SECRET}?") as task:
        await world.client.infer(asking(task.goal, stream=True), task=task, on_text=shown.append)
    assert "".join(shown) == f"It is {SECRET}, or [SO"
    assert len(shown) > 2
    assert not any(re.search(r"\[F|FAKE", piece) for piece in shown)


async def test_a_token_that_was_typed_comes_back_as_it_was_typed(remote: Any) -> None:
    world = remote(replies=[texts])
    with world.perimeter.task(f"[PERSONA_bcdfgh] is not {SECRET}") as task:
        reply = await world.client.infer(asking(task.goal), task=task)
    assert "PERSONA_bcdfgh" not in wires(world)
    assert reply.block.text == f"[PERSONA_bcdfgh] is not {SECRET}"


async def test_two_tasks_share_no_token_and_restore_none_of_each_other(remote: Any) -> None:
    seen: list[str] = []

    def keep(request: InferenceRequest) -> str:
        seen.append(token_in(request))
        return seen[0]

    world = remote(replies=[keep, keep])
    replies = []
    for _ in range(2):
        with world.perimeter.task(SECRET) as task:
            replies.append((await world.client.infer(asking(task.goal), task=task)).block.text)
    assert seen[0] != seen[1]
    assert replies == [SECRET, seen[0]]


async def test_a_map_ends_with_its_task(remote: Any) -> None:
    world = remote(replies=[repeat("{}")])
    with world.perimeter.task(SECRET) as task:
        await world.client.infer(asking(task.goal), task=task)
        token = TOKEN.findall(wires(world))[0]
        assert task.redactor.restore(token) == SECRET
    assert task.redactor.restore(token) == token


# --- adversarial: how a value could come out again ------------------------------------------------------


@pytest.mark.parametrize("form", ["x{}y", "{}{}", "a-{}-b", '{{"name":"{}"}}', "«{}»"])
async def test_p1_a_value_glued_to_words_by_the_model_does_not_leave_in_the_next_request(
    form: str, remote: Any
) -> None:
    """A restored reply is read again by the next request: where no detector sees the value, the map does."""
    glue = form.replace("{}", "{0}") if form.count("{}") > 1 else form
    world = remote(replies=[repeat(glue), "fine"])
    with world.perimeter.task(f"sig. {SECRET}") as task:
        first = await world.client.infer(asking(task.goal), task=task)
        assert SECRET in first.block.text
        await world.client.infer(asking(task.goal, first.block), task=task)
    assert len(world.backend.transport.sent) == 2
    assert "Rossi" not in wires(world)


async def test_p1_a_value_with_quotes_does_not_leave_as_json_spells_it(make_world: Any) -> None:
    value = 'Via "Roma"\n12'
    world = make_world(
        replies=[repeat('{{"answer": "{}"}}'), "fine"],
        classifier=FakeClassifier({value: C2}),
        local=False,
        ceiling=C1,
        redaction=True,
    )
    with world.perimeter.task(value) as task:
        first = await world.client.infer(asking(task.goal, schema=ANSWER), task=task)
        await world.client.infer(asking(first.block), task=task)
    assert len(world.backend.transport.sent) == 2
    assert "Roma" not in wires(world)


async def test_p1_half_a_value_does_not_leave_when_a_context_is_cut(remote: Any) -> None:
    world = remote(replies=["fine"])
    with world.perimeter.task("who is it?") as task:
        read = task.mint(
            BlockKind.TOOL, f"the tenant is {SECRET}", Label(default=C1), residue=Label(default=C1)
        )
        cut = task.derive(read.text[:-3], [read])
        await world.client.infer(asking(task.goal, cut), task=task)
    assert "Mario" not in wires(world)


# --- what is not lowered --------------------------------------------------------------------------------


async def denied(world: Any, task: Any, *blocks: Block, schema: Any = None) -> str:
    with pytest.raises(EgressDenied) as caught:
        await world.client.infer(asking(*blocks, schema=schema), task=task)
    assert world.backend.transport.sent == []
    assert world.records("declassify") == []
    assert world.records("egress")[-1]["decision"] == "denied"
    return str(caught.value.reason)


async def test_p1_without_the_profile_saying_so_nothing_is_redacted(remote: Any) -> None:
    world = remote(redaction=False)
    with world.perimeter.task(SECRET) as task:
        assert await denied(world, task, task.goal) == "class-above-ceiling"


@pytest.mark.parametrize(
    "label", [Label(declared=C2), Label(default=C2), Label(detected=C2), Label(declared=C2, detected=C2)]
)
async def test_i8_only_what_detectors_see_in_the_text_itself_is_lowered(label: Label, remote: Any) -> None:
    """`detected` of a label that was handed on was seen in another text: this one is computed from it."""
    world = remote()
    with world.perimeter.task("q") as task:
        block = task.mint(BlockKind.TOOL, f"about {SECRET}", label)
        assert await denied(world, task, task.goal, block) == "class-above-ceiling"


async def test_p1_c3_is_never_redacted(remote: Any) -> None:
    world = remote(classifier=FakeClassifier({SECRET: C3}))
    with world.perimeter.task(SECRET) as task:
        assert await denied(world, task, task.goal) == "c3-never-leaves"


async def test_p1_what_lies_inside_an_encoding_is_denied(remote: Any) -> None:
    class Inside(FakeClassifier):
        def classify(self, text: str, *, source: str | None = None) -> FakeFinding:
            found = super().classify(text, source=source)
            spans = tuple(
                FakeHit(start=hit.start, end=hit.end, data_class=hit.data_class, redactable=False)
                for hit in found.spans
            )
            return FakeFinding(data_class=found.data_class, spans=spans)

    world = remote(classifier=Inside({SECRET: C2}))
    with world.perimeter.task(SECRET) as task:
        assert await denied(world, task, task.goal) == "class-above-ceiling"


async def test_p1_a_finding_without_a_place_is_denied(remote: Any) -> None:
    """What is judged is the final bytes: if the classifier still finds it there, nothing leaves."""

    class Vague(FakeClassifier):
        def classify(self, text: str, *, source: str | None = None) -> FakeFinding:
            return FakeFinding(data_class=super().classify(text, source=source).data_class)

    world = remote(classifier=Vague({SECRET: C2}))
    with world.perimeter.task(SECRET) as task:
        assert await denied(world, task, task.goal) == "class-above-ceiling"


async def test_p1_a_value_in_a_member_name_is_denied(remote: Any) -> None:
    world = remote()
    schema = {"type": "object", "properties": {SECRET: {"type": "string"}}}
    with world.perimeter.task("q") as task:
        assert await denied(world, task, task.goal, schema=schema) == "class-above-ceiling"


async def test_i7_a_fault_in_redaction_denies(remote: Any) -> None:
    world = remote()
    with world.perimeter.task(SECRET) as task:
        task.redactor = Redactor(lambda: "not a number")
        assert await denied(world, task, task.goal) == "class-above-ceiling"


async def test_i8_an_echo_of_a_labelled_source_is_not_lowered(remote: Any) -> None:
    """Its class was declared elsewhere: taking the names out of a privileged passage does not change it."""
    passage = "the parties met at the old mill and agreed on a price that neither of them would name"
    world = remote()
    world.perimeter._rules.echo.remember(passage, C2)
    with world.perimeter.task(f"{SECRET} says {passage}") as task:
        assert task.residue.data_class is C2
        assert await denied(world, task, task.goal) == "class-above-ceiling"


async def test_a_task_with_two_matters_is_not_redacted(remote: Any) -> None:
    world = remote()
    with world.perimeter.task(SECRET) as task:
        for matter in ("rossi", "bianchi"):
            label = Label(default=C1, matters=frozenset({matter}))
            task.mint(BlockKind.TOOL, f"of {matter}", label, residue=label)
        assert await denied(world, task, task.goal) == "class-above-ceiling"


async def test_i8_what_a_model_said_after_seeing_a_value_in_clear_is_not_lowered(make_world: Any) -> None:
    """A yes or no says something about the value, and holds nothing a detector could find."""
    world = make_world(
        replies=["yes"], classifier=FakeClassifier({SECRET: C2}), local=True, ceiling=C1, redaction=True
    )
    with world.perimeter.task(SECRET) as task:
        reply = await world.client.infer(asking(task.goal), task=task)
        assert reply.block.text == "yes"
        assert task.residue.data_class is C2
    assert world.records("egress")[0]["decision"] == "allowed"


async def test_i8_what_a_model_said_about_a_token_may_be_sent_to_it_again(remote: Any) -> None:
    world = remote(replies=["yes", "no"])
    with world.perimeter.task(SECRET) as task:
        first = await world.client.infer(asking(task.goal), task=task)
        await world.client.infer(asking(first.block), task=task)
        assert task.residue.data_class is C1
    assert [record["decision"] for record in world.records("egress")] == ["redacted", "redacted"]
    assert world.records("egress")[1]["inputs"] == [first.block.id, task.goal.id]


async def test_i4_a_request_that_leaves_the_value_out_names_the_block_that_it_lowers(remote: Any) -> None:
    """The task has seen C2: sending even a harmless block of it away is a lowering, and is on record."""
    world = remote(replies=["fine"])
    with world.perimeter.task(SECRET) as task:
        harmless = task.instruction("say hello")
        await world.client.infer(asking(harmless), task=task)
    (egress,), (lowered,) = world.records("egress"), world.records("declassify")
    assert egress["inputs"] == [harmless.id, task.goal.id]
    assert (lowered["from"], lowered["to"]) == ("C2", "C1")


# --- tools ----------------------------------------------------------------------------------------------

NOTE: JsonObject = {
    "type": "object",
    "properties": {"path": {"type": "string"}, "text": {"type": "string"}},
    "required": ["text"],
    "additionalProperties": False,
}
OPEN = Root(alias="open", path="/granted/open", redactable=True)
CLOSED = Root(alias="closed", path="/granted/closed")
INTERNAL = Root(alias="internal", path="/granted/internal", declared=C1)


def using(effect: Effect, *, output: str = "done", paths: bool = False, veils: bool = True) -> FakeTool:
    return FakeTool(
        effect=effect,
        parameters=NOTE,
        path_arguments=frozenset({"path"}) if paths else frozenset(),
        output=ToolOutput(text=output),
        veils=veils,
    )


@pytest.mark.parametrize("effect", [Effect.NET, Effect.HOST])
async def test_i8_a_restored_value_goes_into_no_network_or_host_tool(
    effect: Effect, remote: Any, grant: Any
) -> None:
    tool = using(effect)
    world = remote(replies=[repeat("{}")], grants={"fake": grant(tool, roots=())})
    tools = world.perimeter.seal_tools([tool])
    with world.perimeter.task(f"sig. {SECRET}") as task:
        reply = await world.client.infer(asking(task.goal), task=task)
        for text in (reply.block.text, f"x{SECRET.lower()}y"):
            call = ToolCall(tool="fake", arguments={"text": text}, origin=reply.block)
            assert (await tools.call(call, task=task)).status == "denied"
        assert tool.calls == []
        harmless = ToolCall(tool="fake", arguments={"text": "hello"}, origin=reply.block)
        assert (await tools.call(harmless, task=task)).status == "ok"
    rules = [record["rule"] for record in world.records("policy_decision")]
    assert rules == ["restored-value-to-sink", "restored-value-to-sink", "grant.fake"]


@pytest.mark.parametrize("guess", [SECRET, "Anna Verdi"], ids=["right", "wrong"])
@pytest.mark.parametrize("effect", [Effect.NET, Effect.HOST])
async def test_p1_a_guess_in_clear_is_treated_alike_whether_it_is_right_or_not(
    guess: str, effect: Effect, remote: Any, grant: Any
) -> None:
    """A denial of the right one alone would tell a model elsewhere that it was right."""
    tool = using(effect)
    world = remote(replies=[json.dumps({"text": guess})], grants={"fake": grant(tool, roots=())})
    with world.perimeter.task(f"sig. {SECRET}") as task:
        reply = await world.client.infer(asking(task.goal, schema=ANSWER_TEXT), task=task)
        call = ToolCall(tool="fake", arguments=reply.value, origin=reply.block)
        assert (await world.perimeter.seal_tools([tool]).call(call, task=task)).status == "ok"
        assert task.residue.data_class is (C2 if effect is Effect.HOST else C1)


@pytest.mark.parametrize("guess", [SECRET, "Anna Verdi"], ids=["right", "wrong"])
async def test_p1_what_a_model_said_goes_back_as_it_said_it(guess: str, remote: Any) -> None:
    """Were a right guess replaced by its token, the next request would say so."""

    class BehindSig(FakeClassifier):
        def classify(self, text: str, *, source: str | None = None) -> FakeFinding:
            found = super().classify(text, source=source)
            spans = tuple(hit for hit in found.spans if text[: hit.start].endswith("sig. "))
            return FakeFinding(
                data_class=max((hit.data_class for hit in spans), default=DataClass.C0), spans=spans
            )

    world = remote(replies=[f"Is it {guess}?", "fine"], classifier=BehindSig({SECRET: C2}))
    with world.perimeter.task(f"sig. {SECRET}") as task:
        first = await world.client.infer(asking(task.goal), task=task)
        await world.client.infer(asking(task.goal, first.block), task=task)
    assert f"Is it {guess}?" in world.backend.transport.sent[1].body.decode()


async def test_a_value_that_no_model_got_as_a_token_may_go_to_a_host_tool(
    make_world: Any, grant: Any
) -> None:
    """What a local model read in clear is a matter of the grant, as it is without redaction."""
    tool = using(Effect.HOST)
    world = make_world(
        classifier=FakeClassifier({SECRET: C2}), grants={"fake": grant(tool, roots=())}, redaction=True
    )
    with world.perimeter.task(SECRET) as task:
        call = ToolCall(tool="fake", arguments={"text": SECRET}, origin=task.goal)
        assert (await world.perimeter.seal_tools([tool]).call(call, task=task)).status == "ok"


@pytest.mark.parametrize("root", [CLOSED, INTERNAL], ids=lambda root: root.alias)
@pytest.mark.parametrize("guess", [SECRET, "Anna Verdi", "hello"], ids=["right", "wrong", "no value"])
async def test_p1_a_model_elsewhere_learns_nothing_by_writing(
    root: Root, guess: str, remote: Any, grant: Any
) -> None:
    """Whether a passage could be changed, or a name was free, would say yes or no about what is hidden."""
    tool = using(Effect.WRITE, paths=True)
    world = remote(replies=[repeat("{}")], grants={"fake": grant(tool, roots=(root,))})
    with world.perimeter.task(SECRET) as task:
        reply = await world.client.infer(asking(task.goal), task=task)
        arguments = {"path": root.alias, "text": guess}
        call = ToolCall(tool="fake", arguments=arguments, origin=reply.block)
        denied = await world.perimeter.seal_tools([tool]).call(call, task=task)
    assert denied.status == "denied"
    assert denied.rule == ("above-folder" if root is INTERNAL else "write-behind-veil")
    assert tool.calls == []


async def test_a_task_that_no_model_elsewhere_saw_writes(make_world: Any, grant: Any) -> None:
    tool = using(Effect.WRITE, paths=True)
    world = make_world(
        classifier=FakeClassifier({SECRET: C2}), grants={"fake": grant(tool, roots=(CLOSED,))}, redaction=True
    )
    with world.perimeter.task(SECRET) as task:
        call = ToolCall(tool="fake", arguments={"path": "closed", "text": SECRET}, origin=task.goal)
        assert (await world.perimeter.seal_tools([tool]).call(call, task=task)).status == "ok"


@pytest.mark.parametrize("query", ["rent", SECRET])
@pytest.mark.parametrize(("veils", "decision"), [(True, "redacted"), (False, "denied")])
async def test_p1_i8_what_does_not_come_through_the_veil_stays_here(
    veils: bool, decision: str, query: str, remote: Any, grant: Any
) -> None:
    """A count, a size, three letters of a value: what is found in them is nothing. So all of it stays."""
    tool = using(Effect.READ, output=f"line 3: {SECRET} owes rent", paths=True, veils=veils)
    world = remote(replies=["fine", "fine"], grants={"fake": grant(tool, roots=(OPEN,))})
    with world.perimeter.task(SECRET) as task:
        reply = await world.client.infer(asking(task.goal), task=task)
        call = ToolCall(tool="fake", arguments={"path": "open", "text": query}, origin=reply.block)
        read = await world.perimeter.seal_tools([tool]).call(call, task=task)
        assert read.status == "ok"
        assert read.block.label.default is C2
        assert (tool.calls[0].veil is not None) is veils
        if decision == "denied":
            with pytest.raises(EgressDenied):
                await world.client.infer(asking(task.goal, read.block), task=task)
        else:
            await world.client.infer(asking(task.goal, read.block), task=task)
    assert world.records("egress")[-1]["decision"] == decision
    assert "Rossi" not in wires(world)


@pytest.mark.parametrize("effect", [Effect.READ, Effect.RUN])
async def test_p1_what_a_tool_without_a_veil_returns_stays_here_from_the_start(
    effect: Effect, remote: Any, grant: Any
) -> None:
    """Even if a grant that nobody compiled calls its folder redactable."""
    tool = using(effect, output="RSS", paths=True, veils=effect is not Effect.READ)
    world = remote(grants={"fake": grant(tool, roots=(OPEN,))})
    with world.perimeter.task("q") as task:
        call = ToolCall(tool="fake", arguments={"path": "open", "text": ""}, origin=task.goal)
        read = await world.perimeter.seal_tools([tool]).call(call, task=task)
        assert await denied(world, task, read.block) == "class-above-ceiling"


@pytest.mark.parametrize(
    ("path", "veiled", "residue"),
    [("open/a", True, C1), ("open", True, C1), ("closed/a", False, C2), (".", True, C2), ("no/a", None, C1)],
)
async def test_p1_the_veil_is_decided_by_what_a_call_reaches(
    path: str, veiled: bool | None, residue: DataClass, remote: Any, grant: Any
) -> None:
    """A grant of one folder that is redactable and one that is not: each counts for what lies in it."""
    tool = using(Effect.READ, output="nothing personal", paths=True)
    world = remote(replies=["fine", "fine"], grants={"fake": grant(tool, roots=(OPEN, CLOSED))})
    with world.perimeter.task(SECRET) as task:
        reply = await world.client.infer(asking(task.goal), task=task)
        call = ToolCall(tool="fake", arguments={"path": path, "text": ""}, origin=reply.block)
        read = await world.perimeter.seal_tools([tool]).call(call, task=task)
        assert [each.veil is not None for each in tool.calls] == ([] if veiled is None else [veiled])
        assert task.residue.data_class is residue
        if residue is C1:
            await world.client.infer(asking(task.goal, read.block), task=task)
        else:
            with pytest.raises(EgressDenied):
                await world.client.infer(asking(task.goal, read.block), task=task)


@pytest.mark.parametrize("root", [OPEN, CLOSED], ids=lambda root: root.alias)
async def test_p1_the_name_of_a_folder_is_not_guessed(root: Root, remote: Any, grant: Any) -> None:
    """One that is right is answered as one that is wrong: else it would say who the client is."""
    said = []
    for alias in (SECRET, "Anna Verdi"):
        tool = using(Effect.READ, paths=True)
        named = replace(root, alias=alias)
        world = remote(replies=["fine"], grants={"fake": grant(tool, roots=(named, OPEN))})
        with world.perimeter.task(f"about {SECRET}") as task:
            reply = await world.client.infer(asking(task.goal), task=task)
            call = ToolCall(tool="fake", arguments={"path": f"{SECRET}/a", "text": ""}, origin=reply.block)
            read = await world.perimeter.seal_tools([tool]).call(call, task=task)
            said.append((read.status, read.rule, read.block.text.replace(alias, "x"), len(tool.calls)))
    assert said[0] == said[1]
    assert said[0][0] == "denied"


@pytest.mark.parametrize("guess", [SECRET, "Anna Verdi"], ids=["right", "wrong"])
async def test_p1_what_the_user_named_is_not_guessed(guess: str, remote: Any) -> None:
    """A sink that goes by whom the user named would say yes to the right one, as without such a model."""
    sink = Sink(kind=SinkKind.NETWORK, ceiling=C3)
    mail = ToolGrant(tool="fake", effect=Effect.HOST, parameters=NOTE, flow=Flow(sink=sink))
    tool = using(Effect.HOST)
    world = remote(replies=[json.dumps({"text": guess})], grants={"fake": mail})
    tools = world.perimeter.seal_tools([tool])
    with world.perimeter.task(f"Write to {SECRET}") as task:
        mine = ToolCall(tool="fake", arguments={"text": guess}, origin=task.goal)
        assert (await tools.call(mine, task=task)).status == ("ok" if guess == SECRET else "denied")
    with world.perimeter.task(f"Write to {SECRET}") as task:
        reply = await world.client.infer(asking(task.goal, schema=ANSWER_TEXT), task=task)
        call = ToolCall(tool="fake", arguments=reply.value, origin=reply.block)
        assert (await tools.call(call, task=task)).status == "denied"
    assert world.records("policy_decision")[-1]["rule"] == "critical-not-named"


@pytest.mark.parametrize(
    ("roots", "decision"), [((OPEN,), "redacted"), ((CLOSED,), "denied"), ((OPEN, CLOSED), "denied")]
)
async def test_p1_the_default_of_files_is_lowered_only_where_every_root_says_so(
    roots: tuple[Root, ...], decision: str, remote: Any, grant: Any
) -> None:
    tool = using(Effect.READ, output="nothing personal", paths=True)
    world = remote(replies=["fine"], grants={"fake": grant(tool, roots=roots)})
    with world.perimeter.task("q") as task:
        call = ToolCall(tool="fake", arguments={"path": ".", "text": ""}, origin=task.goal)
        read = await world.perimeter.seal_tools([tool]).call(call, task=task)
        if decision == "denied":
            assert await denied(world, task, read.block) == "class-above-ceiling"
        else:
            await world.client.infer(asking(read.block), task=task)
    assert world.records("egress")[-1]["decision"] == decision


async def test_p1_a_redactable_file_still_does_not_leave_where_the_ceiling_is_c0(
    remote: Any, grant: Any
) -> None:
    tool = using(Effect.READ, output="nothing personal", paths=True)
    world = remote(grants={"fake": grant(tool, roots=(OPEN,))}, ceiling=DataClass.C0)
    with world.perimeter.task("q") as task:
        call = ToolCall(tool="fake", arguments={"path": "open", "text": ""}, origin=task.goal)
        read = await world.perimeter.seal_tools([tool]).call(call, task=task)
        assert await denied(world, task, read.block) == "class-above-ceiling"
