# SPDX-License-Identifier: Apache-2.0
"""`akaion doctor`: what this machine can do, and whether a profile can work here.

Owns the report. Leaves facts to `machine` and grades to `needs`.
"""

from typing import Annotated, Final

import typer
from rich.text import Text

from runner.adapters.cli.check import Check
from runner.adapters.cli.exits import Status
from runner.adapters.cli.needs import checks
from runner.adapters.cli.profiles import DEFAULT, JsonOption, ProfileOption
from runner.adapters.cli.screen import output, print_json, print_line, print_table

_STYLES: Final = {"ok": "green", "warn": "yellow", "fail": "bold red"}


def doctor(
    *,
    profile: ProfileOption = DEFAULT,
    deep: Annotated[bool, typer.Option("--deep", help="Read model weights and check their SHA-256.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Check this machine for a profile.

    Looks at models, memory, the engine, endpoints, the sandbox, keys and the record.
    Makes nothing and sends nothing. The exit status is 1 when the profile needs something that fails, else 0;
    a warning is for what would be better.
    """
    found = list(checks(profile, deep=deep))
    failed = any(check.grade == "fail" for check in found)
    if as_json:
        rows = [{"check": c.name, "grade": c.grade, "found": c.found, "fix": c.fix} for c in found]
        print_json({"ok": not failed, "profile": profile, "checks": rows})
    else:
        _show(found)
        verdict = "cannot work here yet" if failed else "can work here"
        print_line(output(), f"The profile {profile} {verdict}.", "bold")
    if failed:
        raise typer.Exit(Status.FAILED)


def _show(found: list[Check]) -> None:
    """Print what was found as a table, and below it what to do, each thing once."""
    rows = [(Text(check.grade, style=_STYLES[check.grade]), check.name, check.found) for check in found]
    print_table(output(), ("", "check", "found"), rows)
    fixes = {(check.name, check.fix): check.grade for check in found if check.fix}
    for (name, fix), grade in fixes.items():
        print_line(output(), f"{name}: {fix}", _STYLES[grade])
