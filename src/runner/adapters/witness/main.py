# SPDX-License-Identifier: Apache-2.0
"""The `akaion-witness` command, for a practice's second machine.

Owns the folder's layout and the words. One folder is one witness: its key, its name and what it remembers.
"""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Final

import typer

from runner.adapters.cli.exits import Status
from runner.adapters.cli.screen import errors, output, print_facts, print_json, print_line
from runner.adapters.witness.judge import Reply, Seen, Trusted, Witness
from runner.adapters.witness.memory import FolderMemory
from runner.adapters.witness.server import WitnessServer
from runner.capability.transport.clock import SystemClock, SystemEntropy
from runner.capability.transport.keys import FileSigner, export_pin
from runner.capability.transport.logstore import read_regular, replace_file
from runner.kernel.errors import RunnerError, TraceError
from runner.kernel.language import how_many
from runner.perimeter.trace.cosign import Key, parse_answer, parse_request
from runner.perimeter.trace.note import parse_vkey, vkey

PROGRAM: Final = "akaion-witness"
_NAME: Final = "name"
_KEY: Final = "witness.key"
_NAME_RULE: Final = "letters, digits, dots, slashes and hyphens, such as witness.studio.example/w1"

app: Final = typer.Typer(
    name=PROGRAM,
    help="A witness for records: it remembers how long each was, and cosigns only what continues that.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
FolderArgument = Annotated[Path, typer.Argument(help="The witness's folder.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object on standard output.")]


@app.command(epilog="Example:  akaion-witness init /srv/witness --name witness.studio.example/w1")
def init(
    folder: FolderArgument,
    *,
    name: Annotated[str, typer.Option("--name", help="What the witness is called in what it signs.")],
) -> None:
    """Make a witness: its key, and its verifier key, which auditors pin."""
    if not name or not all(each.isascii() and (each.isalnum() or each in "./-_") for each in name):
        raise typer.BadParameter(f"write {_NAME_RULE}", param_hint="--name")
    if (folder / _NAME).exists():
        raise TraceError("this folder is a witness already. Fix: use `show`, or another folder")
    with FolderMemory(folder / "books"):
        _signer(folder)
        replace_file(folder / _NAME, folder / "name.tmp", f"{name}\n".encode("ascii"))
    with _opened(folder) as (witness, _):
        print_line(output(), _vkey(witness.key))


@app.command(epilog='Example:  akaion-witness trust /srv/witness "$(akaion trace anchor --key)"')
def trust(
    folder: FolderArgument,
    key: Annotated[str, typer.Argument(help="The line that `akaion trace anchor --key` prints there.")],
) -> None:
    """Answer for a book from now on: its checkpoints are signed with this key."""
    try:
        name, public = parse_vkey(key.strip())
    except ValueError:
        raise typer.BadParameter("this is not a verifier key", param_hint="KEY") from None
    with _opened(folder) as (_, memory):
        known = memory.recall(name)
        if known is not None and known.seen.size:
            raise TraceError("this book is known, and has been cosigned. Fix: a new key takes a new book")
        memory.keep(Trusted(key=Key(name=name, public=public), seen=Seen()))


@app.command(epilog="Example:  akaion-witness show /srv/witness --export w1.vkey")
def show(
    folder: FolderArgument,
    *,
    export: Annotated[
        Path | None, typer.Option("--export", help="Also write the verifier key here: the auditor's pin.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Show the witness's verifier key, and how long each book was when it was last cosigned."""
    with _opened(folder) as (witness, memory):
        key, books = _vkey(witness.key), list(memory.all())
    if export is not None:
        export_pin(key, export, book=folder / "books")
    if as_json:
        seen = {each.key.name: {"size": each.seen.size, "root": each.seen.root.hex()} for each in books}
        print_json({"vkey": key, "books": seen})
        return
    facts = [(each.key.name, how_many(each.seen.size, "line")) for each in books]
    print_facts(output(), [("Verifier key", key), *facts])


@app.command(epilog="Example:  akaion-witness serve /srv/witness --host 192.0.2.7")
def serve(
    folder: FolderArgument,
    *,
    host: Annotated[str, typer.Option("--host", help="The address to listen at.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="The port; 0: any free one.")] = 8640,
) -> None:
    """Answer requests over HTTP until interrupted. Requests and answers hold no content and need no TLS."""
    with _opened(folder) as (witness, _):
        server = WitnessServer(witness, host, port, lambda status: print_line(errors(), f"answered {status}"))
        with server:
            print_line(errors(), f"listening at http://{host}:{server.server_address[1]}")
            server.serve_forever()


@app.command(epilog="Example:  akaion-witness sign /srv/witness request.txt > answer.txt")
def sign(
    folder: FolderArgument,
    request: Annotated[Path, typer.Argument(help="The file that `akaion trace anchor --to-file` wrote.")],
) -> None:
    """Answer one request that was carried here as a file, and print the note to carry back."""
    try:
        body = read_regular(request)
    except OSError as error:
        raise typer.BadParameter(f"cannot be read ({error.strerror})", param_hint="REQUEST") from None
    with _opened(folder) as (witness, _):
        reply = witness.add_checkpoint(body)
    if reply.status != 200:  # noqa: PLR2004 - as in HTTP
        raise TraceError(_refusal(reply))
    note = parse_answer(parse_request(body).note.checkpoint, reply.body)
    sys.stdout.write(note.encode())


def _refusal(reply: Reply) -> str:
    said = reply.body.decode().strip()
    if reply.status == 409:  # noqa: PLR2004 - as above
        return (
            f"refused (409): a book of size {said} was cosigned last, or its lines with another root. "
            f"Fix: make the request again with --old {said}"
        )
    return f"refused ({reply.status}): {said}"


@contextmanager
def _opened(folder: Path) -> Iterator[tuple[Witness, FolderMemory]]:
    """Open the witness in `folder`; raise `TraceError` when there is none, or another process is it.

    Only `init` makes a key: with another one under its name it would be a witness that nobody pinned.
    """
    try:
        name = read_regular(folder / _NAME).decode("ascii").strip()
    except (OSError, ValueError):
        raise TraceError(f"no witness is in this folder. Fix: {PROGRAM} init FOLDER --name NAME") from None
    if not (folder / _KEY).exists():
        raise TraceError("the witness's key is gone. Fix: restore it, or make a witness in another folder")
    with FolderMemory(folder / "books") as memory:
        yield Witness(name=name, signer=_signer(folder), memory=memory, clock=SystemClock()), memory


def _signer(folder: Path) -> FileSigner:
    return FileSigner(folder / _KEY, book=folder / "books", entropy=SystemEntropy())


def _vkey(key: Key) -> str:
    return vkey(key.name, key.public, key.kind)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command on `arguments` (default: those of the process) and return its exit status."""
    try:
        app(None if arguments is None else list(arguments), prog_name=PROGRAM)
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except RunnerError as error:
        print_line(errors(), f"{PROGRAM}: {error}", "red")
        return Status.FAILED
    except KeyboardInterrupt:
        return Status.INTERRUPTED
    return Status.DONE


if __name__ == "__main__":
    sys.exit(main())
