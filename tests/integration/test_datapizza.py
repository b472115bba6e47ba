# SPDX-License-Identifier: Apache-2.0
"""P1, P3, I9: a datapizza Agent inside a profile, and a datapizza client as a codec, over real sockets."""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio
import pytest
from datapizza.agents import Agent
from datapizza.core.clients import Client
from datapizza.tools import Tool
from pydantic import BaseModel

from runner import ConfigError, DataClass, StopReason, open_profile
from runner.adapters.datapizza import SealedDatapizzaClient, from_datapizza, host_tools
from runner.capability.transport.salts import FileSaltStore
from runner.kernel.errors import BackendError, EgressDenied
from runner.kernel.inference import InferenceRequest
from runner.kernel.messages import JsonObject, Message, Role
from runner.perimeter.trace.commit import commitment
from runner.testing import ScriptedServer, ServerError, oblige

ROOT = Path(__file__).resolve().parents[2]
CALLED: list[str] = []


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    CALLED.clear()
    monkeypatch.setenv("AKAION_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("DATAPIZZA_AGENT_LOG_LEVEL", "ERROR")  # their runner prints results to the screen
    return tmp_path / "home"


def weather(city: str) -> str:
    """Tell the weather in a city."""
    CALLED.append(city)
    return f"sunny in {city}"


class Forecast(BaseModel):
    city: str
    sunny: bool


WEATHER = Tool(weather)
CALL: JsonObject = {"reply": {"tool": "weather", "arguments": {"city": "Pisa"}}}
ANSWER: JsonObject = {"reply": {"answer": "Take your hat."}}


def attached(url: str, *grants: JsonObject, **more: Any) -> dict[str, Any]:
    remote = {"backend": "openai", "endpoint": url, "model": "m", **more}
    return {
        "policy": {"grants": list(grants)},
        "perimeter": {"max_egress_class": "C1"},
        "inference": {"prefer": "remote", "local": None, "remote": remote},
    }


def openai_like(url: str, **more: Any) -> Client:
    clients = pytest.importorskip("datapizza.clients.openai_like")
    return clients.OpenAILikeClient(
        **{"api_key": "sk-of-theirs", "model": "m", "base_url": f"{url}/v1", **more}
    )


def records(book: Path, kind: str) -> list[dict[str, Any]]:
    lines = [line for log in sorted(book.glob("*.jsonl")) for line in log.read_bytes().splitlines()]
    return [entry["body"] for line in lines if (entry := json.loads(line))["kind"] == kind]


def verify(book: Path, pin: Path) -> dict[str, Any]:
    command = [sys.executable, "-I", "-S", str(ROOT / "verify" / "akaion_verify.py"), str(book)]
    done = subprocess.run(
        [*command, "--json", "--pin", str(pin)], capture_output=True, text=True, check=False
    )
    verdict: dict[str, Any] = json.loads(done.stdout)
    return verdict


# --- a datapizza Agent through the sealed client -------------------------------------------------


@pytest.mark.parametrize("how", ["run", "a_run", "stream"])
@pytest.mark.parametrize("theirs", [False, True], ids=["our codec", "their codec"])
def test_p1_an_agent_with_a_tool_runs_inside(how: str, theirs: bool) -> None:
    with ScriptedServer(replies=[CALL, ANSWER]) as server:
        codecs = [from_datapizza(openai_like(server.url))] if theirs else []
        profile = attached(server.url, {"tool": "weather", "trusted": True})
        runtime = open_profile("attached", tools=host_tools([WEATHER]), codecs=codecs, **profile)
        with runtime, runtime.client.task("Hat or umbrella?") as task:
            client = SealedDatapizzaClient(
                runtime.client, task=task, tools=runtime.tools, data_class=DataClass.C1
            )
            agent = Agent(name="helper", client=client, tools=[WEATHER], max_steps=4)
            match how:
                case "run":
                    text = agent.run("Hat or umbrella?").text
                case "a_run":
                    text = anyio.run(agent.a_run, "Hat or umbrella?").text
                case _:
                    text = list(agent.stream_invoke("Hat or umbrella?"))[-1].text
        assert text == "Take your hat."
        assert CALLED == ["Pisa"]
        assert b"Result of weather:\\nsunny in Pisa" in server.bodies[1]
        sizes = [len(body) for body in server.bodies]
    sent = records(runtime.trace_path, "egress")
    assert [(each["bytes"], each["decision"]) for each in sent] == [(size, "allowed") for size in sizes]


@pytest.mark.parametrize(("trusted", "verdict"), [(True, "PASS"), (False, "UNVERIFIABLE")])
def test_p3_the_trace_says_that_their_tools_ran_outside(trusted: bool, verdict: str, tmp_path: Path) -> None:
    with ScriptedServer(replies=[CALL, ANSWER]) as server:
        profile = attached(server.url, {"tool": "weather", "trusted": trusted})
        runtime = open_profile("attached", tools=host_tools([WEATHER]), **profile)
        runtime.export_pin(tmp_path / "pin")
        with runtime, runtime.client.task("Hat or umbrella?") as task:
            client = SealedDatapizzaClient(
                runtime.client, task=task, tools=runtime.tools, data_class=DataClass.C1
            )
            Agent(name="helper", client=client, tools=[WEATHER]).run("Hat or umbrella?")
    told = verify(runtime.trace_path, tmp_path / "pin")
    assert told["verdict"] == verdict
    assert told["host_tools"] == [{"name": "weather", "trusted": trusted}]


def test_p1_by_default_an_agent_cannot_reach_a_remote_model() -> None:
    with ScriptedServer(replies=[ANSWER]) as server:
        runtime = open_profile("attached", **attached(server.url))
        with runtime, runtime.client.task("Hat or umbrella?") as task:
            client = SealedDatapizzaClient(runtime.client, task=task)
            with pytest.raises(EgressDenied, match="class-above-ceiling"):
                Agent(name="helper", client=client).run("Hat or umbrella?")
        assert server.received == []
    assert records(runtime.trace_path, "egress")[0]["decision"] == "denied"


def test_p1_what_a_tool_found_before_taints_the_agent() -> None:
    """One task: what the runner read as C2 stays C2 for datapizza, which knows no labels."""
    with ScriptedServer(replies=["Yes."]) as server:
        runtime = open_profile("attached", **attached(server.url))
        with runtime, runtime.client.task("Summarise.") as task:
            task.foreign("from a file", declared=DataClass.C2, source="files")
            client = SealedDatapizzaClient(runtime.client, task=task, data_class=DataClass.C0)
            with pytest.raises(EgressDenied):
                client.invoke("Hello.")
        assert server.received == []


def test_an_agent_that_plans_and_answers_in_a_class() -> None:
    replies: list[JsonObject] = [
        {"task": "Look.", "steps": ["look"]},
        {"city": "Pisa", "sunny": True},
    ]
    with ScriptedServer(replies=replies) as server:
        runtime = open_profile("attached", **attached(server.url))
        with runtime, runtime.client.task("Hat or umbrella?") as task:
            client = SealedDatapizzaClient(runtime.client, task=task, data_class=DataClass.C0)
            agent = Agent(name="helper", client=client, output_cls=Forecast, planning_interval=1)
            step = agent.run("Hat or umbrella?")
    assert step.structured_data == [Forecast(city="Pisa", sunny=True)]


# --- a datapizza client as a codec -----------------------------------------------------------------


def test_p1_the_bytes_received_are_the_bytes_on_record(home: Path) -> None:
    with ScriptedServer(replies=[oblige] * 4) as server:
        client = openai_like(server.url)
        runtime = open_profile("attached", codecs=[from_datapizza(client)], **attached(server.url))
        with runtime:
            result = runtime.loop().run("What is the capital of Tuscany?")
        bodies = server.bodies
    sent = records(runtime.trace_path, "egress")
    assert result.stop is StopReason.ANSWERED
    assert len(sent) == len(bodies) > 0
    salts = FileSaltStore(home / "vault" / "salts", book=runtime.trace_path)
    for record, body in zip(sent, bodies, strict=True):
        salt = salts.find(record["payload_commit"])
        assert salt is not None
        assert commitment(salt, body) == record["payload_commit"]
    salts.close()


def test_i5_the_key_that_travels_is_the_profiles_not_theirs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MODEL_TOKEN", "tok-of-the-profile")
    with ScriptedServer(replies=[oblige] * 4) as server:
        profile = attached(server.url, credential="env:MODEL_TOKEN")
        client = openai_like(server.url)
        with open_profile("attached", codecs=[from_datapizza(client)], **profile) as runtime:
            runtime.loop().run("What is the capital of Tuscany?")
        head = server.received[0].partition(b"\r\n\r\n")[0]
    assert b"Bearer tok-of-the-profile" in head
    assert b"sk-of-theirs" not in server.received[0]
    assert b"x-stainless" not in head.lower()


def test_i9_a_failure_is_one_send_and_one_record() -> None:
    """Their SDK would have tried three times."""
    with ScriptedServer(replies=[ServerError(status=503)] * 3) as server:
        client = openai_like(server.url)
        runtime = open_profile("attached", codecs=[from_datapizza(client)], **attached(server.url))
        with runtime, runtime.client.task("Hello.") as task:
            message = Message(role=Role.USER, blocks=(task.goal,))
            with pytest.raises(BackendError, match="answered 503"):
                anyio.run(_infer, runtime, message, task)
        assert len(server.received) == 1
    assert len(records(runtime.trace_path, "egress")) == 1


async def _infer(runtime: Any, message: Message, task: Any) -> None:
    await runtime.client.infer(InferenceRequest(messages=(message,)), task=task)


def test_seal_takes_the_codec_itself() -> None:
    with ScriptedServer(replies=["Florence."]) as server:
        backend = from_datapizza(openai_like(server.url))
        with open_profile("attached", codecs=[backend], **attached(server.url)) as runtime:
            client = runtime.perimeter.seal(backend)
            with client.task("Hello.") as task:
                sealed = SealedDatapizzaClient(client, task=task, data_class=DataClass.C1)
                assert sealed.invoke("Which city?").text == "Florence."


@pytest.mark.parametrize(
    ("more", "name", "problem"),
    [
        ({"base_url": "http://127.0.0.1:9/v1"}, "remote", r"endpoint: the codec .* another address"),
        ({"model": "other"}, "remote", r"model: the codec .* another model"),
        ({}, "local", r"inference\.local: a codec was passed for a backend that is not configured"),
    ],
)
def test_a_codec_that_is_not_what_the_profile_says_is_a_config_error(
    more: dict[str, Any], name: str, problem: str
) -> None:
    url = "http://127.0.0.1:8080"
    backend = from_datapizza(openai_like(url, **more), name=name)
    with pytest.raises(ConfigError, match=problem):
        open_profile("attached", codecs=[backend], **attached(url))


def test_a_codec_may_stand_in_for_the_local_backend_and_then_takes_c2() -> None:
    """The first replies of the script go to the questions about locality."""
    with ScriptedServer(replies=["Yes."] * 9) as server:
        local = {"runtime": "llamacpp", "model": "m", "endpoint": server.url}
        backend = from_datapizza(openai_like(server.url), name="local")
        runtime = open_profile(
            "detached", codecs=[backend], policy={"grants": []}, inference={"local": local}
        )
        with runtime, runtime.client.task("Hello.") as task:
            assert SealedDatapizzaClient(runtime.client, task=task).invoke("Hello.").text == "Yes."
    assert records(runtime.trace_path, "egress")[-1]["class"] == "C2"


# --- what importing costs --------------------------------------------------------------------------


def imported(statement: str) -> Sequence[str]:
    code = f"import sys\n{statement}\nprint(*sorted({{'datapizza', 'openai'}} & set(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.split()


def test_datapizza_is_imported_at_the_seam_only_and_no_sdk_anywhere() -> None:
    assert imported("import runner, runner.testing, runner.adapters.cli.main") == []
    assert imported("import runner.adapters.datapizza") == ["datapizza"]
