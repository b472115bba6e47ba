# SPDX-License-Identifier: Apache-2.0
"""Judgement: how local something is, what content is, who approves, and a tool that does as it is told.

Owns fixed and scripted answers. What a fake was asked is kept, so that a test can look at it.
"""

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from runner.kernel.inference import Address, Answer, WireRequest
from runner.kernel.labels import DataClass
from runner.kernel.messages import JsonObject, ToolSpec
from runner.kernel.opinions import Opinion
from runner.kernel.ports import (
    ApprovalRequest,
    Effect,
    GrantedCall,
    Locality,
    ToolOutput,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FixedLocality:
    """Answers the same `locality` for every address. Implements `LocalityCheck`."""

    locality: Locality

    async def grade(self, address: Address) -> Locality:  # noqa: ARG002 - the port
        """Return the fixed grade."""
        return self.locality


class FakeServerCheck:
    """Asks `questions` and reads `locality` into any answers. Implements `ServerCheck`.

    `seen` holds the answers of every check.
    """

    def __init__(self, *, locality: Locality, questions: Sequence[WireRequest] = ()) -> None:
        self.questions = tuple(questions)
        self._locality = locality
        self.seen: list[tuple[Answer | None, ...]] = []

    def grade(self, answers: Sequence[Answer | None]) -> Locality:
        """Keep the answers; return the fixed grade."""
        self.seen.append(tuple(answers))
        return self._locality


@dataclass(frozen=True, slots=True, kw_only=True)
class FakeHit:
    """Where `FakeClassifier` found something. Implements `Hit`."""

    start: int
    end: int
    data_class: DataClass
    kind: str = "fake"
    redactable: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class FakeFinding:
    """What `FakeClassifier` found. Implements `Finding`."""

    data_class: DataClass
    spans: tuple[FakeHit, ...] = ()


class FakeClassifier:
    """Finds the substrings of `classes` and nothing else, or raises `fault`. Implements `Classifier`.

    `seen` holds every text it was shown.
    """

    version = "fake/1"

    def __init__(
        self, classes: Mapping[str, DataClass] | None = None, *, fault: Exception | None = None
    ) -> None:
        self._classes = dict(classes or {})
        self._fault = fault
        self.seen: list[str] = []

    def classify(self, text: str, *, source: str | None = None) -> FakeFinding:  # noqa: ARG002 - the port
        """Return the highest class of the substrings that `text` holds, C0 without any."""
        self.seen.append(text)
        if self._fault is not None:
            raise self._fault
        spans = tuple(
            FakeHit(start=start, end=start + len(part), data_class=data_class)
            for part, data_class in self._classes.items()
            for start in range(len(text))
            if text.startswith(part, start)
        )
        return FakeFinding(
            data_class=max((span.data_class for span in spans), default=DataClass.C0), spans=spans
        )


class FakeOpinion:
    """Knows the substrings of `words` and nothing else, or raises `fault`. Implements `SecondOpinion`.

    With `hangs` it answers only once `let_go()` was called. `seen` holds every text it was shown.
    """

    def __init__(
        self,
        words: Mapping[str, Opinion] | None = None,
        *,
        name: str = "fake",
        version: str = "fake/1",
        fault: Exception | None = None,
        hangs: bool = False,
    ) -> None:
        self.name = name
        self.version = version
        self._words = dict(words or {})
        self._fault = fault
        self._free = threading.Event()
        if not hangs:
            self._free.set()
        self.seen: list[str] = []

    def opinion(self, text: str) -> Opinion:
        """Return the word for the first substring that `text` holds, `Opinion.NONE` without any."""
        self.seen.append(text)
        self._free.wait()
        if self._fault is not None:
            raise self._fault
        return next((word for part, word in self._words.items() if part in text), Opinion.NONE)

    def let_go(self) -> None:
        """Let everyone who waits for an answer have it."""
        self._free.set()


class ScriptedApprover:
    """Answers with `answers` in order, and no after the last. Implements `Approver`.

    `asked` holds every request it was shown.
    """

    def __init__(self, *, answers: Sequence[bool] = (), name: str = "scripted-approver") -> None:
        self._answers = iter(answers)
        self._name = name
        self.asked: list[ApprovalRequest] = []

    @property
    def name(self) -> str:
        """Who approves."""
        return self._name

    async def approve(self, request: ApprovalRequest) -> bool:
        """Return the next scripted answer."""
        self.asked.append(request)
        return next(self._answers, False)


class FakeTool:
    """A tool that returns `output`, or raises it when it is an exception. Implements `Tool`.

    `calls` holds every call it was given. `parameters` defaults to an object of one string, `path`. One that
    `veils` may be given a veil; it returns its output as it is.
    """

    def __init__(
        self,
        *,
        name: str = "fake",
        output: ToolOutput | Exception | None = None,
        effect: Effect = Effect.READ,
        parameters: JsonObject | None = None,
        path_arguments: frozenset[str] = frozenset({"path"}),
        veils: bool = False,
    ) -> None:
        self.veils = veils
        self._spec = ToolSpec(name=name, description="A fake tool.", parameters=parameters or _ONE_PATH)
        self._output = ToolOutput(text="done") if output is None else output
        self._effect = effect
        self._path_arguments = path_arguments
        self.calls: list[GrantedCall] = []

    @property
    def spec(self) -> ToolSpec:
        """Name, description and JSON Schema of the arguments."""
        return self._spec

    @property
    def effect(self) -> Effect:
        """The strongest thing it says it can do."""
        return self._effect

    @property
    def path_arguments(self) -> frozenset[str]:
        """Names of the arguments that are paths."""
        return self._path_arguments

    def run(self, call: GrantedCall) -> ToolOutput:
        """Return or raise the scripted output."""
        self.calls.append(call)
        if isinstance(self._output, Exception):
            raise self._output
        return self._output


_ONE_PATH: Final[JsonObject] = {
    "type": "object",
    "properties": {"path": {"type": "string"}},
    "required": ["path"],
    "additionalProperties": False,
}
