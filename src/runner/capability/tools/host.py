# SPDX-License-Identifier: Apache-2.0
"""Host tools: a program's own Python functions, offered to the loop.

Owns the wrapping of a function as a `Tool`. A host tool runs unmediated in this process: it is granted
by name like any tool, the trace header names it, and unless the profile says `trusted: true` the
verdict on the run is UNVERIFIABLE (P3).
"""

from collections.abc import Callable
from typing import Any, Final, cast

from pydantic import TypeAdapter

from runner.kernel.messages import JsonObject, ToolSpec
from runner.kernel.ports import Effect, GrantedCall, ToolOutput


class HostTool:
    """A Python function as a tool. Its name, docstring and type hints become the specification.

    Arguments: `function` takes keyword arguments with JSON types and returns text.
    """

    effect: Final = Effect.HOST
    path_arguments: Final[frozenset[str]] = frozenset()

    def __init__(self, function: Callable[..., str]) -> None:
        adapter: TypeAdapter[Any] = TypeAdapter(cast("Any", function))
        schema = adapter.json_schema()
        parameters: JsonObject = {**schema, "additionalProperties": False}
        description = (function.__doc__ or function.__name__).strip().splitlines()[0]
        self.spec: Final = ToolSpec(name=function.__name__, description=description, parameters=parameters)
        self._function = function

    def run(self, call: GrantedCall) -> ToolOutput:
        """Call the function with the arguments the policy allowed."""
        return ToolOutput(text=str(self._function(**call.arguments)))
