# SPDX-License-Identifier: Apache-2.0
"""What the header of a log says of this runtime: its profile, its policy, its tools, and what confines them.

Owns which fact stands where. Leaves writing it to `perimeter.trace`. Carries P3: a runtime with a tool that
nothing confines says so in its first line.
"""

import json
import platform
from collections.abc import Iterable

from runner.capability.transport.clock import SystemEntropy
from runner.capability.transport.logstore import read_boot_id
from runner.kernel.config import Config
from runner.kernel.messages import Json, JsonObject
from runner.kernel.ports import Effect
from runner.kernel.version import __version__
from runner.perimeter.grants import policy_document
from runner.perimeter.policy import Policy
from runner.perimeter.trace.commit import config_digest, policy_digest
from runner.perimeter.trace.log import HeaderFacts
from runner.perimeter.trace.records import HostTool


def header_facts(
    config: Config, policy: Policy, *, book: str, backends: Iterable[str], prompts: str, classifier: str
) -> HeaderFacts:
    """Return what the header says where `policy` was compiled of `config`.

    `book` is its name, `backends` the names of all that may be asked, `prompts` the digest of what the runner
    says itself, `classifier` the name of whoever judges.
    """
    host_tools = tuple(
        HostTool(name=grant.tool, trusted=grant.trusted)
        for grant in config.policy.grants
        if policy.grants[grant.tool].effect is Effect.HOST
    )
    effects = {grant.effect for grant in policy.grants.values()}
    untrusted = not all(tool.trusted for tool in host_tools)
    return HeaderFacts(
        book=book,
        host=platform.node(),
        boot_id=read_boot_id() or SystemEntropy().token(16).hex(),
        profile=config.profile,
        policy_digest=policy_digest(policy_document(policy)),
        config_digest=config_digest(config_document(config)),
        prompts=prompts,
        backends=tuple(backends),
        host_tools=host_tools,
        max_egress_class=config.perimeter.max_egress_class,
        classifier=classifier,
        enforcement=config.perimeter.enforcement,
        sandbox="bubblewrap" if any(grant.confined for grant in policy.grants.values()) else "none",
        unverifiable_because=(
            *(("host-tool-untrusted",) if untrusted else ()),
            *(("tool-unrestricted",) if Effect.RUN_FREE in effects else ()),
        ),
        writer=f"akaion-runner/{__version__}",
        seal_every=config.trace.seal_every,
    )


def config_document(config: Config) -> JsonObject:
    """Return `config` in the form that its digest is of.

    What a grant says of arguments and of cases stands in it as JSON in a text, as in the policy's document:
    the canonical form has no fractions, no names of somebody else's, and is not that deep.
    """
    document = config.model_dump(mode="json")
    document["policy"]["grants"] = [_flat(grant) for grant in document["policy"]["grants"]]
    return document


def _flat(grant: dict[str, Json]) -> dict[str, Json]:
    sink = grant["sink"]
    cases = {"sink": {**sink, "cases": _text(sink["cases"])}} if isinstance(sink, dict) else {}
    return {**grant, "arguments": _text(grant["arguments"]), **cases}


def _text(value: Json) -> str | None:
    return None if value is None else json.dumps(value, sort_keys=True, separators=(",", ":"))
