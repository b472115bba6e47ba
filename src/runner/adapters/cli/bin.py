# SPDX-License-Identifier: Apache-2.0
"""`akaion bin`: what tools replaced or took away, and how to put it back.

Owns the display. Leaves files to the capability that writes them. Runs no task and asks no model: a person
does this.
"""

from collections.abc import Iterator
from typing import Annotated, Final

import typer

from runner.adapters.cli.profiles import DEFAULT, JsonOption, ProfileOption
from runner.adapters.cli.screen import output, print_json, print_line
from runner.assembly import construct
from runner.capability.tools.restoring import held_in, holds, restore
from runner.kernel.errors import ToolError
from runner.kernel.language import how_many
from runner.kernel.ports import Effect, Root

app: Final = typer.Typer(
    help="See and put back what tools replaced or took away.", no_args_is_help=True, rich_markup_mode=None
)


@app.command("list", epilog="Example:  akaion bin list --profile studio.yaml")
def list_kept(*, profile: ProfileOption = DEFAULT, as_json: JsonOption = False) -> None:
    """List what lies in the bins of the folders that the profile lets a tool write to, oldest first."""
    bins = [(root, held_in(root)) for root in _roots(profile)]
    found = [(root, kept) for root, held in bins for kept in held.kept]
    unlisted = sum(held.unlisted for _, held in bins)
    if as_json:
        data = [
            {"entry": kept.entry, "folder": root.path, "file": kept.path, "bytes": kept.size}
            for root, kept in found
        ]
        print_json({"kept": data, "unlisted": unlisted})
        return
    for _, kept in found:
        print_line(output(), f"{kept.entry}  {kept.path} ({how_many(kept.size, 'byte')})")
    if unlisted:
        print_line(output(), f"not shown, links or folders that cannot be opened: {unlisted}")
    elif not found:
        print_line(output(), "nothing is in a bin")


@app.command("restore", epilog="Example:  akaion bin restore 20260301T101500Z-3f9a2c71")
def put_back(
    entry: Annotated[str, typer.Argument(help="The name in the bin, as `akaion bin list` shows it.")],
    *,
    profile: ProfileOption = DEFAULT,
    as_json: JsonOption = False,
) -> None:
    """Put one file back to where it stood. What stands there now takes its place in the bin."""
    holding = [root for root in _roots(profile) if holds(root, entry)]
    if len(holding) != 1:
        raise ToolError("no bin of this profile has that name: see `akaion bin list`")
    (root,) = holding
    file = restore(root, entry)
    if as_json:
        print_json({"entry": entry, "folder": root.path, "file": file})
    else:
        print_line(output(), f"restored: {file}")


def _roots(profile: str) -> Iterator[Root]:
    """Yield each folder that a grant of `profile` writes to, once."""
    grants = construct(profile, to_read=True, assume=True).policy.grants.values()
    roots = {root.path: root for grant in grants if grant.effect is Effect.WRITE for root in grant.roots}
    yield from roots.values()
