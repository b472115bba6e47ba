# SPDX-License-Identifier: Apache-2.0
"""P1, I8: a model that sees tokens learns nothing about what stands behind them, however it asks.

Two practices differ in their secrets only: same kinds, other values, other lengths, other letters. A
scripted model elsewhere asks the same adaptive questions of both: by searches, paths, answers, schemas,
lengths, guesses in clear, altered tokens, retries. It learns something if and only if what it receives
differs. What it receives is compared byte by byte, tokens (which are random) named by the order in which they
appear. `AKAION_ORACLE_QUESTIONS` sets how many are asked: the documentation gives the figure for 1000.
"""

import base64
import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from runner import HostTool, open_profile
from runner.assembly.tools import shipped_tools
from runner.capability.profile import read_profile
from runner.capability.sandbox.bubblewrap import why_not
from runner.kernel.config import parse_config
from runner.kernel.errors import ConfigError
from runner.kernel.messages import JsonObject
from runner.testing import ScriptedServer, first_instance

TOKEN: Final = re.compile(r"\[[A-Z][A-Z0-9_]*_[bcdfghjkmnpqrstvwxz]{6}\]")
QUESTIONS: Final = int(os.environ.get("AKAION_ORACLE_QUESTIONS", "240"))

ONE: Final = {
    "code": "RSSMRA80A01H501U",
    "mail": "mario.rossi@example.it",
    "iban": "IT60X0542811101000000123456",
    "client": "Rossi Mario",
}
OTHER: Final = {
    "code": "VRDGPP75T41F205R",
    "mail": "giuseppina.verdi-brambilla@posta.example.com",
    "iban": "DE89370400440532013000",
    "client": "Verdi Brambilla Giuseppina",
}
FILES: Final = {
    "lease.txt": (
        "Lease of the shop in Pisa",
        "The tenant {client} has the fiscal code {code} and pays 900 euro",
        "The rent goes to IBAN {iban} on the first of the month",
        "Write to {mail} before the end of June",
    ),
    "notes.txt": (
        "Notes of the meeting",
        "{client} asked for a lower rent; the code {code} stands in the lease",
        "Nobody else may know",
        *["The rent of the shop is due on the first of the month"] * 30,
    ),
    "{code}.txt": ("A file of {client}", "The answer goes to {mail}"),
    "Zeta.txt": ("A last file, with nothing in it but the rent of 900 euro",),
}
GOALS: Final = (
    "What does the tenant of the shop pay?",
    "What does {client} pay for the shop?",
    "Which letters of the fiscal code {code} stand for the surname?",
    "When must I write to {mail}?",
)


def probes() -> Iterator[str]:
    """What a model may try: the values themselves, in clear and in pieces, and words about them."""
    for secrets in (ONE, OTHER):
        for value in secrets.values():
            yield from (value, value.lower(), value.replace(" ", ""), value[:4], value[:8], value[-6:])
            yield from (value[3:9], value[0], value[::-1], " ".join(value), f"The tenant is {value}.")
            yield base64.b64encode(value.encode()).decode()
            yield hashlib.sha256(value.encode()).hexdigest()
            yield f"{len(value)} characters"
            yield f"lease/{value}.txt"
    yield from (
        "the rent of the shop",
        "900 euro",
        "first of the month",
        "fiscal code",
        "not found",
        "",
        "yes",
    )


PROBES: Final = tuple(probes())
FORMS: Final = (
    "{probe}",
    "{token}",
    "{token} {probe}",
    "{token}{token}",
    "is {token} {probe}?",
    "x{token}x",
    "{altered}",
    "{padded}",
    "{token} pays 900 euro",
    "900 euro, {probe}",
    "{last}",
    "lease/{token}.txt",
)


class Interrogator:
    """A model that asks. What it does next depends on what it received, and on nothing else."""

    def __init__(self) -> None:
        self.asked = 0
        self.names: dict[str, str] = {}
        self.received: list[str] = []

    def seen(self, text: str) -> str:
        """The text with each token named by when it came."""
        return TOKEN.sub(lambda found: self.names.setdefault(found[0], f"<token {len(self.names)}>"), text)

    def __call__(self, body: JsonObject) -> str:
        text = json.dumps(body, ensure_ascii=False, sort_keys=True)
        self.received.append(self.seen(text))
        self.asked += 1
        asked: Any = body["response_format"]
        schema = asked["json_schema"]["schema"]
        chance = int(hashlib.sha256(f"{self.asked} {self.received[-1]}".encode()).hexdigest(), 16)
        tokens = list(dict.fromkeys(TOKEN.findall(text)))
        return json.dumps(self.answer(schema, tokens, chance), ensure_ascii=False)

    def answer(self, schema: Any, tokens: list[str], chance: int) -> Any:
        value: Any = first_instance(schema)
        for name, member in schema["properties"].items():
            chance //= 7
            if "enum" in member:
                value[name] = member["enum"][chance % len(member["enum"])]
            elif member.get("type") == "string" and (name in schema.get("required", ()) or chance % 3):
                value[name] = self.words(tokens, chance, int(member.get("maxLength", 200)))
        return value

    def words(self, tokens: list[str], chance: int, longest: int) -> str:
        token = tokens[chance % len(tokens)] if tokens else "nothing"
        form = FORMS[chance // 11 % len(FORMS)]
        last = self.received[-1][-40:].replace("\\", "").replace('"', "")
        said = form.format(
            token=token,
            probe=PROBES[chance // 131 % len(PROBES)],
            altered=token.lower().replace("_", "-"),
            padded=token + "x" * max(0, longest - len(token)),
            last=re.sub(r"<token \d+>", "", last),
        )
        cut = said[:longest]
        return cut or "x"


@dataclass(frozen=True, kw_only=True)
class Heard:
    """What the model received in a practice, run by run, and what was done there."""

    received: list[list[str]]
    bodies: list[bytes]
    stops: list[str]
    tools: int


@dataclass(frozen=True, kw_only=True)
class Scene:
    """What a profile grants of the practice: the tools that may read its folder redacted, by name.

    `beside` are those that may only read it as it is: what they return is kept for its class, so that a later
    task of the runtime that repeats it stays here, and each task has one of its own then. With `mixed`, all
    may read another folder, which is not redactable. `folder` is what the practice calls its own, made of its
    secrets.
    """

    redactable: tuple[str, ...] = ("search_text", "read_file", "list_dir")
    beside: tuple[str, ...] = ()
    mixed: bool = False
    folder: str = "lease"

    def grants(self, practice: Path, other: Path) -> list[dict[str, Any]]:
        more: list[Any] = [str(other)] if self.mixed else []
        redacted = {"path": str(practice), "redactable": True}
        opened = [{"tool": tool, "paths": [redacted, *more]} for tool in self.redactable]
        shell = {"commands": ["grep", "cut", "wc", "ls"]}
        closed = [{"tool": tool, "paths": [str(practice), *more]} for tool in self.beside]
        return [*opened, *(grant | (shell if grant["tool"] == "shell" else {}) for grant in closed)]


SCENES: Final = {
    "files": Scene(),
    "documents": Scene(redactable=("read_document", "search_text", "list_dir", "read_file")),
    "mixed": Scene(mixed=True),
    "tools that do not veil": Scene(beside=("search_documents", "shell"), mixed=True),
    "a folder named after a client": Scene(folder="{client}"),
}
NO_SANDBOX: Final = why_not()


def interrogate(
    folder: Path, secrets: Mapping[str, str], scene: Scene, questions: int, monkeypatch: pytest.MonkeyPatch
) -> Heard:
    """Let the model ask its questions about a practice with these secrets."""
    monkeypatch.setenv("AKAION_HOME", str(folder / "home"))
    practice, other = folder / scene.folder.format(**secrets), folder / "other"
    practice.mkdir(parents=True)
    other.mkdir()
    (other / "b.txt").write_text("The rent of the shop in Lucca\n", encoding="utf-8")
    for name, lines in FILES.items():
        text = "\n".join(lines) + "\n"
        (practice / name.format(**secrets)).write_text(text.format(**secrets), encoding="utf-8")
    clients = folder / "clients.yaml"
    clients.write_text(f"- {secrets['client']}\n", encoding="utf-8")
    files = scene.grants(practice, other)
    received, stops, tools = [], [], 0
    model = Interrogator()
    with ScriptedServer(replies=[model] * (questions * 2)) as server:
        for hosts in ((), (HostTool(note),)):
            grants: list[dict[str, Any]] = [*files, *({"tool": "note", "trusted": True} for _ in hosts)]
            number = 0
            while model.asked < questions * (len(hosts) + 1) // 2:
                with open_profile("attached", tools=hosts, **profile(server, grants, clients)) as runtime:
                    while model.asked < questions * (len(hosts) + 1) // 2:
                        start = len(model.received)
                        goal = GOALS[number % len(GOALS)].format(**secrets)
                        result = runtime.loop().run(goal)
                        received.append(model.received[start:])
                        stops.append(str(result.stop))
                        tools += len(result.steps)
                        number += 1
                        if scene.beside:
                            break
        return Heard(received=received, bodies=server.bodies, stops=stops, tools=tools)


def note(text: str) -> str:
    """Keep a note."""
    return f"kept {len(text)} characters"


def profile(server: ScriptedServer, grants: list[dict[str, Any]], clients: Path) -> dict[str, Any]:
    return {
        "policy": {"grants": grants},
        "perimeter": {"max_egress_class": "C1", "redaction": "on", "registers": {"clients": str(clients)}},
        "inference": {
            "prefer": "remote",
            "local": None,
            "remote": {"backend": "openai", "endpoint": server.url, "model": "m", "tier": "constrained"},
        },
    }


@pytest.mark.parametrize("name", SCENES)
def test_p1_adaptive_questions_about_tokens_learn_nothing(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = SCENES[name]
    if NO_SANDBOX is not None and {"read_document", "shell"} & {*scene.redactable, *scene.beside}:
        pytest.skip(NO_SANDBOX)
    questions = QUESTIONS if name == "files" else QUESTIONS // 4
    one = interrogate(tmp_path / "a", ONE, scene, questions, monkeypatch)
    other = interrogate(tmp_path / "b", OTHER, scene, questions, monkeypatch)
    for run, (first, second) in enumerate(zip(one.received, other.received, strict=False)):
        for turn, (left, right) in enumerate(zip(first, second, strict=False)):
            assert left == right, f"run {run}, turn {turn}: what the model received depends on the secrets"
        assert len(first) == len(second), f"run {run}: the number of turns depends on the secrets"
    assert (one.stops, one.tools) == (other.stops, other.tools)
    assert len(one.received) == len(other.received)
    assert len(one.bodies) >= questions
    assert len(set(map(str, one.received))) > questions // 12, "it asked different things"
    for heard, secrets in ((one, ONE), (other, OTHER)):
        wires = b"".join(heard.bodies).decode()
        assert TOKEN.search(wires)
        secret = [line for lines in FILES.values() for line in lines if "{" in line]
        assert not any(line.format(**secrets) in wires for line in secret)


def test_p1_every_tool_that_may_read_redacted_was_asked(tmp_path: Path) -> None:
    """A tool that ships, and may be granted a redactable folder, stands in a scene; any other may not."""
    source = read_profile("attached", {})
    config = parse_config(source.data, file=source.file, locate=source.line)
    shipped = [tool.spec.name for tool in shipped_tools(config, source)]
    asked = {tool for scene in SCENES.values() for tool in scene.redactable}
    clients = tmp_path / "clients.yaml"
    clients.write_text("- Rossi Mario\n", encoding="utf-8")
    refused = {}
    with ScriptedServer(replies=[]) as server:
        for tool in shipped:
            grant = Scene(redactable=(tool,)).grants(tmp_path / "a", tmp_path / "b")
            with suppress(ConfigError):
                open_profile("attached", **profile(server, grant, clients))
                continue
            refused[tool] = True
    assert set(shipped) - set(refused) == asked
    assert set(refused) == {
        "search_documents",
        "shell",
        "web_fetch",
        "write_file",
        "patch_file",
        "move_to_bin",
    }
