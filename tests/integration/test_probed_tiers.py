# SPDX-License-Identifier: Apache-2.0
"""The first turn of a run finds out what its backend does, once, and never at the cost of the run. I7, I4.

Over real sockets: each server answers canaries as its kind does, and turns of a run as a model would.
"""

import asyncio
import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import pytest
from runtimes import Answer, Asked, ChatServer, OllamaServer, as_json, llama_server, serving, vllm

from runner import HostTool, Runtime, open_profile
from runner.agent.steps import Event, RunResult, StopReason
from runner.kernel.errors import TraceUnavailable
from runner.kernel.tiers import Tier

ASKS = "What is 12 times 12?"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AKAION_HOME", str(tmp_path / "home"))


def multiply(a: int, b: int) -> str:
    """Multiply two numbers."""
    return str(a * b)


@dataclass(kw_only=True)
class Model(ChatServer):
    """A server whose model knows what to do in a run: multiply once, then answer. `turns` are not canaries.

    It hangs at every canary if there is something to call then: `hangs`.
    """

    turns: list[Asked] = field(default_factory=list)
    hangs: Callable[[], None] | None = None

    def answer(self, method: str, path: str, asked: Asked) -> Answer | None:
        if method == "GET" or _is_canary(asked):
            known = super().answer(method, path, asked)
            if self.hangs is None or method == "GET":
                return known
            self.hangs()
            return None
        self.turns.append(asked)
        return _whole(self._turn(asked), stream=asked.get("stream", False))

    def _turn(self, asked: Asked) -> dict[str, Any]:
        called = "144" in json.dumps(asked["messages"])
        if asked.get("tools") and not called:
            function = {"name": "multiply", "arguments": '{"a": 12, "b": 12}'}
            return {"content": None, "tool_calls": [{"id": "c1", "type": "function", "function": function}]}
        held = json.dumps([asked.get("grammar"), asked.get("response_format")])
        chooses = "multiply" in held
        fills = "tool" not in held and "answer" not in held
        if fills and not asked.get("tools"):
            return {"content": '{"a": 12, "b": 12}'}
        tool = "answer" if called else "multiply"
        return {"content": json.dumps({"tool": tool} if chooses else {"answer": "144"})}


def _is_canary(asked: Asked) -> bool:
    return "apple" in json.dumps(asked) or "dim" in json.dumps(asked.get("tools", ""))


def _whole(message: dict[str, Any], *, stream: bool) -> Answer:
    usage = {"prompt_tokens": 9, "completion_tokens": 7}
    choice = {"index": 0, "finish_reason": "tool_calls" if "tool_calls" in message else "stop"}
    if not stream:
        message = {"role": "assistant", **message}
        return as_json({"choices": [{**choice, "message": message}], "usage": usage})
    calls = [{"index": number, **call} for number, call in enumerate(message.get("tool_calls", []))]
    delta = {**message, **({"tool_calls": calls} if calls else {})}
    piece = json.dumps({"choices": [{**choice, "delta": delta}], "usage": usage})
    return 200, f"data: {piece}\n\ndata: [DONE]\n\n".encode()


def model(*, tools: str = "called") -> Model:
    """llama-server whose model makes real calls."""
    known = llama_server(tools=tools)
    return Model(holds=known.holds, served=known.served, tools=tools)


@contextmanager
def opened(server: Model, url: str, *, tier: str = "auto", **more: Any) -> Iterator[Runtime]:
    local = {"runtime": "llamacpp", "endpoint": url, "model": server.model, "tier": tier}
    inference = {"prefer": "local", "local": local, "remote": None}
    policy = {"grants": [{"tool": "multiply", "trusted": True}]}
    given = {"tools": [HostTool(multiply)], "policy": policy, "inference": inference, **more}
    with open_profile("attached", **given) as rt:
        yield rt


def bodies(rt: Runtime, kind: str) -> list[dict[str, Any]]:
    lines = [line for log in sorted(rt.trace_path.glob("*.jsonl")) for line in log.read_bytes().splitlines()]
    entries = [json.loads(line) for line in lines]
    return [entry["body"] | {"task": entry.get("task")} for entry in entries if entry["kind"] == kind]


def tiers(rt: Runtime) -> list[str]:
    return [each["tier"] for each in bodies(rt, "egress_result") if "tier" in each]


def test_the_first_turn_probes_once_and_native_tools_are_used_where_real_calls_came_back() -> None:
    server, events = model(), list[Event]()
    with serving(server) as url, opened(server, url) as rt:
        first = rt.loop(on_event=events.append).run(ASKS)
        probed = len(server.posts)
        second = rt.loop(on_event=events.append).run(ASKS)
    assert (first.stop, first.answer, second.stop) == (StopReason.ANSWERED, "144", StopReason.ANSWERED)
    assert probed == len(server.posts) == 5, "the second run of a runtime sends no canary"
    assert all(turn["tools"][0]["function"]["name"] == "multiply" for turn in server.turns[:2])
    assert tiers(rt) == ["native", "native", "constrained"] * 2
    assert first.tokens == 16 * 3, "what the probe took is not the task's"
    assert sum(event.text.startswith("probing the backend") for event in events) == 1
    canaries = [each for each in bodies(rt, "egress") if each["inputs"] == []]
    assert {(each["class"], each["task"]) for each in canaries} == {("C0", None)}


def test_what_an_earlier_start_found_is_kept_and_no_canary_is_sent() -> None:
    server = model()
    with serving(server) as url:
        with opened(server, url) as rt:
            rt.loop().run(ASKS)
        with opened(server, url) as rt:
            rt.loop().run(ASKS)
    assert len(server.posts) == 5
    assert tiers(rt)[-3:] == ["native", "native", "constrained"]


def test_i7_calls_that_do_not_come_back_make_no_native_tier() -> None:
    server = model(tools="ignored")
    with serving(server) as url, opened(server, url) as rt:
        assert rt.loop().run(ASKS).stop is StopReason.ANSWERED
    assert set(tiers(rt)) == {"constrained"}


@pytest.mark.parametrize("tier", Tier)
def test_a_tier_that_the_profile_names_sends_no_canary(tier: Tier) -> None:
    server = model()
    with serving(server) as url, opened(server, url, tier=tier.value) as rt:
        rt.loop().run(ASKS)
    assert server.posts == []
    assert tiers(rt)[0] == tier


def test_a_question_over_files_sends_no_canary(tmp_path: Path) -> None:
    files = tmp_path / "files"
    files.mkdir()
    (files / "a.txt").write_text("The fee is 300 euro.\n", encoding="utf-8")
    grants = [{"tool": tool, "paths": [str(files)]} for tool in ("read_file", "search_text")]
    server = model()
    with serving(server) as url, opened(server, url, tools=(), policy={"grants": grants}) as rt:
        rt.loop().run("What is the fee?")
    assert server.posts == []
    assert server.turns


class Skipping(asyncio.SelectorEventLoop):
    """An event loop whose clock can be moved on: a deadline passes when a test says so, on any machine."""

    ahead = 0.0

    def time(self) -> float:
        return super().time() + self.ahead

    def skip(self, seconds: float) -> None:
        """Let `seconds` pass; from any thread."""
        self.call_soon_threadsafe(lambda: setattr(self, "ahead", self.ahead + seconds))


def run_where_a_canary_takes(seconds: float, server: Model, rt: Runtime) -> StopReason:
    """Run a task whose canaries are answered after `seconds` or later, and return how it ended."""
    with asyncio.Runner(loop_factory=Skipping) as runner:
        clock = runner.get_loop()
        assert isinstance(clock, Skipping)
        server.hangs = lambda: clock.skip(seconds)
        return runner.run(rt.loop().arun(ASKS)).stop


def test_i7_a_probe_that_hangs_is_cut_off_and_the_run_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("runner.perimeter.probe.PROBE_TIMEOUT_S", 60.0)  # before the canary's own time is up
    server = model()
    with serving(server) as url, opened(server, url) as rt:
        ends = [run_where_a_canary_takes(60.0, server, rt) for _ in range(2)]
    assert ends == [StopReason.ANSWERED] * 2
    assert len(server.posts) == 1, "a backend that hung is not asked again"
    assert set(tiers(rt)) == {"constrained"}
    assert [each["status"] for each in bodies(rt, "egress_result")].count("cancelled") == 1


def test_i7_a_probe_takes_no_more_than_half_of_what_a_run_has_left() -> None:
    server = model()
    with serving(server) as url, opened(server, url, budget={"seconds": 100}) as rt:
        assert run_where_a_canary_takes(50.0, server, rt) is StopReason.ANSWERED
    assert len(server.posts) == 1


def test_i7_a_denied_probe_is_on_record_and_the_run_goes_on_to_its_own_decision() -> None:
    """A cloud model behind a local server counts as remote, and nothing may leave this profile."""
    server = OllamaServer(model="gpt-oss:120b-cloud")
    with serving(server) as url:
        local = {"runtime": "ollama", "endpoint": url, "model": server.model}
        policy = {"grants": [{"tool": "multiply", "trusted": True}]}
        given: dict[str, Any] = {"policy": policy, "inference": {"local": local}}
        with open_profile("detached", tools=[HostTool(multiply)], **given) as rt:
            result = rt.loop().run(ASKS)
    assert (result.stop, server.posts) == (StopReason.DENIED, [])
    denied = [each["task"] for each in bodies(rt, "egress") if each["decision"] == "denied"]
    assert denied[-1] == result.task
    assert set(denied[:-1]) == {None}, "the questions of the probe, and its one canary"


def failing(_: object, *__: object, **___: object) -> Any:
    raise RuntimeError("a store that fails")


def test_i7_a_probe_that_fails_ends_no_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("runner.capability.transport.findings.FileFindings.find", failing)
    server = model()
    with serving(server) as url, opened(server, url) as rt:
        assert rt.loop().run(ASKS).stop is StopReason.ANSWERED
    assert set(tiers(rt)) == {"constrained"}


def test_i4_a_probe_that_cannot_be_recorded_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> Any:
        raise TraceUnavailable("no space")

    monkeypatch.setattr("runner.perimeter.gate.probe_backend", full)
    server = model()
    with serving(server) as url, opened(server, url) as rt, pytest.raises(TraceUnavailable):
        rt.loop().run(ASKS)
    assert (server.posts, server.turns) == ([], [])


def test_tasks_that_need_it_at_once_share_one_probe() -> None:
    server, results = model(), list[RunResult]()
    del server.served["/props"]["build_info"]  # so that nothing is kept, and a second probe would be seen

    async def several(rt: Runtime) -> None:
        async with anyio.create_task_group() as group:
            for _ in range(3):
                group.start_soon(_kept, rt, results)
            await anyio.to_thread.run_sync(lambda: results.append(rt.loop().run(ASKS)))

    with serving(server) as url, opened(server, url) as rt:
        anyio.run(several, rt)
    assert [each.stop for each in results] == [StopReason.ANSWERED] * 4
    assert len(server.posts) == 5
    assert set(tiers(rt)) == {"native", "constrained"}
    assert tiers(rt).count("native") >= 8, "who waited for the probe goes by it"


async def _kept(rt: Runtime, results: list[RunResult]) -> None:
    results.append(await rt.loop().arun(ASKS))


def _settled(body: Asked) -> str:
    """A canary without what is random in it: its nonces and its digits."""
    text = re.sub(r"zq7[0-9]{3}", "zq7", json.dumps(body, sort_keys=True))
    text = re.sub(r'"n = [0-9]|n = [0-9]', "n = 0", text)
    return re.sub(r'"enum": \[[0-9]\]', '"enum": [0]', text)


def test_i7_no_byte_of_a_probe_depends_on_what_a_task_is_about(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor does whether there is one: it comes before anything was read."""
    seen: list[list[str]] = []
    for number, goal in enumerate([ASKS, "Il paziente Mario Rossi, RSSMRA85T10A562S, ha 12 per 12 anni?"]):
        monkeypatch.setenv("AKAION_HOME", str(tmp_path / str(number)))
        server = model()
        with serving(server) as url, opened(server, url) as rt:
            rt.loop().run(goal)
        seen.append([_settled(body) for body in server.posts])
    assert seen[0] == seen[1]
    assert len(seen[0]) == 5


class CutOff(Model):
    """A vLLM whose token limit falls behind the first argument of a call: it says `tool_calls` of that."""

    def _turn(self, asked: Asked) -> dict[str, Any]:  # noqa: ARG002 - every reply is the same call
        arguments = '{"amount": 12}'
        function = {"name": "transfer", "arguments": arguments}
        return {"content": None, "tool_calls": [{"id": "c1", "type": "function", "function": function}]}

    def answer(self, method: str, path: str, asked: Asked) -> Answer | None:
        found = super().answer(method, path, asked)
        if method == "GET" or found is None:
            return found
        most = asked.get("max_tokens") or asked["max_completion_tokens"]
        taken = f'"completion_tokens": {most}'.encode()
        return found[0], found[1].replace(b'"completion_tokens": 7', taken)


def test_p2_a_call_that_took_all_the_tokens_of_its_reply_never_runs() -> None:
    """Its other arguments were still to come: what was parsed of it is not what the model meant."""
    ran: list[int] = []

    def transfer(amount: int, to: str = "general account") -> str:
        """Move money."""
        ran.append(amount)
        return to

    known = vllm()
    server = CutOff(holds=known.holds, served=known.served)
    local = {"runtime": "vllm", "model": "m", "tier": "native"}
    with serving(server) as url:
        inference = {"prefer": "local", "local": {**local, "endpoint": url}, "remote": None}
        policy = {"grants": [{"tool": "transfer", "trusted": True}]}
        with open_profile("attached", tools=[HostTool(transfer)], policy=policy, inference=inference) as rt:
            rt.loop().run("Move 12.")
            failures = {each.get("failure") for each in bodies(rt, "egress_result")}
    assert any(turn.get("tools") for turn in server.turns)
    assert ran == []
    assert "truncated" in failures
