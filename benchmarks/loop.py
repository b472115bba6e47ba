# SPDX-License-Identifier: Apache-2.0
"""Loop overhead per step, side by side with peers in one run, and what `import runner` costs.

Every framework runs the same scripted model: STEPS calls of one trivial tool, then an answer. A scripted
model takes no time, so what is measured is the framework. Ours runs twice: with its record synced to the
disk, as it always is, and with the record in memory, which shows what the disk takes. Peers keep no record.
Ours asks the model twice a step (choose, then fill). Machines are shared and noisy: read the ratios.

pydantic-ai is measured where it is installed: pip install pydantic-ai-slim
"""

import contextlib
import importlib.util
import io
import logging
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import anyio

from runner.agent.loop import AgentLoop
from runner.agent.steps import Budget
from runner.capability.tools.host import HostTool
from runner.capability.transport.clock import SystemClock, SystemEntropy
from runner.capability.transport.logstore import FolderLogStore
from runner.capability.transport.salts import FileSaltStore
from runner.kernel.ports import Locality, LogStore, SaltStore
from runner.perimeter.classify import Classifier
from runner.perimeter.client import Registration
from runner.perimeter.gate import Perimeter
from runner.perimeter.policy import Policy, ToolGrant
from runner.perimeter.release import BackendTerms, Rules
from runner.perimeter.trace.log import HeaderFacts, Trace
from runner.testing import (
    FixedLocality,
    MemoryLogStore,
    MemorySaltStore,
    MemorySigner,
    ScriptedBackend,
    header_words,
)

STEPS: Final = 20
ROUNDS: Final = 5


def lookup(key: str) -> str:
    """Look a key up."""
    return f"value of {key}"


def ours(store: LogStore, salts: SaltStore) -> float:
    """Return the seconds of one run of STEPS calls with gate, policy and record on."""
    replies: list[dict[str, str]] = []
    for step in range(STEPS):
        replies += [{"tool": "lookup"}, {"key": f"k{step}"}]
    backend = ScriptedBackend(replies=[*replies, {"tool": "answer"}, {"answer": "done"}])
    tool = HostTool(lookup)
    trace = Trace.open(
        store=store,
        signer=MemorySigner(),
        salts=salts,
        clock=SystemClock(),
        entropy=SystemEntropy(),
        facts=_facts(),
    )
    terms = BackendTerms(name="scripted", local=True, address=backend.address, ceiling=None)
    registration = Registration(
        terms=terms, transport=backend.transport, locality=FixedLocality(locality=Locality.L2)
    )
    grant = ToolGrant(tool="lookup", effect=tool.effect, parameters=tool.spec.parameters)
    perimeter = Perimeter(
        rules=Rules(
            classifier=Classifier(), fault_as_c3=False, locality_c2=Locality.L0, locality_c3=Locality.L2
        ),
        policy=Policy(grants={"lookup": grant}),
        trace=trace,
        clock=SystemClock(),
        registrations={"scripted": registration},
    )
    loop = AgentLoop(
        client=perimeter.seal(backend), tools=perimeter.seal_tools([tool]), budget=Budget(steps=STEPS + 1)
    )
    started = time.perf_counter()
    result = loop.run("Look every key up.")
    seconds = time.perf_counter() - started
    trace.close()
    if len(result.steps) != STEPS:
        raise SystemExit(f"the run made {len(result.steps)} calls where {STEPS} were scripted")
    return seconds


def _facts() -> HeaderFacts:
    return HeaderFacts(**header_words(book="bench/book", backends=("scripted",)))


def ours_on_disk() -> float:
    """Return the seconds of a run whose record is synced before every effect."""
    with tempfile.TemporaryDirectory() as folder:
        book, rest = Path(folder) / "book", Path(folder) / "rest"
        rest.mkdir()
        with contextlib.closing(FileSaltStore(rest / "salts", book=book)) as salts:
            return ours(FolderLogStore(book, rest / "pin"), salts)


def ours_in_memory() -> float:
    """Return the seconds of a run whose record goes nowhere."""
    return ours(MemoryLogStore(), MemorySaltStore())


def datapizza() -> float:
    """Return the seconds of a run of datapizza's Agent."""
    from datapizza.agents import Agent
    from datapizza.core.clients import Client
    from datapizza.core.clients.models import ClientResponse
    from datapizza.tools import Tool
    from datapizza.type import FunctionCallBlock, TextBlock

    tool = Tool(func=lookup)

    class Scripted(Client):  # type: ignore[misc]  # the library ships no types
        """A model that follows the script."""

        calls = 0

        def _invoke(self, **_: Any) -> ClientResponse:  # noqa: ANN401 - the library's signature
            self.calls += 1
            if self.calls > STEPS:
                return ClientResponse(content=[TextBlock(content="done")], stop_reason="stop")
            call = FunctionCallBlock(
                id=str(self.calls), arguments={"key": f"k{self.calls}"}, name="lookup", tool=tool
            )
            return ClientResponse(content=[call], stop_reason="tool_calls")

        def _unused(self, *_: Any, **__: Any) -> Any:  # noqa: ANN401 - the library's signature
            raise NotImplementedError

        _a_invoke = _stream_invoke = _a_stream_invoke = _unused
        _structured_response = _a_structured_response = _convert_tool_choice = _unused

    agent = Agent(
        name="bench", client=Scripted("m", "s"), system_prompt="s", tools=[tool], max_steps=STEPS + 2
    )
    started = time.perf_counter()
    with contextlib.redirect_stdout(io.StringIO()):
        agent.run("Look every key up.")
    return time.perf_counter() - started


def pydantic_ai() -> float:
    """Return the seconds of a run of pydantic-ai's Agent."""
    from pydantic_ai import Agent
    from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
    from pydantic_ai.models.function import AgentInfo, FunctionModel

    calls = iter(range(STEPS))

    def scripted(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:  # noqa: ARG001 - their port
        step = next(calls, None)
        if step is None:
            return ModelResponse(parts=[TextPart("done")])
        return ModelResponse(parts=[ToolCallPart("lookup", {"key": f"k{step}"})])

    agent = Agent(FunctionModel(scripted), tools=[lookup])
    started = time.perf_counter()
    anyio.run(agent.run, "Look every key up.")
    return time.perf_counter() - started


def contenders() -> Iterator[tuple[str, Callable[[], float]]]:
    """Yield what can be measured here."""
    yield "akaion, record on disk", ours_on_disk
    yield "akaion, record in memory", ours_in_memory
    yield "datapizza Agent", datapizza
    if importlib.util.find_spec("pydantic_ai") is not None:
        yield "pydantic-ai", pydantic_ai
    else:
        print("pydantic-ai is not installed here: left out")


def import_cost(module: str) -> tuple[float, float]:
    """Return seconds and MiB of peak memory of a fresh interpreter that imports `module`."""
    program = (
        "import time; started = time.perf_counter(); "
        f"import {module}; spent = time.perf_counter() - started; "
        "status = open('/proc/self/status').read(); "
        "print(spent, int(status.split('VmHWM:')[1].split()[0]) / 1024)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    seconds, peak = done.stdout.split()
    return float(seconds), float(peak)


def main() -> None:
    """Print the table: per step, the median of interleaved rounds, and the ratio to the first peer."""
    logging.disable(logging.CRITICAL)
    rows = list(contenders())
    seconds: dict[str, list[float]] = {name: [] for name, _ in rows}
    for _ in range(ROUNDS):
        for name, measure in rows:
            seconds[name].append(measure())
    peer = statistics.median(seconds["datapizza Agent"])
    print(f"{'loop, ' + str(STEPS) + ' steps':28} {'ms/step':>9} {'x datapizza':>12}")
    for name, spent in seconds.items():
        median = statistics.median(spent)
        print(f"{name:28} {1000 * median / STEPS:9.2f} {median / peer:12.2f}")
    print(f"\n{'import':28} {'seconds':>9} {'peak MiB':>12}")
    for module in ("json", "runner", "datapizza.agents", "pydantic_ai"):
        if importlib.util.find_spec(module.partition(".")[0]) is not None:
            runs = [import_cost(module) for _ in range(3)]
            print(f"{module:28} {min(r[0] for r in runs):9.2f} {min(r[1] for r in runs):12.1f}")


if __name__ == "__main__":
    main()
