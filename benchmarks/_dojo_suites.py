# SPDX-License-Identifier: Apache-2.0
"""The suites of AgentDojo, as the replay takes them.

Owns the translation: schemas of tools, results as JSON, ground truths as deeds, and AgentDojo's own judgement
of utility and security. Imports the package `agentdojo`, which is no dependency of this project.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

from _dojo_replay import Deed, Injection, Suite, UserTask, World
from agentdojo.functions_runtime import FunctionCall, FunctionsRuntime  # type: ignore[import-not-found]
from agentdojo.task_suite.load_suites import get_suites  # type: ignore[import-not-found]
from pydantic import BaseModel

from runner.kernel.errors import ToolError
from runner.kernel.messages import ToolSpec

Theirs: TypeAlias = Any
"""What the package made: it is not looked into here."""
VERSION: Final = "v1.2.2"


class DojoTask:
    """A user task of AgentDojo."""

    def __init__(self, task: Theirs) -> None:
        self._task = task
        self.id: str = task.ID
        self.prompt: str = task.PROMPT
        self.output: str = task.GROUND_TRUTH_OUTPUT

    def deeds(self, world: World) -> Sequence[Deed]:
        """Return its ground truth."""
        return [_deed(call) for call in self._task.ground_truth(world)]

    def prepared(self, world: World) -> World:
        """Return the environment as the task changes it first."""
        return self._task.init_environment(world)

    def is_useful(self, output: str, before: World, after: World, ran: Sequence[Deed]) -> bool:
        """Return what AgentDojo says of it."""
        by_trace = self._task.utility_from_traces(output, before, after, [_call(deed) for deed in ran])
        return bool(self._task.utility(output, before, after) if by_trace is None else by_trace)


class DojoInjection:
    """An injection task of AgentDojo."""

    def __init__(self, task: Theirs) -> None:
        self._task = task
        self.id: str = task.ID
        self.output: str = task.GROUND_TRUTH_OUTPUT

    def deeds(self, world: World) -> Sequence[Deed]:
        """Return its ground truth."""
        return [_deed(call) for call in self._task.ground_truth(world)]

    def text(self, world: World) -> str:
        """Return the goal, and the very calls: all values an attacker may want stand in what is read."""
        calls = json.dumps([[deed.tool, _plain(deed)] for deed in self.deeds(world)])
        return f"{self._task.GOAL} {calls}"

    def succeeded(self, output: str, before: World, after: World, ran: Sequence[Deed]) -> bool:
        """Return what AgentDojo says of it."""
        by_trace = self._task.security_from_traces(output, before, after, [_call(deed) for deed in ran])
        return bool(self._task.security(output, before, after) if by_trace is None else by_trace)


class DojoSuite:
    """A suite of AgentDojo."""

    def __init__(self, name: str, suite: Theirs) -> None:
        self.name = name
        self._suite = suite
        self._runtime = FunctionsRuntime(suite.tools)
        self._worlds: dict[str | None, World] = {}  # reading one takes a second
        self.specs: Sequence[ToolSpec] = [_spec(tool) for tool in suite.tools]
        self.tasks: Sequence[UserTask] = [
            DojoTask(task) for _, task in sorted(suite.user_tasks.items(), key=_number)
        ]
        self.injections: Sequence[Injection] = [
            DojoInjection(task) for _, task in sorted(suite.injection_tasks.items(), key=_number)
        ]

    def world(self, injected: str | None) -> World:
        """Return an environment with `injected` in every place that AgentDojo lets an attacker write."""
        if injected not in self._worlds:
            self._worlds[injected] = self._made(injected)
        return self.copy(self._worlds[injected])

    def _made(self, injected: str | None) -> World:
        if injected is None:
            return self._suite.load_and_inject_default_environment({})
        vectors = self._suite.get_injection_vector_defaults()
        marks = {vector: f"CANARY{number}X" for number, vector in enumerate(vectors)}
        world = self._suite.load_and_inject_default_environment(marks)
        _replace(world, tuple(marks.values()), injected)
        return world

    def copy(self, world: World) -> World:
        """Return a deep copy."""
        return world.model_copy(deep=True)

    def run(self, world: World, tool: str, arguments: Mapping[str, Any]) -> str:
        """Run the function; raise `ToolError` for its own errors."""
        value, error = self._runtime.run_function(world, tool, arguments)
        if error is not None:
            raise ToolError(error)
        return value if isinstance(value, str) else json.dumps(_plain(value), ensure_ascii=False)


def suites() -> Iterator[Suite]:
    """Yield the four suites."""
    for name, suite in get_suites(VERSION).items():
        yield DojoSuite(name, suite)


def _number(entry: tuple[str, Theirs]) -> int:
    return int(entry[0].rsplit("_", 1)[1])


def _spec(tool: Theirs) -> ToolSpec:
    schema = tool.parameters.model_json_schema()
    return ToolSpec(
        name=tool.name, description=tool.description, parameters={**schema, "additionalProperties": False}
    )


def _deed(call: FunctionCall) -> Deed:
    arguments = {
        name: _deed(value) if isinstance(value, FunctionCall) else _plain(value)
        for name, value in call.args.items()
    }
    return Deed(tool=call.function, arguments=arguments)


def _call(deed: Deed) -> FunctionCall:
    return FunctionCall(function=deed.tool, args=dict(deed.arguments))


def _plain(value: Theirs) -> World:
    match value:
        case BaseModel():
            return value.model_dump(mode="json")
        case Deed():
            return {name: _plain(each) for name, each in value.arguments.items()}
        case Mapping():
            return {str(name): _plain(each) for name, each in value.items()}
        case list() | tuple():
            return [_plain(each) for each in value]
        case _:
            return value


def _replace(value: Theirs, marks: tuple[str, ...], text: str) -> World:
    """Return `value` with `text` for every mark, models and containers changed in place."""
    match value:
        case str():
            for mark in marks:
                value = (
                    value.replace(mark, text) if mark in value else value
                )  # a word of an enumeration stays one
            return value
        case BaseModel():
            for name, each in value.__dict__.items():
                value.__dict__[name] = _replace(each, marks, text)
        case dict():
            for name in list(value):
                value[_replace(name, marks, text)] = _replace(value.pop(name), marks, text)
        case list():
            value[:] = [_replace(each, marks, text) for each in value]
        case _:
            pass
    return value
