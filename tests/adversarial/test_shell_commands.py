# SPDX-License-Identifier: Apache-2.0
"""I1, P2: command lines of the kind that got round other agents' filters, and what a repository can start.

Every program there are rules for is granted, so that what is denied is denied for what it says. A line is put
in as a model would put it: split at its blanks, and whole as one argument.
"""

import json
import os
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from runner.capability.sandbox.bubblewrap import Bubblewrap, why_not
from runner.capability.tools.commandrules import command_rules
from runner.capability.tools.shell import Shell
from runner.kernel.decisions import Allow, Deny, ToolVerdict
from runner.kernel.labels import Label
from runner.kernel.messages import Block, BlockKind, ToolCall
from runner.kernel.ports import Root
from runner.perimeter.policy import Policy, ToolGrant, decide, narrow

NO_SANDBOX = why_not()
confined = pytest.mark.skipif(NO_SANDBOX is not None, reason=f"no sandbox here: {NO_SANDBOX}")
SHELL = Shell(command_rules(), Bubblewrap())
VECTORS = Path(__file__).resolve().parents[3] / "shared" / "vectors" / "egress" / "agent_egress_bench_a.json"


def policy(*roots: Root) -> Policy:
    grant = ToolGrant(
        tool="shell",
        effect=SHELL.effect,
        parameters=SHELL.spec.parameters,
        path_arguments=SHELL.path_arguments,
        roots=roots,
        binaries=SHELL.binaries,
    )
    return Policy(grants={"shell": grant})


def call(argv: Sequence[str], folder: str = "studio") -> ToolCall:
    origin = Block(id="b0", kind=BlockKind.GOAL, text="", label=Label())
    return ToolCall(tool="shell", arguments={"argv": list(argv), "folder": folder}, origin=origin)


def verdict(argv: Sequence[str], folder: str = "studio") -> ToolVerdict:
    return decide(policy(Root(alias="studio", path="/g/studio")), call(argv, folder))


DENIED: dict[str, list[str]] = json.loads(
    (Path(__file__).parents[1] / "data" / "denied-commands.json").read_text(encoding="utf-8")
)
LINES = [pytest.param(line, id=ascii(f"{kind}: {line}")) for kind, lines in DENIED.items() for line in lines]


@pytest.mark.parametrize("line", LINES)
def test_i1_a_line_that_means_more_than_one_program_reading_granted_files_is_denied(line: str) -> None:
    for argv in (line.split(" "), [line]):
        assert isinstance(verdict(argv), Deny), argv


@pytest.mark.parametrize("extra", [49, 50, 51, 63, 64, 500, 5000])
def test_i1_a_list_that_is_long_is_judged_to_its_end_or_denied(extra: int) -> None:
    """Filters of others stopped looking after the fiftieth subcommand."""
    harmless = ["cat", *["a"] * extra]
    for tail in (["../secret"], [";", "id"], ["--output=x"]):
        assert isinstance(verdict([*harmless, *tail]), Deny)
        assert isinstance(verdict(tail * extra), Deny)


@pytest.mark.parametrize(
    "argv",
    [None, "ls", {}, [], [None], [["ls"]], [1], ["ls", 1], ["ls", None], ["ls\0"], {"0": "ls"}],
    ids=ascii,
)
def test_i1_what_is_no_list_of_texts_is_denied(argv: object) -> None:
    origin = Block(id="b0", kind=BlockKind.GOAL, text="", label=Label())
    arguments = {"argv": argv, "folder": "studio"}
    grants = policy(Root(alias="studio", path="/g/studio"))
    assert isinstance(decide(grants, ToolCall(tool="shell", arguments=arguments, origin=origin)), Deny)  # type: ignore[arg-type]  # on purpose


@pytest.mark.parametrize("folder", ["/", "..", "studio/..", "/g/studio", "other", "studio//a", "studio/../a"])
def test_i1_a_folder_outside_the_grant_is_denied(folder: str) -> None:
    assert isinstance(verdict(["ls"], folder), Deny)


def test_i1_an_unknown_argument_beside_the_list_is_denied() -> None:
    origin = Block(id="b0", kind=BlockKind.GOAL, text="", label=Label())
    for name, value in (("env", {"A": "1"}), ("stdin", "x"), ("shell", True), ("cwd", "/"), ("timeout", 9)):
        arguments = {"argv": ["ls"], name: value}
        grants = policy(Root(alias="studio", path="/g/studio"))
        verdict = decide(grants, ToolCall(tool="shell", arguments=arguments, origin=origin))
        assert isinstance(verdict, Deny)


def test_i1_each_program_is_granted_by_itself() -> None:
    """`commands: [ls]` is not `commands: [cat]`, and an empty list is nothing."""
    root = Root(alias="studio", path="/g/studio")
    for granted in ([], ["ls"], ["cat", "git"]):
        binaries = {name: SHELL.binaries[name] for name in granted}
        whole = policy(root).grants["shell"]
        grants = Policy(grants={"shell": ToolGrant(
            tool="shell", effect=whole.effect, parameters=whole.parameters, roots=(root,), binaries=binaries
        )})  # fmt: skip
        for name in ("ls", "cat", "git"):
            argv = {"ls": ["ls"], "cat": ["cat", "a"], "git": ["git", "log"]}[name]
            assert isinstance(decide(grants, call(argv)), Allow) is (name in granted)


def test_shell_cases_of_the_public_set_are_denied() -> None:
    if not VECTORS.exists():
        pytest.skip("the public vectors are not beside this checkout")
    cases = [
        case for case in json.loads(VECTORS.read_text("utf-8")) if case["category"] == "shell_obfuscation"
    ]
    lines = {
        case["id"]: case["payload"]["jsonrpc_messages"][0]["params"]["arguments"]["command"]
        for case in cases
        if case["expected_verdict"] == "block"
    }
    assert len(lines) == 5
    for line in lines.values():
        assert isinstance(verdict(line.split(" ")), Deny)
        assert isinstance(verdict([line]), Deny)


# --- a repository -----------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Repository:
    """A granted repository whose own settings would start `program`, which leaves a mark beside it."""

    folder: Path
    program: Path
    mark: Path
    beside: Path

    def git(self, *words: str, terminal: bool = False) -> str:
        """What plain Git says there, on a terminal if it is to page."""
        master, slave = os.openpty()
        done = subprocess.run(
            ["git", "-C", str(self.folder), *words],
            env={**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1"},
            stdin=subprocess.DEVNULL,
            stdout=slave if terminal else subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
        )
        os.close(master)
        os.close(slave)
        return (done.stdout or b"").decode(errors="replace")

    def asked(self, *argv: str) -> str:
        """What the shell tool says for it, after the policy let it."""
        root = Root(alias="studio", path=str(self.folder))
        grants, wanted = policy(root), call(argv)
        assert isinstance(decide(grants, wanted), Allow)
        return SHELL.run(narrow(grants, wanted)).text


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    folder, mark = tmp_path / "studio", tmp_path / "mark"
    folder.mkdir()
    program = folder / "program"
    program.write_text(f"#!/bin/sh\necho OUT\necho ran > '{mark}'\n", encoding="utf-8")
    program.chmod(0o755)
    beside = tmp_path / "beside"
    beside.mkdir()
    (beside / "secret.txt").write_text("Rossi-7731\n", encoding="utf-8")
    found = Repository(folder=folder, program=program, mark=mark, beside=beside)
    (folder / "a.txt").write_text("one\n", encoding="utf-8")
    found.git("init", "-q")
    found.git("add", "a.txt")
    found.git("-c", "user.name=a", "-c", "user.email=a@b.example", "commit", "-qm", "First")
    (folder / "a.txt").write_text("two\n", encoding="utf-8")
    return found


def configured(*settings: tuple[str, str]) -> Callable[[Repository], None]:
    def prepare(repository: Repository) -> None:
        for name, value in settings:
            repository.git("config", name, value.format(program=repository.program, beside=repository.beside))

    return prepare


def attributed(attribute: str, *settings: tuple[str, str]) -> Callable[[Repository], None]:
    def prepare(repository: Repository) -> None:
        (repository.folder / ".gitattributes").write_text(f"*.txt {attribute}\n", encoding="utf-8")
        configured(*settings)(repository)

    return prepare


STARTS = {
    "core.fsmonitor": (configured(("core.fsmonitor", "{program}")), ["status"], ["status"]),
    "diff.external": (configured(("diff.external", "{program}")), ["diff"], ["diff"]),
    "a driver's command": (
        attributed("diff=x", ("diff.x.command", "{program}")), ["diff"], ["diff"]),
    "a driver's textconv": (
        attributed("diff=x", ("diff.x.textconv", "{program}")), ["diff"], ["diff"]),
    "textconv of log": (
        attributed("diff=x", ("diff.x.textconv", "{program}")), ["log", "-p"], ["log", "-p"]),
    "textconv of show": (
        attributed("diff=x", ("diff.x.textconv", "{program}")), ["show", "HEAD"], ["show", "HEAD"]),
    "textconv of blame": (
        attributed("diff=x", ("diff.x.textconv", "{program}")), ["blame", "a.txt"], ["blame", "a.txt"]),
    "a clean filter": (
        attributed("filter=x", ("filter.x.clean", "{program}")), ["status"], ["status"]),
    "a filter that is a process": (
        attributed("filter=x", ("filter.x.process", "{program}")), ["diff"], ["diff"]),
    "core.pager": (configured(("core.pager", "{program}")), ["-p", "log"], ["log"]),
    "a pager of one subcommand": (
        configured(("pager.log", "{program}")), ["log"], ["log"]),
    "a signature's program": (
        configured(("gpg.program", "{program}"), ("user.signingKey", "x")), ["log", "--format=%G?"],
        ["log", "--format=%G?"]),
    "an alias": (configured(("alias.x", "!{program}")), ["x"], None),
    "an alias over a subcommand": (configured(("alias.st", "!{program}")), ["st"], None),
}  # fmt: skip


@confined
@pytest.mark.parametrize("name", STARTS)
def test_p2_nothing_that_a_repository_names_is_started(repository: Repository, name: str) -> None:
    prepare, plain, asked = STARTS[name]
    prepare(repository)
    if name == "a signature's program":
        signed(repository)
    repository.git(*plain, terminal="pager" in name)
    assert repository.mark.exists(), "the attempt proves nothing"
    repository.mark.unlink()
    if asked is None:
        assert isinstance(verdict(["git", *plain]), Deny)
        return
    assert "OUT" not in repository.asked("git", *asked)
    assert not repository.mark.exists()


def signed(repository: Repository) -> None:
    """Put a commit on top whose signature Git would have checked by a program."""
    tree, parent = (repository.git("rev-parse", name).strip() for name in ("HEAD^{tree}", "HEAD"))
    who = "a <a@b.example> 1700000000 +0000"
    begin, end = "-----BEGIN PGP SIGNATURE-----", "-----END PGP SIGNATURE-----"
    head = f"tree {tree}\nparent {parent}\nauthor {who}\ncommitter {who}\n"
    text = f"{head}gpgsig {begin}\n \n x\n {end}\n\nSigned\n"
    path = repository.folder / "commit"
    path.write_text(text, encoding="utf-8")
    commit = repository.git("hash-object", "-t", "commit", "-w", "commit").strip()
    repository.git("update-ref", "HEAD", commit)


def test_p2_what_a_repository_names_is_not_started_by_the_rules_alone(repository: Repository) -> None:
    """The words that are always put before a subcommand are the first wall; the sandbox is the second."""
    rules = command_rules()["git"]
    for name in ("core.fsmonitor", "diff.external", "a driver's textconv", "core.pager"):
        prepare, _, asked = STARTS[name]
        prepare(repository)
        assert asked is not None
        repository.git(*rules.before, asked[0], *rules.subcommands[asked[0]].before, *asked[1:])
        assert not repository.mark.exists(), name


def moved(repository: Repository) -> None:
    own = repository.folder / ".git"
    own.rename(repository.beside / "git")
    own.write_text(f"gitdir: {repository.beside}/git\n", encoding="utf-8")


def borrowed(repository: Repository) -> None:
    objects = repository.folder / ".git" / "objects"
    objects.rename(repository.beside / "objects")
    (objects / "info").mkdir(parents=True)
    (objects / "info" / "alternates").write_text(f"{repository.beside}/objects\n", encoding="utf-8")


READS = {
    "core.worktree": (configured(("core.worktree", "{beside}")), ["ls-files", "--others"], "secret.txt"),
    "the folder of another repository": (moved, ["log"], "First"),
    "objects of another repository": (borrowed, ["log"], "First"),
    "include.path": (configured(("include.path", "{beside}/secret.txt")), ["log"], "rossi-7731"),
}


@confined
@pytest.mark.parametrize("name", READS)
def test_p2_a_repository_cannot_point_out_of_its_folder(repository: Repository, name: str) -> None:
    prepare, words, found = READS[name]
    prepare(repository)
    assert found in repository.git(*words), "the attempt proves nothing"
    said = repository.asked("git", *words)
    assert found not in said
    assert "rossi-7731" not in said.lower()
