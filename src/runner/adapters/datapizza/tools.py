# SPDX-License-Identifier: Apache-2.0
"""datapizza's tools, as the profile and the model see them.

Owns their specification and their wrapping as host tools. datapizza calls them itself, outside the perimeter:
what a profile can do is grant them by name, so that the trace header names them (P3).
"""

import json
from collections.abc import Sequence
from typing import Any, Final

from datapizza.tools import Tool as DatapizzaTool

from runner.kernel.errors import SealError
from runner.kernel.messages import JsonObject, ToolSpec
from runner.kernel.ports import Effect, GrantedCall, Tool, ToolOutput


def host_tools(tools: Sequence[DatapizzaTool]) -> tuple[Tool, ...]:
    """Return `tools` of a datapizza agent for `open_profile(tools=...)`, where a profile can grant them.

    Raises `SealError` for one whose parameters are not a JSON Schema.
    """
    return tuple(_HostTool(tool) for tool in tools)


def spec_of(tool: DatapizzaTool) -> ToolSpec:
    """Return name, description and parameters of `tool`; raise `SealError` if they are not JSON."""
    try:
        schema = json.loads(json.dumps(tool.schema, default=_referent, allow_nan=False))
    except (TypeError, ValueError, RecursionError):
        raise SealError("the parameters of a datapizza tool are not a JSON Schema") from None
    parameters: JsonObject = {**schema["parameters"], "additionalProperties": False}
    return ToolSpec(name=schema["name"], description=schema["description"], parameters=parameters)


def _referent(value: Any) -> Any:  # noqa: ANN401 - a proxy of a JSON reference, which json cannot see through
    """Return what a reference in a schema stands for; raise `TypeError` for anything else."""
    try:
        return value.__subject__
    except AttributeError:
        raise TypeError("not JSON") from None


class _HostTool:
    """A datapizza tool, run unmediated in this process. Implements `Tool`."""

    effect: Final = Effect.HOST
    path_arguments: Final[frozenset[str]] = frozenset()

    def __init__(self, tool: DatapizzaTool) -> None:
        self.spec: Final = spec_of(tool)
        self._tool = tool

    def run(self, call: GrantedCall) -> ToolOutput:
        """Call the tool with the arguments the policy allowed."""
        return ToolOutput(text=str(self._tool(**call.arguments)))
