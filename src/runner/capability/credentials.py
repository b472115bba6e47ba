# SPDX-License-Identifier: Apache-2.0
"""Credentials: where the token of a remote backend, or of a host of pages, is read from.

Owns reading `env:NAME` and `file:PATH`, and the header it makes. The value goes to the
perimeter, which adds it to the wire after `release()`; it is never in a tool's environment, arguments, the
trace or an error (I5). That no grant reaches the file is the policy's to see to: `credential_file` says which
it is.
"""

import codecs
import ctypes
import os
from collections.abc import Callable, MutableMapping
from pathlib import Path
from typing import Final, TypeAlias

from runner.capability.files import read_regular
from runner.kernel.errors import ConfigError
from runner.kernel.ports import Credential

Refuse: TypeAlias = Callable[[str, str], ConfigError]
"""Makes the error of a problem and its fix: it knows where in the profile the reference stands."""
_MAX_BYTES: Final = 16 << 10
_MARKS: Final = (codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def credential_file(reference: str, resolve: Callable[[str], Path]) -> Path | None:
    """Return the file that `reference` names, as `resolve` finds it; None for a variable."""
    kind, _, name = reference.partition(":")
    return resolve(name) if kind == "file" else None


def read_token(
    reference: str,
    environ: MutableMapping[str, str] = os.environ,
    *,
    resolve: Callable[[str], Path],
    refuse: Refuse,
) -> str:
    """Return the token that `reference` ("env:NAME" or "file:PATH") names.

    `resolve` finds the file of PATH, as for `credential_file`. A variable is removed from `environ` once
    read, so that no child process inherits it, and overwritten where the system shows what this process was
    started with: ask once. Raises what `refuse` makes when it is missing, empty, no text of one line,
    unreadable, or readable by others.
    """
    file = credential_file(reference, resolve)
    text = _variable(reference, environ, refuse) if file is None else _read_private(file, refuse)
    token = text.strip()
    if (why := _why_no_token(token)) is not None:
        holder = f"the variable {reference.removeprefix('env:')}" if file is None else "the credential file"
        raise refuse(f"{holder} {why}", f"put the token, and nothing else, into {holder}")
    return token


def credential_of(token: str, header: str | None) -> Credential:
    """Return what sends `token` in `header` as it is, or as a bearer token without one (RFC 6750)."""
    if header is None:
        return Credential(header="Authorization", value=f"Bearer {token}")
    return Credential(header=header, value=token)


def _why_no_token(text: str) -> str | None:
    """Return why `text` can stand in no header; None where it can."""
    if not text:
        return "is empty"
    if len(text.splitlines()) > 1:
        return "has several lines"
    return None if text.isascii() and text.isprintable() else "holds signs that are not printable ASCII"


def _variable(reference: str, environ: MutableMapping[str, str], refuse: Refuse) -> str:
    name = reference.removeprefix("env:")
    try:
        if environ is os.environ and name in environ:
            _overwrite(name)
        return environ.pop(name)
    except KeyError:
        raise refuse(
            f"the variable {name} is not set", f"set {name} to the token, then start again"
        ) from None
    except ValueError:
        raise refuse("no variable has such a name", "write env: and the name of a variable") from None


def _overwrite(name: str) -> None:
    """Fill the variable `name` with zeros where the system keeps it, which `/proc/PID/environ` shows.

    `os.environ` has a copy of its own. Where there is no C library to ask, nothing is done.
    """
    try:
        getenv = ctypes.CDLL(None).getenv
    except (OSError, TypeError, AttributeError):
        return
    getenv.argtypes, getenv.restype = [ctypes.c_char_p], ctypes.c_void_p
    address = getenv(os.fsencode(name))
    if address:
        ctypes.memset(address, 0, len(ctypes.string_at(address)))


def _read_private(path: Path, refuse: Refuse) -> str:
    def refused(why: str) -> ConfigError:
        fix = "write the token, and nothing else, into a text file of your own, and chmod 600 it"
        return refuse(f"the credential file {why}", fix)

    try:
        data = read_regular(path, most=_MAX_BYTES, refuse=refused, private=True)
        if data.startswith(_MARKS):
            raise refused("begins with a byte order mark (BOM)")
        return data.decode("ascii")
    except UnicodeDecodeError:
        raise refused("is not ASCII") from None
