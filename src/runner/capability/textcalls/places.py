# SPDX-License-Identifier: Apache-2.0
"""Where in a reply a call may stand: where a model's turn makes one, and nowhere else.

Owns what reasoning is, which tokens stand around calls, and the rule: a call begins a line, prose stands only
before the first, and nothing but calls, blanks and tokens follows. Everywhere else it is quoted. Carries P2:
what a model cites, considers or declines, it did not ask for.
"""

import re
from typing import Final

from runner.capability.textcalls.cursor import Ambiguous, Cursor, Truncated

_THOUGHTS: Final = r"(?:seed:)?think|thinking|reasoning|thoughts?|reflection|scratchpad"
_THOUGHT: Final = re.compile(rf"(?ai:<({_THOUGHTS})(?:\s[^<>]{{0,100}})?>)")
_PAIRS: Final = {
    "[THINK]": "[/THINK]",
    "<|START_THINKING|>": "<|END_THINKING|>",
    "<|begin_of_thought|>": "<|end_of_thought|>",
    "<|channel>": "<channel|>",
}
_EITHER: Final = "|".join(map(re.escape, _PAIRS))
REASONING: Final = re.compile(rf"{_THOUGHT.pattern}|{_EITHER}")
"""What opens reasoning."""
_CLOSED: Final = re.compile(rf"(?ai:</(?:{_THOUGHTS})\s{{0,9}}>)|{'|'.join(map(re.escape, _PAIRS.values()))}")
"""What closes reasoning of any kind."""

_DSML, _BAR, _GAP = "\uff5cDSML\uff5c", "\uff5c", "\u2581"
_TOKENS: Final = (
    # around calls
    f"<{_BAR}tool{_GAP}calls{_GAP}begin{_BAR}>", f"<{_BAR}tool{_GAP}calls{_GAP}end{_BAR}>",
    f"<{_DSML}function_calls>", f"</{_DSML}function_calls>",
    "<minimax:tool_call>", "</minimax:tool_call>", "<function_calls>", "</function_calls>",
    "<|tool_calls_section_begin|>", "<|tool_calls_section_end|>", "<|tool_call_end|>",
    "</tool_call>", "</tool_calls>", "[/TOOL_CALLS]", "<start_function_response>", "<|tool_response>",
    # around turns
    "<s>", "</s>", "<|eot_id|>", "<|eom_id|>", "<|im_end|>", "<|end|>", "<|call|>", "<|return|>", "<eos>",
    "<|end_of_text|>", "<|endoftext|>", "<end_of_turn>", "<turn|>", "<|END_OF_TURN_TOKEN|>",
    f"<{_BAR}end{_GAP}of{_GAP}sentence{_BAR}>",
)  # fmt: skip
_NOTHING: Final = re.compile(
    rf"(?:\s|{'|'.join(map(re.escape, _TOKENS))}|<\|start\|>assistant(?: to=[A-Za-z0-9_.\-]{{1,140}})?)*"
)
"""Blanks, and tokens that templates put around calls and turns."""


def skip_reasoning(cursor: Cursor, opener: str) -> None:
    """Pass over the reasoning that `opener` began; raise `Truncated` if it does not end."""
    tag = _THOUGHT.fullmatch(opener)
    closer = rf"(?ai:</{re.escape(tag.group(1))}\s{{0,9}}>)" if tag else re.escape(_PAIRS[opener])
    end = re.compile(closer).search(cursor.text, cursor.at)
    if end is None:
        raise Truncated("truncated")
    cursor.at = end.end()


def skip_open_reasoning(cursor: Cursor) -> bool:
    """Pass over reasoning whose opening stood in the prompt; return whether there was any."""
    end = _CLOSED.search(cursor.text, cursor.at)
    if end is None or REASONING.search(cursor.text, cursor.at, end.start()) is not None:
        return False
    cursor.at = end.end()
    return True


def is_nothing(text: str) -> bool:
    """Return whether `text` is blanks and tokens only."""
    return _NOTHING.fullmatch(text) is not None


def check_begins(lead: str) -> None:
    """Raise `Ambiguous` unless a call may begin after `lead`, which is what stands before the first.

    It begins a line, in no open fence and between no quotation marks.
    """
    line = lead[max(lead.rfind("\n"), lead.rfind("\r")) + 1 :]
    in_marks = lead.count('"') % 2 or lead.count("\u201c") > lead.count("\u201d")
    in_marks = in_marks or lead.count("\u00ab") > lead.count("\u00bb")
    in_fence = lead.count("```") % 2 or lead.count("~~~") % 2
    if in_marks or in_fence or not is_nothing(line):
        raise Ambiguous("quoted_call")


def check_over(cursor: Cursor) -> None:
    """Raise `Ambiguous` unless what is left is blanks and tokens."""
    if not is_nothing(cursor.text[cursor.at :]):
        raise Ambiguous("text_after_call")
