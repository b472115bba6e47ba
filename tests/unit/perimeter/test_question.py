# SPDX-License-Identifier: Apache-2.0
"""I1: what an approver is shown cannot be imitated or scrolled away by what a model wrote into a call."""

import json
from hashlib import sha256
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from runner.kernel.labels import DataClass, Label
from runner.kernel.messages import Block, BlockKind, ToolCall
from runner.kernel.ports import FOREIGN
from runner.perimeter.question import WIDTH, approval_request

ORIGIN = Block(id="b0", kind=BlockKind.GOAL, text="q", label=Label())
LINES_OF_OURS = 4

arguments = st.dictionaries(st.text(max_size=9), st.text(max_size=200) | st.integers() | st.lists(st.text()))


def rendering(tool: str, **given: Any) -> str:
    call = ToolCall(tool=tool, arguments=given, origin=ORIGIN)
    return approval_request(call, DataClass.C2).rendering


def arguments_in(shown: str) -> str:
    """Return the JSON behind the marks; lines of the model's text have no breaks of their own."""
    return "".join(line.removeprefix(FOREIGN) for line in shown.split("\n") if line.startswith(FOREIGN))


def test_i1_class_and_tool_stand_above_the_arguments_and_again_right_above_the_question() -> None:
    text = json.dumps({"to": "eve"}, indent=2)
    facts = [
        "class C2",
        "tool 'send_mail'",
        f"arguments {len(text)} characters, SHA-256",
        sha256(text.encode()).hexdigest(),
    ]
    assert rendering("send_mail", to="eve").split("\n") == [
        *facts,
        "    | {",
        '    |   "to": "eve"',
        "    | }",
        *facts,
        "",
    ]


def test_i1_text_that_looks_like_ours_stands_behind_the_mark_on_every_line() -> None:
    """The attack: filler that scrolls the truth away, then lines padded to where a fold would put them."""
    rows = ["." * WIDTH] * 60 + [
        line.ljust(WIDTH) for line in ("class C0", "tool 'list_dir'", "arguments {}")
    ]
    shown = rendering("send_mail", text="x" * (WIDTH - 11) + "".join(rows)).splitlines()
    assert [line for line in shown if "class" in line and not line.startswith(FOREIGN)] == ["class C2"] * 2
    assert [line for line in shown if "class C0" in line] == [f"{FOREIGN}{'class C0'.ljust(WIDTH)}"]
    assert shown[-LINES_OF_OURS:-2] == ["class C2", "tool 'send_mail'"]


@given(given=arguments)
def test_i1_whatever_the_arguments_are_they_are_shown_whole_and_behind_the_mark(
    given: dict[str, Any],
) -> None:
    shown = rendering("send_mail", all=given)
    lines = shown.removesuffix("\n").split("\n")
    ours = [line for line in lines if not line.startswith(FOREIGN)]
    assert ours == lines[:LINES_OF_OURS] * 2 == lines[-LINES_OF_OURS:] * 2
    assert shown.isascii()
    assert all(line.isprintable() and len(line) <= len(FOREIGN) + WIDTH for line in lines)
    assert json.loads(arguments_in(shown)) == {"all": given}
