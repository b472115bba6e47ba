# SPDX-License-Identifier: Apache-2.0
"""`akaion leakbench`: what gets past the gate of a profile, measured with secrets of nobody.

Owns the command and its options. Leaves the measuring and the showing to `leaks`, which is imported when the
command runs: it brings datapizza and a server along, which no other command needs.
"""

from pathlib import Path
from typing import Annotated, Final

import typer

from runner.adapters.cli.profiles import DEFAULT, JsonOption, ProfileOption

TRIALS: Final = 10_000


def leakbench(
    *,
    profile: ProfileOption = DEFAULT,
    trials: Annotated[
        int,
        typer.Option(
            "--trials", min=1, help="Trials in all; four in a row plant one secret, once behind each defence."
        ),
    ] = TRIALS,
    seed: Annotated[int, typer.Option("--seed", min=0, help="The same seed gives the same run.")] = 1,
    workers: Annotated[
        int, typer.Option("--workers", min=0, help="Processes; 0 is one for each core.", show_default=False)
    ] = 0,
    html: Annotated[
        Path | None,
        typer.Option("--html", metavar="FILE", help="Write the report there, complete in itself."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Plant secrets of nobody, send them through the gate of a profile, and look at what arrives.

    A trial plants one secret behind one defence: labels and detectors, one of them, or neither. The secret
    leaked when it arrived and is of a class that the profile keeps in.

    Exits with 0 when nothing leaked that may not and record and requests agree, else with 1. Takes the
    ceiling, registers, redaction and remote protocol of the profile; the remote is a receiver on loopback,
    also where the profile has none.
    """
    from runner.adapters.cli.leaks import measure  # noqa: PLC0415 - see above

    measure(profile, trials=trials, seed=seed, workers=workers, html=html, as_json=as_json)
