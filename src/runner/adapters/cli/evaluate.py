# SPDX-License-Identifier: Apache-2.0
"""`akaion eval`: measurements of models through the code that a run uses.

Owns the commands and their options. Leaves measuring and showing to `toolcalls`, which is imported when the
command runs.
"""

from pathlib import Path
from typing import Annotated, Final

import typer

from runner.adapters.cli.profiles import JsonOption
from runner.kernel.tiers import Tier

app: Final = typer.Typer(help="Measure models.", no_args_is_help=True, rich_markup_mode=None)
_ALL: Final = ",".join(Tier)


@app.callback()
def _eval() -> None:
    """Measure models."""


@app.command(
    "toolcalls",
    epilog="Example:  akaion eval toolcalls --model smollm2-135m-instruct --dataset bfcl --limit 100",
)
def toolcalls(
    *,
    model: Annotated[
        list[str], typer.Option("--model", help="A name from `akaion models list`. Repeatable.")
    ],
    dataset: Annotated[
        Path,
        typer.Option("--dataset", metavar="FOLDER", help="BFCL_*.json, and possible_answer_BFCL_*.json."),
    ],
    tiers: Annotated[str, typer.Option("--tiers", help="Tiers to compare, with commas.")] = _ALL,
    limit: Annotated[
        int | None,
        typer.Option(
            "--limit", min=1, help="Items, drawn of each category by its share.", show_default="all"
        ),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Which items are drawn.")] = 1,
    threads: Annotated[
        int, typer.Option("--threads", min=0, help="Of the engine; 0 leaves them to it.", show_default=False)
    ] = 0,
    results: Annotated[
        Path | None,
        typer.Option("--results", metavar="FILE", help="Write each result there at once, a JSON line each."),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with the file of --results: what it has is not measured.")
    ] = False,
    html: Annotated[
        Path | None,
        typer.Option("--html", metavar="FILE", help="Write the report there, complete in itself."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Ask a model for tool calls in each tier, and compare them with the right ones. No call runs.

    Exits with 0 when the constrained tier, if measured, has no malformed call and fewer than 2 % truncated
    ones, else with 1. Accuracy is reported and fails nothing. The model runs in this process; the record of
    the run is kept in a temporary folder.
    """
    from runner.adapters.cli.toolcalls import evaluate  # noqa: PLC0415 - see above

    evaluate(
        models=model,
        dataset=dataset,
        tiers=parse_tiers(tiers),
        limit=limit,
        seed=seed,
        threads=threads,
        results=results,
        resume=resume,
        html=html,
        as_json=as_json,
    )


def parse_tiers(text: str) -> tuple[Tier, ...]:
    """Return the tiers that `text` names, in their own order; raise `typer.BadParameter`."""
    names = {name.strip() for name in text.split(",")}
    if not names <= set(Tier):
        raise typer.BadParameter(f"write some of {_ALL}", param_hint="--tiers")
    return tuple(tier for tier in Tier if tier in names)
