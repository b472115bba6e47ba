# SPDX-License-Identifier: Apache-2.0
"""A datapizza client whose every choice and every structured reply is held to a grammar.

Owns the conversation: what is asked, in which order, and what a reply becomes. With tools it asks twice:
first which one, under a list of names, then for its arguments, under the grammar of their schema. A request
never holds tools and a constraint together, since open models then stop calling tools. A reply that does not
fit is an error: a server may accept a constraint and ignore it.

Leaves to the client of each runtime how a constraint is written. Every request is an object that a generator
yields; who sends it, and whether by waiting or awaiting, is decided at the bottom.
"""

import json
from collections.abc import AsyncIterator, Generator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar
from uuid import uuid4

import httpx
from datapizza.core.cache import Cache
from datapizza.core.clients import Client, ClientResponse
from datapizza.core.clients.models import TokenUsage
from datapizza.memory import Memory, Turn
from datapizza.memory.memory_adapter import MemoryAdapter
from datapizza.tools import Tool
from datapizza.type import (
    ROLE,
    Block,
    FunctionCallBlock,
    FunctionCallResultBlock,
    StructuredBlock,
    TextBlock,
)
from pydantic import BaseModel

from .grammar import CompiledSchema, arrangements, canonical_text, compile_schema, matches

ANSWER = "answer"
"""What a model chooses that needs no tool."""
MAX_TOKENS = 1024
"""The bound of a reply for which nobody gave one."""
SAMPLING = frozenset(
    {"seed", "top_p", "top_k", "min_p", "repeat_penalty", "presence_penalty", "frequency_penalty", "stop"}
)
"""Further arguments that a call may carry. None of them can hold content or undo a constraint."""
_OK = 200
_PATH = "/v1/chat/completions"

Body = dict[str, Any]
Conversation = Generator[Body, Body, ClientResponse]
"""Yields the bodies of requests, is sent the bodies of replies, and returns what came of it."""


class ReplyError(RuntimeError):
    """The server's answer cannot be used: it failed, was cut off, or does not fit its constraint."""


class PlainMemory(MemoryAdapter):
    """Writes every turn as text, calls and their results too: a template that knows no tools reads it."""

    def _text_to_message(self, text: str, role: ROLE) -> dict[str, str]:
        return {"role": role.value, "content": text}

    def _turn_to_message(self, turn: Turn) -> dict[str, str]:
        role = ROLE.USER if turn.role is ROLE.TOOL else turn.role
        return self._text_to_message("\n".join(map(_written, turn)), role)


def _written(block: Block) -> str:
    match block:
        case TextBlock():
            return str(block.content)
        case StructuredBlock():
            content = block.content
            return content.model_dump_json() if isinstance(content, BaseModel) else json.dumps(content)
        case FunctionCallBlock():
            return json.dumps({"tool": block.name, "arguments": block.arguments}, ensure_ascii=False)
        case FunctionCallResultBlock():
            return f"Result of {block.tool.name}:\n{block.result}"
        case _:
            raise ValueError(f"a {type(block).__name__} cannot be sent to this server: pass its text")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ask:
    """What all requests of one call share."""

    messages: Sequence[dict[str, str]]
    temperature: float | None
    max_tokens: int | None
    sampling: Mapping[str, Any]


class ConstrainedClient(Client):  # type: ignore[misc]  # datapizza publishes no types
    """A client of a chat server on HTTP that can hold a reply to a grammar or a schema."""

    DEFAULT_URL: ClassVar[str]
    """Where the runtime listens if nobody says otherwise."""

    def __init__(  # noqa: PLR0917 - the order that all datapizza clients have
        self,
        model: str = "",
        system_prompt: str = "",
        temperature: float | None = None,
        cache: Cache | None = None,
        base_url: str | None = None,
        api_key: str | None = None,
        timeout: float = 600.0,
    ) -> None:
        """Make a client.

        `base_url` is the server's address without a path, `timeout` is in seconds, `temperature` in [0, 2].
        """
        super().__init__(model_name=model, system_prompt=system_prompt, temperature=temperature, cache=cache)
        self.memory_adapter = PlainMemory()
        headers = {} if api_key is None else {"Authorization": f"Bearer {api_key}"}
        # Neither proxies of the environment nor redirects: a prompt goes where the program says, or nowhere.
        self._options: dict[str, Any] = {
            "base_url": base_url or self.DEFAULT_URL,
            "headers": headers,
            "timeout": timeout,
            "trust_env": False,
            "follow_redirects": False,
        }

    def constraint(self, compiled: CompiledSchema) -> Body:
        """Return the members of a request that hold its reply to `compiled`, in the runtime's words."""
        raise NotImplementedError

    def close(self) -> None:
        """Close the connections of the calls that wait."""
        if self.client is not None:
            self.client.close()

    async def a_close(self) -> None:
        """Close the connections of the calls that are awaited."""
        if self.a_client is not None:
            await self.a_client.aclose()

    # --- what datapizza calls ------------------------------------------------------------------------

    def _set_client(self) -> None:
        self.client = httpx.Client(**self._options)

    def _set_a_client(self) -> None:
        self.a_client = httpx.AsyncClient(**self._options)

    def _convert_tool_choice(self, tool_choice: str | list[str]) -> dict[str, Any]:
        return {"tool_choice": tool_choice}

    def _invoke(self, *args: Any, **kwargs: Any) -> ClientResponse:
        return self._run(self._call(*args, **kwargs))

    async def _a_invoke(self, *args: Any, **kwargs: Any) -> ClientResponse:
        return await self._a_run(self._call(*args, **kwargs))

    def _structured_response(self, *args: Any, **kwargs: Any) -> ClientResponse:
        return self._run(self._structured(*args, **kwargs))

    async def _a_structured_response(self, *args: Any, **kwargs: Any) -> ClientResponse:
        return await self._a_run(self._structured(*args, **kwargs))

    def _stream_invoke(self, *args: Any, **kwargs: Any) -> Iterator[ClientResponse]:
        call = self._call(*args, stream=True, **kwargs)
        body = next(call)
        while not body.get("stream"):
            try:
                body = call.send(self._post(body))
            except StopIteration as done:
                yield done.value
                return
        shown = _Shown()
        with self._opened(body) as lines:
            for line in lines:
                if (piece := shown.feed(line)) is not None:
                    yield piece
        yield shown.whole()

    async def _a_stream_invoke(self, *args: Any, **kwargs: Any) -> AsyncIterator[ClientResponse]:
        call = self._call(*args, stream=True, **kwargs)
        body = next(call)
        while not body.get("stream"):
            try:
                body = call.send(await self._a_post(body))
            except StopIteration as done:
                yield done.value
                return
        shown = _Shown()
        async with self._a_opened(body) as lines:
            async for line in lines:
                if (piece := shown.feed(line)) is not None:
                    yield piece
        yield shown.whole()

    def _embed(self, text: str | list[str], model_name: str | None = None) -> Any:
        return _vectors(self._post(self._embedding(text, model_name), "/v1/embeddings"), text)

    async def _a_embed(self, text: str | list[str], model_name: str | None = None) -> Any:
        return _vectors(await self._a_post(self._embedding(text, model_name), "/v1/embeddings"), text)

    # --- the conversation ----------------------------------------------------------------------------

    def _call(  # noqa: PLR0917 - datapizza's order
        self,
        input: Any,  # noqa: A002 - datapizza's name
        tools: list[Tool] | None = None,
        memory: Memory | None = None,
        tool_choice: Any = "auto",
        temperature: float | None = None,
        max_tokens: int | None = None,
        system_prompt: str | None = None,
        *,
        stream: bool = False,
        **sampling: Any,
    ) -> Conversation:
        """Let the model choose a tool and fill it, or answer in text."""
        offered, may_answer = _offered(tools or [], tool_choice)
        ask = self._ask(input, memory, temperature, max_tokens, system_prompt, sampling, offered)
        usage = TokenUsage()
        if offered:
            names = [*offered, ANSWER] if may_answer else list(offered)
            choice = yield from self._constrained(ask, _choice(names), f"Choose one: {', '.join(names)}.")
            usage += choice.usage
            name = choice.value["tool"]
            if name != ANSWER:
                told = f"Now write the arguments of {name} as JSON."
                filled = yield from self._constrained(ask, _parameters(offered[name]), told)
                block = FunctionCallBlock(
                    id=f"call_{uuid4().hex}", name=name, arguments=filled.value, tool=offered[name]
                )
                return ClientResponse(content=[block], usage=usage + filled.usage, stop_reason="tool_calls")
        reply = yield self._body(ask, stream=stream)
        text, finish = _message(reply)
        return ClientResponse(
            content=[TextBlock(content=text)], usage=usage + _usage(reply), stop_reason=finish
        )

    def _structured(  # noqa: PLR0917 - datapizza's order
        self,
        input: Any,  # noqa: A002 - datapizza's name
        output_cls: Any,
        memory: Memory | None = None,
        temperature: float | None = None,
        max_tokens: int | None = None,
        system_prompt: str | None = None,
        tools: list[Tool] | None = None,
        tool_choice: Any = "auto",
        **sampling: Any,
    ) -> Conversation:
        """Ask for an object of `output_cls`: a pydantic model, or a JSON Schema."""
        if tools and tool_choice != "none":
            raise ValueError(
                "a structured reply takes no tools: call invoke with them, then ask for the object"
            )
        is_model = isinstance(output_cls, type) and issubclass(output_cls, BaseModel)
        schema = output_cls.model_json_schema() if is_model else output_cls
        ask = self._ask(input, memory, temperature, max_tokens, system_prompt, sampling, {})
        reply = yield from self._constrained(ask, schema, "")
        value = output_cls.model_validate(reply.value) if is_model else reply.value
        return ClientResponse(content=[StructuredBlock(content=value)], usage=reply.usage, stop_reason="stop")

    def _ask(  # noqa: PLR0917 - gathered in one place only
        self,
        input: Any,  # noqa: A002 - datapizza's name
        memory: Memory | None,
        temperature: float | None,
        max_tokens: int | None,
        system_prompt: str | None,
        sampling: Mapping[str, Any],
        offered: Mapping[str, Tool],
    ) -> _Ask:
        if unknown := sampling.keys() - SAMPLING:
            raise TypeError(
                f"unknown arguments: {', '.join(sorted(unknown))}. Known: {', '.join(sorted(SAMPLING))}"
            )
        told = [system_prompt or self.system_prompt or "", *map(_described, offered.values())]
        messages = self.memory_adapter.memory_to_messages(memory, "\n\n".join(filter(None, told)), input)
        temperature = self.temperature if temperature is None else temperature
        return _Ask(messages=messages, temperature=temperature, max_tokens=max_tokens, sampling=sampling)

    def _body(self, ask: _Ask, *, told: str = "", stream: bool = False) -> Body:
        last = [{"role": "user", "content": told}] if told else []
        body: Body = {
            "model": self.model_name,
            "messages": [*ask.messages, *last],
            "max_tokens": ask.max_tokens or MAX_TOKENS,
            **ask.sampling,
        }
        if ask.temperature is not None:
            body["temperature"] = ask.temperature
        return body | ({"stream": True, "stream_options": {"include_usage": True}} if stream else {})

    def _constrained(self, ask: _Ask, schema: Any, told: str) -> Generator[Body, Body, "_Value"]:
        """Ask for JSON of `schema`; raise `ReplyError` for anything else."""
        compiled = compile_schema(schema)
        if compiled.gbnf is None or compiled.form is None:
            raise ValueError(f"this schema cannot be turned into a grammar: {compiled.reason}")
        reply = yield self._body(ask, told=told) | self.constraint(compiled)
        text, finish = _message(reply)
        if finish == "length":
            raise ReplyError("truncated: the reply reached max_tokens before it was complete")
        try:
            value = json.loads(text)
        except ValueError:
            raise ReplyError("malformed_json: the server did not hold the reply to its grammar") from None
        texts = map(canonical_text, arrangements(compiled.form, value))
        if not any(matches(compiled.gbnf, each) for each in texts):
            raise ReplyError("schema_violation: the server did not hold the reply to its schema")
        return _Value(value=value, usage=_usage(reply))

    def _embedding(self, text: str | list[str], model_name: str | None) -> Body:
        return {"model": model_name or self.model_name, "input": text}

    # --- sending -------------------------------------------------------------------------------------

    def _run(self, conversation: Conversation) -> ClientResponse:
        body = next(conversation)
        while True:
            try:
                body = conversation.send(self._post(body))
            except StopIteration as done:
                return done.value

    async def _a_run(self, conversation: Conversation) -> ClientResponse:
        body = next(conversation)
        while True:
            try:
                body = conversation.send(await self._a_post(body))
            except StopIteration as done:
                return done.value

    def _post(self, body: Body, path: str = _PATH) -> Body:
        return _parsed(self._get_client().post(path, json=body))

    async def _a_post(self, body: Body, path: str = _PATH) -> Body:
        return _parsed(await self._get_a_client().post(path, json=body))

    @contextmanager
    def _opened(self, body: Body) -> Iterator[Iterator[str]]:
        with self._get_client().stream("POST", _PATH, json=body) as response:
            _refuse_failure(response)
            yield response.iter_lines()

    @asynccontextmanager
    async def _a_opened(self, body: Body) -> AsyncIterator[AsyncIterator[str]]:
        async with self._get_a_client().stream("POST", _PATH, json=body) as response:
            _refuse_failure(response)
            yield response.aiter_lines()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Value:
    """A reply that fits its schema."""

    value: Any
    usage: TokenUsage


class _Shown:
    """The pieces of a streamed text, and the whole of it."""

    def __init__(self) -> None:
        self._text = ""
        self._finish: str | None = None
        self._usage = TokenUsage()

    def feed(self, line: str) -> ClientResponse | None:
        """Take a line of the event stream; return what it adds to the text."""
        data = line.removeprefix("data:").strip()
        if not line.startswith("data:") or data == "[DONE]":
            return None
        event = json.loads(data)
        if "error" in event:
            raise ReplyError("the server failed in the middle of its reply")
        self._usage += _usage(event)
        (choice,) = event.get("choices") or ({},)
        self._finish = choice.get("finish_reason") or self._finish
        piece = (choice.get("delta") or {}).get("content")
        if not piece:
            return None
        self._text += piece
        return ClientResponse(content=[TextBlock(content=self._text)], delta=piece)

    def whole(self) -> ClientResponse:
        """Return the whole reply; raise `ReplyError` if its end never came."""
        if self._finish is None:
            raise ReplyError("the stream ended before the reply did")
        return ClientResponse(
            content=[TextBlock(content=self._text)], usage=self._usage, stop_reason=self._finish
        )


# --- schemas of choices and arguments -------------------------------------------------------------------


def _offered(tools: Sequence[Tool], choice: Any) -> tuple[dict[str, Tool], bool]:
    """Return the tools that `tool_choice` leaves, and whether the model may answer instead."""
    by_name = {tool.name: tool for tool in tools}
    match choice:
        case "none":
            return {}, True
        case "auto":
            return by_name, True
        case "required" if by_name:
            return by_name, False
        case [*names] if names and by_name.keys() >= set(names):
            return {name: by_name[name] for name in names}, False
        case _:
            raise ValueError("tool_choice is auto, required, none, or a list of tools that were passed")


def _choice(names: Sequence[str]) -> Body:
    return {"type": "object", "properties": {"tool": {"enum": list(names)}}, "required": ["tool"]} | _CLOSED


def _parameters(tool: Tool) -> Body:
    return json.loads(json.dumps(tool.schema["parameters"], default=_referent)) | _CLOSED  # type: ignore[no-any-return]


def _described(tool: Tool) -> str:
    return f"Tool {tool.name}: {tool.schema['description']}\nArguments: {json.dumps(_parameters(tool))}"


def _referent(value: Any) -> Any:
    """Return what a reference in a tool's schema stands for; datapizza keeps it behind a proxy."""
    return value.__subject__


_CLOSED = {"additionalProperties": False}


# --- reading replies ------------------------------------------------------------------------------------


def _parsed(response: httpx.Response) -> Body:
    _refuse_failure(response)
    body = response.json()
    if not isinstance(body, dict) or "error" in body:
        raise ReplyError("the server's reply is not that of a chat server")
    return body


def _refuse_failure(response: httpx.Response) -> None:
    """Raise `ReplyError` for a failure, without the server's words for it: they may repeat the prompt."""
    if response.status_code != _OK:
        raise ReplyError(f"the server answered with status {response.status_code}")


def _message(reply: Body) -> tuple[str, str]:
    """Return text and finish reason of the only choice."""
    try:
        (choice,) = reply["choices"]
        return choice["message"].get("content") or "", choice.get("finish_reason") or "stop"
    except (KeyError, TypeError, ValueError, AttributeError):
        raise ReplyError("the server's reply is not that of a chat server") from None


def _usage(reply: Body) -> TokenUsage:
    counts = reply.get("usage") or {}
    cached = (counts.get("prompt_tokens_details") or {}).get("cached_tokens") or 0
    return TokenUsage(
        prompt_tokens=counts.get("prompt_tokens") or 0,
        completion_tokens=counts.get("completion_tokens") or 0,
        cached_tokens=cached,
    )


def _vectors(reply: Body, text: str | list[str]) -> Any:
    """Return one vector for a text, and a list of them for a list."""
    try:
        vectors = [item["embedding"] for item in sorted(reply["data"], key=lambda item: item["index"])]
    except (KeyError, TypeError):
        raise ReplyError("the server's reply is not that of an embedding server") from None
    if len(vectors) != (1 if isinstance(text, str) else len(text)):
        raise ReplyError("the server returned another number of vectors than there were texts")
    return vectors[0] if isinstance(text, str) else vectors
