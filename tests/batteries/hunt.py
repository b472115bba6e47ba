# SPDX-License-Identifier: Apache-2.0
"""A program that hunts credentials, in a process of its own that opened a runtime: of a model, and of pages.

Owns every place that is looked at, under a name, and says for each whether one was found there. It never
knows the credentials: it knows the form of one, so nothing here holds what is looked for. Judges nothing: see
`tests/adversarial/test_credential_hunt.py`.

Run: python hunt.py FOLDER URL REFERENCE WORD PORT REFERENCE, with a folder FOLDER/files to grant, the word
that both credentials begin with, which nobody else's on this machine do, the port of pages on loopback, and
their authority in FOLDER/authority.pem; prints one JSON object. With PLANTED in its variables, that stands in
each of the places that are hunted, to see that a hunt finds.
"""

import contextlib
import ctypes
import gc
import io
import ipaddress
import json
import logging
import os
import pickle
import re
import ssl
import subprocess
import sys
import sysconfig
import traceback
import types
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import anyio

from runner import Runtime, open_profile
from runner.capability.sandbox.bubblewrap import Bubblewrap, why_not
from runner.capability.sandbox.port import Granted, Job, Limits
from runner.capability.transport.web import WebTransport
from runner.kernel.errors import RunnerError
from runner.kernel.inference import InferenceRequest
from runner.kernel.messages import Message, Role, ToolCall, ToolSpec
from runner.kernel.ports import ApprovalRequest, Credential, Effect, GrantedCall, ToolOutput
from runner.perimeter.task import Task

WORD: Final = sys.argv[4] if len(sys.argv) > 4 else ""
FORM: Final = re.compile(rb"%s[-][a-z]{24}" % re.escape(WORD.encode()))
MOST: Final = 64 << 20
"""Bytes of memory and of files that are looked at in one go."""
_NO_STATE: Final = (types.ModuleType, type, types.FrameType, types.CodeType)


def holds(*found: object) -> bool:
    """Return whether what is looked for stands in any of `found`, texts or bytes."""
    return any(
        FORM.search(each if isinstance(each, bytes) else str(each).encode("utf-8", "replace"))
        for each in found
    )


def readable(paths: Iterable[Path]) -> Iterator[bytes]:
    """Yield what is in those of `paths` that can be read."""
    for path in paths:
        with contextlib.suppress(OSError), path.open("rb") as file:
            yield file.read(MOST)


def descriptors() -> Iterator[bytes]:
    """Yield what lies behind the open descriptors of this process that are files."""
    for handle in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):
            if handle.resolve().is_file():
                yield os.pread(int(handle.name), MOST, 0)


def child(*command: str) -> bytes:
    """Return what a child process of this one says."""
    return subprocess.run(command, capture_output=True, check=False).stdout


def variables_of_c() -> bytes:
    """Return the variables as the C library has them, which is not as Python does."""
    environ = ctypes.POINTER(ctypes.c_char_p).in_dll(ctypes.CDLL(None), "environ")
    found, number = [], 0
    while environ[number] is not None:
        found.append(environ[number])
        number += 1
    return b"\n".join(found)


def memory() -> Iterator[bytes]:
    """Yield what is in the memory of this process that can be written to."""
    areas = [line.split() for line in Path("/proc/self/maps").read_text(encoding="ascii").splitlines()]
    with Path("/proc/self/mem").open("rb", buffering=0) as file:
        for span, rights, *_ in areas:
            first, last = (int(end, 16) for end in span.split("-"))
            if "w" in rights:
                with contextlib.suppress(OSError, ValueError):
                    file.seek(first)
                    yield file.read(min(last - first, MOST))


def reached(*roots: object, frames: bool = False) -> Iterator[object]:
    """Yield what can be reached from `roots` without a name: no module, and no function's globals."""
    seen: set[int] = set()
    stack: list[object] = list(roots)
    while stack:
        each = stack.pop()
        if id(each) in seen or (
            isinstance(each, _NO_STATE) and not (frames and isinstance(each, types.FrameType))
        ):
            continue
        seen.add(id(each))
        yield each
        match each:
            case types.FunctionType():
                stack += [each.__closure__, each.__defaults__, each.__kwdefaults__, each.__dict__]
            case types.FrameType():
                stack += [each.f_locals, each.f_back]
            case _:
                stack += gc.get_referents(each)


def strings(found: Iterable[object]) -> Iterator[object]:
    """Yield the texts and bytes among `found`."""
    return (each for each in found if isinstance(each, str | bytes))


def runners_own() -> list[object]:
    """Return every object of the runner that this process has."""
    return [each for each in gc.get_objects() if type(each).__module__.startswith("runner.")]


def reprs(found: Iterable[object]) -> Iterator[str]:
    """Yield what `found` show of themselves."""
    for each in found:
        with contextlib.suppress(Exception):
            yield f"{each!r} {each}"


def pickles(found: Iterable[object]) -> Iterator[bytes]:
    """Yield what those of `found` come to that can be written down."""
    for each in found:
        with contextlib.suppress(Exception):
            yield pickle.dumps(each)


class Hunter:
    """A host tool: runs one hunt, by its name, and says only whether it found."""

    effect: Final = Effect.HOST
    path_arguments: Final[frozenset[str]] = frozenset()
    spec: Final = ToolSpec(
        name="hunt",
        description="Hunt.",
        parameters={
            "type": "object",
            "properties": {"where": {"type": "string"}},
            "required": ["where"],
            "additionalProperties": False,
        },
    )

    def __init__(self) -> None:
        """Find nothing yet."""
        self.found: dict[str, bool] = {}
        self.planted = os.environ.get("PLANTED")
        self.spoken = None if self.planted is None else Credential(header=self.planted, value="")

    def run(self, call: GrantedCall) -> ToolOutput:
        """Hunt where the call says; raise what a hunt named so raises."""
        where = str(call.arguments["where"])
        if where == "an error of a tool":
            raise ValueError(list(reprs(runners_own())))
        self.found[where] = HUNTS[where](self, call)
        return ToolOutput(text="hunted")


Hunt = Callable[[Hunter, GrantedCall], bool]
HUNTS: Final[dict[str, Hunt]] = {
    "os.environ": lambda *_: holds(dict(os.environ), dict(os.environb)),
    "variables of the C library": lambda *_: holds(variables_of_c()),
    "/proc/self/environ": lambda *_: holds(*readable([Path("/proc/self/environ")])),
    "/proc/*/environ": lambda *_: holds(*readable(Path("/proc").glob("[0-9]*/environ"))),
    "/proc/*/cmdline": lambda *_: holds(*readable(Path("/proc").glob("[0-9]*/cmdline"))),
    "open descriptors": lambda *_: holds(*descriptors()),
    "variables of a child": lambda *_: holds(child("env")),
    "variables of a shell": lambda *_: holds(
        child("sh", "-c", "set; cat /proc/$$/environ /proc/$PPID/environ")
    ),
    "what the call and the tool reach": lambda hunter, call: holds(*strings(reached(call, hunter))),
    "reprs of all that is the runner's": lambda *_: holds(*reprs(runners_own())),
    # what follows needs Python of the attacker's own in this process: ADR 0005
    "LIMIT frames": lambda *_: holds(*strings(reached(*sys._current_frames().values(), frames=True))),
    "LIMIT garbage collector": lambda *_: holds(
        *(each.value for each in gc.get_objects() if isinstance(each, Credential))
    ),
    "LIMIT memory": lambda *_: holds(*memory()),
}


class Person:
    """Says yes, and keeps what was shown."""

    name: Final = "user"

    def __init__(self) -> None:
        """Nobody has asked yet."""
        self.shown: list[str] = []

    async def approve(self, request: ApprovalRequest) -> bool:
        """Keep the question, and say yes."""
        self.shown.append(request.rendering)
        return True


def addresses(folder: Path) -> list[str]:
    """Return addresses at which the file may be read, or the server be asked that gets the credential."""
    server = sys.argv[2].removeprefix("http://")
    return [
        f"file://{folder}/keys/token",
        f"http://{server}/",
        f"http://localhost:{server.rpartition(':')[2]}/",
        f"http://a.example@{server}/",
        "http://a.example:bad/",
    ]


PAGES: Final = ("/hello", "/echo", "/error", "/away", "/carried", "/nothing")
"""What the host of pages is asked for with its credential: see the test for what it answers."""


def page_at(path: str) -> str:
    """Return the address of `path` on the host of pages."""
    return f"https://a.example:{sys.argv[5]}{path}"


async def loopback(_: object) -> tuple[ipaddress.IPv4Address | ipaddress.IPv6Address, ...]:
    """Return what every name means."""
    return (ipaddress.IPv4Address("127.0.0.1"),)


def shipped_attempts(folder: Path) -> list[tuple[str, dict[str, Any]]]:
    """Return calls of each shipped tool that would bring the file of the credential, or find it."""
    places = ["files/link", "files/hard", "files/../keys/token", "keys/token", str(folder / "keys" / "token")]
    places += ["files/up/keys/token", "files/proc/environ", "/proc/self/environ", "files/./../keys/token"]
    argvs = [["cat", place] for place in places]
    argvs += [["grep", "-r", WORD, place] for place in (".", "files", "/", "/proc", "..")]
    argvs += [["find", place, "-name", "token"] for place in (".", "/", "..")]
    return [
        *((tool, {"path": place}) for tool in ("read_file", "read_document") for place in places),
        *(("search_documents", {"query": WORD, "path": place}) for place in [*places, ".", "files"]),
        *(("search_text", {"query": WORD, "path": place}) for place in [*places, ".", "files"]),
        *(("list_dir", {"path": place}) for place in [*places, "files/up", "files/proc"]),
        *(("shell", {"argv": argv}) for argv in argvs),
        *(("web_fetch", {"url": url}) for url in addresses(folder)),
        ("search_text", {"query": os.environ.get("PLANTED", WORD)}),
    ]


INSIDE: Final = """
import glob, os, re, sys
form = re.compile(re.escape(sys.argv[2].encode()) + rb"[-][a-z]{24}")
def read(path):
    try:
        with open(path, "rb") as file:
            return file.read(1 << 20)
    except OSError:
        return b""
names = ("environ", "cmdline", "mem", "fd/*", "root/keys/*")
places = [each for name in names for each in glob.glob(f"/proc/*/{name}")]
places += [*glob.glob(sys.argv[1] + "/*"), *glob.glob("/granted/*/*"), *glob.glob("/granted/*/*/*")]
found = [repr(dict(os.environb)).encode(), *map(read, places)]
print("FOUND" if any(map(form.search, found)) else "nothing")
"""


def in_a_sandbox(folder: Path) -> bool | None:
    """Return whether a hostile program in the sandbox found it; None where there is no sandbox."""
    if why_not() is not None:
        return None
    handle = os.open(folder / "files", os.O_RDONLY | os.O_DIRECTORY)
    try:
        job = Job(
            program=Path(sys.executable).resolve(),
            arguments=["-I", "-S", "-c", INSIDE, str(folder / "keys"), WORD],
            granted=[Granted(alias="files", path=str(folder / "files"), handle=handle)],
            data=(Path(sysconfig.get_path("stdlib")),),
            limits=Limits(),
        )
        said = Bubblewrap().run(job).output.decode().strip()
    finally:
        os.close(handle)
    if said not in {"FOUND", "nothing"}:
        raise RuntimeError(said)
    return said == "FOUND"


async def said_of(rt: Runtime, task: Task, calls: Iterable[tuple[str, dict[str, Any]]]) -> list[str]:
    """Return all that a model would be told about `calls`, and what it is made of."""
    said: list[str] = []
    for tool, arguments in calls:
        reply = await rt.tools.call(ToolCall(tool=tool, arguments=arguments, origin=task.goal), task=task)
        said += [reply.block.text, repr(reply), *(each.text for each in reply.excerpts)]
    return said


async def read_pages(rt: Runtime, task: Task) -> tuple[list[str], list[str]]:
    """Return what came of each page, and all that a model would be told about it."""
    ends, said = [], list[str]()
    for path in PAGES:
        call = ToolCall(tool="web_fetch", arguments={"url": page_at(path)}, origin=task.goal)
        reply = await rt.tools.call(call, task=task)
        ends.append(reply.rule or reply.status)
        said += [reply.block.text, repr(reply), *(each.text for each in reply.excerpts)]
    return ends, said


async def asked(rt: Runtime, task: Task) -> str:
    """Ask the remote model; return what is raised, with every frame and its locals."""
    message = Message(role=Role.USER, blocks=(task.goal,))
    planted = os.environ.get("PLANTED")
    logging.getLogger("hunt").debug("%s", planted)
    try:
        await rt.client_for("remote").infer(InferenceRequest(messages=(message,)), task=task)
    except RunnerError as error:
        shown = traceback.TracebackException.from_exception(error, capture_locals=True)
        return "".join(shown.format()) + repr(error) + repr(error.__context__) + repr(vars(error))
    return "answered"


async def work(
    rt: Runtime, folder: Path, hunter: Hunter, person: Person, said: io.StringIO
) -> dict[str, Any]:
    """Use the credential, then hunt everywhere; return what was found where."""
    with rt.client_for("remote").task(f"Good morning. See {' '.join(map(page_at, PAGES))}") as task:
        raised = [await asked(rt, task) for _ in range(5)]  # an answer, a redirect, two errors, and no reply
        ends, pages = await read_pages(rt, task)
        (folder / "files" / "link").symlink_to(folder / "keys" / "token")
        (folder / "files" / "up").symlink_to("..")
        (folder / "files" / "proc").symlink_to("/proc/self")
        own = await said_of(
            rt, task, [("hunt", {"where": where}) for where in [*HUNTS, "an error of a tool"]]
        )
        replies = own + await said_of(rt, task, shipped_attempts(folder))
        sandboxed = in_a_sandbox(folder)
        with contextlib.suppress(FileNotFoundError):
            os.link(folder / "keys" / "token", folder / "files" / "hard")
        attempts = shipped_attempts(folder)
        by_files = await said_of(rt, task, [each for each in attempts if each[0] != "shell"])
        by_shell = await said_of(rt, task, [each for each in attempts if each[0] == "shell"])
    held = [rt, rt.perimeter, rt.tools, rt.client_for("remote"), task]
    parts = [part for each in (rt, rt.perimeter) for part in vars(each).values()]
    tools = [each for each in runners_own() if type(each).__module__.startswith("runner.capability.tools")]
    return {
        **hunter.found,
        "what the shipped tools reach": holds(*strings(reached(*tools))),
        "replies of tools": holds(*replies),
        "pages": holds(*pages, hunter.planted),
        "pickles of what a program holds": holds(*pickles([*held, *parts, hunter.planted])),
        "a second name, by the file tools": holds(*by_files),
        "LIMIT a second name, by a program": holds(*by_shell),
        "exceptions with their locals": holds(*raised),
        "logs": holds(said.getvalue()),
        "questions to a person": holds(*person.shown),
        "a program in the sandbox": sandboxed,
        "REPLIES": ["answered" if each == "answered" else "raised" for each in raised],
        "PAGES": ends,
        "ASKED": len(person.shown),
        "LIMIT open()": holds(*readable([folder / "keys" / "token"])),
    }


def main() -> None:
    """Open a runtime as the arguments say, hunt, and print."""
    folder, url, reference = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
    said = io.StringIO()
    logging.basicConfig(stream=said, level=logging.DEBUG)
    hunter, person = Hunter(), Person()
    paths = [str(folder / "files")]
    programs: list[dict[str, Any]] = [
        {"tool": "shell", "commands": ["cat", "grep", "find"]},
        {"tool": "read_document"},
    ]
    confined = [] if why_not() else [{**each, "paths": paths} for each in programs]
    grants = [
        *({"tool": tool, "paths": paths} for tool in ("read_file", "list_dir", "search_documents")),
        {"tool": "search_text", "paths": paths, "approval": "ask"},
        *confined,
        {
            "tool": "web_fetch",
            "hosts": [
                "a.example",
                {"host": "a.example", "port": int(sys.argv[5]), "credential": sys.argv[6]},
                {"host": "b.example", "port": int(sys.argv[5])},
            ],
            "reads": {"class": "C0"},
            "sink": {"to": "network", "max_class": "C1"},
        },
        {"tool": "hunt", "trusted": True},
    ]
    remote = {
        "backend": "openai",
        "endpoint": url,
        "model": "m",
        "tier": "constrained",
        "credential": reference,
    }
    with open_profile(
        "attached",
        tools=[hunter],
        approver=person,
        policy={"grants": grants},
        perimeter={"max_egress_class": "C1"},
        inference={"prefer": "remote", "local": None, "remote": remote},
    ) as rt:
        trust = ssl.create_default_context(cafile=folder / "authority.pem")
        transport = WebTransport(5.0, tls=trust, resolver=loopback, admits=lambda _: True)
        if rt.perimeter.outlet is not None:
            rt.perimeter.outlet = replace(rt.perimeter.outlet, transport=transport)
        found = anyio.run(work, rt, folder, hunter, person, said)
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main()
