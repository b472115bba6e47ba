# SPDX-License-Identifier: Apache-2.0
"""Invariant P2: whatever path and text a model writes, nothing outside changes, nothing inside is lost."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trees import NAMES, OPENERS, planted

from runner.capability.tools.drafting import MoveToBin, PatchFile, WriteFile
from runner.capability.tools.names import BIN, check_new, check_no_twin, check_written, fold
from runner.kernel.errors import ToolError
from runner.kernel.messages import Json
from runner.kernel.ports import GrantedCall, Root, Tool

CANARY = "canary-7b1d"
ODD = (
    *("", "..", "...", ".", "~", "\\", "\0", "\x1b[31m", "\udcff", "\ud800", "%2e%2e", "C:", " ", "e\u0301"),
    *(
        "A.TXT",
        "a.txt ",
        "a.txt.",
        "\u2024.",
        "\uff0e\uff0e",
        BIN,
        BIN.upper(),
        ".git",
        "x" * 300,
        "con\u200b",
    ),
)
paths = st.one_of(
    st.lists(st.sampled_from(NAMES + ODD), max_size=7).map("/".join),
    st.lists(st.sampled_from(NAMES + ODD), min_size=1, max_size=4).map(lambda names: "/".join(("g", *names))),
    st.text(max_size=20).map(lambda text: f"g/{text}"),
)
texts = st.one_of(st.sampled_from(["", "first line\n", "second"]), st.text(max_size=30))


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Root:
    return planted(tmp_path_factory.mktemp("tree"), CANARY)


def outside(root: Root) -> list[tuple[str, bytes, int]]:
    folder = Path(root.path).parent / "outside"
    return [(each.name, each.read_bytes(), each.stat().st_nlink) for each in folder.iterdir()]


def contents(root: Root) -> set[bytes]:
    """Return what each file beneath the root holds, wherever it is."""
    files = [each for each in Path(root.path).rglob("*") if each.is_file() and not each.is_symlink()]
    return {each.read_bytes() for each in files}


def files_of(root: Root) -> Iterator[Path]:
    """Yield every name beneath the root that is not in the bin, relative to it."""
    for each in Path(root.path).rglob("*"):
        inner = each.relative_to(root.path)
        if inner.parts[0] != BIN:
            yield inner


@settings(max_examples=150, deadline=None)
@given(path=paths, new_old=st.tuples(texts, texts), opener=st.sampled_from(OPENERS), replace=st.booleans())
def test_p2_no_call_changes_anything_outside_or_loses_anything_inside(
    root: Root, path: str, new_old: tuple[str, str], opener: Any, *, replace: bool
) -> None:
    before, kept = outside(root), contents(root)
    new, old = new_old
    calls: tuple[tuple[Tool, dict[str, Json]], ...] = (
        (WriteFile(opener=opener), {"text": new, "replace": replace}),
        (PatchFile(opener=opener), {"old": old, "new": new}),
        (MoveToBin(opener=opener), {}),
    )
    for tool, more in calls:
        try:
            said = tool.run(GrantedCall(arguments={"path": path, **more}, roots=(root,))).text
        except ToolError as refusal:
            said = str(refusal)
            assert said.isascii(), "a refusal repeats nothing of the call (I12)"
            assert said.isprintable()
        assert CANARY not in said
        assert root.path not in said, "the machine's own paths are not the model's business"
    assert outside(root) == before
    assert contents(root) >= kept
    for name in (part for each in files_of(root) for part in each.parts):
        assert name.isprintable()
        assert not fold(name).startswith(".")


@settings(max_examples=300, deadline=None)
@given(name=st.text(min_size=1, max_size=8))
def test_a_name_that_may_be_written_is_seen_and_is_no_other_name(name: str) -> None:
    try:
        check_written((name,))
        check_new(name)
        check_no_twin(name, (name.upper(), name.lower(), name.swapcase()))
    except ToolError:
        return
    assert name.isprintable()
    assert not fold(name).startswith(".")
    assert name.strip() == name
    assert name.upper() == name.lower()
