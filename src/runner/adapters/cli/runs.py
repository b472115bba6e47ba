# SPDX-License-Identifier: Apache-2.0
"""`akaion runs`: which runs a book tells of, one of them, two of them, and whether a backend has changed.

Owns the display. The verifier judges first, as a program of its own; its verdict stands above what is shown
and its number is the exit status. What it did not verify is never among the runs: it stands apart, and says
so. Carries I4 and I12: what is shown are ids, words of the profile, and numbers.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Final

import typer
from rich.text import Text

from runner.adapters.cli.codes import print_legend
from runner.adapters.cli.profiles import DEFAULT, JsonOption, ProfileOption
from runner.adapters.cli.screen import output, print_facts, print_json, print_line, print_table
from runner.adapters.cli.verified import (
    SHOWN,
    FolderOption,
    PinOption,
    SinceOption,
    UntilOption,
    WitnessOption,
    moment_option,
    open_book,
    print_verdict,
    the_run,
    verdict_data,
    wanted,
)
from runner.adapters.cli.work import lasted
from runner.adapters.ledger.book import Entry
from runner.adapters.ledger.drift import ALPHA, ENOUGH, Drift, Measure, drift
from runner.adapters.ledger.run import INTERRUPTED, OPEN, Run, answer_word
from runner.adapters.ledger.select import Wanted, shown_moment, wanted_runs
from runner.adapters.ledger.verdict import Verdict
from runner.kernel.language import how_many

_HEAD: Final = (
    "task",
    "started (UTC)",
    "took",
    "outcome",
    "model",
    "sends",
    "denied",
    "failures",
    "latency",
    "tokens",
)
_UNVERIFIED: Final = "NOT VERIFIED: this was read, nothing proves it"
_OUTCOMES: Final = ("done", "failed", "cancelled", "stopped", INTERRUPTED, OPEN)
_CAVEAT: Final = (
    "A run is one sample. A change of the work looks like a change of the backend: see the size of a request."
)
_US: Final = 1_000_000
_MINUTE_S: Final = 60

app: Final = typer.Typer(
    help="Read the verified runs of a record: list, show, compare, and see whether a backend has changed.",
    rich_markup_mode=None,
)


@app.callback(invoke_without_command=True, epilog="Example:  akaion runs --since 2026-11-01 --denied")
def runs(
    context: typer.Context,
    *,
    profile: ProfileOption = DEFAULT,
    folder: FolderOption = None,
    pin: PinOption = None,
    witness: WitnessOption = None,
    since: SinceOption = None,
    until: UntilOption = None,
    backend: Annotated[str, typer.Option("--backend", help="Only runs that asked this backend.")] = "",
    outcome: Annotated[str, typer.Option("--outcome", help="Only runs that ended so, or never did.")] = "",
    denied: Annotated[
        bool, typer.Option("--denied", help="Only runs in which something was denied.")
    ] = False,
    grep: Annotated[
        str, typer.Option("--grep", help="Only runs with this in an id or a word on record, in any case.")
    ] = "",
    as_json: JsonOption = False,
) -> None:
    """List the runs of a record. The exit status is that of the verifier.

    The record is verified first. What is not verified is not a run: it is listed apart and says so.
    """
    if context.invoked_subcommand is not None:
        _refuse_misplaced(context)
        return
    if outcome and outcome not in _OUTCOMES:
        raise typer.BadParameter(f"one of {', '.join(_OUTCOMES)}", param_hint="--outcome")
    asked = wanted(since, until, backend=backend, outcome=outcome, denied=denied, grep=grep)
    ledger = open_book(profile, folder, pin, witness)
    found = wanted_runs(ledger, asked)
    sure, unsure = _apart(found)
    if as_json:
        lists = {"runs": [run.data() for run in sure], "unverified": [run.data() for run in unsure]}
        print_json({"folder": str(ledger.folder), **verdict_data(ledger.verdict), **lists})
    else:
        print_verdict(ledger.verdict)
        _print_runs(sure, unsure)
    _leave(ledger.verdict)


@app.command(epilog="Example:  akaion runs show 597958de")
def show(
    task: Annotated[str, typer.Argument(help="The id of the task, or its beginning.")],
    *,
    profile: ProfileOption = DEFAULT,
    folder: FolderOption = None,
    pin: PinOption = None,
    witness: WitnessOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show one run: its facts, its sends, and what was decided in it."""
    ledger = open_book(profile, folder, pin, witness)
    run = the_run(wanted_runs(ledger, Wanted()), task)
    if as_json:
        sends = [{name: getattr(each, name) for name in type(each).__slots__} for each in run.sends]
        print_json({**verdict_data(ledger.verdict), "run": {**run.data(), "each_send": sends}})
    else:
        print_verdict(ledger.verdict)
        _print_run(run)
    _leave(ledger.verdict)


@app.command(epilog="Example:  akaion runs compare 597958de 16ed0012")
def compare(
    first: Annotated[str, typer.Argument(help="The id of a task, or its beginning.")],
    second: Annotated[str, typer.Argument(help="The id of another.")],
    *,
    profile: ProfileOption = DEFAULT,
    folder: FolderOption = None,
    pin: PinOption = None,
    witness: WitnessOption = None,
    as_json: JsonOption = False,
) -> None:
    """Put two runs side by side, and mark what is not the same in both."""
    ledger = open_book(profile, folder, pin, witness)
    found = wanted_runs(ledger, Wanted())
    one, other = (the_run(found, each) for each in (first, second))
    differs = [name for name, value in one.data().items() if other.data()[name] != value]
    if as_json:
        both = {"a": one.data(), "b": other.data()}
        print_json({**verdict_data(ledger.verdict), **both, "differs": differs})
    else:
        print_verdict(ledger.verdict)
        _print_unverified(one, other)
        sides = zip(_facts(one), _facts(other), strict=True)
        rows = [_marked((name, a, b, "" if a == b else "differs")) for (name, a), (_, b) in sides]
        print_table(output(), ("", one.task[:SHOWN], other.task[:SHOWN], ""), rows)
        _explain_cells(*rows)
    _leave(ledger.verdict)


@app.command(
    "list",
    hidden=True,
    context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
)
def list_command() -> None:
    """Say how runs are listed."""
    raise typer.BadParameter("`akaion runs` itself lists them: type it without `list`, options and all")


@app.command("drift", epilog="Example:  akaion runs drift --backend remote --at 2026-11-15")
def drift_command(
    *,
    profile: ProfileOption = DEFAULT,
    folder: FolderOption = None,
    pin: PinOption = None,
    witness: WitnessOption = None,
    backend: Annotated[str, typer.Option("--backend", help="Only this backend; all without it.")] = "",
    at: Annotated[
        str | None, typer.Option("--at", metavar="WHEN", help="Where the second window begins. UTC.")
    ] = None,
    since: SinceOption = None,
    until: UntilOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say whether a backend behaves otherwise than before: only by runs that are verified.

    Without --at the later half of its runs is held against the earlier one.
    """
    moment = None if at is None else moment_option(at, "--at")
    asked = wanted(since, until, backend=backend)
    ledger = open_book(profile, folder, pin, witness)
    sure, unsure = _apart(wanted_runs(ledger, asked))
    if backend and not sure and not unsure:
        there = ", ".join(_backends(_apart(wanted_runs(ledger, wanted(since, until)))[0])) or "none"
        raise typer.BadParameter(f"no backend {backend}; there are: {there}", param_hint="--backend")
    names = _backends(sure)
    chosen = [name for name in names if backend in {"", name}]
    found = [each for name in chosen if (each := drift(sure, name, moment)) is not None]
    if as_json:
        test = {"enough": ENOUGH, "alpha": ALPHA, "left_out": len(unsure)}
        print_json({**verdict_data(ledger.verdict), **test, "backends": [each.data() for each in found]})
    else:
        print_verdict(ledger.verdict)
        _print_drifts(found, len(unsure))
    _leave(ledger.verdict)


def _refuse_misplaced(context: typer.Context) -> None:
    """Raise `typer.BadParameter` for options before a command, which would otherwise be dropped silently."""
    sources = {name: context.get_parameter_source(name) for name in context.params}
    misplaced = [
        name for name, source in sources.items() if source is not None and source.name == "COMMANDLINE"
    ]
    if misplaced:
        raise typer.BadParameter(f"write options behind `{context.invoked_subcommand}`, not before it")


def _apart(found: Sequence[Run]) -> tuple[list[Run], list[Run]]:
    """Return the runs that are verified, and the others."""
    return [run for run in found if run.verified], [run for run in found if not run.verified]


def _backends(runs_of: Sequence[Run]) -> list[str]:
    return sorted({each.backend for run in runs_of for each in run.inferences})


def _leave(verdict: Verdict) -> None:
    """End with the exit status of the verifier."""
    if verdict.exit:
        raise typer.Exit(verdict.exit)


# --- display -------------------------------------------------------------------------------------


def _print_runs(sure: Sequence[Run], unsure: Sequence[Run]) -> None:
    proved, others = [list(map(_row, found)) for found in (sure, unsure)]
    if proved:
        print_table(output(), _HEAD, proved)
    if others:
        print_line(output(), _UNVERIFIED, "bold red")
        print_table(output(), _HEAD, others)
    _explain_cells(*proved, *others)
    if not sure and not unsure:
        print_line(output(), "no run is like that")


def _explain_cells(*rows: Sequence[Text | str]) -> None:
    """Print what the codes in the cells of `rows` mean."""
    print_legend(output(), (cell for row in rows for cell in row))


def _row(run: Run) -> list[Text | str]:
    outcome = Text(run.outcome, style="" if run.outcome == "done" else "yellow")
    return [
        run.task[:SHOWN],
        shown_moment(run.start_us),
        _took(run.duration_us),
        outcome,
        ", ".join(each.shown for each in run.backends),
        _sends(run),
        Text(str(run.denials or ""), style="bold red"),
        _words(run.data()["failures"]),
        _latency(run),
        _tokens(run),
    ]


def _print_unverified(*runs: Run) -> None:
    if not all(run.verified for run in runs):
        print_line(output(), _UNVERIFIED, "bold red")


def _print_run(run: Run) -> None:
    _print_unverified(run)
    facts = _facts(run)
    print_facts(output(), facts)
    print_line(output(), "On record", "bold")
    columns = ("seq", "time (UTC)", "kind", "decision", "class", "backend, tool", "why, how")
    tools = {each.word("call_id"): each.word("tool") for each in run.entries if each.kind == "tool_call"}
    steps = [_step(entry, tools) for entry in run.entries]
    print_table(output(), columns, steps)
    _explain_cells(*facts, *steps)


def _step(entry: Entry, tools: Mapping[str, str]) -> list[Text | str]:
    """Return the row of `entry`; `tools` are those that were called, by the id of the call."""
    decision = entry.word("decision") or entry.word("outcome") or entry.word("status")
    if entry.kind == "approval":
        decision = answer_word(granted=entry.is_set("granted"), by=entry.word("by"))
    why = [entry.word(name) for name in ("reason", "rule", "tier", "failure", "locality", "by")]
    why += [] if entry.verified else ["not verified"]
    style = "bold red" if decision in {"denied", "deny", "refused", "nobody to ask"} else ""
    return [
        str(entry.seq),
        shown_moment(entry.ts, fraction=True),
        entry.kind,
        Text(decision, style=style),
        entry.word("class"),
        entry.word("backend") or entry.word("tool") or tools.get(entry.word("call_id"), ""),
        ", ".join(filter(None, why)),
    ]


def _facts(run: Run) -> list[tuple[str, str]]:
    """Return what is to be said of a run, always the same names in the same order."""
    data = run.data()
    end = "not on record" if run.end_us is None else shown_moment(run.end_us)
    return [
        ("Task", run.task),
        ("Verified", "yes" if run.verified else "NO"),
        ("On record", f"log {run.log}, seq {run.first} to {run.last}"),
        ("Started", f"{shown_moment(run.start_us)} UTC"),
        ("Ended", end),
        ("Took", _took(run.duration_us)),
        ("Outcome", run.outcome),
        ("Class", f"{run.goal_class} as asked, {run.mark} at most"),
        ("Matters", str(run.matters)),
        ("Profile", run.profile),
        ("Policy", run.policy_digest),
        ("Configuration", run.config_digest),
        ("Prompts", run.prompts or "not on record"),
        ("Writer", run.writer),
        ("Model", ", ".join(f"{each.shown} ({each.locality})" for each in run.backends) or "none"),
        ("Latency", _latency(run) or "not on record"),
        ("Tokens", _tokens(run) or "not on record"),
        ("Sends", _sends(run) or "none"),
        ("Tools", _tools(run)),
        ("Denied", _words(run.denied) or "nothing"),
        ("Asked", _words(run.approvals) or "nobody"),
        ("Lowered", _words(run.lowered) or "nothing"),
        ("Failures", _words({**data["failures"], **data["faults"]}) or "none"),
        ("Tier falls", str(run.falls)),
    ]


def _tools(run: Run) -> str:
    """Return which tools ran, and those that were called and denied, or not approved."""
    ran = _words(run.tools) or "none"
    return f"{ran}; denied: {_words(run.denied_tools)}" if run.denied_tools else ran


def _marked(row: tuple[str, str, str, str]) -> list[Text | str]:
    name, one, other, mark = row
    return [Text(name, style="bold"), one, other, Text(mark, style="yellow")]


def _took(duration_us: int | None) -> str:
    if duration_us is None:
        return ""
    seconds = duration_us / _US
    return f"{seconds:.2f} s" if seconds < _MINUTE_S else lasted(seconds)


def _latency(run: Run) -> str:
    spread = run.data()["latency_us"]
    if not spread["n"]:
        return ""
    return f"{spread['median'] / 1000:.0f}/{spread['p95'] / 1000:.0f} ms (median/p95 of {spread['n']})"


def _tokens(run: Run) -> str:
    tokens = run.data()["tokens"]
    if tokens["in"] is None and tokens["out"] is None:
        return ""
    known = {side: "?" if count is None else count for side, count in tokens.items()}
    return f"{known['in']} in, {known['out']} out"


def _sends(run: Run) -> str:
    found = run.sends_by_class()
    return "; ".join(f"{where} {_words(classes)}" for where, classes in found.items())


def _words(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.items())


def _print_drifts(found: Sequence[Drift], left_out: int) -> None:
    for each in found:
        print_line(output(), f"{each.backend}: {each.finding}", "bold")
        print_line(output(), f"  second window from {shown_moment(each.at_us)} UTC")
        for change in each.changes:
            what = f"{change.what}: {change.before or 'none'} to {change.after or 'none'}"
            where = f"(task {change.task[:SHOWN]}, log {change.log}, seq {change.seq})"
            print_line(output(), f"  {what} {where}", "yellow")
        head = ("figure", "before", "runs", "after", "runs", "p", "finding")
        print_table(output(), head, (list(_measure(one)) for one in each.measures))
    if not found:
        print_line(output(), "no verified run asked a backend")
    if left_out:
        print_line(output(), f"{how_many(left_out, 'run')} not verified and left out", "bold red")
    compared = len(found[0].measures) if found else 1
    print_line(output(), f"{_CAVEAT} Changed: p below {ALPHA} / {compared} figures.", "dim")


def _measure(each: Measure) -> Iterator[Text | str]:
    yield f"{each.name} ({each.unit})"
    for value, count in ((each.before, each.before_n), (each.after, each.after_n)):
        yield "" if value is None else f"{value:.3g}" if each.unit == "share" else f"{value:.0f}"
        yield str(count)
    yield "" if each.p is None else f"{each.p:.2g}"
    few = f"too few: {ENOUGH} runs are needed on each side"
    style = "yellow" if each.finding == "changed" else ""
    yield Text(few if each.finding == "too few" else each.finding, style=style)
