# SPDX-License-Identifier: Apache-2.0
"""The public surface: `import runner` offers what `__all__` says, grouped and documented, and no more."""

import ast
import dataclasses
import inspect
import subprocess
import sys
from pathlib import Path
from types import FunctionType

import pytest

import runner
import runner.testing

FRONT_DOOR = Path(runner.__file__)
SRC = FRONT_DOOR.parents[1]
MODULES = {path.stem for path in FRONT_DOOR.parent.iterdir() if not path.name.startswith(("_", "."))}


def groups() -> dict[str, list[str]]:
    """The names of `__all__` under the comment that heads their group."""
    found: dict[str, list[str]] = {}
    inside = False
    for line in FRONT_DOOR.read_text(encoding="utf-8").splitlines():
        text = line.strip()
        if text.startswith("__all__"):
            inside = True
        elif inside and text.startswith("#"):
            found[text] = []
        elif inside and text.startswith('"'):
            list(found.values())[-1].append(ast.literal_eval(text.rstrip(",")))
    return found


def test_all_is_grouped_by_role_and_names_nothing_twice() -> None:
    grouped = [name for names in groups().values() for name in names]
    assert grouped == list(runner.__all__)
    assert len(set(grouped)) == len(grouped)
    assert len(groups()) >= 3
    assert all(groups().values())


def test_the_surface_stays_small() -> None:
    """About twenty names: a new one is worth a discussion, and a change of this number."""
    assert len(runner.__all__) <= 30


@pytest.mark.parametrize("name", runner.__all__)
def test_every_public_name_is_importable_and_documented(name: str) -> None:
    value = getattr(runner, name)
    if name == "__version__":
        assert isinstance(value, str)
        return
    written = value.__doc__ or ""
    assert written.strip()
    assert not (dataclasses.is_dataclass(value) and written.startswith(f"{name}(")), (
        "made by dataclass, not by us"
    )


@pytest.mark.parametrize("name", [name for name in runner.__all__ if inspect.isclass(getattr(runner, name))])
def test_every_public_method_is_documented(name: str) -> None:
    silent = [
        member
        for member, body in vars(getattr(runner, name)).items()
        if not member.startswith("_")
        and isinstance(body, FunctionType | property | classmethod | staticmethod)
        and not body.__doc__
    ]
    assert silent == []


def test_no_other_public_name_leaks() -> None:
    """In a fresh interpreter, so that what other tests imported does not count."""
    code = "import runner; print(*(n for n in dir(runner) if not n.startswith('_')))"
    done = subprocess.run(
        [sys.executable, "-c", code], env={"PYTHONPATH": str(SRC)}, capture_output=True, text=True, check=True
    )
    assert set(done.stdout.split()) - MODULES == set(runner.__all__) - {"__version__"}


def test_importing_the_front_door_needs_no_optional_engine_and_opens_no_network() -> None:
    """Extras stay optional, and `import runner` alone reaches for nothing."""
    code = (
        "import sys\n"
        "def watch(event, _):\n"
        "    if event.startswith(('socket.connect', 'socket.bind', 'subprocess.')): raise SystemExit(event)\n"
        "sys.addaudithook(watch)\n"
        "import runner\n"
        "print(*sorted(set('xllamacpp llama_cpp ollama vllm openai datapizza'.split()) & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": str(SRC)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, "", "")


def test_the_fakes_are_listed_importable_and_documented() -> None:
    names = runner.testing.__all__
    assert len(set(names)) == len(names)
    undocumented = [name for name in names if not (getattr(runner.testing, name).__doc__ or "").strip()]
    assert [name for name in undocumented if inspect.isclass(getattr(runner.testing, name))] == []


def test_the_types_are_published() -> None:
    assert (FRONT_DOOR.parent / "py.typed").is_file()
