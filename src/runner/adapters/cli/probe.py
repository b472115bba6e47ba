# SPDX-License-Identifier: Apache-2.0
"""`akaion probe`: what a backend can be held to, tried out.

Owns the words of the report. Leaves asking to the runtime, whose every canary passes the gate and is on
record. What a server says of itself is printed inert.
"""

from typing import Annotated, Any, Final

import anyio
import typer
from rich.text import Text

from runner.adapters.cli.exits import Status
from runner.adapters.cli.profiles import DEFAULT, JsonOption, ProfileOption, SetOption
from runner.adapters.cli.progress import progress_on
from runner.adapters.cli.run import BackendOption, QuietOption, opened
from runner.adapters.cli.screen import errors, output, print_facts, print_json, print_line, print_table
from runner.agent.steps import Event
from runner.kernel.capabilities import Capabilities, Mechanism, Standing, tiers_for
from runner.kernel.language import how_many
from runner.kernel.tiers import Tier, tiers_from
from runner.perimeter.probing import Probe

_STYLES: Final = {
    Standing.ENFORCED: "green",
    Standing.IGNORED: "bold red",
    Standing.REFUSED: "yellow",
    Standing.UNVERIFIED: "dim",
}
_MEANS: Final = {
    Standing.ENFORCED: "held, twice, to what nothing else brings about",
    Standing.IGNORED: "accepted, and not done",
    Standing.REFUSED: "the server says no",
    Standing.UNVERIFIED: "no answer that says anything",
}


def probe(
    *,
    profile: ProfileOption = DEFAULT,
    backend: BackendOption = None,
    forms: Annotated[
        bool,
        typer.Option("--forms", help="Try the forms of the protocol that the runner never uses."),
    ] = False,
    as_json: JsonOption = False,
    settings: SetOption = None,
    quiet: QuietOption = False,
) -> None:
    """Find out what a backend can be held to, by trying it.

    Sends at most five short questions without content, of 64 generated tokens in all; each is on record. A
    server that accepts a constraint and ignores it shows here. The exit status is 1 when the mechanism that
    the runner uses is not enforced; it then works on what the model writes as text.
    """
    progress = progress_on(errors(), quiet=quiet)
    with opened(profile, backend, settings, progress, matter=None) as runtime:
        name = runtime.config.inference.prefer
        with progress:
            progress.on_event(Event(kind="thinking", text=f"probing {name}"))
            came = anyio.run(lambda: runtime.probe(name, forms=forms))
        inference = runtime.config.inference
        asked = inference.remote if name == "remote" else inference.local
        facts = {"profile": profile, "backend": name, "model": "" if asked is None else asked.model}
        fixed = "" if asked is None or asked.tier == "auto" else asked.tier
    trace = str(runtime.trace_path)
    if as_json:
        print_json({**facts, **_data(came, forms=forms), "trace": trace})
    else:
        _show(facts, came, forms=forms, fixed=fixed, trace=trace)
    if not forms and not _is_held(came.capabilities):
        raise typer.Exit(Status.FAILED)


def _is_held(found: Capabilities) -> bool:
    return found.uses is not None and found[found.uses] is Standing.ENFORCED


def _data(came: Probe, *, forms: bool) -> dict[str, Any]:
    """Return the report as JSON. Tiers follow from the mechanisms in use, so `--forms` has none."""
    found = came.capabilities
    seen = found.facts.fingerprint
    return {
        "uses": found.uses,
        "mechanisms": {each.value: found[each].value for each in Mechanism if each in found.standings},
        "ignores": [each.value for each in found.ignores],
        "tiers": None if forms else [tier.value for tier in tiers_for(found)],
        "thinking": found.thinking.value,
        "tools_with_format": found.tools_with_format.value,
        "context": found.context,
        "claims": list(found.facts.claims),
        "fingerprint": {"build": seen.build, "model": seen.model, "template": seen.template},
        "keeps": seen.known,
        "answered": came.answered,
        "denied": came.denied,
        "requests": came.requests,
        "tokens": came.tokens,
        "most_tokens": came.most_tokens,
    }


def _show(facts: dict[str, str], came: Probe, *, forms: bool, fixed: str, trace: str) -> None:
    console, found = output(), came.capabilities
    rows = [
        (
            Text(found[each].value, style=_STYLES[found[each]]),
            f"{each.value}{' (in use)' if each is found.uses else ''}",
            _MEANS[found[each]],
        )
        for each in Mechanism
        if each in found.standings
    ]
    if came.denied:
        print_line(
            console, f"The backend was not asked: the perimeter denied it ({came.denied}).", "bold red"
        )
    elif came.requests and not came.answered:
        print_line(console, "The backend did not answer: is it running at the endpoint named?", "bold red")
    if rows:
        print_table(console, ("", "mechanism", "seen"), rows)
    elif not came.denied:
        print_line(console, "Nothing could be asked, or another runtime answered half way.", "bold red")
    print_facts(console, _summary(facts, came, forms=forms, fixed=fixed, trace=trace))


def _summary(
    facts: dict[str, str], came: Probe, *, forms: bool, fixed: str, trace: str
) -> list[tuple[str, str]]:
    found, seen = came.capabilities, came.capabilities.facts.fingerprint
    ignored = ", ".join(each.value for each in found.ignores)
    tiers = ", then ".join(tier.value for tier in tiers_for(found))
    if fixed:
        tiers = f"{', then '.join(tiers_from(Tier(fixed)))} (set in the profile)"
    asked = how_many(came.requests, "request")
    parts = {"build": seen.build, "model": seen.model, "template": seen.template}
    unsaid = " and ".join(name for name, value in parts.items() if not value)
    return [
        ("Backend", f"{facts['backend']}, {facts['model']}"),
        ("Ignores", ignored or "nothing that was tried"),
        *([] if forms else [("Tiers", tiers)]),
        ("Thinks", found.thinking.value),
        ("Context", f"{found.context} tokens" if found.context else "not said"),
        ("Claims", ", ".join(found.facts.claims) or "nothing"),
        ("Build", seen.build or "not said"),
        ("Kept", f"no: its {unsaid} cannot be read" if unsaid else "until build, model or template change"),
        ("Cost", f"{asked}, {how_many(came.tokens, 'token')}, at most {came.most_tokens}"),
        ("Record", trace),
    ]
