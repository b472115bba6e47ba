# SPDX-License-Identifier: Apache-2.0
"""Evidence: a quote counts only if it stands, character for character, in what was read.

Owns the check. A model that quotes what it did not read gets no evidence, and its answer none either.
"""

from collections.abc import Iterable

from runner.agent.steps import Evidence
from runner.kernel.ports import Excerpt


def find_quote(quote: str, excerpts: Iterable[Excerpt]) -> Evidence | None:
    """Return where `quote` stands: the first excerpt that contains it whole, or None.

    An empty or blank quote stands nowhere.
    """
    if not quote.strip():
        return None
    for excerpt in excerpts:
        if quote in excerpt.text:
            return Evidence(file=excerpt.file, line=excerpt.line, quote=quote)
    return None
