# SPDX-License-Identifier: Apache-2.0
"""The checks of `akaion doctor`: facts about the machine, held against what a profile needs.

Owns grades and fixes. `fail` is only for what the profile needs and does not have; what would be better, or
what another profile would need, is `warn`. Makes nothing on the disk.
"""

import os
import stat
import sys
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Final

from runner.adapters.cli import machine
from runner.adapters.cli.book import read_book
from runner.adapters.cli.check import Check
from runner.adapters.cli.modelneeds import classifier, endpoints, engine, weights
from runner.adapters.cli.profiles import Inspected, inspect, missing_for
from runner.assembly import FINDINGS, Places, custody_of
from runner.capability.documents.kinds import PACKED, family_of
from runner.capability.documents.reader import FILE_BYTES
from runner.capability.home import akaion_home
from runner.capability.tools.beneath import Beneath, decode
from runner.capability.tools.documents import NAME as DOCUMENTS
from runner.capability.tools.listing import Limits, Parts
from runner.capability.tools.shell import NAME as SHELL
from runner.capability.transport.findings import FileFindings
from runner.capability.vault.database import why_no_index
from runner.capability.vault.tool import NAME as SEARCH_DOCUMENTS
from runner.kernel.config import Config
from runner.kernel.errors import ConfigError, ToolError, TraceError
from runner.kernel.language import how_many
from runner.kernel.ports import Root

_LAST_PYTHON: Final = (3, 13)
_NO_SHELL: Final = "remove the grant of the shell tool, or use such a machine"
_READERS: Final = frozenset({DOCUMENTS, SEARCH_DOCUMENTS, SHELL, "read_file", "search_text"})
"""The shipped tools that look into the files of a folder. Of one with another tool nothing is expected."""
_LIST: Final = "list_dir"
_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO


def checks(named: str, *, deep: bool) -> Iterator[Check]:
    """Yield every check of this machine for the profile `named`; `deep` reads weights and hashes them."""
    yield _python()
    profile: Inspected | None = None
    try:
        profile = inspect(named)
        missing_for(named)
    except ConfigError as error:
        see = f"to mend it, see: akaion profile check {named}"
        for mistake in error.mistakes:
            yield Check(name="profile", grade="fail", found=str(mistake), fix=see)
    else:
        yield Check(name="profile", grade="ok", found=f"{profile.source.file} can be used")
        yield from _folders(profile)
        yield classifier(profile)
    yield engine(profile)
    yield from weights(profile, deep=deep)
    yield from endpoints(profile)
    yield from _sandbox(profile)
    yield _index(profile)
    yield _openat2()
    if profile is not None:
        yield _behaviour(profile, named)
        yield _key(profile.config, profile.places)
        yield _trace(profile.places)


def _python() -> Check:
    version, wanted = sys.version_info[:3], "3.11 to 3.13"
    found = ".".join(map(str, version))
    if version[:2] > _LAST_PYTHON:
        return Check(name="python", grade="warn", found=found, fix=f"this release is tested on {wanted}")
    return Check(name="python", grade="ok", found=found)


def _folders(profile: Inspected) -> Iterator[Check]:
    """Yield a check for each folder that the grants name, by the tools that each is granted to."""
    tools: dict[str, set[str]] = {}
    for grant in profile.config.policy.grants:
        for entry in grant.paths:
            tools.setdefault(entry.path, set()).add(grant.tool)
    for path, granted in tools.items():
        yield _folder(profile.resolve(path), granted)


def _folder(place: Path, tools: AbstractSet[str]) -> Check:
    name = "granted folder"
    if not os.access(place, os.R_OK):
        fix = "make it readable, or correct policy.grants in the profile"
        return Check(name=name, grade="fail", found=f"{place} cannot be read", fix=fix)
    if not tools & _READERS or tools - _READERS - {_LIST} or _holds_readable(place, tools):
        return Check(name=name, grade="ok", found=str(place))
    found = f"{place} holds no file that {', '.join(sorted(tools & _READERS))} can read"
    fix = "put text files or documents there"
    if DOCUMENTS not in tools:
        fix = f"put text files there, or grant {DOCUMENTS} on it for PDF and Office documents"
    return Check(name=name, grade="warn", found=found, fix=fix)


def _holds_readable(place: Path, tools: AbstractSet[str]) -> bool:
    """Return whether one of `tools` can read a file at or beneath `place`."""
    limits = Limits(file_bytes=FILE_BYTES) if DOCUMENTS in tools else Limits()
    try:
        beneath = Beneath(Root(alias="", path=str(place.resolve())), limits=limits)
        return any(_is_readable(beneath, parts, tools) for parts in beneath.walk())
    except ToolError:
        return False


def _is_readable(beneath: Beneath, parts: Parts, tools: AbstractSet[str]) -> bool:
    """Return whether one of `tools` can read the file at `parts`: a document by its kind, others as text."""
    try:
        data = beneath.data(parts)
        if family_of(data) in PACKED:
            return DOCUMENTS in tools
        return bool(decode(data).text.strip())
    except ToolError:
        return False


# --- system --------------------------------------------------------------------------------------


def _index(profile: Inspected | None) -> Check:
    """Return whether documents can be indexed, which `search_documents` needs."""
    reason = why_no_index()
    if reason is None:
        return Check(name="index", grade="ok", found="SQLite has full-text search (FTS5)")
    grants = () if profile is None else profile.config.policy.grants
    needed = any(grant.tool == SEARCH_DOCUMENTS for grant in grants)
    found, _, fix = reason.partition(". Fix: ")
    return Check(name="index", grade="fail" if needed else "warn", found=found, fix=fix)


def _sandbox(profile: Inspected | None) -> Iterator[Check]:
    """Yield whether a program can be confined, which some tools need, and what else could confine it."""
    grants = () if profile is None else profile.config.policy.grants
    needed = any(grant.tool in (SHELL, DOCUMENTS) and grant.sandbox != "unrestricted" for grant in grants)
    reason = machine.no_sandbox()
    if reason is None:
        yield Check(name="sandbox", grade="ok", found="a program was started in one: bubblewrap and seccomp")
    else:
        found, _, fix = reason.partition(". Fix: ")
        yield Check(name="sandbox", grade="fail" if needed else "warn", found=found, fix=fix or _NO_SHELL)
    abi = machine.landlock_abi()
    if abi:
        yield Check(name="landlock", grade="ok", found=f"ABI {abi}, not used in this release")
    else:
        yield Check(name="landlock", grade="ok", found="not in this kernel, and not used in this release")
    if machine.has_seccomp():
        yield Check(name="seccomp", grade="ok", found="filters are available")
    else:
        fix = "a Linux kernel with seccomp filters: the sandbox needs them"
        yield Check(name="seccomp", grade="warn", found="not in this kernel", fix=fix)


def _openat2() -> Check:
    if machine.has_openat2():
        return Check(name="openat2", grade="ok", found="granted files are opened by one confined call")
    found = "not here: granted files are opened step by step, following no link"
    return Check(name="openat2", grade="ok", found=found)


# --- the record ----------------------------------------------------------------------------------


def _key(config: Config, places: Places) -> Check:
    """Return how the device key is kept; in a file, whether others can read it."""
    if config.trace.custody == "file":
        return _key_file(places)
    keys = custody_of(config, places)
    try:
        word = keys.signer().custody if keys.exists() else None
    except TraceError as error:
        problem, _, fix = str(error).partition(". Fix: ")
        return Check(name="device key", grade="fail", found=problem, fix=fix)
    found = "none yet" if word is None else f"custody {word}, {keys.place}"
    if word == "file":
        fix = "start the signer as root, with --user and --client: two accounts, and the runtime not root"
        found = f"{found}: the signer keeps nothing from the runtime's own account"
        return Check(name="device key", grade="warn", found=found, fix=fix)
    return Check(name="device key", grade="ok", found=found)


def _key_file(places: Places) -> Check:
    try:
        state = places.key.lstat()
    except FileNotFoundError:
        return Check(name="device key", grade="ok", found=f"none yet: the first run makes {places.key}")
    except OSError:
        return Check(
            name="device key", grade="fail", found=f"{places.key} cannot be reached", fix="own its folder"
        )
    mode = stat.S_IMODE(state.st_mode)
    found = f"custody file, {places.key}, mode {mode:04o}"
    if not stat.S_ISREG(state.st_mode) or mode & _OTHERS or state.st_uid != os.getuid():
        fix = f"own it, and chmod 600 {places.key}"
        return Check(name="device key", grade="fail", found=f"{found}: open to others", fix=fix)
    return Check(name="device key", grade="ok", found=found)


def _behaviour(profile: Inspected, named: str) -> Check:
    """Return how many findings about backends are kept; which server each is about, only asking can say."""
    kept, name = FileFindings(akaion_home() / FINDINGS).count(), profile.config.inference.prefer
    count = how_many(kept, "finding")
    found = f"{count} kept; `akaion probe --profile {named}` tries out what {name} can be held to"
    return Check(name="backend behaviour", grade="ok", found=found)


def _trace(places: Places) -> Check:
    """Return the state of the record: whether it can be continued, and whether its last log was closed."""
    folder = places.trace
    if not folder.exists():
        return Check(name="record", grade="ok", found=f"none yet: the first run makes {folder}")
    if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        fix = f"own the folder, and chmod 700 {folder}"
        return Check(name="record", grade="fail", found=f"{folder} cannot be written", fix=fix)
    return _logs(folder)


def _logs(folder: Path) -> Check:
    try:
        logs = read_book(folder)
    except TraceError as error:
        return Check(
            name="record", grade="fail", found=str(error), fix="restore the file, or start a new book"
        )
    found = f"{folder}, {how_many(len(logs), 'log')}"
    if logs and not logs[-1].closed:
        fix = "nothing to do: the next run puts the interruption on record"
        return Check(name="record", grade="warn", found=f"{found}, the last one not closed", fix=fix)
    return Check(name="record", grade="ok", found=found)
