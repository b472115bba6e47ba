# SPDX-License-Identifier: Apache-2.0
"""Opening a book as verified: which one, under which pin, and how its verdict is told.

Owns the options that choose a book and runs of it. Without a pin of an auditor the device's own is taken, if
there is one: that proves to whoever trusts this machine, and the verdict is otherwise UNTRUSTED.
"""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Final

import typer

from runner.adapters.cli.profiles import Inspected, inspect
from runner.adapters.cli.screen import errors, output, print_line
from runner.adapters.cli.work import busy
from runner.adapters.ledger.book import Ledger, open_ledger
from runner.adapters.ledger.run import Run
from runner.adapters.ledger.select import Wanted, parse_moment
from runner.adapters.ledger.verdict import Verdict
from runner.assembly import construct, custody_of

FolderOption = Annotated[
    Path | None, typer.Option("--folder", help="A trace folder; without it, the profile's.")
]


def plain_files(given: list[Path] | Path | None) -> list[Path] | Path | None:
    """Return what an option names; raise `typer.BadParameter` for a pipe, on which opening it would wait."""
    for each in given if isinstance(given, list) else [given]:
        if each is not None and each.exists() and not each.is_file():
            raise typer.BadParameter(f"{each} is no regular file")
    return given


PinOption = Annotated[
    Path | None,
    typer.Option(
        "--pin",
        exists=True,
        dir_okay=False,
        callback=plain_files,
        help="The auditor's pin; without it, this device's own key.",
    ),
]
WitnessOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--witness",
        exists=True,
        callback=plain_files,
        help="The key of a witness whose cosignatures count. Repeatable.",
    ),
]
SinceOption = Annotated[
    str | None,
    typer.Option(
        "--since", metavar="WHEN", help="Started then or later: 2026-11-30, or 2026-11-30T09:00. UTC."
    ),
]
UntilOption = Annotated[
    str | None,
    typer.Option("--until", metavar="WHEN", help="Started before then; a day alone is included. UTC."),
]
SHOWN: Final = 8
"""Digits of an id that are shown, and at least half of those that choose a run."""
_MEANS: Final = {"log-open": "a run is at work, or was interrupted"}
"""What a reason that is met on ordinary days comes from."""


def open_book(
    profile: str, folder: Path | None, pin: Path | None, witnesses: Sequence[Path] | None
) -> Ledger:
    """Have a book verified and return it with its verdict; raise `ConfigError` and `TraceError`."""
    chosen = inspect(profile).places.trace if folder is None else folder
    with own_pin(profile, pin) as given, busy(errors(), "verifying the record"):
        return open_ledger(chosen, given, witnesses or ())


@contextmanager
def own_pin(profile: str, pin: Path | None) -> Iterator[Path | None]:
    """Give `pin`, or a copy of this device's own for a while; None where there is neither."""
    with tempfile.TemporaryDirectory(prefix="akaion-pin-") as scratch:
        own = Path(scratch) / "device.vkey"
        if pin is None and _has_key(inspect(profile)):
            construct(profile, to_read=True, assume=True).export_pin(own)
        yield pin or (own if own.exists() else None)


def _has_key(found: Inspected) -> bool:
    return custody_of(found.config, found.places).exists()


def print_verdict(verdict: Verdict) -> None:
    """Print the verdict, its reasons, and what it means for what stands below it."""
    style = "green" if verdict.word == "PASS" else "bold red" if not verdict.holds else "yellow"
    print_line(output(), f"{verdict.word} (exit {verdict.exit})", style)
    for reason in verdict.reasons:
        means = _MEANS.get(reason.code)
        print_line(output(), f"  {reason}" if means is None else f"  {reason}: {means}", style)


def verdict_data(verdict: Verdict) -> dict[str, object]:
    """Return the verdict as JSON data."""
    reasons = [{"code": each.code, "log": each.log, "seq": each.seq} for each in verdict.reasons]
    return {"verdict": verdict.word, "exit": verdict.exit, "reasons": reasons}


def wanted(since: str | None, until: str | None, **more: str | bool) -> Wanted:
    """Return what the options ask for; raise `typer.BadParameter` for a time that is none."""
    return Wanted(
        since_us=None if since is None else _moment(since, "--since"),
        until_us=None if until is None else _moment(until, "--until", end=True),
        **more,  # type: ignore[arg-type]  # the names and types of its other fields
    )


def moment_option(text: str, option: str) -> int:
    """Return the moment that an option names; raise `typer.BadParameter`."""
    return _moment(text, option)


def _moment(text: str, option: str, *, end: bool = False) -> int:
    try:
        return parse_moment(text, end=end)
    except (ValueError, OverflowError):
        raise typer.BadParameter("write it as 2026-11-30 or 2026-11-30T09:00", param_hint=option) from None


def the_run(runs: list[Run], named: str) -> Run:
    """Return the one run whose task begins with `named`; raise `typer.BadParameter` for none or several."""
    found = [run for run in runs if run.task.startswith(named)]
    if len(found) != 1 or len(named) < SHOWN // 2:
        what = "no run" if not found else "more than one run"
        raise typer.BadParameter(
            f"{what} has a task that begins so; `akaion runs` lists them", param_hint="TASK"
        )
    return found[0]
