# SPDX-License-Identifier: Apache-2.0
"""I10: what Ollama and llama-server say about themselves, and the grade that may be read into it."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.capability.backends.listings import LlamaServerCheck, OllamaCheck, VllmCheck
from runner.kernel.inference import Address, Answer
from runner.kernel.ports import Locality, ServerCheck

HERE = Address(scheme="http", host="127.0.0.1", port=8080)
MODEL = "qwen3:0.6b"
OLLAMA = OllamaCheck(model=MODEL, address=HERE)
LLAMA = LlamaServerCheck(model="qwen3-14b", address=HERE)
VLLM = VllmCheck(model="qwen3-14b", address=HERE)
L0, L1, REMOTE = Locality.L0, Locality.L1, Locality.REMOTE


def answer(body: object, status: int = 200) -> Answer:
    return Answer(status=status, body=json.dumps(body).encode())


def listing(**more: Any) -> Answer:
    entry = {"name": MODEL, "model": MODEL, "size": 5, "digest": "ab" * 32, **more}
    other = {"name": "gpt-oss:120b-cloud", "remote_host": "https://ollama.com:443", "remote_model": "gpt-oss"}
    return answer({"models": [other, entry]})


def shown(**more: Any) -> Answer:
    return answer({"details": {"format": "gguf", "parent_model": ""}, "capabilities": ["completion"], **more})


def details(**more: Any) -> Answer:
    return shown(details={"format": "gguf", **more})


# --- Ollama --------------------------------------------------------------------------------------


def test_ollama_is_asked_for_its_listing_and_its_description_of_the_model() -> None:
    tags, show = OLLAMA.questions
    assert (tags.method, tags.path, tags.body) == ("GET", "/api/tags", b"")
    assert (show.method, show.path, show.body) == ("POST", "/api/show", b'{"model":"qwen3:0.6b"}')
    assert {tags.address, show.address} == {HERE}


@pytest.mark.parametrize("form", ["gguf", "safetensors"])
def test_i10_a_model_that_is_listed_and_described_with_its_weights_is_fingerprinted(form: str) -> None:
    """Other models of the same server may be elsewhere."""
    assert OLLAMA.grade((listing(), details(format=form))) is L1


@pytest.mark.parametrize(
    ("configured", "listed"),
    [
        ("qwen3", "qwen3:latest"),
        ("Qwen3:0.6B", "qwen3:0.6b"),
        ("qwen3:0.6b:local", "qwen3:0.6b"),
        ("registry.ollama.ai/library/qwen3:0.6b", "qwen3:0.6b"),
        ("hf.co/maker/model", "hf.co/maker/model:latest"),
    ],
)
def test_i10_one_model_has_several_spellings(configured: str, listed: str) -> None:
    check = OllamaCheck(model=configured, address=HERE)
    assert check.grade((listing(name=listed, model=listed), shown())) is L1


@pytest.mark.parametrize(
    "answers",
    [
        (listing(remote_host="https://ollama.com:443"), shown()),
        (listing(remote_model="gpt-oss:120b"), shown()),
        (listing(remote_model=["gpt-oss"]), None),
        (listing(remote_host=0), shown()),
        (listing(), shown(remote_host="http://10.0.0.5:11434")),
        (None, shown(remote_model="gpt-oss:120b")),
        (listing(), details(parent_model="gpt-oss:120b-cloud")),
        (listing(model="gpt-oss:120b-cloud"), shown()),
        (Answer(status=307, body=b""), shown()),
        (listing(), Answer(status=302, body=b"")),
    ],
)
def test_i10_any_sign_of_another_machine_is_remote(answers: tuple[Answer | None, ...]) -> None:
    assert OLLAMA.grade(answers) is REMOTE


@pytest.mark.parametrize(
    "name", ["gpt-oss:120b-cloud", "glm-4.6:cloud", "x:CLOUD", "a/b:8b-Cloud", "q:8b:cloud"]
)
def test_i10_a_cloud_tag_is_remote_and_nobody_need_be_asked(name: str) -> None:
    check = OllamaCheck(model=name, address=HERE)
    assert check.questions == ()
    assert check.grade(()) is REMOTE
    assert check.grade((listing(name=name), shown())) is REMOTE


@pytest.mark.parametrize(
    "answers",
    [
        (None, None),
        (),
        (listing(), None),
        (None, shown()),
        (listing(name="other", model="other"), shown()),
        (listing(digest=""), shown()),
        (listing(size=0), shown()),
        (listing(size=True), shown()),
        (listing(), details(format="")),
        (listing(), answer({"error": "not found"}, 404)),
        (answer({"models": {}}), shown()),
        (answer([]), answer("x")),
        (Answer(status=200, body=b"{"), shown()),
        (Answer(status=500, body=b""), shown()),
    ],
)
def test_i10_doubt_and_silence_are_declared_and_no_more(answers: tuple[Answer | None, ...]) -> None:
    assert OLLAMA.grade(answers) is L0


# --- llama-server ---------------------------------------------------------------------------------


def props(path: object = "/models/qwen3-14b.gguf", **more: Any) -> Answer:
    return answer({"model_path": path, "build_info": "b1", "total_slots": 1, **more})


def models(*ids: object, owner: str = "llamacpp", meta: object = None) -> Answer:
    loaded = {"n_params": 14_000_000_000} if meta is None else meta
    return answer({"data": [{"id": name, "owned_by": owner, "meta": loaded} for name in ids]})


def test_llama_server_is_asked_for_its_properties_and_models() -> None:
    assert [(wire.method, wire.path, wire.body) for wire in LLAMA.questions] == [
        ("GET", "/props", b""),
        ("GET", "/v1/models", b""),
    ]


@pytest.mark.parametrize(
    ("model", "path", "name"),
    [
        ("qwen3-14b", "/models/qwen3-14b.gguf", "/models/qwen3-14b.gguf"),
        ("qwen3-14b.gguf", "/models/qwen3-14b.gguf", "qwen3-14b.gguf"),
        ("qwen3-14b", "C:\\models\\qwen3-14b.gguf", "qwen3-14b"),
    ],
)
def test_i10_a_server_that_says_it_has_loaded_the_model_is_fingerprinted(
    model: str, path: str, name: str
) -> None:
    assert LlamaServerCheck(model=model, address=HERE).grade((props(path), models(name))) is L1


def test_i10_an_alias_stands_for_the_model() -> None:
    check = LlamaServerCheck(model="studio", address=HERE)
    assert check.grade((props(model_alias="studio"), models("studio"))) is L1
    assert check.grade((props(), models("studio"))) is L0


@pytest.mark.parametrize(
    "answers",
    [
        (props("/models/other.gguf"), models("qwen3-14b")),
        (props(), models("other")),
        (props(), models("qwen3-14b", "another")),
        (props(), models()),
        (props(), models("qwen3-14b", owner="openai")),
        (props(), models("qwen3-14b", meta={})),
        (props(), models("qwen3-14b", meta={"n_params": True})),
        (props(5), models("qwen3-14b")),
        (answer({"error": {"code": 401}}, 401), models("qwen3-14b")),
        (props(), None),
        (None, models("qwen3-14b")),
        (),
    ],
)
def test_i10_another_model_or_less_than_agreement_is_declared(answers: tuple[Answer | None, ...]) -> None:
    assert LLAMA.grade(answers) is L0


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_i10_a_server_that_redirects_is_remote(status: int) -> None:
    assert LLAMA.grade((Answer(status=status, body=b""), models("qwen3-14b"))) is REMOTE
    assert LLAMA.grade((props(), Answer(status=status, body=b""))) is REMOTE


# --- vLLM -----------------------------------------------------------------------------------------


def serving(**more: Any) -> dict[str, Any]:
    owned = {"id": "qwen3-14b", "object": "model", "owned_by": "vllm", "root": "/models/q", "parent": None}
    return {**owned, "max_model_len": 32768, **more}


def served(*entries: dict[str, Any]) -> Answer:
    return answer({"object": "list", "data": list(entries)})


VERSION = answer({"version": "0.32.0"})


def test_vllm_is_asked_for_its_version_and_models() -> None:
    assert [(wire.method, wire.path, wire.body) for wire in VLLM.questions] == [
        ("GET", "/version", b""),
        ("GET", "/v1/models", b""),
    ]


def test_i10_a_vllm_that_lists_the_model_as_its_own_is_fingerprinted() -> None:
    assert VLLM.grade((VERSION, served(serving()))) is L1
    adapter = serving(id="studio", parent="qwen3-14b")
    assert VLLM.grade((VERSION, served(serving(), adapter))) is L1


@pytest.mark.parametrize("owner", ["openai", "", None, "llamacpp"])
def test_i10_a_model_listed_as_anothers_is_remote(owner: str | None) -> None:
    """Gateways answer for many owners. Whatever else they say, one such entry is enough."""
    assert VLLM.grade((VERSION, served(serving(owned_by=owner)))) is REMOTE
    assert VLLM.grade((None, served(serving(), serving(owned_by=owner)))) is REMOTE


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_i10_a_vllm_that_redirects_is_remote(status: int) -> None:
    assert VLLM.grade((Answer(status=status, body=b""), served(serving()))) is REMOTE
    assert VLLM.grade((VERSION, Answer(status=status, body=b""))) is REMOTE


@pytest.mark.parametrize(
    "answers",
    [
        (None, served(serving())),
        (answer({"detail": "Not Found"}, 404), served(serving())),
        (answer({"version": ""}), served(serving())),
        (answer({"version": 32}), served(serving())),
        (VERSION, None),
        (VERSION, served()),
        (VERSION, served(serving(id="other"))),
        (VERSION, served(serving(id="other", owned_by="openai"))),
        (VERSION, served(serving(), serving())),
        (VERSION, served(serving(parent="base"))),
        (VERSION, served(serving(max_model_len=None))),
        (VERSION, served(serving(max_model_len=True))),
        (),
    ],
)
def test_i10_less_than_agreement_with_vllm_is_declared(answers: tuple[Answer | None, ...]) -> None:
    assert VLLM.grade(answers) is L0


# --- all -----------------------------------------------------------------------------------------

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.just(MODEL) | st.just("qwen3-14b"),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "models",
                    "name",
                    "model",
                    "details",
                    "format",
                    "data",
                    "id",
                    "meta",
                    "remote_host",
                    "version",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)
ANSWERS = st.lists(
    st.none()
    | st.builds(Answer, status=st.integers(100, 599), body=st.binary(max_size=40))
    | st.builds(answer, JSON),
    max_size=3,
)


@pytest.mark.parametrize("check", [OLLAMA, LLAMA, VLLM], ids=["ollama", "llama-server", "vllm"])
@given(answers=ANSWERS)
def test_i10_a_check_is_total_and_never_says_contained(
    check: ServerCheck, answers: list[Answer | None]
) -> None:
    assert check.grade(answers) in {REMOTE, L0, L1}
