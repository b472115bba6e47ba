# SPDX-License-Identifier: Apache-2.0
"""What all tests share: no example of a property fails for the time it took on a machine that is busy."""

from hypothesis import settings

settings.register_profile("runner", deadline=None)
settings.load_profile("runner")
