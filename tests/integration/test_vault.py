# SPDX-License-Identifier: Apache-2.0
"""The vault from a profile: the commands a person calls, a run that quotes from it, and a kill in between."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from papers import SECOND, docx, paragraph, plain_pdf
from pdfmaker import file_of, pages_of, shown, stream
from typer.testing import CliRunner

from runner.adapters.cli.exits import Status
from runner.adapters.cli.main import app, main
from runner.assembly.library import open_library
from runner.assembly.tools import shipped_tools
from runner.capability.profile import read_profile
from runner.capability.sandbox.bubblewrap import why_not
from runner.capability.tools.search import SearchText
from runner.kernel.config import parse_config

NO_SANDBOX = why_not()
ATTO = "Tribunale di Udine\n\nSfratto per morosità.\nL'udienza è fissata per il 9 aprile 2026.\n"


@pytest.fixture
def profile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("AKAION_HOME", str(tmp_path / "home"))
    for name, text in (("one/atto.txt", ATTO), ("two/nota.txt", "Parcella per lo sfratto: 1.250 euro.\n")):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text(text, encoding="utf-8")
    (tmp_path / "one" / "foto.png").write_bytes(b"\x89PNG\0")
    path = tmp_path / "studio.yaml"
    path.write_text(
        "profile: detached\npolicy:\n  grants:\n"
        "    - {tool: search_documents, paths: [{path: one, class: C3}, two]}\n",
        encoding="utf-8",
    )
    return str(path)


def akaion(*arguments: str) -> tuple[int, str]:
    done = CliRunner().invoke(app, list(arguments), prog_name="akaion")
    return done.exit_code, done.stdout


def test_index_counts_and_says_why_files_are_unread(profile: str) -> None:
    status, said = akaion("index", "--profile", profile, "--json")
    data = json.loads(said)
    assert status == Status.DONE
    assert (data["new"], data["same"], data["gone"]) == (3, 0, 0)
    (reason,) = data["unread"]
    assert "not text" in reason
    assert json.loads(akaion("index", "--profile", profile, "--json")[1])["same"] == 3
    assert data["unread_files"] == [{"file": "one/foto.png", "why": reason}]
    said = akaion("index", "--profile", profile)[1]
    assert "Unread" in said
    assert "one/foto.png" in said


def test_index_names_ten_files_and_json_all(profile: str) -> None:
    for number in range(11):
        (Path(profile).parent / "two" / f"foto{number:02}.png").write_bytes(b"\x89PNG\0")
    said = akaion("index", "--profile", profile)[1]
    assert (said.count(".png"), "2 more: --json names all" in said) == (10, True)
    assert len(json.loads(akaion("index", "--profile", profile, "--json")[1])["unread_files"]) == 12


def test_a_file_found_by_its_name_only_is_marked(profile: str) -> None:
    """Its first line is shown, and has none of the words."""
    (Path(profile).parent / "two" / "disdetta.txt").write_text("Intestazione.\n", encoding="utf-8")
    said = akaion("search", "--profile", profile, "disdetta")[1]
    assert "found by its name: this line has none of the words" in said
    assert "found by its name" not in akaion("search", "--profile", profile, "sfratto")[1]


def test_search_prints_file_line_and_the_exact_text(profile: str) -> None:
    """Without `akaion index` before: a search brings the index up to date itself."""
    status, said = akaion("search", "--profile", profile, "--json", "udienza", "aprile", "2026")
    hit = json.loads(said)["hits"][0]
    assert status == Status.DONE
    assert {name: hit[name] for name in ("file", "page", "line", "quote", "also")} == {
        "file": "one/atto.txt",
        "page": None,
        "line": 4,
        "quote": "L'udienza è fissata per il 9 aprile 2026.",
        "also": [],
    }
    status, said = akaion("search", "--profile", profile, "sfratto")
    assert "two/nota.txt, line 1\n  Parcella per lo sfratto: 1.250 euro.\n" in said
    assert "1 file could not be read as text" in said


def test_i8_a_matter_shuts_the_folders_of_the_others(profile: str) -> None:
    """As a task of it sees them: its own folders and those of none. A name that no grant has is an error."""
    folder = Path(profile).parent
    (folder / "three").mkdir()
    (folder / "three" / "modulo.txt").write_text("Modulo per lo sfratto.\n", encoding="utf-8")
    paths = "{path: one, matter: rossi}, {path: two, matter: bianchi}, three"
    text = f"profile: detached\npolicy:\n  grants:\n    - {{tool: search_documents, paths: [{paths}]}}\n"
    Path(profile).write_text(text, encoding="utf-8")

    def files(*options: str) -> set[str]:
        said = akaion("search", "--profile", profile, "--json", *options, "sfratto")[1]
        return {hit["file"] for hit in json.loads(said)["hits"]}

    assert files() == {"one/atto.txt", "two/nota.txt", "three/modulo.txt"}
    assert files("--matter", "rossi") == {"one/atto.txt", "three/modulo.txt"}
    assert files("--matter", "bianchi") == {"two/nota.txt", "three/modulo.txt"}
    done = CliRunner().invoke(app, ["search", "--profile", profile, "--matter", "verdi", "sfratto"])
    assert (done.exit_code, done.stdout) == (Status.USAGE, "")
    assert "bianchi, rossi" in done.stderr


def test_search_ends_with_3_when_nothing_was_found(profile: str) -> None:
    assert akaion("search", "--profile", profile, "zzz") == (
        Status.NOT_FOUND,
        "(1 file could not be read as text)\nNothing found in 2 files.\n",
    )


def test_what_a_file_says_is_printed_inert(profile: str) -> None:
    (Path(profile).parent / "one" / "evil.txt").write_text("sfratto\x1b]8;;http://x\x07 clic\n")
    said = akaion("search", "--profile", profile, "clic")[1]
    assert "\x1b" not in said
    assert "\x07" not in said


def test_a_profile_without_the_grant_says_what_to_add(
    profile: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path(profile).write_text("profile: attached\n")
    assert main(["index", "--profile", profile]) == Status.USAGE
    assert "add a grant to it: - {tool: search_documents" in capsys.readouterr().err


def test_p2_no_grant_reaches_the_index_or_its_key(profile: str, capsys: pytest.CaptureFixture[str]) -> None:
    akaion("index", "--profile", profile)
    home = Path(os.environ["AKAION_HOME"])
    assert [file.name for file in home.rglob("*.key")] == ["index.key"]
    for folder in ("vault/index", "keys"):
        assert list((home / folder).iterdir()) != []
        Path(profile).write_text(
            "profile: detached\npolicy:\n  grants:\n"
            f"    - {{tool: search_documents, paths: ['{home / folder}']}}\n"
        )
        assert main(["search", "--profile", profile, "x"]) == Status.USAGE
        assert "the perimeter's keys lie here" in capsys.readouterr().err


def test_nothing_goes_on_record_and_no_model_is_needed(profile: str) -> None:
    akaion("search", "--profile", profile, "sfratto")
    home = Path(os.environ["AKAION_HOME"])
    assert sorted(path.name for path in home.iterdir()) == ["keys", "vault"]


# --- documents ------------------------------------------------------------------------------------------


FREE = "unrestricted}"


def granting(profile: str, more: str) -> None:
    """Put a PDF and a letter into the folder, and grant `more`."""
    folder = Path(profile).parent / "one"
    (folder / "canone.pdf").write_bytes(plain_pdf())
    (folder / "lettera.docx").write_bytes(docx(paragraph("Raccomandata per la signora Bellandi.")))
    text = Path(profile).read_text(encoding="utf-8")
    Path(profile).write_text(f"{text}    - {{tool: read_document, paths: [one]{more}}}\n", encoding="utf-8")


@pytest.mark.skipif(NO_SANDBOX is not None, reason=f"no sandbox here: {NO_SANDBOX}")
def test_documents_are_indexed_and_quoted_by_page_where_they_may_be_read(profile: str) -> None:
    granting(profile, "")
    hits = json.loads(akaion("search", "--profile", profile, "--json", "pagina due avvocati")[1])["hits"]
    assert (hits[0]["file"], hits[0]["page"], hits[0]["line"]) == ("one/canone.pdf", 2, 1)
    assert hits[0]["quote"] == SECOND[0]
    said = akaion("search", "--profile", profile, "Bellandi")[1]
    assert "one/lettera.docx, page 1, line 1\n  Raccomandata per la signora Bellandi.\n" in said


@pytest.mark.skipif(NO_SANDBOX is not None, reason=f"no sandbox here: {NO_SANDBOX}")
def test_pages_that_are_scans_are_said_and_their_documents_named(profile: str) -> None:
    """By the real reader: a PDF of one page with text and one without."""
    granting(profile, "")
    scanned = Path(profile).parent / "one" / "allegato.pdf"
    scanned.write_bytes(file_of(pages_of([stream(shown(["Verbale di consegna"])), stream(b"")])))
    data = json.loads(akaion("index", "--profile", profile, "--json")[1])
    assert data["not_whole"] == 1
    assert data["not_whole_files"] == [
        {"file": "one/allegato.pdf", "why": "pages without text, perhaps scans: 1"}
    ]
    assert "one/allegato.pdf" not in {each["file"] for each in data["unread_files"]}
    said = akaion("index", "--profile", profile)[1]
    assert "one/allegato.pdf (pages without text, perhaps scans: 1)" in " ".join(said.split())
    for words in ("consegna", "nowhere"):
        found = json.loads(akaion("search", "--profile", profile, "--json", words)[1])
        assert found["not_whole"] == 1
        assert any("1 document has pages or attachments" in note for note in found["notes"])


def test_p3_documents_are_not_indexed_without_a_sandbox(profile: str) -> None:
    granting(profile, ", sandbox: unrestricted")
    unread = json.loads(akaion("index", "--profile", profile, "--json")[1])["unread"]
    assert [count for reason, count in unread.items() if "document" in reason] == [2]
    assert akaion("search", "--profile", profile, "Bellandi")[0] == Status.NOT_FOUND


@pytest.mark.parametrize(
    ("grants", "named"),
    [
        ("", None),
        ("{tool: search_documents, paths: [one]}", None),
        ("{tool: read_document, paths: [one]}", "read_document"),
        ("{tool: search_documents, paths: [one]}, {tool: read_document, paths: [one]}", "search_documents"),
        (
            "{tool: search_documents, paths: [one]}, {tool: read_document, paths: [one], sandbox: " + FREE,
            "read_document",
        ),
    ],
    ids=["neither", "no reader", "reads", "searches", "reads unconfined"],
)
def test_search_text_names_the_granted_tool_that_looks_into_documents(
    profile: str, grants: str, named: str | None
) -> None:
    """The index has documents only where they are read in a sandbox: then the other one is named."""
    Path(profile).write_text(f"profile: detached\npolicy: {{grants: [{grants}]}}\n", encoding="utf-8")
    source = read_profile(profile, {})
    config = parse_config(source.data, file=source.file, locate=source.line)
    (tool,) = (tool for tool in shipped_tools(config, source) if isinstance(tool, SearchText))
    assert tool.documents_by == named


# --- killed ---------------------------------------------------------------------------------------------

KILLED = """
import signal, sys
from runner.assembly.library import open_library
library = open_library(sys.argv[1])
if sys.argv[2] == "step":
    library.index(lambda done, total: signal.raise_signal(signal.SIGKILL))
signal.setitimer(signal.ITIMER_PROF, float(sys.argv[2]))  # the end, wherever it is by then
library.index()
"""


def answers(profile: str) -> Any:
    library = open_library(profile)
    found = [library.vault.search(library.roots, f"clausola {word}", 20) for word in ("penale", "n7", "n249")]
    return [[(hit.file, hit.line, hit.quote) for hit in each.hits] for each in found]


@pytest.mark.parametrize("when", ["step", "0.03", "0.1"])
def test_an_index_survives_a_kill_at_any_time(profile: str, when: str) -> None:
    """What it says afterwards is right as far as it goes, and the next update makes it whole."""
    folder, home = Path(profile).parent / "two", Path(os.environ["AKAION_HOME"])
    for number in range(250):
        (folder / f"{number:03}.txt").write_text(f"clausola penale n{number}\n" * 20)
    child = subprocess.run(
        [sys.executable, "-c", KILLED, profile, when], env={**os.environ}, capture_output=True, check=False
    )
    assert child.returncode in ({-signal.SIGKILL} if when == "step" else {-signal.SIGPROF, 0})
    for hits in answers(profile):
        for file, line, quote in hits:
            assert (Path(profile).parent / file).read_text().splitlines()[line - 1] == quote
    assert open_library(profile).index().gone == 0
    whole = answers(profile)
    assert [hits[0][0] for hits in whole[1:]] == ["two/007.txt", "two/249.txt"]
    for file in (home / "vault" / "index").iterdir():
        file.unlink()
    open_library(profile).index()
    assert answers(profile) == whole
