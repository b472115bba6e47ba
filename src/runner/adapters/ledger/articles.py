# SPDX-License-Identifier: Apache-2.0
"""What three articles of the GDPR ask for, of some runs: the records of processing, its impact, a breach.

Owns which statements each of them takes (Art. 30, 35, 33), and what a person has to complete by hand. Leaves
what a statement rests on to `statements.py`. Carries I12.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Final

from runner.adapters.ledger.select import shown_moment
from runner.adapters.ledger.statements import Material, Statement, Story, by_hand, nothing, ref

PERSONAL: Final = ("C2", "C3")
_FACTS: Final = ("custody", "enforcement", "sandbox", "classifier", "max_egress_class", "seal_every")


def affected(material: Material, story: Story) -> Iterator[Statement]:
    """Yield of which classes content was, and whether any of it left: names are not on record."""
    blocks = story.of("classify")
    for data_class in sorted({each.word("class") for each in blocks}):
        met = [each for each in blocks if each.word("class") == data_class]
        left = [each for each in story.left() if story.origin(each) == data_class]
        values: dict[str, str | int] = {"class": data_class, "blocks": len(met), "sends": len(left)}
        yield Statement(code="class_met", values=values, refs=tuple(map(ref, (*met, *left))))
    words = Counter(each.word("opinion") for each in blocks if each.word("opinion") not in {"", "none"})
    for word, count in sorted(words.items()):
        refs = tuple(ref(each) for each in blocks if each.word("opinion") == word)
        yield Statement(code="opinion", values={"opinion": word, "blocks": count}, refs=refs)
    if matters := [run for run in material.runs if run.matters]:
        count = sum(run.matters for run in matters)
        refs = tuple((run.log, run.first) for run in matters)
        yield Statement(code="matters_all", values={"matters": count}, refs=refs)
    yield by_hand("who_by_hand")


def _recipients(story: Story) -> Iterator[Statement]:
    """Yield each recipient that something left for."""
    names = Counter((each.word("channel"), story.recipient(each)) for each in story.left())
    for channel, name in sorted(names):
        sends = [e for e in story.left() if (e.word("channel"), story.recipient(e)) == (channel, name)]
        values: dict[str, str | int] = {
            "backend": name,
            "sends": len(sends),
            "bytes": sum(each.count("bytes") or 0 for each in sends),
            "classes": ", ".join(sorted({story.origin(each) for each in sends})),
            "first": shown_moment(sends[0].ts),
            "last": shown_moment(sends[-1].ts),
        }
        code = "recipient_tool" if channel == "tool" else "recipient"
        yield Statement(code=code, values=values, refs=tuple(map(ref, sends)))


def _safeguards(material: Material) -> Iterator[Statement]:
    """Yield what the headers say of the rules that were in force."""
    for header in material.headers:
        values: dict[str, str | int] = {"log": header.log, "policy": header.word("policy_digest")}
        values |= {name: header.count(name) or header.word(name) for name in _FACTS}
        yield Statement(code="safeguards", values=values, refs=(ref(header),))


def art30(material: Material, story: Story) -> Iterator[Statement]:
    """Yield what the records of processing activities say of it."""
    yield by_hand("controller_by_hand")
    yield by_hand("purposes_by_hand")
    yield from (each for each in affected(material, story) if each.code != "who_by_hand")
    yield by_hand("subjects_by_hand")
    yield from tuple(_recipients(story)) or (nothing("no_recipient", material),)
    none_left = material.is_whole and not story.left()
    yield by_hand("no_transfer_by_hand" if none_left else "transfers_by_hand")
    yield by_hand("retention_by_hand")
    yield from _safeguards(material)


def art35(material: Material, story: Story) -> Iterator[Statement]:
    """Yield what an assessment of its impact starts from."""
    runs = material.runs
    refs = tuple((run.log, run.first) for run in runs) or tuple(map(ref, material.headers))
    values: dict[str, str | int] = {
        "runs": len(runs),
        "reads": len(story.of("tool_result")),
        "sends": len(story.of("egress")),
        "left": len(story.left()),
    }
    yield Statement(code="operations", values=values, refs=refs)
    yield by_hand("necessity_by_hand")
    untrusted = [each for each in story.of("classify") if each.word("integrity") == "untrusted"]
    if untrusted:
        count: dict[str, str | int] = {"blocks": len(untrusted)}
        yield Statement(code="risk_untrusted", values=count, refs=tuple(map(ref, untrusted)))
    kept = [e for e in story.of("egress") if e.word("decision") == "denied" and e.word("class") in PERSONAL]
    if kept:
        yield Statement(code="risk_kept", values={"sends": len(kept)}, refs=tuple(map(ref, kept)))
    lowered = story.of("declassify")
    if lowered:
        yield Statement(code="risk_lowered", values={"times": len(lowered)}, refs=tuple(map(ref, lowered)))
    yield by_hand("rights_by_hand")
    yield from _safeguards(material)


def art33(material: Material, story: Story) -> Iterator[Statement]:
    """Yield what a notification of a breach has to say."""
    left = story.left()
    personal = [each for each in left if story.origin(each) in PERSONAL]
    if not left:
        yield nothing("breach_nothing_left", material)
    else:
        values: dict[str, str | int] = {
            "sends": len(left),
            "personal": len(personal),
            "first": shown_moment(left[0].ts),
            "last": shown_moment(left[-1].ts),
        }
        yield Statement(code="breach_left", values=values, refs=tuple(map(ref, left)))
    lowered = [each for each in left if each.word("declassify")]
    if lowered:
        yield Statement(code="breach_lowered", values={"sends": len(lowered)}, refs=tuple(map(ref, lowered)))
    yield from _recipients(story)
    yield by_hand("breach_read_by_hand")
    yield by_hand("breach_when_by_hand")
    yield by_hand("breach_subjects_by_hand")
    yield by_hand("breach_consequences_by_hand")
    yield from _safeguards(material)
