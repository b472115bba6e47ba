# SPDX-License-Identifier: Apache-2.0
"""Checks the documentation: every relative link in a Markdown file must lead to a file that exists.

The examples in the documentation are run by the test suite, not here.
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
_SKIPPED = {".venv", ".git", ".akaion", "dist", "build"}
_FENCE = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\((?![a-z]+:|#)([^)#\s]+)(?:#[^)\s]*)?\)")


def pages() -> Iterator[Path]:
    """Yield every Markdown file of the checkout."""
    for path in sorted(ROOT.rglob("*.md")):
        if not _SKIPPED & set(path.relative_to(ROOT).parts):
            yield path


def broken_links(page: Path) -> Iterator[str]:
    """Yield the relative link targets of `page`, outside code blocks, that do not exist."""
    for target in _LINK.findall(_FENCE.sub("", page.read_text(encoding="utf-8"))):
        if not (page.parent / target).exists():
            yield target


def main() -> int:
    """Print every broken link; return the exit status."""
    checked = list(pages())
    broken = [f"{page.relative_to(ROOT)}: {target}" for page in checked for target in broken_links(page)]
    print("\n".join([*broken, f"docs: {len(checked)} pages, {len(broken)} broken links"]))
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
