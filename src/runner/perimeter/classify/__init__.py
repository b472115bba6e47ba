# SPDX-License-Identifier: Apache-2.0
"""Classification by rules: which data class a text reaches by what it contains, and where.

Owns the detectors. Leaves the declared and default parts of a label to those who know the source,
and the decision to the gate. Carries I6 and I8; see README.md in this folder.
"""

from runner.perimeter.classify.echo import EchoIndex
from runner.perimeter.classify.engine import FRAGMENTS, RULES, SHAPED, Classifier, classify_text
from runner.perimeter.classify.media import carried, is_picture, texts_in
from runner.perimeter.classify.model import Classification, Role, Rule, Span, View
from runner.perimeter.classify.readings import forget_readings
from runner.perimeter.classify.registers import Registers, compile_registers
from runner.perimeter.classify.rules import UNREAD

__all__ = [
    "FRAGMENTS",
    "RULES",
    "SHAPED",
    "UNREAD",
    "Classification",
    "Classifier",
    "EchoIndex",
    "Registers",
    "Role",
    "Rule",
    "Span",
    "View",
    "carried",
    "classify_text",
    "compile_registers",
    "forget_readings",
    "is_picture",
    "texts_in",
]
