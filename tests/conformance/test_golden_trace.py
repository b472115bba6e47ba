# SPDX-License-Identifier: Apache-2.0
"""The golden books of `akaion-trace/1`: the writer still makes these bytes, and the verifier judges them.

I4: no byte of a closed log can be replaced. Writer and verifier meet here only, through files.
"""

import hmac
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import akaion_verify
import jsonschema
import pytest

import runner
from runner.kernel.labels import DataClass
from runner.perimeter.trace import records
from runner.perimeter.trace.log import HeaderFacts, Trace
from runner.perimeter.trace.note import vkey
from runner.perimeter.trace.records import Record
from runner.testing import (
    FixedEntropy,
    FrozenClock,
    MemoryLogStore,
    MemorySaltStore,
    MemorySigner,
    header_words,
)

ROOT = Path(__file__).resolve().parents[2]
CONTRACT = ROOT / "contracts" / "trace" / "v1"
GOLDEN = CONTRACT / "golden"
VERIFIER = ROOT / "verify" / "akaion_verify.py"
VERDICTS: dict[str, str] = json.loads((GOLDEN / "verdicts.json").read_text())
EXIT_CODES = {"PASS": 0, "INCOMPLETE": 2, "UNTRUSTED": 3}
STUDIO = sorted((GOLDEN / "studio").iterdir())


def files_under(folder: Path) -> dict[str, bytes]:
    found = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in found}


def golden_records() -> list[dict[str, Any]]:
    """Every whole line of every golden log."""
    logs = [data for name, data in files_under(GOLDEN).items() if name.endswith(".jsonl")]
    return [json.loads(line) for data in logs for line in data.split(b"\n")[:-1]]


def write_small_book(folder: Path) -> tuple[Path, Path]:
    """Write a book of one small closed log; return its pin and the log."""
    store, signer = MemoryLogStore(), MemorySigner()
    facts = HeaderFacts(**header_words(book="small"))
    with Trace.open(
        store=store,
        signer=signer,
        salts=MemorySaltStore(),
        clock=FrozenClock(),
        entropy=FixedEntropy(),
        facts=facts,
    ) as trace:
        task = trace.mint_id()
        start = records.TaskStart(goal_commit=trace.commit(b"goal"), data_class=DataClass.C1)
        trace.append(start, task=task)
        trace.append(records.TaskEnd(outcome="done"), task=task)
    ((name, log),) = store.files.items()
    (folder / "book").mkdir()
    (folder / "book" / name).write_bytes(log.data)
    (folder / "pin").write_text(vkey("small/device", signer.public_key))
    return folder / "pin", folder / "book" / name


def verdict_of(book: Path, *options: str) -> tuple[int, str]:
    """Run the verifier as an auditor would: a bare interpreter and one file."""
    command = [sys.executable, "-I", "-S", str(VERIFIER), str(book), *options]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.stderr == ""
    return ran.returncode, ran.stdout.split()[0]


def test_the_script_makes_the_golden_bytes_again(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(Path(runner.__file__).parents[1])}
    script = ROOT / "scripts" / "golden_trace.py"
    subprocess.run([sys.executable, str(script), str(tmp_path)], check=True, env=environment)
    expected = {name: data for name, data in files_under(GOLDEN).items() if name != "README.md"}
    assert files_under(tmp_path) == expected


@pytest.mark.parametrize(("book", "verdict"), VERDICTS.items())
def test_i4_the_verifier_answers_as_stated(book: str, verdict: str) -> None:
    pin = str(GOLDEN / f"{book}.pin")
    assert verdict_of(GOLDEN / book, "--pin", pin) == (EXIT_CODES[verdict], verdict)


def test_i4_without_a_pin_nothing_is_trusted() -> None:
    assert verdict_of(GOLDEN / "studio") == (3, "UNTRUSTED")
    other = str(GOLDEN / "interrupted.pin")
    assert verdict_of(GOLDEN / "studio", "--pin", other)[0] in {1, 3}


def test_the_golden_books_hold_every_kind_of_record() -> None:
    found = {record["kind"] for record in golden_records()}
    assert found == {kind.kind for kind in Record.__subclasses__()} | {"seal"}


def test_every_golden_record_has_the_shape_of_the_schema() -> None:
    schema = json.loads((CONTRACT / "records.schema.json").read_text())
    judge = jsonschema.Draft202012Validator(schema)
    assert [record["seq"] for record in golden_records() if not judge.is_valid(record)] == []
    assert not judge.is_valid({**golden_records()[0], "kind": "unknown"})


def test_every_record_class_is_a_row_of_the_contract() -> None:
    rows = re.findall(
        r"^\| (`[a-z_`, ]+`) \| (must|may|no) \|", (CONTRACT / "README.md").read_text(), re.MULTILINE
    )
    stated = {kind: task for kinds, task in rows for kind in re.findall(r"`([a-z_]+)`", kinds)}
    assert {kind.kind: kind.TASK for kind in Record.__subclasses__()} == stated


def test_i12_a_salt_and_the_payload_open_a_commitment() -> None:
    goals = [record["body"]["goal_commit"] for record in golden_records() if record["kind"] == "task_start"]
    salts = dict(line.split() for line in (GOLDEN / "studio.salts").read_text().splitlines())
    payload = b"akaion-commit/1\0Which hearings are due this week?"
    assert [
        hmac.digest(bytes.fromhex(salts[c]), payload, "sha256").hex() == c for c in goals if c in salts
    ] == [
        True,
        False,
    ]


def test_i12_no_payload_of_the_story_is_in_the_books() -> None:
    logs = b"".join(data for name, data in files_under(GOLDEN).items() if name.endswith(".jsonl"))
    for payload in (b"hearings", b"scadenze", b"rm_everything", b"anna", b"www.example", b"127.0.0.1"):
        assert payload not in logs


@pytest.mark.slow
def test_i4_no_byte_of_a_closed_log_can_be_replaced(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pin, closed = write_small_book(tmp_path)
    verify, good, refused = akaion_verify.verify, closed.read_bytes(), 0
    assert verify(closed.parent, pin)["verdict"] == "PASS"
    for position, byte in enumerate(good):
        closed.write_bytes(good[:position] + bytes([byte ^ 1]) + good[position + 1 :])
        refused += verify(closed.parent, pin)["verdict"] in {"FAIL", "INCOMPLETE"}
    with capsys.disabled():
        sys.stdout.write(f"\nsingle-byte substitutions refused: {refused}/{len(good)}\n")
    assert refused == len(good)


def test_the_classes_of_the_contract_are_those_of_the_runner() -> None:
    assert [data_class.name for data_class in DataClass] == ["C0", "C1", "C2", "C3"]
    assert records.FORMAT == "akaion-trace/1"
