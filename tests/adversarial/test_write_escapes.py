# SPDX-License-Identifier: Apache-2.0
"""Invariant P2: no tool reads, writes or takes away anything outside a granted root, whatever is swapped.

A witness folder stands outside, and must be the same afterwards: names, content, times of change. The
swappers are threads of this process, which may do whatever its user may. All of it lies in memory where it
can: what is tried here is the order of system calls, not the disk.
"""

import contextlib
import os
import resource
import shutil
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, Final

import pytest
import syscalls

from runner.capability.tools.beneath import Beneath
from runner.capability.tools.drafting import MoveToBin, PatchFile, WriteFile
from runner.capability.tools.filesystem import ListDir, ReadFile, SearchText
from runner.capability.tools.names import BIN
from runner.capability.tools.openers import Opener, best_opener
from runner.capability.tools.writing import Writer
from runner.kernel.errors import ToolError
from runner.kernel.ports import GrantedCall, Root

CANARY: Final = "canary-4a7e"
ROUNDS: Final = 200
"""Rounds of each race: seven calls each."""
Witness = Mapping[str, tuple[int, ...]]


@pytest.fixture
def place() -> Iterator[Path]:
    memory = Path("/dev/shm")  # noqa: S108 - a folder in memory, where there is one
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        yield Path(folder).resolve()


@pytest.fixture
def outside(place: Path) -> Path:
    folder = place / "outside"
    (folder / "deep").mkdir(parents=True)
    for path in ("a.txt", "deep/a.txt", "new.txt.keep"):
        (folder / path).write_text(f"{CANARY} old\n")
    return folder


@pytest.fixture
def root(place: Path, outside: Path) -> Root:
    granted = place / "granted"
    (granted / "sub" / "deep").mkdir(parents=True)
    for path in ("a.txt", "sub/a.txt", "sub/deep/a.txt"):
        (granted / path).write_text("inside old\n")
    (granted / "file-link").symlink_to(outside / "a.txt")
    (granted / "folder-link").symlink_to(outside)
    return Root(alias="g", path=str(granted))


def seen_of(folder: Path) -> Witness:
    """Return what would differ if anything in `folder` was touched, an empty bin in it left out."""
    found: dict[str, tuple[int, ...]] = {}
    for path in sorted(folder.rglob("*")):
        about = path.lstat()
        if path.is_dir():
            found[str(path)] = (about.st_ino, about.st_mode)
        else:
            content = hash(path.read_bytes()) if path.is_file() else 0
            found[str(path)] = (about.st_ino, about.st_mode, about.st_size, about.st_mtime_ns, content)
    if not any((folder / BIN).glob("*")):
        found.pop(str(folder / BIN), None)
    return found


def calls(opener: Opener, path: str, text: str) -> Iterator[tuple[Any, dict[str, Any]]]:
    """Yield each file tool with arguments about `path`."""
    yield ReadFile(opener=opener), {"path": path}
    yield ListDir(opener=opener), {"path": path.rpartition("/")[0]}
    yield SearchText(opener=opener), {"path": path.rpartition("/")[0], "query": f"{CANARY} old"}
    yield from writes(opener, path, text)


def writes(opener: Opener, path: str, text: str) -> Iterator[tuple[Any, dict[str, Any]]]:
    """Yield each tool that writes with arguments about `path`."""
    yield WriteFile(opener=opener), {"path": path, "text": text, "replace": True}
    yield PatchFile(opener=opener), {"path": path, "old": "old", "new": text}
    yield MoveToBin(opener=opener), {"path": path}
    yield WriteFile(opener=opener), {"path": path, "text": text}


def said_by(tool: Any, arguments: dict[str, Any], root: Root) -> tuple[str, str]:
    """Return how a call ended, and all that it said."""
    try:
        output = tool.run(GrantedCall(arguments=arguments, roots=(root,)))
    except ToolError as refusal:
        return "refused", str(refusal)
    return "done", "\n".join([output.text, *(excerpt.text for excerpt in output.excerpts)])


ACTS: Final[Mapping[str, Callable[[Writer], object]]] = {
    "create": lambda writer: writer.create(("sub", "new.txt"), b"written\n"),
    "change": lambda writer: writer.change(("sub", "a.txt"), lambda _: b"written\n"),
    "discard": lambda writer: writer.discard(("sub", "a.txt")),
}


@contextlib.contextmanager
def swapping(swap: Callable[[], None]) -> Iterator[None]:
    """Do `swap` over and over in another thread; what it finds gone or there is the race it lost."""
    stop = threading.Event()

    def go_on() -> None:
        while not stop.is_set():
            with contextlib.suppress(OSError):
                swap()

    thread = threading.Thread(target=go_on)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


# --- ways out that stand still ------------------------------------------------------------------------


def hard_link(granted: Path, outside: Path) -> str:
    os.link(outside / "a.txt", granted / "twin.txt")
    return "g/twin.txt"


def bin_is_a_link(granted: Path, outside: Path) -> str:
    (granted / BIN).symlink_to(outside)
    return "g/a.txt"


def bin_is_a_file(granted: Path, _: Path) -> str:
    (granted / BIN).write_text("")
    return "g/a.txt"


STANDING: Final[Mapping[str, Callable[[Path, Path], str]]] = {
    "a link to a file": lambda *_: "g/file-link",
    "a link to a folder": lambda *_: "g/folder-link/a.txt",
    "deep behind a link": lambda *_: "g/folder-link/deep/a.txt",
    "dots": lambda *_: "g/../outside/a.txt",
    "dots in the middle": lambda *_: "g/sub/../../outside/a.txt",
    "absolute": lambda _, outside: f"{outside}/a.txt",
    "absolute behind the alias": lambda _, outside: f"g/{outside}/a.txt",
    "nul": lambda *_: "g/a.txt\0/../../outside/a.txt",
    "backslashes": lambda *_: "g\\..\\outside\\a.txt",
    "a handle of this process": lambda *_: "g/../../proc/self/fd/0",
    "long": lambda *_: f"g/{'a' * 300}",
    "very long": lambda *_: "g/" + "/".join(["sub"] * 2000),
    "a second name": hard_link,
    "the bin is a link": bin_is_a_link,
    "the bin is a file": bin_is_a_file,
}


@pytest.mark.parametrize("way", STANDING)
def test_p2_no_way_out_is_written_through(way: str, root: Root, outside: Path, opener: Opener) -> None:
    granted = Path(root.path)
    path = STANDING[way](granted, outside)
    before, inside = seen_of(outside), seen_of(granted)
    for tool, arguments in writes(opener, path, CANARY):
        assert said_by(tool, arguments, root)[0] == "refused"
    assert seen_of(outside) == before
    assert seen_of(granted) == inside


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="no /proc here")
@pytest.mark.parametrize("path", ["fd/0", "root/tmp", "cwd/x", "mem", "comm"])
def test_p2_nothing_of_a_process_is_written(path: str, opener: Opener) -> None:
    root = Root(alias="p", path=f"/proc/{os.getpid()}")
    before = Path("/proc/self/comm").read_bytes()
    for tool, arguments in writes(opener, f"p/{path}", "x"):
        assert said_by(tool, arguments, root)[0] == "refused"
    assert Path("/proc/self/comm").read_bytes() == before


def test_p2_a_planted_name_in_the_bin_is_not_written_into(root: Root, outside: Path, opener: Opener) -> None:
    """Whoever guesses the name of an entry, and plants a link or a folder there, gets nothing written."""
    granted = Path(root.path)
    (granted / BIN).mkdir()
    (granted / BIN / "guessed").symlink_to(outside)
    (granted / BIN / "folder" / "sub").mkdir(parents=True)
    before, inside = seen_of(outside), seen_of(granted)
    for name in ("guessed", "folder"):
        writer = Writer(root, opener=opener, name_entry=partial(str, name))
        old, new = ("sub", "a.txt"), ("sub", "new.txt")
        for act in (
            partial(writer.create, new, b"x"),
            partial(writer.change, old, lambda _: b"x"),
            partial(writer.discard, old),
        ):
            with pytest.raises(ToolError, match="there already"):
                act()
    assert seen_of(outside) == before
    assert seen_of(granted) == inside


@pytest.mark.skipif(os.getuid() != 0, reason="only the superuser mounts")
def test_p2_a_folder_on_another_disk_is_not_written_to(opener: Opener) -> None:
    """A place where another disk is mounted beneath the root, here the memory's: the bin is not on it."""
    memory = Path("/dev/shm")  # noqa: S108 - a folder on another disk
    if not memory.is_dir() or memory.stat().st_dev == Path("/dev").stat().st_dev:
        pytest.skip("no other disk here")
    top = Root(alias="dev", path="/dev")
    name = f"akaion-{os.urandom(6).hex()}.txt"
    file = memory / name
    file.write_text("old")
    try:
        for tool, arguments in writes(opener, f"dev/shm/{name}", "x"):
            assert said_by(tool, arguments, top)[0] == "refused"
        assert file.read_text() == "old"
        assert sorted(memory.glob(f"{name}*")) == [file]
    finally:
        file.unlink()
        with contextlib.suppress(OSError):
            Path("/dev", BIN).rmdir()


@pytest.mark.parametrize("act", ["create", "change"])
def test_p2_a_disk_that_takes_no_more_loses_nothing(act: str, root: Root, opener: Opener) -> None:
    """The limit of the process on the size of a file stands for a full disk."""
    inside, limits = seen_of(Path(root.path)), resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4, limits[1]))
    try:
        with pytest.raises(ToolError, match="no file of that size: nothing was changed"):
            ACTS[act](Writer(root, opener=opener))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert seen_of(Path(root.path)) == inside


@pytest.mark.skipif(os.getuid() != 0, reason="only the superuser becomes somebody else")
@pytest.mark.parametrize("act", ["create", "change", "discard"])
@pytest.mark.parametrize("closed", [".", "sub"])
def test_p2_a_folder_that_its_owner_keeps_to_himself_is_refused(
    act: str, closed: str, root: Root, place: Path, opener: Opener
) -> None:
    granted = Path(root.path)
    (granted / BIN).mkdir()
    for folder in (place, granted, granted / "sub", granted / BIN):
        folder.chmod(0o777)
    (granted / closed).chmod(0o555)
    (granted / BIN).chmod(0o700 if closed == "." else 0o777)
    inside = seen_of(granted)
    child = os.fork()
    if child == 0:
        os.seteuid(12345)
        try:
            ACTS[act](Writer(root, opener=opener))
        except ToolError as refusal:
            os._exit(3 if "does not allow" in str(refusal) else 4)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
    assert seen_of(granted) == inside


@pytest.mark.skipif(os.getuid() != 0, reason="only the superuser becomes somebody else")
def test_a_folder_that_may_be_passed_and_not_listed_is_passed(
    root: Root, place: Path, opener: Opener
) -> None:
    for folder in (place, Path(root.path)):
        folder.chmod(0o755)
    Path(root.path, "sub").chmod(0o711)
    child = os.fork()
    if child == 0:
        os.seteuid(12345)
        try:
            Beneath(root, opener=opener).data(("sub", "a.txt"))
        except ToolError:
            os._exit(3)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def is_replaced(file: Path, _: Path) -> None:
    (file.parent / "theirs").write_text("theirs\n")
    (file.parent / "theirs").replace(file)


def is_written_to(file: Path, _: Path) -> None:
    file.write_text("theirs, and longer\n")


def becomes_a_link(file: Path, outside: Path) -> None:
    file.unlink()
    file.symlink_to(outside / "a.txt")


def becomes_a_second_name(file: Path, outside: Path) -> None:
    file.unlink()
    os.link(outside / "a.txt", file)


def gets_a_second_name(file: Path, outside: Path) -> None:
    os.link(file, outside / "twin.txt")


def becomes_a_folder(file: Path, _: Path) -> None:
    file.unlink()
    file.mkdir()


MEANWHILE: Final = (
    is_replaced,
    is_written_to,
    becomes_a_link,
    becomes_a_second_name,
    gets_a_second_name,
    becomes_a_folder,
)


@pytest.mark.parametrize("meanwhile", MEANWHILE, ids=lambda act: act.__name__)
def test_p2_what_somebody_else_did_between_the_look_and_the_step_stays(
    meanwhile: Callable[[Path, Path], None], root: Root, outside: Path, opener: Opener
) -> None:
    """The name in the bin is made up when the file has been looked at and nothing has happened to it yet."""
    file, names = Path(root.path) / "sub" / "a.txt", iter("ab")
    left: list[Witness] = []

    def name_entry() -> str:
        meanwhile(file, outside)
        left.append({**seen_of(file.parent), **seen_of(outside)})
        return next(names)

    writer, path = Writer(root, opener=opener, name_entry=name_entry), ("sub", "a.txt")
    for act in (partial(writer.change, path, lambda _: b"x"), partial(writer.discard, path)):
        with pytest.raises(ToolError, match="changed by somebody else"):
            act()
        assert {**seen_of(file.parent), **seen_of(outside)} == left[-1]
        assert list((Path(root.path) / BIN).iterdir()) == [], "what was exchanged is back"
        (file.rmdir if file.is_dir() and not file.is_symlink() else file.unlink)()
        (outside / "twin.txt").unlink(missing_ok=True)
        file.write_text("inside old\n")


# --- races ----------------------------------------------------------------------------------------------


def folders_for_links(granted: Path, _: Path) -> Callable[[], None]:
    def swap() -> None:
        (granted / "sub").rename(granted / "kept")
        (granted / "folder-link").rename(granted / "sub")
        (granted / "sub").rename(granted / "folder-link")
        (granted / "kept").rename(granted / "sub")

    return swap


def files_for_links(granted: Path, outside: Path) -> Callable[[], None]:
    def swap() -> None:
        (granted / "sub" / "link").symlink_to(outside / "a.txt")
        (granted / "sub" / "link").replace(granted / "sub" / "a.txt")
        (granted / "sub" / "real").write_text("inside old\n")
        (granted / "sub" / "real").replace(granted / "sub" / "a.txt")

    return swap


def files_for_second_names(granted: Path, outside: Path) -> Callable[[], None]:
    def swap() -> None:
        (granted / "sub" / "real").write_text("inside old\n")
        (granted / "sub" / "real").replace(granted / "sub" / "a.txt")
        os.link(outside / "a.txt", granted / "sub" / "twin")
        (granted / "sub" / "twin").replace(granted / "sub" / "a.txt")
        (granted / "sub" / "a.txt").unlink()

    return swap


def parents_renamed(granted: Path, _: Path) -> Callable[[], None]:
    def swap() -> None:
        (granted / "sub").rename(granted.parent / "moved")
        (granted / "sub").symlink_to("../outside")
        (granted / "sub").unlink()
        (granted.parent / "moved").rename(granted / "sub")

    return swap


def bin_for_links(granted: Path, outside: Path) -> Callable[[], None]:
    def swap() -> None:
        bin_ = granted / BIN
        with contextlib.suppress(OSError):
            bin_.rename(granted.parent / f"bin-{os.urandom(4).hex()}")
        bin_.symlink_to(outside)
        bin_.unlink()
        (granted / "sub" / "real").write_text("inside old\n")
        (granted / "sub" / "real").rename(granted / "sub" / "a.txt")

    return swap


def roots_for_links(granted: Path, outside: Path) -> Callable[[], None]:
    def swap() -> None:
        granted.rename(granted.parent / "kept")
        granted.symlink_to(outside)
        granted.unlink()
        (granted.parent / "kept").rename(granted)

    return swap


RACES: Final = (
    folders_for_links,
    files_for_links,
    files_for_second_names,
    parents_renamed,
    bin_for_links,
    roots_for_links,
)


@pytest.mark.timeout(120)
@pytest.mark.parametrize("race", RACES, ids=lambda race: race.__name__)
def test_p2_no_race_reads_or_writes_outside(
    race: Callable[[Path, Path], Callable[[], None]], root: Root, outside: Path, opener: Opener
) -> None:
    before = seen_of(outside)
    ended: Counter[str] = Counter()
    with swapping(race(Path(root.path), outside)):
        for number in count():  # on a busy machine the swaps may stand still for long
            for tool, arguments in calls(opener, "g/sub/a.txt", f"old {number}"):
                how, said = said_by(tool, arguments, root)
                assert CANARY not in said
                ended[how] += 1
            both = min(ended["done"], ended["refused"]) > ROUNDS // 10
            if number >= ROUNDS and (both or number >= 50 * ROUNDS):
                break
    assert seen_of(outside) == before
    assert ended["done"] > ROUNDS // 10, ended
    assert ended["refused"] > ROUNDS // 10, ended


# --- one swap at each system call -------------------------------------------------------------------------


def swapped(path: Path, target: Path) -> None:
    """Put a link to `target` in the place of `path`, which stays beside it."""
    path.rename(path.with_name(f"{path.name}-kept"))
    path.symlink_to(target)


def twin(path: Path, outside: Path) -> None:
    """Put a second name of a file from outside in the place of `path`."""
    path.unlink(missing_ok=True)
    os.link(outside / "a.txt", path)


def entries(granted: Path) -> Iterator[Path]:
    return (granted / BIN).iterdir()


def each_entry_for_a_link(granted: Path, outside: Path) -> None:
    for entry in list(entries(granted)):
        swapped(entry, outside)


def each_inner_folder_for_a_link(granted: Path, outside: Path) -> None:
    for entry in list(entries(granted)):
        swapped(entry / "sub", outside)


def a_second_name_in_each_entry(granted: Path, outside: Path) -> None:
    for entry in list(entries(granted)):
        for name in ("a.txt", "new.txt"):
            twin(entry / "sub" / name, outside)


def a_link_in_each_entry(granted: Path, outside: Path) -> None:
    for entry in list(entries(granted)):
        for name in ("a.txt", "new.txt"):
            (entry / "sub" / name).unlink(missing_ok=True)
            (entry / "sub" / name).symlink_to(outside / "a.txt")


SWAPS: Final[Mapping[str, Callable[[Path, Path], None]]] = {
    "root": swapped,
    "folder": lambda granted, outside: swapped(granted / "sub", outside),
    "file for a link": lambda granted, outside: swapped(granted / "sub" / "a.txt", outside / "a.txt"),
    "file for a second name": lambda granted, outside: twin(granted / "sub" / "a.txt", outside),
    "new name for a link": lambda granted, outside: (granted / "sub" / "new.txt").symlink_to(
        outside / "a.txt"
    ),
    "new name for a second name": lambda granted, outside: twin(granted / "sub" / "new.txt", outside),
    "bin": lambda granted, outside: swapped(granted / BIN, outside),
    "entries": each_entry_for_a_link,
    "inner folders": each_inner_folder_for_a_link,
    "a second name in the entries": a_second_name_in_each_entry,
    "a link in the entries": a_link_in_each_entry,
}
READS: Final[Mapping[str, tuple[Any, dict[str, Any]]]] = {
    "read": (ReadFile, {"path": "g/sub/a.txt"}),
    "list": (ListDir, {"path": "g/sub"}),
    "search": (SearchText, {"path": "g", "query": "old canary 4a7e"}),
}
SWAPPED_FOR_READS: Final = frozenset({"root", "folder", "file for a link", "file for a second name"})
BY_NAME: Final = frozenset({"open", "openat2", "create", "mkdir", "rename", "unlink"})
"""The calls that look up a name: what is swapped between two of them is swapped before the second."""


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.skipif(not syscalls.AVAILABLE, reason="follows the system calls of Linux on x86-64")
@pytest.mark.parametrize("act", [*ACTS, *READS])
def test_p2_no_swap_at_any_system_call_brings_a_call_outside(act: str, place: Path, opener: Opener) -> None:
    """Every order of one swap and the steps of a call, where a race meets only a few."""
    best_opener()  # which asks the system once
    tried = 0
    for name, swap in SWAPS.items():
        if act in READS and name not in SWAPPED_FOR_READS:
            continue
        for at in range(1000):
            tried += 1
            base = place / f"{tried}"
            granted, outside = base / "granted", base / "outside"
            for folder, text in ((granted / "sub", "inside old\n"), (outside / "sub", CANARY)):
                folder.mkdir(parents=True)
                (folder / "a.txt").write_text(text)
                (folder.parent / "a.txt").write_text(text)
            (outside / f"{CANARY}.txt").touch()
            before = seen_of(outside)
            got_there = swapped_at(at, partial(swap, granted, outside), act, granted, opener)
            assert seen_of(outside) == before, (name, at)
            if not got_there:
                break
            shutil.rmtree(base)
    assert tried > 7


def swapped_at(at: int, swap: Callable[[], None], act: str, granted: Path, opener: Opener) -> bool:
    """Do `act` in a child, and `swap` before its call number `at` by a name; return whether it got there."""
    by_name: list[str] = []
    root = Root(alias="g", path=str(granted))

    def child() -> None:
        if act in READS:
            tool, arguments = READS[act]
            if CANARY in said_by(tool(opener=opener), arguments, root)[1]:
                os._exit(9)
            return
        with contextlib.suppress(ToolError):
            ACTS[act](Writer(root, opener=opener))

    def decide(_: int, call: syscalls.Call) -> None:
        if call.name in BY_NAME:
            by_name.append(call.name)
            if len(by_name) == at + 1:
                with contextlib.suppress(OSError):
                    swap()

    status = syscalls.run_traced(child, granted.parent, decide)
    assert (os.WIFEXITED(status), os.WEXITSTATUS(status)) == (True, 0), (act, at)
    return len(by_name) > at
