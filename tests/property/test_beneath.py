# SPDX-License-Identifier: Apache-2.0
"""Invariant P2: whatever a model writes as a path, no tool answers with content from outside the root."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trees import NAMES, OPENERS, planted

from runner.capability.tools.beneath import decode
from runner.capability.tools.filesystem import ListDir, ReadFile, SearchText
from runner.capability.tools.openers import Opener
from runner.capability.tools.pages import split_lines
from runner.capability.tools.paths import shown
from runner.kernel.errors import ToolError
from runner.kernel.ports import GrantedCall, Root, ToolOutput

CANARY = "canary-51ce"
ODD = (
    "",
    ".",
    "..",
    "...",
    "~",
    "\\",
    "..\\",
    "\0",
    "\x1b[31m",
    "\udcff",
    "\ud800",
    "%2e%2e",
    "C:",
    " ",
    "é",
)
paths = st.one_of(
    st.lists(st.sampled_from(NAMES + ODD), max_size=7).map("/".join),
    st.lists(st.sampled_from(NAMES), max_size=4).map(lambda names: "/".join(("g", *names))),
    st.text(max_size=20),
)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Root:
    base = tmp_path_factory.mktemp("tree")
    root = planted(base, CANARY)
    (base / "outside" / "inner-name-of-outside").write_text("")
    (base / "granted" / "sub" / "b.txt").write_bytes(b"perch\xe9")
    return root


def answers(root: Root, opener: Opener, path: str) -> list[ToolOutput | ToolError]:
    found: list[ToolOutput | ToolError] = []
    for tool, arguments in (
        (ListDir(opener=opener), {"path": path}),
        (ReadFile(opener=opener), {"path": path}),
        (SearchText(opener=opener), {"path": path, "query": "canary line secret"}),
    ):
        try:
            found.append(tool.run(GrantedCall(arguments=arguments, roots=(root,))))
        except ToolError as refusal:
            found.append(refusal)
    return found


@settings(max_examples=150, deadline=None)
@given(path=paths)
def test_p2_no_path_yields_content_from_outside(root: Root, path: str) -> None:
    by_opener = [answers(root, opener, path) for opener in OPENERS]
    for answer in (answer for group in by_opener for answer in group):
        text = str(answer) if isinstance(answer, ToolError) else answer.text
        assert CANARY not in text
        assert "inner-name-of-outside" not in text
        assert root.path not in text, "the machine's own paths are not the model's business"
    assert (
        len({repr([a if isinstance(a, ToolOutput) else str(a) for a in group]) for group in by_opener}) == 1
    )


@settings(max_examples=150, deadline=None)
@given(path=paths)
def test_i12_a_refusal_repeats_no_odd_character_of_the_path(root: Root, path: str) -> None:
    for answer in answers(root, OPENERS[-1], path):
        if isinstance(answer, ToolError):
            assert str(answer).isascii()
            assert str(answer).isprintable()


@settings(max_examples=300, deadline=None)
@given(data=st.binary(max_size=40))
def test_any_bytes_are_text_or_refused(data: bytes) -> None:
    try:
        found = decode(data)
    except ToolError:
        return
    assert b"\0" not in data
    found.text.encode()
    back = found.text.encode(found.encoding)
    assert back == data.removeprefix(b"\xef\xbb\xbf")


@settings(max_examples=200, deadline=None)
@given(one=st.text(max_size=12), other=st.text(max_size=12))
def test_a_shown_name_is_one_printable_line_and_tells_names_apart(one: str, other: str) -> None:
    assert shown(one).isprintable()
    assert (shown(one) == shown(other)) == (one == other)


@settings(max_examples=200, deadline=None)
@given(text=st.text(alphabet="ab\r\n\u2028\x0c", max_size=20))
def test_lines_end_only_where_an_editor_ends_them(text: str) -> None:
    lines = split_lines(text)
    assert not any("\n" in line or "\r" in line for line in lines)
    plain = text.replace("\r\n", "\n").replace("\r", "\n")
    assert "\n".join(lines) == plain.removesuffix("\n")
