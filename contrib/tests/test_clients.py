# SPDX-License-Identifier: Apache-2.0
"""Both clients against a scripted server: what they ask, what they make of the replies, what they refuse."""

import ast
import asyncio
import importlib
import json
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from datapizza.agents import Agent
from datapizza.memory import Memory
from datapizza.tools import tool
from datapizza.type import ROLE, FunctionCallBlock, FunctionCallResultBlock, TextBlock
from pydantic import BaseModel

NAMES = {"llamacpp": "LlamaCppClient", "vllm": "VllmClient"}


class Town(BaseModel):
    """What a structured reply is."""

    name: str
    people: int


@tool
def weather(city: str, days: int = 1) -> str:
    """Say what the weather is."""
    return f"sunny in {city} for {days}"


@pytest.fixture(params=sorted(NAMES))
def client(request: pytest.FixtureRequest, server: Any) -> Iterator[Any]:
    module = importlib.import_module(f"datapizza.clients.{request.param}")
    made = getattr(module, NAMES[request.param])(model="m", base_url=server.url, system_prompt="Be brief.")
    yield made
    made.close()


def _errors() -> tuple[type[Exception], ...]:
    return tuple(importlib.import_module(f"datapizza.clients.{name}").ReplyError for name in NAMES)


def test_a_wheel_holds_its_grammar_room_and_nothing_of_the_runner(wheels: dict[str, Path]) -> None:
    assert wheels.keys() == NAMES.keys()
    for name, wheel in wheels.items():
        with zipfile.ZipFile(wheel) as archive:
            held = set(archive.namelist())
            assert {f"datapizza/clients/{name}/{file}" for file in ("client.py", "constrained.py")} <= held
            assert f"datapizza/clients/{name}/grammar/compile.py" in held
            assert "datapizza/clients/__init__.py" not in held
            sources = [archive.read(file).decode() for file in held if file.endswith(".py")]
        imported = {
            (node.module or "").partition(".")[0]
            for source in sources
            for node in ast.walk(ast.parse(source))
            if isinstance(node, ast.ImportFrom) and not node.level
        }
        assert "runner" not in imported


def test_a_text_is_asked_for_as_it_is(client: Any, server: Any) -> None:
    server.says("ciao")
    response = client.invoke("Say hello.", temperature=0.2, max_tokens=9, seed=3)
    assert (response.text, response.stop_reason, response.usage.prompt_tokens) == ("ciao", "stop", 5)
    ((path, body),) = server.asked
    assert path == "/v1/chat/completions"
    assert body == {
        "model": "m",
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Say hello."}],
        "max_tokens": 9,
        "seed": 3,
        "temperature": 0.2,
    }


def test_a_call_is_chosen_and_then_filled_under_a_constraint(client: Any, server: Any) -> None:
    server.says('{"tool": "weather"}', '{"city": "Roma", "days": 3}')
    response = client.invoke("Weather in Rome for three days?", tools=[weather])
    (call,) = response.function_calls
    assert (call.name, call.arguments, call.tool.name) == ("weather", {"city": "Roma", "days": 3}, "weather")
    assert response.usage.completion_tokens == 4
    bodies = [body for _, body in server.asked]
    assert all("tools" not in body for body in bodies)
    assert all("grammar" in body or "structured_outputs" in body for body in bodies)
    assert "Tool weather: Say what the weather is." in bodies[0]["messages"][0]["content"]


def test_a_choice_to_answer_is_followed_by_the_answer(client: Any, server: Any) -> None:
    server.says('{"tool": "answer"}', "No need to look.")
    assert client.invoke("Hello?", tools=[weather]).text == "No need to look."
    assert "grammar" not in server.asked[1][1]
    assert "structured_outputs" not in server.asked[1][1]


@pytest.mark.parametrize(
    ("choice", "names"),
    [("required", ["weather"]), (["weather"], ["weather"]), ("auto", ["weather", "answer"])],
)
def test_tool_choice_leaves_what_it_says(client: Any, server: Any, choice: Any, names: list[str]) -> None:
    server.says(json.dumps({"tool": names[-1]}), '{"city": "Roma"}')
    client.invoke("?", tools=[weather], tool_choice=choice)
    assert server.asked[0][1]["messages"][-1]["content"] == f"Choose one: {', '.join(names)}."


def test_a_structured_reply_is_an_object_of_its_class(client: Any, server: Any) -> None:
    server.says('{"name": "Siena", "people": 53000}')
    (town,) = client.structured_response(input="A town?", output_cls=Town).structured_data
    assert town == Town(name="Siena", people=53000)


def test_the_two_runtimes_are_told_in_their_own_words(server: Any) -> None:
    for name, member in (("llamacpp", "grammar"), ("vllm", "structured_outputs")):
        server.says('{"name": "Siena", "people": 1}')
        made = getattr(importlib.import_module(f"datapizza.clients.{name}"), NAMES[name])(base_url=server.url)
        made.structured_response(input="?", output_cls=Town)
        made.close()
        assert member in server.asked[-1][1]
    assert "root ::=" in server.asked[0][1]["grammar"]
    assert server.asked[1][1]["structured_outputs"] == {"grammar": server.asked[0][1]["grammar"]}


@pytest.mark.parametrize(
    ("text", "finish", "reason"),
    [
        ("Siena, I think", "stop", "malformed_json"),
        ('{"name": "Siena"}', "stop", "schema_violation"),
        ('{"name": "Siena", "people": "many"}', "stop", "schema_violation"),
        ('{"name": "Sie', "length", "truncated"),
    ],
)
def test_a_server_that_ignores_the_constraint_is_found_out(
    client: Any, server: Any, text: str, finish: str, reason: str
) -> None:
    server.says(text, finish=finish)
    with pytest.raises(_errors(), match=reason) as caught:
        client.structured_response(input="?", output_cls=Town)
    assert "Siena" not in str(caught.value)


def test_a_stream_comes_in_pieces_and_ends_whole(client: Any, server: Any) -> None:
    events = [
        {"choices": [{"delta": {"content": "ci"}}]},
        {"choices": [{"delta": {"content": "ao"}, "finish_reason": "stop"}]},
        {"choices": [], "usage": {"prompt_tokens": 4, "completion_tokens": 2}},
    ]
    stream = (
        b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events) + b"data: [DONE]\n\n"
    )
    server.answers += [stream, stream, stream[:20]]
    assert [piece.delta for piece in client.stream_invoke("?")] == ["ci", "ao", None]

    async def collect() -> list[Any]:
        try:
            return [piece async for piece in client.a_stream_invoke("?")]
        finally:
            await client.a_close()

    pieces = asyncio.run(collect())
    assert [piece.text for piece in pieces] == ["ci", "ciao", "ciao"]
    assert pieces[-1].usage.completion_tokens == 2
    with pytest.raises((*_errors(), ValueError)):
        list(client.stream_invoke("?"))


def test_a_stream_with_tools_chooses_first(client: Any, server: Any) -> None:
    server.says('{"tool": "weather"}', '{"city": "Roma"}')
    (response,) = client.stream_invoke("?", tools=[weather])
    assert response.function_calls[0].arguments == {"city": "Roma"}


def test_waiting_and_awaiting_do_the_same(client: Any, server: Any) -> None:
    server.says('{"tool": "weather"}', '{"city": "Roma"}', '{"tool": "weather"}', '{"city": "Roma"}')
    client.invoke("?", tools=[weather])

    async def awaited() -> None:
        await client.a_invoke("?", tools=[weather])
        await client.a_close()

    asyncio.run(awaited())
    assert server.asked[:2] == server.asked[2:]


@pytest.mark.parametrize("status", [301, 307, 400, 500, 503])
def test_a_failure_is_an_error_and_no_redirect_is_followed(client: Any, server: Any, status: int) -> None:
    server.answers.append(status)
    with pytest.raises(_errors(), match=f"status {status}"):
        client.invoke("secret")
    assert len(server.asked) == 1


def test_what_could_undo_a_constraint_is_no_argument(client: Any, server: Any) -> None:
    for name in (
        "messages",
        "extra_body",
        "grammar",
        "response_format",
        "structured_outputs",
        "tools_choice",
    ):
        with pytest.raises(TypeError, match=name):
            client.invoke("?", **{name: {}})
    assert server.asked == []


def test_memory_is_written_as_text(client: Any, server: Any) -> None:
    memory = Memory()
    memory.add_turn([TextBlock(content="Weather?")], ROLE.USER)
    memory.add_turn(
        [FunctionCallBlock(id="1", arguments={"city": "Roma"}, name="weather", tool=weather)], ROLE.ASSISTANT
    )
    memory.add_turn([FunctionCallResultBlock(id="1", tool=weather, result="sunny")], ROLE.TOOL)
    server.says("It is sunny.")
    client.invoke("So?", memory=memory)
    assert [(each["role"], each["content"]) for each in server.asked[0][1]["messages"][1:]] == [
        ("user", "Weather?"),
        ("assistant", '{"tool": "weather", "arguments": {"city": "Roma"}}'),
        ("user", "Result of weather:\nsunny"),
        ("user", "So?"),
    ]


def test_embeddings_come_in_the_order_of_the_texts(client: Any, server: Any) -> None:
    server.answers.append({"data": [{"index": 1, "embedding": [2.0]}, {"index": 0, "embedding": [1.0]}]})
    assert client.embed(["a", "b"], "e") == [[1.0], [2.0]]
    assert server.asked[0] == ("/v1/embeddings", {"model": "e", "input": ["a", "b"]})
    server.answers.append({"data": []})
    with pytest.raises(_errors(), match="number of vectors"):
        client.embed("a", "e")


def test_an_agent_works_with_it(client: Any, server: Any, capsys: pytest.CaptureFixture[str]) -> None:
    server.says('{"tool": "weather"}', '{"city": "Roma"}', '{"tool": "answer"}', "It is sunny.")
    agent = Agent(name="a", client=client, tools=[weather], max_steps=3)
    assert agent.run("Weather in Rome?").text == "It is sunny."
    assert "sunny in Roma" in json.dumps(server.asked[-1][1])
    capsys.readouterr()
