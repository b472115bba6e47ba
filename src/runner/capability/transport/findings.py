# SPDX-License-Identifier: Apache-2.0
"""What backends were seen to do, kept in a file from one start to the next.

Owns `backend-caps.json`: of its owner only, written whole or not at all, bounded. Leaves what a finding is
kept under to the perimeter. Carries I7: a file that is another's, open to others, too large or not what it
should be holds nothing, and what it should have held is found again.
"""

import json
import os
import stat
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from runner.capability.transport.logstore import make_private_folder, replace_file
from runner.kernel.capabilities import Capabilities, Facts, Fingerprint, Mechanism, Standing, Thinking

FORMAT: Final = "akaion-backend-caps/1"
MOST: Final = 64
"""Findings that are kept, the newest; a practice has a few backends."""
_LARGEST: Final = 1 << 20
_MODE: Final = 0o600


class FileFindings:
    """The findings in the file `path`. Implements `FindingStore`.

    Two processes that keep one at once may lose one of the two, which is then found again.
    """

    __slots__ = ("_path",)

    def __init__(self, path: Path) -> None:
        self._path = path

    def find(self, key: str) -> Capabilities | None:
        """Return what was kept under `key`; None for nothing, or nothing to be believed."""
        return parse_finding(self._read().get(key))

    def keep(self, key: str, found: Capabilities) -> None:
        """Keep `found` under `key`; a disk that cannot take it keeps what it had."""
        entries = {name: value for name, value in self._read().items() if name != key}
        newest = dict([*entries.items(), (key, found.as_json())][-MOST:])
        text = json.dumps({"format": FORMAT, "findings": newest}, indent=1) + "\n"
        temporary = self._path.with_name(f"{self._path.name}.{os.getpid()}.tmp")
        with suppress(OSError):
            make_private_folder(self._path.parent)
            replace_file(self._path, temporary, text.encode("utf-8"))

    def count(self) -> int:
        """Return how many findings there are that can be believed."""
        return sum(parse_finding(value) is not None for value in self._read().values())

    def _read(self) -> Mapping[str, object]:
        """Return the findings by key; none from a file that is not to be believed."""
        try:
            return parse_findings(_read_own(self._path))
        except (OSError, ValueError, RecursionError):
            return {}


def _read_own(path: Path) -> bytes:
    """Return the bytes of a plain file of this user that nobody else may touch; raise `OSError`."""
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    with os.fdopen(handle, "rb") as file:
        state = os.fstat(handle)
        if not stat.S_ISREG(state.st_mode) or state.st_mode & 0o077 or state.st_uid != os.geteuid():
            raise PermissionError
        data = file.read(_LARGEST + 1)
    if len(data) > _LARGEST:
        raise OSError
    return data


# --- parsing: from here on the bytes may be anybody's ------------------------------------------------


def parse_findings(data: bytes) -> Mapping[str, object]:
    """Return the findings in `data` by key, none of them read yet; none of another format.

    Raises `ValueError` for what is not JSON.
    """
    whole: Any = json.loads(data)
    findings = whole.get("findings") if isinstance(whole, dict) and whole.get("format") == FORMAT else None
    return findings if isinstance(findings, dict) else {}


def parse_finding(value: object) -> Capabilities | None:
    """Return the finding that `value` is in the form of `Capabilities.as_json`; None for anything else."""
    if not isinstance(value, dict) or not _is_plain(value):
        return None
    try:
        found = Capabilities(
            uses=Mechanism(value["uses"]),
            standings={Mechanism(each): Standing(word) for each, word in value["standings"].items()},
            thinking=Thinking(value["thinking"]),
            facts=Facts(
                fingerprint=Fingerprint(
                    build=value["build"], model=value["model"], template=value["template"]
                ),
                context=value["context"],
                claims=tuple(value["claims"]),
            ),
        )
    except (KeyError, TypeError, ValueError, AttributeError):
        return None
    return found if found.as_json() == value else None


def _is_plain(value: Mapping[str, object]) -> bool:
    """Return whether what is free text or a number in a finding is that, and no other kind of thing."""
    context, claims = value.get("context"), value.get("claims")
    texts = [value.get(member) for member in ("build", "model", "template")]
    texts += claims if isinstance(claims, list) else [None]
    return all(isinstance(text, str) for text in texts) and type(context) is int and context >= 0
