# SPDX-License-Identifier: Apache-2.0
"""The vault of a profile: where its index and the key of it lie.

Owns the two places, in folders of the home directory that no grant reaches (P2): a copy of the one is of no
use without the other. Documents are read for it in a sandbox or not at all (P3). Leaves to `library` and to
the tool which folders are looked into.
"""

import os
from hashlib import sha256
from typing import Final

from runner.capability.documents.port import DocumentReader
from runner.capability.documents.reader import Documents
from runner.capability.home import akaion_home
from runner.capability.profile import ProfileSource
from runner.capability.sandbox.bubblewrap import Bubblewrap
from runner.capability.tools.documents import NAME as READ_DOCUMENT
from runner.capability.transport.clock import SystemEntropy
from runner.capability.vault.vault import Vault
from runner.kernel.config import Config

KEY_FILE: Final = "index.key"
"""The file of the key, beside the device key of the home directory."""


def vault_of(config: Config, source: ProfileSource) -> Vault:
    """Return the vault of a profile. Nothing is made or read yet."""
    home = akaion_home()
    name = sha256(os.fsencode(source.path or source.file)).hexdigest()[:16]
    return Vault(
        file=home / "vault" / "index" / f"{name}.db",
        key=home / "keys" / KEY_FILE,
        entropy=SystemEntropy(),
        reader=_reader_of(config),
    )


def _reader_of(config: Config) -> DocumentReader | None:
    """Return what reads documents: in a sandbox, where the profile grants that they are read in one."""
    grant = config.policy.grant_for(READ_DOCUMENT)
    if grant is None or grant.sandbox == "unrestricted":
        return None
    return Documents(Bubblewrap())
