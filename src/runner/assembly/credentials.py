# SPDX-License-Identifier: Apache-2.0
"""The credential of the remote backend: which file or variable holds it, and in which header it goes (I5)."""

from collections.abc import Callable
from pathlib import Path

from runner.assembly.places import Places, read_from
from runner.capability.credentials import BEARER, credential_file, read_credential
from runner.capability.profile import ProfileSource
from runner.kernel.config import RemoteInference
from runner.kernel.ports import Credential


def credential_of(remote: RemoteInference, source: ProfileSource, places: Places) -> Credential | None:
    """Return the credential of a remote backend, in the header its protocol wants it in."""
    if remote.credential is None:
        return None
    header = "x-api-key" if remote.backend == "anthropic" else BEARER
    return read_credential(remote.credential, resolve=_finder(source, places), header=header)


def credential_file_of(remote: RemoteInference, source: ProfileSource, places: Places) -> Path | None:
    """Return the file that holds the credential of a remote backend, if one does; raise `ConfigError`."""
    return None if remote.credential is None else credential_file(remote.credential, _finder(source, places))


def _finder(source: ProfileSource, places: Places) -> Callable[[str], Path]:
    return lambda path: read_from(path, ("inference", "remote", "credential"), source, places)
