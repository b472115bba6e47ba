# SPDX-License-Identifier: Apache-2.0
"""P2: what the writing tools do, what they refuse, and that nothing is lost by either."""

import os
import stat
from pathlib import Path
from typing import Any

import pytest

from runner.capability.tools.beneath import Beneath
from runner.capability.tools.drafting import MoveToBin, PatchFile, WriteFile
from runner.capability.tools.filesystem import ListDir, ReadFile, SearchText
from runner.capability.tools.listing import Limits
from runner.capability.tools.names import BIN
from runner.kernel.errors import ToolError
from runner.kernel.ports import Effect, GrantedCall, Root

TOOLS = {tool.spec.name: tool for tool in (WriteFile(), PatchFile(), MoveToBin())}


@pytest.fixture
def root(tmp_path: Path) -> Root:
    granted = tmp_path / "g"
    (granted / "sub").mkdir(parents=True)
    (granted / "a.txt").write_text("one\ntwo\nthree\n")
    return Root(alias="g", path=str(granted))


def do(root: Root, name: str, **arguments: Any) -> str:
    return TOOLS[name].run(GrantedCall(arguments=arguments, roots=(root,))).text


def at(root: Root, path: str) -> Path:
    return Path(root.path) / path


def names(root: Root) -> list[str]:
    return sorted(each.name for each in Path(root.path).iterdir())


def binned(root: Root) -> dict[str, bytes]:
    """Return what the bin holds, by the path it had."""
    files = [file for file in at(root, BIN).rglob("*") if file.is_file()]
    return {"/".join(file.relative_to(at(root, BIN)).parts[1:]): file.read_bytes() for file in files}


def test_every_writing_tool_says_that_it_writes_and_where() -> None:
    for tool in TOOLS.values():
        assert tool.effect is Effect.WRITE
        assert tool.path_arguments == {"path"}
        assert "path" in tool.spec.parameters["required"]  # type: ignore[operator]
        assert not hasattr(tool, "veils")


def test_p2_a_new_file_is_written_for_its_owner_only_and_leaves_nothing_else(root: Root) -> None:
    assert do(root, "write_file", path="g/sub/b.txt", text="perché\n") == "written: g/sub/b.txt"
    file = at(root, "sub/b.txt")
    assert file.read_text(encoding="utf-8") == "perché\n"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert file.stat().st_nlink == 1
    assert list(at(root, BIN).iterdir()) == []
    assert stat.S_IMODE(at(root, BIN).stat().st_mode) == 0o700


def test_p2_what_is_there_is_only_written_over_by_whoever_says_so_and_is_kept(root: Root) -> None:
    at(root, "a.txt").chmod(0o640)
    with pytest.raises(ToolError, match="is there already: with replace"):
        do(root, "write_file", path="g/a.txt", text="new")
    assert at(root, "a.txt").read_text() == "one\ntwo\nthree\n"
    said = do(root, "write_file", path="g/a.txt", text="new", replace=True)
    assert at(root, "a.txt").read_text() == "new"
    assert stat.S_IMODE(at(root, "a.txt").stat().st_mode) == 0o640
    assert binned(root) == {"a.txt": b"one\ntwo\nthree\n"}
    (entry,) = at(root, BIN).iterdir()
    assert said == f"replaced: g/a.txt (the version before is in the bin, as {entry.name})"


def test_with_replace_a_file_that_is_not_there_is_new(root: Root) -> None:
    assert do(root, "write_file", path="g/sub/b.txt", text="x", replace=True) == "written: g/sub/b.txt"


def test_a_passage_that_stands_there_once_is_changed_and_the_rest_is_not(root: Root) -> None:
    assert do(root, "patch_file", path="g/a.txt", old="two\n", new="2\n").startswith("changed: g/a.txt")
    assert at(root, "a.txt").read_text() == "one\n2\nthree\n"
    assert binned(root) == {"a.txt": b"one\ntwo\nthree\n"}


@pytest.mark.parametrize(
    ("old", "problem"),
    [
        ("four", "does not stand in that file, character for character"),
        ("t", "more than once"),
        ("1: one", "does not stand in that file"),
    ],
    ids=["absent", "twice", "numbered"],
)
def test_a_passage_that_is_not_there_or_not_once_is_refused(root: Root, old: str, problem: str) -> None:
    with pytest.raises(ToolError, match=problem):
        do(root, "patch_file", path="g/a.txt", old=old, new="x")
    assert at(root, "a.txt").read_text() == "one\ntwo\nthree\n"
    assert binned(root) == {}


def test_a_passage_that_overlaps_itself_stands_there_more_than_once(root: Root) -> None:
    at(root, "a.txt").write_text("aaa")
    with pytest.raises(ToolError, match="more than once"):
        do(root, "patch_file", path="g/a.txt", old="aa", new="b")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"\xef\xbb\xbfone\ntwo\n", b"\xef\xbb\xbfone\n2\n3\n"),
        (b"one\r\ntwo\r\n", b"one\r\n2\r\n3\r\n"),
        (b"one\r\ntwo\n", b"one\r\n2\n3\n"),
        (b"perch\xe9\none\ntwo\n", b"perch\xe9\none\n2\n3\n"),
        (b"two", b"2\n3"),
    ],
    ids=["mark", "crlf", "mixed", "cp1252", "one line"],
)
def test_mark_line_ends_and_encoding_of_a_file_stay(root: Root, before: bytes, after: bytes) -> None:
    at(root, "a.txt").write_bytes(before)
    do(root, "patch_file", path="g/a.txt", old="two", new="2\n3")
    assert at(root, "a.txt").read_bytes() == after


def test_what_the_encoding_of_a_file_cannot_hold_is_refused(root: Root) -> None:
    at(root, "a.txt").write_bytes(b"perch\xe9")
    with pytest.raises(ToolError, match="not in cp1252"):
        do(root, "patch_file", path="g/a.txt", old="perch", new="Łódź")


def test_p2_a_file_goes_to_the_bin_whatever_is_in_it(root: Root) -> None:
    at(root, "sub/scan.pdf").write_bytes(b"%PDF\0\1\2")
    said = do(root, "move_to_bin", path="g/sub/scan.pdf")
    (entry,) = at(root, BIN).iterdir()
    assert said == f"moved to the bin, as {entry.name}: g/sub/scan.pdf"
    assert not at(root, "sub/scan.pdf").exists()
    assert binned(root) == {"sub/scan.pdf": b"%PDF\0\1\2"}


def test_p2_what_is_in_the_bin_no_tool_sees_or_changes(root: Root) -> None:
    do(root, "move_to_bin", path="g/a.txt")
    (entry,) = at(root, BIN).iterdir()
    call = GrantedCall(arguments={"path": "g"}, roots=(root,))
    assert BIN not in ListDir().run(call).text
    found = SearchText().run(GrantedCall(arguments={"query": "three"}, roots=(root,)))
    assert found.excerpts == ()
    for path in (f"g/{BIN}/{entry.name}/a.txt", f"g/{BIN.upper()}/{entry.name}/a.txt", f"g/{BIN}"):
        with pytest.raises(ToolError, match="no such file"):
            ReadFile().run(GrantedCall(arguments={"path": path}, roots=(root,)))
        with pytest.raises(ToolError, match="begins with a dot"):
            do(root, "write_file", path=path, text="x", replace=True)
        with pytest.raises(ToolError, match="begins with a dot"):
            do(root, "move_to_bin", path=path)
    assert binned(root) == {"a.txt": b"one\ntwo\nthree\n"}


HIDDEN = (".bashrc", ".git/hooks/pre-commit", "sub/.envrc", "\u2024bashrc", "\uff0ebashrc", ".", BIN)


@pytest.mark.parametrize("path", HIDDEN, ids=ascii)
def test_p2_nothing_hidden_is_written(root: Root, path: str) -> None:
    (at(root, ".git") / "hooks").mkdir(parents=True)
    with pytest.raises(ToolError):
        do(root, "write_file", path=f"g/{path}", text="x")
    assert names(root) == [".git", "a.txt", "sub"]


@pytest.mark.parametrize(
    "name",
    [
        " b.txt",
        "b.txt ",
        "b.txt.",
        "b:c.txt",
        "CON?.txt",
        "b\u200b.txt",
        "b\n.txt",
        "caffe\u0300.txt",
        "b" * 256,
    ],
    ids=ascii,
)
def test_a_new_name_is_one_that_every_system_takes(root: Root, name: str) -> None:
    with pytest.raises(ToolError):
        do(root, "write_file", path=f"g/{name}", text="x")
    assert names(root) in (["a.txt", "sub"], [BIN, "a.txt", "sub"])


@pytest.mark.parametrize("twin", ["A.TXT", "\uff41.txt", "a.tXt"], ids=ascii)
def test_a_name_that_is_taken_for_another_is_refused(root: Root, twin: str) -> None:
    with pytest.raises(ToolError, match="capitals or accents only"):
        do(root, "write_file", path=f"g/{twin}", text="x")


def test_a_file_that_another_system_named_can_be_changed(root: Root) -> None:
    """macOS writes accents apart, and folders of companies end with a dot."""
    (at(root, "Rossi S.p.A.")).mkdir()
    at(root, "Rossi S.p.A./caffe\u0300.txt").write_text("one")
    do(root, "patch_file", path="g/Rossi S.p.A./caffe\u0300.txt", old="one", new="two")
    assert at(root, "Rossi S.p.A./caffe\u0300.txt").read_text() == "two"


@pytest.mark.parametrize("text", ["a\0b", "a\x1b[31mb", "a\x9bb", "a\ud800", "a\x7f"], ids=ascii)
def test_only_text_is_written(root: Root, text: str) -> None:
    with pytest.raises(ToolError, match="control character"):
        do(root, "write_file", path="g/b.txt", text=text)
    with pytest.raises(ToolError, match="control character"):
        do(root, "patch_file", path="g/a.txt", old="two", new=text)
    do(root, "write_file", path="g/b.txt", text="tab\tand\r\nend\n")


def test_a_file_that_is_no_text_is_not_replaced_or_patched(root: Root) -> None:
    at(root, "a.txt").write_bytes(b"%PDF\0")
    with pytest.raises(ToolError, match="not text"):
        do(root, "write_file", path="g/a.txt", text="x", replace=True)
    with pytest.raises(ToolError, match="not text"):
        do(root, "patch_file", path="g/a.txt", old="PDF", new="x")
    assert at(root, "a.txt").read_bytes() == b"%PDF\0"


def test_what_is_no_single_plain_file_is_refused_by_each_tool(root: Root, tmp_path: Path) -> None:
    os.link(at(root, "a.txt"), tmp_path / "second")
    at(root, "link").symlink_to("a.txt")
    at(root, "way").symlink_to("sub")
    os.mkfifo(at(root, "pipe"))
    before = names(root)
    for path in ("a.txt", "link", "way/b.txt", "pipe", "sub", "none/b.txt"):
        for name, more in (
            ("write_file", {"text": "x", "replace": True}),
            ("patch_file", {"old": "one", "new": "x"}),
            ("move_to_bin", {}),
        ):
            with pytest.raises(ToolError):
                do(root, name, path=f"g/{path}", **more)
    assert names(root) == before
    assert binned(root) == {}
    assert (tmp_path / "second").read_text() == "one\ntwo\nthree\n"


def test_a_file_set_to_read_only_is_left_alone(root: Root) -> None:
    at(root, "a.txt").chmod(0o444)
    for name, more in (("write_file", {"text": "x", "replace": True}), ("move_to_bin", {})):
        with pytest.raises(ToolError, match="read only"):
            do(root, name, path="g/a.txt", **more)


@pytest.mark.skipif(os.getuid() != 0, reason="only the superuser can give files away")
def test_the_owner_of_a_file_stays(root: Root) -> None:
    os.chown(at(root, "a.txt"), 12345, 23456)
    do(root, "patch_file", path="g/a.txt", old="two", new="2")
    assert (at(root, "a.txt").stat().st_uid, at(root, "a.txt").stat().st_gid) == (12345, 23456)


def test_a_file_is_never_larger_than_what_is_read(root: Root) -> None:
    tight = Limits(file_bytes=20)
    call = GrantedCall(arguments={"path": "g/b.txt", "text": "x" * 21}, roots=(root,))
    with pytest.raises(ToolError, match="more than 20 bytes"):
        WriteFile(limits=tight).run(call)
    patch = GrantedCall(arguments={"path": "g/a.txt", "old": "two", "new": "x" * 10}, roots=(root,))
    with pytest.raises(ToolError, match="more than 20 bytes"):
        PatchFile(limits=tight).run(patch)
    assert binned(root) == {}
    assert Beneath(root).read(("a.txt",)) == "one\ntwo\nthree\n"


def test_a_root_that_is_a_file_is_not_written_to(root: Root) -> None:
    single = Root(alias="a.txt", path=str(at(root, "a.txt")))
    for path in ("a.txt", "a.txt/b"):
        with pytest.raises(ToolError):
            do(single, "write_file", path=path, text="x", replace=True)
    assert names(root) == ["a.txt", "sub"]


@pytest.mark.parametrize("path", ["", ".", "g", "g/", "other/a.txt", "/etc/hostname", "g/../x", 7, None])
def test_only_a_file_of_a_granted_folder_is_named(root: Root, path: object) -> None:
    for name, more in (("write_file", {"text": "x"}), ("move_to_bin", {})):
        with pytest.raises(ToolError):
            do(root, name, path=path, **more)


def test_an_argument_that_the_tool_does_not_have_is_refused(root: Root) -> None:
    with pytest.raises(ToolError, match="takes only these"):
        do(root, "move_to_bin", path="g/a.txt", force=True)
