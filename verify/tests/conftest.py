# SPDX-License-Identifier: Apache-2.0
"""Makes the verifier (one file, in no package) and the book builder importable; gives a folder and a pin."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
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
_load("battery", HERE / "battery.py")


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
