# SPDX-License-Identifier: Apache-2.0
"""Reading the operator's own files: profiles, registers, credentials.

Owns one way to open them: never a wait, never more than a bound. Leaves to its callers what the bytes mean,
and to `tools/` everything a model may name. Carries I7: what is no regular file is refused, not waited for.
"""

import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Final

from runner.kernel.errors import ConfigError

_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO
_FLAGS: Final = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0)
_NO_LINK: Final = getattr(os, "O_NOFOLLOW", 0)


def read_regular(
    path: Path, *, most: int, refuse: Callable[[str], ConfigError], private: bool = False
) -> bytes:
    """Return the bytes of the regular file at `path`, at most `most` of them.

    Raises what `refuse` makes of the reason, such as "is not a regular file", for a pipe, a device or a
    folder, a larger file, a path or file that the system does not open, and, with `private`, a link, a
    file of more than one name, and one that others than its owner may touch.
    """
    try:
        handle = os.open(path, _FLAGS | (_NO_LINK if private else 0))
        try:
            about = os.fstat(handle)
            if not stat.S_ISREG(about.st_mode):
                raise refuse("is not a regular file")
            if private and about.st_mode & _OTHERS:
                raise refuse("can be read by others")
            if private and about.st_nlink != 1:
                raise refuse("has more than one name")
            with os.fdopen(handle, "rb", closefd=False) as file:
                data = file.read(most + 1)
        finally:
            os.close(handle)
    except OSError as error:
        raise refuse(f"cannot be read ({error.strerror})") from None
    except ValueError:
        raise refuse("cannot be read (no file has such a name)") from None
    if len(data) > most:
        raise refuse(f"is larger than {most >> 20} MiB" if most >> 20 else f"is larger than {most >> 10} KiB")
    return data
