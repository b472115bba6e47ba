# SPDX-License-Identifier: Apache-2.0
"""Plots as SVG text: bars of shares, shares with their intervals, bars in parts, points in a plane.

Owns geometry. Draws with plain shapes and text, in one style, without a script and without anything fetched.
Every word is escaped; colours are never the only sign: each mark has its number beside it or in a title.
"""

from collections.abc import Mapping, Sequence
from html import escape
from typing import Final

from runner.adapters.reports.shares import wilson

INK: Final = "#1f2933"
FAINT: Final = "#d9dee3"
GOOD: Final = "#2f6f4f"
BAD: Final = "#b3261e"
MIDDLE: Final = "#c9862b"
OTHER: Final = "#5b6f95"
NOTHING: Final = "#f3f4f6"
_LEFT: Final = 250
_LINE: Final = 22
_WIDE: Final = 300


def text(x: float, y: float, words: str, more: str = "") -> str:
    """Return `words` at a place; `more` are attributes."""
    return f'<text x="{x:g}" y="{y:g}" {more}>{escape(words)}</text>'


def svg(width: float, height: float, label: str, parts: Sequence[str]) -> str:
    """Return the picture made of `parts`, named `label` for those who do not see it."""
    return (
        f'<svg viewBox="0 0 {width:g} {height:g}" width="{width:g}" role="img" aria-label="{escape(label)}" '
        f'font-family="system-ui, sans-serif" font-size="11" fill="{INK}">{"".join(parts)}</svg>'
    )


def bars(shares: Mapping[str, tuple[int, int]], label: str) -> str:
    """Return a bar for each name: so many, out of how many."""
    parts = []
    for down, (name, (count, trials)) in enumerate(shares.items()):
        y, share = down * _LINE, count / max(1, trials)
        parts += [
            *_row(name, y),
            f'<rect x="{_LEFT + 10}" y="{y + 3}" width="{_WIDE * share:.1f}" height="14" fill="{BAD}"/>',
            text(_LEFT + 318, y + 14, f"{share:.1%} ({count} of {trials})"),
        ]
    return svg(_LEFT + 460, len(shares) * _LINE + 4, label, parts)


def intervals(shares: Mapping[str, tuple[int, int]], label: str) -> str:
    """Return a point for each share with its 95 % interval as a line (`shares.wilson`)."""
    parts = []
    for down, (name, (count, trials)) in enumerate(shares.items()):
        y, x = down * _LINE, _LEFT + 10
        low, high = wilson(count, trials)
        parts += [
            *_row(name, y),
            f'<path d="M{x + _WIDE * low:.1f} {y + 10}h{_WIDE * (high - low):.1f}" stroke="{INK}"/>',
            text(_LEFT + 318, y + 14, f"{count} of {trials} ({low:.0%} to {high:.0%})"),
        ]
        if trials:
            parts.append(f'<circle cx="{x + _WIDE * count / trials:.1f}" cy="{y + 10}" r="5" fill="{GOOD}"/>')
    return svg(_LEFT + 460, len(shares) * _LINE + 4, label, parts)


def stacked(rows: Mapping[str, Mapping[str, int]], colours: Mapping[str, str], label: str) -> str:
    """Return a bar for each row, cut into its counts in the order of `colours`, with a key above."""
    parts = []
    x = float(_LEFT + 10)
    for name, colour in colours.items():
        parts += [
            f'<rect x="{x:g}" y="4" width="11" height="11" rx="2" fill="{colour}"/>',
            text(x + 15, 14, name),
        ]
        x += 32 + 6.5 * len(name)
    for down, (name, counts) in enumerate(rows.items(), start=1):
        y, total, x = down * _LINE, max(1, sum(counts.values())), float(_LEFT + 10)
        parts += _row(name, y)
        for part, colour in colours.items():
            wide = _WIDE * counts.get(part, 0) / total
            title = f"<title>{escape(f'{name}: {part}, {counts.get(part, 0)} of {total}')}</title>"
            parts.append(
                f'<rect x="{x:.1f}" y="{y + 3}" width="{wide:.1f}" height="14" fill="{colour}">{title}</rect>'
            )
            x += wide
        said = ", ".join(str(counts.get(part, 0)) for part in colours)
        parts.append(text(_LEFT + 318, y + 14, said))
    return svg(_LEFT + 460, (len(rows) + 1) * _LINE + 4, label, parts)


def _row(name: str, y: float) -> list[str]:
    """Return the name of a row and the ground its bar lies on."""
    return [
        text(_LEFT, y + 14, name, 'text-anchor="end"'),
        f'<rect x="{_LEFT + 10}" y="{y + 3:g}" width="{_WIDE}" height="14" rx="2" fill="{FAINT}"/>',
    ]


def points(named: Sequence[tuple[str, float, float]], across: str, up: str, label: str) -> str:
    """Return a plane with a point for each name, at two shares in [0, 1]."""
    left, top, side = 60, 14, 320
    parts = [f'<rect x="{left}" y="{top}" width="{side}" height="{side}" fill="none" stroke="{FAINT}"/>']
    for tick in (0.0, 0.25, 0.5, 0.75, 1.0):
        at = tick * side
        parts += [
            f'<path d="M{left + at:g} {top}v{side}M{left} {top + at:g}h{side}" stroke="{FAINT}"/>',
            text(left + at, top + side + 16, f"{tick:.0%}", 'text-anchor="middle"'),
            text(left - 6, top + side - at + 4, f"{tick:.0%}", 'text-anchor="end"'),
        ]
    for name, x, y in named:
        px, py = left + x * side, top + side - y * side
        colour = GOOD if y == 0 else MIDDLE if y < 0.5 else BAD  # noqa: PLR2004 - half of them
        end = x > 0.5  # noqa: PLR2004 - the label stands on the side with room
        anchor = 'text-anchor="end"' if end else ""
        parts += [
            f'<circle cx="{px:.1f}" cy="{py:.1f}" r="6" fill="{colour}"/>',
            text(px - 10 if end else px + 10, py - 8, f"{name}: {x:.1%}, {y:.1%}", anchor),
        ]
    parts.append(text(left + side / 2, top + side + 34, across, 'text-anchor="middle"'))
    turned = f'text-anchor="middle" transform="translate(14,{top + side / 2:g}) rotate(-90)"'
    parts.append(text(0, 0, up, turned))
    return svg(left + side + 40, top + side + 44, label, parts)
