# SPDX-License-Identifier: Apache-2.0
"""The truth table of probes: what each kind of server does, found out over real sockets. I7, P1, I4, I9.

Every row is a server on loopback that accepts a constraint. None that ignores one is called `enforced`.
"""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any

import anyio
import pytest
from runtimes import (
    SAID,
    AnthropicServer,
    Broken,
    ChatServer,
    Fake,
    OllamaServer,
    as_json,
    error,
    llama_server,
    serving,
    vllm,
)

from runner.adapters.cli.main import main
from runner.assembly import FINDINGS, Runtime, open_profile
from runner.capability.home import akaion_home
from runner.kernel.capabilities import Mechanism, Standing, Thinking, tiers_for
from runner.perimeter.probe import PROBE_TIMEOUT_S
from runner.perimeter.probing import CANARY_TIMEOUT_S, Probe

ROOT = Path(__file__).resolve().parents[2]
TIMEOUT_S = 120
"""Of a request, by the profile."""
M = Mechanism
ENFORCED, IGNORED, REFUSED, UNVERIFIED = Standing
NATIVE, CONSTRAINED, TEXT = "native", "constrained", "text"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("AKAION_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def opened(server: Fake, url: str, runtime: str, **more: Any) -> Runtime:
    """The runtime of a profile whose only backend is at `url`."""
    inference: dict[str, Any] = {
        "prefer": "local",
        "local": None,
        "remote": None,
        "timeout_s": TIMEOUT_S,
        **more,
    }
    if runtime in {"openai", "anthropic"}:
        remote = {"backend": runtime, "endpoint": url, "model": server.model}
        inference |= {"prefer": "remote", "remote": remote}
    else:
        local = {"runtime": runtime, "endpoint": url, "model": server.model, "context": 4096}
        inference |= {"local": local}
    return open_profile("attached", policy={"grants": []}, inference=inference)


def probed(rt: Runtime, *, forms: bool = False) -> Probe:
    return anyio.run(lambda: rt.probe(rt.config.inference.prefer, forms=forms))


def fenced(held: str | None) -> dict[str, Any]:
    return {"content": SAID if held is None else f"```json\n{held}\n```"}


def thinking_beside(held: str | None) -> dict[str, Any]:
    return {"content": "", "reasoning_content": SAID if held is None else held}


def thinking_vllm(held: str | None) -> dict[str, Any]:
    return {"content": None, "reasoning": SAID if held is None else held}


def thinking_inline(held: str | None) -> dict[str, Any]:
    return {"content": f"<think>Hm.</think>{held}"}


class Once:
    """Holds what comes first, and nothing after it."""

    def __init__(self) -> None:
        self.first = True

    def __call__(self, held: str | None) -> dict[str, Any]:
        said, self.first = held if self.first else SAID, False
        return {"content": said}


class Remembers:
    """A cache in front of a server, which knows a request by its words: the first answer is every answer."""

    def __init__(self) -> None:
        self.said: str | None = None

    def __call__(self, held: str | None) -> dict[str, Any]:
        self.said = held if self.said is None else self.said
        return {"content": self.said}


def whole_request(server: ChatServer) -> ChatServer:
    """Let the model of `server` repeat everything that was sent, nonce and all."""
    server.says = lambda _: {"content": json.dumps(server.posts[-1])}
    return server


def canned(tool: str, _: int) -> Mapping[str, Any]:
    return {"name": tool, "arguments": '{"n": 4}'}


def malformed(tool: str, level: int) -> Mapping[str, Any]:
    return {"name": tool, "arguments": f'{{"n": {level}'}


@dataclass(frozen=True, kw_only=True)
class Row:
    """A kind of server, what a probe of it finds, and how many canaries that takes."""

    id: str
    server: Fake
    runtime: str
    finds: Mapping[M, Standing]
    requests: int
    tiers: tuple[str, ...] = (TEXT,)
    thinking: Thinking = Thinking.ABSENT
    forms: bool = False


def row(
    name: str, server: Fake, runtime: str, finds: Mapping[M, Standing], n: int, *tiers: str, **more: Any
) -> Row:
    if set(finds.values()) == {UNVERIFIED}:
        tiers = (CONSTRAINED,)
    return Row(id=name, server=server, runtime=runtime, finds=finds, requests=n, tiers=(*tiers, TEXT), **more)


SILENT = {M.GRAMMAR: UNVERIFIED}
PLAIN = {M.TOOLS: IGNORED, M.TOOLS_WITH_FORMAT: REFUSED, M.RESPONSE_FORMAT_FLAT: IGNORED}
LLAMA = "llamacpp"
BESIDE, INLINE, UNSEEN = Thinking.BESIDE, Thinking.INLINE, Thinking.UNVERIFIED

TABLE = [
    # llama-server
    row(
        "llama-server-with-tools",
        llama_server(tools="called"),
        LLAMA,
        {M.GRAMMAR: ENFORCED, M.TOOLS: ENFORCED, M.TOOLS_WITH_FORMAT: REFUSED},
        5,
        NATIVE,
        CONSTRAINED,
    ),
    row("llama-server-without-tools", llama_server(), LLAMA, PLAIN | {M.GRAMMAR: ENFORCED}, 5, CONSTRAINED),
    row(
        "flat-schema-and-named-tool-and-untyped-grammar",
        llama_server(tools="called"),
        LLAMA,
        {
            M.RESPONSE_FORMAT_FLAT: IGNORED,
            M.TOOL_CHOICE: IGNORED,
            M.GRAMMAR_UNTYPED: IGNORED,
            M.GRAMMAR_BROKEN: REFUSED,
            M.RESPONSE_FORMAT: UNVERIFIED,
        },
        5,
        forms=True,
    ),
    row(
        "old-build-answers-200-to-a-bad-grammar",
        llama_server(bad_grammar=200, tools="refused"),
        LLAMA,
        {
            M.RESPONSE_FORMAT_FLAT: IGNORED,
            M.TOOL_CHOICE: REFUSED,
            M.GRAMMAR_UNTYPED: IGNORED,
            M.GRAMMAR_BROKEN: IGNORED,
            M.RESPONSE_FORMAT: UNVERIFIED,
        },
        5,
        forms=True,
    ),
    row(
        "named-tool-is-called",
        llama_server(tools="called", choice="enforced", holds=("grammar",)),
        LLAMA,
        {
            M.RESPONSE_FORMAT_FLAT: IGNORED,
            M.TOOL_CHOICE: ENFORCED,
            M.GRAMMAR_UNTYPED: IGNORED,
        },
        4,
        forms=True,
    ),
    row("grammar-ignored", ChatServer(), LLAMA, PLAIN | {M.GRAMMAR: IGNORED, M.TOOL_CHOICE: IGNORED}, 5),
    row(
        "grammar-refused",
        Broken(reply=error(400)),
        LLAMA,
        dict.fromkeys(
            (M.GRAMMAR, M.TOOLS, M.TOOLS_WITH_FORMAT, M.RESPONSE_FORMAT_FLAT, M.TOOL_CHOICE), REFUSED
        ),
        5,
        thinking=UNSEEN,
    ),
    row(
        "markdown-fence",
        llama_server(says=fenced),
        LLAMA,
        PLAIN | {M.GRAMMAR: IGNORED, M.TOOL_CHOICE: IGNORED},
        5,
    ),
    row(
        "reasoning-parser-takes-the-json",
        llama_server(says=thinking_beside),
        LLAMA,
        PLAIN | {M.GRAMMAR: IGNORED, M.TOOL_CHOICE: IGNORED},
        5,
        thinking=BESIDE,
    ),
    row(
        "thinks-in-the-text",
        llama_server(says=thinking_inline),
        LLAMA,
        PLAIN | {M.GRAMMAR: IGNORED, M.TOOL_CHOICE: IGNORED},
        5,
        thinking=INLINE,
    ),
    row(
        "thinks-until-the-budget-is-spent",
        llama_server(
            says=lambda _: {"content": "", "reasoning_content": "Hm."}, finish="length", both="enforced"
        ),
        LLAMA,
        {
            M.GRAMMAR: UNVERIFIED,
            M.TOOLS: UNVERIFIED,
            M.TOOLS_WITH_FORMAT: UNVERIFIED,
            M.RESPONSE_FORMAT_FLAT: UNVERIFIED,
            M.TOOL_CHOICE: UNVERIFIED,
        },
        4,
        thinking=BESIDE,
    ),
    row(
        "repeats-all-it-was-sent",
        whole_request(llama_server()),
        LLAMA,
        PLAIN | {M.GRAMMAR: IGNORED, M.TOOL_CHOICE: IGNORED},
        5,
    ),
    row("lucky-once", llama_server(says=Once()), LLAMA, PLAIN | {M.GRAMMAR: IGNORED}, 5),
    row("cache-in-front", llama_server(says=Remembers()), LLAMA, PLAIN | {M.GRAMMAR: IGNORED}, 5),
    row(
        "white-space-eats-the-budget",
        llama_server(says=lambda held: {"content": "\n" * 8 + (held or SAID)[:3]}, finish="length"),
        LLAMA,
        {
            M.GRAMMAR: UNVERIFIED,
            M.TOOLS: UNVERIFIED,
            M.TOOLS_WITH_FORMAT: REFUSED,
            M.RESPONSE_FORMAT_FLAT: IGNORED,
            M.TOOL_CHOICE: UNVERIFIED,
        },
        5,
    ),
    row("hangs", Broken(reply=None), LLAMA, SILENT, 1, thinking=UNSEEN),
    row("not-found", Broken(reply=error(404)), LLAMA, SILENT, 1, thinking=UNSEEN),
    row("loading", Broken(reply=error(503)), LLAMA, SILENT, 1, thinking=UNSEEN),
    row(
        "fails-whatever-it-is-asked",
        Broken(reply=error(500)),
        LLAMA,
        dict.fromkeys((M.GRAMMAR, M.TOOLS, M.TOOLS_WITH_FORMAT, M.RESPONSE_FORMAT_FLAT), UNVERIFIED),
        4,
        thinking=UNSEEN,
    ),
    row(
        "error-in-a-200",
        Broken(reply=as_json({"error": {"code": 500, "message": "zq7"}})),
        LLAMA,
        dict.fromkeys((M.GRAMMAR, M.TOOLS, M.TOOLS_WITH_FORMAT, M.RESPONSE_FORMAT_FLAT), UNVERIFIED),
        4,
        thinking=UNSEEN,
    ),
    row(
        "streams-an-error-with-200",
        Broken(reply=(200, b'data: {"choices":[]}\n\nerror: {"code":500}\n\n')),
        LLAMA,
        dict.fromkeys((M.GRAMMAR, M.TOOLS, M.TOOLS_WITH_FORMAT, M.RESPONSE_FORMAT_FLAT), UNVERIFIED),
        4,
        thinking=UNSEEN,
    ),
    row(
        "same-call-every-time",
        llama_server(tools="called", call=canned),
        LLAMA,
        {M.GRAMMAR: ENFORCED, M.TOOLS: IGNORED},
        5,
        CONSTRAINED,
    ),
    row(
        "arguments-cut-short",
        llama_server(tools="called", call=malformed),
        LLAMA,
        {M.GRAMMAR: ENFORCED, M.TOOLS: IGNORED},
        5,
        CONSTRAINED,
    ),
    # vLLM
    row(
        "vllm",
        vllm(tools="called"),
        "vllm",
        {M.STRUCTURED_OUTPUTS: ENFORCED, M.TOOLS: ENFORCED, M.TOOLS_WITH_FORMAT: UNVERIFIED},
        5,
        NATIVE,
        CONSTRAINED,
    ),
    row(
        "vllm-without-server-flags",
        vllm(tools="refused"),
        "vllm",
        {
            M.STRUCTURED_OUTPUTS: ENFORCED,
            M.TOOLS: REFUSED,
            M.TOOLS_WITH_FORMAT: REFUSED,
            M.GUIDED_JSON: IGNORED,
        },
        5,
        CONSTRAINED,
    ),
    row(
        "vllm-guided-json",
        vllm(tools="called"),
        "vllm",
        {
            M.GUIDED_JSON: IGNORED,
            M.TOOL_CHOICE: IGNORED,
            M.RESPONSE_FORMAT: ENFORCED,
            M.JSON_OBJECT: UNVERIFIED,
        },
        5,
        forms=True,
    ),
    row(
        "vllm-before-structured-outputs",
        vllm(holds=()),
        "vllm",
        {M.STRUCTURED_OUTPUTS: IGNORED, M.TOOLS: IGNORED, M.GUIDED_JSON: IGNORED},
        4,
    ),
    row(
        "vllm-reasoning-parser",
        vllm(says=thinking_vllm),
        "vllm",
        {M.STRUCTURED_OUTPUTS: IGNORED},
        4,
        thinking=BESIDE,
    ),
    # Ollama
    row(
        "ollama",
        OllamaServer(),
        "ollama",
        {M.FORMAT: ENFORCED, M.TOOLS: ENFORCED, M.TOOLS_WITH_FORMAT: IGNORED},
        5,
        NATIVE,
        CONSTRAINED,
    ),
    row(
        "ollama-thinking-model-loses-the-format",
        OllamaServer(holds=False, thinking="Hm.", tools="ignored"),
        "ollama",
        {M.FORMAT: IGNORED, M.TOOLS: IGNORED, M.TOOLS_WITH_FORMAT: IGNORED, M.TOOL_CHOICE: IGNORED},
        4,
        thinking=BESIDE,
    ),
    row(
        "ollama-mlx-model",
        OllamaServer(holds=False),
        "ollama",
        {M.FORMAT: IGNORED, M.TOOLS: ENFORCED, M.TOOLS_WITH_FORMAT: IGNORED},
        4,
        NATIVE,
    ),
    row(
        "ollama-error-in-mid-stream",
        OllamaServer(mid_stream=True),
        "ollama",
        {M.FORMAT: UNVERIFIED, M.TOOLS: UNVERIFIED},
        4,
        thinking=UNSEEN,
    ),
    row(
        "ollama-cloud-model",
        OllamaServer(model="gpt-oss:120b-cloud"),
        "ollama",
        {M.FORMAT: UNVERIFIED},
        0,
        thinking=UNSEEN,
    ),
    row(
        "ollama-cloud-model-under-another-name",
        OllamaServer(shown={"remote_model": "gpt-oss:120b", "remote_host": "https://ollama.com:443"}),
        "ollama",
        {M.FORMAT: UNVERIFIED},
        0,
        thinking=UNSEEN,
    ),
    # OpenAI's protocol and Anthropic's
    row(
        "openai",
        ChatServer(holds=("response_format",), tools="called", both="enforced", choice="enforced"),
        "openai",
        {M.RESPONSE_FORMAT: ENFORCED, M.TOOLS: ENFORCED, M.TOOLS_WITH_FORMAT: UNVERIFIED},
        5,
        NATIVE,
        CONSTRAINED,
    ),
    row(
        "llama-cpp-python",
        ChatServer(holds=("json_object",)),
        "openai",
        {M.RESPONSE_FORMAT: IGNORED, M.RESPONSE_FORMAT_FLAT: IGNORED},
        5,
    ),
    row(
        "llama-cpp-python-other-forms",
        ChatServer(holds=("json_object",)),
        "openai",
        {
            M.RESPONSE_FORMAT_FLAT: IGNORED,
            M.TOOL_CHOICE: IGNORED,
            M.JSON_OBJECT: ENFORCED,
            M.GUIDED_JSON: IGNORED,
        },
        5,
        forms=True,
    ),
    row(
        "anthropic",
        AnthropicServer(),
        "anthropic",
        {M.OUTPUT_CONFIG: ENFORCED, M.TOOLS: ENFORCED, M.TOOLS_WITH_FORMAT: REFUSED},
        5,
        NATIVE,
        CONSTRAINED,
        thinking=BESIDE,
    ),
    row(
        "credential-missing",
        Broken(reply=error(401)),
        "openai",
        {M.RESPONSE_FORMAT: UNVERIFIED},
        1,
        thinking=UNSEEN,
    ),
]


@pytest.mark.parametrize("row", TABLE, ids=[each.id for each in TABLE])
def test_i7_every_kind_of_server_is_classified_as_what_it_does(
    row: Row, monkeypatch: pytest.MonkeyPatch
) -> None:
    if row.id == "hangs":
        monkeypatch.setattr("runner.perimeter.probing.CANARY_TIMEOUT_S", 2.0)
    started = monotonic()
    with serving(row.server) as url, opened(row.server, url, row.runtime) as rt:
        found = probed(rt, forms=row.forms)
    if row.id == "hangs":
        assert monotonic() - started < TIMEOUT_S - 5, "the bound of a probe holds, not that of a request"
    capabilities = found.capabilities
    assert {each: capabilities[each] for each in row.finds} == row.finds
    wanted = {each for each, standing in row.finds.items() if standing is ENFORCED}
    assert {each for each in M if capabilities[each] is ENFORCED} == wanted
    assert len(row.server.posts) == row.requests <= 5
    assert sum(row.server.granted) <= found.most_tokens <= 64
    assert capabilities.thinking is row.thinking
    if not row.forms:
        assert tuple(tiers_for(capabilities)) == row.tiers


def test_a_probe_waits_for_as_long_as_its_page_says() -> None:
    page = ROOT / "docs" / "explanation" / "probes.md"
    assert "A run waits two minutes for it at most" in page.read_text(encoding="utf-8")
    assert PROBE_TIMEOUT_S == CANARY_TIMEOUT_S == 120


def test_the_table_covers_every_way_to_fail_open() -> None:
    assert len(TABLE) == len({each.id for each in TABLE}) >= 16
    ignored = {each for row in TABLE for each, standing in row.finds.items() if standing is IGNORED}
    assert ignored == set(M) - {M.JSON_SCHEMA, M.OUTPUT_CONFIG, M.JSON_OBJECT}


# --- the record ----------------------------------------------------------------------------------


def verified(book: Path) -> list[dict[str, Any]]:
    """Return the entries of a book, after the verifier found nothing wrong with it but the missing pin."""
    command = [sys.executable, "-I", "-S", str(ROOT / "verify" / "akaion_verify.py"), str(book), "--json"]
    verdict = json.loads(subprocess.run(command, capture_output=True, text=True, check=False).stdout)
    assert [reason["code"] for reason in verdict["reasons"]] == ["no-pin"]
    lines = [line for log in sorted(book.glob("*.jsonl")) for line in log.read_bytes().splitlines()]
    return [entry for line in lines if (entry := json.loads(line))["kind"] != "seal"]


def test_i4_every_canary_is_on_record_without_task_or_content_and_what_was_found_after_it() -> None:
    server = llama_server(tools="called")
    with serving(server) as url, opened(server, url, LLAMA) as rt:
        probed(rt)
    entries = verified(rt.trace_path)
    sends = [entry for entry in entries if entry["kind"] == "egress"]
    canaries = [each for each in sends if each["body"]["bytes"] > 0]
    assert len(canaries) == len(server.posts) == 5
    assert all("task" not in each and each["body"]["inputs"] == [] for each in sends)
    assert {(each["body"]["class"], each["body"]["decision"]) for each in sends} == {("C0", "allowed")}
    backends = [entry["body"] for entry in entries if entry["kind"] == "backend"]
    assert entries[-2]["kind"] == "backend"
    assert len({each["caps_digest"] for each in backends}) == 2
    assert backends[-1]["caps_digest"] != backends[0]["caps_digest"]


def test_a_canary_is_public_and_passes_where_only_public_content_may_leave() -> None:
    server = ChatServer(holds=("response_format",))
    with serving(server) as url:
        remote = {"backend": "openai", "endpoint": url, "model": "m", "max_class": "C0"}
        inference = {"prefer": "remote", "local": None, "remote": remote}
        with open_profile("attached", policy={"grants": []}, inference=inference) as rt:
            found = probed(rt)
    assert found.capabilities[M.RESPONSE_FORMAT] is ENFORCED
    sends = [entry["body"] for entry in verified(rt.trace_path) if entry["kind"] == "egress"]
    assert {(each["class"], each["locality"]) for each in sends} == {("C0", "remote")}


# --- what is kept --------------------------------------------------------------------------------


def asked_again(server: Fake, url: str, runtime: str = LLAMA) -> int:
    """Open the profile as at another start; return how many canaries the first need sends."""
    before = len(server.posts)
    with opened(server, url, runtime) as rt:
        anyio.run(lambda: rt.capabilities("local"))
        anyio.run(lambda: rt.capabilities("local"))
    return len(server.posts) - before


def test_what_was_found_stands_for_the_next_start(home: Path) -> None:
    server = llama_server(tools="called")
    with serving(server) as url:
        assert [asked_again(server, url), asked_again(server, url)] == [5, 0]
        with opened(server, url, LLAMA) as rt:
            kept = anyio.run(lambda: rt.capabilities("local"))
    assert kept[M.GRAMMAR] is kept[M.TOOLS] is ENFORCED
    assert (home / FINDINGS).stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("changed", ["build", "template", "model", "context"])
def test_i7_a_runtime_a_template_or_a_model_that_changed_is_asked_again(changed: str) -> None:
    server = llama_server()
    with serving(server) as url:
        assert asked_again(server, url) == 5
        props, listing = server.served["/props"], server.served["/v1/models"]
        match changed:
            case "build":
                props["build_info"] = "b11435-def"
            case "template":
                props["chat_template"] = "{{ other }}"
            case "context":
                props["default_generation_settings"]["n_ctx"] += 1
            case _:
                listing["data"][0]["meta"]["size"] += 1
        server.holds = ()
        with opened(server, url, LLAMA) as rt:
            found = anyio.run(lambda: rt.capabilities("local"))
    assert found[M.GRAMMAR] is IGNORED


@pytest.mark.parametrize("unknown", ["build_info", "chat_template", "model_path"])
def test_i7_without_a_whole_fingerprint_nothing_is_kept(unknown: str) -> None:
    server = llama_server()
    del server.served["/props"][unknown]
    with serving(server) as url:
        assert [asked_again(server, url), asked_again(server, url)] == [5, 5]


def test_i7_a_build_that_does_not_say_which_is_no_fingerprint() -> None:
    server = llama_server(build="b0-unknown")
    with serving(server) as url:
        assert [asked_again(server, url), asked_again(server, url)] == [5, 5]


def test_i7_a_runtime_that_changes_under_the_probe_was_not_probed() -> None:
    server = llama_server()

    def changing(held: str | None) -> dict[str, Any]:
        server.served["/props"]["build_info"] = f"b{len(server.posts)}"
        return {"content": SAID if held is None else held}

    server.says = changing
    with serving(server) as url, opened(server, url, LLAMA) as rt:
        found = probed(rt).capabilities
        assert dict(found.standings) == {}
        assert tuple(tiers_for(found)) == (CONSTRAINED, TEXT)


def test_i7_what_was_not_decided_is_asked_again() -> None:
    silent = Broken(reply=error(503))
    with serving(silent) as url:
        assert [asked_again(silent, url), asked_again(silent, url)] == [1, 1]
    undecided = llama_server(says=lambda _: {"content": ""}, finish="length")
    with serving(undecided) as url:
        assert [asked_again(undecided, url), asked_again(undecided, url)] == [5, 5]


def spoil(file: Path, how: str) -> None:
    data = json.loads(file.read_text())
    [key] = data["findings"]
    match how:
        case "cut":
            file.write_text(file.read_text()[:-20])
        case "open-to-others":
            file.chmod(0o644)
        case "link":
            file.rename(file.with_suffix(".moved"))
            file.symlink_to(file.with_suffix(".moved"))
        case "folder":
            file.unlink()
            file.mkdir()
        case "another-key":
            file.write_text(json.dumps(data | {"findings": {"0" * 64: data["findings"][key]}}))
        case "another-format":
            file.write_text(json.dumps(data | {"format": "akaion-backend-caps/0"}))
        case "unknown-word":
            data["findings"][key]["standings"]["grammar"] = "certainly"
            file.write_text(json.dumps(data))
        case "wrong-type":
            data["findings"][key]["context"] = "4096"
            file.write_text(json.dumps(data))
        case "build" | "model" | "template" | "context":
            data["findings"][key][how] = 1 if how == "context" else "another"
            file.write_text(json.dumps(data))
        case _:
            file.write_bytes(b"[" * 100_000)


@pytest.mark.parametrize(
    "how",
    [
        "cut",
        "open-to-others",
        "link",
        "folder",
        "another-key",
        "another-format",
        "unknown-word",
        "wrong-type",
        "build",
        "model",
        "template",
        "context",
        "deep",
    ],
)
def test_i7_a_cache_that_is_not_what_it_should_be_holds_nothing(home: Path, how: str) -> None:
    server = llama_server()
    with serving(server) as url:
        assert asked_again(server, url) == 5
        spoil(home / FINDINGS, how)
        assert asked_again(server, url) == 5


def test_i7_a_cache_of_another_user_holds_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    server = llama_server()
    with serving(server) as url:
        assert asked_again(server, url) == 5
        mine = os.geteuid()
        monkeypatch.setattr("os.geteuid", lambda: mine + 1)
        assert asked_again(server, url) == 5


# --- the command ---------------------------------------------------------------------------------


def profile_at(url: str, folder: Path, model: str = "m") -> str:
    text = f"""profile: attached
policy: {{grants: []}}
inference:
  local: {{runtime: llamacpp, endpoint: "{url}", model: "{model}", context: 4096}}
"""
    (folder / "studio.yaml").write_text(text, encoding="utf-8")
    return str(folder / "studio.yaml")


def test_the_command_prints_the_truth_table_as_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server = llama_server()
    with serving(server) as url:
        status = main(["probe", "--profile", profile_at(url, tmp_path), "--json"])
    said = json.loads(capsys.readouterr().out)
    assert status == 0
    assert said["mechanisms"] == {
        "grammar": "enforced",
        "response_format_flat": "ignored",
        "tools": "ignored",
        "tools_with_format": "refused",
    }
    assert (said["uses"], said["ignores"]) == ("grammar", ["response_format_flat", "tools"])
    assert (said["tiers"], said["thinking"], said["context"]) == (["constrained", "text"], "absent", 4096)
    assert (said["requests"], said["tokens"], said["keeps"]) == (5, 28, True)
    assert said["claims"] == ["supports_tools"]
    assert said["most_tokens"] == sum(server.granted) <= 64


def test_the_command_says_in_words_what_is_ignored_and_fails(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with serving(ChatServer(served=llama_server(build="b1\x1b[31m").served)) as url:
        status = main(["probe", "--profile", profile_at(url, tmp_path)])
    shown = capsys.readouterr()
    assert status == 1
    assert "grammar (in use)" in shown.out
    assert "accepted, and not done" in shown.out
    assert "Tiers    text\n" in shown.out
    assert "\x1b" not in shown.out
    assert "probing local" in shown.err


def test_the_command_tries_the_other_forms(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with serving(llama_server()) as url:
        status = main(["probe", "--profile", profile_at(url, tmp_path), "--forms", "--json", "-q"])
    said = json.loads(capsys.readouterr().out)
    assert (status, said["tiers"]) == (0, None)
    assert said["ignores"] == ["response_format_flat", "grammar_untyped", "tool_choice"]


def test_a_server_that_is_not_there_is_said_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with serving(llama_server()) as url:
        pass
    status = main(["probe", "--profile", profile_at(url, tmp_path), "--json"])
    said = json.loads(capsys.readouterr().out)
    assert (status, said["answered"], said["mechanisms"]) == (1, False, {"grammar": "unverified"})
    assert (said["requests"], said["denied"]) == (1, "")
    assert main(["probe", "--profile", profile_at(url, tmp_path), "--set", "inference.local.tier=text"]) == 1
    shown = capsys.readouterr().out
    assert "The backend did not answer" in shown
    assert "text (set in the profile)\n" in shown
    assert "no: its build and model and template cannot be read" in shown


def test_i4_a_probe_that_the_perimeter_denies_says_why_and_counts_no_request(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The endpoint of the local model is no address of this machine, and nothing may leave."""
    profile = profile_at("http://192.0.2.1:8080", tmp_path)
    status = main(["probe", "--profile", profile, "--json", "-q"])
    said = json.loads(capsys.readouterr().out)
    assert (status, said["denied"], said["answered"]) == (1, "not-local", False)
    assert (said["requests"], said["tokens"], said["most_tokens"]) == (0, 0, 0)
    assert main(["probe", "--profile", profile, "-q"]) == 1
    shown = capsys.readouterr().out
    assert "the perimeter denied it (not-local)" in shown
    assert "0 requests" in shown


def test_doctor_counts_what_is_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with serving(llama_server()) as url:
        profile = profile_at(url, tmp_path)
        main(["probe", "--profile", profile, "-q", "--json"])
        capsys.readouterr()
        main(["doctor", "--profile", profile, "--json"])
    checks = {each["check"]: each for each in json.loads(capsys.readouterr().out)["checks"]}
    assert checks["backend behaviour"]["found"].startswith("1 finding kept")


# --- the real ones -------------------------------------------------------------------------------

WEIGHTS = akaion_home() / "models" / "SmolLM2-135M-Instruct.Q4_1.gguf"
REAL = {M.GRAMMAR: ENFORCED, M.TOOLS_WITH_FORMAT: REFUSED, M.RESPONSE_FORMAT_FLAT: IGNORED}


@pytest.mark.model
@pytest.mark.slow
def test_a_real_llama_server_and_the_embedded_engine_are_what_the_fakes_say() -> None:
    xllamacpp = pytest.importorskip("xllamacpp")
    if not WEIGHTS.is_file():
        pytest.skip("no weights: make models")
    params = xllamacpp.CommonParams()
    params.model.path, params.n_ctx, params.fit_params = str(WEIGHTS), 2048, False
    params.verbosity, params.n_parallel, params.hostnames = -1, 1, ["127.0.0.1"]
    params.model_alias = "m"
    real = xllamacpp.Server(params)
    with opened(Fake(), real.listening_address, LLAMA) as rt:
        served = probed(rt)
    del real
    local = {"runtime": "embedded", "weights": str(WEIGHTS), "model": "smol", "context": 2048}
    inference = {"prefer": "local", "local": local, "remote": None}
    with open_profile("detached", policy={"grants": []}, inference=inference) as embedded:
        within = probed(embedded)
    for found in (served, within):
        assert {each: found.capabilities[each] for each in REAL} == REAL
        assert found.capabilities[M.TOOLS] is not ENFORCED  # a model without a template for them
        assert found.requests == 5
        assert found.tokens <= found.most_tokens <= 64
    assert [each.capabilities.facts.fingerprint.known for each in (served, within)] == [False, True]
