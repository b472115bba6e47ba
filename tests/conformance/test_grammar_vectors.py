# SPDX-License-Identifier: Apache-2.0
"""The compiler on public vectors, held to `contracts/grammar/ratchet.json`: figures may only improve."""

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
RATCHET = json.loads((ROOT / "contracts" / "grammar" / "ratchet.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def benchmark() -> ModuleType:
    spec = importlib.util.spec_from_file_location("grammar_benchmark", ROOT / "benchmarks" / "grammar.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    if not module.VECTORS.is_dir():
        pytest.skip("the shared vectors are not here")
    return module


@pytest.mark.slow
def test_exact_accepts_nothing_invalid_and_the_figures_hold(benchmark: ModuleType) -> None:
    """I4: no invalid instance passes an `exact` grammar."""
    measured = {name: score.as_dict() for name, score in benchmark.sets().items()}
    assert measured, "no vectors were found"
    for name, figures in measured.items():
        floor = RATCHET[name]
        assert figures["false_accepts_on_exact"] == 0, name
        assert figures["false_rejects_on_exact"] <= floor["false_rejects_on_exact"], name
        assert figures["passed_schemas"] >= floor["passed_schemas"], name
        assert figures["passed_instances"] >= floor["passed_instances"], name
