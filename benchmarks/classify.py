# SPDX-License-Identifier: Apache-2.0
"""Measures the classifier: microseconds per KB on ordinary and on hostile texts, and the hits by kind.

Run: python benchmarks/classify.py [folder of text files]
The folder defaults to `examples/practice`. Prints no content, only names, sizes and counts.
"""

import sys
from collections import Counter
from pathlib import Path
from time import perf_counter

from runner.perimeter.classify import classify_text

_KB = 1024


def _microseconds_per_kb(text: str) -> float:
    """Return the best of three runs over `text`, per KB of its UTF-8 form."""
    size = len(text.encode("utf-8", "replace")) / _KB
    best = float("inf")
    for _ in range(3):
        start = perf_counter()
        classify_text(text)
        best = min(best, perf_counter() - start)
    return best * 1e6 / size


def _hostile() -> dict[str, str]:
    """Return texts made to be slow: decoys that overlap, and runs that almost match."""
    size = 64 * _KB
    return {
        "codice fiscale of letters only": "L" * size,
        "overlapping codici fiscali": "ABCDEF01A01RSSMRA80A01F205" * (size // 26),
        "overlapping IBANs": "IT60X0" * (size // 6),
        "IBANs in words": "it60 x054 il 12 " * (size // 16),
        "digits": "4" * size,
        "digits in groups": "4111 " * (size // 5),
        "phone-like": "tel 02 1234 56 " * (size // 15),
        "local parts": "a" * (size - 1) + "@",
        "at signs": "a@" * (size // 2),
        "escapes": "%41" * (size // 3),
        "base64 of text": "cGF6aWVudGUg" * (size // 12),
        "base64 of noise": "q83vASNFZ4mr" * (size // 12),
        "passwords": "password=" * (size // 9),
        "invisible": "R\u200b" * (size // 2),
        "surrogates": "\ud800" * size,
        "titles": "sig. A " * (size // 7),
        "streets": "via a " * (size // 6),
        "not Latin": "медицина " * (size // 9),
        "many scripts": "".join(chr(0x400 + index % 0x3000) for index in range(size)),
    }


def main() -> None:
    """Print one line for each text."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "examples/practice")
    paths = sorted(path for path in folder.rglob("*") if path.suffix in {".txt", ".md"})
    texts = {str(path.relative_to(folder)): path.read_text(encoding="utf-8") for path in paths}
    if texts:
        texts["all of them, to 32 KB"] = "\n\n".join(texts.values())[: 32 * _KB]
    for name, text in texts.items():
        found = classify_text(text)
        kinds = ", ".join(
            f"{kind} {count}" for kind, count in sorted(Counter(s.kind for s in found.spans).items())
        )
        print(
            f"{_microseconds_per_kb(text):8.0f} us/KB  {found.data_class.name}  {name}: {kinds or 'nothing'}"
        )
    for name, text in _hostile().items():
        print(f"{_microseconds_per_kb(text):8.0f} us/KB  hostile: {name}")


if __name__ == "__main__":
    main()
