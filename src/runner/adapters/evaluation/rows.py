# SPDX-License-Identifier: Apache-2.0
"""The results of a run as JSON lines, written as they come, so that a run can go on where it ended.

Owns the file. Its first line says what is measured; a run that goes on must measure the same. Each further
line is one item of one model in one tier: names, counts and a class, no text of a question or a reply (I12).
A last line that was torn by a crash is cut off and measured again.
"""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Final, Self

from runner.adapters.evaluation.score import FAMILIES
from runner.kernel.errors import ConfigError, Mistake
from runner.kernel.tiers import Tier

FORMAT: Final = "akaion-toolcalls/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What is measured: the dataset by its digest, its items in the order in which `seed` draws them."""

    dataset: str
    seed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What became of one `item` of `category` for one `model` in one `tier`.

    `outcome` is a class of `score.FAMILIES`; `failed` are the classes of the replies that could not be used,
    in order; `seconds` is wall clock; `tokens` are those of the prompts and replies that could be used.
    """

    model: str
    tier: Tier
    item: str
    category: str
    outcome: str
    failed: tuple[str, ...]
    seconds: float
    tokens: int

    @property
    def key(self) -> tuple[str, str, str]:
        """Model, tier and item: measured once."""
        return self.model, self.tier, self.item


_TYPES: Final[dict[str, type | tuple[type, ...]]] = {
    **dict.fromkeys(("model", "tier", "item", "category", "outcome"), str),
    "failed": list,
    "seconds": (int, float),
    "tokens": int,
}


class Results:
    """The rows of a run: those read, and those added. With a path, each is on disk before the next begins."""

    def __init__(self, path: Path | None, rows: list[Row]) -> None:
        self._path = path
        self.rows = rows

    @classmethod
    def begin(cls, path: Path | None, order: Order) -> Self:
        """Return empty results, in a new file at `path` if there is one to be.

        Raises `ConfigError` for a file that is there already.
        """
        if path is not None:
            try:
                with path.open("x", encoding="utf-8") as file:
                    file.write(_line({"format": FORMAT, **asdict(order)}))
            except FileExistsError:
                raise _mistaken(path, 0, "the file is there already", "go on with --resume") from None
            except OSError:
                raise _mistaken(path, 0, "the file cannot be made", "name another") from None
        return cls(path, [])

    @classmethod
    def resume(cls, path: Path, order: Order) -> Self:
        """Return the results in the file at `path`, to go on with; a new file if there is none.

        Raises `ConfigError` for a file of another order, and for one that is none of ours.
        """
        if not path.exists():
            return cls.begin(path, order)
        if not path.is_file():
            raise _mistaken(path, 0, "it is no regular file", "name another")
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            raise _mistaken(path, 0, "the file cannot be read as UTF-8", "name another") from None
        whole = text[: text.rfind("\n") + 1]
        first, *lines = whole.splitlines() or [""]
        if _parsed(first) != {"format": FORMAT, **asdict(order)}:
            problem = "this is no file of results for the same dataset and --seed"
            raise _mistaken(path, 1, problem, "name another file, or measure the same")
        rows = list(_rows(path, lines))
        if whole != text:
            path.write_text(whole, encoding="utf-8")
        return cls(path, rows)

    def done(self) -> frozenset[tuple[str, str, str]]:
        """Return the keys of what was measured already."""
        return frozenset(row.key for row in self.rows)

    def add(self, row: Row) -> None:
        """Keep `row`; raise `OSError` when it cannot be written."""
        if self._path is not None:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(_line(asdict(row)))
        self.rows.append(row)


def _rows(path: Path, lines: list[str]) -> Iterator[Row]:
    seen: set[tuple[str, str, str]] = set()
    for number, line in enumerate(lines, start=2):
        row = _parse_row(_parsed(line))
        if row is None or row.key in seen:
            problem = "this line is no result, or one that was there before"
            raise _mistaken(path, number, problem, "take the line out: it is measured again")
        seen.add(row.key)
        yield row


def _parse_row(value: Any) -> Row | None:  # noqa: ANN401 - parse step
    """Return the row that `value` is, None for anything else."""
    if not isinstance(value, dict) or value.keys() != {each.name for each in fields(Row)}:
        return None
    typed = all(isinstance(value[name], kind) for name, kind in _TYPES.items())
    if not typed or value["tier"] not in set(Tier):
        return None
    if not all(isinstance(name, str) and name in FAMILIES for name in (value["outcome"], *value["failed"])):
        return None
    return Row(**{**value, "tier": Tier(value["tier"]), "failed": tuple(value["failed"])})


def _parsed(line: str) -> Any:  # noqa: ANN401 - parse step
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def _line(value: dict[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=True) + "\n"


def _mistaken(path: Path, line: int, problem: str, fix: str) -> ConfigError:
    return ConfigError([Mistake(file=str(path), line=line, where="", problem=problem, fix=fix)])
