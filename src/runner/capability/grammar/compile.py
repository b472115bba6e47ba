# SPDX-License-Identifier: Apache-2.0
"""The one way in: a schema, compiled.

Owns the order of the steps, the budget, and what to give up when it does not suffice. Leaves every step to
its module.

Invariant: the answer is always one of three. ``exact``: the grammar accepts no invalid value.
``approximated``: the named keywords are not, or not wholly, enforced. ``refused``: there is no grammar, and
the reason is said.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from .emit import Emitter
from .expand import Expander
from .form import Form, build
from .gbnf import validate_gbnf
from .lower import lower
from .model import FALSE, Goal, Ledger, SchemaRefusedError, TooLargeError
from .read import Reader
from .shapes import goal
from .terms import GrammarSyntaxError

FUEL = 60_000
"""Elementary steps of one attempt: about a third of a second."""
_GIVEN_UP = (
    frozenset[str](),
    frozenset({"oneOf", "not"}),
    frozenset({"oneOf", "not", "anyOf", "if", "dependentSchemas", "dependentRequired"}),
)
"""What each attempt gives up from the start, should the budget not suffice; the last before refusing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledSchema:
    """What became of a schema.

    ``status`` says how far to trust ``gbnf``; ``approximations`` are the keywords it does not enforce,
    sorted; ``reason`` is there only when refused; ``lowered`` is the same form as a plain JSON Schema;
    ``form`` is the intermediate form, for tests and tools.
    """

    status: Literal["exact", "approximated", "refused"]
    approximations: tuple[str, ...] = ()
    reason: str | None = None
    gbnf: str | None = None
    lowered: dict[str, object] | None = None
    form: Form | None = field(default=None, repr=False, compare=False)


def compile_schema(schema: Mapping[str, object] | bool, *, assert_formats: bool = True) -> CompiledSchema:  # noqa: FBT001
    """Compile a JSON Schema (draft 2020-12, 7 and near relatives) to a grammar and to a lowered schema.

    Arguments: ``schema`` as ``json.loads`` returns it; it is not changed. ``assert_formats`` makes ``format``
    constrain, which the specification leaves open.
    Returns an answer for any schema, within about a second; never raises for the content of ``schema``.
    """
    document: Mapping[str, object] = {"not": {}} if schema is False else {} if schema is True else schema
    reason = ""
    for dropped in _GIVEN_UP:
        try:
            return _compiled(document, Ledger(fuel=FUEL, dropped=dropped), assert_formats=assert_formats)
        except TooLargeError as error:
            reason = f"{error.keyword}: too large to compile"
        except SchemaRefusedError as error:
            return _refused(str(error))
        except RecursionError:
            return _refused("the schema nests too deeply")
    return _refused(reason)


def _refused(reason: str) -> CompiledSchema:
    return CompiledSchema(status="refused", reason=reason)


def _compiled(document: Mapping[str, object], ledger: Ledger, *, assert_formats: bool) -> CompiledSchema:
    if not isinstance(document, dict):
        raise SchemaRefusedError("a schema is an object or a boolean")
    reader = Reader(document, assert_formats=assert_formats)
    root: Goal = goal([reader.node(document, "")])
    if root == frozenset({FALSE}):
        raise SchemaRefusedError("no value satisfies the schema")
    form = build(root, Expander(reader, ledger), ledger)
    gbnf = Emitter(form, ledger).grammar()
    try:
        validate_gbnf(gbnf)
    except GrammarSyntaxError as error:
        raise SchemaRefusedError(f"the grammar would not be valid ({error})") from None
    notes = tuple(sorted(ledger.notes))
    return CompiledSchema(
        status="approximated" if notes else "exact",
        approximations=notes,
        gbnf=gbnf,
        lowered=lower(form),
        form=form,
    )
