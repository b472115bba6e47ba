# SPDX-License-Identifier: Apache-2.0
"""The `akaion` command: joins its parts, and decides how a failure is told.

Owns nothing but that. No traceback and no content reach the screen: a failure of ours is one message, and a
defect is named by its kind and the line of our code it came from (I12).
"""

import sys
from collections.abc import Sequence
from inspect import cleandoc
from io import TextIOWrapper
from pathlib import Path
from traceback import extract_tb
from typing import Annotated, Final

import typer

from runner.adapters.cli import bin as bins
from runner.adapters.cli import evaluate, keys, models, policy, profile, runs, trace
from runner.adapters.cli.chat import chat
from runner.adapters.cli.doctor import doctor
from runner.adapters.cli.evidence import evidence
from runner.adapters.cli.exits import MEANING, Status
from runner.adapters.cli.explain import explain
from runner.adapters.cli.leakbench import leakbench
from runner.adapters.cli.probe import probe
from runner.adapters.cli.run import run
from runner.adapters.cli.screen import PROGRAM, errors, print_error, print_line
from runner.adapters.cli.vault import index, search
from runner.kernel.errors import ConfigError, RunnerError
from runner.kernel.version import __version__

app: Final = typer.Typer(
    name=PROGRAM,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command(
    help=f"{cleandoc(run.__doc__ or '')}\n\n{MEANING}",
    epilog='Example:  akaion run --profile studio.yaml "When is the Rossi hearing?"',
)(run)
app.command(epilog="Example:  akaion chat --profile studio.yaml < questions.txt")(chat)
app.command(epilog="Example:  akaion doctor --profile studio.yaml")(doctor)
app.command(epilog="Example:  akaion probe --profile studio.yaml --backend local")(probe)
app.command(epilog="Example:  akaion explain --profile studio.yaml letter.txt")(explain)
app.command(epilog="Example:  akaion leakbench --profile studio.yaml --html report.html")(leakbench)
app.command(epilog="Example:  akaion evidence --since 2026-11-01 --until 2026-11-30 -o november.zip")(
    evidence
)
app.command(epilog="Example:  akaion index --profile studio.yaml")(index)
app.command(epilog='Example:  akaion search --profile studio.yaml licenziamento "giusta causa"')(search)
app.add_typer(evaluate.app, name="eval")
app.add_typer(models.app, name="models")
app.add_typer(trace.app, name="trace")
app.add_typer(runs.app, name="runs")
app.add_typer(keys.app, name="keys")
app.add_typer(profile.app, name="profile")
app.add_typer(policy.app, name="policy")
app.add_typer(bins.app, name="bin")


def _version(*, asked: bool) -> None:
    if asked:
        typer.echo(f"{PROGRAM} {__version__}")
        raise typer.Exit


@app.callback(epilog="Start with:  akaion doctor, then  akaion models list")
def _akaion(
    *,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", is_eager=True, callback=_version)
    ] = False,
) -> None:
    """Run an agent inside a perimeter, with a record that proves what left it."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command on `arguments` (default: those of the process) and return its exit status."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    if isinstance(sys.stdin, TextIOWrapper):
        sys.stdin.reconfigure(errors="replace")
    try:
        app(None if arguments is None else list(arguments), prog_name=PROGRAM)
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except RunnerError as error:
        print_error(error)
        return Status.USAGE if isinstance(error, ConfigError) else Status.FAILED
    except KeyboardInterrupt:
        return Status.INTERRUPTED
    except Exception as error:  # noqa: BLE001 - the last stop: a foreign message could quote content (I12)
        print_line(errors(), f"{PROGRAM}: internal error: {_where(error)}", "red")
        return Status.FAILED
    return Status.DONE


def _where(error: Exception) -> str:
    """Return the kind of `error` and the last line of ours it passed, without its message."""
    ours = [frame for frame in extract_tb(error.__traceback__) if f"{Path('runner') / ''}" in frame.filename]
    place = f" at {Path(ours[-1].filename).name}:{ours[-1].lineno}" if ours else ""
    number = f" (error {error.errno})" if isinstance(error, OSError) and error.errno else ""
    return f"{type(error).__name__}{number}{place}"


if __name__ == "__main__":
    sys.exit(main())
