# SPDX-License-Identifier: Apache-2.0
"""Host tools: a program's own Python functions, offered to the loop.

Owns the wrapping of a function as a `Tool`. A host tool runs unmediated in this process: it is granted
by name like any tool, the trace header names it, and unless the profile says `trusted: true` the
verdict on the run is UNVERIFIABLE (P3).
"""

from collections.abc import Callable
from inspect import Parameter, signature
from typing import Any, Final, cast

from pydantic import PydanticUserError, TypeAdapter

from runner.kernel.errors import SealError
from runner.kernel.messages import JsonObject, ToolSpec
from runner.kernel.ports import Effect, GrantedCall, ToolOutput

_BY_NAME: Final = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)


class HostTool:
    """A Python function as a tool. Its name, docstring and type hints become the specification.

    Arguments: `function` takes keyword arguments, each with a JSON type, and returns text.

    Raises `SealError` for a function with an argument that has no type, or one that JSON cannot say: no
    policy could judge it.
    """

    effect: Final = Effect.HOST
    path_arguments: Final[frozenset[str]] = frozenset()

    def __init__(self, function: Callable[..., str]) -> None:
        name = getattr(function, "__name__", type(function).__name__)
        description = (function.__doc__ or name).strip().splitlines()[0]
        self.spec: Final = ToolSpec(
            name=name, description=description, parameters=_parameters(function, name)
        )
        self._function = function

    def run(self, call: GrantedCall) -> ToolOutput:
        """Call the function with the arguments the policy allowed."""
        return ToolOutput(text=str(self._function(**call.arguments)))


def _parameters(function: Callable[..., str], name: str) -> JsonObject:
    """Return the JSON Schema of the arguments of `function`; raise `SealError` for one without a type."""
    fix = "Fix: take arguments by keyword only or by name, and annotate each, such as `year: int`"
    for argument in signature(function).parameters.values():
        if argument.kind not in _BY_NAME or argument.annotation is Parameter.empty:
            raise SealError(f"tool {name!r}: its argument {argument.name!r} has no name or no type. {fix}")
    try:
        adapter: TypeAdapter[Any] = TypeAdapter(cast("Any", function))
        return {**adapter.json_schema(), "additionalProperties": False}
    except PydanticUserError:
        raise SealError(f"tool {name!r}: the type of an argument has no JSON Schema. {fix}") from None
