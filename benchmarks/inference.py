# SPDX-License-Identifier: Apache-2.0
"""Measures what the perimeter costs a stream: through the runner, and straight to the same server.

Run: python benchmarks/inference.py [--rounds N] [--tokens N] (needs the `embedded` extra and `make models`)

The server is llama.cpp's, by way of `xllamacpp`, in a process of its own. Through the runner everything is
on: the gate, the questions about locality, the signed record on disk, the sealed client. Straight to it means
the same bytes by httpx, on a fresh connection too. Both ask in turn, each time a prompt that no cache has. A
ratio above 1 says that the runner was faster. The processor time of this process, which reads the replies, is
shown too: on a busy machine it says more than the clock.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import anyio
import httpx

from runner.assembly import Runtime, open_profile
from runner.capability.backends.llamacpp import LlamaCppBackend
from runner.capability.models import models_dir
from runner.kernel.inference import Address, InferenceRequest
from runner.kernel.labels import Label
from runner.kernel.messages import Block, BlockKind, Message, Role

WEIGHTS: Final = models_dir() / "SmolLM2-135M-Instruct.Q4_1.gguf"
CONTEXT: Final = 4096
SERVER: Final = """
import sys, xllamacpp
params = xllamacpp.CommonParams()
params.model.path, params.n_ctx, params.n_parallel, params.verbosity = sys.argv[1], int(sys.argv[2]), 1, -1
params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
params.hostnames, params.port = ["127.0.0.1"], 0
server = xllamacpp.Server(params)
print(server.listening_address, flush=True)
sys.stdin.read()
"""
ASKED: Final = "Write about the sea, its storms, its ships and the people who live on its coasts."


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """One reply: seconds until the first text, seconds in all, tokens, seconds of our processor."""

    first: float
    whole: float
    tokens: int
    processor: float

    @property
    def rate(self) -> float:
        """Tokens a second from the question to the end."""
        return self.tokens / self.whole

    @property
    def flow(self) -> float:
        """Tokens a second once the first has come."""
        return self.tokens / (self.whole - self.first)


@contextmanager
def serving() -> Iterator[Address]:
    """Serve the weights on loopback until the block is left."""
    command = [sys.executable, "-c", SERVER, str(WEIGHTS), str(CONTEXT)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        if process.stdin is None or process.stdout is None:
            raise RuntimeError("a process without pipes")
        port = int(process.stdout.readline().rpartition(":")[2])
        try:
            yield Address(scheme="http", host="127.0.0.1", port=port)
        finally:
            process.stdin.close()


def request_of(block: Block, tokens: int) -> InferenceRequest:
    """Return the question in `block`, streamed."""
    message = Message(role=Role.USER, blocks=(block,))
    return InferenceRequest(messages=(message,), max_tokens=tokens, stream=True)


def straight(codec: LlamaCppBackend, text: str, tokens: int) -> Timing:
    """Ask the server with httpx alone and read its events as they come."""
    wire = codec.encode(request_of(Block(id="b", kind=BlockKind.GOAL, text=text, label=Label()), tokens))
    began, busy, first, made = time.perf_counter(), time.process_time(), 0.0, 0
    with (
        httpx.Client(trust_env=False, timeout=120) as client,
        client.stream(
            "POST", f"{wire.address}{wire.path}", content=wire.body, headers=list(wire.headers)
        ) as reply,
    ):
        for line in reply.iter_lines():
            if not line.startswith("data: {"):
                continue
            event = json.loads(line[6:])
            if not first and any(choice["delta"].get("content") for choice in event["choices"]):
                first = time.perf_counter() - began
            made = (event.get("usage") or {}).get("completion_tokens", made)
    whole, busy = time.perf_counter() - began, time.process_time() - busy
    return Timing(first=first, whole=whole, tokens=made, processor=busy)


async def through(runtime: Runtime, text: str, tokens: int) -> Timing:
    """Ask through the sealed client; opening the task, which reads the text, counts."""
    began, busy, times = time.perf_counter(), time.process_time(), list[float]()
    async with runtime.client.task(text) as task:
        reply = await runtime.client.infer(
            request_of(task.goal, tokens), task=task, on_text=lambda _: times.append(time.perf_counter())
        )
        whole = time.perf_counter() - began
    made, busy = reply.usage.completion_tokens, time.process_time() - busy
    return Timing(first=times[0] - began, whole=whole, tokens=made, processor=busy)


async def measure(address: Address, rounds: int, tokens: int) -> list[tuple[Timing, Timing]]:
    """Return pairs of (through the runner, straight), after a warm-up of each."""
    local = {"runtime": "llamacpp", "endpoint": str(address), "model": WEIGHTS.stem, "context": CONTEXT}
    codec = LlamaCppBackend(name="local", model=WEIGHTS.stem, address=address, context=CONTEXT)
    pairs = []
    with open_profile("detached", inference={"local": local}, policy={"grants": []}) as runtime:
        for number in range(rounds + 1):
            ours = [f"Chapter {2 * number + 100}. {ASKED}", f"Chapter {2 * number + 101}. {ASKED}"]
            if number % 2:
                mine, plain = await through(runtime, ours[0], tokens), straight(codec, ours[1], tokens)
            else:
                plain = straight(codec, ours[1], tokens)
                mine = await through(runtime, ours[0], tokens)
            pairs.append((mine, plain))
    return pairs[1:]


def main() -> None:
    """Print the ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--tokens", type=int, default=96)
    arguments = parser.parse_args()
    if not WEIGHTS.is_file():
        print("inference: skipped, no weights: make models")
        return
    with tempfile.TemporaryDirectory() as home, serving() as address:
        os.environ["AKAION_HOME"] = str(Path(home))
        pairs = anyio.run(measure, address, arguments.rounds, arguments.tokens)
    for name, ratios in (
        ("tokens/s, question to end", [mine.rate / plain.rate for mine, plain in pairs]),
        ("tokens/s, after the first", [mine.flow / plain.flow for mine, plain in pairs]),
        ("time to first token", [plain.first / mine.first for mine, plain in pairs]),
    ):
        print(f"{name}: ratio median {statistics.median(ratios):.3f}, min {min(ratios):.3f}")
    for who, index in (("through the runner", 0), ("straight", 1)):
        found = [pair[index] for pair in pairs]
        first = 1e3 * statistics.median(timing.first for timing in found)
        rate = statistics.median(timing.rate for timing in found)
        busy = 1e3 * statistics.median(timing.processor for timing in found)
        print(f"{who}: first token {first:.0f} ms, {rate:.1f} tokens/s, {busy:.0f} ms of our processor")


if __name__ == "__main__":
    main()
