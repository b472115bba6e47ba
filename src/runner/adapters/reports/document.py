# SPDX-License-Identifier: Apache-2.0
"""A report as one HTML file: the frame around it, and its tables.

Owns the frame and the style. It holds no script, fetches nothing, and forbids both by its own policy. Every
word that comes in is escaped. Leaves what a report says to whoever measures.
"""

from collections.abc import Iterable, Sequence
from html import escape
from typing import Final

_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'"
_STYLE: Final = """
body{font:15px/1.5 system-ui,sans-serif;color:#1f2933;max-width:64rem;margin:2rem auto;padding:0 1rem}
h1{font-size:1.6rem;margin-bottom:.2rem}h2{font-size:1.15rem;margin-top:2.2rem}
table{border-collapse:collapse;margin:.6rem 0}
th,td{padding:.25rem .7rem;text-align:left;border-bottom:1px solid #d9dee3}
td.n{text-align:right;font-variant-numeric:tabular-nums}p.note{color:#52606d}
.pass{color:#2f6f4f}.fail{color:#b3261e}svg{max-width:100%;height:auto;margin:.4rem 0}
"""


def document(title: str, sections: Iterable[str]) -> str:
    """Return the whole HTML document named `title`; `sections` are HTML, already escaped."""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head>"
        f"<body>{''.join(sections)}</body></html>\n"
    )


def table(head: Sequence[str], rows: Iterable[Sequence[str | int | float]]) -> str:
    """Return a table of `rows` under `head`; numbers stand on the right."""
    cells = "".join(f"<th>{escape(each)}</th>" for each in head)
    lines = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    return f"<table><thead><tr>{cells}</tr></thead><tbody>{lines}</tbody></table>"


def note(words: str) -> str:
    """Return a paragraph that explains what stands above it."""
    return f'<p class="note">{escape(words)}</p>'


def _cell(value: str | float) -> str:
    return f"<td>{escape(value)}</td>" if isinstance(value, str) else f'<td class="n">{value}</td>'
