# SPDX-License-Identifier: Apache-2.0
"""A dataset in the form of the Berkeley Function Calling Leaderboard, read from a folder.

Owns the reading and the drawing of a sample. A category is two files of JSON lines: `BFCL_<category>.json`
with questions and functions, and `possible_answer_` before the same name with what is right. Every mistake
is told with its file and line, all at once; nothing is passed over. Holds no data of its own.
"""

import json
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, TypeAlias

from runner.adapters.evaluation.functions import Unclear, parse_function, tool_name
from runner.kernel.errors import ConfigError, Mistake
from runner.kernel.messages import ToolSpec

_PREFIX: Final = "BFCL_"
_ANSWERS: Final = "possible_answer_"
_FIX: Final = "correct the line, or leave it out of both files"
Allowed: TypeAlias = Mapping[str, Sequence[Any]]
"""The allowed values of each argument of a call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One question: `tools` are offered, `right` are the calls to make, in any order, each a tool's name."""

    id: str
    category: str
    question: str = field(repr=False)
    tools: tuple[ToolSpec, ...] = field(repr=False)
    right: tuple[tuple[str, Allowed], ...] = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset:
    """What was read: the items in the order of files and lines, and the SHA-256 of the files as one."""

    items: tuple[Item, ...]
    digest: str

    def drawn(self, limit: int | None, seed: int) -> tuple[Item, ...]:
        """Return `limit` items, or all, in the order in which `seed` draws them.

        However many are taken from the front, each category has its share of them. So a run that is broken
        off has measured a fair sample, and a larger limit begins with the items of a smaller one.
        """
        places: dict[str, list[int]] = {}
        for place, item in enumerate(self.items):
            places.setdefault(item.category, []).append(place)
        ranked = [
            ((rank + 0.5) / len(of_one), category, place)
            for category, of_one in places.items()
            for rank, place in enumerate(_shuffled(of_one, f"{seed}/{category}"))
        ]
        return tuple(self.items[place] for _, _, place in sorted(ranked)[:limit])


def _shuffled(places: Sequence[int], seed: str) -> list[int]:
    return random.Random(seed).sample(places, len(places))  # noqa: S311 - a sample, not a secret


def read_dataset(folder: Path) -> Dataset:
    """Return the dataset in `folder`; raise `ConfigError` with every mistake, each with file and line."""
    reading = _Reading()
    digest = sha256()
    items: list[Item] = []
    questions = sorted(folder.glob(f"{_PREFIX}*.json"))
    if not questions:
        problem, fix = "there are no questions here", f"name a folder that holds {_PREFIX}<category>.json"
        raise ConfigError([Mistake(file=str(folder), line=0, where="", problem=problem, fix=fix)])
    for path in questions:
        asked = reading.lines(path)
        answered = reading.lines(path.with_name(_ANSWERS + path.name))
        if asked is None or answered is None:
            continue
        digest.update(repr((path.name, asked, answered)).encode("utf-8", "surrogatepass"))
        items += reading.items(path, asked, answered)
    if reading.mistakes:
        raise ConfigError(reading.mistakes)
    return Dataset(items=tuple(items), digest=digest.hexdigest())


class _Reading:
    """Reads files, and keeps what is wrong with them."""

    def __init__(self) -> None:
        self.mistakes: list[Mistake] = []
        self._seen: set[str] = set()

    def blame(self, path: Path, line: int, where: str, problem: str, fix: str = _FIX) -> None:
        self.mistakes.append(Mistake(file=str(path), line=line, where=where, problem=problem, fix=fix))

    def lines(self, path: Path) -> dict[int, Any] | None:
        """Return the JSON values of a file by line, from 1; None when there is nothing in it to be read.

        Then that is the one mistake: what the lines of the other file lack follows from it.
        """
        if path.exists() and not path.is_file():
            self.blame(path, 0, "", "this is no regular file", "put the file itself beside the questions")
            return None
        try:
            text = path.read_text(encoding="utf-8")
        except FileNotFoundError:
            self.blame(path, 0, "", "this file is missing", "put it beside the questions")
            return None
        except (OSError, UnicodeDecodeError):
            self.blame(path, 0, "", "this file cannot be read as UTF-8", "save it as UTF-8, readable by you")
            return None
        if not text.strip():
            self.blame(path, 0, "", "this file is empty", "fill it, or remove both files of its category")
            return None
        found = {}
        for number, line in enumerate(text.split("\n"), start=1):
            if line.strip():
                try:
                    found[number] = json.loads(line, parse_constant=_no_constant)
                except (ValueError, RecursionError):
                    self.blame(path, number, "", "this line is not JSON")
        return found

    def items(self, path: Path, asked: Mapping[int, Any], answered: Mapping[int, Any]) -> Iterator[Item]:
        """Yield the items whose question and answer could both be read."""
        category = path.stem.removeprefix(_PREFIX)
        answers = dict(self._each(path.with_name(_ANSWERS + path.name), answered, _parse_answer))
        for name, (question, tools, line) in self._each(path, asked, _parse_question):
            if name in self._seen:
                self.blame(path, line, "id", "this id is there twice")
            elif name not in answers:
                self.blame(path, line, "id", "no line of the answers can be read for this id")
            elif not {tool for tool, _ in answers[name]} <= {tool.name for tool in tools}:
                self.blame(path, line, "function", "the answer calls a function that is not offered")
            else:
                yield Item(id=name, category=category, question=question, tools=tools, right=answers[name])
            self._seen.add(name)

    def _each(
        self, path: Path, lines: Mapping[int, Any], parse: Callable[[Any, int], tuple[str, Any]]
    ) -> Iterator[tuple[str, Any]]:
        for number, value in lines.items():
            try:
                yield parse(value, number)
            except Unclear as unclear:
                self.blame(path, number, unclear.where, unclear.problem)


def _no_constant(_: str) -> Any:  # noqa: ANN401 - never returns
    raise ValueError("not JSON")


def _parse_question(value: Any, line: int) -> tuple[str, tuple[str, tuple[ToolSpec, ...], int]]:  # noqa: ANN401
    """Return the id, and of a question of one turn by the user: its text, its tools and its line."""
    match value:
        case {
            "id": str(name),
            "question": [[{"role": "user", "content": str(text)}]],
            "function": [_, *_] as functions,
        }:
            tools = tuple(parse_function(each, f"function.{at}") for at, each in enumerate(functions))
            if len({tool.name for tool in tools}) < len(tools):
                raise Unclear("function", "two functions have one name")
            return name, (text, tools, line)
        case _:
            raise Unclear("", "a line has an id, a question of one turn by the user, and functions")


def _parse_answer(value: Any, _: int) -> tuple[str, tuple[tuple[str, Allowed], ...]]:  # noqa: ANN401
    """Return the id and the right calls, each with the allowed values of its arguments."""
    match value:
        case {"id": str(name), "ground_truth": [_, *_] as calls}:
            return name, tuple(_parse_right(call, f"ground_truth.{at}") for at, call in enumerate(calls))
        case _:
            raise Unclear("", "a line has an id, and the right calls under ground_truth")


def _parse_right(call: Any, where: str) -> tuple[str, Allowed]:  # noqa: ANN401 - parse step
    if not isinstance(call, dict) or len(call) != 1:
        raise Unclear(where, "a right call is one function with its arguments")
    name, arguments = next(iter(call.items()))
    if not isinstance(arguments, dict) or not all(isinstance(each, list) for each in arguments.values()):
        raise Unclear(where, "an argument has a list of allowed values")
    return tool_name(name), arguments
