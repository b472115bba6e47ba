# SPDX-License-Identifier: Apache-2.0
"""The plots of the report, as SVG text: a map of kinds and transforms, bars of shares, points of routings.

Owns geometry. Draws with plain shapes and text, in one style, without a script and without anything fetched.
Every word is escaped; colours are never the only sign: each cell and bar has its number in a title.
"""

from collections.abc import Mapping, Sequence
from html import escape
from typing import Final

INK: Final = "#1f2933"
FAINT: Final = "#d9dee3"
HELD: Final = "#2f6f4f"
LEAKED: Final = "#b3261e"
PARTLY: Final = "#c9862b"
NOTHING: Final = "#f3f4f6"
THIN: Final = 5
"""Trials below which a cell says little."""
_CELL: Final = 18
_LEFT: Final = 190
_TOP: Final = 130


def _text(x: float, y: float, words: str, more: str = "") -> str:
    return f'<text x="{x:g}" y="{y:g}" {more}>{escape(words)}</text>'


def _svg(width: float, height: float, label: str, parts: Sequence[str]) -> str:
    return (
        f'<svg viewBox="0 0 {width:g} {height:g}" width="{width:g}" role="img" aria-label="{escape(label)}" '
        f'font-family="system-ui, sans-serif" font-size="11" fill="{INK}">{"".join(parts)}</svg>'
    )


def heat_map(rows: Mapping[str, Mapping[str, tuple[int, int]]], label: str) -> str:
    """Return a map of `rows`: for each row and column how many leaked, out of how many.

    A cell of fewer than `THIN` trials is drawn small.
    """
    columns = list(next(iter(rows.values())))
    parts = [
        _text(0, 0, name, f'transform="translate({_LEFT + at * _CELL + 13},{_TOP - 6}) rotate(-60)"')
        for at, name in enumerate(columns)
    ]
    for down, (row, cells) in enumerate(rows.items()):
        y = _TOP + down * _CELL
        parts.append(_text(_LEFT - 8, y + 13, row, 'text-anchor="end"'))
        parts += [
            _cell(_LEFT + at * _CELL, y, f"{row}, {column}", *cells[column])
            for at, column in enumerate(columns)
        ]
    return _svg(_LEFT + len(columns) * _CELL + 70, _TOP + len(rows) * _CELL + 4, label, parts)


def _cell(x: float, y: float, name: str, leaked: int, trials: int) -> str:
    share = leaked / trials if trials else 0.0
    colour = NOTHING if not trials else HELD if not leaked else LEAKED if leaked == trials else PARTLY
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


def bars(shares: Mapping[str, tuple[int, int]], label: str) -> str:
    """Return a bar for each name: how many leaked, out of how many."""
    parts = []
    for down, (name, (leaked, trials)) in enumerate(shares.items()):
        y, share = down * 22, leaked / max(1, trials)
        parts += [
            _text(_LEFT + 60, y + 14, name, 'text-anchor="end"'),
            f'<rect x="{_LEFT + 70}" y="{y + 3}" width="300" height="14" rx="2" fill="{FAINT}"/>',
            f'<rect x="{_LEFT + 70}" y="{y + 3}" width="{300 * share:.1f}" height="14" fill="{LEAKED}"/>',
            _text(_LEFT + 378, y + 14, f"{share:.1%} ({leaked} of {trials})"),
        ]
    return _svg(_LEFT + 520, len(shares) * 22 + 4, label, parts)


def points(named: Sequence[tuple[str, float, float]], across: str, up: str, label: str) -> str:
    """Return a plane with a point for each name, at two shares in [0, 1]."""
    left, top, side = 60, 14, 320
    parts = [f'<rect x="{left}" y="{top}" width="{side}" height="{side}" fill="none" stroke="{FAINT}"/>']
    for tick in (0.0, 0.25, 0.5, 0.75, 1.0):
        at = tick * side
        parts += [
            f'<path d="M{left + at:g} {top}v{side}M{left} {top + at:g}h{side}" stroke="{FAINT}"/>',
            _text(left + at, top + side + 16, f"{tick:.0%}", 'text-anchor="middle"'),
            _text(left - 6, top + side - at + 4, f"{tick:.0%}", 'text-anchor="end"'),
        ]
    for name, x, y in named:
        px, py = left + x * side, top + side - y * side
        colour = HELD if y == 0 else PARTLY if y < 0.5 else LEAKED  # noqa: PLR2004 - half of them
        end = x > 0.5  # noqa: PLR2004 - the label stands on the side with room
        anchor = 'text-anchor="end"' if end else ""
        parts += [
            f'<circle cx="{px:.1f}" cy="{py:.1f}" r="6" fill="{colour}"/>',
            _text(px - 10 if end else px + 10, py - 8, f"{name}: {x:.1%}, {y:.1%}", anchor),
        ]
    parts.append(_text(left + side / 2, top + side + 34, across, 'text-anchor="middle"'))
    turned = f'text-anchor="middle" transform="translate(14,{top + side / 2:g}) rotate(-90)"'
    parts.append(_text(0, 0, up, turned))
    return _svg(left + side + 40, top + side + 44, label, parts)
