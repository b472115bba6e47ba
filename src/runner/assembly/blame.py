# SPDX-License-Identifier: Apache-2.0
"""Where in a profile a mistake stands: its file, its line and its dotted name.

Owns nothing but that. Every other module of this room says with it what is wrong in a profile.
"""

from runner.capability.profile import ProfileSource
from runner.kernel.errors import Mistake
from runner.perimeter.grants import Blame


def blame_of(source: ProfileSource) -> Blame:
    """Return what makes a mistake of a place in the profile `source`, a problem and its fix."""

    def blame(where: tuple[str | int, ...], problem: str, fix: str) -> Mistake:
        dotted = ".".join(str(part) for part in where)
        return Mistake(file=source.file, line=source.line(where), where=dotted, problem=problem, fix=fix)

    return blame
