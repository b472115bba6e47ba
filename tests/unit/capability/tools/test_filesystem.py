# SPDX-License-Identifier: Apache-2.0
"""The read tools: what a model sees, what may be quoted, and what is refused (P2, I12)."""

import os
from collections.abc import Sequence
from pathlib import Path

import jsonschema
import pytest

from runner.capability.tools.filesystem import ListDir, ReadFile, SearchText
from runner.capability.tools.listing import Limits
from runner.capability.tools.openers import open_by_steps
from runner.kernel.errors import ToolError
from runner.kernel.messages import Json
from runner.kernel.ports import Effect, Excerpt, GrantedCall, Root, Tool, ToolOutput

SEDUTA = "La seduta è fissata il 4 giugno 2025."
TOOLS: tuple[Tool, ...] = (ListDir(), ReadFile(), SearchText())


@pytest.fixture
def roots(tmp_path: Path) -> tuple[Root, ...]:
    files = {
        "studio/rossi/avviso.txt": f"Avviso\n\n{SEDUTA}  \nPortare un documento.\n",
        "studio/rossi/conto.txt": "Conto\nTotale: 80 euro\n",
        "altro/nota.txt": "La seduta è annullata.\n",
    }
    for path, text in files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    return tuple(Root(alias=alias, path=str(tmp_path / alias)) for alias in ("studio", "altro"))


def run(tool: Tool, roots: tuple[Root, ...], **arguments: Json) -> ToolOutput:
    jsonschema.validate(arguments, tool.spec.parameters)
    return tool.run(GrantedCall(arguments=arguments, roots=roots))


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.spec.name)
def test_each_tool_reads_and_declares_its_path(tool: Tool) -> None:
    jsonschema.Draft202012Validator.check_schema(tool.spec.parameters)
    assert tool.spec.parameters["additionalProperties"] is False
    assert tool.effect is Effect.READ
    assert tool.path_arguments == {"path"}


@pytest.mark.parametrize("path", [".", ""])
def test_the_top_is_the_list_of_grants(roots: tuple[Root, ...], path: str) -> None:
    assert run(ListDir(), roots, path=path).text == "studio/\naltro/"
    assert run(ListDir(), roots).text == "studio/\naltro/"


def test_the_top_shows_single_files_and_what_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "nota.txt").write_text("La seduta è annullata.")
    single = Root(alias="nota.txt", path=str(tmp_path / "nota.txt"))
    gone = Root(alias="gone", path=str(tmp_path / "gone"))
    assert run(ListDir(), (single, gone)).text == "nota.txt\ngone (cannot be read)"
    assert run(ListDir(), ()).text == "(no folder is granted)"
    [excerpt] = run(ReadFile(), (single,), path="nota.txt").excerpts
    assert excerpt == Excerpt(file="nota.txt", line=1, text="La seduta è annullata.")


def test_a_listing_has_kinds_and_sizes(roots: tuple[Root, ...]) -> None:
    (Path(roots[0].path) / "link").symlink_to("rossi")
    (Path(roots[0].path) / "vuota").mkdir()
    assert run(ListDir(), roots, path="studio").text == "studio/\nlink (link, not followed)\nrossi/\nvuota/"
    listing = run(ListDir(), roots, path="studio/rossi/").text
    assert listing == "studio/rossi/\navviso.txt (71 bytes)\nconto.txt (22 bytes)"
    assert run(ListDir(), roots, path="studio/vuota").text == "studio/vuota/\n(empty)"
    assert run(ListDir(names=1), roots, path="studio").text.endswith(
        "\n(the list goes on after the first 1 name)"
    )
    few = run(ListDir(total_chars=len("avviso.txt (71 bytes)\n")), roots, path="studio/rossi").text
    assert few == "studio/rossi/\navviso.txt (71 bytes)\n(the list goes on after the first 1 name)"


def test_a_file_is_read_with_numbers_and_each_line_may_be_quoted(roots: tuple[Root, ...]) -> None:
    output = run(ReadFile(), roots, path="studio/rossi/avviso.txt")
    assert output.text == (f"studio/rossi/avviso.txt\n1: Avviso\n2: \n3: {SEDUTA}\n4: Portare un documento.")
    assert output.excerpts[2] == Excerpt(file="studio/rossi/avviso.txt", line=3, text=SEDUTA)
    assert [excerpt.line for excerpt in output.excerpts] == [1, 2, 3, 4]


def test_part_of_a_file_says_where_the_rest_is(roots: tuple[Root, ...]) -> None:
    output = run(ReadFile(), roots, path="studio/rossi/avviso.txt", start_line=2, max_lines=2)
    assert [excerpt.line for excerpt in output.excerpts] == [2, 3]
    assert output.text.endswith("\n(lines 4-4 follow: start_line=4)")
    short = run(ReadFile(total_chars=12), roots, path="studio/rossi/avviso.txt")
    assert short.text == "studio/rossi/avviso.txt\n1: Avviso\n(lines 2-4 follow: start_line=2)"
    with pytest.raises(ToolError, match="the file has 4 lines"):
        run(ReadFile(), roots, path="studio/rossi/avviso.txt", start_line=5)


def test_a_long_line_is_cut_and_the_excerpt_is_what_was_shown(roots: tuple[Root, ...]) -> None:
    (Path(roots[0].path) / "lunga.txt").write_text("parola " * 100)
    output = run(ReadFile(line_chars=24), roots, path="studio/lunga.txt")
    assert output.text == "studio/lunga.txt\n1: parola parola parola…"
    assert output.excerpts[0].text == "parola parola parola"


def test_another_encoding_and_an_empty_file_are_said(roots: tuple[Root, ...]) -> None:
    (Path(roots[0].path) / "old.txt").write_bytes(b"perch\xe9\r\nno")
    (Path(roots[0].path) / "empty.txt").write_bytes(b"")
    old = run(ReadFile(), roots, path="studio/old.txt")
    assert old.text == "studio/old.txt (read as cp1252)\n1: perché\n2: no"
    empty = run(ReadFile(), roots, path="studio/empty.txt")
    assert (empty.text, empty.excerpts) == ("studio/empty.txt\n(empty file)", ())


def test_a_search_shows_the_best_lines_by_file(roots: tuple[Root, ...]) -> None:
    output = run(SearchText(), roots, query="Quando è fissata la seduta?")
    assert output.text == (
        f"studio/rossi/avviso.txt\n1: Avviso\n3: {SEDUTA}\n4: Portare un documento.\n"
        "altro/nota.txt\n1: La seduta è annullata."
    )
    shown = [f"{excerpt.line}: {excerpt.text}" for excerpt in output.excerpts]
    assert shown == [line for line in output.text.split("\n") if ": " in line]
    assert {excerpt.file for excerpt in output.excerpts} == {"studio/rossi/avviso.txt", "altro/nota.txt"}


def test_a_search_stays_in_its_path(roots: tuple[Root, ...]) -> None:
    assert (
        run(SearchText(), roots, query="seduta", path="altro").text
        == "altro/nota.txt\n1: La seduta è annullata."
    )
    assert run(SearchText(), roots, query="seduta", path="altro/nota.txt").text.startswith("altro/nota.txt\n")
    with pytest.raises(ToolError, match="no such file"):
        run(SearchText(), roots, query="seduta", path="altro/niente")


def test_nothing_found_is_an_answer(roots: tuple[Root, ...]) -> None:
    output = run(SearchText(), roots, query="zzz")
    assert (output.text, output.excerpts) == ("Nothing found in 3 files: try other words.", ())


def test_an_answer_keeps_to_its_bounds(roots: tuple[Root, ...]) -> None:
    for number in range(9):
        (Path(roots[0].path) / f"f{number}.txt").write_text(f"{'riempitivo ' * 60}bersaglio {number}\n" * 20)
    output = run(SearchText(), roots, query="bersaglio")
    assert len(output.text) <= 1600
    assert 1 < len({excerpt.file for excerpt in output.excerpts}) <= 3 or len(output.excerpts) > 1
    assert all("bersaglio" in excerpt.text for excerpt in output.excerpts)
    assert all(len(excerpt.text) <= 300 for excerpt in output.excerpts)
    two = run(SearchText(max_files=2, max_passages=2, total_chars=9000), roots, query="bersaglio")
    assert len({excerpt.file for excerpt in two.excerpts}) <= 2


def test_files_that_are_no_text_are_counted_and_not_named_by_the_note(roots: tuple[Root, ...]) -> None:
    folder = Path(roots[0].path) / "vuota"
    folder.mkdir(exist_ok=True)
    (folder / "b.pdf").write_bytes(b"%PDF-1.7\n\0")
    (folder / "c.docx").write_bytes(b"PK\x03\x04\0")
    listing = run(ListDir(), roots, path="studio/vuota")
    assert listing.text.endswith("\n(2 files could not be read as text)")
    found = run(SearchText(), roots, query="affitto", path="studio/vuota")
    assert "could not be read as text" not in found.text, "documents are counted as such"
    assert (listing.unread, found.unread) == (2, 2)
    assert run(ListDir(names=1), roots, path="studio/vuota").unread == 0, "all of a folder, or nothing"


MAIL = b"Message-ID: <1@example.org>\nFrom: a@example.org\nSubject: seduta\n\nLa seduta.\n"


@pytest.mark.parametrize(
    ("documents_by", "who"),
    [
        (None, "read_document does, where it is granted"),
        ("search_documents", "search_documents does"),
    ],
)
def test_documents_that_were_not_looked_into_are_counted_with_the_tool_that_does(
    roots: tuple[Root, ...], documents_by: str | None, who: str
) -> None:
    """Also one that is larger than a text may be, as scans are, and one whose source is text."""
    folder = Path(roots[0].path) / "atti"
    folder.mkdir()
    (folder / "b.pdf").write_bytes(b"%PDF-1.7\n\0")
    (folder / "large.pdf").write_bytes(b"%PDF-1.7\n" + b"x" * 200)
    (folder / "mail.eml").write_bytes(MAIL)
    (folder / "foto.jpg").write_bytes(b"\0\0")
    tool = SearchText(documents_by=documents_by, limits=Limits(file_bytes=150))
    for query in ("seduta", "zzz"):
        found = run(tool, roots, query=query, path="studio/atti")
        assert found.text.endswith(
            "\n(1 file could not be read as text)"
            f"\n(3 PDF, mails or other documents were not looked into, or as plain text only: {who})"
        )
        assert found.unread == 3
    one = run(tool, roots, query="seduta", path="studio/atti/mail.eml").text
    assert one.endswith(
        "La seduta.\n(1 PDF, mail or other document was not looked into, or as plain text only: " + who + ")"
    )


def test_what_was_not_searched_is_said(roots: tuple[Root, ...]) -> None:
    folder = Path(roots[0].path)
    (folder / "foto.jpg").write_bytes(b"\0\0")
    (folder / "link").symlink_to("rossi")
    os.link(folder / "rossi" / "conto.txt", folder / "doppio.txt")
    text = run(SearchText(), roots, query="seduta").text
    assert text.endswith("\n(3 files could not be read as text)\n(not searched, files or links: 1)")
    cut = run(SearchText(limits=Limits(files=1)), roots, query="documento").text
    assert "(too much to search: nothing after the first 1 file was)" in cut
    few = run(SearchText(search_chars=1), roots, query="documento").text
    assert "(too much to search: nothing after the first 1 file was)" in few


def test_a_file_that_vanishes_during_a_search_is_counted_not_fatal(roots: tuple[Root, ...]) -> None:
    def open_late(folder: int, names: Sequence[str], flags: int) -> int:
        if names[-1] == "conto.txt":
            (Path(roots[0].path) / "rossi" / "conto.txt").unlink()
        return open_by_steps(folder, names, flags)

    text = run(SearchText(opener=open_late), roots, query="documento").text
    assert "4: Portare un documento." in text
    assert text.endswith("\n(1 file could not be read as text)")


def test_a_grant_that_is_gone_is_counted_not_fatal(roots: tuple[Root, ...], tmp_path: Path) -> None:
    gone = Root(alias="gone", path=str(tmp_path / "gone"))
    text = run(SearchText(), (gone, *roots), query="annullata").text
    assert text == "altro/nota.txt\n1: La seduta è annullata.\n(not searched, files or links: 1)"


def test_i12_a_hostile_name_is_shown_escaped(roots: tuple[Root, ...]) -> None:
    raw = b"a\n\x1b[31m\xff\xe2\x80\xae.txt"
    name = "a\\u000a\\u001b[31m\\udcff\\u202e.txt"
    (Path(roots[1].path) / os.fsdecode(raw)).write_text("bersaglio")
    listing = run(ListDir(), roots, path="altro").text
    assert f"\n{name} (9 bytes)\n" in listing
    found = run(SearchText(), roots, query="bersaglio")
    assert found.text == f"altro/{name}\n1: bersaglio"
    assert found.excerpts[0].file == f"altro/{name}"
    found.text.encode()


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        (ListDir(), {"path": 3}),
        (ListDir(), {"path": "studio", "deep": True}),
        (ListDir(), {"path": "x" * 1001}),
        (ReadFile(), {}),
        (ReadFile(), {"path": "."}),
        (ReadFile(), {"path": "studio/rossi/avviso.txt", "start_line": 0}),
        (ReadFile(), {"path": "studio/rossi/avviso.txt", "start_line": True}),
        (ReadFile(), {"path": "studio/rossi/avviso.txt", "start_line": "1"}),
        (ReadFile(), {"path": "studio/rossi/avviso.txt", "max_lines": 201}),
        (ReadFile(), {"path": "studio/rossi/avviso.txt", "max_lines": float("inf")}),
        (SearchText(), {"path": "."}),
        (SearchText(), {"query": None}),
        (SearchText(), {"query": "q" * 401}),
    ],
)
def test_a_tool_trusts_no_argument(tool: Tool, arguments: dict[str, Json], roots: tuple[Root, ...]) -> None:
    with pytest.raises(ToolError):
        tool.run(GrantedCall(arguments=arguments, roots=roots))


def test_p2_an_ambiguous_alias_is_refused(roots: tuple[Root, ...]) -> None:
    with pytest.raises(ToolError, match="Granted folders: studio, studio"):
        run(ReadFile(), (roots[0], roots[0]), path="studio/rossi/avviso.txt")
