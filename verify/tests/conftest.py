# SPDX-License-Identifier: Apache-2.0
"""Makes the verifier (one file, in no package) and the book builder importable; gives a folder and a pin."""

from __future__ import annotations

import importlib.util
import shutil
import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

HERE = Path(__file__).resolve().parent


def _load(name: str, path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


_load("akaion_verify", HERE.parent / "akaion_verify.py")
bookbuilder = _load("bookbuilder", HERE / "bookbuilder.py")
_load("mutants", HERE / "mutants.py")
battery = _load("battery", HERE / "battery.py")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    book = tmp_path / "book"
    book.mkdir()
    return book


@pytest.fixture
def pin(tmp_path: Path) -> Path:
    path = tmp_path / "device.vkey"
    path.write_text(bookbuilder.DEVICE_VKEY + "\n", encoding="ascii")
    return path


@pytest.fixture(scope="session")
def node() -> str:
    """The Node of this machine; without one the test is skipped."""
    found = shutil.which("node")
    if found is None:
        pytest.skip("there is no Node on this machine")
    return found


@pytest.fixture(scope="module")
def page(node: str) -> Iterator[battery.Page]:
    """The second verifier, at work under Node."""
    with closing(battery.Page(node)) as started:
        yield started
