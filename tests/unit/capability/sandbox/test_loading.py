# SPDX-License-Identifier: Apache-2.0
"""P2: a program is shown with its loader and libraries, and what is no program is not started."""

import shutil
import struct
import sys
from pathlib import Path

import pytest

from runner.capability.sandbox.loading import find_program, needs_of
from runner.kernel.errors import SandboxUnavailable

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="programs are confined on Linux only")


def test_a_program_needs_itself_its_loader_and_its_c_library() -> None:
    program = find_program("cat")
    assert program is not None
    needs = needs_of(program)
    assert needs[0] == str(program)
    assert any("ld-" in Path(each).name for each in needs)
    assert any(Path(each).name.startswith("libc.") for each in needs)
    assert all(Path(each).is_file() for each in needs)


def test_p2_a_program_is_found_where_the_system_keeps_it_and_not_by_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "akaion-made-up").write_text("#!/bin/sh\n", encoding="utf-8")
    (tmp_path / "akaion-made-up").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert shutil.which("akaion-made-up") is not None
    assert find_program("akaion-made-up") is None
    assert find_program("cat") is not None


HEAD = b"\x7fELF\x02\x01" + bytes(58)
TABLE = struct.pack("<32xQ14xHH6x", 64, 56, 1)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"#!/bin/sh\necho\n", "no plain program"),
        (b"", "no plain program"),
        (b"\x7fELF\x01\x01" + bytes(58), "no plain program"),
        (b"\x7fELF\x02\x02" + bytes(58), "no plain program"),
    ],
    ids=["a script", "nothing", "32 bits", "the other order"],
)
def test_p3_what_is_no_program_of_this_machine_is_not_started(
    tmp_path: Path, content: bytes, reason: str
) -> None:
    path = tmp_path / "program"
    path.write_bytes(content)
    with pytest.raises(SandboxUnavailable, match=reason):
        needs_of(path)


def test_p3_a_program_whose_loader_lists_nothing_is_not_started(tmp_path: Path) -> None:
    path = tmp_path / "program"
    loader = b"/bin/false\0"
    segment = struct.pack("<IIQQQQQQ", 3, 4, 120, 0, 0, len(loader), len(loader), 1)
    path.write_bytes(HEAD[:6] + TABLE[6:] + segment + loader)
    with pytest.raises(SandboxUnavailable, match="cannot be listed"):
        needs_of(path)


def test_a_program_without_a_loader_needs_itself_only(tmp_path: Path) -> None:
    path = tmp_path / "program"
    path.write_bytes(HEAD)
    assert needs_of(path) == (str(path),)


def test_p3_a_program_that_is_gone_is_not_started(tmp_path: Path) -> None:
    with pytest.raises(SandboxUnavailable, match="not installed"):
        needs_of(tmp_path / "none")
