# SPDX-License-Identifier: Apache-2.0
"""Beneath and the openers, on honest trees; the hostile ones are in the adversarial tests (P2)."""

import os
from pathlib import Path

import pytest

from runner.capability.tools.beneath import Beneath, decode
from runner.capability.tools.listing import Entry, Kind, Limits
from runner.capability.tools.openers import best_opener, open_by_openat2, open_by_steps
from runner.kernel.errors import ToolError
from runner.kernel.ports import Root


@pytest.fixture
def tree(tmp_path: Path) -> Root:
    for path, text in {
        "b.txt": "b",
        "a.txt": "a",
        "two/z.txt": "z",
        "one/y.txt": "y",
        "one/in/x.txt": "x",
    }.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    return Root(alias="t", path=str(tmp_path))


def test_entries_are_sorted_with_kind_and_size(tree: Root) -> None:
    (Path(tree.path) / "link").symlink_to("a.txt")
    os.mkfifo(Path(tree.path) / "pipe")
    folder = Beneath(tree).entries(())
    assert [(e.name, e.kind) for e in folder.entries] == [
        ("a.txt", Kind.FILE),
        ("b.txt", Kind.FILE),
        ("link", Kind.LINK),
        ("one", Kind.FOLDER),
        ("pipe", Kind.OTHER),
        ("two", Kind.FOLDER),
    ]
    assert folder.entries[0] == Entry(name="a.txt", kind=Kind.FILE, size=1)
    assert not folder.cut


def test_a_walk_is_depth_first_and_sorted(tree: Root) -> None:
    walk = Beneath(tree).walk()
    assert ["/".join(parts) for parts in walk] == ["a.txt", "b.txt", "one/y.txt", "one/in/x.txt", "two/z.txt"]
    assert (walk.skipped, walk.cut) == (0, False)
    assert list(Beneath(tree).walk(("one", "in"))) == [("one", "in", "x.txt")]
    assert list(Beneath(tree).walk(("a.txt",))) == [("a.txt",)]


@pytest.mark.parametrize(
    ("limits", "files"),
    [
        (Limits(files=3), ["a.txt", "b.txt", "one/y.txt"]),
        (Limits(folders=2), ["a.txt", "b.txt", "one/y.txt"]),
        (Limits(depth=0), ["a.txt", "b.txt"]),
        (Limits(depth=1), ["a.txt", "b.txt", "one/y.txt", "two/z.txt"]),
    ],
)
def test_a_walk_cut_short_says_so(tree: Root, limits: Limits, files: list[str]) -> None:
    walk = Beneath(tree, limits=limits).walk()
    assert ["/".join(parts) for parts in walk] == files
    assert walk.cut


def test_a_folder_with_too_many_names_says_so(tree: Root) -> None:
    folder = Beneath(tree, limits=Limits(names=2)).entries(())
    assert len(folder.entries) == 2
    assert folder.cut


def test_a_root_may_be_a_single_file(tree: Root) -> None:
    single = Beneath(Root(alias="s", path=f"{tree.path}/a.txt"))
    assert single.read(()) == "a"
    assert list(single.walk()) == [()]
    assert single.kind(()) is Kind.FILE
    for refused in (lambda: single.read(("a.txt",)), lambda: single.entries(())):
        with pytest.raises(ToolError):
            refused()


def test_a_single_file_with_a_second_name_is_refused(tree: Root) -> None:
    os.link(f"{tree.path}/a.txt", f"{tree.path}/second.txt")
    with pytest.raises(ToolError, match="hard link"):
        Beneath(Root(alias="s", path=f"{tree.path}/a.txt")).read(())


def test_refusals_say_what_to_do_and_hold_no_machine_path(tree: Root) -> None:
    beneath = Beneath(tree)
    for parts, words in (
        (("no",), "no such file"),
        (("one",), "not a regular file"),
        (("a.txt", "b"), "not a folder"),
    ):
        with pytest.raises(ToolError, match=words) as refusal:
            beneath.read(parts)
        assert tree.path not in str(refusal.value)
        assert refusal.value.__cause__ is None
    with pytest.raises(ToolError, match="granted folder itself"):
        Beneath(Root(alias="x", path=f"{tree.path}/gone")).entries(())


def test_a_file_of_exactly_the_limit_is_read(tree: Root) -> None:
    (Path(tree.path) / "a.txt").write_text("12345")
    assert Beneath(tree, limits=Limits(file_bytes=5)).read(("a.txt",)) == "12345"
    with pytest.raises(ToolError, match="larger than 4 bytes"):
        Beneath(tree, limits=Limits(file_bytes=4)).read(("a.txt",))


@pytest.mark.parametrize(
    ("data", "text", "encoding"),
    [
        (b"", "", "utf-8"),
        ("perché".encode(), "perché", "utf-8"),
        (b"\xef\xbb\xbfciao", "ciao", "utf-8"),
        (b"perch\xe9 \x80 5", "perché € 5", "cp1252"),
    ],
)
def test_text_is_utf8_else_windows_1252(data: bytes, text: str, encoding: str) -> None:
    found = decode(data)
    assert (found.text, found.encoding) == (text, encoding)


@pytest.mark.parametrize("data", [b"a\0b", b"\x81\x8d", b"\xff\x01\x02", "testo".encode("utf-16")])
def test_what_is_not_text_is_refused(data: bytes) -> None:
    with pytest.raises(ToolError, match="not text"):
        decode(data)


def test_i12_content_never_shows_in_a_repr() -> None:
    assert "secret" not in repr(decode(b"secret"))


def test_the_opener_is_chosen_once_and_works() -> None:
    assert best_opener() in (open_by_openat2, open_by_steps)
    assert best_opener() is best_opener()


@pytest.mark.parametrize("problem", [OSError(38, "ENOSYS"), PermissionError(1, "EPERM")])
def test_a_kernel_or_filter_without_openat2_gets_the_walk(
    problem: OSError, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> int:
        raise problem

    monkeypatch.setattr("runner.capability.tools.openers.open_by_openat2", refuse)
    assert best_opener.__wrapped__() is open_by_steps
