# SPDX-License-Identifier: Apache-2.0
"""P1 at the datapizza seam: every way past a naive proxy is tried with a canary, and none arrives.

Each route is first shown to leak through a proxy of the obvious kind, so that the other half means something.
"""

import base64
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import pytest
from datapizza.agents import Agent
from datapizza.core.clients import Client
from datapizza.memory import Memory
from datapizza.pipeline import DagPipeline, FunctionalPipeline
from datapizza.tools import Tool
from datapizza.type import ROLE, FunctionCallResultBlock, Media, MediaBlock, TextBlock
from openai import NotFoundError
from pydantic import BaseModel, Field

from runner import DataClass, EgressDenied, Runtime, open_profile
from runner.adapters.datapizza import SealedDatapizzaClient, from_datapizza
from runner.kernel.errors import MediaError, RunnerError, SealError, TransportError
from runner.testing import Redirect, ScriptedServer

CANARY = "lodestar-7731-quietus"
QUESTION = "Good morning."
Route = Callable[[Any, Path], object]


class Answer(BaseModel):
    word: str


class Told(BaseModel):
    word: str = Field(description=CANARY)


class NaiveProxy:
    """Judges what `invoke` is asked, and forwards everything else."""

    def __init__(self, inner: Client) -> None:
        self._inner = inner

    def invoke(self, asked: Any, **kwargs: Any) -> Any:
        assert CANARY not in str(asked)
        return self._inner.invoke(asked, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


def _memory() -> Memory:
    memory = Memory()
    memory.add_turn(TextBlock(content=CANARY), role=ROLE.USER)
    return memory


def _tool_result() -> Memory:
    memory = Memory()
    result = FunctionCallResultBlock(id="1", tool=Tool(name="look"), result=CANARY)
    memory.add_turn(result, role=ROLE.TOOL)
    return memory


def _told(client: Any) -> object:
    described = Tool(name="look", description=CANARY, properties={}, required=[])
    return client.invoke(QUESTION, tools=[described])


def _by_path(client: Any, folder: Path) -> object:
    (folder / "scan.png").write_text(CANARY)
    media = Media(media_type="image", source_type="path", source=str(folder / "scan.png"), extension="png")
    return client.invoke([TextBlock(content=QUESTION), MediaBlock(media=media)])


def _raw(client: Any) -> object:
    return client.client.chat.completions.create(model="m", messages=_said(CANARY))


def _media(client: Any, **source: str) -> object:
    media = Media(media_type="image", extension="png", **source)
    return client.invoke([TextBlock(content=QUESTION), MediaBlock(media=media)])


def _defaulted(client: Any) -> object:
    properties = {"where": {"type": "string", "default": CANARY}}
    return client.invoke(QUESTION, tools=[Tool(name="look", properties=properties, required=[])])


def _given(text: str) -> dict[str, Any]:
    """Return the arguments that their public methods pass on to those beneath."""
    return {
        "input": [TextBlock(content=text)],
        "tools": [],
        "memory": None,
        "tool_choice": "auto",
        "temperature": None,
        "max_tokens": None,
        "system_prompt": None,
    }


def _formed(text: str) -> dict[str, Any]:
    return {**_given(text), "output_cls": Answer}


def _queried(client: Any) -> None:
    with suppress(NotFoundError):  # the server knows no such path; it has seen it all the same
        client.invoke(QUESTION, extra_query={"q": CANARY})


def _graph(client: Any) -> object:
    graph = DagPipeline()
    graph.add_module("ask", client.as_module_component())
    return graph.run({"ask": {"input": CANARY}})


def _line(client: Any) -> object:
    line = FunctionalPipeline().run("ask", client.as_module_component(), kwargs={"input": CANARY})
    return line.execute()


def _agent(client: Any) -> Agent:
    return Agent(name="helper", client=client, max_steps=2)


def _said(text: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": text}]


ROUTES: dict[str, Route] = {
    "stream_invoke": lambda client, _: list(client.stream_invoke(CANARY)),
    "_invoke": lambda client, _: client._invoke(**_given(CANARY)),
    "_stream_invoke": lambda client, _: list(client._stream_invoke(**_given(CANARY))),
    "_structured_response": lambda client, _: client._structured_response(**_formed(CANARY)),
    ".client": lambda client, _: _raw(client),
    "system_prompt=": lambda client, _: client.invoke(QUESTION, system_prompt=CANARY),
    "as_module_component": lambda client, _: client.as_module_component().run(input=CANARY),
    "as_stream_module_component": lambda client, _: list(
        client.as_stream_module_component().run(input=CANARY)
    ),
    "as_structured_response_module_component": lambda client, _: (
        client.as_structured_response_module_component().run(input=CANARY, output_cls=Answer)
    ),
    "a DagPipeline": lambda client, _: _graph(client),
    "a FunctionalPipeline": lambda client, _: _line(client),
    "Agent.run": lambda client, _: _agent(client).run(CANARY),
    "Agent.stream_invoke": lambda client, _: list(_agent(client).stream_invoke(CANARY)),
    "structured_response": lambda client, _: client.structured_response(input=CANARY, output_cls=Answer),
    "memory=": lambda client, _: client.invoke(QUESTION, memory=_memory()),
    "a tool's result": lambda client, _: client.invoke(QUESTION, memory=_tool_result()),
    "a tool's description": lambda client, _: _told(client),
    "a tool's default": lambda client, _: _defaulted(client),
    "the form of an answer": lambda client, _: client.structured_response(input="Well?", output_cls=Told),
    "messages=": lambda client, _: client.invoke(QUESTION, messages=_said(CANARY)),
    "model=": lambda client, _: client.invoke(QUESTION, model=CANARY),
    "extra_body=": lambda client, _: client.invoke(QUESTION, extra_body={"messages": _said(CANARY)}),
    "extra_headers=": lambda client, _: client.invoke(QUESTION, extra_headers={"x-note": CANARY}),
    "extra_query=": lambda client, _: _queried(client),
    "user=": lambda client, _: client.invoke(QUESTION, user=CANARY),
    "a path in a MediaBlock": _by_path,
    "an address in a MediaBlock": lambda client, _: _media(
        client, source_type="url", source=f"https://media.example/{CANARY}.png"
    ),
    "Base64 in a MediaBlock": lambda client, _: _media(
        client, source_type="base64", source=base64.b64encode(CANARY.encode()).decode()
    ),
}
ASYNC_ROUTES: dict[str, Route] = {
    "a_invoke": lambda client, _: client.a_invoke(CANARY),
    "a_structured_response": lambda client, _: client.a_structured_response(input=CANARY, output_cls=Answer),
    "a_stream_invoke": lambda client, _: _drained(client.a_stream_invoke(CANARY)),
    "_a_invoke": lambda client, _: client._a_invoke(**_given(CANARY)),
    "_a_structured_response": lambda client, _: client._a_structured_response(**_formed(CANARY)),
    "_a_stream_invoke": lambda client, _: _drained(client._a_stream_invoke(**_given(CANARY))),
    "as_module_component, awaited": lambda client, _: client.as_module_component().a_run(input=CANARY),
    "Agent.a_run": lambda client, _: _agent(client).a_run(CANARY),
}
JUDGED_BY_THE_PROXY = {"Agent.run", "Agent.stream_invoke"}
"""Routes that end in `invoke`, the one method that a naive proxy judges."""
REFUSED_AS_SUCH = {
    ".client": AttributeError,
    "messages=": SealError,
    "model=": SealError,
    "extra_body=": SealError,
    "extra_headers=": SealError,
    "extra_query=": SealError,
    "user=": SealError,
    "a path in a MediaBlock": MediaError,
    "an address in a MediaBlock": MediaError,
    "Base64 in a MediaBlock": EgressDenied,  # media that nobody labelled are C3, whatever texts are declared
}


async def _drained(stream: Any) -> list[Any]:
    return [each async for each in stream]


def arrived(server: ScriptedServer) -> bool:
    """Whether the canary is among the bytes that reached `server`, as it is or in Base64."""
    received = b"".join(server.received)
    return any(form in received for form in (CANARY.encode(), base64.b64encode(CANARY.encode())))


def openai_like(url: str) -> Client:
    clients = pytest.importorskip("datapizza.clients.openai_like")
    return clients.OpenAILikeClient(api_key="sk-none", model="m", base_url=f"{url}/v1")


def profile(url: str) -> dict[str, Any]:
    return {
        "policy": {"grants": []},
        "perimeter": {"max_egress_class": "C1"},
        "inference": {
            "prefer": "remote",
            "local": None,
            "remote": {"backend": "openai", "endpoint": url, "model": "m"},
        },
    }


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AKAION_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("DATAPIZZA_AGENT_LOG_LEVEL", "ERROR")  # their runner prints results to the screen


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer(replies=['{"word": "yes"}'] * 3) as running:
        yield running


@pytest.fixture(params=["our codec", "their codec"])
def runtime(request: pytest.FixtureRequest, server: ScriptedServer) -> Iterator[Runtime]:
    """A profile whose remote takes C1 at most, over the runner's own codec and over their client."""
    codecs = [from_datapizza(openai_like(server.url))] if request.param == "their codec" else []
    with open_profile("attached", codecs=codecs, **profile(server.url)) as opened:
        yield opened


# --- synchronous routes ------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in ROUTES if name not in JUDGED_BY_THE_PROXY])
def test_a_naive_proxy_leaks_by_this_route(name: str, server: ScriptedServer, tmp_path: Path) -> None:
    ROUTES[name](NaiveProxy(openai_like(server.url)), tmp_path)
    assert arrived(server)


@pytest.mark.parametrize("name", ROUTES)
def test_p1_nothing_leaks_through_a_sealed_client_by_this_route(
    name: str, server: ScriptedServer, runtime: Runtime, tmp_path: Path
) -> None:
    with runtime.client.task(QUESTION) as task:
        client = SealedDatapizzaClient(runtime.client, task=task)
        with pytest.raises(REFUSED_AS_SUCH.get(name, EgressDenied)):
            ROUTES[name](client, tmp_path)
    assert server.received == []


@pytest.mark.parametrize("name", [name for name in ROUTES if name not in REFUSED_AS_SUCH])
def test_the_same_route_is_open_to_what_may_leave(
    name: str, server: ScriptedServer, runtime: Runtime, tmp_path: Path
) -> None:
    """A closed door proves nothing: declared C1 under a ceiling of C1, the text does arrive."""
    with runtime.client.task(QUESTION) as task:
        client = SealedDatapizzaClient(runtime.client, task=task, data_class=DataClass.C1)
        try:
            ROUTES[name](client, tmp_path)
        except RunnerError as error:
            assert not isinstance(error, EgressDenied | SealError)  # noqa: PT017 - a reply may not fit
    assert arrived(server)


# --- asynchronous routes -----------------------------------------------------------------------


@pytest.mark.parametrize("name", ASYNC_ROUTES)
def test_a_naive_proxy_leaks_by_this_asynchronous_route(
    name: str, server: ScriptedServer, tmp_path: Path
) -> None:
    async def go() -> None:
        client = NaiveProxy(openai_like(server.url))
        await ASYNC_ROUTES[name](client, tmp_path)  # type: ignore[misc]  # datapizza's coroutines
        await client.a_client.close()

    anyio.run(go)
    assert arrived(server)


@pytest.mark.parametrize("name", ASYNC_ROUTES)
def test_p1_nothing_leaks_through_a_sealed_client_by_this_asynchronous_route(
    name: str, server: ScriptedServer, runtime: Runtime, tmp_path: Path
) -> None:
    async def go() -> None:
        with runtime.client.task(QUESTION) as task:
            client = SealedDatapizzaClient(runtime.client, task=task)
            with pytest.raises(EgressDenied):
                await ASYNC_ROUTES[name](client, tmp_path)  # type: ignore[misc]  # as above

    anyio.run(go)
    assert server.received == []


# --- redirects, and the client that was handed over ----------------------------------------------


def test_their_sdk_sends_the_whole_prompt_on_to_wherever_a_server_says() -> None:
    with ScriptedServer(replies=["elsewhere"]) as elsewhere:
        moved = Redirect(location=f"{elsewhere.url}/v1/chat/completions")
        with ScriptedServer(replies=[moved]) as server:
            openai_like(server.url).invoke(CANARY)
        assert arrived(elsewhere)


@pytest.mark.parametrize("theirs", [False, True], ids=["our codec", "their codec"])
def test_p1_a_redirect_is_not_followed(theirs: bool) -> None:
    with ScriptedServer(replies=["elsewhere"]) as elsewhere:
        moved = Redirect(location=f"{elsewhere.url}/v1/chat/completions")
        with ScriptedServer(replies=[moved]) as server:
            codecs = [from_datapizza(openai_like(server.url))] if theirs else []
            runtime = open_profile("attached", codecs=codecs, **profile(server.url))
            with runtime, runtime.client.task(QUESTION) as task:
                client = SealedDatapizzaClient(runtime.client, task=task, data_class=DataClass.C0)
                with pytest.raises(TransportError, match="redirects are not followed"):
                    client.invoke(CANARY)
            assert arrived(server)
        assert elsewhere.received == []


@pytest.mark.parametrize("name", ROUTES)
def test_p1_a_client_that_was_handed_over_sends_nothing_by_any_route(
    name: str, server: ScriptedServer, tmp_path: Path
) -> None:
    """The caller may still hold it: its SDK has no connection any more, and does not make a new one."""
    client = openai_like(server.url)
    from_datapizza(client)
    with pytest.raises(Exception, match="Connection error") as caught:
        ROUTES[name](client, tmp_path)
    assert isinstance(caught.value.__cause__, SealError)
    assert server.received == []


@pytest.mark.parametrize("name", ASYNC_ROUTES)
def test_p1_nor_by_any_asynchronous_route(name: str, server: ScriptedServer, tmp_path: Path) -> None:
    async def go() -> None:
        client = openai_like(server.url)
        from_datapizza(client)
        with pytest.raises(Exception, match="Connection error") as caught:
            await ASYNC_ROUTES[name](client, tmp_path)  # type: ignore[misc]  # as above
        assert isinstance(caught.value.__cause__, SealError)

    anyio.run(go)
    assert server.received == []
