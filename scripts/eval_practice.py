# SPDX-License-Identifier: Apache-2.0
"""Asks a practice's questions and scores the answers: right, wrong, or an honest "not found".

Owns the scoring rule and the report. Leaves answering to a profile's runtime, or to any callable that
`evaluate` is given. Carries no runtime invariant, but trusts no answer: a quote counts only if it stands in
the cited file at the cited line, read again here.

    python scripts/eval_practice.py examples/practice-questions.json examples/practice [--json]

The tools are those for files that the profile grants, or those of `--tools`, on the one folder.
"""

import argparse
import json
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, NotRequired, TypeAlias, TypedDict

from runner import AgentLoop, StopReason, open_profile
from runner.agent.planner import FILE_TOOLS
from runner.capability.profile import read_profile
from runner.kernel.config import parse_config
from runner.kernel.errors import RunnerError

Score: TypeAlias = Literal["right", "wrong", "not_found"]


class Expected(TypedDict):
    """What a question file says; the lists and `file` only where `found` is true."""

    found: bool
    file: NotRequired[str]
    answer_any: NotRequired[list[str]]
    quote_any: NotRequired[list[str]]


class Result(TypedDict):
    """What came of a question: `file` relative to the practice's folder, `line` from 1."""

    found: bool
    file: str | None
    line: int | None
    quote: str | None
    answer: str


Ask: TypeAlias = Callable[[str], Result]


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One entry of a question file."""

    id: str
    text: str
    expected: Expected


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """A question's score. `correct` also holds for a "not found" when the files hold no answer."""

    id: str
    score: Score
    correct: bool
    seconds: float
    question: str
    result: Result


def score(expected: Expected, result: Result) -> Score:
    """Return how good `result` is.

    "right" needs the expected file, a quote that holds one of `quote_any`, and one of `answer_any` in the
    answer or the quote; case and spacing do not matter. Any "not found" is "not_found", whether or not there
    was something to find: it misleads nobody. Everything else is "wrong".
    """
    if not result["found"]:
        return "not_found"
    if not expected["found"] or result["file"] != expected.get("file"):
        return "wrong"
    quote = _plain(result["quote"] or "")
    quoted = _holds_any([quote], expected.get("quote_any", []))
    answered = _holds_any([quote, _plain(result["answer"])], expected.get("answer_any", []))
    return "right" if quoted and answered else "wrong"


def stands(folder: Path, result: Result) -> bool:
    """Return whether the quote stands in the cited file of `folder`, at the cited line."""
    quote, file, line = _plain(result["quote"] or ""), result["file"], result["line"]
    if not quote or file is None or line is None:
        return False
    path = (folder / file).resolve()
    if not path.is_relative_to(folder.resolve()) or not path.is_file():
        return False
    lines = path.read_text(encoding="utf-8").splitlines()
    return 1 <= line <= len(lines) and quote in _plain(lines[line - 1])


def evaluate(questions: Iterable[Question], folder: Path, ask: Ask) -> Iterator[Scored]:
    """Yield each question's score as soon as `ask` has answered it; what `ask` raises passes through."""
    for question in questions:
        started = time.monotonic()
        result = ask(question.text)
        seconds = time.monotonic() - started
        found = score(question.expected, result)
        if found == "right" and not stands(folder, result):
            found = "wrong"
        yield Scored(
            id=question.id,
            score=found,
            correct=found == "right" or (found == "not_found" and not question.expected["found"]),
            seconds=round(seconds, 1),
            question=question.text,
            result=result,
        )


def parse_questions(text: str) -> list[Question]:
    """Return the questions of a question file; raise `ValueError` or `KeyError` for one that is none."""
    data: Any = json.loads(text)
    return [
        Question(id=str(item["id"]), text=str(item["question"]), expected=_parse_expected(item["expected"]))
        for item in data
    ]


def totals(scored: Sequence[Scored]) -> dict[str, float]:
    """Return the counts of a whole run; `rightly_not_found` is the part of `not_found` that is correct."""
    counts = Counter(item.score for item in scored)
    return {
        "questions": len(scored),
        "right": counts["right"],
        "wrong": counts["wrong"],
        "not_found": counts["not_found"],
        "rightly_not_found": sum(item.correct and item.score == "not_found" for item in scored),
        "seconds": round(sum(item.seconds for item in scored), 1),
    }


def ask_loop(loop: AgentLoop) -> Ask:
    """Return a callable that asks `loop`, with file names relative to the one granted folder."""

    def ask(question: str) -> Result:
        result = loop.run(question)
        if result.stop not in {StopReason.ANSWERED, StopReason.NOT_FOUND}:
            print(f"  stopped: {result.stop.value} {result.detail}", file=sys.stderr)
        if result.stop is not StopReason.ANSWERED:
            return Result(found=False, file=None, line=None, quote=None, answer=result.answer)
        if not result.evidence:
            return Result(found=True, file=None, line=None, quote=None, answer=result.answer)
        first = result.evidence[0]
        file = first.file.partition("/")[2]
        return Result(found=True, file=file, line=first.line, quote=first.quote, answer=result.answer)

    return ask


def file_tools(profile: str) -> list[str]:
    """Return the tools for files that `profile` grants; raise `ConfigError` for a profile that is wrong."""
    source = read_profile(profile, {})
    config = parse_config(source.data, file=source.file, locate=source.line)
    return [grant.tool for grant in config.policy.grants if grant.tool in FILE_TOOLS]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the evaluation that the command line names; return the exit status."""
    options = _parse_options(arguments)
    try:
        questions = parse_questions(options.questions.read_text(encoding="utf-8"))
    except (OSError, ValueError, KeyError, TypeError) as error:
        print(f"eval: {options.questions}: not a question file ({type(error).__name__})", file=sys.stderr)
        return 2
    scored: list[Scored] = []
    try:
        tools = options.tools or file_tools(options.profile)
        with open_profile(options.profile, **_overrides(options, tools)) as runtime:
            for item in evaluate(questions, options.folder, ask_loop(runtime.loop())):
                scored.append(item)
                if not options.json:
                    print(_line(item), flush=True)
    except RunnerError as error:
        print(f"eval: {error}", file=sys.stderr)
        return 1
    summary = totals(scored)
    if options.json:
        print(json.dumps({"total": summary, "questions": [asdict(item) for item in scored]}, indent=2))
    else:
        print("  ".join(f"{name}: {value:g}" for name, value in summary.items()))
    return 0


def _overrides(options: argparse.Namespace, tools: Sequence[str]) -> dict[str, Any]:
    folder = str(options.folder.resolve())
    overrides: dict[str, Any] = {
        "policy": {"grants": [{"tool": tool, "paths": [folder]} for tool in tools]},
        "budget": {"seconds": options.seconds},
    }
    if options.model is not None:
        overrides["inference"] = {"local": {"model": options.model}}
    return overrides


def _parse_options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Score a profile's answers to the questions on a practice.")
    parser.add_argument("questions", type=Path, help="question file (JSON)")
    parser.add_argument("folder", type=Path, help="the folder the questions are about")
    parser.add_argument("--profile", default="detached", help="profile name or file")
    parser.add_argument("--model", help="a model of the catalogue, instead of the profile's")
    parser.add_argument(
        "--tools", nargs="+", help="tools to grant, instead of those for files of the profile"
    )
    parser.add_argument("--seconds", type=int, default=3600, help="time limit of a question")
    parser.add_argument("--json", action="store_true", help="print one JSON object at the end")
    return parser.parse_args(arguments)


def _parse_expected(data: Any) -> Expected:  # noqa: ANN401 - untrusted JSON becomes typed here
    if data["found"] is not True:
        return Expected(found=False)
    return Expected(
        found=True,
        file=str(data["file"]),
        answer_any=[str(text) for text in data["answer_any"]],
        quote_any=[str(text) for text in data["quote_any"]],
    )


def _line(item: Scored) -> str:
    result = item.result
    place = f"{result['file']}:{result['line']}" if result["found"] else "-"
    mark = "" if item.correct or item.score == "wrong" else " (missed)"
    return f"{item.id}  {item.score + mark:<18} {item.seconds:6.1f} s  {place}  {result['answer']}"


def _holds_any(texts: Sequence[str], wanted: Sequence[str]) -> bool:
    return any(_plain(one) in text for text in texts for one in wanted)


def _plain(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip().casefold()


if __name__ == "__main__":
    sys.exit(main())
