# SPDX-License-Identifier: Apache-2.0
"""Second opinions: the closed list of what somebody beside the rules may say of a text.

Owns the words and the class that follows from each. Leaves who is asked, when, and on what record to the
perimeter. Carries I8: there is no word that lowers. `NONE` adds nothing to what the rules found.
"""

from enum import StrEnum
from typing import assert_never

from runner.kernel.labels import DataClass


class Opinion(StrEnum):
    """Why a text should count as more than the rules say, in one word. Its class follows from it."""

    NONE = "none"
    """Nothing to add."""
    PERSON = "person"
    """It tells of a particular person, named or not."""
    HEALTH = "health"
    """It tells of somebody's health."""
    JUDICIAL = "judicial"
    """It tells of somebody's offence or trial."""
    SECRECY = "secrecy"
    """It was confided, or nobody outside may know it."""
    CREDENTIAL = "credential"
    """It holds a password or a key."""

    @property
    def data_class(self) -> DataClass:
        """The least class of a text of which this is true; C0 adds nothing."""
        match self:
            case Opinion.NONE:
                return DataClass.C0
            case Opinion.PERSON:
                return DataClass.C2
            case Opinion.HEALTH | Opinion.JUDICIAL | Opinion.SECRECY | Opinion.CREDENTIAL:
                return DataClass.C3
            case _:
                assert_never(self)
