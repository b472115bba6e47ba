# SPDX-License-Identifier: Apache-2.0
"""A program that embeds the runner and offers it a tool of its own: python embedding.py PROFILE TASK.

The profile must grant `days_between`, as `embedding.yaml` beside this file does.
"""

import sys
from datetime import date

from runner import AgentLoop, HostTool, open_profile


def days_between(first: str, second: str) -> str:
    """Count the days between two dates given as YYYY-MM-DD."""
    return str(abs((date.fromisoformat(second) - date.fromisoformat(first)).days))


profile, task = sys.argv[1:]
with open_profile(profile, tools=[HostTool(days_between)]) as rt:
    result = AgentLoop(client=rt.client, tools=rt.tools).run(task)
print(result.answer or result.stop)
