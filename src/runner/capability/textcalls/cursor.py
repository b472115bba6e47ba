# SPDX-License-Identifier: Apache-2.0
"""A place in a text, and the three ways in which reading from there can end badly.

Owns the position, the repairs made so far, and the exceptions that carry a verdict out of the readers. They
never leave this package and never quote the text (I12).
"""

import re
from dataclasses import dataclass, field
from functools import cache
from typing import Final

from runner.kernel.errors import RunnerError

_SPACE: Final = re.compile(r"[ \t\r\n]+")


@cache
def _nearest(words: tuple[str, ...]) -> "re.Pattern[str]":
    """Return the pattern that finds any of `words`, which are few and ours, in one pass."""
    return re.compile("|".join(map(re.escape, words)))


class Unreadable(RunnerError):
    """No call can be read here, for the `reason`, one of a closed list of words. A verdict, not an error."""

    status: str = "rejected"

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(reason)


class Truncated(Unreadable):
    """The text ends inside a call."""

    status = "truncated"


class Ambiguous(Unreadable):
    """The text can be read in more than one way."""

    status = "ambiguous"


@dataclass(frozen=True, slots=True, kw_only=True)
class Repair:
    """What was set right, and at which offset of the text, in code points. Holds no text."""

    kind: str
    at: int


@dataclass(slots=True)
class Cursor:
    """A text, the offset of the next character, and what was repaired on the way."""

    text: str = field(repr=False)
    at: int = 0
    repairs: list[Repair] = field(default_factory=list)

    @property
    def ended(self) -> bool:
        """Whether nothing is left."""
        return self.at >= len(self.text)

    @property
    def next(self) -> str:
        """The next character; raise `Truncated` at the end."""
        if self.at >= len(self.text):
            raise Truncated("truncated")
        return self.text[self.at]

    def sees(self, *words: str) -> bool:
        """Return whether one of `words` begins here."""
        return self.text.startswith(words, self.at)

    def take(self, *words: str) -> bool:
        """Pass over the first of `words` that begins here; return whether there was one."""
        for word in words:
            if self.text.startswith(word, self.at):
                self.at += len(word)
                return True
        return False

    def match(self, pattern: "re.Pattern[str]") -> "re.Match[str] | None":
        """Pass over what `pattern` matches here; return the match, None if there is none."""
        found = pattern.match(self.text, self.at)
        if found is not None:
            self.at = found.end()
        return found

    def upto(self, *words: str) -> str | None:
        """Return what stands before the nearest of `words`, and stand at it; None if there is none."""
        found = _nearest(words).search(self.text, self.at)
        if found is None:
            return None
        start, self.at = self.at, found.start()
        return self.text[start : self.at]

    def skip_space(self) -> None:
        """Pass over white space."""
        self.match(_SPACE)

    def repair(self, kind: str) -> None:
        """Remember that something was set right here."""
        self.repairs.append(Repair(kind=kind, at=self.at))
