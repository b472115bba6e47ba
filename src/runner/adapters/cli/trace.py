# SPDX-License-Identifier: Apache-2.0
"""`akaion trace`: what the record says, as a timeline.

Owns the display. This reads; it does not prove. Whether a line is what was written then is `akaion-verify`'s
to say, on another machine, with a pin; `open` hands the book to its page.
"""

import webbrowser
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.text import Text

from runner.adapters.cli.anchor import anchor
from runner.adapters.cli.book import Log, Row, read_book
from runner.adapters.cli.carried import carry, write_page
from runner.adapters.cli.codes import print_legend
from runner.adapters.cli.profiles import DEFAULT, JsonOption, ProfileOption, inspect
from runner.adapters.cli.screen import errors, output, print_json, print_line, print_table
from runner.adapters.cli.stamp import stamp

_COLUMNS: Final = ("seq", "time (UTC)", "task", "kind", "decision", "class", "backend, tool", "note")
_STYLES: Final = {
    "denied": "bold red",
    "deny": "bold red",
    "refused": "bold red",
    "ask": "yellow",
    "redacted": "yellow",
}
_FRAME: Final = "dim"
_ID_SHOWN: Final = 8

app: Final = typer.Typer(
    help="Read the record. This reads, it does not prove: proving is akaion-verify.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

app.command(epilog="Example:  akaion trace anchor --witness http://192.0.2.7:8640 --witness-key w1.vkey")(
    anchor
)

app.command(epilog="Example:  akaion trace stamp --tsa https://tsa.example/tsr --ca roots.pem")(stamp)


@app.command(epilog="Example:  akaion trace show --log 3")
def show(
    folder: Annotated[Path | None, typer.Argument(help="A trace folder; without it, the profile's.")] = None,
    *,
    profile: ProfileOption = DEFAULT,
    log: Annotated[int | None, typer.Option("--log", min=0, help="Only this log, by number.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Print the records of a book as a timeline: when, what, decided how, of which class, to whom.

    This reads the record, it does not prove it. To have it checked, hand the folder to akaion-verify with a
    pin (see `akaion keys export --help`).
    """
    place = inspect(profile).places.trace if folder is None else folder
    logs = read_book(place, log)
    if as_json:
        print_json({"folder": str(place), "logs": [_log_data(each) for each in logs]})
        return
    rows = [_print_log(each) for each in logs]
    print_legend(output(), (cell for cells in rows for row in cells for cell in row))
    print_line(output(), "Read, not proved: akaion-verify proves.", "dim")


@app.command(epilog='Example:  akaion-verify "$(akaion trace path)" --pin device.vkey')
def path(*, profile: ProfileOption = DEFAULT, as_json: JsonOption = False) -> None:
    """Print the folder of the profile's record: what an auditor gets."""
    place = inspect(profile).places.trace
    if as_json:
        print_json({"folder": str(place), "exists": place.is_dir()})
    else:
        print_line(output(), str(place))


@app.command("open", epilog="Example:  akaion trace open --output record.html --no-browser")
def open_page(
    folder: Annotated[Path | None, typer.Argument(help="A trace folder; without it, the profile's.")] = None,
    *,
    profile: ProfileOption = DEFAULT,
    target: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write the page here, not to a temporary file.")
    ] = None,
    browser: Annotated[bool, typer.Option(help="Show the page in the browser.")] = True,
    as_json: JsonOption = False,
) -> None:
    """Verify the record in a page: verdict, timeline, what left by class, and why each record is trusted.

    The page is the second verifier with the book in it. It makes no request, works without the runner, and
    can be handed on. Paste the pin there: a verdict without one is UNTRUSTED.
    """
    place = inspect(profile).places.trace if folder is None else folder
    written = write_page(carry(place), target)
    shown = browser and webbrowser.open(written.absolute().as_uri())
    if as_json:
        print_json({"folder": str(place), "page": str(written), "shown": shown})
        return
    print_line(output(), str(written))
    if browser and not shown:
        print_line(errors(), "no browser could be started: open that file in one", "yellow")


def _log_data(log: Log) -> dict[str, object]:
    records = [row.record or {"kind": row.kind, "seq": row.seq} for row in log.rows]
    return {"log": log.number, "name": log.name, "closed": log.closed, "records": records}


def _print_log(log: Log) -> Sequence[Sequence[Text | str]]:
    """Print a log, and return the cells that were printed."""
    rows = [_cells(row) for row in log.rows]
    state = "closed" if log.closed else "not closed: still written, or interrupted"
    print_line(output(), f"log {log.number} ({state})", "bold")
    print_table(output(), _COLUMNS, rows)
    return rows


def _cells(row: Row) -> list[Text | str]:
    decision = Text(row.decision, style=_STYLES.get(row.decision, ""))
    style = _STYLES.get(row.decision, _FRAME if row.kind == "seal" else "")
    cells = [str(row.seq), moment(row.time_us), row.task[:_ID_SHOWN], row.kind]
    return [*(Text(cell, style=style) for cell in cells), decision, row.data_class, row.who, row.note]


def moment(time_us: int | None) -> str:
    """Return microseconds since 1970 as a UTC time to the second; empty without any."""
    if time_us is None:
        return ""
    try:
        return datetime.fromtimestamp(time_us // 1_000_000, tz=UTC).strftime("%Y-%m-%d %H:%M:%S")
    except (OverflowError, OSError, ValueError):
        return "no time"
