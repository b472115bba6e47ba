# SPDX-License-Identifier: Apache-2.0
"""I5: whoever works behind the perimeter finds no credential, neither of the remote backend nor of pages.

A process opens a runtime with both, uses them, and then hunts them: as a host tool that is handed a call,
by each shipped tool, as a program in the sandbox, in what is logged, raised, asked, answered and written. The
same process with something planted in each place finds it there. What does find the credential needs Python
of its own in the process of the runtime, or the user's own rights on the file: these are named limits.
"""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest
from pages import Authority, PageServer, page, redirect

from runner.testing import Redirect, ScriptedServer, ServerError

ROOT: Final = Path(__file__).resolve().parents[2]
LETTERS: Final = "qwertzuiopasdfghjklyxcvb"
OTHERS: Final = "mnbvcxylkjhgfdsapoiuztre"
AUTHORITY: Final = Authority()
LIMITS: Final = {
    "LIMIT frames",
    "LIMIT garbage collector",
    "LIMIT memory",
    "LIMIT open()",
    "LIMIT a second name, by a program",
}
"""What finds it: Python in the process (ADR 0005), and a file that whoever owns it linked into a grant."""
IN_FILES_ONLY: Final = {"LIMIT open()", "LIMIT a second name, by a program"}
NEVER_PLANTED: Final = {"what the shipped tools reach", *IN_FILES_ONLY}


@dataclass(frozen=True, kw_only=True)
class Hunted:
    """What one process found, what three servers got, and the folder it worked in."""

    found: dict[str, Any]
    token: str
    of_pages: str
    received: list[bytes]
    elsewhere: list[bytes]
    asked: list[bytes]
    folder: Path

    @property
    def places(self) -> dict[str, bool]:
        """What was found where, the limits left out."""
        names = {name for name in self.found if not name.startswith("LIMIT") and not name.isupper()}
        return {name: self.found[name] for name in names if self.found[name] is not None}


def hunt(folder: Path, kind: str, *, plant: bool = False) -> Hunted:
    """Return what a hunt finds, for words that no other test on this machine looks for at the same time."""
    word = f"hunted{os.getpid()}{kind}{plant:d}"
    token, of_pages = f"{word}-{LETTERS}", f"{word}-{OTHERS}"
    planted = f"{word}-{LETTERS[::-1]}" if plant else None
    for name in ("files", "keys"):
        (folder / name).mkdir(mode=0o700)
    (folder / "files" / "a.txt").write_text(f"nothing {planted}\n", encoding="utf-8")
    (folder / "authority.pem").write_text(AUTHORITY.pem, encoding="ascii")
    variables = {**os.environ, "AKAION_HOME": str(folder / "home"), "PYTHONPATH": str(ROOT / "src")}
    variables |= {} if planted is None else {"PLANTED": planted}
    references = {"token": "env:TOKEN_OF_THE_MODEL", "pages": "env:TOKEN_OF_PAGES"}
    for name, secret in (("token", token), ("pages", of_pages)):
        file = folder / "keys" / name
        if kind == "file":
            references[name] = f"file:{file}"
            file.write_text(secret, encoding="ascii")
            file.chmod(0o600)
        else:
            variables[references[name].removeprefix("env:")] = secret
    with ScriptedServer() as other, PageServer(AUTHORITY.server("a.example", "b.example"), {}) as pages:
        pages.pages.update(answers(of_pages, f"https://b.example:{pages.port}"))
        errors = (ServerError(status=401, message="who are you?"), ServerError(status=500, message="no"))
        with (
            ScriptedServer(replies=["fine", Redirect(location=other.url), *errors]) as server,
            (folder / "files" / "a.txt").open("rb") as opened,
        ):
            told = [str(folder), server.url, references["token"], word, str(pages.port), references["pages"]]
            done = subprocess.run(
                [sys.executable, str(ROOT / "tests/batteries/hunt.py"), *told]
                + ([] if planted is None else [planted]),
                env=variables,
                pass_fds=[] if planted is None else [opened.fileno()],
                capture_output=True,
                text=True,
                check=False,
            )
        assert done.returncode == 0, done.stderr
        assert not [each for each in (token, of_pages) if each in done.stderr]
        return Hunted(
            found=json.loads(done.stdout),
            token=token,
            of_pages=of_pages,
            received=server.received,
            elsewhere=other.received,
            asked=pages.received,
            folder=folder,
        )


def answers(token: str, other: str) -> dict[str, bytes]:
    """Return what the host of pages answers, which says its credential wherever it can."""
    said = [("WWW-Authenticate", f"Bearer {token}")]
    return {
        "/hello": page("<p>hello", headers=said),
        "/echo": page(f"<p>you sent Bearer {token}"),
        "/error": page(token, status="401 Unauthorized", headers=said),
        "/away": redirect(f"{other}/hello"),
        "/carried": redirect(f"{other}/hello?t={token}"),
    }


@pytest.fixture(scope="module", params=["env", "file"])
def hunted(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Hunted:
    return hunt(tmp_path_factory.mktemp("hunted"), request.param)


def test_i5_nobody_behind_the_perimeter_finds_a_credential(hunted: Hunted) -> None:
    assert {name for name, found in hunted.places.items() if found} == set()
    assert hunted.found["ASKED"] > 0


def test_i5_it_was_used_and_went_to_its_server_only(hunted: Hunted) -> None:
    """So there was something to find: a redirect to another host takes it nowhere."""
    assert hunted.found["REPLIES"] == ["answered", *["raised"] * 4]
    assert len(hunted.received) == 5
    token = hunted.token.encode()
    assert all(b"\r\nAuthorization: Bearer " + token in raw for raw in hunted.received)
    assert all(raw.count(token) == 1 for raw in hunted.received)
    assert hunted.elsewhere == []


def test_i5_that_of_pages_was_used_and_went_to_its_host_only(hunted: Hunted) -> None:
    ends = ["ok", "credential-in-page", "error", "ok", "credential-in-address", "error"]
    assert hunted.found["PAGES"] == ends
    own, others = (
        [raw for raw in hunted.asked if f"\r\nHost: {host}.example:".encode() in raw] for host in "ab"
    )
    token = hunted.of_pages.encode()
    assert (len(own), len(others), len(hunted.asked)) == (6, 1, 7)
    assert all(b"\r\nAuthorization: Bearer " + token in raw and raw.count(token) == 1 for raw in own)
    assert not [raw for raw in (*others, *hunted.received, *hunted.elsewhere) if token in raw]
    assert not [raw for raw in hunted.asked if hunted.token.encode() in raw]


def test_i5_neither_is_in_any_file_that_was_written(hunted: Hunted) -> None:
    own = {
        hunted.folder / "keys" / "token",
        hunted.folder / "keys" / "pages",
        hunted.folder / "files" / "hard",
        hunted.folder / "files" / "link",
    }
    written = [path for path in hunted.folder.rglob("*") if path.is_file() and path not in own]
    assert any(path.suffix == ".jsonl" for path in written), "the record, too"
    for token in (hunted.token, hunted.of_pages):
        assert [path for path in written if token.encode() in path.read_bytes()] == []


def test_the_limits_are_these_and_each_is_real(hunted: Hunted) -> None:
    """One that is gone leaves the list, and the page that names it (ADR 0005)."""
    limits = {name: found for name, found in hunted.found.items() if name.startswith("LIMIT")}
    if (hunted.folder / "keys" / "token").exists():
        sandboxed = hunted.found["a program in the sandbox"] is not None
        expected = LIMITS if sandboxed else LIMITS - {"LIMIT a second name, by a program"}
    else:
        expected = LIMITS - IN_FILES_ONLY
    assert {name for name, found in limits.items() if found} == expected


def test_each_hunt_finds_what_is_planted_where_it_looks(tmp_path: Path) -> None:
    """No place is empty because nobody looked."""
    planted = hunt(tmp_path, "env", plant=True).places
    assert {name for name, found in planted.items() if not found} == NEVER_PLANTED - IN_FILES_ONLY
