# SPDX-License-Identifier: Apache-2.0
"""What a practice's register says, line by line: the words that reading and judging share.

Owns the value that a reader of files hands to the classifier. Leaves the files to
`runner.capability.registers` and their meaning to `runner.perimeter.classify.registers`.
Carries I12: a line's names are kept out of its repr.
"""

from dataclasses import dataclass, field

from runner.kernel.labels import DataClass


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """One line of a register: the spellings of one person, organisation, office or address.

    `file` and `line` (from 1) say where it stands. `data_class` counts in the client register only;
    so does `by_surname`: whether a person is looked for by one word of the name too.
    """

    file: str
    line: int
    names: tuple[str, ...] = field(repr=False)
    data_class: DataClass = DataClass.C2
    by_surname: bool = True
