# SPDX-License-Identifier: Apache-2.0
"""The tools the runner ships, each run only through the perimeter's `SealedTools`."""
