# SPDX-License-Identifier: Apache-2.0
"""Virtual paths: `alias/relative/path`, the only way a model names a file.

Owns the spelling: parsing a path into a granted root and names, and showing a name that may be hostile.
Touches no file. Invariants P2 (a model cannot name what was not granted) and I12 (no refusal repeats
what the model wrote).
"""

from collections.abc import Sequence

from runner.capability.tools.beneath import check_parts
from runner.capability.tools.listing import Parts
from runner.kernel.errors import ToolError
from runner.kernel.ports import Root
from runner.kernel.shown import is_seen


def resolve(path: str, roots: Sequence[Root]) -> tuple[Root, Parts] | None:
    """Return the granted root that `path` names and the names beneath it; None for the top.

    `path` is `alias/relative/path`, a trailing `/` ignored; `.` and the empty string are the top, where the
    aliases are. Raises `ToolError` naming the aliases for any other
    spelling and for an alias that is unknown or stands for two roots.
    """
    if path in ("", "."):
        return None
    alias, *parts = path.removesuffix("/").split("/")
    try:
        check_parts((alias, *parts))
    except ToolError as problem:
        raise ToolError(f"{problem}. {_aliases(roots)}") from None
    matches = [root for root in roots if root.alias == alias]
    if len(matches) != 1:
        raise ToolError(f"a path starts with the name of a granted folder. {_aliases(roots)}")
    return matches[0], tuple(parts)


def virtual(root: Root, parts: Sequence[str]) -> str:
    """Return the path a model and an excerpt name a file by, escaped by `shown`."""
    return "/".join(shown(part) for part in (root.alias, *parts))


def shown(name: str) -> str:
    r"""Return `name` safe to print on one line: what is not printable, and `\`, as escapes.

    Injective, so two names never look the same by escaping. Line ends, terminal controls, direction
    marks and bytes that are not UTF-8 all become `\uXXXX` forms.
    """
    return "".join(_escaped(character) for character in name)


def _escaped(character: str) -> str:
    if character == "\\":
        return "\\\\"
    if is_seen(character):
        return character
    code = ord(character)
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"  # noqa: PLR2004 - end of the first plane


def _aliases(roots: Sequence[Root]) -> str:
    names = ", ".join(shown(root.alias) for root in roots)
    return f"Granted folders: {names}" if names else "No folder is granted"
