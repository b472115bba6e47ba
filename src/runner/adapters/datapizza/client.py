# SPDX-License-Identifier: Apache-2.0
"""A sealed client in the shape of a datapizza `Client`, for a datapizza `Agent`.

Owns the translation of their calls, single, streamed, structured and embedding, synchronous and not, into
inferences and batches of one `SealedClient`: there is no other way through this class, and so P1 holds for
all of them. Refuses what would go around the gate: further keyword arguments, media by path or address, a
cache, a model that the profile does not name. A denial comes out as it is, `EgressDenied`.
"""

import json
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import Any, Final, NoReturn, TypeAlias

import anyio.to_thread
from anyio.from_thread import start_blocking_portal
from datapizza.core.clients import Client
from datapizza.core.clients.models import ClientResponse
from datapizza.type import TextBlock

from runner.adapters.datapizza.bridge import Bridge
from runner.adapters.datapizza.replies import HOW, Form, parse_form
from runner.adapters.datapizza.tools import spec_of
from runner.kernel.errors import SealError
from runner.kernel.inference import InferenceRequest
from runner.kernel.labels import DataClass
from runner.kernel.messages import Block
from runner.perimeter.client import Reply, SealedClient
from runner.perimeter.task import Task
from runner.perimeter.toolbox import SealedTools

MAX_TOKENS: Final = 1024
"""The bound of a reply for which nobody gave one."""
_Theirs: TypeAlias = Any
"""Whatever datapizza passes: it publishes no types."""
_Pieces: TypeAlias = "SimpleQueue[str | None]"
_Vectors: TypeAlias = "list[float] | list[list[float]]"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Question:
    """A call of datapizza's, translated: what to ask, and the form of the reply."""

    request: InferenceRequest = field(repr=False)
    form: Form


class SealedDatapizzaClient(Client):  # type: ignore[misc]  # datapizza publishes no types
    """A datapizza client whose every inference passes the perimeter.

    Arguments: `client` is where it goes, and `task` the task it belongs to, opened by `client.task(goal)`.
    Every text of datapizza's counts as at least `data_class`, from nobody in particular, and every picture or
    document as at least `media_class`: C3 when nobody declares one. `tools` are the
    sealed tools of the runtime: a datapizza tool is offered to the model only if the profile grants it, so
    that the trace names what ran outside (P3). Make them known with `open_profile(tools=host_tools([...]))`.

    Raises `SealError` for a client that is not sealed, or sealed by another perimeter than `tools`.
    """

    def __init__(
        self,
        client: SealedClient,
        *,
        task: Task,
        tools: SealedTools | None = None,
        data_class: DataClass = DataClass.C2,
        media_class: DataClass | None = None,
        system_prompt: str = "",
    ) -> None:
        if not isinstance(client, SealedClient):
            raise SealError("SealedDatapizzaClient takes a sealed client: Perimeter.seal() makes one")
        if tools is not None and tools.perimeter is not client.perimeter:
            raise SealError("client and tools belong to different perimeters")
        super().__init__(model_name=client.backend, system_prompt="")
        self.system_prompt = system_prompt
        self._sealed = client
        self._task = task
        self._bridge = Bridge(task, data_class, media_class)
        self._granted = () if tools is None else tools.specs

    # --- what datapizza calls --------------------------------------------------------------------

    def _invoke(self, *args: _Theirs, **kwargs: _Theirs) -> ClientResponse:
        return self._now(self._question(*args, **kwargs))

    async def _a_invoke(self, *args: _Theirs, **kwargs: _Theirs) -> ClientResponse:
        return await self._answer(self._question(*args, **kwargs))

    def _structured_response(self, *args: _Theirs, **kwargs: _Theirs) -> ClientResponse:
        return self._now(self._structured(*args, **kwargs))

    async def _a_structured_response(self, *args: _Theirs, **kwargs: _Theirs) -> ClientResponse:
        return await self._answer(self._structured(*args, **kwargs))

    def _stream_invoke(self, *args: _Theirs, **kwargs: _Theirs) -> Iterator[ClientResponse]:
        question = self._question(*args, **kwargs)
        shown = ""
        with self._running(question) as (pieces, future):
            while (piece := pieces.get()) is not None:
                shown += piece
                yield _delta(shown, piece)
            yield from _ending(shown, question.form.read(future.result()))

    async def _a_stream_invoke(self, *args: _Theirs, **kwargs: _Theirs) -> AsyncIterator[ClientResponse]:
        question = self._question(*args, **kwargs)
        shown = ""
        with self._running(question) as (pieces, future):
            while (piece := await anyio.to_thread.run_sync(pieces.get, abandon_on_cancel=True)) is not None:
                shown += piece
                yield _delta(shown, piece)
            for response in _ending(shown, question.form.read(future.result())):
                yield response

    def _embed(self, text: _Theirs, model_name: str | None = None, **more: _Theirs) -> _Vectors:
        with start_blocking_portal() as portal:
            return portal.call(lambda: self._a_embed(text, model_name, **more))

    async def _a_embed(self, text: _Theirs, model_name: str | None = None, **more: _Theirs) -> _Vectors:
        """Return the vector of a text, or those of a list of texts, in one batch.

        Raises `SealError` for any further argument, and for a model that is not the profile's.
        """
        _refuse_more(more)
        if model_name not in {None, self.model_name, self._sealed.embeds}:
            raise SealError("the profile names the model for embeddings. Fix: leave model_name out")
        texts = [text] if isinstance(text, str) else list(text)
        blocks = [self._bridge.block(each) for each in texts]
        found = await self._sealed.embed(blocks, task=self._task)
        vectors = [list(vector) for vector in found.vectors]
        return vectors[0] if isinstance(text, str) else vectors

    # Their public calls add a cache, prompts on spans and in the debug log, and pass the rest on: not here.
    invoke = _invoke
    a_invoke = _a_invoke
    structured_response = _structured_response
    a_structured_response = _a_structured_response
    stream_invoke = _stream_invoke
    a_stream_invoke = _a_stream_invoke
    embed = _embed
    a_embed = _a_embed

    def _convert_tool_choice(self, tool_choice: str | list[str]) -> dict[str, Any]:
        """Return the choice as it is: it becomes a schema, not a field of a protocol."""
        return {"tool_choice": tool_choice}

    # --- what is refused -------------------------------------------------------------------------

    @property
    def cache(self) -> None:
        """There is none."""

    @cache.setter
    def cache(self, cache: object) -> None:
        """Refuse a cache: its key leaves out tools and roles, and a hit would be on no record."""
        if cache is not None:
            raise SealError("a sealed client has no cache: a hit would leave no record")

    def _set_client(self) -> NoReturn:
        raise SealError("a sealed datapizza client carries no SDK")

    def _set_a_client(self) -> NoReturn:
        raise SealError("a sealed datapizza client carries no SDK")

    # --- one inference ---------------------------------------------------------------------------

    def _structured(  # noqa: PLR0917 - datapizza's order
        self,
        input: _Theirs,  # noqa: A002 - datapizza's name
        output_cls: _Theirs,
        memory: _Theirs = None,
        temperature: float | None = None,
        max_tokens: int | None = None,
        system_prompt: str | None = None,
        tools: _Theirs = None,
        tool_choice: _Theirs = "auto",
        **more: _Theirs,
    ) -> _Question:
        """Translate a structured call, whose arguments come in another order."""
        common = (input, tools, memory, tool_choice, temperature, max_tokens, system_prompt)
        return self._question(*common, output_cls=output_cls, **more)

    def _question(  # noqa: PLR0917 - as above
        self,
        input: _Theirs,  # noqa: A002 - datapizza's name
        tools: _Theirs = None,
        memory: _Theirs = None,
        tool_choice: _Theirs = "auto",
        temperature: float | None = None,
        max_tokens: int | None = None,
        system_prompt: str | None = None,
        *,
        output_cls: _Theirs = None,
        **more: _Theirs,
    ) -> _Question:
        """Translate a call; raise `SealError` for what would go around the gate."""
        _refuse_more(more)
        form = parse_form(tools, tool_choice, output_cls)
        request = InferenceRequest(
            messages=self._bridge.messages(
                self._system(system_prompt or self.system_prompt, form), memory, input
            ),
            schema=form.schema,
            max_tokens=max_tokens or MAX_TOKENS,
            temperature=temperature or 0.0,
            stream=form.schema is None,
        )
        return _Question(request=request, form=form)

    def _system(self, prompt: str | None, form: Form) -> list[Block]:
        """Return what the model is told first: their prompt, the tools, and how to reply."""
        told = [self._bridge.block(prompt)] if prompt else []
        if form.tools:
            told.append(self._task.instruction(HOW))
            told += [self._bridge.block(self._tell(tool)) for tool in form.tools.values()]
        if form.answer is not None:
            told.append(self._bridge.block(f"An answer is JSON of this schema: {json.dumps(form.answer)}"))
        return told

    def _tell(self, tool: _Theirs) -> str:
        """Return a tool as text for the model; raise `SealError` if it would run off the record."""
        spec = spec_of(tool)
        if tool.func is not None and spec not in self._granted:
            fix = "open_profile(tools=host_tools([...])), a grant for it, and tools=runtime.tools here"
            raise SealError(f"the profile does not grant the datapizza tool {spec.name!r}. Fix: {fix}")
        return f"{spec.name}: {spec.description}\n{json.dumps(spec.parameters)}"

    async def _answer(self, question: _Question) -> ClientResponse:
        return question.form.read(await self._infer(question))

    async def _infer(self, question: _Question, on_text: Callable[[str], None] | None = None) -> Reply:
        return await self._sealed.infer(question.request, task=self._task, on_text=on_text)

    def _now(self, question: _Question) -> ClientResponse:
        """Ask from synchronous code, a running event loop or none."""
        with start_blocking_portal() as portal:
            return portal.call(self._answer, question)

    @contextmanager
    def _running(self, question: _Question) -> Iterator[tuple[_Pieces, "Future[Reply]"]]:
        """Ask in another thread: yield its pieces of text as they arrive, then None, and its reply.

        Leaving early cancels the inference. JSON is not shown in pieces.
        """
        pieces: _Pieces = SimpleQueue()
        shows = pieces.put if question.form.schema is None else None
        with start_blocking_portal() as portal:
            future = portal.start_task_soon(self._infer, question, shows)
            future.add_done_callback(lambda _: pieces.put(None))
            try:
                yield pieces, future
            finally:
                future.cancel()


def _refuse_more(more: Mapping[str, _Theirs]) -> None:
    if more:
        raise SealError(f"a sealed client takes no further arguments: {', '.join(sorted(more))}")


def _delta(shown: str, piece: str) -> ClientResponse:
    return ClientResponse(content=[TextBlock(content=shown)], delta=piece)


def _ending(shown: str, response: ClientResponse) -> Iterator[ClientResponse]:
    """Yield the text as one piece if none was shown, then the whole response."""
    if response.text and not shown:
        yield _delta(response.text, response.text)
    yield response
