# SPDX-License-Identifier: Apache-2.0
"""Where the runner keeps its own files.

Owns one answer, the home directory, so that traces, models and caches lie under one root, and its making:
for its owner only. A profile that names paths does not ask here.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import platformdirs

from runner.kernel.errors import ConfigError, Mistake

HOME_VARIABLE: Final = "AKAION_HOME"


def akaion_home(environ: Mapping[str, str] = os.environ) -> Path:
    """Return the home directory, absolute: `AKAION_HOME` of `environ`, else the platform's user data folder.

    A leading `~` is expanded. An empty variable counts as unset. Raises `ConfigError` for what is no path,
    and for a relative one, which would mean another folder after every change of directory.
    """
    named = environ.get(HOME_VARIABLE, "")
    if not named:
        return Path(platformdirs.user_data_dir("akaion", appauthor=False))
    try:
        home = Path(named).expanduser()
        os.fsencode(home)
    except (RuntimeError, ValueError):
        raise _error("this is not a path", f"set {HOME_VARIABLE} to an absolute path") from None
    if not home.is_absolute():
        raise _error("the path is relative", f"set {HOME_VARIABLE} to an absolute path")
    return home


def make_home() -> Path:
    """Return the home directory, made for its owner only if it is not there; raise `ConfigError`.

    One that is there keeps its mode: what the runner makes in it is closed to others by itself.
    """
    home = akaion_home()
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        fix = f"make the folder yourself, or set {HOME_VARIABLE} to another"
        raise _error(f"the home directory cannot be made ({error.strerror})", fix) from None
    return home


def _error(problem: str, fix: str) -> ConfigError:
    return ConfigError([Mistake(file="environment", line=0, where=HOME_VARIABLE, problem=problem, fix=fix)])
