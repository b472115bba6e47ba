# SPDX-License-Identifier: Apache-2.0
"""The parts of a run, done in this process or in several, and added up in their order.

Owns the order of the work. A part is known by the run's seed and its own bounds, and begins with a record and
a receiver that hold nothing: in which process it is done, and when, makes no difference to what comes of it.
Processes are started anew (`spawn`), for a forked one would share its parent's threads.
"""

import multiprocessing
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cache, partial
from typing import Final, Literal, assert_never

import anyio

from runner.adapters.leakbench.bench import Bench, Outcome
from runner.adapters.leakbench.benign import OWN, PUBLIC, Generator
from runner.adapters.leakbench.house import House, open_house
from runner.adapters.leakbench.ledger import Ledger
from runner.adapters.leakbench.plan import DEFENCES, Defence, Plant, trial
from runner.adapters.leakbench.receiver import Receiver
from runner.adapters.leakbench.tally import Step, Tally

SIZE: Final = 200
"""Trials in one part."""
BENIGN_SHARE: Final = 40
"""One ordinary text for so many trials, behind each defence; at least `BENIGN_LEAST`."""
BENIGN_LEAST: Final = 20
LOCAL_SHARE: Final = 50
"""One trial that asks the local model only, for so many others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What is run: the profile `named`, so many `trials`, from `seed`."""

    named: str
    trials: int
    seed: int

    @property
    def benign(self) -> int:
        """How many ordinary texts are typed behind each defence."""
        return max(BENIGN_LEAST, self.trials // BENIGN_SHARE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Trials `first` to `last` (excluded) of a run, or ordinary texts, or trials that ask the local model."""

    what: Literal["trials", "benign", "local"]
    first: int
    last: int


def parts_of(order: Order) -> Iterator[Part]:
    """Yield the parts of a run, in order."""
    counts: tuple[tuple[Literal["trials", "benign", "local"], int], ...] = (
        ("trials", order.trials),
        ("benign", order.benign),
        ("local", max(1, order.trials // LOCAL_SHARE)),
    )
    for what, count in counts:
        for first in range(0, count, SIZE):
            yield Part(what=what, first=first, last=min(first + SIZE, count))


def run(order: Order, workers: int) -> Iterator[tuple[int, Tally]]:
    """Do the parts of `order` in `workers` processes; yield after each how many trials it had, and its tally.

    One worker is this process. Raises `ConfigError` with every mistake of the profile.
    """
    with Receiver() as receiver:
        house = _house(order.named, receiver)
        if workers == 1:
            for part in parts_of(order):
                yield part.last - part.first, anyio.run(_do, house, receiver, order, part)
            return
    parts = tuple(parts_of(order))
    with multiprocessing.get_context("spawn").Pool(min(workers, len(parts))) as pool:
        tallies = pool.imap(partial(_do_elsewhere, order), parts)
        yield from ((part.last - part.first, tally) for part, tally in zip(parts, tallies, strict=True))


def _house(named: str, receiver: Receiver) -> House:
    return open_house(named, receiver.url, own=OWN, public=PUBLIC)


@cache
def _workplace(named: str) -> tuple[House, Receiver]:
    """Return what a worker process keeps between parts: a house, and a receiver that ends with it."""
    receiver = Receiver()
    receiver.__enter__()
    return _house(named, receiver), receiver


def _do_elsewhere(order: Order, part: Part) -> Tally:
    house, receiver = _workplace(order.named)
    return anyio.run(_do, house, receiver, order, part)


async def _do(house: House, receiver: Receiver, order: Order, part: Part) -> Tally:
    """Return the tally of `part`."""
    tally = Tally()
    async with _bench(house, receiver, f"{order.seed}/{part.what}/{part.first}") as bench:
        match part.what:
            case "trials":
                for number in range(part.first, part.last):
                    await _try(bench, order, number, tally)
            case "benign":
                await _ask_ordinary(bench, order, part, tally)
            case "local":
                await _ask_locally(bench, order, part, tally)
            case _:
                assert_never(part.what)
    return tally


@asynccontextmanager
async def _bench(house: House, receiver: Receiver, seed: str) -> AsyncIterator[Bench]:
    ledger = Ledger()
    with house.trace(ledger, seed) as trace:
        yield Bench(house=house, receiver=receiver, ledger=ledger, trace=trace)


async def _try(bench: Bench, order: Order, number: int, tally: Tally) -> None:
    """Do one trial; what goes wrong in it is counted by its kind, and never quoted (I12)."""
    each = trial(number, order.seed)
    try:
        tally.add(each, await bench.run(each), bench.house.ceiling)
    except Exception as error:  # noqa: BLE001 - any error at all fails the run, and the others go on
        tally.faults[f"{type(error).__name__} in {each.carrier.value}"] += 1
        bench.forget()


async def _ask_ordinary(bench: Bench, order: Order, part: Part, tally: Tally) -> None:
    """Type ordinary texts behind each defence, and decide one call of a granted tool for each."""
    calls = bench.house.asks()
    texts = Generator(f"{order.seed}/{part.first}").texts(part.last - part.first)
    for number, text in enumerate(texts, part.first):
        for defence in DEFENCES:
            result = await bench.ask(text.text, defence)
            tally.benign[defence, result.outcome] += 1
            tally.match(result.matching)
            if defence is Defence.BOTH:  # the question itself: a release never asks
                tally.steps[Step.DENIED if result.outcome is Outcome.DENIED else Step.ALONE] += 1
        if calls:
            tally.steps[Step.ASKED if calls[number % len(calls)] else Step.ALONE] += 1


async def _ask_locally(bench: Bench, order: Order, part: Part, tally: Tally) -> None:
    """Do trials whose client is the local one, and count what arrived at the remote one nevertheless."""
    for number in range(part.first, part.last):
        each = trial(number * len(DEFENCES) + DEFENCES.index(Defence.BOTH), order.seed)
        if each.plant is not Plant.SAID:
            tally.local["trials"] += 1
            tally.local["received"] += await bench.run_locally(each)
