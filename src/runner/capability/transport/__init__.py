# SPDX-License-Identifier: Apache-2.0
"""What touches the world below the gate: HTTP, the embedded engine, locality, time and randomness."""
