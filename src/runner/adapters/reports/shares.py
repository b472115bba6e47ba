# SPDX-License-Identifier: Apache-2.0
"""How sure a share is, and whether two shares over the same items differ.

Owns two formulas. Both are total on counts, and neither says anything about items that were not drawn.
"""

from math import comb, sqrt
from typing import Final

_Z: Final = 1.959964
"""Two-sided 95 % of the normal distribution."""


def wilson(count: int, trials: int) -> tuple[float, float]:
    """Return the 95 % interval of the share `count` of `trials`, in [0, 1]; all of it without trials.

    It takes the trials for drawn at random and independent. After Wilson, "Probable inference, the law of
    succession, and statistical inference" (1927).
    """
    if not trials:
        return 0.0, 1.0
    share, spread = count / trials, _Z * _Z / trials
    middle = share + spread / 2
    half = _Z * sqrt((share * (1 - share) + spread / 4) / trials)
    low, high = (middle - half) / (1 + spread), (middle + half) / (1 + spread)
    return (low if count else 0.0), (high if count < trials else 1.0)


def interval_words(count: int, trials: int) -> str:
    """Return the 95 % interval in percent, for people."""
    low, high = wilson(count, trials)
    return f"{low * 100:.1f} to {high * 100:.1f} %"


def mcnemar(first: int, second: int) -> float:
    """Return the exact two-sided p value for pairs of which `first` went only one way, `second` the other.

    Pairs that went the same way say nothing about a difference and do not count. The chance, if both ways
    were as likely, of a split at least as uneven: after McNemar (1947), by the binomial distribution itself.
    """
    pairs = first + second
    tail = sum(comb(pairs, count) for count in range(min(first, second) + 1))
    return float(min(1.0, 2 * tail / (1 << pairs)))
