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
)

FACTS = HeaderFacts(
    book="studio",
    host="a-machine-name",
    boot_id="0" * 32,
    profile="detached",
    policy_digest="1" * 64,
    config_digest="2" * 64,
    backends=("local",),
    max_egress_class="none",
    enforcement="cooperative",
    sandbox="none",
    writer="akaion-runner/test",
)


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
