# SPDX-License-Identifier: Apache-2.0
"""What stands in for the tools of a program where a profile is read without it.

Owns the stand-in: the name of a grant, a host tool's effect, any arguments. Whoever reads a profile without
the program that embeds the runner sees what it permits, and is told which tools were assumed. A name that is
a shipped tool's but for a slip is none of a program's, unless its grant says what only such a tool has.
Carries I1 and P3: nothing runs with one, and a runtime that has one cannot be entered.
"""

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import ClassVar, Final

from runner.kernel.config import Config, Grant
from runner.kernel.errors import ConfigError, ToolError
from runner.kernel.messages import Json, JsonObject, ToolSpec
from runner.kernel.ports import Effect, GrantedCall, Tool, ToolOutput
from runner.kernel.spelling import most_like
from runner.perimeter.grants import Blame

_SAY: Final = "did you mean {}? If it is a tool of your program, its grant says trusted: true, reads or sink"


@dataclass(frozen=True, slots=True, kw_only=True)
class AssumedTool:
    """A tool of the program's own of which only the grant is known. Implements `Tool`."""

    spec: ToolSpec

    effect: ClassVar[Effect] = Effect.HOST
    path_arguments: ClassVar[frozenset[str]] = frozenset()

    def run(self, call: GrantedCall) -> ToolOutput:  # noqa: ARG002 - the port's words
        """Raise `ToolError`: there is nothing to run."""
        raise ToolError("only the program has this tool")


def assumed_tools(config: Config, shipped: AbstractSet[str], blame: Blame) -> tuple[Tool, ...]:
    """Return a stand-in for each tool that a grant of `config` names and that is not one of `shipped`.

    Raises `ConfigError` with every name that is hardly meant.
    """
    mistakes = [
        blame(("policy", "grants", index, "tool"), "no tool of this name is here", _SAY.format(meant))
        for index, grant in enumerate(config.policy.grants)
        if grant.tool not in shipped and (meant := _meant(grant, shipped)) is not None
    ]
    if mistakes:
        raise ConfigError(mistakes)
    names = dict.fromkeys(grant.tool for grant in config.policy.grants if grant.tool not in shipped)
    return tuple(_assumed(name, config.policy.grants) for name in names)


def assumed_names(tools: Sequence[Tool]) -> tuple[str, ...]:
    """Return which of `tools` are stand-ins, by name."""
    return tuple(sorted(tool.spec.name for tool in tools if isinstance(tool, AssumedTool)))


def _meant(grant: Grant, shipped: AbstractSet[str]) -> str | None:
    """Return which of `shipped` is written wrongly in `grant`; None where it is a program's own tool."""
    if grant.trusted or grant.reads is not None or grant.sink is not None:
        return None
    return most_like(grant.tool, shipped, slips=1)


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
