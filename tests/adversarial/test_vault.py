# SPDX-License-Identifier: Apache-2.0
"""The vault against whoever writes files, queries or the index, and against another matter (P2, I8)."""

import os
import sqlite3
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from runner.capability.tools.beneath import identity_of
from runner.capability.transport.clock import SystemEntropy
from runner.capability.vault.searching import Found
from runner.capability.vault.store import Row, State, open_store
from runner.capability.vault.vault import Vault
from runner.kernel.errors import ToolError
from runner.kernel.ports import Root

SECRET = "la combinazione della cassaforte è 4417"


def vault_at(home: Path) -> Vault:
    return Vault(file=home / "i.db", key=home / "key", entropy=SystemEntropy())


def root_at(path: Path, matter: str | None = None) -> Root:
    path = path.resolve()
    return Root(alias=path.name, path=str(path), matter=matter, identity=identity_of(str(path)))


def write(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def seen(found: Found) -> list[tuple[Any, ...]]:
    """All of it but nothing that a clock or a key decides."""
    hits = [(hit.file, hit.page, hit.line, hit.quote, hit.also, hit.score) for hit in found.hits]
    return [*hits, (found.files, found.unread, found.loose)]


# --- files ----------------------------------------------------------------------------------------------


@pytest.fixture
def trap(tmp_path: Path) -> tuple[Path, Path]:
    """Return a granted folder, and a file outside it that must not be read."""
    outside = write(tmp_path / "outside", {"secret.txt": SECRET}) / "secret.txt"
    return write(tmp_path / "granted", {"note.txt": "nota innocua"}), outside


@pytest.mark.parametrize("kind", ["link", "folder link", "hard link", "pipe"])
def test_p2_nothing_outside_is_indexed(trap: tuple[Path, Path], tmp_path: Path, kind: str) -> None:
    granted, outside = trap
    match kind:
        case "link":
            (granted / "x.txt").symlink_to(outside)
        case "folder link":
            (granted / "x").symlink_to(outside.parent)
        case "hard link":
            os.link(outside, granted / "x.txt")
        case _:
            os.mkfifo(granted / "x.txt")
    vault, roots = vault_at(tmp_path / "home"), [root_at(granted)]
    vault.update(roots)
    assert vault.search(roots, "combinazione cassaforte", 10).hits == ()
    assert len(vault.search(roots, "nota innocua", 10).hits) == 1


def test_p2_an_indexed_file_that_became_a_link_is_not_followed(
    trap: tuple[Path, Path], tmp_path: Path
) -> None:
    """The index says that the words stand there, and they do, behind the link."""
    granted, outside = trap
    (granted / "x.txt").write_text(SECRET)
    vault, roots = vault_at(tmp_path / "home"), [root_at(granted)]
    vault.update(roots)
    (granted / "x.txt").unlink()
    (granted / "x.txt").symlink_to(outside)
    assert vault.search(roots, "combinazione cassaforte", 10).hits == ()


def test_p2_a_forged_name_leads_nowhere(trap: tuple[Path, Path], tmp_path: Path) -> None:
    """Whoever has index and key may write `../outside`: it is opened beneath the folder, or not at all."""
    granted, _ = trap
    vault, roots = vault_at(tmp_path / "home"), [root_at(granted)]
    (granted / "x.txt").write_text(SECRET)
    vault.update(roots)
    with open_store(tmp_path / "home" / "i.db", vault._find_terms()) as store, store.one_change():
        known = store.known(1)[store.mark("x.txt")]
        found = store._db.execute("SELECT words, parts FROM words_1 WHERE rowid = ?", (known.id << 16,))
        ((words, parts),) = found.fetchall()
        for name in ("../outside/secret.txt", "/etc/passwd", "note.txt/..", "", "x\0y"):
            store.put(1, name, State(stamp=""), [Row(section=0, words=words, parts=parts)])
        store.drop(1, known.id)
    (granted / "x.txt").unlink()
    assert vault.search(roots, "combinazione cassaforte", 10).hits == ()


def test_p2_files_swapped_for_links_while_it_works_never_give_what_is_outside(
    trap: tuple[Path, Path], tmp_path: Path
) -> None:
    granted, outside = trap
    vault, roots = vault_at(tmp_path / "home"), [root_at(granted)]
    stop = threading.Event()

    def swap() -> None:
        fresh = granted / "new"
        while not stop.is_set():
            fresh.write_text("nota innocua")
            fresh.replace(granted / "x.txt")
            fresh.symlink_to(outside)
            fresh.replace(granted / "x.txt")

    swapper = threading.Thread(target=swap)
    swapper.start()
    try:
        for _ in range(60):
            vault.update(roots)
            for hit in vault.search(roots, "nota combinazione cassaforte", 10).hits:
                assert "cassaforte" not in hit.quote
    finally:
        stop.set()
        swapper.join()


# --- matters --------------------------------------------------------------------------------------------

MINE = {
    "uno.txt": "sfratto per morosità del conduttore\n",
    "due.txt": "il conduttore chiede il termine di grazia\n",
    "tre.txt": "ricorso per decreto ingiuntivo\n",
}
QUERIES = ("sfratto conduttore", "termine grazia ricorso", '"decreto ingiuntivo"', "brambilla", "il")


def book(place: Path, other: dict[str, str]) -> list[list[tuple[Any, ...]]]:
    """Return what a run in one matter sees, in a practice whose other matter holds `other`."""
    vault = vault_at(place / "home")
    mine, others = write(place / "mine", MINE), write(place / "other", other)
    vault.update([root_at(others, "b"), root_at(mine, "a")])
    return [seen(vault.search([root_at(mine, "a")], query, 10)) for query in QUERIES]


def test_i8_two_practices_that_differ_only_in_the_other_matter_answer_alike(tmp_path: Path) -> None:
    """No order, score or count of one matter depends on the other: rarity would tell which words it has."""
    full = {f"{n}.txt": "sfratto conduttore decreto ingiuntivo brambilla\n" * (n + 1) for n in range(40)}
    assert book(tmp_path / "full", full) == book(tmp_path / "empty", {"x.txt": "niente\n"})


def test_i8_the_answers_above_do_depend_on_the_own_matter(tmp_path: Path) -> None:
    """So that the test before is none that cannot fail."""
    vault, mine = vault_at(tmp_path / "home"), write(tmp_path / "mine", MINE)
    vault.update([root_at(mine)])
    before = [seen(vault.search([root_at(mine)], query, 10)) for query in QUERIES]
    write(mine, {"quattro.txt": "sfratto conduttore decreto ingiuntivo brambilla\n"})
    vault.update([root_at(mine)])
    assert [seen(vault.search([root_at(mine)], query, 10)) for query in QUERIES] != before


# --- queries --------------------------------------------------------------------------------------------

HOSTILE: Sequence[str] = (
    '"',
    '""',
    "' OR 1=1 --",
    "words : x",
    "NEAR(a b, 2)",
    "a AND NOT b OR (",
    "^sfratto*",
    "{words parts} : sfratto",
    "sfratto*",
    '"' * 400,
    "(" * 400,
    "a " * 200,
    "sfratto " * 50,
    " ".join(f"w{n}" for n in range(100)),
    "x" * 400,
    "\0\ud800\u202e",
    "9 aprile " * 44,
    "1.1.1.1.1.1." * 33,
    "",
    "   ",
    "e" + "\u0301" * 399,
)


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> tuple[Vault, Root]:
    place = tmp_path_factory.mktemp("large")
    files = {f"{n}.txt": f"sfratto a aprile 9 w{n} x\n" * 20 for n in range(300)}
    vault, root = vault_at(place / "home"), root_at(write(place / "granted", files))
    vault.update([root])
    return vault, root


@pytest.mark.parametrize("number", range(len(HOSTILE)))
def test_p2_no_query_is_syntax_and_none_raises(large: tuple[Vault, Root], number: int) -> None:
    vault, root = large
    vault.search([root], HOSTILE[number], 20)


def test_an_operator_is_a_word_like_any_other(large: tuple[Vault, Root]) -> None:
    vault, root = large
    plain = seen(vault.search([root], "w7", 20))
    assert seen(vault.search([root], "(w7*)", 20)) == plain
    assert vault.search([root], "NOT w7", 20).hits[0].file == "granted/7.txt"


def test_no_query_is_slow(large: tuple[Vault, Root]) -> None:
    """A query is bounded, and so is what each word of it may cost: none of these takes a second."""
    vault, root = large
    for query in HOSTILE:
        started = time.process_time()
        vault.search([root], query, 20)
        assert time.process_time() - started < 1.0


def test_a_text_full_of_tokens_is_indexed_in_bounds(tmp_path: Path) -> None:
    texts = {"lines.txt": "\n" * 300_000 + "fine", "line.txt": "parola " * 100_000 + "usucapione"}
    vault, root = vault_at(tmp_path / "home"), root_at(write(tmp_path / "granted", texts))
    assert vault.update([root]).unread == {}
    assert [hit.line for hit in vault.search([root], "fine", 5).hits] == [300_001]
    assert vault.search([root], "usucapione", 5).hits[0].file == "granted/line.txt"


# --- the index ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["link", "hard link", "folder"])
def test_the_index_is_no_way_to_another_file(tmp_path: Path, kind: str) -> None:
    granted = write(tmp_path / "granted", {"a.txt": "alfa"})
    other = write(tmp_path, {"precious.txt": "precious"}) / "precious.txt"
    index = tmp_path / "home" / "i.db"
    index.parent.mkdir()
    match kind:
        case "link":
            index.symlink_to(other)
        case "hard link":
            other.chmod(0o600)
            os.link(other, index)
        case _:
            index.mkdir()
    with pytest.raises(ToolError, match="no private file"):
        vault_at(index.parent).update([root_at(granted)])
    assert other.read_text() == "precious"


def test_a_trigger_of_a_forger_never_runs(tmp_path: Path) -> None:
    granted = write(tmp_path / "granted", {"a.txt": "alfa"})
    vault, roots = vault_at(tmp_path / "home"), [root_at(granted)]
    vault.update(roots)
    with sqlite3.connect(tmp_path / "home" / "i.db") as forged:
        forged.execute("CREATE TABLE loot (x)")
        forged.execute("CREATE TRIGGER t AFTER UPDATE ON file BEGIN INSERT INTO loot VALUES (1); END")
    write(granted, {"a.txt": "beta"})
    vault.update(roots)
    with sqlite3.connect(tmp_path / "home" / "i.db") as database:
        assert database.execute("SELECT 1 FROM sqlite_master WHERE name = 'loot'").fetchone() is None
    assert len(vault.search(roots, "beta", 5).hits) == 1
