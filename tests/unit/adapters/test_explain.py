# SPDX-License-Identifier: Apache-2.0
"""I12: `akaion explain` names rules and places, and shows what it found on a terminal only, inert."""

import io
import json
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from runner.adapters.cli import explain as command
from runner.adapters.cli import main
from runner.adapters.cli.explain import seen, why
from runner.kernel.labels import DataClass
from runner.kernel.opinions import Opinion
from runner.perimeter.classify import RULES, Role, Span, View

CODE = "VRDGPP58T13D969W"
TEXT = f"Prima riga\nC.F. {CODE}, per Mario Rossi\x1b]8;;http://evil\x07\n"


@pytest.fixture
def akaion(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    monkeypatch.setenv("AKAION_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("TTY_COMPATIBLE", "0")
    monkeypatch.delenv("AKAION_PROFILE", raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "clients.yaml").write_text("- Mario Rossi\n", encoding="utf-8")
    (tmp_path / "studio.yaml").write_text(
        "profile: detached\nperimeter: {registers: {clients: clients.yaml}}\n", encoding="utf-8"
    )
    (tmp_path / "letter.txt").write_bytes(TEXT.encode() + b"\xff")

    def run(*arguments: str) -> tuple[int, str, str]:
        status = main.main(arguments)
        said = capsys.readouterr()
        return status, said.out, said.err

    return run


def test_each_finding_has_place_rule_class_and_reason(akaion: Any) -> None:
    status, out, _ = akaion("explain", "letter.txt", "--profile", "studio.yaml")
    assert status == 0
    assert "2:6 codice_fiscale, C2" in out
    assert "2:28 client, C2" in out
    assert "this name stands in the client register" in out
    assert "C2, personal data; 2 found" in out


def test_without_the_profile_a_client_is_only_a_name(akaion: Any) -> None:
    _, out, _ = akaion("explain", "letter.txt")
    assert "codice_fiscale" in out
    assert "client" not in out


def test_a_pipe_and_json_get_no_content(akaion: Any) -> None:
    _, out, _ = akaion("explain", "letter.txt", "--profile", "studio.yaml")
    _, told, _ = akaion("explain", "letter.txt", "--profile", "studio.yaml", "--json")
    for said in (out, told):
        assert CODE not in said
        assert "Rossi" not in said
    data = json.loads(told)
    assert (data["class"], [each["kind"] for each in data["spans"]]) == ("C2", ["codice_fiscale", "client"])
    (code, client) = data["spans"]
    assert TEXT[code["start"] : code["end"]] == CODE
    assert (client["line"], client["column"], client["view"]) == (2, 28, "text")


def test_a_terminal_gets_the_finding_inert(akaion: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    (Path("letter.txt")).write_text("C.F. VRDGPP58T13\x1b\x07D969W", encoding="utf-8")
    screen = io.StringIO()
    terminal = Console(file=screen, force_terminal=True, width=80, markup=False, color_system=None)
    monkeypatch.setattr(command, "output", lambda: terminal)
    assert akaion("explain", "letter.txt")[0] == 0
    assert "  VRDGPP58T13\\x1b\\x07D969W" in screen.getvalue()
    assert "\x1b]" not in screen.getvalue()
    assert "\x07" not in screen.getvalue()


def test_standard_input_is_read_and_nothing_found_is_said(
    akaion: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"Quando scade il termine?")))
    status, out, _ = akaion("explain", "-")
    assert status == 0
    assert "Class    nothing was found; typed text counts as C1, internal" in out
    assert "Leaves   no: this profile has no remote backend" in out
    assert "public" not in out


REMOTE = """\
profile: attached
perimeter: {redaction: on, declassification: ask}
inference:
  remote: {backend: openai, endpoint: 'https://models.example', model: large, max_class: %s}
"""


@pytest.mark.parametrize(
    ("limit", "text", "counts", "leaves", "words"),
    [
        ("C1", "Quando scade?", "C1", True, "yes, to large at https://models.example, which gets up to C1"),
        ("C0", "Quando scade?", "C1", False, "no: the remote backend gets up to C0"),
        (
            "C1",
            f"C.F. {CODE}",
            "C2",
            False,
            "no: the remote backend gets up to C1 (internal), unless redaction",
        ),
        ("C1", f"C.F. {CODE}", "C2", False, ", or a person lets it go"),
    ],
)
def test_whether_a_typed_text_would_leave_is_said(
    akaion: Any, limit: str, text: str, counts: str, *, leaves: bool, words: str
) -> None:
    Path("remote.yaml").write_text(REMOTE % limit, encoding="utf-8")
    Path("typed.txt").write_text(text, encoding="utf-8")
    _, out, _ = akaion("explain", "typed.txt", "-p", "remote.yaml")
    assert words in next(line for line in out.splitlines() if line.startswith("Leaves"))
    data = json.loads(akaion("explain", "typed.txt", "-p", "remote.yaml", "--json")[1])
    assert (data["counts_as"], data["may_leave"]) == (counts, leaves)


@pytest.mark.parametrize(
    ("opinion", "headline"),
    [
        (Opinion.PERSON, "Class C2, personal data, by the second opinion; nothing was found by the rules"),
        (Opinion.NONE, "Class nothing was found; typed text counts as C1, internal"),
        (None, "Class C3, privileged, by the second opinion; nothing was found by the rules"),
    ],
)
def test_the_headline_takes_the_second_opinion_into_account(
    akaion: Any, monkeypatch: pytest.MonkeyPatch, opinion: Opinion | None, headline: str
) -> None:
    """The class of the rules stays in JSON; what counts is the higher of the two."""
    monkeypatch.setattr(command, "_asked", lambda *_: opinion)
    Path("second.yaml").write_text(
        "profile: attached\nperimeter: {classifier: 'local:smollm2-135m-instruct'}\n", encoding="utf-8"
    )
    Path("typed.txt").write_text("Quando scade?", encoding="utf-8")
    _, out, _ = akaion("explain", "typed.txt", "-p", "second.yaml", "--second")
    assert " ".join(headline.split()) in " ".join(out.split())
    data = json.loads(akaion("explain", "typed.txt", "-p", "second.yaml", "--second", "--json")[1])
    expected = "C3" if opinion is None else max(DataClass.C1, opinion.data_class).name
    assert (data["class"], data["counts_as"]) == ("C0", expected)


@pytest.mark.parametrize(
    "data", [b"PK\x03\x04\x00\x00", b"\x00\xff\xfe", b"\x81\x8d\x8f", b"%PDF-1.7\n1 0 obj\n"]
)
def test_what_is_no_text_is_not_called_public(data: bytes, akaion: Any) -> None:
    Path("letter.docx").write_bytes(data)
    status, out, err = akaion("explain", "letter.docx")
    assert (status, out) == (2, "")
    assert "not text" in err
    assert "read_document" in err


def test_a_file_that_is_not_there_is_wrong_usage(akaion: Any) -> None:
    status, _, err = akaion("explain", "none.txt")
    assert status == 2
    assert "cannot be read" in err


def test_every_rule_and_view_has_its_words() -> None:
    for rule in RULES:
        if rule.role is not Role.MARKER:
            for view in View:
                span = Span(
                    start=0, end=1, kind=rule.kind, rule=rule.name, data_class=rule.data_class, view=view
                )
                assert why(span)
    assert len({seen(view) for view in View}) == len(View)
