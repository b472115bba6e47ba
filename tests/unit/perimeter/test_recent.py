# SPDX-License-Identifier: Apache-2.0
"""I6: what is split over blocks, or over requests, is seen when its last piece would leave."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from runner.kernel.errors import EgressDenied
from runner.kernel.inference import Address, InferenceRequest
from runner.kernel.labels import DataClass
from runner.kernel.messages import Block, Message, Role
from runner.kernel.ports import Locality
from runner.kernel.registers import Listed
from runner.perimeter.classify import FRAGMENTS, Classifier, compile_registers
from runner.perimeter.classify.readings import every_reading
from runner.perimeter.judged import JudgedTexts
from runner.perimeter.recent import SENDS, RecentSends, place_of
from runner.perimeter.seams import FARTHEST, NEAR, PIECES, REACH, across

CLIENT = Listed(file="r", line=1, names=("Petronilla Vangelista",))
FINDER = Classifier(FRAGMENTS, compile_registers(clients=[CLIENT], own=[], public=[], key=b"k" * 16))
KEY = "AKIA" + "IOSFODNN7EXAMPLE"
SPLITS = [
    pytest.param("Dimmi di Petronilla", "Vangelista: quanto deve?", id="a client"),
    pytest.param(f"use {KEY[:9]}", f"{KEY[9:]} please", id="a credential"),
]
Worlds = Callable[..., Any]


def _remote(make_world: Worlds, **changes: Any) -> Any:
    return make_world(
        replies=["ok"] * 6,
        local=False,
        ceiling=DataClass.C1,
        locality=Locality.REMOTE,
        fragments=FINDER,
        **changes,
    )


def _asking(*blocks: Block) -> InferenceRequest:
    return InferenceRequest(messages=(Message(role=Role.USER, blocks=blocks),))


@pytest.mark.anyio
@pytest.mark.parametrize(("first", "second"), SPLITS)
async def test_what_is_split_over_two_blocks_of_a_message_is_denied(
    first: str, second: str, make_world: Worlds
) -> None:
    world = _remote(make_world)
    with world.client.task("goal") as task:
        blocks = [task.foreign(text, declared=DataClass.C0, source="typed") for text in (first, second)]
        with pytest.raises(EgressDenied):
            await world.client.infer(_asking(*blocks), task=task)
    assert world.backend.transport.sent == []


@pytest.mark.anyio
@pytest.mark.parametrize(("first", "second"), SPLITS)
async def test_what_is_split_over_two_requests_is_denied_with_the_second(
    first: str, second: str, make_world: Worlds
) -> None:
    """In one task and over two: who types the pieces does not have to stay in one."""
    for tasks in (1, 2):
        world = _remote(make_world)
        with world.client.task(first) as task:
            await world.client.infer(_asking(task.goal), task=task)
            if tasks == 1:
                later = task.foreign(second, declared=DataClass.C0, source="typed")
                with pytest.raises(EgressDenied):
                    await world.client.infer(_asking(task.instruction("Go on."), later), task=task)
        if tasks > 1:
            with world.client.task(second) as task, pytest.raises(EgressDenied):
                await world.client.infer(_asking(task.goal), task=task)
        assert len(world.backend.transport.sent) == 1


LONG = "How is a notice of default usually structured, and which parts may be left out? " * 20


async def _left(world: Any, kind: str, texts: Sequence[str]) -> bool:
    """Send `texts` as a question or as a batch; say whether they left."""
    with world.client.task("goal") as task:
        blocks = [task.foreign(text, declared=DataClass.C0, source="typed") for text in texts]
        try:
            if kind == "ask":
                await world.client.infer(_asking(*blocks), task=task)
            else:
                await world.client.embed(blocks, task=task)
        except EgressDenied:
            return False
    return True


@pytest.mark.anyio
@pytest.mark.parametrize(
    "kinds", [("ask", "ask"), ("embed", "embed"), ("ask", "embed"), ("embed", "ask")], ids="-".join
)
@pytest.mark.parametrize("between", range(NEAR + 1))
async def test_a_credential_that_is_split_over_what_goes_to_one_place_is_denied(
    kinds: tuple[str, str], between: int, make_world: Worlds
) -> None:
    """Whatever is asked of it, and with long harmless texts between the two: `NEAR` pieces apart, no more."""
    world = _remote(make_world)
    assert await _left(world, kinds[0], [f"use {KEY[:9]}"])
    for number in range(between):
        assert await _left(world, "ask" if number % 2 else "embed", [f"{number} {LONG}"])
    assert await _left(world, kinds[1], [f"{KEY[9:]} please"]) is (between >= NEAR)


@pytest.mark.anyio
@pytest.mark.parametrize("kind", ["ask", "embed"])
async def test_a_credential_in_one_request_is_denied_with_a_long_text_between(
    kind: str, make_world: Worlds
) -> None:
    world = _remote(make_world)
    assert not await _left(world, kind, [f"use {KEY[:9]}", LONG, f"{KEY[9:]} please"])
    assert await _left(world, kind, ["Dimmi di Petronilla", LONG, "Vangelista"]), "two words are two people's"


def test_a_place_is_a_host() -> None:
    one, other = (Address(scheme="https", host=host, port=port) for host, port in (("A.x", 1), ("a.x", 2)))
    assert place_of(one) == place_of(other) != place_of(Address(scheme="https", host="b.x", port=1))


def test_of_a_large_batch_the_last_texts_are_remembered() -> None:
    recent = RecentSends()
    recent.remember("a", [f"text {at}" for at in range(2_000)])
    assert recent.before("a", []) == [f"text {at}" for at in range(2_000 - PIECES, 2_000)]


@pytest.mark.anyio
async def test_what_was_denied_is_not_remembered(make_world: Worlds) -> None:
    """Only what has left can be put together with what leaves: a denial does not spread."""
    world = _remote(make_world)
    with world.client.task("Petronilla", data_class=DataClass.C2) as task, pytest.raises(EgressDenied):
        await world.client.infer(_asking(task.goal), task=task)
    with world.client.task("Vangelista: quanto deve?") as task:
        await world.client.infer(_asking(task.goal), task=task)
    assert len(world.backend.transport.sent) == 1


@pytest.mark.anyio
async def test_ordinary_questions_one_after_the_other_pass(make_world: Worlds) -> None:
    world = _remote(make_world)
    for goal in ("Che cosa dice l'art. 2043 c.c.?", "E l'art. 2049?", "Chi risponde dei figli?"):
        with world.client.task(goal) as task:
            await world.client.infer(_asking(task.goal), task=task)
    assert len(world.backend.transport.sent) == 3


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("locality", "kept"), [(Locality.L2, []), (Locality.L1, ["goal one"]), (Locality.L0, ["goal one"])]
)
async def test_i12_what_stays_on_a_machine_good_enough_for_c3_is_not_kept(
    locality: Locality, kept: list[str], make_world: Worlds
) -> None:
    """Put together it may go there too. To a weaker one C3 may not, so its pieces are still looked for."""
    world = make_world(replies=["ok"], locality=locality, fragments=FINDER)
    with world.client.task("goal one") as task:
        await world.client.infer(_asking(task.goal), task=task)
    assert len(world.backend.transport.sent) == 1
    assert world.perimeter._recent.before(place_of(world.backend.address), []) == kept


@pytest.mark.anyio
async def test_i12_no_text_stays_in_memory_for_having_been_read(make_world: Worlds) -> None:
    world = make_world(
        replies=["ok"], local=False, ceiling=DataClass.C1, locality=Locality.REMOTE,
        classifier=Classifier(), fragments=FINDER,
    )  # fmt: skip
    with world.client.task("Che cosa dice l'art. 2043 c.c.?") as task:
        assert every_reading.cache_info().currsize == 0
        await world.client.infer(_asking(task.goal), task=task)
        assert every_reading.cache_info().currsize == 0
    assert len(world.backend.transport.sent) == 1


def test_what_was_sent_lately_comes_before_what_is_not_repeated() -> None:
    recent = RecentSends()
    recent.remember("a", ["goal", "one"])
    recent.remember("a", ["goal", "two"])
    recent.remember("b", ["other"])
    assert recent.before("a", ["goal", "three"]) == ["one", "two"]
    assert recent.before("b", []) == ["other"]
    assert recent.before("c", []) == []


def test_only_the_last_sends_are_remembered() -> None:
    recent = RecentSends()
    for at in range(SENDS + 1):
        recent.remember("a", [f"text {at}"])
    assert recent.before("a", []) == [f"text {at}" for at in range(1, SENDS + 1)]


@pytest.mark.parametrize("length", [2 * REACH, 2 * REACH + 4, 100_000])
def test_of_a_long_text_both_ends_are_kept(length: int) -> None:
    recent = RecentSends()
    text = "a " * (length // 4) + "z " * (length // 4)
    recent.remember("a", [text])
    (kept,) = recent.before("a", [])
    assert (kept[:REACH], kept[-REACH:]) == (text[:REACH], text[-REACH:])
    assert len(kept) == min(length, 2 * REACH + 1)


def test_of_a_long_word_as_much_is_kept_as_is_looked_at() -> None:
    recent = RecentSends()
    head = f"token eyJ{'hbGci' * 200}"
    recent.remember("a", [f"{'word ' * 500}{head}", "b" * 100_000])
    ends, endless = recent.before("a", [])
    assert ends.endswith(head[6:])
    assert len(endless) == 2 * FARTHEST + 1
    across_sends = across([ends, f"{'hbGci' * 50}.eyJzdWIiOiIxMjM0In0.sig"], FINDER, JudgedTexts())
    assert across_sends is DataClass.C3


def test_i12_a_repr_shows_no_text() -> None:
    recent = RecentSends()
    recent.remember("a", ["Rossi"])
    assert "Rossi" not in repr(recent)
