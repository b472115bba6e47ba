# SPDX-License-Identifier: Apache-2.0
"""Any port, going wrong: after so many calls that go right, one raises or answers something else."""

from collections.abc import Callable, Mapping
from typing import Any


def broken(port: object, *, after: int = 0, **faults: object) -> Any:  # noqa: ANN401 - stands in for any port
    """Return `port` with some of its methods, or properties, going wrong after `after` calls that go right.

    Each of `faults` is a member's name and what becomes of it: an exception is raised, a function is called
    in its place with the same arguments, anything else is returned. A full disk is
    `broken(store, create=OSError(28, "full"))`.
    """
    return _Broken(port, after, faults)


class _Broken:
    def __init__(self, port: object, after: int, faults: Mapping[str, object]) -> None:
        self._port, self._after, self._faults = port, after, faults

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - any member of any port
        member = getattr(self._port, name)
        if name not in self._faults:
            return member
        if not callable(member):
            return self._call(name, lambda: member)
        return lambda *arguments, **named: self._call(name, member, *arguments, **named)

    def _call(self, name: str, right: Callable[..., object], *arguments: object, **named: object) -> object:
        if self._after > 0:
            self._after -= 1
            return right(*arguments, **named)
        fault = self._faults[name]
        if isinstance(fault, BaseException):
            raise fault
        return fault(*arguments, **named) if callable(fault) else fault
