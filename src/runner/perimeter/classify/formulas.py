# SPDX-License-Identifier: Apache-2.0
"""The formulas of letters and acts that repeat nobody's secret. Owns the reading of their file, once."""

from importlib.resources import files
from typing import Final

_FILE: Final = files("runner.perimeter.classify").joinpath("formulas.txt")

FORMULAS: Final = tuple(
    line for line in _FILE.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")
)
"""One formula each, as it is commonly written."""
