# SPDX-License-Identifier: Apache-2.0
"""Model servers on loopback that accept a constraint and do what real ones do with it: hold to it, or not.

Written from the servers' own descriptions: llama-server and vLLM (chat completions), llama-cpp-python,
Ollama, OpenAI, Anthropic. A fake reads a request as its server would and knows nothing of who asks: it finds
what it is to be held to in the members of that request, and its model says what a model says.
"""

import json
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from runner.testing import first_instance

Asked = Mapping[str, Any]
Answer = tuple[int, bytes]
SAID = "apple"
_WORD = re.compile(r'\\"(zq7[0-9]+)\\"')
_LEVEL = re.compile(r"n = ([0-9]+)")


def as_json(value: object, status: int = 200) -> Answer:
    return status, json.dumps(value).encode()


def error(status: int) -> Answer:
    return as_json({"error": {"code": status, "message": "no"}}, status)


def sentence(grammar: object) -> str | None:
    """The only text of a grammar with one, as a GBNF engine finds it; None for what it cannot read."""
    found = _WORD.search(grammar) if isinstance(grammar, str) else None
    return None if found is None else f'"{found[1]}"'


@dataclass(kw_only=True)
class Fake:
    """What every server keeps: the bodies posted to it, and the limits of those that it answered with 200."""

    model: str = "m"
    posts: list[Asked] = field(default_factory=list)
    granted: list[int] = field(default_factory=list)

    def answer(self, method: str, path: str, asked: Asked) -> Answer | None:
        """Return status and body, None for none ever."""
        raise NotImplementedError


@dataclass(kw_only=True)
class ChatServer(Fake):
    """A server for chat completions.

    `holds` are the members it is held by: `grammar`, `json_schema`, `response_format`, `json_object`,
    `structured_outputs`, `any_object` for a flat schema; what else comes it ignores. `tools`: its model calls
    them, writes text (`ignored`), or the server says 400 (`refused`). `choice`: a demanded tool is `auto`,
    `enforced` or `refused`. `both`: what tools together with a constraint bring. `says` turns the held text,
    None for an answer that is not held, into text and members of the message. `bad_grammar` is the status for
    a grammar that cannot be read. `served` are its GET answers.
    """

    holds: Sequence[str] = ()
    tools: str = "ignored"
    choice: str = "auto"
    both: str = "refused"
    bad_grammar: int = 400
    says: Callable[[str | None], Mapping[str, Any]] = lambda held: {"content": SAID if held is None else held}
    call: Callable[[str, int], Mapping[str, Any]] | None = None
    finish: str = "stop"
    served: dict[str, Any] = field(default_factory=dict)

    def answer(self, method: str, path: str, asked: Asked) -> Answer | None:
        if method == "GET":
            return as_json(self.served[path]) if path in self.served else error(404)
        self.posts.append(asked)
        if asked.get("tools"):
            return self._with_tools(asked)
        if (
            "grammar" in self.holds
            and isinstance(asked.get("grammar"), str)
            and sentence(asked["grammar"]) is None
        ):
            return error(self.bad_grammar) if self.bad_grammar != 200 else self._reply(self.says(None))
        return self._reply(self.says(self.held(asked)))

    def held(self, asked: Asked) -> str | None:
        """The text that what this server knows of `asked` holds the reply to; None for any text."""
        if "grammar" in self.holds and "grammar" in asked:
            return sentence(asked["grammar"])
        schema = self._schema(asked)
        return None if schema is None else json.dumps(first_instance(schema))

    def _schema(self, asked: Asked) -> Any:
        outputs, form = asked.get("structured_outputs") or {}, asked.get("response_format") or {}
        if "structured_outputs" in self.holds and outputs:
            return outputs.get("json") or {"enum": [json.loads(str(sentence(outputs.get("grammar"))))]}
        if "json_schema" in self.holds and "json_schema" in asked:
            return asked["json_schema"]
        if "response_format" in self.holds and "json_schema" in form:
            return form["json_schema"]["schema"]
        if "json_object" in self.holds and form.get("type") == "json_object":
            return form["schema"]
        if "any_object" in self.holds and form.get("type") == "json_schema":
            return {"type": "object", "properties": {SAID: {"enum": [SAID]}}, "required": [SAID]}
        return None

    def _with_tools(self, asked: Asked) -> Answer:
        constrained = {"grammar", "json_schema", "response_format", "structured_outputs", "format"} & set(
            asked
        )
        if self.tools == "refused" or (constrained and self.both == "refused"):
            return error(400)
        if constrained:
            return self._reply(self.says(self.held(asked) if self.both == "enforced" else None))
        demanded = asked.get("tool_choice", "auto")
        if demanded != "auto" and self.choice == "refused":
            return error(400)
        if self.tools == "ignored":
            return self._reply(self.says(None))
        name = demanded["function"]["name"] if self.choice == "enforced" and demanded != "auto" else "dim"
        level = int(_LEVEL.findall(json.dumps(asked["messages"]))[0])
        make = self.call or (lambda tool, n: {"name": tool, "arguments": json.dumps({"n": n})})
        call = {"id": "c1", "type": "function", "function": make(name, level)}
        return self._reply({"content": None, "tool_calls": [call]}, finish="tool_calls")

    def _reply(self, message: Mapping[str, Any], finish: str = "") -> Answer:
        choice = {
            "index": 0,
            "message": {"role": "assistant", **message},
            "finish_reason": finish or self.finish,
        }
        return as_json({"choices": [choice], "usage": {"prompt_tokens": 9, "completion_tokens": 7}})


def llama_server(*, build: str = "b11434-abc", template: str = "{{ messages }}", **more: Any) -> ChatServer:
    """llama-server with one model: a flat schema is any object, a demanded tool is `auto`."""
    props = {
        "build_info": build,
        "model_path": "/models/m.gguf",
        "model_alias": "m",
        "chat_template": template,
        "chat_template_caps": {"supports_tools": True, "supports_parallel_tool_calls": False},
        "default_generation_settings": {"n_ctx": 4096},
    }
    entry = {
        "id": "m",
        "owned_by": "llamacpp",
        "created": 1,
        "meta": {"n_params": 134515008, "size": 96576768},
    }
    holds = ("grammar", "json_schema", "response_format", "json_object", "any_object")
    return ChatServer(
        served={"/props": props, "/v1/models": {"object": "list", "data": [entry]}},
        **({"holds": holds} | more),
    )


def vllm(**more: Any) -> ChatServer:
    """vLLM since 0.12: `guided_*` are accepted and ignored."""
    entry = {"id": "m", "owned_by": "vllm", "root": "m", "parent": None, "max_model_len": 2048, "created": 1}
    served = {"/version": {"version": "0.32.0"}, "/v1/models": {"object": "list", "data": [entry]}}
    holds = ("structured_outputs", "response_format", "json_object")
    return ChatServer(served=served, **({"holds": holds, "both": "enforced"} | more))


@dataclass(kw_only=True)
class OllamaServer(Fake):
    """Ollama with one model, which is held to `format` if it `holds`, and then not beside tools."""

    holds: bool = True
    tools: str = "called"
    thinking: str = ""
    mid_stream: bool = False
    says: Callable[[str | None], str] = lambda held: SAID if held is None else held
    version: str = "0.33.0"
    digest: str = "3a" * 32
    shown: dict[str, Any] = field(default_factory=dict)
    model: str = "qwen3:0.6b"

    def answer(self, method: str, path: str, asked: Asked) -> Answer | None:
        details = {"format": "gguf", "parent_model": ""}
        match path:
            case "/api/version":
                return as_json({"version": self.version})
            case "/api/tags":
                entry = {"name": self.model, "model": self.model, "size": 9, "digest": self.digest}
                return as_json({"models": [{**entry, "details": details}]})
            case "/api/show":
                shown = {
                    "template": "{{ .Prompt }}",
                    "details": details,
                    "capabilities": ["completion", "tools"],
                }
                return as_json({**shown, **self.shown})
            case _ if method == "POST":
                self.posts.append(asked)
                return self._chat(asked)
            case _:
                return error(404)

    def _chat(self, asked: Asked) -> Answer:
        head = {"model": self.model, "done": True, "done_reason": "stop", "eval_count": 6}
        if self.mid_stream:
            return 200, b'{"error":"model runner has unexpectedly stopped"}\n'
        if asked.get("tools") and self.tools == "called":
            level = int(_LEVEL.findall(json.dumps(asked["messages"]))[0]) if "format" not in asked else 4
            call = {"function": {"name": "dim", "arguments": {"n": level}}}
            return as_json({**head, "message": {"role": "assistant", "content": "", "tool_calls": [call]}})
        form = asked.get("format")
        held = json.dumps(first_instance(form)) if self.holds and form and not asked.get("tools") else None
        message = {"role": "assistant", "content": self.says(held)}
        return as_json({**head, "message": message | ({"thinking": self.thinking} if self.thinking else {})})


@dataclass(kw_only=True)
class AnthropicServer(Fake):
    """The Messages API: `output_config` holds, and a demanded tool is called."""

    def answer(self, method: str, path: str, asked: Asked) -> Answer | None:  # noqa: ARG002 - as the others
        self.posts.append(asked)
        form = asked.get("output_config", {}).get("format")
        head = {"type": "message", "stop_reason": "end_turn", "usage": {"output_tokens": 5}}
        if form is not None and not asked.get("tools"):
            return as_json(
                {**head, "content": [{"type": "text", "text": json.dumps(first_instance(form["schema"]))}]}
            )
        if form is not None or not asked.get("tools"):
            return error(400)
        name = asked.get("tool_choice", {}).get("name", "dim")
        level = int(_LEVEL.findall(json.dumps(asked["messages"]))[0])
        call = {"type": "tool_use", "id": "t", "name": name, "input": {"n": level}}
        thought = {"type": "thinking", "thinking": "Hm.", "signature": "x"}
        return as_json({**head, "stop_reason": "tool_use", "content": [thought, call]})


@dataclass(kw_only=True)
class Broken(Fake):
    """A server that is asked and never answers rightly: `reply` is what it does, None for nothing at all."""

    reply: Answer | None

    def answer(self, method: str, path: str, asked: Asked) -> Answer | None:  # noqa: ARG002 - as the others
        if method == "GET":
            return error(404)
        self.posts.append(asked)
        return self.reply


def _limit(asked: Asked) -> int:
    """The tokens that a request may generate, by whatever name."""
    named = (
        asked.get("max_tokens"),
        asked.get("max_completion_tokens"),
        asked.get("options", {}).get("num_predict"),
    )
    [limit] = [each for each in named if each is not None]
    return int(limit)


@contextmanager
def serving(server: Fake) -> Iterator[str]:
    """Serve until the block is left; yield where."""
    http = _Listener(server)
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield f"http://127.0.0.1:{http.server_port}"
    finally:
        http.closing.set()
        http.shutdown()
        thread.join()
        http.server_close()


class _Listener(ThreadingHTTPServer):
    def __init__(self, fake: Fake) -> None:
        self.fake = fake
        self.closing = threading.Event()
        super().__init__(("127.0.0.1", 0), _Handler)

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing: a client that goes away is part of many tests."""


class _Handler(BaseHTTPRequestHandler):
    server: _Listener
    timeout = 30

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class names it
        """Say nothing."""

    def do_GET(self) -> None:
        self._send(self.server.fake.answer("GET", self.path, {}))

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))))
        answer = self.server.fake.answer("POST", self.path, body)
        if answer is not None and answer[0] == 200 and self.path != "/api/show":
            self.server.fake.granted.append(_limit(body))
        self._send(answer)

    def _send(self, answer: Answer | None) -> None:
        if answer is None:
            self.server.closing.wait()
            return
        status, body = answer
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
