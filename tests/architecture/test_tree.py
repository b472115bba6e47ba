# SPDX-License-Identifier: Apache-2.0
"""What holds for every file of the tree: licence line, no addresses or machine paths, no dynamic imports.

Import contracts see only static imports. The last part of this file closes that gap, so that "agent reaches
no capability" (P1) stays a statement about the whole program. Each rule is also run against text that breaks
it. An import rule over names cannot see through every disguise: it catches what a reviewer could overlook.
"""

import ast
import re
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SPDX = "SPDX-License-Identifier: Apache-2.0"
SOURCE_SUFFIXES = {".py", ".sh", ".toml", ".yaml", ".yml", ".importlinter"}
SOURCE_NAMES = {"Makefile", "scripts", "run"}

FORBIDDEN = {  # written so that no pattern matches itself
    "a package registry": r"\bpypi\.(?:org|io)|python[h]osted|npm[j]s|crates\.io|proxy\.golang"
    r"|anaconda\.(?:org|com)|repo1?\.maven|rubygems\.org|deb\.debian\.org",
    "a registry setting": r"index-url\s*[= ]\s*['\"]?(?:https?|file):|find-links\s*[= ]\s*['\"]?[a-z/]+:?/",
    "a path of one machine": r"(?<![\w.*~-])/(?:work|root|home/[a-z]+|Users/[A-Za-z]+|tmp/w|opt/pypi)"
    r"(?:/|\b(?=['\"\s]))",
}
# (file, kind) -> why the text must stand there.
EXCUSED_TEXT: dict[tuple[str, str], str] = {}

BANNED_MODULES = {
    "builtins": "reaches __import__ and exec by attribute",
    "code": "runs text",
    "codeop": "compiles text",
    "imp": "loads a module by name",
    "importlib": "loads a module by name",
    "pkgutil": "walks and loads modules",
    "runpy": "runs a module by name",
    "zipimport": "loads a module from an archive",
}
ALLOWED_MODULES = {
    "importlib.resources",
    "importlib.metadata",
}  # they read files; entry points are banned below
BANNED_NAMES = {
    "__builtins__": "reaches __import__ and exec",
    "__import__": "loads a module by name",
    "__loader__": "loads a module by name",
    "compile": "turns text into code",
    "eval": "runs text",
    "exec": "runs text",
}
BANNED_ATTRIBUTES = {
    "entry_points": "loads what any installed package registers",
    "exec_module": "loads a module by name",
    "import_module": "loads a module by name",
    "load_module": "loads a module by name",
    "meta_path": "changes what an import finds",
    "path_hooks": "changes what an import finds",
}
BANNED_PAIRS = {
    ("sys", "modules"): "takes a module out of the cache",
    ("sys", "path"): "changes what an import finds",
}
# (file, name) -> why this one is safe.
EXCUSED_IMPORTS: dict[tuple[str, str], str] = {
    ("src/runner/assembly/program.py", "sys.modules"): "read: no tool writes to the file of a module",
    ("src/runner/assembly/program.py", "sys.path"): "read: no tool writes to a folder of it",
}


def tree_files() -> list[Path]:
    """Every file that is, or would be, committed."""
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout: the list of committed files is unknown")
    command = [
        "git",
        "-c",
        "safe.directory=*",
        "ls-files",
        "-z",
        "--cached",
        "--others",
        "--exclude-standard",
    ]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True).stdout.decode()
    return [
        path for path in (ROOT / name for name in sorted(set(listed.split("\0")) - {""})) if path.is_file()
    ]


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def text_of(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return None


def is_source(path: Path) -> bool:
    return path.suffix in SOURCE_SUFFIXES or path.name in SOURCE_NAMES or path.parent.name in SOURCE_NAMES


def forbidden_text(text: str) -> Iterator[tuple[int, str]]:
    """Yield (line, kind) for every line that breaks a rule of FORBIDDEN."""
    for number, line in enumerate(text.splitlines(), start=1):
        for kind, pattern in FORBIDDEN.items():
            if re.search(pattern, line):
                yield number, kind


def program_files() -> list[Path]:
    return [*sorted((ROOT / "src").rglob("*.py")), *sorted((ROOT / "verify").glob("*.py"))]


def _imported(node: ast.Import | ast.ImportFrom) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    return [f"{node.module}.{alias.name}" for alias in node.names] if node.module and not node.level else []


def _banned_module(name: str) -> bool:
    allowed = any(name == module or name.startswith(f"{module}.") for module in ALLOWED_MODULES)
    return name.partition(".")[0] in BANNED_MODULES and not allowed


def dynamic_imports(source: str) -> Iterator[tuple[int, str]]:
    """Yield (line, name) for everything in `source` that can load code which no import statement names."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Import() | ast.ImportFrom():
                for name in _imported(node):
                    if _banned_module(name) or name.rpartition(".")[2] in BANNED_ATTRIBUTES:
                        yield node.lineno, name
            case ast.Name(id=name) if name in BANNED_NAMES:
                yield node.lineno, name
            case ast.Attribute(attr=name) if name in BANNED_ATTRIBUTES or name in BANNED_NAMES.keys() - {
                "compile"
            }:
                yield node.lineno, name
            case ast.Attribute(value=ast.Name(id=owner), attr=name) if (owner, name) in BANNED_PAIRS:
                yield node.lineno, f"{owner}.{name}"
            case ast.Constant(value=str(name)) if name in BANNED_ATTRIBUTES or name.startswith("__import"):
                yield node.lineno, name
            case _:
                pass


def test_every_source_file_states_its_licence() -> None:
    lacking = [
        relative(path)
        for path in tree_files()
        if is_source(path) and SPDX not in "\n".join((text_of(path) or "").splitlines()[:2])
    ]
    assert lacking == []


def test_no_registry_address_and_no_machine_path_is_committed() -> None:
    found = {
        (relative(path), kind): line
        for path in tree_files()
        for line, kind in forbidden_text(text_of(path) or "")
    }
    assert {place: line for place, line in found.items() if place not in EXCUSED_TEXT} == {}
    assert EXCUSED_TEXT.keys() <= found.keys(), "an excuse is no longer needed"


@pytest.mark.parametrize(
    "line",
    [
        "https://pypi" + ".org/simple",
        "files.python" + "hosted.org",
        "registry.npm" + "js.org",
        "--index" + "-url https://mirror.example/simple",
        "extra-index" + "-url = file:///srv/wheels",
        'path = "/wo' + 'rk/main"',
        "cd /ro" + "ot/.cache",
        "/ho" + "me/anna/studio",
        "see /tm" + "p/w/notes",
    ],
)
def test_the_address_rule_sees_what_it_is_for(line: str) -> None:
    assert list(forbidden_text(f"first\n{line}\n")) != []


@pytest.mark.parametrize(
    "line", ["~/Studio/pratiche", "tests/work/file", "how/home/is", "http://127.0.0.1:8000"]
)
def test_the_address_rule_leaves_ordinary_text_alone(line: str) -> None:
    assert list(forbidden_text(line)) == []


def test_every_room_says_what_it_owns() -> None:
    rooms = [path.parent for path in (ROOT / "src" / "runner").glob("*/__init__.py")]
    assert rooms != []
    assert [relative(room) for room in rooms if not (room / "README.md").is_file()] == []


def test_every_module_has_a_docstring() -> None:
    silent = [
        relative(path)
        for path in program_files()
        if not ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    ]
    assert silent == []


def test_p1_no_module_is_imported_dynamically() -> None:
    found = {
        (relative(path), name): line
        for path in program_files()
        for line, name in dynamic_imports(path.read_text(encoding="utf-8"))
    }
    assert {place: line for place, line in found.items() if place not in EXCUSED_IMPORTS} == {}
    assert EXCUSED_IMPORTS.keys() <= found.keys(), "an excuse is no longer needed"


@pytest.mark.parametrize(
    "source",
    [
        "import importlib",
        "import importlib.util as u",
        "from importlib import import_module",
        "from importlib.metadata import entry_points",
        "import importlib.metadata as m\nm.entry_points(group='x')",
        "import runpy",
        "from pkgutil import iter_modules",
        "__import__('runner.capability')",
        "f = eval",
        "exec('import os')",
        "compile('1', 'f', 'eval')",
        "import sys\nsys.modules['runner.capability']",
        "import sys\nsys.path.append('x')",
        "getattr(x, '__import__')('os')",
        "loader.exec_module(m)",
        "f.__builtins__['x']",
    ],
)
def test_p1_the_import_rule_sees_what_it_is_for(source: str) -> None:
    assert list(dynamic_imports(source)) != []


@pytest.mark.parametrize(
    "source",
    [
        "import re\nre.compile('x')",
        "from importlib import resources",
        "import importlib.metadata\nimportlib.metadata.version('x')",
        "import sys\nsys.executable",
        "def f():\n    import xllamacpp",
        "from . import sibling",
    ],
)
def test_p1_the_import_rule_leaves_ordinary_code_alone(source: str) -> None:
    assert list(dynamic_imports(source)) == []


def _normal(requirement: str) -> str:
    name = re.match(r"[A-Za-z0-9._-]+", requirement)
    assert name is not None
    return re.sub(r"[-_.]+", "-", name[0]).lower()


def test_every_dependency_is_pinned_with_a_hash_and_no_address() -> None:
    locked = (ROOT / "requirements" / "dev.txt").read_text(encoding="utf-8")
    entries = [entry for entry in re.split(r"\n(?=\S)", locked) if not entry.startswith("#")]
    assert [entry for entry in entries if "==" not in entry or "--hash=sha256:" not in entry] == []
    assert "://" not in locked
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    needed = {
        _normal(name) for name in [*project["dependencies"], *project["optional-dependencies"]["embedded"]]
    }
    assert needed - {_normal(entry) for entry in entries} == set()
