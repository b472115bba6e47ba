# SPDX-License-Identifier: Apache-2.0
"""What it takes to start a program in the sandbox, beside starting it plainly, in one run.

Run: python benchmarks/sandbox.py [--rounds N]

Each round starts the same program in every way, one after the other, so that all see the same load: plainly
by `subprocess`, by bubblewrap with its walls alone, and as the shell tool does. Wall clock, from the call to
the end of the program, in milliseconds. `git log` and a tool call whole stand beside `true`, which does
nothing.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from runner.capability.sandbox.bubblewrap import Bubblewrap, why_not
from runner.capability.sandbox.loading import find_program
from runner.capability.sandbox.port import Granted, Job
from runner.capability.tools.commandrules import command_rules
from runner.capability.tools.shell import Shell
from runner.kernel.ports import GrantedCall, Root

GOAL_MS: Final = 25.0
"""The median that a launch in the sandbox may take."""
_BARE: Final = ("--unshare-all", "--die-with-parent", "--new-session", "--ro-bind", "/", "/", "--")


def run_plainly(*command: str) -> None:
    """Run `command` to its end, unheard."""
    quiet = subprocess.DEVNULL
    subprocess.run(command, check=True, stdin=quiet, stdout=quiet, stderr=quiet)


def ways(folder: Path) -> dict[str, Callable[[], object]]:
    """Return each way to start a program, by its name; `folder` is a repository."""
    true, bwrap = find_program("true"), find_program("bwrap")
    if true is None or bwrap is None:
        raise SystemExit("this system has no `true`, or no bubblewrap")
    handle = os.open(folder, os.O_RDONLY)
    granted = [Granted(alias="studio", path=str(folder), handle=handle)]
    launcher, shell = Bubblewrap(), Shell(command_rules(), Bubblewrap())
    roots = (Root(alias="studio", path=str(folder)),)
    job = Job(program=true, arguments=(), granted=granted)

    def plain(*command: str) -> Callable[[], object]:
        return lambda: run_plainly(*command)

    def call(*argv: str) -> Callable[[], object]:
        arguments = {"argv": list(argv), "folder": "studio"}
        return lambda: shell.run(GrantedCall(arguments=arguments, roots=roots))

    return {
        "true, plainly": plain(str(true)),
        "true, bubblewrap's walls alone": plain(str(bwrap), *_BARE, str(true)),
        "true, in the sandbox": lambda: launcher.run(job),
        "git log, plainly": plain("git", "-C", str(folder), "log"),
        "git log, as a tool call": call("git", "log"),
        "grep -r, as a tool call": call("grep", "-rn", "needle", "."),
    }


def measured(each: dict[str, Callable[[], object]], rounds: int) -> dict[str, list[float]]:
    """Return the milliseconds of `rounds` starts in every way, in turn, after two that do not count."""
    took: dict[str, list[float]] = {name: [] for name in each}
    for number in range(rounds + 2):
        for name, start in each.items():
            before = time.perf_counter()
            start()
            took[name] += [1000 * (time.perf_counter() - before)] if number > 1 else []
    return took


def repository(folder: Path) -> None:
    """Make `folder` a repository with one commit."""
    (folder / "note.txt").write_text("a needle\n", encoding="utf-8")
    git = ["git", "-C", str(folder), "-c", "user.name=a", "-c", "user.email=a@b.example"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "First"]):
        run_plainly(*git, *words)


def main(arguments: Sequence[str]) -> int:
    """Measure and print; return 1 where the goal is not met or no sandbox can be built."""
    parser = argparse.ArgumentParser(description="What a launch in the sandbox takes.")
    parser.add_argument("--rounds", type=int, default=200)
    rounds = parser.parse_args(arguments).rounds
    if (reason := why_not()) is not None:
        print(f"no sandbox can be built here: {reason}")
        return 1
    with tempfile.TemporaryDirectory() as folder:
        repository(Path(folder))
        took = measured(ways(Path(folder)), rounds)
    print(f"{'milliseconds, ' + str(rounds) + ' rounds':34}{'p50':>8}{'p90':>8}{'least':>8}")
    for name, times in took.items():
        tenth = statistics.quantiles(times, n=10)[-1]
        print(f"{name:34}{statistics.median(times):8.1f}{tenth:8.1f}{min(times):8.1f}")
    median = statistics.median(took["true, in the sandbox"])
    print(f"goal: at most {GOAL_MS:.0f} ms at the median; here {median:.1f}")
    return 0 if median <= GOAL_MS else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
