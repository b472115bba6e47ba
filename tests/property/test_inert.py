# SPDX-License-Identifier: Apache-2.0
"""The reader's screen (design 02): foreign text does nothing on a terminal, whatever it is."""

import io
import json
import sys
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from runner.adapters.cli.inert import folded, inert, inert_line, tail, to_json
from runner.adapters.cli.screen import INDENT, print_block, print_facts, print_line, print_table

ATTACKS = (
    "\x1b]8;;http://x.example/?q=RSSMRA80A01F205X\x1b\\click\x1b]8;;\x1b\\",  # OSC 8: a link
    "\x1b]52;c;cm0gLXJm\x07",  # OSC 52: the clipboard
    "\x9d52;c;cm0gLXJm\x9c",  # the same with C1 controls
    "\x1b[2J\x1b[H\x9b31m\x1bc\x1bP$q\x1b\\",
    "a\rb\bc\x7f\v\f\0",
    "\u202egnp.exe\u2066\u2069\u200e\u200f\u061c\u2028\u2029\x85",
    "\u200b\u2060\ufeff\u00ad\U000e0041\ud800\udfff\uffff\ue000",
)
MARKUP = ("[bold red]x[/]", "[link=http://x.example]x[/link]", "[@click=quit]x", ":skull: x", "[/nothing]")
MARKDOWN = ("![x](http://x.example/p.png?d=1)", "[x](javascript:alert(1))", "<img src=x>", "`x` **x**")

anything = st.lists(
    st.one_of(
        st.characters(exclude_categories=()), st.sampled_from(ATTACKS + MARKUP + MARKDOWN), st.just("\n")
    )
).map("".join)


def at_terminal(width: int = 40) -> Console:
    return Console(
        file=io.StringIO(),
        force_terminal=True,
        color_system="truecolor",
        width=width,
        markup=False,
        emoji=False,
        highlight=False,
        soft_wrap=True,
        legacy_windows=False,
    )


def shown(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def is_inert(text: str) -> bool:
    return all(char.isprintable() or char == "\n" for char in text)


def test_every_single_code_point_is_inert() -> None:
    every = [chr(code) for code in range(sys.maxunicode + 1)]
    assert all(is_inert(inert(char)) for char in every)
    assert is_inert(to_json({"text": "".join(every)}))


@given(anything)
def test_any_text_is_inert_and_stays_so(text: str) -> None:
    assert is_inert(inert(text))
    assert inert(inert(text)) == inert(text)
    assert inert_line(text).isprintable()


@given(st.text(st.characters(min_codepoint=32, max_codepoint=126) | st.sampled_from("àèìòùÀÈ€—“”🙂\n")))
def test_ordinary_text_is_shown_as_it_is(text: str) -> None:
    assert inert(text) == text


@pytest.mark.parametrize("text", MARKUP + MARKDOWN)
def test_markup_and_markdown_stay_text(text: str) -> None:
    console = at_terminal()
    print_block(console, text)
    print_line(console, text)
    assert shown(console) == f"  {text}\n{text}\n"


@given(anything, st.integers(10, 100), st.integers(1, 3))
def test_a_block_on_a_terminal_is_inert_and_no_line_of_it_stands_in_our_column(
    text: str, width: int, depth: int
) -> None:
    console = at_terminal(width)
    print_block(console, text, depth=depth)
    lines = shown(console).removesuffix("\n").split("\n")
    assert is_inert(shown(console))
    assert all(line.startswith(INDENT * depth) for line in lines)
    assert all(cell_len(line) < width for line in lines)


@given(anything)
def test_lines_facts_and_tables_carry_no_control_of_a_foreign_text(text: str) -> None:
    console = at_terminal(60)
    print_line(console, text)
    print_facts(console, [("Word", text)])
    print_table(console, ["column"], [[text]])
    ours = shown(console)
    for style in ("\x1b[1m", "\x1b[0m"):
        ours = ours.replace(style, "")
    assert is_inert(ours)


@given(anything, st.integers(2, 80))
def test_folding_loses_nothing_but_space(text: str, width: int) -> None:
    lines = list(folded(text, width))
    assert "".join(lines).replace(" ", "") == inert(text).replace(" ", "").replace("\n", "")
    assert all(cell_len(line) <= width for line in lines)
    assert list(folded(text, None)) == inert(text).split("\n")


def test_folding_takes_linear_time() -> None:
    """A file may hold one line of a megabyte."""
    start = time.process_time()
    assert sum(1 for _ in folded("x" * 1_000_000, 80)) == 12_500
    assert time.process_time() - start < 5


@given(anything, st.integers(-2, 60))
def test_a_tail_fits_and_is_the_end(text: str, width: int) -> None:
    end = tail(text, width)
    assert cell_len(end) <= max(width, 0)
    assert inert_line(text).endswith(end)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | anything,
    lambda inner: st.lists(inner) | st.dictionaries(anything, inner),
    max_leaves=5,
)


@given(st.dictionaries(anything, json_values))
def test_json_is_exact_when_parsed_and_inert_when_printed(value: dict[str, object]) -> None:
    text = to_json(value)
    assert is_inert(text)
    assert text.isascii()
    assert json.loads(text) == json.loads(json.dumps(value))
