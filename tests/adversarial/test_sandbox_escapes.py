# SPDX-License-Identifier: Apache-2.0
"""P2, I5: ways out of the sandbox, each tried by a program that means it, and none of them found.

The program inside is this Python, which can do whatever its system lets it, so what is tried is the sandbox
and not a tool's manners. An attempt says `OUT` when it got out, and else why it did not. Each one either gets
out when the same program runs without the sandbox, which its test looks at first, or would harm the machine
that it is tried on; then the very answer of the kernel is compared.
"""

import _ctypes
import fcntl
import json
import os
import platform
import signal
import socket
import subprocess
import sys
import sysconfig
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from runner.capability.sandbox.bubblewrap import KILLED, Bubblewrap, why_not
from runner.capability.sandbox.port import ENVIRONMENT, Granted, Job, Limits, Ran
from runner.kernel.errors import SandboxUnavailable

NO_SANDBOX = why_not()
pytestmark = pytest.mark.skipif(NO_SANDBOX is not None, reason=f"no sandbox here: {NO_SANDBOX}")
SECRET = "Rossi-7731"
PYTHON = Path(sys.executable).resolve()
ALARM_S = 20.0


def libraries_of(module: str) -> list[Path]:
    """What a module of this Python in native code is linked with."""
    done = subprocess.run(["ldd", module], capture_output=True, text=True, check=True)
    return [Path(word) for line in done.stdout.splitlines() for word in line.split() if word.startswith("/")]


def data() -> tuple[Path, ...]:
    """What this Python needs to start, beside what its loader lists."""
    return (Path(sysconfig.get_path("stdlib")), *libraries_of(_ctypes.__file__))


@dataclass(frozen=True, kw_only=True)
class Ground:
    """A granted folder, what lies beside it, and what listens there."""

    studio: Path
    secret: Path
    facts: dict[str, object]

    def outside(self, code: str) -> str:
        """What `code` says without a sandbox: with the variables and open files of this process."""
        here = {**os.environ, "TOKEN_OF_THE_PRACTICE": SECRET}
        done = subprocess.run(
            [str(PYTHON), "-I", "-S", "-c", PROBE + code, self._facts(str(self.studio))],
            env=here,
            close_fds=False,
            capture_output=True,
            text=True,
            check=False,
            timeout=ALARM_S,
        )
        return done.stdout.strip() or done.stderr[-300:]

    def inside(self, code: str, limits: Limits | None = None) -> str:
        """What `code` says in the sandbox."""
        return self.ran(code, limits).output.decode().strip()

    def ran(self, code: str, limits: Limits | None = None) -> Ran:
        """How `code` ends in the sandbox."""
        handle = os.open(self.studio, os.O_RDONLY | os.O_DIRECTORY)
        try:
            job = Job(
                program=PYTHON,
                arguments=["-I", "-S", "-c", PROBE + code, self._facts("/granted/studio")],
                granted=[Granted(alias="studio", path=str(self.studio), handle=handle)],
                data=data(),
                limits=limits or Limits(),
            )
            return Bubblewrap().run(job)
        finally:
            os.close(handle)

    def _facts(self, studio: str) -> str:
        return json.dumps({**self.facts, "studio": studio, "secret": str(self.secret), "pid": os.getpid()})


PROBE = """
import json, os, sys
F = json.loads(sys.argv[1])
def attempt(work):
    try:
        found = work()
    except OSError as error:
        import errno
        print(errno.errorcode.get(error.errno, type(error).__name__))
    except Exception as error:
        print(type(error).__name__)
    else:
        print("OUT" if found else "nothing")
def holds(path, *, dir_fd=None):
    handle = os.open(path, os.O_RDONLY, dir_fd=dir_fd)
    return "Rossi-7731" in os.read(handle, 100).decode()
"""


@pytest.fixture(scope="module")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    top = tmp_path_factory.mktemp("ground")
    studio, secret = top / "studio", top / "secret.txt"
    studio.mkdir()
    secret.write_text(SECRET, encoding="utf-8")
    (studio / "own.txt").write_text("own", encoding="utf-8")
    (studio / "link").symlink_to(secret)
    (studio / "relative").symlink_to("../secret.txt")
    (studio / "folder").symlink_to("..")
    (studio / "run").write_text("#!/bin/sh\necho OUT\n", encoding="utf-8")
    (studio / "run").chmod(0o755)
    with listeners(studio) as facts:
        yield Ground(studio=studio, secret=secret, facts=facts)


class listeners:  # noqa: N801 - reads as a word
    """Sockets that answer: TCP and UDP on loopback, and Unix ones by name, without a name, and abstract."""

    def __init__(self, studio: Path) -> None:
        self.abstract = f"\0akaion-{os.getpid()}"
        self.path = str(studio / "s")
        self.sockets: list[socket.socket] = []
        self.facts: dict[str, object] = {"abstract": self.abstract}

    def __enter__(self) -> dict[str, object]:
        self.facts["tcp"] = self.listen(socket.AF_INET, ("127.0.0.1", 0))[1]
        self.listen(socket.AF_UNIX, self.path)
        self.listen(socket.AF_UNIX, self.abstract)
        self.facts["udp"] = self.echo(socket.AF_INET, ("127.0.0.1", 0))[1]
        self.echo(socket.AF_UNIX, f"{self.path}d")
        return self.facts

    def listen(self, family: int, address: object) -> tuple[str, int]:
        server = socket.socket(family, socket.SOCK_STREAM)
        server.bind(address)  # type: ignore[arg-type]  # one of two kinds
        server.listen()
        self.sockets.append(server)
        return server.getsockname()  # type: ignore[no-any-return]  # of the kind that was bound

    def echo(self, family: int, address: object) -> tuple[str, int]:
        server = socket.socket(family, socket.SOCK_DGRAM)
        server.bind(address)  # type: ignore[arg-type]  # one of two kinds
        self.sockets.append(server)
        return server.getsockname()  # type: ignore[no-any-return]  # of the kind that was bound

    def __exit__(self, *_: object) -> None:
        for each in self.sockets:
            each.close()


@dataclass(frozen=True, kw_only=True)
class Attempt:
    """One way out: its `code`, the `answer` it gets inside, and whether it is tried `outside` first."""

    name: str
    code: str
    answer: str
    outside: bool = True


def a(name: str, work: str, answer: str, *, before: str = "", outside: bool = True) -> Attempt:
    code = f"{before}\nattempt(lambda: {work})"
    return Attempt(name=name, code=code, answer=answer, outside=outside)


SOCKET = "import socket\ndef sent(s, *what):\n    s.settimeout(5)\n    for w in what: w(s)\n    return True"
FORK = """
def forked():
    import signal
    child = os.fork()
    if not child:
        {child}
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return True
"""
THREADS = """
import threading
def many():
    stop, made = threading.Event(), []
    try:
        for _ in range(2000):
            made.append(threading.Thread(target=stop.wait))
            made[-1].start()
    finally:
        stop.set()
    return True
"""
FILL = """
def filled():
    for number in range(64):
        with open(f"{where}/fill{number}", "wb") as file:
            file.write(bytes(1 << 20))
    return True
"""
TWIN = """
def named():
    os.link(F['studio'] + '/own.txt', F['studio'] + '/twin')
    os.unlink(F['studio'] + '/twin')
"""
FILES = [
    a("a file by its path", "holds(F['secret'])", "ENOENT"),
    a("a file by .. from the folder", "holds(F['studio'] + '/../secret.txt')", "ENOENT"),
    a("a file by .. from the current folder", "os.chdir(F['studio']) or holds('../secret.txt')", "ENOENT"),
    a("a link to a file", "holds(F['studio'] + '/link')", "ENOENT"),
    a("a relative link", "holds(F['studio'] + '/relative')", "ENOENT"),
    a("a link to a folder above", "holds(F['studio'] + '/folder/secret.txt')", "ENOENT"),
    a("the file of users", "open('/etc/passwd').read()", "ENOENT"),
    a("the folders of users", "os.listdir('/home') or True", "ENOENT"),
    a("other files in /tmp", "os.listdir('/tmp')", "nothing"),
    a("devices", "os.stat('/dev/full')", "ENOENT"),
    a("the terminal", "os.open('/dev/tty', os.O_RDWR)", "ENOENT", outside=False),
    a("shared memory by name", "os.listdir('/dev/shm') or True", "ENOENT"),
    a("what the kernel tells in /sys", "os.listdir('/sys')", "ENOENT"),
    a("writing where it reads", "open(F['studio'] + '/new', 'w')", "EROFS"),
    a("changing a granted file", "open(F['studio'] + '/own.txt', 'a')", "EROFS"),
    a("removing a granted file", "os.unlink(F['studio'] + '/new') or True", "EROFS"),
    a("changing the mode of a file", "os.chmod(F['studio'] + '/own.txt', 0o644) or True", "EROFS"),
    a("changing the times of a file", "os.utime(F['studio'] + '/own.txt') or True", "EROFS"),
    a("a second name for a file", "named() or True", "EROFS", before=TWIN),
    a("writing at the top", "open('/made', 'w')", "EROFS", outside=False),
    a("changing a library", "open(json.__file__, 'r+b')", "EROFS", outside=False),
    a("a device of its own", "os.mknod('/tmp/d', 0o60600, os.makedev(8, 0))", "EPERM", outside=False),
    a("a shell", "os.execv('/bin/sh', ['sh', '-c', 'echo OUT'])", "ENOENT"),
    a("a script in the folder", "os.execv(F['studio'] + '/run', ['run'])", "ENOENT"),
    a("a program that is set-uid", "os.stat('/usr/bin/su')", "ENOENT", outside=Path("/usr/bin/su").exists()),
]  # fmt: skip
PROCESSES = [
    a("its own variables in /proc", "'PATH' in open('/proc/self/environ').read()", "ENOENT"),
    a("the variables of who started it", "open(f\"/proc/{F['pid']}/environ\").read()", "ENOENT"),
    a("the files of who started it", "os.listdir(f\"/proc/{F['pid']}/cwd\")", "ENOENT"),
    a("the root of the first process", "os.listdir('/proc/1/root')", "ENOENT", outside=False),
    a("its own open files in /proc", "os.listdir('/proc/self/fd')", "ENOENT"),
    a("a signal to who started it", "os.kill(F['pid'], 0) or True", "ESRCH"),
    a("the variables of the practice", "'TOKEN_OF_THE_PRACTICE' in os.environ", "nothing"),
    a("an open file", "any(opened(n) for n in range(3, 256))", "nothing",
      before="def opened(n):\n    try: os.fstat(n)\n    except OSError: return False\n    return True"),
    a("a folder handle, and .. from it", "any(up(n) for n in range(3, 256))", "nothing",
      before="def up(n):\n try: return holds('../secret.txt', dir_fd=n)\n except OSError: return False"),
    a("a second process", "forked()", "EPERM", before=FORK.format(child="os._exit(0)")),
    a("a child that sleeps on", "forked()", "EPERM",
      before=FORK.format(child="os.setsid(); import time; time.sleep(60)")),
    a("a process by vfork and exec", "subprocess.run([sys.executable, '-c', ''])", "EPERM",
      before="import subprocess"),
    a("a process by posix_spawn", "os.posix_spawn(sys.executable, ['python', '-c', ''], {})", "EPERM"),
    a("two thousand threads", "many()", "RuntimeError", before=THREADS, outside=False),
    a("more open files", "[os.open('/dev/null', 0) for _ in range(300)]", "EMFILE", outside=False),
    a("three gigabytes", "len(bytearray(3 << 30))", "MemoryError", outside=False),
    a("higher limits", "limit(resource.RLIMIT_NOFILE, (4096, 4096)) or True", "ValueError", outside=False,
      before="import resource\nlimit = resource.setrlimit"),
    a("another user", "os.setuid(0) or True", "EINVAL", outside=os.getuid() == 0),
    a("another group", "os.setgroups([0]) or True", "EPERM", outside=os.getuid() == 0),
    a("a file that is too large", "open('/tmp/large', 'wb').write(bytes(17 << 20))", "EFBIG", outside=False),
    a("a full disk", "filled()", "ENOSPC", before="where = '/tmp'" + FILL, outside=False),
]  # fmt: skip
NETWORK = [
    a("TCP", "sent(socket.create_connection(('127.0.0.1', F['tcp'])))", "EPERM", before=SOCKET),
    a("UDP", "sent(socket.socket(2, 2), lambda s: s.sendto(b'x', ('127.0.0.1', F['udp'])))", "EPERM",
      before=SOCKET),
    a("a question to a name server", "sent(socket.socket(2, 2), lambda s: s.connect(('127.0.0.1', F['udp'])),"
      "lambda s: s.send(bytes(12) + b'\\x04leak\\0\\0\\x01\\0\\x01'))", "EPERM", before=SOCKET),
    a("TCP over IPv6", "sent(socket.socket(10))", "EPERM", before=SOCKET, outside=False),
    a("TCP in several paths", "sent(socket.socket(2, 1, 262))", "EPERM", before=SOCKET, outside=False),
    a("a Unix socket in the folder", "sent(socket.socket(1), lambda s: s.connect(F['studio'] + '/s'))",
      "EPERM", before=SOCKET),
    a("a Unix socket of messages", "sent(socket.socket(1, 2), lambda s: s.sendto(b'x', F['studio'] + '/sd'))",
      "EPERM", before=SOCKET),
    a("an abstract Unix socket", "sent(socket.socket(1), lambda s: s.connect(F['abstract']))", "EPERM",
      before=SOCKET),
    a("a pair of sockets", "sent(socket.socketpair()[0])", "EPERM", before=SOCKET),
    a("the kernel's own sockets", "sent(socket.socket(socket.AF_NETLINK, 3))", "EPERM", before=SOCKET),
    a("raw packets", "sent(socket.socket(17, 3))", "EPERM", before=SOCKET, outside=False),
    a("raw ICMP", "sent(socket.socket(2, 3, 1))", "EPERM", before=SOCKET, outside=False),
    a("sockets to the host of a machine", "sent(socket.socket(40))", "EPERM", before=SOCKET, outside=False),
    a("sockets for ciphers", "sent(socket.socket(38, 5))", "EPERM", before=SOCKET, outside=False),
    a("a name", "socket.getaddrinfo('localhost', 80)", "gaierror", before="import socket"),
]  # fmt: skip


@pytest.mark.parametrize("attempt", [*FILES, *PROCESSES, *NETWORK], ids=lambda attempt: attempt.name)
def test_p2_no_way_out_is_found(ground: Ground, attempt: Attempt) -> None:
    left_open = os.open(ground.studio, os.O_RDONLY)
    os.set_inheritable(left_open, True)
    try:
        if attempt.outside:
            assert ground.outside(attempt.code) == "OUT", "the attempt proves nothing"
        assert ground.inside(attempt.code) == attempt.answer
    finally:
        os.close(left_open)
        (ground.studio / "new").touch()


# --- system calls -----------------------------------------------------------------------------------------

X86, ARM = platform.machine() == "x86_64", platform.machine() == "aarch64"
CALLS = {  # name: (number on x86_64, on aarch64, arguments, whether it is tried outside, where it succeeds)
    "io_uring_setup": (425, 425, (1, "page"), False),
    "io_uring_enter": (426, 426, (-1, 0, 0, 0, 0, 0), False),
    "io_uring_register": (427, 427, (-1, 0, 0, 0), False),
    "ptrace": (101, 117, (0, 0, 0, 0), True),
    "process_vm_readv": (310, 270, ("self", "page", 0, "page", 0, 0), True),
    "process_vm_writev": (311, 271, ("self", "page", 0, "page", 0, 0), True),
    "process_madvise": (440, 440, (-1, 0, 0, 0, 0), False),
    "kcmp": (312, 272, ("self", "self", 0, 0, 0), False),
    "pidfd_open": (434, 434, ("self", 0), True),
    "pidfd_getfd": (438, 438, (-1, 0, 0), False),
    "pidfd_send_signal": (424, 424, (-1, 0, 0, 0), False),
    "keyctl": (250, 219, (0, -3, 1), False),
    "add_key": (248, 217, ("page", "page", 0, 0, -3), False),
    "request_key": (249, 218, ("page", "page", 0, -3), False),
    "bpf": (321, 280, (0, "page", 72), False),
    "userfaultfd": (323, 282, (1,), False),
    "perf_event_open": (298, 241, ("page", 0, -1, -1, 0), False),
    "memfd_create": (319, 279, ("page", 0), True),
    "memfd_secret": (447, 447, (0,), False),
    "execveat": (322, 281, (-1, "page", 0, 0, 0x1000), False),
    "name_to_handle_at": (303, 264, (-100, "page", "page", "page", 0), False),
    "open_by_handle_at": (304, 265, (-1, "page", 0), False),
    "unshare": (272, 97, (0x10000000,), False),
    "setns": (308, 268, (-1, 0), False),
    "mount": (165, 40, ("page", "page", "page", 4096, 0), False),
    "umount2": (166, 39, ("page", 0), False),
    "pivot_root": (155, 41, ("page", "page"), False),
    "chroot": (161, 51, ("page",), False),
    "open_tree": (428, 428, (-100, "page", 0), False),
    "move_mount": (429, 429, (-1, "page", -1, "page", 0), False),
    "fsopen": (430, 430, ("page", 0), False),
    "fsmount": (432, 432, (-1, 0, 0), False),
    "mount_setattr": (442, 442, (-1, "page", 0, "page", 32), False),
    "kexec_load": (246, 104, (0, 0, 0, 0), False),
    "kexec_file_load": (320, 294, (-1, -1, 0, "page", 0), False),
    "init_module": (175, 105, ("page", 0, "page"), False),
    "finit_module": (313, 273, (-1, "page", 0), False),
    "delete_module": (176, 106, ("page", 0), False),
    "reboot": (169, 142, (0, 0, 0, 0), False),
    "swapon": (167, 224, ("page", 0), False),
    "acct": (163, 89, ("page",), False),
    "syslog": (103, 116, (2, "page", 0), False),
    "quotactl": (179, 60, (0, "page", 0, "page"), False),
    "clock_settime": (227, 112, (0, "page"), False),
    "sethostname": (170, 161, ("page", 0), False),
    "personality": (135, 92, (0xFFFFFFFF,), True),
    "fanotify_init": (300, 262, (0, 0), False),
    "shmget": (29, 194, (0, 4096, 0o1600), True),
    "semget": (64, 190, (0, 1, 0o1600), False),
    "msgget": (68, 186, (0, 0o1600), False),
    "mq_open": (240, 180, ("page", 0, 0, 0), False),
    "move_pages": (279, 239, (0, 0, 0, 0, 0, 0), False),
    "clone, a new process": (56, 220, (17, 0, 0, 0, 0), False),
    "clone, new namespaces": (56, 220, (0x7E020000 | 17, 0, 0, 0, 0), False),
    "ioctl, typing into a terminal": (16, 29, (0, 0x5412, "page"), False),
    "ioctl, with bits above": (16, 29, (0, 0x5412 | 1 << 40, "page"), False),
}
UNKNOWN = {
    "clone3": (435, 435, ("page", 88), False),
    "a call of a later kernel": (463, 463, (0,), False),
    "io_uring_setup by the second numbering": (425 | 1 << 30, 425 | 1 << 30, (1, "page"), False),
}
ASKING = """
import ctypes, errno
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
page = ctypes.create_string_buffer(4096)
def ask(number, arguments):
    named = {"page": ctypes.addressof(page), "self": os.getpid()}
    words = [ctypes.c_long(named.get(each, each)) for each in arguments]
    answer = libc.syscall(ctypes.c_long(number), *words)
    return "ok" if answer >= 0 else errno.errorcode[ctypes.get_errno()]
"""


def asked(calls: dict[str, tuple[int, int, tuple[object, ...], bool]]) -> str:
    numbered = {name: (call[0] if X86 else call[1], call[2]) for name, call in calls.items()}
    return f"{ASKING}\nprint(json.dumps({{n: ask(*c) for n, c in {numbered!r}.items()}}))"


@pytest.fixture(scope="module")
def answers(ground: Ground) -> dict[str, str]:
    found: dict[str, str] = json.loads(ground.inside(asked({**CALLS, **UNKNOWN})))
    return found


@pytest.fixture(scope="module")
def outside(ground: Ground) -> dict[str, str]:
    found: dict[str, str] = json.loads(
        ground.outside(asked({name: call for name, call in CALLS.items() if call[3]}))
    )
    return found


@pytest.mark.skipif(not (X86 or ARM), reason="numbers of this machine's calls are not listed here")
@pytest.mark.parametrize("name", CALLS)
def test_p2_a_call_that_no_program_needs_is_refused(
    answers: dict[str, str], outside: dict[str, str], name: str
) -> None:
    if CALLS[name][3]:
        assert outside[name] == "ok", "the attempt proves nothing"
    assert answers[name] == "EPERM"


@pytest.mark.parametrize("name", UNKNOWN)
def test_p2_a_call_whose_flags_cannot_be_seen_or_that_is_too_new_is_not_there(
    answers: dict[str, str], name: str
) -> None:
    assert answers[name] == "ENOSYS"


def test_p2_a_call_of_another_architecture_ends_the_program(ground: Ground) -> None:
    """`int 0x80` on x86_64 reaches the table of 32 bits, where 359 is socket."""
    if not X86:
        pytest.skip("there is no second table on this machine")
    code = """
import ctypes, mmap
text = bytes.fromhex("b867010000bb02000000b902000000ba00000000cd80c3")
page = mmap.mmap(-1, 4096, prot=7)
page.write(text)
print(ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))())
"""
    assert int(ground.outside(code)) > 0, "the attempt proves nothing"
    ran = ground.ran(code)
    assert (ran.status, ran.output) == (128 + 31, b"")  # SIGSYS


# --- what is there ----------------------------------------------------------------------------------------


def test_p2_nothing_is_there_but_what_the_job_names(ground: Ground) -> None:
    top, granted, dev, names = json.loads(
        ground.inside(
            "print(json.dumps([sorted(os.listdir(p)) for p in ('/', '/granted', '/dev', '/usr/bin')]))"
            if Path("/usr/bin") in PYTHON.parents
            else "print(json.dumps([*(sorted(os.listdir(p)) for p in ('/', '/granted', '/dev')), []]))"
        )
    )
    assert granted == ["studio"]
    assert dev == ["null"]
    assert {"proc", "sys", "home", "run", "var", "boot"}.isdisjoint({*top} - {PYTHON.parts[1]})
    assert names in ([], [PYTHON.name])


def test_i5_the_environment_is_the_fixed_one(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    """LD_PRELOAD, GIT_EXTERNAL_DIFF, tokens: what this process has, a program does not."""
    for name in ("LD_PRELOAD", "LD_LIBRARY_PATH", "GIT_EXTERNAL_DIFF", "PYTHONPATH", "HTTPS_PROXY"):
        monkeypatch.setenv(name, "")
    found = json.loads(ground.inside("print(json.dumps(dict(os.environ)))"))
    assert {name: value for name, value in found.items() if name not in {"PWD", "LC_CTYPE"}} == ENVIRONMENT


def test_p2_no_right_can_be_won_inside(ground: Ground) -> None:
    """No new privileges by exec, no capability, nobody's user, nothing set-uid in what is shown."""
    code = """
import ctypes
libc = ctypes.CDLL(None)
caps = [libc.prctl(23, n, 0, 0, 0) for n in range(41)]
mounts = [bool(os.statvfs(p).f_flag & 2) for p in ("/", "/granted/studio", "/tmp")]
print(json.dumps([libc.prctl(39, 0, 0, 0, 0), max(caps), os.getuid(), os.getgid(), mounts]))
"""
    assert json.loads(ground.inside(code)) == [1, 0, 65534, 65534, [True, True, True]]
    assert ground.inside("print(os.getsid(0) == 0)") == "False", "a session of its own: no terminal to signal"


def test_p2_every_limit_is_on_the_program_before_it_starts(ground: Ground) -> None:
    limits = Limits(cpu_s=7, memory_bytes=1 << 30, threads=9, open_files=33, file_bytes=1 << 20)
    code = """
import resource
names = ("CPU", "AS", "NPROC", "NOFILE", "FSIZE", "CORE")
print(json.dumps([resource.getrlimit(getattr(resource, "RLIMIT_" + name)) for name in names]))
"""
    wanted = [7, 1 << 30, 9, 33, 1 << 20, 0]
    assert json.loads(ground.inside(code, limits)) == [[each, each] for each in wanted]


@pytest.mark.parametrize("fault", ["a folder that is gone", "walls that make no sense"])
def test_p3_what_cannot_be_walled_in_is_not_started(tmp_path: Path, fault: str) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    handle = os.open(folder, os.O_RDONLY)
    limits = Limits()
    if fault == "a folder that is gone":
        folder.rmdir()
    else:
        limits = Limits(scratch_bytes=-1)
    granted = [Granted(alias="studio", path=str(folder), handle=handle)]
    job = Job(program=Path("/usr/bin/true"), arguments=[], granted=granted, limits=limits)
    with pytest.raises(SandboxUnavailable, match="cannot build a sandbox"):
        Bubblewrap().run(job)
    os.close(handle)


NS_GET_PARENT = 0xB702
"""Asks of a user namespace which one it was made in: one that may make no further one (ioctl_ns(2))."""


def test_p2_each_namespace_is_its_own() -> None:
    """The filter leaves nothing to ask them with from inside, so they are looked at from outside."""
    seconds = f"78.{os.getpid()}"
    asleep = f"/usr/bin/sleep\0{seconds}\0"
    job = Job(program=Path("/usr/bin/sleep"), arguments=[seconds], limits=Limits())
    started = threading.Thread(target=Bubblewrap().run, args=(job,))
    started.start()
    found: list[Path] = []

    def is_there() -> bool:
        found.extend(entry.parent for entry in Path("/proc").glob("[0-9]*/cmdline") if reads(entry) == asleep)
        return bool(found)

    assert comes_true(is_there)
    kinds = ("net", "pid", "mnt", "ipc", "uts", "user", "cgroup")
    theirs = {kind: str((found[0] / "ns" / kind).readlink()) for kind in kinds}
    ours = {kind: str(Path("/proc/self/ns", kind).readlink()) for kind in kinds}
    with (found[0] / "ns" / "user").open("rb") as user, os.fdopen(fcntl.ioctl(user, NS_GET_PARENT)) as above:
        theirs["user above"], ours["user above"] = f"user:[{os.fstat(above.fileno()).st_ino}]", ours["user"]
    assert [kind for kind in theirs if theirs[kind] == ours[kind]] == []
    os.kill(int(found[0].name), signal.SIGKILL)
    started.join()


def test_p2_a_folder_that_is_swapped_for_a_link_is_not_followed(ground: Ground, tmp_path: Path) -> None:
    """What is shown is what the handle was opened on, whatever stands at its path by then."""
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "own.txt").write_text("own", encoding="utf-8")
    handle = os.open(folder, os.O_RDONLY)
    folder.rename(tmp_path / "old")
    folder.symlink_to(ground.secret.parent)
    granted = Granted(alias="studio", path=str(folder), handle=handle)
    job = Job(program=Path("/usr/bin/ls"), arguments=["studio"], granted=[granted])
    assert Bubblewrap().run(job).output == b"own.txt\n"
    os.close(handle)


# --- its end ----------------------------------------------------------------------------------------------


DEAF = """
import signal, time
for number in range(1, 32):
    try: signal.signal(number, 1)
    except OSError: pass
while True:
    try: time.sleep(9)
    except BaseException: pass
"""


def gone(mark: str) -> bool:
    """Whether no process of this machine has `mark` in its arguments."""
    return not any(mark in text for text in _arguments())


def _arguments() -> Iterator[str]:
    yield from map(reads, Path("/proc").glob("[0-9]*/cmdline"))


def reads(entry: Path) -> str:
    """What stands at `entry`, nothing where its process is gone by then."""
    try:
        return entry.read_text(errors="replace")
    except OSError:
        return ""


@pytest.mark.parametrize(
    ("code", "limits", "late", "cut"),
    [
        ("import time; time.sleep(99)", Limits(wall_s=0.6), True, False),
        (DEAF, Limits(wall_s=0.6), True, False),
        ("while True: print('x' * 9999)", Limits(output_bytes=4096), False, True),
    ],
    ids=["sleeping", "deaf to signals", "talking"],
)  # fmt: skip
def test_p2_a_program_is_ended_and_nothing_of_it_is_left(
    ground: Ground, code: str, limits: Limits, late: bool, cut: bool
) -> None:
    mark = f"mark{os.urandom(8).hex()}"
    ran = ground.ran(f"# {mark}\n{code}", limits)
    assert (ran.status, ran.late, ran.cut) == (KILLED, late, cut)
    assert len(ran.output) <= limits.output_bytes
    assert gone(mark)


def test_p2_a_program_that_only_computes_is_ended_by_its_processor_time(ground: Ground) -> None:
    ran = ground.ran("while True: pass", Limits(cpu_s=1, wall_s=ALARM_S))
    assert ran.status in {128 + 9, 128 + 24}
    assert not ran.late


def test_p2_a_program_ends_with_the_runner() -> None:
    """A runner that is killed leaves nothing behind: the kernel ends what it started."""
    seconds = f"77.{os.getpid()}"
    code = (
        "from pathlib import Path; from runner.capability.sandbox.bubblewrap import Bubblewrap;"
        "from runner.capability.sandbox.port import Job;"
        f"Bubblewrap().run(Job(program=Path('/usr/bin/sleep'), arguments=['{seconds}']))"
    )
    with subprocess.Popen([sys.executable, "-c", code]) as runner:
        asleep = f"/usr/bin/sleep\0{seconds}\0"
        assert comes_true(lambda: any(text == asleep for text in _arguments())), "the attempt proves nothing"
        runner.kill()
    assert comes_true(lambda: not any(asleep in text for text in _arguments()))


def comes_true(found: Callable[[], bool]) -> bool:
    """Whether `found` comes true: a guard against hanging, and no measure."""
    alarm = threading.Event()
    return any(found() or alarm.wait(0.02) for _ in range(6000))
