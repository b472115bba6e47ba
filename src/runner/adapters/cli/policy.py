# SPDX-License-Identifier: Apache-2.0
"""`akaion policy`: what a profile permits, what a change opens, and what would become of one call.

Owns the display. Leaves deciding to the policy kernel and its neighbours in the perimeter. Runs nothing,
opens nothing and asks nobody.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Final, assert_never

import typer

from runner.adapters.cli.afterwards import refusal
from runner.adapters.cli.codes import print_legend
from runner.adapters.cli.exits import Status
from runner.adapters.cli.profiles import (
    DEFAULT,
    Inspected,
    JsonOption,
    ProfileOption,
    assumed_in_words,
    check_matter,
    inspect,
)
from runner.adapters.cli.screen import output, print_facts, print_json, print_line
from runner.assembly import Runtime, construct, rules_for
from runner.kernel.decisions import Allow, Ask, Deny, ToolVerdict
from runner.kernel.errors import ConfigError, Mistake
from runner.kernel.labels import Label
from runner.kernel.messages import Block, BlockKind, JsonObject, ToolCall
from runner.kernel.web import USUAL_PORTS, Url, parse_url, place_of
from runner.perimeter.grants import policy_document
from runner.perimeter.known import Known
from runner.perimeter.lint import Finding, lint
from runner.perimeter.logins import login_place
from runner.perimeter.loosened import login_in_words
from runner.perimeter.policy import NOT_NAMED, ToolGrant, decide, needs_a_person
from runner.perimeter.trace.commit import policy_digest
from runner.perimeter.validate import fits
from runner.perimeter.widening import Permissions, newly_permitted, no_longer_permitted

app: Final = typer.Typer(
    help="Read what a profile permits: nothing is run, opened or asked.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


_USUAL: Final = (
    "write https:// and the host in lower case, with no user, space or letter beyond ASCII, and a plain path"
)


@app.command(epilog="Example:  akaion policy check studio.yaml")
def check(
    file: Annotated[str, typer.Argument(help="A YAML file, or the name of a shipped profile.")],
    *,
    as_json: JsonOption = False,
) -> None:
    """Say what in a right profile is hardly meant: folders that are too wide, grants that never work.

    What is wrong in a profile is an error with its line, as in `akaion profile check`. The exit status is 0
    without a finding, else 1.
    """
    runtime, read = construct(file, to_read=True, assume=True), inspect(file)
    homes = [str(Path.home().resolve())]
    found = [_as_mistake(each, read) for each in lint(runtime.config, runtime.policy, homes=homes)]
    missing, remarks = runtime.missing_paths(), list(assumed_in_words(runtime))
    if as_json:
        data = [
            {"line": each.line, "where": each.where, "means": each.problem, "fix": each.fix} for each in found
        ]
        lacking = [str(each) for each in missing]
        told = {"digest": _digest(runtime), "findings": data, "missing": lacking, "remarks": remarks}
        print_json(told)
    for remark in () if as_json else remarks:
        print_line(output(), remark)
    for each in () if as_json else (*found, *missing):
        print_line(output(), str(each), "yellow")
    if not as_json and not found and not missing and not remarks:
        print_line(output(), "nothing to remark")
    if found or missing:
        raise typer.Exit(Status.FAILED)


@app.command(epilog="Example:  akaion policy diff signed.yaml proposed.yaml")
def diff(
    old: Annotated[str, typer.Argument(help="The profile as it was: a YAML file, or a shipped one.")],
    new: Annotated[str, typer.Argument(help="The profile as it would be.")],
    *,
    exit_code: Annotated[
        bool, typer.Option("--exit-code", help="End with 1 when something is newly permitted.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Say in words what a changed profile newly permits, and what it no longer does.

    A change that only narrows permits nothing new. Budgets and the choice of the local model permit nothing
    by themselves and are not compared.
    """
    was, now = (construct(name, to_read=True, assume=True) for name in (old, new))
    before, after = _permissions(was), _permissions(now)
    remarks = list(dict.fromkeys((*assumed_in_words(was), *assumed_in_words(now))))
    opened, closed = newly_permitted(before, after), no_longer_permitted(before, after)
    if as_json:
        told = {"newly_permitted": list(opened), "no_longer": list(closed), "remarks": remarks}
        print_json({"digests": {"old": _digest(was), "new": _digest(now)}, **told})
    else:
        for remark in remarks:
            print_line(output(), remark)
        _print_changes("Newly permitted", opened)
        _print_changes("No longer permitted", closed)
    if exit_code and opened:
        raise typer.Exit(Status.FAILED)


@app.command(epilog="""Example:  akaion policy explain read_file '{"path": "Studio/rossi.md"}'""")
def explain(
    tool: Annotated[str, typer.Argument(help="The name of a tool.")],
    arguments: Annotated[str, typer.Argument(help="Its arguments, as a JSON object.")] = "{}",
    *,
    profile: ProfileOption = DEFAULT,
    matter: Annotated[str | None, typer.Option("--matter", help="The matter of the task, if any.")] = None,
    said: Annotated[str, typer.Option("--said", help="What the user's task says, word for word.")] = "",
    as_json: JsonOption = False,
) -> None:
    """Say what would become of one call, without running it: allow, ask or deny, by which rule, and why.

    What a task has read may deny a call that this allows, or vouch for one that this asks about. The exit
    status is 0 for allow and ask, 4 for deny.
    """
    runtime = construct(profile, to_read=True, assume=True)
    policy = runtime.policy
    origin = Block(id="b0", kind=BlockKind.GOAL, text="", label=Label())
    call = ToolCall(tool=tool, arguments=_parse_arguments(arguments), origin=origin)
    known = Known(said=said)
    check_matter(matter, policy.matters)
    verdict = decide(policy, call, frozenset(filter(None, [matter])), known)
    word, why = _in_words(verdict)
    if isinstance(verdict, Ask) and verdict.rule == NOT_NAMED:
        why = f"{why}: nobody named {', '.join(needs_a_person(policy, call, known))}"
    if isinstance(verdict, Deny) and verdict.rule == "arguments-invalid":
        why = "; ".join((why, *_misfits(call.arguments, policy.grants[tool].parameters)))
    if isinstance(verdict, Deny) and verdict.rule == "argument-outside-grant":
        why = "; ".join((why, *_why_no_page(policy.grants[tool], call)))
    if tool in runtime.assumed:
        why = f"{why}; {tool} is a tool of the program's own: its arguments are not known here"
    rule, found = verdict.rule, None
    if not isinstance(verdict, Deny):
        read = inspect(profile)
        rules = rules_for(read.config, read.source, ())
        found = refusal(policy.grants[tool], call, read.config.perimeter.ceiling, rules)
        why = "; ".join((why, *_as_whom(policy.grants[tool], call)))
    if found is not None:
        word, rule, why = "deny", *found
    if as_json:
        print_json({"tool": tool, "decision": word, "rule": rule, "why": why})
    else:
        print_facts(output(), [("Decision", word), ("Rule", rule), ("Why", why)])
        print_legend(output(), [why])
    if word == "deny":
        raise typer.Exit(Status.REFUSED)


@app.command(epilog="Example:  akaion policy export > policy.json")
def export(*, profile: ProfileOption = DEFAULT) -> None:
    """Print the policy as the one line whose digest stands in the header of every log. It is JSON itself.

    The digest is SHA-256 of `akaion-policy/1`, a zero byte, and this line without its end. It names the
    arguments of every granted tool: a profile that grants a tool of a program's own has none here.
    """
    runtime = construct(profile, to_read=True, assume=True)
    if runtime.assumed:
        raise ConfigError([_not_exported(runtime.assumed, inspect(profile))])
    document = policy_document(runtime.policy)
    print_line(output(), json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False))


def _not_exported(tools: Sequence[str], read: Inspected) -> Mistake:
    """Return why the policy of a profile that grants `tools` of a program's own is not printed."""
    where = ("policy", "grants")
    return Mistake(
        file=read.source.file,
        line=read.source.line(where),
        where=".".join(where),
        problem=f"its digest names the arguments of {', '.join(tools)}, which only the program knows",
        fix="in the program, print runner.perimeter.grants.policy_document(runtime.policy) as JSON",
    )


def _permissions(runtime: Runtime) -> Permissions:
    return Permissions(config=runtime.config, policy=runtime.policy)


def _digest(runtime: Runtime) -> str | None:
    """Return the digest that a log's header would name; None where a tool's arguments are not known here."""
    return None if runtime.assumed else policy_digest(policy_document(runtime.policy))


def _parse_arguments(text: str) -> JsonObject:
    """Return the arguments; raise `typer.BadParameter` for what is no JSON object."""
    try:
        value: Any = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        said = """write a JSON object, such as '{"path": "Studio"}'"""
        raise typer.BadParameter(said, param_hint="ARGUMENTS")
    return value


def _as_mistake(finding: Finding, read: Inspected) -> Mistake:
    """Return `finding` with its place in the profile, in the one form in which both are told."""
    where = ".".join(map(str, finding.where))
    line = read.source.line(finding.where)
    return Mistake(file=read.source.file, line=line, where=where, problem=finding.means, fix=finding.fix)


def _misfits(arguments: JsonObject, schema: JsonObject) -> Iterator[str]:
    """Yield which arguments are missing, unknown or wrong. Unknown names are what the user just typed."""
    known: Any = schema.get("properties", {})
    required: Any = schema.get("required", ())
    wrong = [name for name in arguments if name in known and not fits(arguments[name], known[name])]
    for word, names in (
        ("missing", [name for name in required if name not in arguments]),
        ("unknown", [name for name in arguments if name not in known]),
        ("of a wrong form", wrong),
    ):
        if names:
            yield f"{word}: {', '.join(names)}"


def _why_no_page(grant: ToolGrant, call: ToolCall) -> Iterator[str]:
    """Yield why the address of `call` lies outside `grant`, for a tool that asks for pages."""
    if grant.url_argument is None:
        return
    url = parse_url(str(call.arguments.get(grant.url_argument)))
    if url is None:
        yield f"the address is unusual: {_USUAL}"
    elif url.scheme == "http" and place_of(replace(url, scheme="https", port=_secure(url)), grant.places):
        yield "http is not granted there: write https, which nobody on the way can read"
    else:
        yield f"pages are asked for at {', '.join(map(login_in_words, grant.places)) or 'no host'}"


def _secure(url: Url) -> int:
    return USUAL_PORTS["https"] if url.port == USUAL_PORTS["http"] else url.port


def _as_whom(grant: ToolGrant, call: ToolCall) -> Iterator[str]:
    """Yield with which credential the page of `call` is asked for, where the hosts of `grant` have one."""
    logins = {place: place.login.credential for place in grant.places if place.login is not None}
    if not logins or grant.url_argument is None:
        return
    url = parse_url(str(call.arguments.get(grant.url_argument)))
    place = None if url is None else login_place(logins, url)
    yield "no credential is sent" if place is None else f"it is asked for with the credential {logins[place]}"


def _in_words(verdict: ToolVerdict) -> tuple[str, str]:
    match verdict:
        case Allow():
            return "allow", "a grant covers it"
        case Ask():
            return "ask", "a person is asked about exactly these arguments"
        case Deny():
            return "deny", verdict.hint
        case _:
            assert_never(verdict)


def _print_changes(title: str, sentences: tuple[str, ...]) -> None:
    print_line(output(), f"{title}:", "bold")
    for sentence in sentences or ("nothing",):
        print_line(output(), f"  {sentence}")
