# SPDX-License-Identifier: Apache-2.0
"""The reader from outside: it works in the sandbox, believes no answer, and starts few programs."""

import json
import os
import re
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from papers import LETTER, good, plain_pdf

from runner.capability.documents import reader
from runner.capability.documents.reader import Documents, parse_answer
from runner.capability.documents.words import Note, Reason, noted, why
from runner.capability.sandbox import bubblewrap
from runner.capability.sandbox.bubblewrap import Bubblewrap, why_not
from runner.capability.sandbox.interpreter import interpreter
from runner.capability.sandbox.port import Job, Ran, Talk, Talker
from runner.capability.sandbox.unconfined import Unconfined
from runner.kernel.errors import SandboxUnavailable, ToolError

NO_SANDBOX = why_not()
confined = pytest.mark.skipif(NO_SANDBOX is not None, reason=f"no sandbox here: {NO_SANDBOX}")
SECRET = "Rossi-7731"
RTF = b"{\\rtf1 %s}"
"""What the programs below take for an order: a document, as far as this side of the sandbox can see."""

PROGRAM = """
import os, socket, sys
from runner.capability.documents.parsing import child
from runner.capability.documents.parsing.document import read_into

def attempt(action):
    try:
        return f"OUT {action()}"
    except Exception as problem:
        return type(problem).__name__

def read(data, draft):
    draft.kind = "rtf"
    word, _, rest = data.decode()[7:-1].partition(" ")
    match word:
        case "open": draft.line(attempt(lambda: open(rest).read()))
        case "list": draft.line(attempt(lambda: os.listdir(rest)))
        case "write": draft.line(attempt(lambda: os.write(os.open(rest, os.O_WRONLY | os.O_CREAT), b"x")))
        case "socket": draft.line(attempt(socket.socket))
        case "fork": draft.line(attempt(os.fork))
        case "environment": draft.line(repr(sorted(os.environ)))
        case "code": draft.line(repr(sorted(os.listdir("."))))
        case "memory": bytearray(1 << 40)
        case "grow": grow()
        case "spin":
            while True: pass
        case "exit": os._exit(3)
        case "crash": os.kill(os.getpid(), 11)
        case "talk": os.write(3, (1 << 40).to_bytes(8, "big"))
        case "sleep": socket_free_sleep()
        case "pid": draft.line(str(os.getpid()) + " " + str(id(draft)) + " " + str(STARTED))
        case _: draft.line(rest)

def grow():
    kept = []
    while True:
        kept.append(bytearray(1 << 20))

def socket_free_sleep():
    import time
    time.sleep(600)

import time
STARTED = time.monotonic_ns()
child.CPU_S = 1
child.main(read)
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    place = tmp_path / "main.py"
    place.write_text(PROGRAM, encoding="utf-8")
    return place


def said(talker: Talker, program: Path, order: str) -> str:
    document = Documents(talker, main=program).read(RTF % order.encode(), name="")
    return document.pages[0].lines[0]


@confined
@pytest.mark.parametrize("paper", good(), ids=[paper.name for paper in good()])
def test_p2_the_sandbox_reads_what_stands_on_each_page(paper: Any, row: Any) -> None:
    document = row.read(paper.data, name=paper.name)
    assert [len(page.lines) > 0 for page in document.pages] == [len(lines) > 0 for lines in paper.pages]
    for page, lines in zip(document.pages, paper.pages, strict=True):
        assert {word for line in lines for word in line.split()} <= set(" ".join(page.lines).split())


@pytest.fixture(scope="module")
def row() -> Iterator[Any]:
    with Documents(Bubblewrap()).many() as reading:
        yield reading


@confined
def test_p2_a_parser_can_open_nothing_and_call_nobody(program: Path, tmp_path: Path) -> None:
    """The same program without the sandbox gets each of them, so what holds it is the sandbox."""
    secret = tmp_path / "secret.txt"
    secret.write_text(SECRET, encoding="utf-8")
    for order in (
        f"open {secret}",
        "open /etc/passwd",
        "open /proc/self/status",
        f"list {tmp_path}",
        f"write {tmp_path}/new",
        "socket ",
    ):
        assert said(Bubblewrap(), program, order) in ("FileNotFoundError", "PermissionError", "OSError"), (
            order
        )
        assert said(Unconfined(), program, order).startswith("OUT"), order
    assert said(Bubblewrap(), program, "fork ") == "PermissionError"
    assert said(Bubblewrap(), program, "write /tmp/x") == "OSError"
    assert said(Bubblewrap(), program, "write /granted/x") == "OSError"


def below(pid: int) -> Iterator[Path]:
    """The processes below `pid`, as the kernel shows them."""
    for file in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in file.read_text().split():
            yield Path("/proc", child)
            yield from below(int(child))


@confined
def test_p2_the_kernel_says_that_a_parser_has_namespaces_of_its_own_and_a_filter(program: Path) -> None:
    """No call of the program shows whether there is a network behind a refused socket: its process does."""
    with Documents(Bubblewrap(), main=program).many() as row:
        row.read(RTF % b"say x", name="")
        parsers = [each for each in below(os.getpid()) if (each / "comm").read_text().startswith("python")]
        assert parsers
        for parser in parsers:  # that of the other tests, too
            for kind in ("net", "mnt", "pid", "ipc", "uts", "user"):
                assert (parser / "ns" / kind).readlink() != Path("/proc/self/ns", kind).readlink(), kind
            said = dict(re.findall(r"^(\w+):\t(\w+)$", (parser / "status").read_text(), re.MULTILINE))
            assert (said["Seccomp"], said["NoNewPrivs"], int(said["CapEff"], 16)) == ("2", "1", 0)
            limits = (parser / "limits").read_text()
            assert re.search(rf"^Max address space +{512 << 20} ", limits, re.MULTILINE)
            assert {fd.name for fd in (parser / "fd").iterdir()} == {"0", "1", "2", "3"}


@confined
def test_i5_a_parser_sees_its_own_code_and_no_other_package(program: Path) -> None:
    assert said(Bubblewrap(), program, "code ") == "['__main__.py', 'pypdf', 'runner']"
    assert said(Bubblewrap(), program, "list runner") == "OUT ['capability']"
    assert said(Bubblewrap(), program, "list runner/capability") == "OUT ['documents']"
    assert "AKAION_HOME" not in said(Bubblewrap(), program, "environment ")


@confined
def test_i5_packages_beside_the_standard_library_are_out_of_sight(program: Path) -> None:
    python = interpreter()
    for hidden in python.hidden:
        assert said(Bubblewrap(), program, f"list {hidden}") == "OUT []"
        assert said(Bubblewrap(), program, f"write {hidden}/x") == "OSError"


@pytest.mark.parametrize(
    ("order", "reason"),
    [
        pytest.param("memory", Reason.TOO_BIG, id="one great piece"),
        pytest.param("grow", Reason.TOO_BIG, id="piece after piece", marks=confined),
        pytest.param("spin", Reason.TOO_LONG, id="processor"),
        pytest.param("exit", Reason.BROKEN, id="exit"),
        pytest.param("crash", Reason.BROKEN, id="crash"),
        pytest.param("talk", Reason.TOO_BIG, id="a great answer"),
    ],
)
def test_a_program_that_goes_wrong_is_an_error_of_ours(order: str, reason: Reason, program: Path) -> None:
    talker, started = Bubblewrap() if NO_SANDBOX is None else Unconfined(), time.monotonic()
    with pytest.raises(ToolError) as caught:
        said(talker, program, order)
    assert str(caught.value) == why(reason)
    assert time.monotonic() - started < reader.WALL_S / 2, "it was the clock that ended it"


def test_a_program_that_does_nothing_is_ended(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "WALL_S", 3.0)
    with pytest.raises(ToolError) as caught:
        said(Bubblewrap() if NO_SANDBOX is None else Unconfined(), program, "sleep")
    assert str(caught.value) == why(Reason.TOO_LONG)


@confined
def test_many_files_share_a_program_until_one_fails(program: Path) -> None:
    """Another program has another moment at which it started."""

    def started(row: Any) -> str:
        return str(row.read(RTF % b"pid ", name="").pages[0].lines[0].split()[2])

    with Documents(Bubblewrap(), main=program).many() as row:
        first = started(row)
        assert started(row) == first
        with pytest.raises(ToolError):
            row.read(RTF % b"exit ", name="")
        second = started(row)
        assert second != first
        with pytest.raises(ToolError):
            row.read(b"solo testo", name="")  # needs no program, and ends none
        assert started(row) == second


def test_many_files_take_a_new_program_now_and_then(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "FILES_AT_ONCE", 2)
    starts: list[Job] = []

    class Counting(Unconfined):
        @contextmanager
        def talk(self, job: Job) -> Iterator[Talk]:
            starts.append(job)
            with super().talk(job) as talk:
                yield talk

    with Documents(Counting(), main=program).many() as row:
        for _ in range(5):
            row.read(RTF % b"say x", name="")
    assert len(starts) == 3


def test_p3_without_bubblewrap_nothing_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bubblewrap, "find_program", lambda _name: None)
    bubblewrap._bwrap.cache_clear()
    with pytest.raises(SandboxUnavailable, match="bubblewrap"):
        Documents(Bubblewrap()).read(plain_pdf(), name="a.pdf")
    bubblewrap._bwrap.cache_clear()


@pytest.mark.parametrize(
    "ends", ["import nothing_of_this_name", "raise SystemExit(0)", "import time; time.sleep(9)"]
)
def test_p3_a_program_that_does_not_start_is_no_broken_document(
    ends: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise every file of a practice would be called broken where only the machine is."""
    monkeypatch.setattr(reader, "WALL_S", 1.0)
    (tmp_path / "main.py").write_text(ends, encoding="utf-8")
    talker = Bubblewrap() if NO_SANDBOX is None else Unconfined()
    with pytest.raises(SandboxUnavailable, match="does not start"):
        Documents(talker, main=tmp_path / "main.py").read(plain_pdf(), name="a.pdf")


def test_p3_an_interpreter_that_cannot_be_shown_is_a_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "_HERE", Path("/nowhere"))
    with pytest.raises(ToolError, match="not installed whole"):
        Documents(Unconfined()).read(plain_pdf(), name="a.pdf")


def test_where_the_profile_says_so_the_same_program_runs_unconfined() -> None:
    document = Documents(Unconfined()).read(plain_pdf(), name="a.pdf")
    assert document.pages[0].lines[: len(LETTER)] == LETTER


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param({"error": SECRET}, id="an error of its own"),
        pytest.param({"error": "broken", "more": SECRET}, id="more than an error"),
        pytest.param({"kind": SECRET, "pages": [], "notes": {}}, id="a kind of its own"),
        pytest.param({"kind": "pdf", "pages": [["a\nb"]], "notes": {}}, id="two lines in one"),
        pytest.param({"kind": "pdf", "pages": [[7]], "notes": {}}, id="no text"),
        pytest.param({"kind": "pdf", "pages": [["\ud800"]], "notes": {}}, id="half a character"),
        pytest.param({"kind": "pdf", "pages": ["ab"], "notes": {}}, id="no lines"),
        pytest.param({"kind": "pdf", "pages": [], "notes": {SECRET: 1}}, id="a note of its own"),
        pytest.param({"kind": "pdf", "pages": [], "notes": {"macros": SECRET}}, id="a count of its own"),
        pytest.param({"kind": "pdf", "pages": []}, id="no notes"),
        pytest.param([], id="a list"),
        pytest.param(None, id="nothing"),
    ],
)
def test_i12_an_answer_that_is_none_is_not_believed_and_not_quoted(answer: Any) -> None:
    """A file that took the program over says what it likes; only lines of pages are its to say."""
    with pytest.raises(ToolError) as caught:
        reader._document(json.dumps(answer).encode())
    assert str(caught.value) == why(Reason.BROKEN)
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize("answer", [b"", b"{", b"\xff", b"[" * 100_000, b"9" * 10_000], ids=range(5))
def test_an_answer_that_is_no_json_is_a_broken_document(answer: bytes) -> None:
    with pytest.raises(ToolError) as caught:
        reader._document(answer)
    assert str(caught.value) == why(Reason.BROKEN)


def test_how_a_program_ended_is_told_apart() -> None:
    for ran, reason in (
        (Ran(status=137, output=b"", late=True), Reason.TOO_LONG),
        (Ran(status=152, output=b""), Reason.TOO_LONG),
        (Ran(status=137, output=b"", cut=True), Reason.TOO_BIG),
        (Ran(status=139, output=b""), Reason.BROKEN),
    ):
        with pytest.raises(ToolError) as caught:
            reader._document(ran)
        assert str(caught.value) == why(reason)


def test_every_reason_and_note_has_words() -> None:
    assert len({why(reason) for reason in Reason}) == len(Reason)
    assert len({noted(note, 3) for note in Note}) == len(Note)
    both = parse_answer({"kind": "pdf", "pages": [], "notes": {"signature": 1, "blank-pages": 2}})
    assert (len(both.notes), both.missing) == (2, (noted(Note.BLANK_PAGES, 2),)), "a signature hides no text"
    assert parse_answer({"kind": "pdf", "pages": [], "notes": {"macros": 2}}).notes == (
        noted(Note.MACROS, 2),
    )


def test_a_file_that_is_too_large_starts_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "FILE_BYTES", 100)
    monkeypatch.setattr(shutil, "which", lambda _name: None)
    with pytest.raises(ToolError, match="larger than 100 bytes"):
        Documents(Bubblewrap()).read(plain_pdf(), name="a.pdf")
