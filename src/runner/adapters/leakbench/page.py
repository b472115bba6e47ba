# SPDX-License-Identifier: Apache-2.0
"""The report as one HTML file: words, tables and plots, complete in itself.

Owns what stands on the page; its frame is that of `runner.adapters.reports`. No secret is in it, only the
names of kinds, spellings and places.
"""

from collections.abc import Iterator
from html import escape
from typing import Final

from runner.adapters.leakbench.bench import Outcome
from runner.adapters.leakbench.facts import CAVEAT, TERMS
from runner.adapters.leakbench.kinds import KINDS
from runner.adapters.leakbench.plan import DEFENCES, Carrier, Defence, Split
from runner.adapters.leakbench.plots import THIN, heat_map
from runner.adapters.leakbench.report import SOURCES, Report
from runner.adapters.leakbench.transforms import TRANSFORMS
from runner.adapters.reports.document import document, table
from runner.adapters.reports.plots import bars, points
from runner.kernel.language import how_many

_PLACES_SHOWN: Final = 200


def page(report: Report) -> str:
    """Return the whole HTML document."""
    return document(f"Leak bench: {report.facts.order.named}", _sections(report))


def _sections(report: Report) -> Iterator[str]:
    yield from _head(report)
    yield "<h2>What leaked, behind which defence</h2>" + _by_defence(report)
    yield "<h2>Where a leak happened that may not</h2>" + _places(report)
    yield "<h2>Typed leaks that nothing promised to stop</h2>" + _typed_leaks(report)
    yield "<h2>Use against leaks</h2>" + _routings(report)
    yield "<h2>Typed text: what detectors recognise</h2>" + _typed(report)
    yield "<h2>By the part of a request that carried it</h2>" + _carriers(report)
    yield "<h2>In pieces</h2>" + _splits(report)
    yield "<h2>Ordinary texts, and approvals</h2>" + _ordinary(report)
    yield "<h2>Record and requests</h2>" + _matching(report)


def _head(report: Report) -> Iterator[str]:
    facts, failures = report.facts, report.failures()
    yield f"<h1>Leak bench: {escape(facts.order.named)}</h1>"
    yield f"<p>{how_many(facts.order.trials, 'trial')} from seed {facts.order.seed}.</p>"
    verdict = "no leak where none may be" if not failures else "; ".join(failures)
    yield f'<p class="{"fail" if failures else "pass"}"><strong>{escape(verdict)}</strong></p>'
    yield table((), facts.words())
    yield f'<p class="note">{escape(TERMS)}</p><p class="note">{escape(CAVEAT)}</p>'


def _by_defence(report: Report) -> str:
    rows = [
        (
            defence.value,
            source,
            share.trials,
            *(report.tally.outcomes[defence, source, outcome] for outcome in Outcome),
            share.interval_words,
            f"{held.leaks} of {held.trials}",
        )
        for defence in DEFENCES
        for source in SOURCES
        for share, held in ((report.share(defence, source), report.held(defence, source)),)
    ]
    head = ("defence", "secret in", "trials", *(outcome.value for outcome in Outcome))
    note = (
        f"<p>May not leak: {escape(report.must_hold_words())}.</p>"
        '<p class="note">The interval is that of the share of leaks, 95 % after Wilson, as if the trials '
        "were drawn at random from this generator; it says nothing of real requests.</p>"
        '<p class="note">"Neither" is the control: it must leak, or the bench would be blind. "Dropped" '
        "means that the remote's protocol has no place for that part of a request.</p>"
    )
    return table((*head, "share leaked, 95 %", "of those that may not leak"), rows) + note


def _places(report: Report) -> str:
    places = list(report.places())
    if not places:
        return f"<p>Nowhere. May not leak: {escape(report.must_hold_words())}.</p>"
    head = ("kind", "transform", "carrier", "split", "plant", "defence", "leaks", "first_trial")
    rows = [[place[name] for name in head] for place in places[:_PLACES_SHOWN]]
    more = len(places) - len(rows)
    return table(head, rows) + (f"<p>{more} more are in the JSON.</p>" if more > 0 else "")


def _typed_leaks(report: Report) -> str:
    leaks = list(report.typed_leaks())
    if not leaks:
        return "<p>None.</p>"
    note = (
        f"<p>The first of each kind and spelling, {len(leaks)} of {len(report.tally.typed_first)}, behind "
        "labels and detectors. Seed and trial make each again; the secrets are nobody's.</p>"
    )
    return note + table(tuple(leaks[0]), [tuple(each.values()) for each in leaks])


def _routings(report: Report) -> str:
    named = [(each.name, each.utility, each.leak_rate) for each in report.routings()]
    note = (
        '<p class="note">Use is the share of ordinary texts that the remote model may serve. It says nothing '
        "of how good an answer is. The leak rate is that of this generator, in which many secrets are "
        "written so that nothing can recognise them.</p>"
    )
    return points(named, "use: ordinary texts served remotely", "secrets that leaked", "routings") + note


def _typed(report: Report) -> str:
    rows = {
        kind.name: {transform.name: _share(report, kind.name, transform.name) for transform in TRANSFORMS}
        for kind in KINDS
    }
    planted = [trials for cells in rows.values() for _, trials in cells.values() if trials]
    thin = sum(trials < THIN for trials in planted)
    note = (
        f"<p>{thin} of {len(planted)} cells have fewer than {THIN} trials. They are drawn small: each is an "
        "example, and no share.</p>"
        '<p class="note">Whole secrets where nothing was labelled. Green: none leaked; red: all; grey: not '
        "planted. The spellings on the right, from a line end inside on, are those that detectors do not "
        "claim to read.</p>"
    )
    return heat_map(rows, "share of leaked secrets by kind and spelling") + note


def _share(report: Report, kind: str, transform: str) -> tuple[int, int]:
    cell = report.cell(kind, transform)
    return cell.get(Outcome.LEAKED.value, 0), sum(cell.values())


def _carriers(report: Report) -> str:
    shares = {carrier.value: _carried(report, carrier) for carrier in Carrier}
    return f"<p>{Defence.BOTH.value}:</p>" + bars(shares, "share of leaked secrets by carrier")


def _carried(report: Report, carrier: Carrier) -> tuple[int, int]:
    counts = {outcome: report.tally.carriers[Defence.BOTH, carrier.value, outcome] for outcome in Outcome}
    return counts[Outcome.LEAKED], sum(counts.values())


def _splits(report: Report) -> str:
    shares = {}
    for split in Split:
        counts = report.split_counts(split)
        shares[split.value] = counts[Outcome.LEAKED.value], sum(counts.values())
    note = '<p class="note">Every spelling and kind, where nothing but detectors stood.</p>'
    return bars(shares, "share of leaked secrets by how they were cut up") + note


def _ordinary(report: Report) -> str:
    rows = [
        (defence.value, *(report.false_denials(defence)[name] for name in ("texts", "denied", "redacted")))
        for defence in DEFENCES
    ]
    return table(("defence", "texts", "denied", "redacted"), rows) + (
        f"<p>{escape(report.steps_words())}.</p>"
    )


def _matching(report: Report) -> str:
    counts = report.tally.matching
    return (
        f"<p>Requests that arrived: {counts['received']}. Sends on record: {counts['recorded']}. "
        f"Without a record: {counts['unrecorded']}. Never arrived: {counts['unseen']}.</p>"
    )
