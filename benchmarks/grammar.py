# SPDX-License-Identifier: Apache-2.0
"""How much of JSON Schema our grammars get right, and how soon: one command, public sets of vectors.

A schema passes when it is ``exact`` and the grammar alone judges every instance rightly, members put in
declared order. llguidance, where it is installed, judges the same texts in the same run. Then come fifty
tools, and schemas that are meant to take long. Run: ``python benchmarks/grammar.py [--failures]``. The sets
are read in place and skipped when absent; times are of the processor.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import re
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

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
    if compiled.gbnf is None:
        raise ValueError("compiled: a refused schema has no grammar")
    return any(matches(compiled.gbnf, text) for text in texts_of(compiled, value))


def texts_of(compiled: CompiledSchema, value: object) -> list[str]:
    """Return ``value`` as text, its members in each declared order, or as they are where none is declared."""
    options = [value] if compiled.form is None else arrangements(compiled.form, value)
    return list(dict.fromkeys(map(canonical_text, options)))


def measure(cases: Iterator[Case], *, assert_formats: bool) -> Score:
    """Compile every case, and then judge each: what judging leaves in caches is no part of compiling."""
    score = Score()
    done: list[tuple[Case, CompiledSchema]] = []
    for case in cases:
        started = time.process_time()
        compiled = compile_schema(case.schema, assert_formats=assert_formats)  # type: ignore[arg-type] # vectors
        score.seconds.append(time.process_time() - started)
        done.append((case, compiled))
    for case, compiled in done:
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


def peer(cases: Iterator[Case]) -> Score:
    """Let llguidance judge every case, in the texts that ours are judged in."""
    import llguidance

    tokenizer: Any = llguidance.LLTokenizer("byte")
    score = Score()
    for case in cases:
        started = time.process_time()
        matcher: Any = llguidance.LLMatcher(
            tokenizer, llguidance.LLMatcher.grammar_from_json_schema(json.dumps(case.schema)), log_level=0
        )
        score.seconds.append(time.process_time() - started)
        score.schemas += 1
        score.instances += len(case.tests)
        score.status["refused" if matcher.is_error() else "compiled"] += 1
        if matcher.is_error():
            continue
        ours = compile_schema(case.schema)  # type: ignore[arg-type] # vectors
        verdicts = [
            (any(_finishes(matcher, tokenizer, text) for text in texts_of(ours, value)), valid)
            for value, valid in case.tests
        ]
        score.false_accepts += sum(verdict and not valid for verdict, valid in verdicts)
        score.false_rejects += sum(valid and not verdict for verdict, valid in verdicts)
        if all(verdict == valid for verdict, valid in verdicts):
            score.passed_schemas += 1
            score.passed_instances += len(verdicts)
    return score


def _finishes(matcher: Any, tokenizer: Any, text: str) -> bool:  # noqa: ANN401 - llguidance has no types
    """Whether ``text`` is a whole value; asked first, since a refused token breaks the matcher for good."""
    matcher.reset()
    tokens = tokenizer.tokenize_str(text)
    if matcher.validate_tokens(tokens) < len(tokens):
        return False
    return bool(matcher.consume_tokens(tokens) and matcher.is_accepting())


def tools(count: int = 50) -> list[dict[str, object]]:
    """Return the parameters of ``count`` tools of the Berkeley function-calling set, as JSON Schema."""
    path = VECTORS / "bfcl" / "BFCL_v4_multiple_half.json"
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    names = {"dict": "object", "float": "number", "tuple": "array"}
    found: list[dict[str, object]] = []
    for line in lines:
        text = re.sub(r'"type": "(dict|float|tuple)"', lambda kind: f'"type": "{names[kind[1]]}"', line)
        text = text.replace('"type": "any", ', "")
        found += [tool["parameters"] for tool in json.loads(text)["function"]]
    return found[:count]


def print_tools() -> None:
    """Print how long fifty tools take, nothing compiled before."""
    started = time.process_time()
    compiled = [compile_schema(tool) for tool in tools()]
    spent = 1e3 * (time.process_time() - started)
    print(f"{len(compiled)} tools: {spent:.0f} ms, {dict(Counter(each.status for each in compiled))}")


def print_hostile() -> None:
    """Print how long each schema takes that is meant to take long."""
    from _grammar_hostile import HOSTILE

    print("meant to take long:")
    for name, schema in HOSTILE.items():
        started = time.process_time()
        compiled = compile_schema(schema)
        spent = time.process_time() - started
        why = compiled.reason or " ".join(compiled.approximations)
        print(f"  {name}: {spent:.2f} s, {compiled.status} {why}".rstrip())


def print_score(name: str, score: Score) -> None:
    """Print the figures of one set."""
    times = sorted(score.seconds)
    print(
        f"{name}: {score.passed_schemas}/{score.schemas} schemas, "
        f"{score.passed_instances}/{score.instances} instances in passing schemas"
    )
    print(f"  judged: {score.false_accepts} false accepts, {score.false_rejects} false rejects")
    print(f"  status: {dict(score.status)}")
    if score.keywords:
        print(f"  not exact: {dict(score.keywords.most_common(12))}")
    median, high, worst = (1e3 * times[index] for index in (len(times) // 2, len(times) * 99 // 100, -1))
    print(f"  compile, processor time: p50 {median:.2f} ms, p99 {high:.1f} ms, max {worst:.0f} ms")


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--failures", action="store_true", help="list every schema that does not pass")
    arguments = parser.parse_args()
    print_tools()
    for name, score in sets().items():
        print_score(name, score)
        if arguments.failures:
            for case, why in score.failures:
                print(f"    {case}: {why}")
    if importlib.util.find_spec("llguidance") and (VECTORS / "maskbench").is_dir():
        print_score("maskbench, llguidance", peer(maskbench()))
    print_hostile()


if __name__ == "__main__":
    main()
