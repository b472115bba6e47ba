# SPDX-License-Identifier: Apache-2.0
"""How a profile judges: its classifier, with the practice's registers, and its rules for leaving.

Owns which register stands where. Leaves reading them to `capability.registers` and judging to the perimeter.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from runner.assembly.blame import blame_of
from runner.assembly.places import Places, places_of, read_from
from runner.capability.profile import ProfileSource
from runner.capability.publictexts import MOST_BYTES, read_public_texts
from runner.capability.registers import read_register
from runner.capability.transport.clock import SystemEntropy
from runner.kernel.config import Config
from runner.kernel.errors import ConfigError
from runner.kernel.ports import Locality
from runner.kernel.registers import Listed
from runner.perimeter.classify import FRAGMENTS, Classifier, EchoIndex, Registers, compile_registers
from runner.perimeter.release import Rules

_PUBLIC: Final = ("perimeter", "public_texts")


def classifier_of(config: Config, source: ProfileSource) -> Classifier:
    """Return the profile's classifier with its registers; raise `ConfigError` for one that cannot be used."""
    return Classifier(registers=registers_of(config, source, SystemEntropy().token(32)))


def rules_for(config: Config, source: ProfileSource, ours: Sequence[str]) -> Rules:
    """Return how the profile judges; raise `ConfigError` for a register that cannot be used.

    `ours` is what the runner says itself, which is an echo of nothing, as the public texts are.
    """
    key = SystemEntropy().token(32)
    ours = (*ours, *public_texts(config, source))
    return rules_of(config, registers_of(config, source, key), key=key, ours=ours)


def rules_of(config: Config, registers: Registers, *, key: bytes, ours: Sequence[str]) -> Rules:
    """Return how the profile judges with `registers`; `key` (32 secret bytes) is of this runtime.

    `ours` is what the runner says itself, which is an echo of nothing.
    """
    return Rules(
        classifier=Classifier(registers=registers),
        fault_as_c3=config.perimeter.classifier_fault == "as_c3",
        locality_c2=Locality(config.perimeter.locality_required.c2),
        locality_c3=Locality(config.perimeter.locality_required.c3),
        redaction=config.perimeter.redaction == "on",
        declassification=config.perimeter.declassification == "ask",
        echo=EchoIndex(key, registers=registers, ours=ours),
        fragments=Classifier(FRAGMENTS, registers),
    )


def public_texts(config: Config, source: ProfileSource) -> tuple[str, ...]:
    """Return the public texts that the profile names; raise `ConfigError` where they cannot be read."""
    path = public_path(config, source, places_of(config, source))
    blame = blame_of(source)
    fix = f"name a text file, or a folder of them, of {MOST_BYTES >> 20} MiB in all at most"
    if path is None:
        return ()
    return read_public_texts(
        path, refuse=lambda why: ConfigError([blame(_PUBLIC, f"what is named here {why}", fix)])
    )


def public_path(config: Config, source: ProfileSource, places: Places) -> Path | None:
    """Return where the public texts lie that the profile names, if it does; raise `ConfigError`."""
    named = config.perimeter.public_texts
    return None if named is None else read_from(named, _PUBLIC, source, places)


def register_lines(config: Config, source: ProfileSource) -> dict[str, tuple[Listed, ...]]:
    """Return the lines of the registers the profile names; raise `ConfigError` for one of wrong shape."""
    paths = register_paths(config, source, places_of(config, source))
    return {name: read_register(path) for name, path in paths.items()}


def registers_of(config: Config, source: ProfileSource, key: bytes) -> Registers:
    """Return the registers of the profile, keyed by `key` (32 secret bytes); raise `ConfigError`."""
    lines = register_lines(config, source)
    return compile_registers(
        clients=lines.get("clients", ()),
        own=lines.get("own_identity", ()),
        public=lines.get("public", ()),
        key=key,
    )


def register_paths(config: Config, source: ProfileSource, places: Places) -> dict[str, Path]:
    """Return where the registers that the profile names lie, by name; raise `ConfigError`."""
    named = config.perimeter.registers
    paths = {"clients": named.clients, "own_identity": named.own_identity, "public": named.public}
    where = ("perimeter", "registers")
    return {
        name: read_from(path, (*where, name), source, places)
        for name, path in paths.items()
        if path is not None
    }
