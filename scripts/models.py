# SPDX-License-Identifier: Apache-2.0
"""Fetches the named models of the catalogue into `AKAION_HOME`; says nothing when they are already there."""

import sys

from runner.capability.models import Catalogue, fetch, models_dir
from runner.kernel.errors import ModelError

_STEP_PERCENT = 10


class Meter:
    """Prints one line a step, for a terminal and a log alike."""

    def __init__(self, name: str) -> None:
        """Start at nothing for the model called `name`."""
        self._name = name
        self._printed = 0

    def __call__(self, done: int, total: int) -> None:
        """Take `done` of `total` bytes. The one call that finds an intact file prints nothing."""
        percent = 100 * done // total
        if self._printed == 0 and done == total:
            return
        if percent >= self._printed + _STEP_PERCENT:
            self._printed = percent - percent % _STEP_PERCENT
            print(f"models: {self._name}: {done >> 20} of {total >> 20} MiB", flush=True)


def main(names: list[str]) -> int:
    """Fetch every model in `names`; return the exit status."""
    try:
        catalogue = Catalogue.bundled()
        for name in names:
            fetch(catalogue.entry(name), models_dir(), progress=Meter(name), report=print)
    except ModelError as error:
        print(f"models: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
