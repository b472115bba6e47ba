# SPDX-License-Identifier: Apache-2.0
"""Akaion Runner: an agent whose loop runs inside a perimeter, with a record that proves what left it.

from runner import open_profile

with open_profile("detached") as rt:
    print(rt.loop().run("When is the hearing?").answer)
"""

from runner.agent.loop import AgentLoop
from runner.agent.steps import Budget, Event, Evidence, RunResult, StopReason
from runner.assembly import Runtime, open_profile
from runner.capability.tools.host import HostTool
from runner.kernel.decisions import Allow, Allowed, Ask, Denied, Deny, Redacted
from runner.kernel.errors import ConfigError, EgressDenied, RunnerError, TraceError, TraceUnavailable
from runner.kernel.labels import DataClass, Label
from runner.kernel.opinions import Opinion
from runner.kernel.ports import SecondOpinion
from runner.kernel.version import __version__
from runner.perimeter.client import SealedClient
from runner.perimeter.gate import Perimeter
from runner.perimeter.toolbox import SealedTools

__all__ = [  # noqa: RUF022 - grouped by role, for a reader
    # opening a profile and running a task
    "open_profile",
    "Runtime",
    "AgentLoop",
    "Budget",
    "Event",
    "RunResult",
    "Evidence",
    "StopReason",
    "HostTool",
    # the perimeter
    "Perimeter",
    "SealedClient",
    "SealedTools",
    "DataClass",
    "Label",
    "SecondOpinion",
    "Opinion",
    # decisions, consumed by match
    "Allowed",
    "Redacted",
    "Denied",
    "Allow",
    "Ask",
    "Deny",
    # what can go wrong
    "RunnerError",
    "ConfigError",
    "EgressDenied",
    "TraceError",
    "TraceUnavailable",
    "__version__",
]
