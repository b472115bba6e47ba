# SPDX-License-Identifier: Apache-2.0
"""What a runtime says about its build, its model and its template, as fingerprints. Pure.

Owns the questions and how answers are read into `Facts`. Leaves sending to the perimeter. Carries I7: what is
missing, is not what it should be, or names no build, is unknown, and then nothing found is kept for later.
These are a runtime's own words: they tell a new one from an old one, and prove nothing about either.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Final

from runner.capability.backends.protocol import NotProtocolError, encode_json, parse_object
from runner.kernel.capabilities import Facts, Fingerprint
from runner.kernel.inference import Address, Answer, WireRequest

_OK: Final = 200
_UNNAMED: Final = "unknown"
"""In `build_info` of a llama.cpp that was built without its version, such as `b0-unknown`."""
_CHANGING: Final = frozenset({"created"})
"""Members of a listing that say when it was asked, not what is there."""
_LONGEST: Final = 100


# --- questions -----------------------------------------------------------------------------------


def get(address: Address, path: str) -> WireRequest:
    """Return a question without a body."""
    headers = (("Accept", "application/json"),)
    return WireRequest(method="GET", address=address, path=path, headers=headers, body=b"")


def post(address: Address, path: str, body: bytes) -> WireRequest:
    """Return a question with a JSON body."""
    headers = (("Content-Type", "application/json"), ("Accept", "application/json"))
    return WireRequest(method="POST", address=address, path=path, headers=headers, body=body)


def llama_questions(address: Address) -> tuple[WireRequest, ...]:
    """Return what a llama-server is asked: its properties, and what it serves."""
    return (get(address, "/props"), get(address, "/v1/models"))


def ollama_questions(address: Address, model: str) -> tuple[WireRequest, ...]:
    """Return what Ollama is asked: its version, its models, and the one called `model`."""
    body = encode_json(model, {"model": model})
    return (get(address, "/api/version"), get(address, "/api/tags"), post(address, "/api/show", body))


def vllm_questions(address: Address) -> tuple[WireRequest, ...]:
    """Return what a vLLM server is asked: its version, and what it serves."""
    return (get(address, "/version"), get(address, "/v1/models"))


# --- parsing: from here on the bytes are a server's, and nothing in them is believed -------------------


def llama_facts(answers: Sequence[Answer | None]) -> Facts:
    """Return what a llama-server says. Total. Its model has no digest: where it lies and what it holds."""
    props, listing = objects_in(answers, 2)
    served, build = list(entries_of(listing.get("data"))), _word(props.get("build_info"))
    only, path = served[0] if len(served) == 1 else {}, _word(props.get("model_path"))
    settings = object_of(props.get("default_generation_settings"))
    caps = object_of(props.get("chat_template_caps"))
    return Facts(
        fingerprint=Fingerprint(
            build="" if _UNNAMED in build else build,
            model=_digest_of_entry(only, path=path),
            template=_digest(props.get("chat_template")),
        ),
        context=_count(settings.get("n_ctx")),
        claims=tuple(sorted(_claims(name for name, value in caps.items() if value is True))),
    )


def ollama_facts(answers: Sequence[Answer | None], *, model: str, context: int) -> Facts:
    """Return what Ollama says of `model`. Total. Its `context` is the one that every request states."""
    version, listing, shown = objects_in(answers, 3)
    digests = {
        _word(entry.get("digest"))
        for entry in entries_of(listing.get("models"))
        if model in {entry.get("name"), entry.get("model")} or f"{model}:latest" == entry.get("name")
    }
    capabilities = shown.get("capabilities")
    return Facts(
        fingerprint=Fingerprint(
            build=_word(version.get("version")),
            model=digests.pop() if len(digests) == 1 else "",
            template=_digest(shown.get("template")),
        ),
        context=context,
        claims=tuple(sorted(_claims(capabilities))),
    )


def vllm_facts(answers: Sequence[Answer | None], *, model: str) -> Facts:
    """Return what a vLLM server says of `model`. Total. It shows no template: its entry stands for that too.

    A template given on the command line is not in it, so a change of it means a restart, which nothing here
    shows: findings about vLLM are never kept.
    """
    version, listing = objects_in(answers, 2)
    served = [entry for entry in entries_of(listing.get("data")) if entry.get("id") == model]
    only = served[0] if len(served) == 1 else {}
    return Facts(
        fingerprint=Fingerprint(
            build=_word(version.get("version")), model=_digest_of_entry(only, path=_word(only.get("root")))
        ),
        context=_count(only.get("max_model_len")),
    )


def engine_facts(answers: Sequence[Answer | None]) -> Facts:
    """Return what the embedded engine says. Total. The template is in the weights, so their mark is both."""
    [said] = objects_in(answers, 1)
    weights = _word(said.get("weights"))
    return Facts(
        fingerprint=Fingerprint(build=_word(said.get("build")), model=weights, template=weights),
        context=_count(said.get("context")),
    )


def objects_in(answers: Sequence[Answer | None], count: int) -> list[Mapping[str, object]]:
    """Return the JSON objects of `count` answers, an empty one for each that is missing or not one."""
    found = [_parse_answer(answer) for answer in answers]
    return found if len(found) == count else [{}] * count


def _parse_answer(answer: Answer | None) -> Mapping[str, object]:
    if answer is None or answer.status != _OK:
        return {}
    try:
        return parse_object(answer.body)
    except NotProtocolError:
        return {}


def object_of(value: object) -> Mapping[str, object]:
    """Return `value` if it is a JSON object, else an empty one."""
    return value if isinstance(value, dict) else {}


def entries_of(value: object) -> Iterator[Mapping[str, object]]:
    """Yield the objects in `value`, if it is an array; nothing else in it."""
    return (item for item in value if isinstance(item, dict)) if isinstance(value, list) else iter(())


def _word(value: object) -> str:
    """Return `value` if it is a short printable text; what is longer is shortened to its digest."""
    if not isinstance(value, str) or not value.isprintable() or not value.isascii():
        return _digest(value)
    return value if len(value) <= _LONGEST else _digest(value)


def _digest(value: object) -> str:
    """Return the SHA-256 of a text that is not empty; "" for anything else."""
    if not isinstance(value, str) or not value:
        return ""
    return sha256(value.encode("utf-8", "surrogatepass")).hexdigest()


def _digest_of_entry(entry: Mapping[str, object], *, path: str) -> str:
    """Return a digest of what a listing says of a model that lies at `path`; "" without either."""
    kept = {key: value for key, value in entry.items() if key not in _CHANGING}
    return _digest(f"{path}\n{json.dumps(kept, sort_keys=True)}") if kept and path else ""


def _count(value: object) -> int:
    return value if type(value) is int and 0 <= value < 1 << 53 else 0


def _claims(values: object) -> Iterator[str]:
    """Yield the words of a list of claims that are fit to be shown."""
    items = list(values) if isinstance(values, list | Iterator) else []
    return (item for item in items[:32] if isinstance(item, str) and item == _word(item))
