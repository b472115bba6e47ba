# SPDX-License-Identifier: Apache-2.0
"""A copy of the verifier's page that carries a book: one file to open, to keep, or to hand on.

Owns finding the page and putting the logs into it as data. The page judges; this only carries. It takes no
pin: whoever looks brings their own.
"""

import base64
import json
import os
import tempfile
from importlib import resources
from pathlib import Path
from typing import Final

from runner.kernel.errors import TraceError

PAGE: Final = "akaion_verify.html"
MAX_BYTES: Final = 256 << 20
"""The largest book a page carries; a browser holds all of it in memory."""
_BEFORE: Final = "<script>"


def carry(folder: Path) -> str:
    """Return the verifier's page with the logs of the book in `folder` in it.

    Raises `TraceError` when the folder or a log cannot be read, holds no log, or is too large for a page.
    """
    files = [_carried(path) for path in _logs(folder)]
    # Only `<` could end the element early; JSON has another spelling for it.
    data = json.dumps({"files": files}).replace("<", "\\u003c")
    element = f'<script type="application/json" id="book">{data}</script>\n'
    return _page().replace(_BEFORE, element + _BEFORE, 1)


def write_page(page: str, target: Path | None) -> Path:
    """Write `page` to `target`, or to a new temporary file, for its owner's eyes only; return the path.

    Raises `TraceError` when it cannot be written.
    """
    try:
        if target is None:
            handle, name = tempfile.mkstemp(prefix="akaion-trace-", suffix=".html")
        else:
            name = str(target)
            handle = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(page)
    except OSError as error:
        raise TraceError(
            f"the page could not be written ({error.strerror}). Fix: name another file with --output"
        ) from None
    return Path(name)


def _logs(folder: Path) -> list[Path]:
    """Return what the page must see: every name that ends in .jsonl, right or wrong, and anchors."""
    try:
        found = sorted(path for path in folder.iterdir() if path.name.endswith((".jsonl", ".witness")))
        size = sum(path.lstat().st_size for path in found)
    except OSError:
        raise TraceError(
            f"there is no record at {folder}. Fix: run a task first, or name its folder"
        ) from None
    if not found:
        raise TraceError(f"{folder} holds no log. Fix: name the folder that `akaion trace path` prints")
    if size > MAX_BYTES:
        raise TraceError(
            f"the book has {size >> 20} MiB, more than the {MAX_BYTES >> 20} that a page carries. "
            "Fix: use akaion-verify, or open the page itself and drop the folder on it"
        )
    return found


def _carried(path: Path) -> tuple[str, str | None]:
    """Return a name and its content as base64; None for what is no regular file, as the page expects."""
    if path.is_symlink() or not path.is_file():
        return path.name, None
    try:
        return path.name, base64.b64encode(path.read_bytes()).decode("ascii")
    except OSError as error:
        raise TraceError(
            f"{path} cannot be read ({error.strerror}). Fix: own it, or use a copy of the book"
        ) from None


def _page() -> str:
    inside = resources.files("runner") / "verify" / PAGE
    if inside.is_file():
        return inside.read_text(encoding="utf-8")
    return (Path(__file__).parents[4] / "verify" / PAGE).read_text(encoding="utf-8")
