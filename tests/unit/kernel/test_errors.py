# SPDX-License-Identifier: Apache-2.0
"""Errors: one root, the tree drawn in the module is the tree there is, messages quote no content (I12)."""

import ast
import builtins
import inspect
import re
import traceback
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from runner.kernel import errors
from runner.kernel.errors import (
    ConfigError,
    EgressDenied,
    Mistake,
    PerimeterError,
    RunnerError,
)
from runner.kernel.labels import DataClass

SRC = Path(errors.__file__).resolve().parents[1]


def drawn_tree() -> dict[str, str]:
    """The parent of each exception in the drawing of the module's docstring."""
    parents: dict[str, str] = {}
    path = ["RunnerError"]
    for line in (errors.__doc__ or "").splitlines():
        drawn = re.match(r"^ {4}((?:│   |    )*)[├└]── (\w+)", line)
        if drawn:
            level = len(drawn[1]) // 4 + 1
            path[level:] = [drawn[2]]
            parents[drawn[2]] = path[level - 1]
    return parents


def test_the_drawn_tree_is_the_tree() -> None:
    found = {
        name: kind.__bases__[0].__name__
        for name, kind in vars(errors).items()
        if inspect.isclass(kind) and issubclass(kind, RunnerError) and kind is not RunnerError
    }
    assert drawn_tree() == found
    assert len(found) > 10


def test_every_exception_of_the_runner_has_the_one_root() -> None:
    """An `except RunnerError` of an embedding program sees all we raise on purpose.

    Private exceptions end inside their module. The grammar room stands alone: codecs translate. The
    parsers of documents stand alone, in a process of their own that answers with words.
    """
    ours = {
        f"{path.relative_to(SRC)}: {node.name}"
        for path in SRC.rglob("*.py")
        if path.parent.name not in ("grammar", "parsing")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef)
        for base in node.bases
        if isinstance(base, ast.Name) and _is_builtin_exception(base.id) and not node.name.startswith("_")
    }
    assert ours == {"kernel/errors.py: RunnerError"}


def _is_builtin_exception(name: str) -> bool:
    kind = getattr(builtins, name, None)
    return isinstance(kind, type) and issubclass(kind, BaseException)


@pytest.mark.parametrize(
    ("line", "where", "text"),
    [
        (3, "budget.steps", "p.yaml:3: budget.steps: too many. Fix: fewer"),
        (0, "budget.steps", "p.yaml: budget.steps: too many. Fix: fewer"),
        (1, "", "p.yaml:1: too many. Fix: fewer"),
        (0, "", "p.yaml: too many. Fix: fewer"),
    ],
)
def test_a_mistake_names_file_line_field_and_fix(line: int, where: str, text: str) -> None:
    mistake = Mistake(file="p.yaml", line=line, where=where, problem="too many", fix="fewer")
    assert str(mistake) == text


def test_a_config_error_holds_every_mistake_one_a_line() -> None:
    mistakes = [Mistake(file="p.yaml", line=n, where="a", problem="wrong", fix="right") for n in (1, 2)]
    error = ConfigError(mistakes)
    assert error.mistakes == tuple(mistakes)
    assert str(error).splitlines() == [str(mistake) for mistake in mistakes]


def test_a_denied_egress_names_backend_rule_and_class() -> None:
    error = EgressDenied(backend="broker", reason="class-above-ceiling", data_class=DataClass.C3)
    assert str(error) == "egress to backend 'broker' denied: class-above-ceiling (class C3)"
    assert (error.backend, error.reason, error.data_class) == ("broker", "class-above-ceiling", DataClass.C3)
    assert isinstance(error, PerimeterError)


async def _fails(secret: str) -> None:
    held = {secret: "held"}
    try:
        del held[f"no {secret}"]
    except KeyError as cause:
        raise errors.BackendError("a backend failed") from cause


def test_i12_what_reaches_a_program_shows_no_frame_and_no_cause_but_where_it_was_raised() -> None:
    seam = errors.raises_bare(_fails)
    with pytest.raises(errors.BackendError, match="a backend failed") as caught:
        anyio.run(seam, "the secret")
    error = caught.value
    assert (error.__cause__, error.__context__) == (None, None)
    frames = [frame.f_code.co_name for frame, _ in traceback.walk_tb(error.__traceback__)]
    assert "seam" in frames
    assert "_fails" not in frames
    (note,) = error.__notes__
    assert re.fullmatch(r"raised in .*:\d+", note)


def test_i12_no_frame_shows_what_a_call_was_given() -> None:
    """Not even that of the seam: a traceback with locals would show its arguments."""

    def fails(said: str) -> None:
        raise errors.MediaError(f"wrong, of {len(said)} characters")

    async def fails_later(said: str) -> None:
        fails(said)

    here, later = errors.raises_bare_here(fails), errors.raises_bare(fails_later)
    calls: tuple[Callable[[str], object], ...] = (
        lambda word: here(word.lower()),
        lambda word: anyio.run(lambda: later(word.lower())),
    )
    for call in calls:
        with pytest.raises(errors.MediaError) as caught:
            call("THE SECRET")
        format_ = traceback.TracebackException.from_exception
        shown = "".join(format_(caught.value, capture_locals=True).format())
        assert "in seam" in shown
        assert "THE SECRET" in shown, "the frames of this test are shown"
        assert "the secret" not in shown


def test_i12_a_cancellation_passes_untouched() -> None:
    async def cancelled() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as caught:
        anyio.run(errors.raises_bare(cancelled))
    assert not hasattr(caught.value, "__notes__")


NAMES_A_FIX = frozenset({"TraceError", "TraceUnavailable", "ModelError", "SandboxUnavailable"})
"""Errors that a person meets at a machine that is not as it should be: each says what to do."""
SPOKEN_FOR = {
    "assembly/runtime.py: ' '.join(missing)": "missing_weights, whose text has its fix",
    "adapters/witness/main.py: _refusal(reply)": "the witness's own words, and the fix where there is one",
}


def without_a_fix(path: Path) -> list[str]:
    """The messages in `path` that name no fix; constants of the module that they are made of count."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    constants = {
        target.id: ast.unparse(node)
        for node in tree.body
        if isinstance(node, ast.AnnAssign | ast.Assign)
        for target in ([node.target] if isinstance(node, ast.AnnAssign) else node.targets)
        if isinstance(target, ast.Name)
    }
    found = []
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) and node.exc.args):
            continue
        if ast.unparse(node.exc.func) in NAMES_A_FIX:
            named = {each.id for each in ast.walk(node.exc) if isinstance(each, ast.Name)}
            said = ast.unparse(node.exc.args[0])
            if "Fix: " not in "".join([said, *(constants.get(name, "") for name in named)]):
                found.append(f"{path.relative_to(SRC).as_posix()}: {said}")
    return found


def test_an_error_of_a_machine_names_its_fix() -> None:
    """The trace's own errors are left out: most are of a program that misuses it, and reach no person."""
    files = [path for path in SRC.rglob("*.py") if "trace" not in path.relative_to(SRC).parts[:-1]]
    assert len(files) > 100
    assert {each for path in files for each in without_a_fix(path)} == set(SPOKEN_FOR)
