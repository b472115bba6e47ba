# SPDX-License-Identifier: Apache-2.0
"""What a model server says about itself: whether it holds the configured model, or passes requests on.

Owns the questions to Ollama, llama-server and vLLM, and how their answers are read into a locality grade
(I10). Pure, as codecs are: the perimeter judges, records and sends the questions, which hold no content but
the configured name of the model. Leaves the address to the loopback check.

A positive sign of another machine is `REMOTE`. Everything else that is not plain agreement, silence included,
is no more than the L0 that the address gave. A relay that imitates a local server cannot be told apart: only
L2 excludes it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from runner.capability.backends.facts import entries_of, get, object_of, objects_in, post
from runner.capability.backends.protocol import encode_json
from runner.kernel.inference import Address, Answer, WireRequest
from runner.kernel.ports import Locality

_LIBRARY: Final = "registry.ollama.ai/library/"
_WEIGHTS: Final = frozenset({"gguf", "safetensors"})
_VLLM: Final = "vllm"
_REMOTE_MEMBERS: Final = ("remote_model", "remote_host")


@dataclass(frozen=True, slots=True, kw_only=True)
class OllamaCheck:
    """Asks an Ollama server at `address` whether it holds `model`. Implements `ServerCheck`.

    Ollama serves cloud models through its loopback port. They are known by their tag, which ends in `cloud`,
    and by `remote_model` and `remote_host` in its listing and its description, which a copy under another
    name keeps.
    """

    model: str
    address: Address

    @property
    def questions(self) -> tuple[WireRequest, ...]:
        """The listing, and the description of the model; nothing when its very name says cloud."""
        if _is_cloud(self.model):
            return ()
        body = encode_json(self.model, {"model": self.model})
        return (get(self.address, "/api/tags"), post(self.address, "/api/show", body))

    def grade(self, answers: Sequence[Answer | None]) -> Locality:
        """Return L1 when listing and description agree that the model is here, `REMOTE`, or L0. Total."""
        if _is_cloud(self.model) or any(_redirects(answer) for answer in answers):
            return Locality.REMOTE
        listing, shown = objects_in(answers, 2)
        listed = [entry for entry in entries_of(listing.get("models")) if _named(entry, self.model)]
        details = object_of(shown.get("details"))
        if any(_points_away(entry) for entry in (*listed, shown)) or _is_cloud(details.get("parent_model")):
            return Locality.REMOTE
        held = bool(listed) and all(_has_weights(entry) for entry in listed)
        return Locality.L1 if held and details.get("format") in _WEIGHTS else Locality.L0


@dataclass(frozen=True, slots=True, kw_only=True)
class LlamaServerCheck:
    """Asks a llama-server at `address` whether `model` is what it has loaded. Implements `ServerCheck`.

    `model` is the server's alias, or the name of the file of weights with or without its ending.
    """

    model: str
    address: Address

    @property
    def questions(self) -> tuple[WireRequest, ...]:
        """The server's properties and its list of models."""
        return (get(self.address, "/props"), get(self.address, "/v1/models"))

    def grade(self, answers: Sequence[Answer | None]) -> Locality:
        """Return L1 when both answers say that the model is loaded, `REMOTE` on a redirect, or L0. Total."""
        if any(_redirects(answer) for answer in answers):
            return Locality.REMOTE
        props, listing = objects_in(answers, 2)
        loaded = {*_names_of(props.get("model_path")), *_names_of(props.get("model_alias"))}
        served = list(entries_of(listing.get("data")))
        agreed = (
            self.model in loaded
            and len(served) == 1
            and self.model in _names_of(served[0].get("id"))
            and served[0].get("owned_by") == "llamacpp"
            and _positive(object_of(served[0].get("meta")).get("n_params"))
        )
        return Locality.L1 if agreed else Locality.L0


@dataclass(frozen=True, slots=True, kw_only=True)
class VllmCheck:
    """Asks a vLLM server at `address` whether it serves `model` itself. Implements `ServerCheck`.

    vLLM passes no requests on; gateways in front of it do, and list models of several owners. So whoever
    lists `model` as another's is elsewhere. An adapter on top of a model (`parent`) is not vouched for.
    """

    model: str
    address: Address

    @property
    def questions(self) -> tuple[WireRequest, ...]:
        """The server's version and its list of models."""
        return (get(self.address, "/version"), get(self.address, "/v1/models"))

    def grade(self, answers: Sequence[Answer | None]) -> Locality:
        """Return L1 when version and listing say vLLM has the model, `REMOTE` for another's, or L0. Total."""
        if any(_redirects(answer) for answer in answers):
            return Locality.REMOTE
        version, listing = objects_in(answers, 2)
        served = [entry for entry in entries_of(listing.get("data")) if entry.get("id") == self.model]
        if any(entry.get("owned_by") != _VLLM for entry in served):
            return Locality.REMOTE
        number = version.get("version")
        agreed = (
            isinstance(number, str)
            and bool(number)
            and len(served) == 1
            and served[0].get("parent") is None
            and _positive(served[0].get("max_model_len"))
        )
        return Locality.L1 if agreed else Locality.L0


# --- parsing: from here on the bytes are a server's, and nothing in them is believed -------------------


def _redirects(answer: Answer | None) -> bool:
    return answer is not None and 300 <= answer.status < 400  # noqa: PLR2004 - RFC 9110, section 15.4


def _positive(value: object) -> bool:
    return type(value) is int and value > 0


def _full_name(name: str) -> str:
    """Return the one spelling of a model's name: tagged, without the default library, in lower case."""
    bare = name.strip().lower().removeprefix(_LIBRARY).removeprefix("library/").removesuffix(":local")
    return bare if ":" in bare.rpartition("/")[2] else f"{bare}:latest"


def _is_cloud(name: object) -> bool:
    """Return whether the tag of an Ollama model says that it runs in Ollama's cloud."""
    if not isinstance(name, str):
        return False
    tag = _full_name(name).rpartition(":")[2].strip()
    return tag == "cloud" or tag.endswith("-cloud")


def _named(entry: Mapping[str, object], model: str) -> bool:
    names = (entry.get("name"), entry.get("model"))
    return any(isinstance(name, str) and _full_name(name) == _full_name(model) for name in names)


def _points_away(entry: Mapping[str, object]) -> bool:
    """Return whether `entry` names another machine, or a model there. Only absent and "" do not."""
    remote = any(entry.get(member) not in (None, "") for member in _REMOTE_MEMBERS)
    return remote or any(_is_cloud(entry.get(member)) for member in ("name", "model"))


def _has_weights(entry: Mapping[str, object]) -> bool:
    digest = entry.get("digest")
    return isinstance(digest, str) and bool(digest) and _positive(entry.get("size"))


def _names_of(value: object) -> frozenset[str]:
    """Return the names by which a profile may call what llama-server calls `value`, a path or an alias."""
    if not isinstance(value, str) or not value:
        return frozenset()
    file = value.replace("\\", "/").rpartition("/")[2]
    return frozenset({value, file, file.removesuffix(".gguf")})
