# SPDX-License-Identifier: Apache-2.0
"""The import contracts hold, and each of them breaks, by name, under a one-line bad import (P1, I6).

A contract nobody has seen fail proves nothing. So every mutant writes one line into a copy of `src/`, runs
import-linter on the copy, and expects the named contract among the broken ones. What import-linter cannot see
is checked beside it: folders it would skip, cycles between a package and its child, which names of an excused
module are used, the imports of the one-file verifier, and dynamic imports.
"""

import ast
import configparser
import graphlib
import json
import os
import re
import runpy
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CONFIG = ROOT / "contracts" / "importlinter.ini"
VERIFIER = ROOT / "verify" / "akaion_verify.py"

LINT = "from importlinter.cli import lint_imports_command; lint_imports_command()"
GRAPH = (
    "import grimp, json; g = grimp.build_graph('runner', cache_dir=None);"
    "print(json.dumps({m: sorted(g.find_modules_directly_imported_by(m)) for m in g.modules}))"
)


def run_python(code: str, src: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(src), "COLUMNS": "300", "NO_COLOR": "1"}
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.run(
        command, cwd=src.parent, env=environment, capture_output=True, text=True, check=False
    )


def verdicts(src: Path) -> dict[str, str]:
    """What import-linter says of each contract: KEPT or BROKEN, by the contract's name."""
    done = run_python(LINT, src, "--no-cache", "--no-logo", str(CONFIG))
    found = dict(re.findall(r"^(.+?) (KEPT|BROKEN)\b.*$", done.stdout, re.MULTILINE))
    assert found, f"import-linter gave no verdict:\n{done.stdout}{done.stderr}"
    assert done.returncode == (1 if "BROKEN" in found.values() else 0)
    return found


def imports_of(src: Path) -> dict[str, list[str]]:
    """Every module of the tree with what it imports from the tree."""
    done = run_python(GRAPH, src)
    assert done.returncode == 0, done.stderr
    graph: dict[str, list[str]] = json.loads(done.stdout)
    return graph


def contract_names() -> dict[str, str]:
    """The contracts of the configuration: name by id."""
    config = configparser.ConfigParser()
    config.read(CONFIG, encoding="utf-8")
    marker = "importlinter:contract:"
    return {
        section.removeprefix(marker): config[section]["name"]
        for section in config.sections()
        if section.startswith(marker)
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """One bad line at the end of `file`, and the id of the contract that must break."""

    contract: str
    file: str
    line: str

    def __str__(self) -> str:
        """Return the test's id."""
        return f"{self.contract}: {self.file}: {self.line.splitlines()[-1].strip()}"


def mutant(contract: str, file: str, line: str) -> Mutant:
    return Mutant(contract=contract, file=file, line=line)


MUTANTS = [
    # Rule 1: layers.
    mutant("layers", "kernel/labels.py", "from runner.perimeter import policy"),
    mutant("layers", "perimeter/policy.py", "from runner.agent.steps import Budget"),
    mutant("layers", "capability/home.py", "import runner.perimeter.gate"),
    mutant("layers", "agent/steps.py", "import runner.assembly"),
    mutant("layers", "assembly/runtime.py", "import runner.adapters.cli"),
    mutant("layers", "agent/steps.py", "def late() -> None:\n    import runner.adapters"),
    mutant("layers", "rogue/__init__.py", '"""A room nobody declared."""'),
    mutant("front-door", "__init__.py", "from runner.adapters import cli"),
    mutant("front-door", "__init__.py", "import httpx"),
    # Rule 2: no capability for judgement and orchestration, and one wire.
    mutant("no-capability", "agent/steps.py", "from runner.capability import home"),
    mutant("no-capability", "perimeter/policy.py", "from runner.assembly import Runtime"),
    mutant("no-capability", "perimeter/gate.py", "from runner.capability.transport import http"),
    mutant("composition-root", "adapters/cli/__init__.py", "import runner.capability.transport.http"),
    mutant("composition-root", "adapters/cli/anchor.py", "import runner.capability.transport.http"),
    mutant("composition-root", "adapters/cli/needs.py", "import runner.capability.documents.port"),
    mutant("composition-root", "adapters/cli/explain.py", "import runner.capability.documents.port"),
    mutant("composition-root", "adapters/cli/afterwards.py", "import runner.capability.tools.writing"),
    mutant("composition-root", "adapters/witness/judge.py", "import runner.capability.transport.http"),
    mutant("composition-root", "adapters/witness/memory.py", "import runner.capability.transport.http"),
    mutant("composition-root", "adapters/cli/trace.py", "import runner.capability.transport.http"),
    mutant("composition-root", "adapters/datapizza/client.py", "import runner.capability.transport.http"),
    mutant("composition-root", "__init__.py", "from runner.capability.home import akaion_home"),
    mutant("wire", "capability/tools/filesystem.py", "import httpx"),
    mutant("wire", "capability/tools/web.py", "from urllib.request import urlopen"),
    mutant("wire", "capability/transport/web.py", "import socket"),
    mutant("wire", "capability/models.py", "from http.client import HTTPSConnection"),
    mutant("wire", "adapters/cli/__init__.py", "import openai"),
    mutant("wire", "adapters/witness/judge.py", "import http.server"),
    mutant("wire", "adapters/witness/memory.py", "import socket"),
    mutant("wire", "adapters/cli/trace.py", "import anyio"),
    mutant("wire", "capability/tools/filesystem.py", "from anyio import connect_tcp"),
    mutant("wire", "assembly/runtime.py", "import socket"),
    mutant("wire", "capability/transport/keys.py", "import socket"),
    mutant("composition-root", "adapters/cli/serve.py", "import runner.capability.transport.osring"),
    mutant(
        "wire", "agent/steps.py", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import requests"
    ),
    mutant("wire", "assembly/runtime.py", "import datapizza"),
    mutant("wire", "adapters/datapizza/bridge.py", "import httpx"),
    mutant("wire", "adapters/cli/__init__.py", "from datapizza.core.clients import Client"),
    mutant("processes", "capability/tools/filesystem.py", "import subprocess"),
    mutant("database", "capability/vault/searching.py", "import sqlite3"),
    mutant("database", "perimeter/recent.py", "import shelve"),
    mutant("processes", "capability/sandbox/unconfined.py", "import subprocess"),
    mutant("processes", "adapters/cli/machine.py", "import subprocess"),
    mutant("processes", "perimeter/trace/log.py", "import multiprocessing"),
    mutant("processes", "capability/transport/inprocess.py", "import subprocess"),
    mutant("processes", "adapters/ledger/book.py", "import subprocess"),
    # Rule 3: what each room may speak.
    mutant("kernel", "kernel/labels.py", "import os"),
    mutant("kernel", "kernel/ports.py", "from time import monotonic"),
    mutant("kernel", "kernel/config.py", "import pathlib"),
    mutant("kernel", "kernel/canonical.py", "import jsonschema"),
    mutant("kernel", "kernel/labels.py", "from pydantic import BaseModel"),
    mutant("perimeter", "perimeter/policy.py", "from pathlib import Path"),
    mutant("perimeter", "perimeter/gate.py", "import anyio"),
    mutant("perimeter", "perimeter/trace/booktree.py", "import cryptography"),
    mutant("perimeter", "perimeter/release.py", "import shutil"),
    mutant("perimeter", "perimeter/rewrite.py", "import threading"),
    mutant("perimeter", "perimeter/classify/registers.py", "import zlib"),
    mutant("perimeter", "perimeter/classify/contacts.py", "import phonenumbers"),
    mutant("perimeter", "perimeter/task.py", "import zlib"),
    mutant("agent", "agent/steps.py", "import os"),
    mutant("agent", "agent/steps.py", "import datapizza"),
    mutant("grammar", "capability/grammar/model.py", "from runner.kernel.messages import Json"),
    mutant("grammar", "capability/grammar/read.py", "import jsonschema"),
    mutant("parsers", "capability/documents/parsing/rtf.py", "from runner.kernel.errors import ToolError"),
    mutant(
        "parsers", "capability/documents/parsing/docx.py", "from runner.capability.documents import reader"
    ),
    mutant("parsers", "capability/documents/parsing/office.py", "import os"),
    mutant("parsers", "capability/documents/parsing/odt.py", "import pypdf"),
    mutant("parsers", "capability/documents/parsing/pdf.py", "import decimal"),
    mutant("codecs", "capability/backends/chat.py", "import anyio"),
    mutant("codecs", "capability/backends/embeddings.py", "import base64"),
    mutant("backends", "capability/backends/embeddings.py", "from runner.capability.backends import ollama"),
    mutant("codecs", "capability/backends/canaries.py", "import hashlib"),
    mutant("codecs", "capability/backends/openai.py", "import io"),
    mutant("codecs", "capability/backends/openai.py", "import httpx"),
    mutant("codecs", "capability/backends/datapizza.py", "import os"),
    mutant("codecs", "capability/backends/embedded.py", "from runner.capability.transport import inprocess"),
    mutant("backends", "capability/backends/openai.py", "from runner.capability.backends import llamacpp"),
    mutant("backends", "capability/backends/datapizza.py", "from runner.capability.backends import openai"),
    mutant("backends", "capability/backends/chat.py", "import runner.capability.backends.openai"),
    mutant("backends", "capability/backends/listings.py", "import runner.capability.backends.ollama"),
    mutant("backends", "capability/backends/canaries.py", "import runner.capability.backends.facts"),
    mutant("backends", "capability/backends/protocol.py", "import runner.capability.backends.chat"),
    mutant("backends", "capability/backends/rogue.py", '"""A codec nobody declared."""'),
    mutant("fakes", "testing/record.py", "from runner.perimeter.gate import Perimeter"),
    mutant("fakes", "testing/server.py", "import tempfile"),
    mutant("no-fakes", "assembly/runtime.py", "from runner.testing import FrozenClock"),
    mutant("no-fakes", "__init__.py", "import runner.testing"),
    mutant("no-fakes", "adapters/leakbench/report.py", "from runner.testing import FrozenClock"),
    mutant("leakbench", "adapters/leakbench/judge.py", "import stdnum.iban"),
    mutant("leakbench", "adapters/leakbench/judge.py", "from runner.perimeter.classify.views import fold"),
    mutant("leakbench", "adapters/leakbench/numbers.py", "from runner.adapters.leakbench import ledger"),
    mutant("wire", "adapters/leakbench/judge.py", "import socket"),
    mutant("evaluation", "adapters/evaluation/score.py", "from runner.perimeter.validate import fits"),
    mutant("evaluation", "adapters/evaluation/run.py", "from runner.adapters.evaluation import asking"),
    mutant("evaluation", "adapters/reports/plots.py", "from runner.adapters.leakbench import facts"),
    # Rule 4: strangers.
    mutant("verifier", "perimeter/trace/note.py", "import akaion_verify"),
    # Rule 5: no cycles.
    mutant("acyclic", "perimeter/trace/merkle.py", "from runner.perimeter.trace import chain"),
    mutant("acyclic", "perimeter/trace/log.py", "from runner.perimeter.gate import Perimeter"),
]


@pytest.fixture(scope="module")
def copied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of `src/` that mutants may write to."""
    src = tmp_path_factory.mktemp("tree") / "src"
    shutil.copytree(ROOT / "src", src, ignore=shutil.ignore_patterns("__pycache__"))
    return src


@pytest.fixture(scope="module")
def unmutated(copied: Path) -> dict[str, str]:
    """The verdicts before any mutant."""
    return verdicts(copied)


@contextmanager
def mutated(src: Path, bad: Mutant) -> Iterator[None]:
    """Write the mutant into the copy, and take it out again."""
    file = src / "runner" / bad.file
    original = file.read_text(encoding="utf-8") if file.exists() else None
    file.parent.mkdir(exist_ok=True)
    file.write_text(f"{original or ''}\n{bad.line}\n", encoding="utf-8")
    try:
        yield
    finally:
        if original is not None:
            file.write_text(original, encoding="utf-8")
        elif file.name == "__init__.py":
            shutil.rmtree(file.parent)
        else:
            file.unlink()


def test_the_contracts_hold_on_the_tree() -> None:
    found = verdicts(ROOT / "src")
    assert {name: verdict for name, verdict in found.items() if verdict != "KEPT"} == {}
    assert found.keys() == set(contract_names().values())


@pytest.mark.parametrize("bad", MUTANTS, ids=str)
def test_a_bad_import_breaks_its_named_contract(copied: Path, unmutated: dict[str, str], bad: Mutant) -> None:
    name = contract_names()[bad.contract]
    assert unmutated[name] == "KEPT"
    with mutated(copied, bad):
        assert verdicts(copied)[name] == "BROKEN"


def test_every_contract_has_a_mutant() -> None:
    assert {each.contract for each in MUTANTS} == contract_names().keys()


# --- what import-linter cannot see ------------------------------------------------------------------------


def files_of(src: Path) -> set[str]:
    """The module name of every file under `src/runner`."""
    names = {".".join(path.relative_to(src).with_suffix("").parts) for path in (src / "runner").rglob("*.py")}
    return {name.removesuffix(".__init__") for name in names}


def cycle(graph: Mapping[str, list[str]]) -> list[str]:
    """A cycle of imports, a package and its children counted apart; empty when there is none."""
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        return list(error.args[1])
    return []


def within(room: str, graph: Mapping[str, list[str]]) -> dict[str, list[str]]:
    """The part of the graph that starts in `room`."""
    return {module: imports for module, imports in graph.items() if module.startswith(room)}


def test_no_module_hides_from_the_contracts() -> None:
    """A folder without `__init__.py` would be importable and unseen."""
    assert files_of(ROOT / "src") - imports_of(ROOT / "src").keys() == set()


def test_a_folder_without_init_is_noticed(copied: Path) -> None:
    hidden = copied / "runner" / "perimeter" / "hidden"
    hidden.mkdir()
    try:
        (hidden / "wire.py").write_text("import socket\n", encoding="utf-8")
        assert files_of(copied) - imports_of(copied).keys() == {"runner.perimeter.hidden.wire"}
    finally:
        shutil.rmtree(hidden)


def test_no_import_cycle_anywhere() -> None:
    assert cycle(imports_of(ROOT / "src")) == []


def test_a_cycle_is_noticed(copied: Path) -> None:
    with mutated(copied, mutant("", "perimeter/trace/merkle.py", "import runner.perimeter.trace.chain")):
        assert "runner.perimeter.trace.merkle" in cycle(within("runner.perimeter", imports_of(copied)))


def test_a_cycle_through_a_package_is_noticed(copied: Path) -> None:
    child = mutant("", "perimeter/sealed.py", "from runner.perimeter import Sealed")
    parent = mutant("", "perimeter/__init__.py", "from runner.perimeter.sealed import Sealed")
    with mutated(copied, child), mutated(copied, parent):
        assert "runner.perimeter.sealed" in cycle(within("runner.perimeter", imports_of(copied)))


# (file under src/runner, excused module) -> the only names of it that may be used there.
EXCUSED_NAMES = {
    ("capability/documents/parsing/child.py", "time"): {"process_time"},
    ("adapters/cli/approver.py", "anyio"): {"to_thread.run_sync"},
    ("adapters/cli/explain.py", "anyio"): {"run"},
    ("adapters/cli/outward.py", "anyio"): {"run"},
    ("adapters/cli/probe.py", "anyio"): {"run"},
    ("adapters/cli/machine.py", "anyio"): {"connect_tcp", "fail_after", "run"},
    ("adapters/datapizza/client.py", "anyio"): {"from_thread.start_blocking_portal", "to_thread.run_sync"},
    ("adapters/evaluation/asking.py", "anyio"): {"run"},
    ("adapters/leakbench/parts.py", "anyio"): {"run"},
    ("agent/loop.py", "anyio"): {"fail_after", "get_current_task", "run"},
    ("assembly/backends.py", "urllib"): {"parse.urlsplit"},
    ("capability/backends/datapizza.py", "httpx"): {
        "AsyncBaseTransport",
        "AsyncClient",
        "BaseTransport",
        "Client",
        "Request",
        "Response",
        "URL",
    },
    ("capability/documents/parsing/child.py", "os"): {"dup", "dup2"},
    ("capability/grammar/resolve.py", "urllib"): {"parse.unquote", "parse.urldefrag", "parse.urljoin"},
    ("perimeter/classify/formulas.py", "importlib"): {"resources.files"},
    ("perimeter/classify/lexicon.py", "importlib"): {"resources.files"},
    ("perimeter/classify/names.py", "importlib"): {"resources.files"},
    ("perimeter/aside.py", "anyio"): {"fail_after", "to_thread.run_sync"},
    ("perimeter/asking.py", "anyio"): {"fail_after", "to_thread.run_sync"},
    ("perimeter/client.py", "anyio"): {"to_thread.run_sync"},
    ("perimeter/completing.py", "anyio"): {"CancelScope", "create_task_group", "lowlevel.checkpoint"},
    ("perimeter/consent.py", "anyio"): {"to_thread.run_sync"},
    ("perimeter/embed.py", "anyio"): {"to_thread.run_sync"},
    ("perimeter/exchange.py", "anyio"): {"fail_after"},
    ("perimeter/fetching.py", "anyio"): {"to_thread.run_sync"},
    ("perimeter/gate.py", "threading"): {"Lock"},
    ("perimeter/grants.py", "pathlib"): {"PurePath"},
    ("perimeter/lint.py", "pathlib"): {"PurePath"},
    ("perimeter/widening.py", "pathlib"): {"PurePath"},
    ("perimeter/opinions.py", "anyio"): {"fail_after", "to_thread.run_sync"},
    ("perimeter/probe.py", "anyio"): {
        "current_effective_deadline",
        "current_time",
        "fail_after",
        "move_on_after",
        "sleep",
        "to_thread.run_sync",
    },
    ("perimeter/running.py", "anyio"): {"to_thread.run_sync"},
    ("perimeter/second_model.py", "anyio"): {"to_thread.run_sync"},
    ("perimeter/redact.py", "threading"): {"Lock"},
    ("perimeter/toolbox.py", "anyio"): {"to_thread.run_sync"},
    ("perimeter/trace/log.py", "os"): {"getpid"},
    ("perimeter/trace/log.py", "threading"): {"RLock", "get_ident"},
    ("perimeter/trace/turn.py", "threading"): {"Lock", "RLock", "get_ident"},
    ("perimeter/trace/turn.py", "time"): {"sleep"},
}


def used_names(source: str, module: str) -> set[str]:
    """The names of `module` that `source` uses, dotted below it; `*` when the module is passed around."""
    tree = ast.parse(source)
    bound: dict[str, str] = {}
    found: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                for alias in names:
                    if alias.name.partition(".")[0] == module:
                        bound[alias.asname or module] = alias.name if alias.asname else module
            case ast.ImportFrom(module=str(origin), names=names, level=0):
                if origin.partition(".")[0] == module:
                    found |= {_below(f"{origin}.{alias.name}") for alias in names}
            case _:
                pass
    return found | {_below(name) for name in _uses(tree, bound)}


def _uses(node: ast.AST, bound: Mapping[str, str]) -> Iterator[str]:
    dotted = _dotted(node, bound)
    if dotted is not None:
        yield dotted
        return
    for child in ast.iter_child_nodes(node):
        yield from _uses(child, bound)


def _dotted(node: ast.AST, bound: Mapping[str, str]) -> str | None:
    match node:
        case ast.Name(id=name):
            return bound.get(name)
        case ast.Attribute(value=value, attr=attribute):
            below = _dotted(value, bound)
            return None if below is None else f"{below}.{attribute}"
        case _:
            return None


def _below(dotted: str) -> str:
    return dotted.partition(".")[2] or "*"


@pytest.mark.parametrize("place", EXCUSED_NAMES, ids=" ".join)
def test_an_excused_module_is_used_for_its_excused_names_only(place: tuple[str, str]) -> None:
    file, module = place
    source = (ROOT / "src" / "runner" / file).read_text(encoding="utf-8")
    assert used_names(source, module) == EXCUSED_NAMES[place]


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("import os\nos.getpid()", {"getpid"}),
        ("import os as o\no.environ['x']", {"environ"}),
        ("import os\nf(os)", {"*"}),
        ("from os import system", {"system"}),
        ("import os.path\nos.path.join('a')", {"path.join"}),
        ("import other\nother.os", set()),
    ],
)
def test_the_names_rule_sees_every_use(source: str, names: set[str]) -> None:
    assert used_names(source, "os") == names


def test_every_broad_module_that_is_excused_is_listed_with_its_names() -> None:
    """`runner.perimeter.trace.log -> os` would be a hole if it did not say that only `getpid` is meant."""
    broad = r"^ +(runner\.[\w.]+) -> (anyio|httpx|importlib|os|pathlib|threading|time|urllib)$"
    excused = set(re.findall(broad, CONFIG.read_text(encoding="utf-8"), re.MULTILINE))
    listed = {(f"runner.{file.removesuffix('.py').replace('/', '.')}", name) for file, name in EXCUSED_NAMES}
    anywhere = ("runner.testing", "runner.capability.transport.")
    assert {(place, name) for place, name in excused if not place.startswith(anywhere)} == listed


# --- rule 4, from the verifier's side ---------------------------------------------------------------------

UNNEEDED_BY_A_VERIFIER = {"asyncio", "ctypes", "http", "importlib", "multiprocessing", "socket", "ssl"} | {
    "subprocess",
    "urllib",
}


def strange_imports(source: str) -> set[str]:
    """Top-level packages that the one-file verifier may not import: ours, third parties, the network."""
    roots: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Import(names=names):
                roots |= {alias.name.partition(".")[0] for alias in names}
            case ast.ImportFrom(module=module, level=level):
                roots.add("." if level else (module or "").partition(".")[0])
            case _:
                pass
    return {root for root in roots if root not in sys.stdlib_module_names} | roots & UNNEEDED_BY_A_VERIFIER


def test_the_verifier_imports_the_standard_library_only() -> None:
    assert strange_imports(VERIFIER.read_text(encoding="utf-8")) == set()


@pytest.mark.parametrize(
    ("line", "root"),
    [
        ("from runner.kernel.canonical import canonical_bytes", "runner"),
        ("import cryptography", "cryptography"),
        ("def late() -> None:\n    import urllib.request", "urllib"),
        ("from . import sibling", "."),
    ],
)
def test_a_bad_import_of_the_verifier_is_noticed(line: str, root: str) -> None:
    assert strange_imports(f"{VERIFIER.read_text(encoding='utf-8')}\n{line}\n") == {root}


# --- dynamic imports --------------------------------------------------------------------------------------


def test_a_dynamic_import_in_the_agent_is_caught_by_the_tree_test() -> None:
    """P1: no contract can see this line, so the rule of `test_tree.py` must."""
    dynamic_imports = runpy.run_path(str(Path(__file__).with_name("test_tree.py")))["dynamic_imports"]
    source = (ROOT / "src" / "runner" / "agent" / "steps.py").read_text(encoding="utf-8")
    assert list(dynamic_imports(source)) == []
    line = 'import importlib\nhttp = importlib.import_module("runner.capability.transport.http")'
    assert {name for _, name in dynamic_imports(f"{source}\n{line}\n")} == {"importlib", "import_module"}
