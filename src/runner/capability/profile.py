# SPDX-License-Identifier: Apache-2.0
"""Profile files: YAML 1.2 in, plain data and line numbers out.

Owns reading, the merge of a practice's file over the shipped profile it names, and where each key
stands. Judges nothing: `runner.kernel.config.parse_config` does. Carries I6: the topologies differ
in these files only.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import resources
from io import StringIO
from pathlib import Path
from typing import Any, Final

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.constructor import DuplicateKeyError
from ruamel.yaml.error import MarkedYAMLError, YAMLError

from runner.kernel.errors import ConfigError, Mistake

SHIPPED: Final = ("detached", "attached", "appliance")
_MAX_BYTES: Final = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileSource:
    """A profile as read: merged `data`, the `file` it came from, and the `folder` its paths start at."""

    data: Mapping[str, Any] = field(repr=False)
    file: str
    folder: Path
    path: Path | None = None
    """The practice's own file; None for a shipped profile."""
    tree: Any = field(repr=False, default=None)

    def line(self, where: tuple[str | int, ...]) -> int:
        """Return the line of the field at `where`, or of its nearest parent in the file, else 0."""
        node, line = self.tree, 0
        for part in where:
            if isinstance(node, CommentedMap) and part in node:
                line = node.lc.key(part)[0] + 1
            elif isinstance(node, CommentedSeq) and isinstance(part, int) and part < len(node):
                line = node.lc.item(part)[0] + 1
            else:
                return line
            node = node[part]
        return line


def read_profile(named: str | Path, overrides: Mapping[str, Any]) -> ProfileSource:
    """Return the profile `named` (a shipped name, or a path to a YAML file), with `overrides` merged on top.

    A file's `profile:` key names the shipped profile that supplies what the file leaves out. Mappings
    merge key by key; lists and scalars replace, and so does `remote`: a way out is never inherited, and
    never pieced together from two files. Raises `ConfigError`.
    """
    if str(named) in SHIPPED:
        data = _load(_shipped(str(named)), f"profiles/{named}.yaml")
        return ProfileSource(data=_merge(data, overrides), file=f"profiles/{named}.yaml", folder=Path.cwd())
    path = Path(named).expanduser()
    tree = _load(_read(path), str(named))
    base = tree.get("profile")
    if base not in SHIPPED:
        line = tree.lc.key("profile")[0] + 1 if "profile" in tree else 0
        fix = f"write profile: followed by one of: {', '.join(SHIPPED)}"
        raise _error(str(named), line, "profile", "the file does not say which profile it is", fix)
    below = _plain(_load(_shipped(base), f"profiles/{base}.yaml"))
    below["inference"].pop("remote", None)
    merged = _merge(_merge(below, tree), overrides)
    return ProfileSource(
        data=merged, file=str(named), path=path.resolve(), folder=path.resolve().parent, tree=tree
    )


def _shipped(name: str) -> str:
    """Return the text of a shipped profile: inside the wheel, or beside `src/` in a checkout."""
    inside = resources.files("runner") / "profiles" / f"{name}.yaml"
    if inside.is_file():
        return inside.read_text(encoding="utf-8")
    return (Path(__file__).parents[3] / "profiles" / f"{name}.yaml").read_text(encoding="utf-8")


def _read(path: Path) -> str:
    try:
        with path.open("rb") as file:
            data = file.read(_MAX_BYTES + 1)
    except OSError as error:
        fix = f"name a YAML file, or one of the shipped profiles: {', '.join(SHIPPED)}"
        raise _error(str(path), 0, "", f"the profile cannot be read ({error.strerror})", fix) from None
    if len(data) > _MAX_BYTES:
        raise _error(str(path), 0, "", "the profile is larger than 1 MiB", "name a profile file")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise _error(str(path), 0, "", "the profile is not UTF-8", "save the file as UTF-8") from None


def _load(text: str, name: str) -> CommentedMap:
    """Return the parsed mapping; raise `ConfigError` with the line for anything else."""
    yaml = YAML(typ="rt", pure=True)
    yaml.version = (1, 2)
    try:
        tree = yaml.load(StringIO(text))
    except DuplicateKeyError as error:
        raise _error(name, _mark(error), "", "a key stands twice", "keep one of the two") from None
    except MarkedYAMLError as error:
        raise _error(
            name, _mark(error), "", "this is not YAML", "check indentation and quotes here"
        ) from None
    except (YAMLError, ValueError, RecursionError):
        raise _error(name, 0, "", "this is not YAML", "write the profile as a YAML mapping") from None
    if not isinstance(tree, CommentedMap):
        raise _error(
            name, 1, "", "a profile is a mapping of keys", "start with a line such as profile: detached"
        )
    return tree


def _mark(error: MarkedYAMLError) -> int:
    return int(error.problem_mark.line) + 1 if error.problem_mark is not None else 0


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
