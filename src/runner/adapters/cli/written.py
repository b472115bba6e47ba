# SPDX-License-Identifier: Apache-2.0
"""Reports that a command writes into a file.

Owns the writing and what is said when it fails. Leaves what a report says to whoever made it.
"""

from pathlib import Path

import typer


def write_report(target: Path, text: str) -> None:
    """Write the report of --html; raise `typer.BadParameter` where that cannot be done."""
    try:
        target.write_text(text, encoding="utf-8")
    except OSError as error:
        raise typer.BadParameter(f"cannot be written ({error.strerror})", param_hint="--html") from None
