# SPDX-License-Identifier: Apache-2.0
"""`search_documents` as a model meets it: lines to quote, the class of what was examined, matters apart."""

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import pytest

from runner.agent.evidence import find_evidence
from runner.capability.documents.port import Document, Page
from runner.capability.vault.tool import SearchDocuments
from runner.kernel.errors import ToolError
from runner.kernel.labels import DataClass
from runner.kernel.messages import ToolCall
from runner.kernel.ports import GrantedCall


def call(practice: Any, *names: str, **arguments: Any) -> Any:
    roots = tuple(practice.root(name) for name in names or ("a",))
    return SearchDocuments(vault=practice.vault).run(GrantedCall(arguments=arguments, roots=roots))


def test_the_answer_is_numbered_lines_under_their_file_and_each_can_be_quoted(practice: Any) -> None:
    practice.put("a/verbale.txt", "Tribunale di Udine\nL'udienza è il 9 aprile 2026.\n")
    output = call(practice, query="quando è l'udienza")
    assert output.text == "a/verbale.txt\n1: Tribunale di Udine\n2: L'udienza è il 9 aprile 2026."
    evidence = find_evidence("il 9 aprile 2026", "quando è l'udienza", output.excerpts)
    assert evidence is not None
    assert (evidence.file, evidence.line, evidence.quote) == (
        "a/verbale.txt",
        2,
        "L'udienza è il 9 aprile 2026.",
    )


def test_what_is_missing_is_said(practice: Any) -> None:
    practice.put("a/one.txt", "alfa\n")
    practice.put("a/two.bin", b"\0\0")
    (practice.place / "a" / "link").symlink_to("one.txt")
    output = call(practice, query="beta")
    assert output.text == (
        "Nothing found in 1 file: try other words.\n"
        "(1 file could not be read as text)\n(not indexed, links or folders: 1)"
    )
    assert (output.unread, output.excerpts) == (1, ())


def test_the_best_lines_of_a_file_are_shown_wherever_they_stand_in_it(practice: Any) -> None:
    """Not only those around the one that is worth most: the line that answers may be another one."""
    rest = ["altro"] * 20
    lines = ["Canone e deposito", *rest, *rest, "Il canone è di 900 euro.", *rest, "Deposito: 1.800"]
    practice.put("a/contratto.txt", "\n".join(lines))
    practice.put("a/nota.txt", "Deposito di un atto.\n")
    output = call(practice, query="canone e deposito")
    shown = {(excerpt.file, excerpt.line) for excerpt in output.excerpts}
    assert {("a/contratto.txt", number) for number in (1, 42, 63)} <= shown
    assert ("a/nota.txt", 1) in shown
    assert output.text.count("a/contratto.txt") == 1
    one = call(practice, query="canone e deposito", limit=1)
    assert {excerpt.file for excerpt in one.excerpts} == {"a/contratto.txt"}


class HalfReader:
    """Reads any document as one line, its other page being a scan. Implements `DocumentReader`."""

    def read(self, data: bytes, *, name: str) -> Document:  # noqa: ARG002 - the port's words
        """Return the line."""
        return Document(
            kind="pdf", pages=(Page(number=1, lines=("alfa",)),), notes=("n",), missing=("scans: 1",)
        )

    def many(self) -> AbstractContextManager["HalfReader"]:
        """Return itself."""
        return nullcontext(self)


class PagesReader(HalfReader):
    """Reads a document as three pages."""

    def read(self, data: bytes, *, name: str) -> Document:  # noqa: ARG002 - the port's words
        """Return the pages, the first of more lines than a section has."""
        pages = (("x",) * 41 + ("alfa gamma",), ("alfa beta",), ("beta", "alfa"))
        return Document(
            kind="pdf", pages=tuple(Page(number=n, lines=page) for n, page in enumerate(pages, start=1))
        )


def test_each_page_that_is_shown_has_its_own_head_and_numbers(practice: Any) -> None:
    practice.put("a/one.pdf", b"%PDF-")
    tool, roots = SearchDocuments(vault=practice.again(reader=PagesReader())), (practice.root("a"),)
    output = tool.run(GrantedCall(arguments={"query": "alfa gamma"}, roots=roots))
    assert {(excerpt.page, excerpt.line, excerpt.text) for excerpt in output.excerpts} == {
        (1, 40, "x"),
        (1, 41, "x"),
        (1, 42, "alfa gamma"),
        (2, 1, "alfa beta"),
        (3, 1, "beta"),
        (3, 2, "alfa"),
    }
    assert output.text.startswith("a/one.pdf (page 1)\n40: x\n41: x\n42: alfa gamma\na/one.pdf (page ")


def test_of_a_phrase_only_pages_that_hold_it_are_shown(practice: Any) -> None:
    practice.put("a/one.pdf", b"%PDF-")
    tool, roots = SearchDocuments(vault=practice.again(reader=PagesReader())), (practice.root("a"),)
    output = tool.run(GrantedCall(arguments={"query": '"alfa beta"'}, roots=roots))
    assert output.text == "a/one.pdf (page 2)\n1: alfa beta"


@pytest.mark.parametrize("query", ["alfa", "beta"])
def test_pages_that_could_not_be_read_are_said_with_hits_and_without(practice: Any, query: str) -> None:
    note = (
        "(1 document has pages or attachments that could not be read; akaion index names those in the index)"
    )
    practice.put("a/one.pdf", b"%PDF-")
    tool = SearchDocuments(vault=practice.again(reader=HalfReader()))
    roots = (practice.root("a"),)
    text = tool.run(GrantedCall(arguments={"query": query}, roots=roots)).text
    assert text.splitlines()[-1] == note
    practice.put("a/two.pdf", b"%PDF-2")
    output = tool.run(GrantedCall(arguments={"query": query}, roots=roots))
    assert output.text.splitlines()[-1] == note.replace("1 document has", "2 documents have")
    assert (output.not_whole, output.unread) == (2, 0)


def test_an_answer_is_bounded_and_its_first_hit_is_shown(practice: Any) -> None:
    for number in range(20):
        practice.put(f"a/{number}.txt", f"clausola {number} " * 40 + "\n" + f"ancora {number} " * 40)
    output = call(practice, query="clausola", limit=20)
    assert len(output.text) <= 1800
    assert 1 <= len({excerpt.file for excerpt in output.excerpts}) < 20


@pytest.mark.parametrize(
    "arguments",
    [{"query": 3}, {"query": "x" * 401}, {"query": "x", "limit": 0}, {"query": "x", "path": "."}, {}],
)
def test_arguments_are_judged_again(practice: Any, arguments: dict[str, Any]) -> None:
    with pytest.raises(ToolError):
        call(practice, **arguments)


def test_it_claims_no_veil() -> None:
    """What is behind a veil would have to change ranks and counts too: a call that needs one gets none."""
    assert not hasattr(SearchDocuments, "veils")


@pytest.mark.anyio
@pytest.mark.parametrize("query", ["alfa", "nowhere to be found"])
async def test_i8_the_result_has_the_class_of_all_that_was_examined(
    practice: Any, make_world: Any, grant: Any, query: str
) -> None:
    """Also where nothing was found: that C3 files do not say a word is as secret as that they do."""
    practice.put("open/one.txt", "alfa")
    practice.put("closed/two.txt", "beta")
    tool = SearchDocuments(vault=practice.vault)
    roots = (practice.root("open", DataClass.C0), practice.root("closed", DataClass.C3))
    world = make_world(grants={tool.spec.name: grant(tool, roots=roots)})
    tools = world.perimeter.seal_tools([tool])
    with world.perimeter.task("q") as task:
        asked = ToolCall(tool=tool.spec.name, arguments={"query": query}, origin=task.goal)
        reply = await tools.call(asked, task=task)
    assert reply.status == "ok"
    assert ("open/one.txt" in reply.block.text) is (query == "alfa")
    assert reply.block.label.data_class is DataClass.C3
    assert reply.block.label.sources == {"open", "closed"}


@pytest.mark.anyio
async def test_a_class_or_a_matter_that_the_profile_changes_counts_at_once(
    practice: Any, make_world: Any, grant: Any
) -> None:
    practice.put("a/one.txt", "alfa")
    tool = SearchDocuments(vault=practice.vault)
    labels = []
    for declared, matter in ((DataClass.C1, None), (DataClass.C3, "rossi")):
        roots = (practice.root("a", declared, matter),)
        world = make_world(grants={tool.spec.name: grant(tool, roots=roots)})
        with world.perimeter.task("q") as task:
            asked = ToolCall(tool=tool.spec.name, arguments={"query": "alfa"}, origin=task.goal)
            labels.append((await world.perimeter.seal_tools([tool]).call(asked, task=task)).block.label)
    assert [(label.data_class, set(label.matters)) for label in labels] == [
        (DataClass.C1, set()),
        (DataClass.C3, {"rossi"}),
    ]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
