# SPDX-License-Identifier: Apache-2.0
"""`akaion trace stamp`: time stamps of an authority (RFC 3161) over logs that have ended.

Owns the exchange, the sidecar `<log>.tsr` and the check of one. Leaves the format and its signatures to
`rfc3161-client`, an extra, and which authorities count to whoever names their certificates. What leaves is
the SHA-256 of three lines: the log's name, its length and its root (I12). An operator's command: no run does
it. Carries I4: only a token that verifies is kept.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

import typer
from cryptography import x509

from runner.adapters.cli.exits import Status
from runner.adapters.cli.outward import Place, address, post
from runner.adapters.cli.profiles import DEFAULT, JsonOption, ProfileOption, inspect
from runner.adapters.cli.screen import output, print_json, print_table
from runner.capability.transport.anchors import book_files, read_bytes, write_sidecar
from runner.kernel.errors import TraceError
from runner.perimeter.trace.booktree import read_closing_texts

try:
    import rfc3161_client
except ImportError:  # the extra is not installed
    rfc3161_client = None

SUFFIX: Final = ".tsr"
_MEDIA: Final = "application/timestamp-query"
_HTTP_OK: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Stamp:
    """What is known of the time stamp of a log: `time` in UTC where it holds, else what is `wrong`."""

    log: str
    time: str = ""
    wrong: str = ""


def stamp(
    folder: Annotated[Path | None, typer.Argument(help="A trace folder; without it, the profile's.")] = None,
    *,
    profile: ProfileOption = DEFAULT,
    authority: Annotated[
        Path, typer.Option("--ca", help="PEM file with the root certificates of the authorities that count.")
    ],
    tsa: Annotated[
        str | None,
        typer.Option("--tsa", metavar="URL", help="Ask this authority, for each log without a stamp."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Have an authority say when each ended log existed (RFC 3161), and check what it said.

    Without --tsa the stamps that are there are checked, and nobody is asked. What leaves for the authority is
    one hash for each log. The exit status is 1 when a stamp is missing or does not hold.
    """
    _refuse_without_extra()
    read, roots = inspect(profile), _roots(authority)
    place = read.places.trace if folder is None else folder
    to = None if tsa is None else address(tsa, read.config.profile, "--tsa")
    stamps = [_stamped(place, log, text, roots, to) for log, text in read_closing_texts(book_files(place))]
    if as_json:
        print_json({"stamps": [{"log": each.log, "time": each.time, "wrong": each.wrong} for each in stamps]})
    else:
        print_table(
            output(), ("log", "existed at (UTC)", ""), [(each.log, each.time, each.wrong) for each in stamps]
        )
    if any(each.wrong for each in stamps):
        raise typer.Exit(Status.FAILED)


def _stamped(folder: Path, log: str, text: str, roots: Sequence[x509.Certificate], to: Place | None) -> Stamp:
    """Return what the log's stamp says, after asking for one where there is none."""
    data = read_bytes(folder / (log.removesuffix(".jsonl") + SUFFIX))
    if data or to is None:
        return _checked(log, text, data, roots) if data else Stamp(log=log, wrong="no stamp")
    request = rfc3161_client.TimestampRequestBuilder(
        data=text.encode(), hash_algorithm=rfc3161_client.HashAlgorithm.SHA256
    ).build()
    status, data = post(to, request.as_bytes(), _MEDIA)
    if status != _HTTP_OK:
        raise TraceError(f"the authority answered {status}. Fix: check its address, or try again later")
    found = _checked(log, text, data, roots, nonce=request.nonce)
    if not found.wrong:
        write_sidecar(folder, log, SUFFIX, data)
    return found


def _checked(
    log: str, text: str, data: bytes, roots: Sequence[x509.Certificate], *, nonce: int | None = None
) -> Stamp:
    """Return the time of the token in `data`, if one of `roots` vouches for it and it is over `text`."""
    verifier = rfc3161_client.VerifierBuilder(roots=list(roots), nonce=nonce).build()
    try:
        response = rfc3161_client.decode_timestamp_response(data)
        verifier.verify_message(response, text.encode())
        moment = response.tst_info.gen_time
    except Exception:  # noqa: BLE001 - whatever it raises for foreign bytes, it is no yes, and is not quoted (I12)
        return Stamp(
            log=log, wrong="the stamp does not hold: not of this log as it is, or of no authority named"
        )
    return Stamp(log=log, time=moment.strftime("%Y-%m-%d %H:%M:%S"))


def _roots(file: Path) -> list[x509.Certificate]:
    try:
        return x509.load_pem_x509_certificates(read_bytes(file))
    except ValueError:
        raise typer.BadParameter("this file holds no certificate in PEM", param_hint="--ca") from None


def _refuse_without_extra() -> None:
    if rfc3161_client is None:
        raise TraceError("rfc3161-client is not installed. Fix: pip install 'akaion-runner[timestamps]'")
