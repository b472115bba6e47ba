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


try:
    profile, task = sys.argv[1:]
except ValueError:
    sys.exit('usage: python examples/embedding.py examples/embedding.yaml "How many days from ... to ...?"')
with open_profile(profile, tools=[HostTool(days_between)]) as rt:
    result = AgentLoop(client=rt.client, tools=rt.tools).run(task)
print(result.answer or result.stop)
sys.exit(0 if result.answer else 1)
