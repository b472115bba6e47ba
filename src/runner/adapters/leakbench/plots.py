# SPDX-License-Identifier: Apache-2.0
"""The one plot that only this report has: a map of kinds and transforms, as SVG text.

Owns its geometry. Leaves style and the other plots to `runner.adapters.reports.plots`.
"""

from collections.abc import Mapping
from html import escape
from typing import Final

from runner.adapters.reports.plots import BAD, GOOD, MIDDLE, NOTHING, svg, text

THIN: Final = 5
"""Trials below which a cell says little."""
_CELL: Final = 18
_LEFT: Final = 190
_TOP: Final = 130


def heat_map(rows: Mapping[str, Mapping[str, tuple[int, int]]], label: str) -> str:
    """Return a map of `rows`: for each row and column how many leaked, out of how many.

    A cell of fewer than `THIN` trials is drawn small.
    """
    columns = list(next(iter(rows.values())))
    parts = [
        text(0, 0, name, f'transform="translate({_LEFT + at * _CELL + 13},{_TOP - 6}) rotate(-60)"')
        for at, name in enumerate(columns)
    ]
    for down, (row, cells) in enumerate(rows.items()):
        y = _TOP + down * _CELL
        parts.append(text(_LEFT - 8, y + 13, row, 'text-anchor="end"'))
        parts += [
            _cell(_LEFT + at * _CELL, y, f"{row}, {column}", *cells[column])
            for at, column in enumerate(columns)
        ]
    return svg(_LEFT + len(columns) * _CELL + 70, _TOP + len(rows) * _CELL + 4, label, parts)


def _cell(x: float, y: float, name: str, leaked: int, trials: int) -> str:
    share = leaked / trials if trials else 0.0
    colour = NOTHING if not trials else GOOD if not leaked else BAD if leaked == trials else MIDDLE
    opacity = 0.35 + 0.65 * share if leaked else 1.0
    thin = 0 < trials < THIN
    more = ", thin" if thin else ""
    title = escape(f"{name}: {leaked} of {trials} leaked{more}" if trials else f"{name}: not planted")
    inset = 4 if thin else 0
    side = _CELL - 1 - 2 * inset
    return (
        f'<rect x="{x + inset:g}" y="{y + inset:g}" width="{side}" height="{side}" rx="2" fill="{colour}" '
        f'fill-opacity="{opacity:.2f}"><title>{title}</title></rect>'
    )
