# SPDX-License-Identifier: Apache-2.0
"""What a run is made of, and what it comes to: budgets, steps, evidence, stop reasons.

Owns the typed results of the loop. Reprs show shapes, never content (I12).
"""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, Literal, TypeAlias

from runner.kernel.errors import RunnerError
from runner.kernel.labels import DataClass
from runner.kernel.language import not_text, not_whole
from runner.kernel.messages import JsonObject
from runner.kernel.tiers import CallFailure, Tier

UNCONFIRMED: Final = "not confirmed: there was no second reading of the file"
"""The note of an answer that has evidence and was read once."""


class StopReason(StrEnum):
    """Why a run ended."""

    ANSWERED = "answered"
    NOT_FOUND = "not_found"
    """The model says the files do not hold the answer, or no quote supports one."""
    STEPS = "steps"
    TOKENS = "tokens"
    TIME = "time"
    NO_PROGRESS = "no_progress"
    """The same call came again and nothing was found to answer from."""
    DENIED = "denied"
    """`release()` denied a request: see `detail` for the rule."""
    FAILED = "failed"
    """A backend failed, or its replies stayed invalid: see `detail`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """Where a run stops by itself: `steps` tool calls, `tokens` in and out, `seconds` of wall clock."""

    steps: int = 8
    tokens: int = 40_000
    seconds: float = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Where an answer comes from: `quote` was found, by string match, in `file` at line `line` (from 1).

    In a document that is the line of `page`.
    """

    file: str = field(repr=False)
    line: int
    quote: str = field(repr=False)
    page: int | None = None

    @property
    def place(self) -> str:
        """File and line in one piece, with the page of a document."""
        page = "" if self.page is None else f" (page {self.page})"
        return f"{self.file}{page}:{self.line}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolStep:
    """One call and how it ended."""

    tool: str
    arguments: JsonObject = field(repr=False)
    status: Literal["ok", "error", "denied"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedStep:
    """A reply that could not be used.

    `failure` is its class, `tier` how it was to be held to a form, `where` the place in it in our words, and
    `detail` what the backend's error says, when it refused.
    """

    failure: CallFailure
    tier: Tier
    where: str = ""
    detail: str = ""


Step: TypeAlias = ToolStep | FailedStep
UNAPPROVED: Final = "not approved"
"""What is said of a call that needed a yes and got none: no rule denied it."""
EventKind: TypeAlias = Literal["thinking", "text", "call", "result"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult:
    """What came of a task.

    `answer` is text for a person; `evidence` holds only quotes that were checked against what was read;
    `data_class` is the class of the answer; `tokens` counts prompt and completion as reported. `confirmed`
    says whether the file of the evidence, read again, gave the same. `unread` counts the files that could
    not be read as text, and so were not searched, in the call that met most of them; `not_whole` documents
    that were searched, likewise, or read, of which pages or attachments could not be read.
    """

    answer: str = field(repr=False)
    stop: StopReason
    evidence: tuple[Evidence, ...]
    steps: tuple[Step, ...]
    data_class: DataClass
    tokens: int
    task: str
    detail: str = ""
    confirmed: bool = False
    unread: int = 0
    not_whole: int = 0

    @property
    def notes(self) -> tuple[str, ...]:
        """What a person must know beside the answer, in our words: no names, which are content."""
        unconfirmed = [UNCONFIRMED] if self.evidence and not self.confirmed else []
        unread = [not_text(self.unread)] if self.unread else []
        partly = [not_whole(self.not_whole)] if self.not_whole else []
        return (*unconfirmed, *unread, *partly)


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something to show while a run goes on. `kind` says what; `text` is content for the user's own eyes."""

    kind: EventKind
    text: str = field(repr=False)


class Stop(RunnerError):
    """Raised inside the loop to end a run with a reason; never leaves it."""

    def __init__(self, reason: StopReason, detail: str = "") -> None:
        self.reason = reason
        self.detail = detail
        super().__init__(reason.value)
