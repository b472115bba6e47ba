# SPDX-License-Identifier: Apache-2.0
"""Which profile a command speaks of, and what it says.

Owns the `--profile` option and the reading of a profile by commands that inspect it without opening it.
Leaves judgement to `parse_config` and opening to `runner.assembly`. Carries I6.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

import typer

from runner.assembly import Places, open_profile, places_of
from runner.capability.profile import ProfileSource, read_profile
from runner.kernel.config import Config, parse_config
from runner.kernel.errors import ModelError

DEFAULT: Final = "detached"
VARIABLE: Final = "AKAION_PROFILE"

ProfileOption = Annotated[
    str,
    typer.Option(
        "--profile",
        "-p",
        envvar=VARIABLE,
        help="A shipped profile (detached, attached, appliance) or a YAML file.",
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object on standard output.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Inspected:
    """A profile that was read and judged, but not opened: nothing was made on the disk."""

    config: Config
    source: ProfileSource
    places: Places

    def resolve(self, path: str) -> Path:
        """Return `path` as the runtime would: a relative one starts at the profile's folder."""
        return (self.source.folder / Path(path).expanduser()).resolve()


def inspect(named: str) -> Inspected:
    """Return what the profile `named` says; raise `ConfigError` with every mistake."""
    source = read_profile(named, {})
    config = parse_config(source.data, file=source.file, locate=source.line)
    return Inspected(config=config, source=source, places=places_of(config, source))


def missing_for(named: str) -> str:
    """Return what the profile `named` lacks on this machine though it is right; empty for nothing.

    The runtime is constructed, which compiles its policy and finds its credential, and never entered, which
    would make files. Raises `ConfigError` with every mistake.
    """
    try:
        open_profile(named)
    except ModelError as error:
        return str(error)
    return ""
