# SPDX-License-Identifier: Apache-2.0
"""The golden books, which the writer made: each gets the verdict that `verdicts.json` states (I4)."""

from __future__ import annotations

import json
from pathlib import Path

import akaion_verify as av
import pytest

GOLDEN = Path(__file__).resolve().parents[2] / "contracts" / "trace" / "v1" / "golden"


def test_every_golden_book_gets_its_verdict() -> None:
    if not (GOLDEN / "verdicts.json").is_file():
        pytest.skip("the golden books are not beside this checkout")
    expected: dict[str, str] = json.loads((GOLDEN / "verdicts.json").read_text(encoding="utf-8"))
    found = {name: av.verify(GOLDEN / name, GOLDEN / f"{name}.pin")["verdict"] for name in expected}
    assert found == expected
    assert "PASS" in found.values()
