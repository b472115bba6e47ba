# SPDX-License-Identifier: Apache-2.0
"""An index kept up to date is the index made anew: after any edits, the same answers to any question."""

import shutil
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from runner.capability.tools.beneath import identity_of
from runner.capability.transport.clock import SystemEntropy
from runner.capability.vault.vault import Vault
from runner.kernel.ports import Root

NAMES = st.sampled_from(["uno.txt", "due.txt", "sub/tre.txt", "sub/quattro.txt", "cinque.bin"])
WORDS = ("sfratto", "canone", "udienza", "rossi", "9 aprile 2026", "giusta causa")
TEXTS = st.lists(st.sampled_from(WORDS), min_size=0, max_size=60).map("\n".join)
QUERIES = (*WORDS, "sfratti e canoni", '"giusta causa"', "aprile rossi")


class Edits(RuleBasedStateMachine):
    """A folder that is edited at random, with an index that follows, and at times is killed or emptied."""

    @initialize()
    def begin(self) -> None:
        self.place = Path(tempfile.mkdtemp()).resolve()
        self.folder = self.place / "a"
        self.folder.mkdir()
        self.root = Root(alias="a", path=str(self.folder), identity=identity_of(str(self.folder)))
        self.vault = self.vault_in("home")

    def vault_in(self, home: str) -> Vault:
        return Vault(file=self.place / home / "i.db", key=self.place / "key", entropy=SystemEntropy())

    @rule(name=NAMES, text=TEXTS)
    def write(self, name: str, text: str) -> None:
        file = self.folder / name
        file.parent.mkdir(exist_ok=True)
        file.write_bytes((text + ("\0" if name.endswith(".bin") and "rossi" in text else "")).encode())

    @rule(name=NAMES)
    def remove(self, name: str) -> None:
        (self.folder / name).unlink(missing_ok=True)

    @rule(name=NAMES, other=NAMES)
    def move(self, name: str, other: str) -> None:
        if (self.folder / name).exists():
            (self.folder / other).parent.mkdir(exist_ok=True)
            (self.folder / name).replace(self.folder / other)

    @rule(seconds=st.sampled_from([0.0, 600.0]))
    def update(self, seconds: float) -> None:
        self.vault.update([self.root], seconds=seconds)

    @rule()
    def start_again(self) -> None:
        self.vault = self.vault_in("home")

    @rule()
    def lose_the_end_of_the_index(self) -> None:
        index = self.place / "home" / "i.db"
        if index.exists():
            index.write_bytes(index.read_bytes()[:5000])

    @rule()
    def compare(self) -> None:
        self.vault.update([self.root], again=True)
        shutil.rmtree(self.place / "fresh", ignore_errors=True)
        fresh = self.vault_in("fresh")
        fresh.update([self.root])
        for query in QUERIES:
            assert self.seen(self.vault, query) == self.seen(fresh, query)

    @invariant()
    def every_quote_stands_in_its_file(self) -> None:
        for hit in self.vault.search([self.root], "sfratto canone udienza rossi", 10).hits:
            lines = (self.place / hit.file).read_text(encoding="utf-8").split("\n")
            assert lines[hit.line - 1].strip() == hit.quote.strip()

    def seen(self, vault: Vault, query: str) -> Any:
        found = vault.search([self.root], query, 10)
        return found.files, found.unread, [(hit.file, hit.line, hit.quote, hit.score) for hit in found.hits]

    def teardown(self) -> None:
        shutil.rmtree(self.place, ignore_errors=True)


@given(query=st.text(max_size=400), limit=st.integers(min_value=1, max_value=20))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_query_is_answered(tmp_path: Path, query: str, limit: int) -> None:
    """Total: whatever a model writes, the answer is hits or none, each a line of its file."""
    folder = tmp_path / "a"
    if not folder.exists():
        folder.mkdir()
        (folder / "a.txt").write_text("\n".join(WORDS) + "\n0 a \u00e8 \u4e2d", encoding="utf-8")
    root = Root(alias="a", path=str(folder), identity=identity_of(str(folder)))
    vault = Vault(file=tmp_path / "h" / "i.db", key=tmp_path / "key", entropy=SystemEntropy())
    found, _ = vault.find([root], query, limit, seconds=600.0)
    lines = (folder / "a.txt").read_text(encoding="utf-8").split("\n")
    assert all(lines[hit.line - 1] == hit.quote for hit in found.hits)


TestEdits = Edits.TestCase
TestEdits.settings = settings(max_examples=12, stateful_step_count=20, deadline=None)
