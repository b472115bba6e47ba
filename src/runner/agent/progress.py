# SPDX-License-Identifier: Apache-2.0
"""The progress guard: notices a run that repeats itself.

Owns one question: was this very call made before in this run? A small model that drifts repeats calls;
stopping is cheaper than the budget it would burn.
"""

import json

from runner.kernel.messages import JsonObject


class ProgressGuard:
    """Remembers the calls of one run."""

    def __init__(self) -> None:
        self._seen: set[str] = set()

    def is_new(self, tool: str, arguments: JsonObject) -> bool:
        """Return whether this exact call is the first of its kind, and remember it."""
        call = json.dumps([tool, dict(arguments)], sort_keys=True)
        new = call not in self._seen
        self._seen.add(call)
        return new
