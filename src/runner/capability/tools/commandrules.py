# SPDX-License-Identifier: Apache-2.0
"""The rules of the programs that a profile may grant, read from the files in `commands/`.

Owns the form of those files. Leaves judging an argument list by them to `runner.kernel.commands`. Carries I1:
a program without a file cannot be granted, and a key or kind that is misspelt is an error, not a wider rule.
"""

import functools
from collections.abc import Mapping
from hashlib import sha256
from importlib import resources
from typing import Any, Final

from runner.capability.plainyaml import parse_plain
from runner.kernel.commands import MOST, Allowed, CommandRules, Operands, Style, Value

_NODES: Final = 2000
_KEYS: Final = frozenset(
    {"does", "style", "flags", "values", "operands", "before", "behind", "subcommands", "data"}
)
_OPERAND_KEYS: Final = frozenset({"first", "rest", "least", "most", "after"})


@functools.cache
def command_rules() -> Mapping[str, CommandRules]:
    """Return the rules of every program that can be granted, by its name."""
    folder = resources.files("runner.capability.tools").joinpath("commands")
    texts = {entry.name.removesuffix(".yaml"): entry.read_text("utf-8") for entry in folder.iterdir()}
    return {name: parse_rules(name, texts[name]) for name in sorted(texts)}


def parse_rules(name: str, text: str) -> CommandRules:
    """Return the rules of the program `name` in `text`, which is plain YAML.

    Raises `ConfigError` for other YAML, and `ValueError` for a key or a kind that there is not.
    """
    found = parse_plain(text, file=f"{name}.yaml", nodes=_NODES).value
    return _rules(name, found, digest=sha256(text.encode("utf-8")).hexdigest())


def _rules(name: str, found: Mapping[str, Any], *, digest: str) -> CommandRules:
    _check_keys(found, _KEYS)
    inner = found.get("subcommands", {})
    return CommandRules(
        name=name,
        does=_text(found.get("does", "")),
        style=Style(found.get("style", Style.GETOPT)),
        flags=frozenset(_texts(found.get("flags", []))),
        values={flag: _allowed(kind) for flag, kind in found.get("values", {}).items()},
        operands=_operands(found.get("operands", {})),
        before=_texts(found.get("before", [])),
        behind=_texts(found.get("behind", [])),
        subcommands={each: _rules(f"{name} {each}", inner[each], digest=digest) for each in inner},
        data=_texts(found.get("data", [])),
        digest=digest,
    )


def _operands(found: Mapping[str, Any]) -> Operands:
    _check_keys(found, _OPERAND_KEYS)
    after = found.get("after")
    return Operands(
        first=tuple(map(Value, found.get("first", ()))),
        rest=Value(found.get("rest", Value.PATH)),
        least=int(found.get("least", 0)),
        most=int(found.get("most", MOST)),
        after=None if after is None else Value(after),
    )


def _allowed(kind: object) -> Allowed:
    return frozenset(_texts(kind)) if isinstance(kind, list) else Value(_text(kind))


def _check_keys(found: Mapping[str, Any], known: frozenset[str]) -> None:
    if not set(found) <= known:
        raise ValueError(f"the rules of a program have these keys: {', '.join(sorted(known))}")


def _texts(items: Any) -> tuple[str, ...]:  # noqa: ANN401 - parse step
    return tuple(_text(item) for item in items)


def _text(item: Any) -> str:  # noqa: ANN401 - parse step
    if not isinstance(item, str):
        raise ValueError("the rules of a program hold texts: write a number in quotes")  # noqa: TRY004 - see parse_rules
    return item
