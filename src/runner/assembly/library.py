# SPDX-License-Identifier: Apache-2.0
"""The library: the vault of a profile over its granted folders, for a person and without a model.

Owns the joining of the two: the folders are those that the profile grants to `search_documents`. Opens no
record and asks no backend, as whoever asks may read all of it anyway. Carries P2.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from runner.assembly.blame import blame_of
from runner.assembly.places import places_of
from runner.assembly.policy import policy_of
from runner.assembly.tools import by_name, shipped_tools
from runner.assembly.vault import vault_of
from runner.capability.home import make_home
from runner.capability.profile import read_profile
from runner.capability.tools.beneath import identity_of
from runner.capability.vault.indexing import Tell, Updated
from runner.capability.vault.searching import Found, Hit
from runner.capability.vault.tool import BY_NAME, NAME, notes_on
from runner.capability.vault.vault import Unread, Vault
from runner.kernel.config import parse_config
from runner.kernel.errors import ConfigError
from runner.kernel.ports import Root
from runner.perimeter.grants import pin_policy
from runner.perimeter.policy import ToolGrant, seen_from

__all__ = ["BY_NAME", "Found", "Hit", "Library", "Tell", "Unread", "Updated", "notes_on", "open_library"]

SECONDS: Final = 30.0
"""After which no more files are opened before a search."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Library:
    """A vault and the grant of the folders that it is of. Methods raise `ToolError`.

    `matters` are all that the profile's grants name.
    """

    vault: Vault
    grant: ToolGrant
    matters: frozenset[str]

    @property
    def roots(self) -> Sequence[Root]:
        """All folders, of whatever matter."""
        return self.grant.roots

    def index(self, tell: Tell | None = None) -> Updated:
        """Bring the index up to date, files that could not be read before included; make it anew if need be.

        Folders that the profile does not grant any more are forgotten.
        """
        self.vault.check(self.roots)
        return self.vault.update(self.roots, again=True, tell=tell)

    def unread(self) -> tuple[Unread, ...]:
        """Return which files of the index could not be read, and why."""
        return self.vault.unread(self.roots)

    def search(self, query: str, limit: int, matter: str | None = None) -> tuple[Found, Updated]:
        """Return the best `limit` hits for `query`, and what was done to the index before.

        With a `matter`, in the folders of that matter and those of none, as in a task of it.
        """
        roots = seen_from(self.grant, frozenset(filter(None, [matter])))
        return self.vault.find(roots, query, limit, seconds=SECONDS)


def open_library(named: str) -> Library:
    """Return the library of the profile `named`.

    Raises `ConfigError` for a profile that is wrong, that grants `search_documents` nowhere, or a folder of
    which is missing.
    """
    source = read_profile(named, {})
    config = parse_config(source.data, file=source.file, locate=source.line)
    blame = blame_of(source)
    tools = by_name(shipped_tools(config, source), blame)
    policy = policy_of(config, source, places_of(config, source), tools, frozenset())
    if NAME not in policy.grants or not policy.grants[NAME].roots:
        fix = f"add a grant to it: - {{tool: {NAME}, paths: [{{path: FOLDER, class: C3}}]}}"
        raise ConfigError([blame(("policy", "grants"), f"it grants {NAME} on no folder", fix)])
    pinned = pin_policy(policy, config.policy.grants, identify=identity_of, blame=blame)
    make_home()
    return Library(vault=vault_of(config, source), grant=pinned.grants[NAME], matters=pinned.matters)
