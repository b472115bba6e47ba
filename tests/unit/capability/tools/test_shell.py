# SPDX-License-Identifier: Apache-2.0
"""P2: what a model gets from a program is what the granted folders hold; each allowed program works."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from runner.capability.sandbox.bubblewrap import KILLED, Bubblewrap, why_not
from runner.capability.sandbox.port import ENVIRONMENT, Job, Launcher, Limits, Ran
from runner.capability.sandbox.unconfined import Unconfined
from runner.capability.tools.beneath import identity_of
from runner.capability.tools.commandrules import command_rules
from runner.capability.tools.shell import SHOWN, Shell
from runner.kernel.errors import SandboxUnavailable, ToolError
from runner.kernel.ports import Effect, GrantedCall, Root

NO_SANDBOX = why_not()
confined = pytest.mark.skipif(NO_SANDBOX is not None, reason=f"no sandbox here: {NO_SANDBOX}")
LAUNCHERS = [
    pytest.param(Bubblewrap(), id="bubblewrap", marks=confined),
    pytest.param(Unconfined(), id="free"),
]


class Scripted:
    """A launcher that starts nothing: it keeps the job and answers as it is told."""

    def __init__(self, ran: Ran) -> None:
        self.ran = ran
        self.jobs: list[Job] = []

    def run(self, job: Job) -> Ran:
        """Answer."""
        self.jobs.append(job)
        return self.ran


@pytest.fixture
def studio(tmp_path: Path) -> Path:
    """A granted folder with a repository in it."""
    studio = tmp_path / "studio"
    (studio / "sub").mkdir(parents=True)
    (studio / "a.txt").write_text("uno\ndue Rossi\ndue Rossi\n", encoding="utf-8")
    (studio / "b.txt").write_text("uno\nperò\n", encoding="utf-8")
    (studio / "sub" / "t.csv").write_text("x,y\n1,2\n", encoding="utf-8")
    git = [
        "git",
        "-C",
        str(studio),
        "-c",
        "user.name=a",
        "-c",
        "user.email=a@b.example",
        "-c",
        "commit.gpgSign=0",
    ]
    for words in (["init", "-q"], ["add", "a.txt"], ["commit", "-qm", "First notes"]):
        subprocess.run([*git, *words], check=True, env={**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null"})
    (studio / "a.txt").write_text("uno\ndue Rossi\ndue Rossi\nquattro\n", encoding="utf-8")
    return studio


def said(folder: Path, launcher: Launcher, *argv: str, where: str = "studio") -> str:
    roots = (Root(alias="studio", path=str(folder), identity=identity_of(str(folder))),)
    call = GrantedCall(arguments={"argv": list(argv), "folder": where}, roots=roots)
    return Shell(command_rules(), launcher).run(call).text


USES = [
    ("cat b.txt", "uno\nperò"),
    ("cat -n a.txt", "     1\tuno\n"),
    ("cmp -s a.txt a.txt", "(no output)"),
    ("cmp a.txt b.txt", "(exit status 1)"),
    ("comm -3 a.txt a.txt", "(no output)"),
    ("cut -d , -f 2 sub/t.csv", "y\n2"),
    ("diff -u b.txt a.txt", "+due Rossi"),
    ("du -a sub", "sub/t.csv"),
    ("file a.txt", "a.txt: ASCII text"),
    ("find . -type f -name *.csv", "./sub/t.csv"),
    ("git status --short", " M a.txt"),
    ("git log --oneline -- a.txt", "First notes"),
    ("git log --since=2000-01-01 -n 1 --format=%s", "First notes"),
    ("git diff", "+quattro"),
    ("git diff --stat HEAD", "1 file changed"),
    ("git diff a.txt", "+quattro"),
    ("git diff HEAD..HEAD", "(no output)"),
    ("git diff HEAD:a.txt a.txt", "+quattro"),
    ("git diff --cached", "(no output)"),
    ("git log --oneline a.txt", "First notes"),
    ("git show HEAD:a.txt", "uno\ndue Rossi"),
    ("git show --stat HEAD", "First notes"),
    ("git blame -s a.txt", "uno"),
    ("git ls-files --others", "b.txt"),
    ("grep -rin rossi .", "a.txt:2:due Rossi"),
    ("grep -i PERÒ b.txt", "però"),
    ("head -n 1 a.txt", "uno"),
    ("ls -la", "a.txt"),
    ("ls -R .", "t.csv"),
    ("nl -b a a.txt", "2\tdue Rossi"),
    ("sha256sum sub/t.csv", "sub/t.csv"),
    ("sort -r b.txt", "uno\nperò"),
    ("stat -c %s sub/t.csv", "8"),
    ("tail -n 1 a.txt", "quattro"),
    ("uniq -c a.txt", "2 due Rossi"),
    ("wc -l a.txt b.txt", "6 total"),
]


@pytest.mark.parametrize("launcher", LAUNCHERS)
@pytest.mark.parametrize(("line", "expected"), USES, ids=[line for line, _ in USES])
def test_the_normal_use_of_each_program_works(
    studio: Path, launcher: Launcher, line: str, expected: str
) -> None:
    """Fail closed is not fail often: what anybody would type is run, and says what it says anywhere."""
    argv = line.split()
    if not shutil.which(argv[0]):
        pytest.skip(f"{argv[0]} is not installed here")
    assert expected in said(studio, launcher, *argv)


def test_every_program_with_rules_is_tried_or_named_as_absent_here() -> None:
    tried = {line.split()[0] for line, _ in USES}
    assert set(command_rules()) - tried == {"pdfinfo", "pdftotext"}


@confined
@pytest.mark.parametrize("line", ["pdftotext -layout studio/a.pdf", "pdfinfo studio/a.pdf"])
def test_the_text_of_a_pdf_is_read_where_the_program_is_installed(tmp_path: Path, line: str) -> None:
    if not shutil.which(line.split(maxsplit=1)[0]):
        pytest.skip("poppler's programs are not installed here")
    (tmp_path / "a.pdf").write_bytes(PDF)
    expected = "Udienza" if line.startswith("pdftotext") else "Pages:"
    assert expected in said(tmp_path, Bubblewrap(), *line.split(), where=".")


STREAM = b"BT /F1 24 Tf 20 100 Td (Udienza) Tj ET"
PDF = b"\n".join(
    [
        b"%PDF-1.4",
        b"1 0 obj <</Type/Catalog/Pages 2 0 R>> endobj",
        b"2 0 obj <</Type/Pages/Kids[3 0 R]/Count 1>> endobj",
        b"3 0 obj <</Type/Page/Parent 2 0 R/MediaBox[0 0 200 200]/Contents 4 0 R/Resources 6 0 R>> endobj",
        b"4 0 obj <</Length %d>> stream\n%s\nendstream endobj" % (len(STREAM), STREAM),
        b"5 0 obj <</Type/Font/Subtype/Type1/BaseFont/Helvetica>> endobj",
        b"6 0 obj <</Font<</F1 5 0 R>>>> endobj",
        b"trailer <</Root 1 0 R>>",
    ]
)
"""The smallest file with a word in it; it has no table of offsets, which readers rebuild."""


@pytest.mark.parametrize("where", [".", "studio"])
def test_p2_a_path_is_checked_as_the_file_tools_check_it(studio: Path, where: str) -> None:
    """A link, a second name, a file that is not there, and a folder that was replaced: nothing is started."""
    nothing = Scripted(Ran(status=0, output=b""))
    (studio / "link").symlink_to("/etc/passwd")
    (studio / "twin").hardlink_to(studio / "b.txt")
    prefix = "studio/" if where == "." else ""
    for name, reason in (
        ("link", "links are not followed"),
        ("twin", "second name"),
        ("none", "no such file"),
    ):
        with pytest.raises(ToolError, match=reason):
            said(studio, nothing, "cat", f"{prefix}{name}", where=where)
    assert nothing.jobs == []


GIT_READINGS = ["diff HEAD:a.txt {}", "diff a.txt {}", "diff HEAD:a.txt -- {}", "blame {}", "log -p -- {}"]


@pytest.mark.parametrize("line", GIT_READINGS)
def test_p2_what_git_may_take_for_a_path_is_checked_as_one(studio: Path, line: str) -> None:
    """Revision or path: a link, a way through one, a second name. One that is not there is no fault."""
    nothing = Scripted(Ran(status=0, output=b""))
    (studio / "link").symlink_to("/etc/passwd")
    (studio / "through").symlink_to("/etc")
    (studio / "twin").hardlink_to(studio / "b.txt")
    refused = ("links are not followed", "links are not followed", "second name")
    for name, reason in zip(("link", "through/passwd", "twin"), refused, strict=True):
        with pytest.raises(ToolError, match=reason):
            said(studio, nothing, "git", *line.format(name).split())
    assert nothing.jobs == []
    said(studio, nothing, "git", *line.format("gone/or/a-branch").split())
    assert len(nothing.jobs) == 1


@pytest.mark.parametrize("launcher", LAUNCHERS)
@pytest.mark.parametrize("line", ["git diff a.txt b.txt", "git diff -- a.txt b.txt", "git diff sub other"])
def test_p2_git_compares_no_files_that_are_in_no_repository(
    tmp_path: Path, launcher: Launcher, line: str
) -> None:
    for name in ("a.txt", "b.txt", "sub/x", "other/x"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(f"Rossi in {name}\n", encoding="utf-8")
    assert "Rossi" not in said(tmp_path, launcher, *line.split())


@pytest.mark.parametrize("launcher", LAUNCHERS)
@pytest.mark.parametrize("own", ["nothing", "a repository that is none"])
@pytest.mark.parametrize("name", ["sub", "a:b"])
def test_p2_a_repository_above_the_granted_folder_is_not_read(
    studio: Path, launcher: Launcher, own: str, name: str
) -> None:
    granted = studio / name / "granted"
    (granted / "deeper").mkdir(parents=True)
    if own != "nothing":
        (granted / ".git").mkdir()
    for where in ("studio", "studio/deeper"):
        for line in ("git show HEAD:a.txt", "git log", "git ls-files"):
            heard = said(granted, launcher, *line.split(), where=where)
            assert not any(word in heard for word in ("Rossi", "First", "a.txt\n"))
            assert "not a git repository" in heard


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_p2_a_link_that_a_comparison_of_folders_comes_upon_is_not_followed(
    tmp_path: Path, launcher: Launcher
) -> None:
    (tmp_path / "out.txt").write_text("Rossi\n", encoding="utf-8")
    studio = tmp_path / "studio"
    for name in ("one", "two"):
        (studio / name).mkdir(parents=True)
    (studio / "one" / "x").symlink_to(tmp_path / "out.txt")
    (studio / "two" / "x").write_text("uno\n", encoding="utf-8")
    for words in ("-r one two", "-rN one two", "-ruN two one", "two/x one"):
        heard = said(studio, launcher, "diff", *words.split())
        assert "symbolic link" in heard
        assert "Rossi" not in heard


def test_p2_a_granted_folder_that_was_replaced_is_not_shown(studio: Path) -> None:
    nothing = Scripted(Ran(status=0, output=b""))
    root = Root(alias="studio", path=str(studio), identity=identity_of(str(studio)))
    studio.rename(studio.with_name("old"))
    studio.mkdir()
    call = GrantedCall(arguments={"argv": ["ls"]}, roots=(root,))
    with pytest.raises(ToolError, match="was replaced"):
        Shell(command_rules(), nothing).run(call)
    assert nothing.jobs == []


def test_p2_only_the_folders_that_a_command_names_are_shown(tmp_path: Path) -> None:
    """Least of what is granted: the answer carries the class of what could be read, and no more is shown."""
    launcher = Scripted(Ran(status=0, output=b""))
    roots = []
    for alias in ("one", "two"):
        (tmp_path / alias).mkdir()
        (tmp_path / alias / "x").write_text("x", encoding="utf-8")
        roots.append(Root(alias=alias, path=str(tmp_path / alias)))
    shell = Shell(command_rules(), launcher)
    for argv in (["cat", "one/x"], ["ls"]):
        shell.run(GrantedCall(arguments={"argv": argv}, roots=tuple(roots)))
    assert [[granted.alias for granted in job.granted] for job in launcher.jobs] == [["one"], ["one", "two"]]


def test_i1_the_tool_reads_its_rules_once_more(studio: Path) -> None:
    """A caller that forgot the policy is refused all the same."""
    nothing = Scripted(Ran(status=0, output=b""))
    with pytest.raises(ToolError):
        said(studio, nothing, "find", ".", "-delete")
    assert nothing.jobs == []


@pytest.mark.parametrize(
    ("ran", "note"),
    [
        (Ran(status=2, output=b"x"), "x\n(exit status 2)"),
        (Ran(status=137, output=b"x\n", late=True), "x\n(ended: it took too long)"),
        (Ran(status=137, output=b"x", cut=True), "x\n(ended: it said too much)"),
        (Ran(status=0, output=b"\xff\n"), "\ufffd"),
        (Ran(status=0, output=b""), "(no output)"),
        (
            Ran(status=0, output=b"y" * (SHOWN + 1)),
            "y" * SHOWN + f"\n(only the first {SHOWN} characters are shown)",
        ),
    ],
    ids=["status", "late", "cut", "bytes", "nothing", "long"],
)
def test_how_a_program_ended_is_said(studio: Path, ran: Ran, note: str) -> None:
    assert said(studio, Scripted(ran), "ls") == note


def test_p3_a_program_without_a_sandbox_is_not_started_another_way(studio: Path) -> None:
    class Missing:
        def run(self, job: Job) -> Ran:
            raise SandboxUnavailable(f"no sandbox for {job.program.name}")

    with pytest.raises(ToolError, match="no sandbox for ls"):
        said(studio, Missing(), "ls")
    assert Shell({}, Missing()).effect is Effect.RUN


def test_i5_a_program_that_nothing_confines_gets_the_fixed_environment_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TOKEN_OF_THE_PRACTICE", "7731")
    ran = Unconfined().run(Job(program=Path("/usr/bin/env"), arguments=[]))
    names = {line.partition("=")[0] for line in ran.output.decode().splitlines()}
    assert names - {"PWD", "SHLVL", "_"} == set(ENVIRONMENT)


@pytest.mark.parametrize(
    ("program", "argument", "limits", "ended"),
    [
        ("sleep", "60", Limits(wall_s=0.3), (KILLED, True, False)),
        ("yes", "x", Limits(output_bytes=100), (KILLED, False, True)),
    ],
    ids=["late", "talking"],
)
def test_a_program_that_nothing_confines_is_ended_too(
    program: str, argument: str, limits: Limits, ended: tuple[int, bool, bool]
) -> None:
    job = Job(program=Path("/usr/bin", program), arguments=[argument], limits=limits)
    ran = Unconfined().run(job)
    assert (ran.status, ran.late, ran.cut) == ended


def test_a_program_that_is_not_installed_is_an_error(studio: Path) -> None:
    rules = {"nowhere": command_rules()["ls"].__class__(name="nowhere")}
    root = Root(alias="studio", path=str(studio))
    shell = Shell(rules, Scripted(Ran(status=0, output=b"")))
    with pytest.raises(ToolError, match="not installed"):
        shell.run(GrantedCall(arguments={"argv": ["nowhere"]}, roots=(root,)))
