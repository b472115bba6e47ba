# SPDX-License-Identifier: Apache-2.0
"""Profile files: YAML 1.2 in, plain data and line numbers out.

Owns reading, the merge of a practice's file over the shipped profile it names, where each key stands, and
what a path in it means. Judges nothing: `runner.kernel.config.parse_config` does. Carries I6: the topologies
differ in these files only.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any, Final

from runner.capability.files import read_regular
from runner.capability.plainyaml import PlainYaml, Where, parse_plain
from runner.kernel.errors import ConfigError, Mistake

SHIPPED: Final = ("detached", "attached", "appliance")
_MAX_BYTES: Final = 64 << 10
_MAX_NODES: Final = 10_000
_NAME_ONE: Final = f"name a YAML file, or one of the shipped profiles: {', '.join(SHIPPED)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileSource:
    """A profile as read: merged `data`, the `file` it came from, and the `folder` its paths start at."""

    data: Mapping[str, Any] = field(repr=False)
    file: str
    folder: Path
    path: Path | None = None
    """The practice's own file; None for a shipped profile."""
    lines: Mapping[Where, int] = field(repr=False, default_factory=dict)

    def line(self, where: Where) -> int:
        """Return the line of the field at `where`, or of its nearest parent in the file, else 0."""
        line = 0
        for depth in range(1, len(where) + 1):
            if where[:depth] not in self.lines:
                break
            line = self.lines[where[:depth]]
        return line

    def resolve(self, path: str, where: Where) -> Path:
        """Return `path`, written at `where`, without links; a relative one starts at the profile's folder.

        Raises `ConfigError` for one that no system can hold, that names an unknown user, or that is a loop.
        """
        try:
            resolved = (self.folder / Path(path).expanduser()).resolve()
            os.fsencode(resolved)
        except (OSError, ValueError, RuntimeError):
            dotted, fix = ".".join(map(str, where)), "write the path of a folder or file in full"
            raise _error(self.file, self.line(where), dotted, "this is not a path", fix) from None
        return resolved


def read_profile(named: str | Path, overrides: Mapping[str, Any]) -> ProfileSource:
    """Return the profile `named` (a shipped name, or a path to a YAML file), with `overrides` merged on top.

    A file's `profile:` key names the shipped profile that supplies what the file leaves out. Mappings
    merge key by key; lists and scalars replace, and so does `remote`: a way out is never inherited, and
    never pieced together from two files. Raises `ConfigError`.
    """
    if str(named) in SHIPPED:
        data = _load(_shipped(str(named)), f"profiles/{named}.yaml").value
        return ProfileSource(data=_merge(data, overrides), file=f"profiles/{named}.yaml", folder=Path.cwd())
    file = str(named)
    path = _located(named)
    tree = _load(_read(path, file), file)
    base = tree.value.get("profile")
    if base not in SHIPPED:
        fix = f"write profile: followed by one of: {', '.join(SHIPPED)}"
        line = tree.lines.get(("profile",), 0)
        named_other = "profile" in tree.value
        problem = "there is no such profile" if named_other else "the file does not say which profile it is"
        raise _error(file, line, "profile", problem, fix)
    below = _plain(_load(_shipped(base), f"profiles/{base}.yaml").value)
    below["inference"].pop("remote", None)
    merged = _merge(_merge(below, tree.value), overrides)
    return ProfileSource(data=merged, file=file, path=path, folder=path.parent, lines=tree.lines)


def _located(named: str | Path) -> Path:
    """Return the path of the profile file, without links."""
    try:
        return Path(named).expanduser().resolve()
    except (OSError, ValueError, RuntimeError):
        raise _error(str(named), 0, "", "the profile's name is not a path", _NAME_ONE) from None


def _shipped(name: str) -> str:
    """Return the text of a shipped profile: inside the wheel, or beside `src/` in a checkout."""
    inside = resources.files("runner") / "profiles" / f"{name}.yaml"
    if inside.is_file():
        return inside.read_text(encoding="utf-8")
    return (Path(__file__).parents[3] / "profiles" / f"{name}.yaml").read_text(encoding="utf-8")


def _read(path: Path, file: str) -> str:
    def refuse(why: str) -> ConfigError:
        return _error(file, 0, "", f"the profile {why}", _NAME_ONE)

    data = read_regular(path, most=_MAX_BYTES, refuse=refuse)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise _error(file, line, "", "the profile is not UTF-8", "save the file as UTF-8") from None


def _load(text: str, name: str) -> PlainYaml:
    """Return the parsed mapping; raise `ConfigError` with the line for anything else."""
    tree = parse_plain(text, file=name, nodes=_MAX_NODES)
    if not isinstance(tree.value, dict):
        fix = "start with a line such as profile: detached"
        raise _error(name, 1, "", "a profile is a mapping of keys", fix)
    return tree


def _merge(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    merged = {str(key): _plain(value) for key, value in below.items()}
    for key, value in above.items():
        known = merged.get(key)
        both = isinstance(known, Mapping) and isinstance(value, Mapping) and key != "remote"
        merged[str(key)] = _merge(known, value) if both and known is not None else _plain(value)
    return merged


def _plain(value: Any) -> Any:  # noqa: ANN401 - YAML data, judged by parse_config
    """Return YAML data as the plain types that strict validation accepts."""
    match value:
        case Mapping():
            return {str(key): _plain(item) for key, item in value.items()}
        case list() | tuple():
            return tuple(_plain(item) for item in value)
        case bool() | None:
            return value
        case str():
            return str(value)
        case int():
            return int(value)
        case _:
            return value


def _error(file: str, line: int, where: str, problem: str, fix: str) -> ConfigError:
    return ConfigError([Mistake(file=file, line=line, where=where, problem=problem, fix=fix)])
