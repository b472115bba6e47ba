# SPDX-License-Identifier: Apache-2.0
"""One line of `akaion doctor`: what was looked at, how it is, and what to do."""

from dataclasses import dataclass
from typing import Literal

Grade = Literal["ok", "warn", "fail"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One line of the report: what was looked at, how it is, and what to do (empty when nothing)."""

    name: str
    grade: Grade
    found: str
    fix: str = ""
