# SPDX-License-Identifier: Apache-2.0
"""What stands in for the tools of a program where a profile is read without it.

Owns the stand-in: the name of a grant, a host tool's effect, any arguments. Whoever reads a profile without
the program that embeds the runner sees what it permits, and is told which tools were assumed. Carries I1 and
P3: nothing runs with one, and a runtime that has one cannot be entered.
"""

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import ClassVar

from runner.kernel.config import Config, Grant
from runner.kernel.errors import ToolError
from runner.kernel.messages import Json, JsonObject, ToolSpec
from runner.kernel.ports import Effect, GrantedCall, Tool, ToolOutput


@dataclass(frozen=True, slots=True, kw_only=True)
class AssumedTool:
    """A tool of the program's own of which only the grant is known. Implements `Tool`."""

    spec: ToolSpec

    effect: ClassVar[Effect] = Effect.HOST
    path_arguments: ClassVar[frozenset[str]] = frozenset()

    def run(self, call: GrantedCall) -> ToolOutput:  # noqa: ARG002 - the port's words
        """Raise `ToolError`: there is nothing to run."""
        raise ToolError("only the program has this tool")


def assumed_tools(config: Config, shipped: AbstractSet[str]) -> tuple[Tool, ...]:
    """Return a stand-in for each tool that a grant of `config` names and that is not one of `shipped`."""
    names = dict.fromkeys(grant.tool for grant in config.policy.grants if grant.tool not in shipped)
    return tuple(_assumed(name, config.policy.grants) for name in names)


def assumed_names(tools: Sequence[Tool]) -> tuple[str, ...]:
    """Return which of `tools` are stand-ins, by name."""
    return tuple(sorted(tool.spec.name for tool in tools if isinstance(tool, AssumedTool)))


def _assumed(name: str, grants: Sequence[Grant]) -> Tool:
    arguments: dict[str, Json] = {
        each: {} for grant in grants if grant.tool == name for each in _arguments_said(grant)
    }
    parameters: JsonObject = {"type": "object", "properties": arguments}
    return AssumedTool(spec=ToolSpec(name=name, description=name, parameters=parameters))


def _arguments_said(grant: Grant) -> Iterator[str]:
    """Yield the arguments that a grant speaks of: the tool is taken to have them."""
    yield from grant.arguments or ()
    if grant.sink is not None:
        yield from grant.sink.payload
        for case in grant.sink.cases:
            yield from case
