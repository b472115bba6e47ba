# SPDX-License-Identifier: Apache-2.0
"""The frozen words of the kernel: no content in a repr (I12), values that cannot change, ordered ranks."""

from collections.abc import AsyncIterator
from dataclasses import FrozenInstanceError
from typing import Any

import pytest

from runner.kernel.inference import Address, InferenceReply, InferenceRequest, WireReply, WireRequest
from runner.kernel.labels import BOTTOM, DataClass
from runner.kernel.messages import Block, BlockKind, Message, Role, ToolCall
from runner.kernel.ports import ApprovalRequest, Credential, Excerpt, GrantedCall, Locality, ToolOutput

SECRET = "Perodi-v-Delpiano"


async def _chunks() -> AsyncIterator[bytes]:
    yield SECRET.encode()


BLOCK = Block(id="b1", kind=BlockKind.GOAL, text=SECRET, label=BOTTOM)
EXCERPT = Excerpt(file="Studio/a.txt", line=1, text=SECRET)
WIRE = WireRequest(
    method="POST", address=Address(scheme="inproc"), path="/", headers=(), body=SECRET.encode()
)
VALUES: list[Any] = [
    BLOCK,
    EXCERPT,
    WIRE,
    Message(role=Role.USER, blocks=(BLOCK,)),
    InferenceRequest(messages=(Message(role=Role.USER, blocks=(BLOCK,)),)),
    InferenceReply(text=SECRET, finish="stop"),
    WireReply(status=200, chunks=_chunks()),
    ToolCall(tool="read_file", arguments={"path": SECRET}, origin=BLOCK),
    GrantedCall(arguments={"path": SECRET}, roots=()),
    ToolOutput(text=SECRET, excerpts=(EXCERPT,)),
    Credential(header="authorization", value=SECRET),
    ApprovalRequest(tool="write_file", data_class=DataClass.C3, rendering=SECRET),
]
each = pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)


@each
def test_i12_no_content_shows_in_a_repr(value: Any) -> None:
    assert SECRET not in repr(value)
    assert SECRET not in f"{value}"


@each
def test_values_are_frozen_and_hold_no_other_attribute(value: Any) -> None:
    name = next(iter(type(value).__dataclass_fields__))
    with pytest.raises(FrozenInstanceError):
        setattr(value, name, None)
    assert not hasattr(value, "__dict__")


def test_i10_locality_grades_rank_from_remote_to_contained() -> None:
    assert [grade.rank for grade in (Locality.REMOTE, Locality.L0, Locality.L1, Locality.L2)] == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("address", "text"),
    [
        (Address(scheme="http", host="127.0.0.1", port=8080), "http://127.0.0.1:8080"),
        (Address(scheme="inproc"), "inproc:"),
    ],
)
def test_an_address_reads_as_a_url(address: Address, text: str) -> None:
    assert str(address) == text
