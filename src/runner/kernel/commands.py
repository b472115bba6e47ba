# SPDX-License-Identifier: Apache-2.0
"""Commands: what a program may be told, and reading an argument list against it.

Owns the form of the rules and one total function from an argument list to exactly what is run. Reads no file:
the rules are data that a capability brings. Starts nothing. Carries I1: a program, a subcommand, a flag or an
operand that no rule names is refused; nothing is expanded, abbreviated or guessed, for there is no shell.

What is run is written anew from what was understood: flags one by one, then `--`, then operands. So what the
policy judged and what the program reads are one text.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, TypeAlias

ARGV: Final = "argv"
"""The argument of a call that holds the argument list, the program's name first."""
FOLDER: Final = "folder"
"""The argument of a call that names the folder a program starts in, and its operands start from."""
LONGEST: Final = 1000
"""Characters of one argument."""
MOST: Final = 64
"""Arguments of one call."""

_NUMBER: Final = re.compile(r"[+-]?[0-9]{1,9}[kKMG]?")
_REVISION: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./@^~{}:-]{0,199}")
_OPERATORS: Final = frozenset({";", ";;", "&", "&&", "|", "||", "|&", "!", "\\;", "{", "}"})
_EXPRESSION: Final = frozenset({"(", ")", "!", ","})
_REDIRECTION: Final = re.compile(r"[0-9&]?[<>]")
_SUBSTITUTION: Final = ("$(", "${", "`", "\n", "\r")
_UNFIT: Final = re.compile("[\0\ud800-\udfff]")
_ASSIGNMENT: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\+?=")


class Value(StrEnum):
    """What may stand as the value of a flag, or as an operand."""

    NUMBER = "number"
    TEXT = "text"
    """Any text: the program matches or prints with it, and opens nothing by it."""
    PATH = "path"
    """A file or folder that is there, beneath a granted one."""
    PATHSPEC = "pathspec"
    """A path of a version store, which may be gone from the folder."""
    REVISION = "revision"
    """A commit, a range or an object of a version store. A program may take it for a path: judged as both."""


class Style(StrEnum):
    """How a program reads its arguments."""

    GETOPT = "getopt"
    """Short flags, alone or behind one dash; long ones by their whole name; operands anywhere."""
    WORDS = "words"
    """Long names behind one dash; operands anywhere."""
    FIND = "find"
    """Paths, then an expression whose order counts."""


Allowed: TypeAlias = Value | frozenset[str]
"""A kind of value, or the words that are all there is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Operands:
    """What follows the flags: one of each of `first`, then any number of `rest` (None: no more).

    `least` and `most` count them together. After `--`, those of `after` (None: the same as before it).
    """

    first: tuple[Value, ...] = ()
    rest: Value | None = Value.PATH
    least: int = 0
    most: int = MOST
    after: Value | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandRules:
    """What a program, or a subcommand of one, may be told.

    `flags` stand alone, `values` take one value. `before` and `behind` are arguments that are always added:
    behind its name, and at the end. `subcommands`: the name of one of them comes first. `data` are files of
    the system that it needs. `digest` is the SHA-256 of where this was read, for the policy's own digest.
    """

    name: str
    does: str = ""
    style: Style = Style.GETOPT
    flags: frozenset[str] = frozenset()
    values: Mapping[str, Allowed] = field(default_factory=dict)
    operands: Operands = field(default_factory=Operands)
    before: tuple[str, ...] = ()
    behind: tuple[str, ...] = ()
    subcommands: Mapping[str, "CommandRules"] = field(default_factory=dict)
    data: tuple[str, ...] = ()
    digest: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A command that fits its rules: the `rules`, the `arguments` to run it with, and the paths it names.

    `paths` are from the top, as a model names files: every operand that its program may open something by;
    without one, the folder itself. `present` are those of them that have to be there.
    """

    rules: CommandRules
    arguments: tuple[str, ...] = field(repr=False)
    folder: str = field(repr=False)
    paths: tuple[str, ...] = field(repr=False)
    present: tuple[str, ...] = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """A command that does not fit. `hint` says what would, in the words of the rules, and quotes nothing."""

    hint: str


def parse_command(arguments: Mapping[str, object], granted: Mapping[str, CommandRules]) -> Command | Refused:
    """Return the command that the call's `arguments` spell, by the rules of the `granted` programs. Total."""
    argv, folder = arguments.get(ARGV), arguments.get(FOLDER, ".")
    if not isinstance(argv, list | tuple) or not 0 < len(argv) <= MOST:
        return Refused(hint=f"{ARGV} is a list of one to {MOST} texts: the program, then its arguments")
    if not isinstance(folder, str) or (start := _joined((), folder)) is None:
        return Refused(hint=f"{FOLDER} is a granted folder, or one beneath it")
    try:
        words = [_word(each) for each in argv]
        rules = _program(words[0], granted)
        reader = _Reader(start)
        written = (*rules.before, *reader.read(rules, words[1:]))
    except _Unfit as problem:
        return Refused(hint=str(problem))
    return Command(
        rules=rules,
        arguments=written,
        folder="/".join(start),
        paths=tuple(reader.paths) or ("/".join(start) or ".",),
        present=tuple(reader.present),
    )


class _Unfit(Exception):
    """What does not fit, in our words."""


def _word(item: object) -> str:
    if not isinstance(item, str) or len(item) > LONGEST or _UNFIT.search(item):
        raise _Unfit(f"each argument is a text of at most {LONGEST} characters")
    return item


def _program(name: str, granted: Mapping[str, CommandRules]) -> CommandRules:
    known = ", ".join(sorted(granted)) or "none"
    if name in granted:
        return granted[name]
    if _ASSIGNMENT.match(name):
        raise _Unfit(f"no variable is set for a program. Programs: {known}")
    if " " in name:
        raise _Unfit(f"there is no shell: each argument is an item of {ARGV} by itself. Programs: {known}")
    raise _Unfit(f"the first argument is the name of a granted program: {known}")


def _joined(start: Sequence[str], path: str) -> tuple[str, ...] | None:
    """Return the names from the top to `path`, which starts at `start`; None unless it goes down only."""
    if path in {"", "."}:
        return tuple(start)
    parts = [part for part in path.removesuffix("/").split("/") if part != "."]
    if any(part in {"", ".."} or "\\" in part for part in parts):
        return None
    return (*start, *parts)


class _Reader:
    """Reads arguments by rules, and keeps the paths among them."""

    def __init__(self, start: Sequence[str]) -> None:
        self._start = tuple(start)
        self.paths: list[str] = []
        self.present: list[str] = []

    def read(self, rules: CommandRules, words: Sequence[str]) -> Iterator[str]:
        """Yield what `rules.name` is run with for `words`; raise `_Unfit`."""
        if rules.subcommands:
            if not words or words[0] not in rules.subcommands:
                known = ", ".join(sorted(rules.subcommands))
                raise _Unfit(f"behind {rules.name} comes, before anything else, one of: {known}")
            inner = rules.subcommands[words[0]]
            yield from (inner.name.rpartition(" ")[2], *inner.before, *self.read(inner, words[1:]))
            return
        if rules.style is Style.FIND:
            yield from self._expression(rules, words)
            return
        flags, operands, after = _apart(rules, words)
        yield from flags
        yield from self._operands(rules, operands, after)
        yield from rules.behind

    def _operands(
        self, rules: CommandRules, operands: Sequence[str], after: Sequence[str] | None
    ) -> Iterator[str]:
        wanted = rules.operands
        if not wanted.least <= len(operands) + len(after or ()) <= wanted.most:
            raise _Unfit(f"{rules.name} takes {wanted.least} to {wanted.most} operands")
        if wanted.after is None:
            operands, after = (*operands, *(after or ())), None
            yield "--"
        for number, word in enumerate(operands):
            kind = wanted.first[number] if number < len(wanted.first) else wanted.rest
            yield self._value(rules, kind, word)
        if after is not None:
            yield "--"
            yield from (self._value(rules, wanted.after, word) for word in after)

    def _expression(self, rules: CommandRules, words: Sequence[str]) -> Iterator[str]:
        paths = [*_until_expression(words)]
        yield from (self._value(rules, Value.PATH, word) for word in paths)
        rest = iter(words[len(paths) :])
        for word in rest:
            if word in rules.flags:
                yield word
            elif word in rules.values:
                yield word
                yield _valued(rules, word, next(rest, None))
            else:
                raise _unknown(rules)
        yield from rules.behind

    def _value(self, rules: CommandRules, kind: Value | None, word: str) -> str:
        if kind is None:
            raise _Unfit(f"{rules.name} takes no further operand")
        if kind in {Value.PATH, Value.PATHSPEC}:
            return self._path(word, present=kind is Value.PATH)
        checked = _checked(rules, kind, word)
        if kind is Value.REVISION:
            self._path(checked, present=False)
        return checked

    def _path(self, word: str, *, present: bool) -> str:
        _refuse_shell(word)
        parts = _joined(self._start, word)
        if parts is None:
            raise _Unfit(f"what names a file goes down from {FOLDER}: no '..', no '/' in front, no '\\'")
        path = "/".join(parts) or "."
        self.paths.append(path)
        self.present += [path] if present else []
        below = "/".join(parts[len(self._start) :]) or "."
        return f"./{below}" if below.startswith("-") or below in _EXPRESSION else below


def _apart(rules: CommandRules, words: Sequence[str]) -> tuple[list[str], list[str], list[str] | None]:
    """Return the flags of `words` one by one, the operands before `--`, and those behind one."""
    flags: list[str] = []
    operands: list[str] = []
    rest = iter(words)
    for word in rest:
        if word == "--":
            return flags, operands, list(rest)
        if not word.startswith("-") or word == "-":
            operands.append(word)
            continue
        name, equals, value = word.partition("=")
        if word in rules.flags:
            flags.append(word)
        elif word in rules.values:
            flags += _spelled(word, _valued(rules, word, next(rest, None)))
        elif equals and name.startswith("--") and name in rules.values:
            flags.append(f"{name}={_valued(rules, name, value)}")
        else:
            flags += _cluster(rules, word)
    return flags, operands, None


def _spelled(flag: str, value: str) -> list[str]:
    return [f"{flag}={value}"] if flag.startswith("--") else [flag, value]


def _cluster(rules: CommandRules, word: str) -> list[str]:
    """Return the short flags of `word`, such as -la, one by one; none of them takes a value."""
    each = [f"-{letter}" for letter in word[1:]]
    if rules.style is not Style.GETOPT or not rules.flags.issuperset(each):
        raise _unknown(rules)
    return each


def _unknown(rules: CommandRules) -> _Unfit:
    known = ", ".join(sorted(rules.flags | rules.values.keys())) or "none"
    return _Unfit(f"{rules.name} has these flags here, a value being an argument by itself: {known}")


def _valued(rules: CommandRules, flag: str, word: str | None) -> str:
    if word is None:
        raise _Unfit(f"{flag} of {rules.name} takes a value")
    return _checked(rules, rules.values[flag], word)


def _checked(rules: CommandRules, allowed: Allowed, word: str) -> str:
    """Return `word` if it is what is `allowed`, which is no path: those are operands; raise `_Unfit`."""
    match allowed:
        case Value.TEXT:
            return word
        case Value.NUMBER if _NUMBER.fullmatch(word):
            return word
        case Value.REVISION if _REVISION.fullmatch(word):
            return word
        case frozenset() if word in allowed:
            return word
        case frozenset():
            raise _Unfit(f"a value of {rules.name} is one of: {', '.join(sorted(allowed))}")
        case _:
            raise _Unfit(f"a value of {rules.name} is a {allowed.value}")


def _until_expression(words: Sequence[str]) -> Iterator[str]:
    for word in words:
        if word.startswith("-") or word in _EXPRESSION:
            return
        yield word


def _refuse_shell(word: str) -> None:
    if word in _OPERATORS or _REDIRECTION.match(word) or any(sign in word for sign in _SUBSTITUTION):
        raise _Unfit("there is no shell: one program a call, no operator, redirection, variable or heredoc")
