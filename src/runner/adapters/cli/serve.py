# SPDX-License-Identifier: Apache-2.0
"""`akaion keys serve`: the device key in a process, and an account, of its own.

Owns the start of the signer: who it becomes, who may ask, what it keeps. It judges nothing
(`perimeter.trace.certify`) and reads no profile: an operator starts it, and the runtime knows a socket.
Carries I4 against a compromised runtime, as far as `docs/explanation/what-a-verdict-means.md` says.
"""

from pathlib import Path
from typing import Annotated, Final

import typer

from runner.adapters.cli.screen import errors, print_line
from runner.assembly import book_name
from runner.capability.transport.clock import SystemEntropy
from runner.capability.transport.keys import FileSigner
from runner.capability.transport.signer import custody_between, own_account
from runner.capability.transport.signerd import (
    KeptFile,
    account_named,
    become,
    holding,
    listen,
    serve_clients,
)
from runner.kernel.errors import TraceError
from runner.perimeter.trace.certify import Certifier
from runner.perimeter.trace.note import parse_vkey

KEY: Final = "device.key"
HEAD: Final = "head.json"


def serve(
    socket: Annotated[Path, typer.Argument(help="Where to listen. A profile names it in trace.custody.")],
    *,
    keys: Annotated[
        Path, typer.Option("--keys", help="The signer's own folder: its key, and the book's head.")
    ],
    client: Annotated[
        str | None,
        typer.Option("--client", help="The account of the runtime: only it may ask. Default: this one."),
    ] = None,
    user: Annotated[
        str | None, typer.Option("--user", help="The account to go on as, when started by root.")
    ] = None,
    successor: Annotated[
        str | None,
        typer.Option("--next", metavar="KEY", help="The verifier key that may follow this one."),
    ] = None,
) -> None:
    """Keep the device key in a process of its own: certify new logs of one book, and hold its head.

    Start it as root with two accounts. Under the account of the runtime, to try it, the key is a file which
    that account can read, and the record says so. It ends with the terminal, or at SIGTERM.
    """
    if successor is not None:
        _check_successor(successor)
    runtime = own_account() if client is None else account_named(client).pw_uid
    listening = listen(socket, runtime)
    with listening:
        if user is not None:
            become(account_named(user))
        custody = custody_between(own_account(), runtime)
        with holding(keys):
            certifier = _certifier(keys, custody, successor)
            print_line(errors(), f"Listening at {socket}; custody {custody}")
            serve_clients(listening, runtime, certifier.answer)


def _certifier(keys: Path, custody: str, successor: str | None) -> Certifier:
    """Return what judges, with key and head of the folder `keys`, which is held; raise `TraceError`."""
    signer, head = FileSigner(keys / KEY, book=None, entropy=SystemEntropy()), KeptFile(keys / HEAD)
    return Certifier(
        signer=signer,
        book=book_name(signer.public_key),
        custody=custody,
        kept=head.read(),
        keep=head.keep,
        successor=successor,
    )


def _check_successor(line: str) -> None:
    """Raise `TraceError` unless `line` is a verifier key: a slip here shows when the book is to end."""
    try:
        parse_vkey(line)
    except ValueError:
        raise TraceError(
            "what --next says is no verifier key. Fix: give it the line that `akaion keys export` wrote"
        ) from None
