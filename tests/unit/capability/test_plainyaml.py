# SPDX-License-Identifier: Apache-2.0
"""I7, I12: any text is plain values with their lines, or one mistake with line and fix, in bounded time."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.capability.plainyaml import parse_plain
from runner.kernel.errors import ConfigError, Mistake

PIECES = [
    *("a", "b: ", "- ", "? ", ": ", "\n", "\n  ", "\t", "{", "}", "[", "]", ", ", "'", '"', "|\n", ">-\n"),
    *("&x ", "*x", "<<: ", "!!omap ", "!t ", "! ", "%YAML 1.1\n", "%TAG ! a\n", "---\n", "...\n", "# c\n"),
    *("~", "null", "true", "0x", "0o9", "1_", "_1", ".inf", ".nan", "1e999", "2001-99-99", "=", "y", "\\"),
    *('"\\U00110000"', "\r\n", "|9"),
    *("\0", "\x1b", "\x85", "\u2028", "\ufeff", "\ud800", "\U0010ffff", '"\\ud800"', '"\\0"', '"\\x9"'),
]


def mistake(text: str, nodes: int = 1000) -> Mistake:
    with pytest.raises(ConfigError) as caught:
        parse_plain(text, file="p.yaml", nodes=nodes)
    (found,) = caught.value.mistakes
    return found


def plain(value: object) -> bool:
    match value:
        case dict():
            return all(isinstance(key, str) and plain(item) for key, item in value.items())
        case list():
            return all(map(plain, value))
        case _:
            return value is None or type(value) in {str, int, float, bool}


@given(text=st.text(max_size=80) | st.lists(st.sampled_from(PIECES), max_size=24).map("".join))
def test_i7_parsing_is_total(text: str) -> None:
    try:
        found = parse_plain(text, file="p.yaml", nodes=1000)
    except ConfigError as error:
        (problem,) = error.mistakes
        assert (problem.file, bool(problem.fix)) == ("p.yaml", True)
        assert problem.line >= 0
    else:
        assert plain(found.value)
        assert all(line > 0 for line in found.lines.values())


values = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**9), 10**9) | st.text("abcxyz <&*!-#'\"", max_size=9),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text("abc", min_size=1), inner, max_size=3)
    ),
    max_leaves=9,
)


@given(value=values)
def test_plain_values_come_back_as_they_are(value: object) -> None:
    """JSON is YAML: so the encoder of the standard library is the other half of this round trip."""
    import json  # noqa: PLC0415 - the oracle

    assert parse_plain(json.dumps(value), file="p.yaml", nodes=1000).value == value


def test_the_words_of_yaml_1_2_and_their_lines() -> None:
    text = "a: yes\nb: [1, 0x1f, 0o17, -1.5, true, ~]\nc:\n  - d: '1'\n    e: null\n  -\n    2 words\n"
    found = parse_plain(text, file="p.yaml", nodes=100)
    assert found.value == {
        "a": "yes",
        "b": [1, 31, 15, -1.5, True, None],
        "c": [{"d": "1", "e": None}, "2 words"],
    }
    assert found.lines[("a",)] == 1
    assert found.lines[("b", 5)] == 2
    assert found.lines[("c", 0, "e")] == 5
    assert parse_plain("# nothing\n", file="p.yaml", nodes=100).value is None


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("a: 1\nb: &x 2\n", 2, "anchors"),
        ("a: 1\nb: &x [*x]\n", 2, "anchors"),
        ("a: 1\nb: *x\n", 2, "aliases"),
        ("a: 1\n<<: {b: 2}\n", 2, "a merge"),
        ("a:\n  - <<\n", 2, "something else"),
        ("a: !!omap [b: 1]\n", 1, "tags"),
        ("a: !!set {b}\n", 1, "tags"),
        ("a: !!binary aGk=\n", 1, "tags"),
        ("a: !!python/object/apply:os.system [id]\n", 1, "tags"),
        ("a: !own x\n", 1, "tags"),
        ("a: ! x\n", 1, "tags"),
        ("%YAML 1.1\n---\na: yes\n", 2, "directives"),
        ("%TAG ! tag:x,2000:\n---\na: 1\n", 2, "directives"),
        ("a: 1\n---\nb: 2\n", 2, "second document"),
        ("a: 2001-12-14t21:59:43.10-05:00\n", 1, "something else"),
        ("a: 2001-99-99\n", 1, "something else"),
        ("a: =\n", 1, "something else"),
        ("a: 1\n1: b\n", 2, "not a word"),
        ("a: 1\n~: b\n", 2, "not a word"),
        ("a: 1\n? [b]\n: 2\n", 2, "not a word"),
        ("a: 1\n? {b: 1}\n: 2\n", 2, "not a word"),
        ("a: 1\nb: 2\na: 3\n", 3, "twice"),
        ("a: 1\n'a': 3\n", 2, "twice"),
        ('a: "\\ud800"\n', 1, "character"),
        ('a: "b\\0c"\n', 1, "character"),
        ('"\\e]0;x\\a": 1\n', 1, "character"),
        ("a: 1\nb: \0\n", 2, "character"),
        ("a: 1\n\tb: 2\n", 2, "not YAML"),
        ('a: "\\U00110000"\n', 1, "not YAML"),
        ('a: "\\UFFFFFFFF"\n', 1, "not YAML"),
        ("a: 1\nb: " + "9" * 5000 + "\n", 2, "longer"),
        ("a: " + "[" * 500 + "]" * 500 + "\n", 1, "too deeply"),
        ("a: " + "{b: " * 500 + "1" + "}" * 500 + "\n", 1, "too deeply"),
        ("a:\n" + "  - b\n" * 2000, 999, "too much"),
    ],
)
def test_i6_what_says_more_than_a_reader_sees_is_refused_with_its_line(
    text: str, line: int, words: str
) -> None:
    found = mistake(text)
    assert (found.file, found.line) == ("p.yaml", line)
    assert words in found.problem
    assert found.fix


def test_i7_a_bomb_is_refused_at_its_first_anchor() -> None:
    text = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n"
    text += "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 40))
    assert mistake(text).line == 1


@pytest.mark.timeout(60)
@pytest.mark.parametrize("text", ["[" * 65_536, "a: [" + "x," * 32_768, "- " * 32_768, "{a: " * 16_384])
def test_i7_the_time_is_bounded_by_the_size(text: str) -> None:
    """64 KiB is what a profile may have. Measured: 0.1 to 1.6 s on a slow core."""
    before = time.process_time()
    mistake(text, nodes=10_000)
    assert time.process_time() - before < 20


def test_i12_no_mistake_quotes_the_text() -> None:
    for text in (
        "k: &secret x",
        "k: *secret",
        "secret: 1\nsecret: 2",
        "k: !secret x",
        "k: [secret",
        "? [secret]",
    ):
        assert "secret" not in str(mistake(text))
