# SPDX-License-Identifier: Apache-2.0
"""Each backend with its terms and its only way out: transport, locality check, credential (P1, I5, I10)."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import assert_never

from runner.assembly.backends import OPINION, REMOTE
from runner.capability.backends.listings import LlamaServerCheck, OllamaCheck, VllmCheck
from runner.capability.transport.http import HttpTransport
from runner.capability.transport.inprocess import EngineTransport
from runner.capability.transport.locality import LoopbackCheck
from runner.kernel.config import Config, LocalInference, RemoteInference
from runner.kernel.errors import LoopError
from runner.kernel.labels import DataClass
from runner.kernel.ports import Backend, Credential, Embedder, Endpoint, Probeable, ServerCheck
from runner.kernel.tiers import Tier
from runner.perimeter.client import Registration
from runner.perimeter.release import BackendTerms


def registrations_of(
    config: Config,
    backends: Mapping[str, Backend],
    *,
    embedders: Mapping[str, Embedder] = MappingProxyType({}),
    engines: Mapping[str, EngineTransport] = MappingProxyType({}),
    credential: Credential | None = None,
) -> dict[str, Registration]:
    """Return each of `backends` with the terms that `config` sets for its name, and its only way out.

    Those of `embedders`, by the backend each belongs to, have its terms under a name of their own. `engines`
    are the embedded ones by the name of their backend, `credential` is what the remote one gets. Raises
    `LoopError` for a backend in this process without an engine.
    """
    timeout = float(config.inference.timeout_s)
    remote, ceiling = config.inference.remote, config.perimeter.ceiling
    registrations = {}
    for side, endpoint in (*backends.items(), *embedders.items()):
        transport = engines.get(side) if endpoint.address.scheme == "inproc" else HttpTransport(timeout)
        if transport is None:
            raise LoopError("the embedded engine was not made")
        own = remote.max_class if side == REMOTE and remote is not None else None
        model = config.opinion if side == OPINION else config.inference.local
        terms = BackendTerms(
            name=endpoint.name,
            local=side != REMOTE,
            address=endpoint.address,
            ceiling=ceiling if own is None or ceiling is None else min(ceiling, DataClass.parse(own)),
        )
        registrations[endpoint.name] = Registration(
            terms=terms,
            transport=transport,
            locality=LoopbackCheck(),
            server=None if side == REMOTE else _server_check(model, endpoint),
            codec=endpoint if isinstance(endpoint, Probeable) else None,
            credential=credential if side == REMOTE else None,
            timeout_s=timeout,
            first=_first_tier(remote if side == REMOTE else model),
        )
    return registrations


def _first_tier(endpoint: LocalInference | RemoteInference | None) -> Tier | None:
    """Return the tier in which the profile says that a model is asked for calls first; None for `auto`."""
    return None if endpoint is None or endpoint.tier == "auto" else Tier(endpoint.tier)


def _server_check(local: LocalInference | None, endpoint: Endpoint) -> ServerCheck | None:
    """Return what asks the local server at `endpoint` about itself; None for the engine in this process."""
    if local is None:
        return None
    model, address = endpoint.model, endpoint.address
    match local.runtime:
        case "llamacpp":
            return LlamaServerCheck(model=model, address=address)
        case "ollama":
            return OllamaCheck(model=model, address=address)
        case "vllm":
            return VllmCheck(model=model, address=address)
        case "embedded":
            return None
        case _:
            assert_never(local.runtime)
