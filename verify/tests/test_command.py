# SPDX-License-Identifier: Apache-2.0
"""The command as an auditor runs it: one file, `python3 -I -S`, an exit code for each verdict."""

from __future__ import annotations

import ast
import io
import json
import os
import shutil
import subprocess
import sys
import tokenize
from pathlib import Path

import akaion_verify as av
import bookbuilder as bb
import pytest
from bookbuilder import LogBuilder

HERE = Path(__file__).resolve().parent
FILE = HERE.parent / "akaion_verify.py"


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-I", "-S", str(FILE), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)


def test_a_good_book_passes_without_site_packages(folder: Path, pin: Path) -> None:
    LogBuilder().open().play(bb.story()).write(folder)
    done = run(folder, "--pin", pin, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    report = json.loads(done.stdout)
    assert (report["verdict"], report["exit"], report["reasons"]) == ("PASS", 0, [])
    members = "verdict exit reasons verified_through anchors custody enforcement localities host_tools "
    members += "verifiable logs entries egress claims_not_made"
    assert set(members.split()) <= report.keys()


@pytest.mark.parametrize("version", ["3.9", "3.10", "3.11", "3.12", "3.13", "3.14"])
def test_each_python_that_is_here_runs_it(version: str, folder: Path, pin: Path) -> None:
    """An auditor's machine may have any of these. Syntax alone would not show a function that is missing."""
    python = shutil.which(f"python{version}")
    if python is None or subprocess.run([python, "-c", ""], capture_output=True, check=False).returncode:
        pytest.skip(f"there is no Python {version} on this machine")
    log = LogBuilder().open().play(bb.story()).write(folder)
    for options, code in ((["--pin", pin], 0), ([], 3), (["--pin", pin, "--json"], 0)):
        command = [python, "-I", "-S", "-W", "error", str(FILE), str(folder), *map(str, options)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
        assert (done.returncode, done.stderr) == (code, "")
    proof = subprocess.run(
        [python, "-I", "-S", str(FILE), "prove", str(folder), "0", "12"], capture_output=True, check=True
    )
    (folder.parent / "proof.json").write_bytes(proof.stdout)
    check = [python, "-I", "-S", str(FILE), "check", str(folder.parent / "proof.json"), "--pin", str(pin)]
    assert subprocess.run(check, capture_output=True, check=False).returncode == 0
    assert len(log.lines) > 12


def test_people_read_the_verdict_first_and_what_it_does_not_claim_last(folder: Path, pin: Path) -> None:
    LogBuilder().open().play(bb.story()).write(folder)
    done = run(folder, "--pin", pin)
    lines = done.stdout.splitlines()
    assert lines[0] == "PASS (exit 0)"
    assert "Vouched for by: the pinned device key" in lines
    assert "Checked: logs 1, entries 38, seals 7" in lines
    assert any(
        line.startswith("Rules explained in: section 9 of contracts/trace/v1/README.md") for line in lines
    )
    assert lines[-1].startswith("  - not protected against a holder of the device key")
    assert done.stdout.isascii()


def test_each_verdict_has_its_exit_code(folder: Path, pin: Path) -> None:
    assert run(folder, "--pin", pin).returncode == 2
    log = LogBuilder().open().close().write(folder)
    assert run(folder).returncode == 3
    (folder / log.name).write_bytes(log.content() + b"\n")
    failed = run(folder, "--pin", pin)
    assert failed.returncode == 1
    assert "  FAIL: bad-json, log 0, seq 4: " in failed.stdout


def test_i7_a_pipe_as_a_pin_is_refused_and_holds_nobody(folder: Path, pin: Path) -> None:
    """A program that waits gives no verdict, and the auditor no reason."""
    LogBuilder().open().close().write(folder)
    pin.unlink()
    os.mkfifo(pin)
    done = run(folder, "--pin", pin)
    assert (done.returncode, done.stdout) == (64, "")
    assert f"argument --pin: cannot read {str(pin)!r}: not a regular file" in done.stderr


@pytest.mark.parametrize("arguments", [[], ["a", "b"], ["a", "--nonsense"], ["a", "--policy-digest", "xyz"]])
def test_wrong_usage_is_64(arguments: list[str]) -> None:
    done = run(*arguments)
    assert (done.returncode, done.stdout) == (64, "")


@pytest.mark.parametrize("option", ["--pin", "--policy", "--witness"])
def test_a_file_that_is_not_there_is_a_mistake_of_usage_and_accuses_nobody(
    option: str, folder: Path, pin: Path, tmp_path: Path
) -> None:
    """A slip of the keyboard must not read as a forged key: that verdict is about the book."""
    LogBuilder().open().close().write(folder)
    for name, problem in (("no-such.file", "No such file or directory"), (tmp_path, "not a regular file")):
        done = run(folder, "--pin", pin, option, name)
        assert (done.returncode, done.stdout) == (64, "")
        assert f"argument {option}: cannot read {str(name)!r}: {problem}" in done.stderr


@pytest.mark.parametrize("command", ["verify", "check", "compare"])
def test_a_second_pin_is_wrong_usage_whichever_is_first(command: str, folder: Path, pin: Path) -> None:
    """Else the last would count, and the answer hang on the order of two options."""
    LogBuilder().open().close().write(folder)
    other = folder.parent / "other.vkey"
    other.write_text(bb.vkey(bb.DEVICE_NAME, bb.public(bb.secret("another"))), encoding="ascii")
    operands = [folder, folder] if command == "compare" else [folder]
    for pins in ((pin, other), (other, pin)):
        done = run(command, *operands, "--pin", pins[0], f"--pin={pins[1]}")
        assert (done.returncode, done.stdout, "--pin may be given once" in done.stderr) == (64, "", True)


def test_a_second_state_is_wrong_usage_and_neither_is_written(folder: Path, pin: Path) -> None:
    LogBuilder().open().close().write(folder)
    states = [folder.parent / "one.state", folder.parent / "two.state"]
    done = run(folder, "--pin", pin, "--state", states[0], "--state", states[1])
    assert (done.returncode, "--state may be given once" in done.stderr) == (64, True)
    assert not any(state.exists() for state in states)


@pytest.mark.parametrize("command", ["check", "compare"])
def test_the_other_commands_name_a_pin_that_is_not_there_too(command: str, folder: Path) -> None:
    operands = [folder, folder] if command == "compare" else [folder]
    done = run(command, *operands, "--pin", "no-such.file")
    assert (done.returncode, done.stdout, "'no-such.file'" in done.stderr) == (64, "", True)


def code_lines(source: str) -> int:
    """Return how many lines hold code: no blank line, no comment, no docstring."""
    silent = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT}
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in silent and token.type != tokenize.ENDMARKER:
            lines |= set(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(source)):
        if (
            isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef))
            and ast.get_docstring(node) is not None
        ):
            said = node.body[0]
            lines -= set(range(said.lineno, (said.end_lineno or 0) + 1))
    return len(lines)


def test_the_whole_verifier_is_short_enough_to_be_read() -> None:
    """A stranger reads it in an evening: at most 1,500 lines of code, blanks, comments, docstrings aside."""
    assert code_lines('"""Said.\n\nMore."""\n\n# a note\nx = [\n    1,  # one\n]\n') == 3
    assert code_lines(FILE.read_text(encoding="utf-8")) <= 1500


def test_a_folder_that_is_not_there_is_said_in_the_first_line(folder: Path, pin: Path) -> None:
    done = run("no-such-folder", "--pin", pin)
    assert done.returncode == 2
    assert done.stdout.splitlines()[0] == "INCOMPLETE (exit 2): there is no folder 'no-such-folder'"
    folder.mkdir(exist_ok=True)
    assert run(folder, "--pin", pin).stdout.splitlines()[0] == "INCOMPLETE (exit 2)"


def test_another_policy_is_not_told_as_an_alteration(folder: Path, pin: Path) -> None:
    LogBuilder().open().close().write(folder)
    done = run(folder, "--pin", pin, "--policy-digest", bb.hex64("other"))
    assert done.returncode == 1
    said = "another policy was in force; that does not say the record was altered"
    assert f"FAIL: policy-differs, log 0, seq 0: S6: {said}" in done.stdout
    assert "Vouched for by: the pinned device key" in done.stdout.splitlines()


def test_an_alteration_is_vouched_for_by_nobody_whatever_the_policy(folder: Path, pin: Path) -> None:
    log = LogBuilder().open().close().write(folder)
    (folder / log.name).write_bytes(log.content() + b"\n")
    for options in ((), ("--policy-digest", bb.hex64("other"))):
        assert "Vouched for by: nobody: the pinned key does not" in run(folder, "--pin", pin, *options).stdout


def test_a_defect_of_the_verifier_is_a_failure(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*_arguments: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(av, "verify", broken)
    assert av.main([str(folder), "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["reasons"][0]["code"] == "verifier-fault"


def test_only_the_standard_library_is_imported_and_no_runner() -> None:
    tree = ast.parse(FILE.read_text(encoding="utf-8"), feature_version=(3, 9))
    imported = {name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names}
    imported |= {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert {name.split(".")[0] for name in imported} <= sys.stdlib_module_names
    tests = "".join(path.read_text(encoding="utf-8") for path in HERE.glob("*.py"))
    assert "import " + "runner" not in tests
    assert "from " + "runner" not in tests


def test_every_reason_is_explained_and_tested() -> None:
    tests = "".join(path.read_text(encoding="utf-8") for path in HERE.glob("test_*.py"))
    assert [code for code in av.REASONS if f'"{code}"' not in tests] == []
    source = FILE.read_text(encoding="utf-8")
    assert [code for code in av.REASONS if source.count(f'"{code}"') < 2] == []
    assert {verdict for verdict, _ in av.REASONS.values()} == av.EXIT_CODES.keys() - {"PASS"}


def test_the_contract_lists_every_reason_in_the_same_words() -> None:
    contract = HERE.parents[1] / "contracts" / "trace" / "v1" / "README.md"
    if not contract.is_file():
        pytest.skip("the contract is not beside this checkout")
    listed = [line for line in contract.read_text(encoding="utf-8").splitlines() if line.startswith("- `")]
    assert {f"- `{code}`: {meaning}" for code, (_, meaning) in av.REASONS.items()} <= set(listed)
