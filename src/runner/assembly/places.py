# SPDX-License-Identifier: Apache-2.0
"""Where a runtime keeps its own files, and who keeps its device key.

Owns the paths, and that nothing a profile names is read from among the perimeter's own (I5). Leaves to
`runtime` what is written there.
"""

import os
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Final

from runner.assembly.blame import blame_of
from runner.capability.home import akaion_home
from runner.capability.profile import ProfileSource
from runner.capability.transport.clock import SystemEntropy
from runner.capability.transport.keys import FileCustody
from runner.capability.transport.osring import KeyringCustody
from runner.capability.transport.signer import ProcessCustody
from runner.kernel.config import Config
from runner.kernel.errors import ConfigError
from runner.kernel.ports import Custody, Signer
from runner.perimeter.trace.note import device_key_name, vkey

KEY_FILE: Final = "device.key"
"""The file of a device key, in whatever folder; the next one is beside it, with `.next` behind its name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """Where a runtime keeps its own files: `trace` is the book, the others lie outside it.

    `signer` is the socket of a signer process, and then `key` is not used.
    """

    trace: Path
    key: Path
    pin: Path
    salts: Path
    signer: Path | None = None

    @property
    def claim(self) -> Path:
        """The file beside the key, or where it would be, that says which book the key is of."""
        return self.key.with_name(f"{self.key.name}.book")


def custody_of(config: Config, places: Places) -> Custody:
    """Return who keeps the device key of this profile. Nothing is made, asked or read yet."""
    if places.signer is not None:
        return ProcessCustody(places.signer)
    if config.trace.custody == "keyring":
        name = sha256(os.fsencode(places.key)).hexdigest()[:16]  # another key for another folder of keys
        return KeyringCustody(name, entropy=SystemEntropy())
    return FileCustody(places.key, book=places.trace, entropy=SystemEntropy())


def device_vkey(signer: Signer) -> str:
    """Return the verifier key of the device key of `signer`, as a pin file holds it."""
    return vkey(device_key_name(book_name(signer.public_key)), signer.public_key)


def book_name(device: bytes) -> str:
    """Return the name of the book that the device key `device` (32 bytes, public) certifies."""
    return f"akaion/{sha256(device).hexdigest()[:16]}"


def places_of(config: Config, source: ProfileSource) -> Places:
    """Return where the runtime of this profile keeps its files: as it says, else in the home directory."""
    home = akaion_home()
    named = config.trace
    trace = source.resolve(named.path, ("trace", "path")) if named.path else home / "trace"
    keys = source.resolve(named.keys, ("trace", "keys")) if named.keys else home / "keys"
    book = sha256(str(trace).encode("utf-8", "surrogateescape")).hexdigest()[:16]
    return Places(
        trace=trace,
        key=keys / KEY_FILE,
        signer=source.resolve(named.signer, ("trace", "custody")) if named.signer else None,
        pin=home / "state" / f"{book}.pin",
        salts=home / "vault" / "salts",
    )


def own_folders(places: Places) -> tuple[Path, ...]:
    """Return the folders of keys, maps and pins, without links: those of `places` and those of the home.

    No grant reaches them, and nothing that a profile names is read from them (I5). The keys of the home count
    where the profile keeps its own elsewhere too: they are another profile's.
    """
    folders = (places.key.parent, akaion_home() / "keys", places.salts.parent, places.pin.parent)
    return tuple(dict.fromkeys(Path(os.path.realpath(folder)) for folder in folders))


def read_from(path: str, where: tuple[str | int, ...], source: ProfileSource, places: Places) -> Path:
    """Return the file `path`, named at `where`, which the runner reads for what is in it.

    Raises `ConfigError` for one of the perimeter's own: a credential leaves, and a key must not (I5).
    """
    found = source.resolve(path, where)
    own = any(found.is_relative_to(folder) for folder in own_folders(places))
    if own or found.name in (KEY_FILE, f"{KEY_FILE}.next"):
        problem, fix = "the perimeter's keys lie here", "name a file of your own, in a folder without them"
        raise ConfigError([blame_of(source)(where, problem, fix)])
    return found
