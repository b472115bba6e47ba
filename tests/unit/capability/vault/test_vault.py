# SPDX-License-Identifier: Apache-2.0
"""The vault: what is new, changed or gone, exact quotes, and an index that is never believed (P2, I12)."""

import os
import shutil
import sqlite3
import stat
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from runner.capability.documents.port import Document, Page
from runner.capability.tools.beneath import identity_of
from runner.capability.tools.openers import best_opener
from runner.capability.transport.clock import SystemEntropy
from runner.capability.vault import indexing
from runner.capability.vault.database import Broken, need_fts5, one_change, open_database
from runner.capability.vault.indexing import FRESH_NS, Updated, is_old
from runner.capability.vault.sections import SECTION_LINES, TOO_LONG
from runner.capability.vault.vault import Vault
from runner.capability.vault.words import Terms
from runner.kernel.errors import ToolError
from runner.kernel.ports import Root

OLD: Path = Path(__file__).resolve().parents[3] / "data" / "dev-practice"
"""Files that were not written just now."""
LETTER = "Studio Legale\n\nOggetto: sfratto per morosità\nIl conduttore non paga il canone.\n"


class PagesReader:
    """Reads what begins as a PDF, a page for each form feed; "scan" has no text. A `DocumentReader`."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.runs: list[list[str]] = []

    def read(self, data: bytes, *, name: str) -> Document:
        """Return the pages; raise `ToolError`."""
        self.names.append(name)
        if b"broken" in data:
            raise ToolError("that document is broken")
        texts = ["" if text == "scan" else text for text in data.decode().removeprefix("%PDF-").split("\f")]
        pages = tuple(Page(number=n, lines=tuple(text.split("\n"))) for n, text in enumerate(texts, start=1))
        missing = tuple(f"pages without text: {count}" for count in [texts.count("")] if count)
        return Document(
            kind="pdf", pages=pages, notes=("signatures, not checked: 1", *missing), missing=missing
        )

    @contextmanager
    def many(self) -> Iterator["PagesReader"]:
        """Return a reader that notes what it reads."""
        run = PagesReader()
        self.runs.append(run.names)
        yield run


def counts(done: Updated) -> tuple[int, int, int, int]:
    return done.new, done.changed, done.gone, done.same


# --- what is found --------------------------------------------------------------------------------------


def test_a_hit_has_file_page_line_and_the_exact_line(practice: Any) -> None:
    practice.put("a/rossi/lettera.txt", LETTER)
    (hit,) = practice.find("sfratti per morosita").hits
    assert (hit.file, hit.page, hit.line) == ("a/rossi/lettera.txt", None, 3)
    assert hit.quote == "Oggetto: sfratto per morosità"
    assert [(piece.excerpt.line, piece.excerpt.text) for piece in hit.pieces] == [
        (1, "Studio Legale"),
        (3, "Oggetto: sfratto per morosità"),
        (4, "Il conduttore non paga il canone."),
    ]


def test_a_page_of_a_document_has_its_number_and_its_own_lines(practice: Any) -> None:
    reader = PagesReader()
    practice.put("a/atto.pdf", "%PDF-prima pagina\fseconda\nudienza a Modena")
    vault = practice.again(reader=reader)
    roots = [practice.root("a")]
    assert vault.update(roots).unread == {}
    (hit,) = vault.search(roots, "Modena", 5).hits
    assert (hit.page, hit.line, hit.quote) == (2, 2, "udienza a Modena")


def test_i8_files_of_two_folders_never_share_a_run_of_the_reader(practice: Any) -> None:
    """A file that takes the reader over could change what is read of the next: not across matters."""
    reader = PagesReader()
    for path in ("a/1.pdf", "a/2.pdf", "b/3.pdf"):
        practice.put(path, "%PDF-x")
    practice.again(reader=reader).update([practice.root("a"), practice.root("b")])
    assert reader.runs == [["1.pdf", "2.pdf"], ["3.pdf"]]
    practice.again(reader=reader).search([practice.root("a"), practice.root("b")], "x", 5)
    assert sorted(map(sorted, reader.runs[2:])) == [["1.pdf", "2.pdf"], ["3.pdf"]]


def test_a_phrase_is_held_by_the_text_word_for_word_in_any_form(practice: Any) -> None:
    practice.put("a/right.txt", "La giusta causa di recesso.\n")
    practice.put("a/wrong.txt", "La causa è giusta, dice il recesso.\n")
    assert practice.files('"giusta causa"') == ["a/right.txt"]
    found = practice.find('"causa recesso"')
    assert found.loose, "nobody has it so: its words are looked for, and that is said"
    assert len(found.hits) == 2


def test_the_rarer_word_and_the_words_side_by_side_come_first(practice: Any) -> None:
    for number in range(20):
        practice.put(f"a/{number:02}.txt", f"contratto di locazione numero {number}\n")
    practice.put("a/apart.txt", "contratto di locazione, Verdi Ada e Neri Ugo\n")
    practice.put("a/name.txt", "contratto di locazione, Ugo Verdi e Neri Ada\n")
    assert practice.files("contratto Ugo Verdi")[:2] == ["a/name.txt", "a/apart.txt"]


def test_a_word_of_the_path_finds_the_first_line(practice: Any) -> None:
    practice.put("a/brambilla/nota.txt", "\nsenza parole comuni\n")
    (hit,) = practice.find("Brambilla").hits
    assert (hit.line, hit.quote, hit.by_name) == (2, "senza parole comuni", True)


def test_a_line_with_the_word_comes_before_a_page_that_only_its_name_found(practice: Any) -> None:
    """The short first page scores best by the name of its file; a later one has the word."""
    text = "Allegato\f" + "\n".join(["una riga lunga di altre cose"] * 30 + ["La disdetta va spedita."])
    practice.put("a/disdetta.pdf", f"%PDF-{text}")
    reading = practice.again(reader=PagesReader())
    roots = [practice.root("a")]
    reading.update(roots)
    (hit,) = reading.search(roots, "disdetta", 5).hits
    assert (hit.page, hit.line, hit.quote, hit.by_name) == (2, 31, "La disdetta va spedita.", False)


def test_copies_are_one_hit_and_near_copies_with_another_fact_are_not(practice: Any) -> None:
    """Ten drafts of one letter must not hide the contract; two letters of one form are two letters."""
    for number in range(10):
        practice.put(f"a/draft{number}.txt", LETTER)
    practice.put("a/contract.txt", "Contratto: in caso di sfratto decide il giudice.\n")
    practice.put("a/other.txt", LETTER.replace("morosità", "finita locazione"))
    hits = practice.find("sfratto per morosità", limit=3).hits
    assert sorted(hit.file.removesuffix("0.txt") for hit in hits) == [
        "a/contract.txt",
        "a/draft",
        "a/other.txt",
    ]
    assert hits[0].also == tuple(f"a/draft{number}.txt" for number in range(1, 10))


def test_one_line_in_two_texts_is_two_hits(practice: Any) -> None:
    """A form's opening stands in every letter: the letters are not one."""
    for name in ("alfa", "beta"):
        practice.put(f"a/{name}.txt", f"Con la presente si comunica.\nRiguarda {name} {name}bis {name}ter.\n")
    hits = practice.find("con la presente si comunica").hits
    assert {hit.file for hit in hits} == {"a/alfa.txt", "a/beta.txt"}


def test_a_line_too_long_to_show_is_quoted_as_a_piece_of_itself(practice: Any) -> None:
    line = "parola " * 200 + "usucapione " + "parola " * 200
    practice.put("a/long.txt", line)
    (hit,) = practice.find("usucapione").hits
    assert len(hit.quote) <= 300
    assert hit.quote in line
    assert "usucapione" in hit.quote


# --- what is new, changed, gone -------------------------------------------------------------------------


def test_an_update_counts_what_it_does(practice: Any) -> None:
    first, second = practice.put("a/one.txt", "alfa"), practice.put("a/two.txt", "beta")
    roots = [practice.root("a")]
    assert counts(practice.vault.update(roots)) == (2, 0, 0, 0)
    assert counts(practice.vault.update(roots)) == (0, 0, 0, 2)
    first.write_text("gamma")
    second.rename(practice.place / "a" / "moved.txt")
    assert counts(practice.vault.update(roots)) == (1, 1, 1, 0)
    assert practice.files("alfa") == []
    assert practice.files("beta") == ["a/moved.txt"]
    assert practice.files("gamma") == ["a/one.txt"]


def test_a_change_that_keeps_size_and_date_is_seen(practice: Any) -> None:
    file = practice.put("a/one.txt", "alfa")
    os.utime(file, ns=(10**18, 10**18))
    assert practice.files("alfa") == ["a/one.txt"]
    file.write_text("beta")
    os.utime(file, ns=(10**18, 10**18))
    assert practice.files("beta") == ["a/one.txt"]
    assert practice.files("alfa") == []


def test_what_is_as_it_was_is_not_opened(tmp_path: Path) -> None:
    opened: list[Sequence[str]] = []

    def opener(folder: int, names: Sequence[str], flags: int) -> int:
        opened.append(tuple(names))
        return best_opener()(folder, names, flags)

    root = Root(alias="old", path=str(OLD), identity=identity_of(str(OLD)))
    home = tmp_path / "home"
    vault = Vault(file=home / "i.db", key=home / "key", entropy=SystemEntropy(), opener=opener)
    done = vault.update([root])
    assert done.new == sum(path.is_file() for path in OLD.rglob("*")) > 5
    opened.clear()
    assert vault.update([root]).same == done.new
    assert [names for names in opened if names and names[-1].endswith((".txt", ".md"))] == []


def test_a_time_that_may_stand_for_two_states_is_not_believed(practice: Any) -> None:
    """Of two changes within one tick the second leaves no trace. A time to come is as young as can be."""
    file, now = practice.put("a/one.txt", "alfa"), time.time_ns()
    young, old = now - FRESH_NS // 2, now - 2 * FRESH_NS
    assert [is_old((4, *times, 1), now) for times in ((young, old), (old, young), (old, old))] == [
        False,
        False,
        True,
    ]
    os.utime(file, ns=(now + 10**12, now + 10**12))
    roots = [practice.root("a")]
    practice.vault.update(roots)
    with sqlite3.connect(practice.index) as database:
        assert database.execute("SELECT stamp FROM file").fetchall() == [("",)]


def test_a_bounded_update_says_what_is_left(practice: Any) -> None:
    for number in range(5):
        practice.put(f"a/{number}.txt", f"alfa {number}")
    found, done = practice.vault.find([practice.root("a")], "alfa", 9, seconds=0.0)
    assert (done.new, done.left, found.hits) == (0, 5, ())
    found, done = practice.vault.find([practice.root("a")], "alfa", 9, seconds=600.0)
    assert (done.new, done.left, len(found.hits)) == (5, 0, 5)


def test_what_is_new_is_opened_before_what_may_have_changed(practice: Any) -> None:
    opened: list[Sequence[str]] = []

    def opener(folder: int, names: Sequence[str], flags: int) -> int:
        opened.append(tuple(names))
        return best_opener()(folder, names, flags)

    to_come = time.time_ns() + 10**12
    os.utime(practice.put("a/always-due.txt", "alfa"), ns=(to_come, to_come))
    vault = practice.again(opener=opener)
    vault.update([practice.root("a")])
    practice.put("a/new.txt", "beta")
    opened.clear()
    vault.update([practice.root("a")])
    assert [names[0] for names in opened if names[0].endswith(".txt")] == ["new.txt", "always-due.txt"]


def test_what_cannot_be_read_is_counted_with_its_reason_and_tried_again_when_asked(practice: Any) -> None:
    practice.put("a/good.txt", "alfa")
    practice.put("a/picture.png", b"\x89PNG\0\0")
    practice.put("a/broken.pdf", "%PDF-broken")
    practice.put("a/paper.pdf", "%PDF-alfa beta")
    roots = [practice.root("a")]
    done = practice.vault.update(roots)
    assert sorted(done.unread.values()) == [1, 2]
    assert any("where read_document is granted with its sandbox" in reason for reason in done.unread)
    assert practice.vault.search(roots, "alfa", 5).unread == 3
    reading = practice.again(reader=PagesReader())
    unread = reading.update(roots, again=True).unread
    assert sorted(unread.values()) == [1, 1]
    assert unread["that document is broken"] == 1
    assert {hit.file for hit in reading.search(roots, "alfa", 5).hits} == {"a/good.txt", "a/paper.pdf"}


@pytest.mark.parametrize(
    ("name", "data", "reason"),
    [
        ("scan.pdf", b"%PDF-\n \f\n", "holds no text, perhaps a scan"),
        ("old.doc", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600), "old Office file"),
    ],
    ids=["scan", "old office"],
)
def test_what_holds_no_text_is_unread_by_its_reason_and_name(
    practice: Any, name: str, data: bytes, reason: str
) -> None:
    practice.put("a/good.txt", "alfa")
    practice.put(f"a/{name}", data)
    reading, roots = practice.again(reader=PagesReader()), [practice.root("a")]
    (said,) = reading.update(roots).unread
    assert reason in said
    assert [(each.file, each.why) for each in reading.unread(roots)] == [(f"a/{name}", said)]
    assert reading.search(roots, "alfa", 5).unread == 1


def test_a_document_that_is_not_whole_is_indexed_and_counted_until_it_is(practice: Any) -> None:
    """A scanned page may hold what is looked for, also where nothing is found or nothing was read now."""
    practice.put("a/whole.pdf", "%PDF-alfa\fbeta")
    practice.put("a/part.pdf", "%PDF-alfa epsilon\fscan\fscan")
    practice.put("a/scan.pdf", "%PDF-scan")
    practice.put("b/part.pdf", "%PDF-alfa\fscan")
    reading, roots = practice.again(reader=PagesReader()), [practice.root("a")]
    for _ in range(2):
        done = reading.update(roots, again=True)
        assert (done.not_whole, sum(done.unread.values())) == (1, 1)
    assert [(each.file, each.partly) for each in reading.unread(roots)] == [
        ("a/part.pdf", True),
        ("a/scan.pdf", False),
    ]
    assert reading.unread(roots)[0].why == "pages without text: 2", "no other note"
    for query, hits in (("alfa", 2), ("gamma", 0)):
        found = reading.search(roots, query, 5)
        assert (len(found.hits), found.files, found.unread, found.not_whole) == (hits, 2, 1, 1)
    both = [*roots, practice.root("b")]
    assert reading.update(both).not_whole == reading.search(both, "alfa", 5).not_whole == 2
    practice.put("a/part.pdf", "%PDF-alfa\fgamma\fdelta")
    assert reading.find(roots, "gamma", 5, seconds=9)[0].not_whole == 0


def test_a_file_with_more_sections_than_are_indexed_is_counted(
    practice: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its beginning is found, its end is not, and every update says so."""
    monkeypatch.setattr(indexing, "MOST_SECTIONS", 2)
    practice.put("a/whole.txt", "gamma\n" * SECTION_LINES * 2)
    practice.put("a/long.txt", "alfa\n" + "beta\n" * SECTION_LINES * 2 + "delta\n")
    roots = [practice.root("a")]
    assert practice.vault.update(roots).unread == {TOO_LONG: 1}
    done = practice.vault.update(roots, again=True)
    assert (counts(done), dict(done.unread)) == ((0, 0, 0, 2), {TOO_LONG: 1})
    assert practice.files("alfa") == ["a/long.txt"]
    found = practice.vault.search(roots, "delta", 5)
    assert (found.hits, found.files, found.unread) == ((), 1, 1)


# --- an index that is not what it should be -------------------------------------------------------------


def test_p2_a_file_that_changed_after_the_index_is_quoted_as_it_is_now_or_not_at_all(practice: Any) -> None:
    file = practice.put("a/one.txt", "vecchia clausola penale\n")
    roots = [practice.root("a")]
    practice.vault.update(roots)
    file.write_text("nuova clausola risolutiva\n")
    (hit,) = practice.vault.search(roots, "clausola penale", 5).hits
    assert hit.quote == "nuova clausola risolutiva"
    file.write_text("altro\n")
    assert practice.vault.search(roots, "clausola penale", 5).hits == ()
    file.unlink()
    assert practice.vault.search(roots, "clausola penale", 5).hits == ()


def test_p2_a_phrase_that_the_file_does_not_have_any_more_is_not_found(practice: Any) -> None:
    file = practice.put("a/one.txt", "la giusta causa del recesso\n")
    roots = [practice.root("a")]
    practice.vault.update(roots)
    file.write_text("la causa giusta del recesso\n")
    found = practice.vault.search(roots, '"giusta causa"', 5)
    assert (found.loose, [hit.quote for hit in found.hits]) == (True, ["la causa giusta del recesso"])


def test_p2_a_forged_index_cannot_make_up_a_quote(practice: Any) -> None:
    """Whoever writes the index moves terms and rows about: what is quoted still stands in its file."""
    practice.put("a/one.txt", "il teste nega tutto\n" + "riga\n" * 50 + "fine\n")
    practice.put("a/two.txt", "il teste conferma\n")
    roots = [practice.root("a")]
    practice.vault.update(roots)
    with sqlite3.connect(practice.index) as forged:
        rows = forged.execute("SELECT rowid, words, parts, path FROM words_1 ORDER BY rowid").fetchall()
        forged.execute("DELETE FROM words_1")
        for (row, *_), (_, *terms) in zip(rows, rows[::-1], strict=True):
            forged.execute(
                "INSERT INTO words_1 (rowid, words, parts, path) VALUES (?, ?, ?, ?)", (row, *terms)
            )
        forged.execute("INSERT INTO words_1 (rowid, words) VALUES (?, ?)", (1 << 16 | 999, rows[0][1]))
    for query in ("teste nega", "teste conferma", "fine"):
        for hit in practice.vault.search(roots, query, 10).hits:
            lines = (practice.place / hit.file).read_text().splitlines()
            assert lines[hit.line - 1] == hit.quote


def test_i12_nothing_in_the_index_can_be_read(practice: Any) -> None:
    practice.put("a/rossi-divorzio/segreto.txt", "Il signor Rossi ha ammesso il tradimento.\n")
    assert practice.files("tradimento") != []
    data = b"".join(file.read_bytes() for file in practice.index.parent.glob("index.db*")).lower()
    for word in (b"rossi", b"divorzi", b"segret", b"tradiment", b"ammess", str(practice.place).encode()):
        assert word not in data


def test_the_index_and_its_key_are_for_their_owner_only(practice: Any) -> None:
    practice.put("a/one.txt", "alfa")
    practice.find("alfa")
    for path in practice.index.parent.rglob("*"):
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600)
    practice.index.chmod(0o644)
    with pytest.raises(ToolError, match="private file"):
        practice.find("alfa")


def damage_bytes(file: Path) -> None:
    data = bytearray(file.read_bytes())
    data[5000:9000] = b"\xff" * 4000
    file.write_bytes(data)


def damage_head(file: Path) -> None:
    file.write_bytes(b"no database at all" * 100)


def damage_length(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:6000])


def drop_table(file: Path) -> None:
    with sqlite3.connect(file) as database:
        database.execute("DROP TABLE words_1")


def change_form(file: Path) -> None:
    with sqlite3.connect(file) as database:
        database.execute("UPDATE about SET version = 99")


def add_trigger(file: Path) -> None:
    with sqlite3.connect(file) as database:
        database.execute("CREATE TRIGGER t AFTER INSERT ON file BEGIN DELETE FROM file; END")


def spoil_names(file: Path) -> None:
    with sqlite3.connect(file) as database:
        database.execute("UPDATE file SET name = x'00'")


def lose_key(file: Path) -> None:
    (file.parent / "keys" / "index.key").unlink()


@pytest.mark.parametrize(
    "damage",
    [damage_bytes, damage_head, damage_length, drop_table, change_form, add_trigger, spoil_names, lose_key],
)
def test_an_index_that_is_not_whole_is_made_anew(practice: Any, damage: Any) -> None:
    for number in range(30):
        practice.put(f"a/{number}.txt", f"clausola numero {number}\n" * 20)
    roots = [practice.root("a")]
    practice.vault.update(roots)
    damage(practice.index)
    vault = practice.again()
    vault.check(roots)
    vault.search(roots, "clausola", 50)
    vault.update(roots)
    assert len(vault.search(roots, "clausola", 50).hits) == 30


def test_an_error_of_the_machine_is_no_reason_to_begin_anew(practice: Any) -> None:
    practice.put("a/one.txt", "alfa")
    practice.find("alfa")
    before = practice.index.stat().st_ino
    with sqlite3.connect(practice.index, isolation_level=None) as other:
        other.execute("BEGIN IMMEDIATE")
        practice.put("a/two.txt", "alfa")
        (hit,) = practice.vault.search([practice.root("a")], "alfa", 5).hits
        assert hit.file == "a/one.txt", "a search does not wait for who writes"
    assert practice.index.stat().st_ino == before


def test_a_full_disk_is_an_error_and_the_index_stays(practice: Any) -> None:
    practice.put("a/one.txt", "alfa")
    practice.find("alfa")
    lock = Terms((practice.index.parent / "keys" / "index.key").read_bytes()).digest(b"lock")
    with pytest.raises(ToolError, match="its disk is full"), open_database(practice.index, lock) as database:
        database.execute("PRAGMA max_page_count = 1")
        database.execute("CREATE TABLE large AS SELECT zeroblob(1000000)")
    assert practice.files("alfa") == ["a/one.txt"]


def test_a_change_that_breaks_off_changes_nothing(tmp_path: Path) -> None:
    with open_database(tmp_path / "i.db", b"one") as database:
        with suppress(ZeroDivisionError), one_change(database):
            database.execute("INSERT INTO root (mark) VALUES (x'01')")
            raise ZeroDivisionError
        assert database.execute("SELECT count(*) FROM root").fetchone() == (0,)


def test_without_fts5_the_fix_is_said() -> None:
    """The module list of a SQLite without it is a table of that name in a database of ours."""
    with sqlite3.connect(":memory:") as database:
        need_fts5(database)
        database.execute("CREATE TABLE pragma_module_list (name)")
        with pytest.raises(ToolError, match=r"FTS5.*Fix: use a Python"):
            need_fts5(database)


def test_a_database_of_another_key_is_broken(tmp_path: Path) -> None:
    with open_database(tmp_path / "i.db", b"one"):
        pass
    with pytest.raises(Broken), open_database(tmp_path / "i.db", b"other"):
        pass


def test_a_key_that_was_removed_is_not_used_any_more(practice: Any) -> None:
    practice.put("a/one.txt", "alfa")
    assert practice.files("alfa") == ["a/one.txt"]
    key = practice.index.parent / "keys" / "index.key"
    before = key.read_bytes()
    key.unlink()
    assert practice.files("alfa") == ["a/one.txt"]
    assert key.read_bytes() != before
    with open_database(practice.index, Terms(key.read_bytes()).digest(b"lock")):
        pass  # the index is of the new key


def test_many_at_once_update_and_search_and_all_are_right(practice: Any) -> None:
    for number in range(60):
        practice.put(f"a/{number}.txt", f"clausola numero {number}\n")
    roots = [practice.root("a")]

    def work(number: int) -> list[str]:
        vault = practice.again() if number % 2 else practice.vault
        vault.update(roots)
        return [hit.quote for hit in vault.search(roots, f"numero {number}", 1).hits]

    with ThreadPoolExecutor(max_workers=8) as pool:
        found = list(pool.map(work, range(24)))
    assert found == [[f"clausola numero {number}"] for number in range(24)]
    assert practice.vault.search(roots, "clausola", 1).files == 60


# --- folders --------------------------------------------------------------------------------------------


def test_p2_only_the_folders_of_the_call_are_looked_into(practice: Any) -> None:
    practice.put("a/one.txt", "alfa")
    practice.put("b/two.txt", "alfa beta")
    assert set(practice.files("alfa", "a", "b")) == {"a/one.txt", "b/two.txt"}
    assert practice.files("alfa", "b") == ["b/two.txt"]


def test_a_folder_that_was_replaced_is_another_folder(practice: Any) -> None:
    practice.put("a/one.txt", "alfa")
    old = practice.root("a")
    practice.vault.update([old])
    (practice.place / "a").rename(practice.place / "kept")
    practice.put("a/two.txt", "alfa")
    (reason,) = practice.vault.update([old]).unread
    assert "replaced" in reason
    assert practice.vault.search([old], "alfa", 5).hits == ()
    assert practice.files("alfa") == ["a/two.txt"]


def test_a_folder_that_cannot_be_looked_into_is_said_and_the_others_are(practice: Any) -> None:
    practice.put("a/one.txt", "alfa")
    practice.put("b/two.txt", "alfa beta")
    roots = [practice.root("a"), practice.root("b")]
    shutil.rmtree(practice.place / "a")
    found, done = practice.vault.find(roots, "alfa", 5, seconds=600.0)
    assert [hit.file for hit in found.hits] == ["b/two.txt"]
    assert done.skipped == 1


def test_a_folder_that_is_granted_no_more_is_forgotten(practice: Any) -> None:
    practice.put("a/one.txt", "alfa")
    practice.put("b/two.txt", "alfa")
    practice.find("alfa", "a", "b")
    practice.vault.check([practice.root("b")])
    assert practice.vault.search([practice.root("a")], "alfa", 5).files == 0
    assert practice.vault.search([practice.root("b")], "alfa", 5).files == 1


def test_a_single_file_may_be_granted(practice: Any) -> None:
    practice.put("a/one.txt", "alfa")
    assert practice.files("alfa", "a/one.txt") == ["a/one.txt"]
