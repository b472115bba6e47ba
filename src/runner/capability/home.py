# SPDX-License-Identifier: Apache-2.0
"""Where the runner keeps its own files.

Owns one answer, the home directory, so that traces, models and caches lie under one root. Creates nothing:
whoever writes there makes the folder with the mode it needs. A profile that names paths does not ask here.
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

    A leading `~` is expanded. An empty variable counts as unset. Raises `ConfigError` for a relative path,
    which would mean another folder after every change of directory.
    """
    named = environ.get(HOME_VARIABLE, "")
    if not named:
        return Path(platformdirs.user_data_dir("akaion", appauthor=False))
    home = Path(named).expanduser()
    if not home.is_absolute():
        raise ConfigError(
            [
                Mistake(
                    file="environment",
                    line=0,
                    where=HOME_VARIABLE,
                    problem="the path is relative",
                    fix=f"set {HOME_VARIABLE} to an absolute path",
                )
            ]
        )
    return home
