# SPDX-License-Identifier: Apache-2.0
"""Effects: which label a tool of each kind gives to what it returns, and which class may go into it.

Owns what an effect and the folders it reaches mean for labels. Pure. Carries I8: what a tool adds
never lowers what was seen, and what was restored goes into no sink below its class.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import assert_never

from runner.kernel.labels import DataClass, Integrity, Label
from runner.kernel.ports import Effect, Root
from runner.perimeter.flows import Reads
from runner.perimeter.policy import class_of
from runner.perimeter.task import FILE_DEFAULT, REDACTED_DEFAULT


def label_of(root: Root) -> Label:
    """Return what reading under `root` makes of a block: its declared class, else the default for files.

    What lies where a tool may write may be made of anything that a task has read: nobody answers for it.
    """
    return Label(
        declared=root.declared if root.declared is not None else DataClass.C0,
        default=FILE_DEFAULT if root.declared is None else DataClass.C0,
        integrity=Integrity.UNTRUSTED if root.written else Integrity.PRACTICE,
        matters=frozenset() if root.matter is None else frozenset({root.matter}),
        sources=frozenset({root.alias}),
    )


def residue_of(root: Root) -> Label:
    """Return what redaction leaves of `label_of(root)`: the default falls where the grant says so."""
    label = label_of(root)
    return replace(label, default=min(label.default, REDACTED_DEFAULT)) if root.redactable else label


def sink_of(effect: Effect, roots: Sequence[Root]) -> DataClass:
    """Return the highest class of restored values that a call may carry to where it goes."""
    match effect:
        case Effect.READ | Effect.RUN:
            return DataClass.C3
        case Effect.WRITE:
            return min(map(class_of, roots), default=DataClass.C1)
        case Effect.NET | Effect.HOST | Effect.RUN_FREE:
            return DataClass.C1
        case _:
            assert_never(effect)


def own_label(effect: Effect, roots: Sequence[Root], reads: Reads | None) -> Label:
    """Return what a tool of this kind adds of itself.

    A file tool returns what lies under its `roots`; without any, what nobody classified. The network returns
    public pages from anyone. A program says what stands in those `roots`, in words that no one answers for. A
    host tool, and a program that nothing confines, return whatever is at hand, which nobody classified,
    unless the grant of a host tool says what it `reads`; so may that of a tool that asks for pages.
    """
    match effect:
        case Effect.READ | Effect.WRITE:
            return Label() if roots else Label(default=FILE_DEFAULT)
        case Effect.NET:
            declared = DataClass.C0 if reads is None else reads.data_class
            return Label(declared=declared, integrity=Integrity.UNTRUSTED)
        case Effect.RUN:
            return replace(Label() if roots else Label(default=FILE_DEFAULT), integrity=Integrity.UNTRUSTED)
        case Effect.HOST if reads is not None:
            return Label(declared=reads.data_class, integrity=reads.integrity)
        case Effect.HOST | Effect.RUN_FREE:
            return Label(default=FILE_DEFAULT, integrity=Integrity.UNTRUSTED)
        case _:
            assert_never(effect)
