# SPDX-License-Identifier: Apache-2.0
"""The codecs of a profile: one for each model that it configures, by the name in the record.

Owns which runtime has which codec. Leaves to `registrations` how one is reached and on which terms (P1).
"""

import re
from collections.abc import Mapping, Sequence
from typing import Final, assert_never
from urllib.parse import urlsplit

from runner.assembly.blame import blame_of
from runner.capability.backends.anthropic import AnthropicBackend
from runner.capability.backends.embedded import EmbeddedBackend
from runner.capability.backends.embeddings import OllamaEmbedder, OpenAIEmbedder
from runner.capability.backends.llamacpp import LlamaCppBackend
from runner.capability.backends.ollama import OllamaBackend
from runner.capability.backends.openai import OpenAIBackend
from runner.capability.backends.vllm import VllmBackend
from runner.capability.profile import ProfileSource
from runner.kernel.config import Config, LocalInference
from runner.kernel.errors import ConfigError, Mistake
from runner.kernel.inference import Address
from runner.kernel.ports import Backend, Embedder
from runner.perimeter.grants import Blame

LOCAL: Final = "local"

REMOTE: Final = "remote"
"""The names of the two backends a profile configures, as in the trace."""

OPINION: Final = "opinion"
"""The name of the model that is asked for a second opinion, and for nothing else."""

EMBEDDINGS: Final = "embeddings"
"""What the name of a backend's embedding model ends in: `local-embeddings` is another backend on record."""

_ENDPOINT: Final = re.compile(r"[A-Za-z]+://[^\x00-\x20\x7f/?#@\\]+(/|/v1/?)?")

_HOST: Final = re.compile(r"[a-z0-9_]([a-z0-9_.-]*[a-z0-9_])?\.?|[0-9a-f]*:[0-9a-f:.]+")


def backends_of(config: Config, source: ProfileSource) -> dict[str, Backend]:
    """Return the codecs of the backends that `config` configures; raise `ConfigError` for a bad endpoint."""
    found: dict[str, Backend] = {}
    local, remote, blame = config.inference.local, config.inference.remote, blame_of(source)
    if local is not None:
        found[LOCAL] = _local_backend(LOCAL, local, blame)
    if remote is not None:
        address = _address(remote.endpoint, ("inference", "remote", "endpoint"), blame)
        match remote.backend:
            case "llamacpp":
                found[REMOTE] = LlamaCppBackend(name=REMOTE, model=remote.model, address=address, context=0)
            case "anthropic":
                found[REMOTE] = AnthropicBackend(name=REMOTE, model=remote.model, address=address)
            case "openai" | "akaion":
                found[REMOTE] = OpenAIBackend(name=REMOTE, model=remote.model, address=address)
            case _:
                assert_never(remote.backend)
    return found


def replaced(configured: dict[str, Backend], codecs: Sequence[Backend], blame: Blame) -> dict[str, Backend]:
    """Return `configured` with each of `codecs` in the place of its name.

    Raises `ConfigError` for one that the profile does not configure exactly: terms are the profile's to say.
    """
    mistakes: list[Mistake] = []
    for codec in codecs:
        where, known = ("inference", codec.name), configured.get(codec.name)
        if known is None:
            fix = f"add inference.{codec.name} to the profile, or give the codec another name"
            mistakes.append(blame(where, "a codec was passed for a backend that is not configured", fix))
        elif codec.address != known.address:
            fix = f"write {codec.address}, or make the codec with the address of the profile"
            mistakes.append(blame((*where, "endpoint"), "the codec passed for it has another address", fix))
        elif codec.model != known.model:
            fix = "write the model of the codec, or make the codec with the model of the profile"
            mistakes.append(blame((*where, "model"), "the codec passed for it asks for another model", fix))
    if mistakes:
        raise ConfigError(mistakes)
    return configured | {codec.name: codec for codec in codecs}


def opinion_backend(config: Config, blame: Blame) -> Backend | None:
    """Return the codec of the model that is asked for a second opinion, always the runner's own."""
    return None if config.opinion is None else _local_backend(OPINION, config.opinion, blame)


def _local_backend(name: str, local: LocalInference, blame: Blame) -> Backend:
    model, context = local.model, local.context
    if local.endpoint is None:
        return EmbeddedBackend(name=name, model=model, context=context)
    address = _address(local.endpoint, ("inference", "local", "endpoint"), blame)
    match local.runtime:
        case "ollama":
            return OllamaBackend(name=name, model=model, address=address, context=context)
        case "vllm":
            return VllmBackend(name=name, model=model, address=address, context=context)
        case "llamacpp" | "embedded":  # embedded has no endpoint, as `LocalInference` checks
            return LlamaCppBackend(name=name, model=model, address=address, context=context)
        case _:
            assert_never(local.runtime)


def embedders_of(
    config: Config, backends: Mapping[str, Backend], source: ProfileSource
) -> dict[str, Embedder]:
    """Return the codec of each embedding model that `config` names, by the backend it belongs to.

    Raises `ConfigError` for a bad endpoint.
    """
    found: dict[str, Embedder] = {}
    local, remote = config.inference.local, config.inference.remote
    if local is not None and local.embeddings is not None:
        where, address = ("inference", "local", "embeddings_endpoint"), backends[LOCAL].address
        if local.embeddings_endpoint is not None:
            address = _address(local.embeddings_endpoint, where, blame_of(source))
        codec = OllamaEmbedder if local.runtime == "ollama" else OpenAIEmbedder
        found[LOCAL] = codec(name=f"{LOCAL}-{EMBEDDINGS}", model=local.embeddings, address=address)
    if remote is not None and remote.embeddings is not None:
        found[REMOTE] = OpenAIEmbedder(
            name=f"{REMOTE}-{EMBEDDINGS}", model=remote.embeddings, address=backends[REMOTE].address
        )
    return found


def _address(endpoint: str, where: tuple[str, ...], blame: Blame) -> Address:
    """Return the address of an `http(s)://host[:port]` endpoint; raise `ConfigError` for anything more."""
    try:
        parts = urlsplit(endpoint)
        usual = {"http": 80, "https": 443}[parts.scheme]
        port, host = usual if parts.port is None else parts.port, parts.hostname or ""
        whole = endpoint.isascii() and _ENDPOINT.fullmatch(endpoint)
        if port and whole and _HOST.fullmatch(host):
            return Address(scheme=parts.scheme, host=host, port=port)
    except (ValueError, KeyError):
        pass
    fix = "write scheme, host and port only, such as http://127.0.0.1:8080"
    raise ConfigError([blame(where, "this is not an endpoint", fix)])
