# SPDX-License-Identifier: Apache-2.0
"""The values of the classifier: what a rule is, what a finding is.

Owns `Rule`, `Span` and `Classification`. Leaves the tables to `rules`, `credentials` and
`lexicon`, and the matching to `engine`.
Carries I12: a `Span` says where and what kind, and holds no text, so that no repr, log line or
trace record built from it can quote the content.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Final, NamedTuple

from runner.kernel.labels import DataClass


class Role(Enum):
    """What a hit of a rule means."""

    FINDING = "finding"
    """Something in itself: it becomes a span and its class counts."""
    TOPIC = "topic"
    """A sensitive subject: it becomes a span only with a person near it."""
    MARKER = "marker"
    """Words that speak of one person: evidence for a topic, never a span."""


class View(Enum):
    """The reading of the text in which a hit was made."""

    TEXT = "text"
    """The text itself, look-alike characters folded one for one: the span is exact."""
    JOINED = "joined"
    """Invisible characters removed, compatibility characters expanded: the span is exact."""
    SPACED = "spaced"
    """A line end, a tab or several blanks inside a paragraph read as one space: the span is exact."""
    UNESCAPED = "unescaped"
    """Percent, `\\u` and HTML character escapes replaced: the span covers the escapes."""
    SQUEEZED = "squeezed"
    """Single characters or chunks written apart closed up: the span covers the run."""
    DECODED = "decoded"
    """Inside base64 or hexadecimal: the span is the whole encoded run. To be denied, not redacted."""


def is_clear(view: View) -> bool:
    """Say whether a hit in `view` needs no corroboration and its span is exact."""
    return view in _CLEAR


_CLEAR: Final = (View.TEXT, View.JOINED, View.SPACED)

Check = Callable[[str], int]
"""Takes a candidate (ASCII) and returns how many of its leading characters are accepted; 0 rejects it.

Returning a length below the candidate's is how a greedy pattern gives back the word it swallowed.
"""


def whole(candidate: str) -> int:
    """Return the length of `candidate`: the check of a rule whose pattern says it all."""
    return len(candidate)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One detector: one line of a table.

    `pattern` is RE2 syntax over ASCII (the views are folded to ASCII before matching). Its first
    group, if there is one, is the candidate; otherwise the whole match is.

    `context` is the vocabulary that corroborates the rule. With `needs_context` a hit counts only
    near such a word; without, only in a derived view (percent, base64 and so on) is it asked for,
    and `distinctive` waives even that: the shape cannot arise by chance.

    `amid`, when given, is what right before a candidate makes its shape worth nothing, as numbers do before a
    number; it ends in `$`. There too a hit counts only near a word of `context`.

    `trigger`, when given, is a cheaper pattern that holds wherever `pattern` can: the prefilter
    uses it instead. With `trigger_leads` it holds right where `pattern` begins.

    `of_a_line` says that the rule means a line as it stands: it is not asked where line ends are spaces.

    `stands`, when given, takes the 80 characters before a candidate, and it, and says whether it may
    stand behind them: RE2 looks at nothing behind.
    """

    name: str
    kind: str
    data_class: DataClass
    pattern: str
    check: Check = whole
    context: str = ""
    needs_context: bool = False
    distinctive: bool = False
    role: Role = Role.FINDING
    trigger: str = ""
    trigger_leads: bool = False
    amid: str = ""
    stands: Callable[[str, str], bool] | None = None
    of_a_line: bool = False

    def __post_init__(self) -> None:
        """Refuse a rule that could never hit; raise `ValueError` naming the rule and the fix."""
        if (self.needs_context or self.amid) and not self.context:
            raise ValueError(f"rule {self.name!r} needs a context but names none: give it `context`")


class Span(NamedTuple):
    """Where something was found: offsets in code points of the original text, `end` excluded.

    A text may have one for every few characters, so it is a tuple, which is made four times as fast.
    """

    start: int
    end: int
    kind: str
    rule: str
    data_class: DataClass
    view: View = View.TEXT

    @property
    def redactable(self) -> bool:
        """Whether replacing the span removes what was found. A decoded run is denied as a whole."""
        return self.view is not View.DECODED


@dataclass(frozen=True, slots=True, kw_only=True)
class Classification:
    """What the rules say about one text: the `detected` part of its label, and why.

    `spans` is sorted by `(start, end)`. `version` names the set of rules that judged; two
    classifications of one text under one version are equal.
    """

    data_class: DataClass
    spans: tuple[Span, ...]
    version: str
