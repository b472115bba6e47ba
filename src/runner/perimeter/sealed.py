# SPDX-License-Identifier: Apache-2.0
"""Sealed objects: what a loop holds instead of a raw client or a raw tool.

Owns the seal itself. A sealed object cannot be constructed, subclassed, copied or pickled outside
`Perimeter.seal` and `Perimeter.seal_tools`: they hold the one witness its constructor asks for.
Carries the structural half of P1. In-process Python is trusted code, so this stops mistakes, not
a hostile author: see the enforcement grades. `object.__new__` goes around the constructor and yields an empty
shell: it holds no backend, no tool and no perimeter, so every use of it is an `AttributeError`.
"""

from typing import Final, NoReturn, SupportsIndex

from runner.kernel.errors import SealError


class Witness:
    """Proof that a sealed object is being made by the perimeter."""

    __slots__ = ()


_witness: Final = Witness()
_claimed: list[Witness] = []


def claim_witness() -> Witness:
    """Return the witness, once. `runner.perimeter.gate` claims it when it is imported.

    Raises `SealError` on any later call.
    """
    if _claimed:
        raise SealError("the witness is already held by runner.perimeter.gate")
    _claimed.append(_witness)
    return _witness


class Sealed:
    """Root of sealed objects: refuses every way to make one but the witness."""

    __slots__ = ()

    def __init__(self, witness: object) -> None:
        if witness is not _witness:
            raise SealError(f"{type(self).__name__} is made by Perimeter.seal() or seal_tools() only")

    def __repr__(self) -> str:
        """Return the type only."""
        return f"<{type(self).__name__}>"

    def __copy__(self) -> NoReturn:
        """Raise `SealError`."""
        raise SealError("a sealed object cannot be copied")

    def __deepcopy__(self, memo: object) -> NoReturn:
        """Raise `SealError`."""
        raise SealError("a sealed object cannot be copied")

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        """Raise `SealError`."""
        raise SealError("a sealed object cannot be pickled")


def refuse_subclass(cls: type) -> NoReturn:
    """Raise `SealError`: called from `__init_subclass__` of each sealed class."""
    raise SealError(f"a sealed class cannot be subclassed: {cls.__name__}")
