# SPDX-License-Identifier: Apache-2.0
"""`akaion evidence`: a pack that answers a data protection officer, and the checking of one.

Owns the command. What a pack holds is `runner.adapters.ledger`'s. Carries I12: no content goes into a pack
unless it is given by `--with-content`, and then only what the record committed to.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import count
from pathlib import Path
from typing import Annotated, Final

import typer

from runner.adapters.cli.exits import Status
from runner.adapters.cli.profiles import DEFAULT, JsonOption, ProfileOption, assumed_in_words, inspect
from runner.adapters.cli.screen import errors, output, print_facts, print_json, print_line
from runner.adapters.cli.verified import (
    FolderOption,
    PinOption,
    SinceOption,
    UntilOption,
    WitnessOption,
    open_book,
    own_pin,
    plain_files,
    print_verdict,
    the_run,
    verdict_data,
    wanted,
)
from runner.adapters.cli.work import meter
from runner.adapters.ledger.book import Entry, Ledger
from runner.adapters.ledger.checking import Checked, check_pack
from runner.adapters.ledger.content import Disclosure, commitments, disclose, read_texts, tried
from runner.adapters.ledger.material import Given, Selection
from runner.adapters.ledger.pack import Files, build, fingerprint, gather, read_pack, write_pack
from runner.adapters.ledger.select import Wanted, wanted_runs
from runner.adapters.ledger.words import LANGUAGES, Language
from runner.assembly import construct
from runner.capability.transport.salts import read_salts
from runner.kernel.canonical import canonical_bytes
from runner.perimeter.grants import policy_document


class LanguageName(StrEnum):
    """In which language the page is."""

    IT = "it"
    EN = "en"
    BOTH = "both"


_LANGUAGES: Final[Mapping[LanguageName, tuple[Language, ...]]] = {
    LanguageName.IT: ("it",),
    LanguageName.EN: ("en",),
    LanguageName.BOTH: LANGUAGES,
}


NOT_SHOWN: Final = "that no other task or probe belongs here: a pack cannot show that, only the book"


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What a pack is asked to be."""

    profile: str
    folder: Path | None
    pin: Path | None
    witnesses: Sequence[Path]
    task: Sequence[str]
    period: Wanted
    language: LanguageName
    content: Path | None
    whole: bool
    policy: bool
    earlier: Sequence[Path]


def evidence(
    *,
    profile: ProfileOption = DEFAULT,
    folder: FolderOption = None,
    pin: PinOption = None,
    witness: WitnessOption = None,
    task: Annotated[
        list[str] | None, typer.Option("--task", help="A task, by its id or its beginning. Repeatable.")
    ] = None,
    since: SinceOption = None,
    until: UntilOption = None,
    target: Annotated[
        Path | None, typer.Option("--output", "-o", help="Where to write the pack: a new folder, or a .zip.")
    ] = None,
    language: Annotated[LanguageName, typer.Option("--language", help="Of the page.")] = LanguageName.BOTH,
    with_content: Annotated[
        Path | None,
        typer.Option(
            "--with-content", metavar="FOLDER", help="Disclose what in here the record committed to."
        ),
    ] = None,
    whole_logs: Annotated[bool, typer.Option("--whole-logs", help="Enclose the logs, entire.")] = False,
    policy: Annotated[bool, typer.Option(help="Enclose the policy, if it was in force.")] = True,
    earlier_policy: Annotated[
        list[Path] | None,
        typer.Option(
            "--earlier-policy",
            exists=True,
            dir_okay=False,
            callback=plain_files,
            help="A policy that was in force before, as `akaion policy export` printed it. Repeatable.",
        ),
    ] = None,
    check: Annotated[
        Path | None, typer.Option("--check", metavar="PACK", help="Check a pack instead of making one.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Make a pack of evidence of some runs, or check one.

    The pack holds a proof of each line, one page and a summary drawn from them. It is input for a data
    protection officer and no legal advice. Without --with-content it holds no content. The exit status of
    making one is the verifier's on the whole book; of checking, 0 for a pack that holds. That needs a pin.
    """
    if check is not None:
        _check(check, pin, profile, as_json=as_json)
        return
    if target is None:
        raise typer.BadParameter("say where to write the pack", param_hint="--output")
    if bool(task) is bool(since or until):
        raise typer.BadParameter("name tasks, or a time with --since and --until", param_hint="--task")
    asked = Asked(
        profile=profile,
        folder=folder,
        pin=pin,
        witnesses=witness or (),
        task=task or (),
        period=wanted(since, until),
        language=language,
        content=with_content,
        whole=whole_logs,
        policy=policy,
        earlier=earlier_policy or (),
    )
    _make(asked, target, as_json=as_json)


def _make(asked: Asked, target: Path, *, as_json: bool) -> None:
    ledger = open_book(asked.profile, asked.folder, asked.pin, asked.witnesses)
    if not ledger.verdict.holds:
        if as_json:
            print_json({"pack": None, **verdict_data(ledger.verdict)})
        else:
            print_verdict(ledger.verdict)
            print_line(
                errors(), "no pack was made: nothing in a book that does not verify is evidence", "red"
            )
        raise typer.Exit(ledger.verdict.exit)
    files, lines, disclosed = _files(asked, ledger)
    matched = {} if asked.content is None else tried(asked.content, disclosed)
    write_pack(files, target)
    facts = {
        "pack": str(target),
        "fingerprint": fingerprint(files),
        "files": len(files),
        "lines": lines,
        "disclosed": len(disclosed),
    }
    if as_json:
        print_json({**facts, "matched": matched, **verdict_data(ledger.verdict)})
    else:
        print_verdict(ledger.verdict)
        print_facts(output(), [(name.capitalize(), str(value)) for name, value in facts.items()])
        for name, how in matched.items():
            print_line(output(), f"{name}: matched: {how}")
    if ledger.verdict.exit:
        raise typer.Exit(ledger.verdict.exit)


def _files(asked: Asked, ledger: Ledger) -> tuple[Files, int, tuple[Disclosure, ...]]:
    """Return the files of the pack, how many lines are in it, and the disclosed contents."""
    gathered = gather(ledger, _selection(asked, ledger), whole=asked.whole)
    disclosed = _disclosed(asked, gathered.lines)
    given = Given(
        verdict=ledger.verdict.report,
        selection=_selection(asked, ledger),
        languages=_LANGUAGES[asked.language],
        policies=tuple(_policies(asked)),
        disclosed=disclosed,
    )
    return build(gathered, given, ledger.pin), len(gathered.lines), disclosed


def _selection(asked: Asked, ledger: Ledger) -> Selection:
    if not asked.task:
        return Selection(since_us=asked.period.since_us, until_us=asked.period.until_us)
    runs = wanted_runs(ledger, Wanted())
    return Selection(tasks=tuple(sorted({the_run(runs, each).task for each in asked.task})))


def _policies(asked: Asked) -> set[bytes]:
    """Return the policies to enclose, as `akaion policy export` prints them; raise `typer.BadParameter`."""
    runtime = construct(asked.profile, to_read=True, assume=True)
    own = () if runtime.assumed or not asked.policy else (policy_document(runtime.policy),)
    found = {canonical_bytes(each) + b"\n" for each in own}
    for remark in assumed_in_words(runtime) if asked.policy else ():
        print_line(errors(), f"{remark}, so this policy is not enclosed: give it with --earlier-policy")
    for file in asked.earlier:
        line = file.read_bytes()
        try:
            exported = canonical_bytes(json.loads(line)) + b"\n" == line
        except (ValueError, RecursionError):
            exported = False
        if not exported:
            raise typer.BadParameter(
                f"{file} is no file that `akaion policy export` made", param_hint="--earlier-policy"
            )
        found.add(line)
    return found


def _disclosed(asked: Asked, lines: Sequence[Entry]) -> tuple[Disclosure, ...]:
    """Return the content that was given and that the lines commit to; nothing where none was given."""
    if asked.content is None:
        return ()
    sought = {commit for line in lines for _, commit in commitments(line)}
    salts = read_salts(inspect(asked.profile).places.salts, sought)
    return disclose(lines, salts, read_texts(asked.content))


def _check(pack: Path, pin: Path | None, profile: str, *, as_json: bool) -> None:
    files = read_pack(pack)
    proofs = sum(name.startswith("proofs/") for name in files)
    checked = count(1)
    with own_pin(profile, pin) as given:
        if given is None:
            raise typer.BadParameter("no pin was given: --pin FILE", param_hint="--pin")
        with meter(errors(), "checking proofs") as tell:
            found = check_pack(files, given, lambda: tell(next(checked), proofs))
    print_name = None if found.problems else fingerprint(files)
    if as_json:
        facts = {"pack": str(pack), "holds": not found.problems, "problems": list(found.problems)}
        facts |= {"fingerprint": print_name, "lines": found.lines, "doubts": list(found.doubts)}
        by_maker = {"verdict": found.verdict, "anchors": found.anchors}
        print_json({**facts, "by_maker": by_maker, "not_shown": [NOT_SHOWN]})
    else:
        for problem in found.problems:
            print_line(output(), problem, "red")
        word = "the pack does not hold" if found.problems else "the pack holds"
        doubts = [("Doubts", ", ".join(found.doubts))] if found.doubts else []
        known = [] if print_name is None else [("Fingerprint", print_name)]
        facts_shown = [("Lines", str(found.lines)), *known, *doubts]
        print_facts(output(), [("Result", word), *facts_shown, *_by_maker(found)])
    if found.problems:
        raise typer.Exit(Status.FAILED)


def _by_maker(found: Checked) -> list[tuple[str, str]]:
    """Return what stands in a pack and was not checked."""
    not_shown = ("Not shown", NOT_SHOWN)
    if found.verdict is None:
        return [not_shown]
    anchors = "no anchor" if not found.anchors else f"anchors: {found.anchors}"
    said = f"{found.verdict} on the whole book, {anchors}: only the book shows it"
    return [("Its maker says", said), not_shown]
