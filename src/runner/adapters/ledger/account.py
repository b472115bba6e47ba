# SPDX-License-Identifier: Apache-2.0
"""What a data protection officer is told of some runs: statements, each with the lines it rests on.

Owns which statements there are, section by section. Pure: the same lines give the same account. What no
record can say (purposes, the country of a recipient, how long records are kept) is a statement to be
completed by hand, and marked so. Carries I12: values are words of the profile and the format, and numbers.
"""

from collections.abc import Iterator, Sequence

from runner.adapters.ledger.articles import affected, art30, art33, art35
from runner.adapters.ledger.run import Run
from runner.adapters.ledger.select import shown_moment
from runner.adapters.ledger.statements import Account, Material, Statement, Story, is_whole, nothing


def account(material: Material) -> Account:
    """Return everything that is said of `material`."""
    entries = material.entries
    story = Story(entries, material.backends)
    left = [each for each in story.sends() if each.values["locality"] == "remote"]
    return {
        "asked": tuple(_asked(material.runs)),
        "read": tuple(story.read()),
        "written": tuple(story.written()) or (nothing("nothing_written", material),),
        "left": tuple(left) or (nothing("nothing_left", material),),
        "stayed": tuple(each for each in story.sends() if each.values["locality"] != "remote"),
        "denied": tuple(story.denied()) or (nothing("nothing_denied", material),),
        "lowered": tuple(story.lowered()) or (nothing("nothing_lowered", material),),
        "approved": tuple(story.approved()) or (nothing("nobody_asked", material),),
        "affected": tuple(affected(material, story)),
        "art30": tuple(art30(material, story)),
        "art35": tuple(art35(material, story)),
        "art33": tuple(art33(material, story)),
    }


def _asked(runs: Sequence[Run]) -> Iterator[Statement]:
    for run in runs:
        values: dict[str, str | int] = {
            "time": shown_moment(run.start_us),
            "class": run.goal_class,
            "task": run.task,
            "outcome": run.outcome,
            "end": "" if run.end_us is None else shown_moment(run.end_us),
        }
        code = "asked_open" if run.end_us is None else "asked"
        yield Statement(code=code, values=values, refs=((run.log, run.first), (run.log, run.last)))
        if run.matters:
            more: dict[str, str | int] = {"task": run.task, "matters": run.matters}
            yield Statement(code="matters", values=more, refs=((run.log, run.first),))
        if not is_whole(run):
            yield Statement(code="incomplete", values={"task": run.task}, refs=((run.log, run.last),))
