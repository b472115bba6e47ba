# SPDX-License-Identifier: Apache-2.0
"""I4: with a witness, even a holder of every key of the record cannot write it anew unnoticed.

A book is written, `akaion trace anchor` asks `akaion-witness` over HTTP and by files, and the verifier, alone
and with nothing installed, judges what came of it.
"""

import hashlib
import json
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from runner.adapters.cli.main import main
from runner.adapters.witness.judge import Witness
from runner.adapters.witness.main import main as witness_main
from runner.adapters.witness.memory import FolderMemory
from runner.adapters.witness.server import WitnessServer
from runner.capability.transport.clock import SystemClock, SystemEntropy
from runner.capability.transport.keys import FileSigner
from runner.capability.transport.logstore import FolderLogStore
from runner.capability.transport.salts import FileSaltStore
from runner.kernel.labels import DataClass
from runner.perimeter.trace import records as r
from runner.perimeter.trace.log import HeaderFacts, Trace
from runner.perimeter.trace.note import vkey
from runner.testing import header_words

VERIFIER = Path(__file__).resolve().parents[2] / "verify" / "akaion_verify.py"
FACTS = HeaderFacts(**header_words(book="studio/desk"))


class Office:
    """A home with a record, and a second machine's folder with a witness."""

    def __init__(self, root: Path) -> None:
        self.home, self.book, self.machine = root / "home", root / "home" / "trace", root / "machine"
        self.pin, self.key = root / "device.vkey", root / "w1.vkey"

    def open(self, **facts: Any) -> Trace:
        entropy = SystemEntropy()
        signer = FileSigner(self.home / "keys" / "device.key", book=self.book, entropy=entropy)
        self.pin.write_text(vkey(f"{FACTS.book}/device", signer.public_key) + "\n", encoding="ascii")
        return Trace.open(
            store=FolderLogStore(self.book, self.home / "heads" / "pin"),
            signer=signer,
            salts=FileSaltStore(self.home / "vault" / "salts", book=self.book),
            clock=SystemClock(),
            entropy=entropy,
            facts=replace(FACTS, **facts),
        )

    def write(self, tasks: int = 1) -> None:
        with self.open() as trace:
            for _ in range(tasks):
                task = trace.mint_id()
                start = r.TaskStart(goal_commit=trace.commit(b"goal"), data_class=DataClass.C1)
                trace.append(start, task=task)
                trace.append(r.TaskEnd(outcome="done"), task=task)

    def verify(self, *witnesses: Path) -> dict[str, Any]:
        options = [word for each in witnesses for word in ("--witness", each)]
        command = [sys.executable, "-I", "-S", VERIFIER, self.book, "--pin", self.pin, "--json", *options]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        report: dict[str, Any] = json.loads(done.stdout)
        return report


@pytest.fixture
def office(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Office:
    office = Office(tmp_path)
    monkeypatch.setenv("AKAION_HOME", str(office.home))
    office.write()
    assert witness_main(["init", str(office.machine), "--name", "witness.example/w1"]) == 0
    office.key.write_text(capsys.readouterr().out, encoding="ascii")
    assert main(["trace", "anchor", "--key"]) == 0
    assert witness_main(["trust", str(office.machine), capsys.readouterr().out.strip()]) == 0
    return office


@contextmanager
def serving(office: Office) -> Iterator[str]:
    with FolderMemory(office.machine / "books") as memory:
        signer = FileSigner(
            office.machine / "witness.key", book=office.machine / "books", entropy=SystemEntropy()
        )
        witness = Witness(name="witness.example/w1", signer=signer, memory=memory, clock=SystemClock())
        with WitnessServer(witness, "127.0.0.1", 0, lambda _: None) as server:
            thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
            thread.start()
            try:
                yield f"http://127.0.0.1:{server.server_address[1]}"
            finally:
                server.shutdown()
                thread.join()


def anchor(office: Office, *options: str) -> int:
    return main(["trace", "anchor", "--witness-key", str(office.key), *options])


def test_a_key_file_that_is_not_there_is_not_called_a_wrong_key(
    office: Office, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "400")
    office.key = office.key.with_name("no-such.vkey")
    assert anchor(office, "--witness", "http://127.0.0.1:9") == 2
    said = capsys.readouterr().err
    assert f"there is no file {office.key}" in said
    assert "holds no key" not in said


def test_i4_an_anchored_record_is_protected_up_to_the_anchor_and_says_so(office: Office) -> None:
    with serving(office) as url:
        assert anchor(office, "--witness", url) == 0
        report = office.verify(office.key)
        assert (report["verdict"], [each["kind"] for each in report["anchors"]]) == ("PASS", ["witness"])
        assert not any("holder of the device key" in claim for claim in report["claims_not_made"])
        office.write()
        report = office.verify(office.key)
        assert report["verdict"] == "PASS"
        assert sum("what follows the last anchor" in claim for claim in report["claims_not_made"]) == 1
        assert anchor(office, "--witness", url) == 0
        assert [each["log"] for each in office.verify(office.key)["anchors"]] == [0, 1]
    assert office.verify()["anchors"] == []


def test_i4_a_record_that_is_still_written_is_anchored_up_to_its_last_seal(office: Office) -> None:
    with serving(office) as url, office.open() as trace:
        trace.append(
            r.TaskStart(goal_commit=trace.commit(b"goal"), data_class=DataClass.C1), task=trace.mint_id()
        )
        assert anchor(office, "--witness", url) == 0
        trace.barrier()
        assert anchor(office, "--witness", url) == 0
    report = office.verify(office.key)
    assert (report["verdict"], [each["log"] for each in report["anchors"]]) == ("PASS", [1])


def test_i4_a_record_written_anew_with_every_key_is_not_cosigned_and_fails(
    office: Office, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whoever holds the device key, the anchor key and the whole machine, against one honest witness."""
    with serving(office) as url:
        assert anchor(office, "--witness", url) == 0
        kept = [(path.name, path.read_bytes()) for path in office.book.glob("*.witness")]
        shutil.rmtree(office.book)
        shutil.rmtree(office.home / "heads")
        office.write(tasks=3)
        assert office.verify()["verdict"] == "PASS"
        assert [each["code"] for each in office.verify(office.key)["reasons"]] == ["witness-silent"]
        capsys.readouterr()
        assert anchor(office, "--witness", url) == 1
        assert "the witness saw this book with other lines (422, I4)" in capsys.readouterr().err
        for name, data in kept:
            (office.book / name).write_bytes(data)
        assert [each["code"] for each in office.verify(office.key)["reasons"]] == ["witness-differs"]


def test_i4_a_shortened_record_is_not_cosigned(office: Office, capsys: pytest.CaptureFixture[str]) -> None:
    office.write()
    with serving(office) as url:
        assert anchor(office, "--witness", url) == 0
        for path in sorted(office.book.iterdir())[1:]:
            path.unlink()
        capsys.readouterr()
        assert anchor(office, "--witness", url) == 1
        assert "some are gone (I4)" in capsys.readouterr().err


def test_i4_an_altered_record_is_not_anchored(office: Office, capsys: pytest.CaptureFixture[str]) -> None:
    (log,) = office.book.glob("*.jsonl")
    log.write_bytes(log.read_bytes().replace(b'"outcome":"done"', b'"outcome":"fail"'))
    with serving(office) as url:
        assert anchor(office, "--witness", url) == 1
    assert "is altered or out of place" in capsys.readouterr().err


def test_i4_a_record_chained_anew_without_its_keys_is_not_anchored(
    office: Office, capsys: pytest.CaptureFixture[str]
) -> None:
    (log,) = office.book.glob("*.jsonl")
    lines = log.read_bytes().splitlines()
    lines[2] = lines[2].replace(b'"class":"C1"', b'"class":"C0"')
    for at in range(3, len(lines)):
        line = json.loads(lines[at])
        line["prev"] = hashlib.sha256(b"\0" + lines[at - 1]).hexdigest()
        lines[at] = json.dumps(line, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
    log.write_bytes(b"".join(line + b"\n" for line in lines))
    with serving(office) as url:
        assert anchor(office, "--witness", url) == 1
    assert "is altered or out of place" in capsys.readouterr().err


def test_a_witness_without_a_network_answers_by_files(
    office: Office, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    carried, back = tmp_path / "request.txt", tmp_path / "answer.txt"
    for _ in range(2):
        assert anchor(office, "--to-file", str(carried)) == 0
        capsys.readouterr()
        assert witness_main(["sign", str(office.machine), str(carried)]) == 0
        back.write_text(capsys.readouterr().out, encoding="utf-8")
        assert anchor(office, "--from-file", str(back)) == 0
        office.write()
    report = office.verify(office.key)
    assert (report["verdict"], [each["log"] for each in report["anchors"]]) == ("PASS", [0, 1])
    assert main(["trace", "anchor", "--to-file", str(carried)]) == 0
    capsys.readouterr()
    assert witness_main(["sign", str(office.machine), str(carried)]) == 1
    assert "make the request again with --old" in capsys.readouterr().err


def test_i12_what_leaves_for_a_witness_is_a_name_sizes_hashes_and_a_signature(
    office: Office, tmp_path: Path
) -> None:
    carried = tmp_path / "request.txt"
    assert anchor(office, "--to-file", str(carried)) == 0
    lines = carried.read_text(encoding="utf-8").split("\n")
    assert lines[:3] == ["old 0", "", "studio/desk"]
    assert lines[3].isdecimal()
    assert lines[6].startswith("\N{EM DASH} studio/desk ")
    assert (len(lines), lines[7:]) == (8, [""])


def test_i6_nothing_leaves_this_machine_for_a_witness_in_the_profile_detached(
    office: Office, capsys: pytest.CaptureFixture[str]
) -> None:
    assert anchor(office, "--witness", "https://witness.example") == 2
    assert "--to-file" in capsys.readouterr().err


def test_an_answer_of_another_witness_is_not_kept(
    office: Office, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "other"
    witness_main(["init", str(other), "--name", "witness.example/w2"])
    key = tmp_path / "w2.vkey"
    key.write_text(capsys.readouterr().out.splitlines()[-1] + "\n", encoding="ascii")
    with serving(office) as url:
        assert main(["trace", "anchor", "--witness", url, "--witness-key", str(key)]) == 1
    assert "no cosignature of this witness" in capsys.readouterr().err
    assert list(office.book.glob("*.witness")) == []


def test_a_witness_writes_its_own_pin_file_and_no_other_file_is_lost(office: Office) -> None:
    """What an auditor pins is made by a command, as the device's pin is."""
    pin = office.machine.parent / "exported.vkey"
    assert witness_main(["show", str(office.machine), "--export", str(pin)]) == 0
    assert pin.read_text("ascii") == office.key.read_text("ascii")
    assert witness_main(["show", str(office.machine), "--export", str(pin)]) == 0
    pin.write_text("another", encoding="ascii")
    assert witness_main(["show", str(office.machine), "--export", str(pin)]) == 1
    assert pin.read_text("ascii") == "another"


def test_a_witness_whose_key_is_gone_makes_no_other(
    office: Office, capsys: pytest.CaptureFixture[str]
) -> None:
    """Under its old name it would be a witness that nobody pinned."""
    (office.machine / "witness.key").unlink()
    assert witness_main(["show", str(office.machine)]) == 1
    assert "Fix: restore it" in capsys.readouterr().err
    assert not (office.machine / "witness.key").exists()
