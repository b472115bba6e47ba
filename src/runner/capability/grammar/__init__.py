# SPDX-License-Identifier: Apache-2.0
"""JSON Schema to grammars: the compiler, the reader of grammars and the matcher.

See ``README.md`` beside this file. It stands alone: it imports the standard library only.
"""

from .canonical import arrangements, canonical_text
from .compile import CompiledSchema, compile_schema
from .gbnf import Grammar, parse_gbnf, validate_gbnf
from .match import MatchTooCostlyError, begins, matches, shortest
from .sample import sample
from .terminals import json_literal, literal
from .terms import GrammarSyntaxError

__all__ = [
    "CompiledSchema",
    "Grammar",
    "GrammarSyntaxError",
    "MatchTooCostlyError",
    "arrangements",
    "begins",
    "canonical_text",
    "compile_schema",
    "json_literal",
    "literal",
    "matches",
    "parse_gbnf",
    "sample",
    "shortest",
    "validate_gbnf",
]
