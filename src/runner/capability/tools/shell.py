# SPDX-License-Identifier: Apache-2.0
"""The tool that starts a program on granted files: an argument list, and never a shell.

Owns what a model is offered and what it is told afterwards. Leaves what may be run to the policy, by the same
rules that are read here once more; confinement of paths to `beneath`, and of the program to a launcher.
Invariants P2 (the program gets the granted folders that the call names, read-only and with an empty bin, and
nothing else) and I12 (a refusal repeats nothing that a model chose).
"""

import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from runner.capability.sandbox.loading import find_program
from runner.capability.sandbox.port import GRANTED, Granted, Job, Launcher, Ran
from runner.capability.tools.beneath import Beneath
from runner.capability.tools.names import BIN
from runner.capability.tools.pages import PATH, check_names
from runner.capability.tools.paths import resolve
from runner.kernel.commands import (
    ARGV,
    FOLDER,
    LONGEST,
    MOST,
    Command,
    CommandRules,
    Refused,
    parse_command,
)
from runner.kernel.errors import ToolError
from runner.kernel.messages import ToolSpec
from runner.kernel.ports import Effect, GrantedCall, Root, ToolOutput

NAME: Final = "shell"
"""The name by which a profile grants this tool."""
SHOWN: Final = 8000
"""Characters of one answer."""


class Shell:
    """`shell(argv, folder)`: what a program of `binaries` (by name) says about granted files.

    `effect` is `Effect.RUN` for a `launcher` that confines, and `Effect.RUN_FREE` for one that does not.
    """

    path_arguments: Final = frozenset({FOLDER})

    def __init__(
        self, binaries: Mapping[str, CommandRules], launcher: Launcher, *, effect: Effect = Effect.RUN
    ) -> None:
        self.binaries: Final = dict(binaries)
        self.effect: Final = effect
        self._launcher = launcher
        known = "; ".join(f"{rules.name}: {rules.does}" for rules in binaries.values())
        self.spec: Final = ToolSpec(
            name=NAME,
            description=f"Start one program, without a shell, that only reads. {known or 'None is granted.'}",
            parameters={
                "type": "object",
                "properties": {
                    ARGV: {
                        "type": "array",
                        "items": {"type": "string", "maxLength": LONGEST},
                        "minItems": 1,
                        "maxItems": MOST,
                        "description": "the program, then each argument by itself; paths start in folder",
                    },
                    FOLDER: {**PATH, "default": "."},
                },
                "required": [ARGV],
                "additionalProperties": False,
            },
        )

    def run(self, call: GrantedCall) -> ToolOutput:
        """Return what the program said; raise `ToolError`."""
        check_names(call.arguments, self.spec)
        match parse_command(call.arguments, self.binaries):
            case Refused(hint=hint):
                raise ToolError(hint)
            case Command() as command:
                return _output(self._ran(command, call.roots))

    def _ran(self, command: Command, roots: Sequence[Root]) -> Ran:
        program = find_program(command.rules.name.partition(" ")[0])
        if program is None:
            raise ToolError(f"the program {command.rules.name} is not installed here")
        folder, reached = _checked(command, roots)
        with ExitStack() as stack:
            granted = [stack.enter_context(_opened(root)) for root in reached]
            job = Job(
                program=program,
                arguments=command.arguments,
                granted=granted,
                folder=folder,
                data=[Path(each) for each in command.rules.data],
                hidden=[Path(GRANTED, each.alias, BIN) for each in granted if _has_bin(each.handle)],
            )
            return self._launcher.run(job)


def _checked(command: Command, roots: Sequence[Root]) -> tuple[str, Sequence[Root]]:
    """Return the folder to start in, and the roots to show: those that a path names, or all.

    Raises `ToolError` for a path that is not there and has to be, goes through a link, is a file with a
    second name, or lies in no granted folder.
    """
    reached: list[Root] = []
    for path in (command.folder, *command.paths):
        place = resolve(path, roots)
        if place is None:
            continue
        root, parts = place
        Beneath(root).check_single(parts, present=path == command.folder or path in command.present)
        if root not in reached:
            reached.append(root)
    return f"{GRANTED}/{command.folder}".rstrip("/"), reached or roots


@contextmanager
def _opened(root: Root) -> Iterator[Granted]:
    """Yield a handle of `root`, which is the folder that was granted; raise `ToolError`."""
    handle = Beneath(root).enter()
    try:
        yield Granted(alias=root.alias, path=root.path, handle=handle)
    finally:
        os.close(handle)


def _has_bin(folder: int) -> bool:
    """Return whether a bin stands at the top of what `folder` is a handle of."""
    try:
        return stat.S_ISDIR(os.stat(BIN, dir_fd=folder, follow_symlinks=False).st_mode)
    except OSError:
        return False


def _output(ran: Ran) -> ToolOutput:
    """Return what `ran` said, as text, with how it ended where that was not well."""
    text = ran.output.decode("utf-8", "replace")
    notes = [f"(only the first {SHOWN} characters are shown)"] if len(text) > SHOWN else []
    notes += ["(ended: it said too much)"] if ran.cut else []
    notes += ["(ended: it took too long)"] if ran.late else []
    notes += [f"(exit status {ran.status})"] if ran.status and not ran.cut and not ran.late else []
    shown = text[:SHOWN].removesuffix("\n")
    return ToolOutput(text="\n".join([*([shown] if shown else []), *notes]) or "(no output)")
