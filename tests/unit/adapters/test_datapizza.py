# SPDX-License-Identifier: Apache-2.0
"""The sealed client in datapizza's shape: labels, forms of reply, refusals. Defends P1, P3, I8 and I12."""

import base64
import json
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from typing import Any

import anyio
import pytest
from datapizza.clients import MockClient
from datapizza.core.cache import MemoryCache
from datapizza.memory import Memory
from datapizza.tools import Tool
from datapizza.type import (
    ROLE,
    FunctionCallBlock,
    FunctionCallResultBlock,
    Media,
    MediaBlock,
    StructuredBlock,
    TextBlock,
    ThoughtBlock,
)
from pydantic import BaseModel, field_validator

from runner.adapters.datapizza import SealedDatapizzaClient, host_tools
from runner.kernel.errors import (
    EgressDenied,
    MediaError,
    ReplyInvalid,
    SealError,
    TraceError,
    TransportError,
)
from runner.kernel.inference import WireReply, WireRequest
from runner.kernel.labels import DataClass, Integrity
from runner.kernel.ports import Credential, Effect, GrantedCall
from runner.testing import ScriptedBackend, vector_of

World = Any  # the type of tests/unit/conftest.py
MakeWorld = Callable[..., World]
CANARY = "lodestar-7731-quietus"


def weather(city: str) -> str:
    """Tell the weather in a city."""
    return f"sunny in {city}"


WEATHER = Tool(weather)


class Verdict(BaseModel):
    word: str
    score: int

    @field_validator("score")
    @classmethod
    def _even(cls, score: int) -> int:
        if score % 2:
            raise ValueError(CANARY)
        return score


@contextmanager
def bridged(
    make_world: MakeWorld,
    grant: Callable[..., Any],
    replies: Sequence[object] = (),
    *,
    granted: Sequence[Tool] = (),
    **more: Any,
) -> Iterator[tuple[SealedDatapizzaClient, World]]:
    """A world whose model says `replies`, with `granted` granted, seen through a sealed client."""
    tools = host_tools(granted)
    world = make_world(replies=replies, grants={tool.spec.name: grant(tool) for tool in tools})
    with world.perimeter.task("Help.") as task:
        sealed = world.perimeter.seal_tools(tools)
        yield SealedDatapizzaClient(world.client, task=task, tools=sealed, **more), world


@pytest.fixture
def bridge(make_world: MakeWorld, grant: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *args, **more: bridged(make_world, grant, *args, **more)


def sent(world: World) -> Any:
    """What the last request said, role by role."""
    backend: ScriptedBackend = world.backend
    request = backend.requests[-1]
    return [(m.role.value, [block.text for block in m.blocks]) for m in request.messages]


# --- what goes in ------------------------------------------------------------------------------


def test_every_block_of_a_conversation_becomes_a_message(bridge: Callable[..., Any]) -> None:
    memory = Memory()
    memory.add_turn(TextBlock(content="Weather?"), role=ROLE.USER)
    memory.add_turn([ThoughtBlock(content="hm"), TextBlock(content="I look.")], role=ROLE.ASSISTANT)
    call = FunctionCallBlock(id="1", name="weather", arguments={"city": "Pisa"}, tool=WEATHER)
    memory.add_turn([call], role=ROLE.ASSISTANT)
    memory.add_turn(FunctionCallResultBlock(id="1", tool=WEATHER, result="sunny"), role=ROLE.TOOL)
    memory.add_turn([StructuredBlock(content=Verdict(word="w", score=2))], role=ROLE.ASSISTANT)
    with bridge(["Sunny."], system_prompt="Be brief.") as (client, world):
        client.invoke("And now?", memory=memory)
        assert sent(world) == [
            ("system", ["Be brief."]),
            ("user", ["Weather?"]),
            ("assistant", ["I look.", '{"tool": "weather", "arguments": {"city": "Pisa"}}']),
            ("user", ["Result of weather:\nsunny"]),
            ("assistant", ['{"word":"w","score":2}']),
            ("user", ["And now?"]),
        ]


@pytest.mark.parametrize("declared", [DataClass.C0, DataClass.C2, DataClass.C3])
def test_i8_every_text_is_foreign_content_of_the_declared_class(
    bridge: Callable[..., Any], declared: DataClass
) -> None:
    with bridge(["Yes."], data_class=declared) as (client, world):
        client.invoke("One", system_prompt="Two")
        blocks = [block for message in world.backend.requests[-1].messages for block in message.blocks]
    assert [(b.label.declared, b.label.integrity) for b in blocks] == [(declared, Integrity.UNTRUSTED)] * 2
    assert world.records("egress")[-1]["class"] == max(declared, DataClass.C1).name


def test_nobody_said_so_it_is_c2(bridge: Callable[..., Any]) -> None:
    with bridge(["Yes."]) as (client, world):
        client.invoke("One")
    assert world.records("egress")[-1]["class"] == "C2"


def test_i8_the_mark_of_the_task_is_kept_over_what_the_bridge_declares(bridge: Callable[..., Any]) -> None:
    """What datapizza's memory brings back has lost its label; the task has not."""
    with bridge(["Yes.", "No."], data_class=DataClass.C0) as (client, world):
        client._task.foreign("secret", declared=DataClass.C3, source="elsewhere")
        client.invoke("One")
    assert world.records("egress")[-1]["class"] == "C3"


def test_a_text_is_labelled_once(bridge: Callable[..., Any]) -> None:
    with bridge(["Yes.", "Yes."]) as (client, world):
        client.invoke("One", system_prompt="Two")
        before = len(world.records("classify"))
        client.invoke("One", system_prompt="Two")
        assert len(world.records("classify")) == before + 1  # the second reply


def test_a_text_may_stand_in_a_conversation_twice(bridge: Callable[..., Any]) -> None:
    memory = Memory()
    memory.add_turn(TextBlock(content="Yes."), role=ROLE.USER)
    memory.add_turn(TextBlock(content="Yes."), role=ROLE.ASSISTANT)
    with bridge(["Yes."]) as (client, world):
        client.invoke("Yes.", memory=memory)
        assert sent(world) == [("user", ["Yes."]), ("assistant", ["Yes."]), ("user", ["Yes."])]
    assert len(world.records("egress")[-1]["inputs"]) == 1


@pytest.mark.parametrize(("given", "asked"), [(None, 0.0), (0.0, 0.0), (0.7, 0.7)])
def test_a_temperature_of_zero_is_kept(bridge: Callable[..., Any], given: float | None, asked: float) -> None:
    with bridge(["Yes."]) as (client, world):
        client.invoke("One", temperature=given, max_tokens=5)
    request = world.backend.requests[-1]
    assert (request.temperature, request.max_tokens) == (asked, 5)


# --- what comes out ----------------------------------------------------------------------------


def test_a_text_comes_out_as_text_with_its_usage(bridge: Callable[..., Any]) -> None:
    with bridge(["Two words"]) as (client, _):
        response = client.invoke("One")
    assert response.content == [TextBlock(content="Two words")]
    assert response.completion_tokens_used == 2


def test_a_chosen_tool_comes_out_as_a_call(bridge: Callable[..., Any]) -> None:
    reply = {"reply": {"tool": "weather", "arguments": {"city": "Pisa"}}}
    with bridge([reply], granted=[WEATHER]) as (client, world):
        (call,) = client.invoke("One", tools=[WEATHER]).function_calls
        told = sent(world)[0][1]
    assert (call.name, call.arguments, call.tool) == ("weather", {"city": "Pisa"}, WEATHER)
    assert told[1].startswith("weather: Tell the weather in a city.\n{")


@pytest.mark.parametrize(
    ("choice", "branches"),
    [
        ("auto", ["weather", "clock", "answer"]),
        ("required", ["weather", "clock"]),
        (["clock"], ["clock"]),
    ],
)
def test_the_choice_of_tools_is_a_schema(
    bridge: Callable[..., Any], choice: object, branches: list[str]
) -> None:
    clock = Tool(name="clock", description="Tell the time.", properties={}, required=[])
    reply = {"reply": {"tool": branches[-1], "arguments": {}}}
    answer = {"reply": {"answer": "Noon."}}
    with bridge([answer if choice == "auto" else reply], granted=[WEATHER]) as (client, world):
        client.invoke("One", tools=[WEATHER, clock], tool_choice=choice)
    options = world.backend.requests[-1].schema["properties"]["reply"]["anyOf"]
    named = [option["properties"].get("tool", {"enum": ["answer"]})["enum"][0] for option in options]
    assert named == branches


def test_without_tools_to_choose_the_reply_is_free_text(bridge: Callable[..., Any]) -> None:
    with bridge(["Yes."], granted=[WEATHER]) as (client, world):
        assert client.invoke("One", tools=[WEATHER], tool_choice="none").text == "Yes."
    assert world.backend.requests[-1].schema is None


@pytest.mark.parametrize("choice", ["any", ["nothing"], [], 3])
def test_another_choice_is_refused(bridge: Callable[..., Any], choice: object) -> None:
    with bridge(granted=[WEATHER]) as (client, _), pytest.raises(SealError, match="tool_choice is"):
        client.invoke("One", tools=[WEATHER], tool_choice=choice)


@pytest.mark.parametrize("reply", [{"reply": {"tool": "rm", "arguments": {}}}, {"reply": {}}, "yes"])
def test_a_reply_outside_its_form_is_invalid(bridge: Callable[..., Any], reply: object) -> None:
    with bridge([reply], granted=[WEATHER]) as (client, _), pytest.raises(ReplyInvalid):
        client.invoke("One", tools=[WEATHER])


def test_a_structured_reply_is_an_object_of_its_class(bridge: Callable[..., Any]) -> None:
    value = {"word": "w", "score": 2}
    with bridge([value, {"reply": {"answer": value}}, {"a": 1}], granted=[WEATHER]) as (client, _):
        plain = client.structured_response(input="One", output_cls=Verdict)
        beside_tools = client.structured_response(input="One", output_cls=Verdict, tools=[WEATHER])
        anything = client.structured_response(input="One", output_cls={"type": "json_object"})
    assert plain.structured_data == beside_tools.structured_data == [Verdict(word="w", score=2)]
    assert anything.structured_data == [{"a": 1}]


def test_i12_a_rule_of_the_class_that_no_schema_says_is_an_error_without_a_quote(
    bridge: Callable[..., Any],
) -> None:
    with bridge([{"word": "w", "score": 3}]) as (client, _), pytest.raises(ReplyInvalid) as caught:
        client.structured_response(input="One", output_cls=Verdict)
    assert CANARY not in str(caught.value)
    assert caught.value.__cause__ is None


def test_a_stream_shows_each_piece_and_ends_with_the_whole(bridge: Callable[..., Any]) -> None:
    with bridge(["Good morning."]) as (client, _):
        *pieces, last = client.stream_invoke("One")
    assert [piece.delta for piece in pieces] == ["Good ", "morni", "ng."]
    assert [piece.text for piece in pieces] == ["Good ", "Good morni", "Good morning."]
    assert (last.text, last.delta) == ("Good morning.", None)


def test_a_stream_with_tools_shows_no_json(bridge: Callable[..., Any]) -> None:
    replies = [{"reply": {"answer": "Noon."}}, {"reply": {"tool": "weather", "arguments": {"city": "P"}}}]
    with bridge(replies, granted=[WEATHER]) as (client, _):
        answered = list(client.stream_invoke("One", tools=[WEATHER]))
        called = list(client.stream_invoke("One", tools=[WEATHER]))
    assert [(each.delta, each.text) for each in answered] == [("Noon.", "Noon."), (None, "Noon.")]
    assert [each.delta for each in called] == [None]
    assert called[0].function_calls[0].arguments == {"city": "P"}


def test_a_stream_that_fails_raises_where_it_is_read(bridge: Callable[..., Any]) -> None:
    with bridge([TransportError("gone")]) as (client, _):
        stream = client.stream_invoke("One")
        with pytest.raises(TransportError, match="gone"):
            list(stream)


class Stuck:
    """A transport whose reply shows one piece and then never goes on. Implements `Transport`."""

    @asynccontextmanager
    async def open(
        self,
        wire: WireRequest,  # noqa: ARG002 - the port
        *,
        credential: Credential | None,  # noqa: ARG002 - the port
    ) -> AsyncIterator[WireReply]:
        async def chunks() -> AsyncIterator[bytes]:
            yield b'{"text": "Good "}\n'
            await anyio.sleep_forever()

        yield WireReply(status=200, chunks=chunks())


def stick(world: World) -> None:
    known = world.perimeter._registrations
    known["scripted"] = replace(known["scripted"], transport=Stuck())


def test_a_stream_that_is_left_is_cancelled_on_record(bridge: Callable[..., Any]) -> None:
    with bridge() as (client, world):
        stick(world)
        stream = client.stream_invoke("One")
        assert next(stream).delta == "Good "
        stream.close()
    assert [result["status"] for result in world.records("egress_result")] == ["cancelled"]


def test_an_asynchronous_stream_is_cancelled_while_it_waits(bridge: Callable[..., Any]) -> None:
    async def go() -> None:
        with bridge() as (client, world):
            stick(world)
            async with anyio.create_task_group() as group:
                async for piece in client.a_stream_invoke("One"):
                    assert piece.delta == "Good "
                    group.cancel_scope.cancel()
        assert [result["status"] for result in world.records("egress_result")] == ["cancelled"]

    anyio.run(go)


def test_every_call_works_inside_a_running_loop(bridge: Callable[..., Any]) -> None:
    value = {"word": "w", "score": 2}

    async def go() -> None:
        with bridge(["a", "b", value, value, "c", "d"]) as (client, _):
            assert client.invoke("One").text == "a"
            assert (await client.a_invoke("One")).text == "b"
            asked: Any = {"input": "One", "output_cls": Verdict}
            assert client.structured_response(**asked).structured_data[0].word == "w"
            assert (await client.a_structured_response(**asked)).structured_data[0].word == "w"
            assert [each.text async for each in client.a_stream_invoke("One")] == ["c", "c"]
            assert [each.text for each in client.stream_invoke("One")] == ["d", "d"]

    anyio.run(go)


# --- what is refused ---------------------------------------------------------------------------


def test_p3_a_tool_that_the_profile_does_not_grant_is_not_offered(bridge: Callable[..., Any]) -> None:
    """It would run outside, and nothing on record would say so."""
    refused = pytest.raises(SealError, match="does not grant the datapizza tool 'weather'")
    with bridge(["Yes."]) as (client, world), refused:
        client.invoke("One", tools=[WEATHER])
    assert world.backend.requests == []


def test_p3_another_tool_of_a_granted_name_is_not_offered(bridge: Callable[..., Any]) -> None:
    other = Tool(lambda **_: "", name="weather", description="Delete a city.", properties={}, required=[])
    with bridge(granted=[WEATHER]) as (client, _), pytest.raises(SealError, match="does not grant"):
        client.invoke("One", tools=[other])


def test_a_tool_that_runs_nothing_needs_no_grant(bridge: Callable[..., Any]) -> None:
    """datapizza's handoffs are such: a name, and no function."""
    handoff = Tool(name="transfer_to_b", properties={"task_input": {"type": "string"}}, required=[])
    with bridge([{"reply": {"tool": "transfer_to_b", "arguments": {}}}]) as (client, _):
        assert client.invoke("One", tools=[handoff]).function_calls[0].name == "transfer_to_b"


def test_p1_without_a_sealed_client_there_is_none(make_world: MakeWorld) -> None:
    world = make_world()
    with world.perimeter.task("Help.") as task:
        for raw in (MockClient(), world.backend, world.perimeter):
            with pytest.raises(SealError, match="takes a sealed client"):
                SealedDatapizzaClient(raw, task=task)
        with pytest.raises(SealError, match="different perimeters"):
            SealedDatapizzaClient(world.client, task=task, tools=make_world().perimeter.seal_tools([]))


PIXEL = b"\x89PNG\r\n\x1a\n a pixel"


def picture(source_type: str, source: object, *, extension: str | None = "png") -> MediaBlock:
    media = Media(media_type="image", source_type=source_type, source=source, extension=extension)
    return MediaBlock(media=media)


@pytest.mark.parametrize("declared", [None, DataClass.C1, DataClass.C3])
def test_i8_media_are_c3_unless_their_class_is_declared(
    declared: DataClass | None, bridge: Callable[..., Any]
) -> None:
    """Whatever class texts have: no rule reads what a picture shows."""
    with bridge(["A dot."], data_class=DataClass.C0, media_class=declared) as (client, world):
        client.invoke([TextBlock(content="What is it?"), picture("raw", PIXEL)])
        (message,) = world.backend.requests[-1].messages
    block = message.blocks[1]
    assert (block.media.mime, block.media.data) == ("image/png", PIXEL)
    assert block.label.data_class is (DataClass.C3 if declared is None else declared)
    assert (block.label.integrity, block.label.sources) == (Integrity.UNTRUSTED, {"datapizza"})


def test_p1_media_are_taken_once_and_as_they_were(bridge: Callable[..., Any]) -> None:
    """As bytes of our own: what their object says later changes nothing."""
    mutable = bytearray(PIXEL)
    memory = Memory()
    memory.add_turn([picture("raw", mutable)], role=ROLE.USER)
    with bridge(["One.", "Two."]) as (client, world):
        client.invoke("First?", memory=memory)
        first = world.backend.requests[-1].messages[0].blocks[0]
        mutable[:] = b"changed"
        client.invoke([picture("base64", base64.b64encode(PIXEL).decode())])
        assert world.backend.requests[-1].messages[0].blocks == (first,)
    assert first.media.data == PIXEL


@pytest.mark.parametrize(
    ("block", "fix"),
    [
        (picture("path", CANARY), "source_type='raw'"),
        (picture("url", CANARY), "source_type='raw'"),
        (picture("pil", CANARY), "source_type='raw'"),
        (picture("raw", CANARY), "source_type='raw'"),
        (picture("base64", f"{CANARY}!"), "encode the bytes"),
        (picture("raw", PIXEL, extension=None), "extension="),
        (picture("raw", PIXEL, extension=CANARY), "extension="),
    ],
    ids=["path", "url", "pil", "raw text", "no base64", "no extension", "unknown extension"],
)
def test_p1_media_that_would_be_read_after_the_gate_are_refused(
    block: MediaBlock, fix: str, bridge: Callable[..., Any]
) -> None:
    with bridge(["never"]) as (client, world):
        with pytest.raises(MediaError) as caught:
            client.invoke([TextBlock(content="x"), block])
        assert world.backend.transport.sent == []
    assert fix in str(caught.value)
    assert CANARY not in str(caught.value)


def test_p1_their_embedding_is_one_batch_through_the_gate(bridge: Callable[..., Any]) -> None:
    with bridge() as (client, world):
        assert client.embed("uno") == list(vector_of("uno"))
        assert anyio.run(client.a_embed, ["due", "tre"]) == [list(vector_of("due")), list(vector_of("tre"))]
        assert client.embed(["uno"], model_name="scripted-embedder") == [list(vector_of("uno"))]
        egresses = world.records("egress")
    assert [(each["backend"], each["class"]) for each in egresses] == [("scripted-embeddings", "C2")] * 3
    assert len(world.embedder.transport.sent) == 3


def test_p1_an_embedding_names_no_model_and_nothing_else(bridge: Callable[..., Any]) -> None:
    with bridge() as (client, world):
        with pytest.raises(SealError, match="names the model"):
            client.embed("uno", "another-model")
        with pytest.raises(SealError, match="extra_body"):
            client.embed("uno", extra_body={"input": CANARY})
        assert world.embedder.transport.sent == []


def test_a_cache_and_an_sdk_are_refused(bridge: Callable[..., Any]) -> None:
    with bridge() as (client, _):
        with pytest.raises(SealError, match="no cache"):
            client.cache = MemoryCache()
        assert client.cache is None
        with pytest.raises(SealError, match="no SDK"):
            client._get_client()
        with pytest.raises(SealError, match="no SDK"):
            client._get_a_client()


def test_i12_no_prompt_is_put_on_a_span_or_in_a_log(
    bridge: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Their own public calls do both: the first half of this test shows it."""
    opened: list[str] = []

    @contextmanager
    def span(name: str) -> Iterator[Any]:
        opened.append(name)
        yield Span()

    monkeypatch.setattr("datapizza.core.clients.client.generation_span", span)
    monkeypatch.setenv("DATAPIZZA_TRACE_CLIENT_IO", "true")
    with caplog.at_level("DEBUG"):
        MockClient().invoke(CANARY)
    assert opened == ["client.invoke"]
    assert CANARY in caplog.text
    caplog.clear()
    with bridge([CANARY] * 3, system_prompt=CANARY) as (client, _), caplog.at_level("DEBUG"):
        client.invoke(CANARY)
        list(client.stream_invoke(CANARY))
        anyio.run(client.a_invoke, CANARY)
    assert opened == ["client.invoke"]
    assert CANARY not in caplog.text


class Span:
    """A span that keeps nothing."""

    def set_attribute(self, *_: object) -> None:
        pass


def test_i12_refusals_name_arguments_and_types_and_quote_nothing(bridge: Callable[..., Any]) -> None:
    with bridge() as (client, _):
        with pytest.raises(SealError, match=r"no further arguments: extra_body, messages$"):
            client.invoke("One", messages=[CANARY], extra_body=CANARY)
        with pytest.raises(SealError, match=r"there is nothing to ask"):
            client.invoke("")


def test_i9_after_its_task_a_client_asks_nothing(bridge: Callable[..., Any]) -> None:
    with bridge(["Yes."]) as (client, world):
        pass
    with pytest.raises(TraceError, match="outside its task"):
        client.invoke("One")
    assert world.backend.transport.sent == []


def test_p1_a_denial_comes_out_as_it_is(make_world: MakeWorld) -> None:
    world = make_world(local=False, ceiling=DataClass.C1)
    with world.perimeter.task("Help.") as task:
        client = SealedDatapizzaClient(world.client, task=task)
        with pytest.raises(EgressDenied) as caught:
            client.invoke(CANARY)
    assert (caught.value.reason, caught.value.data_class) == ("class-above-ceiling", DataClass.C2)
    assert world.backend.transport.sent == []


# --- datapizza's tools as host tools -----------------------------------------------------------


def test_p3_a_datapizza_tool_is_a_host_tool() -> None:
    (tool,) = host_tools([WEATHER])
    assert tool.effect is Effect.HOST
    assert tool.spec.description == "Tell the weather in a city."
    assert tool.spec.parameters["required"] == ["city"]
    assert tool.spec.parameters["additionalProperties"] is False
    assert tool.run(GrantedCall(arguments={"city": "Pisa"}, roots=())).text == "sunny in Pisa"


def test_parameters_with_references_become_plain() -> None:
    def judge(verdict: Verdict) -> str:
        """Judge."""
        return verdict.word

    (tool,) = host_tools([Tool(judge)])
    assert json.loads(json.dumps(tool.spec.parameters)) == tool.spec.parameters


def test_parameters_that_are_not_json_are_refused() -> None:
    bad = Tool(name="bad", properties={"x": {"default": object()}}, required=[])
    with pytest.raises(SealError, match="not a JSON Schema"):
        host_tools([bad])
