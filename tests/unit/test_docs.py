# SPDX-License-Identifier: Apache-2.0
"""The documentation tells the truth: links resolve, commands and keys exist, examples compile or run.

What can be compared with the code is compared with it, in both directions: a key, command, public name,
error or reason without its line fails, and so does a line about something that is gone.
"""

import ast
import inspect
import os
import re
import runpy
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, get_args

import pytest
import typer
from pydantic import BaseModel
from pydantic.fields import FieldInfo

import runner
import runner.testing
from runner.adapters.cli.exits import Status
from runner.adapters.cli.main import app
from runner.agent.steps import StopReason
from runner.capability.profile import read_profile
from runner.kernel import errors
from runner.kernel.config import Config, parse_config
from runner.kernel.errors import RunnerError

ROOT: Final = Path(__file__).resolve().parents[2]
REFERENCE: Final = ROOT / "docs" / "reference"
PERIMETER: Final = ROOT / "src" / "runner" / "perimeter"
LINKS: Final = runpy.run_path(str(ROOT / "scripts" / "docs.py"))
PAGES: Final = [page for page in LINKS["pages"]() if "tests" not in page.relative_to(ROOT).parts]
FENCE: Final = re.compile(r"^( *)```(\w*)\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
RUNS: Final = "# runs\n"
GUIDES: Final = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def blocks(page: Path) -> Iterator[tuple[str, str]]:
    """Yield (language, text) of each fenced block."""
    for indent, language, text in FENCE.findall(page.read_text(encoding="utf-8")):
        yield language, re.sub(rf"^{indent}", "", text, flags=re.MULTILINE)


def commands(page: Path) -> Iterator[str]:
    """Yield each line of a shell block and each piece of inline code: where a command can stand."""
    text = page.read_text(encoding="utf-8")
    for language, block in blocks(page):
        if language in {"sh", ""}:
            yield from (line.partition("#")[0].strip() for line in block.splitlines())
    yield from re.findall(r"`([^`\n]+)`", FENCE.sub("", text))


def first_cells(page: Path, *, after: str = "", before: str = "\n## ") -> list[str]:
    """Return the code in the first cell of every table row between the headings `after` and `before`."""
    text = page.read_text(encoding="utf-8").partition(after)[2] if after else page.read_text(encoding="utf-8")
    section = text.partition(before)[0] if after else text
    return re.findall(r"^\| `([^`]+)`", section, re.MULTILINE)


# --- links, commands, examples ----------------------------------------------------------------------


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_link_leads_to_a_file(page: Path) -> None:
    assert list(LINKS["broken_links"](page)) == []


def cli_commands(group: Any = None, path: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    """Yield (words, command) for every command of `akaion` that does something."""
    group = typer.main.get_command(app) if group is None else group
    if not hasattr(group, "commands"):
        yield " ".join(path), group
        return
    for word, command in group.commands.items():
        yield from cli_commands(command, (*path, word))
    if path and group.invoke_without_command:  # last, for the longest name is meant
        yield " ".join(path), group


CLI: Final = dict(cli_commands())


def options_of(command: Any) -> set[str]:
    """Return its options; an option that can be switched off counts in both words."""
    words = (word for parameter in command.params for word in (*parameter.opts, *parameter.secondary_opts))
    return {word for word in words if word.startswith("-")}


def unknown_to_cli(line: str) -> Iterator[str]:
    """Yield what `line` says to `akaion` that it does not understand."""
    said = re.match(r"(?:\S*/)?akaion +(.*)", line)
    if said is None:
        return
    words = said[1].split()
    found = next((CLI[name] for name in CLI if name.split() == words[: len(name.split())]), None)
    if found is None:
        known = {"--version", "--help"} | {word for name in CLI for word in name.split()[:1]}
        yield from () if words[0] in known and len(words) == 1 else [line]
        return
    options = {word for word in words if re.fullmatch(r"--?[a-z][a-z-]*", word)}
    yield from options - options_of(found) - {"--help"}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_command_named_exists_with_its_options(page: Path) -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    wrong = [word for line in commands(page) for word in unknown_to_cli(line)]
    made = [said[1] for line in commands(page) if (said := re.match(r"make ([a-z]+)(?: |$)", line))]
    assert (wrong, [target for target in made if target not in targets]) == ([], [])


def test_the_command_rule_sees_what_it_is_for() -> None:
    assert list(unknown_to_cli("akaion frobnicate")) != []
    assert list(unknown_to_cli("akaion keys frobnicate")) != []
    assert list(unknown_to_cli("akaion run --frobnicate x")) == ["--frobnicate"]
    assert list(unknown_to_cli('akaion run --profile a.yaml "x"')) == []


PYTHON: Final = [
    pytest.param(text, id=f"{name_of(page)}-{number}")
    for page in GUIDES
    for number, (language, text) in enumerate(blocks(page), start=1)
    if language == "python"
]


@pytest.mark.parametrize("text", PYTHON)
def test_every_python_example_compiles(text: str) -> None:
    ast.parse(text)


@pytest.mark.parametrize("text", [p for p in PYTHON if str(p.values[0]).startswith(RUNS)])
def test_every_example_marked_so_runs(text: str, tmp_path: Path) -> None:
    program = tmp_path / "example.py"
    program.write_text(text, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-W", "error", str(program)],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src"), "AKAION_HOME": str(tmp_path / "home")},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("page", GUIDES, ids=name_of)
def test_every_profile_shown_can_be_used(page: Path, tmp_path: Path) -> None:
    """I6: what a reader copies is judged as the runner judges it. A fragment lies over a shipped profile."""
    for language, text in blocks(page):
        if language == "yaml":
            shown = tmp_path / "shown.yaml"
            shown.write_text(text if "profile:" in text else f"profile: attached\n{text}", encoding="utf-8")
            source = read_profile(shown, {})
            parse_config(source.data, file=source.file, locate=source.line)


def test_some_examples_run() -> None:
    assert sum(str(example.values[0]).startswith(RUNS) for example in PYTHON) >= 3


# --- the reference: profile ---------------------------------------------------------------------------


def keys(model: type[BaseModel], path: str = "") -> Iterator[tuple[str, FieldInfo]]:
    """Yield (dotted key, field) for every key of a section that is not a section itself."""
    for field_name, field in model.model_fields.items():
        key = f"{path}{field.alias or field_name}"
        inner = section_in(field.annotation)
        if inner is None:
            yield key, field
            continue
        listed = "tuple" in str(field.annotation)
        if listed or not (field.is_required() or isinstance(field.default, BaseModel)):
            yield key, field
        yield from keys(inner, f"{key}[]." if listed else f"{key}.")


def section_in(annotation: Any) -> type[BaseModel] | None:
    """Return the section that a field's annotation names, directly, in an option or in a tuple."""
    if inspect.isclass(annotation) and issubclass(annotation, BaseModel):
        return annotation
    return next(filter(None, map(section_in, get_args(annotation))), None)


def default_cell(field: FieldInfo) -> str:
    """Return how the reference writes the default of `field`."""
    if field.is_required():
        return "required"
    match field.default:
        case None:
            return "not set"
        case ():
            return "empty"
        case bool() as value:
            return f"`{str(value).lower()}`"
        case value:
            return f"`{value}`"


def test_the_profile_reference_has_every_key_with_its_default_and_no_other() -> None:
    """I6: one file says what a box may do, so each of its keys is explained."""
    text = (REFERENCE / "profile.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([^`]+)` \| [^|]+ \| ([^|]+) \|", text, re.MULTILINE)
    assert len(rows) == len(dict(rows))
    assert dict(rows) == {key: default_cell(field) for key, field in keys(Config)}


# --- the reference: command line, names, errors, glossary ----------------------------------------------


def sections(page: Path) -> dict[str, str]:
    """Return the text under each heading of the third rank that names a command."""
    text = page.read_text(encoding="utf-8")
    parts = re.split(r"^### `akaion ?([a-z ]*)`$|^## .*$", text, flags=re.MULTILINE)
    return {name: body for name, body in zip(parts[1::2], parts[2::2], strict=True) if name}


def test_the_command_reference_has_every_command_and_option_and_no_other() -> None:
    found = sections(REFERENCE / "cli.md")
    assert set(found) == set(CLI)
    for name, body in found.items():
        named = set(re.findall(r"`(--?[a-z-]+)`", body))
        assert named == options_of(CLI[name]), name


def test_the_command_reference_has_every_exit_status() -> None:
    text = (REFERENCE / "cli.md").read_text(encoding="utf-8")
    assert [int(number) for number in re.findall(r"^\| (\d+) \|", text, re.MULTILINE)] == [*Status]


@pytest.mark.parametrize(
    ("heading", "module"), [("## `runner`", runner), ("## `runner.testing`", runner.testing)]
)
def test_the_name_reference_has_every_public_name_and_no_other(heading: str, module: Any) -> None:
    listed = first_cells(REFERENCE / "api.md", after=f"\n{heading}\n")
    assert len(listed) == len(set(listed))
    assert set(listed) == set(module.__all__)


def exceptions(root: type[RunnerError] = RunnerError) -> Iterator[str]:
    """Yield the names of the errors the kernel defines, from the root down."""
    yield root.__name__
    for kind in root.__subclasses__():
        if kind.__module__ == errors.__name__:
            yield from exceptions(kind)


def test_the_error_reference_has_every_exception_and_no_other() -> None:
    assert set(first_cells(REFERENCE / "errors.md", after="\n## Exceptions\n")) == set(exceptions())


def reasons(*files: str, word: str) -> set[str]:
    """Return every reason that stands as `word="..."` or first in an objection, in these files."""
    source = "\n".join((PERIMETER / file).read_text(encoding="utf-8") for file in files)
    return set(re.findall(rf'{word}="([a-z0-9.-]+)"', source)) | set(
        re.findall(r'^ +\("([a-z0-9-]+)", ', source, re.MULTILINE)
    )


def test_the_error_reference_has_every_reason_for_a_denied_request() -> None:
    """I7: a denial that nobody can look up is worked around."""
    listed = first_cells(REFERENCE / "errors.md", after="\n## Why a request was denied\n")
    assert set(listed) == reasons("release.py", "gate.py", word="reason")


def test_the_error_reference_has_every_rule_for_a_denied_call() -> None:
    listed = first_cells(REFERENCE / "errors.md", after="\n## Why a tool call was denied\n")
    assert set(listed) == reasons("policy.py", "toolbox.py", "telling.py", word="rule")


def test_the_error_reference_has_every_stop_reason() -> None:
    listed = first_cells(REFERENCE / "errors.md", after="\n## Why a run stopped\n")
    assert set(listed) == {reason.value for reason in StopReason}


TERMS: Final = {
    "judging": ("perimeter", "codec", "backend", "transport", "release", "seal", "grant", "deny", "profile"),
    "content": (
        "label",
        "matter",
        "mark",
        "declassify",
        "block",
        "redact",
        "evidence",
        "C0",
        "C1",
        "C2",
        "C3",
    ),
    "running": ("task", "judge", "budget", "approval", "remote", "L0", "L1", "L2", "cooperative", "isolated"),
    "record": (
        "trace",
        "telemetry",
        "verify",
        "book",
        "log",
        "pin",
        "barrier",
        "commitment",
        "custody",
        "anchor",
    ),
    "verdicts": ("PASS", "FAIL", "UNTRUSTED", "INCOMPLETE", "PARTIAL", "UNVERIFIABLE"),
}


def test_the_glossary_defines_every_term_once() -> None:
    text = (REFERENCE / "glossary.md").read_text(encoding="utf-8")
    bold = re.findall(r"\*\*(\w[^*]*)\*\*(?! \(in a log\))", text)
    assert sorted({term for term in bold if bold.count(term) > 1}) == []
    assert [term for terms in TERMS.values() for term in terms if term not in bold] == []


def test_the_verdict_page_has_the_exit_codes_of_the_verifier() -> None:
    source = (ROOT / "verify" / "akaion_verify.py").read_text(encoding="utf-8")
    codes = ast.literal_eval(re.findall(r"^EXIT_CODES = (\{.*\})$", source, re.MULTILINE)[0])
    for page in (ROOT / "docs" / "explanation" / "what-a-verdict-means.md", ROOT / "README.md"):
        rows = re.findall(r"^\| (\d+) \| ([A-Z]+) \|", page.read_text(encoding="utf-8"), re.MULTILINE)
        assert {word: int(number) for number, word in rows} == codes, page


# --- decisions, changes ---------------------------------------------------------------------------------

DECISIONS: Final = sorted((ROOT / "docs" / "adr").glob("0*.md"))


@pytest.mark.parametrize("page", DECISIONS, ids=name_of)
def test_a_decision_names_options_that_lost_and_what_was_given_up(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    headings = [
        line.removeprefix("## ").split(" for ")[0] for line in text.splitlines() if line.startswith("## ")
    ]
    assert text.startswith(f"# {page.name[:4]} ")
    assert list(dict.fromkeys(headings)) == ["Context", "Options", "Decision", "Accepted losses"]
    assert text.count("\n- Good: ") >= 2
    assert text.count("\n- Bad: ") >= 2


def test_decisions_are_numbered_without_a_gap_and_listed() -> None:
    assert [page.name[:4] for page in DECISIONS] == [f"{n:04}" for n in range(1, len(DECISIONS) + 1)]
    listed = (ROOT / "docs" / "adr" / "README.md").read_text(encoding="utf-8")
    assert [page.name for page in DECISIONS if f"({page.name})" not in listed] == []


def requirement_name(line: str) -> str:
    return re.split(r"[<>=!\[ ;]", line, maxsplit=1)[0]


def test_every_direct_dependency_has_its_reason_and_no_other() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = [line for lines in project["optional-dependencies"].values() for line in lines]
    lines = (ROOT / "requirements" / "dev.in").read_text(encoding="utf-8").splitlines()
    development = [line for line in lines if line.strip() and not line.startswith("#")]
    direct = {requirement_name(line) for line in [*project["dependencies"], *extras, *development]}
    page = ROOT / "docs" / "adr" / "0011-dependencies.md"
    rows = re.findall(r"^\| (`.+`) \|", page.read_text(encoding="utf-8"), re.MULTILINE)
    assert {name for row in rows for name in re.findall(r"`([^`]+)`", row)} == direct


def test_a_change_is_a_numbered_fragment_of_a_known_kind() -> None:
    fragments = [page for page in (ROOT / "changes").iterdir() if page.name != "README.md"]
    assert fragments != []
    shape = re.compile(r"\d{4}\.(feature|fix|security|removal|doc)\.md")
    assert [page.name for page in fragments if not shape.fullmatch(page.name)] == []
