# SPDX-License-Identifier: Apache-2.0
"""Measures what a gate costs in use: the share of ordinary texts denied though they should pass.

Run: python benchmarks/benign.py [--count N] [--seed N] [--show CLASS]

*Should pass* means: the text holds no personal data but the practice's own (its letterhead, in the register
`own_identity`) and that of public offices and officers acting as such (in the register `public`); no secret;
and at most a sensitive *topic*, said of nobody. It passes when the classifier finds nothing above C1, the
class of typed text and the ceiling of the attached profile. Names of organisations, addresses without a
person, citations, dates, amounts and numbers of documents are in these texts on purpose.

One class is measured and not counted, `supplier`: letterheads of other firms. Their bank details and mail
addresses are those of organisations, but no rule can tell, and the answer is to list them as public.

The texts are those of the leak bench, `runner.adapters.leakbench.benign`: a figure speaks about its
generator.
"""

import argparse
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from runner.adapters.leakbench.benign import OWN, PUBLIC, Benign, Generator
from runner.kernel.labels import DataClass
from runner.kernel.registers import Listed
from runner.perimeter.classify import Classification, Classifier, compile_registers

COUNTED: Final = ("invoice", "letter", "notice", "clause", "citation", "question", "technical")
NOT_COUNTED: Final = "supplier"
CEILING: Final = DataClass.C1


def registers() -> Classifier:
    """Return a classifier with the registers of the practice that writes these texts."""
    own, public = (
        [Listed(file=file, line=line, names=(name,)) for line, name in enumerate(names, start=1)]
        for file, names in (("own", OWN), ("public", PUBLIC))
    )
    return Classifier(
        registers=compile_registers(clients=(), own=own, public=public, key=b"benchmark-key-16")
    )


@dataclass(slots=True, kw_only=True)
class Tally:
    """What came of the texts of one kind: how many, how many denied, and by which rules."""

    seen: int = 0
    denied: int = 0
    rules: Counter[str] = field(default_factory=Counter)

    def add(self, found: Classification) -> bool:
        """Count one text; say whether it would be denied."""
        above = {span.rule for span in found.spans if span.data_class > CEILING}
        self.seen += 1
        self.denied += found.data_class > CEILING
        self.rules.update(above)
        return found.data_class > CEILING


def measure(classifier: Classifier, texts: Iterator[Benign], *, show: str = "") -> dict[str, Tally]:
    """Return the tally of each kind; print the denied texts of the kind `show`."""
    tallies: dict[str, Tally] = {}
    for each in texts:
        denied = tallies.setdefault(each.kind, Tally()).add(classifier.classify(each.text))
        if denied and each.kind == show:
            print(f"--- {each.kind}\n{each.text}")
    return tallies


def share(tallies: dict[str, Tally]) -> float:
    """Return the share of denied texts among those that count."""
    counted = [tallies[kind] for kind in COUNTED if kind in tallies]
    return sum(tally.denied for tally in counted) / max(1, sum(tally.seen for tally in counted))


def main() -> None:
    """Print one line for each kind of text, with and without the registers."""
    parser = argparse.ArgumentParser(description="The share of ordinary texts that would be denied.")
    parser.add_argument("--count", type=int, default=4000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--show", default="", help="print the denied texts of this kind")
    options = parser.parse_args()
    for title, classifier in (("with the registers", registers()), ("without registers", Classifier())):
        show = options.show if title == "with the registers" else ""
        tallies = measure(classifier, Generator(options.seed).texts(options.count), show=show)
        print(f"{title}: {share(tallies):.2%} of {options.count} texts that should pass are denied")
        for kind in sorted(tallies):
            tally = tallies[kind]
            print(f"  {kind:10} {tally.denied:5} of {tally.seen:5}  {dict(tally.rules.most_common(4))}")
    generator = Generator(options.seed)
    other = measure(registers(), (generator.text(NOT_COUNTED) for _ in range(100)))[NOT_COUNTED]
    print(f"not counted: {NOT_COUNTED} {other.denied} of {other.seen}  {dict(other.rules.most_common(4))}")


if __name__ == "__main__":
    main()
