# SPDX-License-Identifier: Apache-2.0
"""What attacks on the file tools share: each is made through every way that they open files by."""

import pytest

from runner.capability.tools.openers import Opener, best_opener, open_by_openat2, open_by_steps

HAVE_OPENAT2 = best_opener() is open_by_openat2


@pytest.fixture(
    params=[
        pytest.param(open_by_steps, id="steps"),
        pytest.param(
            open_by_openat2,
            id="openat2",
            marks=pytest.mark.skipif(not HAVE_OPENAT2, reason="this kernel has no openat2"),
        ),
    ]
)
def opener(request: pytest.FixtureRequest) -> Opener:
    way: Opener = request.param
    return way
