# SPDX-License-Identifier: Apache-2.0
"""Public fakes of every port, for our tests and for those of programs that embed the runner.

Owns deterministic stand-ins with no I/O, and one real thing: `ScriptedServer`, an HTTP server on loopback
that keeps every byte it receives. Fakes answer from a script, in order, and say so when it is used up.
Imports the kernel's words and nothing of the rooms it stands in for, so that it cannot share their mistakes.

    backend = ScriptedBackend(replies=["Forty-two."])
    client = perimeter.seal(backend, transport=backend.transport)
"""

from runner.testing.chance import FixedEntropy, FrozenClock
from runner.testing.faults import broken
from runner.testing.inference import (
    IN_PROCESS,
    Calling,
    Reply,
    ScriptedBackend,
    ScriptedDecoder,
    ScriptedEmbedder,
    ScriptedTransport,
    Truncated,
    vector_of,
)
from runner.testing.judges import (
    FakeClassifier,
    FakeFinding,
    FakeHit,
    FakeOpinion,
    FakeServerCheck,
    FakeTool,
    FixedLocality,
    ScriptedApprover,
)
from runner.testing.record import (
    MemoryLogFile,
    MemoryLogStore,
    MemorySaltStore,
    MemorySigner,
    header_words,
)
from runner.testing.server import (
    BreakOff,
    Fault,
    RawBytes,
    Redirect,
    ScriptedServer,
    ServerError,
    ServerReply,
    Stall,
    first_instance,
    oblige,
)

__all__ = [
    "IN_PROCESS",
    "BreakOff",
    "Calling",
    "FakeClassifier",
    "FakeFinding",
    "FakeHit",
    "FakeOpinion",
    "FakeServerCheck",
    "FakeTool",
    "Fault",
    "FixedEntropy",
    "FixedLocality",
    "FrozenClock",
    "MemoryLogFile",
    "MemoryLogStore",
    "MemorySaltStore",
    "MemorySigner",
    "RawBytes",
    "Redirect",
    "Reply",
    "ScriptedApprover",
    "ScriptedBackend",
    "ScriptedDecoder",
    "ScriptedEmbedder",
    "ScriptedServer",
    "ScriptedTransport",
    "ServerError",
    "ServerReply",
    "Stall",
    "Truncated",
    "broken",
    "first_instance",
    "header_words",
    "oblige",
    "vector_of",
]
