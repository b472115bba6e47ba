# SPDX-License-Identifier: Apache-2.0
"""I6, I7: a profile's registers, from the files a practice keeps to what leaves and what is refused."""

from pathlib import Path
from typing import Any

import pytest

from runner import ConfigError, open_profile
from runner.testing import ScriptedServer

CLIENTS = "- Officine Marassi S.r.l.\n"
OWN = "name,aliases,class\navv.bassi@studiobassi.example,,\n"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("AKAION_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def registers(tmp_path: Path) -> dict[str, str]:
    folder = tmp_path / "registers"
    folder.mkdir()
    (folder / "clients.yaml").write_text(CLIENTS, encoding="utf-8")
    (folder / "own.csv").write_text(OWN, encoding="utf-8")
    return {"clients": str(folder / "clients.yaml"), "own_identity": str(folder / "own.csv")}


def attached(url: str, registers: dict[str, str]) -> dict[str, Any]:
    return {
        "policy": {"grants": []},
        "perimeter": {"max_egress_class": "C1", "registers": registers},
        "inference": {
            "prefer": "remote",
            "local": None,
            "remote": {"backend": "openai", "endpoint": url, "model": "m", "tier": "constrained"},
        },
    }


@pytest.mark.parametrize(
    ("goal", "mark"),
    [
        ("When does a warranty expire?", "C1"),
        ("Write to avv.bassi@studiobassi.example about warranties", "C1"),
        ("Write to avv.galli@studiobassi.example about warranties", "C2"),
        ("What did officine marassi pay?", "C2"),
    ],
)
def test_registers_decide_what_a_typed_text_is(registers: dict[str, str], goal: str, mark: str) -> None:
    profile = attached("http://127.0.0.1:9", registers)
    with open_profile("attached", **profile) as runtime, runtime.perimeter.task(goal) as task:
        assert task.mark.data_class.name == mark


def test_a_client_named_by_a_register_does_not_leave(registers: dict[str, str]) -> None:
    with ScriptedServer(replies=[]) as server:
        with open_profile("attached", **attached(server.url, registers)) as runtime:
            result = runtime.loop().run("What did OFFICINE  MARASSI pay?")
        assert result.stop.value == "denied"
        assert b"MARASSI" not in b"".join(server.received)


def test_no_grant_may_write_where_a_register_lies(registers: dict[str, str]) -> None:
    folder = str(Path(registers["clients"]).parent)
    grants = [{"tool": "read_file", "access": "write", "paths": [folder]}]
    with pytest.raises(ConfigError, match="perimeter's own files"):
        open_profile("detached", policy={"grants": grants}, perimeter={"registers": registers})
    readable = [{"tool": "read_file", "paths": [folder]}]
    with pytest.raises(ConfigError, match="cannot be read"):
        open_profile("attached", **attached("http://127.0.0.1:9", {"clients": f"{folder}/none.yaml"}))
    open_profile("attached", **attached("http://127.0.0.1:9", registers) | {"policy": {"grants": readable}})


def test_a_line_that_cannot_be_looked_for_stops_the_profile(registers: dict[str, str]) -> None:
    Path(registers["clients"]).write_text("- Mario Rossi\n- di\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"clients\.yaml:2: "):
        open_profile("attached", **attached("http://127.0.0.1:9", registers))
