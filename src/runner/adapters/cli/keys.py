# SPDX-License-Identifier: Apache-2.0
"""`akaion keys`: the key that signs this device's logs, as auditors need it.

Owns the display of the public half and the export of the auditor's pin. The private half is read by its
custody, `FileSigner`, and never shown. Carries I4: a pin that came by another way than the record is what
ties the record to this device.
"""

from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Final

import typer

from runner.adapters.cli.profiles import DEFAULT, JsonOption, ProfileOption, inspect
from runner.adapters.cli.screen import errors, output, print_facts, print_json, print_line
from runner.assembly import Places, book_name
from runner.capability.transport.clock import SystemEntropy
from runner.capability.transport.keys import FileSigner, export_pin
from runner.perimeter.trace.note import device_key_name, vkey

_GROUP: Final = 4

app: Final = typer.Typer(
    help="The device key: show it, export the auditor's pin.", no_args_is_help=True, rich_markup_mode=None
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceKey:
    """The public half: `line` as a pin file holds it, `fingerprint` as two people compare it."""

    line: str
    fingerprint: str
    custody: str


@app.command(epilog="Example:  akaion keys show")
def show(*, profile: ProfileOption = DEFAULT, as_json: JsonOption = False) -> None:
    """Show the device's verifier key and its fingerprint. Makes the key if there is none yet."""
    places = inspect(profile).places
    key = _device_key(places)
    if as_json:
        print_json({"vkey": key.line, "fingerprint": key.fingerprint, "custody": key.custody})
        return
    facts = [("Verifier key", key.line), ("Fingerprint", key.fingerprint)]
    print_facts(output(), [*facts, ("Custody", f"{key.custody}: {places.key}")])


@app.command(epilog="Example:  akaion keys pin device.vkey")
def pin(
    file: Annotated[Path, typer.Argument(help="Where to write the pin.")],
    *,
    profile: ProfileOption = DEFAULT,
) -> None:
    """Write the auditor's pin: the one line that `akaion-verify --pin` takes.

    Give it to the auditor by another way than the record, and let them read the fingerprint back to you:
    a pin that travels with the record proves only that the two fit.
    """
    places = inspect(profile).places
    key = _device_key(places)
    export_pin(key.line, file, book=places.trace)
    print_facts(output(), [("Pin", str(file)), ("Fingerprint", key.fingerprint)])


def _device_key(places: Places) -> DeviceKey:
    """Return the public half of the device key, making the key on first use; raise `TraceError`."""
    fresh = not places.key.exists()
    signer = FileSigner(places.key, book=places.trace, entropy=SystemEntropy())
    if fresh:
        print_line(errors(), f"A new device key was made: {places.key}", "yellow")
    public = signer.public_key
    return DeviceKey(
        line=vkey(device_key_name(book_name(public)), public),
        fingerprint=fingerprint(public),
        custody=signer.custody,
    )


def fingerprint(public: bytes) -> str:
    """Return the SHA-256 of the 32-byte public key in groups of four hex digits, to be read aloud."""
    digits = sha256(public).hexdigest()
    return " ".join(digits[at : at + _GROUP] for at in range(0, len(digits), _GROUP))
