# SPDX-License-Identifier: Apache-2.0
"""How vLLM is told to hold a reply to a schema: `structured_outputs`, with a grammar in it."""

from typing import Any, ClassVar

from .constrained import ConstrainedClient
from .grammar import CompiledSchema


class VllmClient(ConstrainedClient):
    """A client of vLLM's OpenAI-like server. `model` is the name under which it is served."""

    DEFAULT_URL: ClassVar[str] = "http://127.0.0.1:8000"

    def constraint(self, compiled: CompiledSchema) -> dict[str, Any]:
        """Return the grammar itself. A schema there (`json`) lets a model write whitespace without end.

        The `disable_any_whitespace` of a request is accepted and ignored, and so is the older `guided_json`.
        """
        return {"structured_outputs": {"grammar": compiled.gbnf}}
