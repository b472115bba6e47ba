# SPDX-License-Identifier: Apache-2.0
"""I1: an argument list is read by rules; what no rule names is refused, and what is run was understood."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.capability.tools.commandrules import command_rules, parse_rules
from runner.kernel.commands import LONGEST, MOST, Command, Refused, parse_command
from runner.kernel.errors import ConfigError

RULES = command_rules()
EVERY_WORD = sorted(
    {flag for rules in RULES.values() for flag in (*rules.flags, *rules.values)}
    | set(RULES)
    | set(RULES["git"].subcommands)
    | {
        "--",
        "-",
        ".",
        "..",
        "a",
        "a/b",
        "../a",
        "/etc/passwd",
        "-la",
        "-rf",
        "5",
        "--lines=5",
        "--lin=5",
        ";",
        "|",
    }
)


def parsed(*argv: str, folder: str = ".") -> Command:
    found = parse_command({"argv": list(argv), "folder": folder}, RULES)
    assert isinstance(found, Command), found
    return found


def refused(*argv: str, folder: str = ".") -> str:
    found = parse_command({"argv": list(argv), "folder": folder}, RULES)
    assert isinstance(found, Refused), found
    return found.hint


@pytest.mark.parametrize(
    ("argv", "arguments"),
    [
        (["ls"], ["--"]),
        (["ls", "-la", "a"], ["-l", "-a", "--", "a"]),
        (["ls", "a", "-l"], ["-l", "--", "a"]),
        (["ls", "--sort=size"], ["--sort=size", "--"]),
        (["ls", "--sort", "size", "a/"], ["--sort=size", "--", "a"]),
        (["cat", "./a/b"], ["--", "a/b"]),
        (["cat", "--", "-x"], ["--", "./-x"]),
        (["find", "./(", "./!", "-empty"], ["./(", "./!", "-empty"]),
        (["diff", "-r", "a", "b"], ["--no-dereference", "-r", "--", "a", "b"]),
        (["head", "-n", "5", "a"], ["-n", "5", "--", "a"]),
        (["grep", "-rn", "--", "-v", "a"], ["-r", "-n", "--", "-v", "a"]),
        (["grep", "a; rm -rf $(x) `y`", "a"], ["--", "a; rm -rf $(x) `y`", "a"]),
        (["sort", "-k", "2", "a"], ["--parallel=1", "-k", "2", "--", "a"]),
        (["find", "a", "-name", "*.txt", "-o", "-type", "d"], ["a", "-name", "*.txt", "-o", "-type", "d"]),
        (["pdftotext", "-layout", "-f", "2", "a.pdf"], ["-layout", "-f", "2", "--", "a.pdf", "-"]),
    ],
    ids=" ".join,
)
def test_what_is_run_is_written_anew_from_what_was_understood(argv: list[str], arguments: list[str]) -> None:
    assert list(parsed(*argv).arguments) == arguments


def test_git_gets_what_turns_off_its_own_ways_out_before_its_subcommand() -> None:
    arguments = parsed("git", "log", "-p", "main", "--", "notes").arguments
    at = arguments.index("log")
    assert {"--no-pager", "core.fsmonitor=false", "core.hooksPath=/dev/null", "protocol.allow=never"} <= set(
        arguments[:at]
    )
    assert arguments[at + 1 :] == (
        "--no-ext-diff", "--no-textconv", "--no-show-signature", "-p", "main", "--", "notes"
    )  # fmt: skip


@pytest.mark.parametrize(
    ("argv", "folder", "paths"),
    [
        (["ls"], ".", ["."]),
        (["ls"], "a/b/", ["a/b"]),
        (["cat", "x", "b/y"], "a", ["a/x", "a/b/y"]),
        (["cat", "a/x"], ".", ["a/x"]),
        (["grep", "word", "x"], "a", ["a/x"]),
        (["find", ".", "-empty"], "a", ["a"]),
        (["git", "log", "main"], "a", ["a/main"]),
        (["git", "diff", "HEAD~1..v1.0", "--", "x"], "a", ["a/HEAD~1..v1.0", "a/x"]),
        (["git", "log"], "a", ["a"]),
        (["git", "diff", "--", "x"], "a", ["a/x"]),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else value,
)
def test_i1_the_paths_of_a_command_are_told_from_the_top(
    argv: list[str], folder: str, paths: list[str]
) -> None:
    """The policy judges these, so that a path that hides in an argument is judged as any other."""
    assert list(parsed(*argv, folder=folder).paths) == paths


@pytest.mark.parametrize(
    "argv",
    [
        ["ls", "--co=always"],
        ["ls", "--recurs"],
        ["ls", "-lQ"],
        ["ls", "-l5"],
        ["head", "-n5", "a"],
        ["head", "-5", "a"],
        ["head", "-n", "x", "a"],
        ["head", "-n"],
        ["head"],
        ["ls", "--sort=none;x"],
        ["ls", "--all=1"],
        ["uniq", "a", "b"],
        ["cmp", "a"],
        ["git"],
        ["git", "log", "--output=x"],
        ["pdftotext", "a.pdf", "out.txt"],
        ["cat", "a\0b"],
        ["cat", "\ud800"],
        ["cat", "a" * (LONGEST + 1)],
        ["cat", *["a"] * MOST],
    ],
    ids=lambda argv: ascii(" ".join(argv))[:40],
)
def test_i1_what_no_rule_names_is_refused(argv: list[str]) -> None:
    """Abbreviated, combined with what takes a value, glued to its value, too many, too few, or no text."""
    refused(*argv)


@pytest.mark.parametrize("subcommand", ["log", "show", "diff", "blame"])
@pytest.mark.parametrize("word", ["d/../../x", "d/..", "d/../x", "d//x", "d/./../x"])
def test_i1_a_revision_goes_no_way_that_a_path_may_not(subcommand: str, word: str) -> None:
    """Git takes it for a path where it can."""
    for words in ([word], ["a", word], [word, "a"], [word, "--", "a"]):
        refused("git", subcommand, *words, folder="a")


@pytest.mark.parametrize(
    "word", ["a..b", "a...b", "HEAD^..", "feature/x..main", "HEAD^{/fix}", "HEAD:docs/", "v1^{}"]
)
def test_i1_a_range_or_an_object_is_a_revision(word: str) -> None:
    assert parsed("git", "diff", word, folder="a").arguments[-1] == word


def test_i1_no_program_is_granted_by_an_empty_list() -> None:
    assert isinstance(parse_command({"argv": ["ls"]}, {}), Refused)


def test_i12_a_refusal_quotes_nothing() -> None:
    for argv in (
        ["SECRET"],
        ["ls", "--SECRET"],
        ["cat", "../SECRET"],
        ["git", "SECRET"],
        ["ls", "--sort", "SECRET"],
    ):
        assert "SECRET" not in refused(*argv)


@given(
    argv=st.lists(st.sampled_from(EVERY_WORD) | st.text(max_size=8), max_size=8), folder=st.text(max_size=6)
)
def test_i1_reading_is_total_and_what_it_lets_through_is_ruled(argv: list[str], folder: str) -> None:
    """Whatever the list, each dash in front of the operands is a flag of the rules, and no path goes up."""
    found = parse_command({"argv": argv, "folder": folder}, RULES)
    if isinstance(found, Refused):
        return
    assert argv[0] in RULES
    for path in (*found.paths, found.folder):
        assert not path.startswith("/")
        assert ".." not in path.split("/")
    words = list(found.arguments)
    rules = found.rules
    if rules.subcommands:
        rules = rules.subcommands[argv[1]]
        words = words[words.index(argv[1]) + 1 + len(rules.before) :]
    head = words[: words.index("--")] if "--" in words else words
    expected = rules.flags | rules.values.keys() | set(rules.before) | set(found.rules.before)
    after_value = False
    for word in head:
        if not after_value and word.startswith("-"):
            assert word.partition("=")[0] in expected or word in expected
        after_value = not after_value and word in rules.values


ANYTHING = st.none() | st.integers() | st.text(max_size=3) | st.lists(st.integers() | st.text(max_size=3))


@given(arguments=st.dictionaries(st.sampled_from(["argv", "folder", "x"]), ANYTHING))
def test_i1_reading_is_total_on_any_arguments(arguments: dict[str, Any]) -> None:
    assert isinstance(parse_command(arguments, RULES), Command | Refused)


@pytest.mark.parametrize(
    "text",
    [
        "flagz: [-a]",
        "flags: [-1]",
        "values: {-n: numbr}",
        "style: loose",
        "operands: {lest: 1}",
        "values: {-n: 3}",
    ],
)
def test_i1_rules_with_a_slip_are_an_error_not_wider_rules(text: str) -> None:
    with pytest.raises(ValueError):
        parse_rules("x", text)


def test_rules_are_plain_yaml() -> None:
    with pytest.raises(ConfigError):
        parse_rules("x", "flags: &a [*a]")
