# SPDX-License-Identifier: Apache-2.0
"""A practice in a temporary folder, and a vault over it."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from runner.capability.tools.beneath import identity_of
from runner.capability.transport.clock import SystemEntropy
from runner.capability.vault.searching import Found
from runner.capability.vault.vault import Vault
from runner.kernel.labels import DataClass
from runner.kernel.ports import Root


@dataclass(frozen=True, kw_only=True)
class Practice:
    """Folders of files, and a vault with its home beside them."""

    place: Path
    vault: Vault

    @property
    def index(self) -> Path:
        """The file of the index."""
        return self.place / "home" / "index.db"

    def put(self, path: str, text: str | bytes) -> Path:
        """Write a file."""
        file = self.place / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8", "surrogateescape"))
        return file

    def root(self, name: str, declared: DataClass | None = None, matter: str | None = None) -> Root:
        """Return a folder as a granted root."""
        path = str((self.place / name).resolve())
        return Root(alias=name, path=path, declared=declared, matter=matter, identity=identity_of(path))

    def again(self, **more: Any) -> Vault:
        """Return another vault over the same index, as after a start."""
        return _vault(self.place, **more)

    def find(self, query: str, *names: str, limit: int = 10) -> Found:
        """Bring the index of the folders `names` up to date and search them."""
        roots = [self.root(name) for name in names or ("a",)]
        self.vault.update(roots)
        return self.vault.search(roots, query, limit)

    def files(self, query: str, *names: str, limit: int = 10) -> list[str]:
        """Return the files of the hits, best first."""
        return [hit.file for hit in self.find(query, *names, limit=limit).hits]


def _vault(place: Path, **more: Any) -> Vault:
    home = place / "home"
    return Vault(file=home / "index.db", key=home / "keys" / "index.key", entropy=SystemEntropy(), **more)


@pytest.fixture
def practice(tmp_path: Path) -> Practice:
    """Return a practice without files."""
    (tmp_path / "a").mkdir()
    return Practice(place=tmp_path, vault=_vault(tmp_path))
