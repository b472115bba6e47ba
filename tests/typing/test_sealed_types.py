# SPDX-License-Identifier: Apache-2.0
"""P1 in the types: an embedding program that hands over something unsealed does not pass mypy.

Each snippet is a program of an embedding developer. All are checked in one run of `mypy --strict`, against
the types of the runner. A wrong snippet must fail on its marked line, with the expected error and no other.
"""

import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
WRONG = "# wrong"

RIGHT = {
    "right_profile": """
        from runner import AgentLoop, RunResult, SealedClient, SealedTools, open_profile

        def ask(client: SealedClient, tools: SealedTools, question: str) -> RunResult:
            return AgentLoop(client=client, tools=tools).run(question)

        with open_profile("detached") as rt:
            answer: str = ask(rt.client, rt.tools, "When is the hearing?").answer
    """,
    "right_seal": """
        from collections.abc import Sequence

        from runner import AgentLoop, Perimeter
        from runner.kernel.ports import Backend, Tool

        def loop(perimeter: Perimeter, backend: Backend, tools: Sequence[Tool]) -> AgentLoop:
            return AgentLoop(client=perimeter.seal(backend), tools=perimeter.seal_tools(tools))
    """,
    "right_release": """
        from typing import assert_never

        from runner import Allowed, Denied, Redacted
        from runner.kernel.decisions import Release

        def describe(decision: Release) -> str:
            match decision:
                case Allowed():
                    return "sent"
                case Redacted(spans=spans):
                    return f"sent without {len(spans)} spans"
                case Denied(reason=reason):
                    return reason
                case _:
                    assert_never(decision)
    """,
    "right_verdict": """
        from typing import assert_never

        from runner import Allow, Ask, Deny
        from runner.kernel.decisions import ToolVerdict

        def describe(verdict: ToolVerdict) -> str:
            match verdict:
                case Allow(rule=rule) | Ask(rule=rule):
                    return rule
                case Deny(hint=hint):
                    return hint
                case _:
                    assert_never(verdict)
    """,
    "right_fakes": """
        from runner.kernel.ports import Backend, Clock, LogStore, SaltStore, Signer, Tool
        from runner.testing import (
            FakeTool, FrozenClock, MemoryLogStore, MemorySaltStore, MemorySigner, ScriptedBackend,
        )

        backend: Backend = ScriptedBackend(replies=["Forty-two."])
        clock: Clock = FrozenClock()
        store: LogStore = MemoryLogStore()
        salts: SaltStore = MemorySaltStore()
        signer: Signer = MemorySigner()
    """,
}

# The expected error names the argument and the type it wants.
REJECTED: Mapping[str, tuple[str, str]] = {
    "raw_backend": (
        """
        from runner import AgentLoop, SealedTools
        from runner.kernel.ports import Backend

        def loop(backend: Backend, tools: SealedTools) -> AgentLoop:
            return AgentLoop(client=backend, tools=tools)  # wrong
        """,
        r'Argument "client" to "AgentLoop" has incompatible type "Backend"; expected "SealedClient"',
    ),
    "raw_fake": (
        """
        from runner import AgentLoop, SealedTools
        from runner.testing import ScriptedBackend

        def loop(tools: SealedTools) -> AgentLoop:
            return AgentLoop(client=ScriptedBackend(replies=["x"]), tools=tools)  # wrong
        """,
        r'Argument "client" to "AgentLoop" has incompatible type "ScriptedBackend"; expected "SealedClient"',
    ),
    "raw_callable": (
        """
        from runner import AgentLoop, SealedClient

        def deadline(case: str) -> str:
            return case

        def loop(client: SealedClient) -> AgentLoop:
            return AgentLoop(client=client, tools=deadline)  # wrong
        """,
        r'Argument "tools" to "AgentLoop" has incompatible type ".*Callable.*"; expected "SealedTools"',
    ),
    "raw_tools": (
        """
        from runner import AgentLoop, SealedClient
        from runner.kernel.ports import Tool

        def loop(client: SealedClient, tool: Tool) -> AgentLoop:
            return AgentLoop(client=client, tools=[tool])  # wrong
        """,
        r'Argument "tools" to "AgentLoop" has incompatible type "list\[Tool\]"; expected "SealedTools"',
    ),
    "raw_tool": (
        """
        from runner import AgentLoop, SealedClient
        from runner.kernel.ports import Tool

        def loop(client: SealedClient, tool: Tool) -> AgentLoop:
            return AgentLoop(client=client, tools=tool)  # wrong
        """,
        r'Argument "tools" to "AgentLoop" has incompatible type "Tool"; expected "SealedTools"',
    ),
    "no_tools": (
        """
        from runner import AgentLoop, SealedClient

        def loop(client: SealedClient) -> AgentLoop:
            return AgentLoop(client=client)  # wrong
        """,
        r'Missing named argument "tools" for "AgentLoop"',
    ),
    "subclass": (
        """
        from runner import SealedClient

        class Mine(SealedClient):  # wrong
            pass
        """,
        r'Cannot inherit from final class "SealedClient"',
    ),
    "two_of_three_releases": (
        """
        from typing import assert_never

        from runner import Allowed, Redacted
        from runner.kernel.decisions import Release

        def may_leave(decision: Release) -> bool:
            match decision:
                case Allowed() | Redacted():
                    return True
                case _:
                    assert_never(decision)  # wrong
        """,
        r'Argument 1 to "assert_never" has incompatible type "Denied"; expected "Never"',
    ),
    "two_of_three_verdicts": (
        """
        from typing import assert_never

        from runner import Allow, Deny
        from runner.kernel.decisions import ToolVerdict

        def runs(verdict: ToolVerdict) -> bool:
            match verdict:
                case Allow():
                    return True
                case Deny():
                    return False
                case _:
                    assert_never(verdict)  # wrong
        """,
        r'Argument 1 to "assert_never" has incompatible type "Ask"; expected "Never"',
    ),
    "changed_decision": (
        """
        from runner import Allow

        def widen(verdict: Allow) -> None:
            verdict.rule = "anything"  # wrong
        """,
        r'Property "rule" defined in "Allow" is read-only',
    ),
}


def dedented(text: str) -> str:
    lines = text.strip("\n").splitlines()
    indent = len(lines[0]) - len(lines[0].lstrip())
    return "\n".join(line[indent:] for line in lines).rstrip() + "\n"


SOURCES = {name: dedented(text) for name, text in RIGHT.items()} | {
    name: dedented(text) for name, (text, _) in REJECTED.items()
}


@pytest.fixture(scope="module")
def errors(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[tuple[int, str]]]:
    """The (line, message) of every error mypy has with each snippet, from one run over all of them."""
    folder = tmp_path_factory.mktemp("embedding")
    for name, source in SOURCES.items():
        (folder / f"{name}.py").write_text(source, encoding="utf-8")
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--hide-error-context"]
    command += ["--config-file", str(ROOT / "pyproject.toml"), "--cache-dir", str(ROOT / ".mypy_cache")]
    command += ["--follow-imports", "silent", *(str(folder / f"{name}.py") for name in SOURCES)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode in {0, 1}, done.stdout + done.stderr
    found: dict[str, list[tuple[int, str]]] = {name: [] for name in SOURCES}
    for path, line, message in re.findall(r"^(.*?):(\d+): error: (.*)$", done.stdout, re.MULTILINE):
        found[Path(path).stem].append((int(line), message))
    return found


@pytest.mark.parametrize("name", RIGHT)
def test_p1_a_program_that_holds_sealed_objects_passes(
    errors: dict[str, list[tuple[int, str]]], name: str
) -> None:
    assert errors[name] == []


@pytest.mark.parametrize("name", REJECTED)
def test_p1_i7_a_program_that_goes_round_the_seal_is_rejected(
    errors: dict[str, list[tuple[int, str]]], name: str
) -> None:
    [line] = [number for number, text in enumerate(SOURCES[name].splitlines(), start=1) if WRONG in text]
    [(found, message)] = errors[name]
    assert found == line
    assert re.match(REJECTED[name][1], message)
