# SPDX-License-Identifier: Apache-2.0
"""How llama-server is told to hold a reply to a grammar: the `grammar` member, in GBNF."""

from typing import Any, ClassVar

from .constrained import ConstrainedClient
from .grammar import CompiledSchema


class LlamaCppClient(ConstrainedClient):
    """A client of llama.cpp's server. `model` may be empty: the server holds one."""

    DEFAULT_URL: ClassVar[str] = "http://127.0.0.1:8080"

    def constraint(self, compiled: CompiledSchema) -> dict[str, Any]:
        """Return the grammar itself: for `json_schema` the server has a converter that drops keywords."""
        return {"grammar": compiled.gbnf}
