# SPDX-License-Identifier: Apache-2.0
"""`akaion keys`: the key that certifies this device's logs, as operators and auditors need it.

Owns the display of the public half, the export of the auditor's pin and the order to replace the key. The
private half is read by its custody and never shown. Carries I4: a pin that came by another way than the
record is what ties the record to this device.
"""

import shlex
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Final

import typer

from runner.adapters.cli.profiles import DEFAULT, Inspected, JsonOption, ProfileOption, inspect
from runner.adapters.cli.screen import errors, output, print_facts, print_json, print_line
from runner.adapters.cli.serve import serve
from runner.adapters.cli.verified import plain_files
from runner.assembly import construct, custody_of, device_vkey
from runner.capability.transport.keys import export_pin
from runner.kernel.errors import TraceError
from runner.perimeter.trace.note import parse_vkey

_GROUP: Final = 4
_LONGEST: Final = 4096

app: Final = typer.Typer(
    help="The device key: make, show, replace it; export the auditor's pin; keep it in a process of its own.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.command(epilog="Example:  akaion keys serve /run/akaion-signer/socket --keys /var/lib/akaion-signer")(
    serve
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceKey:
    """The public half: `line` as a pin file holds it, `fingerprint` as two people compare it."""

    line: str
    fingerprint: str
    custody: str
    place: str

    def print(self, *, as_json: bool) -> None:
        """Print it on standard output."""
        if as_json:
            print_json({"vkey": self.line, "fingerprint": self.fingerprint, "custody": self.custody})
            return
        facts = [("Verifier key", self.line), ("Fingerprint", self.fingerprint)]
        print_facts(output(), [*facts, ("Custody", f"{self.custody}: {self.place}")])


@app.command(epilog="Example:  akaion keys create --profile studio.yaml")
def create(*, profile: ProfileOption = DEFAULT, as_json: JsonOption = False) -> None:
    """Make the device key where the profile keeps it; fails if there is one. The first run makes one too."""
    inspected = inspect(profile)
    keys = custody_of(inspected.config, inspected.places)
    if keys.exists():
        raise TraceError(
            "there is a device key already. Fix: use it, or replace it with `akaion keys rotate`"
        )
    _device_key(inspected, quiet=True).print(as_json=as_json)


@app.command(epilog="Example:  akaion keys show")
def show(*, profile: ProfileOption = DEFAULT, as_json: JsonOption = False) -> None:
    """Show the device's verifier key, its fingerprint and its custody. Makes nothing: no key is a failure."""
    inspected = inspect(profile)
    keys = custody_of(inspected.config, inspected.places)
    if not keys.exists():
        raise TraceError(
            f"there is no device key yet at {keys.place}. Fix: `akaion keys create`, or name the profile "
            "whose key is meant, with --profile"
        )
    _device_key(inspected).print(as_json=as_json)


@app.command(epilog="Example:  akaion keys export device.vkey --profile studio.yaml")
def export(
    file: Annotated[Path, typer.Argument(help="Where to write the pin.")],
    *,
    profile: ProfileOption = DEFAULT,
    as_json: JsonOption = False,
) -> None:
    """Write the auditor's pin: the one line that `akaion-verify --pin` takes.

    Give it to the auditor by another way than the record, and let them read the fingerprint back to you:
    a pin that travels with the record proves only that the two fit. A file that holds anything else is not
    overwritten. Makes the key if there is none yet, and says so: a pin is wanted before the first run.
    """
    inspected = inspect(profile)
    key = _device_key(inspected)
    export_pin(key.line, file, book=inspected.places.trace)
    if as_json:
        told = {"pin": str(file), "vkey": key.line, "fingerprint": key.fingerprint}
        print_json(told | {"custody": key.custody, "profile": profile})
        return
    facts = [("Pin", str(file)), ("Fingerprint", key.fingerprint), ("Profile", profile)]
    print_facts(output(), [*facts, ("Custody", f"{key.custody}: {key.place}")])


@app.command(epilog="Example:  akaion keys rotate --profile studio.yaml")
def rotate(
    *,
    to: Annotated[
        Path | None,
        typer.Option(
            "--to",
            callback=plain_files,
            help="The pin of the next key, when it is not to be made here: another custody.",
        ),
    ] = None,
    profile: ProfileOption = DEFAULT,
    as_json: JsonOption = False,
) -> None:
    """Replace the device key: the old one certifies the new one, and its book ends and is moved aside.

    The last log of the old book names the new key; `akaion-verify prove` shows that line to whoever pinned
    the old key. The next run starts a new book. The old key's pin is kept beside the head pins, for the ended
    book. Witnesses have to be told of the new book. Call this again if it broke off.
    """
    successor = None if to is None else _read_pin(to)
    ended = construct(profile, to_read=True).rotate_key(successor)
    line = successor or _device_key(inspect(profile)).line
    found = fingerprint(parse_vkey(line)[1])
    if as_json:
        told = {"book": str(ended.folder), "pin": str(ended.pin), "vkey": line, "fingerprint": found}
        print_json(told)
        return
    facts = [("Ended book", str(ended.folder)), ("Its pin", str(ended.pin))]
    print_facts(output(), [*facts, ("Next key", line), ("Fingerprint", found)])
    words = shlex.join(["akaion", "runs", "--folder", str(ended.folder), "--pin", str(ended.pin)])
    print_line(output(), f"To read it: {words}")
    print_line(output(), "After the next run, tell each witness of the new book: akaion trace anchor --key")


def _device_key(inspected: Inspected, *, quiet: bool = False) -> DeviceKey:
    """Return the public half of the device key, making the key on first use; raise `TraceError`."""
    keys = custody_of(inspected.config, inspected.places)
    fresh = not keys.exists()
    signer = keys.signer()
    if fresh and not quiet:
        print_line(errors(), f"A new device key was made: {keys.place}", "yellow")
    return DeviceKey(
        line=device_vkey(signer),
        fingerprint=fingerprint(signer.public_key),
        custody=signer.custody,
        place=keys.place,
    )


def _read_pin(file: Path) -> str:
    """Return the verifier key in a pin file; raise `TraceError`."""
    try:
        with file.open(encoding="ascii") as text:
            line = text.read(_LONGEST).removesuffix("\n")
        parse_vkey(line)
    except (OSError, ValueError):
        raise TraceError("the file named by --to is no pin. Fix: make it with `akaion keys export`") from None
    return line


def fingerprint(public: bytes) -> str:
    """Return the SHA-256 of the 32-byte public key in groups of four hex digits, to be read aloud."""
    digits = sha256(public).hexdigest()
    return " ".join(digits[at : at + _GROUP] for at in range(0, len(digits), _GROUP))
