# SPDX-License-Identifier: Apache-2.0
"""How much of JSON Schema our grammars get right: one command, three public sets of vectors.

A schema passes when it is ``exact`` and the grammar alone judges every instance rightly, members put in
declared order. Run: ``python benchmarks/grammar.py [--failures]``. The sets are read in place and skipped
when absent.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from runner.capability.grammar import CompiledSchema, arrangements, canonical_text, compile_schema, matches

VECTORS = Path(__file__).resolve().parents[2] / "shared" / "vectors"


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A schema and its instances, each with the right verdict."""

    name: str
    schema: object
    tests: tuple[tuple[object, bool], ...]


@dataclass(slots=True, kw_only=True)
class Score:
    """Counts over one set; ``failures`` are (name, what went wrong)."""

    schemas: int = 0
    instances: int = 0
    passed_schemas: int = 0
    passed_instances: int = 0
    false_accepts: int = 0
    false_rejects: int = 0
    status: Counter[str] = field(default_factory=Counter)
    keywords: Counter[str] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)
    failures: list[tuple[str, str]] = field(default_factory=list)

    def as_dict(self) -> dict[str, int]:
        """Return the figures that a ratchet holds."""
        return {
            "passed_schemas": self.passed_schemas,
            "passed_instances": self.passed_instances,
            "false_accepts_on_exact": self.false_accepts,
            "false_rejects_on_exact": self.false_rejects,
        }


def maskbench() -> Iterator[Case]:
    """Yield the sample of real schemas."""
    for line in (VECTORS / "maskbench" / "sample.jsonl").read_text(encoding="utf-8").splitlines():
        item = json.loads(line)
        tests = tuple((test["data"], test["valid"]) for test in item["tests"])
        yield Case(name=item["name"], schema=item["schema"], tests=tests)


def suite(draft: str) -> Iterator[Case]:
    """Yield the mandatory groups of the JSON-Schema-Test-Suite for ``draft``."""
    dialect = {"draft7": "http://json-schema.org/draft-07/schema#"}.get(draft)
    for path in sorted((VECTORS / "jsonschema" / "tests" / draft).glob("*.json")):
        for group in json.loads(path.read_text(encoding="utf-8")):
            schema = group["schema"]
            if dialect and isinstance(schema, dict):
                schema = {"$schema": dialect, **schema}
            tests = tuple((test["data"], test["valid"]) for test in group["tests"])
            yield Case(name=f"{path.stem}: {group['description']}", schema=schema, tests=tests)


def accepts(compiled: CompiledSchema, value: object) -> bool:
    """Whether the grammar accepts ``value`` with its members in some declared order."""
    if compiled.gbnf is None or compiled.form is None:
        raise ValueError("compiled: a refused schema has no grammar")
    texts = dict.fromkeys(canonical_text(option) for option in arrangements(compiled.form, value))
    return any(matches(compiled.gbnf, text) for text in texts)


def measure(cases: Iterator[Case], *, assert_formats: bool) -> Score:
    """Compile and judge every case."""
    score = Score()
    for case in cases:
        started = time.process_time()
        compiled = compile_schema(case.schema, assert_formats=assert_formats)  # type: ignore[arg-type] # vectors
        score.seconds.append(time.process_time() - started)
        score.schemas += 1
        score.instances += len(case.tests)
        score.status[compiled.status] += 1
        if compiled.status != "exact":
            score.keywords.update(compiled.approximations or (f"refused: {compiled.reason}",))
            score.failures.append(
                (case.name, f"{compiled.status} {compiled.approximations} {compiled.reason}")
            )
            continue
        _judge(case, compiled, score)
    return score


def _judge(case: Case, compiled: CompiledSchema, score: Score) -> None:
    right = True
    for value, valid in case.tests:
        verdict = accepts(compiled, value)
        if verdict != valid:
            right = False
            score.false_accepts += verdict
            score.false_rejects += not verdict
            kind = "FALSE ACCEPT" if verdict else "false reject"
            score.failures.append((case.name, f"{kind} {canonical_text(value)[:200]}"))
    score.passed_schemas += right
    score.passed_instances += len(case.tests) if right else 0


def sets() -> dict[str, Score]:
    """Measure every set that is there."""
    found: dict[str, Score] = {}
    if (VECTORS / "maskbench").is_dir():
        found["maskbench"] = measure(maskbench(), assert_formats=True)
    for draft in ("draft2020-12", "draft7"):
        if (VECTORS / "jsonschema" / "tests" / draft).is_dir():
            # The mandatory tests take "format" as an annotation.
            found[draft] = measure(suite(draft), assert_formats=False)
    return found


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--failures", action="store_true", help="list every schema that does not pass")
    arguments = parser.parse_args()
    for name, score in sets().items():
        times = sorted(score.seconds)
        print(
            f"{name}: {score.passed_schemas}/{score.schemas} schemas, "
            f"{score.passed_instances}/{score.instances} instances in passing schemas"
        )
        print(f"  on exact: {score.false_accepts} false accepts, {score.false_rejects} false rejects")
        print(f"  status: {dict(score.status)}")
        print(f"  not exact: {dict(score.keywords.most_common(12))}")
        median, high, worst = (1e3 * times[index] for index in (len(times) // 2, len(times) * 99 // 100, -1))
        print(f"  compile, processor time: p50 {median:.2f} ms, p99 {high:.1f} ms, max {worst:.0f} ms")
        if arguments.failures:
            for case, why in score.failures:
                print(f"    {case}: {why}")


if __name__ == "__main__":
    main()
