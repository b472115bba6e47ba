# SPDX-License-Identifier: Apache-2.0
"""I6, P1: a statute that a client file quotes may still be asked about, and nothing else of that file."""

from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from runner import open_profile
from runner.capability.publictexts import MOST_BYTES, MOST_FILES
from runner.kernel.errors import ConfigError, EgressDenied
from runner.kernel.inference import InferenceRequest
from runner.kernel.messages import Message, Role, ToolCall
from runner.testing import ScriptedServer

LAW = "Qualunque fatto doloso o colposo, che cagiona ad altri un danno, obbliga a risarcire il danno."
OWN = "Il giorno prima della firma disse al fratello che avrebbe venduto la barca senza dirlo a nessuno."


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AKAION_HOME", str(tmp_path / "home"))


def sent_after_reading(tmp_path: Path, public: str | None) -> list[bool]:
    """Read a C3 file that quotes the law; say of the law and of its own words whether they may leave."""
    cases = tmp_path / "cases"
    cases.mkdir()
    (cases / "a.txt").write_text(f"{LAW}\n{OWN}\n", encoding="utf-8")

    async def ask() -> list[bool]:
        with (
            ScriptedServer(replies=["ok"] * 9) as server,
            open_profile(
                "attached",
                policy={"grants": [{"tool": "read_file", "paths": [{"path": str(cases), "class": "C3"}]}]},
                perimeter={"max_egress_class": "C1", "public_texts": public},
                inference={
                    "prefer": "remote",
                    "local": None,
                    "remote": {"backend": "openai", "endpoint": server.url, "model": "m"},
                },
            ) as runtime,
        ):
            async with runtime.client.task("read") as task:
                call = ToolCall(tool="read_file", arguments={"path": "cases/a.txt"}, origin=task.goal)
                assert (await runtime.tools.call(call, task=task)).status == "ok"
            said = []
            for text in (LAW, OWN, f"{LAW} {OWN}"):
                async with runtime.client.task(f"Explain: {text}") as task:
                    message = Message(role=Role.USER, blocks=(task.goal,))
                    try:
                        await runtime.client.infer(InferenceRequest(messages=(message,)), task=task)
                    except EgressDenied:
                        said.append(False)
                    else:
                        said.append(True)
            return said

    return anyio.run(ask)


def test_i6_what_a_file_quotes_of_a_public_text_is_no_echo_of_it(tmp_path: Path) -> None:
    law = tmp_path / "law"
    law.mkdir()
    (law / "civil code.txt").write_text(f"Art. 2043.\n{LAW}\n", encoding="utf-8")
    assert sent_after_reading(tmp_path, str(law)) == [True, False, False]


def test_i6_without_the_profile_saying_so_it_is(tmp_path: Path) -> None:
    assert sent_after_reading(tmp_path, None) == [False, False, False]


def opened(public: Path, granted: Path) -> None:
    open_profile(
        "detached",
        policy={"grants": [{"tool": "read_file", "paths": [str(granted)]}]},
        perimeter={"public_texts": str(public)},
        inference={"local": {"runtime": "llamacpp", "endpoint": "http://127.0.0.1:9", "model": "m"}},
    )


@pytest.mark.parametrize(
    ("public", "granted"), [("cases/a.txt", "cases"), ("cases", "cases"), ("cases", "cases/rossi")]
)
def test_p1_no_private_file_becomes_public_by_where_it_lies(
    public: str, granted: str, tmp_path: Path
) -> None:
    (tmp_path / "cases" / "rossi").mkdir(parents=True)
    (tmp_path / "cases" / "a.txt").write_text(OWN, encoding="utf-8")
    with pytest.raises(ConfigError, match="public_texts lie here"):
        opened(tmp_path / public, tmp_path / granted)
    (tmp_path / "law").symlink_to(tmp_path / "cases")
    with pytest.raises(ConfigError, match="public_texts lie here"):
        opened(tmp_path / public.replace("cases", "law"), tmp_path / granted)


def too_many(folder: Path) -> None:
    for number in range(MOST_FILES + 1):
        (folder / f"{number}.txt").write_text("x", encoding="utf-8")


def too_large(folder: Path) -> None:
    (folder / "a.txt").write_text("a " * (MOST_BYTES // 4), encoding="utf-8")
    (folder / "b.txt").write_text("b " * (MOST_BYTES // 4 + 1), encoding="utf-8")


def a_link_alone(folder: Path) -> None:
    (folder.parent / "private.txt").write_text(OWN, encoding="utf-8")
    (folder / "a.txt").symlink_to(folder.parent / "private.txt")


def no_text(folder: Path) -> None:
    (folder / "a.txt").write_bytes(b"\xff\xfe\x00")


def none(folder: Path) -> None:
    folder.rmdir()


@pytest.mark.parametrize("make", [too_many, too_large, a_link_alone, no_text, none])
def test_i7_what_cannot_be_read_whole_is_a_mistake_at_the_start(
    make: Callable[[Path], None], tmp_path: Path
) -> None:
    law, cases = tmp_path / "law", tmp_path / "cases"
    law.mkdir()
    cases.mkdir()
    make(law)
    with pytest.raises(ConfigError) as caught:
        opened(law, cases)
    assert {mistake.where for mistake in caught.value.mistakes} == {"perimeter.public_texts"}
