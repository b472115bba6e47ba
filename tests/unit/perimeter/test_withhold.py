# SPDX-License-Identifier: Apache-2.0
"""I8, I12: what a grant withholds from a task is nowhere in it, and what is left counts as a whole."""

import json
from dataclasses import replace
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.kernel.errors import ClassifierFault
from runner.kernel.labels import DataClass, Integrity
from runner.kernel.messages import Json, JsonObject, ToolCall
from runner.kernel.ports import Effect, Excerpt, ToolOutput
from runner.perimeter.flows import Flow, Reads, Sink, SinkKind
from runner.perimeter.withhold import MOST_TEXTS, withhold
from runner.testing import FakeClassifier, FakeTool

pytestmark = pytest.mark.anyio
KEY: Final = "xyzzy-plugh"
INSTEAD: Final = "[withheld: above C2]"
SENDING: Final = Sink(kind=SinkKind.NETWORK, ceiling=DataClass.C2, payload=frozenset({"body"}))
TEXT: Final = {"type": "string"}


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def judge(text: str) -> DataClass:
    return DataClass.C3 if KEY in text else DataClass.C1


def shown(value: Any) -> tuple[Any, int]:
    text, count = withhold(json.dumps(value), DataClass.C2, judge)
    return json.loads(text), count


def test_i12_the_texts_that_are_above_go_and_the_others_stay() -> None:
    rows = [
        {"from": "bob", "body": f"the key is {KEY}!", "at": 1.50},
        {"from": "eve", "body": "lunch", "tags": ["a", f"{KEY}"]},
    ]
    assert shown(rows) == (
        [
            {"from": "bob", "body": INSTEAD, "at": 1.50},
            {"from": "eve", "body": "lunch", "tags": ["a", INSTEAD]},
        ],
        2,
    )
    assert shown(KEY) == (INSTEAD, 1)


def test_a_text_of_the_very_class_is_shown() -> None:
    found, count = withhold(
        json.dumps([KEY, "Rossi"]), DataClass.C2, lambda text: max(judge(text), DataClass.C2)
    )
    assert (json.loads(found), count) == ([INSTEAD, "Rossi"], 1)


@pytest.mark.parametrize(
    "text",
    [
        f"the key is {KEY}",
        f'{{"a": 1, "a": "{KEY}"}}',
        f'[NaN, "{KEY}"]',
        json.dumps({KEY: 1}),
        json.dumps(["x"] * MOST_TEXTS + [KEY]),
        "[" * 70 + f'"{KEY}"' + "]" * 70,
        json.dumps([1 << 3000, KEY]),
    ],
    ids=["no json", "twice", "no number", "name of a member", "too many", "too deep", "too large"],
)
def test_i7_what_cannot_be_taken_apart_comes_back_whole_so_that_all_of_it_counts(text: str) -> None:
    assert withhold(text, DataClass.C2, judge) == (text, 0)


def test_a_result_below_is_what_the_tool_returned_to_the_letter() -> None:
    text = '{"a" : 1.0,\n"b":"\\u00e9"}'
    assert withhold(text, DataClass.C2, judge) == (text, 0)


def test_a_text_is_judged_with_the_name_of_the_member_that_it_is() -> None:
    """A password is none by itself."""
    found, count = withhold(
        '{"password": "hunter2", "pets": ["hunter2"]}',
        DataClass.C2,
        lambda text: DataClass.C3 if '"password": "hunter2"' in text else DataClass.C0,
    )
    assert (json.loads(found), count) == ({"password": INSTEAD, "pets": ["hunter2"]}, 1)


_JSON: Final = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.just(KEY),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
)


@given(value=_JSON)
def test_i12_nothing_that_is_above_by_itself_is_shown(value: Any) -> None:
    """Whatever its shape: and nothing else is changed."""
    found, count = shown(value)
    assert KEY not in json.dumps(found)
    assert json.dumps(found).count(INSTEAD) - json.dumps(value).count(INSTEAD) == count
    assert json.loads(json.dumps(value).replace(KEY, INSTEAD)) == found


# --- in a task -----------------------------------------------------------------------------------------


def parts(
    rows: Json, most: DataClass | None = DataClass.C2, *, found: DataClass = DataClass.C3
) -> tuple[list[FakeTool], dict[str, Any]]:
    """Return a tool that reads `rows` and one that sends, and the settings of a world for them."""
    none: frozenset[str] = frozenset()
    schema: JsonObject = {
        "type": "object",
        "properties": {"to": TEXT, "body": TEXT},
        "additionalProperties": False,
    }
    excerpt = Excerpt(text=f"the key is {KEY}", file="files/a.txt", line=1)
    read = FakeTool(
        name="read",
        effect=Effect.HOST,
        parameters={**schema, "properties": {}},
        path_arguments=none,
        output=ToolOutput(text=json.dumps(rows), excerpts=(excerpt,)),
    )
    send = FakeTool(name="send", effect=Effect.HOST, parameters=schema, path_arguments=none)
    reads = Reads(data_class=DataClass.C1, integrity=Integrity.UNTRUSTED, most=most)
    return [read, send], {
        "flows": {"read": Flow(reads=reads), "send": Flow(sink=SENDING)},
        "classifier": FakeClassifier({KEY: found}),
    }


@pytest.fixture
def work(make_world: Any, grant: Any) -> Any:
    """Return a maker of worlds and sealed tools out of `parts`."""

    def make(rows: Json, most: DataClass | None = DataClass.C2, **more: Any) -> tuple[Any, Any]:
        made, settings = parts(rows, most, **more)
        grants = {
            tool.spec.name: replace(grant(tool, roots=()), flow=settings["flows"][tool.spec.name])
            for tool in made
        }
        world = make_world(grants=grants, classifier=settings["classifier"])
        return world, world.perimeter.seal_tools(made)

    return make


def call(task: Any, tool: str, **arguments: Any) -> ToolCall:
    return ToolCall(tool=tool, arguments=arguments, origin=task.goal)


ROWS: Final = [{"from": "bob", "body": f"the key is {KEY}"}, {"from": "eve", "body": "lunch"}]


async def test_i8_a_task_that_was_not_shown_a_secret_may_still_send_and_has_it_nowhere(work: Any) -> None:
    world, sealed = work(ROWS)
    with world.perimeter.task("tell anna@a.example") as task:
        reply = await sealed.call(call(task, "read"), task=task)
        sent = await sealed.call(call(task, "send", to="anna@a.example", body="lunch"), task=task)
        assert (reply.withheld, reply.excerpts, task.mark.data_class) == (1, (), DataClass.C2)
        assert not any(KEY in block.text for block in task.blocks)
        assert KEY not in repr(task.ledger.known(task.mark).results[0].text)
    assert sent.status == "ok"
    assert KEY not in json.dumps(world.records())


async def test_i8_without_that_the_same_result_keeps_the_task_from_sending(work: Any) -> None:
    world, sealed = work(ROWS, None)
    with world.perimeter.task("tell anna@a.example") as task:
        reply = await sealed.call(call(task, "read"), task=task)
        sent = await sealed.call(call(task, "send", to="anna@a.example", body="lunch"), task=task)
        assert (reply.withheld, len(reply.excerpts), task.mark.data_class) == (0, 1, DataClass.C3)
    assert (sent.status, sent.rule) == ("denied", "above-sink")


@pytest.mark.parametrize(
    "rows", [{KEY: "lunch"}, "x" * 5, [KEY[:5], KEY[5:]]], ids=["name", "nothing", "split"]
)
async def test_i8_what_is_left_is_judged_as_a_whole(work: Any, rows: Json) -> None:
    """What stands in the name of a member is shown, and counts."""
    world, sealed = work(rows)
    with world.perimeter.task("q") as task:
        await sealed.call(call(task, "read"), task=task)
        assert task.mark.data_class is (DataClass.C3 if KEY in json.dumps(rows) else DataClass.C1)


async def test_i8_a_declared_class_is_not_lowered(make_world: Any, grant: Any) -> None:
    made, settings = parts(ROWS)
    reads = Reads(data_class=DataClass.C3, most=DataClass.C2)
    world = make_world(
        grants={"read": replace(grant(made[0], roots=()), flow=Flow(reads=reads))},
        classifier=settings["classifier"],
    )
    with world.perimeter.task("q") as task:
        await world.perimeter.seal_tools(made[:1]).call(call(task, "read"), task=task)
        assert task.mark.data_class is DataClass.C3


async def test_i7_a_classifier_that_fails_shows_nothing(make_world: Any, grant: Any) -> None:
    made, settings = parts(ROWS)
    world = make_world(
        grants={"read": replace(grant(made[0], roots=()), flow=settings["flows"]["read"])},
        classifier=FakeClassifier(),
    )
    with world.perimeter.task("q") as task:
        task._classifier = FakeClassifier(fault=ValueError("x"))
        with pytest.raises(ClassifierFault):
            await world.perimeter.seal_tools(made[:1]).call(call(task, "read"), task=task)
        assert len(task.blocks) == 1
