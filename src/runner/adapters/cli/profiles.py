# SPDX-License-Identifier: Apache-2.0
"""Which profile a command speaks of, and what it says.

Owns the `--profile` option and the reading of a profile by commands that inspect it without opening it.
Leaves judgement to `parse_config` and opening to `runner.assembly`. Carries I6.
"""

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from runner.assembly import Places, Runtime, construct, places_of
from runner.capability.profile import ProfileSource, read_profile
from runner.kernel.config import Config, parse_config
from runner.kernel.errors import ConfigError

DEFAULT: Final = "detached"
VARIABLE: Final = "AKAION_PROFILE"

ProfileOption = Annotated[
    str,
    typer.Option(
        "--profile",
        "-p",
        envvar=VARIABLE,
        help="A shipped profile (detached, attached, appliance) or a YAML file.",
    ),
]
SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Override one key of the profile for this run, such as budget.seconds=120. Repeatable.",
    ),
]
MatterOption = Annotated[
    str | None,
    typer.Option("--matter", help="The client matter, as a grant names it: the folders of others stay shut."),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object on standard output.")]


def check_matter(matter: str | None, known: AbstractSet[str]) -> None:
    """Raise `typer.BadParameter` for a `matter` that is none of `known`, those that grants name."""
    if matter is not None and matter not in known:
        named = ", ".join(sorted(known)) or "none"
        raise typer.BadParameter(
            f"no grant names this matter; those it names: {named}", param_hint="--matter"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Inspected:
    """A profile that was read and judged, but not opened: nothing was made on the disk."""

    config: Config
    source: ProfileSource
    places: Places

    def resolve(self, path: str) -> Path:
        """Return `path` as the runtime would; as it is written if that is none, which a check then says."""
        try:
            return self.source.resolve(path, ())
        except ConfigError:
            return Path(path)


def parse_settings(settings: Sequence[str]) -> dict[str, Any]:
    """Return `--set` options as the nested sections they override; values are read as YAML.

    Raises `typer.BadParameter` for one that is not KEY=VALUE with a dotted key.
    """
    sections: dict[str, Any] = {}
    for setting in settings:
        key, equals, text = setting.partition("=")
        *parents, last = key.split(".")
        if not equals or not parents or not all((*parents, last)):
            raise typer.BadParameter("write it as section.key=value", param_hint="--set")
        try:
            value = YAML(typ="safe", pure=True).load(text)
        except (YAMLError, ValueError, RecursionError, OverflowError):
            raise typer.BadParameter(f"the value of {key} is not YAML", param_hint="--set") from None
        section = sections
        for parent in parents:
            section = section.setdefault(parent, {})
            if not isinstance(section, dict):
                raise typer.BadParameter(f"{key} lies below a key that is set too", param_hint="--set")
        section[last] = value
    return sections


def inspect(named: str) -> Inspected:
    """Return what the profile `named` says; raise `ConfigError` with every mistake."""
    source = read_profile(named, {})
    config = parse_config(source.data, file=source.file, locate=source.line)
    return Inspected(config=config, source=source, places=places_of(config, source))


def missing_for(named: str) -> Sequence[str]:
    """Return everything that the profile `named` lacks on this machine though it is right.

    The runtime is constructed, which compiles its policy and finds its credential, and never entered, which
    would make files. Raises `ConfigError` with the mistakes.
    """
    runtime = construct(named, assume=True)
    mistakes = [*runtime.missing_paths(), *filter(None, [runtime.missing_sandbox()]), *runtime.bare_logins()]
    return [*runtime.missing_weights(), *(f"{mistake}." for mistake in mistakes)]


def assumed_in_words(runtime: Runtime) -> Iterator[str]:
    """Yield what must be said of each tool that is not here and was taken for a program's own."""
    for tool in runtime.assumed:
        yield f"{tool}: a tool of the program's own; its arguments are not known here"


def classifier_words(config: Config) -> str:
    """Return who judges beside the rules, in plain words."""
    model = config.opinion
    if model is None:
        return "rules only"
    where = "in this process" if model.endpoint is None else f"at {model.endpoint}"
    remote = config.inference.remote
    when = "about what would leave" if remote is not None else "about nothing: there is no remote backend"
    return f"rules, and {model.model} {where} as second opinion, asked {when}"
