# SPDX-License-Identifier: Apache-2.0
"""The checks of `akaion doctor`: facts about the machine, held against what a profile needs.

Owns grades and fixes. `fail` is only for what the profile needs and does not have; what would be better, or
what another profile would need, is `warn`. Makes nothing on the disk.
"""

import os
import re
import stat
import sys
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from runner.adapters.cli import machine
from runner.adapters.cli.book import read_book
from runner.adapters.cli.models import MIB, state_of
from runner.adapters.cli.profiles import Inspected, classifier_words, inspect, missing_for
from runner.assembly import FINDINGS, Places, custody_of
from runner.capability.documents.kinds import PACKED, family_of
from runner.capability.documents.reader import FILE_BYTES
from runner.capability.home import akaion_home
from runner.capability.models import Catalogue, ModelEntry, models_dir, verify
from runner.capability.tools.beneath import Beneath, Limits, Parts, decode
from runner.capability.tools.documents import NAME as DOCUMENTS
from runner.capability.tools.shell import NAME as SHELL
from runner.capability.transport.findings import FileFindings
from runner.capability.vault.database import why_no_index
from runner.capability.vault.tool import NAME as SEARCH_DOCUMENTS
from runner.kernel.config import Config, LocalInference
from runner.kernel.errors import ConfigError, ModelError, ToolError, TraceError
from runner.kernel.language import how_many
from runner.kernel.ports import Root

Grade = Literal["ok", "warn", "fail"]
OVERHEAD: Final = 512 * MIB
"""About what a context of 8192 tokens and the program take beside the weights."""
_LAST_PYTHON: Final = (3, 13)
_ENDPOINT: Final = re.compile(r"(https?)://(\[[0-9A-Fa-f:.]+\]|[^\[\]:/@?#]+)(?::([0-9]{1,5}))?(?:/v1)?/?")
_PORTS: Final = {"http": 80, "https": 443}
_LAST_PORT: Final = 65_535
_NO_SHELL: Final = "remove the grant of the shell tool, or use such a machine"
_READERS: Final = frozenset({DOCUMENTS, SEARCH_DOCUMENTS, SHELL, "read_file", "search_text"})
"""The shipped tools that look into the files of a folder. Of one with another tool nothing is expected."""
_LIST: Final = "list_dir"
_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One line of the report: what was looked at, how it is, and what to do (empty when nothing)."""

    name: str
    grade: Grade
    found: str
    fix: str = ""


def checks(named: str, *, deep: bool) -> Iterator[Check]:
    """Yield every check of this machine for the profile `named`; `deep` reads weights and hashes them."""
    yield _python()
    profile: Inspected | None = None
    try:
        profile = inspect(named)
        missing_for(named)
    except ConfigError as error:
        for mistake in error.mistakes:
            yield Check(name="profile", grade="fail", found=str(mistake), fix=f"akaion profile check {named}")
    else:
        yield Check(name="profile", grade="ok", found=f"{profile.source.file} can be used")
        yield from _folders(profile)
        yield _classifier(profile)
    yield _engine(profile)
    yield from _weights(profile, deep=deep)
    yield from _endpoints(profile)
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


# --- models --------------------------------------------------------------------------------------


def _embedded(profile: Inspected | None) -> list[LocalInference]:
    """Return the models the profile wants in this process: the local one, and the second opinion."""
    named = () if profile is None else (profile.config.inference.local, profile.config.opinion)
    return [model for model in named if model is not None and model.runtime == "embedded"]


def _classifier(profile: Inspected) -> Check:
    """Return who judges what would leave. Whether its weights are here is said where weights are."""
    return Check(name="classifier", grade="ok", found=classifier_words(profile.config))


def _engine(profile: Inspected | None) -> Check:
    version = machine.engine_version()
    if version is not None:
        return Check(name="embedded engine", grade="ok", found=version)
    grade: Grade = "fail" if _embedded(profile) else "warn"
    fix = "pip install 'akaion-runner[embedded]'"
    return Check(name="embedded engine", grade=grade, found="cannot be imported", fix=fix)


def _weights(profile: Inspected | None, *, deep: bool) -> Iterator[Check]:
    """Yield a check for each model of the catalogue, and for a file of weights that the profile names."""
    embedded = _embedded(profile)
    file = next((model.weights for model in embedded if model.weights is not None), None)
    if profile is not None and file is not None:
        path = profile.resolve(file)
        if path.is_file():
            yield _fits(f"weights {path.name}", path.stat().st_size, needed=True)
        else:
            fix = "correct inference.local.weights in the profile"
            yield Check(name=f"weights {path.name}", grade="fail", found="missing", fix=fix)
    for name, entry in Catalogue.bundled().entries.items():
        needed = any(model.weights is None and model.model == name for model in embedded)
        yield _model(name, entry, needed=needed, deep=deep)


def _model(name: str, entry: ModelEntry, *, needed: bool, deep: bool) -> Check:
    title, state = f"model {name}", state_of(entry, models_dir())
    fix = f"akaion models fetch {name}"
    if state == "missing" and not needed:
        return Check(name=title, grade="ok", found="not here, and this profile does not need it")
    if state != "present":
        return Check(name=title, grade="fail" if needed else "warn", found=state, fix=fix)
    if deep:
        try:
            verify(entry, models_dir() / entry.file)
        except ModelError:
            grade: Grade = "fail" if needed else "warn"
            return Check(name=title, grade=grade, found="not the catalogue's SHA-256", fix=fix)
    return _fits(title, entry.size, needed=needed, seen="verified" if deep else "size is right")


def _fits(title: str, size: int, *, needed: bool, seen: str = "present") -> Check:
    """Return whether weights of `size` bytes fit into memory."""
    available, total = machine.memory_bytes()
    wanted = size + OVERHEAD
    found = f"{seen}; takes about {wanted // MIB} MiB, {available // MIB} of {total // MIB} MiB are free"
    if wanted <= available:
        return Check(name=title, grade="ok", found=found)
    grade: Grade = "fail" if needed and wanted > total else "warn"
    return Check(name=title, grade=grade, found=found, fix="use a smaller model, or end other programs")


def _endpoints(profile: Inspected | None) -> Iterator[Check]:
    """Yield a check for each endpoint of the profile. Nothing off this machine is contacted."""
    inference = Config.model_fields["inference"].default if profile is None else profile.config.inference
    if inference.local is not None and inference.local.endpoint is not None:
        yield _endpoint(inference.local.endpoint)
    if inference.remote is not None:
        found = f"{inference.remote.endpoint}: not tried, a doctor contacts nobody off this machine"
        yield Check(name="remote endpoint", grade="ok", found=found)


def _endpoint(endpoint: str) -> Check:
    parts, name = _ENDPOINT.fullmatch(endpoint), "local endpoint"
    if parts is None or not 0 < int(parts[3] or _PORTS[parts[1]]) <= _LAST_PORT:
        fix = "write scheme, host and port only, such as http://127.0.0.1:8080"
        return Check(name=name, grade="fail", found="this is not an endpoint", fix=fix)
    host, port = parts[2], int(parts[3] or _PORTS[parts[1]])
    if not machine.is_loopback(host):
        fix = "name a loopback address: what is not on loopback counts as remote"
        return Check(name=name, grade="fail", found=f"{endpoint} is not on this machine", fix=fix)
    if not machine.listens(host, port):
        fix = "start the model server, or correct inference.local.endpoint"
        return Check(name=name, grade="fail", found=f"nothing listens at {endpoint}", fix=fix)
    return Check(name=name, grade="ok", found=f"{endpoint} accepts connections")


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
