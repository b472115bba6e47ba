# SPDX-License-Identifier: Apache-2.0
"""Measures whether our matcher and llama.cpp's own engine judge every (grammar, text) pair alike.

Run: make test-engine, or python benchmarks/engine.py [--generations N] [--limit N]

The grammars are those of the public sets that `benchmarks/grammar.py` reads. The texts of each are its
instances, texts drawn from it at random, and those with one character changed. The engine is the prebuilt
library of the npm package `@node-llama-cpp/linux-x64`, driven through the ctypes declarations of the source
archive of `llama-cpp-python`; `scripts/engine` unpacks both. It runs in a child process, as a grammar that it
cannot read may crash it.

Before that, N texts are drawn from `exact` grammars: each must be JSON that an independent validator accepts.
"""

import argparse
import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator, Mapping
from decimal import Decimal
from pathlib import Path
from typing import IO, Final

import jsonschema

from runner.capability.grammar import (
    CompiledSchema,
    MatchTooCostlyError,
    arrangements,
    canonical_text,
    compile_schema,
    matches,
    sample,
)
from runner.capability.grammar.form import Form

ROOT: Final = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "benchmarks"))

from grammar import Case, maskbench, suite  # noqa: E402 - the program beside this one

HOME: Final = Path(os.environ.get("AKAION_HOME", ROOT / ".akaion"))
DRIVER: Final = Path(__file__).with_name("_engine_driver.py")
_LONGEST: Final = 4_000
"""Texts are cut to this: the engine's time grows with the grammar's ambiguity too."""


def cases(limit: int) -> Iterator[Case]:
    """Yield up to `limit` cases of each set, evenly spread."""
    for cases_of in (maskbench, lambda: suite("draft2020-12"), lambda: suite("draft7")):
        found = list(cases_of())
        yield from found[:: max(1, -(-len(found) // limit))]


def _compiled(case: Case) -> CompiledSchema:
    return compile_schema(case.schema)  # type: ignore[arg-type] # vectors


def texts_of(case: Case, gbnf: str, form: Form, dice: random.Random) -> list[str]:
    """Return instances in declared order, drawn texts, and each with one character changed."""
    drawn = sample(gbnf, dice.randrange(1 << 30), 4)
    for value, _ in case.tests[:6]:
        drawn += [canonical_text(option) for option in list(arrangements(form, value))[:2]]
    drawn = [text for text in dict.fromkeys(drawn) if 0 < len(text) <= _LONGEST]
    changed = []
    for text in drawn:
        at = dice.randrange(len(text))
        changed.append(text[:at] + dice.choice('"{}[],:0aA -\\é') + text[at + dice.randrange(2) :])
    return list(dict.fromkeys(drawn + changed))


class Engine:
    """llama.cpp's grammars, in a child process that is started again when it dies."""

    def __init__(self) -> None:
        self._pipes: tuple[IO[str], IO[str]] | None = None

    def judge(self, gbnf: str, texts: list[str]) -> list[bool | None] | None:
        """Return whether each text is in the grammar, None for one it cannot spell; None if it is unreadable.

        A grammar of which the engine dies counts as unreadable.
        """
        asks, answers = self._pipes or self._start()
        asks.write(json.dumps({"gbnf": gbnf, "texts": texts}) + "\n")
        asks.flush()
        line = answers.readline()
        if not line:
            self._pipes = None
            return None
        answer: list[bool | None] | None = json.loads(line)
        return answer

    def _start(self) -> tuple[IO[str], IO[str]]:
        command = [sys.executable, str(DRIVER), str(HOME / "engine"), str(HOME / "models")]
        libraries = str(HOME / "engine" / "package" / "bins" / "linux-x64")
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={**os.environ, "LLAMA_CPP_LIB_PATH": libraries},
        )
        if process.stdin is None or process.stdout is None:
            raise RuntimeError("the engine has no pipes")
        self._pipes = process.stdin, process.stdout
        return self._pipes


def agreement(limit: int) -> bool:
    """Print how often the two judge alike; return whether they always do and every grammar parses."""
    engine, dice = Engine(), random.Random(7)  # noqa: S311 - not a secret
    grammars = pairs = unread = 0
    apart: list[str] = []
    for case in cases(limit):
        compiled = _compiled(case)
        if compiled.gbnf is None or compiled.form is None:
            continue
        texts = texts_of(case, compiled.gbnf, compiled.form, dice)
        try:
            ours = [matches(compiled.gbnf, text) for text in texts]
        except MatchTooCostlyError:
            apart.append(f"{case.name}: too costly for our matcher")
            continue
        theirs = engine.judge(compiled.gbnf, texts)
        grammars += 1
        if theirs is None:
            unread += 1
            apart.append(f"{case.name}: the engine cannot read it")
            continue
        pairs += sum(verdict is not None for verdict in theirs)
        apart += [
            f"{case.name}: {text[:80]!a}"
            for text, a, b in zip(texts, ours, theirs, strict=True)
            if b not in {a, None}
        ]
    print(f"engine: {grammars} grammars, {unread} it cannot read; {pairs} pairs, {len(apart)} judged apart")
    print(*apart[:20], sep="\n")
    return not apart


def is_valid(schema: Mapping[str, object], text: str) -> bool:
    """Return whether `text` is JSON that fits `schema`, with numbers as binary fractions or as written."""
    kind = jsonschema.validators.validator_for(schema, jsonschema.Draft202012Validator)
    if kind(schema).is_valid(json.loads(text)):
        return True
    decimal = json.loads(json.dumps(schema), parse_float=Decimal)
    return bool(kind(decimal).is_valid(json.loads(text, parse_float=Decimal)))


def generations(count: int, limit: int) -> bool:
    """Draw `count` texts or more from exact grammars; print and return whether each is a valid value."""
    exact = [
        (case.name, case.schema, compiled.gbnf or "")
        for case in cases(limit)
        if isinstance(case.schema, Mapping) and (compiled := _compiled(case)).status == "exact"
    ]
    each, drawn = -(-count // len(exact)), 0
    wrong: list[str] = []
    for name, schema, gbnf in exact:
        for text in sample(gbnf, 11, each):
            drawn += 1
            if not is_valid(schema, text):
                wrong.append(f"{name}: {text[:80]!a}")
    print(f"generations: {drawn} texts of {len(exact)} exact grammars, {len(wrong)} not valid")
    print(*wrong[:20], sep="\n")
    return not wrong


def main() -> None:
    """Print both figures; the exit status is 1 unless both are perfect."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--generations", type=int, default=10_000)
    parser.add_argument("--limit", type=int, default=900, help="cases of each set")
    arguments = parser.parse_args()
    right = generations(arguments.generations, arguments.limit)
    if (HOME / "engine").is_dir():
        right = agreement(arguments.limit) and right
    else:
        print("engine: not here. Fix: scripts/engine unpacks it")
    sys.exit(0 if right else 1)


if __name__ == "__main__":
    main()
