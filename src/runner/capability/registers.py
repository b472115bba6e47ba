# SPDX-License-Identifier: Apache-2.0
"""Register files: YAML or CSV in, lines with their numbers out.

Owns reading. Judges only the shape; whether a name can be looked for is the classifier's to say.
Carries I12: no mistake quotes a line, since a register lists clients.

YAML: a list; each item is a text, or a mapping of `name`, `aliases` (a list), `class` (C2 or C3) and
`by_surname` (true or false). CSV: a first row that names those columns; semicolons separate the aliases.
"""

import csv
from collections.abc import Iterator, Mapping
from io import StringIO
from pathlib import Path
from typing import Any, Final

from runner.capability.files import read_regular
from runner.capability.plainyaml import parse_plain
from runner.kernel.errors import ConfigError, Mistake
from runner.kernel.labels import DataClass
from runner.kernel.registers import Listed

_MAX_BYTES: Final = 8 << 20
_MAX_NODES: Final = 500_000
_COLUMNS: Final = frozenset({"name", "aliases", "class", "by_surname"})
_CLASSES: Final = {"C2": DataClass.C2, "C3": DataClass.C3}
_YES_OR_NO: Final[Mapping[str, object]] = {"": True, "true": True, "false": False}


def read_register(path: Path) -> tuple[Listed, ...]:
    """Return the lines of the register at `path`, a `.csv` file or else YAML.

    Raises `ConfigError` naming the file, the line and the fix; it never quotes the line.
    """

    def refuse(why: str) -> ConfigError:
        return _error(path, 0, f"the register {why}", "correct perimeter.registers in the profile")

    data = read_regular(path, most=_MAX_BYTES, refuse=refuse)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise _error(path, 0, "the register is not UTF-8", "save the file as UTF-8") from None
    rows = _csv_rows(text, path) if path.suffix.lower() == ".csv" else _yaml_rows(text, path)
    return tuple(_listed(row, line, path) for line, row in rows)


def _csv_rows(text: str, path: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    reader = csv.DictReader(StringIO(text, newline=""), strict=True)
    try:
        columns = set(reader.fieldnames or ())
        if "name" not in columns or not columns <= _COLUMNS:
            raise _error(
                path, 1, "these are not the columns of a register", "write: name,aliases,class,by_surname"
            )
        for row in reader:
            if None in row:
                raise _error(path, reader.line_num, "more values than columns", "quote a name with a comma")
            aliases = [alias.strip() for alias in (row.get("aliases") or "").split(";")]
            yield (
                reader.line_num,
                {
                    "name": (row["name"] or "").strip(),
                    "aliases": [alias for alias in aliases if alias],
                    "class": (row.get("class") or "").strip() or "C2",
                    "by_surname": _YES_OR_NO.get((row.get("by_surname") or "").strip().lower()),
                },
            )
    except csv.Error:
        raise _error(path, reader.line_num + 1, "this is not CSV", "check the quotes here") from None


def _yaml_rows(text: str, path: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    tree = parse_plain(text, file=str(path), nodes=_MAX_NODES)
    if tree.value is None:
        return
    if not isinstance(tree.value, list):
        raise _error(path, 1, "a register is a list", "write each name on a line that starts with '- '")
    for index, item in enumerate(tree.value):
        line = tree.lines[(index,)]
        yield line, {"name": item} if isinstance(item, str) else _mapping(item, line, path)


def _mapping(item: object, line: int, path: Path) -> Mapping[str, Any]:
    if not isinstance(item, Mapping) or not set(item) <= _COLUMNS:
        fix = "write a name, or a mapping of name, aliases, class and by_surname"
        raise _error(path, line, "this line is not an entry of a register", fix)
    return item


def _listed(row: Mapping[str, Any], line: int, path: Path) -> Listed:
    """Return the line as a value; raise `ConfigError` when a field has the wrong shape."""
    name, aliases, word = row.get("name"), row.get("aliases", []), row.get("class", "C2")
    if not isinstance(name, str) or not name.strip():
        raise _error(path, line, "this line has no name", "write the name as text, in quotes if need be")
    if not isinstance(aliases, list) or not all(isinstance(alias, str) for alias in aliases):
        raise _error(path, line, "the aliases are not a list of texts", "write aliases: [one, another]")
    if word not in _CLASSES:
        raise _error(path, line, "no such class for a register", "write class: C2 or class: C3")
    by_surname = row.get("by_surname", True)
    if not isinstance(by_surname, bool):
        raise _error(
            path, line, "by_surname says neither yes nor no", "write by_surname: true or by_surname: false"
        )
    return Listed(
        file=str(path), line=line, names=(name, *aliases), data_class=_CLASSES[word], by_surname=by_surname
    )


def _error(path: Path, line: int, problem: str, fix: str) -> ConfigError:
    return ConfigError([Mistake(file=str(path), line=line, where="", problem=problem, fix=fix)])
