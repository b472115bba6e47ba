# SPDX-License-Identifier: Apache-2.0
"""What a profile permits: its grants, compiled against the tools there are, and what they need of a machine.

Owns which files no grant may reach, since they are the perimeter's own (I5). Leaves to the perimeter what a
grant means (P2).
"""

import os
from collections.abc import Mapping

from runner.assembly.blame import blame_of
from runner.assembly.credentials import credential_files
from runner.assembly.engines import weights_of
from runner.assembly.places import Places, own_folders
from runner.assembly.program import program_paths
from runner.assembly.rules import public_path, register_paths
from runner.capability.home import akaion_home
from runner.capability.profile import ProfileSource
from runner.capability.sandbox.bubblewrap import why_not
from runner.kernel.config import Config
from runner.kernel.errors import Mistake
from runner.kernel.ports import Tool
from runner.perimeter.grants import compile_policy
from runner.perimeter.policy import Policy


def policy_of(
    config: Config,
    source: ProfileSource,
    places: Places,
    tools: Mapping[str, Tool],
    host_tools: frozenset[str],
) -> Policy:
    """Return the grants of `config` over `tools`, by name, of which the program passed in `host_tools`.

    Raises `ConfigError` with every mistake.
    """
    local = config.inference.local
    tokens = credential_files(config, source, places)
    keys = [*own_folders(places), *([] if places.signer is None else [places.signer])]
    untouchable = {os.path.realpath(path): "the perimeter's keys lie here" for path in keys}
    untouchable |= {
        os.path.realpath(path): f"the credential file of {'.'.join(map(str, where))} lies here"
        for path, where in tokens.items()
    }
    public = public_path(config, source, places)
    if public is not None:  # else a private file would become public by where it lies
        untouchable[os.path.realpath(public)] = "the texts of perimeter.public_texts lie here"
    registers = register_paths(config, source, places).values()
    weights = None if local is None else weights_of(local, ("inference", "local", "model"), source)
    own = (*untouchable, places.trace, akaion_home(), source.path, weights, *registers)

    def unwritable() -> list[str]:
        return [os.path.realpath(path) for path in (*own, *program_paths()) if path is not None]

    return compile_policy(
        config.policy.grants,
        tools,
        host_tools=host_tools,
        resolve=lambda path, where: str(source.resolve(path, where)),
        unwritable=unwritable,
        untouchable=untouchable,
        blame=blame_of(source),
    )


def missing_sandbox(config: Config, source: ProfileSource, policy: Policy) -> Mistake | None:
    """Return why a granted tool cannot have the sandbox it needs, with the fix; None if it can (P3)."""
    needing = (
        index for index, grant in enumerate(config.policy.grants) if policy.grants[grant.tool].confined
    )
    index = next(needing, None)
    if index is None or (found := why_not()) is None:
        return None
    problem, _, fix = found.partition(". Fix: ")
    where = ("policy", "grants", index)
    fix = f"{fix or 'use such a machine'}, or remove this grant"
    return blame_of(source)(where, f"no sandbox can be built here: {problem}", fix)
