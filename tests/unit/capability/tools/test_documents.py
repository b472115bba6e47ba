# SPDX-License-Identifier: Apache-2.0
"""P2, I12, I8: the tool that reads a page: its lines are the document's, its refusals say nothing of it."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from papers import LETTER, SECOND, docx, paragraph, plain_pdf
from pdfmaker import file_of, pages_of, shown, stream

from runner.capability.documents.parsing import child
from runner.capability.documents.port import Document, DocumentReader
from runner.capability.documents.reader import check, parse_answer
from runner.capability.tools.documents import LINE_CHARS, TOTAL_CHARS, ReadDocument
from runner.capability.tools.filesystem import ReadFile
from runner.kernel.errors import ToolError
from runner.kernel.ports import Effect, GrantedCall, Root, ToolOutput, Veil


class Here:
    """The parsers, in this process: what the sandbox does to them is tested elsewhere."""

    def read(self, data: bytes, *, name: str) -> Document:
        del name
        check(data)
        return parse_answer(child.answer_to(data))

    @contextmanager
    def many(self) -> Iterator[DocumentReader]:
        yield self


@pytest.fixture
def root(tmp_path: Path) -> Root:
    (tmp_path / "atto.pdf").write_bytes(plain_pdf())
    return Root(alias="files", path=str(tmp_path.resolve()))


def read(root: Root, veil: Veil | None = None, **arguments: Any) -> ToolOutput:
    return ReadDocument(Here()).run(GrantedCall(arguments=arguments, roots=(root,), veil=veil))


def test_a_page_is_shown_with_numbers_and_each_line_may_be_quoted(root: Root) -> None:
    output = read(root, path="files/atto.pdf", page=2)
    head, *lines = output.text.splitlines()
    assert head == "files/atto.pdf (PDF, page 2 of 2)"
    assert lines == [f"{number}: {line}" for number, line in enumerate(SECOND, start=1)]
    assert [(e.file, e.page, e.line, e.text) for e in output.excerpts] == [
        ("files/atto.pdf", 2, number, line) for number, line in enumerate(SECOND, start=1)
    ]


def test_what_follows_is_said_once(root: Root) -> None:
    assert read(root, path="files/atto.pdf").text.splitlines()[-1] == "(page 2 follows: page=2)"
    part = read(root, path="files/atto.pdf", start_line=2, max_lines=1).text.splitlines()
    assert part[1:] == [f"2: {LETTER[1]}", f"(lines 3-{len(LETTER)} follow: start_line=3)"]


def test_a_long_line_is_shown_whole_in_pieces_that_are_exact(root: Root) -> None:
    sentence = "La parte conviene che il canone sia dovuto. "
    long = (sentence * 40).strip()
    Path(root.path, "memo.docx").write_bytes(docx(paragraph("prima") + paragraph(long) + paragraph("dopo")))
    output = read(root, path="files/memo.docx")
    pieces = [excerpt.text for excerpt in output.excerpts if excerpt.line == 2]
    assert len(pieces) > 2
    assert all(piece in long and len(piece) <= LINE_CHARS for piece in pieces)
    assert " ".join(pieces) == long
    assert output.excerpts[-1].text == "dopo"


def test_a_page_says_that_another_of_its_document_could_not_be_read(root: Root) -> None:
    """Of a PDF of one page with text and one without: the person who reads an answer from it must know."""
    scanned = file_of(pages_of([stream(shown(["Verbale di consegna"])), stream(b"")]))
    Path(root.path, "verbale.pdf").write_bytes(scanned)
    assert read(root, path="files/verbale.pdf").not_whole == 1
    assert read(root, path="files/atto.pdf").not_whole == 0


def test_an_answer_is_bounded_and_goes_on_where_it_stopped(root: Root) -> None:
    lines = [f"riga {n} " + "x" * 150 for n in range(1, 201)]
    Path(root.path, "memo.docx").write_bytes(docx("".join(map(paragraph, lines))))
    seen: list[str] = []
    start = 1
    while start:
        output = read(root, path="files/memo.docx", start_line=start)
        assert len(output.text) <= TOTAL_CHARS + 200
        seen += [excerpt.text for excerpt in output.excerpts]
        rest = output.text.splitlines()[-1].partition("start_line=")[2].rstrip(")")
        start = int(rest or 0)
    assert seen == lines


def test_a_line_longer_than_an_answer_does_not_hold_up_the_next(root: Root) -> None:
    Path(root.path, "memo.docx").write_bytes(docx(paragraph("y " * 20_000) + paragraph("dopo")))
    assert read(root, path="files/memo.docx").text.endswith("(lines 2-2 follow: start_line=2)")
    assert "2: dopo" in read(root, path="files/memo.docx", start_line=2).text


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        pytest.param({"path": "files/atto.pdf", "page": 3}, "page is past the end", id="page"),
        pytest.param({"path": "files/atto.pdf", "start_line": 99}, "start_line is past the end", id="line"),
        pytest.param({"path": "files/Rossi.pdf"}, "no such file", id="no file"),
        pytest.param({"path": "files/../atto.pdf"}, "plain names", id="climbing"),
        pytest.param({"path": "."}, "that is not a file", id="top"),
        pytest.param({"path": "files"}, "not a regular file", id="folder"),
        pytest.param({"path": "files/link.pdf"}, "links are not followed", id="link"),
        pytest.param({"path": "files/note.txt"}, "plain text", id="text"),
        pytest.param({"path": "files/broken.pdf"}, "broken or cut off", id="broken"),
        pytest.param({"path": "files/atto.pdf", "page": 0}, "at least 1", id="zero"),
        pytest.param({"path": "files/atto.pdf", "other": 1}, "takes only", id="argument"),
    ],
)
def test_i12_a_refusal_names_no_file_and_no_content(root: Root, arguments: Any, says: str) -> None:
    folder = Path(root.path)
    (folder / "note.txt").write_text("Rossi-7731", encoding="utf-8")
    (folder / "broken.pdf").write_bytes(b"%PDF-1.4 Rossi-7731")
    (folder / "link.pdf").symlink_to(folder / "atto.pdf")
    with pytest.raises(ToolError, match=says) as caught:
        read(root, **arguments)
    assert "Rossi" not in str(caught.value)


def test_read_file_says_who_reads_a_document(root: Root) -> None:
    with pytest.raises(ToolError, match="read_document reads it"):
        ReadFile().run(GrantedCall(arguments={"path": "files/atto.pdf"}, roots=(root,)))


def test_p3_a_reader_that_nothing_confines_has_another_effect() -> None:
    assert (ReadDocument(Here()).effect, ReadDocument(Here()).confined) == (Effect.READ, True)
    assert ReadDocument(Here(), confined=False).effect is Effect.RUN_FREE


@pytest.mark.parametrize("page", [1, 2])
@pytest.mark.parametrize("start", [1, 2])
def test_i8_behind_a_veil_an_answer_does_not_depend_on_the_value(
    page: int, start: int, tmp_path: Path
) -> None:
    """Two letters differ in one value, of another length, also where a long line is cut into pieces."""

    def answer(value: str) -> str:
        folder = tmp_path / value.replace(" ", "-")
        folder.mkdir(exist_ok=True)
        breaking = '<w:p><w:r><w:br w:type="page"/></w:r></w:p>'
        body = paragraph(f"Il conduttore è {value}. " * 40) + paragraph("il canone") + breaking
        (folder / f"{value}.docx").write_bytes(docx(body + paragraph(f"firma {value}") + paragraph("fine")))
        root = Root(alias="files", path=str(folder.resolve()), redactable=True)
        arguments = {"path": f"files/{value}.docx", "page": page, "start_line": start}
        call = GrantedCall(
            arguments=arguments,  # type: ignore[arg-type]
            roots=(root,),
            veil=lambda texts: [text.replace(value, "[NAME]") for text in texts],
            named=True,
        )
        output = ReadDocument(Here()).run(call)
        return f"{output.text}\n{output.excerpts}"

    assert answer("Aurelio Boccanegra") == answer("Zoe")
    assert "[NAME]" in answer("Zoe")
