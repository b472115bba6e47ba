# SPDX-License-Identifier: Apache-2.0
"""One line shown without its log, and two books held side by side (I4)."""

from __future__ import annotations

import base64
import copy
import json
from pathlib import Path
from typing import Any

import akaion_verify as av
import bookbuilder as bb
import pytest
from bookbuilder import LogBuilder, Story
from hypothesis import given
from hypothesis import strategies as st

KEY = av.parse_vkey(bb.DEVICE_VKEY)
VECTORS = Path(__file__).resolve().parents[2].parent / "shared" / "vectors" / "merkle" / "rfc6962_proofs.json"
LEAVES = [bb.leaf(str(number).encode()) for number in range(64)]


@given(st.integers(1, 64), st.data())
def test_a_path_leads_from_its_leaf_to_the_root_and_from_no_other(size: int, data: st.DataObject) -> None:
    """RFC 6962: every leaf of every size; another leaf, place or size leads elsewhere."""
    index = data.draw(st.integers(0, size - 1))
    path = av.inclusion_path(LEAVES[:size], index)
    root = bb.merkle_root(LEAVES[:size])
    assert av.climb(LEAVES[index], index, size, path) == root
    other = data.draw(st.integers(0, size - 1).filter(lambda at: at != index) if size > 1 else st.just(-1))
    if other >= 0:
        assert av.climb(LEAVES[other], index, size, path) != root
        assert av.climb(LEAVES[index], other, size, path) != root
    assert av.climb(LEAVES[index], index, size, [*path, LEAVES[0]]) is None
    if path:
        assert av.climb(LEAVES[index], index, size, path[:-1]) != root


def test_public_inclusion_proofs_are_judged_as_they_say() -> None:
    if not VECTORS.exists():
        pytest.skip("public vectors are not beside this checkout")
    held = json.loads(VECTORS.read_text(encoding="utf-8")).items()
    cases = {name: case for name, case in held if name.startswith("inclusion/")}
    wrong = [name for name, case in cases.items() if _leads_to_its_root(case) == case["wantErr"]]
    assert (len(cases), wrong) == (98, [])


def _leads_to_its_root(case: dict[str, Any]) -> bool:
    path = [base64.b64decode(each) for each in case["proof"] or []]
    leaf, root = (base64.b64decode(case[name] or "") for name in ("leafHash", "root"))
    index, size = case["leafIdx"], case["treeSize"]
    if len(leaf) != len(LEAVES[0]):
        return False  # the verifier hashes the line itself
    return 0 <= index < size and av.climb(leaf, index, size, path) == root


@pytest.fixture
def log(folder: Path) -> LogBuilder:
    log = LogBuilder().open().play(bb.story())
    log.write(folder)
    return log


def test_every_line_that_a_seal_covers_is_proved_and_the_proof_shows_it(
    folder: Path, log: LogBuilder
) -> None:
    for seq in range(len(log.lines) - 1):
        proof = av.prove(folder, 0, seq)
        shown = av.check_proof(json.loads(json.dumps(proof)), KEY)
        assert shown == (json.loads(log.lines[seq]), None, None)


def test_there_is_no_proof_of_what_no_seal_covers(folder: Path, log: LogBuilder) -> None:
    last = len(log.lines) - 1
    assert [av.prove(folder, *place) for place in ((0, last), (0, last + 1), (0, -1), (1, 0))] == [None] * 4


def broken(proof: dict[str, str], other: dict[str, str]) -> list[tuple[str, dict[str, str]]]:
    """Return the proof in many wrong forms."""
    forms: list[tuple[str, dict[str, str]]] = [
        (f"{name} of another", {**proof, name: other[name]}) for name in ("line", "proof")
    ]
    for name, held in proof.items():
        forms.append((f"without {name}", {key: other for key, other in proof.items() if key != name}))
        for at in (0, len(held) // 2, len(held) - 1):
            text = held[:at] + chr(ord(held[at]) ^ 1) + held[at + 1 :]
            forms.append((f"{name} changed at {at}", {**proof, name: text}))
    moved = proof["proof"].replace("index 12", "index 13")
    forms.append(("another index", {**proof, "proof": moved}))
    return forms


@pytest.mark.usefixtures("log")
def test_no_changed_proof_holds(folder: Path) -> None:
    proof, other = av.prove(folder, 0, 12), av.prove(folder, 0, 20)
    assert proof is not None
    assert other is not None
    held = []
    for name, form in broken(proof, other):
        try:
            av.check_proof(copy.deepcopy(form), KEY)
        except av.Fault:
            continue
        held.append(name)
    assert held == []


@given(st.recursive(st.none() | st.integers() | st.text(), lambda inner: st.dictionaries(st.text(), inner)))
def test_any_document_gives_an_answer(document: object) -> None:
    with pytest.raises(av.Fault):
        av.check_proof(document, KEY)


@given(st.dictionaries(st.sampled_from(["header", "certificate", "line", "proof"]), st.text(), min_size=4))
def test_any_texts_give_an_answer(members: dict[str, str]) -> None:
    with pytest.raises(av.Fault):
        av.check_proof({"format": "akaion-proof/1", **members}, KEY)


def run(*arguments: object) -> int:
    return av.main([str(argument) for argument in arguments])


def test_the_commands_prove_and_check(
    folder: Path, log: LogBuilder, pin: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("prove", folder, 0, 12) == 0
    proof = tmp_path / "proof.json"
    proof.write_text(capsys.readouterr().out, encoding="utf-8")
    assert run("check", proof, "--pin", pin) == 0
    assert capsys.readouterr().out.startswith("INCLUDED (exit 0)\n")
    assert run("check", proof, "--json") == 3
    report = json.loads(capsys.readouterr().out)
    assert (report["verdict"], report["reasons"]) == ("UNTRUSTED", ["no-pin"])
    assert report["record"] == json.loads(log.lines[12])
    other = tmp_path / "other.vkey"
    other.write_text(bb.vkey(bb.DEVICE_NAME, bb.public(bb.secret("another"))), encoding="ascii")
    assert run("check", proof, "--pin", other) == 3
    assert "key-not-pinned" in capsys.readouterr().out
    proof.write_text(proof.read_text(encoding="utf-8").replace("index 12", "index 13"), encoding="utf-8")
    assert run("check", proof, "--pin", pin) == 1
    assert "proof-malformed" in capsys.readouterr().out
    assert run("prove", folder, 7, 12) == 2
    assert run("check", tmp_path / "nothing", "--pin", pin) == 1


# --- two books -------------------------------------------------------------------------------------


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    copy_of = tmp_path / "copy"
    copy_of.mkdir()
    return copy_of


def test_two_copies_are_the_same(folder: Path, log: LogBuilder, copied: Path) -> None:
    log.write(copied)
    assert av.compare(folder, copied, vouched=True) == ("same", None)


def test_a_longer_copy_continues_the_other(folder: Path, log: LogBuilder, copied: Path) -> None:
    log.write(copied)
    log.next().open().close().write(copied)
    assert av.compare(folder, copied, vouched=True) == ("continues", None)
    assert av.compare(copied, folder, vouched=True) == ("continues", None)


@pytest.mark.usefixtures("log")
def test_two_sealed_stories_of_one_log_are_a_fork_and_a_failure(
    folder: Path, copied: Path, pin: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each passes by itself: only side by side do they prove that the writer is not honest."""
    story = Story()
    story.change("b1", commit=bb.hex64("another content"))
    LogBuilder().open().play(story).write(copied)
    assert [av.verify(each, pin)["verdict"] for each in (folder, copied)] == ["PASS", "PASS"]
    assert av.compare(folder, copied, vouched=True) == ("forked", (0, story.seq("b1")))
    assert run("compare", folder, copied, "--pin", pin) == 1
    assert capsys.readouterr().out.startswith("FAIL (exit 1)\nforked: ")
    assert run("compare", folder, copied, "--pin", pin, "--json") == 1
    assert json.loads(capsys.readouterr().out)["parts_at"] == [0, story.seq("b1")]


def other_next(log: LogBuilder, *steps: bb.Step) -> LogBuilder:
    """Another log after `log`: of another id, certified by the same device."""

    class Other(LogBuilder):
        log_id = bb.hex32("another log")  # type: ignore[assignment]
        key = bb.secret("another log key")  # type: ignore[assignment]

    return Other(number=log.number + 1, prev_log=log.as_prev()).open().play(list(steps)).close()


def test_two_different_logs_after_the_same_one_are_a_fork(
    folder: Path, log: LogBuilder, copied: Path, pin: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Logs 0 and 1 are the same bytes, and each log 2 says that it follows them."""
    second = log.next().open().close()
    for book in (folder, copied):
        log.write(book)
        second.write(book)
    second.next().open().close().write(folder)
    other_next(second).write(copied)
    assert [av.verify(each, pin)["verdict"] for each in (folder, copied)] == ["PASS", "PASS"]
    assert run("compare", folder, copied, "--pin", pin) == 1
    assert "forked: " in capsys.readouterr().out
    assert av.compare(folder, copied, vouched=True) == ("forked", (2, 0))
    assert av.compare(folder, copied, vouched=False) == ("differs", (2, 0))
    for book in (folder, copied):  # without the log before them, their headers name it
        for shared in (log, second):
            (book / shared.name).unlink()
    assert av.compare(folder, copied, vouched=True) == ("forked", (2, 0))


def test_another_log_that_was_never_sealed_is_no_fork(folder: Path, log: LogBuilder, copied: Path) -> None:
    """No key is needed to write a header."""
    log.write(copied)
    log.next().open().close().write(folder)
    other = other_next(log)
    other.lines = other.lines[:1]
    other.write(copied)
    assert av.compare(folder, copied, vouched=True) == ("differs", (1, 0))


def test_a_log_that_went_on_where_the_next_one_says_it_ended_is_a_fork(folder: Path, copied: Path) -> None:
    story = Story()
    long = LogBuilder().open().play(story[: story.at("seal4") + 1]).write(folder)
    short = LogBuilder().open().play(story[: story.at("seal2") + 1]).write(copied)
    short.next().open().play([short.recovery(), bb.Step("s", "seal")]).close().write(copied)
    assert av.compare(folder, copied, vouched=True) == ("forked", (0, len(short.lines)))
    long.lines = [
        *short.lines,
        *LogBuilder().open().play(story[: story.at("seal4")]).lines[len(short.lines) :][:1],
    ]
    long.write(folder)  # that line has no seal: it may be anybody's
    assert av.compare(folder, copied, vouched=True) == ("differs", (0, len(short.lines)))


def test_one_continues_the_other_only_if_it_has_all_of_it(
    folder: Path, log: LogBuilder, copied: Path, capsys: pytest.CaptureFixture[str], pin: Path
) -> None:
    second = log.next().open().close()
    third = second.next().open().close().write(copied)
    assert av.compare(folder, copied, vouched=True) == ("disjoint", None)
    assert run("compare", folder, copied, "--pin", pin) == 5  # what the second says of itself
    assert "disjoint: " in capsys.readouterr().out
    second.write(copied)
    assert av.compare(folder, copied, vouched=True) == ("disjoint", None)
    second.write(folder)
    assert av.compare(folder, copied, vouched=True) == ("overlaps", None)
    third.write(folder)
    assert av.compare(folder, copied, vouched=True) == ("continues", None)
    third.lines = third.lines[:-1]
    third.write(folder)
    assert av.compare(folder, copied, vouched=True) == ("overlaps", None)
    log.write(copied)
    assert av.compare(folder, copied, vouched=True) == ("continues", None)


@pytest.mark.parametrize("content", [b"", b"{", b"\n", b"nothing\n"], ids=["empty", "torn", "blank", "text"])
@pytest.mark.usefixtures("log")
def test_a_log_that_holds_nothing_is_compared_too(
    content: bytes, folder: Path, copied: Path, pin: Path
) -> None:
    for name in (LogBuilder().name, LogBuilder().name.replace(LogBuilder().log_id, bb.hex32("another log"))):
        (copied / name).write_bytes(content)
        assert run("compare", folder, copied, "--pin", pin) in {1, 2}
        (copied / name).unlink()


def test_the_name_of_a_folder_is_shown_and_does_nothing(
    log: LogBuilder, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A name that clears the screen, or turns the text around, could write another verdict over this one."""
    named = tmp_path / "\x1b[2J\u202e book"
    named.mkdir()
    log.write(named)
    assert run("compare", named, named) == 3
    assert run("prove", named, 7, 7) == 2
    said = capsys.readouterr()
    for text in (said.out, said.err):
        assert "\\x1b[2J\\u202e book'" in text
        assert text.isascii()
        assert "\x1b" not in text


def test_what_is_not_sealed_in_both_is_no_fork(folder: Path, log: LogBuilder, copied: Path) -> None:
    cut = copy.deepcopy(log)
    cut.lines = [*log.lines[:4], b'{"body":1}']
    cut.write(copied)
    assert av.compare(folder, copied, vouched=True) == ("differs", (0, 4))


def test_a_copy_that_somebody_altered_accuses_nobody(
    folder: Path, log: LogBuilder, copied: Path, pin: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """No key is needed to change a letter: what such a copy says of the writer is nothing."""
    log.write(copied)
    data = (copied / log.name).read_bytes()
    (copied / log.name).write_bytes(data.replace(b'"C2"', b'"C1"', 1))
    assert run("compare", folder, copied, "--pin", pin) == 1
    said = capsys.readouterr().out
    assert said.startswith("FAIL (exit 1)\ndiffers: ")
    assert "forked" not in said
    assert run("compare", folder, folder) == 3


def test_a_line_of_a_book_that_declares_itself_unverifiable_is_as_much_in_doubt(
    folder: Path, pin: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """P3: a proof says no more than the book could."""
    changes = {"verifiable": False, "unverifiable_because": ["tool-unrestricted"]}
    LogBuilder(changes=changes).open().close().write(folder)
    proof = tmp_path / "proof.json"
    proof.write_text(json.dumps(av.prove(folder, 0, 0)), encoding="utf-8")
    assert run("check", proof, "--pin", pin) == 4
    assert capsys.readouterr().out.startswith("UNVERIFIABLE (exit 4)\n")


def test_a_proof_that_says_a_thing_twice_is_none(
    folder: Path, log: LogBuilder, pin: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log.write(folder)
    proof = tmp_path / "proof.json"
    text = json.dumps(av.prove(folder, 0, 12))
    proof.write_text(text[:-1] + ',"line":"{}"' + text[-1:], encoding="utf-8")
    assert run("check", proof, "--pin", pin) == 1
    proof.write_text('{"line":"{}",' + text[1:], encoding="utf-8")
    assert run("check", proof, "--pin", pin) == 1
    assert "proof-malformed" in capsys.readouterr().out


def test_two_books_of_one_device_are_unrelated_and_a_folder_without_logs_is_nothing(
    folder: Path, log: LogBuilder, copied: Path, tmp_path: Path
) -> None:
    log.write(folder)
    (copied / log.name.replace(log.log_id, bb.hex32("another log"))).write_bytes(log.content())
    assert av.compare(folder, copied, vouched=True) == ("unrelated", (0, 0))
    assert av.compare(folder, tmp_path / "nowhere", vouched=True) == ("nothing", None)
