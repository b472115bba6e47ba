# SPDX-License-Identifier: Apache-2.0
"""`akaion profile check`: whether a profile is right, and what it says in short.

Owns the summary. Leaves the judgement to what judges a profile before a run (I6), by way of `profiles`.
"""

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Final

import typer

from runner.adapters.cli.exits import Status
from runner.adapters.cli.profiles import (
    Inspected,
    JsonOption,
    assumed_in_words,
    classifier_words,
    inspect,
    missing_for,
)
from runner.adapters.cli.screen import output, print_facts, print_json, print_line
from runner.assembly import construct, custody_of
from runner.kernel.config import Config, Grant, GrantedPath
from runner.kernel.errors import ConfigError
from runner.kernel.language import how_many
from runner.kernel.ports import Effect
from runner.perimeter.flows import SinkKind
from runner.perimeter.loosened import login_in_words, sink_in_words
from runner.perimeter.policy import Policy, ToolGrant

app: Final = typer.Typer(help="Check a profile before using it.", no_args_is_help=True, rich_markup_mode=None)


@app.callback()
def _profile() -> None:
    """Check a profile before using it."""


@app.command(epilog="Example:  akaion profile check studio.yaml")
def check(
    file: Annotated[str, typer.Argument(help="A YAML file, or the name of a shipped profile.")],
    *,
    as_json: JsonOption = False,
) -> None:
    """Judge a profile: print its limits in short, or every mistake with its line and fix.

    Nothing is opened, made or sent. The exit status is 0 for a right profile, else 2. What it lacks on this
    machine is a warning: without its weights `akaion run` ends with 1, without its folders with 2.
    """
    try:
        found = inspect(file)
        warnings = missing_for(file)
        runtime = construct(file, to_read=True, assume=True)
    except ConfigError as error:
        if not as_json:
            raise
        print_json({"ok": False, "mistakes": [_mistake_data(error, i) for i in range(len(error.mistakes))]})
        raise typer.Exit(Status.USAGE) from None
    remarks = list(assumed_in_words(runtime))
    if as_json:
        print_json({**_summary_data(found, warnings), "remarks": remarks})
        return
    print_facts(output(), _summary(found, runtime.policy))
    for remark in remarks:
        print_line(output(), f"Remark: {remark}")
    for warning in warnings:
        print_line(output(), f"Warning: {warning}", "yellow")


def _mistake_data(error: ConfigError, index: int) -> dict[str, Any]:
    mistake = error.mistakes[index]
    return {
        "file": mistake.file,
        "line": mistake.line,
        "where": mistake.where,
        "problem": mistake.problem,
        "fix": mistake.fix,
    }


def _summary(found: Inspected, policy: Policy) -> Iterator[tuple[str, str]]:
    config, inference = found.config, found.config.inference
    yield "Profile", f"{found.source.file}, based on {config.profile}"
    yield from _protection(config, policy)
    local, remote = inference.local, inference.remote
    if local is not None:
        yield "Local model", f"{local.model}, {local.endpoint or 'in this process'}"
    if remote is not None:
        yield "Remote model", f"{remote.model}, {remote.endpoint}, up to {remote.max_class or 'the ceiling'}"
    yield "Asked first", inference.prefer
    for grant in config.policy.grants:
        yield "Grant", _grant_words(grant, policy.grants[grant.tool])
    if not config.policy.grants:
        yield "Grant", "none: every tool is denied"
    budget = config.budget
    yield (
        "Budget",
        f"{how_many(budget.steps, 'tool call')}, {how_many(budget.tokens, 'token')}, {budget.seconds} s",
    )
    yield "Record", str(found.places.trace)
    yield "Device key", custody_of(found.config, found.places).place


def _protection(config: Config, policy: Policy) -> Iterator[tuple[str, str]]:
    """Yield what may leave, and everything that raises or lowers what protects the rest."""
    perimeter = config.perimeter
    yield "May leave", "; ".join(_leaving_words(config, policy))
    yield "Classifier", classifier_words(config)
    yield "Its faults", _FAULT_WORDS[perimeter.classifier_fault]
    yield "Redaction", _REDACTION_WORDS[perimeter.redaction]
    yield "Let go", _ASK_WORDS[perimeter.declassification]
    registers = perimeter.registers.model_dump(exclude_none=True)
    registers |= {"public_texts": perimeter.public_texts} if perimeter.public_texts else {}
    yield "Registers", ", ".join(f"{name}: {path}" for name, path in registers.items()) or "none"
    paths = [path for grant in config.policy.grants for path in grant.paths]
    yield "Matters", ", ".join(sorted({path.matter for path in paths if path.matter})) or "none"
    needed = perimeter.locality_required
    yield "Local grade", f"C2 needs {needed.c2}, C3 needs {needed.c3}"
    yield "Enforcement", perimeter.enforcement


_FAULT_WORDS: Final = {"deny": "stop the step", "as_c3": "count as C3, which stays here; local work goes on"}
_REDACTION_WORDS: Final = {
    "off": "off",
    "on": "on: what detectors find is replaced by tokens where it alone keeps a request from leaving",
}
_ASK_WORDS: Final = {"off": "nobody is asked", "ask": "a person may let C2 content of a task go"}


def _leaving_words(config: Config, policy: Policy) -> Iterator[str]:
    """Yield what may leave: the ceiling, the two ways in which C2 comes below it, and the ways out."""
    perimeter = config.perimeter
    if perimeter.ceiling is None:
        yield "nothing"
        return
    yield f"content up to class {perimeter.max_egress_class}"
    if perimeter.redaction == "on":
        yield "C2 content whose findings were replaced by tokens"
    if perimeter.declassification == "ask":
        yield "C2 content that a person lets go"
    tools = ", ".join(sorted(each.tool for each in policy.grants.values() if _leads_out(each)))
    if config.inference.remote is None:
        yield (
            f"there is no remote backend, but {tools} leads out"
            if tools
            else "but there is no remote backend"
        )
    elif tools:
        yield f"{tools} leads out too"


def _leads_out(grant: ToolGrant) -> bool:
    """Return whether a tool asks for pages somewhere, or its sink is the network."""
    sink = grant.flow.sink
    return bool(grant.places) or (
        sink is not None and sink.kind is SinkKind.NETWORK and grant.url_argument is None
    )


def _grant_words(grant: Grant, compiled: ToolGrant) -> str:
    paths = ", ".join(map(_path_words, grant.paths))
    asks = ", asks first" if grant.approval == "ask" else ""
    trusted = ", trusted" if grant.trusted else ""
    programs = "" if grant.commands is None else f"; programs: {', '.join(grant.commands) or 'none'}"
    free = ", NOT CONFINED" if grant.sandbox == "unrestricted" else ""
    reach = paths or ("" if compiled.url_argument is not None else "no folder")
    if compiled.url_argument is not None:
        reach += f"pages at {', '.join(map(login_in_words, compiled.places)) or 'no host'}"
    sink = sink_in_words(compiled.flow.sink)
    does = _EFFECT_WORDS[compiled.effect]
    if compiled.effect is Effect.HOST:
        does = f"{grant.access}, {does}"
    return f"{grant.tool}: {reach}{programs}{sink} [{does}{asks}{trusted}{free}]"


_EFFECT_WORDS: Final = {
    Effect.READ: "read",
    Effect.WRITE: "write",
    Effect.NET: "network",
    Effect.HOST: "the program's own",
    Effect.RUN: "read, by programs",
    Effect.RUN_FREE: "whatever its programs do",
}


def _path_words(entry: GrantedPath) -> str:
    words: list[str] = [entry.data_class or "C2 by default"]
    words += [] if entry.matter is None else [f"matter {entry.matter}"]
    words += ["redactable: C1 once nothing is found"] if entry.redactable else []
    return f"{entry.path} ({', '.join(words)})"


def _summary_data(found: Inspected, warnings: Sequence[str]) -> dict[str, Any]:
    return {
        "ok": True,
        "warnings": list(warnings),
        "file": found.source.file,
        "classifier": classifier_words(found.config),
        "trace": str(found.places.trace),
        "key": custody_of(found.config, found.places).place,
        "config": found.config.model_dump(mode="json", by_alias=True),
    }
