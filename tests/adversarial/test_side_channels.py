# SPDX-License-Identifier: Apache-2.0
"""I12: no text that a model, a document or a tool chose gets anywhere but into the answer.

One word stands in everything they choose: names and values of headers, the reason phrase, ids, the model's
name, finish reasons, tool names, arguments and member names, error texts, file names and contents. It is then
looked for in all that is written or could be shown: the record and the home folder, the log with everything
on, the streams, warnings, spans of a host's telemetry, exceptions with their chains and what a debugger shows
of their frames, and reprs. It must be in none. (That it would be found where it is, the first test shows.)
"""

import gc
import io
import json
import logging
import os
import subprocess
import sys
import threading
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

import anyio
import pytest
from datapizza.agents import Agent
from opentelemetry import trace as telemetry
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from runner import AgentLoop, HostTool, StopReason, open_profile
from runner.adapters.cli import main as command
from runner.adapters.datapizza import SealedDatapizzaClient
from runner.kernel.errors import ConfigError, RunnerError, ToolError
from runner.kernel.inference import Address, InferenceReply, InferenceRequest, WireRequest
from runner.kernel.labels import Label
from runner.kernel.messages import Block, BlockKind, Media, Message, Role, ToolCall
from runner.kernel.ports import Excerpt
from runner.perimeter.texts import Text
from runner.testing import ScriptedApprover, first_instance

WORD: Final = "quietus"
"""Letters only, so that it also fits where only a plain word does."""
SOURCE: Final = Path(__file__).resolve().parents[2] / "src"
GOAL: Final = f"When is the {WORD} hearing?"
LINE: Final = f"The {WORD} hearing is on 14 October 2026."


# --- a server that says the word wherever it may say something ------------------------------------------


def completion(content: str, finish: str = "stop") -> dict[str, Any]:
    """Return a chat completion in which everything but what a decoder needs is the word."""
    call = {"id": WORD, "type": WORD, "function": {"name": WORD, "arguments": json.dumps({WORD: WORD})}}
    message = {
        "role": WORD,
        "content": content,
        "reasoning_content": WORD,
        "tool_calls": [call],
        WORD: {WORD: WORD},
    }
    choice = {"index": 0, "message": message, "finish_reason": finish, "logprobs": WORD, WORD: WORD}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, WORD: WORD}
    return {
        "id": WORD,
        "object": WORD,
        "model": WORD,
        "system_fingerprint": WORD,
        "choices": [choice],
        "usage": usage,
    }


def streamed(whole: dict[str, Any]) -> bytes:
    """Return a completion in pieces, the word between and in all of them."""
    choice = whole["choices"][0]
    text, finish = choice["message"]["content"], choice["finish_reason"]
    events: list[dict[str, Any]] = [
        {**whole, "choices": [{"index": 0, "delta": {"content": piece, WORD: WORD}, "finish_reason": None}]}
        for piece in (text[:5], text[5:])
    ]
    events.append({**whole, "choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
    events.append({**whole, "choices": []})
    lines = [f": {WORD}", *(f"data: {json.dumps(event)}" for event in events)]
    return "".join(f"{line}\n\n" for line in [*lines, "data: [DONE]"]).encode()


def obliging(body: Mapping[str, Any]) -> str:
    """Return what the schema or the grammar asks for, with the word in every text of it."""
    if '\\"it\\"' in str(body.get("grammar")):
        return json.dumps({"it": f"udienza {WORD}", "en": f"hearing {WORD}"})
    if "grammar" in body:
        return json.dumps(worded({"answer": ""}))
    asked: Any = body.get("response_format", {}).get("json_schema", {}).get("schema")
    return WORD if asked is None else json.dumps(worded(first_instance(asked)))


def worded(value: Any) -> Any:
    match value:
        case dict():
            return {name: worded(item) for name, item in value.items()}
        case str():
            return f"14 October 2026 {WORD}"
        case _:
            return value


Answer = tuple[int, bytes]
ANSWERS: Final[dict[str, Callable[[Mapping[str, Any]], Answer]]] = {
    "answer": lambda body: (200, json.dumps(completion(obliging(body))).encode()),
    "finish": lambda body: (200, json.dumps(completion(obliging(body), WORD)).encode()),
    "cut": lambda body: (200, json.dumps(completion(obliging(body), "length")).encode()),
    "no schema": lambda _: (200, json.dumps(completion(json.dumps({WORD: WORD}))).encode()),
    "no json": lambda _: (200, json.dumps(completion(f"{{{WORD}")).encode()),
    "no protocol": lambda _: (200, json.dumps({WORD: WORD}).encode()),
    "no text": lambda _: (200, WORD.encode() + b"\xff"),
    "bad request": lambda _: (
        400,
        json.dumps({"error": {"message": WORD, "code": WORD, WORD: WORD}}).encode(),
    ),
    "failure": lambda _: (500, json.dumps({"error": WORD}).encode()),
    "unknown status": lambda _: (499, WORD.encode()),
    "redirect": lambda _: (307, b""),
    "compressed": lambda _: (200, WORD.encode()),
    "broken off": lambda body: (200, json.dumps(completion(obliging(body))).encode()),
}


class Hostile(BaseHTTPRequestHandler):
    """Answers every POST by the mode of its server, and everything else with the word."""

    server: Any
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        status, reply = ANSWERS[self.server.mode](body)
        if body.get("stream") and self.server.mode in {"answer", "finish", "cut"}:
            reply = streamed(json.loads(reply))
        self._send(status, reply, mode=self.server.mode)

    def do_GET(self) -> None:
        listing = {"data": [{"id": WORD, "owned_by": WORD}], "models": [{"name": WORD}], WORD: WORD}
        self._send(200, json.dumps(listing).encode(), mode="")

    def _send(self, status: int, body: bytes, *, mode: str) -> None:
        headers = {
            "Content-Type": "application/json",
            f"X-{WORD}": WORD,
            "Server": WORD,
            "Set-Cookie": f"{WORD}=1",
        }
        if mode == "redirect":
            headers["Location"] = f"http://{WORD}.example/{WORD}"
        if mode == "compressed":
            headers["Content-Encoding"] = WORD
        size = len(body) + (9 if mode == "broken off" else 0)
        lines = [f"HTTP/1.1 {status} {WORD}", *(f"{name}: {value}" for name, value in headers.items())]
        head = "\r\n".join([*lines, f"Content-Length: {size}", "Connection: close", "", ""])
        self.wfile.write(head.encode() + body)
        self.close_connection = True

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def server() -> Iterator[Any]:
    http = ThreadingHTTPServer(("127.0.0.1", 0), Hostile)
    http.mode = "answer"  # type: ignore[attr-defined]  # read by the handler
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield http
    http.shutdown()
    thread.join()
    http.server_close()


# --- all that is written, or could be shown -------------------------------------------------------------


@dataclass(kw_only=True)
class Scene:
    """A practice whose files say the word, and everything that came out of it but answers."""

    root: Path
    log: io.StringIO
    spans: InMemorySpanExporter
    shown: list[str] = field(default_factory=list)

    def profile(self, server: Any, *, remote: bool = False) -> Path:
        url = f"http://127.0.0.1:{server.server_port}"
        local = f"local: {{runtime: llamacpp, endpoint: '{url}', model: scripted}}"
        away = f"prefer: remote\n  local: null\n  remote: {{backend: openai, endpoint: '{url}', model: m}}"
        path = self.root / "studio.yaml"
        path.write_text(
            f"profile: {'attached' if remote else 'detached'}\n"
            "policy:\n  grants:\n"
            "    - {tool: search_text, paths: [files]}\n    - {tool: read_file, paths: [files]}\n"
            f"inference:\n  {away if remote else local}\n",
            encoding="utf-8",
        )
        return path

    def error(self, error: BaseException) -> None:
        """Keep all that a program, a debugger or an error tracker could show of `error`."""
        self.shown += traceback.format_exception(error)
        for each in chain_of(error):
            self.shown += [str(each), repr(each), *map(repr, each.args), *locals_of(each)]

    def found(self) -> list[str]:
        """Return every line of all that was written, kept or shown in which the word is, named and cut."""
        places = [("log", self.log.getvalue()), *(("shown", text) for text in self.shown)]
        gc.collect()
        for item in gc.get_objects():
            if str(type(item).__module__).startswith("runner."):
                with suppress(ReferenceError, AttributeError):  # gone, or never made whole by another test
                    places.append((f"repr of {type(item).__qualname__}", repr(item)))
        places += [("span", span.to_json()) for span in self.spans.get_finished_spans()]
        files = [path for path in (self.root / "home").rglob("*") if path.is_file()]
        assert any(path.suffix == ".jsonl" for path in files), "the record is among them"
        for path in files:
            places.append((str(path), f"{path}\n{path.read_bytes().decode('latin-1')}"))
        lines = ((where, line) for where, text in places for line in text.splitlines())
        return sorted({f"{where}: {line.strip()[:200]}" for where, line in lines if WORD in line.lower()})


def chain_of(error: BaseException | None) -> Iterator[BaseException]:
    """Yield `error` and what it came from, suppressed or not, and what is in a group."""
    while error is not None:
        yield error
        for inner in getattr(error, "exceptions", ()):
            yield from chain_of(inner)
        error = error.__cause__ or error.__context__


def locals_of(error: BaseException) -> Iterator[str]:
    """Yield what a debugger shows of the frames of ours that `error` passed."""
    for frame, _ in traceback.walk_tb(error.__traceback__):
        if str(SOURCE) in frame.f_code.co_filename:
            yield from (f"{name}={value!r}" for name, value in frame.f_locals.items() if name != "goal")


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Scene]:
    monkeypatch.setenv("AKAION_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("AKAION_PROFILE", raising=False)
    monkeypatch.setenv("TTY_COMPATIBLE", "0")
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "files" / f"{WORD}-folder"
    folder.mkdir(parents=True)
    (folder / f"{WORD}.txt").write_text(f"Court of Example\n\n{LINE}\n", encoding="utf-8")
    (tmp_path / "files" / f"{WORD}.bin").write_bytes(b"\x00" + WORD.encode())
    log, exporter = io.StringIO(), InMemorySpanExporter()
    handler = logging.StreamHandler(log)
    root = logging.getLogger()
    level, disabled = root.level, logging.root.manager.disable
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(telemetry, "_TRACER_PROVIDER", provider)
    with warnings.catch_warnings(record=True, action="always") as warned:
        yield Scene(root=tmp_path, log=log, spans=exporter)
    root.removeHandler(handler)
    root.setLevel(level)
    logging.disable(disabled)
    assert not any(WORD in str(each.message).lower() for each in warned)


def asking(task: Any, **more: Any) -> InferenceRequest:
    blocks = (task.instruction("Answer."), task.goal)
    return InferenceRequest(messages=(Message(role=Role.USER, blocks=blocks),), max_tokens=64, **more)


SCHEMA: Final = {
    "type": "object",
    "properties": {"answer": {"type": "string"}},
    "required": ["answer"],
    "additionalProperties": False,
}


# --- the tests ------------------------------------------------------------------------------------------


def test_the_word_is_found_where_it_is(scene: Scene, server: Any) -> None:
    """Each place that is searched, with the word put there on purpose."""
    with open_profile(scene.profile(server)) as runtime:
        AgentLoop(client=runtime.client, tools=runtime.tools).run(GOAL)
    assert scene.found() == []
    logging.getLogger("any").debug("said %s", WORD)
    assert WORD in scene.log.getvalue()
    with telemetry.get_tracer("any").start_as_current_span("any") as span:
        span.set_attribute("text", WORD)
    assert WORD in scene.spans.get_finished_spans()[-1].to_json()
    try:
        hold(WORD)
    except ValueError as error:
        before = len(scene.shown)
        scene.error(error)
        assert WORD in "".join(scene.shown[before:])
    (scene.root / "home" / "extra").write_text(WORD, encoding="utf-8")
    assert any("home/extra" in place for place in scene.found())


def hold(text: str) -> None:
    raise ValueError(text)


@pytest.mark.parametrize(
    ("mode", "remote"),
    [(mode, bool(number % 2)) for number, mode in enumerate(ANSWERS)] + [("bad request", False)],
    ids=lambda value: str(value).replace(" ", "-"),
)
def test_i12_a_run_writes_no_word_of_a_model_or_a_file(
    scene: Scene, server: Any, mode: str, capsys: pytest.CaptureFixture[str], *, remote: bool
) -> None:
    """Whole runs, and every way an exchange can fail: the word is in the answer and nowhere else."""
    server.mode = mode
    events: list[str] = []
    with open_profile(scene.profile(server, remote=remote)) as runtime:
        loop = AgentLoop(
            client=runtime.client, tools=runtime.tools, on_event=lambda event: events.append(repr(event))
        )
        result = loop.run(GOAL)
        if mode == "answer":
            assert (result.stop, WORD in result.answer) == (StopReason.ANSWERED, True)
        scene.shown += [repr(result), str(result), repr(result.steps), result.detail, repr(runtime), *events]
        scene.shown += [repr(step) for step in result.steps] + [repr(each) for each in result.evidence]
        for schema in (None, SCHEMA):
            for stream in (False, True):
                with runtime.client.task(GOAL) as task:
                    request = asking(task, schema=schema, stream=stream)
                    scene.shown += [repr(task), repr(request), repr(task.blocks)]
                    try:
                        reply = anyio.run(partial(runtime.client.infer, request, task=task))
                    except RunnerError as error:
                        scene.error(error)
                    else:
                        scene.shown.append(repr(reply))
    said = capsys.readouterr()
    scene.shown += [said.out, said.err]
    assert scene.found() == []


def test_i12_calls_that_a_model_makes_up_leave_no_word(
    scene: Scene, server: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    """Tool names, argument names and values, paths, and what tools say when they fail."""

    def fails(text: str) -> str:
        """Fail."""
        secret = text
        raise ValueError(f"{WORD}: {secret}") from KeyError(WORD)

    def says(text: str) -> str:
        """Fail, and say so to the model."""
        raise ToolError(f"{WORD}: {text}")

    grants = [
        {"tool": "search_text", "paths": ["files"]},
        {"tool": "read_file", "paths": ["files"]},
        {"tool": "list_dir", "paths": ["files"], "approval": "ask"},
        {"tool": "fails", "trusted": True},
        {"tool": "says", "trusted": True},
    ]
    calls: list[tuple[str, dict[str, Any]]] = [
        (WORD, {}),
        (f"{WORD}\x1b[2J", {WORD: WORD}),
        ("read_file", {"path": f"files/{WORD}"}),
        ("read_file", {"path": f"files/{WORD}.bin"}),
        ("read_file", {"path": f"../{WORD}"}),
        ("read_file", {WORD: WORD}),
        ("read_file", {"path": f"files/{WORD}-folder/{WORD}.txt"}),
        ("read_file", {"path": [WORD]}),
        ("search_text", {"query": WORD}),
        ("list_dir", {"path": "files"}),
        ("fails", {"text": WORD}),
        ("says", {"text": WORD}),
        ("says", {"text": WORD, WORD: {WORD: [WORD] * 3}}),
    ]
    approver = ScriptedApprover(answers=[False, True])
    tools = [HostTool(fails), HostTool(says)]
    with open_profile(
        scene.profile(server), tools=tools, approver=approver, policy={"grants": grants}
    ) as runtime:
        with runtime.client.task(GOAL) as task:
            for tool, arguments in calls:
                call = ToolCall(tool=tool, arguments=arguments, origin=task.goal)
                reply = anyio.run(partial(runtime.tools.call, call, task=task))
                scene.shown += [repr(reply), repr(runtime.tools.decide(call)).replace(repr(tool), "")]
        scene.shown += map(repr, approver.asked)
    said = capsys.readouterr()
    scene.shown += [said.out, said.err]
    assert scene.found() == []


@pytest.mark.parametrize("mode", ["answer", "bad request", "no json"], ids=["answer", "refusal", "no-json"])
def test_i12_no_command_writes_a_word_but_the_answer(
    scene: Scene, server: Any, mode: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Streams that are no terminal are logs. Standard output of `run` and `chat` is the answer's place."""
    server.mode = mode
    profile = str(scene.profile(server))
    answers = (("run", "-p", profile, GOAL), ("run", "-p", profile, "--json", GOAL), ("chat", "-p", profile))
    silent = (
        ("run", "-p", profile, "--quiet", "--class", "C3", GOAL),
        ("doctor", "-p", profile),
        ("explain", "-p", profile, f"files/{WORD}-folder/{WORD}.txt"),
        ("explain", "-p", profile, "--json", f"files/{WORD}-folder/{WORD}.txt"),
        ("trace", "show", "-p", profile),
        ("trace", "show", "-p", profile, "--json"),
        ("trace", "path", "-p", profile),
        ("profile", "check", profile),
        ("models", "list"),
        ("keys", "show", "-p", profile),
    )
    for arguments in (*answers, *silent):
        monkeypatch.setattr(sys, "stdin", io.StringIO(f"{GOAL}\n"))
        status = command.main(arguments)
        said = capsys.readouterr()
        named = [word for word in arguments if WORD in word]  # what the user typed may be told back
        out = "" if arguments in answers or (status == 0 and arguments[0] == "run") else said.out
        err = said.err
        for word in named:
            out, err = out.replace(word, ""), err.replace(word, "")
        scene.shown += [out, err]
    assert scene.found() == []


def test_i12_a_defect_shows_its_kind_and_place_and_no_local_variable(
    scene: Scene, server: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command line's framework would show the locals of every frame; a stream that fails is a defect."""

    class Broken(io.StringIO):
        def readline(self, *_: Any) -> str:  # type: ignore[override]  # of text, as the stream is
            kept = f"{WORD} of the user"
            raise ValueError(kept)

    profile = str(scene.profile(server))
    monkeypatch.setattr(sys, "stdin", Broken())
    assert command.main(("chat", "-p", profile)) == 1
    said = capsys.readouterr()
    assert "internal error: ValueError at chat.py:" in said.err
    assert command.app.pretty_exceptions_enable is False
    scene.shown += [said.out, said.err]
    assert scene.found() == []


def test_i12_telemetry_of_a_host_gets_no_content_from_an_agent_that_drives_our_client(
    scene: Scene, server: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """datapizza's own clients put prompts on spans when they are told to; ours says nothing to anybody."""
    monkeypatch.setenv("DATAPIZZA_TRACE_CLIENT_IO", "true")
    monkeypatch.setenv("DATAPIZZA_AGENT_LOG_LEVEL", "ERROR")
    with open_profile(scene.profile(server)) as runtime, runtime.client.task(GOAL) as task:
        client = SealedDatapizzaClient(runtime.client, task=task, tools=runtime.tools)
        answers = [
            client.invoke(GOAL).text,
            *(piece.delta or "" for piece in client.stream_invoke(GOAL)),
        ]
        before = len(scene.spans.get_finished_spans())
        assert before == 0, "our client makes no span"
        scene.shown += [repr(client), str(client)]
        result = Agent(name="helper", client=client, max_steps=2).run(GOAL)
        answers.append(result.text if result is not None else "")
    assert WORD in "".join(answers)
    capsys.readouterr()  # what their agent prints is the host's to decide: see the README of the seam
    spans = [span.name for span in scene.spans.get_finished_spans()]
    assert spans != [], "their agent makes some, so they would be seen"
    assert [name for name in spans if "client" in name or "invoke" in name] == []
    scene.spans.clear()
    assert scene.found() == []


def test_i12_a_repr_shows_nothing_that_somebody_else_chose() -> None:
    """Values that live for a moment, and that a log line of a host program might still catch."""
    label = Label()
    block = Block(id="b0", kind=BlockKind.MODEL, text=WORD, label=label)
    shown = [
        block,
        ToolCall(tool=WORD, arguments={WORD: WORD}, origin=block),
        InferenceReply(text=WORD, finish=WORD),
        InferenceRequest(messages=(Message(role=Role.USER, blocks=(block,)),), schema={WORD: WORD}),
        WireRequest(
            method="GET", address=Address(scheme="inproc"), path=WORD, headers=(), body=WORD.encode()
        ),
        Excerpt(file=WORD, line=1, text=WORD),
        Text(WORD, WORD, True),
        Media(mime="image/png", data=WORD.encode()),
    ]
    assert [each for each in map(repr, shown) if WORD in each] == []


def test_i12_a_register_that_is_wrong_shows_no_name(tmp_path: Path) -> None:
    clients = tmp_path / "clients.yaml"
    clients.write_text(f"- {WORD}\n- 5\n", encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        open_profile("attached", perimeter={"registers": {"clients": str(clients)}})
    shown = traceback.TracebackException.from_exception(caught.value, capture_locals=True)
    assert WORD not in "".join(shown.format())
    assert shown.stack[-1].name == "seam"


STOLEN: Final = """
import json, os, subprocess, sys
from runner import open_profile
away = {"backend": "openai", "endpoint": "http://127.0.0.1:9", "model": "m", "credential": "env:THE_TOKEN"}
inference = {"prefer": "remote", "local": None, "remote": away}
with open_profile("attached", policy={"grants": []}, inference=inference) as rt:
    child = subprocess.run([sys.executable, "-c", "import os; print(dict(os.environ))"], capture_output=True)
    there = os.path.exists("/proc/self/environ")
    kept = open("/proc/self/environ", "rb").read().decode("latin-1") if there else ""
    print(json.dumps([child.stdout.decode(), kept, str(dict(os.environ)), repr(rt)]))
"""


def test_i5_a_token_from_the_environment_stays_nowhere_in_it(tmp_path: Path) -> None:
    """Not for children, and not where the system shows what this process was started with (`/proc`)."""
    token = "tok-" + WORD * 3
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(SOURCE),
        "AKAION_HOME": str(tmp_path / "home"),
        "THE_TOKEN": token,
        "OTHER": "stays",
    }
    done = subprocess.run(
        [sys.executable, "-c", STOLEN],
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
        check=True,
    )
    child, kept, own, shown = json.loads(done.stdout)
    assert "stays" in child
    assert "stays" in own
    assert token not in child + kept + own + shown
    assert not kept or "OTHER=stays" in kept
