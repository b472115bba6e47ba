# SPDX-License-Identifier: Apache-2.0
"""Credentials: where a remote backend's token is read from.

Owns reading `env:NAME` and `file:PATH`. The value goes to the perimeter, which adds it to the wire
after `release()`; it is never in a tool's environment, arguments, the trace or an error (I5).
"""

import os
import stat
from collections.abc import MutableMapping
from pathlib import Path
from typing import Final

from runner.kernel.errors import ConfigError, Mistake
from runner.kernel.ports import Credential

BEARER: Final = "Authorization"
_WHERE: Final = "inference.remote.credential"


def read_credential(
    reference: str, environ: MutableMapping[str, str] = os.environ, *, header: str = BEARER
) -> Credential:
    """Return the credential that `reference` ("env:NAME" or "file:PATH") names, to be sent in `header`.

    In `BEARER` it travels as a bearer token, in any other header as it is. A variable is removed from
    `environ` once read, so that no child process inherits it. Raises `ConfigError` when it is missing, empty,
    unreadable, or readable by others.
    """
    kind, _, name = reference.partition(":")
    value = environ.pop(name, "") if kind == "env" else _read_private(Path(name).expanduser())
    if not value.strip() or not value.isascii():
        raise _error("it is empty or not ASCII", f"put the token into {reference}")
    token = value.strip()
    return Credential(header=header, value=f"Bearer {token}" if header == BEARER else token)


def _read_private(path: Path) -> str:
    try:
        if stat.S_IMODE(path.stat().st_mode) & 0o077:
            raise _error("its file can be read by others", "chmod 600 the file")
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise _error("its file cannot be read", "write the token into that file as text") from None


def _error(problem: str, fix: str) -> ConfigError:
    return ConfigError([Mistake(file="profile", line=0, where=_WHERE, problem=problem, fix=fix)])
