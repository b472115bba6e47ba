# SPDX-License-Identifier: Apache-2.0
"""A signer process without the process, for tests: the bytes of each request go straight to the certifier."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from runner.kernel.errors import TraceError
from runner.kernel.ports import HeldHead
from runner.perimeter.trace.certify import Certifier
from runner.testing import MemorySigner

BOOK = "studio"


@dataclass
class Beside:
    """Implements `HeadKeeper`. `kept` is what it put on its disk, `asked` what it was asked, in order."""

    custody: str = "process"
    successor: str | None = None
    kept: bytes | None = None
    device: MemorySigner = field(default_factory=MemorySigner)
    asked: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """The signer ends and starts again with what it kept."""
        self.certifier = Certifier(
            signer=self.device,
            book=BOOK,
            custody="process",
            kept=self.kept,
            keep=self.keep,
            successor=self.successor,
        )

    def keep(self, data: bytes) -> None:
        self.kept = data

    def ask(self, **request: object) -> dict[str, Any]:
        self.asked.append(str(request["ask"]))
        answer: dict[str, Any] = json.loads(self.certifier.answer(json.dumps(request).encode()))
        if "refused" in answer:
            raise TraceError(answer["refused"])
        return answer

    @property
    def public_key(self) -> bytes:
        return bytes.fromhex(self.ask(ask="key")["public_key"])

    def sign(self, message: bytes, *, header: bytes = b"") -> bytes:
        del message
        return bytes.fromhex(self.ask(ask="sign", header=header.hex())["signature"])

    def head(self) -> HeldHead | None:
        head = self.ask(ask="head")["head"]
        if head is None:
            return None
        return HeldHead(log_no=head["log_no"], size=head["size"], root=bytes.fromhex(head["root"]))

    def grow(self, log_no: int, size: int, leaves: Sequence[bytes]) -> None:
        self.ask(ask="grow", log_no=log_no, size=size, leaves=b"".join(leaves).hex())
