# SPDX-License-Identifier: Apache-2.0
"""Everything that touches the world, each file implementing a port of `runner.kernel.ports`."""
