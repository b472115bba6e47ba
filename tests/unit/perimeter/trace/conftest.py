# SPDX-License-Identifier: Apache-2.0
"""A book in memory for the tests of the trace."""

from dataclasses import dataclass, field, replace

import pytest

from runner.perimeter.trace.log import HeaderFacts, Trace
from runner.testing import (
    FixedEntropy,
    FrozenClock,
    MemoryLogFile,
    MemoryLogStore,
    MemorySaltStore,
    MemorySigner,
    header_words,
)

FACTS = HeaderFacts(**header_words())


@dataclass
class Studio:
    """The ports of one book, and what is in it."""

    store: MemoryLogStore = field(default_factory=MemoryLogStore)
    salts: MemorySaltStore = field(default_factory=MemorySaltStore)
    signer: MemorySigner = field(default_factory=MemorySigner)
    clock: FrozenClock = field(default_factory=FrozenClock)
    entropy: FixedEntropy = field(default_factory=FixedEntropy)

    def open(self, **facts: object) -> Trace:
        """Open the next log, with other facts where given."""
        return Trace.open(
            store=self.store,
            signer=self.signer,
            salts=self.salts,
            clock=self.clock,
            entropy=self.entropy,
            facts=replace(FACTS, **facts),  # type: ignore[arg-type]  # a test's own keywords
        )

    @property
    def log(self) -> MemoryLogFile:
        """The newest log."""
        return self.store.files[max(self.store.files)]


@pytest.fixture
def studio() -> Studio:
    """An empty book."""
    return Studio()
