# SPDX-License-Identifier: Apache-2.0
"""The verdict on a book, as the standalone verifier gives it.

Owns running that program as a process of its own: it shares no code with the runner and none with this, so
what it says is worth something. Leaves what it means to it. Carries I4: nothing here calls a book verified.
"""

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, get_args

from runner.kernel.errors import TraceError

PROGRAM: Final = "akaion_verify.py"
Word: TypeAlias = Literal["PASS", "UNVERIFIABLE", "PARTIAL", "INCOMPLETE", "UNTRUSTED", "FAIL"]
_EACH: Final = """
import contextlib, io, sys
sys.path.insert(0, sys.argv[1])
import akaion_verify
for path in sys.stdin:
    with contextlib.redirect_stdout(io.StringIO()):
        code = akaion_verify.main(["check", path.rstrip("\\n"), *sys.argv[2:]])
    print(code, flush=True)
"""
"""What asks the verifier about one proof after the other, without starting it anew for each."""
_REINSTALL: Final = "Fix: run akaion-verify itself to see why, or install the runner again"
DOUBTED: Final[frozenset[Word]] = frozenset({"FAIL", "UNTRUSTED"})
"""The verdicts under which no line counts as verified."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """The last seal that held: its log, and the first `size` lines of it, whose root in hex is `root`."""

    log: int
    size: int
    root: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """Why a verdict is not PASS, and the first log and line where it shows, if at one."""

    code: str
    log: int | None
    seq: int | None

    def __str__(self) -> str:
        log = "" if self.log is None else f", log {self.log}"
        return f"{self.code}{log}" + ("" if self.seq is None else f", seq {self.seq}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What the verifier said: `word`, the `exit` that stands for it, the reasons, and how far it holds.

    `report` is the whole of it, as `--json` prints it.
    """

    word: Word
    exit: int
    reasons: tuple[Reason, ...]
    seen: Seen | None
    report: Mapping[str, Any] = field(repr=False)

    @property
    def holds(self) -> bool:
        """Whether lines up to `seen` count as verified: nothing failed, and a pinned key vouches for them."""
        return self.word not in DOUBTED


def verifier() -> Path:
    """Return the verifier's file: beside the packaged runner, or in the tree it is developed in."""
    inside = resources.files("runner") / "verify" / PROGRAM
    if isinstance(inside, Path) and inside.is_file():
        return inside
    return Path(__file__).parents[4] / "verify" / PROGRAM


def verify(
    folder: Path, pin: Path | None, *, witnesses: Sequence[Path] = (), policies: Sequence[Path] = ()
) -> Verdict:
    """Return the verdict on the book in `folder` under the auditor's `pin`; None is UNTRUSTED at best.

    `witnesses` are files with the keys of witnesses whose cosignatures count, `policies` those by which every
    decision is repeated. Raises `TraceError` when the verifier cannot be run or gives no report.
    """
    options = [] if pin is None else ["--pin", str(pin)]
    options += [word for each in witnesses for word in ("--witness", str(each))]
    options += [word for each in policies for word in ("--policy", str(each))]
    done = ask(["verify", str(folder), "--json", *options])
    try:
        return _parse(json.loads(done.stdout), done.returncode)
    except (ValueError, LookupError, TypeError):
        raise TraceError(f"the verifier gave no report. {_REINSTALL}") from None


def ask(arguments: Sequence[str]) -> subprocess.CompletedProcess[bytes]:
    """Run the verifier, isolated and with nothing but the standard library; raise `TraceError`."""
    command = [sys.executable, "-I", "-S", str(verifier()), *arguments]
    try:
        return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)  # noqa: S603 - our file
    except OSError as error:
        raise TraceError(f"the verifier cannot be run ({error.strerror}). {_REINSTALL}") from None


def check_each(proofs: Sequence[Path], pin: Path | None) -> Iterator[int]:
    """Yield the exit code of `akaion-verify check` for each proof, all in one process of the verifier's.

    Raises `TraceError` when it cannot be run, or stops before the last.
    """
    options = [] if pin is None else ["--pin", str(pin)]
    command = [sys.executable, "-I", "-S", "-c", _EACH, str(verifier().parent), *options]
    try:
        asked = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)  # noqa: S603 - our file
    except OSError as error:
        raise TraceError(f"the verifier cannot be run ({error.strerror}). {_REINSTALL}") from None
    with asked:
        for proof in proofs:
            yield _answer(asked, proof)


def _answer(asked: subprocess.Popen[bytes], proof: Path) -> int:
    if asked.stdin is None or asked.stdout is None:
        raise TraceError(f"the verifier has no streams. {_REINSTALL}")
    try:
        asked.stdin.write(f"{proof}\n".encode())
        asked.stdin.flush()
        return int(asked.stdout.readline())
    except (OSError, ValueError):
        raise TraceError(f"the verifier stopped before the last proof. {_REINSTALL}") from None


def _parse(report: Any, status: int) -> Verdict:  # noqa: ANN401 - JSON, judged here
    word = report["verdict"]
    if word not in get_args(Word) or report["exit"] != status:
        raise ValueError("no verdict")
    reasons = [Reason(code=str(each["code"]), log=each["log"], seq=each["seq"]) for each in report["reasons"]]
    seen = report["seen"]
    return Verdict(
        word=word,
        exit=status,
        reasons=tuple(reasons),
        seen=None if seen is None else Seen(log=seen["log"], size=seen["size"], root=seen["root"]),
        report=report,
    )
