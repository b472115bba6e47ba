# SPDX-License-Identifier: Apache-2.0
"""What the models of a profile need of this machine: an engine, weights that fit into memory, endpoints.

Owns the checks of `akaion doctor` about models. Contacts nobody off this machine.
"""

import re
from collections.abc import Iterator
from typing import Final

from runner.adapters.cli import machine
from runner.adapters.cli.check import Check, Grade
from runner.adapters.cli.models import MIB, state_of
from runner.adapters.cli.profiles import Inspected, classifier_words
from runner.capability.models import Catalogue, ModelEntry, models_dir, verify
from runner.kernel.config import Config, LocalInference
from runner.kernel.errors import ModelError

OVERHEAD: Final = 512 * MIB
"""About what a context of 8192 tokens and the program take beside the weights."""
_ENDPOINT: Final = re.compile(r"(https?)://(\[[0-9A-Fa-f:.]+\]|[^\[\]:/@?#]+)(?::([0-9]{1,5}))?(?:/v1)?/?")
_PORTS: Final = {"http": 80, "https": 443}
_LAST_PORT: Final = 65_535


def _embedded(profile: Inspected | None) -> list[LocalInference]:
    """Return the models the profile wants in this process: the local one, and the second opinion."""
    named = () if profile is None else (profile.config.inference.local, profile.config.opinion)
    return [model for model in named if model is not None and model.runtime == "embedded"]


def classifier(profile: Inspected) -> Check:
    """Return who judges what would leave. Whether its weights are here is said where weights are."""
    return Check(name="classifier", grade="ok", found=classifier_words(profile.config))


def engine(profile: Inspected | None) -> Check:
    """Return whether the embedded engine is here."""
    version = machine.engine_version()
    if version is not None:
        return Check(name="embedded engine", grade="ok", found=version)
    grade: Grade = "fail" if _embedded(profile) else "warn"
    fix = "pip install 'akaion-runner[embedded]'"
    return Check(name="embedded engine", grade=grade, found="cannot be imported", fix=fix)


def weights(profile: Inspected | None, *, deep: bool) -> Iterator[Check]:
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


def endpoints(profile: Inspected | None) -> Iterator[Check]:
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
