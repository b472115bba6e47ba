# SPDX-License-Identifier: Apache-2.0
"""I5: whoever works behind the perimeter does not find the credential of the remote backend.

A process opens a runtime with a credential, uses it, and then hunts it: as a host tool that is handed a call,
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

from runner.testing import Redirect, ScriptedServer, ServerError

ROOT: Final = Path(__file__).resolve().parents[2]
LETTERS: Final = "qwertzuiopasdfghjklyxcvb"
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
    """What one process found, what two servers got, and the folder it worked in."""

    found: dict[str, Any]
    token: str
    received: list[bytes]
    elsewhere: list[bytes]
    folder: Path

    @property
    def places(self) -> dict[str, bool]:
        """What was found where, the limits left out."""
        names = {name for name in self.found if not name.startswith("LIMIT") and not name.isupper()}
        return {name: self.found[name] for name in names if self.found[name] is not None}


def hunt(folder: Path, kind: str, *, plant: bool = False) -> Hunted:
    """Return what a hunt finds, for words that no other test on this machine looks for at the same time."""
    word = f"hunted{os.getpid()}{kind}{plant:d}"
    token, planted = f"{word}-{LETTERS}", f"{word}-{LETTERS[::-1]}" if plant else None
    for name in ("files", "keys"):
        (folder / name).mkdir(mode=0o700)
    (folder / "files" / "a.txt").write_text(f"nothing {planted}\n", encoding="utf-8")
    variables = {**os.environ, "AKAION_HOME": str(folder / "home"), "PYTHONPATH": str(ROOT / "src")}
    variables |= {} if planted is None else {"PLANTED": planted}
    reference = "env:TOKEN_OF_THE_MODEL"
    if kind == "file":
        reference = f"file:{folder / 'keys' / 'token'}"
        (folder / "keys" / "token").write_text(token, encoding="ascii")
        (folder / "keys" / "token").chmod(0o600)
    else:
        variables["TOKEN_OF_THE_MODEL"] = token
    with ScriptedServer() as other:
        errors = (ServerError(status=401, message="who are you?"), ServerError(status=500, message="no"))
        with (
            ScriptedServer(replies=["fine", Redirect(location=other.url), *errors]) as server,
            (folder / "files" / "a.txt").open("rb") as opened,
        ):
            done = subprocess.run(
                [
                    sys.executable,
                    str(ROOT / "tests/batteries/hunt.py"),
                    str(folder),
                    server.url,
                    reference,
                    word,
                ]
                + ([] if planted is None else [planted]),
                env=variables,
                pass_fds=[] if planted is None else [opened.fileno()],
                capture_output=True,
                text=True,
                check=False,
            )
        assert done.returncode == 0, done.stderr
        assert token not in done.stderr
        return Hunted(
            found=json.loads(done.stdout),
            token=token,
            received=server.received,
            elsewhere=other.received,
            folder=folder,
        )


@pytest.fixture(scope="module", params=["env", "file"])
def hunted(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Hunted:
    return hunt(tmp_path_factory.mktemp("hunted"), request.param)


def test_i5_nobody_behind_the_perimeter_finds_the_credential(hunted: Hunted) -> None:
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


def test_i5_it_is_in_no_file_that_was_written(hunted: Hunted) -> None:
    own = {
        hunted.folder / "keys" / "token",
        hunted.folder / "files" / "hard",
        hunted.folder / "files" / "link",
    }
    written = [path for path in hunted.folder.rglob("*") if path.is_file() and path not in own]
    assert any(path.suffix == ".jsonl" for path in written), "the record, too"
    assert [path for path in written if hunted.token.encode() in path.read_bytes()] == []


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
