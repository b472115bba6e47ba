# SPDX-License-Identifier: Apache-2.0
"""Invariant P2: nothing outside a granted root is read, listed or searched, by either way of opening.

Each test plants a canary outside the root and a way out of it.
"""

import os
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from runner.capability.tools.beneath import Beneath, identity_of
from runner.capability.tools.filesystem import ListDir, ReadFile, SearchText
from runner.capability.tools.listing import Limits
from runner.capability.tools.openers import Opener
from runner.capability.tools.paths import resolve
from runner.kernel.errors import ToolError
from runner.kernel.ports import GrantedCall, Root

CANARY = "canary-9f31"


@pytest.fixture
def root(tmp_path: Path) -> Root:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.txt").write_text(CANARY)
    granted = tmp_path / "granted"
    (granted / "sub").mkdir(parents=True)
    (granted / "plain.txt").write_text("plain text")
    (granted / "sub" / "deep.txt").write_text("deep text")
    return Root(alias="g", path=str(granted))


def everything_said(root: Root, opener: Opener, path: str) -> list[str]:
    """Return what each tool says about `path`, refusals included."""
    said = []
    for tool, arguments in (
        (ListDir(opener=opener), {"path": path}),
        (ReadFile(opener=opener), {"path": path}),
        (SearchText(opener=opener), {"path": path, "query": CANARY}),
    ):
        try:
            output = tool.run(GrantedCall(arguments=arguments, roots=(root,)))
        except ToolError as refusal:
            said.append(str(refusal))
        else:
            said += [output.text, *(excerpt.text for excerpt in output.excerpts)]
    return said


def link_to_file(folder: Path) -> str:
    (folder / "way").symlink_to("../outside/secret.txt")
    return "way"


def link_to_folder(folder: Path) -> str:
    (folder / "way").symlink_to("../outside")
    return "way/secret.txt"


def absolute_link(folder: Path) -> str:
    (folder / "way").symlink_to(folder.parent / "outside" / "secret.txt")
    return "way"


def link_deep_down(folder: Path) -> str:
    (folder / "sub" / "way").symlink_to("../../outside")
    return "sub/way/secret.txt"


def link_to_the_inside(folder: Path) -> str:
    (folder / "inner").symlink_to("sub")
    (folder / "sub" / "up").symlink_to("../../outside/secret.txt")
    return "inner/up"


def hard_link(folder: Path) -> str:
    os.link(folder.parent / "outside" / "secret.txt", folder / "way.txt")
    return "way.txt"


def dots(_: Path) -> str:
    return "../outside/secret.txt"


def dots_in_the_middle(_: Path) -> str:
    return "sub/../../outside/secret.txt"


def doubled_slash(folder: Path) -> str:
    return f"/{folder.parent / 'outside' / 'secret.txt'}"


def backslashes(_: Path) -> str:
    return "..\\outside\\secret.txt"


def cut_by_nul(_: Path) -> str:
    return "../outside/secret.txt\0.md"


WAYS_OUT = (
    link_to_file,
    link_to_folder,
    absolute_link,
    link_deep_down,
    link_to_the_inside,
    hard_link,
    dots,
    dots_in_the_middle,
    doubled_slash,
    backslashes,
    cut_by_nul,
)


@pytest.mark.parametrize("way_out", WAYS_OUT, ids=lambda way: way.__name__)
def test_p2_a_way_out_leads_nowhere(way_out: Callable[[Path], str], root: Root, opener: Opener) -> None:
    path = way_out(Path(root.path))
    with pytest.raises(ToolError):
        Beneath(root, opener=opener).read(path.split("/"))
    for spelling in (f"g/{path}", "g", "."):
        assert not [text for text in everything_said(root, opener, spelling) if CANARY in text]


def test_p2_the_same_file_is_read_when_it_lies_inside(root: Root, opener: Opener) -> None:
    (Path(root.path) / "sub" / "inside.txt").write_text(CANARY)
    said = everything_said(root, opener, "g/sub/inside.txt")
    assert sum(CANARY in text for text in said) >= 3


@pytest.mark.parametrize(
    "path",
    ["/etc/hostname", "//g", "~/g", "file:///etc/hostname", "g/../g", "..", "g/.", "./g", "/", "//", "g//"],
)
def test_p2_an_absolute_or_odd_path_is_refused_naming_what_is_granted(path: str, root: Root) -> None:
    with pytest.raises(ToolError, match="Granted folders: g"):
        resolve(path, (root,))


@pytest.mark.skipif(not Path("/proc/self/root").exists(), reason="no /proc here")
@pytest.mark.parametrize("path", ["root/etc/hostname", "cwd/pyproject.toml", "exe", "fd/0"])
def test_p2_a_magic_link_is_not_followed(path: str, opener: Opener) -> None:
    with pytest.raises(ToolError, match="links are not followed"):
        Beneath(Root(alias="p", path=f"/proc/{os.getpid()}"), opener=opener).read(path.split("/"))


@pytest.mark.timeout(60)
def test_p2_a_swap_of_folder_and_link_never_leaks(root: Root, opener: Opener, tmp_path: Path) -> None:
    granted = Path(root.path)
    (granted / "sub" / "secret.txt").write_text("inside")
    (granted / "link").symlink_to("../outside")
    stop = threading.Event()

    def swap() -> None:
        while not stop.is_set():
            (granted / "sub").rename(tmp_path / "kept")
            (granted / "link").rename(granted / "sub")
            (granted / "sub").rename(granted / "link")
            (tmp_path / "kept").rename(granted / "sub")

    swapper = threading.Thread(target=swap)
    swapper.start()
    texts: set[str] = set()
    refusals: set[str] = set()
    try:
        for _ in range(20_000):
            try:
                texts.add(Beneath(root, opener=opener).read(("sub", "secret.txt")))
            except ToolError as refusal:
                refusals.add(str(refusal))
    finally:
        stop.set()
        swapper.join()
    assert texts == {"inside"}
    assert any("links are not followed" in refusal for refusal in refusals), "the race was never met"


@pytest.mark.timeout(10)
def test_p2_a_pipe_is_refused_without_waiting_for_a_writer(root: Root, opener: Opener) -> None:
    os.mkfifo(Path(root.path) / "pipe.txt")
    with pytest.raises(ToolError, match="not a regular file"):
        Beneath(root, opener=opener).read(("pipe.txt",))
    found = SearchText(opener=opener).run(GrantedCall(arguments={"query": "plain"}, roots=(root,)))
    assert "(not searched, files or links: 1)" in found.text


def test_p2_a_device_is_refused(opener: Opener) -> None:
    with pytest.raises(ToolError, match="not a regular file"):
        Beneath(Root(alias="d", path="/dev"), opener=opener).read(("zero",))


def test_p2_a_huge_file_is_refused_and_never_read_whole(root: Root, opener: Opener) -> None:
    with (Path(root.path) / "huge.txt").open("wb") as stream:
        stream.truncate(1 << 40)
    with pytest.raises(ToolError, match="larger than 4,194,304 bytes"):
        Beneath(root, opener=opener).read(("huge.txt",))


def test_p2_a_file_that_claims_no_size_is_read_up_to_the_limit(opener: Opener) -> None:
    if not Path("/proc/kallsyms").exists():
        pytest.skip("no such file here")
    tight = Beneath(Root(alias="p", path="/proc"), opener=opener, limits=Limits(file_bytes=1000))
    with pytest.raises(ToolError, match=r"larger than 1,000 bytes"):
        tight.read(("kallsyms",))


def test_p2_a_deep_tree_ends_the_walk_and_is_said(root: Root, opener: Opener) -> None:
    here = os.open(root.path, os.O_RDONLY)
    for _ in range(200):
        os.mkdir("d", dir_fd=here)
        inner = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = inner
    os.close(here)
    walk = Beneath(root, opener=opener).walk()
    assert walk.cut
    assert walk.files == (("plain.txt",), ("sub", "deep.txt"))
    deepest = ("d",) * 200
    assert Beneath(root, opener=opener).entries(deepest).entries == ()


def root_for_a_link(folder: Path) -> None:
    folder.rename(folder.parent / "kept")
    folder.symlink_to("outside")


def parent_for_a_link(folder: Path) -> None:
    """Swap the folder above the granted one for a link to another that has a folder of its name."""
    (folder.parent / "elsewhere").mkdir()
    (folder.parent / "outside").rename(folder.parent / "elsewhere" / folder.name)
    folder.parent.rename(folder.parent.parent / "moved")
    folder.parent.symlink_to("moved/elsewhere")


def root_for_another_folder(folder: Path) -> None:
    folder.rename(folder.parent / "kept")
    (folder.parent / "outside").rename(folder)


def single_for_a_link(file: Path) -> None:
    file.unlink()
    file.symlink_to("../outside/secret.txt")


def single_for_another_file(file: Path) -> None:
    (file.parent.parent / "outside" / "secret.txt").rename(file)


@pytest.mark.parametrize("swap", [root_for_a_link, parent_for_a_link, root_for_another_folder])
def test_p2_a_granted_folder_that_was_swapped_is_not_followed(
    swap: Callable[[Path], None], opener: Opener, tmp_path: Path
) -> None:
    """The outside has a file of every name that the model may still ask for."""
    granted = tmp_path / "above" / "granted"
    granted.mkdir(parents=True)
    (granted / "plain.txt").write_text("plain text")
    outside = granted.parent / "outside"
    outside.mkdir()
    (outside / "plain.txt").write_text(CANARY)
    root = Root(alias="g", path=str(granted), identity=identity_of(str(granted)))
    assert Beneath(root, opener=opener).read(("plain.txt",)) == "plain text"
    swap(granted)
    assert (granted / "plain.txt").read_text() == CANARY, "the swap did not work"
    with pytest.raises(ToolError, match="the granted folder was replaced"):
        Beneath(root, opener=opener).read(("plain.txt",))
    for spelling in ("g/plain.txt", "g", "."):
        assert not [text for text in everything_said(root, opener, spelling) if CANARY in text]


@pytest.mark.parametrize("swap", [single_for_a_link, single_for_another_file])
def test_p2_a_granted_file_that_was_swapped_is_not_read(
    swap: Callable[[Path], None], root: Root, opener: Opener
) -> None:
    file = Path(root.path) / "plain.txt"
    single = Root(alias="plain.txt", path=str(file), identity=identity_of(str(file)))
    assert Beneath(single, opener=opener).read(()) == "plain text"
    swap(file)
    assert file.read_text() == CANARY, "the swap did not work"
    with pytest.raises(ToolError, match="the granted folder was replaced"):
        Beneath(single, opener=opener).read(())


def test_p2_a_root_is_a_path_without_links_from_the_start(root: Root, opener: Opener, tmp_path: Path) -> None:
    """Links in a configured path are resolved at the opening of a profile; a root with one is refused."""
    (tmp_path / "alias").symlink_to(root.path)
    for path in (f"{tmp_path}/alias", f"{tmp_path}/alias/sub", f"{root.path}/../granted", "granted", "."):
        with pytest.raises(ToolError):
            Beneath(Root(alias="g", path=path), opener=opener).entries(())
        with pytest.raises(ToolError):
            identity_of(path)
    assert identity_of(str((tmp_path / "alias").resolve())) == identity_of(root.path)


@pytest.mark.skipif(os.getuid() == 0, reason="the superuser may list every folder")
def test_p2_a_folder_on_the_way_need_not_be_listable(root: Root, opener: Opener, tmp_path: Path) -> None:
    """Opening from the top asks of the folders above a root what the system asks, and no more."""
    tmp_path.chmod(0o311)
    try:
        assert Beneath(root, opener=opener).read(("plain.txt",)) == "plain text"
    finally:
        tmp_path.chmod(0o700)


def test_p2_what_is_neither_folder_nor_file_is_no_root(root: Root) -> None:
    os.mkfifo(Path(root.path) / "pipe")
    with pytest.raises(ToolError, match="a folder or a regular file"):
        identity_of(f"{root.path}/pipe")


def test_p2_where_a_link_cannot_be_refused_nothing_is_read(
    root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("runner.capability.tools.beneath.CAN_CONFINE", False)
    for refused in (lambda: Beneath(root), lambda: identity_of(root.path)):
        with pytest.raises(ToolError, match="cannot confine"):
            refused()


def open_handles() -> int:
    handles = Path("/proc/self/fd")
    return len(list(handles.iterdir())) if handles.exists() else 0


def test_p2_no_handle_is_left_open(root: Root, opener: Opener) -> None:
    os.mkfifo(Path(root.path) / "pipe")
    (Path(root.path) / "way").symlink_to("../outside")
    beneath = Beneath(root, opener=opener)
    beneath.read(("plain.txt",))  # whatever the first call opens for good
    before = open_handles()
    for path in (("plain.txt",), ("pipe",), ("way", "secret.txt"), ("sub",), ("no", "such"), ("..",)):
        try:
            beneath.read(path)
        except ToolError:
            continue
    beneath.walk()
    assert open_handles() == before


@pytest.mark.parametrize("then", ["nothing", "a file", "the same file"])
def test_p2_a_second_name_that_is_gone_once_it_was_opened_is_refused(
    then: str, root: Root, tmp_path: Path, opener: Opener
) -> None:
    """The file then has one name, and it is not the one in the grant."""
    twin, secret = Path(root.path) / "sub" / "twin.txt", tmp_path / "outside" / "secret.txt"
    os.link(secret, twin)

    def loses_its_name(folder: int, names: Sequence[str], flags: int) -> int:
        handle = opener(folder, names, flags)
        if names[-1:] == ("twin.txt",):
            twin.unlink()
            if then == "a file":
                twin.write_text("plain text")
            if then == "the same file":
                secret.rename(tmp_path / "kept")
                os.link(tmp_path / "kept", twin)
        return handle

    with pytest.raises(ToolError):
        Beneath(root, opener=loses_its_name).data(("sub", "twin.txt"))
